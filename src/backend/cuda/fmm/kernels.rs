//! The kernels of one recipe, and the shared memory that they ask for.

use super::at_targets::M2pKernels;
use super::check::CheckKernels;
use super::in_box::BoxKernels;
use super::pseudo::PseudoKernels;
use super::recipe::Far;
use super::{Kind, P2P_BLOCKS, Recipe, m2l_small, trees};
use crate::backend::cuda::context::{Context, Function};
use crate::backend::cuda::direct::CudaReal;
use crate::error::Result;
use crate::options::Regularization;

/// Kernels of a far field without local expansions of harmonics.
#[derive(Debug, Clone, Copy)]
pub(super) enum Others {
    None,
    AtTargets(M2pKernels),
    Pseudo(PseudoKernels),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels {
    pub renew: Function,
    pub inside: Function,
    pub restore: Function,
    pub segments: Function,
    pub segment_bounds: Function,
    pub cut_counts: Function,
    pub pieces: Function,
    pub bounds: Function,
    pub keys: Function,
    pub sort: Function,
    pub leaves: Function,
    pub scan: Function,
    pub cells: Function,
    pub links: Function,
    pub lists: Function,
    pub gather: Function,
    pub small: trees::Small,
    pub p2m: Function,
    pub m2m: Function,
    pub l2l: Function,
    pub m2l: Function,
    pub add_parts: Function,
    /// M2L where cells are few.
    pub m2l_small: Option<Function>,
    /// M2L between the largest cells of a periodic box.
    pub m2l_box: Option<BoxKernels>,
    pub smooth: Option<Function>,
    /// How far corrections count for gradients.
    pub reach: Option<Function>,
    pub p2p: Function,
    /// With cores, for so few leaves that several blocks share one.
    pub p2p_split: Option<Function>,
    pub l2p: Function,
    /// In place of those of harmonics.
    pub others: Others,
    /// Of a periodic domain: what images that are not near do at all targets, where local expansions do not have it.
    pub far: Option<Function>,
    pub check: CheckKernels,
}

/// Sources in two queues, or in two tiles: `kTile` of kernels/fmm_plain.cuh and the size of a queue in fmm_near.cuh, twice.
const QUEUED: usize = 512;
/// Targets of a group of smooth corrections, whose weights are kept, and numbers of a source with its core.
const GROUP_TARGETS: usize = 128;
const CORED: usize = 8;

/// Bytes of two queues of sources, or of two tiles of as many where nothing has a core, in f32 with the low digits of their positions;
/// the sums are exchanged there too.
pub(super) fn p2p_shared(recipe: &Recipe) -> usize {
    let record = if recipe.kind == Kind::Charge { 4 } else { 8 };
    let low = if recipe.is_f64 || recipe.has_cores() && !recipe.two_floats { 0 } else { 4 };
    recipe.real_bytes() * (record + low) * QUEUED
}

/// Shared memory that the kernels of smooth corrections have besides: at most, of all images (the test below reads what the compiler said).
const SMOOTH_STATIC: usize = 22_144;

/// Bytes of two queues, whose memory the weights of a group's targets take afterwards, and of the fields at the nodes.
pub(super) fn smooth_shared(recipe: &Recipe) -> usize {
    recipe.real_bytes() * (CORED * QUEUED + GROUP_TARGETS * recipe.fields())
}

impl Kernels {
    /// Those of a recipe, which may leave out what this device has no room for, with the shared memory that they ask for.
    pub fn ready<T: CudaReal>(context: &Context, mut recipe: Recipe) -> Result<(Recipe, Self)> {
        let shared = context.info.shared_memory as usize;
        if smooth_shared(&recipe) + SMOOTH_STATIC > shared {
            // Gradients in f64 on sm_75: such corrections are then listed one by one.
            recipe.smooth = None;
        }
        let kernels = Self::find::<T>(context, &recipe)?;
        context.allow_shared_memory(kernels.m2l, recipe.m2l(shared, kernels.small.is_hopper()).shared)?;
        if let Some(smooth) = kernels.smooth {
            context.allow_shared_memory(smooth, smooth_shared(&recipe))?;
        }
        for p2p in [Some(kernels.p2p), kernels.p2p_split].into_iter().flatten() {
            context.allow_shared_memory(p2p, p2p_shared(&recipe).max(shared / P2P_BLOCKS[1] as usize))?;
        }
        context.allow_shared_memory(kernels.l2l, recipe.shifts(shared).shared)?;
        context.allow_shared_memory(kernels.l2p, recipe.l2p(shared).1)?;
        kernels.small.allow_shared_memory(context)?;
        Ok((recipe, kernels))
    }

