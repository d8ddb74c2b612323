/* The ground plane and flows on a GPU, whose state is in its memory, against the CPU: host and device arrays of a plan, every
 * kind of element and every integrator, elements that come and go, device arrays of a flow, callbacks, checkpoints, pictures. Needs a GPU; exit code 1 when a case failed. */
#include <math.h>
#include <string.h>
#include "gpu.h"

enum { N = 20000, H = WFMM_MEMORY_HOST, FEW = 1500, KINDS = 5, QUANTITIES = 7 };

static double distance(const double *a, const double *b, int64_t n) {
    double d = 0, s = 0;
    for (int64_t k = 0; k < n; k++) { d += (a[k] - b[k]) * (a[k] - b[k]); s += b[k] * b[k]; }
    return sqrt(d / s);
}

static wfmm_plan_options sums(int method, double tolerance, int plane, int precision) {
    wfmm_plan_options o;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = method; o.tolerance = tolerance; o.core_radius = 0.005; o.plane_axis = plane; o.plane_position = plane ? -0.1 : 0; o.precision = precision;
    return o;
}

/* Particles above a plane: the FMM on the GPU against the direct sum on the CPU, with host and with device arrays. */
static void planes(wfmm_session *cpu, wfmm_session *gpu, const double *x, const double *a) {
    double *u[2], *g[2];
    for (int k = 0; k < 2; k++) {
        wfmm_plan_options o = sums(k ? WFMM_METHOD_FMM : WFMM_METHOD_DIRECT, k ? 1e-5 : 1e-10, 3, WFMM_PRECISION_F64);
        wfmm_plan *p = NULL;
        u[k] = calloc(3 * N, 8), g[k] = calloc(9 * N, 8);
        wfmm_status s = wfmm_plan_create(k ? gpu : cpu, &o, &p);
        s = s ? s : wfmm_plan_set_particles_f64(p, N, x, a, NULL, H);
        s = s ? s : wfmm_plan_set_targets_f64(p, N, x, H);
        expect(!(s ? s : wfmm_plan_evaluate_f64(p, u[k], g[k], H)), k ? "plane on the GPU" : "plane on the CPU");
        double e = 1;
        if (k) expect(!wfmm_plan_check_f64(p, 500, 1, &e) && e <= 1e-5, "check with a plane");
        wfmm_plan_destroy(&p);
    }
    double e = distance(u[1], u[0], 3 * N), eg = distance(g[1], g[0], 9 * N);
    printf("plane: error %.1e, gradient %.1e\n", e, eg);
    expect(e <= 1e-5 && eg <= 3e-4, "GPU and CPU agree with a plane");
    wfmm_plan_options o = sums(WFMM_METHOD_FMM, 1e-5, 3, WFMM_PRECISION_F64);
    wfmm_plan *p = NULL;
    uint64_t dx = on_device(x, 3 * N * 8), du = on_device(NULL, 3 * N * 8), dg = on_device(NULL, 9 * N * 8);
    wfmm_status s = wfmm_plan_create(gpu, &o, &p);
    s = s ? s : wfmm_plan_set_particles_f64(p, N, x, a, NULL, H);
    s = s ? s : wfmm_plan_set_targets_f64(p, N, (const double *)dx, WFMM_MEMORY_DEVICE);
    expect(!(s ? s : wfmm_plan_evaluate_f64(p, (double *)du, (double *)dg, WFMM_MEMORY_DEVICE)), "plane with device arrays");
    cu_out(u[1], du, 3 * N * 8), cu_out(g[1], dg, 9 * N * 8);
    e = distance(u[1], u[0], 3 * N), eg = distance(g[1], g[0], 9 * N);
    printf("plane, device arrays: error %.1e, gradient %.1e\n", e, eg);
    expect(e <= 1e-5 && eg <= 3e-4, "GPU and CPU agree with a plane and device arrays");
    wfmm_plan_destroy(&p);
    cu_free(dx), cu_free(du), cu_free(dg);
    for (int k = 0; k < 2; k++) free(u[k]), free(g[k]);
}

static wfmm_flow *flow(wfmm_session *s, const wfmm_plan_options *o, int integrator, int stretching) {
    wfmm_flow_options f;
    wfmm_flow *flow = NULL;
    wfmm_flow_options_init(&f, sizeof f);
    f.integrator = integrator; f.stretching = stretching; f.fluid_viscosity = 1.8e-5; f.fluid_density = 1.2; f.gravity[2] = -9.81;
    expect(!wfmm_flow_create(s, o, &f, &flow), "a flow");
    return flow;
}

