// What driver.cpp, trees.cpp and own_sources.cpp ask of one another.
#pragma once
#include "threads.h"

namespace emulated {

const Kernel *find_kernel(const char *unit, const char *name);

// What is to be done after the last kernel that makes the trees of a small problem; after others nothing.
Body comparison(const Kernel &kernel, void **arguments);
// The same after the near field.
Body check_of_own_sources(const Kernel &kernel, void **arguments);

} // namespace emulated
