# make install [PREFIX=/usr/local] [DESTDIR=] [FC=gfortran]: the library as C, C++ and Fortran projects look for it.
#
#   lib/       libwakefmm.so.X.Y.Z with links libwakefmm.so.ABI and libwakefmm.so, libwakefmm.a,
#              pkgconfig/wakefmm.pc, cmake/wakefmm/; libwakefmm_mpi and wakefmm-mpi.pc where there is an MPI (mpi.mk)
#   include/   wakefmm.h, wakefmm.hpp, wakefmm/wakefmm.f90 and, where there is a Fortran compiler,
#              wakefmm/COMPILER-MAJOR/ with the compiled module and its archive libwakefmm_fortran.a
#   share/     doc/wakefmm/ with the licenses of the library and of the crates in it
#
# LIBDIR and INCLUDEDIR are paths below PREFIX, of one or more components (LIBDIR=lib/x86_64-linux-gnu).
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
LDCONFIG   ?= ldconfig
RELEASE    ?= $(or $(CARGO_TARGET_DIR),target)/release

WFMM_VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | sed -n 1p)
WFMM_ABI     := $(shell sed -n '/metadata.capi.library/,/^$$/s/^version = "\([0-9]*\).*/\1/p' Cargo.toml)
TO           := $(DESTDIR)$(PREFIX)
FC_FOLDER     = $(notdir $(firstword $(FC)))-$(shell $(FC) -dumpversion 2>/dev/null | cut -d. -f1)
# From LIBDIR back to PREFIX: one `..` a component.
UP           := $(shell echo "$(LIBDIR)" | sed -e 's|//*|/|g' -e 's|/$$||' -e 's|[^/][^/]*|..|g')
FILL         := sed -e 's|@VERSION@|$(WFMM_VERSION)|' -e 's|@ABI@|$(WFMM_ABI)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
                -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@UP@|$(UP)|'
LICENSES     := LICENSE LICENSE-MIT LICENSE-APACHE LICENSE-THIRD-PARTY

# $(call filled,TEMPLATE,FOLDER,NAME): a template with its values, readable by all whatever the umask is.
filled = $(FILL) $(1) > "$(2)/$(3)" && chmod 644 "$(2)/$(3)"

# $(call linked,NAME): the links of a library. The file that the link of this ABI led to before is removed; libraries of other
# ABI versions stay, since programs may need them.
linked = cd "$(TO)/$(LIBDIR)" && old=$$(readlink $(1).so.$(WFMM_ABI) || true) && \
    case "$$old" in */* | "" | $(1).so.$(WFMM_VERSION)) ;; $(1).so.*) rm -f "$$old" ;; esac && \
    ln -sf $(1).so.$(WFMM_VERSION) $(1).so.$(WFMM_ABI) && ln -sf $(1).so.$(WFMM_ABI) $(1).so

# The loader finds what is new in a folder of its configuration only after ldconfig, which needs the rights of root.
define loader_cache
@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then \
  PATH="$$PATH:/usr/sbin:/sbin"; \
  $(LDCONFIG) -N -X -v 2>/dev/null | sed -n 's|^\(/[^:]*\):.*|\1|p' | while IFS= read -r folder; do \
    if [ "$$folder" -ef "$(PREFIX)/$(LIBDIR)" ]; then echo "$(LDCONFIG)"; $(LDCONFIG); break; fi; \
  done; \
fi
endef

.PHONY: library install install-files install-fortran uninstall notices packaging-check cinstall-check
library:
	$(CARGO) build --release --lib

# One after the other also under make -j. The other targets do not ask for the library: as root they run no cargo.
install: library
	$(MAKE) --no-print-directory install-files install-fortran install-mpi
ifneq ($(filter install-files,$(MAKECMDGOALS)),)
install-fortran install-mpi: | install-files
endif

# Debug sections are left out; `make install STRIP=true` keeps them.
# Modules that were compiled from another wakefmm.f90 are removed.
install-files:
	@case "$(LIBDIR) $(INCLUDEDIR)" in /* | *" /"*) echo "LIBDIR and INCLUDEDIR are paths below PREFIX: LIBDIR=lib64"; exit 1 ;; esac
	install -d "$(TO)/$(LIBDIR)/pkgconfig" "$(TO)/$(LIBDIR)/cmake/wakefmm" "$(TO)/$(INCLUDEDIR)/wakefmm" "$(TO)/share/doc/wakefmm"
	install -m 755 "$(RELEASE)/libwakefmm.so" "$(TO)/$(LIBDIR)/libwakefmm.so.$(WFMM_VERSION)"
	install -m 644 "$(RELEASE)/libwakefmm.a" "$(TO)/$(LIBDIR)/libwakefmm.a"
	$(STRIP) --strip-debug "$(TO)/$(LIBDIR)/libwakefmm.so.$(WFMM_VERSION)"
	$(STRIP) --strip-debug "$(TO)/$(LIBDIR)/libwakefmm.a"
	$(call linked,libwakefmm)
	@cmp -s fortran/wakefmm.f90 "$(TO)/$(INCLUDEDIR)/wakefmm/wakefmm.f90" || rm -rf "$(TO)/$(INCLUDEDIR)/wakefmm"/*-*/
	install -m 644 include/wakefmm.h include/wakefmm.hpp "$(TO)/$(INCLUDEDIR)"
	install -m 644 fortran/wakefmm.f90 "$(TO)/$(INCLUDEDIR)/wakefmm"
	install -m 644 $(LICENSES) "$(TO)/share/doc/wakefmm"
	$(call filled,packaging/wakefmm.pc.in,$(TO)/$(LIBDIR)/pkgconfig,wakefmm.pc)
	$(call filled,packaging/cmake/wakefmmConfig.cmake.in,$(TO)/$(LIBDIR)/cmake/wakefmm,wakefmmConfig.cmake)
	$(call filled,packaging/cmake/wakefmmConfigVersion.cmake.in,$(TO)/$(LIBDIR)/cmake/wakefmm,wakefmmConfigVersion.cmake)
	$(loader_cache)

