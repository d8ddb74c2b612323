// The translation operators as dense real matrices, computed once for an order and kept in the order in which the tensor
// units take them. Enters: which blocks of degrees are kept. Leaves: fragments of 8 x 8, see `entry` for the numbering.
//
// Real solid harmonics: R_lm = r^l P_lm(cos) e^{im phi}/(l+m)! = a_lm + i b_lm and I_lm = (l-m)! P_lm(cos) e^{im phi}/r^{l+1}
// (no Condon-Shortley phase), 1/|x-y| = sum conj(R_lm(y)) I_lm(x) over all m. Coefficient number l^2 is a_l0, l^2+2m-1 and l^2+2m
// are a_lm and b_lm. In this normalization translations and derivatives have no square roots:
//   M2L  1/|d-(y-t)| = sum (-1)^l conj(R_l'm'(y) R_lm(t)) I_{l+l',m+m'}(d)
//   M2M  R_lm(y+e) = sum R_l'm'(y) R_{l-l',m-m'}(e);  L2L is its transpose.
// All lengths are in sides of the cell whose expansion it is; a local expansion is stored times that side.
#include "fmm_mma.cuh"
using namespace fmm;

constexpr int kMaxDegree = 40, kHarmonicsMost = (kMaxDegree + 1) * (kMaxDegree + 2) / 2;

struct Complex { double c, s; };

// By all threads of a block of 256.
__device__ inline void clear(Complex *h) {
    for (int k = threadIdx.x; k < kHarmonicsMost; k += 256) h[k] = {0, 0};
    __syncthreads();
}

// H of negative m: H_{l,-m} = (-1)^m conj(H_lm).
__device__ inline Complex at(const Complex *h, int l, int m) {
    const int k = m < 0 ? -m : m;
    if (k > l || l < 0) return {0, 0};
    Complex v = h[l * (l + 1) / 2 + k];
    if (m < 0) { v.s = -v.s; if (k & 1) { v.c = -v.c; v.s = -v.s; } }
    return v;
}

// Adds I_lm of one m and all degrees to `h`.
__device__ void add_irregular(Complex *h, int m, double x, double y, double z, int degree) {
    const double r2 = x * x + y * y + z * z;
    Complex d{1 / sqrt(r2), 0};
    for (int i = 0; i < m; i++) {
        const double k = (2 * i + 1) / r2;
        d = {k * (x * d.c - y * d.s), k * (x * d.s + y * d.c)};
    }
    Complex p{0, 0}, q = d;
    for (int l = m; l <= degree; l++) {
        Complex &sum = h[l * (l + 1) / 2 + m];
        sum = {sum.c + q.c, sum.s + q.s};
        const double u = (2 * l + 1) * z / r2, v = (double)(l * l - m * m) / r2;
        const Complex next{u * q.c - v * p.c, u * q.s - v * p.s};
        p = q; q = next;
    }
}

__device__ void regular(Complex *h, double x, double y, double z, int degree) {
    const double r2 = x * x + y * y + z * z;
    Complex d{1, 0};
    for (int m = 0; m <= degree; m++) {
        Complex p{0, 0}, q = d;
        for (int l = m; l <= degree; l++) {
            h[l * (l + 1) / 2 + m] = q;
            const double k = 1.0 / ((l + 1) * (l + 1) - m * m), u = (2 * l + 1) * z * k, v = r2 * k;
            const Complex next{u * q.c - v * p.c, u * q.s - v * p.s};
            p = q; q = next;
        }
        const double k = 0.5 / (m + 1);
        d = {k * (x * d.c - y * d.s), k * (x * d.s + y * d.c)};
    }
}

__device__ inline void split(int index, int *l, int *m, int *sine) {
    int d = (int)sqrt((double)index);
    while (d * d > index) d--;
    while ((d + 1) * (d + 1) <= index) d++;
    const int k = index - d * d;
    *l = d; *m = (k + 1) / 2; *sine = k && !(k & 1);
}

// Row `to`, column `from` of M2L.
__device__ double m2l_entry(const Complex *h, int to, int from) {
    int l, m, b, l1, m1, b1;
    split(to, &l, &m, &b); split(from, &l1, &m1, &b1);
    const Complex plus = at(h, l + l1, m + m1), minus = at(h, l + l1, m - m1);
    const double sign = m1 & 1 ? -1 : 1;
    double v = !b && !b1 ? plus.c + sign * minus.c : b && b1 ? sign * minus.c - plus.c : !b ? plus.s - sign * minus.s : plus.s + sign * minus.s;
    v *= 2 * (m ? 1 : 0.5) * (m1 ? 1 : 0.5);
    return l & 1 ? -v : v;
}

