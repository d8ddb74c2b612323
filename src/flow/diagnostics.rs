//! Invariants and norms of a flow.
//!
//! Enters: the state. Leaves: sums over all vortex elements (particles a at x; segments with a = Gamma Delta l at their middles,
//! which is exact for straight ones), and for Gaussian particles the energy, enstrophy and divergence of their field.
//!
//! Energy and enstrophy of Gaussian cores. u = curl psi, psi = sum a G_c(x - X), -laplacian G_c = zeta_c, zeta_c the Gaussian of
//! deviation c. With s² = c_p² + c_q², G = erf(r/(s √2))/(4 pi r), and B with laplacian B = -G, over all pairs:
//!   ½∫u² = ½ ΣΣ a_p·(G + ∂∂B) a_q,  ∫|curl u|² = ΣΣ a_p·(zeta_s + ∂∂G) a_q,  ∫|omega - curl u|² = -ΣΣ a_p·∂∂G a_q,
//! omega = sum a zeta_c, which is not solenoidal (Winckelmans & Leonard 1993 treat the same integrals for their kernel).
//! Every pair is summed, so only where particles are few.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use rayon::prelude::*;

use super::Flow;
use super::options::ElementKind;
use super::state::{Lines, State, row};
use super::storage::ALL;
use super::vector::Part;
use crate::error::Result;
use crate::math::biot_savart::{Vec3, cross, dot, sub};
use crate::memory;
use crate::options::Regularization;
use crate::session::Session;

codes! {
    /// Why a diagnostic is NaN.
    enum Reason {
        /// It is not NaN.
        Known = 0 => WFMM_REASON_KNOWN,
        /// Particles have another core than GAUSS_ERF.
        Kernel = 1 => WFMM_REASON_KERNEL,
        /// There are filaments or bound segments.
        Segments = 2 => WFMM_REASON_SEGMENTS,
        /// There are more than 8,192 particles; the diagnostic is a sum over all pairs.
        TooMany = 3 => WFMM_REASON_TOO_MANY,
        /// A particle has no core: its energy and enstrophy are infinite.
        Singular = 4 => WFMM_REASON_SINGULAR,
        /// The domain is periodic; the sums over pairs are those of free space.
        Periodic = 5 => WFMM_REASON_PERIODIC,
    }
}

/// Particles up to which all pairs are summed.
const PAIRS_UP_TO: usize = 8_192;

/// Invariants and norms of a flow. Set `struct_size` with `wfmm_diagnostics_init` before the call.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct wfmm_diagnostics {
    /// Size of this struct as the caller knows it.
    pub struct_size: u32,
    /// `WFMM_REASON_*`: why energy, enstrophy and divergence are NaN, or KNOWN.
    pub reason: i32,
    /// Time of the flow.
    pub time: f64,
    /// Sum of the strengths a of particles, and of circulation times length vector of filaments and bound segments,
    /// length^3/time.
    pub total_strength: [f64; 3],
    /// Half the sum of x cross a, a as above, x at the middle of a segment, length^4/time. With a ground plane only its
    /// tangential components are conserved.
    pub linear_impulse: [f64; 3],
    /// A third of the sum of x cross (x cross a), length^5/time. With a ground plane only its normal component is conserved.
    pub angular_impulse: [f64; 3],
    /// Half the integral of u^2, u the velocity that the particles induce, length^5/time^2; with a ground plane over the half space.
    pub energy: f64,
    /// Integral of |curl u|^2 over the same space, length^3/time^2.
    pub enstrophy: f64,
    /// Root of the integral of |omega - curl u|^2 over that of |omega|^2, omega the vorticity that the particles carry:
    /// the part of it that is not free of divergence.
    pub divergence: f64,
    /// The largest speed of the moving points at the present time, length/time; for dust that of the parcels.
    pub largest_velocity: f64,
    /// The longest distance that a moving point has gone in the last step, length.
    pub largest_displacement: f64,
    /// How often cores above core_limit were narrowed since the flow was made or loaded.
    pub reinterpolations: i64,
    /// Of the last time: root mean square of the change of vorticity at the particles, relative to that of the vorticity; of the
    /// strengths that the particles have now, with what was added to them.
    pub reinterpolation_residual: f64,
    /// Of the last time: what the particles' total strength lacked, relative to the sum of magnitudes. It was added to
    /// the strengths again, except with a ground plane.
    pub reinterpolation_strength: f64,
    /// Of the last time: the same of their impulse around the middle of their positions, relative to half the sum of |x||a|.
    pub reinterpolation_impulse: f64,
}

