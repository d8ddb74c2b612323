//! Pairs a second of every CPU pair kernel, all threads busy.
//!
//! `cargo run --release --example pair_speed [threads]` prints one row per kernel: velocity and velocity with gradient, f64
//! and f32. A figure is threads × pairs / processor time of the fastest block of any thread, so that other users of the
//! machine do not count. Blocks: 512 targets, 8192 sources, uniform in the unit cube; cores of 0.3 or none.

#[allow(dead_code)]
#[path = "../../bench/support/clock.rs"]
mod clock;

use clock::thread_seconds;
use rayon::prelude::*;
use wakefmm::backend::cpu::near::{self, ChargeSources, Digits, ParticleSources, Points, SegmentSources};
use wakefmm::math::regularization::Part;
use wakefmm::options::Regularization::{self, *};
use wakefmm::simd::{self, Real};

const TARGETS: usize = 512;
const SOURCES: usize = 8192;
const BLOCKS: usize = 24;

/// Positions that fill the unit cube evenly.
fn position(k: usize) -> [f64; 3] {
    [0.618_034, 0.414_214, 0.302_776].map(|a| (a * k as f64).fract())
}

/// Pairs a second of `run`, which adds all sources to all targets.
fn speed<T: Real>(components: usize, run: impl Fn(&Points<T>, &mut [&mut [T]]) + Sync) -> f64 {
    let mut targets = Points::with_capacity(TARGETS);
    (0..TARGETS).for_each(|k| targets.push(position(k + SOURCES)));
    let block = |_: usize| {
        let mut out = vec![vec![T::ZERO; TARGETS]; components];
        let mut view: Vec<&mut [T]> = out.iter_mut().map(|v| &mut v[..]).collect();
        let start = thread_seconds();
        run(&targets, &mut view);
        thread_seconds() - start
    };
    let best = (0..BLOCKS).into_par_iter().map(block).reduce(|| f64::INFINITY, f64::min);
    rayon::current_num_threads() as f64 * (TARGETS * SOURCES) as f64 / best
}

fn particle<T: Real>(reg: Regularization, part: Part, components: usize) -> f64 {
    let mut s = ParticleSources::<T>::new(reg, false);
    (0..SOURCES).for_each(|k| s.push(position(k), position(k + 1), 0.3));
    let all = [0..SOURCES as u32];
    speed(components, |t, out| near::particles(part, &s, &all, t, 0..TARGETS, out))
}

fn segment<T: Real>(reg: Regularization, part: Part, components: usize) -> f64 {
    let mut s = SegmentSources::<T>::new(reg, Digits::default());
    (0..SOURCES).for_each(|k| s.push(position(k), position(k + 1), 1.0, 0.3));
    let all = [0..SOURCES as u32];
    speed(components, |t, out| near::segments(part, &s, &all, t, 0..TARGETS, out))
}

fn charge<T: Real>(components: usize) -> f64 {
    let mut s = ChargeSources::<T>::new(false);
    (0..SOURCES).for_each(|k| s.push(position(k), 1.0));
    let all = [0..SOURCES as u32];
    speed(components, |t, out| near::charges(&s, &all, t, 0..TARGETS, out))
}

fn row(name: &str, figures: [f64; 4]) {
    println!("| {name:<26} | {} |", figures.map(|f| format!("{:6.2}", f * 1e-9)).join(" | "));
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(0);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("a thread pool");
    println!("{} threads, {}, 1e9 pairs/s", rayon::current_num_threads(), simd::isa_name());
    println!("| kernel                     | f64    | f64 +g | f32    | f32 +g |");
    println!("|---|---|---|---|---|");
    use Part::{Correction, Regularized};
    row("charges", [charge::<f64>(1), charge::<f64>(4), charge::<f32>(1), charge::<f32>(4)]);
    for reg in [None, GaussErf, Exponential, Compact, Rosenhead, Winckelmans, Polynomial] {
        for part in [Regularized, Correction] {
            if reg == None && part == Correction {
                continue;
            }
            let (a, b) = (particle::<f64>(reg, part, 3), particle::<f64>(reg, part, 12));
            let (c, d) = (particle::<f32>(reg, part, 3), particle::<f32>(reg, part, 12));
            row(&format!("particles {reg:?}{}", suffix(part)), [a, b, c, d]);
        }
    }
    for reg in [None, Rankine, LambOseen, Vatistas, Scully, Offset] {
        for part in [Regularized, Correction] {
            if reg == None && part == Correction {
                continue;
            }
            let (a, b) = (segment::<f64>(reg, part, 3), segment::<f64>(reg, part, 12));
            let (c, d) = (segment::<f32>(reg, part, 3), segment::<f32>(reg, part, 12));
            row(&format!("segments {reg:?}{}", suffix(part)), [a, b, c, d]);
        }
    }
}

fn suffix(part: Part) -> &'static str {
    if part == Part::Correction { " (corr.)" } else { "" }
}
