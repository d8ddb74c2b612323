//! Wakes with cores on the CPU: one call and a warm plan beside the direct sum with the same cores, in one run.
//!
//! `make wakes` runs all; `case=NAME`, `core=NAME`, `tolerance=X`, `rows=N`, `repeat=N`, `threads=N` restrict it. A "call" makes a plan, hands
//! over arrays, evaluates and destroys it, as `wfmm_induce_segments_f64` does; a "warm" evaluation hands over new positions
//! to a plan that is kept. Errors are relative L2 over all targets against the direct sum.

mod support;

use std::time::Instant;
use support::accuracy::{options, relative_l2};
use support::api::{Plan, Session, flat};
use support::arguments::{argument, number, precision};
use support::wakes::{Wake, hover, lattice};
use wakefmm::options::*;

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

/// Arrays of a wake as a host has them.
struct Arrays {
    nodes: Vec<f64>,
    ends: Vec<i32>,
    circulation: Vec<f64>,
    core: Vec<f64>,
    targets: Vec<f64>,
}

impl Arrays {
    fn of(w: &Wake) -> Self {
        Self {
            nodes: flat(&w.nodes),
            ends: w.ends.clone(),
            circulation: w.circulation.clone(),
            core: w.core.clone(),
            targets: flat(&w.targets),
        }
    }
    fn run(&self, plan: &mut Plan<f64>, u: &mut [f64]) {
        plan.segments(&self.nodes, &self.ends, &self.circulation, Some(&self.core));
        plan.targets(&self.targets);
        plan.velocity(u, None);
    }
}

const CORES: [(&str, i32); 3] =
    [("none", WFMM_REG_NONE), ("Vatistas", WFMM_REG_VATISTAS), ("Lamb-Oseen", WFMM_REG_LAMB_OSEEN)];

/// Greatest error at one target, against the root mean square of the field.
fn at_one_target(u: &[f64], exact: &[f64]) -> f64 {
    let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    let error = |(u, e): (&[f64], &[f64])| (0..3).map(|i| (u[i] - e[i]).powi(2)).sum::<f64>();
    let most = u.chunks(3).zip(exact.chunks(3)).map(error).fold(0.0, f64::max);
    (most / square(exact) * (exact.len() / 3) as f64).sqrt()
}

/// Milliseconds of every pass of a one-call evaluation.
fn passes(r: &wakefmm::report::wfmm_report) -> String {
    let names = ["copy", "tree", "lists", "p2m", "m2m", "m2l", "l2l", "l2p", "p2p", "whole"];
    let each: Vec<String> = names.iter().zip(r.seconds).map(|(n, s)| format!("{n} {:.2}", 1e3 * s)).collect();
    each.join(", ")
}

fn case(name: &str, make: &dyn Fn(u64) -> Wake, session: &Session) {
    let repeat = number("repeat", 3.0) as u64;
    for (core, reg) in CORES {
        if argument("core").is_some_and(|c| !core.starts_with(&c)) {
            continue;
        }
        let w = Arrays::of(&make(0));
        let (n, m) = (w.circulation.len(), w.targets.len() / 3);
        let (mut exact, mut u) = (vec![0.0; 3 * m], vec![0.0; 3 * m]);
        let mut direct = vec![];
        for _ in 0..(1 + repeat / 3).min(5) {
            let start = Instant::now();
            w.run(&mut Plan::new(session, &options(WFMM_METHOD_DIRECT, 1e-4, reg, 0, 0)), &mut exact);
            direct.push(start.elapsed().as_secs_f64());
        }
        let direct = median(direct);
        for tolerance in [1e-2, 1e-3, 1e-4] {
            if argument("tolerance").is_some_and(|t| t.parse::<f64>().unwrap() != tolerance) {
                continue;
            }
            let method = if argument("auto").is_some() { WFMM_METHOD_AUTO } else { WFMM_METHOD_FMM };
            let o = wfmm_plan_options { precision: precision(), ..options(method, tolerance, reg, 0, 0) };
            let (mut calls, mut warm, mut error) = (vec![], vec![], 0.0f64);
            let mut single = 0.0f64;
            let mut kept = Plan::<f64>::new(session, &o);
            let (mut report, mut recipe) = (kept.report(), String::new());
            for k in 0..=repeat {
                let start = Instant::now();
                let mut plan = Plan::<f64>::new(session, &o);
                w.run(&mut plan, &mut u);
                (report, recipe) = (plan.report(), plan.recipe());
                drop(plan);
                calls.push(start.elapsed().as_secs_f64());
                error = error.max(relative_l2(&u, &exact));
                single = single.max(at_one_target(&u, &exact));
                let moved = Arrays::of(&make(k + 1));
                let start = Instant::now();
                moved.run(&mut kept, &mut u);
                warm.push(start.elapsed().as_secs_f64());
            }
            let (call, warm) = (median(calls[1..].to_vec()), median(warm[1..].to_vec()));
            println!(
                "| {name} {n} x {m} | {core} | {tolerance:.0e} | {call:.4} | {warm:.4} | {direct:.3} | {:.1} | {:.2} | {error:.1e} | {:.1e} | {:.2} | {:.2} | {} | {single:.1e} |",
                direct / call,
                call / warm,
                report.estimated_error,
                (report.near_pairs - report.core_pairs) as f64 * 1e-6,
                report.core_pairs as f64 * 1e-6,
                report.order
            );
            if argument("recipe").is_some() {
                println!("    {recipe}\n    {}", passes(&report));
            }
        }
    }
}

fn main() {
    let session = Session::cpu(number("threads", 2.0) as i32);
    let rows = number("rows", 300.0) as usize;
    let turns = number("turns", 60.0) as usize;
    println!(
        "| case | core | tolerance | one call, s | warm, s | direct, s | direct/call | call/warm | error | sampled | near pairs, 1e6 | core pairs, 1e6 | order | at one target |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let wanted = |name: &str| argument("case").is_none_or(|c| c == name);
    if wanted("LATTICE") {
        case("LATTICE", &|k| lattice(rows, 0.1 * k as f64), &session);
    }
    if wanted("HOVER") {
        case("HOVER", &|k| hover(turns, 144, 20_000, k + 1), &session);
    }
}
