// libwakefmm for C++17: handles that free themselves, arrays with their length, errors as exceptions. Header only, over
// wakefmm.h; what functions mean, units and thread rules: there.
//
//   wakefmm::plan<double> plan;                          // Real is the type of the arrays: float or double
//   plan.set_particles(x, alpha, sigma);                 // containers of Real (3 per vector) or of std::array<Real, 3>
//   plan.set_targets(x);
//   plan.evaluate(u);                                    // or plan.evaluate(u, gradient)
//
// Arrays in device memory: rows of pointer and count, and the last argument WFMM_MEMORY_DEVICE:
//   plan.set_targets(wakefmm::rows<const float, 3>(on_device, n), WFMM_MEMORY_DEVICE);
//
// Nothing is allocated here, except for texts (of errors that are thrown, recipe(), describe()), pictures and a velocity function.
#ifndef WAKEFMM_HPP
#define WAKEFMM_HPP

#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "wakefmm.hpp needs C++17 or newer: compile with -std=c++17 (MSVC: /std:c++17)"
#endif

#include "wakefmm.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace wakefmm {

/// A failed call: what() is the library's message, status() one of WFMM_ERR_*.
class error : public std::runtime_error {
public:
    error(wfmm_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    wfmm_status status() const noexcept { return status_; }
    /// Whether the object survived: only its destruction is allowed where it did not.
    bool fatal() const noexcept { return status_ < 0; }

private:
    wfmm_status status_;
};

namespace detail {

/// Text whose length the library tells: asked for twice.
template <class Call>
wfmm_status get_text(std::string &line, Call call) {
    std::size_t length = 0;
    if (const wfmm_status status = call(nullptr, 0, &length); status != WFMM_OK) return status;
    line.resize(length + 1);
    const wfmm_status status = call(line.data(), line.size(), nullptr);
    line.resize(length);
    return status;
}

} // namespace detail

/// Throws where a status of the C API is not WFMM_OK.
inline void check(wfmm_status status) {
    if (status == WFMM_OK) return;
    std::string message;
    detail::get_text(message, wfmm_last_error);
    throw error(status, message);
}

namespace detail {

/// The numbers of which an item consists, as far as its type tells: double of double, double[3] and std::array<double, 3>.
/// Of a struct that does not tell: the struct.
template <class Item, class = void>
struct number {
    using type = Item;
};
template <class Item, std::size_t Length>
struct number<Item[Length]> : number<Item> {};
template <class Item>
struct number<Item, std::void_t<typename Item::value_type>> : number<typename Item::value_type> {};

/// Whether Item has the bits of T: T itself, or another name of an integer of its size and sign.
template <class T, class Item>
inline constexpr bool same_bits = std::is_same_v<T, Item> ||
                                  (std::is_integral_v<T> && std::is_integral_v<Item> && sizeof(T) == sizeof(Item) &&
                                   std::is_signed_v<T> == std::is_signed_v<Item>);

/// Whether Item is Width numbers T: an array of them, or a struct of their size.
template <class T, std::size_t Width, class Item, class Number = std::remove_cv_t<typename number<Item>::type>>
inline constexpr bool is_row = std::is_trivially_copyable_v<Item> && std::is_standard_layout_v<Item> &&
                               sizeof(Item) == Width * sizeof(T) && alignof(Item) == alignof(T) &&
                               (same_bits<T, Number> || !std::is_scalar_v<Number>);

/// What data() of a container points at. Where T is written a temporary counts as const: one that owns its numbers has only
/// const ones then, a view of the numbers of others has not.
template <class T, class Container>
using item = std::remove_pointer_t<decltype(std::declval<std::conditional_t<
    std::is_const_v<T> || std::is_lvalue_reference_v<Container>, Container &, const Container &>>().data())>;

} // namespace detail

/// Rows of Width numbers, one after the other, that belong to someone else: a std::span with a second extent.
/// From a container of numbers, of arrays of Width numbers or of structs of Width numbers, or from pointer and rows. Other numbers
/// than T are refused; what a struct consists of is the caller's to know. So are outputs in a temporary that owns its numbers.
template <class T, std::size_t Width>
class rows {
    using value = std::remove_const_t<T>;

public:
    constexpr rows() noexcept = default;
    constexpr rows(std::nullptr_t) noexcept {}
    constexpr rows(T *data, std::size_t count) noexcept : data_(data), count_(count) {}

