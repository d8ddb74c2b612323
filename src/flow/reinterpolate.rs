//! Core spreading makes particles wide: where cores have outgrown `core_limit`, strengths are found anew for narrower ones.
//!
//! Enters: particles before a step. Leaves: the same positions, cores of limit/√2 where they were close to the limit or above it, and strengths
//! a' that carry the same vorticity at all particles: Σ_j a'_j ζ'(x_i - x_j) = Σ_j a_j ζ(x_i - x_j) (Barba, Leonard & Allen 2005;
//! Yokota et al. 2009). Solved by BiCGSTAB with sums over neighbours, without a matrix, wherever the particles lie: in host memory
//! (narrow.rs, neighbours.rs on many ranks) or on a device (device_narrow.rs). Vorticity spreads no farther than there are particles that can carry it; what its tails
//! beyond them had of total strength and impulse is given back to all particles. Not with a plane, through which both may go.

use super::Flow;
use super::device_narrow;
use super::narrow;
use super::step::spreading;
use crate::error::{Error, Result};
use crate::math::biot_savart::Vec3;

/// Iterations of the solver end at this residual, after so many, or after so many that do not help.
const RESIDUAL: f64 = 1e-6;
const ITERATIONS: usize = 100;
const MOST_WITHOUT_GAIN: usize = 12;
/// The residual from which the particles stay as they are.
const UNFIT: f64 = 1e-3;
/// Of the strengths that particles get, with what is given back of tails: the residual from which a warning says so, and that from which the
/// particles stay as they are. It is 2e-4 where vorticity ends inside the particles, 1e-2 where a hundredth of it is left at their
/// edge, 0.14 where it has spread beyond them; 1.5 of a row of particles that hardly touch.
const DOUBTFUL: f64 = 1e-2;
const DISTORTED: f64 = 0.3;
/// Of the limit's square: cores from here on are set back together with those above the limit.
const CLOSE: f64 = 0.75;
/// Of the limit's square: what they are set back to.
const NARROW: f64 = 0.5;
/// How much cores grow, squared, before what did not fit is tried again.
const LATER: f64 = 1.2;
/// The share of a bound from which the largest core itself is compared with it. The sum of its growths, which costs no sweep, differs by
/// rounding, and a flow that was loaded does not have this sum.
const DECIDES: f64 = 1.0 - 1e-9;

/// What is known of spreading cores, and what the last interpolation did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread {
    /// The largest core radius squared to rounding, where it is known.
    pub largest: Option<f64>,
    /// The largest that did not fit, 0 without one.
    pub unfit: f64,
    pub times: i64,
    /// Of the vorticity at the particles, relative; of total strength and impulse what was missing, relative.
    pub residual: f64,
    pub strength: f64,
    pub impulse: f64,
}

impl Spread {
    /// Other particles are there now.
    pub fn forget_cores(&mut self) {
        (self.largest, self.unfit) = (None, 0.0);
    }
}

/// The cores of sums: as they are, or narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    Present,
    Narrow,
}

/// Particles that have cores, and the arithmetic of vectors with three numbers for each, wherever they lie.
pub trait Interpolation {
    type Vector;

    /// Their strengths.
    fn strength(&mut self) -> Result<Self::Vector>;

    /// Σ_j a_j ζ(x_i - x_j) at all of them.
    fn vorticity(&mut self, cores: Cores, a: &Self::Vector) -> Result<Self::Vector>;

    fn zero(&mut self) -> Result<Self::Vector>;

    fn copy(&mut self, a: &Self::Vector) -> Result<Self::Vector>;

    /// y = f y + g x.
    fn combine(&mut self, y: &mut Self::Vector, f: f64, g: f64, x: &Self::Vector) -> Result<()>;

    /// Of all numbers, in an order that does not change.
    fn product(&mut self, a: &Self::Vector, b: &Self::Vector) -> Result<f64>;

    /// The mean of their positions, and how many they are.
    fn middle(&mut self) -> Result<(Vec3, usize)>;

    /// What strengths a lack of theirs, b: Σ b - a, Σ x × (b - a), and Σ |b|, Σ |x||b|; x around `middle`.
    fn lost(&mut self, a: &Self::Vector, middle: Vec3) -> Result<[f64; 8]>;

    /// Σ c and Σ x × c for c = |a| (f + g × x), in columns for each of the six unit factors f, g.
    fn moments(&mut self, a: &Self::Vector, middle: Vec3) -> Result<[[f64; 6]; 6]>;

