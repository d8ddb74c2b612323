// The sources that a block goes through: ranges of them in shared memory, first of all the leaves near a target leaf.
#pragma once
#include "fmm_pair_f32x2.cuh"
#include "fmm_tree.cuh"
#include "on_line.cuh"

namespace fmm {

// Threads of a block of the near field; ranges that it collects at a time. What follows from them is enumerated: a constant would be an
// object in every image.
constexpr int kThreads = 128, kRanges = 768;
enum : int { kWarps = kThreads / 32 };

// A third of the blocks that are launched stand for those that run at a time.
__device__ inline u32 fill() { return gridDim.x / 3; }
__device__ inline u32 leaves_of(const Fmm &f) { const u32 cells = f.state->level_begin[1][kLevels]; return max(cells - cells / 8, 1u); }

// The caller's point `i` in the tree's unit.
__device__ inline Vec<double> callers_position(const Root &root, const void *x, u32 is_f64, size_t i) {
    return {input(x, is_f64, 3 * i) * root.scale, input(x, is_f64, 3 * i + 1) * root.scale, input(x, is_f64, 3 * i + 2) * root.scale};
}
// Where an image of the sources is, in the tree's unit.
__device__ inline Vec<double> image_offset(const Root &root, u32 packed) {
    int n[3];
    image_vector(packed >> kImageBits, n);
    return {n[0] * root.period, n[1] * root.period, n[2] * root.period};
}
__device__ inline Vec<double> plus(Vec<double> a, Vec<double> b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
// From sorted source `source` to the caller's target `to`, from the caller's numbers.
__device__ inline Vec<double> exact_difference(const Fmm &f, u32 source, u32 to) {
    const Tree &s = f.tree[0], &t = f.tree[1];
    const Root &root = f.state->root;
    const Vec<double> from = callers_position(root, s.x, s.x_is_f64, s.order[in_image(source)]);
    return callers_position(root, t.x, t.x_is_f64, to) - (kPeriodic ? plus(from, image_offset(root, source)) : from);
}
// Whether the caller's positions of a sorted source and a sorted target are one. A target adds nothing to itself, in any precision.
__device__ inline bool is_at_target(const Fmm &f, u32 source, u32 target) {
    const Vec<double> d = exact_difference(f, source, f.tree[1].order[target]);
    return d.x == 0 && d.y == 0 && d.z == 0;
}
template <class Sum> __device__ __forceinline__ void add_to(Sum &sum, const Sum &more) {
#pragma unroll
    for (int c = 0; c < Sum::terms; c++) sum.sum[c] += more.sum[c];
}

// Sorted segment `source` and the caller's target `to`, from the caller's numbers.
__device__ inline SegmentPair<double> exact_pair(const Fmm &f, u32 source, u32 to) {
    const Tree &t = f.tree[1];
    const Root &root = f.state->root;
    const Piece &piece = ((const Piece *)f.piece)[f.tree[0].order[in_image(source)]];
    const int *ends = f.connectivity + (size_t)f.ld * piece.segment;
    const u32 is_f64 = f.inputs_are_f64 >> 2 & 1;
    Vec<double> a = callers_position(root, f.points, is_f64, (size_t)(ends[0] - (int)f.index_base));
    Vec<double> b = callers_position(root, f.points, is_f64, (size_t)(ends[1] - (int)f.index_base));
    if (kPeriodic) { const Vec<double> by = image_offset(root, source); a = plus(a, by); b = plus(b, by); }
    const double from = piece.from(), to_share = piece.to();
    const Segment<double> part{cut(a.x, b.x, from), cut(a.y, b.y, from), cut(a.z, b.z, from), 0, cut(a.x, b.x, to_share), cut(a.y, b.y, to_share), cut(a.z, b.z, to_share), 0};
    const double share = to_share - from;
    const SegmentPair<double> pair = SegmentPair<double>::exact(callers_position(root, t.x, t.x_is_f64, to), part, a, b, share);
    return unless_on_line(pair, share * share * square(b - a), f.step * root.scale);
}

// The bits that any lane has.
WFMM_DEVICE u32 any_of_warp(u32 bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    for (int d = 16; d; d >>= 1) bits |= __shfl_xor_sync(~0u, bits, d);
    return bits;
#else
    return __reduce_or_sync(~0u, bits);
#endif
}

struct Ranges {
    u32 begin[kRanges], offset[kRanges + 1]; // first source of a range; how many sources are before it
    u32 warp_count[2][kWarps];
    u32 work, count;
    u32 ancestor[24]; // of the target leaf, itself first
    u32 own_begin, own_end; // near sources of the place of the target leaf: of the source cell there, or of the leaf above that holds it
    uint8_t image[kPeriodic ? kRanges : 1]; // of a range, in a periodic box
    // Number of a source behind that of its image.
    __device__ u32 packed(u32 range, u32 source) const { return kPeriodic ? source | (u32)image[range] << kImageBits : source; }

    __device__ u32 total() const { return offset[count]; }

    // Source `k` of all of them.
    __device__ u32 source(u32 k) const {
        u32 low = 0, high = count;
        while (high - low > 1) { const u32 m = (low + high) / 2; if (offset[m] <= k) low = m; else high = m; }
        return packed(low, begin[low] + k - offset[low]);
    }

    // Source `k` of all of them, asked for by a whole warp, whose lanes want one after another; `low`: a range that is not behind the
    // first lane's, at first 0, and then that of the first lane.
    __device__ u32 source(u32 k, u32 &low) const {
        const u32 lane = threadIdx.x & 31, first = k - lane;
        for (u32 passed = 32; passed == 32; low += passed) {
            const u32 r = low + 1 + lane;
            passed = __popc(__ballot_sync(~0u, r < count && offset[r] <= first));
        }
        // No range is empty: one at most begins at each of the next sources.
        const u32 next = low + 1 + lane, at = next < count ? offset[next] - first : 32;
        const u32 range = low + __popc(any_of_warp(at < 32 ? 1u << at : 0) & ((2u << lane) - 1));
        return packed(range, begin[range] + k - offset[range]);
    }

    __device__ void clear() {
        __syncthreads();
        if (threadIdx.x == 0) { count = 0; offset[0] = 0; own_begin = own_end = 0; }
        __syncthreads();
    }

    // Appends the range of a source cell where `take`, in the order of the threads.
    __device__ void append(bool take, u32 from, u32 to, u32 of_image = 0) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        const u32 ballot = __ballot_sync(~0u, take), n = take ? to - from : 0;
        u32 x = n;
        for (int d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, x, d); if (lane >= d) x += y; }
        if (lane == 31) { warp_count[0][warp] = __popc(ballot); warp_count[1][warp] = x; }
        __syncthreads();
        const u32 before = count, last = offset[before];
        u32 at = before + __popc(ballot & ((1u << lane) - 1)), slot = last + x - n, more = 0, sum = 0;
        for (int w = 0; w < kWarps; w++) {
            if (w < warp) { at += warp_count[0][w]; slot += warp_count[1][w]; }
            more += warp_count[0][w]; sum += warp_count[1][w];
        }
        __syncthreads();
        if (take) { begin[at] = from; offset[at] = slot; if (kPeriodic) image[at] = (uint8_t)of_image; }
        if (threadIdx.x == 0) { count = before + more; offset[before + more] = last + sum; }
        __syncthreads();
    }

