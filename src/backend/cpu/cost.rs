//! What things cost here: measured once a process, on the kernels themselves, and used by every recipe.

use super::fmm::rows;
use super::lists::{Cost, Far as FarCell};
use super::m2p::{self, Far, Rows, Series};
use super::near;
use super::operators::{Operators, Shift, Step};
use super::passes::{Translation, Work};
use super::tree::{Root, Tree, bounds};
use crate::math::harmonics::MAX_ORDER;
use crate::math::regularization::Part;
use crate::memory;
use crate::options::Regularization;
use crate::simd::{Real, lanes};
use once_cell::sync::Lazy;
use parking_lot::Mutex;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;

/// Of an M2P at a register of 64 bytes: seconds, and a coefficient of a row.
const TYPICAL_M2P: [f64; 2] = [2e-8, 3e-10];

type Cache<K> = Lazy<Mutex<HashMap<K, Arc<dyn Any + Send + Sync>>>>;

/// What is kept under `key`, made where there is nothing yet. Made without the lock: a thread that waits for its pool in `make` may take up
/// the work of another plan, which asks here too. What was there first stays.
fn kept<K: Eq + Hash, V: Send + Sync + 'static>(cache: &Cache<K>, key: K, make: impl FnOnce() -> V) -> Arc<V> {
    let found = cache.lock().get(&key).cloned();
    let entry = found.unwrap_or_else(|| {
        let made = Arc::new(make());
        cache.lock().entry(key).or_insert(made).clone()
    });
    entry.downcast().expect("keyed by its type")
}

/// The constants of one order, shared by all plans.
pub fn operators<T: Real>(order: usize) -> Arc<Operators<T>> {
    static CACHE: Cache<(TypeId, usize)> = Lazy::new(Default::default);
    kept(&CACHE, (TypeId::of::<T>(), order), || Operators::<T>::new(order))
}

/// Seconds of one thread for one M2L of `C` components at each order, 0 ..= MAX_ORDER.
pub fn m2l<T: Real, const C: usize>() -> Vec<f64> {
    static CACHE: Cache<(TypeId, usize)> = Lazy::new(Default::default);
    kept(&CACHE, (TypeId::of::<T>(), C), measure_m2l::<T, C>).to_vec()
}

/// The constants of M2P for multipoles of one order, shared by all plans.
pub fn series<T: Real>(order: usize, components: usize, gradient: bool) -> Arc<Series<T>> {
    static CACHE: Cache<(TypeId, usize, usize, bool)> = Lazy::new(Default::default);
    kept(&CACHE, (TypeId::of::<T>(), order, components, gradient), || Series::<T>::new(order, components, gradient))
}

/// Seconds of one thread for one M2P of each order at a register of targets, 0 ..= MAX_ORDER.
pub fn m2p<T: Real, const C: usize>(gradient: bool) -> Vec<f64> {
    static CACHE: Cache<(TypeId, usize, bool)> = Lazy::new(Default::default);
    kept(&CACHE, (TypeId::of::<T>(), C, gradient), || measure_m2p::<T, C>(gradient)).to_vec()
}

/// Costs that do not depend on the machine: those of a core with AVX-512, rounded. For results that must not either.
pub fn typical<T: Real, const C: usize>(gradient: bool) -> Cost {
    let precision = if T::IS_F64 { 1.0 } else { 0.5 };
    let exact = 1e-9 * if gradient { 2.0 } else { 1.0 };
    let pair = precision * exact;
    let m2l = |p: usize| (1.5e-7 + 1.2e-9 * (p * p) as f64 + 1.0e-10 * (p * p * p) as f64) * precision * C as f64 / 3.0;
    // 64 bytes a register: twice the numbers in single precision take the same time.
    let m2p =
        |p: usize| TYPICAL_M2P[0] + TYPICAL_M2P[1] * (m2p::degrees(C, gradient, p).pow(2) * rows(C, gradient)) as f64;
    let all = |f: &dyn Fn(usize) -> f64| memory::collect((0..MAX_ORDER + 1).map(f));
    Cost { pair, exact, correction: 1.3 * pair, m2l: all(&m2l), m2p: all(&m2p), lanes: if T::IS_F64 { 8 } else { 16 } }
}

