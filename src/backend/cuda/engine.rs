//! The CUDA engine: inputs to the device, the sum there, the field back.
//!
//! Enters: a plan's inputs and options. Leaves: fields in host or device memory. Work is queued on one stream; a call
//! returns when its field is written.

use super::args::RealsArg;
use super::context::Context;
use super::direct::{CudaReal, Output, Task};
use super::fmm::Ranks;
use super::gather::{DeviceInputs, Gather, Reader};
use super::memory::Buffer;
use super::periodic::Periodic;
use super::staging::Staging;
use super::stream::{Event, Stream};
use super::sums::Sums;
use crate::backend::draw::stratified;
use crate::backend::images::Slot;
use crate::backend::verdict::{relative, squares, unit_of};
use crate::backend::{Engine, Field};
use crate::error::{Error, Result, WFMM_ERR_MEMORY};
use crate::inputs::{Inputs, Reals, RealsMut, TargetInput};
use crate::memory;
use crate::options::{PlanOptions, WFMM_BACKEND_CUDA, WFMM_METHOD_DIRECT, WFMM_PRECISION_F32, WFMM_PRECISION_F64};
use crate::report::{Pass, Report};
use std::sync::Arc;
use std::time::Instant;

/// One plan on one device.
#[derive(Debug)]
pub struct CudaEngine<T: CudaReal> {
    options: PlanOptions,
    context: Arc<Context>,
    pool: Arc<rayon::ThreadPool>,
    stream: Stream,
    /// The caller's stream, which makes his device arrays; 0: the default stream.
    caller: u64,
    gather: Gather,
    staging: Staging,
    /// Of a periodic domain.
    periodic: Option<Periodic>,
    /// Who decides with this engine.
    ranks: Ranks,
    /// The changes of arrays in device memory are counted.
    owns_arrays: bool,
    sums: Sums<T>,
    /// Fields on their way to host memory.
    main: Buffer<u8>,
    gradient: Buffer<u8>,
    begin: Event,
    end: Event,
    report: Report,
}

impl<T: CudaReal> CudaEngine<T> {
    pub fn new(options: PlanOptions, context: Arc<Context>, pool: Arc<rayon::ThreadPool>) -> Result<Self> {
        Ok(Self {
            stream: Stream::new(&context)?,
            caller: 0,
            gather: Gather::new(&context),
            periodic: options.period.map(|_| Periodic::new(&context)),
            staging: Staging::new(&context, pool.clone()),
            ranks: Ranks::default(),
            owns_arrays: false,
            sums: Sums::new(&context),
            main: Buffer::new(&context),
            gradient: Buffer::new(&context),
            begin: Event::new(&context)?,
            end: Event::new(&context)?,
            report: Report {
                backend: WFMM_BACKEND_CUDA,
                method: WFMM_METHOD_DIRECT,
                precision: if T::IS_F64 { WFMM_PRECISION_F64 } else { WFMM_PRECISION_F32 },
                ..Report::default()
            },
            options,
            context,
            pool,
        })
    }

    /// From now on all ranks decide together: their calls of `evaluate` are collective.
    pub fn join(&mut self, ranks: Ranks) {
        self.ranks = ranks;
    }

    /// What copies arrays to this device, and the stream of this engine's work, in whose order it is done.
    pub fn intake(&mut self) -> (&mut Gather, &Stream) {
        (&mut self.gather, &self.stream)
    }

    /// What brings arrays to this device together with others; `arrived` is an event of the caller's.
    pub fn reader<'a>(&'a mut self, arrived: &'a Event) -> Reader<'a> {
        Reader { gather: &mut self.gather, stream: &self.stream, arrived }
    }

    /// From now on the changes of all arrays in device memory are counted.
    pub fn own_arrays(&mut self) {
        self.owns_arrays = true;
    }

    /// Brings the inputs to the device, after what the caller has queued on his stream.
    fn take_over(&mut self, inputs: &Inputs) -> Result<DeviceInputs> {
        let caller = Stream::borrowed(&self.context, self.caller as *mut std::ffi::c_void);
        self.begin.record(&caller)?;
        self.stream.wait(&self.begin)?;
        let device = self.gather.update(inputs, &mut self.staging, &self.stream)?;
        Ok(DeviceInputs { borrowed: device.borrowed && !self.owns_arrays, ..device })
    }

    /// Waits for all that was queued.
    fn settle(&mut self) -> Result<()> {
        self.stream.synchronize()?;
        self.gather.settled();
        Ok(())
    }

