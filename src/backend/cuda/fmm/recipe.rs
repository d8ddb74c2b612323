//! Parameters of one FMM on the device: orders, leaf sizes, ranges of cores. Pure numbers, decided on the host.

use super::at_targets::Degrees;
use super::grids;
use super::pseudo;
use super::reach::CULL_ALONG_LINES;
use super::shifts::Parts;
use super::trees;
use super::truncation::Truncation;
use crate::backend::cuda::domain::is_cube;
use crate::backend::verdict::GRADIENT_TOLERANCES;
use crate::math::regularization::{core_reach, core_reach_gradient};
use crate::options::{Expansion, Method, PlanOptions, Regularization};

/// What a source is; numbers of `Kind` in kernels/fmm.cuh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    Charge = 0,
    Particle = 1,
    Segment = 2,
}

impl Kind {
    /// Numbers at a target: potential, force and potential, velocity, velocity and gradient.
    pub fn results(self, gradient: bool) -> usize {
        match (self, gradient) {
            (Kind::Charge, false) => 1,
            (Kind::Charge, true) => 4,
            (_, false) => 3,
            (_, true) => 12,
        }
    }
}

/// Part of the tolerance that the far field may take, as a factor of the budget of `Truncation`: sums are dominated by what
/// is near, unless a core smooths that away. Measured on one H200, 2026-11-21, over the targets: random clouds and rings of 5e3 to
/// 1e6 at 1e-3 have 0.1 to 0.4 of their tolerance with 31, 2e4 sources at 1e7 targets 0.1 to 0.4, CUBE of 1e6 in f32 at
/// 1e-4 0.2 to 0.6 with 36. CUBE in f64 at 1e-6 has 0.4 to 0.6 with 34, but one field in twenty was found over its tolerance by the
/// sample; 0.3 to 0.5 with 26 and none.
const BUDGET_PLAIN: f64 = 36.0;
const BUDGET_TIGHT: f64 = 26.0;
const TIGHT: f64 = 1e-5;
/// The potential of random charges varies more from cloud to cloud: with 34 it reached 0.6 to 1.2 of 1.19e-3.
const BUDGET_CHARGES: f64 = 22.0;
/// VPM (cores twice the spacing) needs 2 for its gradients; its velocity has 0.4 of 1e-3 then, that of DUST 0.2 of 1e-4.
const BUDGET_CORES: [f64; 2] = [3.0, 1.8];
/// What a treecode may take of that, vortices and charges: M2L keeps whole blocks of eight coefficients and thereby more than its
/// budget asks for. On the emulated GPU, CUBE of 6e3 and 3e4 at 1e-2 to 1e-5, the FMM had 0.12 to 0.24 of its tolerance; the treecode with
/// the same budgets 0.3 to 0.4, with charges, whose constant the budget leaves out, 0.6 to more than 1; with these 0.1 to 0.25.
const AT_TARGETS: [f64; 2] = [0.6, 0.25];
/// Where the highest order misses its budget, it is taken as long as it does not miss that of sources without cores by this factor, and
/// the check of every field decides: cores that are small against the distances of the points smooth little of the field.
const WIDEST: f64 = 1.5;

/// Error that the interpolation of one source's correction may have, in tolerances: errors of many sources differ in sign.
const SMOOTH_PART: f64 = 2.0;
/// Most targets that share nodes.
pub const SMOOTH_TARGETS: u32 = 4000;

/// Largest correction that may be left out, in tolerances of the field's mean size over the root of the number of segments. Summed
/// one by one over 400 targets of a hover wake of 34,560 segments at 1e-4, what 0.3 leaves out comes to 0.23 tolerances (Vatistas) and
/// 0.01 (Lamb-Oseen), 1 to 0.5 and 0.04; in LATTICE to less than 0.03. Of 345,600 segments 0.5 left out 0.53.
const CULL: f64 = 0.4;

/// Points of a leaf where cores of particles act: the corrections dominate the time, and small cells reduce them.
const LEAF_CORES: f64 = 30.0;
/// Of segments, whose corrections are few since they are judged one by one, there are up to three times as many, because a block searches
/// for them once a leaf, as long as there are leaves enough for all blocks: one for so many targets. Measured on one H200, 2026-11-22, ms
/// with leaves of 63 and of 189: 345,600 segments on 845,604 targets 96 and 74, 369,060 on 189,063 14.7 and 13.9, 34,560 on 54,564 1.74
/// and 2.23, 36,960 on 18,963 1.16 and 3.27.
const MOST_LEAF_CORES: f64 = 90.0;
const TARGETS_A_POINT: f64 = 2000.0;
/// Where targets outnumber sources with cores so many times, the far field costs little beside the near field: leaves of targets are as
/// large as leaves enough for all blocks allow, since a block collects near sources and corrections once a leaf; leaves of sources
/// are the smaller the more targets meet them. Measured on one H200, 2026-11-23, ms with leaves of so many sources and targets: 65,536
/// segments on 500,000 targets 7.0 (30, 420), 5.0 (30, 100), 5.1 (30, 64); 20,000 on 2,000,000 7.5 (30, 420), 8.7 (20, 250), 7.9 (12, 420),
/// 9.1 (12, 128); 40,000 on 10,000,000 121 (30, 250), 64 (12, 250 or 420), 61 (12, 800), 71 (12, 128).
const MANY_TARGETS: usize = 4;
const LEAVES_OF_MANY_TARGETS: usize = 5000;
const LEAF_OF_MANY_TARGETS: [usize; 2] = [64, 800];
const LEAF_BESIDE_MANY_TARGETS: [usize; 2] = [8, 30];
/// Times that targets outnumber sources, times the sources of a leaf.
const TARGETS_A_SOURCE_LEAF: usize = 3000;

