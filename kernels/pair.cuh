// One source acting on one target: the innermost functions of the direct sum, the near field and the core correction.
// Enters: a target, an element record. Leaves: an unnormalized contribution added to a sum in registers:
// u = s σ² · sum (particles), s σ · sum (segments), σ the scale of the frame; a gradient has one σ more.
#pragma once
#include "regularization.cuh"

// Which kernel a sum takes, as math::regularization::Part.
enum Part { REGULARIZED = 0, DEFICIT = 1 };

// A vortex particle: position, core number; strength, squared cut. 8 reals, aligned for 16-byte loads.
template <class T> struct alignas(16) Particle { T x, y, z, core, ax, ay, az, cut2; };
// A segment: P1, circulation; P2, core number. In single precision ℓ = P2 - P1 in place of P2: of a short segment far away the
// positions have too few digits to give its direction. A segment without length has circulation 0 and P2 away from P1.
template <class T> struct alignas(16) Segment { T x1, y1, z1, circulation, x2, y2, z2, core; };
template <> struct alignas(16) Segment<float> { float x1, y1, z1, circulation, lx, ly, lz, core; };
// A charge: position and charge.
template <class T> struct alignas(16) Charge { T x, y, z, q; };

// Velocity of particles, and with GRADIENT its derivatives du_i/dx_j = eps_ilj w_l + m_ij: w = Σ a S, m = -3 Σ (a×d)_i d_j W.
// m has no trace, so its last element is not summed.
template <class T, bool GRADIENT> struct ParticleSum;
template <class T> struct ParticleSum<T, false> {
    static constexpr int terms = 3;
    T sum[3];
    // What enters the output: u.
    WFMM_DEVICE void field(T* out) const { for (int c = 0; c < 3; c++) out[c] = sum[c]; }
};
template <class T> struct ParticleSum<T, true> {
    static constexpr int terms = 14;
    T sum[14];
    // u and du_i/dx_j by rows.
    WFMM_DEVICE void field(T* out) const {
        const T* w = sum + 3;
        const T* m = sum + 6;
        for (int c = 0; c < 3; c++) out[c] = sum[c];
        for (int c = 0; c < 8; c++) out[3 + c] = T(-3) * m[c];
        out[11] = T(3) * (m[0] + m[4]);
        out[4] -= w[2]; out[5] += w[1];
        out[6] += w[2]; out[8] -= w[0];
        out[9] -= w[1]; out[10] += w[0];
    }
};

// Returns the squared distance.
template <int REG, int PART, bool GRADIENT, class T>
WFMM_DEVICE T add_particle(ParticleSum<T, GRADIENT>& total, Vec<T> target, const Particle<T>& p) {
    const Vec<T> a = {p.ax, p.ay, p.az}, d = {target.x - p.x, target.y - p.y, target.z - p.z};
    const T r2 = square(d);
    T s, w;
    if constexpr (PART == DEFICIT) particle_deficit<REG, GRADIENT>(r2, p.core, p.cut2, s, w);
    else particle_radial<REG, GRADIENT>(r2, p.core, p.cut2, s, w);
    const Vec<T> c = cross(a, d);
    T* sum = total.sum;
    sum[0] = fma(c.x, s, sum[0]);
    sum[1] = fma(c.y, s, sum[1]);
    sum[2] = fma(c.z, s, sum[2]);
    if constexpr (GRADIENT) {
        sum[3] = fma(a.x, s, sum[3]);
        sum[4] = fma(a.y, s, sum[4]);
        sum[5] = fma(a.z, s, sum[5]);
        const Vec<T> e = {c.x * w, c.y * w, c.z * w};
        T* m = sum + 6;
        m[0] = fma(e.x, d.x, m[0]); m[1] = fma(e.x, d.y, m[1]); m[2] = fma(e.x, d.z, m[2]);
        m[3] = fma(e.y, d.x, m[3]); m[4] = fma(e.y, d.y, m[4]); m[5] = fma(e.y, d.z, m[5]);
        m[6] = fma(e.z, d.x, m[6]); m[7] = fma(e.z, d.y, m[7]);
    }
    return r2;
}

