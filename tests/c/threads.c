/* Threads: a second caller of a plan is told BUSY; eight threads with a plan each get right answers; a forked child makes
   its own session. Twin of the second part: tests/fortran/threads.f90. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#ifdef UNDER_CHECKER /* valgrind is some fifty times slower */
enum { N = 5000, THREADS = 8, SMALL = 60, ROUNDS = 2 };
#else
enum { N = 20000, THREADS = 8, SMALL = 400, ROUNDS = 10 };
#endif
static double position[3 * N], strength[3 * N], velocity[3 * N];
static volatile int started = 0, ended = 0;
static wfmm_plan *shared = NULL;

static void fill(double *x, int n, uint64_t state) {
    for (int i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (double)(state >> 11) / 9007199254740992.0;
    }
}

static void *evaluate_long(void *status) {
    __atomic_store_n(&started, 1, __ATOMIC_SEQ_CST);
    *(wfmm_status *)status = wfmm_plan_evaluate_f64(shared, velocity, NULL, WFMM_MEMORY_HOST);
    __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void a_second_caller_is_told_busy(void) {
    wfmm_plan_options o;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.method = WFMM_METHOD_DIRECT;
    OK(wfmm_plan_create(NULL, &o, &shared));
    fill(position, 3 * N, 1), fill(strength, 3 * N, 2);
    OK(wfmm_plan_set_particles_f64(shared, N, position, strength, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(shared, N, position, WFMM_MEMORY_HOST));
    pthread_t thread;
    wfmm_status first = -99;
    CHECK(pthread_create(&thread, NULL, evaluate_long, &first) == 0);
    while (!__atomic_load_n(&started, __ATOMIC_SEQ_CST)) usleep(100);
    int busy = 0;
    while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) {
        int64_t n = 0;
        wfmm_plan *copy = shared;
        if (wfmm_plan_counts(shared, NULL, NULL, NULL, &n) == WFMM_ERR_BUSY) {
            busy++;
            CHECK(n == 0 && strstr(last_error(), "another thread"));
            wfmm_status s = wfmm_plan_destroy(&copy);
            CHECK(s == WFMM_ERR_BUSY && copy == shared);
            if (s == WFMM_OK) break;
        }
        usleep(2000);
    }
    pthread_join(thread, NULL);
    CHECK(busy > 0);
    CHECK(first == WFMM_OK);
    OK(wfmm_plan_destroy(&shared));
}

/* Plan k: sources of its own, some evaluations, each compared with a sum of its own. */
static void *work(void *number) {
    int failed = 0, k = (int)(intptr_t)number;
    double x[3 * SMALL], a[3 * SMALL], u[3 * SMALL];
    wfmm_plan *p = NULL;
    failed += wfmm_plan_create(NULL, NULL, &p) != WFMM_OK;
    for (int round = 0; round < ROUNDS; round++) {
        int n = SMALL - 5 * round;
        fill(x, 3 * n, 100u * (uint64_t)k + (uint64_t)round), fill(a, 3 * n, 7u * (uint64_t)k + 3);
        failed += wfmm_plan_set_particles_f64(p, n, x, a, NULL, WFMM_MEMORY_HOST) != WFMM_OK;
        failed += wfmm_plan_set_targets_f64(p, n, x, WFMM_MEMORY_HOST) != WFMM_OK;
        failed += wfmm_plan_evaluate_f64(p, u, NULL, WFMM_MEMORY_HOST) != WFMM_OK;
        double error = 0, norm = 0;
        for (int t = 0; t < n; t++) {
            double w[3] = {0, 0, 0};
            for (int j = 0; j < n; j++) {
                double d[3] = {x[3 * t] - x[3 * j], x[3 * t + 1] - x[3 * j + 1], x[3 * t + 2] - x[3 * j + 2]};
                double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                double s = r2 > 0 ? 0.25 / 3.14159265358979323846 / (r2 * sqrt(r2)) : 0;
                w[0] += s * (a[3 * j + 1] * d[2] - a[3 * j + 2] * d[1]);
                w[1] += s * (a[3 * j + 2] * d[0] - a[3 * j] * d[2]);
                w[2] += s * (a[3 * j] * d[1] - a[3 * j + 1] * d[0]);
            }
            for (int i = 0; i < 3; i++) error += pow(u[3 * t + i] - w[i], 2), norm += w[i] * w[i];
        }
        failed += !(sqrt(error / norm) <= 1e-4);
    }
    /* this thread's message is its own */
    char want[32];
    snprintf(want, sizeof want, "n = -%d;", k + 1);
    failed += wfmm_plan_set_targets_f64(p, -(k + 1), x, WFMM_MEMORY_HOST) != WFMM_ERR_COUNT;
    failed += strstr(last_error(), want) == NULL;
    failed += wfmm_plan_destroy(&p) != WFMM_OK;
    return (void *)(intptr_t)failed;
}

static void eight_threads_with_a_plan_each(void) {
    pthread_t threads[THREADS];
    for (int k = 0; k < THREADS; k++) CHECK(pthread_create(&threads[k], NULL, work, (void *)(intptr_t)k) == 0);
    for (int k = 0; k < THREADS; k++) {
        void *failed;
        pthread_join(threads[k], &failed);
        CHECK(failed == NULL);
    }
}

static void a_small_stack_is_enough(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *failed;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    CHECK(pthread_create(&thread, &attributes, work, (void *)(intptr_t)3) == 0);
    pthread_join(thread, &failed);
    CHECK(failed == NULL);
}

/* A callback, inside which its flow is in use, whose child asks for that flow. */
static int32_t ask_in_a_child(double time, int64_t n, const double *x, double *u, int32_t memory, void *stream, void *flow) {
    (void)time, (void)n, (void)x, (void)u, (void)memory, (void)stream;
    double t;
    wfmm_flow *f = *(wfmm_flow **)flow;
    EXPECT(wfmm_flow_time(f, &t, NULL), WFMM_ERR_BUSY, "callback");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(wfmm_flow_time(f, &t, NULL) != WFMM_ERR_FORKED || wfmm_flow_destroy(&f) != WFMM_OK);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
}

#ifdef UNDER_CHECKER
__attribute__((unused))
#endif
static void a_flow_in_use_is_told_to_a_forked_child(void) {
    const double x[3] = {0, 0, 0};
    wfmm_flow_options o;
    wfmm_flow *f = NULL;
    OK(wfmm_flow_options_init(&o, sizeof o));
    o.integrator = WFMM_INTEGRATOR_EULER;
    OK(wfmm_flow_create(NULL, NULL, &o, &f));
    OK(wfmm_flow_set_tracers_f64(f, 1, x, WFMM_MEMORY_HOST));
    OK(wfmm_flow_set_velocity_callback(f, ask_in_a_child, &f));
    OK(wfmm_flow_advance(f, 0.1, 1));
    OK(wfmm_flow_destroy(&f));
}

#ifdef UNDER_CHECKER
__attribute__((unused))
#endif
static void a_forked_child_makes_its_own_session(void) {
    const double x[6] = {0, 0, 0, 1, 0, 0}, a[6] = {0, 0, 1, 0, 0, 1};
    wfmm_session *s = NULL;
    wfmm_plan *p = NULL, *busy = NULL;
    double v[6];
    int64_t n;
    OK(wfmm_session_create(NULL, &s));
    OK(wfmm_plan_create(s, NULL, &p));
    /* a plan that is under way: its lock and its thread are the parent's */
    OK(wfmm_plan_create(s, NULL, &busy));
    OK(wfmm_plan_set_particles_f64(busy, 2, x, a, NULL, WFMM_MEMORY_HOST));
    OK(wfmm_plan_set_targets_f64(busy, 2, x, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_async_f64(busy, v, NULL, WFMM_MEMORY_HOST));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        double u[6];
        int bad = wfmm_plan_set_targets_f64(p, 2, x, WFMM_MEMORY_HOST) != WFMM_ERR_FORKED;
        bad += wfmm_plan_counts(busy, NULL, NULL, NULL, &n) != WFMM_ERR_FORKED;
        bad += wfmm_plan_wait(busy) != WFMM_ERR_FORKED;
        bad += wfmm_plan_destroy(&busy) != WFMM_OK;
        bad += wfmm_plan_destroy(&p) != WFMM_OK;
        bad += wfmm_session_destroy(&s) != WFMM_OK;
        bad += wfmm_induce_particles_f64(2, x, a, NULL, 2, x, NULL, u, NULL) != WFMM_OK; /* the default session, anew */
        bad += !(fabs(u[4] - 0.25 / 3.14159265358979323846) < 1e-5);
        _exit(bad);
    }
    int status = -1;
    alarm(60);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(wfmm_plan_counts(busy, NULL, NULL, NULL, &n), WFMM_ERR_BUSY, "wfmm_plan_wait");
    EXPECT(wfmm_plan_destroy(&busy), WFMM_ERR_BUSY, "wfmm_plan_wait");
    OK(wfmm_plan_wait(busy));
    OK(wfmm_plan_counts(busy, NULL, NULL, NULL, &n));
    CHECK(n == 2);
    OK(wfmm_plan_destroy(&busy));
    OK(wfmm_plan_destroy(&p));
    OK(wfmm_session_destroy(&s));
}

/* Threads of a session that asks for none in particular, under these variables (NULL: unset). */
static int threads_under(const char *own, const char *openmp) {
    wfmm_session_options o;
    wfmm_session *session = NULL;
    char line[256];
    int threads = -1;
    own ? setenv("WAKEFMM_NUM_THREADS", own, 1) : unsetenv("WAKEFMM_NUM_THREADS");
    openmp ? setenv("OMP_NUM_THREADS", openmp, 1) : unsetenv("OMP_NUM_THREADS");
    OK(wfmm_session_options_init(&o, sizeof o));
    o.backend = WFMM_BACKEND_CPU;
    OK(wfmm_session_create(&o, &session));
    OK(wfmm_session_describe(session, line, sizeof line, NULL));
    OK(wfmm_session_destroy(&session));
    CHECK(sscanf(line, "CPU, %d threads", &threads) == 1);
    return threads;
}

static int warnings = 0;
static void count_warnings(int32_t level, const char *message, void *user) {
    (void)user;
    warnings += level == WFMM_LOG_WARN && strstr(message, "NUM_THREADS") != NULL;
}

static void the_environment_says_how_many(void) {
    const char *own = getenv("WAKEFMM_NUM_THREADS"), *openmp = getenv("OMP_NUM_THREADS");
    char *old_own = own ? strdup(own) : NULL, *old_openmp = openmp ? strdup(openmp) : NULL;
    OK(wfmm_log_set(WFMM_LOG_WARN, count_warnings, NULL));
    CHECK(threads_under("3", "5,2") == 3 && threads_under(NULL, "5,2") == 5 && warnings == 0);
    CHECK(threads_under("none", "5") == 5 && threads_under("0", "5") == 5 && warnings == 1);
#ifdef __linux__
    cpu_set_t all, one;
    int first = 0;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK(threads_under(NULL, NULL) <= CPU_COUNT(&all) && threads_under(NULL, NULL) >= 1);
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(threads_under(NULL, NULL) == 1);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
#endif
    OK(wfmm_log_set(WFMM_LOG_OFF, NULL, NULL));
    old_own ? setenv("WAKEFMM_NUM_THREADS", old_own, 1) : unsetenv("WAKEFMM_NUM_THREADS");
    old_openmp ? setenv("OMP_NUM_THREADS", old_openmp, 1) : unsetenv("OMP_NUM_THREADS");
    free(old_own), free(old_openmp);
}

int main(void) {
    a_second_caller_is_told_busy();
    eight_threads_with_a_plan_each();
    a_small_stack_is_enough();
    the_environment_says_how_many();
#ifndef UNDER_CHECKER /* the child forgets its parent's threads on purpose, which counts as a leak */
    a_forked_child_makes_its_own_session();
    a_flow_in_use_is_told_to_a_forked_child();
#endif
    return finish("threads");
}
