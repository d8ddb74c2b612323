// M2L between the largest cells of a periodic box, by tables that fmm_operators.cu makes: the 27 of level 2 of a box in thirds
// (`in_thirds`), which have no parents, or the 8 of level 1.
//
// Enters: their multipoles. Leaves: of their local expansions what sources in images of the box do. Of thirds these are all images that are not
// near the cell; of halves those that are not near the box, added to what M2L left of the others. Of charges all images that are not near the
// box are left out: their background has no local expansion (periodic.cu has them). A translation is the sum of those from all such images of
// a source cell, and depends on source - target. By reflections (fmm_m2l.cu) the offsets without a negative component stand for all:
// M(σd) = S_σ M(d) S_σ.
//
// A uniform background balances the net strength of a box: a source at y has the potential f |x - y|², f = 2π/(3V), which is not harmonic.
// For component c of a vector potential f (|x - y|² - 3 (x - y)_c²) is, and has the same curl; its constant has none.
#include "fmm_harmonics.cuh"
using namespace fmm;

constexpr int kWarpsOfRows = 4;

// The cells by where they are: x + SIDE (y + SIDE z).
template <int SIDE> __device__ inline void find_cells(const Tree &t, const u32 *level_begin, u32 top, u32 *cell) {
    if (threadIdx.x < SIDE * SIDE * SIDE) cell[threadIdx.x] = kNone;
    __syncthreads();
    for (u32 c = level_begin[top] + threadIdx.x; c < level_begin[top + 1]; c += 32 * kWarpsOfRows) {
        int x[3];
        unmorton(t.cell_key[c], x);
        cell[x[0] + SIDE * (x[1] + SIDE * x[2])] = c;
    }
}

// What the background adds to row `row` of component c of the local expansions: `linear` times the coordinate along `axis` of a cell's middle
// from that of the box, plus `constant`, lengths in sides of a cell. By a warp, which sums strengths and their first moments along the axis.
template <class T, int SIDE> struct Background {
    T linear = 0, constant = 0;
    int axis = 2;
    static __device__ T from_middle(int cell, int axis) { return T((axis == 0 ? cell : axis == 1 ? cell / SIDE : cell / (SIDE * SIDE)) % SIDE) - T(0.5) * (SIDE - 1); }
    __device__ T at(int cell) const { return linear * from_middle(cell, axis) + constant; }
    __device__ Background(const Fmm &f, const u32 *s_cell, u32 row, u32 c) {
        constexpr T kF = T(2 * 3.14159265358979323846 / (3 * SIDE * SIDE * SIDE));
        if (f.components != 3 || row == 0 || row > 8) return;
        const u32 lane = threadIdx.x & 31, cell = lane < SIDE * SIDE * SIDE ? s_cell[lane] : kNone;
        axis = row == 1 ? 2 : row == 2 ? 0 : 1;
        T net = 0, moment = 0;
        if (cell != kNone) {
            const T *m = (const T *)f.multipole + ((size_t)cell * 3 + c) * f.stride;
            net = m[0];
            moment = from_middle(lane, axis) * net + (axis == 2 ? m[1] : 2 * m[2 + axis]);
        }
        for (int d = 16; d; d >>= 1) { net += __shfl_xor_sync(~0u, net, d); moment += __shfl_xor_sync(~0u, moment, d); }
        if (row <= 3) {
            // Twice the slope is the coefficient of half a coordinate.
            const T part = (row == 1 ? 2 : 4) * kF * ((int)c == axis ? -2 : 1);
            linear = part * net; constant = -part * moment;
        }
        else if (row == 4) constant = (c == 2 ? -4 : 2) * kF * net;
        else if (row == 7 && c != 2) constant = (c == 0 ? -12 : 12) * kF * net;
    }
};

// A warp makes one row of one component, of all local expansions; its lanes share out the columns.
// Launch: 32 * kWarpsOfRows threads, a warp for each of stride * components.
template <class T, int SIDE> __device__ void m2l_box(const Fmm &f) {
    constexpr int kCells = SIDE * SIDE * SIDE, kFirst = SIDE == 3 ? 0 : 27;
    __shared__ u32 s_cell[2][kCells];
    for (int k = 0; k < 2; k++) find_cells<SIDE>(f.tree[k], f.state->level_begin[k], f.top, s_cell[k]);
    __syncthreads();
    const u32 item = blockIdx.x * kWarpsOfRows + threadIdx.x / 32, lane = threadIdx.x & 31, components = f.components, count = f.order * f.order;
    const u32 row = item / components, component = item % components;
    if (row >= f.stride) return;
    const T *table = (const T *)f.box_operators + (size_t)kFirst * count * count;
    T sum[kCells], from[kCells];
#pragma unroll
    for (int c = 0; c < kCells; c++) sum[c] = 0;
    const int class_of_row = class_of(row);
    // Rows beyond the last coefficient are zero.
    for (u32 first = 0; row < count && first < count; first += 32) {
        const u32 column = first + lane;
        const bool is = column < count;
        const int classes = is ? class_of_row ^ class_of(column) : 0;
#pragma unroll
        for (int s = 0; s < kCells; s++) {
            const u32 cell = s_cell[0][s];
            from[s] = is && cell != kNone ? ((const T *)f.multipole)[((size_t)cell * components + component) * f.stride + column] : T(0);
        }
#pragma unroll
        for (int o = 0; o < kCells; o++) {
            const int x = o % SIDE, y = o / SIDE % SIDE, z = o / (SIDE * SIDE);
            // Nine entries on their way at a time: more have no registers.
            if (o % 9 == 0) read_later();
            const T entry = is ? table[((size_t)o * count + row) * count + column] : T(0);
#pragma unroll
            for (int sign = 0; sign < 8; sign++) {
                if ((sign & 1 && !x) || (sign & 2 && !y) || (sign & 4 && !z)) continue;
                const T signed_entry = __popc(classes & sign) & 1 ? -entry : entry;
                const int dx = sign & 1 ? -x : x, dy = sign & 2 ? -y : y, dz = sign & 4 ? -z : z;
#pragma unroll
                for (int c = 0; c < kCells; c++) {
                    const int sx = c % SIDE + dx, sy = c / SIDE % SIDE + dy, sz = c / (SIDE * SIDE) + dz;
                    if (sx < 0 || sx >= SIDE || sy < 0 || sy >= SIDE || sz < 0 || sz >= SIDE) continue;
                    sum[c] += signed_entry * from[sx + SIDE * (sy + SIDE * sz)];
                }
            }
        }
    }
    const Background<T, SIDE> background(f, s_cell[0], row, component);
#pragma unroll
    for (int c = 0; c < kCells; c++) {
        for (int d = 16; d; d >>= 1) sum[c] += __shfl_xor_sync(~0u, sum[c], d);
        const u32 cell = s_cell[1][c];
        if (lane != 0 || cell == kNone) continue;
        T &to = ((T *)f.local)[((size_t)cell * components + component) * f.stride + row];
        to = (SIDE == 3 ? T(0) : to) + sum[c] + background.at(c);
    }
}
#define BOX(name, T, SIDE) \
    extern "C" __global__ void __launch_bounds__(32 * kWarpsOfRows) fmm_m2l_##name(const __grid_constant__ Fmm f) { m2l_box<T, SIDE>(f); }
BOX(thirds_f32, float, 3)
BOX(thirds_f64, double, 3)
BOX(halves_f32, float, 2)
BOX(halves_f64, double, 2)
