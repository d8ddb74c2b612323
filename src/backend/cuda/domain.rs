//! Periodic domains on the host: where their middle is, which images are near, to what order all others are expanded.
//!
//! Enters: periods, the extents of sources and targets, how far cores reach. Leaves: `Domain`, by which the device moves positions, and
//! `Nearness`. In a box with three equal periods near images are those of the tree's cells. In tubes, slabs and other boxes they are
//! sources of their own, as many as the expansions of all others need to converge.

use crate::backend::periods::{LEAST_LEFT, beside_slab, gradient_left};
use crate::error::{Error, Result, WFMM_ERR_UNSUPPORTED};
use crate::math::lattice::Shape;

use super::far_rows::MOST_ORDER;

/// Positions and periods are multiples of the power of two above the largest side times this.
const STEP: f64 = 1.0 / (1u64 << 49) as f64;
/// Near images of a cube, in periods from it: those of the tree's cells; what the direct sum takes where cores or segments are larger.
pub const NEAR: [f64; 7] = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
/// Largest ratio of the radii of two cubes to the distance of the nearest image that is not near.
const WIDEST: f64 = 0.83;
/// Effective radii of sources and of targets that fill a cube, together, in periods. Random ones, whose near field is most of the whole, have
/// errors of 3e-8 at order 17 and 1e-10 at 24 beside images √5 periods away; smooth ones need four degrees more.
const EFFECTIVE_RADII: f64 = 1.01;
/// Errors in tolerances of the expansions of a check, of those of a field, and the largest that a cube may have.
const SHARES: [f64; 3] = [0.02, 0.2, 0.1];
/// Degrees more than geometric convergence asks for, by the largest radii of sources and targets: smooth fields and gradients need them.
const MORE_DEGREES: f64 = 4.0;
/// Fewest degrees of the far field.
const LEAST_ORDER: usize = 8;
/// Most near images, as on the CPU, and most sources with them.
const MOST_NEAR: f64 = 30_000.0;
const MOST_COPIES: f64 = (1u64 << 27) as f64;
/// Most sources that a tree of a cube numbers beside their images: `kImageBits`.
const MOST_NUMBERED: usize = 1 << 26;

/// What positions are moved by: `Domain` of kernels/periodic.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Domain {
    /// Multiples of the step; 0: open.
    pub period: [f64; 3],
    /// Periods as given less those.
    pub rounding: [f64; 3],
    /// A multiple of the step.
    pub middle: [f64; 3],
    pub step: f64,
}

/// Corners of a box around points; of none `low` is above `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Corners {
    pub low: [f64; 3],
    pub high: [f64; 3],
}

/// Of everything in a domain: lengths of the caller's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extents {
    pub sources: Corners,
    pub targets: Corners,
}

/// What there is in a domain, in the caller's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contents {
    /// All of them.
    pub sources: usize,
    /// What a tree numbers at most: sources and pieces of segments.
    pub numbered: usize,
    pub longest_segment: f64,
    /// How far cores count.
    pub reach: f64,
    /// How wide leaves must be, for cores and lengths of segments.
    pub widest_leaf: f64,
}

/// Which images are near, and how the expansions of all others converge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nearness {
    pub shape: Shape,
    /// Unit of length of the expansions.
    pub unit: f64,
    /// The longest segment over the side of a cube that the sources would fill.
    pub longest: f64,
    /// Whether the near field may be summed by a tree.
    pub has_tree: bool,
    /// An order has the error of this to the power of the order less `more`.
    ratio: f64,
    more: f64,
}

/// Whether a domain is a box with three equal periods.
pub fn is_cube(period: [f64; 3]) -> bool {
    period[0] > 0.0 && period == [period[0]; 3]
}

impl Corners {
    pub const NONE: Self = Self { low: [f64::INFINITY; 3], high: [f64::NEG_INFINITY; 3] };

    pub fn join(&mut self, low: &[f64], high: &[f64]) {
        for i in 0..3 {
            self.low[i] = self.low[i].min(low[i]);
            self.high[i] = self.high[i].max(high[i]);
        }
    }

    /// The largest coordinate, of whatever sign; zero where there is nothing.
    fn farthest(&self) -> f64 {
        let there = |i: usize| self.low[i] <= self.high[i];
        (0..3).filter(|&i| there(i)).map(|i| self.high[i].max(-self.low[i])).fold(0.0, f64::max)
    }

    fn side(&self, axis: usize) -> f64 {
        (self.high[axis] - self.low[axis]).max(0.0)
    }

