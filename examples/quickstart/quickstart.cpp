// The velocity of a helical wake with growing cores at its own nodes.
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>
#include <wakefmm.hpp>

int main() try {
    const std::size_t n = 20000;
    const double step = 0.02;
    std::vector<std::array<double, 3>> points(n + 1), u(n + 1);
    std::vector<std::array<std::int32_t, 2>> ends(n);
    std::vector<double> circulation(n, 1.0), core(n);
    for (std::size_t i = 0; i <= n; ++i) points[i] = {std::cos(step * i), std::sin(step * i), 0.001 * i};
    for (std::size_t i = 0; i < n; ++i) {
        ends[i] = {std::int32_t(i), std::int32_t(i + 1)}; // numbers of first and last point, counted from 0
        core[i] = 0.02 * std::sqrt(1 + 0.01 * i);
    }

    wakefmm::plan_options options;
    options.tolerance = 1e-4; // relative L2 error of u over all targets
    options.segment_regularization = WFMM_REG_VATISTAS;
    wakefmm::plan<double> plan(options);
    plan.set_segments(points, ends, circulation, core);
    plan.set_targets(points);
    plan.evaluate(u); // u[k] is the velocity at points[k]
    const double error = plan.error_of(1000); // against direct sums at 1000 targets
    std::printf("u in the middle: %.4f %.4f %.4f, error %.1e\n", u[n / 2][0], u[n / 2][1], u[n / 2][2], error);
    return error > options.tolerance;
} catch (const wakefmm::error &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}