# A .mod is good for one compiler and its major version: it lies in a folder of that name. Others compile wakefmm.f90.
# Every compiler writes the module to the working directory; options for another folder differ.
install-fortran:
	@if ! command -v $(firstword $(FC)) >/dev/null; then \
	  echo "no Fortran compiler ($(FC)): the module is installed as source only"; \
	else \
	  work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && to="$(TO)/$(INCLUDEDIR)/wakefmm/$(FC_FOLDER)" && \
	  (cd "$$work" && $(FC) -O2 -fPIC -c "$(CURDIR)/fortran/wakefmm.f90" -o wakefmm.o && ar rcs libwakefmm_fortran.a wakefmm.o) && \
	  if ls "$$work"/*.mod >/dev/null 2>&1; then \
	    install -d "$$to" && install -m 644 "$$work"/*.mod "$$work/libwakefmm_fortran.a" "$$to"; \
	  else echo "$(FC) wrote no file wakefmm.mod: the module is installed as source only"; fi; \
	fi

uninstall:
	rm -f "$(TO)/$(LIBDIR)"/libwakefmm_mpi.so* "$(TO)/$(LIBDIR)/pkgconfig/wakefmm-mpi.pc" "$(TO)/$(INCLUDEDIR)/wakefmm_mpi.h"
	rm -f "$(TO)/$(LIBDIR)"/libwakefmm.so* "$(TO)/$(LIBDIR)/libwakefmm.a" "$(TO)/$(LIBDIR)/pkgconfig/wakefmm.pc"
	rm -f "$(TO)/$(INCLUDEDIR)/wakefmm.h" "$(TO)/$(INCLUDEDIR)/wakefmm.hpp"
	rm -rf "$(TO)/$(INCLUDEDIR)/wakefmm" "$(TO)/$(LIBDIR)/cmake/wakefmm" "$(TO)/share/doc/wakefmm"
	$(loader_cache)

# LICENSE-THIRD-PARTY from the packages of Cargo.lock.
notices:
	CARGO="$(CARGO)" python3 packaging/notices.py

# The recipes of packaging/ by their own tools, against an installation of this tree.
packaging-check: library
	rm -rf build/packaging/prefix
	$(MAKE) -s --no-print-directory install-files install-fortran PREFIX="$(CURDIR)/build/packaging/prefix" DESTDIR=
	sh packaging/check.sh build/packaging/prefix build/packaging
	sh packaging/check_install.sh "$(RELEASE)" build/packaging/install
	CARGO="$(CARGO)" python3 packaging/notices.py --check

# What `cargo cinstall` installs beside what `make install` does; needs cargo-c.
cinstall-check: packaging-check
	sh packaging/cinstall.sh build/packaging/prefix build/packaging/cinstall
