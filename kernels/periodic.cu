// Periodic domains: positions brought into the domain, near images as sources of their own, multipoles of all sources, and the field of all
// images that are not near.
//
// The middle of the domain is at zero. Positions and periods are multiples of a step, 2^-49 of the power of two above the largest side, so
// that sums of them are exact: a target on an image of a source is at distance zero.
#include "fmm_check.cuh"
#include "positions.cuh"
#include "periodic.cuh"
using namespace fmm;

// What positions are moved by: `Domain` of src/backend/cuda/domain.rs.
struct Domain {
    double period[3];   // a multiple of the step; 0: open
    double rounding[3]; // the period as given less that
    double middle[3];   // a multiple of the step
    double step;
};

// v as a multiple of the step, a power of two.
WFMM_DEVICE double stepped(double v, double step) { return fabs(v) < 0x1p52 * step ? rint(v / step) * step : v; }

// From so many periods on a move counts the rounding of each of them.
constexpr double kManyPeriods = 64;

// A coordinate of the caller's along axis c, from the middle.
WFMM_DEVICE double from_middle(double x, int c, const Domain &d) { return stepped(x, d.step) - d.middle[c]; }

// Periods along axis c by which x from the middle is outside.
WFMM_DEVICE double periods_outside(double x, int c, const Domain &d) { return d.period[c] > 0 ? rint(x / d.period[c]) : 0; }

// x, a multiple of the step, so many periods farther. The rounding counts by the position's own distance, so that a target and the end
// of a segment that are one position are whole periods apart wherever the segment is taken.
WFMM_DEVICE double moved(double x, double by, int c, const Domain &d) {
    const double own = -periods_outside(x, c, d), inside = fma(by, d.period[c], x);
    return fabs(own) < kManyPeriods ? inside : inside + stepped(own * d.rounding[c], d.step);
}

// Launch: any; n numbers, three a position.
WFMM_KERNEL periodic_positions(Reals from, double *to, long long n, const __grid_constant__ Domain d) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int c = (int)(i % 3);
    const double x = from_middle(read(from, i), c, d);
    to[i] = moved(x, -periods_outside(x, c, d), c, d);
}

// Segments, with two points of their own each, are moved by their middle and stay whole. `longest`: bits of the largest length.
// Launch: any; n segments.
WFMM_KERNEL periodic_segments(Reals points, const int *connectivity, long long ld, int base, double *to, int *ends, long long n, const __grid_constant__ Domain d, unsigned long long *longest) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const long long a = 3ll * (connectivity[ld * i] - base), b = 3ll * (connectivity[ld * i + 1] - base);
    double length2 = 0;
    for (int c = 0; c < 3; c++) {
        const double x = from_middle(read(points, a + c), c, d), y = from_middle(read(points, b + c), c, d);
        const double by = -periods_outside(0.5 * x + 0.5 * y, c, d);
        to[6 * i + c] = moved(x, by, c, d); to[6 * i + 3 + c] = moved(y, by, c, d);
        length2 += (y - x) * (y - x);
    }
    ends[2 * i] = (int)(2 * i); ends[2 * i + 1] = (int)(2 * i + 1);
    const double length = sqrt(length2);
    if (length < INFINITY && length > 0) atomicMax(longest, (unsigned long long)__double_as_longlong(length));
}

// Bits of the largest of n numbers that are not negative, and behind them the complement of those of the least. Launch: any.
WFMM_KERNEL periodic_extremes(Reals from, long long n, unsigned long long *extremes) {
    double most = 0, least = INFINITY;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
        const double v = read(from, i);
        if (v < INFINITY) { most = fmax(most, v); least = fmin(least, fmax(v, 0.0)); }
    }
    for (int d = 16; d; d >>= 1) {
        most = fmax(most, __shfl_xor_sync(~0u, most, d));
        least = fmin(least, __shfl_xor_sync(~0u, least, d));
    }
    if ((threadIdx.x & 31) != 0) return;
    if (most > 0) atomicMax(extremes, (unsigned long long)__double_as_longlong(most));
    atomicMax(extremes + 1, ~(unsigned long long)__double_as_longlong(least));
}

