// The trees of a small problem: five short launches instead of a dozen and the clearing of counters. Grid: (blocks, 2), y = 0 the
// sources, 1 the targets. What is left in memory is that of fmm_tree.cu, number by number.
//
// A point is one number, its key above its index in the caller's array: blocks sort 512 of them each, and a search in the other
// blocks' gives every point its rank among all. One block a tree then looks at all cells that there can be, numbered level by
// level along the Morton curve: those that hold points and whose parents are split exist, and keep that order.
#pragma once
#include "fmm_tree.cuh"

namespace fmm {

constexpr int kIndexBits = 14, kSmallLevels = 4;           // at most 16384 points a tree; a level more would be eight times the cells
constexpr u32 kSmallCells = 4681, kRun = 512, kBoxed = 256; // cells of levels 0..4; points that a block sorts, that a box holds

__device__ inline double larger(double a, double b) { return b > a ? b : a; }

// Boxes of 256 points and the extreme cores in them; clears the state but for what fmm_segments left. Launch: 256 threads.
__device__ inline void small_boxes(const Fmm &f) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t), lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 *words = (u32 *)f.state;
    for (u32 w = (blockIdx.y * gridDim.x + blockIdx.x) * 256 + threadIdx.x; w < sizeof(State) / 4; w += 512 * gridDim.x)
        if (w - offsetof(State, longest) / 4 >= 4) words[w] = 0;
    if (blockIdx.x * kBoxed >= n) return;
    __shared__ double s[8][8];
    double x[3], core[2] = {-1e308, -1e308};
    // Value i is of axis i % 3: value k of this thread of axis (thread + k) % 3.
    const u32 base = 3 * kBoxed * blockIdx.x, i = kBoxed * blockIdx.x + threadIdx.x;
    for (int k = 0; k < 3; k++) { const u32 at = base + k * 256 + threadIdx.x; x[k] = at < 3 * n ? input(t.x, t.x_is_f64, at) : NAN; }
    if (blockIdx.y == 0 && f.kind != kCharge && f.regularization && i < n) {
        core[1] = f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, i) : f.default_core;
        core[0] = -core[1];
    }
    const int first = threadIdx.x % 3;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const int from = (k % 3 + 3 - first) % 3;
        const double v = from == 0 ? x[0] : from == 1 ? x[1] : x[2];
        double m = larger(-1e308, k < 3 ? v : k < 6 ? -v : core[k - 6]);
        for (int d = 16; d; d >>= 1) m = larger(m, __shfl_xor_sync(~0u, m, d));
        if (lane == 0) s[warp][k] = m;
    }
    __syncthreads();
    if (threadIdx.x < 8) {
        double m = s[0][threadIdx.x];
        for (int w = 1; w < 8; w++) m = larger(m, s[w][threadIdx.x]);
        ((double *)t.key_other)[8 * blockIdx.x + threadIdx.x] = m;
    }
}

// The root cube from all boxes, by all threads of a block; its first block leaves it and the extreme cores in the state.
__device__ inline Root small_root(const Fmm &f) {
    __shared__ double box[8];
    __shared__ Root root;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (warp < 8) {
        double m = -1e308;
        for (int y = 0; y < 2; y++)
            for (u32 b = lane; b < (count_of(f.tree[y]) + kBoxed - 1) / kBoxed; b += 32) m = larger(m, ((const double *)f.tree[y].key_other)[8 * b + warp]);
        for (int d = 16; d; d >>= 1) m = larger(m, __shfl_xor_sync(~0u, m, d));
        if (lane == 0) box[warp] = m;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const double low[3] = {-box[3], -box[4], -box[5]};
        root = make_root(f, low, box);
        if (blockIdx.x == 0 && blockIdx.y == 0) {
            f.state->root = root;
            if (box[7] > -1e308) { f.state->least_core = ordered(box[6]); f.state->most_core = ordered(box[7]); }
        }
    }
    __syncthreads();
    return root;
}

