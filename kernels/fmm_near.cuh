// A block that sums sources with cores at up to `kThreads` positions: what the near field (fmm_p2p.cu) and the smooth corrections
// (fmm_smooth.cu) share. Sources are classified one by one and gathered in shared memory, so that each inner loop has one
// formula and no branch.
#pragma once
#include "fmm_ranges.cuh"

namespace fmm {

constexpr int kStack = 2944, kMaxTargets = 64;
enum : u32 {
    kQueue = 2 * kThreads, // slots of a queue, a power of two: half of them are summed at a time
    kOpened = kThreads / 8, // cells that a step of the walk opens, a thread a child
    kRangesBeforeStep = kRanges - kThreads - 2, // a step appends `kThreads` ranges at most
};

constexpr u32 kSeveral = kNone - 1;

template <class T> struct Shared : Ranges {
    u32 stack[kStack];
    Group<T> smooth; // the group of leaves that the targets belong to
    double part[kWarps][6];
    u32 taken[2][2][kWarps]; // by two choices in turn
    u32 queued[2 * kQueue]; // which source a slot of the queues holds, where pairs may need the caller's numbers
    // By target: the source that is itself, or kNone; the source of a pair that is to be corrected, kNone or kSeveral.
    u32 own[kMaxTargets], close[kMaxTargets];
    u32 depth;
    T per_limit; // corrections less than its inverse are left out; 0: none are
    u32 room, group; // length of the list of a group of leaves; the group or kNone
    u32 *list;
};

template <class T> __device__ Group<T> group_of(const double *box) {
    Group<T> g;
    for (int k = 0; k < 3; k++) {
        const T half = T(0.5) * (T(box[3 + k]) - T(box[k]));
        g.centre[k] = T(0.5) * (T(box[k]) + T(box[3 + k])); g.half2[k] = times(half, half);
        g.nodes[k] = (int)box[6] >> 4 * k & 15;
    }
    return g;
}

enum Which { kNearSources, kFarSources, kGroupSources };
constexpr u32 kListPerTarget = 4; // length of a group's list for each of its targets

// How a block sees its targets and sources.
template <class T, class P> struct View {
    const Fmm &f;
    Shared<T> &s;
    T box[6], from[3]; // the box around the targets; f32: what positions of a queue are relative to

    // A point, its position relative to `from` in f32, so that differences of near ones keep their digits.
    __device__ Vec4<T> relative(const Tree &t, u32 i, Vec4<T> p) const { return relative(p, sizeof(T) == 4 ? SortedPoint<T>::low(t)[i] : p); }
    __device__ Vec4<T> relative(Vec4<T> p, const Vec4<T> &low) const {
        if constexpr (sizeof(T) == 4) {
            p.x = SortedPoint<T>::relative(p.x, low.x, from[0]); p.y = SortedPoint<T>::relative(p.y, low.y, from[1]); p.z = SortedPoint<T>::relative(p.z, low.z, from[2]);
        }
        return p;
    }
    // Where it is, of target `i`; before any other is asked for `at` becomes what positions are relative to.
    __device__ void begin_at(u32 i) {
        const Vec4<T> p = ((const Vec4<T> *)f.tree[1].point)[i];
        from[0] = p.x; from[1] = p.y; from[2] = p.z;
    }
    __device__ typename P::Position target(u32 i) const {
        const Vec4<T> p = ((const Vec4<T> *)f.tree[1].point)[i];
        if constexpr (P::kTwoFloats) {
            const Vec4<T> low = SortedPoint<T>::low(f.tree[1])[i];
            return {{p.x, p.y, p.z}, {low.x, low.y, low.z}};
        } else {
            const Vec4<T> q = relative(f.tree[1], i, p);
            return {q.x, q.y, q.z};
        }
    }
    // What a record is made from: the point relative to `from`, or its low digits beside it.
    __device__ void locate_source(const Tree &t, u32 i, bool has_low, Vec4<T> &a, Vec4<T> &low) const {
        if constexpr (P::kTwoFloats) { if (!has_low) low = SortedPoint<T>::low(t)[i]; }
        else a = has_low ? relative(a, low) : relative(t, i, a);
    }

    __device__ T distance2(const Vec4<T> &p) const {
        const T x = max(max(box[0] - p.x, p.x - box[3]), (T)0), y = max(max(box[1] - p.y, p.y - box[4]), (T)0), z = max(max(box[2] - p.z, p.z - box[5]), (T)0);
        return x * x + y * y + z * z;
    }

    // A source as its image has it; `b` of a segment in f64 is its other end.
    __device__ void move_to_image(u32 packed, Vec4<T> &a, Vec4<T> &b, Vec4<T> &low) const {
        const Root &root = f.state->root;
        SortedPoint<T>::move_to(root, packed, a, low);
        Vec4<T> none{0, 0, 0, 0};
        if (sizeof(T) == 8 && f.kind == kSegment) SortedPoint<T>::move_to(root, packed, b, none);
    }
    // Is source p summed with its core? In places where the core is smooth it is not.
    __device__ bool is_smooth(const Vec4<T> &p, const Vec4<T> &q) const { return s.group != kNone && P::smooth(s.smooth, p, q, f, s.per_limit); }
};

// What rounding of the positions took from the near pairs of a target, of the sources that the near field goes through.
template <class T, class P> struct Correction {
    const View<T, P> &view;
    typename P::Position x;
    u32 to; // the target's number among the caller's
    typename P::Sum &sum;

    // Of a source with its core.
    struct Regular {
        const Correction &of;
        const typename P::Record &r;
        u32 source;
        T core;
        template <int REG> __device__ void run() const { of.template add<kRegular, REG>(r, source, core); }
    };
    template <int FORM, int REG> __device__ void add(const typename P::Record &r, u32 source, T core) const {
        P::template correct<FORM, REG>(sum, x, r, exact_difference(view.f, source, to), core);
    }
    // source: one, or kSeveral of all that are near.
    __device__ void add_all(u32 source) const {
        const Fmm &f = view.f;
        const T near2 = near_square(x);
#pragma unroll 1
        for (u32 k = 0, n = source == kSeveral ? view.s.total() : 1; k < n; k++) {
            const u32 i = source == kSeveral ? view.s.source(k) : source, own = in_image(i);
            Vec4<T> a = ((const Vec4<T> *)f.tree[0].point)[own], b = ((const Vec4<T> *)f.strength)[own], low = SortedPoint<T>::low(f.tree[0])[own];
            const T core = a.w;
            if (kPeriodic) view.move_to_image(i, a, b, low);
            const bool regular = P::reaches(view, a, b, (T)f.core_range) && !view.is_smooth(a, b);
            view.locate_source(f.tree[0], own, true, a, low);
            typename P::Record r;
            if constexpr (P::kTwoFloats) r = P::make(f.regularization, a, b, low);
            else r = P::make(f.regularization, a, b);
            if (!(square(apart(x, r)) < near2)) continue;
            if (regular) P::choose(f.regularization, Regular{*this, r, i, core});
            else add<kSingular, NONE>(r, i, core);
        }
    }
};
// Adds it to the field of sorted target `target`, by one thread. Behind the loops, whose registers a call would take.
template <class T, class P> __device__ __noinline__ void correct(const View<T, P> &view, u32 target, u32 source) {
    typename P::Sum sum{};
    T field[P::kFields], *const to = (T *)view.f.field + (size_t)target * P::kFields;
    Correction<T, P>{view, view.target(target), view.f.tree[1].order[target], sum}.add_all(source);
    sum.field(field);
    for (int k = 0; k < P::kFields; k++) to[k] += field[k];
}

template <class T, class P> struct Near : View<T, P> {
    typedef Shared<T> Memory;
    typedef View<T, P> Base;
    using Base::f, Base::s, Base::box, Base::from;
    typename P::Record *buffer; // two queues, rings of `kQueue` sources
    static constexpr int kTargets = P::kCoreTargets; // a thread
    typename P::Position me[kTargets]; bool is;
    int targets, slots, group, groups;
    u32 first; // of the targets, in the order of the tree
    typename P::Sum sum[kTargets];
    u32 start[2], fill[2], parity = 0, listed;
    u64 pairs, core_pairs;

    __device__ Near(const Fmm &f, Memory &s, typename P::Record *b) : Base{f, s, {}, {}}, buffer(b) {
        if (threadIdx.x == 0) s.per_limit = per_limit(f);
    }
    // One over a part of the tolerance of the whole field, whose size the sampled targets tell.
    static __device__ T per_limit(const Fmm &f) {
        if (!(f.cull > 0)) return 0;
        double squares = 0, n = 0;
        for (u32 g = 0; g < f.state->exact_groups; g++) { squares += f.state->exact2[g]; n += f.state->exact_n[g]; }
        const double limit = f.cull * sqrt(squares / n), most = sizeof(T) == 8 ? 1e200 : 1e30;
        return limit * most > 1 ? (T)(1 / limit) : T(0);
    }

    // Sums the first n sources of queue `q` and takes them out. Their slots are free behind the next barrier. A call would take the
    // block's variables from registers to memory.
    template <int FORM> __device__ __forceinline__ void flush(int q, u32 n) {
        __syncthreads();
        if (is) {
            const Loop<FORM> loop{*this, buffer + q * kQueue + start[q], n};
            if constexpr (FORM == kSingular) loop.template run<NONE>();
            else P::choose(f.regularization, loop);
        }
        start[q] ^= kThreads;
        fill[q] -= n;
    }
    // One formula over the sources of a queue. Pairs that lack digits are computed from the caller's numbers: those that were left out,
    // one bit each, or, where only the distance says so, the difference, behind all sources (`correct`).
    template <int FORM> struct Loop {
        Near &near;
        const typename P::Record *b;
        u32 n;
        static constexpr bool kDefersPairs = P::kDefersPairs && FORM != kDeficit, kCorrects = P::kCorrects && FORM != kDeficit;
        // The sorted source that a slot was made from.
        __device__ u32 source(u32 j) const { return near.s.queued[b - near.buffer + j]; }
        // Notes the near pairs of target k, but for that with itself.
        __device__ void note_close(int k, const typename P::Position &x, T near2) const {
            const u32 t = near.target_slot(k), own = near.s.own[t];
#pragma unroll 1
            for (u32 j = near.group; j < n; j += near.groups) {
                if (source(j) == own || !(square(apart(x, b[j])) < near2)) continue;
                if (atomicCAS(&near.s.close[t], kNone, source(j)) != kNone) near.s.close[t] = kSeveral;
            }
        }
        // Adds the pairs of target k that lacked digits, of the sources before `end`.
        template <int REG> __device__ __forceinline__ void add_left_out(typename P::Sum &sum, typename P::Position x, int k, u32 left, u32 end) const {
            if constexpr (kDefersPairs)
                for (; left; left &= left - 1) {
                    const u32 j = end - near.groups * (u32)__ffs(left);
                    if constexpr (sizeof(T) == 8)
                        if (SegmentPair<double>(x, b[j]).is_on_line()) continue;
                    P::template add_exactly<FORM, REG>(sum, b[j], exact_pair(near.f, source(j), near.target_number(k)));
                }
        }
        template <int REG> __device__ __forceinline__ void run() const {
            typename P::Sum sum[kTargets];
            typename P::Position me[kTargets];
            T near2[kTargets];
            u32 close[kTargets] = {};
#pragma unroll
            for (int k = 0; k < kTargets; k++) {
                // In two floats a coordinate these sources have sums of their own, so that fewer numbers are added to a large one.
                if constexpr (P::kTwoFloats) for (int c = 0; c < P::Sum::terms; c++) sum[k].sum[c] = 0;
                else sum[k] = near.sum[k];
                me[k] = near.me[k];
                if constexpr (kCorrects) near2[k] = near_square(me[k]);
            }
            const u32 step = near.groups;
            u32 j = near.group;
#pragma unroll 1
            while (j < n) {
                u32 left[kTargets] = {};
                const u32 end = kDefersPairs ? min(n, j + 32 * step) : n;
#pragma unroll 1
                for (; j < end; j += step) {
                    const typename P::Record r = b[j];
#pragma unroll
                    for (int k = 0; k < kTargets; k++) {
                        const auto pair = P::template add<FORM, REG>(sum[k], me[k], r);
                        if constexpr (kDefersPairs) left[k] = left[k] << 1 | pair;
                        if constexpr (kCorrects) close[k] += pair < near2[k];
                    }
                }
#pragma unroll
                for (int k = 0; k < kTargets; k++) add_left_out<REG>(sum[k], me[k], k, left[k], j);
            }
#pragma unroll
            for (int k = 0; k < kTargets; k++) {
                if constexpr (kCorrects) if (close[k]) note_close(k, me[k], near2[k]);
                if constexpr (P::kTwoFloats) add_to(near.sum[k], sum[k]);
                else near.sum[k] = sum[k];
            }
        }
    };

    // The thread's `k`-th target among those of the block, and its number among the caller's.
    __device__ u32 target_slot(int k) const { return min((int)threadIdx.x - group * slots + k * slots, targets - 1); }
    __device__ u32 target_number(int k) const { return f.tree[1].order[first + target_slot(k)]; }

    // Numbers the threads that take, for each of N choices: behind how many others, and of how many.
    template <int N> __device__ void number(const bool (&take)[N], u32 (&at)[N], u32 (&total)[N]) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        u32 ballot[N];
#pragma unroll
        for (int c = 0; c < N; c++) {
            ballot[c] = __ballot_sync(~0u, take[c]);
            if (lane == 0) s.taken[parity][c][warp] = __popc(ballot[c]);
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < N; c++) {
            at[c] = __popc(ballot[c] & ((1u << lane) - 1)); total[c] = 0;
            for (int w = 0; w < kWarps; w++) { const u32 n = s.taken[parity][c][w]; if (w < warp) at[c] += n; total[c] += n; }
        }
        parity ^= 1; // so that nobody overwrites what is still read
    }

