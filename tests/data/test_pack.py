import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import as_dicts, fake_file, random_rows, reader_of, walked

import hogwild.data
from hogwild.data import ReadOptions
from hogwild.data.packing import bucket_sort, writer
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.shuffle import row_keys, shuffled_order
from hogwild.errors import DataError, ParameterError

packing = sys.modules["hogwild.data.packing.pack"]  # the function of the same name hides the module


@pytest.fixture(params=["roomy", "tight"])
def room(request, monkeypatch):
    """Tight: every bucket must be divided again, and records and parts are small."""
    if request.param == "tight":
        monkeypatch.setattr(packing, "working_memory", lambda memory, besides=0: 300)
        monkeypatch.setattr(packing, "FAN_OUT_BITS", 1)
        monkeypatch.setattr(bucket_sort, "FAN_OUT_BITS", 1)
        monkeypatch.setattr(bucket_sort, "_WRITTEN", 7)
        monkeypatch.setattr(writer, "_RECORD", 11)
    return request.param


def rows_of(data):
    return walked(data.in_order())


@pytest.mark.parametrize("layout", ["sparse", "binary", "dense"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_packed_folder_has_the_rows_in_the_order_of_the_same_file_in_memory(tmp_path, layout, weighted, room):
    rows = random_rows(4, 300, 20, layout, weighted)
    path, readers = fake_file(tmp_path), [reader_of(rows)]
    packed = pack([path], tmp_path / "out", readers=readers)
    memory = hogwild.data.open(path, readers=readers)
    assert rows_of(packed) == as_dicts(rows)
    assert np.array_equal(packed.labels(), memory.labels())
    assert np.array_equal(packed.frequencies(), memory.frequencies())
    assert (packed.n_rows, packed.n_features, packed.nonzeros) == (300, 20, rows.nonzeros)
    assert (packed.layout, memory.layout) == (layout, layout)
    for one, other in zip((packed.epoch(3, 1)[0],), (memory.epoch(3, 1)[0],), strict=True):
        assert np.array_equal(one.order, other.order)
        assert as_dicts(one.rows) == as_dicts(other.rows)


def test_the_result_depends_on_the_seed_and_not_on_pieces_or_buckets(tmp_path, room):
    rows, path = random_rows(1, 400), fake_file(tmp_path)
    names = iter("abcd")

    def labels(pieces, seed):
        return pack([path], tmp_path / next(names), seed=seed, readers=[reader_of(rows, pieces)]).labels()

    assert np.array_equal(labels(1, 5), labels(7, 5))
    assert not np.array_equal(labels(1, 5), labels(1, 6))


@given(st.integers(1, 200), st.integers(0, 2**64 - 1), st.integers(0, 200))
def test_keys_are_distinct_and_do_not_depend_on_where_one_starts(count, seed, start):
    keys = row_keys(0, count + start, seed)
    assert len(np.unique(keys)) == count + start
    assert np.array_equal(keys[start:], row_keys(start, count, seed))


def test_every_row_lands_everywhere_equally_often():
    n, seeds = 8, 4_000
    seen = np.zeros((n, n))
    for seed in range(seeds):
        seen[np.arange(n), shuffled_order(n, seed)] += 1
    expected = seeds / n
    assert ((seen - expected) ** 2 / expected).sum() < 49 + 6 * np.sqrt(2 * 49)  # chi squared, 49 degrees


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.integers(1, 5), st.booleans())
def test_any_number_of_rows_and_pieces(tmp_path_factory, n_rows, pieces, weighted):
    folder = tmp_path_factory.mktemp("any")
    rows = random_rows(n_rows, n_rows, 12, weighted=weighted)
    packed = pack(
        [fake_file(folder)], folder / "out", reading=ReadOptions(features=12), readers=[reader_of(rows, pieces)]
    )
    found, expected = rows_of(packed), as_dicts(rows)
    assert found == expected


def test_several_files_become_one_folder(tmp_path):
    rows = random_rows(2, 50)
    paths = [fake_file(tmp_path, "a.fake"), fake_file(tmp_path, "b.fake")]
    packed = pack(paths, tmp_path / "out", readers=[reader_of(rows)])
    assert packed.n_rows == 100
    assert packed.meta.sources == ["a.fake", "b.fake"]


def svm(tmp_path, text, name="a.svm"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(("text", "base", "features"), [("1 1:2 3:4\n", 1, 3), ("1 1:2 3:4\n0 0:1\n", 0, 4)])
def test_indices_start_where_the_whole_file_says(tmp_path, text, base, features):
    packed = pack([svm(tmp_path, text)], tmp_path / "out")
    assert (packed.base, packed.n_features) == (base, features)
    assert rows_of(packed)[1.0][0] == (1 - base, 3 - base)


def test_values_that_are_all_one_are_not_stored(tmp_path):
    packed = pack([svm(tmp_path, "1 1:1 3:1\n2 2:1.0\n")], tmp_path / "out")
    assert packed.layout == "binary"
    assert not (tmp_path / "out" / "values.f32").exists()
    assert rows_of(packed) == {1.0: ((0, 2), (1.0, 1.0), 1.0), 2.0: ((1,), (1.0,), 1.0)}


def test_columns_beyond_the_last(tmp_path):
    path = svm(tmp_path, "1 1:2 3:4\n2 2:1\n3 9:1\n")
    with pytest.raises(DataError, match=r"a\.svm, line 3, column 3.*beyond"):
        pack([path], tmp_path / "out", reading=ReadOptions(features=3))
    zero = svm(tmp_path, "1 1:2 3:4\n2 0:1\n", "zero.svm")  # that indices count from 0 is known only at the end
    with pytest.raises(DataError, match=r"zero\.svm, row 1: index 3 is beyond the last of 3 features"):
        pack([zero], tmp_path / "out", reading=ReadOptions(features=3))
    cut = pack([zero], tmp_path / "cut", reading=ReadOptions(features=3, extra="ignore"))
    assert rows_of(cut) == {1.0: ((1,), (2.0,), 1.0), 2.0: ((0,), (1.0,), 1.0)}
    packed = pack([path], tmp_path / "out", reading=ReadOptions(features=2, extra="ignore"))
    assert rows_of(packed) == {1.0: ((0,), (2.0,), 1.0), 2.0: ((1,), (1.0,), 1.0), 3.0: ((), (), 1.0)}


def test_dense_columns_are_cut_or_missed(tmp_path):
    rows, path = random_rows(0, 40, 6, "dense"), fake_file(tmp_path)
    cut = pack([path], tmp_path / "out", reading=ReadOptions(features=4, extra="ignore"), readers=[reader_of(rows)])
    expected = {label: (columns[:4], values[:4], 1.0) for label, (columns, values, _) in as_dicts(rows).items()}
    assert rows_of(cut) == expected
    assert np.array_equal(cut.frequencies(), [40] * 4)
    for features in (4, 7):
        with pytest.raises(DataError, match=f"6 columns, and {features} are expected"):
            pack([path], tmp_path / "none", reading=ReadOptions(features=features), readers=[reader_of(rows)])


def test_labels_are_summed_up(tmp_path):
    packed = pack([svm(tmp_path, "1 1:1\n-1 1:1\n1 2:1\n")], tmp_path / "out")
    assert packed.meta.labels["values"] == [-1.0, 1.0]
    assert packed.meta.labels["counts"] == [1, 2]
    many = pack([fake_file(tmp_path)], tmp_path / "many", readers=[reader_of(random_rows(0, 10_200))])
    assert many.meta.labels["kind"] == "many"
    assert many.meta.labels["greatest"] == 10_199
    assert packed.meta.frequencies == {"present": 2, "largest": 2, "most_frequent": 0}


def test_progress_is_told(tmp_path):
    told = []
    pack([fake_file(tmp_path)], tmp_path / "out", readers=[reader_of(random_rows(0, 90))],
         progress=lambda *what: told.append(what))  # fmt: skip
    assert told[0][0] == "reading"
    assert ("reading", 90, None) in told
    assert told[-1] == ("writing", 90, 90)


def failing_reader(error):
    def read(path, reading, piece_bytes):
        yield random_rows(0, 10)
        if piece_bytes != 2**16:  # not while warming up
            raise error

    return replace(reader_of(random_rows(0)), read=read)


@pytest.mark.parametrize("error", [DataError("bad"), KeyboardInterrupt(), OSError("disk full")])
def test_an_error_leaves_nothing_behind(tmp_path, error):
    path = fake_file(tmp_path)
    with pytest.raises(type(error)):
        pack([path], tmp_path / "out", readers=[failing_reader(error)])
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.fake"]


def test_an_existing_folder_is_kept_unless_told_otherwise(tmp_path):
    path, readers = fake_file(tmp_path), [reader_of(random_rows(0, 30))]
    pack([path], tmp_path / "out", readers=readers)
    with pytest.raises(ParameterError, match="exists already"):
        pack([path], tmp_path / "out", readers=readers)
    assert pack([path], tmp_path / "out", readers=[reader_of(random_rows(0, 40))], overwrite=True).n_rows == 40
    with pytest.raises(KeyboardInterrupt):
        pack([path], tmp_path / "out", readers=[failing_reader(KeyboardInterrupt())], overwrite=True)
    assert PackedDataset(tmp_path / "out").n_rows == 40


def test_what_is_not_a_packed_folder_is_never_overwritten(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    with pytest.raises(ParameterError, match="not a packed folder"):
        pack([fake_file(tmp_path)], tmp_path / "home", readers=[reader_of(random_rows(0))], overwrite=True)
    assert (tmp_path / "home" / "thesis.tex").exists()


def test_too_little_memory_is_refused_and_what_is_enough_is_said(tmp_path):
    with pytest.raises(ParameterError, match=r"at least [\d.,]+ [MG]iB.*Got 1\.0 MiB"):
        pack([fake_file(tmp_path)], tmp_path / "out", memory=2**20, readers=[reader_of(random_rows(0))])
    assert not (tmp_path / "out").exists()


def test_no_rows(tmp_path):
    with pytest.raises(DataError, match="no rows"):
        pack([fake_file(tmp_path)], tmp_path / "out", readers=[reader_of(random_rows(0)[:0])])


def test_files_of_two_formats_are_refused(tmp_path):
    with pytest.raises(DataError, match="one format"):
        pack([svm(tmp_path, "1 1:1\n"), svm(tmp_path, "1 |a b\n", "b.vw")], tmp_path / "out")


def test_a_killed_pack_leaves_no_folder_and_the_next_one_cleans_up(tmp_path):
    svm(tmp_path, "1 1:1 2:0.5\n" * 400_000)
    code = f"from hogwild.data.packing.pack import pack; pack([{str(tmp_path / 'a.svm')!r}], {str(tmp_path / 'out')!r})"
    child = subprocess.Popen([sys.executable, "-c", code])
    while not list(tmp_path.glob(".out.partial-*/spilled/*")) and child.poll() is None:
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (tmp_path / "out").exists()
    left = list(tmp_path.glob(".out.*"))
    assert left
    pack([svm(tmp_path, "1 1:1\n", "b.svm")], tmp_path / "out")
    assert not any(path.exists() for path in left)
    assert sorted(os.listdir(tmp_path)) == ["a.svm", "b.svm", "out"]  # noqa: PTH208


MEASURED = """
import json, sys
import numpy as np
from hogwild.machine import resident_bytes
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.reader import Reader
from hogwild.data.csr import NO_WEIGHTS, CSRRows

TOTAL, PER_ROW, FEATURES = int(sys.argv[3]), 64, 5_000

def read(path, reading, piece_bytes):
    rng, left = np.random.default_rng(0), TOTAL
    while left > 0:
        n = max(1, min(left, piece_bytes) // (PER_ROW * 8))
        left -= n * PER_ROW * 8
        steps = rng.integers(1, FEATURES // PER_ROW, (n, PER_ROW), dtype=np.uint32)
        indices = np.cumsum(steps, axis=1, dtype=np.uint32).ravel()
        yield CSRRows(np.arange(n + 1, dtype=np.int64) * PER_ROW, indices, rng.random(n * PER_ROW, dtype=np.float32),
                   rng.integers(0, 2, n).astype(np.float64), NO_WEIGHTS, FEATURES, "sparse")

def peak():
    # Not getrusage: what it tells includes the process that started this one.
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0]) * 1024

memory = int(sys.argv[4])
told = []
pack([sys.argv[1]], sys.argv[2], memory=memory, readers=[Reader("fake", (".fake",), read)],
     progress=lambda *what: told.append(resident_bytes()))
packing = max(peak(), *told)
data = PackedDataset(sys.argv[2])
train, aside = data.split(0.1, seed=0)
frequencies = int(train.frequencies().sum())
visited = 0
for number in range(2):
    walk = train.epoch(0, number)
    for chunk in range(len(walk)):
        visited += int(np.count_nonzero(walk[chunk].rows.values >= 0))
        walk.done(chunk)
walk = aside.in_order()
for chunk in range(len(walk)):  # nobody says that these are done
    visited += int(np.count_nonzero(walk[chunk].rows.values >= 0))
print(json.dumps({"packing": packing, "walking": peak(), "bounded": data.bounded, "bytes": data.nonzeros * 8,
                  "same": visited == 2 * train.nonzeros + aside.nonzeros == 2 * frequencies + aside.nonzeros}))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measures resident memory as Linux counts it")
def test_data_four_times_larger_than_memory_is_packed_walked_and_trained_on_within_it(tmp_path, monkeypatch):
    memory, folder = 272 * 2**20, tmp_path / "out"
    arguments = [str(fake_file(tmp_path)), str(folder), str(4 * memory), str(memory)]
    done = subprocess.run([sys.executable, "-c", MEASURED, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bounded"]
    assert found["same"]
    assert found["bytes"] > 3.9 * memory
    assert found["packing"] <= memory, found
    assert found["walking"] <= memory, found
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "nothing compiled yet"))
    command = [sys.executable, "-m", "hogwild", "train", str(folder), "--memory", "272MiB", "--epochs", "2",
               "--workers", "2", "--holdout", "0.1", "--json"]  # fmt: skip
    for _ in ("compiling", "with compiled code on disk"):
        peak, printed = peak_of(command)
        trained = json.loads(printed)
        assert trained["epochs"] == 2
        assert trained["loss"] < np.log(2)
        assert peak <= memory, peak / 2**20


def peak_of(command):
    """The most memory a process had resident, as the kernel tells until its end, and what it printed."""
    process, peak = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), 0
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration):
            status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            peak = max(peak, 1024 * int(next(line for line in status if line.startswith("VmHWM")).split()[1]))
        time.sleep(0.01)
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    return peak, printed


def test_a_real_file_round_trips(tmp_path):
    path = Path(__file__).parents[2] / ".." / "shared" / "data" / "reuters.trn.svm.gz"
    if not path.exists():
        pytest.skip("no real data here")
    packed, memory = pack([path], tmp_path / "out"), hogwild.data.open(path)
    assert (packed.n_rows, packed.n_features) == (7_770, 8_315)
    rows = PackedDataset(tmp_path / "out")
    walk, other = rows.epoch(1, 2), memory.epoch(1, 2)
    for number in range(len(walk)):
        for name in ("labels", "features"):
            assert np.array_equal(getattr(walk[number].rows, name), getattr(other[number].rows, name))
        assert np.array_equal(walk[number].order, other[number].order)
    assert np.array_equal(rows.frequencies(), memory.frequencies())
