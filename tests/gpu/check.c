/* The check of every evaluation by FMM on a GPU: clouds whose far field is all that there is miss what the recipe expects and must
 * come out right, added to the caller's field once, from arrays with NaN without end. Needs a GPU; exit code 1 when a case failed. */
#include <math.h>
#include <string.h>
#include "gpu.h"

enum { N = 20000 };

struct field { int64_t m; int gradient, charges; double *u, *g; };

static struct field field(int64_t m, int charges, int gradient) {
    struct field f = {m, gradient, charges, calloc(3 * m, 8), gradient ? calloc(9 * m, 8) : NULL};
    return f;
}
static void drop(struct field *f) { free(f->u); free(f->g); }

static double distance(const double *a, const double *b, int64_t n) {
    double d = 0, s = 0;
    for (int64_t k = 0; k < n; k++) { d += (a[k] - b[k]) * (a[k] - b[k]); s += b[k] * b[k]; }
    return sqrt(d / s);
}

static wfmm_plan *plan(wfmm_session *s, int method, int precision, double tolerance, uint64_t flags) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = method; o.precision = precision; o.tolerance = tolerance; o.flags = flags; o.particle_regularization = WFMM_REG_NONE;
    if (wfmm_plan_create(s, &o, &p)) exit(1);
    return p;
}

static wfmm_status evaluate(wfmm_plan *p, const struct field *f) {
    return f->charges ? wfmm_plan_evaluate_potential_f64(p, f->u, f->g, WFMM_MEMORY_HOST) : wfmm_plan_evaluate_f64(p, f->u, f->g, WFMM_MEMORY_HOST);
}

struct clouds { double *x, *a, *points, *gamma, *core, *y; int32_t *ends; };
enum sources { PARTICLES, SEGMENTS, BOTH, CHARGES };

