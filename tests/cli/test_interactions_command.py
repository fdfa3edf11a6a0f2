"""Factorisation machines on the command line, from a generated file to predictions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hogwild.cli import main


def ran(*words):
    assert main([str(word) for word in words]) == 0


def told(capsys, *words):
    capsys.readouterr()
    ran(*words, "--json")
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interactions")
    for name, rows in (("train.ffm", 4_000), ("test.ffm", 500), ("train.svm", 4_000)):
        ran("generate", "interactions", folder / name, "--rows", rows, "--features", 60, "--fields", 5, "--rank", 2)
    return folder


@pytest.mark.parametrize("problem", ["fm", "ffm"])
def test_train_and_predict(files, problem, capsys):
    model = files / f"{problem}.model"
    record = told(
        capsys, "train", files / "train.ffm", "--problem", problem, "--rank", 4, "--l2-factors", 1e-3, "--test",
        files / "test.ffm", "--epochs", 5, "--out", model,
    )  # fmt: skip
    assert (record["problem"], record["rows"], record["features"], record["epochs"]) == (problem, 4_000, 60, 5)
    assert record["test_accuracy"] > 0.7
    answers = told(capsys, "predict", model, files / "test.ffm")
    assert answers["accuracy"] == pytest.approx(record["test_accuracy"], abs=1e-9)
    assert set(np.unique(answers["predictions"])) == {-1, 1}


def test_a_checkpoint_is_gone_on_from(files, tmp_path, capsys):
    how = "train", files / "train.svm", "--problem", "fm", "--workers", 1, "--schedule", "constant"
    ran(*how, "--epochs", 2, "--checkpoint", tmp_path / "c")
    resumed = told(capsys, *how, "--epochs", 4, "--resume", tmp_path / "c")
    assert resumed["events"][-1]["event"] == "resumed"
    assert resumed["objective"] == told(capsys, *how, "--epochs", 4)["objective"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.ffm"], "is a libffm file, which is for --problem ffm, or fm"),
        (["train.svm", "--problem", "ffm"], "does not say of which field each feature is"),
        (["train.svm", "--rank", "3"], "--rank goes with --problem"),
        (["train.svm", "--problem", "fm", "--l1", "0.1"], "--l1 goes with --problem linear"),
        (["train.svm", "--problem", "fm", "--rank", "0"], "rank"),
    ],
)
def test_what_does_not_go_together_is_refused(files, arguments, message, capsys):
    assert main(["train", str(files / arguments[0]), *arguments[1:]]) != 0
    assert message in capsys.readouterr().err.replace("\n", " ")
