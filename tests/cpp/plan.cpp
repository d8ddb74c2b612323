// The C++ wrapper of a plan: evaluations beside the host's own work, the memory argument, streams and page-locked arrays, sessions,
// sums in one call. Without a GPU only host memory is accepted.
#include "wakefmm.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static int failures = 0;
#define CHECK(condition) ((condition) ? (void)0 : (void)(failures++, std::printf("%d: failed: %s\n", __LINE__, #condition)))

template <class Call>
static wfmm_status status_of(Call call) {
    try {
        call();
        return WFMM_OK;
    } catch (const wakefmm::error &e) {
        return e.status();
    }
}

template <class Real>
static void beside_own_work() {
    constexpr int n = 1500;
    using vector = std::vector<std::array<Real, 3>>;
    vector x(n), a(n), u(n), wanted(n);
    std::vector<std::array<Real, 9>> g(n), slopes(n);
    std::vector<std::array<std::int32_t, 2>> ends(n - 1);
    std::vector<Real> gamma(n - 1, 1), core(n, Real(0.01)), phi(n), potential(n);
    unsigned state = 1;
    auto next = [&state] { return Real((state = 1664525u * state + 1013904223u) / 4294967296.0 - 0.5); };
    for (int k = 0; k < n; ++k) x[k] = {next(), next(), next()}, a[k] = {next(), next(), next()};
    for (int k = 0; k + 1 < n; ++k) ends[k] = {k, k + 1};

    wakefmm::session_options on;
    on.backend = WFMM_BACKEND_CPU;
    wakefmm::session session(on);
    wakefmm::plan_options options;
    options.method = WFMM_METHOD_DIRECT;
    options.core_radius = 0.01;
    wakefmm::plan<Real> plan(session, options);
    plan.wait();
    CHECK(status_of([&] { plan.evaluate_async(u); }) == WFMM_ERR_SHAPE);
    plan.set_particles(x, a, core, WFMM_MEMORY_AUTO);
    plan.set_segments(x, ends, gamma, nullptr, WFMM_MEMORY_HOST);
    plan.set_targets(x, WFMM_MEMORY_AUTO);
    plan.set_stream(nullptr);
    plan.evaluate(wanted, slopes);
    CHECK(wanted[0] != (std::array<Real, 3>{}) && slopes[n - 1] != (std::array<Real, 9>{}));

    session.lock_pages(u.data(), sizeof(u[0]) * n);
    for (int round = 0; round < 3; ++round) {
        u.assign(n, {}), g.assign(n, {});
        plan.evaluate_async(u, g);
        CHECK(status_of([&] { plan.set_targets(x); }) == WFMM_ERR_BUSY);
        plan.wait();
        CHECK(u == wanted && g == slopes);
    }
    session.unlock_pages(u.data());
    CHECK(status_of([&] { plan.evaluate_async(u, wakefmm::rows<Real, 9>(g[0].data(), n - 1)); }) == WFMM_ERR_SHAPE);

    // Device memory on a session of the CPU; AUTO is the host there.
    const wakefmm::rows<const Real, 3> rows(x[0].data(), n);
    CHECK(status_of([&] { plan.set_targets(rows, WFMM_MEMORY_DEVICE); }) == WFMM_ERR_MEMORY);
    CHECK(status_of([&] { plan.set_particles(rows, a, nullptr, WFMM_MEMORY_DEVICE); }) == WFMM_ERR_MEMORY);
    CHECK(status_of([&] { plan.set_segments(x, ends, gamma, wakefmm::rows<const Real, 1>(core.data(), n - 1), WFMM_MEMORY_DEVICE); }) == WFMM_ERR_MEMORY);
    CHECK(status_of([&] { plan.set_charges(x, phi, WFMM_MEMORY_DEVICE); }) == WFMM_ERR_MEMORY);
    CHECK(status_of([&] { plan.set_strengths(nullptr, a, nullptr, WFMM_MEMORY_DEVICE); }) == WFMM_ERR_MEMORY);
    CHECK(status_of([&] { plan.evaluate(u, nullptr, WFMM_MEMORY_DEVICE); }) == WFMM_ERR_MEMORY);
    CHECK(status_of([&] { plan.evaluate_async(u, nullptr, WFMM_MEMORY_DEVICE); }) == WFMM_ERR_MEMORY);
    CHECK(status_of([&] { plan.evaluate(u, nullptr, 9); }) == WFMM_ERR_CONSTANT);
    plan.set_charges(x, core, WFMM_MEMORY_HOST);
    plan.evaluate_potential(phi);
    plan.evaluate_potential(potential, nullptr, WFMM_MEMORY_AUTO);
    CHECK(phi == potential && phi[0] > 0);

    // A plan that ends in between waits: nobody writes into u afterwards.
    plan.evaluate(wanted);
    {
        wakefmm::plan<Real> brief(std::move(plan));
        u.assign(n, {});
        brief.evaluate_async(u);
    }
    CHECK(u == wanted);
}

