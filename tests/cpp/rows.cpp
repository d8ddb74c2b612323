// What the C++ wrapper takes as an array and what it refuses, at compile time.
#include "wakefmm.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <type_traits>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L
#include <span>
#endif

// Every member, for the warnings of the compiler.
template class wakefmm::plan<float>;
template class wakefmm::plan<double>;
template class wakefmm::flow<float>;
template class wakefmm::flow<double>;

namespace {

template <class T, std::size_t Width, class Container>
constexpr bool takes = std::is_constructible_v<wakefmm::rows<T, Width>, Container>;
template <class T, std::size_t Width, class Item>
constexpr bool of = takes<const T, Width, std::vector<Item> &> && takes<T, Width, std::vector<Item> &> &&
                    takes<const T, Width, const std::vector<Item> &> && takes<const T, Width, std::vector<Item>>;
template <class T, std::size_t Width, class Item>
constexpr bool refuses = !takes<const T, Width, std::vector<Item> &> && !takes<T, Width, std::vector<Item> &>;

template <class T>
struct point {
    T x, y, z;
};
struct box {
    double edge[3][3];
};
enum class color : std::uint64_t {};

// Numbers, arrays of them and structs.
static_assert(of<double, 3, double> && of<float, 3, float> && of<double, 1, double>);
static_assert(of<double, 3, std::array<double, 3>> && of<float, 3, point<float>> && of<double, 9, box>);
static_assert(of<double, 9, std::array<std::array<double, 3>, 3>> && of<double, 9, std::array<point<double>, 3>>);
static_assert(takes<double, 3, std::array<double[3], 2> &> && takes<const double, 3, const std::array<double, 6> &>);

// Numbers of another type, whatever their size.
static_assert(refuses<double, 1, long> && refuses<double, 1, std::uint64_t> && refuses<double, 1, double *>);
static_assert(refuses<double, 1, color> && refuses<double, 1, std::nullptr_t> && refuses<float, 1, int> && refuses<float, 3, double>);
static_assert(refuses<double, 3, std::array<long, 3>> && refuses<double, 3, std::array<double *, 3>>);
static_assert(refuses<float, 3, std::array<std::int32_t, 3>> && refuses<double, 9, std::array<std::array<long, 3>, 3>>);
static_assert(!takes<const double, 3, std::array<long[3], 2> &>);
// Of another length.
static_assert(refuses<double, 3, std::array<double, 2>> && refuses<double, 3, point<float>> && refuses<double, 1, point<double>>);

// Point numbers and identities: integers of the same size and sign, under any name.
static_assert(of<std::int64_t, 1, long> && of<std::int64_t, 1, long long> && of<std::int32_t, 2, std::array<int, 2>>);
static_assert(refuses<std::int64_t, 1, double> && refuses<std::int64_t, 1, std::uint64_t> && refuses<std::int64_t, 1, std::int32_t>);
static_assert(refuses<std::int32_t, 2, std::array<float, 2>> && refuses<std::int32_t, 1, std::uint32_t>);
template <class Ends>
constexpr bool connects = std::is_constructible_v<wakefmm::connectivity, Ends>;
static_assert(connects<std::vector<int> &> && connects<const std::vector<std::array<int, 2>> &> && connects<std::nullptr_t>);
static_assert(connects<wakefmm::rows<const std::int32_t, 2>> && connects<wakefmm::rows<const std::int32_t, 4> &>);
static_assert(!connects<std::vector<long> &> && !connects<std::vector<std::array<float, 2>>>);

// Results are not written into a temporary that owns its numbers, nor into const ones; views may be temporaries.
static_assert(!takes<double, 3, std::vector<double>> && !takes<double, 3, std::array<double, 3>>);
static_assert(!takes<double, 3, const std::vector<double> &> && !takes<double, 3, const std::vector<double>>);
struct view {
    double *data() const;
    int size() const;
};
static_assert(takes<double, 3, view> && takes<double, 3, view &> && takes<const double, 3, view>);
#if __cplusplus >= 202002L
static_assert(takes<double, 3, std::span<double>> && takes<const double, 3, std::span<const double>> && !takes<double, 3, std::span<const double>>);
#endif

// The same of members.
template <class Output, class = void>
constexpr bool starts = false;
template <class Output>
constexpr bool starts<Output, std::void_t<decltype(std::declval<wakefmm::plan<double> &>().evaluate_async(std::declval<Output>()))>> = true;
static_assert(starts<std::vector<double> &> && starts<wakefmm::rows<double, 3>> && !starts<std::vector<double>>);
template <class Identity, class = void>
constexpr bool removes = false;
template <class Identity>
constexpr bool removes<Identity, std::void_t<decltype(std::declval<wakefmm::flow<double> &>().remove(0, std::declval<Identity>()))>> = true;
static_assert(removes<std::vector<long long>> && !removes<std::vector<double>>);

} // namespace

int main() {
    // Whole rows only.
    std::vector<double> five(5);
    try {
        wakefmm::rows<const double, 3> rows(five);
        std::printf("%lld rows of five numbers\n", static_cast<long long>(rows.count()));
        return 1;
    } catch (const wakefmm::error &e) {
        return e.status() != WFMM_ERR_SHAPE;
    }
}
