// M2L: the multipoles of the far cells beside a cell's parent, translated to its local expansion.
//
// Offsets that differ only in signs, an orbit of up to eight, share one product. A reflection of an axis changes the signs of
// some coefficients only: by how a coefficient behaves under the three of them it is in one of eight classes, numbers of three
// bits. With S_σ those signs, M(σd) = S_σ M(d) S_σ, hence the sum over an orbit is, for a coefficient i of class a,
//   Σ_σ (S_σ M S_σ s_σ)_i = Σ_j M_ij p_{a^b(j), j},   p_k = Σ_σ (-1)^{bits of σ&k} s_σ:
// the Walsh-Hadamard transform of the eight sources, and then one product instead of eight.
//
// A block owns a tile of rows (expansions of cells of one octant and level) and keeps their sums in registers. Four warps
// gather the sources of an orbit, 128 bytes of each row at a time, transform them in registers and put the eight planes
// into a ring of stages in shared memory; eight warps, one a class of rows of the operator, multiply them on the tensor
// units. What an orbit contributes less than the tolerance was left out when the tables were made (staircase).
#include "fmm_mma.cuh"
using namespace fmm;

constexpr int kConsumers = 256, kProducers = 128, kStages = 4, kChunk = 128; // threads that multiply, of a group that gathers; bytes of a row in a stage
constexpr u32 kSplitCells = 32768; // M2L sums of a tile are taken in parts while the parts' cells are at most so many

constexpr int kMaxChunks = kMaxOrbits * 16;

template <class T> struct alignas(16) Sixteen { T v[16 / sizeof(T)]; };

// The warp's lanes meet first: they come from branches.
template <int THREADS> __device__ inline void wait_for(int barrier) {
    __syncwarp();
#ifdef WFMM_EMULATED
    emulated::barrier(barrier, THREADS, true);
#else
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
#endif
}
template <int THREADS> __device__ inline void arrive_at(int barrier) {
    __threadfence_block();
    __syncwarp();
#ifdef WFMM_EMULATED
    emulated::barrier(barrier, THREADS, false);
#else
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
#endif
}
constexpr int kFull = 1, kEmpty = kFull + kStages; // numbers of barriers

// Place among the cells beside a parent of the one at `d`, or -1.
__device__ inline int beside_at(const int *d) {
    const int far = (abs(d[0]) > 1) + (abs(d[1]) > 1) + (abs(d[2]) > 1);
    if (far == 0) return d[0] + 1 + 3 * (d[1] + 1) + 9 * (d[2] + 1);
    for (int k = 0; k < 3; k++)
        if (abs(d[k]) == 2 && d[(k + 1) % 3] == 0 && d[(k + 2) % 3] == 0) return 27 + 2 * k + (d[k] > 0);
    return -1;
}
// The source at offset σ (target - source = ± the orbit's place): cell beside the parent | octant << 8, or -1.
__device__ inline int source_at(u32 orbit, int sign, int octant) {
    int p[3], child = 0;
    for (int k = 0; k < 3; k++) {
        const int d = orbit >> 4 * k & 15;
        if (d == 0 && sign >> k & 1) return -1;
        const int v = (octant >> k & 1) - (sign >> k & 1 ? -d : d);
        p[k] = v >> 1; child |= (v & 1) << k;
    }
    const int n = beside_at(p);
    return n < 0 ? -1 : n | child << 8;
}

// Axes along which an orbit's offsets are zero.
__device__ inline int zeros_of(u32 orbit) { return (orbit & 15 ? 0 : 1) | (orbit & 0xf0 ? 0 : 2) | (orbit & 0xf00 ? 0 : 4); }

// The orbits that have a source in this tile, and the tile itself.
struct Work {
    Tile tile;
    int part;
    bool more;
    u32 used[kBeside];             // octants that exist beside the parents of any of the tile's cells
    u32 orbit[kMaxOrbits];         // x | y << 4 | z << 8 | steps << 12 | signs that have a source << 24
    int number[kMaxOrbits], count, chunks;
    short source[kMaxOrbits][8];   // where the source of each sign is, as `source_at`
    unsigned short chunk[kMaxChunks]; // place in `orbit` | number of the chunk of its columns << 8
    u32 bin_tiles[kBins], bin_first[kBins]; // tiles and cells before a bin
    u32 tiles, parts;
};

