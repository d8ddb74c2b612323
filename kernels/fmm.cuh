// What all FMM kernels share beside the structs that the host hands to them (fmm_args.cuh): state of an evaluation, small functions.
//
// Lengths: the root cube is the bounding box of sources and targets; coordinates are scaled by a power of two, so that nothing depends
// on the caller's units, and of cells are relative to an origin of few bits. Every array lives in
// device memory; "cell" indices run level by level, inside a level along the Morton curve.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "fmm_args.cuh"

namespace fmm {

typedef unsigned u32;
typedef unsigned long long u64;

constexpr int kLevels = 22;        // levels 0..21: three times 21 bits fit a key
constexpr int kBins = kLevels * 8; // (level, octant) classes of target cells
constexpr int kBeside = 33;        // cells beside a cell: those at most 2 sides from centre to centre, itself included
constexpr int kMaxOrbits = 80;     // M2L offsets up to signs
constexpr u32 kNone = 0xffffffffu;
// Where leaves are too few to fill the chip, the near sources of a leaf are summed in parts, which L2P adds. At most: parts of a leaf; sums
// of all parts together (16 MB with gradients in f64); cells of the tree.
constexpr u32 kMostParts = 16, kPartRows = 163840, kPartCells = 1024;

// What a source is.
enum Kind { kCharge = 0, kParticle = 1, kSegment = 2 };
// Bits of State::flags: what the host must enlarge before it tries again.
enum Flag { kCellsOverflow = CELLS_OVERFLOW, kDepthOverflow = DEPTH_OVERFLOW, kOutside = OUTSIDE, kDense = DENSE };

template <class T> struct alignas(16) Vec4 { T x, y, z, w; };

struct Root {
    double origin[3]; // subtracted first
    double scale;     // power of two, multiplied second
    double side;      // of the root cube, after scaling: in [extent, 2 extent), Real::extent of common.cuh; less where segments are longer
    double period;    // of a periodic box, after scaling; 0: open
};

// A segment as its tree takes it, or one of `parts` pieces of a long one (fmm_segments.cu).
struct Piece {
    double half[3], circulation, core;
    u32 segment, part, parts, unused;
    // Where the piece begins and ends along the segment. No piece ends in the middle of its segment or at a quarter: control points
    // of the hosts are there, which are on the line to the last digit, and ends of pieces are not. The last piece is the longest.
    static constexpr double kShift = 0.0344, kLongest = 1 + kShift;
    __device__ double at(u32 part) const { return part == 0 ? 0 : part == parts ? 1 : (part - kShift) / parts; }
    __device__ double from() const { return at(part); }
    __device__ double to() const { return at(part + 1); }
};
// A coordinate between those of two ends: the ends' own at 0 and 1.
__device__ inline double cut(double a, double b, double at) { return at == 0 ? a : at == 1 ? b : a + (b - a) * at; }
constexpr int kCuts = CUTS;

// Counters of one evaluation; cleared before it begins. The host reads the first 48 bytes afterwards.
struct State {
    u32 flags;
    u32 deepest[2];                // deepest level in use
    u32 cells[2];                  // cells that the trees need
    u32 parts;                     // M2L sums of a tile are taken in so many parts
    u64 near_pairs, core_pairs, far_pairs;
    u32 written;                   // sums of squares that L2P leaves
    u32 pieces;                    // segments and pieces in the tree
    u64 strongest;                 // bits of the largest velocity at the range of a core (fmm_p2m.cu), in scaled lengths, without normalization
    u64 upper[3], lower[3];        // ordered bits of max x and of max -x
    u64 ends_upper[3], ends_lower[3]; // the same of the segments alone
    u64 longest, longest_piece;    // ordered bits of the longest segment, and of the longest piece
    u64 least_core, most_core;     // ordered bits of minus the least core and of the largest
    Root root;
    u32 level_begin[2][kLevels + 2];
    u32 bin_count[kBins], bin_cursor[kBins];
    u32 sort_ticket[2][8];
    u32 work_ticket[8];
    u32 translated[2][kLevels];    // tiles of M2M and L2L that are done, by level
    u32 tree_flags[2];             // bits for `flags` that the trees of fmm_cluster.cuh found
    u32 histogram[2][8][256];      // of the digits of the keys
    u32 small_m2l_ticket[128];     // parts of a tile that are summed, see fmm_m2l_small.cuh
    double exact2[8];              // sums over sampled targets of the squared exact field (fmm_check.cu), of so many
    u32 exact_groups, exact_n[8];  // targets each
    u64 cut_pieces[kCuts];         // pieces more than segments, by how far segments are cut
    u32 near_parts[kPartCells];    // parts of a leaf's near sources, behind the field; 0 or 1: all are in the field itself
};
static_assert(sizeof(State) <= STATE_BYTES && offsetof(State, pieces) == PIECES, "backend::cuda::fmm::args");
static_assert(offsetof(State, far_pairs) == offsetof(StateHead, far_pairs), "backend::cuda::fmm::args");

// Has memory bring the line of `p` to the L2, where it is wanted soon.
__device__ inline void fetch_ahead(const void *p) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#endif
}

