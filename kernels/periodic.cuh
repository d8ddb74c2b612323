// The field of all periodic images that are not near, at one point: expansions about the middle of the domain, which is zero.
//
// Harmonics here are r^l P_lm(cos θ) e^{imφ} / (l + m)!, column by column of equal m; a degree follows from two before it.
#pragma once

// Offset of column m of an expansion of n degrees.
WFMM_DEVICE int far_column(int n, int m) { return m * n - m * (m - 1) / 2; }

// Numbers before those of the pairs (l, m): the factor of |x|² in the first field, which no harmonic has, and the unit of length as a divisor.
constexpr int kFarHead = 2;

// A point on the way through the columns: a harmonic of one degree and of the degree before.
struct FarPoint {
    double x, y, z, r2, dc, ds, pc, ps, qc, qs;
};

// F fields at K points, added to `out`. rows: the head, then of each pair the two factors of the recurrence and the
// coefficients of cosine and sine of every field; `order` degrees, of which `used` are taken.
template <int F, int K> WFMM_DEVICE void far_field(const double *rows, int order, int used, const double (&at)[K][3], double (&out)[K][F]) {
    const double per_unit = rows[1];
    FarPoint p[K];
#pragma unroll
    for (int i = 0; i < K; i++) {
        p[i].x = at[i][0] * per_unit; p[i].y = at[i][1] * per_unit; p[i].z = at[i][2] * per_unit;
        p[i].r2 = p[i].x * p[i].x + p[i].y * p[i].y + p[i].z * p[i].z;
        p[i].dc = 1; p[i].ds = 0;
        out[i][0] += rows[0] * p[i].r2;
    }
    const double *column = rows + kFarHead;
#pragma unroll 1
    for (int m = 0; m < used; m++) {
#pragma unroll
        for (int i = 0; i < K; i++) { p[i].pc = p[i].ps = 0; p[i].qc = p[i].dc; p[i].qs = p[i].ds; }
        const double *e = column;
#pragma unroll 1
        for (int l = m; l < used; l++) {
            double row[2 + 2 * F];
#pragma unroll
            for (int k = 0; k < 2 + 2 * F; k++) row[k] = e[k];
#pragma unroll
            for (int i = 0; i < K; i++) {
                FarPoint &a = p[i];
#pragma unroll
                for (int k = 0; k < F; k++) out[i][k] = fma(row[2 + 2 * k], a.qc, fma(row[3 + 2 * k], a.qs, out[i][k]));
                const double u = row[0] * a.z, v = row[1] * a.r2, nc = fma(u, a.qc, -(v * a.pc)), ns = fma(u, a.qs, -(v * a.ps));
                a.pc = a.qc; a.ps = a.qs; a.qc = nc; a.qs = ns;
            }
            e += 2 + 2 * F;
        }
        column += (order - m) * (2 + 2 * F);
        const double k = 0.5 / (m + 1);
#pragma unroll
        for (int i = 0; i < K; i++) {
            const double next = k * (p[i].x * p[i].dc - p[i].y * p[i].ds);
            p[i].ds = k * (p[i].x * p[i].ds + p[i].y * p[i].dc); p[i].dc = next;
        }
    }
}