    /// Adds such c to a.
    fn give_back(&mut self, a: &mut Self::Vector, middle: Vec3, factors: [f64; 6]) -> Result<()>;
}

/// Squared cores close to the limit's square or above it, and what becomes of them.
pub fn set_back(limit2: f64) -> [f64; 2] {
    [CLOSE * limit2, NARROW * limit2]
}

/// How well narrower cores do: residual, and what they lacked of total strength and impulse, all relative.
#[derive(Debug, Clone, Copy)]
pub struct Fit {
    pub residual: f64,
    pub strength: f64,
    pub impulse: f64,
}

/// What was there before cores were narrowed.
pub enum Carried {
    InHost(narrow::Before),
    OnDevice(device_narrow::Before),
}

/// Narrower cores took the place of what was there.
pub struct Narrowed {
    pub before: Carried,
    pub fit: Fit,
    /// The largest core now, squared.
    pub largest: f64,
}

/// What a step that fails puts back.
pub struct Before {
    carried: Carried,
    spread: Spread,
}

impl Flow {
    /// Before a step of dt: narrower cores where they are due. What was there before is kept until the step has succeeded.
    pub(super) fn reinterpolate(&mut self, dt: f64) -> Result<()> {
        let limit2 = self.options.core_limit * self.options.core_limit;
        if limit2 == 0.0 {
            return Ok(());
        }
        let (growth, known, unfit) = (spreading(&self.options) * dt, self.spread.largest, self.spread.unfit);
        let (store, mut tools) = self.tools();
        let bound = limit2.max(LATER * unfit);
        let largest = match known {
            Some(largest) if largest < DECIDES * bound => largest,
            _ => {
                let largest = store.largest_core2(&mut tools)?;
                let session = tools.session;
                session.collective("wfmm_flow_advance", || Ok(session.largest(&[largest])?[0]))?
            }
        };
        if largest <= bound {
            self.spread.largest = Some(largest + growth);
            return Ok(());
        }
        let Some(Narrowed { before, fit, largest: now }) = store.narrow(&mut tools, limit2)? else {
            (self.spread.largest, self.spread.unfit) = (Some(largest + growth), largest);
            return Ok(());
        };
        let spread = Spread {
            largest: Some(now + growth),
            unfit: 0.0,
            times: self.spread.times + 1,
            residual: fit.residual,
            strength: fit.strength,
            impulse: fit.impulse,
        };
        let spread = std::mem::replace(&mut self.spread, spread);
        self.velocities = None;
        self.before = Some(Before { carried: before, spread });
        Ok(())
    }

    /// After a step that did not succeed: as it was before it. An error of this one leaves the flow unusable.
    pub(super) fn take_back(&mut self) -> Result<()> {
        // It was grown by the step.
        self.spread.largest = None;
        if let Some(before) = &mut self.before {
            self.store.take_back(&mut before.carried).map_err(Error::after_writing)?;
            self.spread = Spread { largest: None, ..before.spread };
            self.before = None;
        }
        Ok(())
    }
}

/// Strengths for narrower cores, and how well they do; nothing where they do not fit.
pub fn narrower<I: Interpolation>(particles: &mut I, has_plane: bool) -> Result<Option<(I::Vector, Fit)>> {
    let strength = particles.strength()?;
    let wanted = particles.vorticity(Cores::Present, &strength)?;
    let (mut found, fitted) = solve(particles, &wanted, strength)?;
    let (middle, n) = particles.middle()?;
    let lost = Lost::new(particles, &found, middle)?;
    let (strength, impulse) = lost.parts();
    if fitted.is_nan() || fitted > UNFIT {
        log::warn!("cores of {n} particles are not narrowed: residual {fitted:.1e}, {UNFIT:.0e} is needed");
        return Ok(None);
    }
    let mut residual = fitted;
    if !has_plane {
        lost.give_back(particles, &mut found)?;
        residual = residual_of(particles, &wanted, &found)?;
    }
    let said = format!(
        "residual {residual:.1e}; of the solution {fitted:.1e}, with strength {strength:.1e} and impulse {impulse:.1e} missing"
    );
    if residual.is_nan() || residual > DISTORTED {
        log::warn!("cores of {n} particles are not narrowed: {said}, {DISTORTED} is accepted");
        return Ok(None);
    }
    if residual > DOUBTFUL {
        log::warn!("cores of {n} particles narrowed with too few particles around the vorticity: {said}");
    } else {
        log::info!("cores of {n} particles narrowed: {said}");
    }
    Ok(Some((found, Fit { residual, strength, impulse })))
}

