// The trees of a small problem (kernels/fmm_small.cuh) against those of the kernels for any size (fmm_tree.cu): every
// number that the other passes read must be the same; so must be those of the clusters (kernels/fmm_cluster.cuh, on Hopper). Then the time of both, and what a graph of empty kernels takes.
//   nvcc -std=c++17 -O3 -arch=sm_90 -o small_tree tests/gpu/small_tree.cu kernels/fmm_tree.cu
//   small_tree [REPETITIONS]; small_tree POINTS LEVELS: time of the kernels for any size
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "../../kernels/fmm.cuh"
using namespace fmm;
#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s: %s line %d\n", #x, cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)
#define K(name) extern "C" __global__ void name(const __grid_constant__ Fmm f);
K(fmm_bounds) K(fmm_keys) K(fmm_leaves) K(fmm_scan) K(fmm_cells) K(fmm_links) K(fmm_gather_f32) K(fmm_gather_f64) K(fmm_lists) K(fmm_small_boxes) K(fmm_small_keys)
K(fmm_cluster_trees) K(fmm_cluster_finish_f32) K(fmm_cluster_finish_f64) K(fmm_small_ranks_f32) K(fmm_small_ranks_f64) K(fmm_small_cells) K(fmm_small_lists)
extern "C" __global__ void fmm_sort(const __grid_constant__ Fmm f, u32 pass);
constexpr int kTile = 2048; // points of a block of fmm_sort
__global__ void nothing() {}

template <class V> static V *device(size_t n) { V *p; CK(cudaMalloc(&p, (n + 1) * sizeof(V))); CK(cudaMemset(p, 0xee, (n + 1) * sizeof(V))); return p; }
template <class V> static V *upload(const std::vector<V> &v) { V *p = device<V>(v.size()); CK(cudaMemcpy(p, v.data(), v.size() * sizeof(V), cudaMemcpyHostToDevice)); return p; }
template <class V> static std::vector<V> host(const void *p, size_t n) { std::vector<V> v(n); CK(cudaMemcpy(v.data(), p, n * sizeof(V), cudaMemcpyDeviceToHost)); return v; }

static uint64_t seed = 88172645463325252ull;
static double uniform() { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return (seed >> 11) * 0x1p-53; }

struct Case { const char *shape; int n[2], capacity, max_level, least_level, regularization; double stretch; bool f64; };

static std::vector<double> cloud(const char *shape, int n) {
    std::vector<double> x(3 * n);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) x[3 * i + k] = uniform();
        if (!strcmp(shape, "line")) x[3 * i] = x[3 * i + 1] = 0.3;
        if (!strcmp(shape, "spot") && i % 2) for (int k = 0; k < 3; k++) x[3 * i + k] = 0.3 + 1e-4 * x[3 * i + k];
        if (!strcmp(shape, "point")) for (int k = 0; k < 3; k++) x[3 * i + k] = 0.7;
    }
    return x;
}

struct Arrays { Fmm f; const void *x[2], *strength, *core; };

template <class T> static void lay_out(Arrays &a, const Case &c) {
    Fmm &f = a.f;
    f = Fmm{};
    f.state = device<State>(1);
    f.max_level = c.max_level; f.sort_passes = (3 * c.max_level + 7) / 8; f.least_level = c.least_level; f.stretch = c.stretch;
    f.box_side = c.f64 ? 1 : 16384; f.kind = kParticle; f.regularization = c.regularization; f.default_core = 0.01;
    f.inputs_are_f64 = c.f64 ? 3 : 0; f.strength_in = a.strength; f.core_in = a.core;
    for (int k = 0; k < 2; k++) {
        Tree &t = f.tree[k];
        const size_t m = std::max(c.n[k], 32); // as an arena's least part
        t.x = a.x[k]; t.n = c.n[k]; t.capacity = c.capacity; t.x_is_f64 = c.f64; t.cell_capacity = m > 100000 ? m / 4 : 22 * m + 40;
        t.key = device<u64>(m); t.key_other = device<u64>(m); t.order = device<u32>(m); t.order_other = device<u32>(m);
        t.leaf_level = device<uint8_t>(m); t.block_count = device<u32>((m / 1024 + 1) * kLevels); t.sort_status = device<u32>((size_t)f.sort_passes * (m / kTile + 1) * 256);
        t.point = device<Vec4<T>>(2 * m);
        t.begin = device<u32>(t.cell_capacity); t.end = device<u32>(t.cell_capacity); t.parent = device<u32>(t.cell_capacity);
        t.child = device<u32>(t.cell_capacity); t.info = device<u32>(t.cell_capacity); t.cell_key = device<u64>(t.cell_capacity);
    }
    f.strength = device<Vec4<T>>(c.n[0]); f.cell_core = device<double>(2 * f.tree[0].cell_capacity);
    f.near = device<u32>((size_t)f.tree[1].cell_capacity * kBeside); f.tile_cell = device<u32>(f.tree[1].cell_capacity);
}

