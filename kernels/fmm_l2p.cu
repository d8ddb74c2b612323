// Local expansions to fields at the targets, added to the near field and written where the caller wants them.
//
// The velocity is the curl of the vector potential, and a derivative of a local expansion is one of an order less: a block
// turns the potentials of some leaves into expansions of the fields (the velocity and its gradient; or a potential and its
// gradient), then its lanes, one a target whatever its leaf, sum them while the harmonics run by.
#include "fmm_harmonics.cuh"
using namespace fmm;

constexpr int kThreads = 128, kWarps = 4, kTicket = 6, kMostLeaves = 8;

// Place of column m of an expansion of n degrees, stored by columns; cosine and sine of a pair (l, m) lie side by side.
__device__ inline int column(int n, int m) { return m * n - m * (m - 1) / 2; }

// Derivatives of a pair (l, m): cosine and sine parts.
template <class T> struct Slopes { T xc, xs, yc, ys, zc, zs; };
// `a` is cosine part (0, 0) of an expansion of n degrees, l + 1 < n; `pair` numbers a pair, the sine part `sine` behind.
template <class T> __device__ inline Slopes<T> slopes(const T *a, int n, int pair, int sine, int l, int m, T unit) {
    const T *right = a + (column(n, m + 1) + l - m) * pair, *same = a + (column(n, m) + l + 1 - m) * pair;
    const T *left = a + (m ? column(n, m - 1) + l + 2 - m : 0) * pair;
    const T half = (T)0.5 * unit, w = m > 1 ? half : m == 1 ? unit : 0;
    const T rc = half * right[0], rs = half * right[sine], lc = w * left[0], ls = w * left[sine];
    Slopes<T> d{rc - lc, rs - ls, rs + ls, -(rc + lc), unit * same[0], unit * same[sine]};
    if (m == 0) d.xs = d.ys = d.zs = 0;
    return d;
}

template <class T, int F> struct alignas(2 * F * sizeof(T) % 16 ? 8 : 16) Coefficients { T c[F], s[F]; };

// Sums F expansions of n degrees, in order of columns; `rise` as in fmm_harmonics.cuh, grow[m] = 1 / (2m + 2).
template <class T, int F> __device__ __forceinline__ void evaluate(const Coefficients<T, F> *e, const T *rise, const T *grow, int n, T x, T y, T z, T *out) {
    const T r2 = x * x + y * y + z * z;
    T before = 0, now = 1;
    for (int l = 0; l < n; l++) {
#pragma unroll
        for (int k = 0; k < F; k++) out[k] = fma(e->c[k], now, out[k]);
        const T next = fma(*rise * z, now, -(r2 * before));
        before = now; now = next;
        e++; rise++;
    }
    T dc = (T)0.5 * x, ds = (T)0.5 * y;
    for (int m = 1; m < n; m++) {
        T pc = 0, ps = 0, qc = dc, qs = ds;
#pragma unroll 2
        for (int l = m; l < n; l++) {
            const Coefficients<T, F> a = *e;
#pragma unroll
            for (int k = 0; k < F; k++) out[k] = fma(a.s[k], qs, fma(a.c[k], qc, out[k]));
            const T u = *rise * z, nc = fma(u, qc, -(r2 * pc)), ns = fma(u, qs, -(r2 * ps));
            pc = qc; ps = qs; qc = nc; qs = ns;
            e++; rise++;
        }
        const T kx = grow[m] * x, ky = grow[m] * y, next = kx * dc - ky * ds; // R of m + 1 over that of m: (x + iy) / (2m + 2)
        ds = kx * ds + ky * dc; dc = next;
    }
}

template <class T> __device__ inline void write(void *out, u32 is_f64, u32 accumulate, size_t at, T v) {
    if (is_f64) ((double *)out)[at] = accumulate ? ((double *)out)[at] + v : v;
    else ((float *)out)[at] = accumulate ? ((float *)out)[at] + (float)v : (float)v;
}

// Tables of a block, and the leaves of its turn.
template <class T, int F> struct Shared {
    T rise[triangle(kDegrees, 0)], scale[triangle(kDegrees, 0)], grow[kDegrees];
    uint16_t pair[triangle(kDegrees, 0)]; // l << 8 | m of a pair in the order of columns
    uint16_t place[256];                  // of a coefficient among the potentials
    u32 begin[kMostLeaves], offset[kMostLeaves + 1], turn;
    T centre[kMostLeaves][3], inv[kMostLeaves];
};

