/* Work beside the host's on a GPU: asynchronous evaluations, registered arrays, the caller's stream, and (with a second GPU)
 * two sessions on two devices in one process. Needs a GPU; exit code 1 when a case failed. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "gpu.h"

enum { N = 300000 };
static const size_t bytes = 3 * (size_t)N * sizeof(double);
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }

static wfmm_plan *plan(wfmm_session *s, int method) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = method; o.core_radius = 0.002;
    wfmm_plan_create(s, &o, &p);
    return p;
}
static int fill(wfmm_plan *p, const double *x, const double *a, int memory) {
    return wfmm_plan_set_particles_f64(p, N, x, a, NULL, memory) || wfmm_plan_set_targets_f64(p, N, x, memory);
}

static void asynchronous(wfmm_session *s, int method, const double *x, const double *a) {
    double *u = malloc(bytes), *v = malloc(bytes), sum = 0;
    wfmm_plan *p = plan(s, method);
    printf("%s\n", method == WFMM_METHOD_FMM ? "FMM" : "direct");
    expect(!fill(p, x, a, WFMM_MEMORY_HOST) && !wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST), "an evaluation to compare with");
    fill(p, x, a, WFMM_MEMORY_HOST);
    double begin = now();
    wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST);
    const double alone = now() - begin;
    begin = now();
    while (now() - begin < alone) for (int i = 0; i < 1000; i++) sum += x[i];
    fill(p, x, a, WFMM_MEMORY_HOST);
    memset(v, 0, bytes);
    begin = now();
    const wfmm_status started = wfmm_plan_evaluate_async_f64(p, v, NULL, WFMM_MEMORY_HOST);
    const double returned = now() - begin;
    const wfmm_status busy = wfmm_plan_evaluate_f64(p, v, NULL, WFMM_MEMORY_HOST), busy_set = wfmm_plan_set_targets_f64(p, N, x, WFMM_MEMORY_HOST);
    while (now() - begin < alone) for (int i = 0; i < 1000; i++) sum += x[i];
    const wfmm_status waited = wfmm_plan_wait(p);
    const double both = now() - begin;
    expect(started == 0 && waited == 0 && !memcmp(u, v, bytes), "asynchronous: the same bits");
    expect(busy == WFMM_ERR_BUSY && busy_set == WFMM_ERR_BUSY, "asynchronous: the plan is busy between");
    printf("evaluation alone %.2f ms; async returned after %.2f ms; with as much work of the host beside it %.2f ms (sum %.0f)\n", 1e3 * alone, 1e3 * returned, 1e3 * both, sum);
    expect(returned < 0.5 * alone && both < 1.7 * alone, "asynchronous: the host works meanwhile");
    expect(!wfmm_plan_wait(p), "waiting again is no error");
    wfmm_plan_destroy(&p);
    free(u); free(v);
}

static void registered(wfmm_session *s, const double *x, const double *a) {
    double *u = malloc(bytes), *v = malloc(bytes), plain = 1e9, locked = 1e9;
    wfmm_plan *p = plan(s, WFMM_METHOD_FMM);
    for (int k = 0; k < 10; k++) {
        fill(p, x, a, WFMM_MEMORY_HOST);
        const double begin = now();
        wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST);
        if (now() - begin < plain) plain = now() - begin;
    }
    expect(!wfmm_session_register(s, v, (int64_t)bytes), "an array is registered");
    expect(wfmm_session_register(s, v, (int64_t)bytes) != 0, "a second time is an error");
    wfmm_status status = 0;
    for (int k = 0; k < 10; k++) {
        fill(p, x, a, WFMM_MEMORY_HOST);
        const double begin = now();
        status |= wfmm_plan_evaluate_f64(p, v, NULL, WFMM_MEMORY_HOST);
        if (now() - begin < locked) locked = now() - begin;
    }
    printf("evaluation %.2f ms, into the registered array %.2f ms\n", 1e3 * plain, 1e3 * locked);
    expect(status == 0 && !memcmp(u, v, bytes), "registered: the same bits");
    /* An output that begins in the registered part and ends behind it. */
    double *w = malloc(2 * bytes);
    expect(!wfmm_session_register(s, w, (int64_t)bytes / 2) && !wfmm_plan_evaluate_f64(p, w, NULL, WFMM_MEMORY_HOST) && !memcmp(u, w, bytes), "half registered: the same bits");
    expect(!wfmm_session_unregister(s, v) && !wfmm_session_unregister(s, w) && wfmm_session_unregister(s, v) != 0, "unregistered, once");
    wfmm_plan_destroy(&p);
    free(u); free(v); free(w);
}

