/* Wakes as free-wake codes have them, on a GPU: OLAF's lattice on its own nodes, and a hovering rotor's tip vortices over dust. Median
 * times with new positions in every repetition, and the error of the last field over all targets against the direct sum in double
 * precision.
 *
 * "arrays" is WFMM_PRECISION_ARRAYS: the arrays are double, the library takes single precision where that serves.
 *
 * Enters: "lattice", "hover", "lengths", "row", all of these by "all", "gradients" or "tight" (of the first two; tolerances below 1e-4), "rotors" (a square of them, by two
 * periods), and how many repetitions. Leaves: a table; exit code 1 where a tolerance was missed.
 */
#include "gpu_workload.h"

static int failures, repetitions = 11;
static double period[3];

struct wake {
    const char *name;
    int64_t nodes, n, m;
    double *node, *circulation, *core, *target;
    int32_t *ends;
};

static struct wake wake_of(const char *name, int64_t nodes, int64_t n, int64_t m) {
    struct wake w = {name, nodes, 0, m, malloc(3 * nodes * 8), malloc(n * 8), malloc(n * 8), malloc(3 * m * 8), malloc(2 * n * 4)};
    return w;
}
static void drop_wake(struct wake *w) { free(w->node); free(w->circulation); free(w->core); free(w->target); free(w->ends); }
static void add(struct wake *w, int64_t from, int64_t to, double circulation, double core) {
    w->ends[2 * w->n] = (int32_t)from; w->ends[2 * w->n + 1] = (int32_t)to;
    w->circulation[w->n] = circulation; w->core[w->n++] = core;
}

/* Three blades, 20 panels along the span, `rows` down the wake; targets are all nodes. */
static struct wake lattice(int rows) {
    const int64_t nodes = 3ll * 21 * (rows + 1), n = 3ll * (20 * (rows + 1) + 21 * rows);
    struct wake w = wake_of(rows == 300 ? "LATTICE 300" : "LATTICE 3000", nodes, n, nodes);
    for (int b = 0; b < 3; b++)
        for (int j = 0; j <= rows; j++)
            for (int i = 0; i <= 20; i++) {
                const int64_t k = ((int64_t)b * (rows + 1) + j) * 21 + i;
                const double angle = 2 * PI * (j / 36.0 + b / 3.0), r = 63 * (0.1 + 0.9 * i / 20.0) * (1 + 0.15 * (1 - exp(-j / 200.0)));
                double *x = w.node + 3 * k;
                x[0] = r * cos(angle); x[1] = r * sin(angle); x[2] = 90 + 1.5 * j + 3 * sin(5 * angle) * j / rows;
                const double core = 0.5 * sqrt(1 + 0.05 * j);
                if (i < 20) add(&w, k, k + 1, 5 * sin(0.3 * j + i), core);
                if (j < rows) add(&w, k, k + 21, i == 0 ? -80 : i == 20 ? 80 : 4 * cos(i), core);
            }
    memcpy(w.target, w.node, 3 * nodes * 8);
    return w;
}

/* Four tip vortices of 60 turns that contract and then spread over the ground; targets are their nodes and dust on the ground. */
static struct wake hover(int64_t each, int64_t dust) {
    struct wake w = wake_of(each > 50000 ? "HOVER 345600" : each > 10000 ? "HOVER 172800" : "HOVER 34560", 4 * (each + 1), 4 * each, 4 * (each + 1) + dust);
    for (int b = 0; b < 4; b++)
        for (int64_t i = 0; i <= each; i++) {
            const int64_t k = b * (each + 1) + i;
            const double age = (double)i / (double)each, angle = 2 * PI * (60 * age + b / 4.0);
            const double z = 0.03 + 0.97 * exp(-6 * age), r = 0.78 + 0.22 * exp(-20 * age) + 1.6 * age * (1 - z);
            double *x = w.node + 3 * k;
            x[0] = r * cos(angle); x[1] = r * sin(angle); x[2] = z;
            if (i < each) add(&w, k, k + 1, 1, 0.004 * pow(30, age));
        }
    memcpy(w.target, w.node, 3 * w.nodes * 8);
    for (int64_t i = w.nodes; i < w.m; i++) {
        const double r = 2.5 * sqrt(uniform()), angle = 2 * PI * uniform();
        w.target[3 * i] = r * cos(angle); w.target[3 * i + 1] = r * sin(angle); w.target[3 * i + 2] = 0.01 * uniform();
    }
    return w;
}

/* Segments whose lengths are log-uniform over four decades. */
static struct wake lengths(int64_t n, int64_t m) {
    struct wake w = wake_of("LENGTHS", 2 * n, n, m);
    for (int64_t i = 0; i < n; i++) {
        double d[3], s = 0;
        const double length = pow(10, -4 * uniform());
        for (int k = 0; k < 3; k++) { d[k] = 2 * uniform() - 1; s += d[k] * d[k]; }
        for (int k = 0; k < 3; k++) { const double x = uniform(); w.node[6 * i + k] = x; w.node[6 * i + 3 + k] = x + 0.3 * length * d[k] / sqrt(s); }
        add(&w, 2 * i, 2 * i + 1, 2 * uniform() - 1, 0.01);
    }
    for (int64_t i = 0; i < 3 * m; i++) w.target[i] = uniform();
    return w;
}

