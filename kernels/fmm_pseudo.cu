// Pseudo-particles in place of harmonics (Anderson 1992; Makino 1999; Yokota et al. 2009, Section 3.3): P2M, M2M, M2L, L2L and L2P.
//
// An expansion is the strengths of K particles on a sphere around its cell. With y_i the points of the unit sphere, w_i their weights and
// s the radius, sources q_j at x_j become
//   q_i = w_i Σ_j q_j Σ_n (2n + 1) t^n P_n(cos γ_ij), t = |x_j|/s (multipoles), or
//   q_i = w_i Σ_j q_j Σ_n (2n + 1) t^(n+1) P_n(cos γ_ij), t = s/|x_j| (local expansions):
// every translation is one sum over sources, those of a leaf or the particles of other cells. A block has a cell, a thread a point of its
// sphere, and all threads together bring a chunk of the sources to shared memory. Lengths are in sides of the cell that is written.
// L2P is the singular sum over a leaf's particles, to rows of `Fmm::local`; fmm_m2p_write adds the near field.
#include "fmm.cuh"
using namespace fmm;

constexpr int kMostThreads = 256, kMostOrder = 16;
// Radii of the spheres: that of the cell, and twice that for local expansions, whose particles have harmonics beyond their order: at a
// target these fall as the power of its distance to the radius.
constexpr double kInner = 0.8660254037844386, kOuter = 2 * kInner;
constexpr int kFarCells = 231; // far from a cell at one level

// The points of the unit sphere and their weights, `[terms][4]`.
struct Sphere {
    const double *points;
    int order, terms;
    template <class T> __device__ void at(int i, T radius, T *x) const { for (int d = 0; d < 3; d++) x[d] = radius * (T)points[4 * i + d]; }
};
__device__ inline Sphere sphere_of(const double *points, u32 order) { return {points, (int)order, (int)(order * (2 * order - 1))}; }

// A block's: about as many as the sphere has points, or half of that.
__device__ inline int threads() { return (int)blockDim.x; }

// Everything that a level's cells were not made without.
__device__ inline bool has_trees(const Fmm &f) { return !(f.state->flags & (kCellsOverflow | kDepthOverflow | kOutside)); }

