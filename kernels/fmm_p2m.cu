// Multipoles of the source leaves, and the largest core in every leaf. A warp a leaf: the lanes hold 32 sources, run along a
// column m of the harmonics together and leave its values in shared memory, where lanes that stand for coefficients sum them
// in the order of the sources. Segments are sampled at Gauss-Legendre nodes, exact for the degrees kept.
#include "fmm.cuh"
using namespace fmm;

constexpr int kWarps = 4, kColumn = 34; // kColumn: 2 (order - m) values at most, order <= 17

template <class T> __device__ void p2m(const Fmm &f) {
    const Tree &t = f.tree[0];
    const u32 cells = f.state->level_begin[0][kLevels];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, order = f.order, stride = f.stride, nc = f.components;
    __shared__ T s_value[kWarps][kColumn][33];
    __shared__ T s_weight[kWarps][3][32];
    const Vec4<T> *point = (const Vec4<T> *)t.point, *strength = (const Vec4<T> *)f.strength;
    for (u32 c = blockIdx.x * kWarps + warp; c < cells; c += gridDim.x * kWarps) {
        if (!info_leaf(t.info[c])) {
            // Nobody reads the root's expansion: M2L takes it for the sources that are not there.
            if (c == 0) for (int w = lane; w < nc * stride; w += 32) ((T *)f.multipole)[w] = 0;
            continue;
        }
        T centre[3];
        const T inv = 1 / cell_geometry(t, f.state->root, c, centre);
        T *out = (T *)f.multipole + (size_t)c * nc * stride;
        const u32 begin = t.begin[c], per = f.kind == kSegment ? f.gauss_points : 1, total = (t.end[c] - begin) * per;
        T core = 0;
        for (u32 base = 0; base < total; base += 32) {
            const u32 k = base + lane;
            T x = 0, y = 0, z = 0, q[3] = {0, 0, 0};
            if (k < total) {
                const u32 i = begin + k / per;
                const Vec4<T> p = point[i];
                x = p.x; y = p.y; z = p.z;
                if (f.kind == kCharge) q[0] = p.w;
                else {
                    const Vec4<T> v = strength[i];
                    core = max(core, p.w);
                    q[0] = v.x; q[1] = v.y; q[2] = v.z;
                    if (f.kind == kSegment) {
                        const T at = (T)f.gauss[k % per], w = (T)f.gauss[16 + k % per] * v.w;
                        x += at * v.x; y += at * v.y; z += at * v.z;
                        q[0] *= w; q[1] *= w; q[2] *= w;
                    }
                }
            }
            x = (x - centre[0]) * inv; y = (y - centre[1]) * inv; z = (z - centre[2]) * inv;
            for (int d = 0; d < 3; d++) s_weight[warp][d][lane] = q[d];
            const T r2 = x * x + y * y + z * z;
            T dc = 1, ds = 0; // R_mm
            for (int m = 0; m < order; m++) {
                __syncwarp();
                T pc = 0, ps = 0, qc = dc, qs = ds;
                for (int l = m; l < order; l++) {
                    const int at = 2 * (l - m);
                    s_value[warp][at][lane] = qc;
                    s_value[warp][at + 1][lane] = qs;
                    const T k = (T)1 / (T)((l + 1) * (l + 1) - m * m), u = (T)(2 * l + 1) * z * k, v = r2 * k;
                    const T nc_ = u * qc - v * pc, ns_ = u * qs - v * ps;
                    pc = qc; ps = qs; qc = nc_; qs = ns_;
                }
                const T k = (T)0.5 / (T)(m + 1), next = k * (x * dc - y * ds);
                ds = k * (x * ds + y * dc); dc = next;
                __syncwarp();
                const int rows = 2 * (order - m);
                for (int w = lane; w < rows; w += 32) {
                    const int l = m + w / 2, sine = w & 1;
                    if (m == 0 && sine) continue;
                    T sum[3] = {0, 0, 0};
                    for (int j = 0; j < 32; j++) {
                        const T value = s_value[warp][w][j];
                        for (int d = 0; d < 3; d++) sum[d] = fma(value, s_weight[warp][d][j], sum[d]);
                    }
                    const int at = l * l + (m ? 2 * m - 1 + sine : 0);
                    for (int d = 0; d < nc; d++) out[d * stride + at] = base ? out[d * stride + at] + sum[d] : sum[d];
                }
            }
            __syncwarp();
        }
        for (int w = order * order + lane; w < stride; w += 32) for (int d = 0; d < nc; d++) out[d * stride + w] = 0;
        for (int d = 16; d; d >>= 1) core = max(core, __shfl_xor_sync(~0u, core, d));
        // The largest core of every cell above: a maximum does not depend on the order.
        if (lane == 0 && core > 0)
            for (u32 up = c; up != kNone; up = t.parent[up]) atomicMax((u64 *)f.cell_core + up, (u64)__double_as_longlong((double)core));
    }
}
// Launch: 128 threads, grid-stride over cells.
extern "C" __global__ void __launch_bounds__(128) fmm_p2m_f32(const __grid_constant__ Fmm f) { p2m<float>(f); }
extern "C" __global__ void __launch_bounds__(128) fmm_p2m_f64(const __grid_constant__ Fmm f) { p2m<double>(f); }
