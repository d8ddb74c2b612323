// M2L: the multipoles of the far cells beside a cell's parent, translated to its local expansion.
//
// Offsets that differ only in signs, an orbit of up to eight, share one product. A reflection of an axis changes the signs of
// some coefficients only: by how a coefficient behaves under the three of them it is in one of eight classes, numbers of three
// bits. With S_σ those signs, M(σd) = S_σ M(d) S_σ, hence the sum over an orbit is, for a coefficient i of class a,
//   Σ_σ (S_σ M S_σ s_σ)_i = Σ_j M_ij p_{a^b(j), j},   p_k = Σ_σ (-1)^{bits of σ&k} s_σ:
// the Walsh-Hadamard transform of the eight sources, and then one product instead of eight. Of the eight signs a tile has three
// on average. Where they are σ0 ^ span of r vectors, p has 2^r different planes up to a sign: those are made, and a table says
// which of them, with which sign, stands for each k.
//
// A block owns a tile of rows (expansions of cells of one octant and level) and keeps their sums in registers. Groups of four
// warps gather the sources of an orbit, transform them in registers and put the planes into a ring of stages in shared
// memory; eight warps, one a class of rows of the operator, multiply them on the tensor units. The gathering warps
// list the sources of the next tile while the last stages of one are multiplied. What an orbit contributes less than
// the tolerance was left out when the tables were made (truncation.rs).
#include "fmm_orbits.cuh"
#include "fmm_rounded.cuh"
#include "fmm_m2l_small.cuh"
#include "barriers.cuh"
using namespace fmm;

template <class T> struct alignas(16) Sixteen { T v[16 / sizeof(T)]; };

// Barriers: a stage is full, or empty again; a tile's lists are made, or no longer in use.
constexpr int kFull = 0, kEmpty = kFull + kStages, kTileReady = kEmpty + kStages, kDone = kTileReady + 2, kBarriers = kDone + 2;

