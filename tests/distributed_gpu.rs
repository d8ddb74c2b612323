//! Sessions of many ranks on a GPU that is emulated (tests/emulated_gpu) and that all of them share: each rank's field against
//! the direct sum of one process over all sources, at all targets.
//!
//! Enters: small problems, split in every way, over a group of threads. No test waits longer than its time limit.

#![cfg(target_os = "linux")]

#[path = "emulated_gpu/harness.rs"]
mod harness;
mod ranks;

use harness::with_gpu;
use ranks::domains::*;
use ranks::support::cases::{Case, Kind, case};
use ranks::support::periodic::cored;
use ranks::support::tier::{full, takes, values};
use ranks::*;
use wakefmm::backend::Field;
use wakefmm::error::*;
use wakefmm::options::*;
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::{Array, ArrayMut};
use wakefmm::plan::sources::{Particles, Strengths};
use wakefmm::session::Session;

const GPU: SessionOptions = SessionOptions { backend: BackendKind::Cuda, device: None, devices: vec![], threads: 1 };
const AUTO: SessionOptions = SessionOptions { backend: BackendKind::Auto, device: None, devices: vec![], threads: 1 };
const PLAIN: Field = Field::Velocity { gradient: false };
const DEALT: &str = "of the targets a range of a Morton curve.";
const KEPT: &str = "of the targets what its caller has.";

/// Errors of field and gradient, and the plan of the first rank.
fn errors(c: &Case, ranks: usize, split: Split, o: &wfmm_plan_options, field: Field) -> ([f64; 3], Plan) {
    let exact = exact(c, field);
    let (u, g, plan, found) = together_on(&GPU, c, ranks, split, o, field);
    let gradient = if g.is_empty() { 0.0 } else { relative_l2(&g, &exact.1) };
    ([relative_l2(&u, &exact.0), gradient, found], plan)
}

#[test]
fn direct_sums_are_those_of_one_process_however_elements_are_split() {
    with_gpu("direct_sums_are_those_of_one_process_however_elements_are_split", &[], || {
        let wake = case("helical wake", Kind::Both, 300, 260, 1.0);
        for (c, field) in [(&wake, VELOCITY), (&charges(250, 200), POTENTIAL)] {
            for ranks in [1, 2, 4] {
                for (k, (name, split)) in SPLITS.into_iter().enumerate() {
                    if !takes(k + ranks / 2, 2) {
                        continue;
                    }
                    let (errors, plan) = errors(c, ranks, split, &plan_options(WFMM_METHOD_DIRECT, 1e-6), field);
                    let recipe = plan.recipe();
                    assert!(errors.iter().all(|&e| e < 1e-11), "{ranks} ranks, {name}: {errors:?}");
                    assert!(recipe.starts_with("Direct sum") && recipe.contains("Fake GPU"), "{recipe}");
                    let moves = ranks > 1 && ["all on the last", "interleaved", "even"].contains(&name);
                    let stays = ranks == 1 || name == "slabs" && field == POTENTIAL;
                    assert!(!moves || name == "even" || recipe.ends_with(DEALT), "{ranks} ranks, {name}: {recipe}");
                    assert!(!stays || recipe.ends_with(KEPT), "{ranks} ranks, {name}: {recipe}");
                    assert_eq!(plan.report().backend, WFMM_BACKEND_CUDA);
                }
            }
        }
    });
}

/// In one precision; the gradient to thirty tolerances, and the error that is told not below a third of the true one. Without a
/// gradient `check` is of the same field, and at all targets says what is true.
fn fmm_keeps(precision: i32, tolerance: f64) {
    let wake = case("helical wake", Kind::Both, 450, 400, 1.0);
    let cases = [(&wake, [PLAIN, VELOCITY]), (&charges(1100, 1000), [Field::Potential { gradient: false }, POTENTIAL])];
    for (of, (c, fields)) in cases.into_iter().enumerate() {
        let turn = of + usize::from(precision == WFMM_PRECISION_F32);
        for (k, (name, split)) in SPLITS.into_iter().enumerate().filter(|(k, _)| takes(k + turn, 2)) {
            let ranks = if k < 3 { 2 } else { 4 };
            let field = fields[k % 2];
            let o = wfmm_plan_options { precision, ..plan_options(WFMM_METHOD_FMM, tolerance) };
            let ([main, gradient, found], plan) = errors(c, ranks, split, &o, field);
            let (report, what) = (plan.report(), format!("{ranks} ranks, {name}: {}", plan.recipe()));
            assert!(main <= tolerance, "{main:.1e} {what}");
            if k % 2 == 1 {
                assert!(gradient <= 30.0 * tolerance && found <= tolerance, "{gradient:.1e} {found:.1e} {what}");
            } else {
                assert!(
                    (found / main - 1.0).abs() < 0.05 || found.max(main) < 1e-14,
                    "check says {found:.2e}, not {main:.2e}: {what}"
                );
            }
            assert!(
                report.estimated_error <= tolerance && report.estimated_error + 1e-14 > main / 3.0,
                "{report:?} {what}"
            );
            assert_eq!((report.method, report.precision), (WFMM_METHOD_FMM, precision), "{what}");
        }
    }
}

#[test]
fn the_fmm_in_double_precision_keeps_its_tolerance() {
    with_gpu("the_fmm_in_double_precision_keeps_its_tolerance", &[], || fmm_keeps(WFMM_PRECISION_F64, 1e-4));
}

#[test]
fn the_fmm_in_single_precision_keeps_its_tolerance() {
    with_gpu("the_fmm_in_single_precision_keeps_its_tolerance", &[], || fmm_keeps(WFMM_PRECISION_F32, 1e-3));
}

