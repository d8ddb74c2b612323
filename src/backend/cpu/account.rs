//! What an engine tells of its last field: the recipe in words, the numbers of the report.
//!
//! Enters: what was chosen for one side. Leaves: a paragraph and a `Report`.

use super::fmm::Recipe;
use super::lists::Scheme;
use crate::options::{Method, WFMM_BACKEND_CPU};
use crate::report::{PASS_COUNT, Pass, Report};

/// One side of the engine as it is now.
pub struct Account {
    pub direct: bool,
    /// A direct sum that single precision has too few digits for.
    pub in_double: bool,
    pub recipe: Recipe,
    pub seconds: [f64; PASS_COUNT],
    /// Of all sources with all targets.
    pub pairs: u64,
}

impl Account {
    /// `kind`: precision, threads, instructions. The sample's error belongs to a field, so `evaluated` asks for it.
    pub fn in_words(&self, kind: &str, tolerance: f64, evaluated: bool) -> String {
        if self.direct {
            let sum = format!(
                "Direct sum of {} pairs in {kind}: for this size an FMM would not be faster, or it was asked for.",
                self.pairs
            );
            let why = " In double precision: single precision missed the tolerance at a sample of targets.";
            return if self.in_double { sum + why } else { sum };
        }
        let r = &self.recipe;
        let (name, pass) = match r.scheme {
            Scheme::Fmm => ("FMM", "cell pairs by M2L"),
            Scheme::Treecode => ("Treecode", "pairs of a cell and a group of targets by M2P"),
        };
        let chosen = format!(
            "{name} in {kind}: for a tolerance of {tolerance:.1e} a pair of cells may add an error of {:.1e} of the field's root \
             mean square at a target, so that pairs need orders up to {}; {} cells in {} levels with at most {} sources and {} \
             targets a leaf, {} {pass}, {} element pairs directly, {} more because their cores still matter where \
             the field is expanded. Predicted {:.3} s, the direct sum {:.3} s.",
            r.pair_error,
            r.order,
            r.cells,
            r.depth,
            r.source_capacity,
            r.target_capacity,
            r.far_pairs,
            r.near_pairs,
            r.correction_pairs,
            r.predicted,
            r.direct,
        );
        let found = match r.retries {
            _ if !evaluated => String::new(),
            0 => format!(" Error found on a sample: {:.1e}.", r.sampled_error),
            n => format!(" Error found on a sample: {:.1e}, after {n} retries.", r.sampled_error),
        };
        chosen + &found
    }

    /// The report of an evaluation that took `total` seconds; memory is the engine's to add.
    pub fn numbers(&self, precision: i32, total: f64) -> Report {
        let mut report =
            Report { backend: WFMM_BACKEND_CPU, precision, near_pairs: self.pairs as i64, ..Report::default() };
        if self.direct {
            report.method = Method::Direct as i32;
            report.seconds[Pass::P2p as usize] = total;
        } else {
            let r = &self.recipe;
            let method = if r.scheme == Scheme::Fmm { Method::Fmm } else { Method::Treecode };
            report.method = method as i32;
            report.seconds = self.seconds;
            report.order = r.order as i32;
            report.depth = r.depth as i32;
            report.cells = r.cells as i64;
            report.far_pairs = r.far_pairs as i64;
            report.near_pairs = (r.near_pairs + r.correction_pairs) as i64;
            report.core_pairs = r.correction_pairs as i64;
            report.estimated_error = r.sampled_error;
            report.retries = i64::from(r.retries);
        }
        report.seconds[Pass::Total as usize] = total;
        report
    }
}
