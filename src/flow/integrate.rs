//! Integrators: from a vector and its rate to the vector after one step.
//!
//! Enters: y, dt, and the system that moves: it gives dy/dt at a stage and does the arithmetic of vectors, wherever they lie.
//! Leaves: the new vector, or the first error. Orders in dt: Euler 1, Adams-Bashforth 2, Runge-Kutta 3 with two vectors of
//! storage (Williamson 1980, case 7) and 4.

use super::options::Integrator;
use super::vector::Vector;
use crate::error::Result;
use crate::math::biot_savart::{Vec3, sub};

/// The rate at the last step's beginning, for Adams-Bashforth. NaN where an element is new.
#[derive(Debug)]
pub struct History {
    pub rate: Vector,
    pub dt: f64,
    /// The one that the rate contains.
    pub free_stream: Vec3,
}

impl History {
    /// How the last step enters one under a free stream, with its rate where that lies.
    pub fn last<'a, V>(&self, rate: &'a V, free_stream: Vec3) -> Last<'a, V> {
        Last { rate, dt: self.dt, gust: sub(free_stream, self.free_stream) }
    }
}

/// The last step as the next one takes it.
#[derive(Debug)]
pub struct Last<'a, V> {
    pub rate: &'a V,
    pub dt: f64,
    /// What has come to the free stream since then: the rate takes it along.
    pub gust: Vec3,
}

/// What moves, and the arithmetic of its vectors.
pub trait System {
    type Vector;

    /// dy/dt at a vector and the fraction of the step that has passed.
    fn rate(&mut self, y: &Self::Vector, fraction: f64) -> Result<Self::Vector>;

    fn copy(&mut self, y: &Self::Vector) -> Result<Self::Vector>;

    /// y + b x, as a new vector.
    fn plus(&mut self, y: &Self::Vector, b: f64, x: &Self::Vector) -> Result<Self::Vector>;

    /// y + a f + b g, as a new vector.
    fn plus_both(&mut self, y: &Self::Vector, shares: [f64; 2], rates: [&Self::Vector; 2]) -> Result<Self::Vector>;

    /// y = a y + b x.
    fn combine(&mut self, y: &mut Self::Vector, a: f64, b: f64, x: &Self::Vector) -> Result<()>;

    /// Adds `way` to every position, that of the fluid around dust too.
    fn shift(&mut self, y: &mut Self::Vector, way: Vec3) -> Result<()>;

    /// Whether one of its numbers is none: the mark of what has no history.
    fn has_nan(&mut self, y: &Self::Vector) -> Result<bool>;

    /// y = x where y is no number.
    fn fill_gaps(&mut self, y: &mut Self::Vector, x: &Self::Vector) -> Result<()>;

    /// Whether any rank says so: all take the same stages. The local answer where there is one process.
    fn anywhere(&mut self, mine: bool) -> Result<bool>;
}

/// Williamson's factors of the old increment and of the new one, and the stages' fractions.
const RK3: [(f64, f64, f64); 3] =
    [(0.0, 1.0 / 3.0, 0.0), (-5.0 / 9.0, 15.0 / 16.0, 1.0 / 3.0), (-153.0 / 128.0, 8.0 / 15.0, 0.75)];

/// A step this many times as long as the last one begins anew: beyond, the rate's rounding and errors of the sums, which the ratio
/// of the steps multiplies, exceed what the rate is good for.
const LONGEST: f64 = 100.0;

/// y after dt, and for the next step of Adams-Bashforth the rate at this one's beginning.
pub fn step<S: System>(
    method: Integrator,
    system: &mut S,
    y: &S::Vector,
    dt: f64,
    last: Option<Last<'_, S::Vector>>,
) -> Result<(S::Vector, Option<S::Vector>)> {
    match method {
        Integrator::Euler => {
            let f = system.rate(y, 0.0)?;
            Ok((system.plus(y, dt, &f)?, None))
        }
        Integrator::Ab2 => adams_bashforth(system, y, dt, last),
        Integrator::Rk3 => runge_kutta_3(system, y, dt).map(|y| (y, None)),
        Integrator::Rk4 => runge_kutta_4(system, y, dt).map(|y| (y, None)),
    }
}

