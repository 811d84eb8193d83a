# make demo    the main road on a real program (sets the machine up first)
# make check   build and run all tests
# make soak    the long tiers: 10,000 random modules, fuzzing, full corpus
# make build   just the binary: build/lawson
# make parity  the decisions of --fusion=xla against XLA's, a target a row
# make bless   rewrite the golden files from today's output
.PHONY: build demo check soak parity bless format clean

BUILD := build
CTEST := ctest --test-dir $(BUILD) --output-on-failure -j 2

build:
	@tools/setup.sh build
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) --target lawson

demo: build
	@sh tools/demo.sh $(BUILD)/lawson

check:
	@tools/setup.sh check
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD)
	@$(CTEST) -LE soak

soak:
	@tools/setup.sh check
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD)
	@cmake --preset fuzz >/dev/null
	@cmake --build build-fuzz --target fuzz_text fuzz_proto fuzz_passes
	@LW_SOAK=1 $(CTEST) -L soak
	@ctest --test-dir build-fuzz --output-on-failure -R '^fuzz_.*_soak$$'

parity: build
	@tools/setup.sh check
	@cmake --build $(BUILD) --target fusion_tool
	@.venv/bin/python tests/fusion/parity_table.py $(BUILD)/lawson $(BUILD)/tests/fusion/fusion_tool

bless: build
	@tools/setup.sh check
	@.venv/bin/python tests/golden/golden.py --bless

format:
	@git ls-files '*.c' '*.h' | xargs clang-format-19 -i

clean:
	rm -rf build build-*
