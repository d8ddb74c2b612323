//! Integrators: from a vector and its rate to the vector after one step.
//!
//! Enters: y, dt, and a function that gives dy/dt at a stage (a vector and the fraction of the step that has passed). Leaves:
//! the new vector, or the first error of a rate. Orders in dt: Euler 1, Adams-Bashforth 2, Runge-Kutta 3 with two vectors of
//! storage (Williamson 1980, case 7) and 4.

use rayon::ThreadPool;

use super::options::Integrator;
use super::vector::Vector;
use crate::error::Result;

/// The rate at the last step's beginning, for Adams-Bashforth. NaN where an element is new.
#[derive(Debug)]
pub struct History {
    pub rate: Vector,
    pub dt: f64,
}

/// dy/dt at a stage: a vector and the fraction of the step that has passed.
pub type Rate<'a> = dyn FnMut(&Vector, f64) -> Result<Vector> + 'a;

/// Williamson's factors of the old increment and of the new one, and the stages' fractions.
const RK3: [(f64, f64, f64); 3] =
    [(0.0, 1.0 / 3.0, 0.0), (-5.0 / 9.0, 15.0 / 16.0, 1.0 / 3.0), (-153.0 / 128.0, 8.0 / 15.0, 0.75)];

/// Whether any rank says so: all take the same stages.
pub type Anywhere<'a> = dyn Fn(bool) -> Result<bool> + 'a;

/// y after dt, and what the next step of Adams-Bashforth wants to know of this one.
pub fn step(
    method: Integrator,
    pool: &ThreadPool,
    y: Vector,
    dt: f64,
    history: Option<&History>,
    rate: &mut Rate<'_>,
    anywhere: &Anywhere<'_>,
) -> Result<(Vector, Option<History>)> {
    match method {
        Integrator::Euler => {
            let f = rate(&y, 0.0)?;
            Ok((y.plus(pool, dt, &f), None))
        }
        Integrator::Ab2 => adams_bashforth(pool, y, dt, history, rate, anywhere),
        Integrator::Rk3 => runge_kutta_3(pool, y, dt, rate).map(|y| (y, None)),
        Integrator::Rk4 => runge_kutta_4(pool, y, dt, rate).map(|y| (y, None)),
    }
}

/// The order 2 of Adams and Bashforth for a step that differs from the last; Runge-Kutta 2 for what has no last step.
fn adams_bashforth(
    pool: &ThreadPool,
    y: Vector,
    dt: f64,
    history: Option<&History>,
    rate: &mut Rate<'_>,
    anywhere: &Anywhere<'_>,
) -> Result<(Vector, Option<History>)> {
    let f = rate(&y, 0.0)?;
    let begins = anywhere(history.is_none())?;
    let next = match history.filter(|_| !begins) {
        None => {
            let middle = rate(&y.plus(pool, 0.5 * dt, &f), 0.5)?;
            y.plus(pool, dt, &middle)
        }
        Some(last) => {
            let r = dt / last.dt;
            // (1 + r/2) f - (r/2) f_last, NaN where there was no last.
            let mut slope = f.copy();
            slope.combine(pool, 1.0 + 0.5 * r, -0.5 * r, &last.rate);
            if anywhere(slope.has_nan())? {
                let middle = rate(&y.plus(pool, 0.5 * dt, &f), 0.5)?;
                slope.zip(pool, &middle, |slope, middle| {
                    if slope.is_nan() {
                        *slope = middle;
                    }
                });
            }
            y.plus(pool, dt, &slope)
        }
    };
    Ok((next, Some(History { rate: f, dt })))
}

fn runge_kutta_3(pool: &ThreadPool, mut y: Vector, dt: f64, rate: &mut Rate<'_>) -> Result<Vector> {
    let mut increment: Option<Vector> = None;
    for (old, new, fraction) in RK3 {
        let f = rate(&y, fraction)?;
        let mut q = increment.take().unwrap_or_else(|| f.copy());
        q.combine(pool, old, dt, &f);
        y.combine(pool, 1.0, new, &q);
        increment = Some(q);
    }
    Ok(y)
}

fn runge_kutta_4(pool: &ThreadPool, y: Vector, dt: f64, rate: &mut Rate<'_>) -> Result<Vector> {
    let mut sum = y.copy();
    let mut stage = rate(&y, 0.0)?;
    for (weight, fraction) in [(1.0, 0.5), (2.0, 0.5), (2.0, 1.0)] {
        sum.combine(pool, 1.0, weight / 6.0 * dt, &stage);
        stage = rate(&y.plus(pool, fraction * dt, &stage), fraction)?;
    }
    sum.combine(pool, 1.0, dt / 6.0, &stage);
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::super::vector::Part;
    use super::*;

    fn start() -> Vector {
        let mut y = Vector::default();
        *y.part_mut(Part::TracerPosition) = vec![1.0, 0.0, 0.0];
        y
    }

    /// dx/dt = -y (1 + t), dy/dt = x (1 + t): the angle is t + t²/2.
    fn error(method: Integrator, steps: usize) -> f64 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let (mut y, mut history, mut t) = (start(), None, 0.0);
        for n in 0..steps {
            // Steps of two sizes: Adams-Bashforth must know.
            let dt = if n % 2 == 0 { 1.2 } else { 0.8 } / steps as f64;
            let mut rate = |y: &Vector, fraction: f64| {
                let (p, s) = (y.part(Part::TracerPosition), 1.0 + t + fraction * dt);
                let mut f = Vector::default();
                *f.part_mut(Part::TracerPosition) = vec![-p[1] * s, p[0] * s, 0.0];
                Ok(f)
            };
            (y, history) = step(method, &pool, y, dt, history.as_ref(), &mut rate, &|any| Ok(any)).unwrap();
            t += dt;
        }
        let (p, angle) = (y.part(Part::TracerPosition), t + 0.5 * t * t);
        ((p[0] - angle.cos()).powi(2) + (p[1] - angle.sin()).powi(2)).sqrt()
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
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut old = Vector::default();
        *old.part_mut(Part::TracerPosition) = vec![f64::NAN, 1.0, 1.0];
        let history = History { rate: old, dt: 0.1 };
        let mut calls = 0;
        let mut rate = |_: &Vector, fraction: f64| {
            calls += 1;
            let mut f = Vector::default();
            *f.part_mut(Part::TracerPosition) = vec![1.0 + fraction; 3];
            Ok(f)
        };
        let y = step(Integrator::Ab2, &pool, start(), 0.1, Some(&history), &mut rate, &|any| Ok(any)).unwrap().0;
        assert_eq!((calls, y.part(Part::TracerPosition)), (2, &[1.0 + 0.1 * 1.5, 0.1, 0.1][..]));
    }
}
