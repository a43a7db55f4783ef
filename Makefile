# The two commands of the README, and what contributors and CI need. Everything is set up in .venv
# on the first call, and again when the sources of the extension change.

PYTHON ?= python3
CORPUS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet
C_FILES := $(shell find csrc tests -name '*.[ch]' 2>/dev/null)
BUILD_SOURCES := setup.py pyproject.toml dcme_w2v/__init__.py $(shell find csrc -name '*.[ch]') \
    $(shell find dcme_w2v/_core -name '*.pyx' -o -name '*.pxd')

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip compiles no modules (it reads 0 so): Python compiles those that it imports, far fewer.
export PIP_NO_COMPILE := 0
# Every command that a test starts would compile all modules again: a fifth of the time.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL: # the two stamps below build the same extension
.PHONY: help demo demo-cluster test test-all coverage test-kernels test-bits test-slow test-sentence-transformers mutants torture torture-long fuzz asan tsan lint format man tutorial \
    ctest test-speed sdist wheel test-sdist test-wheel test-lowest release-check test-aarch64 test-windows-core test-musl-core clean

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

demo-cluster: $(VENV)/.built ## the same on two worker processes, see docs/guides/cluster.md
	@$(BIN)/python -c 'import distributed' 2>/dev/null || $(BIN)/pip install -q -e '.[cluster]'
	@mkdir -p .demo && $(if $(CORPUS),,$(BIN)/dcme-w2v demo --collect .demo/corpus.txt &&) \
	    $(BIN)/dcme-w2v train "$(or $(CORPUS),.demo/corpus.txt)" --epochs 15 --cluster local:2 --output .demo/vectors.txt && \
	    $(BIN)/dcme-w2v neighbors .demo/vectors.txt file error -k 5

demo: $(VENV)/.built ## train on the documentation of Python, numpy and scipy; or on CORPUS=FILE
	@$(BIN)/dcme-w2v demo $(if $(CORPUS),"$(CORPUS)")

# Two processes, since many tests use one thread; each has some of the rooms.
PYTEST := $(BIN)/python -m pytest
HALF := $(wildcard $(addprefix tests/,words text formats training few_labels latent cluster scdv sentences search numeric))
define in_two # MARKS
	@mkdir -p build; $(PYTEST) -q -m "$1" --durations=25 -p no:cacheprovider $(HALF) \
	    >build/tests-2.log 2>&1 & second=$$!; \
	$(PYTEST) -q -m "$1" --durations=25 $(addprefix --ignore=,$(HALF)); first=$$?; \
	wait $$second; status=$$?; cat build/tests-2.log; [ $$first = 0 ] && [ $$status = 0 ]
endef

test: $(VENV)/.test $(VENV)/.built ## run the fast tests of every room, in about two minutes on two cores
	$(call in_two,not slow and not long)

test-all: $(VENV)/.dev $(VENV)/.built ctest ## run all tests, Python's and C's
	$(call in_two,not slow)

coverage: PYTEST := $(BIN)/python -m coverage run -m pytest
coverage: $(VENV)/.test $(VENV)/.built ## run the fast tests, or TESTS, and show which lines none of them reaches
	@rm -f build/coverage*
	$(if $(TESTS),@$(PYTEST) -q $(TESTS),$(call in_two,not slow and not long))
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --skip-covered --show-missing --sort=miss $(if $(TESTS),--fail-under 0)