// Velocity of segments, and with GRADIENT du_i/dx_j by rows.
template <class T, bool GRADIENT> struct SegmentSum {
    static constexpr int terms = GRADIENT ? 12 : 3;
    T sum[GRADIENT ? 12 : 3];
    WFMM_DEVICE void field(T* out) const { for (int c = 0; c < terms; c++) out[c] = sum[c]; }
};

// a - b, a sum of two numbers that is exact.
struct Two { double high, low; };
WFMM_DEVICE Two exact_difference(double a, double b) {
    const double s = a - b, t = s - a;
    return {s, (a - (s - t)) - (b + t)};
}
// a b - c d to the last positions of the products' lower halves; zero where the products are equal.
WFMM_DEVICE double difference_of_products(Two a, Two b, Two c, Two d) {
    const double p = times(a.high, b.high), q = times(c.high, d.high);
    const double errors = fma(a.high, b.high, -p) - fma(c.high, d.high, -q);
    const Two pq = exact_difference(p, q);
    const double mixed = (times(a.high, b.low) - times(c.low, d.high)) + (times(a.low, b.high) - times(c.high, d.low));
    return pq.high + (pq.low + errors + mixed);
}
// (p2-p1) × (x-p1) without rounding errors that could be seen, as cross_of_differences of src/math/biot_savart.rs.
WFMM_DEVICE Vec<double> cross_of_differences(Vec<double> p1, Vec<double> p2, Vec<double> x) {
    const Two l[3] = {exact_difference(p2.x, p1.x), exact_difference(p2.y, p1.y), exact_difference(p2.z, p1.z)};
    const Two r[3] = {exact_difference(x.x, p1.x), exact_difference(x.y, p1.y), exact_difference(x.z, p1.z)};
    return {difference_of_products(l[1], r[2], l[2], r[1]), difference_of_products(l[2], r[0], l[0], r[2]), difference_of_products(l[0], r[1], l[1], r[0])};
}

WFMM_DEVICE Vec<double> along(const Segment<double>& s) { return {s.x2 - s.x1, s.y2 - s.y1, s.z2 - s.z1}; }
WFMM_DEVICE Vec<float> along(const Segment<float>& s) { return {s.lx, s.ly, s.lz}; }
// Makes it one that adds nothing.
WFMM_DEVICE void no_segment(Segment<double>& s) { s.circulation = 0; s.x2 = s.x1 + fabs(s.x1) + 1; }
WFMM_DEVICE void no_segment(Segment<float>& s) { s.circulation = 0; s.lx = 1; }

// |C|², without becoming zero.
template <class T> WFMM_DEVICE T cross_square(Vec<T> c) { return fma(c.x, c.x, fma(c.y, c.y, fma(c.z, c.z, Real<T>::tiny_cross))); }

// What all forms share: r1, r2, C = r1×r2 = ℓ×r1 and the squares; whether rounding spoils C, and whether the pair adds anything.
// A pair that lacks digits is left out of the sum and added by `add_segment_exactly`: it is rare, and a branch among the others
// would cost each of them.
template <class T> struct SegmentPair;

// Limits of single precision for a pair of a segment and a target, below which the pair lacks digits: of |C|²/(|r1|²|r2|²), the squared
// sine of the angle between r1 and r2, where the target is beside the segment and where it is beyond an end, and of the squared
// distance of the nearer end over that of the farther. C loses |r|/ρ of its digits beside the segment, and an end of a long segment
// |ℓ|/r: so a pair within the limits keeps the root of each, of the 24 digits of a coordinate or, between coordinates of two floats,
// of the 24 of their difference.
struct DigitLimits { float beside, beyond, nearer_end; };
constexpr DigitLimits kDigitsOfOneFloat = {0x1p-8f, 0x1p-40f, 0x1p-10f}, kDigitsOfTwoFloats = {0x1p-6f, 0x1p-40f, 0x1p-8f};
// Squared distance, in widths of the root cube, below which a coordinate of one float has eleven digits at most.
constexpr float kNearestEnd = 0x1p-26f;

