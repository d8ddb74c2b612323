use super::super::lists;
use super::super::sources::*;
use super::*;
use crate::backend::cpu::images::Periods;
use crate::math::regularization::Part;
use crate::options::{Method, Regularization as R};
use crate::simd::Real;

pub fn rng(seed: u64) -> impl FnMut() -> f64 {
    let mut s = seed;
    move || {
        s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((s >> 11) as f64) / (1u64 << 53) as f64
    }
}

fn error<T: Real>(
    method: Method,
    n: usize,
    tol: f64,
    gradient: bool,
    reg: (R, R),
    core: f64,
    segs: bool,
) -> (f64, f64, Recipe) {
    let mut r = rng(7);
    let mut src = VortexSources::<T>::new(reg.0, reg.1);
    let mut p = || std::array::from_fn(|_| (r() as f32) as f64);
    let particles = (0..if segs { 0 } else { n })
        .map(|_| Particle { x: p(), strength: p().map(|v: f64| 2.0 * v - 1.0), core })
        .collect();
    let segments = (0..if segs { n } else { 0 })
        .map(|_| {
            let a: [f64; 3] = p();
            let d: [f64; 3] = p();
            Segment {
                p1: a,
                p2: std::array::from_fn(|i| (a[i] + 0.05 * (d[i] - 0.5)) as f32 as f64),
                circulation: 1.0,
                core,
            }
        })
        .collect();
    let targets: Vec<[f64; 3]> = (0..n).map(|_| p()).collect();
    src.set_elements(segments, particles, near::Digits::default());
    let mut fmm = Fmm::<T, 3>::default();
    let request = Request { gradient, ..Request::new(method, tol) };
    fmm.prepare(&mut src, &targets, Changes { sources: true, strengths: true, targets: true }, request, false);
    let mut main = vec![T::ZERO; 3 * n];
    let mut grad = vec![T::ZERO; 9 * n];
    fmm.evaluate(
        &mut src,
        &mut Sink {
            main: &mut main,
            gradient: gradient.then_some(&mut grad[..]),
            main_factor: 1.0,
            per_length: 1.0,
            accumulate: false,
        },
    );
    let m = n.min(300);
    let mut at = super::near::Points::<T>::default();
    targets[..m].iter().for_each(|&x| at.push(x));
    let mut out = vec![T::ZERO; 12 * m];
    let mut rows: Vec<&mut [T]> = out.chunks_exact_mut(m).take(if gradient { 12 } else { 3 }).collect();
    src.near(Part::Regularized, &[0..n as u32], &at, &mut rows);
    let (mut e, mut u, mut eg, mut ug) = (0.0, 0.0, 0.0, 0.0);
    for k in 0..m {
        for i in 0..3 {
            let x = out[i * m + k].f64();
            e += (main[3 * k + i].f64() - x).powi(2);
            u += x * x;
        }
        for i in 0..9 {
            let x = out[(3 + i) * m + k].f64();
            eg += (grad[9 * k + i].f64() - x).powi(2);
            ug += x * x;
        }
    }
    ((e / u).sqrt(), (eg / ug).sqrt(), fmm.recipe)
}

/// What AUTO takes for n sources and m targets in a cube, with costs that do not depend on this machine.
fn chosen(n: usize, m: usize, tolerance: f64, method: Method, periods: Option<Periods>) -> Recipe {
    let mut r = rng(3);
    let mut p = || std::array::from_fn(|_| r());
    let particles = (0..n).map(|_| Particle { x: p(), strength: p().map(|v: f64| 2.0 * v - 1.0), core: 0.0 }).collect();
    let targets: Vec<[f64; 3]> = (0..m).map(|_| p()).collect();
    let mut sources = VortexSources::<f64>::new(R::None, R::None);
    sources.set_elements(vec![], particles, near::Digits::default());
    let mut fmm = Fmm::<f64, 3>::default();
    let request = Request { reproducible: true, periods, ..Request::new(method, tolerance) };
    fmm.prepare(&mut sources, &targets, Changes { sources: true, strengths: true, targets: true }, request, false);
    fmm.recipe
}

