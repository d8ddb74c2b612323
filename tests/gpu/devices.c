/* Sessions on several devices of one process: all that the machine has, or the only one twice. Fields against those of one device, with
 * host arrays, device arrays and changes from call to call, and the seconds of both. Needs a GPU; prints a line a case and "N passed, M
 * failed", exit code 1 when one failed. Arguments: particles, and targets. */
#include <math.h>
#include <string.h>
#include <time.h>
#include "gpu.h"

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double relative(const double *got, const double *want, size_t n) {
    double wrong = 0, all = 0;
    for (size_t i = 0; i < n; i++) wrong += (got[i] - want[i]) * (got[i] - want[i]), all += want[i] * want[i];
    return sqrt(wrong / all);
}

static wfmm_plan *plan(wfmm_session *s, int method, double tolerance, uint64_t flags) {
    wfmm_plan_options o;
    wfmm_plan *p = NULL;
    wfmm_plan_options_init(&o, sizeof o);
    o.method = method, o.tolerance = tolerance, o.flags = flags, o.core_radius = 0.003;
    expect(wfmm_plan_create(s, &o, &p) == 0, "plan");
    return p;
}

/* New sources and targets, three times, and then nothing new: the least seconds of each. */
static void run(wfmm_plan *p, int64_t n, const double *x, const double *a, int64_t m, const double *y, double *u, double *g, double *least) {
    least[0] = least[1] = 1e9;
    for (int k = 0; k < 6; k++) {
        const double begin = seconds();
        if (k < 3) {
            wfmm_plan_set_particles_f64(p, n, x, a, NULL, WFMM_MEMORY_HOST);
            wfmm_plan_set_targets_f64(p, m, y, WFMM_MEMORY_HOST);
        }
        if (wfmm_plan_evaluate_f64(p, u, g, WFMM_MEMORY_HOST)) expect(0, "evaluate");
        least[k / 3] = fmin(least[k / 3], seconds() - begin);
    }
}

int main(int argc, char **argv) {
    if (!open_driver()) { printf("no driver\n"); return 1; }
    const int64_t n = argc > 1 ? atoll(argv[1]) : 100000, m = argc > 2 ? atoll(argv[2]) : 150000;
    double *x = random_array(3 * n, 0, 1), *a = random_array(3 * n, -1, 1), *y = random_array(3 * m, 0, 1);
    double *u = malloc(24 * m), *g = malloc(72 * m), *v = malloc(24 * m), *h = malloc(72 * m);
    int count = 0;
    cu_count(&count);
    int32_t devices[64] = {0};
    wfmm_session_options o;
    wfmm_session *one = session(WFMM_BACKEND_CUDA, 0), *many = NULL;
    wfmm_session_options_init(&o, sizeof o);
    o.backend = WFMM_BACKEND_CUDA, o.n_devices = count > 1 ? count : 2, o.devices = devices;
    for (int k = 0; k < o.n_devices && k < 64; k++) devices[k] = k % count;
    expect(wfmm_session_create(&o, &many) == 0, "session");
    char text[8192];
    wfmm_session_describe(many, text, sizeof text, NULL);
    printf("%s\n", text);
    const struct { int method; double tolerance; const char *name; } cases[] = {
        {WFMM_METHOD_DIRECT, 1e-6, "direct sum"}, {WFMM_METHOD_FMM, 1e-3, "FMM, 1e-3"}, {WFMM_METHOD_FMM, 1e-6, "FMM, 1e-6"}};
    for (int c = 0; c < 3; c++)
        for (int slopes = 0; slopes < 2; slopes++) {
            double apart[2] = {0, 0}, alone[2], together[2];
            wfmm_plan *p = plan(one, cases[c].method, cases[c].tolerance, 0), *q = plan(many, cases[c].method, cases[c].tolerance, 0);
            run(p, n, x, a, m, y, u, slopes ? g : NULL, alone);
            run(q, n, x, a, m, y, v, slopes ? h : NULL, together);
            apart[0] = relative(v, u, 3 * m);
            if (slopes) apart[1] = relative(h, g, 9 * m) / 30;
            const double limit = cases[c].method == WFMM_METHOD_DIRECT ? 1e-12 : 2 * cases[c].tolerance;
            snprintf(text, sizeof text, "%s%s: %.1e, %.1e apart; new arrays %.2f ms, one device %.2f; nothing new %.2f, %.2f", cases[c].name,
                     slopes ? " with gradient" : "", apart[0], apart[1], 1e3 * together[0], 1e3 * alone[0], 1e3 * together[1], 1e3 * alone[1]);
            expect(apart[0] <= limit && apart[1] <= limit, text);
            double found = 1;
            expect(wfmm_plan_check_f64(q, 200, 7, &found) == 0 && found <= fmax(cases[c].tolerance, 1e-12), "check");
            wfmm_plan_destroy(&p), wfmm_plan_destroy(&q);
        }
    /* Arrays in memory of the first device, added to. */
    handle_t context = NULL;
    cu_retain(&context, 0);
    cu_set(context);
    const uint64_t dx = on_device(x, 24 * n), da = on_device(a, 24 * n), dy = on_device(y, 24 * m), du = on_device(u, 24 * m);
    wfmm_plan *q = plan(many, WFMM_METHOD_DIRECT, 1e-6, WFMM_FLAG_ACCUMULATE);
    expect(!wfmm_plan_set_particles_f64(q, n, (double *)dx, (double *)da, NULL, WFMM_MEMORY_DEVICE) &&
               !wfmm_plan_set_targets_f64(q, m, (double *)dy, WFMM_MEMORY_DEVICE) && !wfmm_plan_evaluate_f64(q, (double *)du, NULL, WFMM_MEMORY_DEVICE),
           "device arrays");
    cu_out(v, du, 24 * m);
    wfmm_plan *p = plan(one, WFMM_METHOD_DIRECT, 1e-6, WFMM_FLAG_ACCUMULATE);
    wfmm_plan_set_particles_f64(p, n, x, a, NULL, WFMM_MEMORY_HOST);
    wfmm_plan_set_targets_f64(p, m, y, WFMM_MEMORY_HOST);
    expect(wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST) == 0 && relative(v, u, 3 * m) < 1e-12, "added to device memory");
    wfmm_plan_destroy(&p), wfmm_plan_destroy(&q);
    wfmm_session_destroy(&one), wfmm_session_destroy(&many);
    return verdict();
}