template <class T, int C> struct Pseudo {
    // Which degrees of a source count: those of its position inside the sphere, or outside.
    enum Side { kInside, kOutside };
    struct Chunk {
        T x[3][kMostThreads], t[kMostThreads], q[C][kMostThreads]; // directions, ratios to the radius, strengths
        T rise[kMostOrder], fall[kMostOrder];          // P_n+1 from P_n and P_n-1
    };

    static __device__ void begin(Chunk &s) {
        for (int n = threadIdx.x + 1; n < kMostOrder; n += threads()) { s.rise[n] = (T)(2 * n - 1) / n; s.fall[n] = (T)(n - 1) / n; }
    }

    // Strengths of a sphere of radius `s` around a cell, of `count` sources, to `C` rows of `terms`; `load(j, x, q)` has source j. With `add`
    // those that are there already are kept. All threads.
    template <Side SIDE, class Load> static __device__ void sum(Chunk &chunk, const Sphere &sphere, T s, int count, bool add, T *to, const Load &load) {
        for (int first = 0; first < sphere.terms; first += threads()) {
            const int i = min(first + (int)threadIdx.x, sphere.terms - 1);
            T y[3], own[C] = {};
            sphere.at(i, (T)1, y);
            for (int base = 0; base < count; base += threads()) {
                __syncthreads();
                if (const int j = base + (int)threadIdx.x; j < count) put<SIDE>(chunk, s, j, load);
                __syncthreads();
                const int some = min(threads(), count - base);
#pragma unroll 2
                for (int j = 0; j < some; j++) {
                    const T t = chunk.t[j], u = t * (chunk.x[0][j] * y[0] + chunk.x[1][j] * y[1] + chunk.x[2][j] * y[2]), t2 = t * t;
                    T before = 0, now = 1, all = 1;
                    for (int n = 1; n < sphere.order; n++) {
                        const T next = chunk.rise[n] * u * now - chunk.fall[n] * t2 * before;
                        before = now; now = next;
                        all = fma((T)(2 * n + 1), now, all);
                    }
                    for (int c = 0; c < C; c++) own[c] = fma(all, chunk.q[c][j], own[c]);
                }
            }
            if (first + (int)threadIdx.x < sphere.terms)
                for (int c = 0; c < C; c++) {
                    T &at = to[c * sphere.terms + i];
                    at = (add ? at : 0) + (T)sphere.points[4 * i + 3] * own[c];
                }
        }
        __syncthreads();
    }
    template <Side SIDE, class Load> static __device__ void put(Chunk &chunk, T s, int j, const Load &load) {
        const int at = threadIdx.x;
        T x[3], q[C];
        load(j, x, q);
        const T r = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]), inverse = r > 0 ? 1 / r : 0;
        const T t = SIDE == kOutside ? s * inverse : r / s, factor = SIDE == kOutside ? t : 1;
        for (int d = 0; d < 3; d++) chunk.x[d][at] = x[d] * inverse;
        for (int c = 0; c < C; c++) chunk.q[c][at] = factor * q[c];
        chunk.t[at] = t;
    }

    static __device__ T *of(T *expansions, const Sphere &sphere, u32 cell) { return expansions + (size_t)cell * C * sphere.terms; }
    static __device__ const T *of(const T *expansions, const Sphere &sphere, u32 cell) { return expansions + (size_t)cell * C * sphere.terms; }
    // Particle j of an expansion whose cell's middle is at `centre`.
    static __device__ void particle(const Sphere &sphere, const T *strengths, int j, const T *centre, T radius, T *x, T *q) {
        sphere.at(j, radius, x);
        for (int d = 0; d < 3; d++) x[d] += centre[d];
        for (int c = 0; c < C; c++) q[c] = strengths[c * sphere.terms + j];
    }

    // ---- P2M, M2M. -----------------------------------------------------------------------------------------------------------

    // A cell, and where sorted points are in it.
    struct Place {
        T centre[3], low[3], inverse; // low: of the centre in f32; in f64 the origin of the points
        __device__ Place(const Tree &t, const Root &root, u32 cell) {
            inverse = 1 / centre_of_cell(root, info_level(t.info[cell]), t.cell_key[cell], centre, low);
            if (sizeof(T) == 8) for (int d = 0; d < 3; d++) low[d] = SortedPoint<T>::origin(root, d);
        }
        // Not yet in sides.
        __device__ Vec4<T> relative(const Tree &t, u32 i, T *x) const {
            const Vec4<T> p = ((const Vec4<T> *)t.point)[i];
            const T high[3] = {p.x, p.y, p.z};
            if (sizeof(T) == 8) { for (int d = 0; d < 3; d++) x[d] = (high[d] - low[d]) - centre[d]; return p; }
            const Vec4<T> q = SortedPoint<T>::low(t)[i];
            const T rest[3] = {q.x, q.y, q.z};
            for (int d = 0; d < 3; d++) x[d] = (high[d] - centre[d]) + (rest[d] - low[d]);
            return p;
        }
    };

    // Source j of a leaf, node j of its segments.
    static __device__ void source(const Fmm &f, const Place &place, u32 begin, int j, T *x, T *q) {
        const int per = f.kind == kSegment ? (int)f.gauss_points : 1;
        const u32 i = begin + j / per;
        const Vec4<T> p = place.relative(f.tree[0], i, x);
        if constexpr (C == 1) q[0] = p.w;
        else {
            const Vec4<T> v = ((const Vec4<T> *)f.strength)[i];
            q[0] = v.x; q[1] = v.y; q[2] = v.z;
            if (f.kind == kSegment) {
                const T at = (T)f.gauss[j % per], w = (T)f.gauss[16 + j % per] * v.w, end[3] = {p.x, p.y, p.z};
                for (int d = 0; d < 3; d++) {
                    if (sizeof(T) == 8) { q[d] = T(0.5) * (q[d] - end[d]); x[d] += q[d]; } // both ends
                    x[d] += at * q[d];
                    q[d] *= w;
                }
            }
        }
        for (int d = 0; d < 3; d++) x[d] *= place.inverse;
    }
    static __device__ void p2m(const Fmm &f, T *multipole, const Sphere &sphere) {
        __shared__ Chunk chunk;
        if (!has_trees(f)) return;
        const Tree &t = f.tree[0];
        const u32 cells = f.state->level_begin[0][kLevels];
        const Root root = f.state->root;
        begin(chunk);
        for (u32 c = blockIdx.x; c < cells; c += gridDim.x) {
            if (!info_leaf(t.info[c])) continue;
            const Place place(t, root, c);
            const u32 first = t.begin[c];
            const int count = (int)(t.end[c] - first) * (f.kind == kSegment ? (int)f.gauss_points : 1);
            sum<kInside>(chunk, sphere, (T)kInner, count, false, of(multipole, sphere, c), [&](int j, T *x, T *q) { source(f, place, first, j, x, q); });
        }
    }
    // The parents of a level.
    static __device__ void m2m(const Fmm &f, T *multipole, const Sphere &sphere, int level) {
        __shared__ Chunk chunk;
        if (!has_trees(f)) return;
        const Tree &t = f.tree[0];
        const u32 end = f.state->level_begin[0][level + 1];
        begin(chunk);
        for (u32 c = f.state->level_begin[0][level] + blockIdx.x; c < end; c += gridDim.x) {
            const u32 child = t.child[c];
            const int children = __popc(info_children(t.info[c]));
            if (info_leaf(t.info[c])) continue;
            sum<kInside>(chunk, sphere, (T)kInner, children * sphere.terms, false, of(multipole, sphere, c), [&](int j, T *x, T *q) {
                const u32 from = child + j / sphere.terms;
                const int octant = info_octant(t.info[from]);
                const T centre[3] = {octant & 1 ? T(0.25) : T(-0.25), octant & 2 ? T(0.25) : T(-0.25), octant & 4 ? T(0.25) : T(-0.25)};
                particle(sphere, of((const T *)multipole, sphere, from), j % sphere.terms, centre, T(0.5) * (T)kInner, x, q);
            });
        }
    }

    // ---- M2L, L2L. -----------------------------------------------------------------------------------------------------------

    struct FarCell { u32 cell; int offset[3]; }; // in sides
    struct Far { FarCell list[kFarCells]; int count; };

    // The children of the cells beside the parent that are not near. By the first warp.
    static __device__ void look_around(const Fmm &f, Far &far, u32 cell) {
        const Tree &from = f.tree[0];
        const int lane = threadIdx.x;
        const bool has_far = info_level(f.tree[1].info[cell]) >= 2;
        int at[3], count = 0;
        unmorton(f.tree[1].cell_key[cell], at);
        for (int base = 0; has_far && base < 8 * kBeside; base += 32) {
            const int k = base + lane;
            FarCell found{kNone, {}};
            if (k < 8 * kBeside) {
                const u32 beside = f.near[(size_t)f.tree[1].parent[cell] * kBeside + k / 8];
                if (beside != kNone) found.cell = child_of(from, beside, k % 8);
            }
            if (found.cell != kNone) {
                unmorton(from.cell_key[found.cell], found.offset);
                for (int d = 0; d < 3; d++) found.offset[d] -= at[d];
                if (is_near(found.offset[0], found.offset[1], found.offset[2])) found.cell = kNone;
            }
            const u32 is = __ballot_sync(~0u, found.cell != kNone);
            if (found.cell != kNone) far.list[count + __popc(is & ((1u << lane) - 1))] = found;
            count += __popc(is);
        }
        if (lane == 0) far.count = count;
    }
    // All cells; zero where nothing is far.
    static __device__ void m2l(const Fmm &f, const T *multipole, T *local, const Sphere &sphere) {
        __shared__ Chunk chunk;
        __shared__ Far far;
        if (!has_trees(f)) return;
        const u32 cells = f.state->level_begin[1][kLevels];
        begin(chunk);
        for (u32 c = blockIdx.x; c < cells; c += gridDim.x) {
            if (threadIdx.x < 32) look_around(f, far, c);
            __syncthreads();
            sum<kOutside>(chunk, sphere, (T)kOuter, far.count * sphere.terms, false, of(local, sphere, c), [&](int j, T *x, T *q) {
                const FarCell &from = far.list[j / sphere.terms];
                const T centre[3] = {(T)from.offset[0], (T)from.offset[1], (T)from.offset[2]};
                particle(sphere, of(multipole, sphere, from.cell), j % sphere.terms, centre, (T)kInner, x, q);
            });
        }
    }
    // The children at a level.
    static __device__ void l2l(const Fmm &f, T *local, const Sphere &sphere, int level) {
        __shared__ Chunk chunk;
        if (!has_trees(f)) return;
        const Tree &t = f.tree[1];
        const u32 end = f.state->level_begin[1][level + 1];
        begin(chunk);
        for (u32 c = f.state->level_begin[1][level] + blockIdx.x; c < end; c += gridDim.x) {
            const int octant = info_octant(t.info[c]);
            const T centre[3] = {octant & 1 ? T(-0.5) : T(0.5), octant & 2 ? T(-0.5) : T(0.5), octant & 4 ? T(-0.5) : T(0.5)};
            const T *from = of((const T *)local, sphere, t.parent[c]);
            sum<kOutside>(chunk, sphere, (T)kOuter, sphere.terms, true, of(local, sphere, c), [&](int j, T *x, T *q) {
                particle(sphere, from, j, centre, 2 * (T)kOuter, x, q);
            });
        }
    }

    // ---- L2P. ----------------------------------------------------------------------------------------------------------------

    // Potential and gradient of a charge, velocity and gradient of a vortex, at distance d.
    template <int F> static __device__ void field(const T *q, const T *d, T *out) {
        const T inverse = 1 / sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), inverse2 = inverse * inverse;
        if constexpr (C == 1) {
            const T potential = q[0] * inverse;
            out[0] += potential;
            for (int i = 1; i < F; i++) out[i] -= potential * inverse2 * d[i - 1];
        } else {
            const T cube = inverse * inverse2;
#pragma unroll
            for (int i = 0; i < 3; i++) {
                const int j = (i + 1) % 3, k = (i + 2) % 3;
                const T u = cube * (q[j] * d[k] - q[k] * d[j]);
                out[i] += u;
                if constexpr (F > 3) {
#pragma unroll
                    for (int l = 0; l < 3; l++) out[3 + 3 * i + l] -= 3 * u * inverse2 * d[l];
                    out[3 + 3 * i + j] -= cube * q[k];
                    out[3 + 3 * i + k] += cube * q[j];
                }
            }
        }
    }
    template <int MAIN, int REST> static __device__ void l2p(const Fmm &f, const T *local, const Sphere &sphere) {
        constexpr int F = MAIN + REST;
        __shared__ T s_x[3][kMostThreads], s_q[C][kMostThreads];
        if (!has_trees(f)) return;
        const Tree &t = f.tree[1];
        const u32 cells = f.state->level_begin[1][kLevels];
        const Root root = f.state->root;
        for (u32 c = blockIdx.x; c < cells; c += gridDim.x) {
            if (!info_leaf(t.info[c])) continue;
            const Place place(t, root, c);
            const T *from = of(local, sphere, c), origin[3] = {0, 0, 0}, unit = MAIN == 1 ? place.inverse : place.inverse * place.inverse;
            for (u32 first = t.begin[c]; first < t.end[c]; first += threads()) {
                const u32 i = min(first + threadIdx.x, t.end[c] - 1);
                T x[3], out[F] = {};
                place.relative(t, i, x);
                for (int d = 0; d < 3; d++) x[d] *= place.inverse;
                for (int base = 0; base < sphere.terms; base += threads()) {
                    const int some = min(threads(), sphere.terms - base);
                    __syncthreads();
                    if ((int)threadIdx.x < some) {
                        T y[3], q[C];
                        particle(sphere, from, base + (int)threadIdx.x, origin, (T)kOuter, y, q);
                        for (int d = 0; d < 3; d++) s_x[d][threadIdx.x] = y[d];
                        for (int k = 0; k < C; k++) s_q[k][threadIdx.x] = q[k];
                    }
                    __syncthreads();
#pragma unroll 1
                    for (int j = 0; j < some; j++) {
                        const T d[3] = {x[0] - s_x[0][j], x[1] - s_x[1][j], x[2] - s_x[2][j]};
                        T q[C];
                        for (int k = 0; k < C; k++) q[k] = s_q[k][j];
                        field<F>(q, d, out);
                    }
                }
                if (first + threadIdx.x < t.end[c])
                    for (int k = 0; k < F; k++) ((T *)f.local)[(size_t)i * F + k] = out[k] * (k < MAIN ? unit : unit * place.inverse);
            }
        }
    }
};