template <class T, int NT, int SPLIT, int MT, int GROUPS> struct M2l {
    static constexpr int kRows = 16 * MT, kWide = kChunk / sizeof(T), kSteps = kWide / 8, kVector = 16 / sizeof(T), kPlane = kRows * kChunk, kStage = kPlanes * kPlane;
    static constexpr int kRing = kConsumers + kProducers; // threads that meet at a stage's barriers
    typedef typename Table<T, SPLIT>::Piece Piece;
    const Fmm &f;
    Work &w;
    TileList *lists; // [2]
    Barriers<kBarriers> &barriers;
    unsigned char *memory;
    uint2 *beside_of; // [cells][kBeside]: slot of the first child's expansion in units of 16 bytes, children
    const u32 *classes; // [columns / 16][4]: four times those of columns t, t + 4, t + 8 and t + 12

    // 16-byte slots of a row are exchanged so that neither the gathering nor the multiplying warps meet in a bank.
    static __device__ int swizzle(int row) { return sizeof(T) == 8 ? (row & 3) << 1 : row & 7; }

    static __device__ u32 groups() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        return GROUPS;
#else
        return (blockDim.x - kConsumers) / kProducers;
#endif
    }
    static __device__ u32 gatherers() { return groups() * kProducers; }
    static __device__ u32 block() { return kConsumers + gatherers(); }
    static __device__ void meet() { Barriers<kBarriers>::meet(gatherers()); }

    // The next tile, by ticket.
    __device__ void take_tile(TileList &l) const {
        const u32 ticket = atomicAdd(&f.state->work_ticket[0], 1u), tile = ticket / w.parts, cells = f.m2l_cells;
        l.part = ticket % w.parts;
        l.more = tile < w.tiles;
        if (!l.more) return;
        int low = 8 * (int)m2l_top(f), high = kBins;
        while (high - low > 1) { const int m = (low + high) / 2; if (w.bin_tiles[m] <= tile) low = m; else high = m; }
        const u32 begin = (tile - w.bin_tiles[low]) * cells, n = (low + 1 < kBins ? w.bin_first[low + 1] : f.state->level_begin[1][kLevels]) - w.bin_first[low];
        l.tile = {low / 8, low % 8, (int)(w.bin_first[low] + begin), (int)min(n - begin, cells)};
    }
    // Which signs of each orbit have a source, and what that makes of its planes.
    __device__ void find_orbits(const TileList &l, int tid) {
        const int orbits = f.m2l[kOrbitCount];
        for (int k = tid; k < kMaxOrbits * 8; k += gatherers()) {
            const int o = k >> 3, s = k & 7;
            u32 orbit = 0;
            int e = kNowhere;
            if (o < orbits && o % (int)w.parts == l.part) {
                orbit = f.m2l[o];
                e = source_at(orbit, s, l.tile.octant);
            }
            // The span is that of all signs that the octant can have, whatever the tile's cells: so the bits do not depend on them.
            const u32 shift = tid & 24, signs = __ballot_sync(~0u, e != kNowhere) >> shift & 255;
            const bool is = __ballot_sync(~0u, w.used[e & 255] >> (e >> 8) & 1) >> shift & 255;
            w.source[o][s] = (unsigned short)e;
            u32 planes = 0, spanned = 0, rank = 0;
            if (is) {
                const u32 span = span_of(signs);
                rank = span & 3;
                planes = plane_of(span, s) << 4 * s;
                spanned = (u32)sign_of(span, s) << 4 * s;
            }
            for (int d = 1; d < 8; d *= 2) { planes |= __shfl_xor_sync(~0u, planes, d); spanned |= __shfl_xor_sync(~0u, spanned, d); }
            if (s == 0) { w.found[o] = is ? orbit | rank << 20 | 1u << 24 : 0; w.found_planes[o] = planes; w.found_signs[o] = spanned; }
        }
    }
    // Lists them, and the stages they fill. By one warp.
    __device__ void list_orbits(TileList &l) {
        const int lane = threadIdx.x & 31;
        int count = 0, stages = 0;
        for (int base = 0; base < kMaxOrbits; base += 32) {
            const int o = base + lane;
            const u32 orbit = o < kMaxOrbits ? w.found[o] : 0, b = __ballot_sync(~0u, orbit != 0);
            const int each = kPlanes >> (orbit >> 20 & 3), n = orbit ? ((int)(orbit >> 12 & 255) + kSteps * each - 1) / (kSteps * each) : 0;
            const int at = count + __popc(b & ((1u << lane) - 1));
            int end = n;
            for (int d = 1; d < 32; d <<= 1) { const int x = __shfl_up_sync(~0u, end, d); if (lane >= d) end += x; }
            if (orbit) {
                l.orbit[at] = orbit; l.planes[at] = w.found_planes[o]; l.number[at] = (unsigned char)o;
                for (int k = 0; k < n; k++) w.stage[stages + end - n + k] = (unsigned short)(o | k * each << 8);
            }
            count += __popc(b);
            stages += __shfl_sync(~0u, end, 31);
        }
        if (lane == 0) { l.count = count; w.first += w.stages; w.stages = stages; w.listed++; }
    }
    // By the gathering warps. False: no tile is left.
    __device__ bool list_tile(TileList &l) {
        const int tid = thread() - kConsumers, cells = f.m2l_cells;
        if (tid == 0) take_tile(l);
        if (tid < kBeside) w.used[tid] = 0;
        meet();
        if (!l.more) return false;
        const u32 each = f.components * (f.stride / kVector);
        for (int k = tid; k < cells * kBeside; k += gatherers()) {
            const int cell = k / kBeside, n = k - cell * kBeside;
            uint2 found = make_uint2(0, 0);
            if (cell < l.tile.count) {
                const u32 target = f.tile_cell[l.tile.first + cell], p = f.near[(size_t)f.tree[1].parent[target] * kBeside + n];
                if (n == 0) l.target[cell] = target;
                if (p != kNone) found = make_uint2(f.tree[0].child[p] * each, info_children(f.tree[0].info[p]));
                if (found.y) atomicOr(&w.used[n], found.y);
            }
            beside_of[k] = found;
        }
        meet();
        find_orbits(l, tid);
        meet();
        if (tid < 32) list_orbits(l);
        meet();
        return true;
    }

    // Number of a gathering thread: double precision has no register to keep it in.
    static __device__ u32 me(u32 kept) { return sizeof(T) == 8 ? thread() : kept; }

    // What a group gathers into one stage: 16 bytes of a row a thread, in slots: the signs of the orbit's span, of the first chunk,
    // of the next one, ...
    struct Part {
        u32 signs; // of the span, four bits each
        int rank, at, end; // first slot of 16 bytes in a source's row, and where the orbit's slots end
        u32 slot[MT];
    };
    // Of a lane 8 r + s slot[n] is that of the source of sign s of the warp's row r (of four) of 16 n, in units of 16 bytes; where
    // there is none, that of the root, which is zero.
    __device__ void begin(Part &part, u32 stage_of_tile, u32 before, u32 kept) const {
        const u32 mine = me(kept);
        const int entry = w.stage[stage_of_tile], o = entry & 255;
        part.at = (entry >> 8) * (kWide / kVector) + (mine & 7);
        if (before < stage_of_tile && (w.stage[before] & 255) == o) return;
        const u32 orbit = w.found[o], nc = f.components, each = f.stride / kVector;
        const int e = w.source[o][mine & 7], child = e >> 8;
        part.signs = w.found_signs[o]; part.rank = orbit >> 20 & 3; part.end = (orbit >> 12 & 255) * 8 / kVector;
#pragma unroll
        for (int n = 0; n < MT; n++) {
            const u32 r = mine % kProducers / 8 + 16 * n, cell = nc == 1 ? r : r / 3;
            const uint2 b = beside_of[min(cell, f.m2l_cells - 1) * kBeside + (e & 255)];
            part.slot[n] = b.y >> child & 1 ? b.x + (__popc(b.y & ((1u << child) - 1)) * nc + (nc == 1 ? 0 : r - 3 * cell)) * each : 0;
        }
    }
    template <int RANK> __device__ void load(Sixteen<T> *v, const Part &part, int n) const {
#pragma unroll
        for (int k = 0; k < 1 << RANK; k++) {
            const u32 slot = __shfl_sync(~0u, part.slot[n], (threadIdx.x & 24) + (part.signs >> 4 * k & 7));
#ifdef WFMM_EMULATED
            const Sixteen<T> *from = (const Sixteen<T> *)f.multipole + slot + part.at;
#else
            const Sixteen<T> *from;
            asm("mad.wide.u32 %0, %1, 16, %2;" : "=l"(from) : "r"(slot + part.at), "l"(f.multipole));
#endif
#pragma unroll
            for (int chunk = 0; chunk < kPlanes >> RANK; chunk++)
                if (part.at + chunk * 8 < part.end) v[(chunk << RANK) + k] = from[chunk * 8];
        }
    }
    // Sums and differences over one bit of the slots.
    template <int BIT> static __device__ void transform(Sixteen<T> *v) {
#pragma unroll
        for (int i = 0; i < kPlanes; i++) {
            if (i & BIT) continue;
#pragma unroll
            for (int k = 0; k < kVector; k++) {
                const T x = v[i].v[k], y = v[i | BIT].v[k];
                v[i].v[k] = x + y; v[i | BIT].v[k] = x - y;
            }
        }
    }
    // The planes of all rows; v: the sources of the first ones.
    template <int RANK> __device__ void fill(unsigned char *to, Sixteen<T> *v, const Part &part) const {
#pragma unroll
        for (int n = 0; n < MT; n++) {
            if (RANK > 0) transform<1>(v);
            if (RANK > 1) transform<2>(v);
            if (RANK > 2) transform<4>(v);
#pragma unroll
            for (int i = 0; i < kPlanes; i++)
                if (part.at + (i >> RANK) * 8 < part.end) *(Sixteen<T> *)(to + i * kPlane + n * 16 * kChunk) = v[i];
            read_later(); // two sets of slots would not fit the registers
            if (n + 1 < MT) load<RANK>(v, part, n + 1);
        }
    }
    // Where the thread's 16 bytes of the first rows are in a stage.
    __device__ unsigned char *slot_in(u32 stage, u32 kept) const {
        const u32 p = me(kept) % kProducers, row = p >> 3;
        return memory + stage * kStage + row * kChunk + ((p & 7) ^ swizzle(row)) * 16; // rows 16 apart have the same swizzle
    }
    // The groups take stages in turn, as many groups as there are stages.
    __device__ void produce() {
        const u32 kept = __shfl_sync(~0u, threadIdx.x, threadIdx.x & 31), stages = f.m2l_stages;
        const u32 group = __shfl_sync(~0u, (threadIdx.x - kConsumers) / kProducers, 0);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        constexpr u32 groups = GROUPS; // Hopper's shared memory has a stage for each
#else
        // Two groups that filled one stage would meet at the same barrier.
        const u32 groups = min(M2l::groups(), stages);
        if (group >= groups) return;
#endif
        u32 stage_of_tile = (group + groups - w.first % groups) % groups;
        if (stage_of_tile >= w.stages) return;
        u32 use = (w.first + stage_of_tile) / stages, stage = w.first + stage_of_tile - use * stages;
        Part part{};
        Sixteen<T> v[kPlanes];
        auto load_first = [&] {
            switch (part.rank) {
            case 0: load<0>(v, part, 0); break;
            case 1: load<1>(v, part, 0); break;
            case 2: load<2>(v, part, 0); break;
            default: load<3>(v, part, 0);
            }
        };
        begin(part, stage_of_tile, stage_of_tile, kept);
        load_first();
        while (true) {
            if (use) barriers.template wait<true>(kEmpty + stage, use - 1, kRing);
            unsigned char *const to = slot_in(stage, kept);
            switch (part.rank) {
            case 0: fill<0>(to, v, part); break;
            case 1: fill<1>(to, v, part); break;
            case 2: fill<2>(to, v, part); break;
            default: fill<3>(to, v, part);
            }
            barriers.arrive(kFull + stage, kRing);
            stage_of_tile += groups;
            if (stage_of_tile >= w.stages) return;
            stage += groups;
            while (stage >= stages) { stage -= stages; use++; }
            begin(part, stage_of_tile, stage_of_tile - groups, kept);
            load_first();
        }
    }

    T c[MT][NT][4];
    // Operator fragments of the next chunk, each on its way as soon as its slot is free; of the tiles that only long steps
    // have, of the next step.
    static constexpr int kEarly = NT < 2 || NT == 4 || (SPLIT == 4 && NT > 2) ? 1 : 2;
    Piece ring[kSteps][kEarly], late[NT - kEarly + 1];

    // What a warp multiplies of an orbit: first fragment; kHeadBias more than the steps of each of its tiles of rows. Behind the last: no steps.
    __device__ uint2 head_of(const TileList &l, int o) const {
        return o < l.count ? __ldg((const uint2 *)(f.m2l + kHeads) + l.number[o] * 8 + (threadIdx.x >> 5)) : make_uint2(0, kHeadBias * kHeadOnes);
    }
    __device__ const Piece *fragments_at(u32 first) const { return (const Piece *)f.operators + (size_t)first * 32 + (threadIdx.x & 31); }
    // Whether tile j takes part in a step: `left` is the head less that step in all its parts.
    static __device__ bool has(u32 left, int j) { return left & (kHeadBias + 1) << kHeadBits * j; }
    __device__ void fetch(int s, u32 left, const Piece *at) {
#pragma unroll
        for (int j = 0; j < kEarly; j++)
            if (has(left, j)) ring[s][j] = __ldg(at + (s * NT + j) * 32);
    }
    __device__ void fetch_late(u32 left, const Piece *at) {
#pragma unroll
        for (int j = kEarly; j < NT; j++)
            if (has(left, j)) late[j - kEarly] = __ldg(at + j * 32);
    }
    // Row fragments at a lane's two columns; with three products the part that TF32 holds, and the rest.
    struct Rows { T a[MT][4], rest[SPLIT >= 3 ? MT : 1][4]; };
    static __device__ void read(Rows &rows, const unsigned char *low, const unsigned char *high) {
#pragma unroll
        for (int m = 0; m < MT; m++) {
            T *a = rows.a[m];
            a[0] = *(const T *)(low + m * 16 * kChunk); a[1] = *(const T *)(low + (m * 16 + 8) * kChunk);
            a[2] = *(const T *)(high + m * 16 * kChunk); a[3] = *(const T *)(high + (m * 16 + 8) * kChunk);
        }
        if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const T x = rows.a[m][k], h = to_tf32(x);
                    rows.a[m][k] = h;
                    if constexpr (SPLIT >= 3) rows.rest[m][k] = to_tf32(x - h);
                }
        }
    }
    // For the last tile of a warp, which may be lent to another class.
    struct Other { bool is; int of; const u32 *planes; u32 classes; const unsigned char *low, *high; };
    static constexpr bool kTwoAhead = sizeof(T) == 4; // heads: in single precision an orbit is often but one chunk

    // Changes the sign where bit 31 of `sign` is set.
    static __device__ void flip_sign(double &x, u32 sign) { x = __longlong_as_double(__double_as_longlong(x) ^ (long long)((u64)(sign & 1u << 31) << 32)); }
    static __device__ void flip_sign(float &x, u32 sign) { x = __uint_as_float(__float_as_uint(x) ^ (sign & 1u << 31)); }

    // The signs are those of the planes of the lane's two columns. SPLIT 4: three products of one step, added to the others without the
    // tensor units, which truncate what they add to a sum.
    __device__ void multiply(int s, int j, const Rows &rows, u32 low, u32 high) {
        Piece &piece = j < kEarly ? ring[s][j < kEarly ? j : 0] : late[j < kEarly ? 0 : j - kEarly];
        flip_sign(piece.x, low); flip_sign(piece.y, high);
        const T b[2] = {piece.x, piece.y};
        if constexpr (SPLIT == 1) {
#pragma unroll
            for (int m = 0; m < MT; m++) mma(c[m][j], rows.a[m], b);
        } else {
            flip_sign(piece.z, low); flip_sign(piece.w, high);
            const T rest[2] = {piece.z, piece.w};
            if constexpr (SPLIT == 4 && !kTensorUnits) {
                const T whole[2] = {b[0] + rest[0], b[1] + rest[1]};
#pragma unroll
                for (int m = 0; m < MT; m++) mma(c[m][j], rows.a[m], whole);
            } else if constexpr (SPLIT == 4) {
#pragma unroll
                for (int m = 0; m < MT; m++) {
                    T sum[4] = {0, 0, 0, 0};
                    mma(sum, rows.a[m], rest);
                    mma(sum, rows.rest[m], b);
                    mma(sum, rows.a[m], b);
#pragma unroll
                    for (int k = 0; k < 4; k++) c[m][j][k] += sum[k];
                }
            } else {
#pragma unroll
                for (int m = 0; m < MT; m++) mma(c[m][j], rows.a[m], rest);
#pragma unroll
                for (int m = 0; m < MT; m++) mma(c[m][j], rows.rest[m], b);
#pragma unroll
                for (int m = 0; m < MT; m++) mma(c[m][j], rows.a[m], b);
            }
        }
    }
    // The tiles from J on that have the step; where one has it, those before it have it too.
    template <int J> __device__ void multiply_from(int s, u32 now, Rows &rows, u32 low, u32 high, const Other &other) {
        multiply(s, J, rows, low, high);
        if constexpr (J + 1 < NT) if (has(now, J + 1)) {
            if (J + 2 == NT && other.is) {
                const u32 planes = planes_for(*other.planes, other.of);
                low = plane_from(planes, other.classes); high = plane_from(planes, other.classes >> 8);
                read(rows, other.low + (low & 7) * kPlane, other.high + (high & 7) * kPlane);
                low <<= 28; high <<= 28;
            }
            multiply_from<J + 1>(s, now, rows, low, high, other);
        }
    }

    // Where a multiplying warp is, in one register: stage | parity of the ring's round << 8 | tile << 16.
    static __device__ void step_on(u32 &at, u32 stages) { if ((++at & 255) == stages) at = (at ^ 256) & ~255u; }

    __device__ void consume(const TileList &l, u32 &ring_at) {
        const int lane = threadIdx.x & 31, g = lane >> 2;
#if __CUDA_ARCH__ >= 900
        // What is the same in a warp's lanes is taken from one, so that the compiler knows; by a shuffle a number is kept, not computed
        // again and again.
        const int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0);
        const u32 t = sizeof(T) == 8 ? __shfl_sync(~0u, lane & 3, lane) : lane & 3;
