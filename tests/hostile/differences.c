/* Random sequences of sets, strengths, prepares, evaluations (waited for or not, written or added) and checks on one plan, each
   field against the direct sum of a fresh plan: what is kept between calls must never show in a value.
   Enters: number of plans, seconds at most, "cuda" for a GPU instead of the CPU. Leaves: 0, or the calls that led to a wrong value. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wakefmm.h>

enum { ROOM = 2100 };
static uint64_t state;
static uint64_t next(void) { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; }
static int below(int n) { return (int)(next() % (uint64_t)n); }
static double unit(void) { return (double)next() / 2147483648.0; }

/* Numbers that both precisions hold, so that one reference serves both. */
static double single(double x) { return (float)x; }

static struct {
    double points[3 * ROOM], circulation[ROOM], segment_core[ROOM], position[3 * ROOM], strength[3 * ROOM], core[ROOM];
    double charge_position[3 * ROOM], charge[ROOM], targets[3 * ROOM];
    int32_t ends[2 * ROOM];
    int n_points, segments, particles, charges, n_targets, sources_given, charges_given, targets_given;
} now;
static float narrow[3][3 * ROOM];
static double field[3 * ROOM], gradient[9 * ROOM], want[3 * ROOM], want_gradient[9 * ROOM];
static float field_f[3 * ROOM], gradient_f[9 * ROOM];
static wfmm_session *session, *cpu;
static int on_gpu;
static wfmm_plan_options requested;
static wfmm_plan *plan;
static char calls[8000];
static int compared;

static void note(const char *form, ...) {
    va_list list;
    const size_t used = strlen(calls);
    va_start(list, form);
    vsnprintf(calls + used, sizeof calls - used, form, list);
    va_end(list);
}
static void fail(const char *what, double value) {
    char message[400] = "", recipe[1200] = "";
    wfmm_last_error(message, sizeof message, NULL);
    wfmm_plan_recipe(plan, recipe, sizeof recipe, NULL);
    printf("%s: %g (last error: %s)\n%s\n%s\n", what, value, message, recipe, calls);
    exit(1);
}
static void ok(const char *what, wfmm_status s) {
    if (s != WFMM_OK) fail(what, s);
}
#define OK(call) ok(#call, call)

static float *as_floats(int k, const double *x, int n) {
    for (int i = 0; i < n; i++) narrow[k][i] = (float)x[i];
    return narrow[k];
}
/* Cubes, planes, lines, helices, lattices, clusters; sometimes smaller or beside the others. */
static void draw_positions(double *x, int n) {
    const int kind = below(6);
    const double width = below(3) ? 1 : 0.1, shift = below(4) ? 0 : 2;
    for (int i = 0; i < n; i++) {
        double p[3] = {unit(), unit(), unit()};
        if (kind == 1) p[2] = 0.5;
        if (kind == 2) p[1] = p[2] = 0.25;
        if (kind == 3) p[0] = 0.5 + 0.4 * cos(0.05 * i), p[1] = 0.5 + 0.4 * sin(0.05 * i), p[2] = i / (double)n;
        if (kind == 4) p[0] = i % 16 / 16.0, p[1] = i / 16 % 16 / 16.0, p[2] = i / 256 / 16.0;
        if (kind == 5 && i % 2) for (int j = 0; j < 3; j++) p[j] *= 1e-3;
        for (int j = 0; j < 3; j++) x[3 * i + j] = single(shift + width * p[j]);
    }
}
static void random_numbers(double *x, int n) {
    for (int i = 0; i < n; i++) x[i] = single(2 * unit() - 1);
}
static void cores(double *x, int n) {
    static const double sizes[] = {0, 0.001, 0.02, 0.1};
    for (int i = 0; i < n; i++) x[i] = single(sizes[below(4)]);
}
/* The same number again at times: a GPU has what it does recorded then. */
static int count(int before) {
    if (before && below(3) == 0) return before;
    switch (below(8)) {
    case 0: return below(6);
    case 1: case 2: return 50 + below(500);
    default: return 600 + below(1400);
    }
}

