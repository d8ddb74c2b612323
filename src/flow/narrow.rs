//! Narrower cores in host memory, of the particles of all ranks: what `Interpolation` asks for.
//!
//! Enters: a state and the limit of its cores. Leaves: strengths and cores of the particles that have one, others are no Gaussians
//! and stay what they are; and what was there before.

use rayon::ThreadPool;

use super::gaussians::Gaussians;
use super::integrate::History;
use super::neighbours::{Member, Neighbours};
use super::reinterpolate::{Carried, Cores, Fit, Interpolation, Narrowed, narrower, set_back};
use super::state::{State, row};
use super::storage::{Held, Tools};
use super::vector::{Part, Vector};
use crate::distributed::Peers;
use crate::error::Result;
use crate::math::biot_savart::{Vec3, cross, norm, sub};
use crate::memory;
use crate::options::Plane;

const ADVANCE: &str = "wfmm_flow_advance";

/// Strengths and squared core radii of all particles, and rates of strengths where there is a history.
pub struct Before {
    pub strength: Vec<f64>,
    pub core2: Vec<f64>,
    pub rate: Option<Vec<f64>>,
}

/// The largest squared core.
pub fn largest(core2: &[f64]) -> f64 {
    core2.iter().copied().fold(0.0, f64::max)
}

/// Narrower cores for the particles of a state, on many ranks for those of all; nothing where they do not fit.
pub fn narrow(held: Held<'_>, tools: &Tools<'_>, limit2: f64) -> Result<Option<Narrowed>> {
    let Held { state, history } = held;
    let rates = history.as_ref().map(|h| h.rate.part(Part::ParticleStrength).len());
    let (moving, plane, pool) = (&state.moving, tools.plane, tools.session.pool());
    let found = match tools.session.communicator() {
        None => narrowed(&Peers::default(), pool, moving, plane, rates, limit2)?,
        Some(ranks) => {
            let peers = Peers::of(ranks);
            let work = || narrowed(&peers, pool, moving, plane, rates, limit2);
            tools.session.collective(ADVANCE, || ranks.run(pool, &peers, ADVANCE, work))?
        }
    };
    Ok(found.map(|(mut numbers, fit, largest)| {
        exchange(state, history, &mut numbers);
        Narrowed { before: Carried::InHost(numbers), fit, largest }
    }))
}

/// What takes the place of the particles' numbers, how well it does, and the largest squared core of all ranks.
fn narrowed(
    peers: &Peers,
    pool: &ThreadPool,
    moving: &Vector,
    plane: Option<Plane>,
    rates: Option<usize>,
    limit2: f64,
) -> Result<Option<(Before, Fit, f64)>> {
    let (x, a) = (moving.part(Part::ParticlePosition), moving.part(Part::ParticleStrength));
    let core2 = moving.part(Part::ParticleCore2);
    let mut members = Vec::new();
    memory::extend(&mut members, (0..core2.len()).filter(|&k| core2[k] > 0.0));
    let member = |&k: &usize| {
        let ([x, y, z], [a, b, c]) = (row(x, k), row(a, k));
        [x, y, z, a, b, c, core2[k]]
    };
    let (mut particles, narrow) = Members::new(peers, pool, memory::collect(members.iter().map(member)), plane, limit2);
    let Some((found, fit)) = narrower(&mut particles, plane.is_some())? else { return Ok(None) };
    let (found, narrow) = (particles.neighbours.back(found, 3), particles.neighbours.back(narrow, 1));
    let (mut strength, mut new2) = (memory::copy(a), memory::copy(core2));
    for (m, &k) in members.iter().enumerate() {
        strength[3 * k..3 * k + 3].copy_from_slice(&found[3 * m..3 * m + 3]);
        new2[k] = narrow[m];
    }
    // Rates of the old strengths are none of the new ones'.
    let rate = rates.map(|len| memory::filled(f64::NAN, len));
    let largest = peers.max(largest(&new2));
    Ok(Some((Before { strength, core2: new2, rate }, fit, largest)))
}