/* A wake of particles and dust over a plane, stepped on both. */
static void steps(wfmm_session *cpu, wfmm_session *gpu, const double *x, const double *a, const double *d, const double *rho) {
    double *got[2];
    for (int k = 0; k < 2; k++) {
        wfmm_plan_options o = sums(WFMM_METHOD_FMM, 1e-5, 3, WFMM_PRECISION_F64);
        wfmm_flow *f = flow(k ? gpu : cpu, &o, WFMM_INTEGRATOR_RK3, WFMM_STRETCHING_TRANSPOSE);
        got[k] = calloc(6 * N, 8);
        wfmm_status s = wfmm_flow_set_particles_f64(f, N, x, a, NULL, H);
        s = s ? s : wfmm_flow_set_dust_f64(f, N, x, NULL, d, rho, H);
        s = s ? s : wfmm_flow_advance(f, 1e-3, 3);
        s = s ? s : wfmm_flow_get_f64(f, WFMM_KIND_PARTICLES, WFMM_QUANTITY_STRENGTH, N, got[k], NULL, H);
        expect(!(s ? s : wfmm_flow_get_f64(f, WFMM_KIND_DUST, WFMM_QUANTITY_VELOCITY, N, got[k] + 3 * N, NULL, H)), "three steps");
        wfmm_report r;
        r.struct_size = sizeof r;
        expect(!wfmm_flow_report(f, &r) && r.backend == (k ? WFMM_BACKEND_CUDA : WFMM_BACKEND_CPU), "where it was computed");
        wfmm_flow_destroy(&f);
    }
    double strength = distance(got[1], got[0], 3 * N), dust = distance(got[1] + 3 * N, got[0] + 3 * N, 3 * N);
    printf("flow: strengths differ by %.1e, dust by %.1e\n", strength, dust);
    expect(strength <= 1e-5 && dust <= 1e-5, "GPU and CPU agree after three steps");
}

/* Points of a helix as filaments or as bound segments. */
static wfmm_status lines(wfmm_flow *f, int64_t n, double radius, int bound) {
    double *x = malloc(3 * (n + 1) * 8), *gamma = malloc(n * 8), *core = malloc(n * 8);
    int32_t *ends = malloc(2 * n * 4);
    for (int64_t k = 0; k <= n; k++) x[3 * k] = 0.5 + radius * cos(0.1 * k), x[3 * k + 1] = 0.5 + radius * sin(0.1 * k), x[3 * k + 2] = 0.8 * k / n;
    for (int64_t k = 0; k < n; k++) ends[2 * k] = k, ends[2 * k + 1] = k + 1, gamma[k] = 0.1, core[k] = 0.02;
    wfmm_status s = bound ? wfmm_flow_set_bound_segments_f64(f, n + 1, x, n, 2, ends, gamma, core, H) : wfmm_flow_add_filaments_f64(f, n + 1, x, n, 2, ends, gamma, core, H);
    free(x), free(gamma), free(core), free(ends);
    return s;
}

/* Dust near the ground, particles and tracers anywhere; the same numbers for the same seed. */
static wfmm_status points(wfmm_flow *f, int64_t n, unsigned seed) {
    srand(seed);
    double *x = random_array(3 * n, 0, 1), *a = random_array(3 * n, -1e-4, 1e-4), *v = random_array(3 * n, -0.3, 0.3), *d = random_array(n, 1e-3, 3e-3), *rho = random_array(n, 2, 3), *core = random_array(n, 0.03, 0.05);
    wfmm_status s = wfmm_flow_add_particles_f64(f, n, x, a, core, H);
    s = s ? s : wfmm_flow_add_tracers_f64(f, n, v, H);
    for (int64_t k = 0; k < n; k++) x[3 * k + 2] = -0.1 + 0.01 * x[3 * k + 2];
    s = s ? s : wfmm_flow_add_dust_f64(f, n, x, v, d, rho, H);
    free(x), free(a), free(v), free(d), free(rho), free(core);
    return s;
}

