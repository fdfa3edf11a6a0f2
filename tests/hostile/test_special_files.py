"""Every option that writes a file, with everything that can have the name of a file: nothing changes its kind."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from hogwild.cli import main

ROWS = "1 1:1\n-1 2:1\n" * 20
FAST = ("--epochs", "1", "--workers", "1", "--step", "0.1")
WRITERS: dict[str, Callable[[Path, Path], list[object]]] = {
    "train --out": lambda given, x: ["train", given / "a.svm", *FAST, "--out", x],
    "train --log": lambda given, x: ["train", given / "a.svm", *FAST, "--log", x],
    "train --save-config": lambda given, x: ["train", given / "a.svm", *FAST, "--save-config", x],
    "train --record": lambda given, x: [
        "train", given / "a.svm", *FAST, "--strategy", "parameter-server", "--runtime", "local", "--record", x,
    ],
    "predict --out": lambda given, x: ["predict", given / "model", given / "a.svm", "--out", x],
    "generate": lambda given, x: ["generate", "classification", x, "--rows", "20", "--overwrite"],
    "generate --weights": lambda given, x: [
        "generate", "classification", given / "new.svm", "--rows", "20", "--weights", x, "--overwrite",
    ],
    "generate ratings": lambda given, x: ["generate", "ratings", x, "--rows", "20", "--overwrite"],
    "generate records": lambda given, x: ["generate", "sparse-records", x, "--rows", "20", "--overwrite"],
    "report --out": lambda given, x: ["report", given / "log.jsonl", "--out", x],
}  # fmt: skip
ENDINGS = {"generate": ".svm", "generate ratings": ".csv", "generate records": ".tfrecord"}
WRITTEN = ("file", "link", "chain", "dangling link", "device", "pipe", "long name")
REFUSED = (
    "folder",
    "link to a folder",
    "socket",
    "loop",
    "missing folder",
    "link to a missing folder",
    "within a file",
)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    (folder / "a.svm").write_text(ROWS)
    train = ["train", str(folder / "a.svm"), *FAST, "--out", str(folder / "model"), "--log", str(folder / "log.jsonl")]
    assert main(train) == 0
    return folder


def make(kind: str, x: Path, stack: ExitStack) -> Path:
    """Make something that has a name, and return the file that is written in the end."""
    target = x.parent / "target"
    if kind == "file":
        x.write_text("old")
    elif kind in ("link", "chain"):
        target.write_text("old")
        (x.parent / "middle").symlink_to("target")
        x.symlink_to("target" if kind == "link" else "middle")
    elif kind == "dangling link":
        x.symlink_to("target")
    elif kind == "device":
        os.mknod(x, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    elif kind == "pipe":
        os.mkfifo(x)
    elif kind in ("folder", "link to a folder"):
        (target if "link" in kind else x).mkdir()
        if "link" in kind:
            x.symlink_to("target")
    elif kind == "socket":
        stack.enter_context(socket.socket(socket.AF_UNIX)).bind(str(x))
    elif kind == "loop":
        x.symlink_to(x.name)
    elif kind == "link to a missing folder":
        x.symlink_to("none/target")
    return target if target.exists() or kind == "dangling link" else x


def place(kind: str, writer: str, folder: Path) -> Path:
    ending = ENDINGS.get(writer, "")
    if kind == "missing folder":
        return folder / "none" / f"x{ending}"
    if kind == "within a file":
        (folder / "file").write_text("a file")
        return folder / "file" / f"x{ending}"
    return folder / (("x" * (255 - len(ending)) if kind == "long name" else "x") + ending)


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("writer", WRITERS)
def test_written(writer: str, kind: str, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = place(kind, writer, tmp_path)
    with ExitStack() as stack:
        try:
            target = make(kind, x, stack)
        except PermissionError:
            pytest.skip("only root may make a device")
        before = stat.S_IFMT(os.lstat(x).st_mode) if os.path.lexists(x) else stat.S_IFREG
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.append(x.read_bytes()), daemon=True)
        if kind == "pipe":
            reader.start()
        code = main([str(word) for word in WRITERS[writer](given, x)])
        error = capsys.readouterr().err
        assert code == 0, error
        assert stat.S_IFMT(os.lstat(x).st_mode) == before
        if kind == "pipe":
            reader.join(30)
            assert len(found[0]) > 10
        elif kind != "device":
            assert target.stat().st_size > 10
        assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("writer", WRITERS)
def test_refused(writer: str, kind: str, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = place(kind, writer, tmp_path)
    if writer == "train --log" and "missing folder" in kind:
        pytest.skip("the folder of a log is made")
    with ExitStack() as stack:
        make(kind, x, stack)
        before = sorted((path.name, stat.S_IFMT(path.lstat().st_mode)) for path in tmp_path.rglob("*"))
        assert main([str(word) for word in WRITERS[writer](given, x)]) == 2
        error = capsys.readouterr().err
        assert len([line for line in error.splitlines() if line.startswith("error: ")]) == 1, error
        assert str(tmp_path) in error
        assert sorted((path.name, stat.S_IFMT(path.lstat().st_mode)) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("writer", [writer for writer in WRITERS if writer not in ENDINGS])
def test_a_full_device(writer: str, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    assert main([str(word) for word in WRITERS[writer](given, Path("/dev/full"))]) == 1
    error = capsys.readouterr().err
    assert "error: /dev/full: No space left on device" in error
    assert "Traceback" not in error
    assert stat.S_ISCHR(os.lstat("/dev/full").st_mode)
