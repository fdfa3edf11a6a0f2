from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hogwild.cli import main
from hogwild.data import open as open_data
from hogwild.data.generate import KINDS


def made(out: Path, *options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["generate", *options[:1], str(out), *options[1:], "--json"]) == 0
    record: dict[str, object] = json.loads(capsys.readouterr().out)
    return record


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_written_and_read(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = made(tmp_path / "a.svm", kind, "--rows", "300", "--features", "60", capsys=capsys) if kind != "rcv1" else (
        made(tmp_path / "a.svm", kind, "--rows", "300", capsys=capsys)
    )  # fmt: skip
    assert record["rows"] == 300
    data = open_data(tmp_path / "a.svm")
    assert data.n_rows == 300
    assert data.n_features <= record["features"]  # type: ignore[operator]
    assert record["bytes"] == (tmp_path / "a.svm").stat().st_size


def test_options_reach_the_generator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("multiclass", "--rows", "0.5k", "--features", "40", "--nonzeros", "5", "--classes", "3", "--noise", "0",
               "--exponent", "0.5", "--weights", str(tmp_path / "w.npz"))  # fmt: skip
    made(tmp_path / "a.svm", *options, "--seed", "4", capsys=capsys)
    data = open_data(tmp_path / "a.svm")
    assert data.n_rows == 500
    assert set(data.labels().tolist()) <= {0.0, 1.0, 2.0}
    with np.load(tmp_path / "w.npz", allow_pickle=False) as planted:
        assert planted["weights"].shape == (3, 40)
    made(tmp_path / "b.svm", *options[:-2], "--seed", "4", capsys=capsys)
    made(tmp_path / "c.svm", *options[:-2], "--seed", "5", capsys=capsys)
    same, other = (tmp_path / "b.svm").read_bytes(), (tmp_path / "c.svm").read_bytes()
    assert (tmp_path / "a.svm").read_bytes() == same != other


def test_nothing_is_overwritten_unless_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.svm"
    out.write_text("precious")
    words = ["generate", "regression", str(out), "--rows", "10", "--features", "40"]
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert main([*words, "--overwrite"]) == 0
    assert "10 rows x 40 features" in capsys.readouterr().out
    assert out.read_text() != "precious"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["no-such", "a.svm"], "'kind'"),
        (["regression", "a.docx"], "must end in"),
        (["regression", "a.svm", "--classes", "3"], "'classes'"),
        (["regression", "a.svm", "--rows", "many"], "--rows"),
        (["regression", "a.svm", "--rows", "0"], "--rows"),
        (["regression", "a.svm", "--rows", "1.5"], "--rows"),
        (["regression", "a.svm", "--rows", "inf"], "--rows"),
        (["regression", "a.svm", "--features", "3", "--nonzeros", "5"], "'nonzeros'"),
    ],
)
def test_wrong_usage(
    words: list[str],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["generate", *words]) == 2
    assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