// Sorts the numbers of a block's threads: each warp its own, then pairs of sorted runs become one until all are.
__device__ inline u32 sort_run(u32 v, u32 (*s)[kRun]) {
    const u32 i = threadIdx.x;
    for (u32 k = 2; k <= 32; k *= 2)
        for (u32 j = k / 2; j; j /= 2) {
            const u32 o = __shfl_xor_sync(~0u, v, j);
            v = ((i & j) == 0) == ((i & k & 31) == 0) ? min(v, o) : max(v, o);
        }
#pragma unroll
    for (u32 wide = 32; wide < kRun; wide *= 2) {
        s[0][i] = v;
        __syncthreads();
        // Equal numbers, which stand for no point, keep the order of their runs.
        const u32 *other = s[0] + ((i / wide ^ 1) * wide), late = i / wide & 1;
        u32 before = 0;
#pragma unroll
        for (u32 step = wide / 2; step; step /= 2) if (other[before + step - 1] < v + late || (late && v == ~0u)) before += step;
        before += other[before] < v + late || (late && v == ~0u);
        s[1][i / (2 * wide) * 2 * wide + i % wide + before] = v;
        __syncthreads();
        v = s[1][i];
    }
    return v;
}

// Keys, sorted in runs of 512. Launch: 512 threads, a block for each 512 points.
__device__ inline void small_keys(const Fmm &f) {
    const Tree &t = f.tree[blockIdx.y];
    __shared__ u32 s[2][kRun];
    const u32 n = count_of(t), i = blockIdx.x * kRun + threadIdx.x;
    if (blockIdx.x > 0 && blockIdx.x * kRun >= n) return; // the first block of an empty tree still makes the root
    double x[3];
    for (int k = 0; k < 3; k++) x[k] = i < n ? input(t.x, t.x_is_f64, 3 * (size_t)i + k) : 0;
    const Root r = small_root(f);
    const u32 v = sort_run(i < n ? (u32)Cells(r, f.max_level).key_of(r, x) << kIndexBits | i : ~0u, s);
    if (i < n) t.order_other[i] = v;
}

// The first n numbers to shared memory, and ones behind them up to `all`, a multiple of 512.
template <u32 THREADS> __device__ inline void take_up(u32 *to, const u32 *from, u32 n, u32 all) {
#pragma unroll 8
    for (u32 k = 4 * threadIdx.x; k < all; k += 4 * THREADS) {
        uint4 v = make_uint4(~0u, ~0u, ~0u, ~0u);
        if (k + 4 <= n) v = *(const uint4 *)(from + k);
        else if (k < n) { v.x = from[k]; if (k + 1 < n) v.y = from[k + 1]; if (k + 2 < n) v.z = from[k + 2]; }
        *(uint4 *)(to + k) = v;
    }
}

// Every point to its rank among all, with its core and strength: four threads search the runs in turn. Launch: 256 threads, a block
// for each 64 points; dynamic shared memory: 4 bytes for each point of the larger tree, in whole runs.
template <class T> __device__ void small_ranks(const Fmm &f, u32 *all) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t), i = blockIdx.x * 64 + threadIdx.x / 4, runs = (n + kRun - 1) / kRun;
    if (blockIdx.x * 64 >= n) return;
    take_up<256>(all, t.order_other, n, runs * kRun);
    const Root r = f.state->root;
    __syncthreads();
    const u32 v = all[min(i, n - 1)], from = v & ((1u << kIndexBits) - 1);
    const Sorted<T> point(f, blockIdx.y, from, r);
    u32 rank = 0;