#else
        const int warp = threadIdx.x >> 5;
        const u32 t = lane & 3;
#endif
        const u32 last_class = f.m2l[kSlotClass + warp * 8 + NT - 1], stages = f.m2l_stages;
        const u32 column = g * kChunk + (t ^ swizzle(g) * kVector) * (u32)sizeof(T); // of column t in a plane
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int j = 0; j < NT; j++)
#pragma unroll
                for (int k = 0; k < 4; k++) c[m][j][k] = 0;
        uint2 after = head_of(l, 0), later = kTwoAhead ? head_of(l, 1) : after;
        u32 left = __shfl_sync(~0u, after.y, 0);
        const Piece *at = fragments_at(__shfl_sync(~0u, after.x, 0));
#pragma unroll
        for (int s = 0; s < kSteps; s++) fetch(s, left - s * kHeadOnes, at);
        fetch_late(left, at);
        for (int o = 0; o < l.count; o++) {
            const u32 orbit = l.orbit[o], planes = planes_for(l.planes[o], warp);
            if (kTwoAhead) { after = later; later = head_of(l, o + 2); }
            else after = head_of(l, o + 1);
            const int steps = orbit >> 12 & 255, width = 1 << (orbit >> 20 & 3);
            int slot = 0;
            for (int first = 0; first < steps; first += kSteps) {
                u32 of[kSteps / 2];
#pragma unroll
                for (int s = 0; s < kSteps / 2; s++) of[s] = classes[(first / 2 + s) * 4 + t];
                const bool last = first + kSteps >= steps;
                u32 next = left - kSteps * kHeadOnes;
                const Piece *const here = at;
                at += kSteps * NT * 32;
                if (last) { next = __shfl_sync(~0u, after.y, 0); at = fragments_at(__shfl_sync(~0u, after.x, 0)); }
                const u32 stage = ring_at & 255;
                if (slot == 0) barriers.wait(kFull + stage, ring_at >> 8, kRing);
                const unsigned char *base = memory + stage * kStage + slot * kPlane;
#pragma unroll
                for (int s = 0; s < kSteps; s++) {
                    const u32 now = left - s * kHeadOnes;
                    if (has(now, 0)) {
                        const u32 classes_of = of[s / 2] >> 16 * (s & 1);
                        const unsigned char *x = base + (column ^ s * 8 * (u32)sizeof(T)), *y = base + (column ^ (s * 8 + 4) * (u32)sizeof(T));
                        const u32 low = plane_from(planes, classes_of), high = plane_from(planes, classes_of >> 8);
                        Rows rows;
                        read(rows, x + (low & 7) * kPlane, y + (high & 7) * kPlane);
                        multiply_from<0>(s, now, rows, low << 28, high << 28, Other{last_class != warp, (int)last_class, l.planes + o, classes_of, x, y});
                    }
                    fetch(s, next - s * kHeadOnes, at);
                    if (s + 1 < kSteps) fetch_late(now - kHeadOnes, here + (s + 1) * NT * 32);
                    else fetch_late(next, at);
                }
                left = next;
                slot += width;
                if (slot == kPlanes || last) {
                    slot = 0;
                    barriers.arrive(kEmpty + stage, kRing);
                    step_on(ring_at, stages);
                }
            }
        }
        write(l);
    }

    __device__ void write(const TileList &l) const {
        const u32 lane = thread() & 31, warp = thread() >> 5, nc = f.components;
        T *const local = (T *)f.local + (size_t)l.part * f.state->level_begin[1][kLevels] * nc * f.stride; // parts follow one another
#pragma unroll
        for (int j = 0; j < NT; j++) {
            const u32 *const columns = f.m2l + kColumns + (warp * 8 + j) * 8 + 2 * (lane & 3), x = __ldg(columns), y = __ldg(columns + 1);
#pragma unroll
            for (int m = 0; m < MT; m++) {
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const u32 r = m * 16 + h * 8 + (lane >> 2), cell = nc == 1 ? r : r / 3;
                    if (cell >= (u32)l.tile.count) continue;
                    T *const out = local + ((size_t)l.target[cell] * nc + r - cell * nc) * f.stride;
                    if (x != kNone) out[x] = c[m][j][2 * h];
                    if (y != kNone) out[y] = c[m][j][2 * h + 1];
                }
                read_later(); // the conditions of all rows would not fit the registers
            }
        }
    }
};

