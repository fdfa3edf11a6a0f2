"""``hogwild predict``: a line for every row, in the order of the file."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild import load
from hogwild.cli import main

RNG = np.random.default_rng(4)
X = np.where(RNG.random((200, 8)) < 0.5, RNG.standard_normal((200, 8)), 0).round(3)
X[:, 0] += 0.0005  # no row is empty: without a label it would be a blank line
Y = np.where(X @ [3, -2, 1, 1, -1, 2, 0, 1] > 0, 1, -1)


def svmlight(path: Path, base: int = 1, labels: Any = Y, extra: str = "") -> str:
    lines = []
    for row, label in zip(X, labels if labels is not None else [None] * len(X), strict=True):
        entries = " ".join(f"{c + base}:{v}" for c, v in enumerate(row) if v)
        lines.append(f"{'' if label is None else label} {entries}{extra}".strip())
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def vw(path: Path, labelled: bool = True) -> str:
    def entries(row: Any) -> str:
        return " ".join(f"f{c}:{v}" for c, v in enumerate(row) if v)

    lines = [f"{y if labelled else ''} |a {entries(row)}".strip() for row, y in zip(X, Y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def parquet(path: Path, labelled: bool = True) -> str:
    import pyarrow
    import pyarrow.parquet

    columns = {f"f{c}": X[:, c] for c in range(8)} | ({"label": Y} if labelled else {})
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return str(path)


def npz(path: Path, labelled: bool = True) -> str:
    matrix = sp.csr_matrix(X)
    parts = {"format": b"csr", "shape": matrix.shape, "data": matrix.data, "indices": matrix.indices}
    np.savez(path, indptr=matrix.indptr, **parts, **({"y": Y} if labelled else {}))  # type: ignore[arg-type]
    return str(path)


def train(data: str, folder: Path, *words: str) -> str:
    model = str(folder / "model")
    assert main(["train", data, "--strategy", "serial", "--step", "1", "--epochs", "20", "--out", model, *words]) == 0
    return model


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("predict")
    data = svmlight(folder / "a.svm")
    return train(data, folder), data


@pytest.fixture(autouse=True)
def _quiet(trained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()


def accuracy(model: str) -> str:
    return f"accuracy {np.mean(load(model).predict(X) == Y):.4f} on 200 rows"


def predicted(capsys: pytest.CaptureFixture[str], *words: str) -> list[list[float]]:
    capsys.readouterr()
    assert main(["predict", *words]) == 0
    return [[float(part) for part in line.split("\t")] for line in capsys.readouterr().out.splitlines()]


def test_a_line_for_every_row_in_order(trained: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    lines = predicted(capsys, *trained)
    assert lines == load(trained[0]).predict(X).reshape(-1, 1).tolist()
    assert np.mean(np.ravel(lines) == Y) > 0.95


def test_the_accuracy_is_told_on_the_side(trained: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *trained]) == 0
    assert accuracy(trained[0]) in capsys.readouterr().err


def test_probabilities(trained: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    lines = np.array(predicted(capsys, *trained, "--proba"))
    model = load(trained[0])
    assert lines == pytest.approx(model.probabilities_of(model.decide(X)), rel=1e-6)
    assert lines.shape == (200, 2)


def test_json(trained: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *trained, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["rows"], record["classes"]) == (200, [-1, 1])
    assert record["accuracy"] > 0.95
    assert record["predictions"] == load(trained[0]).predict(X).tolist()
    assert main(["predict", *trained, "--json", "--proba"]) == 0
    assert np.shape(json.loads(capsys.readouterr().out)["probabilities"]) == (200, 2)


def test_into_files(trained: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, array = tmp_path / "p.txt", tmp_path / "p.npy"
    lines = predicted(capsys, *trained, "--proba")
    assert predicted(capsys, *trained, "--proba", "--out", str(text)) == []
    assert predicted(capsys, *trained, "--proba", "--out", str(array)) == []
    assert np.loadtxt(text).tolist() == lines
    assert np.load(array) == pytest.approx(np.array(lines), rel=1e-8)
    assert main(["predict", *trained, "--out", str(text), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == str(text)
    assert np.loadtxt(text).tolist() == load(trained[0]).predict(X).tolist()


@pytest.mark.parametrize("out", ["no/folder/p.txt", "."])
def test_impossible_out(out: str, trained: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *trained, "--out", out]) == 2
    assert "folder" in capsys.readouterr().err


def test_without_labels(trained: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = svmlight(tmp_path / "bare.svm", labels=None)
    assert predicted(capsys, trained[0], bare) == predicted(capsys, *trained)
    assert main(["predict", trained[0], bare]) == 0
    assert "accuracy" not in capsys.readouterr().err


def test_labels_the_model_does_not_know(
    trained: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = svmlight(tmp_path / "other.svm", labels=np.arange(200))
    assert predicted(capsys, trained[0], other) == predicted(capsys, *trained)


@pytest.mark.parametrize(("label", "labels", "loss"), [
    ("", ("no", "yes"), "logistic"), ("maybe", ("no", "yes"), "logistic"), ("", ("0.5", "1.5"), "squared"),
])  # fmt: skip
def test_a_row_without_a_known_label_leaves_no_accuracy(
    label: str, labels: tuple[str, str], loss: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was taken for the first class, or for 0."""
    pytest.importorskip("pyarrow", reason="pip install 'hogwild[parquet]'")
    rows = "".join(f"{labels[row % 2]},{row % 2}\n" for row in range(20))
    (tmp_path / "a.csv").write_text(f"label,x\n{rows}")
    (tmp_path / "b.csv").write_text(f"label,x\n{rows}{label},1\n")
    model = str(tmp_path / "model")
    assert main(["train", str(tmp_path / "a.csv"), "--loss", loss, "--epochs", "2", "--out", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, str(tmp_path / "a.csv"), "--json"]) == 0
    assert {"accuracy", "r2"} & set(json.loads(capsys.readouterr().out))
    assert main(["predict", model, str(tmp_path / "b.csv"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["rows"] == 21
    assert not {"accuracy", "r2"} & set(answer)


def test_unknown_features_are_left_out(
    trained: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = svmlight(tmp_path / "wide.svm", extra=" 100:7 20000:1")
    assert predicted(capsys, trained[0], wide) == predicted(capsys, *trained)


@pytest.mark.parametrize("base", [0, 1])
def test_indices_count_as_they_did_in_training(base: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that has no 0 in it says nothing of where it counts from: the model knows."""
    data = svmlight(tmp_path / "a.svm", base)
    model = train(data, tmp_path)
    late = "".join(f"{2 + base}:1 {5 + base}:{k}\n" for k in range(-9, 9))
    (tmp_path / "late.svm").write_text(late)
    rows = np.zeros((18, 8), np.float32)
    rows[:, 2], rows[:, 5] = 1, np.arange(-9, 9)
    found = np.array(predicted(capsys, model, str(tmp_path / "late.svm"), "--proba"))
    assert found == pytest.approx(load(model).probabilities_of(load(model).decide(rows)), rel=1e-5)


@pytest.mark.parametrize("write", [vw, parquet, npz])
def test_other_formats(write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ending = {vw: ".vw", parquet: ".parquet", npz: ".npz"}[write]
    data = write(tmp_path / f"a{ending}")
    model = train(data, tmp_path, "--bits", "10")
    bare = write(tmp_path / f"bare{ending}", labelled=False)
    lines = predicted(capsys, model, bare)
    assert np.mean(np.ravel(lines) == Y) > 0.95
    assert lines == predicted(capsys, model, data)


def test_a_packed_folder(trained: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "packed")
    assert main(["pack", trained[1], folder]) == 0
    capsys.readouterr()
    assert main(["predict", trained[0], folder]) == 0
    out, err = capsys.readouterr()
    assert "shuffled when they were packed" in err
    assert sorted(map(float, out.split())) == sorted(np.ravel(predicted(capsys, *trained)).tolist())
    assert accuracy(trained[0]) in err


def test_names_hashed_when_they_were_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder was packed with other bits than the default; the model hashes new names in the same way."""
    data = vw(tmp_path / "a.vw")
    assert main(["pack", data, str(tmp_path / "packed"), "--bits", "12"]) == 0
    model = train(str(tmp_path / "packed"), tmp_path)
    assert np.mean(np.ravel(predicted(capsys, model, data)) == Y) > 0.95


def test_several_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.argmax(X[:, :3], axis=1) * 10
    data = svmlight(tmp_path / "a.svm", labels=labels)
    model = train(data, tmp_path, "--loss", "softmax")
    assert np.mean(np.ravel(predicted(capsys, model, data)) == labels) > 0.9
    p = np.array(predicted(capsys, model, data, "--proba"))
    assert p.shape == (200, 3)
    assert p.sum(axis=1) == pytest.approx(np.ones(200), rel=1e-6)


def test_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = svmlight(tmp_path / "a.svm", labels=(X @ np.arange(8)).round(4))
    model = train(data, tmp_path, "--loss", "squared")
    assert main(["predict", model, data, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["r2"] > 0.99
    assert main(["predict", model, data, "--proba"]) == 2
    assert "gives no probabilities" in capsys.readouterr().err


# What is no model


class Bomb:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("exploded"),)


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "pickle", "truncated", "flipped", "folder", "checkpoint"])
def test_what_is_no_model(
    kind: str, trained: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    whole, path = Path(trained[0]).read_bytes(), Path("wrong")
    if kind == "folder":
        path.mkdir()
    elif kind == "checkpoint":
        assert main(["train", trained[1], "--step", "1", "--epochs", "1", "--checkpoint", "points"]) == 0
        path = Path("points/latest.safetensors")
    elif kind != "missing":
        content = {
            "empty": b"", "text": b"1 1:1\n", "pickle": pickle.dumps(Bomb()), "truncated": whole[:-5],
            "flipped": whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:],
        }[kind]  # fmt: skip
        path.write_bytes(content)
    capsys.readouterr()
    assert main(["predict", str(path), trained[1], "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "ModelError"
    assert str(path) in json.loads(out)["error"]
    assert err.count("\n") == 1
    assert not Path("exploded").exists()


def test_wrong_data(trained: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", trained[0], str(tmp_path / "missing.svm")]) == 1
    (tmp_path / "bad.svm").write_text("1 1:1\n1 1:x\n")
    assert main(["predict", trained[0], str(tmp_path / "bad.svm"), "--out", str(tmp_path / "p.txt")]) == 1
    assert "bad.svm, line 2" in capsys.readouterr().err
    assert not (tmp_path / "p.txt").exists()