// Rows of `width` numbers and after them their images, each moved by a vector (the first one's is zero). Launch: any; n rows.
WFMM_KERNEL periodic_image_positions(const double *from, long long n, const double *shift, int images, double *to) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= 3 * n) return;
    for (int i = 0; i < images; i++) to[(long long)i * 3 * n + k] = from[k] + shift[3 * i + k % 3];
}
// The same numbers for every image. Launch: any; n numbers.
WFMM_KERNEL periodic_image_numbers(Reals from, long long n, int images, double *to) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    for (int i = 0; i < images; i++) to[i * n + k] = read(from, k);
}
// Points 0, 1, 2, ... Launch: any; n points.
WFMM_KERNEL periodic_ends(int *to, long long n) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k < n) to[k] = (int)k;
}

// Multipoles about zero in a unit of length: Σ q R_lm of `C` components, and of charges Σ q |x|² and Σ |q| behind them.
constexpr int kMomentThreads = 128, kTogether = 8, kMostOrder = 32;
constexpr int kMostPairs = kMostOrder * (kMostOrder + 1) / 2;

// What the sources are: points with `C` strengths, or (SEGMENTS) nodes along segments [n][2][3].
template <int C, bool SEGMENTS> __device__ void moments(const double *position, const Reals &strength, const double *gauss, int nodes, long long n, int order, double per_unit, const double *steps, double *partial) {
    constexpr int kShare = kMomentThreads / (2 * kTogether); // threads of a sum
    // Rows are so far apart that half a warp reads from different banks.
    __shared__ double s_value[2 * kTogether][kMomentThreads + 8], s_strength[C][kMomentThreads], s_sum[kMostPairs * 2 * C];
    __shared__ double s_square[kMomentThreads / 32], s_size[kMomentThreads / 32];
    const int tid = threadIdx.x, pairs = far_column(order, order), numbers = 2 * C * pairs;
    for (int k = tid; k < numbers; k += kMomentThreads) s_sum[k] = 0;
    double square = 0, size = 0;
    for (long long first = blockIdx.x * (long long)kMomentThreads; first < n * nodes; first += (long long)gridDim.x * kMomentThreads) {
        const long long at = first + tid;
        double x[3] = {0, 0, 0}, q[C] = {};
        if (at < n * nodes) {
            const long long i = SEGMENTS ? at / nodes : at;
            if constexpr (SEGMENTS) {
                const int node = (int)(at - i * nodes);
                const double w = 0.5 * gauss[16 + node] * read(strength, i);
                for (int c = 0; c < 3; c++) {
                    const double a = position[6 * i + c], b = position[6 * i + 3 + c];
                    x[c] = (0.5 * (a + b) + 0.5 * gauss[node] * (b - a)) * per_unit;
                    q[c] = w * (b - a);
                }
                // A segment without length has no field, whatever its circulation.
                if (q[0] == 0 && q[1] == 0 && q[2] == 0) for (int c = 0; c < 3; c++) x[c] = 0;
            } else {
                for (int c = 0; c < 3; c++) x[c] = position[3 * i + c] * per_unit;
                for (int c = 0; c < C; c++) q[c] = read(strength, C * i + c);
            }
        }
        const double r2 = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
        square += q[0] * r2;
        size += fabs(q[0]);
        __syncthreads();
        for (int c = 0; c < C; c++) s_strength[c][tid] = q[c];
        double dc = 1, ds = 0;
        for (int m = 0; m < order; m++) {
            double pc = 0, ps = 0, qc = dc, qs = ds;
            for (int l0 = m; l0 < order; l0 += kTogether) {
                const int some = min(kTogether, order - l0);
                const double *step = steps + 2 * (far_column(order, m) + l0 - m);
                __syncthreads();
                for (int k = 0; k < some; k++) {
                    s_value[2 * k][tid] = qc; s_value[2 * k + 1][tid] = qs;
                    const double u = step[2 * k] * x[2], v = step[2 * k + 1] * r2, nc = fma(u, qc, -(v * pc)), ns = fma(u, qs, -(v * ps));
                    pc = qc; ps = qs; qc = nc; qs = ns;
                }
                __syncthreads();
                // A sum over the sources by some neighbouring threads.
                const int row = tid / kShare;
                double sum[C] = {};
                if (row < 2 * some)
#pragma unroll 4
                    for (int s = tid % kShare; s < kMomentThreads; s += kShare) {
                        const double v = s_value[row][s];
#pragma unroll
                        for (int c = 0; c < C; c++) sum[c] = fma(v, s_strength[c][s], sum[c]);
                    }
#pragma unroll
                for (int c = 0; c < C; c++) {
                    for (int d = kShare / 2; d; d /= 2) sum[c] += __shfl_xor_sync(~0u, sum[c], d);
                    if (row < 2 * some && tid % kShare == 0) s_sum[(2 * (far_column(order, m) + l0 - m) + row) * C + c] += sum[c];
                }
            }
            const double k = 0.5 / (m + 1), next = k * (x[0] * dc - x[1] * ds);
            ds = k * (x[0] * ds + x[1] * dc); dc = next;
        }
    }
    for (int d = 16; d; d >>= 1) { square += __shfl_xor_sync(~0u, square, d); size += __shfl_xor_sync(~0u, size, d); }
    if (tid % 32 == 0) { s_square[tid / 32] = square; s_size[tid / 32] = size; }
    __syncthreads();
    double *out = partial + (size_t)blockIdx.x * (numbers + 2);
    for (int k = tid; k < numbers; k += kMomentThreads) out[k] = s_sum[k];
    if (tid == 0) {
        double squares = 0, sizes = 0;
        for (int w = 0; w < kMomentThreads / 32; w++) { squares += s_square[w]; sizes += s_size[w]; }
        out[numbers] = squares; out[numbers + 1] = sizes;
    }
}
// Launch: 128 threads, a row of `partial` a block.
extern "C" __global__ void __launch_bounds__(kMomentThreads) periodic_moments_charges(const double *position, Reals strength, const double *gauss, int nodes, long long n, int order, double per_unit, const double *steps, double *partial) {
    moments<1, false>(position, strength, gauss, nodes, n, order, per_unit, steps, partial);
}
extern "C" __global__ void __launch_bounds__(kMomentThreads) periodic_moments_particles(const double *position, Reals strength, const double *gauss, int nodes, long long n, int order, double per_unit, const double *steps, double *partial) {
    moments<3, false>(position, strength, gauss, nodes, n, order, per_unit, steps, partial);
}
extern "C" __global__ void __launch_bounds__(kMomentThreads) periodic_moments_segments(const double *position, Reals strength, const double *gauss, int nodes, long long n, int order, double per_unit, const double *steps, double *partial) {
    moments<3, true>(position, strength, gauss, nodes, n, order, per_unit, steps, partial);
}
// The sums of all blocks, in order. Launch: any; so many numbers.
WFMM_KERNEL periodic_add_rows(const double *partial, int rows, int numbers, double *to) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= numbers) return;
    double sum = 0;
    for (int r = 0; r < rows; r++) sum += partial[(size_t)r * numbers + k];
    to[k] = sum;
}

