// See threads.h.
#include "threads.h"
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace emulated {

Thread *current;
Index block_index, block_size, grid_size;
bool tensor_units = true;

namespace {

constexpr unsigned kMostThreads = 1024, kStack = 1 << 17, kGuard = 1 << 12, kBarriers = 16, kMeetings = 4;
constexpr unsigned long kMostSpins = 100000000;

struct Meeting { const char *what; unsigned mask, arrived; void *brought[32]; };
struct Warp {
    unsigned ready; // lanes that may run, the running one not among them
    Meeting meeting[kMeetings];
    Thread thread[32];
};
struct Barrier { unsigned expected, arrived, votes, result, waiting[32]; };

Warp warps[kMostThreads / 32];
unsigned ready_warps, alive;
unsigned long spins;
Barrier barriers[kBarriers];
Thread main_thread;
const Body *body;
const char *kernel_name = "";
// The order in which threads that may run do: the first or the last first. No result may depend on it.
bool last_first;

unsigned one_of(unsigned set) { return last_first ? 31 - __builtin_clz(set) : __builtin_ctz(set); }

void make_ready(unsigned warp, unsigned lanes) {
    warps[warp].ready |= lanes;
    if (lanes) ready_warps |= 1u << warp;
}

#if defined(__x86_64__)
// Leaves this stack where it is and goes on where another was left.
extern "C" void emulated_switch(void **from, void *to);
asm(".text\n.hidden emulated_switch\n.globl emulated_switch\n.type emulated_switch,@function\nemulated_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
void switch_to(Thread *from, Thread *to) { emulated_switch(&from->stack, to->stack); }
void prepare(Thread &thread, unsigned char *top, void (*enter)()) {
    void **stack = (void **)top - 2; // where a call would have left it
    *stack = (void *)enter;
    thread.stack = stack - 6;
}
#else
} // namespace
} // namespace emulated
#include <ucontext.h>
namespace emulated {
namespace {
ucontext_t contexts[kMostThreads + 1];
void switch_to(Thread *from, Thread *to) { swapcontext((ucontext_t *)from->stack, (ucontext_t *)to->stack); }
void prepare(Thread &thread, unsigned char *top, void (*enter)()) {
    ucontext_t *context = &contexts[thread.index.x];
    getcontext(context);
    context->uc_stack.ss_sp = top - kStack + kGuard;
    context->uc_stack.ss_size = kStack - kGuard;
    context->uc_link = nullptr;
    makecontext(context, enter, 0);
    thread.stack = context;
    main_thread.stack = &contexts[kMostThreads];
}
#endif

void describe() {
    for (unsigned w = 0; w * 32 < block_size.x; w++)
        for (const Meeting &m : warps[w].meeting)
            if (m.arrived) fprintf(stderr, "  warp %u: lanes %08x of %08x are at %s\n", w, m.arrived, m.mask, m.what);
    for (unsigned b = 0; b < kBarriers; b++)
        if (barriers[b].arrived) fprintf(stderr, "  barrier %u: %u of %u threads\n", b, barriers[b].arrived, barriers[b].expected);
}

// The next thread to run, which is not ready any more.
Thread *pick() {
    if (!ready_warps) fail("no thread can go on; %u have not ended", alive);
    unsigned w = current != &main_thread && warps[current->warp].ready ? current->warp : one_of(ready_warps);
    const unsigned lane = one_of(warps[w].ready);
    warps[w].ready &= ~(1u << lane);
    if (!warps[w].ready) ready_warps &= ~(1u << w);
    return &warps[w].thread[lane];
}

void go_on(Thread *next) {
    Thread *me = current;
    current = next;
    if (next != me) switch_to(me, next);
}

void enter() {
    (*body)();
    spins = 0;
    go_on(--alive ? pick() : &main_thread);
    fail("a thread that has ended went on");
}

unsigned char *stacks() {
    static unsigned char *const memory = [] {
        void *m = mmap(nullptr, (size_t)kMostThreads * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m == MAP_FAILED) fail("no memory for stacks");
        for (unsigned k = 0; k < kMostThreads; k++) mprotect((unsigned char *)m + (size_t)k * kStack, kGuard, PROT_NONE);
        return (unsigned char *)m;
    }();
    return memory;
}

void run_block(unsigned threads) {
    for (unsigned k = 0; k < threads; k++) {
        Thread &t = warps[k / 32].thread[k % 32];
        t.index = {k, 0, 0}; t.warp = k / 32; t.lane = k % 32;
        prepare(t, stacks() + (size_t)(k + 1) * kStack, enter);
        make_ready(t.warp, 1u << t.lane);
    }
    alive = threads; spins = 0;
    current = &main_thread;
    go_on(pick());
    for (Barrier &b : barriers) { if (b.arrived) fail("a block has ended at a barrier"); b.expected = 0; }
}

template <class T> struct Fragments { T *c; const T *a, *b; };

template <class T> void multiply_warp(void *const *all, unsigned) {
    T a[16][8], b[8][8], c[16][8];
    for (int lane = 0; lane < 32; lane++) {
        const Fragments<T> &f = *(const Fragments<T> *)all[lane];
        const int g = lane / 4, t = lane % 4;
        for (int k = 0; k < 4; k++) a[g + 8 * (k & 1)][t + 4 * (k >> 1)] = f.a[k];
        for (int k = 0; k < 2; k++) b[t + 4 * k][g] = f.b[k];
        for (int n = 0; n < 4; n++) c[g + 8 * (n >> 1)][2 * t + (n & 1)] = f.c[n];
    }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 8; k++)
            for (int j = 0; j < 8; j++) c[i][j] = std::fma(a[i][k], b[k][j], c[i][j]);
    for (int lane = 0; lane < 32; lane++)
        for (int n = 0; n < 4; n++) ((const Fragments<T> *)all[lane])->c[n] = c[lane / 4 + 8 * (n >> 1)][lane % 4 * 2 + (n & 1)];
}

} // namespace

void multiply_fragments(double *c, const double *a, const double *b) {
    Fragments<double> mine{c, a, b};
    meet("a matrix product", ~0u, &mine, multiply_warp<double>);
}
void multiply_fragments(float *c, const float *a, const float *b) {
    Fragments<float> mine{c, a, b};
    meet("a matrix product", ~0u, &mine, multiply_warp<float>);
}

void fail(const char *format, ...) {
    fprintf(stderr, "emulated GPU: kernel %s, block %u %u, thread %u: ", kernel_name, block_index.x, block_index.y, current ? current->index.x : 0);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    describe();
    abort();
}

void meet(const char *what, unsigned mask, void *brought, Finish finish) {
    Warp &w = warps[current->warp];
    const unsigned me = 1u << current->lane, warp = current->warp;
    if (!(mask & me)) fail("%s without the lane that calls it in its mask %08x", what, mask);
    Meeting *m = nullptr;
    for (Meeting &other : w.meeting) {
        if (!other.arrived) { if (!m) m = &other; continue; }
        if (other.mask == mask) { m = &other; break; }
        if (other.mask & mask) fail("%s of lanes %08x, while others are at %s of %08x", what, mask, other.what, other.mask);
    }
    if (!m) fail("%s: too many parts of a warp", what);
    if (!m->arrived) { m->what = what; m->mask = mask; }
    else if (m->what != what && strcmp(m->what, what)) fail("%s, while others of the warp are at %s", what, m->what);
    m->brought[current->lane] = brought;
    m->arrived |= me;
    if (m->arrived != mask) { go_on(pick()); return; }
    if (finish) finish(m->brought, mask);
    m->arrived = 0; spins = 0;
    make_ready(warp, mask & ~me);
}

int barrier(unsigned id, unsigned threads, bool wait, bool vote) {
    Barrier &b = barriers[id];
    if (b.arrived == 0) { b.expected = threads; b.votes = 0; }
    if (b.expected != threads) fail("barrier %u of %u threads, while others want %u", id, threads, b.expected);
    b.votes += vote;
    if (++b.arrived < threads) {
        if (wait) { b.waiting[current->warp] |= 1u << current->lane; go_on(pick()); }
        return (int)b.result; // nobody is at the next barrier's end before all have left this one
    }
    b.arrived = 0; b.result = b.votes; spins = 0;
    for (unsigned w = 0; w < 32; w++) { make_ready(w, b.waiting[w]); b.waiting[w] = 0; }
    return (int)b.result;
}

void spin() {
    if (++spins > kMostSpins) fail("a thread waits for memory that nobody writes");
    if (!ready_warps) return;
    // The next one after this, so that all get their turn.
    Thread *me = current;
    const unsigned later = ready_warps & ~((2u << me->warp) - 1);
    const unsigned lanes = warps[me->warp].ready & ~((2u << me->lane) - 1);
    const unsigned w = lanes ? me->warp : __builtin_ctz(later ? later : ready_warps), lane = __builtin_ctz(lanes ? lanes : warps[w].ready);
    warps[w].ready &= ~(1u << lane);
    if (!warps[w].ready) ready_warps &= ~(1u << w);
    make_ready(me->warp, 1u << me->lane);
    go_on(&warps[w].thread[lane]);
}

void run(const char *name, const Body &what, Index grid, unsigned threads, unsigned char *memory, unsigned bytes) {
    constexpr unsigned kBeyond = 64;
    kernel_name = name; body = &what;
    grid_size = grid; block_size = {threads, 1, 1};
    const char *order = getenv("EMULATED_ORDER"), *products = getenv("EMULATED_MMA");
    last_first = order && !strcmp(order, "last");
    tensor_units = !(products && !strcmp(products, "shuffle"));
    if (threads == 0 || threads > kMostThreads || threads % 32) fail("blocks of %u threads", threads);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                block_index = {x, y, z};
                memset(memory, 0xff, bytes + kBeyond); // numbers that are none
                run_block(threads);
                for (unsigned k = 0; k < kBeyond; k++) if (memory[bytes + k] != 0xff) fail("writes beyond the %u bytes of shared memory", bytes);
            }
    current = nullptr;
}

} // namespace emulated
