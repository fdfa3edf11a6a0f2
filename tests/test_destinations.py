"""Output goes through links, into devices and pipes, and never changes what kind of thing has a name."""

import errno
import io
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from hogwild import destination
from hogwild.callbacks import JsonLines
from hogwild.cli import main
from hogwild.errors import LogWarning, ParameterError
from hogwild.files import appending, check_writable, new_folder, replacing, write_file


def kind(path):
    return stat.S_IFMT(os.lstat(path).st_mode)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def reading(pipe):
    """Start a thread that reads a named pipe to its end; its content is in the list afterwards."""
    found = []
    thread = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    thread.start()
    return thread, found


def null_device(path):
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        path.write_bytes(b"tried")
    except PermissionError:
        pytest.skip("only root may make a device, on a file system that allows devices")


def test_a_link_is_written_through_to_its_target(tmp_path):
    target, link = tmp_path / "real" / "model", tmp_path / "link"
    target.parent.mkdir()
    target.write_bytes(b"old")
    target.chmod(0o640)
    (tmp_path / "middle").symlink_to("real/model")
    link.symlink_to("middle")
    write_file(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert names(target.parent) == ["model"]
    assert names(tmp_path) == ["link", "middle", "real"]


def test_a_dangling_link_gets_a_target(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("later")
    write_file(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "later").read_bytes() == b"new"
    with appending(link) as file:
        file.write("er")
    assert (tmp_path / "later").read_bytes() == b"newer"


def test_a_device_stays_one(tmp_path):
    device = tmp_path / "null"
    null_device(device)
    for write in (write_file, lambda path, content: appending(path).close()):
        write(device, b"all of it")
        assert kind(device) == stat.S_IFCHR
    assert names(tmp_path) == ["null"]


def test_an_archive_of_arrays_goes_into_a_device():
    """A device that is always at its beginning would mislead the writer of the archive."""
    with replacing("/dev/null") as file:
        np.savez(file, a=np.arange(5))
        assert not file.seekable()


def test_a_pipe_gets_all_bytes_and_stays_one(tmp_path):
    pipe, content = tmp_path / "pipe", os.urandom(300_000)
    os.mkfifo(pipe)
    thread, found = reading(pipe)
    write_file(pipe, content)
    thread.join(20)
    assert found == [content]
    assert kind(pipe) == stat.S_IFIFO
    assert names(tmp_path) == ["pipe"]


def test_arrays_go_through_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    thread, found = reading(tmp_path / "pipe")
    with replacing(tmp_path / "pipe") as file:
        np.savez(file, a=np.arange(5))
    thread.join(20)
    assert np.load(io.BytesIO(found[0]))["a"].tolist() == [0, 1, 2, 3, 4]


def test_a_pipe_that_nobody_reads_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(destination, "READER_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pipe")
    check_writable(tmp_path / "pipe")
    with pytest.raises(ParameterError, match=r"pipe: no program has opened this pipe for reading within"):
        write_file(tmp_path / "pipe", b"lost")
    assert kind(tmp_path / "pipe") == stat.S_IFIFO


def test_a_pipe_whose_reader_leaves_is_named(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = JsonLines(pipe)
    os.close(reader)
    with pytest.warns(LogWarning, match=r"pipe: Broken pipe. The log ends here"):
        log({"event": "epoch"})
    with pytest.raises(BrokenPipeError) as raised:
        log.close()
    assert raised.value.filename == str(pipe)


@pytest.mark.parametrize("made", ["folder", "socket", "link to a folder"])
def test_what_is_no_file_is_refused_and_stays(tmp_path, made):
    path, bound = tmp_path / "there", socket.socket(socket.AF_UNIX)
    with bound:
        if made == "folder":
            path.mkdir()
        elif made == "socket":
            bound.bind(str(path))
        else:
            (tmp_path / "folder").mkdir()
            path.symlink_to("folder")
        before = kind(path)
        for write in (check_writable, appending, lambda path: write_file(path, b"new")):
            with pytest.raises(ParameterError, match=r"there: this is a (folder|socket)"):
                write(path)
        assert kind(path) == before
        assert not list(tmp_path.glob(".*"))


def test_links_that_go_round_are_named(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "a"))):
        write_file(tmp_path / "a", b"")
    with pytest.raises(ParameterError, match=r"a: it cannot be written"):
        check_writable(tmp_path / "a")


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("m" * 255)
    check_writable(path)
    write_file(path, b"new")
    assert names(tmp_path) == [path.name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_device_is_named():
    log = JsonLines("/dev/full")
    with pytest.warns(LogWarning, match="/dev/full: No space left on device. The log ends here"):
        log({"event": "epoch"})
    log({"event": "epoch"})  # Nothing is written, and nothing is said again.
    for write in (lambda: write_file("/dev/full", b"new"), log.close):
        with pytest.raises(OSError, match="/dev/full") as raised:
            write()
        assert raised.value.errno == errno.ENOSPC


def test_a_folder_is_written_through_a_link_and_never_over_a_file(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("old")
    with new_folder(tmp_path / "link", overwrite=True) as folder:
        (folder / "a").write_text("a")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "real") == ["a"]
    with (
        pytest.raises(ParameterError, match="file: this is not a folder"),
        new_folder(tmp_path / "file", overwrite=True),
    ):
        pass
    assert (tmp_path / "file").read_text() == "old"


WRITE = "import sys; from hogwild.files import write_file; print('before'); write_file(sys.argv[1], b'all')"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("file", [True, False])
def test_standard_output_is_written_to_as_it_is(tmp_path, name, file):
    if not Path(name).exists():
        pytest.skip(f"there is no {name}")
    command = [sys.executable, "-c", WRITE, name]
    if not file:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60)
        assert done.stdout == b"before\nall"
        return
    with (tmp_path / "out").open("wb") as out:  # as with > out in a shell: more is written to it afterwards
        out.write(b"earlier\n")
        out.flush()
        subprocess.run(command, check=True, stdout=out, timeout=60)
        out.write(b" later")
    assert (tmp_path / "out").read_bytes() == b"earlier\nbefore\nall later"


def test_commands_write_into_pipes_and_through_links(tmp_path, capsys):
    os.mkfifo(tmp_path / "rows.svm")
    thread, found = reading(tmp_path / "rows.svm")
    assert main(["generate", "classification", str(tmp_path / "rows.svm"), "--rows", "50"]) == 0
    thread.join(20)
    data, link, pipe = tmp_path / "data.svm", tmp_path / "link", tmp_path / "pipe"
    data.write_bytes(found[0])
    link.symlink_to("model")
    assert main(["train", str(data), "--epochs", "1", "--workers", "1", "--out", str(link)]) == 0
    assert link.is_symlink()
    os.mkfifo(pipe)
    thread, found = reading(pipe)
    assert main(["predict", str(link), str(data), "--out", str(pipe)]) == 0
    thread.join(20)
    assert len(found[0].splitlines()) == 50
    assert kind(pipe) == kind(tmp_path / "rows.svm") == stat.S_IFIFO
    capsys.readouterr()
    assert main(["predict", str(link), str(data), "--out", "/dev/full"]) == 1
    assert capsys.readouterr().err.splitlines() == ["error: /dev/full: No space left on device"]