/// The order 2 of Adams and Bashforth for a step that differs from the last; Runge-Kutta 2 for what has no last step.
fn adams_bashforth<S: System>(
    system: &mut S,
    y: &S::Vector,
    dt: f64,
    last: Option<Last<'_, S::Vector>>,
) -> Result<(S::Vector, Option<S::Vector>)> {
    let f = system.rate(y, 0.0)?;
    let last = last.filter(|last| dt <= LONGEST * last.dt);
    let begins = system.anywhere(last.is_none())?;
    let Some(Last { rate, dt: last_dt, gust }) = last.filter(|_| !begins) else {
        let middle = middle(system, y, dt, &f)?;
        return Ok((system.plus(y, dt, &middle)?, Some(f)));
    };
    let half = 0.5 * dt / last_dt;
    // NaN where there was no last rate.
    let mut after = system.plus_both(y, [dt * (1.0 + half), -dt * half], [&f, rate])?;
    if gust != [0.0; 3] {
        system.shift(&mut after, gust.map(|u| -dt * half * u))?;
    }
    let gaps = system.has_nan(&after)?;
    if system.anywhere(gaps)? {
        let middle = middle(system, y, dt, &f)?;
        let by_middle = system.plus(y, dt, &middle)?;
        system.fill_gaps(&mut after, &by_middle)?;
    }
    Ok((after, Some(f)))
}

/// The rate at the middle of the step, half of it after the rate f.
fn middle<S: System>(system: &mut S, y: &S::Vector, dt: f64, f: &S::Vector) -> Result<S::Vector> {
    let halfway = system.plus(y, 0.5 * dt, f)?;
    system.rate(&halfway, 0.5)
}

fn runge_kutta_3<S: System>(system: &mut S, y: &S::Vector, dt: f64) -> Result<S::Vector> {
    let mut y = system.copy(y)?;
    let mut increment: Option<S::Vector> = None;
    for (old, new, fraction) in RK3 {
        let f = system.rate(&y, fraction)?;
        let mut q = match increment.take() {
            Some(q) => q,
            None => system.copy(&f)?,
        };
        system.combine(&mut q, old, dt, &f)?;
        system.combine(&mut y, 1.0, new, &q)?;
        increment = Some(q);
    }
    Ok(y)
}