    template <class Container, class Item = detail::item<T, Container>, class Plain = std::remove_const_t<Item>,
              class = decltype(std::declval<Container &>().size()),
              class = std::enable_if_t<(std::is_const_v<T> || !std::is_const_v<Item>) &&
                                       (detail::same_bits<value, Plain> || detail::is_row<value, Width, Plain>)>>
    rows(Container &&container) : data_(reinterpret_cast<T *>(container.data())) {
        const std::size_t numbers = static_cast<std::size_t>(container.size()) * (sizeof(Item) / sizeof(T));
        count_ = numbers / Width;
        if (numbers % Width != 0)
            throw error(WFMM_ERR_SHAPE, "an array does not hold whole rows of " + std::to_string(Width) + " numbers");
    }

    constexpr T *data() const noexcept { return data_; }
    constexpr std::int64_t count() const noexcept { return static_cast<std::int64_t>(count_); }

private:
    T *data_ = nullptr;
    std::size_t count_ = 0;
};

/// The points of segments: rows of point numbers, of which the first two are the ends. Two in a row in a container; others
/// as rows<const std::int32_t, 4>.
class connectivity {
public:
    constexpr connectivity() noexcept = default;
    template <std::size_t Width>
    constexpr connectivity(rows<const std::int32_t, Width> ends) noexcept
        : data_(ends.data()), count_(ends.count()), width_(Width) {
        static_assert(Width >= 2, "a segment has two ends");
    }
    template <class Ends, class = std::enable_if_t<std::is_constructible_v<rows<const std::int32_t, 2>, Ends>>>
    connectivity(Ends &&ends) : connectivity(rows<const std::int32_t, 2>(std::forward<Ends>(ends))) {}