/// Few targets of many sources, at a low accuracy, are the treecode's; as many targets as sources are the FMM's.
#[test]
fn auto_takes_the_cheaper_scheme() {
    for (n, m, tolerance, scheme) in [
        (200_000, 1500, 1e-2, Scheme::Treecode),
        (200_000, 4000, 1e-2, Scheme::Treecode),
        (100_000, 100_000, 1e-4, Scheme::Fmm),
        (100_000, 100_000, 1e-8, Scheme::Fmm),
    ] {
        let auto = chosen(n, m, tolerance, Method::Auto, None);
        let other = if scheme == Scheme::Fmm { Method::Treecode } else { Method::Fmm };
        let other = chosen(n, m, tolerance, other, None);
        let what = format!("{n} sources, {m} targets, {tolerance:e}: {:.4} and {:.4}", auto.predicted, other.predicted);
        assert_eq!(auto.scheme, scheme, "{what}");
        assert!(auto.predicted <= other.predicted, "{what}");
    }
}

/// Images act through local expansions: with periods AUTO takes the FMM where the treecode is cheaper without them.
#[test]
fn auto_takes_no_treecode_with_periods() {
    let periods = Periods { period: [1.0, 1.0, 0.0], center: [0.5; 3] };
    let of = |periods| chosen(50_000, 400, 1e-2, Method::Auto, periods);
    let (open, periodic) = (of(None), of(Some(periods)));
    assert_eq!((open.scheme, periodic.scheme), (Scheme::Treecode, Scheme::Fmm));
    assert!(periodic.far_pairs > 0 && periodic.order > 0, "{periodic:?}");
}

/// A fast sum is judged by the fewest targets; one that takes longer than the direct sum by a tenth of all targets and more.
#[test]
fn judges_are_many_where_expansions_save_little() {
    let fast = chosen(100_000, 100_000, 1e-3, Method::Fmm, None);
    assert!(fast.predicted < 0.1 * fast.direct && fast.judges == statistics::JUDGES, "{fast:?}");
    let slow = chosen(3000, 3000, 1e-10, Method::Fmm, None);
    assert!(slow.predicted > slow.direct && slow.judges >= 300, "{slow:?}");
}

/// The search for leaves makes lists for the sampled targets' cells alone.
#[test]
fn lists_of_some_cells_are_those_among_all() {
    let mut r = rng(5);
    let mut p = || std::array::from_fn(|_| r());
    let particles = (0..4000).map(|_| Particle { x: p(), strength: p(), core: 0.0 }).collect();
    let targets: Vec<[f64; 3]> = (0..3000).map(|_| p()).collect();
    let mut sources = VortexSources::<f64>::new(R::None, R::None);
    sources.set_elements(vec![], particles, near::Digits::default());
    let mut fmm = Fmm::<f64, 3>::default();
    let request = Request { leaf_capacity: 20, reproducible: true, ..Request::new(Method::Fmm, 1e-4) };
    fmm.prepare(&mut sources, &targets, Changes { sources: true, strengths: true, targets: true }, request, false);
    let Prepared { trees, statistics, cost, .. } = fmm.prepared.as_ref().unwrap();
    let cells = &statistics.source_cells;
    for leaves in [[0, 0], [100, 150]] {
        let rules = lists::Rules {
            scheme: Scheme::Fmm,
            sources: &trees.source,
            targets: &trees.target,
            admission: &choice::admission_of::<f64>(Scheme::Fmm, 3, &trees.source, cells, statistics, request),
            cost,
            leaves,
            cores: &crate::backend::cpu::cores::NoCores,
            cores_at_target: [f64::INFINITY; 2],
            shifts: &trees.images.shifts,
        };
        let all = lists::build(&rules, &(0..trees.target.cells.len() as u32).collect::<Vec<_>>());
        let mut some: Vec<u32> = (0..3000).step_by(611).flat_map(|t| trees.chain(t)).map(|c| c as u32).collect();
        some.sort_unstable();
        some.dedup();
        assert!(some.len() > 10 && some.len() < all.len() / 4);
        for (list, &c) in lists::build(&rules, &some).iter().zip(&some) {
            assert_eq!(format!("{list:?}"), format!("{:?}", all[c as usize]), "cell {c}, leaves of {leaves:?}");
        }
    }
}