#pragma unroll 2
    for (u32 q = threadIdx.x & 3; q < runs; q += 4) {
        const u32 *run = all + q * kRun;
        u32 before = 0;
#pragma unroll
        for (u32 step = kRun / 2; step; step /= 2) if (run[before + step - 1] < v) before += step;
        rank += before + (run[before] < v);
    }
    rank += __shfl_xor_sync(~0u, rank, 1);
    rank += __shfl_xor_sync(~0u, rank, 2);
    if (i >= n || threadIdx.x & 3) return;
    const u32 key = v >> kIndexBits;
    t.key[rank] = key; t.order[rank] = from;
    ((u32 *)t.key_other)[rank] = key;
    point.put(f, blockIdx.y, rank);
}

// A cell that there can be: `id` counts them level by level.
struct Possible {
    int level;
    u32 first, key; // id of its level's first cell
    __device__ explicit Possible(u32 id) : level(id >= 585 ? 4 : id >= 73 ? 3 : id >= 9 ? 2 : id >= 1 ? 1 : 0), first(id >= 585 ? 585 : id >= 73 ? 73 : id >= 9 ? 9 : id >= 1 ? 1 : 0), key(id - first) {}
    __device__ u32 parent() const { return level ? first / 8 + (key >> 3) : 0; }
    __device__ u32 child(u32 octant) const { return 8 * first + 1 + 8 * key + octant; }
};

// Index of a cell of the sources among their cells, plus one, in memory that this way of sorting leaves unused: [kSmallCells].
__device__ inline unsigned short *small_table(const Fmm &f) { return (unsigned short *)f.state->histogram; }
static_assert(2 * kSmallCells <= sizeof(State::histogram), "room for the table");

struct SmallCells {
    unsigned short start[kSmallCells + 1], rank[kSmallCells]; // first point not before a cell; its rank among the cells plus one
    u32 bin[kBins], cursor[kBins], warp[32], begin[kLevels + 2];
    int most, overflow;

    // Where the points of a cell end; of level 4 only the children of cells that split are known.
    __device__ u32 end(u32 id, const Possible &p, u32 n) const {
        if (p.level == kSmallLevels && (p.key & 7) == 7) { const u32 up = p.parent(); return end(up, Possible(up), n); }
        return p.key + 1 == 1u << 3 * p.level ? n : start[id + 1];
    }
    __device__ bool splits(const Fmm &f, const Tree &t, int level, u32 size) const { return level < most && (size > t.capacity || level < (int)f.least_level); }
};

// Sums over the threads before; `total` of all.
__device__ inline u32 count_before(bool is, u32 *warps, u32 *total) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, ballot = __ballot_sync(~0u, is);
    if (lane == 0) warps[warp] = __popc(ballot);
    __syncthreads();
    u32 w = warps[lane];
    for (int d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, w, d); if ((int)lane >= d) w += y; }
    const u32 before = __shfl_sync(~0u, w, (warp + 31) % 32);
    *total = __shfl_sync(~0u, w, 31);
    return (warp ? before : 0) + __popc(ballot & ((1u << lane) - 1));
}

// Which cells exist, and their order: levels 0 to 3 at once, then as many of level 4 at a time. Returns how many there are.
__device__ inline u32 number_cells(const Fmm &f, const Tree &t, SmallCells &s, const u32 *key, u32 n, u32 ids) {
    u32 running = 0;
    for (u32 base = 0, next; base < ids; base = next) {
        next = min(base ? base + 1024 : 585, ids);
        const u32 id = base + threadIdx.x;
        const Possible p(id);
        const bool in = id < next;
        u32 low = 0, high = n;
        bool is = in;
        if (base) {
            const u32 up = in ? p.parent() : 0;
            const Possible q(up);
            low = s.start[up]; high = s.end(up, q, n);
            is = in && s.rank[up] && s.splits(f, t, q.level, high - low);
            if (!__syncthreads_or(is)) { if (in) s.rank[id] = 0; if (in && p.key == 0) s.begin[p.level] = running; continue; }
        }
        if (is) s.start[id] = (unsigned short)lower_bound(key, low, high, p.key << 3 * ((int)f.max_level - p.level));
        __syncthreads();
        if (is) {
            const u32 size = s.end(id, p, n) - s.start[id];
            is = size > 0;
            if (is && p.level && !base) { const u32 up = p.parent(); const Possible q(up); is = s.splits(f, t, q.level, s.end(up, q, n) - s.start[up]); }
            if (is && p.level == (int)f.max_level && size > t.capacity) s.overflow = 1;
        }
        u32 total;
        const u32 before = running + count_before(is, s.warp, &total);
        if (in) { s.rank[id] = is ? before + 1 : 0; if (p.key == 0) s.begin[p.level] = before; }
        running += total;
        __syncthreads();
    }
    __syncthreads();
    return running;
}

