// From the host's arrays to what the sums read.
// Enters: positions, strengths and cores as they were handed over, f32 or f64. Leaves: the frame (origin and scale) that
// brings every length near one, so that the result does not depend on the caller's units, also in f32.
#include "precision_probe.cuh"

// Numbers of an extent: low x y z, high x y z, the widest core.
constexpr int kExtent = 7;

// Smallest and largest coordinates of `n` points, or with a connectivity of the ends of `n` segments, and the widest core of
// as many, one row of numbers a block. Block 256.
WFMM_KERNEL extent(Reals position, long long n, double* rows, const int* connectivity, long long ld, int base, Reals core, double default_core) {
    __shared__ double s_extent[kExtent][256];
    const double infinite = __longlong_as_double(0x7ff0000000000000ll);
    double low[3] = {infinite, infinite, infinite}, high[3] = {-infinite, -infinite, -infinite}, widest = default_core;
    for (long long k = blockIdx.x * 256ll + threadIdx.x; k < n; k += gridDim.x * 256ll) {
        if (core.address) widest = fmax(widest, read(core, k));
        for (int end = 0; end < (connectivity ? 2 : 1); end++) {
            const long long point = connectivity ? connectivity[ld * k + end] - base : k;
            for (int c = 0; c < 3; c++) {
                const double x = read(position, 3 * point + c);
                low[c] = fmin(low[c], x);
                high[c] = fmax(high[c], x);
            }
        }
    }
    for (int c = 0; c < 3; c++) { s_extent[c][threadIdx.x] = low[c]; s_extent[3 + c][threadIdx.x] = high[c]; }
    s_extent[6][threadIdx.x] = widest;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            for (int c = 0; c < kExtent; c++) {
                double& mine = s_extent[c][threadIdx.x];
                const double other = s_extent[c][threadIdx.x + half];
                mine = c < 3 ? fmin(mine, other) : fmax(mine, other);
            }
        __syncthreads();
    }
    if (threadIdx.x < kExtent) rows[kExtent * blockIdx.x + threadIdx.x] = s_extent[threadIdx.x][0];
}

// The frame of `n_rows` extents, of which the first `n_sources` are the sources'; the widest side becomes at most `extent`. With
// `center` the origin is the middle of the sources' bounding box (a target far away must not take their digits), else zero: subtracting
// it would round f64 coordinates, while f32 ones gain the digits that a distant origin wastes. `probe`: whether f32 does.
// One block of 224 threads, 32 for each number of an extent.
WFMM_KERNEL frame(const double* rows, int n_rows, int n_sources, int center, double extent, Frame* out, const __grid_constant__ Probe probe) {
    __shared__ double s_bound[kExtent], s_source[kExtent];
    __shared__ Vec<double> s_position[kProbePositions];
    __shared__ Frame s_frame;
    __shared__ int s_near[kExtent];
    const int c = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (probe.fallback) take_positions(probe, s_position);
    double bound = rows[c], source = bound;
    for (int row = lane; row < n_rows; row += 32) {
        bound = c < 3 ? fmin(bound, rows[kExtent * row + c]) : fmax(bound, rows[kExtent * row + c]);
        if (row < n_sources) source = c < 3 ? fmin(source, rows[kExtent * row + c]) : fmax(source, rows[kExtent * row + c]);
    }
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, bound, step), s = __shfl_xor_sync(0xffffffffu, source, step);
        bound = c < 3 ? fmin(bound, other) : fmax(bound, other);
        source = c < 3 ? fmin(source, s) : fmax(source, s);
    }
    if (lane == 0) { s_bound[c] = bound; s_source[c] = source; }
    __syncthreads();
    if (threadIdx.x == 0) {
        double widest = 0;
        for (int k = 0; k < 3; k++) {
            const bool empty = !(s_bound[3 + k] >= s_bound[k]);
            s_frame.low[k] = empty ? 0.0 : s_bound[k];
            s_frame.origin[k] = center && !empty ? 0.5 * (s_source[k] + s_source[3 + k]) : 0.0;
            if (!empty) widest = fmax(widest, s_bound[3 + k] - s_bound[k]);
        }
        int exponent = 0;
        if (widest > 0) frexp(widest, &exponent);
        s_frame.scale = ldexp(extent, -exponent);
        s_frame.side = extent;
        s_frame.needs_double = FALLBACK_NONE;
        if (!probe.fallback) *out = s_frame;
    }
    if (!probe.fallback) return;
    __syncthreads();
    const int near = too_near(probe, s_position, s_frame, c, kExtent);
    if (lane == 0) s_near[c] = near;
    __syncthreads();
    if (threadIdx.x > 0) return;
    int all = 0;
    for (int k = 0; k < kExtent; k++) all += s_near[k];
    // An eighth of the targets: one far target alone, or one beside its source, costs the others nothing.
    if (all > 0 && 8 * all >= targets_of(probe)) s_frame.needs_double = FALLBACK_DISTANCE;
    if (s_bound[6] * s_frame.scale > kWidestCore) s_frame.needs_double = FALLBACK_CORE;
    *out = s_frame;
    // The host's memory is far away: only where there is something to say.
    if (s_frame.needs_double) *probe.fallback = (unsigned)s_frame.needs_double;
}

