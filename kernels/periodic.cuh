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

// Starts at a point; the harmonics of column 0 come next.
WFMM_DEVICE FarPoint far_point(const double (&at)[3], double per_unit) {
    FarPoint p;
    p.x = at[0] * per_unit; p.y = at[1] * per_unit; p.z = at[2] * per_unit;
    p.r2 = p.x * p.x + p.y * p.y + p.z * p.z;
    p.dc = 1; p.ds = 0;
    return p;
}
// Goes from column m to the next.
WFMM_DEVICE void far_next_column(FarPoint &p, int m) {
    const double k = 0.5 / (m + 1), next = k * (p.x * p.dc - p.y * p.ds);
    p.ds = k * (p.x * p.ds + p.y * p.dc); p.dc = next;
}
// `degrees` degrees of a column at K points, added to `out`; e: its rows.
template <int F, int K> WFMM_DEVICE void far_column_sum(const double *e, int degrees, FarPoint (&p)[K], double (&out)[K][F]) {
#pragma unroll
    for (int i = 0; i < K; i++) { p[i].pc = p[i].ps = 0; p[i].qc = p[i].dc; p[i].qs = p[i].ds; }
#pragma unroll 1
    for (int l = 0; l < degrees; l++) {
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
}

// F fields at K points, added to `out`. rows: the head, then of each pair the two factors of the recurrence and the
// coefficients of cosine and sine of every field; `order` degrees, of which `used` are taken.
template <int F, int K> WFMM_DEVICE void far_field(const double *rows, int order, int used, const double (&at)[K][3], double (&out)[K][F]) {
    FarPoint p[K];
#pragma unroll
    for (int i = 0; i < K; i++) {
        p[i] = far_point(at[i], rows[1]);
        out[i][0] += rows[0] * p[i].r2;
    }
    const double *column = rows + kFarHead;
#pragma unroll 1
    for (int m = 0; m < used; m++) {
        far_column_sum<F, K>(column, used - m, p, out);
        column += (order - m) * (2 + 2 * F);
#pragma unroll
        for (int i = 0; i < K; i++) far_next_column(p[i], m);
    }
}

// What column m does at one point, in place of `out`: the columns of 0 <= m < order together are the fields.
template <int F> WFMM_DEVICE void far_field_of_column(const double *rows, int order, int m, const double (&at)[3], double (&out)[F]) {
    FarPoint p[1] = {far_point(at, rows[1])};
    double sum[1][F] = {};
    for (int k = 0; k < m; k++) far_next_column(p[0], k);
    if (m == 0) sum[0][0] = rows[0] * p[0].r2;
    if (m < order) far_column_sum<F, 1>(rows + kFarHead + far_column(order, m) * (2 + 2 * F), order - m, p, sum);
    for (int k = 0; k < F; k++) out[k] = sum[0][k];
}