// Hopper: registers of the gathering warps for the multiplying ones.
template <int REGISTERS> __device__ inline void give_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}
template <int REGISTERS> __device__ inline void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}

// The multiplying warps, and the gathering ones: each go through the block's tiles, with lists of two of them in turn.
template <class M> __device__ void multiply_tiles(M &m) {
    for (u32 at = 0;; at += 1u << 16) {
        const u32 tile = at >> 16; // of which two bits matter
        const TileList &l = m.lists[tile & 1];
        m.barriers.template wait<true>(kTileReady + (tile & 1), tile >> 1, M::block());
        if (!l.more) break;
        m.consume(l, at);
        m.barriers.arrive(kDone + (at >> 16 & 1), M::block());
    }
}
template <class M> __device__ void gather_tiles(M &m) {
    while (true) {
        const u32 tile = m.w.listed;
        if (tile > 1) m.barriers.template wait<true>(kDone + (tile & 1), (tile >> 1) - 1, M::block());
        const bool more = m.list_tile(m.lists[tile & 1]);
        m.barriers.arrive(kTileReady + (tile & 1), M::block());
        if (!more) break;
        m.produce();
    }
    // Nobody is left waiting where others have arrived.
    const u32 stages = m.f.m2l_stages, number = m.w.first + m.w.stages, tile = m.w.listed;
    if (tile) m.barriers.template wait<true>(kDone + (tile - 1 & 1), tile - 1 >> 1, M::block());
    if (threadIdx.x < kConsumers + kProducers)
        for (u32 k = number - min(number, stages); k < number; k++) m.barriers.template wait<true>(kEmpty + k % stages, k / stages, M::kRing);
}

