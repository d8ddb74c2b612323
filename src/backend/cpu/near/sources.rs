//! What the pair kernels read: targets by component, sources one record each.
//!
//! Enters: positions, strengths, core radii, in units in which the whole problem is of
//! size one. Leaves: records that hold, beside these, what depends on the source alone. A source is broadcast to all lanes,
//! so one record in one or two cache lines is better than one array per component.

use crate::math::regularization::LAMB_OSEEN;
use crate::memory;
use crate::options::Regularization;
use crate::simd::Real;
use rayon::prelude::*;
use std::ops::Range;

/// Targets, by component; all of one length.
#[derive(Debug, Clone, Default)]
pub struct Points<T> {
    pub x: Vec<T>,
    pub y: Vec<T>,
    pub z: Vec<T>,
    /// In single precision what the rounding of the three left.
    pub low: [Vec<T>; 3],
    /// In single precision pairs with particles nearer than this are summed in double.
    pub close: f64,
}

impl<T: Real> Points<T> {
    pub fn with_capacity(n: usize) -> Self {
        let mut points = Self::default();
        points.restart(n);
        points
    }
    /// None, with room for `n`.
    pub fn restart(&mut self, n: usize) {
        let low = if T::IS_F64 { 0 } else { n };
        let whole = [&mut self.x, &mut self.y, &mut self.z].into_iter().map(|v| (v, n));
        for (v, n) in whole.chain(self.low.iter_mut().map(|v| (v, low))) {
            v.clear();
            memory::reserve(v, n);
        }
    }
    pub fn push(&mut self, p: [f64; 3]) {
        self.x.push(T::of(p[0]));
        self.y.push(T::of(p[1]));
        self.z.push(T::of(p[2]));
        if !T::IS_F64 {
            self.low.iter_mut().zip(lower(p)).for_each(|(low, p)| low.push(p));
        }
    }
    /// Target k, both halves.
    pub fn position(&self, k: usize) -> [f64; 3] {
        let low = |i: usize| self.low[i].get(k).map_or(0.0, |v| v.f64());
        [self.x[k].f64() + low(0), self.y[k].f64() + low(1), self.z[k].f64() + low(2)]
    }
    pub fn len(&self) -> usize {
        self.x.len()
    }
    pub fn is_empty(&self) -> bool {
        self.x.is_empty()
    }
    /// Whether one number holds each coordinate of these.
    pub fn are_whole(&self, t: Range<usize>) -> bool {
        self.low.iter().all(|low| low.get(t.clone()).is_none_or(|low| low.iter().all(|v| *v == T::ZERO)))
    }
}

/// What the rounding of a position to `T` leaves.
fn lower<T: Real>(p: [f64; 3]) -> [T; 3] {
    p.map(|v| T::of(v - T::of(v).f64()))
}

/// Whether most of these are sums of two numbers in `T`.
pub fn are_mostly_split<T: Real>(positions: impl IndexedParallelIterator<Item = [f64; 3]>) -> bool {
    let n = positions.len();
    2 * positions.filter(|&x| lower::<T>(x) != [T::ZERO; 3]).count() > n
}

/// A source as the kernels meet it: alone, or split, with the lower halves of its positions.
pub trait Record<T, P>: Copy + Sync + 'static {
    const SPLIT: bool;
    fn whole(&self) -> &P;
    /// Lower half of its position `k`.
    fn low(&self, k: usize) -> [T; 3];
}

impl<T: Real, P: Copy + Sync + 'static> Record<T, P> for P {
    const SPLIT: bool = false;
    #[inline(always)]
    fn whole(&self) -> &P {
        self
    }
    #[inline(always)]
    fn low(&self, _: usize) -> [T; 3] {
        [T::ZERO; 3]
    }
}

/// A source whose `M` positions are sums of two numbers: double precision arrays, computed in single precision.
#[derive(Debug, Clone, Copy)]
pub struct Split<P, T, const M: usize> {
    whole: P,
    low: [[T; 3]; M],
}

impl<T: Real, P: Copy + Sync + 'static, const M: usize> Record<T, P> for Split<P, T, M> {
    const SPLIT: bool = true;
    #[inline(always)]
    fn whole(&self) -> &P {
        &self.whole
    }
    #[inline(always)]
    fn low(&self, k: usize) -> [T; 3] {
        self.low[k]
    }
}

