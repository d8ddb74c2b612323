// Was the field good enough? Every source on 32 targets spread over the caller's array, each pair by itself and from the
// caller's arrays, beside the passes; the last block of L2P compares the field at those targets (fmm_check.cuh).
// In double precision for fields in single precision too, and from places that nothing was subtracted from: what rounding or
// a point far away made of the passes' places is found like any other error.
//
// A lane is a target, a warp takes up to 32 sources at a time: no pair is summed for nothing, however few the targets are.
#include "fmm_check.cuh"
#include "pair.cuh"
using namespace fmm;

constexpr int kSampleWarps = 8;
__device__ inline Vec<double> placed(const Root &root, const void *x, u32 is_f64, size_t at) {
    return {input(x, is_f64, 3 * at) * root.scale, input(x, is_f64, 3 * at + 1) * root.scale, input(x, is_f64, 3 * at + 2) * root.scale};
}

__device__ inline double core_of(const Fmm &f, const Root &root, size_t i) {
    return (f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, i) : f.default_core) * root.scale;
}

__device__ inline void read(const Fmm &f, const Root &root, size_t i, Particle<double> &p) {
    const u32 is_f64 = f.inputs_are_f64 & 1;
    const Vec<double> x = placed(root, f.tree[0].x, f.tree[0].x_is_f64, i);
    p = {x.x, x.y, x.z, 0, input(f.strength_in, is_f64, 3 * i), input(f.strength_in, is_f64, 3 * i + 1), input(f.strength_in, is_f64, 3 * i + 2), 0};
    particle_core<double>(f.regularization, core_of(f, root, i), p.core, p.cut2);
}
__device__ inline void read(const Fmm &f, const Root &root, size_t i, Segment<double> &s) {
    const u32 is_f64 = f.inputs_are_f64 >> 2 & 1;
    const int *ends = f.connectivity + i * f.ld;
    const Vec<double> a = placed(root, f.points, is_f64, ends[0] - f.index_base), b = placed(root, f.points, is_f64, ends[1] - f.index_base), l = b - a;
    s = {a.x, a.y, a.z, input(f.strength_in, f.inputs_are_f64 & 1, i), b.x, b.y, b.z, 0};
    if (l.x == 0 && l.y == 0 && l.z == 0) { s.circulation = 0; s.x2 = s.x1 + fabs(s.x1) + 1; }
    else s.core = segment_core<double>(f.regularization, core_of(f, root, i), dot(l, l));
}
__device__ inline void read(const Fmm &f, const Root &root, size_t i, Charge<double> &q) {
    const Vec<double> x = placed(root, f.tree[0].x, f.tree[0].x_is_f64, i);
    q = {x.x, x.y, x.z, input(f.strength_in, f.inputs_are_f64 & 1, i)};
}
// Elements that add nothing.
__device__ inline void clear(Particle<double> &p) { p = {0, 0, 0, 0, 0, 0, 0, 0}; }
__device__ inline void clear(Segment<double> &s) { s = {0, 0, 0, 0, 1, 0, 0, 0}; }
__device__ inline void clear(Charge<double> &q) { q = {0, 0, 0, 0}; }

// Source `i`, or none.
template <class Source> __device__ inline void fetch(const Fmm &f, const Root &root, u32 i, bool wanted, Source &s) {
    if (wanted && i < f.n_in) read(f, root, i, s);
    else clear(s);
}

// Adds the blocks' sums in their order. Block: the last one to get here.
template <class Sum> __device__ void add_blocks(const Check &c, double (*sum)[32]) {
    for (int k = threadIdx.x; k < Sum::terms * 32; k += 32 * kSampleWarps) {
        double total = 0;
#pragma unroll 8
        for (u32 b = 0; b < gridDim.x; b++) total += __ldcg(&c.partial[(size_t)b * Sum::terms * 32 + k]);
        sum[k / 32][k % 32] = total;
    }
}