// Row `to`, column `from` of M2M for the child's unit: R(y/2 + e).
__device__ double m2m_entry(const Complex *h, int to, int from) {
    int l, m, b, l1, m1, b1;
    split(to, &l, &m, &b); split(from, &l1, &m1, &b1);
    if (l1 > l) return 0;
    const Complex minus = at(h, l - l1, m - m1), plus = at(h, l - l1, m + m1);
    const double sign = !m1 ? 0 : m1 & 1 ? -1 : 1;
    const double v = !b && !b1 ? minus.c + sign * plus.c : !b ? sign * plus.s - minus.s : !b1 ? minus.s + sign * plus.s : minus.c - sign * plus.c;
    return ldexp(v, -l1);
}

// Writes entry (to, from) of an operator into its fragment. `parts` 0: doubles; 1: floats rounded to TF32; 2: floats as a
// TF32 number and the TF32 of what it lacks.
__device__ inline void put(void *out, u32 parts, size_t fragment, int lane, int e, double v) {
    if (parts == 0) ((double *)out)[fragment * 64 + lane * 2 + e] = v;
    else if (parts == 1) ((float *)out)[fragment * 64 + lane * 2 + e] = to_tf32((float)v);
    else {
        const float high = to_tf32((float)v);
        ((float *)out)[fragment * 128 + lane * 4 + e] = high;
        ((float *)out)[fragment * 128 + lane * 4 + 2 + e] = to_tf32((float)(v - high));
    }
}

// M2L of the orbits (for target - source with no negative component), then M2M and L2L of octant 7.
// Launch: a block of 256 threads for each of kMaxOrbits + 2 operators.
extern "C" __global__ void __launch_bounds__(256) fmm_operators(const __grid_constant__ Fmm f, void *out, u32 tiles, u32 parts) {
    __shared__ Complex h[kHarmonicsMost];
    const int op = (int)blockIdx.x - kMaxOrbits, count = f.order * f.order;
    const bool m2l = op < 0;
    if (m2l && blockIdx.x >= f.m2l[kOrbitCount]) return;
    clear(h);
    const u32 orbit = m2l ? f.m2l[blockIdx.x] : 0, degree = 2 * f.order - 2;
    if (m2l && threadIdx.x <= degree) add_irregular(h, threadIdx.x, orbit & 15, orbit >> 4 & 15, orbit >> 8 & 15, degree);
    if (!m2l && threadIdx.x == 0) regular(h, 0.25, 0.25, 0.25, f.order - 1);
    __syncthreads();
    const bool up = op == 0;
    for (u32 j = 0; j < (m2l ? 64 : up ? f.op[kSortedTiles] : 8 * tiles); j++) {
        int steps, begin = 0;
        size_t start, apart = 1; // fragments from one step to the next
        if (m2l) {
            const u32 *head = f.m2l + kHeads + (blockIdx.x * 8 + j / 8) * 2;
            apart = f.m2l[kSlots]; start = head[0] + j % 8;
            steps = j % 8 < apart ? (int)(head[1] >> kHeadBits * (j % 8) & ((1u << kHeadBits) - 1)) - (int)kHeadBias : 0;
        } else {
            const u32 head = f.op[(up ? kUpHead : kDownHead) + j];
            steps = head & 63; start = head >> 6;
            if (!up) begin = (int)f.op[kClassEnd + j % 8] - steps;
        }
        for (int w = threadIdx.x; w < steps * 64; w += 256) {
            const int lane = w % 64 / 2, e = w & 1, step = w / 64;
            const int row = (begin + step) * 8 + lane % 4 + 4 * e, column = lane / 4;
            const int from = m2l || up ? row : (int)f.op[kSortedColumn + row];
            const int to = m2l ? (int)f.m2l[kColumns + j * 8 + column] : up ? (int)f.op[kSortedColumn + j * 8 + column] : (int)j / 8 * 8 + column;
            double v = 0;
            if (from >= 0 && from < count && to >= 0 && to < count) v = m2l ? m2l_entry(h, to, from) : up ? m2m_entry(h, to, from) : 0.5 * m2m_entry(h, from, to);
            put(out, parts, start + step * apart, lane, e, v);
        }
    }
}

