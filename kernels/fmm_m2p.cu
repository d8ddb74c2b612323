// Multipoles to fields at the targets (M2P): the far field of the treecode, in place of M2L, L2L and L2P.
//
// Derivatives of a multipole expansion are multipole expansions of one degree more. fmm_m2p_fields rounds the potentials of every source
// cell into expansions of the fields (the velocity and its gradient; or a potential and its gradient). In fmm_m2p a block has a target
// leaf and sums those of all cells that are far from the leaf or from a cell above it, but near its parent. fmm_m2p_write adds the near
// field and writes where the caller wants it.
#include "fmm_check.cuh"
#include "fmm_fields.cuh"
#include "fmm_orbits.cuh"
using namespace fmm;

constexpr int kThreads = 128, kWarps = 4, kTicket = 0; // the ticket of M2L, which is not launched
constexpr int kFarLevels = kLevels - 2;                // levels that have far cells: from 2 on
constexpr int kFarCells = 231, kList = 1024;           // offsets of far cells at one level; entries of a list
constexpr int kDistances = 32;                         // squared distances in cell widths: 5 to 27

// Offsets of far cells from a cell of octant 0, those at a lesser distance first: three times four bits, 8 for zero.
struct Offsets {
    uint16_t packed[kFarCells];
    constexpr Offsets() : packed() {
        int count = 0;
        for (int distance = 5; distance < kDistances; distance++)
            for (int z = -4; z <= 5; z++)
                for (int y = -4; y <= 5; y++)
                    for (int x = -4; x <= 5; x++) {
                        if (x * x + y * y + z * z != distance) continue;
                        // The parents are near.
                        const int px = x >> 1, py = y >> 1, pz = z >> 1;
                        if (px * px + py * py + pz * pz <= 4) packed[count++] = (uint16_t)(x + 8 | (y + 8) << 4 | (z + 8) << 8);
                    }
    }
};
static __device__ const Offsets kOffsets{};

