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
            let (u, plan) = velocity(&gpu, &c, &o);
            let (error, found) = (relative_l2(&u, &want.main), plan.report().estimated_error);
            assert!(error <= o.tolerance && found >= 0.9 * error, "{seed}: {found:.2e} found of {error:.2e}");
        }
    });
}

/// Weak segments, a strong one, and targets beside them all, two of which are 75 and 700 core radii from the strong one on its line.
fn one_strong_segment(seed: u64) -> Case {
    let mut c = case("cube", Kind::Segments, 1000, 8000, 1.0);
    c.segment_core.fill(0.002);
    let mut r = Random::new(seed);
    let [from, along] = [std::array::from_fn(|_| 0.3 + 0.4 * r.unit()), [0.98, 0.14, 0.1428]];
    let at = |t: f64, off: f64| std::array::from_fn(|i| from[i] + t * along[i] + [0.0, 0.0, off][i]);
    (c.points[0], c.points[1], c.circulation[0]) = (at(0.0, 0.0), at(0.1, 0.0), 1000.0);
    c.targets.iter_mut().for_each(|x| x[0] += 1.4);
    (c.targets[777], c.targets[778]) = (at(1.5, 0.0008), at(0.25, 0.0008));
    c
}

/// Velocity and gradient inside of the cylinder around a segment's line are wrong by as much as they are where its core is left out.
#[test]
fn targets_in_the_line_of_a_strong_segment_have_its_core() {
    with_gpu("strong_sources::targets_in_the_line_of_a_strong_segment_have_its_core", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        // Without it the error is 1.4e-4 and 2.2e-4, of which the check finds nothing.
        let methods = [WFMM_METHOD_FMM, WFMM_METHOD_TREECODE];
        for (k, (seed, regularization)) in [(1, WFMM_REG_VATISTAS), (3, WFMM_REG_LAMB_OSEEN)].into_iter().enumerate() {
            let c = one_strong_segment(seed);
            let want = reference(&cpu, &c, regularization, WFMM_REG_NONE);
            // By one method with the gradient, by the other without.
            for method in methods.into_iter().enumerate().filter(|(number, _)| takes(k + number, 2)).map(|m| m.1) {
                let o = options(method, 1e-4, regularization, WFMM_REG_NONE, 32);
                let (got, outcome) = evaluate::<f64>(&gpu, &c, &o);
                let error = relative_l2(&got.gradient, &want.gradient) / 30.0;
                assert!(outcome.method == method && error <= o.tolerance, "{seed}: {error:.1e} {}", outcome.recipe);
            }
            let o = options(methods[1 - k], 1e-4, regularization, WFMM_REG_NONE, 32);
            let (u, plan) = velocity(&gpu, &c, &o);
            let (error, same) = (relative_l2(&u, &want.main), plan.report().method == methods[1 - k]);
            assert!(same && error <= o.tolerance, "{seed}: {error:.1e} {}", plan.recipe());
        }
    });
}

/// The velocity alone.
fn velocity(session: &Session, c: &Case, o: &wfmm_plan_options) -> (Vec<f64>, Plan<f64>) {
    let mut plan = Plan::<f64>::new(session, &as_arrays::<f64>(o));
    fill(&mut plan, c);
    let mut u = vec![0.0; 3 * c.targets.len()];
    plan.velocity(&mut u, None);
    (u, plan)
}

/// Weak particles, two strong ones at nearly the same place that cancel each other, and a target where the wider core of the two ends.
fn a_strong_pair(apart: f64) -> Case {
    let mut c = case("cube", Kind::Particles, 300, 2500, 1.0);
    c.particle_core.fill(0.02);
    let at = [0.41, 0.53, 0.47];
    for (k, sign) in [(0, 1.0), (1, -1.0)] {
        c.position[k] = [at[0], at[1] + 1e-4 * sign, at[2]];
        c.strength[k] = [300.0, -200.0, 100.0].map(|a| sign * a);
    }
    c.particle_core[1] = 0.01;
    c.targets[777] = [at[0] + 0.02 * apart, at[1], at[2]];
    c
}

/// The velocity is within its tolerance, by the method asked for, and was computed more than once.
fn holds_when_computed_again([cpu, gpu]: [&Session; 2], c: &Case, o: &wfmm_plan_options) {
    let want = reference(cpu, c, o.segment_regularization, o.particle_regularization);
    let (u, plan) = velocity(gpu, c, o);
    let error = relative_l2(&u, &want.main);
    assert!(plan.report().method == o.method && error <= o.tolerance, "{error:.1e} {}", plan.recipe());
    assert!(plan.report().retries > 0, "{}", plan.recipe());
}

/// What a core changes of a particle's own field may be far more than it is of the whole.
#[test]
fn cores_of_strong_pairs_end_where_they_change_nothing() {
    with_gpu("strong_sources::cores_of_strong_pairs_end_where_they_change_nothing", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        // Without that the error is 2 to 6 tolerances, of which the check finds nothing.
        for (regularization, apart, method) in
            [(WFMM_REG_GAUSS_ERF, 4.3, WFMM_METHOD_FMM), (WFMM_REG_WINCKELMANS, 9.0, WFMM_METHOD_TREECODE)]
        {
            let o = options(method, 1e-3, WFMM_REG_NONE, regularization, 16);
            holds_when_computed_again([&cpu, &gpu], &a_strong_pair(apart), &o);
        }
    });
}

/// Weak segments, two strong ones at nearly the same place that cancel each other, most targets beside them all, some among them, and one
/// where the wider core of the two ends.
fn a_strong_pair_of_segments(apart: f64) -> Case {
    let mut c = one_strong_segment(1);
    let middle: [f64; 3] = std::array::from_fn(|i| 0.5 * (c.points[0][i] + c.points[1][i]));
    for (k, sign) in [(0, 1.0), (1, -1.0)] {
        c.circulation[k] = 3.0 * sign;
        [c.points[2 * k], c.points[2 * k + 1]] =
            [c.points[0], c.points[1]].map(|x| [x[0], x[1], x[2] + 1e-7 * k as f64]);
    }
    c.segment_core[1] = 0.001;
    let beside = |distance: f64| std::array::from_fn(|i| middle[i] + distance * [0.0, 0.714, -0.7][i]);
    (0..60).for_each(|k| c.targets[k] = beside(0.05 + 0.005 * k as f64));
    (c.targets[777], c.targets[778]) = (beside(0.002 * apart), c.targets[779]);
    c
}

/// What a core changes of a segment's own field may be far more than it is of the whole.
#[test]
fn cores_of_strong_segments_end_where_they_change_nothing() {
    with_gpu("strong_sources::cores_of_strong_segments_end_where_they_change_nothing", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        // Without that the error is 7 and 14 tolerances, of which the check finds nothing.
        for (regularization, apart, method) in
            [(WFMM_REG_VATISTAS, 6.1, WFMM_METHOD_FMM), (WFMM_REG_LAMB_OSEEN, 2.55, WFMM_METHOD_TREECODE)]
        {
            let o = options(method, 1e-4, regularization, WFMM_REG_NONE, 32);
            holds_when_computed_again([&cpu, &gpu], &a_strong_pair_of_segments(apart), &o);
        }
    });
}