    // Puts a source at the end of queue `q`, as the `at`-th of `total` of this round.
    __device__ void put(int q, bool take, u32 at, u32 total, const Vec4<T> &a, const Vec4<T> &b, const Vec4<T> &low, u32 source = kNone) {
        const u32 slot = q * kQueue + (start[q] + fill[q] + at & (kQueue - 1));
        if constexpr (P::kTwoFloats) { if (take) buffer[slot] = P::make(f.regularization, a, b, low); }
        else if (take) buffer[slot] = P::make(f.regularization, a, b);
        if ((P::kDefersPairs || P::kCorrects) && take) s.queued[slot] = source;
        fill[q] += total;
    }
    template <int FORM> __device__ void push(bool take, const Vec4<T> &a, const Vec4<T> &b, const Vec4<T> &low) {
        const bool choice[1] = {take};
        u32 at[1], total[1];
        number(choice, at, total);
        put(0, take, at[0], total[0], a, b, low);
        if (fill[0] >= kThreads) flush<FORM>(0, kThreads);
    }

    // Goes through the sources of the collected ranges. kNearSources: with their core where it reaches the targets and is not
    // smooth; kFarSources: the deficits of those whose core reaches; kGroupSources: the smooth deficits, and a list of the others.
    template <int WHICH> __device__ void consume() {
        const Tree &t = f.tree[0];
        const Vec4<T> *point = (const Vec4<T> *)t.point, *strength = (const Vec4<T> *)f.strength;
        constexpr int kFirst = WHICH == kNearSources ? kSingular : kDeficit; // what is summed from the first queue
        __syncthreads();
        const u32 all = s.total();
        for (u32 base = 0; base < all; base += kThreads) {
            const u32 k = base + threadIdx.x;
            u32 i = 0;
            Vec4<T> a{0, 0, 0, 0}, b{0, 0, 0, 0}, low{0, 0, 0, 0};
            const bool valid = k < all;
            if (valid) { // all asked for at once
                i = s.source(k);
                const u32 own = in_image(i);
                a = point[own];
                b = strength[own];
                if ((WHICH == kNearSources || kPeriodic) && sizeof(T) == 4) low = SortedPoint<T>::low(t)[own];
                if (kPeriodic) this->move_to_image(i, a, b, low);
            }
            const bool inside = valid && P::reaches(*this, a, b, (T)f.core_range);
            const bool is_smooth = inside && this->is_smooth(a, b);
            if (WHICH == kNearSources) this->locate_source(t, i, true, a, low);
            else if (WHICH == kFarSources && inside) this->locate_source(t, i, kPeriodic, a, low);
            if constexpr (WHICH == kFarSources) { push<kDeficit>(inside, a, b, low); core_pairs += inside; continue; }
            // To the queues, or smooth ones to a queue and others to the list.
            const bool regular = inside && !is_smooth, choice[2] = {WHICH == kNearSources ? valid && !regular : is_smooth, regular};
            u32 at[2], total[2];
            number(choice, at, total);
            put(0, choice[0], at[0], total[0], a, b, low, i);
            if constexpr (WHICH == kNearSources) {
                put(1, regular, at[1], total[1], a, b, low, i);
                pairs += valid;
                if (fill[1] >= kThreads) flush<kRegular>(1, kThreads);
            } else {
                if (regular && listed + at[1] < s.room) s.list[listed + at[1]] = i;
                listed += total[1];
                core_pairs += is_smooth;
            }
            if (fill[0] >= kThreads) flush<kFirst>(0, kThreads);
        }
        flush<kFirst>(0, fill[0]);
        if constexpr (WHICH == kNearSources) flush<kRegular>(1, fill[1]);
    }