/// What has `M` positions, in the precision of the kernels.
pub trait Placed<T, const M: usize> {
    fn places(&self) -> [[T; 3]; M];
}

/// Records of one kind: all alone, or all split. Where one number holds the coordinates of most points, all are there in both ways:
/// between such sources and such targets the lower halves are zero, and a pair of records that are alone costs less. Not segments, where
/// split records differ in what counts as on their line.
#[derive(Debug, Clone)]
pub struct Records<P, T, const M: usize> {
    pub alone: Vec<P>,
    pub split: Vec<Split<P, T, M>>,
    splits: bool,
    /// Where both are there: how many records before each, and in all, have a lower half that is not zero.
    halves: Vec<u32>,
}

impl<P, T: Real, const M: usize> Records<P, T, M> {
    /// `splits`: positions may have more digits than `T`; in double precision they never do.
    fn new(splits: bool) -> Self {
        Self { alone: vec![], split: vec![], splits: splits && !T::IS_F64, halves: vec![] }
    }
    pub fn reserve(&mut self, n: usize) {
        if self.splits { memory::reserve(&mut self.split, n) } else { memory::reserve(&mut self.alone, n) }
    }
    fn push(&mut self, whole: P, positions: [[f64; 3]; M]) {
        if self.splits {
            self.split.push(Split { whole, low: positions.map(lower) });
        } else {
            self.alone.push(whole);
        }
    }
    /// Record k of n made by `record`, with its positions; by all threads.
    fn fill(&mut self, n: usize, record: impl Fn(usize) -> (P, [[f64; 3]; M]) + Sync)
    where
        P: Copy + Send + Sync,
    {
        let numbers = (0..n).into_par_iter().with_min_len(1024);
        if !self.splits {
            self.alone = memory::par_collect(numbers.map(|k| record(k).0));
            return;
        }
        self.split = memory::par_collect(numbers.map(|k| {
            let (whole, positions) = record(k);
            Split { whole, low: positions.map(lower) }
        }));
        if M == 1 {
            self.keep_both();
        }
    }
    fn keep_both(&mut self)
    where
        P: Copy + Send + Sync,
    {
        let has_half = |r: &Split<P, T, M>| r.low.iter().flatten().any(|v| *v != T::ZERO);
        let records = self.split.par_iter().with_min_len(1024);
        if 2 * records.clone().filter(|r| has_half(r)).count() > self.split.len() {
            return;
        }
        self.alone = memory::par_collect(records.map(|r| r.whole));
        self.halves = memory::with_room(self.split.len() + 1);
        self.halves.push(0);
        let mut count = 0;
        self.halves.extend(self.split.iter().map(|r| {
            count += u32::from(has_half(r));
            count
        }));
    }
    /// Whether records that are alone have all digits of the pairs of these sources and targets.
    pub fn serve_alone(&self, ranges: &[Range<u32>], targets: &Points<T>, t: Range<usize>) -> bool {
        let are_whole = |r: &Range<u32>| self.halves[r.start as usize] == self.halves[r.end as usize];
        !self.splits || !self.halves.is_empty() && targets.are_whole(t) && ranges.iter().all(are_whole)
    }
    /// Record k, and its positions with all digits that are kept.
    #[inline]
    pub fn at(&self, k: usize) -> (&P, [[f64; 3]; M])
    where
        P: Placed<T, M>,
    {
        let Some(split) = self.split.get(k) else {
            let whole = &self.alone[k];
            return (whole, whole.places().map(|x| x.map(T::f64)));
        };
        let places = split.whole.places();
        let digit = |j: usize, i: usize| places[j][i].f64() + split.low[j][i].f64();
        (&split.whole, std::array::from_fn(|j| std::array::from_fn(|i| digit(j, i))))
    }
    pub fn bytes(&self) -> u64 {
        let records = self.alone.capacity() * size_of::<P>() + self.split.capacity() * size_of::<Split<P, T, M>>();
        (records + self.halves.capacity() * size_of::<u32>()) as u64
    }
}

/// What a core parameter is at most, so that no product of the kernels overflows; far beyond any real ratio.
fn largest<T: Real>() -> f64 {
    if T::IS_F64 { 1e60 } else { 1e14 }
}

