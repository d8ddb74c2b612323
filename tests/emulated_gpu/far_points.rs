//! Single precision on the GPU beside points that are far away and cores that are far too large: a field as good as without
//! them, or double precision in its place, never one that is wrong and says nothing. (The CPU's: tests/far_points.rs.)

use super::*;
use support::api::list;

const N: usize = 400;
const M: usize = 300;
const TOLERANCE: f64 = 1e-3;

/// In widths of the cloud.
const FAR: [f64; 3] = [1e2, 1e6, 1e10];

fn cloud(kind: Kind) -> Case {
    case("cube", kind, N, M, 1.0).rounded()
}

fn with_far_target(mut c: Case, far: f64) -> Case {
    c.targets.push([far, -0.5 * far, 0.25 * far]);
    c.rounded()
}

/// One source of little strength, far away.
fn with_far_source(mut c: Case, far: f64) -> Case {
    if !c.ends.is_empty() {
        let k = c.points.len() as i32;
        c.points.extend([[far, 0.5, 0.5], [far, 0.75, 0.5]]);
        c.ends.extend([k, k + 1]);
        c.circulation.push(1e-3);
        c.segment_core.push(0.01);
    }
    if !c.position.is_empty() {
        c.position.push([-far, 0.5, far]);
        c.strength.push([1e-3; 3]);
        c.particle_core.push(0.01);
    }
    if !c.charge.is_empty() {
        c.charge_position.push([0.5, -far, 0.5]);
        c.charge.push(1e-3);
    }
    c.rounded()
}

/// A plan in single precision, through arrays of `T`.
fn single<T: Scalar>(gpu: &Session, c: &Case, method: i32, regs: (i32, i32), flags: u64) -> Plan<T> {
    let o = options(method, TOLERANCE, regs.0, regs.1, 0);
    let mut plan = Plan::new(gpu, &wfmm_plan_options { precision: WFMM_PRECISION_F32, flags, ..o });
    fill(&mut plan, c);
    plan
}

/// Fields of a plan whose outputs hold `before` when it begins.
fn fields<T: Scalar>(plan: &mut Plan<T>, c: &Case, before: f64) -> Field {
    let (m, charges) = (c.targets.len(), !c.charge.is_empty());
    let of = |n: usize| vec![T::of(before); n * m];
    let (mut main, mut gradient) = if charges { (of(1), of(3)) } else { (of(3), of(9)) };
    if charges {
        plan.potential(&mut main, Some(&mut gradient));
    } else {
        plan.velocity(&mut main, Some(&mut gradient));
    }
    let wide = |v: Vec<T>| v.into_iter().map(T::f64).collect();
    Field { main: wide(main), gradient: wide(gradient) }
}

/// The field at the targets of the cloud.
fn near(field: Field) -> Field {
    let of = |mut v: Vec<f64>, all: usize| {
        v.truncate(v.len() / all * M);
        v
    };
    let all = if field.main.len().is_multiple_of(M + 1) { M + 1 } else { M };
    Field { main: of(field.main, all), gradient: of(field.gradient, all) }
}

fn holds<T: Scalar>(c: &Case, method: i32, regs: (i32, i32), want: &Field, what: &str) -> i32 {
    let mut plan = single::<T>(&Session::gpu(), c, method, regs, 0);
    let got = near(fields(&mut plan, c, f64::NAN));
    let what = format!("{what}, {}, {}", T::NAME, plan.recipe());
    close(&got, want, TOLERANCE, &what);
    let precision = plan.report().precision;
    assert_eq!(precision == WFMM_PRECISION_F64, plan.recipe().contains("In double precision"), "{what}");
    precision
}