template <class T, int MAIN, int REST> struct M2p {
    static constexpr int F = MAIN + REST;
    typedef Coefficients<T, F> Pair;

    // A warp a cell, from level 2 on: above nothing is far.
    static __device__ void fields(const Fmm &f, Pair *to, int n) {
        __shared__ unsigned char degree[column(kMostDegrees, kMostDegrees)], of_column[column(kMostDegrees, kMostDegrees)];
        const int pairs = column(n, n), lane = threadIdx.x & 31;
        for (int m = threadIdx.x; m < n; m += kThreads)
            for (int l = m; l < n; l++) { degree[column(n, m) + l - m] = (unsigned char)l; of_column[column(n, m) + l - m] = (unsigned char)m; }
        __syncthreads();
        const Tree &t = f.tree[0];
        if (f.state->flags & (kCellsOverflow | kDepthOverflow | kOutside)) return;
        const u32 cells = f.state->level_begin[0][kLevels];
        const Root root = f.state->root;
        for (u32 c = f.state->level_begin[0][2] + blockIdx.x * kWarps + threadIdx.x / 32; c < cells; c += gridDim.x * kWarps) {
            const T inv = (T)((double)(1u << info_level(t.info[c])) / root.side);
            const T *m = (const T *)f.multipole + (size_t)c * MAIN * f.stride;
            for (int q = lane; q < pairs; q += 32) to[(size_t)c * pairs + q] = fields_of<T, MAIN, REST>(m, f.stride, f.order, degree[q], of_column[q], inv);
        }
    }

    // ---- Far cells of a leaf. ------------------------------------------------------------------------------------------------

    // Of a level: where the leaf lies in its cell there, in that cell's sides from the centre; the cell's parent and octant.
    struct Level {
        T scale, shift[3];
        u32 parent;
        int octant;
    };
    // A far cell: offset as in `Offsets`, level << 12, squared distance << 17.
    struct Entry { u32 cell, code; };
    struct Leaf {
        u32 cell, begin, end;
        u64 key;
        int level;
        T centre[3], low[3], inv; // low: of the centre in f32; in f64 the origin of the points
    };
    struct Shared {
        Leaf leaf;
        Level level[kFarLevels];
        u32 child[kFarLevels * kBeside], mask[kFarLevels * kBeside]; // children of the cells beside the parents
        Entry list[kList];
        T beta[column(kMostDegrees, kMostDegrees)], sum[F][kThreads];
        u32 count[kWarps], next;
        int degrees[kDistances];
    };
    // Children of the cells beside the parents of the leaf and of those above it.
    static __device__ void look_around(const Fmm &f, Shared &s, int levels) {
        const Tree &t = f.tree[1], &from = f.tree[0];
        const Leaf &leaf = s.leaf;
        const int k = (int)threadIdx.x - 32;
        if (threadIdx.x == 0) {
            u32 p = leaf.cell;
            for (int l = levels - 1; l >= 0; l--) { p = t.parent[p]; s.level[l].parent = p; }
        }
        if (k >= 0 && k < levels) {
            const int below = levels - 1 - k; // levels from the leaf up to this one
            int at[3];
            unmorton(leaf.key, at);
            Level &to = s.level[k];
            to.octant = (int)(leaf.key >> 3 * below) & 7;
            to.scale = (T)(1 / (double)(1u << below));
            for (int d = 0; d < 3; d++) to.shift[d] = (T)(((at[d] & (1 << below) - 1) + 0.5) / (double)(1u << below) - 0.5);
        }
        __syncthreads();
        for (int w = threadIdx.x; w < levels * kBeside; w += kThreads) {
            const u32 beside = f.near[(size_t)s.level[w / kBeside].parent * kBeside + w % kBeside];
            s.mask[w] = beside == kNone ? 0 : info_children(from.info[beside]);
            s.child[w] = s.mask[w] ? from.child[beside] : 0;
        }
        __syncthreads();
    }

    // Candidate k of the far cells: all levels at one offset follow one another.
    static __device__ bool far_cell(const Shared &s, int k, int levels, Entry *to) {
        const int offset = k / levels, l = k - offset * levels, octant = s.level[l].octant;
        const u32 packed = kOffsets.packed[offset];
        int p[3], child = 0, distance = 0;
        u32 code = 0;
        for (int d = 0; d < 3; d++) {
            const int bit = octant >> d & 1, of_first = (int)(packed >> 4 * d & 15) - 8, v = bit ? -of_first : of_first;
            p[d] = (bit + v) >> 1; child |= (bit + v & 1) << d;
            distance += v * v; code |= (u32)(v + 8) << 4 * d;
        }
        const int at = l * kBeside + beside_at(p);
        const u32 mask = s.mask[at];
        *to = {s.child[at] + __popc(mask & (1u << child) - 1), code | (u32)l << 12 | (u32)distance << 17};
        return mask >> child & 1;
    }

    // ---- Their sums. ---------------------------------------------------------------------------------------------------------

    // Adds the first `degrees` of n degrees of a cell's expansions at K positions relative to its centre, in its sides.
    template <int K> static __device__ __forceinline__ void evaluate(const Pair *e, const T *beta, int n, int degrees, const T (*x)[3], T (*out)[F]) {
        T y[K][3], r2[K], dc[K], ds[K]; // the inverted position and its squared length; column m begins with Re and Im of (x + iy)^m/r
#pragma unroll
        for (int k = 0; k < K; k++) {
            const T inv = 1 / sqrt(x[k][0] * x[k][0] + x[k][1] * x[k][1] + x[k][2] * x[k][2]);
            r2[k] = inv * inv;
            for (int d = 0; d < 3; d++) y[k][d] = x[k][d] * r2[k];
            dc[k] = inv; ds[k] = 0;
        }
#pragma unroll 1
        for (int m = 0; m < degrees; m++) {
            T pc[K], ps[K], qc[K], qs[K];
#pragma unroll
            for (int k = 0; k < K; k++) { pc[k] = ps[k] = 0; qc[k] = dc[k]; qs[k] = ds[k]; }
#pragma unroll 2
            for (int l = 0; l < degrees - m; l++) {
                const Pair a = e[l];
                const T b = beta[l];
#pragma unroll
                for (int k = 0; k < K; k++) {
#pragma unroll
                    for (int i = 0; i < F; i++) out[k][i] = fma(a.s[i], qs[k], fma(a.c[i], qc[k], out[k][i]));
                    const T w = b * r2[k], nc = fma(y[k][2], qc[k], -(w * pc[k])), ns = fma(y[k][2], qs[k], -(w * ps[k]));
                    pc[k] = qc[k]; ps[k] = qs[k]; qc[k] = nc; qs[k] = ns;
                }
            }
            e += n - m; beta += n - m;
#pragma unroll
            for (int k = 0; k < K; k++) {
                const T next = y[k][0] * dc[k] - y[k][1] * ds[k];
                ds[k] = y[k][0] * ds[k] + y[k][1] * dc[k]; dc[k] = next;
            }
        }
    }

    // Where target i is, in the leaf's sides from its centre.
    static __device__ void locate(const Fmm &f, const Leaf &leaf, u32 i, T *to) {
        const Vec4<T> p = ((const Vec4<T> *)f.tree[1].point)[i];
        const T x[3] = {p.x, p.y, p.z};
        if (sizeof(T) == 8) { for (int d = 0; d < 3; d++) to[d] = ((x[d] - leaf.low[d]) - leaf.centre[d]) * leaf.inv; return; }
        const Vec4<T> q = SortedPoint<T>::low(f.tree[1])[i];
        const T low[3] = {q.x, q.y, q.z};
        for (int d = 0; d < 3; d++) to[d] = ((x[d] - leaf.centre[d]) + (low[d] - leaf.low[d])) * leaf.inv;
    }

    // The list's cells at some of the leaf's targets. A thread has K targets; threads that have the same ones share the list.
    template <int K> static __device__ void sum(const Fmm &f, Shared &s, const Pair *fields, int n, int count, u32 begin, u32 end, bool first) {
        const int wide = ((int)(end - begin) + K - 1) / K, groups = kThreads / wide, group = (int)threadIdx.x / wide, at = (int)threadIdx.x - group * wide;
        const int extra = n - (int)f.order, pairs = column(n, n);
        T x[K][3], out[K][F];
#pragma unroll
        for (int k = 0; k < K; k++) {
            locate(f, s.leaf, min(begin + at + k * wide, end - 1), x[k]);
            for (int i = 0; i < F; i++) out[k][i] = 0;
        }
        if (group < groups) {
#pragma unroll 1
            for (int j = group; j < count; j += groups) {
                const Entry entry = s.list[j];
                const Level &level = s.level[entry.code >> 12 & 31];
                T from[K][3];
#pragma unroll
                for (int k = 0; k < K; k++)
                    for (int d = 0; d < 3; d++) from[k][d] = fma(x[k][d], level.scale, level.shift[d]) - (T)((int)(entry.code >> 4 * d & 15) - 8);
                evaluate<K>(fields + (size_t)entry.cell * pairs, s.beta, n, s.degrees[entry.code >> 17] + extra, from, out);
            }
        }
        // Sums of the groups, by halves.
        int half = 1;
        while (2 * half < groups) half *= 2;
#pragma unroll
        for (int k = 0; k < K; k++) {
#pragma unroll
            for (int i = 0; i < F; i++) s.sum[i][threadIdx.x] = out[k][i];
            __syncthreads();
#pragma unroll 1
            for (int step = half; step; step /= 2) {
                if (group < step && group + step < groups)
                    for (int i = 0; i < F; i++) s.sum[i][threadIdx.x] += s.sum[i][threadIdx.x + step * wide];
                __syncthreads();
            }
            const u32 i = begin + at + k * wide;
            if (group == 0 && i < end) {
                T *row = (T *)f.local + (size_t)i * F;
                for (int d = 0; d < F; d++) row[d] = first ? s.sum[d][threadIdx.x] : row[d] + s.sum[d][threadIdx.x];
            }
            __syncthreads();
        }
    }

    // All targets of the leaf, in as many parts as leave the fewest threads idle.
    template <int K> static __device__ void sum_all(const Fmm &f, Shared &s, const Pair *fields, int n, int count, bool first) {
        const Leaf &leaf = s.leaf;
        const int targets = (int)(leaf.end - leaf.begin), least = (targets + kThreads * K - 1) / (kThreads * K);
        int parts = least, fewest = 0;
        for (int p = least; p < least + 3; p++) {
            const int wide = ((targets + p - 1) / p + K - 1) / K, groups = kThreads / wide, rounds = p * ((count + groups - 1) / groups);
            if (p == least || rounds < fewest) { parts = p; fewest = rounds; }
        }
        const u32 size = (targets + parts - 1) / parts;
        for (u32 begin = leaf.begin; begin < leaf.end; begin += size) sum<K>(f, s, fields, n, count, begin, min(begin + size, leaf.end), first);
    }

    static __device__ void sum_leaf(const Fmm &f, Shared &s, const Pair *fields, int n) {
        constexpr int kTwo = F > 4 ? 1 : 2; // as far as registers go
        const Leaf &leaf = s.leaf;
        const int levels = max(leaf.level - 1, 0), candidates = kFarCells * levels, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        if (levels) look_around(f, s, levels);
        int count = 0;
        bool first = true;
        for (int base = 0; base < candidates || first; base += kThreads) {
            const int k = base + (int)threadIdx.x;
            Entry entry{};
            const bool is = k < candidates && far_cell(s, k, levels, &entry);
            const u32 found = __ballot_sync(~0u, is);
            if (lane == 0) s.count[warp] = __popc(found);
            __syncthreads();
            int before = count + __popc(found & (1u << lane) - 1);
            for (int w = 0; w < kWarps; w++) { if (w < warp) before += s.count[w]; count += s.count[w]; }
            if (is) s.list[before] = entry;
            __syncthreads();
            if (base + kThreads < candidates && count + kThreads <= kList) continue;
            if (leaf.end - leaf.begin < 4) sum_all<1>(f, s, fields, n, count, first);
            else sum_all<kTwo>(f, s, fields, n, count, first);
            first = false; count = 0;
        }
    }

    // The far field at every target, to rows of `Fmm::local`.
    static __device__ void run(const Fmm &f, const Pair *fields, const u32 *degrees, int n) {
        __shared__ Shared s;
        const Tree &t = f.tree[1];
        const u32 cells = f.state->level_begin[1][kLevels];
        const Root root = f.state->root;
        // The near field runs at the same time and may set the others.
        if (f.state->flags & (kCellsOverflow | kDepthOverflow | kOutside)) return;
        for (int m = threadIdx.x; m < n; m += kThreads)
            for (int l = m; l < n; l++) s.beta[column(n, m) + l - m] = beta_of<T>(l, m);
        if (threadIdx.x < kDistances) s.degrees[threadIdx.x] = (int)degrees[threadIdx.x];
        __syncthreads();
        // The first leaf is the block's own, others are taken by ticket.
        for (u32 c = blockIdx.x; c < cells;) {
            const u32 info = t.info[c];
            if (info_leaf(info)) {
                if (threadIdx.x == 0) {
                    Leaf &leaf = s.leaf;
                    leaf = {c, t.begin[c], t.end[c], t.cell_key[c], info_level(info), {}, {}, 0};
                    leaf.inv = 1 / centre_of_cell(root, leaf.level, leaf.key, leaf.centre, leaf.low);
                    if (sizeof(T) == 8) for (int d = 0; d < 3; d++) leaf.low[d] = SortedPoint<T>::origin(root, d);
                }
                __syncthreads();
                sum_leaf(f, s, fields, n);
            }
            if (threadIdx.x == 0) s.next = gridDim.x + atomicAdd(&f.state->work_ticket[kTicket], 1u);
            __syncthreads();
            c = s.next;
            __syncthreads();
        }
    }

    // ---- The caller's arrays. ------------------------------------------------------------------------------------------------

    // Near parts are added in their order, then the far field.
    static __device__ Squares write_target(const Fmm &f, u32 i, u32 parts, T unit, T slope) {
        const size_t all = (size_t)f.tree[1].n * f.fields, to = f.tree[1].order[i];
        const T *near = (const T *)f.field + (size_t)i * f.fields + (parts > 1 ? all : 0), *far = (const T *)f.local + (size_t)i * F;
        double w[F];
        float largest = 0;
#pragma unroll
        for (int k = 0; k < F; k++) {
            T v = near[k];
            if (k < MAIN) largest = max(largest, fabsf((float)far[k]));
            for (u32 p = 1; p < parts; p++) v += near[p * all + k];
            v += far[k];
            w[k] = k < MAIN ? store(f.out_main, f.out_is_f64, f.accumulate, to * MAIN + k, v * unit)
                            : store(f.out_gradient, f.out_is_f64, f.accumulate, to * REST + k - MAIN, v * slope);
        }
        return Squares::of<MAIN, REST>(w, largest, (u32)to);
    }

    // A warp has cells that follow one another, and leaves the sum of squares at their targets.
    static __device__ void write(const Fmm &f, const Check &check) {
        const Tree &t = f.tree[1];
        const u32 cells = f.state->level_begin[1][kLevels], warps = kWarps * gridDim.x, warp = kWarps * blockIdx.x + threadIdx.x / 32;
        const bool failed = f.state->flags != 0;
        const Root root = f.state->root;
        if (warp == 0 && threadIdx.x == 0) f.state->written = failed ? 0 : warps;
        if (failed) return;
        // Velocity: strength / length^2 for particles, circulation / length for segments; potential: charge / length.
        const T unit = (T)f.normalization * (T)(f.kind == kParticle ? root.scale * root.scale : root.scale), slope = unit * (T)root.scale;
        Squares squares = Squares::none();
        const u32 to = (u32)((u64)(warp + 1) * cells / warps);
        for (u32 c = (u32)((u64)warp * cells / warps); c < to; c++) {
            if (!info_leaf(t.info[c])) continue;
            const u32 parts = cells <= kPartCells ? f.state->near_parts[c] : 1, end = t.end[c];
            for (u32 i = t.begin[c] + (threadIdx.x & 31); i < end; i += 32) squares.add(write_target(f, i, parts, unit, slope));
        }
        squares.template add_lanes<REST>();
        if ((threadIdx.x & 31) == 0) check.size[warp] = squares;
    }
};

