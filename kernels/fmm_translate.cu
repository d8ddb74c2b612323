// M2M and L2L: rows = expansions of a tile of cells, gathered, times an operator table.
//
// A block owns a tile of 96 rows (32 cells of 3 components, 96 of 1) of cells of one level (L2L: and octant), keeps their
// sums in registers, and walks through the operators in a fixed order: the gathered rows come through shared memory
// (double-buffered, asynchronous copies), the operators straight from the L2 in the layout of the tensor units, without the
// blocks that are zero: column tile j of operator o keeps the steps op_begin..op_end of 8 rows.
#include "fmm_mma.cuh"
using namespace fmm;

enum Mode { kM2M = 0, kL2L = 1 };

template <class T> struct Fragment;
template <> struct Fragment<double> { static constexpr int kRowsOfWarps = 2, kColumnsOfWarps = 4; };
template <> struct Fragment<float> { static constexpr int kRowsOfWarps = 2, kColumnsOfWarps = 4; };
constexpr int kBatch = 8; // operators of a tile at most

// 16 bytes from global to shared memory, or zeros.
__device__ inline void copy16(void *to, const void *from, bool valid) {
#if __CUDA_ARCH__ >= 800
    const u32 s = (u32)__cvta_generic_to_shared(to), bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(s), "l"(from), "r"(bytes));
#else
    *(uint4 *)to = valid ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
#endif
}
__device__ inline void copy_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
template <int N> __device__ inline void copy_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N));
#endif
}

// Sums of one operator over the rows in shared memory. `NT` column tiles a warp.
template <class T, int NT, int SPLIT, int TILES> struct Sums {
    typedef Fragment<T> F;
    typedef typename Table<T, SPLIT>::Piece Piece;
    T c[TILES][NT][4];

    __device__ void clear() {
        for (int m = 0; m < TILES; m++) for (int j = 0; j < NT; j++) for (int k = 0; k < 4; k++) c[m][j][k] = 0;
    }
    // Column tile `j` of warp column `w`: back and forth, so that every warp has dear and cheap ones.
    __device__ static int column(int j, int w) {
        return F::kColumnsOfWarps == 1 ? j : j * F::kColumnsOfWarps + (j & 1 ? F::kColumnsOfWarps - 1 - w : w);
    }
    u32 at[NT], range[NT]; // fragment of step 0, and the steps: begin | end << 16
    int first, last;
    Piece next[NT];

    // What lane j has to know about column tile j of this warp.
    __device__ static uint2 kept(const Fmm &f, int op, int tiles, int w) {
        const int lane = threadIdx.x & 31, at = column(lane, w);
        return lane < NT && at < tiles ? __ldg(f.op + op * tiles + at) : make_uint2(0, 0);
    }
    __device__ bool keeps(int j, int step) const { return (range[j] & 0xffff) <= step && step < (range[j] >> 16); }
    // Takes up an operator: its ranges, and the fragments of its first step on their way.
    __device__ void begin_op(const Fmm &f, uint2 mine) {
        first = 0xffff; last = 0;
#pragma unroll
        for (int j = 0; j < NT; j++) {
            range[j] = __shfl_sync(~0u, mine.y, j);
            const int begin = range[j] & 0xffff, end = range[j] >> 16;
            at[j] = __shfl_sync(~0u, mine.x, j) - begin;
            if (begin < end) { first = min(first, begin); last = max(last, end); }
        }
        fetch(f, first);
    }
    __device__ void fetch(const Fmm &f, int step) {
        const Piece *all = (const Piece *)f.operators + (threadIdx.x & 31);
#pragma unroll
        for (int j = 0; j < NT; j++) if (keeps(j, step)) next[j] = __ldg(all + (size_t)(at[j] + step) * 32);
    }
    __device__ void add(const Fmm &f, const T *rows, int row_stride, int row0) {
        const int lane = threadIdx.x & 31;
        const T *a0 = rows + (row0 + (lane >> 2)) * row_stride + (lane & 3);
        for (int step = first; step < last; step++) {
            Piece b[NT];
#pragma unroll
            for (int j = 0; j < NT; j++) b[j] = next[j];
            fetch(f, step + 1);
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                const T *p = a0 + m * 16 * row_stride + step * 8;
                T a[4] = {p[0], p[8 * row_stride], p[4], p[8 * row_stride + 4]};
                multiply(m, step, a, b);
            }
        }
    }
    __device__ void multiply(int m, int step, const T *a, const Piece *b);
};

