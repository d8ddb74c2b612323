//! Narrower cores: the field before and after, strength and impulse, and a blob of vorticity that spreads at the right rate through
//! several of them.

#[path = "../bench/support/flows.rs"]
mod flows;

use std::f64::consts::PI;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use flows::saved;
use wakefmm::error::*;
use wakefmm::flow::Flow;
use wakefmm::flow::diagnostics::wfmm_diagnostics;
use wakefmm::flow::options::*;
use wakefmm::options::*;
use wakefmm::plan::arrays::Array::Host;
use wakefmm::plan::arrays::ArrayMut;
use wakefmm::plan::sources::Particles;
use wakefmm::session::Session;

fn session() -> Arc<Session> {
    Session::new(&SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads: 2 }).unwrap()
}

fn spreading(core_limit: f64, viscosity: f64) -> wfmm_flow_options {
    let (integrator, spreading) = (WFMM_INTEGRATOR_EULER, WFMM_SPREADING_CORES);
    wfmm_flow_options { integrator, spreading, core_limit, viscosity, ..Default::default() }
}

fn put(flow: &mut Flow, x: &[f64], a: &[f64], core: &[f64]) {
    let particles = Particles { n: core.len(), position: Host(x), strength: Host(a), core: Some(Host(core)) };
    flow.put_particles(Some(particles), true).unwrap();
}

fn get(flow: &mut Flow, quantity: Quantity) -> Vec<f64> {
    flows::get(flow, ElementKind::Particles, quantity)
}

/// The vorticity that the particles carry at a point, over all of them.
fn vorticity(flow: &mut Flow, at: [f64; 3]) -> [f64; 3] {
    let (x, a) = (get(flow, Quantity::Position), get(flow, Quantity::Strength));
    let core = get(flow, Quantity::CoreRadius);
    let mut sum = [0.0; 3];
    for (k, c) in core.iter().enumerate() {
        let r2: f64 = (0..3).map(|i| (at[i] - x[3 * k + i]).powi(2)).sum();
        let bell = (-0.5 * r2 / (c * c)).exp() / (2.0 * PI * c * c).powf(1.5);
        (0..3).for_each(|i| sum[i] += bell * a[3 * k + i]);
    }
    sum
}

fn velocities(flow: &mut Flow, points: &[f64]) -> Vec<f64> {
    let mut u = vec![0.0; points.len()];
    flow.velocity_at(Host(points), ArrayMut::Host(&mut u[..]), None).unwrap();
    u
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    let size: f64 = b.iter().map(|b| b * b).sum();
    (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / size).sqrt()
}

