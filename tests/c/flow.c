/* Flows: elements of every kind come, move and go, and every kind of bad input, after which the flow is as it was.
   Twin: tests/fortran/flow.f90. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { H = WFMM_MEMORY_HOST, N = 40 };
static const double PI = 3.14159265358979323846;
static double ring[3 * N], gammas[N], cores[N];
static int32_t ends[2 * N];

static void fill(void) {
    for (int k = 0; k < N; k++) {
        ring[3 * k] = cos(2 * PI * k / N), ring[3 * k + 1] = sin(2 * PI * k / N), ring[3 * k + 2] = 0;
        ends[2 * k] = k, ends[2 * k + 1] = (k + 1) % N;
        gammas[k] = 1, cores[k] = 0.1;
    }
}

static wfmm_flow *new_flow(void) {
    wfmm_plan_options p;
    wfmm_flow_options o;
    wfmm_flow *f = NULL;
    OK(wfmm_plan_options_init(&p, sizeof p));
    OK(wfmm_flow_options_init(&o, sizeof o));
    p.method = WFMM_METHOD_DIRECT;
    o.fluid_viscosity = 1.8e-5, o.gravity[2] = -9.81;
    OK(wfmm_flow_create(NULL, &p, &o, &f));
    return f;
}

static void a_ring_carries_tracers(void) {
    wfmm_flow *f = new_flow();
    double x[3 * N], u[3 * N], radii[N], before[3], after[3], gradient[9];
    float single[3 * N];
    int64_t id[N], n = 0, points = 0, step = -1;
    const double wind[3] = {0.5, 0, 0}, zero[3] = {0, 0, 0}, tracer[6] = {0, 0, 0, 0.1, 0, 0};
    OK(wfmm_flow_set_filaments_f64(f, N, ring, N, 2, ends, gammas, cores, H));
    OK(wfmm_flow_set_tracers_f64(f, 1, tracer, H));
    OK(wfmm_flow_counts(f, WFMM_KIND_FILAMENTS, &n, &points));
    CHECK(n == N && points == N);
    /* in the middle of a ring: Gamma/(2 R), a little less for the polygon */
    OK(wfmm_flow_velocity_f64(f, 1, zero, before, gradient, H));
    CHECK(close_to(before[2], 0.5, 0.01) && fabs(gradient[8]) < 1e-12);
    OK(wfmm_flow_advance(f, 0.01, 3));
    double t = 0;
    OK(wfmm_flow_time(f, &t, &step));
    CHECK(close_to(t, 0.03, 1e-15) && step == 3);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, N, x, id, H));
    CHECK(close_to(x[2], 0.03 * before[2], 0.01) && id[0] == 0);
    x[3] = 77;
    OK(wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 2, x, NULL, WFMM_MEMORY_AUTO));
    CHECK(x[3] == 77); /* the tail is not written */
    OK(wfmm_flow_get_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_VELOCITY, N, u, id, H));
    OK(wfmm_flow_get_f32(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_VELOCITY, N, single, NULL, H));
    CHECK(u[2] > 0.1 && single[2] == (float)u[2] && id[N - 1] == N - 1);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CORE_RADIUS, N, radii, NULL, H));
    CHECK(close_to(radii[3], 0.1, 1e-3));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CIRCULATION, N, radii, NULL, H));
    CHECK(radii[3] == 1);
    OK(wfmm_flow_set_free_stream(f, wind));
    OK(wfmm_flow_velocity_f64(f, 1, zero, after, NULL, H));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_VELOCITY, N, x, NULL, H));
    CHECK(close_to(x[0] - u[0], 0.5, 1e-12));
    OK(wfmm_flow_add_tracers_f64(f, 2, tracer, H));
    OK(wfmm_flow_advance(f, 0.01, 1));
    const int64_t gone[2] = {1, 0};
    OK(wfmm_flow_remove(f, WFMM_KIND_TRACERS, 2, gone, H));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 1, x, id, H));
    CHECK(id[0] == 2 && close_to(x[0], 0.1 + 0.005, 0.01));
    const int64_t chosen[2] = {5, 2}, tracer_left = 2;
    double all[3 * N], some[6];
    float some_single[6];
    OK(wfmm_flow_get_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, N, all, NULL, H));
    OK(wfmm_flow_get_selected_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, 2, chosen, some, H));
    CHECK(!memcmp(some, all + 15, 24) && !memcmp(some + 3, all + 6, 24));
    OK(wfmm_flow_get_selected_f32(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_VELOCITY, 1, &tracer_left, some_single, H));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_VELOCITY, 1, some, NULL, H));
    CHECK(some_single[0] == (float)some[0] && some_single[2] == (float)some[2]);
    OK(wfmm_flow_get_selected_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_VELOCITY, 0, NULL, NULL, H));
    wfmm_diagnostics d;
    OK(wfmm_diagnostics_init(&d, sizeof d));
    OK(wfmm_flow_diagnostics(f, &d));
    CHECK(close_to(d.linear_impulse[2], PI, 0.01) && fabs(d.total_strength[2]) < 1e-12);
    CHECK(isnan(d.energy) && d.reason == WFMM_REASON_SEGMENTS && d.largest_displacement > 0.005);
    wfmm_report r;
    r.struct_size = sizeof r;
    OK(wfmm_flow_report(f, &r));
    CHECK(r.method == WFMM_METHOD_DIRECT && r.host_bytes > 1000 && r.near_pairs > 0);
    OK(wfmm_flow_destroy(&f));
    CHECK(f == NULL);
    OK(wfmm_flow_destroy(&f));
}