/// All ranks compute a field again, or sum directly, where one of them has found too much.
#[test]
fn a_field_that_misses_its_tolerance_is_computed_again_by_all() {
    with_gpu("a_field_that_misses_its_tolerance_is_computed_again_by_all", &[], || {
        let mut c = case("cube", Kind::Particles, 1500, 900, 1.0);
        c.targets.iter_mut().for_each(|x| x[0] += 1.5);
        c.particle_core.fill(0.0);
        let none = WFMM_REG_NONE;
        let o = wfmm_plan_options { particle_regularization: none, ..plan_options(WFMM_METHOD_FMM, 1e-3) };
        let want = exact_of(&c, VELOCITY, &wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..o }).0;
        for ranks in [2, 4] {
            let (u, _, plan, _) = together_on(&GPU, &c, ranks, SPLITS[3].1, &o, VELOCITY);
            let recipe = plan.recipe();
            assert!(recipe.contains("after tightening") && plan.report().retries > 0, "{recipe}");
            assert!(relative_l2(&u, &want) <= 1e-3, "{ranks} ranks: {:.1e} {recipe}", relative_l2(&u, &want));
        }
    });
}

/// The field after particles elsewhere were refused for a strength of the last rank.
fn refused(plan: &mut Plan, mine: &Case, rank: usize, m: usize) -> Vec<f64> {
    let (n, elsewhere) = (mine.position.len(), vec![7.0; 3 * mine.position.len()]);
    let mut strength = flat(&mine.strength);
    if let Some(last) = strength.last_mut().filter(|_| rank == 2) {
        *last = f64::NAN;
    }
    let particles =
        Particles { n, position: Array::Host(&elsewhere[..]), strength: Array::Host(&strength), core: None };
    assert_eq!(plan.set_particles(Some(particles)).unwrap_err().status, WFMM_ERR_NOT_FINITE);
    field_of(plan, PLAIN, m).unwrap().0
}

/// Sources in page-locked memory, which go to the device as soon as they are set: other parts of them on each rank, strengths alone, arrays that
/// are set twice.
fn large_arrays_change(common: bool) {
    let mut c = case("cube", Kind::Particles, 30_000, 12, 1.0);
    let mut steps = vec![];
    let all = [0, 0, 2, 1, 0, 3];
    for &split in values(if common { &all[..4] } else { &all[1..3] }, &all) {
        c.position.iter_mut().for_each(|x| x[1] += 0.07);
        steps.push((c.clone(), SPLITS[split].1, exact(&c, PLAIN).0));
    }
    on_all(3, |rank, end| {
        let mut plan = plan_on(&GPU, end, &plan_options(WFMM_METHOD_DIRECT, 1e-6));
        for (k, (c, split, want)) in steps.iter().enumerate() {
            let (mine, numbers) = part(c, *split, rank, 3);
            if k % 2 == 1 {
                let mut other = mine.clone();
                other.position.iter_mut().for_each(|x| x[0] += 5.0);
                fill(&mut plan, &other).unwrap();
            }
            fill(&mut plan, &mine).unwrap();
            for factor in [1.0, -2.0] {
                set_multiples(&mut plan, &mine, factor);
                let u = field_of(&mut plan, PLAIN, numbers.len()).unwrap().0;
                let want: Vec<f64> =
                    numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].iter().map(|x| factor * x)).collect();
                assert!(numbers.is_empty() || relative_l2(&u, &want) < 1e-12, "rank {rank}, {k}, {factor}");
                let again = refused(&mut plan, &mine, rank, numbers.len());
                assert!(again == u, "rank {rank}, {k}: after arrays that were refused");
                let read = if common { "sources read from the memory of the others;" } else { "sources sent to it;" };
                assert!(plan.recipe().contains(read), "{k}: {}", plan.recipe());
            }
        }
    });
}

/// `common`: whether ranks map each other's memory, or send their arrays.
fn changes_are_seen(name: &str, environment: &[(&str, &str)], common: bool) {
    with_gpu(name, environment, || {
        let (mut c, mut moved) = (case("cube", Kind::Particles, 900, 700, 1.0), vec![]);
        for k in 0..3 {
            c.position.iter_mut().for_each(|x| x[k] += 0.01);
            c.targets.truncate(700 - 150 * k);
            moved.push((c.clone(), exact(&c, PLAIN).0));
        }
        on_all(3, |rank, end| {
            let mut plan = plan_on(&GPU, end, &plan_options(WFMM_METHOD_FMM, 1e-4));
            for (k, (c, want)) in moved.iter().enumerate() {
                let (mine, numbers) = part(c, SPLITS[k].1, rank, 3);
                fill(&mut plan, &mine).unwrap();
                for factor in [1.0, -2.0] {
                    if factor != 1.0 {
                        set_multiples(&mut plan, &mine, factor);
                    }
                    plan.prepare().unwrap();
                    for round in 0..2 {
                        let u = field_of(&mut plan, PLAIN, numbers.len()).unwrap().0;
                        let want: Vec<f64> =
                            numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].iter().map(|x| factor * x)).collect();
                        let e = relative_l2(&u, &want);
                        assert!(numbers.is_empty() || e < 2e-4, "rank {rank}, {k}, {factor}, {round}: {e:.1e}");
                    }
                }
            }
        });
        large_arrays_change(common);
    });
}

#[test]
fn strengths_targets_and_sources_change_from_call_to_call() {
    changes_are_seen("strengths_targets_and_sources_change_from_call_to_call", &[], true);
}

