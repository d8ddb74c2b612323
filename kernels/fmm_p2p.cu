// Near field and core correction: everything that sums element by element. A block a target leaf; where leaves
// are few, several: without cores for parts of its sources, with cores for parts of its targets.
//
// Near sources (the leaves beside the target leaf, and the leaves beside its ancestors) are summed with their regularized
// kernel; where the core no longer matters at the distance of the box around the targets, with the singular one. Sources
// beyond, which the far field took as singular, are visited only where their core still matters (a walk down the source tree
// by distance and largest core) and add the deficit, regularized minus singular.
#include "fmm_near.cuh"
#include "fmm_plain.cuh"
using namespace fmm;

// Takes up the group that a leaf belongs to, the largest cell above with few enough targets, if that is one.
template <class T, class P> __device__ void find_group(Near<T, P> &n, u32 cell, int level) {
    const Fmm &f = n.f; auto &s = n.s;
    const Tree &t = f.tree[1];
    const int lane = threadIdx.x;
    if (lane == 0) s.group = kNone;
    s.climb(t, cell, level);
    if (f.smooth_power && lane < 32) {
        __syncwarp();
        const u32 c = s.ancestor[min(lane, level)];
        const u32 small_enough = __ballot_sync(~0u, lane <= level && t.end[c] - t.begin[c] <= f.smooth_targets);
        const u32 group = small_enough ? s.ancestor[31 - __clz(small_enough)] : kNone;
        if (lane == 0 && small_enough && f.smooth_count[group] != kNone) { s.group = group; s.smooth = group_of<T>(f.smooth_box + 8 * (size_t)group); }
    }
    __syncthreads();
}

// Equal parts of at most 64 targets, one more where that keeps a twentieth more threads busy.
template <class T, class P> __device__ u32 rounds_of(const Near<T, P> &, u32 n) {
    const auto busy = [=](u32 rounds) { const u32 size = (n + rounds - 1) / rounds; return size * (kThreads / ((size + P::kCoreTargets - 1) / P::kCoreTargets)); };
    const u32 least = (n + kMaxTargets - 1) / kMaxTargets;
    return n > kMaxTargets && 20 * busy(least + 1) > 21 * busy(least) ? least + 1 : least;
}

// Sums all that is near at the targets of a leaf, or, where leaves are SPLIT, of part `part` of `parts` of them.
template <bool SPLIT, class T, class P> __device__ void sum_leaf(Near<T, P> &n, u32 cell, u32 part, u32 parts) {
    const Fmm &f = n.f; auto &s = n.s;
    const Tree &t = f.tree[1];
    const int level = info_level(t.info[cell]);
    __syncthreads();
    find_group(n, cell, level);
    int at[3];
    unmorton(t.cell_key[cell], at);
    u32 begin = t.begin[cell], end = t.end[cell];
    if ((double)(end - begin) * f.tree[0].n >= Ranges::kLeastDense) {
        s.collect_near(f, level);
        if (s.too_dense(f, end - begin)) return;
    }
    if constexpr (SPLIT) {
        const u32 size = max((end - begin + parts - 1) / parts, 4u);
        begin = min(begin + part * size, end);
        end = min(begin + size, end);
        if (begin == end) return;
    }
    const u32 rounds = rounds_of(n, end - begin), size = (end - begin + rounds - 1) / rounds;
    for (u32 from = begin; from < end; from += size) {
        n.first = from;
        n.begin_at(from);
        n.share_out(min(end - from, size), [&](int i) { return n.target(from + i); });
        n.measure(from, from + n.targets);
        n.near_field(level);
        if (s.group != kNone) n.correct_listed(level, at);
        else n.template core_correction<kFarSources>(level, at);
        const bool add = s.group != kNone;
        n.reduce([&](int i, int k, T x) {
            T *to = (T *)f.field + (size_t)(from + i) * P::kFields + k;
            *to = add ? *to + x : x;
        });
        if constexpr (P::kCorrects) n.correct_close(level);
        n.count();
    }
}

// Hands the target leaves out, one at a time.
template <class L> __device__ void each_leaf(const Fmm &f, u32 &work, L &&leaf) {
    const u32 cells = f.state->level_begin[1][kLevels];
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) work = atomicAdd(&f.state->work_ticket[1], 1u);
        __syncthreads();
        const u32 cell = work;
        if (cell >= cells) return;
        if (info_leaf(f.tree[1].info[cell])) leaf(cell);
    }
}