static void particles_bound_segments_and_dust(void) {
    wfmm_flow *f = new_flow();
    const double x[6] = {0, 0, 1, 1, 0, 1}, a[6] = {0, 0, 1, 0, 0, -1}, bound[6] = {0, 0, -1, 0, 0, 1}, one[2] = {1, 1};
    const float xs[3] = {3, 0, 1}, as[3] = {0, 0, 2}, cs[1] = {0.25f}, ds[1] = {1e-4f}, rs[1] = {2650};
    const double d[2] = {1e-4, 1e-4}, rho[2] = {2650, 2650};
    const int32_t rows[4] = {0, 1, 7, 7};
    double got[9], dust[6];
    int64_t id[3], n;
    OK(wfmm_flow_set_particles_f64(f, 2, x, a, one, H));
    OK(wfmm_flow_add_particles_f32(f, 1, xs, as, cs, H));
    OK(wfmm_flow_set_bound_segments_f64(f, 2, bound, 1, 4, rows, one, NULL, H));
    OK(wfmm_flow_set_dust_f64(f, 2, x, NULL, d, rho, H));
    OK(wfmm_flow_add_dust_f32(f, 1, xs, as, ds, rs, H));
    OK(wfmm_flow_advance(f, 1e-3, 2));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_PARTICLES, WFMM_QUANTITY_STRENGTH, 3, got, id, H));
    CHECK(got[2] == 1 && got[5] == -1 && got[8] == 2 && id[2] == 2);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_PARTICLES, WFMM_QUANTITY_CORE_RADIUS, 3, got, NULL, H));
    CHECK(got[0] == 1 && got[2] == 0.25);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_BOUND_SEGMENTS, WFMM_QUANTITY_POSITION, 2, got, id, H));
    CHECK(got[2] == -1 && got[5] == 1 && id[1] == 1);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_BOUND_SEGMENTS, WFMM_QUANTITY_VELOCITY, 2, got, NULL, H));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_DUST, WFMM_QUANTITY_VELOCITY, 2 + 1, got, id, H));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_DUST, WFMM_QUANTITY_DIAMETER, 3, dust, NULL, H));
    CHECK(got[2] < 0 && got[2] > -9.81 * 2e-3 && dust[1] == 1e-4 && id[2] == 2);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_DUST, WFMM_QUANTITY_DENSITY, 3, dust, NULL, H));
    CHECK(dust[2] == 2650);
    /* the host renews what is bound, and removes all the rest: nothing moves any more */
    OK(wfmm_flow_set_bound_segments_f32(f, 0, NULL, 0, 2, NULL, NULL, NULL, H));
    OK(wfmm_flow_set_particles_f64(f, 0, NULL, NULL, NULL, H));
    OK(wfmm_flow_set_dust_f64(f, 0, NULL, NULL, NULL, NULL, H));
    OK(wfmm_flow_set_tracers_f64(f, 1, x, H));
    OK(wfmm_flow_advance(f, 1, 1));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 1, got, NULL, H));
    CHECK(!memcmp(got, x, 3 * sizeof *x));
    OK(wfmm_flow_counts(f, WFMM_KIND_DUST, &n, NULL));
    CHECK(n == 0);
    OK(wfmm_flow_destroy(&f));
}

