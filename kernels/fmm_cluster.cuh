// The trees of a small problem with at most three levels, on Hopper: two launches. What is left in memory is that of fmm_tree.cu,
// number by number.
//
// The first is one cluster of eight blocks a tree: every thread keeps its points from the bounding box to their ranks; the
// blocks exchange boxes and the counts of points by cell of the deepest level through shared memory, and the counts are all
// that cells need. Code is fetched for the first time here as everywhere in a small evaluation: what is rare is kept apart.
#pragma once
#include "fmm_small.cuh"

namespace fmm {

constexpr u32 kClusterBlocks = 8, kClusterThreads = 1024, kClusterBins = 512, kClusterCells = 585;

// A point in the order of the tree, for the second launch: key, level of its leaf, index in the caller's array.
constexpr u32 kIndexMask = (1u << kIndexBits) - 1, kKeyShift = kIndexBits + 2;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// The address in block `rank` of the cluster that `p` is in this one.
__device__ inline u32 in_block(const void *p, u32 rank) {
    u32 at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((u32)__cvta_generic_to_shared(p)), "r"(rank));
    return at;
}
__device__ inline void put_in_block(double *p, u32 rank, double v) { asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(in_block(p, rank)), "d"(v) : "memory"); }
__device__ inline void put_in_block(unsigned short *p, u32 rank, u32 v) { asm volatile("st.shared::cluster.u16 [%0], %1;" ::"r"(in_block(p, rank)), "h"((unsigned short)v) : "memory"); }

struct ClusterTree {
    double warp_box[32][8], box[kClusterBlocks][8];
    Root root;
    unsigned short part[kClusterBlocks][kClusterBins]; // points by block and cell of the deepest level
    u32 start[kClusterBins + 1], base[kClusterBins];   // first point of such a cell; its first of this block
    u32 warp[32], begin[kLevels + 2], rank[kClusterCells];
    int most, overflow;
};

// Point i, or nothing that a maximum would take.
__device__ inline void load_point(const Tree &t, u32 i, bool is, double *x) {
    for (int k = 0; k < 3; k++) x[k] = NAN;
    if (is && t.x_is_f64) for (int k = 0; k < 3; k++) x[k] = ((const double *)t.x)[3 * i + k];
    if (is && !t.x_is_f64) for (int k = 0; k < 3; k++) x[k] = ((const float *)t.x)[3 * i + k];
}

// Maxima of eight numbers over a warp, number `lane / 4` of them: halves are exchanged, not all numbers.
__device__ inline double maxima(const double *m) {
    const u32 lane = threadIdx.x & 31;
    const bool first = lane & 16, second = lane & 8, third = lane & 4;
    double a[4], b[2];
#pragma unroll
    for (int k = 0; k < 4; k++) a[k] = larger(first ? m[4 + k] : m[k], __shfl_xor_sync(~0u, first ? m[k] : m[4 + k], 16));
#pragma unroll
    for (int k = 0; k < 2; k++) b[k] = larger(second ? a[2 + k] : a[k], __shfl_xor_sync(~0u, second ? a[k] : a[2 + k], 8));
    double v = larger(third ? b[1] : b[0], __shfl_xor_sync(~0u, third ? b[0] : b[1], 4));
    v = larger(v, __shfl_xor_sync(~0u, v, 2));
    return larger(v, __shfl_xor_sync(~0u, v, 1));
}

// The root cube and the deepest level of leaves, by all threads, from the maxima of what each has seen.
__device__ inline void cluster_root(const Fmm &f, ClusterTree &s, const double *m) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const double v = maxima(m);
    if (lane % 4 == 0) s.warp_box[warp][lane / 4] = v;
    __syncthreads();
    cluster_wait(); // all blocks have begun
    if (warp < 8) {
        double x = s.warp_box[lane][warp];
        for (int d = 16; d; d >>= 1) x = larger(x, __shfl_xor_sync(~0u, x, d));
        if (lane < kClusterBlocks) put_in_block(&s.box[blockIdx.x][warp], lane, x);
    }
    cluster_arrive();
    cluster_wait();
    if (warp == 0) {
        double x = larger(s.box[lane >> 3][lane & 7], s.box[4 + (lane >> 3)][lane & 7]);
        x = larger(x, __shfl_xor_sync(~0u, x, 8));
        x = larger(x, __shfl_xor_sync(~0u, x, 16));
        if (lane < 8) s.box[0][lane] = x;
        __syncwarp();
        if (lane == 0) {
            const double *high = s.box[0], low[3] = {-high[3], -high[4], -high[5]};
            const bool cores = high[7] > -1e308;
            const Root r = make_root(f, low, high);
            s.root = r;
            s.most = blockIdx.y == 0 && f.kind != kCharge ? deepest_leaf(f, cores ? -high[6] : 0, cores ? high[7] : 0, r) : f.max_level;
            if (blockIdx.x == 0 && blockIdx.y == 0) {
                f.state->root = r;
                f.state->least_core = cores ? ordered(high[6]) : 0; f.state->most_core = cores ? ordered(high[7]) : 0;
            }
        }
    }
    __syncthreads();
}

