// CUDA C++ for a host compiler: the words of the language that the kernels use, in terms of threads.h. Whole kernels run with it;
// kernels/shim.cuh is enough for functions of one thread.
#pragma once
#include "threads.h"
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#define WFMM_EMULATED 1
#define WFMM_KERNEL extern "C" __global__ void
#define __device__
#define __host__
#define __grid_constant__
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// The build (translate.rs) reads these in the preprocessed text.
#define __global__ WFMM_GLOBAL
#define __shared__ WFMM_SHARED
#define __cluster_dims__(x, y, z) WFMM_CLUSTER_##x##_##y##_##z
#undef __forceinline__
#define __forceinline__ inline

#define threadIdx (emulated::current->index)
#define blockIdx (emulated::current->block_index)
#define blockDim (emulated::block_size)
#define gridDim (emulated::grid_size)
constexpr int warpSize = 32;

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

template <class A, class B> inline std::common_type_t<A, B> min(A a, B b) {
    typedef std::common_type_t<A, B> T;
    if constexpr (std::is_floating_point_v<T>) return std::fmin((T)a, (T)b);
    else return (T)a < (T)b ? (T)a : (T)b;
}
template <class A, class B> inline std::common_type_t<A, B> max(A a, B b) {
    typedef std::common_type_t<A, B> T;
    if constexpr (std::is_floating_point_v<T>) return std::fmax((T)a, (T)b);
    else return (T)a > (T)b ? (T)a : (T)b;
}
inline double cospi(double x) { return std::cos(M_PI * x); }
inline double sinpi(double x) { return std::sin(M_PI * x); }
inline double __dmul_rn(double a, double b) { return a * b; } // nothing is contracted here
inline float __fmul_rn(float a, float b) { return a * b; }
template <class To, class From> inline To bits_of(From x) { static_assert(sizeof(To) == sizeof(From)); To y; std::memcpy(&y, &x, sizeof x); return y; }
inline long long __double_as_longlong(double x) { return bits_of<long long>(x); }
inline double __longlong_as_double(long long x) { return bits_of<double>(x); }
inline unsigned __float_as_uint(float x) { return bits_of<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return bits_of<float>(x); }
inline int __float_as_int(float x) { return bits_of<int>(x); }
inline float __int_as_float(int x) { return bits_of<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
    const unsigned long long all = (unsigned long long)high << 32 | low;
    unsigned y = 0;
    for (int k = 0; k < 4; k++) y |= (unsigned)(all >> 8 * (which >> 4 * k & 7) & 255) << 8 * k;
    return y;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) { return (unsigned)((((unsigned long long)high << 32) | low) >> (by & 31)); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) { unsigned y = 0; for (int k = 0; k < 32; k++) y |= (x >> k & 1) << (31 - k); return y; }
template <class T> inline T __ldg(const T *p) { return *p; }
template <class T> inline T __ldcg(const T *p) { return *p; }
template <class T> inline T __ldcs(const T *p) { return *p; }
template <class T> inline void __stcs(T *p, T x) { *p = x; }
template <class T> inline void __stcg(T *p, T x) { *p = x; }

// ---- Atomics: fibers are not interrupted in them. ------------------------------------------------------------------------------

template <class T> using Same = std::common_type_t<T>; // the type in memory decides
template <class T> inline T atomicAdd(T *at, Same<T> x) { emulated::give_way(); const T old = *at; *at = old + x; return old; }
template <class T> inline T atomicSub(T *at, Same<T> x) { emulated::give_way(); const T old = *at; *at = old - x; return old; }
template <class T> inline T atomicOr(T *at, Same<T> x) { emulated::give_way(); const T old = *at; *at = old | x; return old; }
template <class T> inline T atomicAnd(T *at, Same<T> x) { emulated::give_way(); const T old = *at; *at = old & x; return old; }
template <class T> inline T atomicMax(T *at, Same<T> x) { emulated::give_way(); const T old = *at; if (old < x) *at = x; return old; }
template <class T> inline T atomicMin(T *at, Same<T> x) { emulated::give_way(); const T old = *at; if (x < old) *at = x; return old; }
template <class T> inline T atomicExch(T *at, Same<T> x) { emulated::give_way(); const T old = *at; *at = x; return old; }
template <class T> inline T atomicCAS(T *at, Same<T> is, Same<T> x) { emulated::give_way(); const T old = *at; if (old == is) *at = x; return old; }
inline void __threadfence() { emulated::give_way(); }
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) { emulated::spin(); }

// ---- Warps. ------------------------------------------------------------------------------------------------------------