static void streams(wfmm_session *s, const double *x, const double *a) {
    double *u = malloc(bytes), *v = malloc(bytes);
    wfmm_plan *p = plan(s, WFMM_METHOD_FMM);
    fill(p, x, a, WFMM_MEMORY_HOST);
    wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST);
    handle_t context, before, after, stream;
    uint64_t from = 0, dx = 0, da = 0, hog = 0;
    const size_t much = (size_t)4 << 30;
    cu_retain(&context, 0); cu_set(context);
    if (cu_alloc(&from, bytes) || cu_alloc(&dx, bytes) || cu_alloc(&da, bytes) || cu_alloc(&hog, much) || cu_stream(&stream, 1)) { printf("no device memory\n"); exit(1); }
    cu_in(from, x, bytes); cu_in(da, a, bytes);
    cu_get(&before);
    wfmm_plan *q = plan(s, WFMM_METHOD_FMM);
    /* CU_STREAM_PER_THREAD, which is another queue on every thread. */
    const handle_t per_thread = (handle_t)2;
    for (int ordered = 0; ordered < 4; ordered++) {
        /* Positions become right some 100 ms after this: who does not wait for the stream sums the wrong ones. */
        const handle_t queue = ordered == 3 ? per_thread : stream;
        cu_copy(dx, da, bytes, queue);
        for (int k = 0; k < 100; k++) cu_clear(hog, (unsigned char)k, much, queue);
        cu_copy(dx, from, bytes, queue);
        wfmm_plan_set_stream(q, ordered ? queue : NULL);
        int status = fill(q, (double *)dx, (double *)da, WFMM_MEMORY_DEVICE);
        status |= ordered < 2 ? wfmm_plan_evaluate_f64(q, v, NULL, WFMM_MEMORY_HOST) : wfmm_plan_evaluate_async_f64(q, v, NULL, WFMM_MEMORY_HOST);
        status |= wfmm_plan_wait(q);
        if (ordered == 0) expect(status == 0 && memcmp(u, v, bytes), "without set_stream they do not: the case can fail");
        if (ordered == 1) expect(status == 0 && !memcmp(u, v, bytes), "evaluations begin after the work of the caller's stream");
        if (ordered == 2) expect(status == 0 && !memcmp(u, v, bytes), "so do those beside the host's work");
        if (ordered == 3) expect(status == 0 && !memcmp(u, v, bytes), "and after that of the calling thread's own stream");
    }
    cu_get(&after);
    expect(before == after, "the caller's context is current again");
    wfmm_plan_destroy(&p); wfmm_plan_destroy(&q);
    free(u); free(v);
}

struct work { wfmm_session *s; const double *x, *a; double *u, seconds; wfmm_status status; };
static void *in_thread(void *argument) {
    struct work *w = argument;
    wfmm_plan *p = plan(w->s, WFMM_METHOD_FMM);
    const double begin = now();
    for (int k = 0; k < 50 && !w->status; k++) w->status = fill(p, w->x, w->a, WFMM_MEMORY_HOST) || wfmm_plan_evaluate_f64(p, w->u, NULL, WFMM_MEMORY_HOST);
    w->seconds = now() - begin;
    wfmm_plan_destroy(&p);
    return NULL;
}

static void two_devices(wfmm_session *first, const double *x, const double *a) {
    wfmm_session *second = session(WFMM_BACKEND_CUDA, 1);
    char line[400];
    wfmm_session_describe(second, line, sizeof line, NULL);
    printf("%s\n", line);
    struct work w[2] = {{first, x, a, malloc(bytes), 0, 0}, {second, x, a, malloc(bytes), 0, 0}};
    in_thread(&w[0]); in_thread(&w[1]); in_thread(&w[0]); in_thread(&w[1]);
    const double alone = w[0].seconds + w[1].seconds;
    expect(!w[0].status && !w[1].status && !memcmp(w[0].u, w[1].u, bytes), "two devices in turn: the same bits");
    pthread_t threads[2];
    memset(w[0].u, 0, bytes); memset(w[1].u, 0, bytes);
    const double begin = now();
    for (int k = 0; k < 2; k++) pthread_create(&threads[k], NULL, in_thread, &w[k]);
    for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    const double together = now() - begin;
    printf("50 evaluations on each: in turn %.0f ms, at once %.0f ms\n", 1e3 * alone, 1e3 * together);
    expect(!w[0].status && !w[1].status && !memcmp(w[0].u, w[1].u, bytes), "two devices at once: the same bits");
    expect(together < 0.8 * alone, "two devices at once: faster than in turn");
    /* One thread, two plans that take turns, asynchronous both. */
    wfmm_plan *p = plan(first, WFMM_METHOD_FMM), *q = plan(second, WFMM_METHOD_FMM);
    memset(w[1].u, 0, bytes);
    int bad = fill(p, x, a, WFMM_MEMORY_HOST) || fill(q, x, a, WFMM_MEMORY_HOST);
    bad |= wfmm_plan_evaluate_async_f64(p, w[0].u, NULL, WFMM_MEMORY_HOST) || wfmm_plan_evaluate_async_f64(q, w[1].u, NULL, WFMM_MEMORY_HOST);
    bad |= wfmm_plan_wait(q) || wfmm_plan_wait(p);
    expect(!bad && !memcmp(w[0].u, w[1].u, bytes), "one thread, an asynchronous evaluation on each device");
    handle_t context;
    uint64_t there = 0;
    cu_retain(&context, 1); cu_set(context);
    cu_alloc(&there, bytes);
    expect(wfmm_plan_set_targets_f64(p, N, (double *)there, WFMM_MEMORY_DEVICE) == WFMM_ERR_MEMORY, "an array of the other device is refused");
    expect(!wfmm_plan_set_targets_f64(q, N, (double *)there, WFMM_MEMORY_DEVICE), "and taken by its own session");
    handle_t after;
    cu_get(&after);
    expect(after == context, "the caller's context is current again");
    wfmm_plan_destroy(&p); wfmm_plan_destroy(&q);
    wfmm_session_destroy(&second);
}

int main(void) {
    int count = 0;
    if (!open_driver()) { printf("no driver\n"); return 1; }
    cu_count(&count);
    double *x = random_array(3 * (size_t)N, 0, 1), *a = random_array(3 * (size_t)N, 0, 1);
    wfmm_session *s = session(WFMM_BACKEND_CUDA, 0);
    if (count > 1) two_devices(s, x, a); else printf("one device: nothing said about two\n");
    asynchronous(s, WFMM_METHOD_FMM, x, a);
    asynchronous(s, WFMM_METHOD_DIRECT, x, a);
    registered(s, x, a);
    streams(s, x, a);
    wfmm_session_destroy(&s);
    return verdict();
}