template <class T, int NT, int SPLIT, int MT, int GROUPS> struct M2l {
    static constexpr int kRows = 16 * MT, kWide = kChunk / sizeof(T), kSteps = kWide / 8, kVector = 16 / sizeof(T), kPlane = kRows * kChunk, kStage = 8 * kPlane;
    typedef typename Table<T, SPLIT>::Piece Piece;
    const Fmm &f;
    Work &w;
    unsigned char *memory;
    uint2 *beside_of; // [cells][kBeside]: first child, children
    u32 *target;      // [cells]
    const u32 *classes; // [columns / 16][4]: of columns t, t + 4, t + 8 and t + 12

    // 16-byte places of a row are exchanged so that neither the gathering nor the multiplying warps meet in a bank.
    static __device__ int swizzle(int row) { return sizeof(T) == 8 ? (row & 3) << 1 : row & 7; }

    __device__ void gather_tile() {
        const int tid = threadIdx.x, threads = kConsumers + GROUPS * kProducers, cells = f.m2l_cells;
        for (int k = tid; k < cells; k += threads) target[k] = k < w.tile.count ? f.tile_cell[w.tile.first + k] : kNone;
        if (tid < kBeside) w.used[tid] = 0;
        __syncthreads();
        for (int k = tid; k < cells * kBeside; k += threads) {
            const int cell = k / kBeside, n = k - cell * kBeside;
            uint2 found = make_uint2(0, 0);
            if (cell < w.tile.count) {
                const u32 p = f.near[(size_t)f.tree[1].parent[target[cell]] * kBeside + n];
                if (p != kNone) found = make_uint2(f.tree[0].child[p], info_children(f.tree[0].info[p]));
                if (found.y) atomicOr(&w.used[n], found.y);
            }
            beside_of[k] = found;
        }
        __syncthreads();
        if (tid < 32) {
            const int orbits = f.m2l[kOrbitCount];
            int count = 0, chunks = 0;
            for (int base = 0; base < orbits; base += 32) {
                const int o = base + tid;
                u32 orbit = 0, signs = 0;
                if (o < orbits && (int)(o % w.parts) == w.part) {
                    orbit = f.m2l[o];
                    for (int s = 0; s < 8; s++) {
                        const int e = source_at(orbit, s, w.tile.octant);
                        if (e >= 0 && w.used[e & 255] >> (e >> 8) & 1) signs |= 1u << s;
                    }
                }
                const u32 b = __ballot_sync(~0u, signs != 0);
                const int at = count + __popc(b & ((1u << tid) - 1)), n = signs ? ((int)(orbit >> 12 & 255) + kSteps - 1) / kSteps : 0;
                int end = n;
                for (int d = 1; d < 32; d <<= 1) { const int x = __shfl_up_sync(~0u, end, d); if (tid >= d) end += x; }
                if (signs) {
                    w.orbit[at] = orbit | signs << 24; w.number[at] = o;
                    for (int k = 0; k < n; k++) w.chunk[chunks + end - n + k] = (unsigned short)(at | k << 8);
                    for (int s = 0; s < 8; s++) w.source[at][s] = (short)source_at(orbit, s, w.tile.octant);
                }
                count += __popc(b);
                chunks += __shfl_sync(~0u, end, 31);
            }
            if (tid == 0) { w.count = count; w.chunks = chunks; }
        }
        __syncthreads();
    }

    // Lane 8 r + s: place of the source of sign s of the warp's row r (of four), in units of 16 bytes. Where there is none, that
    // of the root, which is zero.
    __device__ u32 find_source(int o, int row) const {
        const int e = w.source[o][threadIdx.x & 7], nc = f.components, cell = min(nc == 1 ? row : row / 3, (int)f.m2l_cells - 1), d = nc == 1 ? 0 : row % 3;
        u32 found = 0;
        if (e >= 0) {
            const uint2 b = beside_of[cell * kBeside + (e & 255)];
            if (b.y >> (e >> 8) & 1) found = b.x + __popc(b.y & ((1u << (e >> 8)) - 1));
        }
        return (found * nc + d) * (f.stride / kVector);
    }
    // The sources of 16 bytes of a row over the signs of an orbit that is zero along the axes ZEROS.
    template <int ZEROS> static __device__ void load(Sixteen<T> *v, const Sixteen<T> *base, u32 place, u32 signs, bool is) {
#pragma unroll
        for (int s = 0; s < 8; s++) {
            if (s & ZEROS) continue;
            const u32 at = __shfl_sync(~0u, place, (threadIdx.x & 24) + s);
            if (is && signs >> s & 1) v[s] = *at_place(base, at);
            else v[s] = Sixteen<T>{};
        }
    }
    static __device__ const Sixteen<T> *at_place(const Sixteen<T> *base, u32 place) {
#ifdef WFMM_EMULATED
        return base + place;
#else
        u64 address;
        asm("mad.wide.u32 %0, %1, 16, %2;" : "=l"(address) : "r"(place), "l"(base));
        return (const Sixteen<T> *)address;
#endif
    }
    // Their sums and differences, to the planes.
    template <int ZEROS> static __device__ void store(Sixteen<T> *v, unsigned char *to) {
#pragma unroll
        for (int bit = 1; bit < 8; bit *= 2)
#pragma unroll
            for (int s = 0; s < 8; s++) {
                if (ZEROS & bit || s & (bit | ZEROS)) continue;
#pragma unroll
                for (int k = 0; k < kVector; k++) {
                    const T x = v[s].v[k], y = v[s | bit].v[k];
                    v[s].v[k] = x + y; v[s | bit].v[k] = x - y;
                }
            }
#pragma unroll
        for (int s = 0; s < 8; s++) if (!(s & ZEROS)) *(Sixteen<T> *)(to + s * kPlane) = v[s];
    }
    // One chunk of an orbit: `wide` places of 16 bytes from `first` on of all rows. Where registers are enough, the next
    // loads are under way while one is stored.
    template <int ZEROS> __device__ void gather_chunk(unsigned char *to, const u32 *place, u32 signs, int first, int wide, int p) {
        constexpr bool kAhead = ZEROS != 0;
        const int c = p & 7, row = p >> 3;
        const bool is = c < wide;
        const Sixteen<T> *base = (const Sixteen<T> *)f.multipole + first + c;
        to += row * kChunk + (c ^ swizzle(row)) * 16; // rows 16 apart have the same swizzle
        Sixteen<T> v[kAhead ? 2 : 1][8];
        if (kAhead) load<ZEROS>(v[0], base, place[0], signs, is);
#pragma unroll
        for (int n = 0; n < MT; n++) {
            if (!kAhead) load<ZEROS>(v[0], base, place[n], signs, is);
            else if (n + 1 < MT) load<ZEROS>(v[(n + 1) & kAhead], base, place[n + 1], signs, is);
            if (is) store<ZEROS>(v[n & kAhead], to + n * 16 * kChunk);
        }
    }

    // The groups take chunks in turn. A stage always belongs to the same group: the number of stages is a multiple of theirs, or
    // where there are fewer stages than groups, each has one and the other groups rest.
    __device__ void produce() {
        const int p = threadIdx.x % kProducers, stages = f.m2l_stages, groups = min(GROUPS, stages), chunks = w.chunks;
        int turn = (threadIdx.x - kConsumers) / kProducers, before = -1, stage = turn;
        if (turn >= groups) return;
        u32 place[MT];
        for (; turn < chunks; turn += groups) {
            const int chunk = w.chunk[turn], o = chunk & 255, first = chunk >> 8;
            const u32 orbit = w.orbit[o], signs = orbit >> 24;
            if (o != before) {
                before = o;
#pragma unroll
                for (int n = 0; n < MT; n++) place[n] = find_source(o, (p >> 3) + 16 * n);
            }
            if (turn >= stages) wait_for<kConsumers + kProducers>(kEmpty + stage);
            const int wide = min((int)(orbit >> 12 & 255) * 8 - first * kWide, kWide) / kVector, at = first * (kWide / kVector);
            unsigned char *to = memory + stage * kStage;
            switch (zeros_of(orbit)) {
            case 0: gather_chunk<0>(to, place, signs, at, wide, p); break;
            case 1: gather_chunk<1>(to, place, signs, at, wide, p); break;
            case 2: gather_chunk<2>(to, place, signs, at, wide, p); break;
            case 3: gather_chunk<3>(to, place, signs, at, wide, p); break;
            case 4: gather_chunk<4>(to, place, signs, at, wide, p); break;
            case 5: gather_chunk<5>(to, place, signs, at, wide, p); break;
            case 6: gather_chunk<6>(to, place, signs, at, wide, p); break;
            }
            arrive_at<kConsumers + kProducers>(kFull + stage);
            stage += groups;
            if (stage >= stages) stage -= stages;
        }
    }

    T c[MT][NT][4];
    Piece ring[kSteps][NT]; // operator fragments of the next chunk, each on its way as soon as its place is free

    __device__ void fetch(int s, u32 head, int step) {
        const Piece *all = (const Piece *)f.operators + (threadIdx.x & 31);
#pragma unroll
        for (int j = 0; j < NT; j++) {
            const u32 h = __shfl_sync(~0u, head, j);
            if (step < (int)(h & 63)) ring[s][j] = __ldg(all + (size_t)((h >> 6) + step) * 32);
        }
    }
    __device__ u32 head_of(int o) const {
        const int lane = threadIdx.x & 31;
        return o < w.count && lane < NT ? __ldg(f.m2l + kHeads + w.number[o] * 64 + (threadIdx.x >> 5) * 8 + lane) : 0;
    }
    // Row fragments of class `a` at column k (and k + 4) of the stage.
    __device__ static void rows_of(T (*a)[4], const unsigned char *low, const unsigned char *high) {
#pragma unroll
        for (int m = 0; m < MT; m++) {
            a[m][0] = *(const T *)(low + m * 16 * kChunk); a[m][1] = *(const T *)(low + (m * 16 + 8) * kChunk);
            a[m][2] = *(const T *)(high + m * 16 * kChunk); a[m][3] = *(const T *)(high + (m * 16 + 8) * kChunk);
        }
    }
    __device__ void multiply(int s, int j, const T (*a)[4]) {
#pragma unroll
        for (int m = 0; m < MT; m++) {
            if constexpr (sizeof(T) == 8) { const T b[2] = {ring[s][j].x, ring[s][j].y}; mma(c[m][j], a[m], b); }
            else if constexpr (SPLIT == 1) {
                const T h[4] = {to_tf32(a[m][0]), to_tf32(a[m][1]), to_tf32(a[m][2]), to_tf32(a[m][3])}, b[2] = {ring[s][j].x, ring[s][j].y};
                mma(c[m][j], h, b);
            } else {
                T h[4], r[4];
                for (int k = 0; k < 4; k++) { h[k] = to_tf32(a[m][k]); r[k] = to_tf32(a[m][k] - h[k]); }
                const T b[2] = {ring[s][j].x, ring[s][j].y}, rest[2] = {ring[s][j].z, ring[s][j].w};
                mma(c[m][j], h, rest); mma(c[m][j], r, b); mma(c[m][j], h, b);
            }
        }
    }

    __device__ void consume() {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
        const u32 last_class = f.m2l[kSlotClass + warp * 8 + NT - 1];
        const int stages = f.m2l_stages, sw = swizzle(g) * kVector;
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int j = 0; j < NT; j++)
#pragma unroll
                for (int k = 0; k < 4; k++) c[m][j][k] = 0;
        u32 head = head_of(0), after = head_of(1);
#pragma unroll
        for (int s = 0; s < kSteps; s++) fetch(s, head, s);
        int stage = 0, used = 0;
        for (int o = 0; o < w.count; o++) {
            const u32 orbit = w.orbit[o], later = head_of(o + 2);
            const int steps = orbit >> 12 & 255, keep = 7 & ~zeros_of(orbit);
            int end[NT], most = 0;
#pragma unroll
            for (int j = 0; j < NT; j++) { end[j] = __shfl_sync(~0u, head, j) & 63; most = max(most, end[j]); }
            for (int first = 0; first < steps; first += kSteps) {
                u32 of[kSteps / 2];
#pragma unroll
                for (int s = 0; s < kSteps / 2; s++) of[s] = classes[(first / 2 + s) * 4 + t];
                const bool last = first + kSteps >= steps;
                wait_for<kConsumers + kProducers>(kFull + stage);
                const unsigned char *base = memory + stage * kStage + g * kChunk;
#pragma unroll
                for (int s = 0; s < kSteps; s++) {
                    const int step = first + s;
                    if (step < most) {
                        const int low = of[s / 2] >> 16 * (s & 1) & 7, high = of[s / 2] >> (16 * (s & 1) + 8) & 7;
                        const unsigned char *at = base + ((s * 8 + t) ^ sw) * sizeof(T), *at4 = base + ((s * 8 + t + 4) ^ sw) * sizeof(T);
                        T a[MT][4];
                        rows_of(a, at + ((low ^ warp) & keep) * kPlane, at4 + ((high ^ warp) & keep) * kPlane);
#pragma unroll
                        for (int j = 0; j < NT; j++)
                            if (step < end[j]) {
                                if (NT > 1 && j == NT - 1 && last_class != warp) rows_of(a, at + ((low ^ last_class) & keep) * kPlane, at4 + ((high ^ last_class) & keep) * kPlane);
                                multiply(s, j, a);
                            }
                    }
                    fetch(s, last ? after : head, last ? s : step + kSteps);
                }
                if (used + stages < w.chunks) arrive_at<kConsumers + kProducers>(kEmpty + stage);
                if (++stage == stages) stage = 0;
                used++;
            }
            head = after; after = later;
        }
        write();
    }

    __device__ void write() const {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, nc = f.components;
        T *local = (T *)f.local + (size_t)w.part * f.state->level_begin[1][kLevels] * nc * f.stride; // parts follow one another
#pragma unroll
        for (int j = 0; j < NT; j++) {
            const u32 x = f.m2l[kColumns + (warp * 8 + j) * 8 + 2 * (lane & 3)], y = f.m2l[kColumns + (warp * 8 + j) * 8 + 2 * (lane & 3) + 1];
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int r = m * 16 + h * 8 + (lane >> 2), cell = r / nc;
                    if (cell >= w.tile.count) continue;
                    T *out = local + ((size_t)target[cell] * nc + r - cell * nc) * f.stride;
                    if (x != kNone) out[x] = c[m][j][2 * h];
                    if (y != kNone) out[y] = c[m][j][2 * h + 1];
                }
        }
    }
};

