//! Targets in host memory divided among the devices of one process: a range of a Morton curve each.
//!
//! Enters: all targets. Leaves: this device's part of them in its memory, and after the sum the fields of a range of the caller's targets in
//! host memory. Every device reads all targets and divides them by the same arithmetic (kernels/parts.cu); fields of the other parts
//! come from the other devices.

use super::wire::Wire;
use crate::backend::Field;
use crate::backend::cuda::args::RealsArg;
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::gather::{Gather, Reader};
use crate::backend::cuda::memory::{Buffer, copy_between};
use crate::backend::cuda::staging::Staging;
use crate::backend::cuda::stream::{Event, Stream, launch};
use crate::error::Result;
use crate::inputs::{Inputs, Reals, TargetInput};
use crate::memory;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;

/// Threads of a block, targets of a warp and bytes of `Cuts` in kernels/parts.cu; blocks and numbers of an extent in kernels/gather.cu.
const BLOCK: usize = 256;
const SHARE: usize = 1024;
const CUTS: usize = 32 + 8 * 64;
const EXTENTS: usize = 512;
const EXTENT: usize = 7;
/// Bytes of the words that rows are copied by.
const WORD: usize = 4;

#[derive(Debug)]
struct Kernels {
    extent: Function,
    cuts: Function,
    count: Function,
    scan: Function,
    place: Function,
    back: Function,
}

impl Kernels {
    fn find(context: &Context) -> Result<Self> {
        let get = |name: &str| context.function("parts", &format!("parts_{name}"));
        Ok(Self {
            extent: context.function("gather", "extent")?,
            cuts: get("cuts")?,
            count: get("count")?,
            scan: get("scan")?,
            place: get("place")?,
            back: get("back")?,
        })
    }
}

/// A field at the targets of all parts, one part after the other, and in the caller's order what goes to the host from here.
#[derive(Debug)]
struct Rows {
    all: Buffer<u8>,
    here: Buffer<u8>,
}

/// Where a device has the rows of its part: field and gradient.
#[derive(Debug, Clone)]
struct Posted {
    context: Arc<Context>,
    rows: [u64; 2],
}

/// What every device tells the others.
#[derive(Debug)]
pub struct Board {
    posted: Mutex<Vec<Option<Posted>>>,
}

impl Board {
    pub fn new(devices: usize) -> Self {
        Self { posted: Mutex::new(vec![None; devices]) }
    }
}

/// The targets that a plan has: change counter, number, precision.
type Seen = (u64, usize, bool);

/// One device's.
#[derive(Debug)]
pub struct Parts {
    context: Arc<Context>,
    /// Which of how many devices this is.
    place: [usize; 2],
    kernels: Kernels,
    stream: Stream,
    staging: Staging,
    gather: Gather,
    /// The end of a part of an array that several devices read.
    arrived: Event,
    extents: Buffer<f64>,
    cuts: Buffer<u8>,
    part: Buffer<u8>,
    counts: Buffer<u32>,
    starts_there: Buffer<u32>,
    /// Of each row its target.
    order: Buffer<u32>,
    own: Buffer<u8>,
    fields: [Rows; 2],
    /// First row of each part, and the number of all.
    starts: Vec<usize>,
    divided: Option<Seen>,
}

impl Parts {
    pub fn new(context: &Arc<Context>, pool: &Arc<rayon::ThreadPool>, place: [usize; 2]) -> Result<Self> {
        let rows = || Rows { all: Buffer::new(context), here: Buffer::new(context) };
        Ok(Self {
            kernels: Kernels::find(context)?,
            stream: Stream::new(context)?,
            staging: Staging::new(context, pool.clone()),
            gather: Gather::new(context),
            arrived: Event::new(context)?,
            extents: Buffer::new(context),
            cuts: Buffer::new(context),
            part: Buffer::new(context),
            counts: Buffer::new(context),
            starts_there: Buffer::new(context),
            order: Buffer::new(context),
            own: Buffer::new(context),
            fields: [rows(), rows()],
            starts: Vec::new(),
            divided: None,
            place,
            context: context.clone(),
        })
    }

