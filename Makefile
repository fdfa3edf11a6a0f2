# Two commands are all there is to know: make demo, make test. Each installs what it needs into .venv, once.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# What is installed so far: the package itself; what tests need; the tools we are compared with; what builds the site.
CORE := .venv/.core
TEST := .venv/.test
BENCH := .venv/.bench
DOCS := .venv/.docs
PYTEST := $(BIN)/pytest -q -n 2 --dist worksteal
LONG := --timeout 3000

# Compiled Python files are kept, whatever the shell says: every process of every run finds them.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test checks test-all lint types layers tests long browser conformance agreement golden golden-record executions fuzz hostile gpu cluster chaos lab \
	coverage docs bench dist dist-test clean

demo: $(CORE)
	$(BIN)/python examples/demo.py

# What every change must pass: some minutes on two cores. What takes one core is done beside the tests.
test: $(TEST)
	$(MAKE) --no-print-directory -j 2 checks tests

checks: lint types layers

# Everything there is, one part after the other; each is a target of its own.
test-all: test long conformance agreement executions fuzz hostile cluster chaos lab dist-test

lint: $(TEST)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/prose

types: $(TEST)
	$(BIN)/mypy

layers: $(TEST)
	$(BIN)/lint-imports

tests: $(TEST)
	$(PYTEST) -m "not long"

# What takes long, or is much like what the tests have.
long: $(TEST)
	$(PYTEST) -m long $(LONG)

# Pages in Chromium, where it is installed: the report of the laboratory, and the site.
browser: $(TEST) docs
	$(BIN)/pytest -q tests/lab/test_page_in_a_browser.py tests/site/test_site_in_a_browser.py

# Every strategy with every rule, loss and data set, and every loss of the estimators with each of scikit-learn's checks.
conformance: $(TEST)
	HOGWILD_CONFORMANCE=all $(PYTEST) $(LONG) tests/conformance tests/cuts tests/messages tests/sparse \
		tests/training/test_autostep.py tests/test_factorisation.py tests/lab/test_conflicts.py \
		tests/landscape/test_linear_surface.py tests/estimators/test_contract.py

# Losses, penalties and learning rates against scikit-learn's, on every data set with many settings: of so many cases one.
# AGREEMENT=1, which is all of them, takes about an hour.
AGREEMENT ?= 13
agreement: $(TEST)
	HOGWILD_AGREEMENT=$(AGREEMENT) $(PYTEST) $(LONG) tests/estimators/test_agreement*.py

# Results of runs, and the public interface, against what was written down; golden-record writes both down anew, for a
# change that is meant to change them (NAMES="estimated regressor,graph cut sgd": only those results).
golden: $(TEST)
	$(PYTEST) $(LONG) tests/golden

golden-record: $(TEST)
	$(BIN)/python tests/golden/public_api.py
	PYTHONPATH=tests/messages $(BIN)/python tests/golden/record.py "$(NAMES)"

# Simulated executions in which everything goes wrong that can.
executions: $(TEST)
	HOGWILD_EXECUTIONS=$${HOGWILD_EXECUTIONS:-1000} $(PYTEST) $(LONG) tests/protocol

# 500 damaged inputs per reader.
fuzz: $(TEST)
	HOGWILD_FUZZ=500 $(PYTEST) $(LONG) tests/fuzz

# 1,000 mutated files per reader and kind of model, 200 pairs of options per command; and what full disks, changed files, special files, small memory and signals at MOMENTS random moments may not do.
MOMENTS ?= 50
hostile: $(TEST)
	HOGWILD_HOSTILE=$(MOMENTS) $(BIN)/pytest -q -n 3 --dist worksteal $(LONG) tests/hostile

# On a GPU, without the simulator: agreement with one thread, and faults.
gpu: $(TEST)
	$(BIN)/pytest -q -n 8 $(LONG) tests/cuda/test_gpu_agreement.py
	$(BIN)/pytest -q $(LONG) tests/cuda/test_gpu_faults.py tests/cuda/test_gpu_kernels_on_disk.py

# On clusters of several nodes: every strategy on every problem, tokens and certificates, Ctrl-C, late workers.
cluster: $(TEST)
	HOGWILD_CLUSTER=all HOGWILD_CONFORMANCE=all $(BIN)/pytest -q $(LONG) tests/cluster

# Trainings killed and resumed, worker processes killed, and on a cluster each strategy with each way to fail.
KILLS ?= 2
chaos: $(TEST)
	HOGWILD_KILLS=$$((5 * $(KILLS))) $(BIN)/pytest -q $(LONG) tests/chaos/test_kill.py
	HOGWILD_KILLS=$$((3 * $(KILLS))) $(BIN)/pytest -q $(LONG) tests/chaos/test_kill_workers.py
	HOGWILD_KILLS=$(KILLS) $(BIN)/pytest -q --timeout 6000 tests/chaos/test_ray.py
	HOGWILD_KILLS=1 $(BIN)/pytest -q $(LONG) tests/chaos/test_hosts.py

# All experiments of the laboratory, quick, and a page in build/lab.
lab: $(TEST)
	$(BIN)/hogwild lab all --quick --out build/lab

# Which lines the tests of every change run, kernels left out: what is compiled cannot be seen.
coverage: $(TEST)
	tests/coverage.sh

# The site, in build/site: the last figures are put into pages, examples are run, warnings are errors, links are followed.
docs: $(DOCS)
	$(BIN)/python -m benchmarks.show
	$(BIN)/python tools/pictures
	rm -rf build/site docs/reference/generated docs/reference/commands docs/benchmarks/tables
	$(BIN)/python -m sphinx -b html -j 2 -E -W --keep-going -q -d build/site-pages docs build/site
	$(BIN)/python tools/links build/site

# Figures, written to benchmarks/results; NAMES="peers scaling" runs only those.
bench: $(BENCH)
	$(BIN)/python -m benchmarks $(NAMES)

# The sdist and the wheel, in dist/; the wheel is built from the sdist.
dist: $(CORE)
	rm -rf dist
	$(BIN)/python tools/man build/man/hogwild.1
	$(BIN)/uv build --quiet --out-dir dist
	ls dist

# The wheel in empty environments: each Python that can be had with each extra, then the oldest versions of dependencies.
# PYTHONS="3.12" EXTRAS="core onnx" tries only those.
PYTHONS ?= 3.11 3.12 3.13
EXTRAS ?= core parquet zstd remote tensorboard torch ray cluster cuda onnx lab
dist-test: dist
	$(BIN)/python tools/try_dist dist --python $(PYTHONS) --extra $(EXTRAS)
	$(BIN)/python tools/try_dist dist --extra $(EXTRAS) --lowest

$(BIN)/python:
	$(PYTHON) -m venv .venv

# The last step compiles the kernels of the demo, as others compile C at this point.
$(CORE): pyproject.toml constraints.txt | $(BIN)/python
	tools/install -e .
	$(BIN)/python examples/demo.py --compile
	touch $@

$(TEST): $(CORE)
	tools/install -e '.[dev]'
	touch $@

$(DOCS): $(CORE)
	tools/install -e '.[docs]'
	touch $@

# Some peers have to be compiled; without one of them its line is missing, and the table says so.
$(BENCH): $(TEST)
	tools/install -e '.[dev,bench]'
	for peer in liblinear-official xlearn; do tools/install $$peer || echo "$$peer cannot be installed here"; done
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
