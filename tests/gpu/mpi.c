/* Ranks of MPI on GPUs, which they share where there are fewer: every field at all targets against the direct sum of one process, for
 * every kind of source, above a plane, in periodic domains, by the treecode and by pseudo-particles, dealt out evenly, in slabs, interleaved and all on the last rank, and an error and device arrays on one rank.
 * Needs a GPU; exit code 1 when a case failed. Built and run by tests/gpu/mpi.sh. */
#include <math.h>
#include <mpi.h>
#include <string.h>
#include "gpu.h"
#include "wakefmm_mpi.h"

#ifndef COUNT
#define COUNT 20000
#endif
enum { N = COUNT, M = 4 * COUNT / 5 };
enum sources { PARTICLES, SEGMENTS, BOTH, CHARGES, KINDS };
enum split { EVEN, SLABS, INTERLEAVED, LAST, SPLITS };
enum how { OPEN, PLANE, TUBE, SLAB, CUBE, TREECODE, PSEUDO };
static const char *const hows[] = {"", " above a plane", " in a tube", " in a slab", " in a cube", " by the treecode", " by pseudo-particles"};
static const char *const kinds[] = {"particles", "segments", "both", "charges"}, *const splits[] = {"even", "slabs", "interleaved", "all on the last"};
static int rank, size;

static int owner(enum split split, int64_t k, int64_t n, const double *x) {
    if (split == SLABS) { const int r = (int)(x[0] * size); return r < 0 ? 0 : r < size ? r : size - 1; }
    return split == EVEN ? (int)(k * size / n) : split == INTERLEAVED ? (int)(k % size) : size - 1;
}

/* The whole, and this rank's part. */
struct clouds { int64_t n, m; double *x, *a, *points, *gamma, *core, *y; int32_t *ends; int64_t *at; };
static struct clouds whole(void) {
    struct clouds c = {N, M, random_array(3 * N, 0, 1), random_array(3 * N, -1, 1), NULL, random_array(N, -1, 1), random_array(N, 0.001, 0.01), random_array(3 * M, 0, 1), malloc(2 * N * sizeof(int32_t)), NULL};
    c.points = malloc(6 * N * sizeof(double));
    for (int64_t k = 0; k < N; k++)
        for (int i = 0; i < 3; i++) { c.points[6 * k + i] = c.x[3 * k + i]; c.points[6 * k + 3 + i] = c.x[3 * k + i] + 0.02 * c.a[3 * k + i]; }
    for (int32_t k = 0; k < 2 * N; k++) c.ends[k] = k;
    return c;
}
static struct clouds part(const struct clouds *c, enum split split) {
    struct clouds p = {0, 0, malloc(3 * N * 8), malloc(3 * N * 8), malloc(6 * N * 8), malloc(N * 8), malloc(N * 8), malloc(3 * M * 8), c->ends, malloc(M * 8)};
    for (int64_t k = 0; k < N; k++) {
        if (owner(split, k, N, c->x + 3 * k) != rank) continue;
        memcpy(p.x + 3 * p.n, c->x + 3 * k, 24), memcpy(p.a + 3 * p.n, c->a + 3 * k, 24), memcpy(p.points + 6 * p.n, c->points + 6 * k, 48);
        p.gamma[p.n] = c->gamma[k], p.core[p.n++] = c->core[k];
    }
    for (int64_t k = 0; k < M; k++)
        if (owner(split, k, M, c->y + 3 * k) == rank) memcpy(p.y + 3 * p.m, c->y + 3 * k, 24), p.at[p.m++] = k;
    return p;
}
static void drop(struct clouds *p) { free(p->x), free(p->a), free(p->points), free(p->gamma), free(p->core), free(p->y), free(p->at); }

