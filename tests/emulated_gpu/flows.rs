//! Flows whose state is in device memory, against flows on the CPU: every integrator, every kind of element, and what comes and goes
//! between steps. With direct sums both agree to rounding, which chaos has no time to make more of.

use super::harness::with_gpu;
use super::support::accuracy::relative_l2;
use super::support::tier::{full, values};
use std::sync::Arc;
use wakefmm::backend::Field;
use wakefmm::error::*;
use wakefmm::flow::edit::DustArrays;
use wakefmm::flow::options::*;
use wakefmm::flow::state::Gone;
use wakefmm::flow::{At, Flow};
use wakefmm::options::*;
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::Array::{self, Host};
use wakefmm::plan::arrays::{ArrayMut, HostReal as Number};
use wakefmm::plan::sources::{Particles, Segments, Strengths};
use wakefmm::session::Session;

const INTEGRATORS: [i32; 4] = [WFMM_INTEGRATOR_EULER, WFMM_INTEGRATOR_AB2, WFMM_INTEGRATOR_RK3, WFMM_INTEGRATOR_RK4];
const STRETCHINGS: [i32; 4] =
    [WFMM_STRETCHING_NONE, WFMM_STRETCHING_CLASSICAL, WFMM_STRETCHING_TRANSPOSE, WFMM_STRETCHING_MIXED];

pub fn session(backend: BackendKind) -> Arc<Session> {
    Session::new(&SessionOptions { backend, device: None, devices: vec![], threads: 1 }).unwrap()
}

pub fn sums(method: i32, plane: bool) -> wfmm_plan_options {
    wfmm_plan_options {
        method,
        tolerance: if method == WFMM_METHOD_FMM { 1e-4 } else { 1e-10 },
        core_radius: 0.1,
        particle_regularization: WFMM_REG_GAUSS_ERF,
        plane_axis: if plane { 3 } else { 0 },
        plane_position: if plane { -0.2 } else { 0.0 },
        ..Default::default()
    }
}

/// Everything that an option can switch on.
pub fn motion(integrator: i32, stretching: i32) -> wfmm_flow_options {
    wfmm_flow_options {
        integrator,
        stretching,
        spreading: WFMM_SPREADING_CORES,
        viscosity: 1e-3,
        squire: 1e-3,
        gravity: [0.0, 0.0, -0.5],
        fluid_density: 0.5,
        fluid_viscosity: 0.02,
        restitution: 0.5,
        friction: 0.2,
        ..Default::default()
    }
}

/// Numbers between -1 and 1 that look like chance.
pub fn numbers(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|k| ((k * 7919 + seed * 104_729 + 13) % 20_011) as f64 / 10_005.5 - 1.0).collect()
}

pub fn add_particles(f: &mut Flow, n: usize, seed: usize) {
    let (x, core) = (numbers(3 * n, seed), vec![0.2; n]);
    let a: Vec<f64> = numbers(3 * n, seed + 1).iter().map(|a| 0.1 * a).collect();
    let particles = Particles { n, position: Host(&x[..]), strength: Host(&a[..]), core: Some(Host(&core[..])) };
    f.put_particles(Some(particles), false).unwrap();
}

/// Segments of a helix, appended or bound.
pub fn lines(f: &mut Flow, n: usize, radius: f64, bound: bool) {
    let points: Vec<f64> = (0..=n)
        .flat_map(|k| {
            let angle = 0.3 * k as f64;
            [radius * angle.cos(), radius * angle.sin(), 0.02 * k as f64]
        })
        .collect();
    let ends: Vec<i32> = (0..n as i32).flat_map(|k| [k, k + 1]).collect();
    let (circulation, core) = (vec![0.3; n], vec![0.05; n]);
    let segments = Segments {
        n_points: n + 1,
        points: Host(&points[..]),
        n,
        ld: 2,
        connectivity: Host(&ends[..]),
        circulation: Host(&circulation[..]),
        core: Some(Host(&core[..])),
    };
    match bound {
        true => f.set_bound_segments(Some(segments)).unwrap(),
        false => f.put_filaments(Some(segments), false).unwrap(),
    }
}

pub fn add_tracers(f: &mut Flow, n: usize, seed: usize) {
    f.put_tracers(Some(Host(&numbers(3 * n, seed)[..])), false).unwrap();
}

