// The structs that kernels of direct sums, gathering and flows take.
// Generated from src/backend/cuda/args.rs by `make generate`; do not edit.

#pragma once

#include "pointer.cuh"

/// An array of the host's in either precision.
struct Reals {
    ConstPointer<void> address;
    long long is_f64;
};

/// Lengths near one: x' = (x - origin) * scale; the scale is a power of two. Made and read on the device only.
struct Frame {
    double origin[3];
    double scale;
    double low[3];
    double side;
    /// Single precision is not enough (precision_probe.cuh), so nothing is written.
    long long needs_double;
};

/// Where segments and targets are to all their digits: what single precision asks for where its own are too few.
struct CallerPositions {
    Reals points;
    Reals position;
    /// [n][ld] numbers of points.
    ConstPointer<int> connectivity;
    /// Of the targets, or null.
    ConstPointer<unsigned> order;
    ConstPointer<Frame> frame;
    long long ld;
    long long base;
    /// The first target, where there is no order.
    long long first;
    /// What positions in a periodic box are multiples of; zero in an open domain.
    double step;
};

/// What kernels/precision_probe.cuh looks at.
struct Probe {
    /// Of segments.
    Reals points;
    /// Of particles or charges.
    Reals position;
    /// Of targets.
    Reals target;
    ConstPointer<int> connectivity;
    long long ld;
    long long base;
    long long n_segments;
    long long n_points;
    long long n_targets;
    /// Square of R/r that a pair may have.
    double most;
    /// Square of r that it may have, in the frame's lengths.
    double least;
    /// Host memory; null: nobody asks.
    Pointer<unsigned> fallback;
};

/// What of a flow's options concerns dust.
struct Medium {
    double gravity[3];
    double density;
    double viscosity;
    double restitution;
    double friction;
    /// Position of the ground plane on its axis.
    double ground;
    /// -1: there is none.
    long long axis;
};

/// What a flow's kernels find in a step. Lengths are not negative: their bits sort as they do.
struct StepBits {
    /// Of the longest way of a point.
    unsigned long long displacement;
    /// Of the longest segment.
    unsigned long long length;
    /// 1: a number is none or infinite.
    unsigned long long infinite;
    /// 1: a number is none.
    unsigned long long gaps;
    /// Complement of the index of the first number that is not finite; 0: none.
    unsigned long long first;
};
