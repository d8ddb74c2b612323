// Segments to what their tree takes: the middle, which is the point that is sorted, half of the vector from P1 to P2, circulation, core.
//
// A leaf is at least twice as wide as its longest segment, so a long one among short ones would make everything near. Where the
// arrays have room, long segments are cut into pieces, for the width of leaf that leaves the fewest pairs. What is near is summed
// with pieces too; the fields of the pieces add up to the segment's, since cores act by the distance to the line.
#include "fmm_tree.cuh"
using namespace fmm;

constexpr u32 kBlock = CUT_BLOCK; // segments of a block of 256 threads, in order

struct Ends { double a[3], b[3], length; };
__device__ inline Ends ends_of(const Fmm &f, u32 i) {
    const u32 is_f64 = f.inputs_are_f64 >> 2 & 1;
    const int *pair = f.connectivity + (size_t)f.ld * i;
    Ends e;
    double l2 = 0;
    for (int k = 0; k < 3; k++) {
        e.a[k] = input(f.points, is_f64, 3 * (size_t)(pair[0] - (int)f.index_base) + k);
        e.b[k] = input(f.points, is_f64, 3 * (size_t)(pair[1] - (int)f.index_base) + k);
        const double half = 0.5 * (e.b[k] - e.a[k]);
        l2 += half * half;
    }
    e.length = 2 * sqrt(l2);
    return e;
}
__device__ inline double core_of(const Fmm &f, u32 i) { return f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, i) : f.default_core; }
__device__ inline double circulation_of(const Fmm &f, u32 i, double length) { return length > 0 ? input(f.strength_in, f.inputs_are_f64 & 1, i) : 0; }

// Piece `part` of `parts` of segment `i`, as number `to` of the tree's points.
__device__ inline void put(const Fmm &f, u32 to, u32 i, const Ends &e, double circulation, double core, u32 part, u32 parts) {
    Piece p{{}, circulation, core, i, part, parts, 0};
    for (int k = 0; k < 3; k++) {
        const double x = cut(e.a[k], e.b[k], p.from()), y = cut(e.a[k], e.b[k], p.to());
        ((double *)f.tree[0].x)[3 * (size_t)to + k] = 0.5 * (x + y);
        p.half[k] = 0.5 * (y - x);
    }
    ((Piece *)f.piece)[to] = p;
}

__device__ inline void note_longest(u64 *longest, double length) {
    for (int d = 16; d; d >>= 1) length = fmax(length, __shfl_xor_sync(~0u, length, d));
    if ((threadIdx.x & 31) == 0) atomicMax(longest, ordered(length));
}

// All segments whole. Launch: 256 threads, any number of blocks.
extern "C" __global__ void __launch_bounds__(256) fmm_segments(const __grid_constant__ Fmm f) {
    double longest = 0;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < f.n_in; i += gridDim.x * 256) {
        const Ends e = ends_of(f, i);
        put(f, i, i, e, circulation_of(f, i, e.length), core_of(f, i), 0, 1);
        longest = fmax(longest, e.length);
    }
    note_longest(&f.state->longest, longest);
    note_longest(&f.state->longest_piece, longest);
}

// The box of all ends, the longest segment, the extreme cores. Launch: 256 threads, any number of blocks.
extern "C" __global__ void __launch_bounds__(256) fmm_segment_bounds(const __grid_constant__ Fmm f) {
    double longest = 0, m[8];
    for (int k = 0; k < 8; k++) m[k] = -1e308;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < f.n_in; i += gridDim.x * 256) {
        const Ends e = ends_of(f, i);
        for (int k = 0; k < 3; k++) { m[k] = fmax(m[k], fmax(e.a[k], e.b[k])); m[3 + k] = fmax(m[3 + k], -fmin(e.a[k], e.b[k])); }
        longest = fmax(longest, e.length);
        const double core = core_of(f, i);
        m[6] = fmax(m[6], -core); m[7] = fmax(m[7], core);
    }
    note_longest(&f.state->longest, longest);
    for (int k = 0; k < 8; k++) {
        for (int d = 16; d; d >>= 1) m[k] = fmax(m[k], __shfl_xor_sync(~0u, m[k], d));
        if ((threadIdx.x & 31) || !(m[k] > -1e308) || (k >= 6 && !f.regularization)) continue;
        State &s = *f.state;
        atomicMax(k < 3 ? &s.upper[k] : k < 6 ? &s.lower[k - 3] : k == 6 ? &s.least_core : &s.most_core, ordered(m[k]));
        if (k < 6) atomicMax(k < 3 ? &s.ends_upper[k] : &s.ends_lower[k - 3], ordered(m[k]));
    }
}

// The leaves that segments may be cut for: the first level below that of whole segments, and how many there are.
struct Levels {
    Root root;
    int first, count;
    __device__ Levels(const Fmm &f) {
        double low[3], high[3];
        for (int k = 0; k < 3; k++) { high[k] = unordered(f.state->upper[k]); low[k] = -unordered(f.state->lower[k]); }
        root = make_root(f, low, high);
        const double least = f.regularization ? -unordered(f.state->least_core) : 0, core = least > 0 ? fmin(4 * least, sqrt(least * unordered(f.state->most_core))) : 0;
        first = deepest_level(f, 2 * unordered(f.state->longest), root) + 1;
        count = max(min(kCuts, deepest_level(f, core, root) + 1 - first), 0);
    }
    // Width of the leaves of choice `c`, in the caller's unit; -1: those of whole segments.
    __device__ double width(int c) const { return root.side / root.scale / (double)(1ull << (first + c)); }
    // Pieces of a segment for leaves of so wide; a piece is at most half as long.
    static __device__ u32 parts(double length, double width) {
        const double most = 0.5 * width * (1 - 1e-12);
        return length > most ? (u32)ceil(Piece::kLongest * length / most) : 1;
    }
};