/* The same wake a little later: turned about its axis, and larger. */
static void move(double *x, int64_t n, double angle, double factor) {
    const double c = factor * cos(angle), s = factor * sin(angle);
    for (int64_t i = 0; i < n; i++, x += 3) { const double a = x[0]; x[0] = c * a - s * x[1]; x[1] = s * a + c * x[1]; x[2] *= factor; }
}

static wfmm_plan *wake_plan(wfmm_session *s, int method, int regularization, int precision, double tolerance) {
    wfmm_plan_options o;
    wfmm_plan *plan = NULL;
    must(wfmm_plan_options_init(&o, sizeof o), "plan options");
    o.method = method; o.precision = precision; o.tolerance = tolerance; o.segment_regularization = regularization;
    memcpy(o.period, period, sizeof period);
    must(wfmm_plan_create(s, &o, &plan), "plan");
    return plan;
}
static void set(wfmm_plan *plan, const struct wake *w) {
    must(wfmm_plan_set_segments_f64(plan, w->nodes, w->node, w->n, 2, w->ends, w->circulation, w->core, WFMM_MEMORY_HOST), "segments");
    must(wfmm_plan_set_targets_f64(plan, w->m, w->target, WFMM_MEMORY_HOST), "targets");
}

static const char *core_name(int regularization) { return regularization == WFMM_REG_NONE ? "no core" : regularization == WFMM_REG_VATISTAS ? "Vatistas" : "Lamb-Oseen"; }

/* The exact field of where the wake is now; `gradient`: [3][3][m], or null. */
static double *exact(wfmm_session *s, const struct wake *w, int regularization, double *gradient, double *seconds) {
    double *v = malloc(3 * w->m * 8);
    wfmm_plan *plan = wake_plan(s, WFMM_METHOD_DIRECT, regularization, WFMM_PRECISION_F64, 1e-4);
    wfmm_report r = {.struct_size = sizeof r};
    set(plan, w);
    must(wfmm_plan_evaluate_f64(plan, v, gradient, WFMM_MEMORY_HOST), "direct");
    must(wfmm_plan_report(plan, &r), "report");
    *seconds = on_device(&r);
    must(wfmm_plan_destroy(&plan), "destroy");
    return v;
}

/* Of cases: precisions and tolerances. */
static const char *precision_name(int precision) { return precision == WFMM_PRECISION_F64 ? "f64" : precision == WFMM_PRECISION_F32 ? "f32" : "arrays"; }

static void time_wake(wfmm_session *s, struct wake *w, int regularization, int with_gradient, const double (*cases)[2], int n_cases) {
    double *u = malloc(3 * w->m * 8), *times = malloc(repetitions * 8), direct;
    double *g = with_gradient ? malloc(9 * w->m * 8) : NULL, *h = with_gradient ? malloc(9 * w->m * 8) : NULL;
    for (int k = 0; k < n_cases; k++) {
        const int precision = (int)cases[k][0];
        const double tolerance = cases[k][1];
        wfmm_plan *plan = wake_plan(s, WFMM_METHOD_FMM, regularization, precision, tolerance);
        wfmm_report r = {.struct_size = sizeof r};
        int64_t retries = 0;
        double wall = 0;
        for (int i = -2; i < repetitions; i++) {
            move(w->node, w->nodes, 0.01, 1.0003); move(w->target, w->m, 0.01, 1.0003);
            set(plan, w);
            const double begin = now();
            must(wfmm_plan_evaluate_f64(plan, u, g, WFMM_MEMORY_HOST), "evaluate");
            wall = now() - begin;
            must(wfmm_plan_report(plan, &r), "report");
            retries += r.retries;
            if (i >= 0) times[i] = on_device(&r);
        }
        double *v = exact(s, w, regularization, h, &direct);
        const double error = distance(u, v, 3 * w->m), of_gradient = g ? distance(g, h, 9 * w->m) : 0;
        const int holds = error <= tolerance && of_gradient <= 30 * tolerance;
        free(v);
        failures += !holds;
        const double median = middle(times, repetitions);
        printf("%-13s %-10s %-6s %.0e: %8.3f ms (%.3f to %.3f), last call %.1f, direct %.1f; error %.2e, of the gradient %.2e, estimate %.1e%s; %lld retries, precision %d, method %d, order %d, depth %d, near %.2e; passes", w->name, core_name(regularization),
               precision_name(precision), tolerance, 1e3 * median, 1e3 * times[0], 1e3 * times[repetitions - 1], 1e3 * wall, 1e3 * direct, error, of_gradient, r.estimated_error, holds ? "" : " MISSED", (long long)retries,
               r.precision, r.method, r.order, r.depth, (double)r.near_pairs);
        for (int p = 1; p < 9; p++) printf(" %.2f", 1e3 * r.seconds[p]);
        printf("\n"); fflush(stdout);
        must(wfmm_plan_destroy(&plan), "destroy");
    }
    free(u); free(times); free(g); free(h);
}

