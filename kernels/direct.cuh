// The direct sum: every source on every target.
// Enters: element records padded to whole tiles with null elements, targets in the frame. Leaves: one partial sum a
// target and split of the sources; `finish` adds them in a fixed order, so the bits do not depend on timing.
#pragma once
#include "positions.cuh"

// Sources of a tile: staged in shared memory, read by all threads of a block.
constexpr int TILE = 128;

// Two-number sum: a tile's f32 sum is small beside the total, whose lost digits are kept.
template <class T, int N> struct Total {
    T high[N], low[N];
    WFMM_DEVICE void clear() { for (int c = 0; c < N; c++) high[c] = low[c] = 0; }
    WFMM_DEVICE void add(const T* tile) {
        for (int c = 0; c < N; c++) {
            const T y = tile[c] - low[c], t = high[c] + y;
            low[c] = (t - high[c]) - y;
            high[c] = t;
        }
    }
};
template <int N> struct Total<double, N> {
    double high[N];
    WFMM_DEVICE void clear() { for (int c = 0; c < N; c++) high[c] = 0; }
    WFMM_DEVICE void add(const double* tile) { for (int c = 0; c < N; c++) high[c] += tile[c]; }
};

#if defined(__CUDACC__) || defined(WFMM_EMULATED)
// What adds the pairs that `add` left out: none are.
struct NoRest { static constexpr bool any = false; };

// Segments: in double precision from the record, in single from the caller's arrays.
template <int REG> struct SegmentRest {
    static constexpr bool any = true;
    const CallerPositions& positions;
    template <class Sum> WFMM_DEVICE void operator()(Sum& sum, Vec<double> x, const Segment<double>& s, int, int) const {
        add_segment_exactly<REG>(sum, x, s, positions.step * positions.frame->scale);
    }
    template <class Sum> WFMM_DEVICE void operator()(Sum& sum, Vec<float>, const Segment<float>& s, int source, int target) const {
        if (s.circulation != 0) add_segment_exactly<REG>(sum, exact(positions, source, target), s); // else it may only fill a tile
    }
};

// Grid: x over targets (TILE * PER_THREAD a block), y over splits of the tiles. Block TILE.
// partial: [splits][Sum::terms][n_targets]; where the frame says needs_double, nothing of use, which `finish` leaves alone: to ask here cost 2 %.
template <class T, class Source, class Sum, int PER_THREAD, class Add, class Rest = NoRest>
__device__ __forceinline__ void direct(const Source* sources, int tiles, const T* target, int n_targets, T* partial, Add add, Rest rest = {}) {
    __shared__ Source s_tile[TILE];
    Vec<T> x[PER_THREAD];
    Total<T, Sum::terms> total[PER_THREAD];
    const int first = blockIdx.x * TILE * PER_THREAD + threadIdx.x;
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int i = min(first + k * TILE, n_targets - 1);
        x[k] = {target[3 * i], target[3 * i + 1], target[3 * i + 2]};
        total[k].clear();
    }
    const int begin = int((long long)tiles * blockIdx.y / gridDim.y), end = int((long long)tiles * (blockIdx.y + 1) / gridDim.y);
    for (int tile = begin; tile < end; tile++) {
        __syncthreads();
        s_tile[threadIdx.x] = sources[tile * TILE + threadIdx.x];
        __syncthreads();
        Sum sum[PER_THREAD];
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++)
            for (int c = 0; c < Sum::terms; c++) sum[k].sum[c] = 0;
        for (int from = 0; from < TILE; from += 32) {
            unsigned left[PER_THREAD] = {}; // pairs that were left out for want of digits, one bit each
#pragma unroll 4
            for (int j = 0; j < 32; j++) {
                const Source s = s_tile[from + j];
#pragma unroll
                for (int k = 0; k < PER_THREAD; k++) {
                    const bool lacks_digits = add(sum[k], x[k], s);
                    if constexpr (Rest::any) left[k] = left[k] << 1 | lacks_digits;
                }
            }
            if constexpr (Rest::any)
#pragma unroll
                for (int k = 0; k < PER_THREAD; k++)
                    for (; left[k]; left[k] &= left[k] - 1) {
                        const int j = from + 32 - __ffs(left[k]);
                        rest(sum[k], x[k], s_tile[j], tile * TILE + j, min(first + k * TILE, n_targets - 1));
                    }
        }
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) total[k].add(sum[k].sum);
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int i = first + k * TILE;
        if (i < n_targets)
            for (int c = 0; c < Sum::terms; c++) partial[((long long)blockIdx.y * Sum::terms + c) * n_targets + i] = total[k].high[c];
    }
}

#define PARTICLES(NAME, REG, T, GRADIENT, SUFFIX, PER_THREAD)                                                                          \
    extern "C" __global__ void __launch_bounds__(TILE) particles_##NAME##SUFFIX(const Particle<T>* sources, int tiles, const T* target, \
                                                                               int n_targets, T* partial) {                            \
        using Sum = ParticleSum<T, GRADIENT>;                                                                                           \
        direct<T, Particle<T>, Sum, PER_THREAD>(sources, tiles, target, n_targets, partial, [](Sum& sum, Vec<T> x, const Particle<T>& s) { \
            add_particle<REG, REGULARIZED, GRADIENT>(sum, x, s);                                                                        \
            return false;                                                                                                               \
        });                                                                                                                             \
    }
