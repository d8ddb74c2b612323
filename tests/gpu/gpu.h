/* What the programs of this folder share: the driver as a host program without the CUDA runtime would use it, cases and their
 * count, sessions. */
#pragma once
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "wakefmm.h"

typedef void *handle_t;
static int (*cu_init)(unsigned), (*cu_count)(int *), (*cu_retain)(handle_t *, int), (*cu_release)(int), (*cu_set)(handle_t), (*cu_get)(handle_t *);
static int (*cu_alloc)(uint64_t *, size_t), (*cu_free)(uint64_t), (*cu_in)(uint64_t, const void *, size_t), (*cu_out)(void *, uint64_t, size_t), (*cu_info)(size_t *, size_t *);
static int (*cu_stream)(handle_t *, unsigned), (*cu_clear)(uint64_t, unsigned char, size_t, handle_t), (*cu_copy)(uint64_t, uint64_t, size_t, handle_t);
static inline int open_driver(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) return 0;
#define GET(f, name) *(void **)&f = dlsym(cuda, name)
    GET(cu_init, "cuInit"); GET(cu_count, "cuDeviceGetCount"); GET(cu_retain, "cuDevicePrimaryCtxRetain"); GET(cu_release, "cuDevicePrimaryCtxRelease_v2");
    GET(cu_set, "cuCtxSetCurrent"); GET(cu_get, "cuCtxGetCurrent"); GET(cu_alloc, "cuMemAlloc_v2"); GET(cu_free, "cuMemFree_v2");
    GET(cu_in, "cuMemcpyHtoD_v2"); GET(cu_out, "cuMemcpyDtoH_v2"); GET(cu_info, "cuMemGetInfo_v2");
    GET(cu_stream, "cuStreamCreate"); GET(cu_clear, "cuMemsetD8Async"); GET(cu_copy, "cuMemcpyDtoDAsync_v2");
#undef GET
    return cu_init(0) == 0;
}

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