/// How far from `wanted` the vorticity of strengths for narrow cores is, relative.
fn residual_of<I: Interpolation>(particles: &mut I, wanted: &I::Vector, a: &I::Vector) -> Result<f64> {
    let size = particles.product(wanted, wanted)?.sqrt();
    let mut apart = particles.vorticity(Cores::Narrow, a)?;
    particles.combine(&mut apart, -1.0, 1.0, wanted)?;
    let apart = particles.product(&apart, &apart)?.sqrt();
    Ok(if size > 0.0 { apart / size } else { 0.0 })
}

/// What strengths for narrower cores lack of total strength and of Σ x × a, x around the middle of all positions; and the sums of |a|
/// and of |x||a|.
pub struct Lost {
    middle: Vec3,
    /// Total, then moment.
    sums: [f64; 6],
    size: f64,
    moments: f64,
}

impl Lost {
    pub fn new<I: Interpolation>(particles: &mut I, new: &I::Vector, middle: Vec3) -> Result<Self> {
        let [sx, sy, sz, mx, my, mz, size, moments] = particles.lost(new, middle)?;
        Ok(Self { middle, sums: [sx, sy, sz, mx, my, mz], size, moments })
    }

    /// Relative to the sums of magnitudes.
    pub fn parts(&self) -> (f64, f64) {
        let part = |of: &[f64], size: f64| {
            if size > 0.0 { of.iter().map(|x| x * x).sum::<f64>().sqrt() / size } else { 0.0 }
        };
        (part(&self.sums[..3], self.size), part(&self.sums[3..], self.moments))
    }

    /// The least change, weighed by 1/|a|, that makes both what they were: |a| (λ + μ × x) for each particle.
    pub fn give_back<I: Interpolation>(&self, particles: &mut I, a: &mut I::Vector) -> Result<()> {
        let moments = particles.moments(a, self.middle)?;
        let mut equations = [[0.0; 7]; 6];
        for (i, (row, of)) in equations.iter_mut().zip(moments).enumerate() {
            row[..6].copy_from_slice(&of);
            row[6] = self.sums[i];
        }
        particles.give_back(a, self.middle, balanced(equations))
    }
}

/// The same with lengths in units of the particles' radius of gyration: all pivots are of one dimension, that of a strength.
fn balanced(mut equations: [[f64; 7]; 6]) -> [f64; 6] {
    let trace = |from: usize, m: &[[f64; 7]; 6]| (from..from + 3).map(|i| m[i][i]).sum::<f64>();
    let length = (trace(3, &equations) / trace(0, &equations)).sqrt();
    // All at one point: moments are zero in every unit.
    let length = if length > 0.0 && length.is_finite() { length } else { 1.0 };
    for (i, row) in equations.iter_mut().enumerate() {
        row[3..6].iter_mut().for_each(|of_turn| *of_turn /= length);
        if i >= 3 {
            row.iter_mut().for_each(|moment| *moment /= length);
        }
    }
    let mut factors = eliminated(equations);
    factors[3..].iter_mut().for_each(|turn| *turn /= length);
    factors
}

