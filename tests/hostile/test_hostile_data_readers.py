"""Mutated files of every format: each is read, or refused with an error of this package; no other end."""

from __future__ import annotations

import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from mutations import MUTANTS, NUMBERS, check_error, mutate_arrays, mutate_entries, mutate_text

import hogwild
from fuzz.damage import damage
from hogwild.data.graphs import read_edges, read_seeds
from hogwild.data.packing.pack import pack
from hogwild.data.ratings.open_ratings import open_ratings
from hogwild.data.readers.tfrecord_parser import masked_crc
from hogwild.data.tfrecord_writer import RecordWriter

pytestmark = pytest.mark.usefixtures("bounded_memory")

TEXTS = {
    "svm": b"1 qid:1 1:0.5 3:-2e3 7:1 # note\n-1 2:1 5:.25\n0 1:3\n+1 4:1e-3 9:2\n",
    "vw": b"1 2.0 'first|words a:1 b c:-0.5 |other:2 d\n-1 |words b:3\n0 1 0|x y z\n",
    "ffm": b"1 0:1:0.5 1:7:1 2:3:1e2\n0 0:2:1 1:7:1\n1 2:4:.5\n",
    "csv": b'userId,movieId,rating,timestamp\n1,31,2.5,12\nann,"a, b",4,13\n7,5,3,14\n',
    "tsv": b"1\t31\t2.5\n2\t31\t4\n1\t7\t5\n",
    "tab": b'label\tprice\tshop\n1\t2.5\t"a\tb"\n0\t\tx\n1\t1e3\ty\n',
    "jsonl": b'{"label": 1, "x": 2.5, "s": "a", "t": [1, 2]}\n{"label": 0, "x": null, "s": "b"}\n',
    "edges": b"# graph\nann bob 2\nbob,cid,0.5\ncid ann\n",
    "seeds": b"ann 0\nbob 1\ncid 1\n",
}


def whole(data: Any) -> None:
    """Read everything of a data set."""
    epoch = data.in_order()
    for number in range(len(epoch)):
        assert np.isfinite(epoch[number].rows.values).all()
        epoch.done(number)
    data.labels()
    if data.n_features < 10**6:
        data.frequencies()


def open_rows(path: Path) -> None:
    whole(hogwild.data.open(path))


READ: dict[str, Callable[[Path], object]] = {
    "svm": open_rows,
    "vw": open_rows,
    "ffm": lambda path: hogwild.FieldAwareFactorisationMachine(path),
    "csv": open_ratings,
    "tab": open_rows,
    "jsonl": open_rows,
    "tsv": open_ratings,
    "edges": read_edges,
    "seeds": read_seeds,
}


def attempt(read: Callable[[Path], object], path: Path, seed: object) -> bool:
    """Read a file, and return whether that was done. An error must be one that this package explains."""
    try:
        read(path)
    except Exception as error:
        check_error(error, seed)
        return False
    return True


@pytest.mark.parametrize("kind", TEXTS)
def test_mutated_text(tmp_path: Path, kind: str) -> None:
    path, read = tmp_path / f"a.{kind}", 0
    for seed in range(MUTANTS):
        rng = random.Random(f"{kind} {seed}")
        path.write_bytes(mutate_text(TEXTS[kind], rng))
        read += attempt(READ[kind], path, seed)
    assert 0 < read < MUTANTS


def _matrices() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(0)
    matrix = sp.random(12, 8, 0.4, "csr", random_state=rng)
    labels = np.arange(12) % 2
    kinds: dict[str, dict[str, Any]] = {"dense": {"X": matrix.toarray(), "y": labels, "weights": np.ones(12)}}
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        made = matrix.asformat(kind)
        fields = ("data", "row", "col") if kind == "coo" else ("data", "offsets") if kind == "dia" else (
            "data", "indices", "indptr")  # fmt: skip
        kinds[kind] = {name: getattr(made, name) for name in fields}
        kinds[kind] |= {"shape": np.array(made.shape), "format": np.array(kind.encode()), "y": labels}
    return kinds


