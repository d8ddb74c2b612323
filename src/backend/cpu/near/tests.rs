//! Every kernel on every instruction set against the oracle.

use super::segments::beside;
use super::*;
use crate::math::biot_savart::{self as oracle, Induced, Vec3, norm, sub};
use Regularization::*;

const PARTICLES: [Regularization; 7] = [None, GaussErf, Exponential, Compact, Rosenhead, Winckelmans, Polynomial];
const SEGMENTS: [Regularization; 6] = [None, Rankine, LambOseen, Vatistas, Scully, Offset];
const PARTS: [Part; 3] = [Part::Regularized, Part::Singular, Part::Correction];

struct Sequence(u64);
impl Sequence {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    fn vector(&mut self) -> Vec3 {
        [self.next(), self.next(), self.next()]
    }
}

/// A problem in the precision of `T`: positions shared by all kernels, a tenth of the cores zero, some targets on sources.
struct Problem<T> {
    positions: Vec<Vec3>,
    ends: Vec<Vec3>,
    strengths: Vec<Vec3>,
    cores: Vec<f64>,
    at: Vec<Vec3>,
    targets: Points<T>,
}

impl<T: Real> Problem<T> {
    fn new(n: usize, m: usize, seed: u64) -> Self {
        let mut seq = Sequence(seed);
        let round = |v: Vec3| v.map(|x| T::of(x).f64());
        let mut vectors = |n: usize| (0..n).map(|_| round(seq.vector())).collect::<Vec<_>>();
        let (positions, ends, strengths) = (vectors(n), vectors(n), vectors(n));
        let mut at = vectors(m);
        for (i, x) in at.iter_mut().enumerate() {
            if n > 0 && i % 5 == 3 {
                *x = if i % 2 == 0 { positions[i % n] } else { ends[i % n] };
            }
        }
        // Widths from far below to far above the distances.
        let cores = (0..n).map(|i| if i % 10 == 7 { 0.0 } else { T::of(10f64.powf(-2.5 + 3.0 * seq.next())).f64() });
        let cores = cores.collect();
        let mut targets = Points::with_capacity(m);
        at.iter().for_each(|x| targets.push(*x));
        Problem { positions, ends, strengths, cores, at, targets }
    }
}

fn flat(u: &Induced) -> [f64; 12] {
    std::array::from_fn(|i| if i < 3 { u.velocity[i] } else { u.gradient[(i - 3) / 3][(i - 3) % 3] })
}

/// Compares `got` with the oracle's sum over `sources`; the tolerance is relative to the sum of what was added up, where a
/// correction counts as its singular kernel, and `condition` tells how much a rounding of the positions changes a pair.
fn compare<T: Real>(
    got: &[Vec<T>],
    at: &[Vec3],
    sources: &[usize],
    pair: impl Fn(Vec3, usize, Part) -> Induced,
    part: Part,
    condition: impl Fn(Vec3, usize) -> f64,
    what: &str,
) {
    let tolerance = if T::IS_F64 { 2e-15 } else { 8e-7 };
    for (t, x) in at.iter().enumerate() {
        let (mut want, mut scale) = ([0.0; 12], [0.0; 2]);
        for &j in sources {
            let u = flat(&pair(*x, j, part));
            (0..12).for_each(|i| want[i] += u[i]);
            let sizes = |u: [f64; 12]| [norm([u[0], u[1], u[2]]), u[3..].iter().map(|g| g * g).sum::<f64>().sqrt()];
            let (of_pair, singular) = (sizes(u), sizes(flat(&pair(*x, j, Part::Singular))));
            for k in 0..2 {
                let size = if part == Part::Correction { of_pair[k].max(singular[k]) } else { of_pair[k] };
                scale[k] += size * condition(*x, j);
            }
        }
        for (i, got) in got.iter().enumerate() {
            let scale = scale[(i > 2) as usize] * 8.0;
            let error = (got[t].f64() - want[i]).abs();
            assert!(
                error <= tolerance * scale,
                "{what} target {t} component {i}: {} against {}, {:.1e} of {scale:.1e}",
                got[t].f64(),
                want[i],
                error / scale
            );
        }
    }
}

fn zeros<T: Real>(n: usize, m: usize) -> Vec<Vec<T>> {
    vec![vec![T::ZERO; m]; n]
}

