// Gates: some warps of a block arrive, others wait until all of them have; numbered turns, so that a pair of gates hands a place in
// shared memory back and forth. From sm_80 on they are mbarriers, before that the block's named barriers.
#pragma once
#include "fmm.cuh"

namespace fmm {

// GATES of them in shared memory; `meet` uses the named barrier after theirs.
template <int GATES> struct Gates {
    u64 barrier[GATES];

    __device__ u32 address(int gate) const { return (u32)__cvta_generic_to_shared(barrier + gate); }
    // By one thread, before a barrier of the block.
    __device__ void open(int gate, int threads) {
#if __CUDA_ARCH__ >= 800
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address(gate)), "r"(threads) : "memory");
#endif
    }
    // What the thread wrote is seen by those that wait. threads: all that arrive or wait there. (One lane for its warp would do after
    // __syncwarp, and is not faster; racecheck follows only threads that arrive themselves.)
    __device__ void arrive(int gate, int threads) {
        __syncwarp();
#ifdef WFMM_EMULATED
        emulated::barrier(gate + 1, threads, false);
#elif __CUDA_ARCH__ >= 800
        asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address(gate)) : "memory");
#else
        __threadfence_block();
        asm volatile("bar.arrive %0, %1;" ::"r"(gate + 1), "r"(threads) : "memory");
#endif
        __syncwarp();
    }
    // Until the gate's turn number `turn`, counted from 0, is over. REST: leaving the processor to the others meanwhile.
    template <bool REST = false> __device__ void wait(int gate, u32 turn, int threads) const {
        __syncwarp();
#ifdef WFMM_EMULATED
        emulated::barrier(gate + 1, threads, true);
#elif __CUDA_ARCH__ >= 800
        u32 over;
        while (true) {
#if __CUDA_ARCH__ >= 900
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(address(gate)), "r"(turn & 1) : "memory");
#else
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(address(gate)), "r"(turn & 1) : "memory");
#endif
            if (over) break;
            if (REST) __nanosleep(40);
        }
#else
        asm volatile("bar.sync %0, %1;" ::"r"(gate + 1), "r"(threads) : "memory");
#endif
        __syncwarp();
    }
    // So many threads of the block wait for one another.
    static __device__ void meet(int threads) {
#ifdef WFMM_EMULATED
        emulated::barrier(GATES + 1, threads, true);
#else
        asm volatile("bar.sync %0, %1;" ::"n"(GATES + 1), "r"(threads) : "memory");
#endif
    }
};

} // namespace fmm