impl Flow {
    /// Of all ranks together, the same on each.
    pub fn diagnostics(&mut self) -> Result<wfmm_diagnostics> {
        let largest_velocity = self.largest_velocity()?;
        let session = self.session().clone();
        session.collective("wfmm_flow_diagnostics", || {
            let largest = session.largest(&[largest_velocity, self.largest_displacement])?;
            self.store.read(&ALL)?;
            self.warn_of_sides();
            let state = self.store.known();
            let mut d = wfmm_diagnostics {
                struct_size: size_of::<wfmm_diagnostics>() as u32,
                time: state.time,
                largest_velocity: largest[0],
                largest_displacement: largest[1],
                reinterpolations: self.spread.times,
                reinterpolation_residual: self.spread.residual,
                reinterpolation_strength: self.spread.strength,
                reinterpolation_impulse: self.spread.impulse,
                ..Default::default()
            };
            invariants(state, &mut d);
            let sums = session.total(&[d.total_strength, d.linear_impulse, d.angular_impulse].concat())?;
            d.total_strength.copy_from_slice(&sums[..3]);
            d.linear_impulse.copy_from_slice(&sums[3..6]);
            d.angular_impulse.copy_from_slice(&sums[6..]);
            let reason = self.why_not(&session)?;
            d.reason = reason as i32;
            (d.energy, d.enstrophy, d.divergence) =
                if reason == Reason::Known { self.norms(&session)? } else { (f64::NAN, f64::NAN, f64::NAN) };
            Ok(d)
        })
    }

    /// Whether energy and enstrophy have a formula here.
    fn why_not(&self, session: &Session) -> Result<Reason> {
        let state = self.store.known();
        let has = |kind| state.counts(kind).0 > 0;
        let segments = session.any(has(ElementKind::Filaments) || has(ElementKind::BoundSegments))?;
        let singular = session.any(state.moving.part(Part::ParticleCore2).contains(&0.0))?;
        let n = session.numbered(state.particle_id.len())?.1;
        Ok(if self.plan_options.period.is_some() {
            Reason::Periodic
        } else if segments {
            Reason::Segments
        } else if n > 0 && self.plan_options.particle_regularization != Regularization::GaussErf {
            Reason::Kernel
        } else if n > PAIRS_UP_TO {
            Reason::TooMany
        } else if singular {
            Reason::Singular
        } else {
            Reason::Known
        })
    }

    /// Energy, enstrophy, divergence of Gaussian particles; a rank sums over its own and those of all.
    fn norms(&self, session: &Session) -> Result<(f64, f64, f64)> {
        let moving = &self.store.known().moving;
        let (x, a) = (moving.part(Part::ParticlePosition), moving.part(Part::ParticleStrength));
        let core2 = moving.part(Part::ParticleCore2);
        let (all_x, all_a, all_core2) = (session.joined(x)?, session.joined(a)?, session.joined(core2)?);
        let plane = self.plan_options.plane;
        let of_target = |p: usize| {
            let (xp, ap) = (row(x, p), row(a, p));
            let mut sum = [0.0; 3];
            for q in 0..all_core2.len() {
                let s2 = core2[p] + all_core2[q];
                add(&mut sum, pair(sub(xp, row(&all_x, q)), ap, row(&all_a, q), s2));
                if let Some(plane) = plane {
                    add(
                        &mut sum,
                        pair(sub(xp, plane.mirror(row(&all_x, q))), ap, plane.mirror_strength(row(&all_a, q)), s2),
                    );
                }
            }
            sum
        };
        let mine = session.pool().install(|| {
            // In the order of the particles: the same bits at each call.
            let rows = memory::par_collect((0..core2.len()).into_par_iter().map(of_target));
            rows.into_iter().fold([0.0; 3], |mut sum, row| {
                add(&mut sum, row);
                sum
            })
        });
        let all = session.total(&mine)?;
        let (energy, solenoidal, rest) = (all[0], all[1], all[2]);
        let factor = (4.0 * PI * self.plan_options.normalization).powi(2);
        let divergence = if solenoidal + rest > 0.0 { (rest.max(0.0) / (solenoidal + rest)).sqrt() } else { 0.0 };
        Ok((0.5 * factor * energy, factor * solenoidal, divergence))
    }
}

fn add(sum: &mut [f64; 3], more: [f64; 3]) {
    sum.iter_mut().zip(more).for_each(|(s, m)| *s += m);
}

