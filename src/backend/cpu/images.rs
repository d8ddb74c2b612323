//! Periodic images: which of them are cells of the tree like any others, and what all the others do.
//!
//! Enters: periods, the extents of sources and targets. Leaves: `Images`. Near images take part in the interaction lists: an
//! image of a cell is the cell, seen from a target that is moved the other way, so nothing is copied. The others act on the
//! whole box at once: the multipoles of the root become local expansions of the root by a lattice operator
//! (`math::lattice`). Both roots then have the middle of the box for their centre.

use super::lists::{Admission, Image};
use super::tree::{Cell, Tree};
use crate::backend::periods;
use crate::distributed::Peers;
use crate::error::{Error, Result, WFMM_ERR_UNSUPPORTED};
use crate::math::lattice::{LatticeSums, Shape};
use crate::memory;
use crate::simd::Real;

/// Images of the root closer than this ratio of its radius to their distance are near: that of the closest cells.
const CLOSEST_RATIO: f64 = 0.33;
/// More near images than this are refused: the domain is too wide for its periods.
const MOST_NEAR: f64 = 30_000.0;

/// A box with periodic sides, in the engine's unit of length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Periods {
    /// 0: open.
    pub period: [f64; 3],
    /// The middle of the box; of open axes, of the sources.
    pub center: [f64; 3],
}

impl Periods {
    /// Distance up to which cores of images are looked at.
    pub fn cores_looked_at(&self) -> f64 {
        periods::cores_looked_at(self.period)
    }

    /// Distance from the middle to the farthest corner of a box.
    pub fn radius(&self, (low, high): ([f64; 3], [f64; 3])) -> f64 {
        let far = |i: usize| (low[i] - self.center[i]).abs().max((high[i] - self.center[i]).abs());
        (0..3).map(|i| far(i).powi(2)).sum::<f64>().sqrt()
    }

    fn shape(&self, [a, b]: [f64; 2], ratio: f64, reach: f64) -> Shape {
        let cores = if reach > 0.0 { a + b + reach.min(self.cores_looked_at()) } else { 0.0 };
        Shape { period: self.period, near: (a.max(b) / ratio).max(cores) }
    }

    /// Refuses boxes whose sources and targets, within these radii of the middle, have too many near images.
    pub fn check(&self, radii: [f64; 2], unit: f64) -> Result<()> {
        let count = self.shape(radii, CLOSEST_RATIO, 0.0).near_count();
        if count <= MOST_NEAR {
            return Ok(());
        }
        let periods = self.period.map(|p| p * unit);
        let extent = 2.0 * radii[0].max(radii[1]) * unit;
        Error::fail(
            WFMM_ERR_UNSUPPORTED,
            format!(
                "period = {periods:?} with sources and targets over {extent:.3e}: {count:.1e} near images; accepted: an extent \
                 of so few periods that {MOST_NEAR} near images serve"
            ),
        )
    }
}

/// See the head of this file.
#[derive(Debug, Clone)]
pub struct Images {
    /// What each near image is moved by; the first by nothing: the sources themselves.
    pub shifts: Vec<[f64; 3]>,
    /// All others.
    pub far: Option<FarImages>,
}

impl Default for Images {
    fn default() -> Self {
        Self { shifts: vec![[0.0; 3]], far: None }
    }
}

/// All images that are not near.
#[derive(Debug, Clone, Copy)]
pub struct FarImages {
    shape: Shape,
    center: [f64; 3],
    /// Of sources and of targets, around the middle.
    radii: [f64; 2],
    /// Unit of the sources' multipoles.
    scale: f64,
    /// Sum of charges times their squared distances from the middle.
    pub moment: f64,
}

impl Images {
    /// For a tree's roots; `reach`: how far cores matter.
    pub fn of_roots(periods: Option<Periods>, source: &Tree, target: &Tree, reach: f64) -> Self {
        match (periods, source.cells.first(), target.cells.first()) {
            (Some(periods), Some(s), Some(t)) => Self::of(periods, [s.radius, t.radius], s.scale, CLOSEST_RATIO, reach),
            _ => Self::default(),
        }
    }

    /// For sources and targets within `radii` of the middle; `scale`: the unit of the sources' multipoles.
    pub fn of(periods: Periods, radii: [f64; 2], scale: f64, ratio: f64, reach: f64) -> Self {
        let shape = periods.shape(radii, ratio, reach).canonical();
        let mut shifts = shape.near_vectors();
        shifts.truncate(Image::MAX as usize);
        Self { shifts, far: Some(FarImages { shape, center: periods.center, radii, scale, moment: 0.0 }) }
    }

