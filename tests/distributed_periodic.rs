//! Periodic domains over many ranks: each rank's field against that of one process at a much smaller tolerance, at all targets, and
//! against sums over all images by other means.
//!
//! Enters: tubes, slabs and boxes with elements in them and beyond their sides, split in every way. No test waits longer than its time
//! limit.

mod ranks;

use ranks::domains::*;
use ranks::support::cases::{Case, Kind, Vec3};
use ranks::support::periodic::{Images, cored, field_at};
use ranks::support::tier::{full, takes, values};
use ranks::*;
use wakefmm::backend::Field;
use wakefmm::distributed::Communicator;
use wakefmm::error::*;
use wakefmm::options::*;
use wakefmm::plan::Plan;
use wakefmm::session::Session;

const METHODS: [(&str, i32); 2] = [("direct", WFMM_METHOD_DIRECT), ("FMM", WFMM_METHOD_FMM)];

/// On CPUs, by the method that was asked for.
fn holds(
    c: &Case,
    what: &str,
    ranks: usize,
    split: (&str, Split),
    o: &wfmm_plan_options,
    field: Field,
    want: &(Vec<f64>, Vec<f64>),
) {
    let plan = keeps(&session_options(), c, what, ranks, split, o, field, want);
    let method = if o.method == WFMM_METHOD_DIRECT { WFMM_METHOD_DIRECT } else { WFMM_METHOD_FMM };
    assert_eq!(plan.report().method, method, "{what}: {}", plan.recipe());
}

fn in_all_domains(method: (&str, i32), n: usize, m: usize, tolerances: &[f64]) {
    let mut turn = 0;
    for (name, period) in DOMAINS {
        for &tolerance in tolerances {
            let wake = wake(n, m, period);
            for (kind, c, field) in [("vortices", wake, VELOCITY), ("charges", charged(n, m, period), POTENTIAL)] {
                // Cores that end soon: those of VATISTAS reach through hundreds of images at 1e-8.
                let o = in_domain(method.1, tolerance, period);
                let o = wfmm_plan_options { segment_regularization: WFMM_REG_LAMB_OSEEN, ..o };
                let want = reference(&c, field, &o);
                // In turn of one to five ranks and of all splits: once, or three times where there is time.
                for _ in values(&[1], &[1, 2, 3]) {
                    let (ranks, what) =
                        ([3, 1, 5, 2, 4][(turn + turn / 5) % 5], format!("{name}, {kind}, {}", method.0));
                    holds(&c, &what, ranks, SPLITS[turn % SPLITS.len()], &o, field, &want);
                    turn += 1;
                }
            }
        }
    }
}

#[test]
fn the_fmm_keeps_its_tolerance_in_every_domain() {
    let [n, m] = if full() { [800, 500] } else { [500, 300] };
    in_all_domains(METHODS[1], n, m, values(&[1e-5], &[1e-3, 1e-6]));
}

#[test]
fn direct_sums_keep_their_tolerance_in_every_domain() {
    in_all_domains(METHODS[0], 200, 120, values(&[1e-8], &[1e-3, 1e-8]));
}

#[test]
fn it_does_not_matter_how_elements_are_split() {
    let period = DOMAINS[2].1;
    let [n, m] = if full() { [1000, 800] } else { [600, 400] };
    let c = wake(n, m, period);
    let o = in_domain(WFMM_METHOD_FMM, 1e-4, period);
    let want = reference(&c, VELOCITY, &o);
    for (k, split) in SPLITS.into_iter().enumerate().filter(|(k, _)| takes(*k, 2)) {
        holds(&c, "box", [2, 3, 5][k % 3], split, &o, VELOCITY, &want);
    }
    let host = wfmm_plan_options { flags: WFMM_FLAG_HOST_PARTITION, ..o };
    for &split in values(&[SPLITS[1]], &[SPLITS[1], SPLITS[2], SPLITS[4]]) {
        holds(&c, "box, the host's partition", 3, split, &host, VELOCITY, &want);
    }
}

/// Ranks at both ends of a long tube, whose cells are far from each other and near through the face of the domain.
#[test]
fn cells_that_are_near_through_a_face_are_opened() {
    let period = [OPEN, OPEN, 32.0];
    let mut c = cored(Kind::Particles, 12_000, 4000, period, true, 0.01);
    c.targets.iter_mut().for_each(|x| *x = [x[0].clamp(0.0, 1.0), x[1].clamp(0.0, 1.0), x[2]]);
    let o = in_domain(WFMM_METHOD_FMM, 1e-4, period);
    let want = reference(&c, VELOCITY, &o);
    for ranks in [3, 5] {
        holds(&c, "long tube", ranks, SPLITS[2], &o, VELOCITY, &want);
    }
}

