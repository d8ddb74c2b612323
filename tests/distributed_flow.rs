//! Flows over many ranks: every element follows the path that it has on one rank, and keeps an identity of its own.
//!
//! Enters: rings, particles, tracers and dust dealt out over a group of threads. Leaves: each element's path by its identity.

#[cfg(target_os = "linux")]
#[path = "emulated_gpu/harness.rs"]
mod harness;
mod ranks;

use ranks::support::tier::values;
use ranks::*;
use wakefmm::distributed::Communicator;
use wakefmm::error::*;
use wakefmm::flow::Flow;
use wakefmm::flow::edit::DustArrays;
use wakefmm::flow::options::*;
use wakefmm::flow::state::Gone;
use wakefmm::options::*;
use wakefmm::plan::arrays::{Array, ArrayMut};
use wakefmm::plan::sources::{Particles, Segments};
use wakefmm::session::Session;

const PARTICLES: usize = 60;
const POINTS: usize = 24;
const DUST: usize = 40;
const TRACERS: usize = 30;

/// What a host has: particles, a ring of filaments, tracers, dust; and the numbers of its elements among all of them.
#[derive(Default)]
struct Host {
    particles: Vec<usize>,
    ring: bool,
    tracers: Vec<usize>,
    dust: Vec<usize>,
}

