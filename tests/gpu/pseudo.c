/* Pseudo-particles on a GPU: every kind of source, both precisions, with gradients, against exact sums in double precision, and what
 * they do not reach; then milliseconds beside harmonics of the same order. Needs a GPU; exit code 1 when a case failed. */
#include <math.h>
#include <string.h>
#include "gpu.h"

enum sources { PARTICLES, SEGMENTS, CHARGES };
static const char *const names[] = {"particles", "segments", "charges"};

struct problem { int n; double *x, *a, *q, *core, *y; int32_t *ends; };

static struct problem problem(int n) {
    struct problem p = {n, random_array(6 * (size_t)n, 0, 1), random_array(3 * (size_t)n, -1, 1), random_array(n, -1, 1), random_array(n, 0.001, 0.01),
                        random_array(3 * (size_t)n, 0, 1), malloc(8 * (size_t)n)};
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) p.x[3 * (n + i) + k] = p.x[3 * i + k] + 0.02 * (p.x[3 * (n + i) + k] - 0.5); /* second ends */
        p.ends[2 * i] = i; p.ends[2 * i + 1] = n + i;
    }
    return p;
}
static void drop(struct problem *p) { free(p->x); free(p->a); free(p->q); free(p->core); free(p->y); free(p->ends); }

static float *single(const double *from, size_t n) {
    float *to = malloc(n * sizeof *to);
    for (size_t i = 0; i < n; i++) to[i] = (float)from[i];
    return to;
}

static wfmm_plan *plan(wfmm_session *s, int method, int expansion, int order, double tolerance, int leaf) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = method; o.expansion = expansion; o.order = order; o.tolerance = tolerance; o.leaf_capacity = leaf;
    if (wfmm_plan_create(s, &o, &p)) { char t[500]; wfmm_last_error(t, sizeof t, NULL); printf("%s\n", t); exit(1); }
    return p;
}

