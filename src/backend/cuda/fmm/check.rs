//! The a posteriori error check of an FMM field: exact sums at sampled targets, made beside the passes, and their comparison with the
//! field.
//!
//! Enters: the arguments of an evaluation, kind by kind. Leaves: sums of squares for `verdict`, which come to the host with
//! the head of the state. A field that is to be added to the caller's is kept here until it has passed the check.

use super::args::{CheckArg, FmmArg};
use super::grids::{self, GridKernels};
use super::layout::Laid;
use super::verdict::SQUARES;
use super::{Kind, Recipe};
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::direct::name_of;
use crate::backend::cuda::held::Held;
use crate::backend::cuda::memory::Buffer;
use crate::backend::cuda::stream::{Event, Stream, launch};
use crate::error::Result;
use crate::memory;
use std::sync::Arc;

/// Largest number of kinds of source in a field, and of values at a target, as in kernels/fmm_check.cu.
const KINDS: usize = 2;
const NUMBERS: usize = 12;
/// Largest number of sums of a pair there, targets of a block, targets of a warp.
const TERMS: usize = 14;
const BLOCK: usize = 256;
const WARP: usize = 32;
/// Warps of a block that adds up rows of sums.
const ROW_WARPS: u32 = 32;
/// Smallest number of sources of a block.
const SOURCES: usize = 32;
/// Most blocks of the verdict, and the sums of a warp's batch that each is worth.
const JUDGES: usize = 64;
const WORTH: usize = 4096;
/// Number of targets with the largest fields that are compared where the first sample is inconclusive: `kCertain`.
const CERTAIN: usize = 64;
/// Pairs that the sample of a small problem may have, as `Numbers` weighs them (twice as many where it is then of all targets), and the most targets of one.
const SMALL_PAIRS: usize = 1 << 23;
const MOST_SAMPLES: usize = 2048;
/// Smallest and largest number of targets with the largest far fields that are always compared, and the pairs that more than the fewest
/// may cost.
const FAR: [usize; 2] = [64, 512];
const FAR_PAIRS: usize = 1 << 22;
/// Factor of the number of sampled targets in that case.
const AGAIN: usize = 4;
/// Largest number of pairs of the first sample, and smallest number of its targets; in a periodic box, where each source has
/// `NEAR_IMAGES`, fewer.
const SPARE: usize = 128_000_000;
const LEAST: usize = 128;
const LEAST_IN_BOX: usize = 32;
/// Ranks share the sampled targets and those of the largest far fields, but each has so many.
const LEAST_OF_RANK: usize = 64;
const LEAST_FAR_OF_RANK: usize = 32;

/// Index of a kind among those of the field.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub slot: usize,
    pub of: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct CheckKernels {
    sample: Function,
    sum: Function,
    verdict: Function,
    largest_far: Function,
    /// Of a periodic domain: adds what images that are not near do.
    far: Option<Function>,
    grids: Option<GridKernels>,
}

impl CheckKernels {
    /// They sum in double precision whatever the field's is.
    pub fn find(context: &Context, recipe: &Recipe) -> Result<Self> {
        let get = |name: String| context.function("fmm_check", &format!("fmm_{name}"));
        let (kind, core) = match recipe.kind {
            Kind::Charge => ("charges", String::new()),
            Kind::Particle => ("particles", format!("_{}", name_of(recipe.regularization))),
            Kind::Segment => ("segments", format!("_{}", name_of(recipe.regularization))),
        };
        let gradient = if recipe.gradient { "_gradient" } else { "" };
        let field = match (recipe.kind, recipe.gradient) {
            (Kind::Charge, false) => "potential",
            (Kind::Charge, true) => "force",
            (_, false) => "velocity",
            (_, true) => "gradient",
        };
        Ok(Self {
            sample: get(format!("sample_{kind}{core}{gradient}_f64"))?,
            sum: get(format!("add_rows_{kind}{gradient}"))?,
            verdict: get(format!("verdict_{field}"))?,
            largest_far: get("largest_far".to_owned())?,
            far: match recipe.has_images {
                true => Some(context.function("periodic", &format!("periodic_exact_{field}"))?),
                false => None,
            },
            grids: match recipe.grid_nodes {
                Some(nodes) => Some(GridKernels::find(context, recipe, nodes)?),
                None => None,
            },
        })
    }
}