/// Deficits of many segments mostly cancel, and the range of their cores is made for that. Below this many they need not: their
/// cores are taken into account this much farther.
const CANCELLING_SEGMENTS: usize = 100;
const RANGE_WITHOUT_CANCELLING: f64 = 2.0;
/// By what factor the range of this many segments' cores is extended.
pub fn range_factor(segments: usize) -> f64 {
    if segments < CANCELLING_SEGMENTS { RANGE_WITHOUT_CANCELLING } else { 1.0 }
}

/// Points that a leaf may have, times those that one of a uniform cloud should have; and the most, since `fmm_leaves` looks at
/// windows of 1024 points.
const CAPACITY: f64 = 2.1;
const MOST_CAPACITY: usize = 512;

/// Sources and targets of a small problem, the root of their product, up to which two levels of cells are faster than three, in f64
/// and in f32. From the passes measured one by one on one H200, 2026-11-21 (docs/dev/tuning-log.md), µs: what three levels take more of
/// M2M, M2L and L2L, 27 to 37, is what the near field of 64 leaves, 15 and 0.85 (f32: 0.49) for each million of pairs, takes
/// longer than P2M and M2L beside it. Sweeps of whole problems the same evening agree: at 7,000 points two levels take 98 for 106
/// (f32: 82 for 93), at 10,000 144 for 121 (111 for 101).
const TWO_LEVELS: [f64; 2] = [7000.0, 8000.0];

/// Tolerances of f32 below which its rounding counts.
pub const TWO_FLOATS: f64 = 1e-4;

/// What the far field is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Far {
    /// Harmonics, of which each orbit keeps what `Recipe::truncation` says.
    Harmonics,
    /// A treecode: degrees by distance. `truncation` has M2M alone then.
    AtTargets(Degrees),
    /// Pseudo-particles of this order. `truncation` is of the least order then: its P2M finds the largest cores.
    Pseudo(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    pub kind: Kind,
    pub regularization: Regularization,
    pub gradient: bool,
    pub is_f64: bool,
    pub truncation: Truncation,
    pub far: Far,
    /// Points of a leaf at most, sources and targets, where these are about as many.
    pub capacity: [usize; 2],
    /// Within so many cores the regularized kernel is used.
    pub core_range: f64,
    /// In a periodic domain: there are images that are not near.
    pub has_images: bool,
    /// In a box with three equal periods, which is the root cube.
    pub periodic: bool,
    /// There, nodes of a cell along an axis for the exact sums of the check.
    pub grid_nodes: Option<u32>,
    /// Within so many cores source cells are searched for such elements.
    pub walk_range: f64,
    /// What cores may change beyond `core_range`, of what they may as a rule: see `Limits`; less for a smaller budget.
    pub cores: f64,
    /// Corrections that are smooth enough over many targets are interpolated to them.
    pub smooth: Option<Smooth>,
    /// Of segments' corrections those are left out that are less than so much of the field's size over the root of the number of
    /// segments; 0: none.
    pub cull: f64,
    /// Corrections of segments count beyond `walk_range` where they are more than so much of the size of the field, or of its gradient where
    /// that is asked for, see `reach`; 0: there are none.
    pub cull_along_lines: f64,
    /// What the interpolation of one of them may be wrong by is so many times that, over the tolerance of the correction by itself.
    pub smooth_share: f64,
    /// f32: the multipoles enter the products as two TF32 numbers each.
    pub two_parts: bool,
    /// f32: differences of two positions are those of two floats a coordinate, and products are added without the tensor units.
    pub two_floats: bool,
    /// Points that a leaf of a uniform cloud should have, if the root may be stretched for it.
    pub full: Option<f64>,
    /// Budget of the far field in tolerances; whether it is more than such sources should have.
    pub budget: f64,
    pub widened: bool,
    /// Half of the sources are the images of the others about a plane: a uniform cloud on it is then twice as long across it, with as
    /// many sources in a leaf.
    pub mirrored: bool,
    /// Small problems may have two levels of cells, whatever the leaf capacity, until a cloud needed more.
    pub shallow: bool,
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
        // `nearer`: a compact core's deficit has a singularity half a core radius from the axis, where 1 + (d/c)^6 is zero. At the edge of
        // the core the distance d to the centre is 1.93 times that to the singularity, and 1.93^7 = 100.
        let (b, power, nearer) = match regularization {
            Regularization::Vatistas => (0.5, 4, 1.0),
            Regularization::Scully => (1.0, 2, 1.0),
            Regularization::Rosenhead => (1.5, 2, 1.0),
            Regularization::Winckelmans => (1.875, 4, 1.0),
            Regularization::Compact => (0.5, 6, 100.0),
            _ => return None,
        };
        // The deficit falls as d^-n: q nodes on an interval of half length h leave binomial(n+q-1, q) / 2^(q-1) (h/d)^q of it.
        // For q from 4 to 8 and the n that occur the factor hardly depends on q; it is taken at 5.
        let n = 2 + power + u32::from(gradient);
        let slopes = (0..5).map(|k| f64::from(n + k) / f64::from(k + 1)).product::<f64>() / 16.0;
        Some(Self { power, limit: (SMOOTH_PART * tolerance / (nearer * b * slopes)).powi(2) })
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

/// What bounds a recipe once a field was found to need it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The largest budget, in tolerances.
    pub budget: f64,
    /// What cores that are left out may change, of what they may as a rule.
    pub cores: f64,
}

