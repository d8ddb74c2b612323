// Multipoles of the source leaves, and what the near field has to know of the cores below every cell. Segments are sampled at
// Gauss-Legendre nodes, exact for the degrees kept.
//
// A warp has a leaf, a block of four where leaves are few. Its lanes are groups; a group takes a source, and its lane j runs down the columns
// m = j and m = (order or order - 1) - j of the harmonics, one after the other, so that all lanes have the same way and the
// coefficients' sums stay in their registers. At the end the groups' sums are added in shared memory, in a fixed order.
#include "fmm_harmonics.cuh"
using namespace fmm;

constexpr int kWarps = 4, kTicket = 3;

template <class T> struct alignas(2 * sizeof(T)) Pair { T c, s; };

// How the lanes of a warp are used at order P.
template <int P> struct Lanes {
    static constexpr int group = (P + 1) / 2, groups = 32 / group, sources = 32 / groups * groups; // sources of one round
    static constexpr int both = P & 1 ? P : P - 1, way = P | 1;                                         // both columns' m; their entries
};

// Tables of order P: rise and scale of fmm_harmonics.cuh by a lane's entries and by coefficient; a coefficient's slot among the sums:
// entry << 8 | lane of its group.
template <class T, int P> struct Tables {
    typedef Lanes<P> L;
    T rise[L::way][L::group], scale[P * P];
    uint16_t slot[P * P];
    constexpr Tables() : rise(), scale(), slot() {
        constexpr Harmonics harmonics;
        for (int p = 0; p < L::way; p++)
            for (int j = 0; j < L::group; j++) {
                const int m = p < P - j ? j : L::both - j, l = p < P - j ? j + p : m + p - (P - j);
                rise[p][j] = l < P ? (T)harmonics.rise[triangle(l, m)] : 0;
            }
        for (int l = 0; l < P; l++)
            for (int k = 0; k < 2 * l + 1; k++) {
                const int m = (k + 1) / 2, sine = k && !(k & 1), j = m < L::group ? m : L::both - m, entry = m < L::group ? l - m : P - j + l - m;
                slot[l * l + k] = (uint16_t)((2 * entry + sine) << 8 | j);
                scale[l * l + k] = (T)harmonics.scale[triangle(l, m)];
            }
    }
};
template <class T, int P> static __device__ const Tables<T, P> kTables{};

// Components whose sums have room beside one another.
template <class T, int P, int NC> constexpr int kAtOnce = kWarps * NC * 2 * Lanes<P>::way * 33 * (int)sizeof(T) <= 44 * 1024 ? NC : 1;

// Sources of a round: R_mm, positions, strengths.
template <class T, int P> struct Sources {
    Pair<T> start[P][33]; // [m][source]
    T z[32], r2[32], q[3][32];
};
// Those, then the sums of some components.
template <class T, int P, int NC> struct Round {
    union {
        Sources<T, P> of;
        T sum[kAtOnce<T, P, NC>][2 * Lanes<P>::way][33]; // [][entry][lane]
    };
    T centre[3], inv, low[3]; // low: of the centre in f32; in f64 the origin of the points
    u32 cell, begin; // the leaf, its first source
};

template <class T, int P, int NC> struct Shared {
    Round<T, P, NC> round[kWarps];
    T rise[Lanes<P>::way][Lanes<P>::group];
    u32 next;
};

