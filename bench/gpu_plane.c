/* Sums over a ground plane on a GPU beside the same sums in free space and beside images that the caller makes: milliseconds of the
 * device with new targets in every repetition, and how far the plane's field is from the caller's images'.
 *
 * Enters: how many points CUBE has (1000000), points of a leaf (0: the library's choice). Leaves: a line a case; exit code 1 where the fields are apart by more than two tolerances.
 */
#include "gpu_memory.h"
#include "gpu_workload.h"

enum sum { FREE, PLANE, IMAGES, SUMS };
static const char *const names[] = {"free space", "plane", "caller's images"};
static int failures, leaf;

/* Arrays of a problem in device memory, or the problem's own. */
struct arrays { void *points, *strength, *core, *target, *u; int32_t *ends; };

static int components(const struct problem *p) { return p->kind == SEGMENTS ? 1 : 3; }
static int64_t points(const struct problem *p) { return p->kind == SEGMENTS ? 2 * p->n : p->n; }

/* The sources and their mirror images about z = 0, whose vorticity is that of mirrored vectors turned round. */
static struct problem with_images(const struct problem *p) {
    struct problem all = *p;
    const int64_t n = p->n, m = points(p);
    all.n = 2 * n;
    all.points = malloc(6 * m * 8), all.strength = malloc(2 * components(p) * n * 8), all.core = malloc(2 * n * 8), all.ends = malloc(4 * n * 4);
    for (int64_t i = 0; i < 3 * m; i++) all.points[i] = p->points[i], all.points[3 * m + i] = i % 3 == 2 ? -p->points[i] : p->points[i];
    for (int64_t i = 0; i < components(p) * n; i++) {
        const int along_normal = p->kind == PARTICLES && i % 3 == 2;
        all.strength[i] = p->strength[i], all.strength[components(p) * n + i] = along_normal ? p->strength[i] : -p->strength[i];
    }
    for (int64_t i = 0; i < n; i++) all.core[i] = all.core[n + i] = p->core[i];
    for (int64_t i = 0; i < 2 * n; i++) all.ends[i] = p->ends[i], all.ends[2 * n + i] = p->ends[i] + (int32_t)m;
    return all;
}

static void set(wfmm_plan *plan, const struct problem *p, const struct arrays *a, int memory) {
    if (p->kind == SEGMENTS) must(wfmm_plan_set_segments_f64(plan, points(p), a->points, p->n, 2, a->ends, a->strength, a->core, memory), "segments");
    else must(wfmm_plan_set_particles_f64(plan, p->n, a->points, a->strength, a->core, memory), "particles");
    must(wfmm_plan_set_targets_f64(plan, p->m, a->target, memory), "targets");
}

