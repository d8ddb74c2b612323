/* Bytes -> a sequence of C calls with hostile arguments, on a session of one thread that all programs share.
   Enters: the fuzzer's bytes. Leaves: nothing, or abort() with a line where a status is an internal error, a dead handle was
   taken, or a plain sum after the program is wrong. Arrays are allocated to the length that the call announces, so that
   AddressSanitizer sees every step outside. */
#include "calls.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wakefmm.h>

enum { MOST = 48, CALLS = 24, BLOCKS = 256 };

static const uint8_t *at, *end;
static unsigned take(void) { return at < end ? *at++ : 0; }

static wfmm_session *session;
static wfmm_plan *plan;
static void *blocks[BLOCKS]; /* freed after the program: the library may not need them longer than a call */
static int n_blocks;

static void broken(const char *call, int status) {
    char message[600] = "";
    wfmm_last_error(message, sizeof message, NULL);
    fprintf(stderr, "%s: status %d, %s\n", call, status, message);
    abort();
}
/* An internal error is a defect whatever was passed; so is a plan that became unusable. */
static wfmm_status judge(const char *call, wfmm_status s) {
    if (s < 0 || s >= 200) broken(call, (int)s);
    return s;
}
#define DO(call) judge(#call, call)

static void *room(size_t bytes) {
    void *block = malloc(bytes ? bytes : 1);
    if (!block || n_blocks == BLOCKS) abort();
    return blocks[n_blocks++] = block;
}

/* Counts that are accepted fit the arrays; the others must be refused before an array is looked at. */
static int64_t count(void) {
    static const int64_t odd[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX / 3, (int64_t)1 << 31, (int64_t)1 << 40, INT64_MAX / 8, -2147483648LL};
    const unsigned b = take();
    return b < 232 ? (int64_t)(b % (MOST + 1)) : odd[b % 8];
}
static size_t length(int64_t n) { return n < 0 || n > MOST ? MOST : (size_t)n; }

static int32_t constant(void) {
    static const int32_t odd[] = {INT32_MIN, INT32_MAX, -1, 100, 40, 41, 1 << 20, 255};
    const unsigned b = take();
    return b < 224 ? (int32_t)(b % 14) : odd[b % 8];
}
static int32_t memory(void) {
    const unsigned b = take();
    return b < 240 ? WFMM_MEMORY_HOST : (int32_t)b - 242;
}
static double number(void) {
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, 5e-324, -0.0, 1e-38, 1e-45, 3e38, 1e150, 1e-160, 1.7e308, 1e16, 1};
    const unsigned b = take();
    return b < 208 ? ((int)b - 100) / 64.0 : odd[b % 16];
}

/* One byte says how an array is filled: a lattice, points that coincide, huge or tiny ones, or number by number. */
static double *values(size_t n) {
    double *x = malloc((n ? n : 1) * sizeof *x);
    const unsigned how = take();
    uint32_t s = how * 2654435761u + take() * 40503u + 1;
    double scale = 1;
    if (how % 8 == 1) scale = number();
    if (!x) abort();
    for (size_t i = 0; i < n; ++i) {
        s = s * 1664525u + 1013904223u;
        x[i] = how % 8 == 2 ? scale : (double)(s >> 20) / 4096 * scale;
    }
    if (how & 8)
        for (unsigned times = 1 + take() % 8; times && n; --times) x[(take() * 256u + take()) % n] = number();
    return x;
}
static int32_t *ends(size_t rows, size_t ld, int64_t n_points) {
    const size_t n = rows ? (rows - 1) * ld + 2 : 0;
    int32_t *to = room(n * sizeof *to);
    const unsigned how = take();
    for (size_t i = 0; i < n; ++i) to[i] = n_points > 0 ? (int32_t)((i * (how % 7) + i / 2) % (size_t)n_points) : 0;
    if (how & 128 && n) to[take() % n] = constant();
    return to;
}

static void options(wfmm_plan_options *o) {
    DO(wfmm_plan_options_init(o, sizeof *o));
    const unsigned what = take();
    /* FMM on few elements: cells, lists and every operator. */
    o->method = what & 1 ? WFMM_METHOD_FMM : constant();
    o->leaf_capacity = what & 2 ? 1 + (int32_t)(take() % 8) : 0;
    if (what & 4) o->segment_regularization = constant(), o->particle_regularization = constant();
    if (what & 8) o->tolerance = take() % 4 ? pow(10, -(double)(take() % 13)) : number();
    if (what & 16) o->normalization = number(), o->core_radius = number();
    if (what & 32) o->order = constant(), o->precision = (int32_t)(take() % 4);
    if (what & 64) o->flags = take();
    if (what & 128) o->index_base = constant(), o->struct_size = (uint32_t)take();
}