    fn note(&mut self, inputs: &DeviceInputs, field: Field) {
        let sources = match field {
            Field::Velocity { .. } => inputs.segments.n + inputs.particles.n,
            Field::Potential { .. } => inputs.charges.n,
        };
        self.report.near_pairs = (sources * inputs.targets.n) as i64;
        let periodic = self.periodic.as_ref().map_or(0, Periodic::bytes);
        self.report.device_bytes =
            self.gather.bytes() + self.sums.bytes() + self.main.bytes() + self.gradient.bytes() + periodic;
        self.report.host_bytes = self.staging.bytes();
    }

    /// The output of the kernels for one array of the caller's.
    fn aim(to: &RealsMut<'_>, bounce: &mut Buffer<u8>) -> Result<RealsArg> {
        Ok(match to {
            RealsMut::DeviceF32 { address, .. } => RealsArg { address: *address, is_f64: 0 },
            RealsMut::DeviceF64 { address, .. } => RealsArg { address: *address, is_f64: 1 },
            RealsMut::HostF32(values) => {
                bounce.reserve(size_of_val(&**values))?;
                RealsArg { address: bounce.address(), is_f64: 0 }
            }
            RealsMut::HostF64(values) => {
                bounce.reserve(size_of_val(&**values))?;
                RealsArg { address: bounce.address(), is_f64: 1 }
            }
        })
    }

    /// The gradient to where the caller wants it, once the main field is there; waits, and notes what was done since `start`.
    fn finish(
        &mut self,
        device: &DeviceInputs,
        field: Field,
        gradient: Option<(u64, RealsMut<'_>)>,
        start: Instant,
    ) -> Result<()> {
        if let Some((from, to)) = gradient {
            self.fetch(from, to)?;
        }
        self.settle()?;
        let computed = self.end.seconds_since(&self.begin)?;
        let whole = start.elapsed().as_secs_f64();
        self.note(device, field);
        self.report.seconds = Default::default();
        self.report.seconds[Pass::Transfer as usize] = (whole - computed).max(0.0);
        self.sums.note(&mut self.report, computed);
        self.report.seconds[Pass::Total as usize] = whole;
        Ok(())
    }

    fn fetch(&mut self, from: u64, to: RealsMut<'_>) -> Result<()> {
        match to {
            RealsMut::HostF32(values) => self.staging.download(from, values, self.options.accumulate, &self.stream),
            RealsMut::HostF64(values) => self.staging.download(from, values, self.options.accumulate, &self.stream),
            RealsMut::DeviceF32 { .. } | RealsMut::DeviceF64 { .. } => Ok(()),
        }
    }
}

/// An engine that has failed is dropped: what it has still queued may write to arrays of the caller's, who has them back then.
impl<T: CudaReal> Drop for CudaEngine<T> {
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
    }
}

/// The inputs of a task in its periodic domain, if it has one.
fn inside<T: CudaReal>(periodic: &mut Option<Periodic>, task: Task<'_>) -> Result<DeviceInputs> {
    periodic.as_mut().map_or(Ok(*task.inputs), |periodic| periodic.enter(task, T::IS_F64))
}

fn on_host(to: &RealsMut<'_>) -> bool {
    matches!(to, RealsMut::HostF32(_) | RealsMut::HostF64(_))
}

impl<T: CudaReal> Engine for CudaEngine<T> {
    fn prepare(&mut self, inputs: &Inputs, _field: Field) -> Result<()> {
        self.take_over(inputs)?;
        self.settle()
    }

    fn bring(&mut self, inputs: &Inputs) {
        // An error comes back in the evaluation: what was not copied then is copied there.
        let _ = self.gather.update(inputs, &mut self.staging, &self.stream);
    }

    fn bring_array(&mut self, slot: Slot, array: &Reals, change: u64) {
        let _ = self.gather.bring(slot, array, change, &mut self.staging, &self.stream);
    }

    fn evaluate(
        &mut self,
        inputs: &Inputs,
        field: Field,
        main: RealsMut<'_>,
        gradient: Option<RealsMut<'_>>,
    ) -> Result<()> {
        let start = Instant::now();
        let to_host = on_host(&main);
        if self.options.accumulate && gradient.as_ref().is_some_and(|to| on_host(to) != to_host) {
            let message = "with WFMM_FLAG_ACCUMULATE both fields must be in host memory, or both in device memory";
            return Error::fail(WFMM_ERR_MEMORY, message);
        }
        let device = self.take_over(inputs)?;
        let output = Output {
            main: Self::aim(&main, &mut self.main)?,
            gradient: gradient.as_ref().map_or(Ok(RealsArg::default()), |to| Self::aim(to, &mut self.gradient))?,
            add: self.options.accumulate && !to_host,
        };
        self.begin.record(&self.stream)?;
        let (context, options, stream, ranks) = (&self.context, &self.options, &self.stream, &self.ranks);
        let task = Task { context, inputs: &device, options, field, output, stream, ranks };
        let device = inside::<T>(&mut self.periodic, task)?;
        self.sums.start(Task { inputs: &device, ..task })?;
        self.end.record(&self.stream)?;
        self.fetch(output.main.address, main)?;
        let gradient = gradient.map(|to| (output.gradient.address, to));
        let finished = self.finish(&device, field, gradient, start);
        finished.map_err(|error| if self.options.accumulate { error.after_writing() } else { error })
    }