fn noise(k: usize) -> f64 {
    ((k * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5
}

/// A lattice of distance h around the origin, each point moved by up to `jitter`/2, with a smooth swirling strength.
fn cloud(half: i32, h: f64, jitter: f64, lift: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut x, mut a) = (vec![], vec![]);
    for i in -half..=half {
        for j in -half..=half {
            for k in -half..=half {
                let n = x.len();
                let p: Vec<f64> =
                    [i, j, k].iter().enumerate().map(|(c, &m)| h * f64::from(m) + jitter * noise(n + c)).collect();
                let bell = (-(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) / 0.4).exp() * h.powi(3);
                a.extend([-p[1] * bell, p[0] * bell, 0.3 * bell]);
                x.extend([p[0], p[1], p[2] + lift]);
            }
        }
    }
    (x, a)
}

/// Before and after at points between the particles.
fn narrowed(plane_axis: i32, lift: f64) -> (wfmm_diagnostics, f64, f64, [f64; 2]) {
    let plan = wfmm_plan_options { method: WFMM_METHOD_DIRECT, plane_axis, ..Default::default() };
    let (x, a) = cloud(6, 0.4, 0.08, lift);
    let mut flow = Flow::new(session(), plan, spreading(0.55, 1e-9)).unwrap();
    put(&mut flow, &x, &a, &vec![0.56; x.len() / 3]);
    let points: Vec<f64> =
        (0..40).flat_map(|k| [1.5 * noise(k), 1.5 * noise(k + 99), lift + 1.5 * noise(k + 555)]).collect();
    let field =
        |flow: &mut Flow| points.chunks_exact(3).flat_map(|p| vorticity(flow, [p[0], p[1], p[2]])).collect::<Vec<_>>();
    let (omega, u) = (field(&mut flow), velocities(&mut flow, &points));
    let before = flow.diagnostics().unwrap();
    flow.advance(1e-12, 1).unwrap();
    let after = flow.diagnostics().unwrap();
    let core = get(&mut flow, Quantity::CoreRadius);
    assert!(core.iter().all(|c| (c - 0.55 / 2f64.sqrt()).abs() < 1e-9), "{}", core[0]);
    let norm = |v: [f64; 3]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let change = |a: [f64; 3], b: [f64; 3]| norm([a[0] - b[0], a[1] - b[1], a[2] - b[2]]) / norm(b);
    let kept =
        [change(after.total_strength, before.total_strength), change(after.linear_impulse, before.linear_impulse)];
    let (omega_now, u_now) = (field(&mut flow), velocities(&mut flow, &points));
    (after, difference(&omega_now, &omega), difference(&u_now, &u), kept)
}

#[test]
fn the_field_before_and_after_agrees() {
    let (d, omega, u, [strength, impulse]) = narrowed(0, 0.0);
    println!(
        "residual {:.1e}, vorticity {omega:.1e}, velocity {u:.1e}, {strength:.1e} {impulse:.1e}",
        d.reinterpolation_residual
    );
    assert_eq!(d.reinterpolations, 1);
    assert!(d.reinterpolation_residual < 5e-4 && d.reinterpolation_strength < 2e-2 && d.reinterpolation_impulse < 2e-2);
    assert!(omega < 4e-3 && u < 4e-3 && strength < 1e-9 && impulse < 1e-9, "{omega} {u} {strength} {impulse}");
}

#[test]
fn images_in_a_plane_carry_their_share() {
    // The lowest particles are on the plane.
    let (d, omega, u, _) = narrowed(3, 2.45);
    assert_eq!(d.reinterpolations, 1);
    assert!(omega < 4e-3 && u < 4e-3, "{omega} {u}");
}

/// A Gaussian blob of vorticity stays one; its variance grows by 2 nu t. Strengths are so small that nothing moves.
#[test]
fn a_blob_spreads_at_the_right_rate_through_several_interpolations() {
    let (h, first, variance, viscosity) = (0.5f64, 0.5f64, 1.0f64, 0.1);
    let (mut x, mut a) = (vec![], vec![]);
    let wanted = |r2: f64, variance: f64| (-0.5 * r2 / variance).exp() / (2.0 * PI * variance).powf(1.5);
    for i in -8..=8 {
        for j in -8..=8 {
            for k in -8..=8 {
                let p = [i, j, k].map(|m| h * f64::from(m));
                x.extend(p);
                let r2 = p.iter().map(|v| v * v).sum();
                a.extend([0.0, 0.0, 1e-9 * wanted(r2, variance - first * first) * h.powi(3)]);
            }
        }
    }
    let plan = wfmm_plan_options { tolerance: 1e-2, ..Default::default() };
    let limit = first * 2f64.sqrt();
    let mut flow = Flow::new(session(), plan, spreading(limit, viscosity)).unwrap();
    put(&mut flow, &x, &a, &vec![first; x.len() / 3]);
    let (dt, mut last, mut times) = (0.65, first, 0);
    for step in 1..=5 {
        flow.advance(dt, 1).unwrap();
        let core = get(&mut flow, Quantity::CoreRadius)[0];
        times += i32::from(core < last);
        last = core;
        let now = variance + 2.0 * viscosity * dt * f64::from(step);
        for r in [0.0, 0.8, 1.6] {
            let got = vorticity(&mut flow, [r, 0.1, 0.0])[2] / 1e-9;
            let want = wanted(r * r + 0.01, now);
            assert!((got / want - 1.0).abs() < 4e-3, "step {step}, r {r}: {got} {want}");
        }
    }
    let total = get(&mut flow, Quantity::Strength).iter().sum::<f64>() / a.iter().sum::<f64>();
    assert!((total - 1.0).abs() < 1e-9 && times == 2, "{total} {times}");
    let without: f64 = (first * first + 2.0 * viscosity * dt * 5.0).sqrt();
    let core = get(&mut flow, Quantity::CoreRadius)[0];
    assert!(core < 1.3 * limit && without > 1.3 * limit, "{core} {without}");
}

#[test]
fn below_the_limit_nothing_happens_and_what_makes_no_sense_is_refused() {
    let mut flow = Flow::new(session(), Default::default(), spreading(0.3, 1e-3)).unwrap();
    put(&mut flow, &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0], &[0.1, 0.0]);
    flow.advance(1e-3, 3).unwrap();
    assert_eq!(flow.diagnostics().unwrap().reinterpolations, 0);
    assert_eq!(get(&mut flow, Quantity::Strength), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let refused = |plan: wfmm_plan_options, o: wfmm_flow_options| Flow::new(session(), plan, o).err().map(|e| e.status);
    let plain = wfmm_plan_options::default();
    assert_eq!(refused(plain, wfmm_flow_options { core_limit: 1.0, ..Default::default() }), Some(WFMM_ERR_VALUE));
    assert_eq!(refused(plain, spreading(-1.0, 1e-3)), Some(WFMM_ERR_VALUE));
    let periodic = wfmm_plan_options { period: [1.0; 3], ..plain };
    assert_eq!(refused(periodic, spreading(0.1, 1e-3)), Some(WFMM_ERR_UNSUPPORTED));
}

#[test]
fn a_step_that_fails_leaves_the_wide_cores() {
    let (x, a) = cloud(3, 0.4, 0.0, 0.0);
    let mut flow = Flow::new(session(), Default::default(), spreading(0.55, 1e-3)).unwrap();
    put(&mut flow, &x, &a, &vec![0.6; x.len() / 3]);
    flow.set_callback(Some(Box::new(|_, _| 7)));
    assert!(flow.advance(1e-3, 1).is_err());
    assert!(
        get(&mut flow, Quantity::Strength) == a
            && get(&mut flow, Quantity::CoreRadius).iter().all(|c| (c - 0.6).abs() < 1e-15)
    );
}

/// As if it had not been tried, in the rates of Adams-Bashforth and in the diagnostics too.
#[test]
fn after_a_step_that_fails_all_goes_on_as_without_it() {
    let o = wfmm_flow_options { integrator: WFMM_INTEGRATOR_AB2, ..spreading(0.55, 0.11) };
    let o = wfmm_flow_options { stretching: WFMM_STRETCHING_TRANSPOSE, ..o };
    let (x, a) = cloud(3, 0.5, 0.05, 0.0);
    let [tried, straight] = [true, false].map(|fails| {
        let plan = wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..Default::default() };
        let mut flow = Flow::new(session(), plan, o).unwrap();
        let answer = Arc::new(AtomicI32::new(0));
        let answers = answer.clone();
        flow.set_callback(Some(Box::new(move |_, _| answers.load(Ordering::Relaxed))));
        put(&mut flow, &x, &a, &vec![0.5; x.len() / 3]);
        flow.advance(0.13, 2).unwrap();
        if fails {
            // Cores are due: they are narrowed before the step fails.
            let before = saved(&mut flow, "wide-cores");
            answer.store(7, Ordering::Relaxed);
            assert!(flow.advance(0.13, 1).is_err());
            answer.store(0, Ordering::Relaxed);
            assert_eq!(flow.diagnostics().unwrap().reinterpolations, 0);
            assert!(saved(&mut flow, "wide-cores") == before);
        }
        flow.advance(0.13, 2).unwrap();
        assert_eq!(flow.diagnostics().unwrap().reinterpolations, 1);
        [Quantity::Position, Quantity::Strength, Quantity::CoreRadius].map(|q| get(&mut flow, q))
    });
    assert!(tried == straight);
}

