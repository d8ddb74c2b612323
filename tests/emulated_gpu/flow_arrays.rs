//! Arrays of flows in device memory: what is set from them and read into them is what host arrays give, number by number.

use super::flows::session;
use super::harness::with_gpu;
use super::support::random::Random;
use wakefmm::error::*;
use wakefmm::flow::Flow;
use wakefmm::flow::edit::DustArrays;
use wakefmm::flow::options::*;
use wakefmm::options::*;
use wakefmm::plan::arrays::{Array, ArrayMut};
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