// A coefficient of an expansion: of cosine and of sine.
struct Pair { double c, s; };

// Coefficients of the derivative of Σ (c a_lm + s b_lm) along an axis, from those that `at(l, m)` gives, zero where there are none:
// ∂x R_lm = (R_{l-1,m-1} - R_{l-1,m+1}) / 2, ∂y R_lm = i (R_{l-1,m-1} + R_{l-1,m+1}) / 2, ∂z R_lm = R_{l-1,m}.
template <class At> __device__ inline Pair slope(const At &at, int axis, int l, int m) {
    if (axis == 2) return at(l + 1, m);
    const Pair above = at(l + 1, m + 1), below = m > 0 ? at(l + 1, m - 1) : Pair{0, 0};
    // Column 0 stands for itself, each other for two.
    const double first = m == 1 ? 1 : 0.5;
    if (axis == 0) return {0.5 * above.c - first * below.c, m > 0 ? 0.5 * (above.s - below.s) : 0};
    return {0.5 * (above.s + below.s), m > 0 ? -0.5 * above.c - first * below.c : 0};
}

// The coefficient of (l, m) that `x` times the coordinate along an axis has.
__device__ inline Pair linear(double x, int axis, int l, int m) {
    if (l != 1 || m != (axis != 2)) return {0, 0};
    return axis == 2 ? Pair{x, 0} : axis == 0 ? Pair{2 * x, 0} : Pair{0, 2 * x};
}

// The pair (l, m) that is number k, column by column.
__device__ inline void pair_at(int order, int k, int &l, int &m) {
    m = 0;
    while (k >= far_column(order, m + 1)) m++;
    l = m + k - far_column(order, m);
}

