// Before kernels/fmm_tree.cu: the kernels of clusters as the compiler for Hopper sees them, with nothing in place of their PTX. Only
// they: what that compiler alone knows is in other headers, too.
#include "fmm_small.cuh"
#undef WFMM_EMULATED
#define __CUDA_ARCH__ 900
#include "fmm_cluster.cuh"
#undef __CUDA_ARCH__
#define WFMM_EMULATED 1