/// Cores that reach the limit to rounding: the flow that goes on and the one that was loaded decide alike, from the same number.
#[test]
fn a_checkpoint_at_the_limit_goes_on_bit_for_bit() {
    let path = std::env::temp_dir().join(format!("wakefmm-limit-{}.npz", std::process::id()));
    let plan = wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..Default::default() };
    let (x, a) = cloud(2, 0.1, 0.0, 0.0);
    let mut narrowed = 0;
    for integrator in [WFMM_INTEGRATOR_EULER, WFMM_INTEGRATOR_AB2, WFMM_INTEGRATOR_RK3, WFMM_INTEGRATOR_RK4] {
        for (core, steps) in [0.13, 0.1, 0.11].into_iter().flat_map(|core| [3, 5, 7, 10].map(|steps| (core, steps))) {
            let o = wfmm_flow_options { integrator, ..spreading(2f64.sqrt() * core, 1e-2) };
            let dt = core * core / (2.0 * o.viscosity * steps as f64);
            let mut on = Flow::new(session(), plan, o).unwrap();
            put(&mut on, &x, &a, &vec![core; x.len() / 3]);
            on.advance(dt, steps).unwrap();
            on.save(&path).unwrap();
            let mut again = Flow::load(session(), &path).unwrap();
            [&mut on, &mut again].into_iter().for_each(|flow| flow.advance(dt, 2).unwrap());
            let times = [&mut on, &mut again].map(|flow| flow.diagnostics().unwrap().reinterpolations);
            assert_eq!(times[0], times[1], "{integrator}, core {core}, {steps} steps");
            assert!(
                saved(&mut on, "narrowed") == saved(&mut again, "narrowed"),
                "{integrator}, core {core}, {steps} steps"
            );
            narrowed += times[0];
        }
    }
    std::fs::remove_file(&path).unwrap();
    assert!(narrowed > 0, "{narrowed}");
}

