// Local expansions to fields at the targets, added to the near field and written where the caller wants them.
//
// The velocity is the curl of the vector potential, and a derivative of a local expansion is one of an order less: a block
// turns the potentials of some leaves into expansions of the fields (the velocity and its gradient; or a potential and its
// gradient), then its lanes, one a target whatever its leaf, sum them while the harmonics run by.
#include "fmm_check.cuh"
#include "fmm_columns.cuh"
#include "fmm_harmonics.cuh"
using namespace fmm;

constexpr int kThreads = 128, kWarps = 4, kTicket = 6, kMostLeaves = 8;

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

// Sums F expansions of n degrees, in order of columns; `rise` as in fmm_harmonics.cuh, grow[m] = 1 / (2m + 2).
template <class T, int F> __device__ __forceinline__ void evaluate(const Coefficients<T, F> *e, const T *rise, const T *grow, int n, T x, T y, T z, T *out) {
    const T r2 = x * x + y * y + z * z;
    T before = 0, now = 1;
#pragma unroll 2
    for (int l = 0; l < n; l++) {
#pragma unroll
        for (int k = 0; k < F; k++) out[k] = fma(e->c[k], now, out[k]);
        const T next = fma(*rise * z, now, -(r2 * before));
        before = now; now = next;
        e++; rise++;
    }
    T dc = (T)0.5 * x, ds = (T)0.5 * y;
#pragma unroll 1
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

// Pairs of all expansions of fewer than n degrees, and their coefficients.
__host__ __device__ constexpr int pairs_below(int n) { return (n - 1) * n * (n + 1) / 6; }
__host__ __device__ constexpr int entries_below(int n) { return (n - 1) * n * (2 * n - 1) / 6; }

// For n degrees, from pairs_below(n) and entries_below(n) on: of a pair in the order of columns rise and scale of
// fmm_harmonics.cuh and l << 8 | m; of a coefficient twice its pair, plus one for a sine.
template <class T> struct Columns {
    T rise[pairs_below(kDegrees)], scale[pairs_below(kDegrees)];
    uint16_t pair[pairs_below(kDegrees)], slot[entries_below(kDegrees)];
    constexpr Columns() : rise(), scale(), pair(), slot() {
        constexpr Harmonics harmonics;
        for (int n = 1; n < kDegrees; n++)
            for (int m = 0; m < n; m++)
                for (int l = m; l < n; l++) {
                    const int q = column(n, m) + l - m, at = pairs_below(n) + q;
                    rise[at] = (T)harmonics.rise[triangle(l, m)]; scale[at] = (T)harmonics.scale[triangle(l, m)];
                    pair[at] = (uint16_t)(l << 8 | m);
                    uint16_t *const of = slot + entries_below(n) + l * l;
                    if (m) { of[2 * m - 1] = (uint16_t)(2 * q); of[2 * m] = (uint16_t)(2 * q + 1); }
                    else of[0] = (uint16_t)(2 * q);
                }
    }
};
static __device__ const Columns<float> kSingle{};
static __device__ const Columns<double> kDouble{};
__device__ inline const Columns<float> &columns(float) { return kSingle; }
__device__ inline const Columns<double> &columns(double) { return kDouble; }

// Tables of a block, and the leaves of its batch.
template <class T, int F> struct Shared {
    T rise[triangle(kDegrees, 0)], scale[triangle(kDegrees, 0)], grow[kDegrees];
    uint16_t pair[triangle(kDegrees, 0)]; // l << 8 | m of a pair in the order of columns
    uint16_t slot[256];                  // of a coefficient among the potentials
    u32 begin[kMostLeaves], offset[kMostLeaves + 1], next; // offset: targets of the leaves before
    u32 parts[kMostLeaves];                                // of the near field
    int level[kMostLeaves];                                // -1: not a leaf
    T centre[kMostLeaves][3], low[kMostLeaves][3], inv[kMostLeaves]; // low: of the centre in f32; in f64 the origin of the points
};

// MAIN: fields of the first result (3 velocities, 1 potential); REST: of the second (9 or 3; 0: not wanted).
template <class T, int MAIN, int REST> struct L2p {
    static constexpr int F = MAIN + REST, P2 = 2 * MAIN;
    typedef Coefficients<T, F> Pair;

    // Fills the tables of a block: fields of n degrees, potentials of `order`. By all warps but the first.
    static constexpr int kPreparing = kThreads - 32;
    static __device__ void prepare(Shared<T, F> &s, int n, int order) {
        const Columns<T> &of = columns((T)0);
        const int first = pairs_below(n), begin = entries_below(order);
#pragma unroll 1
        for (int q = threadIdx.x - 32; q < column(n, n); q += kPreparing) { s.rise[q] = of.rise[first + q]; s.scale[q] = of.scale[first + q]; s.pair[q] = of.pair[first + q]; }
#pragma unroll 1
        for (int k = threadIdx.x - 32; k < order * order; k += kPreparing) {
            const int slot = of.slot[begin + k];
            s.slot[k] = (uint16_t)((slot >> 1) * P2 + (slot & 1) * MAIN);
        }
        if (threadIdx.x < 32 + kDegrees) s.grow[threadIdx.x - 32] = (T)0.5 / (T)(threadIdx.x - 31);
    }

    // Potentials of a leaf, by columns; lane `at` of `workers`.
    static __device__ void load(const Fmm &f, const Shared<T, F> &s, T *a, u32 cell, bool far, T inv, int at, int workers) {
        const T *local = (const T *)f.local + (size_t)cell * MAIN * f.stride;
        const int count = f.order * f.order;
        constexpr int kBatch = MAIN + REST > 4 ? 3 : 4; // so many loads of a component before the first store
#pragma unroll 1
        for (int first = at; first < count; first += kBatch * workers) {
            T v[kBatch][MAIN];
#pragma unroll
            for (int k = 0; k < kBatch; k++)
#pragma unroll
                for (int d = 0; d < MAIN; d++) v[k][d] = far && first + k * workers < count ? local[d * f.stride + first + k * workers] * inv : 0;
#pragma unroll
            for (int k = 0; k < kBatch; k++)
#pragma unroll
                for (int d = 0; d < MAIN; d++) if (first + k * workers < count) a[s.slot[first + k * workers] + d] = v[k][d];
        }
#pragma unroll 1
        for (int l = at; l < (int)f.order; l += workers) for (int d = 0; d < MAIN; d++) a[l * P2 + MAIN + d] = 0; // sines of m = 0
    }

    // The first result's expansions, and the second's of a potential.
    static __device__ void convert(const Shared<T, F> &s, const T *a, Pair *e, int n, int order, T inv, int at, int workers) {
#pragma unroll 1
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
#pragma unroll 1
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

    // A target as it lies in memory: what is asked for before the fields are ready, as far as registers go.
    struct Target {
        static constexpr int kEarly = F <= 4 ? F : 0;
        Vec4<T> at, low; // low: f32 alone
        T near[F];
        u32 i, to;
        __device__ void load(const Fmm &f, u32 of, u32 parts) {
            i = of;
            at = ((const Vec4<T> *)f.tree[1].point)[i];
            if (sizeof(T) == 4) low = SortedPoint<T>::low(f.tree[1])[i];
            to = f.tree[1].order[i];
            load_near<0, kEarly>(f, parts);
        }
        // Parts are added in their order.
        template <int FROM, int TO> __device__ void load_near(const Fmm &f, u32 parts) {
            const size_t all = (size_t)f.tree[1].n * f.fields;
            const T *from = (const T *)f.field + (size_t)i * f.fields + (parts > 1 ? all : 0);
#pragma unroll
            for (int k = FROM; k < TO; k++) near[k] = from[k];
#pragma unroll 8
            for (u32 p = 1; p < parts; p++) {
                from += all;
#pragma unroll
                for (int k = FROM; k < TO; k++) near[k] += from[k];
            }
        }
    };

    static __device__ Squares put(const Fmm &f, const Shared<T, F> &s, const Pair *e, int n, Target &t, int leaf, T unit, T slope) {
        const T inv = s.inv[leaf];
        t.template load_near<Target::kEarly, F>(f, s.parts[leaf]);
        const T *c = s.centre[leaf], *l = s.low[leaf];
        const auto of = [&](T x, T low, int k) { return (sizeof(T) == 8 ? (x - l[k]) - c[k] : (x - c[k]) + (low - l[k])) * inv; };
        T near[MAIN];
#pragma unroll
        for (int k = 0; k < MAIN; k++) near[k] = t.near[k];
        const T x = of(t.at.x, t.low.x, 0), y = of(t.at.y, t.low.y, 1), z = of(t.at.z, t.low.z, 2);
        evaluate<T, F>(e, s.rise, s.grow, n, x, y, z, t.near);
        float far = 0;
#pragma unroll
        for (int k = 0; k < MAIN; k++) far = max(far, fabsf((float)(t.near[k] - near[k])));
        const float r2 = (float)(x * x + y * y + z * z);
        far *= r2 * r2;
        const size_t to = t.to;
        double w[F];
#pragma unroll
        for (int k = 0; k < MAIN; k++) w[k] = store(f.out_main, f.out_is_f64, f.accumulate, to * MAIN + k, t.near[k] * unit);
#pragma unroll
        for (int k = 0; k < REST; k++) w[MAIN + k] = store(f.out_gradient, f.out_is_f64, f.accumulate, to * REST + k, t.near[MAIN + k] * slope);
        return Squares::of<MAIN, REST>(w, far, t.to);
    }

    // What a leaf is, by one thread each; the leaves' targets follow one another.
    static __device__ void describe(const Fmm &f, Shared<T, F> &s, const Root &root, u32 first, int leaves, u32 cells) {
        const Tree &t = f.tree[1];
        const int k = threadIdx.x;
        const u32 c = first + k;
        u32 count = 0;
        if (k < leaves) {
            int level = -1;
            if (c < cells) {
                const u32 info = t.info[c], begin = t.begin[c], end = t.end[c];
                const u64 key = t.cell_key[c];
                if (info_leaf(info)) {
                    level = info_level(info); count = end - begin;
                    s.begin[k] = begin;
                    s.parts[k] = cells <= kPartCells ? f.state->near_parts[c] : 1;
                    const T side = centre_of_cell(root, level, key, s.centre[k], s.low[k]);
                    if (sizeof(T) == 8) for (int d = 0; d < 3; d++) s.low[k][d] = SortedPoint<T>::origin(root, d);
                    s.inv[k] = 1 / side;
                }
            }
            s.level[k] = level;
        }
        for (int d = 1; d < kMostLeaves; d *= 2) { const u32 before = __shfl_up_sync(~0u, count, d); if (k >= d) count += before; }
        if (k < leaves) s.offset[k + 1] = count;
    }

    static __device__ void run(const Fmm &f, const Check &check, int most) {
        extern __shared__ __align__(16) unsigned char memory[];
        __shared__ Shared<T, F> s;
        const u32 cells = f.state->level_begin[1][kLevels], flags = f.state->flags;
        const Root root = f.state->root;
        const int tid = threadIdx.x, order = f.order, n = MAIN == 3 ? order - 1 : order;
        // Few cells: fewer leaves a block. A leaf's potentials become fields by all warps, two or one.
        int shift = 31 - __clz(most);
        while (shift && cells < 2 * gridDim.x << shift) shift--;
        const int leaves = 1 << shift, groups = min(leaves, kWarps), workers = kThreads >> min(shift, 2), group = tid >> 7 - min(shift, 2), at = tid & workers - 1;
        // Where something was too small the host will enlarge it and try again.
        const u32 batches = flags ? 0 : (cells + leaves - 1) >> shift, blocks = max(1u, min(batches, gridDim.x));
        if (blockIdx.x >= blocks) return;
        // Sums of each warp's batch give the size that errors are relative to.
        if (blockIdx.x == 0 && threadIdx.x == 0) f.state->written = kWarps * batches;
        const int pairs = column(n, n), room = (column(order, order) * P2 * (int)sizeof(T) + 15) / 16 * 16;
        T *a = (T *)(memory + group * room);
        // An odd number of 16 bytes from leaf to leaf: lanes of two leaves find their coefficients in different banks.
        const int step = ((pairs * (int)sizeof(Pair) + 15) / 16 | 1) * 16;
        unsigned char *fields = memory + min(most, kWarps) * room;
        auto of = [&](int leaf) { return (Pair *)(fields + leaf * step); };
        // Velocity: strength / length^2 for particles, circulation / length for segments; potential: charge / length.
        const T unit = (T)f.normalization * (T)(f.kind == kParticle ? root.scale * root.scale : root.scale), slope = unit * (T)root.scale;
        if (tid == 0) s.offset[0] = 0;
        if (tid >= 32) prepare(s, n, order);
        // The first batch is the block's own, others are taken by ticket.
#pragma unroll 1
        for (u32 batch = blockIdx.x; batch < batches;) {
            if (tid < 32) describe(f, s, root, batch * leaves, leaves, cells);
            __syncthreads();
            u32 next = batches;
            if (tid == 0 && batches > gridDim.x) next = gridDim.x + atomicAdd(&f.state->work_ticket[kTicket], 1u);
            const u32 first = batch * leaves, all = s.offset[leaves];
            auto leaf_of = [&](u32 k) { int leaf = 0; while (k >= s.offset[leaf + 1]) leaf++; return leaf; };
            // On their way while the fields are made.
            int leaf = 0;
            Target target;
            if (tid < all) { leaf = leaf_of(tid); target.load(f, s.begin[leaf] + tid - s.offset[leaf], s.parts[leaf]); }
#pragma unroll 1
            for (int k = 0; k < leaves; k += groups) {
                const int own = k + group, level = s.level[own];
                const T inv = s.inv[own];
                if (level >= 0) load(f, s, a, first + own, level >= (int)f.top, inv, at, workers);
                __syncthreads();
                if (level >= 0) convert(s, a, of(own), n, order, inv, at, workers);
                __syncthreads();
                if constexpr (MAIN == 3 && REST) {
                    if (level >= 0) convert_again(s, of(own), n, inv, at, workers);
                    __syncthreads();
#pragma unroll 1
                    for (int q = level >= 0 ? at : pairs; q < pairs; q += workers)
                        for (int d = 0; d < 3; d++) { of(own)[q].c[d] *= s.scale[q]; of(own)[q].s[d] *= s.scale[q]; }
                }
            }
            if (tid == 0) s.next = next;
            __syncthreads();
            // The next potentials, a line each.
            const u32 after = s.next;
            const size_t row = (size_t)MAIN * f.stride * sizeof(T), begin = (size_t)after * leaves * row, end = (size_t)min(cells, (after + 1) * leaves) * row;
#pragma unroll 1
            for (size_t at = begin + 128 * (size_t)tid; at < end; at += 128 * kThreads) fetch_ahead((const char *)f.local + at);
            Squares squares = Squares::none();
#pragma unroll 1
            for (u32 k = tid; k < all;) {
                squares.add(put(f, s, of(leaf), n, target, leaf, unit, slope));
                k += kThreads;
                if (k < all) { leaf = leaf_of(k); target.load(f, s.begin[leaf] + k - s.offset[leaf], s.parts[leaf]); }
            }
            squares.add_lanes<REST>();
            if ((tid & 31) == 0) check.size[batch * kWarps + tid / 32] = squares;
            batch = after;
            __syncthreads();
        }
    }
};

// Launch: 128 threads, any number of blocks; of at most `leaves` (a power of two up to 8) leaves at a time; dynamic shared memory:
// min(4, leaves) times the potentials and `leaves` times the fields of a leaf.
#define L2P(name, T, MAIN, REST, BLOCKS) \
    extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS) fmm_l2p_##name(const __grid_constant__ Fmm f, const __grid_constant__ Check c, int leaves) { L2p<T, MAIN, REST>::run(f, c, leaves); }
L2P(velocity_f32, float, 3, 0, 6)
L2P(velocity_f64, double, 3, 0, 6)
L2P(gradient_f32, float, 3, 9, 6)
L2P(gradient_f64, double, 3, 9, 4)
L2P(potential_f32, float, 1, 0, 6)
L2P(potential_f64, double, 1, 0, 6)
L2P(force_f32, float, 1, 3, 6)
L2P(force_f64, double, 1, 3, 5)
