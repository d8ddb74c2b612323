# make mpi [MPICC=mpicc]       build/mpi/libwakefmm_mpi.so, the thin layer over the user's MPI
# make test-mpi                C and Fortran over 1, 2 and 4 processes; one line where there is no MPI
# make install-mpi             part of install: source always; library and pkg-config file where MPICC is found, else an older
#                              layer is removed. Nothing is written to the checkout.
#
# Another MPI later: mpicc -shared -fPIC -I PREFIX/include PREFIX/include/wakefmm/wakefmm_mpi.c -lwakefmm -o libwakefmm_mpi.so

MPICC     ?= mpicc
MPI_BUILD ?= build/mpi

.PHONY: mpi test-mpi install-mpi
mpi:
	@mkdir -p "$(MPI_BUILD)"
	$(MPICC) -std=c11 -Wall -Wextra -O2 -fPIC -shared -Wl,-soname,libwakefmm_mpi.so.$(WFMM_ABI) -Iinclude src/mpi/wakefmm_mpi.c \
	    -L"$(RELEASE)" -lwakefmm -o "$(MPI_BUILD)/libwakefmm_mpi.so"
	@ln -sf libwakefmm_mpi.so "$(MPI_BUILD)/libwakefmm_mpi.so.$(WFMM_ABI)"

test-mpi: all
	@printf '\n==== test-mpi: C and Fortran over MPI\n'
	sh tests/mpi/run.sh "$(RELEASE)" build/mpi

install-mpi:
	install -d "$(TO)/$(LIBDIR)/pkgconfig" "$(TO)/$(INCLUDEDIR)/wakefmm"
	install -m 644 src/mpi/wakefmm_mpi.h "$(TO)/$(INCLUDEDIR)"
	install -m 644 src/mpi/wakefmm_mpi.c src/mpi/wakefmm_mpi.F90 "$(TO)/$(INCLUDEDIR)/wakefmm"
	@if command -v $(firstword $(MPICC)) >/dev/null; then \
	  work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && \
	  $(MAKE) -s --no-print-directory mpi MPI_BUILD="$$work" && \
	  install -m 755 "$$work/libwakefmm_mpi.so" "$(TO)/$(LIBDIR)/libwakefmm_mpi.so.$(WFMM_VERSION)" && \
	  ($(call linked,libwakefmm_mpi)) && \
	  $(call filled,packaging/wakefmm-mpi.pc.in,$(TO)/$(LIBDIR)/pkgconfig,wakefmm-mpi.pc); \
	else \
	  rm -f "$(TO)/$(LIBDIR)"/libwakefmm_mpi.so* "$(TO)/$(LIBDIR)/pkgconfig/wakefmm-mpi.pc"; \
	  echo "no MPI compiler ($(MPICC)): libwakefmm_mpi is installed as source only"; \
	fi
	$(loader_cache)
