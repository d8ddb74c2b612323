/* The driver as a host program without the CUDA runtime would use it: its functions, looked up at run time. For tests and benches. */
#pragma once
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

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
