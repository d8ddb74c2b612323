/* The direct sums on a GPU: against the CPU for every kernel, then pairs a second.
 *
 * Enters: nothing, or "accuracy", "speed", "speed KIND", "failure". Leaves: a table on standard output; exit code 1 when a value is off.
 * Host arrays in and out; "device" is the time between events around the kernels, "call" the whole evaluate.
 */
#include "gpu_workload.h"

static int failures;

static double *random_array(size_t n, double low, double high) {
    double *a = malloc(n * sizeof *a);
    for (size_t i = 0; i < n; i++) a[i] = low + (high - low) * uniform();
    return a;
}

static wfmm_plan *direct_plan(wfmm_session *s, const struct problem *p, int precision) {
    wfmm_plan *plan = plan_of(s, p, WFMM_METHOD_DIRECT, precision, 1e-4);
    hand_over(plan, p);
    return plan;
}

static struct problem random_problem(enum kind kind, int regularization, int64_t n, int64_t m, double core, double length) {
    struct problem p = {.kind = kind, .regularization = regularization, .n = n, .m = m};
    p.target = random_array(3 * m, 0, 1);
    p.core = malloc(n * sizeof(double));
    for (int64_t k = 0; k < n; k++) p.core[k] = core * (0.5 + uniform());
    if (kind == SEGMENTS) {
        p.points = random_array(6 * n, 0, 1);
        p.ends = malloc(2 * n * sizeof(int32_t));
        for (int64_t k = 0; k < n; k++) {
            for (int c = 0; c < 3; c++) p.points[6 * k + 3 + c] = p.points[6 * k + c] + length * (2 * uniform() - 1);
            p.ends[2 * k] = (int32_t)(2 * k);
            p.ends[2 * k + 1] = (int32_t)(2 * k + 1);
        }
        p.strength = random_array(n, -1, 1);
    } else {
        p.points = random_array(3 * n, 0, 1);
        p.strength = random_array(kind == PARTICLES ? 3 * n : n, -1, 1);
    }
    return p;
}

static const char *names[] = {"none", "rankine", "lamb_oseen", "vatistas", "scully", "offset", "gauss_erf", "exponential", "compact", "rosenhead", "winckelmans", "polynomial"};
static const char *kinds[] = {"segments", "particles", "charges"};
static const char *only; /* kind of source that is measured, or null */

static void compare(wfmm_session *gpu, wfmm_session *cpu, enum kind kind, int regularization, int64_t n, int64_t m) {
    struct problem p = random_problem(kind, regularization, n, m, 0.05, 0.1);
    const int width = kind == CHARGES ? 1 : 3;
    /* Targets on sources, on end points and on the line of a segment; some cores are zero. */
    for (int64_t k = 0; k < 40 && k < m && k < n; k++)
        for (int c = 0; c < 3; c++)
            p.target[3 * k + c] = kind != SEGMENTS ? p.points[3 * k + c] : k % 2 ? p.points[6 * k + c] : 0.5 * (p.points[6 * k + c] + p.points[6 * k + 3 + c]);
    for (int64_t k = 0; k < n; k += 7) p.core[k] = 0;
    if (kind == SEGMENTS) p.ends[5] = p.ends[4];
    double *u[3], *g[3];
    for (int i = 0; i < 3; i++) { u[i] = calloc(width * m, sizeof(double)); g[i] = calloc(3 * width * m, sizeof(double)); }
    wfmm_plan *plans[3] = {direct_plan(cpu, &p, WFMM_PRECISION_F64), direct_plan(gpu, &p, WFMM_PRECISION_F64), direct_plan(gpu, &p, WFMM_PRECISION_F32)};
    for (int i = 0; i < 3; i++) evaluate(plans[i], &p, u[i], g[i]);
    double *again = calloc(width * m, sizeof(double));
    evaluate(plans[1], &p, again, NULL);
    /* A midpoint that rounding moves off a singular line has no digits in common with anything: left out of the sum. */
    const int64_t skip = kind == SEGMENTS ? 40 : 0;
    const double e64 = distance(u[1] + skip * width, u[0] + skip * width, width * (m - skip)), e32 = distance(u[2] + skip * width, u[0] + skip * width, width * (m - skip));
    const double g64 = distance(g[1] + 3 * skip * width, g[0] + 3 * skip * width, 3 * width * (m - skip)), g32 = distance(g[2] + 3 * skip * width, g[0] + 3 * skip * width, 3 * width * (m - skip));
    const double same = distance(again + skip * width, u[1] + skip * width, width * (m - skip));
    const int bad = !(e64 < 1e-12 && g64 < 1e-11 && e32 < 1e-4 && g32 < 3e-4 && same < 1e-13);
    failures += bad;
    printf("%-9s %-12s n %6lld m %6lld  f64 %.1e  gradient %.1e  f32 %.1e  gradient %.1e  alone %.1e%s\n", kinds[kind], names[regularization], (long long)n, (long long)m, e64, g64, e32, g32, same, bad ? "  OFF" : "");
    fflush(stdout);
    for (int i = 0; i < 3; i++) { wfmm_plan_destroy(&plans[i]); free(u[i]); free(g[i]); }
    free(again);
    drop(&p);
}

