/* What the benches of a GPU share: sessions, problems with sources and targets in one of five shapes, plans for them, clocks
 * and medians. */
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "wakefmm.h"

static const double PI = 3.141592653589793;

static inline void must(wfmm_status status, const char *what) {
    if (status == 0) return;
    char text[600];
    wfmm_last_error(text, sizeof text, NULL);
    printf("%s: status %d: %s\n", what, status, text);
    exit(1);
}

static inline wfmm_session *session(int backend) {
    wfmm_session_options o;
    wfmm_session *s = NULL;
    must(wfmm_session_options_init(&o, sizeof o), "session options");
    o.backend = backend;
    must(wfmm_session_create(&o, &s), "session");
    return s;
}

/* Relative L2. */
static inline double distance(const double *a, const double *b, int64_t n) {
    double d = 0, s = 0;
    for (int64_t k = 0; k < n; k++) { d += (a[k] - b[k]) * (a[k] - b[k]); s += b[k] * b[k]; }
    return s > 0 ? sqrt(d / s) : sqrt(d);
}

static uint64_t state = 1;
static inline double uniform(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

enum kind { SEGMENTS, PARTICLES, CHARGES };
static const char *const shapes[] = {"cube", "rings", "clusters", "layer", "line"};

struct problem {
    enum kind kind;
    int regularization, order; /* order 0: what the library chooses */
    double period[3];          /* 0: open */
    int64_t n, m;
    double *points, *strength, *core, *target;
    int32_t *ends;
};

static inline void point(int shape, double *x) {
    for (int k = 0; k < 3; k++) x[k] = uniform();
    const double r = 0.3 + 0.02 * (uniform() - 0.5), t = 6.283185307179586 * uniform();
    switch (shape) {
    case 1: x[0] = 0.5 + r * cos(t); x[1] = 0.5 + r * sin(t); x[2] = (uniform() < 0.5 ? 0.4 : 0.6) + 0.02 * (x[2] - 0.5); break;
    case 2: { const int c = (int)(64 * uniform()); for (int k = 0; k < 3; k++) x[k] = ((c >> 2 * k & 3) + 0.5 + 0.01 * (x[k] - 0.5)) / 4; } break;
    case 3: x[2] *= 0.01; break;
    case 4: x[1] = 0.5; x[2] = 0.5; break;
    }
    for (int k = 0; k < 3; k++) x[k] = (float)x[k]; /* both precisions see the same positions */
}

static inline struct problem make(enum kind kind, int regularization, int shape, int64_t n, int64_t m, double core) {
    struct problem p = {.kind = kind, .regularization = regularization, .n = n, .m = m};
    p.points = malloc(6 * n * sizeof(double));
    p.strength = malloc(3 * n * sizeof(double));
    p.core = malloc(n * sizeof(double));
    p.target = malloc(3 * m * sizeof(double));
    p.ends = malloc(2 * n * sizeof(int32_t));
    for (int64_t i = 0; i < n; i++) {
        if (kind == SEGMENTS) {
            point(shape, p.points + 6 * i);
            for (int k = 0; k < 3; k++) p.points[6 * i + 3 + k] = (float)(p.points[6 * i + k] + 0.01 * (uniform() - 0.5));
            p.ends[2 * i] = (int32_t)(2 * i); p.ends[2 * i + 1] = (int32_t)(2 * i + 1);
        } else point(shape, p.points + 3 * i);
        p.core[i] = core * pow(10, -uniform());
    }
    for (int64_t i = 0; i < 3 * n; i++) p.strength[i] = 2 * uniform() - 1;
    for (int64_t i = 0; i < m; i++) point(shape, p.target + 3 * i);
    return p;
}

/* New targets in the unit cube. */
static inline void targets_in_cube(struct problem *p) { for (int64_t i = 0; i < 3 * p->m; i++) p->target[i] = uniform(); }
/* Four fifths of the targets in the lowest hundredth of the air over the ground z = 0. */
static inline void dust_targets(struct problem *p) {
    for (int64_t i = 0; i < p->m; i++) {
        double *x = p->target + 3 * i;
        x[0] = 4 * uniform() - 2; x[1] = 4 * uniform() - 2; x[2] = uniform() * (i % 5 ? 0.01 : 1);
    }
}
/* A wake of four helices in the air, their cores growing with age, and such targets. */
static inline void dust(struct problem *p) {
    const int64_t each = p->n / 4;
    for (int64_t i = 0; i < p->n; i++) {
        for (int e = 0; e < 2; e++) {
            const double age = (double)(i % each + e) / (double)each, angle = 20 * PI * age + (double)(i / each) * PI / 2;
            const double z = 2 * (1 - age) + 0.05, r = 0.8 + 0.6 * fmax(0, 0.8 - z);
            double *x = p->points + 6 * i + 3 * e;
            x[0] = r * cos(angle); x[1] = r * sin(angle); x[2] = z;
        }
        p->strength[i] = 1; p->core[i] = 0.005 + 0.095 * (double)(i % each) / (double)each;
    }
    dust_targets(p);
}

static inline void drop(struct problem *p) { free(p->points); free(p->strength); free(p->core); free(p->target); free(p->ends); }

static inline wfmm_plan *plan_of(wfmm_session *s, const struct problem *p, int method, int precision, double tolerance) {
    wfmm_plan_options o;
    wfmm_plan *plan = NULL;
    must(wfmm_plan_options_init(&o, sizeof o), "plan options");
    o.method = method; o.precision = precision; o.tolerance = tolerance; o.order = p->order;
    memcpy(o.period, p->period, sizeof o.period);
    if (p->kind == SEGMENTS) o.segment_regularization = p->regularization;
    if (p->kind == PARTICLES) o.particle_regularization = p->regularization;
    must(wfmm_plan_create(s, &o, &plan), "plan");
    return plan;
}

static inline void hand_over(wfmm_plan *plan, const struct problem *p) {
    if (p->kind == SEGMENTS) must(wfmm_plan_set_segments_f64(plan, 2 * p->n, p->points, p->n, 2, p->ends, p->strength, p->core, WFMM_MEMORY_HOST), "segments");
    if (p->kind == PARTICLES) must(wfmm_plan_set_particles_f64(plan, p->n, p->points, p->strength, p->core, WFMM_MEMORY_HOST), "particles");
    if (p->kind == CHARGES) must(wfmm_plan_set_charges_f64(plan, p->n, p->points, p->strength, WFMM_MEMORY_HOST), "charges");
    must(wfmm_plan_set_targets_f64(plan, p->m, p->target, WFMM_MEMORY_HOST), "targets");
}

static inline void evaluate(wfmm_plan *plan, const struct problem *p, double *u, double *g) {
    must(p->kind == CHARGES ? wfmm_plan_evaluate_potential_f64(plan, u, g, WFMM_MEMORY_HOST) : wfmm_plan_evaluate_f64(plan, u, g, WFMM_MEMORY_HOST), "evaluate");
}

static inline double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static inline int by_size(const void *a, const void *b) { const double d = *(const double *)a - *(const double *)b; return (d > 0) - (d < 0); }

enum { REPETITIONS = 21 };
struct spread { double of[REPETITIONS]; };
/* Sorts. */
static inline double middle(double *of, int n) { qsort(of, n, sizeof *of, by_size); return of[n / 2]; }

/* Seconds of the passes on the device. */
static inline double on_device(const wfmm_report *r) {
    double sum = 0;
    for (int k = 0; k < WFMM_PASS_COUNT; k++) if (k != WFMM_PASS_TRANSFER && k != WFMM_PASS_TOTAL) sum += r->seconds[k];
    return sum;
}
