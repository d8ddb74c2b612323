//! Every way in which a GPU can be missing or fail, by a driver of our own that fails on request: the status, the cause in
//! the message, and the CPU under AUTO. Each case runs in a process of its own, since a driver is loaded once.

#![cfg(target_os = "linux")]

use wakefmm::backend::Field;
use wakefmm::inputs::Reals;
use wakefmm::options::{BackendKind, SessionOptions};
use wakefmm::session::Session;

#[path = "fake_driver/harness.rs"]
mod harness;

/// What `child` printed under a driver that fails so.
fn under(failure: &str) -> String {
    harness::run("child", failure).0
}

fn session(backend: BackendKind) -> wakefmm::error::Result<std::sync::Arc<Session>> {
    Session::new(&SessionOptions { backend, device: None, devices: vec![], threads: 1 })
}

fn evaluate(session: std::sync::Arc<Session>) -> wakefmm::error::Result<f64> {
    use wakefmm::inputs::{Inputs, ParticleInput, RealsMut, TargetInput};
    let n = 1000;
    let position: Vec<f64> = (0..3 * n).map(|i| (i as f64 * 0.7).sin()).collect();
    let reals = Reals::HostF64(position.into());
    let inputs = Inputs {
        particles: Some(ParticleInput {
            n,
            position: reals.clone(),
            strength: reals.clone(),
            core: None,
            default_core: 0.1,
        }),
        targets: Some(TargetInput { n, position: reals }),
        vortex_positions: 1,
        vortex_strengths: 1,
        target_positions: 1,
        ..Inputs::default()
    };
    let options = wakefmm::options::PlanOptions::checked(&wakefmm::options::wfmm_plan_options {
        method: 1,
        ..Default::default()
    })?;
    let mut engine = wakefmm::session::make_engine(&session, &options, wakefmm::options::Precision::F64)?;
    let mut u = vec![0.0; 3 * n];
    engine.evaluate(&inputs, Field::Velocity { gradient: false }, RealsMut::HostF64(&mut u), None)?;
    // A second one: the failed engine must have left nothing behind.
    engine.evaluate(&inputs, Field::Velocity { gradient: false }, RealsMut::HostF64(&mut u), None)?;
    Ok(u.iter().map(|u| u * u).sum())
}

/// What happens under the driver of this process, one line each for CUDA and AUTO.
#[test]
#[ignore = "run by the others, under a driver that fails"]
fn child() {
    for (name, backend) in [("cuda", BackendKind::Cuda), ("auto", BackendKind::Auto), ("again", BackendKind::Auto)] {
        let outcome = session(backend).and_then(|session| {
            let describe = session.describe();
            evaluate(session).map(|sum| format!("0 {} {describe}", if sum > 0.0 { "computed" } else { "zero" }))
        });
        println!("{name}: {}", outcome.unwrap_or_else(|error| format!("{} {}", error.status, error.message)));
    }
}

fn expect(failure: &str, status: i32, cause: &str) {
    let text = under(failure);
    let line = |name: &str| {
        text.lines()
            .find_map(|l| l.split_once(&format!("{name}: ")).map(|(_, l)| l.to_owned()))
            .unwrap_or_else(|| panic!("{text}"))
    };
    let cuda = line("cuda");
    assert!(cuda.starts_with(&format!("{status} ")) && cuda.contains(cause), "{failure}: {cuda}");
    let auto = line("auto");
    assert!(auto.starts_with("0 computed"), "{failure} under AUTO: {auto}");
    assert_eq!(text.matches("the CPU takes over").count(), 1, "one warning for several sessions: {text}");
}

#[test]
fn a_driver_that_is_too_old() {
    expect("old_driver", 104, "CUDA 11.8");
}

#[test]
fn no_device_is_visible() {
    expect("no_device", 100, "no GPU is visible");
    expect("empty", 100, "shows no GPU");
}

#[test]
fn a_gpu_that_is_too_old() {
    expect("old_gpu", 100, "compute capability 6.1");
}

#[test]
fn a_gpu_in_exclusive_use() {
    expect("busy", 100, "busy");
}

#[test]
fn a_driver_that_does_not_fit_the_kernel() {
    expect("mismatch", 104, "CUDA error 803");
}

/// A status that crate cust does not list must neither be undefined behaviour nor be lost.
#[test]
fn a_status_from_the_future() {
    expect("unlisted", 104, "CUDA error 12345");
}

#[test]
fn kernels_that_do_not_load() {
    expect("image", 104, "do not load on Fake GPU");
}

#[test]
fn no_memory_for_the_context_or_for_arrays() {
    expect("no_memory", 102, "out of device memory");
    expect("full", 102, "out of device memory");
}

#[test]
fn an_error_in_a_kernel() {
    expect("kernel", -3, "CUDA error 700");
}

/// Of two devices the larger one is the best.
#[test]
fn the_best_of_two_devices() {
    let text = under("two");
    assert!(text.contains("CUDA device 1, Fake GPU"), "{text}");
}