// Tiles and cells before each (level, octant), from level 2 on; how many parts a tile's sums are taken in.
__device__ inline void count_tiles(const Fmm &f, Work &w) {
    if (threadIdx.x < 32) {
        constexpr int kEach = (kBins + 31) / 32;
        u32 n[kEach], tiles = 0, cells = 0;
        for (int k = 0; k < kEach; k++) {
            const int b = threadIdx.x * kEach + k;
            n[k] = b < kBins ? f.state->bin_count[b] : 0;
            cells += n[k];
            if (b >= 16) tiles += (n[k] + f.m2l_cells - 1) / f.m2l_cells;
        }
        u32 tiles_to = tiles, cells_to = cells;
        for (int d = 1; d < 32; d <<= 1) {
            const u32 x = __shfl_up_sync(~0u, tiles_to, d), y = __shfl_up_sync(~0u, cells_to, d);
            if ((int)threadIdx.x >= d) { tiles_to += x; cells_to += y; }
        }
        const u32 all = __shfl_sync(~0u, tiles_to, 31);
        tiles_to -= tiles; cells_to -= cells;
        for (int k = 0; k < kEach; k++) {
            const int b = threadIdx.x * kEach + k;
            if (b >= kBins) break;
            w.bin_tiles[b] = tiles_to; w.bin_first[b] = cells_to;
            cells_to += n[k];
            if (b >= 16) tiles_to += (n[k] + f.m2l_cells - 1) / f.m2l_cells;
        }
        if (threadIdx.x == 0) {
            // Few tiles do not fill the chip: then the orbits of one are shared out.
            w.tiles = all;
            w.parts = max(1u, min(8u, min(3 * gridDim.x / max(all, 1u), kSplitCells / max(all * f.m2l_cells, 1u))));
            f.state->parts = w.parts;
        }
    }
    __syncthreads();
}

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

