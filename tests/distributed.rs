//! Sessions of many ranks: each rank's field against the direct sum of one process over all sources, at all targets.
//!
//! Enters: small problems, split in every way, over a group of threads. No test waits longer than its time limit.

#[path = "../benches/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::cases::{Case, Kind, Vec3, case};
use wakefmm::backend::Field;
use wakefmm::distributed::{Communicator, threads};
use wakefmm::error::*;
use wakefmm::options::*;
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::{Array, ArrayMut};
use wakefmm::plan::sources::{Particles, Segments, Strengths};
use wakefmm::session::Session;

const LIMIT: Duration = Duration::from_secs(240);

/// How elements are dealt out: the rank of number k of n at x.
type Split = fn(k: usize, n: usize, x: Vec3, ranks: usize) -> usize;
const SPLITS: [(&str, Split); 5] = [
    ("even", |k, n, _, p| k * p / n.max(1)),
    ("all on the last", |_, _, _, p| p - 1),
    ("interleaved", |k, _, _, p| k % p),
    ("slabs", |_, _, x, p| ((x[0].clamp(0.0, 0.999) * p as f64) as usize).min(p - 1)),
    ("none on the first", |k, _, _, p| if p == 1 { 0 } else { 1 + k % (p - 1) }),
];

fn session_options() -> SessionOptions {
    SessionOptions { backend: BackendKind::Cpu, device: None, threads: 1 }
}

fn plan_options(method: i32, tolerance: f64) -> wfmm_plan_options {
    wfmm_plan_options { method, tolerance, ..Default::default() }
}

fn flat(x: &[Vec3]) -> Vec<f64> {
    x.as_flattened().to_vec()
}

/// What one rank holds of a case, and the numbers of its targets.
fn part(c: &Case, split: Split, rank: usize, ranks: usize) -> (Case, Vec<usize>) {
    let mine = |n: usize, x: &dyn Fn(usize) -> Vec3| -> Vec<usize> {
        (0..n).filter(|&k| split(k, n, x(k), ranks) == rank).collect()
    };
    let s = mine(c.circulation.len(), &|k| c.points[c.ends[2 * k] as usize]);
    let p = mine(c.position.len(), &|k| c.position[k]);
    let q = mine(c.charge.len(), &|k| c.charge_position[k]);
    let t = mine(c.targets.len(), &|k| c.targets[k]);
    let part = Case {
        points: c.points.clone(),
        ends: s.iter().flat_map(|&k| [c.ends[2 * k], c.ends[2 * k + 1]]).collect(),
        circulation: s.iter().map(|&k| c.circulation[k]).collect(),
        segment_core: s.iter().map(|&k| c.segment_core[k]).collect(),
        position: p.iter().map(|&k| c.position[k]).collect(),
        strength: p.iter().map(|&k| c.strength[k]).collect(),
        particle_core: p.iter().map(|&k| c.particle_core[k]).collect(),
        charge_position: q.iter().map(|&k| c.charge_position[k]).collect(),
        charge: q.iter().map(|&k| c.charge[k]).collect(),
        targets: t.iter().map(|&k| c.targets[k]).collect(),
    };
    (part, t)
}

fn fill(plan: &mut Plan, c: &Case) -> Result<()> {
    let (points, position, strength) = (flat(&c.points), flat(&c.position), flat(&c.strength));
    let n = c.circulation.len();
    plan.set_segments((n > 0).then(|| Segments {
        n_points: c.points.len(),
        points: Array::Host(&points[..]),
        n,
        ld: 2,
        connectivity: Array::Host(&c.ends),
        circulation: Array::Host(&c.circulation),
        core: Some(Array::Host(&c.segment_core)),
    }))?;
    let n = c.position.len();
    plan.set_particles((n > 0).then(|| Particles {
        n,
        position: Array::Host(&position[..]),
        strength: Array::Host(&strength),
        core: Some(Array::Host(&c.particle_core)),
    }))?;
    let n = c.charge.len();
    plan.set_charges((n > 0).then_some((n, Array::Host(&flat(&c.charge_position)[..]), Array::Host(&c.charge))))?;
    let n = c.targets.len();
    plan.set_targets((n > 0).then_some((n, Array::Host(&flat(&c.targets)[..]))))
}

