//! Wakes as host programs have them: segments with cores, targets on their own nodes and below the rotor.

use super::cases::Vec3;
use super::random::Random;
use std::f64::consts::TAU;

/// Segments between shared nodes, and targets.
pub struct Wake {
    pub nodes: Vec<Vec3>,
    /// Two node numbers a segment, from zero.
    pub ends: Vec<i32>,
    pub circulation: Vec<f64>,
    pub core: Vec<f64>,
    pub targets: Vec<Vec3>,
}

impl Wake {
    fn segment(&mut self, a: usize, b: usize, circulation: f64, core: f64) {
        self.ends.extend([a as i32, b as i32]);
        self.circulation.push(circulation);
        self.core.push(core);
    }
    pub fn segments(&self) -> usize {
        self.circulation.len()
    }
}

/// LATTICE: the near and far wake of a three-bladed wind turbine, as OpenFAST's OLAF packs it: `rows` rows of 20 panels a blade;
/// lengths in metres, cores 0.5 sqrt(1 + 0.05 row) m; targets on the nodes. `phase` turns the rotor.
pub fn lattice(rows: usize, phase: f64) -> Wake {
    let (blades, panels) = (3, 20);
    let mut w = Wake { nodes: vec![], ends: vec![], circulation: vec![], core: vec![], targets: vec![] };
    for b in 0..blades {
        let first = w.nodes.len();
        for j in 0..=rows {
            for i in 0..=panels {
                let theta = TAU * (j as f64 / 36.0 + b as f64 / 3.0) + phase;
                let age = j as f64;
                let radius =
                    63.0 * (0.1 + 0.9 * i as f64 / panels as f64) * (1.0 + 0.15 * (1.0 - (-age / 200.0).exp()));
                let z = 1.5 * age + 3.0 * (5.0 * theta).sin() * age / rows as f64;
                w.nodes.push([radius * theta.cos(), radius * theta.sin() + 90.0, z]);
            }
        }
        let node = |i: usize, j: usize| first + j * (panels + 1) + i;
        for j in 0..=rows {
            let core = 0.5 * (1.0 + 0.05 * j as f64).sqrt();
            for i in 0..panels {
                w.segment(node(i, j), node(i + 1, j), 5.0 * (0.3 * j as f64 + i as f64).sin(), core);
            }
            for i in 0..=panels {
                let circulation = match i {
                    0 => -80.0,
                    20 => 80.0,
                    _ => 4.0 * (i as f64).cos(),
                };
                if j < rows {
                    w.segment(node(i, j), node(i, j + 1), circulation, core);
                }
            }
        }
    }
    w.targets = w.nodes.clone();
    w
}

/// HOVER: four tip vortices of a rotor one radius above the ground. They contract, come down and spread over the ground;
/// lengths in rotor radii, cores 0.004 to 0.12, geometric in age; targets on the nodes and dust below 0.01.
pub fn hover(turns: usize, segments_a_turn: usize, dust: usize, seed: u64) -> Wake {
    let mut r = Random::new(seed);
    let phase = TAU * r.unit();
    let count = turns * segments_a_turn;
    let mut w = Wake { nodes: vec![], ends: vec![], circulation: vec![], core: vec![], targets: vec![] };
    for b in 0..4 {
        let first = w.nodes.len();
        for k in 0..=count {
            let age = k as f64 / segments_a_turn as f64;
            let share = age / turns as f64;
            let theta = TAU * (age + 0.25 * b as f64) + phase;
            let contracted = 0.78 + 0.22 * (-age / 2.0).exp();
            let radius = contracted + 1.8 * (share * share);
            let z = 0.03 + 0.97 * (-6.0 * share).exp() + 0.01 * (3.0 * theta).sin() * share;
            w.nodes.push([radius * theta.cos(), radius * theta.sin(), z]);
            if k > 0 {
                w.segment(first + k - 1, first + k, 1.0, 0.004 * 30f64.powf((k as f64 - 0.5) / count as f64));
            }
        }
    }
    w.targets = w.nodes.clone();
    w.targets.extend((0..dust).map(|_| {
        let (radius, theta) = (3.0 * r.unit().sqrt(), TAU * r.unit());
        [radius * theta.cos(), radius * theta.sin(), 0.01 * r.unit()]
    }));
    w
}
