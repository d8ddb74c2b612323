// Points to tree: bounding box, Morton keys, radix sort, cells. Grid: (blocks, 2), y = 0 the sources, 1 the targets.
//
// Enters: the caller's positions. Leaves: sorted points and the occupied cells of every level. No array of all cells of a
// level, no host round trip: a point of the sorted array is in a leaf at level 1 + (deepest cell with more than `capacity`
// points around it), which a sliding maximum over windows of capacity + 1 points gives for all points at once.
#include "fmm_tree.cuh"
#include "fmm_cluster.cuh"
using namespace fmm;

// Launch: 256 threads, any number of blocks.
extern "C" __global__ void __launch_bounds__(256) fmm_bounds(const __grid_constant__ Fmm f) {
    const Tree &t = f.tree[blockIdx.y];
    if (t.n_device) return; // fmm_segments.cu has looked at them
    const u32 n = count_of(t);
    double m[6];
    for (int k = 0; k < 6; k++) m[k] = -1e308;
    bool any = false;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        any = true;
        for (int k = 0; k < 3; k++) {
            const double x = input(t.x, t.x_is_f64, 3 * (size_t)i + k);
            m[k] = fmax(m[k], x); m[3 + k] = fmax(m[3 + k], -x);
        }
    }
    if (!__syncthreads_or(any)) return;
    __shared__ double s[8][6];
    for (int k = 0; k < 6; k++)
        for (int d = 16; d; d >>= 1) m[k] = fmax(m[k], __shfl_xor_sync(~0u, m[k], d));
    if (threadIdx.x % 32 == 0) for (int k = 0; k < 6; k++) s[threadIdx.x / 32][k] = m[k];
    __syncthreads();
    if (threadIdx.x < 6) {
        double x = s[0][threadIdx.x];
        for (int w = 1; w < 8; w++) x = fmax(x, s[w][threadIdx.x]);
        atomicMax(threadIdx.x < 3 ? &f.state->upper[threadIdx.x] : &f.state->lower[threadIdx.x - 3], ordered(x));
    }
}

// The least and the largest core of the sources. Expansions are singular: in cells smaller than all cores their sums would be far larger than
// the field, which the core correction could only recover with the digits that truncation took.
__device__ void core_bounds(const Fmm &f, u32 n) {
    double least = -1e308, most = -1e308;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        const double c = f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, i) : f.default_core;
        least = fmax(least, -c); most = fmax(most, c);
    }
    for (int d = 16; d; d >>= 1) { least = fmax(least, __shfl_xor_sync(~0u, least, d)); most = fmax(most, __shfl_xor_sync(~0u, most, d)); }
    if ((threadIdx.x & 31) == 0 && most > -1e308) { atomicMax(&f.state->least_core, ordered(least)); atomicMax(&f.state->most_core, ordered(most)); }
}

// Keys and the histograms of all their digits. Launch: 256 threads, any number of blocks.
extern "C" __global__ void __launch_bounds__(256) fmm_keys(const __grid_constant__ Fmm f) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t);
    __shared__ u32 h[8][256];
    for (u32 p = 0; p < f.sort_passes; p++) h[p][threadIdx.x] = 0;
    // Beside a tree of sources that is kept its root cube is too: the kernels for small problems leave no bounds.
    const bool kept = f.tree[0].n == 0;
    double low[3], high[3];
    for (int k = 0; k < 3; k++) { high[k] = unordered(f.state->upper[k]); low[k] = -unordered(f.state->lower[k]); }
    const Root r = kept ? f.state->root : make_root(f, low, high);
    if (blockIdx.y == 0 && f.kind != kCharge && f.regularization && !t.n_device) core_bounds(f, n);
    if (!kept && blockIdx.x == 0 && threadIdx.x == 0 && blockIdx.y == 0) f.state->root = r;
    __syncthreads();
    const Cells cells(r, f.max_level);
    u64 *key = f.sort_passes & 1 ? t.key_other : t.key;
    u32 *order = f.sort_passes & 1 ? t.order_other : t.order;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        double x[3];
        for (int k = 0; k < 3; k++) x[k] = input(t.x, t.x_is_f64, 3 * (size_t)i + k);
        const u64 v = cells.key_of(r, x);
        key[i] = v; order[i] = i;
        for (u32 p = 0; p < f.sort_passes; p++) atomicAdd(&h[p][v >> 8 * p & 255], 1u);
    }
    __syncthreads();
    for (u32 p = 0; p < f.sort_passes; p++)
        if (h[p][threadIdx.x]) atomicAdd(&f.state->histogram[blockIdx.y][p][threadIdx.x], h[p][threadIdx.x]);
}

