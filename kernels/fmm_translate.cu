// M2M, M2L and L2L: the same product, rows = expansions of a tile of cells, gathered, times an operator table.
//
// A block owns a tile of 96 rows (32 cells of 3 components, 96 of 1) of cells of one octant and level, keeps their sums in
// registers, and walks through the operators in a fixed order: the gathered rows come through shared memory (double-buffered,
// asynchronous copies), the operators straight from the L2 in the layout of the tensor units. Operator blocks whose
// contribution is below the tolerance were dropped when the tables were made: column tile j of operator o keeps the steps
// op_begin..op_end of 8 rows. There are no lists: the source of an offset is a child of a cell beside the target's parent.
#include "fmm.cuh"
using namespace fmm;

enum Mode { kM2M = 0, kM2L = 1, kL2L = 2 };

template <class T> struct Fragment;
template <> struct Fragment<double> { static constexpr int kRowsOfWarps = 2, kColumnsOfWarps = 4; };
template <> struct Fragment<float> { static constexpr int kRowsOfWarps = 2, kColumnsOfWarps = 4; };
constexpr u32 kSplitCells = 8192; // at most so many cells (rounded up to tiles) are summed in parts
constexpr int kBatch = 66, kBatches = 4;

// C[16 x 8] += A[16 x 8] B[8 x 8]; lane = 4 g + t holds A(g,t) A(g+8,t) A(g,t+4) A(g+8,t+4), B(t,g) B(t+4,g), C(g,2t) C(g,2t+1) C(g+8,2t) C(g+8,2t+1).
template <class T> __device__ inline void mma_shuffle(T *c, const T *a, const T *b) {
    const int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const T low = __shfl_sync(~0u, a[k / 4 * 2], g * 4 + k % 4), high = __shfl_sync(~0u, a[k / 4 * 2 + 1], g * 4 + k % 4);
        const T left = __shfl_sync(~0u, b[k / 4], 8 * t + k % 4), right = __shfl_sync(~0u, b[k / 4], 8 * t + 4 + k % 4);
        c[0] = fma(low, left, c[0]); c[1] = fma(low, right, c[1]); c[2] = fma(high, left, c[2]); c[3] = fma(high, right, c[3]);
    }
}
__device__ inline void mma(double *c, const double *a, const double *b) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int k = 0; k < 2; k++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[2 * h]), "+d"(c[2 * h + 1]) : "d"(a[h + 2 * k]), "d"(b[k]));
#else
    mma_shuffle(c, a, b);
#endif
}
__device__ inline void mma(float *c, const float *a, const float *b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#else
    mma_shuffle(c, a, b);
#endif
}
__device__ inline float to_tf32(float x) {
#if __CUDA_ARCH__ >= 800
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return __uint_as_float(r);
#else
    return x;
#endif
}

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

template <class T, int SPLIT> struct Table;
template <> struct Table<double, 1> { typedef double2 Piece; };
template <> struct Table<float, 1> { typedef float2 Piece; };
template <> struct Table<float, 3> { typedef float4 Piece; };

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

// What a tile is: its cells, and the operators that act on it.
struct Tile { int level, octant, first, count, part, parts; };

// Tile number `work` of M2L (all levels) or L2L (one level): a run of target cells of one (level, octant).
__device__ inline bool find_tile(const u32 *bins, int from, int to, int cells, u32 work, u32 parts, Tile *t) {
    u32 first = 0;
    for (int b = 0; b < from; b++) first += bins[b];
    t->part = work % parts; t->parts = parts;
    work /= parts;
    for (int b = from; b < to; b++) {
        const u32 n = bins[b], tiles = (n + cells - 1) / cells;
        if (work < tiles) {
            t->level = b / 8; t->octant = b % 8; t->first = first + work * cells; t->count = min(n - work * cells, (u32)cells);
            return true;
        }
        work -= tiles; first += n;
    }
    return false;
}