static wfmm_plan *plan(wfmm_session *s, enum sources kind, const struct clouds *c, int method, int precision, double tolerance, enum how how) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = method, o.precision = precision, o.tolerance = tolerance;
    if (how == PLANE) o.plane_axis = 3, o.plane_position = -0.05;
    for (int k = 0; k < 3; k++) o.period[k] = how == CUBE || (how == SLAB && k < 2) || (how == TUBE && k == 2) ? 1 : 0;
    if (how >= TUBE) o.segment_regularization = WFMM_REG_LAMB_OSEEN; /* cores that end soon: few images have any */
    if (how == TREECODE && method == WFMM_METHOD_FMM) o.method = WFMM_METHOD_TREECODE;
    if (how == PSEUDO && method == WFMM_METHOD_FMM) o.expansion = WFMM_EXPANSION_PSEUDO_PARTICLES;
    if (wfmm_plan_create(s, &o, &p)) return NULL;
    wfmm_status bad = 0;
    if (kind == PARTICLES || kind == BOTH) bad |= wfmm_plan_set_particles_f64(p, c->n, c->x, c->a, c->core, WFMM_MEMORY_HOST);
    if (kind == SEGMENTS || kind == BOTH) bad |= wfmm_plan_set_segments_f64(p, 2 * c->n, c->points, c->n, 2, c->ends, c->gamma, c->core, WFMM_MEMORY_HOST);
    if (kind == CHARGES) bad |= wfmm_plan_set_charges_f64(p, c->n, c->x, c->gamma, WFMM_MEMORY_HOST);
    bad |= wfmm_plan_set_targets_f64(p, c->m, c->y, WFMM_MEMORY_HOST);
    if (bad) expect(0, "a plan");
    return p;
}
static wfmm_status evaluate(wfmm_plan *p, enum sources kind, double *u, double *g) {
    return kind == CHARGES ? wfmm_plan_evaluate_potential_f64(p, u, g, WFMM_MEMORY_HOST) : wfmm_plan_evaluate_f64(p, u, g, WFMM_MEMORY_HOST);
}

/* Over the targets of all ranks. */
static double error(const double *got, const double *want, const struct clouds *p, int width) {
    double sums[2] = {0, 0};
    for (int64_t k = 0; k < p->m; k++)
        for (int i = 0; i < width; i++) {
            const double w = want[p->at[k] * width + i], d = got[k * width + i] - w;
            sums[0] += d * d, sums[1] += w * w;
        }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sqrt(sums[0] / sums[1]);
}
static void say(int good, const char *what) {
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) expect(good, what);
    else good ? passed++ : failed++;
}

static void fields(wfmm_session *all, wfmm_session *alone, const struct clouds *c, enum sources kind, enum how how) {
    const int width = kind == CHARGES ? 1 : 3;
    double *exact = malloc(3 * M * 8), *slopes = malloc(9 * M * 8), *u = malloc(3 * M * 8), *g = malloc(9 * M * 8);
    wfmm_plan *d = plan(alone, kind, c, WFMM_METHOD_DIRECT, WFMM_PRECISION_F64, 1e-10, how);
    if (evaluate(d, kind, exact, slopes)) expect(0, "the direct sum");
    wfmm_plan_destroy(&d);
    for (int split = EVEN; split < SPLITS; split++) {
        struct clouds mine = part(c, split);
        for (int k = 0; k < 4; k++) {
            const int method = k == 3 ? WFMM_METHOD_DIRECT : WFMM_METHOD_FMM, precision = k == 0 ? WFMM_PRECISION_F32 : WFMM_PRECISION_F64;
            const int is_periodic = how >= TUBE && how <= CUBE;
            const double tolerance = (double[]){1e-3, 1e-4, 1e-6, is_periodic ? 1e-8 : 1e-11}[k], least = tolerance < 1e-10 ? 1e-10 : tolerance;
            if (how == PSEUDO && k == 2) continue; /* beyond their reach */
            char line[300];
            double check = 0;
            wfmm_report r = {.struct_size = sizeof r};
            wfmm_plan *p = plan(all, kind, &mine, method, precision, least, how);
            memset(u, 255, 3 * M * 8), memset(g, 255, 9 * M * 8);
            wfmm_status status = evaluate(p, kind, u, mine.m ? g : NULL);
            status = status ? status : wfmm_plan_check_f64(p, 500, 7, &check);
            wfmm_plan_report(p, &r);
            const double e = error(u, exact, &mine, width), s = error(g, slopes, &mine, 3 * width);
            snprintf(line, sizeof line, "%d ranks, %s%s, %s, %s in %s: error %.1e, gradient %.1e, sample %.1e, check %.1e", size, kinds[kind], hows[how],
                     splits[split], r.method == WFMM_METHOD_DIRECT ? "direct" : r.method == WFMM_METHOD_TREECODE ? "treecode" : "FMM", r.precision == WFMM_PRECISION_F64 ? "f64" : "f32", e, s, r.estimated_error, check);
            say(!status && e <= tolerance && s <= 30 * tolerance && check <= 2 * tolerance && r.backend == WFMM_BACKEND_CUDA, line);
            wfmm_plan_destroy(&p);
        }
        drop(&mine);
    }
    free(exact), free(slopes), free(u), free(g);
}

