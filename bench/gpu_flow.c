/* Steps of a flow on a GPU beside evaluations of a plan on the same elements, in device memory: median milliseconds of both.
 *
 * Enters: "ring", "brownout", "particles", "turbulence" or "all", or "thin" (brownout without wide cores) or "narrow" (steps that narrow cores), how many steps, points of a
 * leaf (0: the library's choice; with "narrow" the cube root of the number of particles). Leaves: a line a case, and the passes of the flow's last evaluation. Ring and brownout come twice: with
 * WFMM_PRECISION_F64, and with WFMM_PRECISION_ARRAYS.
 */
#include "gpu_memory.h"
#include "gpu_workload.h"

/* Whether flows of double precision ask for double sums, or leave the precision to the library. */
static int in_double;
enum { HOST = WFMM_MEMORY_HOST, DEVICE = WFMM_MEMORY_DEVICE, MOST = 64 };

/* Everything of a case; targets are particles, points, then tracers or dust. */
struct scene {
    const char *name;
    int64_t particles, points, segments, tracers, dust;
    double *particle, *strength, *core, *point, *circulation, *radius, *other, *diameter, *density;
    int32_t *ends;
    wfmm_plan_options sums;
    wfmm_flow_options motion;
    double dt;
};

static struct scene scene(const char *name, int64_t particles, int64_t segments, int64_t points, int64_t tracers, int64_t dust) {
    struct scene s = {.name = name, .particles = particles, .points = points, .segments = segments, .tracers = tracers, .dust = dust};
    const int64_t others = tracers + dust;
    s.particle = malloc(24 * particles + 8), s.strength = malloc(24 * particles + 8), s.core = malloc(8 * particles + 8);
    s.point = malloc(24 * points + 8), s.circulation = malloc(8 * segments + 8), s.radius = malloc(8 * segments + 8), s.ends = malloc(8 * segments + 8);
    s.other = malloc(24 * others + 8), s.diameter = malloc(8 * dust + 8), s.density = malloc(8 * dust + 8);
    must(wfmm_plan_options_init(&s.sums, sizeof s.sums), "options");
    must(wfmm_flow_options_init(&s.motion, sizeof s.motion), "options");
    s.sums.method = WFMM_METHOD_FMM;
    s.sums.particle_regularization = WFMM_REG_GAUSS_ERF;
    return s;
}
static void drop_scene(struct scene *s) {
    free(s->particle), free(s->strength), free(s->core), free(s->point), free(s->circulation), free(s->radius), free(s->ends), free(s->other), free(s->diameter), free(s->density);
}

/* A thick ring of 128 rings of segments that falls on a plane, tracers around it. */
static struct scene ring(void) {
    enum { RINGS = 128, EACH = 256 };
    struct scene s = scene("ring against plane: 32,768 segments, 500,000 tracers, Euler, f64 1e-4", 0, RINGS * EACH, RINGS * EACH, 500000, 0);
    for (int64_t k = 0; k < s.segments; k++) {
        const int64_t r = k / EACH, i = k % EACH;
        const double angle = 2 * PI * i / EACH, a = 2.399963 * r, b = 0.03 * sqrt((r + 0.5) / RINGS);
        s.point[3 * k] = (0.3 + b * cos(a)) * cos(angle), s.point[3 * k + 1] = (0.3 + b * cos(a)) * sin(angle), s.point[3 * k + 2] = 0.3 + b * sin(a);
        s.ends[2 * k] = (int32_t)k, s.ends[2 * k + 1] = (int32_t)(r * EACH + (i + 1) % EACH);
        s.circulation[k] = -1.0 / RINGS, s.radius[k] = 0.005;
    }
    for (int64_t k = 0; k < s.tracers; k++)
        for (int i = 0; i < 3; i++) s.other[3 * k + i] = i < 2 ? 1.2 * uniform() - 0.6 : 0.6 * uniform();
    s.sums.tolerance = 1e-4, s.sums.precision = in_double ? WFMM_PRECISION_F64 : WFMM_PRECISION_ARRAYS, s.sums.plane_axis = 3;
    s.motion.integrator = WFMM_INTEGRATOR_EULER;
    s.dt = 1e-4;
    return s;
}

