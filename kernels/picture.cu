// Pictures of a flow whose state lies in device memory: what src/flow/picture does in host memory, with the same numbers. Products
// are not joined with sums (`times`), sums over points are of integers: a picture has the same bytes wherever it is drawn, but for
// the last digit of an exponential. Any block of whole warps unless said; the grid sweeps.
#include <cuda_runtime.h>
#include "picture_args.cuh"
#include "common.cuh"

using namespace picture;

typedef unsigned long long Word;

// A point whose pixels are more is drawn by a whole warp; that many fit into a side of five.
constexpr int kAlone = 25;
// Lanes whose points cover the same pixels add them up before they are deposited, from so many on.
constexpr int kCrowd = 4;
constexpr int kSummed = 256;
// Sums of a pixel, `Canvas::sums`: a weight for each kind; red, green, blue and weight in a word each; the same in halves of two words.
enum Sums { kOfKinds = 0, kWide = 1, kPacked = 2 };
constexpr unsigned kAll = ~0u;

WFMM_DEVICE long long thread() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
WFMM_DEVICE long long threads() { return gridDim.x * (long long)blockDim.x; }
WFMM_DEVICE Vec<double> row(const double* x, long long k) { return {x[3 * k], x[3 * k + 1], x[3 * k + 2]}; }
WFMM_DEVICE double product(Vec<double> a, Vec<double> b) { return times(a.x, b.x) + times(a.y, b.y) + times(a.z, b.z); }
WFMM_DEVICE double along(const double* axis, Vec<double> a) { return product(a, {axis[0], axis[1], axis[2]}); }
WFMM_DEVICE double length(Vec<double> a) { return sqrt(product(a, a)); }
WFMM_DEVICE double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// Numbers as words that sort as they do, above 0.
WFMM_DEVICE Word ordered(double x) {
    const Word bits = (Word)__double_as_longlong(x);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

// ---- Colors. -----------------------------------------------------------------------------------------------------------

struct Rgb { int part[3]; };

WFMM_DEVICE Rgb unpacked(unsigned color) { return {{(int)(color >> 16 & 255), (int)(color >> 8 & 255), (int)(color & 255)}}; }

WFMM_DEVICE Rgb mix(Rgb a, Rgb b, double t) {
    for (int i = 0; i < 3; i++) a.part[i] = (int)(a.part[i] + times(t, (double)(b.part[i] - a.part[i])) + 0.5);
    return a;
}

WFMM_DEVICE Rgb of_scale(const Style& style, double t) {
    const double at = clamped(t, 0.0, 1.0) * 8.0;
    const int k = at < 7.0 ? (int)at : 7;
    return mix(unpacked(style.scale[k]), unpacked(style.scale[k + 1]), at - k);
}

WFMM_DEVICE double value_of(const Layer& layer, long long k) {
    if (layer.value == 2) return layer.id ? (double)layer.id[k] : (double)(layer.first_id + k);
    if (!layer.ends) return length(row(layer.velocity, k));
    const long long a = layer.ends[2 * k] - layer.base, b = layer.ends[2 * k + 1] - layer.base;
    return 0.5 * (length(row(layer.velocity, a)) + length(row(layer.velocity, b)));
}

WFMM_DEVICE Rgb color_of(const Layer& layer, const Style& style, long long k) {
    if (layer.value == 0) return unpacked(layer.color);
    const double part = (value_of(layer, k) - layer.low) / (layer.high - layer.low);
    return of_scale(style, part * 0.0 == 0.0 ? part : 1.0);
}

// ---- Positions. -----------------------------------------------------------------------------------------------------------

// To the right, up, and the depth.
WFMM_DEVICE Vec<double> relative(const View& view, Vec<double> x) {
    const Vec<double> d = x - Vec<double>{view.eye[0], view.eye[1], view.eye[2]};
    return {along(view.right, d), along(view.up, d), along(view.forward, d)};
}

struct Spot { double x, y, depth, scale; };

WFMM_DEVICE Spot spot_of(const View& view, Vec<double> at) {
    const double scale = view.parallel ? view.focal : view.focal / at.z;
    return {view.middle[0] + times(scale, at.x), view.middle[1] - times(scale, at.y), at.z, scale};
}

// The first pixel of 0..n between two positions, and the one after the last. What is no number is 0.
WFMM_DEVICE int first_pixel(double low, long long n) { low = floor(low); return low > 0 ? low < (double)n ? (int)low : (int)n : 0; }
WFMM_DEVICE int end_pixel(double high, long long n) { high = ceil(high); return high > 0 ? high < (double)n ? (int)high : (int)n : 0; }

// Depths as numbers of the same order.
WFMM_DEVICE unsigned key(double depth) { return __float_as_uint((float)depth); }

// ---- Before anything is drawn. -----------------------------------------------------------------------------------------

// What of a layer the camera must know: bounds of its points, and the range of speeds. Block kSummed.
WFMM_KERNEL picture_extent(const __grid_constant__ Layer layer, const __grid_constant__ View view, double slope_a, double slope_b, PictureBits* found) {
    constexpr int kWarps = kSummed / 32;
    __shared__ double s_most[kWarps][8];
    double most[8];
    for (int i = 0; i < 8; i++) most[i] = -INFINITY;
    for (long long k = thread(); k < layer.n_points; k += threads()) {
        const Vec<double> at = relative(view, row(layer.position, k));
        const double a = times(slope_a, at.z), b = times(slope_b, at.z);
        const double bounds[6] = {at.x - a, -at.x - a, at.y - b, -at.y - b, at.z, -at.z};
        for (int i = 0; i < 6; i++) most[i] = fmax(most[i], bounds[i]);
    }
    if (layer.value == 1)
        for (long long k = thread(); k < layer.n; k += threads()) {
            const double speed = value_of(layer, k);
            most[6] = fmax(most[6], -speed);
            most[7] = fmax(most[7], speed);
        }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 8; i++) {
        for (int by = 16; by > 0; by /= 2) most[i] = fmax(most[i], __shfl_xor_sync(kAll, most[i], by));
        if (lane == 0) s_most[warp][i] = most[i];
    }
    __syncthreads();
    if (threadIdx.x >= 8) return;
    double all = -INFINITY;
    for (int w = 0; w < kWarps; w++) all = fmax(all, s_most[w][threadIdx.x]);
    Word* const to = threadIdx.x < 6 ? found->bounds + threadIdx.x : found->speed + (threadIdx.x - 6);
    if (all > -INFINITY) atomicMax(to, ordered(all));
}

