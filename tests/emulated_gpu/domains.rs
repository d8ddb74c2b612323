//! Tubes, slabs and boxes of unequal sides on the emulated GPU against the CPU's, at all targets.

use crate::evaluate;
use crate::harness::with_gpu;
use crate::periodic::{self, elements};
use crate::support::accuracy::{fill, relative_l2};
use crate::support::api::{Plan, Scalar, Session, flat, last_error};
use crate::support::cases::{Case, Kind, Vec3};
use crate::support::random::Random;
use crate::support::tier::{full, takes};
use wakefmm::error::{WFMM_ERR_UNSUPPORTED, WFMM_ERR_VALUE};
use wakefmm::options::*;

const OPEN: f64 = 0.0;
const DOMAINS: [Vec3; 4] = [[OPEN, 1.3, OPEN], [1.1, OPEN, 0.8], [1.0, 1.3, 0.8], [0.9, 0.9, OPEN]];
/// Size of clouds along open axes, far from zero.
const SIZE: f64 = 0.9;
const FROM: f64 = 7.0;

fn plan_options(method: i32, tolerance: f64, period: Vec3) -> wfmm_plan_options {
    wfmm_plan_options { method, tolerance, period, ..Default::default() }
}

/// Elements anywhere in the domain, some of them and of the targets periods away, with a net strength; charges that balance each other
/// where they must.
fn case(kind: Kind, period: Vec3, n: usize, m: usize, core: f64, length: f64) -> Case {
    let in_domain = |r: &mut Random, out: f64| {
        std::array::from_fn(|i| match period[i] {
            OPEN => FROM + SIZE * r.unit(),
            p => p * r.between(-out, 1.0 + out),
        })
    };
    let mut c = elements(kind, [n, m], [core, length], &mut Random::new(n as u64 + 3), in_domain);
    if period.contains(&OPEN) && !c.charge.is_empty() {
        let mean = c.charge.iter().sum::<f64>() / n as f64;
        c.charge.iter_mut().for_each(|q| *q -= mean);
    }
    c
}

/// As in a box.
fn held<T: Scalar>(c: &Case, o: &wfmm_plan_options, exact: f64, what: &str) -> i32 {
    periodic::held::<T>(c, o, exact, &format!("{what} {:?}", o.period))
}

#[test]
fn direct_sums_in_every_domain() {
    with_gpu("domains::direct_sums_in_every_domain", &[], || {
        let kinds = [Kind::Particles, Kind::Segments, Kind::Charges, Kind::Both];
        for (k, kind) in kinds.into_iter().enumerate() {
            let core = if kind == Kind::Segments { 0.0 } else { 0.01 };
            for (_, period) in DOMAINS.into_iter().enumerate().filter(|(number, _)| takes(k + number, 2)) {
                let c = case(kind, period, 150, 90, core, 0.05);
                for tolerance in [1e-3, 1e-6, 1e-9] {
                    let o = plan_options(WFMM_METHOD_DIRECT, tolerance, period);
                    assert_eq!(held::<f64>(&c, &o, 1e-10, &format!("{kind:?}")), WFMM_METHOD_DIRECT);
                }
                let o = plan_options(WFMM_METHOD_DIRECT, 1e-4, period);
                held::<f32>(&c.rounded(), &o, 1e-10, &format!("{kind:?} single"));
            }
        }
    });
}