/// Ragged ranges that leave some sources out.
fn some_ranges(n: usize) -> Vec<Range<u32>> {
    let n = n as u32;
    vec![0..n / 3, n / 3..n / 3, (n / 2).min(n)..n]
}

fn listed(ranges: &[Range<u32>]) -> Vec<usize> {
    ranges.iter().flat_map(|r| r.start as usize..r.end as usize).collect()
}

fn run_particles<T: Real>(arch: pulp::Arch, n: usize, m: usize, components: usize) {
    let p = Problem::<T>::new(n, m, (n * 1000 + m) as u64);
    let ranges = some_ranges(n);
    for reg in PARTICLES {
        let mut sources = ParticleSources::<T>::new(reg, false);
        (0..n).for_each(|j| sources.push(p.positions[j], p.strengths[j], p.cores[j]));
        for part in PARTS {
            let mut out = zeros::<T>(components, m);
            let mut view: Vec<&mut [T]> = out.iter_mut().map(|v| &mut v[..]).collect();
            particles_with(arch, part, &sources, &ranges, &p.targets, 0..m, &mut view);
            let pair = |x, j: usize, part| oracle::particle(reg, part, x, p.positions[j], p.strengths[j], p.cores[j]);
            let what = format!("{arch:?} {reg:?} {part:?} f64={} {n}x{m}", T::IS_F64);
            compare(&out, &p.at, &listed(&ranges), pair, part, |_, _| 1.0, &what);
        }
    }
}

fn run_segments<T: Real>(arch: pulp::Arch, n: usize, m: usize, components: usize) {
    let p = Problem::<T>::new(n, m, (n * 1000 + m) as u64);
    let ranges = some_ranges(n);
    for reg in SEGMENTS {
        let mut sources = SegmentSources::<T>::new(reg, Digits::default());
        (0..n).for_each(|j| sources.push(p.positions[j], p.ends[j], p.strengths[j][0], p.cores[j]));
        for part in PARTS {
            let mut out = zeros::<T>(components, m);
            let mut view: Vec<&mut [T]> = out.iter_mut().map(|v| &mut v[..]).collect();
            segments_with(arch, part, &sources, &ranges, &p.targets, 0..m, &mut view);
            let pair = |x, j: usize, part| {
                oracle::segment(reg, part, x, p.positions[j], p.ends[j], p.strengths[j][0], p.cores[j])
            };
            // A relative rounding of x-P1 changes C by r/ρ times as much; beside the segment it is not let to.
            let condition = |x: Vec3, j: usize| {
                let (l, r1, r2) = (sub(p.ends[j], p.positions[j]), sub(x, p.positions[j]), sub(x, p.ends[j]));
                let times = norm(l) * norm(r1).min(norm(r2)) / norm(oracle::cross(l, r1)).max(1e-30);
                1.0 + if oracle::dot(r1, r2) < 0.0 { times.min(1.0 / beside::<T>()) } else { times }
            };
            let what = format!("{arch:?} {reg:?} {part:?} f64={} {n}x{m}", T::IS_F64);
            compare(&out, &p.at, &listed(&ranges), pair, part, condition, &what);
        }
    }
}

/// Corrections at targets on the extension of a segment, where the products of its kernel are exactly zero.
fn run_extensions<T: Real>(arch: pulp::Arch) {
    let (p1, p2) = ([0.25, 0.125, 0.5], [0.3125, 0.25, 0.75]);
    let mut targets = Points::with_capacity(9);
    let at: Vec<Vec3> = [-1.0, 2.0, 3.0, -2.0, 2.5, -0.5, 1.0, 0.0, 0.5]
        .into_iter()
        .map(|k| std::array::from_fn(|i| p1[i] + k * (p2[i] - p1[i])))
        .collect();
    at.iter().for_each(|x| targets.push(*x));
    for reg in SEGMENTS {
        let mut sources = SegmentSources::<T>::new(reg, Digits::default());
        sources.push(p1, p2, 2.0, 0.1);
        let mut out = zeros::<T>(12, at.len());
        let mut view: Vec<&mut [T]> = out.iter_mut().map(|v| &mut v[..]).collect();
        segments_with(arch, Part::Correction, &sources, &[0..1], &targets, 0..at.len(), &mut view);
        let pair = |x, _, part| oracle::segment(reg, part, x, p1, p2, 2.0, 0.1);
        let what = format!("{arch:?} {reg:?} f64={} on the line", T::IS_F64);
        compare(&out, &at, &[0], pair, Part::Correction, |_, _| 1.0, &what);
    }
}

