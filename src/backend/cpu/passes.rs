//! The passes of the far field, in their order: P2M, M2M, M2L, L2L; L2P is called leaf by leaf with the near field.
//!
//! Enters: trees, lists, sorted sources. Leaves: local expansions of every target cell.
//! `C` is the number of harmonic components: 3 for the vector potential of a vortex field, 1 for charges.
//! Expansions live in `[cell][component][order²]`, in units of the cell's `scale`.

use super::lists::{CellLists, Seen, Subset};
use super::operators::{Batch, Operators, Scratch, Shift, Step, WIDEST};
use super::shared;
use super::tree::{Cell, Tree};
use crate::memory;
use crate::simd::dense;
use crate::simd::{Kernel, Lane, Real, Simd, dispatch, each};
use rayon::prelude::*;

/// Sources of one leaf, relative to its centre and in its unit: points, and lines of even strength.
#[derive(Default)]
pub struct LeafSources<T, const C: usize> {
    point: [Vec<T>; 3],
    point_strength: Vec<[T; C]>,
    middle: [Vec<T>; 3],
    half: [Vec<T>; 3],
    line_strength: Vec<[T; C]>,
}

impl<T: Real, const C: usize> LeafSources<T, C> {
    pub fn clear(&mut self) {
        [&mut self.point, &mut self.middle, &mut self.half].into_iter().flatten().for_each(Vec::clear);
        self.point_strength.clear();
        self.line_strength.clear();
    }
    pub fn push_point(&mut self, x: [T; 3], strength: [T; C]) {
        push(&mut self.point, x);
        memory::push(&mut self.point_strength, strength);
    }
    /// Takes the sources of a leaf in another precision.
    pub fn widen<X: Real>(&mut self, from: &LeafSources<X, C>) {
        let copy = |to: &mut [Vec<T>; 3], from: &[Vec<X>; 3]| {
            to.iter_mut().zip(from).for_each(|(to, from)| memory::extend(to, from.iter().map(|v| T::of(v.f64()))));
        };
        copy(&mut self.point, &from.point);
        copy(&mut self.middle, &from.middle);
        copy(&mut self.half, &from.half);
        let strengths = |from: &[[X; C]]| memory::collect(from.iter().map(|a| a.map(|v| T::of(v.f64()))));
        self.point_strength = strengths(&from.point_strength);
        self.line_strength = strengths(&from.line_strength);
    }
    /// Positions and strengths of the points.
    pub fn points(&self) -> impl Iterator<Item = ([f64; 3], [f64; C])> + '_ {
        let one = |(k, q): (usize, &[T; C])| (self.point.each_ref().map(|x| x[k].f64()), q.map(|v| v.f64()));
        self.point_strength.iter().enumerate().map(one)
    }
    /// Middles, half vectors and strengths of the lines.
    pub fn lines(&self) -> impl Iterator<Item = ([f64; 3], [f64; 3], [f64; C])> + '_ {
        let at = |rows: &[Vec<T>; 3], k: usize| rows.each_ref().map(|x| x[k].f64());
        let lines = self.line_strength.iter().enumerate();
        lines.map(move |(k, q)| (at(&self.middle, k), at(&self.half, k), q.map(|v| v.f64())))
    }
    /// `half`: from the middle to an end; `strength`: of the whole line.
    pub fn push_line(&mut self, middle: [T; 3], half: [T; 3], strength: [T; C]) {
        push(&mut self.middle, middle);
        push(&mut self.half, half);
        memory::push(&mut self.line_strength, strength);
    }
}

fn push<T>(to: &mut [Vec<T>; 3], x: [T; 3]) {
    to.iter_mut().zip(x).for_each(|(v, x)| memory::push(v, x));
}

/// One thread's scratch for all passes.
pub struct Work<T> {
    scratch: Scratch<T>,
    harmonics: Vec<T>,
    /// Harmonics at both ends of lines; empty until there are any.
    ends: [Vec<T>; 2],
    sum: Vec<T>,
}

impl<T: Real> Work<T> {
    pub fn new(order: usize, components: usize) -> Self {
        let n = order * order * WIDEST;
        Self {
            scratch: Scratch::new(order, components.max(1)),
            harmonics: memory::filled(T::ZERO, n),
            ends: [vec![], vec![]],
            sum: memory::filled(T::ZERO, n * components.max(1)),
        }
    }

    /// For `l2p` alone.
    pub fn at_targets(order: usize) -> Self {
        let harmonics = memory::filled(T::ZERO, order * order * WIDEST);
        Self { scratch: Scratch::new(0, 1), harmonics, ends: [vec![], vec![]], sum: vec![] }
    }
}

