from __future__ import annotations

import io
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import TIMES, damage

from hogwild.data.csr import CSRRows
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.parquet import read
from hogwild.errors import DataError

FORMS: tuple[dict[str, Any], ...] = (
    {},
    {"compression": "none", "use_dictionary": False},
    {"write_page_checksum": True},
    {"compression": "zstd", "row_group_size": 16, "data_page_version": "2.0"},
    {"compression": "none", "store_schema": False},
)


@cache
def good(form: int) -> bytes:
    maps = [[("k", 1.0), ("j", 2.0)], None, [], [("k", None), ("z", 3.0)]]
    table = pa.table(
        {
            "label": [1, 0, 1, 0],
            "number": [1.5, None, 0.0, -2.0],
            "flag": [True, False, None, True],
            "text": ["x", None, "", "y"],
            "category": pa.array(["u", "v", "u", None]).dictionary_encode(),
            "tags": [["a", "b"], ["a"], None, ["a", None]],
            "ids": [[1, 2, 2], None, [], [3]],
            "vector": pa.array([[1.0, 0.0], [2.0, 3.0], None, [0.0, 4.0]], pa.list_(pa.float32(), 2)),
            "map": pa.array(maps, pa.map_(pa.string(), pa.float64())),
        }
    )
    file = io.BytesIO()
    pq.write_table(pa.concat_tables([table] * 10), file, **FORMS[form])
    return file.getvalue()


def replace_bytes(data: bytes, rng: random.Random) -> bytes:
    """Damage that keeps everything in its place, so that more of it gets past the footer."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def assert_sound(rows: CSRRows) -> None:
    assert rows.layout == "sparse"
    assert rows.indptr[0] == 0
    assert (np.diff(rows.indptr) >= 0).all()
    assert rows.indptr[-1] == len(rows.indices) == len(rows.values)
    assert len(rows.labels) == len(rows)
    assert np.isfinite(rows.values).all()
    assert np.isfinite(rows.labels).all()
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        found = rows.indices[start:stop].astype(np.int64)
        assert (np.diff(found) > 0).all()
        assert (found < rows.features).all()


def reading_or_refusal(path: Path) -> list[CSRRows] | DataError:
    try:
        return list(read(path, ReadOptions(), 1 << 16))
    except DataError as error:
        return error


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_the_undamaged_file_is_read(tmp_path: Path, form: int) -> None:
    path = tmp_path / "good.parquet"
    path.write_bytes(good(form))
    pieces = list(read(path, ReadOptions(), 1 << 16))
    assert sum(map(len, pieces)) == 40
    for rows in pieces:
        assert_sound(rows)


@pytest.mark.parametrize("seed", range(TIMES))
def test_a_damaged_file_is_refused_or_gives_sound_rows(tmp_path: Path, seed: int) -> None:
    chance, path = random.Random(seed), tmp_path / "damaged.parquet"
    path.write_bytes((damage if seed % 2 else replace_bytes)(good(seed % len(FORMS)), chance))
    found = reading_or_refusal(path)
    if isinstance(found, DataError):
        assert str(path) in str(found)
        assert found.remedy
    else:
        assert sum(map(len, found)) > 0
        for rows in found:
            assert_sound(rows)