static void set_segments(void) {
    const int n = now.segments = count(now.segments), m = now.n_points = n + 1;
    draw_positions(now.points, m), random_numbers(now.circulation, n), cores(now.segment_core, n);
    for (int i = 0; i < n; i++) now.ends[2 * i] = i, now.ends[2 * i + 1] = i + 1;
    note("segments %d\n", n);
    now.sources_given = 1;
    if (below(2)) OK(wfmm_plan_set_segments_f64(plan, m, now.points, n, 2, now.ends, now.circulation, now.segment_core, 0));
    else
        OK(wfmm_plan_set_segments_f32(plan, m, as_floats(0, now.points, 3 * m), n, 2, now.ends, as_floats(1, now.circulation, n),
                                      as_floats(2, now.segment_core, n), 0));
}
static void set_particles(void) {
    const int n = now.particles = count(now.particles);
    draw_positions(now.position, n), random_numbers(now.strength, 3 * n), cores(now.core, n);
    note("particles %d\n", n);
    now.sources_given = 1;
    if (below(2)) OK(wfmm_plan_set_particles_f64(plan, n, now.position, now.strength, now.core, 0));
    else
        OK(wfmm_plan_set_particles_f32(plan, n, as_floats(0, now.position, 3 * n), as_floats(1, now.strength, 3 * n), as_floats(2, now.core, n), 0));
}
static void set_charges(void) {
    const int n = now.charges = count(now.charges);
    draw_positions(now.charge_position, n), random_numbers(now.charge, n);
    note("charges %d\n", n);
    now.charges_given = 1;
    OK(wfmm_plan_set_charges_f64(plan, n, now.charge_position, now.charge, 0));
}
static void set_targets(void) {
    const int n = now.n_targets = 1 + count(now.n_targets - (now.n_targets > 0));
    draw_positions(now.targets, n);
    note("targets %d\n", n);
    now.targets_given = 1;
    if (below(2)) OK(wfmm_plan_set_targets_f64(plan, n, now.targets, 0));
    else OK(wfmm_plan_set_targets_f32(plan, n, as_floats(0, now.targets, 3 * n), 0));
}
static void set_strengths(void) {
    const int which = 1 + below(7);
    if (which & 1) random_numbers(now.circulation, now.segments);
    if (which & 2) random_numbers(now.strength, 3 * now.particles);
    if (which & 4) random_numbers(now.charge, now.charges);
    note("strengths of %d\n", which);
    OK(wfmm_plan_set_strengths_f64(plan, now.segments, which & 1 ? now.circulation : NULL, now.particles, which & 2 ? now.strength : NULL,
                                   now.charges, which & 4 ? now.charge : NULL, 0));
}

static double distance(const double *a, const double *b, int n) {
    double wrong = 0, size = 0;
    for (int i = 0; i < n; i++) wrong += (a[i] - b[i]) * (a[i] - b[i]), size += b[i] * b[i];
    return wrong == 0 ? 0 : sqrt(wrong / size);
}
/* The same inputs to a plan that knows nothing else. */
static void reference(int potential) {
    wfmm_plan_options o = requested;
    wfmm_plan *p = NULL;
    o.method = WFMM_METHOD_DIRECT, o.precision = WFMM_PRECISION_F64, o.order = o.leaf_capacity = 0, o.flags = 0;
    OK(wfmm_plan_create(cpu, &o, &p));
    OK(wfmm_plan_set_segments_f64(p, now.n_points, now.points, now.segments, 2, now.ends, now.circulation, now.segment_core, 0));
    OK(wfmm_plan_set_particles_f64(p, now.particles, now.position, now.strength, now.core, 0));
    OK(wfmm_plan_set_charges_f64(p, now.charges, now.charge_position, now.charge, 0));
    OK(wfmm_plan_set_targets_f64(p, now.n_targets, now.targets, 0));
    if (potential) OK(wfmm_plan_evaluate_potential_f64(p, want, want_gradient, 0));
    else OK(wfmm_plan_evaluate_f64(p, want, want_gradient, 0));
    wfmm_plan_destroy(&p);
}
static void evaluate(void) {
    const int potential = now.charges_given && (!now.sources_given || below(3) == 0), slopes = below(2), wide = below(2);
    const int rows = potential ? 1 : 3, more = potential ? 3 : 9, m = now.n_targets;
    if (!now.targets_given || !(now.sources_given || now.charges_given)) return;
    note("%s%s, %s\n", potential ? "potential" : "velocity", slopes ? " and gradient" : "", wide ? "f64" : "f32");
    for (int i = 0; i < more * m; i++) gradient[i] = gradient_f[i] = requested.flags ? 0 : NAN;
    for (int i = 0; i < rows * m; i++) field[i] = field_f[i] = requested.flags ? 0 : NAN;
    if (!potential && below(3) == 0) {
        note("and waited for\n");
        if (wide) OK(wfmm_plan_evaluate_async_f64(plan, field, slopes ? gradient : NULL, 0));
        else OK(wfmm_plan_evaluate_async_f32(plan, field_f, slopes ? gradient_f : NULL, 0));
        OK(wfmm_plan_wait(plan));
    } else if (wide && potential) OK(wfmm_plan_evaluate_potential_f64(plan, field, slopes ? gradient : NULL, 0));
    else if (wide) OK(wfmm_plan_evaluate_f64(plan, field, slopes ? gradient : NULL, 0));
    else if (potential) OK(wfmm_plan_evaluate_potential_f32(plan, field_f, slopes ? gradient_f : NULL, 0));
    else OK(wfmm_plan_evaluate_f32(plan, field_f, slopes ? gradient_f : NULL, 0));
    for (int i = 0; !wide && i < rows * m; i++) field[i] = field_f[i];
    for (int i = 0; !wide && slopes && i < more * m; i++) gradient[i] = gradient_f[i];
    reference(potential);
    const double e = distance(field, want, rows * m), g = slopes ? distance(gradient, want_gradient, more * m) : 0;
    /* Results of old arrays or of other positions are far off; twice the tolerance is left for a sample's luck. */
    if (!(e <= 2 * requested.tolerance)) fail("error of the field", e);
    /* Single precision on a GPU has too few digits for gradients at some of these positions. */
    wfmm_report r = {.struct_size = sizeof r};
    OK(wfmm_plan_report(plan, &r));
    if (!(g <= 200 * requested.tolerance) && !(on_gpu && r.precision == WFMM_PRECISION_F32)) fail("error of the gradient", g);
    for (int i = 0; i < WFMM_PASS_COUNT; i++) if (!(r.seconds[i] >= 0)) fail("seconds", r.seconds[i]);
    compared++;
}
static void check(void) {
    double e = -1;
    if (!now.targets_given || !now.sources_given) return;
    note("check\n");
    OK(wfmm_plan_check_f64(plan, 200, next(), &e));
    if (!(e <= 30 * requested.tolerance)) fail("check", e);
}