fn field_of(plan: &mut Plan, field: Field, m: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let (width, wide, gradient) = match field {
        Field::Velocity { gradient } => (3, 9, gradient),
        Field::Potential { gradient } => (1, 3, gradient),
    };
    let (mut u, mut g) = (vec![f64::NAN; width * m], vec![f64::NAN; if gradient { wide * m } else { 0 }]);
    let slopes = (gradient && m > 0).then_some(ArrayMut::Host(&mut g[..]));
    plan.evaluate(field, ArrayMut::Host(&mut u[..]), slopes)?;
    Ok((u, g))
}

/// The direct sum in double precision of one process.
fn exact(c: &Case, field: Field) -> (Vec<f64>, Vec<f64>) {
    let session = Session::new(&SessionOptions { threads: 2, ..session_options() }).unwrap();
    let mut plan = Plan::new(session, PlanOptions::checked(&plan_options(WFMM_METHOD_DIRECT, 1e-10)).unwrap());
    fill(&mut plan, c).unwrap();
    field_of(&mut plan, field, c.targets.len()).unwrap()
}

/// Runs `work` on every rank of a group within the time limit.
fn on_all<R: Send>(ranks: usize, work: impl Fn(usize, Communicator) -> R + Sync) -> Vec<R> {
    let (done, start) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|s| {
        let (work, done) = (&work, &done);
        let group = threads::group(ranks).into_iter().enumerate();
        let all: Vec<_> = group
            .map(|(rank, end)| {
                s.spawn(move || {
                    let result = work(rank, Communicator::new(end));
                    done.fetch_add(1, Ordering::SeqCst);
                    result
                })
            })
            .collect();
        while done.load(Ordering::SeqCst) < ranks && !all.iter().all(|t| t.is_finished()) {
            if start.elapsed() > LIMIT {
                eprintln!("{} of {ranks} ranks have returned after {LIMIT:?}", done.load(Ordering::SeqCst));
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        all.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn plan_of(c: Communicator, options: &wfmm_plan_options) -> Plan {
    let session = Session::distributed(&session_options(), c).unwrap();
    Plan::create(session, PlanOptions::checked(options).unwrap()).unwrap()
}

/// All ranks' fields in the order of the whole case, what rank 0 says of them, and the global check.
fn together(
    c: &Case,
    ranks: usize,
    split: Split,
    o: &wfmm_plan_options,
    field: Field,
) -> (Vec<f64>, Vec<f64>, Plan, f64) {
    let parts = on_all(ranks, |rank, end| {
        let mut plan = plan_of(end, o);
        let (mine, numbers) = part(c, split, rank, ranks);
        fill(&mut plan, &mine).unwrap();
        let field = field_of(&mut plan, field, mine.targets.len()).unwrap();
        let found = plan.check(100_000, 3).unwrap();
        (numbers, field, plan, found)
    });
    let m = c.targets.len();
    let width = |v: &dyn Fn(&(Vec<f64>, Vec<f64>)) -> usize| {
        parts.iter().find(|p| !p.0.is_empty()).map_or(0, |p| v(&p.1) / p.0.len())
    };
    let (k, w) = (width(&|f| f.0.len()), width(&|f| f.1.len()));
    let (mut u, mut g) = (vec![f64::NAN; k * m], vec![f64::NAN; w * m]);
    let mut told: Option<(String, f64)> = None;
    let mut first = None;
    for (numbers, (main, gradient), plan, found) in parts {
        for (at, t) in numbers.into_iter().enumerate() {
            u[k * t..k * (t + 1)].copy_from_slice(&main[k * at..k * (at + 1)]);
            g[w * t..w * (t + 1)].copy_from_slice(&gradient[w * at..w * (at + 1)]);
        }
        let recipe = plan.recipe();
        let told = told.get_or_insert((recipe.clone(), found));
        assert_eq!((&told.0, told.1), (&recipe, found), "recipe and check are the same on all ranks");
        first.get_or_insert(plan);
    }
    let found = told.unwrap().1;
    (u, g, first.unwrap(), found)
}

fn relative_l2(got: &[f64], want: &[f64]) -> f64 {
    let wrong: f64 = got.iter().zip(want).map(|(g, w)| (g - w) * (g - w)).sum();
    (wrong / want.iter().map(|w| w * w).sum::<f64>()).sqrt()
}

fn charges(n: usize, m: usize) -> Case {
    case("cube", Kind::Charges, n, m, 1.0)
}

const VELOCITY: Field = Field::Velocity { gradient: true };
const POTENTIAL: Field = Field::Potential { gradient: true };

#[test]
fn direct_sums_are_those_of_one_process_however_elements_are_split() {
    let wake = case("helical wake", Kind::Both, 400, 300, 1.0);
    let charges = charges(300, 200);
    for (c, field) in [(&wake, VELOCITY), (&charges, POTENTIAL)] {
        let (u, g) = exact(c, field);
        for ranks in [1, 2, 3, 4, 8] {
            for (name, split) in SPLITS {
                let got = together(c, ranks, split, &plan_options(WFMM_METHOD_DIRECT, 1e-6), field);
                let errors = (relative_l2(&got.0, &u), relative_l2(&got.1, &g));
                assert!(errors.0 < 1e-13 && errors.1 < 1e-13, "{ranks} ranks, {name}: {errors:?}");
                assert!(got.3 < 1e-13, "{ranks} ranks, {name}: check says {:e}", got.3);
                assert!(got.2.recipe().starts_with("Direct sum"), "{}", got.2.recipe());
            }
        }
    }
}

/// The FMM within its tolerance, in field and gradient, and the error that is told near the true one.
fn holds(
    c: &Case,
    what: &str,
    ranks: usize,
    split: (&str, Split),
    tolerance: f64,
    field: Field,
    exact: &(Vec<f64>, Vec<f64>),
) {
    let start = Instant::now();
    let (u, g, plan, found) = together(c, ranks, split.1, &plan_options(WFMM_METHOD_FMM, tolerance), field);
    let errors = (relative_l2(&u, &exact.0), relative_l2(&g, &exact.1));
    let report = plan.report();
    println!(
        "{what}, {ranks} ranks, {}, {tolerance:.0e}: {:.1e} and {:.1e}, told {:.1e}, check {found:.1e}, method {}, order {}, {} far, {} near, {} retries, {:.1?}",
        split.0,
        errors.0,
        errors.1,
        report.estimated_error,
        report.method,
        report.order,
        report.far_pairs,
        report.near_pairs,
        report.retries,
        start.elapsed()
    );
    assert!(errors.0 <= tolerance && errors.1 <= 30.0 * tolerance, "{what}, {ranks} ranks, {}: {errors:?}", split.0);
    assert!(found <= tolerance, "{what}, {ranks} ranks, {}: check says {found:e}", split.0);
    assert_eq!(report.method, WFMM_METHOD_FMM, "{what}, {ranks} ranks, {}: {}", split.0, plan.recipe());
}

#[test]
fn the_fmm_keeps_its_tolerance_however_elements_are_split() {
    let c = case("helical wake", Kind::Both, 3000, 2500, 1.0);
    let want = exact(&c, VELOCITY);
    for ranks in [1, 2, 3, 4, 8] {
        for split in SPLITS {
            holds(&c, "helical wake", ranks, split, 1e-4, VELOCITY, &want);
        }
    }
}

#[test]
fn the_fmm_keeps_its_tolerance_for_every_distribution() {
    for (k, name) in support::cases::DISTRIBUTIONS.into_iter().enumerate() {
        let kind = [Kind::Particles, Kind::Segments, Kind::Both][k % 3];
        let c = case(name, kind, 2500, 2000, 1.0);
        let want = exact(&c, VELOCITY);
        for (ranks, tolerance) in [(2, 1e-3), (4, 1e-6)] {
            let (u, g, _, found) =
                together(&c, ranks, SPLITS[2].1, &plan_options(WFMM_METHOD_FMM, tolerance), VELOCITY);
            let errors = (relative_l2(&u, &want.0), relative_l2(&g, &want.1));
            println!(
                "{name}, {ranks} ranks, {tolerance:.0e}: {:.1e} and {:.1e}, check {found:.1e}",
                errors.0, errors.1
            );
            assert!(errors.0 <= tolerance && errors.1 <= 30.0 * tolerance, "{name}, {ranks} ranks: {errors:?}");
        }
    }
}

/// Numbers after `before` in a text.
fn number(text: &str, before: &str) -> usize {
    let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("no {before} in {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// What travels is a surface, not a volume: far less than all sources come to any rank, and most cells as multipoles.
#[test]
fn a_rank_gets_a_small_part_of_the_others_sources() {
    let n = 40_000;
    let mut c = case("cube", Kind::Particles, n, n, 1.0);
    // Without cores, whose corrections reach far at this density.
    c.particle_core.iter_mut().for_each(|s| *s = 0.0);
    let want = exact(&c, Field::Velocity { gradient: false });
    for ranks in [2, 8] {
        let (u, _, plan, _) =
            together(&c, ranks, SPLITS[0].1, &plan_options(WFMM_METHOD_FMM, 1e-3), Field::Velocity { gradient: false });
        let error = relative_l2(&u, &want.0);
        let recipe = plan.recipe();
        println!("{ranks} ranks: {error:.1e}; {recipe}");
        assert!(error <= 1e-3, "{ranks} ranks: {error:e}");
        let (guests, cells) = (number(&recipe, "own sources at most "), number(&recipe, "sources of others and "));
        let others = n * (ranks - 1) / ranks;
        assert!(4 * guests < 3 * others && cells > 20, "{ranks} ranks: {guests} sources, {cells} cells");
    }
}

#[test]
fn the_fmm_of_charges_keeps_its_tolerance() {
    let c = charges(4000, 3000);
    let want = exact(&c, POTENTIAL);
    for (ranks, tolerance) in [(1, 1e-4), (3, 1e-4), (4, 1e-8)] {
        holds(&c, "charges", ranks, SPLITS[3], tolerance, POTENTIAL, &want);
    }
}

#[test]
fn strengths_targets_and_sources_change_from_call_to_call() {
    let mut c = case("cube", Kind::Particles, 3000, 2000, 1.0);
    let ranks = 3;
    let group: Vec<_> = (0..3).collect();
    let mut moved = vec![];
    for k in group {
        c.position.iter_mut().for_each(|x| x[k] += 0.01);
        c.targets.truncate(2000 - 300 * k);
        moved.push((c.clone(), exact(&c, Field::Velocity { gradient: false }).0));
    }
    let moved = &moved;
    on_all(ranks, |rank, end| {
        let mut plan = plan_of(end, &plan_options(WFMM_METHOD_FMM, 1e-5));
        for (k, (c, want)) in moved.iter().enumerate() {
            let (mine, numbers) = part(c, SPLITS[k].1, rank, ranks);
            fill(&mut plan, &mine).unwrap();
            for factor in [1.0, -2.0] {
                if factor != 1.0 {
                    let strength: Vec<f64> = flat(&mine.strength).iter().map(|a| factor * a).collect();
                    let n = mine.strength.len();
                    let strength = (n > 0).then_some((n, Array::Host(&strength[..])));
                    plan.set_strengths(Strengths { circulation: None, strength, charge: None }).unwrap();
                }
                // Twice: the second time everything is there.
                for _ in 0..2 {
                    let u = field_of(&mut plan, Field::Velocity { gradient: false }, numbers.len()).unwrap().0;
                    let want: Vec<f64> =
                        numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].iter().map(|v| factor * v)).collect();
                    assert!(numbers.is_empty() || relative_l2(&u, &want) < 3e-5);
                }
            }
        }
    });
}

#[test]
fn no_sources_or_no_targets_anywhere_are_no_error() {
    for (n, m) in [(0, 5), (5, 0), (0, 0)] {
        let mut c = case("cube", Kind::Particles, 5, 5, 1.0);
        c.position.truncate(n);
        c.strength.truncate(n);
        c.particle_core.truncate(n);
        c.targets.truncate(m);
        for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM, WFMM_METHOD_DIRECT] {
            let (u, ..) =
                together(&c, 3, SPLITS[2].1, &plan_options(method, 1e-3), Field::Velocity { gradient: false });
            assert!(u.len() == 3 * m && u.iter().all(|&v| v == 0.0));
        }
    }
}

#[test]
fn an_error_on_one_rank_is_the_same_on_all_and_leaves_the_plans_as_they_were() {
    let c = case("cube", Kind::Particles, 60, 40, 1.0);
    let want = exact(&c, Field::Velocity { gradient: false }).0;
    for bad in 0..4 {
        let all = on_all(4, |rank, end| {
            let mut plan = plan_of(end, &plan_options(WFMM_METHOD_DIRECT, 1e-6));
            let (mine, numbers) = part(&c, SPLITS[2].1, rank, 4);
            fill(&mut plan, &mine).unwrap();
            let mut x = flat(&mine.position);
            if rank == bad {
                x[7] = f64::NAN;
            }
            let n = mine.position.len();
            let strength = flat(&mine.strength);
            let again = Particles { n, position: Array::Host(&x[..]), strength: Array::Host(&strength), core: None };
            let error = plan.set_particles(Some(again)).unwrap_err();
            let u = field_of(&mut plan, Field::Velocity { gradient: false }, numbers.len()).unwrap().0;
            (error, numbers, u)
        });
        for (error, numbers, u) in all {
            assert_eq!(error.status, WFMM_ERR_NOT_FINITE);
            assert_eq!(
                error.message.split(';').next(),
                Some(&*format!("rank {bad}: position[2][1] = NaN (elements counted from 0)"))
            );
            let mine: Vec<f64> = numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].to_vec()).collect();
            assert!(relative_l2(&u, &mine) < 1e-13);
        }
    }
}

#[test]
fn options_requests_and_calls_that_differ_are_found_and_named() {
    let errors = on_all(3, |rank, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        let tolerance = if rank == 2 { 1e-5 } else { 1e-4 };
        Plan::create(session, PlanOptions::checked(&plan_options(0, tolerance)).unwrap()).err().unwrap()
    });
    for e in errors {
        assert_eq!(e.status, WFMM_ERR_VALUE);
        assert!(e.message.starts_with("rank 2: tolerance = 0.00001, but 0.0001 on rank 0"), "{}", e.message);
    }
    // A gradient on one rank alone, then different calls, then a plan that goes on.
    let c = case("cube", Kind::Particles, 60, 40, 1.0);
    on_all(2, |rank, end| {
        let mut plan = plan_of(end, &plan_options(WFMM_METHOD_DIRECT, 1e-4));
        let (mine, _) = part(&c, SPLITS[2].1, rank, 2);
        fill(&mut plan, &mine).unwrap();
        let e = field_of(&mut plan, Field::Velocity { gradient: rank == 1 }, mine.targets.len()).unwrap_err();
        assert!(e.status == WFMM_ERR_VALUE && e.message.contains("gradient"), "{}", e.message);
        let e = if rank == 0 { plan.check(10, 1).unwrap_err() } else { plan.set_particles::<f64>(None).unwrap_err() };
        assert!(e.status == WFMM_ERR_STATE && e.message.contains("rank 1 is in another call"), "{}", e.message);
        assert!(field_of(&mut plan, Field::Velocity { gradient: false }, mine.targets.len()).is_ok());
    });
}