/// Multipoles of all leaves. `fill` lists the sources of a leaf.
pub fn p2m<T: Real, const C: usize>(
    ops: &Operators<T>,
    tree: &Tree,
    multipoles: &mut [T],
    fill: impl Fn(&Cell, &mut LeafSources<T, C>) + Sync,
) {
    let p = ops.order;
    shared(multipoles.par_chunks_mut(C * p * p).zip(&tree.cells)).filter(|(_, c)| c.is_leaf()).for_each_init(
        || (Work::new(p, C), LeafSources::default()),
        |(work, sources), (out, cell)| {
            sources.clear();
            fill(cell, sources);
            moments(ops, sources, work, out);
        },
    );
}

/// The multipole of one leaf.
pub fn moments<T: Real, const C: usize>(
    ops: &Operators<T>,
    sources: &LeafSources<T, C>,
    work: &mut Work<T>,
    out: &mut [T],
) {
    dispatch(P2m { ops, sources, work, out });
}

struct P2m<'a, T: Real, const C: usize> {
    ops: &'a Operators<T>,
    sources: &'a LeafSources<T, C>,
    work: &'a mut Work<T>,
    out: &'a mut [T],
}

impl<T: Real, const C: usize> Kernel for P2m<'_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (w, p) = (Lane::<S, T>::LANES, self.ops.order);
        let n = p * p;
        let Work { harmonics, ends, sum, .. } = self.work;
        let sum = &mut sum[..C * n * w];
        sum.fill(T::ZERO);
        let load = |x: &[Vec<T>; 3], k: usize| each(|i| Lane::load_part(s, &x[i][k..], T::ZERO));
        let from = self.sources;
        for (k, strength) in from.point_strength.chunks(w).enumerate() {
            self.ops.regular(s, p, load(&from.point, k * w), harmonics);
            add_moments(s, strength, &harmonics[..n * w], sum);
        }
        if !from.line_strength.is_empty() {
            ends.iter_mut().for_each(|e| memory::resize(e, n * WIDEST, T::ZERO));
        }
        for (k, strength) in from.line_strength.chunks(w).enumerate() {
            let [first, second] = &mut *ends;
            let (middle, half) = (load(&from.middle, k * w), load(&from.half, k * w));
            self.ops.mean(s, p, middle, half, [first, second], harmonics);
            add_moments(s, strength, &harmonics[..n * w], sum);
        }
        for (to, sum) in self.out.iter_mut().zip(sum.chunks_exact(w)) {
            *to = Lane::<S, T>::load(s, sum).sum();
        }
    }
}

/// Adds strength times harmonic to the moments `[component][coefficient]`, one source a lane; lanes without one add nothing.
#[inline(always)]
fn add_moments<S: Simd, T: Real, const C: usize>(s: S, strength: &[[T; C]], harmonics: &[T], sum: &mut [T]) {
    let w = Lane::<S, T>::LANES;
    let mut of = [[T::ZERO; WIDEST]; C];
    for (lane, v) in strength.iter().enumerate() {
        for c in 0..C {
            of[c][lane] = v[c];
        }
    }
    let of: [Lane<S, T>; C] = each(|c| Lane::load(s, &of[c]));
    for (i, r) in harmonics.chunks_exact(w).enumerate() {
        let r = Lane::load(s, r);
        for c in 0..C {
            let to = &mut sum[c * harmonics.len() + i * w..];
            of[c].fma(r, Lane::load(s, to)).store(to);
        }
    }
}

/// Multipoles of all inner cells from their children, deepest level first.
pub fn m2m<T: Real, const C: usize>(ops: &Operators<T>, tree: &Tree, multipoles: &mut [T]) {
    let size = C * ops.order * ops.order;
    for level in (0..tree.depth().saturating_sub(1)).rev() {
        let range = tree.level(level);
        let (upper, lower) = multipoles.split_at_mut(range.end * size);
        let below = range.end;
        shared(upper[range.start * size..].par_chunks_mut(size).zip(&tree.cells[range]))
            .filter(|(_, c)| !c.is_leaf())
            .for_each_init(
                || Work::new(ops.order, C),
                |work, (out, cell)| {
                    let first = cell.first_child as usize;
                    let children = &tree.cells[first..first + cell.children as usize];
                    let steps: Vec<Step> = memory::collect(children.iter().map(|c| step(c, cell)));
                    let from = &lower[(first - below) * size..];
                    let (order, give) = (|_: usize| ops.order, |k: usize| &from[k * size..(k + 1) * size]);
                    Translation::<T, C> { ops, kind: Shift::M2m, steps: &steps, order: &order, from: &give }
                        .run(work, out);
                },
            );
    }
}