// Doubles to integers of the same order; 0 is below all of them.
__device__ inline u64 ordered(double x) {
    const u64 bits = (u64)__double_as_longlong(x);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ inline double unordered(u64 o) { return __longlong_as_double((long long)(o >> 63 ? o & ~(1ull << 63) : ~o)); }

__device__ inline u64 spread(u64 v) {
    v &= 0x1fffff;
    v = (v | v << 32) & 0x1f00000000ffffull;
    v = (v | v << 16) & 0x1f0000ff0000ffull;
    v = (v | v << 8) & 0x100f00f00f00f00full;
    v = (v | v << 4) & 0x10c30c30c30c30c3ull;
    return (v | v << 2) & 0x1249249249249249ull;
}

__device__ inline u32 gather_bits(u64 v) {
    v &= 0x1249249249249249ull;
    v = (v | v >> 2) & 0x10c30c30c30c30c3ull;
    v = (v | v >> 4) & 0x100f00f00f00f00full;
    v = (v | v >> 8) & 0x1f0000ff0000ffull;
    v = (v | v >> 16) & 0x1f00000000ffffull;
    return (u32)(v | v >> 32) & 0x1fffff;
}

// Key: x in the lowest bit of each triple, then y, then z.
__device__ inline u64 morton(u32 x, u32 y, u32 z) { return spread(x) | spread(y) << 1 | spread(z) << 2; }
__device__ inline void unmorton(u64 key, int *c) {
    c[0] = (int)gather_bits(key); c[1] = (int)gather_bits(key >> 1); c[2] = (int)gather_bits(key >> 2);
}

// Deepest level at which two keys of `levels` levels share a cell.
__device__ inline int common_level(u64 a, u64 b, int levels) {
    return a == b ? levels : (3 * levels - (64 - __clzll((long long)(a ^ b)))) / 3;
}

// Whether this is the last of `blocks` to come here; what the others wrote to device memory before is then seen.
__device__ inline bool is_last(u32 *ticket, u32 blocks) {
    __shared__ bool s_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        s_last = atomicAdd(ticket, 1u) == blocks - 1;
        if (s_last) { *ticket = 0; __threadfence(); }
    }
    __syncthreads();
    return s_last;
}

// Number of the thread, read anew: what follows from it is made again where it is used, and takes no register in a loop between.
__device__ __forceinline__ u32 thread() {
#ifdef WFMM_EMULATED
    return threadIdx.x;
#else
    u32 t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
#endif
}
// The compiler leaves what is read behind here to be read there; nothing waits.
__device__ __forceinline__ void read_later() { asm volatile("" ::: "memory"); }

__device__ inline u32 count_of(const Tree &t) { return t.n_device ? min(*t.n_device, t.n) : t.n; }

__device__ inline double input(const void *a, u32 is_f64, size_t i) {
    return is_f64 ? ((const double *)a)[i] : (double)((const float *)a)[i];
}

// Offset of neighbour `n` relative to a cell: the 27 around it, then one step further along each axis.
__device__ inline void beside(int n, int *d) {
    if (n < 27) { d[0] = n % 3 - 1; d[1] = n / 3 % 3 - 1; d[2] = n / 9 - 1; return; }
    const int k = n - 27, v = k & 1 ? 2 : -2;
    d[0] = k < 2 ? v : 0; d[1] = k >> 1 == 1 ? v : 0; d[2] = k >= 4 ? v : 0;
}
// Near: no M2L at this level between cells that far apart (in cells). Sqrt(5) sides is the closest that expansions meet; the
// cells two sides apart would need a third more coefficients for six of some 200 pairs.
__device__ inline bool is_near(int x, int y, int z) { return x * x + y * y + z * z <= 4; }

