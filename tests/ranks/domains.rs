//! Periodic domains for tests of many ranks.
//!
//! Enters: numbers of elements. Leaves: tubes, slabs and boxes, what is in them and beyond their sides, and what their fields must keep.

use super::support::cases::{Case, Kind, Vec3};
use super::support::periodic::cored;
use super::{Split, exact_of, plan_options, relative_l2, together_on};
use wakefmm::backend::Field;
use wakefmm::options::*;
use wakefmm::plan::Plan;

pub const OPEN: f64 = 0.0;
pub const DOMAINS: [(&str, Vec3); 5] = [
    ("tube", [OPEN, OPEN, 1.0]),
    ("slab", [1.0, 1.2, OPEN]),
    ("box", [1.0, 1.4, 0.8]),
    ("cube", [1.0; 3]),
    ("small tube", [0.3, OPEN, OPEN]),
];

pub fn in_domain(method: i32, tolerance: f64, period: Vec3) -> wfmm_plan_options {
    wfmm_plan_options { period, ..plan_options(method, tolerance) }
}

/// Particles and segments with cores, with a net strength.
pub fn wake(n: usize, m: usize, period: Vec3) -> Case {
    let c = cored(Kind::Particles, n, m, period, true, 0.01);
    let s = cored(Kind::Segments, n / 2, 0, period, true, 0.01);
    Case { points: s.points, ends: s.ends, circulation: s.circulation, segment_core: s.segment_core, ..c }
}

/// Charges whose sum is zero where it must be, and others on each rank.
pub fn charged(n: usize, m: usize, period: Vec3) -> Case {
    let mut c = cored(Kind::Charges, n, m, period, period.iter().all(|&p| p > 0.0), 0.0);
    // Those of one sign first: a rank's own do not balance each other.
    c.charge.sort_by(f64::total_cmp);
    c
}

/// The field of one process that is exact beside `tolerance`.
pub fn reference(c: &Case, field: Field, o: &wfmm_plan_options) -> (Vec<f64>, Vec<f64>) {
    let tolerance = (1e-2 * o.tolerance).max(2e-11);
    exact_of(c, field, &wfmm_plan_options { method: WFMM_METHOD_DIRECT, tolerance, ..*o })
}

/// Field and gradient of ranks within the tolerance, and a check that tells the true error.
pub fn keeps(
    on: &SessionOptions,
    c: &Case,
    what: &str,
    ranks: usize,
    split: (&str, Split),
    o: &wfmm_plan_options,
    field: Field,
    want: &(Vec<f64>, Vec<f64>),
) -> Plan {
    let (u, g, plan, found) = together_on(on, c, ranks, split.1, o, field);
    let errors = (relative_l2(&u, &want.0), if g.is_empty() { 0.0 } else { relative_l2(&g, &want.1) });
    let what = format!(
        "{what}, {ranks} ranks, {}, {:.0e}: {:.1e} and {:.1e}, check {found:.1e}",
        split.0, o.tolerance, errors.0, errors.1
    );
    println!("{what}; {}", plan.recipe());
    assert!(errors.0 <= o.tolerance && errors.1 <= 30.0 * o.tolerance, "{what}: {}", plan.recipe());
    assert!(found <= o.tolerance, "{what}");
    // The check evaluates the field without a gradient, by other lists.
    assert!(found >= 0.02 * errors.0 - 0.02 * o.tolerance, "{what}");
    plan
}