    constexpr const std::int32_t *data() const noexcept { return data_; }
    constexpr std::int64_t count() const noexcept { return count_; }
    constexpr std::int64_t width() const noexcept { return width_; }

private:
    const std::int32_t *data_ = nullptr;
    std::int64_t count_ = 0, width_ = 2;
};

/// Adds to velocity at the points of a flow; memory, stream and the returned number as of wfmm_velocity_fn.
using velocity_function = std::function<std::int32_t(double time, rows<const double, 3> position, rows<double, 3> velocity,
                                                     std::int32_t memory, void *stream)>;

namespace detail {

template <class Real>
struct api;

#define WAKEFMM_API(Real, suffix)                                                                                      \
    template <>                                                                                                        \
    struct api<Real> {                                                                                                 \
        static constexpr auto set_segments = &wfmm_plan_set_segments_##suffix;                                         \
        static constexpr auto set_particles = &wfmm_plan_set_particles_##suffix;                                       \
        static constexpr auto set_charges = &wfmm_plan_set_charges_##suffix;                                           \
        static constexpr auto set_strengths = &wfmm_plan_set_strengths_##suffix;                                       \
        static constexpr auto set_targets = &wfmm_plan_set_targets_##suffix;                                           \
        static constexpr auto evaluate = &wfmm_plan_evaluate_##suffix;                                                 \
        static constexpr auto evaluate_async = &wfmm_plan_evaluate_async_##suffix;                                     \
        static constexpr auto evaluate_potential = &wfmm_plan_evaluate_potential_##suffix;                             \
        static constexpr auto check = &wfmm_plan_check_##suffix;                                                       \
        static constexpr auto induce_segments = &wfmm_induce_segments_##suffix;                                        \
        static constexpr auto induce_particles = &wfmm_induce_particles_##suffix;                                      \
        static constexpr auto flow_set_particles = &wfmm_flow_set_particles_##suffix;                                  \
        static constexpr auto flow_add_particles = &wfmm_flow_add_particles_##suffix;                                  \
        static constexpr auto flow_set_filaments = &wfmm_flow_set_filaments_##suffix;                                  \
        static constexpr auto flow_add_filaments = &wfmm_flow_add_filaments_##suffix;                                  \
        static constexpr auto flow_set_bound_segments = &wfmm_flow_set_bound_segments_##suffix;                        \
        static constexpr auto flow_set_tracers = &wfmm_flow_set_tracers_##suffix;                                      \
        static constexpr auto flow_add_tracers = &wfmm_flow_add_tracers_##suffix;                                      \
        static constexpr auto flow_set_dust = &wfmm_flow_set_dust_##suffix;                                            \
        static constexpr auto flow_add_dust = &wfmm_flow_add_dust_##suffix;                                            \
        static constexpr auto flow_get_selected = &wfmm_flow_get_selected_##suffix;                                    \
        static constexpr auto flow_get = &wfmm_flow_get_##suffix;                                                      \
        static constexpr auto flow_velocity = &wfmm_flow_velocity_##suffix;                                            \
    };
WAKEFMM_API(float, f32)
WAKEFMM_API(double, f64)
#undef WAKEFMM_API

/// An array beside others must be as long as they are; one that may be left out may also be empty.
template <class A>
void same_count(const char *name, const A &array, std::int64_t wanted, bool optional = false) {
    if (array.count() == wanted || (optional && array.count() == 0)) return;
    throw error(WFMM_ERR_SHAPE, std::string(name) + " has " + std::to_string(array.count()) + " rows; " +
                                    std::to_string(wanted) + " are needed");
}

/// An array that may be left out: nullptr where it is empty, wherever an emptied container still points.
template <class A>
auto or_null(const A &array) {
    return array.count() == 0 ? nullptr : array.data();
}

/// Text of an object.
template <class Function, class Object>
std::string text(Function function, const Object *object) {
    std::string line;
    wakefmm::check(get_text(line, [=](char *to, std::size_t capacity, std::size_t *length) {
        return function(object, to, capacity, length);
    }));
    return line;
}

/// A velocity function and what it has thrown: no exception passes through C.
struct velocity_guard {
    velocity_function function;
    std::exception_ptr thrown = nullptr;

