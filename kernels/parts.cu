// Targets divided among the devices of one process (src/backend/cuda/distributed/parts.rs): each gets a range of a Morton curve. Every device
// divides all of them by the same arithmetic, without a product that a sum could be joined with, so that all find the same parts.
#include "positions.cuh"
#include "scan.cuh"

// Most parts, numbers of an extent (gather.cu), keys from which the cuts are taken, bits of a coordinate in a key.
constexpr int kMostParts = 64;
constexpr int kExtent = 7;
constexpr int kKeys = 2048;
constexpr int kBits = 21;
// Targets that a warp takes.
constexpr int kShare = 1024;
constexpr unsigned kAll = 0xffffffffu;

// Coordinates to cells of the box of all targets, and the first key of every part but the first.
struct Cuts {
    double low[3], scale;
    unsigned long long first[kMostParts];
};

WFMM_DEVICE unsigned long long interleaved(unsigned long long x) {
    x = (x | x << 32) & 0x001f00000000ffffull;
    x = (x | x << 16) & 0x001f0000ff0000ffull;
    x = (x | x << 8) & 0x100f00f00f00f00full;
    x = (x | x << 4) & 0x10c30c30c30c30c3ull;
    return (x | x << 2) & 0x1249249249249249ull;
}

WFMM_DEVICE unsigned long long key_of(const Cuts& cuts, const Reals& position, long long k) {
    unsigned long long key = 0;
    for (int c = 0; c < 3; c++) {
        const double cell = times(read(position, 3 * k + c) - cuts.low[c], cuts.scale), last = (1 << kBits) - 1;
        key |= interleaved(cell > 0 ? cell < last ? (unsigned long long)cell : (unsigned long long)last : 0) << (2 - c);
    }
    return key;
}

// Box and cuts, from the extents of `n_rows` blocks: the cuts are quantiles of the keys of some targets, all over the array. One block of 1024.
WFMM_KERNEL parts_cuts(Reals position, long long n, const double* rows, int n_rows, int parts, Cuts* out) {
    __shared__ unsigned long long s_key[kKeys];
    __shared__ Cuts s_cuts;
    __shared__ double s_edge[3];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp < 3) {
        double low = rows[warp], high = rows[3 + warp];
        for (int row = lane; row < n_rows; row += 32) {
            low = fmin(low, rows[kExtent * row + warp]);
            high = fmax(high, rows[kExtent * row + 3 + warp]);
        }
        for (int step = 16; step > 0; step /= 2) {
            low = fmin(low, __shfl_xor_sync(kAll, low, step));
            high = fmax(high, __shfl_xor_sync(kAll, high, step));
        }
        if (lane == 0) {
            s_cuts.low[warp] = low;
            s_edge[warp] = high - low;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const double edge = fmax(s_edge[0], fmax(s_edge[1], s_edge[2]));
        s_cuts.scale = edge > 0 ? (1 << kBits) / edge : 0.0;
    }
    __syncthreads();
    const int keys = n < kKeys ? (int)n : kKeys;
    for (int s = threadIdx.x; s < kKeys; s += 1024) s_key[s] = s < keys ? key_of(s_cuts, position, s * n / keys) : ~0ull;
    __syncthreads();
    // A bitonic sort, a pair of keys a thread.
    for (int run = 2; run <= kKeys; run *= 2)
        for (int apart = run / 2; apart > 0; apart /= 2) {
            const int a = 2 * (threadIdx.x & ~(apart - 1)) + (threadIdx.x & (apart - 1)), b = a + apart;
            const unsigned long long x = s_key[a], y = s_key[b];
            if ((x > y) == !(a & run)) { s_key[a] = y; s_key[b] = x; }
            __syncthreads();
        }
    if (threadIdx.x < parts) s_cuts.first[threadIdx.x] = threadIdx.x ? s_key[(int)((long long)threadIdx.x * keys / parts)] : 0;
    __syncthreads();
    if (threadIdx.x == 0) *out = s_cuts;
}

