// The C++ wrapper of a flow: containers of numbers and of structs, both precisions, errors as exceptions, moves, functions that
// add velocity.
#include "wakefmm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static int failures = 0;
#define CHECK(condition) ((condition) ? (void)0 : (void)(failures++, std::printf("%d: failed: %s\n", __LINE__, #condition)))

template <class Real>
static void ring_and_dust() {
    constexpr int n = 30;
    std::vector<std::array<Real, 3>> points(n);
    std::vector<std::array<std::int32_t, 2>> ends(n);
    std::vector<Real> gamma(n, 1), core(n, Real(0.1));
    for (int k = 0; k < n; k++) {
        const double phi = 2 * std::acos(-1.0) * k / n;
        points[k] = {Real(std::cos(phi)), Real(std::sin(phi)), 0};
        ends[k] = {k, (k + 1) % n};
    }
    wakefmm::flow_options options;
    options.fluid_viscosity = 1e-5;
    wakefmm::plan_options sums;
    wakefmm::flow<Real> first(options, sums);
    first.set_filaments(points, ends, gamma, core);
    first.set_tracers(points);
    first.set_dust(points, std::vector<Real>(n, Real(1e-4)), std::vector<Real>(n, 1000));
    wakefmm::flow<Real> flow(std::move(first));
    flow.advance(0.01, 2);
    CHECK(std::abs(flow.time() - 0.02) < 1e-15 && flow.elements(WFMM_KIND_DUST) == n && flow.points(WFMM_KIND_FILAMENTS) == n);
    std::vector<std::array<Real, 3>> x(n);
    std::vector<Real> radii(n);
    std::vector<std::int64_t> id(n);
    flow.get(WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, wakefmm::rows<Real, 3>(x), id);
    flow.get(WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CORE_RADIUS, wakefmm::rows<Real, 1>(radii));
    CHECK(x[0][2] > 0 && id[n - 1] == n - 1 && std::abs(radii[0] - Real(0.1)) < 1e-3);
    std::vector<Real> u(3);
    flow.velocity(std::vector<Real>{0, 0, 0}, u);
    CHECK(std::abs(u[2] - 0.5) < 0.02);
    flow.remove(WFMM_KIND_DUST, std::vector<std::int64_t>{0, 1});
    CHECK(flow.elements(WFMM_KIND_DUST) == n - 2 && flow.diagnostics().linear_impulse[2] > 3);
    std::vector<Real> some(6);
    flow.get_selected(WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, std::vector<std::int64_t>{3, 1}, wakefmm::rows<Real, 3>(some));
    CHECK(some[0] == x[3][0] && some[5] == x[1][2]);
    std::vector<std::uint8_t> mask(n - 2);
    mask[0] = 1;
    flow.remove_mask(WFMM_KIND_DUST, mask);
    CHECK(flow.elements(WFMM_KIND_DUST) == n - 3);
    flow.save("flow_cpp.npz");
    auto again = wakefmm::flow<Real>::load("flow_cpp.npz");
    CHECK(again.options().first.index_base == 0 && again.options().second.integrator == flow.options().second.integrator);
    CHECK(std::remove("flow_cpp.npz") == 0 && again.time() == flow.time() && again.steps() == flow.steps() && again.steps() > 0);
    std::vector<std::array<std::int32_t, 2>> pairs(n), same(n);
    flow.get_connectivity(WFMM_KIND_FILAMENTS, pairs);
    again.get_connectivity(WFMM_KIND_FILAMENTS, same);
    CHECK(pairs == same && pairs[1][0] == 1 && pairs[1][1] == 2);
    flow.advance(0.01);
    again.advance(0.01);
    std::vector<std::array<Real, 3>> y(n);
    flow.get(WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, wakefmm::rows<Real, 3>(x));
    again.get(WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, wakefmm::rows<Real, 3>(y));
    CHECK(x == y);
    try {
        wakefmm::flow<Real>::load("nowhere.npz");
        CHECK(false);
    } catch (const wakefmm::error &e) {
        CHECK(e.status() == WFMM_ERR_FILE);
    }
    wakefmm::camera camera;
    camera.color = WFMM_COLOR_SPEED;
    const auto picture = flow.picture(64, 48, camera);
    CHECK(picture.size() == 64 * 48 * 4 && std::any_of(picture.begin(), picture.end(), [](std::uint8_t b) { return b > 100 && b < 255; }));
    try {
        flow.picture(0, 48);
        CHECK(false);
    } catch (const wakefmm::error &e) {
        CHECK(e.status() == WFMM_ERR_VALUE);
    }
    try {
        flow.get(WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, wakefmm::rows<Real, 1>(radii));
        CHECK(false);
    } catch (const wakefmm::error &e) {
        CHECK(e.status() == WFMM_ERR_SHAPE);
    }
    try {
        flow.advance(-1);
        CHECK(false);
    } catch (const wakefmm::error &e) {
        CHECK(e.status() == WFMM_ERR_VALUE && !e.fatal());
    }
}

static std::int32_t add_one(double, std::int64_t n, const double *, double *velocity, std::int32_t, void *, void *) {
    for (std::int64_t k = 0; k < n; k++) velocity[3 * k] += 1;
    return 0;
}

