// A developer's bench of the FMM kernels without the library: makes a workload, runs the passes in the library's order, compares
// a sample of targets with a direct sum in f64 on the device, prints the time of every pass.
//   fmm WORKLOAD N TOLERANCE f32|f64 [cap] [alpha] [kappa] [reps]      WORKLOAD: cube laplace vpm wake rings dust
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#include "../../kernels/fmm_check.cuh"
#include "truncation.h"
using namespace fmm;
#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s: %s line %d\n", #x, cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)
#define K(name) extern "C" __global__ void name(const __grid_constant__ Fmm f);
K(fmm_segments) K(fmm_add_parts_f32) K(fmm_add_parts_f64)
K(fmm_p2p_segment_f32) K(fmm_p2p_segment_f64) K(fmm_p2p_segment_gradient_f32) K(fmm_p2p_segment_gradient_f64)
K(fmm_smooth_particle_f32) K(fmm_smooth_particle_f64) K(fmm_smooth_particle_gradient_f32) K(fmm_smooth_particle_gradient_f64)
K(fmm_smooth_segment_f32) K(fmm_smooth_segment_f64) K(fmm_smooth_segment_gradient_f32) K(fmm_smooth_segment_gradient_f64)
K(fmm_bounds) K(fmm_keys) K(fmm_leaves) K(fmm_scan) K(fmm_cells) K(fmm_links) K(fmm_gather_f32) K(fmm_gather_f64) K(fmm_lists)
#define P2M(T, P) K(fmm_p2m_charge_##T##_##P) K(fmm_p2m_vortex_##T##_##P)
#define EACH_F32(X) X(f32, 2) X(f32, 3) X(f32, 4) X(f32, 5) X(f32, 6) X(f32, 7) X(f32, 8) X(f32, 9) X(f32, 10) X(f32, 11)
#define EACH_F64(X) X(f64, 2) X(f64, 3) X(f64, 4) X(f64, 5) X(f64, 6) X(f64, 7) X(f64, 8) X(f64, 9) X(f64, 10) X(f64, 11) X(f64, 12) X(f64, 13) X(f64, 14) X(f64, 15) X(f64, 16)
EACH_F32(P2M) EACH_F64(P2M)
K(fmm_p2p_charge_f32) K(fmm_p2p_charge_f64) K(fmm_p2p_particle_f32) K(fmm_p2p_particle_f64) K(fmm_p2p_particle_gradient_f32) K(fmm_p2p_particle_gradient_f64)
K(fmm_p2p_particle_core_f32) K(fmm_p2p_particle_core_f64) K(fmm_p2p_particle_core_gradient_f32) K(fmm_p2p_particle_core_gradient_f64)
#define KN(name) extern "C" __global__ void fmm_##name(const __grid_constant__ Fmm f, int number);
#define KL(name) extern "C" __global__ void fmm_l2p_##name(const __grid_constant__ Fmm f, const __grid_constant__ Check c, int leaves);
KL(velocity_f32) KL(velocity_f64) KL(gradient_f32) KL(gradient_f64) KL(force_f32) KL(force_f64)
KN(m2m_f64) KN(m2m_f32) KN(m2m_f32x3) KN(l2l_f64) KN(l2l_f32) KN(l2l_f32x3)
extern "C" __global__ void fmm_sort(const __grid_constant__ Fmm f, u32 pass);
extern "C" __global__ void fmm_operators(const __grid_constant__ Fmm f, void *out, u32 tiles, u32 parts);
K(fmm_m2l_f64_1) K(fmm_m2l_f64_2) K(fmm_m2l_f64_3) K(fmm_m2l_f64_4) K(fmm_m2l_f64_5) K(fmm_m2l_f32_1) K(fmm_m2l_f32_2) K(fmm_m2l_f32_3)
K(fmm_m2l_f32x3_1) K(fmm_m2l_f32x3_2) K(fmm_m2l_f32x3_3)
K(fmm_m2l_small_f64_0) K(fmm_m2l_small_f64_1) K(fmm_m2l_small_f64_4) K(fmm_m2l_small_f64_8) K(fmm_m2l_small_f32_0) K(fmm_m2l_small_f32_1) K(fmm_m2l_small_f32_4) K(fmm_m2l_small_f32_8)
K(fmm_m2l_small_f32x3_0) K(fmm_m2l_small_f32x3_1) K(fmm_m2l_small_f32x3_4) K(fmm_m2l_small_f32x3_8)
typedef void (*Kernel)(Fmm);
typedef void (*Numbered)(Fmm, int);
typedef void (*Last)(Fmm, Check, int);

