//! The fast multipole method on the device: the order of the passes, their buffers, and what happens when one was too small.
//!
//! ```text
//!   set         FMM or direct sum, for all kinds of source
//!   recipe      orders, leaf sizes, ranges of cores
//!   truncation  which blocks of the M2L operators are kept
//!   shifts      which of those of M2M and L2L
//!   kernels     which kernels a recipe takes
//!   args        arguments of the kernels
//!   layout      where their arrays lie
//!   mod         FmmSum: the order of the passes, attempts
//!   trees       launches of both trees and the lists
//!   m2l_small   M2L where cells are few
//!   in_box      M2L between the largest cells of a periodic box
//!   at_targets  the treecode: in place of M2L, L2L and L2P
//!   pseudo      pseudo-particles: in place of all passes of harmonics
//!   reach       corrections of segments along their lines
//!   check       exact sums at a few targets
//!   grids       these sums in periodic boxes
//!   verdict     whether the error found there is small enough
//!   ranks       one verdict of all ranks of a distributed session
//!   reuse       what the last evaluation left for the next
//!   replay      graphs of small evaluations
//!   times       seconds of the passes
//! ```
//!
//! Enters: inputs in device memory. Leaves: the field, written or added in the caller's precision. Counts stay on the
//! device; the host bounds cells and depth and reads afterwards whether they were enough: if not, nothing was written, and
//! the evaluation is done again with more.

mod args;
mod at_targets;
mod check;
mod grid_args;
mod grids;
mod in_box;
mod kernels;
mod layout;
mod m2l_small;
mod pseudo;
mod ranks;
mod reach;
pub mod recipe;
mod replay;
mod reuse;
mod set;
mod shifts;
mod times;
mod trees;
mod truncation;
mod verdict;

use super::args::RealsArg;
use super::context::Context;
use super::direct::{CudaReal, Output};
use super::gather::DeviceInputs;
use super::locked::Locked;
use super::memory::{Buffer, Plain};
use super::stream::{Event, Stream, launch};
use crate::error::{Error, Result};
use crate::options::PlanOptions;
use crate::report::Pass;
use args::CheckArg;
use args::{CELLS_OVERFLOW, DENSE, DEPTH_OVERFLOW, FmmArg, OUTSIDE, SampleSums, StateHead};
use check::{Check, CheckKernels, Look, Numbers, Part, Sample};
use kernels::{Kernels, Others, p2p_shared, smooth_shared};
use layout::{L2P_BLOCKS, Laid};
pub use ranks::Ranks;
use recipe::Far;
pub use recipe::{Kind, Recipe};
use replay::Replay;
use reuse::{Reusable, Shape, Work};
pub use set::{FmmSet, Outcome};
use std::sync::Arc;
use times::{Clock, Seconds};

// SAFETY: plain numbers without padding.
unsafe impl Plain for StateHead {}
// SAFETY: the same.
unsafe impl Plain for SampleSums {}

/// Levels that a key holds.
const DEEPEST: u32 = 21;
/// Blocks of the near field a multiprocessor where there are two levels of cells, in f32 and in f64, and what each needs of shared
/// memory beside what it asks for.
const P2P_BLOCKS: [u32; 2] = [4, 3];
const P2P_STATIC: usize = 5 * 1024;
/// Targets up to which there may be fewer leaves than blocks of the near field that run at a time.
const SPLIT_TARGETS: u32 = 20_000;
/// Retries of one evaluation: cells and depth of two trees, each enlarged to what the device said it needs.
const RETRIES: usize = 12;

/// What the last evaluation was, for the report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    pub order: usize,
    pub depth: u32,
    pub cells: u64,
    pub near_pairs: u64,
    /// At sampled targets, once all kinds of source were in the field.
    pub found: SampleSums,
    pub seconds: Seconds,
}

/// One FMM of one kind of source on one device.
#[derive(Debug)]
pub struct FmmSum<T: CudaReal> {
    context: Arc<Context>,
    pub recipe: Recipe,
    kernels: Kernels,
    op: Buffer<u32>,
    m2l: Buffer<u32>,
    operators: Buffer<u8>,
    box_operators: Buffer<u8>,
    lattice: Buffer<f64>,
    gauss: Buffer<f64>,
    degrees: Buffer<u32>,
    sphere: Buffer<f64>,
    memory: Memory,
    /// What the arenas hold.
    reusable: Reusable,
    replay: Replay,
    head: Locked<StateHead>,
    /// Of the last evaluation.
    last: Laid,
    clock: Clock,
    /// Bounds that the host keeps: cells of each tree, and levels; levels that an evaluation found too few at less.
    cell_capacity: [usize; 2],
    max_level: u32,
    deepened: u32,
    pub account: Account,
    of: std::marker::PhantomData<T>,
}

