"""Files of arrays: what is damaged is refused, whatever the damage."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import save_file

from hogwild import array_file
from hogwild.errors import ModelError

ARRAYS = {"b": np.arange(3, dtype=np.float32), "a": np.arange(4, dtype=np.int64).reshape(2, 2)}
RECORD = {"kind": "test", "epoch": 3, "loss": 0.1, "inf": float("inf"), "name": "naïve", "none": None}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    array_file.save(tmp_path / "file", ARRAYS, RECORD)
    return tmp_path / "file"


def same(found: tuple[Any, Any]) -> bool:
    arrays, record = found
    return (
        record == RECORD
        and arrays.keys() == ARRAYS.keys()
        and all(a.dtype == ARRAYS[n].dtype and np.array_equal(a, ARRAYS[n]) for n, a in arrays.items())
    )


def test_there_and_back(path: Path) -> None:
    assert same(array_file.load(path, ModelError))
    assert [file.name for file in path.parent.iterdir()] == ["file"]


KINDS = st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_])


@given(st.dictionaries(st.text("abc.0", min_size=1), KINDS.flatmap(
    lambda kind: arrays_of.arrays(kind, arrays_of.array_shapes(min_dims=0, min_side=0, max_side=3))
), max_size=3))  # fmt: skip
def test_any_arrays(tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    array_file.save(path, arrays, {})
    found, _ = array_file.load(path, ModelError)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
        assert found[name].shape == array.shape


def test_arrays_in_any_layout(tmp_path: Path) -> None:
    square = np.arange(16.0).reshape(4, 4)
    array_file.save(tmp_path / "file", {"t": square.T, "s": square[:, :1], "r": square[::-1]}, {})
    found, _ = array_file.load(tmp_path / "file", ModelError)
    assert np.array_equal(found["t"], square.T)
    assert np.array_equal(found["s"], square[:, :1])
    assert np.array_equal(found["r"], square[::-1])


def test_every_flipped_bit_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        try:
            found = array_file.load(path, ModelError)
        except ModelError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert same(found), f"byte {at}"


def test_every_truncation_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError):
            array_file.load(path, ModelError)
    path.write_bytes(whole + b"more")
    with pytest.raises(ModelError):
        array_file.load(path, ModelError)


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("exploded",)


FOREIGN: dict[str, bytes] = {
    "empty": b"",
    "text": b"1 1:0.5 3:2\n" * 100,
    "pickle": pickle.dumps(Bomb()),
    "pickle in a numpy file": b"\x93NUMPY\x01\x00" + struct.pack("<H", 15) + b"{'descr': '|O'}" + pickle.dumps(Bomb()),
    "huge header": struct.pack("<Q", 2**60) + b"{}",
    "header of nothing": struct.pack("<Q", 0),
    "no object": struct.pack("<Q", 2) + b"[]",
    "no metadata": struct.pack("<Q", 2) + b"{}",
    "deep": struct.pack("<Q", 200_000) + b"[" * 200_000,
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(FOREIGN[kind])
    with pytest.raises(ModelError, match="file: "):
        array_file.load("file", ModelError)
    assert not Path("exploded").exists()


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"hogwild": "{}"},
        {"crc32": "0"},
        {"hogwild": "{}", "crc32": "zero"},
        {"hogwild": "{", "crc32": "0"},
        {"hogwild": "[" * 100_000, "crc32": "0"},
        {"hogwild": "[]", "crc32": "1234"},
    ],
)
def test_files_of_another_program(metadata: Any, tmp_path: Path) -> None:
    save_file({"w": np.ones(2)}, tmp_path / "file", metadata)
    with pytest.raises(ModelError, match=r"file: (this is not a file written by hogwild|the file is damaged)"):
        array_file.load(tmp_path / "file", ModelError)


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "F8_E5M2", "F16", "C64"])
def test_kinds_of_numbers_that_are_not_ours(kind: str, tmp_path: Path) -> None:
    size = {"BF16": 4, "F16": 4, "C64": 16}.get(kind, 2)
    header = b'{"w":{"dtype":"%s","shape":[2],"data_offsets":[0,%d]}}' % (kind.encode(), size)
    (tmp_path / "file").write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
    with pytest.raises(ModelError):
        array_file.load(tmp_path / "file", ModelError)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "nothing", "there is no such file"), (tmp_path, "this is a folder, not a file")):
        with pytest.raises(ModelError, match=reason):
            array_file.load(path, ModelError)


def test_left_overs_of_the_dead_are_cleared(path: Path) -> None:
    left = path.parent / ".file.partial-999999999-abcdef"
    left.write_bytes(b"half")
    array_file.save(path, ARRAYS, RECORD)
    assert not left.exists()
    assert same(array_file.load(path, ModelError))