/// Near sources of a leaf in parts (few targets, no cores), and in one.
#[test]
fn trees_in_every_domain() {
    with_gpu("domains::trees_in_every_domain", &[], || {
        let kinds = [
            (Kind::Particles, 0.0, 0.0),
            (Kind::Charges, 0.0, 0.0),
            (Kind::Segments, 0.02, 0.05),
            (Kind::Both, 0.03, 0.04),
            (Kind::Particles, 0.1, 0.0),
        ];
        for (k, (kind, core, length)) in kinds.into_iter().enumerate() {
            for (_, period) in DOMAINS.into_iter().enumerate().filter(|(number, _)| takes(k + number, 5)) {
                let [n, m] = if full() { [900, 600] } else { [500, 350] };
                let c = case(kind, period, n, m, core, length).rounded();
                let bare = if core == 0.0 { WFMM_REG_NONE } else { WFMM_REG_GAUSS_ERF };
                let o =
                    wfmm_plan_options { particle_regularization: bare, ..plan_options(WFMM_METHOD_FMM, 1e-5, period) };
                let what = format!("{kind:?} {core}");
                if takes(k, 2) {
                    assert_eq!(held::<f64>(&c, &o, 1e-2 * o.tolerance, &what), WFMM_METHOD_FMM);
                }
                let o = wfmm_plan_options { tolerance: 1e-3, ..o };
                if takes(k + 1, 2) {
                    assert_eq!(held::<f32>(&c, &o, 1e-2 * o.tolerance, &format!("{what} single")), WFMM_METHOD_FMM);
                }
            }
        }
    });
}

/// Wide cores and long segments; a cloud that is small beside the period, and one that is long beside it; targets elsewhere.
#[test]
fn any_extent_in_every_domain() {
    with_gpu("domains::any_extent_in_every_domain", &[], || {
        for (k, period) in DOMAINS.into_iter().enumerate() {
            let o = wfmm_plan_options {
                segment_regularization: WFMM_REG_LAMB_OSEEN,
                ..plan_options(WFMM_METHOD_AUTO, 1e-4, period)
            };
            let wide = (Kind::Particles, 0.5, 0.0);
            for (kind, core, length) in [wide, (Kind::Segments, 0.05, 1.5)] {
                held::<f64>(&case(kind, period, 60, 50, core, length), &o, 1e-7, &format!("{kind:?} {core} {length}"));
            }
            if !takes(k, 2) {
                continue;
            }
            let shaped = |sources: Vec3, targets: Vec3, offset: f64| {
                let mut c = case(Kind::Particles, period, 60, 50, 0.01, 0.0);
                c.position.iter_mut().for_each(|x| *x = std::array::from_fn(|i| sources[i] * x[i]));
                c.targets.iter_mut().for_each(|x| *x = std::array::from_fn(|i| targets[i] * x[i] + offset));
                c
            };
            held::<f64>(&shaped([0.05; 3], [0.05; 3], 0.0), &o, 1e-7, "small");
            held::<f64>(&shaped([0.05; 3], [0.1; 3], 0.6), &o, 1e-7, "targets elsewhere");
            let open = period.map(|p| if p == OPEN { 4.0 } else { 1.0 });
            held::<f64>(&shaped(open, open, 0.0), &o, 1e-7, "long");
        }
    });
}

/// Targets in the middles of segments, as far as coordinates tell, are on their lines however far from zero they are: by either method, and
/// for gradients with a core too.
#[test]
fn middles_of_segments_far_from_zero() {
    with_gpu("domains::middles_of_segments_far_from_zero", &[], || {
        let domains = [[1.1; 3], [OPEN, 1.3, OPEN], [1.0, 1.3, OPEN], [1.0, 1.3, 0.8]];
        for (k, period) in domains.into_iter().enumerate() {
            for (core, from) in [(0.0, 0.0), (0.0, 311.7), (0.02, 0.0), (0.02, 311.7)] {
                // Far from zero: cubes with and without cores, others one of both.
                if !full() && (from == 0.0 || k > 0 && (core > 0.0) == k.is_multiple_of(2)) {
                    continue;
                }
                let [n, m] = if full() { [400, 100] } else { [120, 60] };
                let mut c = case(Kind::Segments, period, n, m, core, 0.05);
                c.points.iter_mut().for_each(|x| *x = x.map(|v| v + from));
                c.targets.iter_mut().for_each(|x| *x = x.map(|v| v + from));
                let middle = |p: &[Vec3]| -> Vec3 { std::array::from_fn(|i| 0.5 * p[0][i] + 0.5 * p[1][i]) };
                c.targets.extend(c.points.chunks(2).map(middle));
                for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
                    let o = plan_options(method, 1e-4, period);
                    assert_eq!(held::<f64>(&c, &o, 1e-7, &format!("core {core}, {from} from zero")), method);
                }
                let o = plan_options(WFMM_METHOD_FMM, 1e-3, period);
                held::<f32>(&c.rounded(), &o, 1e-6, &format!("core {core}, {from} from zero, single"));
            }
        }
    });
}

