// Was the field good enough? Every source on some targets, each pair by itself and from the caller's arrays, beside the passes; then
// what was written there and everywhere (fmm_check.cuh), for the host to judge.
// In double precision for fields in single precision too, and from positions that nothing was subtracted from: what rounding or
// a point far away made of the passes' positions is found like any other error.
//
// A lane is a target, a warp has 32 of them; the warps of a block read the same sources. No pair is summed for nothing, however few
// the targets are.
#include "fmm_sample.cuh"
using namespace fmm;

constexpr int kSampleWarps = 8;

// How `samples` targets are shared out: groups of 32, up to eight for a block (grid y has the others); warps left over take turns at
// the sources. Every block leaves a row of sums.
struct Shares {
    u32 groups, mine, shares, group, share;
    __device__ Shares(u32 samples) {
        groups = (samples + 31) / 32;
        mine = min(groups, (u32)kSampleWarps);
        shares = kSampleWarps / mine;
        const u32 warp = threadIdx.x >> 5;
        group = blockIdx.y * kSampleWarps + warp % mine;
        share = group < groups ? warp / mine : kNone; // kNone: nothing to do
        if (share >= shares) share = kNone;
    }
};

// Launch: 256 threads, blocks (x, y) that `partial` has rows for; y for the groups of targets, eight each.
template <class Source, class Sum, class Add> __device__ __forceinline__ void sample(const Fmm &f, const Check &c, Add add) {
    constexpr u32 kTile = 32 * kSampleWarps;
    __shared__ Source s_source[kTile];
    __shared__ double s_sum[kSampleWarps][32];
    const u32 n = f.n_in * f.images, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const Shares s(c.samples);
    const Root root = f.state->root;
    const u32 sample = s.group * 32 + lane, at = target_of(f, c, sample);
    if (blockIdx.x == 0 && s.share == 0 && c.slot == 0 && sample < c.samples) c.at[sample] = at;
    const Vec<double> x = in_frame(root, f.tree[1].x, f.tree[1].x_is_f64, at);
    double total[Sum::terms] = {};
    // All rounds have as many sources. The bound is for the compiler, which sums four pairs at a time where it knows it.
    const u32 rounds = (max(n, 1u) - 1) / (gridDim.x * kTile) + 1, each = min((max(n, 1u) - 1) / (gridDim.x * rounds) + 1, kTile), step = gridDim.x * each;
    Source next;
    u32 first = blockIdx.x * each;
    fetch(f, root, first + threadIdx.x, threadIdx.x < each, next);
    for (; first < n; first += step) {
        __syncthreads();
        s_source[threadIdx.x] = next;
        __syncthreads();
        fetch(f, root, first + step + threadIdx.x, threadIdx.x < each, next); // on its way while these are summed
        if (s.share == kNone) continue;
        Sum sum;
        for (int k = 0; k < Sum::terms; k++) sum.sum[k] = 0;
#pragma unroll 4
        for (u32 j = s.share; j < each; j += s.shares) add(sum, x, s_source[j]);
        for (int k = 0; k < Sum::terms; k++) total[k] += sum.sum[k];
    }
    double *row = c.partial + (size_t)blockIdx.x * Sum::terms * s.groups * 32;
    for (int k = 0; k < Sum::terms; k++) {
        if (s.shares > 1) {
            __syncthreads();
            s_sum[warp][lane] = total[k];
            __syncthreads();
            for (u32 i = 1; s.share == 0 && i < s.shares; i++) total[k] += s_sum[warp + i * s.mine][lane];
        }
        if (s.share == 0) row[k * s.groups * 32 + sample] = total[k];
    }
}

