// From the host's arrays to what the sums read.
// Enters: positions, strengths and cores as they were handed over, f32 or f64. Leaves: the frame (origin and scale) that
// brings every length near one, so that the result does not depend on the caller's units, also in f32.
#include "common.cuh"

// x' = (x - origin) * scale; the scale is a power of two. Mirrors backend/cuda/direct.rs, 4 doubles.
struct Frame { double origin[3]; double scale; };

// Smallest and largest coordinates of `n` points, one row of 6 doubles a block: low x y z, high x y z. Block 256.
template <class In> WFMM_DEVICE void extent(const In* position, long long n, double* rows) {
    __shared__ double s_low[3][256], s_high[3][256];
    const double infinite = __longlong_as_double(0x7ff0000000000000ll);
    double low[3] = {infinite, infinite, infinite}, high[3] = {-infinite, -infinite, -infinite};
    for (long long k = blockIdx.x * 256ll + threadIdx.x; k < n; k += gridDim.x * 256ll)
        for (int c = 0; c < 3; c++) {
            const double x = position[3 * k + c];
            low[c] = fmin(low[c], x);
            high[c] = fmax(high[c], x);
        }
    for (int c = 0; c < 3; c++) { s_low[c][threadIdx.x] = low[c]; s_high[c][threadIdx.x] = high[c]; }
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            for (int c = 0; c < 3; c++) {
                s_low[c][threadIdx.x] = fmin(s_low[c][threadIdx.x], s_low[c][threadIdx.x + half]);
                s_high[c][threadIdx.x] = fmax(s_high[c][threadIdx.x], s_high[c][threadIdx.x + half]);
            }
        __syncthreads();
    }
    if (threadIdx.x < 3) {
        rows[6 * blockIdx.x + threadIdx.x] = s_low[threadIdx.x][0];
        rows[6 * blockIdx.x + 3 + threadIdx.x] = s_high[threadIdx.x][0];
    }
}

WFMM_KERNEL extent_f32(const float* position, long long n, double* rows) { extent(position, n, rows); }
WFMM_KERNEL extent_f64(const double* position, long long n, double* rows) { extent(position, n, rows); }

// The frame of `n_rows` extents. With `center` the origin is the middle of the box, else zero: subtracting it would round
// f64 coordinates, while f32 ones gain the digits that a distant origin wastes. One thread.
WFMM_KERNEL frame(const double* rows, int n_rows, int center, Frame* out) {
    double low[3], high[3], widest = 0;
    for (int c = 0; c < 3; c++) {
        low[c] = rows[c];
        high[c] = rows[3 + c];
        for (int row = 1; row < n_rows; row++) {
            low[c] = fmin(low[c], rows[6 * row + c]);
            high[c] = fmax(high[c], rows[6 * row + 3 + c]);
        }
        const bool empty = !(high[c] >= low[c]);
        out->origin[c] = center && !empty ? 0.5 * (low[c] + high[c]) : 0.0;
        if (!empty) widest = fmax(widest, high[c] - low[c]);
    }
    out->scale = widest > 0 ? exp2(-ceil(log2(widest))) : 1.0;
}
