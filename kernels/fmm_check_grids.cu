// Exact sums at sampled targets in a periodic box with many sources: near a target pair by pair, as fmm_check.cu has them, far away from
// equivalent sources on the Chebyshev nodes of cells (Fong & Darve, J. Comput. Phys. 228, 2009, 8712-8725).
//
// A cell of level l is a cube with side 2^-l of the tree's root cube. For a target that is two sides away from it the kernel, as a function of the
// source's position, is a polynomial of degree q - 1 along each axis up to about 9.9^-q; its values at q^3 Chebyshev nodes are
// enough, and node k takes Σ S_k(x_i) times the strength of source i. Cells share the order of the source tree, and nothing else of its
// expansions: what those have wrong is seen.
//
//   fmm_grid_cells      sources of the cells of the deepest level, and how many slices of them there are
//   fmm_grid_slices_*   strengths at the nodes, of a slice
//   fmm_grid_sum        of all slices of a cell
//   fmm_grid_up         of a level from the level below
//   fmm_grid_sample_*   the field at the targets
//   fmm_grid_points     the equivalent sources of the cells that fill the box, for the images that are not near
#include "fmm_mma.cuh"
#include "fmm_sample.cuh"
#include "fmm_tree.cuh"
#include "fmm_grid_args.cuh"
using namespace fmm;

constexpr int kMostNodes = GRID_NODES;
constexpr u32 kSlice = GRID_SLICE;

__device__ inline u32 cells_of(int level) { return 1u << 3 * level; }
// Cells of the levels above; those of level 1 come first.
__device__ inline u32 first_cell(int level) { return (cells_of(level) - 8) / 7; }

// Sides of the cells, and what their sources reach beyond them.
struct Cubes {
    double side, period, over;
    __device__ Cubes(const Fmm &f) : side(f.state->root.side), period(f.state->root.period), over(f.kind == kSegment ? 0.5 * unordered(f.state->longest) * f.state->root.scale : 0) {}
    __device__ double half(int level) const { return 0.5 * side / (double)(1u << level) + over; }
    __device__ double centre(int level, int at) const { return (at + 0.5) / (double)(1u << level) * side - 0.5 * period; }
};

// Where segments are cut the sorted ones are pieces of them: then cells have no sources, and the samples take all pairs.
__device__ inline bool has_pieces(const Fmm &f) { return count_of(f.tree[0]) != f.n_in; }

// Launch: one block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) fmm_grid_cells(const __grid_constant__ Fmm f, const __grid_constant__ Grid g) {
    __shared__ u32 s_scan[1024];
    const u32 cells = cells_of(g.level), shift = 3 * (f.max_level - g.level), each = (cells + 1023) / 1024, n = has_pieces(f) ? 0 : f.n_in;
    const u64 *key = f.tree[0].key;
    const auto first_source = [&](u32 cell) { return lower_bound(key, 0u, n, (u64)cell << shift); };
    u32 mine = 0;
    for (u32 c = threadIdx.x * each; c < min((threadIdx.x + 1) * each, cells); c++) {
        const u32 begin = first_source(c);
        g.begin[c] = begin;
        mine += (first_source(c + 1) - begin + kSlice - 1) / kSlice;
    }
    s_scan[threadIdx.x] = mine;
    for (u32 d = 1; d < 1024; d *= 2) {
        __syncthreads();
        const u32 before = threadIdx.x >= d ? s_scan[threadIdx.x - d] : 0;
        __syncthreads();
        s_scan[threadIdx.x] += before;
    }
    u32 slice = s_scan[threadIdx.x] - mine;
    for (u32 c = threadIdx.x * each; c < min((threadIdx.x + 1) * each, cells); c++) {
        g.slice[c] = slice;
        slice += (first_source(c + 1) - g.begin[c] + kSlice - 1) / kSlice;
    }
    if (threadIdx.x == 1023) { g.begin[cells] = n; g.slice[cells] = s_scan[1023]; }
}

// A point source of C strengths.
template <int C> struct Point { double x[3], q[C]; };

