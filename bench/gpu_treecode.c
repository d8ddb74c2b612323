/* Treecode, FMM and direct sum on a GPU, through the C API with ordinary host arrays.
 *
 * Enters: "curve [most points [tolerance]]": as many targets as sources, all positions new; "few [sources [tolerance]]": few targets of many
 * sources, which are kept or new; "passes [points [tolerance]]": what treecode and FMM spend where. Leaves: tables.
 */
#include "gpu_workload.h"

struct timing { double call, device, error; wfmm_report last; };
static const char *const names[] = {"AUTO", "direct", "FMM", "treecode"};
static const char *of(int precision) { return precision == WFMM_PRECISION_F32 ? "f32" : "f64"; }

/* Median of some evaluations with new targets after two to warm up; all sources are set again unless they are `kept`. */
static struct timing measure(wfmm_session *s, const struct problem *like, int method, int precision, double tolerance, int kept, int repetitions) {
    struct problem p = *like;
    double *u = malloc(3 * p.m * sizeof(double));
    struct spread calls, device;
    struct timing t = {0};
    wfmm_plan *plan = plan_of(s, &p, method, precision, tolerance);
    t.last.struct_size = sizeof t.last;
    p.target = malloc(3 * p.m * sizeof(double));
    for (int k = -2; k < repetitions; k++) {
        for (int64_t i = 0; i < p.m; i++) point(0, p.target + 3 * i);
        for (int64_t i = 0; i < 3 * p.m; i++) p.target[i] = 0.005 + 0.99 * p.target[i]; /* inside of the kept cube */
        const double begin = now();
        if (k == -2 || !kept) hand_over(plan, &p);
        else must(wfmm_plan_set_targets_f64(plan, p.m, p.target, WFMM_MEMORY_HOST), "targets");
        evaluate(plan, &p, u, NULL);
        const double end = now();
        must(wfmm_plan_report(plan, &t.last), "report");
        if (k >= 0) { calls.of[k] = end - begin; device.of[k] = on_device(&t.last); }
    }
    t.call = middle(calls.of, repetitions); t.device = middle(device.of, repetitions);
    if (method != WFMM_METHOD_DIRECT) must(wfmm_plan_check_f64(plan, 300, 7, &t.error), "check");
    must(wfmm_plan_destroy(&plan), "destroy");
    free(u); free(p.target);
    return t;
}

/* What was done in fact, where that is not what was asked for. */
static void print(const char *name, int method, const struct timing *t) {
    printf(" | %s %.3f ms (call %.3f), %.1e", name, 1e3 * t->device, 1e3 * t->call, t->error);
    if (t->last.method != method && method) printf(" BY %s", names[t->last.method]);
    if (t->last.retries) printf(" after %lld retries", (long long)t->last.retries);
}

/* Direct sums of more pairs are scaled from these. */
static const double most_pairs = 1e12;

static void row(wfmm_session *s, const struct problem *p, int precision, double tolerance, int kept) {
    const int repetitions = (double)p->n * p->m > 1e12 ? 3 : p->n + p->m > 1000000 ? 7 : REPETITIONS;
    const struct timing t = measure(s, p, WFMM_METHOD_TREECODE, precision, tolerance, kept, repetitions);
    const struct timing f = measure(s, p, WFMM_METHOD_FMM, precision, tolerance, kept, repetitions);
    printf("%s %9lld sources %9lld targets %.0e %s", of(precision), (long long)p->n, (long long)p->m, tolerance, kept ? "kept" : "new");
    print("treecode", WFMM_METHOD_TREECODE, &t); print("FMM", WFMM_METHOD_FMM, &f);
    if ((double)p->n * p->m <= most_pairs) {
        const struct timing d = measure(s, p, WFMM_METHOD_DIRECT, precision, tolerance, kept, p->n > 300000 && p->m > 300000 ? 3 : repetitions);
        printf(" | direct %.3f ms (call %.3f)", 1e3 * d.device, 1e3 * d.call);
    }
    printf(" | FMM/treecode %.2f\n", f.device / t.device);
    fflush(stdout);
}

static void curve(wfmm_session *s, double most, double tolerance) {
    static const int64_t sizes[] = {1000, 3000, 10000, 30000, 100000, 300000, 1000000, 3000000, 10000000};
    for (int precision = WFMM_PRECISION_F32; precision <= WFMM_PRECISION_F64; precision++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes && (double)sizes[k] <= most; k++) {
            struct problem p = make(PARTICLES, WFMM_REG_NONE, 0, sizes[k], sizes[k], 0);
            row(s, &p, precision, tolerance, 0);
            drop(&p);
        }
}

static void few_targets(wfmm_session *s, int64_t n, double tolerance) {
    static const int64_t targets[] = {1, 10, 100, 300, 1000, 3000, 10000, 30000, 100000};
    for (int precision = WFMM_PRECISION_F32; precision <= WFMM_PRECISION_F64; precision++)
        for (int kept = 1; kept >= 0; kept--)
            for (size_t k = 0; k < sizeof targets / sizeof *targets && targets[k] <= n; k++) {
                struct problem p = make(PARTICLES, WFMM_REG_NONE, 0, n, targets[k], 0);
                row(s, &p, precision, tolerance, kept);
                drop(&p);
            }
}

static void passes(wfmm_session *s, int64_t n, double tolerance) {
    for (int precision = WFMM_PRECISION_F32; precision <= WFMM_PRECISION_F64; precision++)
        for (int method = WFMM_METHOD_FMM; method <= WFMM_METHOD_TREECODE; method++) {
            struct problem p = make(PARTICLES, WFMM_REG_NONE, 0, n, n, 0);
            const struct timing t = measure(s, &p, method, precision, tolerance, 0, 7);
            const double *of_pass = t.last.seconds;
            printf("%s %lld %.0e %-8s %.3f ms, error %.1e, order %d, depth %d; us: tree %.0f, lists %.0f, P2M %.0f, M2M %.0f, M2L %.0f, L2L %.0f, L2P %.0f, M2P %.0f, P2P %.0f\n", of(precision), (long long)n, tolerance,
                   names[t.last.method], 1e3 * t.device, t.error, t.last.order, t.last.depth, 1e6 * of_pass[WFMM_PASS_TREE], 1e6 * of_pass[WFMM_PASS_LISTS], 1e6 * of_pass[WFMM_PASS_P2M], 1e6 * of_pass[WFMM_PASS_M2M],
                   1e6 * of_pass[WFMM_PASS_M2L], 1e6 * of_pass[WFMM_PASS_L2L], 1e6 * of_pass[WFMM_PASS_L2P], 1e6 * of_pass[WFMM_PASS_M2P], 1e6 * of_pass[WFMM_PASS_P2P]);
            fflush(stdout);
            drop(&p);
        }
}

int main(int argc, char **argv) {
    wfmm_session *s = session(WFMM_BACKEND_CUDA);
    const char *what = argc > 1 ? argv[1] : "curve";
    const double size = argc > 2 ? atof(argv[2]) : 0, tolerance = argc > 3 ? atof(argv[3]) : 0;
    if (!strcmp(what, "curve")) curve(s, size > 0 ? size : 1e7, tolerance > 0 ? tolerance : 1e-4);
    if (!strcmp(what, "few")) few_targets(s, size > 0 ? (int64_t)size : 1000000, tolerance > 0 ? tolerance : 1e-2);
    if (!strcmp(what, "passes")) passes(s, size > 0 ? (int64_t)size : 1000000, tolerance > 0 ? tolerance : 1e-4);
    must(wfmm_session_destroy(&s), "destroy");
    return 0;
}