    fn check(&mut self, inputs: &Inputs, field: Field, samples: usize, seed: u64) -> Result<f64> {
        let Some(all) = inputs.targets.as_ref().filter(|all| all.n > 0 && samples > 0) else { return Ok(0.0) };
        let chosen = stratified(all.n, samples, seed);
        let (width, slopes) = field.widths();
        // What this engine gives, at all targets, and of it the samples; with the gradient, if that was asked for: orders depend on it.
        let mut values = memory::filled(0.0f64, width * all.n);
        let mut gradient = memory::filled(0.0f64, if field.has_gradient() { slopes * all.n } else { 0 });
        let to = field.has_gradient().then_some(RealsMut::HostF64(&mut gradient));
        let accumulate = std::mem::replace(&mut self.options.accumulate, false);
        let given = self.evaluate(inputs, field, RealsMut::HostF64(&mut values), to);
        self.options.accumulate = accumulate;
        given?;
        // The exact sum at copies of those targets, in double precision.
        let position = self.sample(&all.position, &chosen)?;
        let mut exact_inputs = inputs.clone();
        exact_inputs.targets = Some(TargetInput { n: chosen.len(), position: Reals::HostF64(position.into()) });
        let options = PlanOptions { accumulate: false, ..self.options.clone() };
        let mut exact_engine = CudaEngine::<f64>::new(options, self.context.clone(), self.pool.clone())?;
        let mut exact = memory::filled(0.0f64, width * chosen.len());
        exact_engine.direct_only(&exact_inputs, field.without_gradient(), &mut exact)?;
        let unit = unit_of(exact.iter().fold(0.0, |a, v| f64::max(a, v.abs())));
        let found = chosen.iter().flat_map(|k| &values[width * k..][..width]);
        Ok(relative(squares(found.copied().zip(exact.iter().copied()), unit)))
    }

    fn order_after(&mut self, stream: u64) {
        self.caller = stream;
    }

    fn recipe(&self) -> String {
        if self.report.seconds[Pass::Total as usize] == 0.0 {
            return "Nothing was chosen yet: on a GPU the first evaluation chooses.".into();
        }
        let sums = self.sums.describe(&self.context.info.name);
        match self.periodic.as_ref().and_then(Periodic::describe) {
            Some(images) => format!("{sums} {images}"),
            None => sums,
        }
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}

impl<T: CudaReal> CudaEngine<T> {
    /// The direct sum into host memory, whatever the options' method.
    fn direct_only(&mut self, inputs: &Inputs, field: Field, to: &mut [f64]) -> Result<()> {
        let device = self.take_over(inputs)?;
        self.main.reserve(size_of_val(to))?;
        let main = RealsArg { address: self.main.address(), is_f64: 1 };
        let output = Output { main, gradient: RealsArg::default(), add: false };
        let (context, options, stream, ranks) = (&self.context, &self.options, &self.stream, &self.ranks);
        let task = Task { context, inputs: &device, options, field, output, stream, ranks };
        let device = inside::<T>(&mut self.periodic, task)?;
        self.sums.start_direct(Task { inputs: &device, ..task })?;
        self.fetch(main.address, RealsMut::HostF64(to))
    }

    /// Coordinates of some points.
    fn sample(&mut self, position: &Reals, chosen: &[usize]) -> Result<Vec<f64>> {
        let pick =
            |at: &dyn Fn(usize) -> f64| memory::collect((0..3 * chosen.len()).map(|i| at(3 * chosen[i / 3] + i % 3)));
        Ok(match position {
            Reals::HostF32(v) => pick(&|i| f64::from(v[i])),
            Reals::HostF64(v) => pick(&|i| v[i]),
            Reals::DeviceF32 { address, len } => {
                let mut v = memory::filled(0f32, *len);
                self.staging.download(*address, &mut v, false, &self.stream)?;
                pick(&|i| f64::from(v[i]))
            }
            Reals::DeviceF64 { address, len } => {
                let mut v = memory::filled(0f64, *len);
                self.staging.download(*address, &mut v, false, &self.stream)?;
                pick(&|i| v[i])
            }
        })
    }
}
