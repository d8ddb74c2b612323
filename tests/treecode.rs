//! The treecode through the C functions: errors at all targets with every core, what the report tells, what is kept between
//! calls, where it is chosen and where it is refused.

#[path = "../bench/support/mod.rs"]
mod support;

use support::accuracy::{fill, measure, name_of, options, reference, regularizations};
use support::api::{Plan, Scalar, Session, flat};
use support::cases::{Kind, case};
use wakefmm::options::*;
use wakefmm::report::*;

fn within<T: Scalar>(session: &Session, name: &str, kind: Kind, tolerance: f64) -> i64 {
    let mut expanded = 0;
    for (segments, particles) in regularizations(kind) {
        let c = case(name, kind, 2500, 1500, 1.0);
        let c = if T::NAME == "f32" { c.rounded() } else { c };
        let want = reference(session, &c, segments, particles);
        let o = options(WFMM_METHOD_TREECODE, tolerance, segments, particles, 0);
        let r = measure::<T>(session, &c, &want, &o);
        let what = format!("{name} {kind:?} {}/{} {} at {tolerance:e}", name_of(segments), name_of(particles), T::NAME);
        assert!(r.velocity <= tolerance, "{what}: {:.2e}, {}", r.velocity, r.recipe);
        assert!(r.gradient <= 30.0 * tolerance, "{what}: gradient {:.2e}, {}", r.gradient, r.recipe);
        expanded += i64::from(r.method == WFMM_METHOD_TREECODE) * r.far_pairs;
    }
    expanded
}

#[test]
fn errors_are_within_the_tolerance_with_every_core() {
    let session = Session::cpu(2);
    for kind in [Kind::Segments, Kind::Particles, Kind::Both, Kind::Charges] {
        for name in ["cube", "helical wake"] {
            for tolerance in [1e-2, 1e-4, 1e-7] {
                let pairs = within::<f64>(&session, name, kind, tolerance);
                // At the tightest all of so few charges are near.
                let any = pairs > 0 || (kind == Kind::Charges && tolerance < 1e-6);
                assert!(any, "{name} {kind:?} {tolerance:e}: nothing was expanded");
            }
            within::<f32>(&session, name, kind, 1e-4);
        }
    }
}

#[test]
fn the_report_tells_of_the_treecode() {
    let session = Session::cpu(2);
    let c = case("cube", Kind::Both, 9000, 6000, 1.0);
    let o = options(WFMM_METHOD_TREECODE, 1e-4, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0);
    let mut plan = Plan::<f64>::new(&session, &o);
    fill(&mut plan, &c);
    let mut u = vec![0.0; 3 * c.targets.len()];
    plan.velocity(&mut u, None);
    let r = plan.report();
    assert_eq!((r.method, r.backend), (WFMM_METHOD_TREECODE, WFMM_BACKEND_CPU), "{}", plan.recipe());
    assert!(plan.recipe().starts_with("Treecode"), "{}", plan.recipe());
    let seconds = |pass: i32| r.seconds[pass as usize];
    for pass in [WFMM_PASS_P2M, WFMM_PASS_M2M, WFMM_PASS_M2P, WFMM_PASS_P2P] {
        assert!(seconds(pass) > 0.0, "pass {pass} took no time");
    }
    for pass in [WFMM_PASS_M2L, WFMM_PASS_L2L, WFMM_PASS_L2P] {
        assert_eq!(seconds(pass), 0.0, "pass {pass} is no part of a treecode");
    }
    assert!(r.far_pairs > 0 && r.order > 2 && r.estimated_error > 0.0 && r.estimated_error <= 1e-4);
    let e = plan.check(300, 5);
    assert!(e > 0.0 && e <= 1e-4, "{e:e}");
}

/// A low order must not be wrong but short: what needs a higher one is summed directly.
#[test]
fn a_fixed_order_holds_the_tolerance() {
    let session = Session::cpu(2);
    let c = case("cube", Kind::Particles, 3000, 3000, 1.0);
    let want = reference(&session, &c, 0, WFMM_REG_GAUSS_ERF);
    for order in [2, 5, 12, 40] {
        let o = wfmm_plan_options { order, ..options(WFMM_METHOD_TREECODE, 1e-4, 0, WFMM_REG_GAUSS_ERF, 0) };
        let r = measure::<f64>(&session, &c, &want, &o);
        assert!(r.velocity <= 1e-4 && r.gradient <= 3e-3, "order {order}: {:.1e}, {}", r.velocity, r.recipe);
    }
}

#[test]
fn multipoles_are_kept_while_only_targets_change() {
    let session = Session::cpu(2);
    let mut c = case("cube", Kind::Particles, 9000, 3000, 1.0);
    let mut plan = Plan::<f64>::new(&session, &options(WFMM_METHOD_TREECODE, 1e-3, 0, 0, 0));
    fill(&mut plan, &c);
    let mut u = vec![0.0; 3 * c.targets.len()];
    plan.velocity(&mut u, None);
    c.targets.iter_mut().for_each(|x| *x = [x[1], x[2], 0.99 * x[0]]);
    plan.targets(&flat(&c.targets));
    plan.velocity(&mut u, None);
    let r = plan.report();
    assert_eq!([WFMM_PASS_P2M, WFMM_PASS_M2M].map(|p| r.seconds[p as usize]), [0.0; 2], "{}", plan.recipe());
    let want = reference(&session, &c, 0, 0);
    assert!(support::accuracy::relative_l2(&u, &want.main) <= 1e-3);
    // Then with gradients, for which there are other rows of the same multipoles.
    let mut g = vec![0.0; 9 * c.targets.len()];
    plan.velocity(&mut u, Some(&mut g));
    assert!(support::accuracy::relative_l2(&g, &want.gradient) <= 3e-2);
    let e = plan.check(300, 3);
    assert!(e > 0.0 && e <= 1e-3, "{e:e}");
}

#[test]
fn a_plane_has_images() {
    let session = Session::cpu(2);
    let mut c = case("cube", Kind::Particles, 4000, 2000, 1.0);
    c.position.iter_mut().chain(&mut c.targets).for_each(|x| x[2] = x[2].abs() + 0.01);
    let plane = |method, tolerance| wfmm_plan_options { plane_axis: 3, ..options(method, tolerance, 0, 0, 0) };
    let want = support::accuracy::evaluate::<f64>(&session, &c, &plane(WFMM_METHOD_DIRECT, 1e-10)).0;
    let r = measure::<f64>(&session, &c, &want, &plane(WFMM_METHOD_TREECODE, 1e-4));
    assert!(r.velocity <= 1e-4 && r.gradient <= 3e-3 && r.method == WFMM_METHOD_TREECODE, "{r:?}");
}
