//! Double arrays in single precision, where that serves the tolerance. The emulated GPU is slow in double, so few points are enough.

use super::*;

/// Whether the field was made in single precision; it keeps its tolerance anyway.
fn is_single(c: &Case, o: &wfmm_plan_options, want: &Field, gpu: &Session) -> bool {
    let (got, outcome) = support::accuracy::evaluate::<f64>(gpu, c, o);
    close(&got, want, o.tolerance, &outcome.recipe);
    let says = outcome.recipe.contains("single precision serves the tolerance");
    assert_eq!(says, outcome.recipe.contains("in single precision"), "{}", outcome.recipe);
    says
}

#[test]
fn single_precision_serves_tolerances() {
    with_gpu("double_arrays::single_precision_serves_tolerances", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for &kind in values(&[Kind::Segments, Kind::Both], &[Kind::Segments, Kind::Particles, Kind::Both]) {
            let c = case("helical wake", kind, 900, 800, 1.0);
            let want = reference(&cpu, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
            let of = |tolerance: f64| plan_options(WFMM_METHOD_FMM, tolerance);
            assert!([1e-2, 1e-3, 1e-5].into_iter().all(|t| is_single(&c, &of(t), &want, &gpu)), "{kind:?}");
            assert!(!is_single(&c, &of(5e-7), &want, &gpu), "{kind:?}");
            let in_double = wfmm_plan_options { precision: WFMM_PRECISION_F64, ..of(1e-3) };
            let repeatable = wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..of(1e-3) };
            assert!(!is_single(&c, &in_double, &want, &gpu) && !is_single(&c, &repeatable, &want, &gpu), "{kind:?}");
        }
        // The terms of potentials cancel more.
        let c = case("helical wake", Kind::Charges, 900, 800, 1.0);
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        assert!(!is_single(&c, &plan_options(WFMM_METHOD_FMM, 1e-3), &want, &gpu));
    });
}

/// Direct sums are made in double precision.
#[test]
fn direct_sums_are_in_double() {
    with_gpu("double_arrays::direct_sums_are_in_double", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        let c = case("cube", Kind::Particles, 300, 200, 1.0);
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_GAUSS_ERF);
        assert!(!is_single(&c, &plan_options(WFMM_METHOD_DIRECT, 1e-2), &want, &gpu));
        let (got, _) = support::accuracy::evaluate::<f64>(&gpu, &c, &plan_options(WFMM_METHOD_DIRECT, 1e-2));
        close(&got, &want, 1e-13, "direct");
    });
}

/// Single arrays round what is returned, not parts of it that cancel.
#[test]
fn kinds_that_cancel_are_added_before_they_are_rounded() {
    with_gpu("double_arrays::kinds_that_cancel_are_added_before_they_are_rounded", &[], || {
        let (cpu, gpu, c) = (Session::cpu(1), Session::gpu(), cases::cancelling(300, 200));
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
            let o = options(method, 1e-3, WFMM_REG_NONE, WFMM_REG_NONE, 0);
            let (got, outcome) = support::accuracy::evaluate::<f32>(&gpu, &c, &o);
            close(&got, &want, 1e-3, &outcome.recipe);
        }
    });
}

/// Single arrays do not round images in a ground plane that take most of the field away: sources just above it, targets far from both.
#[test]
fn images_of_single_arrays_keep_their_digits() {
    with_gpu("double_arrays::images_of_single_arrays_keep_their_digits", &[], || {
        let (cpu, gpu, position) = (Session::cpu(1), Session::gpu(), 0.3);
        let mut c = case("cube", Kind::Particles, 300, 200, 1.0);
        c.position.iter_mut().for_each(|x| x[2] = position + 1e-5 * (1.0 + x[2]));
        c.strength.iter_mut().for_each(|a| *a = [1.0, 0.0, 0.0]);
        c.targets.iter_mut().for_each(|x| *x = [x[0] + 6.0, x[1], x[2] + 4.0]);
        let c = c.rounded();
        let want = reference(&cpu, &c.with_images(2, position), WFMM_REG_NONE, WFMM_REG_GAUSS_ERF);
        for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
            let o = wfmm_plan_options { plane_axis: 3, plane_position: position, ..plan_options(method, 1e-5) };
            let (got, outcome) = support::accuracy::evaluate::<f32>(&gpu, &c, &o);
            close(&got, &want, 1e-5, &outcome.recipe);
        }
    });
}

