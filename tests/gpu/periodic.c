/* Boxes with three equal periods, tubes, slabs and other boxes on a GPU against the CPU: every kind of source, both methods and precisions,
 * host and device arrays, targets outside of the domain. Needs a GPU; exit code 1 when a case failed. */
#include <math.h>
#include <string.h>
#include "gpu.h"

#ifndef POINTS
#define POINTS 20000
#endif
enum { N = POINTS, M = POINTS / 3 };
static const double period = 1.3;
enum { CUBE, TUBE, SLAB, BOX, DOMAINS };
static const double domains[DOMAINS][3] = {{1.3, 1.3, 1.3}, {0, 1.3, 0}, {1.3, 0, 1.1}, {1.3, 1.7, 1.1}};
static const char *const domain_names[] = {"", "tube, ", "slab, ", "box, "};

static double distance(const double *a, const double *b, int64_t n) {
    double d = 0, s = 0;
    for (int64_t k = 0; k < n; k++) { d += (a[k] - b[k]) * (a[k] - b[k]); s += b[k] * b[k]; }
    return sqrt(d / s);
}

enum sources { PARTICLES, SEGMENTS, BOTH, CHARGES };
static const char *const names[] = {"particles", "segments", "both", "charges"};
/* Charges of which the sum is zero: those of a tube or a slab. */
struct clouds { double *x, *a, *points, *gamma, *neutral, *core, *y; int32_t *ends; };

static wfmm_plan *plan(wfmm_session *s, int domain, int method, int precision, double tolerance, int cores) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = method; o.precision = precision; o.tolerance = tolerance;
    memcpy(o.period, domains[domain], sizeof o.period);
    o.particle_regularization = cores ? WFMM_REG_GAUSS_ERF : WFMM_REG_NONE;
    o.segment_regularization = WFMM_REG_LAMB_OSEEN;
    if (wfmm_plan_create(s, &o, &p)) { expect(0, "plan"); exit(1); }
    return p;
}

