/* A driver that fails on request, for tests/cuda_*.rs. FAKE_CUDA names the failure; nothing is
 * computed, unless EMULATED is defined: then tests/emulated_gpu runs the kernels. With FAKE_CUDA_LOG=FILE it writes down what
 * is launched, and "sum S" for the points that kernel `extent` would have read. Copies from page-locked memory are made as late as a real
 * bus might: when somebody waits. Its clock goes on by a millisecond a launch. In a child of fork() nothing works. */
#ifdef EMULATED
#include <malloc.h>
#endif
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char *failure) {
    const char *asked = getenv("FAKE_CUDA");
    return asked && !strcmp(asked, failure);
}
static int context;
static _Thread_local int depth;
/* Threads of several ranks share the device: each function has its tables for itself. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int take_turn(void) { return pthread_mutex_lock(&turn); }
static void end_turn(int *taken) { (void)taken; pthread_mutex_unlock(&turn); }
#define ALONE __attribute__((cleanup(end_turn))) int taken = take_turn(); (void)taken
/* Bytes of shared memory that a block may have: FAKE_CUDA_SHARED, else Hopper's. */
static int most_shared(void) {
    const char *asked = getenv("FAKE_CUDA_SHARED");
    return asked ? atoi(asked) : 232448;
}
/* Multiprocessors of the first device: FAKE_CUDA_MULTIPROCESSORS, else 10; each other device has one more. */
static int multiprocessors(void) {
    const char *asked = getenv("FAKE_CUDA_MULTIPROCESSORS");
    return asked ? atoi(asked) : 10;
}

#ifdef EMULATED
const char *emulated_unit(const void *image);
const void *emulated_kernel(const char *unit, const char *name, int major);
int emulated_launch(const void *kernel, const unsigned *grid, const unsigned *block, unsigned shared, void **arguments);
void emulated_clear(uint64_t at, unsigned char value, size_t bytes);
void emulated_record(void);
void *emulated_recorded(void);
void emulated_forget(void *graph);
void emulated_replay(const void *graph);
#endif

/* The K-th copy to the host and all that comes after fail with FAKE_CUDA=lost_at_K, with "late_kernel" whoever waits for a kernel. */
static int lost, ours;
static int alive(void) { return lost ? 700 : 0; }
/* An event is the time of its last mark; a graph how many launches it has, and the events marked among them. */
struct event { double at; };
struct graph { int launches, marks; struct { struct event *event; int at; } mark[16]; void *work; };
static double now;
static _Thread_local struct graph *capture;

static void note(const char *what, double number) {
    const char *name = getenv("FAKE_CUDA_LOG");
    FILE *file = name ? fopen(name, "a") : NULL;
    if (!file) return;
    fprintf(file, number >= 0 ? "%s %.12e\n" : "%s\n", what, number);
    fclose(file);
}

/* Work that waits for its turn: a copy, or (bytes = 0) a sum over `from`. */
static struct { char *to; const char *from; size_t bytes; long long n; uint64_t digest; } late[64];
static int n_late;
static uint64_t digest(const char *from, size_t bytes) {
    uint64_t word, d = bytes;
    for (size_t k = 0; k + 8 <= bytes; k += 8) { memcpy(&word, from + k, 8); d = (d ^ word) * 0x100000001b3u; }
    return d;
}
/* "torn" is written down where somebody has used memory again that a copy had still to read. */
static void catch_up(void) {
    for (int i = 0; i < n_late; i++) {
        if (late[i].bytes) {
            if (digest(late[i].from, late[i].bytes) != late[i].digest) note("torn", -1);
            memcpy(late[i].to, late[i].from, late[i].bytes);
            continue;
        }
        double sum = 0;
        for (long long k = 0; k < 3 * late[i].n; k++) sum += ((const double *)late[i].from)[k];
        note("sum", sum);
    }
    n_late = 0;
}
static void later(void *to, const void *from, size_t bytes, long long n) {
    if (n_late == 64) catch_up();
    late[n_late].to = to; late[n_late].from = from; late[n_late].bytes = bytes; late[n_late].n = n;
    late[n_late++].digest = bytes ? digest(from, bytes) : 0;
}

/* With FAKE_CUDA_COPIES the log has every copy over the bus and its bytes. */
static void note_copy(const char *way, size_t bytes) { if (getenv("FAKE_CUDA_COPIES")) note(way, (double)bytes); }

