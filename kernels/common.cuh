// Ground floor of the kernels: real numbers, three-vectors, reciprocal roots. Compiled by nvcc, or as C++ by tests/kernels
// (shim.cuh), so that the arithmetic is tested where no GPU is.
#pragma once
#ifdef __CUDACC__
#define WFMM_DEVICE __device__ __forceinline__
#define WFMM_KERNEL extern "C" __global__ void
#else
#include "shim.cuh"
#endif
#include "fits.cuh"

// Numbers of WFMM_REG_*.
enum Regularization {
    NONE = 0, RANKINE, LAMB_OSEEN, VATISTAS, SCULLY, OFFSET, GAUSS_ERF, EXPONENTIAL, COMPACT, ROSENHEAD, WINCKELMANS, POLYNOMIAL
};

// Lengths reach the kernels scaled by a power of two (gather.cu), so that the largest extent of the domain is this. In f32 that puts
// the powers of lengths that occur in the range of exponents: r^8 of a segment as long as the domain and of its core (Vatistas), r^-5
// down to `tiny`.
template <class T> struct Real;
template <> struct Real<double> {
    static constexpr double extent = 1.0;
    // Added to squares where a zero must not become infinite; no difference above r = 2^-73 extents.
    static constexpr double tiny = 0x1p-200;
    // Added to |C|², which is zero on the line of a segment.
    static constexpr double tiny_cross = 0x1p-400;
};
template <> struct Real<float> {
    static constexpr float extent = 16384.0f;
    static constexpr float tiny = 0x1p-48f;  // 2^-26 extents
    // |C|² of a segment, relative to the squared lengths that it was computed from, that rounding alone can give on its line.
    static constexpr float on_line = 0x1p-46f;
    static constexpr float tiny_cross = 0x1p-62f; // its square is not zero either
};

#ifdef __CUDACC__
WFMM_DEVICE float seed_rsqrt(float x) { float y; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
WFMM_DEVICE double seed_rsqrt(double x) { double y; asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x)); return y; }
WFMM_DEVICE float seed_rcp(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
WFMM_DEVICE double seed_rcp(double x) { double y; asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x)); return y; }
WFMM_DEVICE float exp2_approx(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
WFMM_DEVICE int high_word(double x) { return __double2hiint(x); }
WFMM_DEVICE double from_words(int high, int low) { return __hiloint2double(high, low); }
WFMM_DEVICE int low_word(double x) { return __double2loint(x); }
#endif

// 1/sqrt(x): in f64 the hardware's 22-bit seed and one Halley step (error of the seed cubed), in f32 the hardware's value.
WFMM_DEVICE float rsqrt_of(float x) { return seed_rsqrt(x); }
WFMM_DEVICE double rsqrt_of(double x) {
    const double y = seed_rsqrt(x);
    const double e = fma(-x * y, y, 1.0);
    return fma(y * e, fma(0.375, e, 0.5), y);
}

// 1/x: seed and one step of third order in f64.
WFMM_DEVICE float rcp_of(float x) { return seed_rcp(x); }
WFMM_DEVICE double rcp_of(double x) {
    const double y = seed_rcp(x);
    double e = fma(-x, y, 1.0);
    e = fma(e, e, e);
    return fma(y, e, y);
}

// True where x is zero or subnormal; x >= 0. An integer compare: it costs the FP64 unit nothing.
WFMM_DEVICE bool is_zero(double x) { return high_word(x) < 0x00100000; }
WFMM_DEVICE bool is_zero(float x) { return x == 0.0f; }

// x < y for x, y >= 0, up to the low 32 bits: enough for a choice between two forms that agree there.
WFMM_DEVICE bool roughly_less(double x, double y) { return high_word(x) < high_word(y); }
WFMM_DEVICE bool roughly_less(float x, float y) { return x < y; }

WFMM_DEVICE bool is_negative(double x) { return high_word(x) < 0; }
WFMM_DEVICE bool is_negative(float x) { return x < 0.0f; }

// A product that no compiler joins with a sum.
#ifdef __CUDACC__
WFMM_DEVICE double times(double a, double b) { return __dmul_rn(a, b); }
WFMM_DEVICE float times(float a, float b) { return __fmul_rn(a, b); }
#else
WFMM_DEVICE double times(double a, double b) { return a * b; }
WFMM_DEVICE float times(float a, float b) { return a * b; }
#endif

template <class T> struct Vec { T x, y, z; };
template <class T> WFMM_DEVICE Vec<T> operator-(Vec<T> a, Vec<T> b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
template <class T> WFMM_DEVICE Vec<T> cross(Vec<T> a, Vec<T> b) {
    return {fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x))};
}
template <class T> WFMM_DEVICE T dot(Vec<T> a, Vec<T> b) { return fma(a.x, b.x, fma(a.y, b.y, a.z * b.z)); }
// |a|² plus the tiny number that keeps its root finite.
template <class T> WFMM_DEVICE T square(Vec<T> a) { return fma(a.x, a.x, fma(a.y, a.y, fma(a.z, a.z, Real<T>::tiny))); }

// c0 + x (c1 + x (c2 + …)).
template <class T> WFMM_DEVICE T poly(T, T c) { return c; }
template <class T, class... C> WFMM_DEVICE T poly(T x, T c, C... rest) { return fma(x, poly(x, rest...), c); }

// exp(-t), 0 <= t <= 700: 2^n exp(x), |x| <= ln(2)/2. Absolute error 1e-16, which is all that 1 - exp(-t) … needs.
WFMM_DEVICE double exp_minus(double t) {
    const double shift = 0x1.8p52;
    const double n = fma(t, -1.4426950408889634074, shift);
    const double x = fma(n - shift, -0.69314718055994530942, -t);
    const double y = poly(x, FIT_EXP_F64);
    return from_words(high_word(y) + low_word(n) * 0x100000, low_word(y));
}
WFMM_DEVICE float exp_minus(float t) { return exp2_approx(-1.44269504f * t); }

// 1 - exp(-y) without cancellation, and exp(-y).
WFMM_DEVICE double one_minus_exp(double y, double& e) {
    e = exp_minus(y);
    return y < 0.5 ? y * poly(y, FIT_EXPM1_F64) : 1.0 - e;
}
WFMM_DEVICE float one_minus_exp(float y, float& e) {
    e = exp_minus(y);
    return y < 0.5f ? y * poly(y, FIT_EXPM1_F32) : 1.0f - e;
}

// Number `k` of `samples` among `n`, shifted by a share of the golden ratio: no lattice of the host's is met in phase.
WFMM_DEVICE long long spread_over(int k, int samples, long long n) {
    const double shift = k * 0.6180339887498949;
    const long long at = (long long)((k + (shift - floor(shift))) * n / samples);
    return at < n ? at : n - 1;
}
