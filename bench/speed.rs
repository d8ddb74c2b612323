//! The CPU's speed: arrays in, velocities out, everything between counted; the direct sum timed in the same run.
//!
//! `make bench` runs all parts; `part=NAME` one of: table, profile, leaves, crossover, coulomb, linear, periodic, plane. `threads=N` (2),
//! `precision=f32` or `f64` (else the library's choice for the arrays), `largest=N` leaves out larger workloads, `column=NAME` takes those whose name begins so. Positions are new in every repetition; times are medians. The direct sum is timed
//! on as many targets as fit two seconds and scaled, which is fair because its time is proportional to them.

mod support;

use std::time::Instant;
use support::accuracy::{options, relative_l2};
use support::api::{Plan, Scalar, Session, flat, list};
use support::arguments::{argument, precision};
use support::clock::processor_seconds;
use support::wakes::hover;
use support::workloads::{Workload, cube, rings};
use wakefmm::options::*;

const PASSES: [&str; 10] = ["copy", "tree", "lists", "p2m", "m2m", "m2l", "l2l", "l2p", "p2p", "whole"];

/// A column of the table: name, sources, targets, required ratios to the direct sum at 1e-3 and 1e-6 (f64).
const COLUMNS: [(&str, usize, usize, [f64; 2]); 5] = [
    ("CUBE 1e4", 10_000, 10_000, [2.5, 0.75]),
    ("CUBE 1e5", 100_000, 100_000, [22.0, 12.0]),
    ("RINGS 1e5", 100_000, 100_000, [20.0, 7.6]),
    ("1e4 sources, 1e6 targets", 10_000, 1_000_000, [8.4, 4.7]),
    ("CUBE 1e6", 1_000_000, 1_000_000, [175.0, 85.0]),
];

/// In the precision that the command line asks for.
fn asked(method: i32, tolerance: f64, leaf: i32) -> wfmm_plan_options {
    wfmm_plan_options { precision: precision(), ..options(method, tolerance, 0, 0, leaf) }
}

fn workload(name: &str, n: usize, m: usize, seed: u64) -> Workload {
    if name.starts_with("RINGS") { rings(n, m, seed) } else { cube(n, m, seed) }
}