// Exclusive scan over the 256 threads of a block.
__device__ inline u32 block_scan_256(u32 v, u32 *s) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 x = v;
    for (int d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, x, d); if (lane >= d) x += y; }
    if (lane == 31) s[warp] = x;
    __syncthreads();
    u32 base = 0;
    for (int w = 0; w < warp; w++) base += s[w];
    __syncthreads();
    return base + x - v;
}

// Lanes with the same digit. Bit by bit: __match_any_sync takes a turn for each different value, here some thirty.
__device__ inline u32 peers_of(u32 digit) {
    u32 peers = ~0u;
#pragma unroll
    for (int b = 0; b < 8; b++) {
        const u32 have = __ballot_sync(~0u, digit >> b & 1);
        peers &= digit >> b & 1 ? have : ~have;
    }
    return peers;
}

// One pass of a stable radix sort by 8 bits, with decoupled look-back: every block counts its digits, publishes the counts and
// adds up those of the blocks before it. The block's points are put in order in shared memory first: written out from there,
// those of a digit follow one another. Launch: 256 threads, a block for each 2048 points. The result does not depend on timing.
constexpr int kItems = 8;
extern "C" __global__ void __launch_bounds__(256) fmm_sort(const __grid_constant__ Fmm f, u32 pass) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t);
    constexpr u32 kTile = 256 * kItems;
    __shared__ u64 keys[kTile];
    __shared__ u32 orders[kTile]; // at first the counts of the warps
    __shared__ u32 scan[8], tile_shared, to_global[256];
    u32 (*count)[256] = (u32 (*)[256])orders;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    if (tid == 0) tile_shared = atomicAdd(&f.state->sort_ticket[blockIdx.y][pass], 1u);
    for (int w = 0; w < 8; w++) count[w][tid] = 0;
    __syncthreads();
    const u32 tile = tile_shared, base = tile * kTile + warp * 32 * kItems + lane;
    if (tile * kTile >= n) return;
    const bool odd = (f.sort_passes - pass) & 1;
    const u64 *key_in = odd ? t.key_other : t.key;
    const u32 *order_in = odd ? t.order_other : t.order;
    u64 *key_out = odd ? t.key : t.key_other;
    u32 *order_out = odd ? t.order : t.order_other;
    const int shift = 8 * pass;
    u64 key[kItems]; u32 order[kItems]; unsigned short rank[kItems];
#pragma unroll
    for (int k = 0; k < kItems; k++) {
        const u32 i = base + k * 32;
        key[k] = i < n ? key_in[i] : ~0ull;
        order[k] = i < n ? order_in[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < kItems; k++) {
        const u32 digit = (u32)(key[k] >> shift) & 255;
        const u32 peers = peers_of(digit), before = __popc(peers & ((1u << lane) - 1));
        const u32 old = count[warp][digit];
        __syncwarp();
        if (before == 0) count[warp][digit] = old + __popc(peers);
        __syncwarp();
        rank[k] = old + before;
    }
    __syncthreads();
    u32 sum = 0;
    for (int w = 0; w < 8; w++) { const u32 c = count[w][tid]; count[w][tid] = sum; sum += c; }
    u32 *status = t.sort_status + ((size_t)pass * ((t.n + kTile - 1) / kTile)) * 256;
    volatile u32 *mine = status + (size_t)tile * 256 + tid;
    constexpr u32 kPart = 1u << 30, kWhole = 2u << 30, kMask = kPart - 1;
    *mine = (tile ? kPart : kWhole) | sum;
    const u32 local = block_scan_256(sum, scan); // slot in the tile of the first with this digit
    for (int w = 0; w < 8; w++) count[w][tid] += local;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; k++) rank[k] += count[warp][(u32)(key[k] >> shift) & 255];
    __syncthreads(); // the counts make room