    __device__ void near_field(int level) {
        s.collect_near(f, level);
        if (P::kCorrects && threadIdx.x < targets) {
            s.own[threadIdx.x] = s.own_source(f, first + threadIdx.x);
            s.close[threadIdx.x] = kNone;
        }
        consume<kNearSources>();
    }
    // Behind everything else, once the sums are in the field.
    __device__ void correct_close(int level) {
        const u32 source = threadIdx.x < targets ? s.close[threadIdx.x] : kNone;
        if (__syncthreads_or(source == kSeveral)) s.collect_near(f, level);
        const Base view = *this;
        if (source != kNone) correct(view, first + threadIdx.x, source);
    }

    // Is the leaf at key `other` of level `ls` near the target leaf at `at` of `level`?
    __device__ static bool near_leaf(const int *other, int ls, const int *at, int level) {
        const int l = min(ls, level);
        int d[3];
        for (int k = 0; k < 3; k++) d[k] = (other[k] >> (ls - l)) - (at[k] >> (level - l));
        return is_near(d[0], d[1], d[2]);
    }

    // Walks down the source tree to the leaves that hold a core that reaches the targets: kFarSources: those not near.
    template <int WHICH> __device__ void core_correction(int level, const int *at) {
        const Tree &src = f.tree[0];
        const T range = (T)f.walk_range, half_longest = f.cull > 0 ? (T)(0.5 * unordered(f.state->longest) * f.state->root.scale) : T(0);
        const double per_limit = s.per_limit;
        T origin[3];
        for (int k = 0; k < 3; k++) origin[k] = SortedPoint<T>::origin(f.state->root, k);
        s.clear();
        if (threadIdx.x == 0) { s.stack[0] = 0; s.depth = f.state->level_begin[0][kLevels] > 0 && !info_leaf(src.info[0]); }
        if constexpr (kPeriodic) {
            // The other images of the root whose cores may reach the targets, by one warp.
            __syncthreads();
            if (threadIdx.x < 32) {
                const int number = threadIdx.x + (threadIdx.x >= kOwnImage);
                int n[3];
                beside(number, n);
                const T side = (T)f.state->root.side, period = (T)f.state->root.period, reach = range * (T)f.cell_core[0];
                T d2 = 0;
                for (int k = 0; k < 3; k++) {
                    const T at = origin[k] + n[k] * period, slack = side * T(1e-5), d = max(max(at - box[3 + k], box[k] - at - side) - slack, (T)0);
                    d2 += d * d;
                }
                const u32 ballot = __ballot_sync(~0u, s.depth && d2 < reach * reach);
                if (ballot >> threadIdx.x & 1) s.stack[1 + __popc(ballot & ((1u << threadIdx.x) - 1))] = (u32)(number ^ kOwnImage) << kImageBits;
                __syncwarp();
                if (threadIdx.x == 0) s.depth += __popc(ballot);
            }
        }
        __syncthreads();
        while (s.depth) {
            const u32 pop = min(s.depth, u32(kOpened)), slot = threadIdx.x / 8;
            const u32 popped = slot < pop ? s.stack[s.depth - pop + slot] : 0, of_image = kPeriodic ? popped >> kImageBits : 0;
            u32 child = slot < pop ? child_of(src, in_image(popped), threadIdx.x & 7) : kNone;
            bool leaf_found = false, inner = false;
            int n[3] = {0, 0, 0};
            if (kPeriodic) image_vector(of_image, n);
            if (child != kNone) {
                T centre[3];
                const T side = cell_geometry(src, f.state->root, child, centre), half = side * (T)0.50001;
                T d2 = 0;
                for (int k = 0; k < 3; k++) {
                    const T at = kPeriodic ? centre[k] + origin[k] + n[k] * (T)f.state->root.period : centre[k] + origin[k], d = max(max(box[k] - at - half, at - half - box[3 + k]), (T)0);
                    d2 += d * d;
                }
                const T reach = range * (T)f.cell_core[child];
                const u32 info = src.info[child];
                // Is the correction of any segment below large enough?
                const double apart = max(sqrt(d2) - half_longest, (T)0);
                const bool large = !(per_limit > 0) || 0.5 * f.cell_core[src.cell_capacity + child] * per_limit > apart * apart * apart;
                if (large && d2 < reach * reach) {
                    inner = !info_leaf(info);
                    if (!inner) {
                        int other[3];
                        unmorton(src.cell_key[child], other);
                        if (kPeriodic) for (int k = 0; k < 3; k++) other[k] += n[k] * cells_along(f, info_level(info));
                        leaf_found = WHICH == kGroupSources || !near_leaf(other, info_level(info), at, level);
                    }
                }
            }
            const u32 left = s.depth - pop;
            __syncthreads();
            s.append(leaf_found, leaf_found ? src.begin[child] : 0, leaf_found ? src.end[child] : 0, of_image);
            const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
            const u32 ballot = __ballot_sync(~0u, inner);
            if (lane == 0) s.warp_count[0][warp] = __popc(ballot);
            __syncthreads();
            u32 at = left + __popc(ballot & ((1u << lane) - 1)), total = 0;
            for (int w = 0; w < kWarps; w++) { if (w < warp) at += s.warp_count[0][w]; total += s.warp_count[0][w]; }
            if (inner) s.stack[at] = kPeriodic ? child | of_image << kImageBits : child;
            __syncthreads();
            if (threadIdx.x == 0) s.depth = left + total;
            __syncthreads();
            if (s.count > kRangesBeforeStep) { consume<WHICH>(); s.clear(); }
        }
        consume<WHICH>();
    }