static void filaments_are_added_and_cut(void) {
    wfmm_flow *f = NULL;
    wfmm_plan_options p;
    int32_t got[2 * N];
    const double points[9] = {0, 0, 5, 1, 0, 5, 2, 0, 5};
    const int32_t pairs[4] = {1, 2, 2, 3};
    const int64_t first = 0;
    OK(wfmm_plan_options_init(&p, sizeof p));
    p.index_base = 1, p.core_radius = 0.2;
    OK(wfmm_flow_create(NULL, &p, NULL, &f));
    OK(wfmm_flow_set_filaments_f64(f, 3, points, 2, 2, pairs, gammas, NULL, H));
    OK(wfmm_flow_add_filaments_f64(f, 3, points, 2, 2, pairs, gammas, NULL, H));
    OK(wfmm_flow_get_connectivity(f, WFMM_KIND_FILAMENTS, N, got, H));
    CHECK(got[0] == 1 && got[3] == 3 && got[4] == 4 && got[7] == 6);
    OK(wfmm_flow_remove(f, WFMM_KIND_FILAMENTS, 1, &first, H));
    OK(wfmm_flow_get_connectivity(f, WFMM_KIND_FILAMENTS, 3, got, H));
    CHECK(got[0] == 1 && got[1] == 2 && got[2] == 3 && got[5] == 5);
    /* The second of three segments by a mask: its points stay with the others. */
    const uint8_t mask[3] = {0, 7, 0};
    int64_t left[2], elements, points_left;
    double circulation[2];
    OK(wfmm_flow_remove_mask(f, WFMM_KIND_FILAMENTS, 3, mask, H));
    OK(wfmm_flow_counts(f, WFMM_KIND_FILAMENTS, &elements, &points_left));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CIRCULATION, 2, circulation, left, H));
    CHECK(elements == 2 && points_left == 4 && left[0] == 1 && left[1] == 3);
    EXPECT(wfmm_flow_remove_mask(f, WFMM_KIND_FILAMENTS, 3, mask, H), WFMM_ERR_COUNT, "n = 3");
    OK(wfmm_flow_add_filaments_f64(f, 3, points, 2, 2, pairs, gammas, NULL, H));
    EXPECT(wfmm_flow_get_connectivity(f, WFMM_KIND_FILAMENTS, 2, got, H), WFMM_ERR_COUNT, "capacity = 2");
    EXPECT(wfmm_flow_get_connectivity(f, WFMM_KIND_DUST, 2, got, H), WFMM_ERR_VALUE, "kind = 4");
    EXPECT(wfmm_flow_get_connectivity(f, WFMM_KIND_FILAMENTS, 4, NULL, H), WFMM_ERR_NULL, "connectivity");
    OK(wfmm_flow_destroy(&f));
}

struct gust { int calls, answer; wfmm_flow *flow; wfmm_status inside; };

static int32_t blow(double time, int64_t n, const double *x, double *u, int32_t memory, void *stream, void *user) {
    struct gust *g = user;
    g->calls++;
    g->inside = wfmm_flow_time(g->flow, NULL, NULL);
    CHECK(time >= 0 && memory == H && stream == NULL);
    for (int64_t k = 0; k < n; k++) u[3 * k] += 1 + 0 * x[3 * k];
    return g->answer;
}

/* Every function for single arrays: numbers that both precisions have, so that they come back as they are. */
static void single_arrays_of_every_kind(void) {
    wfmm_flow *f = new_flow();
    static const float line[9] = {0, 0, 2, 0.5f, 0, 2, 0.5f, 0.25f, 2}, at[6] = {1.5f, 0, 1, -1.5f, 0, 1}, a[6] = {0, 0, 1, 0, 0.5f, 0};
    static const float gamma[2] = {2, -0.5f}, radius[2] = {0.125f, 0.25f}, diameter[2] = {0.0009765625f, 0.00048828125f}, density[2] = {2048, 1024};
    static const int32_t two[4] = {0, 1, 1, 2};
    double all[24], numbers[4];
    float u[3], g[9], both[24];
    double wide_u[3], wide_g[9], target[3] = {0.25, 0.5, 1.5};
    const float single_target[3] = {0.25f, 0.5f, 1.5f};
    int64_t n = 0, points = 0;
    OK(wfmm_flow_set_particles_f32(f, 2, at, a, radius, H));
    OK(wfmm_flow_add_particles_f32(f, 1, line + 3, a + 3, NULL, H));
    OK(wfmm_flow_set_filaments_f32(f, 3, line, 2, 2, two, gamma, radius, H));
    OK(wfmm_flow_add_filaments_f32(f, 3, line, 1, 2, two + 2, gamma + 1, radius + 1, H));
    OK(wfmm_flow_set_bound_segments_f32(f, 3, line, 2, 2, two, gamma, radius, H));
    OK(wfmm_flow_set_tracers_f32(f, 2, at, H));
    OK(wfmm_flow_add_tracers_f32(f, 1, line, H));
    OK(wfmm_flow_set_dust_f32(f, 2, at, a, diameter, density, H));
    OK(wfmm_flow_add_dust_f32(f, 1, line, NULL, diameter + 1, density + 1, H));
    OK(wfmm_flow_counts(f, WFMM_KIND_FILAMENTS, &n, &points));
    CHECK(n == 3 && points == 6);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_PARTICLES, WFMM_QUANTITY_STRENGTH, 3, all, NULL, H));
    CHECK(all[2] == 1 && all[4] == 0.5 && all[7] == 0.5);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CIRCULATION, 3, numbers, NULL, H));
    CHECK(numbers[0] == 2 && numbers[2] == -0.5);
    OK(wfmm_flow_get_f32(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, 6, both, NULL, H));
    CHECK(!memcmp(both, line, sizeof line) && !memcmp(both + 9, line, sizeof line));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_BOUND_SEGMENTS, WFMM_QUANTITY_CORE_RADIUS, 2, numbers, NULL, H));
    CHECK(numbers[0] == 0.125 && numbers[1] == 0.25);
    OK(wfmm_flow_get_f32(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 3, both, NULL, H));
    CHECK(!memcmp(both, at, sizeof at) && !memcmp(both + 6, line, 3 * sizeof *line));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_DUST, WFMM_QUANTITY_DIAMETER, 3, numbers, NULL, H));
    CHECK(numbers[0] == 0.0009765625 && numbers[2] == 0.00048828125);
    OK(wfmm_flow_get_f32(f, WFMM_KIND_DUST, WFMM_QUANTITY_VELOCITY, 3, both, NULL, H));
    CHECK(!memcmp(both, a, sizeof a) && both[6] == 0 && both[8] == 0);
    OK(wfmm_flow_velocity_f64(f, 1, target, wide_u, wide_g, H));
    OK(wfmm_flow_velocity_f32(f, 1, single_target, u, g, H));
    for (int k = 0; k < 3; k++) CHECK(fabs(u[k] - wide_u[k]) < 1e-6 * (fabs(wide_u[0]) + fabs(wide_u[1]) + fabs(wide_u[2])));
    for (int k = 0; k < 9; k++) CHECK(fabs(g[k] - wide_g[k]) < 1e-6 * (fabs(wide_g[0]) + fabs(wide_g[4]) + fabs(wide_g[5])));
    OK(wfmm_flow_destroy(&f));
}

