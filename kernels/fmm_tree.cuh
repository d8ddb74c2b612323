// What the tree of any problem (fmm_tree.cu) and that of a small one (fmm_small.cuh) share: root cube, keys, the widths that leaves
// must have, sorted points, cells beside a cell.
#pragma once
#include "fmm.cuh"

namespace fmm {

// The root cube from the bounding box: the origin is a multiple of side/1024, hence shifting by it loses no bits. Of segments, whose
// middles are in it, none is longer than twice `box` in its units.
__device__ inline Root make_root(const Fmm &f, const double *low, const double *high) {
    // The exponent of a normal number, and a power of two.
    const auto exponent = [](double x) { return ((int)(__double_as_longlong(x) >> 52) & 0x7ff) - 1023; };
    const auto power = [](int e) { return __longlong_as_double((long long)(e + 1023) << 52); };
    if (f.period > 0) {
        // The periodic box, whatever is in it.
        Root r;
        r.scale = power(-exponent(f.period * f.stretch)) * f.box_side;
        r.period = f.period * r.scale;
        r.side = r.period * f.stretch;
        for (int k = 0; k < 3; k++) r.origin[k] = -0.5 * f.period;
        return r;
    }
    double longest = f.kind == kSegment ? unordered(f.state->longest) : 0, extent = 0;
    for (int k = 0; k < 3; k++) extent = fmax(extent, high[k] - low[k]);
    if (!(extent > 0)) extent = fmax(fmax(fabs(low[0]), fabs(low[1])), fmax(fabs(low[2]), 1e-300));
    // Lengths near the ends of what a number can be are taken in another unit; beside a longest segment that overflowed an extent
    // may come to nothing.
    const int shift = fmax(extent, longest) > 1e250 ? -400 : extent < 1e-250 ? 400 : 0;
    const double unit = power(shift), per_unit = power(-shift);
    extent = fmax(extent * unit, 1e-290); longest *= unit;
    Root r;
    r.period = 0;
    const int e = exponent(extent) - 10;
    double side = 0;
    for (int k = 0; k < 3; k++) {
        const double from = floor(low[k] * unit * power(-e)) * power(e);
        side = fmax(side, high[k] * unit - from);
        r.origin[k] = from * per_unit;
    }
    side = fmax(side, extent) * (1 + 1e-6) * f.stretch;
    const double scale = power(-exponent(fmax(side, longest))) * f.box_side;
    r.side = side * scale;
    r.scale = scale * unit;
    return r;
}

// Cells of the deepest level.
struct Cells {
    double to_cells, last;
    // Along a side there are fewer in a periodic box that is narrower than its root cube.
    __device__ Cells(const Root &r, u32 max_level)
        : to_cells((double)(1ull << max_level) / r.side), last((r.period > 0 && r.period < r.side ? (double)(3ull << max_level >> 2) : (double)(1ull << max_level)) - 1) {}
    // Cell of the caller's point x along each axis.
    __device__ void of(const Root &r, const double *x, u32 *c) const {
        for (int k = 0; k < 3; k++) c[k] = (u32)fmin(fmax((x[k] - r.origin[k]) * r.scale * to_cells, 0.0), last);
    }
    __device__ u64 key_of(const Root &r, const double *x) const {
        u32 c[3];
        of(r, x, c);
        return morton(c[0], c[1], c[2]);
    }
};

// Deepest level of which cells are so wide, in the caller's unit.
__device__ inline int deepest_level(const Fmm &f, double width, const Root &root) {
    if (!(width > 0)) return f.max_level;
    const double ratio = root.side / (width * root.scale);
    return min((int)f.max_level, ratio < 1 ? 0 : ilogb(ratio));
}

// Least width of leaves of elements with cores: that of the least core, where cores differ up to four times as wide. Inside the larger
// ones singular sums are larger than the field. Zero: any width will do.
__device__ inline double width_of_cores(const Fmm &f, double least_core, double most_core) {
    const double least = f.regularization ? least_core : 0;
    return least > 0 ? fmin(4 * least, sqrt(least * most_core)) : 0;
}

// Deepest level that source leaves may have. Leaves of segments are at least two lengths of a piece wide.
__device__ inline int deepest_leaf(const Fmm &f, double least_core, double most_core, const Root &root) {
    if (f.kind == kCharge) return f.max_level;
    const double longest = f.kind == kSegment ? 2 * unordered(f.state->longest_piece) : 0;
    const int level = deepest_level(f, fmax(longest, width_of_cores(f, least_core, most_core)), root);
    return in_thirds(f) ? max(level, (int)f.top) : level;
}

// First index in [low, high) of a sorted array whose value is not below `v`.
template <class V> __device__ inline u32 lower_bound(const V *a, u32 low, u32 high, V v) {
    while (low < high) { const u32 m = (low + high) / 2; if (a[m] < v) low = m + 1; else high = m; }
    return low;
}

// The caller's point `from`, as SortedPoint says; of the sources with its core and strength. A segment is its middle and half of its
// vector, in f64 both its ends.
template <class T> struct Sorted {
    Vec4<T> p, q, low;
    __device__ Sorted(const Fmm &f, int tree, u32 from, const Root &r) {
        const Tree &t = f.tree[tree];
        const bool ends = sizeof(T) == 8 && tree == 0 && f.kind == kSegment;
        Piece piece{};
        if (tree == 0 && f.kind == kSegment) piece = ((const Piece *)f.piece)[from];
        double x[3];
        for (int k = 0; k < 3; k++) {
            x[k] = ends ? end_of(f, piece, piece.from(), k) : input(t.x, t.x_is_f64, 3 * (size_t)from + k);
            x[k] = (sizeof(T) == 8 ? x[k] : x[k] - r.origin[k]) * r.scale;
        }
        p = {(T)x[0], (T)x[1], (T)x[2], (T)0};
        low = {(T)(x[0] - p.x), (T)(x[1] - p.y), (T)(x[2] - p.z), (T)0};
        q = {0, 0, 0, 0};
        if (tree) return;
        if (f.kind == kCharge) p.w = (T)input(f.strength_in, f.inputs_are_f64 & 1, from);
        else if (f.kind == kParticle) {
            const double c = f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, from) : f.default_core;
            p.w = (T)(c * r.scale);
            T a[3];
            for (int k = 0; k < 3; k++) a[k] = (T)input(f.strength_in, f.inputs_are_f64 & 1, 3 * (size_t)from + k);
            q = {a[0], a[1], a[2], 0};
        } else {
            p.w = (T)(piece.core * r.scale);
            q = {(T)(piece.half[0] * r.scale), (T)(piece.half[1] * r.scale), (T)(piece.half[2] * r.scale), (T)piece.circulation};
            if (ends) { q.x = (T)(end_of(f, piece, piece.to(), 0) * r.scale); q.y = (T)(end_of(f, piece, piece.to(), 1) * r.scale); q.z = (T)(end_of(f, piece, piece.to(), 2) * r.scale); }
        }
    }
    // Coordinate `k` of the position at `at` along the piece's segment.
    static __device__ double end_of(const Fmm &f, const Piece &piece, double at, int k) {
        const int *pair = f.connectivity + (size_t)f.ld * piece.segment;
        const u32 is_f64 = f.inputs_are_f64 >> 2 & 1;
        return cut(input(f.points, is_f64, 3 * (size_t)(pair[0] - (int)f.index_base) + k), input(f.points, is_f64, 3 * (size_t)(pair[1] - (int)f.index_base) + k), at);
    }
    // As point i of the sorted ones.
    __device__ void put(const Fmm &f, int tree, u32 i) const {
        ((Vec4<T> *)f.tree[tree].point)[i] = p;
        if (sizeof(T) == 4) ((Vec4<T> *)f.tree[tree].point)[f.tree[tree].n + i] = low;
        if (tree == 0 && f.kind != kCharge) ((Vec4<T> *)f.strength)[i] = q;
    }
};

// Source cell at offset `o` beside target cell c, at its level, or kNone. `along`: cells along the side of a periodic box at that level; in
// it an image of a cell is the cell, seen from elsewhere.
__device__ inline u32 find_beside(const Tree &s, const Tree &t, const u32 *source_begin, u32 c, int o, int along = 0) {
    const int level = info_level(t.info[c]), side = 1 << level;
    int x[3], d[3];
    unmorton(t.cell_key[c], x);
    beside(o, d);
    for (int k = 0; k < 3; k++) {
        x[k] += d[k];
        if (along) x[k] = (x[k] + 2 * along) % along;
    }
    if (x[0] < 0 || x[1] < 0 || x[2] < 0 || x[0] >= side || x[1] >= side || x[2] >= side) return kNone;
    const u64 key = morton(x[0], x[1], x[2]);
    const u32 end = source_begin[level + 1], k = lower_bound(s.cell_key, source_begin[level], end, key);
    return k < end && s.cell_key[k] == key ? k : kNone;
}

} // namespace fmm
