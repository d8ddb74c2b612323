//! Arrays of flows in device memory: what is set from them and read into them is what host arrays give, number by number.

use super::flows::{
    COUNTERS, add_particles, add_tracers, all, copies, everything, is_child, motion, same, session, sums,
};
use super::harness::with_gpu;
use super::support::random::Random;
use wakefmm::error::*;
use wakefmm::flow::Flow;
use wakefmm::flow::edit::DustArrays;
use wakefmm::flow::options::*;
use wakefmm::flow::state::Gone;
use wakefmm::options::*;
use wakefmm::plan::arrays::{Array, ArrayMut, HostReal as Number};
use wakefmm::plan::sources::{Particles, Segments};

/// An array of a call, in host or (as the emulated driver sees it) in device memory.
fn input<T>(values: &[T], on_device: bool) -> Array<'_, T> {
    match on_device {
        true => Array::Device { address: values.as_ptr() as u64, len: values.len() },
        false => Array::Host(values),
    }
}

fn output<T>(values: &mut [T], on_device: bool) -> ArrayMut<'_, T> {
    match on_device {
        true => ArrayMut::Device { address: values.as_mut_ptr() as u64, len: values.len() },
        false => ArrayMut::Host(values),
    }
}

fn flow() -> Flow {
    let sums = wfmm_plan_options { method: WFMM_METHOD_DIRECT, index_base: 1, core_radius: 0.1, ..Default::default() };
    let motion = wfmm_flow_options { fluid_viscosity: 1.8e-5, fluid_density: 1.2, ..Default::default() };
    Flow::new(session(BackendKind::Cuda), sums, motion).unwrap()
}

fn numbers(r: &mut Random, n: usize) -> Vec<f64> {
    (0..n).map(|_| r.between(-1.0, 1.0)).collect()
}

/// Every kind of element, set and appended; what one field has at other points, and every quantity after a step.
fn story(on_device: bool) -> Vec<Vec<f64>> {
    let mut r = Random::new(11);
    let mut f = flow();
    for set in [true, false] {
        let (x, a, core) = (numbers(&mut r, 60), numbers(&mut r, 60), vec![0.2; 20]);
        let core = Some(input(&core, on_device));
        let particles = Particles { n: 20, position: input(&x, on_device), strength: input(&a, on_device), core };
        f.put_particles(Some(particles), set).unwrap();
        let (points, circulation) = (numbers(&mut r, 33), numbers(&mut r, 10));
        // Rows of three numbers, of which the first two count.
        let ends: Vec<i32> = (1..11).flat_map(|k| [k, k + 1, -7]).collect();
        let segments = || Segments {
            n_points: 11,
            points: input(&points, on_device),
            n: 10,
            ld: 3,
            connectivity: input(&ends, on_device),
            circulation: input(&circulation, on_device),
            core: None,
        };
        f.put_filaments(Some(segments()), set).unwrap();
        f.set_bound_segments(Some(segments())).unwrap();
        f.put_tracers(Some(input(&x, on_device)), set).unwrap();
        let dust = DustArrays {
            position: input(&x, on_device),
            velocity: Some(input(&a, on_device)),
            diameter: input(&[1e-4; 20], on_device),
            density: input(&[2650.0; 20], on_device),
        };
        f.put_dust(Some(dust), set).unwrap();
    }
    f.advance(0.01, 2).unwrap();
    let mut found = vec![];
    for (kind, _) in ElementKind::ALL {
        for (quantity, _) in Quantity::ALL {
            let Ok(rows) = f.rows(*kind, *quantity, usize::MAX) else { continue };
            let (mut values, mut ids) = (vec![0.0; rows * quantity.width()], vec![0i64; rows]);
            let (to, of) = (output(&mut values, on_device), output(&mut ids, on_device));
            f.get(*kind, *quantity, to, Some(of)).unwrap();
            found.extend([values, ids.iter().map(|&i| i as f64).collect()]);
        }
    }
    let x = numbers(&mut r, 90);
    let (mut u, mut g) = (vec![0.0; 90], vec![0.0; 270]);
    let (to, slopes) = (output(&mut u, on_device), output(&mut g, on_device));
    f.velocity_at(input(&x, on_device), to, Some(slopes)).unwrap();
    found.extend([u, g]);
    found
}