/// Local expansions from the far lists; `shifts`: what images of the sources are moved by.
pub fn m2l<T: Real, const C: usize>(
    ops: &Operators<T>,
    [sources, targets]: [&Tree; 2],
    lists: &[CellLists],
    shifts: &[[f64; 3]],
    subset: Subset<'_>,
    multipoles: &[T],
    locals: &mut [T],
) {
    let size = C * ops.order * ops.order;
    shared(locals.par_chunks_mut(size).zip(&targets.cells).zip(lists).enumerate()).for_each_init(
        || (Work::new(ops.order, C), vec![]),
        |(work, steps), (k, ((out, cell), list))| {
            if !subset.has(k) {
                return;
            }
            if list.far.is_empty() {
                out.fill(T::ZERO);
                return;
            }
            steps.clear();
            let mut seen = Seen::new(cell);
            memory::extend(
                steps,
                list.far.iter().map(|f| step(&sources.cells[f.cell as usize], seen.through(f.image, shifts))),
            );
            let from = |k: usize| {
                let s = list.far[k].cell as usize;
                &multipoles[s * size..(s + 1) * size]
            };
            let order = |k: usize| list.far[k].order as usize;
            Translation::<T, C> { ops, kind: Shift::M2l, steps, order: &order, from: &from }.run(work, out);
        },
    );
}

/// Adds the parent's local expansion to each child's, top level first.
pub fn l2l<T: Real, const C: usize>(ops: &Operators<T>, tree: &Tree, subset: Subset<'_>, locals: &mut [T]) {
    let n = ops.order * ops.order;
    let size = C * n;
    for level in 0..tree.depth().saturating_sub(1) {
        let range = tree.level(level);
        let next = tree.level(level + 1);
        let (upper, lower) = locals.split_at_mut(range.end * size);
        // Children of one parent stand together: one task a parent, its children are the lanes.
        let mut groups = vec![];
        let mut rest = &mut lower[..(next.end - next.start) * size];
        for parent in range {
            let cell = &tree.cells[parent];
            let (mine, others) = rest.split_at_mut(cell.children as usize * size);
            if cell.children > 0 && subset.has(parent) {
                memory::push(&mut groups, (parent, mine));
            }
            rest = others;
        }
        shared(groups.into_par_iter()).for_each_init(
            || Work::new(ops.order, C),
            |work, (parent, out)| {
                let cell = &tree.cells[parent];
                let first = cell.first_child as usize;
                let children = &tree.cells[first..first + cell.children as usize];
                let steps: Vec<Step> = memory::collect(children.iter().map(|c| step(cell, c)));
                dispatch(Spread::<T, C> {
                    ops,
                    steps: &steps,
                    from: &upper[parent * size..(parent + 1) * size],
                    work,
                    out,
                });
            },
        );
    }
}

fn step(from: &Cell, to: &Cell) -> Step {
    Step { d: std::array::from_fn(|i| to.center[i] - from.center[i]), from_radius: from.scale, to_radius: to.scale }
}

/// Many expansions into one (M2M, M2L).
pub struct Translation<'a, T: Real, const C: usize> {
    pub ops: &'a Operators<T>,
    pub kind: Shift,
    pub steps: &'a [Step],
    /// Order of giver k, falling.
    pub order: &'a dyn Fn(usize) -> usize,
    /// Expansion of giver k.
    pub from: &'a dyn Fn(usize) -> &'a [T],
}

impl<T: Real, const C: usize> Translation<'_, T, C> {
    /// Overwrites `out`.
    pub fn run(self, work: &mut Work<T>, out: &mut [T]) {
        let Self { ops, kind, steps, order, from } = self;
        dispatch(Gather::<T, C> { ops, kind, steps, order, from, work, out });
    }
}

/// Lanes are givers, summed at the end.
struct Gather<'a, 'b, T: Real, const C: usize> {
    ops: &'a Operators<T>,
    kind: Shift,
    steps: &'a [Step],
    order: &'a dyn Fn(usize) -> usize,
    from: &'a dyn Fn(usize) -> &'a [T],
    work: &'b mut Work<T>,
    out: &'b mut [T],
}

impl<T: Real, const C: usize> Kernel for Gather<'_, '_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = Lane::<S, T>::LANES;
        let n = self.ops.order * self.ops.order;
        let used = (self.order)(0).pow(2);
        self.work.sum[..used * C * w].fill(T::ZERO);
        for k in (0..self.steps.len()).step_by(w) {
            let steps = &self.steps[k..(k + w).min(self.steps.len())];
            let batch = Batch::new(s, self.kind, (self.order)(k), steps, &mut self.work.scratch);
            let from: [&[T]; WIDEST] = each(|lane| (self.from)(k + lane.min(steps.len() - 1)));
            let sum = &mut self.work.sum[..];
            batch.translate::<S, T, C>(s, self.ops, &mut self.work.scratch, n, &from[..steps.len()], sum);
        }
        self.out.fill(T::ZERO);
        for (i, sum) in self.work.sum[..used * C * w].chunks_exact(w).enumerate() {
            self.out[i % C * n + i / C] = Lane::<S, T>::load(s, sum).sum();
        }
    }
}