    static std::int32_t add(double time, std::int64_t n, const double *position, double *velocity, std::int32_t memory,
                            void *stream, void *user) noexcept {
        auto &guard = *static_cast<velocity_guard *>(user);
        const auto count = static_cast<std::size_t>(n);
        try {
            return guard.function(time, {position, count}, {velocity, count}, memory, stream);
        } catch (...) {
            guard.thrown = std::current_exception();
            return WFMM_ERR_CALLBACK;
        }
    }
};

} // namespace detail

/// Major, minor and patch number of the loaded library.
inline std::array<std::int32_t, 3> version() {
    std::array<std::int32_t, 3> numbers{};
    check(wfmm_version(&numbers[0], &numbers[1], &numbers[2]));
    return numbers;
}
/// Of the loaded library; WFMM_ABI_VERSION is that of the header.
inline std::uint32_t abi_version() noexcept { return wfmm_abi_version(); }
/// Without a callback: to standard error. No exception may leave the callback.
inline void log_set(std::int32_t level, wfmm_log_fn callback = nullptr, void *user = nullptr) {
    check(wfmm_log_set(level, callback, user));
}

struct session_options : wfmm_session_options {
    session_options() { check(wfmm_session_options_init(this, sizeof(wfmm_session_options))); }
};

struct plan_options : wfmm_plan_options {
    plan_options() { check(wfmm_plan_options_init(this, sizeof(wfmm_plan_options))); }
};

struct flow_options : wfmm_flow_options {
    flow_options() { check(wfmm_flow_options_init(this, sizeof(wfmm_flow_options))); }
};

struct camera : wfmm_camera {
    camera() { check(wfmm_camera_init(this, sizeof(wfmm_camera))); }
};

/// How processes communicate: the caller sets all but struct_size.
struct communicator : wfmm_communicator {
    communicator() noexcept : wfmm_communicator{} { struct_size = sizeof(wfmm_communicator); }
};

/// Back end, device and threads; may be shared by threads and outlived by its plans.
class session {
public:
    explicit session(const session_options &options = {}) { check(wfmm_session_create(&options, &handle_)); }
    /// Of several processes. The functions of ranks and its user stay until the session and its last plan or flow have ended.
    explicit session(const wfmm_communicator &ranks, const session_options &options = {}) {
        check(wfmm_session_create_distributed(&options, &ranks, &handle_));
    }
    /// Takes over a session that a C function has made, such as wfmm_mpi_session_create.
    explicit session(wfmm_session *made) noexcept : handle_(made) {}
    ~session() { wfmm_session_destroy(&handle_); }
    session(session &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    session &operator=(session &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }

    std::string describe() const { return detail::text(wfmm_session_describe, handle_); }
    /// Page-locks host memory until unlock_pages, which must come before it is freed; nothing happens without a GPU.
    void lock_pages(void *array, std::int64_t bytes) { check(wfmm_session_register(handle_, array, bytes)); }
    void unlock_pages(void *array) { check(wfmm_session_unregister(handle_, array)); }
    wfmm_session *get() const noexcept { return handle_; }

private:
    wfmm_session *handle_ = nullptr;
};

namespace detail {

/// The handle of a session for a plan or flow. One that was moved from has none, and NULL would be the default session.
inline wfmm_session *live(const session &on) {
    if (on.get()) return on.get();
    throw error(WFMM_ERR_HANDLE, "the session has no handle: it was moved from, or made of a null pointer");
}

} // namespace detail

/// Numbers of elements of a plan.
struct plan_counts {
    std::int64_t segments = 0, particles = 0, charges = 0, targets = 0;
};

/// Memory of a plan, in bytes.
struct plan_workspace {
    std::uint64_t host = 0, device = 0;
};

/// Sources, targets, tree and results, for arrays of Real. One thread at a time.
/// memory says where all arrays of a call are: WFMM_MEMORY_HOST, _DEVICE or _AUTO. Host arrays are copied; device arrays are
/// borrowed until the next set_* or the plan's end.
template <class Real>
class plan {
    static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>, "float or double");
    using api = detail::api<Real>;

public:
    using scalars = rows<const Real, 1>;
    using vectors = rows<const Real, 3>;

