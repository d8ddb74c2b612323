//! What one FMM on the device is made with: orders, leaf sizes, ranges of cores. Pure numbers, decided on the host.

use super::shifts::Parts;
use super::staircase::Staircase;
use crate::math::regularization::{core_reach, core_reach_gradient};
use crate::options::{PlanOptions, Regularization};

/// What a source is; numbers of `Kind` in kernels/fmm.cuh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    Charge = 0,
    Particle = 1,
    Segment = 2,
}

/// Part of the tolerance that the far field may take, as a factor of the budget of `Staircase`: sums are dominated by what
/// is near, unless a core smooths that away. Measured on one H200, 2026-11-21: CUBE of 1e7 at 1e-6 reaches 0.92 of its
/// tolerance with 34, CUBE of 1e7 in f32 at 1e-4 0.75 with 34 (1e6: less); VPM (cores twice the spacing)
/// needs 2 for its gradients.
const BUDGET_PLAIN: f64 = 34.0;
const BUDGET_PLAIN_SINGLE: f64 = 44.0;
/// At tolerances above `LOOSE` low orders leave less to chance between pairs: with 34, 2e4 sources at 1e7 targets had 1.1 of 1e-3.
const BUDGET_LOOSE: f64 = 22.0;
const LOOSE: f64 = 3e-4;
/// The potential of random charges varies more from cloud to cloud: with 34 it reached 0.6 to 1.2 of 1.19e-3.
const BUDGET_CHARGES: f64 = 22.0;
const BUDGET_CORES: f64 = 1.8;

/// Error that the interpolation of one source's correction may have, in tolerances: errors of many sources differ in sign.
const SMOOTH_PART: f64 = 2.0;
/// Most targets that share nodes.
pub const SMOOTH_TARGETS: u32 = 4000;

/// Points a leaf where cores act: the correction, by far the dearest, gains from small boxes.
const LEAF_CORES: f64 = 30.0;
/// Where targets outnumber sources with cores so many times, a leaf may hold many more of them: parts of a leaf are corrected by
/// themselves, and the far field has fewer cells. Measured on one H200, 2026-11-21, in DUST: 63 and 63 take 15.1 ms, 30 and 420
/// 10.1.
const MANY_TARGETS: usize = 4;
const LEAVES_MANY_TARGETS: [usize; 2] = [30, 420];

#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    pub kind: Kind,
    pub regularization: Regularization,
    pub gradient: bool,
    pub is_f64: bool,
    pub staircase: Staircase,
    /// Points of a leaf at most, sources and targets, where these are about as many.
    pub capacity: [usize; 2],
    /// Within so many cores the regularized kernel is used.
    pub core_range: f64,
    /// Within so many cores source cells are searched for such elements.
    pub walk_range: f64,
    /// Corrections that are smooth enough over many targets are interpolated to them.
    pub smooth: Option<Smooth>,
    /// f32: the multipoles enter the products as two TF32 numbers each.
    pub two_parts: bool,
    /// Points that a leaf of a uniform cloud should have, if the root may be stretched for it.
    pub full: Option<f64>,
    /// Budget of the far field in tolerances.
    pub budget: f64,
}

/// What `interpolates` of kernels/fmm_pair.cuh needs: with 1 - F at most b (core/distance)^power, the squared part of the tolerance
/// over b and the kernel's slopes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smooth {
    pub power: u32,
    pub limit: f64,
}

impl Smooth {
    /// None where the core ends so fast that nothing beyond a few cells is left to interpolate.
    fn new(regularization: Regularization, tolerance: f64, gradient: bool) -> Option<Self> {
        let (b, power) = match regularization {
            Regularization::Vatistas => (0.5, 4),
            Regularization::Scully => (1.0, 2),
            Regularization::Rosenhead => (1.5, 2),
            Regularization::Winckelmans => (1.875, 4),
            Regularization::Compact => (0.5, 6),
            _ => return None,
        };
        // The deficit falls as d^-n: q nodes on an interval of half length h leave binomial(n+q-1, q) / 2^(q-1) (h/d)^q of it.
        // For q from 4 to 8 and the n that occur the factor hardly depends on q; it is taken at 5.
        let n = 2 + power + u32::from(gradient);
        let slopes = (0..5).map(|k| f64::from(n + k) / f64::from(k + 1)).product::<f64>() / 16.0;
        Some(Self { power, limit: (SMOOTH_PART * tolerance / (b * slopes)).powi(2) })
    }
}