/// Against sums over all images by other means, at some targets.
#[test]
fn fields_are_ewalds_sum_and_extrapolated_blocks() {
    for (k, (name, period)) in DOMAINS.into_iter().take(4).enumerate() {
        let mut c = cored(Kind::Particles, 500, 600, period, period.iter().all(|&p| p > 0.0), 0.01);
        // Where the reference has its explicit images.
        let boxed = |x: &mut Vec3| {
            (0..3).for_each(|i| {
                if period[i] > 0.0 {
                    x[i] -= period[i] * (x[i] / period[i]).floor()
                }
            })
        };
        c.position.iter_mut().chain(&mut c.targets).for_each(boxed);
        for (method, tolerance) in [(METHODS[0], 1e-8), (METHODS[1], 1e-5)] {
            let o = in_domain(method.1, tolerance, period);
            let (u, g, ..) = together(&c, 3, SPLITS[k].1, &o, VELOCITY);
            let images = Images::new(period);
            let (mut got, mut want) = ([vec![], vec![]], [vec![], vec![]]);
            for (t, &x) in c.targets.iter().enumerate().step_by(if full() { 6 } else { 60 }) {
                let (field, slopes) = field_at(&c, &images, (o.segment_regularization, o.particle_regularization), x);
                got[0].extend_from_slice(&u[3 * t..3 * t + 3]);
                got[1].extend_from_slice(&g[9 * t..9 * t + 9]);
                want[0].extend(field);
                want[1].extend(slopes);
            }
            let errors = (relative_l2(&got[0], &want[0]), relative_l2(&got[1], &want[1]));
            println!("{name}, {} at {tolerance:.0e}: {:.1e} and {:.1e}", method.0, errors.0, errors.1);
            assert!(errors.0 <= tolerance && errors.1 <= 30.0 * tolerance, "{name}, {}: {errors:?}", method.0);
        }
    }
}

#[test]
fn strengths_targets_and_sources_change_from_call_to_call() {
    let (period, ranks, field) = ([1.0, OPEN, 1.0], 3, Field::Velocity { gradient: false });
    let mut c = cored(Kind::Particles, 900, 700, period, false, 0.01);
    for &(_, method) in values(&METHODS[1..], &METHODS) {
        let o = in_domain(method, 1e-5, period);
        let mut moved = vec![];
        for k in 0..3 {
            c.position.iter_mut().for_each(|x| x[k] += 0.4);
            c.targets.truncate(700 - 100 * k);
            moved.push((c.clone(), reference(&c, field, &o).0));
        }
        on_all(ranks, |rank, end| {
            let mut plan = plan_of(end, &o);
            for (k, (c, want)) in moved.iter().enumerate() {
                let (mine, numbers) = part(c, SPLITS[k].1, rank, ranks);
                fill(&mut plan, &mine).unwrap();
                plan.prepare().unwrap();
                for factor in [1.0, -2.0] {
                    if factor != 1.0 {
                        set_multiples(&mut plan, &mine, factor);
                    }
                    // Twice: the second time everything is there. In between a check, which sorts the sources.
                    for _ in 0..2 {
                        let u = field_of(&mut plan, field, numbers.len()).unwrap().0;
                        let want: Vec<f64> =
                            numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].iter().map(|v| factor * v)).collect();
                        assert!(numbers.is_empty() || relative_l2(&u, &want) < 3e-5, "method {method}, {k}");
                        assert!(plan.check(50, 1).unwrap() <= 1e-5);
                    }
                }
            }
        });
    }
}

/// What has no sum, or none that could be made, on all ranks alike, whichever of them has what is refused; and afterwards the plan
/// goes on.
#[test]
fn what_cannot_be_summed_is_refused_on_all_ranks() {
    let refused = |c: &Case, o: &wfmm_plan_options, field: Field, status: i32, word: &str| {
        for split in [SPLITS[0], SPLITS[1], SPLITS[4]] {
            on_all(3, |rank, end| {
                let mut plan = plan_of(end, o);
                let (mine, numbers) = part(c, split.1, rank, 3);
                fill(&mut plan, &mine).unwrap();
                for _ in 0..2 {
                    let e = field_of(&mut plan, field, numbers.len()).unwrap_err();
                    assert!(e.status == status && e.message.contains(word), "{}: {} {}", split.0, e.status, e.message);
                    if matches!(field, Field::Velocity { .. }) {
                        assert_eq!(plan.check(10, 1).unwrap_err().status, status);
                    }
                    assert_eq!(plan.prepare().unwrap_err().status, status);
                }
                // Without sources there is nothing to refuse.
                fill(&mut plan, &Case { targets: mine.targets, ..Case::default() }).unwrap();
                let (u, _) = field_of(&mut plan, field, numbers.len()).unwrap();
                assert!(u.iter().all(|&v| v == 0.0));
            });
        }
    };
    let velocity = Field::Velocity { gradient: false };
    let mut c = cored(Kind::Particles, 60, 40, [1.0; 3], true, 0.01);
    let many = in_domain(0, 1e-4, [1e-3, OPEN, 1e-3]);
    refused(&c, &many, velocity, WFMM_ERR_UNSUPPORTED, "near images");
    // One core of one rank.
    c.particle_core[59] = 0.3;
    let rosenhead = wfmm_plan_options { particle_regularization: WFMM_REG_ROSENHEAD, ..in_domain(0, 1e-4, [1.0; 3]) };
    refused(&c, &rosenhead, velocity, WFMM_ERR_UNSUPPORTED, "core_radius = 3");
    c.particle_core[59] = 0.7;
    let gaussians = wfmm_plan_options { particle_regularization: WFMM_REG_GAUSS_ERF, ..rosenhead };
    refused(&c, &gaussians, velocity, WFMM_ERR_UNSUPPORTED, "core_radius = 7");
    let mut q = charged(60, 40, [1.0, OPEN, OPEN]);
    // Each rank's own are out of balance anyway; now all of them are.
    q.charge[0] += 1.0;
    refused(&q, &in_domain(0, 1e-4, [1.0, OPEN, OPEN]), Field::Potential { gradient: false }, WFMM_ERR_VALUE, "charge");
}

