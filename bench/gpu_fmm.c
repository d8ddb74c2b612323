/* The FMM on a GPU through the C API: errors against the direct sum for every kind of source, core and precision, the time
 * and passes of the fixed workloads with ordinary host arrays, and many evaluations of changing size.
 *
 * Enters: "accuracy", "workloads [most points]", "tight [most points]", "dust", "periodic [most points]", "calls", "reuse", "many [evaluations]". Leaves: a
 * table; exit code 1 where a tolerance was missed or memory grew.
 */
#include "gpu_workload.h"

static int failures;

static void accuracy(wfmm_session *s) {
    static const struct { enum kind kind; int reg; const char *name; } cases[] = {
        {CHARGES, 0, "charges"}, {PARTICLES, WFMM_REG_NONE, "particles none"}, {PARTICLES, WFMM_REG_GAUSS_ERF, "particles gauss-erf"},
        {PARTICLES, WFMM_REG_EXPONENTIAL, "particles exponential"}, {PARTICLES, WFMM_REG_COMPACT, "particles compact"},
        {PARTICLES, WFMM_REG_ROSENHEAD, "particles rosenhead"}, {PARTICLES, WFMM_REG_WINCKELMANS, "particles winckelmans"}, {PARTICLES, WFMM_REG_POLYNOMIAL, "particles polynomial"},
        {SEGMENTS, WFMM_REG_NONE, "segments none"}, {SEGMENTS, WFMM_REG_RANKINE, "segments rankine"}, {SEGMENTS, WFMM_REG_LAMB_OSEEN, "segments lamb-oseen"},
        {SEGMENTS, WFMM_REG_VATISTAS, "segments vatistas"}, {SEGMENTS, WFMM_REG_SCULLY, "segments scully"}, {SEGMENTS, WFMM_REG_OFFSET, "segments offset"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int shape = 0; shape < 5; shape++) {
            if (shape && cases[c].reg != 0 && cases[c].reg != WFMM_REG_GAUSS_ERF && cases[c].reg != WFMM_REG_VATISTAS) continue;
            struct problem p = make(cases[c].kind, cases[c].reg, shape, 20000, 20000, shape == 2 ? 0.002 : 0.03);
            const int main = p.kind == CHARGES ? 1 : 3;
            double *u = malloc(3 * p.m * 8), *g = malloc(9 * p.m * 8), *v = malloc(3 * p.m * 8), *h = malloc(9 * p.m * 8);
            wfmm_plan *direct = plan_of(s, &p, WFMM_METHOD_DIRECT, WFMM_PRECISION_F64, 1e-4);
            hand_over(direct, &p); evaluate(direct, &p, v, h); must(wfmm_plan_destroy(&direct), "destroy");
            printf("%-22s %-9s", cases[c].name, shapes[shape]);
            for (int f64 = 0; f64 < 2; f64++) for (int k = f64 ? 2 : 2; k <= (f64 ? 8 : 4); k += f64 ? 2 : 1) {
                const double tolerance = pow(10, -k);
                wfmm_plan *plan = plan_of(s, &p, WFMM_METHOD_FMM, f64 ? WFMM_PRECISION_F64 : WFMM_PRECISION_F32, tolerance);
                hand_over(plan, &p); evaluate(plan, &p, u, g); must(wfmm_plan_destroy(&plan), "destroy");
                const double e = distance(u, v, main * p.m), slope = distance(g, h, 3 * main * p.m);
                const int good = e <= tolerance && slope <= 30 * tolerance;
                failures += !good;
                printf("  %s 1e-%d: %.1e %.1e%s", f64 ? "f64" : "f32", k, e, slope, good ? "" : " MISSED");
            }
            printf("\n"); fflush(stdout);
            free(u); free(g); free(v); free(h); drop(&p);
        }
}

/* New positions for every repetition: targets in the cube; sources too, and the targets on them, further ones beside them; on a wake; in the air and dust over ground. */
static void on_sources(struct problem *p) {
    for (int64_t i = 0; i < 3 * p->n; i++) p->target[i] = p->points[i] = uniform();
    for (int64_t i = 3 * p->n; i < 3 * p->m; i++) p->target[i] = uniform();
}
static double bell(void) { double s = -6; for (int k = 0; k < 12; k++) s += uniform(); return s; }
static void on_wake(struct problem *p) {
    for (int64_t i = 0; i < p->n; i++) {
        const double t = uniform(), angle = 12 * PI * t + (double)(i % 4) * PI / 2, r = 0.3 * (1 - 0.2 * t);
        const double x[3] = {0.5 + r * cos(angle), 0.5 + r * sin(angle), 0.9 - 0.8 * t};
        for (int k = 0; k < 3; k++) p->target[3 * i + k] = p->points[3 * i + k] = x[k] + 0.01 * bell();
        p->core[i] = 0.005 * cbrt(1e6 / (double)p->n) * pow(10, -2 * uniform());
    }
}

struct work {
    const char *name;
    void (*anew)(struct problem *);
    enum kind kind;
    int regularization;
    int64_t n, m;
    double core;
    int gradient, f64; /* 2: the library's choice for double arrays */
    double tolerance, period[3];
};
static const int precisions[] = {WFMM_PRECISION_F32, WFMM_PRECISION_F64, WFMM_PRECISION_ARRAYS};
static const char *const precision_names[] = {"f32", "f64", "arrays"};

static void time_case(wfmm_session *s, struct work w) {
    struct problem p = make(w.kind, w.regularization, 0, w.n, w.m, w.core);
    memcpy(p.period, w.period, sizeof p.period);
    if (w.core > 0) for (int64_t i = 0; i < w.n; i++) p.core[i] = w.core;
    double *u = malloc(3 * w.m * 8), *g = w.gradient ? malloc(9 * w.m * 8) : NULL;
    struct spread calls, sets, device;
    wfmm_plan *plan = plan_of(s, &p, WFMM_METHOD_FMM, precisions[w.f64], w.tolerance);
    wfmm_report r = {.struct_size = sizeof r};
    for (int k = -2; k < REPETITIONS; k++) { /* two to warm up */
        w.anew(&p);
        const double begin = now();
        hand_over(plan, &p);
        const double set = now();
        evaluate(plan, &p, u, g);
        const double end = now();
        must(wfmm_plan_report(plan, &r), "report");
        if (k < 0) { if (k == -2) printf("%-12s %s %.0e: first call %.1f ms; ", w.name, precision_names[w.f64], w.tolerance, 1e3 * (end - begin)); continue; }
        calls.of[k] = end - begin; sets.of[k] = set - begin; device.of[k] = on_device(&r);
    }
    double error = 0;
    /* Few targets miss the largest velocities, to which errors are relative: 500 of 1e7 beside 2e4 sources found up to four times the error. */
    if (w.n <= 1000000) must(wfmm_plan_check_f64(plan, 4000, 7, &error), "check");
    failures += error > w.tolerance;
    const double call = middle(calls.of, REPETITIONS), kernels = middle(device.of, REPETITIONS);
    printf("error %.1e%s, device %.3f ms (%.3f to %.3f), call %.2f (%.2f to %.2f), set %.2f, host over device %.2f; precision %d, method %d, order %d, depth %d, cells %lld; passes ms:", error,
           error > w.tolerance ? " MISSED" : "", 1e3 * kernels, 1e3 * device.of[0], 1e3 * device.of[REPETITIONS - 1], 1e3 * call, 1e3 * calls.of[0], 1e3 * calls.of[REPETITIONS - 1],
           1e3 * middle(sets.of, REPETITIONS), 1e3 * (call - kernels), r.precision, r.method, r.order, r.depth, (long long)r.cells);
    for (int k = 1; k < 9; k++) printf(" %.2f", 1e3 * r.seconds[k]);
    printf("\n"); fflush(stdout);
    must(wfmm_plan_destroy(&plan), "destroy");
    free(u); free(g); drop(&p);
}

static struct work cube(const char *name, int64_t n, int64_t m, int f64, double tolerance) {
    return (struct work){name, targets_in_cube, PARTICLES, WFMM_REG_NONE, n, m, 0, 0, f64, tolerance};
}

/* The same cube in free space and in periodic domains. */
static void periodic(wfmm_session *s, double most) {
    static const struct { const char *name; double period[3]; } domains[] = {
        {"open", {0, 0, 0}}, {"box", {1, 1, 1}}, {"tube", {1, 0, 0}}, {"slab", {1, 1, 0}}, {"uneven box", {1, 1, 1.25}}};
    for (int f64 = 0; f64 < 2; f64++)
        for (double n = 1e4; n <= most; n *= 10)
            /* Copies of near images of 1e7 points are refused. */
            for (size_t k = 0; k < (n > 1e6 ? 2 : sizeof domains / sizeof *domains); k++) {
                struct work w = cube(domains[k].name, (int64_t)n, (int64_t)n, f64, f64 ? 1e-6 : 1e-4);
                memcpy(w.period, domains[k].period, sizeof w.period);
                time_case(s, w);
            }
}

static void time_dust(wfmm_session *s, int f64) {
    time_case(s, (struct work){"DUST", dust, SEGMENTS, WFMM_REG_VATISTAS, 20000, 2000000, 0, 0, f64, 1e-4});
}

/* The fixed workloads, each with the tolerance that performance.md has figures for. */
static void workloads(wfmm_session *s, double most) {
    for (int f64 = 0; f64 < 2; f64++) {
        const double tolerance = f64 ? 1e-6 : 1e-4;
        time_case(s, cube("CUBE 1e6", 1000000, 1000000, f64, tolerance));
        if (most >= 1e7) time_case(s, cube("CUBE 1e7", 10000000, 10000000, f64, tolerance));
        time_case(s, (struct work){"CUBE on itself", on_sources, PARTICLES, WFMM_REG_NONE, 1000000, 1000000, 0, 0, f64, tolerance});
        time_case(s, (struct work){"and others", on_sources, PARTICLES, WFMM_REG_NONE, 1000000, 1000999, 0, 0, f64, tolerance});
        time_case(s, (struct work){"LAPLACE 1e6", on_sources, CHARGES, 0, 1000000, 1000000, 0, 1, f64, 1.19e-3});
        for (int n = 10000; n <= 1000000; n *= 10) time_case(s, (struct work){"VPM", on_sources, PARTICLES, WFMM_REG_GAUSS_ERF, n, n, 2 / cbrt(n), 1, f64, 1e-3});
        for (int n = 100000; n <= 1000000; n *= 10) time_case(s, (struct work){"WAKE", on_wake, PARTICLES, WFMM_REG_GAUSS_ERF, n, n, 0, 1, f64, 1e-3});
        time_dust(s, f64);
    }
}

/* Tolerances below 1e-4: the library's choice for double arrays, and double precision. */
static void tight(wfmm_session *s, double most) {
    for (int k = 5; k <= 6; k++)
        for (int f64 = 2; f64 > 0; f64--) {
            for (double n = 1e4; n <= most; n *= sqrt(10)) time_case(s, cube("CUBE", (int64_t)n, (int64_t)n, f64, pow(10, -k)));
            for (double n = 1e4; n <= most; n *= 10) time_case(s, (struct work){"WAKE", on_wake, PARTICLES, WFMM_REG_GAUSS_ERF, (int64_t)n, (int64_t)n, 0, 0, f64, pow(10, -k)});
        }
}

/* What a host code pays beside the kernels: ordinary arrays in and out. */
static void calls(wfmm_session *s) {
    time_case(s, cube("CUBE 1e6", 1000000, 1000000, 1, 1e-6));
    time_case(s, cube("CUBE 1e6", 1000000, 1000000, 0, 1e-4));
    time_case(s, (struct work){"LAPLACE 1e6", on_sources, CHARGES, 0, 1000000, 1000000, 0, 1, 1, 1.19e-3});
    time_case(s, cube("2e4 on 1e7", 20000, 10000000, 1, 1e-3));
}

/* What a call costs when only strengths, or only targets, are new. */
static void reuse_case(wfmm_session *s, const char *name, enum kind kind, int reg, int64_t n, int64_t m, double core, int f64, double tolerance) {
    struct problem p = make(kind, reg, 0, n, m, core);
    double *u = malloc(3 * m * 8);
    static const char *const what[] = {"all new", "strengths new", "targets new", "both new"};
    wfmm_plan *plan = plan_of(s, &p, WFMM_METHOD_FMM, f64 ? WFMM_PRECISION_F64 : WFMM_PRECISION_F32, tolerance);
    wfmm_report r = {.struct_size = sizeof r};
    printf("%-12s %s %.0e:", name, f64 ? "f64" : "f32", tolerance);
    for (int change = 0; change < 4; change++) {
        struct spread calls, device;
        for (int k = -2; k < REPETITIONS; k++) {
            for (int64_t i = 0; i < 3 * m; i++) p.target[i] = uniform();
            for (int64_t i = 0; i < 3 * n; i++) p.strength[i] = 2 * uniform() - 1;
            const double begin = now();
            if (change == 0) hand_over(plan, &p);
            if (change & 1) must(wfmm_plan_set_strengths_f64(plan, kind == SEGMENTS ? n : 0, kind == SEGMENTS ? p.strength : NULL, kind == PARTICLES ? n : 0, kind == PARTICLES ? p.strength : NULL,
                                                             kind == CHARGES ? n : 0, kind == CHARGES ? p.strength : NULL, WFMM_MEMORY_HOST), "strengths");
            if (change & 2) must(wfmm_plan_set_targets_f64(plan, m, p.target, WFMM_MEMORY_HOST), "targets");
            evaluate(plan, &p, u, NULL);
            const double end = now();
            must(wfmm_plan_report(plan, &r), "report");
            if (k >= 0) { calls.of[k] = end - begin; device.of[k] = on_device(&r); }
        }
        printf("  %s: call %.2f ms, kernels %.2f", what[change], 1e3 * middle(calls.of, REPETITIONS), 1e3 * middle(device.of, REPETITIONS));
    }
    printf("\n"); fflush(stdout);
    must(wfmm_plan_destroy(&plan), "destroy");
    free(u); drop(&p);
}

static void reuse(wfmm_session *s) {
    reuse_case(s, "CUBE 1e6", PARTICLES, WFMM_REG_NONE, 1000000, 1000000, 0, 1, 1e-6);
    reuse_case(s, "CUBE 1e6", PARTICLES, WFMM_REG_NONE, 1000000, 1000000, 0, 0, 1e-4);
    reuse_case(s, "LAPLACE 1e6", CHARGES, 0, 1000000, 1000000, 0, 0, 1.19e-3);
    reuse_case(s, "CUBE 1e5", PARTICLES, WFMM_REG_NONE, 100000, 100000, 0, 1, 1e-4);
    reuse_case(s, "1e6 on 1e4", PARTICLES, WFMM_REG_NONE, 1000000, 10000, 0, 1, 1e-4);
}

static void many(wfmm_session *s, int evaluations) {
    struct problem p = make(PARTICLES, WFMM_REG_GAUSS_ERF, 0, 20000, 20000, 0.02);
    double *u = malloc(3 * p.m * 8);
    wfmm_plan *plan = plan_of(s, &p, WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-3);
    uint64_t device[2] = {0, 0}, host[2]; /* the host keeps copies of what it was given: they differ in size */
    const int64_t n = p.n, m = p.m;
    const double begin = now();
    for (int k = 0; k < evaluations; k++) {
        p.n = k == 0 || k == evaluations / 2 ? n : 1 + (int64_t)(uniform() * n);
        p.m = k == 0 || k == evaluations / 2 ? m : 1 + (int64_t)(uniform() * m);
        hand_over(plan, &p); evaluate(plan, &p, u, NULL);
        if (k == evaluations / 2) must(wfmm_plan_workspace(plan, &host[0], &device[0]), "workspace");
    }
    must(wfmm_plan_workspace(plan, &host[1], &device[1]), "workspace");
    printf("%d evaluations of changing size: %.2f ms each; device bytes half way %llu, at the end %llu\n", evaluations, 1e3 * (now() - begin) / evaluations,
           (unsigned long long)device[0], (unsigned long long)device[1]);
    failures += device[0] != device[1];
    must(wfmm_plan_destroy(&plan), "destroy");
    free(u); drop(&p);
}

int main(int argc, char **argv) {
    wfmm_session *s = session(WFMM_BACKEND_CUDA);
    const char *what = argc > 1 ? argv[1] : "accuracy";
    if (!strcmp(what, "accuracy")) accuracy(s);
    if (!strcmp(what, "periodic")) periodic(s, argc > 2 ? atof(argv[2]) : 1e6);
    if (!strcmp(what, "workloads")) workloads(s, argc > 2 ? atof(argv[2]) : 1e7);
    if (!strcmp(what, "tight")) tight(s, argc > 2 ? atof(argv[2]) : 1e6);
    if (!strcmp(what, "dust")) time_dust(s, 0), time_dust(s, 1);
    if (!strcmp(what, "calls")) calls(s);
    if (!strcmp(what, "reuse")) reuse(s);
    if (!strcmp(what, "many")) many(s, argc > 2 ? atoi(argv[2]) : 10000);
    must(wfmm_session_destroy(&s), "destroy");
    printf("%d failures\n", failures);
    return failures != 0;
}