static void measure(wfmm_session *gpu, enum kind kind, int regularization, int gradient, int precision, int64_t n, int64_t m, double core, double length, int repetitions) {
    if (only && strcmp(only, kinds[kind])) return;
    struct problem p = random_problem(kind, regularization, n, m, core, length);
    if (core > 0) for (int64_t k = 0; k < n; k++) p.core[k] = core;
    const int width = kind == CHARGES ? 1 : 3;
    double *u = malloc(width * m * sizeof(double)), *g = gradient ? malloc(3 * width * m * sizeof(double)) : NULL;
    wfmm_plan *plan = direct_plan(gpu, &p, precision);
    double *device = malloc(repetitions * sizeof(double)), *call = malloc(repetitions * sizeof(double)), *transfer = malloc(repetitions * sizeof(double));
    evaluate(plan, &p, u, g);
    for (int i = 0; i < repetitions; i++) {
        wfmm_report r;
        memset(&r, 0, sizeof r);
        r.struct_size = sizeof r;
        must(wfmm_plan_set_targets_f64(plan, m, p.target, WFMM_MEMORY_HOST), "targets");
        evaluate(plan, &p, u, g);
        must(wfmm_plan_report(plan, &r), "report");
        device[i] = r.seconds[WFMM_PASS_P2P];
        call[i] = r.seconds[WFMM_PASS_TOTAL];
        transfer[i] = r.seconds[WFMM_PASS_TRANSFER];
    }
    qsort(device, repetitions, sizeof(double), by_size);
    qsort(call, repetitions, sizeof(double), by_size);
    qsort(transfer, repetitions, sizeof(double), by_size);
    const double middle = device[repetitions / 2];
    printf("%-9s %-11s %s %s  n %8lld m %8lld  device %9.3f ms (%.3f to %.3f)  %.3e pairs/s  call %9.3f ms  transfer %.3f ms\n", kinds[kind], names[regularization],
           gradient ? "u+grad" : "u     ", precision == WFMM_PRECISION_F32 ? "f32" : "f64", (long long)n, (long long)m, middle * 1e3, device[0] * 1e3,
           device[repetitions - 1] * 1e3, (double)n * m / middle, call[repetitions / 2] * 1e3, transfer[repetitions / 2] * 1e3);
    fflush(stdout);
    wfmm_plan_destroy(&plan);
    free(u); free(g); free(device); free(call); free(transfer);
    drop(&p);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    const int all = !strcmp(what, "all"), quick = argc > 2 && !strcmp(argv[2], "quick");
    char text[800];
    wfmm_session *gpu = session(WFMM_BACKEND_CUDA), *cpu = session(WFMM_BACKEND_CPU);
    must(wfmm_session_describe(gpu, text, sizeof text, NULL), "describe");
    printf("%s\n", text);
    if (all || !strcmp(what, "accuracy")) {
        const int64_t n = quick ? 300 : 3000, m = quick ? 200 : 5000;
        for (int r = WFMM_REG_NONE; r <= WFMM_REG_OFFSET; r++) compare(gpu, cpu, SEGMENTS, r, n, m);
        compare(gpu, cpu, PARTICLES, WFMM_REG_NONE, n, m);
        for (int r = WFMM_REG_GAUSS_ERF; r <= WFMM_REG_POLYNOMIAL; r++) compare(gpu, cpu, PARTICLES, r, n, m);
        compare(gpu, cpu, CHARGES, 0, n, m);
        compare(gpu, cpu, PARTICLES, WFMM_REG_GAUSS_ERF, 1, 1);
        compare(gpu, cpu, SEGMENTS, WFMM_REG_VATISTAS, quick ? 2000 : 20000, 41);
    }
    if (all || !strcmp(what, "speed")) {
        only = argc > 2 && !quick ? argv[2] : NULL;
        const int64_t k128 = 1 << 17, k256 = 1 << 18, mega = 1000000;
        const double overlap = 2.0 / 100;
        for (int precision = WFMM_PRECISION_F64; precision >= WFMM_PRECISION_F32; precision--) {
            measure(gpu, PARTICLES, WFMM_REG_NONE, 0, precision, k128, k256, 0, 0, 20);
            measure(gpu, PARTICLES, WFMM_REG_NONE, 0, precision, mega, mega, 0, 0, 3);
            measure(gpu, PARTICLES, WFMM_REG_NONE, 1, precision, k128, k256, 0, 0, 20);
            measure(gpu, PARTICLES, WFMM_REG_GAUSS_ERF, 1, precision, mega, mega, overlap, 0, 3);
            measure(gpu, SEGMENTS, WFMM_REG_VATISTAS, 0, precision, k128, k256, 0.001, 0.01, 20);
            measure(gpu, SEGMENTS, WFMM_REG_VATISTAS, 1, precision, k128, k256, 0.001, 0.01, 5);
            measure(gpu, SEGMENTS, WFMM_REG_VATISTAS, 0, precision, 20000, 2000000, 0.001, 0.01, 5);
            measure(gpu, CHARGES, 0, 1, precision, k128, k256, 0, 0, 5);
            measure(gpu, PARTICLES, WFMM_REG_NONE, 0, precision, mega, 1000, 0, 0, 20);
        }
    }
    wfmm_session_destroy(&gpu);
    wfmm_session_destroy(&cpu);
    printf("%s: %d values off\n", what, failures);
    return failures ? 1 : 0;
}