# Tests of what the kernels compute: word vectors, document vectors, classifiers. Others that train,
# such as test_objectives.py, try all kernels themselves.
KERNEL_TESTS := $(wildcard $(addprefix tests/*/test_,$(addsuffix .py,classify scdv trainer)))

test-kernels: $(VENV)/.dev $(VENV)/.built ## run tests of training with each slower instruction set
	@for set in $$($(BIN)/python scripts/list_kernels.py); do \
	    echo "== kernels $$set"; \
	    DCME_W2V_KERNELS=$$set $(BIN)/python -m pytest -q -m "not slow" $(KERNEL_TESTS) || exit 1; \
	done

# On x86-64 by the kernels of OpenBLAS that numpy and scipy have, where the processor has them.
BLAS_KERNELS = $(if $(filter x86_64,$(shell uname -m)),HASWELL $(shell grep -qsw avx512vl /proc/cpuinfo && echo SKYLAKEX),ARMV8)

# This test tries one and two threads by itself.
TRIES_THREADS := tests/project/test_promises.py::test_results_do_not_depend_on_threads

test-bits: $(VENV)/.dev $(VENV)/.built ## run the tests of equal bits with other kernels and threads of BLAS
	@for kernels in $(BLAS_KERNELS); do for threads in 1 2; do \
	    echo "== OpenBLAS $$kernels, threads: $$threads"; \
	    OPENBLAS_CORETYPE=$$kernels OPENBLAS_NUM_THREADS=$$threads \
	        $(BIN)/python -m pytest -q -m "bits and not slow" -p no:cacheprovider \
	        $$([ $$threads = 1 ] || echo --deselect $(TRIES_THREADS)) || exit 1; \
	done; done

test-slow: $(VENV)/.dev $(VENV)/.built ## run the tests that take minutes, or those of TESTS
	@$(BIN)/python -m pytest -q -m slow $(TESTS)

# dill, which datasets uses, detects installed packages by the name of this folder.
PEERS := build/sentence-transformers/site-packages

test-sentence-transformers: $(VENV)/.dev $(VENV)/.built ## load exported folders in sentence-transformers; downloads gigabytes
	@$(PIP) --upgrade --target $(PEERS) sentence-transformers datasets
	@PYTHONPATH=$(PEERS) $(BIN)/python -m pytest -q tests/words/test_static_folder.py tests/text/test_columns.py \
	    "tests/project/test_docs.py::test_the_snippets_of_a_page_run[docs/guides/sentences.md]"

mutants: $(VENV)/.dev $(VENV)/.built ## check that seeded faults make tests fail; all in hours, or some in BUDGET seconds
	@$(BIN)/python tests/mutants/run.py $(if $(BUDGET),--seconds $(BUDGET))

torture: $(VENV)/.dev $(VENV)/.built ## kills, failing writes, interrupted starts, attacks on files; takes minutes
	@DCME_W2V_REPEATS=10 $(BIN)/python -m pytest -q tests/formats/test_hostile_files.py
	@$(BIN)/python scripts/torture.py

torture-long: $(VENV)/.dev $(VENV)/.built ## the same at length, with a soak; takes an hour
	@DCME_W2V_REPEATS=100 $(BIN)/python -m pytest -q tests/formats/test_hostile_files.py
	@$(BIN)/python scripts/torture.py kills writes starts soak --kills 300 --faults 0 --starts 1000

# C tests, fuzzers and sanitizers are in tests/Makefile.
IN_TESTS := @$(MAKE) -j$(shell getconf _NPROCESSORS_ONLN) --no-print-directory -f tests/Makefile

ctest: ## run the C tests under the sanitizers
	$(IN_TESTS) $@

test-speed: $(VENV)/.built ## count the instructions of small trainings and commands, and fail if there are more than before
	$(IN_TESTS) $@

fuzz: $(VENV)/.dev $(VENV)/.built ## test the readers with a million mutated inputs; takes minutes
	$(IN_TESTS) $@

asan: $(VENV)/.dev $(VENV)/.built ## run the tests under the address and undefined-behavior sanitizers
	$(IN_TESTS) $@

tsan: $(VENV)/.dev $(VENV)/.built ## run the tests under the thread sanitizer; reports are build/tsan/report.*
	$(IN_TESTS) $@

lint: $(VENV)/.lint $(VENV)/.built ## check style, types and pages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(if $(C_FILES),$(BIN)/clang-format --dry-run -Werror $(C_FILES))
	@$(BIN)/codespell
	@$(BIN)/python scripts/benchmarks/tables.py --check
	@$(BIN)/python scripts/write_reference.py --check
	@$(BIN)/python scripts/check_pages.py

format: $(VENV)/.lint ## format the code, and write tables and the reference into the pages
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/clang-format -i $(C_FILES)
	@$(BIN)/python scripts/benchmarks/tables.py
	@$(BIN)/python scripts/write_reference.py

man: $(VENV)/.built ## write a manual page for each command into build/man
	@$(BIN)/python scripts/make_man.py build/man

tutorial: $(VENV)/.built ## run the tutorial of the documentation in build/tutorial
	@mkdir -p build/tutorial
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(MAKE) --no-print-directory -C build/tutorial \
	    -f $(CURDIR)/docs/start/Makefile
	@tail -n +1 build/tutorial/classifier*.txt

# ---- packages -------------------------------------------------------------------------------

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' dcme_w2v/__init__.py)
SDIST := dist/dcme_w2v-$(VERSION).tar.gz
# Python 3.10 needs a wheel of its own; it is left out where there is no such Python.
PYTHON310 ?= python3.10
CLEAN := build/clean-environment
PACKED := setup.py pyproject.toml MANIFEST.in $(shell find csrc dcme_w2v docs scripts tests -type f \
    ! -path '*/__pycache__/*' ! -name '*.so' ! -path 'dcme_w2v/_core/*.c')

sdist: $(VENV)/.dev $(VENV)/.built ## build the source distribution into dist/
	@rm -rf *.egg-info # setuptools would add the files that its last list names
	@$(BIN)/python setup.py -q sdist --dist-dir dist 2>&1 | sed '/no previously-included/d'
	@ls $(SDIST)

wheel: sdist $(VENV)/.release ## build the wheels for all systems, or for PLATFORM, into dist/ and audit them
	@rm -f dist/*.whl
	@other=; $(PYTHON310) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 10))' 2>/dev/null && other=$(PYTHON310) || \
	    echo "no $(PYTHON310): no wheel for Python 3.10"; \
	$(BIN)/python scripts/make_wheels.py $(SDIST) --output dist $(if $(PLATFORM),--platform $(PLATFORM)) --python $(BIN)/python $$other
	@$(BIN)/python -m twine --no-color check --strict $(SDIST) dist/*.whl
	@touch dist/.made

dist/.made: $(PACKED)
	@$(MAKE) --no-print-directory wheel PLATFORM=manylinux_2_17_$$(uname -m | sed s/arm64/aarch64/)

test-sdist: dist/.made ## run some tests from the unpacked source distribution, with the built wheel
	@rm -rf build/sdist && mkdir -p build/sdist/wheel
	@tar -xzf $(SDIST) -C build/sdist --strip-components 1
	@$(PIP) --no-deps --no-index --find-links dist --target build/sdist/wheel dcme-w2v
	@cp build/sdist/wheel/dcme_w2v/_core/*.so build/sdist/dcme_w2v/_core/
	@cd build/sdist && PYTHONPATH="$$PWD" $(CURDIR)/$(BIN)/python -m pytest -q tests/words/test_train.py tests/cli/test_cli.py tests/classify/test_classify_features.py

test-wheel: dist/.made ## install the built wheel without a compiler and run the tutorial
	@rm -rf $(CLEAN) && $(BIN)/python -m venv $(CLEAN) && mkdir -p $(CLEAN)/work
	@for tool in awk make rm sh; do ln -s "$$(command -v $$tool)" $(CLEAN)/bin/$$tool; done
	@cd $(CLEAN)/work && export PATH="$(CURDIR)/$(CLEAN)/bin" && \
	    python -m pip install --quiet --only-binary :all: --find-links ../../../dist dcme-w2v==$(VERSION) && \
	    ! command -v cc && make -f $(CURDIR)/docs/start/Makefile

# Editable, for the tests; another Python's extension has another name, so both can be there. Old
# packages may warn of what newer packages below them deprecate.
LOWEST := build/lowest
test-lowest: ## run a part of the tests with the lowest versions that pyproject.toml allows
	@rm -rf $(LOWEST) && $(PYTHON) -m venv $(LOWEST)
	@$(PYTHON) scripts/requirements.py --lowest >$(LOWEST)/constraints.txt
	@PIP_CONSTRAINT=$(LOWEST)/constraints.txt $(LOWEST)/bin/python -m pip install --quiet --editable '.[test]'
	@$(LOWEST)/bin/python -m pytest -q -m "not slow and not long" -W ignore::DeprecationWarning

release-check: wheel test-sdist test-wheel ## check what a release publishes, as far as that is possible here
	@$(BIN)/python -m twine --no-color check --strict $(SDIST) dist/*.whl
	@rm -rf $(CLEAN) && $(BIN)/python -m venv $(CLEAN) && \
	    $(CLEAN)/bin/python -m pip install --quiet --only-binary :all: --find-links dist dcme-w2v==$(VERSION) && \
	    cd $(CLEAN) && bin/dcme-w2v doctor && bin/dcme-w2v demo

test-aarch64: $(VENV)/.release ## run the C tests of the Arm kernels under qemu
	$(IN_TESTS) $@

test-windows-core: $(VENV)/.release ## run the C tests as programs of Windows under wine
	$(IN_TESTS) $@

test-musl-core: $(VENV)/.release ## run the C tests with musl's C library
	$(IN_TESTS) $@

clean: ## remove all built files
	rm -rf $(VENV) build dist .demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f dcme_w2v/_core/*.so dcme_w2v/_core/*.c dcme_w2v/_core/headers.pxi
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

# Packages are installed while the extension is compiled; those of EXTRAS, too.
EXTRAS :=
test coverage: EXTRAS := test

$(VENV)/.built: $(BUILD_SOURCES) | $(VENV)/.made
	@echo "building the extension, and installing packages$(EXTRAS:%=: %) ..."
	@$(PYTHON) scripts/requirements.py $(EXTRAS) >$(VENV)/requirements.txt
	@$(PIP) --no-deps --editable . & build=$$!; \
	    $(PIP) -r $(VENV)/requirements.txt; installed=$$?; \
	    wait $$build && [ $$installed = 0 ]
	@touch $@ $(EXTRAS:%=$(VENV)/.%)

# The package is there, so that pip installs what an extra of it names and builds nothing again.
$(VENV)/.test $(VENV)/.dev $(VENV)/.release $(VENV)/.lint: $(VENV)/.%: pyproject.toml | $(VENV)/.built
	@[ $@ -nt pyproject.toml ] || { echo "installing the tools: $* ..."; $(PIP) 'dcme-w2v[$*]==$(VERSION)'; }
	@touch $@
