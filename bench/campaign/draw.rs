//! What a random problem is: every choice that makes it, drawn from a seed and a number.
//!
//! Enters: seed, number of the problem, limits of the sizes. Leaves: `Problem`, a pure function of these, and its
//! description in one line. No number of the problem itself is made here, see `build`.

use crate::support::cases::Kind;
use crate::support::random::Random;
use wakefmm::options::*;

use super::families::{FAMILIES, Shape};
use super::ranks::SPLITS;

/// Tolerances: from the first down to the one that the precision of computation promises (README, the promise).
pub const LOOSEST: f64 = 0.031_622_776_601_683_79;
/// Single precision arrays hold the results with 24 bits, whatever the precision of the computation.
pub const TIGHTEST_IN_SINGLE_ARRAYS: f64 = 1e-6;

/// Most sources and targets of a periodic problem.
pub const PERIODIC_SIZE: usize = 600;

/// Most sources and targets of a problem by pseudo-particles.
pub const PSEUDO_SIZE: usize = 2000;

pub const CORES: [&str; 9] =
    ["zero", "equal", "2 decades", "4 decades", "4 decades and zeros", "as the cloud", "few large", "by age", "local"];
pub const STRENGTHS: [&str; 6] = ["random", "coherent", "tangential", "6 decades", "few strong", "local"];
pub const LENGTHS: [&str; 4] = ["local", "2 decades", "4 decades", "few long"];
pub const HISTORIES: [(&str, f64); 4] =
    [("new", 0.8), ("after another problem", 0.1), ("after other targets", 0.05), ("after other strengths", 0.05)];
pub const METHODS: [(i32, f64); 3] = [(WFMM_METHOD_FMM, 0.5), (WFMM_METHOD_TREECODE, 0.35), (WFMM_METHOD_AUTO, 0.15)];
pub const TARGETS: [&str; 10] =
    ["sources", "alike", "near", "box", "middles", "beside", "far", "ground", "one spot", "sources and far"];

#[derive(Debug, Clone)]
pub struct Problem {
    pub index: u64,
    /// Of the numbers of the problem.
    pub seed: u64,
    pub shape: Shape,
    pub kind: Kind,
    pub segment_regularization: i32,
    pub particle_regularization: i32,
    pub sources: usize,
    pub targets: usize,
    pub tolerance: f64,
    pub single_arrays: bool,
    pub precision: i32,
    pub gradient: bool,
    pub target_rule: &'static str,
    pub core_rule: &'static str,
    /// Of the cores, in extents of the cloud.
    pub core: f64,
    pub strength_rule: &'static str,
    pub length_rule: &'static str,
    /// Neighbouring segments share their nodes where the family knows neighbours.
    pub joined: bool,
    pub unit: f64,
    /// Distance of the origin in extents of the cloud.
    pub offset: f64,
    pub method: i32,
    pub leaf_capacity: i32,
    pub threads: i32,
    /// What the plan has evaluated before.
    pub history: &'static str,
    /// In units of `unit`; 0: open.
    pub period: [f64; 3],
    pub expansion: i32,
    /// How far the elements of a pair with opposite strengths are apart, in extents of the cloud; 0: there are no pairs.
    pub pair: f64,
    /// Axis across which there is a ground plane, and how far it is from the nearest source, in extents along the axis.
    pub plane: Option<(usize, f64)>,
    /// Number of ranks that it is dealt out to, and which of `ranks::SPLITS`; none: one process.
    pub ranks: Option<(usize, usize)>,
}

/// Entry of a list with weights.
fn weighted<T: Copy>(r: &mut Random, list: &[(T, f64)]) -> T {
    let total: f64 = list.iter().map(|(_, w)| w).sum();
    let mut rest = r.unit() * total;
    for &(value, weight) in list {
        if rest < weight {
            return value;
        }
        rest -= weight;
    }
    list[0].0
}

fn among<T: Copy>(r: &mut Random, list: &[T]) -> T {
    list[(r.bits() % list.len() as u64) as usize]
}