// The same where leaves may be few: each in `parts` parts, a block each where the blocks are enough.
template <class L> __device__ void each_part(const Fmm &f, u32 &work, u32 &kept, u32 parts, L &&leaf) {
    const u32 cells = f.state->level_begin[1][kLevels];
    const bool once = cells * (u64)parts <= gridDim.x;
    if (once && blockIdx.x >= cells * parts) return;
    if (threadIdx.x == 0) kept = parts;
    do {
        __syncthreads();
        if (threadIdx.x == 0) work = once ? blockIdx.x : atomicAdd(&f.state->work_ticket[1], 1u);
        __syncthreads();
        const u32 part = work / cells, cell = work - part * cells;
        if (part >= kept) return;
        if (info_leaf(f.tree[1].info[cell])) leaf(cell, part, kept);
    } while (cells * (u64)kept > gridDim.x);
}

template <bool SPLIT, class T, class P> __device__ void p2p(const Fmm &f) {
    extern __shared__ __align__(16) unsigned char memory[];
    if constexpr (P::kHasCore) {
        __shared__ Shared<T> s;
        Near<T, P> near(f, s, (typename P::Record *)memory);
        if constexpr (SPLIT) {
            __shared__ u32 parts;
            each_part(f, s.work, parts, max(fill() / leaves_of(f), 1u), [&](u32 cell, u32 part, u32 parts) { sum_leaf<true>(near, cell, part, parts); });
        } else each_leaf(f, s.work, [&](u32 cell) { sum_leaf<false>(near, cell, 0, 1); });
    } else {
        __shared__ typename Plain<T, P>::Shared s;
        Plain<T, P> plain{f, s, (typename P::Record *)memory};
        if (f.state->level_begin[1][kLevels] <= kThreads) {
            for (u32 share = blockIdx.x; plain.take(share, gridDim.x); share += gridDim.x) plain.sum_leaf(s.work, s.part, s.parts, 0);
            return;
        }
        // Parts of one length in all leaves, but for those with more sources than so many parts hold.
        if (threadIdx.x == 0) s.usual = kBeside * count_of(f.tree[0]) / leaves_of(f);
        each_part(f, s.work, s.parts, plain.parts(f), [&](u32 cell, u32 part, u32 parts) { plain.sum_leaf(cell, part, parts, s.usual); });
    }
}

// Launch: 128 threads, persistent blocks that take tickets; dynamic shared memory: two queues of 256 sources (f64 32 KB, f32
// 16 KB); without cores two tiles of 256. `split`: sources with cores where leaves may be
// too few for all blocks; the others would be some per cent slower for asking.
#define P2P(name, T, BLOCKS, ...) \
    extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS) fmm_p2p_##name(const __grid_constant__ Fmm f) { p2p<false, T, __VA_ARGS__>(f); }
#define P2P_CORES(name, T, BLOCKS, ...) \
    P2P(name, T, BLOCKS, __VA_ARGS__) \
    extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS) fmm_p2p_split_##name(const __grid_constant__ Fmm f) { p2p<true, T, __VA_ARGS__>(f); }
P2P(charge_f32, float, 8, ChargePair<float>)
P2P(charge_f64, double, 6, ChargePair<double>)
P2P(particle_f32, float, 6, ParticlePair<float, false, false>)
P2P(particle_f64, double, 4, ParticlePair<double, false, false>)
P2P(particle_gradient_f32, float, 5, ParticlePair<float, true, false>)
P2P(particle_gradient_f64, double, 4, ParticlePair<double, true, false>)
P2P_CORES(particle_core_f32, float, 6, ParticlePair<float, false, true>)
P2P_CORES(particle_core_f64, double, 4, ParticlePair<double, false, true>)
P2P_CORES(particle_core_gradient_f32, float, 5, ParticlePair<float, true, true>)
P2P_CORES(particle_core_gradient_f64, double, 3, ParticlePair<double, true, true>)
P2P_CORES(segment_f32, float, 5, SegmentOnTarget<float, false>)
P2P_CORES(segment_f64, double, 3, SegmentOnTarget<double, false>)
P2P_CORES(segment_gradient_f32, float, 4, SegmentOnTarget<float, true>)
P2P_CORES(segment_gradient_f64, double, 3, SegmentOnTarget<double, true>)
// Two floats a coordinate.
#ifndef WFMM_PERIODIC
P2P(particle_f32x2, float, 5, ParticleF32x2<false, false>)
P2P(particle_gradient_f32x2, float, 4, ParticleF32x2<true, false>)
P2P_CORES(particle_core_f32x2, float, 5, ParticleF32x2<false, true>)
P2P_CORES(particle_core_gradient_f32x2, float, 4, ParticleF32x2<true, true>)
P2P_CORES(segment_f32x2, float, 4, SegmentF32x2<false>)
P2P_CORES(segment_gradient_f32x2, float, 3, SegmentF32x2<true>)
#endif
