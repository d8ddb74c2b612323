/* Every kind of bad input: its status, a message that names the offender, and a plan that is as it was before.
   Enters: nothing. Leaves: 0 when every call was refused as stated. Twin: tests/fortran/bad_input.f90. */
#include <float.h>

#include "check.h"

static const double POINTS[9] = {0, 0, -1, 0, 0, 1, 1, 1, 1}, GAMMA[2] = {1, 2}, CORE[2] = {0.5, 0.1};
static const double A[6] = {1, 2, 3, 4, 5, 6}, X[6] = {0.05, 0, -0.5, 2, 1, 0}, Q[2] = {1, -1};
static const int32_t ENDS[4] = {0, 1, 1, 2};
static wfmm_plan *plan = NULL;
static double before[6], potential_before[2];

enum { H = WFMM_MEMORY_HOST };

/* The plan gives the same bits as before the last call. */
static void unchanged(int line) {
    double u[6], phi[2];
    wfmm_status a = wfmm_plan_evaluate_f64(plan, u, NULL, H), b = wfmm_plan_evaluate_potential_f64(plan, phi, NULL, H);
    checks_done++;
    if (a || b || memcmp(u, before, sizeof u) || memcmp(phi, potential_before, sizeof phi)) {
        checks_failed++;
        printf("%s:%d: the plan changed\n", __FILE__, line);
    }
}

#define REFUSED(call, status, word) do { EXPECT(call, status, word); unchanged(__LINE__); } while (0)

static void missing_arrays(void) {
    double u[6];
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, NULL, 2, 2, ENDS, GAMMA, CORE, H), WFMM_ERR_NULL, "points");
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 2, NULL, GAMMA, CORE, H), WFMM_ERR_NULL, "connectivity");
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 2, ENDS, NULL, CORE, H), WFMM_ERR_NULL, "circulation");
    REFUSED(wfmm_plan_set_particles_f64(plan, 2, NULL, A, CORE, H), WFMM_ERR_NULL, "position");
    REFUSED(wfmm_plan_set_particles_f64(plan, 2, X, NULL, CORE, H), WFMM_ERR_NULL, "strength");
    REFUSED(wfmm_plan_set_charges_f64(plan, 2, NULL, Q, H), WFMM_ERR_NULL, "position");
    REFUSED(wfmm_plan_set_charges_f64(plan, 2, X, NULL, H), WFMM_ERR_NULL, "charge");
    REFUSED(wfmm_plan_set_targets_f64(plan, 2, NULL, H), WFMM_ERR_NULL, "position");
    REFUSED(wfmm_plan_evaluate_f64(plan, NULL, NULL, H), WFMM_ERR_NULL, "velocity");
    REFUSED(wfmm_plan_evaluate_potential_f64(plan, NULL, NULL, H), WFMM_ERR_NULL, "potential");
    REFUSED(wfmm_plan_check_f64(plan, 5, 1, NULL), WFMM_ERR_NULL, "out_relative_l2");
    REFUSED(wfmm_plan_report(plan, NULL), WFMM_ERR_NULL, "report");
    EXPECT(wfmm_plan_create(NULL, NULL, NULL), WFMM_ERR_NULL, "out");
    EXPECT(wfmm_session_create(NULL, NULL), WFMM_ERR_NULL, "out");
    EXPECT(wfmm_plan_destroy(NULL), WFMM_ERR_NULL, "plan");
    EXPECT(wfmm_session_destroy(NULL), WFMM_ERR_NULL, "session");
    EXPECT(wfmm_plan_evaluate_f64(NULL, u, NULL, H), WFMM_ERR_NULL, "plan");
    EXPECT(wfmm_induce_segments_f64(3, POINTS, 2, 2, ENDS, GAMMA, CORE, 2, NULL, NULL, u, NULL), WFMM_ERR_NULL, "target");
    EXPECT(wfmm_induce_segments_f64(3, POINTS, 2, 2, ENDS, GAMMA, CORE, 2, X, NULL, NULL, NULL), WFMM_ERR_NULL, "velocity");
    EXPECT(wfmm_induce_particles_f64(2, NULL, A, NULL, 2, X, NULL, u, NULL), WFMM_ERR_NULL, "position");
    EXPECT(wfmm_plan_evaluate_f64((wfmm_plan *)u, u, NULL, H), WFMM_ERR_HANDLE, "no live plan");
    EXPECT(wfmm_session_describe((wfmm_session *)plan, NULL, 0, NULL), WFMM_ERR_HANDLE, "no live session");
}

