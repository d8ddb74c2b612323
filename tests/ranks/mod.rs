//! What tests of distributed sessions share: problems dealt out to ranks, which are threads, and one process' direct sum of them.
//!
//! Enters: small problems, split in every way. Leaves: all ranks' fields in the order of the whole. No test waits longer than its
//! time limit.
#![allow(dead_code)]

#[path = "../../bench/support/mod.rs"]
pub mod support;

pub mod domains;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::cases::{Case, Kind, Vec3, case};
use wakefmm::backend::Field;
use wakefmm::distributed::{Communicator, threads};
use wakefmm::error::*;
use wakefmm::options::*;
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::{Array, ArrayMut};
use wakefmm::plan::sources::{Particles, Segments, Strengths};
use wakefmm::session::Session;

pub const LIMIT: Duration = Duration::from_secs(240);

/// How elements are dealt out: the rank of number k of n at x.
pub type Split = fn(k: usize, n: usize, x: Vec3, ranks: usize) -> usize;
pub const SPLITS: [(&str, Split); 5] = [
    ("even", |k, n, _, p| k * p / n.max(1)),
    ("all on the last", |_, _, _, p| p - 1),
    ("interleaved", |k, _, _, p| k % p),
    ("slabs", |_, _, x, p| ((x[0].clamp(0.0, 0.999) * p as f64) as usize).min(p - 1)),
    ("none on the first", |k, _, _, p| if p == 1 { 0 } else { 1 + k % (p - 1) }),
];

pub fn session_options() -> SessionOptions {
    SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads: 1 }
}

pub fn plan_options(method: i32, tolerance: f64) -> wfmm_plan_options {
    wfmm_plan_options { method, tolerance, ..Default::default() }
}

pub fn flat(x: &[Vec3]) -> Vec<f64> {
    x.as_flattened().to_vec()
}

/// What one rank holds of a case, and the numbers of its targets.
pub fn part(c: &Case, split: Split, rank: usize, ranks: usize) -> (Case, Vec<usize>) {
    let mine = |n: usize, x: &dyn Fn(usize) -> Vec3| -> Vec<usize> {
        (0..n).filter(|&k| split(k, n, x(k), ranks) == rank).collect()
    };
    let s = mine(c.circulation.len(), &|k| c.points[c.ends[2 * k] as usize]);
    let p = mine(c.position.len(), &|k| c.position[k]);
    let q = mine(c.charge.len(), &|k| c.charge_position[k]);
    let t = mine(c.targets.len(), &|k| c.targets[k]);
    let part = Case {
        points: c.points.clone(),
        ends: s.iter().flat_map(|&k| [c.ends[2 * k], c.ends[2 * k + 1]]).collect(),
        circulation: s.iter().map(|&k| c.circulation[k]).collect(),
        segment_core: s.iter().map(|&k| c.segment_core[k]).collect(),
        position: p.iter().map(|&k| c.position[k]).collect(),
        strength: p.iter().map(|&k| c.strength[k]).collect(),
        particle_core: p.iter().map(|&k| c.particle_core[k]).collect(),
        charge_position: q.iter().map(|&k| c.charge_position[k]).collect(),
        charge: q.iter().map(|&k| c.charge[k]).collect(),
        targets: t.iter().map(|&k| c.targets[k]).collect(),
    };
    (part, t)
}

pub fn fill(plan: &mut Plan, c: &Case) -> Result<()> {
    let (points, position, strength) = (flat(&c.points), flat(&c.position), flat(&c.strength));
    let n = c.circulation.len();
    plan.set_segments((n > 0).then(|| Segments {
        n_points: c.points.len(),
        points: Array::Host(&points[..]),
        n,
        ld: 2,
        connectivity: Array::Host(&c.ends),
        circulation: Array::Host(&c.circulation),
        core: Some(Array::Host(&c.segment_core)),
    }))?;
    let n = c.position.len();
    plan.set_particles((n > 0).then(|| Particles {
        n,
        position: Array::Host(&position[..]),
        strength: Array::Host(&strength),
        core: Some(Array::Host(&c.particle_core)),
    }))?;
    let n = c.charge.len();
    plan.set_charges((n > 0).then_some((n, Array::Host(&flat(&c.charge_position)[..]), Array::Host(&c.charge))))?;
    let n = c.targets.len();
    plan.set_targets((n > 0).then_some((n, Array::Host(&flat(&c.targets)[..]))))
}

/// Gives the particles of a plan so many times the strengths of `c`.
pub fn set_multiples(plan: &mut Plan, c: &Case, factor: f64) {
    let strength: Vec<f64> = flat(&c.strength).iter().map(|a| factor * a).collect();
    let n = c.strength.len();
    let strength = (n > 0).then_some((n, Array::Host(&strength[..])));
    plan.set_strengths(Strengths { circulation: None, strength, charge: None }).unwrap();
}

pub fn field_of(plan: &mut Plan, field: Field, m: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let (width, wide, gradient) = match field {
        Field::Velocity { gradient } => (3, 9, gradient),
        Field::Potential { gradient } => (1, 3, gradient),
    };
    let (mut u, mut g) = (vec![f64::NAN; width * m], vec![f64::NAN; if gradient { wide * m } else { 0 }]);
    let slopes = (gradient && m > 0).then_some(ArrayMut::Host(&mut g[..]));
    plan.evaluate(field, ArrayMut::Host(&mut u[..]), slopes)?;
    Ok((u, g))
}

