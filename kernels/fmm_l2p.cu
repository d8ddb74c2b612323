// Local expansions to fields at the targets, added to the near field and written where the caller wants them.
//
// The velocity is the curl of the vector potential, and a derivative of a local expansion is one of an order less: a warp
// first turns the leaf's three potentials into expansions of the fields (the velocity, then its gradient; or the gradient of
// a potential), then every lane sums them at its target while the harmonics run by.
#include "fmm.cuh"
using namespace fmm;

constexpr int kWarps = 4;

__device__ inline int index_of(int l, int m, int sine) { return l * l + (m ? 2 * m - 1 + sine : 0); }

// Coefficient `k` of the derivative along `axis` of the expansion `a`.
template <class T> __device__ T derivative(const T *a, int k, int axis) {
    int l = (int)sqrtf((float)k);
    while (l * l > k) l--;
    while ((l + 1) * (l + 1) <= k) l++;
    const int j = k - l * l, m = (j + 1) / 2, sine = j && !(j & 1);
    if (axis == 2) return a[index_of(l + 1, m, sine)];
    const int other = axis == 0 ? sine : 1 - sine;
    T up = a[index_of(l + 1, m + 1, other)], down = 0;
    if (m > 1) down = a[index_of(l + 1, m - 1, other)];
    else if (m == 1 && other == 0) down = 2 * a[index_of(l + 1, 0, 0)];
    if (axis == 0) return (T)0.5 * (up - down);
    return sine ? (T)-0.5 * (up + down) : (T)0.5 * (up + down);
}

template <class T, int FIELDS> __device__ __forceinline__ void evaluate(const T *e, int order, T x, T y, T z, T *out) {
    const T r2 = x * x + y * y + z * z;
    T dc = 1, ds = 0;
    for (int m = 0; m < order; m++) {
        T pc = 0, ps = 0, qc = dc, qs = ds;
        for (int l = m; l < order; l++) {
            const T *c = e + (size_t)index_of(l, m, 0) * FIELDS;
#pragma unroll
            for (int k = 0; k < FIELDS; k++) out[k] = fma(c[k], qc, out[k]);
            if (m) {
#pragma unroll
                for (int k = 0; k < FIELDS; k++) out[k] = fma(c[FIELDS + k], qs, out[k]);
            }
            const T k = (T)1 / (T)((l + 1) * (l + 1) - m * m), u = (T)(2 * l + 1) * z * k, v = r2 * k;
            const T nc = u * qc - v * pc, ns = u * qs - v * ps;
            pc = qc; ps = qs; qc = nc; qs = ns;
        }
        const T k = (T)0.5 / (T)(m + 1), next = k * (x * dc - y * ds);
        ds = k * (x * ds + y * dc); dc = next;
    }
}

template <class T> __device__ inline void write(void *out, u32 is_f64, u32 accumulate, size_t at, T v) {
    if (is_f64) ((double *)out)[at] = accumulate ? ((double *)out)[at] + v : v;
    else ((float *)out)[at] = accumulate ? ((float *)out)[at] + (float)v : (float)v;
}

