// Shared memory of the blocks that run together, see threads.h: for each what the launch asks for, and then its variables, which
// get their addresses as threads come to them. All is full of numbers that are none before a block begins.
#include "shared.h"
#include <cstdlib>
#include <cstring>
#include <vector>

namespace emulated {

namespace {

constexpr size_t kBeyond = 64, kDynamic = 227 << 10, kStatic = 64 << 10, kBlock = kDynamic + (1 << 10) + kStatic;
constexpr unsigned kRankShift = 24; // of an address: the block's rank in the cluster, plus one

struct Variable { const void *name; size_t at; };

alignas(1024) unsigned char memory[kMostBlocks][kBlock];
std::vector<Variable> variables;
size_t asked, end;

// Of a block: FAKE_CUDA_SHARED as in tests/fake_driver/cuda.c, else Hopper's.
size_t most() {
    static const char *const asked = getenv("FAKE_CUDA_SHARED");
    return asked ? atoi(asked) : kMostShared;
}
size_t variables_begin() { return kDynamic + (1 << 10); }
unsigned char *mine() { return memory[slot(current)]; }

} // namespace

void begin_shared(size_t bytes) {
    if (bytes > most()) fail("%zu bytes of shared memory", bytes);
    variables.clear();
    asked = bytes; end = variables_begin();
}

void fill_shared(unsigned slot) {
    memset(memory[slot], 0xff, asked + kBeyond);
    memset(memory[slot] + variables_begin(), 0xff, end - variables_begin());
}

void check_shared(unsigned slot) {
    for (size_t k = asked; k < asked + kBeyond; k++) if (memory[slot][k] != 0xff) fail("writes beyond the %zu bytes of shared memory", asked);
}

unsigned char *dynamic_memory() { return mine(); }

void *variable(const void *name, size_t bytes, size_t alignment) {
    for (const Variable &v : variables) if (v.name == name) return mine() + v.at;
    const size_t at = (end + alignment - 1) / alignment * alignment;
    end = at + bytes;
    const size_t all = asked + end - variables_begin();
    if (end > kBlock || all > most()) fail("%zu bytes of shared memory", all);
    for (auto &block : memory) memset(block + at, 0xff, bytes);
    variables.push_back({name, at});
    return mine() + at;
}

unsigned shared_address(const void *p) {
    const size_t at = (const unsigned char *)p - mine();
    if (at >= kBlock) fail("an address that is not in the block's shared memory");
    return (unsigned)at;
}

unsigned address_in(unsigned rank, unsigned address) {
    slot_in_cluster(rank);
    return address | (rank + 1) << kRankShift;
}

void store_shared(unsigned address, const void *value, size_t bytes) {
    const unsigned rank = address >> kRankShift, at = address & ((1u << kRankShift) - 1);
    if (at + bytes > kBlock || at % bytes) fail("a store to address %08x", address);
    memcpy((rank ? memory[slot_in_cluster(rank - 1)] : mine()) + at, value, bytes);
}

} // namespace emulated