template <class T, int NT, int SPLIT, int MT, int GROUPS> __device__ void m2l(const Fmm &f) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ Work w;
    __shared__ u32 classes[64];
    typedef M2l<T, NT, SPLIT, MT, GROUPS> M;
    const int cells = f.m2l_cells;
    uint2 *beside_of = (uint2 *)(memory + f.m2l_stages * M::kStage);
    u32 *target = (u32 *)(beside_of + cells * kBeside);
    for (int k = threadIdx.x; k < 64; k += blockDim.x) {
        const u32 *of = f.m2l + kClass + k / 4 * 16 + k % 4;
        classes[k] = of[0] | of[4] << 8 | of[8] << 16 | of[12] << 24;
    }
    count_tiles(f, w);
    auto next = [&] {
        __syncthreads();
        if (threadIdx.x == 0) {
            const u32 turn = atomicAdd(&f.state->work_ticket[0], 1u), tile = turn / w.parts;
            w.part = turn % w.parts;
            w.more = tile < w.tiles;
            if (w.more) {
                int low = 16, high = kBins;
                while (high - low > 1) { const int m = (low + high) / 2; if (w.bin_tiles[m] <= tile) low = m; else high = m; }
                const u32 begin = (tile - w.bin_tiles[low]) * cells, n = (low + 1 < kBins ? w.bin_first[low + 1] : f.state->level_begin[1][kLevels]) - w.bin_first[low];
                w.tile = {low / 8, low % 8, (int)(w.bin_first[low] + begin), (int)min(n - begin, (u32)cells)};
            }
        }
        __syncthreads();
        return w.more;
    };
    M m{f, w, memory, beside_of, target, classes};
    if (threadIdx.x < kConsumers) {
        take_registers<GROUPS == 2 ? 168 : 120>();
        while (next()) { m.gather_tile(); m.consume(); }
    } else {
        give_registers<GROUPS == 2 ? 88 : 80>();
        while (next()) { m.gather_tile(); m.produce(); }
    }
}