/// As ranks of several nodes.
#[test]
fn strengths_targets_and_sources_are_sent() {
    changes_are_seen("strengths_targets_and_sources_are_sent", &[("FAKE_CUDA", "no_registration")], false);
}

/// Nothing to sum, nowhere to sum at, one target for four ranks.
#[test]
fn ranks_without_anything_take_part() {
    with_gpu("ranks_without_anything_take_part", &[], || {
        for (n, m) in [(0, 40), (40, 0), (40, 1), (1, 1)] {
            let c = case("cube", Kind::Particles, n.max(1), m.max(1), 1.0);
            let want = if n > 0 { exact(&c, VELOCITY) } else { (vec![0.0; 3 * m], vec![0.0; 9 * m]) };
            for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM] {
                on_all(4, |rank, end| {
                    let mut plan = plan_on(&GPU, end, &plan_options(method, 1e-4));
                    let (mut mine, _) = part(&c, SPLITS[1].1, rank, 4);
                    if n == 0 {
                        mine.position.clear();
                    }
                    if m == 0 {
                        mine.targets.clear();
                    }
                    fill(&mut plan, &mine).unwrap();
                    plan.prepare().unwrap();
                    let (u, g) = field_of(&mut plan, VELOCITY, mine.targets.len()).unwrap();
                    let right =
                        |got: &[f64], want: &[f64]| got.iter().zip(want).all(|(a, b)| (a - b).abs() <= 1e-3 * b.abs());
                    assert!(rank < 3 || m == 0 || right(&u, &want.0) && right(&g, &want.1), "{n} {m}: {u:?} {want:?}");
                    assert!(plan.check(10, 1).unwrap() <= 1e-4);
                });
            }
        }
    });
}

/// Arrays that are said to be in device memory, on some ranks; fields that are added; outputs in single precision.
#[test]
fn arrays_of_every_kind_are_taken_and_given() {
    with_gpu("arrays_of_every_kind_are_taken_and_given", &[], || {
        let c = case("cube", Kind::Both, 160, 150, 1.0).rounded();
        let want = exact(&c, PLAIN).0;
        for split in [SPLITS[1].1, SPLITS[2].1, SPLITS[3].1] {
            for flags in [0, WFMM_FLAG_ACCUMULATE, WFMM_FLAG_HOST_PARTITION] {
                let o = wfmm_plan_options { flags, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
                on_all(2, |rank, end| {
                    let mut plan = plan_on(&GPU, end, &o);
                    let (mine, numbers) = part(&c, split, rank, 2);
                    fill(&mut plan, &mine).unwrap();
                    let (x, a, y) = (flat(&mine.position), flat(&mine.strength), flat(&mine.targets));
                    if rank == 0 {
                        fn there<'a>(v: &[f64]) -> Array<'a, f64> {
                            Array::Device { address: v.as_ptr() as u64, len: v.len() }
                        }
                        let (n, core) = (mine.position.len(), Some(there(&mine.particle_core)));
                        plan.set_particles((n > 0).then(|| Particles {
                            n,
                            position: there(&x),
                            strength: there(&a),
                            core,
                        }))
                        .unwrap();
                        plan.set_targets(Some((numbers.len(), there(&y)))).unwrap();
                    } else {
                        // Calls are collective; here they say the same again.
                        let here = |v| Array::Host(v);
                        let (n, core) = (mine.position.len(), Some(here(&mine.particle_core[..])));
                        plan.set_particles((n > 0).then(|| Particles {
                            n,
                            position: here(&x),
                            strength: here(&a),
                            core,
                        }))
                        .unwrap();
                        plan.set_targets(Some((numbers.len(), here(&y)))).unwrap();
                    }
                    let (m, before) = (3 * numbers.len(), if flags == WFMM_FLAG_ACCUMULATE { 1.0 } else { 0.0 });
                    let mut wide = vec![before; m];
                    let (address, len) = (wide.as_mut_ptr() as u64, m);
                    let to = if rank == 0 { ArrayMut::Device { address, len } } else { ArrayMut::Host(&mut wide[..]) };
                    plan.evaluate(PLAIN, to, None).unwrap();
                    let mut narrow = vec![before as f32; m];
                    plan.evaluate(PLAIN, ArrayMut::Host(&mut narrow[..]), None).unwrap();
                    let want: Vec<f64> = numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].to_vec()).collect();
                    for got in [wide, narrow.into_iter().map(f64::from).collect()] {
                        let got: Vec<f64> = got.iter().map(|x| x - before).collect();
                        assert!(
                            m == 0 || relative_l2(&got, &want) < 2e-4,
                            "rank {rank}, {flags}: {:.1e}",
                            relative_l2(&got, &want)
                        );
                    }
                });
            }
        }
    });
}