/* Four tip vortices of 5,000 segments over the ground, dust in a layer on it; cores grow so many times along them. */
static struct scene brownout(double growth) {
    enum { EACH = 5000 };
    struct scene s = scene(growth > 1 ? "brownout: 20,000 segments, 1e7 dust, plane, AB2, f64 1e-3" : "the same with thin cores", 0, 4 * EACH, 4 * (EACH + 1), 0, 10000000);
    int64_t n = 0;
    for (int b = 0; b < 4; b++)
        for (int64_t i = 0; i <= EACH; i++) {
            const int64_t k = b * (EACH + 1) + i;
            const double age = (double)i / EACH, angle = 2 * PI * (40 * age + b / 4.0), z = 0.03 + 0.97 * exp(-6 * age), r = 0.78 + 0.22 * exp(-20 * age) + 1.6 * age * (1 - z);
            s.point[3 * k] = r * cos(angle), s.point[3 * k + 1] = r * sin(angle), s.point[3 * k + 2] = z;
            if (i < EACH) s.ends[2 * n] = (int32_t)k, s.ends[2 * n + 1] = (int32_t)(k + 1), s.circulation[n] = 1, s.radius[n++] = 0.004 * pow(growth, age);
        }
    for (int64_t k = 0; k < s.dust; k++) {
        const double r = 2.5 * sqrt(uniform()), angle = 2 * PI * uniform(), u = uniform();
        s.other[3 * k] = r * cos(angle), s.other[3 * k + 1] = r * sin(angle), s.other[3 * k + 2] = 0.3 * u * u;
        s.diameter[k] = 2e-5 + 8e-5 * uniform(), s.density[k] = 2650;
    }
    s.sums.tolerance = 1e-3, s.sums.precision = in_double ? WFMM_PRECISION_F64 : WFMM_PRECISION_ARRAYS, s.sums.plane_axis = 3;
    s.motion.integrator = WFMM_INTEGRATOR_AB2, s.motion.gravity[2] = -9.81, s.motion.fluid_density = 1.2, s.motion.fluid_viscosity = 1.8e-5, s.motion.restitution = 0.3, s.motion.friction = 0.2;
    s.dt = 1e-4;
    return s;
}

/* side³ particles on a lattice, cores as wide as its spacing; vorticity of Taylor and Green. */
static struct scene lattice(const char *name, int side, int integrator) {
    const int64_t n = (int64_t)side * side * side;
    struct scene s = scene(name, n, 0, 0, 0, 0);
    const double h = 1.0 / side;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at[3] = {k % side, k / side % side, k / side / side};
        double x[3];
        for (int i = 0; i < 3; i++) s.particle[3 * k + i] = h * (at[i] + 0.5 + 0.1 * (uniform() - 0.5)), x[i] = 2 * PI * s.particle[3 * k + i];
        s.strength[3 * k] = -cos(x[0]) * sin(x[1]) * sin(x[2]) * h * h * h, s.strength[3 * k + 1] = -sin(x[0]) * cos(x[1]) * sin(x[2]) * h * h * h;
        s.strength[3 * k + 2] = 2 * sin(x[0]) * sin(x[1]) * cos(x[2]) * h * h * h;
        s.core[k] = h;
    }
    s.sums.tolerance = 1e-3, s.sums.precision = WFMM_PRECISION_F32;
    s.motion.integrator = integrator, s.motion.stretching = WFMM_STRETCHING_TRANSPOSE, s.motion.viscosity = 1e-5, s.motion.spreading = WFMM_SPREADING_CORES;
    s.dt = 1e-3;
    return s;
}

