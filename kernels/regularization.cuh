// How a core softens the singular kernels; numbers and formulas as src/math/regularization.rs, the oracle.
// Every element carries two numbers made from its core radius when it is gathered, so that a pair costs no division.
#pragma once
#include "common.cuh"

// ---- Particles: u = a × d S(r); the gradient needs W = -S'/(3r). ------------------------------------------------------

// Beyond so many cores the kernel is singular to the last bit; negative: never.
template <class T> WFMM_DEVICE T particle_cut(int reg) {
    const bool f64 = sizeof(T) == 8;
    switch (reg) {
    case GAUSS_ERF: return f64 ? 9.3 : 6.6;
    case EXPONENTIAL: return f64 ? 3.45 : 2.7;
    case COMPACT: return f64 ? 500.0 : 18.0;
    case POLYNOMIAL: return 1.0;
    default: return -1;
    }
}

// The two numbers of a core c >= 0. `cut2` is the squared distance beyond which the plain kernel serves.
template <class T> WFMM_DEVICE void particle_core(int reg, T c, T& core, T& cut2) {
    const T cut = particle_cut<T>(reg) * c;
    cut2 = cut * cut;
    const T c2 = c * c;
    switch (reg) {
    case GAUSS_ERF: core = c > 0 ? 1 / c : 0; break;
    case EXPONENTIAL: core = c > 0 ? 1 / (c2 * c) : 0; break;
    case COMPACT: core = c2 * c2 * c2; break;
    case POLYNOMIAL: core = c > 0 ? 1 / c2 : 0; break;
    case ROSENHEAD: case WINCKELMANS: core = c2; cut2 = c2; break;
    default: core = 0; cut2 = 0; break;
    }
}

// What the Gauss-erf core leaves of the singular kernel at 1 <= q <= cut is 1 - exp(-q²/2) tail(q); inside g/q³, t = q²/2.
WFMM_DEVICE double gauss_erf_tail(double q) { return fma(q, 0.79788456080286535588, poly(rcp_of(q + 3.0), FIT_ERFCX_F64)); }
WFMM_DEVICE float gauss_erf_tail(float q) { return poly(q, FIT_GAUSS_OUTER_F32); }
WFMM_DEVICE double gauss_erf_inner(double t) { return poly(t, FIT_GAUSS_INNER_F64); }
WFMM_DEVICE float gauss_erf_inner(float t) { return poly(t, FIT_GAUSS_INNER_F32); }

// S and W where the core acts. r2 includes Real::tiny; ri = 1/sqrt(r2).
template <int REG, bool GRADIENT, class T> WFMM_DEVICE void core_radial(T r2, T ri, T core, T cut2, T& s, T& w) {
    const T ri2 = ri * ri;
    if constexpr (REG == GAUSS_ERF) {
        const T q = r2 * ri * core, t = T(0.5) * q * q, e = exp_minus(t), core3 = core * core * core;
        if (q < T(1)) s = gauss_erf_inner(t) * core3;
        else s = fma(-e, gauss_erf_tail(q), T(1)) * (ri2 * ri);
        // P(5/2,t) = P(3/2,t) - sqrt(2/pi) q³ exp(-t)/3
        if constexpr (GRADIENT) w = fma(T(-0.26596152026762178529) * e, core3, s) * ri2;
    } else if constexpr (REG == EXPONENTIAL) {
        T e;
        const T ri3 = ri2 * ri, y = r2 * r2 * ri * core, f = one_minus_exp(y, e);
        s = f * ri3;
        if constexpr (GRADIENT) w = fma(-y, e, f) * ri3 * ri2;
    } else if constexpr (REG == COMPACT) {
        s = rsqrt_of(fma(r2 * r2, r2, core));
        if constexpr (GRADIENT) w = r2 * r2 * (s * s * s);
    } else if constexpr (REG == POLYNOMIAL) {
        s = ri * core;
        if constexpr (GRADIENT) w = s * ri2 * T(1.0 / 3.0);
    }
}

// Whether the core acts. At the edge of a polynomial core the gradient jumps, so that every digit decides; other cores end where they
// leave nothing.
template <int REG, class T> WFMM_DEVICE bool is_in_core(T r2, T cut2) {
    if constexpr (REG == POLYNOMIAL) return r2 <= cut2 && cut2 > 0;
    else return roughly_less(r2, cut2);
}

