// Narrower cores of a flow whose state lies in device memory: sums of Gaussians over cells of neighbours, and what a solver and the
// conservation of total and moment need beside them. Double precision; the formulas are those of src/flow/gaussians.rs and
// src/flow/narrow.rs. Sums over all particles are those of a fixed number of blocks, added up in their order: every run gives
// the same bits. Particles without a core take no part. Blocks have kBlock threads unless said, the grid sweeps.
#include <cuda_runtime.h>
#include "gaussians_args.cuh"
#include "scan.cuh"

using namespace gaussians;

typedef unsigned long long Word;

constexpr int kBlock = 256;
constexpr int kWarps = kBlock / 32;
constexpr int kDigits = 256;
constexpr unsigned kAll = ~0u;

WFMM_DEVICE long long thread() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
WFMM_DEVICE long long threads() { return gridDim.x * (long long)blockDim.x; }
WFMM_DEVICE Vec<double> row(const double* x, long long k) { return {x[3 * k], x[3 * k + 1], x[3 * k + 2]}; }
WFMM_DEVICE double norm(Vec<double> a) { return sqrt(dot(a, a)); }
WFMM_DEVICE double& at(Vec<double>& a, long long i) { return i == 0 ? a.x : i == 1 ? a.y : a.z; }

// ---- Numbers of all particles. -----------------------------------------------------------------------------------------

WFMM_DEVICE double joined(double a, double b, bool is_sum) { return is_sum ? a + b : fmax(a, b); }

WFMM_DEVICE double of_warp(double x, bool is_sum) {
    for (int by = 16; by > 0; by /= 2) x = joined(x, __shfl_xor_sync(kAll, x, by), is_sum);
    return x;
}

// The sums, or the largest, of a block's numbers to its row of `partial`. All threads of the block.
template <int N> WFMM_DEVICE void of_block(const double (&x)[N], double* partial, bool is_sum = true) {
    __shared__ double s_x[kWarps][N];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < N; i++) {
        const double all = of_warp(x[i], is_sum);
        if (lane == 0) s_x[warp][i] = all;
    }
    __syncthreads();
    if (threadIdx.x >= N) return;
    double all = s_x[0][threadIdx.x];
    for (int w = 1; w < kWarps; w++) all = joined(all, s_x[w][threadIdx.x], is_sum);
    partial[blockIdx.x * N + threadIdx.x] = all;
}

// The same of `blocks` rows of `width` numbers. One block.
WFMM_KERNEL gaussians_total(const double* partial, int blocks, int width, int is_sum, double* total) {
    const int lane = threadIdx.x % 32;
    for (int i = threadIdx.x / 32; i < width; i += kWarps) {
        double all = is_sum ? 0.0 : -INFINITY;
        for (int b = lane; b < blocks; b += 32) all = joined(all, partial[b * width + i], is_sum);
        all = of_warp(all, is_sum);
        if (lane == 0) total[i] = all;
    }
}

// Largest coordinates, largest negative ones, largest squared core.
WFMM_KERNEL gaussians_bounds(const double* x, const double* core2, long long n, double* partial) {
    double most[7];
    for (int i = 0; i < 7; i++) most[i] = -INFINITY;
    for (long long k = thread(); k < n; k += threads()) {
        if (!(core2[k] > 0)) continue;
        for (int i = 0; i < 3; i++) most[i] = fmax(most[i], x[3 * k + i]), most[3 + i] = fmax(most[3 + i], -x[3 * k + i]);
        most[6] = fmax(most[6], core2[k]);
    }
    of_block(most, partial, false);
}

// Σ a b of n numbers.
WFMM_KERNEL gaussians_product(const double* a, const double* b, long long n, double* partial) {
    double sum[1] = {0};
    for (long long k = thread(); k < n; k += threads()) sum[0] += a[k] * b[k];
    of_block(sum, partial);
}

