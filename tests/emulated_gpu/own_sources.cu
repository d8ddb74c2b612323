// Which source each target is, as the near field finds it (kernels/fmm_ranges.cuh). Launch: a block of 128 threads for each target cell.
#include <fmm_ranges.cuh>
using namespace fmm;

// [targets] `found`: a sorted source, or kNone.
WFMM_KERNEL own_sources(const Fmm f, u32 *found) {
    __shared__ Ranges s;
    const Tree &t = f.tree[1];
    const u32 cell = blockIdx.x, info = t.info[cell];
    if (!info_leaf(info)) return;
    s.climb(t, cell, info_level(info));
    s.collect_near(f, info_level(info));
    for (u32 i = t.begin[cell] + threadIdx.x; i < t.end[cell]; i += kThreads) found[i] = s.own_source(f, i);
}
