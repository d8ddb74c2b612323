/* Pictures of 1e7 elements in device memory, 1920 x 1080: milliseconds of wfmm_flow_picture by the host's clock, the image in host
 * memory at the end. Bar: 10 ms.
 *
 * Enters: how many pictures of each kind, how many elements. Leaves: a line a case, median and worst.
 */
#include "gpu_workload.h"

enum { HOST = WFMM_MEMORY_HOST, MOST = 64, WIDTH = 1920, HEIGHT = 1080 };
static uint8_t rgba[4 * WIDTH * HEIGHT];

static wfmm_flow *flow(wfmm_session *session, int plane) {
    wfmm_plan_options sums;
    wfmm_flow_options motion;
    wfmm_flow *f = NULL;
    must(wfmm_plan_options_init(&sums, sizeof sums), "options");
    must(wfmm_flow_options_init(&motion, sizeof motion), "options");
    sums.plane_axis = plane, motion.integrator = WFMM_INTEGRATOR_EULER, motion.fluid_viscosity = 1.8e-5, motion.fluid_density = 1.2;
    must(wfmm_flow_create(session, &sums, &motion, &f), "flow");
    return f;
}

static void timed(wfmm_flow *f, const char *name, wfmm_camera c, int times) {
    static const char *const colors[] = {"kind", "speed", "age", "density"};
    double took[MOST], worst = 0;
    int64_t drawn = 0;
    for (int k = -2; k < times; k++) {
        const double start = now();
        must(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL), "picture");
        if (k >= 0) took[k] = 1e3 * (now() - start), worst = fmax(worst, took[k]);
    }
    for (int64_t k = 0; k < WIDTH * HEIGHT; k++) drawn += memcmp(rgba + 4 * k, rgba, 4) != 0;
    printf("%-44s %-8s %8.3f ms (worst %.3f); %.0f %% of the pixels drawn\n", name, colors[c.color], middle(took, times), worst, 100.0 * drawn / (WIDTH * HEIGHT));
    fflush(stdout);
}

static void by_colors(wfmm_flow *f, const char *name, wfmm_camera c, int times) {
    static const int colors[] = {WFMM_COLOR_KIND, WFMM_COLOR_AGE, WFMM_COLOR_DENSITY};
    for (int k = 0; k < 3; k++) c.color = colors[k], timed(f, name, c, times);
}

static void tracers(wfmm_session *s, int64_t n, int times) {
    double *x = malloc(24 * n);
    wfmm_camera c;
    wfmm_flow *f = flow(s, 0);
    must(wfmm_camera_init(&c, sizeof c), "camera");
    for (int64_t k = 0; k < 3 * n; k++) x[k] = uniform();
    must(wfmm_flow_set_tracers_f64(f, n, x, HOST), "tracers");
    by_colors(f, "tracers in a cube", c, times);
    c.point_size = 4;
    by_colors(f, "the same, 4 pixels wide", c, times);
    c.point_size = 1.5, c.fit = 0, c.eye[0] = 0.5, c.eye[1] = 0.2, c.eye[2] = 0.5, c.target[0] = 0.5, c.target[1] = 0.8, c.target[2] = 0.5;
    by_colors(f, "the same, the camera among them", c, times);
    must(wfmm_camera_init(&c, sizeof c), "camera");
    c.kinds = 0;
    timed(f, "nothing drawn", c, times);
    for (int64_t k = 0; k < 3 * n; k++) x[k] = 0.5;
    must(wfmm_flow_set_tracers_f64(f, n, x, HOST), "tracers");
    must(wfmm_camera_init(&c, sizeof c), "camera");
    by_colors(f, "all at one point", c, times);
    for (int64_t k = 0; k < 3 * n; k++) x[k] = (int)(2 * uniform()) * 0.02;
    x[0] = -1, x[3] = 1;
    must(wfmm_flow_set_tracers_f64(f, n, x, HOST), "tracers");
    by_colors(f, "all at eight points", c, times);
    wfmm_flow_destroy(&f);
    free(x);
}