namespace emulated {
template <class T> struct Shuffled { T value; unsigned from; T got; };
template <class T> inline T shuffle(unsigned mask, T value, unsigned from) {
    Shuffled<T> mine{value, from, value};
    meet("a shuffle", mask, &mine, [](void *const *all, unsigned mask) {
        for (unsigned lane = 0; lane < 32; lane++) {
            if (!(mask >> lane & 1)) continue;
            Shuffled<T> &to = *(Shuffled<T> *)all[lane];
            if (!(mask >> to.from & 1)) fail("a shuffle reads lane %u, which takes no part", to.from);
            to.got = ((Shuffled<T> *)all[to.from])->value;
        }
    });
    return mine.got;
}
struct Voted { bool is; unsigned set; };
inline unsigned ballot(unsigned mask, bool is) {
    Voted mine{is, 0};
    meet("a vote", mask, &mine, [](void *const *all, unsigned mask) {
        unsigned set = 0;
        for (unsigned lane = 0; lane < 32; lane++) if (mask >> lane & 1 && ((Voted *)all[lane])->is) set |= 1u << lane;
        for (unsigned lane = 0; lane < 32; lane++) if (mask >> lane & 1) ((Voted *)all[lane])->set = set;
    });
    return mine.set;
}
template <class T> struct Matched { T value; unsigned peers; };
template <class T> struct Gathered { T value, got; };
// One number from those of all lanes, in their order.
template <class T, class F> inline T gather(unsigned mask, T value, F) {
    Gathered<T> mine{value, value};
    meet("a reduction", mask, &mine, [](void *const *all, unsigned mask) {
        T x = ((Gathered<T> *)all[__builtin_ctz(mask)])->value;
        for (unsigned lane = __builtin_ctz(mask) + 1; lane < 32; lane++) if (mask >> lane & 1) x = F::of(x, ((Gathered<T> *)all[lane])->value);
        for (unsigned lane = 0; lane < 32; lane++) if (mask >> lane & 1) ((Gathered<T> *)all[lane])->got = x;
    });
    return mine.got;
}
struct Plus { template <class T> static T of(T a, T b) { return a + b; } };
struct Least { template <class T> static T of(T a, T b) { return a < b ? a : b; } };
struct Most { template <class T> static T of(T a, T b) { return a < b ? b : a; } };
struct Any { template <class T> static T of(T a, T b) { return a | b; } };
} // namespace emulated

inline void __syncwarp(unsigned mask = ~0u) { emulated::meet("__syncwarp", mask, nullptr, nullptr); }
inline unsigned __ballot_sync(unsigned mask, bool is) { return emulated::ballot(mask, is); }
inline int __any_sync(unsigned mask, bool is) { return emulated::ballot(mask, is) != 0; }
inline int __all_sync(unsigned mask, bool is) { return emulated::ballot(mask, is) == mask; }
inline unsigned __activemask() { return ~0u; }
template <class T> inline unsigned __match_any_sync(unsigned mask, T value) {
    typedef emulated::Matched<T> M;
    M mine{value, 0};
    emulated::meet("a match", mask, &mine, [](void *const *all, unsigned mask) {
        for (unsigned a = 0; a < 32; a++)
            for (unsigned b = 0; b < 32; b++)
                if (mask >> a & 1 && mask >> b & 1 && ((M *)all[a])->value == ((M *)all[b])->value) ((M *)all[a])->peers |= 1u << b;
    });
    return mine.peers;
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
    return emulated::shuffle(mask, v, (emulated::current->lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32) {
    const unsigned lane = emulated::current->lane, from = lane ^ by;
    return emulated::shuffle(mask, v, (from & ~(width - 1)) <= lane ? from : lane);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const unsigned lane = emulated::current->lane;
    return emulated::shuffle(mask, v, (lane & (width - 1)) >= by ? lane - by : lane);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const unsigned lane = emulated::current->lane;
    return emulated::shuffle(mask, v, (lane & (width - 1)) + by < (unsigned)width ? lane + by : lane);
}
template <class T> inline T __reduce_add_sync(unsigned mask, T v) { return emulated::gather(mask, v, emulated::Plus()); }
template <class T> inline T __reduce_min_sync(unsigned mask, T v) { return emulated::gather(mask, v, emulated::Least()); }
template <class T> inline T __reduce_max_sync(unsigned mask, T v) { return emulated::gather(mask, v, emulated::Most()); }
template <class T> inline T __reduce_or_sync(unsigned mask, T v) { return emulated::gather(mask, v, emulated::Any()); }

// ---- Blocks. -----------------------------------------------------------------------------------------------------------

inline void __syncthreads() { emulated::barrier(0, blockDim.x, true); }
inline int __syncthreads_count(int is) { return emulated::barrier(0, blockDim.x, true, is != 0); }
inline int __syncthreads_or(int is) { return __syncthreads_count(is) != 0; }
inline int __syncthreads_and(int is) { return __syncthreads_count(is) == (int)blockDim.x; }

// ---- Clusters: PTX, by the names that translate.rs makes of it. ---------------------------------------------------------

inline size_t __cvta_generic_to_shared(const void *p) { return emulated::shared_address(p); }
namespace emulated {
inline void barrier_cluster_arrive_release_aligned() { cluster_arrive(); }
inline void barrier_cluster_wait_acquire_aligned() { cluster_wait(); }
inline void mapa_shared__cluster_u32(unsigned &there, unsigned here, unsigned rank) { there = address_in(rank, here); }
inline void st_shared__cluster_f64(unsigned at, double v) { store_shared(at, &v, sizeof v); }
inline void st_shared__cluster_u16(unsigned at, unsigned short v) { store_shared(at, &v, sizeof v); }
} // namespace emulated

// ---- Matrix products. --------------------------------------------------------------------------------------------------

namespace emulated {
// The 10 digits that the tensor units take, rounded as cvt.rna does.
inline float rounded_to_tf32(float x) { return tensor_units && std::isfinite(x) ? __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu) : x; }
} // namespace emulated