/* Milliseconds of an evaluation with new positions; `error`: of its velocity at 1,000 targets against exact sums. */
static double plan_time(wfmm_session *session, const struct scene *s, int times, wfmm_report *report, double *error) {
    wfmm_plan *p = NULL;
    const int64_t others = s->tracers + s->dust, m = s->particles + s->points + others;
    const int gradient = s->motion.stretching != WFMM_STRETCHING_NONE;
    double *target = malloc(24 * m), took[MOST];
    memcpy(target, s->particle, 24 * s->particles);
    memcpy(target + 3 * s->particles, s->point, 24 * s->points);
    memcpy(target + 3 * (s->particles + s->points), s->other, 24 * others);
    double *x = there(s->particle, 24 * s->particles), *a = there(s->strength, 24 * s->particles), *c = there(s->core, 8 * s->particles);
    double *pt = there(s->point, 24 * s->points), *gamma = there(s->circulation, 8 * s->segments), *r = there(s->radius, 8 * s->segments);
    int32_t *ends = there(s->ends, 8 * s->segments);
    double *t = there(target, 24 * m), *u = there(NULL, 24 * m), *g = gradient ? there(NULL, 72 * m) : NULL;
    free(target);
    must(wfmm_plan_create(session, &s->sums, &p), "plan");
    for (int k = -2; k < times; k++) {
        const double start = now();
        must(wfmm_plan_set_particles_f64(p, s->particles, x, a, c, DEVICE), "particles");
        must(wfmm_plan_set_segments_f64(p, s->points, pt, s->segments, 2, ends, gamma, r, DEVICE), "segments");
        must(wfmm_plan_set_targets_f64(p, m, t, DEVICE), "targets");
        must(wfmm_plan_evaluate_f64(p, u, g, DEVICE), "evaluation");
        if (k >= 0) took[k] = 1e3 * (now() - start);
    }
    report->struct_size = sizeof *report;
    must(wfmm_plan_report(p, report), "report");
    must(wfmm_plan_check_f64(p, 1000, 1, error), "check");
    wfmm_plan_destroy(&p);
    void *all[] = {x, a, c, pt, gamma, r, ends, t, u, g};
    for (int k = 0; k < 10; k++) if (all[k]) let_go(all[k]);
    return middle(took, times);
}

static int leaf;
static void timed(wfmm_session *session, struct scene *s, int times) {
    s->sums.leaf_capacity = leaf;
    wfmm_report of_plan, of_flow;
    double took[MOST], worst = 0, error = 0, exact = 0;
    const double plan = plan_time(session, s, times, &of_plan, &exact);
    wfmm_flow *f = NULL;
    must(wfmm_flow_create(session, &s->sums, &s->motion, &f), "flow");
    must(wfmm_flow_set_particles_f64(f, s->particles, s->particle, s->strength, s->core, HOST), "particles");
    must(wfmm_flow_set_filaments_f64(f, s->points, s->point, s->segments, 2, s->ends, s->circulation, s->radius, HOST), "filaments");
    must(wfmm_flow_set_tracers_f64(f, s->tracers, s->other, HOST), "tracers");
    if (s->dust) must(wfmm_flow_set_dust_f64(f, s->dust, s->other, NULL, s->diameter, s->density, HOST), "dust");
    must(wfmm_flow_advance(f, s->dt, 2), "first steps");
    for (int k = 0; k < times; k++) {
        const double start = now();
        must(wfmm_flow_advance(f, s->dt, 1), "step");
        took[k] = 1e3 * (now() - start);
        worst = fmax(worst, took[k]);
        of_flow.struct_size = sizeof of_flow;
        must(wfmm_flow_report(f, &of_flow), "report");
        error = fmax(error, of_flow.estimated_error);
    }
    const double step = middle(took, times);
    printf("%s\n  step %.3f ms (worst %.3f); evaluation of a plan %.3f ms, ratio %.2f; last evaluation of the flow %.3f ms; method %d, precision %d, order %d, retries %d, estimated error %.1e; plan's error %.1e, estimated %.1e; %.1f GiB\n",
           s->name, step, worst, plan, step / plan, 1e3 * of_flow.seconds[WFMM_PASS_TOTAL], of_flow.method, of_flow.precision, of_flow.order, (int)of_flow.retries, error, exact, of_plan.estimated_error,
           (double)of_flow.device_bytes / (1 << 30));
    static const char *const passes[] = {"tree", "lists", "P2M", "M2M", "M2L", "L2L", "L2P", "near"};
    printf(" ");
    for (int p = WFMM_PASS_TREE; p <= WFMM_PASS_P2P; p++) printf(" %s %.3f", passes[p - 1], 1e3 * of_flow.seconds[p]);
    printf(" ms; depth %d, near pairs %.3g\n", of_flow.depth, (double)of_flow.near_pairs);
    fflush(stdout);
    wfmm_flow_destroy(&f);
    drop_scene(s);
}