/* The largest difference of any quantity of any kind, relative to the largest number of that quantity; -1 where rows differ. */
static double farthest(wfmm_flow *got, wfmm_flow *want) {
    double worst = 0;
    for (int kind = 0; kind < KINDS; kind++)
        for (int quantity = 0; quantity < QUANTITIES; quantity++) {
            int64_t n[2], points[2];
            wfmm_flow *flows[2] = {got, want};
            double *x[2];
            int64_t *id[2];
            wfmm_status s[2];
            for (int k = 0; k < 2; k++) {
                wfmm_flow_counts(flows[k], kind, &n[k], &points[k]);
                const int64_t most = n[k] > points[k] ? n[k] : points[k];
                x[k] = calloc(3 * most + 3, 8), id[k] = calloc(most + 1, 8);
                s[k] = wfmm_flow_get_f64(flows[k], kind, quantity, most, x[k], id[k], H);
            }
            if (s[0] != s[1] || n[0] != n[1] || points[0] != points[1] || memcmp(id[0], id[1], 8 * n[0])) worst = -1;
            double size = 1e-3, most = 0;
            const int64_t rows = n[0] > points[0] ? n[0] : points[0];
            for (int64_t k = 0; worst >= 0 && k < 3 * rows; k++) size = fmax(size, fabs(x[1][k])), most = fabs(x[0][k] - x[1][k]) <= most ? most : fabs(x[0][k] - x[1][k]);
            if (worst >= 0 && !(most <= worst * size)) worst = most / size;
            for (int k = 0; k < 2; k++) free(x[k]), free(id[k]);
        }
    return worst;
}

static wfmm_flow *of_everything(wfmm_session *s, int integrator, int plane, double split) {
    wfmm_plan_options o = sums(WFMM_METHOD_DIRECT, 1e-10, plane, WFMM_PRECISION_F64);
    wfmm_flow_options f;
    wfmm_flow *flow = NULL;
    wfmm_flow_options_init(&f, sizeof f);
    o.particle_regularization = WFMM_REG_GAUSS_ERF;
    f.integrator = integrator, f.stretching = WFMM_STRETCHING_MIXED, f.spreading = WFMM_SPREADING_CORES, f.viscosity = 1e-4, f.squire = 1e-3;
    f.fluid_viscosity = 1e-3, f.fluid_density = 0.5, f.gravity[2] = -0.5, f.restitution = 0.5, f.friction = 0.2, f.split_length = split;
    const double wind[3] = {0.1, -0.05, 0.02};
    wfmm_status status = wfmm_flow_create(s, &o, &f, &flow);
    status = status ? status : points(flow, FEW, 1);
    status = status ? status : lines(flow, 200, 0.3, 0);
    status = status ? status : lines(flow, 90, 0.2, 1);
    expect(!(status ? status : wfmm_flow_set_free_stream(flow, wind)), "a flow of everything");
    return flow;
}

/* Every kind, every integrator, with and without the ground: direct sums on both sides differ by rounding. */
static void every_kind(wfmm_session *cpu, wfmm_session *gpu) {
    static const char *const names[] = {"Euler", "AB2", "RK3", "RK4"};
    for (int plane = 0; plane <= 3; plane += 3)
        for (int integrator = 0; integrator < 4; integrator++) {
            wfmm_flow *f[2] = {of_everything(gpu, integrator, plane, 0), of_everything(cpu, integrator, plane, 0)};
            wfmm_status s = 0;
            for (int k = 0; k < 2; k++) {
                s = s ? s : wfmm_flow_advance(f[k], 0.01, 2);
                s = s ? s : wfmm_flow_advance(f[k], 0.015, 2);
            }
            expect(!s, "four steps");
            const double worst = farthest(f[0], f[1]);
            printf("%s, plane %d: differs by %.1e\n", names[integrator], plane, worst);
            expect(worst >= 0 && worst <= 1e-8, "every kind of element as on the CPU");
            wfmm_diagnostics d[2];
            for (int k = 0; k < 2; k++) wfmm_diagnostics_init(&d[k], sizeof d[k]), wfmm_flow_diagnostics(f[k], &d[k]);
            expect(fabs(d[0].largest_displacement - d[1].largest_displacement) <= 1e-9, "largest displacement");
            wfmm_flow_destroy(&f[0]), wfmm_flow_destroy(&f[1]);
        }
}

