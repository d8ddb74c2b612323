/* Hostile callers: random sequences of calls with counts, constants, NaN, denormals, 1e±300, overlapping arrays and dead handles;
   then strange rounding, flushed denormals, a stack of 256 KB, fork(), and evaluations with changing N that must not grow.
   Enters: number of sequences, number of evaluations (0 under a sanitizer, whose own memory grows). Leaves: 0, or a line that
   says what went wrong. */
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wakefmm.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { ROOM = 96 };
static uint64_t state;
static uint64_t next(void) { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; }
static uint64_t below(uint64_t n) { return next() % n; }

static double number(void) {
    static const double odd[] = {0, -0.0, 1e300, -1e300, 1e-300, 5e-324, 1e-38, 3e38, 1, -1};
    switch (below(12)) {
    case 0: return below(4) ? 0.25 : NAN;
    case 1: return below(4) ? -0.5 : INFINITY;
    case 2: return odd[below(10)];
    default: return (double)below(2001) / 1000 - 1;
    }
}
static int64_t count(void) {
    static const int64_t odd[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX / 3, (int64_t)1 << 31, (int64_t)1 << 40};
    /* A huge count is refused before an array is looked at; those that are not refused fit. */
    return below(10) ? (int64_t)below(ROOM / 3) : odd[below(6)];
}
static int32_t constant(void) { return below(8) ? (int32_t)below(13) : (int32_t)(next() << 1); }

static double real[4][3 * ROOM], velocity[3 * ROOM], gradient[9 * ROOM];
static float single[3 * ROOM];
static int32_t ends[4 * ROOM];
static wfmm_plan *plan;
static wfmm_session *session;

/* The classes of a status; an internal error is a defect whatever was passed. */
static void judge(const char *call, wfmm_status s) {
    char message[600];
    if (s == WFMM_OK || (s > 0 && s < 200) || s == WFMM_ERR_UNUSABLE) return;
    wfmm_last_error(message, sizeof message, NULL);
    printf("%s: status %d, %s\n", call, (int)s, message);
    exit(1);
}
#define DO(call) judge(#call, call)
#define MAYBE(p) (below(16) ? (p) : NULL)

static void one_call(void) {
    const int64_t n = count(), m = count();
    const int32_t memory = below(12) ? WFMM_MEMORY_HOST : constant();
    char text[64];
    wfmm_plan_options o;
    switch (below(14)) {
    case 0:
        DO(wfmm_plan_options_init(&o, sizeof o));
        if (below(3)) o.method = constant(), o.segment_regularization = constant(), o.particle_regularization = constant();
        if (below(3) == 0) o.tolerance = number(), o.normalization = number(), o.core_radius = number();
        if (below(3) == 0) o.order = constant(), o.leaf_capacity = constant(), o.precision = constant(), o.flags = below(4);
        if (below(9) == 0) o.struct_size = (uint32_t)below(sizeof o + 1);
        o.index_base = (int32_t)below(3);
        DO(wfmm_plan_destroy(&plan));
        DO(wfmm_plan_create(below(9) ? session : (wfmm_session *)(size_t)(below(4) * 16), &o, &plan));
        break;
    case 1:
    case 2: DO(wfmm_plan_set_segments_f64(plan, n, MAYBE(real[0]), m < 0 ? m : below(9) ? m % (ROOM / 3) : m, below(9) ? 2 + (int64_t)below(3) : count(), MAYBE(ends), MAYBE(real[2]), MAYBE(real[3]), memory)); break;
    case 3: DO(wfmm_plan_set_particles_f64(plan, n, MAYBE(real[0]), MAYBE(real[1]), MAYBE(real[3]), memory)); break;
    case 4: DO(wfmm_plan_set_particles_f32(plan, n, MAYBE(single), MAYBE(single), MAYBE(single), memory)); break;
    case 5: DO(wfmm_plan_set_charges_f64(plan, n, MAYBE(real[0]), MAYBE(real[2]), memory)); break;
    case 6: DO(wfmm_plan_set_strengths_f64(plan, n, MAYBE(real[2]), m, MAYBE(real[1]), n, NULL, memory)); break;
    case 7:
    case 8: DO(wfmm_plan_set_targets_f64(plan, n, MAYBE(real[below(3)]), memory)); break;
    case 9: DO(wfmm_plan_evaluate_f64(plan, MAYBE(velocity), below(2) ? (below(9) ? gradient : velocity + 3) : NULL, memory)); break;
    case 10: DO(wfmm_plan_evaluate_potential_f64(plan, MAYBE(velocity), MAYBE(gradient), memory)); break;
    case 11: DO(wfmm_plan_check_f64(plan, count(), next(), MAYBE(velocity))); break;
    case 12: DO(wfmm_plan_recipe(plan, text, below(sizeof text + 1), NULL)); break;
    default: {
        wfmm_plan *dead = plan;
        if (below(6)) break;
        DO(wfmm_plan_destroy(&plan));
        if (dead && wfmm_plan_prepare(dead) != WFMM_ERR_HANDLE) puts("a dead handle was taken"), exit(1);
    }
    }
}

static void fill(void) {
    for (int a = 0; a < 4; ++a)
        for (int i = 0; i < 3 * ROOM; ++i) real[a][i] = below(3) ? (double)below(2001) / 1000 : below(60) ? 0.5 : number();
    for (int i = 0; i < 3 * ROOM; ++i) single[i] = (float)real[0][i];
    for (int i = 0; i < 4 * ROOM; ++i) ends[i] = below(200) ? (int32_t)below(4) : constant();
}