/* Many evaluations of a moving wake in a row: none may take twice the median. */
static void row(wfmm_session *s) {
    struct wake w = lattice(300);
    enum { ROW = 200 };
    double times[ROW], *u = malloc(3 * w.m * 8);
    for (int f64 = 0; f64 < 2; f64++) {
        wfmm_plan *plan = wake_plan(s, WFMM_METHOD_FMM, WFMM_REG_VATISTAS, f64 ? WFMM_PRECISION_F64 : WFMM_PRECISION_F32, 1e-4);
        wfmm_report r = {.struct_size = sizeof r};
        int64_t retries = 0;
        for (int i = -3; i < ROW; i++) {
            move(w.node, w.nodes, 0.01, 1.0003); move(w.target, w.m, 0.01, 1.0003);
            set(plan, &w);
            must(wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST), "evaluate");
            must(wfmm_plan_report(plan, &r), "report");
            retries += r.retries;
            if (i >= 0) times[i] = on_device(&r);
        }
        const double median = middle(times, ROW);
        failures += times[ROW - 1] > 2 * median;
        printf("%d in a row f%d: median %.3f ms, longest %.3f, %lld retries%s\n", ROW, f64 ? 64 : 32, 1e3 * median, 1e3 * times[ROW - 1], (long long)retries, times[ROW - 1] > 2 * median ? " TOO LONG" : "");
        must(wfmm_plan_destroy(&plan), "destroy");
    }
    free(u); drop_wake(&w);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    if (argc > 2) repetitions = atoi(argv[2]);
    wfmm_session *s = session(WFMM_BACKEND_CUDA);
    const int all = !strcmp(what, "all");
    const int regs[] = {WFMM_REG_NONE, WFMM_REG_VATISTAS, WFMM_REG_LAMB_OSEEN};
    static const double cases[][2] = {{WFMM_PRECISION_ARRAYS, 1e-4}, {WFMM_PRECISION_F64, 1e-4}, {WFMM_PRECISION_F32, 1e-4},
                                      {WFMM_PRECISION_ARRAYS, 1e-2}, {WFMM_PRECISION_F64, 1e-2}, {WFMM_PRECISION_ARRAYS, 1e-3}},
                        tight[][2] = {{WFMM_PRECISION_ARRAYS, 1e-5}, {WFMM_PRECISION_F64, 1e-5}, {WFMM_PRECISION_ARRAYS, 3e-6}, {WFMM_PRECISION_F64, 3e-6}},
                        with_gradient[][2] = {{WFMM_PRECISION_ARRAYS, 1e-4}, {WFMM_PRECISION_ARRAYS, 1e-2}};
    if (all || !strcmp(what, "lattice"))
        for (int rows = 300; rows <= 3000; rows *= 10) {
            struct wake w = lattice(rows);
            for (int k = 0; k < 3; k++) time_wake(s, &w, regs[k], 0, cases, rows == 300 ? 6 : 3);
            drop_wake(&w);
        }
    if (all || !strcmp(what, "hover"))
        for (int large = 0; large < 2; large++) {
            struct wake w = large ? hover(86400, 500000) : hover(8640, 20000);
            for (int k = 0; k < 3; k++) time_wake(s, &w, regs[k], 0, cases, 5);
            drop_wake(&w);
        }
    if (all || !strcmp(what, "lengths")) {
        struct wake w = lengths(100000, 1000000);
        time_wake(s, &w, WFMM_REG_NONE, 0, cases, 3);
        drop_wake(&w);
    }
    if (!strcmp(what, "gradients"))
        for (int which = 0; which < 3; which++) {
            struct wake w = which == 0 ? hover(8640, 20000) : which == 1 ? lattice(3000) : hover(86400, 500000);
            for (int k = 0; k < 3; k++) time_wake(s, &w, regs[k], 1, with_gradient, 2);
            drop_wake(&w);
        }
    if (!strcmp(what, "tight"))
        for (int which = 0; which < 4; which++) {
            struct wake w = which == 0 ? lattice(300) : which == 1 ? hover(8640, 20000) : which == 2 ? lattice(3000) : hover(86400, 500000);
            for (int k = 0; k < 3; k++) time_wake(s, &w, regs[k], 0, tight, 4);
            drop_wake(&w);
        }
    if (!strcmp(what, "rotors")) {
        period[0] = period[1] = 6; /* radii of the rotor */
        for (int large = 0; large < 2; large++) {
            struct wake w = large ? hover(43200, 100000) : hover(8640, 20000);
            for (int k = 0; k < 2; k++) time_wake(s, &w, regs[k], 0, cases, 5);
            drop_wake(&w);
        }
    }
    if (all || !strcmp(what, "row")) row(s);
    must(wfmm_session_destroy(&s), "destroy");
    printf("%d failures\n", failures);
    return failures != 0;
}
