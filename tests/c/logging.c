/* What the library says: nothing unasked; WAKEFMM_LOG on standard error; a callback; one line a plan, with its recipe and the
   seconds of its passes. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 400 };
static double x[3 * N], a[3 * N], u[3 * N];

/* Two plans, three evaluations each, the last ones with other sources. */
static void work(void) {
    wfmm_session_options so;
    wfmm_plan_options o;
    wfmm_session *session = NULL;
    for (int i = 0; i < 3 * N; ++i) x[i] = sin(0.7 * i), a[i] = cos(1.3 * i);
    OK(wfmm_session_options_init(&so, sizeof so));
    so.backend = WFMM_BACKEND_CPU, so.threads = 1;
    OK(wfmm_session_create(&so, &session));
    for (int k = 0; k < 2; ++k) {
        wfmm_plan *plan = NULL;
        OK(wfmm_plan_options_init(&o, sizeof o));
        o.method = k ? WFMM_METHOD_FMM : WFMM_METHOD_DIRECT;
        o.core_radius = 0.1;
        OK(wfmm_plan_create(session, &o, &plan));
        OK(wfmm_plan_set_targets_f64(plan, N, x, WFMM_MEMORY_HOST));
        for (int times = 0; times < 3; ++times) {
            OK(wfmm_plan_set_particles_f64(plan, N - times, x, a, NULL, WFMM_MEMORY_HOST));
            OK(wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST));
        }
        OK(wfmm_plan_destroy(&plan));
    }
    OK(wfmm_session_destroy(&session));
}

