/* Memory that runs out inside a flow: the n-th allocation of the library fails, once or from then on, for every n of adding elements
   and of a step, without narrower cores and with them. Leaves: 0 where every call returned a status, the flow was as before a call that failed, and the same call later
   gave the same bits as if nothing had been; else a line that says where. */
#include "failing_allocator.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wakefmm.h>

#ifndef ELEMENTS
#define ELEMENTS 600
#endif
enum { N = ELEMENTS, ROOM = 2 * N, SIDE = 5, CLOUD = SIDE * SIDE * SIDE };
static double cloud[3 * CLOUD], swirl[3 * CLOUD], wide[CLOUD], x[3 * N], a[3 * N], d[N], rho[N], now[8][3 * ROOM], before[8][3 * ROOM], right[8][3 * ROOM];
static int32_t ends[2 * N];
static long failing;
static int narrows;

static void need(int ok, const char *what, wfmm_status status) {
    char message[400] = "";
    if (ok) return;
    wfmm_last_error(message, sizeof message, NULL);
    printf("allocation %ld%s: %s (status %d: %s)\n", failing, for_ever ? " and all after it" : "", what, status, message);
    fflush(stdout);
    _exit(1);
}

/* Everything that the flow holds. */
static void take(wfmm_flow *f, double to[8][3 * ROOM]) {
    static const int32_t what[8][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 2}, {3, 0}, {4, 0}, {4, 3}, {0, 2}};
    memset(to, 0, sizeof now);
    for (int k = 0; k < 8; ++k) {
        const wfmm_status s = wfmm_flow_get_f64(f, what[k][0], what[k][1], ROOM, to[k], NULL, WFMM_MEMORY_HOST);
        need(s == 0, "a quantity", s);
    }
}

static wfmm_flow *flow(wfmm_session *session) {
    wfmm_plan_options p;
    wfmm_flow_options o;
    wfmm_flow *f = NULL;
    wfmm_plan_options_init(&p, sizeof p);
    wfmm_flow_options_init(&o, sizeof o);
    p.method = WFMM_METHOD_DIRECT, p.core_radius = 0.1;
    o.integrator = WFMM_INTEGRATOR_AB2, o.stretching = WFMM_STRETCHING_MIXED, o.fluid_viscosity = 1e-3, o.split_length = 0.0021;
    /* Cores of 0.5 are above the limit after two steps. */
    if (narrows) o.spreading = WFMM_SPREADING_CORES, o.viscosity = 14.3, o.core_limit = 0.55, o.split_length = 0;
    wfmm_status s = wfmm_flow_create(session, &p, &o, &f);
    if (!s && narrows) s = wfmm_flow_set_particles_f64(f, CLOUD, cloud, swirl, wide, WFMM_MEMORY_HOST);
    if (!s && !narrows) s = wfmm_flow_set_particles_f64(f, N / 10, x, a, NULL, WFMM_MEMORY_HOST);
    if (!s) s = wfmm_flow_set_filaments_f64(f, N, x, N / 10, 2, ends, d, NULL, WFMM_MEMORY_HOST);
    if (!s) s = wfmm_flow_set_tracers_f64(f, N, x, WFMM_MEMORY_HOST);
    if (!s) s = wfmm_flow_set_dust_f64(f, N, x, NULL, d, rho, WFMM_MEMORY_HOST);
    if (!s) s = wfmm_flow_advance(f, 1e-3, 2);
    need(s == 0, "a flow before memory runs out", s);
    return f;
}