/* Elements that are added, removed, renewed and split; then a checkpoint of the GPU's flow that goes on on the CPU. */
static void edits(wfmm_session *cpu, wfmm_session *gpu) {
    const int64_t gone[3] = {0, 7, FEW - 1};
    wfmm_flow *f[2] = {of_everything(gpu, WFMM_INTEGRATOR_AB2, 3, 0.031), of_everything(cpu, WFMM_INTEGRATOR_AB2, 3, 0.031)};
    int64_t before, after;
    wfmm_status s = wfmm_flow_counts(f[1], WFMM_KIND_FILAMENTS, &before, NULL);
    for (int k = 0; k < 2; k++) {
        s = s ? s : wfmm_flow_advance(f[k], 0.01, 2);
        s = s ? s : points(f[k], 100, 2);
        s = s ? s : lines(f[k], 70, 0.25, 1);
        s = s ? s : wfmm_flow_advance(f[k], 0.01, 2);
        s = s ? s : wfmm_flow_remove(f[k], WFMM_KIND_DUST, 3, gone, H);
        s = s ? s : wfmm_flow_remove(f[k], WFMM_KIND_PARTICLES, 3, gone, H);
        s = s ? s : lines(f[k], 60, 0.15, 0);
        s = s ? s : wfmm_flow_advance(f[k], 0.01, 2);
    }
    wfmm_flow_counts(f[1], WFMM_KIND_FILAMENTS, &after, NULL);
    expect(!s && after > before + 60, "edits, and segments that are split");
    double worst = farthest(f[0], f[1]);
    printf("edits: differs by %.1e\n", worst);
    expect(worst >= 0 && worst <= 1e-7, "edits as on the CPU");
    wfmm_flow *again = NULL;
    expect(!wfmm_flow_save(f[0], "flow-of-gpu.npz") && !wfmm_flow_load(cpu, "flow-of-gpu.npz", &again), "a checkpoint");
    expect(!wfmm_flow_advance(again, 0.01, 2) && !wfmm_flow_advance(f[0], 0.01, 2), "steps after it");
    worst = farthest(f[0], again);
    printf("checkpoint: differs by %.1e\n", worst);
    expect(worst >= 0 && worst <= 1e-8, "the checkpoint goes on on the CPU");
    wfmm_flow_destroy(&again), wfmm_flow_destroy(&f[0]), wfmm_flow_destroy(&f[1]);
    remove("flow-of-gpu.npz");
}

/* Device memory that gets `from` once the default stream has done much else. */
static void write_late(uint64_t to, uint64_t from, size_t size) {
    for (int k = 0; k < 50; k++) cu_clear(to, 0xff, size, NULL);
    cu_copy(to, from, size, NULL);
}

/* Particles that are set, points and fields, in device memory: what host arrays give. The default stream is still writing the arrays when a call
 * begins, and writes other numbers to them when it has returned. */