fn vector(seed: u64, k: usize) -> [f64; 3] {
    let mut s = seed.wrapping_mul(977).wrapping_add(k as u64 + 1);
    let mut next = || {
        s = s.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (s ^ (s >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    std::array::from_fn(|_| next())
}

fn vectors(seed: u64, numbers: &[usize]) -> Vec<f64> {
    numbers.iter().flat_map(|&k| vector(seed, k)).collect()
}

/// All on one rank, or all kinds dealt out: particles in runs, so that identities are the numbers, and nothing on the last.
fn host(rank: usize, ranks: usize) -> Host {
    if ranks == 1 {
        return Host {
            particles: (0..PARTICLES).collect(),
            ring: true,
            tracers: (0..TRACERS).collect(),
            dust: (0..DUST).collect(),
        };
    }
    let holders = ranks - 1;
    let run = |n: usize| -> Vec<usize> {
        if rank == holders { vec![] } else { (rank * n / holders..(rank + 1) * n / holders).collect() }
    };
    Host { particles: run(PARTICLES), ring: rank == 1, tracers: run(TRACERS), dust: run(DUST) }
}

fn options(integrator: i32) -> (wfmm_plan_options, wfmm_flow_options) {
    // Cores that end soon: those of VATISTAS reach through many images.
    let sums = wfmm_plan_options {
        plane_axis: 3,
        plane_position: -0.2,
        segment_regularization: WFMM_REG_LAMB_OSEEN,
        ..plan_options(WFMM_METHOD_DIRECT, 1e-6)
    };
    let motion = wfmm_flow_options {
        integrator,
        stretching: WFMM_STRETCHING_TRANSPOSE,
        spreading: WFMM_SPREADING_CORES,
        viscosity: 1e-4,
        split_length: 0.16,
        gravity: [0.0, 0.0, -1.0],
        fluid_density: 1.2,
        fluid_viscosity: 1.8e-5,
        ..Default::default()
    };
    (sums, motion)
}

fn fill(flow: &mut Flow, host: &Host) -> Result<()> {
    let (x, a) = (vectors(1, &host.particles), vectors(2, &host.particles));
    let core = vec![0.1; host.particles.len()];
    let n = host.particles.len();
    flow.put_particles(
        (n > 0).then(|| Particles {
            n,
            position: Array::Host(&x[..]),
            strength: Array::Host(&a),
            core: Some(Array::Host(&core)),
        }),
        true,
    )?;
    let angle = |k: usize| k as f64 / POINTS as f64 * std::f64::consts::TAU;
    let points: Vec<f64> =
        (0..POINTS).flat_map(|k| [0.5 + 0.4 * angle(k).cos(), 0.5 + 0.4 * angle(k).sin(), 0.5]).collect();
    let ends: Vec<i32> = (0..POINTS as i32).flat_map(|k| [k, (k + 1) % POINTS as i32]).collect();
    let (gamma, radius) = (vec![0.7; POINTS], vec![0.05; POINTS]);
    flow.put_filaments(
        host.ring.then(|| Segments {
            n_points: POINTS,
            points: Array::Host(&points[..]),
            n: POINTS,
            ld: 2,
            connectivity: Array::Host(&ends),
            circulation: Array::Host(&gamma),
            core: Some(Array::Host(&radius)),
        }),
        true,
    )?;
    let x = vectors(3, &host.tracers);
    flow.put_tracers((!x.is_empty()).then(|| Array::Host(&x[..])), true)?;
    // Dust in two calls: its second half is appended.
    let (first, second): (Vec<usize>, Vec<usize>) = host.dust.iter().partition(|&&k| k < DUST / 2);
    for (set, numbers) in [(true, first), (false, second)] {
        let (x, d) = (vectors(4, &numbers), vec![1e-3; numbers.len()]);
        let rho = vec![2000.0; numbers.len()];
        let dust = DustArrays {
            position: Array::Host(&x[..]),
            velocity: None,
            diameter: Array::Host(&d),
            density: Array::Host(&rho),
        };
        flow.put_dust((!numbers.is_empty()).then_some(dust), set)?;
    }
    flow.set_free_stream([0.3, 0.0, 0.0])
}

/// Rows of a quantity by identity.
fn rows(flow: &mut Flow, kind: ElementKind, quantity: Quantity) -> Vec<(i64, [f64; 3])> {
    let n = flow.rows(kind, quantity, usize::MAX).unwrap();
    let (mut values, mut id) = (vec![0.0; 3 * n], vec![0; n]);
    flow.get::<f64>(kind, quantity, ArrayMut::Host(&mut values), Some(ArrayMut::Host(&mut id))).unwrap();
    id.into_iter().zip(values.chunks_exact(3).map(|v| [v[0], v[1], v[2]])).collect()
}

const PATHS: [(ElementKind, Quantity); 6] = [
    (ElementKind::Particles, Quantity::Position),
    (ElementKind::Particles, Quantity::Strength),
    (ElementKind::Filaments, Quantity::Position),
    (ElementKind::Tracers, Quantity::Velocity),
    (ElementKind::Dust, Quantity::Position),
    (ElementKind::Dust, Quantity::Velocity),
];

type Rows = Vec<(i64, [f64; 3])>;

/// What all elements are after some steps, sorted by identity, and the diagnostics that every rank was told.
fn ends(ranks: usize, integrator: i32) -> (Vec<Rows>, wfmm_diagnostics_of) {
    let all = on_all(ranks, |rank, end| {
        let mut flow = flow_of(end, integrator);
        fill(&mut flow, &host(rank, ranks)).unwrap();
        flow.advance(0.01, 3).unwrap();
        // Elements that come later, without a history, and some that go.
        let more = vectors(5, if rank == 0 { &[0, 1, 2] } else { &[] });
        flow.put_tracers((!more.is_empty()).then(|| Array::Host(&more[..])), false).unwrap();
        let dust = rows(&mut flow, ElementKind::Dust, Quantity::Position);
        let gone: Vec<i64> = dust.iter().map(|d| d.0).filter(|id| id % 7 == 3).collect();
        flow.remove(ElementKind::Dust, Gone::Identities(&gone)).unwrap();
        flow.advance(0.008, 3).unwrap();
        let d = flow.diagnostics().unwrap();
        (PATHS.map(|(kind, quantity)| rows(&mut flow, kind, quantity)), d)
    });
    let d = all[0].1;
    let told = |d: &wakefmm::flow::diagnostics::wfmm_diagnostics| {
        let vectors = [d.total_strength, d.linear_impulse, d.angular_impulse].concat();
        [vectors, vec![d.largest_velocity, d.largest_displacement, d.energy, d.enstrophy, f64::from(d.reason)]].concat()
    };
    for (_, other) in &all {
        assert_eq!(format!("{:?}", told(other)), format!("{:?}", told(&d)), "diagnostics are the same on all ranks");
    }
    let joined = (0..PATHS.len()).map(|k| {
        let mut rows: Rows = all.iter().flat_map(|(paths, _)| paths[k].clone()).collect();
        rows.sort_by_key(|r| r.0);
        rows
    });
    (joined.collect(), told(&d))
}

#[allow(non_camel_case_types)]
type wfmm_diagnostics_of = Vec<f64>;

fn flow_of(end: Communicator, integrator: i32) -> Flow {
    flow_in(&session_options(), end, integrator, [0.0; 3], 1e-6)
}

fn flow_in(on: &SessionOptions, end: Communicator, integrator: i32, period: [f64; 3], tolerance: f64) -> Flow {
    let session = Session::distributed(on, end).unwrap();
    let (sums, motion) = options(integrator);
    Flow::new(session, wfmm_plan_options { period, tolerance, ..sums }, motion).unwrap()
}

fn near(a: &[f64], b: &[f64], what: &str) {
    let size = b.iter().filter(|v| v.is_finite()).fold(1e-3f64, |m, v| m.max(v.abs()));
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-10 * size || (x.is_nan() && y.is_nan()), "{what}: {x} and {y}");
    }
}

#[test]
fn paths_are_those_of_one_rank_and_identities_are_one_series() {
    for integrator in [WFMM_INTEGRATOR_RK4, WFMM_INTEGRATOR_AB2] {
        let (want, d) = ends(1, integrator);
        for ranks in [2, 4] {
            let (got, told) = ends(ranks, integrator);
            near(&told, &d, "diagnostics");
            for (k, (got, want)) in got.iter().zip(&want).enumerate() {
                let ids = |rows: &Rows| rows.iter().map(|r| r.0).collect::<Vec<_>>();
                assert_eq!(ids(got), ids(want), "{ranks} ranks, {:?}", PATHS[k]);
                assert!(!want.is_empty());
                let values = |rows: &Rows| rows.iter().flat_map(|r| r.1).collect::<Vec<_>>();
                near(&values(got), &values(want), &format!("{ranks} ranks, integrator {integrator}, {:?}", PATHS[k]));
            }
        }
        // Segments were split.
        assert!(want[2].len() > POINTS, "{}", want[2].len());
    }
}

/// Where all elements are after `steps` in a domain, and what else they have, kind by kind in the order of identities.
fn paths_in(on: &SessionOptions, ranks: usize, period: [f64; 3], (steps, tolerance): (i64, f64)) -> Vec<Vec<f64>> {
    let all = on_all(ranks, |rank, end| {
        let mut flow = flow_in(on, end, WFMM_INTEGRATOR_RK4, period, tolerance);
        fill(&mut flow, &host(rank, ranks)).unwrap();
        flow.set_free_stream([20.0, 0.0, 0.0]).unwrap();
        flow.advance(0.005, steps).unwrap();
        PATHS.map(|(kind, quantity)| rows(&mut flow, kind, quantity))
    });
    let of_kind = |k: usize| {
        let mut rows: Rows = all.iter().flat_map(|paths| paths[k].clone()).collect();
        rows.sort_by_key(|r| r.0);
        rows.iter().flat_map(|r| r.1).collect()
    };
    (0..PATHS.len()).map(of_kind).collect()
}

/// Velocities of particles on a lattice whose cores were above the limit of the flow, after a step; of all ranks, and what is told.
fn narrowed(ranks: usize, split: Split, plane_axis: i32) -> (Vec<[f64; 3]>, Vec<f64>) {
    const HALF: i32 = 5;
    const EDGE: usize = 2 * HALF as usize + 1;
    let limit = 0.55;
    let number = |k: usize, seed: u64| vector(seed, k).map(|v| v - 0.5);
    let lattice = |k: usize| [k / EDGE.pow(2), k / EDGE % EDGE, k % EDGE].map(|i| 0.4 * f64::from(i as i32 - HALF));
    let position = |k: usize| -> [f64; 3] {
        let (x, moved) = (lattice(k), number(k, 31));
        std::array::from_fn(|i| x[i] + 0.08 * moved[i] + if i == 2 { 2.05 } else { 0.0 })
    };
    let strength = |k: usize| {
        let [x, y, z] = lattice(k);
        let bell = (-(x * x + y * y + z * z) / 0.4).exp();
        [-y * bell, x * bell, 0.3 * bell]
    };
    let all = on_all(ranks, |rank, end| {
        let sums = wfmm_plan_options { plane_axis, ..plan_options(WFMM_METHOD_DIRECT, 1e-6) };
        let motion = wfmm_flow_options {
            integrator: WFMM_INTEGRATOR_EULER,
            spreading: WFMM_SPREADING_CORES,
            core_limit: limit,
            viscosity: 1e-9,
            ..Default::default()
        };
        let mut flow = Flow::new(Session::distributed(&session_options(), end).unwrap(), sums, motion).unwrap();
        let mine: Vec<usize> = (0..EDGE.pow(3)).filter(|&k| split(k, EDGE.pow(3), [0.0; 3], ranks) == rank).collect();
        let numbers = |of: &dyn Fn(usize) -> [f64; 3]| mine.iter().flat_map(|&k| of(k)).collect::<Vec<f64>>();
        let (x, a, core) = (numbers(&position), numbers(&strength), vec![limit + 0.01; mine.len()]);
        let (position, strength, core) = (Array::Host(&x[..]), Array::Host(&a[..]), Some(Array::Host(&core[..])));
        let given = Particles { n: mine.len(), position, strength, core };
        flow.put_particles((!mine.is_empty()).then_some(given), true).unwrap();
        flow.advance(1e-9, 2).unwrap();
        let d = flow.diagnostics().unwrap();
        let radius = flow_radii(&mut flow);
        assert!(radius.iter().all(|c| (c - limit / 2f64.sqrt()).abs() < 1e-8), "{radius:?}");
        let told = [d.reinterpolation_residual, d.reinterpolation_strength, d.reinterpolation_impulse];
        assert_eq!(d.reinterpolations, 1);
        let got = rows(&mut flow, ElementKind::Particles, Quantity::Velocity).into_iter().map(|r| r.1);
        (mine.into_iter().zip(got).collect::<Vec<_>>(), [told.to_vec(), d.total_strength.to_vec()].concat())
    });
    let mut rows: Vec<(usize, [f64; 3])> = all.iter().flat_map(|(rows, _)| rows.clone()).collect();
    rows.sort_by_key(|r| r.0);
    assert!(all.iter().all(|(_, told)| told == &all[0].1), "the same is told on all ranks");
    (rows.into_iter().map(|r| r.1).collect(), all[0].1.clone())
}

fn flow_radii(flow: &mut Flow) -> Vec<f64> {
    let n = flow.rows(ElementKind::Particles, Quantity::CoreRadius, usize::MAX).unwrap();
    let mut values = vec![0.0; n];
    flow.get::<f64>(ElementKind::Particles, Quantity::CoreRadius, ArrayMut::Host(&mut values), None).unwrap();
    values
}

/// Wherever particles are, those of other ranks carry their share of the vorticity. Velocities are compared: strengths of nearly the same
/// vorticity can differ by more.
#[test]
fn cores_are_narrowed_with_the_particles_of_all_ranks() {
    for (plane_axis, parts) in [(0, &[(2, 0), (4, 4)][..]), (3, &[(3, 2)])] {
        let (want, told) = narrowed(1, SPLITS[0].1, plane_axis);
        assert!(told[0] > 1e-7 && told[0] < 2e-3, "{told:?}");
        for &(ranks, split) in parts {
            let (got, now) = narrowed(ranks, SPLITS[split].1, plane_axis);
            let difference = apart(got.as_flattened(), want.as_flattened());
            let what = format!("{ranks} ranks, {}, plane {plane_axis}: {difference:.1e}", SPLITS[split].0);
            println!("{what} {now:?} {told:?}");
            assert!(difference < 3e-5, "{what}");
            assert!((now[0] / told[0] - 1.0).abs() < 0.1, "{what}: {now:?} {told:?}");
            // With a plane nothing is given back.
            if plane_axis == 0 {
                near(&now[3..], &told[3..], "total strength");
            }
        }
    }
}

/// The largest difference of two kinds of rows, over the largest number.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let size = b.iter().filter(|v| v.is_finite()).fold(1e-3f64, |m, v| m.max(v.abs()));
    a.iter().zip(b).filter(|(x, _)| x.is_finite()).fold(0.0f64, |m, (x, y)| m.max((x - y).abs() / size))
}

