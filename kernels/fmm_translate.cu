// M2M and L2L: all levels of a tree in one launch each.
//
// The eight octants' operators are one matrix up to signs: a reflection changes the sign of a coefficient by its class (of eight).
// M2M adds and subtracts the children's coefficients first, a Hadamard transform over octants, and multiplies once: class c of
// the parent takes from coefficient j the sum whose signs are those of c and of j's class together. L2L multiplies the parent's
// coefficients class by class and the eight products, added and subtracted, are what the eight children get.
//
// Work is a tile of 16 rows (5 parents of 3 components, 16 of 1) and a part of the columns, one tile of 8 a warp. It is taken by ticket, M2M
// from the deepest level up, L2L from the top down, and waits until all of the level before is done. That has earlier tickets, so
// blocks that run hold it.
#include "fmm_harmonics.cuh"
#include "fmm_rounded.cuh"
using namespace fmm;

constexpr int kRows = 16, kWarps = 8, kThreads = 32 * kWarps;
constexpr int kChunk = 32; // coefficients that M2M takes at a time
constexpr int kDeep = 5;   // tiles of a class at most
enum Way { kUp = 0, kDown = 1 };

// Which parents a tile is, and their children.
struct ParentTile {
    u32 begin[kLevels + 2];
    u32 child[8][kRows]; // rows of expansions of the parents' children, or kNone
    u32 mask[kRows];     // of a row: which children its cell has; 0: a leaf or none
    u32 first;
    int level, part, count; // count 0: nothing left to do
};

__device__ inline u32 tiles_of(const ParentTile &s, int level, int cells) { return (s.begin[level + 1] - s.begin[level] + cells - 1) / cells; }

// What a block keeps from tile to tile; thread 0's copy is the one that counts.
struct Progress {
    u32 next;
    int deepest, waited; // waited: level that is known to be done
    bool single_level;           // one level of parents at most: no block waits, so tiles need no tickets
};

// False: nothing to do for this block.
template <int WAY> __device__ bool begin(const Fmm &f, ParentTile &s, Progress &progress, int cells, int parts) {
    progress = {blockIdx.x, (int)f.state->deepest[WAY], -1, f.max_level <= 3 && f.top == 2};
    if (progress.single_level) {
        const u32 *level = f.state->level_begin[WAY];
        if (progress.deepest < 3 || progress.next >= (level[3] - level[2] + cells - 1) / cells * parts) return false;
    } else if (threadIdx.x == 0) progress.next = atomicAdd(&f.state->work_ticket[4 + WAY], 1u);
    if (threadIdx.x < kLevels + 2) s.begin[threadIdx.x] = f.state->level_begin[WAY][threadIdx.x];
    if (threadIdx.x < kRows) s.mask[threadIdx.x] = 0;
    if (threadIdx.x < 8 * kRows) s.child[threadIdx.x / kRows][threadIdx.x % kRows] = kNone;
    return true;
}

// Takes up the next tile; false if there is none. All threads.
template <int WAY> __device__ bool next_tile(const Fmm &f, ParentTile &s, Progress &progress, int cells, int parts) {
    const Tree &t = f.tree[WAY];
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 at = progress.next;
        const int top = f.top, bottom = progress.deepest - 1;
        s.count = 0;
        for (int k = top; k <= bottom; k++) {
            const int level = WAY == kUp ? top + bottom - k : k;
            const u32 tiles = tiles_of(s, level, cells);
            if (at < tiles * parts) {
                // M2M: parts that take from the same children follow each other; L2L: tiles that use the same operators.
                const u32 tile = WAY == kUp ? at / parts : at % tiles;
                s.level = level; s.first = s.begin[level] + tile * cells; s.part = WAY == kUp ? at % parts : at / tiles;
                s.count = (int)min((u32)cells, s.begin[level + 1] - s.first);
                if (progress.single_level) progress.next += gridDim.x;
                else progress.next = atomicAdd(&f.state->work_ticket[4 + WAY], 1u);
                break;
            }
            at -= tiles * parts;
        }
    }
    __syncthreads();
    if (!s.count) return false;
    const int row = threadIdx.x, nc = f.components, cell = row / nc;
    if (row < cells * nc) {
        const u32 c = s.first + cell, mask = cell < s.count ? info_children(t.info[c]) : 0, child = cell < s.count ? t.child[c] : 0;
        s.mask[row] = mask;
#pragma unroll
        for (int o = 0; o < 8; o++) s.child[o][row] = mask >> o & 1 ? (child + __popc(mask & ((1u << o) - 1))) * nc + row - cell * nc : kNone;
    }
    return true;
}

