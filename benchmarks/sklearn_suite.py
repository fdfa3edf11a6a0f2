"""scikit-learn's own tests of its SGD classes, run with theirs and with ours: how many pass, and how long they take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results

TURNS = 3
SUITE = "sklearn.linear_model.tests.test_sgd"
OURS = {
    "SGDClassifier": "HogwildClassifier", "SGDRegressor": "HogwildRegressor", "SGDOneClassSVM": "HogwildOneClassSVM",
}  # fmt: skip

# Runs the suite in a process of its own and writes down what became of each test. The classes are exchanged before the
# suite is imported, so that its own subclasses are of ours.
RUNNER = """
import json, sys
import pytest

class Outcomes:
    def __init__(self):
        self.outcomes, self.seconds = {}, {}

    def pytest_runtest_logreport(self, report):
        test = report.nodeid.split("::", 1)[1]
        self.seconds[test] = self.seconds.get(test, 0.0) + report.duration
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[test] = report.outcome

suite, path, replaced, options = json.loads(sys.argv[1])
if replaced:
    import hogwild, sklearn.linear_model
    for theirs, ours in replaced.items():
        setattr(sklearn.linear_model, theirs, getattr(hogwild, ours))
seen = Outcomes()
pytest.main(["-q", "-p", "no:cacheprovider", "--pyargs", suite, *options], plugins=[seen])
json.dump({"outcomes": seen.outcomes, "seconds": seen.seconds}, open(path, "w"))
"""


def outcomes_of(replaced: dict[str, str], options: list[str]) -> dict[str, Any]:
    """What became of each test, and the seconds each took, with these classes in place of scikit-learn's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes.json"
        asked = json.dumps([SUITE, str(path), replaced, options])
        seed = {"SKLEARN_TESTS_GLOBAL_RANDOM_SEED": "42"}
        environment = {**os.environ, **seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", RUNNER, asked], cwd=folder, env=environment, capture_output=True)
        found: dict[str, Any] = json.loads(path.read_text())
    return found


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    options = ["-k", "test_sgd_clf"] if quick else []
    runs: dict[str, list[dict[str, Any]]] = {"scikit-learn": [], "hogwild": []}
    for _ in range(1 if quick else TURNS):
        runs["scikit-learn"].append(outcomes_of({}, options))
        runs["hogwild"].append(outcomes_of(OURS, options))
    rows, passed = [], {}
    for name, found in runs.items():
        last = found[-1]["outcomes"]
        passed[name] = {test for test, outcome in last.items() if outcome == "passed"}
        seconds = [sum(run["seconds"].values()) for run in found]
        rows.append([name, f"{len(passed[name])} of {len(last)}", results.span(seconds, ".1f")])
    failed = sorted(test for test, outcome in runs["hogwild"][-1]["outcomes"].items() if outcome == "failed")
    text = [
        f"`{SUITE}`, with the classes of scikit-learn and with ours put in their place. Median (least to most)",
        f"of {len(runs['hogwild'])} runs in turn, each in a new process, compiled code on disk.",
        "",
        *results.table(["classes", "tests passed", "seconds of tests"], rows),
        "",
        "Tests that fail with ours:",
        "",
        *(f"- `{test}`" for test in failed or ["none"]),
    ]
    results.write("sklearn_suite", "scikit-learn's own tests of its SGD classes", text, out, raw=runs)