/// Some of it falls to the ground at once.
pub fn add_dust(f: &mut Flow, n: usize, seed: usize) {
    let (mut x, v) = (numbers(3 * n, seed), numbers(3 * n, seed + 1));
    x.iter_mut().skip(2).step_by(3).for_each(|z| *z = -0.2 + 0.05 * (*z + 1.0));
    let (d, density): (Vec<f64>, Vec<f64>) =
        (0..n).map(|k| (0.05 + 0.01 * (k % 7) as f64, 2.0 + (k % 3) as f64)).unzip();
    let dust = DustArrays {
        position: Host(&x[..]),
        velocity: Some(Host(&v[..])),
        diameter: Host(&d[..]),
        density: Host(&density[..]),
    };
    f.put_dust(Some(dust), false).unwrap();
}

pub fn everything(f: &mut Flow) {
    add_particles(f, 40, 1);
    lines(f, 24, 0.7, false);
    lines(f, 9, 0.4, true);
    add_tracers(f, 30, 5);
    add_dust(f, 50, 7);
    f.set_free_stream([0.1, -0.05, 0.02]).unwrap();
}

/// Every number of a flow, by kind and quantity, and all identities.
pub fn all(f: &mut Flow) -> Vec<(String, Vec<f64>, Vec<i64>)> {
    let mut found = Vec::new();
    for (kind, name) in ElementKind::ALL {
        for (quantity, of) in Quantity::ALL {
            let Ok(rows) = f.rows(*kind, *quantity, usize::MAX) else { continue };
            let (mut values, mut ids) = (vec![0.0; rows * quantity.width()], vec![0; rows]);
            f.get(*kind, *quantity, ArrayMut::Host(&mut values), Some(ArrayMut::Host(&mut ids))).unwrap();
            found.push((format!("{name} {of}"), values, ids));
        }
    }
    found
}

pub fn same(gpu: &mut Flow, cpu: &mut Flow, tolerance: f64, what: &str) {
    assert_eq!(gpu.time(), cpu.time(), "{what}");
    for ((name, got, ids), (_, want, want_ids)) in all(gpu).into_iter().zip(all(cpu)) {
        assert!(ids == want_ids && got.len() == want.len(), "{what}: {name}");
        let size = want.iter().fold(1e-3, |m: f64, v| m.max(v.abs()));
        let worst =
            got.iter().zip(&want).fold(0.0, |m: f64, (a, b)| if (a - b).abs() <= m { m } else { (a - b).abs() });
        assert!(worst <= tolerance * size, "{what}: {name} differs by {worst:.1e} of {size:.1e}");
    }
    let (got, want) = (gpu.diagnostics().unwrap(), cpu.diagnostics().unwrap());
    let ways = (got.largest_displacement, want.largest_displacement);
    assert!((ways.0 - ways.1).abs() <= tolerance * ways.1.max(1e-3), "{what}: {ways:?}");
}

/// In the child of a test that runs it under several settings: it has those of one.
pub fn is_child() -> bool {
    std::env::var_os("EMULATED_IMAGES").is_some()
}

/// The same flow on both sides.
pub fn pair(plan: wfmm_plan_options, o: wfmm_flow_options) -> [Flow; 2] {
    [BackendKind::Cuda, BackendKind::Cpu].map(|backend| Flow::new(session(backend), plan, o).unwrap())
}

#[test]
fn every_integrator_moves_everything_as_on_the_cpu() {
    with_gpu("flows::every_integrator_moves_everything_as_on_the_cpu", &[], || {
        for plane in [false, true] {
            for integrator in INTEGRATORS {
                let [mut gpu, mut cpu] =
                    pair(sums(WFMM_METHOD_DIRECT, plane), motion(integrator, WFMM_STRETCHING_MIXED));
                for f in [&mut gpu, &mut cpu] {
                    everything(f);
                    f.advance(0.02, 2).unwrap();
                    f.advance(0.03, 2).unwrap();
                }
                same(&mut gpu, &mut cpu, 1e-9, &format!("integrator {integrator}, plane {plane}"));
            }
        }
    });
}

#[test]
fn every_stretching_is_as_on_the_cpu() {
    with_gpu("flows::every_stretching_is_as_on_the_cpu", &[], || {
        for stretching in STRETCHINGS {
            let [mut gpu, mut cpu] = pair(sums(WFMM_METHOD_DIRECT, false), motion(WFMM_INTEGRATOR_RK4, stretching));
            for f in [&mut gpu, &mut cpu] {
                add_particles(f, 60, 3);
                f.advance(0.05, 3).unwrap();
            }
            same(&mut gpu, &mut cpu, 1e-9, &format!("stretching {stretching}"));
        }
    });
}