static void the_host_adds_its_velocity(void) {
    wfmm_flow *f = new_flow();
    struct gust g = {0, 0, f, WFMM_OK};
    const double x[3] = {0, 0, 0};
    double got[3], t;
    OK(wfmm_flow_set_tracers_f64(f, 1, x, H));
    OK(wfmm_flow_set_velocity_callback(f, blow, &g));
    OK(wfmm_flow_advance(f, 0.25, 2));
    CHECK(g.calls == 8 && g.inside == WFMM_ERR_BUSY);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 1, got, NULL, H));
    CHECK(close_to(got[0], 0.5, 1e-15));
    g.answer = 42; /* passed on */
    EXPECT(wfmm_flow_advance(f, 0.25, 2), 42, "returned 42");
    g.answer = -1;
    EXPECT(wfmm_flow_advance(f, 0.25, 2), WFMM_ERR_CALLBACK, "returned -1");
    OK(wfmm_flow_set_velocity_callback(f, NULL, NULL));
    OK(wfmm_flow_advance(f, 0.25, 2));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 1, got, NULL, H));
    OK(wfmm_flow_time(f, &t, NULL));
    CHECK(close_to(got[0], 0.5, 1e-15) && t == 1);
    EXPECT(wfmm_flow_set_velocity_callback(NULL, blow, NULL), WFMM_ERR_NULL, "flow");
    OK(wfmm_flow_destroy(&f));
}

