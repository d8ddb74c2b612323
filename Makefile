include kernels/kernels.mk