enum { MANY = 100000 };
static void in_place(wfmm_session *gpu) {
    static double found[2][2][3 * MANY], slopes[2][9 * N], before[3 * MANY], after[3 * MANY];
    const size_t all = 3 * MANY * 8, some = 3 * N * 8;
    wfmm_flow *f[2] = {of_everything(gpu, WFMM_INTEGRATOR_AB2, 3, 0), of_everything(gpu, WFMM_INTEGRATOR_AB2, 3, 0)};
    double *x = random_array(3 * MANY, 0, 1), *a = random_array(3 * MANY, -1e-6, 1e-6), bad[3] = {0, NAN, 0};
    uint64_t from[2] = {on_device(x, all), on_device(a, all)}, dx = on_device(NULL, all), da = on_device(NULL, all), du = on_device(NULL, some), dg = on_device(NULL, 3 * some), dbad = on_device(bad, 24);
    char text[2][200];
    for (int k = 0; k < 2; k++) {
        const int memory = k ? WFMM_MEMORY_DEVICE : H;
        wfmm_status s = wfmm_flow_advance(f[k], 0.01, 2);
        if (k) write_late(dx, from[0], all), write_late(da, from[1], all);
        s = s ? s : wfmm_flow_set_particles_f64(f[k], MANY, k ? (double *)dx : x, k ? (double *)da : a, NULL, memory);
        cu_clear(dx, 0xff, all, NULL), cu_clear(da, 0xff, all, NULL);
        if (k) write_late(dx, from[0], some), cu_clear(du, 0xff, some, NULL), cu_clear(dg, 0xff, 3 * some, NULL);
        s = s ? s : wfmm_flow_velocity_f64(f[k], N, k ? (double *)dx : x, k ? (double *)du : found[k][0], k ? (double *)dg : slopes[k], memory);
        cu_clear(dx, 0xff, all, NULL);
        if (k) cu_out(found[k][0], du, some), cu_out(slopes[k], dg, 3 * some);
        expect(!s && wfmm_flow_velocity_f64(f[k], 1, k ? (double *)dbad : bad, k ? (double *)du : found[k][1], NULL, memory) == WFMM_ERR_NOT_FINITE, "a point that is none");
        wfmm_last_error(text[k], sizeof text[k], NULL);
        s = s ? s : wfmm_flow_get_f64(f[k], WFMM_KIND_PARTICLES, WFMM_QUANTITY_POSITION, MANY, before, NULL, H);
        s = s ? s : wfmm_flow_get_f64(f[k], WFMM_KIND_PARTICLES, WFMM_QUANTITY_STRENGTH, MANY, after, NULL, H);
        expect(!s && !memcmp(before, x, all) && !memcmp(after, a, all), k ? "particles from device memory" : "particles from host memory");
        expect(!wfmm_flow_advance(f[k], 0.01, 2), "steps after they were set");
    }
    const double u = distance(found[1][0], found[0][0], 3 * N), g = distance(slopes[1], slopes[0], 9 * N), worst = farthest(f[1], f[0]);
    printf("device arrays: velocities differ by %.1e, gradients by %.1e, two steps later all by %.1e\n", u, g, worst);
    expect(u < 1e-13 && g < 1e-13 && worst >= 0 && worst < 1e-10, "arrays in device memory give what host arrays give");
    expect(!strcmp(text[0], text[1]) && strstr(text[0], "target[0][1]"), "the point is named");
    const uint64_t arrays[7] = {from[0], from[1], dx, da, du, dg, dbad};
    for (int k = 0; k < 7; k++) cu_free(arrays[k]);
    free(x), free(a);
    wfmm_flow_destroy(&f[0]), wfmm_flow_destroy(&f[1]);
}

/* A checkpoint under WFMM_FLAG_REPRODUCIBLE: the flow that is loaded goes on with the same bits, by the FMM and in both precisions. */
static void restart(wfmm_session *gpu) {
    enum { MANY = 20000 };
    static double x[MANY][3], a[MANY][3], got[2][2][MANY][3];
    for (int precision = WFMM_PRECISION_F32; precision <= WFMM_PRECISION_F64; precision++) {
        wfmm_plan_options sums;
        wfmm_flow_options motion;
        wfmm_flow *f[2] = {NULL, NULL};
        wfmm_report report = {.struct_size = sizeof report};
        wfmm_status s = wfmm_plan_options_init(&sums, sizeof sums);
        s = s ? s : wfmm_flow_options_init(&motion, sizeof motion);
        sums.method = WFMM_METHOD_FMM, sums.precision = precision, sums.flags = WFMM_FLAG_REPRODUCIBLE, sums.core_radius = 0.02;
        sums.tolerance = precision == WFMM_PRECISION_F32 ? 1e-3 : 1e-5;
        motion.integrator = WFMM_INTEGRATOR_AB2, motion.stretching = WFMM_STRETCHING_TRANSPOSE;
        for (int i = 0; i < MANY; i++)
            for (int d = 0; d < 3; d++) x[i][d] = fmod(0.5 + 0.7548776662 * (i + 1) * (d + 1) + 0.31 * d * d, 1), a[i][d] = cos(7 * x[i][(d + 1) % 3]) / MANY;
        s = s ? s : wfmm_flow_create(gpu, &sums, &motion, &f[0]);
        s = s ? s : wfmm_flow_set_particles_f64(f[0], MANY, x[0], a[0], NULL, H);
        s = s ? s : wfmm_flow_advance(f[0], 0.01, 3);
        s = s ? s : wfmm_flow_save(f[0], "restart.npz");
        s = s ? s : wfmm_flow_load(gpu, "restart.npz", &f[1]);
        for (int k = 0; k < 2; k++) {
            s = s ? s : wfmm_flow_advance(f[k], 0.01, 3);
            s = s ? s : wfmm_flow_get_f64(f[k], WFMM_KIND_PARTICLES, WFMM_QUANTITY_POSITION, MANY, got[k][0][0], NULL, H);
            s = s ? s : wfmm_flow_get_f64(f[k], WFMM_KIND_PARTICLES, WFMM_QUANTITY_STRENGTH, MANY, got[k][1][0], NULL, H);
            s = s ? s : wfmm_flow_report(f[k], &report);
        }
        expect(!s && report.method == WFMM_METHOD_FMM, "a reproducible flow by the FMM");
        expect(!memcmp(got[0], got[1], sizeof got[0]), "a restarted flow has the same bits");
        remove("restart.npz");
        wfmm_flow_destroy(&f[0]), wfmm_flow_destroy(&f[1]);
    }
}