__device__ inline void put_cell(const Fmm &f, const Tree &t, SmallCells &s, u32 id, u32 n) {
    const Possible p(id);
    const u32 c = s.rank[id] - 1, begin = s.start[id], end = s.end(id, p, n);
    const int octant = p.level ? (int)(p.key & 7) : 0;
    u32 info = p.level | octant << 6, child = kNone;
    if (s.splits(f, t, p.level, end - begin)) {
        for (int o = 7; o >= 0; o--)
            if (const u32 at = s.rank[p.child(o)]) { info |= 1u << (16 + o); child = at - 1; }
    } else info |= 1u << 5;
    t.begin[c] = begin; t.end[c] = end; t.cell_key[c] = p.key; t.info[c] = info; t.child[c] = child;
    t.parent[c] = p.level ? s.rank[p.parent()] - 1 : kNone;
    if (blockIdx.y == 0) f.cell_core[c] = f.cell_core[f.tree[0].cell_capacity + c] = 0;
    else atomicAdd(&s.bin[p.level * 8 + octant], 1u);
}

// Target cells by level and octant.
__device__ inline void put_tiles(const Fmm &f, SmallCells &s, u32 ids) {
    if (threadIdx.x < kBins) f.state->bin_count[threadIdx.x] = f.state->bin_cursor[threadIdx.x] = s.bin[threadIdx.x];
    if (threadIdx.x < 32) {
        // Only levels 0..4 have cells: 40 of the bins.
        const u32 a = s.bin[threadIdx.x], b = threadIdx.x < 8 ? s.bin[32 + threadIdx.x] : 0;
        u32 x = a, y = b;
        for (u32 d = 1; d < 32; d <<= 1) { const u32 v = __shfl_up_sync(~0u, x, d), w = __shfl_up_sync(~0u, y, d); if (threadIdx.x >= d) { x += v; y += w; } }
        s.cursor[threadIdx.x] = x - a;
        const u32 all = __shfl_sync(~0u, x, 31);
        if (threadIdx.x < 8) s.cursor[32 + threadIdx.x] = all + y - b;
    }
    __syncthreads();
    for (u32 id = threadIdx.x; id < ids; id += 1024)
        if (const u32 at = s.rank[id]) {
            const Possible p(id);
            f.tile_cell[atomicAdd(&s.cursor[p.level * 8 + (p.level ? p.key & 7 : 0)], 1u)] = at - 1;
        }
}