static void bad_options(void) {
    wfmm_flow *f = NULL;
    wfmm_flow_options o;
    wfmm_plan_options p;
#define FLOW(field, value, status, word) \
    wfmm_flow_options_init(&o, sizeof o), o.field = (value); \
    EXPECT(wfmm_flow_create(NULL, NULL, &o, &f), status, word); CHECK(f == NULL)
    FLOW(integrator, 4, WFMM_ERR_CONSTANT, "integrator = 4");
    FLOW(stretching, -1, WFMM_ERR_CONSTANT, "stretching = -1");
    FLOW(spreading, 2, WFMM_ERR_CONSTANT, "spreading = 2");
    FLOW(viscosity, -1, WFMM_ERR_VALUE, "viscosity = -1");
    FLOW(viscosity, NAN, WFMM_ERR_NOT_FINITE, "viscosity");
    FLOW(squire, -1, WFMM_ERR_VALUE, "squire");
    FLOW(core_limit, 1, WFMM_ERR_VALUE, "core_limit = 1");
    FLOW(split_length, -1, WFMM_ERR_VALUE, "split_length");
    FLOW(gravity[1], INFINITY, WFMM_ERR_NOT_FINITE, "gravity[1]");
    FLOW(fluid_density, -1, WFMM_ERR_VALUE, "fluid_density");
    FLOW(fluid_viscosity, -1, WFMM_ERR_VALUE, "fluid_viscosity");
    FLOW(restitution, 1.5, WFMM_ERR_VALUE, "restitution = 1.5");
    FLOW(friction, -0.5, WFMM_ERR_VALUE, "friction = -0.5");
    FLOW(reserved[2], 1, WFMM_ERR_VALUE, "reserved[2]");
    FLOW(flags, 1, WFMM_ERR_CONSTANT, "flags");
    FLOW(struct_size, 0, WFMM_ERR_STRUCT_SIZE, "struct_size = 0");
    OK(wfmm_plan_options_init(&p, sizeof p));
    OK(wfmm_flow_options_init(&o, sizeof o));
    CHECK(o.integrator == WFMM_INTEGRATOR_RK4 && o.stretching == WFMM_STRETCHING_NONE && o.gravity[2] == 0);
    p.particle_regularization = WFMM_REG_COMPACT, o.spreading = WFMM_SPREADING_CORES;
    EXPECT(wfmm_flow_create(NULL, &p, &o, &f), WFMM_ERR_VALUE, "GAUSS_ERF");
    p.tolerance = -1;
    EXPECT(wfmm_flow_create(NULL, &p, NULL, &f), WFMM_ERR_VALUE, "tolerance");
    EXPECT(wfmm_flow_create(NULL, NULL, NULL, NULL), WFMM_ERR_NULL, "out");
    EXPECT(wfmm_flow_create((wfmm_session *)&p, NULL, NULL, &f), WFMM_ERR_HANDLE, "session");
    EXPECT(wfmm_flow_options_init(NULL, sizeof o), WFMM_ERR_NULL, "options");
    EXPECT(wfmm_diagnostics_init(NULL, 8), WFMM_ERR_NULL, "diagnostics");
    EXPECT(wfmm_diagnostics_init((wfmm_diagnostics *)&p, 3), WFMM_ERR_STRUCT_SIZE, "3");
}

static void bad_handles(void) {
    double x[3] = {0};
    wfmm_report r;
    wfmm_diagnostics d;
    wfmm_flow *none = NULL, *dead = new_flow(), *copy = dead;
    OK(wfmm_flow_destroy(&dead));
    EXPECT(wfmm_flow_advance(copy, 1, 1), WFMM_ERR_HANDLE, "no live flow");
    EXPECT(wfmm_flow_destroy(&copy), WFMM_ERR_HANDLE, "no live flow");
    EXPECT(wfmm_flow_destroy(NULL), WFMM_ERR_NULL, "flow");
    EXPECT(wfmm_flow_advance(none, 1, 1), WFMM_ERR_NULL, "flow is NULL");
    EXPECT(wfmm_flow_set_particles_f64(none, 1, x, x, x, H), WFMM_ERR_NULL, "flow");
    EXPECT(wfmm_flow_time(none, x, NULL), WFMM_ERR_NULL, "flow");
    EXPECT(wfmm_flow_counts(none, 0, NULL, NULL), WFMM_ERR_NULL, "flow");
    EXPECT(wfmm_flow_get_f64(none, 0, 0, 0, x, NULL, H), WFMM_ERR_NULL, "flow");
    EXPECT(wfmm_flow_velocity_f64(none, 1, x, x, NULL, H), WFMM_ERR_NULL, "flow");
    EXPECT(wfmm_flow_set_free_stream(none, x), WFMM_ERR_NULL, "flow");
    OK(wfmm_diagnostics_init(&d, sizeof d));
    EXPECT(wfmm_flow_diagnostics(none, &d), WFMM_ERR_NULL, "flow");
    r.struct_size = sizeof r;
    EXPECT(wfmm_flow_report(none, &r), WFMM_ERR_NULL, "flow");
    EXPECT(wfmm_flow_remove(none, 0, 0, NULL, H), WFMM_ERR_NULL, "flow");
}

