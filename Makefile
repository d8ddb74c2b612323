# make            the release library
# make demo       the brownout program: builds everything, runs (two to four minutes), says where picture and files are
# make landing    the same with a rotor that lands, about as long
# make check      the quick tests, three to five minutes with building: format, clippy, unit tests, generated files, one test in C and one in Fortran
# make test       every kind of test: Rust, C, Fortran, Python, generated files, bad input; each step says its name
# make test WAKEFMM_TESTS=full   the same with every sweep at its whole length (an hour or more on two cores)
# make ci         what must hold at every commit, .ci/run; make ci-full: the second tier, once a day, .ci/full
# make test-mpi   plans over 2 and 4 processes in C and Fortran, where there is an MPI
# make memcheck   C tests under valgrind: the short ones, or all with WAKEFMM_TESTS=full
# make tsan       the C thread tests under ThreadSanitizer (nightly compiler with rust-src)
# make docs       links and spelling, the manual as pages, build/site, and rustdoc
# make fuzz       [SECONDS=20] of coverage-guided fuzzing under AddressSanitizer (nightly compiler)
# make accuracy   the table of measured errors of 4,000 sources on the CPU, a section of docs/accuracy.md
# make accuracy-gpu   the other sections, with a GPU: 4,000 sources on it, 100,000 on it and on the CPU
# make campaign   random problems against exact sums at all targets, 20,000 of them (hours on few cores); SEED=, PROBLEMS=, MORE=
# make bench      times on the CPU beside the direct sum's, leaves, crossover, linearity (about ten minutes)
# make wakes      wakes with cores on the CPU, one call and a warm plan beside the direct sum
# make generate   include/wakefmm.h and fortran/wakefmm.f90 from the Rust sources
# make install    [PREFIX=/usr/local] [DESTDIR=]: library, headers, Fortran module, pkg-config and CMake files
# make uninstall  with the same PREFIX and DESTDIR
# make dist       build/wakefmm-X.Y.Z.tar.gz, sources with every crate; builds without a network
# make notices    LICENSE-THIRD-PARTY, the licenses of the crates in the library, after Cargo.lock has changed
# make kernels    kernels/fatbin from kernels/*.cu, with the pinned compiler
# make kernels-check     whether kernels/fatbin is what kernels/*.cu compile to
# make packaging-check   the recipes of packaging/ by their own tools

# short or full: how long the sweeps of tests are. The Rust tests read it too (bench/support/tier.rs).
export WAKEFMM_TESTS ?= short
tier = $(if $(filter full,$(WAKEFMM_TESTS)),$(2),$(1))

CARGO   ?= cargo
RELEASE ?= $(or $(CARGO_TARGET_DIR),target)/release

.PHONY: all wakes demo landing check test test-rust test-accuracy accuracy accuracy-gpu campaign bench test-foreign test-consumers test-hostile test-faults test-corpus test-python fuzz tsan docs docs-pages docs-rust abi \
    memcheck generate gfortran ci ci-full
all:
	$(CARGO) build --release

demo: gfortran
	sh examples/fortran/brownout/demo.sh

landing: gfortran
	sh examples/fortran/brownout/demo.sh --case landing --output demo/landing

# Steps 3 to 8 need one core each, most of the time.
test: gfortran test-rust test-accuracy
	@printf '\n==== steps 3 to 8, two at a time; what one of them says is printed when it has ended\n'
	@$(MAKE) --no-print-directory -j2 --output-sync=target \
	    test-foreign test-consumers test-hostile test-faults test-corpus test-python

# The line that a step of make test begins with; its text has no comma, which would end the argument.
step = @printf '\n==== %s: step %s of 8: %s (%s)\n' "$@" $(1) $(2) "$$(date +%T)"

ci:
	bash .ci/run

ci-full:
	bash .ci/full

check: gfortran
	@CARGO="$(CARGO)" sh tests/quick.sh build/quick

# Not the examples, which clippy checks: building them takes half a minute, and no documentation has tests.
test-rust:
	$(call step,1,"Rust tests of the library and of the emulated GPU")
	$(CARGO) test --release --lib --tests

# Every distribution, tolerance and precision with some regularizations (full: all), then random problems for less than a minute (full:
# for an hour); fails where a tolerance is missed.
test-accuracy:
	$(call step,2,"errors against tolerances in a table and in random problems")
	$(CARGO) bench --bench accuracy -- $(call tier,n=1500 regularizations=some,n=4000)
	$(CARGO) bench --bench campaign -- $(call tier,problems=1500 maxn=4000 periodic=3 seconds=20,problems=20000 maxn=5000 periodic=3 seconds=3600)

# Tables, written down: a section of the page each.
accuracy:
	$(CARGO) bench --bench accuracy -- n=4000 file=docs/accuracy.md

# The GPU sums 100,000 sources directly for both tables of this size.
large = n=100000 regularizations=some leaves=0 reference=cuda
accuracy-gpu:
	$(CARGO) bench --bench accuracy -- n=4000 backend=cuda file=docs/accuracy.md
	$(CARGO) bench --bench accuracy -- $(large) backend=cuda file=docs/accuracy.md
	$(CARGO) bench --bench accuracy -- $(large) file=docs/accuracy.md