/* A right answer, whatever the caller did to his thread: one particle at a known position. */
static int right(void) {
    const double x[3] = {0, 0, 0}, a[3] = {0, 0, 1}, y[3] = {2, 0, 0};
    double u[3] = {9, 9, 9};
    const wfmm_status s = wfmm_induce_particles_f64(1, x, a, NULL, 1, y, NULL, u, NULL);
    return s == WFMM_OK && fabs(u[1] - 0.25 / (4 * acos(-1.0))) < 1e-15 && u[0] == 0 && u[2] == 0;
}
static void *in_a_small_stack(void *ok) { return *(int *)ok = right(), NULL; }

static void need(int ok, const char *what) {
    if (!ok) printf("wrong: %s\n", what), exit(1);
}

static long resident(void) {
    long pages = 0, all;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return pages * 4;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* `times` evaluations with changing N; growth in KiB over the last nine tenths, microseconds an evaluation in the second
   and in the last tenth. */
static long growth(int times, double *early_us, double *late_us) {
    const int tenth = times / 10;
    long early = 0;
    double start = 0;
    wfmm_plan *p = NULL;
    need(wfmm_plan_create(session, NULL, &p) == WFMM_OK, "create");
    for (int i = 0; i < 3 * ROOM; ++i) real[0][i] = (double)below(1000), real[1][i] = 1;
    for (int i = 0; i < times; ++i) {
        const int64_t n = 1 + (int64_t)below(ROOM);
        need(wfmm_plan_set_particles_f64(p, n, real[0], real[1], NULL, 0) == WFMM_OK, "particles");
        need(wfmm_plan_set_targets_f64(p, n, real[0], 0) == WFMM_OK, "targets");
        need(wfmm_plan_evaluate_f64(p, velocity, NULL, 0) == WFMM_OK, "evaluate");
        if (i == tenth) early = resident(), start = seconds();
        if (i == 2 * tenth) *early_us = 1e6 * (seconds() - start) / tenth;
        if (i == times - tenth - 1) start = seconds();
    }
    *late_us = 1e6 * (seconds() - start) / tenth;
    wfmm_plan_destroy(&p);
    return resident() - early;
}

int main(int argc, char **argv) {
    const long sequences = argc > 1 ? atol(argv[1]) : 2000;
    const int evaluations = argc > 2 ? atoi(argv[2]) : 10000;
    wfmm_session_options so;
    wfmm_plan_options o;
    pthread_attr_t attributes;
    pthread_t thread;
    int ok = 0, status = 0;
    DO(wfmm_session_options_init(&so, sizeof so));
    so.backend = WFMM_BACKEND_CPU, so.threads = 2;
    DO(wfmm_session_create(&so, &session));

    for (long s = 0; s < sequences; ++s) {
        state = (uint64_t)s * 2654435761u + 12345;
        fill();
        for (int i = 0; i < 24; ++i) one_call();
        wfmm_plan_destroy(&plan);
    }
    need(right(), "after the sequences");

    fesetround(FE_UPWARD);
    need(right() && fegetround() == FE_UPWARD, "rounding upwards");
    fesetround(FE_TONEAREST);
#if defined(__x86_64__)
    uint16_t x87, single_x87, after;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    single_x87 = x87 & ~0x300u; /* significands of 24 bits, as some compilers of games and drivers leave them */
    __asm__ volatile("fldcw %0" : : "m"(single_x87));
    ok = right();
    __asm__ volatile("fnstcw %0" : "=m"(after));
    __asm__ volatile("fldcw %0" : : "m"(x87));
    need(ok && after == single_x87, "x87 in single precision");
    ok = 0;
    _mm_setcsr(_mm_getcsr() | 0x8040);
    need(right() && (_mm_getcsr() & 0x8040) == 0x8040, "denormals flushed");
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    need(!pthread_create(&thread, &attributes, in_a_small_stack, &ok) && !pthread_join(thread, NULL) && ok, "a stack of 256 KB");

    /* While an evaluation is under way. */
    static double many[30000], to[30000];
    wfmm_plan *busy = NULL;
    for (int i = 0; i < 30000; i++) many[i] = (double)below(1000);
    DO(wfmm_plan_options_init(&o, sizeof o));
    o.method = WFMM_METHOD_DIRECT;
    need(wfmm_plan_create(session, &o, &busy) == WFMM_OK && wfmm_plan_set_particles_f64(busy, 10000, many, many, NULL, 0) == WFMM_OK &&
         wfmm_plan_set_targets_f64(busy, 10000, many, 0) == WFMM_OK && wfmm_plan_evaluate_async_f64(busy, to, NULL, 0) == WFMM_OK, "begin");
    const pid_t child = fork();
    if (child == 0) {
        wfmm_session *own = NULL;
        alarm(60);
        if (wfmm_plan_wait(busy) != WFMM_ERR_FORKED || wfmm_plan_destroy(&busy) != WFMM_OK) _exit(1);
        _exit(wfmm_plan_create(session, NULL, &plan) < 0 && wfmm_session_create(&so, &own) == WFMM_OK && right() ? 0 : 1);
    }
    need(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "fork()");
    need(wfmm_plan_wait(busy) == WFMM_OK && wfmm_plan_destroy(&busy) == WFMM_OK, "the parent of a fork");

    double early = 0, late = 0;
    const long grown = evaluations < 10 ? 0 : growth(evaluations, &early, &late);
    if (grown >= 2048) printf("%ld KiB more after %d evaluations: memory grows\n", grown, evaluations), exit(1);
    /* Other programs may run beside this one. */
    if (late > 5 * early) printf("%.0f us an evaluation at first, %.0f at last: time grows\n", early, late), exit(1);
    wfmm_session_destroy(&session);
    printf("%ld sequences of 24 calls: no crash, no internal error; %d evaluations with changing N: %ld KiB more, %.0f us each at first, %.0f at last\n",
           sequences, evaluations, grown, early, late);
    return 0;
}