fn run_charges<T: Real>(arch: pulp::Arch, n: usize, m: usize, components: usize) {
    let p = Problem::<T>::new(n, m, (n * 1000 + m) as u64);
    let mut sources = ChargeSources::<T>::new(false);
    (0..n).for_each(|j| sources.push(p.positions[j], p.strengths[j][0]));
    let mut out = zeros::<T>(components, m);
    let mut view: Vec<&mut [T]> = out.iter_mut().map(|v| &mut v[..]).collect();
    charges_with(arch, &sources, &[0..n as u32], &p.targets, 0..m, &mut view);
    let tolerance = if T::IS_F64 { 1e-14 } else { 4e-6 };
    for (t, x) in p.at.iter().enumerate() {
        let (mut want, mut scale) = ([0.0; 4], [0.0; 4]);
        for j in 0..n {
            let a = oracle::charge(*x, p.positions[j], p.strengths[j][0]);
            for (i, v) in [a.potential, a.gradient[0], a.gradient[1], a.gradient[2]].into_iter().enumerate() {
                want[i] += v;
                scale[i] += if i == 0 { v.abs() } else { norm(a.gradient) };
            }
        }
        for (i, got) in out.iter().enumerate() {
            assert!((got[t].f64() - want[i]).abs() <= tolerance * scale[i], "{arch:?} {n}x{m} {t} {i}");
        }
    }
}

const COUNTS: [(usize, usize); 8] = [(0, 9), (1, 1), (7, 8), (8, 7), (9, 33), (33, 16), (300, 17), (40, 130)];

fn all_counts(run: impl Fn(pulp::Arch, usize, usize)) {
    let sets = simd::instruction_sets();
    assert!(!sets.is_empty());
    for arch in sets {
        COUNTS.iter().for_each(|&(n, m)| run(arch, n, m));
    }
}

#[test]
fn particles_f64_are_those_of_the_oracle() {
    all_counts(|arch, n, m| run_particles::<f64>(arch, n, m, 3));
}
#[test]
fn particles_f32_are_those_of_the_oracle() {
    all_counts(|arch, n, m| run_particles::<f32>(arch, n, m, 3));
}
#[test]
fn particle_gradients_f64_are_those_of_the_oracle() {
    all_counts(|arch, n, m| run_particles::<f64>(arch, n, m, 12));
}
#[test]
fn particle_gradients_f32_are_those_of_the_oracle() {
    all_counts(|arch, n, m| run_particles::<f32>(arch, n, m, 12));
}
#[test]
fn segments_f64_are_those_of_the_oracle() {
    all_counts(|arch, n, m| run_segments::<f64>(arch, n, m, 3));
}
#[test]
fn segments_f32_are_those_of_the_oracle() {
    all_counts(|arch, n, m| run_segments::<f32>(arch, n, m, 3));
}
#[test]
fn segment_gradients_f64_are_those_of_the_oracle() {
    all_counts(|arch, n, m| run_segments::<f64>(arch, n, m, 12));
}
#[test]
fn segment_gradients_f32_are_those_of_the_oracle() {
    all_counts(|arch, n, m| run_segments::<f32>(arch, n, m, 12));
}
#[test]
fn corrections_on_the_extension_of_a_segment_are_those_of_the_oracle() {
    for arch in simd::instruction_sets() {
        run_extensions::<f64>(arch);
        run_extensions::<f32>(arch);
    }
}
#[test]
fn charges_are_those_of_the_oracle() {
    all_counts(|arch, n, m| {
        for components in [1, 4] {
            run_charges::<f64>(arch, n, m, components);
            run_charges::<f32>(arch, n, m, components);
        }
    });
}

/// Sums at `at` of one source, on the best instruction set.
fn one_segment<T: Real>(
    reg: Regularization,
    p1: Vec3,
    p2: Vec3,
    core: f64,
    at: &[Vec3],
    components: usize,
) -> Vec<Vec<T>> {
    let mut sources = SegmentSources::<T>::new(reg, Digits::default());
    sources.push(p1, p2, 1.5, core);
    let mut targets = Points::with_capacity(at.len());
    at.iter().for_each(|x| targets.push(*x));
    let mut out = zeros::<T>(components, at.len());
    let mut view: Vec<&mut [T]> = out.iter_mut().map(|v| &mut v[..]).collect();
    segments(Part::Regularized, &sources, &[0..1], &targets, 0..at.len(), &mut view);
    out
}

