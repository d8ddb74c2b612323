/* Life with a GPU: device arrays, the caller's context, accumulation, repeated bits, threads, no growth, out of memory, a
 * kernel error. Needs a GPU; prints a line a case and "N passed, M failed", exit code 1 when one failed. */
#include <pthread.h>
#include <string.h>
#include "gpu.h"

#ifndef METHOD
#define METHOD WFMM_METHOD_DIRECT
#endif
#ifndef ROUNDS
#define ROUNDS 10000
#endif

static wfmm_plan *plan(wfmm_session *s, uint64_t flags) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = METHOD;
    o.core_radius = 0.01;
    o.flags = flags;
    wfmm_plan_create(s, &o, &p);
    return p;
}

struct work { wfmm_session *session; double *x, *a, *u; int n; wfmm_status status; };
static void *in_thread(void *argument) {
    struct work *w = argument;
    wfmm_plan *p = plan(w->session, 0);
    for (int i = 0; i < 20 && !w->status; i++) {
        w->status = wfmm_plan_set_particles_f64(p, w->n, w->x, w->a, NULL, WFMM_MEMORY_HOST);
        if (!w->status) w->status = wfmm_plan_set_targets_f64(p, w->n, w->x, WFMM_MEMORY_HOST);
        if (!w->status) w->status = wfmm_plan_evaluate_f64(p, w->u, NULL, WFMM_MEMORY_HOST);
    }
    wfmm_plan_destroy(&p);
    return NULL;
}

