// What threads.cpp and shared.cpp ask of one another.
#pragma once
#include "threads.h"

namespace emulated {

// Blocks that run at the same time at most; each has a slot.
constexpr unsigned kMostBlocks = 8;
unsigned slot(const Thread *thread);
// That of block `rank` of the running thread's cluster, whose shared memory may be reached now.
unsigned slot_in_cluster(unsigned rank);

// Before a launch with so many dynamic bytes; before a block begins and after it has ended.
void begin_shared(size_t bytes);
void fill_shared(unsigned slot);
void check_shared(unsigned slot);

} // namespace emulated