/// Eight targets of 1,200 are where the wide cores of all particles, which crowd towards one position in many cells, just begin to matter:
/// a sample sees none of them, and what each cell may leave out adds up.
#[test]
fn cores_of_many_cells_do_not_add_up_at_few_targets() {
    const FEW: usize = 8;
    let mut r = rng(13);
    let mut around = |radius: &dyn Fn(f64) -> f64| -> [f64; 3] {
        let v = [0; 3].map(|_| 2.0 * r() - 1.0);
        let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let radius = radius(r()) / length;
        v.map(|v| v * radius)
    };
    let crowd = |u: f64| 0.1 * 10f64.powf(-2.0 * u);
    let particle = |x| Particle { x, strength: [1.0, 0.3, 0.0], core: 0.18 };
    let particles: Vec<Particle> = (0..1000).map(|_| particle(around(&crowd))).collect();
    let mut targets: Vec<[f64; 3]> = (0..1200 - FEW).map(|_| around(&crowd)).collect();
    targets.extend((0..FEW).map(|_| around(&|u| 0.7 + 0.2 * u)));
    let m = targets.len();
    let mut sources = VortexSources::<f64>::new(R::None, R::GaussErf);
    sources.set_elements(vec![], particles, near::Digits::default());
    let mut fmm = Fmm::<f64, 3>::default();
    let request = Request { leaf_capacity: 6, reproducible: true, ..Request::new(Method::Fmm, 8e-5) };
    let changes = Changes { sources: true, strengths: true, targets: true };
    fmm.prepare(&mut sources, &targets, changes, request, false);
    let mut found = vec![0.0; 3 * m];
    let sink = &mut Sink { main: &mut found, gradient: None, main_factor: 1.0, per_length: 1.0, accumulate: false };
    fmm.evaluate(&mut sources, sink);
    let exact = sources.exact(&targets, false);
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let mean = norm(&exact) / (m as f64).sqrt();
    let wrong: Vec<f64> = (0..3 * m).map(|k| found[k] - exact[k % 3 * m + k / 3]).collect();
    for wrong in wrong.chunks(3).rev().take(FEW) {
        assert!(norm(wrong) < 0.2 * (m as f64).sqrt() * 8e-5 * mean, "{:.2e} {:?}", norm(wrong) / mean, fmm.recipe);
    }
}

#[test]
fn fmm_meets_its_tolerance() {
    meets_its_tolerance(Method::Fmm);
}

#[test]
fn treecode_meets_its_tolerance() {
    meets_its_tolerance(Method::Treecode);
}

fn meets_its_tolerance(method: Method) {
    for tol in [1e-2, 1e-4, 1e-6, 1e-8, 1e-10] {
        for (name, n, regs, core, segments) in [
            ("particles", 4000, (R::None, R::None), 0.0, false),
            ("segments", 2000, (R::Vatistas, R::None), 0.002, true),
            ("gauss", 4000, (R::None, R::GaussErf), 0.05, false),
        ] {
            let (e, g, r) = error::<f64>(method, n, tol, true, regs, core, segments);
            assert!(e <= tol && g <= 30.0 * tol, "f64 {name} at {tol:e}: {e:.2e}, gradient {g:.2e}, {r:?}");
        }
    }
    for tol in [1e-2, 1e-4, 1e-5] {
        let (e, _, r) = error::<f32>(method, 4000, tol, false, (R::None, R::None), 0.0, false);
        assert!(e <= tol, "f32 at {tol:e}: {e:.2e}, {r:?}");
    }
}