impl Limits {
    pub const NONE: Self = Self { budget: f64::INFINITY, cores: 1.0 };
}

impl Recipe {
    pub fn new(kind: Kind, options: &PlanOptions, gradient: bool, is_f64: bool, limits: Limits) -> Self {
        let regularization = match kind {
            Kind::Charge => Regularization::None,
            Kind::Particle => options.particle_regularization,
            Kind::Segment => options.segment_regularization,
        };
        let cores = regularization != Regularization::None;
        let asked = tolerance(options, is_f64);
        let part = if options.method == Method::Treecode { AT_TARGETS[usize::from(kind == Kind::Charge)] } else { 1.0 };
        let [usual, plain] = [cores, false].map(|cores| part * budget(kind, cores, gradient, asked));
        let most = limits.budget;
        let safety = (most / usual).min(1.0);
        let tolerance = safety * asked;
        let of_cores = limits.cores * tolerance;
        let pseudo = options.expansion == Expansion::PseudoParticles;
        let cube = options.period.filter(|&period| is_cube(period));
        let two_floats = !is_f64 && asked < TWO_FLOATS && kind != Kind::Charge && cube.is_none() && !pseudo;
        let highest = if is_f64 || two_floats { 16 } else { 11 };
        let least = (options.order.max(0) as usize).min(highest);
        let mut budget = usual * safety;
        let make = |budget: f64| truncated(options, budget * asked, least, highest);
        let (mut truncation, mut far) = make(budget);
        // Near what the highest order leaves nothing could be dropped.
        let reaches = 1.25 * truncation.floor / asked;
        let widened = !truncation.reached && reaches <= most.min(WIDEST * plain);
        if widened {
            budget = reaches;
            (truncation, far) = make(budget);
        }
        // Terms of a potential cancel more than those of a velocity.
        let two_parts = !is_f64 && tolerance < if kind == Kind::Charge { 3e-3 } else { 9e-4 };
        let full = match &far {
            Far::Pseudo(_) => pseudo::LEAF,
            _ if cores => LEAF_CORES,
            Far::AtTargets(degrees) => degrees.best_leaf(kind, gradient),
            Far::Harmonics => best_leaf(kind, &truncation, is_f64, gradient),
        };
        let (leaf, full) = match options.leaf_capacity {
            1.. => ((options.leaf_capacity as usize).clamp(8, MOST_CAPACITY), None),
            _ => ((CAPACITY * full) as usize, Some(full)),
        };
        let reach = |tolerance: f64| match (cores, gradient) {
            (false, _) => 0.0,
            (true, false) => core_reach(regularization, tolerance),
            (true, true) => {
                core_reach_gradient(regularization, 3.0 * tolerance).max(core_reach(regularization, tolerance))
            }
        };
        let along_lines = CULL_ALONG_LINES * if gradient { GRADIENT_TOLERANCES } else { 1.0 };
        let core_range = reach(Self::left_beyond(kind) * of_cores);
        Self {
            kind,
            regularization,
            gradient,
            is_f64,
            truncation,
            far,
            capacity: [leaf, leaf],
            core_range,
            has_images: options.period.is_some(),
            periodic: cube.is_some(),
            grid_nodes: cube.and_then(|_| grids::nodes(kind, regularization, tolerance)),
            // The core of a segment acts along its whole line: (ρ/r)(1 - F) over all directions is in the mean square
            // about half of (c/r)², here less than four tolerances too.
            walk_range: if kind == Kind::Segment { core_range.max(0.34 / tolerance.sqrt()) } else { core_range },
            smooth: Smooth::new(regularization, of_cores, gradient),
            cores: limits.cores * safety,
            cull: if kind == Kind::Segment && cores && !gradient { CULL * tolerance } else { 0.0 },
            cull_along_lines: if kind == Kind::Segment && cores { along_lines * tolerance } else { 0.0 },
            smooth_share: 0.5 / (SMOOTH_PART * tolerance),
            two_parts,
            two_floats,
            full,
            budget,
            widened,
            mirrored: options.plane.is_some(),
            shallow: cube.is_none(),
        }
    }

