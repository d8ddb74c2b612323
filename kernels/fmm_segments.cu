// Segments to what the tree takes: midpoint (the point that is sorted), half of the vector from P1 to P2, circulation, core.
// Leaves too: the longest length, which bounds how small the leaves of the source tree may be.
#include "fmm.cuh"
using namespace fmm;

// Launch: 256 threads, any number of blocks.
extern "C" __global__ void __launch_bounds__(256) fmm_segments(const __grid_constant__ Fmm f) {
    const u32 points_f64 = f.inputs_are_f64 >> 2 & 1;
    double longest = 0;
    for (u32 i = blockIdx.x * 256 + threadIdx.x; i < f.n_in; i += gridDim.x * 256) {
        const size_t a = 3 * (size_t)(f.connectivity[(size_t)f.ld * i] - (int)f.index_base), b = 3 * (size_t)(f.connectivity[(size_t)f.ld * i + 1] - (int)f.index_base);
        Piece p;
        double l2 = 0;
        for (int k = 0; k < 3; k++) {
            const double x = input(f.points, points_f64, a + k), y = input(f.points, points_f64, b + k);
            ((double *)f.tree[0].x)[3 * (size_t)i + k] = 0.5 * (x + y);
            p.half[k] = 0.5 * (y - x);
            l2 += p.half[k] * p.half[k];
        }
        p.circulation = l2 > 0 ? input(f.strength_in, f.inputs_are_f64 & 1, i) : 0;
        p.core = f.core_in ? input(f.core_in, f.inputs_are_f64 >> 1 & 1, i) : f.default_core;
        ((Piece *)f.piece)[i] = p;
        longest = fmax(longest, 2 * sqrt(l2));
    }
    for (int d = 16; d; d >>= 1) longest = fmax(longest, __shfl_xor_sync(~0u, longest, d));
    if ((threadIdx.x & 31) == 0) atomicMax(&f.state->longest, ordered(longest));
}
