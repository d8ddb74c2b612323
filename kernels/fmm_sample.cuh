// What the exact sums at sampled targets (fmm_check.cu, fmm_check_grids.cu) share: sources from the caller's arrays, and which targets.
#pragma once
#include "fmm_check.cuh"
#include "on_line.cuh"

namespace fmm {

// A caller's point in the frame's lengths; nothing is subtracted from it.
__device__ inline Vec<double> in_frame(const Root &root, const void *x, u32 is_f64, size_t at) {
    return {input(x, is_f64, 3 * at) * root.scale, input(x, is_f64, 3 * at + 1) * root.scale, input(x, is_f64, 3 * at + 2) * root.scale};
}

__device__ inline double core_of(const Fmm &f, const Root &root, size_t i) {
    return (f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, i) : f.default_core) * root.scale;
}

__device__ inline void read(const Fmm &f, const Root &root, size_t i, Particle<double> &p) {
    const u32 is_f64 = f.inputs_are_f64 & 1;
    const Vec<double> x = in_frame(root, f.tree[0].x, f.tree[0].x_is_f64, i);
    p = {x.x, x.y, x.z, 0, input(f.strength_in, is_f64, 3 * i), input(f.strength_in, is_f64, 3 * i + 1), input(f.strength_in, is_f64, 3 * i + 2), 0};
    particle_core<double>(f.regularization, core_of(f, root, i), p.core, p.cut2);
}
__device__ inline void read(const Fmm &f, const Root &root, size_t i, Segment<double> &s) {
    const u32 is_f64 = f.inputs_are_f64 >> 2 & 1;
    const int *ends = f.connectivity + i * f.ld;
    const Vec<double> a = in_frame(root, f.points, is_f64, ends[0] - f.index_base), b = in_frame(root, f.points, is_f64, ends[1] - f.index_base), l = b - a;
    s = {a.x, a.y, a.z, input(f.strength_in, f.inputs_are_f64 & 1, i), b.x, b.y, b.z, 0};
    if (l.x == 0 && l.y == 0 && l.z == 0) no_segment(s);
    else s.core = segment_core<double>(f.regularization, core_of(f, root, i), dot(l, l));
}
__device__ inline void read(const Fmm &f, const Root &root, size_t i, Charge<double> &q) {
    const Vec<double> x = in_frame(root, f.tree[0].x, f.tree[0].x_is_f64, i);
    q = {x.x, x.y, x.z, input(f.strength_in, f.inputs_are_f64 & 1, i)};
}
// Elements that add nothing.
__device__ inline void clear(Particle<double> &p) { p = {0, 0, 0, 0, 0, 0, 0, 0}; }
__device__ inline void clear(Segment<double> &s) { s = {0, 0, 0, 0, 1, 0, 0, 0}; }
__device__ inline void clear(Charge<double> &q) { q = {0, 0, 0, 0}; }

// Elements of a periodic image.
__device__ inline void move(Particle<double> &p, const double *by) { p.x += by[0]; p.y += by[1]; p.z += by[2]; }
__device__ inline void move(Charge<double> &q, const double *by) { q.x += by[0]; q.y += by[1]; q.z += by[2]; }
__device__ inline void move(Segment<double> &s, const double *by) {
    s.x1 += by[0]; s.y1 += by[1]; s.z1 += by[2];
    s.x2 += by[0]; s.y2 += by[1]; s.z2 += by[2];
}

// Source `i` of all images, or none.
template <class Source> __device__ inline void fetch(const Fmm &f, const Root &root, u32 i, bool wanted, Source &s) {
    if (!wanted || i >= f.n_in * f.images) { clear(s); return; }
    if (f.images == 1) { read(f, root, i, s); return; }
    const u32 image = i / f.n_in;
    int n[3];
    beside((int)image, n);
    const double by[3] = {n[0] * root.period, n[1] * root.period, n[2] * root.period};
    read(f, root, i - image * f.n_in, s);
    move(s, by);
}

// From what the targets of this evaluation are chosen: positions of some targets and sources, so that a wake that moves has others.
__device__ inline u64 seed_of(const Fmm &f, u32 seed) {
    u64 z = seed * 0xd1342543de82ef95ull;
    const u32 m = f.tree[1].n;
    for (u32 k = 0; k < 6; k++) {
        const u64 x = (u64)__double_as_longlong(input(f.tree[1].x, f.tree[1].x_is_f64, k < 3 ? k : 3 * (size_t)(m - 1) + k - 3));
        z = (z ^ x) * 0x9fb21c651e98df25ull;
        z ^= z >> 29;
    }
    const u32 n = f.kind == kSegment ? 0 : f.n_in;
    for (u32 k = 0; k < 3; k++) {
        const u64 x = (u64)__double_as_longlong(n ? input(f.tree[0].x, f.tree[0].x_is_f64, 3 * (size_t)(n / 2) + k) : input(f.points, f.inputs_are_f64 >> 2 & 1, 3 * (size_t)(f.connectivity[(size_t)f.ld * (f.n_in / 2)] - (int)f.index_base) + k));
        z = (z ^ x) * 0x9fb21c651e98df25ull;
        z ^= z >> 29;
    }
    return z;
}

// The target that a lane stands for, in the caller's array; of the first kind of source it is chosen here.
__device__ inline u32 target_of(const Fmm &f, const Check &c, u32 k) {
    k = min(k, c.samples - 1);
    if (k < c.certain || c.slot) return c.at[k];
    return f.tree[1].order[chosen(k, c.certain, c.samples, f.tree[1].n, seed_of(f, c.seed))];
}

} // namespace fmm