template <class V> V *device(size_t n) { V *p; CK(cudaMalloc(&p, std::max<size_t>(n, 1) * sizeof(V))); CK(cudaMemset(p, 0xff, std::max<size_t>(n, 1) * sizeof(V))); return p; }
template <class V> V *upload(const std::vector<V> &v) { V *p = device<V>(v.size()); CK(cudaMemcpy(p, v.data(), v.size() * sizeof(V), cudaMemcpyHostToDevice)); return p; }

static uint64_t seed = 88172645463325252ull;
static double uniform() { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return (seed >> 11) * 0x1p-53; }
static double normal() { double s = 0; for (int k = 0; k < 12; k++) s += uniform(); return s - 6; }

struct Work { std::vector<double> x, a, c, y; int kind, reg; bool gradient; };
static Work make(const std::string &w, int n) {
    Work p; p.kind = kParticle; p.reg = 0; p.gradient = false;
    p.x.resize(3 * (size_t)n); p.a.resize(3 * (size_t)n); p.y.resize(3 * (size_t)n);
    for (auto &v : p.x) v = uniform();
    for (auto &v : p.a) v = 2 * uniform() - 1;
    for (auto &v : p.y) v = uniform();
    if (w == "laplace") { p.kind = kCharge; p.gradient = true; p.y = p.x; }
    if (w == "vpm") { p.reg = 6; p.gradient = true; p.c.assign(n, 2 * pow(n, -1.0 / 3)); p.y = p.x; }
    if (w == "wake") {
        p.reg = 6; p.gradient = true; p.c.resize(n);
        for (int i = 0; i < n; i++) {
            const double t = uniform(), th = 6 * 2 * M_PI * t + (i % 4) * M_PI / 2, r = 0.3 * (1 - 0.2 * t);
            p.x[3 * i] = 0.5 + r * cos(th) + 0.01 * normal(); p.x[3 * i + 1] = 0.5 + r * sin(th) + 0.01 * normal(); p.x[3 * i + 2] = 0.9 - 0.8 * t + 0.01 * normal();
            p.c[i] = 0.05 * pow(1e6 / n, 1.0 / 3) * 0.1 * pow(10, -2 * uniform());
        }
        p.y = p.x;
    }
    if (w == "dust") { // helical wake of four blades over the ground; x holds both end points, as many targets as 100 n
        p.kind = kSegment; p.reg = 3; p.x.resize(6 * (size_t)n); p.a.resize(n); p.c.resize(n);
        const int per = n / 4;
        for (int i = 0; i < n; i++) for (int e = 0; e < 2; e++) {
            const int blade = i / per, k = i % per + e;
            const double age = (double)k / per, th = 2 * M_PI * 10 * age + blade * M_PI / 2, z = 2 * (1 - age) + 0.05, r = 0.8 + 0.6 * fmax(0.0, 0.8 - z);
            p.x[6 * i + 3 * e] = r * cos(th); p.x[6 * i + 3 * e + 1] = r * sin(th); p.x[6 * i + 3 * e + 2] = z;
            p.a[i] = 1; p.c[i] = 0.005 + 0.095 * age;
        }
        p.y.resize(300 * (size_t)n);
        for (size_t i = 0; i < p.y.size() / 3; i++) { p.y[3 * i] = 4 * uniform() - 2; p.y[3 * i + 1] = 4 * uniform() - 2; p.y[3 * i + 2] = uniform() * (i % 5 ? 0.01 : 1); }
    }
    if (w == "rings") for (int i = 0; i < n; i++) {
        const double th = 2 * M_PI * uniform();
        p.x[3 * i] = 0.5 + 0.3 * cos(th) + 0.02 * normal(); p.x[3 * i + 1] = 0.5 + 0.3 * sin(th) + 0.02 * normal(); p.x[3 * i + 2] = (i & 1 ? 0.6 : 0.4) + 0.02 * normal();
        p.a[3 * i] = -sin(th); p.a[3 * i + 1] = cos(th); p.a[3 * i + 2] = 0;
    }
    return p;
}