# Random problems against exact sums at all targets (docs/verification.md). MORE="backend=cuda": a GPU; MORE=only=NUMBER: one problem again.
campaign:
	$(CARGO) bench --bench campaign -- seed=$(or $(SEED),1) problems=$(or $(PROBLEMS),20000) $(MORE)

# Give the machine nothing else to do.
bench:
	$(CARGO) bench --bench speed

# After the Rust tests, so that both use one build of the library.
test-foreign: all gfortran
	$(call step,3,"C and C++ and Fortran and the exported symbols")
	sh tests/run.sh "$(RELEASE)" build/tests

# Strangers' projects against a fresh install.
test-consumers: all gfortran
	$(call step,4,"the binary interface and projects against a fresh install")
	sh tests/abi/check.sh "$(RELEASE)" build/abi
	sh tests/consumers/run.sh build/consumers

# Random sequences of calls with hostile arguments, strange floating-point modes, small stacks, fork(), steady memory; random
# sequences of good calls, each field against a fresh plan's.
test-hostile: all
	$(call step,5,"random sequences of good and bad calls")
	mkdir -p build/hostile
	$(CC) -std=gnu11 -Wall -Wextra -g -O1 -fsanitize=address,undefined -Iinclude tests/hostile/sequences.c -L"$(RELEASE)" \
	    -lwakefmm -Wl,-rpath,"$(abspath $(RELEASE))" -lm -lpthread -o build/hostile/sequences
	timeout 600 build/hostile/sequences $(or $(SEQUENCES),$(call tier,5000,20000)) 0
	$(CC) -std=gnu11 -Wall -Wextra -O1 -Iinclude tests/hostile/sequences.c -L"$(RELEASE)" -lwakefmm \
	    -Wl,-rpath,"$(abspath $(RELEASE))" -lm -lpthread -o build/hostile/steady
	timeout 600 build/hostile/steady 1000 $(or $(EVALUATIONS),$(call tier,3000,10000))
	$(CC) -std=gnu11 -Wall -Wextra -O1 -Iinclude tests/hostile/differences.c -L"$(RELEASE)" -lwakefmm \
	    -Wl,-rpath,"$(abspath $(RELEASE))" -lm -o build/hostile/differences
	timeout 600 build/hostile/differences $(or $(PLANS),$(call tier,50,150)) 20

# Every allocation fails, one after the other.
test-faults: all
	$(call step,6,"every allocation fails once")
	mkdir -p build/faults
	$(CC) -std=gnu11 -Wall -Wextra -g -O1 -Iinclude tests/faults/no_memory.c -L"$(RELEASE)" -lwakefmm \
	    -Wl,-rpath,"$(abspath $(RELEASE))" -lm -o build/faults/no_memory
	timeout 900 build/faults/no_memory
	$(CC) -std=gnu11 -Wall -Wextra -g -O1 -DELEMENTS=$(call tier,300,600) -Iinclude tests/faults/no_memory_flow.c \
	    -L"$(RELEASE)" -lwakefmm -Wl,-rpath,"$(abspath $(RELEASE))" -lm -o build/faults/no_memory_flow
	timeout 900 build/faults/no_memory_flow

# What fuzzing has found worth keeping, again, with the ordinary library.
test-corpus: all
	$(call step,7,"what fuzzing has found")
	mkdir -p build/fuzz
	$(CC) -std=gnu11 -Wall -Wextra -g -O1 -fsanitize=address,undefined -Iinclude tests/fuzz/replay.c tests/fuzz/calls.c \
	    -L"$(RELEASE)" -lwakefmm -Wl,-rpath,"$(abspath $(RELEASE))" -lm -o build/fuzz/replay
	ASAN_OPTIONS=allocator_may_return_null=1 timeout 300 build/fuzz/replay tests/fuzz/corpus

# The Python package, by pip in a fresh environment; skipped with a line where Python or PyPI is not to be had.
test-python:
	$(call step,8,"the Python package")
	sh python/run_tests.sh "$(CURDIR)/build/python"

# Coverage-guided fuzzing for SECONDS on one core; needs a nightly compiler. Short: a fuzzer that is built with little
# optimization.
fuzz:
	QUICK=$(call tier,1,) sh tests/fuzz/run.sh $(or $(SECONDS),$(call tier,20,600)) $(abspath build/fuzz)

# The C thread tests, the library and Rust's own under ThreadSanitizer (nightly compiler with rust-src; some minutes).
tsan:
	sh tests/sanitize.sh build/tsan

# Links and spelling, the manual as pages (MkDocs) and the Rust side (rustdoc).
docs: docs-pages docs-rust

docs-pages:
	sh docs/links.sh
	sh docs/spelling.sh
	sh docs/build.sh

docs-rust:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps

# Give the machine nothing else to do.
wakes:
	$(CARGO) bench --bench wakes

# Writes down what was added to the binary interface.
abi: all
	sh tests/abi/check.sh "$(RELEASE)" build/abi --write

memcheck: all
	sh tests/memcheck.sh "$(RELEASE)" build/memcheck $(call tier,"values bad_input flow" "logging objects overlap",)

generate:
	WFMM_GENERATE=1 $(CARGO) test --test generated

gfortran:
	@sh tests/gfortran.sh

include kernels/kernels.mk
include packaging/install.mk
include packaging/mpi.mk
include packaging/dist.mk
