/* Collective calls in which one rank hands over what no call accepts, or asks for something else than the others: the same status on
   all ranks, and nobody waits for ever. Enters: MPI_COMM_WORLD of any size. Leaves: 0, or 1 and a line for each check that failed; a
   time limit is the caller's. */
#include <mpi.h>

#include "../c/check.h"
#include "wakefmm_mpi.h"

enum { N = 20, WIDTH = 16, HEIGHT = 8 };
static int rank, size;
/* The rank that errs. */
static int bad;
static wfmm_session *session;

/* The status of a call, which is this error on all ranks; the message names the rank that errs. */
static void refused(wfmm_status got, wfmm_status want, int line, const char *call) {
    int least = got, largest = got;
    char word[32];
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    snprintf(word, sizeof word, "rank %d: ", bad);
    checks_done++;
    if (least == want && largest == want && strstr(last_error(), word)) return;
    checks_failed++;
    printf("%s:%d: %s, rank %d errs: %s here, %d to %d on all, wanted %s; message: %s\n", __FILE__, line, call, bad,
           wfmm_status_name(got), least, largest, wfmm_status_name(want), last_error());
}

#define REFUSED(call, want) refused(call, want, __LINE__, #call)
/* What this rank hands over: `wrong` where it errs. */
#define OR(wrong, right) (rank == bad ? (wrong) : (right))

static double x[3 * N], a[3 * N], one[N], u[9 * N];
static int32_t ends[2 * N];
static int64_t id[N] = {0};
static const uint8_t mask[N] = {0};

