// Which blocks of degrees of every M2L operator are kept: those whose expected contribution to the velocity (random sources and
// targets, uniform in their cells) is worth its cost. The library's copy is src/backend/cuda/fmm/staircase.rs.
#pragma once
#include <cmath>
#include <algorithm>
#include <cstdlib>
#include <vector>

constexpr int kOps = 1331;

struct Staircase {
    int order, tiles;
    std::vector<unsigned> start;            // [1347][tiles]
    std::vector<unsigned char> begin, end;  // [1347][tiles], in steps of 8
    size_t fragments;
    double kept, mean_products;
    int columns; // most columns of a row that an operator reads
};

// E |t|^(2l) over the unit cube around 0.
inline std::vector<double> moments(int n) {
    std::vector<double> m(n + 1, 0.0);
    const int g = 24;
    for (int i = 0; i < g; i++) for (int j = 0; j < g; j++) for (int k = 0; k < g; k++) {
        const double x = (i + 0.5) / (2 * g), y = (j + 0.5) / (2 * g), z = (k + 0.5) / (2 * g), r2 = x * x + y * y + z * z;
        double p = 1; for (int l = 0; l <= n; l++) { m[l] += p / (g * g * g); p *= r2; }
    }
    return m;
}

inline Staircase make_staircase(double budget, int max_order, bool potential) {
    const int D = 24;
    const std::vector<double> mu = moments(D);
    std::vector<double> fact(2 * D + 2, 1.0); for (size_t k = 1; k < fact.size(); k++) fact[k] = fact[k - 1] * k;
    // Squared contribution of source degree b to target degree a at distance 1.
    std::vector<std::vector<double>> e(D, std::vector<double>(D, 0.0));
    for (int a = 0; a < D; a++) for (int b = 0; b < D; b++) {
        double s = 0; const int m0 = a < b ? a : b;
        for (int m = -m0; m <= m0; m++) s += 1 / (fact[a + m] * fact[a - m] * fact[b + m] * fact[b - m]);
        const double f = fact[a + b] * fact[a + b] * s * mu[b] / (2 * b + 1);
        e[a][b] = a ? f * a * mu[a - 1] : 0;
    }
    (void)potential;
    // How many of the 8 octants of a target use an offset.
    std::vector<int> uses(kOps, 0);
    for (int c = 0; c < 8; c++) for (int x = -2; x <= 2; x++) for (int y = -2; y <= 2; y++) for (int z = -2; z <= 2; z++) {
        if (x * x + y * y + z * z > 4) continue;
        for (int o = 0; o < 8; o++) {
            const int d[3] = {(c & 1) - 2 * x - (o & 1), (c >> 1 & 1) - 2 * y - (o >> 1 & 1), (c >> 2) - 2 * z - (o >> 2)};
            if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > 4) uses[((d[0] + 5) * 11 + d[1] + 5) * 11 + d[2] + 5]++;
        }
    }
    auto each = [&](auto act) {
        for (int op = 0; op < kOps; op++) if (uses[op]) {
            const int d[3] = {op / 121 - 5, op / 11 % 11 - 5, op % 11 - 5};
            act(op, (double)(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), uses[op] / 8.0);
        }
    };
    auto keep = [&](double tau, int a, int b, double r2) { return b == 0 && a <= 1 ? true : e[a][b] * pow(r2, -(a + b + 1)) > tau * (2 * a + 1) * (2 * b + 1); };
    double low = 1e-40, high = 1;
    for (int it = 0; it < 200; it++) {
        const double tau = sqrt(low * high); double error = 0;
        each([&](int, double r2, double weight) { for (int a = 0; a < D; a++) for (int b = 0; b < D; b++) if (!keep(tau, a, b, r2) || a >= max_order || b >= max_order) error += weight * e[a][b] * pow(r2, -(a + b + 1)); });
        if (2 * error > budget * budget) high = tau; else low = tau;
    }
    Staircase s; s.order = 2;
    each([&](int, double r2, double) { for (int a = 0; a < max_order; a++) for (int b = 0; b < max_order; b++) if (keep(low, a, b, r2)) s.order = std::max(s.order, std::max(a, b) + 1); });
    const int P = s.order; s.tiles = (P * P + 7) / 8;
    s.start.assign((kOps + 16) * s.tiles, 0); s.begin.assign((kOps + 16) * s.tiles, 0); s.end.assign((kOps + 16) * s.tiles, 0); s.fragments = 0;
    auto degree = [](int k) { int l = (int)sqrt((double)k); while (l * l > k) l--; while ((l + 1) * (l + 1) <= k) l++; return l; };
    double kept = 0, all = 0;
    auto set = [&](int op, int j, int b, int e) { s.begin[op * s.tiles + j] = b; s.end[op * s.tiles + j] = e; s.start[op * s.tiles + j] = s.fragments; s.fragments += e - b; };
    each([&](int op, double r2, double weight) {
        int rows = 0; // never fewer than a later tile: the first one says how much of a row is read
        for (int j = s.tiles - 1; j >= 0; j--) {
            for (int k = 8 * j; k < std::min(8 * j + 8, P * P); k++) for (int b = 0; b < P; b++) if (keep(low, degree(k), b, r2)) rows = std::max(rows, (b + 1) * (b + 1));
            set(op, j, 0, (rows + 7) / 8);
            kept += weight * ((rows + 7) / 8) * 64; all += weight * s.tiles * 64;
        }
    });
    s.kept = kept / all; s.mean_products = kept / 231;
    s.columns = 0;
    each([&](int op, double, double) { s.columns = std::max(s.columns, 8 * s.end[op * s.tiles]); });
    for (int op = kOps; op < kOps + 16; op++)
        for (int j = 0; j < s.tiles; j++) {
            const int first = degree(8 * j), last = degree(std::min(8 * j + 7, P * P - 1));
            if (op < kOps + 8) set(op, j, 0, ((last + 1) * (last + 1) + 7) / 8);
            else set(op, j, first * first / 8, s.tiles);
        }
    return s;
}
