// Sums over what the threads of a block have.
#pragma once
#include "common.cuh"

// The sum over the threads before this one, and that of all: a block of 1024, `s_sum` in shared memory. Ends with a barrier.
WFMM_DEVICE unsigned sum_before(unsigned mine, unsigned (&s_sum)[32], unsigned& all) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned up_to = mine;
    for (int by = 1; by < 32; by *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffffu, up_to, by);
        if (lane >= by) up_to += other;
    }
    if (lane == 31) s_sum[warp] = up_to;
    __syncthreads();
    all = 0;
    for (int w = 0; w < 32; w++) {
        if (w == warp) up_to += all;
        all += s_sum[w];
    }
    __syncthreads();
    return up_to - mine;
}