// Exact sums in f64 at a sample of targets.
__global__ void direct(const double *x, const double *a, const double *c, int n, int kind, int reg, const double *y, const int *pick, double *out) {
    const double *t = y + 3 * (size_t)pick[blockIdx.x];
    double s[12] = {0};
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        double d[3]; for (int k = 0; k < 3; k++) d[k] = t[k] - x[3 * (size_t)j + k];
        const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        if (kind == kSegment) {
            const double *P = x + 6 * (size_t)j; double r1[3], r2_[3], C[3]; for (int k = 0; k < 3; k++) { r1[k] = t[k] - P[k]; r2_[k] = t[k] - P[3 + k]; }
            C[0] = r1[1] * r2_[2] - r1[2] * r2_[1]; C[1] = r1[2] * r2_[0] - r1[0] * r2_[2]; C[2] = r1[0] * r2_[1] - r1[1] * r2_[0];
            double n1 = 0, n2 = 0, dt = 0, l2 = 0, cc = 0; for (int k = 0; k < 3; k++) { n1 += r1[k] * r1[k]; n2 += r2_[k] * r2_[k]; dt += r1[k] * r2_[k]; const double l = P[3 + k] - P[k]; l2 += l * l; cc += C[k] * C[k]; }
            const double rho2 = cc / l2, c4 = c[j] * c[j] * c[j] * c[j], F = rho2 / sqrt(c4 + rho2 * rho2), A = sqrt(n1 * n2);
            const double K = cc > 0 ? a[j] * F * (sqrt(n1) + sqrt(n2)) / (A * (A + dt)) : 0;
            for (int k = 0; k < 3; k++) s[k] += K * C[k];
            continue;
        }
        if (r2 == 0) continue;
        const double r = sqrt(r2);
        if (kind == kCharge) { s[0] += a[j] / r; for (int k = 0; k < 3; k++) s[1 + k] -= a[j] * d[k] / (r2 * r); continue; }
        double g = 1, h = 3; // h = 3 g - q g'
        if (reg == 6) { const double q = r / c[j], e = sqrt(2 / M_PI) * q * exp(-q * q / 2); g = erf(q / sqrt(2.0)) - e; h = 3 * g - q * q * e; }
        const double S = g / (r2 * r), W = h / (r2 * r2 * r);
        const double *q = a + 3 * (size_t)j;
        const double u[3] = {q[1] * d[2] - q[2] * d[1], q[2] * d[0] - q[0] * d[2], q[0] * d[1] - q[1] * d[0]};
        for (int k = 0; k < 3; k++) { s[k] += u[k] * S; for (int l = 0; l < 3; l++) s[3 + 3 * k + l] -= W * u[k] * d[l]; }
        s[4] -= q[2] * S; s[5] += q[1] * S; s[6] += q[2] * S; s[8] -= q[0] * S; s[9] -= q[1] * S; s[10] += q[0] * S;
    }
    __shared__ double sh[256];
    for (int k = 0; k < 12; k++) {
        sh[threadIdx.x] = s[k]; __syncthreads();
        for (int d = 128; d; d /= 2) { if (threadIdx.x < d) sh[threadIdx.x] += sh[threadIdx.x + d]; __syncthreads(); }
        if (!threadIdx.x) out[12 * blockIdx.x + k] = sh[0];
        __syncthreads();
    }
}