// Waits for the level that the tile takes from; true if any of its cells is a parent. All threads.
template <int WAY> __device__ bool ready(const Fmm &f, const ParentTile &s, Progress &progress, int cells, int parts) {
    const int from = WAY == kUp ? s.level + 1 : s.level - 1;
    if (threadIdx.x == 0 && from != progress.waited && from >= (int)f.top && from < progress.deepest) {
        const u32 all = tiles_of(s, from, cells) * parts;
        const volatile u32 *done = &f.state->translated[WAY][from];
        while (*done < all) {}
        __threadfence();
        progress.waited = from;
    }
    return __syncthreads_or(threadIdx.x < kRows && s.mask[threadIdx.x]);
}

// All of a tile's results are written. All threads.
template <int WAY> __device__ void finish(const Fmm &f, const ParentTile &s, const Progress &progress) {
    if (progress.single_level) return;
    __syncthreads();
    if (threadIdx.x == 0) { __threadfence(); atomicAdd(&f.state->translated[WAY][s.level], 1u); }
}

// Sums over signs: v[k] becomes the sum of v[j] (-1)^(bits that j and k share).
template <class T> __device__ inline void hadamard(T *v) {
#pragma unroll
    for (int d = 1; d < 8; d *= 2)
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (!(k & d)) { const T a = v[k], b = v[k + d]; v[k] = a + b; v[k + d] = a - b; }
}

template <class T, int SPLIT> __device__ inline void product(T *c, const T *a, const typename Table<T, SPLIT>::Piece &b) {
    const T high[2] = {b.x, b.y};
    if constexpr (sizeof(T) == 8) mma(c, a, high);
    else if constexpr (SPLIT == 4 && !kTensorUnits) {
        const float whole[2] = {b.x + b.z, b.y + b.w};
        mma(c, a, whole);
    } else {
        float h[4], sum[4] = {0, 0, 0, 0}, *to = SPLIT == 4 ? sum : c;
        for (int k = 0; k < 4; k++) h[k] = to_tf32(a[k]);
        if constexpr (SPLIT >= 3) {
            float r[4];
            for (int k = 0; k < 4; k++) r[k] = to_tf32(a[k] - h[k]);
            const float low[2] = {b.z, b.w};
            mma(to, h, low); mma(to, r, high);
        }
        mma(to, h, high);
        if (SPLIT == 4) for (int k = 0; k < 4; k++) c[k] += sum[k];
    }
}