/// Single precision where all ranks' arrays are in single precision, double where one rank's are not, and single again where that
/// serves the tolerance and bits may depend on it.
#[test]
fn all_ranks_compute_in_the_same_precision() {
    with_gpu("all_ranks_compute_in_the_same_precision", &[], || {
        let c = case("cube", Kind::Particles, 900, 700, 1.0).rounded();
        for (double, flags) in [(None, 0), (Some(1), WFMM_FLAG_REPRODUCIBLE), (Some(1), 0)] {
            on_all(2, |rank, end| {
                let o = wfmm_plan_options { flags, ..plan_options(WFMM_METHOD_FMM, 1e-3) };
                let mut plan = plan_on(&GPU, end, &o);
                let (mine, numbers) = part(&c, SPLITS[2].1, rank, 2);
                let narrow = |v: Vec<f64>| v.iter().map(|x| *x as f32).collect::<Vec<f32>>();
                let (x, a, y) =
                    (narrow(flat(&mine.position)), narrow(flat(&mine.strength)), narrow(flat(&mine.targets)));
                let n = mine.position.len();
                plan.set_particles(Some(Particles {
                    n,
                    position: Array::Host(&x),
                    strength: Array::Host(&a),
                    core: None,
                }))
                .unwrap();
                if double == Some(rank) {
                    plan.set_targets(Some((numbers.len(), Array::Host(&flat(&mine.targets)[..])))).unwrap();
                } else {
                    plan.set_targets(Some((numbers.len(), Array::Host(&y)))).unwrap();
                }
                let mut u = vec![0f32; 3 * numbers.len()];
                plan.evaluate(PLAIN, ArrayMut::Host(&mut u[..]), None).unwrap();
                let precision = if flags != 0 { WFMM_PRECISION_F64 } else { WFMM_PRECISION_F32 };
                assert_eq!(plan.report().precision, precision, "{}", plan.recipe());
            });
        }
    });
}

#[test]
fn a_ground_plane_is_that_of_one_process() {
    with_gpu("a_ground_plane_is_that_of_one_process", &[], || {
        let mut c = case("cube", Kind::Both, 700, 500, 1.0);
        c.targets.iter_mut().for_each(|x| x[2] = x[2].abs() + 0.01);
        let o = wfmm_plan_options { plane_axis: 3, plane_position: -0.02, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
        let want = exact_of(&c, VELOCITY, &wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..o });
        for (ranks, split) in [(2, SPLITS[2].1), (4, SPLITS[4].1)] {
            let (u, g, plan, found) = together_on(&GPU, &c, ranks, split, &o, VELOCITY);
            let errors = (relative_l2(&u, &want.0), relative_l2(&g, &want.1));
            assert!(errors.0 <= 1e-4 && errors.1 <= 3e-3 && found <= 1e-4, "{errors:?} {found:.1e} {}", plan.recipe());
        }
    });
}

#[test]
fn an_error_on_one_rank_is_the_same_on_all() {
    with_gpu("an_error_on_one_rank_is_the_same_on_all", &[], || {
        let c = case("cube", Kind::Both, 300, 240, 1.0);
        let want = exact(&c, PLAIN).0;
        on_all(3, |rank, end| {
            let mut plan = plan_on(&GPU, end, &plan_options(WFMM_METHOD_FMM, 1e-4));
            let (mine, numbers) = part(&c, SPLITS[2].1, rank, 3);
            fill(&mut plan, &mine).unwrap();
            let mut y = flat(&mine.targets);
            if rank == 1 {
                y[4] = f64::NAN;
            }
            let e = plan.set_targets(Some((numbers.len(), Array::Host(&y[..])))).unwrap_err();
            assert!(e.status == WFMM_ERR_NOT_FINITE && e.message.starts_with("rank 1: position[1][1]"), "{e}");
            let u = field_of(&mut plan, PLAIN, numbers.len()).unwrap().0;
            let want: Vec<f64> = numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].to_vec()).collect();
            assert!(relative_l2(&u, &want) < 2e-4);
        });
    });
}

/// One rank's device is full at some request: the same status on all ranks, and the next call is right; under AUTO the CPU takes
/// over on all ranks.
#[test]
fn a_full_device_of_one_rank_is_the_same_on_all() {
    let mut refused = 0;
    for at in values(&[9, 26, 61], &[3, 9, 17, 26, 40, 61, 75]) {
        let failure = format!("full_at_{at}_{}", at + 1);
        let name = "a_full_device_of_one_rank_is_the_same_on_all";
        let text = with_gpu(name, &[("FAKE_CUDA", &*failure)], || {
            let c = case("cube", Kind::Particles, 900, 700, 1.0);
            let want = exact(&c, PLAIN).0;
            let seen = on_all(2, |rank, end| {
                let mut plan = plan_on(&GPU, end, &plan_options(WFMM_METHOD_FMM, 1e-4));
                let (mine, numbers) = part(&c, SPLITS[2].1, rank, 2);
                fill(&mut plan, &mine).unwrap();
                let mut seen = vec![];
                for _ in 0..5 {
                    match field_of(&mut plan, PLAIN, numbers.len()) {
                        Err(e) => {
                            assert!(e.status == WFMM_ERR_DEVICE_MEMORY && e.message.starts_with("rank "), "{e}");
                            seen.push(e.message);
                        }
                        Ok((u, _)) => {
                            let want: Vec<f64> =
                                numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].to_vec()).collect();
                            assert!(relative_l2(&u, &want) < 2e-4);
                            seen.push(String::new());
                        }
                    }
                }
                assert!(seen[4].is_empty(), "{seen:?}");
                seen
            });
            assert_eq!(seen[0], seen[1]);
            seen[0].iter().filter(|e| !e.is_empty()).for_each(|_| println!("\nrefused"));
        });
        if text.is_empty() {
            return; // the child
        }
        refused += text.matches("\nrefused").count();
    }
    assert!(refused >= if full() { 4 } else { 2 }, "{refused} were refused");
}