/// Beside a sheet of particles in a slab the flow is uniform but for waves, 1e-8 of it three periods away: what far images miss of their
/// velocities is small beside those waves.
#[test]
fn gradients_beside_a_slab() {
    with_gpu("domains::gradients_beside_a_slab", &[], || {
        let period = [0.9, 1.1, OPEN];
        let mut r = Random::new(9);
        let mut c = Case::default();
        for _ in 0..300 {
            c.position.push([0.9 * r.unit(), 1.1 * r.unit(), 0.1 * r.unit()]);
            c.strength.push([1.0 + 0.3 * r.unit(), 0.5 * r.unit(), 0.3]);
            c.particle_core.push(0.0);
        }
        let o = |tolerance: f64| wfmm_plan_options {
            particle_regularization: WFMM_REG_NONE,
            ..plan_options(WFMM_METHOD_DIRECT, tolerance, period)
        };
        for beside in [3.4, -3.3] {
            c.targets = (0..40).map(|_| [2.0 * r.unit(), 2.0 * r.unit(), beside + 0.2 * r.unit()]).collect();
            let want = evaluate::<f64>(&Session::cpu(2), &c, &o(1e-6)).0;
            let (got, outcome) = evaluate::<f64>(&Session::gpu(), &c, &o(1e-4));
            periodic::close(&got, &want, 1e-4, &format!("{beside}: {}", outcome.recipe));
        }
    });
}

/// Targets on the lines of bare segments, nodes or not, get nothing from them, and a line of one period is infinite.
#[test]
fn targets_on_bare_segments() {
    with_gpu("domains::targets_on_bare_segments", &[], || {
        for period in [[OPEN, 1.3, OPEN], [1.0, 1.3, OPEN]] {
            let mut c = case(Kind::Segments, period, 40, 0, 0.0, 0.3);
            let at = c.points.len() as i32;
            c.points.extend([[7.3, 0.2, 7.4], [7.3, 1.5, 7.4]]);
            c.ends.extend([at, at + 1]);
            c.circulation.push(1.0);
            c.segment_core.push(0.0);
            c.targets = c.points.clone();
            c.targets
                .extend(c.points.chunks(2).map(|p| -> Vec3 { std::array::from_fn(|i| 0.5 * p[0][i] + 0.5 * p[1][i]) }));
            // Gradients at nodes are those of neighbours that lack most of their digits.
            let velocity = |session: &Session, o: &wfmm_plan_options| {
                let (mut plan, mut u) = (Plan::<f64>::new(session, o), vec![0.0; 3 * c.targets.len()]);
                fill(&mut plan, &c);
                plan.velocity(&mut u, None);
                (u, plan.report().method)
            };
            for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
                let o =
                    wfmm_plan_options { segment_regularization: WFMM_REG_NONE, ..plan_options(method, 1e-6, period) };
                let (got, by) = velocity(&Session::gpu(), &o);
                let want = velocity(&Session::cpu(2), &wfmm_plan_options { tolerance: 1e-9, ..o }).0;
                assert_eq!(by, method);
                assert!(relative_l2(&got, &want) <= 1e-6, "{period:?} {method}: {:.1e}", relative_l2(&got, &want));
            }
        }
    });
}

