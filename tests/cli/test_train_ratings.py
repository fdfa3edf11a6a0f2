"""Ratings from the command line: generated, trained, predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import load
from hogwild.cli import main

SMALL = ["--users", "200", "--items", "150", "--rows", "6k", "--rank", "3"]
SERIAL = ["--problem", "matrix-completion", "--rank", "4", "--strategy", "serial"]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


@pytest.fixture
def ratings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = str(tmp_path / "u.data")
    made = said(capsys, "generate", "ratings", path, *SMALL)
    assert (made["rows"], made["users"], made["items"]) == (6_000, 200, 150)
    return path


def test_from_a_file_to_predictions(ratings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path(ratings).read_text().splitlines(keepends=True)
    training, test, model = (str(tmp_path / name) for name in ("train.data", "test.data", "model"))
    Path(training).write_text("".join(lines[600:]))
    Path(test).write_text("".join(lines[:600]))
    record = said(capsys, "train", training, *SERIAL, "--test", test, "--epochs", "5", "--out", model)
    assert record["problem"] == "matrix-completion"
    assert record["rmse"] == record["test_rmse"] > record["train_rmse"] > 0.4
    assert record["rows"] == 5_400
    assert record["test_rows"] == 600
    assert record["rule"] == "SGD()"
    predicted = said(capsys, "predict", model, test)
    assert predicted["rmse"] == pytest.approx(record["test_rmse"], rel=1e-4)
    assert len(predicted["predictions"]) == 600
    assert load(model).rank == 4
    assert main(["train", training, *SERIAL, "--epochs", "2"]) == 0
    assert "rmse" in capsys.readouterr().out


def test_held_out_patience_and_checkpoints(ratings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [*SERIAL, "--holdout", "0.2", "--step", "0.05", "--schedule", "constant", "--l2", "0", "--patience", "2"]
    folder = ["--checkpoint", str(tmp_path / "kept")]
    record = said(capsys, "train", ratings, *options, "--epochs", "300", *folder)
    assert record["stop_reason"] == "patience"
    assert record["epochs"] == record["best_epoch"] + 2
    again = said(capsys, "train", ratings, *options, "--epochs", "300", "--resume", str(tmp_path / "kept"))
    assert again["test_rmse"] == record["test_rmse"]


def test_columns_by_name_are_kept_for_predictions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "a.csv", str(tmp_path / "model")
    path.write_text("when,stars,film,who\n" + "".join(f"{k},{k % 5 + 1},f{k % 7},w{k % 11}\n" for k in range(77)))
    names = ["--user", "who", "--item", "film", "--rating", "stars"]
    said(capsys, "train", str(path), *SERIAL, *names, "--epochs", "2", "--out", model)
    (tmp_path / "b.csv").write_text("film,who\nf1,w1\nf1,nobody\n")
    with pytest.raises(AssertionError):  # the column of ratings that the model knows is not there
        said(capsys, "predict", model, str(tmp_path / "b.csv"))
    capsys.readouterr()
    (tmp_path / "c.csv").write_text("film,who,stars\nf1,w1,3\nf1,nobody,3\n")
    predicted = said(capsys, "predict", model, str(tmp_path / "c.csv"))
    assert predicted["unknown_users"] == 1
    assert len(predicted["predictions"]) == 2


def test_a_penalty_is_chosen(ratings: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", ratings, *SERIAL, "--l2", "auto", "--holdout", "0.1", "--epochs", "5"]) == 0
    assert "tried on held-out data" in capsys.readouterr().err
    assert main(["train", ratings, *SERIAL, "--l2", "much"]) != 0
    assert "'l2' parameter must be a number of at least 0, or auto" in capsys.readouterr().err


def test_preferences(ratings: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = said(capsys, "train", ratings, *SERIAL, "--loss", "bpr", "--holdout", "0.1", "--epochs", "5")
    assert 0.5 < record["test_auc"] <= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--problem", "linear", "--rank", "4"],
            "--rank goes with --problem fm, ffm, matrix-completion. Got --problem linear.",
        ),
        (["--problem", "matrix-completion", "--l1", "0.1"], "--l1 goes with --problem linear"),
        (["--problem", "matrix-completion", "--base", "1"], "--features, --weight and --base are for rows of features"),
        (["--problem", "matrix-completion", "--loss", "hinge"], "must be one of 'bpr', 'squared'"),
        (["--problem", "matrix-competition"], "Did you mean 'matrix-completion'?"),
    ],
)
def test_options_of_other_problems_are_refused(
    words: list[str], message: str, ratings: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", ratings, *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_damaged_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "u.data").write_text("1\t2\t3\n1\tx\n")
    assert main(["train", str(tmp_path / "u.data"), *SERIAL]) == 1
    assert "line 2" in capsys.readouterr().err


def test_options_of_other_kinds_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "ratings", str(tmp_path / "a.csv"), "--features", "3"]) == 2
    assert "no 'features' for the kind 'ratings'" in " ".join(capsys.readouterr().err.split())
    assert main(["generate", "rcv1", str(tmp_path / "a.svm"), "--users", "3"]) == 2
    assert main(["generate", "ratings", str(tmp_path / "a.svm")]) == 2
    said(capsys, "generate", "ratings", str(tmp_path / "a.csv"), *SMALL)
    assert main(["generate", "ratings", str(tmp_path / "a.csv"), *SMALL]) == 2
    assert np.loadtxt(tmp_path / "a.csv", delimiter=",", skiprows=1).shape == (6_000, 3)