// The potential of all images that are not near, a local expansion about the middle, from the multipoles M of all sources about the same point:
// B_lm = (-1)^l Σ conj(M_nq) λ_{l+n,m+q}. `lattice`: λ of even degree and even m, that of l, m at l/2 (l/2 + 1)/2 + m/2. The background that
// balances a net strength has the potential f |x - y|² of a source at y, of which the part with |x|² is left to the rows.
// Launch: any; a thread for each pair of each component.
WFMM_KERNEL periodic_local(const double *moments, int order, const double *lattice, double unit, double f, int charges, double *local) {
    const int components = charges ? 1 : 3, pairs = far_column(order, order), k = blockIdx.x * blockDim.x + threadIdx.x, c = k / pairs;
    if (c >= components) return;
    const auto moment = [&](int n, int q) {
        const double *at = moments + 2 * (far_column(order, q) + n - q) * components + c;
        return Pair{at[0], at[components]};
    };
    int l, m;
    pair_at(order, k % pairs, l, m);
    Pair sum{0, 0};
    for (int n = l % 2; n < order; n += 2) {
        const int half = (n + l) / 2;
        const double *row = lattice + half * (half + 1) / 2;
        for (int q = -n + (n + m) % 2; q <= n; q += 2) {
            const Pair v = moment(n, abs(q));
            const double w = row[abs(m + q) / 2] * (q < 0 && q % 2 ? -1 : 1);
            // conj(M) of q; M of -q is (-1)^q conj(M) of q.
            sum.c = fma(w, v.c, sum.c);
            sum.s = fma(q < 0 ? w : -w, v.s, sum.s);
        }
    }
    const double factor = (l % 2 ? -1 : 1) * (m ? 2 : 1), background = -2 * f * unit * unit;
    Pair to{factor * sum.c, m ? factor * sum.s : 0};
    // Of the background's |x - y|² the product of both, and |y|².
    if (l == 1) {
        const Pair v = moment(1, m);
        to = {to.c + background * (m ? 4 : 1) * v.c, m ? to.s + background * 4 * v.s : 0};
    }
    if (charges && l == 0) to.c += f * unit * unit * moments[2 * pairs];
    ((Pair *)local)[k] = to;
}

// Rows of the field of the same images (periodic.cuh). Launch: any; a thread for each pair, and for each pair and field.
WFMM_KERNEL periodic_rows(const double *moments, const double *from, int order, const double *steps, double unit, double f, int charges, int gradient, double *rows) {
    const int pairs = far_column(order, order), main = charges ? 1 : 3, fields = main * (gradient && !charges ? 4 : 1) + (gradient && charges ? 3 : 0), width = 2 + 2 * fields;
    const int k = blockIdx.x * blockDim.x + threadIdx.x, pair = k % pairs, field = k / pairs - 1;
    if (field >= fields) return;
    const auto local = [&](int c, int l, int m) { return l < order && m <= l ? ((const Pair *)from)[c * pairs + far_column(order, m) + l - m] : Pair{0, 0}; };
    const auto net = [&](int c) { return 2 * f * moments[c] * unit; };
    const auto potential = [&](int l, int m) { return local(0, l, m); };
    // The curl; the background's f |x|² a has the curl 2 f x × a.
    const auto velocity = [&](int i, int l, int m) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        if (l >= order || m > l) return Pair{0, 0};
        const Pair a = slope([&](int l, int m) { return local(k, l, m); }, j, l, m), b = slope([&](int l, int m) { return local(j, l, m); }, k, l, m);
        const Pair x = linear(net(k), j, l, m), y = linear(net(j), k, l, m);
        return Pair{(a.c - b.c) / unit + x.c - y.c, (a.s - b.s) / unit + x.s - y.s};
    };
    int l, m;
    pair_at(order, pair, l, m);
    Pair v;
    if (field < 0) v = {steps[2 * pair], steps[2 * pair + 1]};
    else if (charges && field == 0) v = potential(l, m);
    else if (charges) {
        const Pair a = slope(potential, field - 1, l, m), x = linear(net(0), field - 1, l, m);
        v = {a.c / unit + x.c, a.s / unit + x.s};
    }
    else if (field < 3) v = velocity(field, l, m);
    else {
        v = slope([&](int l, int m) { return velocity((field - 3) / 3, l, m); }, (field - 3) % 3, l, m);
        v = {v.c / unit, v.s / unit};
    }
    double *to = rows + kFarHead + pair * width + 2 * (field + 1);
    to[0] = v.c; to[1] = v.s;
    if (k > 0) return;
    rows[0] = charges ? f * moments[0] * unit * unit : 0;
    rows[1] = 1 / unit;
}

