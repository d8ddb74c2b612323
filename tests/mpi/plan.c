/* Plans over the processes of MPI: each rank has its own sources and targets; fields against a plain double sum over all. */
#include <mpi.h>

#include "../c/check.h"
#include "wakefmm_mpi.h"

static int rank, size;

/* Numbers in [0, 1) that depend on the seed only. */
static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static double *random_numbers(int64_t n, uint64_t seed, double low, double high) {
    double *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
    for (int64_t k = 0; k < n; k++) x[k] = low + (high - low) * draw(&seed);
    return x;
}

/* The numbers of all ranks, in the order of ranks. */
static double *gathered(const double *mine, int n, int *all) {
    int *counts = malloc((size_t)size * sizeof *counts), *offsets = malloc((size_t)size * sizeof *offsets);
    MPI_Allgather(&n, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    *all = 0;
    for (int r = 0; r < size; r++) {
        offsets[r] = *all;
        *all += counts[r];
    }
    double *x = malloc((size_t)*all * sizeof *x);
    MPI_Allgatherv(mine, n, MPI_DOUBLE, x, counts, offsets, MPI_DOUBLE, MPI_COMM_WORLD);
    free(counts);
    free(offsets);
    return x;
}

/* Relative L2 difference over the targets of all ranks. */
static double difference(const double *got, const double *want, int n) {
    double sums[2] = {0, 0};
    for (int k = 0; k < n; k++) {
        sums[0] += (got[k] - want[k]) * (got[k] - want[k]);
        sums[1] += want[k] * want[k];
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sqrt(sums[0] / sums[1]);
}

/* Particles without cores, and charges: the sums of the manual. */
static void sums(const double *x, const double *a, const double *q, int n, const double *y, int m, double *u, double *phi) {
    const double s = 0.25 / acos(-1.0);
    for (int t = 0; t < m; t++) {
        double v[3] = {0, 0, 0}, p = 0;
        for (int k = 0; k < n; k++) {
            double d[3] = {y[3 * t] - x[3 * k], y[3 * t + 1] - x[3 * k + 1], y[3 * t + 2] - x[3 * k + 2]};
            double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2], r = sqrt(r2);
            if (r2 == 0) continue;
            for (int i = 0; i < 3; i++) {
                int j = (i + 1) % 3, l = (i + 2) % 3;
                v[i] += (a[3 * k + j] * d[l] - a[3 * k + l] * d[j]) / (r2 * r);
            }
            p += q[k] / r;
        }
        for (int i = 0; i < 3; i++) u[3 * t + i] = s * v[i];
        phi[t] = s * p;
    }
}

static void fields(wfmm_session *session, int32_t method, double tolerance) {
    /* Ranks have different numbers of sources; the first has none, the last no targets (one rank has both). */
    int n = size == 1 ? 4000 : rank == 0 ? 0 : 2000 + 500 * rank, m = size > 1 && rank == size - 1 ? 0 : 1000 + 100 * rank;
    double *x = random_numbers(3 * n, 10 + (uint64_t)rank, 0, 1), *a = random_numbers(3 * n, 20 + (uint64_t)rank, -1, 1);
    double *q = random_numbers(n, 30 + (uint64_t)rank, -1, 1), *y = random_numbers(3 * m, 40 + (uint64_t)rank, 0, 1);
    int all_x, all_q;
    double *xs = gathered(x, 3 * n, &all_x), *as = gathered(a, 3 * n, &all_x), *qs = gathered(q, n, &all_q);
    double *want = malloc((size_t)(3 * m + 1) * sizeof *want), *potential = malloc((size_t)(m + 1) * sizeof *potential);
    sums(xs, as, qs, all_q, y, m, want, potential);
    wfmm_plan_options o;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.method = method;
    o.tolerance = tolerance;
    o.particle_regularization = WFMM_REG_NONE;
    wfmm_plan *plan = NULL;
    OK(wfmm_plan_create(session, &o, &plan));
    OK(wfmm_plan_set_particles_f64(plan, n, x, a, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_charges_f64(plan, n, x, q, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(plan, m, y, WFMM_MEMORY_HOST));
    double *u = malloc((size_t)(3 * m + 1) * sizeof *u), *g = malloc((size_t)(9 * m + 1) * sizeof *g);
    double *phi = malloc((size_t)(m + 1) * sizeof *phi), e = -1, least = -1;
    OK(wfmm_plan_evaluate_f64(plan, m ? u : NULL, m ? g : NULL, WFMM_MEMORY_HOST));
    CHECK(difference(u, want, 3 * m) <= tolerance);
    OK(wfmm_plan_evaluate_potential_f64(plan, m ? phi : NULL, NULL, WFMM_MEMORY_HOST));
    CHECK(difference(phi, potential, m) <= tolerance);
    OK(wfmm_plan_check_f64(plan, 500, 1, &e));
    MPI_Allreduce(&e, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    CHECK(e == least && e <= tolerance);
    wfmm_report report;
    report.struct_size = sizeof report;
    OK(wfmm_plan_report(plan, &report));
    CHECK(report.method == method);

    /* What is wrong on one rank is the same status on all, with the rank in the message; the plan goes on. */
    int bad = size - 1;
    double keep = n ? x[0] : 0;
    if (rank == bad) x[0] = NAN;
    char word[64];
    snprintf(word, sizeof word, "rank %d: position[0][0]", bad);
    EXPECT(wfmm_plan_set_particles_f64(plan, n, x, a, NULL, WFMM_MEMORY_HOST), WFMM_ERR_NOT_FINITE, word);
    x[0] = keep;
    snprintf(word, sizeof word, "rank %d: n = -1", bad);
    EXPECT(wfmm_plan_set_targets_f64(plan, rank == bad ? -1 : m, y, WFMM_MEMORY_HOST), WFMM_ERR_COUNT, word);
    EXPECT(wfmm_plan_evaluate_f64(plan, m && rank ? u : NULL, NULL, WFMM_MEMORY_HOST), WFMM_ERR_NULL, "rank 0: velocity is NULL");
    EXPECT(wfmm_plan_evaluate_async_f64(plan, u, NULL, WFMM_MEMORY_HOST), WFMM_ERR_UNSUPPORTED, "not built");
    OK(wfmm_plan_evaluate_f64(plan, m ? u : NULL, NULL, WFMM_MEMORY_HOST));
    CHECK(difference(u, want, 3 * m) <= tolerance);
    OK(wfmm_plan_destroy(&plan));
    void *blocks[] = {x, a, q, y, xs, as, qs, want, potential, u, g, phi};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) free(blocks[k]);
}

/* A box with unequal periods: elements of all ranks, in it and beyond its sides, against one process at a smaller tolerance. */
static void periodic(wfmm_session *session, int32_t method, double tolerance) {
    int n = size == 1 ? 2000 : rank == 0 ? 0 : 1000 + 200 * rank, m = size > 1 && rank == size - 1 ? 0 : 300 + 50 * rank;
    double *x = random_numbers(3 * n, 50 + (uint64_t)rank, -0.5, 1.5), *a = random_numbers(3 * n, 60 + (uint64_t)rank, -1, 1);
    double *y = random_numbers(3 * m, 70 + (uint64_t)rank, -0.5, 1.5);
    int all;
    double *xs = gathered(x, 3 * n, &all), *as = gathered(a, 3 * n, &all);
    double *u = malloc((size_t)(3 * m + 1) * sizeof *u), *want = malloc((size_t)(3 * m + 1) * sizeof *want), e = -1;
    wfmm_session_options one;
    OK(wfmm_session_options_init(&one, sizeof one));
    one.backend = WFMM_BACKEND_CPU;
    one.threads = 1;
    wfmm_session *alone = NULL;
    OK(wfmm_session_create(&one, &alone));
    for (int k = 0; k < 2; k++) {
        wfmm_plan_options o;
        OK(wfmm_plan_options_init(&o, sizeof o));
        o.method = k ? method : WFMM_METHOD_FMM;
        o.tolerance = k ? tolerance : 1e-3 * tolerance;
        o.period[0] = 1;
        o.period[1] = 1.4;
        o.period[2] = 0.8;
        wfmm_plan *plan = NULL;
        OK(wfmm_plan_create(k ? session : alone, &o, &plan));
        OK(wfmm_plan_set_particles_f64(plan, k ? n : all / 3, k ? x : xs, k ? a : as, NULL, WFMM_MEMORY_HOST));
        OK(wfmm_plan_set_targets_f64(plan, m, y, WFMM_MEMORY_HOST));
        if (k || m) OK(wfmm_plan_evaluate_f64(plan, m ? (k ? u : want) : NULL, NULL, WFMM_MEMORY_HOST));
        if (k) OK(wfmm_plan_check_f64(plan, 300, 1, &e));
        OK(wfmm_plan_destroy(&plan));
    }
    CHECK(difference(u, want, 3 * m) <= tolerance);
    CHECK(e > 0 && e <= tolerance);
    OK(wfmm_session_destroy(&alone));
    void *blocks[] = {x, a, y, xs, as, u, want};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) free(blocks[k]);
}

int main(int argc, char **argv) {
    int level;
    wfmm_session_options o;
    OK(wfmm_session_options_init(&o, sizeof o));
    o.threads = 1;
    wfmm_session *session = NULL;
    EXPECT(wfmm_mpi_session_create(MPI_COMM_WORLD, &o, &session), WFMM_ERR_STATE, "MPI_Init_thread first");
    if (argc > 1 && !strcmp(argv[1], "single")) {
        MPI_Init(&argc, &argv);
        MPI_Query_thread(&level);
        if (level < MPI_THREAD_FUNNELED)
            EXPECT(wfmm_mpi_session_create(MPI_COMM_WORLD, &o, &session), WFMM_ERR_STATE, "MPI_THREAD_FUNNELED");
    } else {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        EXPECT(wfmm_mpi_session_create(MPI_COMM_NULL, &o, &session), WFMM_ERR_NULL, "MPI_COMM_NULL");
        o.backend = rank == 0 ? WFMM_BACKEND_CUDA : WFMM_BACKEND_CPU;
        if (size > 1) EXPECT(wfmm_mpi_session_create(MPI_COMM_WORLD, &o, &session), WFMM_ERR_VALUE, "rank 1: backend = 1, but 2 on rank 0");
        o.backend = WFMM_BACKEND_AUTO;
        OK(wfmm_mpi_session_create(MPI_COMM_WORLD, &o, &session));
        fields(session, WFMM_METHOD_DIRECT, 1e-10);
        fields(session, WFMM_METHOD_FMM, 1e-5);
        fields(session, WFMM_METHOD_TREECODE, 1e-4);
        periodic(session, WFMM_METHOD_DIRECT, 1e-5);
        periodic(session, WFMM_METHOD_FMM, 1e-4);
        wfmm_plan_options p;
        OK(wfmm_plan_options_init(&p, sizeof p));
        p.tolerance = rank == size - 1 ? 1e-6 : 1e-4;
        wfmm_plan *plan = NULL;
        if (size > 1) EXPECT(wfmm_plan_create(session, &p, &plan), WFMM_ERR_VALUE, "tolerance");
        OK(wfmm_session_destroy(&session));
    }
    MPI_Finalize();
    EXPECT(wfmm_mpi_session_create(MPI_COMM_WORLD, &o, &session), WFMM_ERR_STATE, "finalized");
    return rank == 0 ? finish("MPI plan") : checks_failed != 0;
}
