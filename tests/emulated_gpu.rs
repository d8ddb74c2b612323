//! The CUDA back end from its C functions to its last kernel, on a GPU that is emulated: the kernels' sources compiled as C++,
//! the threads of a block in turns (tests/emulated_gpu). Every answer is held against the CPU's direct sum.

#![cfg(target_os = "linux")]

#[path = "../bench/support/mod.rs"]
mod support;

#[path = "emulated_gpu/harness.rs"]
mod harness;

#[path = "emulated_gpu/domains.rs"]
mod domains;

#[path = "emulated_gpu/double_arrays.rs"]
mod double_arrays;

#[path = "emulated_gpu/failures.rs"]
mod failures;

#[path = "emulated_gpu/far_points.rs"]
mod far_points;

#[path = "emulated_gpu/flow_arrays.rs"]
mod flow_arrays;

#[path = "emulated_gpu/flows.rs"]
mod flows;

#[path = "emulated_gpu/kept.rs"]
mod kept;

#[path = "emulated_gpu/narrower_cores.rs"]
mod narrower_cores;

#[path = "emulated_gpu/own_sources.rs"]
mod own_sources;

#[path = "emulated_gpu/periodic.rs"]
mod periodic;

#[path = "emulated_gpu/pictures.rs"]
mod pictures;

#[path = "emulated_gpu/pseudo_particles.rs"]
mod pseudo_particles;

#[path = "emulated_gpu/small_trees.rs"]
mod small_trees;

#[path = "emulated_gpu/strong_sources.rs"]
mod strong_sources;

#[path = "emulated_gpu/tight.rs"]
mod tight;

#[path = "emulated_gpu/treecode.rs"]
mod treecode;

#[path = "emulated_gpu/wakes.rs"]
mod wakes;

use harness::with_gpu;
use small_trees::trees_of;
use support::accuracy::{Field, Outcome, fill, name_of, options, reference, regularizations, relative_l2};
use support::api::{Plan, Scalar, Session, flat};
use support::cases::{self, Case, DISTRIBUTIONS, Kind, case};
use support::random::Random;
use support::tier::{full, takes, values};
use wakefmm::options::*;

const KINDS: [Kind; 4] = [Kind::Segments, Kind::Particles, Kind::Both, Kind::Charges];

fn plan_options(method: i32, tolerance: f64) -> wfmm_plan_options {
    options(method, tolerance, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0)
}

fn with_tolerance(o: &wfmm_plan_options, tolerance: f64) -> wfmm_plan_options {
    wfmm_plan_options { tolerance, ..*o }
}

/// In the precision of the arrays, whatever would serve the tolerance.
fn as_arrays<T: Scalar>(o: &wfmm_plan_options) -> wfmm_plan_options {
    let of_arrays = if size_of::<T>() == 8 { WFMM_PRECISION_F64 } else { WFMM_PRECISION_F32 };
    let precision = if o.precision == WFMM_PRECISION_ARRAYS { of_arrays } else { o.precision };
    wfmm_plan_options { precision, ..*o }
}

fn evaluate<T: Scalar>(gpu: &Session, c: &Case, o: &wfmm_plan_options) -> (Field, Outcome) {
    support::accuracy::evaluate::<T>(gpu, c, &as_arrays::<T>(o))
}

/// Asserts that field and gradient are as right as promised: gradients to thirty tolerances, as bench/accuracy.rs asks.
fn close(got: &Field, want: &Field, tolerance: f64, what: &str) {
    let (main, gradient) = (relative_l2(&got.main, &want.main), relative_l2(&got.gradient, &want.gradient));
    let right = main <= tolerance && gradient <= 30.0 * tolerance;
    assert!(right, "{what}: {main:.2e} and {gradient:.2e} of {tolerance:.0e}");
}