/* Takes all velocity away, on its side of the bus. */
static int32_t stand_still(double time, int64_t n, const double *x, double *u, int32_t memory, void *stream, void *user) {
    (void)time, (void)x;
    ++*(int *)user;
    if (memory == WFMM_MEMORY_HOST) { memset(u, 0, 24 * n); return 0; }
    return stream ? cu_clear((uint64_t)u, 0, 24 * n, stream) : 50;
}

static void callbacks(wfmm_session *gpu) {
    wfmm_flow *f = of_everything(gpu, WFMM_INTEGRATOR_RK3, 0, 0);
    double *x[2] = {malloc(3 * FEW * 8), malloc(3 * FEW * 8)};
    int calls = 0;
    expect(!wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, FEW, x[0], NULL, H), "tracers");
    expect(!wfmm_flow_set_velocity_callback(f, stand_still, &calls) && !wfmm_flow_advance(f, 0.01, 2) && calls == 6, "a callback with device arrays");
    expect(!wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, FEW, x[1], NULL, H) && !memcmp(x[0], x[1], 3 * FEW * 8), "what it wrote was used");
    free(x[0]), free(x[1]);
    wfmm_flow_destroy(&f);
}

enum { WIDTH = 320, HEIGHT = 200, BYTES = 4 * WIDTH * HEIGHT };

/* Bytes that differ in the pictures of both, and by how much; less than 0 where something failed or little is drawn. */
static int unlike(wfmm_flow *const *f, const wfmm_camera *c, int *largest) {
    uint8_t *rgba[2];
    int differ = 0, drawn = 0;
    wfmm_status s = 0;
    for (int k = 0; k < 2; k++) rgba[k] = calloc(BYTES, 1), s = s ? s : wfmm_flow_picture(f[k], c, WIDTH, HEIGHT, rgba[k], NULL);
    for (int k = 0; k < BYTES; k++) {
        const int d = abs(rgba[0][k] - rgba[1][k]);
        differ += d > 0, drawn += rgba[1][k] != rgba[1][k % 4], *largest = d > *largest ? d : *largest;
    }
    free(rgba[0]), free(rgba[1]);
    return s || drawn < 1000 ? -1 : differ;
}

/* The picture of a state in device memory is drawn there: the same bytes as on the CPU, but for the rounding of exponentials and of the
 * sums that give speeds. */
static void pictures(wfmm_session *cpu, wfmm_session *gpu) {
    static const char *const names[] = {"kind", "speed", "age", "density"};
    wfmm_flow *f[2] = {of_everything(gpu, WFMM_INTEGRATOR_RK4, 3, 0), of_everything(cpu, WFMM_INTEGRATOR_RK4, 3, 0)};
    for (int stepped = 0; stepped < 2; stepped++) {
        wfmm_status s = 0;
        for (int k = 0; stepped && k < 2; k++) s = s ? s : wfmm_flow_advance(f[k], 0.01, 2);
        expect(!s, "steps before a picture");
        for (int color = 0; color < 4; color++) {
            int bytes = 0, largest = 0, failed = 0;
            for (int look = 0; look < 8; look++) {
                wfmm_camera c;
                wfmm_camera_init(&c, sizeof c);
                c.color = color, c.blending = look % 2, c.projection = look / 2 % 2;
                if (look / 4) c.opacity = 0.5, c.background[3] = 0.3, c.point_size = 12, c.grid = 0.2, c.line_width = 5;
                const int n = unlike(f, &c, &largest);
                bytes += n, failed |= n < 0;
            }
            printf("pictures by %s%s: %d bytes of %d differ, by up to %d\n", names[color], stepped ? " after two steps" : "", bytes, 8 * BYTES, largest);
            expect(!failed && largest <= 1 && bytes <= 8 * BYTES / 1000, "pictures as on the CPU");
        }
    }
    wfmm_flow_destroy(&f[0]), wfmm_flow_destroy(&f[1]);
}