static void general(const Fmm &f, bool f64, cudaStream_t s) {
    const int big = std::max(f.tree[0].n, f.tree[1].n), sms = 132;
    const dim3 two(std::min(big / 1024 + 1, 4 * sms), 2);
    CK(cudaMemsetAsync(f.state, 0, sizeof(State), s));
    for (int t = 0; t < 2; t++) CK(cudaMemsetAsync(f.tree[t].sort_status, 0, (size_t)f.sort_passes * ((f.tree[t].n + (kTile - 1)) / kTile) * 1024, s));
    fmm_bounds<<<two, 256, 0, s>>>(f); fmm_keys<<<two, 256, 0, s>>>(f);
    for (u32 p = 0; p < f.sort_passes; p++) fmm_sort<<<dim3((big + (kTile - 1)) / kTile, 2), 256, 0, s>>>(f, p);
    fmm_leaves<<<dim3((big + 1023) / 1024, 2), 1024, 0, s>>>(f); fmm_scan<<<dim3(1, 2), 32 * kLevels, 0, s>>>(f);
    fmm_cells<<<dim3((big + 1023) / 1024, 2), 1024, 0, s>>>(f); fmm_links<<<dim3(2 * sms, 2), 256, 0, s>>>(f);
    fmm_lists<<<8 * sms, 256, 0, s>>>(f);
    if (f64) fmm_gather_f64<<<dim3(8 * sms, 2), 256, 0, s>>>(f); else fmm_gather_f32<<<dim3(8 * sms, 2), 256, 0, s>>>(f);
    CK(cudaGetLastError());
}

