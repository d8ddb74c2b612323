# make kernels: compile kernels/*.cu to kernels/fatbin with the pinned compiler. make kernels-check: the same, and compare.
.PHONY: kernels kernels-check
kernels:
	sh kernels/compile.sh "$$(sh kernels/toolchain.sh)" kernels/fatbin
kernels-check:
	sh kernels/compile.sh --stale kernels/fatbin
	sh kernels/check.sh "$$(sh kernels/toolchain.sh)" build/kernels-check