    /// Device and host memory.
    pub fn bytes(&self) -> [u64; 2] {
        let words = self.counts.bytes() + self.starts_there.bytes() + self.order.bytes();
        let bytes = self.extents.bytes() + self.cuts.bytes() + self.part.bytes() + self.own.bytes();
        let fields: u64 = self.fields.iter().map(|rows| rows.all.bytes() + rows.here.bytes()).sum();
        [words + bytes + fields + self.gather.bytes(), self.staging.bytes()]
    }

    /// What brings the targets to this device together with others.
    pub fn reader(&mut self) -> Reader<'_> {
        Reader { gather: &mut self.gather, stream: &self.stream, arrived: &self.arrived }
    }

    /// The same for the engine's arrays, with the event of this one.
    pub fn arrived(&self) -> &Event {
        &self.arrived
    }

    /// The inputs with this device's part of the targets.
    pub fn divide(&mut self, inputs: &Inputs) -> Result<Inputs> {
        let targets = inputs.targets.as_ref();
        let is_f64 = targets.is_some_and(|t| matches!(t.position, Reals::HostF64(_)));
        let now = (inputs.target_positions, targets.map_or(0, |t| t.n), is_f64);
        if self.divided != Some(now) {
            self.divided = None;
            self.divide_anew(inputs, now.1)?;
            self.divided = Some(now);
        }
        let own = self.rows(self.place[0]).len();
        let (address, len) = (self.own.address(), 3 * own);
        let position = if is_f64 { Reals::DeviceF64 { address, len } } else { Reals::DeviceF32 { address, len } };
        Ok(Inputs { targets: Some(TargetInput { n: own, position }).filter(|t| t.n > 0), ..inputs.clone() })
    }

    fn divide_anew(&mut self, inputs: &Inputs, n: usize) -> Result<()> {
        let [device, devices] = self.place;
        self.starts = memory::filled(0, devices + 1);
        if n == 0 {
            return Ok(());
        }
        let position = self.gather.update(&targets_of(inputs), &mut self.staging, &self.stream)?.targets.position;
        let blocks = n.div_ceil(BLOCK / 32 * SHARE);
        let warps = blocks * BLOCK / 32;
        let extents = n.div_ceil(BLOCK).min(EXTENTS);
        let words = 3 * if position.is_f64 == 0 { 1 } else { 2 };
        self.extents.reserve(EXTENT * extents)?;
        self.cuts.reserve(CUTS)?;
        self.part.reserve(n)?;
        self.counts.reserve(devices * warps)?;
        self.starts_there.reserve(devices + 1)?;
        self.order.reserve(n)?;
        self.own.reserve(n * words * WORD)?;
        let (rows, cuts, part, counts) =
            (self.extents.address(), self.cuts.address(), self.part.address(), self.counts.address());
        let (starts, order, own) = (self.starts_there.address(), self.order.address(), self.own.address());
        let (len, n_rows, parts, count, mine) = (n as i64, extents as i32, devices as i32, warps as i64, device as i32);
        let (none, no_core, no_radius, zero) = (0u64, RealsArg::default(), 0f64, 0i32);
        let (row_words, x, no_stride) = (words as i32, position.address, 0i64);
        let (k, grid, block) = (&self.kernels, [blocks as u32, 1, 1], BLOCK as u32);
        // SAFETY: arrays have the lengths that the kernels ask for; the order of arguments is theirs.
        unsafe {
            let s = &self.stream;
            launch!(s, k.extent, [extents as u32, 1, 1], block, 0; position, len, rows, none, no_stride, zero, no_core, no_radius)?;
            launch!(s, k.cuts, [1, 1, 1], 1024, 0; position, len, rows, n_rows, parts, cuts)?;
            launch!(s, k.count, grid, block, 0; position, len, cuts, parts, part, counts)?;
            launch!(s, k.scan, [1, 1, 1], 1024, 0; counts, count, parts, starts)?;
            launch!(s, k.place, grid, block, 0; x, row_words, len, part, parts, counts, starts, mine, order, own)?;
        }
        let mut starts = memory::filled(0u32, devices + 1);
        self.starts_there.download(&mut starts, &self.stream)?;
        self.gather.settled();
        self.starts = memory::collect(starts.iter().map(|&start| start as usize));
        Ok(())
    }

    /// Rows of a device's part.
    fn rows(&self, device: usize) -> Range<usize> {
        self.starts[device]..self.starts[device + 1]
    }

    /// Room for a field at all targets, and where the part of this device begins: field and gradient.
    pub fn make_room<U: Wire>(&mut self, field: Field, board: &Board) -> Result<[u64; 2]> {
        let (n, own) = (self.starts.last().copied().unwrap_or(0), self.rows(self.place[0]).start);
        let mut begin = [0; 2];
        for ((rows, width), begin) in self.fields.iter_mut().zip(widths(field)).zip(&mut begin) {
            rows.all.reserve(n * width * size_of::<U>())?;
            *begin = rows.all.at(own * width * size_of::<U>());
        }
        let rows = self.fields.each_ref().map(|rows| rows.all.address());
        board.posted.lock()[self.place[0]] = Some(Posted { context: self.context.clone(), rows });
        Ok(begin)
    }

    /// Fields at the caller's targets of the range that this device brings back, from all devices, which have theirs.
    pub fn bring_back<U: Wire>(
        &mut self,
        field: Field,
        board: &Board,
        to: [&mut [U]; 2],
        range: Range<usize>,
        add: bool,
    ) -> Result<()> {
        for ((which, to), width) in to.into_iter().enumerate().zip(widths(field)) {
            if !to.is_empty() {
                self.bring_rows(which, width, board, to, range.clone(), add)?;
            }
        }
        Ok(())
    }

    fn bring_rows<U: Wire>(
        &mut self,
        which: usize,
        width: usize,
        board: &Board,
        to: &mut [U],
        range: Range<usize>,
        add: bool,
    ) -> Result<()> {
        let [device, devices] = self.place;
        let bytes = width * size_of::<U>();
        // Each begins with its neighbour, so that not all read from the same one.
        for other in (1..devices).map(|by| (device + by) % devices) {
            let rows = self.rows(other);
            let Some(posted) = board.posted.lock()[other].clone() else { continue };
            let (into, from) =
                (self.fields[which].all.at(rows.start * bytes), posted.rows[which] + (rows.start * bytes) as u64);
            copy_between(into, from, &posted.context, rows.len() * bytes, &self.stream)?;
        }
        let n = self.starts[devices];
        let Rows { all, here } = &mut self.fields[which];
        here.reserve(size_of_val(to))?;
        let (rows, order, out, words) = (all.address(), self.order.address(), here.address(), bytes / WORD);
        let (len, row_words, first, end) = (n as i64, words as i32, range.start as i64, range.end as i64);
        let grid = [(n * words).div_ceil(BLOCK) as u32, 1, 1];
        // SAFETY: as in `divide_anew`; there is room for every row of the range.
        unsafe {
            launch!(self.stream, self.kernels.back, grid, BLOCK as u32, 0; rows, row_words, len, order, first, end, out)?;
        }
        self.staging.download(out, to, add, &self.stream)
    }
}

/// The targets alone.
pub fn targets_of(inputs: &Inputs) -> Inputs {
    Inputs { targets: inputs.targets.clone(), target_positions: inputs.target_positions, ..Inputs::default() }
}

/// Numbers of a target: field and gradient.
fn widths(field: Field) -> [usize; 2] {
    let (width, wide) = field.widths();
    [width, if field.has_gradient() { wide } else { 0 }]
}