// Each target's part, and for each part and warp how many of the warp's targets it gets, [part][warp]. Block 256; a warp for each kShare.
WFMM_KERNEL parts_count(Reals position, long long n, const Cuts* cuts, int parts, unsigned char* part, unsigned* counts) {
    __shared__ unsigned s_count[8][kMostParts];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long me = blockIdx.x * 8ll + warp, warps = gridDim.x * 8ll, first = me * kShare, end = first + kShare < n ? first + kShare : n;
    for (int p = lane; p < parts; p += 32) s_count[warp][p] = 0;
    __syncwarp();
    for (long long base = first; base < end; base += 32) {
        const long long k = base + lane;
        int mine = parts;
        if (k < end) {
            const unsigned long long key = key_of(*cuts, position, k);
            for (mine = 0; mine + 1 < parts && cuts->first[mine + 1] <= key;) mine++;
            part[k] = (unsigned char)mine;
        }
        const unsigned peers = __match_any_sync(kAll, mine);
        if (mine < parts && !(peers & ((1u << lane) - 1))) s_count[warp][mine] += __popc(peers);
        __syncwarp();
    }
    for (int p = lane; p < parts; p += 32) counts[p * warps + me] = s_count[warp][p];
}

// Counts become the rows where they begin; `starts` has the first row of each part, and the number of all. One block of 1024.
WFMM_KERNEL parts_scan(unsigned* counts, long long warps, int parts, unsigned* starts) {
    __shared__ unsigned s_sum[32];
    unsigned before = 0, all;
    for (long long base = 0; base < parts * warps; base += 1024, before += all) {
        const long long k = base + threadIdx.x;
        const unsigned row = before + sum_before(k < parts * warps ? counts[k] : 0, s_sum, all);
        if (k >= parts * warps) continue;
        counts[k] = row;
        if (k % warps == 0) starts[k / warps] = row;
    }
    if (threadIdx.x == 0) starts[parts] = before;
}

// Of each row its target, in the order of the caller within a part; and the positions of part `own`, `words` of 32 bits each. As parts_count.
WFMM_KERNEL parts_place(const unsigned* position, int words, long long n, const unsigned char* part, int parts, const unsigned* counts, const unsigned* starts, int own,
                        unsigned* order, unsigned* own_position) {
    __shared__ unsigned s_row[8][kMostParts];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long me = blockIdx.x * 8ll + warp, warps = gridDim.x * 8ll, first = me * kShare, end = first + kShare < n ? first + kShare : n;
    for (int p = lane; p < parts; p += 32) s_row[warp][p] = counts[p * warps + me];
    __syncwarp();
    for (long long base = first; base < end; base += 32) {
        const long long k = base + lane;
        const int mine = k < end ? part[k] : parts;
        const unsigned peers = __match_any_sync(kAll, mine), before = peers & ((1u << lane) - 1);
        const unsigned to = mine < parts ? s_row[warp][mine] : 0;
        __syncwarp();
        if (mine < parts && !before) s_row[warp][mine] = to + __popc(peers);
        __syncwarp();
        if (mine == parts) continue;
        const unsigned row = to + __popc(before);
        order[row] = (unsigned)k;
        if (mine == own)
            for (int w = 0; w < words; w++) own_position[(long long)words * (row - starts[own]) + w] = position[words * k + w];
    }
}

// Of the rows of all parts those of the targets from `first` to `end`, in the caller's order; `words` of 32 bits each. Any block, a thread a word.
WFMM_KERNEL parts_back(const unsigned* rows, int words, long long n, const unsigned* order, long long first, long long end, unsigned* out) {
    const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x, row = at / words;
    if (row >= n) return;
    const long long k = order[row];
    if (k >= first && k < end) out[words * (k - first) + at % words] = rows[at];
}
