//! A panic forced inside an evaluation, through the C functions: by a logger of the host that panics when the evaluation
//! writes its line. A negative status, the plan unusable, the process alive, the next plan right.

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use wakefmm::error::{WFMM_ERR_INTERNAL, WFMM_ERR_UNUSABLE, WFMM_OK};
use wakefmm::ffi::arrays::double::{
    wfmm_plan_evaluate_f64, wfmm_plan_set_particles_f64, wfmm_plan_set_strengths_f64, wfmm_plan_set_targets_f64,
};
use wakefmm::ffi::library::wfmm_last_error;
use wakefmm::ffi::plan::{wfmm_plan_create, wfmm_plan_destroy, wfmm_plan_prepare};
use wakefmm::ffi::wfmm_plan;

static ARMED: AtomicBool = AtomicBool::new(false);
static PANICS: AtomicUsize = AtomicUsize::new(0);

struct Panics;

impl log::Log for Panics {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        if ARMED.load(Ordering::Relaxed) && record.args().to_string().starts_with("plan:") {
            PANICS.fetch_add(1, Ordering::Relaxed);
            panic!("forced by the host's logger");
        }
    }
    fn flush(&self) {}
}

const N: usize = 300;

/// A plan that has its sources and targets.
fn plan() -> *mut wfmm_plan {
    let x: Vec<f64> = (0..3 * N).map(|i| (0.7 * i as f64).sin()).collect();
    let a: Vec<f64> = (0..3 * N).map(|i| (1.3 * i as f64).cos()).collect();
    let (n, mut plan) = (N as i64, null_mut());
    // The arrays hold 3 N numbers, and are copied.
    unsafe {
        assert_eq!(wfmm_plan_create(null_mut(), null(), &mut plan), WFMM_OK);
        assert_eq!(wfmm_plan_set_particles_f64(plan, n, x.as_ptr(), a.as_ptr(), null(), 0), WFMM_OK);
        assert_eq!(wfmm_plan_set_targets_f64(plan, n, x.as_ptr(), 0), WFMM_OK);
    }
    plan
}

fn evaluate(plan: *mut wfmm_plan) -> (i32, Vec<f64>) {
    let mut u = vec![0.0; 3 * N];
    let status = unsafe { wfmm_plan_evaluate_f64(plan, u.as_mut_ptr(), null_mut(), 0) };
    (status, u)
}

#[test]
fn a_panic_inside_spoils_the_plan_and_nothing_else() {
    log::set_logger(&Panics).expect("no logger yet");
    log::set_max_level(log::LevelFilter::Info);
    let mut untouched = plan();
    let (status, right) = evaluate(untouched);
    assert_eq!(status, WFMM_OK);

    ARMED.store(true, Ordering::Relaxed);
    let mut spoilt = plan();
    assert_eq!(evaluate(spoilt).0, WFMM_ERR_INTERNAL);
    assert_eq!(PANICS.load(Ordering::Relaxed), 1);
    ARMED.store(false, Ordering::Relaxed);
    let mut message = [0u8; 200];
    unsafe { wfmm_last_error(message.as_mut_ptr().cast(), message.len(), null_mut()) };
    assert!(String::from_utf8_lossy(&message).contains("internal error: forced by the host's logger"));

    // Every call but destroy is refused.
    assert_eq!(evaluate(spoilt).0, WFMM_ERR_UNUSABLE);
    let x = [0.0f64; 3];
    unsafe {
        assert_eq!(wfmm_plan_set_targets_f64(spoilt, 1, x.as_ptr(), 0), WFMM_ERR_UNUSABLE);
        assert_eq!(wfmm_plan_set_strengths_f64(spoilt, 0, null(), 0, null(), 0, null(), 0), WFMM_ERR_UNUSABLE);
        assert_eq!(wfmm_plan_prepare(spoilt), WFMM_ERR_UNUSABLE);
        assert_eq!(wfmm_plan_destroy(&mut spoilt), WFMM_OK);
    }

    // Other plans, older and newer, are as they were.
    let mut next = plan();
    assert_eq!(evaluate(next), (WFMM_OK, right.clone()));
    assert_eq!(evaluate(untouched), (WFMM_OK, right));
    unsafe {
        assert_eq!((wfmm_plan_destroy(&mut next), wfmm_plan_destroy(&mut untouched)), (WFMM_OK, WFMM_OK));
    }
}