// The rows' sums in their order, as fields. power: of the scale in the main field. Launch: 1,024 threads, a block for 32 targets.
constexpr int kRowWarps = 32;
template <class Sum, int MAIN, int REST> __device__ __forceinline__ void add_rows(const Fmm &f, const Check &c, u32 rows, int power) {
    __shared__ double s_sum[kRowWarps][32];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, all = (c.samples + 31) / 32 * 32, sample = blockIdx.x * 32 + lane;
    Sum sum;
#pragma unroll 1
    for (int k = 0; k < Sum::terms; k++) {
        double x = 0;
#pragma unroll 8
        for (u32 r = warp; r < rows; r += kRowWarps) x += c.partial[((size_t)r * Sum::terms + k) * all + sample];
        __syncthreads();
        s_sum[warp][lane] = x;
        __syncthreads();
        if (warp) continue;
        for (int w = 1; w < kRowWarps; w++) x += s_sum[w][lane];
        sum.sum[k] = x;
    }
    if (warp) return;
    double field[12], factor = f.normalization, squares = 0;
    sum.field(field);
    for (int k = 0; k < power; k++) factor *= f.state->root.scale;
    double *exact = c.exact + ((size_t)c.slot * c.samples + sample) * 12;
    const bool is = sample < c.samples;
    // The size of the field or of its gradient, as it is summed, for what asks which corrections count (fmm_near.cuh, fmm_reach).
    for (int k = 0; k < MAIN + REST && is; k++) {
        exact[k] = field[k] * (k < MAIN ? factor : factor * f.state->root.scale);
        if (!REST || k >= MAIN) squares += field[k] * field[k];
    }
    const bool counts = is && squares < INFINITY;
    if (!counts) squares = 0;
    for (int d = 16; d; d >>= 1) squares += __shfl_xor_sync(~0u, squares, d);
    const u32 n = __popc(__ballot_sync(~0u, counts));
    // Of more groups than there is room for, some that are evenly spread.
    const u32 step = (gridDim.x + 7) / 8, group = blockIdx.x / step;
    if (lane || c.certain || blockIdx.x % step) return;
    f.state->exact2[group] = squares; f.state->exact_n[group] = n;
    if (group == 0) f.state->exact_groups = (gridDim.x - 1) / step + 1;
}
#define ADD_ROWS(name, SUM, MAIN, REST, GRADIENT, POWER) \
    extern "C" __global__ void __launch_bounds__(32 * kRowWarps) fmm_add_rows_##name(const __grid_constant__ Fmm f, const __grid_constant__ Check c, u32 rows) { add_rows<SUM<double, GRADIENT>, MAIN, REST>(f, c, rows, POWER); }
ADD_ROWS(particles, ParticleSum, 3, 0, false, 2)
ADD_ROWS(particles_gradient, ParticleSum, 3, 9, true, 2)
ADD_ROWS(segments, SegmentSum, 3, 0, false, 1)
ADD_ROWS(segments_gradient, SegmentSum, 3, 9, true, 1)
ADD_ROWS(charges, ChargeSum, 1, 0, false, 1)
ADD_ROWS(charges_gradient, ChargeSum, 1, 3, true, 1)

// How far corrections of segments count along their lines, by source cell: in cores over `walk_range`, in place of `cell_core`, and
// behind that the cells' products as they are. Inside of the cylinder that a core makes of a segment's line a field is wrong by as much
// as it is, at any distance r: a velocity by at most Γlc/(2 r^3), a gradient by 5 Γl/r^3, `most` times the product. That counts where it
// is more than `share` of the sampled targets' mean. Launch: 256 threads, any number of blocks, behind P2M and the sums at the sampled
// targets.
extern "C" __global__ void __launch_bounds__(256) fmm_reach(const __grid_constant__ Fmm f, double *to, double share, double most) {
    if (f.state->flags & (kCellsOverflow | kDepthOverflow | kOutside)) return;
    double squares = 0, n = 0;
    for (u32 g = 0; g < f.state->exact_groups; g++) { squares += f.state->exact2[g]; n += f.state->exact_n[g]; }
    const double limit = share * sqrt(squares / n);
    const u32 cells = f.state->level_begin[0][kLevels];
    for (u32 c = blockIdx.x * 256 + threadIdx.x; c < cells; c += gridDim.x * 256) {
        const double core = f.cell_core[c], product = f.cell_core[f.tree[0].cell_capacity + c];
        to[c] = limit > 0 ? max(core, cbrt(most * product / limit) / f.walk_range) : core;
        to[f.tree[0].cell_capacity + c] = product;
    }
}