const SLAB: [f64; 3] = [0.9, 0.8, 0.0];

/// Elements that leave the domain, on any rank, go on.
#[test]
fn paths_in_periodic_domains_are_those_of_one_rank() {
    let paths = |ranks: usize, period: [f64; 3]| paths_in(&session_options(), ranks, period, (4, 1e-6));
    let (one, open) = (paths(1, SLAB), paths(1, [0.0; 3]));
    assert!(one.iter().zip(&open).any(|(a, b)| a.len() == b.len() && apart(a, b) > 1e-3), "images act");
    for &ranks in values(&[4], &[2, 4]) {
        for (k, (got, want)) in paths(ranks, SLAB).iter().zip(&one).enumerate() {
            let difference = apart(got, want);
            assert!(difference < 1e-7, "{ranks} ranks, {:?}: {difference:e}", PATHS[k]);
        }
    }
}

/// The same on a GPU, which both ranks share, beside one rank on a CPU.
#[cfg(target_os = "linux")]
#[test]
fn paths_in_periodic_domains_on_gpus_are_those_of_a_cpu() {
    harness::with_gpu("paths_in_periodic_domains_on_gpus_are_those_of_a_cpu", &[], || {
        let gpu = SessionOptions { backend: BackendKind::Cuda, ..session_options() };
        let one = paths_in(&session_options(), 1, SLAB, (1, 1e-4));
        for (k, (got, want)) in paths_in(&gpu, 2, SLAB, (1, 1e-4)).iter().zip(&one).enumerate() {
            let difference = apart(got, want);
            assert!(difference < 1e-6, "{:?}: {difference:e}", PATHS[k]);
        }
    });
}