    /// On the default session.
    explicit plan(const plan_options &options = {}) { check(wfmm_plan_create(nullptr, &options, &handle_)); }
    explicit plan(const session &on, const plan_options &options = {}) {
        check(wfmm_plan_create(detail::live(on), &options, &handle_));
    }
    /// Waits for an evaluation that is still under way: it writes into arrays of the caller.
    ~plan() {
        if (handle_) wfmm_plan_wait(handle_);
        wfmm_plan_destroy(&handle_);
    }
    plan(plan &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    plan &operator=(plan &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }

    void set_segments(vectors points, connectivity ends, scalars circulation, scalars core = {},
                      std::int32_t memory = WFMM_MEMORY_HOST) {
        detail::same_count("circulation", circulation, ends.count());
        detail::same_count("core", core, ends.count(), true);
        check(api::set_segments(handle_, points.count(), points.data(), ends.count(), ends.width(), ends.data(),
                                circulation.data(), detail::or_null(core), memory));
    }
    /// Of a container with Width numbers a row too: set_segments<4>(points, ends, circulation).
    template <std::size_t Width>
    void set_segments(vectors points, rows<const std::int32_t, Width> ends, scalars circulation, scalars core = {},
                      std::int32_t memory = WFMM_MEMORY_HOST) {
        set_segments(points, connectivity(ends), circulation, core, memory);
    }
    void set_particles(vectors position, vectors strength, scalars core = {}, std::int32_t memory = WFMM_MEMORY_HOST) {
        detail::same_count("strength", strength, position.count());
        detail::same_count("core", core, position.count(), true);
        check(api::set_particles(handle_, position.count(), position.data(), strength.data(),
                                 detail::or_null(core), memory));
    }
    void set_charges(vectors position, scalars charge, std::int32_t memory = WFMM_MEMORY_HOST) {
        detail::same_count("charge", charge, position.count());
        check(api::set_charges(handle_, position.count(), position.data(), charge.data(), memory));
    }
    /// New strengths at the same positions; an array that is left out or empty keeps what is there.
    void set_strengths(scalars circulation, vectors strength = {}, scalars charge = {},
                       std::int32_t memory = WFMM_MEMORY_HOST) {
        check(api::set_strengths(handle_, circulation.count(), detail::or_null(circulation), strength.count(),
                                 detail::or_null(strength), charge.count(), detail::or_null(charge), memory));
    }
    void set_targets(vectors position, std::int32_t memory = WFMM_MEMORY_HOST) {
        check(api::set_targets(handle_, position.count(), position.data(), memory));
    }

    void prepare() { check(wfmm_plan_prepare(handle_)); }
    /// gradient row k: du_i/dx_j of target k at index 3 i + j.
    void evaluate(rows<Real, 3> velocity, rows<Real, 9> gradient = {}, std::int32_t memory = WFMM_MEMORY_HOST) {
        field(api::evaluate, "velocity", velocity, gradient, memory);
    }
    /// Starts an evaluation and returns. The arrays must stay where they are until wait(), which writes them; in between the
    /// plan is busy. Declare them before the plan: what is declared last ends first, also where an exception ends a scope, and
    /// the plan's end waits for the evaluation.
    void evaluate_async(rows<Real, 3> velocity, rows<Real, 9> gradient = {}, std::int32_t memory = WFMM_MEMORY_HOST) {
        field(api::evaluate_async, "velocity", velocity, gradient, memory);
    }
    /// Waits for what evaluate_async started; throws what went wrong there.
    void wait() { check(wfmm_plan_wait(handle_)); }
    /// The CUDA stream (cudaStream_t, CUstream) on which the caller makes device arrays of this plan.
    void set_stream(void *stream) { check(wfmm_plan_set_stream(handle_, stream)); }
    void evaluate_potential(rows<Real, 1> potential, rows<Real, 3> gradient = {},
                            std::int32_t memory = WFMM_MEMORY_HOST) {
        field(api::evaluate_potential, "potential", potential, gradient, memory);
    }
    /// Relative L2 error of the last field on a sample of the targets, against the direct sum.
    Real error_of(std::int64_t samples, std::uint64_t seed = 1) {
        Real relative = 0;
        check(api::check(handle_, samples, seed, &relative));
        return relative;
    }

    plan_counts counts() const {
        plan_counts n;
        check(wfmm_plan_counts(handle_, &n.segments, &n.particles, &n.charges, &n.targets));
        return n;
    }
    plan_workspace workspace() const {
        plan_workspace bytes;
        check(wfmm_plan_workspace(handle_, &bytes.host, &bytes.device));
        return bytes;
    }
    std::string recipe() const { return detail::text(wfmm_plan_recipe, handle_); }
    wfmm_report report() const {
        wfmm_report r{};
        r.struct_size = sizeof r;
        check(wfmm_plan_report(handle_, &r));
        return r;
    }
    wfmm_plan *get() const noexcept { return handle_; }

private:
    // Inside the class `check` is the free function.
    static void check(wfmm_status status) { wakefmm::check(status); }

    template <class Function, std::size_t Width>
    void field(Function call, const char *name, rows<Real, Width> values, rows<Real, 3 * Width> gradient,
               std::int32_t memory) {
        const std::int64_t targets = counts().targets;
        detail::same_count(name, values, targets);
        detail::same_count("gradient", gradient, targets, true);
        check(call(handle_, values.data(), detail::or_null(gradient), memory));
    }

    wfmm_plan *handle_ = nullptr;
};

/// Velocity of segments at the targets in one call, for arrays of Real in host memory:
/// induce_segments<double>(points, ends, circulation, {}, x, u).
template <class Real>
void induce_segments(rows<const Real, 3> points, connectivity ends, rows<const Real, 1> circulation,
                     rows<const Real, 1> core, rows<const Real, 3> target, rows<Real, 3> velocity,
                     rows<Real, 9> gradient = {}, const plan_options &options = {}) {
    detail::same_count("circulation", circulation, ends.count());
    detail::same_count("core", core, ends.count(), true);
    detail::same_count("velocity", velocity, target.count());
    detail::same_count("gradient", gradient, target.count(), true);
    check(detail::api<Real>::induce_segments(points.count(), points.data(), ends.count(), ends.width(), ends.data(),
                                             circulation.data(), detail::or_null(core), target.count(), target.data(),
                                             &options, velocity.data(), detail::or_null(gradient)));
}

/// Velocity of particles at the targets in one call, for arrays of Real in host memory.
template <class Real>
void induce_particles(rows<const Real, 3> position, rows<const Real, 3> strength, rows<const Real, 1> core,
                      rows<const Real, 3> target, rows<Real, 3> velocity, rows<Real, 9> gradient = {},
                      const plan_options &options = {}) {
    detail::same_count("strength", strength, position.count());
    detail::same_count("core", core, position.count(), true);
    detail::same_count("velocity", velocity, target.count());
    detail::same_count("gradient", gradient, target.count(), true);
    check(detail::api<Real>::induce_particles(position.count(), position.data(), strength.data(), detail::or_null(core),
                                              target.count(), target.data(), &options, velocity.data(),
                                              detail::or_null(gradient)));
}

/// Elements that move step by step, for arrays of Real in host memory; the state is in double. One thread at a time.
template <class Real>
class flow {
    static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>, "float or double");
    using api = detail::api<Real>;

public:
    using scalars = rows<const Real, 1>;
    using vectors = rows<const Real, 3>;

