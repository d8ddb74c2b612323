// The direct sums in double precision; see direct.cuh.
#include "direct.cuh"
ALL_DIRECT(double)