#[test]
fn the_fmm_moves_a_flow_on_the_device_to_its_tolerance() {
    with_gpu("flows::the_fmm_moves_a_flow_on_the_device_to_its_tolerance", &[], || {
        for plane in [false, true] {
            let o = motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_TRANSPOSE);
            let [mut gpu, mut cpu] = pair(sums(WFMM_METHOD_FMM, plane), o);
            for f in [&mut gpu, &mut cpu] {
                add_particles(f, 700, 1);
                lines(f, 100, 0.7, false);
                add_dust(f, 300, 7);
                f.advance(0.01, 2).unwrap();
            }
            assert_eq!((gpu.report().backend, gpu.report().method), (WFMM_BACKEND_CUDA, WFMM_METHOD_FMM));
            same(&mut gpu, &mut cpu, 1e-3, &format!("plane {plane}"));
        }
    });
}

/// A checkpoint of a flow on the device goes on with the same bits, by the FMM.
#[test]
fn a_reproducible_checkpoint_goes_on_bit_for_bit() {
    with_gpu("flows::a_reproducible_checkpoint_goes_on_bit_for_bit", &[], || {
        let path = std::env::temp_dir().join(format!("wakefmm-gpu-restart-{}.npz", std::process::id()));
        let plan = wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..sums(WFMM_METHOD_FMM, true) };
        let mut f =
            Flow::new(session(BackendKind::Cuda), plan, motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_MIXED)).unwrap();
        add_particles(&mut f, if full() { 1200 } else { 700 }, 1);
        f.advance(0.01, 2).unwrap();
        f.save(&path).unwrap();
        let mut again = Flow::load(session(BackendKind::Cuda), &path).unwrap();
        std::fs::remove_file(&path).unwrap();
        f.advance(0.01, 2).unwrap();
        again.advance(0.01, 2).unwrap();
        assert_eq!(again.report().method, WFMM_METHOD_FMM);
        for (name, a, _) in all(&mut f) {
            let (_, b, _) = all(&mut again).into_iter().find(|other| other.0 == name).unwrap();
            assert!(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
        }
    });
}

/// In a periodic domain, which elements leave: arrays of the flow are not brought back into it.
#[test]
fn a_flow_in_a_periodic_domain_is_as_on_the_cpu() {
    with_gpu("flows::a_flow_in_a_periodic_domain_is_as_on_the_cpu", &[], || {
        // Strengths follow gradients, which are promised to thirty tolerances of the sums.
        let cases = [
            ([2.0; 3], WFMM_METHOD_DIRECT, 1e-9),
            ([2.0, 0.0, 3.0], WFMM_METHOD_DIRECT, 3e-3),
            ([2.0, 0.0, 0.0], WFMM_METHOD_FMM, 3e-3),
            ([2.0; 3], WFMM_METHOD_FMM, 3e-3),
        ];
        for &(period, method, tolerance) in values(&cases[..3], &cases) {
            let plan = wfmm_plan_options { period, ..sums(method, false) };
            let [mut gpu, mut cpu] = pair(plan, motion(WFMM_INTEGRATOR_RK3, WFMM_STRETCHING_TRANSPOSE));
            for f in [&mut gpu, &mut cpu] {
                add_particles(f, if method == WFMM_METHOD_FMM { 700 } else { 40 }, 1);
                add_tracers(f, 30, 5);
                f.set_free_stream([3.0, -0.05, 0.02]).unwrap();
                f.advance(0.1, if full() { 3 } else { 2 }).unwrap();
            }
            assert_eq!((gpu.report().backend, gpu.report().method), (WFMM_BACKEND_CUDA, method));
            same(&mut gpu, &mut cpu, tolerance, &format!("{period:?} method {method}"));
        }
    });
}