    /// On the default session.
    explicit flow(const flow_options &options = {}, const plan_options &sums = {}) {
        check(wfmm_flow_create(nullptr, &sums, &options, &handle_));
    }
    explicit flow(const session &on, const flow_options &options = {}, const plan_options &sums = {}) {
        check(wfmm_flow_create(detail::live(on), &sums, &options, &handle_));
    }
    /// From a checkpoint, on the default session.
    static flow load(const char *path) { return flow(path, nullptr); }
    static flow load(const session &on, const char *path) { return flow(path, detail::live(on)); }
    ~flow() { wfmm_flow_destroy(&handle_); }
    flow(flow &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)), guard_(std::move(other.guard_)) {}
    flow &operator=(flow &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(guard_, other.guard_);
        return *this;
    }

    void set_particles(vectors x, vectors strength, scalars core = {}) { particles(api::flow_set_particles, x, strength, core); }
    void add_particles(vectors x, vectors strength, scalars core = {}) { particles(api::flow_add_particles, x, strength, core); }
    void set_filaments(vectors points, connectivity ends, scalars circulation, scalars core = {}) {
        segments(api::flow_set_filaments, points, ends, circulation, core);
    }
    void add_filaments(vectors points, connectivity ends, scalars circulation, scalars core = {}) {
        segments(api::flow_add_filaments, points, ends, circulation, core);
    }
    void set_bound_segments(vectors points, connectivity ends, scalars circulation, scalars core = {}) {
        segments(api::flow_set_bound_segments, points, ends, circulation, core);
    }
    void set_tracers(vectors x) { check(api::flow_set_tracers(handle_, x.count(), x.data(), WFMM_MEMORY_HOST)); }
    void add_tracers(vectors x) { check(api::flow_add_tracers(handle_, x.count(), x.data(), WFMM_MEMORY_HOST)); }
    /// Without velocity: at rest.
    void set_dust(vectors x, scalars diameter, scalars density, vectors velocity = {}) {
        dust(api::flow_set_dust, x, diameter, density, velocity);
    }
    void add_dust(vectors x, scalars diameter, scalars density, vectors velocity = {}) {
        dust(api::flow_add_dust, x, diameter, density, velocity);
    }
    void remove(std::int32_t kind, rows<const std::int64_t, 1> identity) {
        check(wfmm_flow_remove(handle_, kind, identity.count(), identity.data(), WFMM_MEMORY_HOST));
    }
    /// One byte for each element; those that are not 0 are removed.
    void remove_mask(std::int32_t kind, rows<const std::uint8_t, 1> mask) {
        check(wfmm_flow_remove_mask(handle_, kind, mask.count(), mask.data(), WFMM_MEMORY_HOST));
    }