// MAIN: fields of the first result (3 velocities, 1 potential); REST: of the second (9 or 3; 0: not wanted).
template <class T, int MAIN, int REST> struct L2p {
    static constexpr int F = MAIN + REST, P2 = 2 * MAIN;
    typedef Coefficients<T, F> Pair;

    // Fills the tables of a block: fields of n degrees, potentials of `order`.
    static __device__ void prepare(Shared<T, F> &s, int n, int order) {
        for (int m = threadIdx.x >> 5; m < n; m += kWarps)
            for (int l = m + (threadIdx.x & 31); l < n; l += 32) {
                const int q = column(n, m) + l - m;
                s.rise[q] = (T)kHarmonics.rise[triangle(l, m)]; s.scale[q] = (T)kHarmonics.scale[triangle(l, m)];
                s.pair[q] = (uint16_t)(l << 8 | m);
            }
        if (threadIdx.x < kDegrees) s.grow[threadIdx.x] = (T)0.5 / (T)(threadIdx.x + 1);
        for (int k = threadIdx.x; k < order * order; k += kThreads) {
            int l, m, sine;
            split(k, &l, &m, &sine);
            s.place[k] = (uint16_t)((column(order, m) + l - m) * P2 + sine * MAIN);
        }
    }

    // Potentials of a leaf, by columns; lane `at` of `workers`.
    static __device__ void load(const Fmm &f, const Shared<T, F> &s, T *a, u32 cell, bool far, T inv, int at, int workers) {
        const T *local = (const T *)f.local + (size_t)cell * MAIN * f.stride;
        const int count = f.order * f.order;
        constexpr int kBatch = MAIN + REST > 4 ? 3 : 4; // so many loads of a component before the first store
        for (int first = at; first < count; first += kBatch * workers) {
            T v[kBatch][MAIN];
#pragma unroll
            for (int k = 0; k < kBatch; k++)
#pragma unroll
                for (int d = 0; d < MAIN; d++) v[k][d] = far && first + k * workers < count ? local[d * f.stride + first + k * workers] * inv : 0;
#pragma unroll
            for (int k = 0; k < kBatch; k++)
#pragma unroll
                for (int d = 0; d < MAIN; d++) if (first + k * workers < count) a[s.place[first + k * workers] + d] = v[k][d];
        }
        for (int l = at; l < (int)f.order; l += workers) for (int d = 0; d < MAIN; d++) a[l * P2 + MAIN + d] = 0; // sines of m = 0
    }

    // The first result's expansions, and the second's of a potential.
    static __device__ void convert(const Shared<T, F> &s, const T *a, Pair *e, int n, int order, T inv, int at, int workers) {
        for (int q = at; q < column(n, n); q += workers) {
            const int l = s.pair[q] >> 8, m = s.pair[q] & 255;
            Pair &to = e[q];
            if constexpr (MAIN == 1) {
                const T scale = s.scale[q];
                to.c[0] = a[2 * q] * scale; to.s[0] = a[2 * q + 1] * scale;
                if constexpr (REST == 3) {
                    Slopes<T> d{};
                    if (l + 1 < n) d = slopes(a, n, P2, MAIN, l, m, inv * scale);
                    to.c[1] = d.xc; to.c[2] = d.yc; to.c[3] = d.zc; to.s[1] = d.xs; to.s[2] = d.ys; to.s[3] = d.zs;
                }
            } else {
                const T unit = REST ? inv : inv * s.scale[q]; // scaled after the second derivatives
                const Slopes<T> x = slopes(a, order, P2, MAIN, l, m, unit), y = slopes(a + 1, order, P2, MAIN, l, m, unit), z = slopes(a + 2, order, P2, MAIN, l, m, unit);
                to.c[0] = z.yc - y.zc; to.c[1] = x.zc - z.xc; to.c[2] = y.xc - x.yc;
                to.s[0] = z.ys - y.zs; to.s[1] = x.zs - z.xs; to.s[2] = y.xs - x.ys;
            }
        }
    }

    // The gradient's expansions from the velocity's.
    static __device__ void convert_again(const Shared<T, F> &s, Pair *e, int n, T inv, int at, int workers) {
        for (int q = at; q < column(n, n); q += workers) {
            const int l = s.pair[q] >> 8, m = s.pair[q] & 255;
#pragma unroll
            for (int d = 0; d < 3; d++) {
                Slopes<T> g{};
                if (l + 1 < n) g = slopes(e->c + d, n, 2 * F, F, l, m, inv * s.scale[q]);
                e[q].c[3 + 3 * d] = g.xc; e[q].c[4 + 3 * d] = g.yc; e[q].c[5 + 3 * d] = g.zc;
                e[q].s[3 + 3 * d] = g.xs; e[q].s[4 + 3 * d] = g.ys; e[q].s[5 + 3 * d] = g.zs;
            }
        }
    }

    static __device__ void target(const Fmm &f, const Shared<T, F> &s, const Pair *e, int n, u32 i, int leaf, T unit) {
        const Vec4<T> p = ((const Vec4<T> *)f.tree[1].point)[i];
        const T *near = (const T *)f.field + (size_t)i * f.fields;
        const size_t to = f.tree[1].order[i];
        T v[F];
#pragma unroll
        for (int k = 0; k < F; k++) v[k] = near[k];
        const T inv = s.inv[leaf];
        evaluate<T, F>(e, s.rise, s.grow, n, (p.x - s.centre[leaf][0]) * inv, (p.y - s.centre[leaf][1]) * inv, (p.z - s.centre[leaf][2]) * inv, v);
#pragma unroll
        for (int k = 0; k < MAIN; k++) write(f.out_main, f.out_is_f64, f.accumulate, to * MAIN + k, v[k] * unit);
        const T slope = unit * (T)f.state->root.scale;
#pragma unroll
        for (int k = 0; k < REST; k++) write(f.out_gradient, f.out_is_f64, f.accumulate, to * REST + k, v[MAIN + k] * slope);
    }

    static __device__ void run(const Fmm &f, int most) {
        extern __shared__ __align__(16) unsigned char memory[];
        __shared__ Shared<T, F> s;
        if (f.state->flags) return; // the host will enlarge what was too small and try again
        const Tree &t = f.tree[1];
        const Root root = f.state->root;
        const u32 cells = f.state->level_begin[1][kLevels];
        const int tid = threadIdx.x, order = f.order, n = MAIN == 3 ? order - 1 : order;
        // Few cells: fewer leaves a block. A leaf's potentials become fields by all warps, two or one.
        int leaves = most;
        while (leaves > 1 && cells < 2 * leaves * gridDim.x) leaves /= 2;
        const int groups = min(leaves, kWarps), workers = kThreads / groups, group = tid / workers, at = tid % workers;
        const int pairs = column(n, n), room = (column(order, order) * P2 * (int)sizeof(T) + 15) / 16 * 16;
        T *a = (T *)(memory + group * room);
        // An odd number of 16 bytes from leaf to leaf: lanes of two leaves find their coefficients in different banks.
        const int step = ((pairs * (int)sizeof(Pair) + 15) / 16 | 1) * 16;
        unsigned char *fields = memory + min(most, kWarps) * room;
        auto of = [&](int leaf) { return (Pair *)(fields + leaf * step); };
        // Velocity: strength / length^2 for particles, circulation / length for segments; potential: charge / length.
        const T unit = (T)f.normalization * (T)(f.kind == kParticle ? root.scale * root.scale : root.scale);
        prepare(s, n, order);
        if (tid == 0) s.turn = atomicAdd(&f.state->work_ticket[kTicket], 1u);
        __syncthreads();
        for (;;) {
            const u32 first = s.turn * leaves;
            if (first >= cells) return;
            __syncthreads();
            u32 next = 0;
            if (tid == 0) next = atomicAdd(&f.state->work_ticket[kTicket], 1u);
            for (int k = 0; k < leaves; k += groups) {
                const int leaf = k + group;
                const u32 c = first + leaf, info = c < cells ? t.info[c] : 0;
                const bool is = c < cells && info_leaf(info);
                T centre[3] = {0, 0, 0}, inv = 0;
                if (is) {
                    inv = 1 / cell_geometry(t, root, c, centre);
                    load(f, s, a, c, info_level(info) >= 2, inv, at, workers);
                }
                if (at == 0) {
                    s.begin[leaf] = is ? t.begin[c] : 0; s.offset[leaf + 1] = is ? t.end[c] - t.begin[c] : 0;
                    for (int d = 0; d < 3; d++) s.centre[leaf][d] = centre[d];
                    s.inv[leaf] = inv;
                }
                __syncthreads();
                if (is) convert(s, a, of(leaf), n, order, inv, at, workers);
                __syncthreads();
                if constexpr (MAIN == 3 && REST) {
                    if (is) convert_again(s, of(leaf), n, inv, at, workers);
                    __syncthreads();
                    if (is) for (int q = at; q < pairs; q += workers)
                        for (int d = 0; d < 3; d++) { of(leaf)[q].c[d] *= s.scale[q]; of(leaf)[q].s[d] *= s.scale[q]; }
                }
            }
            if (tid == 0) {
                s.turn = next; s.offset[0] = 0;
                for (int k = 0; k < leaves; k++) s.offset[k + 1] += s.offset[k];
            }
            __syncthreads();
            // The next potentials, a line each.
            const size_t row = (size_t)MAIN * f.stride * sizeof(T), begin = (size_t)s.turn * leaves * row, end = (size_t)min(cells, (s.turn + 1) * leaves) * row;
            for (size_t at = begin + 128 * (size_t)tid; at < end; at += 128 * kThreads) fetch_ahead((const char *)f.local + at);
            for (u32 k = tid; k < s.offset[leaves]; k += kThreads) {
                int leaf = 0;
                while (k >= s.offset[leaf + 1]) leaf++;
                target(f, s, of(leaf), n, s.begin[leaf] + k - s.offset[leaf], leaf, unit);
            }
            __syncthreads();
        }
    }
};

// Launch: 128 threads, any number of blocks, of at most `leaves` (a power of two up to 8) leaves at a time; dynamic shared memory:
// min(4, leaves) times the potentials and `leaves` times the fields of a leaf.
#define L2P(name, T, MAIN, REST) \
    extern "C" __global__ void __launch_bounds__(kThreads) fmm_l2p_##name(const __grid_constant__ Fmm f, int leaves) { L2p<T, MAIN, REST>::run(f, leaves); }
L2P(velocity_f32, float, 3, 0)
L2P(velocity_f64, double, 3, 0)
L2P(gradient_f32, float, 3, 9)
L2P(gradient_f64, double, 3, 9)
L2P(potential_f32, float, 1, 0)
L2P(potential_f64, double, 1, 0)
L2P(force_f32, float, 1, 3)
L2P(force_f64, double, 1, 3)