// ---- Lines. ------------------------------------------------------------------------------------------------------------

struct Line {
    Spot a, b;
    Rgb color;
};

WFMM_DEVICE void cover(const Canvas& canvas, const View& view, const Style& style, const Line& line, int i, int j) {
    const double dx = line.b.x - line.a.x, dy = line.b.y - line.a.y, length2 = times(dx, dx) + times(dy, dy);
    const double px = i + 0.5 - line.a.x, py = j + 0.5 - line.a.y;
    const double t = length2 > 0 ? clamped((times(px, dx) + times(py, dy)) / length2, 0.0, 1.0) : 0.0;
    const double ex = px - times(t, dx), ey = py - times(t, dy);
    const double share = clamped(0.5 * style.line_width + 0.5 - sqrt(times(ex, ex) + times(ey, ey)), 0.0, 1.0);
    const unsigned coverage = share > 0 ? (unsigned)(times(255.0, share) + 0.5) : 0;
    if (coverage == 0) return;
    const double here = view.parallel ? line.a.depth + times(t, line.b.depth - line.a.depth) : 1.0 / ((1.0 - t) / line.a.depth + t / line.b.depth);
    const double part = (here - style.depths[0]) / (style.depths[1] - style.depths[0]);
    const Rgb color = mix(line.color, unpacked(style.background_color), part > 0 ? style.faded * fmin(part, 1.0) : 0.0);
    const double depth = times(here, 1.0 + times(style.edge, 1.0 - coverage / 255.0));
    const unsigned look = (unsigned)color.part[0] << 24 | (unsigned)color.part[1] << 16 | (unsigned)color.part[2] << 8 | coverage;
    atomicMax(canvas.lines + ((long long)j * canvas.width + i), ~((Word)key(depth) << 32 | look));
}

