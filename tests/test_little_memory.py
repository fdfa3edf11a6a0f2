"""A row with a huge index takes little memory, or is refused before the memory is taken."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from hogwild import (
    HogwildClassifier,
    HogwildOneClassSVM,
    HogwildRegressor,
    Linear,
    Local,
    ParameterServer,
    machine,
    minimise,
)
from hogwild.errors import DataError

# Resident memory as the system's tables have it: what ``wait4`` tells may be that of the process before it was another.
MAIN = """
import re, sys
from pathlib import Path
from hogwild.cli import main
code = main()
most = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1)
print(f"\\nmost: {most}", file=sys.stderr)
sys.exit(code)
"""
MOST = 600 * 2**20  # bytes; the program itself takes 200 MB


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("far") / "far.svm"
    path.write_text("1 1:1 1000000000:1\n0 2:1\n1 1:2\n0 2:3\n")
    (path.parent / "near.svm").write_text(path.read_text().replace("1000000000", "130000000"))
    return path


def peak(*words: object, limit: int | None = None) -> tuple[int, int, str]:
    """Run a command; return its exit code, its most resident bytes and its messages."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        preexec_fn=limited,
    )  # fmt: skip
    err, used = process.communicate(timeout=300)[1].decode().rsplit("\nmost: ", 1)
    return process.returncode, 1024 * int(used), err


@pytest.mark.parametrize("words", [
    ("train", "far.svm", "--epochs", "2"),
    ("train", "near.svm", "--epochs", "2"),
    ("train", "near.svm", "--epochs", "2", "--strategy", "parameter-server", "--workers", "2"),
    ("train", "far.svm", "--epochs", "2", "--rule", "adam", "--strategy", "averaging"),
    ("inspect", "far.svm"),
], ids=" ".join)  # fmt: skip
def test_features_that_no_row_has_take_no_memory(words: tuple[str, ...], far: Path) -> None:
    code, bytes_used, err = peak(words[0], far.parent / words[1], *words[2:])
    assert code == 0, err
    assert bytes_used < MOST


@pytest.mark.parametrize(("words", "code", "told"), [
    (("train", "far.svm", "--epochs", "2"), 0, ""),  # one vector of all features would not fit
    (("train", "far.svm", "--problem", "fm"), 1, "far.svm: a model of 1,000,000,000 features x 9 outputs takes"),
    (("pack", "far.svm", "packed"), 1, "far.svm: features are numbered up to 1,000,000,000: packing takes 7.5 GiB"),
    (("pack", "small.svm", "far.svm", "packed", "--memory", "20GiB"), 1, "far.svm: features are numbered up to"),
    (("pack", "far.svm", "packed", "--memory", "20GiB", "--shards", "2"), 1, "far.svm: features are numbered up to"),
    (("pack", "far.svm", "packed", "--workers", "2", "--shards", "2"), 1, "far.svm: features are numbered up to"),
], ids=str)  # fmt: skip
def test_under_a_limit_of_the_process(words: tuple[str, ...], code: int, told: str, far: Path) -> None:
    (far.parent / "small.svm").write_text("1 1:1\n0 2:1\n")
    given = [far.parent / word if word.endswith((".svm", "packed")) else word for word in words]
    ended, bytes_used, err = peak(*given, limit=4 * 10**9)
    assert ended == code, err
    assert told in err
    assert "Traceback" not in err
    assert bytes_used < MOST


def test_limits_of_the_process_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine.available_bytes()

    def limits(which: int) -> tuple[int, int]:
        return (2**50 if which == resource.RLIMIT_AS else 2**34, resource.RLIM_INFINITY)

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert 0 < machine.available_bytes() <= min(2**34, before + 2**30)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2**20, 2**20))
    assert machine.available_bytes() == 0


def fits() -> list[Callable[[Any, Any], Any]]:
    return [
        lambda X, y: HogwildClassifier().fit(X, y),
        lambda X, y: HogwildClassifier().partial_fit(X, y, classes=[0, 1]),
        lambda X, y: HogwildRegressor(n_jobs=2).fit(X, y),
        lambda X, y: HogwildOneClassSVM().fit(X),
        lambda X, y: HogwildOneClassSVM().partial_fit(X),
    ]


@pytest.mark.parametrize("number", range(len(fits())))
def test_estimators_count_their_coefficients(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    width = 10**9
    X = scipy.sparse.csr_matrix((np.ones(3), [0, width - 1, 1], [0, 2, 3]), shape=(2, width))
    monkeypatch.setattr(machine, "available_bytes", lambda: 20 * 10**9)
    with pytest.raises(
        DataError, match=r"a fit of 1 x 1,000,000,000 coefficients takes 29\.8 GiB .* There is 18\.6 GiB"
    ):
        fits()[number](X, [0, 1])


def test_copies_of_workers_that_send_messages_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LITTLE_BYTES", 0)
    monkeypatch.setattr(machine, "available_bytes", lambda: 10**5)
    rows = scipy.sparse.random(50, 1_000, 1e-2, format="csr", random_state=0)
    problem = Linear((rows, np.arange(50) % 2), loss="logistic")
    with pytest.raises(DataError, match=r"4 workers that send messages take .* for copies of the parameters"):
        minimise(problem, "adagrad", 0.1, ParameterServer(4), Local(), budget=1)