/// One vortex particle.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Particle<T> {
    pub position: [T; 3],
    pub strength: [T; 3],
    pub core: T,
    /// What the regularization needs of the core radius.
    pub k: T,
}

impl<T: Copy> Placed<T, 1> for Particle<T> {
    #[inline]
    fn places(&self) -> [[T; 3]; 1] {
        [self.position]
    }
}

impl<T: Real> Particle<T> {
    pub fn of(reg: Regularization, position: [f64; 3], strength: [f64; 3], core: f64) -> Self {
        use Regularization::*;
        let inverse = (1.0 / core).min(largest::<T>());
        let k = match reg {
            GaussErf | Exponential => inverse,
            Polynomial => inverse * inverse,
            Compact if T::IS_F64 => core.powi(6),
            _ => core * core,
        };
        Self { position: position.map(T::of), strength: strength.map(T::of), core: T::of(core), k: T::of(k) }
    }
}

/// One straight segment. ℓ = P2 - P1 is kept as `along` = ℓ/2^n, with a length in [1, 2): neither |C|² nor
/// c⁴ underflows in single precision.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Segment<T> {
    pub p1: [T; 3],
    pub p2: [T; 3],
    pub along: [T; 3],
    /// Γ 2^n, and zero for a segment without length.
    pub gamma: T,
    pub k: T,
    /// 1/|along|²
    pub inverse: T,
    /// 2^(-n)
    pub unit: T,
    pub core: T,
    /// |C|² up to which a target is on the line: what the rounding of positions leaves of zero.
    pub on_line: T,
    /// Vatistas in f32: what |C|² is multiplied by so that its square stays a number.
    pub lift: T,
}

impl<T: Copy> Placed<T, 2> for Segment<T> {
    #[inline]
    fn places(&self) -> [[T; 3]; 2] {
        [self.p1, self.p2]
    }
}

impl<T: Real> Segment<T> {
    pub fn circulation(&self) -> f64 {
        self.gamma.f64() * self.unit.f64()
    }
    /// Γ ℓ
    #[inline]
    pub fn strength(&self) -> [f64; 3] {
        self.along.map(|l| l.f64() * self.gamma.f64())
    }
    /// ℓ/2; zero without length.
    #[inline]
    pub fn half(&self) -> [f64; 3] {
        let scale = if self.unit > T::ZERO { 0.5 / self.unit.f64() } else { 0.0 };
        self.along.map(|l| l.f64() * scale)
    }

    /// `step`: see `Digits`.
    fn of(reg: Regularization, step: f64, [p1, p2]: [[f64; 3]; 2], circulation: f64, core: f64) -> Self {
        use Regularization::*;
        let l: [f64; 3] = std::array::from_fn(|i| p2[i] - p1[i]);
        let size = l.iter().map(|l| l * l).sum::<f64>().sqrt();
        let unit = if size > 0.0 { (-size.log2().floor()).exp2() } else { 0.0 };
        let l = l.map(|l| l * unit);
        let square = l.iter().map(|l| l * l).sum::<f64>();
        let c2 = core * core;
        // |C|² lies between 1e-35 and 12; see `segments::Vatistas`.
        let lift = if c2 * square < 1e-10 && !T::IS_F64 { 2f64.powi(60) } else { 1.0 };
        let k = match reg {
            None => 0.0,
            // Without a core F must be one at the least |C|² of `segments::least`.
            LambOseen => (LAMB_OSEEN / (c2 * square)).min(if T::IS_F64 { 1e202 } else { 1e37 }),
            Vatistas => (c2 * square * lift).powi(2),
            Offset => c2 * size * size,
            _ => c2 * square,
        };
        Self {
            p1: p1.map(T::of),
            p2: p2.map(T::of),
            along: l.map(T::of),
            gamma: T::of(if size > 0.0 { circulation / unit } else { 0.0 }),
            k: T::of(if size > 0.0 { k } else { 0.0 }),
            inverse: T::of(if size > 0.0 { 1.0 / square } else { 0.0 }),
            unit: T::of(unit),
            core: T::of(core),
            on_line: T::of((ON_LINE * step).powi(2) * square),
            lift: T::of(lift),
        }
    }
}