fn nothing_on_the_line<T: Real>() {
    let (p1, p2) = ([0.25, 0.5, -1.0], [1.25, 2.5, 3.0]);
    let at: Vec<Vec3> =
        [0.0, 1.0, 0.5, -1.0, 2.0].iter().map(|k| std::array::from_fn(|i| p1[i] + k * (p2[i] - p1[i]))).collect();
    for reg in SEGMENTS {
        for core in [0.0, 0.1] {
            for components in [3, 12] {
                let out = one_segment::<T>(reg, p1, p2, core, &at, components);
                assert!(out.iter().flatten().all(|u| u.f64() == 0.0), "{reg:?} {core} {out:?}");
                let out = one_segment::<T>(reg, p1, p1, core, &[[0.3, 0.2, 0.1]], components);
                assert!(out.iter().flatten().all(|u| u.f64() == 0.0), "{reg:?} {core} {out:?}");
            }
        }
    }
}

#[test]
fn no_value_is_exactly_zero() {
    nothing_on_the_line::<f64>();
    nothing_on_the_line::<f32>();
}

#[test]
fn digits_are_kept_near_the_line_and_its_extension() {
    // Positions whose differences are exact, so that nothing but the kernel can lose digits.
    let (p1, p2) = ([0.0, 0.0, -0.5], [0.0, 0.0, 0.5]);
    let at: Vec<Vec3> =
        (1..30).flat_map(|i| [0.0, 0.25, 0.375, 0.75, 2.0].map(|z| [(-i as f64).exp2(), 0.0, z])).collect();
    let (a, b) = (one_segment::<f64>(None, p1, p2, 0.0, &at, 12), one_segment::<f32>(None, p1, p2, 0.0, &at, 12));
    for (t, x) in at.iter().enumerate() {
        let u = oracle::segment(None, Part::Regularized, *x, p1, p2, 1.5, 0.0);
        assert!((a[1][t] / u.velocity[1] - 1.0).abs() < 1e-15 * 4.0, "{x:?} {}", a[1][t]);
        assert!((b[1][t] as f64 / u.velocity[1] - 1.0).abs() < 1e-6, "{x:?} {}", b[1][t]);
        assert!((a[4 + 2][t] / u.gradient[1][0] - 1.0).abs() < 1e-12, "{x:?} {}", a[6][t]);
    }
}

/// Targets from 1e-1 to 1e-10 of its length, or the last place, beside a segment that points anywhere: what the numbers handed over say, not what
/// is left of their differences.
fn digits_beside<T: Real>(tolerance: f64) {
    let mut seq = Sequence(3);
    let round = |v: Vec3| v.map(|x| T::of(x).f64());
    for reg in SEGMENTS {
        for k in 0..300 {
            let (p1, p2) = (round(seq.vector()), round(seq.vector()));
            let (t, away, side) = (0.05 + 0.9 * seq.next(), 10f64.powf(-1.0 - 9.0 * seq.next()), seq.vector());
            let x = round(std::array::from_fn(|i| p1[i] + t * (p2[i] - p1[i]) + away * (side[i] - 0.5)));
            let core = if k % 3 == 0 { 0.0 } else { T::of(away * 10f64.powf(2.0 * seq.next() - 1.0)).f64() };
            let got = one_segment::<T>(reg, p1, p2, core, &[x], 12);
            let want = flat(&oracle::segment(reg, Part::Regularized, x, p1, p2, 1.5, core));
            for part in [0..3, 3..12] {
                let size = want[part.clone()].iter().map(|v| v * v).sum::<f64>().sqrt();
                let wrong = part.map(|i| (got[i][0].f64() - want[i]).powi(2)).sum::<f64>().sqrt();
                assert!(wrong <= tolerance * size, "{reg:?} {k}: {:.1e} at {away:.1e}, core {core:e}", wrong / size);
            }
        }
    }
}

#[test]
fn digits_are_kept_beside_a_segment() {
    digits_beside::<f64>(2e-12);
    digits_beside::<f32>(6e-6);
}