static void plans(void) {
    wfmm_plan *plan = NULL;
    wfmm_plan_options o;
    double e;
    OK(wfmm_plan_options_init(&o, sizeof o));
    REFUSED(wfmm_plan_create(session, NULL, OR(NULL, &plan)), WFMM_ERR_NULL);
    o.struct_size = OR(1, sizeof o);
    REFUSED(wfmm_plan_create(session, &o, &plan), WFMM_ERR_STRUCT_SIZE);
    o.struct_size = sizeof o;
    o.tolerance = OR(-1, 1e-3);
    REFUSED(wfmm_plan_create(session, &o, &plan), WFMM_ERR_VALUE);
    o.tolerance = 1e-3;
    OK(wfmm_plan_create(session, &o, &plan));
    CHECK(wfmm_plan_prepare(plan) == WFMM_ERR_STATE);
    REFUSED(wfmm_plan_set_segments_f64(plan, N, OR(NULL, x), N - 1, 2, ends, one, NULL, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_plan_set_segments_f64(plan, N, x, N - 1, OR(1, 2), ends, one, NULL, WFMM_MEMORY_HOST), WFMM_ERR_VALUE);
    REFUSED(wfmm_plan_set_particles_f64(plan, N, x, OR(NULL, a), one, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_plan_set_particles_f64(plan, OR(-1, N), x, a, one, WFMM_MEMORY_HOST), WFMM_ERR_COUNT);
    REFUSED(wfmm_plan_set_particles_f64(plan, N, x, a, one, OR(9, WFMM_MEMORY_HOST)), WFMM_ERR_CONSTANT);
    REFUSED(wfmm_plan_set_charges_f64(plan, N, x, OR(NULL, one), WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_plan_set_targets_f64(plan, N, OR(NULL, x), WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    OK(wfmm_plan_set_particles_f64(plan, N, x, a, one, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_charges_f64(plan, N, x, one, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(plan, N, x, WFMM_MEMORY_HOST));
    REFUSED(wfmm_plan_set_strengths_f64(plan, 0, NULL, OR(N - 1, N), a, 0, NULL, WFMM_MEMORY_HOST), WFMM_ERR_COUNT);
    REFUSED(wfmm_plan_evaluate_f64(plan, OR(NULL, u), NULL, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_plan_evaluate_f64(plan, u, OR(u, NULL), WFMM_MEMORY_HOST), WFMM_ERR_OVERLAP);
    REFUSED(wfmm_plan_evaluate_potential_f64(plan, OR(NULL, u), NULL, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_plan_check_f64(plan, 10, 1, OR(NULL, &e)), WFMM_ERR_NULL);
    REFUSED(wfmm_plan_check_f64(plan, OR(0, 10), 1, &e), WFMM_ERR_COUNT);
    OK(wfmm_plan_prepare(plan));
    OK(wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_destroy(&plan));
    if (size == 1) return;
    /* Options that each rank may choose but differ, one after the other: the first rank is compared with. */
    if (bad == 0) return;
    o.expansion = OR(WFMM_EXPANSION_PSEUDO_PARTICLES, WFMM_EXPANSION_HARMONICS);
    REFUSED(wfmm_plan_create(session, &o, &plan), WFMM_ERR_VALUE);
    CHECK(strstr(last_error(), "expansion = 1, but 0 on rank 0"));
    CHECK(plan == NULL);
}

static void flows(void) {
    wfmm_flow *flow = NULL;
    wfmm_flow_options o;
    wfmm_diagnostics d;
    wfmm_camera camera;
    double wind[3] = {1, 0, 0};
    uint8_t picture[4 * WIDTH * HEIGHT];
    OK(wfmm_flow_options_init(&o, sizeof o));
    OK(wfmm_diagnostics_init(&d, sizeof d));
    OK(wfmm_camera_init(&camera, sizeof camera));
    REFUSED(wfmm_flow_create(session, NULL, &o, OR(NULL, &flow)), WFMM_ERR_NULL);
    o.struct_size = OR(1, sizeof o);
    REFUSED(wfmm_flow_create(session, NULL, &o, &flow), WFMM_ERR_STRUCT_SIZE);
    o.struct_size = sizeof o;
    o.fluid_viscosity = 1e-5;
    OK(wfmm_flow_create(session, NULL, &o, &flow));
    REFUSED(wfmm_flow_set_particles_f64(flow, N, OR(NULL, x), a, one, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_add_particles_f64(flow, OR(-1, N), x, a, one, WFMM_MEMORY_HOST), WFMM_ERR_COUNT);
    REFUSED(wfmm_flow_set_filaments_f64(flow, N, x, N - 1, 2, OR(NULL, ends), one, one, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_add_filaments_f64(flow, N, x, N - 1, OR(1, 2), ends, one, one, WFMM_MEMORY_HOST), WFMM_ERR_VALUE);
    REFUSED(wfmm_flow_set_bound_segments_f64(flow, N, x, N - 1, 2, ends, OR(NULL, one), one, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_set_tracers_f64(flow, N, OR(NULL, x), WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_add_tracers_f64(flow, N, x, OR(9, WFMM_MEMORY_HOST)), WFMM_ERR_CONSTANT);
    REFUSED(wfmm_flow_set_dust_f64(flow, N, x, NULL, OR(NULL, one), one, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_add_dust_f64(flow, N, x, NULL, one, OR(NULL, one), WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    OK(wfmm_flow_set_particles_f64(flow, N, x, a, one, WFMM_MEMORY_HOST));
    OK(wfmm_flow_set_tracers_f64(flow, N, x, WFMM_MEMORY_HOST));
    id[0] = (int64_t)N * rank;
    REFUSED(wfmm_flow_remove(flow, WFMM_KIND_TRACERS, 1, OR(NULL, id), WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_remove(flow, OR(9, WFMM_KIND_TRACERS), 1, id, WFMM_MEMORY_HOST), WFMM_ERR_CONSTANT);
    REFUSED(wfmm_flow_remove_mask(flow, WFMM_KIND_TRACERS, OR(1, N), mask, WFMM_MEMORY_HOST), WFMM_ERR_COUNT);
    REFUSED(wfmm_flow_set_free_stream(flow, OR(NULL, wind)), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_advance(flow, OR(0, 1e-6), 1), WFMM_ERR_VALUE);
    REFUSED(wfmm_flow_advance(flow, 1e-6, OR(-1, 1)), WFMM_ERR_COUNT);
    REFUSED(wfmm_flow_velocity_f64(flow, N, x, OR(NULL, u), NULL, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_velocity_f64(flow, OR(-1, N), x, u, NULL, WFMM_MEMORY_HOST), WFMM_ERR_COUNT);
    const int32_t particles = WFMM_KIND_PARTICLES, velocity = WFMM_QUANTITY_VELOCITY;
    REFUSED(wfmm_flow_get_f64(flow, particles, velocity, N, OR(NULL, u), NULL, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_get_f64(flow, particles, velocity, OR(1, N), u, NULL, WFMM_MEMORY_HOST), WFMM_ERR_COUNT);
    REFUSED(wfmm_flow_get_f64(flow, OR(9, particles), velocity, N, u, NULL, WFMM_MEMORY_HOST), WFMM_ERR_CONSTANT);
    REFUSED(wfmm_flow_get_selected_f64(flow, particles, velocity, 1, OR(NULL, id), u, WFMM_MEMORY_HOST), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_diagnostics(flow, OR(NULL, &d)), WFMM_ERR_NULL);
    d.struct_size = OR(0, sizeof d);
    REFUSED(wfmm_flow_diagnostics(flow, &d), WFMM_ERR_STRUCT_SIZE);
    d.struct_size = sizeof d;
    OK(wfmm_flow_diagnostics(flow, &d));
    REFUSED(wfmm_flow_picture(flow, &camera, WIDTH, HEIGHT, OR(NULL, picture), NULL), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_picture(flow, &camera, OR(0, WIDTH), HEIGHT, picture, NULL), WFMM_ERR_VALUE);
    camera.struct_size = OR(0, sizeof camera);
    REFUSED(wfmm_flow_picture(flow, &camera, WIDTH, HEIGHT, picture, NULL), WFMM_ERR_STRUCT_SIZE);
    camera.struct_size = sizeof camera;
    REFUSED(wfmm_flow_save(flow, OR(NULL, "/nowhere/at.npz")), WFMM_ERR_NULL);
    wfmm_flow *loaded = NULL;
    REFUSED(wfmm_flow_load(session, OR(NULL, "/nowhere/at.npz"), &loaded), WFMM_ERR_NULL);
    REFUSED(wfmm_flow_load(session, "/nowhere/at.npz", OR(NULL, &loaded)), WFMM_ERR_NULL);
    CHECK(loaded == NULL);
    if (bad > 0) {
        /* Each rank asks for something that there is. */
        const int32_t kind = OR(WFMM_KIND_TRACERS, particles), quantity = OR(WFMM_QUANTITY_POSITION, velocity);
        REFUSED(wfmm_flow_get_f64(flow, particles, quantity, N, u, NULL, WFMM_MEMORY_HOST), WFMM_ERR_VALUE);
        CHECK(strstr(last_error(), "quantity = 0, but 3 on rank 0"));
        REFUSED(wfmm_flow_get_f64(flow, kind, velocity, N, u, NULL, WFMM_MEMORY_HOST), WFMM_ERR_VALUE);
        CHECK(strstr(last_error(), "kind = 3, but 0 on rank 0"));
        REFUSED(wfmm_flow_get_selected_f64(flow, particles, quantity, 1, id, u, WFMM_MEMORY_HOST), WFMM_ERR_VALUE);
        camera.color = OR(WFMM_COLOR_AGE, WFMM_COLOR_SPEED);
        REFUSED(wfmm_flow_picture(flow, &camera, WIDTH, HEIGHT, picture, NULL), WFMM_ERR_VALUE);
        CHECK(strstr(last_error(), "color = 2, but 1 on rank 0"));
        camera.color = WFMM_COLOR_SPEED;
        camera.eye[1] = OR(-4, -3);
        REFUSED(wfmm_flow_picture(flow, &camera, WIDTH, HEIGHT, picture, NULL), WFMM_ERR_VALUE);
        camera.eye[1] = -3;
        REFUSED(wfmm_flow_picture(flow, &camera, OR(WIDTH / 2, WIDTH), HEIGHT, picture, NULL), WFMM_ERR_VALUE);
    }
    OK(wfmm_flow_get_f64(flow, particles, velocity, N, u, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_flow_get_selected_f64(flow, particles, velocity, 1, id, u, WFMM_MEMORY_HOST));
    OK(wfmm_flow_picture(flow, &camera, WIDTH, HEIGHT, picture, NULL));
    OK(wfmm_flow_destroy(&flow));
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < 3; i++) x[3 * k + i] = sin(1.0 + 3 * k + i + 100 * rank), a[3 * k + i] = cos(7.0 * k + i);
        one[k] = 0.1;
        ends[2 * k] = k, ends[2 * k + 1] = (k + 1) % N;
    }
    wfmm_session_options o;
    OK(wfmm_session_options_init(&o, sizeof o));
    o.backend = WFMM_BACKEND_CPU;
    o.threads = 1;
    OK(wfmm_mpi_session_create(MPI_COMM_WORLD, &o, &session));
    for (bad = 0; bad < size; bad++) {
        plans();
        flows();
    }
    OK(wfmm_session_destroy(&session));
    MPI_Finalize();
    return rank == 0 ? finish("MPI, one rank errs") : checks_failed != 0;
}
