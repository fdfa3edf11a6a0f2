"""Files that would take unbounded time or memory, and byte-order marks, in every text format."""

from __future__ import annotations

import bz2
import gzip
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

import hogwild
from hogwild.cli import main
from hogwild.data.graphs import read_edges
from hogwild.data.ratings.open_ratings import open_ratings
from hogwild.data.reader import ReadOptions
from hogwild.data.readers import tfrecord
from hogwild.data.readers.long_number import to_float
from hogwild.data.text_limits import TextLimits
from hogwild.data.tfrecord_writer import RecordWriter
from hogwild.errors import DataError, ParameterError

# Two lines of each format, and how a file of it is read.
LINES = {
    "svm": b"1 1:1 2:3\n0 2:1\n",
    "vw": b"1 |a b:1 c\n0 |a c:2\n",
    "ffm": b"1 0:1:1 1:2:1\n0 0:1:1\n",
    "csv": b"ann,7,5\nbob,8,3\n",
    "edges": b"ann bob 2\nbob cid 1\n",
}


def read(path: Path, **limits: int) -> object:
    kind = next(part for part in path.name.split(".")[1:] if part in LINES)
    if kind == "csv":
        return open_ratings(path)
    if kind == "edges":
        return read_edges(path)
    reading = ReadOptions(limits=TextLimits(**limits)) if limits else ReadOptions()
    return hogwild.FieldAwareFactorisationMachine(path) if kind == "ffm" else hogwild.data.open(path, reading=reading)


@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("kind", LINES)
def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, packed: str) -> None:
    monkeypatch.setenv("HOGWILD_LONGEST_LINE", "1MB")
    file = tmp_path / f"a.{kind}{packed}"
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd.compress}[packed]
    file.write_bytes(pack(LINES[kind] + bytes(3_000_000)))
    with pytest.raises(DataError, match=r"line 3: the line is longer than 976.6 KiB.*HOGWILD_LONGEST_LINE"):
        read(file)
    file.write_bytes(pack(LINES[kind] + b" " * 900_000 + b"\n"))
    read(file)
    monkeypatch.setenv("HOGWILD_LONGEST_LINE", "much")
    with pytest.raises(ParameterError, match="variable HOGWILD_LONGEST_LINE"):
        read(file)


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_an_archive_that_holds_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, ending: str
) -> None:
    file = tmp_path / f"a.{kind}{ending}"
    file.write_bytes((gzip if ending == ".gz" else zstd).compress(LINES[kind] + b"\n" * 3_000_000))
    read(file)
    monkeypatch.setenv("HOGWILD_MOST_UNPACKED", "1MiB")
    with pytest.raises(DataError, match=r"holds more than 1.0 MiB.*HOGWILD_MOST_UNPACKED"):
        read(file)


def test_limits_of_one_call(tmp_path: Path) -> None:
    file = tmp_path / "a.svm"
    file.write_bytes(LINES["svm"])
    with pytest.raises(DataError, match="line 1: the line is longer than 5 B"):
        read(file, longest_line=5)
    read(file, longest_line=10)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_bomb_takes_little_memory(tmp_path: Path, ending: str) -> None:
    """A megabyte of gzip, or kilobytes of Zstandard, with a gigabyte of NUL bytes, in which there is no line."""
    file = tmp_path / f"a.svm{ending}"
    with gzip.open(file, "wb", 9) if ending == ".gz" else zstd.open(file, "wb") as writer:
        for _ in range(300):
            writer.write(bytes(2**20))
    tracemalloc.start()
    with pytest.raises(DataError, match=r"line 1: the line is longer than 64.0 MiB"):
        read(file)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_an_npz_archive_and_records_that_hold_too_much(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1000, 1000)), y=np.zeros(1000))
    small = ReadOptions(limits=TextLimits(most_unpacked=2**20))
    with pytest.raises(DataError, match=r"holds more than 1.0 MiB"):
        hogwild.data.open(tmp_path / "a.npz", reading=small)
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write([1], [1.0], 1)
    with RecordWriter(tmp_path / "b.tfrecord") as writer:
        writer.write(list(range(400_000)), [1.0] * 400_000, 1)
    one = hogwild.data.open(tmp_path / "a.tfrecord", reading=small)
    assert one.n_rows == 1
    long = (tmp_path / "b.tfrecord").read_bytes()
    assert struct.unpack("<Q", long[:8])[0] > 2**20
    (tmp_path / "c.tfrecord.gz").write_bytes(gzip.compress(long))
    with pytest.raises(DataError, match=r"holds more than 1.0 MiB"):
        hogwild.data.open(tmp_path / "c.tfrecord.gz", reading=small)
    with pytest.raises(DataError, match="a record is longer than 64"):
        list(tfrecord._pieces(tmp_path / "b.tfrecord", 4096, TextLimits(longest_line=2**16)))