/// Elements that are added, removed, renewed and split between and in steps, with an integrator that remembers.
#[test]
fn what_comes_and_goes_is_as_on_the_cpu() {
    with_gpu("flows::what_comes_and_goes_is_as_on_the_cpu", &[], || {
        for integrator in [WFMM_INTEGRATOR_AB2, WFMM_INTEGRATOR_RK3] {
            let o = wfmm_flow_options { split_length: 0.25, ..motion(integrator, WFMM_STRETCHING_CLASSICAL) };
            let [mut gpu, mut cpu] = pair(sums(WFMM_METHOD_DIRECT, true), o);
            for f in [&mut gpu, &mut cpu] {
                everything(f);
                f.advance(0.02, 2).unwrap();
            }
            let segments = cpu.counts(ElementKind::Filaments).0;
            let edits: [fn(&mut Flow); 8] = [
                |f| add_dust(f, 20, 31),
                |f| f.remove(ElementKind::Dust, Gone::Identities(&[0, 3, 50, 69])).unwrap(),
                |f| add_particles(f, 10, 33),
                |f| lines(f, 12, 0.4, false),
                |f| f.remove(ElementKind::Particles, Gone::Identities(&[2, 40])).unwrap(),
                |f| lines(f, 5, 0.3, true),
                |f| f.remove(ElementKind::Filaments, Gone::Identities(&[1, 20])).unwrap(),
                |f| {
                    add_tracers(f, 7, 35);
                    add_dust(f, 1, 36);
                    f.remove(ElementKind::Tracers, Gone::Identities(&[30])).unwrap();
                },
            ];
            for (k, edit) in edits.into_iter().enumerate() {
                for f in [&mut gpu, &mut cpu] {
                    edit(f);
                    f.advance(0.02, 2).unwrap();
                }
                same(&mut gpu, &mut cpu, 1e-8, &format!("integrator {integrator}, edit {k}"));
            }
            assert!(cpu.counts(ElementKind::Filaments).0 > segments, "something was split");
            let ends = |f: &Flow| f.connectivity(ElementKind::Filaments).unwrap().collect::<Vec<_>>();
            assert_eq!(ends(&gpu), ends(&cpu));
        }
    });
}

/// All of a kind go while others stay: what the device had of it is not used again.
#[test]
fn a_kind_that_is_gone_leaves_the_others_as_on_the_cpu() {
    with_gpu("flows::a_kind_that_is_gone_leaves_the_others_as_on_the_cpu", &[], || {
        let edits: [(&str, fn(&mut Flow)); 8] = [
            ("filaments set", |f| f.put_filaments::<f64>(None, true).unwrap()),
            ("filaments removed", |f| f.remove(ElementKind::Filaments, Gone::Masked(&[1; 24])).unwrap()),
            ("bound segments set", |f| f.set_bound_segments::<f64>(None).unwrap()),
            ("dust set", |f| f.put_dust::<f64>(None, true).unwrap()),
            ("dust removed", |f| f.remove(ElementKind::Dust, Gone::Masked(&[1; 50])).unwrap()),
            ("particles set", |f| f.put_particles::<f64>(None, true).unwrap()),
            ("particles removed", |f| f.remove(ElementKind::Particles, Gone::Masked(&[1; 40])).unwrap()),
            ("tracers removed", |f| f.remove(ElementKind::Tracers, Gone::Masked(&[1; 30])).unwrap()),
        ];
        for (what, edit) in edits {
            let o = motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_MIXED);
            let [mut gpu, mut cpu] = pair(sums(WFMM_METHOD_DIRECT, false), o);
            for f in [&mut gpu, &mut cpu] {
                everything(f);
                f.advance(0.02, 2).unwrap();
                edit(f);
                f.advance(0.02, 2).unwrap();
            }
            same(&mut gpu, &mut cpu, 1e-9, what);
        }
    });
}

/// Points of filaments that no segment has move with the fluid, and the host sees it.
#[test]
fn points_without_a_segment_are_brought_back() {
    with_gpu("flows::points_without_a_segment_are_brought_back", &[], || {
        let o = motion(WFMM_INTEGRATOR_RK3, WFMM_STRETCHING_NONE);
        let [mut gpu, mut cpu] = pair(sums(WFMM_METHOD_DIRECT, false), o);
        for f in [&mut gpu, &mut cpu] {
            let segments = Segments {
                n_points: 3,
                points: Host(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 5.0, 5.0, 5.0][..]),
                n: 1,
                ld: 2,
                connectivity: Host(&[0, 1][..]),
                circulation: Host(&[1.0][..]),
                core: None,
            };
            f.put_filaments(Some(segments), true).unwrap();
            f.remove(ElementKind::Filaments, Gone::Identities(&[0])).unwrap();
            assert_eq!(f.counts(ElementKind::Filaments), (0, 1));
            f.set_free_stream([1.0, 0.0, 0.0]).unwrap();
            f.advance(0.1, 10).unwrap();
        }
        same(&mut gpu, &mut cpu, 1e-12, "a point alone");
    });
}

