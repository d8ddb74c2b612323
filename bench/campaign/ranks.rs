//! A problem dealt out to ranks, which are threads of this process: the field at all targets in the order of the whole.

use crate::support::accuracy::Field;
use crate::support::api::{Scalar, flat, list};
use crate::support::cases::{Case, Vec3};
use std::sync::Arc;
use wakefmm::backend::Field as Wanted;
use wakefmm::distributed::{Communicator, threads};
use wakefmm::options::{BackendKind, PlanOptions, SessionOptions};
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::{Array, ArrayMut, HostReal};
use wakefmm::plan::sources::{Particles, Segments};
use wakefmm::report::wfmm_report;
use wakefmm::session::Session;

use super::draw::Problem;
use super::evaluate::options;
use super::exact::rows;

/// How elements are dealt out: the rank of number k of n, `side` of it in its own box along the first axis (0 to 1).
type Split = fn(k: usize, n: usize, side: f64, ranks: usize) -> usize;
pub const SPLITS: [(&str, Split); 5] = [
    ("evenly", |k, n, _, p| k * p / n.max(1)),
    ("to the last", |_, _, _, p| p - 1),
    ("in turn", |k, _, _, p| k % p),
    ("by slabs", |_, _, side, p| ((side * p as f64) as usize).min(p - 1)),
    ("in turn, none to the first", |k, _, _, p| if p == 1 { 0 } else { 1 + k % (p - 1) }),
];

/// Numbers of those that a rank gets.
fn mine(split: Split, x: &[Vec3], rank: usize, ranks: usize) -> Vec<usize> {
    let (low, high) = x.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x[0]), h.max(x[0])));
    let side = |x: Vec3| if high > low { (x[0] - low) / (high - low) } else { 0.0 };
    (0..x.len()).filter(|&k| split(k, x.len(), side(x[k]), ranks) == rank).collect()
}

fn taken<T: Copy>(from: &[T], which: &[usize]) -> Vec<T> {
    which.iter().map(|&k| from[k]).collect()
}

/// What one rank holds of a case, and the numbers of its targets.
fn part(case: &Case, split: Split, rank: usize, ranks: usize) -> (Case, Vec<usize>) {
    let firsts: Vec<Vec3> = case.ends.chunks(2).map(|e| case.points[e[0] as usize]).collect();
    let (s, p) = (mine(split, &firsts, rank, ranks), mine(split, &case.position, rank, ranks));
    let (q, t) = (mine(split, &case.charge_position, rank, ranks), mine(split, &case.targets, rank, ranks));
    let part = Case {
        points: case.points.clone(),
        ends: s.iter().flat_map(|&k| [case.ends[2 * k], case.ends[2 * k + 1]]).collect(),
        circulation: taken(&case.circulation, &s),
        segment_core: taken(&case.segment_core, &s),
        position: taken(&case.position, &p),
        strength: taken(&case.strength, &p),
        particle_core: taken(&case.particle_core, &p),
        charge_position: taken(&case.charge_position, &q),
        charge: taken(&case.charge, &q),
        targets: taken(&case.targets, &t),
    };
    (part, t)
}

/// What one rank has of the field.
struct Share<T> {
    numbers: Vec<usize>,
    main: Vec<T>,
    gradient: Vec<T>,
    report: wfmm_report,
    recipe: String,
}

fn evaluate_part<T: Scalar + HostReal>(
    backend: BackendKind,
    end: Communicator,
    p: &Problem,
    case: &Case,
    (mine, numbers): (Case, Vec<usize>),
) -> Result<Share<T>, String> {
    let own = |e: wakefmm::error::Error| e.message;
    let on = SessionOptions { backend, device: None, devices: vec![], threads: 1 };
    let session = Session::distributed(&on, end).map_err(own)?;
    let asked = PlanOptions::checked(&options(p, case)).map_err(own)?;
    let mut plan = Plan::create(session, asked).map_err(own)?;
    let (points, position, strength) = (flat::<T>(&mine.points), flat::<T>(&mine.position), flat::<T>(&mine.strength));
    let (circulation, charge) = (list::<T>(&mine.circulation), list::<T>(&mine.charge));
    let cores = [list::<T>(&mine.segment_core), list::<T>(&mine.particle_core)];
    let [of_segments, of_particles] = cores.each_ref().map(|c| (!p.core_option()).then_some(Array::Host(&c[..])));
    let n = circulation.len();
    plan.set_segments((n > 0).then(|| Segments {
        n_points: mine.points.len(),
        points: Array::Host(&points[..]),
        n,
        ld: 2,
        connectivity: Array::Host(&mine.ends),
        circulation: Array::Host(&circulation),
        core: of_segments,
    }))
    .map_err(own)?;
    let n = mine.position.len();
    plan.set_particles((n > 0).then(|| Particles {
        n,
        position: Array::Host(&position[..]),
        strength: Array::Host(&strength),
        core: of_particles,
    }))
    .map_err(own)?;
    let (n, at) = (charge.len(), flat::<T>(&mine.charge_position));
    plan.set_charges((n > 0).then_some((n, Array::Host(&at[..]), Array::Host(&charge[..])))).map_err(own)?;
    let (m, at) = (mine.targets.len(), flat::<T>(&mine.targets));
    plan.set_targets((m > 0).then_some((m, Array::Host(&at[..])))).map_err(own)?;
    let (width, wide) = rows(case);
    let (mut main, mut slopes) = (vec![T::default(); width * m], vec![T::default(); wide * m]);
    let wanted = match case.charge.is_empty() {
        true => Wanted::Velocity { gradient: p.gradient },
        false => Wanted::Potential { gradient: p.gradient },
    };
    let gradient = (p.gradient && m > 0).then_some(ArrayMut::Host(&mut slopes[..]));
    plan.evaluate(wanted, ArrayMut::Host(&mut main[..]), gradient).map_err(own)?;
    Ok(Share { numbers, main, gradient: slopes, report: (&plan.report()).into(), recipe: plan.recipe() })
}

/// The field of all ranks, report and recipe of the first.
pub fn evaluate<T: Scalar + HostReal>(backend: BackendKind, p: &Problem, case: &Case) -> (Field, wfmm_report, String) {
    let (ranks, split) = p.ranks.expect("a problem of many ranks");
    let shares: Vec<Result<Share<T>, String>> = std::thread::scope(|scope| {
        let one = |(rank, end): (usize, Arc<threads::ThreadExchange>)| {
            let mine = part(case, SPLITS[split].1, rank, ranks);
            scope.spawn(move || evaluate_part(backend, Communicator::new(end), p, case, mine))
        };
        let all: Vec<_> = threads::group(ranks).into_iter().enumerate().map(one).collect();
        all.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    });
    let ((width, wide), m) = (rows(case), case.targets.len());
    let mut field =
        Field { main: vec![f64::NAN; width * m], gradient: vec![f64::NAN; if p.gradient { wide * m } else { 0 }] };
    let mut first = None;
    for share in shares {
        let share = share.unwrap_or_else(|message| panic!("{message}"));
        for (at, k) in share.numbers.iter().enumerate() {
            let put = |to: &mut [f64], from: &[T], w: usize| {
                to[w * k..w * (k + 1)].iter_mut().zip(&from[w * at..]).for_each(|(to, v)| *to = v.f64());
            };
            put(&mut field.main, &share.main, width);
            if p.gradient {
                put(&mut field.gradient, &share.gradient, wide);
            }
        }
        first.get_or_insert((share.report, share.recipe));
    }
    let (report, recipe) = first.expect("a rank");
    (field, report, recipe)
}
