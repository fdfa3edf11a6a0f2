import json
import os
import shutil
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from making import as_dicts, fake_file, random_rows, reader_of, visited, walked

from hogwild import machine
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.packing import format as packed_format
from hogwild.data.packing import mapped_arrays
from hogwild.data.packing.format import read_meta, write_meta
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.errors import DataError
from hogwild.problems.linear import Linear
from hogwild.rules import SGD

ROWS, FEATURES = 9_000, 40


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A packed folder that no test changes."""
    folder = tmp_path_factory.mktemp("packed")
    return pack([fake_file(folder)], folder / "out", readers=[reader_of(many_rows())])._stored.folder


@pytest.fixture
def folder(original, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copytree(original, tmp_path / "out")


def many_rows():
    return random_rows(3, ROWS, FEATURES, weighted=True)


def resealed(folder, **changes):
    """Put checksums right again, as somebody would who wants to do harm."""
    meta = read_meta(folder)
    crcs = [
        zlib.crc32(content[at : at + packed_format.BLOCK_BYTES])
        for array, _ in meta.files()
        for content in [(folder / array.file).read_bytes()]
        for at in range(0, len(content), packed_format.BLOCK_BYTES)
    ]
    content = np.array(crcs, "<u4").tobytes()
    (folder / packed_format.CHECKSUMS).write_bytes(content)
    said = {name: getattr(meta, name) for name in meta.__dataclass_fields__}
    write_meta(folder, packed_format.Meta(**{**said, "checksums": zlib.crc32(content), **changes}))


def edited(folder, name, position, value):
    kind = {array.file: array.type for array in packed_format.ARRAYS}[name]
    array = np.fromfile(folder / name, kind)
    array[position] = value
    array.tofile(folder / name)


def test_epochs_are_those_of_the_same_rows_in_memory(original):
    packed = PackedDataset(original)
    rows = packed._stored.read(0, ROWS)
    memory = InMemoryDataset(rows, shuffled=True)
    assert len(packed.epoch(1, 2)) == len(memory.epoch(1, 2)) > 1
    assert np.array_equal(visited(packed.epoch(1, 2)), visited(memory.epoch(1, 2)))
    assert walked(packed.epoch(1, 2)) == as_dicts(many_rows()) == walked(packed.in_order())
    assert np.array_equal(packed.frequencies(), memory.frequencies())
    assert np.array_equal(visited(packed.in_order()), packed.labels())


def test_a_split_has_every_row_on_one_side(original):
    packed = PackedDataset(original)
    rest, aside = packed.split(0.2, seed=0)
    assert aside.n_rows == ROWS // 5
    sides = walked(rest.epoch(0, 0)), walked(aside.epoch(0, 0))
    assert {**sides[0], **sides[1]} == as_dicts(many_rows())
    assert rest.nonzeros + aside.nonzeros == packed.nonzeros
    for part, side in zip((rest, aside), sides, strict=True):
        counts = np.bincount([column for columns, _, _ in side.values() for column in columns], minlength=FEATURES)
        assert np.array_equal(part.frequencies(), counts)
        assert set(part.labels()) == side.keys()
    assert len({packed.fingerprint, rest.fingerprint, aside.fingerprint}) == 3
    third, _ = rest.split(0.5, seed=0)
    assert walked(third.in_order()).keys() <= sides[0].keys()


def test_labels_are_encoded_chunk_by_chunk(original):
    for kind in (np.float32, np.float64):  # kernels are compiled for the type that encoding gives
        encoded = PackedDataset(original).with_labels(lambda labels, kind=kind: (labels + 0.5).astype(kind))
        assert encoded.epoch(0, 0)[0].rows.labels.dtype == kind
    assert sorted(visited(encoded.epoch(0, 0))) == [label + 0.5 for label in range(ROWS)]
    assert encoded.labels().dtype == np.float64
    assert np.array_equal(encoded.split(0.1, 0)[1].labels(), PackedDataset(original).split(0.1, 0)[1].labels() + 0.5)


def test_a_folder_larger_than_memory_is_walked_from_many_threads(original, monkeypatch):
    released = []
    release = mapped_arrays.MappedArray.release
    monkeypatch.setattr(mapped_arrays.MappedArray, "release", lambda *what: released.append(what) or release(*what))
    packed = PackedDataset(original, memory=1)
    assert packed.bounded
    walk = packed.epoch(0, 0)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda number: as_dicts(walk[number].rows), range(len(walk))))
    found = {label: row for part in parts for label, row in part.items()}
    assert found == as_dicts(many_rows())
    before = len(released)
    walk.done(0)
    assert len(released) > before


def test_what_nobody_says_is_done_goes_first_in_first_out(original):
    packed = PackedDataset(original, memory=1)
    stored, walk = packed._stored, packed.in_order()
    stored._limit = lambda: 40_000
    for number in range(len(walk)):
        assert as_dicts(walk[number].rows)
        assert stored._held_bytes <= 40_000 or len(stored._held) == 1
    assert stored._held_bytes == sum(stored._held.values())


def test_program_code_leaves_the_memory_when_it_is_short_and_comes_back(original, monkeypatch):
    shed = []
    monkeypatch.setattr(mapped_arrays, "release_pages", lambda: shed.append(machine.release_pages()))
    assert as_dicts(PackedDataset(original, memory=2**40).in_order()[0].rows)
    assert not shed
    walk = PackedDataset(original, memory=1).in_order()
    assert [as_dicts(walk[number].rows) for number in range(len(walk))]
    assert 1 <= len(shed) < len(walk)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads what Linux tells")
def test_shedding_takes_pages_of_code_out_of_this_process():
    code = (
        "from hogwild.machine import *; import numba; before = resident_bytes(); release_pages(); "
        "print(before - resident_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 2**23


def test_a_model_that_the_memory_asked_for_cannot_hold_is_refused(original):
    with pytest.raises(DataError, match=r"a model of 40 features x 1 outputs takes .* of memory.* or allow more"):
        Linear(PackedDataset(original, memory=1), "squared").start(SGD())
    assert Linear(PackedDataset(original, memory=2**40), "squared").start(SGD())


def test_with_room_enough_nothing_leaves_the_memory(original):
    assert not PackedDataset(original, memory=2**40).bounded


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", ["indptr.i64", "indices.u32", "values.f32", "labels.f64", "weights.f32"])
def test_a_flipped_bit_is_found_at_once_or_when_it_is_visited(folder, name, verify):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 8
    (folder / name).write_bytes(content)

    def use():
        walk = PackedDataset(folder, verify=verify).epoch(0, 0)
        for number in range(len(walk)):
            walk[number]

    with pytest.raises(DataError, match=rf"{name}: the file is damaged: block 0"):
        use()


def test_a_flipped_bit_in_the_frequencies_is_found_when_they_are_used(folder):
    edited(folder, "frequencies.i64", 3, 5)
    with pytest.raises(DataError, match=r"frequencies\.i64"):
        PackedDataset(folder, verify=False).frequencies()


@pytest.mark.parametrize("name", ["indptr.i64", "values.f32", "labels.f64", "checksums.u32"])
def test_a_file_that_is_short_or_missing(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:-4])
    with pytest.raises(DataError, match=rf"{name}.*bytes.*Pack the data again"):
        PackedDataset(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=rf"{name}.*cannot be read"):
        PackedDataset(folder)


@pytest.mark.parametrize("name", ["labels.f64", "checksums.u32"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_file_that_is_none(folder, name, kind):
    """A pipe was waited for, and an endless device read until memory was full."""
    (folder / name).unlink()
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero")
    with pytest.raises(DataError, match=f"{name}: the file"):
        PackedDataset(folder)


def changed_meta(folder, **changes):
    path = folder / "meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "format version 2, and this program reads version 1"),
        ({"format": "tar"}, "does not describe packed data"),
        ({"features": 41}, "digest does not match"),
    ],
)
def test_meta_that_was_changed(folder, changes, message):
    changed_meta(folder, **changes)
    with pytest.raises(DataError, match=message):
        PackedDataset(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}'])
def test_meta_that_is_none(folder, content):
    (folder / "meta.json").write_bytes(content)
    with pytest.raises(DataError, match=r"meta\.json"):
        PackedDataset(folder)


@pytest.mark.parametrize(
    "changes", [{"rows": -1}, {"rows": 0}, {"features": "x"}, {"base": 7}, {"layout": "round"}, {"nonzeros": 2**70}]
)
def test_sizes_that_make_no_sense_although_the_digest_matches(folder, changes):
    resealed(folder, **changes)
    with pytest.raises(DataError, match="make no sense"):
        PackedDataset(folder)


@pytest.mark.parametrize(
    ("name", "position", "value", "message"),
    [
        ("indices.u32", 100, FEATURES, "beyond the last of 40 features"),
        ("indices.u32", 100, 2**32 - 1, "beyond the last of 40 features"),
        ("indptr.i64", 50, -1, "rows do not follow each other"),
        ("indptr.i64", 50, 2**60, "rows do not follow each other"),
        ("indptr.i64", 0, 1, "do not cover"),
        ("indptr.i64", ROWS, 2**60, "outside the entries"),
        ("values.f32", 7, np.nan, "a value is not a number"),
        ("values.f32", 7, np.inf, "a value is not a number"),
        ("labels.f64", 7, np.nan, "a label is not a number"),
        ("weights.f32", 7, -1, "a weight is negative"),
    ],
)
def test_nonsense_with_correct_checksums_never_reaches_a_kernel(folder, name, position, value, message):
    edited(folder, name, position, value)
    resealed(folder)
    with pytest.raises(DataError, match=f"{name}.*{message}"):
        PackedDataset(folder)


def test_indices_that_do_not_rise_with_correct_checksums(folder):
    indptr = np.fromfile(folder / "indptr.i64", "<i8")
    start = indptr[np.flatnonzero(np.diff(indptr) > 1)[0]]
    edited(folder, "indices.u32", [start, start + 1], 3)
    resealed(folder)
    with pytest.raises(DataError, match="do not rise"):
        PackedDataset(folder)


def test_rows_without_entries_at_either_end(tmp_path):
    rows = random_rows(0, 5, 30)
    lengths = np.array([0, 2, 0, 3, 0])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    some = type(rows)(indptr, np.array([3, 9, 1, 2, 4], np.uint32), np.full(5, 2, np.float32), rows.labels,
                      rows.weights, 30, "sparse")  # fmt: skip
    pack([fake_file(tmp_path)], tmp_path / "out", readers=[reader_of(some, 1)])
    assert walked(PackedDataset(tmp_path / "out").epoch(0, 0)) == as_dicts(some)
