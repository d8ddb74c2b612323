//! The linear operators of the expansions on lanes: harmonics at points, rotation, translation.
//!
//! Enters: expansions in the layout of `math::harmonics`, scaled by the radius of their cell (a multipole coefficient of
//! degree n is divided by radius^n, a local one multiplied), so that they are O(1) whatever the unit of length.
//! Leaves: translated expansions, one pair of cells per lane: any pairs may share a register, whatever their directions.
//!
//! A translation is rotation – axial translation – rotation back (Gumerov & Duraiswami 2008 §3), 2 p³ + 8 p²
//! multiplications: the rotation that brings the direction (α, β) to the z axis is z-turn(α), swap y↔z, z-turn(-β), swap,
//! so that the only matrices are constants.
//!
//! Unsafe: raw pointers into scratch whose length is checked once per call; bounds checks in these loops cost a third.

use crate::math::harmonics::{self, index};
use crate::simd::{Kernel, Lane, Real, Simd, outline};

/// A square constant matrix applied to the coefficients `from..from+size`, result at `to..`.
struct Block<T> {
    from: usize,
    to: usize,
    size: usize,
    entries: Vec<T>,
}

/// Constants for all orders up to `order`.
pub struct Operators<T> {
    pub order: usize,
    diagonal: Vec<T>,
    /// (a, b) of the vertical recurrence at n(n+1)/2 + m.
    vertical: Vec<(T, T)>,
    /// (cos index, sin index, m) of every pair that a turn about z mixes, degree after degree.
    turns: Vec<(u32, u32, u32)>,
    /// Four blocks a degree.
    swap: Vec<[Block<T>; 4]>,
    /// For each m: [l-m][n-m], (order-m)².
    m2l: Vec<Vec<T>>,
    /// For each m: [n-m][l-m], zero above the diagonal.
    shift: Vec<Vec<T>>,
    /// For each axis: (to, from, weight) with ∂(Σ c R) = Σ c_from weight R_to.
    pub derivative: [Vec<(u32, u32, T)>; 3],
}

fn tri(n: usize, m: usize) -> usize {
    n * (n + 1) / 2 + m
}