int main(void) {
    if (!open_driver()) { printf("no driver\n"); return 1; }
    const int n = 20000;
    const size_t bytes = 3 * n * sizeof(double);
    double *x = random_array(3 * n, 0, 1), *a = random_array(3 * n, 0, 1), *u = malloc(bytes), *g = malloc(3 * bytes), *v = malloc(bytes), *h = malloc(3 * bytes);
    wfmm_session *gpu = session(WFMM_BACKEND_CUDA, -1);
    handle_t current = (void *)1, mine = NULL;
    cu_get(&current);
    expect(current == NULL, "no context is left current after a session was made");

    wfmm_plan *p = plan(gpu, 0);
    wfmm_plan_set_particles_f64(p, n, x, a, NULL, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(p, n, x, WFMM_MEMORY_HOST);
    expect(wfmm_plan_evaluate_f64(p, u, g, WFMM_MEMORY_HOST) == 0, "host arrays");
    expect(wfmm_plan_evaluate_f64(p, v, h, WFMM_MEMORY_HOST) == 0 && !memcmp(u, v, bytes) && !memcmp(g, h, 3 * bytes), "the same bits again");

    cu_retain(&mine, 0);
    cu_set(mine);
    const uint64_t dx = on_device(x, bytes), da = on_device(a, bytes), du = on_device(NULL, bytes), dg = on_device(NULL, 3 * bytes);
    wfmm_plan *q = plan(gpu, 0);
    for (int memory = WFMM_MEMORY_DEVICE; memory <= WFMM_MEMORY_AUTO; memory++) {
        memset(v, 0, bytes);
        wfmm_status s = wfmm_plan_set_particles_f64(q, n, (double *)dx, (double *)da, NULL, memory);
        if (!s) s = wfmm_plan_set_targets_f64(q, n, (double *)dx, memory);
        if (!s) s = wfmm_plan_evaluate_f64(q, (double *)du, (double *)dg, memory);
        cu_out(v, du, bytes);
        cu_out(h, dg, 3 * bytes);
        expect(s == 0 && !memcmp(u, v, bytes) && !memcmp(g, h, 3 * bytes), memory == WFMM_MEMORY_DEVICE ? "device arrays" : "device arrays, memory asked of the driver");
    }
    cu_get(&current);
    expect(current == mine, "the caller's context is current again");
    expect(wfmm_plan_set_targets_f64(q, n, x, WFMM_MEMORY_DEVICE) == WFMM_ERR_MEMORY, "a host array said to be on the device is refused");
    expect(wfmm_plan_set_targets_f64(q, n, x, WFMM_MEMORY_AUTO) == 0 && wfmm_plan_evaluate_f64(q, v, NULL, WFMM_MEMORY_AUTO) == 0, "host and device arrays together");

    /* Without the gradient an FMM has another recipe: its velocities differ within the tolerance. */
    expect(wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST) == 0, "velocities alone");
    wfmm_plan *sum = plan(gpu, WFMM_FLAG_ACCUMULATE);
    wfmm_plan_set_particles_f64(sum, n, x, a, NULL, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(sum, n, x, WFMM_MEMORY_HOST);
    for (int i = 0; i < 3 * n; i++) v[i] = 1;
    wfmm_status s = wfmm_plan_evaluate_f64(sum, v, NULL, WFMM_MEMORY_HOST);
    double worst = 0;
    for (int i = 0; i < 3 * n; i++) { double d = v[i] - u[i] - 1; if (d * d > worst) worst = d * d; }
    expect(s == 0 && worst < 1e-18, "accumulation on the host");
    for (int i = 0; i < 3 * n; i++) v[i] = 1;
    cu_in(du, v, bytes);
    s = wfmm_plan_evaluate_f64(sum, (double *)du, NULL, WFMM_MEMORY_DEVICE);
    cu_out(v, du, bytes);
    worst = 0;
    for (int i = 0; i < 3 * n; i++) { double d = v[i] - u[i] - 1; if (d * d > worst) worst = d * d; }
    expect(s == 0 && worst < 1e-18, "accumulation on the device");

    struct work works[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        works[i] = (struct work){gpu, x, a, malloc(bytes), n, 0};
        pthread_create(&threads[i], NULL, in_thread, &works[i]);
    }
    int good = 1;
    for (int i = 0; i < 4; i++) { pthread_join(threads[i], NULL); good &= works[i].status == 0 && !memcmp(works[i].u, works[0].u, bytes); }
    expect(good, "four threads, a plan each");

    size_t free_before = 0, free_after = 0, total = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const int m = 500 + rand() % 3000, k = 500 + rand() % 3000;
        s = wfmm_plan_set_particles_f64(p, k, x, a, NULL, WFMM_MEMORY_HOST);
        if (!s) s = wfmm_plan_set_targets_f64(p, m, x, WFMM_MEMORY_HOST);
        if (!s) s = wfmm_plan_evaluate_f64(p, v, i % 3 ? NULL : h, WFMM_MEMORY_HOST);
        if (s) break;
        if (i == ROUNDS / 10) cu_info(&free_before, &total);
    }
    cu_info(&free_after, &total);
    printf("free device memory after %d and %d evaluations: %zu, %zu\n", ROUNDS / 10, ROUNDS, free_before, free_after);
    expect(s == 0 && free_after == free_before, "changing numbers, no growth of device memory");

    /* Full device. */
    uint64_t hog[400];
    int hogs = 0;
    for (size_t piece = (size_t)8 << 30; piece >= ((size_t)1 << 20); piece /= 2)
        while (hogs < 400 && cu_alloc(&hog[hogs], piece) == 0) hogs++;
    wfmm_session *automatic = session(WFMM_BACKEND_AUTO, -1);
    const int many = 400000;
    double *y = random_array(3 * many, 0, 1), *w = malloc(3 * many * sizeof(double));
    wfmm_plan_set_particles_f64(p, 100, x, a, NULL, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(p, many, y, WFMM_MEMORY_HOST);
    expect(wfmm_plan_evaluate_f64(p, w, NULL, WFMM_MEMORY_HOST) == WFMM_ERR_DEVICE_MEMORY, "a full device is status WFMM_ERR_DEVICE_MEMORY");
    wfmm_plan *r = plan(automatic, 0);
    wfmm_plan_set_particles_f64(r, 100, x, a, NULL, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(r, many, y, WFMM_MEMORY_HOST);
    expect(wfmm_plan_evaluate_f64(r, w, NULL, WFMM_MEMORY_HOST) == 0, "under AUTO the CPU takes over from a full device");
    while (hogs > 0) cu_free(hog[--hogs]);
    expect(wfmm_plan_evaluate_f64(p, w, NULL, WFMM_MEMORY_HOST) == 0, "the next call works when there is room again");

    /* Point numbers in device memory are not looked at: far outside they make a kernel fail. Last, for it breaks the context. */
    int32_t ends[2] = {0, 2000000000};
    double gamma = 1;
    const uint64_t de = on_device(ends, sizeof ends), dgamma = on_device(&gamma, sizeof gamma);
    wfmm_plan *broken = plan(gpu, 0);
    wfmm_plan_set_segments_f64(broken, n, (double *)dx, 1, 2, (int32_t *)de, (double *)dgamma, NULL, WFMM_MEMORY_DEVICE);
    wfmm_plan_set_targets_f64(broken, n, (double *)dx, WFMM_MEMORY_DEVICE);
    s = wfmm_plan_evaluate_f64(broken, v, NULL, WFMM_MEMORY_HOST);
    char text[500];
    wfmm_last_error(text, sizeof text, NULL);
    printf("status %d: %s\n", s, text);
    expect(s == WFMM_ERR_DEVICE_LOST || s == WFMM_ERR_INDEX, "an error in a kernel is a status");
    s = wfmm_plan_evaluate_f64(p, w, NULL, WFMM_MEMORY_HOST);
    wfmm_last_error(text, sizeof text, NULL);
    printf("next call: status %d: %s\n", s, text);
    wfmm_plan_set_targets_f64(r, many, y, WFMM_MEMORY_HOST);
    expect(wfmm_plan_evaluate_f64(r, w, NULL, WFMM_MEMORY_HOST) == 0, "under AUTO the CPU goes on");
    wfmm_plan_destroy(&p); wfmm_plan_destroy(&q); wfmm_plan_destroy(&r); wfmm_plan_destroy(&sum); wfmm_plan_destroy(&broken);
    wfmm_session_destroy(&gpu); wfmm_session_destroy(&automatic);
    cu_set(NULL);
    cu_release(0);
    /* The driver gives no second context to a process whose kernel has failed: a CUDA session says so, AUTO takes the CPU. */
    wfmm_session_options o;
    wfmm_session_options_init(&o, sizeof o);
    o.backend = WFMM_BACKEND_CUDA;
    expect(wfmm_session_create(&o, &gpu) != 0, "a new CUDA session says why not");
    gpu = session(WFMM_BACKEND_AUTO, -1);
    p = plan(gpu, 0);
    wfmm_plan_set_particles_f64(p, 1000, x, a, NULL, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(p, 1000, x, WFMM_MEMORY_HOST);
    expect(wfmm_plan_evaluate_f64(p, v, NULL, WFMM_MEMORY_HOST) == 0, "a new session under AUTO works");
    return verdict();
}