enum { LOCKED = 1024 };
static struct { char *start; size_t bytes; } locked[LOCKED];
static int is_locked(const void *at) {
    for (int i = 0; i < LOCKED; i++) if (locked[i].start && (const char *)at >= locked[i].start && (const char *)at < locked[i].start + locked[i].bytes) return 1;
    return 0;
}

int cuDriverGetVersion(int *version) { *version = is("old_driver") ? 11080 : 13000; return 0; }
int cuInit(unsigned flags) {
    (void)flags;
    ours = getpid();
#ifdef EMULATED
    /* A device's memory stays mapped: the system need not clear it anew for each of thousands of short problems. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
    return is("no_device") ? 100 : is("mismatch") ? 803 : is("unlisted") ? 12345 : 0;
}
int cuDeviceGetCount(int *count) { *count = is("empty") ? 0 : is("two") || is("far_apart") ? 2 : 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int capacity, int device) { (void)device; strncpy(name, "Fake GPU", (size_t)capacity); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)8 << 30; return 0; }
static int major(void) { return is("old_gpu") ? 6 : is("ampere") ? 8 : 9; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 75 ? major() : which == 76 ? (is("old_gpu") ? 1 : 0) : which == 16 ? multiprocessors() + device : which == 97 ? most_shared() : which == 87 ? (is("fast_double") ? 2 : 64) : 1;
    return 0;
}
/* Each device has a context of its own; their memory is the same. */
static int contexts[8];
static int is_context(const void *c) { return (const int *)c >= contexts && (const int *)c < contexts + 8; }
int cuDevicePrimaryCtxRetain(void **out, int device) {
    if (is("busy")) return 46;
    if (is("no_memory")) return 2;
    *out = &contexts[device & 7];
    return 0;
}
/* A device may read another's memory once it was enabled; the second time is an error, as in the real driver. */
static int within_reach[8];
int cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = device != peer && !is("far_apart"); return 0; }
int cuCtxEnablePeerAccess(void *peer, unsigned flags) {
    ALONE;
    if (!is_context(peer) || flags) return 201;
    if (within_reach[(int *)peer - contexts]++) return 704;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
int cuCtxPushCurrent_v2(void *c) {
    if (getpid() != ours) return 3;
    depth++; return is_context(c) ? 0 : 201;
}
int cuCtxPopCurrent_v2(void **c) { *c = contexts; return depth-- > 0 ? 0 : 201; }
int cuCtxSynchronize(void) { ALONE; catch_up(); return alive(); }
int cuStreamCreate(void **s, unsigned flags) { (void)flags; *s = &context; return 0; }
int cuStreamDestroy_v2(void *s) { (void)s; return 0; }
int cuStreamSynchronize(void *s) {
    (void)s;
    if (is("slow")) usleep(300000);
    ALONE;
    catch_up();
    return alive();
}
int cuStreamWaitEvent(void *s, void *e, unsigned f) { (void)s; (void)e; (void)f; return 0; }
int cuEventCreate(void **e, unsigned flags) {
    (void)flags;
    struct event *event = malloc(sizeof *event);
    event->at = NAN; /* not marked yet */
    *e = event;
    return 0;
}
int cuEventDestroy_v2(void *e) { free(e); return 0; }
int cuEventRecord(void *e, void *s) {
    (void)s;
    ALONE;
    if (!capture) ((struct event *)e)->at = now;
    return 0;
}
int cuEventRecordWithFlags(void *e, void *s, unsigned flags) {
    (void)s; (void)flags;
    if (!capture || capture->marks == 16) return 1;
    capture->mark[capture->marks].event = e;
    capture->mark[capture->marks++].at = capture->launches;
    return 0;
}
int cuEventSynchronize(void *e) { (void)e; ALONE; catch_up(); return alive(); }
int cuEventElapsedTime(float *t, void *a, void *b) {
    const double time = ((struct event *)b)->at - ((struct event *)a)->at;
    if (isnan(time)) return 400;
    *t = (float)time;
    return 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    ALONE;
    static int asked;
    int first = 0, last = 0;
    const char *failure = getenv("FAKE_CUDA");
    /* full_at_K: the K-th request fails, full_at_K_L: all from the K-th to the L-th. */
    if (failure && sscanf(failure, "full_at_%d_%d", &first, &last) == 1) last = first;
    asked++;
    if (is("full") || (asked >= first && asked <= last)) return 2;
#ifdef EMULATED
    /* As full of rubbish as a device's: numbers that are none. */
    void *start = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (start) memset(start, 0xff, bytes);
    *address = (uint64_t)(uintptr_t)start;
#else
    *address = (uint64_t)(uintptr_t)calloc(bytes, 1);
#endif
    return *address ? 0 : 2;
}
int cuMemFree_v2(uint64_t address) { ALONE; catch_up(); free((void *)(uintptr_t)address); return 0; }
int cuMemHostAlloc(void **start, size_t bytes, unsigned flags) {
    ALONE;
    (void)flags;
    *start = calloc(bytes, 1);
    for (int i = 0; i < LOCKED; i++) if (*start && !locked[i].start) { locked[i].start = *start; locked[i].bytes = bytes; break; }
    return *start ? 0 : 2;
}
int cuMemFreeHost(void *start) {
    ALONE;
    catch_up();
    for (int i = 0; i < LOCKED; i++) if (locked[i].start == start) locked[i].start = NULL;
    free(start);
    return 0;
}
int cuMemHostRegister_v2(void *start, size_t bytes, unsigned flags) {
    ALONE;
    (void)flags;
    if (is("no_registration")) return 801;
    for (int i = 0; i < LOCKED; i++) if (!locked[i].start) { locked[i].start = start; locked[i].bytes = bytes; return 0; }
    return 2;
}
int cuMemHostUnregister(void *start) {
    ALONE;
    catch_up();
    for (int i = 0; i < LOCKED; i++) if (locked[i].start == start) { locked[i].start = NULL; return 0; }
    return 713;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s) {
    ALONE;
    (void)s;
    note_copy("to device", bytes);
    if (is_locked(from)) { later((void *)(uintptr_t)to, from, bytes, 0); return 0; }
    catch_up();
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *s) {
    ALONE;
    static int asked;
    int first = 0;
    const char *failure = getenv("FAKE_CUDA");
    (void)s;
    if (failure && sscanf(failure, "lost_at_%d", &first) == 1 && ++asked >= first) lost = 1;
    if (lost) return 700;
    note_copy("to host", bytes);
    catch_up();
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *s) {
    ALONE;
    (void)s;
    if (lost) return 700;
    catch_up();
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    return 0;
}
int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes, void *s) {
    if (!is_context(to_context) || !is_context(from_context) || to_context == from_context) return 201;
    note_copy("between devices", bytes);
    return cuMemcpyDtoDAsync_v2(to, from, bytes, s);
}
int cuMemsetD8Async(uint64_t at, unsigned char v, size_t bytes, void *s) {
    ALONE;
    (void)s;
    catch_up();
#ifdef EMULATED
    emulated_clear(at, v, bytes);
#else
    memset((void *)(uintptr_t)at, v, bytes);
#endif
    return 0;
}
int cuStreamBeginCapture_v2(void *s, int mode) {
    (void)s; (void)mode;
    note("record", -1);
    if (is("no_graphs")) return 801;
    capture = calloc(1, sizeof *capture);
#ifdef EMULATED
    emulated_record();
#endif
    return 0;
}
int cuStreamEndCapture(void *s, void **graph) {
    (void)s;
    if (!capture) return 801;
#ifdef EMULATED
    capture->work = emulated_recorded();
#endif
    note("graph", -1);
    *graph = capture;
    capture = NULL;
    return 0;
}
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
    (void)flags;
    note("start of replays", -1);
    struct graph *made = malloc(sizeof *made), *from = graph;
    *made = *from;
    from->work = NULL;
    *exec = made;
    return 0;
}
int cuGraphExecDestroy(void *exec) {
    struct graph *graph = exec;
#ifdef EMULATED
    if (graph->work) emulated_forget(graph->work);
#endif
    note("end of replays", -1);
    free(graph);
    return 0;
}
int cuGraphDestroy(void *graph) {
#ifdef EMULATED
    if (((struct graph *)graph)->work) emulated_forget(((struct graph *)graph)->work);
#endif
    note("end of graph", -1);
    free(graph);
    return 0;
}
int cuGraphLaunch(void *exec, void *s) {
    ALONE;
    const struct graph *graph = exec;
    (void)s;
    note("replay", -1);
    for (int i = 0; i < graph->marks; i++) graph->mark[i].event->at = now + graph->mark[i].at;
    now += graph->launches;
#ifdef EMULATED
    catch_up();
    emulated_replay(graph->work);
#endif
    return 0;
}
int cuModuleLoadData(void **module, const void *image) {
    (void)image;
    *module = &context;
#ifdef EMULATED
    *module = (void *)emulated_unit(image);
    if (!*module) return 200;
#endif
    return is("image") ? 222 : 0;
}
int cuModuleUnload(void *module) { (void)module; return 0; }
/* A function is its name; of kernels that run, what they are and the bytes of shared memory that were asked for. */
static struct { char name[64]; const void *kernel; unsigned allowed; } functions[256];
int cuModuleGetFunction(void **f, void *module, const char *name) {
    ALONE;
    const void *kernel = module;
#ifdef EMULATED
    if (!(kernel = emulated_kernel(module, name, major()))) return 500;
#endif
    for (int i = 0; i < 256; i++) {
        if (!functions[i].name[0]) { strncpy(functions[i].name, name, 63); functions[i].kernel = kernel; functions[i].allowed = 49152; }
        if (!strcmp(functions[i].name, name) && functions[i].kernel == kernel) { *f = &functions[i]; return 0; }
    }
    return 500;
}
int cuFuncSetAttribute(void *f, int which, int value) {
    ALONE;
    if (which != 8 || value > most_shared()) return 1;
    for (int i = 0; i < 256; i++) if (f == &functions[i]) functions[i].allowed = (unsigned)value;
    return 0;
}
#ifndef EMULATED
/* The head of the state and what is found at sampled targets, where the kernel's second argument says; with FAKE_CUDA=missK the first
 * K fields are ten tolerances of 1e-4 off, with "no_number" the exact field is none. */
