// Was the field good enough? What the exact sums at sampled targets and the verdict (fmm_check.cu) and L2P share.
#pragma once
#include "common.cuh"
#include "fmm.cuh"

namespace fmm {

constexpr u32 kCertain = 64; // targets of the largest fields, before the sampled ones where a verdict is looked at again

// Squares at targets, of the field and of its gradient, how many targets have numbers and how many have none, and two targets (in the
// caller's array): of the largest square of all, which no number counts as, and of the largest far field, as L2P has it.
struct Squares {
    double main, rest;
    float largest, largest_far;
    u32 at, far_at, n, bad;

    __device__ static Squares none() { return {0, 0, -1, -1, 0, 0, 0, 0}; }
    __device__ void add(const Squares &o) {
        main += o.main; rest += o.rest; n += o.n; bad += o.bad;
        if (o.largest > largest) { largest = o.largest; at = o.at; }
        if (o.largest_far > largest_far) { largest_far = o.largest_far; far_at = o.far_at; }
    }
    // Of all lanes; REST: whether there are gradients.
    template <int REST> __device__ void add_lanes() {
#pragma unroll 1
        for (int d = 16; d; d >>= 1) {
            Squares o;
            o.main = __shfl_xor_sync(~0u, main, d);
            o.rest = REST ? __shfl_xor_sync(~0u, rest, d) : 0;
            o.largest = __shfl_xor_sync(~0u, largest, d); o.at = __shfl_xor_sync(~0u, at, d);
            o.largest_far = __shfl_xor_sync(~0u, largest_far, d); o.far_at = __shfl_xor_sync(~0u, far_at, d);
            o.n = __shfl_xor_sync(~0u, n, d); o.bad = __shfl_xor_sync(~0u, bad, d);
            // Of equals the first in the caller's array, whatever the order.
            if (o.largest == largest && o.at < at) at = o.at;
            if (o.largest_far == largest_far && o.far_at < far_at) far_at = o.far_at;
            add(o);
        }
    }
    // One target's; far: the largest component of its far field.
    template <int MAIN, int REST> __device__ static Squares of(const double *v, float far, u32 at) {
        double main = 0, rest = 0;
#pragma unroll
        for (int k = 0; k < MAIN + REST; k++) (k < MAIN ? main : rest) += v[k] * v[k];
        if (main < INFINITY && rest < INFINITY) return {main, rest, (float)main, far, at, at, 1, 0};
        return {0, 0, INFINITY, far, at, at, 0, 1};
    }
};

// Writes, or adds, a number to the caller's array, and returns what is there then.
template <class T> __device__ inline double store(void *out, u32 is_f64, u32 accumulate, size_t at, T v) {
    double w = is_f64 ? (double)v : (double)(float)v;
    if (accumulate) w = is_f64 ? ((double *)out)[at] + v : (double)(((float *)out)[at] + (float)v);
    if (is_f64) ((double *)out)[at] = w;
    else ((float *)out)[at] = (float)w;
    return w;
}

static_assert(sizeof(Squares) == 40, "SQUARES of backend::cuda::fmm::verdict");

// Of the sampled targets from `first` on, number `k` is in part k of equal parts of the sorted targets, anywhere there.
__device__ inline u32 chosen(u32 k, u32 first, u32 samples, u32 m, u64 seed) {
    const u32 parts = samples - first, part = k - first;
    if (parts >= m) return min(part, m - 1);
    u64 z = seed + (part + 1) * 0x9e3779b97f4a7c15ull; // SplitMix64
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    const u32 low = (u32)((u64)part * m / parts), high = (u32)((u64)(part + 1) * m / parts);
    return low + (u32)((z >> 32) * (high - low) >> 32);
}

} // namespace fmm
