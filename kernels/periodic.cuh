// The field of all periodic images that are not near, at one point: expansions about the middle of the domain, which is zero.
//
// Harmonics here are r^l P_lm(cos θ) e^{imφ} / (l + m)!, column by column of equal m; a degree follows from two before it.
#pragma once

// Offset of column m of an expansion of n degrees.
WFMM_DEVICE int far_column(int n, int m) { return m * n - m * (m - 1) / 2; }

// Numbers before those of the pairs (l, m): the factor of |x|² in the first field, which no harmonic has, and the unit of length as a divisor.
constexpr int kFarHead = 2;

// F fields at a point, added to `out`. rows: the head, then of each pair the two factors of the recurrence and the
// coefficients of cosine and sine of every field; `order` degrees, of which `used` are taken.
template <int F> WFMM_DEVICE void far_field(const double *rows, int order, int used, const double *at, double *out) {
    const double per_unit = rows[1], x = at[0] * per_unit, y = at[1] * per_unit, z = at[2] * per_unit;
    const double r2 = x * x + y * y + z * z;
    out[0] += rows[0] * r2;
    const double *column = rows + kFarHead;
    double dc = 1, ds = 0;
#pragma unroll 1
    for (int m = 0; m < used; m++) {
        double pc = 0, ps = 0, qc = dc, qs = ds;
        const double *e = column;
#pragma unroll 1
        for (int l = m; l < used; l++) {
#pragma unroll
            for (int k = 0; k < F; k++) out[k] = fma(e[2 + 2 * k], qc, fma(e[3 + 2 * k], qs, out[k]));
            const double u = e[0] * z, v = e[1] * r2, nc = fma(u, qc, -(v * pc)), ns = fma(u, qs, -(v * ps));
            pc = qc; ps = qs; qc = nc; qs = ns;
            e += 2 + 2 * F;
        }
        column += (order - m) * (2 + 2 * F);
        const double k = 0.5 / (m + 1), next = k * (x * dc - y * ds);
        ds = k * (x * ds + y * dc); dc = next;
    }
}