// Launch: 256 threads, any number of blocks that `partial` has room for. power: of the scale in the main field.
template <class Source, class Sum, int MAIN, int REST, class Add>
__device__ __forceinline__ void sample(const Fmm &f, const Check &c, int power, Add add) {
    __shared__ Source s_source[kSampleWarps][32];
    __shared__ double s_sum[kSampleWarps][Sum::terms][32];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n = f.n_in, m = f.tree[1].n, samples = min(m, 32u);
    const Root root = f.state->root;
    const Vec<double> x = placed(root, f.tree[1].x, f.tree[1].x_is_f64, spread_over(min(lane, samples - 1), samples, m));
    double total[Sum::terms] = {};
    // Few sources are shared by all warps: then the sum takes the time of few pairs.
    const u32 warps = gridDim.x * kSampleWarps, each = min((n + warps - 1) / warps, 32u), step = warps * each;
    Source next;
    u32 first = (blockIdx.x * kSampleWarps + warp) * each;
    fetch(f, root, first + lane, lane < each, next);
    for (; first < n; first += step) {
        __syncwarp();
        s_source[warp][lane] = next;
        __syncwarp();
        fetch(f, root, first + step + lane, lane < each, next); // on its way while these are summed
        Sum sum;
        for (int k = 0; k < Sum::terms; k++) sum.sum[k] = 0;
#pragma unroll 4
        for (u32 j = 0; j < each; j++) add(sum, x, s_source[warp][j]);
        for (int k = 0; k < Sum::terms; k++) total[k] += sum.sum[k];
    }
    for (int k = 0; k < Sum::terms; k++) s_sum[warp][k][lane] = total[k];
    __syncthreads();
    for (int k = threadIdx.x; k < Sum::terms * 32; k += 32 * kSampleWarps) {
        double all = 0;
        for (int w = 0; w < kSampleWarps; w++) all += s_sum[w][k / 32][k % 32];
        c.partial[(size_t)blockIdx.x * Sum::terms * 32 + k] = all;
    }
    if (!is_last(c.ticket, gridDim.x)) return;
    add_blocks<Sum>(c, s_sum[0]);
    __syncthreads();
    if (threadIdx.x >= 32) return;
    Sum all;
    for (int k = 0; k < Sum::terms; k++) all.sum[k] = s_sum[0][k][lane];
    double field[12];
    all.field(field);
    double factor = f.normalization;
    for (int k = 0; k < power; k++) factor *= root.scale;
    double *exact = c.exact + (c.slot * 32 + lane) * 12;
    for (int k = 0; k < MAIN + REST; k++) exact[k] = field[k] * (k < MAIN ? factor : factor * root.scale);
}

#define SAMPLE_PARTICLES(name, REG, suffix, GRADIENT)                                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_particles_##name##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = ParticleSum<double, GRADIENT>;                                                                                            \
        sample<Particle<double>, Sum, 3, GRADIENT ? 9 : 0>(f, c, 2, [](Sum &sum, Vec<double> x, const Particle<double> &p) { add_particle<REG, REGULARIZED, GRADIENT>(sum, x, p); }); \
    }
#define SAMPLE_SEGMENTS(name, REG, suffix, GRADIENT)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_segments_##name##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = SegmentSum<double, GRADIENT>;                                                                                             \
        sample<Segment<double>, Sum, 3, GRADIENT ? 9 : 0>(f, c, 1, [](Sum &sum, Vec<double> x, const Segment<double> &s) { add_segment<REG, REGULARIZED, GRADIENT>(sum, x, s); }); \
    }
#define SAMPLE_CHARGES(suffix, GRADIENT)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_charges##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = ChargeSum<double, GRADIENT>;                                                                                              \
        sample<Charge<double>, Sum, 1, GRADIENT ? 3 : 0>(f, c, 1, [](Sum &sum, Vec<double> x, const Charge<double> &q) { add_charge<GRADIENT>(sum, x, q); }); \
    }
#define BOTH(KIND, name, REG) KIND(name, REG, _f64, false) KIND(name, REG, _gradient_f64, true)

BOTH(SAMPLE_PARTICLES, none, NONE)
BOTH(SAMPLE_PARTICLES, gauss_erf, GAUSS_ERF)
BOTH(SAMPLE_PARTICLES, exponential, EXPONENTIAL)
BOTH(SAMPLE_PARTICLES, compact, COMPACT)
BOTH(SAMPLE_PARTICLES, rosenhead, ROSENHEAD)
BOTH(SAMPLE_PARTICLES, winckelmans, WINCKELMANS)
BOTH(SAMPLE_PARTICLES, polynomial, POLYNOMIAL)
BOTH(SAMPLE_SEGMENTS, none, NONE)
BOTH(SAMPLE_SEGMENTS, rankine, RANKINE)
BOTH(SAMPLE_SEGMENTS, lamb_oseen, LAMB_OSEEN)
BOTH(SAMPLE_SEGMENTS, vatistas, VATISTAS)
BOTH(SAMPLE_SEGMENTS, scully, SCULLY)
SAMPLE_CHARGES(_f64, false)
SAMPLE_CHARGES(_gradient_f64, true)

// Adds a field to the caller's. Launch: any.
extern "C" __global__ void fmm_add(void *to, const void *from, u32 is_f64, size_t n) {
    for (size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x; k < n; k += gridDim.x * (size_t)blockDim.x) {
        if (is_f64) ((double *)to)[k] += ((const double *)from)[k];
        else ((float *)to)[k] += ((const float *)from)[k];
    }
}
