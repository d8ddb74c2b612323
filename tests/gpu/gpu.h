/* What the programs of this folder share: device arrays, cases and their count, sessions. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include "driver.h"
#include "wakefmm.h"

static inline uint64_t on_device(const void *from, size_t size) {
    uint64_t to = 0;
    if (cu_alloc(&to, size)) { printf("no device memory\n"); exit(1); }
    if (from) cu_in(to, from, size);
    return to;
}

static int passed, failed;
static inline void expect(int good, const char *what) {
    char text[500] = "";
    if (!good) wfmm_last_error(text, sizeof text, NULL);
    printf("%s: %s%s%s\n", what, good ? "ok" : "FAILED", good ? "" : ": ", text);
    fflush(stdout);
    good ? passed++ : failed++;
}
static inline int verdict(void) { printf("%d passed, %d failed\n", passed, failed); return failed != 0; }

/* device -1: the best. */
static inline wfmm_session *session(int backend, int device) {
    wfmm_session_options o;
    wfmm_session *s = NULL;
    wfmm_session_options_init(&o, sizeof o);
    o.backend = backend; o.device = device;
    if (wfmm_session_create(&o, &s)) { char t[500]; wfmm_last_error(t, sizeof t, NULL); printf("%s\n", t); exit(1); }
    return s;
}

static inline double *random_array(size_t n, double low, double high) {
    double *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = low + (high - low) * (rand() / (double)RAND_MAX);
    return x;
}
