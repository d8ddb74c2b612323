//! WFMM_BACKEND_AUTO on a machine with a GPU: small problems stay on the CPU, and the CPU takes over when the GPU fails.
//!
//! Enters: how to make either engine. Leaves: the answer of one of them, and one warning in the log when the GPU failed. The ranks of a
//! distributed session choose alike: by the numbers of all of them, and by errors that are the same on all.

use crate::backend::images::Slot;
use crate::backend::{Engine, Field};
use crate::distributed::Communicator;
use crate::error::{Error, Result, WFMM_ERR_DEVICE_MEMORY, WFMM_ERR_UNSUPPORTED};
use crate::inputs::{Inputs, Ints, Reals, RealsMut};
use crate::logging::warn_once;
use crate::report::Report;

/// Least number of pairs for the GPU. Below it the CPU finishes before a kernel launch, two copies and a wait do (20 µs, the CPU
/// sums 1e9 pairs a second and core).
pub const WORTH_PAIRS: f64 = 2e5;
/// Number of calls that the CPU serves after the device's memory was full, before the GPU is tried again: other programs may have
/// freed theirs.
const CPU_CALLS_AFTER_FULL: u32 = 8;

type Maker<R> = Box<dyn FnMut() -> R + Send>;

/// Whether the GPU failed: it is not tried again, or, where its memory was full, not for some calls.
#[derive(Debug, Default)]
pub struct GivenUp {
    failed: Option<Error>,
    cpu_calls_left: u32,
}

impl GivenUp {
    /// Counts a call; whether the GPU serves it. A device whose memory was full may have room now.
    pub fn serves(&mut self) -> bool {
        if self.failed.as_ref().is_some_and(|error| error.status == WFMM_ERR_DEVICE_MEMORY) {
            match self.cpu_calls_left.checked_sub(1) {
                Some(left) => self.cpu_calls_left = left,
                None => self.failed = None,
            }
        }
        self.failed.is_none()
    }

    /// The CPU takes over.
    pub fn note(&mut self, error: Error) {
        warn_once!("the GPU failed, the CPU takes over: {error}");
        (self.failed, self.cpu_calls_left) = (Some(error), CPU_CALLS_AFTER_FULL);
    }

    pub fn why(&self) -> Option<&Error> {
        self.failed.as_ref()
    }
}

/// One plan's engine under AUTO.
pub struct Fallback {
    make_cuda: Maker<Result<Box<dyn Engine>>>,
    make_cpu: Maker<Box<dyn Engine>>,
    cuda: Option<Box<dyn Engine>>,
    cpu: Option<Box<dyn Engine>>,
    given_up: GivenUp,
    last_on_cpu: bool,
    stream: u64,
    /// Who chooses with this one.
    ranks: Option<Communicator>,
}

impl Fallback {
    pub fn new(make_cuda: Maker<Result<Box<dyn Engine>>>, make_cpu: Maker<Box<dyn Engine>>) -> Self {
        let given_up = GivenUp::default();
        Self { make_cuda, make_cpu, cuda: None, cpu: None, given_up, last_on_cpu: false, stream: 0, ranks: None }
    }

    /// The same for one rank of many, whose engines are made and called on all ranks together.
    pub fn of_ranks(mut self, ranks: &Communicator) -> Self {
        self.ranks = Some(ranks.clone());
        self
    }

    /// Whether some array is in device memory, and the pairs of a rank, of all ranks alike.
    fn size(&self, inputs: &Inputs, on_device: bool) -> Result<(bool, f64)> {
        let (sources, targets) = numbers(inputs);
        let on_device = on_device || any_on_device(inputs);
        let Some(ranks) = &self.ranks else { return Ok((on_device, sources * targets)) };
        let all = ranks.total(&[f64::from(u8::from(on_device)), sources, targets])?;
        Ok((all[0] > 0.0, all[1] * all[2] / ranks.size() as f64))
    }

