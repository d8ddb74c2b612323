// Was the field good enough? Every source on 32 targets spread over the caller's array, each pair by itself and from the
// caller's arrays, beside the passes; the last block of L2P compares the field at those targets (fmm_check.cuh).
//
// A lane is a target, a warp takes 32 sources at a time: no pair is summed for nothing, however few the targets are.
#include "direct.cuh"
#include "fmm_check.cuh"
using namespace fmm;

constexpr int kSampleWarps = 8;
template <class T> __device__ inline Vec<T> placed(const Root &root, const void *x, u32 is_f64, size_t at) {
    const size_t k = 3 * at;
    return {(T)((input(x, is_f64, k) - root.origin[0]) * root.scale), (T)((input(x, is_f64, k + 1) - root.origin[1]) * root.scale),
            (T)((input(x, is_f64, k + 2) - root.origin[2]) * root.scale)};
}

__device__ inline double core_of(const Fmm &f, const Root &root, size_t i) {
    return (f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, i) : f.default_core) * root.scale;
}

template <class T> __device__ inline void read(const Fmm &f, const Root &root, size_t i, Particle<T> &p) {
    const u32 is_f64 = f.inputs_are_f64 & 1;
    const Vec<T> x = placed<T>(root, f.tree[0].x, f.tree[0].x_is_f64, i);
    p = {x.x, x.y, x.z, 0, (T)input(f.strength_in, is_f64, 3 * i), (T)input(f.strength_in, is_f64, 3 * i + 1), (T)input(f.strength_in, is_f64, 3 * i + 2), 0};
    particle_core<T>(f.regularization, (T)core_of(f, root, i), p.core, p.cut2);
}
template <class T> __device__ inline void read(const Fmm &f, const Root &root, size_t i, Segment<T> &s) {
    const u32 is_f64 = f.inputs_are_f64 >> 2 & 1;
    const int *ends = f.connectivity + i * f.ld;
    const Vec<T> a = placed<T>(root, f.points, is_f64, ends[0] - f.index_base), b = placed<T>(root, f.points, is_f64, ends[1] - f.index_base);
    const Vec<T> l = b - a;
    s = {a.x, a.y, a.z, (T)input(f.strength_in, f.inputs_are_f64 & 1, i), b.x, b.y, b.z, 0};
    if (l.x == 0 && l.y == 0 && l.z == 0) { s.circulation = 0; s.x2 = s.x1 + 1; }
    else s.core = segment_core<T>(f.regularization, (T)core_of(f, root, i), dot(l, l));
}
template <class T> __device__ inline void read(const Fmm &f, const Root &root, size_t i, Charge<T> &q) {
    const Vec<T> x = placed<T>(root, f.tree[0].x, f.tree[0].x_is_f64, i);
    q = {x.x, x.y, x.z, (T)input(f.strength_in, f.inputs_are_f64 & 1, i)};
}
// Elements that add nothing.
template <class T> __device__ inline void clear(Particle<T> &p) { p = {0, 0, 0, 0, 0, 0, 0, 0}; }
template <class T> __device__ inline void clear(Segment<T> &s) { s = {0, 0, 0, 0, 1, 0, 0, 0}; }
template <class T> __device__ inline void clear(Charge<T> &q) { q = {0, 0, 0, 0}; }

// Source `i`, or none.
template <class Source> __device__ inline void fetch(const Fmm &f, const Root &root, u32 i, Source &s) {
    if (i < f.n_in) read(f, root, i, s);
    else clear(s);
}

// Adds the blocks' sums in their order. Block: the last one to get here.
template <class Sum> __device__ void add_blocks(const Check &c, double (*sum)[32]) {
    for (int k = threadIdx.x; k < Sum::terms * 32; k += 32 * kSampleWarps) {
        double total = 0;
        for (u32 b = 0; b < gridDim.x; b++) total += __ldcg(&c.partial[(size_t)b * Sum::terms * 32 + k]);
        sum[k / 32][k % 32] = total;
    }
}

