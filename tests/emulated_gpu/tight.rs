//! Velocities of double arrays in single precision below 1e-4: coordinates of two floats, products summed without truncation.

use super::*;

/// Error over all targets relative to the direct sum, the precision, and what made the field.
fn measured(gpu: &Session, c: &Case, o: &wfmm_plan_options, want: &Field) -> (f64, i32, String) {
    let mut plan = Plan::<f64>::new(gpu, o);
    fill(&mut plan, c);
    let mut u = vec![0.0; 3 * c.targets.len()];
    plan.velocity(&mut u, None);
    (relative_l2(&u, &want.main), plan.report().precision, plan.recipe())
}

const CLOUDS: [(&str, Kind, i32); 6] = [
    ("cube", Kind::Particles, WFMM_REG_NONE),
    ("coherent cube", Kind::Particles, WFMM_REG_GAUSS_ERF),
    ("two thin rings", Kind::Particles, WFMM_REG_NONE),
    ("64 clusters", Kind::Particles, WFMM_REG_NONE),
    ("helical wake", Kind::Segments, WFMM_REG_VATISTAS),
    ("dust under wake", Kind::Segments, WFMM_REG_LAMB_OSEEN),
];

/// At 1e-5 and 1e-6; with cores at 3e-6, below which there is no FMM. Rounding by itself is what the same FMM in double precision differs by.
#[test]
fn single_precision_serves_tight_tolerances() {
    with_gpu("tight::single_precision_serves_tight_tolerances", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for (_, (name, kind, core)) in CLOUDS.into_iter().enumerate().filter(|(number, _)| takes(*number, 4)) {
            let n = if full() { 1500 } else { 1000 };
            let c = case(name, kind, n, n, 1.0);
            let (segments, particles) = if kind == Kind::Segments { (core, 0) } else { (0, core) };
            let want = reference(&cpu, &c, segments, particles);
            for tolerance in [1e-5, if core == WFMM_REG_NONE { 1e-6 } else { 3e-6 }] {
                let o = options(WFMM_METHOD_FMM, tolerance, segments, particles, 40);
                let (error, precision, recipe) = measured(&gpu, &c, &o, &want);
                let what = format!("{name} {tolerance:.0e}: {error:.1e}, {recipe}");
                assert!(error <= tolerance && recipe.contains("two floats"), "{what}");
                assert_eq!(precision, WFMM_PRECISION_F32, "{what}");
                let in_double = wfmm_plan_options { precision: WFMM_PRECISION_F64, ..o };
                let (truncation, precision, _) = measured(&gpu, &c, &in_double, &want);
                assert_eq!(precision, WFMM_PRECISION_F64);
                let rounding = (error * error - truncation * truncation).max(0.0).sqrt();
                assert!(rounding < 6e-7, "{what}, in double {truncation:.1e}");
            }
            let repeatable = wfmm_plan_options {
                flags: WFMM_FLAG_REPRODUCIBLE,
                ..options(WFMM_METHOD_FMM, 1e-5, segments, particles, 40)
            };
            assert_eq!(measured(&gpu, &c, &repeatable, &want).1, WFMM_PRECISION_F64, "{name}");
        }
    });
}