/// Device memory, see `layout`. Of the state there are two: the kernels' and a copy of its part that a target tree overwrites.
#[derive(Debug)]
struct Memory {
    state: Buffer<u8>,
    status: Buffer<u8>,
    sources: Buffer<u8>,
    targets: Buffer<u8>,
}

impl Memory {
    fn new(context: &Arc<Context>) -> Self {
        let new = || Buffer::new(context);
        Self { state: new(), status: new(), sources: new(), targets: new() }
    }

    fn bytes(&self) -> u64 {
        self.state.bytes() + self.status.bytes() + self.sources.bytes() + self.targets.bytes()
    }
}

/// Who judges an evaluation, which kind of how many it is, sources of all of them and targets, times that this was done before, and the
/// kind of source that is in the field already.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub check: &'a Check,
    pub part: Part,
    pub numbers: Numbers,
    pub round: u32,
    before: Option<(CheckKernels, Laid)>,
}

/// Where the caller's arrays of one kind are.
struct Sources {
    n: usize,
    position: RealsArg,
    strength: RealsArg,
    core: RealsArg,
    default_core: f64,
}

impl<T: CudaReal> FmmSum<T> {
    pub fn new(context: &Arc<Context>, recipe: Recipe, stream: &Stream) -> Result<Self> {
        let (recipe, kernels) = Kernels::ready::<T>(context, recipe)?;
        let mut sum = Self {
            context: context.clone(),
            kernels,
            op: Buffer::new(context),
            m2l: Buffer::new(context),
            operators: Buffer::new(context),
            box_operators: Buffer::new(context),
            lattice: Buffer::new(context),
            gauss: Buffer::new(context),
            degrees: Buffer::new(context),
            sphere: Buffer::new(context),
            memory: Memory::new(context),
            reusable: Reusable::default(),
            replay: Replay::new(context)?,
            head: Locked::new(context, 1)?,
            last: Laid::default(),
            clock: Clock::new(context)?,
            cell_capacity: [0; 2],
            max_level: 0,
            deepened: 0,
            account: Account::default(),
            recipe,
            of: std::marker::PhantomData,
        };
        sum.make_operators(stream)?;
        Ok(sum)
    }

    /// Whether this is what `recipe` makes; of one plan's recipes of a kind those of the same limits are the same.
    pub fn follows(&self, recipe: &Recipe) -> bool {
        (self.recipe.budget, self.recipe.cores) == (recipe.budget, recipe.cores)
    }

    /// The same with another recipe: memory and what was learnt of the trees stay.
    pub fn remake(&mut self, recipe: Recipe, stream: &Stream) -> Result<()> {
        let shallow = self.recipe.shallow;
        let (recipe, kernels) = Kernels::ready::<T>(&self.context, recipe)?;
        // Where cores alone end elsewhere the matrices are the same.
        let has_operators = self.recipe.has_operators_of(&recipe);
        (self.recipe, self.kernels) = (Recipe { shallow, ..recipe }, kernels);
        self.reusable.forget();
        self.replay.forget();
        if has_operators { Ok(()) } else { self.make_operators(stream) }
    }

    pub fn bytes(&self) -> u64 {
        self.op.bytes()
            + self.m2l.bytes()
            + self.operators.bytes()
            + self.box_operators.bytes()
            + self.lattice.bytes()
            + self.gauss.bytes()
            + self.degrees.bytes()
            + self.sphere.bytes()
            + self.memory.bytes()
    }

