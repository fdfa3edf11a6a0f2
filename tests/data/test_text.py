"""Text files in segments of whole lines, from plain files, archives and pipes."""

import bz2
import gzip
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from hogwild.data.readers import line_segments
from hogwild.data.readers.line_segments import Segment, excerpt, newlines, place, segments, split
from hogwild.errors import DataError, MissingExtraError

LINES = b"".join(b"%d %d:1\n" % (i % 2, i) * (1 + i % 3) for i in range(1, 3000))
PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd.compress}
PACKED = [(pack, ending) for ending, pack in PACKERS.items() if ending]


def joined(found: list[Segment]) -> bytes:
    return b"".join(segment.bytes.tobytes() for segment in found)


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_segments_are_whole_lines_in_order(tmp_path: Path, ending: str, size: int) -> None:
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(PACKERS[ending](LINES))
    found, line = [], 1
    for segment in segments(path, size):
        assert segment.first_line == line
        assert segment.bytes[-1] == line_segments.NEWLINE
        line += newlines(segment.bytes)
        found.append(segment)
    assert joined(found) == LINES


@pytest.mark.parametrize("ending", PACKERS)
def test_a_last_line_without_newline_gets_one(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(PACKERS[ending](b"1 1:1\n0 2:1"))
    for size in (3, 100):
        assert joined(list(segments(path, size))) == b"1 1:1\n0 2:1\n"


@pytest.mark.parametrize("ending", PACKERS)
def test_a_line_longer_than_a_segment_stays_whole(tmp_path: Path, ending: str) -> None:
    path, long = tmp_path / f"a.txt{ending}", b"x" * 2_000_000
    path.write_bytes(PACKERS[ending](b"1\n" + long + b"\n2\n" + long))
    found = list(segments(path, 1000))
    assert joined(found) == b"1\n" + long + b"\n2\n" + long + b"\n"
    assert all(segment.bytes[-1] == line_segments.NEWLINE for segment in found)


@pytest.mark.parametrize(("pack", "ending"), PACKED)
def test_archives_of_several_members(tmp_path: Path, pack, ending: str) -> None:
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(pack(b"1\n2") + pack(b"") + pack(b"3\n4\n"))
    assert joined(list(segments(path, 2))) == b"1\n23\n4\n"


def test_an_archive_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(b"1\n"))
    assert joined(list(segments(path, 10))) == b"1\n"


def test_a_frame_that_needs_a_gigabyte_is_refused(tmp_path: Path) -> None:
    """The header of a frame of Zstandard may ask for a window of any size, which has to be allocated."""
    path = tmp_path / "a.txt.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([(30 - 10) << 3]) + b"\x19\x00\x00" + b"1\n2")
    assert "damaged" in refused(path)


def test_frames_to_skip_are_skipped(tmp_path: Path) -> None:
    """The parallel tools write them."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + zstd.compress(b"1\n"))
    assert joined(list(segments(path, 10))) == b"1\n"


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt.zst"
    path.write_bytes(zstd.compress(b"1\n"))
    monkeypatch.setitem(sys.modules, "backports", None)
    with pytest.raises(MissingExtraError, match=r"hogwild\[zstd\]"):
        list(segments(path, 10))


def test_a_pipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"1\n2\n3",))
    writer.start()
    found = list(segments(path, 2))
    writer.join()
    assert joined(found) == b"1\n2\n3\n"


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        list(segments(path, 100))
    assert str(path) in str(caught.value)
    assert caught.value.remedy
    return str(caught.value)


def test_what_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no such file" in refused(tmp_path / "missing.svm")
    assert "folder" in refused(tmp_path)
    empty = tmp_path / "empty.svm"
    empty.write_bytes(b"")
    assert "is empty" in refused(empty)

    def forbid(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbid)
    assert "may not be read" in refused(empty)


@pytest.mark.parametrize(("pack", "ending"), PACKED)
def test_bad_archives_are_refused(tmp_path: Path, pack, ending: str) -> None:
    path, whole = tmp_path / f"a.txt{ending}", pack(LINES)
    for cut in (1, 8, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert any(word in refused(path) for word in ("truncated", "not gzip", "not bzip2", "not Zstandard"))
    path.write_bytes(pack(b""))
    assert "is empty" in refused(path)
    path.write_bytes(b"")
    assert "is empty" in refused(path)
    path.write_bytes(LINES)
    assert "although its name ends in" in refused(path)
    path.write_bytes(whole + b"rubbish")
    assert "damaged" in refused(path)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(20) + whole[middle + 20 :])
    assert "damaged" in refused(path)


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), min_size=1), st.integers(1, 9))
def test_split_keeps_lines_whole(lines: list[bytes], parts: int) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    stretches = split(Segment(np.frombuffer(whole, np.uint8), 1), parts)
    assert len(stretches) <= parts
    assert b"".join(whole[start:stop] for start, stop in stretches) == whole
    assert all(whole[stop - 1 : stop] == b"\n" for _, stop in stretches)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=9), min_size=1))
def test_place_counts_lines_and_characters(lines: list[str]) -> None:
    segment = Segment(np.frombuffer("".join(line + "\n" for line in lines).encode(), np.uint8), first_line=4)
    offset = 0
    for number, line in enumerate(lines, start=4):
        assert place(segment, offset) == (number, 1)
        offset += len(line.encode())
        assert place(segment, offset) == (number, len(line) + 1)
        offset += 1


def test_an_excerpt_is_short_and_printable() -> None:
    segment = Segment(np.frombuffer(b"\xff\0" + b"a" * 100 + b"\n", np.uint8), 1)
    assert excerpt(segment, 0, 102).isprintable()
    assert len(excerpt(segment, 0, 102)) < 60


def test_pages_that_were_passed_leave_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes(b"12345 1:1\n" * 3_000_000)
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("resident pages are counted on Linux only")
    most = 0
    for segment in segments(path, 1 << 20):
        assert newlines(segment.bytes)
        smaps = Path("/proc/self/smaps").read_text().split(str(path))[1]
        most = max(most, int(smaps.split("Rss:")[1].split()[0]))
    assert most < 10_000  # kB, of 30,000; the system maps pages in runs of up to 2,048