/// How exactly positions are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Digits {
    /// They may have more digits than single precision; in double precision they never do.
    pub splits: bool,
    /// They were rounded to multiples of this, if not zero.
    pub step: f64,
}

/// Distance from its line up to which a target is on it, in steps of positions: those of the target and of both ends were rounded.
const ON_LINE: f64 = 2.0;

/// One charge.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Charge<T> {
    pub position: [T; 3],
    pub charge: T,
}

impl<T: Copy> Placed<T, 1> for Charge<T> {
    #[inline]
    fn places(&self) -> [[T; 3]; 1] {
        [self.position]
    }
}

impl<T: Real> Charge<T> {
    fn of(position: [f64; 3], charge: f64) -> Self {
        Self { position: position.map(T::of), charge: T::of(charge) }
    }
}

/// Vortex particles of one regularization.
#[derive(Debug, Clone)]
pub struct ParticleSources<T> {
    pub list: Records<Particle<T>, T, 1>,
    reg: Regularization,
    cored: bool,
}

impl<T: Real> ParticleSources<T> {
    pub fn new(reg: Regularization, splits: bool) -> Self {
        Self { list: Records::new(splits), reg, cored: false }
    }

    pub fn push(&mut self, position: [f64; 3], strength: [f64; 3], core: f64) {
        self.cored |= core > 0.0 && self.reg != Regularization::None;
        self.list.push(Particle::of(self.reg, position, strength, core), [position]);
    }

    /// These `n` alone, by all threads; `element` gives position, strength and core, `cored`: some core is not zero.
    pub fn fill(&mut self, n: usize, cored: bool, element: impl Fn(usize) -> ([f64; 3], [f64; 3], f64) + Sync) {
        self.cored = cored && self.reg != Regularization::None;
        let reg = self.reg;
        self.list.fill(n, |k| {
            let (position, strength, core) = element(k);
            (Particle::of(reg, position, strength, core), [position])
        });
    }

    /// `None` where no source has a core.
    pub fn regularization(&self) -> Regularization {
        if self.cored { self.reg } else { Regularization::None }
    }
}

/// Segments of one regularization.
#[derive(Debug, Clone)]
pub struct SegmentSources<T> {
    pub list: Records<Segment<T>, T, 2>,
    reg: Regularization,
    cored: bool,
    step: f64,
}

impl<T: Real> SegmentSources<T> {
    pub fn new(reg: Regularization, digits: Digits) -> Self {
        Self { list: Records::new(digits.splits), reg, cored: false, step: digits.step }
    }

    pub fn push(&mut self, p1: [f64; 3], p2: [f64; 3], circulation: f64, core: f64) {
        self.cored |= core > 0.0 && self.reg != Regularization::None;
        self.list.push(Segment::of(self.reg, self.step, [p1, p2], circulation, core), [p1, p2]);
    }

    /// These `n` alone, by all threads; `element` gives ends, circulation and core, `cored`: some core is not zero.
    pub fn fill(&mut self, n: usize, cored: bool, element: impl Fn(usize) -> ([[f64; 3]; 2], f64, f64) + Sync) {
        self.cored = cored && self.reg != Regularization::None;
        let (reg, step) = (self.reg, self.step);
        self.list.fill(n, |k| {
            let (ends, circulation, core) = element(k);
            (Segment::of(reg, step, ends, circulation, core), ends)
        });
    }

    /// `None` where no source has a core.
    pub fn regularization(&self) -> Regularization {
        if self.cored { self.reg } else { Regularization::None }
    }
}

/// Charges.
#[derive(Debug, Clone)]
pub struct ChargeSources<T> {
    pub list: Records<Charge<T>, T, 1>,
}

impl<T: Real> ChargeSources<T> {
    pub fn new(splits: bool) -> Self {
        Self { list: Records::new(splits) }
    }
    pub fn push(&mut self, position: [f64; 3], charge: f64) {
        self.list.push(Charge::of(position, charge), [position]);
    }

    /// These `n` alone, by all threads; `element` gives position and charge.
    pub fn fill(&mut self, n: usize, element: impl Fn(usize) -> ([f64; 3], f64) + Sync) {
        self.list.fill(n, |k| {
            let (position, charge) = element(k);
            (Charge::of(position, charge), [position])
        });
    }
}