// Sums of `NUMBERS` numbers of all 256 threads, in one order; for the first thread.
template <int NUMBERS> __device__ inline void add_block(double *v) {
    __shared__ double s_part[8][NUMBERS];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll 1
    for (int k = 0; k < NUMBERS; k++) {
        double x = v[k];
        for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
        if (lane == 0) s_part[warp][k] = x;
    }
    __syncthreads();
    if (threadIdx.x) return;
    for (int k = 0; k < NUMBERS; k++) { v[k] = 0; for (int w = 0; w < 8; w++) v[k] += s_part[w][k]; }
}

// Adds the sums of 256 threads; for the first thread.
__device__ inline Squares add_squares(Squares sum) {
    __shared__ Squares s_part[8];
    sum.add_lanes<1>();
    if ((threadIdx.x & 31) == 0) s_part[threadIdx.x >> 5] = sum;
    __syncthreads();
    for (int w = 1; threadIdx.x == 0 && w < 8; w++) sum.add(s_part[w]);
    return sum;
}

// What is compared of one sampled target.
struct Compared {
    double wrong[2], exact[2], lost;
    bool is;
    template <int MAIN, int REST> __device__ void take(const Fmm &f, const Check &c, u32 k) {
        wrong[0] = wrong[1] = exact[0] = exact[1] = lost = 0;
        const size_t at = c.at[k];
#pragma unroll 1
        for (int i = 0; i < MAIN + REST; i++) {
            const void *from = i < MAIN ? f.out_main : f.out_gradient;
            const size_t slot = i < MAIN ? at * MAIN + i : at * REST + i - MAIN;
            const double v = f.out_is_f64 ? ((const double *)from)[slot] : (double)((const float *)from)[slot];
            double e = 0;
            for (u32 kind = 0; kind < c.kinds; kind++) e += c.exact[((size_t)kind * c.samples + k) * 12 + i];
            exact[i >= MAIN] += e * e;
            wrong[i >= MAIN] += (v - e) * (v - e);
        }
        // Where the exact field is no number nothing is asked for.
        is = exact[0] < INFINITY && exact[1] < INFINITY;
        lost = is && !(wrong[0] < INFINITY && wrong[1] < INFINITY);
        if (!is || lost) wrong[0] = wrong[1] = 0;
        if (!is) exact[0] = exact[1] = 0;
    }
};

// The head of the state and what the host judges by, once all kinds of source are in the field: other times the head alone.
// `far`: the targets of the largest far fields, samples of them or none. Launch: 256 threads, up to 64 blocks, behind L2P.
template <int MAIN, int REST> __device__ __forceinline__ void judge(const Fmm &f, const Check &c, const Check &far) {
    const u32 flags = f.state->flags;
    const bool compares = c.kinds && !flags;
    if (compares) {
        Squares sum = Squares::none();
        for (u32 k = blockIdx.x * 256 + threadIdx.x; k < f.state->written; k += gridDim.x * 256) sum.add(c.size[k]);
        sum = add_squares(sum);
        if (threadIdx.x == 0) c.sum[blockIdx.x] = sum;
    }
    if (!is_last(c.ticket, gridDim.x)) return;
    if (threadIdx.x < 12) c.head[threadIdx.x] = ((const u32 *)f.state)[threadIdx.x];
    SampleSums *found = (SampleSums *)(c.head + 12);
    double strongest = fabs(f.normalization) * __longlong_as_double((long long)f.state->strongest) * f.state->root.scale;
    if (f.kind == kParticle) strongest *= f.state->root.scale;
    if (threadIdx.x == 0) found->strongest = strongest;
    if (!compares) return;
    double v[13] = {};
    for (u32 k = threadIdx.x; k < c.samples; k += 256) {
        Compared of;
        of.take<MAIN, REST>(f, c, k);
        const bool certain = k < c.certain;
        for (int i = 0; i < 2; i++) {
            const double w = of.wrong[i];
            if (certain) v[4 + i] += w;
            else { v[i] += w; v[2 + i] += w * w; v[6 + i] += of.exact[i]; }
        }
        v[certain ? 9 : 8] += of.is;
        v[10] += of.lost;
    }
    for (u32 k = threadIdx.x; k < far.samples; k += 256) {
        // Few targets have parts that share one.
        if (k && far.at[k] == far.at[k - 1]) continue;
        Compared of;
        of.take<MAIN, REST>(f, far, k);
        for (int i = 0; i < 2; i++) v[4 + i] += of.wrong[i];
        v[9] += of.is;
        v[10] += of.lost;
    }
    add_block<11>(v);
    if (threadIdx.x) return;
    Squares all = Squares::none();
    for (u32 b = 0; b < gridDim.x; b++) {
        const volatile Squares &of = c.sum[b];
        all.main += of.main; all.rest += of.rest; all.n += of.n; all.bad += of.bad;
    }
    *found = {{v[0], v[1]}, {v[2], v[3]}, {v[4], v[5]}, {v[6], v[7]}, {all.main, all.rest}, (double)all.n, (double)all.bad, v[8], v[9], v[10], strongest};
}
#define VERDICT(name, MAIN, REST) \
    extern "C" __global__ void __launch_bounds__(256) fmm_verdict_##name(const __grid_constant__ Fmm f, const __grid_constant__ Check c, const __grid_constant__ Check far) { judge<MAIN, REST>(f, c, far); }