/// Positions in double precision, so close that single precision would not tell them apart, computed in single precision.
#[test]
fn split_positions_keep_their_digits() {
    let mut seq = Sequence(11);
    let corner = seq.vector();
    let mut close = |size: f64| -> Vec3 {
        let v = seq.vector();
        std::array::from_fn(|i| corner[i] + size * v[i])
    };
    for size in [1e-2, 1e-5, 1e-7, 1e-9] {
        let (p1, p2, x) = (close(size), close(size), close(size));
        let mut targets = Points::<f32>::with_capacity(1);
        targets.push(x);
        // A segment of a billionth of the box has no gradient in single precision.
        for reg in SEGMENTS.into_iter().filter(|_| size > 1e-8) {
            let mut sources = SegmentSources::<f32>::new(reg, Digits { splits: true, step: 0.0 });
            sources.push(p1, p2, 1.5, 0.3 * size);
            let want = flat(&oracle::segment(reg, Part::Regularized, x, p1, p2, 1.5, 0.3 * size));
            let run = |arch, out: &mut [&mut [f32]]| {
                segments_with(arch, Part::Regularized, &sources, &[0..1], &targets, 0..1, out)
            };
            near_to(&want, run);
        }
        for reg in PARTICLES {
            let mut sources = ParticleSources::<f32>::new(reg, true);
            sources.push(p1, [1.0, -0.5, 0.25], 0.3 * size);
            let want = flat(&oracle::particle(reg, Part::Regularized, x, p1, [1.0, -0.5, 0.25], 0.3 * size));
            let run = |arch, out: &mut [&mut [f32]]| {
                particles_with(arch, Part::Regularized, &sources, &[0..1], &targets, 0..1, out)
            };
            near_to(&want, run);
        }
        let mut sources = ChargeSources::<f32>::new(true);
        sources.push(p1, 1.5);
        let a = oracle::charge(x, p1, 1.5);
        let want = [a.potential, a.gradient[0], a.gradient[1], a.gradient[2]];
        near_to(&want, |arch, out: &mut [&mut [f32]]| charges_with(arch, &sources, &[0..1], &targets, 0..1, out));
    }
}

/// Every instruction set gives `want`, main field and gradient, to six digits.
fn near_to(want: &[f64], run: impl Fn(pulp::Arch, &mut [&mut [f32]])) {
    let main = if want.len() == 4 { 1 } else { 3 };
    for arch in simd::instruction_sets() {
        let mut out = zeros::<f32>(want.len(), 1);
        let mut view: Vec<&mut [f32]> = out.iter_mut().map(|v| &mut v[..]).collect();
        run(arch, &mut view);
        for part in [0..main, main..want.len()] {
            let size = want[part.clone()].iter().map(|v| v * v).sum::<f64>().sqrt();
            let wrong = part.map(|i| (out[i][0] as f64 - want[i]).powi(2)).sum::<f64>().sqrt();
            assert!(wrong <= 2e-6 * size, "{arch:?} {:.1e}", wrong / size);
        }
    }
}

#[test]
fn small_distances_do_not_cancel() {
    // At q = r/c = 2^-i the velocity of a smooth core is a × d S(0), to its last digits.
    for reg in [GaussErf, Exponential] {
        let mut wide = ParticleSources::<f32>::new(reg, false);
        wide.push([0.0; 3], [0.0, 0.0, 1.0], 0.5);
        let mut targets = Points::with_capacity(20);
        (1..20).for_each(|i| targets.push([(-i as f64).exp2(), 0.0, 0.0]));
        let mut out = zeros::<f32>(3, 19);
        let mut view: Vec<&mut [f32]> = out.iter_mut().map(|v| &mut v[..]).collect();
        particles(Part::Regularized, &wide, &[0..1], &targets, 0..19, &mut view);
        for i in 0..19 {
            let x = [targets.x[i] as f64, 0.0, 0.0];
            let u = oracle::particle(reg, Part::Regularized, x, [0.0; 3], [0.0, 0.0, 1.0], 0.5);
            assert!((out[1][i] as f64 / u.velocity[1] - 1.0).abs() < 1e-6, "{reg:?} {i}");
        }
    }
}