static void verdict(const uint64_t *state, const void *check) {
    static int fields;
    uint64_t head;
    const char *failure = getenv("FAKE_CUDA");
    memcpy(&head, (const char *)check + 32, sizeof head);
    double error = failure && !strncmp(failure, "miss", 4) && fields++ < atoi(failure + 4) ? 1e-3 : 1e-5;
    if (is("infinite")) error = INFINITY;
    /* Squared differences and their squares, those at the largest fields, exact and written squares of one, targets, none without numbers, one sampled. */
    double found[16] = {error * error, 0, error * error * error * error, 0, 0, 0, 1, 1, 1, 1, 1, 0, is("no_number") ? 0 : 1, 0, 0, 0};
    memcpy((void *)(uintptr_t)head, state, 48);
    memcpy((char *)(uintptr_t)head + 48, found, sizeof found);
}
#endif
int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned s, void *stream, void **p, void **x) {
    ALONE;
    (void)a; (void)b; (void)c; (void)d; (void)e; (void)g; (void)stream; (void)x;
    const char *name = f; /* comes first */
    if (capture && is("no_capture") && !strncmp(name, "fmm_p2p", 7)) return 1;
    note(name, -1);
    if (capture) capture->launches++;
    else now++;
    if (is("late_kernel")) lost = 1;
    if (!strcmp(name, "extent")) later(NULL, (const void *)*(uintptr_t *)p[0], 0, *(long long *)p[1]);
#ifndef EMULATED
    /* The first word of the FMM's argument is the address of its state, whose first word are its flags. */
    if (!strcmp(name, "fmm_renew") || !strcmp(name, "fmm_small_boxes") || !strncmp(name, "fmm_cluster_finish", 18)) **(unsigned **)p[0] = 0;
#endif
    if (!strcmp(name, "fmm_inside") && is("outside")) **(unsigned **)p[0] |= 8;
    for (int i = 0; i < 256; i++) {
        if (f != &functions[i]) continue;
        if (s > functions[i].allowed) return 1;
#ifdef EMULATED
        const unsigned grid[3] = {a, b, c}, block[3] = {d, e, g};
        catch_up();
        const int code = emulated_launch(functions[i].kernel, grid, block, s, p);
        if (code) return code;
#endif
    }
#ifndef EMULATED
    if (!strncmp(name, "fmm_verdict", 11)) verdict(*(uint64_t **)p[0], p[1]);
    /* Where the seventh argument asks: single precision does not serve. */
    if (!strcmp(name, "frame") && is("needs_double")) {
        unsigned *to;
        memcpy(&to, (const char *)p[6] + 112, sizeof to);
        if (to) *to = 1;
    }
#endif
    return is("kernel") ? 700 : 0;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == 12345 ? 0 : "text of the fake driver";
    return code == 12345 ? 1 : 0;
}