/// Where the response time is long, dust flies as without a fluid, to rounding.
#[test]
fn dust_that_hardly_feels_the_fluid_flies_freely() {
    with_gpu("flows::dust_that_hardly_feels_the_fluid_flies_freely", &[], || {
        for fluid_viscosity in [1e-17, 1e-20, 1e-30] {
            let o = motion(WFMM_INTEGRATOR_RK4, WFMM_STRETCHING_NONE);
            let o = wfmm_flow_options { fluid_viscosity, fluid_density: 0.0, ..o };
            let [mut gpu, mut cpu] = pair(sums(WFMM_METHOD_DIRECT, false), o);
            for f in [&mut gpu, &mut cpu] {
                let dust = DustArrays {
                    position: Host(&[0.0; 3][..]),
                    velocity: Some(Host(&[1.0, 0.0, 0.0][..])),
                    diameter: Host(&[1e-3][..]),
                    density: Host(&[2650.0][..]),
                };
                f.put_dust(Some(dust), true).unwrap();
                f.advance(1e-2, 100).unwrap();
                let found = all(f).into_iter().filter(|(name, ..)| name.contains("DUST")).collect::<Vec<_>>();
                let of = |quantity: &str| &found.iter().find(|(name, ..)| name.contains(quantity)).unwrap().1;
                let apart = [(of("POSITION"), [1.0, 0.0, -0.25]), (of("VELOCITY"), [1.0, 0.0, -0.5])]
                    .map(|(got, want)| got.iter().zip(want).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs())));
                assert!(apart.iter().all(|apart| *apart < 1e-12), "viscosity {fluid_viscosity}: {apart:?}");
            }
            same(&mut gpu, &mut cpu, 1e-12, "free flight");
        }
    });
}

/// The rates of the last step take a new free stream along, and are forgotten where the callback is another.
#[test]
fn a_new_free_stream_or_callback_is_as_on_the_cpu() {
    with_gpu("flows::a_new_free_stream_or_callback_is_as_on_the_cpu", &[], || {
        let o = motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_MIXED);
        let [mut gpu, mut cpu] = pair(sums(WFMM_METHOD_DIRECT, false), o);
        let edits: [fn(&mut Flow); 4] = [
            everything,
            |f| f.set_free_stream([-0.3, 0.2, 0.5]).unwrap(),
            |f| f.set_callback(Some(Box::new(|_, _| 0))),
            |f| f.set_callback(None),
        ];
        for (k, edit) in edits.into_iter().enumerate() {
            for f in [&mut gpu, &mut cpu] {
                edit(f);
                f.advance(0.02, 2).unwrap();
            }
            same(&mut gpu, &mut cpu, 1e-9, &format!("edit {k}"));
        }
    });
}

/// What crossed the bus so far, as the driver wrote it down: bytes of each copy.
pub fn copies() -> Vec<f64> {
    let log = std::fs::read_to_string(std::env::var("FAKE_CUDA_LOG").unwrap()).unwrap_or_default();
    let bytes = |line: &str| line.strip_prefix("to host ").or(line.strip_prefix("to device "))?.parse().ok();
    log.lines().filter_map(bytes).collect()
}

/// Bytes of a page of counters: the largest copy that a step makes.
pub const COUNTERS: f64 = 4096.0;

/// Inside `advance` no element data crosses the bus: every copy is small, and with twice the elements there are no more bytes.
#[test]
fn no_element_crosses_the_bus_in_a_step() {
    let log = std::env::temp_dir().join(format!("wakefmm-copies-{}", std::process::id()));
    let settings = [("FAKE_CUDA_COPIES", "1"), ("FAKE_CUDA_LOG", log.to_str().unwrap())];
    with_gpu("flows::no_element_crosses_the_bus_in_a_step", &settings, || {
        for plane in [false, true] {
            for integrator in INTEGRATORS {
                let sent = [1, 2].map(|times| {
                    let (plan, o) = (sums(WFMM_METHOD_DIRECT, plane), motion(integrator, WFMM_STRETCHING_CLASSICAL));
                    let mut f = Flow::new(session(BackendKind::Cuda), plan, o).unwrap();
                    add_particles(&mut f, 60 * times, 1);
                    lines(&mut f, 60 * times, 0.7, false);
                    lines(&mut f, 60 * times, 0.4, true);
                    add_tracers(&mut f, 60 * times, 5);
                    add_dust(&mut f, 60 * times, 7);
                    f.advance(1e-4, 1).unwrap();
                    let before = copies().len();
                    f.advance(1e-4, 3).unwrap();
                    let copies = copies().split_off(before);
                    assert!(copies.iter().all(|bytes| *bytes <= COUNTERS), "integrator {integrator}: {copies:?}");
                    copies.iter().sum::<f64>()
                });
                assert!(sent[0] > 0.0 && sent[0] == sent[1], "integrator {integrator}, plane {plane}: {sent:?} bytes");
            }
        }
    });
    let _ = std::fs::remove_file(&log);
}

