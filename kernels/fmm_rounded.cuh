// Products of three TF32 numbers (SPLIT 4) whose sums are rounded in registers. The tensor units truncate what they add to a sum, always
// towards zero: over all steps of M2L that came to 3e-5 of a wake's velocities, with the products of one step alone in them to 4e-7.
#pragma once
#include "fmm_mma.cuh"

namespace fmm {

template <> struct Table<float, 4> { typedef float4 Piece; };

// Where there are none a number is not rounded to TF32, and one product does.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool kTensorUnits = false;
#else
constexpr bool kTensorUnits = true;
#endif

} // namespace fmm