/// Even in the logarithm; half of the problems are large enough for a far field.
fn size(r: &mut Random, (least, most): (usize, usize)) -> usize {
    let least = if r.unit() < 0.5 { least } else { least.max(1000).min(most) };
    (r.log_between(least as f64, most as f64 + 1.0) as usize).clamp(least, most)
}

impl Problem {
    pub fn draw(seed: u64, index: u64, sizes: (usize, usize)) -> Self {
        let mut mix = Random::new(seed.wrapping_mul(0x9e37_79b9_97f4_a7c5) ^ 0x0ca3_9a16);
        let mut r = Random::new(mix.bits() ^ index.wrapping_mul(0xd134_2543_de82_ef95));
        let r = &mut r;
        let seed = r.bits();
        let single_arrays = r.unit() < 0.4;
        let precision =
            weighted(r, &[(WFMM_PRECISION_ARRAYS, 0.7), (WFMM_PRECISION_F32, 0.15), (WFMM_PRECISION_F64, 0.15)]);
        let kind =
            weighted(r, &[(Kind::Particles, 0.4), (Kind::Segments, 0.4), (Kind::Both, 0.12), (Kind::Charges, 0.08)]);
        let family = among(r, &FAMILIES);
        let sources = size(r, sizes);
        let other = size(r, sizes);
        let targets = if r.unit() < 0.5 { other } else { (sources as f64 * r.log_between(0.3, 3.0)).ceil() as usize };
        let mut p = Self {
            index,
            seed,
            shape: Shape::new(family, std::array::from_fn(|_| r.unit()), r.bits(), single_arrays),
            kind,
            segment_regularization: WFMM_REG_NONE + (r.bits() % 6) as i32,
            particle_regularization: [WFMM_REG_NONE, 6, 7, 8, 9, 10, 11][(r.bits() % 7) as usize],
            sources,
            targets: targets.clamp(1, sizes.1),
            tolerance: 0.0,
            single_arrays,
            precision,
            gradient: r.unit() < 0.6,
            target_rule: weighted(r, &target_weights(family)),
            core_rule: weighted(r, &core_weights()),
            core: r.log_between(1e-4, 0.3),
            strength_rule: among(r, &STRENGTHS),
            length_rule: among(r, &LENGTHS),
            joined: r.unit() < 0.7,
            unit: if r.unit() < 0.5 { 1.0 } else { r.log_between(1e-7, 1e7) },
            offset: 0.0,
            method: weighted(r, &METHODS),
            leaf_capacity: if r.unit() < 0.9 { 0 } else { r.log_between(4.0, 200.0) as i32 },
            threads: weighted(r, &[(1, 0.8), (2, 0.12), (3, 0.08)]),
            history: weighted(r, &HISTORIES),
            period: [0.0; 3],
            expansion: WFMM_EXPANSION_HARMONICS,
            pair: 0.0,
            plane: None,
            ranks: None,
        };
        // Single precision arrays keep some of the cloud's shape only near the origin.
        if r.unit() < 0.4 {
            p.offset = r.log_between(0.1, if p.rounded() { 30.0 } else { 1e3 });
        }
        p.tolerance = r.log_between(p.tightest(), LOOSEST);
        p
    }

    /// The same problem, with so many of a hundred in a slab, a tube or a box. Their reference costs hundreds of images a
    /// pair, so that they are small; the treecode has no images, and the direct sum, which is another one, takes its place.
    pub fn in_periods(mut self, percent: u64) -> Self {
        let mut r = Random::new(self.seed ^ 0x7e51_0d1c);
        if r.bits() % 100 >= percent {
            return self;
        }
        let (base, axes) = (r.log_between(0.4, 3.0), 1 + r.bits() % 7);
        self.period = std::array::from_fn(|i| {
            let own = base * r.log_between(0.7, 1.4);
            if axes & (1 << i) > 0 { own } else { 0.0 }
        });
        // The images of one point may have no field at it.
        self.sources = self.sources.clamp(2, PERIODIC_SIZE);
        self.targets = self.targets.clamp(2, PERIODIC_SIZE);
        if self.method == WFMM_METHOD_TREECODE {
            self.method = WFMM_METHOD_DIRECT;
        }
        // Targets hundreds of periods away need all images on the way.
        self.target_rule = match self.target_rule {
            "far" => "beside",
            "sources and far" => "sources",
            rule => rule,
        };
        self
    }

