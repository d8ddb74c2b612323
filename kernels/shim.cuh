// Just enough of CUDA C++ for a host compiler to take the kernels' headers: a "device" function is an ordinary inline one.
#pragma once
#include <cmath>
#include <cstring>
#include <cstdint>
#define WFMM_DEVICE inline
using std::fma; using std::fmin; using std::fmax; using std::sqrt; using std::exp; using std::fabs;

inline int high_word(double x) { std::int64_t bits; std::memcpy(&bits, &x, 8); return int(bits >> 32); }
inline int low_word(double x) { std::int64_t bits; std::memcpy(&bits, &x, 8); return int(bits); }
inline double from_words(int high, int low) {
    const std::int64_t bits = (std::int64_t(high) << 32) | std::uint32_t(low);
    double x; std::memcpy(&x, &bits, 8); return x;
}
// The hardware's seeds: right to about 22 bits in f64, flushing subnormals; the low word of an f64 seed is zero.
inline float seed_rsqrt(float x) { return x < 0x1p-126f ? INFINITY : 1.0f / std::sqrt(x); }
inline float seed_rcp(float x) { return std::fabs(x) < 0x1p-126f ? INFINITY : 1.0f / x; }
inline double seed_rsqrt(double x) { return x < 0x1p-1022 ? INFINITY : from_words(high_word(1.0 / std::sqrt(x)), 0); }
inline double seed_rcp(double x) { return std::fabs(x) < 0x1p-1022 ? INFINITY : from_words(high_word(1.0 / x), 0); }
inline float exp2_approx(float x) { return std::exp2(x); }