fn runge_kutta_4<S: System>(system: &mut S, y: &S::Vector, dt: f64) -> Result<S::Vector> {
    let mut stage = system.rate(y, 0.0)?;
    let mut sum = system.plus(y, 1.0 / 6.0 * dt, &stage)?;
    for (fraction, share) in [(0.5, 2.0 / 6.0 * dt), (0.5, 2.0 / 6.0 * dt), (1.0, dt / 6.0)] {
        let at = system.plus(y, fraction * dt, &stage)?;
        stage = system.rate(&at, fraction)?;
        system.combine(&mut sum, 1.0, share, &stage)?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Point = [f64; 3];

    /// Points under a rate that is a function of position and fraction.
    struct Points<F>(F);

    impl<F: FnMut(&Point, f64) -> Point> System for Points<F> {
        type Vector = Point;

        fn rate(&mut self, y: &Point, fraction: f64) -> Result<Point> {
            Ok((self.0)(y, fraction))
        }

        fn copy(&mut self, y: &Point) -> Result<Point> {
            Ok(*y)
        }

        fn plus(&mut self, y: &Point, b: f64, x: &Point) -> Result<Point> {
            Ok(std::array::from_fn(|i| y[i] + b * x[i]))
        }

        fn plus_both(&mut self, y: &Point, [a, b]: [f64; 2], [f, g]: [&Point; 2]) -> Result<Point> {
            Ok(std::array::from_fn(|i| y[i] + a * f[i] + b * g[i]))
        }

        fn combine(&mut self, y: &mut Point, a: f64, b: f64, x: &Point) -> Result<()> {
            *y = std::array::from_fn(|i| a * y[i] + b * x[i]);
            Ok(())
        }

        fn shift(&mut self, y: &mut Point, way: Vec3) -> Result<()> {
            *y = std::array::from_fn(|i| y[i] + way[i]);
            Ok(())
        }

        fn has_nan(&mut self, y: &Point) -> Result<bool> {
            Ok(y.iter().any(|y| y.is_nan()))
        }

        fn fill_gaps(&mut self, y: &mut Point, x: &Point) -> Result<()> {
            *y = std::array::from_fn(|i| if y[i].is_nan() { x[i] } else { y[i] });
            Ok(())
        }

        fn anywhere(&mut self, mine: bool) -> Result<bool> {
            Ok(mine)
        }
    }

    /// dx/dt = -y (1 + t), dy/dt = x (1 + t): the angle is t + t²/2.
    fn error(method: Integrator, steps: usize) -> f64 {
        let (mut y, mut last, mut t) = ([1.0, 0.0, 0.0], None, 0.0);
        for n in 0..steps {
            // Steps of two sizes: Adams-Bashforth must know.
            let dt = if n % 2 == 0 { 1.2 } else { 0.8 } / steps as f64;
            let mut system = Points(|p: &Point, fraction: f64| {
                let s = 1.0 + t + fraction * dt;
                [-p[1] * s, p[0] * s, 0.0]
            });
            let before: Option<(Point, f64)> = last;
            let rate;
            let before = before.as_ref().map(|(rate, dt)| Last { rate, dt: *dt, gust: [0.0; 3] });
            (y, rate) = step(method, &mut system, &y, dt, before).unwrap();
            last = rate.map(|rate| (rate, dt));
            t += dt;
        }
        let angle = t + 0.5 * t * t;
        ((y[0] - angle.cos()).powi(2) + (y[1] - angle.sin()).powi(2)).sqrt()
    }

    #[test]
    fn orders_are_as_named() {
        let methods =
            [(Integrator::Euler, 1.0), (Integrator::Ab2, 2.0), (Integrator::Rk3, 3.0), (Integrator::Rk4, 4.0)];
        for (method, order) in methods {
            let rate = (error(method, 80) / error(method, 160)).log2();
            assert!((rate - order).abs() < 0.15, "{method:?}: {rate}");
        }
    }

    #[test]
    fn what_has_no_history_starts_by_runge_kutta() {
        let mut calls = 0;
        let mut system = Points(|_: &Point, fraction: f64| {
            calls += 1;
            [1.0 + fraction; 3]
        });
        let last = Last { rate: &[f64::NAN, 1.0, 1.0], dt: 0.1, gust: [0.0; 3] };
        let y = step(Integrator::Ab2, &mut system, &[1.0, 0.0, 0.0], 0.1, Some(last)).unwrap().0;
        let apart = y.iter().zip([1.0 + 0.1 * 1.5, 0.1, 0.1]).map(|(y, want)| (y - want).abs()).fold(0.0, f64::max);
        assert!(calls == 2 && apart < 1e-15, "{calls} {y:?}");
    }

    /// The last rate counts up to a hundredfold step.
    #[test]
    fn a_much_longer_step_begins_anew() {
        for (last_dt, wanted) in [(1e-3, 1), (0.9e-3, 2), (1e-9, 2)] {
            let mut calls = 0;
            let mut system = Points(|_: &Point, _: f64| {
                calls += 1;
                [1.0; 3]
            });
            let last = Last { rate: &[1.0; 3], dt: last_dt, gust: [0.0; 3] };
            step(Integrator::Ab2, &mut system, &[0.0; 3], 0.1, Some(last)).unwrap();
            assert_eq!(calls, wanted, "after a step of {last_dt}");
        }
    }

    #[test]
    fn the_last_rate_takes_the_free_stream_along() {
        let mut system = Points(|_: &Point, _: f64| [3.0, 0.0, 0.0]);
        let last = Last { rate: &[1.0, 0.0, 0.0], dt: 0.2, gust: [2.0, 0.0, 0.0] };
        let y = step(Integrator::Ab2, &mut system, &[0.0; 3], 0.1, Some(last)).unwrap().0;
        assert!((y[0] - 0.3).abs() < 1e-15, "{y:?}");
    }
}
