//! Core spreading makes particles wide: where cores have outgrown `core_limit`, strengths are found anew for narrower ones.
//!
//! Enters: particles before a step. Leaves: the same places, cores of limit/√2 where they were close to the limit or above it, and strengths
//! a' that carry the same vorticity at all particles: Σ_j a'_j ζ'(x_i - x_j) = Σ_j a_j ζ(x_i - x_j) (Barba, Leonard & Allen 2005;
//! Yokota et al. 2009). Solved by BiCGSTAB with sums over neighbours, without a matrix. In host memory: of a state on a device the
//! particles come here and go back. Vorticity spreads no farther than there are particles that can carry it; what its tails beyond them
//! had of total strength and impulse is given back to all particles. Not with a plane, through which both may go.

use super::Flow;
use super::gaussians::Gaussians;
use super::options::ElementKind;
use super::state::row;
use super::step::spreading;
use super::storage::Held;
use super::vector::Part;
use crate::error::Result;
use crate::math::biot_savart::{Vec3, cross, norm, sub};
use crate::memory;

/// Iterations of the solver end at this residual, after so many, or after so many that do not help.
const RESIDUAL: f64 = 1e-6;
const ITERATIONS: usize = 100;
const MOST_WITHOUT_GAIN: usize = 12;
/// The residual from which the particles stay as they are.
const UNFIT: f64 = 1e-3;
/// Of the limit's square: cores from here on are set back together with those above the limit.
const CLOSE: f64 = 0.75;
/// How much cores grow, squared, before what did not fit is tried again.
const LATER: f64 = 1.2;

/// What is known of spreading cores, and what the last interpolation did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread {
    /// The largest core radius squared, where it is known.
    pub largest: Option<f64>,
    /// The largest that did not fit.
    unfit: f64,
    pub times: i64,
    /// Of the vorticity at the particles, relative; of total strength and impulse what was missing, relative.
    pub residual: f64,
    pub strength: f64,
    pub impulse: f64,
}

/// Strengths and squared core radii of all particles.
pub struct Carried {
    strength: Vec<f64>,
    core2: Vec<f64>,
}

impl Flow {
    /// Before a step of dt: narrower cores where they are due. Leaves what was there before.
    pub(super) fn reinterpolate(&mut self, dt: f64) -> Result<Option<Carried>> {
        let limit2 = self.options.core_limit * self.options.core_limit;
        if limit2 == 0.0 {
            return Ok(None);
        }
        let largest = match self.spread.largest {
            Some(largest) => largest,
            None => {
                let (state, _) = self.store.read(&[ElementKind::Particles])?;
                state.moving.part(Part::ParticleCore2).iter().copied().fold(0.0, f64::max)
            }
        };
        self.spread.largest = Some(largest + spreading(&self.options) * dt);
        if largest <= limit2.max(LATER * self.spread.unfit) {
            return Ok(None);
        }
        let Some(new) = self.narrower(limit2)? else {
            self.spread.unfit = largest;
            return Ok(None);
        };
        let Held { state, history } = self.store.edit(ElementKind::Particles)?;
        let old = Carried {
            strength: std::mem::replace(state.moving.part_mut(Part::ParticleStrength), new.strength),
            core2: std::mem::replace(state.moving.part_mut(Part::ParticleCore2), new.core2),
        };
        if let Some(history) = history {
            // Rates of the old strengths are none of the new ones'.
            history.rate.part_mut(Part::ParticleStrength).fill(f64::NAN);
        }
        let core2 = state.moving.part(Part::ParticleCore2);
        let largest = core2.iter().copied().fold(0.0, f64::max);
        self.spread.largest = Some(largest + spreading(&self.options) * dt);
        self.spread.unfit = 0.0;
        self.velocities = None;
        Ok(Some(old))
    }

    /// After a step that failed: as it was.
    pub(super) fn take_back(&mut self, old: Carried) -> Result<()> {
        let Held { state, .. } = self.store.edit(ElementKind::Particles)?;
        *state.moving.part_mut(Part::ParticleStrength) = old.strength;
        *state.moving.part_mut(Part::ParticleCore2) = old.core2;
        self.spread.largest = None;
        Ok(())
    }

