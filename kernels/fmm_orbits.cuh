// Orbits of M2L. An orbit is a class of offsets, in cell widths, that differ in the signs of their components only: up to eight, which
// share one operator up to signs. Here: where the sources of a target cell's offsets are, the planes that their transform has, and the lists that the
// warps of fmm_m2l hand to one another.
#pragma once
#include "fmm_mma.cuh"

namespace fmm {

constexpr int kConsumers = 256, kProducers = 128, kStages = 4, kChunk = 128; // threads that multiply, of a group that gathers; bytes of a row in a plane
constexpr int kPlanes = 8; // of a stage: the planes of one chunk of columns, or where they are fewer, those of several chunks
constexpr u32 kSplitCells = 32768; // M2L sums of a tile are taken in parts while the parts' cells are at most so many

constexpr int kMaxStages = 832, kMaxCells = 48; // of a tile: 12 orbits at most have spans of eight signs, with 16 chunks each, the others half as many stages

// Index among the cells beside a parent of the one at `d`, or -1.
__device__ inline int beside_at(const int *d) {
    const int far = (abs(d[0]) > 1) + (abs(d[1]) > 1) + (abs(d[2]) > 1);
    if (far == 0) return d[0] + 1 + 3 * (d[1] + 1) + 9 * (d[2] + 1);
    for (int k = 0; k < 3; k++)
        if (abs(d[k]) == 2 && d[(k + 1) % 3] == 0 && d[(k + 2) % 3] == 0) return 27 + 2 * k + (d[k] > 0);
    return -1;
}
constexpr int kNowhere = 8 << 8;
// The source at offset σ (target - source = ± the orbit's offset): cell beside the parent | octant << 8, or kNowhere.
__device__ inline int source_at(u32 orbit, int sign, int octant) {
    int p[3], child = 0;
    for (int k = 0; k < 3; k++) {
        const int d = orbit >> 4 * k & 15;
        if (d == 0 && sign >> k & 1) return kNowhere;
        const int v = (octant >> k & 1) - (sign >> k & 1 ? -d : d);
        p[k] = v >> 1; child |= (v & 1) << k;
    }
    const int n = beside_at(p);
    return n < 0 ? kNowhere : n | child << 8;
}

// The 2^rank signs that those in `signs` span: rank | origin << 2 | vectors << 5, 8, 11.
__device__ inline u32 span_of(u32 signs) {
    const int origin = __ffs(signs) - 1;
    u32 rank = 0, vectors = 0, reached = 1u << origin;
    while (signs & ~reached) {
        const int v = (__ffs(signs & ~reached) - 1) ^ origin;
        vectors |= (u32)v << 3 * rank++;
        u32 more = reached; // those at σ ^ v
        if (v & 1) more = (more & 0x55) << 1 | (more & 0xaa) >> 1;
        if (v & 2) more = (more & 0x33) << 2 | (more & 0xcc) >> 2;
        if (v & 4) more = (more & 0x0f) << 4 | (more & 0xf0) >> 4;
        reached |= more;
    }
    return rank | origin << 2 | vectors << 5;
}
// Which plane p_k is, and in bit 3 its sign.
__device__ inline u32 plane_of(u32 span, int k) {
    u32 plane = (__popc(span >> 2 & 7 & k) & 1) << 3;
    for (int i = 0; i < 3; i++) plane |= (__popc(span >> (5 + 3 * i) & 7 & k) & 1) << i;
    return plane;
}
// The sign number v of the span.
__device__ inline int sign_of(u32 span, int v) {
    int sign = span >> 2 & 7;
    for (int i = 0; i < (int)(span & 3); i++) if (v >> i & 1) sign ^= span >> (5 + 3 * i) & 7;
    return sign;
}

// The table of planes by k ^ a instead of k.
__device__ inline u32 planes_for(u32 planes, int a) {
    const int by = (a & 1) * 4;
    planes = (planes << by & 0xf0f0f0f0) | (planes >> by & 0x0f0f0f0f);
    planes = __byte_perm(planes, 0, 0x3210 ^ (a >> 1 & 1) * 0x1111);
    return __funnelshift_r(planes, planes, (a & 4) * 4);
}
// The plane and sign of a column of class `four_times / 4`, whose higher bits do not matter.
__device__ inline u32 plane_from(u32 planes, u32 four_times) { return __funnelshift_r(planes, planes, four_times); }

// What the multiplying warps need of a tile: its cells and the orbits that have a source.
struct TileList {
    Tile tile;
    int part, count;
    bool more;
    u32 orbit[kMaxOrbits];       // x | y << 4 | z << 8 | steps << 12 | rank << 20
    u32 planes[kMaxOrbits];      // four bits for each k: which plane | sign << 3
    u32 target[kMaxCells];
    unsigned char number[kMaxOrbits];
};
// What the gathering warps need besides.
struct Work {
    u32 used[kBeside];                // octants that exist beside the parents of any of the tile's cells
    u32 found[kMaxOrbits], found_planes[kMaxOrbits], found_signs[kMaxOrbits]; // by number: as TileList::orbit, with 1 << 24 where there is a source, ...
    unsigned short source[kMaxOrbits][8]; // by number: where the source of each sign is, as `source_at`
    unsigned short stage[kMaxStages]; // number of the orbit | number of the first chunk of columns << 8
    u32 first, stages, listed; // stages before the tile, of it; tiles that have been listed
    u32 bin_tiles[kBins], bin_first[kBins]; // tiles and cells before a bin
    u32 tiles, parts;
};

// Tiles and cells before each (level, octant), from level `m2l_top` on; how many parts a tile's sums are taken in.
__device__ inline void count_tiles(const Fmm &f, Work &w) {
    if (threadIdx.x < 32) {
        constexpr int kEach = (kBins + 31) / 32;
        u32 n[kEach], tiles = 0, cells = 0;
        for (int k = 0; k < kEach; k++) {
            const int b = threadIdx.x * kEach + k;
            n[k] = b < kBins ? f.state->bin_count[b] : 0;
            cells += n[k];
            if (b >= 8 * (int)m2l_top(f)) tiles += (n[k] + f.m2l_cells - 1) / f.m2l_cells;
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
            if (b >= 8 * (int)m2l_top(f)) tiles_to += (n[k] + f.m2l_cells - 1) / f.m2l_cells;
        }
        if (threadIdx.x == 0) {
            // Few tiles do not fill the chip: then the orbits of one are shared out, to a part for each block at most.
            w.tiles = all;
            w.parts = max(1u, min(8u, min(gridDim.x / max(all, 1u), kSplitCells / max(all * f.m2l_cells, 1u))));
            f.state->parts = w.parts;
        }
    }
    __syncthreads();
}

} // namespace fmm