template <int NT> __device__ inline void multiply_f64(double (*c)[4], int step, const u32 *range, const double *a, const double2 *b) {
#pragma unroll
    for (int j = 0; j < NT; j++) if ((range[j] & 0xffff) <= step && step < (range[j] >> 16)) { const double v[2] = {b[j].x, b[j].y}; mma(c[j], a, v); }
}
template <int NT> __device__ inline void multiply_tf32(float (*c)[4], int step, const u32 *range, const float *a, const float2 *b) {
    const float h[4] = {to_tf32(a[0]), to_tf32(a[1]), to_tf32(a[2]), to_tf32(a[3])};
#pragma unroll
    for (int j = 0; j < NT; j++) if ((range[j] & 0xffff) <= step && step < (range[j] >> 16)) { const float v[2] = {b[j].x, b[j].y}; mma(c[j], h, v); }
}
template <int NT> __device__ inline void multiply_tf32x3(float (*c)[4], int step, const u32 *range, const float *a, const float4 *b) {
    float h[4], r[4];
    for (int k = 0; k < 4; k++) { h[k] = to_tf32(a[k]); r[k] = to_tf32(a[k] - h[k]); }
#pragma unroll
    for (int j = 0; j < NT; j++)
        if ((range[j] & 0xffff) <= step && step < (range[j] >> 16)) {
            const float v[2] = {b[j].x, b[j].y}, w[2] = {b[j].z, b[j].w};
            mma(c[j], h, w); mma(c[j], r, v); mma(c[j], h, v);
        }
}
template <class T, int NT, int SPLIT, int TILES>
__device__ inline void Sums<T, NT, SPLIT, TILES>::multiply(int m, int step, const T *a, const Piece *b) {
    if constexpr (sizeof(T) == 8) multiply_f64<NT>(c[m], step, range, a, b);
    else if constexpr (SPLIT == 1) multiply_tf32<NT>(c[m], step, range, a, b);
    else multiply_tf32x3<NT>(c[m], step, range, a, b);
}

