from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hogwild.cli import main
from hogwild.cli.inspect import LARGE, advise
from hogwild.data import InMemoryDataset
from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, CSRRows
from hogwild.data.statistics import Statistics, describe
from hogwild.terminal_plot import log_log

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small [1].svm"
    path.write_text("1 1:0.5 3:2\n-1 2:1\n1 1:1 2:1 3:1 4:1\n-1 5:1\n")
    return path


def inspected(path: Path, *options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["inspect", str(path), "--json", *options]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


def test_the_record(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = inspected(small, capsys=capsys)
    assert record["source"] == small.name
    assert (record["rows"], record["features"], record["nonzeros"]) == (4, 5, 8)
    assert record["density"] == 8 / 20
    assert record["omega"] == 4
    assert record["delta"] == 0.5
    assert record["most_frequent_feature"] == 1  # as the file counts
    assert record["rho"] == record["rho_low"] == record["rho_high"] == 0.75
    assert record["rho_exact"] is True
    assert record["labels"]["counts"] == {"-1.0": 2, "1.0": 2}
    assert [row["workers"] for row in record["collisions"]] == [1, 2, 4, 8, 16, 32, 64]
    assert record["collisions"][0]["others"] == 0
    assert record["frequencies"]["rows"][0] == 2
    assert record["advice"]
    assert record["seconds"] > 0


def test_reading_options_reach_the_reader(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = inspected(small, "--base", "0", "--features", "9", capsys=capsys)
    assert record["features"] == 9
    assert record["most_frequent_feature"] == 1
    assert main(["inspect", str(small), "--features", "2"]) == 1
    assert main(["inspect", str(small), "--base", "7"]) == 2
    assert main(["inspect", str(small), "--format", "punch-cards"]) == 2


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_picture_fits_the_terminal(
    small: Path, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["inspect", str(small)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    for word in ("small [1].svm", "Omega", "Delta", "rho", "workers", "What to use", "exact"):
        assert word in out


def test_a_missing_and_a_damaged_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "none.svm"), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "DataError"
    assert err.startswith("error: ")
    (tmp_path / "bad.svm").write_text("1 1:2\n1 1:x\n")
    assert main(["inspect", str(tmp_path / "bad.svm")]) == 1
    assert "line 2" in capsys.readouterr().err


def test_quantities_and_rows_without_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.svm").write_text("0.5 1:1\n1.5\n2.25 1:1\n")
    record = inspected(tmp_path / "a.svm", capsys=capsys)
    assert record["labels"]["kind"] == "real"
    assert record["empty_rows"] == 1
    assert any("--loss squared" in line for line in record["advice"])
    assert any("no features" in line for line in record["advice"])
    assert main(["inspect", str(tmp_path / "a.svm")]) == 0


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not here")
def test_real_data(capsys: pytest.CaptureFixture[str]) -> None:
    record = inspected(SHARED / "a9a.svm.gz", capsys=capsys)
    assert (record["rows"], record["features"], record["omega"]) == (32_561, 123, 14)
    assert record["layout"] == "binary"
    assert record["rho"] == 1.0


def statistics(rows: list[list[int]], features: int, labels: list[float]) -> Statistics:
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([i for row in rows for i in row], np.uint32)
    made = CSRRows(indptr, indices, NO_VALUES, np.array(labels), NO_WEIGHTS, features, "binary")
    return describe(InMemoryDataset(made, shuffled=False))


def test_advice_follows_the_numbers() -> None:
    sparse = replace(statistics([[i] for i in range(50)], 50, [1.0, -1.0] * 25), nonzeros=10**8, rows=10**7)
    assert "--strategy hogwild suits, with up to 12" in advise(sparse, cores=12)[0]
    crowded = replace(sparse, crowding=8.0)
    assert "--strategy averaging" in advise(crowded, cores=12)[0]
    busy = replace(sparse, crowding=1.5)
    assert "few workers" in advise(busy, cores=12)[0]
    assert any("hogwild pack" in line for line in advise(sparse, cores=1, file_bytes=LARGE))
    assert not any("hogwild pack" in line for line in advise(sparse, cores=1, file_bytes=LARGE, packed=True))
    small = advise(statistics([[0], [0, 1], []], 2, [0.0, 1.0, 2.0]), cores=2)
    assert "serial" in small[0]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1.0] * 40, "nothing to learn"),
        ([1.0] * 39 + [-1.0], "weigh the classes"),
        ([1.0, 2.0, 3.0, 4.0] * 10, "softmax"),
        ([i + 0.5 for i in range(40)], "poisson"),
    ],
)
def test_advice_follows_the_labels(labels: list[float], expected: str) -> None:
    assert any(expected in line for line in advise(statistics([[0]] * 40, 1, labels), cores=2))


@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=60),
    st.integers(20, 200),
    st.integers(2, 20),
    st.booleans(),
)
def test_a_plot_keeps_its_size(counts: list[int], width: int, height: int, ascii_only: bool) -> None:
    falling = np.array(sorted(counts, reverse=True))
    drawn = log_log(np.arange(1, len(counts) + 1), falling, width=width, height=height, ascii_only=ascii_only)
    lines = drawn.splitlines()
    assert len(lines) == height + 2
    assert max(map(len, lines[:-1])) <= width
    assert any(mark in drawn for mark in ("*" if ascii_only else map(chr, range(0x2801, 0x2900))))
    if ascii_only:
        assert drawn.isascii()


def test_a_plot_falls_from_left_to_right() -> None:
    lines = log_log(np.array([1, 10, 100]), np.array([1000, 100, 1]), width=40, height=9, ascii_only=True).splitlines()
    starts = [line.index("*") for line in lines[:-2] if "*" in line]
    assert starts == sorted(starts)
    assert len(starts) == 9


def test_colours_do_not_break_the_picture(small: Path) -> None:
    from hogwild.cli.console import Output
    from hogwild.cli.inspect import _picture
    from hogwild.data import open as open_data

    data = open_data(small)
    out = Output()
    out.console = Console(file=io.StringIO(), force_terminal=True, width=80, markup=False, record=True)
    out.show(*_picture(out, data, describe(data), np.array([1, 2]), np.array([5, 1]), ["Do this."]))
    assert "small [1].svm" in out.console.export_text()