#[test]
fn flows_take_and_give_arrays_in_device_memory() {
    with_gpu("flow_arrays::flows_take_and_give_arrays_in_device_memory", &[], || {
        let (host, device) = (story(false), story(true));
        assert!(host.iter().all(|values| values.iter().any(|v| *v != 0.0)), "nothing to compare");
        assert!(host == device, "arrays in device memory give other numbers");

        let mut f = flow();
        let bad = [0.0, f64::NAN, 0.0];
        let e = f.put_tracers(Some(input(&bad, true)), true).unwrap_err();
        assert!(e.status == WFMM_ERR_NOT_FINITE && e.message.contains("position[0][1]"), "{e}");
    });
}

fn rounded<T: Number>(values: &[f64]) -> Vec<T> {
    values.iter().map(|v| T::from_f64(*v)).collect()
}

/// n particles of the default core in the place of those that were there; afterwards the arrays are the caller's again.
fn set<T: Number>(f: &mut Flow, n: usize, seed: u64, on_device: bool) -> Result<()> {
    let mut r = Random::new(seed);
    let [mut x, mut a] = [(); 2].map(|()| rounded::<T>(&numbers(&mut r, 3 * n)));
    let (position, strength) = (input(&x, on_device), input(&a, on_device));
    let done = f.put_particles(Some(Particles { n, position, strength, core: None }), true);
    x.fill(T::from_f64(f64::NAN));
    a.fill(T::from_f64(f64::NAN));
    done
}

/// Velocities and gradients as they are written, without and with gradients.
fn fields<T: Number>(f: &mut Flow, x: &[f64], on_device: bool) -> [Vec<T>; 3] {
    let x: Vec<T> = rounded(x);
    let [mut alone, mut u, mut g] = [1, 1, 3].map(|times| vec![T::from_f64(7.0); times * x.len()]);
    f.velocity_at(input(&x, on_device), output(&mut alone, on_device), None).unwrap();
    f.velocity_at(input(&x, on_device), output(&mut u, on_device), Some(output(&mut g, on_device))).unwrap();
    [alone, u, g]
}

/// Bits of fields, of every number of a flow, and all identities.
fn bits<T: Number>(f: &mut Flow, on_device: bool) -> Vec<(String, Vec<u64>, Vec<i64>)> {
    let x = numbers(&mut Random::new(5), 90);
    let fields = fields::<T>(f, &x, on_device).map(|field| field.iter().map(|v| v.to_f64()).collect());
    let found = fields.into_iter().map(|field| ("field".into(), field, vec![])).chain(all(f));
    found.map(|(name, values, ids)| (name, values.iter().map(|v: &f64| v.to_bits()).collect(), ids)).collect()
}

/// Particles that are set again and again in a flow of everything, between steps and edits of the host.
fn remeshed<T: Number>(integrator: i32, on_device: bool) -> Vec<Vec<(String, Vec<u64>, Vec<i64>)>> {
    let o = motion(integrator, WFMM_STRETCHING_MIXED);
    let mut f = Flow::new(session(BackendKind::Cuda), sums(WFMM_METHOD_DIRECT, true), o).unwrap();
    let mut found = vec![];
    set::<T>(&mut f, 25, 1, on_device).unwrap();
    found.push(bits::<T>(&mut f, on_device));
    everything(&mut f);
    f.advance(0.01, 2).unwrap();
    // More than there were, fewer, and as many.
    set::<T>(&mut f, 80, 2, on_device).unwrap();
    found.push(bits::<T>(&mut f, on_device));
    f.advance(0.01, 2).unwrap();
    set::<T>(&mut f, 50, 3, on_device).unwrap();
    set::<T>(&mut f, 50, 4, on_device).unwrap();
    f.advance(0.01, 1).unwrap();
    found.push(bits::<T>(&mut f, on_device));
    // Beside elements that were appended, replaced and removed before a step.
    set::<T>(&mut f, 60, 5, on_device).unwrap();
    add_particles(&mut f, 12, 6);
    add_tracers(&mut f, 9, 7);
    f.advance(0.01, 1).unwrap();
    f.put_tracers(Some(input(&[0.1, 0.2, 0.3], false)), true).unwrap();
    f.remove(ElementKind::Filaments, Gone::Identities(&[3])).unwrap();
    set::<T>(&mut f, 30, 8, on_device).unwrap();
    let mut gone = [0; 30];
    gone[7] = 1;
    f.remove(ElementKind::Particles, Gone::Masked(&gone)).unwrap();
    f.advance(0.01, 2).unwrap();
    found.push(bits::<T>(&mut f, on_device));
    // A checkpoint has them, and goes on.
    set::<T>(&mut f, 40, 9, on_device).unwrap();
    let path = std::env::temp_dir().join(format!("wakefmm-remeshed-{}.npz", std::process::id()));
    f.save(&path).unwrap();
    f = Flow::load(session(BackendKind::Cuda), &path).unwrap();
    std::fs::remove_file(&path).unwrap();
    found.push(bits::<T>(&mut f, on_device));
    set::<T>(&mut f, 45, 10, on_device).unwrap();
    f.advance(0.01, 2).unwrap();
    found.push(bits::<T>(&mut f, on_device));
    found
}