// How many pieces more than segments there would be. Launch: 256 threads, a block for 1024 segments.
extern "C" __global__ void __launch_bounds__(256) fmm_cut_counts(const __grid_constant__ Fmm f) {
    __shared__ u32 s_count[kCuts];
    const Levels levels(f);
    if (threadIdx.x < kCuts) s_count[threadIdx.x] = 0;
    __syncthreads();
    u32 more[kCuts] = {};
    for (u32 i = blockIdx.x * kBlock + threadIdx.x; i < min((blockIdx.x + 1) * kBlock, f.n_in); i += 256) {
        const double length = ends_of(f, i).length;
        for (int c = 0; c < kCuts; c++) if (c < levels.count) more[c] += Levels::parts(length, levels.width(c)) - 1;
    }
    for (int c = 0; c < kCuts; c++) {
        for (int d = 16; d; d >>= 1) more[c] += __shfl_xor_sync(~0u, more[c], d);
        if ((threadIdx.x & 31) == 0 && more[c]) atomicAdd(&s_count[c], more[c]);
    }
    __syncthreads();
    if (threadIdx.x >= kCuts) return;
    const u32 all = s_count[threadIdx.x];
    f.cut_count[(size_t)blockIdx.x * kCuts + threadIdx.x] = all;
    if (all) atomicAdd(&f.state->cut_pieces[threadIdx.x], (u64)all);
}

// The choice that leaves the fewest pairs, -1: no segment is cut. Narrower leaves have fewer pairs as long as they are wider than those
// of a cloud that fills the box with as many elements a leaf.
__device__ inline int chosen_cut(const Fmm &f, const Levels &l) {
    double side[3], leaves = fmax((double)f.n_in / f.tree[0].capacity, 1.0);
    for (int k = 0; k < 3; k++) side[k] = unordered(f.state->ends_upper[k]) + unordered(f.state->ends_lower[k]);
    const double least = fmin(side[0], fmin(side[1], side[2])), most = fmax(side[0], fmax(side[1], side[2])), middle = side[0] + side[1] + side[2] - least - most;
    double full = cbrt(least * middle * most / leaves); // of a leaf of that cloud
    if (full > least) full = sqrt(middle * most / leaves);
    if (full > middle) full = most / leaves;
    int best = -1;
    double fewest = 0;
    for (int c = -1; c < l.count; c++) {
        const u64 more = c < 0 ? 0 : f.state->cut_pieces[c];
        const double wide = fmax(l.width(c) / full, 1.0), pairs = (double)(f.n_in + more) * wide * wide;
        if (c >= 0 && (f.n_in + more > f.tree[0].n || pairs >= fewest)) continue;
        best = c; fewest = pairs;
    }
    return best;
}

// Pieces in the order of the segments. Launch: 256 threads, a block for 1024 segments.
extern "C" __global__ void __launch_bounds__(256) fmm_pieces(const __grid_constant__ Fmm f) {
    __shared__ u32 s_sum[8], s_before[8];
    const Levels levels(f);
    const int choice = chosen_cut(f, levels);
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, blocks = (f.n_in + kBlock - 1) / kBlock;
    // Pieces more than segments of the blocks before this one.
    u32 before = 0;
    if (choice >= 0) for (u32 b = threadIdx.x; b < blockIdx.x; b += 256) before += f.cut_count[(size_t)b * kCuts + choice];
    // Four segments a thread, one after another.
    const u32 first = blockIdx.x * kBlock + 4 * threadIdx.x;
    u32 parts[4], mine = 0;
    Ends ends[4];
    for (u32 k = 0; k < 4; k++) {
        parts[k] = 0;
        if (first + k >= f.n_in) continue;
        ends[k] = ends_of(f, first + k);
        parts[k] = choice < 0 ? 1 : Levels::parts(ends[k].length, levels.width(choice));
        mine += parts[k] - 1;
    }
    u32 sum = mine;
    for (int d = 1; d < 32; d <<= 1) { const u32 y = __shfl_up_sync(~0u, sum, d); if (lane >= d) sum += y; }
    for (int d = 16; d; d >>= 1) before += __shfl_xor_sync(~0u, before, d);
    if (lane == 31) { s_sum[warp] = sum; s_before[warp] = before; }
    __syncthreads();
    u32 to = first + sum - mine;
    for (u32 w = 0; w < 8; w++) { to += s_before[w]; if (w < warp) to += s_sum[w]; }
    double longest = 0;
    for (u32 k = 0; k < 4; k++) {
        if (!parts[k]) continue;
        const u32 i = first + k;
        const double circulation = circulation_of(f, i, ends[k].length), core = core_of(f, i);
        for (u32 part = 0; part < parts[k]; part++) put(f, to++, i, ends[k], circulation, core, part, parts[k]);
        longest = fmax(longest, parts[k] > 1 ? Piece::kLongest * ends[k].length / parts[k] : ends[k].length);
    }
    note_longest(&f.state->longest_piece, longest);
    if (blockIdx.x == blocks - 1 && threadIdx.x == 0) f.state->pieces = f.n_in + (u32)(choice < 0 ? 0 : f.state->cut_pieces[choice]);
}
