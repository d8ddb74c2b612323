// The caller's arrays, as the gathering kernels and the direct sum of segments read them.
#pragma once
#include "pair.cuh"

// x' = (x - origin) * scale; the scale is a power of two. needs_double: single precision is not enough (precision_probe.cuh), so nothing
// is written. Mirrors backend::cuda::gather::Frame.
struct Frame { double origin[3]; double scale; double low[3]; double box; long long needs_double; };

// An array of the host's in either precision; null where there is none. Mirrors backend::cuda::gather::RealsArg.
struct Reals {
    const void* start;
    long long is_f64;
    WFMM_DEVICE double operator[](long long k) const { return is_f64 ? ((const double*)start)[k] : (double)((const float*)start)[k]; }
};

// Where segments and targets are to all their digits: what single precision asks for where its own are too few.
// Mirrors backend::cuda::direct::CallerPositionsArg.
struct CallerPositions {
    Reals points, position;
    const int* connectivity;
    const unsigned* order; // of the targets, or null
    const Frame* frame;
    long long ld, base, first; // the first target, where there is no order

    // Segment `source` and target `target` in the frame's lengths.
    WFMM_DEVICE SegmentPair<double> exact(int source, int target) const {
        const long long a = 3ll * (connectivity[ld * source] - base), b = 3ll * (connectivity[ld * source + 1] - base);
        const long long t = 3ll * (order ? order[target] : first + target);
        const double scale = frame->scale;
        double x[3], p1[3], p2[3];
        for (int c = 0; c < 3; c++) {
            x[c] = position[t + c] * scale;
            p1[c] = points[a + c] * scale;
            p2[c] = points[b + c] * scale;
        }
        return SegmentPair<double>::exact({x[0], x[1], x[2]}, {p1[0], p1[1], p1[2], 0, p2[0], p2[1], p2[2], 0});
    }
};
static_assert(sizeof(CallerPositions) == 80, "mirror of backend::cuda::direct");