template <class T, int NT, int SPLIT, int TILES> __device__ void translate(const Fmm &f, int mode, int level) {
    typedef Fragment<T> F;
    constexpr int kRows = F::kRowsOfWarps * 16 * TILES;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Tile tile_shared;
    __shared__ bool more;
    __shared__ u32 used[kBatch];
    __shared__ int active[kBatch], active_count; // place in the batch | columns / 8 << 8 | operator << 16
    const Tree &tree = f.tree[mode == kM2M ? 0 : 1];
    const int tid = threadIdx.x, threads = blockDim.x, warp = tid >> 5, lane = tid & 31;
    const int nc = f.components, cells = kRows / nc, stride = f.stride, tiles = stride / 8;
    u32 *source = (u32 *)(memory + f.arena);                // [kBatch][cells]
    u32 *target = source + kBatch * cells;                  // [cells]
    const int row0 = warp / F::kColumnsOfWarps * 16 * TILES, w = warp % F::kColumnsOfWarps;
    const T *from_all = (const T *)(mode == kL2L ? f.local : f.multipole);
    const u32 *level_begin = f.state->level_begin[mode == kM2M ? 0 : 1];
    Sums<T, NT, SPLIT, TILES> sums;
    for (u32 turn = blockIdx.x;; turn += gridDim.x) {
        __syncthreads();
        if (tid == 0) {
            Tile t{};
            if (mode == kM2M) {
                t.level = level; t.octant = 0; t.first = level_begin[level] + turn * cells;
                more = t.first < level_begin[level + 1];
                t.count = more ? (int)min(level_begin[level + 1] - t.first, (u32)cells) : 0;
            } else more = find_tile(f.state->bin_count, 8 * level, 8 * level + 8, cells, turn, &t);
            tile_shared = t;
        }
        __syncthreads();
        if (!more) return;
        const Tile t = tile_shared;
        for (int k = tid; k < cells; k += threads) target[k] = k < t.count ? (mode == kM2M ? t.first + k : f.tile_cell[t.first + k]) : kNone;
        sums.clear();
        const int batch = mode == kM2M ? 8 : 1;
        __syncthreads();
        for (int k = tid; k < batch; k += threads) used[k] = 0;
        __syncthreads();
        for (int k = tid; k < batch * cells; k += threads) {
            const int b = k / cells;
            const u32 cell = target[k - b * cells];
            u32 found = kNone;
            if (cell != kNone) {
                if (mode == kM2M) found = child_of(tree, cell, b);
                else found = tree.parent[cell];
            }
            source[k] = found;
            if (found != kNone) used[b] = 1;
        }
        __syncthreads();
        if (warp == 0) {
            int n = 0;
            for (int k0 = 0; k0 < batch; k0 += 32) {
                const bool is = k0 + lane < batch && used[k0 + lane];
                const u32 b = __ballot_sync(~0u, is);
                if (is) {
                    const int place = k0 + lane;
                    const int o = mode == kM2M ? place : 8 + t.octant;
                    active[n + __popc(b & ((1u << lane) - 1))] = place | tiles << 8 | o << 16;
                }
                n += __popc(b);
            }
            if (lane == 0) active_count = n;
        }
        __syncthreads();
        const int n = active_count;
        // Even operators keep their rows at the bottom of the arena, odd ones at its top.
        auto columns = [&](int k) { return 8 * (active[k] >> 8 & 255); };
        auto room = [&](int k) { return kRows * (columns(k) + 4) * (int)sizeof(T); };
        auto place = [&](int k) { return (T *)(memory + (k & 1 ? f.arena - room(k) : 0)); };
        // Copies whole rows up to the last column that the operator keeps.
        auto load = [&](int k) {
            const int b = active[k] & 255, last = columns(k);
            constexpr int width = 16 / sizeof(T);
            const int chunks = last / width;
            T *to = place(k);
            // Lanes of a warp take one row together where rows are long, eight lanes where they are short.
            const int group = chunks > 16 ? 32 : chunks > 8 ? 16 : 8, within = tid % group;
            for (int r = tid / group; r < kRows; r += threads / group) {
                const int cell = r / nc;
                const u32 from = cell < cells ? source[b * cells + cell] : kNone;
                const T *p = from_all + ((size_t)(from == kNone ? 0 : from) * nc + r - cell * nc) * stride;
                for (int c = within; c < chunks; c += group) copy16(to + r * (last + 4) + c * width, p + c * width, from != kNone);
            }
            copy_commit();
        };
        // The copy of the next rows runs while these are summed, where the arena holds both.
        bool loaded = false;
        if (n) sums.begin_op(f, sums.kept(f, active[0] >> 16, tiles, w));
        for (int k = 0; k < n; k++) {
            if (!loaded) load(k);
            loaded = k + 1 < n && room(k) + room(k + 1) <= (int)f.arena;
            if (loaded) { load(k + 1); copy_wait<1>(); } else copy_wait<0>();
            __syncthreads();
            uint2 after = make_uint2(0, 0);
            if (k + 1 < n) after = sums.kept(f, active[k + 1] >> 16, tiles, w);
            sums.add(f, place(k), columns(k) + 4, row0);
            if (k + 1 < n) sums.begin_op(f, after);
            __syncthreads();
        }
        copy_wait<0>();
        // Row g of a fragment is expansion row0 + g; two neighbouring coefficients a lane.
        T *out_all = (T *)(mode == kM2M ? f.multipole : f.local);
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int r = row0 + m * 16 + h * 8 + (lane >> 2), cell = r / nc;
                const u32 to = cell < t.count ? target[cell] : kNone;
                if (to == kNone || (mode == kM2M && info_leaf(tree.info[to]))) continue;
                T *out = out_all + ((size_t)to * nc + r - cell * nc) * stride + 2 * (lane & 3);
#pragma unroll
                for (int j = 0; j < NT; j++) {
                    const int at = sums.column(j, w);
                    if (at >= tiles) continue;
                    T x = sums.c[m][j][2 * h], y = sums.c[m][j][2 * h + 1];
                    if (mode == kL2L) { x += out[at * 8]; y += out[at * 8 + 1]; }
                    out[at * 8] = x; out[at * 8 + 1] = y;
                }
            }
    }
}

// Launch: threads = 32 * (warps of the fragment), dynamic shared memory from the host, grid-stride over tiles.
#define TRANSLATE(name, T, NT, SPLIT, TILES, BLOCKS) \
    extern "C" __global__ void __launch_bounds__(32 * Fragment<T>::kRowsOfWarps * Fragment<T>::kColumnsOfWarps, BLOCKS) \
    fmm_translate_##name(const __grid_constant__ Fmm f, int mode, int level) { translate<T, NT, SPLIT, TILES>(f, mode, level); }
TRANSLATE(f64_1, double, 1, 1, 3, 2)
TRANSLATE(f64_2, double, 2, 1, 3, 2)
TRANSLATE(f64_3, double, 3, 1, 3, 1)
TRANSLATE(f64_4, double, 4, 1, 3, 1)
TRANSLATE(f64_5, double, 5, 1, 3, 1)
TRANSLATE(f64_6, double, 6, 1, 3, 1)
TRANSLATE(f64_8, double, 8, 1, 2, 1)
TRANSLATE(f32_1, float, 1, 1, 3, 3)
TRANSLATE(f32_2, float, 2, 1, 3, 3)
TRANSLATE(f32_3, float, 3, 1, 3, 2)
TRANSLATE(f32_4, float, 4, 1, 3, 2)
TRANSLATE(f32x3_1, float, 1, 3, 3, 3)
TRANSLATE(f32x3_2, float, 2, 3, 3, 2)
TRANSLATE(f32x3_3, float, 3, 3, 3, 2)
TRANSLATE(f32x3_4, float, 4, 3, 3, 1)
