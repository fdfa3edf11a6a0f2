"""Files that nobody writes on purpose: holes of a terabyte, JSON without a bottom, archives with a tail, odd names."""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path

import pytest
from commands import run

FAST = ("--epochs", "1", "--step", "0.1")
ROWS = b"1 1:1\n-1 2:1\n" * 20
DEEP = "[" * 100_000 + "]" * 100_000
HOLE_BYTES = 2**40


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    (folder / "a.svm").write_bytes(ROWS)
    assert run("train", folder / "a.svm", *FAST, "--out", folder / "model")[0] == 0
    return folder


def refused(*words: object, timeout: float = 60.0) -> str:
    """Run a command that must end with one line that says why, and return the line."""
    code, _, err = run(*words, timeout=timeout)
    (told,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert code in (1, 2), told
    assert len(told) < 1000
    return told


@pytest.mark.parametrize("name", ["a.svm", "a.vw", "a.csv", "a.jsonl", "a.ffm", "a.npz", "a.parquet", "a.tfrecord"])
def test_a_hole_of_a_terabyte(name: str, tmp_path: Path) -> None:
    """It was searched for the end of its first line, for minutes, in one call that no signal could end."""
    path = tmp_path / name
    path.touch()
    try:
        os.truncate(path, HOLE_BYTES)
    except OSError as error:
        pytest.skip(f"the file system has no files as large: {error}")
    assert name in refused("inspect", path)


def test_lines_after_a_hole_are_not_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(ROWS)
    os.truncate(path, 2**36)
    for words in (("train", path), ("pack", path, tmp_path / "packed", "--workers", "2")):
        assert "the line is longer than 64.0 MiB" in refused(*words)
    assert not (tmp_path / "packed").exists()


@pytest.mark.parametrize("content", [
    b"\x80\x04pickle", struct.pack("<Q", 2**63) + b"{}", b"\xff" * 8 + b"{}",
    struct.pack("<Q", len(DEEP)) + DEEP.encode(),
], ids=["pickle", "2**63", "2**64-1", "deep"])  # fmt: skip
def test_headers_of_models(content: bytes, given: Path, tmp_path: Path) -> None:
    model = tmp_path / "x.safetensors"
    model.write_bytes(content)
    assert "x.safetensors: this is not a file written by hogwild" in refused("predict", model, given / "a.svm")


def test_json_without_a_bottom(given: Path, tmp_path: Path) -> None:
    """Python's parser gives up, which was a bug of ours then; Arrow's leaves its stack, which ended the process."""
    points, rows = tmp_path / "points", given / "a.svm"
    points.mkdir()
    (points / "penalty.json").write_text(DEEP)
    (tmp_path / "a.jsonl").write_text(f'{{"label": 1, "x": {DEEP}}}\n')
    (tmp_path / "log.jsonl").write_text(f'{{"event": {DEEP}}}\n')
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(DEEP)
    (tmp_path / "a.toml").write_text(f"epochs = {DEEP}\n")
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "meta.json").write_text(DEEP)
    assert "penalty.json" in refused("train", rows, "--l2", "auto", "--holdout", "0.1", "--resume", points)
    assert "a.jsonl, line 1: objects or lists within each other" in refused("inspect", tmp_path / "a.jsonl")
    assert "log.jsonl" in refused("report", tmp_path / "log.jsonl")
    assert "a.toml" in refused("train", rows, "--config", tmp_path / "a.toml")
    assert "meta.json" in refused("inspect", tmp_path / "packed")
    refused("report", tmp_path / "run")


def test_brackets_in_texts_are_not_nested(tmp_path: Path) -> None:
    rows = [{"label": k % 2, "x": "[{" * 2000 + '\\"[' * k, "y": k} for k in range(4)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("inspect", tmp_path / "a.jsonl")[0] == 0


TAILS = [(gzip.compress(ROWS, mtime=0), True), (b"\0" * 1000, True), (b"more", False)]


@pytest.mark.parametrize(("tail", "is_read"), TAILS, ids=["another archive", "zeros", "text"])
def test_behind_the_end_of_an_archive(tail: bytes, is_read: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(ROWS) + tail)
    if is_read:
        assert run("inspect", path)[0] == 0
    else:
        assert "a.svm.gz" in refused("inspect", path)


@pytest.mark.parametrize("name", ["a\nb", "--out", "\udcff\udcfe", " ", "x" * 250, "\u202egpj"])
def test_names_of_files(name: str, given: Path, tmp_path: Path) -> None:
    data, out = tmp_path / f"{name}.svm", tmp_path / f"{name}.m"
    data.write_bytes(ROWS)
    assert run("train", data, *FAST, "--out", out, "--log", tmp_path / f"{name}.l")[0] == 0
    assert run("predict", "--", out, data, cwd=tmp_path)[0] == 0
    assert run("train", "--", data.name, cwd=tmp_path)[0] == 0


def test_numbers_of_runs_have_bounds(given: Path, tmp_path: Path) -> None:
    """With as many epochs a comparison would not end."""
    out = ("--out", tmp_path / "out")
    assert "--epochs" in refused("compare", given / "a.svm", *out, "--epochs", "9" * 20)
    assert "--seeds" in refused("compare", given / "a.svm", *out, "--seeds", "9" * 20)
    assert "--seeds" in refused("lab", "collisions", *out, "--seeds", "9" * 20)


def test_a_table_of_many_columns_takes_a_time_in_proportion(tmp_path: Path) -> None:
    columns = 12_000
    lines = [",".join(f"c{number}" for number in range(columns))]
    lines += [",".join(str((number * row) % 7) for number in range(columns)) for row in range(1, 4)]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    assert run("inspect", tmp_path / "wide.csv", "--label", "c0")[0] == 0