/// Every kind of source with every core in one precision, summed directly and by the FMM.
fn all_cores<T: Scalar>(exact: f64, tolerance: f64) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for kind in KINDS {
        let c = case("cube", kind, 700, 650, 1.0).rounded();
        // Both kinds of source together have no core that each has not alone.
        let some = values(&regularizations(kind)[..1], &regularizations(kind)).to_vec();
        for (segments, particles) in if kind == Kind::Both { some } else { regularizations(kind) } {
            let want = reference(&cpu, &c, segments, particles);
            for (method, tolerance) in [(WFMM_METHOD_DIRECT, exact), (WFMM_METHOD_FMM, tolerance)] {
                let o = options(method, tolerance.max(1e-10), segments, particles, 0);
                let (got, outcome) = evaluate::<T>(&gpu, &c, &o);
                let what = format!("{kind:?} {} {} {}", name_of(segments), name_of(particles), outcome.recipe);
                let expected = if segments == WFMM_REG_OFFSET { WFMM_METHOD_DIRECT } else { method };
                assert_eq!(outcome.method, expected, "{what}");
                assert!(!outcome.recipe.contains("tightening"), "{what}");
                close(&got, &want, tolerance, &what);
            }
        }
    }
}

#[test]
fn every_core_in_double_precision() {
    with_gpu("every_core_in_double_precision", &[], || all_cores::<f64>(1e-11, 1e-4));
}

#[test]
fn every_core_in_single_precision() {
    with_gpu("every_core_in_single_precision", &[], || all_cores::<f32>(2e-5, 1e-3));
}

/// At the edge of a polynomial core the gradient jumps: on which side a target is, all digits decide.
#[test]
fn targets_beside_the_edge_of_a_core() {
    with_gpu("targets_beside_the_edge_of_a_core", &[], || {
        let mut r = Random::new(61);
        let mut c = case("cube", Kind::Particles, 60, 1, 1.0);
        let direction = |r: &mut Random| loop {
            let d: [f64; 3] = std::array::from_fn(|_| r.unit() - 0.5);
            let length = d.iter().map(|x| x * x).sum::<f64>().sqrt();
            if length > 0.1 {
                return d.map(|x| x / length);
            }
        };
        c.targets.clear();
        for (k, (x, core)) in c.position.iter().zip(&mut c.particle_core).enumerate() {
            *core = 0.05 + 0.1 * r.unit();
            let (d, beside) = (direction(&mut r), if k % 2 == 0 { 1e-8 } else { -1e-8 });
            c.targets.push(std::array::from_fn(|i| x[i] + *core * (1.0 + beside) * d[i]));
        }
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_POLYNOMIAL);
        for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
            let o = options(method, 1e-9, WFMM_REG_NONE, WFMM_REG_POLYNOMIAL, 0);
            let (got, outcome) = evaluate::<f64>(&gpu, &c, &as_arrays::<f64>(&o));
            close(&got, &want, 1e-9, &outcome.recipe);
        }
    });
}

/// Thin, lonely, coincident, far: trees that are deep, of one cell, of more cells than were thought of.
fn all_distributions<T: Scalar>(tolerance: f64, unit: f64) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for (k, name) in DISTRIBUTIONS.iter().enumerate() {
        for (_, kind) in KINDS.into_iter().enumerate().filter(|(number, _)| takes(k + number, 4)) {
            let c = case(name, kind, 500 + 40 * k, 600, unit).rounded();
            let want = reference(&cpu, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
            let (got, outcome) = evaluate::<T>(&gpu, &c, &plan_options(WFMM_METHOD_FMM, tolerance));
            let what = format!("{name} {kind:?} {}", outcome.recipe);
            assert_eq!(outcome.method, WFMM_METHOD_FMM, "{what}");
            close(&got, &want, tolerance, &what);
        }
    }
}

#[test]
fn every_distribution_in_double_precision() {
    let text = with_gpu("every_distribution_in_double_precision", &[], || all_distributions::<f64>(1e-4, 1.0));
    // Three levels are enough for most, and the others ask for them first.
    assert!(
        text.is_empty()
            || trees_of("fmm_cluster_finish_f64", &text) >= if full() { 4 } else { 1 } * DISTRIBUTIONS.len(),
        "{text}"
    );
}

/// Where single precision has too few digits (cores of 2e-4 in a box of 2000, targets beside segments without a core, a field far
/// away where its sources cancel) double takes over.
#[test]
fn every_distribution_in_single_precision() {
    with_gpu("every_distribution_in_single_precision", &[], || all_distributions::<f32>(1e-3, 1e3));
}