static void hand_over(wfmm_plan *p, const struct clouds *c, enum sources which, int domain) {
    if (which == PARTICLES || which == BOTH) wfmm_plan_set_particles_f64(p, N, c->x, c->a, c->core, WFMM_MEMORY_HOST);
    if (which == SEGMENTS || which == BOTH) wfmm_plan_set_segments_f64(p, 2 * N, c->points, N, 2, c->ends, c->gamma, c->core, WFMM_MEMORY_HOST);
    if (which == CHARGES) wfmm_plan_set_charges_f64(p, N, c->x, domain == CUBE || domain == BOX ? c->gamma : c->neutral, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(p, M, c->y, WFMM_MEMORY_HOST);
}

static wfmm_status evaluate(wfmm_plan *p, enum sources which, double *u, double *g) {
    return which == CHARGES ? wfmm_plan_evaluate_potential_f64(p, u, g, WFMM_MEMORY_HOST) : wfmm_plan_evaluate_f64(p, u, g, WFMM_MEMORY_HOST);
}

static void sums(wfmm_session *cpu, wfmm_session *gpu, const struct clouds *c, int domain) {
    double *u = malloc(3 * M * 8), *g = malloc(9 * M * 8), *v = malloc(3 * M * 8), *h = malloc(9 * M * 8);
    for (int which = PARTICLES; which <= CHARGES; which++)
        for (int cores = 0; cores < (which == PARTICLES ? 2 : 1); cores++) {
            const int main = which == CHARGES ? 1 : 3;
            wfmm_plan *exact = plan(cpu, domain, WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-9, cores);
            hand_over(exact, c, which, domain);
            if (evaluate(exact, which, v, h)) { expect(0, "CPU"); continue; }
            wfmm_plan_destroy(&exact);
            for (int k = 0; k < 6; k++) {
                const int f64 = k > 1, direct = k == 5;
                const double tolerance = k < 2 ? (k ? 1e-5 : 1e-3) : k == 2 ? 1e-3 : k == 3 ? 1e-5 : 1e-7;
                wfmm_plan *p = plan(gpu, domain, direct ? WFMM_METHOD_DIRECT : WFMM_METHOD_FMM, f64 ? WFMM_PRECISION_F64 : WFMM_PRECISION_F32, tolerance, cores);
                hand_over(p, c, which, domain);
                char line[250];
                wfmm_report r = {.struct_size = sizeof r};
                const wfmm_status status = evaluate(p, which, u, g);
                const double e = distance(u, v, main * M), slope = distance(g, h, 3 * main * M);
                double checked = 1;
                wfmm_plan_check_f64(p, M, 3, &checked);
                wfmm_plan_report(p, &r);
                snprintf(line, sizeof line, "%s%s%s %s at %.0e: error %.1e, gradient %.1e, check %.1e, method %d, precision %d, order %d, depth %d, retries %lld, %.2f ms", domain_names[domain], names[which], cores ? " with cores" : "",
                         f64 ? "f64" : "f32", tolerance, e, slope, checked, r.method, r.precision, r.order, r.depth, (long long)r.retries, 1e3 * r.seconds[WFMM_PASS_TOTAL]);
                expect(!status && e <= tolerance && slope <= 30 * tolerance && checked <= tolerance, line);
                wfmm_plan_destroy(&p);
            }
        }
    free(u); free(g); free(v); free(h);
}

/* Arrays that are on the device already. */
static void on_the_device(wfmm_session *gpu, const struct clouds *c, int domain) {
    double *u = malloc(3 * M * 8), *v = malloc(3 * M * 8);
    wfmm_plan *p = plan(gpu, domain, WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-6, 1);
    hand_over(p, c, PARTICLES, domain);
    expect(!evaluate(p, PARTICLES, v, NULL), "host arrays");
    const uint64_t x = on_device(c->x, 3 * N * 8), a = on_device(c->a, 3 * N * 8), core = on_device(c->core, N * 8), y = on_device(c->y, 3 * M * 8), to = on_device(NULL, 3 * M * 8);
    wfmm_plan_set_particles_f64(p, N, (double *)x, (double *)a, (double *)core, WFMM_MEMORY_DEVICE);
    wfmm_plan_set_targets_f64(p, M, (double *)y, WFMM_MEMORY_DEVICE);
    const wfmm_status status = wfmm_plan_evaluate_f64(p, (double *)to, NULL, WFMM_MEMORY_DEVICE);
    cu_out(u, to, 3 * M * 8);
    expect(!status && !memcmp(u, v, 3 * M * 8), "device arrays: the same bits");
    wfmm_plan_destroy(&p);
    cu_free(x); cu_free(a); cu_free(core); cu_free(y); cu_free(to);
    free(u); free(v);
}

/* Positions thousands of periods away are moved by multiples of the unrounded period: the error of the rounded one does not add up. */
static void thousands_of_periods_away(wfmm_session *gpu, const struct clouds *c) {
    double *u = malloc(3 * M * 8), *v = malloc(3 * M * 8);
    struct clouds far = *c, near = *c;
    const struct { double **far, **near; const double *from; int64_t rows; int points; } all[] = {
        {&far.x, &near.x, c->x, N, 1}, {&far.points, &near.points, c->points, N, 2}, {&far.y, &near.y, c->y, M, 1}};
    for (int a = 0; a < 3; a++) {
        const int64_t width = 3 * all[a].points;
        double *there = *all[a].far = malloc(all[a].rows * width * 8), *here = *all[a].near = malloc(all[a].rows * width * 8);
        for (int64_t i = 0; i < all[a].rows; i++)
            for (int k = 0; k < width; k++) {
                const double n = (k % 3 == 1 ? -7000 : 4000) * (double)(i % 5 - 2);
                there[i * width + k] = all[a].from[i * width + k] + n * period;
                here[i * width + k] = fma(-n, period, there[i * width + k]);
            }
    }
    wfmm_plan *p = plan(gpu, CUBE, WFMM_METHOD_DIRECT, WFMM_PRECISION_F64, 1e-9, 1);
    hand_over(p, &far, BOTH, CUBE);
    expect(!evaluate(p, BOTH, u, NULL), "thousands of periods away");
    hand_over(p, &near, BOTH, CUBE);
    expect(!evaluate(p, BOTH, v, NULL), "in the box");
    char line[100];
    const double e = distance(u, v, 3 * M);
    snprintf(line, sizeof line, "thousands of periods away: error %.1e", e);
    expect(e < 2e-12, line);
    wfmm_plan_destroy(&p);
    for (int a = 0; a < 3; a++) { free(*all[a].far); free(*all[a].near); }
    free(u); free(v);
}

int main(void) {
    if (!open_driver()) { printf("no driver\n"); return 1; }
    wfmm_session *cpu = session(WFMM_BACKEND_CPU, -1), *gpu = session(WFMM_BACKEND_CUDA, -1);
    handle_t context;
    cu_retain(&context, 0); cu_set(context);
    srand(5);
    struct clouds c = {random_array(3 * N, 0, period), random_array(3 * N, -1, 1), malloc(6 * N * 8), random_array(N, -0.8, 1), malloc(N * 8), random_array(N, 0.01, 0.03), random_array(3 * M, -period, 2 * period), malloc(2 * N * sizeof(int32_t))};
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            c.points[6 * i + k] = c.x[3 * i + k];
            c.points[6 * i + 3 + k] = c.x[3 * i + k] + 0.03 * c.a[3 * i + k];
            if (k < 2) c.ends[2 * i + k] = 2 * i + k;
        }
    double mean = 0;
    for (int i = 0; i < N; i++) mean += c.gamma[i] / N;
    for (int i = 0; i < N; i++) c.neutral[i] = c.gamma[i] - mean;
    for (int domain = CUBE; domain < DOMAINS; domain++) {
        sums(cpu, gpu, &c, domain);
        on_the_device(gpu, &c, domain);
    }
    thousands_of_periods_away(gpu, &c);
    return verdict();
}
