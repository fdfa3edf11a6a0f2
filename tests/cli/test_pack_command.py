from __future__ import annotations

import json
from pathlib import Path

import pytest

from hogwild.cli import main
from hogwild.data import open as open_data


@pytest.fixture
def parts(tmp_path: Path) -> list[str]:
    (tmp_path / "a.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    (tmp_path / "b.svm").write_text("1 4:1\n")
    return [str(tmp_path / "a.svm"), str(tmp_path / "b.svm")]


def test_several_files_become_one_folder(parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dest = tmp_path / "ab.packed"
    assert main(["pack", *parts, str(dest), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["rows"], record["features"], record["nonzeros"]) == (3, 4, 4)
    assert record["dest"] == str(dest)
    assert record["memory"] > 2**30  # besides what the program takes
    assert record["bytes"] == sum(part.stat().st_size for part in dest.iterdir())
    data = open_data(dest)
    assert sorted(data.labels().tolist()) == [-1, 1, 1]
    assert main(["inspect", str(dest), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 3


def test_people_are_told_what_came_of_it(parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", *parts, str(tmp_path / "ab.packed"), "--features", "10"]) == 0
    assert "3 rows x 10 features, 4 non-zeros" in capsys.readouterr().out


def test_a_folder_is_replaced_only_when_asked(
    parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pack", *parts, str(tmp_path / "ab.packed")]
    assert main(words) == 0
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*words, "--overwrite"]) == 0


@pytest.mark.parametrize("memory", ["lots", "-1", "1MB", ""])
def test_impossible_memory(memory: str, parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", *parts, str(tmp_path / "ab.packed"), f"--memory={memory}"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "ab.packed").exists()


def test_damaged_input_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.svm").write_text("1 1:1\n1 0x:1\n")
    assert main(["pack", str(tmp_path / "bad.svm"), str(tmp_path / "out"), "--json"]) == 1
    assert "line 2" in json.loads(capsys.readouterr().out)["error"]
    assert [path.name for path in tmp_path.iterdir()] == ["bad.svm"]


def test_several_processes_pack_the_same(parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for workers in ("1", "2"):
        assert main(["pack", *parts, str(tmp_path / workers), "--shards", "2", "--workers", workers, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert (record["rows"], record["shards"], record["workers"]) == (3, 2, int(workers))
    one, two = (open_data(tmp_path / workers) for workers in "12")
    assert one.labels().tolist() == two.labels().tolist()


@pytest.mark.parametrize(
    ("words", "told"),
    [(["--runtime", "threads"], "with --runtime ray"), (["--address", "auto"], "--address goes with --runtime ray")],
)
def test_other_runtimes_do_not_pack(
    words: list[str], told: str, parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pack", *parts, str(tmp_path / "out"), *words]) == 2
    assert told in capsys.readouterr().err


def test_both_a_source_and_a_destination_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", str(tmp_path / "a.svm")]) == 2
    assert "Missing argument" in capsys.readouterr().err
