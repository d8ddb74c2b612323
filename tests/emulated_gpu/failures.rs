//! What is added to the caller's fields when something fails: nothing, or all of it once. Memory of this device is the host's, so
//! that its arrays can be looked at as they are.

use super::harness::with_gpu;
use super::support::accuracy::relative_l2;
use super::support::cases::{Case, Kind, case};
use wakefmm::backend::Field;
use wakefmm::error::{Error, WFMM_ERR_DEVICE_LOST, WFMM_ERR_DEVICE_MEMORY, WFMM_ERR_MEMORY, WFMM_ERR_NOT_FINITE};
use wakefmm::options::*;
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::{Array, ArrayMut};
use wakefmm::plan::sources::{Particles, Segments};
use wakefmm::session::Session;

/// More particles than segments: these need more memory.
fn both() -> Case {
    let (mut c, more) = (case("cube", Kind::Segments, 300, 500, 1.0), case("cube", Kind::Particles, 700, 1, 1.0));
    (c.position, c.strength) = (more.position, more.strength);
    c
}

fn plan(backend: BackendKind, c: &Case, flags: u64) -> Plan {
    let options = wfmm_plan_options { method: WFMM_METHOD_DIRECT, core_radius: 0.1, flags, ..Default::default() };
    plan_of(backend, c, options)
}

fn plan_of(backend: BackendKind, c: &Case, options: wfmm_plan_options) -> Plan {
    let session = Session::new(&SessionOptions { backend, device: None, devices: vec![], threads: 1 }).unwrap();
    let mut plan = Plan::new(session, PlanOptions::checked(&options).unwrap());
    let segments = Segments {
        points: Array::Host(c.points.as_flattened()),
        n_points: c.points.len(),
        n: c.circulation.len(),
        ld: 2,
        connectivity: Array::Host(&c.ends),
        circulation: Array::Host(&c.circulation),
        core: None,
    };
    plan.set_segments(Some(segments)).unwrap();
    let (n, position, strength) = (c.position.len(), c.position.as_flattened(), c.strength.as_flattened());
    let particles = Particles { n, position: Array::Host(position), strength: Array::Host(strength), core: None };
    plan.set_particles(Some(particles)).unwrap();
    plan.set_targets(Some((c.targets.len(), Array::Host(c.targets.as_flattened())))).unwrap();
    plan
}

/// Field and gradient, of ones at first.
#[derive(Debug, Clone, PartialEq)]
struct Fields([Vec<f64>; 2]);

impl Fields {
    fn ones(c: &Case) -> Self {
        Self([3, 9].map(|width| vec![1.0; width * c.targets.len()]))
    }

    /// Adds what `plan` computes, or writes it over these; which of both are said to be in device memory.
    fn take(&mut self, plan: &mut Plan, on_device: [bool; 2]) -> Result<(), Error> {
        fn array(values: &mut [f64], on_device: bool) -> ArrayMut<'_, f64> {
            let (address, len) = (values.as_mut_ptr() as u64, values.len());
            if on_device { ArrayMut::Device { address, len } } else { ArrayMut::Host(values) }
        }
        let [main, gradient] = &mut self.0;
        let gradient = array(gradient, on_device[1]);
        plan.evaluate(Field::Velocity { gradient: true }, array(main, on_device[0]), Some(gradient))
    }

    /// Whether these are ones and `times` the field.
    fn are_ones_and(&self, times: f64, c: &Case) -> bool {
        let mut field = Self::ones(c);
        field.take(&mut plan(BackendKind::Cpu, c, 0), [false; 2]).unwrap();
        (0..2).all(|k| {
            let want: Vec<f64> = field.0[k].iter().map(|x| 1.0 + times * x).collect();
            relative_l2(&self.0[k], &want) < 1e-10
        })
    }
}

