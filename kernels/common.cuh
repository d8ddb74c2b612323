// Ground floor of the kernels: real numbers, three-vectors, reciprocal roots. Compiled by nvcc, or as C++ by tests/kernels
// (shim.cuh), so that the arithmetic is tested where no GPU is.
#pragma once
#ifdef __CUDACC__
#define WFMM_DEVICE __device__ __forceinline__
#define WFMM_KERNEL extern "C" __global__ void
#else
#include "shim.cuh"
#endif

// Numbers of WFMM_REG_*.
enum Regularization {
    NONE = 0, RANKINE, LAMB_OSEEN, VATISTAS, SCULLY, OFFSET, GAUSS_ERF, EXPONENTIAL, COMPACT, ROSENHEAD, WINCKELMANS, POLYNOMIAL
};

// rows: constants of a precision.
template <class T> struct Real;
template <> struct Real<double> {
    // Added to r² where a zero must not become infinite: no difference above r = 2^-150 box widths.
    static constexpr double tiny = 0x1p-340;
};
template <> struct Real<float> {
    // 2^-83: r^-3 stays finite, no difference above r = 2^-30 box widths, less than a coordinate resolves.
    static constexpr float tiny = 0x1p-83f;
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

template <class T> struct Vec { T x, y, z; };
template <class T> WFMM_DEVICE Vec<T> operator-(Vec<T> a, Vec<T> b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
template <class T> WFMM_DEVICE Vec<T> cross(Vec<T> a, Vec<T> b) {
    return {fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x))};
}
template <class T> WFMM_DEVICE T dot(Vec<T> a, Vec<T> b) { return fma(a.x, b.x, fma(a.y, b.y, a.z * b.z)); }
// |a|² plus the tiny number that keeps its root finite.
template <class T> WFMM_DEVICE T square(Vec<T> a) { return fma(a.x, a.x, fma(a.y, a.y, fma(a.z, a.z, Real<T>::tiny))); }
