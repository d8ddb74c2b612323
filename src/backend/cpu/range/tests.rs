use super::*;
use crate::inputs::{ParticleInput, TargetInput};
use crate::options::wfmm_plan_options;

/// Numbers in [0, 1), the same in every run.
fn random(n: usize) -> Vec<f64> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..n).map(|_| next()).collect()
}

fn inputs(sources: &[f64], targets: &[f64]) -> Inputs {
    let array = |v: &[f64]| Reals::HostF64(v.to_vec().into());
    Inputs {
        particles: Some(ParticleInput {
            n: sources.len() / 3,
            position: array(sources),
            strength: array(sources),
            core: None,
            default_core: 0.0,
        }),
        targets: Some(TargetInput { n: targets.len() / 3, position: array(targets) }),
        ..Inputs::default()
    }
}

fn nearer(sources: &[f64], targets: &[f64], nearest: f64) -> bool {
    let inputs = inputs(sources, targets);
    let positions = Positions::new(&inputs, Field::Velocity { gradient: true });
    let (low, size) = positions.extent();
    positions.nearer_than(nearest, low, size)
}

/// Least distance of a source and a target that are apart, pair by pair.
fn least(sources: &[f64], targets: &[f64]) -> f64 {
    let pairs = sources.chunks(3).flat_map(|y| targets.chunks(3).map(move |x| (x, y)));
    let apart = pairs.filter(|(x, y)| x != y);
    apart.map(|(x, y)| (0..3).map(|i| (x[i] - y[i]).powi(2)).sum::<f64>().sqrt()).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_sweep_finds_the_nearest_pair_of_every_cloud() {
    let (sources, targets) = (random(900), random(3 * 1100).split_off(2400));
    // In the cube, on a plane, on a line, on a lattice, in two clusters, in a far box.
    let flat = |keep: usize| move |(k, x): (usize, &f64)| if k % 3 < keep { *x } else { 0.25 };
    let clouds: [(Vec<f64>, Vec<f64>); 6] = [
        (sources.clone(), targets.clone()),
        (sources.iter().enumerate().map(flat(2)).collect(), targets.iter().enumerate().map(flat(2)).collect()),
        (sources.iter().enumerate().map(flat(1)).collect(), targets.iter().enumerate().map(flat(1)).collect()),
        (
            sources.iter().map(|x| (8.0 * x).floor()).collect(),
            targets.iter().map(|x| (8.0 * x).floor() + 0.5).collect(),
        ),
        (sources.iter().map(|x| if *x < 0.5 { 1e-9 * x } else { *x }).collect(), targets.clone()),
        (sources.iter().map(|x| 1e6 + 1e-3 * x).collect(), targets.iter().map(|x| 1e6 + 1e-3 * x).collect()),
    ];
    for (k, (sources, targets)) in clouds.iter().enumerate() {
        let d = least(sources, targets);
        assert!(nearer(sources, targets, d * 1.001), "cloud {k}: {d:e}");
        assert!(!nearer(sources, targets, d * 0.999), "cloud {k}: {d:e}");
    }
}

#[test]
fn what_is_at_one_point_is_not_near_and_parked_points_cost_nothing() {
    let positions = random(3000);
    assert!(!nearer(&positions, &positions, 0.1 * least(&positions, &positions)));
    // Ten thousand sources and targets at one point.
    let parked = |x: &[f64]| x.iter().copied().chain([2.0; 30_000]).collect::<Vec<_>>();
    assert!(!nearer(&parked(&positions), &parked(&positions), 1e-9));
    let next = [2.0, 2.0, 2.0 + 1e-10];
    assert!(nearer(&parked(&positions), &next, 1e-9));
}

#[test]
fn a_far_point_and_a_large_core_exceed_single_precision() {
    let (sources, mut targets) = (random(1200), random(2400).split_off(1200));
    let field = Field::Velocity { gradient: false };
    let options = PlanOptions::checked(&wfmm_plan_options::default()).unwrap();
    let now = |targets: &[f64], core: f64| {
        let mut inputs = inputs(&sources, targets);
        inputs.particles.as_mut().unwrap().default_core = core;
        fallback(&inputs, field, &options)
    };
    assert_eq!(now(&targets, 0.1), None);
    assert_eq!(now(&targets, 100.0), None);
    assert_eq!(now(&targets, 1e4), Some(PrecisionFallback::Core));
    targets.extend([1e3; 3]);
    assert_eq!(now(&targets, 0.1), None);
    for far in [1e8, 1e30, 1e300] {
        targets.extend([far; 3]);
        assert_eq!(now(&targets, 0.1), Some(PrecisionFallback::Distance), "{far:e}");
    }
}

#[test]
fn pairs_are_near_through_the_faces_of_a_periodic_domain() {
    let field = Field::Velocity { gradient: false };
    let found = |period: [f64; 3], source: [f64; 3], target: [f64; 3]| {
        // Around zero, three periods away from it, and in other units.
        let at = |x: [f64; 3], unit: f64, far: f64| -> Vec<f64> {
            let others = [[-0.3, 0.2, 0.1], [0.1, -0.4, 0.3], [-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]];
            let away = period.map(|p| if p > 0.0 { far } else { 0.0 });
            let moved = |x: [f64; 3]| -> [f64; 3] { std::array::from_fn(|i| unit * (x[i] + away[i])) };
            others.into_iter().chain([x]).flat_map(moved).collect()
        };
        [(1.0, 0.0), (1e-3, 0.0), (1.0, 3.0)].map(|(unit, far)| {
            let options = PlanOptions {
                period: (period != [0.0; 3]).then_some(period.map(|p| p * unit)),
                ..PlanOptions::checked(&wfmm_plan_options::default()).unwrap()
            };
            fallback(&inputs(&at(source, unit, far), &at(target, unit, 0.0)[12..]), field, &options)
        })
    };
    let near = [Some(PrecisionFallback::Distance); 3];
    let (source, target) = ([0.5 - 2e-8, 0.1, 0.2], [-0.5 + 1e-8, 0.1, 0.2]);
    assert_eq!(found([1.0; 3], source, target), near);
    assert_eq!(found([1.0; 3], target, source), near);
    assert_eq!(found([1.0, 0.0, 0.0], source, target), near);
    assert_eq!(found([1.0; 3], source, [-0.5 + 1e-6, 0.1, 0.2]), [None; 3]);
    // Through an edge and through a corner.
    let edge = |x: f64, y: f64, z: f64| [x * (0.5 - 1e-8), y * (0.5 - 1e-8), z * (0.5 - 1e-8)];
    assert_eq!(found([1.0; 3], edge(1.0, -1.0, 0.3), edge(-1.0, 1.0, 0.3)), near);
    assert_eq!(found([1.0; 3], edge(1.0, -1.0, -1.0), edge(-1.0, 1.0, 1.0)), near);
    // At one point, an image away, where the period is a number of steps of positions.
    let [one, _, far] = found([1.0; 3], [0.5, 0.1, 0.2], [-0.5, 0.1, 0.2]);
    assert_eq!([one, far], [None; 2]);
}