/// Under AUTO, with fields to be added to: more values than four of the pieces hold that cross the bus.
#[test]
#[ignore = "run by the others, under a driver that fails"]
fn many_to_add() {
    use wakefmm::plan::Plan;
    use wakefmm::plan::arrays::{Array, ArrayMut};
    use wakefmm::plan::sources::Particles;
    const MANY: usize = 400_000;
    let options = wakefmm::options::wfmm_plan_options { flags: 1, core_radius: 0.1, ..Default::default() };
    let options = wakefmm::options::PlanOptions::checked(&options).unwrap();
    let mut plan = Plan::new(session(BackendKind::Auto).unwrap(), options);
    let (one, x): (_, Vec<f64>) = ([0.5; 3], (0..3 * MANY).map(|i| (i % 1000) as f64).collect());
    let (position, strength) = (Array::Host(&one[..]), Array::Host(&one[..]));
    plan.set_particles(Some(Particles { n: 1, position, strength, core: None })).unwrap();
    plan.set_targets(Some((MANY, Array::Host(&x[..])))).unwrap();
    let mut u = vec![1.0; 3 * MANY];
    let added = plan.evaluate(Field::Velocity { gradient: false }, ArrayMut::Host(&mut u[..]), None);
    println!("added: {}, {}", added.map_or_else(|error| error.status, |()| 0), u.iter().any(|u| *u != 1.0));
}

/// The CPU takes over what nothing was added to, and not what some pieces were added to.
#[test]
fn a_gpu_that_is_lost_while_its_field_is_added() {
    let lost = wakefmm::error::WFMM_ERR_DEVICE_LOST;
    for (copy, outcome, warnings) in
        [(1, "0, true".to_owned(), 1), (4, "0, true".into(), 1), (5, format!("{lost}, false"), 0)]
    {
        let text = harness::run("many_to_add", &format!("lost_at_{copy}")).0;
        assert!(text.contains(&format!("added: {outcome}")), "copy {copy}: {text}");
        assert_eq!(text.matches("the CPU takes over").count(), warnings, "copy {copy}: {text}");
    }
}

/// What a child of `fork()` is told of its parent's plans, one of them under way: nothing there can be waited for.
#[test]
#[ignore = "run by the others, under a driver that is slow"]
fn forked() {
    use wakefmm::ffi::arrays::double::{wfmm_plan_set_particles_f64, wfmm_plan_set_targets_f64};
    use wakefmm::ffi::overlap::{double::wfmm_plan_evaluate_async_f64, wfmm_plan_wait};
    use wakefmm::ffi::plan::{wfmm_plan_create, wfmm_plan_destroy};
    use wakefmm::ffi::session::{wfmm_session_create, wfmm_session_destroy};
    use wakefmm::options::{wfmm_plan_options, wfmm_session_options};
    const N: i64 = 10_000;
    let (x, mut u) = (vec![0.5; 3 * N as usize], vec![0.0; 3 * N as usize]);
    let (mut session, mut idle, mut busy) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    let where_to = wfmm_session_options { backend: 2, threads: 2, ..Default::default() };
    let how = wfmm_plan_options { method: 2, core_radius: 0.1, ..Default::default() };
    // SAFETY: live arrays of the lengths that are told.
    unsafe {
        assert_eq!(wfmm_session_create(&where_to, &mut session), 0);
        for (plan, is_waited_for) in [(&mut idle, true), (&mut busy, false)] {
            assert_eq!(wfmm_plan_create(session, &how, plan), 0);
            assert_eq!(wfmm_plan_set_particles_f64(*plan, N, x.as_ptr(), x.as_ptr(), std::ptr::null(), 0), 0);
            assert_eq!(wfmm_plan_set_targets_f64(*plan, N, x.as_ptr(), 0), 0);
            assert_eq!(wfmm_plan_evaluate_async_f64(*plan, u.as_mut_ptr(), std::ptr::null_mut(), 0), 0);
            if is_waited_for {
                assert_eq!(wfmm_plan_wait(*plan), 0);
            }
        }
        let child = libc::fork();
        if child == 0 {
            libc::alarm(20);
            let told = [idle, busy].map(|mut plan| [wfmm_plan_wait(plan), wfmm_plan_destroy(&mut plan)]);
            println!("told {told:?} {}", wfmm_session_destroy(&mut session));
            libc::_exit(0);
        }
        let mut end = 0;
        assert_eq!(libc::waitpid(child, &mut end, 0), child);
        println!("ended {end}, {}", wfmm_plan_wait(busy));
        assert_eq!(
            [wfmm_plan_destroy(&mut idle), wfmm_plan_destroy(&mut busy), wfmm_session_destroy(&mut session)],
            [0; 3]
        );
    }
}

#[test]
fn a_child_of_fork_waits_for_nothing_of_its_parent() {
    let forked = wakefmm::error::WFMM_ERR_FORKED;
    let text = harness::run("forked", "slow").0;
    assert!(text.contains(&format!("told {:?} 0", [[forked, 0]; 2])) && text.contains("ended 0, 0"), "{text}");
}