/// New strengths, and targets that ask for more images; potentials and velocities of one plan; the check.
#[test]
fn plans_in_every_domain_go_on() {
    with_gpu("domains::plans_in_every_domain_go_on", &[], || {
        let period = [OPEN, 1.3, OPEN];
        let mut c = case(Kind::Particles, period, 600, 400, 0.02, 0.0);
        let o = plan_options(WFMM_METHOD_FMM, 1e-3, period);
        let mut plan = Plan::<f64>::new(&Session::gpu(), &o);
        fill(&mut plan, &c);
        let right = |plan: &mut Plan<f64>, c: &Case, what: &str| {
            let mut u = vec![0.0; 3 * c.targets.len()];
            plan.velocity(&mut u, None);
            let want = evaluate::<f64>(&Session::cpu(2), c, &wfmm_plan_options { tolerance: 1e-6, ..o }).0.main;
            let error = relative_l2(&u, &want);
            assert!(error <= 1e-3 && plan.report().method == WFMM_METHOD_FMM, "{what}: {error:.1e} {}", plan.recipe());
        };
        right(&mut plan, &c, "first");
        c.strength.iter_mut().enumerate().for_each(|(k, a)| a[k % 3] *= -2.0);
        plan.strengths(&[], &flat(&c.strength), &[]);
        right(&mut plan, &c, "strengths");
        for (by, far) in [(5.1, 0.0), (0.0, 3.0), (0.0, -3.0)] {
            c.targets.iter_mut().for_each(|x| *x = [x[0] + far, x[1] + by, x[2]]);
            plan.targets(&flat(&c.targets));
            right(&mut plan, &c, &format!("targets by {by} and {far}"));
        }
        assert!(plan.check(60, 5) <= 1e-3);
        assert!(plan.recipe().contains("near images"), "{}", plan.recipe());
        for n in [1, 2, 7] {
            for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM] {
                let few = case(Kind::Both, period, n, 3, 0.01, 0.02);
                held::<f64>(&few, &plan_options(method, 1e-6, period), 1e-8, &format!("{n} elements"));
            }
        }
    });
}

/// Images of images: those in a plane have periods along the other axes.
#[test]
fn a_plane_beside_periods() {
    with_gpu("domains::a_plane_beside_periods", &[], || {
        let period = [1.1, 0.8, OPEN];
        let c = case(Kind::Particles, period, 100, 60, 0.02, 0.0);
        for plane_position in [FROM - 0.1, FROM - 4.0] {
            let o = wfmm_plan_options { plane_axis: 3, plane_position, ..plan_options(WFMM_METHOD_AUTO, 1e-5, period) };
            held::<f64>(&c, &o, 1e-8, "plane");
        }
    });
}

/// Charges without a potential; more images than a GPU takes, which the CPU sums where the session may choose.
#[test]
fn what_is_refused_in_a_tube() {
    with_gpu("domains::what_is_refused_in_a_tube", &[], || {
        let period = [OPEN, 1.3, OPEN];
        let mut c = case(Kind::Charges, period, 60, 50, 0.0, 0.0);
        c.charge[0] += 1.0;
        let o = plan_options(WFMM_METHOD_DIRECT, 1e-4, period);
        let mut plan = Plan::<f64>::new(&Session::gpu(), &o);
        fill(&mut plan, &c);
        assert_eq!(plan.try_potential(&mut vec![0.0; c.targets.len()]), WFMM_ERR_VALUE);
        assert!(last_error().contains("charge: a sum of"), "{}", last_error());
        // A slab whose cloud is a hundred periods high.
        let period = [0.8, 1.3, OPEN];
        let mut c = case(Kind::Particles, period, 60, 50, 0.01, 0.0);
        c.position[0][2] += 120.0;
        let o = plan_options(WFMM_METHOD_DIRECT, 1e-3, period);
        let mut plan = Plan::<f64>::new(&Session::gpu(), &o);
        fill(&mut plan, &c);
        assert_eq!(plan.try_velocity(&mut vec![0.0; 3 * c.targets.len()]), WFMM_ERR_UNSUPPORTED);
        let message = last_error();
        assert!(message.contains("near images") && message.contains("WFMM_BACKEND_CPU"), "{message}");
    });
}
