//! The linear operators of the expansions on lanes: harmonics at points, rotation, translation.
//!
//! Enters: expansions in the layout of `math::harmonics`, scaled by the radius of their cell (a multipole coefficient of
//! degree n is divided by radius^n, a local one multiplied), so that they are O(1) whatever the unit of length.
//! Leaves: translated expansions. A lane holds one pair of cells; the pairs of a register may have any directions.
//!
//! A translation is rotation – axial translation – rotation back (Gumerov & Duraiswami 2008 §3), 2 p³ + 8 p²
//! multiplications. The rotation that brings the direction (α, β) to the z axis is z-rotation(α), swap y↔z, z-rotation(-β), swap,
//! so that the only matrices are constants. A rotation keeps the degree, so it is done degree by degree while the numbers
//! are in the first cache; only the axial step needs all of them, order of m by order of m.

use super::lines::Means;
use crate::math::harmonics::{self, index};
use crate::memory;
pub use crate::simd::dense::WIDEST;
use crate::simd::dense::{self, Destinations, Matrix, Part, PlaneRotations, Rotation, RowPairs};
use crate::simd::{Kernel, Lane, Real, Simd, each, outline};

/// What the rotation of one degree needs. Coefficients are numbered inside the degree, except in `by_m`.
struct Degree<T> {
    rotations: PlaneRotations,
    swap: [Swap<T>; 4],
    /// Numbers of the blocks of `swap` that give cosine and sine coefficients: of even m, then of odd m.
    cos_sin_blocks: [[usize; 2]; 2],
}

/// One of the four blocks of the swap of y and z.
struct Swap<T> {
    from: usize,
    size: usize,
    matrix: Matrix<T>,
    /// Where its rows go: inside the degree, and in the arrangement by m.
    inside: Destinations,
    by_m: Destinations,
}

/// The axial step of one m.
struct Axial<T> {
    m2l: Matrix<T>,
    /// [n-m][l-m], zero above the diagonal.
    shift: Vec<T>,
    /// For cosine and sine: the first coefficient in the arrangement by m, and the usual numbers of those of l = m .. order-1.
    ends: [(usize, Destinations); 2],
}

/// Constants for all orders up to `order`.
pub struct Operators<T> {
    pub order: usize,
    diagonal: Vec<T>,
    /// (a, b) of the vertical recurrence at n(n+1)/2 + m.
    vertical: Vec<(T, T)>,
    degrees: Vec<Degree<T>>,
    axial: Vec<Axial<T>>,
    /// For each axis: (to, from, weight) with ∂(Σ c R) = Σ c_from weight R_to.
    pub derivative: [Vec<(u32, u32, T)>; 3],
    pub(super) means: Means<T>,
}

fn tri(n: usize, m: usize) -> usize {
    n * (n + 1) / 2 + m
}

/// The arrangement by m of an expansion of `order`: all n of (m, cos), then all n of (m, sin), by rising m.
fn by_m(order: usize, m: usize, sin: bool) -> usize {
    let before: usize = (0..m).map(|k| if k == 0 { order } else { 2 * (order - k) }).sum();
    before + if sin { order - m } else { 0 }
}

/// m and cos|sin of each coefficient of degree n, in its place.
fn labels(n: usize) -> Vec<(usize, bool)> {
    let mut at = vec![(0, false); 2 * n + 1];
    for m in 0..=n {
        at[index(n, m, false) - n * n] = (m, false);
        if m > 0 {
            at[index(n, m, true) - n * n] = (m, true);
        }
    }
    at
}

