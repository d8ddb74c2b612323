// The pair functions of pair.cuh as the near field uses them: records made from sorted points, one form of the kernel a loop.
// FORM: with the core; singular, where the core does not reach; the deficit, regularized minus singular.
#pragma once
#include "fmm.cuh"
#include "pair.cuh"

namespace fmm {

enum Form { kRegular, kSingular, kDeficit };

template <class T> struct ChargePair {
    typedef Charge<T> Record;
    typedef ChargeSum<T, true> Sum;
    static constexpr int kFields = 4;
    static constexpr bool kHasCore = false, kHasStrength = false;
    static WFMM_DEVICE Record make(int, const Vec4<T> &p, const Vec4<T> &) { return {p.x, p.y, p.z, p.w}; }
    template <int FORM, int REG> static WFMM_DEVICE void add(Sum &sum, Vec<T> x, const Record &r) { add_charge<true>(sum, x, r); }
};

template <class T, bool GRADIENT, bool CORE> struct ParticlePair {
    typedef Particle<T> Record;
    typedef ParticleSum<T, GRADIENT> Sum;
    static constexpr int kFields = GRADIENT ? 12 : 3;
    static constexpr bool kHasCore = CORE, kHasStrength = true;
    static WFMM_DEVICE Record make(int reg, const Vec4<T> &p, const Vec4<T> &q) {
        Record r{p.x, p.y, p.z, 0, q.x, q.y, q.z, 0};
        if (CORE) particle_core<T>(reg, p.w, r.core, r.cut2);
        return r;
    }
    template <int FORM, int REG> static WFMM_DEVICE void add(Sum &sum, Vec<T> x, const Record &r) {
        add_particle<FORM == kSingular ? NONE : REG, FORM == kDeficit ? DEFICIT : REGULARIZED, GRADIENT>(sum, x, r);
    }
    // Does the core of source p reach the box around the targets?
    template <class N> static __device__ bool reaches(const N &near, const Vec4<T> &p, const Vec4<T> &, T range) {
        const T reach = range * p.w;
        return near.distance2(p) < reach * reach;
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

// p: midpoint and core radius; q: half of the vector from P1 to P2, circulation.
template <class T, bool GRADIENT> struct SegmentOnTarget {
    typedef Segment<T> Record;
    typedef SegmentSum<T, GRADIENT> Sum;
    static constexpr int kFields = GRADIENT ? 12 : 3;
    static constexpr bool kHasCore = true, kHasStrength = true;
    static WFMM_DEVICE Record make(int reg, const Vec4<T> &p, const Vec4<T> &q) {
        Record r{p.x - q.x, p.y - q.y, p.z - q.z, q.w, p.x + q.x, p.y + q.y, p.z + q.z, 0};
        if (q.x == 0 && q.y == 0 && q.z == 0) { r.circulation = 0; r.x2 = r.x1 + 1; return r; }
        r.core = segment_core<T>(reg, p.w, 4 * (q.x * q.x + q.y * q.y + q.z * q.z));
        return r;
    }
    template <int FORM, int REG> static WFMM_DEVICE void add(Sum &sum, Vec<T> x, const Record &r) {
        add_segment<FORM == kSingular ? NONE : REG, FORM == kDeficit ? DEFICIT : REGULARIZED, GRADIENT>(sum, x, r);
    }
    // The core acts near the whole line: by the distance from the middle of the box, less the box's radius.
    template <class N> static __device__ bool reaches(const N &near, const Vec4<T> &p, const Vec4<T> &q, T range) {
        const T *b = near.box;
        const Vec<T> d{T(0.5) * (b[0] + b[3]) - p.x, T(0.5) * (b[1] + b[4]) - p.y, T(0.5) * (b[2] + b[5]) - p.z}, h{q.x, q.y, q.z};
        const Vec<T> half{b[3] - b[0], b[4] - b[1], b[5] - b[2]}, c = cross(d, h);
        const T h2 = dot(h, h), radius = T(0.5) * sqrt(dot(half, half));
        if (!(h2 > 0) || p.w == 0) return false;
        const T reach = range * p.w + radius;
        return dot(c, c) < reach * reach * h2;
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