__device__ inline u32 size_at(const Fmm &f, const ClusterTree &s, u32 key, int level) {
    const int shift = 3 * ((int)f.max_level - level);
    return s.start[(key + 1) << shift] - s.start[key << shift];
}
__device__ inline bool splits_at(const Fmm &f, const Tree &t, const ClusterTree &s, u32 key, int level) {
    return level < s.most && (level < (int)f.least_level || size_at(f, s, key, level) > t.capacity);
}

// All cells that there can be, a thread each; every block numbers them, and writes a part.
__device__ inline void cluster_cells(const Fmm &f, const Tree &t, ClusterTree &s) {
    const u32 id = threadIdx.x, ids = ((8u << 3 * f.max_level) - 1) / 7;
    const Possible p(id < ids ? id : 0);
    const u32 size = size_at(f, s, p.key, p.level);
    const bool is = id < ids && size && (!p.level || splits_at(f, t, s, p.key >> 3, p.level - 1));
    if (is && p.level == (int)f.max_level && size > t.capacity) s.overflow = 1;
    u32 cells;
    const u32 c = count_before(is, s.warp, &cells);
    if (id < ids) { s.rank[id] = is ? c + 1 : 0; if (p.key == 0) s.begin[p.level] = c; }
    __syncthreads();
    const bool fits = cells <= t.cell_capacity;
    if (blockIdx.x == kClusterBlocks - 1) {
        if (id < kLevels + 2) f.state->level_begin[blockIdx.y][id] = !fits ? 0 : id <= f.max_level ? s.begin[id] : cells;
        if (id == 0) {
            u32 deepest = 0;
            for (u32 l = 1; l <= f.max_level; l++) if (s.begin[l] < cells) deepest = l;
            f.state->cells[blockIdx.y] = cells; f.state->deepest[blockIdx.y] = deepest;
            f.state->tree_flags[blockIdx.y] = (fits ? 0 : kCellsOverflow) | (s.overflow ? kDepthOverflow : 0);
        }
    }
    if (!fits || id >= ids || (id >> 5) % kClusterBlocks != blockIdx.x) return;
    if (blockIdx.y == 0) small_table(f)[id] = s.rank[id];
    if (!is) return;
    u32 info = p.level | (p.level ? p.key & 7 : 0) << 6, child = kNone;
    if (splits_at(f, t, s, p.key, p.level)) {
        for (int o = 7; o >= 0; o--)
            if (const u32 at = s.rank[p.child(o)]) { info |= 1u << (16 + o); child = at - 1; }
    } else info |= 1u << 5;
    const u32 begin = s.start[p.key << 3 * ((int)f.max_level - p.level)];
    t.begin[c] = begin; t.end[c] = begin + size; t.cell_key[c] = p.key; t.info[c] = info; t.child[c] = child;
    t.parent[c] = p.level ? s.rank[p.parent()] - 1 : kNone;
    if (blockIdx.y == 0) f.cell_core[c] = f.cell_core[f.tree[0].cell_capacity + c] = 0;
}