/* Standard error of a process that works with this WAKEFMM_LOG (NULL: unset). */
static const char *said_under(const char *program, const char *level) {
    static char text[16384];
    size_t length = 0;
    ssize_t got;
    int ends[2], status = 1;
    if (pipe(ends)) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2), close(ends[0]), close(ends[1]);
        level ? setenv("WAKEFMM_LOG", level, 1) : unsetenv("WAKEFMM_LOG");
        execl(program, program, "work", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (length < sizeof text - 1 && (got = read(ends[0], text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
    close(ends[0]);
    text[length] = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return text;
}

static int times_in(const char *text, const char *word) {
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word)) ++n;
    return n;
}

struct heard {
    int lines, plans, loud;
    char last[4096];
};
static void hear(int32_t level, const char *message, void *user) {
    struct heard *h = user;
    ++h->lines, h->loud += level <= WFMM_LOG_WARN, h->plans += !strncmp(message, "plan:", 5);
    snprintf(h->last, sizeof h->last, "%s", message);
}

static char recipe_text[4096];
static const char *recipe_of(const wfmm_plan *plan) {
    OK(wfmm_plan_recipe(plan, recipe_text, sizeof recipe_text, NULL));
    return recipe_text;
}

/* Particles with these radii (NULL: none), set three times and evaluated; whether the recipe says that the kernel is singular. */
static int is_singular(const double *core, int32_t regularization) {
    wfmm_plan_options o;
    wfmm_plan *plan = NULL;
    OK(wfmm_plan_options_init(&o, sizeof o));
    o.particle_regularization = regularization;
    OK(wfmm_plan_create(NULL, &o, &plan));
    OK(wfmm_plan_set_targets_f64(plan, N, x, WFMM_MEMORY_HOST));
    for (int times = 0; times < 3; ++times) OK(wfmm_plan_set_particles_f64(plan, N, x, a, core, WFMM_MEMORY_HOST));
    OK(wfmm_plan_evaluate_f64(plan, u, NULL, WFMM_MEMORY_HOST));
    wfmm_report report = {.struct_size = sizeof report};
    OK(wfmm_plan_report(plan, &report));
    const int singular = strstr(recipe_of(plan), "kernel of the particles is singular: WFMM_REG_") != NULL;
    CHECK(report.singular == 2 * singular);
    OK(wfmm_plan_destroy(&plan));
    return singular;
}

/* A regularization without a radius: one warning a plan. One radius, or WFMM_REG_NONE: none. */
static void a_kernel_without_cores_is_told(void) {
    static struct heard h;
    double core[N] = {0};
    OK(wfmm_log_set(WFMM_LOG_WARN, hear, &h));
    CHECK(is_singular(NULL, WFMM_REG_GAUSS_ERF) && h.lines == 1 && strstr(h.last, "WFMM_REG_GAUSS_ERF"));
    CHECK(is_singular(core, WFMM_REG_ROSENHEAD) && h.lines == 2 && strstr(h.last, "WFMM_REG_ROSENHEAD"));
    core[N - 1] = 0.1;
    CHECK(!is_singular(core, WFMM_REG_ROSENHEAD) && !is_singular(NULL, WFMM_REG_NONE) && h.lines == 2);
    OK(wfmm_log_set(WFMM_LOG_OFF, NULL, NULL));
}

/* A session under WFMM_BACKEND_AUTO that names a device which no machine has: each says so, and why is in its description. */
static void a_device_that_is_missing_is_told(void) {
    static struct heard h;
    static const int32_t none[2] = {1 << 20, 1 << 20};
    char line[1024];
    OK(wfmm_log_set(WFMM_LOG_WARN, hear, &h));
    for (int k = 0; k < 3; ++k) {
        wfmm_session_options o;
        wfmm_session *session = NULL;
        OK(wfmm_session_options_init(&o, sizeof o));
        if (k < 2) o.device = none[0];
        if (k == 2) o.n_devices = 2, o.devices = none;
        OK(wfmm_session_create(&o, &session));
        OK(wfmm_session_describe(session, line, sizeof line, NULL));
        CHECK(h.lines == k + 1 && strstr(h.last, "device 1048576 is not used") && strstr(line, "no CUDA: "));
        OK(wfmm_session_destroy(&session));
    }
    OK(wfmm_log_set(WFMM_LOG_OFF, NULL, NULL));
}

/* Options of a flow that have no effect: one warning each. */
static void idle_options_of_a_flow_are_told(void) {
    static struct heard h;
    wfmm_flow_options o;
    wfmm_flow *flow = NULL;
    wfmm_plan_options p;
    double core[N];
    for (int i = 0; i < N; ++i) core[i] = 0.1;
    OK(wfmm_plan_options_init(&p, sizeof p));
    OK(wfmm_log_set(WFMM_LOG_WARN, hear, &h));
    OK(wfmm_flow_options_init(&o, sizeof o));
    o.viscosity = 0.5;
    OK(wfmm_flow_create(NULL, NULL, &o, &flow));
    OK(wfmm_flow_advance(flow, 0.1, 1));
    CHECK(h.lines == 0);
    OK(wfmm_flow_set_particles_f64(flow, N, x, a, core, WFMM_MEMORY_HOST));
    OK(wfmm_flow_advance(flow, 1e-3, 2));
    OK(wfmm_flow_advance(flow, 1e-3, 1));
    CHECK(h.lines == 1 && strstr(h.last, "viscosity = 0.5") && strstr(h.last, "WFMM_SPREADING_NONE"));
    OK(wfmm_flow_destroy(&flow));
    o.spreading = WFMM_SPREADING_CORES, o.core_limit = 1e-7;
    OK(wfmm_flow_create(NULL, NULL, &o, &flow));
    OK(wfmm_flow_destroy(&flow));
    CHECK(h.lines == 1);
    o.viscosity = 0;
    OK(wfmm_flow_create(NULL, NULL, &o, &flow));
    OK(wfmm_flow_destroy(&flow));
    CHECK(h.lines == 2 && strstr(h.last, "core_limit = 1e-7"));
    OK(wfmm_flow_options_init(&o, sizeof o));
    o.restitution = 0.5, o.friction = 0.25;
    OK(wfmm_flow_create(NULL, NULL, &o, &flow));
    OK(wfmm_flow_destroy(&flow));
    CHECK(h.lines == 4 && strstr(h.last, "friction = 0.25") && strstr(h.last, "plane"));
    p.plane_axis = 3;
    OK(wfmm_flow_create(NULL, &p, &o, &flow));
    OK(wfmm_flow_destroy(&flow));
    CHECK(h.lines == 4);
    OK(wfmm_log_set(WFMM_LOG_OFF, NULL, NULL));
}

int main(int argc, char **argv) {
    static struct heard first, second;
    const char *said;
    if (argc > 1) return work(), checks_failed != 0;

    CHECK(!strcmp(said_under(argv[0], NULL), ""));
    CHECK(!strcmp(said_under(argv[0], "warn"), ""));
    CHECK(!strcmp(said_under(argv[0], ""), ""));
    said = said_under(argv[0], "nonsense");
    CHECK(times_in(said, "\n") == 1 && strstr(said, "WAKEFMM_LOG = nonsense is ignored"));
    said = said_under(argv[0], "info");
    CHECK(times_in(said, "session:") == 1 && times_in(said, "plan:") == 2);
    CHECK(times_in(said, "Direct sum of") == 1 && times_in(said, "FMM in f64") == 1);
    CHECK(times_in(said, "Seconds per pass:") == 2 && strstr(said, "m2l ") && strstr(said, "total "));

    OK(wfmm_log_set(WFMM_LOG_INFO, hear, &first));
    work();
    CHECK(first.plans == 2 && first.loud == 0 && strstr(first.last, "FMM") && strstr(first.last, "Seconds per pass: tree "));
    OK(wfmm_log_set(WFMM_LOG_WARN, hear, &second));
    work();
    CHECK(second.lines == 0 && first.plans == 2);
    OK(wfmm_log_set(WFMM_LOG_INFO, hear, &second));
    work();
    CHECK(second.plans == 2 && first.plans == 2);
    OK(wfmm_log_set(WFMM_LOG_OFF, NULL, NULL));
    work();
    CHECK(second.plans == 2);
    a_kernel_without_cores_is_told();
    a_device_that_is_missing_is_told();
    idle_options_of_a_flow_are_told();
    return finish("logging");
}