    fn middle(&self, axis: usize) -> f64 {
        if self.low[axis] <= self.high[axis] { 0.5 * self.low[axis] + 0.5 * self.high[axis] } else { 0.0 }
    }
}

fn norm(v: [f64; 3]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

impl Extents {
    /// Steps to which positions tell whether a target is on a line: two of them are a last digit of the caller's coordinates, which the
    /// domain may be far smaller than (`rounding_beside` of src/math/biot_savart.rs).
    pub fn step(&self) -> f64 {
        0.5 * f64::EPSILON * self.sources.farthest().max(self.targets.farthest())
    }

    /// What all images leave of the gradient of single ones where all targets are beside a slab; 1: some are not.
    fn left_beside_slab(&self, period: [f64; 3]) -> f64 {
        let spans = |axis: usize| Some([&self.sources, &self.targets].map(|c| [c.low[axis], c.high[axis]]));
        beside_slab(period, spans).map_or(1.0, |beside| gradient_left(beside, period).max(LEAST_LEFT))
    }
}

impl Domain {
    /// A cube around zero.
    pub fn cube(given: f64) -> Self {
        Self::new([given; 3], [0.0; 3], given)
    }

    /// Around the middle of the sources.
    pub fn around(given: [f64; 3], sources: &Corners) -> Self {
        let side = |i: usize| if given[i] > 0.0 { given[i] } else { sources.side(i) };
        Self::new(given, std::array::from_fn(|i| sources.middle(i)), (0..3).map(side).fold(0.0, f64::max))
    }

    fn new(given: [f64; 3], middle: [f64; 3], largest: f64) -> Self {
        let step = STEP * largest.log2().floor().exp2() * 2.0;
        let stepped = |v: f64| (v / step).round() * step;
        let period = given.map(stepped);
        Self { period, rounding: std::array::from_fn(|i| given[i] - period[i]), middle: middle.map(stepped), step }
    }

    /// Distances from the middle to the farthest source and target, once all are in the domain.
    fn radii(&self, extents: &Extents, longest_segment: f64) -> [f64; 2] {
        let sources = std::array::from_fn(|i| {
            let half = 0.5 * extents.sources.side(i) + self.step;
            let is_moved = self.period[i] > 0.0 && half > 0.5 * self.period[i];
            if is_moved { half.min(0.5 * (self.period[i] + longest_segment)) } else { half }
        });
        let targets = std::array::from_fn(|i| {
            let Corners { low, high } = extents.targets;
            let far = (high[i] - self.middle[i]).max(self.middle[i] - low[i]).max(0.0);
            if self.period[i] > 0.0 { far.min(0.5 * self.period[i]) } else { far }
        });
        [norm(sources), norm(targets)]
    }
}

impl Nearness {
    /// In a cube, or why too many images are near.
    pub fn in_cube(period: f64, contents: &Contents, tolerance: f64) -> Result<Self> {
        let longest = contents.longest_segment / period;
        let needed = contents.reach / period + 0.5 * longest;
        for near in NEAR {
            let out = Shape { period: [1.0; 3], near }.nearest_left_out();
            let ratio = (EFFECTIVE_RADII + 0.5 * longest) / out;
            let shape = Shape { period: [period; 3], near: near * period };
            // The largest cells are a half of the box wide; elements whose leaf is the whole box have no tree.
            let has_tree =
                near <= NEAR[0] && contents.widest_leaf <= 0.5 * period && contents.numbered <= MOST_NUMBERED;
            let found = Self { shape, unit: period, longest, has_tree, ratio, more: -1.0 };
            let converges = 3f64.sqrt() + 0.5 * longest <= WIDEST * out;
            let is_reached = found.order_for(SHARES[2] * tolerance) <= MOST_ORDER as f64;
            if separation(near) >= needed && converges && is_reached {
                return Ok(found);
            }
        }
        Err(too_long(contents.longest_segment, period))
    }

    /// In any domain: sources within a radius a and targets within b of the middle. Expansions of an image at a distance d then converge
    /// as powers of a/(d - b) and b/(d - a).
    fn in_domain(domain: &Domain, extents: &Extents, contents: &Contents, tolerance: f64) -> Result<Self> {
        let radii = domain.radii(extents, contents.longest_segment);
        // Of no sources there are no images.
        let [a, b] = if contents.sources > 0 { radii } else { [0.0; 2] };
        let ratio = (SHARES[0] * tolerance).powf(1.0 / (MOST_ORDER as f64 - MORE_DEGREES));
        let cores = if contents.reach > 0.0 { a + b + contents.reach } else { 0.0 };
        let near = (b + a / ratio).max(a + b / ratio).max(cores);
        let shape = Shape { period: domain.period, near };
        let is_finite = near.is_finite() && domain.step.is_finite();
        let refused = |count: f64| Err(too_many(domain.period, 2.0 * near, count, contents.sources));
        if !is_finite || shape.near_count() > MOST_NEAR {
            return refused(shape.near_count());
        }
        let count = shape.near_vectors().len() as f64;
        if count * contents.sources as f64 > MOST_COPIES {
            return refused(count);
        }
        let out = shape.nearest_left_out();
        let extent = a.max(b);
        let side = domain.period.iter().fold(extent, |s, &p| s.max(p));
        Ok(Self {
            shape: shape.canonical(),
            unit: if extent > 0.0 { extent } else { side },
            longest: contents.longest_segment / a.max(domain.step) * 0.5 * 3f64.sqrt(),
            has_tree: true,
            ratio: (a / (out - b)).max(b / (out - a)),
            more: MORE_DEGREES,
        })
    }

    /// The same, and the tolerance that it is for: where a gradient is asked for, a smaller one beside a slab, unless too many images were near
    /// then.
    pub fn for_field(
        domain: &Domain,
        extents: &Extents,
        contents: &Contents,
        tolerance: f64,
        gradient: bool,
    ) -> Result<(Self, f64)> {
        let of = |tolerance: f64| Ok((Self::in_domain(domain, extents, contents, tolerance)?, tolerance));
        let left = if gradient { extents.left_beside_slab(domain.period) } else { 1.0 };
        of(left * tolerance).or_else(|_: Error| of(tolerance))
    }

    fn order_for(&self, error: f64) -> f64 {
        error.log10() / self.ratio.log10() + self.more
    }

    /// Orders of the expansions of a check and of a field.
    pub fn orders(&self, tolerance: f64) -> [usize; 2] {
        [SHARES[0], SHARES[1]]
            .map(|share| (self.order_for(share * tolerance).ceil() as usize).clamp(LEAST_ORDER, MOST_ORDER))
    }
}

/// Least distance in periods between two cubes of which one is not near.
fn separation(near: f64) -> f64 {
    let most = near as i64 + 1;
    let mut least = f64::INFINITY;
    for x in 0..=most {
        for y in 0..=x {
            for z in 0..=y {
                if (x * x + y * y + z * z) as f64 > near * near {
                    let apart: f64 = [x, y, z].iter().map(|v| ((v - 1).max(0) as f64).powi(2)).sum();
                    least = least.min(apart.sqrt());
                }
            }
        }
    }
    least
}

fn too_long(longest: f64, period: f64) -> Error {
    Error::new(
        WFMM_ERR_UNSUPPORTED,
        format!(
            "segments of a length of {longest:.3e} in a periodic domain, period = {period:e}: too many images are near; accepted on \
             CUDA: segments of a few periods, or a session with WFMM_BACKEND_CPU"
        ),
    )
}

fn too_many(period: [f64; 3], extent: f64, images: f64, sources: usize) -> Error {
    Error::new(
        WFMM_ERR_UNSUPPORTED,
        format!(
            "period = {period:?}: {images:.1e} near images, over {extent:.3e}, of {sources} sources; accepted on CUDA: elements, with the \
             reach of their cores, over an extent of so few periods that {MOST_NEAR} near images serve, and {MOST_COPIES:.1e} sources \
             with their images, or a session with WFMM_BACKEND_CPU"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Corners = Corners { low: [0.0; 3], high: [1.0; 3] };

    fn contents(sources: usize) -> Contents {
        Contents { sources, numbered: sources, longest_segment: 0.0, reach: 0.0, widest_leaf: 0.0 }
    }

    fn near(period: [f64; 3], extents: &Extents, tolerance: f64) -> usize {
        let domain = Domain::around(period, &extents.sources);
        let found = Nearness::in_domain(&domain, extents, &contents(1000), tolerance).unwrap();
        assert!(found.ratio < 0.8 && found.orders(tolerance)[0] <= MOST_ORDER, "{found:?}");
        found.shape.near_vectors().len()
    }

    #[test]
    fn few_images_are_near() {
        let extents = Extents { sources: UNIT, targets: UNIT };
        for (period, at_1e4, at_1e8) in [([0.0, 1.0, 0.0], 5, 5), ([1.0, 0.0, 1.2], 11, 21), ([1.0, 1.3, 0.8], 39, 75)]
        {
            assert_eq!([1e-4, 1e-8].map(|t| near(period, &extents, t)), [at_1e4, at_1e8], "{period:?}");
        }
        // A small cloud, and one that is long along the open axis.
        let small = Corners { low: [0.4; 3], high: [0.5; 3] };
        assert_eq!(near([0.0, 1.0, 0.0], &Extents { sources: small, targets: small }, 1e-4), 1);
        let long = Corners { high: [10.0, 1.0, 1.0], ..UNIT };
        assert_eq!(near([0.0, 1.0, 0.0], &Extents { sources: long, targets: long }, 1e-4), 27);
    }

    #[test]
    fn beside_a_slab_far_images_are_summed_to_more_digits() {
        let beside = Corners { low: [0.0, 0.0, 3.0], high: [1.0, 1.0, 3.5] };
        let left = |period, targets| Extents { sources: UNIT, targets }.left_beside_slab(period);
        let e = (-std::f64::consts::TAU * 2.0 / 1.3).exp();
        for (period, targets, want) in [
            ([1.3, 1.0, 0.0], beside, e),
            ([1.3, 1.0, 0.0], Corners { low: [0.0, 0.0, -2.5], high: [1.0, 1.0, -2.0] }, e),
            ([0.1, 0.1, 0.0], beside, LEAST_LEFT),
            ([1.3, 1.0, 0.0], Corners { low: [0.0, 0.0, 0.9], ..beside }, 1.0),
            ([1.3, 1.0, 0.0], Corners::NONE, 1.0),
            ([1.3, 0.0, 0.0], beside, 1.0),
            ([1.3, 1.0, 0.8], beside, 1.0),
        ] {
            assert!((left(period, targets) / want - 1.0).abs() < 1e-12, "{period:?} {targets:?}");
        }
        let extents = Extents { sources: UNIT, targets: beside };
        let domain = Domain::around([1.3, 1.0, 0.0], &UNIT);
        let of = |n, gradient| Nearness::for_field(&domain, &extents, &contents(n), 1e-4, gradient).unwrap();
        assert!(of(100, true).1 < 1e-4 * 1.01 * e && of(100, false).1 == 1e-4);
        // More sources than there is room for with so many images.
        let images = |gradient| of(100, gradient).0.shape.near_vectors().len();
        let between = MOST_COPIES as usize * 2 / (images(true) + images(false));
        assert_eq!(of(between, true), of(between, false));
    }

    #[test]
    fn too_many_images_are_refused() {
        let wide = Corners { high: [1e4, 1.0, 1.0], ..UNIT };
        let extents = Extents { sources: wide, targets: wide };
        let domain = Domain::around([0.0, 1.0, 1.0], &extents.sources);
        let error = Nearness::in_domain(&domain, &extents, &contents(10), 1e-4).unwrap_err();
        assert!(error.status == WFMM_ERR_UNSUPPORTED && error.message.contains("near images"), "{error}");
        let extents = Extents { sources: UNIT, targets: UNIT };
        let domain = Domain::around([0.0, 1.0, 1.0], &extents.sources);
        assert!(Nearness::in_domain(&domain, &extents, &contents(100_000_000), 1e-4).is_err());
        let endless = Corners { high: [f64::INFINITY, 1.0, 1.0], ..UNIT };
        let extents = Extents { sources: endless, targets: UNIT };
        let domain = Domain::around([0.0, 1.0, 1.0], &extents.sources);
        assert!(Nearness::in_domain(&domain, &extents, &contents(10), 1e-4).is_err());
    }

    #[test]
    fn images_are_numbered_beside_their_sources() {
        for (numbered, has_tree) in [(1 << 26, true), ((1 << 26) + 1, false)] {
            let contents = Contents { numbered, ..contents(1 << 25) };
            assert_eq!(Nearness::in_cube(1.0, &contents, 1e-4).unwrap().has_tree, has_tree);
        }
    }

    #[test]
    fn middles_and_periods_are_multiples_of_the_step() {
        let sources = Corners { low: [-0.3, 100.0, 1e5], high: [0.7, 103.3, 1e5 + 1.0] };
        let domain = Domain::around([1.3, 0.0, 0.7], &sources);
        for v in domain.period.into_iter().chain(domain.middle) {
            assert_eq!((v / domain.step).fract(), 0.0);
        }
        assert!((domain.middle[1] - 101.65).abs() < 1e-12 && domain.step <= 4.0 * STEP);
        assert_eq!(Domain::cube(1.3).middle, [0.0; 3]);
    }
}
