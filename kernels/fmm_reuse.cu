// An evaluation that keeps what the last one left: the sources' tree where only strengths or targets are new, its multipoles
// where only targets are. Runs instead of the clearing of the state and of the bounding box: the root cube stays.
#include "fmm.cuh"
using namespace fmm;

// Counters to zero, with `upward` what P2M raises as well; with `targets` the target tree's as well, and what its kernels overwrite of the
// sources' goes to `kept`.
// Launch: one block of 256 threads.
extern "C" __global__ void __launch_bounds__(256) fmm_renew(const __grid_constant__ Fmm f, State *kept, int targets, int upward) {
    State &s = *f.state;
    const int i = threadIdx.x;
    if (i == 0) {
        s.flags = 0; s.parts = 0;
        s.near_pairs = s.core_pairs = s.far_pairs = 0;
        if (upward) s.strongest = 0;
    }
    if (i < 8) s.work_ticket[i] = 0;
    if (i < 128) s.small_m2l_ticket[i] = 0;
    if (i < 2 * kLevels) s.translated[i / kLevels][i % kLevels] = 0;
    if (!targets) return;
    if (i == 0) { kept->cells[0] = s.cells[0]; kept->deepest[0] = s.deepest[0]; }
    if (i < kLevels + 2) kept->level_begin[0][i] = s.level_begin[0][i];
    if (i < kBins) s.bin_count[i] = s.bin_cursor[i] = 0;
    if (i < 8) { s.sort_ticket[1][i] = 0; for (int k = 0; k < 256; k++) s.histogram[1][i][k] = 0; }
}

// Looks for targets that the root cube does not hold. Launch: 256 threads, any number of blocks.
extern "C" __global__ void __launch_bounds__(256) fmm_inside(const __grid_constant__ Fmm f) {
    const Tree &t = f.tree[1];
    const Root r = f.state->root;
    const u32 n = count_of(t);
    bool outside = false;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        for (int k = 0; k < 3; k++) {
            const double x = (input(t.x, t.x_is_f64, 3 * (size_t)i + k) - r.origin[k]) * r.scale;
            outside |= !(x >= 0 && x < r.side);
        }
    if (__syncthreads_or(outside) && threadIdx.x == 0) atomicOr(&f.state->flags, kOutside);
}

// Puts the sources' part of the state back; where the tree is of no use, nothing is left for the passes to do.
// Launch: one block of 256 threads.
extern "C" __global__ void __launch_bounds__(256) fmm_restore(const __grid_constant__ Fmm f, const State *kept) {
    State &s = *f.state;
    const int i = threadIdx.x;
    if (i == 0) { s.cells[0] = kept->cells[0]; s.deepest[0] = kept->deepest[0]; }
    if (i < kLevels + 2) s.level_begin[0][i] = kept->level_begin[0][i];
    if (s.flags == 0) return;
    if (i < kLevels + 2) s.level_begin[1][i] = 0;
    if (i < kBins) s.bin_count[i] = 0;
}