    /// The same problem, where it is an FMM's without periods, with so many of a hundred by pseudo-particles. They are slow: such
    /// problems are small, with tolerances down to 1e-5 and small leaves, in which the lists are those of harmonics.
    pub fn by_pseudo_particles(mut self, percent: u64) -> Self {
        let mut r = Random::new(self.seed ^ 0x3c6e_f372);
        if r.bits() % 100 >= percent || self.method != WFMM_METHOD_FMM || self.periods() > 0 {
            return self;
        }
        self.expansion = WFMM_EXPANSION_PSEUDO_PARTICLES;
        self.sources = self.sources.min(PSEUDO_SIZE);
        self.targets = self.targets.min(PSEUDO_SIZE);
        self.tolerance = self.tolerance.max(1e-5);
        self.leaf_capacity = r.log_between(20.0, 200.0) as i32;
        self
    }

    /// The same problem, with so many of a hundred in which neighbours have opposite strengths: their field is small beside that of each.
    pub fn in_pairs(mut self, percent: u64) -> Self {
        let mut r = Random::new(self.seed ^ 0x1b87_3593);
        if r.bits() % 100 < percent {
            self.pair = r.log_between(1e-4, 0.1);
            self.joined = false;
        }
        self
    }

    /// The same problem, where it has no periods, with so many of a hundred above a ground plane; targets may be on both sides.
    pub fn above_planes(mut self, percent: u64) -> Self {
        let mut r = Random::new(self.seed ^ 0x6a1d_c0de);
        if r.bits() % 100 < percent && self.periods() == 0 && self.expansion == WFMM_EXPANSION_HARMONICS {
            self.plane = Some(((r.bits() % 3) as usize, r.log_between(1e-5, 3.0)));
        }
        self
    }

    /// The same problem, with so many of a hundred dealt out to ranks, by new plans.
    pub fn on_ranks(mut self, percent: u64) -> Self {
        let mut r = Random::new(self.seed ^ 0x4d01_77aa);
        if r.bits() % 100 < percent {
            self.ranks = Some((among(&mut r, &[2, 3, 4, 7]), (r.bits() % SPLITS.len() as u64) as usize));
            (self.history, self.threads) = (HISTORIES[0].0, 1);
        }
        self
    }

    /// Number of axes with a period.
    pub fn periods(&self) -> usize {
        self.period.iter().filter(|&&p| p > 0.0).count()
    }

    /// Whether sums are asked for in single precision.
    pub fn single(&self) -> bool {
        match self.precision {
            WFMM_PRECISION_F32 => true,
            WFMM_PRECISION_F64 => false,
            _ => self.single_arrays,
        }
    }

    fn tightest(&self) -> f64 {
        match (self.single(), self.single_arrays) {
            (true, _) => WFMM_TOLERANCE_MIN_F32,
            (false, true) => TIGHTEST_IN_SINGLE_ARRAYS,
            (false, false) => WFMM_TOLERANCE_MIN_F64,
        }
    }

    /// Whether targets are in the middle of segments by construction.
    fn on_lines(&self) -> bool {
        let lines = matches!(self.kind, Kind::Segments | Kind::Both);
        let middles = ["middles", "ground"].contains(&self.target_rule);
        lines && (middles || ["coincident", "lattice"].contains(&self.shape.family))
    }

    /// Whether all numbers are rounded to single precision. The last of fifty digits decides on which side of a segment's line a
    /// target in its middle is. Computing in single precision from double arrays keeps 46 bits of the positions, and targets
    /// nearer to the line than that count as on it (README, limits). So such targets have 24 bits, exact in both.
    pub fn rounded(&self) -> bool {
        self.single_arrays || self.single() && self.on_lines()
    }

