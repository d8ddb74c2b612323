/* Seconds of a step (new positions, then an evaluation) and of an evaluation alone over the ranks of MPI, each with a GPU of its node.
 * Enters: case (cube: particles without cores in single precision; box: the same in a periodic cube; vpm: with cores and gradients at
 * the particles), number of sources, tolerance, repetitions. Leaves: on rank 0 one line, "step evaluation error", medians over the
 * repetitions of the slowest rank and the error at sampled targets of all ranks. Every rank has a slab. bench/gpu_mpi.sh runs it with one
 * rank and with more. */
#include "mpi/ranks.h"

static float uniform(void) { return (float)(bits() >> 40) * 0x1p-24f; }
static float *numbers(int64_t n) { return room(n, sizeof(float)); }
/* Points of this rank's slab of the unit cube. */
static float *slab_points(int64_t n) {
    float *x = numbers(3 * n);
    for (int64_t k = 0; k < n; k++) {
        for (int i = 0; i < 3; i++) x[3 * k + i] = uniform();
        x[3 * k] = ((float)rank + x[3 * k]) / (float)size;
    }
    return x;
}

int main(int argc, char **argv) {
    int level;
    wfmm_session_options so;
    wfmm_plan_options o;
    wfmm_session *session = NULL;
    wfmm_plan *plan = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 5) return fprintf(stderr, "gpu_mpi cube|box|vpm N TOLERANCE REPETITIONS\n"), 2;
    const int vpm = !strcmp(argv[1], "vpm"), repetitions = atoi(argv[4]);
    const int64_t all = atoll(argv[2]), n = all * (rank + 1) / size - all * rank / size;
    state = (uint64_t)rank << 40;
    float *x = slab_points(n), *a = numbers(3 * n), *core = numbers(n), *y = vpm ? x : slab_points(n), *u = numbers(3 * n), *g = vpm ? numbers(9 * n) : NULL;
    double *step = malloc(2 * sizeof(double) * (size_t)repetitions), *alone = step + repetitions, error = 0;
    for (int64_t k = 0; k < 3 * n; k++) a[k] = 2 * uniform() - 1;
    for (int64_t k = 0; k < n; k++) core[k] = (float)(2 / cbrt((double)all));
    wfmm_session_options_init(&so, sizeof so);
    wfmm_plan_options_init(&o, sizeof o);
    so.backend = WFMM_BACKEND_CUDA;
    o.tolerance = atof(argv[3]), o.method = WFMM_METHOD_FMM, o.precision = WFMM_PRECISION_F32;
    for (int k = 0; k < 3; k++) o.period[k] = strcmp(argv[1], "box") ? 0 : 1;
    if (!vpm) o.particle_regularization = WFMM_REG_NONE;
    must(size > 1 ? wfmm_mpi_session_create(MPI_COMM_WORLD, &so, &session) : wfmm_session_create(&so, &session));
    must(wfmm_plan_create(session, &o, &plan));
    for (int k = -1; k < repetitions; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        must(wfmm_plan_set_particles_f32(plan, n, x, a, vpm ? core : NULL, WFMM_MEMORY_HOST));
        must(wfmm_plan_set_targets_f32(plan, n, y, WFMM_MEMORY_HOST));
        must(wfmm_plan_evaluate_f32(plan, u, g, WFMM_MEMORY_HOST));
        const double whole = slowest(start);
        start = MPI_Wtime();
        must(wfmm_plan_evaluate_f32(plan, u, g, WFMM_MEMORY_HOST));
        const double again = slowest(start);
        if (k >= 0) step[k] = whole, alone[k] = again;
    }
    must(wfmm_plan_check_f64(plan, 200, 5, &error));
    qsort(step, (size_t)repetitions, sizeof *step, rising), qsort(alone, (size_t)repetitions, sizeof *alone, rising);
    if (rank == 0) {
        char text[2000] = "";
        printf("%.6f %.6f %.1e\n", step[repetitions / 2], alone[repetitions / 2], error);
        wfmm_plan_recipe(plan, text, sizeof text, NULL);
        if (getenv("RECIPE")) fprintf(stderr, "%s\n", text);
    }
    wfmm_plan_destroy(&plan), wfmm_session_destroy(&session);
    MPI_Finalize();
    return 0;
}