// Candidate e = 8 * neighbour of the parent + octant, for a target in `octant`: the operator, and whether it is a far pair.
__device__ inline int op_of(int octant, int e, bool *far) {
    int d[3];
    beside(e >> 3, d);
    for (int k = 0; k < 3; k++) d[k] = (octant >> k & 1) - 2 * d[k] - (e >> k & 1);
    *far = !is_near(d[0], d[1], d[2]);
    return ((d[0] + 5) * 11 + d[1] + 5) * 11 + d[2] + 5;
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
            if (mode == kM2L) turn = atomicAdd(&f.state->work_ticket[0], 1u);
            Tile t{};
            if (mode == kM2M) {
                t.level = level; t.octant = 0; t.first = level_begin[level] + turn * cells; t.parts = 1;
                more = t.first < level_begin[level + 1];
                t.count = more ? (int)min(level_begin[level + 1] - t.first, (u32)cells) : 0;
            } else {
                u32 parts = 1;
                if (mode == kM2L) {
                    // Few tiles do not fill the chip: then the four batches of operators are summed by different blocks.
                    u32 all = 0;
                    for (int b = 16; b < kBins; b++) all += (f.state->bin_count[b] + cells - 1) / cells;
                    parts = all * cells <= kSplitCells ? kBatches : 1;
                    f.state->parts = parts;
                }
                more = find_tile(f.state->bin_count, mode == kM2L ? 16 : 8 * level, mode == kM2L ? kBins : 8 * level + 8, cells, turn, parts, &t);
            }
            tile_shared = t;
        }
        __syncthreads();
        if (!more) return;
        const Tile t = tile_shared;
        for (int k = tid; k < cells; k += threads) target[k] = k < t.count ? (mode == kM2M ? t.first + k : f.tile_cell[t.first + k]) : kNone;
        sums.clear();
        const int last_batch = mode == kM2L ? (t.parts > 1 ? t.part + 1 : kBatches) : 1, batch = mode == kM2L ? kBatch : mode == kM2M ? 8 : 1;
        for (int part = mode == kM2L && t.parts > 1 ? t.part : 0; part < last_batch; part++) {
            __syncthreads();
            for (int k = tid; k < batch; k += threads) used[k] = 0;
            __syncthreads();
            for (int k = tid; k < batch * cells; k += threads) {
                const int b = k / cells, e = part * kBatch + b;
                const u32 cell = target[k - b * cells];
                u32 found = kNone;
                if (cell != kNone) {
                    if (mode == kM2M) found = child_of(tree, cell, b);
                    else if (mode == kL2L) found = tree.parent[cell];
                    else {
                        bool far;
                        op_of(t.octant, e, &far);
                        if (far) {
                            const u32 p = f.near[(size_t)tree.parent[cell] * kBeside + (e >> 3)];
                            if (p != kNone) found = child_of(f.tree[0], p, e & 7);
                        }
                    }
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
                        bool far;
                        const int o = mode == kM2M ? kOffsets + place : mode == kL2L ? kOffsets + 8 + t.octant : op_of(t.octant, part * kBatch + place, &far);
                        const int width = mode == kM2L ? (int)(f.op[o * tiles].y >> 16) : tiles;
                        active[n + __popc(b & ((1u << lane) - 1))] = place | width << 8 | o << 16;
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
        }
        // Row g of a fragment is expansion row0 + g; two neighbouring coefficients a lane.
        T *out_all = (T *)(mode == kM2M ? f.multipole : f.local);
        if (mode == kM2L) out_all += (size_t)t.part * level_begin[kLevels] * nc * stride; // parts follow one another
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

// Adds the parts of the M2L sums, in order. Launch: 256 threads, grid-stride.
template <class T> __device__ void add_parts(const Fmm &f) {
    const u32 parts = f.state->parts;
    if (parts < 2) return;
    const size_t n = (size_t)f.state->level_begin[1][kLevels] * f.components * f.stride;
    T *local = (T *)f.local;
    for (size_t k = (size_t)f.state->level_begin[1][2] * f.components * f.stride + blockIdx.x * 256 + threadIdx.x; k < n; k += (size_t)gridDim.x * 256) {
        T x = local[k];
        for (u32 p = 1; p < parts; p++) x += local[p * n + k];
        local[k] = x;
    }
}
extern "C" __global__ void __launch_bounds__(256) fmm_add_parts_f32(const __grid_constant__ Fmm f) { add_parts<float>(f); }
extern "C" __global__ void __launch_bounds__(256) fmm_add_parts_f64(const __grid_constant__ Fmm f) { add_parts<double>(f); }

// Launch: threads = 32 * (warps of the fragment), dynamic shared memory from the host, persistent blocks (M2L takes tickets).
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