    /// Strengths for narrower cores; nothing where they do not fit.
    fn narrower(&mut self, limit2: f64) -> Result<Option<Carried>> {
        let plane = self.plan_options.plane;
        let (state, _) = self.store.read(&[ElementKind::Particles])?;
        let moving = &state.moving;
        let (x, a) = (moving.part(Part::ParticlePosition), moving.part(Part::ParticleStrength));
        let core2 = moving.part(Part::ParticleCore2);
        // A particle without a core is no Gaussian and stays what it is.
        let members = {
            let mut members = Vec::new();
            memory::extend(&mut members, (0..core2.len()).filter(|&k| core2[k] > 0.0));
            members
        };
        let rows = |from: &[f64]| {
            let all = memory::collect(members.iter().map(|&k| row(from, k)));
            memory::copy(all.as_flattened())
        };
        let (places, strength) = (rows(x), rows(a));
        let old2 = memory::collect(members.iter().map(|&k| core2[k]));
        let new2 = memory::collect(old2.iter().map(|&c2| if c2 > CLOSE * limit2 { 0.5 * limit2 } else { c2 }));
        let pool = self.session.pool();
        let wanted = Gaussians::new(&places, &old2, plane).at(pool, &places, &strength);
        let sums = Gaussians::new(&places, &new2, plane);
        let (mut found, residual) = solve(|a| sums.at(pool, &places, a), &wanted, &strength);
        let lost = Lost::new(&places, &strength, &found);
        let (total, impulse) = lost.parts();
        let n = members.len();
        if residual > UNFIT {
            log::warn!("cores of {n} particles are not narrowed: residual {residual:.1e}, {UNFIT:.0e} is needed");
            return Ok(None);
        }
        log::info!(
            "cores of {n} particles narrowed: residual {residual:.1e}, strength {total:.1e}, impulse {impulse:.1e}"
        );
        if plane.is_none() {
            lost.give_back(&places, &mut found);
        }
        let mut new = Carried { strength: memory::copy(a), core2: memory::copy(core2) };
        for (m, &k) in members.iter().enumerate() {
            new.strength[3 * k..3 * k + 3].copy_from_slice(&found[3 * m..3 * m + 3]);
            new.core2[k] = new2[m];
        }
        let spread = &mut self.spread;
        (spread.times, spread.residual, spread.strength, spread.impulse) = (spread.times + 1, residual, total, impulse);
        Ok(Some(new))
    }
}

/// What strengths for narrower cores lack of total strength and of Σ x × a, x around the middle of all places; and the sums of |a|
/// and of |x||a|.
struct Lost {
    middle: Vec3,
    /// Total, then moment.
    sums: [f64; 6],
    size: f64,
    moments: f64,
}

impl Lost {
    fn new(x: &[f64], old: &[f64], new: &[f64]) -> Self {
        let n = x.len() / 3;
        let middle: Vec3 = std::array::from_fn(|i| (0..n).map(|k| x[3 * k + i]).sum::<f64>() / n.max(1) as f64);
        let mut lost = Self { middle, sums: [0.0; 6], size: 0.0, moments: 0.0 };
        for k in 0..n {
            let (d, a, less) = (sub(row(x, k), middle), row(old, k), sub(row(old, k), row(new, k)));
            let moment = cross(d, less);
            for i in 0..3 {
                lost.sums[i] += less[i];
                lost.sums[3 + i] += moment[i];
            }
            lost.size += norm(a);
            lost.moments += norm(d) * norm(a);
        }
        lost
    }

    /// Relative to the sums of magnitudes.
    fn parts(&self) -> (f64, f64) {
        let part = |of: &[f64], size: f64| if size > 0.0 { product(of, of).sqrt() / size } else { 0.0 };
        (part(&self.sums[..3], self.size), part(&self.sums[3..], self.moments))
    }

    /// The least change, weighed by 1/|a|, that makes both what they were: |a| (λ + μ × x) for each particle.
    fn give_back(&self, x: &[f64], a: &mut [f64]) {
        let n = a.len() / 3;
        let unit = |j: usize| -> [f64; 6] { std::array::from_fn(|i| if i == j { 1.0 } else { 0.0 }) };
        let change = |k: usize, a: Vec3, f: &[f64; 6]| -> Vec3 {
            let turn = cross([f[3], f[4], f[5]], sub(row(x, k), self.middle));
            std::array::from_fn(|i| norm(a) * (f[i] + turn[i]))
        };
        let mut matrix = [[0.0; 7]; 6];
        for k in 0..n {
            for j in 0..6 {
                let c = change(k, row(a, k), &unit(j));
                let moment = cross(sub(row(x, k), self.middle), c);
                for i in 0..3 {
                    matrix[i][j] += c[i];
                    matrix[3 + i][j] += moment[i];
                }
            }
        }
        (0..6).for_each(|i| matrix[i][6] = self.sums[i]);
        let factors = eliminated(matrix);
        for k in 0..n {
            let c = change(k, row(a, k), &factors);
            (0..3).for_each(|i| a[3 * k + i] += c[i]);
        }
    }
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

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// y += f x.
fn add(y: &mut [f64], f: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += f * x);
}

