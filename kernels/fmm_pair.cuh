// The pair functions of pair.cuh as the near field uses them: records made from sorted points, one form of the kernel a loop.
// FORM: with the core; singular, where the core does not reach; the deficit, regularized minus singular.
#pragma once
#include "fmm.cuh"
#include "pair.cuh"

namespace fmm {

enum Form { kRegular, kSingular, kDeficit };

// In single precision positions of a leaf are relative to one of its targets, so that a pair that is r apart and R from there has lost
// R/r of its digits: below these squares of r/R and of r it is computed again from the caller's positions.
constexpr float kNearShare = 0x1p-14f, kNearest = 0x1p-30f;
WFMM_DEVICE float near_square(Vec<float> x) { return fmax(kNearShare * dot(x, x), kNearest); }
// From a record's position to a target's.
template <class T, class Record> WFMM_DEVICE Vec<T> apart(Vec<T> x, const Record &r) { return {x.x - r.x, x.y - r.y, x.z - r.z}; }
// Adds what rounding of the positions took from a pair: its sum in double precision less the one that was added.
template <class Exact, class Sum> WFMM_DEVICE void add_difference(Sum &sum, const Exact &exact, const Sum &added) {
    for (int c = 0; c < Sum::terms; c++) sum.sum[c] += float(exact.sum[c] - added.sum[c]);
}

// A group of leaves, at whose targets smooth corrections are interpolated between nodes: middle and half sides of their box.
template <class T> struct Group { T centre[3], half2[3]; int nodes[3]; };

// Is the deficit of a core, b (c/d)^p of the singular kernel (`limit2`: squared tolerance over b and the kernel's slopes), well
// interpolated in the group? (Two kernels must find the same sources smooth, so no product is contracted.) Nodes on an interval of half length h leave (h/R)^nodes of a function that is smooth over R.
// scale2: R², far2: squared distance of the singular kernel, core2/wide2: (c/d)².
template <class T> WFMM_DEVICE bool interpolates(const Group<T> &g, T scale2, T far2, T core2, T wide2, unsigned power, T limit2) {
    const T inverse = T(1) / scale2, ratio = core2 / wide2;
    T error = 0, most = 0;
    for (int k = 0; k < 3; k++) {
        const T t = times(g.half2[k], inverse);
        T e = 1;
        for (int n = 0; n < g.nodes[k]; n++) e = times(e, t);
        error += e;
        most = fmax(most, t);
    }
    error = times(error, scale2 / far2);
    for (unsigned n = 0; n < power; n++) error = times(error, ratio);
    return most < T(0.25) && error < limit2;
}

template <class T> struct ChargePair {
    typedef Charge<T> Record;
    typedef Vec<T> Position;
    typedef ChargeSum<T, true> Sum;
    static constexpr int kFields = 4;
    static constexpr bool kHasCore = false, kHasStrength = false, kTwoFloats = false, kCorrects = sizeof(T) == 4;
    static constexpr unsigned kMostTargets = 2; // a thread, in fmm_plain.cuh
    static WFMM_DEVICE Record make(int, const Vec4<T> &p, const Vec4<T> &) { return {p.x, p.y, p.z, p.w}; }
    // Returns the squared distance.
    template <int FORM, int REG> static WFMM_DEVICE T add(Sum &sum, Vec<T> x, const Record &r) { return add_charge<true>(sum, x, r); }
    // Of a pair that was added: what rounding of the positions took, d apart.
    template <int FORM, int REG> static WFMM_DEVICE void correct(Sum &sum, Vec<T> x, const Record &r, Vec<double> d, T) {
        Sum added{};
        add<FORM, REG>(added, x, r);
        ChargeSum<double, true> exact{};
        add_charge<true>(exact, d, Charge<double>{0, 0, 0, r.q});
        add_difference(sum, exact, added);
    }
};

template <class T, bool GRADIENT, bool CORE> struct ParticlePair {
    typedef Particle<T> Record;
    typedef Vec<T> Position;
    typedef ParticleSum<T, GRADIENT> Sum;
    static constexpr int kFields = GRADIENT ? 12 : 3;
    static constexpr bool kHasCore = CORE, kHasStrength = true, kTwoFloats = false, kDefersPairs = false, kCorrects = sizeof(T) == 4;
    static constexpr unsigned kMostTargets = GRADIENT ? (sizeof(T) == 8 ? 2 : 3) : 4;
    static constexpr int kCoreTargets = GRADIENT ? 1 : 2; // a thread, in fmm_near.cuh
    static WFMM_DEVICE Record make(int reg, const Vec4<T> &p, const Vec4<T> &q) {
        Record r{p.x, p.y, p.z, 0, q.x, q.y, q.z, 0};
        if (CORE) particle_core<T>(reg, p.w, r.core, r.cut2);
        return r;
    }
    // Returns the squared distance.
    template <int FORM, int REG> static WFMM_DEVICE T add(Sum &sum, Vec<T> x, const Record &r) {
        return add_particle<FORM == kSingular ? NONE : REG, FORM == kDeficit ? DEFICIT : REGULARIZED, GRADIENT>(sum, x, r);
    }
    // Of a pair that was added: what rounding of the positions took, d apart, with a core of this radius.
    template <int FORM, int REG> static WFMM_DEVICE void correct(Sum &sum, Vec<T> x, const Record &r, Vec<double> d, T core) {
        Sum added{};
        add<FORM, REG>(added, x, r);
        ParticleSum<double, GRADIENT> exact{};
        Particle<double> p{0, 0, 0, 0, r.ax, r.ay, r.az, 0};
        if (FORM == kRegular) particle_core<double>(REG, core, p.core, p.cut2);
        add_particle<FORM == kSingular ? NONE : REG, REGULARIZED, GRADIENT>(exact, d, p);
        add_difference(sum, exact, added);
    }
    // Does the core of source p reach the box around the targets?
    template <class N> static __device__ bool reaches(const N &near, const Vec4<T> &p, const Vec4<T> &, T range) {
        const T reach = range * p.w;
        return near.distance2(p) < reach * reach;
    }
    static __device__ bool smooth(const Group<T> &g, const Vec4<T> &p, const Vec4<T> &, const Fmm &f, T) {
        const T x = g.centre[0] - p.x, y = g.centre[1] - p.y, z = g.centre[2] - p.z, d2 = fma(x, x, fma(y, y, times(z, z))), c2 = times(p.w, p.w);
        if (!(d2 > c2)) return false; // inside the core the correction is larger than the contribution, of which its error is a part
        return interpolates<T>(g, d2, d2, c2, fmax(c2, d2), f.smooth_power, T(f.smooth_limit));
    }
    template <class L> static __device__ void choose(int reg, L &&loop) {
        switch (reg) {
        case GAUSS_ERF: loop.template run<GAUSS_ERF>(); break;
        case EXPONENTIAL: loop.template run<EXPONENTIAL>(); break;
        case COMPACT: loop.template run<COMPACT>(); break;
        case ROSENHEAD: loop.template run<ROSENHEAD>(); break;
        case WINCKELMANS: loop.template run<WINCKELMANS>(); break;
        case POLYNOMIAL: loop.template run<POLYNOMIAL>(); break;
        }
    }
};

// p: middle and core radius; q: half of the vector from P1 to P2, circulation. In f64 P1 and P2 in place of middle and half.
template <class T, bool GRADIENT> struct SegmentOnTarget {
    typedef Segment<T> Record;
    typedef Vec<T> Position;
    typedef SegmentSum<T, GRADIENT> Sum;
    static constexpr int kFields = GRADIENT ? 12 : 3;
    static constexpr bool kHasCore = true, kHasStrength = true, kTwoFloats = false, kDefersPairs = true, kCorrects = false;
    static constexpr int kCoreTargets = GRADIENT ? 1 : 2;
    static WFMM_DEVICE Record make(int reg, const Vec4<T> &p, const Vec4<T> &q) {
        const Vec<T> h = half(p, q);
        Record r;
        if constexpr (sizeof(T) == 8) r = {p.x, p.y, p.z, q.w, q.x, q.y, q.z, 0};
        else r = {p.x - q.x, p.y - q.y, p.z - q.z, q.w, 2 * q.x, 2 * q.y, 2 * q.z, 0};
        if (h.x == 0 && h.y == 0 && h.z == 0) { no_segment(r); return r; }
        r.core = segment_core<T>(reg, p.w, 4 * (h.x * h.x + h.y * h.y + h.z * h.z));
        return r;
    }
    static WFMM_DEVICE Vec<T> half(const Vec4<T> &p, const Vec4<T> &q) {
        if (sizeof(T) == 4) return {q.x, q.y, q.z};
        return {T(0.5) * (q.x - p.x), T(0.5) * (q.y - p.y), T(0.5) * (q.z - p.z)};
    }
    static WFMM_DEVICE Vec<T> middle(const Vec4<T> &p, const Vec4<T> &q) {
        if (sizeof(T) == 4) return {p.x, p.y, p.z};
        return {T(0.5) * (q.x + p.x), T(0.5) * (q.y + p.y), T(0.5) * (q.z + p.z)};
    }
    // True where the pair was left out, for want of digits.
    template <int FORM, int REG> static WFMM_DEVICE bool add(Sum &sum, Vec<T> x, const Record &r) {
        return add_segment<FORM == kSingular ? NONE : REG, FORM == kDeficit ? DEFICIT : REGULARIZED, GRADIENT>(sum, x, r);
    }
    template <int FORM, int REG> static WFMM_DEVICE void add_exactly(Sum &sum, const Record &r, const SegmentPair<double> &g) {
        add_segment_exactly<FORM == kSingular ? NONE : REG>(sum, g, r);
    }
    // The core acts near the whole line: by the distance from the middle of the box, less the box's radius.
    template <class N> static __device__ bool reaches(const N &near, const Vec4<T> &p, const Vec4<T> &q, T range) {
        const T *b = near.box;
        const Vec<T> m = middle(p, q), h = half(p, q);
        const Vec<T> d{T(0.5) * (b[0] + b[3]) - m.x, T(0.5) * (b[1] + b[4]) - m.y, T(0.5) * (b[2] + b[5]) - m.z};
        const Vec<T> side{b[3] - b[0], b[4] - b[1], b[5] - b[2]}, c = cross(d, h);
        const T h2 = dot(h, h), radius = T(0.5) * sqrt(dot(side, side));
        if (!(h2 > 0) || p.w == 0) return false;
        const T reach = range * p.w + radius, c2 = dot(c, c);
        return c2 < reach * reach * h2 && counts(near.f, near.s.per_limit, p.w, q.w, sqrt(h2), sqrt(dot(d, d)) - radius, sqrt(c2 / h2) - radius);
    }
    // Is the correction large enough for the field as a whole, anywhere at a distance of so much and more from the segment's middle and
    // its line? Of a segment of length l it is at most Γ l/r² (ρ/r)(1 - F) where r is not small, and ρ (1 - F) at most half a core.
    static __device__ bool counts(const Fmm &f, T per_limit, T core, T circulation, T half, T apart, T beside) {
        const T r = apart - half;
        if (!(per_limit > 0) || !(r > 0)) return true;
        T width = T(0.5) * core;
        if (f.smooth_power && beside > core) {
            const T k = core / beside, k2 = k * k; // 1 - F is at most k² (Scully) or k⁴/2 (Vatistas)
            width = fmin(width, beside * (f.smooth_power == 2 ? k2 : T(0.5) * k2 * k2));
        }
        return fabs(circulation) * T(2) * half * width * per_limit > r * r * r;
    }
    // Smooth over the distance to the segment, and over that to its line or the core, which acts along all of it.
    static __device__ bool smooth(const Group<T> &g, const Vec4<T> &p, const Vec4<T> &q, const Fmm &f, T per_limit) {
        const Vec<T> m = middle(p, q), h = half(p, q), d{g.centre[0] - m.x, g.centre[1] - m.y, g.centre[2] - m.z};
        const T h2 = fma(h.x, h.x, fma(h.y, h.y, times(h.z, h.z))), dh = fma(d.x, h.x, fma(d.y, h.y, times(d.z, h.z)));
        const T along = fmin(fmax(dh / h2, T(-1)), T(1));
        const Vec<T> e{fma(-along, h.x, d.x), fma(-along, h.y, d.y), fma(-along, h.z, d.z)};
        const Vec<T> c{fma(d.y, h.z, -times(d.z, h.y)), fma(d.z, h.x, -times(d.x, h.z)), fma(d.x, h.y, -times(d.y, h.x))};
        const T far2 = fma(e.x, e.x, fma(e.y, e.y, times(e.z, e.z))), line2 = fma(c.x, c.x, fma(c.y, c.y, times(c.z, c.z))) / h2;
        const T c2 = times(p.w, p.w), wide2 = fmax(c2, line2);
        // Deep inside the core the deficit cancels the singular kernel, and beside the segment both may lack digits; targets at one position
        // have a group without extent, in which everything is well interpolated.
        if (!(times(far2, T(16)) > c2 && times(far2, T(256)) > h2)) return false;
        // Its own tolerance, or what the field as a whole bears.
        T limit = T(f.smooth_limit);
        if (per_limit > 0) {
            const T share = T(f.smooth_share) * far2 / (fabs(q.w) * sqrt(h2) * per_limit);
            if (share > 1) limit = times(limit, times(share, share));
        }
        return interpolates<T>(g, fmin(far2, wide2), far2, c2, wide2, f.smooth_power, limit);
    }
    template <class L> static __device__ void choose(int reg, L &&loop) {
        switch (reg) {
        case RANKINE: loop.template run<RANKINE>(); break;
        case LAMB_OSEEN: loop.template run<LAMB_OSEEN>(); break;
        case VATISTAS: loop.template run<VATISTAS>(); break;
        case SCULLY: loop.template run<SCULLY>(); break;
        case OFFSET: loop.template run<OFFSET>(); break;
        case NONE: loop.template run<NONE>(); break;
        }
    }
};

} // namespace fmm
