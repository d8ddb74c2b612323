// The ground plane for arrays in device memory: mirrored targets, and the sum of both halves of a field (src/plan/plane.rs). Any
// block unless said, one thread a row.
#include "common.cuh"

// Targets [n][3] and after them their images in the plane axis = position, [2n][3].
template <class T, class U> WFMM_DEVICE void joint(const T* x, int axis, double position, U* out, long long n) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    for (int i = 0; i < 3; i++) {
        const T v = x[3 * k + i];
        out[3 * k + i] = U(v);
        // Not 2 position - x: that would leave the range of numbers too early.
        out[3 * (n + k) + i] = i == axis ? U(position + (position - double(v))) : U(v);
    }
}
WFMM_KERNEL plane_joint_f32(const float* x, int axis, double position, float* out, long long n) { joint(x, axis, position, out, n); }
WFMM_KERNEL plane_joint_widened(const float* x, int axis, double position, double* out, long long n) { joint(x, axis, position, out, n); }
WFMM_KERNEL plane_joint_f64(const double* x, int axis, double position, double* out, long long n) { joint(x, axis, position, out, n); }

// What the mirror multiplies number i of a row of `width` by: components of vectors, or of tensors row by row.
WFMM_DEVICE double mirrored(int axis, int width, int i) {
    if (width == 1) return 1.0;
    const bool turned = width == 3 ? i == axis : (i / 3 == axis) != (i % 3 == axis);
    return turned ? -1.0 : 1.0;
}

// Rows of a field at n targets from the field at them and at their images, written or added. Both halves are
// in double precision: in single they would be rounded before they cancel.
template <class T> WFMM_DEVICE void combine(const double* both, int axis, int width, T* to, int add, long long n) {
    const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (at >= n * width) return;
    const double sum = both[at] + mirrored(axis, width, (int)(at % width)) * both[n * width + at];
    to[at] = T(add ? double(to[at]) + sum : sum);
}
WFMM_KERNEL plane_combine_f32(const double* both, int axis, int width, float* to, int add, long long n) { combine(both, axis, width, to, add, n); }
WFMM_KERNEL plane_combine_f64(const double* both, int axis, int width, double* to, int add, long long n) { combine(both, axis, width, to, add, n); }

// Squares of the sum of both halves and of the halves by themselves, a pair of numbers a block. Block 256; always the same order.
WFMM_KERNEL plane_kept(const double* both, int axis, int width, double* rows, long long n) {
    __shared__ double s_sum[256], s_parts[256];
    double sum = 0, parts = 0;
    for (long long at = blockIdx.x * 256ll + threadIdx.x; at < n * width; at += gridDim.x * 256ll) {
        const double a = both[at], b = mirrored(axis, width, (int)(at % width)) * both[n * width + at];
        sum += (a + b) * (a + b);
        parts += a * a + b * b;
    }
    s_sum[threadIdx.x] = sum;
    s_parts[threadIdx.x] = parts;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            s_sum[threadIdx.x] += s_sum[threadIdx.x + half];
            s_parts[threadIdx.x] += s_parts[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) { rows[2 * blockIdx.x] = s_sum[0]; rows[2 * blockIdx.x + 1] = s_parts[0]; }
}

// Sources and after them their images, twice as many: positions are mirrored, strengths are pseudo-vectors, -R a; circulations
// change their sign, since the ends of a segment keep their order.
template <class T> WFMM_DEVICE void turned(const T* a, int axis, T* out, long long n) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    for (int i = 0; i < 3; i++) {
        const T v = a[3 * k + i];
        out[3 * k + i] = v;
        out[3 * (n + k) + i] = i == axis ? v : -v;
    }
}
WFMM_KERNEL plane_turned_f32(const float* a, int axis, float* out, long long n) { turned(a, axis, out, n); }
WFMM_KERNEL plane_turned_f64(const double* a, int axis, double* out, long long n) { turned(a, axis, out, n); }

template <class T> WFMM_DEVICE void again(const T* x, int sign, T* out, long long n) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    out[k] = x[k];
    out[n + k] = T(sign) * x[k];
}
WFMM_KERNEL plane_again_f32(const float* x, int sign, float* out, long long n) { again(x, sign, out, n); }
WFMM_KERNEL plane_again_f64(const double* x, int sign, double* out, long long n) { again(x, sign, out, n); }

// Ends [n][ld] to [2n][2]; points of images come `shift` later.
WFMM_KERNEL plane_ends(const int* ends, long long ld, int shift, int* out, long long n) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    for (int i = 0; i < 2; i++) {
        out[2 * k + i] = ends[ld * k + i];
        out[2 * (n + k) + i] = ends[ld * k + i] + shift;
    }
}