    // The sources that the group of this leaf has listed.
    __device__ void correct_listed(int level, const int *at) {
        const Tree &t = f.tree[0];
        const u32 total = f.smooth_count[s.group];
        const u32 *list = f.smooth_list + kListPerTarget * (size_t)f.tree[1].begin[s.group];
        for (u32 base = 0; base < total; base += kThreads) {
            const u32 k = base + threadIdx.x;
            Vec4<T> a{0, 0, 0, 0}, b{0, 0, 0, 0}, low{0, 0, 0, 0};
            bool take = k < total;
            if (take) {
                const u32 packed = list[k], i = in_image(packed);
                const int ls = t.leaf_level[i];
                int other[3];
                a = ((const Vec4<T> *)t.point)[i]; b = ((const Vec4<T> *)f.strength)[i];
                unmorton(t.key[i] >> 3 * (f.max_level - ls), other);
                if (kPeriodic) {
                    int n[3];
                    image_vector(packed >> kImageBits, n);
                    for (int k = 0; k < 3; k++) other[k] += n[k] * cells_along(f, ls);
                    if (sizeof(T) == 4) low = SortedPoint<T>::low(t)[i];
                    this->move_to_image(packed, a, b, low);
                }
                take = P::reaches(*this, a, b, (T)f.core_range) && !near_leaf(other, ls, at, level);
                this->locate_source(t, i, kPeriodic, a, low);
            }
            push<kDeficit>(take, a, b, low); core_pairs += take;
        }
        flush<kDeficit>(0, fill[0]);
    }