impl<T: Real> Degree<T> {
    fn new(n: usize, order: usize) -> Self {
        memory::check();
        let labels = labels(n);
        let pairs = (1..=n).map(|m| ((index(n, m, false) - n * n) as u32, (index(n, m, true) - n * n) as u32));
        let swap = std::array::from_fn(|k| {
            let b = &harmonics::swap(n)[k];
            let rows = b.to - n * n..b.to - n * n + b.size;
            Swap {
                from: b.from - n * n,
                size: b.size,
                matrix: Matrix::new(b.size, b.size, b.entries.iter().map(|&v| T::of(v)).collect()),
                inside: Destinations::new(rows.clone()),
                by_m: Destinations::new(rows.map(|r| by_m(order, labels[r].0, labels[r].1) + n - labels[r].0)),
            }
        });
        let gives = harmonics::swap_classes(n);
        Self {
            rotations: PlaneRotations::new(pairs.collect()),
            swap,
            cos_sin_blocks: [[gives[0], gives[2]], [gives[1], gives[3]]],
        }
    }
}

impl<T: Real> Axial<T> {
    fn new(m: usize, order: usize) -> Self {
        memory::check();
        let size = order - m;
        let all = || (m..order).flat_map(move |i| (m..order).map(move |j| (i, j)));
        Self {
            m2l: Matrix::new(size, size, all().map(|(l, n)| T::of(harmonics::m2l_axial(n, l, m))).collect()),
            shift: all().map(|(n, l)| T::of(if l <= n { harmonics::shift_axial(n, l, m) } else { 0.0 })).collect(),
            ends: [false, true].map(|sin| {
                let degrees = if sin && m == 0 { 0..0 } else { m..order };
                (by_m(order, m, sin), Destinations::new(degrees.map(|l| index(l, m, sin))))
            }),
        }
    }
}

impl<T: Real> Operators<T> {
    pub fn new(order: usize) -> Self {
        let mut derivative = [vec![], vec![], vec![]];
        for (axis, list) in derivative.iter_mut().enumerate() {
            for n in 0..order {
                for m in 0..=n {
                    for sin in [false, true] {
                        if !(sin && m == 0) {
                            let from = index(n, m, sin) as u32;
                            let terms = harmonics::derivative(n, m, sin, axis);
                            memory::extend(list, terms.into_iter().map(|(to, w)| (to as u32, from, T::of(w))));
                        }
                    }
                }
            }
        }
        Self {
            order,
            diagonal: (0..order).map(|m| T::of(harmonics::diagonal(m))).collect(),
            vertical: (0..order)
                .flat_map(|n| (0..=n).map(move |m| (n, m)))
                .map(|(n, m)| if m < n { harmonics::vertical(n, m) } else { (0.0, 0.0) })
                .map(|(a, b)| (T::of(a), T::of(b)))
                .collect(),
            degrees: (0..order).map(|n| Degree::new(n, order)).collect(),
            axial: (0..order).map(|m| Axial::new(m, order)).collect(),
            derivative,
            means: Means::new(order),
        }
    }

    /// All R of degrees 0 .. p-1 at one point per lane; `out[i·LANES..]` is coefficient i.
    #[inline(always)]
    pub fn regular<S: Simd>(&self, s: S, p: usize, [x, y, z]: [Lane<S, T>; 3], out: &mut [T]) {
        let w = Lane::<S, T>::LANES;
        assert!(p <= self.order && out.len() >= p * p * w);
        let r2 = x.fma(x, y.fma(y, z * z));
        let zero = Lane::zero(s);
        let (mut c, mut v) = (Lane::splat(s, T::ONE), zero);
        for m in 0..p {
            if m > 0 {
                let f = Lane::splat(s, self.diagonal[m]);
                (c, v) = (f * x.fma(c, -(y * v)), f * x.fma(v, y * c));
            }
            let (mut c0, mut c1, mut s0, mut s1) = (zero, c, zero, v);
            c1.store(&mut out[index(m, m, false) * w..]);
            if m > 0 {
                s1.store(&mut out[index(m, m, true) * w..]);
            }
            for n in m + 1..p {
                let (a, b) = self.vertical[tri(n, m)];
                let (az, br) = (Lane::splat(s, a) * z, Lane::splat(s, b) * r2);
                (c0, c1) = (c1, az * c1 - br * c0);
                c1.store(&mut out[index(n, m, false) * w..]);
                if m > 0 {
                    (s0, s1) = (s1, az * s1 - br * s0);
                    s1.store(&mut out[index(n, m, true) * w..]);
                }
            }
        }
    }
}

