# Two commands are all there is to know: make demo, make test. Each sets up .venv on its first run.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
PEERS := .venv/.peers
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint types layers tests fuzz chaos cluster executions conformance agreement lab bench clean

demo: $(READY)
	$(BIN)/python examples/demo.py

test: lint types layers tests

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

# In two goes: a process that has seen every test holds every kernel there is, which takes gigabytes.
tests: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile --ignore tests/estimators
	$(BIN)/pytest -n 2 --dist loadfile tests/estimators

# Long suites: 500 damaged inputs per reader; 50 trainings killed and resumed, 30 whose processes are killed,
# and on a cluster 10 of each strategy for each way to die.
fuzz: $(READY)
	HOGWILD_FUZZ=500 $(BIN)/pytest -n 2 tests/fuzz

chaos: $(READY)
	HOGWILD_KILLS=50 $(BIN)/pytest tests/chaos/test_kill.py --timeout 3000
	HOGWILD_KILLS=30 $(BIN)/pytest tests/chaos/test_kill_workers.py --timeout 3000
	HOGWILD_KILLS=10 $(BIN)/pytest tests/chaos/test_ray.py --timeout 6000
	HOGWILD_KILLS=1 $(BIN)/pytest tests/chaos/test_hosts.py --timeout 3000

# On clusters of several nodes: every strategy on every problem, tokens and certificates, Ctrl-C, late workers.
cluster: $(READY)
	HOGWILD_CLUSTER=all HOGWILD_CONFORMANCE=all $(BIN)/pytest tests/cluster --timeout 1200

# Simulated executions in which everything goes wrong that can: a minute or two for a thousand.
executions: $(READY)
	HOGWILD_EXECUTIONS=$${HOGWILD_EXECUTIONS:-1000} $(BIN)/pytest tests/protocol --timeout 3000

# Every strategy with every rule, loss and data set, and every loss of the estimators with each of scikit-learn's checks:
# some ten minutes more than their part of the tests; then every strategy by messages on a cluster, another ten.
conformance: $(READY)
	HOGWILD_CONFORMANCE=all $(BIN)/pytest -n 2 --dist loadfile tests/conformance tests/cuts tests/messages tests/sparse tests/training/test_autostep.py tests/test_factorisation.py tests/lab/test_observing.py tests/landscape/test_linear_surface.py tests/estimators/test_contract.py
	HOGWILD_CONFORMANCE=all $(BIN)/pytest tests/cluster/test_cluster_conformance.py

# Every loss, penalty and learning rate against scikit-learn's, on every data set with many settings: about an hour.
agreement: $(READY)
	HOGWILD_AGREEMENT=all $(BIN)/pytest -n 2 tests/estimators/test_agreement*.py

# All experiments of the laboratory, quick: under ten minutes, and a page in build/lab.
lab: $(READY)
	$(BIN)/hogwild lab all --quick --out build/lab

# Figures, written to benchmarks/results; NAMES="peers scaling" runs only those.
bench: $(PEERS)
	$(BIN)/python -m benchmarks $(NAMES)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[dev]'
	touch $@

# The tools we are compared with. Two have to be compiled; without one of them its line is missing, and the table says so.
$(PEERS): $(READY)
	$(INSTALL) -e '.[dev,bench]'
	for peer in liblinear-official xlearn; do $(INSTALL) $$peer || echo "$$peer cannot be installed here"; done
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