template <class T> WFMM_DEVICE T in_frame(double x, const Frame& frame, int c) { return T((x - frame.origin[c]) * frame.scale); }

// Records of `n` particles, then null ones up to `padded`. Any block; one thread a record, likewise below.
template <class T>
WFMM_DEVICE void particles(int reg, Reals position, Reals strength, Reals core, double default_core, long long n, long long padded,
                           const Frame* frame, Particle<T>* out) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= padded) return;
    Particle<T> p = {0, 0, 0, 0, 0, 0, 0, 0};
    if (k < n) {
        p.x = in_frame<T>(read(position, 3 * k), *frame, 0);
        p.y = in_frame<T>(read(position, 3 * k + 1), *frame, 1);
        p.z = in_frame<T>(read(position, 3 * k + 2), *frame, 2);
        p.ax = T(read(strength, 3 * k));
        p.ay = T(read(strength, 3 * k + 1));
        p.az = T(read(strength, 3 * k + 2));
        particle_core<T>(reg, T((core.address ? read(core, k) : default_core) * frame->scale), p.core, p.cut2);
    }
    out[k] = p;
}
WFMM_KERNEL particles_f32(int reg, Reals position, Reals strength, Reals core, double default_core, long long n, long long padded, const Frame* frame, Particle<float>* out) {
    particles(reg, position, strength, core, default_core, n, padded, frame, out);
}
WFMM_KERNEL particles_f64(int reg, Reals position, Reals strength, Reals core, double default_core, long long n, long long padded, const Frame* frame, Particle<double>* out) {
    particles(reg, position, strength, core, default_core, n, padded, frame, out);
}

template <class T>
WFMM_DEVICE void segments(int reg, Reals points, const int* connectivity, long long ld, int base, Reals circulation, Reals core,
                          double default_core, long long n, long long padded, const Frame* frame, Segment<T>* out) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= padded) return;
    Segment<T> s = {0, 0, 0, 0, 1, 0, 0, 0};
    if (k < n) {
        const long long a = 3ll * (connectivity[ld * k] - base), b = 3ll * (connectivity[ld * k + 1] - base);
        s.x1 = in_frame<T>(read(points, a), *frame, 0);
        s.y1 = in_frame<T>(read(points, a + 1), *frame, 1);
        s.z1 = in_frame<T>(read(points, a + 2), *frame, 2);
        if constexpr (sizeof(T) == 8) {
            s.x2 = in_frame<T>(read(points, b), *frame, 0);
            s.y2 = in_frame<T>(read(points, b + 1), *frame, 1);
            s.z2 = in_frame<T>(read(points, b + 2), *frame, 2);
        } else {
            s.lx = T((read(points, b) - read(points, a)) * frame->scale);
            s.ly = T((read(points, b + 1) - read(points, a + 1)) * frame->scale);
            s.lz = T((read(points, b + 2) - read(points, a + 2)) * frame->scale);
        }
        s.circulation = T(read(circulation, k));
        const Vec<T> l = along(s);
        if (l.x == 0 && l.y == 0 && l.z == 0) no_segment(s);
        else s.core = segment_core<T>(reg, T((core.address ? read(core, k) : default_core) * frame->scale), dot(l, l));
    }
    out[k] = s;
}
WFMM_KERNEL segments_f32(int reg, Reals points, const int* connectivity, long long ld, int base, Reals circulation, Reals core, double default_core, long long n, long long padded, const Frame* frame, Segment<float>* out) {
    segments(reg, points, connectivity, ld, base, circulation, core, default_core, n, padded, frame, out);
}
WFMM_KERNEL segments_f64(int reg, Reals points, const int* connectivity, long long ld, int base, Reals circulation, Reals core, double default_core, long long n, long long padded, const Frame* frame, Segment<double>* out) {
    segments(reg, points, connectivity, ld, base, circulation, core, default_core, n, padded, frame, out);
}

template <class T>
WFMM_DEVICE void charges(Reals position, Reals charge, long long n, long long padded, const Frame* frame, Charge<T>* out) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= padded) return;
    Charge<T> q = {0, 0, 0, 0};
    if (k < n)
        q = {in_frame<T>(read(position, 3 * k), *frame, 0), in_frame<T>(read(position, 3 * k + 1), *frame, 1), in_frame<T>(read(position, 3 * k + 2), *frame, 2),
             T(read(charge, k))};
    out[k] = q;
}
WFMM_KERNEL charges_f32(Reals position, Reals charge, long long n, long long padded, const Frame* frame, Charge<float>* out) {
    charges(position, charge, n, padded, frame, out);
}
WFMM_KERNEL charges_f64(Reals position, Reals charge, long long n, long long padded, const Frame* frame, Charge<double>* out) {
    charges(position, charge, n, padded, frame, out);
}