/// The residual is that of the strengths which particles get. Where the tails beyond them had so much that giving it back makes
/// another vorticity, they stay as they are.
#[test]
fn the_residual_is_that_of_the_new_strengths() {
    let plan = wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..Default::default() };
    let change = |x: &[f64], a: &[f64], core: f64, limit: f64| {
        let mut flow = Flow::new(session(), plan, spreading(limit, 1e-300)).unwrap();
        put(&mut flow, x, a, &vec![core; x.len() / 3]);
        let field =
            |flow: &mut Flow| x.chunks_exact(3).flat_map(|p| vorticity(flow, [p[0], p[1], p[2]])).collect::<Vec<_>>();
        let before = field(&mut flow);
        flow.advance(1e-12, 1).unwrap();
        let d = flow.diagnostics().unwrap();
        (d.reinterpolations, d.reinterpolation_residual, difference(&field(&mut flow), &before))
    };
    let (x, a) = cloud(4, 0.4, 0.08, 0.0);
    let (times, said, found) = change(&x, &a, 0.56, 0.55);
    println!("residual {said:.2e}, found {found:.2e}");
    assert!(times == 1 && said > 1e-5 && (said / found - 1.0).abs() < 1e-3, "{times} {said:.3e} {found:.3e}");
    // One alone, and a row of such as hardly touch: 65 % and 60 % of the strength is in the tails.
    let row: Vec<f64> = (0..8).flat_map(|k| [f64::from(k), 0.0, 0.0]).collect();
    let along: Vec<f64> = (0..8).flat_map(|_| [0.0, 0.0, 1.0]).collect();
    assert_eq!(change(&[0.1, 0.2, 0.3], &[1.0, 0.0, 0.0], 0.2, 0.15), (0, 0.0, 0.0));
    assert_eq!(change(&row, &along, 0.5, 0.49), (0, 0.0, 0.0));
}

/// What did not fit is not tried again at once: in a flow that goes on and in its checkpoint, but not for other particles.
#[test]
fn what_did_not_fit_is_remembered_of_the_same_particles() {
    let path = std::env::temp_dir().join(format!("wakefmm-unfit-{}.npz", std::process::id()));
    let plan = wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..Default::default() };
    let (x, a) = cloud(4, 0.4, 0.0, 0.0);
    let cores = vec![0.56; x.len() / 3];
    let mut flow = Flow::new(session(), plan, spreading(0.55, 1e-3)).unwrap();
    put(&mut flow, &[0.0; 3], &[1.0, 0.0, 0.0], &[8.0]);
    flow.advance(1e-3, 1).unwrap();
    assert_eq!(flow.diagnostics().unwrap().reinterpolations, 0);
    let members = |flow: &mut Flow| {
        flow.save(&path).unwrap();
        let mut file = zip::ZipArchive::new(std::fs::File::open(&path).unwrap()).unwrap();
        let mut bytes = vec![];
        file.by_name("unfit_core_radius_squared.npy").unwrap().read_to_end(&mut bytes).unwrap();
        f64::from_le_bytes(bytes[bytes.len() - 8..].try_into().unwrap())
    };
    let unfit = members(&mut flow);
    let mut again = Flow::load(session(), &path).unwrap();
    assert!((unfit - 64.0).abs() < 1e-12 && members(&mut again) == unfit, "{unfit}");
    for flow in [&mut flow, &mut again] {
        put(flow, &x, &a, &cores);
        flow.advance(1e-3, 1).unwrap();
        assert_eq!(flow.diagnostics().unwrap().reinterpolations, 1, "other particles");
    }
    std::fs::remove_file(&path).unwrap();
}