/// The direct sum in double precision of one process.
pub fn exact(c: &Case, field: Field) -> (Vec<f64>, Vec<f64>) {
    exact_of(c, field, &plan_options(WFMM_METHOD_DIRECT, 1e-10))
}

/// The field of one process.
pub fn exact_of(c: &Case, field: Field, o: &wfmm_plan_options) -> (Vec<f64>, Vec<f64>) {
    let session = Session::new(&SessionOptions { threads: 2, ..session_options() }).unwrap();
    let mut plan = Plan::new(session, PlanOptions::checked(o).unwrap());
    fill(&mut plan, c).unwrap();
    field_of(&mut plan, field, c.targets.len()).unwrap()
}

/// Runs `work` on every rank of a group within the time limit.
pub fn on_all<R: Send>(ranks: usize, work: impl Fn(usize, Communicator) -> R + Sync) -> Vec<R> {
    let ends: Vec<Mutex<Option<Arc<threads::ThreadExchange>>>> =
        threads::group(ranks).into_iter().map(|end| Mutex::new(Some(end))).collect();
    on_threads(ranks, |rank| {
        let end = ends[rank].lock().unwrap().take().expect("taken once");
        work(rank, Communicator::new(end))
    })
}

/// Runs `work` on as many threads within the time limit.
pub fn on_threads<R: Send>(ranks: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let (done, start) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|s| {
        let (work, done) = (&work, &done);
        let all: Vec<_> = (0..ranks)
            .map(|rank| {
                s.spawn(move || {
                    let result = work(rank);
                    done.fetch_add(1, Ordering::SeqCst);
                    result
                })
            })
            .collect();
        while done.load(Ordering::SeqCst) < ranks && !all.iter().all(|t| t.is_finished()) {
            if start.elapsed() > LIMIT {
                eprintln!("{} of {ranks} ranks have returned after {LIMIT:?}", done.load(Ordering::SeqCst));
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        all.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

pub fn plan_of(c: Communicator, options: &wfmm_plan_options) -> Plan {
    plan_on(&session_options(), c, options)
}

pub fn plan_on(on: &SessionOptions, c: Communicator, options: &wfmm_plan_options) -> Plan {
    let session = Session::distributed(on, c).unwrap();
    Plan::create(session, PlanOptions::checked(options).unwrap()).unwrap()
}

/// All ranks' fields in the order of the whole case, what rank 0 says of them, and the global check.
pub fn together(
    c: &Case,
    ranks: usize,
    split: Split,
    o: &wfmm_plan_options,
    field: Field,
) -> (Vec<f64>, Vec<f64>, Plan, f64) {
    together_on(&session_options(), c, ranks, split, o, field)
}

/// The same with sessions of these options.
pub fn together_on(
    on: &SessionOptions,
    c: &Case,
    ranks: usize,
    split: Split,
    o: &wfmm_plan_options,
    field: Field,
) -> (Vec<f64>, Vec<f64>, Plan, f64) {
    let parts = on_all(ranks, |rank, end| {
        let mut plan = plan_on(on, end, o);
        let (mine, numbers) = part(c, split, rank, ranks);
        fill(&mut plan, &mine).unwrap();
        let field = field_of(&mut plan, field, mine.targets.len()).unwrap();
        let found = plan.check(100_000, 3).unwrap();
        (numbers, field, plan, found)
    });
    let m = c.targets.len();
    let width = |v: &dyn Fn(&(Vec<f64>, Vec<f64>)) -> usize| {
        parts.iter().find(|p| !p.0.is_empty()).map_or(0, |p| v(&p.1) / p.0.len())
    };
    let (k, w) = (width(&|f| f.0.len()), width(&|f| f.1.len()));
    let (mut u, mut g) = (vec![f64::NAN; k * m], vec![f64::NAN; w * m]);
    let mut told: Option<(String, f64)> = None;
    let mut first = None;
    for (numbers, (main, gradient), plan, found) in parts {
        for (at, t) in numbers.into_iter().enumerate() {
            u[k * t..k * (t + 1)].copy_from_slice(&main[k * at..k * (at + 1)]);
            g[w * t..w * (t + 1)].copy_from_slice(&gradient[w * at..w * (at + 1)]);
        }
        let recipe = plan.recipe();
        let told = told.get_or_insert((recipe.clone(), found));
        assert_eq!((&told.0, told.1), (&recipe, found), "recipe and check are the same on all ranks");
        first.get_or_insert(plan);
    }
    let found = told.unwrap().1;
    (u, g, first.unwrap(), found)
}

pub fn relative_l2(got: &[f64], want: &[f64]) -> f64 {
    let wrong: f64 = got.iter().zip(want).map(|(g, w)| (g - w) * (g - w)).sum();
    (wrong / want.iter().map(|w| w * w).sum::<f64>()).sqrt()
}

pub fn charges(n: usize, m: usize) -> Case {
    case("cube", Kind::Charges, n, m, 1.0)
}

pub const VELOCITY: Field = Field::Velocity { gradient: true };
pub const POTENTIAL: Field = Field::Potential { gradient: true };