/// A leaf far down, in whose units the lanes without a source would be far away.
#[test]
fn coincident_sources_in_single_precision() {
    with_gpu("coincident_sources_in_single_precision", &[], || {
        let n = if full() { 1000 } else { 500 };
        let c = case("coincident", Kind::Particles, n, n, 1.0).rounded();
        let want = reference(&Session::cpu(1), &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
        let (got, outcome) = evaluate::<f32>(&Session::gpu(), &c, &plan_options(WFMM_METHOD_FMM, 1e-3));
        assert_eq!(outcome.method, WFMM_METHOD_FMM, "{}", outcome.recipe);
        close(&got, &want, 1e-3, &outcome.recipe);
    });
}

/// Tolerances choose the orders, and orders the kernels that translate: leaves are small, so that some are below level 2.
fn all_tolerances<T: Scalar>(tolerances: &[f64]) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for kind in [Kind::Particles, Kind::Charges] {
        let mut c = case("cube", kind, 1200, 1000, 1.0);
        c.particle_core.fill(0.0);
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        for tolerance in tolerances {
            let mut plan = Plan::<T>::new(
                &gpu,
                &as_arrays::<T>(&options(WFMM_METHOD_FMM, *tolerance, WFMM_REG_NONE, WFMM_REG_NONE, 20)),
            );
            fill(&mut plan, &c);
            let got = field(&mut plan, &c);
            let error = relative_l2(&got, &want.main);
            assert!(error <= *tolerance, "{kind:?} {error:.1e} of {tolerance:.0e}: {}", plan.recipe());
            // What the device finds wrong is computed again, and in the end directly: here nothing is.
            let is_fmm = plan.report().method == WFMM_METHOD_FMM && !plan.recipe().contains("tightening");
            assert!(is_fmm || *tolerance < 1e-6, "{kind:?} {tolerance:.0e}: {}", plan.recipe());
        }
    }
}

/// Velocities or potentials of a plan, without gradients.
fn field<T: Scalar>(plan: &mut Plan<T>, c: &Case) -> Vec<f64> {
    let mut x = vec![T::of(f64::NAN); if c.charge.is_empty() { 3 } else { 1 } * c.targets.len()];
    if c.charge.is_empty() {
        plan.velocity(&mut x, None)
    } else {
        plan.potential(&mut x, None)
    }
    x.into_iter().map(T::f64).collect()
}

#[test]
fn every_tolerance_in_double_precision() {
    with_gpu("every_tolerance_in_double_precision", &[], || {
        all_tolerances::<f64>(values(&[1e-1, 1e-3, 1e-6, 1e-8], &[1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8]))
    });
}

#[test]
fn every_tolerance_in_single_precision() {
    with_gpu("every_tolerance_in_single_precision", &[], || {
        all_tolerances::<f32>(values(&[1e-1, 1e-3, 1e-4, 3e-5], &[1e-1, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5]))
    });
}

/// Clouds without cores that need few leaves have kernels and depths of their own: one cell, two levels of full leaves, three.
fn small_clouds<T: Scalar>(tolerances: &[f64]) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for kind in KINDS {
        let sizes = [(1, 1), (2, 700), (60, 61), (900, 2), (700, 500), (2300, 2100), (4500, 150)];
        for (k, (n, m)) in sizes.into_iter().enumerate() {
            let mut c = case("cube", kind, n, m, 1.0).rounded();
            c.particle_core.fill(0.0);
            let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
            let one_in = tolerances.len();
            for (_, tolerance) in tolerances.iter().enumerate().filter(|(number, _)| takes(k + number, one_in)) {
                let o = options(WFMM_METHOD_FMM, *tolerance, WFMM_REG_NONE, WFMM_REG_NONE, 0);
                let (got, outcome) = evaluate::<T>(&gpu, &c, &o);
                let what = format!("{kind:?} {n} {m} {}", outcome.recipe);
                assert_eq!(outcome.method, WFMM_METHOD_FMM, "{what}");
                close(&got, &want, *tolerance, &what);
            }
        }
    }
}