/// Double precision takes over where a point is very far away, and not where nothing is.
fn far_points(kind: Kind, method: i32) {
    let cpu = Session::cpu(1);
    let regs = (WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
    let c = cloud(kind);
    let want = reference(&cpu, &c, regs.0, regs.1);
    assert_eq!(holds::<f32>(&c, method, regs, &want, "nothing far"), WFMM_PRECISION_F32);
    for (_, far) in FAR.into_iter().enumerate().filter(|(k, _)| takes(*k, 2)) {
        let right = |side: &str, c: Case, holds: fn(&Case, i32, (i32, i32), &Field, &str) -> i32, needed: bool| {
            let want = near(reference(&cpu, &c, regs.0, regs.1));
            let what = format!("{kind:?}, {side} at {far:e}");
            let precision = holds(&c, method, regs, &want, &what);
            // The FMM computes close pairs from the caller's numbers: single precision may do.
            let either = method == WFMM_METHOD_FMM;
            assert!((precision == WFMM_PRECISION_F64) == needed || either && needed, "{what}");
        };
        // The direct sum takes its digits around the sources: a target costs them none, but segments' cross products leave the range.
        let needed = far >= 1e6;
        let kept = method == WFMM_METHOD_DIRECT && kind == Kind::Charges && far < 1e10;
        right("target", with_far_target(c.clone(), far), holds::<f32>, needed && !kept);
        right("source", with_far_source(c.clone(), far), holds::<f64>, needed);
    }
}

/// Cores that reach less than one of the first digits of positions, which a point far away makes coarse: half of the pairs of a core and a
/// target inside of it are rounded apart. These targets are alone in their leaves.
#[test]
fn small_cores_count_beside_a_point_far_away() {
    with_gpu("far_points::small_cores_count_beside_a_point_far_away", &[], || {
        let cpu = Session::cpu(1);
        let regs = (WFMM_REG_RANKINE, WFMM_REG_GAUSS_ERF);
        for kind in [Kind::Particles, Kind::Segments] {
            let mut c = cloud(kind);
            for k in 0..42 {
                // In the seven octants beside the cloud, and twice as far away each time: cells that have to be divided.
                let (octant, away, digit) = (k % 7 + 1, 1.637 * 2f64.powi(k / 7), 2f64.powi(-9 - k % 4));
                let x = [0, 1, 2].map(|i| if octant >> i & 1 == 1 { away } else { 0.237 });
                c.targets.push([x[0] + 0.5 * digit, x[1], x[2]]);
                if kind == Kind::Particles {
                    c.position.push(x);
                    c.strength.push([0.01, 0.02, 0.01]);
                    c.particle_core.push(0.8 * digit / 3.7);
                } else {
                    let n = c.points.len() as i32;
                    c.points.extend([[x[0], x[1] - 0.01, x[2]], [x[0], x[1] + 0.01, x[2]]]);
                    c.ends.extend([n, n + 1]);
                    c.circulation.push(0.1);
                    c.segment_core.push(0.8 * digit);
                }
            }
            let c = with_far_source(c, 1e4);
            let want = reference(&cpu, &c, regs.0, regs.1);
            let mut plan = single::<f64>(&Session::gpu(), &c, WFMM_METHOD_FMM, regs, 0);
            let got = fields(&mut plan, &c, f64::NAN);
            let what = format!("{kind:?}, {}", plan.recipe());
            close(&got, &want, TOLERANCE, &what);
            assert_eq!(plan.report().precision, WFMM_PRECISION_F32, "{what}");
        }
    });
}

#[test]
fn points_far_away_spoil_no_fmm() {
    with_gpu("far_points::points_far_away_spoil_no_fmm", &[], || {
        values(&[Kind::Both], &[Kind::Both, Kind::Charges]).iter().for_each(|&kind| far_points(kind, WFMM_METHOD_FMM));
    });
}

#[test]
fn points_far_away_spoil_no_direct_sum() {
    with_gpu("far_points::points_far_away_spoil_no_direct_sum", &[], || {
        [Kind::Both, Kind::Charges].into_iter().for_each(|kind| far_points(kind, WFMM_METHOD_DIRECT));
    });
}

/// Cores that leave the range of single precision, and those that do not.
fn large_cores(kind: Kind, method: i32) {
    let cpu = Session::cpu(1);
    let some = regularizations(kind).into_iter().filter(|r| r.0.max(r.1) != WFMM_REG_NONE);
    for (k, (segments, particles)) in some.enumerate() {
        for (_, core) in [1.0, 30.0, 1e8].into_iter().enumerate().filter(|(number, _)| takes(k + number, 3)) {
            let mut c = cloud(kind);
            c.segment_core.iter_mut().chain(&mut c.particle_core).for_each(|r| *r = core);
            let c = c.rounded();
            let regs = (segments, particles);
            let want = reference(&cpu, &c, regs.0, regs.1);
            let what = format!("{} {} cores {core:e}", name_of(segments), name_of(particles));
            let precision = holds::<f64>(&c, method, regs, &want, &what);
            assert!(core > 1.0 || precision == WFMM_PRECISION_F32, "{what}");
            let known = method == WFMM_METHOD_DIRECT && core > 16.0;
            assert!(!known || precision == WFMM_PRECISION_F64, "{what}");
        }
    }
}

#[test]
fn cores_far_above_the_box_spoil_no_fmm() {
    with_gpu("far_points::cores_far_above_the_box_spoil_no_fmm", &[], || {
        [Kind::Segments, Kind::Particles].into_iter().for_each(|kind| large_cores(kind, WFMM_METHOD_FMM));
    });
}

#[test]
fn cores_far_above_the_box_spoil_no_direct_sum() {
    with_gpu("far_points::cores_far_above_the_box_spoil_no_direct_sum", &[], || {
        [Kind::Segments, Kind::Particles].into_iter().for_each(|kind| large_cores(kind, WFMM_METHOD_DIRECT));
    });
}

/// One plan whose sources go far away and come back: single precision is kept or comes back, and what is added is added once.
fn there_and_back(kind: Kind, method: i32) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    let regs = (WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
    let mut plan = single::<f32>(&gpu, &cloud(kind), method, regs, WFMM_FLAG_ACCUMULATE);
    let right = |plan: &mut Plan<f32>, c: &Case, what: &str| {
        let mut got = fields(plan, c, 0.01);
        got.main.iter_mut().chain(&mut got.gradient).for_each(|v| *v -= 0.01);
        let what = format!("{kind:?} {what}, {}", plan.recipe());
        close(&got, &reference(&cpu, c, regs.0, regs.1), TOLERANCE, &what);
        plan.report().precision
    };
    let near = cloud(kind);
    assert_eq!(right(&mut plan, &near, "near"), WFMM_PRECISION_F32);
    // Differences of single precision coordinates are exact in a direct sum, and the FMM takes those of close pairs from the caller's.
    let mut far = with_far_source(near.clone(), 1e7);
    fill(&mut plan, &far);
    right(&mut plan, &far, "far");
    far.circulation.iter_mut().chain(&mut far.charge).for_each(|g| *g = -*g);
    plan.strengths(&list(&far.circulation), &[], &list(&far.charge));
    right(&mut plan, &far, "new strengths");
    let back = (0..20).position(|_| {
        fill(&mut plan, &near);
        right(&mut plan, &near, "near again") == WFMM_PRECISION_F32
    });
    assert_eq!(back, Some(0), "{kind:?}: in single precision again");
}

#[test]
fn an_fmm_returns_to_single_precision() {
    with_gpu("far_points::an_fmm_returns_to_single_precision", &[], || {
        there_and_back(Kind::Both, WFMM_METHOD_FMM);
    });
}

#[test]
fn a_direct_sum_returns_to_single_precision() {
    with_gpu("far_points::a_direct_sum_returns_to_single_precision", &[], || {
        KINDS.into_iter().for_each(|kind| there_and_back(kind, WFMM_METHOD_DIRECT));
    });
}

/// Clouds of every kind stay in single precision in a direct sum, also where targets are on sources.
#[test]
fn ordinary_positions_keep_single_precision() {
    with_gpu("far_points::ordinary_positions_keep_single_precision", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        let regs = (WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
        for name in DISTRIBUTIONS.iter().filter(|name| !["64 clusters", "far source"].contains(name)) {
            for kind in [Kind::Segments, Kind::Particles] {
                let c = case(name, kind, 900, 700, 1e3).rounded();
                let mut plan = single::<f32>(&gpu, &c, WFMM_METHOD_DIRECT, regs, 0);
                let got = fields(&mut plan, &c, f64::NAN);
                let what = format!("{name} {kind:?}");
                // Middles in single precision are beside their segments, where the last digits decide.
                let beside = kind == Kind::Segments && *name == "targets on middles";
                assert!(beside || plan.report().precision == WFMM_PRECISION_F32, "{what}");
                close(&got, &reference(&cpu, &c, regs.0, regs.1), TOLERANCE, &what);
            }
        }
    });
}

/// What is added to fields in device memory is added by kernels: those of a sum that is given up for one particle's core must not, nor
/// those of the segments before it.
#[test]
fn a_sum_that_is_given_up_adds_nothing_on_the_device() {
    use wakefmm::backend::Field as Wanted;
    use wakefmm::plan::arrays::{Array, ArrayMut};
    use wakefmm::plan::sources::{Particles, Segments};
    with_gpu("far_points::a_sum_that_is_given_up_adds_nothing_on_the_device", &[], || {
        let mut c = cloud(Kind::Both);
        c.particle_core[5] = 1e4;
        let want = reference(&Session::cpu(1), &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
        let (points, position, targets) = (flat::<f32>(&c.points), flat::<f32>(&c.position), flat::<f32>(&c.targets));
        let (circulation, strength) = (list::<f32>(&c.circulation), flat::<f32>(&c.strength));
        let [segment_core, particle_core] = [&c.segment_core, &c.particle_core].map(|v| list::<f32>(v));
        let whose = SessionOptions { backend: BackendKind::Cuda, device: None, devices: vec![], threads: 1 };
        let session = wakefmm::session::Session::new(&whose).unwrap();
        let o = options(WFMM_METHOD_DIRECT, TOLERANCE, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0);
        let o = wfmm_plan_options { flags: WFMM_FLAG_ACCUMULATE, ..o };
        let mut plan = wakefmm::plan::Plan::new(session, PlanOptions::checked(&o).unwrap());
        let segments = Segments {
            n_points: c.points.len(),
            points: Array::Host(&points[..]),
            n: c.circulation.len(),
            ld: 2,
            connectivity: Array::Host(&c.ends[..]),
            circulation: Array::Host(&circulation[..]),
            core: Some(Array::Host(&segment_core[..])),
        };
        let particles = Particles {
            n: c.position.len(),
            position: Array::Host(&position[..]),
            strength: Array::Host(&strength[..]),
            core: Some(Array::Host(&particle_core[..])),
        };
        plan.set_segments(Some(segments)).unwrap();
        plan.set_particles(Some(particles)).unwrap();
        plan.set_targets(Some((M, Array::Host(&targets[..])))).unwrap();
        let mut u = vec![0.5f32; 3 * M];
        // The emulated device's memory is the host's.
        let to: ArrayMut<'_, f32> = ArrayMut::Device { address: u.as_mut_ptr() as u64, len: u.len() };
        plan.evaluate(Wanted::Velocity { gradient: false }, to, None).unwrap();
        assert_eq!(plan.report().precision, WFMM_PRECISION_F64);
        let got: Vec<f64> = u.iter().map(|v| f64::from(*v) - 0.5).collect();
        let error = relative_l2(&got, &want.main);
        assert!(error <= TOLERANCE, "{error:.1e}");
    });
}