/// Cells of a tile, stages of the ring, threads of a block and its bytes of shared memory.
#[derive(Debug, Clone, Copy)]
pub struct M2l {
    pub cells: usize,
    pub stages: usize,
    pub threads: u32,
    pub shared: usize,
}

impl Recipe {
    /// `most` bounds the budget, in tolerances: infinite until a field missed its tolerance.
    pub fn new(kind: Kind, options: &PlanOptions, gradient: bool, is_f64: bool, most: f64) -> Self {
        let regularization = match kind {
            Kind::Charge => Regularization::None,
            Kind::Particle => options.particle_regularization,
            Kind::Segment => options.segment_regularization,
        };
        let cores = regularization != Regularization::None;
        let usual = budget(kind, cores, tolerance(options, is_f64), is_f64);
        let safety = (most / usual).min(1.0);
        let tolerance = safety * tolerance(options, is_f64);
        let most = if is_f64 { 16 } else { 11 };
        let least = (options.order.max(0) as usize).min(most);
        let staircase = Staircase::new(usual * tolerance, least, most);
        // A potential's sums cancel more than a velocity's.
        let two_parts = !is_f64 && tolerance < if kind == Kind::Charge { 3e-3 } else { 9e-4 };
        let full = if cores { LEAF_CORES } else { best_leaf(kind, &staircase, is_f64, gradient) };
        let (leaf, full) = match options.leaf_capacity {
            1.. => ((options.leaf_capacity as usize).clamp(8, 512), None),
            _ => ((2.1 * full) as usize, Some(full)),
        };
        let reach = |tolerance: f64| match (cores, gradient) {
            (false, _) => 0.0,
            (true, false) => core_reach(regularization, tolerance),
            (true, true) => {
                core_reach_gradient(regularization, 3.0 * tolerance).max(core_reach(regularization, tolerance))
            }
        };
        // Along a wake the deficits of a filament's segments mostly cancel.
        let core_range = reach(if kind == Kind::Segment { 4.0 * tolerance } else { tolerance });
        Self {
            kind,
            regularization,
            gradient,
            is_f64,
            staircase,
            capacity: [leaf, leaf],
            core_range,
            // The core of a segment acts along its whole line: (ρ/r)(1 - F) over all directions is in the mean square
            // about half of (c/r)², here less than four tolerances too.
            walk_range: if kind == Kind::Segment { core_range.max(0.34 / tolerance.sqrt()) } else { core_range },
            smooth: Smooth::new(regularization, tolerance, gradient),
            two_parts,
            full,
            budget: usual * safety,
        }
    }

    /// By how much the root cube exceeds the bounding box, so that the leaves of a uniform cloud of `n` points are full, and the
    /// coarsest level of leaves. A cloud that is a little wider than a power of two of leaves gets slightly larger ones:
    /// a thin layer of half empty cells all around would cost more.
    pub fn stretch(&self, n_sources: usize, n_targets: usize) -> (f64, u32) {
        if self.many_targets(n_sources, n_targets) {
            return (1.0, 0);
        }
        let n = n_sources.max(n_targets);
        let cells = (n as f64 / self.full.unwrap_or(self.capacity[0] as f64 / 2.0)).max(1.0).cbrt();
        let level = (cells.log2() - 0.1).ceil().max(0.0);
        let stretch = if self.full.is_some() { (level.exp2() / cells).max(1.0) } else { 1.0 };
        (stretch, (level as u32).saturating_sub(1))
    }

    fn many_targets(&self, n_sources: usize, n_targets: usize) -> bool {
        self.core_range > 0.0 && self.full.is_some() && n_targets >= MANY_TARGETS * n_sources
    }

    /// Points of a leaf at most: sources, targets.
    pub fn capacities(&self, n_sources: usize, n_targets: usize) -> [usize; 2] {
        if self.many_targets(n_sources, n_targets) { LEAVES_MANY_TARGETS } else { self.capacity }
    }

