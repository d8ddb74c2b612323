//! The launches that make both trees and the lists: a dozen kernels for any size, five for small problems, which wait for one
//! another more than they work, two on Hopper where three levels are enough. All leave the same numbers.

use super::args::{CUT_BLOCK, FmmArg, STATE_BYTES};
use super::{Kind, Passes, replay};
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::memory::clear_at;
use crate::backend::cuda::stream::{Stream, launch};
use crate::error::Result;
use crate::report::Pass;

/// Most points of a tree and levels of kernels/fmm_small.cuh.
pub const MOST: usize = 16384;
pub const SMALL_LEVELS: u32 = 4;
/// Shared memory of its kernels beside the points' keys.
const FIXED: usize = 22 * 1024;
/// Points of a run there.
const RUN: usize = 512;

/// Levels of kernels/fmm_cluster.cuh; points of a tree up to which its threads take one each, and the blocks of a cluster.
const CLUSTER_LEVELS: u32 = 3;
const CLUSTER_POINTS: u32 = 8192;
const CLUSTER: u32 = 8;

/// Whether trees of so many points may be made by the kernels for small problems, if they are no deeper than `SMALL_LEVELS`.
pub fn is_small(n: usize, shared: usize) -> bool {
    n <= most(shared)
}

fn most(shared: usize) -> usize {
    MOST.min((shared - FIXED) / 4 / RUN * RUN)
}

/// Kernels of kernels/fmm_small.cuh.
#[derive(Debug, Clone, Copy)]
pub struct Small {
    boxes: Function,
    keys: Function,
    ranks: Function,
    cells: Function,
    lists: Function,
    cluster: Option<Cluster>,
}

/// Kernels of kernels/fmm_cluster.cuh, which are for Hopper.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    trees: Function,
    finish: Function,
}

impl Small {
    /// `t`: suffix of the precision.
    pub fn find(context: &Context, t: &str) -> Result<Self> {
        let get = |name: &str| context.function("fmm_tree", &format!("fmm_small_{name}"));
        let cluster = |name: &str| context.function("fmm_tree", &format!("fmm_cluster_{name}"));
        let hopper = context.info.capability.0 == 9;
        Ok(Self {
            cluster: match (cluster("trees"), cluster(&format!("finish_{t}"))) {
                (Ok(trees), Ok(finish)) if hopper => Some(Cluster { trees, finish }),
                _ => None,
            },
            boxes: get("boxes")?,
            keys: get("keys")?,
            ranks: get(&format!("ranks_{t}"))?,
            cells: get("cells")?,
            lists: get("lists")?,
        })
    }

    /// Whether what runs here was compiled for Hopper, which is not so where the driver was told to translate all kernels itself.
    pub fn is_hopper(&self) -> bool {
        self.cluster.is_some()
    }

    pub fn allow_shared_memory(&self, context: &Context) -> Result<()> {
        let bytes = 4 * most(context.info.shared_memory as usize);
        context.allow_shared_memory(self.ranks, bytes)?;
        if let Some(cluster) = self.cluster {
            context.allow_shared_memory(cluster.trees, cluster_shared(u32::MAX, CLUSTER_LEVELS))?;
        }
        context.allow_shared_memory(self.cells, bytes)
    }
}

/// Counts of points, two bytes for each warp of a block's points and each cell of the deepest level.
fn cluster_shared(points: u32, levels: u32) -> usize {
    (if points > CLUSTER_POINTS { 128 } else { 64 }) << (3 * levels)
}