#[test]
fn energy_of_particles_is_that_of_all_ranks() {
    let told = |ranks: usize| {
        on_all(ranks, |rank, end| {
            let mut flow = flow_of(end, WFMM_INTEGRATOR_EULER);
            fill(&mut flow, &Host { ring: false, ..host(rank, ranks) }).unwrap();
            let d = flow.diagnostics().unwrap();
            assert_eq!(d.reason, 0);
            [d.energy, d.enstrophy, d.divergence]
        })
    };
    let one = told(1)[0];
    assert!(one.iter().all(|v| *v > 0.0));
    for ranks in [2, 3] {
        told(ranks).iter().for_each(|d| near(d, &one, "energy, enstrophy, divergence"));
    }
}

/// Whoever fails, in elements, options, callbacks or motion: the same status on all ranks, and the state as it was.
#[test]
fn an_error_on_one_rank_leaves_the_flows_of_all_as_they_were() {
    let ranks = 3;
    let statuses = on_all(ranks, |rank, end| {
        let mut flow = flow_of(end, WFMM_INTEGRATOR_RK4);
        fill(&mut flow, &host(rank, ranks)).unwrap();
        flow.advance(0.01, 1).unwrap();
        let before = PATHS.map(|(kind, quantity)| rows(&mut flow, kind, quantity));
        let mut seen = vec![];
        let nan = [0.0, f64::NAN, 0.0];
        let x = if rank == 2 { &nan[..] } else { &[0.1, 0.2, 0.3] };
        seen.push(flow.put_tracers(Some(Array::Host(x)), true).unwrap_err());
        let id = if rank == 0 { &[i64::MAX][..] } else { &[] };
        seen.push(flow.remove(ElementKind::Dust, Gone::Identities(id)).unwrap_err());
        seen.push(flow.advance(if rank == 1 { -1.0 } else { 0.1 }, 1).unwrap_err());
        seen.push(flow.advance(if rank == 1 { 0.2 } else { 0.1 }, 1).unwrap_err());
        seen.push(flow.set_free_stream([rank as f64, 0.0, 0.0]).unwrap_err());
        // A callback that fails on rank 1 in the third stage of a step.
        let mut calls = 0;
        flow.set_callback(Some(Box::new(move |_, _| {
            calls += 1;
            if rank == 1 && calls == 3 { 77 } else { 0 }
        })));
        seen.push(flow.advance(0.01, 1).unwrap_err());
        flow.set_callback(None);
        let mut u = [0.0; 3];
        let point = [0.1, if rank == 2 { f64::INFINITY } else { 0.0 }, 0.0];
        seen.push(flow.velocity_at(Array::Host(&point[..]), ArrayMut::Host(&mut u[..]), None).unwrap_err());
        let after = PATHS.map(|(kind, quantity)| rows(&mut flow, kind, quantity));
        assert_eq!(before, after, "the state is as it was");
        // All go on.
        flow.advance(0.01, 1).unwrap();
        assert_eq!(flow.time().1, 2);
        seen.into_iter().map(|e| (e.status, e.message)).collect::<Vec<_>>()
    });
    let want =
        [WFMM_ERR_NOT_FINITE, WFMM_ERR_VALUE, WFMM_ERR_VALUE, WFMM_ERR_VALUE, WFMM_ERR_VALUE, 77, WFMM_ERR_NOT_FINITE];
    assert_eq!(statuses[0].iter().map(|s| s.0).collect::<Vec<_>>(), want);
    assert!(statuses.iter().all(|s| *s == statuses[0]), "{statuses:?}");
    for (k, rank) in [(0, 2), (1, 0), (2, 1), (5, 1), (6, 2)] {
        assert!(statuses[0][k].1.starts_with(&format!("rank {rank}: ")), "{}", statuses[0][k].1);
    }
}