// Launch: 256 threads, any number of blocks that `partial` has room for. power: of the scale in the main field.
template <class T, class Source, class Sum, int MAIN, int REST, class Add>
__device__ __forceinline__ void sample(const Fmm &f, const Check &c, int power, Add add) {
    __shared__ Source s_source[kSampleWarps][32];
    __shared__ double s_sum[kSampleWarps][Sum::terms][32];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n = f.n_in, m = f.tree[1].n, samples = min(m, 32u);
    const Root root = f.state->root;
    const Vec<T> x = placed<T>(root, f.tree[1].x, f.tree[1].x_is_f64, sampled(min(lane, samples - 1), samples, m));
    Total<T, Sum::terms> total;
    total.clear();
    const u32 step = gridDim.x * kSampleWarps * 32;
    Source next;
    u32 first = (blockIdx.x * kSampleWarps + warp) * 32;
    fetch(f, root, first + lane, next);
    for (; first < n; first += step) {
        __syncwarp();
        s_source[warp][lane] = next;
        __syncwarp();
        fetch(f, root, first + step + lane, next); // on its way while these are summed
        Sum sum;
        for (int k = 0; k < Sum::terms; k++) sum.sum[k] = 0;
#pragma unroll 4
        for (int j = 0; j < 32; j++) add(sum, x, s_source[warp][j]);
        total.add(sum.sum);
    }
    for (int k = 0; k < Sum::terms; k++) s_sum[warp][k][lane] = total.high[k];
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
    for (int k = 0; k < Sum::terms; k++) all.sum[k] = (T)s_sum[0][k][lane];
    T field[12];
    all.field(field);
    double factor = f.normalization;
    for (int k = 0; k < power; k++) factor *= root.scale;
    double *exact = c.exact + (c.slot * 32 + lane) * 12;
    for (int k = 0; k < MAIN + REST; k++) exact[k] = field[k] * (k < MAIN ? factor : factor * root.scale);
}

#define SAMPLE_PARTICLES(name, REG, T, suffix, GRADIENT)                                                                                      \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_particles_##name##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = ParticleSum<T, GRADIENT>;                                                                                                 \
        sample<T, Particle<T>, Sum, 3, GRADIENT ? 9 : 0>(f, c, 2, [](Sum &sum, Vec<T> x, const Particle<T> &p) { add_particle<REG, REGULARIZED, GRADIENT>(sum, x, p); }); \
    }
#define SAMPLE_SEGMENTS(name, REG, T, suffix, GRADIENT)                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_segments_##name##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = SegmentSum<T, GRADIENT>;                                                                                                  \
        sample<T, Segment<T>, Sum, 3, GRADIENT ? 9 : 0>(f, c, 1, [](Sum &sum, Vec<T> x, const Segment<T> &s) { add_segment<REG, REGULARIZED, GRADIENT>(sum, x, s); }); \
    }
#define SAMPLE_CHARGES(T, suffix, GRADIENT)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_charges##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = ChargeSum<T, GRADIENT>;                                                                                                   \
        sample<T, Charge<T>, Sum, 1, GRADIENT ? 3 : 0>(f, c, 1, [](Sum &sum, Vec<T> x, const Charge<T> &q) { add_charge<GRADIENT>(sum, x, q); }); \
    }
#define FOUR(KIND, name, REG) KIND(name, REG, float, _f32, false) KIND(name, REG, double, _f64, false) KIND(name, REG, float, _gradient_f32, true) KIND(name, REG, double, _gradient_f64, true)

FOUR(SAMPLE_PARTICLES, none, NONE)
FOUR(SAMPLE_PARTICLES, gauss_erf, GAUSS_ERF)
FOUR(SAMPLE_PARTICLES, exponential, EXPONENTIAL)
FOUR(SAMPLE_PARTICLES, compact, COMPACT)
FOUR(SAMPLE_PARTICLES, rosenhead, ROSENHEAD)
FOUR(SAMPLE_PARTICLES, winckelmans, WINCKELMANS)
FOUR(SAMPLE_PARTICLES, polynomial, POLYNOMIAL)
FOUR(SAMPLE_SEGMENTS, none, NONE)
FOUR(SAMPLE_SEGMENTS, rankine, RANKINE)
FOUR(SAMPLE_SEGMENTS, lamb_oseen, LAMB_OSEEN)
FOUR(SAMPLE_SEGMENTS, vatistas, VATISTAS)
FOUR(SAMPLE_SEGMENTS, scully, SCULLY)
SAMPLE_CHARGES(float, _f32, false)
SAMPLE_CHARGES(double, _f64, false)
SAMPLE_CHARGES(float, _gradient_f32, true)
SAMPLE_CHARGES(double, _gradient_f64, true)

// Adds a field to the caller's. Launch: any.
extern "C" __global__ void fmm_add(void *to, const void *from, u32 is_f64, size_t n) {
    for (size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x; k < n; k += gridDim.x * (size_t)blockDim.x) {
        if (is_f64) ((double *)to)[k] += ((const double *)from)[k];
        else ((float *)to)[k] += ((const float *)from)[k];
    }
}