/// Positions and strengths in, velocities out.
fn whole_call<T: Scalar>(plan: &mut Plan<T>, x: &[T], a: &[T], y: &[T], u: &mut [T]) {
    plan.particles(x, a, None);
    plan.targets(y);
    plan.velocity(u, None);
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

struct Bench {
    session: Session,
    largest: usize,
}

/// One measured setting.
struct Measured {
    seconds: f64,
    /// Of the direct sum, over all targets.
    direct: f64,
    error: f64,
    bytes: u64,
    recipe: String,
    depth: i32,
    order: i32,
}

impl Bench {
    /// Seconds of the direct sum over all targets.
    fn direct<T: Scalar>(&self, w: &Workload) -> f64 {
        let (n, m) = (w.position.len(), w.targets.len());
        let rate = if T::NAME == "f64" { 1.5e9 } else { 4e9 };
        let some = ((2.0 * rate / n as f64) as usize).clamp(256, m);
        let mut plan = Plan::<T>::new(&self.session, &options(WFMM_METHOD_DIRECT, 1e-3, 0, 0, 0));
        let (x, a, y) = (flat::<T>(&w.position), flat::<T>(&w.strength), flat::<T>(&w.targets[..some]));
        let mut u = vec![T::default(); 3 * some];
        let start = Instant::now();
        whole_call(&mut plan, &x, &a, &y, &mut u);
        start.elapsed().as_secs_f64() * m as f64 / some as f64
    }

    /// Relative L2 error of `u` at about 2,000 targets against the direct sum in double precision of the same numbers.
    fn error<T: Scalar>(&self, x: &[T], a: &[T], y: &[T], u: &[T]) -> f64 {
        let wide = |v: &[T]| v.iter().map(|v| v.f64()).collect::<Vec<f64>>();
        let step = (y.len() / 3).div_ceil(2000);
        let pick = |v: &[T]| -> Vec<f64> { v.chunks(3).step_by(step).flatten().map(|v| v.f64()).collect() };
        let mut plan = Plan::<f64>::new(&self.session, &options(WFMM_METHOD_DIRECT, 1e-10, 0, 0, 0));
        let targets = pick(y);
        let mut want = vec![0.0; targets.len()];
        whole_call(&mut plan, &wide(x), &wide(a), &targets, &mut want);
        relative_l2(&pick(u), &want)
    }

    fn measure<T: Scalar>(&self, name: &str, n: usize, m: usize, o: &wfmm_plan_options, repeat: usize) -> Measured {
        let mut plan = Plan::<T>::new(&self.session, o);
        let (mut times, mut direct) = (vec![], vec![]);
        let mut error = 0.0f64;
        for k in 0..=repeat as u64 {
            let w = workload(name, n, m, 1000 + k);
            let (x, a, y) = (flat::<T>(&w.position), flat::<T>(&w.strength), flat::<T>(&w.targets));
            let mut u = vec![T::default(); 3 * m];
            let start = Instant::now();
            whole_call(&mut plan, &x, &a, &y, &mut u);
            let t = start.elapsed().as_secs_f64();
            // The first round pages memory in and measures what the recipe needs; small ones repeat, so it is left out.
            if k > 0 || repeat == 0 {
                times.push(t);
                direct.push(self.direct::<T>(&w));
            }
            if k == repeat as u64 {
                error = self.error(&x, &a, &y, &u);
            }
        }
        let r = plan.report();
        Measured {
            seconds: median(times),
            direct: median(direct),
            error,
            bytes: r.host_bytes,
            recipe: plan.recipe(),
            depth: r.depth,
            order: r.order,
        }
    }

    fn repetitions(n: usize, m: usize) -> usize {
        match n + m {
            0..100_000 => 9,
            100_000..1_500_000 => 3,
            _ => 1,
        }
    }

    fn table(&self) {
        println!(
            "| workload | tolerance | precision | seconds | error | direct sum, s | pairs/s | ratio | must be | bytes a point | order, depth |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|");
        for (name, n, m, goals) in COLUMNS {
            if n.max(m) > self.largest || argument("column").is_some_and(|c| !name.starts_with(&c)) {
                continue;
            }
            for (k, tolerance) in [1e-3, 1e-6].into_iter().enumerate() {
                let o = asked(WFMM_METHOD_AUTO, tolerance, 0);
                let r = self.measure::<f64>(name, n, m, &o, Self::repetitions(n, m));
                Self::row(name, (n, m), tolerance, "f64", &r, &format!("{}", goals[k]));
            }
            let o = asked(WFMM_METHOD_AUTO, 1e-3, 0);
            let r = self.measure::<f32>(name, n, m, &o, Self::repetitions(n, m));
            Self::row(name, (n, m), 1e-3, "f32", &r, "");
        }
    }

    fn row(name: &str, (n, m): (usize, usize), tolerance: f64, precision: &str, r: &Measured, goal: &str) {
        println!(
            "| {name} | {tolerance:.0e} | {precision} | {:.4} | {:.1e} | {:.3} | {:.2e} | {:.2} | {goal} | {:.0} | {}, {} |",
            r.seconds,
            r.error,
            r.direct,
            n as f64 * m as f64 / r.direct,
            r.direct / r.seconds,
            r.bytes as f64 / (n + m) as f64,
            r.order,
            r.depth
        );
        eprintln!("    {}", r.recipe);
    }

    /// The library's leaves against leaves by hand.
    fn leaves(&self) {
        println!("| workload | tolerance | chosen, s | best by hand, s (leaf) | chosen/best |\n|---|---|---|---|---|");
        for (name, n, m, _) in COLUMNS {
            if n.max(m) > self.largest || argument("column").is_some_and(|c| !name.starts_with(&c)) {
                continue;
            }
            for tolerance in [1e-3, 1e-6] {
                let run = |leaf| {
                    let o = asked(WFMM_METHOD_FMM, tolerance, leaf);
                    self.measure::<f64>(name, n, m, &o, 3).seconds
                };
                let by_hand = [20, 30, 45, 64, 90, 128, 180, 256].map(|leaf| (run(leaf), leaf));
                let best = by_hand.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("eight of them");
                let chosen = run(0);
                println!(
                    "| {name} | {tolerance:.0e} | {chosen:.4} | {:.4} ({}) | {:.2} |",
                    best.0,
                    best.1,
                    chosen / best.0
                );
            }
        }
    }

    /// Seconds of every pass, for the chosen leaves and for some by hand.
    fn profile(&self) {
        println!(
            "| workload | tolerance | leaf | whole, processor time | passes: {} | far, near, core pairs | error | recipe |",
            PASSES.join(", ")
        );
        println!("|---|---|---|---|---|---|---|---|");
        let leaves: Vec<i32> =
            argument("leaf").map_or(vec![0], |l| l.split(',').map(|v| v.parse().expect("a leaf")).collect());
        for (name, n, m, _) in COLUMNS {
            if n.max(m) > self.largest || argument("column").is_some_and(|c| !name.starts_with(&c)) {
                continue;
            }
            for tolerance in [1e-3, 1e-6] {
                for &leaf in &leaves {
                    let o = asked(WFMM_METHOD_FMM, tolerance, leaf);
                    let mut plan = Plan::<f64>::new(&self.session, &o);
                    let (mut best, mut busy, mut line) = (f64::INFINITY, f64::INFINITY, String::new());
                    for seed in 0..4 {
                        let w = workload(name, n, m, seed);
                        let (x, a, y) = (flat::<f64>(&w.position), flat::<f64>(&w.strength), flat::<f64>(&w.targets));
                        let mut u = vec![0.0; 3 * m];
                        let start = (Instant::now(), processor_seconds());
                        whole_call(&mut plan, &x, &a, &y, &mut u);
                        let (t, cpu) = (start.0.elapsed().as_secs_f64(), processor_seconds() - start.1);
                        let r = plan.report();
                        if seed > 0 && cpu < busy {
                            (best, busy) = (t, cpu);
                            let passes =
                                r.seconds[..10].iter().map(|s| format!("{:.2}", 1e3 * s)).collect::<Vec<_>>().join(" ");
                            let pairs = format!(
                                "{:.2e} {:.2e} {:.2e}",
                                r.far_pairs as f64, r.near_pairs as f64, r.core_pairs as f64
                            );
                            let error = self.error(&x, &a, &y, &u);
                            line = format!("{passes} | {pairs} | {error:.1e} | {}", plan.recipe());
                        }
                    }
                    println!("| {name} | {tolerance:.0e} | {leaf} | {:.2}, {:.2} | {line} |", 1e3 * best, 1e3 * busy);
                }
            }
        }
    }

    /// Where the FMM overtakes the direct sum at 1e-3.
    fn crossover(&self) {
        println!("| points | FMM, s | direct, s | FMM is faster by |\n|---|---|---|---|");
        for n in [2000, 3000, 4000, 5000, 6000, 8000, 10_000, 14_000, 20_000] {
            let o = asked(WFMM_METHOD_FMM, 1e-3, 0);
            let r = self.measure::<f64>("CUBE", n, n, &o, 9);
            println!("| {n} | {:.5} | {:.5} | {:.2} |", r.seconds, r.direct, r.direct / r.seconds);
        }
    }

    /// Charges with the gradient of the potential against vortices with velocity, at the same positions.
    fn coulomb(&self) {
        println!(
            "| points | tolerance | Biot–Savart, processor s | Coulomb force, processor s | ratio |\n|---|---|---|---|---|"
        );
        for n in [10_000, 100_000] {
            for tolerance in [1e-3, 1e-6] {
                let o = asked(WFMM_METHOD_FMM, tolerance, 0);
                let (mut a, mut b) = (vec![], vec![]);
                let (mut vortices, mut charges) =
                    (Plan::<f64>::new(&self.session, &o), Plan::<f64>::new(&self.session, &o));
                for seed in 0..4 {
                    let w = cube(n, n, seed);
                    let (x, s, y) = (flat::<f64>(&w.position), flat::<f64>(&w.strength), flat::<f64>(&w.targets));
                    let q = list::<f64>(&w.strength.iter().map(|s| s[0]).collect::<Vec<_>>());
                    let (mut u, mut phi) = (vec![0.0; 3 * n], vec![0.0; n]);
                    let start = processor_seconds();
                    whole_call(&mut vortices, &x, &s, &y, &mut u);
                    a.push(processor_seconds() - start);
                    let start = processor_seconds();
                    charges.charges(&x, &q);
                    charges.targets(&y);
                    charges.potential(&mut phi, Some(&mut u));
                    b.push(processor_seconds() - start);
                }
                for plan in [&vortices, &charges] {
                    let passes =
                        plan.report().seconds[..10].iter().map(|s| format!("{:.2}", 1e3 * s)).collect::<Vec<_>>();
                    eprintln!("    {}: {}; {}", PASSES.join(" "), passes.join(" "), plan.recipe());
                }
                let (a, b) = (median(a), median(b));
                println!("| {n} | {tolerance:.0e} | {a:.4} | {b:.4} | {:.2} |", a / b);
            }
        }
    }

    /// CUBE as a box of one period along each axis, against the same in free space, in turn.
    fn periodic(&self) {
        println!(
            "| points | tolerance | precision | open, processor s | periodic | ratio | error |\n|---|---|---|---|---|---|---|"
        );
        for n in [10_000, 100_000, 1_000_000] {
            if n <= self.largest {
                self.box_of_one::<f64>(n, 1e-6);
                self.box_of_one::<f32>(n, 1e-4);
            }
        }
    }

    fn box_of_one<T: Scalar>(&self, n: usize, tolerance: f64) {
        let open = asked(WFMM_METHOD_FMM, tolerance, 0);
        let boxed = wfmm_plan_options { period: [1.0; 3], ..open };
        let mut plans = [Plan::<T>::new(&self.session, &open), Plan::<T>::new(&self.session, &boxed)];
        let (mut times, mut error) = ([vec![], vec![]], 0.0);
        let repeat = if n < 500_000 { 4 } else { 2 };
        for seed in 0..=repeat {
            let w = cube(n, n, seed);
            let (x, a, y) = (flat::<T>(&w.position), flat::<T>(&w.strength), flat::<T>(&w.targets));
            let mut u = vec![T::default(); 3 * n];
            for (k, plan) in plans.iter_mut().enumerate() {
                let start = processor_seconds();
                whole_call(plan, &x, &a, &y, &mut u);
                // The first round measures costs and sums the lattice.
                if seed > 0 {
                    times[k].push(processor_seconds() - start);
                }
            }
            if seed == repeat {
                error = plans[1].check(1000, 11);
            }
        }
        plans.iter().for_each(|plan| {
            let passes = plan.report().seconds[..10].iter().map(|s| format!("{:.1}", 1e3 * s)).collect::<Vec<_>>();
            eprintln!("    {}: {}; {}", PASSES.join(" "), passes.join(" "), plan.recipe());
        });
        let [open, boxed] = times.map(median);
        println!(
            "| {n} | {tolerance:.0e} | {} | {open:.3} | {boxed:.3} | {:.3} | {error:.1e} |",
            T::NAME,
            boxed / open
        );
    }

    /// Cost a point as the number of points grows, and a drawing of it.
    /// Sums over a ground plane against the same in free space, in turn.
    fn plane(&self) {
        println!("| problem | tolerance | open, processor s | plane | ratio | error |\n|---|---|---|---|---|---|");
        for n in [100_000, 1_000_000] {
            if n <= self.largest {
                for tolerance in [1e-3, 1e-6] {
                    self.over_ground(&format!("CUBE {n:.0e}"), tolerance, |seed, plans| {
                        let w = cube(n, n, seed);
                        let (x, a) = (flat::<f64>(&w.position), flat::<f64>(&w.strength));
                        plans.iter_mut().for_each(|plan| plan.particles(&x, &a, None));
                        w.targets
                    });
                }
            }
        }
        for tolerance in [1e-2, 1e-3] {
            self.over_ground("HOVER", tolerance, |seed, plans| {
                let w = hover(40, 144, 100_000, seed);
                let points = flat::<f64>(&w.nodes);
                plans.iter_mut().for_each(|plan| plan.segments(&points, &w.ends, &w.circulation, Some(&w.core)));
                w.targets
            });
        }
    }

    /// `set` gives sources to all plans and returns the targets; the plane is z = 0.
    fn over_ground(&self, name: &str, tolerance: f64, set: impl Fn(u64, &mut [Plan<f64>]) -> Vec<[f64; 3]>) {
        let open =
            wfmm_plan_options { segment_regularization: WFMM_REG_VATISTAS, ..asked(WFMM_METHOD_FMM, tolerance, 0) };
        let plane = wfmm_plan_options { plane_axis: 3, ..open };
        let mut plans = [open, plane].map(|o| Plan::<f64>::new(&self.session, &o));
        let (mut times, mut error) = ([vec![], vec![]], 0.0);
        for seed in 0..=3 {
            let targets = set(seed, &mut plans);
            for (k, plan) in plans.iter_mut().enumerate() {
                let y = flat::<f64>(&targets);
                let mut u = vec![0.0; y.len()];
                let start = processor_seconds();
                plan.targets(&y);
                plan.velocity(&mut u, None);
                if seed > 0 {
                    times[k].push(processor_seconds() - start);
                }
            }
            if seed == 3 {
                error = plans[1].check(1000, 11);
                eprintln!("    {}", plans[1].recipe());
            }
        }
        let [open, plane] = times.map(median);
        println!("| {name} | {tolerance:.0e} | {open:.3} | {plane:.3} | {:.3} | {error:.1e} |", plane / open);
    }

    fn linear(&self) {
        println!("| points | seconds | microseconds a point |\n|---|---|---|");
        for n in [100_000, 200_000, 500_000, 1_000_000, 2_000_000, 4_000_000] {
            if n > self.largest {
                continue;
            }
            let w = cube(n, n, 7);
            let mut plan = Plan::<f64>::new(&self.session, &asked(WFMM_METHOD_FMM, 1e-3, 0));
            let (x, a, y) = (flat::<f64>(&w.position), flat::<f64>(&w.strength), flat::<f64>(&w.targets));
            let mut u = vec![0.0; 3 * n];
            let start = Instant::now();
            whole_call(&mut plan, &x, &a, &y, &mut u);
            let t = start.elapsed().as_secs_f64();
            println!("| {n} | {t:.3} | {:.2} |", 1e6 * t / n as f64);
        }
    }
}

fn main() {
    let number = |key, default| argument(key).map_or(default, |v| v.parse::<f64>().expect("a number") as usize);
    let session = Session::cpu(number("threads", 2) as i32);
    println!("{}\n", session.describe());
    let bench = Bench { session, largest: number("largest", 4_000_000) };
    let part = argument("part");
    let parts: [(&str, fn(&Bench)); 8] = [
        ("table", Bench::table),
        ("profile", Bench::profile),
        ("crossover", Bench::crossover),
        ("coulomb", Bench::coulomb),
        ("leaves", Bench::leaves),
        ("linear", Bench::linear),
        ("periodic", Bench::periodic),
        ("plane", Bench::plane),
    ];
    for (name, run) in parts {
        if part.as_deref().is_none_or(|p| p == name) {
            println!("## {name}\n");
            run(&bench);
            println!();
        }
    }
}