impl<T: Real> Operators<T> {
    pub fn new(order: usize) -> Self {
        let per_m = |f: &dyn Fn(usize, usize, usize) -> f64| -> Vec<Vec<T>> {
            (0..order)
                .map(|m| {
                    (m..order).flat_map(|l| (m..order).map(move |n| (l, n))).map(|(l, n)| T::of(f(l, n, m))).collect()
                })
                .collect()
        };
        let mut derivative = [vec![], vec![], vec![]];
        for (axis, list) in derivative.iter_mut().enumerate() {
            for n in 0..order {
                for m in 0..=n {
                    for sin in [false, true] {
                        if !(sin && m == 0) {
                            let from = index(n, m, sin) as u32;
                            let terms = harmonics::derivative(n, m, sin, axis);
                            list.extend(terms.into_iter().map(|(to, w)| (to as u32, from, T::of(w))));
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
            turns: (0..order)
                .flat_map(|n| (1..=n).map(move |m| (index(n, m, false) as u32, index(n, m, true) as u32, m as u32)))
                .collect(),
            swap: (0..order)
                .map(|n| {
                    std::array::from_fn(|k| {
                        let b = &harmonics::swap(n)[k];
                        let entries = b.entries.iter().map(|&v| T::of(v)).collect();
                        Block { from: b.from, to: b.to, size: b.size, entries }
                    })
                })
                .collect(),
            m2l: per_m(&|l, n, m| harmonics::m2l_axial(n, l, m)),
            shift: per_m(&|n, l, m| if l <= n { harmonics::shift_axial(n, l, m) } else { 0.0 }),
            derivative,
        }
    }

    /// All R of degrees 0 .. p-1 at one point per lane; `out[i·LANES..]` is coefficient i.
    #[inline(always)]
    pub fn regular<S: Simd>(&self, s: S, p: usize, [x, y, z]: [Lane<S, T>; 3], out: &mut [T]) {
        let w = Lane::<S, T>::LANES;
        assert!(p <= self.order && out.len() >= p * p * w);
        let out = out.as_mut_ptr();
        let r2 = x.fma(x, y.fma(y, z * z));
        let zero = Lane::zero(s);
        let (mut c, mut v) = (Lane::splat(s, T::ONE), zero);
        for m in 0..p {
            if m > 0 {
                let f = Lane::splat(s, self.diagonal[m]);
                (c, v) = (f * x.fma(c, -(y * v)), f * x.fma(v, y * c));
            }
            let (mut c0, mut c1, mut s0, mut s1) = (zero, c, zero, v);
            // SAFETY: index(n, ..) < p² for n < p, checked above.
            unsafe {
                c1.store_ptr(out.add(index(m, m, false) * w));
                if m > 0 {
                    s1.store_ptr(out.add(index(m, m, true) * w));
                }
                for n in m + 1..p {
                    let (a, b) = *self.vertical.get_unchecked(tri(n, m));
                    let (az, br) = (Lane::splat(s, a) * z, Lane::splat(s, b) * r2);
                    (c0, c1) = (c1, az * c1 - br * c0);
                    c1.store_ptr(out.add(index(n, m, false) * w));
                    if m > 0 {
                        (s0, s1) = (s1, az * s1 - br * s0);
                        s1.store_ptr(out.add(index(n, m, true) * w));
                    }
                }
            }
        }
    }
}

/// Rows of a constant matrix times `C` columns of lanes: y[r][c] = Σ_j m[r·stride + j] x[j][c], R rows.
///
/// # Safety
/// `m` holds R rows of `stride`, `x` `k`·C and `y` R·C registers.
#[inline(always)]
unsafe fn rows<S: Simd, T: Real, const R: usize, const C: usize>(
    s: S,
    k: usize,
    m: *const T,
    stride: usize,
    x: *const T,
    y: *mut T,
) {
    let w = Lane::<S, T>::LANES;
    let mut acc = [[Lane::<S, T>::zero(s); C]; R];
    // SAFETY: the caller's promise.
    unsafe {
        for j in 0..k {
            let v: [Lane<S, T>; C] = std::array::from_fn(|c| Lane::load_ptr(s, x.add((j * C + c) * w)));
            for (r, a) in acc.iter_mut().enumerate() {
                let f = Lane::splat(s, *m.add(r * stride + j));
                for c in 0..C {
                    a[c] = f.fma(v[c], a[c]);
                }
            }
        }
        for (r, a) in acc.iter().enumerate() {
            for (c, a) in a.iter().enumerate() {
                a.store_ptr(y.add((r * C + c) * w));
            }
        }
    }
}

/// A whole matrix of `n` rows and `k` columns times `C` columns of lanes.
///
/// # Safety
/// As `rows`, for `n` rows.
#[inline(always)]
unsafe fn matrix<S: Simd, T: Real, const C: usize>(
    s: S,
    n: usize,
    k: usize,
    m: *const T,
    stride: usize,
    x: *const T,
    y: *mut T,
) {
    let w = Lane::<S, T>::LANES;
    let most = if C == 1 { 8 } else { 4 };
    let mut i = 0;
    // SAFETY: the caller's promise; i + R <= n in every arm.
    unsafe {
        while n - i >= most {
            if C == 1 {
                rows::<S, T, 8, C>(s, k, m.add(i * stride), stride, x, y.add(i * C * w));
            } else {
                rows::<S, T, 4, C>(s, k, m.add(i * stride), stride, x, y.add(i * C * w));
            }
            i += most;
        }
        let (m, y) = (m.add(i * stride), y.add(i * C * w));
        match n - i {
            7 if C == 1 => rows::<S, T, 7, C>(s, k, m, stride, x, y),
            6 if C == 1 => rows::<S, T, 6, C>(s, k, m, stride, x, y),
            5 if C == 1 => rows::<S, T, 5, C>(s, k, m, stride, x, y),
            4 => rows::<S, T, 4, C>(s, k, m, stride, x, y),
            3 => rows::<S, T, 3, C>(s, k, m, stride, x, y),
            2 => rows::<S, T, 2, C>(s, k, m, stride, x, y),
            1 => rows::<S, T, 1, C>(s, k, m, stride, x, y),
            _ => {}
        }
    }
}

/// A small square matrix: the loop over columns is unrolled.
///
/// # Safety
/// `m` holds N², `x` and `y` N·C registers.
#[inline(always)]
unsafe fn square<S: Simd, T: Real, const N: usize, const C: usize>(s: S, m: *const T, x: *const T, y: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { matrix::<S, T, C>(s, N, N, m, N, x, y) }
}

/// Matrix of constants `[rows][stride]` times lanes `x[k]`, for evaluation of expansions.
#[inline(always)]
pub fn times<S: Simd, T: Real>(s: S, n: usize, k: usize, m: &[T], stride: usize, x: &[T], y: &mut [T]) {
    let w = Lane::<S, T>::LANES;
    assert!(k <= stride && m.len() >= n * stride && x.len() >= k * w && y.len() >= n * w);
    // SAFETY: lengths just checked.
    unsafe { matrix::<S, T, 1>(s, n, k, m.as_ptr(), stride, x.as_ptr(), y.as_mut_ptr()) }
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

/// Scratch of one thread for translations of order up to `order`: registers are 16 numbers wide at most.
pub struct Scratch<T> {
    x: Vec<T>,
    y: Vec<T>,
    /// cos mα, sin mα, cos mβ, sin mβ, and two tables of powers, [order] registers each.
    turn: Vec<T>,
    pack: Vec<T>,
    order: usize,
}

/// Widest register, in numbers.
pub const WIDEST: usize = 16;

impl<T: Real> Scratch<T> {
    pub fn new(order: usize, components: usize) -> Self {
        let n = (order * order).max(1) * WIDEST * components;
        Self {
            x: vec![T::ZERO; n],
            y: vec![T::ZERO; n],
            turn: vec![T::ZERO; 6 * (order + 1) * WIDEST],
            pack: vec![T::ZERO; 2 * (order + 1) * WIDEST * components],
            order,
        }
    }
}

/// Angles and powers of up to LANES pairs, ready for any number of components.
pub struct Batch {
    kind: Shift,
    p: usize,
    active: usize,
}

impl Batch {
    /// Prepares `steps` (at most LANES) for order `p`.
    #[inline(always)]
    pub fn new<S: Simd, T: Real>(s: S, kind: Shift, p: usize, steps: &[Step], scratch: &mut Scratch<T>) -> Self {
        let w = Lane::<S, T>::LANES;
        assert!(steps.len() <= w && p <= scratch.order && !steps.is_empty());
        let mut g = [[T::ZERO; WIDEST]; 7];
        for lane in 0..w {
            let step = steps[lane.min(steps.len() - 1)];
            // M2M expands R(X - c') about c, so its axis is c - c'; M2L and L2L look from the giver to the receiver.
            let d = if kind == Shift::M2m { step.d.map(|v| -v) } else { step.d };
            let rho2 = d[0] * d[0] + d[1] * d[1];
            let r = (rho2 + d[2] * d[2]).sqrt();
            let rho = rho2.sqrt();
            let (ca, sa) = if rho > 0.0 { (d[0] / rho, d[1] / rho) } else { (1.0, 0.0) };
            let (cb, sb) = if r > 0.0 { (d[2] / r, rho / r) } else { (1.0, 0.0) };
            let (pre, post, factor) = match kind {
                Shift::M2l => (step.from_radius / r, step.to_radius / r, 1.0 / r),
                Shift::M2m => (step.from_radius / step.to_radius, r / step.to_radius, 1.0),
                Shift::L2l => (r / step.from_radius, step.to_radius / step.from_radius, 1.0),
            };
            for (k, v) in [ca, sa, cb, sb, pre, post, factor].into_iter().enumerate() {
                g[k][lane] = T::of(v);
            }
        }
        let v: [Lane<S, T>; 7] = std::array::from_fn(|k| Lane::load(s, &g[k]));
        let stride = (scratch.order + 1) * WIDEST;
        let (mut ca, mut sa) = (Lane::splat(s, T::ONE), Lane::zero(s));
        let (mut cb, mut sb) = (ca, sa);
        let (mut pre, mut post) = (Lane::splat(s, T::ONE), v[6]);
        for m in 0..p {
            for (k, value) in [ca, sa, cb, sb, pre, post].into_iter().enumerate() {
                value.store(&mut scratch.turn[k * stride + m * w..]);
            }
            (ca, sa) = (ca * v[0] - sa * v[1], sa * v[0] + ca * v[1]);
            (cb, sb) = (cb * v[2] - sb * v[3], sb * v[2] + cb * v[3]);
            pre = pre * v[4];
            post = post * v[5];
        }
        Self { kind, p, active: steps.len() }
    }

    /// Translates all `C` components: `source(lane)` gives the expansion `[component][stride]` of the pair in `lane`; the
    /// result is added to `sum[(i·C + component)·LANES + lane]`.
    #[inline(always)]
    pub fn translate<'a, S: Simd, T: Real, const C: usize>(
        &self,
        s: S,
        ops: &Operators<T>,
        scratch: &mut Scratch<T>,
        stride: usize,
        source: impl Fn(usize) -> &'a [T],
        sum: &mut [T],
    ) {
        let w = Lane::<S, T>::LANES;
        let (p, n) = (self.p, self.p * self.p);
        assert!(p <= ops.order && sum.len() >= n * C * w && scratch.x.len() >= n * C * w);
        gather::<S, T, C>(self.active, n, stride, source, &mut scratch.x);
        let table = (scratch.order + 1) * WIDEST;
        let (x, y) = (scratch.x.as_mut_ptr(), scratch.y.as_mut_ptr());
        let turn = scratch.turn.as_ptr();
        // SAFETY: x, y hold order²·C registers, turn 6 tables of order + 1 and pack 2·C; p <= order was checked in `new`.
        unsafe {
            let (ca, sa, cb, sb) = (turn, turn.add(table), turn.add(2 * table), turn.add(3 * table));
            let (pre, post) = (turn.add(4 * table), turn.add(5 * table));
            z_turn::<S, T, C, false>(s, ops, p, ca, sa, x);
            swap::<S, T, C>(s, ops, p, x, y);
            z_turn::<S, T, C, true>(s, ops, p, cb, sb, y);
            swap::<S, T, C>(s, ops, p, y, x);
            match self.kind {
                Shift::M2l => axial_m2l::<S, T, C>(s, ops, p, pre, post, x, y, scratch.pack.as_mut_ptr()),
                Shift::M2m => axial_shift::<S, T, C, false>(s, ops, p, pre, post, x, y),
                Shift::L2l => axial_shift::<S, T, C, true>(s, ops, p, post, pre, x, y),
            }
            swap::<S, T, C>(s, ops, p, y, x);
            z_turn::<S, T, C, false>(s, ops, p, cb, sb, x);
            swap::<S, T, C>(s, ops, p, x, y);
            z_turn::<S, T, C, true>(s, ops, p, ca, sa, y);
            let sum = sum.as_mut_ptr();
            for i in 0..n * C {
                (Lane::<S, T>::load_ptr(s, sum.add(i * w)) + Lane::load_ptr(s, y.add(i * w))).store_ptr(sum.add(i * w));
            }
        }
    }
}

/// Coefficients of up to LANES expansions side by side, `x[i][component][lane]`; idle lanes are zero.
#[inline(always)]
fn gather<'a, S: Simd, T: Real, const C: usize>(
    active: usize,
    n: usize,
    stride: usize,
    source: impl Fn(usize) -> &'a [T],
    x: &mut [T],
) {
    let w = Lane::<S, T>::LANES;
    let x = &mut x[..n * C * w];
    if active < w {
        x.fill(T::ZERO);
    }
    for lane in 0..active {
        let from = source(lane);
        let parts: [&[T]; C] = std::array::from_fn(|c| &from[c * stride..][..n]);
        for (i, to) in x.chunks_exact_mut(C * w).enumerate() {
            for c in 0..C {
                to[c * w + lane] = parts[c][i];
            }
        }
    }
}

/// Turn about z by +angle of the frame (`back`: by -angle): c' = c cos mα + s sin mα, s' = s cos mα - c sin mα.
struct Turn<'a, T, const C: usize> {
    ops: &'a Operators<T>,
    p: usize,
    back: bool,
    cos: *const T,
    sin: *const T,
    x: *mut T,
}

/// # Safety
/// `x` holds p²·C registers, `cos`, `sin` p.
#[inline(always)]
unsafe fn z_turn<S: Simd, T: Real, const C: usize, const BACK: bool>(
    s: S,
    ops: &Operators<T>,
    p: usize,
    cos: *const T,
    sin: *const T,
    x: *mut T,
) {
    outline(s, Turn::<T, C> { ops, p, back: BACK, cos, sin, x });
}

impl<T: Real, const C: usize> Kernel for Turn<'_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = Lane::<S, T>::LANES;
        let Self { ops, p, back, cos, sin, x } = self;
        let sign = Lane::<S, T>::splat(s, if back { -T::ONE } else { T::ONE });
        for &(i, j, m) in &ops.turns[..p * p.saturating_sub(1) / 2] {
            // SAFETY: `z_turn`'s promise; every index is below p².
            unsafe {
                let cm = Lane::load_ptr(s, cos.add(m as usize * w));
                let sm = Lane::load_ptr(s, sin.add(m as usize * w)) * sign;
                let (x, y) = (x.add(i as usize * C * w), x.add(j as usize * C * w));
                for c in 0..C {
                    let (a, b) = (Lane::<S, T>::load_ptr(s, x.add(c * w)), Lane::<S, T>::load_ptr(s, y.add(c * w)));
                    b.fma(sm, a * cm).store_ptr(x.add(c * w));
                    a.fnma(sm, b * cm).store_ptr(y.add(c * w));
                }
            }
        }
    }
}