// A warp a segment; its lanes go along it.
WFMM_KERNEL picture_lines(const __grid_constant__ Layer layer, const __grid_constant__ View view, const __grid_constant__ Style style,
                          const __grid_constant__ Canvas canvas) {
    const int lane = threadIdx.x % 32;
    for (long long k = thread() / 32; k < layer.n; k += threads() / 32) {
        Vec<double> a = relative(view, row(layer.position, layer.ends[2 * k] - layer.base));
        Vec<double> b = relative(view, row(layer.position, layer.ends[2 * k + 1] - layer.base));
        if (a.z > b.z) { const Vec<double> c = a; a = b; b = c; }
        if (b.z < view.near) continue;
        if (a.z < view.near) {
            const double t = (view.near - a.z) / (b.z - a.z);
            a = {a.x + times(t, b.x - a.x), a.y + times(t, b.y - a.y), view.near};
        }
        const Line line = {spot_of(view, a), spot_of(view, b), color_of(layer, style, k)};
        const bool steep = fabs(line.b.y - line.a.y) > fabs(line.b.x - line.a.x);
        const double from = steep ? line.a.y : line.a.x, to = steep ? line.b.y : line.b.x, aside = steep ? line.a.x : line.a.y;
        const double reach = 0.5 * style.line_width + 0.5, run = to - from, rise = (steep ? line.b.x : line.b.y) - aside;
        const double slope = run == 0 ? 0.0 : rise / run, spread = times(reach, sqrt(1.0 + times(slope, slope)));
        const long long sides[2] = {steep ? canvas.height : canvas.width, steep ? canvas.width : canvas.height};
        const int end = end_pixel(fmax(from, to) + reach, sides[0]);
        for (int m = first_pixel(fmin(from, to) - reach, sides[0]) + lane; m < end; m += 32) {
            const double t = run == 0 ? 0.0 : clamped((m + 0.5 - from) / run, 0.0, 1.0), middle = aside + times(t, rise);
            const int last = end_pixel(middle + spread + 0.5, sides[1]);
            for (int n = first_pixel(middle - spread - 0.5, sides[1]); n < last; n++) cover(canvas, view, style, line, steep ? n : m, steep ? m : n);
        }
    }
}

// ---- Points. -----------------------------------------------------------------------------------------------------------

// A point as it is drawn: its pixels are `wide` by `high` from (i, j) on. Soft ones have `inverse`, of the radius squared.
struct Dot {
    double x, y, reach, weight, inverse;
    unsigned key, color;
    int i, j, wide, high;
};

WFMM_DEVICE Dot nothing() { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}; }

WFMM_DEVICE Dot dot_of(const Canvas& canvas, const Layer& layer, const View& view, const Style& style, long long k) {
    const Vec<double> at = relative(view, row(layer.position, k));
    if (!(at.z >= view.near)) return nothing();
    const Spot spot = spot_of(view, at);
    const double magnified = view.parallel ? 1.0 : view.reference / spot.depth;
    const double radius = fmin(0.5 * style.point_size * magnified, style.radius_max[0]);
    const double core = layer.core2 ? fmin(times(style.cores * sqrt(layer.core2[k]), spot.scale), style.radius_max[1]) : 0.0;
    const bool soft = core > fmax(radius, 1.0);
    Dot dot = {spot.x, spot.y, soft ? core : fmax(radius, 0.5) + 0.5, soft ? 1.0 : fmin(4.0 * times(radius, radius), 1.0), soft ? 1.0 / times(core, core) : 0.0, key(spot.depth), 0, 0, 0, 0, 0};
    dot.i = first_pixel(dot.x - dot.reach + 0.5, canvas.width);
    dot.j = first_pixel(dot.y - dot.reach + 0.5, canvas.height);
    dot.wide = max(end_pixel(dot.x + dot.reach - 0.5, canvas.width) - dot.i, 0);
    dot.high = max(end_pixel(dot.y + dot.reach - 0.5, canvas.height) - dot.j, 0);
    if (dot.wide == 0 || dot.high == 0) return nothing();
    if (canvas.sums != kOfKinds) {
        const Rgb color = color_of(layer, style, k);
        dot.color = (unsigned)color.part[0] << 16 | (unsigned)color.part[1] << 8 | (unsigned)color.part[2];
    }
    return dot;
}

WFMM_DEVICE unsigned weight_at(const Style& style, const Dot& dot, int i, int j) {
    const double dx = i + 0.5 - dot.x, dy = j + 0.5 - dot.y, r2 = times(dx, dx) + times(dy, dy);
    double share = 0;
    if (dot.inverse > 0) {
        const double q = fmax(1.0 - times(r2, dot.inverse), 0.0);
        share = times(q, q);
    } else if (r2 < times(dot.reach, dot.reach)) {
        share = clamped(dot.reach - sqrt(r2), 0.0, 1.0);
    }
    return (unsigned)(times(times(style.one, share), dot.weight) + 0.5);
}