// Periodic boxes: M2L between their largest cells, `side` along a side: the 27 of level 2 of a box in thirds, or the 8 of level 1. For
// source - target with no negative component. Sources are in images of the box: those that are not among the 33 near ones, where `lattice`
// is given, and of thirds those near ones that are not near the target cell.
//
// out: a table for thirds and one for halves, each [offset][order²][order²] T, rows of `to`.
//
// Images at most kShell periods away are summed one by one. Those beyond have the sums of their irregular harmonics about a lattice point, in
// periods, up to kLatticeDegree, only those of even degree and even m, which are real: I_lm(3R - o) = sum conj(R_l'm'(o)) I_{l+l',m+m'}(3R).
constexpr int kShell = 4, kLatticeDegree = 46;

__device__ inline double lattice_sum(const double *lattice, int l, int m) {
    const int half = l / 2, k = m < 0 ? -m : m;
    return l % 2 || k % 2 || k > l ? 0 : lattice[half * (half + 1) / 2 + k / 2];
}

// Adds the images that are not near. By all threads of a block of 256.
__device__ void add_far_images(Complex *h, Complex *r, const double *lattice, int side, const int *o, int degree) {
    if ((int)threadIdx.x <= degree)
        for (int k = 0; k < (2 * kShell + 1) * (2 * kShell + 1) * (2 * kShell + 1); k++) {
            constexpr int n = 2 * kShell + 1;
            const int x = k % n - kShell, y = k / n % n - kShell, z = k / (n * n) - kShell;
            if (is_near(x, y, z) || x * x + y * y + z * z > kShell * kShell) continue;
            add_irregular(h, threadIdx.x, -(o[0] + side * x), -(o[1] + side * y), -(o[2] + side * z), degree);
        }
    if (threadIdx.x == 0) regular(r, (double)o[0] / side, (double)o[1] / side, (double)o[2] / side, kLatticeDegree);
    __syncthreads();
    for (int k = threadIdx.x; k < (degree + 1) * (degree + 2) / 2; k += 256) {
        int l = 0;
        while ((l + 1) * (l + 2) / 2 <= k) l++;
        const int m = k - l * (l + 1) / 2;
        Complex sum{0, 0};
        for (int l1 = l % 2; l + l1 <= kLatticeDegree; l1 += 2)
            for (int m1 = -l1 + (l1 + m) % 2; m1 <= l1; m1 += 2) {
                const Complex v = at(r, l1, m1);
                const double w = lattice_sum(lattice, l + l1, m + m1);
                sum = {sum.c + v.c * w, sum.s - v.s * w};
            }
        const double unit = pow((double)side, -(l + 1));
        h[k] = {h[k].c + unit * sum.c, h[k].s + unit * sum.s};
    }
    __syncthreads();
}

// Launch: a block of 256 threads for each offset, of thirds, then of halves.
template <class T> __device__ void make_box_operator(const Fmm &f, const double *lattice, T *out) {
    constexpr int kThirds = 27;
    __shared__ Complex h[kHarmonicsMost], r[(kLatticeDegree + 1) * (kLatticeDegree + 2) / 2];
    const bool thirds = blockIdx.x < kThirds;
    const int side = thirds ? 3 : 2, number = thirds ? blockIdx.x : blockIdx.x - kThirds, count = f.order * f.order, degree = 2 * f.order - 2;
    const int o[3] = {number % side, number / side % side, number / (side * side)};
    clear(h);
    if (thirds && (int)threadIdx.x <= degree)
        for (int image = 0; image < kBeside; image++) {
            int n[3];
            beside(image, n);
            const int x = o[0] + 3 * n[0], y = o[1] + 3 * n[1], z = o[2] + 3 * n[2];
            if (!is_near(x, y, z)) add_irregular(h, threadIdx.x, -x, -y, -z, degree);
        }
    if (lattice) add_far_images(h, r, lattice, side, o, degree);
    __syncthreads();
    T *to = out + (size_t)blockIdx.x * count * count;
    for (int w = threadIdx.x; w < count * count; w += 256) to[w] = (T)m2l_entry(h, w / count, w % count);
}
extern "C" __global__ void __launch_bounds__(256) fmm_box_operators_f32(const __grid_constant__ Fmm f, const double *lattice, float *out) { make_box_operator(f, lattice, out); }
extern "C" __global__ void __launch_bounds__(256) fmm_box_operators_f64(const __grid_constant__ Fmm f, const double *lattice, double *out) { make_box_operator(f, lattice, out); }