// Coefficients of S_k(x) = Σ_j c_kj T_j(x), 1 at node k of the q Chebyshev nodes and 0 at all others; zero beyond q. By a block.
__device__ inline void make_coefficients(int q, double (*c)[kMostNodes]) {
    for (u32 i = threadIdx.x; i < kMostNodes * kMostNodes; i += blockDim.x) {
        const int k = i / kMostNodes, j = i % kMostNodes;
        c[k][j] = k < q && j < q ? (j ? 2 * cospi(j * (k + 0.5) / q) : 1.0) / q : 0;
    }
}
template <int N> __device__ __forceinline__ void chebyshev(double x, double (&t)[N]) {
    t[0] = 1; t[1] = x;
#pragma unroll
    for (int j = 2; j < N; j++) t[j] = fma(2 * x, t[j - 1], -t[j - 2]);
}
template <int N> __device__ __forceinline__ double weight(const double *c, const double (&t)[N]) {
    double sum = 0;
#pragma unroll
    for (int j = 0; j < N; j++) sum = fma(c[j], t[j], sum);
    return sum;
}

// Strengths at the nodes of a cube, of points that `point(i)` gives for i < n; MOST nodes along an axis at most.
//
// With the weights of a point along the axes these are products of matrices, summed over the points: rows are the nodes of a plane, x first,
// columns the components of the nodes along z. Each of the block's warps sums some of the points, 32 at a time; of many rows two warps have
// a half each.
constexpr int kWarps = 4, kBatch = 32, kApart = 36; // kApart: numbers from one row of weights to the next, so that fragments come from different banks

template <int C, int MOST, class Points> __device__ void to_nodes(int nodes, const double *centre, double half, u32 n, Points point, double *out) {
    constexpr int kShares = MOST > 8 ? 2 : 1, kGroups = kWarps / kShares, kRowTiles = (MOST * MOST + 16 * kShares - 1) / (16 * kShares), kColumnTiles = (MOST * C + 7) / 8, kRows = 3 * MOST + C;
    __shared__ double s_coefficient[kMostNodes][kMostNodes], s_memory[kWarps * kRows * kApart];
    static_assert(C * MOST * MOST * MOST <= kWarps * kRows * kApart, "the sums of a warp, in the end");
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, g = lane >> 2, t = lane & 3, plane = nodes * nodes, share = warp % kShares, group = warp / kShares;
    double *weights = s_memory + warp * kRows * kApart; // along x, y and z, MOST rows each; then the strengths
    make_coefficients(nodes, s_coefficient);
    // Rows of weights that are a row's or a column's of this lane, or -1.
    int of_row[kRowTiles][2][2], of_column[kColumnTiles][2];
#pragma unroll
    for (int k = 0; k < 2 * kRowTiles; k++) {
        const int row = 16 * (k / 2 * kShares + share) + 8 * (k % 2) + g;
        of_row[k / 2][k % 2][0] = row < plane ? row % nodes * kApart : -1;
        of_row[k / 2][k % 2][1] = (MOST + row / nodes) * kApart;
    }
#pragma unroll
    for (int k = 0; k < kColumnTiles; k++) {
        const int column = 8 * k + g;
        of_column[k][0] = column < nodes * C ? (2 * MOST + column / C) * kApart : -1;
        of_column[k][1] = (3 * MOST + column % C) * kApart;
    }
    __syncthreads();
    double sum[kRowTiles][kColumnTiles][4] = {};
    const double per_half = 1 / half;
    u32 first = group * kBatch;
    Point<C> next{};
    if (first + lane < n) next = point(first + lane);
    for (; first < n; first += kGroups * kBatch) {
        const bool is = first + lane < n;
        const Point<C> p = next;
        // The next points are on their way while these are summed.
        if (const u32 i = first + kGroups * kBatch + lane; i < n) next = point(i);
        __syncwarp();
#pragma unroll
        for (int d = 0; d < 3; d++) {
            double values[MOST];
            chebyshev(is ? (p.x[d] - centre[d]) * per_half : 0, values);
            for (int k = 0; k < nodes; k++) weights[(d * MOST + k) * kApart + lane] = weight(s_coefficient[k], values);
        }
#pragma unroll
        for (int c = 0; c < C; c++) weights[(3 * MOST + c) * kApart + lane] = is ? p.q[c] : 0;
        __syncwarp();
#pragma unroll 1
        for (int k = 0; k < kBatch; k += 8) {
            double b[kColumnTiles][2];
#pragma unroll
            for (int j = 0; j < kColumnTiles; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const double *w = weights + k + t + 4 * e;
                    b[j][e] = of_column[j][0] < 0 ? 0 : w[of_column[j][0]] * w[of_column[j][1]];
                }
#pragma unroll
            for (int i = 0; i < kRowTiles; i++) {
                double a[4];
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const double *w = weights + k + t + 4 * (e / 2);
                    const int *of = of_row[i][e % 2];
                    a[e] = of[0] < 0 ? 0 : w[of[0]] * w[of[1]];
                }
#pragma unroll
                for (int j = 0; j < kColumnTiles; j++) mma(sum[i][j], a, b[j]);
            }
        }
    }
    // The groups' sums, one after another.
    for (int other = 0; other < kGroups; other++) {
        __syncthreads();
        if (group != other) continue;
#pragma unroll
        for (int k = 0; k < 4 * kRowTiles * kColumnTiles; k++) {
            const int e = k % 4, i = k / 4 / kColumnTiles, j = k / 4 % kColumnTiles, row = 16 * (i * kShares + share) + 8 * (e / 2) + g, column = 8 * j + 2 * t + e % 2;
            if (row >= plane || column >= nodes * C) continue;
            double &to = s_memory[(column % C * nodes + column / C) * plane + row];
            to = other ? to + sum[i][j][e] : sum[i][j][e];
        }
    }
    __syncthreads();
    for (int k = tid; k < C * nodes * plane; k += 32 * kWarps) out[k] = s_memory[k];
}

