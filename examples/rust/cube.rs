//! interim: time and error of CUBE
use std::sync::Arc;
use std::time::Instant;
use wakefmm::backend::cpu::engine::CpuEngine;
use wakefmm::backend::{Engine, Field};
use wakefmm::inputs::*;
use wakefmm::options::*;

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: usize = a[1].parse::<f64>().unwrap() as usize;
    let m: usize = a[2].parse::<f64>().unwrap() as usize;
    let tol: f64 = a[3].parse().unwrap();
    let leaf: i32 = a.get(4).map_or(0, |s| s.parse().unwrap());
    let f32 = a.get(5).is_some_and(|s| s == "f32");
    let mut s = 1u64;
    let mut next = || {
        s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((s >> 11) as f64) / (1u64 << 53) as f64
    };
    let rings = a.get(6).is_some_and(|s| s == "rings");
    let (mut x, mut q) = (vec![], vec![]);
    for k in 0..n {
        if rings {
            let t = next() * std::f64::consts::TAU;
            let mut g = || (0..12).map(|_| next()).sum::<f64>() - 6.0;
            let (r, z) = (0.3 + 0.02 * g(), 0.02 * g());
            x.extend([0.5 + r * t.cos(), 0.5 + r * t.sin(), 0.5 + z + if k % 2 == 0 { 0.1 } else { -0.1 }]);
            q.extend([-t.sin(), t.cos(), 0.0]);
        } else {
            x.extend([next(), next(), next()]);
            q.extend([2.0 * next() - 1.0, 2.0 * next() - 1.0, 2.0 * next() - 1.0]);
        }
    }
    let y: Vec<f64> = (0..3 * m).map(|_| next()).collect();
    let o = PlanOptions {
        method: if leaf < 0 { Method::Direct } else { Method::Fmm },
        precision: Precision::Arrays,
        order: 0,
        leaf_capacity: leaf.max(0),
        segment_regularization: Regularization::None,
        particle_regularization: Regularization::None,
        index_base: 0,
        tolerance: tol,
        normalization: 1.0,
        core_radius: 0.0,
        accumulate: false,
    };
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let reals = |v: &[f64]| {
        if f32 { Reals::HostF32(v.iter().map(|&x| x as f32).collect()) } else { Reals::HostF64(v.to_vec()) }
    };
    let mut inputs = Inputs {
        particles: Some(ParticleInput { n, position: reals(&x), strength: reals(&q), core: None, default_core: 0.0 }),
        targets: Some(TargetInput { n: m, position: reals(&y) }),
        ..Default::default()
    };
    let mut e: Box<dyn Engine> =
        if f32 { Box::new(CpuEngine::<f32>::new(o, pool)) } else { Box::new(CpuEngine::<f64>::new(o, pool)) };
    let mut out = vec![0.0f64; 3 * m];
    let mut out32 = vec![0.0f32; 3 * m];
    for _ in 0..3 {
        inputs.vortex_places += 1;
        inputs.vortex_strengths += 1;
        inputs.target_places += 1;
        let t = Instant::now();
        let to = if f32 { RealsMut::HostF32(&mut out32) } else { RealsMut::HostF64(&mut out) };
        e.evaluate(&inputs, Field::Velocity { gradient: false }, to, None).unwrap();
        let t = t.elapsed().as_secs_f64();
        let r = e.report();
        println!(
            "{t:.4} s, pairs/s if direct {:.3e}; passes {:?}",
            (n as f64 * m as f64) / t,
            r.seconds.map(|v| (v * 1e4).round() / 1e4)
        );
    }
    println!("{}", e.recipe());
    let t = Instant::now();
    println!(
        "error {:.2e} ({:.2} s)",
        e.check(&inputs, Field::Velocity { gradient: false }, 200, 1).unwrap(),
        t.elapsed().as_secs_f64()
    );
}