template <class T, int NT, int SPLIT, int MT, int GROUPS> __device__ void m2l(const Fmm &f) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ Work w;
    __shared__ TileList lists[2];
    __shared__ Barriers<kBarriers> barriers;
    __shared__ u32 classes[64];
    typedef M2l<T, NT, SPLIT, MT, GROUPS> M;
    for (int k = threadIdx.x; k < 64; k += blockDim.x) {
        const u32 *of = f.m2l + kClass + k / 4 * 16 + k % 4;
        classes[k] = (of[0] | of[4] << 8 | of[8] << 16 | of[12] << 24) * 4;
    }
    if (threadIdx.x < kBarriers) {
        const int barrier = threadIdx.x;
        barriers.open(barrier, barrier < kEmpty ? kProducers : barrier < kTileReady ? kConsumers : barrier < kDone ? M::gatherers() : kConsumers);
    }
    if (thread() == 0) w.first = w.stages = w.listed = 0; // seen behind the barrier of count_tiles
    count_tiles(f, w);
    M m{f, w, lists, barriers, memory, (uint2 *)(memory + f.m2l_stages * M::kStage), classes};
    if (threadIdx.x < kConsumers) {
        take_registers<sizeof(T) == 8 ? 160 : GROUPS == 2 ? 152 : 104>();
        multiply_tiles(m);
    } else {
        give_registers<sizeof(T) == 8 ? 96 : GROUPS == 2 ? 104 : 88>();
        gather_tiles(m);
    }
}