    /// The translation matrices, computed on the device.
    fn make_operators(&mut self, stream: &Stream) -> Result<()> {
        let truncation = &self.recipe.truncation;
        self.op.upload(&truncation.shifts, stream)?;
        self.m2l.upload(&truncation.m2l, stream)?;
        let points = self.recipe.order().div_ceil(2);
        self.gauss.upload(&recipe::gauss_legendre(points), stream)?;
        let bytes = 64 * if self.recipe.is_f64 || self.recipe.two_parts { 8 } else { 4 };
        self.operators.reserve(truncation.fragments * bytes)?;
        match &self.recipe.far {
            Far::AtTargets(degrees) => self.degrees.upload(&degrees.of, stream)?,
            Far::Pseudo(order) => self.sphere.upload(&pseudo::table(*order), stream)?,
            Far::Harmonics => {}
        }
        let parts: u32 = if self.recipe.is_f64 { 0 } else { 1 + u32::from(self.recipe.two_parts) };
        let (order, op, m2l) = (truncation.order as u32, self.op.address(), self.m2l.address());
        let f = FmmArg { order, op, m2l, ..FmmArg::default() };
        let kernel = self.context.function("fmm_operators", "fmm_operators")?;
        let (to, tiles) = (self.operators.address(), truncation.tiles as u32);
        // SAFETY: arguments as in fmm_operators.cu; the table has room for all fragments.
        unsafe { launch!(stream, kernel, [truncation::OPERATORS as u32, 1, 1], 256, 0; f, to, tiles, parts)? };
        if self.recipe.periodic {
            self.make_box_operators(stream)?;
        }
        stream.synchronize()
    }

    /// Evaluates on `stream` and waits: the field, or nothing written, after an error or (false) where a direct sum is better.
    pub fn evaluate(
        &mut self,
        inputs: &DeviceInputs,
        options: &PlanOptions,
        output: Output,
        asked: Asked<'_>,
        stream: &Stream,
    ) -> Result<bool> {
        let Asked { check, part, numbers, round, before } = asked;
        let sources = self.sources(inputs);
        if options.reproducible && !self.reusable.is_of(self.recipe.kind, inputs) {
            self.forget_history();
        }
        self.bound(sources.n, inputs.targets.n);
        let (mut spent, mut has_rows) = (0.0, false);
        for _ in 0..RETRIES {
            let (work, kept) = self.reusable.work(self.recipe.kind, inputs);
            let shape = kept.unwrap_or_else(|| self.shape(sources.n, inputs));
            self.reusable.forget();
            let mut laid = self.lay_out(&sources, inputs, options, output, &shape)?;
            // Images that are not near, as the check and charges have them, are those of all kinds together.
            if let Some(far) = inputs.far.filter(|_| part.slot == 0) {
                laid.f.far_rows = far.rows.rows;
                let has_points = laid.grids.is_some_and(|grids| grids.box_level > 0);
                laid.rows = (part.of == 1 && has_points).then_some(far.rows);
                if laid.rows.is_none() && !has_rows {
                    far.make_rows(stream)?;
                    has_rows = true;
                }
            }
            if laid.lost[0] && !work.sources || laid.lost[1] && !work.targets {
                continue;
            }
            let head = self.head.as_ref().as_ptr() as u64;
            let checked = check.arg(part, numbers, Look { round, sample: Sample::First, batch: 0 }, (head, laid.size));
            let far = check.far_arg(part, numbers, (head, laid.size));
            self.last = laid;
            let queued = (laid.f, before.map(|(_, laid)| laid.f), work, checked, laid.rows);
            let (small, again) = (replay::is_small(&laid.f), self.replay.is_last(&queued));
            let noted = self.clock.times.wants(work, [sources.n, inputs.targets.n], small, again);
            self.clock.begin.record(stream)?;
            let passes = Passes {
                kernels: &self.kernels,
                recipe: &self.recipe,
                context: &self.context,
                laid: &laid,
                work,
                check: (check, checked, far),
                before,
                marks: if noted { &self.clock.marks } else { &[] },
            };
            self.replay.run(queued, noted, stream, |replay, recorded| passes.enqueue(stream, replay, recorded))?;
            self.clock.end.record(stream)?;
            stream.synchronize()?;
            spent += self.clock.read()?;
            if self.learn(kept.is_some()) {
                self.account.seconds = self.clock.times.share(spent);
                self.reusable.keep(self.recipe.kind, inputs, shape);
                return Ok(true);
            }
            if self.head.as_ref()[0].flags == DENSE {
                return Ok(false);
            }
        }
        Err(Error::new(crate::error::WFMM_ERR_INTERNAL, "the tree on the device did not settle"))
    }

