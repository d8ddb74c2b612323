// Which blocks of degrees of every M2L operator are kept: those whose expected contribution to the velocity (random sources and
// targets, uniform in their cells) is worth its cost. The library's copy is src/backend/cuda/fmm/truncation.rs.
#pragma once
#include <cmath>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "../../kernels/fmm_mma.cuh"
using namespace fmm;

struct Truncation {
    int order, tiles, slots;
    std::vector<unsigned> op;    // Fmm::op
    std::vector<unsigned> m2l;   // Fmm::m2l
    size_t fragments, far_fragments;
    double mean_products;        // of M2L, an orbit and component
};

// Which reflections change the sign of coefficient k.
inline int class_of(int k) {
    int l = (int)sqrt((double)k);
    while (l * l > k) l--;
    while ((l + 1) * (l + 1) <= k) l++;
    const int m = (k - l * l + 1) / 2, sine = k > l * l && (k - l * l) % 2 == 0;
    return (m + sine) % 2 | sine << 1 | (l + m) % 2 << 2;
}

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

inline Truncation make_truncation(double budget, int max_order, bool potential) {
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
    struct Orbit { int offset[3]; double r2, share; };
    std::vector<Orbit> orbits;
    for (int c = 0; c < 8; c++) for (int x = -2; x <= 2; x++) for (int y = -2; y <= 2; y++) for (int z = -2; z <= 2; z++) {
        if (x * x + y * y + z * z > 4) continue;
        for (int o = 0; o < 8; o++) {
            const int d[3] = {abs((c & 1) - 2 * x - (o & 1)), abs((c >> 1 & 1) - 2 * y - (o >> 1 & 1)), abs((c >> 2) - 2 * z - (o >> 2))};
            if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] <= 4) continue;
            size_t k = 0;
            while (k < orbits.size() && memcmp(orbits[k].offset, d, sizeof d)) k++;
            if (k == orbits.size()) orbits.push_back({{d[0], d[1], d[2]}, (double)(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), 0});
            orbits[k].share += 0.125;
        }
    }
    auto each = [&](auto act) { for (auto &o : orbits) act(o, o.r2, o.share); };
    auto keep = [&](double tau, int a, int b, double r2) { return b == 0 && a <= 1 ? true : e[a][b] * pow(r2, -(a + b + 1)) > tau * (2 * a + 1) * (2 * b + 1); };
    double low = 1e-40, high = 1;
    for (int it = 0; it < 200; it++) {
        const double tau = sqrt(low * high); double error = 0;
        each([&](Orbit &, double r2, double weight) { for (int a = 0; a < D; a++) for (int b = 0; b < D; b++) if (!keep(tau, a, b, r2) || a >= max_order || b >= max_order) error += weight * e[a][b] * pow(r2, -(a + b + 1)); });
        if (2 * error > budget * budget) high = tau; else low = tau;
    }
    Truncation s; s.order = 2;
    each([&](Orbit &, double r2, double) { for (int a = 0; a < max_order; a++) for (int b = 0; b < max_order; b++) if (keep(low, a, b, r2)) s.order = std::max(s.order, std::max(a, b) + 1); });
    const int P = s.order; s.tiles = (P * P + 7) / 8;
    auto degree = [](int k) { int l = (int)sqrt((double)k); while (l * l > k) l--; while ((l + 1) * (l + 1) <= k) l++; return l; };
    s.m2l.assign(kClass + 256, 0); s.fragments = s.far_fragments = 0;
    std::vector<unsigned> classes[8];
    for (int k = 0; k < P * P; k++) classes[class_of(k)].push_back(k);
    auto need = [&](int c) { return (int)(classes[c].size() + 7) / 8; };
    for (s.slots = 1;; s.slots++) {
        int over = 0, free = 0;
        for (int c = 0; c < 8; c++) { over += std::max(0, need(c) - s.slots); free += need(c) < s.slots; }
        if (over <= free) break;
    }
    unsigned padding = P * P;
    std::vector<int> lent;
    for (int c = 0; c < 8; c++) if (need(c) < s.slots) lent.push_back(c);
    for (int k = 0; k < 512; k++) s.m2l[kColumns + k] = ~0u;
    for (int k = 0; k < 64; k++) s.m2l[kSlotClass + k] = k / 8;
    for (int k = 0; k < 256; k++) s.m2l[kClass + k] = class_of(k);
    for (int c = 0; c < 8; c++) for (int j = 0; j < need(c); j++) {
        int slot = 8 * c + j;
        if (j >= s.slots) { slot = 8 * lent.back() + s.slots - 1; lent.pop_back(); }
        s.m2l[kSlotClass + slot] = c;
        for (int k = 0; k < 8; k++) s.m2l[kColumns + 8 * slot + k] = 8 * j + k < (int)classes[c].size() ? classes[c][8 * j + k] : padding < 8u * s.tiles ? padding++ : ~0u;
    }
    auto steps = [&](const Orbit &o, int slot) {
        int rows = 0;
        for (int k = 0; k < 8; k++) {
            const unsigned c = s.m2l[kColumns + 8 * slot + k];
            for (int b = 0; b < P; b++) if (c < (unsigned)(P * P) && keep(low, std::max(degree(c), 1), b, o.r2)) rows = std::max(rows, (b + 1) * (b + 1));
        }
        return (rows + 7) / 8;
    };
    auto cost = [&](const Orbit &o) { int n = 0; for (int slot = 0; slot < 64; slot++) n += steps(o, slot); return n; };
    std::stable_sort(orbits.begin(), orbits.end(), [&](const Orbit &a, const Orbit &b) { return cost(a) > cost(b); });
    double wide = 0;
    for (size_t o = 0; o < orbits.size(); o++) {
        int most = 0;
        for (int w = 0; w < 8; w++) {
            unsigned ends = 0; int n = 0;
            for (int j = s.slots - 1; j >= 0; j--) { // a step that a tile has, those before it have too
                n = std::max(n, steps(orbits[o], 8 * w + j));
                ends |= (n + kHeadBias) << kHeadBits * j; s.far_fragments += n;
            }
            s.m2l[kHeads + 16 * o + 2 * w] = s.fragments; s.m2l[kHeads + 16 * o + 2 * w + 1] = ends;
            s.fragments += n * s.slots; most = std::max(most, n);
        }
        wide += orbits[o].share * most * 8;
        s.m2l[o] = orbits[o].offset[0] | orbits[o].offset[1] << 4 | orbits[o].offset[2] << 8 | most << 12;
    }
    s.m2l[kOrbitCount] = orbits.size();
    s.m2l[kSlots] = s.slots; s.mean_products = 64.0 * s.far_fragments / orbits.size();
    printf("orbits %zu, slots %d, fragments %zu of M2L (%zu a orbit), %.0f columns of a source on average\n", orbits.size(), s.slots, s.far_fragments, s.far_fragments / orbits.size(), wide / 231);
    s.op.assign(kOpWords, 0);
    std::fill_n(&s.op[kSortedColumn], 8 * kMostSorted, ~0u);
    auto set = [&](int at, int n) { s.op[at] = s.fragments << 6 | n; s.fragments += n; };
    unsigned sorted = 0;
    for (int c = 0; c < 8; c++) {
        std::copy(classes[c].begin(), classes[c].end(), &s.op[kSortedColumn + 8 * sorted]);
        for (int j = 0; j < need(c); j++, sorted++) {
            const int last = degree(classes[c][std::min<size_t>(8 * j + 7, classes[c].size() - 1)]);
            s.op[kSortedClass + sorted] = c;
            set(kUpHead + sorted, ((last + 1) * (last + 1) + 7) / 8);
        }
        s.op[kClassEnd + c] = sorted;
    }
    s.op[kSortedTiles] = sorted;
    for (int j = 0; j < s.tiles; j++) for (int c = 0; c < 8; c++) {
        int below = 0;
        for (unsigned k : classes[c]) below += degree(k) < degree(8 * j);
        set(kDownHead + 8 * j + c, below == (int)classes[c].size() ? 0 : need(c) - below / 8);
    }
    return s;
}
