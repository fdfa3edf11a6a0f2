"""The svmlight reader against what was written, against Python's float and against scikit-learn."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.reader import LARGEST_INDEX, ReadOptions
from hogwild.data.readers import svmlight
from hogwild.data.readers.svmlight import SVMLIGHT, read
from hogwild.errors import DataError

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("svmlight")


def parse(folder: Path, text: str | bytes, reading: ReadOptions | None = None, piece_bytes: int = 1 << 20) -> CSRRows:
    path = folder / "a.svm"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return concatenate(list(read(path, reading or ReadOptions(), piece_bytes)))


def refused(folder: Path, text: str, reading: ReadOptions | None = None) -> DataError:
    with pytest.raises(DataError) as caught:
        parse(folder, text, reading)
    return caught.value


def as_lists(rows: CSRRows) -> list[tuple[float, list[int], list[float]]]:
    ends = zip(rows.labels.tolist(), rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [(label, rows.indices[a:b].tolist(), rows.values[a:b].tolist()) for label, a, b in ends]


def test_everything_the_format_allows(folder: Path) -> None:
    rows = parse(
        folder, "# header: 1:1\n\n+1 qid:7 0:1 3:.5 # note 4:4\r\n-1\t2:1.\t10:-2e-3  \n \t\n3 \n2.5e1 7:+4#x\n0"
    )
    assert as_lists(rows) == [
        (1, [0, 3], [1, 0.5]),
        (-1, [2, 10], [1, float(np.float32(-2e-3))]),
        (3, [], []),
        (25, [7], [4]),
        (0, [], []),
    ]
    assert rows.features == 11
    assert (rows.layout, rows.indices.dtype, rows.values.dtype, rows.labels.dtype, rows.indptr.dtype) == (
        "sparse", np.uint32, np.float32, np.float64, np.int64,
    )  # fmt: skip


def test_the_reader_says_what_it_reads() -> None:
    assert SVMLIGHT.name == "svmlight"
    assert SVMLIGHT.counts_from_one
    assert SVMLIGHT.compressible


FORMS = st.sampled_from(["{!r}", "{:.17g}", "{:.6g}", "{:.3e}", "{:.25f}", "{:+.9E}"])
FLOATS = st.floats(-1e38, 1e38, allow_nan=False)
ENTRIES = st.dictionaries(st.integers(0, LARGEST_INDEX), st.tuples(FLOATS, FORMS), max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(FLOATS, FORMS, ENTRIES), min_size=1, max_size=8), st.sampled_from([16, 100, 1 << 16]))
def test_what_is_written_is_read(folder: Path, rows, piece_bytes: int) -> None:
    lines, expected = [], []
    for label, form, entries in rows:
        fields = [(index, form.format(value)) for index, (value, form) in sorted(entries.items())]
        lines.append(" ".join([form.format(label), *(f"{index}:{value}" for index, value in fields)]))
        values = [float(np.float32(float(value))) for _, value in fields]
        expected.append((float(form.format(label)), [index for index, _ in fields], values))
    assert as_lists(parse(folder, "\n".join(lines), piece_bytes=piece_bytes)) == expected


def decimals(rng: np.random.Generator) -> list[str]:
    """Numbers of every length and size, and such as lie next to the middle between two float32."""
    lengths, powers = rng.integers(1, 30, 4000), rng.integers(-60, 38, 4000)
    digits = ["".join(rng.choice(list("0123456789"), n)) for n in lengths]
    texts = [f"{d[0]}.{d[1:]}e{min(p, 37)}" for d, p in zip(digits, powers, strict=True)]
    texts += [f"0.{d}" for d in digits] + [f"0.000{d}" for d in digits]
    singles = rng.standard_normal(2000).astype(np.float32)
    middles = (singles.astype(np.float64) + np.nextafter(singles, np.float32(9)).astype(np.float64)) / 2
    nearby = [*middles, *np.nextafter(middles, 9), *np.nextafter(middles, -9)]
    return texts + [repr(float(x)) for x in nearby] + [f"{x:.40f}" for x in middles] + [f"{x:.16e}" for x in nearby]


def test_every_value_is_the_nearest_float32_of_its_float64(folder: Path) -> None:
    texts = [*decimals(np.random.default_rng(0)), "1e-400", "0e999", "1e-45", "7e-46", "3.4028235e38", "-0.0", "000001"]
    rows = parse(folder, "".join(f"0 1:{text}\n" for text in texts))
    expected = np.array([float(text) for text in texts]).astype(np.float32)
    np.testing.assert_array_equal(rows.values.view(np.uint32), expected.view(np.uint32))


def test_every_label_is_exact(folder: Path) -> None:
    texts = [*decimals(np.random.default_rng(1)), "1e300", "4.9e-324", "9007199254740993", "1" * 300]
    rows = parse(folder, "".join(f"{text} 1:1\n" for text in texts))
    assert rows.labels.tolist() == [float(text) for text in texts]


def test_a_very_long_number(folder: Path) -> None:
    assert parse(folder, "1 1:0." + "3" * 200_000 + "\n").values[0] == np.float32(1 / 3)
    assert refused(folder, "1 1:" + "3" * 200_000 + "\n").column == 5


@pytest.mark.parametrize("between", ["", "# comment 1:1\n", "\n\n"])
def test_stretches_parsed_apart_are_put_together(folder: Path, monkeypatch: pytest.MonkeyPatch, between: str) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for number in range(3000):
        indices = np.unique(rng.integers(0, 1000, rng.integers(0, 12)))
        lines.append(" ".join([str(number), *(f"{i}:{rng.random():.4g}" for i in indices)]) + "\n")
    whole = between.join(lines)
    expected = as_lists(parse(folder, whole))
    monkeypatch.setattr(svmlight, "_STRETCH_BYTES", 64)
    assert as_lists(parse(folder, whole)) == expected
    assert as_lists(parse(folder, whole, piece_bytes=5000)) == expected
    assert [label for label, _, _ in expected] == list(range(3000))


def test_the_first_error_is_the_one_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svmlight, "_STRETCH_BYTES", 16)
    good = "1 1:1 2:1\n" * 50
    error = refused(folder, good + "1 5:1e5000 4:1\n" + good + "x\n" + good + "1 -1:1\n")
    assert (error.line, error.column) == (51, 5)  # found after the unsorted index of the same line, but before it


def test_pieces_are_about_as_large_as_asked(folder: Path) -> None:
    path = folder / "b.svm"
    path.write_text("1 " + " ".join(f"{i}:1" for i in range(50)) + "\n" + "1 3:0.25 5:0.125\n" * 20_000)
    pieces = list(read(path, ReadOptions(), 50_000))
    assert sum(map(len, pieces)) == 20_001
    assert len(pieces) > 5
    assert all(p.indices.nbytes + p.values.nbytes + p.labels.nbytes + p.indptr.nbytes < 100_000 for p in pieces)


def test_rows_without_label_are_for_prediction_only(folder: Path) -> None:
    text = "3:1 4:2\n1 3:1\nqid:2 5:1\n"
    assert "label is missing" in str(refused(folder, text))
    rows = parse(folder, text, ReadOptions(unlabelled=True))
    assert as_lists(rows) == [(0, [3, 4], [1, 2]), (1, [3], [1]), (0, [5], [1])]


def test_columns_beyond_the_expected_ones(folder: Path) -> None:
    text = "1 1:1 3:1\n1 2:1 4:1\n"
    for base, features in [(1, 4), (0, 5), ("auto", 4)]:
        assert parse(folder, text, ReadOptions(base=base, features=features)).nonzeros == 4
    for base, features in [(1, 3), (0, 4), ("auto", 3)]:
        error = refused(folder, text, ReadOptions(base=base, features=features))
        assert (error.line, error.column) == (2, 7)
        assert f"beyond the {features} features" in str(error)
        kept = parse(folder, text, ReadOptions(base=base, features=features, extra="ignore"))
        assert as_lists(kept) == [(1, [1, 3], [1, 1]), (1, [2], [1])]


def test_dropped_columns_are_checked_too(folder: Path) -> None:
    reading = ReadOptions(base=1, features=2, extra="ignore")
    assert refused(folder, "1 1:1 7:nan\n", reading).column == 9
    assert refused(folder, "1 1:1 7:1 6:1\n", reading).column == 11


def test_index_zero_in_a_file_that_counts_from_one(folder: Path) -> None:
    assert parse(folder, "1 0:1\n", ReadOptions(base=0)).nonzeros == 1
    error = refused(folder, "1 0:1\n", ReadOptions(base=1))
    assert (error.line, error.column) == (1, 3)


def test_a_file_of_comments_only(folder: Path) -> None:
    assert "no row" in str(refused(folder, "# nothing\n\n"))


@pytest.mark.parametrize("name", ["a9a.svm.gz", "reuters.tst.svm.gz"])
def test_real_data_as_scikit_learn_reads_it(name: str) -> None:
    if not (SHARED / name).exists():
        pytest.skip("the real data is not here")
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(SHARED / name), zero_based=True)
    rows = concatenate(list(read(SHARED / name, ReadOptions(), 1 << 20)))
    np.testing.assert_array_equal(rows.indptr, X.indptr)
    np.testing.assert_array_equal(rows.indices, X.indices)
    np.testing.assert_array_equal(rows.values, X.data.astype(np.float32))
    np.testing.assert_array_equal(rows.labels, y)
    assert math.isfinite(rows.values.sum())