template <class T> void run(const std::string &name, int n, double tol, int cap, double alpha, double kappa, int reps) {
    const bool f64 = sizeof(T) == 8;
    Work w = make(name, n);
    const bool charge = w.kind == kCharge;
    auto cast = [](const std::vector<double> &v) { return std::vector<T>(v.begin(), v.end()); };
    // What the kernels see, in f64, is what they are compared with.
    auto back = [](const std::vector<T> &v) { return std::vector<double>(v.begin(), v.end()); };
    if (charge) w.a.resize(n);
    const bool segment = w.kind == kSegment;
    auto x = cast(w.x), a = cast(w.a), c = cast(w.c), y = cast(w.y);
    const int nt = y.size() / 3;
    Truncation st = make_truncation(tol * alpha, f64 ? 16 : 10, charge);
    const int P = st.order, tiles = st.tiles, stride = 8 * tiles, nc = charge ? 1 : 3;
    printf("%s n=%d tol=%g %s: order %d, %.0f products an orbit\n", name.c_str(), n, tol, f64 ? "f64" : "f32", P, st.mean_products);

    Fmm f{};
    f.state = device<State>(1);
    f.max_level = std::min(21, std::max(4, (int)ceil(log((double)std::max(n, nt) / cap) / log(8.0)) + 3));
    const double forced = getenv("DEPTH") ? atof(getenv("DEPTH")) : 0;
    if (forced) f.max_level = forced;
    if (name == "wake" || name == "rings") f.max_level += 2;
    f.sort_passes = (3 * f.max_level + 7) / 8;
    for (int k = 0; k < 2; k++) {
        Tree &t = f.tree[k];
        const size_t m = k ? nt : n;
        t.n = m; t.capacity = k && getenv("TCAP") ? atoi(getenv("TCAP")) : cap; t.x_is_f64 = f64;
        t.cell_capacity = m / 4 + 40000;
        t.key = device<u64>(m); t.key_other = device<u64>(m); t.order = device<u32>(m); t.order_other = device<u32>(m);
        t.leaf_level = device<uint8_t>(m); t.block_count = device<u32>((m / 1024 + 1) * kLevels);
        t.sort_status = device<u32>((size_t)f.sort_passes * (m / 2048 + 1) * 256);
        t.point = device<Vec4<T>>(2 * m);
        t.begin = device<u32>(t.cell_capacity); t.end = device<u32>(t.cell_capacity); t.parent = device<u32>(t.cell_capacity);
        t.child = device<u32>(t.cell_capacity); t.info = device<u32>(t.cell_capacity); t.cell_key = device<u64>(t.cell_capacity);
    }
    f.tree[0].x = upload(x); f.tree[1].x = upload(y);
    if (segment) {
        std::vector<int> ends(2 * n); for (int k = 0; k < 2 * n; k++) ends[k] = k;
        f.connectivity = upload(ends); f.points = f.tree[0].x; f.ld = 2; f.piece = device<Piece>(n); f.n_in = n;
        f.tree[0].x = device<double>(3 * (size_t)n); f.tree[0].x_is_f64 = 1;
        std::vector<double> g(32, 0.0); const int m = (P + 1) / 2; // Gauss-Legendre
        for (int i = 0; i < m; i++) { double z = cos(M_PI * (i + 0.75) / (m + 0.5)), d = 1; for (int it = 0; it < 60; it++) { double p0 = 1, p1 = 0; for (int k = 0; k < m; k++) { const double p2 = p1; p1 = p0; p0 = ((2 * k + 1) * z * p1 - k * p2) / (k + 1); } d = m * (z * p0 - p1) / (z * z - 1); z -= p0 / d; } g[i] = z; g[16 + i] = 2 / ((1 - z * z) * d * d); }
        f.gauss = upload(g); f.gauss_points = m;
    }
    f.box = f64 ? 1 : 16384; // Real::box of kernels/common.cuh
    f.walk_range = getenv("WALK") ? atof(getenv("WALK")) : segment ? std::max(kappa, 0.34 / sqrt(tol)) : kappa;
    f.strength_in = upload(a); f.core_in = w.reg ? upload(c) : nullptr;
    f.strength = device<Vec4<T>>(n); f.cell_core = device<double>(2 * f.tree[0].cell_capacity);
    f.multipole = device<T>((size_t)f.tree[0].cell_capacity * nc * stride); f.local = device<T>((size_t)f.tree[1].cell_capacity * nc * stride);
    f.near = device<u32>((size_t)f.tree[1].cell_capacity * kBeside); f.tile_cell = device<u32>(f.tree[1].cell_capacity);
    const bool split3 = !f64 && tol < (charge ? 3e-3 : 9e-4);
    const int parts = f64 ? 0 : split3 ? 2 : 1;
    f.op = upload(st.op); f.m2l = upload(st.m2l);
    f.operators = device<char>((size_t)st.fragments * 64 * (f64 ? 8 : split3 ? 8 : 4) + 65536);
    f.stretch = getenv("STRETCH") ? atof(getenv("STRETCH")) : 1;
    f.normalization = 1; f.core_range = kappa; f.order = P; f.stride = stride; f.components = nc; f.kind = w.kind; f.regularization = w.reg;
    f.inputs_are_f64 = f64 ? 7 : 0; f.out_is_f64 = f64; f.fields = charge ? 4 : w.gradient ? 12 : 3;
    f.field = device<T>((1 + std::min(kMostParts, kPartRows / nt)) * (size_t)nt * f.fields);
    T *main_out = device<T>((size_t)nt * 3), *gradient_out = device<T>((size_t)nt * 9);
    f.out_main = main_out; f.out_gradient = w.gradient ? gradient_out : nullptr;
    // Parts of the columns: one tile a warp; so many of L2L that two blocks fit a multiprocessor.
    const int m2m_parts = (st.op[kSortedTiles] + 7) / 8;
    int l2l_parts = (tiles + 7) / 8 - 1;
    size_t l2l_shared;
    do {
        size_t most = 0;
        l2l_parts++;
        for (int p = 0; p < l2l_parts; p++) {
            size_t n = 0;
            for (int j = p; j < tiles; j += l2l_parts) for (int k = 0; k < 8; k++) n += st.op[kDownHead + 8 * j + k] & 63;
            most = std::max(most, n);
        }
        l2l_shared = 16 * (8 * st.op[kSortedTiles] + 4) * sizeof(T) + most * (f64 || split3 ? 512 : 256);
    } while (l2l_shared > 110000);
    Numbered m2m = f64 ? fmm_m2m_f64 : split3 ? fmm_m2m_f32x3 : fmm_m2m_f32, l2l = f64 ? fmm_l2l_f64 : split3 ? fmm_l2l_f32x3 : fmm_l2l_f32;
    Kernel m2l = nullptr;
    CK(cudaFuncSetAttribute((const void *)l2l, cudaFuncAttributeMaxDynamicSharedMemorySize, l2l_shared));
    {
        const Kernel d[] = {fmm_m2l_f64_1, fmm_m2l_f64_2, fmm_m2l_f64_3, fmm_m2l_f64_4, fmm_m2l_f64_5}, s1[] = {fmm_m2l_f32_1, fmm_m2l_f32_2, fmm_m2l_f32_3}, s3[] = {fmm_m2l_f32x3_1, fmm_m2l_f32x3_2, fmm_m2l_f32x3_3};
        m2l = f64 ? d[st.slots - 1] : split3 ? s3[st.slots - 1] : s1[st.slots - 1];
    }
    cudaFuncAttributes m2l_of;
    CK(cudaFuncGetAttributes(&m2l_of, m2l));
    const int m2l_groups = (m2l_of.maxThreadsPerBlock - 256) / 128, m2l_rows = f64 && st.slots > 4 ? 32 : 48, m2l_lists = 4 * (m2l_rows / nc) * (2 * 33 + 1);
    f.m2l_cells = m2l_rows / nc; f.m2l_stages = std::min(getenv("STAGES") ? atoi(getenv("STAGES")) : 4, (232448 - 8192 - m2l_lists) / (1024 * m2l_rows));
    if ((int)f.m2l_stages > m2l_groups) f.m2l_stages -= f.m2l_stages % m2l_groups;
    const int m2l_shared = f.m2l_stages * 1024 * m2l_rows + m2l_lists;
    CK(cudaFuncSetAttribute((const void *)m2l, cudaFuncAttributeMaxDynamicSharedMemorySize, m2l_shared));
    // Few cells have a kernel of their own.
    Kernel small = nullptr;
    int small_blocks = 0;
    if ((f.max_level <= 2 ? P <= 10 : f.max_level == 3 && P <= 7 && !split3 && nc == 3) && !getenv("MANY")) {
        const Kernel small_of[3][4] = {{fmm_m2l_small_f64_0, fmm_m2l_small_f64_1, fmm_m2l_small_f64_4, fmm_m2l_small_f64_8}, {fmm_m2l_small_f32_0, fmm_m2l_small_f32_1, fmm_m2l_small_f32_4, fmm_m2l_small_f32_8},
                                     {fmm_m2l_small_f32x3_0, fmm_m2l_small_f32x3_1, fmm_m2l_small_f32x3_4, fmm_m2l_small_f32x3_8}};
        small = small_of[parts][P <= 6 ? 0 : P == 7 ? 1 : P == 8 ? 2 : 3];
        for (int level = 2; level <= (int)f.max_level; level++) { const int parents = 1 << 3 * (level - 1), cells = 16 / nc; small_blocks += 8 * ((parents + cells - 1) / cells) << (f.max_level == 2 ? 3 : 0); }
    }
    cudaFuncAttributes small_of_block{};
    if (small) CK(cudaFuncGetAttributes(&small_of_block, small));
    Kernel gather = f64 ? (Kernel)fmm_gather_f64 : (Kernel)fmm_gather_f32, p2m = nullptr;
#define PICK(T_, P_) if (P == P_ && f64 == !strcmp(#T_, "f64")) p2m = charge ? fmm_p2m_charge_##T_##_##P_ : fmm_p2m_vortex_##T_##_##P_;
    EACH_F32(PICK) EACH_F64(PICK)
    Kernel p2p = segment ? (f64 ? fmm_p2p_segment_f64 : fmm_p2p_segment_f32) : charge ? (f64 ? fmm_p2p_charge_f64 : fmm_p2p_charge_f32) : w.reg ? (w.gradient ? (f64 ? fmm_p2p_particle_core_gradient_f64 : fmm_p2p_particle_core_gradient_f32) : (f64 ? fmm_p2p_particle_core_f64 : fmm_p2p_particle_core_f32)) : w.gradient ? (f64 ? fmm_p2p_particle_gradient_f64 : fmm_p2p_particle_gradient_f32) : (f64 ? fmm_p2p_particle_f64 : fmm_p2p_particle_f32);
    Last l2p = charge ? (f64 ? fmm_l2p_force_f64 : fmm_l2p_force_f32) : w.gradient ? (f64 ? fmm_l2p_gradient_f64 : fmm_l2p_gradient_f32) : (f64 ? fmm_l2p_velocity_f64 : fmm_l2p_velocity_f32);
    const size_t queue = 512 * sizeof(Vec4<T>) * 2;
    const size_t p2p_shared = charge ? queue / 2 : queue;
    CK(cudaFuncSetAttribute((const void *)p2p, cudaFuncAttributeMaxDynamicSharedMemorySize, p2p_shared));
    int p2p_blocks; CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&p2p_blocks, (const void *)p2p, 128, p2p_shared));
    Kernel smooth = segment ? (f64 ? fmm_smooth_segment_f64 : fmm_smooth_segment_f32) : w.gradient ? (f64 ? fmm_smooth_particle_gradient_f64 : fmm_smooth_particle_gradient_f32) : (f64 ? fmm_smooth_particle_f64 : fmm_smooth_particle_f32);
    if (w.reg == 3) { // Vatistas: 1 - F is at most half (c/d)^4
        const double eta = getenv("ETA") ? atof(getenv("ETA")) : 2;
        f.smooth_power = 4; f.smooth_limit = pow(eta * tol / (0.5 * 15.8), 2); f.smooth_targets = getenv("GROUP") ? atoi(getenv("GROUP")) : 4000;
        f.smooth_list = device<u32>(4 * (size_t)nt); f.smooth_count = device<u32>(f.tree[1].cell_capacity); f.smooth_box = device<double>(8 * (size_t)f.tree[1].cell_capacity);
        if (!f.smooth_targets) f.smooth_power = 0;
    }
    const size_t smooth_shared = queue + 128 * f.fields * sizeof(T);
    CK(cudaFuncSetAttribute((const void *)smooth, cudaFuncAttributeMaxDynamicSharedMemorySize, smooth_shared));
    int smooth_blocks; CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&smooth_blocks, (const void *)smooth, 128, smooth_shared));
    // Where L2P leaves sums of squares.
    Check check{};
    check.size = device<Squares>(4 * (size_t)f.tree[1].cell_capacity); check.kinds = 1;
    // As many leaves a block as a sixth of a multiprocessor's shared memory holds.
    const int degrees = charge ? P : P - 1;
    auto l2p_bytes = [&](int leaves) { return std::min(leaves, 4) * ((P * (P + 1) * nc * sizeof(T) + 15) / 16 * 16) + leaves * (((degrees * (degrees + 1) * (charge ? 4 : w.gradient ? 12 : 3) * sizeof(T) + 15) / 16 | 1) * 16); };
    int leaves = getenv("LEAVES") ? atoi(getenv("LEAVES")) : 8;
    while (leaves > 1 && l2p_bytes(leaves) > 34800) leaves /= 2;
    const size_t l2p_shared = l2p_bytes(leaves);
    CK(cudaFuncSetAttribute((const void *)l2p, cudaFuncAttributeMaxDynamicSharedMemorySize, l2p_shared));
    auto blocks_of = [](const void *k, int threads, size_t shared) { int n; CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, k, threads, shared)); return n; };
    const int l2p_blocks = blocks_of((const void *)l2p, 128, l2p_shared), m2m_blocks = blocks_of((const void *)m2m, 256, 0), l2l_blocks = blocks_of((const void *)l2l, 256, l2l_shared), p2m_blocks = blocks_of((const void *)p2m, 128, 0);
    printf("blocks a multiprocessor: p2m %d, m2m %d, l2l %d, p2p %d, l2p %d (%d leaves, %zu bytes); parts %d %d (%zu bytes)\n", p2m_blocks, m2m_blocks, l2l_blocks, p2p_blocks, l2p_blocks, leaves, l2p_shared, m2m_parts, l2l_parts, l2l_shared);

    fmm_operators<<<kMaxOrbits + 2, 256>>>(f, (void *)f.operators, tiles, parts);
    CK(cudaDeviceSynchronize());
    const int big = std::max(n, nt), sms = 132;
    const char *pass_names[] = {"clear", "box+keys", "sort", "cells", "lists", "gather", "p2m", "m2m", "m2l", "l2l", "smooth", "p2p", "l2p"};
    const int np = 13;
    cudaEvent_t ev[np + 1]; for (auto &e : ev) CK(cudaEventCreate(&e));
    std::vector<std::vector<float>> times(np + 1);
    auto enqueue = [&](cudaStream_t s, bool timed) {
        int k = 0; auto mark = [&] { if (timed) CK(cudaEventRecord(ev[k++], s)); };
        const dim3 two(std::min(big / 1024 + 1, 4 * sms), 2);
        mark();
        CK(cudaMemsetAsync(f.state, 0, sizeof(State), s));
        for (int t = 0; t < 2; t++) CK(cudaMemsetAsync(f.tree[t].sort_status, 0, (size_t)f.sort_passes * ((f.tree[t].n + 2047) / 2048) * 1024, s));
        mark();
        if (segment) fmm_segments<<<4 * sms, 256, 0, s>>>(f);
        fmm_bounds<<<two, 256, 0, s>>>(f); fmm_keys<<<two, 256, 0, s>>>(f);
        mark();
        for (u32 p = 0; p < f.sort_passes; p++) fmm_sort<<<dim3((big + 2047) / 2048, 2), 256, 0, s>>>(f, p);
        mark();
        fmm_leaves<<<dim3((big + 1023) / 1024, 2), 1024, 0, s>>>(f); fmm_scan<<<dim3(1, 2), 32 * kLevels, 0, s>>>(f);
        fmm_cells<<<dim3((big + 1023) / 1024, 2), 1024, 0, s>>>(f); fmm_links<<<dim3(2 * sms, 2), 256, 0, s>>>(f);
        mark();
        fmm_lists<<<8 * sms, 256, 0, s>>>(f);
        mark();
        gather<<<dim3(8 * sms, 2), 256, 0, s>>>(f);
        mark();
        p2m<<<4 * sms, 128, 0, s>>>(f);
        mark();
        m2m<<<4 * sms, 256, 0, s>>>(f, m2m_parts);
        mark();
        if (small) small<<<small_blocks, small_of_block.maxThreadsPerBlock, 0, s>>>(f);
        else {
            m2l<<<sms, 256 + 128 * m2l_groups, m2l_shared, s>>>(f);
            (f64 ? fmm_add_parts_f64 : fmm_add_parts_f32)<<<2 * sms, 256, 0, s>>>(f);
        }
        mark();
        l2l<<<4 * sms, 256, l2l_shared, s>>>(f, l2l_parts);
        mark();
        if (f.smooth_power) smooth<<<smooth_blocks * sms, 128, smooth_shared, s>>>(f);
        mark();
        p2p<<<12 * sms, 128, p2p_shared, s>>>(f);
        mark();
        l2p<<<8 * sms, 128, l2p_shared, s>>>(f, check, leaves);
        mark();
        CK(cudaGetLastError());
    };
    cudaStream_t stream; CK(cudaStreamCreate(&stream));
    for (int r = 0; r < reps + 1; r++) {
        enqueue(stream, true);
        CK(cudaStreamSynchronize(stream));
        float ms;
        if (r) for (int k = 0; k < np; k++) { CK(cudaEventElapsedTime(&ms, ev[k], ev[k + 1])); times[k].push_back(ms); }
        if (r) { CK(cudaEventElapsedTime(&ms, ev[0], ev[np])); times[np].push_back(ms); }
    }
    auto median = [](std::vector<float> v) { std::sort(v.begin(), v.end()); return v[v.size() / 2]; };
    State s; CK(cudaMemcpy(&s, f.state, sizeof s, cudaMemcpyDeviceToHost));
    printf("flags %u, depth bound %u, deepest %u %u, cells %u %u, near pairs %.4g, core pairs %.4g\n", s.flags, f.max_level, s.deepest[0], s.deepest[1], s.level_begin[0][kLevels], s.level_begin[1][kLevels], (double)s.near_pairs, (double)s.core_pairs);
    std::vector<T> m1(3 * (size_t)nt), m2(3 * (size_t)nt);
    CK(cudaMemcpy(m1.data(), main_out, (charge ? 1 : 3) * sizeof(T) * nt, cudaMemcpyDeviceToHost));
    cudaGraph_t graph; cudaGraphExec_t exec;
    CK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)); enqueue(stream, false); CK(cudaStreamEndCapture(stream, &graph));
    CK(cudaGraphInstantiate(&exec, graph, 0));
    std::vector<float> whole;
    for (int r = 0; r < reps + 1; r++) {
        CK(cudaEventRecord(ev[0], stream)); CK(cudaGraphLaunch(exec, stream)); CK(cudaEventRecord(ev[1], stream)); CK(cudaStreamSynchronize(stream));
        float ms; CK(cudaEventElapsedTime(&ms, ev[0], ev[1])); if (r) whole.push_back(ms);
    }
    CK(cudaMemcpy(m2.data(), main_out, (charge ? 1 : 3) * sizeof(T) * nt, cudaMemcpyDeviceToHost));
    const bool same = !memcmp(m1.data(), m2.data(), (charge ? 1 : 3) * sizeof(T) * nt);

    const int samples = 512;
    std::vector<int> pick(samples); for (auto &p : pick) p = (int)(uniform() * nt);
    double *out = device<double>(12 * samples);
    direct<<<samples, 256>>>(upload(back(x)), upload(back(a)), w.reg ? upload(back(c)) : nullptr, n, w.kind, w.reg, upload(back(y)), upload(pick), out);
    std::vector<double> ref(12 * samples);
    CK(cudaMemcpy(ref.data(), out, ref.size() * 8, cudaMemcpyDeviceToHost));
    std::vector<T> um(3 * (size_t)nt), ug(9 * (size_t)nt);
    CK(cudaMemcpy(um.data(), main_out, um.size() * sizeof(T), cudaMemcpyDeviceToHost)); CK(cudaMemcpy(ug.data(), gradient_out, ug.size() * sizeof(T), cudaMemcpyDeviceToHost));
    double e1 = 0, n1 = 0, e2 = 0, n2 = 0;
    const int M = charge ? 1 : 3, G = charge ? 3 : 9;
    for (int k = 0; k < samples; k++) {
        for (int q = 0; q < M; q++) { const double d = um[(size_t)M * pick[k] + q] - ref[12 * k + q]; e1 += d * d; n1 += ref[12 * k + q] * ref[12 * k + q]; }
        if (w.gradient) for (int q = 0; q < G; q++) { const double d = ug[(size_t)G * pick[k] + q] - ref[12 * k + M + q]; e2 += d * d; n2 += ref[12 * k + M + q] * ref[12 * k + M + q]; }
    }
    printf("error: main %.3e gradient %.3e   bits repeat: %s\n", sqrt(e1 / n1), w.gradient ? sqrt(e2 / n2) : 0.0, same ? "yes" : "NO");
    for (int k = 0; k < np; k++) printf("%s %.3f  ", pass_names[k], median(times[k]));
    std::sort(whole.begin(), whole.end());
    printf("\n  == total %.3f ms; graph %.3f ms (%.3f .. %.3f)\n", median(times[np]), whole[whole.size() / 2], whole.front(), whole.back());
    fflush(stdout);
    CK(cudaDeviceReset());
}

int main(int argc, char **argv) {
    if (argc < 5) { printf("fmm WORKLOAD N TOLERANCE f32|f64 [cap] [alpha] [kappa] [reps]\n"); return 1; }
    const int n = (int)atof(argv[2]), cap = argc > 5 ? atoi(argv[5]) : 64, reps = argc > 8 ? atoi(argv[8]) : 10;
    const double alpha = argc > 6 ? atof(argv[6]) : 3, kappa = argc > 7 ? atof(argv[7]) : 4;
    if (!strcmp(argv[4], "f32")) run<float>(argv[1], n, atof(argv[3]), cap, alpha, kappa, reps);
    else run<double>(argv[1], n, atof(argv[3]), cap, alpha, kappa, reps);
}
