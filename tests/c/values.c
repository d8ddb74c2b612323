/* Known values: segments, particles and charges, both array types, every regularization, layouts of the arrays.
   Enters: nothing. Leaves: 0 when every number is that of the formulas. Twin: tests/fortran/values.f90. */
#include "check.h"

static const double PI = 3.14159265358979323846;
static const double POINTS[6] = {0, 0, -1, 0, 0, 1};
static const int32_t ENDS[2] = {0, 1};
static const double GAMMA[1] = {1}, CORE[1] = {0.5}, TARGET[3] = {0.05, 0, -0.5};
/* u_y of WFMM_REG_NONE to _OFFSET at that target, s = 1/(4 pi). */
static const double SEGMENT[6] = {3.174316846759495,   0.03174316846759495, 0.03963356378147256,
                                  0.03174158142819854, 3.174316846759495 * 0.01 / 1.01, 0.01586230555830498};

static void segments_have_their_known_velocity(void) {
    for (int32_t reg = WFMM_REG_NONE; reg <= WFMM_REG_OFFSET; reg++) {
        wfmm_plan_options o;
        OK(wfmm_plan_options_init(&o, sizeof o));
        o.segment_regularization = reg;
        o.tolerance = 1e-10;
        double u[3] = {9, 9, 9}, g[9];
        OK(wfmm_induce_segments_f64(2, POINTS, 1, 2, ENDS, GAMMA, CORE, 1, TARGET, &o, u, g));
        CHECK(close_to(u[1], SEGMENT[reg], 1e-13));
        CHECK(u[0] == 0 && u[2] == 0);
        float pf[6] = {0, 0, -1, 0, 0, 1}, gf[1] = {1}, cf[1] = {0.5f}, xf[3] = {0.05f, 0, -0.5f}, uf[3], hf[9];
        o.tolerance = 1e-5;
        OK(wfmm_induce_segments_f32(2, pf, 1, 2, ENDS, gf, cf, 1, xf, &o, uf, hf));
        CHECK(close_to(uf[1], SEGMENT[reg], 1e-5));
    }
}

/* S(r) of physics: u = s a x d S(r). */
static double particle_s(int32_t reg, double r, double c) {
    double q = r / c, r3 = r * r * r;
    switch (reg) {
    case WFMM_REG_NONE: return 1 / r3;
    case WFMM_REG_GAUSS_ERF: return (erf(q / sqrt(2)) - sqrt(2 / PI) * q * exp(-q * q / 2)) / r3;
    case WFMM_REG_EXPONENTIAL: return (1 - exp(-q * q * q)) / r3;
    case WFMM_REG_COMPACT: return 1 / sqrt(r3 * r3 + pow(c, 6));
    case WFMM_REG_ROSENHEAD: return pow(r * r + c * c, -1.5);
    case WFMM_REG_WINCKELMANS: return (r * r + 2.5 * c * c) * pow(r * r + c * c, -2.5);
    default: return (q <= 1 ? q * q : 1) / r3;
    }
}

static void particles_follow_their_formula(void) {
    const double position[6] = {0, 0, 0, 1, 2, 3}, strength[6] = {1, 2, 3, -1, 0.5, 2}, core[2] = {0.4, 3};
    const double x[3] = {0.3, -0.2, 0.1};
    for (int32_t reg = WFMM_REG_NONE; reg <= WFMM_REG_POLYNOMIAL; reg++) {
        if (reg != WFMM_REG_NONE && reg < WFMM_REG_GAUSS_ERF) continue;
        wfmm_plan_options o;
        OK(wfmm_plan_options_init(&o, sizeof o));
        o.particle_regularization = reg;
        o.tolerance = 1e-10;
        o.normalization = 1;
        double want[3] = {0, 0, 0}, u[3];
        for (int k = 0; k < 2; k++) {
            const double *a = strength + 3 * k, d[3] = {x[0] - position[3 * k], x[1] - position[3 * k + 1], x[2] - position[3 * k + 2]};
            double s = particle_s(reg, sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), core[k]);
            want[0] += s * (a[1] * d[2] - a[2] * d[1]);
            want[1] += s * (a[2] * d[0] - a[0] * d[2]);
            want[2] += s * (a[0] * d[1] - a[1] * d[0]);
        }
        OK(wfmm_induce_particles_f64(2, position, strength, core, 1, x, &o, u, NULL));
        for (int i = 0; i < 3; i++) CHECK(close_to(u[i], want[i], 1e-11));
        float pf[6], af[6], cf[2], xf[3], uf[3];
        for (int i = 0; i < 6; i++) pf[i] = (float)position[i], af[i] = (float)strength[i];
        for (int i = 0; i < 3; i++) xf[i] = (float)x[i];
        cf[0] = 0.4f, cf[1] = 3;
        o.tolerance = 1e-5;
        OK(wfmm_induce_particles_f32(2, pf, af, cf, 1, xf, &o, uf, NULL));
        for (int i = 0; i < 3; i++) CHECK(close_to(uf[i], want[i], 2e-5));
    }
}

