import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hogwild.errors import ParameterError
from hogwild.files import clear_leftovers, format_size, new_folder, parse_size, replacing, write_file


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512MB", 512 * 10**6),
        ("512 mib", 512 * 2**20),
        (" 1.5G ", 3 * 2**29),
        ("2k", 2048),
        ("3TB", 3 * 10**12),
    ],
)
def test_sizes_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1.5.2G", "12 parsecs", "1e9", "nan", "0x10"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ParameterError, match="must be a number of bytes"):
        parse_size(text)


@given(st.integers(0, 2**53))
def test_whole_numbers_of_bytes_are_exact(size):
    assert parse_size(str(size)) == parse_size(size) == size
    assert format_size(size)


def names(folder):
    return [path.name for path in folder.iterdir()]


def fails_midway(context, error):
    with context as place:
        place.write(b"ne") if hasattr(place, "write") else (place / "a").write_text("a")
        raise error


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, b"old")
    with pytest.raises(ZeroDivisionError):
        fails_midway(replacing(path), ZeroDivisionError)
    assert path.read_bytes() == b"old"
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_appears_only_when_it_is_complete(tmp_path):
    dest = tmp_path / "made"
    with pytest.raises(KeyboardInterrupt):
        fails_midway(new_folder(dest), KeyboardInterrupt)
    assert names(tmp_path) == []
    with new_folder(dest) as folder:
        (folder / "a").write_text("a")
        assert not dest.exists()
    assert (dest / "a").read_text() == "a"


def test_an_existing_folder_is_overwritten_only_on_request(tmp_path):
    dest = tmp_path / "made"
    dest.mkdir()
    (dest / "old").write_text("old")
    with pytest.raises(ParameterError, match="exists already"), new_folder(dest):
        pytest.fail("the block must not run")
    with pytest.raises(ZeroDivisionError), new_folder(dest, overwrite=True):
        raise ZeroDivisionError
    assert names(dest) == ["old"]
    with new_folder(dest, overwrite=True) as folder:
        (folder / "new").write_text("new")
    assert names(dest) == ["new"]
    assert names(tmp_path) == ["made"]


def _dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_left_overs_of_the_dead_are_cleared_and_those_of_the_living_kept(tmp_path):
    dest = tmp_path / "made"
    dead = tmp_path / f".made.partial-{_dead_process()}-abc123"
    living = tmp_path / f".made.partial-{os.getppid()}-abc123"
    earlier = tmp_path / f".made.partial-{os.getpid()}-abc123"  # the same number, as after a container restarts
    for folder in (dead, living, earlier):
        folder.mkdir()
        (folder / "a").write_text("a")
    clear_leftovers(dest)
    assert living.exists()
    assert not dead.exists()
    assert not earlier.exists()


def test_a_folder_that_was_moved_aside_comes_back(tmp_path):
    aside = tmp_path / f".made.replaced-{_dead_process()}-abc123"
    aside.mkdir()
    (aside / "a").write_text("a")
    clear_leftovers(tmp_path / "made")
    assert (tmp_path / "made" / "a").read_text() == "a"
