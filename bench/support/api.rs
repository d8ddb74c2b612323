//! The C functions as a host program calls them, wrapped just enough to be called from Rust.

use std::ptr::{null, null_mut};
use wakefmm::ffi::arrays::{double, single};
use wakefmm::ffi::plan::*;
use wakefmm::ffi::session::*;
use wakefmm::ffi::{library, wfmm_plan, wfmm_session, wfmm_status};
use wakefmm::options::*;
use wakefmm::report::wfmm_report;

/// The message of the calling thread's last error.
pub fn last_error() -> String {
    let (mut text, mut length) = (vec![0u8; 4096], 0);
    unsafe { library::wfmm_last_error(text.as_mut_ptr().cast(), text.len(), &mut length) };
    String::from_utf8_lossy(&text[..length.min(4095)]).into_owned()
}

fn must(status: wfmm_status) {
    assert_eq!(status, 0, "{}", last_error());
}

/// Session with a number of threads (0: all).
pub struct Session(*mut wfmm_session);

impl Session {
    pub fn cpu(threads: i32) -> Self {
        Self::of(WFMM_BACKEND_CPU, threads)
    }

    pub fn gpu() -> Self {
        Self::of(WFMM_BACKEND_CUDA, 1)
    }

    /// On a GPU where there is one.
    pub fn auto() -> Self {
        Self::of(WFMM_BACKEND_AUTO, 1)
    }

    fn of(backend: i32, threads: i32) -> Self {
        let o = wfmm_session_options { backend, threads, ..Default::default() };
        let mut s = null_mut();
        must(unsafe { wfmm_session_create(&o, &mut s) });
        Self(s)
    }

    pub fn describe(&self) -> String {
        let (mut text, mut length) = (vec![0u8; 512], 0);
        must(unsafe { wfmm_session_describe(self.0, text.as_mut_ptr().cast(), text.len(), &mut length) });
        String::from_utf8_lossy(&text[..length.min(511)]).into_owned()
    }
}

// Any thread may use a session.
unsafe impl Send for Session {}
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe { wfmm_session_destroy(&mut self.0) };
    }
}

/// Arrays of one precision and the functions that take them.
pub trait Scalar: Copy + Default + Send + Sync + 'static {
    const NAME: &'static str;
    fn of(x: f64) -> Self;
    fn f64(self) -> f64;
    fn segments(p: *mut wfmm_plan, x: &[Self], ends: &[i32], g: &[Self], core: *const Self) -> wfmm_status;
    fn particles(p: *mut wfmm_plan, x: &[Self], a: &[Self], core: *const Self) -> wfmm_status;
    fn charges(p: *mut wfmm_plan, x: &[Self], q: &[Self]) -> wfmm_status;
    fn strengths(p: *mut wfmm_plan, g: &[Self], a: &[Self], q: &[Self]) -> wfmm_status;
    fn targets(p: *mut wfmm_plan, x: &[Self]) -> wfmm_status;
    fn velocity(p: *mut wfmm_plan, u: &mut [Self], g: *mut Self) -> wfmm_status;
    fn potential(p: *mut wfmm_plan, u: &mut [Self], g: *mut Self) -> wfmm_status;
    fn check(p: *mut wfmm_plan, samples: i64, seed: u64) -> (wfmm_status, f64);
}

macro_rules! scalar {
    ($t:ident, $twin:ident, $segments:ident, $particles:ident, $charges:ident, $strengths:ident,
    $targets:ident, $velocity:ident, $potential:ident, $check:ident) => {
        impl Scalar for $t {
            const NAME: &'static str = stringify!($t);
            fn of(x: f64) -> Self {
                x as $t
            }
            fn f64(self) -> f64 {
                self as f64
            }
            fn segments(p: *mut wfmm_plan, x: &[$t], ends: &[i32], g: &[$t], core: *const $t) -> wfmm_status {
                let (points, n) = (x.len() as i64 / 3, g.len() as i64);
                unsafe {
                    $twin::$segments(p, points, x.as_ptr(), n, 2, ends.as_ptr(), g.as_ptr(), core, WFMM_MEMORY_HOST)
                }
            }
            fn particles(p: *mut wfmm_plan, x: &[$t], a: &[$t], core: *const $t) -> wfmm_status {
                unsafe { $twin::$particles(p, x.len() as i64 / 3, x.as_ptr(), a.as_ptr(), core, WFMM_MEMORY_HOST) }
            }
            fn charges(p: *mut wfmm_plan, x: &[$t], q: &[$t]) -> wfmm_status {
                unsafe { $twin::$charges(p, q.len() as i64, x.as_ptr(), q.as_ptr(), WFMM_MEMORY_HOST) }
            }
            fn strengths(p: *mut wfmm_plan, g: &[$t], a: &[$t], q: &[$t]) -> wfmm_status {
                let (ng, na, nq) = (g.len() as i64, a.len() as i64 / 3, q.len() as i64);
                let or_null = |v: &[$t]| if v.is_empty() { null() } else { v.as_ptr() };
                unsafe { $twin::$strengths(p, ng, or_null(g), na, or_null(a), nq, or_null(q), WFMM_MEMORY_HOST) }
            }
            fn targets(p: *mut wfmm_plan, x: &[$t]) -> wfmm_status {
                unsafe { $twin::$targets(p, x.len() as i64 / 3, x.as_ptr(), WFMM_MEMORY_HOST) }
            }
            fn velocity(p: *mut wfmm_plan, u: &mut [$t], g: *mut $t) -> wfmm_status {
                unsafe { $twin::$velocity(p, u.as_mut_ptr(), g, WFMM_MEMORY_HOST) }
            }
            fn potential(p: *mut wfmm_plan, u: &mut [$t], g: *mut $t) -> wfmm_status {
                unsafe { $twin::$potential(p, u.as_mut_ptr(), g, WFMM_MEMORY_HOST) }
            }
            fn check(p: *mut wfmm_plan, samples: i64, seed: u64) -> (wfmm_status, f64) {
                let mut e = 0.0;
                (unsafe { $twin::$check(p, samples, seed, &mut e) }, e as f64)
            }
        }
    };
}
scalar!(
    f32,
    single,
    wfmm_plan_set_segments_f32,
    wfmm_plan_set_particles_f32,
    wfmm_plan_set_charges_f32,
    wfmm_plan_set_strengths_f32,
    wfmm_plan_set_targets_f32,
    wfmm_plan_evaluate_f32,
    wfmm_plan_evaluate_potential_f32,
    wfmm_plan_check_f32
);
scalar!(
    f64,
    double,
    wfmm_plan_set_segments_f64,
    wfmm_plan_set_particles_f64,
    wfmm_plan_set_charges_f64,
    wfmm_plan_set_strengths_f64,
    wfmm_plan_set_targets_f64,
    wfmm_plan_evaluate_f64,
    wfmm_plan_evaluate_potential_f64,
    wfmm_plan_check_f64
);

