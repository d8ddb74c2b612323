//! Treecode, FMM and direct sum on the CPU: seconds as the number of points grows, and for few targets of many sources.
//!
//! `part=NAME` one of: curve, few, kept (new targets of sources that stay). `tolerance=T` (1e-4; few, kept: 1e-2 too), `least=N`, `largest=N` bound the number of sources,
//! `threads=N` (2). Velocities in double precision of point vortices, uniform in a cube; every repetition has its own seed.
//! Seconds are processor seconds of all threads, the least of the repetitions, so that another load of the machine counts
//! little; the direct sum is timed on as many targets as fit two seconds and scaled.

mod support;

use support::accuracy::{options, relative_l2};
use support::api::{Plan, Session, flat};
use support::arguments::{argument, number};
use support::clock::processor_seconds;
use support::workloads::{Workload, cube};
use wakefmm::options::*;

/// The numbers of a workload as the library takes them.
struct Arrays {
    position: Vec<f64>,
    strength: Vec<f64>,
    targets: Vec<f64>,
}

impl Arrays {
    fn of(w: &Workload) -> Self {
        Self { position: flat(&w.position), strength: flat(&w.strength), targets: flat(&w.targets) }
    }

    /// Positions and strengths in, velocities out: processor seconds.
    fn call(&self, plan: &mut Plan<f64>, u: &mut [f64]) -> f64 {
        let start = processor_seconds();
        plan.particles(&self.position, &self.strength, None);
        plan.targets(&self.targets[..u.len()]);
        plan.velocity(u, None);
        processor_seconds() - start
    }
}

/// What one method took.
struct Measured {
    seconds: f64,
    error: f64,
    /// That was used.
    method: i32,
    recipe: String,
}

struct Bench {
    session: Session,
    sizes: [usize; 2],
}

impl Bench {
    /// Processor seconds of the direct sum over all targets.
    fn direct(&self, a: &Arrays) -> f64 {
        let (n, m) = (a.position.len() / 3, a.targets.len() / 3);
        let some = ((1e9 / n as f64) as usize).clamp(64, m.max(64)).min(m);
        let mut plan = Plan::<f64>::new(&self.session, &options(WFMM_METHOD_DIRECT, 1e-3, 0, 0, 0));
        a.call(&mut plan, &mut vec![0.0; 3 * some]) * m as f64 / some as f64
    }

    /// Relative L2 error at up to some 500 targets.
    fn error(&self, a: &Arrays, u: &[f64]) -> f64 {
        let step = (a.targets.len() / 3).div_ceil(500);
        let pick = |v: &[f64]| -> Vec<f64> { v.chunks(3).step_by(step).flatten().copied().collect() };
        let some = Arrays { position: a.position.clone(), strength: a.strength.clone(), targets: pick(&a.targets) };
        let mut want = vec![0.0; some.targets.len()];
        some.call(&mut Plan::new(&self.session, &options(WFMM_METHOD_DIRECT, 1e-10, 0, 0, 0)), &mut want);
        relative_l2(&pick(u), &want)
    }

    fn measure(&self, (n, m): (usize, usize), method: i32, tolerance: f64) -> Measured {
        let mut plan = Plan::<f64>::new(&self.session, &options(method, tolerance, 0, 0, 0));
        let repeat = if n + m < 300_000 { 5 } else { 2 };
        let (mut seconds, mut error) = (f64::INFINITY, 0.0);
        for k in 0..=repeat {
            let a = Arrays::of(&cube(n, m, 1000 + k));
            let mut u = vec![0.0; 3 * m];
            let t = a.call(&mut plan, &mut u);
            // The first call pages memory in and measures what the recipe needs.
            if k > 0 {
                seconds = f64::min(seconds, t);
            }
            if k == repeat {
                error = self.error(&a, &u);
            }
        }
        Measured { seconds, error, method: plan.report().method, recipe: plan.recipe() }
    }

