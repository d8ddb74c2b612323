//! Cores that outgrow their limit, of a flow whose state is in device memory: strengths for narrower cores as the CPU finds them,
//! the same bits in every run, no element over the bus, and a state that stays what it was where the step fails.

use super::flows::{COUNTERS, copies, is_child, session};
use super::harness::with_gpu;
use super::support::accuracy::relative_l2;
use super::support::flows::{self, saved};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use wakefmm::error::*;
use wakefmm::flow::Flow;
use wakefmm::flow::options::*;
use wakefmm::options::*;
use wakefmm::plan::arrays::Array::Host;
use wakefmm::plan::sources::Particles;

/// Narrow cores are 0.56 of the spacing: few iterations, in which rounding has no time to grow.
const LIMIT: f64 = 0.55;
/// From cores of 0.5: above the limit after two steps, and again after six more.
const VISCOSITY: f64 = 0.11;
const DT: f64 = 0.13;

/// A flow of a disturbed lattice around a point, with a smooth swirling strength; some particles have no core in the first step.
fn flow(backend: BackendKind, side: i32, plane: bool, more: wfmm_plan_options) -> Flow {
    of_cores(backend, side, plane, more, 0.5)
}

fn of_cores(backend: BackendKind, side: i32, plane: bool, more: wfmm_plan_options, core: f64) -> Flow {
    let plan = wfmm_plan_options { method: WFMM_METHOD_DIRECT, plane_axis: if plane { 2 } else { 0 }, ..more };
    let motion = wfmm_flow_options {
        integrator: WFMM_INTEGRATOR_AB2,
        stretching: WFMM_STRETCHING_TRANSPOSE,
        spreading: WFMM_SPREADING_CORES,
        core_limit: LIMIT,
        viscosity: VISCOSITY,
        ..Default::default()
    };
    let mut flow = Flow::new(session(backend), plan, motion).unwrap();
    // All are above the plane, the lowest close to it.
    add(&mut flow, side, if plane { 0.35 * f64::from(side) } else { 0.0 }, core);
    flow
}

