/* Distributed sessions without MPI: a communicator of one rank in a few lines, wrong ones, and functions that fail. */
#include <stddef.h>

#include "check.h"

static int calls_left = 1 << 30;

static int32_t code(void) { return calls_left-- > 0 ? 0 : 7; }

static int32_t allreduce(void *user, void *values, int64_t n, int32_t kind, int32_t operation) {
    (void)user, (void)values;
    CHECK(n >= 0 && kind >= 0 && kind <= 1 && operation >= 0 && operation <= 2);
    return code();
}

static int32_t allgather(void *user, const void *mine, int64_t bytes, void *all) {
    (void)user;
    memcpy(all, mine, (size_t)bytes);
    return code();
}

static int32_t alltoallv(void *user, const void *send, const int64_t *send_bytes, const int64_t *send_offsets, void *receive,
                         const int64_t *receive_bytes, const int64_t *receive_offsets, int32_t memory) {
    (void)user;
    CHECK(memory == WFMM_MEMORY_HOST && send_bytes[0] == receive_bytes[0]);
    memcpy((char *)receive + receive_offsets[0], (const char *)send + send_offsets[0], (size_t)send_bytes[0]);
    return code();
}

static int32_t barrier(void *user) {
    (void)user;
    return code();
}

static int released = 0;

static void release(void *user) {
    (void)user;
    released++;
}

static wfmm_communicator one_rank(void) {
    wfmm_communicator c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.size = 1;
    c.allreduce = allreduce;
    c.allgather = allgather;
    c.alltoallv = alltoallv;
    c.barrier = barrier;
    c.release = release;
    return c;
}

static void wrong_arguments(void) {
    wfmm_session *s = NULL;
    wfmm_communicator c = one_rank();
    wfmm_session_options o;
    OK(wfmm_session_options_init(&o, sizeof o));
    EXPECT(wfmm_session_create_distributed(NULL, NULL, &s), WFMM_ERR_NULL, "communicator is NULL");
    EXPECT(wfmm_session_create_distributed(NULL, &c, NULL), WFMM_ERR_NULL, "out is NULL");
    CHECK(released == 1);
    c.struct_size = 0;
    EXPECT(wfmm_session_create_distributed(NULL, &c, &s), WFMM_ERR_STRUCT_SIZE, "struct_size = 0");
    c = one_rank();
    c.size = 0;
    EXPECT(wfmm_session_create_distributed(NULL, &c, &s), WFMM_ERR_VALUE, "size = 0");
    c = one_rank();
    c.rank = 1;
    EXPECT(wfmm_session_create_distributed(NULL, &c, &s), WFMM_ERR_VALUE, "rank = 1");
    c = one_rank();
    c.alltoallv = NULL;
    EXPECT(wfmm_session_create_distributed(NULL, &c, &s), WFMM_ERR_NULL, "alltoallv is NULL");
    CHECK(released == 1);
    c = one_rank();
    o.threads = -3;
    EXPECT(wfmm_session_create_distributed(&o, &c, &s), WFMM_ERR_VALUE, "threads = -3");
    CHECK(released == 2);
    o.threads = 1;
    o.backend = WFMM_BACKEND_CUDA;
    if (wfmm_session_create_distributed(&o, &c, &s) == WFMM_OK) {
        OK(wfmm_session_destroy(&s));
    } else { /* no GPU here: the rank is named */
        EXPECT(wfmm_session_create_distributed(&o, &c, &s), WFMM_ERR_DRIVER, "rank 0: backend = WFMM_BACKEND_CUDA");
    }
    CHECK(s == NULL);
    /* Callers from before there was `release`. */
    c.struct_size = offsetof(wfmm_communicator, release);
    o.backend = WFMM_BACKEND_CPU;
    const int before = released;
    OK(wfmm_session_create_distributed(&o, &c, &s));
    OK(wfmm_session_destroy(&s));
    CHECK(released == before);
}

/* The communicator is released when the last of session, plans and flows has ended. */
static void ends(void) {
    wfmm_communicator c = one_rank();
    wfmm_session *s = NULL;
    wfmm_plan *plan = NULL;
    wfmm_flow *flow = NULL;
    const int before = released;
    OK(wfmm_session_create_distributed(NULL, &c, &s));
    OK(wfmm_plan_create(s, NULL, &plan));
    OK(wfmm_flow_create(s, NULL, NULL, &flow));
    OK(wfmm_session_destroy(&s));
    OK(wfmm_plan_destroy(&plan));
    CHECK(released == before);
    OK(wfmm_flow_destroy(&flow));
    CHECK(released == before + 1);
}

int main(void) {
    enum { N = 900 };
    static double x[3 * N], a[3 * N], u[3 * N], want[3 * N];
    unsigned state = 1;
    for (int k = 0; k < 3 * N; k++) {
        state = state * 1664525u + 1013904223u;
        x[k] = state / 4294967296.0;
        a[k] = sin(7.0 * k);
    }
    wrong_arguments();
    ends();
    wfmm_session_options o;
    OK(wfmm_session_options_init(&o, sizeof o));
    o.threads = 2;
    wfmm_communicator c = one_rank();
    wfmm_session *s = NULL;
    OK(wfmm_session_create_distributed(&o, &c, &s));
    wfmm_plan_options p;
    OK(wfmm_plan_options_init(&p, sizeof p));
    p.core_radius = 0.01;
    OK(wfmm_induce_particles_f64(N, x, a, NULL, N, x, &p, want, NULL));
    for (int32_t method = WFMM_METHOD_DIRECT; method <= WFMM_METHOD_FMM; method++) {
        wfmm_plan *plan = NULL;
        p.method = method;
        OK(wfmm_plan_create(s, &p, &plan));
        OK(wfmm_plan_set_particles_f64(plan, N, x, a, NULL, WFMM_MEMORY_HOST));
        OK(wfmm_plan_set_targets_f64(plan, N, x, WFMM_MEMORY_HOST));
        OK(wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST));
        double wrong = 0, size = 0;
        for (int k = 0; k < 3 * N; k++) {
            wrong += (u[k] - want[k]) * (u[k] - want[k]);
            size += want[k] * want[k];
        }
        CHECK(sqrt(wrong / size) < 2e-4);
        /* A function that fails, at every call that an evaluation makes: a status, and the next evaluation is right again. */
        int failures = 0;
        for (int limit = 0; limit < 400; limit++) {
            calls_left = limit;
            OK(wfmm_plan_destroy(&plan));
            wfmm_status status = wfmm_plan_create(s, &p, &plan);
            if (!status) status = wfmm_plan_set_particles_f64(plan, N, x, a, NULL, WFMM_MEMORY_HOST);
            if (!status) status = wfmm_plan_set_targets_f64(plan, N, x, WFMM_MEMORY_HOST);
            if (!status) status = wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST);
            calls_left = 1 << 30;
            if (!status) break;
            CHECK(status == WFMM_ERR_COMMUNICATION && strstr(last_error(), "returned 7"));
            failures++;
        }
        CHECK(failures > 10 && failures < 400);
        /* One that failed in the last agreement of the call is reported by the next. */
        const wfmm_status late = wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST);
        CHECK(late == WFMM_OK || late == WFMM_ERR_COMMUNICATION);
        OK(wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST));
        OK(wfmm_plan_destroy(&plan));
    }
    OK(wfmm_session_destroy(&s));
    return finish("distributed");
}
