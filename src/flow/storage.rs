//! Where the arrays of a flow are: in host memory, and on a session with a GPU in device memory while they are stepped.
//!
//! Enters: edits, which are done in host memory but for particles that are set from device memory; steps, which are done where the
//! session computes. Leaves: host arrays that are up to date, for who asks for them. Rows of a kind are copied to the device when a step finds them new, and back when somebody
//! reads them; a run of steps copies nothing.
//!
//! ```text
//!   Store ── state, history (host)        who reads them: `read`, `edit` bring them up to date first
//!     ├ InHost      steps in host memory   step.rs, narrow.rs
//!     └ Resident    device copies          device.rs, device_step.rs, device_narrow.rs
//! ```

use std::sync::Arc;

use super::device::{GivenParticles, Resident};
use super::device_step::Places;
use super::dust::Medium;
use super::integrate::History;
use super::narrow::exchange;
use super::options::{ElementKind, FlowOptions};
use super::picture::camera::Camera;
use super::reinterpolate::{Carried, Narrowed};
use super::state::State;
use super::step::InHost;
use super::sums::Sums;
use crate::backend::cuda::Context;
use crate::error::Result;
use crate::options::Plane;
use crate::session::{Device, GivenUp, Session, WORTH_PAIRS, takes_over};

/// All kinds.
pub const ALL: [ElementKind; 5] = [
    ElementKind::Particles,
    ElementKind::Filaments,
    ElementKind::BoundSegments,
    ElementKind::Tracers,
    ElementKind::Dust,
];

/// What the steps of a flow work with beside its arrays.
pub struct Tools<'a> {
    pub sums: &'a mut Sums,
    pub options: &'a FlowOptions,
    pub medium: Medium,
    pub plane: Option<Plane>,
    pub session: &'a Session,
}

/// The host's arrays of a flow, for a storage that keeps some elsewhere.
pub struct Held<'a> {
    pub state: &'a mut State,
    pub history: &'a mut Option<History>,
}

/// Where a flow is stepped.
pub trait Storage {
    /// One step of dt: the longest way of what moves; or an error, and the state is as it was.
    fn step(&mut self, held: Held<'_>, tools: &mut Tools<'_>, dt: f64) -> Result<f64>;

    /// U at points `[n][3]` in host memory at the present time, and the gradient of its induced part (else empty).
    fn velocity(
        &mut self,
        held: Held<'_>,
        tools: &mut Tools<'_>,
        x: &[f64],
        gradient: bool,
    ) -> Result<(Vec<f64>, Vec<f64>)>;

    /// The largest squared core of a particle, 0 without one.
    fn largest_core2(&mut self, held: Held<'_>) -> Result<f64>;

    /// Narrower cores for particles close to the limit, and strengths that carry the same vorticity; nothing where they do not fit,
    /// or an error, and the state is as it was.
    fn narrow(&mut self, held: Held<'_>, tools: &Tools<'_>, limit2: f64) -> Result<Option<Narrowed>>;
}

/// The GPU of a flow's session.
struct Gpu {
    context: Arc<Context>,
    /// The CPU may take over.
    auto: bool,
    given_up: GivenUp,
    /// Made when first needed.
    resident: Option<Box<Resident>>,
}

/// See the head of this file.
pub struct Store {
    state: State,
    history: Option<History>,
    gpu: Option<Gpu>,
}

impl Store {
    /// The arrays of a distributed session stay in host memory; on GPUs it computes the sums only.
    pub fn new(session: &Session) -> Self {
        let gpu = match session.device() {
            Device::Cpu => None,
            Device::Cuda { .. } if session.communicator().is_some() => None,
            Device::Cuda { context, auto } => {
                Some(Gpu { context: context.clone(), auto: *auto, given_up: GivenUp::default(), resident: None })
            }
        };
        Self { state: State::default(), history: None, gpu }
    }

    /// The state for what is never older than the device's: time, identities, connectivities, lengths of all arrays, and what no
    /// step changes (bound segments, circulations, diameters, densities).
    pub fn known(&self) -> &State {
        &self.state
    }

    /// The state and history with the numbers of these kinds up to date.
    pub fn read(&mut self, kinds: &[ElementKind]) -> Result<(&State, Option<&History>)> {
        self.bring_back(kinds)?;
        Ok((&self.state, self.history.as_ref()))
    }