template <class T, int SPLIT> __device__ void m2m(const Fmm &f, int parts) {
    typedef typename Table<T, SPLIT>::Piece Piece;
    constexpr int kSteps = kChunk / 8;
    __shared__ ParentTile s;
    __shared__ T plane[8][kRows][kChunk + 4]; // what a class of the parent takes
    __shared__ u32 column[8 * kMostSorted], head[kMostSorted], cls[kMostSorted];
    __shared__ uint8_t class_at[256 + kChunk];
    const int nc = f.components, cells = kRows / nc, stride = f.stride, count = f.order * f.order;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, sorted = f.op[kSortedTiles];
    Progress progress;
    if (!begin<kUp>(f, s, progress, cells, parts)) return;
    for (int k = tid; k < 8 * kMostSorted; k += kThreads) column[k] = f.op[kSortedColumn + k];
    for (int k = tid; k < 256 + kChunk; k += kThreads) class_at[k] = k < count ? class_of(k) : 0;
    for (int k = tid; k < kMostSorted; k += kThreads) { head[k] = f.op[kUpHead + k]; cls[k] = f.op[kSortedClass + k]; }
    T *all = (T *)f.multipole;
    while (next_tile<kUp>(f, s, progress, cells, parts)) {
        if (!ready<kUp>(f, s, progress, cells, parts)) { finish<kUp>(f, s, progress); continue; }
        const int tile = warp * parts + s.part, steps = tile < sorted ? head[tile] & 63 : 0;
        const Piece *table = (const Piece *)f.operators + (steps ? head[tile] >> 6 : 0) * 32 + lane;
        T v[kRows / kWarps][8];
        Piece b[kSteps];
        // A warp's rows, a lane's coefficient of the chunk, from all children; and the chunk's fragments.
        auto load = [&](int first) {
            const T *column = all + first + lane;
            const bool in = first + lane < stride;
#pragma unroll
            for (int h = 0; h < kRows / kWarps; h++)
#pragma unroll
                for (int o = 0; o < 8; o++) {
                    const u32 child = s.child[o][warp + kWarps * h];
                    v[h][7 ^ o] = in && child != kNone ? __ldcg(column + (size_t)child * stride) : 0;
                }
        };
        auto fetch = [&](int step) {
#pragma unroll
            for (int k = 0; k < kSteps; k++) if (step + k < steps) b[k] = __ldg(table + (step + k) * 32);
        };
        T c[4] = {0, 0, 0, 0};
        load(0);
        for (int first = 0; first < stride; first += kChunk) {
            fetch(first / 8);
            const int cl = class_at[first + lane];
#pragma unroll
            for (int h = 0; h < kRows / kWarps; h++) {
                hadamard(v[h]);
#pragma unroll
                for (int q = 0; q < 8; q++) plane[q ^ cl][warp + kWarps * h][lane] = v[h][q];
            }
            if (first + kChunk < stride) load(first + kChunk);
            __syncthreads();
            const T *p = &plane[tile < sorted ? cls[tile] : 0][lane >> 2][lane & 3];
#pragma unroll
            for (int k = 0; k < kSteps; k++) {
                if (first / 8 + k >= steps) break;
                const T a[4] = {p[8 * k], p[8 * k + 8 * (kChunk + 4)], p[8 * k + 4], p[8 * k + 8 * (kChunk + 4) + 4]};
                product<T, SPLIT>(c, a, b[k]);
            }
            __syncthreads();
        }
        // Row g of a fragment is a row of the tile; two sorted coefficients a lane.
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = (lane >> 2) + 8 * h;
            if (!s.mask[row]) continue;
            T *out = all + ((size_t)s.first * nc + row) * stride;
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const u32 to = tile < sorted ? column[8 * tile + 2 * (lane & 3) + e] : kNone;
                if (to != kNone) out[to] = c[2 * h + e];
            }
            if (warp == 0 && s.part == 0) for (int k = count + (lane & 3); k < stride; k += 4) out[k] = 0;
        }
        finish<kUp>(f, s, progress);
    }
}