/* An error on one rank, then a field; outputs and targets in device memory on one rank. */
static void odds(wfmm_session *all, wfmm_session *alone, const struct clouds *c) {
    double *exact = malloc(3 * M * 8), *u = malloc(3 * M * 8);
    struct clouds mine = part(c, SLABS);
    wfmm_plan *d = plan(alone, PARTICLES, c, WFMM_METHOD_DIRECT, WFMM_PRECISION_F64, 1e-6, OPEN);
    evaluate(d, PARTICLES, exact, NULL);
    wfmm_plan_destroy(&d);
    wfmm_plan *p = plan(all, PARTICLES, &mine, WFMM_METHOD_FMM, WFMM_PRECISION_F64, 1e-4, OPEN);
    const double kept = mine.y[0];
    if (rank == size - 1) mine.y[0] = NAN;
    say(wfmm_plan_set_targets_f64(p, mine.m, mine.y, WFMM_MEMORY_HOST) == WFMM_ERR_NOT_FINITE, "a number that is none on one rank");
    mine.y[0] = kept;
    say(!evaluate(p, PARTICLES, u, NULL) && error(u, exact, &mine, 3) <= 1e-4, "the field after it");
    if (!cu_set || !cu_in || !cu_out) { /* an emulated driver */
        wfmm_plan_destroy(&p), drop(&mine), free(exact), free(u);
        return;
    }
    handle_t context;
    int devices = 1;
    cu_count(&devices); /* the tests run on one node: its ranks take the devices in turn */
    cu_retain(&context, rank % devices), cu_set(context);
    wfmm_status status;
    if (rank == 0) {
        const uint64_t y = on_device(mine.y, 3 * mine.m * 8), to = on_device(NULL, 3 * mine.m * 8);
        status = wfmm_plan_set_targets_f64(p, mine.m, (double *)y, WFMM_MEMORY_DEVICE);
        status = status ? status : wfmm_plan_evaluate_f64(p, (double *)to, NULL, WFMM_MEMORY_DEVICE);
        cu_out(u, to, 3 * mine.m * 8), cu_free(y), cu_free(to);
    } else {
        status = wfmm_plan_set_targets_f64(p, mine.m, mine.y, WFMM_MEMORY_HOST);
        status = status ? status : evaluate(p, PARTICLES, u, NULL);
    }
    say(!status && error(u, exact, &mine, 3) <= 1e-4, "targets and output of one rank in device memory");
    wfmm_plan_destroy(&p), drop(&mine), free(exact), free(u);
}

int main(int argc, char **argv) {
    int level;
    wfmm_session_options o;
    wfmm_session *all = NULL, *alone;
    char text[500] = "";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!open_driver()) return printf("no driver\n"), 1;
    wfmm_session_options_init(&o, sizeof o);
    o.backend = WFMM_BACKEND_CUDA;
    if (wfmm_mpi_session_create(MPI_COMM_WORLD, &o, &all)) { wfmm_last_error(text, sizeof text, NULL); printf("%s\n", text); return 1; }
    wfmm_session_describe(all, text, sizeof text, NULL);
    printf("%s\n", text);
    alone = session(WFMM_BACKEND_CUDA, 0);
    srand(1); /* the same numbers on all ranks */
    struct clouds c = whole();
    for (int kind = PARTICLES; kind < KINDS; kind++) fields(all, alone, &c, kind, OPEN);
    fields(all, alone, &c, BOTH, PLANE);
    for (int how = TUBE; how <= CUBE; how++) fields(all, alone, &c, BOTH, how);
    fields(all, alone, &c, CHARGES, CUBE), fields(all, alone, &c, BOTH, TREECODE), fields(all, alone, &c, PARTICLES, PSEUDO);
    odds(all, alone, &c);
    wfmm_session_destroy(&all), wfmm_session_destroy(&alone);
    const int bad = rank == 0 ? verdict() : failed != 0;
    MPI_Finalize();
    return bad;
}