// The kernels for small problems; `cluster`: those for Hopper.
static void small(const Fmm &f, bool f64, bool cluster, cudaStream_t s) {
    const int most = std::max(f.tree[0].n, f.tree[1].n), keys = 4 * ((most + 511) / 512 * 512);
    auto ranks = f64 ? fmm_small_ranks_f64 : fmm_small_ranks_f32, finish = f64 ? fmm_cluster_finish_f64 : fmm_cluster_finish_f32;
    for (auto kernel : {ranks, fmm_small_cells, fmm_cluster_trees}) CK(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    if (cluster) {
        fmm_cluster_trees<<<dim3(8, 2), 1024, (size_t)(most > 8192 ? 128 : 64) << 3 * f.max_level, s>>>(f);
        finish<<<dim3(66, 4), 256, 0, s>>>(f);
        CK(cudaGetLastError());
        return;
    }
    fmm_small_boxes<<<dim3((most + 255) / 256, 2), 256, 0, s>>>(f);
    fmm_small_keys<<<dim3((most + 511) / 512, 2), 512, 0, s>>>(f);
    ranks<<<dim3((most + 63) / 64, 2), 256, keys, s>>>(f);
    fmm_small_cells<<<dim3(1, 2), 1024, keys, s>>>(f);
    fmm_small_lists<<<dim3(66, 2), 256, 0, s>>>(f);
    CK(cudaGetLastError());
}

static int wrong = 0;
static bool same(const char *what, const void *a, const void *b, size_t bytes) {
    const auto x = host<char>(a, bytes), y = host<char>(b, bytes);
    if (!memcmp(x.data(), y.data(), bytes)) return true;
    size_t at = 0;
    while (x[at] == y[at]) at++;
    printf("  %s differs from byte %zu of %zu on\n", what, at, bytes);
    wrong++;
    return false;
}

template <class T> static void compare(const Arrays &a, const Arrays &b) {
    State s, o;
    CK(cudaMemcpy(&s, a.f.state, sizeof s, cudaMemcpyDeviceToHost)); CK(cudaMemcpy(&o, b.f.state, sizeof o, cudaMemcpyDeviceToHost));
    auto check = [](bool ok, const char *what) { if (!ok) { printf("  %s differs\n", what); wrong++; } };
    check(s.flags == o.flags, "flags"); check(!memcmp(s.cells, o.cells, 8) && !memcmp(s.deepest, o.deepest, 8), "counts of cells");
    check(!memcmp(&s.root, &o.root, sizeof s.root), "root"); check(!memcmp(s.level_begin, o.level_begin, sizeof s.level_begin), "levels");
    check(!memcmp(s.bin_count, o.bin_count, sizeof s.bin_count), "bins"); check(!memcmp(s.translated, o.translated, sizeof s.translated) && !memcmp(s.work_ticket, o.work_ticket, sizeof s.work_ticket) && o.near_pairs == 0 && o.parts == 0, "counters");
    for (int k = 0; k < 2; k++) {
        const Tree &t = a.f.tree[k], &u = b.f.tree[k];
        const size_t n = t.n, m = s.level_begin[k][kLevels];
        same("key", t.key, u.key, 8 * n); same("order", t.order, u.order, 4 * n); same("leaf_level", t.leaf_level, u.leaf_level, n); same("point", t.point, u.point, 4 * sizeof(T) * n);
        same("begin", t.begin, u.begin, 4 * m); same("end", t.end, u.end, 4 * m); same("parent", t.parent, u.parent, 4 * m); same("child", t.child, u.child, 4 * m);
        same("info", t.info, u.info, 4 * m); same("cell_key", t.cell_key, u.cell_key, 8 * m);
    }
    same("strength", a.f.strength, b.f.strength, 4 * sizeof(T) * a.f.tree[0].n); same("cell_core", a.f.cell_core, b.f.cell_core, 8 * s.level_begin[0][kLevels]);
    same("near", a.f.near, b.f.near, 4 * (size_t)kBeside * s.level_begin[1][kLevels]);
    // Cells of a bin come in any order.
    auto x = host<u32>(a.f.tile_cell, s.level_begin[1][kLevels]), y = host<u32>(b.f.tile_cell, s.level_begin[1][kLevels]);
    for (size_t k = 0, at = 0; k < kBins && x.size(); at += s.bin_count[k++]) { std::sort(x.begin() + at, x.begin() + at + s.bin_count[k]); std::sort(y.begin() + at, y.begin() + at + s.bin_count[k]); }
    check(x == y, "tile_cell");
}

template <class F> static float replay(F &&work, int times) {
    cudaStream_t s; cudaGraph_t graph; cudaGraphExec_t exec; cudaEvent_t a, b;
    CK(cudaStreamCreate(&s)); CK(cudaEventCreate(&a)); CK(cudaEventCreate(&b));
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal)); work(s); CK(cudaStreamEndCapture(s, &graph));
    CK(cudaGraphInstantiate(&exec, graph, 0));
    std::vector<float> us;
    for (int k = 0; k < times; k++) {
        CK(cudaEventRecord(a, s)); CK(cudaGraphLaunch(exec, s)); CK(cudaEventRecord(b, s)); CK(cudaStreamSynchronize(s));
        float ms; CK(cudaEventElapsedTime(&ms, a, b)); us.push_back(1e3f * ms);
    }
    std::sort(us.begin(), us.end());
    return us[us.size() / 2];
}