template <> struct SegmentPair<double> {
    Vec<double> r1, r2, c;
    double n1, n2, inner, c2;
    bool lacks_digits, counts;
    // Beside the segment C is a small difference of large products, and so it is far from a short one. Beyond the ends it may be
    // nothing but rounding: then the pair does not count.
    WFMM_DEVICE SegmentPair(Vec<double> x, const Segment<double>& s) : SegmentPair(x, s, 0) {
        c = cross(r1, r2);
        c2 = cross_square(c);
        const int below = high_word(n1 * n2) - high_word(c2);
        const bool between = unsigned(high_word(inner)) > 0x80000000u; // not where inner is -0, at an end
        lacks_digits = below > (between ? 24 : 32) * power;
        counts = between || below <= 100 * power;
    }
    // Whether a pair that lacks digits adds nothing: on the line of a segment beyond its ends, to the last digit. A segment that is
    // short beside its distance only seems to point there.
    WFMM_DEVICE bool is_on_line() const { return !counts && abs(high_word(n1) - high_word(n2)) > power >> 10; }
    // C without rounding errors that could be seen.
    static WFMM_DEVICE SegmentPair exact(Vec<double> x, const Segment<double>& s) { return exact(x, s, {s.x1, s.y1, s.z1}, {s.x2, s.y2, s.z2}, 1); }
    // The same of a part of the segment from a to b, which is `share` of it. Its ends are rounded, and may be off the line by that: whether
    // the target is on the line is decided with the whole segment.
    static WFMM_DEVICE SegmentPair exact(Vec<double> x, const Segment<double>& part, Vec<double> a, Vec<double> b, double share) {
        SegmentPair g(x, part, 0);
        const Vec<double> c = cross_of_differences(a, b, x);
        g.c = {share * c.x, share * c.y, share * c.z};
        g.c2 = cross_square(g.c);
        g.lacks_digits = false;
        // Between the ends the field of a bare segment has no bound: there what may be nothing but rounding is on the line, as
        // rounding_beside of src/math/biot_savart.rs has it.
        const double l2 = square(b - a), unknown = 0x1p-104 * (share * share) * l2 * (l2 + square(x));
        g.counts = roughly_less(2 * Real<double>::tiny_cross, g.c2) & !(is_negative(dot(x - a, x - b)) & roughly_less(g.c2, unknown));
        return g;
    }

private:
    static constexpr int power = 0x100000; // of two, as high words have it
    WFMM_DEVICE SegmentPair(Vec<double> x, const Segment<double>& s, int)
        : r1{x.x - s.x1, x.y - s.y1, x.z - s.z1}, r2{x.x - s.x2, x.y - s.y2, x.z - s.z2}, n1(square(r1)), n2(square(r2)), inner(dot(r1, r2)) {}
};

template <> struct SegmentPair<float> {
    Vec<float> r1, r2, c;
    float n1, n2, inner, c2;
    bool lacks_digits, counts;
    WFMM_DEVICE SegmentPair(Vec<float> x, const Segment<float>& s)
        : r1{x.x - s.x1, x.y - s.y1, x.z - s.z1}, r2(r1 - along(s)), c(cross(along(s), r1)),
          n1(square(r1)), n2(square(r2)), inner(dot(r1, r2)), c2(cross_square(c)) {
        lacks_digits = is_below(kDigitsOfOneFloat, Real<float>::extent * Real<float>::extent * kNearestEnd);
        // Where nobody asks for digits, rounding of C is that of ℓ and r1, also beside P2.
        counts = fma(Real<float>::on_line, n1 * fmax(n1, n2), 2 * Real<float>::tiny_cross) < c2;
    }
    // `|` here and `&` in add_segment, not `||` and `&&`: with a branch the brownout's step is 4 % slower (H200).
    WFMM_DEVICE bool is_below(const DigitLimits& least, float nearest) const {
        return (c2 < n1 * n2 * (is_negative(inner) ? least.beside : least.beyond)) | (fmin(n1, n2) < fmax(nearest, fmax(n1, n2) * least.nearer_end));
    }
};