// ITEMS points a thread; of each block `part`.
template <u32 ITEMS> __device__ void cluster_tree(const Fmm &f, ClusterTree &s, u32 part, unsigned short *count) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t), tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, rank = blockIdx.x;
    const u32 first = rank * part + tid, end = min((rank + 1) * part, n), bits = 3 * f.max_level, bins = 1u << bits;
    const u32 rows = ITEMS == 1 ? part / 32 : 64;
    cluster_arrive();
    double x[ITEMS][3], m[8];
    {
        const Tree &o = f.tree[1 - blockIdx.y];
        const u32 others = count_of(o);
        double other[ITEMS][3], core[ITEMS];
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            const u32 i = first + k * kClusterThreads, j = rank * kClusterThreads * ITEMS + k * kClusterThreads + tid;
            load_point(t, i, i < end, x[k]);
            load_point(o, j, j < others, other[k]);
            core[k] = NAN;
            if (blockIdx.y == 0 && f.kind != kCharge && f.regularization && i < end) core[k] = f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, i) : f.default_core;
        }
        for (u32 k = tid; k < rows * bins / 2; k += kClusterThreads) ((u32 *)count)[k] = 0;
        if (tid == 0) s.overflow = 0;
        for (int k = 0; k < 8; k++) m[k] = -1e308;
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            for (int a = 0; a < 3; a++) {
                m[a] = larger(larger(m[a], x[k][a]), other[k][a]);
                m[3 + a] = larger(larger(m[3 + a], -x[k][a]), -other[k][a]);
            }
            m[6] = larger(m[6], -core[k]); m[7] = larger(m[7], core[k]);
        }
    }
    cluster_root(f, s, m);
    const Cells cells(s.root, f.max_level);
    u32 key[ITEMS], before[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; k++) {
        const bool in = first + k * kClusterThreads < end;
        u32 c[3];
        cells.of(s.root, x[k], c);
        // At most three bits of each.
        for (int a = 0; a < 3; a++) c[a] = (c[a] & 1) | (c[a] & 2) << 2 | (c[a] & 4) << 4;
        key[k] = c[0] | c[1] << 1 | c[2] << 2;
        u32 peers = __ballot_sync(~0u, in);
        for (u32 b = 0; b < bits; b++) { const u32 have = __ballot_sync(~0u, key[k] >> b & 1); peers &= key[k] >> b & 1 ? have : ~have; }
        before[k] = __popc(peers & ((1u << lane) - 1));
        if (in && before[k] == 0) count[(32 * k + warp) * bins + key[k]] = (unsigned short)__popc(peers);
    }
    __syncthreads();
    if (tid < bins) {
        u32 sum = 0;
#pragma unroll 8
        for (u32 r = 0; r < rows; r++) { const u32 c = count[r * bins + tid]; count[r * bins + tid] = (unsigned short)sum; sum += c; }
#pragma unroll
        for (u32 b = 0; b < kClusterBlocks; b++) put_in_block(&s.part[rank][tid], b, sum);
    }
    cluster_arrive();
    cluster_wait();
    u32 total = 0, earlier = 0;
    if (tid < bins)
#pragma unroll
        for (u32 b = 0; b < kClusterBlocks; b++) { const u32 c = s.part[b][tid]; total += c; earlier += b < rank ? c : 0; }
    u32 sum = total;
    for (u32 d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, sum, d); if (lane >= d) sum += y; }
    if (lane == 31) s.warp[warp] = sum;
    __syncthreads();
    if (warp * 32 < bins) {
        const u32 start = __reduce_add_sync(~0u, lane < warp ? s.warp[lane] : 0) + sum - total;
        if (tid < bins) { s.start[tid] = start; s.base[tid] = start + earlier; }
    }
    if (tid == 0) s.start[bins] = n;
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < ITEMS; k++) {
        const u32 i = first + k * kClusterThreads;
        if (i >= end) break;
        u32 level = 0;
        for (int l = 0; l < (int)f.max_level; l++) level += splits_at(f, t, s, key[k] >> 3 * ((int)f.max_level - l), l);
        t.order_other[s.base[key[k]] + count[(32 * k + warp) * bins + key[k]] + before[k]] = key[k] << kKeyShift | level << kIndexBits | i;
    }
    cluster_cells(f, t, s);
}

// Grid: (8, 2) of 1024 threads in clusters of (8, 1), y = 0 the sources, 1 the targets; dynamic shared memory: 64 bytes for each
// cell of the deepest level, twice that for trees of more than 8192 points.
__device__ inline void cluster_trees(const Fmm &f, unsigned short *count) {
    __shared__ ClusterTree s;
    const u32 n = count_of(f.tree[blockIdx.y]), most = max(n, count_of(f.tree[1 - blockIdx.y]));
    const u32 part = ((n + kClusterBlocks - 1) / kClusterBlocks + 31) / 32 * 32;
    if (most <= kClusterBlocks * kClusterThreads) cluster_tree<1>(f, s, part, count);
    else cluster_tree<2>(f, s, part, count);
}
#endif