/// What acts between a source and a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    Segment(Regularization),
    Particle(Regularization),
    Charge,
}

/// Seconds of one thread for one direct pair; `splits`: of sources in single precision with two numbers a coordinate.
pub fn pair<T: Real>(law: Law, part: Part, gradient: bool, splits: bool) -> f64 {
    static CACHE: Cache<(TypeId, Law, Part, [bool; 2])> = Lazy::new(Default::default);
    let splits = splits && !T::IS_F64;
    *kept(&CACHE, (TypeId::of::<T>(), law, part, [gradient, splits]), || measure_pair::<T>(law, part, gradient, splits))
}

/// Times a block of 256 sources and 128 targets, with cores of a tenth of the block.
fn measure_pair<T: Real>(law: Law, part: Part, gradient: bool, splits: bool) -> f64 {
    let (n, m) = (256u32, 128usize);
    let position = |k: usize, f: f64| -> [f64; 3] { [0.37, 0.59, 0.83].map(|s| (k as f64 * s * f).fract()) };
    let mut targets = near::Points::<T>::with_capacity(m);
    (0..m).for_each(|k| targets.push(position(k, 1.7)));
    let count = match (law, gradient) {
        (Law::Charge, false) => 1,
        (Law::Charge, true) => 4,
        (_, false) => 3,
        (_, true) => 12,
    };
    let mut out = vec![T::ZERO; count * m];
    let mut rows: Vec<&mut [T]> = out.chunks_exact_mut(m).collect();
    let all = [0..n];
    let seconds = match law {
        Law::Charge => {
            let mut s = near::ChargeSources::<T>::new(splits);
            (0..n as usize).for_each(|k| s.push(position(k, 1.0), 1.0));
            best(4, || near::charges(&s, &all, &targets, 0..m, &mut rows))
        }
        Law::Particle(reg) => {
            let mut s = near::ParticleSources::<T>::new(reg, splits);
            (0..n as usize).for_each(|k| s.push(position(k, 1.0), position(k, 2.3), 0.1));
            best(4, || near::particles(part, &s, &all, &targets, 0..m, &mut rows))
        }
        Law::Segment(reg) => {
            let mut s = near::SegmentSources::<T>::new(reg, near::Digits { splits, step: 0.0 });
            (0..n as usize).for_each(|k| s.push(position(k, 1.0), position(k, 1.01), 1.0, 0.1));
            best(4, || near::segments(part, &s, &all, &targets, 0..m, &mut rows))
        }
    };
    seconds / (n as usize * m) as f64
}

/// Far cells of one target cell, and target cells: lists as short as real ones, from multipoles that no first cache holds.
const FAR: usize = 20;
const LISTS: usize = 12;

/// Times orders 5, 10 and 18 and lays a + b p² + c p³ through them.
fn measure_m2l<T: Real, const C: usize>() -> Vec<f64> {
    let orders = [5usize, 10, 18];
    let seconds = orders.map(|p| {
        let ops = operators::<T>(p);
        let mut work = Work::new(p, C);
        let n = C * p * p;
        let from: Vec<T> = memory::collect((0..LISTS * FAR * n).map(|i| T::of(1.0 / (i % 97 + 1) as f64)));
        let mut out = vec![T::ZERO; n];
        let steps: Vec<Step> = (0..FAR)
            .map(|k| Step { d: [3.0, 0.1 * k as f64, 0.3 * (k % 7) as f64], from_radius: 0.9, to_radius: 0.8 })
            .collect();
        let seconds = best(3, || {
            for list in 0..LISTS {
                let give = |k: usize| &from[(list * FAR + k) * n..][..n];
                Translation::<T, C> { ops: &ops, kind: Shift::M2l, steps: &steps, order: &|_| p, from: &give }
                    .run(&mut work, &mut out)
            }
        });
        seconds / (LISTS * FAR) as f64
    });
    let [a, b, c] = fit(orders.map(|p| p as f64), seconds, |x| [1.0, x * x, x * x * x]);
    (0..=MAX_ORDER)
        .map(|p| {
            let p = p as f64;
            (a + b * p * p + c * p * p * p).max(0.3 * seconds[0])
        })
        .collect()
}