    /// What a core may change of its source's own field beyond `core_range`, in tolerances: along a wake the deficits of a filament's
    /// segments mostly cancel.
    fn left_beyond(kind: Kind) -> f64 {
        if kind == Kind::Segment { 4.0 } else { 1.0 }
    }

    /// What a core may change beyond `core_range`, where its source alone has this velocity, in units of the tolerance.
    pub fn left_of_cores(&self, velocity: f64) -> f64 {
        velocity * self.cores * Self::left_beyond(self.kind)
    }

    /// Whether another recipe of the same plan, kind and precision has the same translation matrices.
    pub fn has_operators_of(&self, other: &Self) -> bool {
        (&self.truncation, &self.far) == (&other.truncation, &other.far)
            && (self.periodic, self.two_parts) == (other.periodic, other.two_parts)
    }

    /// `core_range` and `walk_range` for so many sources.
    pub fn ranges(&self, n_sources: usize) -> [f64; 2] {
        let farther = if self.kind == Kind::Segment { range_factor(n_sources) } else { 1.0 };
        [self.core_range, self.walk_range].map(|range| farther * range)
    }

    /// By how much the root cube exceeds the bounding box, so that the leaves of a uniform cloud of `n` points are full, and the
    /// coarsest level of leaves. A cloud that is a little wider than a power of two of leaves gets slightly larger ones:
    /// a thin layer of half empty cells all around would cost more. A periodic box is its root cube, or where its side may be divided
    /// into `thirds`, three quarters of it.
    pub fn stretch(&self, n_sources: usize, n_targets: usize, thirds: bool) -> (f64, u32) {
        if self.many_targets(n_sources, n_targets) {
            return (1.0, 0);
        }
        if self.two_levels(n_sources, n_targets) {
            return (1.0, 1);
        }
        let own = if self.mirrored { n_sources.div_ceil(2) } else { n_sources };
        let n = own.max(n_targets);
        let full = self.full.map_or(self.capacity[0] as f64 / 2.0, |full| self.growth(n_targets) * full);
        if self.periodic && self.full.is_some() {
            let cells = along_box(n, full);
            let stretch = if thirds && cells.is_multiple_of(3) { IN_THIRDS } else { 1.0 };
            return (stretch, (cells as f64 * stretch).log2().round().max(1.0) as u32 - 1);
        }
        let cells = (n as f64 / full).max(1.0).cbrt();
        let cells = if self.full.is_some() { whole(cells) } else { cells };
        let level = (cells.log2() - 0.1).ceil().max(0.0);
        let stretch = if self.full.is_some() { (level.exp2() / cells).max(1.0) } else { 1.0 };
        (stretch, (level as u32).saturating_sub(1))
    }

    fn many_targets(&self, n_sources: usize, n_targets: usize) -> bool {
        self.core_range > 0.0 && self.full.is_some() && n_targets >= MANY_TARGETS * n_sources
    }

    /// Whether 64 leaves are enough: a level's latency against the near field's pairs.
    fn two_levels(&self, n_sources: usize, n_targets: usize) -> bool {
        let most = n_sources.max(n_targets);
        // With 30 points a leaf there are no more than two levels anyway.
        let eligible =
            self.shallow && self.full.is_some() && !self.has_cores() && most > 64 * 30 && most <= trees::MOST;
        let pairs = n_sources as f64 * n_targets as f64 / if self.gradient { 0.6 } else { 1.0 };
        eligible && pairs <= TWO_LEVELS[usize::from(!self.is_f64)].powi(2)
    }

    /// Points of a leaf at most: sources, targets.
    pub fn capacities(&self, n_sources: usize, n_targets: usize) -> [usize; 2] {
        if self.two_levels(n_sources, n_targets) {
            // Twice what a uniform cloud has.
            return [n_sources.max(n_targets) / 32; 2];
        }
        if self.many_targets(n_sources, n_targets) {
            let [least, most] = LEAF_BESIDE_MANY_TARGETS;
            let sources = (TARGETS_A_SOURCE_LEAF * n_sources / n_targets).clamp(least, most);
            let [least, most] = LEAF_OF_MANY_TARGETS;
            return [sources, (n_targets / LEAVES_OF_MANY_TARGETS).clamp(least, most)];
        }
        if let Some(full) = self.full.filter(|_| self.periodic) {
            let n = n_sources.max(n_targets);
            let even = n as f64 / (along_box(n, self.growth(n_targets) * full) as f64).powi(3);
            return [((CAPACITY * even) as usize).clamp(8, MOST_CAPACITY); 2];
        }
        self.capacity.map(|n| (self.growth(n_targets) * n as f64) as usize)
    }

