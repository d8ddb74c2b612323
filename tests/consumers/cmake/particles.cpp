// A stranger's C++17 program: containers of different shapes, an error caught, no allocation in the loop.
#include <wakefmm.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

// Counts what this program and the header allocate; the library has its own allocator.
static std::atomic<long> allocations{0};
void *operator new(std::size_t n) {
    ++allocations;
    if (void *p = std::malloc(n ? n : 1)) return p;
    throw std::bad_alloc();
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }

struct point {
    double x, y, z;
};

static int run() {
    constexpr int n = 500;
    std::vector<point> position(n);
    std::vector<std::array<double, 3>> strength(n);
    std::vector<double> core(n, 0.05), velocity(3 * n), gradient(9 * n);
    unsigned state = 1;
    auto next = [&state] { return (state = 1664525u * state + 1013904223u) / 4294967296.0 - 0.5; };
    for (int i = 0; i < n; ++i) position[i] = {next(), next(), next()}, strength[i] = {next(), next(), next()};

    wakefmm::plan_options options;
    options.method = WFMM_METHOD_DIRECT;
    options.particle_regularization = WFMM_REG_ROSENHEAD;
    wakefmm::plan<double> plan(options);
    plan.set_particles(position, strength, core);
    plan.set_targets(position);
    plan.evaluate(velocity, gradient);

    const long before = allocations;
    for (int i = 0; i < 10; ++i) {
        plan.set_strengths(nullptr, strength);
        plan.set_targets(position);
        plan.evaluate(velocity, gradient);
    }
    if (allocations != before) return std::printf("%ld allocations in the loop\n", allocations - before), 1;

    double worst = 0, scale = 0;
    for (int k = 0; k < n; ++k) {
        double u[3] = {0, 0, 0};
        for (int i = 0; i < n; ++i) {
            const double d[3] = {position[k].x - position[i].x, position[k].y - position[i].y, position[k].z - position[i].z};
            const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + core[i] * core[i];
            const double s = 1 / (4 * std::acos(-1.0) * r2 * std::sqrt(r2));
            const auto &a = strength[i];
            u[0] += s * (a[1] * d[2] - a[2] * d[1]);
            u[1] += s * (a[2] * d[0] - a[0] * d[2]);
            u[2] += s * (a[0] * d[1] - a[1] * d[0]);
        }
        for (int i = 0; i < 3; ++i) {
            worst = std::fmax(worst, std::fabs(u[i] - velocity[3 * k + i]));
            scale = std::fmax(scale, std::fabs(u[i]));
        }
        // Velocity is divergence-free.
        const double *g = &gradient[9 * k];
        if (std::fabs(g[0] + g[4] + g[8]) > 1e-9 * (std::fabs(g[0]) + std::fabs(g[4]) + std::fabs(g[8]) + 1)) return 1;
    }
    if (worst > 1e-12 * scale) return std::printf("wrong by %g of %g\n", worst, scale), 1;

    // An emptied container counts as left out, though it still points somewhere.
    std::vector<double> none(9 * n);
    none.clear();
    plan.set_particles(position, strength, none);
    plan.set_strengths(none, strength, none);
    plan.evaluate(velocity, none);
    plan.set_charges(position, std::vector<double>(n, 1.0));
    plan.evaluate_potential(core, none);
    try {
        strength[3][1] = NAN;
        plan.set_particles(position, strength, core);
        return std::puts("NaN was accepted"), 1;
    } catch (const wakefmm::error &e) {
        if (e.status() != WFMM_ERR_NOT_FINITE || e.fatal()) return std::puts(e.what()), 1;
    }
    try {
        plan.set_segments(position, std::vector<std::int32_t>{0, 1, 2}, std::vector<double>{1});
        return std::puts("half a row was accepted"), 1;
    } catch (const wakefmm::error &e) {
        if (e.status() != WFMM_ERR_SHAPE) return std::puts(e.what()), 1;
    }
    wakefmm::plan<double> other(std::move(plan));
    other.set_segments(position, std::vector<std::int32_t>{0, 1, 1, 2}, std::vector<double>{1, 1});
    other.evaluate(velocity);
    std::printf("C++ consumer: plain loop agrees to %.1e, no allocation in the loop; %s\n", worst / scale,
                wakefmm::session().describe().c_str());
    return 0;
}

int main() {
    try {
        return run();
    } catch (const std::exception &e) {
        std::printf("%s\n", e.what());
        return 1;
    }
}