/* What is refused leaves this flow as it is. */
static void bad_arrays(void) {
    wfmm_flow *f = new_flow();
    wfmm_diagnostics d;
    const double x[6] = {0, 0, 1, 1, 0, 1}, nan_[6] = {0, 0, 0, 0, NAN, 0}, minus[2] = {1, -1}, one[2] = {1, 1}, zero[2] = {1, 0};
    const int32_t two[4] = {0, 1, 1, 2};
    const int64_t id = 5;
    double u[18];
    OK(wfmm_flow_set_particles_f64(f, 2, x, x, one, H));
    OK(wfmm_flow_set_filaments_f64(f, N, ring, N, 2, ends, gammas, cores, H));
    EXPECT(wfmm_flow_set_particles_f64(f, -1, x, x, one, H), WFMM_ERR_COUNT, "n = -1");
    EXPECT(wfmm_flow_set_particles_f64(f, 2, NULL, x, one, H), WFMM_ERR_NULL, "position");
    EXPECT(wfmm_flow_add_particles_f64(f, 2, x, NULL, one, H), WFMM_ERR_NULL, "strength");
    EXPECT(wfmm_flow_add_particles_f64(f, 2, nan_, x, one, H), WFMM_ERR_NOT_FINITE, "position[1][1]");
    EXPECT(wfmm_flow_add_particles_f64(f, 2, x, nan_, one, H), WFMM_ERR_NOT_FINITE, "strength[1][1]");
    EXPECT(wfmm_flow_add_particles_f64(f, 2, x, x, minus, H), WFMM_ERR_VALUE, "core_radius[1] = -1");
    EXPECT(wfmm_flow_add_particles_f64(f, 2, x, x, one, 9), WFMM_ERR_CONSTANT, "memory = 9");
    EXPECT(wfmm_flow_set_filaments_f64(f, 2, x, 2, 2, two, one, one, H), WFMM_ERR_INDEX, "connectivity[1][1] = 2");
    EXPECT(wfmm_flow_add_filaments_f64(f, 2, x, 1, 1, two, one, one, H), WFMM_ERR_VALUE, "ld = 1");
    EXPECT(wfmm_flow_add_filaments_f64(f, 2, nan_, 1, 2, two, one, one, H), WFMM_ERR_NOT_FINITE, "points[1][1]");
    EXPECT(wfmm_flow_set_bound_segments_f64(f, 2, x, 1, 2, NULL, one, one, H), WFMM_ERR_NULL, "connectivity");
    EXPECT(wfmm_flow_set_bound_segments_f64(f, 2, x, 1, 2, two, NULL, one, H), WFMM_ERR_NULL, "circulation");
    EXPECT(wfmm_flow_set_tracers_f64(f, 2, nan_, H), WFMM_ERR_NOT_FINITE, "position[1][1]");
    EXPECT(wfmm_flow_add_tracers_f64(f, -2, x, H), WFMM_ERR_COUNT, "n = -2");
    EXPECT(wfmm_flow_set_dust_f64(f, 2, x, NULL, zero, one, H), WFMM_ERR_VALUE, "diameter[1] = 0");
    EXPECT(wfmm_flow_add_dust_f64(f, 2, x, NULL, one, minus, H), WFMM_ERR_VALUE, "density[1] = -1");
    EXPECT(wfmm_flow_add_dust_f64(f, 2, x, nan_, one, one, H), WFMM_ERR_NOT_FINITE, "velocity[1][1]");
    EXPECT(wfmm_flow_remove(f, 5, 1, &id, H), WFMM_ERR_CONSTANT, "kind = 5");
    EXPECT(wfmm_flow_remove(f, WFMM_KIND_PARTICLES, 1, &id, H), WFMM_ERR_VALUE, "identity[0] = 5");
    EXPECT(wfmm_flow_remove(f, WFMM_KIND_PARTICLES, 1, NULL, H), WFMM_ERR_NULL, "identity");
    EXPECT(wfmm_flow_remove(f, WFMM_KIND_PARTICLES, -1, &id, H), WFMM_ERR_COUNT, "n = -1");
    EXPECT(wfmm_flow_remove_mask(f, 5, 0, NULL, H), WFMM_ERR_CONSTANT, "kind = 5");
    EXPECT(wfmm_flow_remove_mask(f, WFMM_KIND_PARTICLES, 1, NULL, H), WFMM_ERR_NULL, "mask");
    EXPECT(wfmm_flow_get_selected_f64(f, WFMM_KIND_PARTICLES, 9, 1, &id, u, H), WFMM_ERR_CONSTANT, "quantity = 9");
    EXPECT(wfmm_flow_get_selected_f64(f, WFMM_KIND_PARTICLES, 0, 1, &id, u, H), WFMM_ERR_VALUE, "identity[0] = 5");
    EXPECT(wfmm_flow_get_selected_f64(f, WFMM_KIND_PARTICLES, 0, 1, NULL, u, H), WFMM_ERR_NULL, "identity");
    EXPECT(wfmm_flow_get_selected_f32(f, WFMM_KIND_PARTICLES, WFMM_QUANTITY_DENSITY, 1, &id, NULL, H), WFMM_ERR_VALUE, "quantity = 6");
    EXPECT(wfmm_flow_set_free_stream(f, NULL), WFMM_ERR_NULL, "velocity");
    EXPECT(wfmm_flow_set_free_stream(f, nan_ + 3), WFMM_ERR_NOT_FINITE, "velocity[1]");
    EXPECT(wfmm_flow_advance(f, 0, 1), WFMM_ERR_VALUE, "dt = 0");
    EXPECT(wfmm_flow_advance(f, NAN, 1), WFMM_ERR_NOT_FINITE, "dt");
    EXPECT(wfmm_flow_advance(f, 1, -1), WFMM_ERR_COUNT, "steps = -1");
    EXPECT(wfmm_flow_advance(f, 1e308, 1), WFMM_ERR_NOT_FINITE, "range");
    EXPECT(wfmm_flow_counts(f, -1, NULL, NULL), WFMM_ERR_CONSTANT, "kind = -1");
    EXPECT(wfmm_flow_get_f64(f, 0, 7, 2, u, NULL, H), WFMM_ERR_CONSTANT, "quantity = 7");
    EXPECT(wfmm_flow_get_f64(f, 0, 0, 1, u, NULL, H), WFMM_ERR_COUNT, "capacity = 1");
    EXPECT(wfmm_flow_get_f64(f, 0, 0, 2, NULL, NULL, H), WFMM_ERR_NULL, "values");
    EXPECT(wfmm_flow_get_f64(f, 0, WFMM_QUANTITY_DIAMETER, 2, u, NULL, H), WFMM_ERR_VALUE, "DIAMETER");
    EXPECT(wfmm_flow_velocity_f64(f, 1, NULL, u, NULL, H), WFMM_ERR_NULL, "target");
    EXPECT(wfmm_flow_velocity_f64(f, 1, x, NULL, NULL, H), WFMM_ERR_NULL, "velocity");
    EXPECT(wfmm_flow_velocity_f64(f, 1, x, u, u + 1, H), WFMM_ERR_OVERLAP, "overlap");
    EXPECT(wfmm_flow_velocity_f64(f, 2, nan_, u, NULL, H), WFMM_ERR_NOT_FINITE, "target[1][1]");
    EXPECT(wfmm_flow_diagnostics(f, NULL), WFMM_ERR_NULL, "diagnostics");
    d.struct_size = 0;
    EXPECT(wfmm_flow_diagnostics(f, &d), WFMM_ERR_STRUCT_SIZE, "struct_size = 0");
    EXPECT(wfmm_flow_report(f, NULL), WFMM_ERR_NULL, "report");
    int64_t n, points, step;
    double t;
    OK(wfmm_flow_counts(f, WFMM_KIND_PARTICLES, &n, NULL));
    CHECK(n == 2);
    OK(wfmm_flow_counts(f, WFMM_KIND_FILAMENTS, &n, &points));
    CHECK(n == N && points == N);
    OK(wfmm_flow_get_f64(f, WFMM_KIND_PARTICLES, WFMM_QUANTITY_POSITION, 2, u, NULL, H));
    OK(wfmm_flow_time(f, &t, &step));
    CHECK(!memcmp(u, x, sizeof x) && t == 0 && step == 0);
    OK(wfmm_flow_destroy(&f));
    /* no viscosity, no dust */
    OK(wfmm_flow_create(NULL, NULL, NULL, &f));
    EXPECT(wfmm_flow_set_dust_f64(f, 2, x, NULL, one, one, H), WFMM_ERR_STATE, "fluid_viscosity");
    OK(wfmm_flow_destroy(&f));
}

