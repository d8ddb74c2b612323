# make install [PREFIX=/usr/local] [DESTDIR=] [FC=gfortran]: the library as C, C++ and Fortran projects look for it.
#
#   lib/       libwakefmm.so.X.Y.Z with links libwakefmm.so.ABI and libwakefmm.so, libwakefmm.a,
#              pkgconfig/wakefmm.pc, cmake/wakefmm/; libwakefmm_mpi and wakefmm-mpi.pc where there is an MPI (mpi.mk)
#   include/   wakefmm.h, wakefmm.hpp, wakefmm/wakefmm.f90 and, where there is a Fortran compiler,
#              wakefmm/COMPILER-MAJOR/ with the compiled module and its archive libwakefmm_fortran.a
#
# Version and ABI number are those of Cargo.toml. wakefmm.pc and the CMake package find the prefix from where they lie,
# so that the tree may be moved.

PREFIX     ?= /usr/local
LIBDIR     ?= lib
INCLUDEDIR ?= include
CARGO      ?= cargo
ifeq ($(origin FC),default)
FC         := gfortran
endif
STRIP      ?= strip
RELEASE    ?= $(or $(CARGO_TARGET_DIR),target)/release

WFMM_VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | sed -n 1p)
WFMM_ABI     := $(shell sed -n '/metadata.capi.library/,/^$$/s/^version = "\([0-9]*\).*/\1/p' Cargo.toml)
TO           := $(DESTDIR)$(PREFIX)
FC_FOLDER     = $(notdir $(firstword $(FC)))-$(shell $(FC) -dumpversion 2>/dev/null | cut -d. -f1)
FILL         := sed -e 's|@VERSION@|$(WFMM_VERSION)|' -e 's|@ABI@|$(WFMM_ABI)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
                -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|'

.PHONY: library install install-files install-fortran uninstall packaging-check cinstall-check
library:
	$(CARGO) build --release --lib

install: library install-files install-fortran install-mpi

# Debug sections are left out; `make install STRIP=true` keeps them.
install-files:
	install -d "$(TO)/$(LIBDIR)/pkgconfig" "$(TO)/$(LIBDIR)/cmake/wakefmm" "$(TO)/$(INCLUDEDIR)/wakefmm"
	install -m 755 $(RELEASE)/libwakefmm.so "$(TO)/$(LIBDIR)/libwakefmm.so.$(WFMM_VERSION)"
	install -m 644 $(RELEASE)/libwakefmm.a "$(TO)/$(LIBDIR)/libwakefmm.a"
	$(STRIP) --strip-debug "$(TO)/$(LIBDIR)/libwakefmm.so.$(WFMM_VERSION)"
	$(STRIP) --strip-debug "$(TO)/$(LIBDIR)/libwakefmm.a"
	ln -sf libwakefmm.so.$(WFMM_VERSION) "$(TO)/$(LIBDIR)/libwakefmm.so.$(WFMM_ABI)"
	ln -sf libwakefmm.so.$(WFMM_ABI) "$(TO)/$(LIBDIR)/libwakefmm.so"
	install -m 644 include/wakefmm.h include/wakefmm.hpp "$(TO)/$(INCLUDEDIR)"
	install -m 644 fortran/wakefmm.f90 "$(TO)/$(INCLUDEDIR)/wakefmm"
	$(FILL) packaging/wakefmm.pc.in > "$(TO)/$(LIBDIR)/pkgconfig/wakefmm.pc"
	$(FILL) packaging/cmake/wakefmmConfig.cmake.in > "$(TO)/$(LIBDIR)/cmake/wakefmm/wakefmmConfig.cmake"
	$(FILL) packaging/cmake/wakefmmConfigVersion.cmake.in > "$(TO)/$(LIBDIR)/cmake/wakefmm/wakefmmConfigVersion.cmake"

# A .mod is good for one compiler and its major version: it lies in a folder of that name. Others compile wakefmm.f90.
install-fortran:
	@if command -v $(firstword $(FC)) >/dev/null; then \
	  to="$(TO)/$(INCLUDEDIR)/wakefmm/$(FC_FOLDER)"; mkdir -p "$$to" && \
	  $(FC) -O2 -fPIC -J"$$to" -c fortran/wakefmm.f90 -o "$$to/wakefmm.o" && \
	  rm -f "$$to/libwakefmm_fortran.a" && ar rcs "$$to/libwakefmm_fortran.a" "$$to/wakefmm.o" && rm "$$to/wakefmm.o"; \
	else echo "no Fortran compiler ($(FC)): the module is installed as source only"; fi

uninstall:
	rm -f "$(TO)/$(LIBDIR)"/libwakefmm_mpi.so* "$(TO)/$(LIBDIR)/pkgconfig/wakefmm-mpi.pc" "$(TO)/$(INCLUDEDIR)/wakefmm_mpi.h"
	rm -f "$(TO)/$(LIBDIR)"/libwakefmm.so* "$(TO)/$(LIBDIR)/libwakefmm.a" "$(TO)/$(LIBDIR)/pkgconfig/wakefmm.pc"
	rm -f "$(TO)/$(INCLUDEDIR)/wakefmm.h" "$(TO)/$(INCLUDEDIR)/wakefmm.hpp"
	rm -rf "$(TO)/$(INCLUDEDIR)/wakefmm" "$(TO)/$(LIBDIR)/cmake/wakefmm"

# The recipes of packaging/ by their own tools, against an installation of this tree.
packaging-check: library
	rm -rf build/packaging/prefix
	$(MAKE) -s --no-print-directory install-files install-fortran PREFIX="$(CURDIR)/build/packaging/prefix" DESTDIR=
	sh packaging/check.sh build/packaging/prefix build/packaging

# What `cargo cinstall` installs beside what `make install` does; needs cargo-c.
cinstall-check: packaging-check
	sh packaging/cinstall.sh build/packaging/prefix build/packaging/cinstall