#[test]
fn particles_and_fields_in_device_memory_are_those_of_host_arrays() {
    with_gpu("flow_arrays::particles_and_fields_in_device_memory_are_those_of_host_arrays", &[], || {
        for integrator in [WFMM_INTEGRATOR_AB2, WFMM_INTEGRATOR_RK3] {
            let compare = |host: Vec<Vec<(String, Vec<u64>, Vec<i64>)>>, device: Vec<_>| {
                for (k, (host, device)) in host.iter().zip(&device).enumerate() {
                    for (host, device) in host.iter().zip(device) {
                        assert!(host == device, "integrator {integrator}, look {k}: {} differs", host.0);
                    }
                }
            };
            compare(remeshed::<f64>(integrator, false), remeshed::<f64>(integrator, true));
            compare(remeshed::<f32>(integrator, false), remeshed::<f32>(integrator, true));
        }
    });
}

/// What is not finite is named as in host arrays, nothing is written, and the flow goes on.
fn refused<T: Number>(on_device: bool) -> Vec<(i32, String)> {
    let o = motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_MIXED);
    let mut f = Flow::new(session(BackendKind::Cuda), sums(WFMM_METHOD_DIRECT, false), o).unwrap();
    everything(&mut f);
    f.advance(0.01, 2).unwrap();
    set::<T>(&mut f, 30, 1, on_device).unwrap();
    let before = bits::<T>(&mut f, on_device);
    let good: Vec<T> = rounded(&numbers(&mut Random::new(2), 60));
    let mut refusals = vec![];
    for (at, value) in [(0, f64::NAN), (31, f64::INFINITY), (59, f64::NEG_INFINITY)] {
        let mut bad = good.clone();
        bad[at] = T::from_f64(value);
        bad[59] = T::from_f64(value);
        let [mut u, mut g] = [60, 180].map(|len| vec![T::from_f64(7.0); len]);
        let (to, slopes) = (output(&mut u, on_device), output(&mut g, on_device));
        refusals.push(f.velocity_at(input(&bad, on_device), to, Some(slopes)).unwrap_err());
        assert!(u.iter().chain(&g).all(|v| v.to_f64() == 7.0), "something was written");
        for (x, a) in [(&bad, &good), (&good, &bad)] {
            let (position, strength) = (input(x, on_device), input(a, on_device));
            let given = Particles { n: 20, position, strength, core: None };
            refusals.push(f.put_particles(Some(given), true).unwrap_err());
        }
    }
    assert!(bits::<T>(&mut f, on_device) == before, "the flow has changed");
    f.advance(0.01, 1).unwrap();
    refusals.into_iter().map(|e| (e.status, e.message)).collect()
}

#[test]
fn what_is_not_finite_in_device_memory_is_named() {
    with_gpu("flow_arrays::what_is_not_finite_in_device_memory_is_named", &[], || {
        let host = refused::<f64>(false);
        assert!(host.iter().all(|(status, _)| *status == WFMM_ERR_NOT_FINITE), "{host:?}");
        assert!(host[3].1.starts_with("target[10][1] = inf"), "{host:?}");
        assert_eq!(refused::<f64>(true), host);
        assert_eq!(refused::<f32>(true), refused::<f32>(false));
    });
}

