//! The struct that the kernels of narrower cores take. kernels/gaussians_args.cuh is generated from this file by `make generate`.

/// Cells of particles with Gaussian cores, and the plane that mirrors them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CellsArg {
    pub origin: [f64; 3],
    pub side: f64,
    /// Square of the distance, in core radii, from which a Gaussian is zero.
    pub reach2: f64,
    /// Distance from the plane below which a particle's image counts.
    pub beside: f64,
    /// Position of the plane on its axis.
    pub position: f64,
    /// -1: there is none.
    pub axis: i64,
    /// Bits of a cell's number along one axis.
    pub bits: i64,
    /// Cells that a reach covers.
    pub around: i64,
}