// What a velocity function throws comes out of the member that needed the velocity; the function lives and moves with the flow.
static void velocity_functions() {
    struct mine : std::runtime_error {
        using std::runtime_error::runtime_error;
    };
    const std::string long_name(100, 'x');
    std::vector<double> x(30), u(30);
    auto throws = [&](auto call) {
        try {
            call();
        } catch (const mine &e) {
            return e.what() == long_name;
        }
        return false;
    };
    auto keeper = std::make_shared<int>(0);
    {
        wakefmm::flow<double> first;
        first.set_tracers(x);
        bool fails = false;
        first.set_velocity_callback([&fails, keeper, long_name](double, auto position, auto velocity, std::int32_t memory, void *) {
            if (fails) throw mine(long_name);
            if (memory != WFMM_MEMORY_HOST || position.count() != velocity.count()) return 3;
            for (std::int64_t k = 0; k < velocity.count(); k++) velocity.data()[3 * k] += 2;
            return 0;
        });
        wakefmm::flow<double> flow(std::move(first)), other;
        flow.advance(0.5);
        flow.get(WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, wakefmm::rows<double, 3>(u));
        CHECK(std::abs(u[0] - 1) < 1e-12 && u[1] == 0);

        fails = true;
        wakefmm::camera camera;
        camera.color = WFMM_COLOR_SPEED;
        CHECK(throws([&] { flow.advance(0.5, 3); }) && flow.steps() == 1);
        CHECK(throws([&] { flow.get(WFMM_KIND_TRACERS, WFMM_QUANTITY_VELOCITY, wakefmm::rows<double, 3>(u)); }));
        const wakefmm::rows<double, 3> one(u.data(), 1);
        CHECK(throws([&] { flow.get_selected(WFMM_KIND_TRACERS, WFMM_QUANTITY_VELOCITY, std::vector<std::int64_t>{1}, one); }));
        CHECK(throws([&] { flow.velocity(x, u); }));
        CHECK(throws([&] { flow.diagnostics(); }));
        CHECK(throws([&] { flow.picture(32, 32, camera); }));
        CHECK(throws([&] { flow.write_picture("never.png", 32, 32, camera); }));
        // An error of the library afterwards is its own.
        try {
            flow.advance(-1);
            CHECK(false);
        } catch (const wakefmm::error &e) {
            CHECK(e.status() == WFMM_ERR_VALUE);
        }
        fails = false;
        flow.advance(0.5);
        other = std::move(flow);
        other.advance(0.5);
        CHECK(other.steps() == 3 && keeper.use_count() == 2);

        // A number stops the step as it does in C, and a call of the flow from inside is an error that comes out too.
        other.set_velocity_callback([](double, auto, auto, std::int32_t, void *) { return 3; });
        CHECK(keeper.use_count() == 1);
        other.set_velocity_callback([&other](double, auto, auto, std::int32_t, void *) {
            other.set_velocity_callback(nullptr);
            return 0;
        });
        try {
            other.advance(0.5);
            CHECK(false);
        } catch (const wakefmm::error &e) {
            CHECK(e.status() == WFMM_ERR_BUSY);
        }
        other.set_velocity_callback([](double, auto, auto, std::int32_t, void *) { return 3; });
        try {
            other.advance(0.5);
            CHECK(false);
        } catch (const wakefmm::error &e) {
            CHECK(e.status() == 3);
        }
        // A function of C in its place, and none.
        other.set_velocity_callback([keeper](double, auto, auto, std::int32_t, void *) { return 0; });
        other.set_velocity_callback(add_one);
        CHECK(keeper.use_count() == 1);
        other.velocity(x, u);
        CHECK(u[0] == 1);
        other.set_velocity_callback([keeper](double, auto, auto, std::int32_t, void *) { return 3; });
        other.set_velocity_callback(wakefmm::velocity_function());
        CHECK(keeper.use_count() == 1);
        other.velocity(x, u);
        CHECK(u[0] == 0);
        other.set_velocity_callback([keeper](double, auto, auto, std::int32_t, void *) { return 0; });
    }
    CHECK(keeper.use_count() == 1);
}

// Rows of point numbers that are longer than two.
static void wide_connectivity() {
    const std::vector<double> points{0, 0, 0, 1, 0, 0, 1, 1, 0}, gamma{1, 2};
    const std::vector<std::int32_t> wide{0, 1, 70, 71, 1, 2, 72, 73};
    const wakefmm::rows<const std::int32_t, 4> ends(wide);
    wakefmm::flow<double> flow;
    flow.set_filaments(points, ends, gamma);
    flow.add_filaments(points, ends, gamma);
    flow.set_bound_segments(points, ends, gamma);
    std::vector<std::array<std::int32_t, 2>> found(4);
    flow.get_connectivity(WFMM_KIND_FILAMENTS, found);
    CHECK(found[1] == (std::array<std::int32_t, 2>{1, 2}) && found[3] == (std::array<std::int32_t, 2>{4, 5}));
    CHECK(flow.elements(WFMM_KIND_BOUND_SEGMENTS) == 2);
}

int main() {
    velocity_functions();
    wide_connectivity();
    ring_and_dust<float>();
    ring_and_dust<double>();
    std::printf("flow (C++): %d failed\n", failures);
    return failures != 0;
}