// Adds the parts of the M2L sums, in order. Launch: 256 threads, grid-stride.
template <class T> __device__ void add_parts(const Fmm &f) {
    const u32 parts = f.state->parts;
    if (parts < 2) return;
    const size_t n = (size_t)f.state->level_begin[1][kLevels] * f.components * f.stride;
    T *local = (T *)f.local;
    for (size_t k = (size_t)f.state->level_begin[1][m2l_top(f)] * f.components * f.stride + blockIdx.x * 256 + threadIdx.x; k < n; k += (size_t)gridDim.x * 256) {
        T x = local[k];
        for (u32 p = 1; p < parts; p++) x += local[p * n + k];
        local[k] = x;
    }
}
extern "C" __global__ void __launch_bounds__(256) fmm_add_parts_f32(const __grid_constant__ Fmm f) { add_parts<float>(f); }
extern "C" __global__ void __launch_bounds__(256) fmm_add_parts_f64(const __grid_constant__ Fmm f) { add_parts<double>(f); }

// Launch: 256 threads and 128 for each of GROUPS groups, a block a multiprocessor (they take tickets), dynamic shared memory: m2l_stages
// stages of 1024 * 16 MT bytes, then the lists: 4 (66 + 1) bytes a cell of the tile.
// GROUPS on Hopper, as `Recipe::m2l` says: elsewhere registers cannot be handed from warp to warp, and one group fewer leaves enough for all.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define MOST_THREADS(GROUPS) (kConsumers + GROUPS * kProducers)
#else
#define MOST_THREADS(GROUPS) (kConsumers + (GROUPS - 1) * kProducers)
#endif
#define M2L(name, T, NT, SPLIT, MT, GROUPS) \
    extern "C" __global__ void __launch_bounds__(MOST_THREADS(GROUPS), 1) fmm_m2l_##name(const __grid_constant__ Fmm f) { m2l<T, NT, SPLIT, MT, GROUPS>(f); }
