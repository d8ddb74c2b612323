//! Single precision on the CPU beside points that are far away and cores that are far too large: a field as good as without
//! them, or double precision in its place, never zero or no number.
//!
//! Enters: four hundred sources and targets in a unit box. Each answer is held against the same sum in double precision.

#[path = "../bench/support/mod.rs"]
mod support;

use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use support::accuracy::{Field, fill, name_of, options, reference, regularizations, relative_l2};
use support::api::{Plan, Scalar, Session, flat};
use support::cases::{Case, Kind, case};
use wakefmm::ffi::library::wfmm_log_set;
use wakefmm::options::*;

const N: usize = 400;
const FAR: [f64; 6] = [1e6, 1e8, 1e10, 1e14, 1e18, 1e30];

/// Cores of every size, and without a core where the law has none.
fn cloud(kind: Kind) -> Case {
    case("cube", kind, N, N, 1.0).rounded()
}

fn with_far_target(mut c: Case, far: f64) -> Case {
    c.targets.push([far, -0.5 * far, 0.25 * far]);
    c.rounded()
}

/// A source without strength, far away.
fn with_far_source(mut c: Case, kind: Kind, far: f64) -> Case {
    if kind == Kind::Segments {
        let k = c.points.len() as i32;
        c.points.extend([[far, 0.5, 0.5], [far, 0.75, 0.5]]);
        c.ends.extend([k, k + 1]);
        c.circulation.push(0.0);
        c.segment_core.push(0.01);
    } else {
        c.position.push([far, 0.5, 0.5]);
        c.strength.push([0.0; 3]);
        c.particle_core.push(0.01);
    }
    c.rounded()
}

/// Single precision of a case through arrays of `T`: the field, and the precision that was used.
fn single<T: Scalar>(session: &Session, c: &Case, method: i32, regs: (i32, i32)) -> (Field, i32, f64) {
    let o = wfmm_plan_options { precision: WFMM_PRECISION_F32, ..options(method, 1e-4, regs.0, regs.1, 0) };
    let mut plan = Plan::<T>::new(session, &o);
    fill(&mut plan, c);
    let m = c.targets.len();
    let (mut u, mut g) = (vec![T::of(f64::NAN); 3 * m], vec![T::of(f64::NAN); 9 * m]);
    plan.velocity(&mut u, Some(&mut g));
    let wide = |v: Vec<T>| v.into_iter().map(T::f64).collect();
    let error = plan.check(100, 3);
    (Field { main: wide(u), gradient: wide(g) }, plan.report().precision, error)
}

/// The first four hundred targets against `want`; the far one need only be a number.
fn holds(got: &Field, want: &Field, what: &str) {
    assert!(got.main.iter().chain(&got.gradient).all(|v| v.is_finite()), "{what}: not a number");
    let (u, g) = (relative_l2(&got.main[..3 * N], &want.main), relative_l2(&got.gradient[..9 * N], &want.gradient));
    assert!(u <= 1e-4 && g <= 3e-3, "{what}: {u:.1e} {g:.1e}");
}

fn far_points<T: Scalar>(kind: Kind) {
    let session = Session::cpu(2);
    for regs in regularizations(kind) {
        let c = cloud(kind);
        let want = reference(&session, &c, regs.0, regs.1);
        let (near, precision, _) = single::<T>(&session, &c, WFMM_METHOD_AUTO, regs);
        holds(&near, &want, "nothing far");
        assert_eq!(precision, WFMM_PRECISION_F32, "{} {}", name_of(regs.0), name_of(regs.1));
        for far in FAR {
            for (side, c) in
                [("target", with_far_target(c.clone(), far)), ("source", with_far_source(c.clone(), kind, far))]
            {
                for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM] {
                    let (got, precision, error) = single::<T>(&session, &c, method, regs);
                    let law = if kind == Kind::Segments { regs.0 } else { regs.1 };
                    let what = format!("{} {} {side} at {far:e}, method {method}", T::NAME, name_of(law));
                    holds(&got, &want, &what);
                    assert!(error <= 1e-4, "{what}: check says {error:e}");
                    assert!(far < 1e10 || precision == WFMM_PRECISION_F64, "{what}: {precision}");
                }
            }
        }
    }
}

#[test]
fn a_point_far_away_spoils_no_field_of_segments() {
    far_points::<f32>(Kind::Segments);
    far_points::<f64>(Kind::Segments);
}

#[test]
fn a_point_far_away_spoils_no_field_of_particles() {
    far_points::<f32>(Kind::Particles);
    far_points::<f64>(Kind::Particles);
}

/// What single precision arrays hold of a field: fields below are zero in them.
fn representable(v: &[f64]) -> bool {
    v.iter().fold(0.0, |a: f64, x| a.max(x.abs())) > 1e-32
}