/// Velocities of bare segments by method and precision keep their tolerances against the CPU, without another method.
fn bare_segments_hold(c: &Case, sums: &[(i32, i32, f64)], leaf_capacity: i32) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    let want = reference(&cpu, c, WFMM_REG_NONE, WFMM_REG_NONE);
    for &(method, precision, tolerance) in sums {
        let o = options(method, tolerance, WFMM_REG_NONE, WFMM_REG_NONE, leaf_capacity);
        let mut plan = Plan::<f64>::new(&gpu, &wfmm_plan_options { precision, ..o });
        fill(&mut plan, c);
        let mut u = vec![0.0; 3 * c.targets.len()];
        plan.velocity(&mut u, None);
        let (error, report) = (relative_l2(&u, &want.main), plan.report());
        assert!(error <= tolerance, "method {method}, precision {precision}: {error:.1e}");
        assert!(report.estimated_error <= tolerance && report.method == method, "{}", plan.recipe());
    }
}

/// The middle of two points, rounded, counts as on their line, in the direct sum, the FMM and its check, as on a CPU.
#[test]
fn rounded_middles_of_bare_segments_are_on_their_lines() {
    with_gpu("double_arrays::rounded_middles_of_bare_segments_are_on_their_lines", &[], || {
        let mut c = case("cube", Kind::Segments, 600, 200, 1.0);
        c.segment_core.fill(0.0);
        for e in c.ends.chunks_exact(2).take(200) {
            let [a, b] = [c.points[e[0] as usize], c.points[e[1] as usize]];
            c.targets.push(std::array::from_fn(|i| 0.5 * (a[i] + b[i])));
        }
        let sums = [
            (WFMM_METHOD_DIRECT, WFMM_PRECISION_F64, 1e-10),
            (WFMM_METHOD_DIRECT, WFMM_PRECISION_F32, 1e-4),
            (WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-4),
            (WFMM_METHOD_FMM, WFMM_PRECISION_F32, 1e-4),
        ];
        bare_segments_hold(&c, &sums, 8);
    });
}

/// The same of long segments, which a GPU cuts: a target in the middle is at the ends of two parts, and off the line by the rounding of
/// coordinates that are larger than its own.
#[test]
fn rounded_middles_of_long_segments_are_on_their_lines() {
    with_gpu("double_arrays::rounded_middles_of_long_segments_are_on_their_lines", &[], || {
        let mut c = case("cube", Kind::Segments, 2000, 4000, 1.0);
        c.segment_core.fill(0.0);
        let middle = [0.5; 3];
        c.targets.iter_mut().for_each(|x| *x = std::array::from_fn(|i| x[i] - middle[i]));
        c.points.iter_mut().for_each(|x| *x = std::array::from_fn(|i| x[i] - middle[i]));
        for k in 0..150 {
            let (near, way) = (c.targets[k].map(|v| 0.05 * v), c.targets[k + 150]);
            let [a, b]: [[f64; 3]; 2] = [-20.0, 20.0].map(|t| std::array::from_fn(|i| near[i] + t * way[i]));
            let first = c.points.len() as i32;
            c.points.extend([a, b]);
            c.ends.extend([first, first + 1]);
            c.circulation.push(1e-3);
            c.segment_core.push(0.0);
            c.targets.push(std::array::from_fn(|i| 0.5 * (a[i] + b[i])));
        }
        let sums = [
            (WFMM_METHOD_FMM, WFMM_PRECISION_F32, 1e-4),
            (WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-4),
            (WFMM_METHOD_TREECODE, WFMM_PRECISION_F32, 1e-4),
        ];
        bare_segments_hold(&c, &sums, 0);
    });
}
