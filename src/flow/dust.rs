//! Dust: one step of an inertial parcel under drag, gravity and buoyancy, and its contact with the ground.
//!
//! Enters: a parcel, the fluid's velocity over a time h. Leaves: its new position and velocity. dV/dt = f (U - V)/tau +
//! g (1 - rho/rho_p), tau = rho_p d²/(18 mu), f by Schiller & Naumann (1933). With U and f constant the solution is exact, so
//! a small tau asks for no small step. f is taken at the middle of the step, which is divided where f changes much: a parcel
//! that is far from the fluid's velocity relaxes in tau/f. U is that of the middle of the step: order 2, but for the velocity
//! where tau is much shorter than h. It is then half a step old: order 1.

use super::options::FlowOptions;
use crate::backend::cuda::args::MediumArg;
use crate::math::biot_savart::{Vec3, norm, sub};
use crate::options::Plane;

/// Reynolds number from which the drag coefficient is constant, and that coefficient.
const NEWTON: (f64, f64) = (1000.0, 0.44);

/// The drag factor may change so much from the beginning of a part of a step to its middle. Parts are no shorter than the other
/// part of the step.
const CHANGE: f64 = 0.1;
const SHORTEST: f64 = 1.0 / (1u64 << 30) as f64;

/// What of the options concerns dust.
#[derive(Debug, Clone, Copy)]
pub struct Medium {
    gravity: Vec3,
    density: f64,
    viscosity: f64,
    restitution: f64,
    friction: f64,
    ground: Option<Plane>,
}

/// A parcel.
#[derive(Debug, Clone, Copy)]
pub struct Parcel {
    pub position: Vec3,
    pub velocity: Vec3,
    pub diameter: f64,
    pub density: f64,
}

/// Drag relative to Stokes'.
fn drag_factor(re: f64) -> f64 {
    if re < NEWTON.0 { 1.0 + 0.15 * re.powf(0.687) } else { NEWTON.1 / 24.0 * re }
}

/// phi1 = (1 - exp(-z))/z and phi2 = (z - 1 + exp(-z))/z², which are 1 and 1/2 without drag.
struct Shares {
    /// z phi1 and z phi2.
    drag: [f64; 2],
    /// phi1 and phi2.
    force: [f64; 2],
}

impl Shares {
    fn new(z: f64) -> Self {
        if z < 0.1 {
            // The series of phi2: 1/2 - z/6 + z²/24 - ...
            let phi2 = 0.5 * (3..=11).rev().fold(1.0, |sum, k| 1.0 - z / f64::from(k) * sum);
            let phi1 = 1.0 - z * phi2;
            return Self { drag: [z * phi1, z * phi2], force: [phi1, phi2] };
        }
        // Finite for an infinite z, too.
        let lost = -(-z).exp_m1();
        let phi1 = lost / z;
        Self { drag: [lost, 1.0 - phi1], force: [phi1, (1.0 - phi1) / z] }
    }
}

impl Medium {
    pub fn new(options: &FlowOptions, ground: Option<Plane>) -> Self {
        Self {
            gravity: options.gravity,
            density: options.fluid_density,
            viscosity: options.fluid_viscosity,
            restitution: options.restitution,
            friction: options.friction,
            ground,
        }
    }

    /// The same as kernels take it.
    pub fn argument(&self) -> MediumArg {
        MediumArg {
            gravity: self.gravity,
            density: self.density,
            viscosity: self.viscosity,
            restitution: self.restitution,
            friction: self.friction,
            ground: self.ground.map_or(0.0, |ground| ground.position),
            axis: self.ground.map_or(-1, |ground| ground.axis as i64),
        }
    }

    /// After h in fluid of velocity `wind`, without the ground.
    pub fn advance(&self, p: &Parcel, wind: Vec3, h: f64) -> Parcel {
        if self.rests(p) || h == 0.0 {
            return *p;
        }
        let by_slip = self.density * p.diameter / self.viscosity;
        let factor = |p: &Parcel| drag_factor(by_slip * norm(sub(wind, p.velocity)));
        let (mut now, mut left, mut part) = (*p, h, h);
        loop {
            let first = factor(&now);
            let middle = factor(&self.exact(&now, wind, 0.5 * part, first));
            // False where they are no numbers.
            if (middle - first).abs() > CHANGE * middle.min(first) && part > SHORTEST * h {
                part *= 0.5;
                continue;
            }
            now = self.exact(&now, wind, part, middle);
            if part >= left {
                return now;
            }
            left -= part;
            part = left.min(2.0 * part);
        }
    }