    /// Whether the near field looks for cores that reach beyond it.
    pub fn has_cores(&self) -> bool {
        self.kind == Kind::Segment || self.regularization != Regularization::None
    }

    pub fn components(&self) -> usize {
        if self.kind == Kind::Charge { 1 } else { 3 }
    }

    /// Numbers in a row of an expansion.
    pub fn stride(&self) -> usize {
        8 * self.staircase.tiles
    }

    /// Sums of the near field at a target.
    pub fn fields(&self) -> usize {
        match (self.kind, self.gradient) {
            (Kind::Charge, _) => 4,
            (_, true) => 12,
            (_, false) => 3,
        }
    }

    pub fn real_bytes(&self) -> usize {
        if self.is_f64 { 8 } else { 4 }
    }

    /// How M2M and L2L are launched.
    pub fn shifts(&self, shared: usize) -> Parts {
        let fragment = if self.is_f64 || self.two_parts { 512 } else { 256 };
        Parts::new(&self.staircase.shifts, self.staircase.tiles, self.real_bytes(), fragment, shared)
    }

    /// Leaves that a block of L2P takes at a time, and its bytes of shared memory for their potentials and fields: six blocks a
    /// multiprocessor, if possible.
    pub fn l2p(&self, shared: usize) -> (u32, usize) {
        let order = self.staircase.order;
        let degrees = if self.kind == Kind::Charge { order } else { order - 1 };
        let fields = match (self.kind, self.gradient) {
            (Kind::Charge, false) => 1,
            _ => self.fields(),
        };
        let potentials = (order * (order + 1) * self.components() * self.real_bytes()).next_multiple_of(16);
        let expansions = ((degrees * (degrees + 1) * fields * self.real_bytes()).div_ceil(16) | 1) * 16;
        let bytes = |leaves: usize| leaves.min(4) * potentials + leaves * expansions;
        let leaves = [8, 4, 2].into_iter().find(|leaves| bytes(*leaves) <= shared * 3 / 20).unwrap_or(1);
        (leaves as u32, bytes(leaves))
    }

    /// How `fmm_m2l` is launched.
    pub fn m2l(&self, shared: usize) -> M2l {
        let rows = if self.is_f64 && self.staircase.slots > 4 { 32 } else { 48 };
        let groups = if self.is_f64 { 2 } else { 3 };
        // A block of an old GPU has no room for the lists of 48 cells beside one stage.
        let cells = (rows / self.components()).min(if shared < 90_000 { 30 } else { 48 });
        let (stage, lists) = (1024 * rows, 4 * cells * (2 * 33 + 1));
        let room = ((shared - 8192 - lists) / stage).clamp(1, 4);
        let stages = if room > groups { room - room % groups } else { room };
        M2l { cells, stages, threads: 256 + 128 * groups as u32, shared: stages * stage + lists }
    }

    pub fn describe(&self) -> String {
        let s = &self.staircase;
        let elements = match self.kind {
            Kind::Charge => "charges",
            Kind::Particle => "particles",
            Kind::Segment => "segments",
        };
        let mut text = format!(
            "FMM on the device for {elements} in {} precision: expansions of {} degrees, of which each orbit of M2L offsets keeps what the tolerance needs \
             ({} of {} blocks of 8 by 8 coefficients on average), leaves of at most {} sources and {} targets.",
            if self.is_f64 { "double" } else { "single" },
            s.order,
            s.far_fragments / super::staircase::MAX_ORBITS,
            s.tiles * s.tiles,
            self.capacity[0],
            self.capacity[1]
        );
        if self.core_range > 0.0 {
            text += &format!(" Cores count up to {:.2} radii; farther, sums are singular.", self.core_range);
            if self.full.is_some() {
                let [sources, targets] = LEAVES_MANY_TARGETS;
                text += &format!(
                    " Where targets outnumber sources {MANY_TARGETS} times, leaves have {sources} and {targets}."
                );
            }
        }
        text
    }
}

/// Budget of the far field in tolerances.
fn budget(kind: Kind, cores: bool, tolerance: f64, is_f64: bool) -> f64 {
    match (cores, kind) {
        (true, _) => BUDGET_CORES,
        (_, Kind::Charge) => BUDGET_CHARGES,
        _ if tolerance > LOOSE => BUDGET_LOOSE,
        _ if is_f64 => BUDGET_PLAIN,
        _ => BUDGET_PLAIN_SINGLE,
    }
}