static void create(void) {
    /* A struct may be longer or shorter than ours; what it says of its size must be true. */
    struct { wfmm_plan_options o; uint8_t tail[192]; } longer;
    memset(&longer, 0, sizeof longer);
    options(&longer.o);
    if (longer.o.struct_size > sizeof longer.o) longer.tail[take() % sizeof longer.tail] = (uint8_t)take();
    DO(wfmm_plan_destroy(&plan));
    const unsigned whose = take();
    wfmm_session *of = whose < 240 ? session : whose < 244 ? NULL : (wfmm_session *)(size_t)whose;
    DO(wfmm_plan_create(of, whose == 255 ? NULL : &longer.o, whose == 254 ? NULL : &plan));
}

#define REAL double
#define TWIN(name) name##_f64
#include "calls_real.h"
#undef REAL
#undef TWIN
#define REAL float
#define TWIN(name) name##_f32
#include "calls_real.h"

static void queries(void) {
    char text[300];
    size_t needed;
    int64_t n[4];
    uint64_t bytes[2];
    wfmm_report report;
    const unsigned what = take();
    switch (what % 8) {
    case 0: DO(wfmm_plan_recipe(plan, what & 8 ? NULL : text, take() % 200, what & 16 ? NULL : &needed)); break;
    case 1: report.struct_size = what & 8 ? take() : sizeof report; if (report.struct_size > sizeof report) break;
        DO(wfmm_plan_report(plan, &report)); break;
    case 2: DO(wfmm_plan_workspace(plan, &bytes[0], what & 8 ? NULL : &bytes[1])); break;
    case 3: DO(wfmm_plan_counts(plan, n, what & 8 ? NULL : n + 1, n + 2, n + 3)); break;
    case 4: DO(wfmm_last_error(text, take() % sizeof text, &needed)); break;
    case 5: DO(wfmm_plan_set_stream(plan, what & 8 ? NULL : text)); break;
    case 6: DO(wfmm_session_describe(what & 8 ? (wfmm_session *)plan : session, text, take() % sizeof text, NULL)); break;
    default: DO(wfmm_last_error_set((const char *)at, (size_t)(end - at))); break;
    }
}

/* A handle that was destroyed, a copy of it, and a plan taken for a session. */
static void dead_handles(void) {
    wfmm_plan *dead = plan, *copy = plan, *nothing = NULL;
    wfmm_status s = WFMM_ERR_HANDLE;
    DO(wfmm_plan_destroy(&plan));
    DO(wfmm_plan_destroy(&nothing));
    if (plan) broken("destroy left the handle", 0);
    if (!dead) return;
    switch (take() % 5) {
    case 0: s = wfmm_plan_prepare(dead); break;
    case 1: s = wfmm_plan_destroy(&copy); break;
    case 2: s = wfmm_plan_wait(dead); break;
    case 3: s = wfmm_plan_counts(dead, NULL, NULL, NULL, NULL); break;
    default: s = wfmm_session_register((wfmm_session *)dead, &copy, 8);
    }
    if (s != WFMM_ERR_HANDLE) broken("a dead handle was taken", (int)s);
}

/* Whatever came before, the next plan is right: one particle at a known position. */
static void check_next_plan(void) {
    const double x[3] = {0, 0, 0}, a[3] = {0, 0, 1}, y[3] = {2, 0, 0};
    double u[3] = {9, 9, 9};
    wfmm_plan *next = NULL;
    if (DO(wfmm_plan_create(session, NULL, &next)) || DO(wfmm_plan_set_particles_f64(next, 1, x, a, NULL, 0)) ||
        DO(wfmm_plan_set_targets_f64(next, 1, y, 0)) || DO(wfmm_plan_evaluate_f64(next, u, NULL, 0)) ||
        fabs(u[1] - 0.25 / (4 * acos(-1.0))) > 1e-15 || u[0] != 0 || u[2] != 0)
        broken("the next plan is wrong", 0);
    DO(wfmm_plan_destroy(&next));
}

void wakefmm_fuzz_one(const uint8_t *data, size_t size) {
    static unsigned programs;
    if (!session) {
        wfmm_session_options o;
        DO(wfmm_session_options_init(&o, sizeof o));
        o.backend = WFMM_BACKEND_CPU, o.threads = 1;
        DO(wfmm_session_create(&o, &session));
    }
    at = data, end = data + size;
    create();
    for (int calls = 0; calls < CALLS && at < end; ++calls) {
        const unsigned call = take();
        switch (call % 16) {
        case 0: create(); break;
        case 1: queries(); break;
        case 2: if (call & 64) dead_handles(); else DO(wfmm_plan_wait(plan)); break;
        case 3: DO(wfmm_plan_prepare(plan)); break;
        default: call & 128 ? real_call_f32(call % 16 - 4) : real_call_f64(call % 16 - 4);
        }
    }
    DO(wfmm_plan_wait(plan));
    DO(wfmm_plan_destroy(&plan));
    if (++programs % 64 == 0) check_next_plan();
    while (n_blocks) free(blocks[--n_blocks]);
}
