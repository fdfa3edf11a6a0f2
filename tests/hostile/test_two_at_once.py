"""Several of the same command at once, with the same outputs: each ends well or says who is in its way.

What is written is whole.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import ended, leftovers, run, start

from hogwild import load

COMMANDS: dict[str, tuple[str, ...]] = {
    "train": ("train", "{rows}", "--epochs", "30", "--out", "{at}/model"),
    "train with checkpoints": (
        "train",
        "{rows}",
        "--epochs",
        "30",
        "--out",
        "{at}/model",
        "--checkpoint",
        "{at}/points",
    ),
    "train with a log": ("train", "{rows}", "--epochs", "30", "--out", "{at}/model", "--log", "{at}/log"),
    "predict": ("predict", "{model}", "{rows}", "--out", "{at}/answers.txt"),
    "pack": ("pack", "{rows}", "{at}/packed"),
    "pack by two": ("pack", "{rows}", "{at}/packed", "--workers", "2", "--shards", "2"),
    "generate": ("generate", "classification", "{at}/rows.svm", "--rows", "20k"),
    "lab": ("lab", "collisions", "--quick", "--out", "{at}/lab"),
    "compare": ("compare", "{rows}", "--out", "{at}/compared", "--seeds", "1", "--epochs", "2"),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    assert run("generate", "classification", folder / "a.svm", "--rows", "5k")[0] == 0
    assert run("train", folder / "a.svm", "--epochs", "2", "--out", folder / "old.model")[0] == 0
    return folder


@pytest.mark.parametrize("processes", [2, 5])
@pytest.mark.parametrize("name", COMMANDS)
def test_at_once(name: str, processes: int, given: Path, tmp_path: Path) -> None:
    places = {"rows": given / "a.svm", "model": given / "old.model", "at": tmp_path}
    words = [word.format(**places) for word in COMMANDS[name]]
    started = [start(*words) for _ in range(processes)]
    codes = []
    for process in started:
        code, _, err = ended(process, 600.0)
        assert code in (0, 1, 2), err
        # Whoever is refused is told so in a line, not in a list of what went wrong inside.
        assert code == 0 or 0 < len([line for line in err.splitlines() if line.startswith("error: ")]) == 1, err
        codes.append(code)
    assert 0 in codes
    assert leftovers(tmp_path) == []
    _are_whole(tmp_path, given)


def _are_whole(folder: Path, given: Path) -> None:
    """Check what was written as its next reader would."""
    if (folder / "model").exists():
        assert load(folder / "model").weights.any()
    if (folder / "answers.txt").exists():
        assert len((folder / "answers.txt").read_text().splitlines()) == 5000
    for rows in ("packed", "rows.svm"):
        if (folder / rows).exists():
            code, out, err = run("inspect", folder / rows)
            assert code == 0, err
            assert "5,000" in out or "20,000" in out


def test_the_first_compilation_of_four_processes(given: Path, tmp_path: Path) -> None:
    """Four commands find no compiled kernel and compile the same ones into one folder; a fifth loads what they left."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    words = ("train", given / "a.svm", "--strategy", "serial", "--epochs", "3", "--out")
    started = [start(*words, tmp_path / f"{number}.model", env=environment) for number in range(4)]
    for process in started:
        code, _, err = ended(process, 600.0)
        assert code == 0, err
    models = [load(tmp_path / f"{number}.model").weights.tobytes() for number in range(4)]
    assert len(set(models)) == 1
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "kernels").rglob("*.nbc")}
    assert kept
    assert run(*words, tmp_path / "4.model", env=environment)[0] == 0
    assert load(tmp_path / "4.model").weights.tobytes() == models[0]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "kernels").rglob("*.nbc")} == kept