// Source `i` of the sorted ones, its node `node` of a segment's.
__device__ inline void read_point(const Fmm &f, const Root &root, u32 i, Point<1> &p) {
    Charge<double> q;
    read(f, root, f.tree[0].order[i], q);
    p = {{q.x, q.y, q.z}, {q.q}};
}
__device__ inline void read_point(const Fmm &f, const Root &root, u32 i, Point<3> &p) {
    if (f.kind == kParticle) {
        Particle<double> a;
        read(f, root, f.tree[0].order[i], a);
        p = {{a.x, a.y, a.z}, {a.ax, a.ay, a.az}};
        return;
    }
    Segment<double> s;
    const u32 node = i % f.gauss_points;
    read(f, root, f.tree[0].order[i / f.gauss_points], s);
    // One without length has its end elsewhere.
    const double along = s.circulation == 0 ? 0 : 1, l[3] = {along * (s.x2 - s.x1), along * (s.y2 - s.y1), along * (s.z2 - s.z1)};
    const double at = 0.5 * (1 + f.gauss[node]), w = 0.5 * f.gauss[16 + node] * s.circulation;
    p = {{fma(at, l[0], s.x1), fma(at, l[1], s.y1), fma(at, l[2], s.z1)}, {w * l[0], w * l[1], w * l[2]}};
}

// Launch: 128 threads, a block for each slice there may be. MOST: of 6, 8 and 10 the first that is not below the number of nodes.
template <int C, int MOST> __device__ __forceinline__ void slices(const Fmm &f, const Grid &g) {
    const u32 cells = cells_of(g.level), slice = blockIdx.x;
    if (slice >= g.slice[cells]) return;
    u32 low = 0, high = cells;
    while (high - low > 1) { const u32 m = (low + high) / 2; if (g.slice[m] <= slice) low = m; else high = m; }
    const Root root = f.state->root;
    const Cubes cubes(f);
    int at[3];
    unmorton(low, at);
    const double centre[3] = {cubes.centre(g.level, at[0]), cubes.centre(g.level, at[1]), cubes.centre(g.level, at[2])};
    const u32 per = f.kind == kSegment ? f.gauss_points : 1, first = g.begin[low] + (slice - g.slice[low]) * kSlice, n = min(g.begin[low + 1] - first, kSlice);
    const auto point = [&](u32 i) { Point<C> p; read_point(f, root, first * per + i, p); return p; };
    to_nodes<C, MOST>(g.nodes, centre, cubes.half(g.level), n * per, point, g.slices + (size_t)slice * C * g.nodes * g.nodes * g.nodes);
}
#define SLICES(name, C, MOST) \
    extern "C" __global__ void __launch_bounds__(32 * kWarps, MOST > 6 ? 2 : 3) fmm_grid_slices_##name##_##MOST(const __grid_constant__ Fmm f, const __grid_constant__ Grid g) { slices<C, MOST>(f, g); }