/* Four tip vortices over the ground and dust in a layer on it, as in gpu_flow.c. */
static void brownout(wfmm_session *s, int64_t n, int times) {
    enum { EACH = 5000, BLADES = 4, SEGMENTS_OF_ALL = BLADES * EACH, POINTS = BLADES * (EACH + 1) };
    double *x = malloc(24 * n), *v = malloc(24 * n), *d = malloc(8 * n), *density = malloc(8 * n), *point = malloc(24 * POINTS), *gamma = malloc(8 * SEGMENTS_OF_ALL), *core = malloc(8 * SEGMENTS_OF_ALL);
    int32_t *ends = malloc(8 * SEGMENTS_OF_ALL);
    int64_t m = 0;
    wfmm_camera c;
    wfmm_flow *f = flow(s, 3);
    for (int b = 0; b < BLADES; b++)
        for (int64_t i = 0; i <= EACH; i++) {
            const int64_t k = b * (EACH + 1) + i;
            const double age = (double)i / EACH, angle = 2 * PI * (40 * age + b / 4.0), z = 0.03 + 0.97 * exp(-6 * age), r = 0.78 + 0.22 * exp(-20 * age) + 1.6 * age * (1 - z);
            point[3 * k] = r * cos(angle), point[3 * k + 1] = r * sin(angle), point[3 * k + 2] = z;
            if (i < EACH) ends[2 * m] = (int32_t)k, ends[2 * m + 1] = (int32_t)(k + 1), gamma[m] = 1, core[m++] = 0.01;
        }
    for (int64_t k = 0; k < n; k++) {
        const double r = 2.5 * sqrt(uniform()), angle = 2 * PI * uniform(), u = uniform();
        x[3 * k] = r * cos(angle), x[3 * k + 1] = r * sin(angle), x[3 * k + 2] = 0.3 * u * u, d[k] = 5e-5, density[k] = 2650;
        for (int i = 0; i < 3; i++) v[3 * k + i] = uniform();
    }
    must(wfmm_flow_set_filaments_f64(f, POINTS, point, m, 2, ends, gamma, core, HOST), "filaments");
    must(wfmm_flow_set_dust_f64(f, n, x, v, d, density, HOST), "dust");
    must(wfmm_camera_init(&c, sizeof c), "camera");
    c.grid = 0.5;
    by_colors(f, "dust, 20,000 segments, ground", c, times);
    c.kinds = 1 << WFMM_KIND_DUST, c.color = WFMM_COLOR_SPEED;
    timed(f, "the same, dust alone", c, times);
    wfmm_flow_destroy(&f);
    free(x), free(v), free(d), free(density), free(point), free(gamma), free(core), free(ends);
}

/* Vortex particles on a lattice, cores as wide as its spacing: each covers a hundred pixels and more. */
static void particles(wfmm_session *s, int64_t most, int times) {
    const int64_t side = (int64_t)(cbrt((double)most) + 1e-6), n = side * side * side;
    double *x = malloc(24 * n), *a = malloc(24 * n), *core = malloc(8 * n);
    wfmm_camera c;
    wfmm_flow *f = flow(s, 0);
    for (int64_t k = 0; k < n; k++) {
        const int64_t at[3] = {k % side, k / side % side, k / side / side};
        for (int i = 0; i < 3; i++) x[3 * k + i] = (at[i] + 0.5) / side, a[3 * k + i] = 1e-9;
        core[k] = 1.0 / side;
    }
    must(wfmm_flow_set_particles_f64(f, n, x, a, core, HOST), "particles");
    must(wfmm_camera_init(&c, sizeof c), "camera");
    by_colors(f, "vortex particles, overlap 1", c, times);
    wfmm_flow_destroy(&f);
    free(x), free(a), free(core);
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 15;
    const int64_t n = argc > 2 ? atoll(argv[2]) : 10000000;
    times = times < 1 ? 1 : times > MOST ? MOST : times;
    wfmm_session *gpu = session(WFMM_BACKEND_CUDA);
    printf("%lld elements, %d x %d\n", (long long)n, WIDTH, HEIGHT);
    tracers(gpu, n, times);
    brownout(gpu, n, times);
    particles(gpu, n, times);
    wfmm_session_destroy(&gpu);
    return 0;
}