/// What can be asked of a precision.
pub fn tolerance(options: &PlanOptions, is_f64: bool) -> f64 {
    options.tolerance.max(if is_f64 { 1e-13 } else { 1e-6 })
}

/// Points a leaf where M2L, which falls with them, costs as much as the near field, which grows: measured on one H200,
/// 2026-11-21, seconds a target for a leaf of one point (M2L and a sixth for P2M to L2L) and pairs a second (near field).
fn best_leaf(kind: Kind, staircase: &Staircase, is_f64: bool, gradient: bool) -> f64 {
    let components = if kind == Kind::Charge { 1.0 } else { 3.0 };
    let fragment = if is_f64 { 2.5e-11 } else { 1.6e-11 };
    let far = 1.16 * components / 3.0 * (5.3e-8 + fragment * staircase.far_fragments as f64);
    let rate =
        near_rate(kind, is_f64) * if gradient { 0.6 } else { 1.0 } * if kind == Kind::Segment { 0.4 } else { 1.0 };
    (far * rate / 33.0).sqrt().clamp(30.0, 120.0)
}

/// Pairs of velocities a second, or what stands for it beside the balance seen with charges.
fn near_rate(kind: Kind, is_f64: bool) -> f64 {
    match (kind, is_f64) {
        (Kind::Charge, true) => 4.7e11,
        (Kind::Charge, false) => 6.8e11,
        (_, true) => 5.3e11,
        (_, false) => 1.0e12,
    }
}

/// Nodes and weights of Gauss-Legendre integration on [-1, 1], 16 of each (zero beyond `points`).
pub fn gauss_legendre(points: usize) -> [f64; 32] {
    let mut table = [0.0; 32];
    for i in 0..points {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (points as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..100 {
            let (mut p, mut q) = (1.0, 0.0);
            for k in 0..points {
                (p, q) = (((2 * k + 1) as f64 * x * p - k as f64 * q) / (k + 1) as f64, p);
            }
            slope = points as f64 * (x * p - q) / (x * x - 1.0);
            let step = p / slope;
            x -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        (table[i], table[16 + i]) = (x, 2.0 / ((1.0 - x * x) * slope * slope));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauss_legendre_integrates_its_degree() {
        for points in 1..=8 {
            let table = gauss_legendre(points);
            for degree in 0..2 * points {
                let sum: f64 = (0..points).map(|k| table[16 + k] * table[k].powi(degree as i32)).sum();
                let exact = if degree % 2 == 1 { 0.0 } else { 2.0 / (degree + 1) as f64 };
                assert!((sum - exact).abs() < 1e-14, "{points} points, degree {degree}: {sum} for {exact}");
            }
        }
    }

    fn options(tolerance: f64) -> PlanOptions {
        PlanOptions {
            method: crate::options::Method::Fmm,
            precision: crate::options::Precision::Arrays,
            order: 0,
            leaf_capacity: 0,
            segment_regularization: Regularization::Vatistas,
            particle_regularization: Regularization::GaussErf,
            index_base: 0,
            tolerance,
            normalization: 1.0,
            core_radius: 0.0,
            accumulate: false,
        }
    }

    #[test]
    fn expansions_fit_shared_memory() {
        for is_f64 in [false, true] {
            for tolerance in [1e-2, 1e-4, 1e-6, 1e-9] {
                for (kind, shared) in [
                    (Kind::Particle, 232_448),
                    (Kind::Charge, 232_448),
                    (Kind::Segment, 166_912),
                    (Kind::Charge, 101_376),
                    (Kind::Charge, 65_536),
                ] {
                    let options = options(tolerance);
                    let recipe = Recipe::new(kind, &options, true, is_f64, f64::INFINITY);
                    assert!(recipe.m2l(shared).shared + 8192 <= shared, "{tolerance} {kind:?}");
                    assert!(recipe.l2p(shared).1 + 4096 <= shared, "{tolerance} {kind:?}");
                    assert!(recipe.shifts(shared).shared + 4096 <= shared, "{tolerance} {kind:?}");
                }
            }
        }
    }
}