static void counts_and_sizes(void) {
    REFUSED(wfmm_plan_set_segments_f64(plan, -1, POINTS, 2, 2, ENDS, GAMMA, CORE, H), WFMM_ERR_COUNT, "n_points = -1");
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, -2, 2, ENDS, GAMMA, CORE, H), WFMM_ERR_COUNT, "n = -2");
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 1, ENDS, GAMMA, CORE, H), WFMM_ERR_VALUE, "ld = 1");
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, INT64_MIN, ENDS, GAMMA, CORE, H), WFMM_ERR_VALUE, "ld");
    REFUSED(wfmm_plan_set_particles_f64(plan, -1, X, A, CORE, H), WFMM_ERR_COUNT, "n = -1");
    REFUSED(wfmm_plan_set_particles_f64(plan, INT64_MAX, X, A, CORE, H), WFMM_ERR_COUNT, "n = 9");
    REFUSED(wfmm_plan_set_charges_f64(plan, -1, X, Q, H), WFMM_ERR_COUNT, "n = -1");
    REFUSED(wfmm_plan_set_targets_f64(plan, -1, X, H), WFMM_ERR_COUNT, "n = -1");
    REFUSED(wfmm_plan_set_strengths_f64(plan, 1, GAMMA, 0, NULL, 0, NULL, H), WFMM_ERR_COUNT, "circulation");
    REFUSED(wfmm_plan_set_strengths_f64(plan, 0, NULL, 3, A, 0, NULL, H), WFMM_ERR_COUNT, "strength");
    double e;
    REFUSED(wfmm_plan_check_f64(plan, 0, 1, &e), WFMM_ERR_COUNT, "n_samples");
    REFUSED(wfmm_plan_check_f64(plan, -3, 1, &e), WFMM_ERR_COUNT, "n_samples = -3");
}

static void indices(void) {
    const int32_t high[4] = {0, 1, 1, 3}, low[4] = {0, 1, -1, 2}, extreme[4] = {0, INT32_MAX, INT32_MIN, 2};
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 2, high, GAMMA, CORE, H), WFMM_ERR_INDEX, "connectivity[1][1] = 3");
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 2, low, GAMMA, CORE, H), WFMM_ERR_INDEX, "connectivity[1][0] = -1");
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 2, extreme, GAMMA, CORE, H), WFMM_ERR_INDEX, "connectivity[0][1]");
}

static void numbers(void) {
    const double bad[3] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 3; k++) {
        double x[6], p[9], g[2] = {1, bad[k]}, c[2] = {bad[k], 1}, a[6];
        memcpy(x, X, sizeof x), memcpy(p, POINTS, sizeof p), memcpy(a, A, sizeof a);
        x[4] = bad[k], p[8] = bad[k], a[3] = bad[k];
        REFUSED(wfmm_plan_set_segments_f64(plan, 3, p, 2, 2, ENDS, GAMMA, CORE, H), WFMM_ERR_NOT_FINITE, "points[2][2]");
        REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 2, ENDS, g, CORE, H), WFMM_ERR_NOT_FINITE, "circulation[1]");
        REFUSED(wfmm_plan_set_particles_f64(plan, 2, x, A, CORE, H), WFMM_ERR_NOT_FINITE, "position[1][1]");
        REFUSED(wfmm_plan_set_particles_f64(plan, 2, X, a, CORE, H), WFMM_ERR_NOT_FINITE, "strength[1][0]");
        REFUSED(wfmm_plan_set_charges_f64(plan, 2, x, Q, H), WFMM_ERR_NOT_FINITE, "position[1][1]");
        REFUSED(wfmm_plan_set_charges_f64(plan, 2, X, g, H), WFMM_ERR_NOT_FINITE, "charge[1]");
        REFUSED(wfmm_plan_set_targets_f64(plan, 2, x, H), WFMM_ERR_NOT_FINITE, "position[1][1]");
        REFUSED(wfmm_plan_set_strengths_f64(plan, 2, g, 0, NULL, 0, NULL, H), WFMM_ERR_NOT_FINITE, "circulation[1]");
        if (k < 2) REFUSED(wfmm_plan_set_particles_f64(plan, 2, X, A, c, H), WFMM_ERR_NOT_FINITE, "core_radius[0]");
        float xf[6] = {0, 0, (float)bad[k], 0, 0, 0};
        REFUSED(wfmm_plan_set_targets_f32(plan, 2, xf, H), WFMM_ERR_NOT_FINITE, "position[0][2]");
    }
    const double negative[2] = {0.1, -1e-300};
    REFUSED(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 2, ENDS, GAMMA, negative, H), WFMM_ERR_VALUE, "core_radius[1]");
}