// Lengths are compared with what the plan has, also where it was set through the C API.
static void counts_of_the_plan() {
    std::vector<double> x(300), u(300, -7);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = double(37 * k % 101);
    wakefmm::session_options on;
    on.backend = WFMM_BACKEND_CPU;
    wakefmm::plan<double> plan{wakefmm::session(on)};
    plan.set_particles(x, x);
    plan.set_targets(wakefmm::rows<const double, 3>(x.data(), 10));
    CHECK(wfmm_plan_set_targets_f64(plan.get(), 100, x.data(), WFMM_MEMORY_HOST) == WFMM_OK);
    CHECK(status_of([&] { plan.evaluate(wakefmm::rows<double, 3>(u.data(), 10)); }) == WFMM_ERR_SHAPE && u[30] == -7);
    plan.evaluate(u);
    CHECK(u[299] != -7);
    plan.set_charges(x, std::vector<double>(100, 1));
    const wakefmm::plan_counts n = plan.counts();
    CHECK(n.segments == 0 && n.particles == 100 && n.charges == 100 && n.targets == 100);
    CHECK(plan.workspace().host >= 6 * 300 * sizeof(double) && plan.workspace().device == 0);
}

// A session that was moved from, or never was, is not the default session.
static void sessions_without_a_handle() {
    wakefmm::session moved, none(static_cast<wfmm_session *>(nullptr));
    const wakefmm::session kept(std::move(moved));
    for (const auto *on : {&moved, &none}) {
        CHECK(status_of([&] { wakefmm::plan<double> plan(*on); }) == WFMM_ERR_HANDLE);
        CHECK(status_of([&] { wakefmm::flow<float> flow(*on); }) == WFMM_ERR_HANDLE);
        CHECK(status_of([&] { wakefmm::flow<float>::load(*on, "nowhere.npz"); }) == WFMM_ERR_HANDLE);
    }
    CHECK(status_of([&] { wakefmm::plan<double> plan(kept); }) == WFMM_OK);
}

// A message is as long as the library's.
static void long_message() {
    try {
        wakefmm::flow<double>::load((std::string(1500, 'x') + "/end").c_str());
        CHECK(false);
    } catch (const wakefmm::error &e) {
        std::size_t length = 0;
        CHECK(wfmm_last_error(nullptr, 0, &length) == WFMM_OK && length > 1500 && std::strlen(e.what()) == length);
        CHECK(std::strstr(e.what(), "x/end"));
    }
}

