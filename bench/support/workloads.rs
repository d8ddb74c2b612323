//! The fixed workloads of the speed table; every repetition has its own seed, so that nothing can be remembered.

use super::cases::Vec3;
use super::random::Random;
use std::f64::consts::TAU;

/// Point vortices without a core, and targets that are not their positions.
pub struct Workload {
    pub position: Vec<Vec3>,
    pub strength: Vec<Vec3>,
    pub targets: Vec<Vec3>,
}

/// n sources and m targets uniform in the unit cube, strengths uniform in [-1,1]³.
pub fn cube(n: usize, m: usize, seed: u64) -> Workload {
    let mut r = Random::new(seed);
    Workload {
        position: (0..n).map(|_| r.in_cube()).collect(),
        strength: (0..n).map(|_| r.signed()).collect(),
        targets: (0..m).map(|_| r.in_cube()).collect(),
    }
}

/// Sources on two coaxial rings of radius 0.3 with Gaussian scatter 0.02, strengths along them; targets in the cube.
pub fn rings(n: usize, m: usize, seed: u64) -> Workload {
    let mut r = Random::new(seed);
    let mut w = Workload { position: vec![], strength: vec![], targets: vec![] };
    for k in 0..n {
        let (angle, g) = (TAU * r.unit(), r.normals());
        let z = if k.is_multiple_of(2) { 0.4 } else { 0.6 };
        let at = [0.5 + 0.3 * angle.cos(), 0.5 + 0.3 * angle.sin(), z];
        w.position.push(std::array::from_fn(|i| at[i] + 0.02 * g[i]));
        w.strength.push([-angle.sin(), angle.cos(), 0.0]);
    }
    w.targets = (0..m).map(|_| r.in_cube()).collect();
    w
}