@pytest.mark.parametrize("kind", _matrices())
def test_mutated_npz(tmp_path: Path, kind: str) -> None:
    path, arrays, read = tmp_path / "a.npz", _matrices()[kind], 0
    for seed in range(MUTANTS // 3):
        rng = random.Random(f"{kind} {seed}")
        mutant = arrays
        for _ in range(rng.randint(1, 2)):
            mutant = mutate_arrays(mutant, rng) if mutant else mutant
        np.savez(path, **mutant)
        if rng.random() < 0.1:
            path.write_bytes(damage(path.read_bytes(), rng))
        read += attempt(open_rows, path, seed)
    assert 0 < read < MUTANTS // 3


def test_mutated_parquet(tmp_path: Path) -> None:
    path, read = tmp_path / "a.parquet", 0
    kinds = (
        pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.date32(),
        pa.timestamp("s"), pa.decimal128(10, 2), pa.list_(pa.int64()), pa.list_(pa.float32()), pa.null(),
        pa.dictionary(pa.int8(), pa.string()), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.float64()),
    )  # fmt: skip
    for seed in range(MUTANTS):
        rng = random.Random(seed)
        columns: dict[str, Any] = {"label": pa.array([0, 1, 0, 1])}
        for name in rng.sample(["a", "b", "indices", "values", "weight", "label", "é"], rng.randint(1, 4)):
            kind = rng.choice(kinds)
            for values in (
                [rng.choice(NUMBERS) for _ in range(4)], ["x", None, "", "1"], [[1, 2], [], None, [5]],
                [True, False, None, True], [{"a": 1}] * 4, [[("k", 1.0)]] * 4, [None] * 4, [1, 2, 3, 4],
            ):  # fmt: skip
                try:
                    columns[name] = pa.array(values, kind)
                except (pa.ArrowException, ValueError, TypeError, OverflowError, AttributeError):
                    continue
                if rng.random() < 0.5:
                    break
        try:
            pq.write_table(pa.table(columns), path, row_group_size=rng.choice([1, 2, 4]))
        except pa.ArrowException:  # Parquet has no such column.
            continue
        if rng.random() < 0.3:
            path.write_bytes(damage(path.read_bytes(), rng))
        read += attempt(open_rows, path, seed)
    assert 0 < read < MUTANTS


def test_mutated_records(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "good.tfrecord") as writer:
        for row in range(6):
            writer.write([row, row + 3], [0.5, -2.0], row % 2)
    good, frames, at = (tmp_path / "good.tfrecord").read_bytes(), [], 0
    while at < len(good):
        length = struct.unpack_from("<Q", good, at)[0]
        frames.append(good[at + 12 : at + 12 + length])
        at += 16 + length
    path, read = tmp_path / "a.tfrecord", 0
    for seed in range(MUTANTS):
        rng = random.Random(seed)
        content = b""
        for frame in frames:
            mutant = damage(frame, rng) if rng.random() < 0.3 else frame
            size = struct.pack("<Q", rng.choice([len(mutant), len(mutant), len(mutant), 2**40, 2**63, 0]))
            sums = [struct.pack("<I", int(masked_crc(np.frombuffer(x, np.uint8), 0, len(x)))) for x in (size, mutant)]
            content += size + sums[0] + mutant + sums[1]
        path.write_bytes(content)
        read += attempt(open_rows, path, seed)
    assert 0 < read < MUTANTS


def test_mutated_packed_folders(tmp_path: Path) -> None:
    """Entries of the description of a packed folder, and its arrays, with right checksums or without."""
    (tmp_path / "a.svm").write_bytes(TEXTS["svm"] * 40)
    pack([tmp_path / "a.svm"], tmp_path / "good", shards=2)
    files = sorted(file.relative_to(tmp_path / "good") for file in (tmp_path / "good").rglob("*") if file.is_file())
    read = 0
    for seed in range(MUTANTS):
        rng = random.Random(seed)
        folder = tmp_path / "mutant"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "good", folder)
        name = rng.choice([file for file in files if file.name == "meta.json"] if rng.random() < 0.7 else files)
        if name.name == "meta.json":
            (folder / name).write_text(json.dumps(mutate_entries(json.loads((folder / name).read_text()), rng)))
        else:
            (folder / name).write_bytes(damage((folder / name).read_bytes(), rng))
        read += attempt(open_rows, folder, seed)
    assert read < MUTANTS
