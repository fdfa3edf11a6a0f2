"""Random pairs of options, with ordinary and odd values: each command ends with 0, 1 or 2, and says why."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from hogwild.cli import load, main

PAIRS = int(os.environ.get("HOGWILD_PAIRS", "200"))
COMMANDS = ("train", "predict", "inspect", "pack", "generate", "compare", "report", "doctor", "lab")
# Options that start a cluster, take a terminal, end without work or ask for any time.
LEFT_OUT = ("--watch", "--help", "--debug", "--address", "--within", "--serve", "--open")
TEXTS = (
    "", "x", "auto", "0", "1", "-1", "2", "2.5", "nan", "1e400", "10**9", "99999999999999999999", "sgd", "adagrad",
    "hogwild", "serial", "parameter-server", "simulator", "threads", "local", "logistic", "squared", "linear", "fm",
    "svmlight", "parquet", "label", "10%", "1GiB", "abc", "0:1", "a=b", "{}", "[", "é", "--json", "../..",
)  # fmt: skip


def options(command: str) -> list[Any]:
    return [each for each in load(command).params if each.opts[0].startswith("--") and each.opts[0] not in LEFT_OUT]


def words(option: Any, rng: random.Random, folder: Path) -> list[str]:
    if option.is_flag:
        return [rng.choice([*option.opts, *option.secondary_opts])]
    kind = str(option.bare_type).lower()
    value = rng.choice(TEXTS)
    if "path" in kind or rng.random() < 0.1:
        value = str(folder / rng.choice(["a.svm", "model", "nowhere/x", "new", "folder", "é.svm"]))
    elif "int" in kind and rng.random() < 0.6:
        value = str(rng.choice([0, 1, 2, 3, 17, 2**31, -1]))
    elif "float" in kind and rng.random() < 0.6:
        value = str(rng.choice([0, 0.1, 1, 1e-9, 1e9, -1, "nan", "inf"]))
    return [option.opts[0], value]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.svm").write_text(
        "".join(f"{row % 2} {1 + row % 3}:1 {5 + row % 4}:{row % 7}\n" for row in range(40))
    )
    (tmp_path / "é.svm").write_text("1 1:1\n0 2:1\n")
    (tmp_path / "folder").mkdir()
    assert main(["train", str(tmp_path / "a.svm"), "--epochs", "1", "--out", str(tmp_path / "model")]) == 0
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_pairs_of_options(
    folder: Path, command: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {
        "train": ["a.svm", "--epochs", "1"],
        "predict": ["model", "a.svm"],
        "inspect": ["a.svm"],
        "pack": ["a.svm", "packed", "--overwrite"],
        "generate": ["classification", "made.svm", "--rows", "30", "--overwrite"],
        "compare": ["a.svm", "--epochs", "1"],
        "report": ["folder"],
        "doctor": [],
        "lab": ["sparsity", "--quick"],
    }[command]
    known = options(command)
    ended: dict[int, int] = {}
    for seed in range(PAIRS):
        rng = random.Random(f"{command} {seed}")
        chosen = [word for option in rng.sample(known, 2) for word in words(option, rng, folder)]
        tried = [command, *arguments, *chosen]
        capfd.readouterr()
        code = main(tried)
        printed = capfd.readouterr()
        error = printed.out + printed.err if command == "doctor" else printed.err  # whose result is what is wrong
        assert code in (0, 1, 2), f"pair {seed}, {tried}: {code}"
        assert "Traceback" not in error, f"pair {seed}, {tried}: {error}"
        assert "should not happen" not in error, f"pair {seed}, {tried}: {error}"
        assert code == 0 or "error: " in error or (command == "doctor" and "remedy" in error.lower()), (
            f"pair {seed}, {tried}: {code} without a reason"
        )
        ended[code] = ended.get(code, 0) + 1
    assert command == "doctor" or ended.get(2, 0) > 0  # which has few options