// Counters to zero: all of the state but what the first launch left and what finish_tiles writes; by the blocks from the second on.
__device__ inline void finish_clear(const Fmm &f) {
    u32 *words = (u32 *)f.state;
    for (u32 w = (blockIdx.x - 1) * 256 + threadIdx.x; w < sizeof(State) / 4; w += (gridDim.x - 1) * 256) {
        const u32 at = 4 * w;
        const bool found = at < offsetof(State, parts) || (at >= offsetof(State, longest) && at < offsetof(State, sort_ticket));
        const bool table = at >= offsetof(State, tree_flags) && at < offsetof(State, histogram) + sizeof(State::histogram);
        if (!found && !table) words[w] = 0;
    }
}

// Target cells by level and octant, by one block of 256 threads.
__device__ inline void finish_tiles(const Fmm &f) {
    __shared__ u32 bin[32], cursor[32];
    State &s = *f.state;
    const u32 i = threadIdx.x, cells = s.level_begin[1][kLevels];
    u32 info[3];
    for (u32 k = 0; k < 3; k++) { const u32 c = k * 256 + i; info[k] = c < cells ? f.tree[1].info[c] : 0; }
    if (i == 0) s.flags = s.tree_flags[0] | s.tree_flags[1];
    if (i >= 32 && i < kBins) s.bin_count[i] = s.bin_cursor[i] = 0;
    if (i < 32) bin[i] = 0;
    __syncthreads();
    for (u32 k = 0; k < 3; k++) if (k * 256 + i < cells) atomicAdd(&bin[info_level(info[k]) * 8 + info_octant(info[k])], 1u);
    __syncthreads();
    if (i < 32) {
        const u32 v = bin[i];
        u32 x = v;
        for (u32 d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, x, d); if (i >= d) x += y; }
        cursor[i] = x - v;
        s.bin_count[i] = s.bin_cursor[i] = v;
    }
    __syncthreads();
    for (u32 k = 0; k < 3; k++) if (k * 256 + i < cells) f.tile_cell[atomicAdd(&cursor[info_level(info[k]) * 8 + info_octant(info[k])], 1u)] = k * 256 + i;
}

// The second launch. y = 0: source cells beside the target cells; 1 and 2: the trees' points in their order; 3: tiles, counters.
// Launch: 256 threads, grid-stride, at least two blocks in x.
template <class T> __device__ void cluster_finish(const Fmm &f) {
    const u32 first = blockIdx.x * 256 + threadIdx.x, step = gridDim.x * 256;
    if (blockIdx.y == 3) {
        if (blockIdx.x) finish_clear(f);
        else finish_tiles(f);
        return;
    }
    if (blockIdx.y == 0) {
        const u32 cells = f.state->level_begin[1][kLevels];
        for (u32 w = first; w < cells * kBeside; w += step) f.near[w] = find_in_table(f, w / kBeside, (int)(w % kBeside));
        return;
    }
    const int tree = blockIdx.y - 1;
    const Tree &t = f.tree[tree];
    const u32 n = count_of(t);
    for (u32 i = first; i < n; i += step) {
        const u32 v = t.order_other[i], from = v & kIndexMask;
        t.key[i] = v >> kKeyShift; t.order[i] = from; t.leaf_level[i] = (uint8_t)(v >> kIndexBits & 3);
        Sorted<T>(f, tree, from, f.state->root).put(f, tree, i);
    }
}

} // namespace fmm

// The code for other GPUs has none of these: nothing looks for them there.
#if !defined(WFMM_EMULATED) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
extern "C" __global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(1024) fmm_cluster_trees(const __grid_constant__ fmm::Fmm f) {
#ifdef __CUDA_ARCH__
    extern __shared__ __align__(16) unsigned char memory[];
    fmm::cluster_trees(f, (unsigned short *)memory);
#endif
}
extern "C" __global__ void __launch_bounds__(256) fmm_cluster_finish_f32(const __grid_constant__ fmm::Fmm f) { fmm::cluster_finish<float>(f); }
extern "C" __global__ void __launch_bounds__(256) fmm_cluster_finish_f64(const __grid_constant__ fmm::Fmm f) { fmm::cluster_finish<double>(f); }
#endif