#pragma unroll
    for (int k = 0; k < kItems; k++) { keys[rank[k]] = key[k]; orders[rank[k]] = order[k]; }
    const u32 start = block_scan_256(f.state->histogram[blockIdx.y][pass][tid], scan);
    u32 before = 0;
    for (u32 p = tile; p-- > 0;) {
        volatile u32 *other = status + (size_t)p * 256 + tid;
        u32 s;
        while (!((s = *other) >> 30)) {}
        before += s & kMask;
        if (s >> 31) break;
    }
    if (tile) *mine = kWhole | (before + sum);
    to_global[tid] = start + before - local;
    __syncthreads();
    // Neighbours in the tile have neighbouring slots.
    const u32 here = min(n - tile * kTile, kTile);
    for (u32 i = tid; i < here; i += 256) {
        const u64 k = keys[i];
        const u32 to = to_global[(u32)(k >> shift) & 255] + i;
        key_out[to] = k; order_out[to] = orders[i];
    }
}

// Levels at which a cell starts at sorted point i: first..last (empty if first > last).
__device__ inline void starts(const Tree &t, u32 i, u32 n, int levels, int *first, int *last) {
    *first = 1; *last = 0;
    if (i >= n) return;
    *first = i ? common_level(t.key[i - 1], t.key[i], levels) + 1 : 0;
    *last = t.leaf_level[i];
}

// Leaf level of every point, and how many cells of each level start in each block of 1024 points. Launch: 1024 threads.
constexpr int kMaxCapacity = 1024;
extern "C" __global__ void __launch_bounds__(1024) fmm_leaves(const __grid_constant__ Fmm f) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t), base = blockIdx.x * 1024;
    if (base >= n) return;
    __shared__ signed char window[2][1024 + kMaxCapacity];
    __shared__ u32 count[kLevels];
    const int levels = f.max_level, cap = t.capacity, width = 1024 + cap;
    if (threadIdx.x < kLevels) count[threadIdx.x] = 0;
    for (int w = threadIdx.x; w < width; w += 1024) {
        const long long j = (long long)base - cap + w;
        window[0][w] = j >= 0 && j + cap < n ? (signed char)common_level(t.key[j], t.key[j + cap], levels) : -1;
    }
    __syncthreads();
    int now = 0, span = 1;
    for (; 2 * span <= cap + 1; span *= 2) {
        for (int w = threadIdx.x; w < width; w += 1024)
            window[1 - now][w] = w + span < width ? max(window[now][w], window[now][w + span]) : window[now][w];
        __syncthreads();
        now = 1 - now;
    }
    const u32 i = base + threadIdx.x;
    if (i < n) {
        const int a = threadIdx.x, deepest = max(window[now][a], window[now][a + cap + 1 - span]);
        const int most = blockIdx.y == 0 ? deepest_leaf(f, -unordered(f.state->least_core), unordered(f.state->most_core), f.state->root) : levels;
        if (deepest >= levels && levels < 21 && most == levels) atomicOr(&f.state->flags, kDepthOverflow);
        // Never much coarser than a uniform cloud's leaves: a lonely target must not have a whole dense region beside it.
        t.leaf_level[i] = (uint8_t)min(max(deepest + 1, (int)f.least_level), most);
    }
    __syncthreads();
    int first, last;
    starts(t, i, n, levels, &first, &last);
    for (int l = first; l <= last; l++) atomicAdd(&count[l], 1u);
    __syncthreads();
    if (threadIdx.x < kLevels) t.block_count[(size_t)blockIdx.x * kLevels + threadIdx.x] = count[threadIdx.x];
}