// S and W of the kernel with its core; r2 includes Real::tiny. At r = 0 both are zero if GRADIENT, else finite (and u is zero
// because d is).
template <int REG, bool GRADIENT, class T> WFMM_DEVICE void particle_radial(T r2, T core, T cut2, T& s, T& w) {
    if constexpr (REG == ROSENHEAD || REG == WINCKELMANS) {
        const T x = r2 + core;
        T i = rsqrt_of(x);
        if (GRADIENT && r2 <= Real<T>::tiny) i = 0;
        const T i2 = i * i, i3 = i2 * i;
        if constexpr (REG == ROSENHEAD) {
            s = i3;
            if constexpr (GRADIENT) w = i3 * i2;
        } else {
            const T i5 = i3 * i2;
            s = fma(T(1.5), core, x) * i5;
            if constexpr (GRADIENT) w = fma(T(2.5), core, x) * (i5 * i2);
        }
    } else {
        T ri = rsqrt_of(r2);
        if (GRADIENT && !roughly_less(Real<T>::tiny, r2)) ri = 0;
        if (REG != NONE && is_in_core<REG>(r2, cut2)) {
            core_radial<REG, GRADIENT>(r2, ri, core, cut2, s, w);
            if (GRADIENT && !roughly_less(Real<T>::tiny, r2)) s = 0;
        } else {
            const T ri2 = ri * ri;
            s = ri2 * ri;
            if constexpr (GRADIENT) w = s * ri2;
        }
    }
}

// The same minus the singular kernel, what expansions leave out: without the difference of two large numbers. G is the factor
// of S, G - 1 often from (G² - 1)/(G + 1).
template <int REG, bool GRADIENT, class T> WFMM_DEVICE void particle_deficit(T r2, T core, T cut2, T& s, T& w) {
    s = w = 0;
    const bool bounded = REG == GAUSS_ERF || REG == EXPONENTIAL || REG == COMPACT || REG == POLYNOMIAL;
    if (REG == NONE || (bounded && !is_in_core<REG>(r2, cut2)) || (GRADIENT && !roughly_less(Real<T>::tiny, r2))) return;
    const T ri = rsqrt_of(r2), ri2 = ri * ri, ri3 = ri2 * ri, ri5 = ri3 * ri2;
    if constexpr (REG == GAUSS_ERF) {
        const T q = r2 * ri * core, t = T(0.5) * q * q, e = exp_minus(t), core3 = core * core * core;
        if (q < T(1)) s = fma(gauss_erf_inner(t), core3, -ri3);
        else s = -e * gauss_erf_tail(q) * ri3;
        if constexpr (GRADIENT) w = fma(T(-0.26596152026762178529) * e, core3, s) * ri2;
    } else if constexpr (REG == EXPONENTIAL) {
        const T y = r2 * r2 * ri * core, e = exp_minus(y);
        s = -e * ri3;
        if constexpr (GRADIENT) w = -fma(y, e, e) * ri5;
    } else if constexpr (REG == COMPACT) {
        const T i = rsqrt_of(fma(r2 * r2, r2, core)), g = r2 * r2 * ri * i, missing = -core * i * i * rcp_of(T(1) + g);
        s = missing * ri3;
        if constexpr (GRADIENT) w = missing * fma(g, g, g + T(1)) * ri5;
    } else if constexpr (REG == ROSENHEAD) {
        const T i = rsqrt_of(r2 + core), g = r2 * ri * i, missing = -core * i * i * rcp_of(T(1) + g);
        s = missing * poly(g, T(1), T(1), T(1)) * ri3;
        if constexpr (GRADIENT) w = missing * poly(g, T(1), T(1), T(1), T(1), T(1)) * ri5;
    } else if constexpr (REG == WINCKELMANS) {
        // With e = c²/(r²+c²): G² = (1-e)³(1 + 3e/2)², and W has (1-e)⁵(1 + 5e/2)².
        const T i = rsqrt_of(r2 + core), e = core * i * i, g = r2 * ri * i, g3 = g * g * g;
        s = e * e * poly(e, T(-3.75), T(1.25), T(3.75), T(-2.25)) * rcp_of(fma(g3, fma(T(1.5), e, T(1)), T(1))) * ri3;
        if constexpr (GRADIENT)
            w = e * e * poly(e, T(-8.75), T(8.75), T(17.5), T(-38.5), T(26.25), T(-6.25)) * rcp_of(fma(g3 * g * g, fma(T(2.5), e, T(1)), T(1))) * ri5;
    } else {
        core_radial<REG, GRADIENT>(r2, ri, core, cut2, s, w);
        s -= ri3;
        if constexpr (GRADIENT) w -= ri5;
    }
}

