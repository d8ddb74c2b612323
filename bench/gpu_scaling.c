/* Time over number of points on a GPU, FMM beside direct sum, through the C API with ordinary host arrays, all positions new.
 *
 * Enters: "crossover", "coulomb", or "scaling FILE.svg [most points]". Leaves: tables and a drawing.
 */
#include "gpu_workload.h"

struct timing { double call, device, least, most, error; int32_t order, method; wfmm_report last; };

/* Median of `repetitions` evaluations after two to warm up. */
static struct timing measure(wfmm_session *s, enum kind kind, int64_t n, int method, int precision, double tolerance, int order, int gradient, int repetitions) {
    struct problem p = make(kind, WFMM_REG_NONE, 0, n, n, 0);
    p.order = order;
    double *u = malloc(3 * n * 8), *g = gradient ? malloc(9 * n * 8) : NULL;
    struct spread calls, device;
    struct timing t = {0};
    wfmm_plan *plan = plan_of(s, &p, method, precision, tolerance);
    wfmm_report r = {.struct_size = sizeof r};
    for (int k = repetitions > 2 ? -2 : -1; k < repetitions; k++) {
        if (n <= 1000000) for (int64_t i = 0; i < 3 * n; i++) p.target[i] = uniform();
        else for (int64_t i = 0; i < 3 * n; i++) p.target[i] = p.target[i] * 0.999 + 0.0005; /* all keys change */
        const double begin = now();
        hand_over(plan, &p); evaluate(plan, &p, u, g);
        const double end = now();
        must(wfmm_plan_report(plan, &r), "report");
        if (k >= 0) { calls.of[k] = end - begin; device.of[k] = on_device(&r); }
    }
    t.call = middle(calls.of, repetitions); t.device = middle(device.of, repetitions);
    t.least = device.of[0]; t.most = device.of[repetitions - 1];
    t.order = r.order; t.method = r.method; t.last = r;
    if (method != WFMM_METHOD_DIRECT && n <= 10000000) must(wfmm_plan_check_f64(plan, 300, 7, &t.error), "check");
    must(wfmm_plan_destroy(&plan), "destroy");
    free(u); free(g); drop(&p);
    return t;
}

static void print_passes(const wfmm_report *r) {
    printf("            passes, us:");
    for (int pass = WFMM_PASS_TREE; pass <= WFMM_PASS_P2P; pass++) printf(" %.0f", 1e6 * r->seconds[pass]);
    printf("\n");
    fflush(stdout);
}

/* From how many points the FMM is the faster one at 1e-3, and what AUTO takes. */
static void crossover(wfmm_session *s) {
    const int64_t sizes[] = {1000, 2000, 3000, 5000, 7000, 10000, 14000, 20000, 30000, 50000, 100000};
    for (int precision = WFMM_PRECISION_F32; precision <= WFMM_PRECISION_F64; precision++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const struct timing f = measure(s, PARTICLES, sizes[k], WFMM_METHOD_FMM, precision, 1e-3, 0, 0, REPETITIONS);
            const struct timing d = measure(s, PARTICLES, sizes[k], WFMM_METHOD_DIRECT, precision, 1e-3, 0, 0, REPETITIONS);
            const struct timing a = measure(s, PARTICLES, sizes[k], WFMM_METHOD_AUTO, precision, 1e-3, 0, 0, REPETITIONS);
            printf("%s %7lld: FMM kernels %.3f ms, call %.3f, error %.1e, order %d; direct kernels %.3f, call %.3f; direct/FMM kernels %.2f, calls %.2f; AUTO takes %s, call %.3f\n",
                   precision == WFMM_PRECISION_F32 ? "f32" : "f64", (long long)sizes[k], 1e3 * f.device, 1e3 * f.call, f.error, f.order, 1e3 * d.device, 1e3 * d.call,
                   d.device / f.device, d.call / f.call, a.method == WFMM_METHOD_FMM ? "FMM" : "direct", 1e3 * a.call);
            print_passes(&f.last);
        }
}

/* Velocities of vortex particles against potential and force of as many charges: each at the order that the library chooses, and
 * where those differ both at the higher one. */
static void coulomb(wfmm_session *s) {
    for (int precision = WFMM_PRECISION_F32; precision <= WFMM_PRECISION_F64; precision++)
        for (int digits = 3; digits <= (precision == WFMM_PRECISION_F32 ? 4 : 6); digits += precision == WFMM_PRECISION_F32 ? 1 : 3) {
            struct timing t[2] = {{0}, {0}};
            int order = 0;
            for (int round = 0; round < 2; round++) {
                for (int k = 0; k < 2; k++) t[k] = measure(s, k ? CHARGES : PARTICLES, 1000000, WFMM_METHOD_FMM, precision, pow(10, -digits), order, k, REPETITIONS);
                printf("%s 1e-%d: Biot-Savart velocity %.2f ms (order %d), Coulomb potential and force %.2f ms (order %d), ratio %.2f\n",
                       precision == WFMM_PRECISION_F32 ? "f32" : "f64", digits, 1e3 * t[0].device, t[0].order, 1e3 * t[1].device, t[1].order, t[0].device / t[1].device);
                for (int k = 0; k < 2; k++) print_passes(&t[k].last);
                if (t[0].order == t[1].order) break;
                order = t[0].order > t[1].order ? t[0].order : t[1].order;
            }
        }
}

enum { POINTS = 8, CURVES = 4 };
static const char *const curve_names[CURVES] = {"FMM, f64, 1e-6", "FMM, f32, 1e-4", "direct, f64", "direct, f32"};

static void scaling(wfmm_session *s, double most) {
    static const int64_t sizes[POINTS] = {1000, 10000, 100000, 1000000, 3000000, 10000000, 30000000, 50000000};
    for (int k = 0; k < POINTS && sizes[k] <= most; k++)
        for (int c = 0; c < CURVES; c++) {
            const int precision = c % 2 ? WFMM_PRECISION_F32 : WFMM_PRECISION_F64, fmm = c < 2;
            if (!fmm && sizes[k] > 1000000) continue;
            const int repetitions = sizes[k] > 3000000 ? 3 : !fmm && sizes[k] >= 1000000 ? 3 : sizes[k] > 1000000 ? 7 : REPETITIONS;
            const struct timing t = measure(s, PARTICLES, sizes[k], fmm ? WFMM_METHOD_FMM : WFMM_METHOD_DIRECT, precision, c ? 1e-4 : 1e-6, 0, 0, repetitions);
            printf("%-15s %9lld: kernels %.3f ms (%.3f to %.3f, %d), call %.3f ms, error %.1e, order %d, %.2f ns a point\n", curve_names[c], (long long)sizes[k], 1e3 * t.device, 1e3 * t.least, 1e3 * t.most,
                   repetitions, 1e3 * t.call, t.error, t.order, 1e9 * t.device / sizes[k]);
            fflush(stdout);
        }
}

int main(int argc, char **argv) {
    wfmm_session *s = session(WFMM_BACKEND_CUDA);
    const char *what = argc > 1 ? argv[1] : "crossover";
    if (!strcmp(what, "crossover")) crossover(s);
    if (!strcmp(what, "coulomb")) coulomb(s);
    if (!strcmp(what, "scaling")) scaling(s, argc > 2 ? atof(argv[2]) : 5e7);
    must(wfmm_session_destroy(&s), "destroy");
    return 0;
}