#[test]
fn no_sources_or_no_targets_anywhere_are_no_error() {
    for (n, m) in [(0, 5), (5, 0), (0, 0), (1, 1)] {
        let mut c = cored(Kind::Particles, 5, 5, [1.0; 3], true, 0.01);
        c.position.truncate(n);
        c.strength.truncate(n);
        c.particle_core.truncate(n);
        c.targets.truncate(m);
        for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM, WFMM_METHOD_DIRECT] {
            let o = in_domain(method, 1e-3, [1.0; 3]);
            let (u, _, _, found) = together(&c, 3, SPLITS[2].1, &o, Field::Velocity { gradient: false });
            assert!(u.len() == 3 * m && (n * m > 0 || u.iter().all(|&v| v == 0.0)) && found <= 1e-3);
        }
    }
}

/// A plane beside a slab: sources and targets that are mirrored are those of all ranks.
#[test]
fn a_slab_above_a_plane_has_both_images() {
    let period = [1.0, 1.0, OPEN];
    let c = cored(Kind::Particles, 600, 400, period, false, 0.01);
    for (method, tolerance) in [(WFMM_METHOD_DIRECT, 1e-8), (WFMM_METHOD_FMM, 1e-5)] {
        let o = wfmm_plan_options { plane_axis: 3, plane_position: -0.1, ..in_domain(method, tolerance, period) };
        let want = reference(&c, VELOCITY, &o);
        for &ranks in values(&[3], &[2, 3]) {
            holds(&c, "slab above a plane", ranks, SPLITS[2], &o, VELOCITY, &want);
        }
    }
}

/// Bits depend on the inputs and the number of ranks; on one rank they differ within the tolerance.
#[test]
fn reproducible_fields_are_the_same_bits_on_as_many_ranks() {
    let (period, field) = ([1.0, 1.4, 0.8], Field::Velocity { gradient: false });
    let c = wake(800, 600, period);
    for (method, apart) in [(WFMM_METHOD_DIRECT, 1e-6), (WFMM_METHOD_FMM, 2e-4)] {
        let o = wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..in_domain(method, 1e-4, period) };
        let one = exact_of(&c, field, &o).0;
        for &ranks in values(&[3], &[2, 3]) {
            let run = || together(&c, ranks, SPLITS[2].1, &o, field).0;
            let u = run();
            assert!(u.iter().zip(&run()).all(|(a, b)| a.to_bits() == b.to_bits()), "{ranks} ranks: other bits");
            let difference = relative_l2(&u, &one);
            println!("method {method}: {ranks} ranks beside one: {difference:.1e}");
            assert!(difference <= apart, "{ranks} ranks: {difference:e}");
        }
    }
}

/// Arrays in single precision and the other precisions that can be asked for: sums are in double precision.
#[test]
fn sums_are_in_double_precision() {
    let period = [1.0; 3];
    let c = cored(Kind::Particles, 2500, 2000, period, true, 0.01);
    let o = in_domain(WFMM_METHOD_FMM, 1e-3, period);
    let want = reference(&c, VELOCITY, &o);
    for precision in [WFMM_PRECISION_ARRAYS, WFMM_PRECISION_F32, WFMM_PRECISION_F64] {
        let (u, _, plan, _) = together(&c, 2, SPLITS[2].1, &wfmm_plan_options { precision, ..o }, VELOCITY);
        assert!(relative_l2(&u, &want.0) <= 1e-3, "{precision}");
        assert_eq!(plan.report().precision, WFMM_PRECISION_F64);
    }
}

fn session(end: Communicator, backend: BackendKind) -> Result<std::sync::Arc<Session>> {
    Session::distributed(&SessionOptions { backend, ..session_options() }, end)
}

/// Without a GPU, the library's choice of a back end is the CPU.
#[test]
fn periods_are_no_reason_to_refuse_a_plan() {
    on_all(2, |_, end| {
        let session = session(end, BackendKind::Auto).unwrap();
        let o = PlanOptions::checked(&in_domain(0, 1e-4, [1.0; 3])).unwrap();
        assert!(Plan::create(session, o).is_ok());
    });
}