// But for Hopper the compiler spills a register for one more block otherwise.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SEGMENT_BOUNDS __launch_bounds__(TILE, 4)
#else
#define SEGMENT_BOUNDS __launch_bounds__(TILE)
#endif
#define SEGMENTS(NAME, REG, T, GRADIENT, SUFFIX, PER_THREAD)                                                                           \
    extern "C" __global__ void SEGMENT_BOUNDS segments_##NAME##SUFFIX(const Segment<T>* sources, int tiles, const T* target,           \
                                                                              int n_targets, T* partial, const CallerPositions positions) {        \
        using Sum = SegmentSum<T, GRADIENT>;                                                                                            \
        const auto add = [](Sum& sum, Vec<T> x, const Segment<T>& s) { return add_segment<REG, REGULARIZED, GRADIENT>(sum, x, s); };    \
        direct<T, Segment<T>, Sum, PER_THREAD>(sources, tiles, target, n_targets, partial, add, SegmentRest<REG>{positions});              \
    }
#define CHARGES(T, GRADIENT, SUFFIX, PER_THREAD)                                                                                       \
    extern "C" __global__ void __launch_bounds__(TILE) charges##SUFFIX(const Charge<T>* sources, int tiles, const T* target,           \
                                                                      int n_targets, T* partial) {                                     \
        using Sum = ChargeSum<T, GRADIENT>;                                                                                             \
        direct<T, Charge<T>, Sum, PER_THREAD>(sources, tiles, target, n_targets, partial, [](Sum& sum, Vec<T> x, const Charge<T>& s) {  \
            add_charge<GRADIENT>(sum, x, s);                                                                                            \
            return false;                                                                                                               \
        });                                                                                                                             \
    }

// Adds the splits, turns sums into the field and brings it to the caller's units and order.
// main: [n_targets][1 or 3], gradient: [n_targets][3 or 9]; factor: normalization and powers of the scale.
template <class T, class Out, class Sum, int MAIN>
__device__ __forceinline__ void finish(const T* partial, int splits, int n_targets, const unsigned* order, const Frame* frame, double normalization,
                                       int power, int add, Out* main, Out* gradient) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_targets) return;
    const bool needs_double = sizeof(T) == 4 && frame->needs_double;
    Sum sum;
    for (int c = 0; c < Sum::terms; c++) {
        double total = 0;
        for (int split = 0; split < splits; split++) total += partial[((long long)split * Sum::terms + c) * n_targets + i];
        sum.sum[c] = T(total);
    }
    if (needs_double) return;
    T field[12];
    sum.field(field);
    double factor = normalization;
    for (int k = 0; k < power; k++) factor *= frame->scale;
    const long long k = order ? order[i] : i;
    for (int c = 0; c < MAIN; c++) {
        const Out value = Out(field[c] * factor);
        main[MAIN * k + c] = add ? main[MAIN * k + c] + value : value;
    }
    if (!gradient) return;
    constexpr int SLOPES = 3 * MAIN;
    factor *= frame->scale;
    for (int c = 0; c < SLOPES; c++) {
        const Out value = Out(field[MAIN + c] * factor);
        gradient[SLOPES * k + c] = add ? gradient[SLOPES * k + c] + value : value;
    }
}

#define FINISH(NAME, SUM, MAIN, T, OUT, GRADIENT, SUFFIX)                                                                              \
    extern "C" __global__ void finish_##NAME##SUFFIX(const T* partial, int splits, int n_targets, const unsigned* order,               \
                                                     const Frame* frame, double normalization, int power, int add, OUT* main,          \
                                                     OUT* gradient) {                                                                  \
        finish<T, OUT, SUM<T, GRADIENT>, MAIN>(partial, splits, n_targets, order, frame, normalization, power, add, main, gradient);   \
    }

#define ALL_FINISH(NAME, SUM, MAIN, T)                   \
    FINISH(NAME, SUM, MAIN, T, float, false, _to_f32)    \
    FINISH(NAME, SUM, MAIN, T, float, true, _grad_to_f32) \
    FINISH(NAME, SUM, MAIN, T, double, false, _to_f64)   \
    FINISH(NAME, SUM, MAIN, T, double, true, _grad_to_f64)

#define ALL_PARTICLES(NAME, REG, T, P, PG) PARTICLES(NAME, REG, T, false, , P) PARTICLES(NAME, REG, T, true, _grad, PG)
#define ALL_SEGMENTS(NAME, REG, T, P, PG) SEGMENTS(NAME, REG, T, false, , P) SEGMENTS(NAME, REG, T, true, _grad, PG)
#define ALL_DIRECT(T)                            \
    ALL_PARTICLES(none, NONE, T, 2, 2)           \
    ALL_PARTICLES(gauss_erf, GAUSS_ERF, T, 2, 2) \
    ALL_PARTICLES(exponential, EXPONENTIAL, T, 2, 1) \
    ALL_PARTICLES(compact, COMPACT, T, 2, 1)     \
    ALL_PARTICLES(rosenhead, ROSENHEAD, T, 2, 1) \
    ALL_PARTICLES(winckelmans, WINCKELMANS, T, 2, 1) \
    ALL_PARTICLES(polynomial, POLYNOMIAL, T, 2, 1) \
    ALL_SEGMENTS(none, NONE, T, 2, 1)            \
    ALL_SEGMENTS(rankine, RANKINE, T, 2, 1)      \
    ALL_SEGMENTS(lamb_oseen, LAMB_OSEEN, T, 2, 1) \
    ALL_SEGMENTS(vatistas, VATISTAS, T, 2, 1)    \
    ALL_SEGMENTS(scully, SCULLY, T, 2, 1)        \
    ALL_SEGMENTS(offset, OFFSET, T, 2, 1)        \
    CHARGES(T, false, , 2)                       \
    CHARGES(T, true, _grad, 2)                   \
    ALL_FINISH(particles, ParticleSum, 3, T)     \
    ALL_FINISH(segments, SegmentSum, 3, T)       \
    ALL_FINISH(charges, ChargeSum, 1, T)
#endif
