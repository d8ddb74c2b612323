/* What a plan keeps on the GPU: after new strengths, new targets, both or neither it must answer as a fresh plan does, within what two
 * plans of that tolerance may differ by, and with WFMM_FLAG_REPRODUCIBLE bit by bit.
 * Needs a GPU; exit code 1 when a case failed. "reuse 10": a tenth of the points, for compute-sanitizer;
 * "reuse 10 f32 particles": one precision, one kind. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wakefmm.h"

enum { MOST_N = 30000, MOST = 80000 };
static int N = MOST_N, M = MOST / 2;
enum kind { SEGMENTS, PARTICLES, CHARGES };
static const char *const kinds[] = {"segments", "particles", "charges"};
static int passed, failed, precision, reproducible;
static double tolerance;
static double points[6 * MOST_N], strength[3 * MOST_N], target[3 * MOST];
static int32_t ends[2 * MOST_N];

static void must(wfmm_status status, const char *what) {
    char text[600];
    if (status == 0) return;
    wfmm_last_error(text, sizeof text, NULL);
    printf("%s: status %d: %s\n", what, status, text);
    exit(1);
}

static double uniform(void) { return rand() / (RAND_MAX + 1.0); }
static void fill(double *x, int64_t n, double low, double high) { for (int64_t i = 0; i < n; i++) x[i] = low + (high - low) * uniform(); }

static wfmm_plan *plan_of(wfmm_session *s, int core) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = WFMM_METHOD_FMM; o.precision = precision; o.tolerance = tolerance; o.core_radius = 0.005;
    o.flags = reproducible ? WFMM_FLAG_REPRODUCIBLE : 0;
    if (!core) { o.segment_regularization = WFMM_REG_NONE; o.particle_regularization = WFMM_REG_NONE; }
    must(wfmm_plan_create(s, &o, &p), "plan");
    return p;
}
static void set_sources(wfmm_plan *p, enum kind kind) {
    if (kind == SEGMENTS) must(wfmm_plan_set_segments_f64(p, 2 * N, points, N, 2, ends, strength, NULL, WFMM_MEMORY_HOST), "segments");
    if (kind == PARTICLES) must(wfmm_plan_set_particles_f64(p, N, points, strength, NULL, WFMM_MEMORY_HOST), "particles");
    if (kind == CHARGES) must(wfmm_plan_set_charges_f64(p, N, points, strength, WFMM_MEMORY_HOST), "charges");
}
static void set_strengths(wfmm_plan *p, enum kind kind) {
    must(wfmm_plan_set_strengths_f64(p, kind == SEGMENTS ? N : 0, kind == SEGMENTS ? strength : NULL, kind == PARTICLES ? N : 0, kind == PARTICLES ? strength : NULL,
                                     kind == CHARGES ? N : 0, kind == CHARGES ? strength : NULL, WFMM_MEMORY_HOST), "strengths");
}
static void evaluate(wfmm_plan *p, enum kind kind, double *u, double *g) {
    must(kind == CHARGES ? wfmm_plan_evaluate_potential_f64(p, u, g, WFMM_MEMORY_HOST) : wfmm_plan_evaluate_f64(p, u, g, WFMM_MEMORY_HOST), "evaluate");
}
static double distance(const double *a, const double *b, int64_t n) {
    double d = 0, s = 0;
    for (int64_t k = 0; k < n; k++) { d += (a[k] - b[k]) * (a[k] - b[k]); s += b[k] * b[k]; }
    return s > 0 ? sqrt(d / s) : sqrt(d);
}

static void print_recipe(const wfmm_plan *p, const char *whose) {
    char text[2000];
    wfmm_report r = {.struct_size = sizeof r};
    must(wfmm_plan_recipe(p, text, sizeof text, NULL), "recipe");
    must(wfmm_plan_report(p, &r), "report");
    printf("    %s: depth %d, %d retries, error %.2e; %s\n", whose, (int)r.depth, (int)r.retries, r.estimated_error, text);
}

/* The kept plan against a fresh one. */
static void compare(wfmm_session *s, wfmm_plan *kept, enum kind kind, int core, int64_t m, int gradient, const char *what) {
    static double u[3 * MOST], v[3 * MOST], g[9 * MOST], h[9 * MOST];
    const int main = kind == CHARGES ? 1 : 3;
    wfmm_report r = {.struct_size = sizeof r};
    evaluate(kept, kind, u, gradient ? g : NULL);
    must(wfmm_plan_report(kept, &r), "report");
    wfmm_plan *fresh = plan_of(s, core);
    set_sources(fresh, kind);
    must(wfmm_plan_set_targets_f64(fresh, m, target, WFMM_MEMORY_HOST), "targets");
    evaluate(fresh, kind, v, gradient ? h : NULL);
    const int same = !memcmp(u, v, main * m * sizeof *u) && (!gradient || !memcmp(g, h, 3 * main * m * sizeof *g));
    const double apart = distance(u, v, main * m), slopes = gradient ? distance(g, h, 3 * main * m) : 0;
    const double most = (m < 10 ? 10 : 2) * tolerance; /* a single target has no mean */
    const int good = same || (!reproducible && apart < most && slopes < 30 * most);
    good ? passed++ : failed++;
    printf("%-9s %s%s %-34s %s %.1e %.1e; ms: tree %.3f lists %.3f P2M %.3f M2M %.3f%s\n", kinds[kind], precision == WFMM_PRECISION_F32 ? "f32" : "f64", reproducible ? " reproducible" : "", what,
           same ? "same bits" : "apart by ", apart, slopes, 1e3 * r.seconds[WFMM_PASS_TREE], 1e3 * r.seconds[WFMM_PASS_LISTS], 1e3 * r.seconds[WFMM_PASS_P2M],
           1e3 * r.seconds[WFMM_PASS_M2M], good ? "" : " FAILED");
    if (!good) { print_recipe(kept, "kept"); print_recipe(fresh, "fresh"); }
    must(wfmm_plan_destroy(&fresh), "destroy");
    fflush(stdout);
}