/* The n-th allocation fails; the number of allocations that were seen. */
static long with_failure(wfmm_session *session, long n) {
    wfmm_flow *f = flow(session);
    take(f, before);
    atomic_store(&seen, 0), atomic_store(&fail_at, n);
    wfmm_status add = wfmm_flow_add_tracers_f64(f, N / 2, x, WFMM_MEMORY_HOST);
    wfmm_status step = add ? 0 : wfmm_flow_advance(f, 1e-3, 1);
    atomic_store(&fail_at, 0);
    const long all = atomic_load(&seen);
    int64_t tracers = 0;
    if (step >= 0) {
        wfmm_status s = wfmm_flow_counts(f, WFMM_KIND_TRACERS, &tracers, NULL);
        need(s == 0 && tracers == (add ? N : N + N / 2), "as many tracers as there were", s);
        need(add == 0 || add == WFMM_ERR_HOST_MEMORY, "what is added is there or was refused", add);
        need(step == 0 || step == WFMM_ERR_HOST_MEMORY, "a step is done or can be tried again", step);
        if (add || step) {
            take(f, now);
            for (int k = 0; k < 8; ++k) need(!memcmp(now[k], before[k], k == 4 ? 24 * N : sizeof now[k]), "the flow changed", step);
            if (add) add = wfmm_flow_add_tracers_f64(f, N / 2, x, WFMM_MEMORY_HOST);
            need(add == 0, "added later", add);
            step = wfmm_flow_advance(f, 1e-3, 1);
            need(step == 0, "a step later", step);
        }
        take(f, now);
        wfmm_diagnostics d = {.struct_size = sizeof d};
        const wfmm_status asked = wfmm_flow_diagnostics(f, &d);
        need(!asked && d.reinterpolations == narrows, "cores are narrowed once where they are", asked);
        if (n == 0) memcpy(right, now, sizeof right);
        need(!memcmp(now, right, sizeof right), "other numbers than without a failure", step);
    } else {
        need(step == WFMM_ERR_OUT_OF_MEMORY, "a step that spoils the flow says why", step);
    }
    need(wfmm_flow_destroy(&f) == 0, "a flow is destroyed", 0);
    return all;
}

int main(void) {
    wfmm_session_options o;
    wfmm_session *session = NULL;
    uint32_t s = 1;
    dl_iterate_phdr(find_library, NULL);
    if (!library_begin) return puts("libwakefmm is not loaded as a shared library"), 1;
    for (int i = 0; i < 3 * N; ++i) {
        x[i] = ((s = s * 1664525u + 1013904223u) >> 8) / 16777216.0;
        a[i] = ((s = s * 1664525u + 1013904223u) >> 8) / 16777216.0 - 0.5;
    }
    for (int i = 0; i < N; ++i) {
        d[i] = 0.01, rho[i] = 1000, ends[2 * i] = i, ends[2 * i + 1] = (i + 1) % N;
        if (i && i < N / 10 + 1) for (int k = 0; k < 3; ++k) x[3 * i + k] = x[3 * i + k - 3] + 0.002 / 1.8 * (k + 1) / 2;
    }
    for (int i = 0; i < CLOUD; ++i) {
        const int at[3] = {i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE};
        double *p = cloud + 3 * i, r2 = 0;
        for (int k = 0; k < 3; ++k) p[k] = 0.6 * (at[k] - 0.5 * (SIDE - 1)), r2 += p[k] * p[k];
        wide[i] = 0.5, swirl[3 * i] = -p[1] * 0.01 * exp(-4 * r2), swirl[3 * i + 1] = p[0] * 0.01 * exp(-4 * r2);
    }
    wfmm_session_options_init(&o, sizeof o);
    o.backend = WFMM_BACKEND_CPU, o.threads = 2;
    if (wfmm_session_create(&o, &session)) return puts("no session"), 1;
    int few = 0;
    for (narrows = 0; narrows < 2; ++narrows) {
        failing = 0, for_ever = 0;
        with_failure(session, 0);
        for (failing = 1;; ++failing) {
            long all = 0;
            for (for_ever = 0; for_ever < 2; ++for_ever) all = with_failure(session, failing);
            if (all < failing) break;
        }
        printf("flow%s: %ld allocations, a status and an unchanged flow, or the right answer\n", narrows ? " with narrower cores" : "", failing - 1);
        few |= failing < 20;
    }
    wfmm_session_destroy(&session);
    return few;
}
