# The two commands of the README, and what contributors and CI need. Everything is set up in .venv
# on the first call, and again when the sources of the extension change.

PYTHON ?= python3
CORPUS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet
C_SOURCES := $(shell find csrc -name '*.c' 2>/dev/null)
C_FILES := $(shell find csrc tests -name '*.[ch]' 2>/dev/null)
BUILD_SOURCES := setup.py pyproject.toml $(C_SOURCES) \
    $(shell find csrc -name '*.h') $(shell find dcme_w2v/_core -name '*.pyx' -o -name '*.pxd')

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.NOTPARALLEL: # the two stamps below build the same extension
.PHONY: help demo test test-kernels test-slow torture torture-long fuzz asan tsan lint bench ctest wheel clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(VENV)/.built ## train on the text that Python, numpy and scipy bring; or on CORPUS=FILE
	@$(BIN)/python scripts/demo.py $(if $(CORPUS),"$(CORPUS)")

test: $(VENV)/.dev $(VENV)/.built ctest ## run the tests, Python's and C's
	@$(BIN)/python -m pytest -q -m "not slow"

test-kernels: $(VENV)/.dev $(VENV)/.built ## run the tests with each slower instruction set
	@for set in $$($(BIN)/python scripts/list_kernels.py); do \
	    echo "== kernels $$set"; \
	    DCME_W2V_KERNELS=$$set $(BIN)/python -m pytest -q -m "not slow" || exit 1; \
	done

test-slow: $(VENV)/.dev $(VENV)/.built ## run the tests that take minutes
	@$(BIN)/python -m pytest -q -m slow

torture: $(VENV)/.dev $(VENV)/.built ## kill training and fail its writes, for a minute
	@$(BIN)/python scripts/torture.py

torture-long: $(VENV)/.dev $(VENV)/.built ## the same at length, with a soak; takes an hour
	@$(BIN)/python scripts/torture.py kills writes soak --kills 300 --faults 0

# The extensions are built anew, apart from the others; Python itself is not instrumented, so that
# what it leaks is not looked at.
asan: $(VENV)/.dev ## run the tests under the address and undefined-behaviour sanitizers
	@$(call sanitized,asan,-fsanitize=address$(,)undefined -fno-sanitize-recover=undefined,libasan.so libubsan.so)

tsan: $(VENV)/.dev build/tsan/test_threads ## run the tests under the thread sanitizer; reports are build/tsan/report.*
	@$(TSAN_OPTIONS) build/tsan/test_threads
	@$(call sanitized,tsan,-fsanitize=thread,libtsan.so)

, := ,
# A long history makes each suppressed race slow; BLAS's own threads wait in code it does not see.
TSAN_OPTIONS := OPENBLAS_NUM_THREADS=1 TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp \
    history_size=1 allocator_may_return_null=1 suppress_equal_addresses=0 \
    log_path=$(CURDIR)/build/tsan/report"
sanitized = CFLAGS="$2 -g -fno-omit-frame-pointer" LDFLAGS="$(firstword $2)" \
    $(BIN)/python setup.py -q build --build-base build/$1 --build-lib build/$1/lib && \
    PYTHONPATH=build/$1/lib LD_PRELOAD="$(shell for library in $3; do $(CC) -print-file-name=$$library; done)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 $(TSAN_OPTIONS) \
    $(BIN)/pytest -q -m "not slow" -p no:cacheprovider

lint: $(VENV)/.dev ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(if $(C_FILES),$(BIN)/clang-format --dry-run -Werror $(C_FILES))
	@$(BIN)/python scripts/readme_tables.py --check

bench: $(VENV)/.dev $(VENV)/.built ## compare with other programs; takes long
	@$(PIP) '.[bench]'
	@for script in scripts/bench_*.py; do echo "$$script"; $(BIN)/python "$$script" || exit 1; done