static void a_flow_keeps_its_session(void) {
    wfmm_session_options o;
    wfmm_session *s = NULL;
    wfmm_flow *f = NULL;
    const double x[3] = {0, 0, 0};
    OK(wfmm_session_options_init(&o, sizeof o));
    o.backend = WFMM_BACKEND_CPU, o.threads = 1;
    OK(wfmm_session_create(&o, &s));
    OK(wfmm_flow_create(s, NULL, NULL, &f));
    OK(wfmm_session_destroy(&s));
    OK(wfmm_flow_set_tracers_f64(f, 1, x, H));
    EXPECT(wfmm_flow_set_tracers_f64(f, 1, x, WFMM_MEMORY_DEVICE), WFMM_ERR_MEMORY, "CPU");
    OK(wfmm_flow_advance(f, 1, 1));
    OK(wfmm_flow_destroy(&f));
}

static void a_flow_is_saved_and_goes_on(void) {
    wfmm_flow *f = new_flow(), *g = NULL;
    char path[64];
    double a[3 * N], b[3 * N], t;
    snprintf(path, sizeof path, "/tmp/wakefmm-flow-%d.npz", (int)getpid());
    OK(wfmm_flow_set_filaments_f64(f, N, ring, N, 2, ends, gammas, cores, H));
    OK(wfmm_flow_advance(f, 0.1, 2));
    OK(wfmm_flow_save(f, path));
    OK(wfmm_flow_load(NULL, path, &g));
    wfmm_plan_options sums, given;
    wfmm_flow_options motion;
    sums.struct_size = given.struct_size = sizeof sums;
    motion.struct_size = sizeof motion;
    OK(wfmm_flow_get_options(f, &given, NULL));
    OK(wfmm_flow_get_options(g, &sums, &motion));
    CHECK(!memcmp(&sums, &given, sizeof sums) && motion.struct_size == sizeof motion);
    motion.struct_size = 3;
    EXPECT(wfmm_flow_get_options(g, NULL, &motion), WFMM_ERR_STRUCT_SIZE, "options: struct_size = 3");
    OK(wfmm_flow_advance(f, 0.1, 2));
    OK(wfmm_flow_advance(g, 0.1, 2));
    OK(wfmm_flow_time(g, &t, NULL));
    OK(wfmm_flow_get_f64(f, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, N, a, NULL, H));
    OK(wfmm_flow_get_f64(g, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, N, b, NULL, H));
    CHECK(!memcmp(a, b, sizeof a) && close_to(t, 0.4, 1e-15));
    OK(wfmm_flow_destroy(&g));
    FILE *file = fopen(path, "w");
    CHECK(file && fputs("no checkpoint", file) >= 0 && !fclose(file));
    EXPECT(wfmm_flow_load(NULL, path, &g), WFMM_ERR_FILE, path);
    CHECK(g == NULL && remove(path) == 0);
    EXPECT(wfmm_flow_load(NULL, path, &g), WFMM_ERR_FILE, path);
    EXPECT(wfmm_flow_load(NULL, NULL, &g), WFMM_ERR_NULL, "path");
    EXPECT(wfmm_flow_load(NULL, path, NULL), WFMM_ERR_NULL, "out");
    EXPECT(wfmm_flow_save(f, NULL), WFMM_ERR_NULL, "path");
    EXPECT(wfmm_flow_save(f, ""), WFMM_ERR_FILE, "empty");
    EXPECT(wfmm_flow_save(f, "/nowhere/at/all.npz"), WFMM_ERR_FILE, "/nowhere");
    EXPECT(wfmm_flow_save(NULL, path), WFMM_ERR_NULL, "flow");
    OK(wfmm_flow_destroy(&f));
}