    /// Runs `work` on the engine for this problem, and after a failure of the GPU on the CPU. `stays`: whatever the size is.
    fn run<R>(
        &mut self,
        inputs: &Inputs,
        [on_device, stays]: [bool; 2],
        mut work: impl FnMut(&mut dyn Engine) -> Result<R>,
    ) -> Result<R> {
        let (on_device, pairs) = self.size(inputs, on_device)?;
        if self.given_up.serves() && (on_device || stays || pairs >= WORTH_PAIRS) {
            match self.cuda().and_then(&mut work) {
                Err(error) if takes_over(&error) && !on_device => {
                    self.cuda = None;
                    self.given_up.note(error);
                }
                answer => {
                    self.last_on_cpu = false;
                    return answer;
                }
            }
        }
        // Arrays in device memory cannot be read by the CPU.
        if on_device && let Some(error) = self.given_up.why() {
            return Err(error.clone());
        }
        self.last_on_cpu = true;
        work(self.cpu.get_or_insert_with(&mut self.make_cpu).as_mut())
    }

    fn cuda(&mut self) -> Result<&mut dyn Engine> {
        if self.cuda.is_none() {
            self.cuda = Some((self.make_cuda)()?);
        }
        let engine = self.cuda.as_mut().expect("made above").as_mut();
        engine.order_after(self.stream);
        Ok(engine)
    }

    fn last(&self) -> Option<&dyn Engine> {
        if self.last_on_cpu { self.cpu.as_deref() } else { self.cuda.as_deref() }
    }
}

/// A missing resource, a lost object or a sum that a GPU does not have, as against a mistake of the caller.
pub fn takes_over(error: &Error) -> bool {
    let is_missing = error.status < 0 || (100..200).contains(&error.status) || error.status == WFMM_ERR_UNSUPPORTED;
    !error.partly_written && is_missing
}

/// Sources and targets.
fn numbers(inputs: &Inputs) -> (f64, f64) {
    let sources = inputs.vortices().max(inputs.charges.as_ref().map_or(0, |c| c.n));
    (sources as f64, inputs.points() as f64)
}

fn any_on_device(inputs: &Inputs) -> bool {
    let mut reals: Vec<&Reals> = Vec::new();
    if let Some(s) = &inputs.segments {
        if matches!(s.connectivity, Ints::Device { .. }) {
            return true;
        }
        reals.extend([&s.points, &s.circulation]);
        reals.extend(&s.core);
    }
    if let Some(p) = &inputs.particles {
        reals.extend([&p.position, &p.strength]);
        reals.extend(&p.core);
    }
    if let Some(c) = &inputs.charges {
        reals.extend([&c.position, &c.charge]);
    }
    reals.extend(inputs.targets.as_ref().map(|t| &t.position));
    reals.iter().any(|r| matches!(r, Reals::DeviceF32 { .. } | Reals::DeviceF64 { .. }))
}

impl Engine for Fallback {
    fn prepare(&mut self, inputs: &Inputs, field: Field) -> Result<()> {
        self.run(inputs, [false; 2], |engine| engine.prepare(inputs, field))
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        mut main: RealsMut<'_>,
        mut gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        let on_device = |to: &RealsMut<'_>| matches!(to, RealsMut::DeviceF32 { .. } | RealsMut::DeviceF64 { .. });
        let any = on_device(&main) || gradient.as_ref().is_some_and(on_device);
        self.run(inputs, [any, false], |engine| {
            engine.evaluate(inputs, field, main.again(), gradient.as_mut().map(RealsMut::again))
        })
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        // The engine of the last field, which may have been on the GPU for its outputs' sake.
        let stays = self.cuda.is_some() && !self.last_on_cpu;
        self.run(inputs, [false, stays], |engine| engine.check(inputs, field, samples, seed))
    }

    fn bring(&mut self, inputs: &Inputs) {
        let (sources, targets) = numbers(inputs);
        if let Some(engine) = self.cuda.as_mut().filter(|_| sources * targets >= WORTH_PAIRS) {
            engine.bring(inputs);
        }
    }

    fn bring_array(&mut self, slot: Slot, array: &Reals, change: u64) {
        if let Some(engine) = &mut self.cuda {
            engine.bring_array(slot, array, change);
        }
    }