// Launch: 128 threads, any number of blocks. `fields`: [source cells][pairs of n degrees] Coefficients; `degrees`: of the potential, by
// the squared distance in cell widths.
#define M2P(name, T, MAIN, REST, BLOCKS) \
    extern "C" __global__ void __launch_bounds__(kThreads) fmm_m2p_fields_##name(const __grid_constant__ Fmm f, void *fields, u32 n) { M2p<T, MAIN, REST>::fields(f, (M2p<T, MAIN, REST>::Pair *)fields, (int)n); } \
    extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS) fmm_m2p_##name(const __grid_constant__ Fmm f, const void *fields, const u32 *degrees, u32 n) { M2p<T, MAIN, REST>::run(f, (const M2p<T, MAIN, REST>::Pair *)fields, degrees, (int)n); } \
    extern "C" __global__ void __launch_bounds__(kThreads) fmm_m2p_write_##name(const __grid_constant__ Fmm f, const __grid_constant__ Check c) { M2p<T, MAIN, REST>::write(f, c); }
M2P(velocity_f32, float, 3, 0, 6)
M2P(velocity_f64, double, 3, 0, 4)
M2P(gradient_f32, float, 3, 9, 5)
M2P(gradient_f64, double, 3, 9, 4)
M2P(potential_f32, float, 1, 0, 6)
M2P(potential_f64, double, 1, 0, 4)
M2P(force_f32, float, 1, 3, 6)
M2P(force_f64, double, 1, 3, 4)
