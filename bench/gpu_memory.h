/* Device memory for benches that hand over device arrays: the driver's functions, looked up at run time. */
#pragma once
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int (*cu_init)(unsigned), (*cu_retain)(void **, int), (*cu_set)(void *), (*cu_alloc)(uint64_t *, size_t), (*cu_free)(uint64_t), (*cu_in)(uint64_t, const void *, size_t),
    (*cu_out)(void *, uint64_t, size_t);
static inline void open_driver(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (!cuda) { printf("no driver\n"); exit(1); }
    *(void **)&cu_init = dlsym(cuda, "cuInit"), *(void **)&cu_retain = dlsym(cuda, "cuDevicePrimaryCtxRetain"), *(void **)&cu_set = dlsym(cuda, "cuCtxSetCurrent");
    *(void **)&cu_alloc = dlsym(cuda, "cuMemAlloc_v2"), *(void **)&cu_free = dlsym(cuda, "cuMemFree_v2");
    *(void **)&cu_in = dlsym(cuda, "cuMemcpyHtoD_v2"), *(void **)&cu_out = dlsym(cuda, "cuMemcpyDtoH_v2");
    if (cu_init(0) || cu_retain(&context, 0) || cu_set(context)) { printf("no GPU\n"); exit(1); }
}
/* A new device array with these bytes, or with anything where there are none. */
static inline void *there(const void *from, size_t bytes) {
    uint64_t to = 0;
    if (cu_alloc(&to, bytes ? bytes : 8)) { printf("no device memory\n"); exit(1); }
    if (from && bytes && cu_in(to, from, bytes)) { printf("a copy failed\n"); exit(1); }
    return (void *)(uintptr_t)to;
}
static inline void renew(void *array, const void *from, size_t bytes) {
    if (bytes && cu_in((uint64_t)(uintptr_t)array, from, bytes)) { printf("a copy failed\n"); exit(1); }
}
static inline void back(void *to, const void *array, size_t bytes) {
    if (cu_out(to, (uint64_t)(uintptr_t)array, bytes)) { printf("a copy failed\n"); exit(1); }
}
static inline void let_go(void *array) { cu_free((uint64_t)(uintptr_t)array); }