    // The box around the targets from..to.
    __device__ void measure(u32 from, u32 to) {
        double b[6] = {1e300, 1e300, 1e300, -1e300, -1e300, -1e300};
        for (u32 i = from + threadIdx.x; i < to; i += kThreads) {
            const Vec4<T> p = ((const Vec4<T> *)f.tree[1].point)[i];
            b[0] = fmin(b[0], (double)p.x); b[1] = fmin(b[1], (double)p.y); b[2] = fmin(b[2], (double)p.z);
            b[3] = fmax(b[3], (double)p.x); b[4] = fmax(b[4], (double)p.y); b[5] = fmax(b[5], (double)p.z);
        }
        for (int k = 0; k < 6; k++)
            for (int d = 16; d; d >>= 1) { const double o = __shfl_xor_sync(~0u, b[k], d); b[k] = k < 3 ? fmin(b[k], o) : fmax(b[k], o); }
        __syncthreads();
        if ((threadIdx.x & 31) == 0) for (int k = 0; k < 6; k++) s.part[threadIdx.x / 32][k] = b[k];
        __syncthreads();
        for (int k = 0; k < 6; k++) {
            double v = s.part[0][k];
            for (int w = 1; w < kWarps; w++) v = k < 3 ? fmin(v, s.part[w][k]) : fmax(v, s.part[w][k]);
            box[k] = (T)v;
        }
        // In single precision the sorted points have the first digits of positions only, and `box` is made of these. Cores and leaves can be
        // smaller than what is left out, where some points are far away from all others.
        if constexpr (sizeof(T) == 4)
            for (int k = 0; k < 3; k++) {
                constexpr T roundings = T(0x1p-20); // sixteen of a position
                const T margin = roundings * fmax(fabs(box[k]), fabs(box[3 + k]));
                box[k] -= margin;
                box[3 + k] += margin;
            }
    }

