// The direct sums in single precision; see direct.cuh.
#include "direct.cuh"
ALL_DIRECT(float)