#[test]
fn what_is_not_built_is_refused() {
    on_all(2, |_, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        let o = wfmm_plan_options { plane_axis: 3, ..plan_options(0, 1e-4) };
        let e = Plan::create(session.clone(), PlanOptions::checked(&o).unwrap()).err().unwrap();
        assert!(e.status == WFMM_ERR_UNSUPPORTED && e.message.contains("plane"), "{}", e.message);
        let o = PlanOptions::checked(&plan_options(WFMM_METHOD_TREECODE, 1e-4)).unwrap();
        let mut plan = Plan::create(session.clone(), o).unwrap();
        fill(&mut plan, &case("cube", Kind::Particles, 60, 40, 1.0)).unwrap();
        let e = field_of(&mut plan, Field::Velocity { gradient: false }, 40).unwrap_err();
        assert!(e.status == WFMM_ERR_UNSUPPORTED && e.message.contains("TREECODE"), "{}", e.message);
        let flow = wakefmm::flow::Flow::new(session, plan_options(0, 1e-4), Default::default());
        assert_eq!(flow.err().unwrap().status, WFMM_ERR_UNSUPPORTED);
    });
    let errors = on_all(2, |rank, end| {
        let backend = if rank == 1 { BackendKind::Cuda } else { BackendKind::Auto };
        Session::distributed(&SessionOptions { backend, ..session_options() }, end).err().unwrap()
    });
    assert!(errors.iter().all(|e| e.status == WFMM_ERR_UNSUPPORTED && e.message.starts_with("rank 1: ")), "{errors:?}");
}

