"""One run writes to a folder of checkpoints at a time; others are told who does."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from hogwild import Linear, minimise
from hogwild.cli import main
from hogwild.errors import CheckpointError, ParameterError
from hogwild.folder_lock import LOCK, folder_lock

HOLD = (
    "import sys, time; from pathlib import Path; from hogwild.folder_lock import folder_lock\n"
    "with folder_lock(Path(sys.argv[1])):\n"
    "    print('held', flush=True)\n"
    "    time.sleep(600)\n"
)


class Held:
    """A process that holds the lock of a folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"held\n"

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def held(tmp_path: Path) -> Any:
    found = Held(tmp_path / "points")
    yield found
    found.kill()


def rows() -> Linear:
    X = np.random.default_rng(0).standard_normal((50, 3))
    return Linear((X, (X[:, 0] > 0).astype(float)))


def test_another_process_is_named(held: Held, tmp_path: Path) -> None:
    whom = re.escape(f"process {held.process.pid} on {socket.gethostname()}, since 20")
    with pytest.raises(CheckpointError, match=rf"points: another run writes to this folder \({whom}"):
        minimise(rows(), budget=1, checkpoint=tmp_path / "points")
    assert [path.name for path in (tmp_path / "points").iterdir()] == [LOCK]


def test_a_command_tells_it_before_it_reads_anything(
    held: Held, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(tmp_path / "missing.svm"), "--checkpoint", str(tmp_path / "points")]) == 1
    assert "another run writes to this folder (process" in capsys.readouterr().err


def test_the_lock_of_a_killed_process_is_free(held: Held, tmp_path: Path) -> None:
    held.kill()
    assert (tmp_path / "points" / LOCK).exists()
    assert minimise(rows(), budget=1, checkpoint=tmp_path / "points").stop_reason == "epochs"
    assert [path.name for path in (tmp_path / "points").iterdir()] == ["latest.safetensors"]


def test_a_child_that_outlives_its_parent_is_waited_for(tmp_path: Path) -> None:
    """A copy of the holder has the lock too, until it ends a moment after it."""
    code = HOLD.replace(
        "    time.sleep(600)", "    import os; os.fork() or (time.sleep(1.0), os._exit(0))\n    time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    time.sleep(0.2)
    process.kill()
    process.wait()
    with folder_lock(tmp_path):
        pass
    process.stdout.close()


def test_another_thread_does_not_get_it(tmp_path: Path) -> None:
    found: list[BaseException] = []

    def take() -> None:
        try:
            with folder_lock(tmp_path):
                pass
        except CheckpointError as error:
            found.append(error)

    with folder_lock(tmp_path):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join(20)
    assert f"process {os.getpid()}" in str(found[0])
    take()
    assert len(found) == 1


def test_of_many_at_once_one_has_it(tmp_path: Path) -> None:
    """Holders that remove the file of the lock do not let two others in."""
    inside, most, taken = [0], [0], [0]

    def take() -> None:
        for _ in range(200):
            try:
                with folder_lock(tmp_path / "points"):
                    inside[0] += 1
                    most[0], taken[0] = max(most[0], inside[0]), taken[0] + 1
                    inside[0] -= 1
            except CheckpointError:
                continue

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1]
    assert taken[0] > 10


@pytest.mark.parametrize(
    ("change", "is_held"),
    [
        ({}, True),
        ({"pid": 2**22 + 5}, False),
        ({"started": "another boot 5"}, False),
        ({"host": "elsewhere", "pid": 2**22 + 5}, True),
    ],
)
def test_where_the_disk_has_no_locks_the_file_decides(
    change: dict[str, Any], is_held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with folder_lock(tmp_path):
        said = json.loads((tmp_path / LOCK).read_text())
    (tmp_path / LOCK).write_text(json.dumps(said | change))
    if is_held:
        with pytest.raises(CheckpointError, match="another run writes"), folder_lock(tmp_path):
            pass
    else:
        with folder_lock(tmp_path):
            pass


def test_a_clock_that_is_set_frees_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system counts the starts of processes back from the time of day: the holder counted as gone."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with folder_lock(tmp_path):
        created = psutil.Process().create_time()
        monkeypatch.setattr(psutil.Process, "create_time", lambda self: created - 7200.0)
        monkeypatch.setattr(time, "time", lambda: 0.0)
        with pytest.raises(CheckpointError, match="another run writes"), folder_lock(tmp_path):
            pass


def test_a_folder_that_stays_empty_goes_and_others_stay(tmp_path: Path) -> None:
    with folder_lock(tmp_path / "new"):
        pass
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    with folder_lock(tmp_path / "old"):
        pass
    assert (tmp_path / "old").exists()


def test_outputs_of_a_run_are_tried_before_the_data_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "closed").mkdir()
    for option, name in [
        ("--checkpoint", "file"), ("--checkpoint", "file/points"), ("--resume", "file"), ("--folder", "file"),
        ("--tensorboard", "file/board"), ("--log", "file/log"), ("--log", "closed"),
    ]:  # fmt: skip
        assert main(["train", str(tmp_path / "missing.svm"), option, str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert "missing.svm" not in error
        assert str(tmp_path / name.split("/")[0]) in error
        assert len(error.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(ParameterError, match="nothing can be written"), folder_lock(tmp_path):
        pass


def test_an_interrupted_command_frees_the_folder(tmp_path: Path) -> None:
    process = Held(tmp_path / "points").process
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert not (tmp_path / "points").exists()
