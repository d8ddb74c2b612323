//! Many ranks in one process, one after the other: what each would send, receive, hold and do. No field is summed.
//!
//! `cargo bench --bench ranks -- case=cube n=1000000 ranks=16,64,256,1024,4096 some=64 tolerance=1e-3 [weigh=64] [file=ranks.csv]`
//!
//! `some` ranks of each number, evenly spread, are looked at. `weigh=P` divides by the work that all of P ranks have found, as the
//! second evaluation of a session does; without it shares are equal in number. Lines are appended to `file`; docs/plots/ranks.py
//! makes the table and the picture of docs/mpi.md of them. Seconds are those of typical kernels on one thread (cost.rs).

mod support;

use std::io::Write;
use std::time::Instant;

use rayon::prelude::*;
use support::arguments::{argument, number};
use support::random::Random;
use support::wakes::{Wake, hover, lattice};
use support::workloads::cube;
use wakefmm::backend::cpu::distributed::study::{Figures, Study};
use wakefmm::backend::cpu::sources::{Particle, Segment};

/// Rows of a wake of LATTICE, with 36,960 segments, and metres from one turbine to the next.
const ROWS: usize = 300;
const APART: f64 = 630.0;
/// Segments a turn in HOVER, whose cores those of a finer wake are scaled from.
const A_TURN: f64 = 144.0;

fn segments(w: &Wake) -> Vec<Segment> {
    let segment = |k: usize| Segment {
        p1: w.nodes[w.ends[2 * k] as usize],
        p2: w.nodes[w.ends[2 * k + 1] as usize],
        circulation: w.circulation[k],
        core: w.core[k],
    };
    (0..w.segments()).into_par_iter().map(segment).collect()
}

/// Segments and targets of so many turbines in a square of rows and columns.
fn farm(turbines: usize) -> (Vec<Segment>, Vec<[f64; 3]>) {
    let (w, side) = (lattice(ROWS, 0.0), (turbines as f64).sqrt().ceil() as usize);
    let one = segments(&w);
    let at = move |k: usize, [x, y, z]: [f64; 3]| [x + APART * (k % side) as f64, y + APART * (k / side) as f64, z];
    let moved = |k: usize| one.iter().map(move |s| Segment { p1: at(k, s.p1), p2: at(k, s.p2), ..*s });
    let all = (0..turbines).into_par_iter().flat_map_iter(moved).collect();
    (all, (0..turbines).into_par_iter().flat_map_iter(|k| w.targets.iter().map(move |x| at(k, *x))).collect())
}

/// CUBE: particles and as many targets. WAKE: four tip vortices over the ground and twice as much dust below them; a finer wake has thinner
/// cores, so that as many segments overlap. LATTICE: the panels of the wakes of wind turbines, targets on their nodes. About n sources.
fn study(case: &str, n: usize, tolerance: f64) -> (Study, usize, usize) {
    let (of_segments, of_particles, targets) = match case {
        "cube" => {
            let w = cube(n, n, 1);
            let particle = |(x, a): (&[f64; 3], &[f64; 3])| Particle { x: *x, strength: *a, core: 0.0 };
            (vec![], w.position.iter().zip(&w.strength).map(particle).collect(), w.targets)
        }
        "wake" => {
            // Turns grow with the segments: a longer wake, and a finer one.
            let turns = (n as f64 / 4.0 / 36.0).sqrt().clamp(8.0, 400.0) as usize;
            let a_turn = (n / (4 * turns)).max(8);
            let mut w = hover(turns, a_turn, 0, 1);
            w.core.iter_mut().for_each(|core| *core *= (A_TURN / a_turn as f64).min(1.0));
            let mut r = Random::new(5);
            w.targets.extend((0..2 * n).map(|_| {
                let (radius, theta) = (3.0 * r.unit().sqrt(), std::f64::consts::TAU * r.unit());
                [radius * theta.cos(), radius * theta.sin(), 0.1 * r.unit() * r.unit()]
            }));
            (segments(&w), vec![], w.targets)
        }
        "lattice" => {
            let (all, targets) = farm((n as f64 / lattice(ROWS, 0.0).segments() as f64).round().max(1.0) as usize);
            (all, vec![], targets)
        }
        other => panic!("case={other}: cube, wake or lattice"),
    };
    let counts = (of_segments.len() + of_particles.len(), targets.len());
    (Study::new(of_segments, of_particles, &targets, tolerance), counts.0, counts.1)
}

fn mean_and_most(found: &[Figures], of: impl Fn(&Figures) -> f64) -> [f64; 2] {
    let all: Vec<f64> = found.iter().map(of).collect();
    [all.iter().sum::<f64>() / all.len() as f64, all.iter().copied().fold(0.0, f64::max)]
}

fn main() {
    if std::env::args().any(|a| a == "--test" || a == "--list") {
        return;
    }
    let case = argument("case").unwrap_or_else(|| "cube".into());
    let (n, tolerance) = (number("n", 1e5) as usize, number("tolerance", 1e-3));
    let ranks = argument("ranks").unwrap_or_else(|| "16,64".into());
    let some = number("some", 64.0) as usize;
    let weigh = number("weigh", 0.0) as usize;
    let start = Instant::now();
    let (mut study, sources, targets) = study(&case, n, tolerance);
    println!(
        "{case}: {sources} sources, {targets} targets, tolerance {tolerance:.0e}, made in {:.1?}",
        start.elapsed()
    );
    let (one, _) = study.figures(1, &[0]);
    println!("one rank: {:.2} s of one thread, {} cells", one[0].seconds, one[0].cells);
    if weigh > 0 {
        let all: Vec<usize> = (0..weigh).collect();
        let found = study.figures(weigh, &all).0;
        study.weigh(&found);
    }
    let mut lines = vec![];
    for size in ranks.split(',').map(|p| p.parse::<usize>().expect("a number of ranks")) {
        let start = Instant::now();
        let picked: Vec<usize> = (0..some.min(size)).map(|k| k * size / some.min(size)).collect();
        let (found, boxes) = study.figures(size, &picked);
        let numbers: Vec<[f64; 2]> = [
            |f: &Figures| f.sent,
            |f: &Figures| f.received,
            |f: &Figures| f.sent_to as f64,
            |f: &Figures| f.received_from as f64,
            |f: &Figures| f.guests as f64,
            |f: &Figures| f.multipoles as f64,
            |f: &Figures| f.cells as f64,
            |f: &Figures| f.seconds,
        ]
        .map(|of| mean_and_most(&found, of))
        .to_vec();
        let shares = if weigh > 0 { "work" } else { "number" };
        let text: Vec<String> = numbers.iter().flatten().map(|v| format!("{v:.6e}")).collect();
        let head = format!("{case},{sources},{targets},{tolerance:e},{size},{shares},{}", picked.len());
        lines.push(format!("{head},{:.6e},{boxes},{}", one[0].seconds, text.join(",")));
        println!("{size} ranks in {:.1?}: {}", start.elapsed(), lines[lines.len() - 1]);
    }
    if let Some(file) = argument("file") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).expect("a file");
        lines.iter().for_each(|line| writeln!(file, "{line}").expect("written"));
    }
}