static void sequence(wfmm_session *s, enum kind kind, int core, int gradient) {
    wfmm_plan *p = plan_of(s, core);
    fill(points, 3 * N, 0, 1);
    if (kind == SEGMENTS) for (int i = N - 1; i >= 0; i--) for (int k = 0; k < 3; k++) {
        points[6 * i + k] = points[3 * i + k];
        points[6 * i + 3 + k] = points[6 * i + k] + 0.01 * (uniform() - 0.5);
    }
    fill(strength, 3 * N, -1, 1);
    fill(target, 3 * M, 0.1, 0.9);
    set_sources(p, kind);
    must(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_HOST), "targets");
    compare(s, p, kind, core, M, gradient, "first");
    compare(s, p, kind, core, M, gradient, "nothing new");
    fill(strength, 3 * N, -1, 1);
    set_strengths(p, kind);
    compare(s, p, kind, core, M, gradient, "strengths");
    fill(target, 3 * M, 0.1, 0.9);
    must(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_HOST), "targets");
    compare(s, p, kind, core, M, gradient, "targets");
    fill(target, 3 * M, 0.2, 0.6); fill(strength, 3 * N, -1, 1);
    set_strengths(p, kind);
    must(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_HOST), "targets");
    compare(s, p, kind, core, M, gradient, "strengths and targets");
    const int64_t counts[] = {100, 2 * M, 1, M, 20000, M}; /* 20,000: with a tenth of the points, more than small trees have */
    for (int k = 0; k < 6; k++) {
        char what[60];
        snprintf(what, sizeof what, "%lld targets", (long long)counts[k]);
        fill(target, 3 * counts[k], 0.1, 0.9);
        must(wfmm_plan_set_targets_f64(p, counts[k], target, WFMM_MEMORY_HOST), "targets");
        compare(s, p, kind, core, counts[k], gradient, what);
    }
    compare(s, p, kind, core, M, !gradient, gradient ? "without gradient" : "with gradient");
    fill(target, 3 * M, 0.5, 3);
    must(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_HOST), "targets");
    compare(s, p, kind, core, M, gradient, "targets outside");
    for (int64_t i = 0; i < 3 * M; i++) target[i] = i < 3 * M / 2 ? 0.1 : target[i]; /* half of them at one point: a deeper tree */
    must(wfmm_plan_set_targets_f64(p, M, target, WFMM_MEMORY_HOST), "targets");
    compare(s, p, kind, core, M, gradient, "targets at one point");
    fill(points, 3 * N, 0, 2);
    set_sources(p, kind);
    compare(s, p, kind, core, M, gradient, "sources");
    must(wfmm_plan_destroy(&p), "destroy");
}

int main(int argc, char **argv) {
    const int part = argc > 1 ? atoi(argv[1]) : 1;
    N /= part; M /= part;
    wfmm_session_options o;
    wfmm_session *s = NULL;
    wfmm_session_options_init(&o, sizeof o);
    o.backend = WFMM_BACKEND_CUDA;
    must(wfmm_session_create(&o, &s), "session");
    for (int i = 0; i < N; i++) { ends[2 * i] = 2 * i; ends[2 * i + 1] = 2 * i + 1; }
    for (precision = WFMM_PRECISION_F32; precision <= WFMM_PRECISION_F64; precision++) {
        if (argc > 2 && strcmp(argv[2], precision == WFMM_PRECISION_F32 ? "f32" : "f64")) continue;
        tolerance = precision == WFMM_PRECISION_F32 ? 1e-3 : 1e-5;
        for (enum kind kind = SEGMENTS; kind <= CHARGES; kind++)
            if (argc > 3 && strcmp(argv[3], kinds[kind])) continue;
            else for (int core = 0; core < (kind == CHARGES ? 1 : 2); core++)
                for (reproducible = 0; reproducible < 2; reproducible++) sequence(s, kind, core, core);
    }
    must(wfmm_session_destroy(&s), "destroy");
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
