// Smooth corrections in periodic boxes.
#define WFMM_PERIODIC
#include "fmm_smooth.cu"
