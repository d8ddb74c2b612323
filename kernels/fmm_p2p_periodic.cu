// The near field in periodic boxes: sources of ranges are moved by the image that a range is of.
#define WFMM_PERIODIC
#include "fmm_p2p.cu"
