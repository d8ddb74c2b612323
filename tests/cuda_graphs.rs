//! Graphs of small evaluations and the seconds of their passes, under a driver that writes down what is queued and whose clock
//! goes on by a millisecond a launch. No GPU is needed.

#![cfg(target_os = "linux")]

#[path = "fake_driver/harness.rs"]
mod harness;

use harness::{log_of, say};
use wakefmm::backend::Field;
use wakefmm::options::{BackendKind, PlanOptions, SessionOptions, wfmm_plan_options};
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::{Array, ArrayMut};
use wakefmm::plan::sources::{Particles, Segments, Strengths};
use wakefmm::report::Pass;
use wakefmm::session::Session;

fn plan() -> Plan {
    let session =
        Session::new(&SessionOptions { backend: BackendKind::Cuda, device: None, devices: vec![], threads: 1 })
            .unwrap();
    let options = wfmm_plan_options { method: 2, tolerance: 1e-3, segment_regularization: 0, ..Default::default() };
    let options = wfmm_plan_options { particle_regularization: 0, ..options };
    Plan::new(session, PlanOptions::checked(&options).unwrap())
}

fn triples(n: usize) -> Vec<f64> {
    (0..3 * n).map(|i| (i * 7919 % 10_007) as f64 / 10_007.0).collect()
}

fn set_particles(plan: &mut Plan, n: usize) {
    let x = triples(n);
    let particles = Particles { n, position: Array::Host(&x[..]), strength: Array::Host(&x[..]), core: None };
    plan.set_particles(Some(particles)).unwrap();
}

fn set_segments(plan: &mut Plan, n: usize) {
    let (x, ends) = (triples(n + 1), (0..2 * n as i32).map(|k| (k + 1) / 2).collect::<Vec<_>>());
    plan.set_segments(Some(Segments {
        n_points: n + 1,
        points: Array::Host(&x[..]),
        n,
        ld: 2,
        connectivity: Array::Host(&ends[..]),
        circulation: Array::Host(&x[..n]),
        core: None,
    }))
    .unwrap();
}

fn set_targets(plan: &mut Plan, n: usize) {
    plan.set_targets(Some((n, Array::Host(&triples(n)[..])))).unwrap();
}

fn set_strengths(plan: &mut Plan) {
    let n = plan.counts().particles;
    let strength = triples(n);
    let strength = Some((n, Array::Host(&strength[..])));
    plan.set_strengths(Strengths { circulation: None, strength, charge: None }).unwrap();
}

fn evaluate(plan: &mut Plan, gradient: bool) {
    let n = plan.counts().targets;
    let (mut u, mut g) = (vec![0.0f64; 3 * n], vec![0.0f64; 9 * n]);
    let slopes = gradient.then(|| ArrayMut::Host(&mut g[..]));
    plan.evaluate(Field::Velocity { gradient }, ArrayMut::Host(&mut u[..]), slopes).unwrap();
}

#[test]
#[ignore = "run by the others, under the fake driver"]
fn shapes() {
    let mut plan = plan();
    for n in (2000..3000).step_by(100) {
        for _ in 0..3 {
            set_particles(&mut plan, n);
            set_targets(&mut plan, n);
            evaluate(&mut plan, false);
        }
    }
}

/// Of what was recorded for one shape nothing is left when the next one is; a recording that fails leaves nothing either.
#[test]
fn graphs_do_not_pile_up() {
    for (gpu, recordings, replays) in [("none", 20, 20), ("no_capture", 20, 0)] {
        let (mut graphs, mut live, mut most, mut counts) = (0, 0, 0, [0; 2]);
        for line in harness::run("shapes", gpu).1.lines() {
            match line {
                "record" => counts[0] += 1,
                "replay" => counts[1] += 1,
                "graph" => graphs += 1,
                "end of graph" => graphs -= 1,
                "start of replays" => live += 1,
                "end of replays" => live -= 1,
                _ => {}
            }
            most = most.max(live).max(graphs);
        }
        assert_eq!((graphs, live, counts[0], counts[1]), (0, 0, recordings, replays), "{gpu}");
        assert!(most <= 2, "{gpu}: {most} at a time, without notes of the passes and with");
    }
}

/// Milliseconds of the passes in the plan's report, each a time.
fn milliseconds(plan: &Plan) -> f64 {
    let passes = &plan.report().seconds[Pass::Tree as usize..=Pass::P2p as usize];
    assert!(passes.iter().all(|s| *s >= 0.0), "{passes:?}");
    1e3 * passes.iter().sum::<f64>()
}

#[test]
#[ignore = "run by the others, under the fake driver"]
fn seconds() {
    let mut plan = plan();
    set_particles(&mut plan, 2000);
    set_targets(&mut plan, 2100);
    for kinds in 1..3 {
        for k in 0..40 {
            say(&format!("{kinds} kinds, the same, {k}"));
            evaluate(&mut plan, false);
            say(&format!("took {:.6}", milliseconds(&plan)));
        }
        // Other counts, positions, strengths and fields in turns, none of them twice in a row or all of them.
        for k in 0..60 {
            match (k * k + k / 7) % 6 {
                0 => set_particles(&mut plan, 2000 + k % 3),
                1 => set_targets(&mut plan, 2100),
                2 => set_targets(&mut plan, 300 * (1 + k % 2)),
                3 => set_strengths(&mut plan),
                4 => set_particles(&mut plan, 400),
                _ => {}
            }
            say(&format!("{kinds} kinds, in turns, {k}"));
            evaluate(&mut plan, k % 11 == 0);
            say(&format!("took {:.6}", milliseconds(&plan)));
        }
        set_segments(&mut plan, 1500);
    }
}

/// Whether timed pass by pass or shared out, the passes of all kinds of source come to what was launched; of graphs, to the
/// same again and again.
#[test]
fn seconds_of_the_passes_are_those_of_this_evaluation() {
    let parts = log_of("seconds", "none");
    let (mut compared, mut replayed) = (0, std::collections::BTreeMap::new());
    for pair in parts.chunks(2) {
        let [(name, lines), (took, _)] = pair else { panic!("{pair:?}") };
        let took: f64 = took.strip_prefix("took ").unwrap().parse().unwrap();
        let launches = lines.iter().filter(|line| line.starts_with("fmm_") && *line != "fmm_operators").count() as f64;
        let times = |what: &str| lines.iter().filter(|line| *line == what).count();
        let (series, is_in_turns) = (name.rsplit_once(',').unwrap().0, name.contains("turns"));
        if times("replay") == times("record") {
            assert!((took - launches).abs() < 1e-3, "{name}: {took}, {launches} launches");
        } else if !is_in_turns {
            let first = *replayed.entry(series).or_insert(took);
            assert!((took - first).abs() < 1e-3, "{name}: {took}, not {first}");
        }
        compared += 1;
    }
    assert_eq!(compared, 200);
}