#[test]
fn the_cpu_takes_over_on_all_ranks() {
    let name = "the_cpu_takes_over_on_all_ranks";
    for failure in ["kernel", "late_kernel", "lost_at_1", "lost_at_3", "full_at_20_21"] {
        let text = with_gpu(name, &[("FAKE_CUDA", failure)], || {
            let c = case("cube", Kind::Particles, 900, 700, 1.0);
            let want = exact(&c, PLAIN).0;
            for flags in [0, WFMM_FLAG_ACCUMULATE] {
                let o = wfmm_plan_options { flags, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
                on_all(2, |rank, end| {
                    let mut plan = plan_on(&AUTO, end, &o);
                    let (mine, numbers) = part(&c, SPLITS[2].1, rank, 2);
                    fill(&mut plan, &mine).unwrap();
                    let mut u = vec![0.0; 3 * numbers.len()];
                    plan.evaluate(PLAIN, ArrayMut::Host(&mut u[..]), None).unwrap();
                    let want: Vec<f64> = numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].to_vec()).collect();
                    let recipe = plan.recipe();
                    assert!(relative_l2(&u, &want) < 2e-4, "rank {rank}: {recipe}");
                    if recipe.contains("The GPU was given up: rank ") {
                        println!("\ntaken over");
                    }
                });
            }
        });
        if text.is_empty() {
            return; // the child
        }
        assert!(text.matches("\ntaken over").count() >= 2, "{failure}: {text}");
    }
}

#[test]
fn small_problems_stay_on_the_cpus_of_all_ranks() {
    with_gpu("small_problems_stay_on_the_cpus_of_all_ranks", &[], || {
        for (n, backend) in [(100, WFMM_BACKEND_CPU), (1000, WFMM_BACKEND_CUDA)] {
            let c = case("cube", Kind::Particles, n, n, 1.0);
            let (u, _, plan, _) = together_on(&AUTO, &c, 2, SPLITS[1].1, &plan_options(WFMM_METHOD_AUTO, 1e-4), PLAIN);
            assert!(relative_l2(&u, &exact(&c, PLAIN).0) < 1e-4, "{}", plan.recipe());
            assert_eq!(plan.report().backend, backend, "{n}: {}", plan.recipe());
        }
    });
}

/// Ranks take devices in turn; what a rank lacks is said to all, and AUTO takes the CPU on all.
#[test]
fn devices_are_chosen_by_the_rank_of_the_node() {
    with_gpu("devices_are_chosen_by_the_rank_of_the_node", &[("FAKE_CUDA", "two")], || {
        let said = on_all(4, |_, end| Session::distributed(&GPU, end).unwrap().describe());
        for (rank, text) in said.iter().enumerate() {
            let start = format!("rank {rank} of 4; CUDA device {}, Fake GPU", rank % 2);
            assert!(text.starts_with(&start), "{text}");
        }
        let device = |rank: usize| if rank == 2 { Some(5) } else { Some(1) };
        let lacking = on_all(4, |rank, end| {
            Session::distributed(&SessionOptions { device: device(rank), ..GPU }, end).err().unwrap()
        });
        for e in lacking {
            let start = "rank 2: backend = WFMM_BACKEND_CUDA (2), but device is 5; this machine has 2 GPU(s)";
            assert!(e.status == WFMM_ERR_NO_DEVICE && e.message.starts_with(start), "{e}");
        }
        let all = on_all(4, |rank, end| {
            Session::distributed(&SessionOptions { device: device(rank), ..AUTO }, end).unwrap().describe()
        });
        assert!(all.iter().all(|text| text.contains("each: CPU")), "{all:?}");
        assert!(
            all[0].contains("no CUDA: another rank has no GPU") && all[2].contains("no CUDA: device is 5"),
            "{all:?}"
        );
    });
}

/// A treecode and pseudo-particles on ranks of GPUs; few pairs go to their CPUs.
#[test]
fn every_method_of_one_gpu_is_one_of_many() {
    with_gpu("every_method_of_one_gpu_is_one_of_many", &[], || {
        let wake = case("helical wake", Kind::Both, 400, 350, 1.0);
        let methods = [
            ("TREECODE", plan_options(WFMM_METHOD_TREECODE, 1e-4)),
            (
                "PSEUDO",
                wfmm_plan_options { expansion: WFMM_EXPANSION_PSEUDO_PARTICLES, ..plan_options(WFMM_METHOD_FMM, 1e-3) },
            ),
        ];
        for (k, (name, o)) in methods.into_iter().enumerate() {
            for (ranks, split) in [(2, SPLITS[2 - k].1), (3, SPLITS[3 + k].1)] {
                let ([main, gradient, found], plan) = errors(&wake, ranks, split, &o, VELOCITY);
                let what = format!("{name}, {ranks} ranks: {main:.1e} {gradient:.1e} {found:.1e} {}", plan.recipe());
                assert!(main <= o.tolerance && gradient <= 30.0 * o.tolerance && found <= o.tolerance, "{what}");
                assert_eq!(plan.report().backend, WFMM_BACKEND_CUDA, "{what}");
                assert_eq!(plan.report().method, o.method, "{what}");
                assert_eq!(plan.recipe().contains("pseudo-particles a cell"), name == "PSEUDO", "{what}");
            }
            let few = case("cube", Kind::Particles, 60, 40, 1.0);
            let plan = keeps(&AUTO, &few, name, 2, SPLITS[2], &o, PLAIN, &reference(&few, PLAIN, &o));
            assert_eq!(plan.report().backend, WFMM_BACKEND_CPU, "{}", plan.recipe());
        }
    });
}

/// On GPUs, against one process' direct sum on a CPU.
fn keeps_on_gpus(
    c: &Case,
    what: &str,
    on: &SessionOptions,
    ranks: usize,
    split: (&str, Split),
    o: &wfmm_plan_options,
    field: Field,
) {
    let plan = keeps(on, c, what, ranks, split, o, field, &reference(c, field, o));
    assert_eq!(plan.report().backend, WFMM_BACKEND_CUDA, "{what}: {}", plan.recipe());
}