#[test]
fn small_clouds_in_double_precision() {
    with_gpu("small_clouds_in_double_precision", &[], || small_clouds::<f64>(&[1e-2, 1e-3, 1e-6]));
}

#[test]
fn small_clouds_in_single_precision() {
    with_gpu("small_clouds_in_single_precision", &[], || small_clouds::<f32>(&[1e-2, 1e-3, 1e-4]));
}

/// One plan through new strengths, new targets, both, all, again and again, and other counts: after each step the answer is
/// that of the direct sum, and in the end the second time the same bits.
#[test]
fn what_is_kept_between_evaluations_is_right() {
    with_gpu("what_is_kept_between_evaluations_is_right", &[], || {
        for &kind in values(&[Kind::Both, Kind::Charges], &KINDS) {
            one_plan_through_changes(kind, &plan_options(WFMM_METHOD_FMM, 1e-4));
        }
    });
}

/// Targets that are new beside sources that stay, where the trees of before were made by the kernels for small problems: from one
/// probe to more than the cells were made for.
#[test]
fn new_targets_of_a_small_plan_are_right() {
    with_gpu("new_targets_of_a_small_plan_are_right", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for &kind in values(&[Kind::Particles, Kind::Charges], &KINDS) {
            let mut c = case("cube", kind, 2000, 1900, 1.0);
            c.particle_core.fill(0.0);
            let o = options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_NONE, WFMM_REG_NONE, 0);
            let mut plan = Plan::<f64>::new(&gpu, &as_arrays::<f64>(&o));
            fill(&mut plan, &c);
            field(&mut plan, &c);
            let depth = plan.report().depth;
            for (round, m) in [1, 5, 500, 501, 502, 6000].into_iter().enumerate() {
                c.targets = case("cube", kind, 10 + round, m, 0.8).targets;
                plan.targets(&flat(&c.targets));
                let got = field(&mut plan, &c);
                let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
                let what = format!("{kind:?}, {m} targets, {:?}", plan.report());
                assert_eq!(plan.report().method, WFMM_METHOD_FMM, "{what}");
                assert!(relative_l2(&got, &want.main) <= 1e-3, "{what}: {:.1e}", relative_l2(&got, &want.main));
                assert!(m == 6000 || plan.report().depth <= depth, "{what}: no deeper than {depth}");
            }
            let first = case("cube", kind, 2000, 1900, 1.0);
            fill(&mut plan, &first);
            field(&mut plan, &first);
            assert_eq!(plan.report().depth, depth, "{kind:?}: as deep as in the beginning");
        }
    });
}

/// A target or an unused point far away takes no digits of the direct sum from the sources and the targets beside them. (Farther
/// away, and of the FMM: far_points.)
#[test]
fn what_is_far_away_costs_no_digits() {
    with_gpu("what_is_far_away_costs_no_digits", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for kind in KINDS {
            for far in [-1e5, -1e3, 1e4, 1e5] {
                let mut c = case("cube", kind, 400, 300, 1.0);
                c.targets[7] = [far, 0.3 * far, -far];
                if !c.points.is_empty() {
                    c.points.push([-far, far, far]);
                }
                let c = c.rounded();
                let want = reference(&cpu, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
                let (got, outcome) = evaluate::<f32>(&gpu, &c, &plan_options(WFMM_METHOD_DIRECT, 1e-3));
                close(&got, &want, 1e-4, &format!("{kind:?} {far:.0e} {}", outcome.recipe));
            }
        }
    });
}

/// Powers of the lengths of a segment that spans the box are in the range of single precision, in the direct sum too.
#[test]
fn segments_across_the_box_in_single_precision() {
    with_gpu("segments_across_the_box_in_single_precision", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for (segments, _) in regularizations(Kind::Segments) {
            for core in [1e-3, 0.3, 3.0] {
                let mut c = case("cube", Kind::Segments, 3, 40, 1.0);
                c.points.splice(0..4, [[0.0; 3], [0.99, 0.99, 0.0], [0.99, 0.0, 0.99], [0.0, 0.99, 0.0]]);
                c.segment_core.fill(core);
                c.targets[0] = [0.01, 0.98, 0.98];
                c.targets[1] = [0.98, 0.01, 0.02];
                let c = c.rounded();
                let want = reference(&cpu, &c, segments, WFMM_REG_GAUSS_ERF);
                for method in [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM] {
                    let o = options(method, 1e-3, segments, WFMM_REG_GAUSS_ERF, 0);
                    let (got, outcome) = evaluate::<f32>(&gpu, &c, &o);
                    close(&got, &want, 1e-4, &format!("{core} {} {}", name_of(segments), outcome.recipe));
                }
            }
        }
    });
}