#[test]
fn a_rank_that_leaves_is_a_failure_of_communication_for_the_others() {
    let c = case("cube", Kind::Particles, 60, 40, 1.0);
    let left = on_all(3, |rank, end| {
        let mut plan = plan_of(end, &plan_options(WFMM_METHOD_DIRECT, 1e-4));
        let (mine, _) = part(&c, SPLITS[2].1, rank, 3);
        fill(&mut plan, &mine).unwrap();
        if rank == 1 {
            return 0;
        }
        field_of(&mut plan, Field::Velocity { gradient: false }, mine.targets.len()).unwrap_err().status
    });
    assert_eq!(left, [WFMM_ERR_COMMUNICATION, 0, WFMM_ERR_COMMUNICATION]);
}

/// Some rank fails in some of a thousand random sequences of calls: all ranks see the same statuses.
#[test]
fn random_sequences_with_one_rank_misbehaving_never_hang() {
    let c = case("cube", Kind::Particles, 30, 20, 1.0);
    let statuses = on_all(3, |rank, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        let mut seen = vec![];
        let mut state = 1u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..1000 {
            let o = PlanOptions::checked(&plan_options(WFMM_METHOD_DIRECT, 1e-4)).unwrap();
            let mut plan = Plan::create(session.clone(), o).unwrap();
            let (mine, _) = part(&c, SPLITS[2].1, rank, 3);
            for _ in 0..4 {
                let (call, bad) = (draw(5), draw(6) as usize == rank);
                let result = match call {
                    0 => fill(&mut plan, &mine),
                    1 => {
                        let mut x = flat(&mine.targets);
                        if bad {
                            x[0] = f64::INFINITY;
                        }
                        plan.set_targets(Some((mine.targets.len(), Array::Host(&x[..]))))
                    }
                    2 => {
                        let mut core = mine.particle_core.clone();
                        if bad {
                            core[1] = -1.0;
                        }
                        let (x, a) = (flat(&mine.position), flat(&mine.strength));
                        let (position, strength) = (Array::Host(&x[..]), Array::Host(&a[..]));
                        let n = mine.position.len();
                        plan.set_particles(Some(Particles { n, position, strength, core: Some(Array::Host(&core)) }))
                    }
                    3 => plan.check(5, 1 + u64::from(bad)).map(|_| ()),
                    _ => {
                        let m = plan.counts().targets;
                        field_of(&mut plan, Field::Velocity { gradient: bad }, m).map(|_| ())
                    }
                };
                seen.push(result.err().map_or(0, |e| e.status));
            }
        }
        seen
    });
    assert_eq!(statuses[0], statuses[1]);
    assert_eq!(statuses[0], statuses[2]);
    let of = |status: i32| statuses[0].iter().filter(|&&s| s == status).count();
    let counts = [0, WFMM_ERR_NOT_FINITE, WFMM_ERR_VALUE, WFMM_ERR_STATE].map(of);
    assert!(counts.iter().all(|&n| n > 50), "{counts:?}");
}
