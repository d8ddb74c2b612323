//! Periodic domains for tests of many ranks.
//!
//! Enters: numbers of elements. Leaves: tubes, slabs and boxes, and what is in them and beyond their sides.

use super::plan_options;
use super::support::cases::{Case, Kind, Vec3};
use super::support::periodic::cored;
use wakefmm::options::*;

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