/// a·(G + ∂∂B) b, a·(zeta + ∂∂G) b and -a·∂∂G b at distance d for s² = `s2`.
fn pair(d: Vec3, a: Vec3, b: Vec3, s2: f64) -> [f64; 3] {
    let (ab, r2, s) = (dot(a, b), dot(d, d), s2.sqrt());
    let along = dot(a, d) * dot(b, d);
    let q2 = r2 / s2;
    let zeta = (-0.5 * q2).exp() / ((2.0 * PI).powf(1.5) * s * s2);
    // B'/r, B'', G, G'/r, G''; ∂∂f = f'/r (1 - rr/r²) + f'' rr/r².
    let (b1, b2, g, g1, g2) = if q2 < 1e-4 {
        let zero = (2.0 / PI).sqrt() / (4.0 * PI * s);
        let (b1, g1) = (-zero / 3.0 * (1.0 - 0.1 * q2), -zeta_zero(s, s2) / 3.0 * (1.0 - 0.3 * q2));
        (b1, -zero / 3.0 * (1.0 - 0.3 * q2), zero * (1.0 - q2 / 6.0), g1, -zeta - 2.0 * g1)
    } else {
        let (q, r) = (q2.sqrt(), r2.sqrt());
        let (error, bell) = (libm::erf(q * FRAC_1_SQRT_2), q * (-0.5 * q2).exp());
        let g = error / (4.0 * PI * r);
        let b1 = -(0.5 * (q2 - 1.0) * error + bell / (2.0 * PI).sqrt()) * s2 / (4.0 * PI * r * r2);
        let g1 = -(error - (2.0 / PI).sqrt() * bell) / (4.0 * PI * r * r2);
        (b1, -g - 2.0 * b1, g, g1, -zeta - 2.0 * g1)
    };
    let unit = if r2 > 0.0 { along / r2 } else { 0.0 };
    let twice = |f1: f64, f2: f64| f1 * ab + (f2 - f1) * unit;
    let rest = -twice(g1, g2);
    [g * ab + twice(b1, b2), zeta * ab - rest, rest]
}

/// The Gaussian at its middle.
fn zeta_zero(s: f64, s2: f64) -> f64 {
    1.0 / ((2.0 * PI).powf(1.5) * s * s2)
}

fn invariants(state: &State, d: &mut wfmm_diagnostics) {
    let mut take = |x: Vec3, a: Vec3| {
        let moment = cross(x, a);
        let twice = cross(x, moment);
        for i in 0..3 {
            d.total_strength[i] += a[i];
            d.linear_impulse[i] += 0.5 * moment[i];
            d.angular_impulse[i] += twice[i] / 3.0;
        }
    };
    let moving = &state.moving;
    let (x, a) = (moving.part(Part::ParticlePosition), moving.part(Part::ParticleStrength));
    (0..x.len() / 3).for_each(|k| take(row(x, k), row(a, k)));
    let mut lines = |lines: &Lines, points: &[f64]| {
        for (k, [p1, p2]) in lines.ends.iter().enumerate() {
            let (from, to) = (row(points, *p1 as usize), row(points, *p2 as usize));
            let middle = std::array::from_fn(|i| 0.5 * (from[i] + to[i]));
            take(middle, sub(to, from).map(|l| lines.circulation[k] * l));
        }
    };
    lines(&state.filaments, moving.part(Part::PointPosition));
    lines(&state.bound, &state.bound_points);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ½∫u² and ∫|curl u|² of one particle by hand: a² /(12 pi^1.5 c) and 2/3 a² zeta(0), s = √2 c.
    #[test]
    fn one_particle() {
        let (c, a) = (0.3, [0.0, 0.0, 2.0]);
        let [energy, solenoidal, rest] = pair([0.0; 3], a, a, 2.0 * c * c);
        assert!((0.5 * energy - 4.0 / (12.0 * PI.powf(1.5) * c)).abs() < 1e-12, "{energy}");
        let zeta = 4.0 / (8.0 * PI.powf(1.5) * c * c * c);
        assert!((solenoidal - 2.0 / 3.0 * zeta).abs() < 1e-10 && (rest - zeta / 3.0).abs() < 1e-10);
    }

    #[test]
    fn both_branches_meet_and_far_pairs_are_singular() {
        let (a, b) = ([1.0, -0.5, 0.3], [0.2, 0.7, -1.0]);
        let at = |r: f64| pair([0.6 * r, 0.0, 0.8 * r], a, b, 1.0);
        for (near, far) in at(0.01 * (1.0 - 1e-9)).into_iter().zip(at(0.01 * (1.0 + 1e-9))) {
            assert!((near - far).abs() < 1e-7 * near.abs().max(1e-3), "{near} {far}");
        }
        // 1/(8 pi) (a.b/r + a.r b.r/r³)
        let (d, r) = ([6.0, 0.0, 8.0], 10.0);
        let want = (dot(a, b) / r + dot(a, d) * dot(b, d) / (r * r * r)) / (8.0 * PI);
        let got = pair(d, a, b, 1.0)[0];
        assert!((got / want - 1.0).abs() < 0.02, "{got} {want}");
        let closer = pair(d, a, b, 0.01)[0];
        assert!((closer / want - 1.0).abs() < 2e-4, "{closer} {want}");
    }
}