/* Median milliseconds on the device; the last field. */
static double timed(wfmm_session *s, struct problem *p, enum sum sum, int precision, double tolerance, int memory, void (*anew)(struct problem *), double *u) {
    wfmm_plan_options o;
    wfmm_plan *plan = NULL;
    wfmm_report r = {.struct_size = sizeof r};
    must(wfmm_plan_options_init(&o, sizeof o), "options");
    o.method = WFMM_METHOD_FMM, o.precision = precision, o.tolerance = tolerance, o.plane_axis = sum == PLANE ? 3 : 0, o.leaf_capacity = leaf;
    if (p->kind == SEGMENTS) o.segment_regularization = p->regularization;
    else o.particle_regularization = p->regularization;
    must(wfmm_plan_create(s, &o, &plan), "plan");
    const size_t field = 24 * (size_t)p->m;
    struct arrays a = {p->points, p->strength, p->core, p->target, u, p->ends};
    if (memory == WFMM_MEMORY_DEVICE) {
        const size_t n = (size_t)p->n;
        a = (struct arrays){there(p->points, 24 * (size_t)points(p)), there(p->strength, 8 * (size_t)components(p) * n), there(p->core, 8 * n), there(NULL, field), there(NULL, field),
                            there(p->ends, 8 * n)};
    }
    struct spread device;
    for (int k = -2; k < REPETITIONS; k++) { /* two to warm up */
        state = (uint64_t)(k + 100); /* the same targets for all sums */
        anew(p);
        if (memory == WFMM_MEMORY_DEVICE) renew(a.target, p->target, field);
        set(plan, p, &a, memory);
        must(wfmm_plan_evaluate_f64(plan, a.u, NULL, memory), "evaluate");
        must(wfmm_plan_report(plan, &r), "report");
        if (k >= 0) device.of[k] = 1e3 * on_device(&r);
    }
    if (memory == WFMM_MEMORY_DEVICE) {
        back(u, a.u, field);
        let_go(a.points), let_go(a.strength), let_go(a.core), let_go(a.target), let_go(a.u), let_go(a.ends);
    }
    failures += r.method != WFMM_METHOD_FMM;
    printf("    %-15s precision %d, order %d, depth %d, cells %lld, near pairs %.3g; passes ms:", names[sum], r.precision, r.order, r.depth, (long long)r.cells, (double)r.near_pairs);
    for (int k = WFMM_PASS_TREE; k <= WFMM_PASS_P2P; k++) printf(" %.2f", 1e3 * r.seconds[k]);
    printf("\n");
    must(wfmm_plan_destroy(&plan), "destroy");
    return middle(device.of, REPETITIONS);
}

static void compared(wfmm_session *s, const char *name, struct problem p, void (*anew)(struct problem *), int precision, double tolerance, int memory) {
    struct problem doubled = with_images(&p);
    double *u[SUMS], took[SUMS];
    for (enum sum k = FREE; k < SUMS; k++) {
        u[k] = malloc(24 * p.m);
        took[k] = timed(s, k == IMAGES ? &doubled : &p, k, precision, tolerance, memory, anew, u[k]);
    }
    const double apart = distance(u[PLANE], u[IMAGES], 3 * p.m);
    printf("%-8s %s %.0e, %s arrays:", name, precision == WFMM_PRECISION_F32 ? "f32" : "f64", tolerance, memory == WFMM_MEMORY_DEVICE ? "device" : "host");
    for (enum sum k = FREE; k < SUMS; k++) printf(" %s %.2f ms (%.2f)%s", names[k], took[k], took[k] / took[FREE], k + 1 < SUMS ? "," : "");
    printf("; plane and images apart by %.1e\n", apart);
    fflush(stdout);
    failures += !(apart <= 2 * tolerance);
    for (enum sum k = FREE; k < SUMS; k++) free(u[k]);
    free(doubled.points), free(doubled.strength), free(doubled.core), free(doubled.ends);
}

int main(int argc, char **argv) {
    const int64_t n = argc > 1 ? (int64_t)atof(argv[1]) : 1000000;
    leaf = argc > 2 ? atoi(argv[2]) : 0;
    open_device();
    wfmm_session *s = session(WFMM_BACKEND_CUDA);
    struct problem cloud = make(PARTICLES, WFMM_REG_NONE, 0, n, n, 0), wake = make(SEGMENTS, WFMM_REG_VATISTAS, 0, 20000, 2 * n, 0.1);
    dust(&wake);
    static const int memories[] = {WFMM_MEMORY_DEVICE, WFMM_MEMORY_HOST}, precisions[] = {WFMM_PRECISION_F32, WFMM_PRECISION_F64};
    for (int k = 0; k < 2; k++)
        for (int f64 = 0; f64 < 2; f64++) {
            compared(s, "CUBE", cloud, targets_in_cube, precisions[f64], f64 ? 1e-6 : 1e-4, memories[k]);
            compared(s, "DUST", wake, dust_targets, precisions[f64], 1e-4, memories[k]);
        }
    drop(&cloud), drop(&wake);
    must(wfmm_session_destroy(&s), "destroy");
    printf("%d failures\n", failures);
    return failures != 0;
}