// One source of a leaf, relative to its centre, into the round's arrays.
template <class T, int P, int NC> __device__ void take(const Fmm &f, Round<T, P, NC> &r, u32 k, bool is, u32 per) {
    const int lane = threadIdx.x & 31;
    T x = 0, y = 0, z = 0, q[3] = {0, 0, 0};
    if (is) {
        const u32 i = r.begin + (per == 1 ? k : k / per);
        const Vec4<T> p = ((const Vec4<T> *)f.tree[0].point)[i];
        if (sizeof(T) == 8) { x = (p.x - r.low[0]) - r.centre[0]; y = (p.y - r.low[1]) - r.centre[1]; z = (p.z - r.low[2]) - r.centre[2]; }
        else {
            const Vec4<T> low = SortedPoint<T>::low(f.tree[0])[i];
            x = (p.x - r.centre[0]) + (low.x - r.low[0]); y = (p.y - r.centre[1]) + (low.y - r.low[1]); z = (p.z - r.centre[2]) + (low.z - r.low[2]);
        }
        if (NC == 1) q[0] = p.w;
        else {
            const Vec4<T> v = ((const Vec4<T> *)f.strength)[i];
            q[0] = v.x; q[1] = v.y; q[2] = v.z;
            if (f.kind == kSegment) {
                const T at = (T)f.gauss[k % per], w = (T)f.gauss[16 + k % per] * v.w;
                if (sizeof(T) == 8) { // both ends
                    q[0] = T(0.5) * (v.x - p.x); q[1] = T(0.5) * (v.y - p.y); q[2] = T(0.5) * (v.z - p.z);
                    x += q[0]; y += q[1]; z += q[2];
                }
                x += at * q[0]; y += at * q[1]; z += at * q[2];
                q[0] *= w; q[1] *= w; q[2] *= w;
            }
        }
        x *= r.inv; y *= r.inv; z *= r.inv;
    }
    r.of.z[lane] = z; r.of.r2[lane] = x * x + y * y + z * z;
#pragma unroll
    for (int d = 0; d < NC; d++) r.of.q[d][lane] = q[d];
    Pair<T> a{1, 0};
#pragma unroll
    for (int m = 0; m < P; m++) {
        r.of.start[m][lane] = a;
        const T k = (T)(0.5 / (m + 1)), u = k * x, v = k * y;
        a = {u * a.c - v * a.s, u * a.s + v * a.c};
    }
}

// Adds the `count` sources of a round to a lane's sums.
template <class T, int P, int NC> __device__ void add(const Shared<T, P, NC> &s, const Round<T, P, NC> &r, int count, T (*sum)[2 * Lanes<P>::way]) {
    typedef Lanes<P> L;
    const int lane = thread() & 31, j = lane % L::group, g = min(lane / L::group, L::groups - 1);
    for (int i = g; i - g < count; i += L::groups) {
        read_later(); // all of `rise` would not fit the registers
        const Pair<T> first = r.of.start[j][i], second = r.of.start[min(L::both - j, P - 1)][i];
        const T z = r.of.z[i], r2 = r.of.r2[i];
        T q[NC];
#pragma unroll
        for (int d = 0; d < NC; d++) q[d] = r.of.q[d][i];
        Pair<T> before{0, 0}, now = first;
#pragma unroll
        for (int p = 0; p < L::way; p++) {
            if (p > P - L::group && p <= P && p == P - j) { before = {0, 0}; now = second; }
#pragma unroll
            for (int d = 0; d < NC; d++) {
                sum[d][2 * p] = fma(q[d], now.c, sum[d][2 * p]);
                sum[d][2 * p + 1] = fma(q[d], now.s, sum[d][2 * p + 1]);
            }
            const T u = s.rise[p][j] * z;
            const Pair<T> next{fma(u, now.c, -(r2 * before.c)), fma(u, now.s, -(r2 * before.s))};
            before = now; now = next;
        }
    }
}

// Some components of an expansion: the sums of all groups of MEMBERS warps.
template <class T, int P, int NC, int MEMBERS> __device__ void put(const Round<T, P, NC> *rounds, T *out, int stride) {
    const int worker = thread() % (32 * MEMBERS);
    typedef Lanes<P> L;
    constexpr int some = kAtOnce<T, P, NC>;
    const Tables<T, P> &tables = kTables<T, P>;
#pragma unroll 2
    for (int k = worker; k < some * P * P; k += 32 * MEMBERS) {
        const int d = some == 1 ? 0 : k / (P * P), i = k - d * (P * P), slot = tables.slot[i];
        const T scale = tables.scale[i];
        T v = 0;
#pragma unroll
        for (int w = 0; w < MEMBERS; w++)
#pragma unroll
            for (int g = 0; g < L::groups; g++) v += rounds[w].sum[d][slot >> 8][g * L::group + (slot & 255)];
        out[d * stride + i] = v * scale;
    }
    for (int d = 0; d < some; d++) for (int k = P * P + worker; k < stride; k += 32 * MEMBERS) out[d * stride + k] = 0;
}