    /// The solution for constant wind and drag factor. With z = h/tau it is V + (U - V) z phi1 + g h phi1 and
    /// x + h (V + (U - V) z phi2 + g h phi2): no term grows with tau.
    fn exact(&self, p: &Parcel, wind: Vec3, h: f64, factor: f64) -> Parcel {
        let tau = p.density * p.diameter * p.diameter / (18.0 * self.viscosity * factor);
        let lift = self.lift(p);
        let Shares { drag: [drag1, drag2], force: [force1, force2] } = Shares::new(h / tau);
        let mut next = *p;
        for i in 0..3 {
            let (slip, gain) = (wind[i] - p.velocity[i], h * lift * self.gravity[i]);
            next.velocity[i] = p.velocity[i] + slip * drag1 + gain * force1;
            next.position[i] = p.position[i] + h * (p.velocity[i] + slip * drag2 + gain * force2);
        }
        next
    }

    /// What buoyancy leaves of gravity.
    fn lift(&self, p: &Parcel) -> f64 {
        1.0 - self.density / p.density
    }

    /// On the ground without velocity: such a parcel stays until the host takes it up.
    fn rests(&self, p: &Parcel) -> bool {
        self.ground.is_some_and(|ground| p.position[ground.axis] == ground.position && p.velocity == [0.0; 3])
    }

