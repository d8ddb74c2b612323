/* A driver that fails on request, for tests/cuda_failure.rs. FAKE_CUDA names the failure; nothing is computed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *failure) {
    const char *asked = getenv("FAKE_CUDA");
    return asked && !strcmp(asked, failure);
}
static int context, depth;

int cuDriverGetVersion(int *version) { *version = is("old_driver") ? 12020 : 13000; return 0; }
int cuInit(unsigned flags) { (void)flags; return is("no_device") ? 100 : is("mismatch") ? 803 : is("unlisted") ? 12345 : 0; }
int cuDeviceGetCount(int *count) { *count = is("empty") ? 0 : is("two") ? 2 : 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int capacity, int device) { (void)device; strncpy(name, "Fake GPU", (size_t)capacity); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)8 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 75 ? (is("old_gpu") ? 6 : 9) : which == 76 ? (is("old_gpu") ? 1 : 0) : which == 16 ? 10 + device : 1;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **out, int device) {
    (void)device;
    if (is("busy")) return 46;
    if (is("no_memory")) return 2;
    *out = &context;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
int cuCtxPushCurrent_v2(void *c) { depth++; return c == &context ? 0 : 201; }
int cuCtxPopCurrent_v2(void **c) { *c = &context; return depth-- > 0 ? 0 : 201; }
int cuCtxSynchronize(void) { return 0; }
int cuStreamCreate(void **s, unsigned flags) { (void)flags; *s = &context; return 0; }
int cuStreamDestroy_v2(void *s) { (void)s; return 0; }
int cuStreamSynchronize(void *s) { (void)s; return 0; }
int cuStreamWaitEvent(void *s, void *e, unsigned f) { (void)s; (void)e; (void)f; return 0; }
int cuEventCreate(void **e, unsigned flags) { (void)flags; *e = &context; return 0; }
int cuEventDestroy_v2(void *e) { (void)e; return 0; }
int cuEventRecord(void *e, void *s) { (void)e; (void)s; return 0; }
int cuEventSynchronize(void *e) { (void)e; return 0; }
int cuEventElapsedTime(float *t, void *a, void *b) { (void)a; (void)b; *t = 1; return 0; }
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    if (is("full")) return 2;
    *address = (uint64_t)(uintptr_t)calloc(bytes, 1);
    return *address ? 0 : 2;
}
int cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return 0; }
int cuMemHostAlloc(void **start, size_t bytes, unsigned flags) { (void)flags; *start = calloc(bytes, 1); return *start ? 0 : 2; }
int cuMemFreeHost(void *start) { free(start); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s) { (void)s; memcpy((void *)(uintptr_t)to, from, bytes); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *s) { (void)s; memcpy(to, (void *)(uintptr_t)from, bytes); return 0; }
int cuMemsetD8Async(uint64_t at, unsigned char v, size_t bytes, void *s) { (void)s; memset((void *)(uintptr_t)at, v, bytes); return 0; }
int cuModuleLoadData(void **module, const void *image) { (void)image; *module = &context; return is("image") ? 222 : 0; }
int cuModuleUnload(void *module) { (void)module; return 0; }
int cuModuleGetFunction(void **f, void *module, const char *name) { (void)module; (void)name; *f = &context; return 0; }
int cuFuncSetAttribute(void *f, int which, int value) { (void)f; (void)which; (void)value; return 0; }
int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned s, void *stream, void **p, void **x) {
    (void)f; (void)a; (void)b; (void)c; (void)d; (void)e; (void)g; (void)s; (void)stream; (void)p; (void)x;
    return is("kernel") ? 700 : 0;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == 12345 ? 0 : "text of the fake driver";
    return code == 12345 ? 1 : 0;
}