/// Puts new numbers in place of the old ones, and the other way round.
pub fn exchange(state: &mut State, history: &mut Option<History>, numbers: &mut Before) {
    std::mem::swap(state.moving.part_mut(Part::ParticleStrength), &mut numbers.strength);
    std::mem::swap(state.moving.part_mut(Part::ParticleCore2), &mut numbers.core2);
    if let Some((history, rate)) = history.as_mut().zip(numbers.rate.as_mut()) {
        std::mem::swap(history.rate.part_mut(Part::ParticleStrength), rate);
    }
}

/// The particles that have cores, on many ranks those of a range of a curve.
struct Members<'a> {
    peers: &'a Peers,
    pool: &'a ThreadPool,
    positions: Vec<f64>,
    strength: Vec<f64>,
    neighbours: Neighbours,
    /// Positions of these and, behind them, of those of other ranks that reach them; squared cores as they are, and narrower.
    around: Vec<f64>,
    present: Vec<f64>,
    narrow: Vec<f64>,
    plane: Option<Plane>,
    /// The last sums.
    sums: Option<(Cores, Gaussians)>,
}

impl<'a> Members<'a> {
    /// Returned too are the narrower cores of these particles.
    fn new(
        peers: &'a Peers,
        pool: &'a ThreadPool,
        given: Vec<Member>,
        plane: Option<Plane>,
        limit2: f64,
    ) -> (Self, Vec<f64>) {
        let (neighbours, here) = Neighbours::new(peers, given, plane);
        let rows = |first: usize| {
            let rows: Vec<Vec3> = memory::collect(here.iter().map(|p| std::array::from_fn(|i| p[first + i])));
            memory::copy(rows.as_flattened())
        };
        let (positions, strength) = (rows(0), rows(3));
        let present = memory::collect(here.iter().map(|p| p[6]));
        let [close, to] = set_back(limit2);
        let narrow = memory::collect(present.iter().map(|&c2| if c2 > close { to } else { c2 }));
        let around = neighbours.with_others::<3>(&positions).into_owned();
        let all = [&present, &narrow].map(|own| neighbours.with_others::<1>(own).into_owned());
        let [of_present, of_narrow] = all;
        let sums = None;
        let members = Self {
            peers,
            pool,
            positions,
            strength,
            neighbours,
            around,
            present: of_present,
            narrow: of_narrow,
            plane,
            sums,
        };
        (members, narrow)
    }
}

impl Interpolation for Members<'_> {
    type Vector = Vec<f64>;

    fn strength(&mut self) -> Result<Vec<f64>> {
        Ok(memory::copy(&self.strength))
    }

    fn vorticity(&mut self, cores: Cores, a: &Vec<f64>) -> Result<Vec<f64>> {
        if self.sums.as_ref().is_none_or(|(of, _)| *of != cores) {
            self.sums = None;
            let core2 = if cores == Cores::Present { &self.present } else { &self.narrow };
            self.sums = Some((cores, Gaussians::new(&self.around, core2, self.plane)));
        }
        let (_, sums) = self.sums.as_ref().expect("made above");
        Ok(sums.at(self.pool, &self.positions, &self.neighbours.with_others::<3>(a)))
    }

    fn zero(&mut self) -> Result<Vec<f64>> {
        Ok(memory::filled(0.0, self.strength.len()))
    }

    fn copy(&mut self, a: &Vec<f64>) -> Result<Vec<f64>> {
        Ok(memory::copy(a))
    }

    fn combine(&mut self, y: &mut Vec<f64>, f: f64, g: f64, x: &Vec<f64>) -> Result<()> {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = f * *y + g * x);
        Ok(())
    }

    fn product(&mut self, a: &Vec<f64>, b: &Vec<f64>) -> Result<f64> {
        Ok(self.peers.total(a.iter().zip(b).map(|(a, b)| a * b).sum()))
    }

    fn middle(&mut self) -> Result<(Vec3, usize)> {
        let n = self.positions.len() / 3;
        let sum = |i: usize| (0..n).map(|k| self.positions[3 * k + i]).sum::<f64>();
        let mut sums = [sum(0), sum(1), sum(2), n as f64];
        self.peers.sum(&mut sums);
        Ok((std::array::from_fn(|i| sums[i] / sums[3].max(1.0)), sums[3] as usize))
    }

    fn lost(&mut self, a: &Vec<f64>, middle: Vec3) -> Result<[f64; 8]> {
        let mut sums = [0.0; 8];
        for k in 0..self.positions.len() / 3 {
            let (d, b) = (sub(row(&self.positions, k), middle), row(&self.strength, k));
            let less = sub(b, row(a, k));
            let moment = cross(d, less);
            for i in 0..3 {
                sums[i] += less[i];
                sums[3 + i] += moment[i];
            }
            sums[6] += norm(b);
            sums[7] += norm(d) * norm(b);
        }
        self.peers.sum(&mut sums);
        Ok(sums)
    }

    fn moments(&mut self, a: &Vec<f64>, middle: Vec3) -> Result<[[f64; 6]; 6]> {
        let mut matrix = [[0.0; 6]; 6];
        for k in 0..self.positions.len() / 3 {
            let d = sub(row(&self.positions, k), middle);
            for j in 0..6 {
                let c = change(d, row(a, k), &std::array::from_fn(|i| if i == j { 1.0 } else { 0.0 }));
                let moment = cross(d, c);
                for i in 0..3 {
                    matrix[i][j] += c[i];
                    matrix[3 + i][j] += moment[i];
                }
            }
        }
        self.peers.sum(matrix.as_flattened_mut());
        Ok(matrix)
    }

    fn give_back(&mut self, a: &mut Vec<f64>, middle: Vec3, factors: [f64; 6]) -> Result<()> {
        for k in 0..self.positions.len() / 3 {
            let c = change(sub(row(&self.positions, k), middle), row(a, k), &factors);
            (0..3).for_each(|i| a[3 * k + i] += c[i]);
        }
        Ok(())
    }
}