template <class T> static void run(const Case &c, int times) {
    Arrays a, b;
    for (int k = 0; k < 2; k++) { const auto x = cloud(c.shape, c.n[k]); b.x[k] = a.x[k] = upload(std::vector<T>(x.begin(), x.end())); }
    const auto q = cloud("cube", c.n[0]);
    std::vector<T> core(c.n[0]);
    for (auto &v : core) v = (T)(0.02 * (0.1 + uniform()));
    b.strength = a.strength = upload(std::vector<T>(q.begin(), q.end())); b.core = a.core = c.regularization ? upload(core) : nullptr;
    lay_out<T>(a, c); lay_out<T>(b, c);
    CK(cudaMemset(b.f.state, 0, sizeof(State)));
    general(a.f, c.f64, 0); CK(cudaDeviceSynchronize());
    const int before = wrong;
    for (int k = 0; k < 4; k++) { // the second finds what the first left
        if (k >= 2 && c.max_level > 3) break;
        if (k == 2) CK(cudaMemset(b.f.state, 0xff, offsetof(State, longest)));
        for (const Tree &t : b.f.tree) for (void *p : {(void *)t.key, (void *)t.order, t.point, (void *)t.info, (void *)t.begin}) CK(cudaMemset(p, 0xdd, 128));
        small(b.f, c.f64, k >= 2, 0); CK(cudaDeviceSynchronize()); compare<T>(a, b);
    }
    State s; CK(cudaMemcpy(&s, a.f.state, sizeof s, cudaMemcpyDeviceToHost));
    printf("%-5s %5d + %5d %s, leaves of %3d, depth at most %2d (found %u), %5u + %5u cells, flags %u: %s", c.shape, c.n[0], c.n[1], c.f64 ? "f64" : "f32", c.capacity, c.max_level, s.deepest[0],
           s.cells[0], s.cells[1], s.flags, wrong == before ? "same" : "DIFFERENT");
    if (times) printf("; %.1f us, now %.1f us", replay([&](cudaStream_t st) { general(a.f, c.f64, st); }, times), replay([&](cudaStream_t st) { small(b.f, c.f64, false, st); }, times));
    if (times && c.max_level < 4) printf(", as clusters %.1f us", replay([&](cudaStream_t st) { small(b.f, c.f64, true, st); }, times));
    printf("\n");
    fflush(stdout);
    for (Arrays *w : {&a, &b}) for (int k = 0; k < 2; k++) { const Tree &t = w->f.tree[k]; for (void *p : {(void *)t.key, (void *)t.key_other, (void *)t.order, (void *)t.order_other, t.point, (void *)t.info, (void *)t.cell_key}) cudaFree(p); }
}

// Time of the trees and lists of a large cube.
template <class T> static void time_large(int n, int max_level) {
    Arrays a;
    const auto x = cloud("cube", n);
    a.x[0] = upload(std::vector<T>(x.begin(), x.end())); a.x[1] = upload(std::vector<T>(x.rbegin(), x.rend())); a.strength = a.x[1]; a.core = nullptr;
    lay_out<T>(a, Case{"cube", {n, n}, 99, max_level, 2, 0, 1.12, sizeof(T) == 8});
    printf("%d points, depth at most %d: trees and lists %.1f us, ", n, max_level, replay([&](cudaStream_t s) { general(a.f, sizeof(T) == 8, s); }, 20));
    bool sorted = true;
    for (int k = 0; k < 2; k++) { const auto v = host<u64>(a.f.tree[k].key, n); sorted &= std::is_sorted(v.begin(), v.end()); }
    printf(sorted ? "sorted\n" : "NOT SORTED\n");
    wrong += !sorted;
}