    /// For the own roots of many ranks, which have the middle of the box for their centre; `reach` is that of this rank. Images and
    /// the unit of the roots' multipoles are the same on all ranks.
    pub fn of_ranks(peers: &Peers, periods: Periods, source: &mut Tree, target: &Tree, reach: f64) -> Self {
        let radius = |root: Option<&Cell>| root.map_or(0.0, |c| c.radius);
        let scale = source.cells.first().map_or(0.0, |c| c.scale);
        let mut most = [radius(source.cells.first()), radius(target.cells.first()), reach, scale];
        peers.largest(&mut most);
        let [of_sources, of_targets, reach, scale] = most;
        if let Some(root) = source.cells.first_mut() {
            root.scale = scale;
        }
        Self::of(periods, [of_sources, of_targets], scale, CLOSEST_RATIO, reach)
    }

    /// The order that the nearest of the far images needs; cell 0 of `admission` stands for all sources.
    pub fn order(&self, admission: &Admission<'_>, targets: usize) -> usize {
        let Some(far) = &self.far else { return 0 };
        let end = targets.min(u32::MAX as usize) as u32;
        let ball = |center: [f64; 3], radius: f64| Cell {
            begin: 0,
            end,
            first_child: 0,
            children: 0,
            parent: u32::MAX,
            absent: 0,
            center,
            radius,
            spread: radius,
            scale: radius,
        };
        let [source, target] = far.radii;
        let mut center = far.center;
        center[0] += far.shape.nearest_left_out();
        usize::from(admission.order_of_far(0, &ball(far.center, source), &ball(center, target), admission.highest))
    }

    /// Takes over a moment of the charges that harmonics do not have.
    pub fn set_moment(&mut self, square: impl FnOnce([f64; 3]) -> f64) {
        if let Some(far) = &mut self.far {
            far.moment = square(far.center);
        }
    }

    pub fn bytes(&self) -> usize {
        self.shifts.capacity() * 24
    }
}

impl FarImages {
    /// Adds the far images, from the multipoles of all sources, to the local expansions of the root, whose unit is `scale`; `C`
    /// components.
    pub fn add<T: Real, const C: usize>(&self, order: usize, multipole: &[f64], local: &mut [T], scale: f64) {
        let scales = [self.scale, scale];
        let sums = LatticeSums::of(self.shape, order);
        let n = order * order;
        let mut found = memory::filled(0.0, n);
        for c in 0..C {
            let of = &multipole[c * n..(c + 1) * n];
            sums.apply(order, of, scales[0], &mut found, scales[1]);
            if self.shape.dimensions() == 3 {
                // Of the background's |x - X|² the product x·X; the squares are added at the targets.
                let f = -2.0 * self.shape.background() * scales[0] * scales[1];
                (1..n.min(4)).for_each(|i| found[i] += f * of[i]);
            }
            local[c * n..(c + 1) * n].iter_mut().zip(&found).for_each(|(l, v)| *l += T::of(*v));
        }
    }

    /// Adds what local expansions have not of the field of the background in a box with three periods, `[row][position]`.
    pub fn add_background<T: Real, const C: usize>(
        &self,
        net: [f64; C],
        positions: &[[f64; 3]],
        gradient: bool,
        out: &mut [T],
    ) {
        if self.shape.dimensions() < 3 {
            return;
        }
        let f = self.shape.background();
        let count = positions.len();
        for (k, x) in positions.iter().enumerate() {
            let d: [f64; 3] = std::array::from_fn(|i| x[i] - self.center[i]);
            let mut put = |row: usize, v: f64| out[row * count + k] += T::of(v);
            if C == 1 {
                put(0, f * (net[0] * d.iter().map(|v| v * v).sum::<f64>() + self.moment));
                (0..3).filter(|_| gradient).for_each(|i| put(1 + i, 2.0 * f * net[0] * d[i]));
                continue;
            }
            for i in 0..3 {
                // u = ∇ × (f d² a) = 2 f d × a
                let (j, l) = ((i + 1) % 3, (i + 2) % 3);
                put(i, 2.0 * f * (d[j] * net[l] - d[l] * net[j]));
                if gradient {
                    put(3 + 3 * i + j, 2.0 * f * net[l]);
                    put(3 + 3 * i + l, -2.0 * f * net[j]);
                }
            }
        }
    }
}