template <class Real>
static void in_one_call() {
    const std::vector<std::array<Real, 3>> points{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}}, targets{{0, 0, 1}, {2, 1, 0}};
    const std::vector<std::array<std::int32_t, 2>> ends{{1, 2}, {2, 3}};
    const std::vector<std::int32_t> wide{1, 2, 70, 2, 3, 71};
    const std::vector<Real> gamma{1, 2}, core{Real(0.1), Real(0.2), Real(0.3)};
    std::vector<std::array<Real, 3>> u(2), wanted(2);
    std::vector<Real> g(18), slopes(18);
    wakefmm::plan_options options;
    options.index_base = 1;

    wakefmm::plan<Real> plan(options);
    plan.set_segments(points, ends, gamma);
    plan.set_targets(targets);
    plan.evaluate(wanted, slopes);
    wakefmm::induce_segments<Real>(points, ends, gamma, {}, targets, u, g, options);
    CHECK(u == wanted && g == slopes && u[0][1] != 0);
    const wakefmm::rows<const std::int32_t, 3> of_three(wide);
    wakefmm::induce_segments<Real>(points, of_three, gamma, {}, targets, u, {}, options);
    CHECK(u == wanted);
    plan.set_segments(points, of_three, gamma);
    plan.evaluate(u);
    CHECK(u == wanted);
    plan.template set_segments<3>(points, wide, gamma);
    plan.evaluate(u);
    CHECK(u == wanted);

    plan.set_segments(nullptr, nullptr, nullptr);
    plan.set_particles(points, points, core);
    plan.evaluate(wanted);
    wakefmm::induce_particles<Real>(points, points, core, targets, u);
    CHECK(u == wanted && u[1] != (std::array<Real, 3>{}));
    CHECK(status_of([&] { wakefmm::induce_particles<Real>(points, targets, core, targets, u); }) == WFMM_ERR_SHAPE);
    CHECK(status_of([&] { wakefmm::induce_segments<Real>(points, ends, core, {}, targets, u); }) == WFMM_ERR_SHAPE);
}

// A distributed session of one process.
static void one_process() {
    wakefmm::communicator alone;
    alone.size = 1;
    static bool released = false;
    alone.allreduce = [](void *, void *, std::int64_t, std::int32_t, std::int32_t) { return std::int32_t(0); };
    alone.allgather = [](void *, const void *mine, std::int64_t bytes, void *all) {
        std::memcpy(all, mine, std::size_t(bytes));
        return std::int32_t(0);
    };
    alone.alltoallv = [](void *, const void *send, const std::int64_t *bytes, const std::int64_t *from, void *receive,
                         const std::int64_t *, const std::int64_t *to, std::int32_t) {
        std::memcpy(static_cast<char *>(receive) + to[0], static_cast<const char *>(send) + from[0], std::size_t(bytes[0]));
        return std::int32_t(0);
    };
    alone.barrier = [](void *) { return std::int32_t(0); };
    alone.release = [](void *) { released = true; };
    {
        wakefmm::session_options options;
        options.backend = WFMM_BACKEND_CPU;
        const wakefmm::session session(alone, options);
        wakefmm::plan<double> plan(session);
        const std::vector<double> x{0, 0, 0}, a{0, 0, 1}, at{1, 0, 0};
        std::vector<double> u(3);
        plan.set_particles(x, a);
        plan.set_targets(at);
        plan.evaluate(u);
        CHECK(std::abs(u[1] - 0.25 / std::acos(-1.0)) < 1e-4);
    }
    CHECK(released);
    alone.size = 0;
    CHECK(status_of([&] { wakefmm::session session(alone); }) == WFMM_ERR_VALUE);
}

static void library() {
    CHECK(wakefmm::version() == (std::array<std::int32_t, 3>{WFMM_VERSION_MAJOR, WFMM_VERSION_MINOR, WFMM_VERSION_PATCH}));
    CHECK(wakefmm::abi_version() == WFMM_ABI_VERSION);
    std::string lines;
    auto keep = [](std::int32_t, const char *message, void *user) { *static_cast<std::string *>(user) += message; };
    wakefmm::log_set(WFMM_LOG_DEBUG, keep, &lines);
    {
        wakefmm::plan<double> plan;
        std::vector<double> u(3);
        plan.set_particles(u, u);
        plan.set_targets(u);
        plan.evaluate(u);
    }
    wakefmm::log_set(WFMM_LOG_OFF);
    CHECK(!lines.empty());
    CHECK(status_of([] { wakefmm::log_set(99); }) == WFMM_ERR_CONSTANT);
}

int main() {
    beside_own_work<float>();
    beside_own_work<double>();
    counts_of_the_plan();
    sessions_without_a_handle();
    long_message();
    in_one_call<float>();
    in_one_call<double>();
    one_process();
    library();
    std::printf("plan (C++): %d failed\n", failures);
    return failures != 0;
}
