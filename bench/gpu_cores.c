/* Particles with cores at tight tolerances on a GPU, in double precision, through the C API with ordinary host arrays.
 *
 * Enters: "[most points [seeds]]". Leaves: a table by size, core and tolerance: milliseconds of the device of the third evaluation, by
 * the FMM or, where its check fails, by the direct sum, and the error over all targets against the direct sum.
 */
#include "gpu_workload.h"

enum { SIZES = 4 };
static const int64_t sizes[SIZES] = {30000, 100000, 300000, 1000000};
static const double cores[] = {0, 0.1, 0.5, 1, 2}; /* in mean distances; 0: none */
static const double tolerances[] = {3e-6, 1e-6, 3e-7};

struct cloud { int64_t n; double *x, *strength, *core; };

static wfmm_plan *cloud_plan(wfmm_session *s, int method, double tolerance, int has_cores) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    must(wfmm_plan_options_init(&o, sizeof o), "options");
    o.method = method; o.tolerance = tolerance; o.precision = WFMM_PRECISION_F64;
    o.particle_regularization = has_cores ? WFMM_REG_GAUSS_ERF : WFMM_REG_NONE;
    must(wfmm_plan_create(s, &o, &p), "plan");
    return p;
}

/* Milliseconds of the last of some evaluations, each with positions that are set again. */
static wfmm_report field(wfmm_session *s, const struct cloud *c, int method, double tolerance, int has_cores, int times, double *u, double *ms) {
    wfmm_plan *p = cloud_plan(s, method, tolerance, has_cores);
    wfmm_report r = {.struct_size = sizeof r};
    for (int k = 0; k < times; k++) {
        must(wfmm_plan_set_particles_f64(p, c->n, c->x, c->strength, has_cores ? c->core : NULL, WFMM_MEMORY_HOST), "particles");
        must(wfmm_plan_set_targets_f64(p, c->n, c->x, WFMM_MEMORY_HOST), "targets");
        must(wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST), "evaluate");
        must(wfmm_plan_report(p, &r), "report");
    }
    *ms = 1e3 * r.seconds[WFMM_PASS_TOTAL];
    must(wfmm_plan_destroy(&p), "destroy");
    return r;
}

int main(int argc, char **argv) {
    const int64_t most = argc > 1 ? atol(argv[1]) : 1000000;
    const int seeds = argc > 2 ? atoi(argv[2]) : 1;
    wfmm_session *s = session(WFMM_BACKEND_CUDA);
    printf("| points | core | direct, ms | tolerance | ms | by | error, tolerances | its estimate |\n|---|---|---|---|---|---|---|---|\n");
    for (int k = 0; k < SIZES && sizes[k] <= most; k++)
        for (int seed = 1; seed <= seeds; seed++) {
            const int64_t n = sizes[k];
            struct cloud c = {n, malloc(24 * n), malloc(24 * n), malloc(8 * n)};
            double *u = malloc(24 * n), *want = malloc(24 * n), ms;
            state = seed;
            for (int64_t i = 0; i < n; i++) point(0, c.x + 3 * i);
            for (int64_t i = 0; i < 3 * n; i++) c.strength[i] = 2 * uniform() - 1;
            for (size_t j = 0; j < sizeof cores / sizeof *cores; j++) {
                for (int64_t i = 0; i < n; i++) c.core[i] = cores[j] / cbrt((double)n);
                field(s, &c, WFMM_METHOD_DIRECT, 1e-10, cores[j] > 0, 1, want, &ms);
                const double direct = ms;
                for (size_t t = 0; t < sizeof tolerances / sizeof *tolerances; t++) {
                    const wfmm_report r = field(s, &c, WFMM_METHOD_FMM, tolerances[t], cores[j] > 0, 3, u, &ms);
                    printf("| %ld | %g | %.1f | %.0e | %.2f | %s | %.2f | %.2f |\n", (long)n, cores[j], direct, tolerances[t], ms,
                           r.method == WFMM_METHOD_DIRECT ? "direct sum" : "FMM", distance(u, want, 3 * n) / tolerances[t], r.estimated_error / tolerances[t]);
                    fflush(stdout);
                }
            }
            free(c.x); free(c.strength); free(c.core); free(u); free(want);
        }
    must(wfmm_session_destroy(&s), "session");
    return 0;
}
