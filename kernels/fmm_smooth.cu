// Core corrections that are smooth over many targets. A block a group of leaves (the largest cells with at most
// `smooth_targets` targets): the deficits of sources that are smooth over the group's box are summed at Chebyshev nodes of the box
// and interpolated to its targets; the sources whose core reaches the box but is not smooth there are listed for the leaves.
//
// Leaves: `field` of the group's targets, to which the near field is added; the list, its length and the group's box. A group
// whose list is too long, with few targets for the nodes, or of sources in a single cell is none: its leaves then search for themselves.
#include "fmm_near.cuh"
using namespace fmm;

constexpr int kMostNodes = 8; // along an axis; in all at most one a thread

// Nodes along the axes of a box of half sides `half`: more where it is long, for the same error at a distance of four half sides.
template <class T> __device__ int choose_nodes(const T *half) {
    const T longest = max(half[0], max(half[1], half[2]));
    int best = 0;
    for (int most = 2; most <= kMostNodes; most++) {
        int all = 1, packed = 0;
        for (int k = 0; k < 3; k++) {
            int n = 1;
            if (half[k] > 0) n = min(most, max(1, (int)ceilf(most * 1.386294f / logf(4.0f * (float)(longest / half[k])))));
            all *= n; packed |= n << 4 * k;
        }
        if (all <= kThreads) best = packed;
    }
    return best;
}

// Node `i` of `n` on [-1, 1].
template <class T> __device__ T node(int i, int n) { return n == 1 ? T(0) : (T)cospi((2 * i + 1) / (2.0 * n)); }

// The nodes of each axis, and what the products of differences there are divided by.
template <class T> struct Nodes {
    T at[3][kMostNodes], inverse[3][kMostNodes];

    __device__ void set(const int *n) {
        const int k = threadIdx.x / kMostNodes, i = threadIdx.x % kMostNodes;
        if (k >= 3 || i >= n[k]) return;
        T x = 1;
        for (int j = 0; j < n[k]; j++) if (j != i) x *= node<T>(i, n[k]) - node<T>(j, n[k]);
        at[k][i] = node<T>(i, n[k]);
        inverse[k][i] = T(1) / x;
    }

    // The polynomials that are 1 at one node of axis `k`, at `t`.
    __device__ void weights(T *w, T t, int k, int n) const {
        T x = 1;
        for (int i = 0; i < n; i++) { w[i] = x * inverse[k][i]; x *= t - at[k][i]; }
        x = 1;
        for (int i = n - 1; i >= 0; i--) { w[i] *= x; x *= t - at[k][i]; }
    }
};

template <class T, class P> __device__ void interpolate(const Fmm &f, const Group<T> &g, const Nodes<T> &nodes, const T *half, const T *at_node, T *weight, u32 begin, u32 end) {
    const int nx = g.nodes[0], ny = g.nodes[1], nz = g.nodes[2];
    T *mine = weight + threadIdx.x * (3 * kMostNodes + 1);
    for (u32 i = begin + threadIdx.x; i < end; i += kThreads) {
        const Vec4<T> p = ((const Vec4<T> *)f.tree[1].point)[i];
        const T x[3] = {p.x, p.y, p.z};
        for (int k = 0; k < 3; k++) nodes.weights(mine + kMostNodes * k, half[k] > 0 ? (x[k] - g.centre[k]) / half[k] : T(0), k, g.nodes[k]);
        T sum[P::kFields];
#pragma unroll
        for (int k = 0; k < P::kFields; k++) sum[k] = 0;
        for (int c = 0; c < nz; c++)
            for (int b = 0; b < ny; b++) {
                const T w = mine[2 * kMostNodes + c] * mine[kMostNodes + b];
                for (int a = 0; a < nx; a++) {
                    const T v = w * mine[a];
                    const T *at = at_node + (c * ny + b) * nx + a;
#pragma unroll
                    for (int k = 0; k < P::kFields; k++) sum[k] = fma(v, at[k * kThreads], sum[k]);
                }
            }
        for (int k = 0; k < P::kFields; k++) ((T *)f.field)[(size_t)i * P::kFields + k] = sum[k];
    }
}

