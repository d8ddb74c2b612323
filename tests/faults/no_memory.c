/* Memory that runs out at every allocation: the n-th allocation of the library fails, once or from then on, for every n of
   session, plan, evaluation and destruction; FMM and direct sum, in a fresh process and in one that has summed before.
   Enters: optionally how many steps double n in the large case, and the first case. Leaves: 0 where every call returned a status and no wrong number, the process lived, and
   the next plan was right; else a line that says where. Allocations of the C library for itself are not made to fail. */
#include "failing_allocator.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wakefmm.h>

static long made; /* allocations of the part under test */

/* Arrays that the reserve could serve, and arrays that it could not. */
enum { N = 256, N_LARGE = 20000, M_LARGE = 4000 };
static double position[3 * N_LARGE], strength[3 * N_LARGE], velocity[3 * N_LARGE], right[2][3 * M_LARGE];
static float positions[3 * N], strengths[3 * N], velocities[3 * N];
enum { FMM, DIRECT, SINGLE, SESSION, LARGE, CASES };
static const char *const names[CASES] = {"FMM, double", "direct sum, double", "FMM, single", "session", "FMM, large"};

static void need(int ok, const char *what, long n, int status) {
    char message[400] = "";
    if (ok) return;
    wfmm_last_error(message, sizeof message, NULL);
    printf("allocation %ld%s: %s (status %d: %s)\n", n, for_ever ? " and all after it" : "", what, status, message);
    fflush(stdout);
    _exit(1);
}

static double difference(int which) {
    double wrong = 0, size = 0;
    for (int i = 0; i < 3 * (which == LARGE ? M_LARGE : N); ++i) {
        const double u = which == SINGLE ? velocities[i] : velocity[i], v = right[which == LARGE][i];
        wrong += (u - v) * (u - v), size += v * v;
    }
    return sqrt(wrong / size);
}

/* Everything once, allocation n of what follows the session (or of the session) failing; the status of the first call that failed. A plan that failed inside an evaluation must refuse the next. */
static wfmm_status everything(int which, long n) {
    wfmm_session_options so;
    wfmm_plan_options o;
    wfmm_session *session = NULL;
    wfmm_plan *plan = NULL;
    wfmm_status s, d;
    wfmm_session_options_init(&so, sizeof so);
    wfmm_plan_options_init(&o, sizeof o);
    so.backend = WFMM_BACKEND_CPU, so.threads = 2;
    o.method = which == DIRECT ? WFMM_METHOD_DIRECT : WFMM_METHOD_FMM, o.tolerance = 1e-3, o.leaf_capacity = which == LARGE ? 0 : 16;
    memset(velocity, 0, sizeof velocity), memset(velocities, 0, sizeof velocities);
    atomic_store(&seen, 0), atomic_store(&fail_at, which == SESSION ? n : 0);
    s = wfmm_session_create(&so, &session);
    if (which == SESSION) made = atomic_load(&seen), atomic_store(&fail_at, 0);
    else atomic_store(&seen, 0), atomic_store(&fail_at, n);
    if (!s) s = wfmm_plan_create(session, &o, &plan);
    if (which == SINGLE) {
        if (!s) s = wfmm_plan_set_particles_f32(plan, N, positions, strengths, NULL, 0);
        if (!s) s = wfmm_plan_set_targets_f32(plan, N, positions, 0);
    } else {
        if (!s) s = wfmm_plan_set_particles_f64(plan, which == LARGE ? N_LARGE : N, position, strength, NULL, 0);
        if (!s) s = wfmm_plan_set_targets_f64(plan, which == LARGE ? M_LARGE : N, position, 0);
    }
    need(s == 0 || (s >= 100 && s < 200), "a call before the evaluation must be one that can be tried again", n, s);
    if (!s) {
        s = which == SINGLE ? wfmm_plan_evaluate_f32(plan, velocities, NULL, 0) : wfmm_plan_evaluate_f64(plan, velocity, NULL, 0);
        need(s == 0 || s == WFMM_ERR_OUT_OF_MEMORY, "an evaluation is right or out of memory", n, s);
        d = s ? wfmm_plan_evaluate_f64(plan, velocity, NULL, 0) : WFMM_ERR_UNUSABLE;
        need(d == WFMM_ERR_UNUSABLE, "the plan must be unusable", n, d);
        need(s || difference(which) < 1e-3, "a wrong answer and no status", n, s);
    }
    d = wfmm_plan_destroy(&plan);
    need(d == 0 && !plan, "a plan must be destroyed", n, d);
    d = wfmm_session_destroy(&session);
    need(d == 0 && !session, "a session must be destroyed", n, d);
    atomic_store(&fail_at, 0);
    if (which != SESSION) made = atomic_load(&seen);
    return s;
}

