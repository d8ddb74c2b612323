// The threads of a CUDA block on one thread of the CPU: each is a fiber that runs until it must wait for others, in a warp, at a
// barrier or for memory. Blocks run one after the other, in their order. What hardware leaves undefined is an error here: lanes
// that never meet, barriers that disagree, lanes read that did not take part.
#pragma once
#include <functional>
#include <tuple>

namespace emulated {

struct Index { unsigned x, y, z; };
struct Thread {
    void *stack;
    Index index;
    unsigned warp, lane;
};
extern Thread *current;
extern Index block_index, block_size, grid_size;
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

// A kernel by its unit and name: its arguments taken from their addresses, and the block's dynamic shared memory.
typedef std::function<void()> Body;
struct Kernel {
    Kernel(const char *unit, const char *name, std::function<Body(void **)> bind, unsigned char *memory);
    const char *unit, *name;
    std::function<Body(void **)> bind;
    unsigned char *memory;
    Kernel *next;
};
template <class... A, size_t... K> Body bind_to(void (*kernel)(A...), void **addresses, std::index_sequence<K...>) {
    std::tuple<std::decay_t<A>...> values{*(std::decay_t<A> *)addresses[K]...};
    return [kernel, values] { std::apply(kernel, values); };
}
template <class... A> auto binder(void (*kernel)(A...)) {
    return [kernel](void **addresses) { return bind_to(kernel, addresses, std::index_sequence_for<A...>{}); };
}

// Runs all blocks of a launch.
void run(const char *name, const Body &body, Index grid, unsigned threads, unsigned char *memory, unsigned bytes);

} // namespace emulated
