/* The ground plane and flows on a GPU against the CPU, and how long steps take with the state in host memory. Needs a GPU; exit
 * code 1 when a case failed. */
#include <math.h>
#include <string.h>
#include <time.h>
#include "gpu.h"

enum { N = 20000, H = WFMM_MEMORY_HOST };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

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

/* Particles above a plane: the FMM on the GPU against the direct sum on the CPU. */
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

static void timed(wfmm_session *gpu, const char *what, int64_t particles, int64_t segments, int64_t dust, int plane, int integrator, int stretching, double tolerance, int precision) {
    wfmm_plan_options o = sums(WFMM_METHOD_FMM, tolerance, plane, precision);
    wfmm_flow *f = flow(gpu, &o, integrator, stretching);
    int64_t most = particles > dust ? particles : dust;
    most = segments + 1 > most ? segments + 1 : most;
    double *x = random_array(3 * most, 0, 1), *a = random_array(3 * most, -1, 1), *d = random_array(most, 1e-5, 1e-4), *rho = random_array(most, 2000, 3000);
    int32_t *ends = malloc(8 * (segments + 1));
    for (int64_t k = 0; k < 3 * most; k++) a[k] /= particles + 1;
    for (int64_t k = 0; k <= segments; k++) { /* a helix */
        x[3 * k] = segments ? 0.5 + 0.3 * cos(0.05 * k) : x[3 * k], x[3 * k + 1] = segments ? 0.5 + 0.3 * sin(0.05 * k) : x[3 * k + 1], x[3 * k + 2] = segments ? 0.1 + 0.8 * k / segments : x[3 * k + 2];
        if (k < segments) ends[2 * k] = k, ends[2 * k + 1] = k + 1;
    }
    wfmm_status s = wfmm_flow_set_particles_f64(f, particles, x, a, NULL, H);
    s = s ? s : wfmm_flow_set_filaments_f64(f, segments + 1, x, segments, 2, ends, rho, NULL, H);
    s = s ? s : wfmm_flow_set_dust_f64(f, dust, x, NULL, d, rho, H);
    s = s ? s : wfmm_flow_advance(f, 1e-9, 1);
    double start = now();
    s = s ? s : wfmm_flow_advance(f, 1e-9, 3);
    double step = (now() - start) / 3;
    wfmm_report r;
    r.struct_size = sizeof r;
    wfmm_flow_report(f, &r);
    expect(!s, what);
    printf("  %.1f ms a step, of which the last evaluation %.1f ms\n", 1e3 * step, 1e3 * r.seconds[WFMM_PASS_TOTAL]);
    wfmm_flow_destroy(&f);
    free(x), free(a), free(d), free(rho), free(ends);
}

int main(void) {
    wfmm_session *cpu = session(WFMM_BACKEND_CPU, -1), *gpu = session(WFMM_BACKEND_CUDA, -1);
    double *x = random_array(3 * N, 0, 1), *a = random_array(3 * N, -1e-6, 1e-6), *d = random_array(N, 1e-5, 1e-4), *rho = random_array(N, 2000, 3000);
    planes(cpu, gpu, x, a);
    steps(cpu, gpu, x, a, d, rho);
    timed(gpu, "32,768 segments, 500,000 dust, plane, Euler, f64 1e-4", 0, 32768, 500000, 3, WFMM_INTEGRATOR_EULER, 0, 1e-4, WFMM_PRECISION_F64);
    timed(gpu, "1e6 particles, RK4, stretching, f32 1e-3", 1000000, 0, 0, 0, WFMM_INTEGRATOR_RK4, WFMM_STRETCHING_TRANSPOSE, 1e-3, WFMM_PRECISION_F32);
    timed(gpu, "20,000 segments, 1e7 dust, plane, Euler, f64 1e-3", 0, 20000, 10000000, 3, WFMM_INTEGRATOR_EULER, 0, 1e-3, WFMM_PRECISION_F64);
    wfmm_session_destroy(&cpu), wfmm_session_destroy(&gpu);
    return verdict();
}