// 1 where a line hides the point.
WFMM_DEVICE unsigned hidden(const Canvas& canvas, const Dot& dot, unsigned pixel) { return canvas.lines && (unsigned)(~canvas.lines[pixel] >> 32) < dot.key; }

// Number `channel` of a color with a weight of one.
WFMM_DEVICE unsigned part_of(unsigned color, int channel) { return channel == 3 ? 1 : color >> (16 - 8 * channel) & 255; }

// Words of a pixel that a point adds to.
template <int kSums> constexpr int kWords = kSums == kOfKinds ? 1 : kSums == kWide ? 4 : 2;
// Sums of such a word.
template <int kSums> constexpr int kParts = kSums == kPacked ? 2 : 1;

// What a point of a weight of one adds to a word.
template <int kSums> struct Share {
    unsigned low, high;
    WFMM_DEVICE Share(unsigned color, int word) {
        low = kSums == kOfKinds ? 1 : part_of(color, kParts<kSums> * word);
        high = kSums == kPacked ? part_of(color, kParts<kSums> * word + 1) : 0;
    }
    WFMM_DEVICE Word times(unsigned w) const { return kSums == kPacked ? (Word)(w * high) << 32 | w * low : w * low; }
};

// The first word of pixel 0 that a point adds to, before the lines or behind them.
template <int kSums>
WFMM_DEVICE Word* words(const Canvas& canvas, const Layer& layer, unsigned side) { return (side ? canvas.behind : canvas.front) + (kSums == kOfKinds ? layer.channel : 0); }

// Words of a pixel.
template <int kSums> WFMM_DEVICE Word channels(const Canvas& canvas) { return kSums == kOfKinds ? (Word)canvas.channels : kWords<kSums>; }

// A point of few pixels by its own lane. Leaves the sum of its weights.
template <int kSums>
WFMM_DEVICE unsigned draw_alone(const Canvas& canvas, const Layer& layer, const Style& style, const Dot& dot) {
    unsigned drawn = 0;
    for (int j = dot.j; j < dot.j + dot.high; j++)
        for (int i = dot.i; i < dot.i + dot.wide; i++) {
            const unsigned w = weight_at(style, dot, i, j), pixel = (unsigned)(j * canvas.width + i);
            if (w == 0) continue;
            Word* const to = words<kSums>(canvas, layer, hidden(canvas, dot, pixel)) + channels<kSums>(canvas) * pixel;
            for (int word = 0; word < kWords<kSums>; word++) atomicAdd(to + word, Share<kSums>(dot.color, word).times(w));
            drawn += w;
        }
    return drawn;
}

template <class T>
WFMM_DEVICE T sum(T x) {
    for (int by = 16; by > 0; by /= 2) x += __shfl_xor_sync(kAll, x, by);
    return x;
}

// Points of the lanes in `group`, which have the same pixels; the whole warp comes here. A sum of 32 weights with colors has 25 bits.
// Leaves the sum of a lane's weights.
template <int kSums>
WFMM_DEVICE unsigned draw_crowd(const Canvas& canvas, const Layer& layer, const Style& style, const Dot& dot, unsigned group) {
    const int lane = threadIdx.x % 32, leader = __ffs(group) - 1;
    const int i0 = __shfl_sync(kAll, dot.i, leader), j0 = __shfl_sync(kAll, dot.j, leader);
    const int wide = __shfl_sync(kAll, dot.wide, leader), high = __shfl_sync(kAll, dot.high, leader);
    unsigned drawn = 0;
    for (int at = 0; at < wide * high; at++) {
        const int i = i0 + at % wide, j = j0 + at / wide;
        const unsigned pixel = (unsigned)(j * canvas.width + i), mine = group >> lane & 1 ? weight_at(style, dot, i, j) : 0;
        const unsigned side_of_mine = mine ? hidden(canvas, dot, pixel) : 0;
        drawn += mine;
        for (unsigned side = 0; side < (canvas.lines ? 2 : 1); side++) {
            const unsigned w = side_of_mine == side ? mine : 0;
            if (!__any_sync(kAll, w > 0)) continue;
            // The first lanes add a word each, all words of a pixel in one operation.
            Word all = 0;
            for (int word = 0; word < kWords<kSums>; word++) {
                const Share<kSums> share(dot.color, word);
                Word each = sum(w * share.low);
                if (kSums == kPacked) each |= (Word)sum(w * share.high) << 32;
                if (lane == word) all = each;
            }
            if (lane < kWords<kSums>) atomicAdd(words<kSums>(canvas, layer, side) + channels<kSums>(canvas) * pixel + lane, all);
        }
    }
    return drawn;
}