    /// How many times as many points as `LEAF_CORES` a leaf has, beside so many targets.
    fn growth(&self, n_targets: usize) -> f64 {
        let grows = self.full.is_some() && self.kind == Kind::Segment && self.core_range > 0.0 && !self.gradient;
        if grows { (n_targets as f64 / TARGETS_A_POINT).clamp(LEAF_CORES, MOST_LEAF_CORES) / LEAF_CORES } else { 1.0 }
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
        8 * self.truncation.tiles
    }

    /// Of the expansions.
    pub fn order(&self) -> usize {
        if let Far::Pseudo(order) = self.far { order } else { self.truncation.order }
    }

    /// Sums of the near field at a target: of charges always potential and force.
    pub fn fields(&self) -> usize {
        self.kind.results(self.gradient || self.kind == Kind::Charge)
    }

    pub fn real_bytes(&self) -> usize {
        if self.is_f64 { 8 } else { 4 }
    }

    /// How M2M and L2L are launched.
    pub fn shifts(&self, shared: usize) -> Parts {
        let fragment = if self.is_f64 || self.two_parts { 512 } else { 256 };
        Parts::new(&self.truncation.shifts, self.truncation.tiles, self.real_bytes(), fragment, shared)
    }

    /// Leaves that a block of L2P takes at a time, and its bytes of shared memory for their potentials and fields: six blocks a
    /// multiprocessor, if possible.
    pub fn l2p(&self, shared: usize) -> (u32, usize) {
        let order = self.truncation.order;
        let degrees = if self.kind == Kind::Charge { order } else { order - 1 };
        let fields = self.kind.results(self.gradient);
        let potentials = (order * (order + 1) * self.components() * self.real_bytes()).next_multiple_of(16);
        let expansions = ((degrees * (degrees + 1) * fields * self.real_bytes()).div_ceil(16) | 1) * 16;
        let bytes = |leaves: usize| leaves.min(4) * potentials + leaves * expansions;
        let leaves = [8, 4, 2].into_iter().find(|leaves| bytes(*leaves) <= shared * 3 / 20).unwrap_or(1);
        (leaves as u32, bytes(leaves))
    }

    /// How `fmm_m2l` is launched: with the groups of gathering warps that it has registers for.
    pub fn m2l(&self, shared: usize, hopper: bool) -> M2l {
        let rows = if self.truncation.slots > 4 { 32 } else { 48 };
        let groups = if self.is_f64 || self.two_parts { 2 } else { 3 } - usize::from(!hopper);
        // A block of an old GPU has no room for the lists of 48 cells beside one stage.
        let cells = (rows / self.components()).min(if shared < 90_000 { 30 } else { 48 });
        let (stage, lists) = (1024 * rows, 4 * cells * (2 * 33 + 1));
        let room = ((shared - 8192 - lists) / stage).clamp(1, 4);
        let stages = if room > groups { room - room % groups } else { room };
        M2l { cells, stages, threads: 256 + 128 * groups as u32, shared: stages * stage + lists }
    }

    pub fn describe(&self) -> String {
        let s = &self.truncation;
        let elements = match self.kind {
            Kind::Charge => "charges",
            Kind::Particle => "particles",
            Kind::Segment => "segments",
        };
        let (name, far) = match &self.far {
            Far::AtTargets(degrees) => ("Treecode", degrees.describe()),
            Far::Pseudo(order) => {
                ("FMM", format!("{} pseudo-particles a cell (order {order}),", pseudo::count(*order)))
            }
            Far::Harmonics => (
                "FMM",
                format!(
                    "expansions of {} degrees, of which each orbit of M2L offsets keeps what the tolerance needs ({} of {} blocks of 8 by 8 coefficients on average),",
                    s.order,
                    s.far_fragments / super::truncation::MAX_ORBITS,
                    s.tiles * s.tiles
                ),
            ),
        };
        let mut text = format!(
            "{name} on the device for {elements} in {} precision{}: {far} leaves of at most {} sources and {} targets.",
            if self.is_f64 { "double" } else { "single" },
            if self.two_floats { ", coordinates in two floats" } else { "" },
            self.capacity[0],
            self.capacity[1]
        );
        if self.shallow && self.full.is_some() && !self.has_cores() {
            text += " Small problems have 64 leaves, however full.";
        }
        if self.core_range > 0.0 {
            text += &format!(" Cores count up to {:.2} radii; farther, sums are singular.", self.core_range);
            if self.full.is_some() {
                let ([least, most], [fewest, largest]) = (LEAF_BESIDE_MANY_TARGETS, LEAF_OF_MANY_TARGETS);
                text += &format!(
                    " Where targets outnumber sources {MANY_TARGETS} times, leaves have {least} to {most} sources and {fewest} to {largest} targets."
                );
            }
            if self.periodic && self.full.is_some() {
                text += " In a periodic box leaves have half to twice as many, by its number of points.";
            }
            if self.growth(usize::MAX) > 1.0 {
                let (from, times) = (TARGETS_A_POINT * LEAF_CORES, MOST_LEAF_CORES / LEAF_CORES);
                text += &format!(" With more than {from} targets leaves hold up to {times} times as many.");
            }
        }
        text
    }
}

