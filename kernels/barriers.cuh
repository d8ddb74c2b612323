// Barriers between groups of warps of a block: some warps arrive, others wait until all of them have. Phases are numbered, so that a
// pair of barriers hands a buffer in shared memory back and forth (full, empty). From sm_80 on they are mbarriers, before that the
// block's named barriers.
#pragma once
#include "fmm.cuh"

namespace fmm {

// COUNT of them in shared memory; `meet` uses the named barrier after theirs.
template <int COUNT> struct Barriers {
    u64 word[COUNT];

    __device__ u32 address(int barrier) const { return (u32)__cvta_generic_to_shared(word + barrier); }
    // By one thread, before a barrier of the block.
    __device__ void open(int barrier, int threads) {
#if __CUDA_ARCH__ >= 800
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address(barrier)), "r"(threads) : "memory");
#endif
    }
    // What the thread wrote is seen by those that wait. threads: all that arrive or wait there. (One lane for its warp would do after
    // __syncwarp, and is not faster; racecheck follows only threads that arrive themselves.)
    __device__ void arrive(int barrier, int threads) {
        __syncwarp();
#ifdef WFMM_EMULATED
        emulated::barrier(barrier + 1, threads, false);
#elif __CUDA_ARCH__ >= 800
        asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address(barrier)) : "memory");
#else
        __threadfence_block();
        asm volatile("bar.arrive %0, %1;" ::"r"(barrier + 1), "r"(threads) : "memory");
#endif
        __syncwarp();
    }
    // Until phase `phase` of the barrier, counted from 0, is over. REST: sleeps between polls.
    template <bool REST = false> __device__ void wait(int barrier, u32 phase, int threads) const {
        __syncwarp();
#ifdef WFMM_EMULATED
        emulated::barrier(barrier + 1, threads, true);
#elif __CUDA_ARCH__ >= 800
        u32 over;
        while (true) {
#if __CUDA_ARCH__ >= 900
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(address(barrier)), "r"(phase & 1) : "memory");
#else
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(address(barrier)), "r"(phase & 1) : "memory");
#endif
            if (over) break;
            if (REST) __nanosleep(40);
        }
#else
        asm volatile("bar.sync %0, %1;" ::"r"(barrier + 1), "r"(threads) : "memory");
#endif
        __syncwarp();
    }
    // So many threads of the block wait for one another.
    static __device__ void meet(int threads) {
#ifdef WFMM_EMULATED
        emulated::barrier(COUNT + 1, threads, true);
#else
        asm volatile("bar.sync %0, %1;" ::"n"(COUNT + 1), "r"(threads) : "memory");
#endif
    }
};

} // namespace fmm
