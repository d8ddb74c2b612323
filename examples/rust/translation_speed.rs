//! Multipole-to-local translations on one core: time, and the share of the core's multiply-adds that they keep busy.
//!
//! `cargo run --release --example translation_speed`. A figure is the processor time of the fastest of some runs of 256
//! translations into one target, from 256 different multipoles. Multiply-adds are those of the four swaps (p³/3 each) and of
//! the axial step (2p³/3), nothing else; the ceiling is a loop of independent multiply-adds on registers in the same run.

#[allow(dead_code)]
#[path = "../../bench/support/clock.rs"]
mod clock;

use clock::thread_seconds;
use wakefmm::backend::cpu::operators::{Operators, Shift, Step};
use wakefmm::backend::cpu::passes::{Translation, Work};
use wakefmm::simd::{self, Kernel, Lane, Real, Simd, dispatch};

const PAIRS: usize = 256;

fn fastest(runs: usize, mut f: impl FnMut()) -> f64 {
    let run = |_| {
        let start = thread_seconds();
        f();
        thread_seconds() - start
    };
    (0..runs).map(run).fold(f64::INFINITY, f64::min)
}

/// Multiply-adds of one thread a second.
fn ceiling<T: Real>() -> f64 {
    struct Chains<T>(usize, T);
    impl<T: Real> Kernel for Chains<T> {
        type Output = (usize, T);
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> (usize, T) {
            let f = Lane::<S, T>::splat(s, self.1);
            let mut acc = [f; 12];
            for _ in 0..self.0 {
                acc.iter_mut().for_each(|a| *a = f.fma(*a, f));
            }
            (12 * self.0 * Lane::<S, T>::LANES, acc.into_iter().fold(f, |a, b| a + b).sum())
        }
    }
    let rounds = 200_000;
    let mut count = 0;
    let t = fastest(10, || count = std::hint::black_box(dispatch(Chains(rounds, std::hint::black_box(T::of(0.5))))).0);
    count as f64 / t
}

/// Seconds of one translation of order `p`.
fn seconds<T: Real, const C: usize>(p: usize) -> f64 {
    let ops = Operators::<T>::new(p);
    let mut work = Work::new(p, C);
    let n = C * p * p;
    let from: Vec<T> = (0..PAIRS * n).map(|i| T::of(1.0 / (i % 97 + 1) as f64)).collect();
    let mut out = vec![T::ZERO; n];
    let step = |k: usize| Step { d: [3.0, 0.1 * k as f64, 0.3 * (k % 7) as f64], from_radius: 0.9, to_radius: 0.8 };
    let steps: Vec<Step> = (0..PAIRS).map(step).collect();
    let (order, give) = (|_: usize| p, |k: usize| &from[k * n..(k + 1) * n]);
    let run = || {
        Translation::<T, C> { ops: &ops, kind: Shift::M2l, steps: &steps, order: &order, from: &give }
            .run(&mut work, &mut out)
    };
    fastest(15, run) / PAIRS as f64
}

fn table<T: Real>(name: &str) {
    let top = ceiling::<T>();
    println!("\n{name}: at most {:.1e} multiply-adds a second\n", top);
    println!("| order | 3 components, us | share | 1 component, us | share | ratio |\n|---|---|---|---|---|---|");
    for p in [4, 6, 8, 10, 12, 14, 16, 19, 22, 26] {
        let (three, one) = (seconds::<T, 3>(p), seconds::<T, 1>(p));
        let least = 2.0 * (p * p * p) as f64 / top;
        println!(
            "| {p} | {:.3} | {:.2} | {:.3} | {:.2} | {:.2} |",
            1e6 * three,
            3.0 * least / three,
            1e6 * one,
            least / one,
            three / one
        );
    }
}

fn main() {
    println!("{}", simd::isa_name());
    table::<f64>("f64");
    table::<f32>("f32");
}
