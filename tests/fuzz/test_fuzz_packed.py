"""Damaged packed folders: each gives an error that names a file, or the very rows that were packed."""

import random
import shutil

import numpy as np
import pytest
from damage import TIMES, damage

from hogwild.data import PackedDataset
from hogwild.data.packing.pack import pack
from hogwild.errors import DataError

FILES = ["meta.json", "checksums.u32", "indptr.i64", "indices.u32", "values.f32", "labels.f64", "frequencies.i64"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("fuzz"), np.random.default_rng(0)
    lines = []
    for _ in range(300):
        columns = np.sort(rng.choice(60, rng.integers(1, 9), replace=False)) + 1
        lines.append(f"{rng.integers(3)} " + " ".join(f"{column}:{rng.normal():.3f}" for column in columns))
    (folder / "a.svm").write_text("\n".join(lines))
    pack([folder / "a.svm"], folder / "out")
    return folder / "out"


def everything(folder, verify):
    data = PackedDataset(folder, verify=verify)
    train, aside = data.split(0.3, seed=0)
    walk = train.epoch(0, 0)
    chunks = [walk[number] for number in range(len(walk))]
    parts = [part for chunk in chunks for part in (chunk.order, chunk.rows.indptr, chunk.rows.indices,
                                                   chunk.rows.values, chunk.rows.labels)]  # fmt: skip
    return [*parts, data.labels(), data.frequencies(), aside.frequencies(), np.array([data.base, data.n_features])]


@pytest.mark.parametrize("case", range(TIMES))
def test_damaged_folders(original, tmp_path, case):
    rng = random.Random(case)
    folder = shutil.copytree(original, tmp_path / "out")
    name = rng.choice(FILES)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(damage(content, rng))
    if rng.random() < 0.05:
        (folder / name).unlink()
    found, failed = [], None
    try:
        found = everything(folder, verify=rng.random() < 0.7)
    except DataError as error:
        failed = str(error)
    if failed is not None:
        assert name in failed or "meta.json" in failed or "checksums.u32" in failed
        return
    for one, other in zip(found, everything(original, verify=True), strict=True):
        assert np.array_equal(one, other)