/// Which translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    M2m,
    M2l,
    L2l,
}

/// One pair of cells: from centre to centre, and the radii that scale the two expansions.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Centre of the receiver minus centre of the giver (M2L: target - source).
    pub d: [f64; 3],
    pub from_radius: f64,
    pub to_radius: f64,
}

/// Scratch of one thread for translations of order up to `order`.
pub struct Scratch<T> {
    /// One degree, before and after a step.
    a: Vec<T>,
    b: Vec<T>,
    /// A whole expansion by m, and one in the usual order.
    x: Vec<T>,
    y: Vec<T>,
    tables: Vec<T>,
    order: usize,
}

impl<T: Real> Scratch<T> {
    pub fn new(order: usize, components: usize) -> Self {
        let register = WIDEST * components;
        Self {
            a: memory::filled(T::ZERO, 2 * order.max(1) * register),
            b: memory::filled(T::ZERO, 2 * order.max(1) * register),
            x: memory::filled(T::ZERO, (order * order).max(1) * register),
            y: memory::filled(T::ZERO, (order * order).max(1) * register),
            tables: memory::filled(T::ZERO, TABLES * (order + 1) * WIDEST),
            order,
        }
    }
}

/// cos mα, sin mα, cos mβ, sin mβ; the factors of a degree that enters and of one that leaves; powers of the axial step.
const TABLES: usize = 7;

/// Angles and powers of up to LANES pairs, ready for any number of components.
pub struct Batch {
    kind: Shift,
    p: usize,
}

impl Batch {
    /// Prepares `steps` (at most LANES) for order `p`.
    #[inline(always)]
    pub fn new<S: Simd, T: Real>(s: S, kind: Shift, p: usize, steps: &[Step], scratch: &mut Scratch<T>) -> Self {
        let w = Lane::<S, T>::LANES;
        assert!(steps.len() <= w && p <= scratch.order && !steps.is_empty());
        // M2M expands R(X - c') about c, so its axis is c - c'; M2L and L2L look from the giver to the receiver.
        let sign = if kind == Shift::M2m { -1.0 } else { 1.0 };
        let mut g = [[T::ZERO; WIDEST]; 6];
        for lane in 0..w {
            let step = steps[lane.min(steps.len() - 1)];
            let [x, y, z] = step.d;
            let live = if lane < steps.len() { 1.0 } else { 0.0 };
            for (k, v) in [sign * x, sign * y, sign * z, step.from_radius, step.to_radius, live].into_iter().enumerate()
            {
                g[k][lane] = T::of(v);
            }
        }
        let [x, y, z, from, to, live] = each(|k| Lane::<S, T>::load(s, &g[k]));
        let (zero, one) = (Lane::zero(s), Lane::splat(s, T::ONE));
        let rho2 = x.fma(x, y * y);
        let r2 = z.fma(z, rho2);
        let (rho, r) = (rho2.sqrt(), r2.sqrt());
        let over = |a: Lane<S, T>, b: Lane<S, T>, none: Lane<S, T>| zero.lt(b).select(a / b, none);
        let (ca, sa) = (over(x, rho, one), over(y, rho, zero));
        let (cb, sb) = (over(z, r, one), over(rho, r, zero));
        let (enters, leaves, power, factor) = match kind {
            Shift::M2l => (from / r, to / r, one, one / r),
            Shift::M2m => (from / to, one, r / to, one),
            Shift::L2l => (one, to / from, r / from, one),
        };
        let stride = (scratch.order + 1) * WIDEST;
        let mut at = [one, zero, one, zero, live, factor, one];
        for m in 0..p {
            for (k, value) in at.into_iter().enumerate() {
                value.store(&mut scratch.tables[k * stride + m * w..]);
            }
            let [c, v, d, u, e, l, q] = at;
            at =
                [c * ca - v * sa, v * ca + c * sa, d * cb - u * sb, u * cb + d * sb, e * enters, l * leaves, q * power];
        }
        Self { kind, p }
    }