VERDICT(velocity, 3, 0)
VERDICT(gradient, 3, 9)
VERDICT(potential, 1, 0)
VERDICT(force, 1, 3)

// Of the batches of L2P's warps in a block's part, one of gridDim.x equal ones, those of the largest squares and far fields.
__device__ inline Squares largest_of_part(const Fmm &f, const Check &c) {
    const u32 all = f.state->written, from = (u32)((u64)blockIdx.x * all / gridDim.x), to = (u32)((u64)(blockIdx.x + 1) * all / gridDim.x);
    Squares sum = Squares::none();
    for (u32 k = from + threadIdx.x; k < max(to, from + 1) && k < all; k += 256) sum.add(c.size[k]);
    return add_squares(sum);
}
// The targets of the largest fields, and of the largest far fields. Launch: as many blocks of 256 as there are targets wanted.
extern "C" __global__ void __launch_bounds__(256) fmm_largest(const __grid_constant__ Fmm f, const __grid_constant__ Check c) {
    const Squares sum = largest_of_part(f, c);
    if (threadIdx.x == 0) c.at[blockIdx.x] = sum.at;
}
extern "C" __global__ void __launch_bounds__(256) fmm_largest_far(const __grid_constant__ Fmm f, const __grid_constant__ Check c) {
    const Squares sum = largest_of_part(f, c);
    if (threadIdx.x == 0) c.at[blockIdx.x] = sum.far_at;
}

#define SAMPLE_PARTICLES(name, REG, suffix, GRADIENT)                                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_particles_##name##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = ParticleSum<double, GRADIENT>;                                                                                            \
        sample<Particle<double>, Sum>(f, c, [](Sum &sum, Vec<double> x, const Particle<double> &p) { add_particle<REG, REGULARIZED, GRADIENT>(sum, x, p); }); \
    }
#define SAMPLE_SEGMENTS(name, REG, suffix, GRADIENT)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_segments_##name##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = SegmentSum<double, GRADIENT>;                                                                                             \
        sample<Segment<double>, Sum>(f, c, [step = f.step * f.state->root.scale](Sum &sum, Vec<double> x, const Segment<double> &s) { if (add_segment<REG, REGULARIZED, GRADIENT>(sum, x, s)) add_segment_exactly<REG>(sum, x, s, step); }); \
    }
#define SAMPLE_CHARGES(suffix, GRADIENT)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256, 1) fmm_sample_charges##suffix(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { \
        using Sum = ChargeSum<double, GRADIENT>;                                                                                              \
        sample<Charge<double>, Sum>(f, c, [](Sum &sum, Vec<double> x, const Charge<double> &q) { add_charge<GRADIENT>(sum, x, q); }); \
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