static void gradients_are_derivatives_in_the_stated_order(void) {
    const double h = 1e-5;
    wfmm_plan_options o;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.tolerance = 1e-10;
    double x[3] = {0.3, 0.2, -0.4}, u[3], g[3][3];
    OK(wfmm_induce_segments_f64(2, POINTS, 1, 2, ENDS, GAMMA, CORE, 1, x, &o, u, &g[0][0]));
    for (int j = 0; j < 3; j++) {
        double y[6], v[6];
        memcpy(y, x, sizeof x), memcpy(y + 3, x, sizeof x);
        y[j] += h, y[3 + j] -= h;
        OK(wfmm_induce_segments_f64(2, POINTS, 1, 2, ENDS, GAMMA, CORE, 2, y, &o, v, NULL));
        for (int i = 0; i < 3; i++) CHECK(fabs(g[i][j] - (v[i] - v[3 + i]) / (2 * h)) < 1e-8);
    }
}

static void charges_have_potential_and_gradient(void) {
    const double position[6] = {0, 0, 0, 1, 0, 0}, charge[2] = {2, -1}, x[6] = {0, 3, 4, 1, 0, 0};
    wfmm_plan_options o;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.normalization = 1;
    o.tolerance = 1e-10;
    wfmm_plan *p = NULL;
    OK(wfmm_plan_create(NULL, &o, &p));
    OK(wfmm_plan_set_charges_f64(p, 2, position, charge, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(p, 2, x, WFMM_MEMORY_HOST));
    double phi[2], g[6];
    OK(wfmm_plan_evaluate_potential_f64(p, phi, g, WFMM_MEMORY_HOST));
    CHECK(close_to(phi[0], 2.0 / 5 - 1 / sqrt(26), 1e-12));
    CHECK(close_to(phi[1], 2, 1e-12)); /* on the second charge: that one adds zero */
    CHECK(close_to(g[1], -2 * 3 / 125.0 + 3 / pow(26, 1.5), 1e-12));
    CHECK(close_to(g[3], -2, 1e-12));
    float pf[6] = {0, 0, 0, 1, 0, 0}, qf[2] = {2, -1}, xf[6] = {0, 3, 4, 1, 0, 0}, phif[2], gf[6];
    OK(wfmm_plan_destroy(&p));
    o.tolerance = 1e-4;
    OK(wfmm_plan_create(NULL, &o, &p));
    OK(wfmm_plan_set_charges_f32(p, 2, pf, qf, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f32(p, 2, xf, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_potential_f32(p, phif, gf, WFMM_MEMORY_HOST));
    CHECK(close_to(phif[0], 2.0 / 5 - 1 / sqrt(26), 1e-5));
    OK(wfmm_plan_destroy(&p));
}

/* OLAF's shape: rows of four, counted from 1, sentinels behind the live count, results added. */
static void layouts_of_host_codes(void) {
    const double nan_ = NAN;
    double points[12] = {0, 0, -1, 0, 0, 1, nan_, nan_, nan_, nan_, nan_, nan_};
    const int32_t ends[12] = {1, 2, -7, -7, -999, -999, -999, -999, 1, 1, 1, 1};
    const double gamma[3] = {1, nan_, nan_}, core[3] = {0.5, nan_, nan_};
    const double x[6] = {0.05, 0, -0.5, nan_, nan_, nan_};
    wfmm_plan_options o;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.index_base = 1;
    o.tolerance = 1e-10;
    o.flags = WFMM_FLAG_ACCUMULATE;
    double u[6] = {10, 20, 30, 40, 50, 60};
    OK(wfmm_induce_segments_f64(2, points, 1, 4, ends, gamma, core, 1, x, &o, u, NULL));
    CHECK(close_to(u[1], 20 + SEGMENT[WFMM_REG_VATISTAS], 1e-14));
    CHECK(u[0] == 10 && u[2] == 30 && u[3] == 40 && u[4] == 50 && u[5] == 60);
    o.core_radius = 0.5; /* for all, where the array is NULL */
    OK(wfmm_induce_segments_f64(2, points, 1, 4, ends, gamma, NULL, 1, x, &o, u, NULL));
    CHECK(close_to(u[1], 20 + 2 * SEGMENT[WFMM_REG_VATISTAS], 1e-14));
}

static void what_has_no_value_adds_zero(void) {
    const double x[12] = {0, 0, -1, 0, 0, 0.25, 0, 0, 7, 1, 0, 0};
    const double points[9] = {0, 0, -1, 0, 0, 1, 0, 0, 0};
    const int32_t ends[4] = {0, 1, 2, 2};
    const double gamma[2] = {0, 5};
    double u[12];
    wfmm_plan_options o;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.segment_regularization = WFMM_REG_NONE;
    OK(wfmm_induce_segments_f64(2, POINTS, 1, 2, ENDS, GAMMA, NULL, 3, x, &o, u, NULL));
    for (int i = 0; i < 9; i++) CHECK(u[i] == 0);
    /* a zero circulation and a segment without length */
    OK(wfmm_induce_segments_f64(3, points, 2, 2, ends, gamma, NULL, 4, x, &o, u, NULL));
    for (int i = 0; i < 12; i++) CHECK(u[i] == 0);
    const double a[3] = {1, 1, 1};
    OK(wfmm_induce_particles_f64(1, x, a, NULL, 1, x, NULL, u, NULL));
    for (int i = 0; i < 3; i++) CHECK(u[i] == 0);
}

static void lengths_scale(void) {
    for (double scale = 1e-6; scale < 1e7; scale *= 1e12) {
        double points[6], x[3] = {0.05 * scale, 0, -0.5 * scale}, core[1] = {0.5 * scale}, u[3];
        for (int i = 0; i < 6; i++) points[i] = POINTS[i] * scale;
        OK(wfmm_induce_segments_f64(2, points, 1, 2, ENDS, GAMMA, core, 1, x, NULL, u, NULL));
        CHECK(close_to(u[1] * scale, SEGMENT[WFMM_REG_VATISTAS], 1e-12));
    }
}

/* A charge, a particle and a segment above the plane y = 1, and their images. */
static void a_ground_plane_mirrors(void) {
    const double at[3] = {0, 3, 0}, q[1] = {2}, a[3] = {0, 0, 1}, x[6] = {4, 1, 0, 0, 2, 0};
    const double points[6] = {0, 3, -1, 0, 3, 1}, images[12] = {0, 3, -1, 0, 3, 1, 0, -1, -1, 0, -1, 1};
    const int32_t both[4] = {0, 1, 2, 3};
    const double gammas[2] = {1, -1};
    double phi[2], u[6], v[6], g[18];
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    OK(wfmm_plan_options_init(&o, sizeof o));
    CHECK(o.plane_axis == 0 && o.plane_position == 0 && o.expansion == WFMM_EXPANSION_HARMONICS && o.period[2] == 0);
    o.normalization = 1;
    OK(wfmm_induce_segments_f64(4, images, 2, 2, both, gammas, NULL, 2, x, &o, v, NULL));
    o.plane_axis = 2, o.plane_position = 1;
    OK(wfmm_induce_segments_f64(2, points, 1, 2, both, gammas, NULL, 2, x, &o, u, g));
    for (int i = 0; i < 6; i++) CHECK(fabs(u[i] - v[i]) < 1e-14);
    CHECK(fabs(u[1]) < 1e-15 && fabs(g[3]) < 1e-15 && fabs(g[5]) < 1e-15); /* v, dv/dx and dv/dz on the plane */
    o.particle_regularization = WFMM_REG_NONE;
    OK(wfmm_induce_particles_f64(1, at, a, NULL, 2, x, &o, u, NULL));
    CHECK(close_to(u[0], 4 / pow(20, 1.5), 1e-14) && fabs(u[1]) < 1e-15 && u[2] == 0);
    CHECK(close_to(u[3], 1 + 1 / 9.0, 1e-14)); /* the image's strength is -1: (0,0,-1) x (0,3,0)/27 = (1/9,0,0) */
    OK(wfmm_plan_create(NULL, &o, &p));
    OK(wfmm_plan_set_charges_f64(p, 1, at, q, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(p, 2, x, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_potential_f64(p, phi, g, WFMM_MEMORY_HOST));
    CHECK(close_to(phi[0], 4 / sqrt(20), 1e-14) && close_to(phi[1], 2 + 2 / 3.0, 1e-14) && fabs(g[1]) < 1e-15);
    OK(wfmm_plan_destroy(&p));
}

/* The treecode, and the FMM by pseudo-particles, against the direct sum: positions by multiples of irrational numbers. */
static void far_fields_hold_their_tolerance(int32_t method, int32_t expansion, int32_t leaf_capacity) {
#ifdef UNDER_CHECKER /* valgrind is some fifty times slower, and what it takes tells nothing of the best leaves */
    enum { N = 700, M = 400 };
    if (leaf_capacity == 0) leaf_capacity = 40;
#else
    enum { N = 4000, M = 2500 };
#endif
    static double x[3 * N], a[3 * N], y[3 * M], u[3 * M], v[3 * M];
    const double step[3] = {0.6180339887498949, 0.7548776662466927, 0.8191725133961645};
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_report r;
    char recipe[1000];
    size_t length;
    double wrong = 0, size = 0;
    for (int i = 0; i < 3 * N; i++) x[i] = fmod((i / 3 + 1) * step[i % 3], 1), a[i] = sin(i);
    for (int i = 0; i < 3 * M; i++) y[i] = fmod((i / 3 + 1) * step[i % 3] + 0.31, 1);
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.method = method, o.expansion = expansion, o.leaf_capacity = leaf_capacity, o.tolerance = 1e-3;
    OK(wfmm_plan_create(NULL, &o, &p));
    OK(wfmm_plan_set_particles_f64(p, N, x, a, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(p, M, y, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST));
    r.struct_size = sizeof r;
    OK(wfmm_plan_report(p, &r));
    CHECK(r.method == method && r.backend == WFMM_BACKEND_CPU && r.far_pairs > 0 && r.order > 0);
    const int at_targets = method == WFMM_METHOD_TREECODE;
    CHECK((r.seconds[WFMM_PASS_M2P] > 0) == at_targets && (r.seconds[WFMM_PASS_M2L] > 0) == !at_targets);
    OK(wfmm_plan_recipe(p, recipe, sizeof recipe, &length));
    CHECK((strncmp(recipe, "Treecode", 8) == 0) == at_targets);
    OK(wfmm_plan_destroy(&p));
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.method = WFMM_METHOD_DIRECT;
    OK(wfmm_induce_particles_f64(N, x, a, NULL, M, y, &o, v, NULL));
    for (int i = 0; i < 3 * M; i++) wrong += (u[i] - v[i]) * (u[i] - v[i]), size += v[i] * v[i];
    CHECK(wrong > 0 && sqrt(wrong / size) <= 1e-3);
}

/* A segment that is as long as the period along its axis is an infinite line; with a second period, a row of them. */
static void periods_make_lines_and_rows(void) {
    const double pi = 3.14159265358979323846, points[6] = {0.1, 0.2, -0.5, 0.1, 0.2, 0.5}, gamma[1] = {3};
    const double x[6] = {0.4, 0.6, 0.3, -0.2, 1.1, 7.9};
    const int32_t ends[2] = {0, 1};
    wfmm_plan_options o;
    double u[6], q[2] = {1, -1}, at[6] = {0, 0, 0, 0.5, 0.5, 0.5};
    wfmm_plan *p = NULL;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.tolerance = 1e-10, o.period[2] = 1;
    OK(wfmm_induce_segments_f64(2, points, 1, 2, ends, gamma, NULL, 2, x, &o, u, NULL));
    for (int k = 0; k < 2; k++) {
        double a = x[3 * k] - 0.1, b = x[3 * k + 1] - 0.2, f = 3 / (2 * pi * (a * a + b * b));
        CHECK(fabs(u[3 * k] + f * b) < 1e-9 && fabs(u[3 * k + 1] - f * a) < 1e-9 && fabs(u[3 * k + 2]) < 1e-9);
    }
    o.period[0] = 2;
    OK(wfmm_induce_segments_f64(2, points, 1, 2, ends, gamma, NULL, 2, x, &o, u, NULL));
    for (int k = 0; k < 2; k++) {
        double a = pi * (x[3 * k] - 0.1), b = pi * (x[3 * k + 1] - 0.2), f = 3 / (4 * (cosh(b) - cos(a)));
        CHECK(fabs(u[3 * k] + f * sinh(b)) < 1e-9 && fabs(u[3 * k + 1] - f * sin(a)) < 1e-9);
    }
    OK(wfmm_plan_create(NULL, &o, &p));
    OK(wfmm_plan_set_charges_f64(p, 1, at, q, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(p, 2, x, WFMM_MEMORY_HOST));
    EXPECT(wfmm_plan_evaluate_potential_f64(p, u, NULL, WFMM_MEMORY_HOST), WFMM_ERR_VALUE, "no potential");
    OK(wfmm_plan_set_charges_f64(p, 2, at, q, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_potential_f64(p, u, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_destroy(&p));
}

int main(void) {
    segments_have_their_known_velocity();
    particles_follow_their_formula();
    gradients_are_derivatives_in_the_stated_order();
    charges_have_potential_and_gradient();
    layouts_of_host_codes();
    what_has_no_value_adds_zero();
    lengths_scale();
    a_ground_plane_mirrors();
    far_fields_hold_their_tolerance(WFMM_METHOD_TREECODE, WFMM_EXPANSION_HARMONICS, 0);
    far_fields_hold_their_tolerance(WFMM_METHOD_FMM, WFMM_EXPANSION_PSEUDO_PARTICLES, 60);
    periods_make_lines_and_rows();
    return finish("values");
}
