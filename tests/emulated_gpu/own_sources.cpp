// Which source each target is, found by position among all of them, against what own_sources.cu finds, after each launch of the near
// field of particles or charges in single precision; where EMULATED_OWN_SOURCES is set.
#include "cuda_runtime.h"
#define WFMM_SHARED static // no kernel runs here
#include <fmm.cuh>
#include "trees.h"
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

namespace emulated {

namespace {

using namespace fmm;

typedef std::array<double, 3> Position;

Position position(const Tree &t, u32 sorted) {
    const size_t at = 3 * (size_t)t.order[sorted];
    return {input(t.x, t.x_is_f64, at), input(t.x, t.x_is_f64, at + 1), input(t.x, t.x_is_f64, at + 2)};
}

void compare(Fmm f) {
    const Tree &sources = f.tree[0], &targets = f.tree[1];
    std::vector<u32> found(count_of(targets), kNone);
    u32 *out = found.data();
    void *arguments[] = {&f, &out};
    const Kernel *kernel = find_kernel("own_sources", "own_sources");
    if (!kernel) fail("no kernel own_sources");
    run(*kernel, kernel->bind(arguments), {f.state->level_begin[1][kLevels], 1, 1}, 128, 0);
    std::set<Position> places;
    for (u32 i = 0; i < count_of(sources); i++) places.insert(position(sources, i));
    size_t own = 0;
    for (u32 i = 0; i < found.size(); i++) {
        const Position at = position(targets, i);
        if (places.count(at) != (found[i] != kNone)) fail("target %u is %sa source, which was not seen", i, places.count(at) ? "" : "not ");
        if (found[i] == kNone) continue;
        if (position(sources, found[i]) != at) fail("target %u is not source %u", i, found[i]);
        own++;
    }
    printf("\n%zu of %zu targets are sources\n", own, found.size());
    fflush(stdout);
}

bool ends_with(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

} // namespace

Body check_of_own_sources(const Kernel &kernel, void **arguments) {
    const bool is_asked = getenv("EMULATED_OWN_SOURCES") && !strcmp(kernel.unit, "fmm_p2p");
    if (!is_asked || !ends_with(kernel.name, "_f32") || strstr(kernel.name, "segment")) return nullptr;
    return [f = *(const Fmm *)arguments[0]] { compare(f); };
}

} // namespace emulated