pub fn flat<T: Scalar>(v: &[[f64; 3]]) -> Vec<T> {
    v.iter().flatten().map(|&x| T::of(x)).collect()
}

pub fn list<T: Scalar>(v: &[f64]) -> Vec<T> {
    v.iter().map(|&x| T::of(x)).collect()
}

/// A plan.
pub struct Plan<T> {
    handle: *mut wfmm_plan,
    kind: std::marker::PhantomData<T>,
}

impl<T: Scalar> Plan<T> {
    pub fn new(session: &Session, options: &wfmm_plan_options) -> Self {
        let mut handle = null_mut();
        must(unsafe { wfmm_plan_create(session.0, options, &mut handle) });
        Self { handle, kind: std::marker::PhantomData }
    }

    /// The status in place of a panic.
    pub fn try_new(session: &Session, options: &wfmm_plan_options) -> Result<Self, wfmm_status> {
        let mut handle = null_mut();
        match unsafe { wfmm_plan_create(session.0, options, &mut handle) } {
            0 => Ok(Self { handle, kind: std::marker::PhantomData }),
            status => Err(status),
        }
    }
    pub fn try_velocity(&mut self, u: &mut [T]) -> wfmm_status {
        T::velocity(self.handle, u, null_mut())
    }
    pub fn try_potential(&mut self, phi: &mut [T]) -> wfmm_status {
        T::potential(self.handle, phi, null_mut())
    }

    pub fn segments(&mut self, points: &[T], ends: &[i32], circulation: &[T], core: Option<&[T]>) {
        must(T::segments(self.handle, points, ends, circulation, core.map_or(null(), <[T]>::as_ptr)));
    }
    pub fn particles(&mut self, position: &[T], strength: &[T], core: Option<&[T]>) {
        must(T::particles(self.handle, position, strength, core.map_or(null(), <[T]>::as_ptr)));
    }
    pub fn charges(&mut self, position: &[T], charge: &[T]) {
        must(T::charges(self.handle, position, charge));
    }
    pub fn strengths(&mut self, circulation: &[T], strength: &[T], charge: &[T]) {
        must(T::strengths(self.handle, circulation, strength, charge));
    }
    pub fn targets(&mut self, position: &[T]) {
        must(T::targets(self.handle, position));
    }
    pub fn prepare(&mut self) {
        must(unsafe { wfmm_plan_prepare(self.handle) });
    }
    pub fn velocity(&mut self, u: &mut [T], gradient: Option<&mut [T]>) {
        must(T::velocity(self.handle, u, gradient.map_or(null_mut(), <[T]>::as_mut_ptr)));
    }
    /// To a double array, whatever the inputs are.
    pub fn velocity_in_double(&mut self, u: &mut [f64]) {
        must(f64::velocity(self.handle, u, null_mut()));
    }
    pub fn potential(&mut self, phi: &mut [T], gradient: Option<&mut [T]>) {
        must(T::potential(self.handle, phi, gradient.map_or(null_mut(), <[T]>::as_mut_ptr)));
    }
    pub fn check(&mut self, samples: i64, seed: u64) -> f64 {
        let (status, e) = T::check(self.handle, samples, seed);
        must(status);
        e
    }
    pub fn report(&self) -> wfmm_report {
        let mut r = wfmm_report { struct_size: size_of::<wfmm_report>() as u32, ..Default::default() };
        must(unsafe { wfmm_plan_report(self.handle, &mut r) });
        r
    }
    pub fn recipe(&self) -> String {
        let (mut text, mut length) = (vec![0u8; 4096], 0);
        must(unsafe { wfmm_plan_recipe(self.handle, text.as_mut_ptr().cast(), text.len(), &mut length) });
        String::from_utf8_lossy(&text[..length.min(4095)]).into_owned()
    }
}

impl<T> Drop for Plan<T> {
    fn drop(&mut self) {
        unsafe { wfmm_plan_destroy(&mut self.handle) };
    }
}
