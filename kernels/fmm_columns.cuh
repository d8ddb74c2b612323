// Expansions of F fields, stored by columns: all degrees of an order m follow one another.
#pragma once
#include "fmm.cuh"

namespace fmm {

// Offset of column m of an expansion of n degrees, stored by columns; cosine and sine of a pair (l, m) lie side by side.
__host__ __device__ constexpr int column(int n, int m) { return m * n - m * (m - 1) / 2; }

template <class T, int F> struct alignas(2 * F * sizeof(T) % 16 ? 8 : 16) Coefficients { T c[F], s[F]; };

} // namespace fmm
