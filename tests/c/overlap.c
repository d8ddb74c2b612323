/* Evaluations beside the host's own work: the fields of async and wait are those of evaluate, the plan is BUSY between
   them, errors come out of wait. Stream and registration do nothing on the CPU. Twin: tests/fortran/overlap.f90. */
#include "check.h"

enum { N = 1000 };
static double position[3 * N], strength[3 * N], velocity[3 * N], gradient[9 * N], wanted[3 * N], slopes[9 * N];

static void fill(double *x, int n, uint64_t state) {
    for (int i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (double)(state >> 11) / 9007199254740992.0;
    }
}

int main(void) {
    wfmm_session_options so;
    wfmm_session *session = NULL;
    OK(wfmm_session_options_init(&so, sizeof so));
    so.backend = WFMM_BACKEND_CPU;
    OK(wfmm_session_create(&so, &session));
    wfmm_plan_options o;
    wfmm_plan *plan = NULL;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.method = WFMM_METHOD_DIRECT;
    o.core_radius = 0.01;
    OK(wfmm_plan_create(session, &o, &plan));

    OK(wfmm_plan_wait(plan));
    EXPECT(wfmm_plan_wait(NULL), WFMM_ERR_NULL, "plan");
    OK(wfmm_plan_evaluate_async_f64(plan, velocity, NULL, WFMM_MEMORY_HOST));
    EXPECT(wfmm_plan_wait(plan), WFMM_ERR_STATE, "before sources");
    OK(wfmm_plan_wait(plan));

    fill(position, 3 * N, 1), fill(strength, 3 * N, 2);
    OK(wfmm_plan_set_particles_f64(plan, N, position, strength, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(plan, N, position, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(plan, wanted, slopes, WFMM_MEMORY_HOST));
    EXPECT(wfmm_plan_evaluate_async_f64(plan, NULL, NULL, WFMM_MEMORY_HOST), WFMM_ERR_NULL, "velocity");
    EXPECT(wfmm_plan_evaluate_async_f64(plan, velocity, velocity, WFMM_MEMORY_HOST), WFMM_ERR_OVERLAP, "overlap");
    EXPECT(wfmm_plan_evaluate_async_f64(plan, velocity, NULL, 9), WFMM_ERR_CONSTANT, "memory");

    OK(wfmm_session_register(session, velocity, sizeof velocity));
    for (int round = 0; round < 5; round++) {
        memset(velocity, 0, sizeof velocity), memset(gradient, 0, sizeof gradient);
        OK(wfmm_plan_evaluate_async_f64(plan, velocity, gradient, WFMM_MEMORY_HOST));
        EXPECT(wfmm_plan_evaluate_async_f64(plan, velocity, gradient, WFMM_MEMORY_HOST), WFMM_ERR_BUSY, "plan");
        OK(wfmm_plan_wait(plan));
        CHECK(!memcmp(velocity, wanted, sizeof wanted) && !memcmp(gradient, slopes, sizeof slopes));
    }
    OK(wfmm_session_unregister(session, velocity));
    EXPECT(wfmm_session_register(session, NULL, 8), WFMM_ERR_NULL, "array");
    EXPECT(wfmm_session_register(session, velocity, -1), WFMM_ERR_COUNT, "bytes");
    /* More than a count of elements may be: 3 GiB. The CPU locks nothing, so none of it is touched. */
    OK(wfmm_session_register(session, velocity, INT64_C(3) << 30));
    EXPECT(wfmm_session_unregister(session, NULL), WFMM_ERR_NULL, "array");
    OK(wfmm_plan_set_stream(plan, NULL));
    EXPECT(wfmm_plan_set_stream(NULL, NULL), WFMM_ERR_NULL, "plan");

    /* A session that is ended between the two: the plan keeps it. */
    OK(wfmm_plan_evaluate_async_f64(plan, velocity, gradient, WFMM_MEMORY_HOST));
    OK(wfmm_session_destroy(&session));
    OK(wfmm_plan_wait(plan));
    CHECK(!memcmp(velocity, wanted, sizeof wanted));
    OK(wfmm_plan_destroy(&plan));
    return finish("overlap");
}