/// |a| (f + g × d), f and g one after the other.
fn change(d: Vec3, a: Vec3, f: &[f64; 6]) -> Vec3 {
    let turn = cross([f[3], f[4], f[5]], d);
    std::array::from_fn(|i| norm(a) * (f[i] + turn[i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::reinterpolate::Lost;

    /// What the strengths `new` lack of `old`, relative, and given back to them.
    fn lost(x: &[f64], old: &[f64], new: &mut Vec<f64>, given_back: bool) -> (f64, f64) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let member = |k: usize| {
            let ([x, y, z], [a, b, c]) = (row(x, k), row(old, k));
            [x, y, z, a, b, c, 1.0]
        };
        let (peers, given) = (Peers::default(), (0..x.len() / 3).map(member).collect());
        let (mut particles, _) = Members::new(&peers, &pool, given, None, 1.0);
        let (middle, _) = particles.middle().unwrap();
        let lost = Lost::new(&mut particles, new, middle).unwrap();
        if given_back {
            lost.give_back(&mut particles, new).unwrap();
        }
        lost.parts()
    }

    #[test]
    fn what_is_lost_is_given_back() {
        let number = |k: usize| ((k * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5;
        let list = |seed: usize| (0..60).map(|k| number(k + seed)).collect::<Vec<f64>>();
        let old = list(100);
        // In any unit of length.
        for unit in [1.0, 1e-9, 1e-7, 1e7, 1e9] {
            let x: Vec<f64> = list(0).iter().map(|x| unit * x).collect();
            let mut new: Vec<f64> = old.iter().zip(list(200)).map(|(a, b)| a + 0.01 * b).collect();
            let (total, impulse) = lost(&x, &old, &mut new, true);
            assert!(total > 1e-4 && impulse > 1e-4, "{total} {impulse}");
            let (total, impulse) = lost(&x, &old, &mut new, false);
            assert!(total < 1e-13 && impulse < 1e-13, "{unit}: {total} {impulse}");
        }
        // All on a line: the moment along it is not theirs to have.
        let line: Vec<f64> = (0..20).flat_map(|k| [k as f64, 0.0, 0.0]).collect();
        let mut new: Vec<f64> = old.iter().map(|a| 1.01 * a).collect();
        lost(&line, &old, &mut new, true);
        assert!(lost(&line, &old, &mut new, false).0 < 1e-12 && new.iter().all(|a| a.is_finite()));
    }

    #[test]
    fn losses_are_relative() {
        let x = [0.0, 0.0, 0.0, 2.0, 0.0, 0.0];
        let (old, mut new) = ([0.0, 0.0, 1.0, 0.0, 0.0, 1.0], vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.5]);
        assert_eq!(lost(&x, &old, &mut new, false), (0.25, 0.25));
    }
}