// First cell of each level, and of each level in each block. Launch: one block a tree, 32 * kLevels threads.
extern "C" __global__ void __launch_bounds__(32 * kLevels) fmm_scan(const __grid_constant__ Fmm f) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t), blocks = (n + 1023) / 1024;
    const int lane = threadIdx.x & 31, level = threadIdx.x >> 5;
    __shared__ u32 total[kLevels], begin[kLevels + 1];
    u32 sum = 0;
    for (u32 b = lane; b < blocks; b += 32) sum += t.block_count[(size_t)b * kLevels + level];
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) total[level] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 *out = f.state->level_begin[blockIdx.y];
        u32 x = 0, deepest = 0;
        for (int l = 0; l < kLevels; l++) { begin[l] = x; out[l] = x; x += total[l]; if (total[l]) deepest = l; }
        f.state->cells[blockIdx.y] = x;
        const bool fits = x <= t.cell_capacity;
        if (!fits) { atomicOr(&f.state->flags, kCellsOverflow); for (int l = 0; l < kLevels; l++) out[l] = 0; }
        out[kLevels] = out[kLevels + 1] = fits ? x : 0;
        f.state->deepest[blockIdx.y] = deepest;
    }
    __syncthreads();
    u32 running = begin[level];
    for (u32 b0 = 0; b0 < blocks; b0 += 32) {
        const u32 b = b0 + lane;
        const u32 v = b < blocks ? t.block_count[(size_t)b * kLevels + level] : 0;
        u32 x = v;
        for (int d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, x, d); if (lane >= d) x += y; }
        if (b < blocks) t.block_count[(size_t)b * kLevels + level] = running + x - v;
        running += __shfl_sync(~0u, x, 31);
    }
}

// Writes begin, key and level of the cells. Launch: 1024 threads, a block for each 1024 points.
extern "C" __global__ void __launch_bounds__(1024) fmm_cells(const __grid_constant__ Fmm f) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 n = count_of(t), i = blockIdx.x * 1024 + threadIdx.x;
    if (blockIdx.x * 1024 >= n || f.state->level_begin[blockIdx.y][kLevels] == 0) return;
    __shared__ u32 warp_count[kLevels][32];
    const int levels = f.max_level, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int first, last;
    starts(t, i, n, levels, &first, &last);
    for (int l = 0; l <= levels; l++) {
        const u32 b = __ballot_sync(~0u, first <= l && l <= last);
        if (lane == 0) warp_count[l][warp] = __popc(b);
    }
    __syncthreads();
    if (warp <= levels) {
        const u32 v = warp_count[warp][lane];
        u32 x = v;
        for (int d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, x, d); if (lane >= d) x += y; }
        warp_count[warp][lane] = x - v;
    }
    __syncthreads();
    for (int l = 0; l <= levels; l++) {
        const bool mine = first <= l && l <= last;
        const u32 b = __ballot_sync(~0u, mine);
        if (!mine) continue;
        const u32 cell = t.block_count[(size_t)blockIdx.x * kLevels + l] + warp_count[l][warp] + __popc(b & ((1u << lane) - 1));
        t.begin[cell] = i;
        t.cell_key[cell] = t.key[i] >> 3 * (levels - l);
        t.info[cell] = l | (l == last ? 1u << 5 : 0);
    }
}