M2L(f64_1, double, 1, 1, 3, 2)
M2L(f64_2, double, 2, 1, 3, 2)
M2L(f64_3, double, 3, 1, 3, 2)
M2L(f64_4, double, 4, 1, 3, 2)
M2L(f64_5, double, 5, 1, 2, 2)
M2L(f32_1, float, 1, 1, 3, 3)
M2L(f32_2, float, 2, 1, 3, 3)
M2L(f32_3, float, 3, 1, 3, 3)
M2L(f32x3_1, float, 1, 3, 3, 2)
M2L(f32x3_2, float, 2, 3, 3, 2)
M2L(f32x3_3, float, 3, 3, 3, 2)
M2L(f32x3_rounded_2, float, 2, 4, 3, 2)
M2L(f32x3_rounded_3, float, 3, 4, 3, 2)
M2L(f32x3_rounded_4, float, 4, 4, 3, 2)
M2L(f32x3_rounded_5, float, 5, 4, 2, 2)

// Launch: `m2l_small::threads` of backend::cuda::fmm threads, `m2l_small::blocks` blocks.
#define SMALL_M2L(name, T, SPLIT, MORE) \
    extern "C" __global__ void __launch_bounds__(32 * SmallM2l<T, SPLIT, MORE>::kWarps, 1) fmm_m2l_small_##name(const __grid_constant__ Fmm f) { m2l_small<T, SPLIT, MORE>(f); }
SMALL_M2L(f32_0, float, 1, 0)
SMALL_M2L(f32_1, float, 1, 1)
SMALL_M2L(f32_4, float, 1, 4)
SMALL_M2L(f32_8, float, 1, 8)
SMALL_M2L(f32x3_0, float, 3, 0)
SMALL_M2L(f32x3_1, float, 3, 1)
SMALL_M2L(f32x3_4, float, 3, 4)
SMALL_M2L(f32x3_8, float, 3, 8)
SMALL_M2L(f64_0, double, 1, 0)
SMALL_M2L(f64_1, double, 1, 1)
SMALL_M2L(f64_4, double, 1, 4)
SMALL_M2L(f64_8, double, 1, 8)