/// A callback on a session that was asked for a GPU gets device arrays, whose numbers the emulation can see; one that may run on
/// either gets the host's.
#[test]
fn the_callback_gets_arrays_where_the_session_is() {
    with_gpu("flows::the_callback_gets_arrays_where_the_session_is", &[], || {
        for backend in [BackendKind::Cuda, BackendKind::Auto] {
            let o = motion(WFMM_INTEGRATOR_RK3, WFMM_STRETCHING_NONE);
            let [mut gpu, mut cpu] =
                [backend, BackendKind::Cpu].map(|b| Flow::new(session(b), sums(WFMM_METHOD_DIRECT, false), o).unwrap());
            for (f, wanted) in [(&mut gpu, backend == BackendKind::Cuda), (&mut cpu, false)] {
                add_particles(f, 500, 1);
                add_tracers(f, 20, 5);
                f.set_callback(Some(Box::new(move |time, at| {
                    let (n, position, velocity, on_device) = match at {
                        At::Host { position, velocity } => {
                            (position.len() / 3, position.as_ptr() as u64, velocity.as_mut_ptr() as u64, false)
                        }
                        At::Device { n, position, velocity, stream } => {
                            assert!(stream != 0);
                            (n, position, velocity, true)
                        }
                    };
                    assert_eq!(on_device, wanted);
                    // Memory of this device is the host's.
                    let x = unsafe { std::slice::from_raw_parts(position as *const f64, 3 * n) };
                    let u = unsafe { std::slice::from_raw_parts_mut(velocity as *mut f64, 3 * n) };
                    (0..n).for_each(|k| u[3 * k] += x[3 * k + 1] * (1.0 + time));
                    0
                })));
                f.advance(0.02, 2).unwrap();
                assert_eq!(f.report().backend == WFMM_BACKEND_CUDA, f.session().describe().contains("CUDA device"));
            }
            same(&mut gpu, &mut cpu, 1e-9, &format!("{backend:?}"));
            // The second step of three fails in its second stage: the first is done.
            let (time, step) = gpu.time();
            let before = all(&mut gpu);
            let mut calls = 0;
            gpu.set_callback(Some(Box::new(move |_, _| {
                calls += 1;
                if calls == 5 { 7 } else { 0 }
            })));
            assert_eq!(gpu.advance(1e-13, 3).unwrap_err().status, 7);
            assert_eq!(gpu.time(), (time + 1e-13, step + 1));
            gpu.set_callback(None);
            for ((name, got, _), (_, want, _)) in
                all(&mut gpu).into_iter().zip(before).filter(|(a, _)| !a.0.contains("VELOCITY"))
            {
                assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-11), "{name}");
            }
        }
    });
}

/// Where a step fails the state is what it was: out of range, and out of memory at any request. Under AUTO the CPU takes over.
#[test]
fn a_step_that_fails_on_the_device_changes_nothing() {
    with_gpu("flows::a_step_that_fails_on_the_device_changes_nothing", &[], || {
        let o = motion(WFMM_INTEGRATOR_RK4, WFMM_STRETCHING_CLASSICAL);
        let mut f = Flow::new(session(BackendKind::Cuda), sums(WFMM_METHOD_DIRECT, true), o).unwrap();
        everything(&mut f);
        f.advance(0.01, 1).unwrap();
        let (before, time) = (all(&mut f), f.time());
        f.set_free_stream([1e200, 0.0, 0.0]).unwrap();
        assert_eq!(f.advance(1e200, 1).unwrap_err().status, WFMM_ERR_NOT_FINITE);
        f.set_free_stream([0.1, -0.05, 0.02]).unwrap();
        assert_eq!(f.time(), time);
        let bits = |of: &[(String, Vec<f64>, Vec<i64>)]| -> Vec<u64> {
            of.iter().flat_map(|(_, values, _)| values.iter().map(|v| v.to_bits())).collect()
        };
        assert!(bits(&all(&mut f)) == bits(&before));
    });
}