// The cells. Launch: 1024 threads, one block a tree; dynamic shared memory as for the ranks.
__device__ inline void small_cells(const Fmm &f, u32 *key) {
    __shared__ SmallCells s;
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t), ids = ((8u << 3 * f.max_level) - 1) / 7;
    take_up<1024>(key, (const u32 *)t.key_other, n, (n + kRun - 1) / kRun * kRun);
    if (threadIdx.x < kBins) s.bin[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        s.overflow = 0;
        s.most = blockIdx.y == 0 ? deepest_leaf(f, -unordered(f.state->least_core), unordered(f.state->most_core), f.state->root) : f.max_level;
    }
    __syncthreads();
    const u32 cells = number_cells(f, t, s, key, n, ids);
    const bool fits = cells <= t.cell_capacity;
    if (threadIdx.x < kLevels + 2) f.state->level_begin[blockIdx.y][threadIdx.x] = !fits ? 0 : threadIdx.x <= f.max_level ? s.begin[threadIdx.x] : cells;
    if (threadIdx.x == 0) {
        u32 deepest = 0;
        for (u32 l = 1; l <= f.max_level; l++) if (s.begin[l] < cells) deepest = l;
        f.state->cells[blockIdx.y] = cells; f.state->deepest[blockIdx.y] = deepest;
        const u32 flags = (fits ? 0 : kCellsOverflow) | (s.overflow ? kDepthOverflow : 0);
        if (flags) atomicOr(&f.state->flags, flags);
    }
    if (!fits) return;
    for (u32 id = threadIdx.x; id < ids; id += 1024) {
        if (s.rank[id]) put_cell(f, t, s, id, n);
        if (blockIdx.y == 0) small_table(f)[id] = s.rank[id];
    }
    __syncthreads();
    if (blockIdx.y == 1) put_tiles(f, s, ids);
}

// Source cell at offset `o` beside a target cell, or kNone.
__device__ inline u32 find_in_table(const Fmm &f, u32 c, int o) {
    const Tree &t = f.tree[1];
    const int level = info_level(t.info[c]), side = 1 << level;
    int x[3], d[3];
    unmorton(t.cell_key[c], x);
    beside(o, d);
    for (int k = 0; k < 3; k++) x[k] += d[k];
    if (x[0] < 0 || x[1] < 0 || x[2] < 0 || x[0] >= side || x[1] >= side || x[2] >= side) return kNone;
    return (u32)small_table(f)[((1u << 3 * level) - 1) / 7 + (u32)morton(x[0], x[1], x[2])] - 1;
}

// y = 0: source cells beside the target cells; y = 1: the points' leaf levels. Launch: 256 threads, grid-stride.
__device__ inline void small_lists(const Fmm &f) {
    const u32 first = blockIdx.x * 256 + threadIdx.x, step = gridDim.x * 256;
    if (blockIdx.y == 0) {
        const u32 cells = f.state->level_begin[1][kLevels];
        for (u32 w = first; w < cells * kBeside; w += step) f.near[w] = find_in_table(f, w / kBeside, (int)(w % kBeside));
        return;
    }
    const u32 sources = f.state->level_begin[0][kLevels], all = sources + f.state->level_begin[1][kLevels];
    for (u32 k = first / 32; k < all; k += step / 32) {
        const Tree &t = f.tree[k >= sources];
        const u32 c = k >= sources ? k - sources : k, info = t.info[c];
        if (info_leaf(info)) for (u32 i = t.begin[c] + first % 32, end = t.end[c]; i < end; i += 32) t.leaf_level[i] = (uint8_t)info_level(info);
    }
}

} // namespace fmm

extern "C" __global__ void __launch_bounds__(256) fmm_small_boxes(const __grid_constant__ fmm::Fmm f) { fmm::small_boxes(f); }
extern "C" __global__ void __launch_bounds__(512) fmm_small_keys(const __grid_constant__ fmm::Fmm f) { fmm::small_keys(f); }
#define SMALL(name, THREADS, BODY) \
    extern "C" __global__ void __launch_bounds__(THREADS) fmm_small_##name(const __grid_constant__ fmm::Fmm f) { extern __shared__ __align__(16) unsigned char memory[]; BODY(f, (fmm::u32 *)memory); }
SMALL(ranks_f32, 256, fmm::small_ranks<float>)
SMALL(ranks_f64, 256, fmm::small_ranks<double>)
SMALL(cells, 1024, fmm::small_cells)
extern "C" __global__ void __launch_bounds__(256) fmm_small_lists(const __grid_constant__ fmm::Fmm f) { fmm::small_lists(f); }
