// The near field of sources without cores at the targets of a leaf: up to four targets a thread, so that a source is read from
// shared memory once for all of them, and as many threads busy as a leaf of that size can have. Where leaves are few, several blocks share one's sources.
#pragma once
#include "fmm_ranges.cuh"

namespace fmm {

// 16 bytes from device to shared memory, past the registers where the hardware can.
WFMM_DEVICE void copy_16(void *to, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from));
#else
    *(uint4 *)to = *(const uint4 *)from;
#endif
}
WFMM_DEVICE void copies_made() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
// Waits for all copies but those of the last `LATE` groups.
template <int LATE> WFMM_DEVICE void copies_arrived() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LATE) : "memory");
#endif
}

template <class T, class P> struct Plain {
    typedef typename P::Record Record;
    static constexpr u32 kTile = 2 * kThreads;
    static_assert(sizeof(Record) == (1 + P::kHasStrength + P::kTwoFloats) * sizeof(Vec4<T>), "a record is a point, and a strength, and low digits");
    static_assert(!P::kTwoFloats || !kPeriodic, "positions of images are relative to a leaf");
    // What a block sums: its part of the collected sources, of how many, and where the sums go, from the first target on.
    struct Shared : Ranges {
        u32 part, parts, usual, low, high;
        float weight[kWarps];
        T *to;
        u32 own_at;    // how many of the collected sources are before those of the place of the target leaf
        u32 own_tiles; // a bit for each tile that has a source that is a target of the round; none between rounds
        // By target: where that of itself is, or kNone; the parts of tiles that have pairs to be corrected.
        u32 own[P::kCorrects ? kThreads : 1], close[P::kCorrects ? kThreads : 1];
        uint8_t of_image[kPeriodic ? 2 * kTile : 1]; // of the sources of two tiles
    };
    const Fmm &f;
    Shared &s;
    Record *buffer; // two tiles of sources; f32: and two of the low digits of their positions, where records have none
    u32 range;      // where the search for the next sources begins
    T from[3];      // what the positions of a tile are relative to, in f32

    static constexpr bool kLow = sizeof(T) == 4 && !P::kTwoFloats;
    __device__ Vec4<T> *low(int half) const { return (Vec4<T> *)(buffer + 2 * kTile) + half * kTile; }

    // Begins to fetch a tile of sources.
    __device__ void fetch(u32 base, int half) {
        const u32 lane = threadIdx.x & 31, high = s.high;
#pragma unroll 1
        for (u32 i = threadIdx.x; i < kTile && base + i - lane < high; i += kThreads) {
            const u32 packed = s.source(base + i, range), source = in_image(packed);
            if (base + i >= high) break;
            if (kPeriodic) s.of_image[half * kTile + i] = (uint8_t)(packed >> kImageBits);
            char *to = (char *)(buffer + half * kTile + i);
            const char *point = (const char *)((const Vec4<T> *)f.tree[0].point + source), *strength = (const char *)((const Vec4<T> *)f.strength + source);
#pragma unroll
            for (int b = 0; b < (int)sizeof(Vec4<T>); b += 16) {
                copy_16(to + b, point + b);
                if (P::kHasStrength) copy_16(to + sizeof(Vec4<T>) + b, strength + b);
            }
            if (P::kTwoFloats) copy_16(to + 2 * sizeof(Vec4<T>), SortedPoint<T>::low(f.tree[0]) + source);
            if (kLow) copy_16(low(half) + i, SortedPoint<T>::low(f.tree[0]) + source);
        }
        copies_made();
    }

    // The positions of those that the thread has fetched, relative to `from`: differences of near ones keep their digits.
    __device__ void make_relative(u32 base, int half) {
        const u32 lane = threadIdx.x & 31, high = s.high;
#pragma unroll 1
        for (u32 i = threadIdx.x; i < kTile && base + i - lane < high; i += kThreads) {
            if (base + i >= high) break;
            Vec4<T> l{0, 0, 0, 0};
            if (kLow) l = low(half)[i];
            make_relative(buffer[half * kTile + i], l, kPeriodic ? s.of_image[half * kTile + i] : 0);
        }
    }
    __device__ void make_relative(Record &r, Vec4<T> &l, u32 image) const {
        if constexpr (kPeriodic) {
            int n[3];
            image_vector(image, n);
            const Root &root = f.state->root;
            SortedPoint<T>::move(root, n[0], r.x, l.x); SortedPoint<T>::move(root, n[1], r.y, l.y); SortedPoint<T>::move(root, n[2], r.z, l.z);
            if (!kLow) return;
        }
        r.x = SortedPoint<T>::relative(r.x, l.x, from[0]); r.y = SortedPoint<T>::relative(r.y, l.y, from[1]); r.z = SortedPoint<T>::relative(r.z, l.z, from[2]);
    }
    // Target `i`, as the loops have it.
    __device__ typename P::Position target(u32 i) const {
        const Vec4<T> p = ((const Vec4<T> *)f.tree[1].point)[i];
        if constexpr (!P::kTwoFloats && !kLow) return {p.x, p.y, p.z};
        else {
            const Vec4<T> l = SortedPoint<T>::low(f.tree[1])[i];
            if constexpr (P::kTwoFloats) return {{p.x, p.y, p.z}, {l.x, l.y, l.z}};
            else return {SortedPoint<T>::relative(p.x, l.x, from[0]), SortedPoint<T>::relative(p.y, l.y, from[1]), SortedPoint<T>::relative(p.z, l.z, from[2])};
        }
    }
    // A source by its number among all of a tree, and its image, as the loops have it.
    __device__ Record record(u32 packed) const {
        const u32 source = in_image(packed);
        Record r;
        Vec4<T> *const part = (Vec4<T> *)&r, l = sizeof(T) == 4 ? SortedPoint<T>::low(f.tree[0])[source] : Vec4<T>{0, 0, 0, 0};
        part[0] = ((const Vec4<T> *)f.tree[0].point)[source];
        if constexpr (P::kHasStrength) part[1] = ((const Vec4<T> *)f.strength)[source];
        if constexpr (P::kTwoFloats) part[2] = l;
        else { Vec4<T> of_point = l; make_relative(r, of_point, packed >> kImageBits); }
        return r;
    }

    // Adds every `groups`-th source of a tile to K targets. Leaves of each target how many pairs are nearer than the root of `near2`, with
    // COUNTS, which is more work; without, one if any is.
    template <bool COUNTS, int K> __device__ __forceinline__ static void add_tile(typename P::Sum *into, const typename P::Position (&x)[K], const Record *tile, u32 group, u32 groups, u32 end, u32 (&close)[K]) {
        T nearest[K];
#pragma unroll
        for (int k = 0; k < K; k++) { nearest[k] = T(1e30); close[k] = 0; }
#pragma unroll 2
        for (u32 j = group; j < end; j += groups) {
            const Record r = tile[j];
#pragma unroll
            for (int k = 0; k < K; k++) {
                const T r2 = P::template add<kSingular, NONE>(into[k], x[k], r);
                if constexpr (P::kCorrects) {
                    if constexpr (COUNTS) close[k] += r2 < near_square(x[k]);
                    else nearest[k] = fmin(nearest[k], r2);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < K; k++)
            if constexpr (P::kCorrects && !COUNTS) close[k] = nearest[k] < near_square(x[k]);
    }
    // Which bit stands for the tile that source `k` of the collected ones is in.
    __device__ u32 tile_bit(u32 k) const { return 1u << ((k - s.low) / kTile & 31); }
    // Which bit of `close` stands for the sources of a group in a tile.
    __device__ u32 part_bit(u32 base, u32 group, u32 groups) const { return 1u << (((base - s.low) / kTile * groups + group) & 31); }
    // Notes that target t of the round has so many near pairs among the sources of this group in this tile, unless that is the target itself.
    __device__ void note_close(u32 t, u32 pairs, u32 base, u32 group, u32 groups) {
        const u32 own = s.own[t] - base;
        if (own < kTile && own % groups == group && s.own[t] < s.high) pairs--;
        if (pairs) atomicOr(&s.close[t], part_bit(base, group, groups));
    }
    // Adds to the stored sums of the targets what rounding of the positions took from their near pairs. Behind the loops, whose registers a
    // call would take.
    static __device__ __noinline__ void correct(const Fmm &f, Shared &s, Vec<T> from, u32 first, u32 n, u32 groups) {
        const u32 t = threadIdx.x;
        if (t >= n || !s.close[t]) return;
        const Plain plain{f, s, nullptr, 0, {from.x, from.y, from.z}};
        const typename P::Position x = plain.target(first + t);
        const T near2 = near_square(x);
        const u32 to = f.tree[1].order[first + t];
        typename P::Sum sum{};
#pragma unroll 1
        for (u32 base = s.low; base < s.high; base += kTile)
#pragma unroll 1
            for (u32 group = 0; group < groups; group++) {
                if (!(s.close[t] & plain.part_bit(base, group, groups))) continue;
                const u32 end = min(base + kTile, s.high);
#pragma unroll 1
                for (u32 j = base + group; j < end; j += groups) {
                    const u32 source = s.source(j);
                    const Record r = plain.record(source);
                    if (square(apart(x, r)) < near2) P::template correct<kSingular, NONE>(sum, x, r, exact_difference(f, source, to), ((const Vec4<T> *)f.tree[0].point)[in_image(source)].w);
                }
            }
        T field[P::kFields], *const at = s.to + (size_t)(first + t) * P::kFields;
        sum.field(field);
        for (int c = 0; c < P::kFields; c++) at[c] += field[c];
    }

    // Adds the sources of the collected ranges to targets from .. from + n, K of them a thread: threads `slot` + K groups.
    template <int K> __device__ void sum(u32 first, u32 n) {
        const Vec4<T> *const point = (const Vec4<T> *)f.tree[1].point;
        if (kLow) { const Vec4<T> p = point[first]; from[0] = p.x; from[1] = p.y; from[2] = p.z; }
        const u32 slots = (n + K - 1) / K, groups = kThreads / slots, group = threadIdx.x / slots, slot = threadIdx.x - group * slots;
        const u32 low = s.low, high = s.high;
        typename P::Position x[K];
        // In two floats a coordinate a tile has sums of its own, so that fewer numbers are added to a large one.
        typename P::Sum sum[K], of_tile[P::kTwoFloats ? K : 1];
        typename P::Sum *const into = P::kTwoFloats ? of_tile : sum;
        range = 0;
        fetch(low, 0);
        if constexpr (P::kCorrects) {
            const u32 source = threadIdx.x < n ? s.own_source(f, first + threadIdx.x) : kNone;
            const u32 own = source == kNone ? kNone : s.own_at + source - s.own_begin;
            const u32 tiles = any_of_warp(own >= low && own < high ? tile_bit(own) : 0);
            if (tiles && threadIdx.x % 32 == 0) atomicOr(&s.own_tiles, tiles);
            s.own[threadIdx.x] = own;
            s.close[threadIdx.x] = 0;
        }
#pragma unroll
        for (int k = 0; k < K; k++) {
            x[k] = target(first + min(slot + k * slots, n - 1));
#pragma unroll
            for (int c = 0; c < P::Sum::terms; c++) sum[k].sum[c] = 0;
        }
        for (u32 base = low, half = 0; base < high; base += kTile, half ^= 1) {
            fetch(base + kTile, half ^ 1);
            copies_arrived<1>();
            if (kLow || kPeriodic) make_relative(base, half);
            __syncthreads();
            if (group < groups) {
                const Record *tile = buffer + half * kTile;
                const u32 end = min(high - base, kTile);
                u32 close[K];
                if constexpr (P::kTwoFloats)
#pragma unroll
                    for (int k = 0; k < K; k++) for (int c = 0; c < P::Sum::terms; c++) into[k].sum[c] = 0;
                if (P::kCorrects && s.own_tiles & tile_bit(base)) add_tile<true>(into, x, tile, group, groups, end, close);
                else add_tile<false>(into, x, tile, group, groups, end, close);
                if constexpr (P::kTwoFloats)
#pragma unroll
                    for (int k = 0; k < K; k++) add_to(sum[k], into[k]);
                if constexpr (P::kCorrects)
#pragma unroll
                    for (int k = 0; k < K; k++)
                        if (close[k]) note_close(min(slot + k * slots, n - 1), close[k], base, group, groups);
            }
            __syncthreads();
        }
        if (P::kCorrects && threadIdx.x == 0) s.own_tiles = 0;
        store<K>(sum, first, n, slots, groups);
        if constexpr (P::kCorrects) correct(f, s, {from[0], from[1], from[2]}, first, n, groups);
    }

    // Adds up what the threads of a target have, in one order: that of target k slots + slot is in K sums of thread group slots + slot.
    template <int K> __device__ void store(const typename P::Sum (&sum)[K], u32 from, u32 n, u32 slots, u32 groups) {
        constexpr int F = P::kFields, kFit = 2 * kTile * sizeof(Record) / (F * kThreads * sizeof(T)), kOnce = kFit < K ? kFit : K;
        static_assert(kFit > 0, "room for the sums of a target a thread");
        T *part = (T *)buffer, *to = s.to + (size_t)from * F; // [targets a thread][fields][threads]
#pragma unroll
        for (int k0 = 0; k0 < K; k0 += kOnce) {
#pragma unroll
            for (int k = k0; k < k0 + kOnce && k < K; k++) {
                T field[F];
                sum[k].field(field);
#pragma unroll
                for (int c = 0; c < F; c++) part[((k - k0) * F + c) * kThreads + threadIdx.x] = field[c];
            }
            __syncthreads();
            const u32 first = k0 * slots * F, end = min(n, min(k0 + kOnce, K) * slots) * F;
            // Where there are fewer sums than threads, several threads, neighbours, take one.
            u32 share = 1;
            while (2 * share * (end - first) <= kThreads && share < 32) share *= 2;
            for (u32 w = first + threadIdx.x / share; w - (threadIdx.x & 31) / share < end; w += kThreads / share) {
                const u32 i = min(w, end - 1) / F, c = w - i * F, k = i / slots;
                T y = 0;
                if (w < end) for (u32 g = threadIdx.x % share; g < groups; g += share) y += part[((k - k0) * F + c) * kThreads + g * slots + i - k * slots];
                for (u32 d = share / 2; d; d /= 2) y += __shfl_xor_sync(~0u, y, d);
                if (w < end && threadIdx.x % share == 0) to[w] = y;
            }
            __syncthreads();
        }
    }

    // The number of targets a thread that keeps most threads busy; of equals the larger, which reads less.
    __device__ static u32 targets_a_thread(u32 n) {
        u32 best = 1, most = 0;
#pragma unroll
        for (u32 k = 1; k <= P::kMostTargets; k++) {
            const u32 slots = (n + k - 1) / k, groups = (u32)(1.0001f * kThreads * rcp_of((float)slots)); // rounded down
            const u32 busy = n * groups * 256 / k + kReuse * kThreads * min(k, 3u);
            if (busy >= most) { most = busy; best = k; }
        }
        return best;
    }
    // What another target a thread is worth beside busy threads, in 256ths: a thirty-second of all threads. It decides between counts that keep
    // nearly as many threads busy, since a thread reads a source from shared memory once for all of its targets.
    static constexpr u32 kReuse = 8;

    // In how many parts the near sources of a leaf are summed, by blocks of their own: several where the leaves are too few for the
    // blocks that run at a time (and there are 33 cells beside an inner leaf only), and no part is too small.
    static __device__ u32 parts(const Fmm &f) {
        const u32 leaves = leaves_of(f), targets = count_of(f.tree[1]), room = min(kMostParts, kPartRows / max(f.tree[1].n, 1u));
        const float pairs = (float)kBeside * count_of(f.tree[0]) / leaves * targets / leaves;
        if (kPeriodic) return 1; // images beyond are added to the field itself
        const u32 parts = min(min(((sizeof(T) == 8 ? 3 : 4) * fill() + leaves) / (2 * leaves), (u32)(pairs / kLeastPairs)), room);
        return f.state->level_begin[1][kLevels] <= kPartCells ? max(parts, 1u) : 1;
    }
    // Pairs of a part at least: some 5 µs of a block on an H200, which with 8 blocks on each of 132 multiprocessors sums 8e11 pairs/s in
    // single precision. Every part repeats the search for sources.
    static constexpr float kLeastPairs = 4000;

    // Shares so many blocks out among the leaves of a tree of no more cells than threads, by their pairs as far as target counts and
    // the cells that can be beside a leaf tell: what block `share` takes; none if it has none.
    __device__ bool take(u32 share, u32 blocks) {
        const Tree &t = f.tree[1];
        const u32 c = threadIdx.x, lane = c & 31, warp = c >> 5;
        const u32 cells = f.state->level_begin[1][kLevels], leaves = leaves_of(f);
        const bool is = c < cells;
        const u32 info = is ? t.info[c] : 0, count = is ? t.end[c] - t.begin[c] : 0; // asked for at once
        const u64 key = is ? t.cell_key[c] : 0;
        float weight = 0;
        if (info_leaf(info)) {
            int x[3];
            const int side = 1 << info_level(info);
            unmorton(key, x);
            u32 beside = 1, far = 0;
            for (int k = 0; k < 3; k++) {
                beside *= 1 + (x[k] > 0) + (x[k] + 1 < side);
                far += (x[k] > 1) + (x[k] + 2 < side);
            }
            weight = (float)count * (beside + far);
        }
        float sum = weight;
        for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
        __syncthreads();
        if (lane == 0) s.weight[warp] = sum;
        if (c == 0) s.work = kNone;
        __syncthreads();
        float all = 0;
        for (int w = 0; w < kWarps; w++) all += s.weight[w];
        const float pairs = weight * count_of(f.tree[0]) / leaves;
        const u32 most = kPeriodic ? 1 : min(min(kMostParts, kPartRows / max(t.n, 1u)), (u32)(pairs / kLeastPairs));
        const u32 parts = weight > 0 ? max(min(most, (u32)(blocks * (weight / all))), 1u) : 0;
        u32 end = parts;
        for (int d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, end, d); if (lane >= d) end += y; }
        if (lane == 31) s.warp_count[0][warp] = end;
        __syncthreads();
        for (u32 w = 0; w < warp; w++) end += s.warp_count[0][w];
        if (share < end && share + parts >= end) { s.work = c; s.part = share + parts - end; s.parts = parts; }
        __syncthreads();
        return s.work != kNone;
    }

    // Part `part` of `parts` of the near sources at the targets of a leaf; of at most so many, if parts have at least a `parts`-th of
    // the `usual` number of sources.
    __device__ void sum_leaf(u32 cell, u32 part, u32 parts, u32 usual) {
        const Tree &t = f.tree[1];
        const int level = info_level(t.info[cell]);
        const u32 begin = t.begin[cell], end = t.end[cell];
        s.climb(t, cell, level);
        s.collect_near(f, level);
        if (P::kCorrects) for (u32 r = threadIdx.x; r < s.count; r += kThreads) if (s.packed(r, s.begin[r]) == s.own_begin) s.own_at = s.offset[r];
        const u32 total = s.total(), size = max((max(usual, total) + parts - 1) / parts, 1u);
        const u32 used = max((total + size - 1) / size, 1u);
        if (part >= used || s.too_dense(f, end - begin)) return;
        if (threadIdx.x == 0) {
            s.low = min(part * size, total); s.high = min(s.low + size, total); s.own_tiles = 0;
            s.to = (T *)f.field + (used > 1 ? (1 + part) * (size_t)t.n * P::kFields : 0);
            if (part == 0 && cell < kPartCells) f.state->near_parts[cell] = used;
            atomicAdd(&f.state->near_pairs, (u64)(s.high - s.low) * (end - begin));
        }
        __syncthreads();
        const u32 rounds = (end - begin + kThreads - 1) / kThreads, most = (end - begin + rounds - 1) / rounds;
        for (u32 from = begin; from < end; from += most) {
            const u32 n = min(end - from, most), k = targets_a_thread(n);
            if (P::kMostTargets >= 4 && k == 4) sum<P::kMostTargets >= 4 ? 4 : 1>(from, n);
            else if (P::kMostTargets >= 3 && k == 3) sum<P::kMostTargets >= 3 ? 3 : 1>(from, n);
            else if (P::kMostTargets >= 2 && k == 2) sum<P::kMostTargets >= 2 ? 2 : 1>(from, n);
            else sum<1>(from, n);
        }
    }
};

} // namespace fmm
