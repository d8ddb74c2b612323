// The recurrence of regular solid harmonics down a column m, without a division and with one factor a step.
//
// R_{l+1} = (2l+1) k z R_l - k r² R_{l-1}, k = 1/((l+1)² - m²). With R_lm = scale(l,m) Q_lm, scale(l+1) = k scale(l-1), the
// second factor is 1: Q_{l+1} = rise(l,m) z Q_l - r² Q_{l-1}.
#pragma once
#include "fmm.cuh"

namespace fmm {

constexpr int kDegrees = 17;

__host__ __device__ constexpr int triangle(int l, int m) { return l * (l + 1) / 2 + m; }

struct Harmonics {
    double rise[triangle(kDegrees, 0)], scale[triangle(kDegrees, 0)];
    constexpr Harmonics() : rise(), scale() {
        for (int m = 0; m < kDegrees; m++) {
            double before = 1, now = 1, next = 1; // scales of l - 1, l, l + 1
            for (int l = m; l < kDegrees; l++) {
                const double k = 1.0 / ((l + 1) * (l + 1) - m * m), u = (2 * l + 1) * k;
                next = l == m ? u : k * before;
                rise[triangle(l, m)] = u * now / next;
                scale[triangle(l, m)] = now;
                before = now; now = next;
            }
        }
    }
};
static __device__ const Harmonics kHarmonics{};

// Number of a coefficient, and of its degree: l² is a_l0, l² + 2m - 1 and l² + 2m are a_lm and b_lm.
__device__ inline void split(int index, int *l, int *m, int *sine) {
    int d = (int)sqrtf((float)index);
    d -= d * d > index;
    d += (d + 1) * (d + 1) <= index;
    const int k = index - d * d;
    *l = d; *m = (k + 1) / 2; *sine = k && !(k & 1);
}

// Which reflections (bit 0: of x, 1: of y, 2: of z) change the sign of a coefficient.
__device__ inline int class_of(int index) {
    int l, m, sine;
    split(index, &l, &m, &sine);
    return (m + sine) % 2 | sine << 1 | (l + m) % 2 << 2;
}

} // namespace fmm
