//! Pseudo-particles in place of harmonics, kernels/fmm_pseudo.cu: their order, the points of the sphere, and launches.

use super::Passes;
use super::at_targets::write_kernel;
use super::truncation;
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::stream::{Stream, launch};
use crate::error::Result;
use crate::math::sphere::Sphere;

pub use crate::math::sphere::count;

/// Their error over that of harmonics of the same order: the harmonics beyond it that particles on a sphere have add as much again.
const MORE: f64 = std::f64::consts::SQRT_2;
/// Points of a leaf: M2L takes so much longer than the near field that leaves are as large as trees have them.
pub const LEAF: f64 = 240.0;
/// Far cells of a target cell on average, and seconds of a degree of a pair of particles, H100, f64.
const FAR_CELLS: f64 = 189.0;
const PAIR_DEGREE: f64 = 4e-13;

/// The order from `least` on whose error is within `budget`, else the highest; and the highest one's error.
pub fn order_for(budget: f64, least: usize, most: usize) -> (usize, f64) {
    let error = |order: usize| MORE * truncation::left_out(order);
    let order = (least.max(2)..most).find(|order| error(*order) <= budget).unwrap_or(most);
    (order, error(most))
}

/// Seconds of M2L a target.
pub fn seconds(order: usize) -> f64 {
    let pairs = (count(order) as f64).powi(2);
    FAR_CELLS * pairs * order as f64 * PAIR_DEGREE / LEAF
}

/// `[terms][4]`: points of the unit sphere and their weights.
pub fn table(order: usize) -> Vec<f64> {
    let sphere = Sphere::new(order);
    sphere.points.iter().zip(&sphere.weights).flat_map(|(&[x, y, z], &w)| [x, y, z, w]).collect()
}

/// In place of those of harmonics.
#[derive(Debug, Clone, Copy)]
pub struct PseudoKernels {
    p2m: Function,
    m2m: Function,
    m2l: Function,
    l2l: Function,
    l2p: Function,
    pub write: Function,
    order: u32,
    threads: u32,
}

impl PseudoKernels {
    /// For such elements and fields (`far`); `t`: suffix of the precision.
    pub fn find(context: &Context, order: usize, elements: &str, far: &str, t: &str) -> Result<Self> {
        let get = |name: &str, of: &str| context.function("fmm_pseudo", &format!("fmm_pseudo_{name}_{of}_{t}"));
        Ok(Self {
            p2m: get("p2m", elements)?,
            m2m: get("m2m", elements)?,
            m2l: get("m2l", elements)?,
            l2l: get("l2l", elements)?,
            l2p: get("l2p", far)?,
            write: write_kernel(context, far, t)?,
            order: order as u32,
            threads: threads(order),
        })
    }
}

/// Threads of a block at most: `kMostThreads` of the kernels.
const MOST_THREADS: usize = 256;
/// Blocks a multiprocessor at most.
const BLOCKS: u32 = 16;

/// Threads of a block, which leave few idle: a thread has one point of the sphere, or two.
fn threads(order: usize) -> u32 {
    let terms = count(order);
    let each = terms.div_ceil(terms.div_ceil(MOST_THREADS));
    each.next_multiple_of(32) as u32
}

impl Passes<'_> {
    fn blocks(&self, cells: u32) -> u32 {
        cells.min(BLOCKS * self.context.info.multiprocessors as u32)
    }

    pub(super) fn pseudo_p2m(&self, k: &PseudoKernels, cells: u32, stream: &Stream) -> Result<()> {
        let laid = self.laid;
        // SAFETY: `f` describes arrays of the arenas with the lengths that fmm.cuh asks for, `laid` has room for the particles of all
        // cells; launch shapes as in fmm_pseudo.cu. So it is below.
        unsafe {
            launch!(stream, k.p2m, [self.blocks(cells), 1, 1], k.threads, 0; laid.f, laid.pseudo[0], laid.sphere, k.order)
        }
    }

    /// A launch a level, since one takes from the other; nothing is far above level 2.
    pub(super) fn pseudo_m2m(&self, k: &PseudoKernels, cells: u32, stream: &Stream) -> Result<()> {
        let laid = self.laid;
        for level in (laid.f.top..laid.f.max_level).rev() {
            // SAFETY: as above.
            unsafe {
                launch!(stream, k.m2m, [self.blocks(cells), 1, 1], k.threads, 0; laid.f, laid.pseudo[0], laid.sphere, k.order, level)?;
            }
        }
        Ok(())
    }

    pub(super) fn pseudo_m2l(&self, k: &PseudoKernels, cells: u32, stream: &Stream) -> Result<()> {
        let laid = self.laid;
        // SAFETY: as above.
        unsafe {
            launch!(stream, k.m2l, [self.blocks(cells), 1, 1], k.threads, 0; laid.f, laid.pseudo[0], laid.pseudo[1], laid.sphere, k.order)
        }
    }

    pub(super) fn pseudo_l2l(&self, k: &PseudoKernels, cells: u32, stream: &Stream) -> Result<()> {
        let laid = self.laid;
        for level in laid.f.top + 1..=laid.f.max_level {
            // SAFETY: as above.
            unsafe {
                launch!(stream, k.l2l, [self.blocks(cells), 1, 1], k.threads, 0; laid.f, laid.pseudo[1], laid.sphere, k.order, level)?;
            }
        }
        Ok(())
    }

    /// The far field at the targets, to rows of `FmmArg::local`.
    pub(super) fn pseudo_l2p(&self, k: &PseudoKernels, cells: u32, stream: &Stream) -> Result<()> {
        let laid = self.laid;
        // SAFETY: as above.
        unsafe {
            launch!(stream, k.l2p, [self.blocks(cells), 1, 1], k.threads, 0; laid.f, laid.pseudo[1], laid.sphere, k.order)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Smaller budgets need higher orders, and none is higher than needed.
    #[test]
    fn orders_hold_their_budgets() {
        let mut before = 0;
        for budget in [1.0, 1e-1, 1e-2, 1e-3, 1e-4] {
            let (order, floor) = order_for(budget, 2, 16);
            assert!(order > before && floor <= budget, "{budget}: {order} {floor:.1e}");
            assert!(order == 2 || MORE * truncation::left_out(order - 1) > budget, "{budget}: {order}");
            before = order;
        }
        assert_eq!(order_for(1e-3, 14, 16).0, 14);
        let (order, floor) = order_for(1e-9, 2, 16);
        assert!(order == 16 && floor > 1e-9);
    }

    #[test]
    fn few_threads_are_idle() {
        for (order, wanted) in [(2, 32), (5, 64), (7, 96), (9, 160), (11, 256), (12, 160), (16, 256)] {
            assert_eq!(threads(order), wanted, "{order}");
        }
    }

    #[test]
    fn the_table_has_points_and_weights() {
        let table = table(5);
        assert_eq!(table.len(), 4 * count(5));
        assert!((table.iter().skip(3).step_by(4).sum::<f64>() - 1.0).abs() < 1e-14);
        assert!(table.chunks(4).all(|p| (p[0] * p[0] + p[1] * p[1] + p[2] * p[2] - 1.0).abs() < 1e-14));
    }
}