static void hand_over(wfmm_plan *p, const struct problem *c, enum sources which) {
    const int n = c->n;
    if (which == PARTICLES) wfmm_plan_set_particles_f64(p, n, c->x, c->a, c->core, WFMM_MEMORY_HOST);
    if (which == SEGMENTS) wfmm_plan_set_segments_f64(p, 2 * n, c->x, n, 2, c->ends, c->q, c->core, WFMM_MEMORY_HOST);
    if (which == CHARGES) wfmm_plan_set_charges_f64(p, n, c->x, c->q, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(p, n, c->y, WFMM_MEMORY_HOST);
}
static void hand_over_single(wfmm_plan *p, const struct problem *c, enum sources which) {
    const int n = c->n;
    float *x = single(c->x, 6 * (size_t)n), *a = single(c->a, 3 * (size_t)n), *q = single(c->q, n), *core = single(c->core, n), *y = single(c->y, 3 * (size_t)n);
    if (which == PARTICLES) wfmm_plan_set_particles_f32(p, n, x, a, core, WFMM_MEMORY_HOST);
    if (which == SEGMENTS) wfmm_plan_set_segments_f32(p, 2 * n, x, n, 2, c->ends, q, core, WFMM_MEMORY_HOST);
    if (which == CHARGES) wfmm_plan_set_charges_f32(p, n, x, q, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f32(p, n, y, WFMM_MEMORY_HOST);
    free(x); free(a); free(q); free(core); free(y);
}

static double distance(const double *a, const double *b, size_t n) {
    double d = 0, s = 0;
    for (size_t k = 0; k < n; k++) { d += (a[k] - b[k]) * (a[k] - b[k]); s += b[k] * b[k]; }
    return sqrt(d / s);
}

/* The field in double, whatever the arrays are. */
static wfmm_status field(wfmm_plan *p, const struct problem *c, enum sources which, int is_single, double *u, double *g) {
    const size_t m = (size_t)c->n, main = which == CHARGES ? m : 3 * m, rest = which == CHARGES ? 3 * m : 9 * m;
    if (!is_single)
        return which == CHARGES ? wfmm_plan_evaluate_potential_f64(p, u, g, WFMM_MEMORY_HOST) : wfmm_plan_evaluate_f64(p, u, g, WFMM_MEMORY_HOST);
    float *v = malloc(4 * main), *w = malloc(4 * rest);
    const wfmm_status status =
        which == CHARGES ? wfmm_plan_evaluate_potential_f32(p, v, w, WFMM_MEMORY_HOST) : wfmm_plan_evaluate_f32(p, v, w, WFMM_MEMORY_HOST);
    for (size_t k = 0; k < main; k++) u[k] = v[k];
    for (size_t k = 0; k < rest; k++) g[k] = w[k];
    free(v); free(w);
    return status;
}

static void all_kinds(wfmm_session *gpu, int n) {
    struct problem c = problem(n);
    double *u = calloc(3 * (size_t)n, 8), *g = calloc(9 * (size_t)n, 8), *want = calloc(3 * (size_t)n, 8), *slope = calloc(9 * (size_t)n, 8);
    for (enum sources which = PARTICLES; which <= CHARGES; which++) {
        const size_t main = (which == CHARGES ? 1 : 3) * (size_t)n, rest = which == CHARGES ? 3 * (size_t)n : 9 * (size_t)n;
        for (int is_single = 0; is_single < 2; is_single++) {
            wfmm_plan *exact = plan(gpu, WFMM_METHOD_DIRECT, WFMM_EXPANSION_HARMONICS, 0, 1e-10, 0);
            hand_over(exact, &c, which);
            field(exact, &c, which, 0, want, slope);
            wfmm_plan_destroy(&exact);
            for (double tolerance = 1e-1; tolerance > (is_single ? 2e-4 : 2e-6); tolerance /= 10) {
                wfmm_plan *p = plan(gpu, WFMM_METHOD_FMM, WFMM_EXPANSION_PSEUDO_PARTICLES, 0, tolerance, 0);
                is_single ? hand_over_single(p, &c, which) : hand_over(p, &c, which);
                const wfmm_status status = field(p, &c, which, is_single, u, g);
                wfmm_report r = {.struct_size = sizeof r};
                wfmm_plan_report(p, &r);
                char text[400];
                const double error = distance(u, want, main), of_slope = distance(g, slope, rest);
                snprintf(text, sizeof text, "%s %s, %d at %.0e: error %.1e, gradient %.1e, sample %.1e, order %d, depth %d, %.2f ms", names[which],
                         is_single ? "f32" : "f64", n, tolerance, error, of_slope, r.estimated_error, r.order, r.depth, 1e3 * r.seconds[WFMM_PASS_TOTAL]);
                expect(!status && r.method == WFMM_METHOD_FMM && error <= tolerance && of_slope <= 30 * tolerance, text);
                wfmm_plan_destroy(&p);
            }
        }
    }
    wfmm_plan *p = plan(gpu, WFMM_METHOD_FMM, WFMM_EXPANSION_PSEUDO_PARTICLES, 0, 1e-11, 0);
    hand_over(p, &c, CHARGES);
    expect(field(p, &c, CHARGES, 0, u, g) == WFMM_ERR_UNSUPPORTED, "1e-11 is refused");
    wfmm_plan_destroy(&p);
    drop(&c); free(u); free(g); free(want); free(slope);
}

/* Milliseconds of the device of the third evaluation with strengths that were set again. */
static void times(wfmm_session *gpu, int n, int order) {
    struct problem c = problem(n);
    double *u = calloc(3 * (size_t)n, 8);
    for (int expansion = WFMM_EXPANSION_HARMONICS; expansion <= WFMM_EXPANSION_PSEUDO_PARTICLES; expansion++) {
        wfmm_plan *p = plan(gpu, WFMM_METHOD_FMM, expansion, order, 0.5, 0);
        wfmm_report r = {.struct_size = sizeof r};
        for (int k = 0; k < 3; k++) {
            hand_over(p, &c, PARTICLES);
            if (wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST)) { expect(0, "evaluate"); break; }
            wfmm_plan_report(p, &r);
        }
        double error = 0;
        wfmm_plan_check_f64(p, 500, 3, &error);
        printf("%d particles, order %d, %s: %.2f ms (P2M %.2f, M2M %.2f, M2L %.2f, L2L %.2f, L2P %.2f, P2P %.2f), depth %d, error %.1e\n", n, order,
               expansion ? "pseudo-particles" : "harmonics", 1e3 * r.seconds[WFMM_PASS_TOTAL], 1e3 * r.seconds[WFMM_PASS_P2M], 1e3 * r.seconds[WFMM_PASS_M2M],
               1e3 * r.seconds[WFMM_PASS_M2L], 1e3 * r.seconds[WFMM_PASS_L2L], 1e3 * r.seconds[WFMM_PASS_L2P], 1e3 * r.seconds[WFMM_PASS_P2P], r.depth, error);
        fflush(stdout);
        wfmm_plan_destroy(&p);
    }
    drop(&c); free(u);
}

int main(int argc, char **argv) {
    wfmm_session *gpu = session(WFMM_BACKEND_CUDA, -1);
    const int largest = argc > 1 ? atoi(argv[1]) : 1000000;
    all_kinds(gpu, 3000);
    all_kinds(gpu, 30000);
    for (int n = 10000; n <= largest; n *= 10)
        for (int order = 5; order <= 11; order += 2) times(gpu, n, order);
    wfmm_session_destroy(&gpu);
    return verdict();
}