/* What this save writes on standard error, where no file may be longer than 1000 bytes. */
static const char *said_by_a_save_that_fails(wfmm_flow *f, const char *path) {
    static char text[256];
    struct rlimit old, tight;
    int ends[2];
    const int standard_error = dup(2);
    CHECK(pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && dup2(ends[1], 2) == 2);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    tight = old, tight.rlim_cur = 1000;
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &tight) == 0);
    const wfmm_status status = wfmm_flow_save(f, path);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    signal(SIGXFSZ, handler);
    CHECK(dup2(standard_error, 2) == 2 && status == WFMM_ERR_FILE && strstr(last_error(), path));
    const ssize_t length = read(ends[0], text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    close(standard_error), close(ends[0]), close(ends[1]);
    return text;
}

/* A save that fails leaves the file that was there, says nothing but its status, and leaves no other file. */
static void a_save_may_fail(void) {
    wfmm_flow *f = new_flow();
    char folder[] = "/tmp/wakefmm-save-XXXXXX", path[64], link[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/f.npz", folder), snprintf(link, sizeof link, "%s/link", folder);
    CHECK(symlink("f.npz", link) == 0);
    OK(wfmm_flow_save(f, link));
    CHECK(chmod(path, 0640) == 0);
    OK(wfmm_flow_set_tracers_f64(f, N, ring, H));
    CHECK(!strcmp(said_by_a_save_that_fails(f, link), ""));
    wfmm_flow *g = NULL;
    OK(wfmm_flow_load(NULL, path, &g));
    OK(wfmm_flow_destroy(&g));
    OK(wfmm_flow_save(f, link));
    struct stat there;
    CHECK(stat(path, &there) == 0 && (there.st_mode & 0777) == 0640);
    EXPECT(wfmm_flow_save(f, folder), WFMM_ERR_FILE, "no regular file");
    EXPECT(wfmm_flow_picture(f, NULL, 4, 4, NULL, folder), WFMM_ERR_FILE, "no regular file");
    CHECK(unlink(link) == 0 && unlink(path) == 0 && rmdir(folder) == 0);
    OK(wfmm_flow_destroy(&f));
}

int main(void) {
    fill();
    a_ring_carries_tracers();
    particles_bound_segments_and_dust();
    filaments_are_added_and_cut();
    single_arrays_of_every_kind();
    the_host_adds_its_velocity();
    bad_options();
    bad_handles();
    bad_arrays();
    a_flow_keeps_its_session();
    a_flow_is_saved_and_goes_on();
    a_save_may_fail();
    return finish("flow");
}
