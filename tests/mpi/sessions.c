/* Sessions that come and go: how many duplicates of a communicator they take, which two sessions never share, and what is left of them
   when the communicator is freed. Enters: MPI_COMM_WORLD of any size. Leaves: 0, or 1 and a line for each check that failed; a time
   limit is the caller's.
   The functions of MPI that make and free communicators are this program's own here: they count, and fail when they are told to. */
#include <mpi.h>
#include <pthread.h>

#include "../c/check.h"
#include "wakefmm_mpi.h"

static int rank, size;
/* Communicators that the library has made and not freed. */
static int alive = 0;
/* MPI_Comm_dup fails on all ranks, or on rank 0 after all have made it. */
static enum { NOWHERE, EVERYWHERE, LATE_ON_RANK_0 } refused = NOWHERE;

static int failure(MPI_Comm communicator) {
    /* As MPI does: by the error handler of the communicator, which ends the job where errors are fatal. */
    MPI_Comm_call_errhandler(communicator, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

int MPI_Comm_dup(MPI_Comm communicator, MPI_Comm *out) {
    if (refused == EVERYWHERE) return failure(communicator);
    int code = PMPI_Comm_dup(communicator, out);
    alive += code == MPI_SUCCESS;
    return refused == LATE_ON_RANK_0 && rank == 0 ? failure(communicator) : code;
}

int MPI_Comm_split_type(MPI_Comm communicator, int type, int key, MPI_Info info, MPI_Comm *out) {
    int code = PMPI_Comm_split_type(communicator, type, key, info, out);
    alive += code == MPI_SUCCESS;
    return code;
}

int MPI_Comm_free(MPI_Comm *communicator) {
    int code = PMPI_Comm_free(communicator);
    alive -= code == MPI_SUCCESS;
    return code;
}

/* Sessions of one thread each. */
static wfmm_session *session_of(MPI_Comm communicator) {
    wfmm_session_options o;
    wfmm_session *session = NULL;
    OK(wfmm_session_options_init(&o, sizeof o));
    o.backend = WFMM_BACKEND_CPU;
    o.threads = 1;
    OK(wfmm_mpi_session_create(communicator, &o, &session));
    return session;
}

static wfmm_plan *plan_of(wfmm_session *session) {
    wfmm_plan_options o;
    wfmm_plan *plan = NULL;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.method = WFMM_METHOD_DIRECT;
    o.particle_regularization = WFMM_REG_NONE;
    OK(wfmm_plan_create(session, &o, &plan));
    return plan;
}

/* A particle of each rank at (rank, 0, 0), along z; the velocity at (0, 1, 0), which depends on all of them. */
static double velocity_of(wfmm_plan *plan, double strength) {
    const double x[3] = {rank, 0, 0}, a[3] = {0, 0, strength}, y[3] = {0, 1, 0};
    double u[3] = {0, 0, 0};
    OK(wfmm_plan_set_particles_f64(plan, 1, x, a, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(plan, 1, y, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST));
    return u[0];
}

static double wanted(double strength) {
    double sum = 0;
    for (int r = 0; r < size; r++) sum -= strength / pow(1.0 + (double)r * r, 1.5);
    return sum * 0.25 / acos(-1.0);
}

static void works(wfmm_session *session, double strength) {
    wfmm_plan *plan = plan_of(session);
    CHECK(fabs(velocity_of(plan, strength) - wanted(strength)) < 1e-12 * fabs(strength));
    OK(wfmm_plan_destroy(&plan));
}

static void many(void) {
    for (int k = 0; k < 1000; k++) {
        wfmm_session *session = session_of(MPI_COMM_WORLD);
        if (k % 250 == 0) works(session, k + 1.0);
        OK(wfmm_session_destroy(&session));
    }
    /* One for what ranks agree on, one for the session. */
    CHECK(alive == 2);
}

/* Sessions that are not made give their duplicate back; what is wrong on one rank is an error on all. */
static void failing(void) {
    wfmm_session_options o;
    wfmm_session *session = NULL;
    wfmm_communicator table;
    OK(wfmm_session_options_init(&o, sizeof o));
    o.threads = rank == size - 1 ? -1 : 1;
    char word[32];
    snprintf(word, sizeof word, "rank %d: ", size - 1);
    for (int k = 0; k < 300; k++) EXPECT(wfmm_mpi_session_create(MPI_COMM_WORLD, &o, &session), WFMM_ERR_VALUE, word);
    EXPECT(wfmm_mpi_session_create(MPI_COMM_WORLD, NULL, rank == size - 1 ? NULL : &session), WFMM_ERR_NULL, "out is NULL");
    EXPECT(wfmm_mpi_communicator(MPI_COMM_WORLD, rank == size - 1 ? NULL : &table), WFMM_ERR_NULL, rank == size - 1 ? "out is NULL" : word);
    CHECK(session == NULL && alive == 2);
}

/* Sessions that live at the same time, on some ranks longer than on others. */
static void together(void) {
    wfmm_session *a = session_of(MPI_COMM_WORLD), *b = session_of(MPI_COMM_WORLD);
    CHECK(alive == 3);
    works(b, 2.0);
    works(a, 3.0);
    /* A plan keeps its session, and the session its duplicate. */
    wfmm_plan *kept = plan_of(a);
    OK(wfmm_session_destroy(&a));
    OK(wfmm_session_destroy(&b));
    if (rank != size - 1) OK(wfmm_plan_destroy(&kept));
    wfmm_session *c = session_of(MPI_COMM_WORLD);
    works(c, 4.0);
    CHECK(alive == 3);
    wfmm_session *d = session_of(MPI_COMM_WORLD);
    works(d, 5.0);
    CHECK(alive == 4);
    if (rank == size - 1) OK(wfmm_plan_destroy(&kept));
    wfmm_session *e = session_of(MPI_COMM_WORLD);
    works(e, 6.0);
    CHECK(alive == 4);
    wfmm_session **all[] = {&d, &e, &c};
    for (int k = 0; k < 3; k++) OK(wfmm_session_destroy(all[(k + rank) % 3]));
}

static void communicators(void) {
    const int before = alive;
    MPI_Comm mine;
    for (int k = 0; k < 200; k++) {
        PMPI_Comm_dup(MPI_COMM_WORLD, &mine);
        wfmm_session *session = session_of(mine), *other = session_of(mine);
        OK(wfmm_session_destroy(&session));
        OK(wfmm_session_destroy(&other));
        PMPI_Comm_free(&mine);
    }
    CHECK(alive == before);
    /* A part of the ranks. */
    PMPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &mine);
    wfmm_session *session = session_of(mine);
    OK(wfmm_session_destroy(&session));
    PMPI_Comm_free(&mine);
    CHECK(alive == before);
    /* A session goes on without the communicator that it was made of, and keeps its duplicate. */
    PMPI_Comm_dup(MPI_COMM_WORLD, &mine);
    session = session_of(mine);
    PMPI_Comm_free(&mine);
    CHECK(alive == before + 1);
    works(session, 7.0);
    OK(wfmm_session_destroy(&session));
}

/* Duplicates that MPI refuses, where errors are fatal to the caller. */
static void refusals(void) {
    MPI_Comm mine;
    MPI_Errhandler handler;
    wfmm_session *none = NULL;
    PMPI_Comm_dup(MPI_COMM_WORLD, &mine);
    for (int k = 0; k < 2; k++) {
        refused = k ? LATE_ON_RANK_0 : EVERYWHERE;
        EXPECT(wfmm_mpi_session_create(mine, NULL, &none), WFMM_ERR_COMMUNICATION, k && rank ? "rank 0" : "MPI_Comm_dup");
    }
    refused = NOWHERE;
    MPI_Comm_get_errhandler(mine, &handler);
    CHECK(handler == MPI_ERRORS_ARE_FATAL && none == NULL);
    MPI_Errhandler_free(&handler);
    wfmm_session *session = session_of(mine);
    for (int k = 0; k < 2; k++) {
        refused = k ? LATE_ON_RANK_0 : EVERYWHERE;
        EXPECT(wfmm_mpi_session_create(mine, NULL, &none), WFMM_ERR_COMMUNICATION, k && rank ? "rank 0" : "MPI_Comm_dup");
    }
    refused = NOWHERE;
    works(session, 8.0);
    wfmm_session *second = session_of(mine);
    works(second, 9.0);
    OK(wfmm_session_destroy(&session));
    OK(wfmm_session_destroy(&second));
    PMPI_Comm_free(&mine);
}

struct work {
    wfmm_plan *plan;
    double strength;
    int wrong;
};

static void *evaluate(void *argument) {
    struct work *work = argument;
    for (int k = 1; k <= 50; k++)
        work->wrong += !(fabs(velocity_of(work->plan, k * work->strength) - wanted(k * work->strength)) < 1e-12 * k * work->strength);
    return NULL;
}

/* Sessions of one communicator, each used by a thread of its own: in another order on each rank. */
static void threads(void) {
    wfmm_session *sessions[3];
    struct work works[3];
    pthread_t thread[3];
    for (int k = 0; k < 3; k++) {
        sessions[k] = session_of(MPI_COMM_WORLD);
        works[k] = (struct work){plan_of(sessions[k]), 1.0 + k, 0};
    }
    for (int k = 0; k < 3; k++) pthread_create(&thread[k], NULL, evaluate, &works[(k + rank) % 3]);
    for (int k = 0; k < 3; k++) pthread_join(thread[k], NULL);
    for (int k = 0; k < 3; k++) {
        CHECK(works[k].wrong == 0);
        OK(wfmm_plan_destroy(&works[k].plan));
        OK(wfmm_session_destroy(&sessions[k]));
    }
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    many();
    failing();
    together();
    communicators();
    refusals();
    if (level == MPI_THREAD_MULTIPLE) threads();
    /* A session and a plan that outlive MPI. */
    wfmm_session *last = session_of(MPI_COMM_WORLD);
    wfmm_plan *plan = plan_of(last);
    MPI_Finalize();
    EXPECT(wfmm_plan_set_targets_f64(plan, 0, NULL, WFMM_MEMORY_HOST), WFMM_ERR_COMMUNICATION, "returned");
    OK(wfmm_plan_destroy(&plan));
    OK(wfmm_session_destroy(&last));
    return rank == 0 ? finish("MPI sessions") : checks_failed != 0;
}