    /// Translates all `C` components of the expansions `[component][stride]` in `from`, one a lane; the result is added to
    /// `sum[(i·C + component)·LANES + lane]`.
    #[inline(always)]
    pub fn translate<S: Simd, T: Real, const C: usize>(
        &self,
        s: S,
        ops: &Operators<T>,
        scratch: &mut Scratch<T>,
        stride: usize,
        from: &[&[T]],
        sum: &mut [T],
    ) {
        let w = Lane::<S, T>::LANES;
        assert!(self.p <= ops.order && ops.order <= scratch.order);
        let Scratch { a, b, x, y, tables, order } = scratch;
        let table = (*order + 1) * WIDEST;
        let t: [&[T]; TABLES] = each(|k| &tables[k * table..(k + 1) * table]);
        for (n, degree) in ops.degrees[..self.p].iter().enumerate() {
            outline(s, Forward::<T, C> { degree, n, from, stride, t, a, b, x });
        }
        match self.kind {
            Shift::M2l => outline(s, M2l::<T, C> { ops, p: self.p, x, y }),
            Shift::M2m => axial_shift::<S, T, C, false>(s, ops, self.p, t[6], x, y),
            Shift::L2l => axial_shift::<S, T, C, true>(s, ops, self.p, t[6], x, y),
        }
        for (n, degree) in ops.degrees[..self.p].iter().enumerate() {
            let range = n * n * C * w..(n + 1) * (n + 1) * C * w;
            outline(s, Back::<T, C> { degree, n, y: &y[range.clone()], t, a, sum: &mut sum[range] });
        }
    }
}

/// One degree from the expansions to the frame of the pair, by m.
struct Forward<'a, 'b, T, const C: usize> {
    degree: &'a Degree<T>,
    n: usize,
    from: &'a [&'a [T]],
    stride: usize,
    t: [&'a [T]; TABLES],
    a: &'b mut [T],
    b: &'b mut [T],
    x: &'b mut [T],
}

impl<T: Real, const C: usize> Kernel for Forward<'_, '_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { degree, n, from, stride, t, a, b, x } = self;
        let w = Lane::<S, T>::LANES;
        let factor = Lane::load(s, &t[4][n * w..]);
        dense::gather::<S, T, C>(s, from, [n * n, stride, 2 * n + 1], factor, a);
        degree.rotations.rotate::<S, T, C>(s, t[0], t[1], a);
        degree.swap_then_rotate::<S, C>(s, a, &Rotation { cos: t[2], sin: t[3], back: true, add: None }, b);
        degree.swap.iter().for_each(|q| q.apply::<S, C>(s, b, &q.by_m, x));
    }
}

/// One degree from the frame of the pair back, added to the sum.
struct Back<'a, 'b, T, const C: usize> {
    degree: &'a Degree<T>,
    n: usize,
    y: &'a [T],
    t: [&'a [T]; TABLES],
    a: &'b mut [T],
    sum: &'b mut [T],
}

impl<T: Real, const C: usize> Kernel for Back<'_, '_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { degree, n, y, t, a, sum } = self;
        let factor = Lane::load(s, &t[5][n * Lane::<S, T>::LANES..]);
        degree.swap_then_rotate::<S, C>(s, y, &Rotation { cos: t[2], sin: t[3], back: false, add: None }, a);
        degree.swap_then_rotate::<S, C>(s, a, &Rotation { cos: t[0], sin: t[1], back: true, add: Some(factor) }, sum);
    }
}