    /// More targets of the last field are summed directly, and of the last kind of source compared; the others' sums are there by then.
    fn look_again(&mut self, asked: Asked<'_>, look: Look, last: Laid, stream: &Stream) -> Result<()> {
        let Asked { check, part, numbers, .. } = asked;
        let head = self.head.as_ref().as_ptr() as u64;
        let checked = check.arg(part, numbers, look, (head, last.size));
        let far = check.far_arg(part, numbers, (head, last.size));
        if part.slot == 0 {
            check.largest(&last.f, &checked, stream)?;
        }
        check.sum(&self.kernels.check, &self.last, &checked, stream)?;
        if part.slot + 1 < part.of {
            return Ok(());
        }
        check.judge(&self.kernels.check, &self.last.f, &checked, &far, stream)?;
        stream.synchronize()?;
        self.account.found = self.head.as_ref()[0].found;
        Ok(())
    }

    /// Of the last evaluation.
    fn last(&self) -> Laid {
        self.last
    }

    /// What sums this kind of source at more targets of the last evaluation.
    fn summed(&self) -> (CheckKernels, Laid) {
        (self.kernels.check, self.last)
    }

    fn sources(&self, inputs: &DeviceInputs) -> Sources {
        let none = RealsArg::default();
        match self.recipe.kind {
            Kind::Charge => Sources {
                n: inputs.charges.n,
                position: inputs.charges.position,
                strength: inputs.charges.charge,
                core: none,
                default_core: 0.0,
            },
            Kind::Particle => {
                let p = &inputs.particles;
                Sources {
                    n: p.n,
                    position: p.position,
                    strength: p.strength,
                    core: p.core,
                    default_core: p.default_core,
                }
            }
            Kind::Segment => {
                let s = &inputs.segments;
                Sources {
                    n: s.n,
                    position: s.points,
                    strength: s.circulation,
                    core: s.core,
                    default_core: s.default_core,
                }
            }
        }
    }

    /// Sources that the tree may have: segments may be cut, but in small problems, whose trees take them whole.
    fn room(&self, n_sources: usize, n_targets: usize) -> usize {
        let small = trees::is_small(n_sources.max(n_targets), self.context.info.shared_memory as usize);
        if self.recipe.kind != Kind::Segment || small { n_sources } else { 2 * n_sources }
    }

    /// What other inputs taught must not matter: trees and root cube, how deep they were.
    fn forget_history(&mut self) {
        self.reusable.clear();
        self.deepened = 0;
        self.recipe.shallow = !self.recipe.periodic;
    }

    /// First guesses of the bounds: cells of a cloud that fills its box, and some thousands more for one that does not; the levels
    /// that it needs, and where the kernels for small problems, which gain by each that is spared, do not make the trees, two more.
    fn bound(&mut self, n_sources: usize, n_targets: usize) {
        for (k, n) in [n_sources, n_targets].into_iter().enumerate() {
            self.cell_capacity[k] = self.cell_capacity[k].max(n / 10 + n.min(4096) + 64);
        }
        let most = n_sources.max(n_targets);
        let leaf = self.recipe.capacities(n_sources, n_targets)[1];
        let full = (most as f64 / leaf as f64).max(1.0).log(8.0).ceil() as u32;
        let first = if !self.recipe.periodic && trees::is_small(most, self.context.info.shared_memory as usize) {
            full.max(self.recipe.stretch(n_sources, n_targets, false).1 + 1).min(trees::SMALL_LEVELS)
        } else {
            (full + 2).clamp(3, DEEPEST)
        };
        self.max_level = first.max(self.deepened);
    }

    fn shape(&self, n_sources: usize, inputs: &DeviceInputs) -> Shape {
        let thirds = inputs.far.and_then(|far| far.images).is_none_or(|images| images.may_be_thirds);
        let (stretch, least_level) = self.recipe.stretch(n_sources, inputs.targets.n, thirds);
        // The largest cells of a box have the images that are not near.
        let least_level = least_level.max(u32::from(self.recipe.periodic));
        Shape { max_level: self.max_level, stretch, least_level, room: self.room(n_sources, inputs.targets.n) }
    }

    /// Takes what the device found out; true if the bounds were enough. What was `kept` had the shape of other targets: all that
    /// a depth too small for these says is that the next attempt makes both trees.
    fn learn(&mut self, kept: bool) -> bool {
        let head = self.head.as_ref()[0];
        if head.flags == 0 {
            self.account = Account {
                order: self.recipe.order(),
                depth: head.deepest[0].max(head.deepest[1]),
                cells: u64::from(head.cells[0]) + u64::from(head.cells[1]),
                near_pairs: head.near_pairs + head.core_pairs,
                found: head.found,
                ..self.account
            };
            return true;
        }
        if head.flags & OUTSIDE != 0 {
            self.reusable.was_outside();
        }
        if head.flags & DEPTH_OVERFLOW != 0 && !kept {
            self.recipe.shallow = false;
            let more = if self.max_level < trees::SMALL_LEVELS { 1 } else { 3 };
            self.max_level = (self.max_level + more).min(DEEPEST);
            self.deepened = self.max_level;
        }
        if head.flags & CELLS_OVERFLOW != 0 {
            for k in 0..2 {
                let needs = head.cells[k] as usize;
                if needs > self.cell_capacity[k] {
                    self.cell_capacity[k] = needs + needs / 4;
                }
            }
        }
        false
    }
}