static void one_plan(int seed) {
    static const double tolerances[] = {1e-2, 1e-3, 1e-4, 1e-5};
    static const int32_t leaves[] = {0, 0, 0, 5, 40, 300}, orders[] = {0, 0, 0, 0, 8, 20, 40};
    void (*const calls_of[])(void) = {set_segments, set_particles, set_charges, set_targets, set_targets, set_strengths, check, evaluate, evaluate, evaluate};
    state = 77777u * (uint64_t)seed + 1;
    memset(&now, 0, sizeof now);
    wfmm_plan_options_init(&requested, sizeof requested);
    requested.method = below(4) ? WFMM_METHOD_FMM : WFMM_METHOD_AUTO, requested.precision = below(3), requested.tolerance = tolerances[below(4)], requested.flags = below(4) ? 0 : WFMM_FLAG_ACCUMULATE;
    requested.leaf_capacity = leaves[below(6)], requested.order = orders[below(7)];
    snprintf(calls, sizeof calls, "plan %d: method %d, precision %d, tolerance %g, leaf %d, order %d, flags %d\n", seed, requested.method, requested.precision,
             requested.tolerance, requested.leaf_capacity, requested.order, (int)requested.flags);
    OK(wfmm_plan_create(session, &requested, &plan));
    (below(3) ? set_particles : set_segments)();
    set_targets();
    for (int steps = 6 + below(10); steps > 0; steps--) {
        if (below(8) == 0) note("prepare\n"), OK(wfmm_plan_prepare(plan));
        calls_of[below(10)]();
    }
    wfmm_plan_destroy(&plan);
}

int main(int argc, char **argv) {
    const int plans = argc > 1 ? atoi(argv[1]) : 100, seconds = argc > 2 ? atoi(argv[2]) : 20;
    const time_t begin = time(NULL);
    wfmm_session_options o;
    int k = 0;
    wfmm_session_options_init(&o, sizeof o);
    o.backend = WFMM_BACKEND_CPU, o.threads = 2;
    if (wfmm_session_create(&o, &cpu) != WFMM_OK) return printf("no session\n"), 1;
    on_gpu = argc > 3 && !strcmp(argv[3], "cuda");
    if (on_gpu) o.backend = WFMM_BACKEND_CUDA;
    if (wfmm_session_create(&o, &session) != WFMM_OK) return printf("no session\n"), 1;
    while (k < plans && time(NULL) - begin < seconds) one_plan(k++);
    wfmm_session_destroy(&session);
    wfmm_session_destroy(&cpu);
    printf("differences: %d plans, %d fields compared\n", k, compared);
    return compared > 0 ? 0 : 1;
}