// |u|/|C| of a segment for the f64 unit: one root for A = |r1||r2|, one for all the rest.
// (|r1|+|r2|) F/(A (A+r1·r2)) with (|r1|+|r2|)² = S, E = A + |r1·r2|, F = c2 X^(-1/2) becomes S V (S P X E²)^(-1/2),
// P = A², V = c2, or E² where r1·r2 < 0 (A + r1·r2 = c2/E there).
WFMM_DEVICE double vatistas_weight(const SegmentPair<double>& g, double core) {
    const double p = g.n1 * g.n2, a = p * rsqrt_of(p), s = fma(2.0, a, g.n1 + g.n2), e = a + fabs(g.inner), e2 = e * e;
    const double x = fma(g.c2, g.c2, core), root = rsqrt_of((s * p) * (x * e2));
    const double v = is_negative(g.inner) ? e2 : g.c2;
    const double weight = (s * v) * root;
    return weight;
}

// The same with F - 1 = -core/X/(1 + F), X = c2² + core.
WFMM_DEVICE double vatistas_deficit(const SegmentPair<double>& g, double core) {
    const double p = g.n1 * g.n2, a = p * rsqrt_of(p), s = fma(2.0, a, g.n1 + g.n2), e = a + fabs(g.inner);
    const double i = rsqrt_of(fma(g.c2, g.c2, core)), below = e * fma(g.c2, g.c2 * i, g.c2);
    const double v = is_negative(g.inner) ? e * e : g.c2;
    const double weight = -(s * v) * (core * i * i) * rsqrt_of((s * p) * (below * below));
    return weight;
}

// (|r1|+|r2|) F/D, for a deficit with F - 1. In directions: 1/|r| from the hardware, cos = r1·r2/A; D cancels nowhere.
template <int REG, int PART, class T> WFMM_DEVICE T segment_weight(const SegmentPair<T>& g, T core) {
    if constexpr (REG == VATISTAS && sizeof(T) == 8) return PART == DEFICIT ? vatistas_deficit(g, core) : vatistas_weight(g, core);
    else {
        const T i1 = rsqrt_of(g.n1), i2 = rsqrt_of(g.n2), i12 = i1 * i2;
        const bool between = is_negative(g.inner);
        T weight;
        if constexpr (REG == OFFSET) {
            const T a = (g.n1 * g.n2) * i12, e = a + fabs(g.inner);
            const T d = between ? g.c2 * rcp_of(e) : e;
            weight = (i1 + i2) * a * rcp_of(fma(a, d, core));
            if constexpr (PART == DEFICIT) weight *= -core * rcp_of(a * d);
        } else {
            const T e = fma(fabs(g.inner), i12, T(1));
            const T above = between ? e : g.c2 * i12, below = between ? i12 : e;
            T factor, slope;
            if constexpr (PART == DEFICIT) segment_deficits<REG>(g.c2, core, factor, slope);
            else factor = segment_factor<REG>(g.c2, core);
            weight = (i1 + i2) * (above * rcp_of(below)) * factor;
        }
        return weight;
    }
}

template <int REG, int PART, class T> WFMM_DEVICE void add_segment_velocity(T* sum, const SegmentPair<T>& g, const Segment<T>& s, bool counts) {
    const T weight = segment_weight<REG, PART>(g, s.core), k = s.circulation * (counts ? weight : T(0));
    sum[0] = fma(k, g.c.x, sum[0]);
    sum[1] = fma(k, g.c.y, sum[1]);
    sum[2] = fma(k, g.c.z, sum[2]);
}