// As `weight_at`, of a point that is soft or is not, at the square of a distance. `one` is a power of two: a product with it is exact.
template <bool kSoft>
WFMM_DEVICE unsigned weight_of(const Style& style, const Dot& dot, double r2) {
    if (kSoft) {
        const double q = 1.0 - times(r2, dot.inverse);
        return q > 0 ? (unsigned)fma(times(q, q), style.one, 0.5) : 0;
    }
    const double share = r2 < times(dot.reach, dot.reach) ? clamped(dot.reach - sqrt(r2), 0.0, 1.0) : 0.0;
    return (unsigned)(times(times(style.one, share), dot.weight) + 0.5);
}

// A point by the whole warp, whose lanes are 8, 16 or 32 columns and the rows that are left. As many lanes as a pixel has words deposit a
// pixel, so that its words go to memory together. Leaves the sum of a lane's weights.
template <int kSums, bool kSoft>
WFMM_DEVICE unsigned draw_large(const Canvas& canvas, const Layer& layer, const Style& style, const Dot dot) {
    constexpr int kTogether = kWords<kSums>, kPixels = 32 / kTogether;
    const int lane = threadIdx.x % 32, shift = dot.wide <= 8 ? 3 : dot.wide <= 16 ? 4 : 5;
    const int across = 1 << shift, down = 32 >> shift, column = lane & (across - 1), row = lane >> shift;
    const unsigned width = (unsigned)canvas.width;
    const Share<kSums> share(dot.color, lane % kTogether);
    // From the pixel of lane 0 to those that this lane deposits, a round each.
    unsigned offset[kTogether], drawn = 0;
    for (int round = 0; round < kTogether; round++) {
        const int source = kPixels * round + lane / kTogether;
        offset[round] = (source >> shift) * width + (source & (across - 1));
    }
    for (int left = column; left - column < dot.wide; left += across) {
        const double dx = dot.i + left + 0.5 - dot.x, dx2 = times(dx, dx);
        const int end = left < dot.wide ? dot.high : 0;
        unsigned corner = dot.j * width + dot.i + (left - column);
        double y = dot.j + row + 0.5;
        for (int top = row; top - row < dot.high; top += down, y += down, corner += down * width) {
            const double dy = y - dot.y;
            const unsigned w = top < end ? weight_of<kSoft>(style, dot, dx2 + times(dy, dy)) : 0;
            const unsigned mine = w | (w ? hidden(canvas, dot, corner + row * width + column) : 0) << 31;
            drawn += w;
            for (int round = 0; round < kTogether; round++) {
                const unsigned entry = kTogether == 1 ? mine : __shfl_sync(kAll, mine, kPixels * round + lane / kTogether), weight = entry & ~0u >> 1;
                Word* const to = words<kSums>(canvas, layer, entry >> 31) + lane % kTogether;
                if (weight) atomicAdd(to + channels<kSums>(canvas) * (corner + offset[round]), share.times(weight));
            }
        }
    }
    return drawn;
}

// Tracers, dust, particles: a lane a point. What several lanes have for the same pixels is added up first, and large points are drawn
// by all lanes. Of packed sums the sum of all weights is found, too.
template <int kSums>
WFMM_DEVICE void draw_points(const Canvas& canvas, const Layer& layer, const View& view, const Style& style, PictureBits* found) {
    __shared__ Dot s_dots[kSummed];
    const int lane = threadIdx.x % 32;
    const Dot* const dots = s_dots + (threadIdx.x - lane);
    Word drawn = 0;
    for (long long first = thread() - lane; first < layer.n; first += threads()) {
        const Dot dot = first + lane < layer.n ? dot_of(canvas, layer, view, style, first + lane) : nothing();
        const int pixels = dot.wide * dot.high;
        const bool small = pixels > 0 && pixels <= kAlone;
        const Word slot = (Word)(dot.j * canvas.width + dot.i) << 12 | (unsigned)(dot.wide << 6 | dot.high);
        const unsigned peers = __match_any_sync(kAll, small ? slot : ~(Word)lane);
        const bool crowded = small && __popc(peers) >= kCrowd;
        if (small && !crowded) drawn += draw_alone<kSums>(canvas, layer, style, dot);
        if (pixels > kAlone) s_dots[threadIdx.x] = dot;
        __syncwarp();
        for (unsigned left = __ballot_sync(kAll, crowded); left;) {
            const unsigned group = __shfl_sync(kAll, peers, __ffs(left) - 1);
            drawn += draw_crowd<kSums>(canvas, layer, style, dot, group);
            left &= ~group;
        }
        for (unsigned left = __ballot_sync(kAll, pixels > kAlone); left; left &= left - 1) {
            const Dot& large = dots[__ffs(left) - 1];
            drawn += large.inverse > 0 ? draw_large<kSums, true>(canvas, layer, style, large) : draw_large<kSums, false>(canvas, layer, style, large);
        }
        __syncwarp();
    }
    if (kSums != kPacked) return;
    drawn = sum(drawn);
    if (lane == 0 && drawn > 0) atomicAdd(&found->drawn, drawn);
}