#[test]
fn fields_on_both_sides_of_the_bus_are_not_added_to() {
    with_gpu("failures::fields_on_both_sides_of_the_bus_are_not_added_to", &[], || {
        let c = both();
        for backend in [BackendKind::Cuda, BackendKind::Auto] {
            let (mut adding, mut fields) = (plan(backend, &c, WFMM_FLAG_ACCUMULATE), Fields::ones(&c));
            for on_device in [[true, false], [false, true]] {
                let error = fields.take(&mut adding, on_device).unwrap_err();
                assert_eq!(error.status, WFMM_ERR_MEMORY, "{error}");
                assert!(
                    error.message.contains("both fields must be in host memory, or both in device memory"),
                    "{error}"
                );
                assert!(fields == Fields::ones(&c), "{backend:?} {on_device:?}: something was written");
            }
            fields.take(&mut adding, [false; 2]).unwrap();
            assert!(fields.are_ones_and(1.0, &c), "{backend:?}: in host memory");
            fields.take(&mut adding, [true; 2]).unwrap();
            assert!(fields.are_ones_and(2.0, &c), "{backend:?}: in device memory");
            fields.take(&mut plan(backend, &c, 0), [true, false]).unwrap();
            fields.0.iter_mut().flatten().for_each(|x| *x += 1.0);
            assert!(fields.are_ones_and(1.0, &c), "{backend:?}: written, not added");
        }
    });
}

/// Under AUTO the CPU takes over from a GPU that is lost, unless something was added already: it would be added twice.
#[test]
fn nothing_is_added_twice() {
    const NAME: &str = "failures::nothing_is_added_twice";
    let run = |failure: &str, is_taken_over: bool| {
        with_gpu(NAME, &[("FAKE_CUDA", failure), ("TAKEN_OVER", if is_taken_over { "1" } else { "0" })], || {
            let (c, is_taken_over) = (both(), std::env::var("TAKEN_OVER").is_ok_and(|text| text == "1"));
            let (mut plan, mut fields) = (plan(BackendKind::Auto, &c, WFMM_FLAG_ACCUMULATE), Fields::ones(&c));
            match fields.take(&mut plan, [false; 2]) {
                Ok(()) => assert!(is_taken_over && fields.are_ones_and(1.0, &c), "the CPU's field, once"),
                Err(error) => assert!(!is_taken_over && error.status == WFMM_ERR_DEVICE_LOST, "{error}"),
            }
        })
    };
    // At a launch, when its end was waited for, at the first copy: nothing was added yet. Then the velocities were.
    for (failure, is_taken_over) in [("kernel", true), ("late_kernel", true), ("lost_at_1", true), ("lost_at_2", false)]
    {
        if run(failure, is_taken_over).is_empty() {
            return; // the child
        }
    }
}

/// Memory for every kind of source is there before the first one writes.
#[test]
fn memory_that_ends_at_the_second_kind_leaves_fields_alone() {
    let mut refused = 0;
    for at in 9..17 {
        // Who asks for more than is needed asks a second time.
        let settings = [("FAKE_CUDA", &*format!("full_at_{at}_{}", at + 1))];
        let text = with_gpu("failures::memory_that_ends_at_the_second_kind_leaves_fields_alone", &settings, || {
            let c = both();
            let (mut plan, mut fields) = (plan(BackendKind::Cuda, &c, WFMM_FLAG_ACCUMULATE), Fields::ones(&c));
            // Until the last request that is refused.
            while let Err(error) = fields.take(&mut plan, [true; 2]) {
                assert_eq!(error.status, WFMM_ERR_DEVICE_MEMORY, "{error}");
                assert!(fields == Fields::ones(&c), "request {}: something was added", settings[0].1);
                println!("\nrefused");
            }
            assert!(fields.are_ones_and(1.0, &c), "request {}", settings[0].1);
        });
        if text.is_empty() {
            return; // the child
        }
        refused += text.matches("\nrefused").count();
    }
    assert!(refused >= 5, "{refused} of eight were refused");
}

