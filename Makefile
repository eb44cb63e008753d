# Everything happens in a local environment, .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# pip settings that keep installs reproducible: constraints.txt pins what is installed and what builds it.
PIP    := $(BIN)/python -m pip --disable-pip-version-check
PINNED := -c constraints.txt --build-constraint constraints.txt
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(wildcard core/*.hpp core/*.cpp)

.PHONY: demo test lint sanitize fuzz sweep bench kernels record-fits defaults cliffs compare size picture format clean help

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

$(VENV)/.python:
	@sh tools/prerequisites.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -q "pip>=26"
	@touch $@

$(VENV)/.installed: $(VENV)/.python $(SOURCES)
	$(PIP) install -q $(PINNED) -e ".[test]"
	@touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(PIP) install -q $(PINNED) -e ".[lint]"
	@touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(PIP) install -q $(PINNED) -e ".[bench]"
	@touch $@

demo: $(VENV)/.installed  ## a whole run on a bundled table, with a report to look at: build/demo/report.html
	$(BIN)/maxmargin demo --output build/demo

test: $(VENV)/.installed  ## all tests, with coverage
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q -n 2 --dist loadscope --cov --cov-report=term:skip-covered

lint: $(VENV)/.lint  ## style, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror core/*.hpp core/*.cpp core/tests/*.cpp

format: $(VENV)/.lint  ## rewrite files in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i core/*.hpp core/*.cpp core/tests/*.cpp

sanitize: $(VENV)/.lint  ## the core's tests under address and undefined-behaviour sanitizers
	$(PIP) install -q $(PINNED) cmake ninja
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	    -DMAXMARGIN_PYTHON=OFF -DMAXMARGIN_TESTS=ON -DMAXMARGIN_SANITIZE=ON
	$(BIN)/cmake --build build/sanitize
	./build/sanitize/test_core
	./build/sanitize/test_svmlight

CASES ?= 1000000
fuzz: $(VENV)/.lint  ## a million seeded cases (CASES=...) for readers, model loader and checks, under both sanitizers
	$(PIP) install -q $(PINNED) cmake ninja nanobind
	$(BIN)/cmake -S . -B build/fuzz -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DCMAKE_BUILD_TYPE=Debug \
	    -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DMAXMARGIN_PYTHON=ON -DMAXMARGIN_SANITIZE=ON
	$(BIN)/cmake --build build/fuzz
	FUZZ_CORE="$$(ls build/fuzz/_core.*.so)" $(BIN)/python -m tests.fuzz --cases $(CASES)

FITS ?= 2000
sweep: $(VENV)/.installed  ## claims of 2000 (FITS=...) fits on hostile data, beside exact arithmetic
	$(BIN)/python -m tests.exact.sweep --count $(FITS)

bench: $(VENV)/.bench  ## time and memory beside the peers; data sets from $$MAXMARGIN_DATA
	$(BIN)/python -m benchmarks.reading
	$(BIN)/python -m benchmarks.run

record-fits: $(VENV)/.installed  ## record the reference fits anew: tests/contracts/fits.json
	$(BIN)/python -m tests.contracts.fits record

kernels: $(VENV)/.bench  ## kernel machines beside scikit-learn, its extension and LIBSVM, with everybody's true gap (half an hour)
	$(BIN)/python -m benchmarks.kernel --default

defaults: $(VENV)/.bench  ## the first line a newcomer types, on every set of $$MAXMARGIN_DATA beside scikit-learn (half an hour)
	$(BIN)/python -m benchmarks.defaults

COUNT ?= 300
cliffs: $(VENV)/.bench  ## solver="auto" beside every solver on 300 problems (COUNT=...) drawn at random (hours)
	$(BIN)/python -m benchmarks.cliffs --count $(COUNT)

compare: $(VENV)/.bench  ## this build and another in turn: OTHER=/path/to/its/bin/python
	@test -n "$(OTHER)" || { echo "say which build: make compare OTHER=/path/to/its/.venv/bin/python" >&2; exit 2; }
	$(BIN)/python -m benchmarks.compare --other $(OTHER)

size:  ## statements of every room of src, lines of core
	@$(PYTHON) tools/size.py

picture: demo  ## the report's picture in the README (needs chromium)
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1130 \
	    --user-data-dir=build/chromium --screenshot=docs/images/report.png build/demo/report.html

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build