// Σ x, and how many there are.
WFMM_KERNEL gaussians_middle(const double* x, const double* core2, long long n, double* partial) {
    double sum[4] = {0, 0, 0, 0};
    for (long long k = thread(); k < n; k += threads()) {
        if (!(core2[k] > 0)) continue;
        for (int i = 0; i < 3; i++) sum[i] += x[3 * k + i];
        sum[3] += 1;
    }
    of_block(sum, partial);
}

// Σ a - b, Σ x × (a - b), Σ |a|, Σ |x||a|, x around a point.
WFMM_KERNEL gaussians_lost(const double* x, const double* core2, const double* a, const double* b, long long n, double mx, double my, double mz, double* partial) {
    double sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (long long k = thread(); k < n; k += threads()) {
        if (!(core2[k] > 0)) continue;
        const Vec<double> d = row(x, k) - Vec<double>{mx, my, mz}, old = row(a, k), less = old - row(b, k), moment = cross(d, less);
        sum[0] += less.x, sum[1] += less.y, sum[2] += less.z;
        sum[3] += moment.x, sum[4] += moment.y, sum[5] += moment.z;
        sum[6] += norm(old);
        sum[7] += norm(d) * norm(old);
    }
    of_block(sum, partial);
}

// |a| (f + g × d).
WFMM_DEVICE Vec<double> change(Vec<double> d, Vec<double> a, const double* f) {
    const Vec<double> across = cross(Vec<double>{f[3], f[4], f[5]}, d);
    const double size = norm(a);
    return {size * (f[0] + across.x), size * (f[1] + across.y), size * (f[2] + across.z)};
}

// Of each of the six unit changes, in columns: its sum and its moment.
WFMM_KERNEL gaussians_moments(const double* x, const double* core2, const double* a, long long n, double mx, double my, double mz, double* partial) {
    double sum[36];
    for (int i = 0; i < 36; i++) sum[i] = 0;
    for (long long k = thread(); k < n; k += threads()) {
        if (!(core2[k] > 0)) continue;
        const Vec<double> d = row(x, k) - Vec<double>{mx, my, mz}, strength = row(a, k);
#pragma unroll
        for (int j = 0; j < 6; j++) {
            double unit[6];
#pragma unroll
            for (int i = 0; i < 6; i++) unit[i] = i == j;
            const Vec<double> c = change(d, strength, unit), moment = cross(d, c);
            sum[j] += c.x, sum[6 + j] += c.y, sum[12 + j] += c.z;
            sum[18 + j] += moment.x, sum[24 + j] += moment.y, sum[30 + j] += moment.z;
        }
    }
    of_block(sum, partial);
}

// Adds such a change with these six factors.
WFMM_KERNEL gaussians_give_back(const double* x, const double* core2, double* a, long long n, double mx, double my, double mz, double f0, double f1, double f2, double f3, double f4, double f5) {
    const double f[6] = {f0, f1, f2, f3, f4, f5};
    for (long long k = thread(); k < n; k += threads()) {
        if (!(core2[k] > 0)) continue;
        const Vec<double> c = change(row(x, k) - Vec<double>{mx, my, mz}, row(a, k), f);
        a[3 * k] += c.x, a[3 * k + 1] += c.y, a[3 * k + 2] += c.z;
    }
}

// Squared cores of which those above `close` become `narrow`.
WFMM_KERNEL gaussians_narrow(const double* core2, double close, double narrow, double* to, long long n) {
    for (long long k = thread(); k < n; k += threads()) to[k] = core2[k] > close ? narrow : core2[k];
}

// New strengths of particles that have a core.
WFMM_KERNEL gaussians_adopt(const double* core2, const double* from, double* strength, long long n) {
    for (long long k = thread(); k < n; k += threads())
        if (core2[k] > 0)
            for (int i = 0; i < 3; i++) strength[3 * k + i] = from[3 * k + i];
}

// ---- Cells. ------------------------------------------------------------------------------------------------------------

// A particle is number k of the sources, with a plane number 2 k, and its image the next.
WFMM_DEVICE bool is_image(const Cells& c, unsigned source) { return c.axis >= 0 && source & 1; }
WFMM_DEVICE unsigned particle_of(const Cells& c, unsigned source) { return c.axis >= 0 ? source >> 1 : source; }

