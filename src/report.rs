//! What an engine did: one table, from which the C struct is filled.

codes! {
    /// The passes, in the order of the data; `seconds` of a report are indexed by them.
    enum Pass {
        /// Copies between host and device.
        Transfer = 0 => WFMM_PASS_TRANSFER,
        /// Keys, sorting, cells.
        Tree = 1 => WFMM_PASS_TREE,
        /// Near, far and core lists.
        Lists = 2 => WFMM_PASS_LISTS,
        /// Sources to multipoles.
        P2m = 3 => WFMM_PASS_P2M,
        /// Multipoles of children to those of parents.
        M2m = 4 => WFMM_PASS_M2M,
        /// Multipoles to local expansions.
        M2l = 5 => WFMM_PASS_M2L,
        /// Local expansions of parents to those of children.
        L2l = 6 => WFMM_PASS_L2L,
        /// Local expansions to targets.
        L2p = 7 => WFMM_PASS_L2P,
        /// Near pairs and core corrections, element by element; all pairs where the method is direct.
        P2p = 8 => WFMM_PASS_P2P,
        /// The whole call.
        Total = 9 => WFMM_PASS_TOTAL,
        /// Multipoles to targets: the treecode.
        M2p = 11 => WFMM_PASS_M2P,
    }
}

/// Length of `seconds` in a report; entries without a `WFMM_PASS_*` name are 0.
pub const WFMM_PASS_COUNT: usize = 16;
pub const PASS_COUNT: usize = WFMM_PASS_COUNT;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// 1 cpu, 2 cuda.
    pub backend: i32,
    pub method: i32,
    pub order: i32,
    pub depth: i32,
    /// 1 f32, 2 f64.
    pub precision: i32,
    pub cells: i64,
    /// Cell pairs of the far field (M2L, M2P), on the CPU.
    pub far_pairs: i64,
    /// Element pairs summed directly, `core_pairs` included.
    pub near_pairs: i64,
    pub host_bytes: u64,
    pub device_bytes: u64,
    pub estimated_error: f64,
    pub seconds: [f64; PASS_COUNT],
    /// Element pairs of the core correction, on the CPU.
    pub core_pairs: i64,
    /// Times that the last field missed its tolerance and was computed again, on a GPU.
    pub retries: i64,
    /// Kinds of elements whose sums are singular though they have a regularization: 1 segments, 2 particles.
    pub singular: i64,
}

/// What the last evaluation of a plan did. Set `struct_size` to `sizeof` before the call.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct wfmm_report {
    /// Size of this struct as the caller knows it.
    pub struct_size: u32,
    /// `WFMM_BACKEND_*` that was used.
    pub backend: i32,
    /// `WFMM_METHOD_*` that was used.
    pub method: i32,
    /// Highest order of the expansions; 0 for a direct sum.
    pub order: i32,
    /// Levels of the tree below its root.
    pub depth: i32,
    /// `WFMM_PRECISION_*` of the computation.
    pub precision: i32,
    /// Cells of the source and target trees.
    pub cells: i64,
    /// Cell pairs of the far field; for a treecode pairs of a cell and a group of targets. 0 on a GPU.
    pub far_pairs: i64,
    /// Element pairs that were summed directly, those of the core correction included.
    pub near_pairs: i64,
    /// Host memory of the plan in bytes.
    pub host_bytes: u64,
    /// Device memory of the plan in bytes.
    pub device_bytes: u64,
    /// Error of the fast multipole method, or the treecode, found at the sampled targets: the larger of the relative L2
    /// error of the velocity (potential) and a thirtieth of the gradient's; on a GPU with three standard errors added. 0
    /// after a direct sum.
    pub estimated_error: f64,
    /// Wall-clock seconds of each pass, indexed by `WFMM_PASS_*`. On the CPU a pass whose result was kept has 0. On a GPU
    /// small evaluations are timed as a whole, since timers between the passes would slow them; one in sixteen is timed pass
    /// by pass, and its proportions are used for the others.
    pub seconds: [f64; WFMM_PASS_COUNT],
    /// Element pairs of the core correction: far pairs at which the regularized kernel still differs from the singular one.
    /// 0 on a GPU, which counts them in `near_pairs` only.
    pub core_pairs: i64,
    /// Times that the field missed its tolerance at the sampled targets and was computed again: with higher orders, in double
    /// precision or directly.
    pub retries: i64,
    /// Kinds of elements that have a regularization but no core radius above 0, so that their kernel is singular: 1 segments, 2 particles,
    /// 3 both, 0 none. Radii in device memory are not read.
    pub singular: i64,
}

impl From<&Report> for wfmm_report {
    fn from(r: &Report) -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            backend: r.backend,
            method: r.method,
            order: r.order,
            depth: r.depth,
            precision: r.precision,
            cells: r.cells,
            far_pairs: r.far_pairs,
            near_pairs: r.near_pairs,
            host_bytes: r.host_bytes,
            device_bytes: r.device_bytes,
            estimated_error: r.estimated_error,
            seconds: r.seconds,
            core_pairs: r.core_pairs,
            retries: r.retries,
            singular: r.singular,
        }
    }
}