/// Ranks whose targets are in one place see the images that all see: the recipe is the same on each.
#[test]
fn periodic_domains_are_those_of_one_process() {
    with_gpu("periodic_domains_are_those_of_one_process", &[], || {
        for (d, (name, period)) in DOMAINS.into_iter().take(4).enumerate() {
            let methods = [(WFMM_METHOD_FMM, 1e-3, 150), (WFMM_METHOD_DIRECT, 1e-6, 50)];
            for (k, (method, tolerance, n)) in methods.into_iter().enumerate() {
                let kinds = [("vortices", wake(n, n, period), VELOCITY), ("charges", charged(n, n, period), POTENTIAL)];
                for (of, (kind, c, field)) in kinds.into_iter().enumerate() {
                    // Each domain by one method and one kind, each method with both kinds.
                    if full() || 2 * k + of == d {
                        let o = in_domain(method, tolerance, period);
                        let o = wfmm_plan_options { segment_regularization: WFMM_REG_LAMB_OSEEN, ..o };
                        let (ranks, split) = ([2, 3, 4][(d + k) % 3], SPLITS[(2 * d + k) % 5]);
                        keeps_on_gpus(&c, &format!("{name}, {kind}"), &GPU, ranks, split, &o, field);
                    }
                }
            }
        }
        // A plane beside a slab: all are mirrored.
        let c = cored(Kind::Particles, 100, 80, [1.0, 1.0, OPEN], false, 0.01);
        let o = in_domain(WFMM_METHOD_FMM, 1e-3, [1.0, 1.0, OPEN]);
        let above = wfmm_plan_options { plane_axis: 3, plane_position: -0.1, ..o };
        keeps_on_gpus(&c, "slab above a plane", &GPU, 2, SPLITS[3], &above, VELOCITY);
    });
}

/// AUTO computes them on GPUs as well, and what has no sum is refused on all ranks.
#[test]
fn periodic_domains_are_for_gpus_where_all_ranks_have_one() {
    with_gpu("periodic_domains_are_for_gpus_where_all_ranks_have_one", &[], || {
        let o = in_domain(WFMM_METHOD_FMM, 1e-3, [1.0; 3]);
        let c = cored(Kind::Particles, 1000, 1000, [1.0; 3], true, 0.01);
        keeps_on_gpus(&c, "cube", &AUTO, 2, SPLITS[1], &o, PLAIN);
        let mut q = charged(60, 40, [1.0, OPEN, OPEN]);
        q.charge[0] += 1.0;
        on_all(2, |rank, end| {
            let mut plan = plan_on(&GPU, end, &in_domain(WFMM_METHOD_FMM, 1e-4, [1.0, OPEN, OPEN]));
            let (mine, numbers) = part(&q, SPLITS[0].1, rank, 2);
            fill(&mut plan, &mine).unwrap();
            let field = Field::Potential { gradient: false };
            let e = field_of(&mut plan, field, numbers.len()).unwrap_err();
            assert!(e.status == WFMM_ERR_VALUE && e.message.contains("charge"), "{}", e.message);
        });
    });
}

/// Devices of one process, in a domain and by pseudo-particles.
#[test]
fn devices_of_one_process_have_domains_and_pseudo_particles() {
    let name = "devices_of_one_process_have_domains_and_pseudo_particles";
    with_gpu(name, &[("FAKE_CUDA", "two")], || {
        let on = Session::new(&SessionOptions { devices: vec![0, 1, 0], ..GPU }).unwrap();
        let pseudo =
            wfmm_plan_options { expansion: WFMM_EXPANSION_PSEUDO_PARTICLES, ..plan_options(WFMM_METHOD_FMM, 1e-3) };
        let open = case("cube", Kind::Particles, 600, 500, 1.0);
        for (c, o) in [
            (
                cored(Kind::Particles, 300, 250, DOMAINS[1].1, true, 0.01),
                in_domain(WFMM_METHOD_FMM, 1e-3, DOMAINS[1].1),
            ),
            (cored(Kind::Particles, 700, 500, [1.0; 3], true, 0.01), in_domain(WFMM_METHOD_FMM, 1e-3, [1.0; 3])),
            (open, pseudo),
        ] {
            let exact = wfmm_plan_options { method: WFMM_METHOD_DIRECT, tolerance: 1e-6, expansion: 0, ..o };
            let want = exact_of(&c, VELOCITY, &exact);
            let mut plan = Plan::create(on.clone(), PlanOptions::checked(&o).unwrap()).unwrap();
            fill(&mut plan, &c).unwrap();
            let (u, g) = field_of(&mut plan, VELOCITY, c.targets.len()).unwrap();
            let (errors, recipe) = ([relative_l2(&u, &want.0), relative_l2(&g, &want.1) / 30.0], plan.recipe());
            assert!(errors.iter().all(|&e| e <= 1e-3) && recipe.contains("On 3 devices"), "{errors:?} {recipe}");
            let found = plan.check(100_000, 3).unwrap();
            // Without a gradient the field is another one.
            assert!(found <= 1e-3 && found >= 0.02 * errors[0], "{found:.2e} {errors:?} {recipe}");
        }
    });
}

