# make dist: build/wakefmm-X.Y.Z.tar.gz, the committed sources with every crate beside them; builds without a network.
.PHONY: dist
dist:
	@[ -e .git ] || { echo "make dist needs a git checkout: it archives the committed files"; exit 1; }
	rm -rf build/dist && mkdir -p build/dist/wakefmm-$(WFMM_VERSION)
	git archive HEAD | tar x -C build/dist/wakefmm-$(WFMM_VERSION)
	cd build/dist/wakefmm-$(WFMM_VERSION) && $(CARGO) vendor --locked vendor > ../vendored.toml && \
	    cat ../vendored.toml >> .cargo/config.toml
	tar c -C build/dist wakefmm-$(WFMM_VERSION) | gzip -9 > build/wakefmm-$(WFMM_VERSION).tar.gz
	@echo "build/wakefmm-$(WFMM_VERSION).tar.gz"
