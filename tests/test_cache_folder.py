"""The folder of cached machine code: one that can be written, and that no other user can write to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hogwild import cache_folder

ROOT = Path(__file__).parents[1]
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")

TWICE = """
from hogwild.jit import compiled


@compiled
def twice(x):
    return 2 * x
"""

# Numba's list of cached machine code is a pickle: this one writes a file when it is read.
ATTACK = """
import pathlib, pickle, sys, numba
from hogwild.kernel_cache import KernelCache
sys.path.insert(0, sys.argv[1])
import own

class Payload:
    def __reduce__(self):
        return pathlib.Path.touch, (pathlib.Path(sys.argv[2]),)

cache = KernelCache(own.twice.py_func, lambda function: "stamp")
index = pathlib.Path(cache._cache_file._index_path)
index.write_bytes(pickle.dumps(cache._cache_file._version, protocol=-1) + pickle.dumps(Payload()))
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A module with a compiled function, in a folder of its own."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "own.py").write_text(TWICE)
    return folder


def test_the_folder_of_the_user_is_taken(tmp_path: Path, source: Path) -> None:
    chosen = cache_folder._chosen(str(source), str(tmp_path / "given"), str(tmp_path))
    assert chosen.path is not None
    assert chosen.path.parent == tmp_path / "given"
    assert chosen.usual
    assert not chosen.refused


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o773])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, source: Path, mode: int) -> None:
    given = tmp_path / "given"
    first = cache_folder._chosen.__wrapped__(str(source), str(given), str(tmp_path)).path
    assert first is not None
    assert first.parent == given
    first.chmod(mode)
    chosen = cache_folder._chosen.__wrapped__(str(source), str(given), str(tmp_path))
    assert chosen.path == source / "__pycache__"
    assert chosen.refused == (f"{first} can be written by other users",)


def test_a_folder_that_others_can_replace_is_refused(tmp_path: Path, source: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert cache_folder._chosen(str(source), str(shared / "a"), str(tmp_path)).path == source / "__pycache__"
    shared.chmod(0o1777)  # as /tmp: entries of others cannot be renamed
    chosen = cache_folder._chosen(str(source), str(shared / "b"), str(tmp_path)).path
    assert chosen is not None
    assert chosen.parent == shared / "b"


@as_root
def test_a_folder_of_another_user_is_refused(tmp_path: Path, source: Path) -> None:
    given = tmp_path / "given"
    given.mkdir(mode=0o755)
    os.chown(given, 12345, 12345)
    chosen = cache_folder._chosen(str(source), str(given), str(tmp_path))
    assert chosen.path == source / "__pycache__"
    assert "can be written by other users" in chosen.refused[0]


def test_the_folder_beside_the_source_may_be_as_open_as_the_source(tmp_path: Path, source: Path) -> None:
    beside = source / "__pycache__"
    beside.mkdir()
    source.chmod(0o777)
    beside.chmod(0o777)
    assert cache_folder._chosen.__wrapped__(str(source), "", str(tmp_path)).path == beside
    source.chmod(0o755)
    assert cache_folder._chosen.__wrapped__(str(source), "", str(tmp_path)).path != beside


@pytest.fixture
def nothing_usual(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    """Let every usual folder be one that cannot be written."""
    (source / "__pycache__").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(source / "own.py"))


def test_a_private_temporary_folder_comes_last(tmp_path: Path, source: Path, nothing_usual: None) -> None:
    chosen = cache_folder._chosen(str(source), "", str(tmp_path))
    assert chosen.path is not None
    assert chosen.path.parent == tmp_path / f"hogwild-kernels-{os.getuid()}"
    assert chosen.path.parent.stat().st_mode & 0o777 == 0o700
    assert not chosen.usual
    assert str(chosen.path.parent) in chosen.explain()
    assert len(chosen.refused) == 2


@pytest.mark.parametrize("kind", ["link", "open", pytest.param("of another", marks=as_root)])
def test_a_temporary_folder_that_was_laid_out_is_refused(
    tmp_path: Path, source: Path, nothing_usual: None, kind: str
) -> None:
    taken, elsewhere = tmp_path / f"hogwild-kernels-{os.getuid()}", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        taken.symlink_to(elsewhere)
    else:
        taken.mkdir()
        taken.chmod(0o777 if kind == "open" else 0o755)
    if kind == "of another":
        os.chown(taken, 12345, 12345)
    chosen = cache_folder._chosen(str(source), "", str(tmp_path))
    assert chosen.path is None
    assert "every start compiles anew" in chosen.explain()
    assert not list(elsewhere.iterdir())


def without_power(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program for which permissions of files hold; root is freed from them otherwise."""
    if os.getuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("setpriv is not installed")
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    with_source = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=with_source)


@pytest.mark.parametrize("temporary", [True, False])
def test_a_function_runs_where_nothing_can_be_written(tmp_path: Path, source: Path, temporary: bool) -> None:
    home, place = tmp_path / "home", tmp_path / "temporary"
    home.mkdir(mode=0o555)
    place.mkdir(mode=0o700)
    source.chmod(0o555)
    if not temporary:
        (place / f"hogwild-kernels-{os.getuid()}").write_text("taken")
    code = f"import sys; sys.path.insert(0, {str(source)!r}); import own; print(own.twice(3), own.twice(4.0))"
    where = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(place), "NUMBA_CACHE_DIR": ""}
    first, second = (without_power([sys.executable, "-c", code], **where) for _ in range(2))
    assert (first.returncode, first.stdout) == (0, "6 8.0\n"), first.stderr
    assert (second.returncode, second.stdout) == (0, "6 8.0\n"), second.stderr
    assert first.stderr.count("\n") == 1
    assert first.stderr.startswith("hogwild: Compiled code ")
    assert second.stderr == ("" if temporary else first.stderr)  # with a folder, nothing is compiled again


def test_code_is_read_from_a_folder_beside_the_source_that_cannot_be_written(tmp_path: Path, source: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(source)!r}); import own; print(own.twice(3)); print(own.twice.stats)"
    where = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    built = without_power([sys.executable, "-c", code], **where)
    assert built.returncode == 0, built.stderr
    (source / "__pycache__").chmod(0o555)
    ran = without_power([sys.executable, "-c", code], **where)
    assert ran.returncode == 0, ran.stderr
    assert "cache_misses=Counter()" in ran.stdout


@pytest.mark.parametrize("open_to_others", [False, True])
def test_no_code_is_loaded_from_a_folder_that_others_can_write(
    tmp_path: Path, source: Path, open_to_others: bool
) -> None:
    given, mark = tmp_path / "given", tmp_path / "mark"
    where = {"NUMBA_CACHE_DIR": str(given)}
    laid = without_power([sys.executable, "-c", ATTACK, str(source), str(mark)], **where)
    assert laid.returncode == 0, laid.stderr
    assert not mark.exists()
    if open_to_others:
        next(given.iterdir()).chmod(0o777)
    code = f"import sys; sys.path.insert(0, {str(source)!r}); import own; print(own.twice(3))"
    ran = without_power([sys.executable, "-c", code], **where)
    assert (ran.returncode, ran.stdout) == (0, "6\n"), ran.stderr
    assert mark.exists() != open_to_others  # the attack works where the folder is trusted: this test can fail