// The largest core (or product) of every cell above: a maximum does not depend on the order. Whoever put a larger one there goes on upwards.
__device__ inline void raise_core(const Fmm &f, double *largest, u32 cell, double core) {
    const u64 bits = (u64)__double_as_longlong(core);
    for (; cell != kNone; cell = f.tree[0].parent[cell])
        if (atomicMax((u64 *)largest + cell, bits) >= bits) return;
}

// Of the sources of a leaf, by `members` warps of which this is one: the largest core; of segments the largest product of circulation,
// length and, where velocities alone are wanted, core; the largest velocity at `core_range` core radii from one source, from a segment that
// of an infinite line of its circulation, since the fields of a filament's segments add up.
template <class T> __device__ void note_cores(const Fmm &f, u32 cell, u32 begin, u32 end, int member, int members) {
    double core = 0, product = 0, strongest = 0; // strengths are not scaled, and their squares need the range of double
    for (u32 i = begin + member * 32 + (threadIdx.x & 31); i < end; i += members * 32) {
        const Vec4<T> p = ((const Vec4<T> *)f.tree[0].point)[i], q = ((const Vec4<T> *)f.strength)[i];
        if (!(p.w > 0)) continue;
        const bool two_ends = sizeof(T) == 8 && f.kind == kSegment; // of segments the half vector, in f64 both ends
        const double x = two_ends ? 0.5 * (q.x - p.x) : q.x, y = two_ends ? 0.5 * (q.y - p.y) : q.y, z = two_ends ? 0.5 * (q.z - p.z) : q.z;
        const double length = sqrt(fma(x, x, fma(y, y, z * z))), range = f.core_range * p.w, circulation = 2 * fabs((double)q.w);
        core = max(core, (double)p.w);
        if (f.kind == kSegment) product = max(product, circulation * (f.cull > 0 ? (double)p.w : 1.0) * length);
        if (range > 0 && length > 0) strongest = max(strongest, f.kind == kSegment ? circulation / range : length / (range * range));
    }
    for (int d = 16; d; d >>= 1) {
        core = max(core, __shfl_xor_sync(~0u, core, d));
        product = max(product, __shfl_xor_sync(~0u, product, d));
        strongest = max(strongest, __shfl_xor_sync(~0u, strongest, d));
    }
    if (threadIdx.x & 31) return;
    if (core > 0) raise_core(f, f.cell_core, cell, core);
    if (product > 0) raise_core(f, f.cell_core + f.tree[0].cell_capacity, cell, product);
    const u64 bits = (u64)__double_as_longlong(strongest);
    if (bits > f.state->strongest) atomicMax(&f.state->strongest, bits);
}

// What is known of a cell; asked for before it is needed.
struct Cell {
    u32 info, begin, end;
    u64 key;
    __device__ void load(const Tree &t, u32 c) { info = t.info[c]; begin = t.begin[c]; end = t.end[c]; key = t.cell_key[c]; }
};