static void options(void) {
    wfmm_plan *p = NULL;
    wfmm_session *s = NULL;
    wfmm_plan_options o;
    wfmm_session_options so;
#define PLAN(field, value, status, word) \
    wfmm_plan_options_init(&o, sizeof o), o.field = (value); \
    EXPECT(wfmm_plan_create(NULL, &o, &p), status, word); CHECK(p == NULL)
    PLAN(method, 4, WFMM_ERR_CONSTANT, "method = 4");
    PLAN(precision, -1, WFMM_ERR_CONSTANT, "precision = -1");
    PLAN(segment_regularization, WFMM_REG_GAUSS_ERF, WFMM_ERR_CONSTANT, "segment_regularization = 6");
    PLAN(segment_regularization, 12, WFMM_ERR_CONSTANT, "segment_regularization = 12");
    PLAN(particle_regularization, WFMM_REG_VATISTAS, WFMM_ERR_CONSTANT, "particle_regularization = 3");
    PLAN(index_base, 2, WFMM_ERR_VALUE, "index_base = 2");
    PLAN(order, -1, WFMM_ERR_VALUE, "order = -1");
    PLAN(leaf_capacity, -1, WFMM_ERR_VALUE, "leaf_capacity = -1");
    PLAN(tolerance, 0, WFMM_ERR_VALUE, "tolerance = 0");
    PLAN(tolerance, -1e-3, WFMM_ERR_VALUE, "tolerance = -0.001");
    PLAN(tolerance, NAN, WFMM_ERR_NOT_FINITE, "tolerance");
    PLAN(tolerance, 1e-17, WFMM_ERR_TOLERANCE, "double precision");
    PLAN(normalization, INFINITY, WFMM_ERR_NOT_FINITE, "normalization");
    PLAN(core_radius, -1, WFMM_ERR_VALUE, "core_radius = -1");
    PLAN(core_radius, NAN, WFMM_ERR_NOT_FINITE, "core_radius");
    PLAN(flags, 1u << 20, WFMM_ERR_CONSTANT, "flags");
    PLAN(plane_axis, 4, WFMM_ERR_VALUE, "plane_axis = 4");
    PLAN(plane_axis, -1, WFMM_ERR_VALUE, "plane_axis = -1");
    PLAN(plane_position, NAN, WFMM_ERR_NOT_FINITE, "plane_position");
    PLAN(expansion, (o.order = 17, WFMM_EXPANSION_PSEUDO_PARTICLES), WFMM_ERR_UNSUPPORTED, "with order = 17");
    PLAN(expansion, 2, WFMM_ERR_CONSTANT, "expansion = 2");
    PLAN(period[2], o.plane_axis = 3, WFMM_ERR_UNSUPPORTED, "period[2] = 3"); /* along the normal of the plane */
    PLAN(period[1], o.method = WFMM_METHOD_TREECODE, WFMM_ERR_UNSUPPORTED, "(3) with period[1] = 3");
    PLAN(period[0], -1, WFMM_ERR_VALUE, "period[0] = -1");
    PLAN(period[1], INFINITY, WFMM_ERR_NOT_FINITE, "period[1]");
    wfmm_plan_options_init(&o, sizeof o), o.precision = WFMM_PRECISION_F32, o.tolerance = 1e-7;
    EXPECT(wfmm_plan_create(NULL, &o, &p), WFMM_ERR_TOLERANCE, "single precision");
#define SESSION(field, value, status, word) \
    wfmm_session_options_init(&so, sizeof so), so.field = (value); \
    EXPECT(wfmm_session_create(&so, &s), status, word); CHECK(s == NULL)
    SESSION(backend, 3, WFMM_ERR_CONSTANT, "backend = 3");
    SESSION(device, -2, WFMM_ERR_VALUE, "device = -2");
    SESSION(threads, -1, WFMM_ERR_VALUE, "threads = -1");
    SESSION(flags, 1, WFMM_ERR_CONSTANT, "flags");
    const int32_t devices[2] = {0, -3};
    SESSION(n_devices, -1, WFMM_ERR_VALUE, "n_devices = -1");
    SESSION(n_devices, 65, WFMM_ERR_VALUE, "n_devices = 65");
    SESSION(reserved, 1, WFMM_ERR_VALUE, "reserved = 1");
    SESSION(devices, (so.n_devices = 2, devices), WFMM_ERR_VALUE, "devices[1] = -3");
    SESSION(devices, (so.n_devices = 2, (const int32_t *)((const char *)devices + 1)), WFMM_ERR_VALUE, "aligned");
    /* No list: device; no GPU is asked for: none is looked at. */
    wfmm_session_options_init(&so, sizeof so), so.backend = WFMM_BACKEND_CPU, so.n_devices = 2;
    OK(wfmm_session_create(&so, &s));
    OK(wfmm_session_destroy(&s));
    so.devices = devices, so.n_devices = 1;
    OK(wfmm_session_create(&so, &s));
    OK(wfmm_session_destroy(&s));
}

