// The caller's arrays, as the gathering kernels and the direct sum of segments read them.
#pragma once
#include "args.cuh"
#include "on_line.cuh"

WFMM_DEVICE double read(const Reals& x, long long k) { return x.is_f64 ? ((const double*)x.address)[k] : (double)((const float*)x.address)[k]; }

// Segment `source` and target `target` in the frame's lengths.
WFMM_DEVICE SegmentPair<double> exact(const CallerPositions& p, int source, int target) {
    const long long a = 3ll * (p.connectivity[p.ld * source] - p.base), b = 3ll * (p.connectivity[p.ld * source + 1] - p.base);
    const long long t = 3ll * (p.order ? p.order[target] : p.first + target);
    const double scale = p.frame->scale;
    double x[3], p1[3], p2[3];
    for (int c = 0; c < 3; c++) {
        x[c] = read(p.position, t + c) * scale;
        p1[c] = read(p.points, a + c) * scale;
        p2[c] = read(p.points, b + c) * scale;
    }
    const Segment<double> s{p1[0], p1[1], p1[2], 0, p2[0], p2[1], p2[2], 0};
    return unless_on_line(SegmentPair<double>::exact({x[0], x[1], x[2]}, s), square(along(s)), p.step * scale);
}
