/* Several devices of one process (`devices` of the session options) beside one: milliseconds by the host's clock, host arrays in single
 * precision. A step sets new sources and targets and evaluates; "targets" sets targets alone, so that multipoles are kept; an evaluation
 * has nothing new.
 *
 * RECIPE=1 also prints the recipes and retries of the last evaluations.
 *
 * Enters: the devices, separated by commas ("0,1"; a number may occur twice), repetitions, tolerance. Leaves: a table, each row with the
 * median times of one device and of all, the ratios, and the error at 500 targets; exit code 1 where it exceeds the tolerance.
 */
#include "gpu_workload.h"

enum { MOST_DEVICES = 8, MOST_TIMES = 101, KINDS = 3 };
static const char *const kinds[KINDS] = {"step", "targets", "evaluation"};

static float *random_floats(int64_t n, float low, float high) {
    float *x = malloc(n * sizeof *x);
    for (int64_t k = 0; k < n; k++) x[k] = low + (high - low) * (float)uniform();
    return x;
}

/* Median milliseconds of each kind; the plan's error. */
static double measure(wfmm_session *session, int64_t n, int vpm, double tolerance, int times, double took[KINDS]) {
    static double all[KINDS][MOST_TIMES];
    wfmm_plan_options o;
    wfmm_plan *plan = NULL;
    float *x[2] = {random_floats(3 * n, 0, 1), random_floats(3 * n, 0, 1)}, *a = random_floats(3 * n, -1, 1), *core = malloc(n * sizeof *core);
    float *u = malloc(12 * n), *g = vpm ? malloc(36 * n) : NULL;
    double error;
    for (int64_t k = 0; k < n; k++) core[k] = (float)(2 / cbrt((double)n));
    must(wfmm_plan_options_init(&o, sizeof o), "options");
    o.tolerance = tolerance, o.method = WFMM_METHOD_FMM, o.precision = WFMM_PRECISION_F32;
    if (!vpm) o.particle_regularization = WFMM_REG_NONE;
    must(wfmm_plan_create(session, &o, &plan), "plan");
    must(wfmm_session_register(session, u, 12 * n), "register");
    if (g) must(wfmm_session_register(session, g, 36 * n), "register");
    for (int k = -2; k < times; k++)
        for (int kind = 0; kind < KINDS; kind++) {
            const float *y = x[(k + kind + 4) % 2];
            const double start = now();
            if (kind == 0) must(wfmm_plan_set_particles_f32(plan, n, x[0], a, vpm ? core : NULL, WFMM_MEMORY_HOST), "particles");
            if (kind < 2) must(wfmm_plan_set_targets_f32(plan, n, vpm ? x[0] : y, WFMM_MEMORY_HOST), "targets");
            must(wfmm_plan_evaluate_f32(plan, u, g, WFMM_MEMORY_HOST), "evaluation");
            if (k >= 0) all[kind][k] = 1e3 * (now() - start);
        }
    for (int kind = 0; kind < KINDS; kind++) took[kind] = middle(all[kind], times);
    if (getenv("RECIPE")) {
        char text[2000] = "";
        wfmm_report r;
        r.struct_size = sizeof r;
        must(wfmm_plan_report(plan, &r), "report");
        must(wfmm_plan_recipe(plan, text, sizeof text, NULL), "recipe");
        fprintf(stderr, "%lld retries; %s\n", (long long)r.retries, text);
    }
    must(wfmm_plan_check_f64(plan, 500, 3, &error), "check");
    must(wfmm_plan_destroy(&plan), "plan");
    must(wfmm_session_unregister(session, u), "unregister");
    if (g) must(wfmm_session_unregister(session, g), "unregister");
    free(x[0]), free(x[1]), free(a), free(core), free(u), free(g);
    return error;
}

int main(int argc, char **argv) {
    int32_t devices[MOST_DEVICES], n_devices = 0;
    for (const char *at = argc > 1 ? argv[1] : "0,1"; at && n_devices < MOST_DEVICES; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) devices[n_devices++] = atoi(at);
    const int times = argc > 2 ? atoi(argv[2]) : 9;
    const double tolerance = argc > 3 ? atof(argv[3]) : 1e-3;
    static const struct { const char *name; int64_t n; int vpm; } cases[] = {{"CUBE", 1000000, 0}, {"CUBE", 10000000, 0}, {"VPM, with gradients", 1000000, 1}};
    int missed = 0;
    if (times < 1 || times > MOST_TIMES) return fprintf(stderr, "1 to %d repetitions\n", MOST_TIMES), 1;
    printf("| case | sources and targets | what | one device, ms | %d devices, ms | ratio | error, one | error, all |\n|---|---|---|---|---|---|---|---|\n", n_devices);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double took[2][KINDS], error[2];
        for (int all = 0; all < 2; all++) {
            wfmm_session_options o;
            wfmm_session *session = NULL;
            must(wfmm_session_options_init(&o, sizeof o), "options");
            o.backend = WFMM_BACKEND_CUDA, o.n_devices = all ? n_devices : 1, o.devices = devices;
            must(wfmm_session_create(&o, &session), "session");
            error[all] = measure(session, cases[c].n, cases[c].vpm, tolerance, times, took[all]);
            missed |= !(error[all] <= tolerance);
            must(wfmm_session_destroy(&session), "session");
        }
        for (int kind = 0; kind < KINDS; kind++)
            printf("| %s | %lld | %s | %.2f | %.2f | %.2f | %.1e | %.1e |\n", cases[c].name, (long long)cases[c].n, kinds[kind], took[0][kind], took[1][kind],
                   took[0][kind] / took[1][kind], error[0], error[1]);
        fflush(stdout);
    }
    return missed;
}
