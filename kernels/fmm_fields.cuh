// Multipole expansions of fields: the derivatives of the potentials, in the singular harmonics S_lm = (l-m)! P_lm(cos θ) e^(imφ) / r^(l+1).
#pragma once
#include "fmm_columns.cuh"

namespace fmm {

constexpr int kMostDegrees = 18; // orders up to 16 and two derivatives

// Of degree l: with S_lm = (2l-1)!! Q_lm(x/r²)/r the harmonics Q have leading coefficients of 1.
struct Leading {
    double of[kMostDegrees];
    constexpr Leading() : of() {
        of[0] = 1;
        for (int l = 1; l < kMostDegrees; l++) of[l] = (2 * l - 1) * of[l - 1];
    }
};
static __device__ const Leading kLeading{};

// Q_{l+1} = z Q_l - beta r² Q_{l-1} in a column m.
template <class T> __device__ inline T beta_of(int l, int m) { return (T)((double)(l * l - m * m) / (double)((2 * l + 1) * (2 * l - 1))); }

template <class T> struct Value { T c, s; };

// Coefficients of the singular harmonics of a multipole expansion of `order` degrees.
template <class T> struct Potential {
    const T *of;
    int order;
    __device__ Value<T> operator()(int l, int m) const {
        if (m > l || l >= order) return {0, 0};
        const T *at = of + l * l;
        return m ? Value<T>{2 * at[2 * m - 1], 2 * at[2 * m]} : Value<T>{at[0], 0};
    }
};

// Coefficient (l, m) of the derivative along an axis: of the harmonics ∂z S_lm = -S_{l+1,m}, (∂x ± i∂y) S_lm = ∓S_{l+1,m±1}.
template <class T, class E> __device__ inline Value<T> slope(const E &of, int axis, int l, int m) {
    if (l == 0) return {0, 0};
    if (axis == 2) {
        const Value<T> same = of(l - 1, m);
        return {-same.c, -same.s};
    }
    const T half = (T)0.5, w = m == 1 ? (T)1 : half;
    Value<T> left{0, 0};
    const Value<T> right = of(l - 1, m + 1);
    if (m) left = of(l - 1, m - 1);
    if (axis == 0) return {half * right.c - w * left.c, m ? half * right.s - half * left.s : 0};
    return {half * right.s + half * left.s, m ? -half * right.c - w * left.c : 0};
}

// Component d of the curl of three potentials.
template <class T> struct Curl {
    Potential<T> a[3];
    int d;
    __device__ Value<T> operator()(int l, int m) const {
        if (m > l) return {0, 0};
        const int i = d == 2 ? 0 : d + 1, j = d == 0 ? 2 : d - 1;
        const Value<T> p = slope<T>(a[j], i, l, m), q = slope<T>(a[i], j, l, m);
        return {p.c - q.c, p.s - q.s};
    }
};

    // Pair (l, k) of the expansions of MAIN + REST fields: velocity and gradient, or potential and gradient. `m`: multipoles of a cell, 1 / inv wide.
template <class T, int MAIN, int REST> __device__ Coefficients<T, MAIN + REST> fields_of(const T *m, int stride, int order, int l, int k, T inv) {
        Coefficients<T, MAIN + REST> to{};
        const T scale = (T)kLeading.of[l];
        const auto put = [&](int f, Value<T> v, T unit) { to.c[f] = v.c * scale * unit; to.s[f] = v.s * scale * unit; };
        if constexpr (MAIN == 1) {
            const Potential<T> a{m, order};
            put(0, a(l, k), inv);
#pragma unroll
            for (int d = 0; d < REST; d++) put(1 + d, slope<T>(a, d, l, k), inv * inv);
        } else {
#pragma unroll
            for (int d = 0; d < 3; d++) {
                const Curl<T> u{{{m, order}, {m + stride, order}, {m + 2 * stride, order}}, d};
                put(d, u(l, k), inv * inv);
                if constexpr (REST != 0) {
#pragma unroll
                    for (int e = 0; e < 3; e++) put(3 + 3 * d + e, slope<T>(u, e, l, k), inv * inv * inv);
                }
            }
        }
        return to;
    }

} // namespace fmm
