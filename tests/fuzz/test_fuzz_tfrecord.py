"""Damaged TFRecord files: a clear error with the byte, or rows that plain Python finds in them too."""

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from damage import TIMES, damage

from hogwild.data.csr import concatenate
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.tfrecord import read
from hogwild.data.readers.tfrecord_parser import masked_crc
from hogwild.data.tfrecord_writer import RecordWriter
from hogwild.errors import DataError


def good(folder: Path, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    path = folder / f"good{seed}.tfrecord"
    with RecordWriter(path) as writer:
        for _ in range(5):
            columns = rng.choice(1000, rng.integers(0, 6), replace=False)
            writer.write(columns, rng.standard_normal(len(columns)) if seed % 2 else None, int(rng.integers(0, 5)))
    return path.read_bytes()


def attempt(path: Path, content: bytes):
    path.write_bytes(content)
    try:
        return concatenate(list(read(path, ReadOptions(), 1 << 20)))
    except DataError as error:
        return error


def whole_records(content: bytes) -> list[bytes] | None:
    """The contents, found with slices; None if a checksum does not match or something is left over."""
    found = []
    while content:
        (length,) = struct.unpack("<Q", content[:8].ljust(8, b"\0"))
        record = content[12 : 12 + length]
        parts = [(content[:8], content[8:12]), (record, content[12 + length : 16 + length])]
        if len(content) < 16 + length:
            return None
        for part, crc in parts:
            if crc != struct.pack("<I", int(masked_crc(np.frombuffer(part, np.uint8), 0, len(part)))):
                return None
        found.append(record)
        content = content[16 + length :]
    return found


@pytest.mark.parametrize("seed", range(TIMES))
def test_damaged_files(tmp_path, seed):
    chance, content = random.Random(seed), good(tmp_path, seed)
    broken = damage(content, chance)
    result = attempt(tmp_path / "a.tfrecord", broken) if broken else None
    records = whole_records(broken)
    if records is None:
        assert isinstance(result, DataError)
        assert "byte" in str(result) or "gzip" in str(result)
    elif records:
        assert not isinstance(result, DataError)
        assert len(result) == len(records)


@pytest.mark.parametrize("seed", range(TIMES))
def test_damaged_contents_under_right_checksums(tmp_path, seed):
    """The parser of protocol buffers sees the damage: it must not read or write out of bounds, and give good rows."""
    chance = random.Random(seed)
    (first, *others) = whole_records(good(tmp_path, seed))
    broken = [damage(first, chance), *others]
    frames = []
    for record in broken:
        length = struct.pack("<Q", len(record))
        crcs = [struct.pack("<I", int(masked_crc(np.frombuffer(x, np.uint8), 0, len(x)))) for x in (length, record)]
        frames.append(length + crcs[0] + record + crcs[1])
    result = attempt(tmp_path / "a.tfrecord", b"".join(frames))
    if isinstance(result, DataError):
        assert "record 1, which begins at byte 0" in str(result)
    else:
        assert len(result) == len(broken)
        assert np.isfinite(result.values).all()
        assert np.isfinite(result.labels).all()
        assert all((np.diff(result.indices[a:b].astype(np.int64)) > 0).all()
                   for a, b in zip(result.indptr, result.indptr[1:], strict=False))  # fmt: skip