/// One evaluation on its way to the device.
struct Passes<'a> {
    kernels: &'a Kernels,
    recipe: &'a Recipe,
    context: &'a Context,
    laid: &'a Laid,
    work: Work,
    check: (&'a Check, CheckArg, CheckArg),
    before: Option<(CheckKernels, Laid)>,
    marks: &'a [(Pass, Event)],
}

impl Passes<'_> {
    /// All passes that `work` asks for, in order.
    fn enqueue(&self, stream: &Stream, replay: &Replay, recorded: bool) -> Result<()> {
        let (k, work, f) = (self.kernels, self.work, self.laid.f);
        let (check, checked, far) = (self.check.0, &self.check.1, &self.check.2);
        let sms = self.context.info.multiprocessors as u32;
        let shared = self.context.info.shared_memory as usize;
        let (shifts, (leaves, l2p_shared)) = (self.recipe.shifts(shared), self.recipe.l2p(shared));
        let mark = |pass: Pass| {
            let Some((_, event)) = self.marks.iter().find(|(p, _)| *p == pass) else { return Ok(()) };
            if recorded { replay.note(event, stream) } else { event.record(stream) }
        };
        let near = |stream: &Stream| {
            let f = self.reach(stream)?;
            // SAFETY: as below; both take tickets, so blocks that find no room at once do no harm.
            unsafe {
                if let Some(smooth) = k.smooth {
                    launch!(stream, smooth, [8 * sms, 1, 1], 128, smooth_shared(self.recipe); f)?;
                }
                let p2p = k.p2p_split.filter(|_| f.tree[1].n <= SPLIT_TARGETS).unwrap_or(k.p2p);
                let (blocks, bytes) = self.p2p_shape();
                launch!(stream, p2p, [blocks * sms, 1, 1], 128, bytes; f)
            }
        };
        let beside = replay::is_small(&f);
        // Below the largest cells there is something to shift.
        let shifted = f.max_level > f.top;
        // No more blocks than cells, and than parents of level 2 where there are no others.
        let cells = if f.max_level < 4 { ((8 << (3 * f.max_level)) - 1) / 7 } else { u32::MAX };
        let parents = if f.max_level < 4 && f.top == 2 { 64u32.div_ceil(16 / f.components) } else { u32::MAX / 256 };
        self.trees(stream, &mark)?;
        // The near field of cores finds its pairs by the largest core below a cell, which comes from P2M; that of others begins
        // beside it, but takes what room P2M leaves.
        let cores = self.recipe.has_cores();
        if beside && !cores {
            replay.fork(stream)?;
        }
        // SAFETY: `f` describes arrays of the arenas with the lengths that fmm.cuh asks for; launch shapes as stated there.
        unsafe {
            if work.upward {
                launch!(stream, k.p2m, [cells.min(4 * sms), 1, 1], 128, 0; f)?;
            }
        }
        if let (Others::Pseudo(pseudo), true) = (&k.others, work.upward) {
            self.pseudo_p2m(pseudo, cells, stream)?;
        }
        if beside {
            if cores {
                replay.fork(stream)?;
            }
            replay.beside(|side| {
                if !self.sample_is_early() {
                    check.sum(&k.check, self.laid, checked, side)?;
                } else if self.waits_for_sample() {
                    // The size of the field says which corrections count.
                    check.join(side)?;
                }
                near(side)
            })?;
        }
        mark(Pass::P2m)?;
        match &k.others {
            Others::Pseudo(pseudo) if work.upward => self.pseudo_m2m(pseudo, cells, stream)?,
            // SAFETY: as above.
            Others::None | Others::AtTargets(_) if work.upward && shifted => unsafe {
                launch!(stream, k.m2m, [(parents * shifts.up).min(4 * sms), 1, 1], 256, 0; f, shifts.up)?;
            },
            _ => {}
        }
        mark(Pass::M2m)?;
        match &k.others {
            Others::AtTargets(m2p) => {
                self.at_targets(m2p, cells, stream)?;
                mark(Pass::M2l)?;
            }
            Others::Pseudo(pseudo) => {
                self.pseudo_m2l(pseudo, cells, stream)?;
                mark(Pass::M2l)?;
                self.pseudo_l2l(pseudo, cells, stream)?;
            }
            Others::None => self.local_expansions(parents, stream, &mark)?,
        }
        mark(Pass::L2l)?;
        if beside {
            replay.join(stream)?
        } else {
            if self.waits_for_sample() {
                check.join(stream)?;
            }
            near(stream)?
        }
        if self.sample_is_early() {
            check.join(stream)?;
        }
        if let Some(far) = k.far.filter(|_| f.far_rows != 0) {
            let copies = if self.recipe.near_parts(f.tree[1].n as usize) > 0 { 2 } else { 1 };
            // SAFETY: as above.
            unsafe { launch!(stream, far, [f.tree[1].n.div_ceil(256), copies, 1], 128, 0; f)? };
        }
        mark(Pass::P2p)?;
        match &k.others {
            Others::AtTargets(m2p) => self.write(m2p.write, stream)?,
            Others::Pseudo(pseudo) => {
                self.pseudo_l2p(pseudo, cells, stream)?;
                self.write(pseudo.write, stream)?;
            }
            // SAFETY: as above.
            Others::None => unsafe {
                launch!(stream, k.l2p, [cells.min(L2P_BLOCKS * sms), 1, 1], 128, l2p_shared; f, *checked, leaves)?
            },
        }
        if checked.kinds > 0 {
            let kinds: Vec<_> = self.before.into_iter().chain([(k.check, *self.laid)]).collect();
            check.sum_far(&kinds, far, stream)?;
        }
        check.judge(&k.check, &f, checked, far, stream)?;
        mark(Pass::L2p)?;
        if recorded && !self.marks.is_empty() { replay.end_notes(stream) } else { Ok(()) }
    }

    /// M2L and L2L; L2L of no more blocks than so many parents need.
    fn local_expansions(&self, parents: u32, stream: &Stream, mark: &impl Fn(Pass) -> Result<()>) -> Result<()> {
        let (k, f) = (self.kernels, self.laid.f);
        let sms = self.context.info.multiprocessors as u32;
        let shared = self.context.info.shared_memory as usize;
        let m2l = self.recipe.m2l(shared, self.kernels.small.is_hopper());
        let shifts = self.recipe.shifts(shared);
        self.m2l_of_thirds(stream)?;
        // SAFETY: as in `enqueue`.
        unsafe {
            match k.m2l_small.filter(|_| f.period == 0.0 && m2l_small::takes(self.recipe, f.max_level)) {
                Some(kernel) => {
                    let blocks = m2l_small::blocks(f.max_level, self.recipe.components());
                    if blocks > 0 {
                        launch!(stream, kernel, [blocks, 1, 1], m2l_small::threads(self.recipe), 0; f)?;
                    }
                }
                None => {
                    launch!(stream, k.m2l, [sms, 1, 1], m2l.threads, m2l.shared; f)?;
                    launch!(stream, k.add_parts, [2 * sms, 1, 1], 256, 0; f)?;
                }
            }
            self.m2l_of_halves(stream)?;
            mark(Pass::M2l)?;
            if f.max_level > f.top {
                let blocks = (parents * shifts.down).min(4 * sms);
                launch!(stream, k.l2l, [blocks, 1, 1], 256, shifts.shared; f, shifts.down)?;
            }
        }
        Ok(())
    }

    /// Blocks of the near field a multiprocessor, and their shared memory. With two levels of cells there are no more blocks than
    /// run at once, and by what they ask for they spread over all multiprocessors, where P2M has some as well: the first to come take
    /// what is free of one before the next.
    fn p2p_shape(&self) -> (u32, usize) {
        let bytes = p2p_shared(self.recipe);
        if self.recipe.has_cores() || self.laid.f.max_level > 2 {
            return (12, bytes);
        }
        let blocks = if self.recipe.is_f64 { P2P_BLOCKS[1] } else { P2P_BLOCKS[0] };
        // Just too much for one more.
        let share = self.context.info.shared_memory as usize / (blocks as usize + 1);
        (blocks, bytes.max(share.saturating_sub(P2P_STATIC)))
    }
}