__device__ inline void add_number(const Reals &to, size_t at, double v) {
    if (to.is_f64) ((double *)to.address)[at] += v;
    else { float *x = (float *)to.address + at; *x = (float)(*x + v); }
}

__device__ inline void read_position(const double *from, long long i, double *x) {
    for (int d = 0; d < 3; d++) x[d] = from[3 * i + d];
}

// Adds the images' field at n positions, or at those with the numbers `picked`. Launch: any.
template <int MAIN, int REST> __device__ void add_to_field(const double *rows, int order, const double *position, const u32 *picked, long long n, double factor, const Reals &main, const Reals &rest) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v[1][MAIN + REST] = {}, x[1][3];
    read_position(position, picked ? (long long)picked[i] : i, x[0]);
    far_field(rows, order, order, x, v);
    for (int k = 0; k < MAIN; k++) add_number(main, (size_t)i * MAIN + k, factor * v[0][k]);
    for (int k = 0; k < REST; k++) add_number(rest, (size_t)i * REST + k, factor * v[0][MAIN + k]);
}

// The same at the sampled targets of a check. Launch: a warp a target; a lane has a column of harmonics.
template <int MAIN, int REST> __device__ void add_to_exact(const Fmm &f, const Check &c) {
    static_assert(kMostOrder <= 32, "a column a lane");
    const u32 k = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (k >= c.samples) return;
    double v[MAIN + REST], x[3], *to = c.exact + ((size_t)c.slot * c.samples + k) * 12;
    read_position((const double *)f.tree[1].x, c.at[k], x);
    far_field_of_column(f.far_rows, f.far_order, lane, x, v);
    for (int i = 0; i < MAIN + REST; i++) {
        for (int d = 16; d; d >>= 1) v[i] += __shfl_xor_sync(~0u, v[i], d);
        if (lane == 0) to[i] += f.normalization * v[i];
    }
}

// The same at all targets, beside the near field. Launch: any; x: threads for half of the sorted targets; y: 2 where near sources of a leaf
// may be summed in parts, which lie behind the field and are read in its place (the first of them gets it as well), else 1.
template <class T, int MAIN, int REST> __device__ void add_to_near(const Fmm &f) {
    // With gradients a second target has no registers.
    constexpr int F = MAIN + REST, K = F < 12 ? 2 : 1;
    if (f.state->flags) return;
    const u32 n = f.tree[1].n, threads = gridDim.x * blockDim.x;
    const double scale = f.state->root.scale, unit = 1 / (f.kind == kParticle ? scale * scale : scale);
    for (u32 first = blockIdx.x * blockDim.x + threadIdx.x; first < n; first += K * threads) {
        double v[K][F] = {}, x[K][3];
        for (int k = 0; k < K; k++) read_position((const double *)f.tree[1].x, f.tree[1].order[min(first + k * threads, n - 1)], x[k]);
        far_field(f.far_rows, f.far_order, f.far_used, x, v);
#pragma unroll
        for (int k = 0; k < K; k++) {
            const u32 i = first + k * threads;
            if (i >= n) break;
            T *to = (T *)f.field + ((size_t)blockIdx.y * n + i) * f.fields;
            for (int c = 0; c < MAIN; c++) to[c] += (T)(unit * v[k][c]);
            for (int c = 0; c < REST; c++) to[MAIN + c] += (T)(unit / scale * v[k][MAIN + c]);
        }
    }
}

#define FIELDS(name, MAIN, REST) \
    extern "C" __global__ void __launch_bounds__(128) periodic_add_##name(const double *rows, int order, const double *position, const u32 *picked, long long n, double factor, Reals main, Reals rest) { add_to_field<MAIN, REST>(rows, order, position, picked, n, factor, main, rest); } \
    extern "C" __global__ void __launch_bounds__(128) periodic_exact_##name(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { add_to_exact<MAIN, REST>(f, c); } \
    extern "C" __global__ void __launch_bounds__(128) periodic_near_##name##_f32(const __grid_constant__ Fmm f) { add_to_near<float, MAIN, REST>(f); } \
    extern "C" __global__ void __launch_bounds__(128) periodic_near_##name##_f64(const __grid_constant__ Fmm f) { add_to_near<double, MAIN, REST>(f); }
FIELDS(velocity, 3, 0)
FIELDS(gradient, 3, 9)
FIELDS(potential, 1, 0)
FIELDS(force, 1, 3)
