"""How fast tables are read and hashed, against pandas and scikit-learn's ``FeatureHasher`` on the same rows.

Run ``python -m benchmarks tables``: it makes files of the shape of Criteo's clicks in a temporary folder, reads each in
turn, and keeps the table in ``benchmarks/results/tables.md``. Speeds are of the text as tab-separated lines, so that
formats of different sizes compare. One command at the end reads and trains on a large file within 2 GiB.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from sklearn.feature_extraction import FeatureHasher

from benchmarks import results
from hogwild.data.generate.criteo import Criteo
from hogwild.data.reader import ReadOptions
from hogwild.data.readers import READERS
from hogwild.data.readers.criteo import criteo_encoding

ROWS, LARGE, REPEATS, PIECE_BYTES = 200_000, 10_000_000, 3, 64 << 20
MEMORY = "2GiB"


def hashed_by_scikit_learn(path: Path, names: list[str]) -> int:
    """Rows of the same features: read by pandas as text, hashed by scikit-learn."""
    frame = pd.read_csv(path, sep="\t", names=names, header=None, dtype=str)
    columns = frame[names[1:]]
    cells = ([f"{name}={cell}" for name, cell in zip(names[1:], row, strict=True) if isinstance(cell, str)]
             for row in columns.itertuples(index=False, name=None))  # fmt: skip
    return int(FeatureHasher(2**18, input_type="string", alternate_sign=False).transform(cells).shape[0])


def files(folder: Path, rows: int) -> tuple[dict[str, Path], list[str]]:
    """The same table in every format."""
    text = folder / "clicks.txt"
    Criteo(rows).write(text)
    names = list(criteo_encoding(18).names or ())
    frame = pd.read_csv(text, sep="\t", names=names, header=None, dtype=dict.fromkeys(names[14:], str))
    table = pa.Table.from_pandas(frame)
    made = {"criteo": text, "csv": folder / "a.csv", "json": folder / "a.jsonl", "arrow": folder / "a.arrow",
            "parquet": folder / "a.parquet"}  # fmt: skip
    frame.to_csv(made["csv"], index=False)
    frame.to_json(made["json"], orient="records", lines=True)
    pa.feather.write_feather(table, str(made["arrow"]), compression="uncompressed")
    pa.parquet.write_table(table, made["parquet"])
    return made, names


def read_all(name: str, path: Path) -> int:
    """All rows of a file, by the encoding of Criteo's format without its names, since files have headers."""
    from dataclasses import replace

    encoding = criteo_encoding(18)
    reader = next(reader for reader in READERS if reader.name == name)
    options = ReadOptions(encoding=encoding if name == "criteo" else replace(encoding, names=None))
    return sum(map(len, reader.read(path, options, PIECE_BYTES)))


def seconds(task: Callable[[], object]) -> float:
    started = time.perf_counter()
    task()
    return time.perf_counter() - started


def trained(folder: Path, rows: int) -> list[str]:
    """What ``hogwild train`` takes for a large file, from start to end of the command."""
    path = folder / "large.txt"
    Criteo(rows).write(path)
    size = path.stat().st_size
    command = [sys.executable, "-m", "hogwild", "train", str(path), "--format", "criteo", "--memory", MEMORY,
               "--epochs", "1", "--json"]  # fmt: skip
    walls = []
    for _ in range(2):  # The first one compiles what no run on this machine has compiled before.
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        walls.append(time.perf_counter() - started)
    wall = walls[1]
    record = json.loads(done.stdout)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = (
        f"`hogwild train --format criteo --memory {MEMORY} --epochs 1` on {rows:,} rows ({size / 1e9:.2f} GB): "
        f"{wall:.1f} s for the whole command, {size / 1e6 / wall:.0f} MB/s of text "
        f"({walls[0]:.1f} s for the first one, which may compile). Reading and hashing "
        f"{record['load_seconds']:.1f} s, training {record['seconds']:.1f} s. "
        f"Largest resident memory of all commands here: {used.ru_maxrss / 2**20:.2f} GiB."
    )
    return [words]


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made, names = files(folder, 2_000 if quick else ROWS)
        size = made["criteo"].stat().st_size
        tasks: dict[str, Callable[[], object]] = {
            "pandas.read_csv and FeatureHasher": lambda: hashed_by_scikit_learn(made["criteo"], names)
        }
        for form, path in made.items():
            read_all(form, path)  # compiled and warm
            tasks[f"hogwild, {form} ({path.stat().st_size / 1e6:.0f} MB)"] = lambda form=form, path=path: read_all(
                form, path
            )  # type: ignore[misc]
        speeds: dict[str, list[float]] = {task: [] for task in tasks}
        for _ in range(1 if quick else REPEATS):
            for task, run in tasks.items():
                speeds[task].append(size / 1e6 / seconds(run))
        large = trained(folder, 10_000 if quick else LARGE)
    head = ["reader", "MB/s of the tab-separated text, median (least to most)"]
    rows = [[task, results.span(measured, ",.0f")] for task, measured in speeds.items()]
    results.write(
        "tables",
        "Tables: reading and hashing",
        [
            f"Criteo's shape, {size / 1e6:.0f} MB as tab-separated text, 39 columns into 2**18, {REPEATS} turns.",
            "",
            *results.table(head, rows),
            "",
            *large,
        ],
        out,
    )  # fmt: skip