SLICES(charges, 1, 6)
SLICES(charges, 1, 8)
SLICES(charges, 1, 10)
SLICES(vortices, 3, 6)
SLICES(vortices, 3, 8)
SLICES(vortices, 3, 10)

// Launch: 256 threads, a block a cell.
extern "C" __global__ void __launch_bounds__(256) fmm_grid_sum(const __grid_constant__ Grid g, int components) {
    const u32 all = components * g.nodes * g.nodes * g.nodes, cell = blockIdx.x;
    double *to = g.strength + (size_t)(first_cell(g.level) + cell) * all;
    for (u32 k = threadIdx.x; k < all; k += 256) {
        double sum = 0;
        for (u32 s = g.slice[cell]; s < g.slice[cell + 1]; s++) sum += g.slices[(size_t)s * all + k];
        to[k] = sum;
    }
}

// Strengths at a cell's nodes, of those at its children's nodes: along one axis after the other, since nodes of both are products of axes.
// Launch: 256 threads; x: the cells of the level, y: components.
extern "C" __global__ void __launch_bounds__(256) fmm_grid_up(const __grid_constant__ Fmm f, const __grid_constant__ Grid g, int level) {
    constexpr int kAll = kMostNodes * kMostNodes * kMostNodes, kEach = (kAll + 255) / 256;
    __shared__ double s_coefficient[kMostNodes][kMostNodes], s_weight[2][kMostNodes][kMostNodes], s_from[kAll], s_to[kAll];
    const Cubes cubes(f);
    const u32 q = g.nodes, all = q * q * q, cell = blockIdx.x, tid = threadIdx.x;
    const double half = cubes.half(level), below = cubes.half(level + 1), aside = 0.25 * cubes.side / (double)(1u << level);
    make_coefficients(q, s_coefficient);
    __syncthreads();
    // Of the nodes of the children on either side of the middle.
    for (u32 i = tid; i < 2 * q; i += 256) {
        const u32 side = i / q, node = i % q;
        double t[kMostNodes];
        chebyshev(((side ? aside : -aside) + below * cospi((node + 0.5) / q)) / half, t);
        for (u32 k = 0; k < q; k++) s_weight[side][k][node] = weight(s_coefficient[k], t);
    }
    double sum[kEach] = {};
    for (u32 octant = 0; octant < 8; octant++) {
        const double *from = g.strength + ((size_t)(first_cell(level + 1) + 8 * cell + octant) * gridDim.y + blockIdx.y) * all;
        __syncthreads();
        for (u32 k = tid; k < all; k += 256) s_from[k] = from[k];
        __syncthreads();
        // Along x and y; apart: nodes from one along the axis to the next.
        for (u32 axis = 0, apart = 1; axis < 2; axis++, apart *= q) {
            const double *in = axis ? s_to : s_from;
            double *out = axis ? s_from : s_to;
            for (u32 k = tid; k < all; k += 256) {
                const u32 to = k / apart % q;
                const double *w = s_weight[octant >> axis & 1][to], *row = in + (k - to * apart);
                double x = 0;
                for (u32 j = 0; j < q; j++) x = fma(w[j], row[j * apart], x);
                out[k] = x;
            }
            __syncthreads();
        }
#pragma unroll
        for (int e = 0; e < kEach; e++) {
            const u32 k = tid + 256 * e;
            if (k >= all) break;
            const double *w = s_weight[octant >> 2][k / (q * q)], *row = s_from + k % (q * q);
            for (u32 j = 0; j < q; j++) sum[e] = fma(w[j], row[j * q * q], sum[e]);
        }
    }
    double *to = g.strength + ((size_t)(first_cell(level) + cell) * gridDim.y + blockIdx.y) * all;
#pragma unroll
    for (int e = 0; e < kEach; e++) if (tid + 256 * e < all) to[tid + 256 * e] = sum[e];
}