    fn order_after(&mut self, stream: u64) {
        self.stream = stream;
    }

    fn recipe(&self) -> String {
        let mut text = match self.last() {
            Some(engine) => engine.recipe(),
            None => "Nothing was chosen yet.".into(),
        };
        if let Some(error) = self.given_up.why() {
            text += &format!(" The GPU was given up: {}.", error.message);
        }
        text
    }

    fn report(&self) -> Report {
        self.last().map_or_else(Report::default, |engine| engine.report())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{ParticleInput, TargetInput};

    /// Answers with a number, or fails with a status.
    struct Stub(i32, f64);

    impl Engine for Stub {
        fn prepare(&mut self, _: &Inputs, _: Field) -> Result<()> {
            Ok(())
        }
        fn evaluate(&mut self, _: &Inputs, _: Field, main: RealsMut<'_>, _: Option<RealsMut<'_>>) -> Result<()> {
            if self.0 != 0 {
                return Error::fail(self.0, "stub");
            }
            let RealsMut::HostF64(values) = main else { panic!("host output expected") };
            values.fill(self.1);
            Ok(())
        }
        fn check(&mut self, _: &Inputs, _: Field, _: usize, _: u64) -> Result<f64> {
            Ok(self.1)
        }
        fn recipe(&self) -> String {
            format!("stub {}.", self.1)
        }
        fn report(&self) -> Report {
            Report::default()
        }
    }

    fn problem(n: usize) -> Inputs {
        let reals = Reals::HostF64(vec![0.0; 3 * n].into());
        Inputs {
            particles: Some(ParticleInput {
                n,
                position: reals.clone(),
                strength: reals.clone(),
                core: None,
                default_core: 0.0,
            }),
            targets: Some(TargetInput { n, position: reals }),
            ..Inputs::default()
        }
    }

    fn answer(status: i32, n: usize) -> (Result<f64>, String) {
        let mut engine =
            Fallback::new(Box::new(move || Ok(Box::new(Stub(status, 2.0)))), Box::new(|| Box::new(Stub(0, 1.0))));
        let mut out = [0.0];
        let field = Field::Velocity { gradient: false };
        let result = engine.evaluate(&problem(n), field, RealsMut::HostF64(&mut out), None);
        (result.map(|()| out[0]), engine.recipe())
    }

    #[test]
    fn the_gpu_serves_what_is_worth_it() {
        assert_eq!(answer(0, 10).0.unwrap(), 1.0);
        assert_eq!(answer(0, 1000).0.unwrap(), 2.0);
    }

    #[test]
    fn a_full_device_is_asked_again() {
        let full = std::sync::Arc::new(std::sync::atomic::AtomicI32::new(WFMM_ERR_DEVICE_MEMORY));
        let status = full.clone();
        let mut engine = Fallback::new(
            Box::new(move || Ok(Box::new(Stub(status.load(std::sync::atomic::Ordering::Relaxed), 2.0)))),
            Box::new(|| Box::new(Stub(0, 1.0))),
        );
        let mut answer = || {
            let mut out = [0.0];
            let field = Field::Velocity { gradient: false };
            engine.evaluate(&problem(1000), field, RealsMut::HostF64(&mut out), None).unwrap();
            out[0]
        };
        assert_eq!(answer(), 1.0);
        full.store(0, std::sync::atomic::Ordering::Relaxed);
        let served: Vec<f64> = (0..=CPU_CALLS_AFTER_FULL).map(|_| answer()).collect();
        assert!(
            served[..CPU_CALLS_AFTER_FULL as usize].iter().all(|x| *x == 1.0)
                && served[CPU_CALLS_AFTER_FULL as usize] == 2.0,
            "{served:?}"
        );
    }

    #[test]
    fn the_cpu_takes_over_from_a_failing_gpu_but_not_from_a_mistake() {
        for status in [100, 102, 104, -3] {
            let (result, recipe) = answer(status, 1000);
            assert_eq!(result.unwrap(), 1.0);
            assert!(recipe.contains("given up"), "{recipe}");
        }
        assert_eq!(answer(7, 1000).0.unwrap_err().status, 7);
    }
}
