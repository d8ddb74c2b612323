// The pairs of fmm_pair.cuh between positions of two floats a coordinate, as the tree has them: the difference of two positions has a
// float's digits however near they are, so that a pair far from the middle of its leaf loses none. For tolerances below 1e-4.
#pragma once
#include "fmm_pair.cuh"

namespace fmm {

// A target's position.
struct Position { Vec<float> high, low; };
template <class Record> WFMM_DEVICE Vec<float> apart(const Position &x, const Record &r) {
    return {(x.high.x - r.x) + (x.low.x - r.low_x), (x.high.y - r.y) + (x.low.y - r.low_y), (x.high.z - r.z) + (x.low.z - r.low_z)};
}
// Pairs this near are computed again from the caller's positions: 2^-24 widths of the root cube, in which the last digit of a position is 2^-49.
WFMM_DEVICE float near_square(const Position &) { return Real<float>::extent * Real<float>::extent * 0x1p-48f; }
// Relative width of the layer around a Rankine core whose side a float does not tell: 64 roundings of the squared distance.
constexpr float kCoreEdge = 0x1p-18f;

// As sources are gathered: point, strength, low digits of the point.
template <class Element> struct alignas(16) TwoFloats : Element { float low_x, low_y, low_z, pad; };

template <bool GRADIENT, bool CORE> struct ParticleF32x2 : ParticlePair<float, GRADIENT, CORE> {
    typedef ParticlePair<float, GRADIENT, CORE> Single;
    typedef fmm::Position Position;
    typedef TwoFloats<Particle<float>> Record;
    typedef typename Single::Sum Sum;
    static constexpr bool kTwoFloats = true;
    static constexpr unsigned kMostTargets = GRADIENT ? 2 : 4;
    static WFMM_DEVICE Record make(int reg, const Vec4<float> &p, const Vec4<float> &q, const Vec4<float> &low) {
        return {Single::make(reg, p, q), low.x, low.y, low.z, 0};
    }
    // The particle at the origin, and where the target is then.
    static WFMM_DEVICE Particle<float> at_origin(const Record &r) { return {0, 0, 0, r.core, r.ax, r.ay, r.az, r.cut2}; }
    template <int FORM, int REG> static WFMM_DEVICE float add(Sum &sum, const Position &x, const Record &r) {
        return Single::template add<FORM, REG>(sum, apart(x, r), at_origin(r));
    }
    template <int FORM, int REG> static WFMM_DEVICE void correct(Sum &sum, const Position &x, const Record &r, Vec<double> d, float core) {
        Single::template correct<FORM, REG>(sum, apart(x, r), at_origin(r), d, core);
    }
};

template <bool GRADIENT> struct SegmentF32x2 : SegmentOnTarget<float, GRADIENT> {
    typedef SegmentOnTarget<float, GRADIENT> Single;
    typedef fmm::Position Position;
    struct alignas(16) Record { float x, y, z, circulation, lx, ly, lz, core, low_x, low_y, low_z, pad; };
    typedef typename Single::Sum Sum;
    static constexpr bool kTwoFloats = true;
    // a - b + low as two numbers.
    static WFMM_DEVICE float begin(float a, float b, float &low) {
        const float s = a - b, t = s - a;
        low += (a - (s - t)) - (b + t);
        return s;
    }
    static WFMM_DEVICE Record make(int reg, const Vec4<float> &p, const Vec4<float> &q, const Vec4<float> &low) {
        const Segment<float> s = Single::make(reg, p, q);
        Record r{0, 0, 0, s.circulation, s.lx, s.ly, s.lz, s.core, low.x, low.y, low.z, 0};
        r.x = begin(p.x, q.x, r.low_x); r.y = begin(p.y, q.y, r.low_y); r.z = begin(p.z, q.z, r.low_z);
        return r;
    }
    static WFMM_DEVICE Segment<float> at_origin(const Record &r) { return {0, 0, 0, r.circulation, r.lx, r.ly, r.lz, r.core}; }
    // True where the pair was left out, for want of digits: C loses r/ρ of them beside the segment, r2 those that |ℓ| has more.
    template <int FORM, int REG> static WFMM_DEVICE bool add(Sum &sum, const Position &x, const Record &r) {
        const Segment<float> s = at_origin(r);
        if constexpr (FORM == kDeficit) return Single::template add<FORM, REG>(sum, apart(x, r), s);
        const SegmentPair<float> g(apart(x, r), s);
        bool lacks_digits = g.is_below(kDigitsOfTwoFloats, near_square(x));
        // Rankine's gradient jumps at the core, and a float does not tell on which side of it the target is.
        if constexpr (FORM == kRegular && REG == RANKINE && GRADIENT) lacks_digits |= fabs(g.c2 - s.core) < s.core * kCoreEdge;
        add_pair<FORM == kSingular ? NONE : REG, REGULARIZED>(sum, g, s, g.counts & !lacks_digits);
        return lacks_digits;
    }
    template <int FORM, int REG> static WFMM_DEVICE void add_exactly(Sum &sum, const Record &r, const SegmentPair<double> &g) {
        Single::template add_exactly<FORM, REG>(sum, at_origin(r), g);
    }
};

} // namespace fmm