fn add(flow: &mut Flow, side: i32, lift: f64, widest: f64) {
    let noise = |k: usize| ((k * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5;
    let (mut x, mut a, mut core) = (vec![], vec![], vec![]);
    for n in 0..side * side * side {
        let (k, middle) = (n as usize, f64::from(side - 1) / 2.0);
        let at = [n / side / side, n / side % side, n % side].map(|m| 0.7 * (f64::from(m) - middle));
        let p: [f64; 3] = std::array::from_fn(|i| at[i] + 0.08 * noise(3 * k + i));
        let bell = 0.01 * (-p.iter().map(|v| v * v).sum::<f64>() / 1.5).exp();
        x.extend([p[0], p[1] + lift, p[2]]);
        a.extend([-p[1] * bell, p[0] * bell, 0.3 * bell]);
        core.push(if k % 97 == 5 { 0.0 } else { widest - 0.02 * (k % 3) as f64 });
    }
    let particles = Particles { n: core.len(), position: Host(&x), strength: Host(&a), core: Some(Host(&core)) };
    flow.put_particles(Some(particles), false).unwrap();
}

fn get(flow: &mut Flow, quantity: Quantity) -> Vec<f64> {
    flows::get(flow, ElementKind::Particles, quantity)
}

/// Positions, strengths and cores.
fn state(flow: &mut Flow) -> Vec<f64> {
    [Quantity::Position, Quantity::Strength, Quantity::CoreRadius].into_iter().flat_map(|q| get(flow, q)).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn strengths_for_narrower_cores_are_the_cpus() {
    with_gpu("narrower_cores::strengths_for_narrower_cores_are_the_cpus", &[], || {
        // Cores of 0.56 are narrowed at once, while some particles have none.
        for (plane, core) in [(false, 0.5), (true, 0.5), (true, 0.56)] {
            let [mut gpu, mut cpu] =
                [BackendKind::Cuda, BackendKind::Cpu].map(|b| of_cores(b, 7, plane, Default::default(), core));
            for round in 0..4 {
                for f in [&mut gpu, &mut cpu] {
                    f.advance(DT, 3).unwrap();
                    if round == 1 {
                        // The largest core is looked for anew.
                        add(f, 2, 6.0, 0.5);
                    }
                }
                let (got, want) = (gpu.diagnostics().unwrap(), cpu.diagnostics().unwrap());
                assert_eq!(got.reinterpolations, want.reinterpolations, "round {round}");
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs() + 1e-12;
                assert!(
                    near(got.reinterpolation_residual, want.reinterpolation_residual)
                        && near(got.reinterpolation_strength, want.reinterpolation_strength)
                        && near(got.reinterpolation_impulse, want.reinterpolation_impulse),
                    "round {round}, plane {plane}: {got:?} {want:?}"
                );
                for quantity in [Quantity::Position, Quantity::Strength, Quantity::CoreRadius] {
                    let error = relative_l2(&get(&mut gpu, quantity), &get(&mut cpu, quantity));
                    assert!(error < 1e-9, "round {round}, plane {plane}, {quantity:?}: {error:.1e}");
                }
            }
            let d = gpu.diagnostics().unwrap();
            println!("plane {plane}: {} times, residual {:.1e}", d.reinterpolations, d.reinterpolation_residual);
            assert!(d.reinterpolations >= 2 && d.reinterpolation_residual < 0.2, "{d:?}");
        }
    });
}

/// Every copy is small, also in the steps that narrow cores.
#[test]
fn no_element_crosses_the_bus_where_cores_are_narrowed() {
    let log = std::env::temp_dir().join(format!("wakefmm-narrower-{}", std::process::id()));
    let settings = [("FAKE_CUDA_COPIES", "1"), ("FAKE_CUDA_LOG", log.to_str().unwrap())];
    with_gpu("narrower_cores::no_element_crosses_the_bus_where_cores_are_narrowed", &settings, || {
        let mut f = flow(BackendKind::Cuda, 9, false, Default::default());
        f.advance(DT, 1).unwrap();
        let before = copies().len();
        f.advance(DT, 6).unwrap();
        let copies = copies().split_off(before);
        let (most, all) = (copies.iter().copied().fold(0.0, f64::max), copies.iter().sum::<f64>());
        println!("{} copies, the largest of {most} bytes, {all} bytes in all", copies.len());
        // The smallest array of the particles, their cores, has 5,832 bytes.
        assert!(most <= COUNTERS && all < 729.0 * 8.0, "{copies:?}");
        assert!(f.diagnostics().unwrap().reinterpolations >= 1);
    });
    let _ = std::fs::remove_file(&log);
}

/// In every run and whatever the order in which threads go on; a checkpoint goes on with the same bits.
#[test]
fn narrower_cores_have_the_same_bits_in_every_run() {
    const NAME: &str = "narrower_cores::narrower_cores_have_the_same_bits_in_every_run";
    let mut said = Vec::new();
    for order in ["0", "1", "77"] {
        let text = with_gpu(NAME, &[("EMULATED_ORDER", order)], || {
            let reproducible = wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..Default::default() };
            let mut f = flow(BackendKind::Cuda, 6, true, reproducible);
            f.advance(DT, 1).unwrap();
            let path = std::env::temp_dir().join(format!("wakefmm-narrower-{}.npz", std::process::id()));
            f.save(&path).unwrap();
            let mut again = Flow::load(session(BackendKind::Cuda), &path).unwrap();
            let _ = std::fs::remove_file(&path);
            [&mut f, &mut again].into_iter().for_each(|f| f.advance(DT, 4).unwrap());
            assert!(f.diagnostics().unwrap().reinterpolations >= 1);
            let (got, want) = (bits(&state(&mut again)), bits(&state(&mut f)));
            assert!(got == want, "a checkpoint goes on with other bits");
            let sum = want.iter().fold(0u64, |sum, bits| sum.wrapping_mul(31).wrapping_add(*bits));
            println!("bits {sum:016x}");
        });
        if is_child() {
            return;
        }
        let (_, bits) = text.split_once("bits ").expect("what it said");
        said.push(bits[..16].to_owned());
    }
    assert!(said.iter().all(|bits| *bits == said[0]), "{said:?}");
}

/// A step that fails after cores were narrowed leaves the wide ones and their strengths, and the rates of Adams-Bashforth.
#[test]
fn a_step_that_fails_on_the_device_leaves_the_wide_cores() {
    with_gpu("narrower_cores::a_step_that_fails_on_the_device_leaves_the_wide_cores", &[], || {
        let answer = Arc::new(AtomicI32::new(0));
        let mut flows = [0, 1].map(|_| {
            let (mut f, answer) = (flow(BackendKind::Cuda, 6, false, Default::default()), answer.clone());
            f.set_callback(Some(Box::new(move |_, _| answer.load(Ordering::Relaxed))));
            f
        });
        flows.iter_mut().for_each(|f| f.advance(DT, 2).unwrap());
        let f = &mut flows[0];
        let before = saved(f, "wide-cores");
        answer.store(7, Ordering::Relaxed);
        assert_eq!(f.advance(DT, 1).unwrap_err().status, 7);
        answer.store(0, Ordering::Relaxed);
        assert!(saved(f, "wide-cores") == before);
        assert_eq!(f.diagnostics().unwrap().reinterpolations, 0);
        flows.iter_mut().for_each(|f| f.advance(DT, 2).unwrap());
        let [f, other] = &mut flows;
        assert_eq!(f.diagnostics().unwrap().reinterpolations, 1, "it was due");
        assert!(bits(&state(f)) == bits(&state(other)));
    });
}

/// The same where the device has no memory for the solver.
#[test]
fn a_full_device_leaves_the_wide_cores() {
    const NAME: &str = "narrower_cores::a_full_device_leaves_the_wide_cores";
    let mut failures = 0;
    for (k, backend) in [40, 44, 48, 54].into_iter().flat_map(|k| [(k, "cuda"), (k, "auto")]) {
        let failure = format!("full_at_{k}_{}", k + 1);
        let text = with_gpu(NAME, &[("FAKE_CUDA", &failure), ("BACKEND", backend)], || {
            let auto = std::env::var("BACKEND").is_ok_and(|b| b == "auto");
            let on = |b| flow(b, 8, false, Default::default());
            let [mut gpu, mut cpu] =
                [if auto { BackendKind::Auto } else { BackendKind::Cuda }, BackendKind::Cpu].map(on);
            for _ in 0..3 {
                cpu.advance(DT, 1).unwrap();
                let before = gpu.time();
                while let Err(e) = gpu.advance(DT, 1) {
                    assert!(!auto && e.status == WFMM_ERR_DEVICE_MEMORY && gpu.time() == before, "{e}");
                    println!("step {} failed", before.1);
                }
            }
            assert_eq!(gpu.diagnostics().unwrap().reinterpolations, 1);
            let error = relative_l2(&state(&mut gpu), &state(&mut cpu));
            assert!(error < 1e-7, "{error:.1e}");
        });
        if is_child() {
            return;
        }
        failures += text.matches("step 2 failed").count();
    }
    assert!(failures >= 2, "{failures} failures in the step that narrows");
}