    // Shares the threads out to `n` targets, `position(i)` the i-th.
    template <class F> __device__ void share_out(int n, F &&position) {
        targets = n;
        slots = (n + kTargets - 1) / kTargets;
        groups = kThreads / slots;
        group = threadIdx.x / slots;
        is = group < groups;
#pragma unroll
        for (int k = 0; k < kTargets; k++) {
            me[k] = position(min(threadIdx.x - group * slots + k * slots, n - 1));
#pragma unroll
            for (int c = 0; c < P::Sum::terms; c++) sum[k].sum[c] = 0;
        }
        start[0] = start[1] = fill[0] = fill[1] = listed = 0; pairs = core_pairs = 0;
    }

    // Adds up what the threads of a target have, in order: put(target, field, sum).
    template <class F> __device__ void reduce(F &&put) {
#pragma unroll
        for (int k = 0; k < kTargets; k++) if (k * slots < targets) reduce(sum[k], k * slots, min(slots, targets - k * slots), put);
    }
    template <class F> __device__ void reduce(const typename P::Sum &sum, int from, int n, F &&put) {
        __syncthreads();
        T *part = (T *)buffer, field[P::kFields]; // [4][threads]: the queues' memory, four fields at a time
        sum.field(field);
#pragma unroll
        for (int k0 = 0; k0 < P::kFields; k0 += 4) {
            constexpr int kPart = P::kFields < 4 ? P::kFields : 4;
#pragma unroll
            for (int k = 0; k < kPart; k++) part[k * kThreads + threadIdx.x] = field[k0 + k];
            __syncthreads();
            for (int w = threadIdx.x; w < n * kPart; w += kThreads) {
                const int k = w / n, i = w - k * n;
                T x = 0;
                for (int g = 0; g < groups; g++) x += part[k * kThreads + g * slots + i];
                put(from + i, k0 + k, x);
            }
            __syncthreads();
        }
    }

    __device__ void count() {
        u64 n = pairs, c = core_pairs;
        for (int d = 16; d; d >>= 1) { n += __shfl_xor_sync(~0u, n, d); c += __shfl_xor_sync(~0u, c, d); }
        if ((threadIdx.x & 31) == 0) {
            if (n) atomicAdd(&f.state->near_pairs, n * targets);
            if (c) atomicAdd(&f.state->core_pairs, c * targets);
        }
    }
};

} // namespace fmm