// MAIN: fields of the first result (3 velocities, 1 potential); REST: of the second (9 or 3; 0: not wanted).
template <class T, int MAIN, int REST> __device__ void l2p(const Fmm &f) {
    extern __shared__ __align__(16) unsigned char memory[];
    if (f.state->flags) return; // the host will enlarge what was too small and try again
    const Tree &t = f.tree[1];
    const u32 cells = f.state->level_begin[1][kLevels];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, order = f.order, nc = MAIN, stride = f.stride;
    // In a warp's share: potentials [components][order²] plus a zero row beyond, then fields [coefficient][fields].
    const int room = (order + 1) * (order + 1), per_warp = room * nc + order * order * (MAIN + REST);
    T *a = (T *)memory + warp * per_warp, *first = a + room * nc, *second = first + order * order * MAIN;
    const Root root = f.state->root;
    const T s = (T)f.normalization;
    // Velocity: strength / length^2 for particles, circulation / length for segments; potential: charge / length.
    const T unit = (T)(f.kind == kParticle ? root.scale * root.scale : root.scale);
    for (u32 c = blockIdx.x * kWarps + warp; c < cells; c += gridDim.x * kWarps) {
        const u32 info = t.info[c];
        if (!info_leaf(info)) continue;
        T centre[3];
        const T inv = 1 / cell_geometry(t, root, c, centre);
        const bool far = info_level(info) >= 2;
        const T *local = (const T *)f.local + (size_t)c * nc * stride;
        for (int k = lane; k < room; k += 32)
            for (int d = 0; d < nc; d++) a[d * room + k] = far && k < order * order ? local[d * stride + k] * inv : 0;
        __syncwarp();
        if (MAIN == 3) {
            for (int k = lane; k < order * order; k += 32)
                for (int d = 0; d < 3; d++) {
                    const int u = (d + 1) % 3, v = (d + 2) % 3;
                    first[k * 3 + d] = (derivative(a + v * room, k, u) - derivative(a + u * room, k, v)) * inv;
                }
            __syncwarp();
            if (REST) { // the velocities take the potentials' place
                for (int k = lane; k < room; k += 32) for (int d = 0; d < 3; d++) a[d * room + k] = k < order * order ? first[k * 3 + d] : 0;
                __syncwarp();
                for (int k = lane; k < order * order; k += 32)
                    for (int w = 0; w < REST; w++) second[k * REST + w] = derivative(a + w / 3 * room, k, w % 3) * inv;
            }
        } else {
            for (int k = lane; k < order * order; k += 32) {
                first[k] = a[k];
                for (int w = 0; w < REST; w++) second[k * REST + w] = derivative(a, k, w) * inv;
            }
        }
        __syncwarp();
        const u32 begin = t.begin[c], end = t.end[c];
        for (u32 i = begin + lane; i < end; i += 32) {
            const Vec4<T> p = ((const Vec4<T> *)t.point)[i];
            const T x = (p.x - centre[0]) * inv, y = (p.y - centre[1]) * inv, z = (p.z - centre[2]) * inv;
            const T *near = (const T *)f.field + (size_t)i * f.fields;
            const size_t to = t.order[i];
            T v[MAIN];
            for (int k = 0; k < MAIN; k++) v[k] = near[k];
            if (far) evaluate<T, MAIN>(first, MAIN == 3 ? order - 1 : order, x, y, z, v);
            for (int k = 0; k < MAIN; k++) write(f.out_main, f.out_is_f64, f.accumulate, to * MAIN + k, v[k] * s * unit);
            if (REST) {
                T g[REST ? REST : 1];
                for (int k = 0; k < REST; k++) g[k] = near[MAIN + k];
                if (far) evaluate<T, REST ? REST : 1>(second, MAIN == 3 ? order - 2 : order - 1, x, y, z, g);
                for (int k = 0; k < REST; k++) write(f.out_gradient, f.out_is_f64, f.accumulate, to * REST + k, g[k] * s * unit * (T)root.scale);
            }
        }
        __syncwarp();
    }
}

// Launch: 128 threads, grid-stride over cells, dynamic shared memory: 4 * per_warp numbers.
#define L2P(name, T, MAIN, REST) \
    extern "C" __global__ void __launch_bounds__(128) fmm_l2p_##name(const __grid_constant__ Fmm f) { l2p<T, MAIN, REST>(f); }
L2P(velocity_f32, float, 3, 0)
L2P(velocity_f64, double, 3, 0)
L2P(gradient_f32, float, 3, 9)
L2P(gradient_f64, double, 3, 9)
L2P(potential_f32, float, 1, 0)
L2P(potential_f64, double, 1, 0)
L2P(force_f32, float, 1, 3)
L2P(force_f64, double, 1, 3)