// Launch: a multiple of 32 threads up to 256, any number of blocks. `multipole`, `local`: [cells of the tree][components][terms]; `sphere`: [terms][4].
#define KERNEL extern "C" __global__ void __launch_bounds__(kMostThreads, 2)
#define PSEUDO(name, T, C) \
    KERNEL fmm_pseudo_p2m_##name(const __grid_constant__ Fmm f, void *multipole, const double *sphere, u32 order) { Pseudo<T, C>::p2m(f, (T *)multipole, sphere_of(sphere, order)); } \
    KERNEL fmm_pseudo_m2m_##name(const __grid_constant__ Fmm f, void *multipole, const double *sphere, u32 order, int level) { Pseudo<T, C>::m2m(f, (T *)multipole, sphere_of(sphere, order), level); } \
    KERNEL fmm_pseudo_m2l_##name(const __grid_constant__ Fmm f, const void *multipole, void *local, const double *sphere, u32 order) { Pseudo<T, C>::m2l(f, (const T *)multipole, (T *)local, sphere_of(sphere, order)); } \
    KERNEL fmm_pseudo_l2l_##name(const __grid_constant__ Fmm f, void *local, const double *sphere, u32 order, int level) { Pseudo<T, C>::l2l(f, (T *)local, sphere_of(sphere, order), level); }
PSEUDO(charge_f32, float, 1)
PSEUDO(charge_f64, double, 1)
PSEUDO(vortex_f32, float, 3)
PSEUDO(vortex_f64, double, 3)

#define L2P(name, T, C, MAIN, REST) \
    KERNEL fmm_pseudo_l2p_##name(const __grid_constant__ Fmm f, const void *local, const double *sphere, u32 order) { Pseudo<T, C>::template l2p<MAIN, REST>(f, (const T *)local, sphere_of(sphere, order)); }
L2P(velocity_f32, float, 3, 3, 0)
L2P(velocity_f64, double, 3, 3, 0)
L2P(gradient_f32, float, 3, 3, 9)
L2P(gradient_f64, double, 3, 3, 9)
L2P(potential_f32, float, 1, 1, 0)
L2P(potential_f64, double, 1, 1, 0)
L2P(force_f32, float, 1, 1, 3)
L2P(force_f64, double, 1, 1, 3)