#[test]
fn a_full_device_leaves_the_state_and_under_auto_the_cpu_takes_over() {
    const NAME: &str = "flows::a_full_device_leaves_the_state_and_under_auto_the_cpu_takes_over";
    // Requests of the first step and of some that grow; the engine serves some of those that fail in another way.
    let mut failures = 0;
    for (k, backend) in [3, 12, 25, 40].into_iter().flat_map(|k| [(k, "cuda"), (k, "auto")]) {
        let failure = format!("full_at_{k}_{}", k + 1);
        let text = with_gpu(NAME, &[("FAKE_CUDA", &failure), ("BACKEND", backend)], || {
            let auto = std::env::var("BACKEND").is_ok_and(|b| b == "auto");
            let o = motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_CLASSICAL);
            let on = |b| Flow::new(session(b), sums(WFMM_METHOD_DIRECT, false), o).unwrap();
            let backend = if auto { BackendKind::Auto } else { BackendKind::Cuda };
            let (mut gpu, mut cpu) = (on(backend), on(BackendKind::Cpu));
            for round in 0..3 {
                for f in [&mut gpu, &mut cpu] {
                    add_particles(f, 500 + 200 * round, round);
                    lines(f, 20, 0.7, false);
                    add_dust(f, 100 + 100 * round, 7);
                }
                cpu.advance(0.01, 1).unwrap();
                let (mut tries, before) = (0, gpu.time());
                while let Err(e) = gpu.advance(0.01, 1) {
                    assert!(!auto && e.status == WFMM_ERR_DEVICE_MEMORY && gpu.time() == before, "{e}");
                    tries += 1;
                    assert!(tries < 4, "{e}");
                    println!("a step failed");
                }
            }
            same(&mut gpu, &mut cpu, 1e-8, "after failures");
        });
        if is_child() {
            return;
        }
        failures += text.matches("a step failed").count();
    }
    assert!(failures >= 2, "{failures} failures");
}

/// A plan with a ground plane whose targets and fields are in device memory (here the host's): single and double arrays, written
/// and added, velocity and gradient, new strengths, and its own check.
fn plane_on_device<T: Number>(tolerance: f64) {
    let n = 400;
    let (x, a) = (numbers(3 * n, 1), numbers(3 * n, 2));
    let [x, a] = [x, a].map(|v| v.iter().map(|v| T::from_f64(*v)).collect::<Vec<T>>());
    // Positions and strengths in host memory, or both in device memory: they are mirrored. One in each: the targets are.
    let memories = [(false, false), (true, true), (true, false)];
    for (method, (position_there, strength_there)) in
        [WFMM_METHOD_DIRECT, WFMM_METHOD_FMM].into_iter().flat_map(|m| memories.map(|memory| (m, memory)))
    {
        for flags in [0, WFMM_FLAG_ACCUMULATE] {
            let [gpu, cpu] = [BackendKind::Cuda, BackendKind::Cpu].map(|backend| {
                let method = if backend == BackendKind::Cpu { WFMM_METHOD_DIRECT } else { method };
                let o = wfmm_plan_options { flags, ..sums(method, true) };
                let o = wfmm_plan_options { tolerance: tolerance.max(o.tolerance), ..o };
                let mut plan = Plan::new(session(backend), PlanOptions::checked(&o).unwrap());
                let on_device = backend == BackendKind::Cuda;
                let [position, first, strength] = [(&x, position_there), (&x, strength_there), (&a, strength_there)]
                    .map(|(v, there)| match on_device && there {
                        true => Array::Device { address: v.as_ptr() as u64, len: 3 * n },
                        false => Host(&v[..]),
                    });
                plan.set_particles(Some(Particles { n, position, strength: first, core: None })).unwrap();
                let targets =
                    if on_device { Array::Device { address: x.as_ptr() as u64, len: 3 * n } } else { Host(&x[..]) };
                plan.set_targets(Some((n, targets))).unwrap();
                let mut before = vec![T::from_f64(0.0); 3 * n];
                plan.evaluate(Field::Velocity { gradient: false }, ArrayMut::Host(&mut before[..]), None).unwrap();
                let strengths = Strengths { circulation: None, strength: Some((n, strength)), charge: None };
                plan.set_strengths(strengths).unwrap();
                let mut fields = [3, 9].map(|width| vec![T::from_f64(1.0); width * n]);
                let [u, g] = fields.each_mut().map(|values| match on_device {
                    true => ArrayMut::Device { address: values.as_mut_ptr() as u64, len: values.len() },
                    false => ArrayMut::Host(&mut values[..]),
                });
                plan.evaluate(Field::Velocity { gradient: true }, u, Some(g)).unwrap();
                if on_device {
                    let error = plan.check(100, 1).unwrap();
                    assert!(error <= tolerance.max(1e-4), "{error:.1e}");
                }
                fields.map(|values| values.iter().map(|v| v.to_f64()).collect::<Vec<f64>>())
            });
            for (k, times) in [(0, 1.0), (1, 30.0)] {
                let error = relative_l2(&gpu[k], &cpu[k]);
                let most = if method == WFMM_METHOD_FMM { 1e-4f64.max(tolerance) } else { tolerance };
                assert!(
                    error <= times * most,
                    "method {method}, flags {flags}, on the device {position_there} {strength_there}: field {k} has {error:.1e}"
                );
            }
        }
    }
}

