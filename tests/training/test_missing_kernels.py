"""Seconds of training by one worker for lack of a kernel add up over processes, until the kernel is compiled."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hogwild.runtimes.shared_memory import missing_kernels
from hogwild.runtimes.shared_memory.missing_kernels import count_seconds, keep_seconds, seconds_without


def kernel(index: Path | None) -> Any:
    """A compiled function whose machine code would be listed in a file; None: it is not kept on disk."""
    file = None if index is None else SimpleNamespace(_index_path=str(index))
    cache = SimpleNamespace() if file is None else SimpleNamespace(_cache_file=file)
    return type("Kernel", (), {"_cache": cache})()


@pytest.fixture(autouse=True)
def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_kernels, "_on_disk", {})


def test_the_next_process_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    first, second = kernel(tmp_path / "cache" / "loop.nbi"), kernel(tmp_path / "cache" / "loop.nbi")
    count_seconds(first, 0.5)
    count_seconds(first, 0.75)
    assert seconds_without(first) == 1.25
    keep_seconds(first)
    assert seconds_without(second) == 1.25
    count_seconds(second, 1.0)
    keep_seconds(second)
    assert seconds_without(kernel(tmp_path / "cache" / "loop.nbi")) == 2.25
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["loop.seconds"]


@pytest.mark.parametrize("text", ["", "abc", "nan", "inf", "-3", "9" * 500, "\x00" * 10])
def test_a_damaged_file_counts_as_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "loop.seconds").write_text(text)
    found = kernel(tmp_path / "loop.nbi")
    assert seconds_without(found) in (0.0, float("9" * 64))
    count_seconds(found, 2.0)
    keep_seconds(found)
    assert seconds_without(found) >= 2.0


def test_without_a_place_on_disk_the_seconds_are_those_of_this_process(tmp_path: Path) -> None:
    nowhere, refused = kernel(None), kernel(tmp_path / "file" / "loop.nbi")
    (tmp_path / "file").write_text("not a folder")
    for each in (nowhere, refused):
        count_seconds(each, 3.0)
        keep_seconds(each)
        assert seconds_without(each) == 3.0
