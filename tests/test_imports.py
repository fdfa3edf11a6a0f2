"""Training on arrays in one memory imports no readers, messages or other runtimes: each new process waits for that."""

import subprocess
import sys

import pytest

DATA = """
import builtins, sys
import numpy as np
from scipy.sparse import csr_matrix
X = np.random.default_rng(0).normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)

def ours():
    return {name for name in sys.modules if name.split(".")[0] == "hogwild"}

def end(absent):
    found = [name for name in ours() if any(name == each or name.startswith(each + ".") for each in absent)]
    sys.exit(f"imported: {sorted(found)}" if found else 0)
"""
ESTIMATOR = """
from hogwild import {name}
imported = ours()
for rows in (X, csr_matrix(X)):
    model = {name}(random_state=0)
    model.fit(rows, y)
    model.predict(rows)
if ours() != imported:
    sys.exit(f"imported by fit or predict: {{sorted(ours() - imported)}}")

statements, usual = [], builtins.__import__

def watched(name, *rest, **more):
    statements.append(name)
    return usual(name, *rest, **more)

builtins.__import__ = watched
for row in (X[:1], csr_matrix(X[:1])):
    model.predict(row)
builtins.__import__ = usual
again = [name for name in statements if name.split(".")[0] == "hogwild"]
if again:
    sys.exit(f"import statements of a prediction: {{again}}")
"""
RUN = """
from hogwild import Linear, minimise
minimise(Linear((X, y)), budget=1)
"""
# Of no use without files, messages, GPUs and several processes.
ABSENT = (
    "hogwild.data.opened_files", "hogwild.data.packing.packed_dataset", "hogwild.data.ratings", "hogwild.data.readers",
    "hogwild.data.tables.encode", "hogwild.messaging", "hogwild.onnx_graph", "hogwild.runtimes.cuda",
    "hogwild.runtimes.local", "hogwild.runtimes.messaging", "hogwild.runtimes.processes", "hogwild.runtimes.ray",
    "hogwild.runtimes.simulator", "hogwild.strategies.parameter_server", "hogwild.strategies.roles",
    "hogwild.topologies",
)  # fmt: skip
# Of no use to a fit by a single worker, which is one call of compiled code.
ABSENT_WITHOUT_RUN = (
    "hogwild.data.tables", "hogwild.estimators.factorisation_machine", "hogwild.estimators.fit",
    "hogwild.estimators.recommender", "hogwild.models", "hogwild.problems.linear", "hogwild.runtimes",
    "hogwild.training",
)  # fmt: skip


def run(program, absent):
    return subprocess.run(
        [sys.executable, "-c", f"{DATA}{program}\nend({absent!r})"], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", ["HogwildClassifier", "HogwildRegressor", "HogwildOneClassSVM"])
def test_an_estimator_of_arrays_imports_little_and_nothing_later(name):
    found = run(ESTIMATOR.format(name=name), (*ABSENT, *ABSENT_WITHOUT_RUN))
    assert found.returncode == 0, found.stderr


def test_a_run_on_arrays_imports_neither_readers_nor_messages():
    found = run(RUN, ABSENT)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("package", ["data", "estimators", "runtimes", "strategies"])
def test_names_that_are_imported_late_are_listed_and_found(package):
    program = f"import hogwild.{package} as each\n[getattr(each, name) for name in set(dir(each)) & set(each.__all__)]"
    found = run(f"{program}\nassert set(each.__all__) <= set(dir(each))", ())
    assert found.returncode == 0, found.stderr