    /// What the report counts by: one regularization, or both.
    pub fn kernel(&self) -> String {
        let name = crate::support::accuracy::name_of;
        match self.kind {
            Kind::Segments => format!("segments {}", name(self.segment_regularization)),
            Kind::Particles => format!("particles {}", name(self.particle_regularization)),
            Kind::Both => "segments and particles".to_owned(),
            Kind::Charges => "charges".to_owned(),
        }
    }

    /// Whether the radius of the cores is handed over as an option instead of an array.
    pub fn core_option(&self) -> bool {
        self.core_rule == "equal" && self.seed.is_multiple_of(2)
    }

    /// One line; the counts are those of the case, which joined segments change a little.
    pub fn description(&self, n: usize, m: usize) -> String {
        let name = crate::support::accuracy::name_of;
        let kernel = match self.kind {
            Kind::Both => {
                format!("{} and {}", name(self.segment_regularization), name(self.particle_regularization))
            }
            _ => self.kernel(),
        };
        let code = |list: &[(&str, i32)], k: i32| list.iter().find(|(_, c)| *c == k).map_or("?", |(n, _)| n).to_owned();
        let precision = code(&[("arrays", WFMM_PRECISION_ARRAYS), ("f32", WFMM_PRECISION_F32)], self.precision);
        let methods = [("FMM", WFMM_METHOD_FMM), ("treecode", WFMM_METHOD_TREECODE), ("AUTO", WFMM_METHOD_AUTO)];
        let expansion = if self.expansion == WFMM_EXPANSION_HARMONICS { "" } else { " by pseudo-particles" };
        let method = if self.method == WFMM_METHOD_DIRECT { "direct".to_owned() } else { code(&methods, self.method) };
        let period = if self.periods() > 0 { format!(", period {:.3?}", self.period) } else { String::new() };
        let ranks = self.ranks.map_or(String::new(), |(n, split)| format!(", {n} ranks {}", SPLITS[split].0));
        let plane = self.plane.map_or(String::new(), |(axis, gap)| format!(", plane across {axis} at {gap:.1e}"));
        format!(
            "#{} {} {:.3?}, {kernel}, N {} M {}, tolerance {:.2e}, arrays {} computed {}, {}, targets {}, cores {} {:.1e}{}, \
             strengths {}{}, lengths {}{}, unit {:.1e}, offset {:.1e}, {method}{expansion}, leaf {}, threads {}, plan {}{period}{plane}{ranks}",
            self.index,
            self.shape.family,
            self.shape.numbers,
            n,
            m,
            self.tolerance,
            if self.single_arrays { "f32" } else { "f64" },
            if precision == "?" { "f64" } else { &precision },
            if self.gradient { "gradient" } else { "velocity" },
            self.target_rule,
            self.core_rule,
            self.core,
            if self.core_option() { " as an option" } else { "" },
            self.strength_rule,
            if self.pair > 0.0 { format!(" in pairs {:.1e} apart", self.pair) } else { String::new() },
            self.length_rule,
            if self.joined { " joined" } else { "" },
            self.unit,
            self.offset,
            self.leaf_capacity,
            self.threads,
            self.history,
        )
    }
}

fn core_weights() -> Vec<(&'static str, f64)> {
    let weights = [0.08, 0.16, 0.16, 0.16, 0.12, 0.08, 0.08, 0.08, 0.08];
    CORES.into_iter().zip(weights).collect()
}

fn target_weights(family: &str) -> Vec<(&'static str, f64)> {
    let mut weights = [0.3, 0.25, 0.12, 0.08, 0.03, 0.05, 0.05, 0.05, 0.03, 0.04];
    match family {
        "sheets" => weights[0] = 1.5,
        "hover" => weights[7] = 1.5,
        _ => {}
    }
    TARGETS.into_iter().zip(weights).collect()
}