// Periodic boxes: an image of the sources is a lattice vector, numbered as `beside` numbers cells, so that none is 0. It is packed
// above the number of a source or cell.
constexpr u32 kImageBits = 26, kInImage = (1u << kImageBits) - 1;
constexpr int kOwnImage = 13; // index of the zero vector in `beside`
__device__ inline void image_vector(u32 image, int *n) { beside((int)(image ^ kOwnImage), n); }
// Of a vector that is no longer than two.
__device__ inline u32 image_of(const int *n) {
    int number = 0;
    if (abs(n[0]) < 2 && abs(n[1]) < 2 && abs(n[2]) < 2) number = n[0] + 1 + 3 * (n[1] + 1) + 9 * (n[2] + 1);
    else for (int k = 0; k < 3; k++) if (abs(n[k]) == 2) number = 27 + 2 * k + (n[k] > 0);
    return (u32)(number ^ kOwnImage);
}
#ifdef WFMM_PERIODIC
constexpr bool kPeriodic = true;
#else
constexpr bool kPeriodic = false;
#endif
__device__ inline u32 in_image(u32 packed) { return kPeriodic ? packed & kInImage : packed; }

// The root cube of a periodic box is the box, or wider by a third: then three cells of level 2 are as wide as the box, and there are no
// expansions above. So the number of cells along its side is 2^k or 3 * 2^k, which leaves the points of a leaf less to chance.
__device__ inline bool in_thirds(const Fmm &f) { return f.period > 0 && f.stretch > 1; }
// Cells of a level along the side of a periodic box, from level `top` on.
__device__ inline int cells_along(const Fmm &f, int level) { return in_thirds(f) ? 3 << level >> 2 : 1 << level; }
// Level of the largest cells whose parents' neighbours M2L goes through: cells of thirds have no parents, and fmm_m2l_box.cu.
__device__ inline u32 m2l_top(const Fmm &f) { return f.top + in_thirds(f); }

__device__ inline int info_level(u32 info) { return info & 31; }
__device__ inline bool info_leaf(u32 info) { return info >> 5 & 1; }
__device__ inline int info_octant(u32 info) { return info >> 6 & 7; }
__device__ inline u32 info_children(u32 info) { return info >> 16 & 255; }

// Where a sorted point is. In f64 it is the caller's, scaled by the power of two: differences of points are those of the caller's
// numbers. In f32 it is two numbers relative to the root cube's origin, of which the first alone does for comparisons with boxes.
template <class T> struct SortedPoint {
    // Of the points' numbers relative to those of the root cube.
    static __device__ T origin(const Root &root, int k) { return sizeof(T) == 8 ? (T)(root.origin[k] * root.scale) : (T)0; }
    static __device__ const Vec4<T> *low(const Tree &t) { return (const Vec4<T> *)t.point + t.n; }
    // Relative to `from`, in the points' numbers; `low` of f32 alone.
    static __device__ __forceinline__ T relative(T high, T low, T from) { return sizeof(T) == 8 ? high - from : (high - from) + low; }
    // Moves a coordinate so many periods; in f32 what its first number cannot hold goes to the second.
    static __device__ inline void move(const Root &root, int periods, T &high, T &low) {
        const double by = periods * root.period;
        if (sizeof(T) == 8) { high += (T)by; return; }
        const T first = (T)by, sum = high + first, part = sum - high;
        low += ((high - (sum - part)) + (first - part)) + (T)(by - (double)first);
        high = sum;
    }
    // A sorted point of an image of the sources.
    static __device__ inline void move_to(const Root &root, u32 packed, Vec4<T> &high, Vec4<T> &low) {
        int n[3];
        image_vector(packed >> kImageBits, n);
        move(root, n[0], high.x, low.x); move(root, n[1], high.y, low.y); move(root, n[2], high.z, low.z);
    }
};

// Child of `cell` in `octant`, or kNone.
__device__ inline u32 child_of(const Tree &t, u32 cell, int octant) {
    const u32 mask = info_children(t.info[cell]);
    return mask >> octant & 1 ? t.child[cell] + __popc(mask & ((1u << octant) - 1)) : kNone;
}

// Centre (scaled coordinates) and side of a cell, by its key.
template <class T> __device__ inline T centre_of_cell(const Root &root, int level, u64 key, T *centre) {
    const double side = root.side / (double)(1u << level);
    int c[3];
    unmorton(key, c);
    for (int k = 0; k < 3; k++) centre[k] = (T)((c[k] + 0.5) * side);
    return (T)side;
}
// The same centre with the digits that T has not.
template <class T> __device__ inline T centre_of_cell(const Root &root, int level, u64 key, T *centre, T *low) {
    double exact[3];
    const double side = centre_of_cell(root, level, key, exact);
    for (int k = 0; k < 3; k++) { centre[k] = (T)exact[k]; low[k] = (T)(exact[k] - centre[k]); }
    return (T)side;
}
template <class T> __device__ inline T cell_geometry(const Tree &t, const Root &root, u32 cell, T *centre) {
    return centre_of_cell(root, info_level(t.info[cell]), t.cell_key[cell], centre);
}

} // namespace fmm
