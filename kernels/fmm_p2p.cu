// Near field and core correction: everything that sums element by element. A block a target leaf.
//
// Near sources (the leaves beside the target leaf, and the leaves beside its ancestors) are summed with their regularized
// kernel; where the core no longer matters at the distance of the box around the targets, with the singular one. Sources
// beyond, which the far field took as singular, are visited only where their core still matters (a walk down the source tree
// by distance and largest core) and add the deficit, regularized minus singular. Sources are classified one by one and
// gathered in shared memory, so that each inner loop has one formula and no branch.
#include "fmm_pair.cuh"
using namespace fmm;

constexpr int kThreads = 128, kRanges = 768, kStack = 2944, kMaxTargets = 64;

struct Shared {
    u32 begin[kRanges], offset[kRanges + 1];
    u32 stack[kStack];
    u32 warp_count[2][4];
    u32 work, depth, ranges;
    u32 ancestor[24];
    double part[kThreads / 32][6];
};

template <class T, class P> struct Near {
    const Fmm &f;
    Shared &s;
    typename P::Record *buffer; // two queues of 256 sources
    Vec<T> me; bool is;
    T box[6];
    int targets, group, groups;
    typename P::Sum sum;
    u32 fill[2];
    u64 pairs, core_pairs;

    __device__ Near(const Fmm &f, Shared &s, typename P::Record *b) : f(f), s(s), buffer(b) {}

    // Sums the first n sources of queue `q`.
    template <int FORM> __device__ void flush(int q, u32 n) {
        __syncthreads();
        if (is) {
            const Loop<FORM> loop{*this, buffer + q * 256, n};
            if constexpr (!P::kHasCore || FORM == kSingular) loop.template run<NONE>();
            else P::choose(f.regularization, loop);
        }
        __syncthreads();
    }
    // One formula over the sources of a queue.
    template <int FORM> struct Loop {
        Near &near;
        const typename P::Record *b;
        u32 n;
        template <int REG> __device__ __forceinline__ void run() const {
#pragma unroll 2
            for (u32 j = near.group; j < n; j += near.groups) P::template add<FORM, REG>(near.sum, near.me, b[j]);
        }
    };

    __device__ T distance2(const Vec4<T> &p) const {
        const T x = max(max(box[0] - p.x, p.x - box[3]), (T)0), y = max(max(box[1] - p.y, p.y - box[4]), (T)0), z = max(max(box[2] - p.z, p.z - box[5]), (T)0);
        return x * x + y * y + z * z;
    }

    // Puts the sources of this round that satisfy `take` at the end of queue `q`, in order; sums the queue when it holds a tile.
    template <int FORM> __device__ void push(int q, bool take, const Vec4<T> &a, const Vec4<T> &b) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        const u32 ballot = __ballot_sync(~0u, take);
        if (lane == 0) s.warp_count[q][warp] = __popc(ballot);
        __syncthreads();
        u32 at = fill[q] + __popc(ballot & ((1u << lane) - 1)), total = 0;
        for (int w = 0; w < 4; w++) { if (w < warp) at += s.warp_count[q][w]; total += s.warp_count[q][w]; }
        if (take) buffer[q * 256 + at] = P::make(f.regularization, a, b);
        fill[q] += total;
        if (fill[q] >= 128) {
            flush<FORM>(q, 128);
            const u32 rest = fill[q] - 128;
            typename P::Record last;
            if (threadIdx.x < rest) last = buffer[q * 256 + 128 + threadIdx.x];
            __syncthreads();
            if (threadIdx.x < rest) buffer[q * 256 + threadIdx.x] = last;
            fill[q] = rest;
        }
        __syncthreads();
    }

    // Goes through the sources of the collected ranges. FAR: only those whose core reaches the targets, by their deficit.
    template <bool FAR> __device__ void consume() {
        const Tree &t = f.tree[0];
        const Vec4<T> *point = (const Vec4<T> *)t.point, *strength = (const Vec4<T> *)f.strength;
        __syncthreads();
        const u32 ranges = s.ranges, total = s.offset[ranges];
        const constexpr bool cores = P::kHasCore;
        for (u32 base = 0; base < total; base += kThreads) {
            const u32 k = base + threadIdx.x;
            Vec4<T> a{0, 0, 0, 0}, b{0, 0, 0, 0};
            const bool valid = k < total;
            if (valid) {
                u32 low = 0, high = ranges;
                while (high - low > 1) { const u32 m = (low + high) / 2; if (s.offset[m] <= k) low = m; else high = m; }
                const u32 i = s.begin[low] + k - s.offset[low];
                a = point[i];
                if (P::kHasStrength) b = strength[i];
            }
            if constexpr (!cores) {
                buffer[threadIdx.x] = P::make(0, a, b);
                flush<kSingular>(0, min(total - base, (u32)kThreads));
                pairs += min(total - base, (u32)kThreads);
            } else {
            const bool inside = valid && P::reaches(*this, a, b, (T)f.core_range);
            if (FAR) { push<kDeficit>(0, inside, a, b); core_pairs += inside; }
            else { push<kSingular>(0, valid && !inside, a, b); push<kRegular>(1, inside, a, b); pairs += valid; }
            }
        }
        if constexpr (cores) {
        if (FAR) { flush<kDeficit>(0, fill[0]); fill[0] = 0; }
        else { flush<kSingular>(0, fill[0]); flush<kRegular>(1, fill[1]); fill[0] = fill[1] = 0; }
        }
    }

    // Appends the range of a source cell where `take`, in the order of the threads.
    __device__ void append(bool take, u32 begin, u32 end) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        const u32 ballot = __ballot_sync(~0u, take), n = take ? end - begin : 0;
        u32 x = n;
        for (int d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, x, d); if (lane >= d) x += y; }
        if (lane == 31) { s.warp_count[0][warp] = __popc(ballot); s.warp_count[1][warp] = x; }
        __syncthreads();
        u32 at = s.ranges + __popc(ballot & ((1u << lane) - 1)), offset = s.offset[s.ranges] + x - n, count = 0, sum = 0;
        for (int w = 0; w < 4; w++) {
            if (w < warp) { at += s.warp_count[0][w]; offset += s.warp_count[1][w]; }
            count += s.warp_count[0][w]; sum += s.warp_count[1][w];
        }
        const u32 ranges = s.ranges, last = s.offset[ranges];
        __syncthreads();
        if (take) { s.begin[at] = begin; s.offset[at] = offset; }
        if (threadIdx.x == 0) { s.ranges = ranges + count; s.offset[ranges + count] = last + sum; }
        __syncthreads();
    }

    __device__ void clear_ranges() {
        __syncthreads();
        if (threadIdx.x == 0) { s.ranges = 0; s.offset[0] = 0; }
        __syncthreads();
    }

    __device__ void near_field(u32 leaf, int level) {
        const Tree &src = f.tree[0];
        clear_ranges();
        for (int base = 0; base < kBeside * (level + 1); base += kThreads) {
            const int k = base + threadIdx.x;
            u32 begin = 0, end = 0;
            bool take = false;
            if (k < kBeside * (level + 1)) {
                const u32 other = f.near[(size_t)s.ancestor[k / kBeside] * kBeside + k % kBeside];
                if (other != kNone && (k < kBeside || info_leaf(src.info[other]))) { begin = src.begin[other]; end = src.end[other]; take = true; }
            }
            append(take, begin, end);
        }
        consume<false>();
    }

    // Walks down the source tree to the leaves that are not near and hold a core that reaches the targets.
    __device__ void core_correction(u32 leaf, int level, const int *place) {
        const Tree &src = f.tree[0];
        const T range = (T)f.walk_range;
        clear_ranges();
        if (threadIdx.x == 0) { s.stack[0] = 0; s.depth = f.state->level_begin[0][kLevels] > 0 && !info_leaf(src.info[0]); }
        __syncthreads();
        while (s.depth) {
            const u32 pop = min(s.depth, 16u), slot = threadIdx.x / 8;
            u32 child = slot < pop ? child_of(src, s.stack[s.depth - pop + slot], threadIdx.x & 7) : kNone;
            bool leaf_found = false, inner = false;
            if (child != kNone) {
                T centre[3];
                const T side = cell_geometry(src, f.state->root, child, centre), half = side * (T)0.50001;
                T d2 = 0;
                for (int k = 0; k < 3; k++) {
                    const T d = max(max(box[k] - centre[k] - half, centre[k] - half - box[3 + k]), (T)0);
                    d2 += d * d;
                }
                const T reach = range * (T)f.cell_core[child];
                const u32 info = src.info[child];
                if (d2 < reach * reach) {
                    inner = !info_leaf(info);
                    if (!inner) {
                        int other[3];
                        unmorton(src.cell_key[child], other);
                        const int ls = info_level(info), l = min(ls, level);
                        int d[3];
                        for (int k = 0; k < 3; k++) d[k] = (other[k] >> (ls - l)) - (place[k] >> (level - l));
                        leaf_found = !is_near(d[0], d[1], d[2]);
                    }
                }
            }
            const u32 left = s.depth - pop;
            __syncthreads();
            append(leaf_found, leaf_found ? src.begin[child] : 0, leaf_found ? src.end[child] : 0);
            const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
            const u32 ballot = __ballot_sync(~0u, inner);
            if (lane == 0) s.warp_count[0][warp] = __popc(ballot);
            __syncthreads();
            u32 at = left + __popc(ballot & ((1u << lane) - 1)), total = 0;
            for (int w = 0; w < 4; w++) { if (w < warp) at += s.warp_count[0][w]; total += s.warp_count[0][w]; }
            if (inner) s.stack[at] = child;
            __syncthreads();
            if (threadIdx.x == 0) s.depth = left + total;
            __syncthreads();
            if (s.ranges > kRanges - 130) { consume<true>(); clear_ranges(); }
        }
        consume<true>();
    }

    // The box around the targets of this chunk.
    __device__ void measure() {
        double b[6] = {1e300, 1e300, 1e300, -1e300, -1e300, -1e300};
        if (is) { b[0] = b[3] = me.x; b[1] = b[4] = me.y; b[2] = b[5] = me.z; }
        for (int k = 0; k < 6; k++)
            for (int d = 16; d; d >>= 1) { const double o = __shfl_xor_sync(~0u, b[k], d); b[k] = k < 3 ? fmin(b[k], o) : fmax(b[k], o); }
        __syncthreads();
        if ((threadIdx.x & 31) == 0) for (int k = 0; k < 6; k++) s.part[threadIdx.x / 32][k] = b[k];
        __syncthreads();
        for (int k = 0; k < 6; k++) {
            double v = s.part[0][k];
            for (int w = 1; w < 4; w++) v = k < 3 ? fmin(v, s.part[w][k]) : fmax(v, s.part[w][k]);
            box[k] = (T)v;
        }
    }

    __device__ void leaf(u32 cell) {
        const Tree &t = f.tree[1];
        const int level = info_level(t.info[cell]);
        __syncthreads();
        if (threadIdx.x == 0) { u32 c = cell; for (int l = 0; l <= level; l++) { s.ancestor[l] = c; c = t.parent[c]; } }
        int place[3];
        unmorton(t.cell_key[cell], place);
        const u32 begin = t.begin[cell], end = t.end[cell];
        // Equal parts of at most 64 targets: then at least two groups of threads share the sources.
        const u32 parts = (end - begin + kMaxTargets - 1) / kMaxTargets, size = (end - begin + parts - 1) / parts;
        for (u32 from = begin; from < end; from += size) {
            targets = min(end - from, size);
            groups = kThreads / targets;
            group = threadIdx.x / targets;
            const int mine = threadIdx.x - group * targets;
            is = group < groups;
            const Vec4<T> p = ((const Vec4<T> *)t.point)[from + mine];
            me = {p.x, p.y, p.z};
            for (int k = 0; k < P::Sum::terms; k++) sum.sum[k] = 0;
            fill[0] = fill[1] = 0; pairs = core_pairs = 0;
            if (P::kHasCore) measure();
            near_field(cell, level);
            if constexpr (P::kHasCore) core_correction(cell, level, place);
            __syncthreads();
            T *part = (T *)buffer, field[P::kFields]; // [4][threads]: the queues' memory, four fields at a time
            sum.field(field);
#pragma unroll
            for (int k0 = 0; k0 < P::kFields; k0 += 4) {
                constexpr int kPart = P::kFields < 4 ? P::kFields : 4;
#pragma unroll
                for (int k = 0; k < kPart; k++) part[k * kThreads + threadIdx.x] = field[k0 + k];
                __syncthreads();
                for (int w = threadIdx.x; w < targets * kPart; w += kThreads) {
                    const int k = w / targets, i = w - k * targets;
                    T x = 0;
                    for (int g = 0; g < groups; g++) x += part[k * kThreads + g * targets + i];
                    ((T *)f.field)[(size_t)(from + i) * P::kFields + k0 + k] = x;
                }
                __syncthreads();
            }
            count();
        }
    }

    __device__ void count() {
        const constexpr bool cores = P::kHasCore;
        u64 n = pairs, c = core_pairs;
        for (int d = 16; d; d >>= 1) { n += __shfl_xor_sync(~0u, n, d); c += __shfl_xor_sync(~0u, c, d); }
        if ((threadIdx.x & 31) == 0) {
            if (cores || threadIdx.x == 0) atomicAdd(&f.state->near_pairs, (cores ? n : pairs) * targets);
            if (c) atomicAdd(&f.state->core_pairs, c * targets);
        }
    }
};

