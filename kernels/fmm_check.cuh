// Was the field good enough? What the exact sums at sampled targets and the verdict (fmm_check.cu) and L2P share.
#pragma once
#include "common.cuh"
#include "fmm.cuh"

namespace fmm {

constexpr u32 kCertain = 64; // targets of the largest fields, before the sampled ones where a verdict is looked at again

// Squares at targets, of the field and of its gradient, how many targets have numbers and how many have none, and the target (in the
// caller's array) of the largest square of all, which no number counts as.
struct Squares {
    double main, rest;
    float largest;
    u32 at, n, bad;

    __device__ static Squares none() { return {0, 0, -1, 0, 0, 0}; }
    __device__ void add(const Squares &o) {
        main += o.main; rest += o.rest; n += o.n; bad += o.bad;
        if (o.largest > largest) { largest = o.largest; at = o.at; }
    }
    // Of all lanes; REST: whether there are gradients.
    template <int REST> __device__ void add_lanes() {
#pragma unroll 1
        for (int d = 16; d; d >>= 1) {
            Squares o;
            o.main = __shfl_xor_sync(~0u, main, d);
            o.rest = REST ? __shfl_xor_sync(~0u, rest, d) : 0;
            o.largest = __shfl_xor_sync(~0u, largest, d); o.at = __shfl_xor_sync(~0u, at, d);
            o.n = __shfl_xor_sync(~0u, n, d); o.bad = __shfl_xor_sync(~0u, bad, d);
            // Of equals the first in the caller's array, whatever the order.
            if (o.largest == largest && o.at < at) at = o.at;
            add(o);
        }
    }
    // One target's.
    template <int MAIN, int REST> __device__ static Squares of(const double *v, u32 at) {
        double main = 0, rest = 0;
#pragma unroll
        for (int k = 0; k < MAIN + REST; k++) (k < MAIN ? main : rest) += v[k] * v[k];
        if (main < INFINITY && rest < INFINITY) return {main, rest, (float)main, at, 1, 0};
        return {0, 0, INFINITY, at, 0, 1};
    }
};

// Mirrors backend::cuda::fmm::check::CheckArg.
struct Check {
    double *partial; // [rows][terms][samples] sums of some sources
    double *exact;   // [kinds][samples][12] velocity and gradient, or potential and its gradient
    u32 *at;         // [samples] the sampled targets in the caller's array
    u32 *ticket;     // blocks of the verdict that are done; zero between launches
    u32 *head;       // host memory: the first 48 bytes of State, then SampleSums
    Squares *sum;    // [blocks of the verdict] of `size`
    Squares *size;   // of what L2P wrote, sums of a warp's turn each
    u32 samples;     // a multiple of 32, or all targets
    u32 slot, kinds; // place of this kind of source; how many there are, 0: others are to come
    u32 certain;     // of the samples are in `at` already: kCertain or 0
    u32 seed, pad;
};
static_assert(sizeof(Check) == 80 && sizeof(Squares) == 32, "mirrors of backend::cuda::fmm");

// What the host judges by: of field and gradient, where two. Mirrors backend::cuda::fmm::check::SampleSums.
struct SampleSums {
    double wrong[2], fourth[2]; // sums over the sampled targets of the squared differences and of their squares
    double certain[2];          // of the squared differences at the targets of the largest fields
    double exact[2];            // of the squared exact field at the sampled targets
    double written[2];          // of the squared field over all targets
    double targets, bad;        // how many have numbers, and how many none
    double n, n_certain;        // sampled targets that were compared
    double lost;                // targets without numbers that should have some
    double pad;
};

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
