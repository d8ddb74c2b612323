// M2L in trees of three levels at most, where one wave of warps has all of it and the time is that of the longest chain of
// loads: no lists, no stages, and nothing that a warp waits for but the cells beside its tile's parents.
//
// A tile is 16 rows (expansions of the children in one octant of five parents with three components each, of 16 with one). A warp has a share
// of the orbits' columns in units of 64 bytes of a row. Its lanes hold a unit of the eight sources of two rows, transform them
// in registers, each column's signs turned by its class first: then sum number b is what class b of the rows takes. The warps'
// sums are added through shared memory, those of a tile's blocks by the last of them, both in order.
#pragma once
#include "fmm_orbits.cuh"

namespace fmm {

constexpr int kSmallTileRows = 16, kSmallTileShare = 3;
// Numbers of the arrays of expansions that the tiles' parts may take lie behind so many cells (those of such trees are 585).
constexpr u32 kSmallTileCells = 1024;

// How the parents of a level are divided: tiles of an octant, parents of one, 2^share blocks for one.
struct SmallM2lLevel { int tiles, cells, share; };
__device__ inline SmallM2lLevel small_m2l_level(const Fmm &f, int level) {
    const bool one = f.components == 1;
    return {level == 2 ? one ? 1 : 2 : one ? 4 : 13, level == 2 ? one ? 8 : 4 : one ? 16 : 5, f.max_level == 2 ? kSmallTileShare : 0};
}

// MORE: classes of more than eight coefficients: 0, 0 alone (1), those of one bit too (4), all (8).
template <class T, int SPLIT, int MORE> struct SmallM2l {
    static constexpr int kVector = 16 / sizeof(T), kTiles = 8 + MORE, kSlots = MORE ? 2 : 1;
    static constexpr int kWarps = sizeof(T) == 4 && SPLIT == 1 && MORE < 4 ? 12 : 8; // more do not have the registers
    // Tiles whose fragments are on their way, as far as registers go.
    static constexpr int kAhead = sizeof(T) == 8 ? (MORE == 4 ? 1 : 2) : SPLIT == 3 ? (MORE == 8 ? 6 : 8) : MORE == 1 ? 4 : 8;
    static constexpr int kMost = 40960 / (int)(kWarps * 128 * sizeof(T)), kRounds = (kTiles + kMost - 1) / kMost, kRound = (kTiles + kRounds - 1) / kRounds;
    // A tile: parents from `first` on; its number, and which of its 2^share parts the block has.
    struct Task { int level, octant, first, cells, number, part, share; };
    struct Shared {
        Task task;
        u32 orbit[kMaxOrbits];
        uint2 beside[kSmallTileRows * kBeside]; // of a cell's parent: slot of the first child's expansion in units of 16 bytes, children
        u32 target[kSmallTileRows];
        T sum[kWarps][kRound * 128];
    };
    const Fmm &f;
    Shared &s;
    T c[kTiles][4];

    __device__ SmallM2l(const Fmm &f, Shared &s) : f(f), s(s) {}

    // Without any cells: there are no such parents.
    __device__ Task take() const {
        // Level 3 comes first.
        int level = f.max_level;
        SmallM2lLevel l = small_m2l_level(f, level);
        const int number = blockIdx.x >> l.share;
        int tile = number;
        if (level == 3 && tile >= 8 * l.tiles) { tile -= 8 * l.tiles; l = small_m2l_level(f, --level); }
        const int begin = f.state->level_begin[1][level - 1], end = f.state->level_begin[1][level], first = begin + (tile >> 3) * l.cells;
        return {level, tile & 7, first, min(l.cells, end - first), number, (int)(blockIdx.x & ((1 << l.share) - 1)), l.share};
    }
    // The cells beside the parents. False: none of them has a child in the octant.
    __device__ bool look(const Task &task) {
        if (threadIdx.x == 0) s.task = task;
        for (int k = threadIdx.x; k < kMaxOrbits; k += 32 * kWarps) s.orbit[k] = f.m2l[k];
        const u32 each = f.components * (f.stride / kVector);
        bool any = false;
        for (int k = threadIdx.x; k < kSmallTileRows * kBeside; k += 32 * kWarps) {
            const int cell = k / kBeside;
            uint2 found = make_uint2(0, 0);
            if (cell < task.cells) {
                const u32 parent = task.first + cell, p = f.near[(size_t)task.first * kBeside + k];
                if (k == cell * kBeside) any |= (s.target[cell] = child_of(f.tree[1], parent, task.octant)) != kNone;
                if (p != kNone) found = make_uint2(f.tree[0].child[p] * each, info_children(f.tree[0].info[p]));
            }
            s.beside[k] = found;
        }
        return __syncthreads_or(any);
    }

    // Of a row: the cell's list | the component's slot in an expansion << 16.
    __device__ u32 row_of(int row) const {
        const int nc = f.components, cell = nc == 1 ? row : row / 3;
        return min(cell, kSmallTileRows - 1) * kBeside | (nc == 1 ? 0 : row - 3 * cell) * (f.stride / kVector) << 16;
    }
    // Sources of the signs 2 t and 2 t + 1 of both rows, for lane 4 g + t; true if the warp has any.
    __device__ bool find(u32 (*slot)[2], u32 orbit, const u32 *rows) const {
        const int lane = threadIdx.x & 31;
        const int e = source_at(orbit, lane & 7, s.task.octant);
        const u32 each = f.components * (f.stride / kVector);
        bool any = false;
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int of = __shfl_sync(~0u, e, 2 * (lane & 3) + k), child = of >> 8;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const uint2 b = s.beside[(rows[h] & 0xffff) + (of & 255)];
                const bool is = b.y >> child & 1;
                slot[k][h] = is ? b.x + __popc(b.y & ((1u << child) - 1)) * each + (rows[h] >> 16) : 0; // the root's is zero
                any |= is;
            }
        }
        return __any_sync(~0u, any);
    }

    struct Vector { alignas(16) T v[kVector]; };
    struct Pieces { T v[kVector], rest[SPLIT == 3 ? kVector : 1]; };
    // The columns of a lane are neighbours, so that it loads 16 bytes; those of a fragment are not.
    __device__ void fetch(Pieces &b, u32 fragment) const {
        const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
        const T *from = (const T *)f.operators;
#pragma unroll
        for (int i = 0; i < kVector; i++) {
            const u32 of = fragment * 32 + 4 * g + (sizeof(T) == 8 ? 2 * t & 3 : 0) + i, half = sizeof(T) == 8 ? t >> 1 : t & 1;
            if constexpr (SPLIT == 3) { b.v[i] = __ldg(from + of * 4 + half); b.rest[i] = __ldg(from + of * 4 + 2 + half); }
            else b.v[i] = __ldg(from + of * 2 + half);
        }
    }
    __device__ static void clear(Pieces &b) {
#pragma unroll
        for (int i = 0; i < kVector; i++) { b.v[i] = 0; if constexpr (SPLIT == 3) b.rest[i] = 0; }
    }
    static __device__ constexpr int class_at(int j) { return j < 8 ? j : MORE == 8 ? j - 8 : j == 11 ? 4 : j - 8; }

    // As to_tf32, in two instructions for four: the tensor units do not look at what is beyond its digits. The minimum keeps
    // what is no number (0x7fffffff, as sums make it) from becoming zero.
    static __device__ T rounded(T x) {
#if __CUDA_ARCH__ >= 800
        return __int_as_float(min(__float_as_int(x), 0x7fffefff) + 0x1000);
#else
        return to_tf32(x);
#endif
    }
    __device__ void multiply(T *sums, const Vector &low, const Vector &high, const Pieces &b) {
#pragma unroll
        for (int k = 0; k < kVector; k += 2) {
            T a[4] = {low.v[k], high.v[k], low.v[k + 1], high.v[k + 1]};
            const T x[2] = {b.v[k], b.v[k + 1]};
            if constexpr (sizeof(T) == 4) {
                T rest[4];
#pragma unroll
                for (int i = 0; i < 4; i++) { const T whole = a[i]; if constexpr (SPLIT == 3) { a[i] = to_tf32(whole); rest[i] = to_tf32(whole - a[i]); } else a[i] = rounded(whole); }
                if constexpr (SPLIT == 3) {
                    const T y[2] = {b.rest[k], b.rest[k + 1]};
                    mma(sums, a, y);
                    mma(sums, rest, x);
                }
            }
            mma(sums, a, x);
        }
    }
    // One unit of an orbit; head: of class lane & 7.
    __device__ void add(const u32 (*slot)[2], uint2 head, int steps, int unit) {
        const int lane = threadIdx.x & 31, t = lane & 3, at = unit * 4 + t;
        // Of the unit's steps of eight columns the first, and the one that the lane's are in.
        const int step = unit * (kVector / 2), own = at * kVector / 8;
        Pieces b[kAhead];
        // Fragments of a tile of columns, and those of the next ones on their way.
        auto request = [&](int j) {
            Pieces &to = b[j % kAhead];
            const int slot = j >= 8;
            const u32 first = __shfl_sync(~0u, head.x, class_at(j)), left = __shfl_sync(~0u, head.y, class_at(j));
            clear(to);
            if (own < steps_of(left, slot)) fetch(to, first + own * kSlots + slot);
        };
#pragma unroll
        for (int j = 0; j < kAhead; j++) request(j);
        // Beyond the orbit's columns any numbers do: those of the operator are zero there.
        const Vector *const of_multipoles = (const Vector *)f.multipole + (own < steps ? at : 0);
        Vector v[8][2];
#pragma unroll
        for (int k = 0; k < 8; k++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u32 from = __shfl_sync(~0u, slot[k & 1][h], (lane & 28) | k >> 1);
                v[k][h] = of_multipoles[from];
            }
        transform(v, at * kVector);
#pragma unroll
        for (int j = 0; j < kTiles; j++) {
            const int k = class_at(j);
            if (step < steps_of(__shfl_sync(~0u, head.y, k), j >= 8)) multiply(c[j], v[k][0], v[k][1], b[j % kAhead]);
            if (j + kAhead < kTiles) {
                request(j + kAhead);
                read_later(); // not all of them at once
            }
        }
    }
    static __device__ int steps_of(u32 head, int slot) { return (int)(head >> kHeadBits * slot & ((1u << kHeadBits) - 1)) - (int)kHeadBias; }
    // v[b]: the sum of the sources σ with signs (-1)^(bits that σ shares with b and with the column's class, together).
    __device__ void transform(Vector (*v)[2], int column) const {
        u32 of[kVector];
#pragma unroll
        for (int i = 0; i < kVector; i++) of[i] = __ldg(f.m2l + kClass + column + i);
#pragma unroll
        for (int d = 0; d < 3; d++)
#pragma unroll
            for (int i = 0; i < kVector; i++) {
                const T sign = of[i] >> d & 1 ? (T)-1 : (T)1;
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    if (k >> d & 1) continue;
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const T x = v[k][h].v[i], y = v[k | 1 << d][h].v[i];
                        v[k][h].v[i] = fma(sign, y, x); v[k | 1 << d][h].v[i] = fma(-sign, y, x);
                    }
                }
            }
    }

    // What the warp has of the tile: units of all orbits, in their order, divided among the warps of the tile's blocks.
    struct Share { int orbit, begin, left; }; // first orbit, its first unit, units
    static constexpr int kEach = (kMaxOrbits + 31) / 32;
    static __device__ int steps_of_orbit(u32 orbit, int level) { return level == 2 && orbit & 0x444 ? 0 : orbit >> 12 & 255; } // level 2 is four cells wide
    static __device__ int units_of(int steps) { return (steps * 8 + 4 * kVector - 1) / (4 * kVector); }
    __device__ Share divide(const Task &task) const {
        const int lane = threadIdx.x & 31, orbits = f.m2l[kOrbitCount];
        int all = 0, ends[kEach]; // units up to the end of orbit lane * kEach + k
#pragma unroll
        for (int k = 0; k < kEach; k++) {
            const int o = lane * kEach + k;
            all += units_of(steps_of_orbit(o < orbits ? f.m2l[o] : 0, task.level));
            ends[k] = all;
        }
        int to = all;
        for (int d = 1; d < 32; d <<= 1) { const int x = __shfl_up_sync(~0u, to, d); if (lane >= d) to += x; }
#pragma unroll
        for (int k = 0; k < kEach; k++) ends[k] += to - all;
        all = __shfl_sync(~0u, to, 31);
        const int warp = task.part * kWarps + __shfl_sync(~0u, threadIdx.x >> 5, 0);
        const int from = (all * warp >> task.share) / kWarps, end = (all * (warp + 1) >> task.share) / kWarps;
        int before = 0, last = 0; // orbits that end before the share, and where the last of them does
#pragma unroll
        for (int k = 0; k < kEach; k++) {
            before += __popc(__ballot_sync(~0u, ends[k] <= from));
            if (ends[k] <= from) last = ends[k];
        }
        for (int d = 1; d < 32; d <<= 1) last = max(last, __shfl_xor_sync(~0u, last, d));
        return {before, from - last, end - from};
    }
    __device__ uint2 head_of(int orbit) const { return __ldg((const uint2 *)(f.m2l + kHeads) + min(orbit, kMaxOrbits - 1) * 8 + (threadIdx.x & 7)); }

    __device__ void run() {
        const Task task = take();
        if (task.cells <= 0) return;
        Share mine = divide(task);
        uint2 head = head_of(mine.orbit);
        const bool any = look(task);
        if (!any) return;
        const int lane = threadIdx.x & 31;
#pragma unroll
        for (int j = 0; j < kTiles; j++)
#pragma unroll
            for (int k = 0; k < 4; k++) c[j][k] = 0;
        const u32 rows[2] = {row_of(lane >> 2), row_of((lane >> 2) + 8)};
        for (int o = mine.orbit; mine.left > 0; o++) {
            const u32 orbit = s.orbit[o];
            const uint2 now = head;
            head = head_of(o + 1);
            const int steps = steps_of_orbit(orbit, s.task.level), end = min(units_of(steps), mine.begin + mine.left);
            if (mine.begin < end) {
                u32 slot[2][2];
                if (find(slot, orbit, rows))
                    for (int u = mine.begin; u < end; u++) add(slot, now, steps, u);
                mine.left -= end - mine.begin;
            }
            mine.begin = 0;
        }
        finish();
    }

    // Number `e` of a tile's sums: [tile of columns][4][lane].
    __device__ void store(int e, T x) const {
        const int j = e >> 7, k = e >> 5 & 3, lane = e & 31, row = (lane >> 2) + 8 * (k >> 1);
        const u32 column = __ldg(f.m2l + kColumns + (class_at(j) * 8 + (j >= 8)) * 8 + 2 * (lane & 3) + (k & 1));
        const int nc = f.components, cell = nc == 1 ? row : row / 3;
        if (column == kNone || cell >= s.task.cells || s.target[cell] == kNone) return;
        ((T *)f.local)[((size_t)s.target[cell] * nc + row - cell * nc) * f.stride + column] = x;
    }
    __device__ void finish() {
        const int tid = threadIdx.x, lane = tid & 31, share = s.task.share, part = s.task.part;
        T *const tile = (T *)f.local + (size_t)kSmallTileCells * f.components * f.stride + (size_t)(blockIdx.x - part) * kTiles * 128;
#pragma unroll
        for (int round = 0; round < kRounds; round++) {
            constexpr int each = kRound;
            if (round) __syncthreads();
#pragma unroll
            for (int j = 0; j < each; j++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    if (round * each + j < kTiles) s.sum[tid >> 5][(j * 4 + k) * 32 + lane] = c[round * each + j][k];
            __syncthreads();
            for (int e = tid; e < each * 128 && round * each * 128 + e < kTiles * 128; e += 32 * kWarps) {
                T x = s.sum[0][e];
#pragma unroll
                for (int w = 1; w < kWarps; w++) x += s.sum[w][e];
                const int to = round * each * 128 + e;
                if (share == 0) store(to, x); else tile[part * kTiles * 128 + to] = x;
            }
        }
        if (share == 0) return;
        if (!is_last(f.state->small_m2l_ticket + s.task.number, 1u << share)) return;
        for (int e = tid; e < kTiles * 128; e += 32 * kWarps) {
            T x = 0;
#pragma unroll
            for (int p = 0; p < 1 << kSmallTileShare; p++) x += __ldcg(tile + p * kTiles * 128 + e);
            store(e, x);
        }
    }
};

template <class T, int SPLIT, int MORE> __device__ void m2l_small(const Fmm &f) {
    typedef SmallM2l<T, SPLIT, MORE> F;
    __shared__ typename F::Shared s;
    F(f, s).run();
}

} // namespace fmm