#[test]
fn single_precision_keeps_its_digits_in_long_sums() {
    // All strengths alike: partial sums grow a millionfold.
    let n = 200_000;
    let p = Problem::<f32>::new(n, 9, 5);
    let (mut a, mut b) = (ParticleSources::<f32>::new(None, false), ParticleSources::<f64>::new(None, false));
    for j in 0..n {
        a.push(p.positions[j], [0.0, 0.0, 1.0], 0.0);
        b.push(p.positions[j], [0.0, 0.0, 1.0], 0.0);
    }
    let mut targets = Points::<f64>::with_capacity(9);
    p.at.iter().for_each(|x| targets.push(*x));
    let (mut x, mut y) = (zeros::<f32>(3, 9), zeros::<f64>(3, 9));
    let all = [0..n as u32];
    let mut view: Vec<&mut [f32]> = x.iter_mut().map(|v| &mut v[..]).collect();
    particles(Part::Regularized, &a, &all, &p.targets, 0..9, &mut view);
    let mut view: Vec<&mut [f64]> = y.iter_mut().map(|v| &mut v[..]).collect();
    particles(Part::Regularized, &b, &all, &targets, 0..9, &mut view);
    let (mut error, mut square) = (0.0, 0.0);
    for i in 0..3 {
        for t in 0..9 {
            error += (x[i][t] as f64 - y[i][t]).powi(2);
            square += y[i][t].powi(2);
        }
    }
    assert!((error / square).sqrt() < 1e-6, "{:e}", (error / square).sqrt());
}

/// Charges in pairs of opposite signs, the positive ones first: partial sums grow to 2,000 charges, and nearly all of that cancels.
#[test]
fn double_precision_keeps_its_digits_where_what_cancels_is_far_apart() {
    let (pairs, m, mut seq) = (2000, 16, Sequence(3));
    let positive: Vec<Vec3> = (0..pairs).map(|_| seq.vector()).collect();
    let negative: Vec<Vec3> = positive.iter().map(|x| x.map(|v| v + 0.01 * (seq.next() - 0.5))).collect();
    let at: Vec<Vec3> = (0..m).map(|_| seq.vector().map(|v| v + 1.2)).collect();
    let mut sources = ChargeSources::<f64>::new(false);
    positive.iter().for_each(|&x| sources.push(x, 1.0));
    negative.iter().for_each(|&x| sources.push(x, -1.0));
    let mut targets = Points::with_capacity(m);
    at.iter().for_each(|&x| targets.push(x));
    let of_pair =
        |x, (&a, &b): (&Vec3, &Vec3)| oracle::charge(x, a, 1.0).potential - oracle::charge(x, b, 1.0).potential;
    let want: Vec<f64> =
        at.iter().map(|&x| positive.iter().zip(&negative).map(|pair| of_pair(x, pair)).sum()).collect();
    let size = want.iter().map(|v| v * v).sum::<f64>().sqrt();
    for arch in simd::instruction_sets().into_iter().filter(|&a| simd::has_lanes(a)) {
        let mut out = zeros::<f64>(1, m);
        charges_with(arch, &sources, &[0..2 * pairs as u32], &targets, 0..m, &mut [&mut out[0][..]]);
        let error = out[0].iter().zip(&want).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt() / size;
        assert!(error < 1.5e-12, "{arch:?}: {error:e}");
    }
}