/// How the sums at `samples` targets are launched.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shares {
    /// Along the sources, each of which leaves a row, and along the targets.
    blocks: [u32; 2],
    /// Blocks of the second kernel.
    groups: u32,
}

impl Shares {
    /// `most`: blocks at once.
    fn new(sources: usize, samples: usize, most: usize) -> Self {
        let groups = samples.div_ceil(WARP).max(1);
        let y = groups.div_ceil(BLOCK / WARP);
        let x = sources.div_ceil(SOURCES).clamp(1, (most / y).max(1));
        Self { blocks: [x as u32, y as u32], groups: groups as u32 }
    }
}

/// What the number of samples depends on: sources of all kinds, targets, how many images of each source are summed, and ranks, each of which
/// samples its own targets.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    pub sources: usize,
    pub targets: usize,
    pub images: usize,
    pub ranks: usize,
}

/// Targets that are sampled at first.
pub fn samples(n: Numbers) -> usize {
    let small = (SMALL_PAIRS / (n.sources * n.images * n.ranks).max(1)).min(MOST_SAMPLES);
    if n.targets <= (2 * small).min(MOST_SAMPLES) {
        return n.targets;
    }
    // Whole blocks: a power of two.
    let least = if n.images > 1 { LEAST_IN_BOX } else { LEAST };
    let all = (SPARE / (n.sources * n.images).max(1)).clamp(least, BLOCK).max(small);
    let own = (all / n.ranks).max(LEAST_OF_RANK.min(all));
    n.targets.min(1 << own.ilog2())
}

/// Targets of the samples of one field. The second and the last come with those of the largest fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    First,
    /// Where the first one is inconclusive.
    Second,
    /// Before another sum takes the place of this one: it costs hundreds of times as much.
    Last,
}

/// Targets of a field for each batch of the last sample, whose sums take a tenth of a direct sum's time at most, and batches.
const TARGETS_OF_BATCH: usize = 80_000;
const MOST_BATCHES: usize = 8;

impl Sample {
    pub fn targets(self, n: Numbers) -> usize {
        let second =
            || (SPARE / (n.sources * n.images * n.ranks).max(1)).clamp(AGAIN * samples(n).min(BLOCK), MOST_SAMPLES);
        match self {
            Self::First => samples(n),
            Self::Second => n.targets.min(second()),
            Self::Last => n.targets.min(MOST_SAMPLES),
        }
    }

    /// Samples of so many targets that are taken one after the other.
    pub fn batches(self, n: Numbers) -> usize {
        if self == Self::Last { (n.targets / TARGETS_OF_BATCH).clamp(1, MOST_BATCHES) } else { 1 }
    }
}

/// Targets of the largest far fields that are compared: expansions are worst there, and the few of them are in no sample. None where
/// all targets are, or in a periodic box, whose images make them dear.
fn far_targets(n: Numbers) -> usize {
    if n.images > 1 || samples(n) >= n.targets {
        return 0;
    }
    let all = (FAR_PAIRS / n.sources.max(1)).clamp(FAR[0], FAR[1]);
    1 << (all / n.ranks).max(LEAST_FAR_OF_RANK).ilog2()
}

/// The number of a check among those of one field.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Times that the field was computed before.
    pub round: u32,
    pub sample: Sample,
    pub batch: u32,
}

/// Blocks of the second sample and of the last, beside which nothing runs, for each of the first.
const MORE_BLOCKS: usize = 4;

/// Most targets of a check.
const MOST: usize = CERTAIN + MOST_SAMPLES;

/// Rows of sums, times targets, that all checks find room for, with so many blocks at once.
fn room(blocks: usize) -> usize {
    (blocks * BLOCK).max(MOST.next_multiple_of(BLOCK)).max(grids::ROWS as usize * MOST.next_multiple_of(WARP))
}

/// What the checks of one engine need.
#[derive(Debug)]
pub struct Check {
    side: Stream,
    fork: Event,
    done: Event,
    partial: Buffer<f64>,
    exact: Buffer<f64>,
    at: Buffer<u32>,
    sum: Buffer<u8>,
    ticket: Buffer<u32>,
    /// Fields to be added.
    pub held: Held,
    blocks: usize,
}

