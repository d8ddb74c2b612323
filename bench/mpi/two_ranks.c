/* Seconds of one evaluation with new positions, over the processes of MPI or, with one process, on its threads.
   Enters: case (cube, rings, lattice), number of sources, threads of a process, tolerance, repetitions, flags of the plan. Leaves: on
   process 0 one line, "seconds error", the median over the repetitions of the slowest process and the error at 200 targets.
   bench/mpi/two_ranks.sh runs it with one process of two threads and with two processes of one, and makes the table. */
#include "ranks.h"

static double unit(void) { return (double)(bits() >> 11) / 9007199254740992.0; }
static double normal(void) { return sqrt(-2 * log(1 - unit())) * cos(6.283185307179586 * unit()); }
static double *numbers(int64_t n) { return room(n, sizeof(double)); }

/* This process' part of n elements: a run of them. */
static int64_t first(int64_t n) { return n * rank / size; }
static int64_t count(int64_t n) { return n * (rank + 1) / size - n * rank / size; }

/* Particles and as many targets; every process draws all and keeps its own. */
struct cloud {
    int64_t n, m, n_points;
    double *x, *a, *y;
    double *points, *gamma, *core;
    int32_t *ends;
};

static struct cloud particles(int rings, int64_t n) {
    struct cloud c = {.n = count(n), .m = count(n)};
    c.x = numbers(3 * n), c.a = numbers(3 * n), c.y = numbers(3 * n);
    for (int64_t k = 0; k < n; ++k) {
        const double angle = 6.283185307179586 * unit();
        const double at[3] = {0.5 + 0.3 * cos(angle), 0.5 + 0.3 * sin(angle), k % 2 ? 0.6 : 0.4}, along[3] = {-sin(angle), cos(angle), 0};
        for (int i = 0; i < 3; ++i) {
            c.x[3 * k + i] = rings ? at[i] + 0.02 * normal() : unit();
            c.a[3 * k + i] = rings ? along[i] : 2 * unit() - 1;
            c.y[3 * k + i] = unit();
        }
    }
    memmove(c.x, c.x + 3 * first(n), (size_t)(3 * c.n) * sizeof *c.x);
    memmove(c.a, c.a + 3 * first(n), (size_t)(3 * c.n) * sizeof *c.a);
    memmove(c.y, c.y + 3 * first(n), (size_t)(3 * c.m) * sizeof *c.y);
    return c;
}

/* The panels behind a turbine's three blades, about n segments; a process has whole rows, whose nodes are its targets. */
static struct cloud lattice(int64_t n) {
    const int panels = 20;
    const int64_t rows = n / 123 > 0 ? n / 123 : 1, low = first(rows), own = count(rows);
    struct cloud c = {0};
    c.points = numbers(9 * (own + 1) * (panels + 1));
    c.gamma = numbers(3 * (own + 1) * 41), c.core = numbers(3 * (own + 1) * 41);
    c.ends = malloc((size_t)(6 * (own + 1) * 41) * sizeof *c.ends);
    for (int b = 0; b < 3; ++b) {
        const int64_t base = c.n_points;
        for (int64_t j = low; j <= low + own; ++j)
            for (int i = 0; i <= panels; ++i) {
                const double age = (double)j, theta = 6.283185307179586 * (age / 36 + b / 3.0);
                const double radius = 63 * (0.1 + 0.9 * i / panels) * (1 + 0.15 * (1 - exp(-age / 200)));
                double *p = c.points + 3 * c.n_points++;
                p[0] = radius * cos(theta), p[1] = radius * sin(theta) + 90;
                p[2] = 1.5 * age + 3 * sin(5 * theta) * age / (double)rows;
            }
        for (int64_t j = 0; j < own; ++j)
            for (int i = 0; i <= panels; ++i) {
                const int64_t at = base + j * (panels + 1) + i, to[2] = {at + 1, at + panels + 1};
                for (int s = i == panels; s < 2; ++s) {
                    c.ends[2 * c.n] = (int32_t)at, c.ends[2 * c.n + 1] = (int32_t)to[s];
                    c.gamma[c.n] = s ? (i == 0 ? -80 : i == panels ? 80 : 4 * cos(i)) : 5 * sin(0.3 * (double)(low + j) + i);
                    c.core[c.n++] = 0.5 * sqrt(1 + 0.05 * (double)(low + j));
                }
            }
    }
    c.y = c.points, c.m = c.n_points;
    return c;
}

int main(int argc, char **argv) {
    int level;
    wfmm_session_options so;
    wfmm_plan_options o;
    wfmm_session *session = NULL;
    wfmm_plan *plan = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 7) return fprintf(stderr, "two_ranks CASE N THREADS TOLERANCE REPETITIONS FLAGS\n"), 2;
    const int64_t n = atoll(argv[2]);
    const int repetitions = atoi(argv[5]);
    struct cloud c = strcmp(argv[1], "lattice") ? particles(!strcmp(argv[1], "rings"), n) : lattice(n);
    double *u = numbers(3 * c.m), *seconds = numbers(repetitions), error = 0;
    wfmm_session_options_init(&so, sizeof so);
    wfmm_plan_options_init(&o, sizeof o);
    so.backend = WFMM_BACKEND_CPU, so.threads = atoi(argv[3]);
    o.tolerance = atof(argv[4]), o.method = WFMM_METHOD_FMM, o.flags = (uint64_t)atoll(argv[6]);
    if (!c.points) o.particle_regularization = WFMM_REG_NONE;
    must(size > 1 ? wfmm_mpi_session_create(MPI_COMM_WORLD, &so, &session) : wfmm_session_create(&so, &session));
    must(wfmm_plan_create(session, &o, &plan));
    /* The first evaluation measures kernels and, on many processes, the shares of the next. */
    for (int k = -1; k < repetitions; ++k) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        if (c.points) must(wfmm_plan_set_segments_f64(plan, c.n_points, c.points, c.n, 2, c.ends, c.gamma, c.core, 0));
        else must(wfmm_plan_set_particles_f64(plan, c.n, c.x, c.a, NULL, 0));
        must(wfmm_plan_set_targets_f64(plan, c.m, c.y, 0));
        must(wfmm_plan_evaluate_f64(plan, u, NULL, 0));
        const double spent = slowest(start);
        if (k >= 0) seconds[k] = spent;
    }
    qsort(seconds, (size_t)repetitions, sizeof *seconds, rising);
    must(wfmm_plan_check_f64(plan, 200, 1, &error));
    if (rank == 0) printf("%.4f %.1e\n", seconds[repetitions / 2], error);
    must(wfmm_plan_destroy(&plan));
    must(wfmm_session_destroy(&session));
    MPI_Finalize();
    return 0;
}
