// See threads.h.
#include "shared.h"
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

namespace emulated {

Thread *current;
Index block_size, grid_size;
unsigned long long seed;
bool tensor_units = true;

namespace {

constexpr unsigned kMostThreads = 1024, kStack = 1 << 17, kGuard = 1 << 12, kUsed = kStack - kGuard - 64 * 256, kBarriers = 16, kMeetings = 4;
constexpr unsigned long kMostSpins = 100000000;

struct Meeting { const char *what; unsigned mask, arrived; void *brought[32]; };
struct Warp {
    unsigned ready; // lanes that may run, the running one not among them
    unsigned at_cluster; // lanes that wait at the barrier of the cluster
    Meeting meeting[kMeetings];
    Thread thread[32];
};
struct Barrier { unsigned expected, arrived, votes, result, waiting[32]; };

} // namespace

struct Block {
    unsigned ready_warps, alive;
    bool has_begun;
    Barrier barriers[kBarriers];
    Warp warps[kMostThreads / 32];
};

namespace {

// The barrier of a cluster; threads that have ended are not waited for.
struct Cluster { unsigned alive, arrived, turn; };

Block blocks[kMostBlocks];
Cluster clusters[kMostBlocks];
unsigned ready_blocks, alive, cluster_size;
unsigned long spins;
Thread main_thread;
const Body *body;
const char *kernel_name = "";
// The order in which threads that may run do: the first or the last first, or as chance has it. No result may depend on it.
bool last_first;

unsigned long long chance() {
    seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1dull >> 33;
}

unsigned one_of(unsigned set) {
    if (!seed) return last_first ? 31 - __builtin_clz(set) : __builtin_ctz(set);
    for (unsigned k = chance() % __builtin_popcount(set); k; k--) set &= set - 1;
    return __builtin_ctz(set);
}

unsigned slot_of(const Block &block) { return &block - blocks; }
Cluster &cluster_of(const Block &block) { return clusters[slot_of(block) / cluster_size]; }

void make_ready(Block &block, unsigned warp, unsigned lanes) {
    if (!lanes) return;
    block.warps[warp].ready |= lanes;
    block.ready_warps |= 1u << warp;
    ready_blocks |= 1u << slot_of(block);
}

// The thread, which is not ready any more.
Thread *take(Block &block, unsigned warp, unsigned lane) {
    Warp &w = block.warps[warp];
    w.ready &= ~(1u << lane);
    if (!w.ready) block.ready_warps &= ~(1u << warp);
    if (!block.ready_warps) ready_blocks &= ~(1u << slot_of(block));
    block.has_begun = true;
    return &w.thread[lane];
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
ucontext_t contexts[kMostBlocks * kMostThreads + 1];
void switch_to(Thread *from, Thread *to) { swapcontext((ucontext_t *)from->stack, (ucontext_t *)to->stack); }
void prepare(Thread &thread, unsigned char *top, void (*enter)()) {
    ucontext_t *context = &contexts[slot_of(*thread.block) * kMostThreads + thread.index.x];
    getcontext(context);
    context->uc_stack.ss_sp = top - kUsed;
    context->uc_stack.ss_size = kUsed;
    context->uc_link = nullptr;
    makecontext(context, enter, 0);
    thread.stack = context;
    main_thread.stack = &contexts[kMostBlocks * kMostThreads];
}
#endif

void describe() {
    for (const Block &block : blocks) {
        if (!block.alive) continue;
        const Index at = block.warps[0].thread[0].block_index;
        fprintf(stderr, "  block %u %u: %u threads have not ended\n", at.x, at.y, block.alive);
        for (unsigned w = 0; w * 32 < block_size.x; w++) {
            for (const Meeting &m : block.warps[w].meeting)
                if (m.arrived) fprintf(stderr, "    warp %u: lanes %08x of %08x are at %s\n", w, m.arrived, m.mask, m.what);
            if (const unsigned lanes = block.warps[w].at_cluster) fprintf(stderr, "    warp %u: lanes %08x are at the cluster's barrier\n", w, lanes);
        }
        for (unsigned b = 0; b < kBarriers; b++)
            if (block.barriers[b].arrived) fprintf(stderr, "    barrier %u: %u of %u threads\n", b, block.barriers[b].arrived, block.barriers[b].expected);
    }
}

// The next thread to run: of the same warp, of the same block, of another. Chance leaves a warp now and then: for all threads in
// turn no cache is large enough.
Thread *pick() {
    if (!ready_blocks) fail("no thread can go on; %u have not ended", alive);
    Block *const mine = seed && chance() % 16 == 0 ? nullptr : current->block;
    Block &block = mine && mine->ready_warps ? *mine : blocks[one_of(ready_blocks)];
    const bool stay = &block == mine && block.warps[current->warp].ready;
    const unsigned warp = stay ? current->warp : one_of(block.ready_warps);
    return take(block, warp, one_of(block.warps[warp].ready));
}

void go_on(Thread *next) {
    Thread *me = current;
    current = next;
    if (next != me) switch_to(me, next);
}

// Where all are at the barrier of the cluster: lets them go on.
void end_turn(Cluster &cluster) {
    if (cluster.arrived < cluster.alive) return;
    cluster.arrived = 0; cluster.turn++; spins = 0;
    for (unsigned b = &cluster - clusters, k = b * cluster_size; k < (b + 1) * cluster_size; k++)
        for (unsigned w = 0; w < kMostThreads / 32; w++) { make_ready(blocks[k], w, blocks[k].warps[w].at_cluster); blocks[k].warps[w].at_cluster = 0; }
}

void enter() {
    (*body)();
    if (current->has_arrived) fail("ends between its arrival at the cluster's barrier and its wait");
    spins = 0;
    current->block->alive--;
    Cluster &cluster = cluster_of(*current->block);
    cluster.alive--;
    end_turn(cluster);
    go_on(--alive ? pick() : &main_thread);
    fail("a thread that has ended went on");
}

// Stacks of the threads of block `slot`, each above pages that nobody may touch.
unsigned char *stacks(unsigned slot) {
    static unsigned char *memory[kMostBlocks];
    if (memory[slot]) return memory[slot];
    void *m = mmap(nullptr, (size_t)kMostThreads * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) fail("no memory for stacks");
    for (unsigned k = 0; k < kMostThreads; k++) mprotect((unsigned char *)m + (size_t)k * kStack, kGuard, PROT_NONE);
    return memory[slot] = (unsigned char *)m;
}

void begin_block(unsigned slot, Index index) {
    Block &block = blocks[slot];
    for (unsigned k = 0; k < block_size.x; k++) {
        Thread &t = block.warps[k / 32].thread[k % 32];
        t.block = &block; t.index = {k, 0, 0}; t.block_index = index; t.warp = k / 32; t.lane = k % 32; t.has_arrived = false;
        // Stacks begin in different sets of the cache.
        prepare(t, stacks(slot) + (size_t)(k + 1) * kStack - k % 64 * 256, enter);
        make_ready(block, t.warp, 1u << t.lane);
    }
    block.alive = block_size.x; block.has_begun = false;
    alive += block_size.x;
    cluster_of(block).alive += block_size.x;
}

template <class T> struct Fragments { T *c; const T *a, *b; };

// Eight results of one row.
void multiply_row(double *c, const double *a, const double (*b)[8]) {
    for (int k = 0; k < 8; k++)
        for (int j = 0; j < 8; j++) c[j] = std::fma(a[k], b[k][j], c[j]);
}
// In single precision the units' sum has more digits than its result, which is truncated: where the nearest number is farther from
// zero, the one before it.
void multiply_row(float *c, const float *a, const float (*b)[8]) {
    double sum[8];
    for (int j = 0; j < 8; j++) sum[j] = c[j];
    for (int k = 0; k < 8; k++)
        for (int j = 0; j < 8; j++) sum[j] += (double)a[k] * b[k][j];
    for (int j = 0; j < 8; j++) {
        const float near = (float)sum[j];
        int bits;
        memcpy(&bits, &near, sizeof bits);
        bits -= std::fabs((double)near) > std::fabs(sum[j]);
        memcpy(&c[j], &bits, sizeof bits);
    }
}

template <class T> void multiply_warp(void *const *all, unsigned) {
    T a[16][8], b[8][8], c[16][8];
    for (int lane = 0; lane < 32; lane++) {
        const Fragments<T> &f = *(const Fragments<T> *)all[lane];
        const int g = lane / 4, t = lane % 4;
        for (int k = 0; k < 4; k++) a[g + 8 * (k & 1)][t + 4 * (k >> 1)] = f.a[k];
        for (int k = 0; k < 2; k++) b[t + 4 * k][g] = f.b[k];
        for (int n = 0; n < 4; n++) c[g + 8 * (n >> 1)][2 * t + (n & 1)] = f.c[n];
    }
    for (int i = 0; i < 16; i++) multiply_row(c[i], a[i], b);
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
    fprintf(stderr, "emulated GPU: kernel %s, block %u %u, thread %u: ", kernel_name, current ? current->block_index.x : 0, current ? current->block_index.y : 0, current ? current->index.x : 0);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    describe();
    abort();
}

void meet(const char *what, unsigned mask, void *brought, Finish finish) {
    Warp &w = current->block->warps[current->warp];
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
    make_ready(*current->block, warp, mask & ~me);
}

int barrier(unsigned id, unsigned threads, bool wait, bool vote) {
    Barrier &b = current->block->barriers[id];
    if (b.arrived == 0) { b.expected = threads; b.votes = 0; }
    if (b.expected != threads) fail("barrier %u of %u threads, while others want %u", id, threads, b.expected);
    b.votes += vote;
    if (++b.arrived < threads) {
        if (wait) { b.waiting[current->warp] |= 1u << current->lane; go_on(pick()); }
        return (int)b.result; // nobody is at the next barrier's end before all have left this one
    }
    b.arrived = 0; b.result = b.votes; spins = 0;
    for (unsigned w = 0; w < 32; w++) { make_ready(*current->block, w, b.waiting[w]); b.waiting[w] = 0; }
    return (int)b.result;
}

void cluster_arrive() {
    meet("the arrival at the cluster's barrier", ~0u, nullptr, nullptr);
    Cluster &cluster = cluster_of(*current->block);
    if (current->has_arrived) fail("arrives at the cluster's barrier again, and has not waited");
    current->has_arrived = true; current->turn = cluster.turn;
    cluster.arrived++;
    end_turn(cluster);
}

void cluster_wait() {
    meet("the wait at the cluster's barrier", ~0u, nullptr, nullptr);
    if (!current->has_arrived) fail("waits at the cluster's barrier, and has not arrived");
    current->has_arrived = false;
    if (current->turn != cluster_of(*current->block).turn) return;
    current->block->warps[current->warp].at_cluster |= 1u << current->lane;
    go_on(pick());
}

void spin() {
    if (++spins > kMostSpins) fail("a thread waits for memory that nobody writes");
    if (!ready_blocks) return;
    Thread *me = current;
    Block &mine = *me->block;
    if (seed) {
        Thread *next = pick();
        make_ready(mine, me->warp, 1u << me->lane);
        go_on(next);
        return;
    }
    // The next one after this, so that all get their turn.
    const unsigned lanes = mine.warps[me->warp].ready & ~((2u << me->lane) - 1), warps = mine.ready_warps & ~((2u << me->warp) - 1);
    const unsigned slots = ready_blocks & ~((2u << slot_of(mine)) - 1);
    Block &block = lanes || warps ? mine : blocks[__builtin_ctz(slots ? slots : ready_blocks)];
    const unsigned w = lanes ? me->warp : __builtin_ctz(warps ? warps : block.ready_warps);
    Thread *next = take(block, w, __builtin_ctz(lanes ? lanes : block.warps[w].ready));
    make_ready(mine, me->warp, 1u << me->lane);
    go_on(next);
}

void give_way() {
    if (!seed || !ready_blocks || chance() % 4) return;
    Thread *me = current, *next = pick();
    make_ready(*me->block, me->warp, 1u << me->lane);
    go_on(next);
}

unsigned slot(const Thread *thread) { return slot_of(*thread->block); }

unsigned slot_in_cluster(unsigned rank) {
    if (rank >= cluster_size) fail("reaches block %u of a cluster of %u", rank, cluster_size);
    const unsigned slot = slot_of(*current->block) / cluster_size * cluster_size + rank;
    if (!blocks[slot].has_begun) fail("reaches block %u of its cluster, which has not begun", rank);
    if (!blocks[slot].alive) fail("reaches block %u of its cluster, which has ended", rank);
    return slot;
}

// EMULATED_ORDER: last, the seed of chance, or what else for the first thread first.
static void set_order() {
    const char *order = getenv("EMULATED_ORDER"), *products = getenv("EMULATED_MMA");
    last_first = order && !strcmp(order, "last");
    static const unsigned long long first_seed = order ? strtoull(order, nullptr, 10) * 0x9e3779b97f4a7c15ull : 0;
    if (!seed) seed = first_seed;
    tensor_units = !(products && !strcmp(products, "shuffle"));
}

// Clusters in the order in which they are run, each by the number of its first block.
static std::vector<unsigned> in_order(unsigned all) {
    std::vector<unsigned> first;
    for (unsigned b = 0; b < all; b += cluster_size) first.push_back(b);
    if (last_first) first = {first.rbegin(), first.rend()};
    if (seed) for (size_t k = first.size(); k > 1; k--) std::swap(first[k - 1], first[chance() % k]);
    return first;
}

void run(const Kernel &kernel, const Body &what, Index grid, unsigned threads, unsigned bytes) {
    kernel_name = kernel.name; body = &what; cluster_size = kernel.cluster;
    grid_size = grid; block_size = {threads, 1, 1};
    set_order();
    if (threads == 0 || threads > kMostThreads || threads % 32) fail("blocks of %u threads", threads);
    if (cluster_size == 0 || cluster_size > kMostBlocks) fail("clusters of %u blocks", cluster_size);
    begin_shared(bytes);
    const unsigned at_a_time = seed ? kMostBlocks / cluster_size : 1;
    const std::vector<unsigned> order = in_order(grid.x * grid.y * grid.z);
    for (size_t k = 0; k < order.size(); k += at_a_time) {
        unsigned slots = 0;
        memset(clusters, 0, sizeof clusters);
        for (size_t c = k; c < order.size() && c < k + at_a_time; c++)
            for (unsigned b = order[c]; b < order[c] + cluster_size; b++, slots++) {
                fill_shared(slots);
                begin_block(slots, {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y});
            }
        spins = 0;
        current = &main_thread;
        go_on(pick());
        for (unsigned slot = 0; slot < slots; slot++) {
            for (Barrier &b : blocks[slot].barriers) { if (b.arrived) fail("a block has ended at a barrier"); b.expected = 0; }
            check_shared(slot);
        }
    }
    current = nullptr;
}

} // namespace emulated