#[test]
fn checkpoints_are_a_file_a_rank() {
    let folder = std::env::temp_dir().join(format!("wakefmm-ranks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |rank: usize| folder.join(format!("part-{rank}.npz"));
    let ranks = 3;
    let run = |from_file: bool| {
        on_all(ranks, |rank, end| {
            let mut flow = if from_file {
                let session = Session::distributed(&session_options(), end).unwrap();
                Flow::load(session, &path(rank)).unwrap()
            } else {
                let mut flow = flow_of(end, WFMM_INTEGRATOR_AB2);
                fill(&mut flow, &host(rank, ranks)).unwrap();
                flow.advance(0.01, 2).unwrap();
                flow.save(&path(rank)).unwrap();
                flow
            };
            flow.advance(0.01, 2).unwrap();
            PATHS.map(|(kind, quantity)| rows(&mut flow, kind, quantity))
        })
    };
    assert_eq!(run(false), run(true), "it goes on where it was");
    // Another rank's file, a file that is missing on one rank, another number of ranks.
    let errors = on_all(ranks, |rank, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        let wrong = Flow::load(session.clone(), &path((rank + 1) % ranks)).err().unwrap();
        let missing = Flow::load(session, &path(if rank == 1 { 99 } else { rank })).err().unwrap();
        [wrong, missing].map(|e| (e.status, e.message))
    });
    assert!(errors.iter().all(|e| *e == errors[0] && e[0].0 == WFMM_ERR_FILE && e[1].0 == WFMM_ERR_FILE), "{errors:?}");
    assert!(errors[0][1].1.starts_with("rank 1: "), "{}", errors[0][1].1);
    // All ranks to one file, which serial programs name; files of two saves.
    let kept = std::fs::read(path(0)).unwrap();
    let mistaken = on_all(ranks, |rank, end| {
        let mut flow = flow_of(end, WFMM_INTEGRATOR_AB2);
        fill(&mut flow, &host(rank, ranks)).unwrap();
        flow.advance(0.01, 2).unwrap();
        let same = flow.save(&path(0)).err().unwrap();
        flow.save(&folder.join(format!("again-{rank}.npz"))).unwrap();
        let session = flow.session().clone();
        let mixed = if rank == 1 { folder.join("again-1.npz") } else { path(rank) };
        [same, Flow::load(session, &mixed).err().unwrap()].map(|e| (e.status, e.message))
    });
    assert!(mistaken.iter().all(|e| *e == mistaken[0] && e[0].0 == WFMM_ERR_FILE && e[1].0 != 0), "{mistaken:?}");
    assert!(mistaken[0][0].1.contains("saves to this file, too"), "{}", mistaken[0][0].1);
    assert!(mistaken[0][1].1.contains("number of the save"), "{}", mistaken[0][1].1);
    assert_eq!(std::fs::read(path(0)).unwrap(), kept);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2 * ranks, "no other file is left");
    let fewer = on_all(2, |rank, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        Flow::load(session, &path(rank)).err().unwrap().status
    });
    assert_eq!(fewer, [WFMM_ERR_FILE; 2]);
    std::fs::remove_dir_all(&folder).unwrap();
}