/// The root cube holds the middles of segments: of a few long ones it is smaller than they are.
#[test]
fn segments_longer_than_their_cube_in_single_precision() {
    with_gpu("segments_longer_than_their_cube_in_single_precision", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for (segments, _) in regularizations(Kind::Segments) {
            for (n, m, spread) in
                [(1, 1, 1.0), (1, 2, 1.0), (1, 3, 0.1), (2, 1, 1.0), (2, 2, 1.0), (3, 3, 1.0), (4, 40, 0.01)]
            {
                let mut c = case("cube", Kind::Segments, n, m, 1.0);
                let first = c.targets[0];
                c.targets.iter_mut().for_each(|x| *x = std::array::from_fn(|k| first[k] + spread * (x[k] - first[k])));
                let c = c.rounded();
                let want = reference(&cpu, &c, segments, WFMM_REG_GAUSS_ERF);
                let o = options(WFMM_METHOD_FMM, 1e-3, segments, WFMM_REG_GAUSS_ERF, 0);
                let (got, outcome) = evaluate::<f32>(&gpu, &c, &o);
                close(&got, &want, 1e-3, &format!("{n} {m} {spread} {} {}", name_of(segments), outcome.recipe));
            }
        }
    });
}

/// Turing has 64 KB of shared memory for a block, Ada and small Amperes 99, A100 163: M2L gathers into fewer stages there, and by fewer warps.
#[test]
fn less_shared_memory_is_enough() {
    const NAME: &str = "less_shared_memory_is_enough";
    for (k, (shared, products)) in
        [("65536", "shuffle"), ("101376", "tensor"), ("166912", "tensor")].into_iter().enumerate()
    {
        let settings = [("FAKE_CUDA", "ampere"), ("FAKE_CUDA_SHARED", shared), ("EMULATED_MMA", products)];
        with_gpu(NAME, &settings, || {
            let (cpu, gpu) = (Session::cpu(1), Session::gpu());
            let kinds = [Kind::Particles, Kind::Charges];
            for (_, kind) in kinds.into_iter().enumerate().filter(|(number, _)| takes(k + number, 2)) {
                let c = case("cube", kind, 300, 250, 1.0).rounded();
                let want = reference(&cpu, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
                for &tolerance in values(&[1e-4], &[1e-2, 1e-4]) {
                    let o = options(WFMM_METHOD_FMM, tolerance, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 12);
                    let (got, outcome) = evaluate::<f64>(&gpu, &c, &o);
                    close(&got, &want, tolerance, &format!("{kind:?} {}", outcome.recipe));
                    assert_eq!(outcome.method, WFMM_METHOD_FMM, "{}", outcome.recipe);
                }
                let o = options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 12);
                let (got, outcome) = evaluate::<f32>(&gpu, &c, &o);
                close(&got, &want, 1e-3, &format!("{kind:?} {}", outcome.recipe));
                assert_eq!(outcome.method, WFMM_METHOD_FMM, "{}", outcome.recipe);
            }
        });
    }
}

/// Corrections of cores that are smooth over many targets are interpolated, in double precision with gradients by more shared memory
/// than Turing has: there they are summed one by one.
#[test]
fn smooth_corrections_need_no_more_shared_memory_than_there_is() {
    const NAME: &str = "smooth_corrections_need_no_more_shared_memory_than_there_is";
    for (shared, interpolated) in [("65536", false), ("101376", true)] {
        let text = with_gpu(NAME, &[("FAKE_CUDA_SHARED", shared), ("FAKE_CUDA_LOG", "/dev/stdout")], || {
            let c = case("cube", Kind::Segments, 300, 3000, 1.0);
            let want = reference(&Session::cpu(1), &c, WFMM_REG_VATISTAS, WFMM_REG_NONE);
            let o = options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_VATISTAS, WFMM_REG_NONE, 0);
            let (got, outcome) = evaluate::<f64>(&Session::gpu(), &c, &o);
            assert_eq!(outcome.method, WFMM_METHOD_FMM, "{}", outcome.recipe);
            close(&got, &want, 1e-3, &outcome.recipe);
        });
        assert!(
            text.is_empty() || text.contains("\nfmm_smooth_segment_gradient_f64") == interpolated,
            "{shared}: {text}"
        );
    }
}

