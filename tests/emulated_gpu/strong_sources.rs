//! A source far stronger than all others: the few targets beside its near cells have most of the error, and are in no sample.

use super::*;

/// Weak particles, one that makes nearly all of the field, and targets that are not beside it.
fn one_strong(seed: u64) -> Case {
    let mut c = case("cube", Kind::Particles, 300, 4000, 1.0);
    c.particle_core.fill(0.0);
    let mut r = Random::new(seed);
    let at: [f64; 3] = std::array::from_fn(|_| 0.25 + 0.5 * r.unit());
    (c.position[0], c.strength[0]) = (at, [300.0, -200.0, 100.0]);
    let distance = |x: &[f64; 3]| (0..3).map(|i| (x[i] - at[i]).powi(2)).sum::<f64>().sqrt();
    c.targets.retain(|x| distance(x) > 0.11);
    c
}

#[test]
fn targets_beside_a_strong_source_are_compared() {
    with_gpu("strong_sources::targets_beside_a_strong_source_are_compared", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        // Without these targets the check finds 0.83 and 0.86 of the error with seeds 18 and 22.
        for seed in [9, 18, 22] {
            let c = one_strong(seed);
            let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
            let o = options(WFMM_METHOD_FMM, 3e-3, WFMM_REG_NONE, WFMM_REG_NONE, 8);
            let mut plan = Plan::<f64>::new(&gpu, &as_arrays::<f64>(&o));
            fill(&mut plan, &c);
            let mut u = vec![0.0; 3 * c.targets.len()];
            plan.velocity(&mut u, None);
            let (error, found) = (relative_l2(&u, &want.main), plan.report().estimated_error);
            assert!(error <= o.tolerance && found >= 0.9 * error, "{seed}: {found:.2e} found of {error:.2e}");
        }
    });
}