/// Plans of one process on several devices: the field is that of one device, whatever changes and wherever the result goes.
#[test]
fn devices_of_one_process_compute_together() {
    with_gpu("devices_of_one_process_compute_together", &[("FAKE_CUDA", "two")], || {
        let session = |devices: Vec<u32>| Session::new(&SessionOptions { devices, ..GPU }).unwrap();
        let wake = case("helical wake", Kind::Both, 500, 430, 1.0);
        for (d, devices) in [vec![0, 1], vec![1, 0, 1]].into_iter().enumerate() {
            let on = session(devices.clone());
            let text = on.describe();
            assert!(text.starts_with(&format!("CUDA device {} and {}", devices[0], devices[1])), "{text}");
            for (of, (c, field)) in [(&wake, VELOCITY), (&charges(700, 600), POTENTIAL)].into_iter().enumerate() {
                let exact = exact(c, field);
                let methods = [(WFMM_METHOD_DIRECT, 1e-11), (WFMM_METHOD_FMM, 1e-4), (WFMM_METHOD_TREECODE, 1e-4)];
                for (k, (method, tolerance)) in methods.into_iter().enumerate() {
                    if !takes(d + of + k, 2) {
                        continue;
                    }
                    let o = plan_options(method, tolerance);
                    let mut plan = Plan::create(on.clone(), PlanOptions::checked(&o).unwrap()).unwrap();
                    fill(&mut plan, c).unwrap();
                    let (u, g) = field_of(&mut plan, field, c.targets.len()).unwrap();
                    let recipe = plan.recipe();
                    let errors = [relative_l2(&u, &exact.0), relative_l2(&g, &exact.1) / 30.0];
                    assert!(errors.iter().all(|&e| e <= tolerance), "{errors:?} {recipe}");
                    assert!(
                        recipe.contains(&format!("On {} devices", devices.len())) && recipe.ends_with(DEALT),
                        "{recipe}"
                    );
                    let found = plan.check(100_000, 3).unwrap();
                    assert!(
                        found <= tolerance && (found - errors[0]).abs() <= 0.5 * errors[0] + 1e-14,
                        "{found:.2e} {errors:?}"
                    );
                    assert_eq!(plan.report().backend, WFMM_BACKEND_CUDA);
                    // The same again, and other targets.
                    assert!(relative_l2(&field_of(&mut plan, field, c.targets.len()).unwrap().0, &u) < 1e-12);
                    let some = flat(&c.targets[..100]);
                    plan.set_targets(Some((100, Array::Host(&some[..])))).unwrap();
                    let few = field_of(&mut plan, field, 100).unwrap().0;
                    assert!(relative_l2(&few, &exact.0[..few.len()]) <= 3.0 * tolerance, "{}", plan.recipe());
                    plan.set_targets::<f64>(None).unwrap();
                    assert!(field_of(&mut plan, field, 0).unwrap().0.is_empty());
                }
            }
        }
    });
}

#[test]
fn devices_of_one_process_add_to_what_is_there() {
    with_gpu("devices_of_one_process_add_to_what_is_there", &[("FAKE_CUDA", "two")], || {
        let on = Session::new(&SessionOptions { devices: vec![0, 1], ..GPU }).unwrap();
        let c = case("cube", Kind::Particles, 300, 200, 1.0);
        let o = wfmm_plan_options { flags: WFMM_FLAG_ACCUMULATE, ..plan_options(WFMM_METHOD_DIRECT, 1e-6) };
        let mut plan = Plan::create(on, PlanOptions::checked(&o).unwrap()).unwrap();
        fill(&mut plan, &c).unwrap();
        let mut u = vec![0.5; 600];
        plan.evaluate(PLAIN, ArrayMut::Host(&mut u[..]), None).unwrap();
        let once = exact(&c, PLAIN).0;
        let want: Vec<f64> = once.iter().map(|u| u + 0.5).collect();
        assert!(relative_l2(&u, &want) < 1e-12);
        // Once more, in memory of the first device.
        let (address, len) = (u.as_mut_ptr() as u64, u.len());
        plan.evaluate::<f64>(PLAIN, ArrayMut::Device { address, len }, None).unwrap();
        let want: Vec<f64> = once.iter().map(|u| 2.0 * u + 0.5).collect();
        assert!(relative_l2(&u, &want) < 1e-12);
    });
}

/// Positions of a number of targets; more than a warp takes, fewer than there are devices, most or all of them at one position.
fn target_sets() -> Vec<Vec<f64>> {
    let some = |n: usize| flat(&case("cube", Kind::Particles, 2, n, 1.0).targets);
    let mut crowd = some(3000);
    crowd[600..].as_chunks_mut::<3>().0.iter_mut().for_each(|x| *x = [0.3, 0.4, 0.5]);
    let line = (0..2500).flat_map(|k| [f64::from(k * 7919 % 2500), 0.0, 0.0]).collect();
    // The last but one is large enough for devices to read parts of it and the rest from each other.
    vec![some(9000), crowd, [0.1, 0.2, 0.3].repeat(700), line, some(2), some(1), some(50_000), some(1025)]
}