/// The best x that BiCGSTAB (van der Vorst 1992) finds for `apply`(x) = b, and |b - apply(x)|/|b|.
fn solve(apply: impl Fn(&[f64]) -> Vec<f64>, b: &[f64], guess: &[f64]) -> (Vec<f64>, f64) {
    let size = product(b, b).sqrt();
    if size == 0.0 {
        return (memory::filled(0.0, b.len()), 0.0);
    }
    let mut x = memory::copy(guess);
    let mut r = apply(&x);
    r.iter_mut().zip(b).for_each(|(r, b)| *r = b - *r);
    let shadow = memory::copy(&r);
    let (mut p, mut v) = (memory::filled(0.0, b.len()), memory::filled(0.0, b.len()));
    let (mut rho, mut alpha, mut omega) = (1.0, 1.0, 1.0);
    let (mut best, mut least, mut since) = (memory::copy(&x), product(&r, &r).sqrt() / size, 0);
    for _ in 0..ITERATIONS {
        if least <= RESIDUAL || since >= MOST_WITHOUT_GAIN {
            break;
        }
        let next = product(&shadow, &r);
        let beta = next / rho * (alpha / omega);
        rho = next;
        add(&mut p, -omega, &v);
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
        v = apply(&p);
        alpha = rho / product(&shadow, &v);
        add(&mut r, -alpha, &v);
        let t = apply(&r);
        let t2 = product(&t, &t);
        omega = if t2 > 0.0 { product(&t, &r) / t2 } else { 0.0 };
        add(&mut x, alpha, &p);
        add(&mut x, omega, &r);
        add(&mut r, -omega, &t);
        let residual = product(&r, &r).sqrt() / size;
        if !residual.is_finite() || rho == 0.0 || omega == 0.0 {
            break;
        }
        since += 1;
        if residual < least {
            (least, since) = (residual, 0);
            best.copy_from_slice(&x);
        }
    }
    (best, least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solver_solves_what_is_not_symmetric() {
        let m = [[4.0, 1.0, 0.0], [0.5, 3.0, -1.0], [0.0, 2.0, 5.0]];
        let apply = |x: &[f64]| m.iter().map(|row| product(row, x)).collect::<Vec<_>>();
        let want = [1.0, -2.0, 0.5];
        let (got, residual) = solve(apply, &apply(&want), &[0.0; 3]);
        assert!(residual < 1e-6 && got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?}");
    }

    #[test]
    fn what_is_lost_is_given_back() {
        let number = |k: usize| ((k * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5;
        let list = |seed: usize| (0..60).map(|k| number(k + seed)).collect::<Vec<f64>>();
        let (x, old) = (list(0), list(100));
        let mut new: Vec<f64> = old.iter().zip(list(200)).map(|(a, b)| a + 0.01 * b).collect();
        let lost = Lost::new(&x, &old, &new);
        assert!(lost.parts().0 > 1e-4 && lost.parts().1 > 1e-4, "{:?}", lost.parts());
        lost.give_back(&x, &mut new);
        let (total, impulse) = Lost::new(&x, &old, &new).parts();
        assert!(total < 1e-13 && impulse < 1e-13, "{total} {impulse}");
        // All on a line: the moment along it is not theirs to have.
        let line: Vec<f64> = (0..20).flat_map(|k| [k as f64, 0.0, 0.0]).collect();
        let mut new: Vec<f64> = old.iter().map(|a| 1.01 * a).collect();
        Lost::new(&line, &old, &new).give_back(&line, &mut new);
        assert!(Lost::new(&line, &old, &new).parts().0 < 1e-12 && new.iter().all(|a| a.is_finite()));
    }

    #[test]
    fn losses_are_relative() {
        let x = [0.0, 0.0, 0.0, 2.0, 0.0, 0.0];
        let (old, new) = ([0.0, 0.0, 1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0, 1.5]);
        assert_eq!(Lost::new(&x, &old, &new).parts(), (0.25, 0.25));
    }
}