// Velocity and gradient: u_i = K C_i, du_i/dx_j = K (ℓ×)_ij + C_i (B ℓ_j + A (C×ℓ)_j), the slopes along and across the line.
template <int REG, int PART, class T> WFMM_DEVICE void add_segment_gradient(T* sum, const SegmentPair<T>& g, const Segment<T>& s, bool counts) {
    const Vec<T> l = along(s);
    const T l2 = square(l), il2 = rcp_of(l2), i1 = rsqrt_of(g.n1), i2 = rsqrt_of(g.n2), i12 = i1 * i2;
    const T z1 = dot(g.r1, l), z2 = dot(g.r2, l), i11 = i1 * i1, i22 = i2 * i2;
    const bool between = is_negative(g.inner);
    // h = (|r1|+|r2|)/D, b = slope of h along ℓ, m = -ρ ∂h/∂ρ - 2h: its second form is for points far along the line, where the
    // terms of the first cancel; near an end those of the second do, by r/ℓ.
    const T e = fma(fabs(g.inner), i12, T(1));
    const T above = between ? e : i12, below = between ? i12 * g.c2 : e;
    const T h = (i1 + i2) * above * rcp_of(below);
    const T b = -(z1 + z2) * il2 * i12 * i12 * rcp_of(i1 + i2) * (i11 + i12 + i22);
    const T m = fmin(fabs(z1), fabs(z2)) < l2 ? fma(z1 * i1, i11, -(z2 * i2 * i22)) * il2 : T(0.5) * (fma(z1 + z2, b, fma(i1, i11, i2 * i22)));
    T value, along, across;
    if constexpr (REG == OFFSET) {
        const T a = (g.n1 * g.n2) * i12, d = a * (between ? g.c2 * rcp_of(a * e) : a * e), i = rcp_of(d + s.core);
        const T phi = d * i, missing = -s.core * i, extra = s.core * i * i;
        const T factor = PART == DEFICIT ? missing : phi, square = PART == DEFICIT ? fma(missing, phi, missing) : phi * phi;
        value = factor * h;
        along = fma(extra * il2, fma(z1, i1, z2 * i2), square * b);
        across = fma(extra * il2, i1 + i2, -square * fma(T(2), h, m) * rcp_of(g.c2));
    } else {
        T f, hh;
        if constexpr (PART == DEFICIT) segment_deficits<REG>(g.c2, s.core, f, hh);
        else segment_factors<REG>(g.c2, s.core, f, hh);
        value = f * g.c2 * h;
        along = f * g.c2 * b;
        across = -fma(h, hh, f * m);
    }
    const T k = counts ? s.circulation : T(0);
    // On the line beyond the ends the gradient of an expansion is Γ h (ℓ×): the core takes that away.
    value *= PART == DEFICIT && !between ? s.circulation : k;
    const Vec<T> cl = cross(g.c, l);
    const Vec<T> slope = {k * fma(along, l.x, across * cl.x), k * fma(along, l.y, across * cl.y), k * fma(along, l.z, across * cl.z)};
    const Vec<T> c = g.c, w = {value * l.x, value * l.y, value * l.z};
    sum[0] = fma(value, c.x, sum[0]);
    sum[1] = fma(value, c.y, sum[1]);
    sum[2] = fma(value, c.z, sum[2]);
    sum[3] = fma(c.x, slope.x, sum[3]); sum[4] += fma(c.x, slope.y, -w.z); sum[5] += fma(c.x, slope.z, w.y);
    sum[6] += fma(c.y, slope.x, w.z); sum[7] = fma(c.y, slope.y, sum[7]); sum[8] += fma(c.y, slope.z, -w.x);
    sum[9] += fma(c.z, slope.x, -w.y); sum[10] += fma(c.z, slope.y, w.x); sum[11] = fma(c.z, slope.z, sum[11]);
}