/* The n-th allocation fails; the number of allocations that were seen. */
static long with_failure(int which, long n) {
    everything(which, n);
    const long all = made;
    const wfmm_status s = everything(which, 0);
    need(s == 0, "the next plan must be right", n, s);
    return all;
}

/* In a child of its own, because a first use happens once a process. Leaves: 0, 2 where fewer than n allocations were made, or
   1 after a failure. */
static int in_a_child(int which, long n, int later) {
    fflush(stdout);
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        alarm(300);
        if (later) everything(which, 0);
        for (; later; ++n) /* every allocation, both ways, until n is beyond the last */
            for (for_ever = 0; for_ever < 2; ++for_ever)
                if (with_failure(which, n) < n) printf("%s: %ld allocations of a later use", names[which], n - 1), exit(0);
        _exit(with_failure(which, n) < n ? 2 : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    if (WIFSIGNALED(status)) printf("%s, allocation %ld%s%s: the process ended by signal %d\n", names[which], n, for_ever ? " and all after it" : "", later ? " or after" : "", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The exact sum of the first n particles at the first m of their positions, by a plain loop. */
static void sum(int n, int m, double *to) {
    for (int k = 0; k < m; ++k)
        for (int j = 0; j < n; ++j) {
            const double *a = strength + 3 * j, *y = position + 3 * j, *x = position + 3 * k;
            const double d[3] = {x[0] - y[0], x[1] - y[1], x[2] - y[2]}, r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            const double f = r2 > 0 ? 1 / (4 * acos(-1.0) * r2 * sqrt(r2)) : 0;
            for (int i = 0; i < 3; ++i) to[3 * k + i] += f * (a[(i + 1) % 3] * d[(i + 2) % 3] - a[(i + 2) % 3] * d[(i + 1) % 3]);
        }
}
static void make_right(void) {
    uint32_t s = 1;
    for (int i = 0; i < 3 * N_LARGE; ++i) {
        position[i] = (float)((s = s * 1664525u + 1013904223u) >> 8) / 16777216;
        strength[i] = (float)((s = s * 1664525u + 1013904223u) >> 8) / 16777216 - 0.5f;
        if (i < 3 * N) positions[i] = (float)position[i], strengths[i] = (float)strength[i];
    }
    sum(N, N, right[0]);
    sum(N_LARGE, M_LARGE, right[1]);
}

int main(int argc, char **argv) {
    const long most = 1000000, step = argc > 1 ? atol(argv[1]) : 8;
    const int first = argc > 2 ? atoi(argv[2]) : 0;
    dl_iterate_phdr(find_library, NULL);
    if (!library_begin) return puts("libwakefmm is not loaded as a shared library"), 1;
    make_right();
    for (int which = first; which < CASES; ++which) {
        long tried = 0;
        int code = which == SESSION || which == LARGE ? 0 : in_a_child(which, 1, 1);
        /* A first use makes tables and measures the machine: coarser as the numbers grow, because each is a process. */
        for (long n = 1; n <= most && code == 0; n += which == SESSION ? 1 : 1 + n / (which == LARGE ? step : 16), ++tried)
            for (for_ever = 0; for_ever < 2 && code == 0; ++for_ever) code = in_a_child(which, n, 0);
        if (code == 1) return 1;
        printf("%s%s%ld of a first one: a status or the right answer\n", which == SESSION || which == LARGE ? names[which] : "", which == SESSION || which == LARGE ? ": " : ", ", tried);
    }
    return 0;
}
