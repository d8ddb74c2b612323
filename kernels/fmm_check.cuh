// Was the field good enough? What the exact sums at 32 sampled targets (fmm_check.cu) and the last block of L2P share.
#pragma once
#include "common.cuh"
#include "fmm.cuh"

namespace fmm {

constexpr double kMostSize = 64; // of the mean square of the field over the sample's exact one
constexpr u32 kMostSizes = 1024 + 4;

// Squares at targets, of the field and of its gradient, and how many there are.
struct Squares {
    double main, rest, n;
    __device__ void add(const Squares &o) { main += o.main; rest += o.rest; n += o.n; }
    // Of all lanes; REST: whether there are gradients.
    template <int REST> __device__ void add_lanes() {
        u32 count = (u32)n;
#pragma unroll 1
        for (int d = 16; d; d >>= 1) {
            main += __shfl_xor_sync(~0u, main, d);
            if (REST) rest += __shfl_xor_sync(~0u, rest, d);
            count += __shfl_xor_sync(~0u, count, d);
        }
        n = count;
    }
    // One target's; where they are no numbers it does not count.
    template <int MAIN, int REST> __device__ static Squares of(const double *v) {
        Squares s{0, 0, 1};
#pragma unroll
        for (int k = 0; k < MAIN + REST; k++) (k < MAIN ? s.main : s.rest) += v[k] * v[k];
        return s.main < INFINITY && s.rest < INFINITY ? s : Squares{0, 0, 0};
    }
};

// Mirrors backend::cuda::fmm::check::CheckArg.
struct Check {
    double *partial; // [blocks][terms][32]
    double *exact;   // [kinds][32][12] velocity and gradient, or potential and its gradient
    u32 *ticket;     // [2] blocks that are done, of the sums and of L2P; zero between launches
    u32 *head;       // host memory: the first 48 bytes of State, then two doubles
    Squares *size;   // [kMostSizes] of what L2P wrote, sums of a warp's turn each
    u32 slot, kinds; // place of this kind of source; how many there are, 0: others are to come
};
static_assert(sizeof(Check) == 48, "mirror of backend::cuda::fmm");

// The exact field at the sampled targets, and where they are in the caller's array: a lane each.
template <int F> struct Sample {
    size_t at[32];
    double exact[F][32];
    // MAIN: numbers of the field, before those of the gradient. By one warp.
    template <int MAIN> __device__ void take(const Fmm &f, const Check &c) {
        const u32 lane = threadIdx.x & 31, m = f.tree[1].n, samples = min(m, 32u);
        if (lane >= samples) return;
        at[lane] = spread_over(lane, samples, m);
#pragma unroll 1
        for (u32 kind = 0; kind < c.kinds; kind++)
#pragma unroll
            for (int k = 0; k < F; k++) exact[k][lane] = (kind ? exact[k][lane] : 0) + c.exact[(kind * 32 + lane) * 12 + k];
    }
};

// Relative error from the squares of the differences, of the exact field and of the written one over more targets: where far
// more than the sample's, it may be written wrong, or rest on few close pairs and promise too little elsewhere.
__device__ inline double relative(double wrong, double exact, double n, double written, double targets) {
    if (wrong == 0) return 0;
    if (!(wrong < INFINITY)) return INFINITY;
    return sqrt(wrong / (targets > 0 ? fmin(written * n / targets, kMostSize * exact) : exact));
}

// Differences at the sampled targets and the squares of the exact field there, of a lane.
template <int MAIN, int REST> __device__ __forceinline__ void compare(const Fmm &f, const Sample<MAIN + REST> &s, u32 lane, Squares &wrong, Squares &exact) {
    if (lane >= min(f.tree[1].n, 32u)) return;
    const size_t at = s.at[lane];
    double v[MAIN + REST], e[MAIN + REST];
#pragma unroll
    for (int k = 0; k < MAIN + REST; k++) {
        const void *from = k < MAIN ? f.out_main : f.out_gradient;
        const size_t place = k < MAIN ? at * MAIN + k : at * REST + k - MAIN;
        v[k] = f.out_is_f64 ? __ldcg((const double *)from + place) : (double)__ldcg((const float *)from + place);
        e[k] = s.exact[k][lane];
    }
    exact = Squares::of<MAIN, REST>(e);
    if (exact.n == 0) return;
#pragma unroll
    for (int k = 0; k < MAIN + REST; k++) { const double d = v[k] - e[k]; (k < MAIN ? wrong.main : wrong.rest) += d * d; }
}

// The head of the state to the host, with the errors of field and gradient at the sampled targets: NaN where nothing could
// be compared. word: the thread's of the head; sizes: sums of squares of what was written. By all threads of the last block of L2P.
template <int MAIN, int REST> __device__ __forceinline__ void verdict(const Fmm &f, const Check &c, const Sample<MAIN + REST> &sample, u32 word, bool compared, u32 sizes) {
    __shared__ Squares s_written[8]; // a warp each
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x / 32;
    double *error = (double *)(c.head + 12);
    if (threadIdx.x < 12) c.head[threadIdx.x] = word;
    if (!compared) {
        if (threadIdx.x < 2) error[threadIdx.x] = 0;
        return;
    }
    Squares wrong{0, 0, 0}, exact{0, 0, 0}, sum{0, 0, 0};
    if (warp) {
#pragma unroll 1
        for (u32 k = threadIdx.x - 32; k < sizes; k += blockDim.x - 32) sum.add({__ldcg(&c.size[k].main), __ldcg(&c.size[k].rest), __ldcg(&c.size[k].n)});
        sum.add_lanes<REST>();
        if (lane == 0) s_written[warp] = sum;
    } else {
        compare<MAIN, REST>(f, sample, lane, wrong, exact);
        wrong.add_lanes<REST>();
        exact.add_lanes<REST>();
    }
    __syncthreads();
    if (threadIdx.x > (REST ? 1 : 0)) return;
#pragma unroll 1
    for (u32 w = 1; w < warps; w++) sum.add(s_written[w]);
    const double none = __longlong_as_double(0x7ff8000000000000ll);
    const bool rest = REST && threadIdx.x;
    const double found = relative(rest ? wrong.rest : wrong.main, rest ? exact.rest : exact.main, exact.n, rest ? sum.rest : sum.main, sum.n);
    error[threadIdx.x] = exact.n > 0 ? found : none;
    if (!REST) error[1] = exact.n > 0 ? 0 : none;
}

} // namespace fmm