    /// Contact with the ground at the end of a step of dt that ended below it. The parcel reached the ground with the speed that
    /// gravity had not yet given it, leaves it with the part that restitution keeps, and flies on for the rest of the step. The
    /// rest speed is what gravity gives in a step: a parcel that leaves the ground no faster does not leave it, and one that
    /// slides no faster stays.
    pub fn land(&self, mut p: Parcel, dt: f64) -> Parcel {
        let Some(Plane { axis, position }) = self.ground else { return p };
        let above = p.position[axis] - position;
        if self.rests(&p) || above > 0.0 || (above == 0.0 && p.velocity[axis] >= 0.0) {
            return p;
        }
        let lift = self.lift(&p);
        let rest = norm(self.gravity) * lift.abs() * dt;
        // Towards the ground.
        let (speed, pull) = (-p.velocity[axis], -lift * self.gravity[axis]);
        p.velocity.iter_mut().for_each(|v| *v *= 1.0 - self.friction);
        let (mut back, mut below) = (-speed, 0.0);
        if speed > 0.0 {
            let met = (speed * speed + 2.0 * pull * above).max(0.0).sqrt();
            below = (-2.0 * above / (speed + met)).min(dt);
            back = self.restitution * met;
        }
        let stays = back <= rest;
        p.position[axis] = position + if stays { 0.0 } else { below * (back - 0.5 * pull * below) };
        p.velocity[axis] = if stays { 0.0 } else { back - pull * below };
        if stays && norm(p.velocity) <= rest {
            p.velocity = [0.0; 3];
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::wfmm_flow_options;
    use super::*;
    use crate::options::{PlanOptions, wfmm_plan_options};

    fn medium(viscosity: f64, density: f64, ground: bool) -> Medium {
        let o = wfmm_flow_options {
            gravity: [0.0, 0.0, -9.81],
            fluid_viscosity: viscosity,
            fluid_density: density,
            restitution: 0.5,
            friction: 0.2,
            ..Default::default()
        };
        let plan = PlanOptions::checked(&wfmm_plan_options::default()).unwrap();
        Medium::new(&FlowOptions::checked(&o, &plan).unwrap(), ground.then_some(Plane { axis: 2, position: 0.0 }))
    }

    fn parcel(z: f64, w: f64) -> Parcel {
        Parcel { position: [0.0, 0.0, z], velocity: [1.0, 0.0, w], diameter: 1e-4, density: 2650.0 }
    }

    #[test]
    fn one_long_step_is_as_good_as_many_without_reynolds() {
        let m = medium(1.8e-5, 0.0, false);
        let (mut p, wind) = (parcel(1.0, 0.0), [0.5, 0.0, 0.1]);
        let once = m.advance(&p, wind, 0.2);
        for _ in 0..100 {
            p = m.advance(&p, wind, 0.002);
        }
        for i in 0..3 {
            assert!(
                (once.position[i] - p.position[i]).abs() < 1e-13 && (once.velocity[i] - p.velocity[i]).abs() < 1e-12
            );
        }
    }

    #[test]
    fn without_drag_it_falls_freely_and_in_a_thick_fluid_it_follows() {
        let free = medium(1e-12, 0.0, false).advance(&parcel(10.0, 0.0), [0.0; 3], 1.0);
        assert!((free.position[2] - (10.0 - 0.5 * 9.81)).abs() < 1e-5 && (free.velocity[2] + 9.81).abs() < 1e-5);
        let thick = medium(1e3, 0.0, false).advance(&parcel(10.0, 0.0), [3.0, 0.0, 0.0], 1.0);
        assert!((thick.velocity[0] - 3.0).abs() < 1e-9 && (thick.position[0] - 3.0).abs() < 1e-8);
    }

    /// To rounding, whatever the response time.
    #[test]
    fn no_response_time_costs_digits() {
        for viscosity in [1e-12, 1e-15, 1e-18, 1e-22, 1e-30, 1e-300] {
            let (m, mut p) = (medium(viscosity, 0.0, false), parcel(10.0, 0.0));
            (0..100).for_each(|_| p = m.advance(&p, [3.0, 0.0, 0.0], 0.01));
            let apart = [p.velocity[0] - 1.0, p.velocity[2] + 9.81, p.position[0] - 1.0, p.position[2] - 10.0 + 4.905];
            // Drag that is left: of the first, 7e-7 of a second's.
            let most = (2.0 * viscosity / 1.5e-6).max(1e-13);
            assert!(apart.iter().all(|apart| apart.abs() < 10.0 * most), "{viscosity:e}: {apart:?}");
        }
        let m = medium(1e300, 0.0, false);
        let p = m.advance(&parcel(10.0, 0.0), [3.0, 0.0, 0.0], 1e30);
        assert!(
            p.velocity[0] == 3.0 && (p.position[0] / 3e30 - 1.0).abs() < 1e-15 && p.velocity[2].abs() < 1e-13,
            "{p:?}"
        );
    }

    /// Against the closed forms where these are good to a few digits less than all, and where the series ends.
    #[test]
    fn shares_are_those_of_the_closed_forms() {
        for z in [0.01, 0.05, 0.0999999, 0.1, 0.5, 3.0, 40.0] {
            let Shares { drag, force } = Shares::new(z);
            let (phi1, phi2) = ((1.0 - (-z).exp()) / z, (z - 1.0 + (-z).exp()) / (z * z));
            let apart = [force[0] / phi1, force[1] / phi2, drag[0] / (z * phi1), drag[1] / (z * phi2)];
            assert!(apart.iter().all(|ratio| (ratio - 1.0).abs() < 1e-11), "{z}: {apart:?}");
        }
        let [before, after] = [0.1 * (1.0 - 1e-15), 0.1].map(Shares::new);
        assert!((before.force[1] / after.force[1] - 1.0).abs() < 1e-14);
    }

    #[test]
    fn drag_is_schiller_naumanns_and_continuous() {
        assert_eq!(drag_factor(0.0), 1.0);
        assert!((drag_factor(10.0) - (1.0 + 0.15 * 10f64.powf(0.687))).abs() < 1e-15);
        assert!((drag_factor(999.99) / drag_factor(1000.0) - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_ground_returns_slows_and_stops() {
        let m = medium(1e-12, 0.0, true);
        // It met the ground at a speed of (2² - 2 g 0.01)^(1/2), and the time since then is 0.02 over the sum of both.
        let p = m.land(parcel(-0.01, -2.0), 1e-2);
        let met = (4.0 - 2.0 * 9.81 * 0.01f64).sqrt();
        let since = 0.02 / (2.0 + met);
        let now = [since * (0.5 * met - 0.5 * 9.81 * since), 0.8, 0.0, 0.5 * met - 9.81 * since];
        let apart = [p.position[2] - now[0], p.velocity[0] - now[1], p.velocity[1] - now[2], p.velocity[2] - now[3]];
        assert!(apart.iter().all(|v| v.abs() < 1e-14), "{p:?}");
        let slow = m.land(parcel(-1e-6, -1e-3), 1e-3);
        assert_eq!((slow.position[2], slow.velocity), (0.0, [0.8, 0.0, 0.0]));
        let mut still = parcel(-1e-6, -1e-3);
        still.velocity[0] = 1e-3;
        let still = m.land(still, 1e-3);
        assert_eq!((still.position[2], still.velocity), (0.0, [0.0; 3]));
        assert_eq!(m.advance(&still, [9.0, 0.0, 9.0], 1.0).position, still.position, "it stays");
        let above = m.land(parcel(1e-9, -1.0), 1e-3);
        assert_eq!(above.position[2], 1e-9);
        // Set below the ground it is put on it.
        let sunk = Parcel { velocity: [0.0; 3], ..parcel(-0.5, 0.0) };
        assert_eq!(m.land(m.advance(&sunk, [5.0, 0.0, 0.0], 0.01), 0.01).position[2], 0.0);
    }

    /// Velocity and way of a parcel that is far from the velocity of the fluid, in one step and in more: against many.
    #[test]
    fn long_steps_hold_while_a_parcel_relaxes() {
        let cases = [
            // Diameter, densities of parcel and fluid, viscosity, wind, time: a pebble in a river, sand in a storm, dust, from rest.
            (1e-2, 2650.0, 1000.0, 1e-3, 3.0, 1.0),
            (1e-3, 2650.0, 1.2, 1.8e-5, 20.0, 3.0),
            (1e-5, 2650.0, 1.2, 1.8e-5, 5.0, 1.0),
            // It falls.
            (1e-2, 2650.0, 1000.0, 1e-3, 0.0, 1.0),
        ];
        for (diameter, density, of_fluid, viscosity, wind, time) in cases {
            let m = medium(viscosity, of_fluid, false);
            let run = |steps: u32| {
                let mut p = Parcel { position: [0.0; 3], velocity: [0.0; 3], diameter, density };
                (0..steps).for_each(|_| p = m.advance(&p, [wind, 0.0, 0.0], time / f64::from(steps)));
                p
            };
            let exact = run(100_000);
            for steps in [1, 2, 4, 8, 32] {
                let p = run(steps);
                let way = norm(sub(p.position, exact.position)) / norm(exact.position);
                let speed = norm(sub(p.velocity, exact.velocity)) / norm(exact.velocity);
                assert!(way < 7e-3 && speed < 5e-3, "{diameter} in {steps} steps: {way:.1e}, {speed:.1e}");
            }
        }
    }

    /// Without drag: a bounce is as high as restitution lets it, whatever the step, and comes to an end.
    #[test]
    fn bounces_neither_gain_nor_go_on_for_ever() {
        for dt in [0.02, 0.01, 0.005] {
            for restitution in [1.0, 0.9] {
                let m = Medium { restitution, friction: 0.0, ..medium(1e-15, 0.0, true) };
                let mut p = Parcel { velocity: [0.0; 3], ..parcel(1.0, 0.0) };
                let energy = |p: &Parcel| 9.81 * p.position[2] + 0.5 * p.velocity[2].powi(2);
                let (before, mut most) = (energy(&p), 0.0f64);
                for _ in 0..(60.0 / dt) as u32 {
                    p = m.land(m.advance(&p, [0.0; 3], dt), dt);
                    most = most.max(energy(&p));
                }
                assert!(most < before * (1.0 + 1e-6), "{dt}: {most} of {before}");
                let left = energy(&p);
                let is_right =
                    if restitution == 1.0 { (left / before - 1.0).abs() < 1e-5 } else { p.velocity == [0.0; 3] };
                assert!(is_right, "{dt}, {restitution}: {left} of {before}");
            }
        }
    }
}