template <class T, class P> __device__ void p2p(const Fmm &f) {
    __shared__ Shared s;
    extern __shared__ __align__(16) unsigned char memory[];
    Near<T, P> near(f, s, (typename P::Record *)memory);
    const u32 cells = f.state->level_begin[1][kLevels];
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) s.work = atomicAdd(&f.state->work_ticket[1], 1u);
        __syncthreads();
        const u32 cell = s.work;
        if (cell >= cells) return;
        if (info_leaf(f.tree[1].info[cell])) near.leaf(cell);
    }
}

// Launch: 128 threads, persistent blocks that take tickets; dynamic shared memory: two queues of 256 sources (f64 32 KB, f32
// 16 KB), half of it for charges.
#define P2P(name, T, ...) \
    extern "C" __global__ void __launch_bounds__(kThreads) fmm_p2p_##name(const __grid_constant__ Fmm f) { p2p<T, __VA_ARGS__>(f); }
P2P(charge_f32, float, ChargePair<float>)
P2P(charge_f64, double, ChargePair<double>)
P2P(particle_f32, float, ParticlePair<float, false, false>)
P2P(particle_f64, double, ParticlePair<double, false, false>)
P2P(particle_gradient_f32, float, ParticlePair<float, true, false>)
P2P(particle_gradient_f64, double, ParticlePair<double, true, false>)
P2P(particle_core_f32, float, ParticlePair<float, false, true>)
P2P(particle_core_f64, double, ParticlePair<double, false, true>)
P2P(particle_core_gradient_f32, float, ParticlePair<float, true, true>)
P2P(particle_core_gradient_f64, double, ParticlePair<double, true, true>)
P2P(segment_f32, float, SegmentOnTarget<float, false>)
P2P(segment_f64, double, SegmentOnTarget<double, false>)
P2P(segment_gradient_f32, float, SegmentOnTarget<float, true>)
P2P(segment_gradient_f64, double, SegmentOnTarget<double, true>)