wheel: $(VENV)/.made ## build a wheel into dist/
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean: ## remove everything that make made
	rm -rf $(VENV) build dist .demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f dcme_w2v/_core/*.so $(patsubst %.pyx,%.c,$(wildcard dcme_w2v/_core/*.pyx))
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- set-up ---------------------------------------------------------------------------------

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "error: no $(PYTHON); install Python 3.10 or later, or name one: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "error: $(PYTHON) is older than 3.10; name another: make PYTHON=python3.12" >&2; exit 1; }
	@command -v $(firstword $(CC)) >/dev/null || { echo "error: no C compiler $(CC); install gcc or clang, or name one: make CC=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sysconfig, os, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || { echo "error: $(PYTHON) has no Python.h; install its headers (python3-dev)" >&2; exit 1; }
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "error: $(PYTHON) cannot make a virtual environment; install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.built: $(BUILD_SOURCES) | $(VENV)/.made
	@echo "building the extension ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	@echo "building the extension, installing the tools ..."
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.built

# ---- C tests --------------------------------------------------------------------------------
# A test is linked with the whole core, under the sanitizers where the compiler has them; one whose
# name ends in _double with the core compiled for DCME_REAL=double, which has scalar kernels only
# and no documents: their vectors are float.

C_BUILD := build/ctest
C_TESTS := $(patsubst tests/c/%.c,$(C_BUILD)/%,$(wildcard tests/c/*.c))
C_TESTS_DOUBLE := $(filter %_double,$(C_TESTS))
C_TESTS_SINGLE := $(filter-out %_double,$(C_TESTS))
C_OBJECTS_SINGLE := $(C_SOURCES:%.c=$(C_BUILD)/single/%.o)
C_OBJECTS_DOUBLE := $(patsubst %.c,$(C_BUILD)/double/%.o,$(filter-out %avx2.c %avx512.c %neon.c csrc/documents/%,$(C_SOURCES)))
C_FLAGS := -std=c11 -O1 -g -Wall -Wextra -Wno-unused-parameter -ffp-contract=off -pthread -Icsrc

# As in setup.py: a kernel file is compiled for the instruction set that its name ends in.
ifneq ($(filter x86_64 amd64,$(shell uname -m)),)
isa = $(if $(filter %avx2.c,$1),-mavx2 -mfma) \
    $(if $(filter %avx512.c,$1),-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma)
endif

ifneq ($(filter ctest test,$(MAKECMDGOALS)),)
SANITIZE := $(shell mkdir -p $(C_BUILD) && echo 'int main(void) { return 0; }' > $(C_BUILD)/probe.c && \
    $(CC) -fsanitize=address,undefined $(C_BUILD)/probe.c -o $(C_BUILD)/probe 2>/dev/null && \
    $(C_BUILD)/probe && echo -fsanitize=address,undefined -fno-sanitize-recover=undefined)
endif

ctest: $(C_TESTS) ## run the C tests under the sanitizers
	@$(if $(SANITIZE),,echo "$(CC) has no sanitizers: C tests run without";) \
	for test in $(C_TESTS); do "$$test" || { echo "error: $$test failed" >&2; exit 1; }; done; \
	echo "C tests: $(words $(C_TESTS)) programs passed"

$(C_BUILD)/single/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(C_FLAGS) $(SANITIZE) $(call isa,$<) -MMD -MP -c $< -o $@

$(C_BUILD)/double/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(C_FLAGS) $(SANITIZE) -DDCME_REAL=double -MMD -MP -c $< -o $@

$(C_TESTS_SINGLE): $(C_BUILD)/%: tests/c/%.c $(C_OBJECTS_SINGLE)
	@$(CC) $(C_FLAGS) $(SANITIZE) $^ -o $@ -lm

$(C_TESTS_DOUBLE): $(C_BUILD)/%: tests/c/%.c tests/c/differences.h $(C_OBJECTS_DOUBLE)
	@$(CC) $(C_FLAGS) $(SANITIZE) -DDCME_REAL=double $(filter-out %.h,$^) -o $@ -lm

# ---- fuzzing --------------------------------------------------------------------------------
# tests/fuzz/driver.c is a small libFuzzer: the core is compiled to tell it which code is reached.
# INPUTS a target: the slow one gets a tenth.

INPUTS ?= 400000
SEED ?= 1
FUZZ_BUILD := build/fuzz
FUZZERS := $(patsubst tests/fuzz/%.c,$(FUZZ_BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_OBJECTS := $(C_SOURCES:%.c=$(FUZZ_BUILD)/%.o)
FUZZ_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined

fuzz: $(VENV)/.dev $(VENV)/.built $(FUZZERS) ## feed the readers a million mutated inputs; takes minutes
	@for fuzzer in $(FUZZERS); do \
	    case $$fuzzer in *ids) inputs=$$(($(INPUTS) / 10));; *) inputs=$(INPUTS);; esac; \
	    $$fuzzer $$inputs $(SEED) || exit 1; \
	done
	@$(BIN)/python scripts/fuzz_files.py --inputs $$(($(INPUTS) / 20)) --seed $(SEED)

$(FUZZ_BUILD)/csrc/%.o: csrc/%.c
	@mkdir -p $(@D)
	@$(CC) $(C_FLAGS) $(FUZZ_SANITIZE) -fsanitize-coverage=trace-pc $(call isa,$<) -MMD -MP -c $< -o $@

$(FUZZ_BUILD)/driver.o: tests/fuzz/driver.c
	@mkdir -p $(@D)
	@$(CC) $(C_FLAGS) -O2 -c $< -o $@

$(FUZZERS): $(FUZZ_BUILD)/%: tests/fuzz/%.c $(FUZZ_BUILD)/driver.o $(FUZZ_OBJECTS)
	@$(CC) $(C_FLAGS) $(FUZZ_SANITIZE) -Itests/fuzz $^ -o $@ -lm

TSAN_OBJECTS := $(C_SOURCES:%.c=build/tsan/single/%.o)

build/tsan/single/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(C_FLAGS) -fsanitize=thread $(call isa,$<) -MMD -MP -c $< -o $@

build/tsan/test_threads: tests/c/test_threads.c $(TSAN_OBJECTS)
	@$(CC) $(C_FLAGS) -fsanitize=thread $^ -o $@ -lm

.SECONDARY: $(FUZZ_OBJECTS) $(TSAN_OBJECTS)
-include $(FUZZ_OBJECTS:.o=.d)

.SECONDARY: $(C_OBJECTS_SINGLE) $(C_OBJECTS_DOUBLE)
-include $(C_OBJECTS_SINGLE:.o=.d) $(C_OBJECTS_DOUBLE:.o=.d)