    /// Whether the host's numbers of a kind are up to date.
    pub fn is_read(&self, kind: ElementKind) -> bool {
        !self.resident().is_some_and(|resident| resident.is_newer(kind))
    }

    /// What of the history was read.
    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// The same to change what is there of a kind.
    pub fn edit(&mut self, kind: ElementKind) -> Result<Held<'_>> {
        self.bring_back(&[kind])?;
        self.replaced(&[kind]);
        Ok(Held { state: &mut self.state, history: &mut self.history })
    }

    /// To replace all of a kind: its old numbers do not matter.
    pub fn replace(&mut self, kind: ElementKind) -> Held<'_> {
        self.replaced(&[kind]);
        Held { state: &mut self.state, history: &mut self.history }
    }

    /// To append, or to make room.
    pub fn append(&mut self) -> Held<'_> {
        Held { state: &mut self.state, history: &mut self.history }
    }

    /// Everything anew.
    pub fn set(&mut self, state: State, history: Option<History>) {
        self.replaced(&ALL);
        (self.state, self.history) = (state, history);
    }

    /// Steps from now on have no last one; a device forgets its rates in the next step.
    pub fn begin_anew(&mut self) {
        self.history = None;
    }

    /// Bytes of device memory.
    pub fn device_bytes(&self) -> u64 {
        self.resident().map_or(0, Resident::bytes)
    }

    fn resident(&self) -> Option<&Resident> {
        self.gpu.as_ref()?.resident.as_deref()
    }

    fn replaced(&mut self, kinds: &[ElementKind]) {
        if let Some(resident) = self.gpu.as_mut().and_then(|gpu| gpu.resident.as_mut()) {
            resident.replaced(kinds);
        }
    }

    fn bring_back(&mut self, kinds: &[ElementKind]) -> Result<()> {
        match self.gpu.as_mut().and_then(|gpu| gpu.resident.as_mut()) {
            Some(resident) => resident.bring_back(kinds, Held { state: &mut self.state, history: &mut self.history }),
            None => Ok(()),
        }
    }

    /// One step of dt: the longest way.
    pub fn step(&mut self, tools: &mut Tools<'_>, dt: f64) -> Result<f64> {
        let worth = self.worth(self.state.moving_points());
        if let Some(answer) = self.on_gpu(tools, worth, |resident, held, tools| resident.step(held, tools, dt)) {
            return answer;
        }
        self.bring_back(&ALL)?;
        let way = InHost.step(Held { state: &mut self.state, history: &mut self.history }, tools, dt)?;
        self.replaced(&ALL);
        Ok(way)
    }

    /// U at points at the present time, and the gradient of its induced part.
    pub fn velocity(&mut self, tools: &mut Tools<'_>, x: &[f64], gradient: bool) -> Result<(Vec<f64>, Vec<f64>)> {
        let at = |resident: &mut Resident, held: Held<'_>, tools: &mut Tools<'_>| {
            resident.velocity(held, tools, x, gradient)
        };
        let worth = self.worth(x.len() / 3);
        if let Some(answer) = self.on_gpu(tools, worth, at) {
            return answer;
        }
        self.bring_back(&ALL)?;
        InHost.velocity(Held { state: &mut self.state, history: &mut self.history }, tools, x, gradient)
    }

    /// The same at a caller's points in device memory, to his arrays there. False, and nothing is written, where the host has to
    /// see them: it computes, or has to say which of them is not finite.
    pub fn velocity_at(&mut self, tools: &mut Tools<'_>, at: Places<'_>) -> Result<bool> {
        let worth = self.worth(at.target.len() / 3);
        let done = self.on_gpu(tools, worth, |resident, held, tools| resident.velocity_at(held, tools, at));
        done.unwrap_or(Ok(false))
    }

    /// Particles of one core radius in the place of those that were there, from a caller's arrays in device memory. False, and
    /// nothing has changed, for the same reasons.
    pub fn set_particles(&mut self, tools: &mut Tools<'_>, given: GivenParticles<'_>) -> Result<bool> {
        let n = given.position.len() / 3;
        let worth = n as f64 * n as f64 >= WORTH_PAIRS;
        let done = self.on_gpu(tools, worth, |resident, held, _| resident.renew_particles(held, given));
        done.unwrap_or(Ok(false))
    }

    /// The largest squared core of a particle, 0 without one.
    pub fn largest_core2(&mut self, tools: &mut Tools<'_>) -> Result<f64> {
        let worth = self.worth(self.state.moving_points());
        if let Some(answer) = self.on_gpu(tools, worth, |resident, held, _| resident.largest_core2(held)) {
            return answer;
        }
        self.bring_back(&[ElementKind::Particles])?;
        InHost.largest_core2(Held { state: &mut self.state, history: &mut self.history })
    }

    /// Narrower cores where steps are done; nothing where they do not fit.
    pub fn narrow(&mut self, tools: &mut Tools<'_>, limit2: f64) -> Result<Option<Narrowed>> {
        let worth = self.worth(self.state.moving_points());
        if let Some(answer) = self.on_gpu(tools, worth, |resident, held, tools| resident.narrow(held, tools, limit2)) {
            return answer;
        }
        self.bring_back(&[ElementKind::Particles])?;
        let held = Held { state: &mut self.state, history: &mut self.history };
        let narrowed = InHost.narrow(held, tools, limit2)?;
        if narrowed.is_some() {
            self.replaced(&[ElementKind::Particles]);
        }
        Ok(narrowed)
    }

    /// Puts back what was there before cores were narrowed; needs no memory where that is still where it was.
    pub fn take_back(&mut self, before: &mut Carried) -> Result<()> {
        let before = match before {
            Carried::InHost(before) => before,
            Carried::OnDevice(before) => {
                let resident = self.gpu.as_mut().and_then(|gpu| gpu.resident.as_mut());
                let resident = resident.expect("it has narrowed them");
                if resident.put_back(before) {
                    return Ok(());
                }
                &mut resident.brought_back(before)?
            }
        };
        let Held { state, history } = self.edit(ElementKind::Particles)?;
        exchange(state, history, before);
        Ok(())
    }

    /// Draws a picture on the GPU; nothing where the host does. Under AUTO the host draws what it has stepped itself.
    pub fn picture(
        &mut self,
        tools: &mut Tools<'_>,
        camera: &Camera,
        plane: Option<Plane>,
        to: &mut [u8],
    ) -> Option<Result<()>> {
        let there = self.resident().is_some_and(|resident| resident.has_all(&self.state));
        self.on_gpu(tools, there, |resident, held, tools| resident.picture(held, tools, camera, plane, to))
    }

    /// Whether a GPU is worth its while under AUTO.
    fn worth(&self, targets: usize) -> bool {
        self.state.vortices() as f64 * targets as f64 >= WORTH_PAIRS
    }

    /// Work on the GPU where it serves it; nothing where it is the host's. Under AUTO the host takes over from a GPU that fails.
    fn on_gpu<R>(
        &mut self,
        tools: &mut Tools<'_>,
        worth: bool,
        work: impl FnOnce(&mut Resident, Held<'_>, &mut Tools<'_>) -> Result<R>,
    ) -> Option<Result<R>> {
        let gpu = self.gpu.as_mut()?;
        if gpu.auto && !(gpu.given_up.serves() && worth) {
            return None;
        }
        let held = Held { state: &mut self.state, history: &mut self.history };
        let answer = gpu.resident(tools.session).and_then(|resident| work(resident, held, tools));
        match answer {
            Err(error) if gpu.auto && takes_over(&error) => {
                // What only a lost device has is lost: then this fails too, and the flow with it.
                if let Err(lost) = self.bring_back(&ALL) {
                    return Some(Err(lost));
                }
                let gpu = self.gpu.as_mut()?;
                if let Some(resident) = &mut gpu.resident {
                    resident.release();
                }
                gpu.given_up.note(error);
                None
            }
            answer => Some(answer),
        }
    }
}

impl Gpu {
    fn resident(&mut self, session: &Session) -> Result<&mut Resident> {
        if self.resident.is_none() {
            self.resident = Some(Box::new(Resident::new(&self.context, session.pool().clone(), self.auto)?));
        }
        Ok(self.resident.as_mut().expect("made above"))
    }
}
