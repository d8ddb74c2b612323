// Has single precision the digits for these positions, and the range for these cores? From some sources and targets spread over the
// caller's arrays, beside the making of the frame: a pair of positions that reach R from the frame's origin and are r apart keeps 2^-25 R/r
// of its distance. The host says how much of that is too much; it counts on more sources than are looked at to be nearer.
#pragma once
#include "positions.cuh"

// What the host reads.
enum PrecisionFallback { FALLBACK_NONE = 0, FALLBACK_DISTANCE, FALLBACK_CORE };

// Widest core in the frame's lengths: (c l)^4 of a segment across the domain is a number, and so is the slope (r²+c²)^-7/2 that a
// core of WINCKELMANS leaves of a particle's field. 8 to 16 extents of the domain.
constexpr double kWidestCore = 0x1p17;
constexpr int kProbeSources = 64, kProbeTargets = 32, kProbePositions = kProbeSources + kProbeTargets;

WFMM_DEVICE Vec<double> position_of(const Reals& x, long long k) { return {read(x, 3 * k), read(x, 3 * k + 1), read(x, 3 * k + 2)}; }

// Of a segment its middle: near its line and its ends pairs have all their digits anyway.
WFMM_DEVICE Vec<double> source_of(const Probe& p, long long k) {
    if (k >= p.n_segments) return position_of(p.position, k - p.n_segments);
    const int* ends = p.connectivity + p.ld * k;
    const Vec<double> a = position_of(p.points, ends[0] - p.base), b = position_of(p.points, ends[1] - p.base);
    return {0.5 * a.x + 0.5 * b.x, 0.5 * a.y + 0.5 * b.y, 0.5 * a.z + 0.5 * b.z};
}

WFMM_DEVICE int sources_of(const Probe& p) { return (int)min(p.n_segments + p.n_points, (long long)kProbeSources); }
WFMM_DEVICE int targets_of(const Probe& p) { return (int)min(p.n_targets, (long long)kProbeTargets); }

// The positions that are looked at, to shared memory: sources, then targets. By any threads.
WFMM_DEVICE void take_positions(const Probe& p, Vec<double>* position) {
    const int sources = sources_of(p), targets = targets_of(p);
    for (int k = threadIdx.x; k < kProbePositions; k += blockDim.x) {
        const int t = k - kProbeSources;
        if (k < sources) position[k] = source_of(p, spread_over(k, sources, p.n_segments + p.n_points));
        else if (t >= 0 && t < targets) position[k] = position_of(p.target, spread_over(t, targets, p.n_targets));
    }
}

// How many of the targets in `position` have a source too near, by those that the warp looks at: all lanes know.
WFMM_DEVICE int too_near(const Probe& p, const Vec<double>* position, const Frame& frame, int warp, int warps) {
    const int sources = sources_of(p), lane = threadIdx.x % 32;
    const Vec<double> origin = {frame.origin[0], frame.origin[1], frame.origin[2]};
    const auto scaled = [&](Vec<double> d) { return Vec<double>{d.x * frame.scale, d.y * frame.scale, d.z * frame.scale}; };
    int found = 0;
    for (int t = warp; t < targets_of(p); t += warps) {
        const Vec<double> x = position[kProbeSources + t], from_x = scaled(x - origin);
        bool near = false;
        for (int s = lane; s < sources; s += 32) {
            const Vec<double> y = position[s], from_y = scaled(y - origin), d = scaled(x - y);
            const double reach = fmax(dot(from_x, from_x), dot(from_y, from_y)), r2 = dot(d, d);
            near |= (d.x != 0 || d.y != 0 || d.z != 0) && (reach > p.most * r2 || r2 < p.least);
        }
        found += __any_sync(0xffffffffu, near) != 0;
    }
    return found;
}