impl<T: Real> Degree<T> {
    /// Swap, then rotation about z.
    #[inline(always)]
    fn swap_then_rotate<S: Simd, const C: usize>(&self, s: S, x: &[T], rotation: &Rotation<'_, S, T>, y: &mut [T]) {
        for (parity, [cos, sin]) in self.cos_sin_blocks.iter().enumerate() {
            let part = |k: usize| {
                let q = &self.swap[k];
                Part { matrix: &q.matrix, x: &x[q.from * C * Lane::<S, T>::LANES..], to: &q.inside }
            };
            let (cos, sin) = (part(*cos), part(*sin));
            // Even m: cos leads with m = 0, which no rotation moves.
            let (unpaired, first) = if parity == 0 { (1, 2) } else { (0, 1) };
            RowPairs { cos, sin, unpaired, first }.run::<S, C>(s, rotation, y);
        }
    }
}

impl<T: Real> Swap<T> {
    #[inline(always)]
    fn apply<S: Simd, const C: usize>(&self, s: S, x: &[T], to: &Destinations, y: &mut [T]) {
        let x = &x[self.from * C * Lane::<S, T>::LANES..];
        match self.size {
            0 => {}
            1 => self.matrix.apply::<S, C>(s, [1, 1], x, to, y),
            2 => self.matrix.apply::<S, C>(s, [2, 2], x, to, y),
            3 => self.matrix.apply::<S, C>(s, [3, 3], x, to, y),
            4 => self.matrix.apply::<S, C>(s, [4, 4], x, to, y),
            k => self.matrix.apply::<S, C>(s, [k, k], x, to, y),
        }
    }
}

/// Along the axis, multipole to local.
struct M2l<'a, 'b, T, const C: usize> {
    ops: &'a Operators<T>,
    p: usize,
    x: &'a [T],
    y: &'b mut [T],
}

impl<T: Real, const C: usize> Kernel for M2l<'_, '_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = Lane::<S, T>::LANES;
        for (m, axial) in self.ops.axial[..self.p].iter().enumerate() {
            for (start, to) in axial.ends.iter().take(m + 1) {
                axial.m2l.apply::<S, C>(s, [self.p - m; 2], &self.x[start * C * w..], to, self.y);
            }
        }
    }
}

