//! Measurements beside figures and tables of published papers; `examples/papers/make.py` runs them and draws the page.
//!
//! `part=NAME` one of: fig5 (Yokota and Barba 2011, Figure 5: direct sum, treecode and FMM as the number of bodies grows),
//! table1 (Gumerov and Duraiswami 2008, Table 1: the direct sum, potential and potential with force, single precision).
//! `largest=N` bounds the number of sources. One thread; processor seconds, the least of the repetitions. A direct sum of more than
//! `PAIRS` pairs is timed on fewer targets and scaled, which its row says.

mod support;

use support::api::{Plan, Scalar, Session, flat, list};
use support::arguments::argument;
use support::clock::processor_seconds;
use support::random::Random;
use wakefmm::options::*;

/// Pairs that a direct sum is timed on at most.
const PAIRS: f64 = 4e9;
/// Of the potential; forces of charges are then good to some 1e-4.
const TOLERANCE: f64 = 1e-5;
/// Targets whose error is measured.
const SAMPLE: usize = 300;

/// Charges and targets in the unit cube.
struct Bodies {
    position: Vec<[f64; 3]>,
    charge: Vec<f64>,
    targets: Vec<[f64; 3]>,
}

impl Bodies {
    /// n sources and m targets; strengths in (0, 1).
    fn new(n: usize, m: usize, seed: u64) -> Self {
        let mut r = Random::new(seed);
        let position = (0..n).map(|_| r.in_cube()).collect();
        let charge = (0..n).map(|_| r.unit()).collect();
        Self { position, charge, targets: (0..m).map(|_| r.in_cube()).collect() }
    }

    /// Positions and charges in, potential and (`force`) gradient out: processor seconds and what came out.
    fn call<T: Scalar>(&self, plan: &mut Plan<T>, targets: &[[f64; 3]], force: bool) -> (f64, Vec<T>) {
        let (x, q, t) = (flat::<T>(&self.position), list::<T>(&self.charge), flat::<T>(targets));
        let mut phi = vec![T::default(); targets.len()];
        let mut gradient = vec![T::default(); if force { 3 * targets.len() } else { 0 }];
        let start = processor_seconds();
        plan.charges(&x, &q);
        plan.targets(&t);
        plan.potential(&mut phi, force.then_some(&mut gradient[..]));
        let seconds = processor_seconds() - start;
        (seconds, if force { gradient } else { phi })
    }
}

fn plan<T: Scalar>(session: &Session, method: i32, tolerance: f64) -> Plan<T> {
    Plan::new(session, &wfmm_plan_options { method, tolerance, ..Default::default() })
}

/// Seconds of the direct sum at all targets, and whether they are scaled from fewer.
fn direct<T: Scalar>(session: &Session, bodies: &Bodies, force: bool) -> (f64, bool) {
    let (n, m) = (bodies.position.len(), bodies.targets.len());
    let some = ((PAIRS / n as f64) as usize).clamp(1, m);
    let repeat = if (n * some) as f64 > 1e8 { 1 } else { 5 };
    let mut plan = plan::<T>(session, WFMM_METHOD_DIRECT, 1e-3);
    let one = |_| bodies.call(&mut plan, &bodies.targets[..some], force).0;
    let least = (0..=repeat).map(one).fold(f64::INFINITY, f64::min);
    (least * m as f64 / some as f64, some < m)
}

/// Seconds of one method for potential and force, and the error of the force at some targets.
fn far_field(session: &Session, n: usize, method: i32) -> (f64, f64) {
    let mut plan = plan::<f64>(session, method, TOLERANCE);
    let repeat = if n < 100_000 { 4 } else { 1 };
    let (mut least, mut error) = (f64::INFINITY, 0.0);
    for k in 0..=repeat {
        let bodies = Bodies::new(n, n, 10 + k);
        let (seconds, got) = bodies.call(&mut plan, &bodies.targets, true);
        // The first call measures what the recipe needs.
        least = if k > 0 { least.min(seconds) } else { least };
        if k == repeat {
            let step = n.div_ceil(SAMPLE);
            let some: Vec<[f64; 3]> = bodies.targets.iter().step_by(step).copied().collect();
            let exact = bodies.call(&mut crate::plan::<f64>(session, WFMM_METHOD_DIRECT, 1e-10), &some, true).1;
            let got: Vec<f64> = got.chunks(3).step_by(step).flatten().copied().collect();
            error = support::accuracy::relative_l2(&got, &exact);
        }
    }
    (least, error)
}

fn fig5(session: &Session, largest: usize) {
    println!("N,direct,scaled,treecode,treecode_error,fmm,fmm_error");
    for n in [500, 1000, 2000, 3000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000] {
        if n <= largest {
            let (seconds, scaled) = direct::<f64>(session, &Bodies::new(n, n, 1), true);
            let (tree, tree_error) = far_field(session, n, WFMM_METHOD_TREECODE);
            let (fmm, fmm_error) = far_field(session, n, WFMM_METHOD_FMM);
            println!("{n},{seconds:.4e},{},{tree:.4e},{tree_error:.2e},{fmm:.4e},{fmm_error:.2e}", scaled as i32);
        }
    }
}

fn table1(session: &Session, largest: usize) {
    println!("N,potential,force,scaled");
    for n in (10..=20).map(|k| 1usize << k).filter(|&n| n <= largest) {
        let bodies = Bodies::new(n, n + 1, 1);
        let (potential, scaled) = direct::<f32>(session, &bodies, false);
        let force = direct::<f32>(session, &bodies, true).0;
        println!("{n},{potential:.4e},{force:.4e},{}", scaled as i32);
    }
}

fn main() {
    let session = Session::cpu(1);
    let largest = argument("largest").map_or(usize::MAX, |n| n.parse().expect("a number"));
    println!("# {}", session.describe());
    match argument("part").as_deref() {
        Some("fig5") => fig5(&session, largest),
        Some("table1") => table1(&session, largest),
        other => panic!("part={other:?}: fig5 or table1"),
    }
}
