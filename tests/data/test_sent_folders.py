"""A packed folder that is sent to another process is a path; all of its rows at once are where they are mapped."""

from __future__ import annotations

import pickle
import shutil
from functools import partial

import numpy as np
import pytest

from hogwild import Constant, Linear, ParameterServer, Simulator, minimise
from hogwild.data import open as open_data
from hogwild.data.packing.pack import pack
from hogwild.errors import DataError


def doubled(labels, by=2.0):
    return by * labels


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    random, path = np.random.default_rng(0), tmp_path_factory.mktemp("sent") / "rows.svm"
    lines = []
    for _ in range(3000):
        places = np.sort(random.choice(200, 12, replace=False))
        values = random.standard_normal(12).round(4)
        label = 1 if values[places < 100].sum() > values[places >= 100].sum() else -1
        lines.append(f"{label} " + " ".join(f"{i + 1}:{v}" for i, v in zip(places, values, strict=True)))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(text, tmp_path):
    pack([text], tmp_path / "rows.packed")
    return tmp_path / "rows.packed"


def walked(data):
    """All rows and labels of an epoch in order."""
    walk = data.epoch(seed=3, number=1)
    chunks = [walk[number] for number in range(len(walk))]
    rows, labels = [], []
    for chunk in chunks:
        for row in chunk.order:
            part = slice(chunk.rows.indptr[row], chunk.rows.indptr[row + 1])
            rows.append((chunk.rows.indices[part].tolist(), chunk.rows.values[part].tolist()))
            labels.append(float(chunk.rows.labels[row]))
    return rows, labels


def test_it_is_sent_as_its_path_with_what_was_asked_of_it(folder):
    kept, aside = open_data(folder).with_labels(partial(doubled, by=3.0)).split(0.25, seed=0)
    for data in (kept, aside):
        sent = pickle.dumps(data)
        assert len(sent) < 1000
        there = pickle.loads(sent)
        assert there.fingerprint == data.fingerprint
        assert there.labels().tolist() == data.labels().tolist()
        assert set(there.labels()) == {-3.0, 3.0}
        assert walked(there) == walked(data)


def test_in_one_process_it_is_opened_once(folder):
    data = open_data(folder)
    first, second = (pickle.loads(pickle.dumps(each)) for each in (data, data.with_labels(doubled)))
    assert first._stored is second._stored


def test_all_rows_at_once_are_the_same_in_the_same_order_and_mapped(folder):
    data = open_data(folder)
    for part in (data, *data.split(0.3, seed=0)):
        whole = part.at_once()
        assert walked(whole) == walked(part)
        assert whole.rows.values.base is not None
        assert not whole.rows.values.flags.owndata


def test_a_folder_larger_than_memory_is_not_had_at_once(folder):
    data = open_data(folder)
    data._stored.bounded = True
    assert data.at_once() is None
    run = minimise(Linear(data), strategy=ParameterServer(2), runtime=Simulator(), budget=1)
    assert run.history[-1]["epoch"] == 1


def test_where_the_folder_is_missing_or_another_that_is_said(folder, tmp_path, text):
    sent = pickle.dumps(open_data(folder))
    shutil.move(folder, tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"rows\.packed.* on the machine .* Put the folder where every node finds it"):
        pickle.loads(sent)
    lines = text.read_text().splitlines()
    (tmp_path / "other.svm").write_text("\n".join(lines[:-1]) + "\n")
    pack([tmp_path / "other.svm"], folder)
    with pytest.raises(DataError, match="is another than the one that was opened first"):
        pickle.loads(sent)


def test_strategies_by_messages_learn_from_it_what_they_learn_from_arrays(folder):
    packed = open_data(folder)
    both = [
        minimise(Linear(data, l2=1e-4), "sgd", Constant(0.1), ParameterServer(3, push_every=8), Simulator(), 2)
        for data in (packed, packed.at_once())
    ]
    assert np.abs(both[0].model.weights).max() > 0.1
    assert both[0].model.weights.tobytes() == both[1].model.weights.tobytes()