// Cells of 32³ over the domain, numbered along a Z curve: targets of one warp then lie together and mostly agree on which
// sources' cores they feel. The order of targets changes no sum.
WFMM_DEVICE int cell_of(Reals position, long long k, const Frame& frame) {
    int cell = 0;
    for (int c = 0; c < 3; c++) {
        int i = int((read(position, 3 * k + c) - frame.low[c]) * frame.scale * (32 / frame.side));
        i = i < 0 ? 0 : i > 31 ? 31 : i;
        for (int bit = 0; bit < 5; bit++) cell |= ((i >> bit) & 1) << (3 * bit + c);
    }
    return cell;
}

WFMM_KERNEL cell_count(Reals position, long long n, const Frame* frame, unsigned* counts) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k < n) atomicAdd(&counts[cell_of(position, k, *frame)], 1u);
}

// Exclusive prefix sums of 32768 counts in place. One block of 1024.
WFMM_KERNEL cell_scan(unsigned* counts) {
    __shared__ unsigned s_sum[1024];
    unsigned mine[32], total = 0;
    for (int i = 0; i < 32; i++) { mine[i] = counts[32 * threadIdx.x + i]; total += mine[i]; }
    s_sum[threadIdx.x] = total;
    __syncthreads();
    for (int step = 1; step < 1024; step *= 2) {
        const unsigned before = threadIdx.x >= step ? s_sum[threadIdx.x - step] : 0;
        __syncthreads();
        s_sum[threadIdx.x] += before;
        __syncthreads();
    }
    unsigned start = s_sum[threadIdx.x] - total;
    for (int i = 0; i < 32; i++) { counts[32 * threadIdx.x + i] = start; start += mine[i]; }
}

// Target k goes to a slot of its cell; `counts` holds the next free slot of each cell.
WFMM_KERNEL cell_slot(Reals position, long long n, const Frame* frame, unsigned* counts, unsigned* order) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k < n) order[atomicAdd(&counts[cell_of(position, k, *frame)], 1u)] = unsigned(k);
}

// Targets in the frame, in the order `order` (null: as they are), [n][3].
template <class T> WFMM_DEVICE void targets(Reals position, const unsigned* order, long long n, const Frame* frame, T* out) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const long long k = order ? order[i] : i;
    for (int c = 0; c < 3; c++) out[3 * i + c] = in_frame<T>(read(position, 3 * k + c), *frame, c);
}
WFMM_KERNEL targets_f32(Reals position, const unsigned* order, long long n, const Frame* frame, float* out) { targets(position, order, n, frame, out); }
WFMM_KERNEL targets_f64(Reals position, const unsigned* order, long long n, const Frame* frame, double* out) { targets(position, order, n, frame, out); }

// The target with the largest field in each of as many equal runs of `n` targets as there are blocks; what is no number is larger
// than any. `numbers` a target. Block 256.
WFMM_KERNEL largest(Reals field, long long n, int numbers, unsigned* found) {
    __shared__ double s_size[256];
    __shared__ unsigned s_at[256];
    const long long begin = n * blockIdx.x / gridDim.x, end = n * (blockIdx.x + 1) / gridDim.x;
    double most = -1;
    unsigned at = unsigned(begin);
    for (long long k = begin + threadIdx.x; k < end; k += 256) {
        double size = 0;
        for (int c = 0; c < numbers; c++) size = fma(read(field, numbers * k + c), read(field, numbers * k + c), size);
        if (size == size && size <= most) continue;
        most = size == size ? size : __longlong_as_double(0x7ff0000000000000ll);
        at = unsigned(k);
    }
    s_size[threadIdx.x] = most;
    s_at[threadIdx.x] = at;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half && s_size[threadIdx.x + half] > s_size[threadIdx.x]) {
            s_size[threadIdx.x] = s_size[threadIdx.x + half];
            s_at[threadIdx.x] = s_at[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) found[blockIdx.x] = s_at[0];
}

// Puts or adds a field that was held in double precision. Launch: any.
WFMM_KERNEL hand_over(Reals to, const double* from, int add, long long n) {
    for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < n; k += gridDim.x * (long long)blockDim.x) {
        if (to.is_f64) {
            double& x = ((double*)to.address)[k];
            x = add ? x + from[k] : from[k];
        } else {
            float& x = ((float*)to.address)[k];
            x = (float)(add ? x + from[k] : from[k]);
        }
    }
}