impl Passes<'_> {
    /// Trees and lists, as far as they are made again; `mark` notes the ends of passes.
    pub(super) fn trees(&self, stream: &Stream, mark: &impl Fn(Pass) -> Result<()>) -> Result<()> {
        let f = &self.laid.f;
        let most = f.tree[0].n.max(f.tree[1].n);
        let whole = self.work.sources && self.work.targets && self.work.upward;
        if whole
            && f.period == 0.0
            && f.max_level <= SMALL_LEVELS
            && is_small(most as usize, self.context.info.shared_memory as usize)
        {
            self.small_trees(f, most, stream, mark)
        } else {
            self.any_trees(f, most, stream, mark)
        }
    }

    fn segments(&self, f: &FmmArg, stream: &Stream) -> Result<()> {
        let sms = self.context.info.multiprocessors as u32;
        // SAFETY: as in `any_trees`.
        unsafe { launch!(stream, self.kernels.segments, [4 * sms, 1, 1], 256, 0; *f) }
    }

    fn small_trees(&self, f: &FmmArg, most: u32, stream: &Stream, mark: &impl Fn(Pass) -> Result<()>) -> Result<()> {
        let k = &self.kernels.small;
        if self.recipe.kind == Kind::Segment {
            clear_at(self.laid.state.0, self.laid.state.1, stream)?;
            self.segments(f, stream)?;
        }
        let sms = self.context.info.multiprocessors as u32;
        if let Some(cluster) = k.cluster.filter(|_| f.max_level <= CLUSTER_LEVELS) {
            let shared = cluster_shared(most, f.max_level);
            // SAFETY: as in `any_trees`; shapes and shared memory as in fmm_cluster.cuh.
            unsafe {
                launch!(stream, cluster.trees, [CLUSTER, 2, 1], 1024, shared; *f)?;
                mark(Pass::Tree)?;
                launch!(stream, cluster.finish, [(sms / 2).max(2), 4, 1], 256, 0; *f)?;
                self.begin_sample(stream)?;
            }
            return mark(Pass::Lists);
        }
        let keys = 4 * (most as usize).next_multiple_of(RUN);
        // SAFETY: as in `any_trees`; shapes and shared memory as in fmm_small.cuh.
        unsafe {
            launch!(stream, k.boxes, [most.div_ceil(256), 2, 1], 256, 0; *f)?;
            launch!(stream, k.keys, [most.div_ceil(RUN as u32), 2, 1], RUN as u32, 0; *f)?;
            launch!(stream, k.ranks, [most.div_ceil(64), 2, 1], 256, keys; *f)?;
            self.begin_sample(stream)?;
            launch!(stream, k.cells, [1, 2, 1], 1024, keys; *f)?;
            mark(Pass::Tree)?;
            launch!(stream, k.lists, [(sms / 2).max(1), 2, 1], 256, 0; *f)?;
        }
        mark(Pass::Lists)
    }

    /// Here the targets are sorted, and what follows leaves the arithmetic units alone.
    fn begin_sample(&self, stream: &Stream) -> Result<()> {
        if self.sample_is_early() {
            self.check.0.begin(&self.kernels.check, self.laid, &self.check.1, stream)
        } else {
            Ok(())
        }
    }

    /// Whether the exact sums at the sampled targets begin beside the trees. Small problems of three levels and more without cores
    /// have them before the near field: M2L, whose blocks want whole multiprocessors, comes first then (1e5 points in f64: 0.51 ms,
    /// otherwise 0.56).
    pub(super) fn sample_is_early(&self) -> bool {
        let f = &self.laid.f;
        !replay::is_small(f) || self.recipe.has_cores() || f.max_level <= 2
    }

    fn any_trees(&self, f: &FmmArg, most: u32, stream: &Stream, mark: &impl Fn(Pass) -> Result<()>) -> Result<()> {
        let (k, work, laid, f) = (self.kernels, self.work, self.laid, *f);
        let sms = self.context.info.multiprocessors as u32;
        // Kernels of the trees take both; a tree of no points is left alone.
        let mut t = f;
        if !work.sources {
            t.tree[0].n = 0;
        }
        let kept = f.state + STATE_BYTES as u64;
        let some = [(most / 1024 + 1).min(4 * sms), 2, 1];
        if work.targets {
            clear_at(laid.status.0, laid.status.1, stream)?;
        }
        if work.sources {
            clear_at(laid.state.0, laid.state.1, stream)?;
        }
        // SAFETY: `f` describes arrays of the arenas with the lengths that fmm.cuh asks for; launch shapes as stated there.
        unsafe {
            if !work.sources {
                launch!(stream, k.renew, [1, 1, 1], 256, 0; f, kept, i32::from(work.targets), i32::from(work.upward))?;
            }
            let cuts = f.tree[0].n_device != 0;
            if self.recipe.kind == Kind::Segment && work.upward && !cuts {
                self.segments(&f, stream)?;
            } else if cuts && work.sources {
                launch!(stream, k.segment_bounds, [4 * sms, 1, 1], 256, 0; f)?;
            }
            if work.sources {
                launch!(stream, k.bounds, some, 256, 0; f)?;
            } else if work.targets {
                launch!(stream, k.inside, [some[0], 1, 1], 256, 0; f)?;
            }
            if cuts {
                let blocks = [f.n_in.div_ceil(CUT_BLOCK as u32), 1, 1];
                if work.sources {
                    launch!(stream, k.cut_counts, blocks, 256, 0; f)?;
                }
                if work.upward {
                    launch!(stream, k.pieces, blocks, 256, 0; f)?;
                }
            }
            if work.targets {
                launch!(stream, k.keys, some, 256, 0; t)?;
            }
            if work.targets {
                for pass in 0..f.sort_passes {
                    launch!(stream, k.sort, [most.div_ceil(2048), 2, 1], 256, 0; t, pass)?;
                }
            }
            self.begin_sample(stream)?;
            if work.targets {
                launch!(stream, k.leaves, [most.div_ceil(1024), 2, 1], 1024, 0; t)?;
                launch!(stream, k.scan, [1, 2, 1], 32 * 22, 0; t)?;
                launch!(stream, k.cells, [most.div_ceil(1024), 2, 1], 1024, 0; t)?;
                launch!(stream, k.links, [2 * sms, 2, 1], 256, 0; t)?;
                if !work.sources {
                    launch!(stream, k.restore, [1, 1, 1], 256, 0; f, kept)?;
                }
            }
            if work.targets || work.upward {
                launch!(stream, k.gather, [8 * sms, 2, 1], 256, 0; if work.upward { f } else { t })?;
            }
            mark(Pass::Tree)?;
            if work.targets {
                launch!(stream, k.lists, [8 * sms, 1, 1], 256, 0; f)?;
            }
        }
        mark(Pass::Lists)
    }
}