#define DRAW_POINTS(name, sums) \
    WFMM_KERNEL __launch_bounds__(kSummed, 4) picture_points_##name(const __grid_constant__ Layer layer, const __grid_constant__ View view, \
                                                                   const __grid_constant__ Style style, const __grid_constant__ Canvas canvas, PictureBits* found) { \
        draw_points<sums>(canvas, layer, view, style, found); \
    }
DRAW_POINTS(kinds, kOfKinds)
DRAW_POINTS(wide, kWide)
DRAW_POINTS(packed, kPacked)

// ---- The picture. ------------------------------------------------------------------------------------------------------

struct Haze { Word weight, sums[3]; };

WFMM_DEVICE Haze haze_of(const Canvas& canvas, const Style& style, const Word* of, long long pixel) {
    Haze haze = {0, {0, 0, 0}};
    if (!of) return haze;
    const Word* const at = of + canvas.channels * pixel;
    if (canvas.sums == kWide) return {at[3], {at[0], at[1], at[2]}};
    if (canvas.sums == kPacked) return {at[1] >> 32, {(unsigned)at[0], at[0] >> 32, (unsigned)at[1]}};
    for (int c = 0; c < canvas.channels; c++) {
        const Rgb color = unpacked(style.kinds[c]);
        haze.weight += at[c];
        for (int i = 0; i < 3; i++) haze.sums[i] += at[c] * color.part[i];
    }
    return haze;
}

// The weight of all points, how many pixels have some, and the largest in front of a line or behind it. Block kSummed.
WFMM_KERNEL picture_weight(const __grid_constant__ Style style, const __grid_constant__ Canvas canvas, PictureBits* found) {
    __shared__ Word s_sum[kSummed], s_covered[kSummed], s_most[kSummed];
    Word sum = 0, covered = 0, most = 0;
    for (long long pixel = thread(); pixel < canvas.width * canvas.height; pixel += threads()) {
        const Word front = haze_of(canvas, style, canvas.front, pixel).weight, behind = haze_of(canvas, style, canvas.behind, pixel).weight;
        sum += front + behind;
        covered += front + behind > 0;
        most = max(most, max(front, behind));
    }
    s_sum[threadIdx.x] = sum;
    s_covered[threadIdx.x] = covered;
    s_most[threadIdx.x] = most;
    __syncthreads();
    for (int half = kSummed / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            s_sum[threadIdx.x] += s_sum[threadIdx.x + half];
            s_covered[threadIdx.x] += s_covered[threadIdx.x + half];
            s_most[threadIdx.x] = max(s_most[threadIdx.x], s_most[threadIdx.x + half]);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0 && s_covered[0] > 0) {
        atomicAdd(&found->weight, s_sum[0]);
        atomicAdd(&found->covered, s_covered[0]);
        atomicMax(&found->most, s_most[0]);
    }
}

// A color with its alpha, the color multiplied by it.
struct Paint { double color[3], alpha; };

WFMM_DEVICE Paint paint(const double* color, double alpha) { return {{times(color[0], alpha), times(color[1], alpha), times(color[2], alpha)}, alpha}; }

WFMM_DEVICE Paint under(const Paint& below, const Paint& over) {
    const double rest = 1.0 - over.alpha;
    Paint all;
    for (int i = 0; i < 3; i++) all.color[i] = over.color[i] + times(rest, below.color[i]);
    all.alpha = over.alpha + times(rest, below.alpha);
    return all;
}