    // The cells above target leaf `cell`, by the first thread.
    __device__ void climb(const Tree &t, u32 cell, int level) {
        if (threadIdx.x == 0) for (int l = 0; l <= level; l++) { ancestor[l] = cell; if (l < level) cell = l + 1 < level ? t.parent[cell] : 0; }
    }

    // Do these sources at so many targets make more pairs than a direct sum of all is worth? Coincident points are one leaf, and one block's.
    // A block sums the least number of pairs that is looked at in 50 ms; in a second where most of them lack digits.
    static constexpr double kLeastDense = 1e8;
    __device__ bool too_dense(const Fmm &f, u32 targets) const {
        const double pairs = (double)total() * targets;
        if (pairs < kLeastDense || pairs * 64 < (double)f.tree[0].n * f.tree[1].n) return false;
        if (threadIdx.x == 0) atomicOr(&f.state->flags, kDense);
        return true;
    }

    // The image that offset `o` beside a cell is in; cells of the root's thirds and below have `along` of them along a side.
    static __device__ u32 image_beside(u64 key, int along, int o) {
        int x[3], d[3];
        unmorton(key, x);
        beside(o, d);
        for (int k = 0; k < 3; k++) d[k] = (x[k] + d[k] + 2 * along) / along - 2;
        return image_of(d);
    }

    // The leaves beside the target leaf, and the leaves beside its ancestors.
    __device__ void collect_near(const Fmm &f, int level) {
        const Tree &src = f.tree[0];
        clear();
        for (int base = 0; base < kBeside * (level + 1); base += kThreads) {
            const int k = base + threadIdx.x;
            u32 from = 0, to = 0, of_image = 0;
            bool take = false;
            if (k < kBeside * (level + 1)) {
                const u32 other = f.near[(size_t)ancestor[k / kBeside] * kBeside + k % kBeside];
                if (kPeriodic) of_image = image_beside(f.tree[1].cell_key[ancestor[k / kBeside]], max(cells_along(f, level - k / kBeside), 1), k % kBeside);
                const u32 at = other == kNone ? 0 : other, info = src.info[at]; // all asked for at once
                from = src.begin[at]; to = src.end[at];
                take = other != kNone && (k < kBeside || info_leaf(info));
            }
            if (take && k % kBeside == kOwnImage) { own_begin = from; own_end = to; }
            append(take, from, to, of_image);
        }
    }

    // The collected source that sorted target `i` of the leaf is, or kNone. Where all positions of sources and targets are the same, the two
    // trees have one order; elsewhere its key leads to it. Of several sources at a place any may be meant.
    __device__ u32 own_source(const Fmm &f, u32 i) const {
        if (i >= own_begin && i < own_end && is_at_target(f, i, i)) return i;
        const Tree &src = f.tree[0];
        typedef Vec4<float> Point; // other precisions do not ask
        const u64 key = f.tree[1].key[i];
        const u32 begin = lower_bound(src.key, own_begin, own_end, key), end = lower_bound(src.key, begin, own_end, key + 1);
        const Point *const from = (const Point *)src.point, at = ((const Point *)f.tree[1].point)[i];
        u32 found = kNone;
#pragma unroll 4
        for (u32 k = begin; k < end; k++) {
            const Point p = from[k];
            if (p.x == at.x && p.y == at.y && p.z == at.z) found = k;
        }
        return found != kNone && is_at_target(f, found, i) ? found : kNone;
    }
};

} // namespace fmm
