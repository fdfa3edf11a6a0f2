"""Damaged svmlight text: a clear error, or the same rows that a slow reader finds in it."""

import bz2
import gzip
import random
from pathlib import Path

import numpy as np
import pytest
import svmlight_reference
from backports import zstd
from damage import TIMES, damage

from hogwild.data.csr import CSRRows
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.svmlight import read
from hogwild.errors import DataError


def sample(rng: random.Random) -> bytes:
    lines = []
    for _ in range(rng.randint(1, 12)):
        indices = sorted(rng.sample(range(1, 500), rng.randint(0, 9)))
        fields = [f"{index}:{rng.choice([1, 0.5, -2.25e-3, 1e10, rng.gauss(0, 1)])}" for index in indices]
        label = rng.choice(["+1", "-1", "0", "2.5", "1e-3"])
        query = rng.choice(["", "", "qid:3"])
        comment = rng.choice(["", "", "", "# noted: 1:2"])
        lines.append(" ".join(part for part in [label, query, *fields, comment] if part))
    return rng.choice(["\n", "\n", "\r\n"]).join(lines).encode() + rng.choice([b"\n", b""])


def attempt(path: Path, reading: ReadOptions, piece_bytes: int) -> list[CSRRows] | DataError:
    try:
        return list(read(path, reading, piece_bytes))
    except DataError as error:
        return error


def check(
    path: Path, expected: list[svmlight_reference.Row] | None, reading: ReadOptions, piece_bytes: int = 256
) -> bool:
    """Read a file and judge the outcome; whether it was accepted."""
    outcome = attempt(path, reading, piece_bytes)
    if isinstance(outcome, DataError):
        assert str(path) in str(outcome)
        assert outcome.remedy
        assert expected is None, f"refused although it is valid: {outcome}"
        return False
    assert expected is not None, "accepted although it is damaged"
    labels = np.concatenate([piece.labels for piece in outcome])
    indices = np.concatenate([piece.indices for piece in outcome])
    values = np.concatenate([piece.values for piece in outcome])
    lengths = np.concatenate([np.diff(piece.indptr) for piece in outcome])
    assert labels.tolist() == [label for label, _ in expected]
    assert lengths.tolist() == [len(entries) for _, entries in expected]
    assert indices.tolist() == [index for _, entries in expected for index, _ in entries]
    assert values.tolist() == [float(value) for _, entries in expected for _, value in entries]
    return True


@pytest.mark.parametrize("unlabelled", [False, True])
def test_damaged_text_is_refused_or_still_valid(tmp_path: Path, unlabelled: bool) -> None:
    outcomes = []
    for seed in range(TIMES):
        rng = random.Random(seed)
        text = damage(sample(rng), rng)
        path = tmp_path / "damaged.svm"
        path.write_bytes(text)
        outcomes.append(check(path, svmlight_reference.parse(text, unlabelled), ReadOptions(unlabelled=unlabelled)))
    assert not all(outcomes)


def test_undamaged_text_is_accepted(tmp_path: Path) -> None:
    for seed in range(20):
        text = sample(random.Random(seed))
        path = tmp_path / "good.svm"
        path.write_bytes(text)
        assert check(path, svmlight_reference.parse(text), ReadOptions())


def zstd_compress(text: bytes) -> bytes:
    """Compress with a checksum, as the tool of Zstandard does: without one, damage may go unnoticed."""
    return zstd.compress(text, options={zstd.CompressionParameter.checksum_flag: True})


@pytest.mark.parametrize(("pack", "ending"), [(gzip.compress, ".gz"), (bz2.compress, ".bz2"), (zstd_compress, ".zst")])
def test_damaged_archives_never_give_other_rows(tmp_path: Path, pack, ending: str) -> None:
    rng = random.Random(5)
    text = b"".join(sample(rng).rstrip() + b"\n" for _ in range(20))
    for seed in range(TIMES // 2):
        archive = damage(pack(text), random.Random(seed))
        path = tmp_path / f"damaged.svm{ending}"
        path.write_bytes(archive)
        if not isinstance(attempt(path, ReadOptions(), 1 << 16), DataError):
            assert check(path, svmlight_reference.parse(text), ReadOptions(), 1 << 16)


# (text, line, column, words of the message), one for each thing that can be wrong
TARGETED = [
    (b"1 1:1\n1 -3:1\n", 2, 3, "negative"),
    (b"1 1:1\n1 4:1 2147483647:1\n", 2, 7, "larger than"),
    (b"1 99999999999999999999999:1\n", 1, 3, "larger than"),
    (b"1 1:1\n\n# c\n1 1:abc\n", 4, 5, "not a number"),
    (b"1 x:1\n", 1, 3, "not index:value"),
    (b"1 1.5:1\n", 1, 3, "not index:value"),
    (b"1 3:1 2:1\n", 1, 7, "smaller than the one before"),
    (b"1 3:1\t3:1\n", 1, 7, "already"),
    (b"1 3:nan\n", 1, 5, "not finite"),
    (b"1 3:-INF\n", 1, 5, "not finite"),
    (b"1 3:1e39\n", 1, 5, "not finite"),
    (b"1 3:1e400\n", 1, 5, "not finite"),
    (b"1 3:1\nnan 3:1\n", 2, 1, "label 'nan' is not finite"),
    (b"inf 3:1\n", 1, 1, "label 'inf' is not finite"),
    (b"1e400 3:1\n", 1, 1, "not finite"),
    (b"spam 3:1\n", 1, 1, "label 'spam' is not a number"),
    (b"  3:1\n", 1, 3, "label is missing"),
    (b"qid:1 3:1\n", 1, 1, "label is missing"),
    (b"1 3:1 4\n", 1, 7, "no colon"),
    (b"1 3: 4:1\n", 1, 5, "no value"),
    (b"1 3:\n", 1, 5, "no value"),
    (b"1 3:1:1\n", 1, 5, "not a number"),
    (b"1,2 3:1\n", 1, 1, "several labels"),
    (b"1 qid:x 3:1\n", 1, 3, "qid"),
    (b"1 3:1 qid:4\n", 1, 7, "qid"),
    (b"1 3:1\r1 3:1\r", 1, 6, "carriage return"),
    (b"1 3:1\0\n", 1, 5, "NUL"),
    (b"1 3:1 # \0\n", 1, 9, "NUL"),
    (b"\0\0\0\0\n", 1, 1, "NUL"),
    (b"1 3:1 \xff\xfe\n", 1, 7, "not index:value"),
    (b"\xc3\xa9 3:1\n", 1, 1, "not a number"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), TARGETED)
def test_each_kind_of_damage_is_named_and_placed(
    tmp_path: Path, text: bytes, line: int, column: int, words: str
) -> None:
    path = tmp_path / "bad.svm"
    for before in (b"", b"1 1:2 7:0.5 # fine\n" * 40):  # in the first segment, and in a later one
        path.write_bytes(before + text)
        with pytest.raises(DataError) as caught:
            list(read(path, ReadOptions(), 128))
        error = caught.value
        assert (error.line, error.column) == (line + before.count(b"\n"), column)
        assert words in str(error)
        assert str(path) in str(error)
        assert error.remedy
