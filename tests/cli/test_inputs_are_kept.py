"""Outputs within what is read or written, tables that are none, and options that contradict each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hogwild.cli import main

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

STEPS = ("--epochs", "1", "--workers", "1", "--step", "0.1")
HOGWILD = [sys.executable, "-m", "hogwild"]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    (folder / "a.svm").write_text("1 1:1 2:3\n0 2:1 5:2\n" * 5)
    (folder / "a.csv").write_text("label,x,s\n1,2,a\n0,3,b\n1,4,a\n0,9,b\n")
    (folder / "latin.csv").write_bytes(b"label,x,\xe9\n1,2,3\n0,3,4\n")
    (folder / "empty.jsonl").write_text("{}\n{}\n")
    bytes_ = [b"\xff\x00", b"1"]
    parquet.write_table(pyarrow.table({"label": bytes_, "x": [1, 2]}), folder / "labels.parquet")
    parquet.write_table(pyarrow.table({"label": [0, 1], "x": bytes_, "s": ["a", "b"]}), folder / "bytes.parquet")
    for words in (
        ["train", folder / "a.svm", *STEPS, "--out", folder / "sparse.model"],
        ["train", folder / "a.csv", *STEPS, "--out", folder / "table.model"],
        ["train", folder / "a.svm", *STEPS, "--folder", folder / "run"],
        ["pack", folder / "a.svm", folder / "packed"],
    ):
        assert main([str(word) for word in words]) == 0
    (folder / "packed" / "notes.txt").write_text("mine")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "told"), [
    (("report", "run", "--out", "run/run.json"), "this file is read, and would be lost"),
    (("report", "run", "--out", "run/events.jsonl"), "this file is read, and would be lost"),
    (("train", "packed", *STEPS, "--out", "packed/labels.f64"), "this file is read, and would be lost"),
    (("train", "packed", *STEPS, "--out", "packed/new"), "this file is read, and would be lost"),
    (("predict", "sparse.model", "packed", "--out", "packed/values.f32"), "this file is read, and would be lost"),
    (("pack", "a.svm", "packed", "--overwrite"), "has files that packing did not write ('notes.txt')"),
    (("train", "a.svm", *STEPS, "--folder", "packed"), "this folder has packed rows"),
    (("train", "a.svm", *STEPS, "--checkpoint", "packed"), "this folder has packed rows"),
    (("generate", "dense", "new.svm", "--rows", "9", "--weights", "new.svm"), "OUT and --weights have the same name"),
    (("train", "a.svm", *STEPS, "--out", "same", "--checkpoint", "same"), "--checkpoint and --out have the same name"),
    (("train", "a.svm", *STEPS, "--out", "same", "--folder", "same"), "--folder and --out have the same name"),
    (("train", "a.svm", *STEPS, "--log", "f/events.jsonl", "--folder", "f"), "(events.jsonl) and --log have the same"),
    (("predict", "sparse.model", "a.svm", "--out", "/dev/stdout", "--json"), "would both write to standard output"),
    (("inspect", "empty.jsonl"), "the rows have no columns"),
    (("inspect", "labels.parquet"), "column 'label': the text is not UTF-8"),
    (("inspect", "bytes.parquet", "--numeric", "x"), "row 0, column 'x': the text is not UTF-8"),
    (("train", "bytes.parquet", *STEPS, "--text", "x"), "row 0, column 'x': the text is not UTF-8"),
    (("train", "bytes.parquet", *STEPS, "--categorical", "x:dictionary"), "column 'x': the text is not UTF-8"),
    (("predict", "table.model", "bytes.parquet"), "row 0, column 'x': the text is not UTF-8"),
    (("inspect", "latin.csv"), "line 1: the text is not UTF-8"),
    (("predict", "table.model", "a.svm"), "this is a svmlight file, and the training data was a table"),
    (("predict", "sparse.model", "a.csv"), "this is a table, and the training data was none"),
    (("train", "a.svm", "--test", "a.csv", *STEPS), "this is a table, and the training data was none"),
    (("train", "a.csv", "--test", "a.svm", *STEPS), "this is a svmlight file, and the training data was a table"),
    (("train", "a.csv", *STEPS, "--label", "label", "--drop", "label"), "named by the option 'drop' as well"),
    (("train", "a.csv", *STEPS, "--weight", "label"), "this column is the label and the weight"),
    (("train", "a.csv", *STEPS, "--numeric", "x", "--categorical", "x"), "has two roles, numeric and categorical"),
    (("train", "a.svm", *STEPS, "--numeric", "x"), "are for columns of tables, and 'a.svm' is a svmlight file"),
    (("train", "a.svm", *STEPS, "--fields", "x"), "are for columns of tables, and 'a.svm' is a svmlight file"),
    (("train", "a.svm", *STEPS, "--no-header"), "are for columns of tables, and 'a.svm' is a svmlight file"),
    (("train", "a.svm", *STEPS, "--weight", "x"), "The weight 'x' names a column of a table"),
    (("pack", "a.svm", "new", "--drop", "x"), "are for columns of tables, and 'a.svm' is a svmlight file"),
    (("pack", "a.svm", "new", "--label", "x"), "The label 'x' names a column of a table"),
    (("generate", "criteo", "new.svm", "--rows", "9"), "name the file .tsv, not .svm"),
], ids=lambda words: " ".join(words) if isinstance(words, tuple) else "")  # fmt: skip
def test_a_command_that_would_lose_something_does_nothing(
    command: tuple[str, ...],
    told: str,
    given: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(given)
    before = contents(given)
    assert main([*command]) in (1, 2)
    assert told in capsys.readouterr().err
    assert contents(given) == before


def test_a_model_on_stdout_has_no_summary_behind_it(given: Path, tmp_path: Path) -> None:
    with (tmp_path / "model").open("wb") as file:
        command = [*HOGWILD, "train", given / "a.svm", *STEPS, "--out", "/dev/stdout"]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=True)
    assert b"accuracy" in done.stderr
    assert (tmp_path / "model").read_bytes() != b""
    assert main(["predict", str(tmp_path / "model"), str(given / "a.svm")]) == 0


def test_predictions_for_a_closed_stdout_are_not_made_in_vain(given: Path) -> None:
    command = [*HOGWILD, "predict", given / "sparse.model", given / "a.svm"]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"Standard output is closed. Name a file" in done.stderr


def test_a_table_written_with_its_index_has_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text(",label,x\n0,1,2\n1,0,3\n2,1,2\n")
    assert main(["inspect", str(tmp_path / "a.csv"), "--label", "label"]) == 0
    assert "3" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.arrow"])
def test_a_process_that_ends_right_after_reading_is_not_aborted(name: str, tmp_path: Path) -> None:
    """Arrow's threads gave memory back to Python, which was ending: one in six such processes was aborted."""
    file, rows = tmp_path / name, pyarrow.table({"label": [1, 0] * 2, "x": [1, 2] * 2})
    if name == "a.arrow":
        with pyarrow.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
    else:
        lines = {"a.csv": "label,x\n1,2\n0,3\n", "a.jsonl": '{"label": 1, "x": 2}\n{"label": 0, "x": 3}\n'}
        file.write_text(lines[name])
    command = [*HOGWILD, "train", file, "--weight", "label"]
    codes = [subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode for _ in range(8)]
    assert codes == [1] * 8, os.fspath(file)