/* Cores above their limit, and such that spread beyond it, with and without a plane: as often as on the CPU and, where narrow cores are 0.56 of the
 * spacing, with its numbers. Where they overlap, strengths that serve the residual are many, and their field is compared. Twice on the GPU with the
 * same bits, the second time on from a checkpoint. */
enum { SIDE = 13, ALL = SIDE * SIDE * SIDE, RUNS = 3 };
static wfmm_flow *wide(wfmm_session *s, const double *x, const double *a, const double *core, int plane, double limit) {
    wfmm_plan_options o = sums(WFMM_METHOD_DIRECT, 1e-10, plane, WFMM_PRECISION_F64);
    wfmm_flow_options f;
    wfmm_flow *flow = NULL;
    wfmm_flow_options_init(&f, sizeof f);
    o.particle_regularization = WFMM_REG_GAUSS_ERF, o.flags = WFMM_FLAG_REPRODUCIBLE, o.plane_position = plane ? -0.65 : 0;
    f.integrator = WFMM_INTEGRATOR_AB2, f.stretching = WFMM_STRETCHING_TRANSPOSE, f.spreading = WFMM_SPREADING_CORES;
    f.viscosity = 2 * limit * limit, f.core_limit = limit;
    wfmm_status status = wfmm_flow_create(s, &o, &f, &flow);
    expect(!(status ? status : wfmm_flow_set_particles_f64(flow, ALL, x, a, core, H)), "a flow of wide cores");
    return flow;
}

static void narrower_cores(wfmm_session *cpu, wfmm_session *gpu) {
    static double x[3 * ALL], a[3 * ALL], core[ALL], got[RUNS][3 * ALL], cores[RUNS][ALL], u[RUNS][3 * ALL];
    static const struct { int plane; double limit; } cases[] = {{0, 0.079}, {3, 0.079}, {0, 0.14}};
    for (int k = 0; k < ALL; k++) {
        const int grid[3] = {k % SIDE, k / SIDE % SIDE, k / SIDE / SIDE};
        double r2 = 0;
        for (int i = 0; i < 3; i++) x[3 * k + i] = 0.1 * (grid[i] - SIDE / 2), r2 += x[3 * k + i] * x[3 * k + i];
        const double bell = 1e-3 * exp(-r2 / 0.03);
        a[3 * k] = -x[3 * k + 1] * bell, a[3 * k + 1] = x[3 * k] * bell, a[3 * k + 2] = 0.1 * bell;
    }
    for (int c = 0; c < 3; c++) {
        wfmm_diagnostics d[RUNS];
        wfmm_session *at[RUNS] = {cpu, gpu, gpu};
        const double limit = cases[c].limit;
        for (int k = 0; k < ALL; k++) core[k] = k % 101 ? 1.02 * limit : 0;
        for (int k = 0; k < RUNS; k++) {
            wfmm_diagnostics_init(&d[k], sizeof d[k]);
            wfmm_flow *flow = wide(at[k], x, a, core, cases[c].plane, limit);
            wfmm_status status = wfmm_flow_advance(flow, 0.03, k < 2 ? 8 : 1);
            if (k == 2) {
                status = status ? status : wfmm_flow_save(flow, "wide-cores.npz");
                wfmm_flow_destroy(&flow);
                status = status ? status : wfmm_flow_load(gpu, "wide-cores.npz", &flow);
                status = status ? status : wfmm_flow_advance(flow, 0.03, 7);
            }
            status = status ? status : wfmm_flow_get_f64(flow, WFMM_KIND_PARTICLES, WFMM_QUANTITY_STRENGTH, ALL, got[k], NULL, H);
            status = status ? status : wfmm_flow_get_f64(flow, WFMM_KIND_PARTICLES, WFMM_QUANTITY_CORE_RADIUS, ALL, cores[k], NULL, H);
            status = status ? status : wfmm_flow_velocity_f64(flow, ALL, x, u[k], NULL, H);
            expect(!(status ? status : wfmm_flow_diagnostics(flow, &d[k])) && d[k].reinterpolations == (k < 2 ? 2 : 1), "cores are narrowed");
            wfmm_flow_destroy(&flow);
        }
        const double apart = distance(got[1], got[0], 3 * ALL), field = distance(u[1], u[0], 3 * ALL);
        printf("narrower cores, limit %g, plane %d: residual %.2e (CPU %.2e), strength %.2e (%.2e), impulse %.2e (%.2e); strengths differ by %.1e, velocities by %.1e\n", limit,
               cases[c].plane, d[1].reinterpolation_residual, d[0].reinterpolation_residual, d[1].reinterpolation_strength, d[0].reinterpolation_strength,
               d[1].reinterpolation_impulse, d[0].reinterpolation_impulse, apart, field);
        expect(fabs(d[1].reinterpolation_strength - d[0].reinterpolation_strength) <= 1e-6 && fabs(d[1].reinterpolation_impulse - d[0].reinterpolation_impulse) <= 1e-6,
               "what is lost is what the CPU loses");
        expect(distance(cores[1], cores[0], ALL) < 1e-12 && field < 1e-4, "cores and field as on the CPU");
        if (limit < 0.1) expect(apart < 1e-8 && fabs(d[1].reinterpolation_residual - d[0].reinterpolation_residual) <= 1e-9, "strengths and residual as on the CPU");
        expect(!memcmp(got[1], got[2], sizeof got[1]) && !memcmp(cores[1], cores[2], sizeof cores[1]), "the same bits, on from a checkpoint");
    }
}

