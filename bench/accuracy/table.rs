//! The measured rows of a table.

use crate::support::accuracy::*;
use crate::support::api::{Session, last_error};
use crate::support::arguments::{argument, one_of};
use crate::support::cases::{Case, Kind, case};
use std::panic::{AssertUnwindSafe, catch_unwind};
use wakefmm::options::*;

/// Arrays of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arrays {
    Double,
    Single,
    /// Double precision with all its digits, computed in single precision.
    Mixed,
}

impl Arrays {
    pub fn name(self) -> &'static str {
        match self {
            Self::Double => "f64",
            Self::Single => "f32",
            Self::Mixed => "f64 in f32",
        }
    }
}

/// Columns of the table: arrays and tolerance.
pub const COLUMNS: [(Arrays, f64); 9] = [
    (Arrays::Double, 1e-2),
    (Arrays::Double, 1e-4),
    (Arrays::Double, 1e-6),
    (Arrays::Double, 1e-8),
    (Arrays::Double, 1e-10),
    (Arrays::Single, 1e-2),
    (Arrays::Single, 1e-4),
    (Arrays::Single, 1e-5),
    (Arrays::Mixed, 1e-4),
];

/// Leaf capacities: the library's, and small ones.
pub const LEAVES: [i32; 2] = [0, 24];

/// What was asked for.
pub struct Request {
    pub sources: usize,
    pub backend: &'static str,
    pub reference: &'static str,
    pub some_regularizations: bool,
    pub leaves: Vec<i32>,
}

impl Request {
    pub fn of_arguments() -> Self {
        let of_text = |text: String| text.split(',').map(|l| l.parse().expect("leaves are numbers")).collect();
        Self {
            sources: argument("n").map_or(4000, |n| n.parse().expect("n is a number")),
            backend: one_of("backend", &["cpu", "cuda"]),
            reference: one_of("reference", &["cpu", "cuda"]),
            some_regularizations: one_of("regularizations", &["all", "some"]) == "some",
            leaves: argument("leaves").map_or(LEAVES.to_vec(), of_text),
        }
    }

    pub fn targets(&self) -> usize {
        self.sources * 3 / 4
    }

    fn regularizations(&self, kind: Kind) -> Vec<(i32, i32)> {
        if self.some_regularizations { some_regularizations(kind) } else { regularizations(kind) }
    }
}

fn session(backend: &str) -> Session {
    if backend == "cuda" { Session::gpu() } else { Session::cpu(0) }
}

/// One entry of the table: the worst of its evaluations, in tolerances.
#[derive(Clone, Copy, Default)]
pub struct Worst {
    pub velocity: f64,
    pub largest: f64,
    pub gradient: f64,
    /// At least one of them is the FMM's.
    pub has_fmm: bool,
}

impl Worst {
    fn add(&mut self, o: &Outcome) {
        self.velocity = self.velocity.max(o.velocity);
        self.largest = self.largest.max(o.largest);
        self.gradient = self.gradient.max(o.gradient);
        self.has_fmm |= o.method == WFMM_METHOD_FMM;
    }
}

/// A case as all arrays hold it, and with all its digits.
struct Twins {
    rounded: Case,
    raw: Case,
}

/// Exact fields of both.
struct Exact {
    rounded: Field,
    raw: Field,
}

pub struct Tally {
    pub request: Request,
    session: Session,
    reference: Session,
    runs: usize,
    by_fmm: usize,
    worst: Worst,
    pub missed: Vec<String>,
    /// Rows for which there was no time.
    pub not_done: Vec<String>,
}

impl Tally {
    pub fn new(request: Request) -> Self {
        let (session, reference) = (session(request.backend), session(request.reference));
        let worst = Worst::default();
        Self { request, session, reference, runs: 0, by_fmm: 0, worst, missed: vec![], not_done: vec![] }
    }

    /// Errors in tolerances (gradients: in 30), no numbers where a call failed.
    fn measured(&self, arrays: Arrays, c: &Twins, want: &Exact, o: &wfmm_plan_options) -> Outcome {
        let in_single = wfmm_plan_options { precision: WFMM_PRECISION_F32, ..*o };
        let attempt = catch_unwind(AssertUnwindSafe(|| match arrays {
            Arrays::Double => measure::<f64>(&self.session, &c.rounded, &want.rounded, o),
            Arrays::Single => measure::<f32>(&self.session, &c.rounded, &want.rounded, o),
            Arrays::Mixed => measure::<f64>(&self.session, &c.raw, &want.raw, &in_single),
        }));
        let failed = |_| Outcome { velocity: f64::NAN, gradient: f64::NAN, recipe: last_error(), ..Default::default() };
        let r = attempt.unwrap_or_else(failed);
        Outcome {
            velocity: r.velocity / o.tolerance,
            largest: r.largest / o.tolerance,
            gradient: r.gradient / (30.0 * o.tolerance),
            ..r
        }
    }

    fn add(&mut self, what: &str, arrays: Arrays, o: &wfmm_plan_options, r: &Outcome) {
        self.runs += 1;
        self.by_fmm += (r.method == WFMM_METHOD_FMM) as usize;
        self.worst.add(r);
        if !(r.velocity <= 1.0 && r.gradient <= 1.0) {
            let line = format!(
                "{what}, {}/{}, {}, tolerance {:.0e}, leaf {}: velocity {:.2}, gradient {:.2} of what is allowed, {:.2} at one target; {}",
                name_of(o.segment_regularization),
                name_of(o.particle_regularization),
                arrays.name(),
                o.tolerance,
                o.leaf_capacity,
                r.velocity,
                r.gradient,
                r.largest,
                r.recipe
            );
            println!("MISSED {line}");
            self.missed.push(line);
        }
    }

    /// The entries of one case, column by column.
    pub fn row(&mut self, name: &str, kind: Kind, unit: f64) -> Vec<Worst> {
        let raw = case(name, kind, self.request.sources, self.request.targets(), unit);
        let rounded = raw.clone().rounded();
        // In the middle of a segment without a core the last of fifty digits decides (README, limits).
        let raw = if name == "targets on middles" { rounded.clone() } else { raw };
        let (c, what) = (Twins { rounded, raw }, format!("{name} {kind:?} unit {unit:e}"));
        let mut row = vec![Worst::default(); COLUMNS.len()];
        for (segments, particles) in self.request.regularizations(kind) {
            let exact = |c: &Case| reference(&self.reference, c, segments, particles);
            let want = Exact { rounded: exact(&c.rounded), raw: exact(&c.raw) };
            for leaf in self.request.leaves.clone() {
                for ((arrays, tolerance), worst) in COLUMNS.into_iter().zip(&mut row) {
                    let o = options(WFMM_METHOD_FMM, tolerance, segments, particles, leaf);
                    let r = self.measured(arrays, &c, &want, &o);
                    worst.add(&r);
                    self.add(&what, arrays, &o, &r);
                }
            }
        }
        row
    }

    /// Who computed the measured fields.
    pub fn machine(&self) -> String {
        self.session.describe().split(';').next().unwrap_or_default().to_owned()
    }

    pub fn passed(&self) -> bool {
        self.missed.is_empty() && self.not_done.is_empty()
    }

    pub fn summary(&self) -> String {
        format!(
            "{} evaluations, {} of them by the FMM, the others summed directly; worst velocity error {:.2} tolerances, {:.2} at one target; {} over what is allowed; {} rows not begun.\n",
            self.runs,
            self.by_fmm,
            self.worst.velocity,
            self.worst.largest,
            self.missed.len(),
            self.not_done.len()
        )
    }
}
