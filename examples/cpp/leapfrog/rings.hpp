// Vortex rings as particles: how they are filled, what they conserve, how they are written.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using vec = std::array<double, 3>;

inline vec operator+(vec a, vec b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline vec operator*(double s, vec a) { return {s * a[0], s * a[1], s * a[2]}; }
inline vec cross(vec a, vec b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline double norm(vec a) { return std::sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]); }

struct particles {
    std::vector<vec> position, strength;
    std::vector<double> core;
    std::vector<int> ring;
};

constexpr double pi = 3.14159265358979323846;

// A ring of radius 1 and circulation 1 around z, its core a Gaussian of radius a: points on circles of the cross-section.
inline void add_ring(particles &p, double z, double a, int layers, int around, int number) {
    double total = 0;
    std::vector<std::array<double, 3>> section; // distance from the axis, z, share of the circulation
    const double step = a / layers;
    for (int layer = 0; layer <= 2 * layers; ++layer) {
        const int n = layer ? 6 * layer : 1;
        for (int i = 0; i < n; ++i) {
            const double r = layer * step, phi = 2 * pi * i / n, share = std::exp(-r * r / (a * a));
            section.push_back({1 + r * std::cos(phi), z + r * std::sin(phi), share});
            total += share;
        }
    }
    const double overlap = 1.5 * std::fmax(step, 2 * pi / around);
    for (int i = 0; i < around; ++i) {
        const double phi = 2 * pi * (i + 0.5) / around, c = std::cos(phi), s = std::sin(phi);
        for (const auto &[rho, height, share] : section) {
            p.position.push_back({rho * c, rho * s, height});
            p.strength.push_back((share / total * rho * 2 * pi / around) * vec{-s, c, 0});
            p.core.push_back(overlap);
            p.ring.push_back(number);
        }
    }
}

// Linear impulse (1/2) sum x × a and total vorticity sum a: constants of the motion.
inline vec impulse(const particles &p) {
    vec sum{};
    for (std::size_t i = 0; i < p.position.size(); ++i) sum = sum + 0.5 * cross(p.position[i], p.strength[i]);
    return sum;
}
inline vec vorticity(const particles &p) {
    vec sum{};
    for (const vec &a : p.strength) sum = sum + a;
    return sum;
}

// Circulation of a ring: the flux of vorticity through all half-planes phi = const, by their mean.
inline double circulation(const particles &p, int ring) {
    double sum = 0;
    for (std::size_t i = 0; i < p.position.size(); ++i) {
        const auto [x, y, z] = p.position[i];
        const double rho2 = x * x + y * y;
        if (p.ring[i] == ring) sum += (x * p.strength[i][1] - y * p.strength[i][0]) / rho2 / (2 * pi);
    }
    return sum;
}

// The position of a ring: mean z and mean distance from the axis, weighted with the strength.
inline std::array<double, 2> position_of(const particles &p, int ring) {
    double z = 0, rho = 0, weight = 0;
    for (std::size_t i = 0; i < p.position.size(); ++i) {
        if (p.ring[i] != ring) continue;
        const double w = norm(p.strength[i]);
        z += w * p.position[i][2], rho += w * std::hypot(p.position[i][0], p.position[i][1]), weight += w;
    }
    return {z / weight, rho / weight};
}

// Legacy VTK: points with ring number and strength.
inline bool write_vtk(const particles &p, const std::string &name) {
    std::FILE *f = std::fopen(name.c_str(), "w");
    if (!f) return false;
    const int n = static_cast<int>(p.position.size());
    std::fprintf(f, "# vtk DataFile Version 3.0\nleapfrogging rings\nASCII\nDATASET POLYDATA\nPOINTS %d double\n", n);
    for (const vec &x : p.position) std::fprintf(f, "%.9g %.9g %.9g\n", x[0], x[1], x[2]);
    std::fprintf(f, "VERTICES %d %d\n", n, 2 * n);
    for (int i = 0; i < n; ++i) std::fprintf(f, "1 %d\n", i);
    std::fprintf(f, "POINT_DATA %d\nSCALARS ring int 1\nLOOKUP_TABLE default\n", n);
    for (int ring : p.ring) std::fprintf(f, "%d\n", ring);
    std::fprintf(f, "VECTORS strength double\n");
    for (const vec &a : p.strength) std::fprintf(f, "%.9g %.9g %.9g\n", a[0], a[1], a[2]);
    return std::fclose(f) == 0;
}