/// Exchange of y and z.
///
/// # Safety
/// `x`, `y` hold p²·C registers and do not overlap.
#[inline(always)]
unsafe fn swap<S: Simd, T: Real, const C: usize>(s: S, ops: &Operators<T>, p: usize, x: *const T, y: *mut T) {
    outline(s, Swap::<T, C> { ops, p, x, y });
}

struct Swap<'a, T, const C: usize> {
    ops: &'a Operators<T>,
    p: usize,
    x: *const T,
    y: *mut T,
}

impl<T: Real, const C: usize> Kernel for Swap<'_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { ops, p, x, y } = self;
        let w = Lane::<S, T>::LANES * C;
        for b in ops.swap[..p].iter().flatten() {
            // SAFETY: `swap`'s promise; from + size and to + size are at most p².
            unsafe {
                let (m, x, y) = (b.entries.as_ptr(), x.add(b.from * w), y.add(b.to * w));
                match b.size {
                    0 => {}
                    1 => square::<S, T, 1, C>(s, m, x, y),
                    2 => square::<S, T, 2, C>(s, m, x, y),
                    3 => square::<S, T, 3, C>(s, m, x, y),
                    4 => square::<S, T, 4, C>(s, m, x, y),
                    k => matrix::<S, T, C>(s, k, k, m, k, x, y),
                }
            }
        }
    }
}