    void set_free_stream(double x, double y, double z) {
        const double velocity[3] = {x, y, z};
        check(wfmm_flow_set_free_stream(handle_, velocity));
    }
    /// No exception may leave the function: it is called from C.
    void set_velocity_callback(wfmm_velocity_fn callback, void *user = nullptr) {
        check(wfmm_flow_set_velocity_callback(handle_, callback, user));
        guard_.reset();
    }
    /// The flow keeps the function. What it throws stops the step, and is thrown again by the member that needed the velocity.
    void set_velocity_callback(velocity_function function) {
        if (!function) return set_velocity_callback(nullptr);
        auto guard = std::make_unique<detail::velocity_guard>();
        guard->function = std::move(function);
        check(wfmm_flow_set_velocity_callback(handle_, &detail::velocity_guard::add, guard.get()));
        guard_ = std::move(guard);
    }
    void advance(double dt, std::int64_t steps = 1) { check(wfmm_flow_advance(handle_, dt, steps)); }

    double time() const {
        double now = 0;
        check(wfmm_flow_time(handle_, &now, nullptr));
        return now;
    }
    /// Steps since the flow was made.
    std::int64_t steps() const {
        std::int64_t step = 0;
        check(wfmm_flow_time(handle_, nullptr, &step));
        return step;
    }
    std::int64_t elements(std::int32_t kind) const { return counts(kind).first; }
    /// End points of segments; of other kinds as many as there are elements.
    std::int64_t points(std::int32_t kind) const { return counts(kind).second; }
    /// Width: 3 for positions, strengths and velocities, else 1.
    template <std::size_t Width>
    void get(std::int32_t kind, std::int32_t quantity, rows<Real, Width> values, rows<std::int64_t, 1> identity = {}) {
        fits_quantity<Width>(quantity);
        detail::same_count("identity", identity, values.count(), true);
        check(api::flow_get(handle_, kind, quantity, values.count(), values.data(), detail::or_null(identity),
                            WFMM_MEMORY_HOST));
    }
    /// Row k: of the element (or point) identity[k].
    template <std::size_t Width>
    void get_selected(std::int32_t kind, std::int32_t quantity, rows<const std::int64_t, 1> identity, rows<Real, Width> values) {
        fits_quantity<Width>(quantity);
        detail::same_count("identity", identity, values.count());
        check(api::flow_get_selected(handle_, kind, quantity, identity.count(), identity.data(), values.data(), WFMM_MEMORY_HOST));
    }
    /// First and second point of each segment, counted from index_base of the plan options.
    void get_connectivity(std::int32_t kind, rows<std::int32_t, 2> ends) {
        check(wfmm_flow_get_connectivity(handle_, kind, ends.count(), ends.data(), WFMM_MEMORY_HOST));
    }
    /// gradient row k: du_i/dx_j of target k at index 3 i + j, of the induced part.
    void velocity(vectors target, rows<Real, 3> velocity, rows<Real, 9> gradient = {}) {
        detail::same_count("velocity", velocity, target.count());
        detail::same_count("gradient", gradient, target.count(), true);
        check(api::flow_velocity(handle_, target.count(), target.data(), velocity.data(), detail::or_null(gradient),
                                 WFMM_MEMORY_HOST));
    }

