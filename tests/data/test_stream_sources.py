"""Standard input, named pipes and devices as data."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from backports import zstd

import hogwild
from hogwild.cli import main
from hogwild.data import ReadOptions, streams
from hogwild.data.ratings import open_ratings
from hogwild.data.text_limits import TextLimits
from hogwild.errors import DataError, ParameterError

SVM = b"".join(b"%d %d:0.5 %d:1\n" % (i % 2, 1 + i % 7, 8 + i % 3) for i in range(400))
VW = b"".join(b"%d |a b%d c\n" % (i % 2, i % 7) for i in range(400))
Feed = Callable[[bytes], None]


@pytest.fixture
def stdin() -> Iterator[Feed]:
    """Make bytes standard input, written by a thread, so that a pipe's capacity is no limit."""
    saved, threads = os.dup(0), []

    def feed(content: bytes) -> None:
        reading, writing = os.pipe()
        os.dup2(reading, 0)
        os.close(reading)

        def write() -> None:
            with open(writing, "wb", closefd=True) as file:  # noqa: PTH123
                try:
                    file.write(content)
                except BrokenPipeError:
                    os.close(file.detach().detach().fileno())

        threads.append(threading.Thread(target=write))
        threads[-1].start()

    yield feed
    os.dup2(saved, 0)
    os.close(saved)
    for thread in threads:
        thread.join(60)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (SVM, "a.svm"),
        (VW, "a.vw"),
        (gzip.compress(SVM), "a.svm.gz"),
        (zstd.compress(VW), "a.vw.zst"),
        (b"# clicks\n" * 20_000 + SVM, "a.svm"),
        (SVM * 500, "a.svm"),
    ],
    ids=["svmlight", "vw", "gzip", "zstd", "after many comments", "larger than a pipe"],
)
def test_standard_input_is_a_file_like_any(stdin: Feed, tmp_path: Path, content: bytes, name: str) -> None:
    stdin(content)
    found = hogwild.data.open("-")
    assert found.fingerprint == hogwild.data.open(written(tmp_path / name, content)).fingerprint
    assert found.name == "standard input"


def test_formats_that_are_looked_at_twice(stdin: Feed, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.eye(4), y=[0, 1, 0, 1])
    stdin((tmp_path / "a.npz").read_bytes())
    assert hogwild.data.open("-").n_rows == 4
    stdin(b"user,item,rating\nann,7,5\n")
    assert open_ratings("-").n_users == 1


def test_all_commands(stdin: Feed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "model")
    stdin(SVM)
    assert main(["train", "-", "--strategy", "serial", "--epochs", "1", "--step", "0.1", "--out", model]) == 0
    capsys.readouterr()
    stdin(SVM)
    assert main(["predict", model, "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 400
    stdin(VW)
    assert main(["inspect", "-", "--format", "vw", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "standard input"
    stdin(SVM)
    assert main(["pack", "-", str(tmp_path / "packed")]) == 0
    assert hogwild.data.open(tmp_path / "packed").n_rows == 400
    stdin(b"")
    assert main(["inspect", "-"]) == 1
    assert "standard input: nothing came before its end" in capsys.readouterr().err


def test_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "clicks.vw"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(VW,))
    writer.start()
    found = hogwild.data.open(pipe)
    writer.join()
    assert (found.n_rows, found.name) == (400, "clicks.vw")


def test_a_pipe_that_nobody_writes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "WRITER_SECONDS", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"pipe: no program has written to this pipe within 0.05 seconds"):
        hogwild.data.open(tmp_path / "pipe")


def test_a_substituted_process(tmp_path: Path) -> None:
    """A shell gives the output of ``<(zcat a.gz)`` as a descriptor."""
    reading, writing = os.pipe()
    os.write(writing, SVM[:1300].rpartition(b"\n")[0])
    os.close(writing)
    assert hogwild.data.open(f"/dev/fd/{reading}").n_rows == SVM[:1300].count(b"\n")
    os.close(reading)


@pytest.mark.parametrize(
    "content",
    [b"1 1:1\nx 1:1\n", gzip.compress(b"1 1:1\nx 1:1\n"), b"1 1:1\n" * 99_999 + b"x"],
    ids=["plain", "gzip", "long"],
)
def test_errors_name_standard_input(stdin: Feed, content: bytes) -> None:
    stdin(content)
    with pytest.raises(DataError, match=r"^standard input, line [\d,]+, column 1: the label 'x'"):
        hogwild.data.open("-")


def test_limits_hold(stdin: Feed) -> None:
    stdin(gzip.compress(SVM + b"\n" * 3_000_000))
    small = ReadOptions(limits=TextLimits(most_unpacked=2**20))
    with pytest.raises(DataError, match=r"^standard input: .*holds more than 1.0 MiB"):
        hogwild.data.open("-", reading=small)
    with pytest.raises(DataError, match=r"/dev/zero, line 1: the line is longer than"):
        hogwild.data.open("/dev/zero", reading=ReadOptions(limits=TextLimits(longest_line=2**21)))
    stdin(gzip.compress(SVM)[:-30])
    with pytest.raises(DataError, match="standard input: the gzip archive is truncated"):
        hogwild.data.open("-")


def test_a_rest_that_nobody_reads_holds_nobody_up(stdin: Feed) -> None:
    """After an error the program that writes is told, instead of waiting for ever."""
    stdin(b"x 1:1\n" + SVM * 5000)
    with pytest.raises(DataError, match="line 1"):
        hogwild.data.open("-")


def test_two_streams_are_refused() -> None:
    with pytest.raises(ParameterError, match="One stream"):
        hogwild.data.open(["-", "-"])


def test_nothing_is_left(stdin: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    stdin(SVM)
    hogwild.data.pack(["-"], tmp_path / "packed")
    assert not list((tmp_path / "temporary").iterdir())
