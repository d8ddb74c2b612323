// The struct that kernels of narrower cores take.
// Generated from src/backend/cuda/gaussians/args.rs by `make generate`; do not edit.

#pragma once

#include "pointer.cuh"

namespace gaussians {

/// Cells of particles with Gaussian cores, and the plane that mirrors them.
struct Cells {
    double origin[3];
    double side;
    /// Square of the distance, in core radii, from which a Gaussian is zero.
    double reach2;
    /// Distance from the plane below which a particle's image counts.
    double beside;
    /// Position of the plane on its axis.
    double position;
    /// -1: there is none.
    long long axis;
    /// Bits of a cell's number along one axis.
    long long bits;
    /// Cells that a reach covers.
    long long around;
};

}  // namespace gaussians