static void hand_over(wfmm_plan *p, const struct clouds *c, enum sources which) {
    if (which == PARTICLES || which == BOTH) wfmm_plan_set_particles_f64(p, N, c->x, c->a, NULL, WFMM_MEMORY_HOST);
    if (which == SEGMENTS || which == BOTH) wfmm_plan_set_segments_f64(p, 2 * N, c->points, N, 2, c->ends, c->gamma, c->core, WFMM_MEMORY_HOST);
    if (which == CHARGES) wfmm_plan_set_charges_f64(p, N, c->x, c->gamma, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(p, N, c->y, WFMM_MEMORY_HOST);
}

/* Evaluations that were repeated, and those that ended as direct sums. */
static int repeated, direct;
static void count(wfmm_plan *p, const char *name, double tolerance, double error, double slope) {
    char recipe[4000];
    wfmm_report r = {.struct_size = sizeof r};
    wfmm_plan_report(p, &r);
    wfmm_plan_recipe(p, recipe, sizeof recipe, NULL);
    const int again = strstr(recipe, "after tightening") != NULL;
    repeated += again; direct += r.method == WFMM_METHOD_DIRECT;
    char line[200];
    snprintf(line, sizeof line, "%s at %.0e: error %.1e, gradient %.1e, sample %.1e, %s, order %d%s", name, tolerance, error, slope, r.estimated_error,
             r.method == WFMM_METHOD_DIRECT ? "direct" : "FMM", r.order, again ? ", repeated" : "");
    expect(error <= tolerance && slope <= 30 * tolerance, line);
}

static void apart(wfmm_session *s, const struct clouds *c, const char *where) {
    static const char *const names[] = {"particles", "segments", "both", "charges"};
    for (int which = PARTICLES; which <= CHARGES; which++)
        for (int gradient = 0; gradient < 2; gradient++) {
            struct field exact = field(N, which == CHARGES, gradient), got = field(N, which == CHARGES, gradient), again = field(N, which == CHARGES, gradient);
            wfmm_plan *d = plan(s, WFMM_METHOD_DIRECT, WFMM_PRECISION_F64, 1e-4, 0);
            hand_over(d, c, which); evaluate(d, &exact); wfmm_plan_destroy(&d);
            const int main = which == CHARGES ? 1 : 3;
            for (int k = 0; k < 5; k++) {
                const int f64 = k > 1;
                const double tolerance = pow(10, -(k > 1 ? 2 * k - 2 : k + 3));
                wfmm_plan *p = plan(s, WFMM_METHOD_FMM, f64 ? WFMM_PRECISION_F64 : WFMM_PRECISION_F32, tolerance, 0);
                hand_over(p, c, which);
                char name[100];
                snprintf(name, sizeof name, "%s %s %s%s", where, names[which], f64 ? "f64" : "f32", gradient ? " with gradient" : "");
                if (evaluate(p, &got)) { expect(0, name); continue; }
                count(p, name, tolerance, distance(got.u, exact.u, main * N), gradient ? distance(got.g, exact.g, 3 * main * N) : 0);
                hand_over(p, c, which);
                evaluate(p, &again);
                if (k == 2) expect(distance(again.u, exact.u, main * N) <= tolerance, "the next field of the same plan");
                wfmm_plan_destroy(&p);
            }
            drop(&exact); drop(&got); drop(&again);
        }
}

/* A field that is computed again is added once. */
static void added(wfmm_session *s, const struct clouds *c) {
    const size_t bytes = 3 * N * sizeof(double);
    struct field once = field(N, 0, 0);
    wfmm_plan *p = plan(s, WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-4, 0);
    hand_over(p, c, BOTH);
    evaluate(p, &once);
    wfmm_plan *sum = plan(s, WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-4, WFMM_FLAG_ACCUMULATE);
    hand_over(sum, c, BOTH);
    double *v = malloc(bytes), worst = 0, most = 0;
    for (int i = 0; i < 3 * N; i++) v[i] = 1;
    const uint64_t dv = on_device(v, bytes);
    const wfmm_status status = wfmm_plan_evaluate_f64(sum, (double *)dv, NULL, WFMM_MEMORY_DEVICE);
    cu_out(v, dv, bytes);
    for (int i = 0; i < 3 * N; i++) { worst = fmax(worst, fabs(v[i] - 1 - once.u[i])); most = fmax(most, fabs(once.u[i])); }
    expect(status == 0 && worst <= 1e-14 * (1 + most), "a field on the device is added once");
    wfmm_plan_destroy(&p); wfmm_plan_destroy(&sum);
    drop(&once); free(v); cu_free(dv);
}

static void no_numbers(wfmm_session *s, const struct clouds *c) {
    const size_t bytes = 3 * N * sizeof(double);
    struct field good = field(N, 0, 0);
    double *v = malloc(bytes), *y = malloc(bytes), *a = malloc(bytes);
    memcpy(y, c->y, bytes); memcpy(a, c->a, bytes);
    y[0] = NAN; a[300] = NAN;
    const uint64_t dx = on_device(c->x, bytes), da = on_device(c->a, bytes), dnan = on_device(a, bytes), dy = on_device(y, bytes), dv = on_device(NULL, bytes);
    wfmm_plan *p = plan(s, WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-4, 0);
    hand_over(p, c, PARTICLES);
    evaluate(p, &good);
    wfmm_plan_set_particles_f64(p, N, (double *)dx, (double *)da, NULL, WFMM_MEMORY_DEVICE);
    wfmm_plan_set_targets_f64(p, N, (double *)dy, WFMM_MEMORY_DEVICE);
    wfmm_status status = wfmm_plan_evaluate_f64(p, (double *)dv, NULL, WFMM_MEMORY_DEVICE);
    cu_out(v, dv, bytes);
    expect(status == 0 && distance(v + 3, good.u + 3, 3 * (N - 1)) < 2e-4, "a target that is no number harms no other");
    wfmm_plan_set_particles_f64(p, N, (double *)dx, (double *)dnan, NULL, WFMM_MEMORY_DEVICE);
    status = wfmm_plan_evaluate_f64(p, (double *)dv, NULL, WFMM_MEMORY_DEVICE);
    cu_out(v, dv, bytes);
    wfmm_report r = {.struct_size = sizeof r};
    wfmm_plan_report(p, &r);
    printf("with a strength that is no number: status %d, method %d, sample %.1e\n", status, r.method, r.estimated_error);
    expect(status == 0 && r.method == WFMM_METHOD_DIRECT && r.retries == 1 && isnan(v[0]), "a strength that is no number costs one direct sum");
    wfmm_plan_set_particles_f64(p, N, (double *)dx, (double *)da, NULL, WFMM_MEMORY_DEVICE);
    wfmm_plan_set_targets_f64(p, N, c->y, WFMM_MEMORY_HOST);
    status = wfmm_plan_evaluate_f64(p, v, NULL, WFMM_MEMORY_HOST);
    expect(status == 0 && distance(v, good.u, 3 * N) < 2e-4, "and the next field is right");
    wfmm_plan_destroy(&p);
    drop(&good); free(v); free(y); free(a);
    cu_free(dx); cu_free(da); cu_free(dnan); cu_free(dy); cu_free(dv);
}

static struct clouds clouds(double low, double high) {
    struct clouds c = {random_array(3 * N, 0, 0.2), random_array(3 * N, -1, 1), malloc(6 * N * 8), random_array(N, -1, 1), random_array(N, 0.0005, 0.001), random_array(3 * N, low, high), malloc(2 * N * 4)};
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            c.points[6 * i + k] = c.x[3 * i + k];
            c.points[6 * i + 3 + k] = c.x[3 * i + k] + 0.004 * (rand() / (double)RAND_MAX - 0.5);
        }
    for (int i = 0; i < 2 * N; i++) c.ends[i] = i;
    return c;
}

int main(void) {
    if (!open_driver()) { printf("no driver\n"); return 1; }
    wfmm_session *s = session(WFMM_BACKEND_CUDA, -1);
    handle_t context;
    cu_retain(&context, 0);
    cu_set(context);
    const struct clouds mixed = clouds(0, 0.2), beside = clouds(0.3, 0.5);
    apart(s, &mixed, "among them");
    const int usual = repeated;
    apart(s, &beside, "beside");
    printf("%d repeated among the sources, %d beside them, %d by direct sums\n", usual, repeated - usual, direct);
    expect(repeated > usual, "clouds beside their sources need more than the recipe expects");
    added(s, &beside);
    no_numbers(s, &mixed);
    wfmm_session_destroy(&s);
    return verdict();
}