/// Every target gets its own field back, whatever part it is in, from arrays in both precisions.
fn parts_are_whole(devices: Vec<u32>) {
    let c = case("cube", Kind::Particles, 6, 1, 1.0);
    let o = plan_options(WFMM_METHOD_DIRECT, 1e-6);
    let plan_on = |options: &SessionOptions| {
        let session = Session::new(options).unwrap();
        let mut plan = Plan::create(session, PlanOptions::checked(&o).unwrap()).unwrap();
        fill(&mut plan, &c).unwrap();
        plan
    };
    let mut alone = plan_on(&GPU);
    let mut parted = plan_on(&SessionOptions { devices, ..GPU });
    for x in target_sets() {
        let n = x.len() / 3;
        let fields = [&mut alone, &mut parted].map(|plan| {
            plan.set_targets(Some((n, Array::Host(&x[..])))).unwrap();
            let (mut u, mut g) = (vec![7.0f64; 3 * n], vec![7.0f64; 9 * n]);
            plan.evaluate(VELOCITY, ArrayMut::Host(&mut u[..]), Some(ArrayMut::Host(&mut g[..]))).unwrap();
            [u, g]
        });
        let [want, got] = &fields;
        let most = want[1].iter().fold(0.0, |a, v| f64::max(a, v.abs()));
        let wrong = |k: usize| want[k].iter().zip(&got[k]).position(|(a, b)| (a - b).abs() > 1e-13 * most);
        assert_eq!([wrong(0), wrong(1)], [None; 2], "{n} targets");
        // The same numbers in single precision, and without a gradient.
        let y: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let fields = [&mut alone, &mut parted].map(|plan| {
            plan.set_targets(Some((n, Array::Host(&y[..])))).unwrap();
            let mut u = vec![7.0f32; 3 * n];
            plan.evaluate(PLAIN, ArrayMut::Host(&mut u[..]), None).unwrap();
            u
        });
        assert!(fields[0].iter().zip(&fields[1]).all(|(a, b)| (a - b).abs() <= 1e-5 * most as f32), "{n} targets");
    }
}

/// Sources that devices read in parts, changed as a whole and in their strengths alone.
fn large_sources_arrive(devices: Vec<u32>) {
    let o = plan_options(WFMM_METHOD_DIRECT, 1e-6);
    let mut plans = [vec![], devices].map(|devices| {
        let session = Session::new(&SessionOptions { devices, ..GPU }).unwrap();
        Plan::create(session, PlanOptions::checked(&o).unwrap()).unwrap()
    });
    for seed in 0..3 {
        let mut c = case("cube", Kind::Particles, 50_000, 9, 1.0);
        c.position.iter_mut().for_each(|x| x[0] += 0.1 * f64::from(seed));
        let fields = plans.each_mut().map(|plan| {
            fill(plan, &c).unwrap();
            let u = field_of(plan, PLAIN, 9).unwrap().0;
            let turned: Vec<f64> = flat(&c.strength).iter().map(|a| -a).collect();
            let strength = Some((50_000, Array::Host(&turned[..])));
            plan.set_strengths(Strengths { circulation: None, strength, charge: None }).unwrap();
            [u, field_of(plan, PLAIN, 9).unwrap().0]
        });
        let [alone, together] = &fields;
        assert!(relative_l2(&together[0], &alone[0]) < 1e-13 && relative_l2(&together[1], &alone[1]) < 1e-13);
        assert!(alone[0].iter().zip(&alone[1]).all(|(a, b)| (a + b).abs() < 1e-9 * a.abs()), "turned strengths");
    }
}

#[test]
fn large_sources_arrive_on_all_devices() {
    let name = "large_sources_arrive_on_all_devices";
    let log = format!("{}/{name}.log", env!("CARGO_TARGET_TMPDIR"));
    let _ = std::fs::remove_file(&log);
    let settings = [("FAKE_CUDA", "two"), ("FAKE_CUDA_COPIES", "1"), ("FAKE_CUDA_LOG", &log[..])];
    with_gpu(name, &settings, || large_sources_arrive(vec![0, 1]));
    // Half of the positions, and of the strengths.
    let bytes = |line: &str| line.strip_prefix("between devices ").and_then(|bytes| bytes.parse::<f64>().ok());
    let is_half = |line: &&str| bytes(line).is_some_and(|bytes| (bytes - 12.0 * 50_000.0).abs() <= 256.0);
    let copies = std::fs::read_to_string(log).unwrap_or_default().lines().filter(is_half).count();
    assert!(std::env::var_os("EMULATED_IMAGES").is_some() || copies >= 8, "{copies} copies");
}

#[test]
fn parts_of_targets_are_whole() {
    with_gpu("parts_of_targets_are_whole", &[("FAKE_CUDA", "two")], || parts_are_whole(vec![0, 1]));
}

/// The same where one device occurs twice, and where none can read the memory of another.
#[test]
fn parts_of_targets_are_whole_on_three_devices() {
    let name = "parts_of_targets_are_whole_on_three_devices";
    with_gpu(name, &[("FAKE_CUDA", "far_apart")], || parts_are_whole(vec![0, 1, 0]));
}

#[test]
fn devices_that_are_not_there_are_named() {
    with_gpu("devices_that_are_not_there_are_named", &[("FAKE_CUDA", "two")], || {
        let of = |devices: &[u32], from: &SessionOptions| SessionOptions { devices: devices.to_vec(), ..from.clone() };
        let e = Session::new(&of(&[0, 7], &GPU)).err().unwrap();
        assert!(e.status == WFMM_ERR_NO_DEVICE && e.message.contains("device is 7; this machine has 2 GPU(s)"), "{e}");
        let text = Session::new(&of(&[0, 7], &AUTO)).unwrap().describe();
        assert!(text.starts_with("CPU"), "{text}");
        assert!(text.contains("no CUDA: device is 7; this machine has 2 GPU(s)"), "{text}");
        let one = Session::new(&SessionOptions { device: Some(9), ..AUTO }).unwrap().describe();
        assert!(one.contains("no CUDA: device is 9; this machine has 2 GPU(s)"), "{one}");
        for e in on_all(2, |_, end| Session::distributed(&of(&[0, 1], &GPU), end).err().unwrap()) {
            assert!(e.status == WFMM_ERR_UNSUPPORTED && e.message.contains("n_devices = 2"), "{e}");
        }
    });
}
