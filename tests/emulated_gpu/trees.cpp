// The trees of small problems (kernels/fmm_small.cuh, fmm_cluster.cuh) against those of the kernels for any size, which are run
// after them with the same points: every number that other passes read must be the same, as in tests/gpu/small_tree.cu.
#include "cuda_runtime.h"
#define WFMM_SHARED static // no kernel runs here
#include <fmm.cuh>
#include "trees.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace emulated {

namespace {

using namespace fmm;

// The same problem with memory of its own for all that trees and lists are.
struct Twin {
    Fmm f;
    std::vector<std::unique_ptr<char[]>> memory;
    const size_t size = f.box_side == 1 ? 8 : 4; // of a number

    template <class V> void own(V *&p, size_t bytes) {
        memory.emplace_back(new char[bytes + 8]);
        p = (V *)memory.back().get();
    }
    explicit Twin(const Fmm &of) : f(of) {
        own(f.state, sizeof(State));
        memset(f.state, 0, sizeof(State));
        f.state->longest = of.state->longest; f.state->longest_piece = of.state->longest_piece;
        for (Tree &t : f.tree) {
            const size_t n = t.n, cells = t.cell_capacity, status = (size_t)f.sort_passes * (n / 2048 + 1) * 1024;
            own(t.key, 8 * n); own(t.key_other, 8 * n); own(t.order, 4 * n); own(t.order_other, 4 * n);
            own(t.leaf_level, n); own(t.block_count, 4 * (n / 1024 + 1) * kLevels); own(t.sort_status, status); own(t.point, 8 * size * n);
            memset(t.sort_status, 0, status);
            for (u32 **p : {&t.begin, &t.end, &t.parent, &t.child, &t.info}) own(*p, 4 * cells);
            own(t.cell_key, 8 * cells);
        }
        own(f.strength, 4 * size * f.tree[0].n); own(f.cell_core, 16 * (size_t)f.tree[0].cell_capacity);
        own(f.near, 4 * (size_t)f.tree[1].cell_capacity * kBeside); own(f.tile_cell, 4 * (size_t)f.tree[1].cell_capacity);
    }

    void launch(const char *name, unsigned blocks, unsigned trees, unsigned threads, u32 pass = 0) {
        const Kernel *k = find_kernel("fmm_tree", name);
        if (!k) fail("no kernel %s", name);
        void *arguments[] = {&f, &pass};
        run(*k, k->bind(arguments), {blocks, trees, 1}, threads, 0);
    }
    void make() {
        const unsigned most = std::max(f.tree[0].n, f.tree[1].n), some = (most + 1023) / 1024;
        launch("fmm_bounds", some, 2, 256);
        launch("fmm_keys", some, 2, 256);
        for (u32 pass = 0; pass < f.sort_passes; pass++) launch("fmm_sort", (most + 2047) / 2048, 2, 256, pass);
        launch("fmm_leaves", some, 2, 1024);
        launch("fmm_scan", 1, 2, 32 * kLevels);
        launch("fmm_cells", some, 2, 1024);
        launch("fmm_links", 2, 2, 256);
        launch("fmm_lists", 2, 1, 256);
        launch(size == 8 ? "fmm_gather_f64" : "fmm_gather_f32", some, 2, 256);
    }
};

const char *made_by = "";

template <class V> void same(const char *what, const V *a, const V *b, size_t n) {
    for (size_t k = 0; k < n; k++) if (memcmp(a + k, b + k, sizeof(V))) fail("%s made other trees: %s %zu of %zu", made_by, what, k, n);
}
#define SAME(member, n) same(#member, &a.member[0], &b.member[0], n)

void same_state(const State &a, const State &b) {
    same("flags", &a.flags, &b.flags, 1);
    SAME(deepest, 2); SAME(cells, 2); SAME(level_begin, 2); SAME(bin_count, kBins); SAME(work_ticket, 8); SAME(translated, 2); SAME(small_m2l_ticket, 128); SAME(near_parts, kPartCells);
    same("parts", &a.parts, &b.parts, 1); same("pairs", &a.near_pairs, &b.near_pairs, 3);
    same("least_core", &a.least_core, &b.least_core, 2); same("root", &a.root, &b.root, 1);
}

void same_tree(const Tree &a, const Tree &b, size_t size, size_t cells) {
    const size_t n = count_of(a);
    SAME(key, n); SAME(order, n); SAME(leaf_level, n);
    same("point", (const char *)a.point, (const char *)b.point, 4 * size * n);
    SAME(begin, cells); SAME(end, cells); SAME(parent, cells); SAME(child, cells); SAME(info, cells); SAME(cell_key, cells);
}

// Those of each level and octant come in any order.
std::vector<u32> sorted_tiles(const Fmm &f) {
    std::vector<u32> cells(f.tile_cell, f.tile_cell + f.state->level_begin[1][kLevels]);
    for (size_t bin = 0, at = 0; bin < kBins && at < cells.size(); at += f.state->bin_count[bin++]) std::sort(cells.begin() + at, cells.begin() + at + f.state->bin_count[bin]);
    return cells;
}

void compare(const char *name, const Fmm &a) {
    Twin twin(a);
    twin.make();
    const Fmm &b = twin.f;
    made_by = name;
    same_state(*a.state, *b.state);
    const size_t cells[2] = {a.state->level_begin[0][kLevels], a.state->level_begin[1][kLevels]};
    for (int k = 0; k < 2; k++) same_tree(a.tree[k], b.tree[k], twin.size, cells[k]);
    if (a.kind != kCharge) same("strength", (const char *)a.strength, (const char *)b.strength, 4 * twin.size * count_of(a.tree[0]));
    SAME(cell_core, cells[0]); SAME(near, kBeside * cells[1]);
    same("tile_cell", sorted_tiles(a).data(), sorted_tiles(b).data(), cells[1]);
    printf("\ntrees of %s: %u and %u points, at most %u levels, %zu and %zu cells\n", name, count_of(a.tree[0]), count_of(a.tree[1]), a.max_level, cells[0], cells[1]);
    fflush(stdout);
}

} // namespace

Body comparison(const Kernel &kernel, void **arguments) {
    const char *name = kernel.name;
    if (strncmp(name, "fmm_cluster_finish", 18) && strcmp(name, "fmm_small_lists")) return nullptr;
    return [name, f = *(const Fmm *)arguments[0]] { compare(name, f); };
}

} // namespace emulated