template <class T, int SPLIT> __device__ void l2l(const Fmm &f, int parts) {
    typedef typename Table<T, SPLIT>::Piece Piece;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ ParentTile s;
    __shared__ uint16_t slot[256];
    __shared__ u32 heads[8 * 32], end[8]; // see kDownHead; last tile of a class, plus one
    const int nc = f.components, cells = kRows / nc, stride = f.stride, tiles = stride / 8, count = f.order * f.order;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, sorted = f.op[kSortedTiles], wide = 8 * sorted + 4;
    T *row = (T *)memory;                                                     // [kRows][wide] the parents' coefficients, sorted by class
    Piece *table = (Piece *)(memory + kRows * wide * sizeof(T)) + lane; // fragments of the part
    Progress progress;
    if (!begin<kDown>(f, s, progress, cells, parts)) return;
    for (int k = tid; k < 8 * sorted; k += kThreads) {
        const u32 from = f.op[kSortedColumn + k];
        if (from != kNone) slot[from] = (uint16_t)k;
    }
    for (int k = tid; k < kRows * wide; k += kThreads) row[k] = 0;
    for (int k = tid; k < 8 * tiles; k += kThreads) heads[k] = f.op[kDownHead + k];
    if (tid < 8) end[tid] = f.op[kClassEnd + tid];
    T *all = (T *)f.local;
    int part = -1;
    while (next_tile<kDown>(f, s, progress, cells, parts)) {
        if (part != s.part) {
            // Another part of the operators; every warp finds those of its tile behind those of the warps before.
            part = s.part;
            table = (Piece *)(memory + kRows * wide * sizeof(T)) + lane;
            for (int w = 0; w <= warp; w++) {
                const int tile = w * parts + part;
                if (tile >= tiles) break;
                const u32 first = heads[8 * tile] >> 6, after = (heads[8 * tile + 7] >> 6) + (heads[8 * tile + 7] & 63);
                if (w < warp) { table += (after - first) * 32; continue; }
                const Piece *from = (const Piece *)f.operators + first * 32 + lane;
#pragma unroll 8
                for (u32 k = 0; k < after - first; k++) table[k * 32] = __ldg(from + k * 32);
            }
        }
        if (!ready<kDown>(f, s, progress, cells, parts)) { finish<kDown>(f, s, progress); continue; }
        // All loads before the first store: what is behind a store waits for the loads before it.
        T v[kRows / kWarps][8];
#pragma unroll
        for (int h = 0; h < kRows / kWarps; h++) {
            const int r = warp + kWarps * h;
            const bool is = s.mask[r];
            const T *from = all + ((size_t)s.first * nc + r) * stride;
#pragma unroll
            for (int k = 0; k < 8; k++) v[h][k] = is && lane + 32 * k < count ? __ldcg(from + lane + 32 * k) : 0;
        }
#pragma unroll
        for (int k = 0; k < 8; k++) {
            if (lane + 32 * k >= count) continue;
            T *to = row + slot[lane + 32 * k];
#pragma unroll
            for (int h = 0; h < kRows / kWarps; h++) to[(warp + kWarps * h) * wide] = v[h][k];
        }
        __syncthreads();
        const int tile = warp * parts + part;
        if (tile < tiles) {
            T z[4][8];
            const Piece *b = table;
#pragma unroll
            for (int c = 0; c < 8; c++) {
                T sum[4] = {0, 0, 0, 0};
                const int steps = heads[8 * tile + c] & 63;
                const T *p = row + (lane >> 2) * wide + 8 * (end[c] - steps) + (lane & 3);
#pragma unroll
                for (int k = 0; k < kDeep; k++) {
                    if (k >= steps) break;
                    const T a[4] = {p[8 * k], p[8 * k + 8 * wide], p[8 * k + 4], p[8 * k + 8 * wide + 4]};
                    product<T, SPLIT>(sum, a, b[k * 32]);
                }
                b += steps * 32;
#pragma unroll
                for (int k = 0; k < 4; k++) z[k][c] = sum[k];
            }
#pragma unroll
            for (int k = 0; k < 4; k++) hadamard(z[k]);
            const int at = 8 * tile + 2 * (lane & 3);
            const int signs[2] = {class_of(at), class_of(at + 1)};
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int r = (lane >> 2) + 8 * h;
                T *out = all + at;
                struct alignas(2 * sizeof(T)) Two { T x, y; } old[4], *to[4];
#pragma unroll
                for (int o = 0; o < 8; o += 4) { // four loads on their way
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const u32 child = s.child[o + k][r];
                        to[k] = child == kNone ? nullptr : (Two *)(out + (size_t)child * stride);
                        if (to[k]) old[k] = *to[k];
                    }
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const int turned = 7 ^ (o + k);
                        const T x = z[2 * h][turned], y = z[2 * h + 1][turned];
                        if (to[k]) *to[k] = {old[k].x + (__popc(signs[0] & turned) & 1 ? -x : x), old[k].y + (__popc(signs[1] & turned) & 1 ? -y : y)};
                    }
                }
            }
        }
        finish<kDown>(f, s, progress);
    }
}

// Launch: 256 threads, any number of blocks; parts times 8 are at least the column tiles. L2L: dynamic shared memory for 16 rows of sorted
// coefficients (and 4 more) and for the fragments of a part.
#define TRANSLATE(name, T, SPLIT) \
    extern "C" __global__ void __launch_bounds__(kThreads, 2) fmm_m2m_##name(const __grid_constant__ Fmm f, int parts) { m2m<T, SPLIT>(f, parts); } \
    extern "C" __global__ void __launch_bounds__(kThreads, 2) fmm_l2l_##name(const __grid_constant__ Fmm f, int parts) { l2l<T, SPLIT>(f, parts); }
TRANSLATE(f64, double, 1)
TRANSLATE(f32, float, 1)
TRANSLATE(f32x3, float, 3)
TRANSLATE(f32x3_rounded, float, 4)