#[test]
fn a_plane_takes_device_arrays() {
    with_gpu("flows::a_plane_takes_device_arrays", &[], || {
        if full() {
            plane_on_device::<f64>(1e-10);
        }
        plane_on_device::<f32>(1e-3);
    });
}

/// Steps by pseudo-particles of the device are those of the CPU's.
#[test]
fn a_flow_by_pseudo_particles_is_right() {
    with_gpu("flows::a_flow_by_pseudo_particles_is_right", &[], || {
        let o = motion(WFMM_INTEGRATOR_RK3, WFMM_STRETCHING_CLASSICAL);
        let expansion = WFMM_EXPANSION_PSEUDO_PARTICLES;
        let pseudo = wfmm_plan_options { expansion, tolerance: 1e-3, ..sums(WFMM_METHOD_FMM, false) };
        let moved = |b| {
            let mut flow = Flow::new(session(b), pseudo, o).unwrap();
            add_particles(&mut flow, 500, 1);
            flow.advance(1e-3, 2).unwrap();
            flow
        };
        let (mut gpu, mut cpu) = (moved(BackendKind::Cuda), moved(BackendKind::Cpu));
        assert_eq!((gpu.report().backend, gpu.report().method), (WFMM_BACKEND_CUDA, WFMM_METHOD_FMM));
        same(&mut gpu, &mut cpu, 1e-4, "pseudo-particles");
    });
}

/// Steps by the treecode of the device are those of the CPU's direct sum.
#[test]
fn a_flow_by_the_treecode_is_right() {
    with_gpu("flows::a_flow_by_the_treecode_is_right", &[], || {
        let o = motion(WFMM_INTEGRATOR_RK3, WFMM_STRETCHING_CLASSICAL);
        let on = |b, method| {
            let sums = wfmm_plan_options { tolerance: 1e-4, leaf_capacity: 16, ..sums(method, false) };
            let mut flow = Flow::new(session(b), sums, o).unwrap();
            add_particles(&mut flow, 500, 1);
            flow.advance(1e-3, 2).unwrap();
            flow
        };
        let mut exact = on(BackendKind::Cpu, WFMM_METHOD_DIRECT);
        same(&mut on(BackendKind::Cuda, WFMM_METHOD_TREECODE), &mut exact, 1e-4, "CUDA");
        same(&mut on(BackendKind::Auto, WFMM_METHOD_TREECODE), &mut exact, 1e-4, "AUTO");
    });
}

/// A GPU that is lost in the first step has nothing that the host has not: under AUTO the CPU takes over. Later it has the state, and
/// the flow is lost with it.
#[test]
fn a_lost_device_takes_what_it_alone_has() {
    const NAME: &str = "flows::a_lost_device_takes_what_it_alone_has";
    for (failure, later) in [("lost_at_1", "0"), ("lost_at_5", "1")] {
        with_gpu(NAME, &[("FAKE_CUDA", failure), ("LATER", later)], || {
            let later = std::env::var("LATER").is_ok_and(|text| text == "1");
            let o = motion(WFMM_INTEGRATOR_EULER, WFMM_STRETCHING_CLASSICAL);
            let on = |b| Flow::new(session(b), sums(WFMM_METHOD_DIRECT, false), o).unwrap();
            let (mut gpu, mut cpu) = (on(BackendKind::Auto), on(BackendKind::Cpu));
            [&mut gpu, &mut cpu].into_iter().for_each(|f| add_particles(f, 500, 1));
            let done = gpu.advance(1e-3, 8);
            cpu.advance(1e-3, 8).unwrap();
            if later {
                assert_eq!(done.unwrap_err().status, WFMM_ERR_DEVICE_LOST);
                assert!(gpu.time().1 > 0, "it was lost in a later step");
            } else {
                done.unwrap();
                same(&mut gpu, &mut cpu, 1e-12, "the CPU took over");
            }
        });
        if is_child() {
            return;
        }
    }
}