// Adds the parts of the M2L sums, in order. Launch: 256 threads, grid-stride.
template <class T> __device__ void add_parts(const Fmm &f) {
    const u32 parts = f.state->parts;
    if (parts < 2) return;
    const size_t n = (size_t)f.state->level_begin[1][kLevels] * f.components * f.stride;
    T *local = (T *)f.local;
    for (size_t k = (size_t)f.state->level_begin[1][2] * f.components * f.stride + blockIdx.x * 256 + threadIdx.x; k < n; k += (size_t)gridDim.x * 256) {
        T x = local[k];
        for (u32 p = 1; p < parts; p++) x += local[p * n + k];
        local[k] = x;
    }
}
extern "C" __global__ void __launch_bounds__(256) fmm_add_parts_f32(const __grid_constant__ Fmm f) { add_parts<float>(f); }
extern "C" __global__ void __launch_bounds__(256) fmm_add_parts_f64(const __grid_constant__ Fmm f) { add_parts<double>(f); }

// Launch: 256 threads and 128 for each group, a block a multiprocessor (they take tickets), dynamic shared memory: m2l_stages
// stages of 1024 * 16 MT bytes, then the lists: 4 (66 + 1) bytes a cell of the tile.
#define M2L(name, T, NT, SPLIT, MT, GROUPS) \
    extern "C" __global__ void __launch_bounds__(kConsumers + GROUPS * kProducers, 1) fmm_m2l_##name(const __grid_constant__ Fmm f) { m2l<T, NT, SPLIT, MT, GROUPS>(f); }
M2L(f64_1, double, 1, 1, 3, 2)
M2L(f64_2, double, 2, 1, 3, 2)
M2L(f64_3, double, 3, 1, 3, 2)
M2L(f64_4, double, 4, 1, 3, 2)
M2L(f64_5, double, 5, 1, 2, 2)
M2L(f32_1, float, 1, 1, 3, 3)
M2L(f32_2, float, 2, 1, 3, 3)
M2L(f32_3, float, 3, 1, 3, 3)
M2L(f32x3_1, float, 1, 3, 3, 3)
M2L(f32x3_2, float, 2, 3, 3, 3)
M2L(f32x3_3, float, 3, 3, 3, 3)