/// Sources that are all in one cell, few or long ones: the root is a leaf, and its smooth corrections are interpolated as well.
#[test]
fn smooth_corrections_of_a_single_cell_are_not_forgotten() {
    with_gpu("smooth_corrections_of_a_single_cell_are_not_forgotten", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for kind in [Kind::Segments, Kind::Particles] {
            let mut c = case("cube", kind, 25, 3000, 1.0);
            c.targets.iter_mut().flatten().for_each(|x| *x *= 0.1);
            c.segment_core.iter_mut().chain(&mut c.particle_core).for_each(|core| *core = 0.2);
            let want = reference(&cpu, &c, WFMM_REG_VATISTAS, WFMM_REG_WINCKELMANS);
            let o = options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_VATISTAS, WFMM_REG_WINCKELMANS, 0);
            let (got, outcome) = evaluate::<f64>(&gpu, &c, &o);
            close(&got, &want, 1e-3, &format!("{kind:?} {}", outcome.recipe));
            let is_fmm = outcome.method == WFMM_METHOD_FMM && !outcome.recipe.contains("tightening");
            assert!(is_fmm, "{kind:?} {}", outcome.recipe);
        }
    });
}

/// Very many points on one side and few on the other.
#[test]
fn lopsided_problems_are_right() {
    with_gpu("lopsided_problems_are_right", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        for (n, m) in [(40_000, 30), (30, 40_000)] {
            let c = case("cube", Kind::Charges, n, m, 1.0);
            let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
            let o = options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_NONE, WFMM_REG_NONE, 0);
            let (got, outcome) = evaluate::<f64>(&gpu, &c, &o);
            assert_eq!(outcome.method, WFMM_METHOD_FMM, "{}", outcome.recipe);
            close(&got, &want, 1e-3, &format!("{n} {m} {}", outcome.recipe));
        }
    });
}

fn one_plan_through_changes(kind: Kind, o: &wfmm_plan_options) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    let mut plan = Plan::<f64>::new(&gpu, &as_arrays::<f64>(&with_tolerance(o, 1e-4)));
    let mut exact = Plan::<f64>::new(&cpu, &plan_options(WFMM_METHOD_DIRECT, 1e-4));
    let mut right = |plan: &mut Plan<f64>, c: &Case, step: &str| {
        fill(&mut exact, c);
        let (got, want) = (field(plan, c), field(&mut exact, c));
        assert_eq!(plan.report().method, o.method, "{kind:?}, {step}: {}", plan.recipe());
        let error = relative_l2(&got, &want);
        assert!(error <= 1e-4, "{kind:?}, {step}: {error:.1e}");
        got
    };
    let mut c = case("cube", kind, 600, 500, 1.0);
    fill(&mut plan, &c);
    right(&mut plan, &c, "first");
    for round in 0..3 {
        c.circulation.iter_mut().chain(&mut c.charge).for_each(|g| *g = 0.3 - *g);
        c.strength.iter_mut().flatten().for_each(|a| *a *= -2.0);
        plan.strengths(&c.circulation, &flat(&c.strength), &c.charge);
        right(&mut plan, &c, &format!("strengths {round}"));
        c.targets = case("cube", kind, 10 + round, 400 + 100 * round, 0.9).targets;
        plan.targets(&flat(&c.targets));
        right(&mut plan, &c, &format!("targets {round}"));
    }
    c.circulation.iter_mut().chain(&mut c.charge).for_each(|g| *g *= 3.0);
    plan.strengths(&c.circulation, &flat(&c.strength), &c.charge);
    c.targets.iter_mut().for_each(|x| x[1] += 4.0);
    plan.targets(&flat(&c.targets));
    right(&mut plan, &c, "targets outside of the old cube");
    for (n, m) in [(600, 500), (600, 500), (600, 500), (40, 1500), (1500, 2), (1, 1), (700, 700)] {
        let c = case("helical wake", kind, n, m, 1.0);
        fill(&mut plan, &c);
        let got = right(&mut plan, &c, &format!("{n} and {m}"));
        fill(&mut plan, &c);
        assert_eq!(got, right(&mut plan, &c, "again"), "{kind:?} {n} {m}: the same bits");
    }
}