fn large_cores<T: Scalar>(kind: Kind) {
    let session = Session::cpu(2);
    for regs in regularizations(kind).into_iter().filter(|r| r.0.max(r.1) != WFMM_REG_NONE) {
        for core in [1.0, 30.0, 1e4, 1e8, 1e12, 1e16, 1e20] {
            let mut c = cloud(kind);
            c.segment_core.iter_mut().chain(&mut c.particle_core).for_each(|r| *r = core);
            let c = c.rounded();
            let want = reference(&session, &c, regs.0, regs.1);
            for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM] {
                let (got, precision, _) = single::<T>(&session, &c, method, regs);
                let what = format!("{} {} cores {core:e}, method {method}", T::NAME, name_of(regs.0.max(regs.1)));
                assert_eq!(precision, if core < 1e3 { WFMM_PRECISION_F32 } else { WFMM_PRECISION_F64 }, "{what}");
                if T::NAME == "f64" || (representable(&want.main) && representable(&want.gradient)) {
                    holds(&got, &want, &what);
                } else {
                    assert!(got.main.iter().chain(&got.gradient).all(|v| v.is_finite()), "{what}");
                }
            }
        }
    }
}

#[test]
fn cores_far_above_the_box_give_the_field_of_double_precision() {
    for kind in [Kind::Segments, Kind::Particles] {
        large_cores::<f32>(kind);
        large_cores::<f64>(kind);
    }
}

#[test]
fn charges_beside_a_point_far_away() {
    let session = Session::cpu(2);
    let c = case("cube", Kind::Charges, N, N, 1.0).rounded();
    let want = reference(&session, &c, 0, 0);
    for far in FAR {
        let c = with_far_target(c.clone(), far);
        let o = options(WFMM_METHOD_AUTO, 1e-4, 0, 0, 0);
        let mut plan = Plan::<f32>::new(&session, &o);
        fill(&mut plan, &c);
        let (mut phi, mut g) = (vec![f32::NAN; N + 1], vec![f32::NAN; 3 * (N + 1)]);
        plan.potential(&mut phi, Some(&mut g));
        let wide = |v: &[f32]| v.iter().map(|&v| v as f64).collect::<Vec<_>>();
        let (p, g) = (relative_l2(&wide(&phi[..N]), &want.main), relative_l2(&wide(&g[..3 * N]), &want.gradient));
        assert!(p <= 1e-4 && g <= 3e-3, "{far:e}: {p:.1e} {g:.1e}");
    }
}

#[test]
fn a_plan_changes_its_precision_with_its_positions_and_back() {
    let session = Session::cpu(2);
    let mut c = cloud(Kind::Segments);
    let o = options(WFMM_METHOD_AUTO, 1e-4, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0);
    let mut plan = Plan::<f32>::new(&session, &o);
    fill(&mut plan, &c);
    for round in 0..4 {
        let want = reference(&session, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
        let far = with_far_target(c.clone(), 1e20);
        let (targets, precision) =
            if round % 2 == 1 { (&far.targets, WFMM_PRECISION_F64) } else { (&c.targets, WFMM_PRECISION_F32) };
        plan.targets(&flat(targets));
        let mut u = vec![f32::NAN; 3 * targets.len()];
        plan.velocity(&mut u, None);
        assert_eq!(plan.report().precision, precision, "round {round}");
        assert_eq!(plan.recipe().contains("In double precision"), round % 2 == 1, "{}", plan.recipe());
        let u: Vec<f64> = u[..3 * N].iter().map(|&v| v as f64).collect();
        let e = relative_l2(&u, &want.main);
        assert!(e <= 1e-4, "round {round}: {e:.1e}");
        // New strengths meet the engine that is in use.
        c.circulation.iter_mut().for_each(|g| *g *= -2.0);
        plan.strengths(&c.circulation.iter().map(|&g| g as f32).collect::<Vec<_>>(), &[], &[]);
    }
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn keep(_: i32, line: *const c_char, _: *mut c_void) {
    LINES.lock().unwrap().push(unsafe { CStr::from_ptr(line) }.to_string_lossy().into_owned());
}

#[test]
fn one_warning_names_the_cause() {
    assert_eq!(unsafe { wfmm_log_set(WFMM_LOG_WARN, Some(keep), std::ptr::null_mut()) }, 0);
    let session = Session::cpu(1);
    let mut c = with_far_target(cloud(Kind::Particles), 1e12);
    for _ in 0..3 {
        single::<f32>(&session, &c, WFMM_METHOD_AUTO, (0, WFMM_REG_GAUSS_ERF));
    }
    c.particle_core.fill(1e20);
    single::<f32>(&session, &c, WFMM_METHOD_AUTO, (0, WFMM_REG_GAUSS_ERF));
    let lines = LINES.lock().unwrap();
    for cause in ["far away", "core radii"] {
        assert_eq!(lines.iter().filter(|l| l.contains(cause)).count(), 1, "{cause}: {lines:?}");
    }
}