impl Check {
    pub fn new(context: &Arc<Context>, stream: &Stream) -> Result<Self> {
        // One a multiprocessor: two would take the registers of the trees' kernels beside them.
        let blocks = context.info.multiprocessors.max(1) as usize;
        let mut check = Self {
            side: Stream::new(context)?,
            fork: Event::new(context)?,
            done: Event::new(context)?,
            partial: Buffer::new(context),
            exact: Buffer::new(context),
            at: Buffer::new(context),
            sum: Buffer::new(context),
            ticket: Buffer::new(context),
            held: Held::new(context),
            blocks,
        };
        check.partial.reserve(room(MORE_BLOCKS * blocks) * TERMS)?;
        check.exact.reserve(KINDS * (MOST + FAR[1]) * NUMBERS)?;
        check.at.reserve(MOST + FAR[1])?;
        check.sum.reserve(JUDGES * SQUARES)?;
        check.ticket.clear(1, stream)?;
        Ok(check)
    }

    pub fn bytes(&self) -> u64 {
        self.partial.bytes()
            + self.exact.bytes()
            + self.at.bytes()
            + self.sum.bytes()
            + self.ticket.bytes()
            + self.held.bytes()
    }

    /// `size`: where L2P leaves sums of squares.
    pub fn arg(&self, part: Part, numbers: Numbers, look: Look, (head, size): (u64, u64)) -> CheckArg {
        let certain = if look.sample == Sample::First { 0 } else { CERTAIN };
        CheckArg {
            partial: self.partial.address(),
            exact: self.exact.address(),
            at: self.at.address(),
            ticket: self.ticket.address(),
            head,
            sum: self.sum.address(),
            size,
            samples: (certain + look.sample.targets(numbers)) as u32,
            slot: part.slot as u32,
            kinds: if part.slot + 1 == part.of { part.of as u32 } else { 0 },
            certain: certain as u32,
            seed: 16 * look.round + look.sample as u32 + look.batch,
            pad: 0,
        }
    }

    /// The same for the targets of the largest far fields, behind the sampled ones: an equal share of them for each kind of source.
    pub fn far_arg(&self, part: Part, numbers: Numbers, (head, size): (u64, u64)) -> CheckArg {
        let far = far_targets(numbers) as u32;
        CheckArg {
            exact: self.exact.address() + (size_of::<f64>() * KINDS * MOST * NUMBERS) as u64,
            at: self.at.address() + (size_of::<u32>() * MOST) as u64,
            samples: far,
            certain: far,
            ..self.arg(part, numbers, Look { round: 0, sample: Sample::First, batch: 0 }, (head, size))
        }
    }

    /// Starts the choice of the targets of the largest far fields and the direct sums there, behind L2P: of all kinds of source, the
    /// last of which has the arguments `c`.
    pub(super) fn sum_far(&self, kinds: &[(CheckKernels, Laid)], c: &CheckArg, stream: &Stream) -> Result<()> {
        if c.samples == 0 {
            return Ok(());
        }
        let share = c.samples / kinds.len().max(1) as u32;
        let of = |slot: usize, laid: &Laid| CheckArg { slot: slot as u32, size: laid.size, ..*c };
        for (slot, (kernels, laid)) in kinds.iter().enumerate() {
            let own = CheckArg { at: c.at + (size_of::<u32>() * slot * share as usize) as u64, ..of(slot, laid) };
            // SAFETY: as above.
            unsafe { launch!(stream, kernels.largest_far, [share, 1, 1], 256, 0; laid.f, own)? };
        }
        kinds
            .iter()
            .enumerate()
            .try_for_each(|(slot, (kernels, laid))| self.sum(kernels, laid, &of(slot, laid), stream))
    }

    /// Starts the direct sums beside what `stream` gets from now on; the targets are sorted by then.
    pub(super) fn begin(&self, kernels: &CheckKernels, laid: &Laid, c: &CheckArg, stream: &Stream) -> Result<()> {
        self.fork.record(stream)?;
        self.side.wait(&self.fork)?;
        self.sum(kernels, laid, c, &self.side)?;
        self.done.record(&self.side)
    }

    pub fn join(&self, stream: &Stream) -> Result<()> {
        stream.wait(&self.done)
    }