/// Times groups of targets with the far cells of `measure_m2l` at orders 4, 9 and 16 and lays a + b q + c q² through them.
fn measure_m2p<T: Real, const C: usize>(gradient: bool) -> Vec<f64> {
    let position = |k: usize| -> [f64; 3] { [0.37, 0.59, 0.83].map(|f| (k as f64 * f).fract()) };
    let positions: Vec<[f64; 3]> = (0..LISTS * FAR).map(position).collect();
    let (tree, _) = Tree::build(&positions, &[], Root::around(&[bounds(&positions, &[])]), 1, None);
    let registers = 4;
    let count = registers * lanes::<T>();
    let x: [Vec<T>; 3] = std::array::from_fn(|i| (0..count).map(|k| T::of(0.1 * position(k + 7)[i])).collect());
    let orders = [4usize, 9, 16];
    let seconds = orders.map(|p| {
        let series = series::<T>(p, C, gradient);
        let multipoles: Vec<T> =
            memory::collect((0..tree.cells.len() * C * p * p).map(|i| T::of(1.0 / (i % 97 + 1) as f64)));
        let mut made = Rows::default();
        made.make::<C>(&series, &tree, &multipoles, gradient);
        let (mut sums, mut out) = (vec![], vec![T::ZERO; rows(C, gradient) * count]);
        let far = |&cell: &u32| FarCell { order: p as u8, image: 0, cell };
        let leaves: Vec<FarCell> = tree.leaves.iter().map(far).collect();
        let seconds = best(3, || {
            for list in leaves.chunks(FAR) {
                let (series, sources) = (&series, &tree.cells);
                Far { series, rows: &made, sources, list, center: [3.0; 3] }.add(&x, &mut sums, &mut out);
            }
        });
        seconds / (leaves.len() * registers) as f64
    });
    let [a, b, c] = fit(orders.map(|p| p as f64), seconds, |x| [1.0, x, x * x]);
    let at = |p: usize| (a + b * p as f64 + c * (p * p) as f64).max(0.3 * seconds[0]);
    memory::collect((0..MAX_ORDER + 1).map(at))
}

/// Seconds until a core computes at full speed after the first wide registers; before, pairs took up to a sixth longer.
const WARM_UP: f64 = 3e-4;

/// Shortest of a few runs, and of as many more as warm the core up.
pub fn best(runs: usize, mut f: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let (mut least, mut done) = (f64::INFINITY, 0);
    while done < runs || begin.elapsed().as_secs_f64() < WARM_UP {
        let start = Instant::now();
        f();
        least = least.min(start.elapsed().as_secs_f64());
        done += 1;
    }
    least
}

/// The sum of three functions through three points.
fn fit(x: [f64; 3], y: [f64; 3], of: impl Fn(f64) -> [f64; 3]) -> [f64; 3] {
    let q = x.map(of);
    let det = |m: [[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let whole = det(q);
    std::array::from_fn(|k| {
        let mut m = q;
        (0..3).for_each(|i| m[i][k] = y[i]);
        det(m) / whole
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made may ask for other things of the same kind, as work of another plan does that a waiting thread takes up.
    #[test]
    fn what_is_made_may_ask_for_more() {
        static CACHE: Cache<u32> = Lazy::new(Default::default);
        let two = kept(&CACHE, 2, || 2 * *kept(&CACHE, 1, || 1));
        assert_eq!([*two, *kept(&CACHE, 2, || 5), *kept(&CACHE, 1, || 5)], [2, 2, 1]);
    }

    /// An M2P at a register of targets costs more with the order, with gradients, and less than an M2L of the same order.
    #[test]
    fn an_m2p_costs_what_its_terms_do() {
        let (plain, with) = (m2p::<f64, 3>(false), m2p::<f64, 3>(true));
        let typical = [false, true].map(|gradient| typical::<f64, 3>(gradient).m2p);
        let m2l = m2l::<f64, 3>();
        for p in [4, 8, 12, 18] {
            println!(
                "order {p}: {:.2e} ({:.2e}), with gradient {:.2e} ({:.2e}), M2L {:.2e}",
                plain[p], typical[0][p], with[p], typical[1][p], m2l[p]
            );
        }
        for p in [4, 8, 12] {
            assert!(plain[p] < plain[p + 4] && plain[p] < with[p] && plain[p] < m2l[p], "order {p}");
        }
    }
}