// In the host's lengths, from the middle of the box. Launch: any; n threads for n points.
extern "C" __global__ void fmm_grid_points(const __grid_constant__ Fmm f, const __grid_constant__ Grid g) {
    const u32 q = g.nodes, all = q * q * q, i = blockIdx.x * blockDim.x + threadIdx.x, cell = i / all, k = i % all, components = f.components;
    if (cell >= cells_of(g.box_level)) return;
    const Cubes cubes(f);
    const int node[3] = {(int)(k % q), (int)(k / q % q), (int)(k / (q * q))};
    int at[3];
    unmorton(cell, at);
    for (int d = 0; d < 3; d++) g.point[3 * (size_t)i + d] = (cubes.centre(g.box_level, at[d]) + cubes.half(g.box_level) * cospi((node[d] + 0.5) / q)) / f.state->root.scale;
    const double *strength = g.strength + (size_t)(first_cell(g.box_level) + cell) * components * all;
    for (u32 c = 0; c < components; c++) g.point_strength[(size_t)i * components + c] = strength[c * all + k];
}

// Equivalent sources are points without a core, whatever the source.
template <bool GRADIENT> struct Charges {
    typedef Charge<double> Source;
    typedef ChargeSum<double, GRADIENT> Sum, Far;
    static constexpr int C = 1;
    static WFMM_DEVICE void add(Sum &sum, Vec<double> x, const Source &s, double) { add_charge<GRADIENT>(sum, x, s); }
    static WFMM_DEVICE void add_far(Far &sum, Vec<double> x, Vec<double> p, const double *q) { add_charge<GRADIENT>(sum, x, Source{p.x, p.y, p.z, q[0]}); }
    static WFMM_DEVICE void merge(Sum &sum, const Far &far) { for (int k = 0; k < Sum::terms; k++) sum.sum[k] += far.sum[k]; }
};
template <bool GRADIENT> WFMM_DEVICE void add_vortex(ParticleSum<double, GRADIENT> &sum, Vec<double> x, Vec<double> p, const double *q) {
    Particle<double> a{p.x, p.y, p.z, 0, q[0], q[1], q[2], 0};
    particle_core<double>(NONE, 0, a.core, a.cut2);
    add_particle<NONE, REGULARIZED, GRADIENT>(sum, x, a);
}
template <int REG, bool GRADIENT> struct Particles {
    typedef Particle<double> Source;
    typedef ParticleSum<double, GRADIENT> Sum, Far;
    static constexpr int C = 3;
    static WFMM_DEVICE void add(Sum &sum, Vec<double> x, const Source &s, double) { add_particle<REG, REGULARIZED, GRADIENT>(sum, x, s); }
    static WFMM_DEVICE void add_far(Far &sum, Vec<double> x, Vec<double> p, const double *q) { add_vortex<GRADIENT>(sum, x, p, q); }
    static WFMM_DEVICE void merge(Sum &sum, const Far &far) { for (int k = 0; k < Sum::terms; k++) sum.sum[k] += far.sum[k]; }
};
template <bool GRADIENT> struct Segments {
    typedef Segment<double> Source;
    typedef SegmentSum<double, GRADIENT> Sum;
    typedef ParticleSum<double, GRADIENT> Far;
    static constexpr int C = 3;
    static WFMM_DEVICE void add(Sum &sum, Vec<double> x, const Source &s, double step) { if (add_segment<NONE, REGULARIZED, GRADIENT>(sum, x, s)) add_segment_exactly<NONE>(sum, x, s, step); }
    static WFMM_DEVICE void add_far(Far &sum, Vec<double> x, Vec<double> p, const double *q) { add_vortex<GRADIENT>(sum, x, p, q); }
    static WFMM_DEVICE void merge(Sum &sum, const Far &far) {
        double field[12];
        far.field(field);
        for (int k = 0; k < Sum::terms; k++) sum.sum[k] += field[k];
    }
};

