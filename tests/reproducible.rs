//! `WFMM_FLAG_REPRODUCIBLE`: the same bits from any number of threads and after any other problem.

#[path = "../bench/support/mod.rs"]
mod support;

use support::accuracy::{fill, options, relative_l2};
use support::api::{Plan, Session};
use support::cases::{Case, Kind, case};
use wakefmm::options::*;

fn reproducible(method: i32) -> wfmm_plan_options {
    wfmm_plan_options {
        flags: WFMM_FLAG_REPRODUCIBLE,
        ..options(method, 1e-4, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0)
    }
}

fn field(plan: &mut Plan<f64>, c: &Case) -> Vec<u64> {
    let m = c.targets.len();
    let (mut u, mut g) = (vec![0.0; 3 * m], vec![0.0; 9 * m]);
    fill(plan, c);
    plan.velocity(&mut u, Some(&mut g));
    u.iter().chain(&g).map(|v| v.to_bits()).collect()
}

#[test]
fn threads_and_earlier_problems_do_not_show() {
    for (name, kind, n) in
        [("cube", Kind::Particles, 9000), ("helical wake", Kind::Both, 9000), ("cube", Kind::Segments, 600)]
    {
        let (c, other) = (case(name, kind, n, n, 1.0), case("64 clusters", kind, n / 2, 2 * n, 3.0));
        for method in [WFMM_METHOD_FMM, WFMM_METHOD_TREECODE, WFMM_METHOD_AUTO] {
            let of = |threads| field(&mut Plan::new(&Session::cpu(threads), &reproducible(method)), &c);
            let want = of(1);
            assert!(want.iter().any(|&b| b != 0));
            assert!(of(2) == want && of(7) == want, "{name}, method {method}: threads show");
            let session = Session::cpu(2);
            let mut used = Plan::<f64>::new(&session, &reproducible(method));
            field(&mut used, &other);
            assert!(field(&mut used, &c) == want, "{name}, method {method}: an earlier problem shows");
            let mut moved = c.clone();
            moved.targets.iter_mut().for_each(|x| x[0] += 0.01);
            field(&mut used, &moved);
            assert!(field(&mut used, &c) == want, "{name}, method {method}: other targets show");
        }
    }
}

#[test]
fn the_flag_keeps_the_tolerance() {
    let c = case("cube", Kind::Particles, 9000, 9000, 1.0);
    let session = Session::cpu(2);
    let value = |method: i32, flags: u64| {
        let mut plan = Plan::<f64>::new(&session, &wfmm_plan_options { flags, ..reproducible(method) });
        let bits = field(&mut plan, &c);
        bits[..3 * c.targets.len()].iter().map(|&b| f64::from_bits(b)).collect::<Vec<f64>>()
    };
    let error = relative_l2(&value(WFMM_METHOD_FMM, WFMM_FLAG_REPRODUCIBLE), &value(WFMM_METHOD_DIRECT, 0));
    assert!(error > 0.0 && error <= 1e-4, "{error:e}");
}

/// Neither the precision nor the gradient of an evaluation before: an engine of double precision, and sources sorted for an FMM that was not worth it.
#[test]
fn what_was_asked_for_before_does_not_show() {
    let session = Session::cpu(2);
    for (method, n) in
        [(WFMM_METHOD_FMM, 3000), (WFMM_METHOD_DIRECT, 300), (WFMM_METHOD_AUTO, 250), (WFMM_METHOD_AUTO, 400)]
    {
        let c = case("cube", Kind::Particles, n, n, 1.0).rounded();
        let single = |plan: &mut Plan<f32>, gradient: bool| {
            let (mut u, mut g) = (vec![0.0; 3 * n], vec![0.0; 9 * n]);
            plan.velocity(&mut u, gradient.then_some(&mut g));
            u
        };
        let of_arrays = wfmm_plan_options { precision: WFMM_PRECISION_ARRAYS, tolerance: 1e-3, ..reproducible(method) };
        let make = || {
            let mut plan = Plan::<f32>::new(&session, &of_arrays);
            fill(&mut plan, &c);
            plan
        };
        let want = single(&mut make(), false);
        let mut used = make();
        single(&mut used, true);
        assert!(single(&mut used, false) == want, "{n}, method {method}: an earlier gradient shows");
        used.velocity_in_double(&mut vec![0.0; 3 * n]);
        assert!(single(&mut used, false) == want, "{n}, method {method}: an earlier precision shows");
    }
}