    fn find<T: CudaReal>(context: &Context, recipe: &Recipe) -> Result<Self> {
        let t = T::SUFFIX;
        let tree = |name: &str| context.function("fmm_tree", &format!("fmm_{name}"));
        let parts = match (recipe.two_parts, recipe.two_floats) {
            (false, _) => "",
            (true, false) => "x3",
            (true, true) => "x3_rounded",
        };
        let gradient = if recipe.gradient { "_gradient" } else { "" };
        let near = match (recipe.kind, recipe.regularization) {
            (Kind::Charge, _) => "charge".to_owned(),
            (Kind::Particle, Regularization::None) => format!("particle{gradient}"),
            (Kind::Particle, _) => format!("particle_core{gradient}"),
            (Kind::Segment, _) => format!("segment{gradient}"),
        };
        let floats = if recipe.two_floats { "x2" } else { "" };
        let far = match (recipe.kind, recipe.gradient) {
            (Kind::Charge, false) => "potential",
            (Kind::Charge, true) => "force",
            (_, false) => "velocity",
            (_, true) => "gradient",
        };
        let elements = if recipe.kind == Kind::Charge { "charge" } else { "vortex" };
        let segments = |name: &str| context.function("fmm_segments", &format!("fmm_{name}"));
        let reuse = |name: &str| context.function("fmm_reuse", &format!("fmm_{name}"));
        Ok(Self {
            renew: reuse("renew")?,
            inside: reuse("inside")?,
            restore: reuse("restore")?,
            segments: segments("segments")?,
            segment_bounds: segments("segment_bounds")?,
            cut_counts: segments("cut_counts")?,
            pieces: segments("pieces")?,
            bounds: tree("bounds")?,
            keys: tree("keys")?,
            sort: tree("sort")?,
            leaves: tree("leaves")?,
            scan: tree("scan")?,
            cells: tree("cells")?,
            links: tree("links")?,
            lists: tree("lists")?,
            gather: tree(&format!("gather_{t}"))?,
            small: trees::Small::find(context, t)?,
            p2m: context.function("fmm_p2m", &format!("fmm_p2m_{elements}_{t}_{}", recipe.truncation.order))?,
            m2m: context.function("fmm_translate", &format!("fmm_m2m_{t}{parts}"))?,
            l2l: context.function("fmm_translate", &format!("fmm_l2l_{t}{parts}"))?,
            m2l: context.function("fmm_m2l", &format!("fmm_m2l_{t}{parts}_{}", recipe.truncation.slots))?,
            add_parts: context.function("fmm_m2l", &format!("fmm_add_parts_{t}"))?,
            m2l_small: match m2l_small::classes_of_two(recipe.truncation.order).filter(|_| !recipe.two_floats) {
                Some(classes) => Some(context.function("fmm_m2l", &format!("fmm_m2l_small_{t}{parts}_{classes}"))?),
                None => None,
            },
            m2l_box: match recipe.periodic {
                true => Some(BoxKernels::find(context, t)?),
                false => None,
            },
            smooth: match recipe.smooth {
                Some(_) => {
                    let unit = if recipe.periodic { "fmm_smooth_periodic" } else { "fmm_smooth" };
                    Some(context.function(unit, &format!("fmm_smooth_{}_{t}", near.replace("_core", "")))?)
                }
                None => None,
            },
            reach: match recipe.has_reach() {
                true => Some(context.function("fmm_check", "fmm_reach")?),
                false => None,
            },
            p2p: context.function(
                if recipe.periodic { "fmm_p2p_periodic" } else { "fmm_p2p" },
                &format!("fmm_p2p_{near}_{t}{floats}"),
            )?,
            p2p_split: match recipe.has_cores() && !recipe.periodic {
                true => Some(context.function("fmm_p2p", &format!("fmm_p2p_split_{near}_{t}{floats}"))?),
                false => None,
            },
            l2p: context.function("fmm_l2p", &format!("fmm_l2p_{far}_{t}"))?,
            others: match recipe.far {
                Far::AtTargets(_) => Others::AtTargets(M2pKernels::find(context, far, t)?),
                Far::Pseudo(order) => Others::Pseudo(PseudoKernels::find(context, order, elements, far, t)?),
                Far::Harmonics => Others::None,
            },
            far: match recipe.has_images && !recipe.expands_far_images() {
                true => Some(context.function("periodic", &format!("periodic_near_{far}_{t}"))?),
                false => None,
            },
            check: CheckKernels::find(context, recipe)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `shared=` of the compiler's figures that are committed beside the images.
    #[test]
    fn kernels_of_smooth_corrections_have_no_more_shared_memory_than_is_assumed() {
        for unit in ["fmm_smooth", "fmm_smooth_periodic"] {
            let path = format!("{}/kernels/fatbin/{unit}.resources.txt", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            let sizes = text.lines().map(|line| line.split("shared=").nth(1).unwrap().split(' ').next().unwrap());
            let most = sizes.map(|size| size.parse::<usize>().unwrap()).max().unwrap();
            assert!(most <= SMOOTH_STATIC && most + 1024 > SMOOTH_STATIC, "{unit}: {most}");
        }
    }
}