template <class T, int P, int NC> __device__ void p2m(const Fmm &f) {
    typedef Lanes<P> L;
    const Tree &t = f.tree[0];
    u32 cells = f.state->level_begin[0][kLevels];
    Root root = f.state->root;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, stride = f.stride;
    __shared__ Shared<T, P, NC> s;
    // Few leaves: all warps of a block on one of them.
    const bool team = cells <= 4 * gridDim.x;
    const int members = team ? kWarps : 1, member = team ? warp : 0;
    // The first leaf is a worker's own, others are taken by ticket.
    const u32 workers = team ? gridDim.x : kWarps * gridDim.x;
    u32 c = team ? blockIdx.x : kWarps * blockIdx.x + warp;
    if (team && c >= cells) return;
    constexpr bool kEarly = sizeof(T) == 4 || P < 14; // as far as registers go
    Cell cell{};
    if (kEarly && c < cells) cell.load(t, c);
    Round<T, P, NC> &own = s.round[warp];
    for (int k = threadIdx.x; k < L::way * L::group; k += 32 * kWarps) (&s.rise[0][0])[k] = (&kTables<T, P>.rise[0][0])[k];
    __syncthreads();
    const u32 per = f.kind == kSegment ? f.gauss_points : 1;
    while (c < cells) {
        if (!kEarly) { cell.load(t, c); root = f.state->root; }
        if (info_leaf(cell.info)) {
            const u32 total = (cell.end - cell.begin) * per;
            T centre[3], low[3];
            const T inv = 1 / centre_of_cell(root, info_level(cell.info), cell.key, centre, low);
            if (sizeof(T) == 8) for (int k = 0; k < 3; k++) low[k] = SortedPoint<T>::origin(root, k);
            if (lane < 3) { own.centre[lane] = lane == 0 ? centre[0] : lane == 1 ? centre[1] : centre[2]; own.low[lane] = lane == 0 ? low[0] : lane == 1 ? low[1] : low[2]; }
            if (lane == 3) own.inv = inv;
            if (lane == 4) { own.cell = c; own.begin = cell.begin; }
            const u32 share = (total + members - 1) / members, chunk = min((share + L::groups - 1) / L::groups * L::groups, (u32)L::sources);
            if (NC == 3 && f.regularization) note_cores<T>(f, c, cell.begin, cell.end, member, members);
            T sum[NC][2 * L::way];
#pragma unroll
            for (int d = 0; d < NC; d++)
#pragma unroll
                for (int k = 0; k < 2 * L::way; k++) sum[d][k] = 0;
            for (u32 base = member * chunk; base < total; base += members * chunk) {
                const u32 k = base + lane, count = min(chunk, total - base);
                __syncwarp();
                take<T, P, NC>(f, own, k, lane < count, per);
                __syncwarp();
                add<T, P, NC>(s, own, count, sum);
            }
            if (!kEarly) {
                __syncwarp(); // where the warp has no round
                c = own.cell; cells = f.state->level_begin[0][kLevels];
            }
            T *out = (T *)f.multipole + (size_t)c * NC * stride;
            constexpr int some = kAtOnce<T, P, NC>;
#pragma unroll
            for (int first = 0; first < NC; first += some) {
                if (team) __syncthreads(); else __syncwarp();
#pragma unroll
                for (int d = 0; d < some; d++)
#pragma unroll
                    for (int k = 0; k < 2 * L::way; k++) own.sum[d][k][lane] = sum[first + d][k];
                if (team) __syncthreads(); else __syncwarp();
                if (team) put<T, P, NC, kWarps>(s.round, out + first * stride, stride);
                else put<T, P, NC, 1>(&own, out + first * stride, stride);
            }
        } else if (c == 0) { // Nobody reads the root's expansion: M2L takes it for the sources that are not there.
#pragma unroll 1
            for (int w = member * 32 + lane; w < NC * stride; w += 32 * members) ((T *)f.multipole)[w] = 0;
        }
        if (cells <= workers) return;
        u32 next = cells;
        if (team ? threadIdx.x == 0 : lane == 0) next = workers + atomicAdd(&f.state->work_ticket[kTicket], 1u);
        if (team) {
            if (threadIdx.x == 0) s.next = next;
            __syncthreads();
            c = s.next;
            __syncthreads();
        } else {
            __syncwarp();
            c = __shfl_sync(~0u, next, 0);
        }
        if (kEarly && c < cells) cell.load(t, c);
    }
}

// Launch: 128 threads, any number of blocks.
#define P2M(T, name, P) \
    extern "C" __global__ void __launch_bounds__(128, 2) fmm_p2m_charge_##name##_##P(const __grid_constant__ Fmm f) { p2m<T, P, 1>(f); } \
    extern "C" __global__ void __launch_bounds__(128, 2) fmm_p2m_vortex_##name##_##P(const __grid_constant__ Fmm f) { p2m<T, P, 3>(f); }
#define BOTH(P) P2M(float, f32, P) P2M(double, f64, P)
BOTH(2) BOTH(3) BOTH(4) BOTH(5) BOTH(6) BOTH(7) BOTH(8) BOTH(9) BOTH(10) BOTH(11) BOTH(12) BOTH(13) BOTH(14) BOTH(15) BOTH(16)
