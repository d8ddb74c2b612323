// The threads of CUDA blocks on one thread of the CPU: each is a fiber that runs until it must wait for others, in a warp, at a
// barrier or for memory. Blocks of a cluster run together, others one after the other, or some at a time where a seed chooses the
// order. What hardware leaves undefined is an error here: lanes that never meet, barriers that disagree, lanes read that did not
// take part, a block reached that has not begun or has ended.
#pragma once
#include <cstddef>
#include <functional>
#include <tuple>

namespace emulated {

struct Index { unsigned x, y, z; };
struct Block;
struct Thread {
    void *stack;
    Block *block;
    Index index, block_index;
    unsigned warp, lane;
    bool has_arrived; // at the barrier of the cluster, where it has not waited since
    unsigned turn;    // of that barrier
};
extern Thread *current;
extern Index block_size, grid_size;
// Not zero: chance decides which thread is next, also where one could go on.
extern unsigned long long seed;
// Whether matrix products run as such, or by the shuffles that older GPUs take.
extern bool tensor_units;

[[noreturn]] void fail(const char *format, ...);

// All lanes of `mask` come here before one goes on; the last calls `finish` with what they brought, by lane.
typedef void (*Finish)(void *const *brought, unsigned mask);
void meet(const char *what, unsigned mask, void *brought, Finish finish);

// Barrier `id` for `threads` threads: arrives, and waits if asked to. Returns how many of them voted.
int barrier(unsigned id, unsigned threads, bool wait, bool vote = false);

// C[16 x 8] += A[16 x 8] B[8 x 8], spread over a warp as in kernels/fmm_mma.cuh.
void multiply_fragments(double *c, const double *a, const double *b);
void multiply_fragments(float *c, const float *a, const float *b);

// Called in a loop that waits for memory: lets the other threads go on.
void spin();
// Called where other threads may see what this one did: lets them go on now and then, where chance decides.
void give_way();

// The barrier of the cluster, by whole warps.
void cluster_arrive();
void cluster_wait();

// Shared memory of this block: what a launch asks for, and a variable of its own. `name`: the same for all threads of a launch.
constexpr size_t kMostShared = 232448;
unsigned char *dynamic_memory();
void *variable(const void *name, size_t bytes, size_t alignment);
// Its addresses in 32 bits, those in block `rank` of the cluster, and a store there (or in this block).
unsigned shared_address(const void *p);
unsigned address_in(unsigned rank, unsigned address);
void store_shared(unsigned address, const void *value, size_t bytes);

// A kernel by its unit and name: its arguments taken from their addresses, and the blocks of a cluster, along x.
typedef std::function<void()> Body;
struct Kernel {
    Kernel(const char *unit, const char *name, std::function<Body(void **)> bind, unsigned cluster);
    const char *unit, *name;
    std::function<Body(void **)> bind;
    unsigned cluster;
    Kernel *next;
};
template <class... A, size_t... K> Body bind_to(void (*kernel)(A...), void **addresses, std::index_sequence<K...>) {
    std::tuple<std::decay_t<A>...> values{*(std::decay_t<A> *)addresses[K]...};
    return [kernel, values] { std::apply(kernel, values); };
}
template <class... A> auto binder(void (*kernel)(A...)) {
    return [kernel](void **addresses) { return bind_to(kernel, addresses, std::index_sequence_for<A...>{}); };
}

// Runs all blocks of a launch with `bytes` of dynamic shared memory.
void run(const Kernel &kernel, const Body &body, Index grid, unsigned threads, unsigned bytes);

} // namespace emulated