/// One expansion into many (L2L): lanes are receivers; the result is added.
struct Spread<'a, T: Real, const C: usize> {
    ops: &'a Operators<T>,
    steps: &'a [Step],
    from: &'a [T],
    work: &'a mut Work<T>,
    out: &'a mut [T],
}

impl<T: Real, const C: usize> Kernel for Spread<'_, T, C> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = Lane::<S, T>::LANES;
        let n = self.ops.order * self.ops.order;
        for k in (0..self.steps.len()).step_by(w) {
            let steps = &self.steps[k..(k + w).min(self.steps.len())];
            let batch = Batch::new(s, Shift::L2l, self.ops.order, steps, &mut self.work.scratch);
            let sum = &mut self.work.sum[..n * C * w];
            sum.fill(T::ZERO);
            batch.translate::<S, T, C>(s, self.ops, &mut self.work.scratch, n, &[self.from], sum);
            for lane in 0..steps.len() {
                let to = &mut self.out[(k + lane) * C * n..][..C * n];
                for (i, sum) in sum.chunks_exact(w).enumerate() {
                    to[i % C * n + i / C] += sum[lane];
                }
            }
        }
    }
}

/// The field of one cell as scalar expansions, one row of order² a number wanted at the targets:
/// velocity (3 rows) and gradient (9 more) for C = 3, potential and its gradient (3 more) for C = 1.
pub fn field_rows<T: Real, const C: usize>(
    ops: &Operators<T>,
    local: &[T],
    scale: f64,
    gradient: bool,
    rows: &mut Vec<T>,
) {
    let n = ops.order * ops.order;
    rows.clear();
    let unit = T::of(1.0 / scale);
    let add = |rows: &mut [T], from: &[T], axis: usize, sign: T| {
        for &(to, i, w) in &ops.derivative[axis] {
            rows[to as usize] += sign * unit * w * from[i as usize];
        }
    };
    if C == 1 {
        memory::reserve(rows, n);
        rows.extend_from_slice(&local[..n]);
        if gradient {
            memory::resize(rows, 4 * n, T::ZERO);
            for axis in 0..3 {
                add(&mut rows[(1 + axis) * n..(2 + axis) * n], &local[..n], axis, T::ONE);
            }
        }
        return;
    }
    memory::resize(rows, if gradient { 12 * n } else { 3 * n }, T::ZERO);
    for i in 0..3 {
        // u_i = ∂_j A_k - ∂_k A_j
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        add(&mut rows[i * n..(i + 1) * n], &local[k * n..(k + 1) * n], j, T::ONE);
        add(&mut rows[i * n..(i + 1) * n], &local[j * n..(j + 1) * n], k, -T::ONE);
    }
    if gradient {
        let (velocity, rest) = rows.split_at_mut(3 * n);
        for (k, row) in rest.chunks_exact_mut(n).enumerate() {
            add(row, &velocity[k / 3 * n..(k / 3 + 1) * n], k % 3, T::ONE);
        }
    }
}

/// Evaluates field rows at the targets of a leaf (relative to its centre, in its unit): `out[row][target] += …`, where
/// each row of `out` has `stride` numbers.
pub fn l2p<T: Real>(ops: &Operators<T>, rows: &[T], x: &[Vec<T>; 3], work: &mut Work<T>, out: &mut [T], stride: usize) {
    dispatch(L2p { ops, rows, x, work, out, stride });
}

struct L2p<'a, T: Real> {
    ops: &'a Operators<T>,
    rows: &'a [T],
    x: &'a [Vec<T>; 3],
    work: &'a mut Work<T>,
    out: &'a mut [T],
    stride: usize,
}

impl<T: Real> Kernel for L2p<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (w, p) = (Lane::<S, T>::LANES, self.ops.order);
        let n = p * p;
        let count = self.rows.len() / n;
        let mut y = [T::ZERO; 12 * WIDEST];
        let targets = self.x[0].len();
        for k in (0..targets).step_by(w) {
            let at = each(|i| Lane::load_part(s, &self.x[i][k..], T::ZERO));
            self.ops.regular(s, p, at, &mut self.work.harmonics);
            dense::product(s, [count, n, n], self.rows, &self.work.harmonics, &mut y);
            for row in 0..count {
                for lane in 0..w.min(targets - k) {
                    self.out[row * self.stride + k + lane] += y[row * w + lane];
                }
            }
        }
    }
}