/// Particles that are set and fields that are asked for in device memory stay there.
#[test]
fn arrays_in_device_memory_do_not_cross_the_bus() {
    let log = std::env::temp_dir().join(format!("wakefmm-copies-in-place-{}", std::process::id()));
    let settings = [("FAKE_CUDA_COPIES", "1"), ("FAKE_CUDA_LOG", log.to_str().unwrap())];
    with_gpu("flow_arrays::arrays_in_device_memory_do_not_cross_the_bus", &settings, || {
        let o = motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_MIXED);
        let mut f = Flow::new(session(BackendKind::Cuda), sums(WFMM_METHOD_DIRECT, false), o).unwrap();
        everything(&mut f);
        f.advance(0.01, 2).unwrap();
        let x = numbers(&mut Random::new(1), 900);
        let before = copies().len();
        for seed in 0..3 {
            set::<f64>(&mut f, 300, seed, true).unwrap();
            fields::<f64>(&mut f, &x, true);
            f.advance(0.01, 1).unwrap();
        }
        let sent = copies().split_off(before);
        assert!(!sent.is_empty() && sent.iter().all(|bytes| *bytes <= COUNTERS), "{sent:?}");
        fields::<f64>(&mut f, &x, false);
        assert!(copies().contains(&7200.0), "host arrays are counted");
    });
    let _ = std::fs::remove_file(&log);
}

/// Where the device has no room for particles the flow is what it was; under AUTO the host takes them over, then or in the step
/// after it. The history of the integrator is the host's at first.
#[test]
fn a_full_device_leaves_the_particles() {
    const NAME: &str = "flow_arrays::a_full_device_leaves_the_particles";
    let mut failures = 0;
    for (k, backend) in [1, 2, 3, 4, 6, 12, 20].into_iter().flat_map(|k| [(k, "cuda"), (k, "auto")]) {
        let failure = format!("full_at_{k}_{}", k + 1);
        let text = with_gpu(NAME, &[("FAKE_CUDA", &failure), ("BACKEND", backend)], || {
            let auto = std::env::var("BACKEND").is_ok_and(|b| b == "auto");
            let o = motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_CLASSICAL);
            let path = std::env::temp_dir().join(format!("wakefmm-full-{}.npz", std::process::id()));
            let mut cpu = Flow::new(session(BackendKind::Cpu), sums(WFMM_METHOD_DIRECT, false), o).unwrap();
            add_particles(&mut cpu, 10, 1);
            add_tracers(&mut cpu, 10, 2);
            cpu.advance(0.001, 2).unwrap();
            cpu.save(&path).unwrap();
            let backend = if auto { BackendKind::Auto } else { BackendKind::Cuda };
            let mut gpu = Flow::load(session(backend), &path).unwrap();
            std::fs::remove_file(&path).unwrap();
            for round in 0..3 {
                let n = 500 + 200 * round;
                // Before: what is added makes the host's history as long as its state.
                [&mut gpu, &mut cpu].into_iter().for_each(|f| add_tracers(f, 20, round));
                set::<f64>(&mut cpu, n, 1 + round as u64, false).unwrap();
                let (counts, mut tries) = (gpu.counts(ElementKind::Particles), 0);
                while let Err(e) = set::<f64>(&mut gpu, n, 1 + round as u64, true) {
                    assert!(!auto && e.status == WFMM_ERR_DEVICE_MEMORY, "{e}");
                    assert_eq!(gpu.counts(ElementKind::Particles), counts);
                    tries += 1;
                    assert!(tries < 4, "{e}");
                    println!("particles were not set");
                }
                for f in [&mut gpu, &mut cpu] {
                    // A failure of the sums by themselves is another test's.
                    while let Err(e) = f.advance(0.001, 1) {
                        assert!(!auto && e.status == WFMM_ERR_DEVICE_MEMORY, "{e}");
                    }
                }
                same(&mut gpu, &mut cpu, 1e-8, "after failures");
            }
        });
        if is_child() {
            return;
        }
        failures += text.matches("particles were not set").count();
    }
    assert!(failures >= 2, "{failures} failures");
}