int main(int argc, char **argv) {
    if (argc > 2) { time_large<float>((int)atof(argv[1]), atoi(argv[2])); return wrong != 0; }
    const int times = argc > 1 ? atoi(argv[1]) : 50;
    const Case cases[] = {
        {"cube", {5000, 5000}, 63, 4, 2, 0, 1.45, false}, {"cube", {5000, 5000}, 63, 3, 2, 0, 1.45, false}, {"cube", {5000, 5000}, 120, 3, 1, 0, 1, false}, {"cube", {5000, 5000}, 160, 2, 1, 0, 1, false}, {"cube", {5000, 5000}, 160, 2, 1, 0, 1, true}, {"cube", {16384, 12000}, 160, 3, 1, 3, 1, true},
        {"cube", {16384, 10000}, 160, 2, 1, 0, 1, false}, {"cube", {3000, 3000}, 63, 3, 2, 0, 1, true}, {"cube", {10000, 10000}, 60, 3, 1, 6, 1, false}, {"spot", {9000, 700}, 63, 3, 2, 0, 1, false}, {"line", {4000, 8000}, 20, 3, 1, 3, 1.1, true}, {"cube", {1, 8191}, 30, 3, 2, 3, 1, false}, {"cube", {2, 3}, 63, 1, 1, 0, 1, false}, {"point", {1, 1}, 63, 0, 0, 0, 1, true}, {"cube", {5000, 5000}, 63, 4, 2, 0, 1.45, true},
        {"cube", {8192, 8192}, 63, 4, 2, 0, 1, true}, {"cube", {16384, 16384}, 63, 4, 2, 0, 1, false}, {"cube", {16384, 16000}, 63, 4, 2, 0, 1.2, true}, {"cube", {8192, 1}, 63, 4, 2, 3, 1, false},
        {"cube", {1, 8191}, 30, 4, 2, 3, 1, false}, {"cube", {1023, 1025}, 63, 4, 2, 6, 1, true}, {"cube", {33, 7000}, 8, 4, 1, 6, 1.2, true}, {"spot", {5000, 3000}, 63, 4, 2, 0, 1, true},
        {"spot", {5000, 3000}, 63, 4, 2, 0, 1, false}, {"line", {4000, 8000}, 20, 4, 1, 3, 1.1, true}, {"line", {16000, 12000}, 2, 4, 1, 0, 1.1, true}, {"point", {3000, 2000}, 63, 4, 1, 0, 1, true},
        {"point", {3000, 2000}, 63, 4, 1, 0, 1, false}, {"cube", {8000, 5000}, 1000, 3, 0, 0, 1, true}, {"cube", {1000, 1000}, 63, 4, 1, 0, 1, false}, {"cube", {2, 3}, 63, 4, 1, 0, 1, false}};
    for (const Case &c : cases) if (c.f64) run<double>(c, times); else run<float>(c, times);
    if (times) {
        printf("a graph of k empty kernels, us:");
        for (int k : {1, 2, 3, 5, 10, 20}) printf(" %d: %.1f", k, replay([&](cudaStream_t s) { for (int i = 0; i < k; i++) nothing<<<132, 128, 0, s>>>(); }, 4 * times));
        printf("\nthe same, each may start before the one before it ends:");
        for (int k : {2, 5, 10, 20}) printf(" %d: %.1f", k, replay([&](cudaStream_t s) {
            cudaLaunchAttribute early{}; early.id = cudaLaunchAttributeProgrammaticStreamSerialization; early.val.programmaticStreamSerializationAllowed = 1;
            cudaLaunchConfig_t how{}; how.gridDim = 132; how.blockDim = 128; how.stream = s; how.attrs = &early; how.numAttrs = 1;
            for (int i = 0; i < k; i++) { how.numAttrs = i > 0; CK(cudaLaunchKernelEx(&how, nothing)); }
        }, 4 * times));
        cudaEvent_t marks[20], fork;
        cudaStream_t side;
        for (auto &e : marks) CK(cudaEventCreate(&e));
        CK(cudaEventCreate(&fork)); CK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
        printf("\nwith the time taken after each:");
        for (int k : {2, 5, 10}) printf(" %d: %.1f", k, replay([&](cudaStream_t s) { for (int i = 0; i < k; i++) { nothing<<<132, 128, 0, s>>>(); CK(cudaEventRecordWithFlags(marks[i], s, cudaEventRecordExternal)); } }, 4 * times));
        printf("; on a branch:");
        for (int k : {2, 5, 10}) printf(" %d: %.1f", k, replay([&](cudaStream_t s) {
            for (int i = 0; i < k; i++) {
                nothing<<<132, 128, 0, s>>>();
                CK(cudaEventRecord(fork, s)); CK(cudaStreamWaitEvent(side, fork, 0)); CK(cudaEventRecordWithFlags(marks[i], side, cudaEventRecordExternal));
            }
            CK(cudaEventRecord(fork, side)); CK(cudaStreamWaitEvent(s, fork, 0));
        }, 4 * times));
        void *p = device<char>(20000);
        printf("\na clear of 20 KB, then one kernel: %.1f\n", replay([&](cudaStream_t s) { CK(cudaMemsetAsync(p, 0, 20000, s)); nothing<<<132, 128, 0, s>>>(); }, 4 * times));
    }
    printf(wrong ? "%d differences\n" : "no difference\n", wrong);
    return wrong != 0;
}