/// What is kept for an error `budget`.
fn truncated(options: &PlanOptions, budget: f64, least: usize, most: usize) -> (Truncation, Far) {
    if options.method == Method::Treecode {
        let (truncation, degrees) = Degrees::new(budget, least, most);
        return (truncation, Far::AtTargets(degrees));
    }
    if options.expansion == Expansion::PseudoParticles {
        let (order, floor) = pseudo::order_for(budget, least, most);
        let truncation = Truncation { reached: floor <= budget, floor, ..Truncation::shifts_alone(2) };
        return (truncation, Far::Pseudo(order));
    }
    (Truncation::new(budget, least, most), Far::Harmonics)
}

/// Budget of the far field in tolerances.
fn budget(kind: Kind, cores: bool, gradient: bool, tolerance: f64) -> f64 {
    match (cores, kind) {
        (true, _) => BUDGET_CORES[usize::from(gradient)],
        (_, Kind::Charge) => BUDGET_CHARGES,
        _ if tolerance < TIGHT => BUDGET_TIGHT,
        _ => BUDGET_PLAIN,
    }
}

/// What can be asked of a precision.
pub fn tolerance(options: &PlanOptions, is_f64: bool) -> f64 {
    options.tolerance.max(if is_f64 { 1e-13 } else { 1e-6 })
}

/// Leaves along a side of a uniform cloud: even, so that the last parents are full too, and no layer of cells is nearly empty. CUBE
/// of 1e5 in f32 at 1e-4 took 0.58 ms with 13.3 of them, 0.48 with 12. With few cells large leaves cost more than small
/// ones: 1e4 points in f64 at 1e-3 take 0.147 ms with 6, 0.121 with 8.
fn whole(cells: f64) -> f64 {
    if cells < 2.0 {
        return if cells <= 1.1 { 1.0 } else { 2.0 };
    }
    let below = 2.0 * (cells / 2.0).floor();
    let most = if below < FEW_LEAVES { SLIGHTLY * below } else { (below * (below + 2.0)).sqrt() };
    if cells <= most { below } else { below + 2.0 }
}

/// Below so many leaves along a side the next number is taken unless the smaller one is nearly reached.
const FEW_LEAVES: f64 = 8.0;
const SLIGHTLY: f64 = 1.09;

/// The root cube of a periodic box over its side, where that is three cells of level 2.
const IN_THIRDS: f64 = 4.0 / 3.0;

/// Points of a leaf of a periodic box where those of a cloud have one: all cells have all neighbours there, and M2L takes longer.
const IN_BOX: f64 = 1.3;

/// Leaves along the side of a periodic box that `n` points fill evenly: 2^k or 3 · 2^k, k > 0. Of those beside the number for leaves of
/// `IN_BOX` times `full` points the larger where there are few, as of a cloud (`whole`), else the nearer in its ratio, since M2L takes as much more with fewer points as the near field with more. One H200,
/// 2026-11-23, particles on a lattice with cores of 0.7 spacings and gradients, f32, ms with 64 and with 8 points a leaf: 128³ at 1e-4 35 and
/// 86, at 1e-3 30 and 48; 256³ moved by a third of a spacing at 1e-3 255 and, with leaves of both kinds, 373.
fn along_box(n: usize, full: f64) -> usize {
    let cells = (n as f64 / (IN_BOX * full)).max(1.0).cbrt();
    let power = cells.log2().floor().exp2();
    let [below, above] = match power >= 4.0 {
        false => [power, 2.0 * power],
        true if cells < 1.5 * power => [power, 1.5 * power],
        true => [1.5 * power, 2.0 * power],
    };
    let most = if below < FEW_LEAVES { SLIGHTLY * below } else { (below * above).sqrt() };
    if cells <= most { below as usize } else { above as usize }
}

