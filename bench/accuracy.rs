//! The table of docs/accuracy.md: measured error over tolerance for every distribution, regularization and precision.
//!
//! `make accuracy` runs it. Arguments: `name=TEXT` distributions that contain it, `n=COUNT` elements, `file=PATH` table.
//! Every line of the table is the worst over all regularizations, both of the library's leaf size and of small leaves,
//! which make the tree deep. Ends with a failure where a tolerance was missed.

mod support;

use std::fmt::Write;
use support::accuracy::*;
use support::api::{Scalar, Session};
use support::arguments::argument;
use support::cases::{Case, DISTRIBUTIONS, Kind, case};
use wakefmm::options::*;

const DOUBLE: [f64; 5] = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10];
const SINGLE: [f64; 3] = [1e-2, 1e-4, 1e-5];
/// Double precision arrays with all their digits, computed in single precision.
const MIXED: f64 = 1e-4;
const LEAVES: [i32; 2] = [0, 24];

/// Worst of one cell of the table, in tolerances.
#[derive(Clone, Copy, Default)]
struct Worst {
    velocity: f64,
    gradient: f64,
}

struct Tally {
    session: Session,
    runs: usize,
    with_far: usize,
    missed: Vec<String>,
    slack: f64,
}

impl Tally {
    fn run<T: Scalar>(&mut self, what: &str, c: &Case, want: &Field, o: &wfmm_plan_options, worst: &mut Worst) {
        let r = measure::<T>(&self.session, c, want, o);
        self.runs += 1;
        self.with_far += (r.far_pairs > 0) as usize;
        let (v, g) = (r.velocity / o.tolerance, r.gradient / (30.0 * o.tolerance));
        worst.velocity = worst.velocity.max(v);
        worst.gradient = worst.gradient.max(g);
        self.slack = self.slack.max(v);
        if !(v <= 1.0 && g <= 1.0) {
            let (s, p) = (name_of(o.segment_regularization), name_of(o.particle_regularization));
            let line = format!(
                "{what}, {s}/{p}, {}, tolerance {:.0e}, leaf {}: velocity {v:.2}, gradient {g:.2} of what is allowed; {}",
                if o.precision == WFMM_PRECISION_F32 { "f64 in f32" } else { T::NAME },
                o.tolerance,
                o.leaf_capacity,
                r.recipe
            );
            println!("MISSED {line}");
            self.missed.push(line);
        }
    }

    fn line(&mut self, name: &str, kind: Kind, n: usize, unit: f64) -> Vec<Worst> {
        let raw = case(name, kind, n, n * 3 / 4, unit);
        let c = raw.clone().rounded();
        // In the middle of a segment without a core the last of fifty digits decides (README, limits).
        let raw = if name == "targets on middles" { c.clone() } else { raw };
        let mut row = vec![Worst::default(); DOUBLE.len() + SINGLE.len() + 1];
        for (segments, particles) in regularizations(kind) {
            let want = reference(&self.session, &c, segments, particles);
            let want_raw = reference(&self.session, &raw, segments, particles);
            for leaf in LEAVES {
                let what = format!("{name} {kind:?} unit {unit:e}");
                for (k, &tolerance) in DOUBLE.iter().enumerate() {
                    let o = options(WFMM_METHOD_FMM, tolerance, segments, particles, leaf);
                    self.run::<f64>(&what, &c, &want, &o, &mut row[k]);
                }
                for (k, &tolerance) in SINGLE.iter().enumerate() {
                    let o = options(WFMM_METHOD_FMM, tolerance, segments, particles, leaf);
                    self.run::<f32>(&what, &c, &want, &o, &mut row[DOUBLE.len() + k]);
                }
                let o = options(WFMM_METHOD_FMM, MIXED, segments, particles, leaf);
                let o = wfmm_plan_options { precision: WFMM_PRECISION_F32, ..o };
                self.run::<f64>(&what, &raw, &want_raw, &o, row.last_mut().expect("not empty"));
            }
        }
        row
    }
}

fn main() {
    let n = argument("n").map_or(4000, |n| n.parse().expect("n is a number"));
    let name_part = argument("name").unwrap_or_default();
    let session = Session::cpu(0);
    let mut tally = Tally { session, runs: 0, with_far: 0, missed: vec![], slack: 0.0 };
    let mut table = String::from("| sources and targets | elements |");
    DOUBLE.iter().for_each(|t| write!(table, " f64 {t:.0e} |").expect("to a string"));
    SINGLE.iter().for_each(|t| write!(table, " f32 {t:.0e} |").expect("to a string"));
    write!(table, " f64 in f32 {MIXED:.0e} |").expect("to a string");
    table += "\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (name, unit) in
        DISTRIBUTIONS.map(|d| (d, 1.0)).into_iter().chain([("helical wake", 1e-6), ("helical wake", 1e6)])
    {
        if !name.contains(&name_part) {
            continue;
        }
        for kind in [Kind::Segments, Kind::Particles, Kind::Both, Kind::Charges] {
            let row = tally.line(name, kind, n, unit);
            let scaled = if unit == 1.0 { String::new() } else { format!(", lengths × {unit:e}") };
            let mut line = format!("| {name}{scaled} | {} |", format!("{kind:?}").to_lowercase());
            row.iter().for_each(|w| write!(line, " {:.2} / {:.2} |", w.velocity, w.gradient).expect("to a string"));
            println!("{line}");
            table += &line;
            table.push('\n');
        }
    }
    let summary = format!(
        "{} evaluations, {} of them with a far field; worst velocity error {:.2} tolerances; {} over what is allowed.\n",
        tally.runs,
        tally.with_far,
        tally.slack,
        tally.missed.len()
    );
    println!("{summary}");
    if let Some(file) = argument("file") {
        std::fs::write(&file, page(n, &table, &summary, &tally.missed)).expect("the table can be written");
    }
    std::process::exit(!tally.missed.is_empty() as i32);
}

fn page(n: usize, table: &str, summary: &str, missed: &[String]) -> String {
    let mut text = format!(
        "# Measured error\n\
         \n\
         Written by `make accuracy`. Each entry is two numbers: the velocity error divided by the tolerance / the gradient error divided by\n\
         30 tolerances, relative L2 over all targets (of charges the potential and its gradient). The promise is that no entry exceeds 1.\n\
         \n\
         - **Reference**: the direct sum in double precision of the same regularized kernel.\n\
         - **Cases**: {n} sources, {} targets, the FMM, with gradients.\n\
         - **Cores**: from 2e-4 to 2e-2 of the box, one in ten zero. Those of the wake grow a hundredfold with age.\n\
         - **Entry**: the worst over all regularizations, with the library's leaf size and with small leaves.\n\
         - **f64 in f32**: double precision arrays with all their digits, computed with `WFMM_PRECISION_F32`.\n\
         - **f32**: single precision arrays; below 1e-4 the CPU computes them in double precision.\n\n{table}\n{summary}",
        n * 3 / 4
    );
    for m in missed {
        writeln!(text, "- {m}").expect("to a string");
    }
    text
}