// End, parent, children and octant of every cell; counts target cells by (level, octant). Launch: 256 threads, grid-stride.
extern "C" __global__ void __launch_bounds__(256) fmm_links(const __grid_constant__ Fmm f) {
    const Tree &t = f.tree[blockIdx.y];
    const u32 *level_begin = f.state->level_begin[blockIdx.y];
    const u32 cells = level_begin[kLevels], n = count_of(t);
    __shared__ u32 bins[kBins];
    for (int k = threadIdx.x; k < kBins; k += 256) bins[k] = 0;
    __syncthreads();
    for (u32 c = blockIdx.x * 256 + threadIdx.x; c < cells; c += gridDim.x * 256) {
        const u32 begin = t.begin[c];
        u32 info = t.info[c] & 63;
        const int level = info_level(info), shift = 3 * (f.max_level - level);
        const u64 key = t.cell_key[c];
        const u32 end = lower_bound(t.key, begin + 1, n, (key + 1) << shift);
        t.end[c] = end;
        const int octant = level ? (int)(key & 7) : 0;
        info |= octant << 6;
        t.parent[c] = level ? lower_bound(t.begin, level_begin[level - 1], level_begin[level], begin + 1) - 1 : kNone;
        t.child[c] = kNone;
        if (!info_leaf(info)) {
            u32 k = lower_bound(t.begin, level_begin[level + 1], level_begin[level + 2], begin);
            t.child[c] = k;
            u32 mask = 0;
            for (; k < level_begin[level + 2] && t.begin[k] < end; k++) mask |= 1u << (t.cell_key[k] & 7);
            info |= mask << 16;
        }
        t.info[c] = info;
        if (blockIdx.y == 0) f.cell_core[c] = f.cell_core[t.cell_capacity + c] = 0;
        if (blockIdx.y == 1) atomicAdd(&bins[level * 8 + octant], 1u);
    }
    __syncthreads();
    if (blockIdx.y == 1)
        for (int k = threadIdx.x; k < kBins; k += 256) if (bins[k]) atomicAdd(&f.state->bin_count[k], bins[k]);
}

// Sorted, scaled positions (both trees), with cores and strengths (sources). Launch: 256 threads, grid-stride.
template <class T> __device__ void gather(const Fmm &f) {
    const u32 n = count_of(f.tree[blockIdx.y]);
    const Root r = f.state->root;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) Sorted<T>(f, blockIdx.y, f.tree[blockIdx.y].order[i], r).put(f, blockIdx.y, i);
}
extern "C" __global__ void __launch_bounds__(256) fmm_gather_f32(const __grid_constant__ Fmm f) { gather<float>(f); }
extern "C" __global__ void __launch_bounds__(256) fmm_gather_f64(const __grid_constant__ Fmm f) { gather<double>(f); }

// Source cells beside every target cell at its level, and the target cells sorted by (level, octant): the sums over a tile do
// not depend on the order of its rows, so atomics may choose it. Launch: 256 threads, grid-stride.
extern "C" __global__ void __launch_bounds__(256) fmm_lists(const __grid_constant__ Fmm f) {
    const Tree &s = f.tree[0], &t = f.tree[1];
    const u32 *source_begin = f.state->level_begin[0];
    const u32 cells = f.state->level_begin[1][kLevels];
    for (u64 w = blockIdx.x * 256 + threadIdx.x; w < (u64)cells * kBeside; w += gridDim.x * 256) {
        const u32 c = (u32)(w / kBeside);
        const int o = (int)(w % kBeside), level = info_level(t.info[c]);
        // Above cells of thirds nothing is beside anything.
        const bool none = in_thirds(f) && level < (int)f.top;
        f.near[w] = none ? kNone : find_beside(s, t, source_begin, c, o, f.period > 0 ? cells_along(f, level) : 0);
    }
    __shared__ u32 base[kBins], count[kBins], from[kBins];
    for (int k = threadIdx.x; k < kBins; k += 256) {
        u32 x = 0;
        for (int b = 0; b < k; b++) x += f.state->bin_count[b];
        base[k] = x;
    }
    for (u32 c0 = blockIdx.x * 256; c0 < cells; c0 += gridDim.x * 256) {
        __syncthreads();
        for (int k = threadIdx.x; k < kBins; k += 256) count[k] = 0;
        __syncthreads();
        const u32 c = c0 + threadIdx.x;
        u32 bin = 0, rank = 0;
        if (c < cells) {
            const u32 info = t.info[c];
            bin = info_level(info) * 8 + info_octant(info);
            rank = atomicAdd(&count[bin], 1u);
        }
        __syncthreads();
        for (int k = threadIdx.x; k < kBins; k += 256) from[k] = count[k] ? atomicAdd(&f.state->bin_cursor[k], count[k]) : 0;
        __syncthreads();
        if (c < cells) f.tile_cell[base[bin] + from[bin] + rank] = c;
    }
}
