/* This library beside PVFMM (kernel-independent FMM, https://github.com/dmalhotra/pvfmm) on the CPU, in one process, on the same arrays
 * and with the same number of threads: vortex particles without cores, columns and points as in bench/speed.rs, rounded to single
 * precision so that both precisions compute the same sum.
 *
 * A time runs from arrays in host memory to velocities in host memory. PVFMM's has tree, set-up and evaluation; its operator tables are
 * loaded before, its arrays are in its own precision already, and the object of the tree with its copies of the tables stays. Ours has
 * particles, targets and velocities, from double arrays, by a plan that stays; nothing of it is set by hand.
 *
 * PVFMM's order and leaves are searched first, on points of their own: for each leaf size (most sources and targets of a leaf, together)
 * the lowest order that reaches the tolerance, of these the fastest. A leaf that holds nearly all points makes PVFMM a direct sum.
 * Then come repetitions with new positions, the libraries in turn, the first not counted. Times are medians; errors are relative L2 at
 * up to 1,000 targets, evenly picked, against our direct sum in double precision, the largest of all repetitions.
 *
 * Enters: key=value of threads (2), repetitions (3), column (those whose name begins so), largest (leaves out larger columns), tolerance
 * (1e-3,1e-6), leaves (60,150,400,1000, from which the search starts). Leaves: a table; what was searched goes to the standard error.
 * The environment, which pvfmm.sh sets: OPENBLAS_NUM_THREADS=1, PVFMM_DIR, where PVFMM keeps its tables, PVFMM_VERSION.
 * Give the machine nothing else to do: PVFMM's threads wait for each other at full speed.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>
#include <omp.h>
#include <pvfmm.hpp>

#include "wakefmm.h"

#ifndef FLAGS
#define FLAGS "unknown"
#endif

namespace {

constexpr int MOST_ORDER = 16;
constexpr double PI = 3.141592653589793;

/// A column of the table.
struct Column {
    const char *name;
    size_t sources, targets;
};
const Column COLUMNS[] = {
    {"CUBE 1e4", 10'000, 10'000},
    {"CUBE 1e5", 100'000, 100'000},
    {"RINGS 1e5", 100'000, 100'000},
    {"1e4 sources, 1e6 targets", 10'000, 1'000'000},
    {"CUBE 1e6", 1'000'000, 1'000'000},
};

struct Arguments {
    std::vector<std::string> all;
    std::string word(const std::string &key, const std::string &otherwise) const {
        for (const std::string &a : all)
            if (a.rfind(key + "=", 0) == 0) return a.substr(key.size() + 1);
        return otherwise;
    }
    std::vector<double> numbers(const std::string &key, const std::string &otherwise) const {
        std::vector<double> v;
        std::string rest = word(key, otherwise);
        for (char *at = rest.data(); *at; at += *at == ',') {
            char *end;
            v.push_back(std::strtod(at, &end));
            if (end == at || (*end && *end != ',')) std::fprintf(stderr, "%s: numbers, separated by commas\n", key.c_str()), std::exit(2);
            at = end;
        }
        return v;
    }
    double number(const std::string &key, const char *otherwise) const { return numbers(key, otherwise).at(0); }
};

void must(wfmm_status status, const char *what) {
    if (status == WFMM_OK) return;
    char text[600] = "";
    wfmm_last_error(text, sizeof text, nullptr);
    std::fprintf(stderr, "%s: status %d: %s\n", what, status, text);
    std::exit(1);
}

void fail(const char *format, ...) {
    va_list of;
    va_start(of, format);
    std::vfprintf(stderr, format, of);
    va_end(of);
    std::exit(1);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Lets idle threads of the other library fall asleep, which wait for work at full speed for a while.
void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

/// 1e-3.
std::string power(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.0e", x);
    std::string s = text;
    const size_t zero = s.find("-0");
    return zero == s.npos ? s : s.erase(zero + 1, 1);
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

/// As bench/support/random.rs: splitmix64.
struct Random {
    uint64_t state;
    double unit() {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
    }
    double normal() {
        const double r = std::sqrt(-2 * std::log(1 - unit()));
        return r * std::cos(2 * PI * unit());
    }
};

/// Positions and strengths of sources, positions of targets: [n][3] each.
template <class Real> struct Arrays {
    std::vector<Real> position, strength, target;
};

/// In double precision, but rounded to single; positions in [0,1), as PVFMM wants them.
Arrays<double> workload(const Column &c, uint64_t seed) {
    Random r{seed};
    Arrays<double> w;
    const auto cube = [&](std::vector<double> &v, size_t n, double low) {
        for (size_t k = 0; k < 3 * n; k++) v.push_back(low + (1 - low) * r.unit());
    };
    if (std::strncmp(c.name, "RINGS", 5) == 0) {
        for (size_t k = 0; k < c.sources; k++) {
            const double angle = 2 * PI * r.unit(), z = k % 2 ? 0.6 : 0.4;
            for (const double at : {0.5 + 0.3 * std::cos(angle), 0.5 + 0.3 * std::sin(angle), z}) w.position.push_back(at + 0.02 * r.normal());
            for (const double a : {-std::sin(angle), std::cos(angle), 0.0}) w.strength.push_back(a);
        }
    } else {
        cube(w.position, c.sources, 0);
        cube(w.strength, c.sources, -1);
    }
    cube(w.target, c.targets, 0);
    for (double &x : w.strength) x = float(x);
    for (auto *positions : {&w.position, &w.target})
        for (double &x : *positions) {
            x = std::min(float(x), std::nextafter(1.0f, 0.0f));
            if (!(x >= 0)) fail("%s: a position outside of the unit cube\n", c.name);
        }
    return w;
}

template <class Real> Arrays<Real> converted(const Arrays<double> &w) {
    const auto to = [](const std::vector<double> &v) { return std::vector<Real>(v.begin(), v.end()); };
    return {to(w.position), to(w.strength), to(w.target)};
}

/// This library.
class Ours {
  public:
    Ours(wfmm_session *session, int32_t method, int32_t precision, double tolerance) {
        wfmm_plan_options o;
        must(wfmm_plan_options_init(&o, sizeof o), "plan options");
        o.method = method, o.precision = precision, o.tolerance = tolerance, o.particle_regularization = WFMM_REG_NONE;
        must(wfmm_plan_create(session, &o, &plan), "plan");
    }
    Ours(const Ours &) = delete;
    ~Ours() { wfmm_plan_destroy(&plan); }

    /// Seconds from arrays to velocities.
    double velocity(const Arrays<double> &w, std::vector<double> &u) {
        const double start = now();
        u.resize(w.target.size());
        const int64_t n = int64_t(w.position.size() / 3), m = int64_t(w.target.size() / 3);
        must(wfmm_plan_set_particles_f64(plan, n, w.position.data(), w.strength.data(), nullptr, WFMM_MEMORY_HOST), "particles");
        must(wfmm_plan_set_targets_f64(plan, m, w.target.data(), WFMM_MEMORY_HOST), "targets");
        must(wfmm_plan_evaluate_f64(plan, u.data(), nullptr, WFMM_MEMORY_HOST), "velocity");
        return now() - start;
    }
    std::string recipe() const {
        char text[4096] = "";
        must(wfmm_plan_recipe(plan, text, sizeof text, nullptr), "recipe");
        return text;
    }

  private:
    wfmm_plan *plan = nullptr;
};

/// The direct sum at up to 1,000 targets of a workload.
class Reference {
  public:
    Reference(wfmm_session *session, const Arrays<double> &w) : step((w.target.size() / 3 + 999) / 1000) {
        Arrays<double> some{w.position, w.strength, {}};
        for (size_t k = 0; k < w.target.size(); k += 3 * step) some.target.insert(some.target.end(), &w.target[k], &w.target[k] + 3);
        Ours(session, WFMM_METHOD_DIRECT, WFMM_PRECISION_F64, 1e-10).velocity(some, want);
    }
    template <class Real> double error(const std::vector<Real> &u) const {
        double wrong = 0, size = 0;
        for (size_t k = 0; k < want.size(); k++) {
            const double d = double(u.at(k / 3 * 3 * step + k % 3)) - want[k];
            wrong += d * d, size += want[k] * want[k];
        }
        return std::sqrt(wrong / size);
    }

  private:
    size_t step;
    std::vector<double> want;
};

/// Of PVFMM, and what a trial of it gave.
struct Setting {
    int order;
    int leaf; // most sources and targets of one, together
    double error, seconds;
};

/// PVFMM in one precision.
template <class Real> class Peer {
  public:
    static constexpr const char *name = sizeof(Real) == 8 ? "f64" : "f32";

    struct Seconds {
        double whole, evaluation;
    };

    Seconds velocity(const Arrays<Real> &w, const Setting &s, std::vector<Real> &u) {
        prepare(s.order);
        rest();
        return evaluate(w, s, u);
    }

    /// The fastest setting that reaches a tolerance. From the middle of the leaf sizes it goes up and down while that is not much slower,
    /// and beyond an end that is the fastest.
    std::optional<Setting> search(const Column &c, const Arrays<Real> &w, const Reference &reference, double tolerance,
                                  const std::vector<int> &leaves) {
        std::optional<Setting> best;
        const size_t middle = leaves.size() / 2, points = c.sources + c.targets;
        int order = 4;
        least.clear();
        const auto worth_more = [&](int leaf) {
            const Setting s = lowest(w, reference, tolerance, {order, leaf, 0, 0}, best ? order + 2 : MOST_ORDER);
            order = s.order;
            if (s.error > tolerance) return !best;
            if (!best || s.seconds < best->seconds) best = s;
            return s.seconds < 1.5 * best->seconds;
        };
        for (size_t k = middle; k < leaves.size() && worth_more(leaves[k]);) k++;
        if (best) { // else smaller leaves have larger errors
            for (size_t k = middle; k > 0 && worth_more(leaves[k - 1]);) k--;
            for (int leaf = leaves.back(); best->leaf == leaf && size_t(leaf) < points / 4;) worth_more(leaf = leaf * 5 / 2);
            for (int leaf = leaves.front(); best->leaf == leaf && leaf > 9;) worth_more(leaf = leaf * 2 / 5);
        }
        tree.reset();
        return best;
    }

    /// The factor by which PVFMM's kernel differs from our sum, and what remains of the difference.
    void check_kernel(wfmm_session *session) const {
        Arrays<double> w = workload({"CUBE", 200, 200}, 7);
        Arrays<Real> same = converted<Real>(w);
        std::vector<double> want;
        std::vector<Real> got(600, 0);
        Ours(session, WFMM_METHOD_DIRECT, WFMM_PRECISION_F64, 1e-10).velocity(w, want);
        kernel().ker_poten(same.position.data(), 200, same.strength.data(), 1, same.target.data(), 200, got.data(), nullptr);
        double product = 0, size = 0, wrong = 0;
        for (size_t k = 0; k < 600; k++) product += double(got[k]) * want[k], size += want[k] * want[k];
        const double factor = product / size;
        for (size_t k = 0; k < 600; k++) wrong += std::pow(double(got[k]) - factor * want[k], 2);
        wrong = std::sqrt(wrong / size);
        std::fprintf(stderr, "PVFMM's kernel, %s: %.7f times our direct sum, relative rest %.1e\n", name, factor, wrong);
        if (!(std::fabs(factor - 1) < 1e-4 && wrong < 1e-4)) fail("another sign, factor or sum\n");
    }

  private:
    static const pvfmm::Kernel<Real> &kernel() { return pvfmm::BiotSavartKernel<Real>::potential(); }

    Seconds evaluate(const Arrays<Real> &w, const Setting &s, std::vector<Real> &u) {
        const double start = now();
        pvfmm::PtFMM_Data<Real> data;
        data.dim = PVFMM_COORD_DIM, data.max_depth = PVFMM_MAX_DEPTH, data.max_pts = size_t(s.leaf);
        data.src_coord = w.position, data.src_value = w.strength, data.trg_coord = data.pt_coord = w.target; // as PtFMM_CreateTree does
        tree->Initialize(&data);
        tree->InitFMM_Tree(true, pvfmm::FreeSpace);
        tree->SetupFMM(operators.at(s.order).get());
        const double ready = now();
        pvfmm::PtFMM_Evaluate(tree.get(), u, w.target.size() / 3);
        const double end = now();
        return {end - start, end - ready};
    }

    /// Tables of an order, computed or read from PVFMM_DIR where they are new, and a tree that has used them once.
    void prepare(int order) {
        auto &of = operators[order];
        if (!of) {
            const double start = now();
            of = std::make_unique<pvfmm::PtFMM<Real>>();
            of->Initialize(order, MPI_COMM_WORLD, &kernel());
            std::fprintf(stderr, "    tables of order %d, %s: %.1f s\n", order, name, now() - start);
        }
        if (tree && order == order_of_tree) return;
        tree = std::make_unique<pvfmm::PtFMM_Tree<Real>>(MPI_COMM_WORLD);
        order_of_tree = order;
        std::vector<Real> u;
        evaluate(converted<Real>(workload({"CUBE", 2000, 2000}, 5)), {order, 40, 0, 0}, u);
    }

    /// Seconds are the smallest of up to three, where these take little time.
    Setting trial(const Arrays<Real> &w, const Reference &reference, double tolerance, Setting s) {
        std::vector<Real> u;
        double spent = s.seconds = velocity(w, s, u).whole;
        s.error = reference.error(u);
        for (int k = 0; k < 2 && spent < 2 && s.error <= tolerance; k++) {
            const double t = velocity(w, s, u).whole;
            s.seconds = std::min(s.seconds, t), spent += t;
        }
        const auto [at, is_new] = least.try_emplace(s.order, s.error);
        if (!is_new) at->second = std::min(at->second, s.error);
        std::fprintf(stderr, "    %s, order %d, %d points a leaf: %.4f s, error %.1e\n", name, s.order, s.leaf, s.seconds, s.error);
        return s;
    }

    /// The lowest order up to `most` that reaches the tolerance with this leaf size, found from the order given; where none does, one
    /// whose error the next order hardly lowers. Orders that missed the tolerance by far with other leaves are not tried.
    Setting lowest(const Arrays<Real> &w, const Reference &reference, double tolerance, Setting s, int most) {
        s = trial(w, reference, tolerance, s);
        const bool reached = s.error <= tolerance;
        while (reached ? s.order > 2 : s.order < most) {
            Setting other = s;
            other.order += reached ? -2 : 2;
            if (const auto seen = least.find(other.order); reached && seen != least.end() && seen->second > 8 * tolerance) break;
            other = trial(w, reference, tolerance, other);
            if (other.error > tolerance && (reached || other.error > 0.8 * s.error)) break;
            s = other;
            if (!reached && s.error <= tolerance) break;
        }
        return s;
    }

    /// Smallest error of each order in a search.
    std::map<int, double> least;
    std::map<int, std::unique_ptr<pvfmm::PtFMM<Real>>> operators;
    std::unique_ptr<pvfmm::PtFMM_Tree<Real>> tree;
    int order_of_tree = 0;
};

/// Times and errors of one library over the repetitions.
struct Measured {
    std::vector<double> seconds, evaluation;
    double error = 0;
};

struct Bench {
    wfmm_session *session;
    int repetitions;
    std::vector<int> leaves;
    Peer<double> wide;
    Peer<float> narrow;

    template <class Real>
    void repeat(Peer<Real> &peer, const std::optional<Setting> &s, const Arrays<double> &w, const Reference &reference, bool counts, Measured &m) {
        if (!s) return;
        std::vector<Real> u;
        const auto t = peer.velocity(converted<Real>(w), *s, u);
        if (!counts) return;
        m.seconds.push_back(t.whole), m.evaluation.push_back(t.evaluation);
        m.error = std::max(m.error, reference.error(u));
    }

    void row(const Column &c, double tolerance, const char *precision, const std::optional<Setting> &s, const Measured &peer, const Measured &ours) {
        const double t = median(ours.seconds);
        std::printf("| %s | %s | %s | ", c.name, power(tolerance).c_str(), precision);
        if (s)
            std::printf("%d, %d | %.4f | %.4f | %.1e | %.4f | %.1e | %.2f |\n", s->order, s->leaf, median(peer.seconds), median(peer.evaluation),
                        peer.error, t, ours.error, median(peer.seconds) / t);
        else std::printf("not reached | | | | %.4f | %.1e | |\n", t, ours.error);
        std::fflush(stdout);
    }

    void measure(const Column &c, double tolerance) {
        std::fprintf(stderr, "%s, %s\n", c.name, power(tolerance).c_str());
        std::optional<Setting> in_double, in_single;
        {
            const Arrays<double> w = workload(c, 999);
            const Reference reference(session, w);
            in_double = wide.search(c, w, reference, tolerance, leaves);
            in_single = narrow.search(c, converted<float>(w), reference, tolerance, leaves);
        }
        Measured of_double, of_single, of_ours;
        Ours ours(session, WFMM_METHOD_AUTO, WFMM_PRECISION_ARRAYS, tolerance);
        for (int k = 0; k <= repetitions; k++) {
            const Arrays<double> w = workload(c, 1000 + uint64_t(k));
            const Reference reference(session, w);
            repeat(wide, in_double, w, reference, k > 0, of_double);
            repeat(narrow, in_single, w, reference, k > 0, of_single);
            std::vector<double> u(w.target.size());
            rest();
            const double t = ours.velocity(w, u);
            if (k == 0) continue;
            of_ours.seconds.push_back(t);
            of_ours.error = std::max(of_ours.error, reference.error(u));
        }
        std::fprintf(stderr, "    ours: %s\n", ours.recipe().c_str());
        row(c, tolerance, wide.name, in_double, of_double, of_ours);
        row(c, tolerance, narrow.name, in_single, of_single, of_ours);
    }
};

std::string processor() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    return "unknown processor";
}

int run(const Arguments &arguments) {
    const int threads = int(arguments.number("threads", "2")), repetitions = int(arguments.number("repetitions", "3"));
    const std::string prefix = arguments.word("column", "");
    const double largest = arguments.number("largest", "1e9");
    if (threads < 1 || repetitions < 1) fail("threads and repetitions: 1 or more\n");
    omp_set_num_threads(threads);

    wfmm_session_options o;
    must(wfmm_session_options_init(&o, sizeof o), "session options");
    o.backend = WFMM_BACKEND_CPU, o.threads = threads;
    Bench bench{};
    bench.repetitions = repetitions;
    for (const double leaf : arguments.numbers("leaves", "60,150,400,1000")) bench.leaves.push_back(int(leaf));
    std::sort(bench.leaves.begin(), bench.leaves.end());
    if (bench.leaves.front() < 1) fail("leaves: 1 or more\n");
    must(wfmm_session_create(&o, &bench.session), "session");
    bench.wide.check_kernel(bench.session);
    bench.narrow.check_kernel(bench.session);

    const char *const version = std::getenv("PVFMM_VERSION");
    int32_t major, minor, patch;
    must(wfmm_version(&major, &minor, &patch), "version");
    std::printf("libwakefmm %d.%d.%d; PVFMM %s, g++ %s, %s; %s, %d threads\n\n", major, minor, patch, version ? version : "of unknown version",
                __VERSION__, FLAGS, processor().c_str(), threads);
    std::printf("| workload | tolerance | PVFMM in | order, points a leaf | PVFMM, s | of it evaluation | error | ours, s | error | PVFMM / ours |\n"
                "|---|---|---|---|---|---|---|---|---|---|\n");
    for (const Column &c : COLUMNS) {
        if (double(std::max(c.sources, c.targets)) > largest || std::string(c.name).rfind(prefix, 0) != 0) continue;
        for (const double tolerance : arguments.numbers("tolerance", "1e-3,1e-6")) bench.measure(c, tolerance);
    }
    must(wfmm_session_destroy(&bench.session), "session");
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int status = run({std::vector<std::string>(argv + 1, argv + argc)});
    MPI_Finalize();
    return status;
}