/// Points a leaf where M2L, which falls with them, and the near field, which grows, take least together: a fit to the
/// minima over leaves of 24 to 140 points, 1e5 and 1e6 of them, one H200, 2026-11-21. The products' power is that of
/// the minima: M2L takes less than in proportion, and the square root of that.
fn best_leaf(kind: Kind, truncation: &Truncation, is_f64: bool, gradient: bool) -> f64 {
    let base: f64 = match (kind, is_f64) {
        (Kind::Charge, _) => 26.0,
        (_, true) => 34.5,
        (_, false) => 43.5,
    };
    let slower =
        if kind == Kind::Segment { 0.4f64 } else { 1.0 } * if gradient && kind != Kind::Charge { 0.6 } else { 1.0 };
    (base * slower.sqrt() * (truncation.far_fragments as f64 / 1000.0).powf(0.27)).clamp(24.0, 120.0)
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
            plane: None,
            period: None,
            expansion: crate::options::Expansion::Harmonics,
            leaf_capacity: 0,
            segment_regularization: Regularization::Vatistas,
            particle_regularization: Regularization::GaussErf,
            index_base: 0,
            tolerance,
            normalization: 1.0,
            core_radius: 0.0,
            accumulate: false,
            reproducible: false,
            host_partition: false,
        }
    }

    /// Even numbers of leaves along a side, near what was asked for.
    #[test]
    fn clouds_have_whole_leaves() {
        for cells in [1.0, 1.05] {
            assert_eq!(whole(cells), 1.0);
        }
        for (cells, want) in
            [(1.5, 2.0), (4.3, 4.0), (4.9, 6.0), (7.0, 8.0), (8.9, 8.0), (9.0, 10.0), (25.1, 26.0), (32.2, 32.0)]
        {
            assert_eq!(whole(cells), want, "{cells}");
        }
        let recipe = Recipe::new(Kind::Particle, &options(1e-3), false, true, Limits::NONE);
        for n in [1, 10, 5000, 1_000_000] {
            let (stretch, least) = recipe.stretch(n, n, false);
            assert!((1.0..=2.0).contains(&stretch), "{n}: {stretch}");
            assert!(least <= 4);
        }
    }

    /// Budgets that the highest order misses are widened up to those of sources without cores, unless a field was found to need them.
    #[test]
    fn budgets_that_are_not_reached_are_widened() {
        let recipe = |tolerance, budget| {
            Recipe::new(Kind::Particle, &options(tolerance), false, true, Limits { budget, ..Limits::NONE })
        };
        let usual = recipe(1e-5, f64::INFINITY);
        assert!(usual.truncation.reached && !usual.widened && usual.budget == BUDGET_CORES[0]);
        for tolerance in [1e-6, 2e-7] {
            let wider = recipe(tolerance, f64::INFINITY);
            assert!(wider.truncation.reached && wider.widened && wider.truncation.order == 16, "{tolerance}");
            assert!(
                wider.budget > BUDGET_CORES[0] && wider.budget < WIDEST * BUDGET_TIGHT,
                "{tolerance}: {}",
                wider.budget
            );
            assert!(!recipe(tolerance, 0.9 * wider.budget).truncation.reached);
        }
        assert!(!recipe(1e-8, f64::INFINITY).truncation.reached);
    }

    /// Single precision below 1e-4 has orders up to 16, for which there are kernels of two to five slots.
    #[test]
    fn tight_tolerances_of_single_precision_have_two_floats() {
        let cores = [Regularization::None, Regularization::GaussErf];
        let recipe = |core: Regularization, kind: Kind, tolerance: f64| {
            let options =
                PlanOptions { particle_regularization: core, segment_regularization: core, ..options(tolerance) };
            Recipe::new(kind, &options, false, false, Limits::NONE)
        };
        for (core, kind) in cores.into_iter().flat_map(|core| [(core, Kind::Particle), (core, Kind::Segment)]) {
            assert!(!recipe(core, kind, 1e-4).two_floats);
            for tolerance in [9.9e-5, 3e-5, 1e-5, 3e-6, 1e-6] {
                let recipe = recipe(core, kind, tolerance);
                assert!(recipe.two_floats && recipe.two_parts && recipe.truncation.reached, "{tolerance}");
                assert!((2..=5).contains(&recipe.truncation.slots), "{tolerance}");
            }
        }
        assert!(!recipe(Regularization::None, Kind::Charge, 1e-5).two_floats);
        let in_box = PlanOptions { period: Some([1.0; 3]), ..options(1e-5) };
        assert!(!Recipe::new(Kind::Particle, &in_box, false, false, Limits::NONE).two_floats);
    }

    /// A lattice of 128³ points in a periodic box has 64 of them in each leaf; other numbers have the nearer of two.
    #[test]
    fn periodic_boxes_have_even_leaves() {
        let open = Recipe::new(Kind::Particle, &options(1e-3), true, false, Limits::NONE);
        assert_eq!(open.capacities(1 << 21, 1 << 21), open.capacity);
        let box_of = Recipe { periodic: true, ..open };
        assert_eq!(box_of.capacities(1 << 21, 1 << 21), [134; 2]);
        assert_eq!(box_of.capacities(1 << 24, 1 << 20), [134; 2]);
        assert_eq!(box_of.stretch(1 << 21, 1 << 21, true), (1.0, 4));
        let wider = Recipe { full: Some(50.0), ..box_of };
        assert_eq!(wider.capacities(1_000_000, 1_000_000), [151; 2]);
        assert_eq!(wider.stretch(1_000_000, 1_000_000, true), (IN_THIRDS, 4));
        assert_eq!(wider.stretch(1_000_000, 1_000_000, false), (1.0, 4));
        for (n, cells) in
            [(1, 1), (400, 2), (3000, 4), (10_000, 6), (30_000, 8), (100_000, 12), (3_000_000, 32), (10_000_000, 48)]
        {
            assert_eq!(along_box(n, 50.0), cells, "{n}");
        }
        for n in (4000..1_000_000).step_by(997) {
            let even = n as f64 / (along_box(n, 50.0) as f64).powi(3);
            assert!((24.0..130.0).contains(&even), "{n}: {even}");
        }
    }

    /// Images double the domain and the sources: the leaves are as wide as without them.
    #[test]
    fn images_about_a_plane_leave_the_leaves_as_they_are() {
        for (kind, reg) in [(Kind::Particle, Regularization::None), (Kind::Segment, Regularization::Vatistas)] {
            let o = PlanOptions { particle_regularization: reg, segment_regularization: reg, ..options(1e-4) };
            let free = Recipe::new(kind, &o, false, true, Limits::NONE);
            let plane = PlanOptions { plane: Some(crate::options::Plane { axis: 2, position: 0.0 }), ..o };
            let mirrored = Recipe::new(kind, &plane, false, true, Limits::NONE);
            for (n, m) in [(1_000_000, 1_000_000), (300_000, 200_000), (100_000, 300_000)] {
                assert_eq!(mirrored.stretch(2 * n, m, false), free.stretch(n, m, false), "{kind:?} {n}");
                assert_eq!(mirrored.capacities(2 * n, m), free.capacities(n, m), "{kind:?} {n}");
            }
        }
    }

    /// Cores of strong sources end farther away, where they change less.
    #[test]
    fn cores_may_have_less() {
        let particles = [Regularization::GaussErf, Regularization::Compact, Regularization::Winckelmans];
        let segments = [Regularization::LambOseen, Regularization::Vatistas, Regularization::Scully];
        let all = particles.map(|r| (Kind::Particle, r)).into_iter().chain(segments.map(|r| (Kind::Segment, r)));
        for (kind, regularization) in all {
            let o = PlanOptions {
                particle_regularization: regularization,
                segment_regularization: regularization,
                ..options(1e-3)
            };
            let [usual, farther] =
                [1.0, 1e-3].map(|cores| Recipe::new(kind, &o, false, true, Limits { cores, ..Limits::NONE }));
            assert!(farther.core_range > 1.1 * usual.core_range, "{regularization:?}");
            assert!((farther.left_of_cores(5.0) - 1e-3 * usual.left_of_cores(5.0)).abs() < 1e-12, "{regularization:?}");
            assert!(farther.has_operators_of(&usual));
        }
    }

    #[test]
    fn few_points_have_two_levels() {
        let recipe = |is_f64| Recipe::new(Kind::Particle, &options(1e-3), false, is_f64, Limits::NONE);
        let plain = |is_f64| Recipe {
            regularization: Regularization::None,
            core_range: 0.0,
            full: Some(30.0),
            ..recipe(is_f64)
        };
        for is_f64 in [false, true] {
            let mut recipe = plain(is_f64);
            assert_eq!((recipe.stretch(5000, 5000, false), recipe.capacities(5000, 5000)), ((1.0, 1), [156; 2]));
            assert!(recipe.capacities(20_000, 20_000)[0] < 100 && recipe.stretch(20_000, 20_000, false).1 > 1);
            recipe.shallow = false;
            assert_eq!(recipe.capacities(5000, 5000), recipe.capacity);
        }
        assert_eq!(recipe(true).capacities(5000, 5000), recipe(true).capacity, "cores");
        // Not where one side alone is small: `fmm_leaves` looks at windows of at most 1024 points.
        for (n, m) in [(50_000, 900), (1_000_000, 40), (40, 1_000_000), (16_384, 100)] {
            assert!(plain(true).capacities(n, m).iter().all(|c| *c <= 512), "{n} {m}");
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
                    let recipe = Recipe::new(kind, &options, true, is_f64, Limits::NONE);
                    let m2l = recipe.m2l(shared, shared > 200_000);
                    assert!(m2l.shared + 8192 <= shared, "{tolerance} {kind:?}");
                    assert!(recipe.l2p(shared).1 + 8192 <= shared, "{tolerance} {kind:?}");
                    assert!(recipe.shifts(shared).shared + 4096 <= shared, "{tolerance} {kind:?}");
                }
            }
        }
    }
}