template <class T, class P> __device__ void sum_group(Near<T, P> &n, u32 cell, Nodes<T> &axes, T *at_node, T *weight) {
    const Fmm &f = n.f; auto &s = n.s;
    const Tree &t = f.tree[1];
    const u32 begin = t.begin[cell], end = t.end[cell];
    n.measure(begin, end);
    T half[3];
    double *box = f.smooth_box + 8 * (size_t)cell;
    for (int k = 0; k < 3; k++) half[k] = T(0.5) * (n.box[3 + k] - n.box[k]);
    const int packed = choose_nodes(half);
    __syncthreads();
    if (threadIdx.x < 7) box[threadIdx.x] = threadIdx.x < 6 ? (double)n.box[threadIdx.x] : (double)packed;
    if (threadIdx.x == 0) { s.group = cell; s.room = kListPerTarget * (end - begin); s.list = f.smooth_list + kListPerTarget * (size_t)begin; }
    __syncthreads();
    if (threadIdx.x == 0) s.smooth = group_of<T>(box);
    __syncthreads();
    const Group<T> &g = s.smooth;
    const int nx = g.nodes[0], ny = g.nodes[1], nodes = nx * ny * g.nodes[2];
    // Sources that are all in one cell are near every leaf: nobody would walk down to them.
    const bool single = f.state->level_begin[0][kLevels] == 1;
    if (single || nodes == 0 || end - begin < 2 * (u32)nodes) { if (threadIdx.x == 0) f.smooth_count[cell] = kNone; return; }
    axes.set(g.nodes);
    __syncthreads();
    n.share_out(nodes, [&](int i) {
        const int at[3] = {i % nx, i / nx % ny, i / (nx * ny)};
        T x[3];
        for (int k = 0; k < 3; k++) x[k] = fma(axes.at[k][at[k]], half[k], g.centre[k]);
        return Vec<T>{x[0], x[1], x[2]};
    });
    n.template core_correction<kGroupSources>(0, nullptr);
    n.reduce([&](int i, int k, T x) { at_node[k * kThreads + i] = x; });
    n.count();
    const bool fits = n.listed <= s.room;
    if (threadIdx.x == 0) f.smooth_count[cell] = fits ? n.listed : kNone;
    if (fits) interpolate<T, P>(f, g, axes, half, at_node, weight, begin, end);
}

constexpr int kQueues = 2 * kQueue * 8; // numbers
static_assert(kQueues >= kThreads * (3 * kMostNodes + 1), "weights fit where the queues were");

template <class T, class P> __device__ void smooth(const Fmm &f) {
    __shared__ Shared<T> s;
    __shared__ Nodes<T> axes;
    extern __shared__ __align__(16) unsigned char memory[];
    Near<T, P> near(f, s, (typename P::Record *)memory);
    // The queues, whose memory the weights of `kThreads` targets take afterwards; then the fields at the nodes.
    T *weight = (T *)memory, *at_node = weight + kQueues;
    const Tree &t = f.tree[1];
    const u32 cells = f.state->level_begin[1][kLevels];
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) s.work = atomicAdd(&f.state->work_ticket[2], 1u);
        __syncthreads();
        const u32 cell = s.work;
        if (cell >= cells) return;
        const u32 up = t.parent[cell];
        if (t.end[cell] - t.begin[cell] > f.smooth_targets || (up != kNone && t.end[up] - t.begin[up] <= f.smooth_targets)) continue;
        sum_group(near, cell, axes, at_node, weight);
    }
}

// Launch: 128 threads, persistent blocks that take tickets; dynamic shared memory: two queues of `kQueue` sources as in fmm_p2p.cu,
// then `kThreads` * fields numbers.
#define SMOOTH(name, T, BLOCKS, ...) \
    extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS) fmm_smooth_##name(const __grid_constant__ Fmm f) { smooth<T, __VA_ARGS__>(f); }
SMOOTH(particle_f32, float, 5, ParticlePair<float, false, true>)
SMOOTH(particle_f64, double, 4, ParticlePair<double, false, true>)
SMOOTH(particle_gradient_f32, float, 4, ParticlePair<float, true, true>)
SMOOTH(particle_gradient_f64, double, 3, ParticlePair<double, true, true>)
SMOOTH(segment_f32, float, 5, SegmentOnTarget<float, false>)
SMOOTH(segment_f64, double, 4, SegmentOnTarget<double, false>)
SMOOTH(segment_gradient_f32, float, 4, SegmentOnTarget<float, true>)
SMOOTH(segment_gradient_f64, double, 3, SegmentOnTarget<double, true>)