// Cells are near where they are less than so many of their half sides away, or where cores may count: so many times as far as the
// passes take them into account.
constexpr double kNear = 4, kCoreRange = 1.5;
constexpr u32 kMostNear = 512, kMostTried = 8 * kMostNear;

// Puts those of the 256 threads' items that are wanted behind the `count` that there are, in the order of the threads.
__device__ inline void append(u32 *list, u32 &count, u32 most, bool wanted, u32 item) {
    __shared__ u32 s_warp[8];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, bits = __ballot_sync(~0u, wanted);
    __syncthreads();
    if (lane == 0) s_warp[warp] = __popc(bits);
    __syncthreads();
    u32 at = count + __popc(bits & ((1u << lane) - 1));
    for (u32 w = 0; w < 8; w++) { if (w < warp) at += s_warp[w]; count += s_warp[w]; }
    if (wanted && at < most) list[at] = item;
    count = min(count, most);
}

// Where an image is that is numbered as `beside` numbers cells.
__device__ inline void image_at(u32 item, double period, double *by) {
    int n[3];
    beside((int)(item >> kImageBits), n);
    for (int d = 0; d < 3; d++) by[d] = n[d] * period;
}

// Launch: 256 threads; x: the targets, y: parts of the sum, each a row of `partial`.
template <class K> __device__ __forceinline__ void sample_box(const Fmm &f, const Check &c, const Grid &g) {
    // Cells of images: the image above kImageBits.
    __shared__ u32 s_near[2][kMostNear], s_far[kMostTried], s_begin[kMostNear], s_end[kMostNear];
    __shared__ double s_node[kMostNodes], s_sum[8][K::Sum::terms];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, workers = 8 * gridDim.y, me = 8 * blockIdx.y + warp, sample = blockIdx.x;
    const u32 at = target_of(f, c, sample), q = g.nodes, all = q * q * q, chunks = (all + 31) / 32;
    if (threadIdx.x == 0 && blockIdx.y == 0 && c.slot == 0) c.at[sample] = at;
    if (threadIdx.x < q) s_node[threadIdx.x] = cospi((threadIdx.x + 0.5) / q);
    const Root root = f.state->root;
    const double step = f.step * root.scale;
    const Cubes cubes(f);
    const Vec<double> x = in_frame(root, f.tree[1].x, f.tree[1].x_is_f64, at);
    const double y[3] = {x.x, x.y, x.z}, reach = f.regularization ? kCoreRange * f.core_range * unordered(f.state->most_core) * root.scale : 0;
    typename K::Sum sum;
    typename K::Far far;
    typename K::Source s;
    for (int k = 0; k < K::Sum::terms; k++) sum.sum[k] = 0;
    for (int k = 0; k < K::Far::terms; k++) far.sum[k] = 0;
    const bool cut = has_pieces(f);
    if (cut) for (u64 i = 32 * me + lane; i < (u64)f.n_in * f.images; i += 32 * workers) { fetch(f, root, (u32)i, true, s); K::add(sum, x, s, step); }
    u32 near = 0, dealt = 0;
    int level = 1;
    for (; !cut; level++) {
        const double half = cubes.half(level), apart = fmax(kNear * half, reach);
        const u32 *parents = s_near[level & 1], tried = level == 1 ? 8 * f.images : 8 * near, shift = 3 * (g.level - level);
        u32 nearer = 0, farther = 0, *children = s_near[~level & 1];
        for (u32 first = 0; first < tried; first += 256) {
            const u32 k = first + threadIdx.x, parent = k >= tried ? 0 : level == 1 ? k / 8 << kImageBits : parents[k / 8], cell = 8 * (parent & kInImage) + k % 8;
            const u32 item = (parent & ~kInImage) | cell;
            const bool is = k < tried && g.begin[cell << shift] < g.begin[(cell + 1) << shift];
            int way[3];
            double by[3], gap2 = 0;
            unmorton(cell, way);
            image_at(item, cubes.period, by);
            for (int d = 0; d < 3; d++) {
                const double gap = fmax(fabs(y[d] - by[d] - cubes.centre(level, way[d])) - half, 0.0);
                gap2 += gap * gap;
            }
            const bool is_near = gap2 < apart * apart;
            append(children, nearer, kMostNear, is && is_near, item);
            append(s_far, farther, kMostTried, is && !is_near, item);
        }
        __syncthreads();
        for (u32 t = (me + workers - dealt % workers) % workers; t < farther * chunks; t += workers) {
            const u32 item = s_far[t / chunks], cell = item & kInImage, k = t % chunks * 32 + lane;
            if (k >= all) continue;
            int way[3];
            double by[3], strength[K::C];
            unmorton(cell, way);
            image_at(item, cubes.period, by);
            const double *from = g.strength + (size_t)(first_cell(level) + cell) * K::C * all + k;
            for (int i = 0; i < K::C; i++) strength[i] = from[(size_t)i * all];
            const Vec<double> node{by[0] + cubes.centre(level, way[0]) + half * s_node[k % q], by[1] + cubes.centre(level, way[1]) + half * s_node[k / q % q], by[2] + cubes.centre(level, way[2]) + half * s_node[k / q / q]};
            K::add_far(far, x, node, strength);
        }
        dealt += farther * chunks;
        near = nearer;
        __syncthreads();
        // Smaller cells are of use as long as they, and not cores or the lengths of segments, decide what is near.
        if (level == (int)g.level || reach > kNear * cubes.half(level + 1) || 3 * cubes.over > cubes.half(level + 1)) break;
    }
    if (!cut) {
        const u32 shift = 3 * (g.level - level), *cells = s_near[~level & 1];
        for (u32 e = threadIdx.x; e < near; e += 256) {
            const u32 cell = cells[e] & kInImage;
            s_begin[e] = g.begin[cell << shift]; s_end[e] = g.begin[(cell + 1) << shift];
        }
        __syncthreads();
        for (u32 e = 0; e < near; e++) {
            double by[3];
            image_at(cells[e], cubes.period, by);
            const u32 begin = s_begin[e], end = s_end[e];
            for (u32 i = begin + 32 * ((me + workers - dealt % workers) % workers) + lane; i < end; i += 32 * workers) {
                read(f, root, f.tree[0].order[i], s);
                move(s, by);
                K::add(sum, x, s, step);
            }
            dealt += (end - begin + 31) / 32;
        }
    }
    K::merge(sum, far);
#pragma unroll
    for (int k = 0; k < K::Sum::terms; k++) {
        double v = sum.sum[k];
        for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
        if (lane == 0) s_sum[warp][k] = v;
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < K::Sum::terms; k += 256) {
        double v = 0;
        for (int w = 0; w < 8; w++) v += s_sum[w][k];
        c.partial[((size_t)blockIdx.y * K::Sum::terms + k) * ((c.samples + 31) / 32 * 32) + sample] = v;
    }
}

#define SAMPLE(name, ...) \
    extern "C" __global__ void __launch_bounds__(256) fmm_grid_sample_##name(const __grid_constant__ Fmm f, const __grid_constant__ Check c, const __grid_constant__ Grid g) { sample_box<__VA_ARGS__>(f, c, g); }

SAMPLE(charges_f64, Charges<false>)
SAMPLE(charges_gradient_f64, Charges<true>)
SAMPLE(segments_none_f64, Segments<false>)
SAMPLE(segments_none_gradient_f64, Segments<true>)
#define PARTICLES(name, REG) SAMPLE(particles_##name##_f64, Particles<REG, false>) SAMPLE(particles_##name##_gradient_f64, Particles<REG, true>)
PARTICLES(none, NONE)
PARTICLES(gauss_erf, GAUSS_ERF)
PARTICLES(exponential, EXPONENTIAL)
PARTICLES(polynomial, POLYNOMIAL)