    /// Processor seconds of a call with new targets only, the sources kept, and the method that was used.
    fn new_targets(&self, (n, m): (usize, usize), method: i32, tolerance: f64) -> (f64, i32) {
        let mut plan = Plan::<f64>::new(&self.session, &options(method, tolerance, 0, 0, 0));
        let a = Arrays::of(&cube(n, m, 1000));
        let mut u = vec![0.0; 3 * m];
        a.call(&mut plan, &mut u);
        let one = |k: u64| {
            let targets = flat::<f64>(&cube(1, m, 2000 + k).targets);
            let start = processor_seconds();
            plan.targets(&targets);
            plan.velocity(&mut u, None);
            processor_seconds() - start
        };
        let seconds = (0..6).map(one).fold(f64::INFINITY, f64::min);
        (seconds, plan.report().method)
    }

    /// New targets of 100,000 sources that stay.
    fn kept(&self) {
        println!(
            "| targets | tolerance | treecode, s | FMM, s | direct, s | AUTO, s | AUTO takes |\n|---|---|---|---|---|---|---|"
        );
        for m in [300, 1000, 3000, 10_000, 30_000] {
            for tolerance in [1e-2, 1e-4] {
                let all = [WFMM_METHOD_TREECODE, WFMM_METHOD_FMM, WFMM_METHOD_DIRECT, WFMM_METHOD_AUTO];
                let [tree, fmm, direct, auto] = all.map(|method| self.new_targets((100_000, m), method, tolerance));
                let name = ["AUTO", "direct", "FMM", "treecode"][auto.1 as usize];
                let ([t, f, d], a) = ([tree.0, fmm.0, direct.0], auto.0);
                println!("| {m} | {tolerance:.0e} | {t:.5} | {f:.5} | {d:.5} | {a:.5} | {name} |");
            }
        }
    }

    fn row(&self, (n, m): (usize, usize), tolerance: f64) {
        let direct = self.direct(&Arrays::of(&cube(n, m, 1)));
        let all = [WFMM_METHOD_TREECODE, WFMM_METHOD_FMM, WFMM_METHOD_AUTO].map(|k| self.measure((n, m), k, tolerance));
        let name = ["AUTO", "direct", "FMM", "treecode"][all[2].method as usize];
        let [tree, fmm, auto] = &all;
        println!(
            "| {n} | {m} | {tolerance:.0e} | {:.5} | {:.5} | {direct:.5} | {:.5} | {name} | {:.1e} | {:.1e} |",
            tree.seconds, fmm.seconds, auto.seconds, tree.error, fmm.error
        );
        all.iter().for_each(|r| eprintln!("    {}", r.recipe));
    }

    fn head() {
        println!(
            "| sources | targets | tolerance | treecode, s | FMM, s | direct, s | AUTO, s | AUTO takes | error, treecode | error, FMM |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
    }

    fn within(&self, n: usize) -> bool {
        (self.sizes[0]..=self.sizes[1]).contains(&n)
    }

    /// As many targets as sources.
    fn curve(&self) {
        Self::head();
        for n in [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 10_000_000] {
            if self.within(n) {
                self.row((n, n), number("tolerance", 1e-4));
            }
        }
    }

    /// Few targets of many sources.
    fn few_targets(&self) {
        Self::head();
        let all = argument("tolerance").is_none();
        for n in [100_000, 1_000_000] {
            for m in [100, 300, 1000, 3000, 10_000, 30_000] {
                for tolerance in [1e-2, 1e-4].into_iter().filter(|t| all || *t == number("tolerance", 0.0)) {
                    if self.within(n) {
                        self.row((n, m), tolerance);
                    }
                }
            }
        }
    }
}

fn main() {
    let session = Session::cpu(number("threads", 2.0) as i32);
    println!("{}\n", session.describe());
    let bench = Bench { session, sizes: [number("least", 0.0) as usize, number("largest", 1e6) as usize] };
    let parts: [(&str, fn(&Bench)); 3] = [("curve", Bench::curve), ("few", Bench::few_targets), ("kept", Bench::kept)];
    for (name, run) in parts {
        if argument("part").is_none_or(|p| p == name) {
            println!("## {name}\n");
            run(&bench);
            println!();
        }
    }
}