/* Many colors in a pixel: 30,000 particles of hundreds of pixels each, beside so few tracers at one point that sums of 32 bits hold
 * them, and so many that they do not, twice. */
static void crowds(wfmm_session *cpu, wfmm_session *gpu) {
    enum { PARTICLES = 30000, MANY = 9000 };
    wfmm_session *at[] = {gpu, cpu};
    wfmm_plan_options o;
    wfmm_flow_options m;
    wfmm_camera c;
    wfmm_flow *f[2] = {NULL, NULL};
    double *x = random_array(3 * PARTICLES, 0, 1), *a = random_array(3 * PARTICLES, -1e-6, 1e-6), *core = random_array(PARTICLES, 0.01, 0.03), *crowd = random_array(3 * MANY, 0.5, 0.5);
    wfmm_plan_options_init(&o, sizeof o), wfmm_flow_options_init(&m, sizeof m), wfmm_camera_init(&c, sizeof c);
    c.color = WFMM_COLOR_AGE, c.opacity = 1e-3;
    for (int k = 0; k < 2; k++) {
        wfmm_status s = wfmm_flow_create(at[k], &o, &m, &f[k]);
        expect(!s && !wfmm_flow_set_particles_f64(f[k], PARTICLES, x, a, core, H), "particles that overlap");
    }
    for (int look = 0; look < 3; look++) {
        int largest = 0;
        for (int k = 0; k < 2; k++) expect(!wfmm_flow_set_tracers_f64(f[k], look ? MANY : 9, crowd, H), "tracers at one point");
        const int bytes = unlike(f, &c, &largest);
        printf("pictures of particles that overlap and of %d tracers at one point: %d bytes of %d differ, by up to %d\n", look ? MANY : 9, bytes, BYTES, largest);
        expect(bytes >= 0 && largest <= 1 && bytes <= BYTES / 1000, "crowds as on the CPU");
    }
    wfmm_flow_destroy(&f[0]), wfmm_flow_destroy(&f[1]);
    free(x), free(a), free(core), free(crowd);
}

int main(void) {
    handle_t context;
    if (!open_driver() || cu_retain(&context, 0) || cu_set(context)) { printf("no driver\n"); return 1; }
    wfmm_session *cpu = session(WFMM_BACKEND_CPU, -1), *gpu = session(WFMM_BACKEND_CUDA, 0);
    double *x = random_array(3 * N, 0, 1), *a = random_array(3 * N, -1e-6, 1e-6), *d = random_array(N, 1e-5, 1e-4), *rho = random_array(N, 2000, 3000);
    planes(cpu, gpu, x, a);
    steps(cpu, gpu, x, a, d, rho);
    every_kind(cpu, gpu);
    edits(cpu, gpu);
    in_place(gpu);
    restart(gpu);
    callbacks(gpu);
    pictures(cpu, gpu);
    crowds(cpu, gpu);
    narrower_cores(cpu, gpu);
    free(x), free(a), free(d), free(rho);
    wfmm_session_destroy(&cpu), wfmm_session_destroy(&gpu);
    return verdict();
}
