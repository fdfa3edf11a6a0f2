"""Files that say of which field each feature is: good ones, and damaged ones."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.data import open as open_data
from hogwild.data.field_vocabulary import MISSING, FieldVocabulary
from hogwild.data.reader import ReadOptions
from hogwild.errors import DataError

GOOD = "1 0:3:1 2:70:0.5\n0 2:70:2 0:4:-1e-1 # a comment\n\n1 5:3:1\n"


def written(tmp_path, text, name="a.ffm"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def opened(path, **how):
    return open_data(path, reading=ReadOptions(**how), shuffle=False)


def pairs(data):
    """By row: {(field, feature): value}, as the table has them."""
    keys, rows = data.table.keys, data.rows
    found = []
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        columns = rows.indices[start:stop]
        values = rows.values[start:stop] if rows.values.size else np.ones(stop - start, np.float32)
        found.append({
            (int(keys[u]) >> 32, int(keys[u]) & (2**32 - 1)): float(x) for u, x in zip(columns, values, strict=True)
        })  # fmt: skip
    return found


def test_rows_labels_and_fields(tmp_path):
    data = opened(written(tmp_path, GOOD))
    assert data.labels().tolist() == [1, 0, 1]
    assert pairs(data) == [
        {(0, 3): 1, (2, 70): 0.5}, {(2, 70): 2, (0, 4): pytest.approx(-0.1)}, {(5, 3): 1},
    ]  # fmt: skip
    assert data.n_features == 4  # the same feature in two fields is two columns
    assert data.table.fields.tolist() == [0, 1, 0, 2]  # numbered without gaps
    assert all((np.diff(data.rows.indices[a:b].astype(int)) > 0).all() for a, b in ((0, 2), (2, 4)))


def test_it_is_known_by_its_ending_and_by_its_first_line(tmp_path):
    assert opened(written(tmp_path, GOOD, "b.txt")).table is not None
    packed = tmp_path / "c.ffm.gz"
    packed.write_bytes(gzip.compress(GOOD.encode()))
    assert pairs(opened(packed)) == pairs(opened(written(tmp_path, GOOD)))
    assert opened(written(tmp_path, "1 3:1 4:2\n", "d.txt")).table is None


def test_entries_of_the_same_feature_are_added_up(tmp_path):
    assert pairs(opened(written(tmp_path, "1 0:3:1 1:2:1 0:3:0.5\n"))) == [{(0, 3): 1.5, (1, 2): 1}]


def test_other_files_have_the_columns_of_the_first(tmp_path):
    table = opened(written(tmp_path, GOOD)).table
    other = opened(written(tmp_path, "1 2:70:7 0:3:1 9:9:1\n", "t.ffm"), table=table, features=4, extra="ignore")
    assert pairs(other) == [{(2, 70): 7, (0, 3): 1}]
    assert other.n_features == 4 == len(table)
    with pytest.raises(DataError, match=r"t.ffm, line 1, column 16: the feature of '9:9:1' was not there in training"):
        opened(tmp_path / "t.ffm", table=table, features=4)


def test_a_split_keeps_the_table(tmp_path):
    data = opened(written(tmp_path, GOOD))
    assert all(part.table is data.table for part in data.split(0.4, seed=0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0:3:1\n1 0:3\n", "line 2, column 3: '0:3' is not field:feature:value"),
        ("1 0:3:1 x:3:1\n", "line 1, column 9: the field in 'x:3:1' is not a whole number"),
        ("1 0:y:1\n", "line 1, column 3: the feature in '0:y:1' is not a whole number"),
        ("1 -1:3:1\n", "line 1, column 3: the field in '-1:3:1' is not a whole number"),
        ("1 0:99999999999:1\n", "line 1, column 3: the feature in '0:99999999999:1' is larger than"),
        ("1 0:3:\n", "line 1, column 7: there is no value behind the colon"),
        ("1 0:3:nan\n", "line 1, column 7: the value 'nan' is not finite"),
        ("1 0:3:1e40\n", "line 1, column 7: the value '1e40' is not finite"),
        ("1 0:3:1x\n", "line 1, column 7: the value '1x' is not a number"),
        ("0:3:1\n", "line 1, column 1: the label is missing"),
        ("yes 0:3:1\n", "line 1, column 1: the label 'yes' is no number"),
        ("inf 0:3:1\n", "line 1, column 1: the label 'inf' is not finite"),
        ("1 0:3:1:2\n", "line 1, column 7: the value '1:2' is not a number"),
        ("1 0:\x003:1\n", "NUL byte"),
        ("# nothing\n\n", "there is no row in the file"),
        ("", "the file is empty"),
    ],
)
def test_damage_is_told_with_line_and_column(tmp_path, text, message):
    with pytest.raises(DataError) as caught:
        opened(written(tmp_path, text), format="libffm")
    assert message in str(caught.value)


def test_rows_without_labels_are_read_for_prediction(tmp_path):
    assert len(opened(written(tmp_path, "0:3:1 1:4:1\n1 0:3:1\n"), unlabelled=True).rows) == 2


def test_it_cannot_be_packed(tmp_path):
    from hogwild.data.packing.pack import pack

    with pytest.raises(DataError, match="can only be read into memory"):
        pack([written(tmp_path, GOOD)], tmp_path / "packed")


entry = st.tuples(st.integers(0, 6), st.integers(0, 2**31 - 2), st.floats(-1e6, 1e6, width=32))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.lists(entry, min_size=1, max_size=6)), min_size=1, max_size=8))
def test_what_is_written_is_read(tmp_path_factory, lines):
    text = "".join(f"{y} " + " ".join(f"{f}:{u}:{x!r}" for f, u, x in row) + "\n" for y, row in lines)
    data = opened(written(tmp_path_factory.mktemp("ffm"), text))
    assert data.labels().tolist() == [y for y, _ in lines]
    for found, (_, row) in zip(pairs(data), lines, strict=True):
        expected: dict[tuple[int, int], float] = {}
        for f, u, x in row:
            expected[f, u] = expected.get((f, u), 0.0) + x
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_table_that_grows_finds_everything_again():
    random = np.random.default_rng(0)
    fields, features = random.integers(0, 50, 20_000), random.integers(0, 400, 20_000)
    table = FieldVocabulary()
    columns = np.concatenate([table.look_up(fields[k : k + 777], features[k : k + 777]) for k in range(0, 20_000, 777)])
    assert len(table) == len(set(zip(fields.tolist(), features.tolist(), strict=True)))
    np.testing.assert_array_equal(table.keys[columns] >> 32, fields)
    np.testing.assert_array_equal(table.keys[columns] & (2**32 - 1), features)
    closed = FieldVocabulary(table.keys)
    np.testing.assert_array_equal(closed.look_up(fields, features), columns)
    assert (closed.look_up(fields + 50, features) == MISSING).all()
    assert len(closed) == len(table)