/// Beside their sources targets have a far field alone, which is less of the whole field than recipes expect: the sample sees it.
#[test]
fn a_field_that_misses_its_tolerance_is_computed_again() {
    with_gpu("a_field_that_misses_its_tolerance_is_computed_again", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        let mut c = case("cube", Kind::Particles, 1500, 1200, 1.0);
        c.targets.iter_mut().for_each(|x| x[0] += 1.5);
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        let o = options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_NONE, WFMM_REG_NONE, 0);
        let (got, outcome) = evaluate::<f64>(&gpu, &c, &o);
        close(&got, &want, 1e-3, &outcome.recipe);
        assert!(outcome.method == WFMM_METHOD_FMM && outcome.recipe.contains("tightening"), "{}", outcome.recipe);
    });
}

fn ordered_kinds() -> &'static [Kind] {
    values(&[Kind::Both, Kind::Charges], &KINDS)
}

/// Sums of all bits of fields, as a line of text.
fn print_bits(o: &wfmm_plan_options) {
    let gpu = Session::gpu();
    for &kind in ordered_kinds() {
        let c = case("helical wake", kind, 800, 900, 1.0);
        let bits = |x: Vec<f64>| x.iter().fold(0u64, |sum, x| sum.rotate_left(7).wrapping_add(x.to_bits()));
        let double = bits(evaluate::<f64>(&gpu, &c, &with_tolerance(o, 1e-3)).0.gradient);
        let single = bits(evaluate::<f32>(&gpu, &c, &with_tolerance(o, 1e-2)).0.gradient);
        println!("\nbits {kind:?} {double:x} {single:x}");
    }
}

/// The bits of fields by these options from a process with these settings; none in that process. `name` is that of the test.
fn bits_under(name: &str, settings: &[(&str, &str)], o: &wfmm_plan_options) -> Vec<String> {
    let text = with_gpu(name, settings, || print_bits(o));
    text.lines().filter(|line| line.starts_with("bits ")).map(str::to_owned).collect()
}

/// The bits of fields by these options, which neither the order of threads nor the kernels that made the trees change; none in a
/// process of `bits_under`.
fn bits_in_any_order(name: &str, o: &wfmm_plan_options) -> Vec<String> {
    let bits = |settings: &[(&str, &str)]| bits_under(name, settings, o);
    let first = bits(&[]);
    if !first.is_empty() {
        assert_eq!(first.len(), ordered_kinds().len());
        if full() {
            assert_eq!(first, bits(&[("EMULATED_ORDER", "last")]), "the last thread first");
        }
        assert_eq!(first, bits(&[("EMULATED_ORDER", "7")]), "any thread, blocks at the same time");
        assert_eq!(first, bits(&[("FAKE_CUDA", "ampere")]), "no clusters");
    }
    first
}

/// No result depends on which thread is first, nor on which kernels made the trees; older GPUs' products by shuffles are those of the
/// tensor units.
#[test]
fn the_order_of_threads_changes_no_bit() {
    const NAME: &str = "the_order_of_threads_changes_no_bit";
    let o = plan_options(WFMM_METHOD_FMM, 1e-3);
    let first = bits_in_any_order(NAME, &o);
    if first.is_empty() {
        return; // the child
    }
    let shuffled = bits_under(NAME, &[("EMULATED_MMA", "shuffle")], &o);
    let doubles = |lines: Vec<String>| lines.iter().map(|l| l[..l.rfind(' ').unwrap()].to_owned()).collect::<Vec<_>>();
    assert_eq!(doubles(first), doubles(shuffled), "products by shuffles");
}