WFMM_DEVICE Vec<double> position_of(const Cells& c, const double* x, unsigned source) {
    Vec<double> p = row(x, particle_of(c, source));
    if (is_image(c, source)) at(p, c.axis) = c.position + (c.position - at(p, c.axis));
    return p;
}

WFMM_DEVICE Word number_of(const Cells& c, double x, int i) {
    const double cell = floor((x - c.origin[i]) / c.side);
    const Word last = (1ull << c.bits) - 1;
    return cell > 0 ? cell < (double)last ? (Word)cell : last : 0;
}

WFMM_DEVICE Word key_of(const Cells& c, Word i, Word j, Word k) { return (i << c.bits | j) << c.bits | k; }

// What is no source has a key above all cells.
WFMM_DEVICE Word beyond(const Cells& c) { return 1ull << 3 * c.bits; }

// Keys of n sources, and their numbers.
WFMM_KERNEL gaussians_keys(const double* x, const double* core2, const __grid_constant__ Cells cells, long long n, Word* key, unsigned* order) {
    for (long long s = thread(); s < n; s += threads()) {
        const Vec<double> p = position_of(cells, x, (unsigned)s);
        bool is = core2[particle_of(cells, (unsigned)s)] > 0;
        if (is_image(cells, (unsigned)s)) {
            Vec<double> image = p;
            is = is && fabs(at(image, cells.axis) - cells.position) < cells.beside;
        }
        key[s] = is ? key_of(cells, number_of(cells, p.x, 0), number_of(cells, p.y, 1), number_of(cells, p.z, 2)) : beyond(cells);
        order[s] = (unsigned)s;
    }
}

// A pass of a stable sort by 8 bits of the keys: each warp of the grid has a share of them, one after the other. First it counts its digits,
// to [digit][warp].
WFMM_KERNEL gaussians_count(const Word* key, long long n, int shift, long long share, unsigned* counts) {
    __shared__ unsigned s_count[kWarps][kDigits];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long me = blockIdx.x * kWarps + warp, first = me * share, end = first + share < n ? first + share : n;
    for (int d = lane; d < kDigits; d += 32) s_count[warp][d] = 0;
    __syncwarp();
    for (long long k = first + lane; k < end; k += 32) atomicAdd(&s_count[warp][key[k] >> shift & (kDigits - 1)], 1u);
    __syncwarp();
    for (int d = lane; d < kDigits; d += 32) counts[(long long)d * gridDim.x * kWarps + me] = s_count[warp][d];
}

// Then counts become slots of the first with a digit. One block of 1024 threads.
WFMM_KERNEL gaussians_scan(unsigned* counts, int n) {
    __shared__ unsigned s_sum[32];
    unsigned before = 0, all;
    for (int base = 0; base < n; base += 1024, before += all) {
        const int k = base + threadIdx.x;
        const unsigned slot = before + sum_before(k < n ? counts[k] : 0, s_sum, all);
        if (k < n) counts[k] = slot;
    }
}

// Last it puts its share there.
WFMM_KERNEL gaussians_scatter(const Word* key, const unsigned* order, long long n, int shift, long long share, const unsigned* slots, Word* key_out, unsigned* order_out) {
    __shared__ unsigned s_slot[kWarps][kDigits];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long me = blockIdx.x * kWarps + warp, first = me * share, end = first + share < n ? first + share : n;
    for (int d = lane; d < kDigits; d += 32) s_slot[warp][d] = slots[(long long)d * gridDim.x * kWarps + me];
    __syncwarp();
    for (long long base = first; base < end; base += 32) {
        const long long k = base + lane;
        const bool is = k < end;
        const Word mine = is ? key[k] : 0;
        const int digit = is ? (int)(mine >> shift & (kDigits - 1)) : kDigits;
        const unsigned peers = __match_any_sync(kAll, digit), before = peers & ((1u << lane) - 1);
        const unsigned to = is ? s_slot[warp][digit] : 0;
        __syncwarp();
        if (is && before == 0) s_slot[warp][digit] = to + __popc(peers);
        __syncwarp();
        if (!is) continue;
        key_out[to + __popc(before)] = mine;
        order_out[to + __popc(before)] = order[k];
    }
}

