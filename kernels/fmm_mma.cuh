// What the translation kernels share: products of fragments on the tensor units, the layout of operator fragments, tiles of cells.
#pragma once
#include "fmm.cuh"

namespace fmm {

// Fmm::m2l in words, made by backend::cuda::fmm::truncation. At 0: the orbits, x | y << 4 | z << 8 | steps << 12, the dearest
// first; the tiles of rows that a warp has; the number of orbits; kHeads: [orbit][8 warps] first fragment, then for each of
// the warp's tiles its steps + kHeadBias, kHeadBits each (fragments follow one another by step, then by tile, used or not);
// kColumns: [8 warps][8][8] the coefficient that is a column of a tile, or none; kSlotClass: [8 warps][8] the class of a tile's
// columns; kClass: [256] classes of coefficients.
constexpr int kSlots = 126, kOrbitCount = 127, kHeads = 128, kColumns = kHeads + 16 * kMaxOrbits, kSlotClass = kColumns + 512, kClass = kSlotClass + 64;
constexpr u32 kHeadBits = 6, kHeadBias = 31, kHeadOnes = 0x1041041;

// Fmm::op in words, made there too: M2M and L2L of octant 7, of which the others' differ in signs. Sorted: coefficients by class and degree,
// every class filled up to whole tiles of 8. kUpHead: [sorted tile] first fragment << 6 | steps, of the parent's columns from
// the child's step 0 on; kDownHead: [tile of the child's columns][class of the parent], the last so many tiles of that class.
constexpr int kMostSorted = 40, kSortedTiles = 0, kClassEnd = 8, kSortedClass = 16, kSortedColumn = kSortedClass + kMostSorted,
              kUpHead = kSortedColumn + 8 * kMostSorted, kDownHead = kUpHead + kMostSorted, kOpWords = kDownHead + 8 * 32;

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
#ifdef WFMM_EMULATED
    if (emulated::tensor_units) emulated::multiply_fragments(c, a, b); else mma_shuffle(c, a, b);
#elif __CUDA_ARCH__ >= 900
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
#ifdef WFMM_EMULATED
    if (emulated::tensor_units) emulated::multiply_fragments(c, a, b); else mma_shuffle(c, a, b);
#elif __CUDA_ARCH__ >= 800
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
#elif defined(WFMM_EMULATED)
    return emulated::rounded_to_tf32(x);
#else
    return x;
#endif
}

template <class T, int SPLIT> struct Table;
template <> struct Table<double, 1> { typedef double2 Piece; };
template <> struct Table<float, 1> { typedef float2 Piece; };
template <> struct Table<float, 3> { typedef float4 Piece; };

// What a tile is: some cells of one level and octant.
struct Tile { int level, octant, first, count; };

// Tile number `work` of the bins from..to: a run of target cells of one (level, octant).
__device__ inline bool find_tile(const u32 *bins, int from, int to, int cells, u32 work, Tile *t) {
    u32 first = 0;
    for (int b = 0; b < from; b++) first += bins[b];
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

} // namespace fmm
