"""Damaged CSV, JSON and Arrow files: each is refused with a line that names the file, or gives sound rows."""

from __future__ import annotations

import io
import random
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from damage import TIMES, damage
from test_fuzz_parquet import assert_sound, replace_bytes

from hogwild.data import ColumnRoles
from hogwild.data.csr import CSRRows
from hogwild.data.generate.criteo import Criteo
from hogwild.data.reader import Reader, ReadOptions
from hogwild.data.readers.arrow_ipc import ARROW
from hogwild.data.readers.criteo import CRITEO
from hogwild.data.readers.csv_table import CSV
from hogwild.data.readers.json_lines import JSON_LINES
from hogwild.errors import HogwildError

FORMATS: dict[str, Reader] = {"csv": CSV, "jsonl": JSON_LINES, "arrow": ARROW, "arrows": ARROW, "txt": CRITEO}
ROLES = ColumnRoles(categorical=("shop:dictionary",), numeric=("price:quantile:3",), text=("title",))


@cache
def good(form: str) -> bytes:
    if form == "txt":
        return b"".join(Criteo(40, seed=3).text())
    rows = {
        "label": [1, 0, 1, 0] * 5,
        "price": [1.5, None, 0.0, -2e3] * 5,
        "shop": ["x", None, 'a "b", c', "y\nz"] * 5,
        "title": ["one two", "", None, "Ü and ö"] * 5,
    }
    table = pa.table(rows)
    if form in ("arrow", "arrows"):
        file = io.BytesIO()
        make = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with make(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
        return file.getvalue()
    frame = table.to_pandas()
    text: str = frame.to_csv(index=False) if form == "csv" else frame.to_json(orient="records", lines=True)
    return text.encode()


def reading_or_refusal(reader: Reader, path: Path, roles: ColumnRoles | None) -> list[CSRRows] | HogwildError:
    try:
        return list(reader.read(path, ReadOptions(roles=roles), 1 << 16))
    except HogwildError as error:
        return error


@pytest.mark.parametrize("form", FORMATS)
def test_the_undamaged_file_is_read(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"good.{form}"
    path.write_bytes(good(form))
    found = reading_or_refusal(FORMATS[form], path, None if form == "txt" else ROLES)
    assert isinstance(found, list)
    assert sum(map(len, found)) == (40 if form == "txt" else 20)


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_files_are_refused_or_give_sound_rows(tmp_path: Path, form: str) -> None:
    path, refused = tmp_path / f"damaged.{form}", 0
    for seed in range(TIMES):
        path.write_bytes((damage if seed % 2 else replace_bytes)(good(form), random.Random(f"{form} {seed}")))
        found = reading_or_refusal(FORMATS[form], path, ROLES if seed % 3 == 0 and form != "txt" else None)
        if isinstance(found, HogwildError):
            assert str(path) in str(found), seed
            assert "\n" not in str(found), seed
            refused += 1
        else:
            for rows in found:
                if rows.layout == "sparse":
                    assert_sound(rows)
    assert 0 < refused < TIMES