// ---- Sums. -------------------------------------------------------------------------------------------------------------

// Position and squared reach; 1/(2c²) and the strength times 1/((2π)^1.5 c³).
struct Source {
    double2 xy, z_cut2, decay_ax, ay_az;
};

// Sources in their order, with these strengths.
WFMM_KERNEL gaussians_sources(const double* x, const double* core2, const double* strength, const Word* key, const unsigned* order, const __grid_constant__ Cells cells, long long n, Source* sources) {
    for (long long s = thread(); s < n; s += threads()) {
        if (key[s] >= beyond(cells)) continue;
        const unsigned particle = particle_of(cells, order[s]);
        const Vec<double> p = position_of(cells, x, order[s]);
        const double c2 = core2[particle], square = 6.283185307179586477 * c2, factor = 1.0 / (square * sqrt(square));
        Vec<double> a = row(strength, particle);
        if (is_image(cells, order[s])) {
            const double normal = at(a, cells.axis);
            a = {-a.x, -a.y, -a.z};
            at(a, cells.axis) = normal;
        }
        sources[s] = {{p.x, p.y}, {p.z, cells.reach2 * c2}, {0.5 / c2, factor * a.x}, {factor * a.y, factor * a.z}};
    }
}

// The first of the keys from..n that is not below `key`.
WFMM_DEVICE unsigned first_from(const Word* keys, Word key, unsigned from, unsigned n) {
    while (from < n) {
        const unsigned middle = from + (n - from) / 2;
        if (keys[middle] < key) from = middle + 1;
        else n = middle;
    }
    return from;
}

// Adds sources from..to at a position.
WFMM_DEVICE void add(const Source* sources, unsigned from, unsigned to, Vec<double> p, double (&sum)[3]) {
    for (unsigned s = from; s < to; s++) {
        const double2 xy = sources[s].xy, z_cut2 = sources[s].z_cut2;
        const Vec<double> d = p - Vec<double>{xy.x, xy.y, z_cut2.x};
        const double r2 = dot(d, d);
        if (!(r2 < z_cut2.y)) continue;
        const double2 decay_ax = sources[s].decay_ax, ay_az = sources[s].ay_az;
        const double bell = exp_minus(decay_ax.x * r2);
        sum[0] += bell * decay_ax.y, sum[1] += bell * ay_az.x, sum[2] += bell * ay_az.y;
    }
}

// The sums at all particles: a thread a source, in their order, so that the threads of a warp have nearly the same neighbours. Any block.
WFMM_KERNEL gaussians_sum(const Source* sources, const Word* key, const unsigned* order, const __grid_constant__ Cells cells, unsigned n, double* sums) {
    const long long me = thread();
    if (me >= n || is_image(cells, order[me])) return;
    double sum[3] = {0, 0, 0};
    if (key[me] < beyond(cells)) {
        const int bits = (int)cells.bits, around = (int)cells.around, last = (1 << bits) - 1;
        const int i = (int)(key[me] >> 2 * bits), j = (int)(key[me] >> bits) & last, k = (int)key[me] & last;
        const Vec<double> p = {sources[me].xy.x, sources[me].xy.y, sources[me].z_cut2.x};
        const int k0 = max(k - around, 0), k1 = min(k + around, last);
        for (int a = max(i - around, 0); a <= min(i + around, last); a++)
            for (int b = max(j - around, 0); b <= min(j + around, last); b++) {
                const unsigned from = first_from(key, key_of(cells, a, b, k0), 0, n), to = first_from(key, key_of(cells, a, b, k1) + 1, from, n);
                add(sources, from, to, p, sum);
            }
    }
    const long long particle = particle_of(cells, order[me]);
    for (int i = 0; i < 3; i++) sums[3 * particle + i] = sum[i];
}