// ---- Segments: F(ρ), ρ² = c2/ℓ², c2 = |r1×r2|²; the gradient needs H = 2F - ρ F'. ---------------------------------------

// The number that a core of radius c gives a segment of squared length l2 > 0.
template <class T> WFMM_DEVICE T segment_core(int reg, T c, T l2) {
    const T k = c * c * l2;
    switch (reg) {
    case RANKINE: case SCULLY: case OFFSET: return k;
    case VATISTAS: return k * k;
    case LAMB_OSEEN: return k > 0 ? T(1.25643) / k : T(0);
    default: return 0;
    }
}

// F/c2. c2 includes Real::tiny.
template <int REG, class T> WFMM_DEVICE T segment_factor(T c2, T core) {
    if constexpr (REG == VATISTAS) return rsqrt_of(fma(c2, c2, core));
    else if constexpr (REG == SCULLY) return rcp_of(c2 + core);
    else if constexpr (REG == RANKINE) return rcp_of(c2 < core ? core : c2);
    else if constexpr (REG == LAMB_OSEEN) {
        // y > cut or no core: F = 1.
        const T y = c2 * core;
        T f = 1, e;
        if (core > 0 && y < (sizeof(T) == 8 ? T(38) : T(17))) f = one_minus_exp(y, e);
        return f * rcp_of(c2);
    } else return rcp_of(c2);
}

// F/c2 and H/c2.
template <int REG, class T> WFMM_DEVICE void segment_factors(T c2, T core, T& f, T& h) {
    if constexpr (REG == VATISTAS) {
        f = rsqrt_of(fma(c2, c2, core));
        h = T(2) * f * (f * c2) * (f * c2);
    } else if constexpr (REG == SCULLY) {
        f = rcp_of(c2 + core);
        h = T(2) * f * (f * c2);
    } else if constexpr (REG == RANKINE) {
        f = rcp_of(c2 < core ? core : c2);
        h = c2 < core ? T(0) : T(2) * f;
    } else if constexpr (REG == LAMB_OSEEN) {
        const T y = c2 * core, i = rcp_of(c2);
        f = 1;
        h = 2;
        if (core > 0 && y < (sizeof(T) == 8 ? T(44) : T(21))) {
            T e;
            f = one_minus_exp(y, e);
            h = T(2) * fma(-y, e, f);
        }
        f *= i;
        h *= i;
    } else {
        f = rcp_of(c2);
        h = T(2) * f;
    }
}

// (F-1)/c2 and (H-2)/c2 of cores that act by the distance to the line, without the difference of two large numbers.
template <int REG, class T> WFMM_DEVICE void segment_deficits(T c2, T core, T& f, T& h) {
    if constexpr (REG == VATISTAS) {
        const T i = rsqrt_of(fma(c2, c2, core)), g = c2 * i;
        f = -(core * i) * i * rcp_of(fma(c2, g, c2));
        h = T(2) * f * fma(g, g, g + T(1));
    } else if constexpr (REG == SCULLY) {
        const T i = rcp_of(c2 + core);
        f = -(core * i) * rcp_of(c2);
        h = T(2) * fma(f, c2 * i, f);
    } else if constexpr (REG == RANKINE) {
        const T i = rcp_of(c2);
        f = c2 < core ? rcp_of(core) - i : T(0);
        h = c2 < core ? T(-2) * i : T(0);
    } else if constexpr (REG == LAMB_OSEEN) {
        const T y = c2 * core;
        f = h = 0;
        if (core > 0 && y < (sizeof(T) == 8 ? T(44) : T(21))) {
            f = -exp_minus(y) * rcp_of(c2);
            h = T(2) * fma(y, f, f);
        }
    } else f = h = 0;
}