/// # Safety
/// `x`, `y` hold p²·C registers, `pre`, `post` p, `pack` 2 C (order+1).
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn axial_m2l<S: Simd, T: Real, const C: usize>(
    s: S,
    ops: &Operators<T>,
    p: usize,
    pre: *const T,
    post: *const T,
    x: *const T,
    y: *mut T,
    pack: *mut T,
) {
    let w = Lane::<S, T>::LANES;
    // SAFETY: the caller's promise; indices are below p².
    unsafe {
        let out = pack.add((p + 1) * C * w);
        for m in 0..p {
            for sin in [false, true] {
                if sin && m == 0 {
                    continue;
                }
                for n in m..p {
                    let f = Lane::<S, T>::load_ptr(s, pre.add(n * w));
                    let (from, to) = (x.add(index(n, m, sin) * C * w), pack.add((n - m) * C * w));
                    for c in 0..C {
                        (Lane::load_ptr(s, from.add(c * w)) * f).store_ptr(to.add(c * w));
                    }
                }
                matrix::<S, T, C>(s, p - m, p - m, ops.m2l[m].as_ptr(), ops.order - m, pack, out);
                for l in m..p {
                    let f = Lane::<S, T>::load_ptr(s, post.add(l * w));
                    let (from, to) = (out.add((l - m) * C * w), y.add(index(l, m, sin) * C * w));
                    for c in 0..C {
                        (Lane::load_ptr(s, from.add(c * w)) * f).store_ptr(to.add(c * w));
                    }
                }
            }
        }
    }
}