/// Regular shift: y_n = Σ_{l≤n} A u^(n-l) x_l (M2M), or its transpose y_l = Σ_{n≥l} A u^(n-l) x_n (L2L).
#[inline(always)]
fn axial_shift<S: Simd, T: Real, const C: usize, const LOCAL: bool>(
    s: S,
    ops: &Operators<T>,
    p: usize,
    u: &[T],
    x: &[T],
    y: &mut [T],
) {
    let w = Lane::<S, T>::LANES;
    for (m, axial) in ops.axial[..p].iter().enumerate() {
        for (sin, (start, _)) in axial.ends.iter().enumerate().take(m + 1) {
            for to in m..p {
                let mut sum = [Lane::<S, T>::zero(s); C];
                for from in if LOCAL { to..p } else { m..to + 1 } {
                    let (n, l) = if LOCAL { (from, to) } else { (to, from) };
                    let a = axial.shift[(n - m) * (ops.order - m) + l - m];
                    let f = Lane::splat(s, a) * Lane::load(s, &u[(n - l) * w..]);
                    let x = &x[(start + from - m) * C * w..];
                    for c in 0..C {
                        sum[c] = f.fma(Lane::load(s, &x[c * w..]), sum[c]);
                    }
                }
                let y = &mut y[index(to, m, sin == 1) * C * w..];
                for c in 0..C {
                    sum[c].store(&mut y[c * w..]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Kernel, dispatch};

    struct Once<'a, T: Real> {
        kind: Shift,
        p: usize,
        steps: &'a [Step],
        from: &'a [Vec<T>],
        to: &'a mut [Vec<T>],
    }

    impl<T: Real> Kernel for Once<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let w = Lane::<S, T>::LANES;
            let ops = Operators::new(self.p + 2);
            let mut scratch = Scratch::new(self.p + 2, 1);
            for k in (0..self.steps.len()).step_by(w) {
                let steps = &self.steps[k..(k + w).min(self.steps.len())];
                let batch = Batch::new(s, self.kind, self.p, steps, &mut scratch);
                let mut sum = vec![T::ZERO; self.p * self.p * w];
                let from: Vec<&[T]> = self.from[k..k + steps.len()].iter().map(|f| &f[..]).collect();
                batch.translate::<S, T, 1>(s, &ops, &mut scratch, 0, &from, &mut sum);
                for lane in 0..steps.len() {
                    for i in 0..self.p * self.p {
                        self.to[k + lane][i] = sum[i * w + lane];
                    }
                }
            }
        }
    }

    fn steps() -> Vec<[f64; 3]> {
        let mut d = vec![[0.0, 0.0, 3.0], [0.0, 0.0, -3.0], [3.0, 0.0, 0.0], [0.0, -2.5, 0.0]];
        d.extend((0..15).map(|k| {
            let t = k as f64;
            [2.5 * (t * 1.3).cos() + 0.4, 2.7 * (t * 1.3).sin(), 1.5 * (t * 0.7).cos()]
        }));
        d
    }

    /// Multipoles of a charge, moved (M2M), turned to a local expansion (M2L), moved (L2L) and evaluated: 1/r.
    fn chain<T: Real>(p: usize) -> f64 {
        let (source, target) = ([0.11, -0.17, 0.21], [0.15, 0.12, -0.2]);
        let d = steps();
        let n = p * p;
        let regular = |x: [f64; 3], r: f64| -> Vec<T> {
            let mut v = vec![0.0; n];
            harmonics::regular(p, x.map(|c| c / r), &mut v);
            v.into_iter().map(T::of).collect()
        };
        let (child, parent) = ([0.1, -0.1, 0.1], 0.7);
        let m: Vec<Vec<T>> = d.iter().map(|_| regular(std::array::from_fn(|i| source[i] - child[i]), 0.3)).collect();
        let run = |kind, steps: Vec<Step>, from: &[Vec<T>]| {
            let mut to = vec![vec![T::ZERO; n]; from.len()];
            dispatch(Once { kind, p, steps: &steps, from, to: &mut to });
            to
        };
        let up = |_: &[f64; 3]| Step { d: child.map(|c| -c), from_radius: 0.3, to_radius: parent };
        let m = run(Shift::M2m, d.iter().map(up).collect(), &m);
        let across = |d: &[f64; 3]| Step { d: *d, from_radius: parent, to_radius: 0.6 };
        let l = run(Shift::M2l, d.iter().map(across).collect(), &m);
        let down = |_: &[f64; 3]| Step { d: [0.1, 0.1, -0.1], from_radius: 0.6, to_radius: 0.4 };
        let l = run(Shift::L2l, d.iter().map(down).collect(), &l);
        let r = regular([target[0] - 0.1, target[1] - 0.1, target[2] + 0.1], 1.0);
        let mut worst: f64 = 0.0;
        for (d, l) in d.iter().zip(&l) {
            let mut sum = 0.0;
            for k in 0..p {
                let s: f64 = (k * k..(k + 1) * (k + 1)).map(|i| l[i].f64() * r[i].f64()).sum();
                sum += s / 0.4f64.powi(k as i32);
            }
            let r2: f64 = (0..3).map(|i| (d[i] + target[i] - source[i]).powi(2)).sum();
            worst = worst.max((sum * r2.sqrt() - 1.0).abs());
        }
        worst
    }

    #[test]
    fn translations_reproduce_the_kernel() {
        assert!(chain::<f64>(4) < 1e-2, "{}", chain::<f64>(4));
        assert!(chain::<f64>(12) < 1e-7, "{}", chain::<f64>(12));
        assert!(chain::<f64>(30) < 2e-14, "{}", chain::<f64>(30));
        assert!(chain::<f32>(12) < 2e-6, "{}", chain::<f32>(12));
    }
}
