"""TFRecord files: what we write and what others write is read, and what is damaged is said with its place."""

import gzip
import struct

import numpy as np
import pytest

import hogwild
from hogwild.data.csr import concatenate
from hogwild.data.reader import LARGEST_INDEX, ReadOptions
from hogwild.data.readers.tfrecord import read
from hogwild.data.readers.tfrecord_parser import masked_crc
from hogwild.data.tfrecord_writer import RecordWriter
from hogwild.errors import DataError, ParameterError

# A protocol buffer written by hand, one function for each kind of thing.


def varint(number):
    number &= 2**64 - 1
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def piece(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def integers(values, packed=True):
    if packed:
        return piece(3, piece(1, b"".join(map(varint, values))))
    return piece(3, b"".join(varint(1 << 3) + varint(value) for value in values))


def floats(values, packed=True):
    if packed:
        return piece(2, piece(1, struct.pack(f"<{len(values)}f", *values)))
    return piece(2, b"".join(varint(1 << 3 | 5) + struct.pack("<f", value) for value in values))


def example(**features):
    return piece(1, b"".join(piece(1, piece(1, k.encode()) + piece(2, v)) for k, v in features.items()))


def masked(content):
    return struct.pack("<I", int(masked_crc(np.frombuffer(content, np.uint8), 0, len(content))))


def framed(content):
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def rows_of(path, content, unlabelled=False, size=1 << 20):
    path.write_bytes(content)
    return concatenate(list(read(path, ReadOptions(unlabelled=unlabelled), size)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tfrecord"


GOOD = example(nz_idx=integers([3, 900_000]), nz_values=floats([0.5, -2.0]), label=integers([4]))


def sample(count, binary, seed=0, whole=True):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        columns = np.sort(rng.choice(2**31 - 2, rng.integers(0, 9), replace=False))
        values = None if binary else rng.standard_normal(len(columns)).astype(np.float32)
        made.append((columns, values, float(rng.integers(-3, 9)) if whole else float(np.float32(rng.random()))))
    return made


@pytest.mark.parametrize("ending", ["tfrecord", "tfrecord.gz", "tfrecord.zst", "tfrecords"])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_what_is_written_is_read(tmp_path, ending, binary, whole):
    path, made = tmp_path / f"a.{ending}", sample(40, binary, whole=whole)
    with RecordWriter(path) as writer:
        for record in made:
            writer.write(*record)
    for size in (1, 5_000, 1 << 20):
        rows = concatenate(list(read(path, ReadOptions(), size)))
        assert rows.labels.tolist() == [label for _, _, label in made]
        for k, (columns, values, _) in enumerate(made):
            entries = slice(rows.indptr[k], rows.indptr[k + 1])
            assert rows.indices[entries].tolist() == columns.tolist()
            expected = np.ones(len(columns)) if values is None else values
            assert rows.values[entries].tolist() == expected.tolist()


def test_it_is_one_of_the_formats_that_are_opened(tmp_path):
    made = hogwild.data.open(([[0.0, 2.0], [1.0, 0.0]], [1, -1])[0], [1, -1])
    assert made.n_rows == 2
    path = tmp_path / "a.tfrecord"
    with RecordWriter(path) as writer:
        writer.write([4, 1], None, 1)
        writer.write([2], None, 0)
    data = hogwild.data.open(path)
    assert (data.n_rows, data.n_features, data.nonzeros, data.layout) == (2, 5, 3, "binary")


def test_rows_are_written_at_once(tmp_path):
    from hogwild.data.generate import kind

    rows = kind("multiclass", rows=200, features=50, nonzeros=6).rows
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_rows(rows)
    back = concatenate(list(read(tmp_path / "a.tfrecord", ReadOptions(), 1 << 20)))
    for name in ("indptr", "indices", "values", "labels"):
        np.testing.assert_array_equal(getattr(back, name), getattr(rows, name))


@pytest.mark.parametrize(
    "record",
    [
        GOOD,
        example(label=integers([4]), nz_values=floats([0.5, -2.0]), nz_idx=integers([3, 900_000])),
        example(nz_idx=integers([3, 900_000], False), nz_values=floats([0.5, -2.0], False), label=floats([4.0])),
        example(other=integers([1, 2]), nz_idx=integers([3, 900_000]), name=piece(1, piece(1, b"text")),
                nz_values=floats([0.5, -2.0]), label=integers([4])),
        example(nz_idx=integers([900_000, 3]), nz_values=floats([-2.0, 0.5]), label=integers([4])),
        example(nz_idx=integers([3, 900_000, 3]), nz_values=floats([0.25, -2.0, 0.25]), label=integers([4])),
        example(nz_idx=integers([3]) + integers([900_000]), nz_values=floats([0.5]) + floats([-2.0]),
                label=integers([4])),
        varint(9 << 3) + varint(5) + GOOD + varint(8 << 3 | 1) + bytes(8),  # fields that are not known
    ],
)  # fmt: skip
def test_an_example_may_be_written_in_several_ways(path, record):
    rows = rows_of(path, framed(record))
    assert (rows.indices.tolist(), rows.values.tolist(), rows.labels.tolist()) == ([3, 900_000], [0.5, -2.0], [4.0])


def test_negative_labels_and_rows_without_anything(path):
    records = [example(nz_idx=integers([]), label=integers([-1])), example(nz_idx=b"", label=floats([-0.5]))]
    rows = rows_of(path, b"".join(map(framed, records)))
    assert (rows.indptr.tolist(), rows.labels.tolist()) == ([0, 0, 0], [-1.0, -0.5])


def test_without_labels_only_where_that_is_allowed(path):
    record = framed(example(nz_idx=integers([1])))
    assert rows_of(path, record, unlabelled=True).labels.tolist() == [0.0]
    with pytest.raises(DataError, match=r"no label.*record 1, which begins at byte 0"):
        rows_of(path, record)


START = len(framed(GOOD))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (framed(GOOD)[:-1], "ends within"),
        (framed(GOOD)[:5], "ends within"),
        (bytes(12), "checksum of the record's length"),
        (framed(GOOD)[:20] + b"?" + framed(GOOD)[21:], "checksum of the record does"),
        (framed(b"\x0a\x7f"), "not a tf.train.Example"),
        (framed(GOOD + b"\xff" * 11), "not a tf.train.Example"),
        (framed(example(nz_idx=floats([1.0]), label=integers([1]))), "not a tf.train.Example"),
        (framed(example(nz_idx=piece(1, piece(1, b"1")), label=integers([1]))), "not a tf.train.Example"),
        (framed(example(nz_idx=integers([1]), nz_values=integers([1]), label=integers([1]))), "not a tf.train.Example"),
        (framed(example(nz_idx=integers([1]), nz_values=piece(2, piece(1, b"abc")), label=integers([1]))),
         "not a tf.train.Example"),
        (framed(example(label=integers([1]))), "no feature nz_idx"),
        (framed(b""), "no feature nz_idx"),
        (framed(example(nz_idx=integers([1]), label=integers([1, 2]))), "no label, or several"),
        (framed(example(nz_idx=integers([1]), label=piece(1, piece(1, b"x")))), "no label, or several"),
        (framed(example(nz_idx=integers([1, 2]), nz_values=floats([1.0]), label=integers([1]))), "not as many"),
        (framed(example(nz_idx=integers([-1]), label=integers([1]))), "negative or larger"),
        (framed(example(nz_idx=integers([LARGEST_INDEX + 1]), label=integers([1]))), "negative or larger"),
        (framed(example(nz_idx=integers([1]), nz_values=floats([np.nan]), label=integers([1]))), "not a finite"),
        (framed(example(nz_idx=integers([1]), label=floats([np.inf]))), "label is not a finite"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_said_with_its_byte(path, content, message):
    good = framed(GOOD)
    for size in (1 << 20, 4_096 * 2):
        with pytest.raises(DataError, match=message) as raised:
            rows_of(path, good + good + content, size=size)
        assert f"record 3, which begins at byte {2 * START:,}" in str(raised.value)


def test_gzip_under_any_name_and_a_record_that_begins_like_it(tmp_path, path):
    packed = gzip.compress(framed(GOOD))
    assert len(rows_of(path, packed)) == 1
    filler = 559_903 - len(GOOD) - 4  # this many bytes are written as 1f 8b 08 00 00 00 00 00
    record = GOOD + piece(9, bytes(filler))
    assert struct.pack("<Q", len(record)).startswith(b"\x1f\x8b")
    assert len(rows_of(path, framed(record) * 2, size=1 << 16)) == 2
    with pytest.raises(DataError, match="truncated"):
        rows_of(path, packed[:-9])
    with pytest.raises(DataError, match="damaged"):
        rows_of(path, packed[:20] + b"???" + packed[23:])


def test_a_file_without_records(path):
    path.write_bytes(b"")
    with pytest.raises(DataError, match="no rows"):
        hogwild.data.open(path)
    with pytest.raises(DataError):
        list(read(path.with_name("none.tfrecord"), ReadOptions(), 100))


@pytest.mark.parametrize(("indices", "values"), [([-1], None), ([0.5], None), ([[1]], None), ([1, 2], [1.0])])
def test_what_cannot_be_written_is_refused(path, indices, values):
    with pytest.raises(ParameterError), RecordWriter(path) as writer:
        writer.write(indices, values, 0)
    assert not path.exists()


def test_others_read_what_we_write_and_we_what_they_write(tmp_path):
    theirs = pytest.importorskip("tfrecord")
    made = sample(30, False)
    with RecordWriter(tmp_path / "ours.tfrecord") as writer:
        for record in made:
            writer.write(*record)
    kinds = {"nz_idx": "int", "nz_values": "float", "label": "int"}
    found = list(theirs.reader.tfrecord_loader(str(tmp_path / "ours.tfrecord"), None, kinds))
    assert len(found) == 30
    for (columns, values, label), record in zip(made, found, strict=True):
        assert record["nz_idx"].tolist() == columns.tolist()
        assert record["nz_values"].tolist() == values.tolist()
        assert record["label"].tolist() == [label]
    full = [record for record in made if len(record[0])]
    writer = theirs.TFRecordWriter(str(tmp_path / "theirs.tfrecord"))
    for columns, values, label in full:
        writer.write({"nz_idx": (columns, "int"), "nz_values": (values, "float"), "label": (int(label), "int")})
    writer.close()
    rows = concatenate(list(read(tmp_path / "theirs.tfrecord", ReadOptions(), 1 << 20)))
    assert rows.indices.tolist() == [int(c) for columns, _, _ in full for c in columns]
    assert rows.values.tolist() == [float(v) for _, values, _ in full for v in values]
    assert rows.labels.tolist() == [label for _, _, label in full]