    /// Starts the direct sums on `stream`.
    pub(super) fn sum(&self, kernels: &CheckKernels, laid: &Laid, c: &CheckArg, stream: &Stream) -> Result<()> {
        let f = &laid.f;
        let sources = f.n_in as usize * f.images as usize;
        let is_again = c.certain > 0 && c.samples > c.certain;
        let most = if is_again { MORE_BLOCKS * self.blocks } else { self.blocks };
        let Shares { blocks: [x, y], groups } = Shares::new(sources, c.samples as usize, most);
        // SAFETY: arguments as in fmm_check.cu; `partial` has room for that many rows.
        unsafe {
            let rows = match (kernels.grids, &laid.grids) {
                (Some(kernels), Some(g)) => {
                    kernels.sum(f, c, g, stream)?;
                    if let Some(rows) = &laid.rows {
                        kernels.make_rows(f, g, rows, stream)?;
                    }
                    grids::ROWS
                }
                _ => {
                    launch!(stream, kernels.sample, [x, y, 1], 256, 0; *f, *c)?;
                    x
                }
            };
            launch!(stream, kernels.sum, [groups, 1, 1], 32 * ROW_WARPS, 0; *f, *c, rows)?;
            match kernels.far.filter(|_| f.far_rows != 0) {
                Some(far) => launch!(stream, far, [c.samples.div_ceil(4), 1, 1], 128, 0; *f, *c),
                None => Ok(()),
            }
        }
    }

    /// Starts the comparison, behind L2P: the head of the state comes to the host with it.
    pub fn judge(
        &self,
        kernels: &CheckKernels,
        f: &FmmArg,
        c: &CheckArg,
        far: &CheckArg,
        stream: &Stream,
    ) -> Result<()> {
        let blocks = (f.tree[1].n as usize / WORTH).clamp(1, JUDGES) as u32;
        // SAFETY: as above; the head is page-locked memory, which the device writes where it is.
        unsafe { launch!(stream, kernels.verdict, [blocks, 1, 1], 256, 0; *f, *c, *far) }
    }

    /// Whether any of the first `main` numbers of the exact fields at sampled targets, of so many kinds of source, is not zero. Waits.
    pub fn has_values(&self, kinds: usize, samples: usize, main: usize, stream: &Stream) -> Result<bool> {
        if samples == 0 {
            return Ok(false);
        }
        let mut exact = memory::filled(0.0, kinds * samples * NUMBERS);
        self.exact.download(&mut exact, stream)?;
        Ok(exact.chunks(NUMBERS).any(|row| row[..main].iter().any(|&v| v != 0.0)))
    }

    /// Starts the choice of the targets of the largest fields.
    pub fn largest(&self, f: &FmmArg, c: &CheckArg, stream: &Stream) -> Result<()> {
        let kernel = stream.context().function("fmm_check", "fmm_largest")?;
        // SAFETY: as above.
        unsafe { launch!(stream, kernel, [CERTAIN as u32, 1, 1], 256, 0; *f, *c) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_whole_warps_that_large_problems_can_spare() {
        let of = |sources, targets, images| samples(Numbers { sources, targets, images, ranks: 1 });
        assert_eq!([of(1000, 10, 1), of(1000, 300, 1), of(1000, 10_000, 1)], [10, 300, 2048]);
        assert_eq!([of(6000, 2000, 1), of(6000, 10_000, 1), of(20_000, 10_000, 1)], [2000, 1024, 256]);
        assert_eq!([of(400_000, 1 << 20, 1), of(1_000_000, 1 << 20, 1), of(1 << 30, 1 << 20, 1)], [256, 128, 128]);
        assert_eq!([of(10_000, 1 << 20, 33), of(40_000, 1 << 20, 33), of(1_000_000, 1 << 20, 33)], [256, 64, 32]);
        let of_ranks = |ranks, targets| samples(Numbers { sources: 1_000_000, targets, images: 1, ranks });
        assert_eq!(
            [of_ranks(2, 1 << 20), of_ranks(3, 1 << 20), of_ranks(64, 1 << 20), of_ranks(2, 5)],
            [64, 64, 64, 5]
        );
    }

    /// `partial` has room for all rows, and every source is some block's.
    #[test]
    fn rows_have_room() {
        for most in [1, 2, 264] {
            let room = room(most);
            for samples in [1, 10, 64, 96, 256, 320, MOST] {
                assert!(grids::ROWS as usize * samples.next_multiple_of(WARP) <= room, "{most} {samples}");
                for sources in [1, 100, 10_000, 1 << 30] {
                    let s = Shares::new(sources, samples, most);
                    assert!(s.blocks[0] as usize * s.groups as usize * WARP <= room, "{most} {samples} {sources}");
                    assert!(s.groups as usize * WARP >= samples && s.blocks[1] * 8 >= s.groups);
                }
            }
        }
    }
}