/// Targets nearly in the direction of the strength of a near particle: their field is a small difference of products. In single precision
/// it has few digits, with `Points::close` those of double.
#[test]
fn close_pairs_are_summed_in_double() {
    const NEAR: f64 = 1e-3;
    for (reg, part, splits) in PARTICLES.into_iter().flat_map(|r| PARTS.map(|p| (r, p, p != Part::Singular))) {
        let core = if part == Part::Correction { 3.0 * NEAR } else { 0.5 * NEAR };
        if reg == None && part == Part::Correction {
            continue;
        }
        let mut seq = Sequence(7);
        let round = |v: Vec3| if splits { v } else { v.map(|x| x as f32 as f64) };
        let positions: Vec<Vec3> = (0..300).map(|_| round(seq.vector())).collect();
        let strengths: Vec<Vec3> = (0..300).map(|_| seq.vector().map(|a| (a + 0.1) as f32 as f64)).collect();
        let core = core as f32 as f64;
        let at: Vec<Vec3> = (0..37)
            .map(|k| {
                let (x, a, across) = (positions[7 * k], strengths[7 * k], seq.vector());
                let aside = |i: usize| x[i] + NEAR * (a[i] / norm(a) + 1e-3 * across[i]);
                if k % 5 == 4 { x } else { round(std::array::from_fn(aside)) }
            })
            .collect();
        let mut sources = ParticleSources::<f32>::new(reg, splits);
        (0..300).for_each(|j| sources.push(positions[j], strengths[j], core));
        let mut targets = Points::<f32>::with_capacity(37);
        at.iter().for_each(|x| targets.push(*x));
        let pair = |x, j: usize| flat(&oracle::particle(reg, part, x, positions[j], strengths[j], core));
        let want: Vec<[f64; 12]> = at
            .iter()
            .map(|x| (0..300).map(|j| pair(*x, j)).fold([0.0; 12], |s, u| std::array::from_fn(|i| s[i] + u[i])))
            .collect();
        let worst = |arch, rows: Range<usize>, targets: &Points<f32>| {
            let mut out = zeros::<f32>(if rows.end > 3 { 12 } else { 3 }, 37);
            let mut view: Vec<&mut [f32]> = out.iter_mut().map(|v| &mut v[..]).collect();
            particles_with(arch, part, &sources, &[0..150, 150..300], targets, 0..37, &mut view);
            let one = |t: usize| {
                let wrong = rows.clone().map(|i| (out[i][t] as f64 - want[t][i]).powi(2)).sum::<f64>();
                wrong / rows.clone().map(|i| want[t][i].powi(2)).sum::<f64>()
            };
            // Those on a particle have no close pair.
            (0..37).filter(|k| k % 5 != 4).map(one).fold(0.0, f64::max).sqrt()
        };
        for arch in simd::instruction_sets().into_iter().filter(|&a| simd::has_lanes(a)) {
            let what = format!("{arch:?} {reg:?} {part:?}");
            targets.close = 0.0;
            let single = worst(arch, 0..3, &targets);
            targets.close = 3.0 * NEAR;
            let double = [0..3, 3..12].map(|rows| worst(arch, rows, &targets));
            assert!(double.iter().all(|&e| e < 3e-6), "{what}: {double:?}");
            assert!(single > 3e-6, "{what}: {single:.1e} in single precision as well");
        }
    }
}

/// Points most of which one number holds: with records of both ways the fields have the bits of split ones.
#[test]
fn whole_coordinates_give_the_bits_of_split_ones() {
    let mut seq = Sequence(11);
    let mut place = |is_split: bool| if is_split { seq.vector() } else { seq.vector().map(|x| x as f32 as f64) };
    let sources: Vec<Vec3> = (0..200).map(|k| place(k / 50 == 3)).collect();
    let mut points = |is_split: bool| {
        let mut points = Points::<f32>::with_capacity(37);
        (0..37).for_each(|_| points.push(place(is_split)));
        points.close = 1e-2;
        points
    };
    let (whole, split) = (points(false), points(true));
    let strength = |k: usize| [0.3, -0.2, 0.01 * k as f64];
    let (mut particles, mut charges) = (ParticleSources::new(GaussErf, true), ChargeSources::new(true));
    for (k, &x) in sources.iter().enumerate() {
        particles.push(x, strength(k), 0.1);
        charges.push(x, 1.0);
    }
    let (mut of_particles, mut of_charges) = (particles.clone(), charges.clone());
    of_particles.fill(200, true, |k| (sources[k], strength(k), 0.1));
    of_charges.fill(200, |k| (sources[k], 1.0));
    // Parts of the sources: without those that are split, and with them.
    let parts = [[0..50, 70..150], [0..50, 140..160]];
    for (ranges, targets, serve) in [(&parts[0], &whole, true), (&parts[1], &whole, false), (&parts[0], &split, false)]
    {
        assert_eq!(of_particles.list.serve_alone(ranges, targets, 0..37), serve);
        assert_eq!(of_charges.list.serve_alone(ranges, targets, 0..37), serve);
        assert!(!particles.list.serve_alone(ranges, targets, 0..37));
        for arch in simd::instruction_sets() {
            let field = |rows: usize, sum: &dyn Fn(&mut [&mut [f32]])| {
                let mut out = zeros::<f32>(rows, 37);
                sum(&mut out.iter_mut().map(|v| &mut v[..]).collect::<Vec<_>>());
                out
            };
            for rows in [3, 12] {
                let of = |s: &ParticleSources<f32>| {
                    field(rows, &|out| particles_with(arch, Part::Regularized, s, ranges, targets, 0..37, out))
                };
                assert_eq!(of(&of_particles), of(&particles), "{arch:?} particles");
            }
            let of = |s: &ChargeSources<f32>| field(4, &|out| charges_with(arch, s, ranges, targets, 0..37, out));
            assert_eq!(of(&of_charges), of(&charges), "{arch:?} charges");
        }
    }
}