template <int REG, int PART, bool GRADIENT, class T>
WFMM_DEVICE void add_pair(SegmentSum<T, GRADIENT>& total, const SegmentPair<T>& g, const Segment<T>& s, bool counts) {
    if constexpr (GRADIENT) add_segment_gradient<REG, PART>(total.sum, g, s, counts);
    else add_segment_velocity<REG, PART>(total.sum, g, s, counts);
}

// True where the pair was left out for want of digits. Deficits are summed of segments that are far: they have the digits.
template <int REG, int PART, bool GRADIENT, class T> WFMM_DEVICE bool add_segment(SegmentSum<T, GRADIENT>& total, Vec<T> x, const Segment<T>& s) {
    if constexpr (PART == DEFICIT && REG == NONE) return false;
    const SegmentPair<T> g(x, s);
    if constexpr (PART == DEFICIT) add_pair<REG, PART>(total, g, s, g.counts);
    else add_pair<REG, PART>(total, g, s, ((sizeof(T) == 8) | g.counts) & !g.lacks_digits);
    return PART == REGULARIZED && g.lacks_digits;
}
// The pair that was left out, from better numbers; in double precision, since its lengths and what it adds have any size.
template <int REG, bool GRADIENT>
WFMM_DEVICE void add_segment_exactly(SegmentSum<double, GRADIENT>& total, const SegmentPair<double>& exact, const Segment<double>& s) {
    add_pair<REG, REGULARIZED>(total, exact, s, exact.counts);
}
// The same of a record whose numbers are good enough.
template <int REG, bool GRADIENT> WFMM_DEVICE void add_segment_exactly(SegmentSum<double, GRADIENT>& total, Vec<double> x, const Segment<double>& s) {
    if (!SegmentPair<double>(x, s).is_on_line()) add_segment_exactly<REG>(total, SegmentPair<double>::exact(x, s), s);
}
template <int REG, bool GRADIENT>
WFMM_DEVICE void add_segment_exactly(SegmentSum<float, GRADIENT>& total, const SegmentPair<double>& exact, const Segment<float>& s) {
    const Vec<double> l = exact.r1 - exact.r2;
    SegmentSum<double, GRADIENT> pair{};
    add_segment_exactly<REG>(pair, exact, Segment<double>{0, 0, 0, s.circulation, l.x, l.y, l.z, s.core});
    for (int c = 0; c < SegmentSum<float, GRADIENT>::terms; c++) total.sum[c] += float(pair.sum[c]);
}

// Potential of charges, and with GRADIENT its gradient: φ = Σ q/r, -Σ q d/r³.
template <class T, bool GRADIENT> struct ChargeSum {
    static constexpr int terms = GRADIENT ? 4 : 1;
    T sum[GRADIENT ? 4 : 1];
    WFMM_DEVICE void field(T* out) const {
        out[0] = sum[0];
        if constexpr (GRADIENT) for (int c = 1; c < 4; c++) out[c] = -sum[c];
    }
};

// Returns the squared distance.
template <bool GRADIENT, class T> WFMM_DEVICE T add_charge(ChargeSum<T, GRADIENT>& total, Vec<T> target, const Charge<T>& charge) {
    const Vec<T> d = {target.x - charge.x, target.y - charge.y, target.z - charge.z};
    const T r2 = square(d);
    T ri = rsqrt_of(r2);
    if (!roughly_less(Real<T>::tiny, r2)) ri = 0;
    const T p = charge.q * ri;
    total.sum[0] += p;
    if constexpr (GRADIENT) {
        const T w = p * (ri * ri);
        total.sum[1] = fma(w, d.x, total.sum[1]);
        total.sum[2] = fma(w, d.y, total.sum[2]);
        total.sum[3] = fma(w, d.z, total.sum[3]);
    }
    return r2;
}