/* side³ particles around a swirling blob, cores that outgrow their limit in the third step and then in every fourth: steps with and without narrowing. */
static void narrowing(wfmm_session *session, int side, int times) {
    struct scene s = lattice("cores narrowed to the spacing, Euler with stretching, f32 1e-3", side, WFMM_INTEGRATOR_EULER);
    const double h = 1.0 / side, limit2 = 2 * h * h;
    for (int64_t k = 0; k < s.particles; k++) {
        double x[3], r2 = 0;
        for (int i = 0; i < 3; i++) x[i] = s.particle[3 * k + i] - 0.5, r2 += x[i] * x[i];
        const double bell = exp(-r2 / 0.02) * h * h * h;
        s.strength[3 * k] = -x[1] * bell, s.strength[3 * k + 1] = x[0] * bell, s.strength[3 * k + 2] = 0.1 * bell, s.core[k] = sqrt(0.8 * limit2);
    }
    s.motion.core_limit = sqrt(limit2), s.motion.viscosity = 0.07 * limit2 / s.dt;
    wfmm_flow *f = NULL;
    wfmm_diagnostics d;
    must(wfmm_diagnostics_init(&d, sizeof d), "diagnostics");
    must(wfmm_flow_create(session, &s.sums, &s.motion, &f), "flow");
    must(wfmm_flow_set_particles_f64(f, s.particles, s.particle, s.strength, s.core, HOST), "particles");
    double plain[MOST], narrowed[MOST];
    int n_plain = 0, n_narrowed = 0;
    for (int64_t k = 0; n_narrowed < times && n_plain < MOST; k++) {
        const int is_due = k % 4 == 2;
        const double start = now();
        must(wfmm_flow_advance(f, s.dt, 1), "step");
        const double took = 1e3 * (now() - start);
        if (is_due) narrowed[n_narrowed++] = took;
        else if (k > 0) plain[n_plain++] = took;
        printf("  step %lld%s: %.2f ms\n", (long long)k, is_due ? ", cores narrowed" : "", took);
        fflush(stdout);
    }
    wfmm_report report = {.struct_size = sizeof report};
    must(wfmm_flow_diagnostics(f, &d), "diagnostics"), must(wfmm_flow_report(f, &report), "report");
    printf("%lld particles, %s\n  step that narrows cores %.2f ms, others %.2f ms; %lld times, residual %.2e, strength %.2e, impulse %.2e; %.2f GiB\n", (long long)s.particles, s.name, middle(narrowed, n_narrowed),
           middle(plain, n_plain), (long long)d.reinterpolations, d.reinterpolation_residual, d.reinterpolation_strength, d.reinterpolation_impulse, (double)report.device_bytes / (1 << 30));
    fflush(stdout);
    wfmm_flow_destroy(&f);
    drop_scene(&s);
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "all";
    int times = argc > 2 ? atoi(argv[2]) : 9;
    leaf = argc > 3 ? atoi(argv[3]) : 0;
    times = times < 1 ? 1 : times > MOST ? MOST : times;
    const int all = !strcmp(which, "all");
    open_device();
    wfmm_session *gpu = session(WFMM_BACKEND_CUDA);
    for (in_double = 1; in_double >= 0; in_double--) {
        if (all || !strcmp(which, "ring")) { struct scene s = ring(); timed(gpu, &s, times); }
        if (all || !strcmp(which, "brownout")) { struct scene s = brownout(30); timed(gpu, &s, times); }
    }
    if (!strcmp(which, "thin")) { struct scene s = brownout(1); timed(gpu, &s, times); }
    if (all || !strcmp(which, "particles")) { struct scene s = lattice("1e6 particles, overlap 1, RK4 with stretching, f32 1e-3", 100, WFMM_INTEGRATOR_RK4); timed(gpu, &s, times); }
    if (all || !strcmp(which, "turbulence")) { struct scene s = lattice("16.8 million particles, overlap 1, AB2 with stretching, f32 1e-3", 256, WFMM_INTEGRATOR_AB2); timed(gpu, &s, times > 5 ? 5 : times); }
    if (!strcmp(which, "narrow")) narrowing(gpu, leaf ? leaf : 100, times);
    wfmm_session_destroy(&gpu);
    return 0;
}