// Points of a pixel over what is behind them.
WFMM_DEVICE Paint with(const Paint& below, const Haze& haze, const Style& style, double opacity) {
    if (haze.weight == 0) return below;
    const double depth = times(opacity, (double)haze.weight) / style.one, covered = -expm1(-depth);
    double color[3];
    if (style.density) {
        const Rgb scaled = of_scale(style, covered);
        for (int i = 0; i < 3; i++) color[i] = scaled.part[i] / 255.0;
    } else {
        for (int i = 0; i < 3; i++) color[i] = (double)haze.sums[i] / times(255.0, (double)haze.weight);
    }
    if (!style.additive) return under(below, paint(color, covered));
    Paint light = paint(color, depth);
    for (int i = 0; i < 3; i++) light.color[i] = fmin(below.color[i] + light.color[i], 1.0);
    light.alpha = fmax(below.alpha, fmin(depth, 1.0));
    return light;
}

// Where the line of sight through a position in the picture comes down to the ground: whether, at which depth, where.
WFMM_DEVICE bool meets(const View& view, const Style& style, double x, double y, double& depth, double* here) {
    const double a = (x - view.middle[0]) / view.focal, b = (view.middle[1] - y) / view.focal;
    double at[3], way[3];
    for (int i = 0; i < 3; i++) {
        const double aside = times(a, view.right[i]) + times(b, view.up[i]);
        at[i] = view.parallel ? view.eye[i] + aside : view.eye[i];
        way[i] = view.parallel ? view.forward[i] : view.forward[i] + aside;
    }
    const int axis = style.ground_axis;
    depth = (style.ground - at[axis]) / way[axis];
    for (int i = 0; i < 3; i++) here[i] = at[i] + times(depth, way[i]);
    return depth > 0 && at[axis] > style.ground;
}

// What is behind everything.
WFMM_DEVICE Paint behind_all(const View& view, const Style& style, double x, double y) {
    const Paint background = paint(style.background, style.background[3]);
    double depth, other, here[3], there[3];
    if (style.ground_axis < 0 || !meets(view, style, x, y, depth, here)) return background;
    const double faded = view.parallel ? 1.0 : clamped(view.reference / depth, 0.0, 1.0);
    double shade = 0.10;
    for (int side = 0; side < 2; side++) {
        if (!meets(view, style, x + (1 - side), y + side, other, there)) continue;
        bool crosses = false;
        for (int i = 0; i < 3; i++) crosses |= i != style.ground_axis && floor(here[i] / style.grid) != floor(there[i] / style.grid);
        if (crosses) shade = 0.10 + times(0.25 * faded, faded);
    }
    const double sand[3] = {0.85, 0.80, 0.72};
    return under(background, paint(sand, times(shade, faded)));
}

WFMM_DEVICE unsigned byte_of(double x) { return (unsigned)(times(255.0, clamped(x, 0.0, 1.0)) + 0.5); }

// Red, green, blue, alpha of each pixel, a byte each. With `found` the opacity is of it.
WFMM_KERNEL picture_develop(const __grid_constant__ View view, const __grid_constant__ Style style, const __grid_constant__ Canvas canvas, const PictureBits* found,
                            unsigned* picture) {
    double opacity = style.opacity;
    if (!(opacity > 0)) opacity = found->covered == 0 ? 1.0 : style.mean_depth * style.one * (double)found->covered / (double)found->weight;
    for (long long pixel = thread(); pixel < canvas.width * canvas.height; pixel += threads()) {
        Paint all = behind_all(view, style, (double)(pixel % canvas.width) + 0.5, (double)(pixel / canvas.width) + 0.5);
        all = with(all, haze_of(canvas, style, canvas.behind, pixel), style, opacity);
        const Word entry = canvas.lines ? ~canvas.lines[pixel] : ~0ull;
        if (entry != ~0ull) {
            const double color[3] = {(entry >> 24 & 255) / 255.0, (entry >> 16 & 255) / 255.0, (entry >> 8 & 255) / 255.0};
            all = under(all, paint(color, (entry & 255) / 255.0));
        }
        all = with(all, haze_of(canvas, style, canvas.front, pixel), style, opacity);
        unsigned bytes = byte_of(all.alpha) << 24;
        for (int i = 0; i < 3; i++) bytes |= byte_of(all.alpha > 0 ? all.color[i] / all.alpha : 0.0) << 8 * i;
        picture[pixel] = bytes;
    }
}
