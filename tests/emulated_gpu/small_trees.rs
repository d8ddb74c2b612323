//! Trees of small problems: those of clusters, which Hopper makes, and of the kernels for GPUs before it. The driver holds every
//! tree against that of the kernels for any size, number by number; here fields are held against the direct sum.

use super::*;

/// GPUs without clusters.
const AMPERE: (&str, &str) = ("FAKE_CUDA", "ampere");

fn order(order: &str) -> (&str, &str) {
    ("EMULATED_ORDER", order)
}

/// How many trees the kernels made whose last has this name; all of them were right.
pub fn trees_of(kernel: &str, text: &str) -> usize {
    text.lines().filter(|line| line.starts_with(&format!("trees of {kernel}:"))).count()
}

/// Runs `body` with each of the settings; asserts that the kernels made at least so many trees each time.
fn under(name: &str, runs: &[(&[(&str, &str)], &str)], least: usize, body: impl Fn()) {
    for (settings, kernel) in runs {
        let text = with_gpu(&format!("small_trees::{name}"), settings, &body);
        if text.is_empty() {
            return; // the child
        }
        let trees = trees_of(kernel, &text);
        assert!(trees >= least, "{name} {settings:?}: {trees} trees of {kernel}\n{text}");
    }
}

/// Fewer points than a warp, than threads of a block, than those of a cluster; as many, one more, and as many as there may be.
const SIZES: [(usize, usize); 10] = [
    (1, 1),
    (1, 900),
    (257, 1),
    (31, 33),
    (1023, 1025),
    (4100, 2000),
    (8192, 300),
    (1500, 8193),
    (12_000, 700),
    (16_384, 16_384),
];

/// Half of them in each precision.
fn sizes(turn: usize) -> Vec<(usize, usize)> {
    SIZES.into_iter().enumerate().filter(|(number, _)| takes(number + turn, 2)).map(|size| size.1).collect()
}

fn all_sizes<T: Scalar>(tolerance: f64, turn: usize) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for (n, m) in sizes(turn) {
        let kind = if n + m > 10_000 { Kind::Charges } else { Kind::Particles };
        let c = case("cube", kind, n, m, 1.0).rounded();
        let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
        let o = options(WFMM_METHOD_FMM, tolerance, WFMM_REG_NONE, WFMM_REG_NONE, 0);
        let (got, outcome) = evaluate::<T>(&gpu, &c, &o);
        let what = format!("{n} and {m}: {}", outcome.recipe);
        assert_eq!(outcome.method, WFMM_METHOD_FMM, "{what}");
        close(&got, &want, tolerance, &what);
    }
}

#[test]
fn every_size_in_double_precision() {
    let clusters = "fmm_cluster_finish_f64";
    let runs: [(&[_], _); 2] = [(&[], clusters), (&[order("1")], clusters)];
    under("every_size_in_double_precision", values(&runs[1..], &runs), sizes(0).len(), || all_sizes::<f64>(1e-3, 0));
}

#[test]
fn every_size_in_single_precision() {
    let clusters = "fmm_cluster_finish_f32";
    let runs: [(&[_], _); 3] =
        [(&[order("last")], clusters), (&[order("2")], clusters), (&[AMPERE], "fmm_small_lists")];
    under("every_size_in_single_precision", values(&runs[1..2], &runs), sizes(1).len(), || all_sizes::<f32>(1e-2, 1));
}

/// One plan through other counts, down and up again: what a larger problem left in memory is no part of a smaller one.
fn one_plan_through_counts<T: Scalar>(kinds: &[Kind], tolerance: f64) {
    let (cpu, gpu) = (Session::cpu(1), Session::gpu());
    for &kind in kinds {
        let o = options(WFMM_METHOD_FMM, tolerance, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0);
        let mut plan = Plan::<T>::new(&gpu, &as_arrays::<T>(&o));
        for (n, m) in [(2500, 1100), (40, 1500), (1, 1), (3, 2600), (1500, 2), (700, 700), (700, 700), (2500, 1100)] {
            let c = case("cube", kind, n, m, 1.0).rounded();
            let want = reference(&cpu, &c, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
            fill(&mut plan, &c);
            let error = relative_l2(&field(&mut plan, &c), &want.main);
            let what = format!("{kind:?} {n} and {m}: {}", plan.recipe());
            assert_eq!(plan.report().method, WFMM_METHOD_FMM, "{what}");
            assert!(error <= tolerance, "{what}: {error:.1e}");
        }
    }
}

#[test]
fn other_counts_in_one_plan() {
    let runs: [(&[_], _); 2] = [(&[], "fmm_cluster_finish_f64"), (&[AMPERE], "fmm_small_lists")];
    let kinds = [Kind::Segments, Kind::Particles, Kind::Charges];
    under("other_counts_in_one_plan", &runs, 24, || one_plan_through_counts::<f64>(&kinds, 1e-4));
}

#[test]
fn other_counts_in_one_plan_in_single_precision() {
    let runs: [(&[_], _); 1] = [(&[order("3")], "fmm_cluster_finish_f32")];
    let kinds = [Kind::Particles, Kind::Charges];
    under("other_counts_in_one_plan_in_single_precision", &runs, 16, || one_plan_through_counts::<f32>(&kinds, 1e-3));
}