/// The solution of six equations, right sides in the last column; zero for what they do not determine.
fn eliminated(mut m: [[f64; 7]; 6]) -> [f64; 6] {
    let scale = m.iter().enumerate().fold(0.0f64, |s, (i, row)| s.max(row[i].abs()));
    let mut pivots = [None; 6];
    let mut used = [false; 6];
    for column in 0..6 {
        let free = (0..6).filter(|&r| !used[r]);
        let Some(r) = free.max_by(|&a, &b| m[a][column].abs().total_cmp(&m[b][column].abs())) else { break };
        if m[r][column].abs() <= 1e-12 * scale {
            continue;
        }
        (used[r], pivots[column]) = (true, Some(r));
        let pivot = m[r];
        for (_, row) in m.iter_mut().enumerate().filter(|(other, _)| *other != r) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    std::array::from_fn(|column| pivots[column].map_or(0.0, |r: usize| m[r][6] / m[r][column]))
}

/// The best x that BiCGSTAB (van der Vorst 1992) finds for narrow cores that are to carry b, and the residual relative to |b|.
fn solve<I: Interpolation>(system: &mut I, b: &I::Vector, guess: I::Vector) -> Result<(I::Vector, f64)> {
    let size = system.product(b, b)?.sqrt();
    if size == 0.0 {
        return Ok((system.zero()?, 0.0));
    }
    let mut x = guess;
    let mut r = system.vorticity(Cores::Narrow, &x)?;
    system.combine(&mut r, -1.0, 1.0, b)?;
    let shadow = system.copy(&r)?;
    let (mut p, mut v) = (system.zero()?, system.zero()?);
    let (mut rho, mut alpha, mut omega) = (1.0, 1.0, 1.0);
    let (mut best, mut least, mut since) = (system.copy(&x)?, system.product(&r, &r)?.sqrt() / size, 0);
    for _ in 0..ITERATIONS {
        if least <= RESIDUAL || since >= MOST_WITHOUT_GAIN {
            break;
        }
        let next = system.product(&shadow, &r)?;
        let beta = next / rho * (alpha / omega);
        rho = next;
        system.combine(&mut p, 1.0, -omega, &v)?;
        system.combine(&mut p, beta, 1.0, &r)?;
        v = system.vorticity(Cores::Narrow, &p)?;
        alpha = rho / system.product(&shadow, &v)?;
        system.combine(&mut r, 1.0, -alpha, &v)?;
        let t = system.vorticity(Cores::Narrow, &r)?;
        let t2 = system.product(&t, &t)?;
        omega = if t2 > 0.0 { system.product(&t, &r)? / t2 } else { 0.0 };
        system.combine(&mut x, 1.0, alpha, &p)?;
        system.combine(&mut x, 1.0, omega, &r)?;
        system.combine(&mut r, 1.0, -omega, &t)?;
        let residual = system.product(&r, &r)?.sqrt() / size;
        since += 1;
        if residual < least {
            (least, since) = (residual, 0);
            best = system.copy(&x)?;
        }
        // Omega is zero where the first half of the step has left nothing.
        if !residual.is_finite() || rho == 0.0 || omega == 0.0 {
            break;
        }
    }
    Ok((best, least))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equations with a matrix.
    struct Matrix([[f64; 3]; 3]);

    impl Interpolation for Matrix {
        type Vector = [f64; 3];

        fn vorticity(&mut self, _: Cores, a: &Vec3) -> Result<Vec3> {
            Ok(self.0.map(|row| row.iter().zip(a).map(|(m, a)| m * a).sum()))
        }

        fn zero(&mut self) -> Result<Vec3> {
            Ok([0.0; 3])
        }

        fn copy(&mut self, a: &Vec3) -> Result<Vec3> {
            Ok(*a)
        }

        fn combine(&mut self, y: &mut Vec3, f: f64, g: f64, x: &Vec3) -> Result<()> {
            *y = std::array::from_fn(|i| f * y[i] + g * x[i]);
            Ok(())
        }

        fn product(&mut self, a: &Vec3, b: &Vec3) -> Result<f64> {
            Ok(a.iter().zip(b).map(|(a, b)| a * b).sum())
        }

        fn strength(&mut self) -> Result<Vec3> {
            unreachable!("there are no particles")
        }

        fn middle(&mut self) -> Result<(Vec3, usize)> {
            unreachable!("there are no particles")
        }

        fn lost(&mut self, _: &Vec3, _: Vec3) -> Result<[f64; 8]> {
            unreachable!("there are no particles")
        }

        fn moments(&mut self, _: &Vec3, _: Vec3) -> Result<[[f64; 6]; 6]> {
            unreachable!("there are no particles")
        }

        fn give_back(&mut self, _: &mut Vec3, _: Vec3, _: [f64; 6]) -> Result<()> {
            unreachable!("there are no particles")
        }
    }

    /// The first half step finds it, and leaves nothing for the second.
    #[test]
    fn the_solver_keeps_what_half_a_step_has_found() {
        let mut system = Matrix([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]);
        let (got, residual) = solve(&mut system, &[2.0, -4.0, 8.0], [0.0; 3]).unwrap();
        assert_eq!((got, residual), ([1.0, -2.0, 4.0], 0.0));
    }

    #[test]
    fn the_solver_solves_what_is_not_symmetric() {
        let mut system = Matrix([[4.0, 1.0, 0.0], [0.5, 3.0, -1.0], [0.0, 2.0, 5.0]]);
        let want = [1.0, -2.0, 0.5];
        let b = system.vorticity(Cores::Narrow, &want).unwrap();
        let (got, residual) = solve(&mut system, &b, [0.0; 3]).unwrap();
        assert!(residual < 1e-6 && got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?}");
    }
}