/// Regular shift: y_n = Σ_{l≤n} A u^(n-l) v^l x_l (M2M), or its transpose y_l = v^l Σ_{n≥l} A u^(n-l) x_n (L2L).
///
/// # Safety
/// `x`, `y` hold p²·C registers, `v`, `u` p powers each.
#[inline(always)]
unsafe fn axial_shift<S: Simd, T: Real, const C: usize, const LOCAL: bool>(
    s: S,
    ops: &Operators<T>,
    p: usize,
    v: *const T,
    u: *const T,
    x: *const T,
    y: *mut T,
) {
    let w = Lane::<S, T>::LANES;
    for m in 0..p {
        let (a, stride) = (&ops.shift[m], ops.order - m);
        for sin in [false, true] {
            if sin && m == 0 {
                continue;
            }
            for to in m..p {
                let mut sum = [Lane::<S, T>::zero(s); C];
                let range = if LOCAL { to..p } else { m..to + 1 };
                // SAFETY: the caller's promise; indices are below p².
                unsafe {
                    for from in range {
                        let (n, l) = if LOCAL { (from, to) } else { (to, from) };
                        let mut f = Lane::splat(s, a[(n - m) * stride + l - m]) * Lane::load_ptr(s, u.add((n - l) * w));
                        if !LOCAL {
                            f = f * Lane::load_ptr(s, v.add(l * w));
                        }
                        let x = x.add(index(from, m, sin) * C * w);
                        for c in 0..C {
                            sum[c] = f.fma(Lane::load_ptr(s, x.add(c * w)), sum[c]);
                        }
                    }
                    let y = y.add(index(to, m, sin) * C * w);
                    for c in 0..C {
                        let f = if LOCAL { Lane::load_ptr(s, v.add(to * w)) } else { Lane::splat(s, T::ONE) };
                        (sum[c] * f).store_ptr(y.add(c * w));
                    }
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
                batch.translate::<S, T, 1>(s, &ops, &mut scratch, 0, |lane| &self.from[k + lane], &mut sum);
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