/// A field that misses its tolerance is not added, but the one that holds it, of both kinds of source; then its graphs add as well.
#[test]
fn only_what_holds_the_tolerance_is_added() {
    with_gpu("failures::only_what_holds_the_tolerance_is_added", &[], || {
        let mut c = both();
        // Beside their sources: see `a_field_that_misses_its_tolerance_is_computed_again`.
        c.targets.iter_mut().for_each(|x| x[0] += 1.5);
        let (tolerance, flags) = (1e-3, WFMM_FLAG_ACCUMULATE);
        let none = WFMM_REG_NONE;
        let bare =
            wfmm_plan_options { segment_regularization: none, particle_regularization: none, ..Default::default() };
        let direct = wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..bare };
        let mut exact = Fields::ones(&c);
        exact.take(&mut plan_of(BackendKind::Cpu, &c, direct), [false; 2]).unwrap();
        let fmm = wfmm_plan_options { method: WFMM_METHOD_FMM, tolerance, flags, ..bare };
        let (mut adding, mut fields) = (plan_of(BackendKind::Cuda, &c, fmm), Fields::ones(&c));
        for times in 1..5 {
            fields.take(&mut adding, [true; 2]).unwrap();
            let recipe = adding.recipe();
            assert!(recipe.starts_with("FMM") && (times > 1 || recipe.contains("after tightening")), "{recipe}");
            let one = |k: usize| fields.0[k].iter().map(|x| (x - 1.0) / f64::from(times)).collect::<Vec<f64>>();
            let errors = [0, 1].map(|k| relative_l2(&one(k), &exact.0[k]));
            assert!(errors[0] <= tolerance && errors[1] <= 30.0 * tolerance, "{times} times: {errors:?}");
        }
    });
}

/// Arrays go to the device while the others of a call are still copied. One that is refused leaves the plan as it was, and the next ones are not
/// taken for those before it.
#[test]
fn arrays_of_a_refused_call_are_forgotten() {
    with_gpu("failures::arrays_of_a_refused_call_are_forgotten", &[], || {
        let n = 10_000;
        let at = |shift: f64| -> Vec<f64> { (0..3 * n).map(|k| shift + (k * 7919 % n) as f64 / n as f64).collect() };
        let (charge, targets) = (vec![1.0; n], [0.4, 0.5, 1.7, 0.2, 1.9, 0.1]);
        let potential = |plan: &mut Plan| {
            let mut u = vec![0.0; 2];
            plan.evaluate(Field::Potential { gradient: false }, ArrayMut::Host(&mut u[..]), None).unwrap();
            u
        };
        let set = |plan: &mut Plan, shift: f64, charge: &[f64]| {
            plan.set_charges(Some((n, Array::Host(&at(shift)[..]), Array::Host(charge))))
        };
        let session = |backend| SessionOptions { backend, device: None, devices: vec![], threads: 1 };
        let options = wfmm_plan_options { method: WFMM_METHOD_DIRECT, ..Default::default() };
        let [mut on_gpu, mut on_cpu] = [BackendKind::Cuda, BackendKind::Cpu].map(|backend| {
            let session = Session::new(&session(backend)).unwrap();
            let mut plan = Plan::new(session, PlanOptions::checked(&options).unwrap());
            plan.set_targets(Some((2, Array::Host(&targets[..])))).unwrap();
            plan
        });
        let mut bad = charge.clone();
        bad[n - 1] = f64::NAN;
        for shift in [0.0, 2.0, 4.0] {
            let right = [&mut on_gpu, &mut on_cpu].map(|plan| {
                set(plan, shift, &charge).unwrap();
                potential(plan)
            });
            assert!(relative_l2(&right[0], &right[1]) < 1e-12, "{shift}");
            assert_eq!(set(&mut on_gpu, shift + 1.0, &bad).unwrap_err().status, WFMM_ERR_NOT_FINITE);
            assert_eq!(potential(&mut on_gpu), right[0], "after what was refused");
        }
    });
}