    /// Four bytes a pixel, rows from the top; with a path a PNG file too.
    std::vector<std::uint8_t> picture(std::int32_t width, std::int32_t height, const camera &from = {},
                                      const char *png_path = nullptr) {
        const bool sound = width > 0 && height > 0;
        std::vector<std::uint8_t> rgba(sound ? 4 * std::size_t(width) * std::size_t(height) : 1);
        check(wfmm_flow_picture(handle_, &from, width, height, rgba.data(), png_path));
        return rgba;
    }
    void write_picture(const char *png_path, std::int32_t width, std::int32_t height, const camera &from = {}) {
        check(wfmm_flow_picture(handle_, &from, width, height, nullptr, png_path));
    }

    /// The options that the flow was made with; of a loaded one those of the file.
    std::pair<plan_options, flow_options> options() const {
        std::pair<plan_options, flow_options> made_with;
        check(wfmm_flow_get_options(handle_, &made_with.first, &made_with.second));
        return made_with;
    }
    wfmm_diagnostics diagnostics() {
        wfmm_diagnostics d;
        check(wfmm_diagnostics_init(&d, sizeof d));
        check(wfmm_flow_diagnostics(handle_, &d));
        return d;
    }
    wfmm_report report() const {
        wfmm_report r{};
        r.struct_size = sizeof r;
        check(wfmm_flow_report(handle_, &r));
        return r;
    }
    /// Writes a checkpoint.
    void save(const char *path) { check(wfmm_flow_save(handle_, path)); }
    wfmm_flow *get() const noexcept { return handle_; }

private:
    flow(const char *path, wfmm_session *on) { check(wfmm_flow_load(on, path, &handle_)); }
    // Inside the class `check` is the free function, but for what the velocity function has thrown.
    void check(wfmm_status status) const {
        if (status != WFMM_OK && guard_ && guard_->thrown)
            std::rethrow_exception(std::exchange(guard_->thrown, nullptr));
        wakefmm::check(status);
    }

    template <class Function>
    void particles(Function put, vectors x, vectors strength, scalars core) {
        detail::same_count("strength", strength, x.count());
        detail::same_count("core", core, x.count(), true);
        check(put(handle_, x.count(), x.data(), strength.data(), detail::or_null(core), WFMM_MEMORY_HOST));
    }
    template <class Function>
    void segments(Function put, vectors points, connectivity ends, scalars circulation, scalars core) {
        detail::same_count("circulation", circulation, ends.count());
        detail::same_count("core", core, ends.count(), true);
        check(put(handle_, points.count(), points.data(), ends.count(), ends.width(), ends.data(),
                  circulation.data(), detail::or_null(core), WFMM_MEMORY_HOST));
    }
    template <class Function>
    void dust(Function put, vectors x, scalars diameter, scalars density, vectors velocity) {
        detail::same_count("diameter", diameter, x.count());
        detail::same_count("density", density, x.count());
        detail::same_count("velocity", velocity, x.count(), true);
        check(put(handle_, x.count(), x.data(), detail::or_null(velocity), diameter.data(), density.data(),
                  WFMM_MEMORY_HOST));
    }
    template <std::size_t Width> static void fits_quantity(std::int32_t quantity) {
        const bool vector = quantity == WFMM_QUANTITY_POSITION || quantity == WFMM_QUANTITY_STRENGTH ||
                            quantity == WFMM_QUANTITY_VELOCITY;
        if (Width != (vector ? 3 : 1)) throw error(WFMM_ERR_SHAPE, "rows of values are not as wide as the quantity");
    }
    std::pair<std::int64_t, std::int64_t> counts(std::int32_t kind) const {
        std::int64_t n = 0, n_points = 0;
        check(wfmm_flow_counts(handle_, kind, &n, &n_points));
        return {n, n_points};
    }

    wfmm_flow *handle_ = nullptr;
    std::unique_ptr<detail::velocity_guard> guard_;
};

} // namespace wakefmm

#endif