@pytest.mark.parametrize(
    ("kind", "token"),
    [
        ("svm", b"0 1:"),
        ("svm", b"0 "),
        ("svm", b"0 1:1 "),
        ("vw", b"0 |a b:"),
        ("vw", b""),
        ("ffm", b"0 0:1:"),
        ("ffm", b"0 "),
        ("csv", b"cid,9,"),
        ("edges", b"cid dan "),
    ],
)
@pytest.mark.parametrize("byte", [b"x", b"1", b"\0"])
@pytest.mark.timeout(120)  # The square of ten million steps would take years.
def test_a_token_of_ten_megabytes(tmp_path: Path, kind: str, token: bytes, byte: bytes) -> None:
    """The error is one short message, and is found in time that grows with the file, not with its square."""
    file = tmp_path / f"a.{kind}"
    size = 10_000_000
    for tokens in (size // 50, size):
        file.write_bytes(LINES[kind] + token + byte * tokens + b"\n")
        with pytest.raises(DataError, match="line 3") as caught:
            read(file)
        assert len(str(caught.value)) < 3000


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", LINES)
def test_a_byte_order_mark_is_skipped(tmp_path: Path, kind: str, packed: bool) -> None:
    plain, marked = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}{'.gz' if packed else ''}"
    plain.write_bytes(LINES[kind])
    content = b"\xef\xbb\xbf" + LINES[kind]
    marked.write_bytes(gzip.compress(content) if packed else content)
    first, second = read(plain), read(marked)
    if kind == "edges":
        assert first.names == second.names  # type: ignore[attr-defined]
    elif kind == "csv":
        assert list(first.users.names) == list(second.users.names)  # type: ignore[attr-defined]
    else:
        data = [each.data if kind == "ffm" else each for each in (first, second)]  # type: ignore[attr-defined]
        assert data[0].nonzeros == data[1].nonzeros
        assert data[0].fingerprint == data[1].fingerprint
    unnamed = marked.with_name("c.txt")
    unnamed.write_bytes(b"\xef\xbb\xbf" + LINES[kind])
    if kind in ("svm", "vw"):
        assert hogwild.data.open(unnamed).n_rows == 2


@pytest.mark.parametrize("kind", LINES)
def test_wide_text_is_told(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"a.{kind}"
    file.write_bytes(LINES[kind].decode().encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        read(file)


@given(
    st.from_regex(r"[+-]?[0-9]{0,30}\.?[0-9]{1,30}([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.integers(0, 3000),
    st.integers(0, 3000),
)
def test_long_numbers_are_rounded_as_python_rounds_them(text: str, zeros_before: int, zeros_after: int) -> None:
    sign, number = (text[0], text[1:]) if text[0] in "+-" else ("", text)
    digits, _, exponent = number.lower().partition("e")
    longer = sign + "0" * zeros_before + digits + ("" if "." in digits else ".") + "0" * zeros_after + "1"
    longer += f"e{exponent}" if exponent else ""
    assert to_float(longer.encode()) == float(longer)


def test_limits_of_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOGWILD_LONGEST_LINE", raising=False)
    file = tmp_path / "a.svm"
    file.write_bytes(LINES["svm"] + b"1 1:" + b"0" * 1_000 + b"1\n")
    assert main(["inspect", str(file), "--longest-line", "900B"]) == 1
    assert "line 3: the line is longer than 900 B" in capsys.readouterr().err
    assert "HOGWILD_LONGEST_LINE" not in os.environ
    assert main(["inspect", str(file), "--longest-line", "2kB"]) == 0
    assert main(["inspect", str(file), "--longest-line", "long"]) == 2
    assert (
        "--longest-line: A size must be a number of bytes such as '512MB', '2GiB' or '1.5G'. Got 'long'"
        in capsys.readouterr().err
    )