static void memory_and_overlap(void) {
    double u[30];
    REFUSED(wfmm_plan_set_targets_f64(plan, 2, X, 3), WFMM_ERR_CONSTANT, "memory = 3");
    REFUSED(wfmm_plan_evaluate_f64(plan, u, NULL, -1), WFMM_ERR_CONSTANT, "memory = -1");
    REFUSED(wfmm_plan_evaluate_f64(plan, u, u + 2, H), WFMM_ERR_OVERLAP, "overlap");
    REFUSED(wfmm_plan_set_targets_f64(plan, 2, (const double *)((const char *)u + 1), H), WFMM_ERR_VALUE, "aligned");
    wfmm_session_options o;
    wfmm_session *s = NULL;
    wfmm_plan *p = NULL;
    OK(wfmm_session_options_init(&o, sizeof o));
    o.backend = WFMM_BACKEND_CPU;
    OK(wfmm_session_create(&o, &s));
    OK(wfmm_plan_create(s, NULL, &p));
    EXPECT(wfmm_plan_set_targets_f64(p, 2, X, WFMM_MEMORY_DEVICE), WFMM_ERR_MEMORY, "CPU");
    OK(wfmm_plan_destroy(&p));
    OK(wfmm_session_destroy(&s));
}

static void too_early(void) {
    wfmm_plan *p = NULL;
    double u[6] = {1, 2, 3, 4, 5, 6};
    float single[6] = {0};
    wfmm_plan_options o;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.tolerance = 1e-7;
    OK(wfmm_plan_create(NULL, &o, &p));
    EXPECT(wfmm_plan_evaluate_f64(p, u, NULL, H), WFMM_ERR_STATE, "sources");
    EXPECT(wfmm_plan_prepare(p), WFMM_ERR_STATE, "before");
    OK(wfmm_plan_set_particles_f32(p, 1, single, single, NULL, H));
    EXPECT(wfmm_plan_evaluate_f64(p, u, NULL, H), WFMM_ERR_STATE, "targets");
    OK(wfmm_plan_set_targets_f32(p, 2, single, H));
    EXPECT(wfmm_plan_evaluate_potential_f64(p, u, NULL, H), WFMM_ERR_STATE, "charges");
    /* all arrays single: 1e-7 cannot be given; with double outputs it can */
    EXPECT(wfmm_plan_evaluate_f32(p, single, NULL, H), WFMM_ERR_TOLERANCE, "single precision");
    for (int i = 0; i < 6; i++) CHECK(u[i] == i + 1);
    OK(wfmm_plan_evaluate_f64(p, u, NULL, H));
    OK(wfmm_plan_destroy(&p));
}

/* Finite numbers at the ends of their range are no error and do no harm. */
static void extremes(void) {
    const double x[12] = {1e300, 0, 0, -1e300, 1e-300, 0, 5e-324, 0, 0, DBL_MAX, DBL_MAX, DBL_MAX}, a[12] = {1e300, 1e-300, 5e-324, 1};
    const double tiny[12] = {0, 0, 0, 5e-324, 0, 0, 0, 5e-324, 0, 1e-310, 1e-310, 0};
    double u[12], g[36];
    wfmm_status s = wfmm_induce_particles_f64(4, x, a, NULL, 4, x, NULL, u, g);
    CHECK(s == WFMM_OK || (s > 0 && s < 200));
    s = wfmm_induce_particles_f64(4, tiny, a, NULL, 4, tiny, NULL, u, g);
    CHECK(s == WFMM_OK || (s > 0 && s < 200));
}

int main(void) {
    OK(wfmm_plan_create(NULL, NULL, &plan));
    OK(wfmm_plan_set_segments_f64(plan, 3, POINTS, 2, 2, ENDS, GAMMA, CORE, H));
    OK(wfmm_plan_set_particles_f64(plan, 2, POINTS, A, CORE, H));
    OK(wfmm_plan_set_charges_f64(plan, 2, POINTS, Q, H));
    OK(wfmm_plan_set_targets_f64(plan, 2, X, H));
    OK(wfmm_plan_evaluate_f64(plan, before, NULL, H));
    OK(wfmm_plan_evaluate_potential_f64(plan, potential_before, NULL, H));
    missing_arrays();
    counts_and_sizes();
    indices();
    numbers();
    options();
    memory_and_overlap();
    too_early();
    extremes();
    unchanged(__LINE__);
    OK(wfmm_plan_destroy(&plan));
    return finish("bad_input");
}
