//! Periodic domains over many ranks: each rank's field against that of one process at a much smaller tolerance, at all targets, and
//! against sums over all images by other means.
//!
//! Enters: tubes, slabs and boxes with elements in them and beyond their sides, split in every way. No test waits longer than its time
//! limit.

mod ranks;

use ranks::support::cases::{Case, Kind, Vec3};
use ranks::support::periodic::{Images, cored, field_at};
use ranks::*;
use wakefmm::backend::Field;
use wakefmm::distributed::Communicator;
use wakefmm::error::*;
use wakefmm::options::*;
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::Array;
use wakefmm::plan::sources::Strengths;
use wakefmm::session::Session;

const OPEN: f64 = 0.0;
const DOMAINS: [(&str, Vec3); 5] = [
    ("tube", [OPEN, OPEN, 1.0]),
    ("slab", [1.0, 1.2, OPEN]),
    ("box", [1.0, 1.4, 0.8]),
    ("cube", [1.0; 3]),
    ("small tube", [0.3, OPEN, OPEN]),
];
const METHODS: [(&str, i32); 2] = [("direct", WFMM_METHOD_DIRECT), ("FMM", WFMM_METHOD_FMM)];

fn in_domain(method: i32, tolerance: f64, period: Vec3) -> wfmm_plan_options {
    wfmm_plan_options { period, ..plan_options(method, tolerance) }
}

/// Particles and segments with cores, with a net strength.
fn wake(n: usize, m: usize, period: Vec3) -> Case {
    let c = cored(Kind::Particles, n, m, period, true, 0.01);
    let s = cored(Kind::Segments, n / 2, 0, period, true, 0.01);
    Case { points: s.points, ends: s.ends, circulation: s.circulation, segment_core: s.segment_core, ..c }
}

/// Charges whose sum is zero where it must be, and others on each rank.
fn charged(n: usize, m: usize, period: Vec3) -> Case {
    let mut c = cored(Kind::Charges, n, m, period, period.iter().all(|&p| p > 0.0), 0.0);
    // Those of one sign first: a rank's own do not balance each other.
    c.charge.sort_by(f64::total_cmp);
    c
}

/// The field of one process that is exact beside `tolerance`.
fn reference(c: &Case, field: Field, o: &wfmm_plan_options) -> (Vec<f64>, Vec<f64>) {
    let tolerance = (1e-3 * o.tolerance).max(2e-11);
    exact_of(c, field, &wfmm_plan_options { method: WFMM_METHOD_DIRECT, tolerance, ..*o })
}

/// Field and gradient within the tolerance, and a check that tells the true error.
fn holds(c: &Case, what: &str, ranks: usize, split: (&str, Split), o: &wfmm_plan_options, field: Field, want: &(Vec<f64>, Vec<f64>)) {
    let (u, g, plan, found) = together(c, ranks, split.1, o, field);
    let errors = (relative_l2(&u, &want.0), relative_l2(&g, &want.1));
    let what = format!(
        "{what}, {ranks} ranks, {}, {:.0e}: {:.1e} and {:.1e}, check {found:.1e}",
        split.0, o.tolerance, errors.0, errors.1
    );
    println!("{what}; {}", plan.recipe());
    assert!(errors.0 <= o.tolerance && errors.1 <= 30.0 * o.tolerance, "{what}: {}", plan.recipe());
    assert!(found <= o.tolerance, "{what}");
    let method = if o.method == WFMM_METHOD_DIRECT { WFMM_METHOD_DIRECT } else { WFMM_METHOD_FMM };
    assert_eq!(plan.report().method, method, "{what}: {}", plan.recipe());
    // The check evaluates the field without a gradient, by other lists.
    assert!(found >= 0.02 * errors.0 - 0.02 * o.tolerance, "{what}");
}

fn in_all_domains(method: (&str, i32), n: usize, m: usize, tolerances: &[f64]) {
    let mut turn = 0;
    for (name, period) in DOMAINS {
        for (kind, c, field) in
            [("vortices", wake(n, m, period), VELOCITY), ("charges", charged(n, m, period), POTENTIAL)]
        {
            for &tolerance in tolerances {
                let o = in_domain(method.1, tolerance, period);
                let want = reference(&c, field, &o);
                for ranks in [1, 2, 3, 5] {
                    let what = format!("{name}, {kind}, {}", method.0);
                    turn += 1;
                    holds(&c, &what, ranks, SPLITS[turn % SPLITS.len()], &o, field, &want);
                }
            }
        }
    }
}

#[test]
fn the_fmm_keeps_its_tolerance_in_every_domain() {
    in_all_domains(METHODS[1], 1200, 1000, &[1e-4, 1e-7]);
}

#[test]
fn direct_sums_keep_their_tolerance_in_every_domain() {
    in_all_domains(METHODS[0], 300, 200, &[1e-4, 1e-9]);
}

#[test]
fn it_does_not_matter_how_elements_are_split() {
    let period = DOMAINS[2].1;
    let c = wake(1500, 1200, period);
    let o = in_domain(WFMM_METHOD_FMM, 1e-5, period);
    let want = reference(&c, VELOCITY, &o);
    for ranks in [2, 3, 5] {
        for split in SPLITS {
            holds(&c, "box", ranks, split, &o, VELOCITY, &want);
        }
    }
    let host = wfmm_plan_options { flags: WFMM_FLAG_HOST_PARTITION, ..o };
    for split in [SPLITS[1], SPLITS[2], SPLITS[4]] {
        holds(&c, "box, the host's partition", 3, split, &host, VELOCITY, &want);
    }
}
