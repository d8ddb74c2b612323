// M2L between the 27 largest cells of a periodic box in thirds (`in_thirds`), which have no parents.
//
// Enters: their multipoles. Leaves: of their local expansions what all sources in the near images of the box do that are not near the
// cell. A translation is the sum of those from all such images of a source cell, and depends on source - target. By reflections
// (fmm_m2l.cu) the 27 offsets without a negative component stand for all 125: M(σd) = S_σ M(d) S_σ.
#include "fmm_harmonics.cuh"
using namespace fmm;

constexpr int kThirds = 27, kWarpsOfRows = 4;

// Cells of level 2 by where they are: x + 3 y + 9 z.
__device__ inline void find_thirds(const Tree &t, const u32 *level_begin, u32 top, u32 *cell) {
    if (threadIdx.x < kThirds) cell[threadIdx.x] = kNone;
    __syncthreads();
    for (u32 c = level_begin[top] + threadIdx.x; c < level_begin[top + 1]; c += 32 * kWarpsOfRows) {
        int x[3];
        unmorton(t.cell_key[c], x);
        cell[x[0] + 3 * x[1] + 9 * x[2]] = c;
    }
}

// A warp makes one row of one component, of all 27 local expansions; its lanes share out the columns.
// Launch: 32 * kWarpsOfRows threads, a warp for each of stride * components.
template <class T> __device__ void m2l_box(const Fmm &f) {
    __shared__ u32 s_cell[2][kThirds];
    for (int k = 0; k < 2; k++) find_thirds(f.tree[k], f.state->level_begin[k], f.top, s_cell[k]);
    __syncthreads();
    const u32 item = blockIdx.x * kWarpsOfRows + threadIdx.x / 32, lane = threadIdx.x & 31, components = f.components, count = f.order * f.order;
    const u32 row = item / components, component = item % components;
    if (row >= f.stride) return;
    T sum[kThirds], from[kThirds];
#pragma unroll
    for (int c = 0; c < kThirds; c++) sum[c] = 0;
    const int class_of_row = class_of(row);
    // Rows beyond the last coefficient are zero.
    for (u32 first = 0; row < count && first < count; first += 32) {
        const u32 column = first + lane;
        const bool is = column < count;
        const int classes = is ? class_of_row ^ class_of(column) : 0;
#pragma unroll
        for (int s = 0; s < kThirds; s++) {
            const u32 cell = s_cell[0][s];
            from[s] = is && cell != kNone ? ((const T *)f.multipole)[((size_t)cell * components + component) * f.stride + column] : T(0);
        }
#pragma unroll
        for (int o = 0; o < kThirds; o++) {
            const int x = o % 3, y = o / 3 % 3, z = o / 9;
            // Nine entries on their way at a time: more have no registers.
            if (o % 9 == 0) read_later();
            const T entry = is ? ((const T *)f.box_operators)[((size_t)o * count + row) * count + column] : T(0);
#pragma unroll
            for (int sign = 0; sign < 8; sign++) {
                if ((sign & 1 && !x) || (sign & 2 && !y) || (sign & 4 && !z)) continue;
                const T signed_entry = __popc(classes & sign) & 1 ? -entry : entry;
                const int dx = sign & 1 ? -x : x, dy = sign & 2 ? -y : y, dz = sign & 4 ? -z : z;
#pragma unroll
                for (int c = 0; c < kThirds; c++) {
                    const int sx = c % 3 + dx, sy = c / 3 % 3 + dy, sz = c / 9 + dz;
                    if (sx < 0 || sx > 2 || sy < 0 || sy > 2 || sz < 0 || sz > 2) continue;
                    sum[c] += signed_entry * from[sx + 3 * sy + 9 * sz];
                }
            }
        }
    }
#pragma unroll
    for (int c = 0; c < kThirds; c++) {
        for (int d = 16; d; d >>= 1) sum[c] += __shfl_xor_sync(~0u, sum[c], d);
        const u32 cell = s_cell[1][c];
        if (lane == 0 && cell != kNone) ((T *)f.local)[((size_t)cell * components + component) * f.stride + row] = sum[c];
    }
}
extern "C" __global__ void __launch_bounds__(32 * kWarpsOfRows) fmm_m2l_box_f32(const __grid_constant__ Fmm f) { m2l_box<float>(f); }
extern "C" __global__ void __launch_bounds__(32 * kWarpsOfRows) fmm_m2l_box_f64(const __grid_constant__ Fmm f) { m2l_box<double>(f); }
