// The near field of sources without cores at the targets of a leaf: up to four targets a thread, so that a source is read from
// shared memory once for all of them, and as many threads busy as a leaf of that size can have.
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
    static constexpr u32 kTile = 128;
    static_assert(sizeof(Record) == (P::kHasStrength ? 2 : 1) * sizeof(Vec4<T>), "a record is a point, and a strength");
    const Fmm &f;
    Ranges &s;
    Record *buffer; // two tiles of sources

    // Begins to fetch a tile of sources.
    __device__ void fetch(u32 base, u32 total, int half) {
        for (u32 i = threadIdx.x; i < kTile && base + i < total; i += kThreads) {
            const u32 source = s.source(base + i);
            char *to = (char *)(buffer + half * kTile + i);
            const char *point = (const char *)((const Vec4<T> *)f.tree[0].point + source), *strength = (const char *)((const Vec4<T> *)f.strength + source);
#pragma unroll
            for (int b = 0; b < (int)sizeof(Vec4<T>); b += 16) {
                copy_16(to + b, point + b);
                if (P::kHasStrength) copy_16(to + sizeof(Vec4<T>) + b, strength + b);
            }
        }
        copies_made();
    }

    // Adds the sources of the collected ranges to targets from .. from + n, K of them a thread: threads `slot` + K groups.
    template <int K> __device__ void sum(u32 from, u32 n) {
        const u32 slots = (n + K - 1) / K, groups = kThreads / slots, group = threadIdx.x / slots, slot = threadIdx.x - group * slots;
        const u32 total = s.total();
        Vec<T> x[K];
        typename P::Sum sum[K];
#pragma unroll
        for (int k = 0; k < K; k++) {
            const Vec4<T> p = ((const Vec4<T> *)f.tree[1].point)[from + min(slot + k * slots, n - 1)];
            x[k] = {p.x, p.y, p.z};
#pragma unroll
            for (int c = 0; c < P::Sum::terms; c++) sum[k].sum[c] = 0;
        }
        fetch(0, total, 0);
        for (u32 base = 0, half = 0; base < total; base += kTile, half ^= 1) {
            fetch(base + kTile, total, half ^ 1);
            copies_arrived<1>();
            __syncthreads();
            if (group < groups) {
                const Record *tile = buffer + half * kTile;
                const u32 end = min(total - base, kTile);
#pragma unroll 2
                for (u32 j = group; j < end; j += groups) {
                    const Record r = tile[j];
#pragma unroll
                    for (int k = 0; k < K; k++) P::template add<kSingular, NONE>(sum[k], x[k], r);
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int k = 0; k < K; k++)
            if (k * slots < n) store(sum[k], from + k * slots, min(slots, n - k * slots), slots, groups);
    }

    // Adds up what the threads of a target have: targets from .. from + n are those of the first n threads of a group of `slots`.
    __device__ void store(const typename P::Sum &sum, u32 from, u32 n, u32 slots, u32 groups) {
        T *part = (T *)buffer, field[P::kFields]; // [4][threads]
        sum.field(field);
#pragma unroll
        for (int k0 = 0; k0 < P::kFields; k0 += 4) {
            constexpr int kPart = P::kFields < 4 ? P::kFields : 4;
#pragma unroll
            for (int k = 0; k < kPart; k++) part[k * kThreads + threadIdx.x] = field[k0 + k];
            __syncthreads();
            for (u32 w = threadIdx.x; w < n * kPart; w += kThreads) {
                const u32 k = w / n, i = w - k * n;
                T y = 0;
                for (u32 g = 0; g < groups; g++) y += part[k * kThreads + g * slots + i];
                ((T *)f.field)[(size_t)(from + i) * P::kFields + k0 + k] = y;
            }
            __syncthreads();
        }
    }

    // The number of targets a thread that keeps most threads busy; of equals the larger, which reads less.
    __device__ static u32 targets_a_thread(u32 n) {
        u32 best = 1, most = 0;
        for (u32 k = 1; k <= P::kMostTargets; k++) {
            const u32 slots = (n + k - 1) / k, busy = n * (kThreads / slots) * 256 / k + kReuse * 128 * min(k, 3u);
            if (busy >= most) { most = busy; best = k; }
        }
        return best;
    }
    // What another target a thread is worth beside busy threads, in 256ths.
    static constexpr u32 kReuse = 8;

    __device__ void sum_leaf(u32 cell) {
        const Tree &t = f.tree[1];
        const int level = info_level(t.info[cell]);
        __syncthreads();
        s.climb(t, cell, level);
        s.collect_near(f, level);
        const u32 begin = t.begin[cell], end = t.end[cell], parts = (end - begin + kThreads - 1) / kThreads, size = (end - begin + parts - 1) / parts;
        for (u32 from = begin; from < end; from += size) {
            const u32 n = min(end - from, size), k = targets_a_thread(n);
            if (P::kMostTargets >= 4 && k == 4) sum<P::kMostTargets >= 4 ? 4 : 1>(from, n);
            else if (P::kMostTargets >= 3 && k == 3) sum<P::kMostTargets >= 3 ? 3 : 1>(from, n);
            else if (P::kMostTargets >= 2 && k == 2) sum<P::kMostTargets >= 2 ? 2 : 1>(from, n);
            else sum<1>(from, n);
        }
        if (threadIdx.x == 0) atomicAdd(&f.state->near_pairs, (u64)s.total() * (end - begin));
    }
};

} // namespace fmm
