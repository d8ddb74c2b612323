/* The FMM on a GPU through the C API: errors against the direct sum for every kind of source, core and precision, the time
 * and passes of the fixed workloads with ordinary host arrays, and many evaluations of changing size.
 *
 * Enters: "accuracy", "speed", "calls", "reuse", "many [evaluations]". Leaves: a table; exit code 1 where a tolerance was missed or
 * memory grew.
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

static void time_case(wfmm_session *s, const char *name, enum kind kind, int reg, int64_t n, int64_t m, double core, int f64, double tolerance, int gradient) {
    struct problem p = make(kind, reg, 0, n, m, core);
    double *u = malloc(3 * m * 8), *g = gradient ? malloc(9 * m * 8) : NULL;
    struct spread calls, sets, device;
    wfmm_plan *plan = plan_of(s, &p, WFMM_METHOD_FMM, f64 ? WFMM_PRECISION_F64 : WFMM_PRECISION_F32, tolerance);
    wfmm_report r = {.struct_size = sizeof r};
    for (int k = -2; k < REPETITIONS; k++) { /* two to warm up; all places new in each */
        for (int64_t i = 0; i < 3 * m; i++) p.target[i] = uniform();
        const double begin = now();
        hand_over(plan, &p);
        const double set = now();
        evaluate(plan, &p, u, g);
        const double end = now();
        must(wfmm_plan_report(plan, &r), "report");
        if (k < 0) { if (k == -2) printf("%-16s first call %.1f ms; ", name, 1e3 * (end - begin)); continue; }
        calls.of[k] = end - begin; sets.of[k] = set - begin; device.of[k] = on_device(&r);
    }
    double error = 0;
    if (n <= 1000000) must(wfmm_plan_check_f64(plan, 500, 7, &error), "check");
    const double call = middle(calls.of, REPETITIONS), kernels = middle(device.of, REPETITIONS);
    printf("%s %.0e: error %.1e, call %.2f ms (%.2f to %.2f), set %.2f, device %.2f, host over device %.2f; order %d, depth %d, cells %lld; passes ms:", f64 ? "f64" : "f32",
           tolerance, error, 1e3 * call, 1e3 * calls.of[0], 1e3 * calls.of[REPETITIONS - 1], 1e3 * middle(sets.of, REPETITIONS), 1e3 * kernels, 1e3 * (call - kernels), r.order, r.depth, (long long)r.cells);
    for (int k = 1; k < 9; k++) printf(" %.2f", 1e3 * r.seconds[k]);
    printf("\n"); fflush(stdout);
    must(wfmm_plan_destroy(&plan), "destroy");
    free(u); free(g); drop(&p);
}

/* What a host code pays beside the kernels: ordinary arrays in and out. */
static void calls(wfmm_session *s) {
    time_case(s, "CUBE 1e6", PARTICLES, WFMM_REG_NONE, 1000000, 1000000, 0, 1, 1e-6, 0);
    time_case(s, "CUBE 1e6", PARTICLES, WFMM_REG_NONE, 1000000, 1000000, 0, 0, 1e-4, 0);
    time_case(s, "LAPLACE 1e6", CHARGES, 0, 1000000, 1000000, 0, 1, 1.19e-3, 1);
    time_case(s, "2e4 on 1e7", PARTICLES, WFMM_REG_NONE, 20000, 10000000, 0, 1, 1e-3, 0);
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

static void speed(wfmm_session *s) {
    for (int f64 = 0; f64 < 2; f64++) {
        time_case(s, "CUBE 1e4", PARTICLES, WFMM_REG_NONE, 10000, 10000, 0, f64, 1e-3, 0);
        time_case(s, "CUBE 1e5", PARTICLES, WFMM_REG_NONE, 100000, 100000, 0, f64, 1e-4, 0);
        time_case(s, "CUBE 1e6", PARTICLES, WFMM_REG_NONE, 1000000, 1000000, 0, f64, f64 ? 1e-6 : 1e-4, 0);
        time_case(s, "LAPLACE 1e6", CHARGES, 0, 1000000, 1000000, 0, f64, 1.19e-3, 1);
    }
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
    if (!strcmp(what, "speed")) speed(s);
    if (!strcmp(what, "calls")) calls(s);
    if (!strcmp(what, "reuse")) reuse(s);
    if (!strcmp(what, "many")) many(s, argc > 2 ? atoi(argv[2]) : 10000);
    must(wfmm_session_destroy(&s), "destroy");
    printf("%d failures\n", failures);
    return failures != 0;
}
