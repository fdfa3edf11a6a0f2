"""Containers that give little: 1 MiB of shared memory, a limit of memory or of processor time, nowhere to write.

They are made by namespaces and control groups, where the system lets this user make them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import MAIN, ended, leftovers, run

TRAIN = {
    "threads": (),
    "local": ("--strategy", "parameter-server", "--runtime", "local", "--workers", "2"),
    "ray": ("--strategy", "parameter-server", "--runtime", "ray", "--workers", "2"),
}
LITTLE_SHARED = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
LIMITED = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


def possible(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def within(*words: object, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command with words before it."""
    process = subprocess.Popen(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, env=env
    )
    return ended(process, 180.0)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    assert run("generate", "classification", folder / "a.svm", "--rows", "5k")[0] == 0
    assert run("generate", "rcv1", folder / "large.svm", "--rows", "100k")[0] == 0
    assert run("train", folder / "a.svm", "--epochs", "2", "--out", folder / "old.model")[0] == 0
    records = ("generate", "sparse-records", folder / "a.tfrecord", "--rows", "500", "--dense-size", "100000")
    assert run(*records, "--min-nnz", "5", "--max-nnz", "20")[0] == 0
    return folder


def ended_with_a_reason(code: int, err: str) -> None:
    assert code in (0, 1), err
    assert code == 0 or len([line for line in err.splitlines() if line.startswith("error: ")]) == 1, err


@pytest.mark.parametrize("name", [*TRAIN, "processes"])
def test_little_shared_memory(name: str, given: Path, tmp_path: Path) -> None:
    if not possible("unshare", "-m", "sh", "-c", LITTLE_SHARED, "sh", "true"):
        pytest.skip("this user may not mount file systems")
    network = (given / "a.tfrecord", "--problem", "sparse-mlp", "--workers", "2")
    words = network if name == "processes" else (given / "a.svm", *TRAIN[name])
    command = (*MAIN, "train", *words, "--epochs", "2", "--out", tmp_path / "model")
    code, _, err = within("unshare", "-m", "sh", "-c", LITTLE_SHARED, "sh", *command)
    ended_with_a_reason(code, err)
    assert (tmp_path / "model").exists() == (code == 0)
    assert leftovers(tmp_path) == []


@pytest.fixture
def limited() -> Iterator[tuple[Path, str]]:
    """A control group of this test, and the name of its limit."""
    for parent, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(parent, f"hogwild-{os.getpid()}")
        try:
            group.mkdir()
            (group / name).read_text()
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        yield group, name
        group.rmdir()
        return
    pytest.skip("this user may not make control groups")


@pytest.mark.parametrize("mebibytes", [200, 300, 400, 2000])
@pytest.mark.parametrize("command", ["train", "inspect", "pack", "predict"])
def test_a_limit_of_memory(
    command: str, mebibytes: int, given: Path, tmp_path: Path, limited: tuple[Path, str]
) -> None:
    group, name = limited
    (group / name).write_text(str(mebibytes * 2**20))
    rows, out = given / "large.svm", tmp_path / "out"
    words = {
        "train": ("train", rows, "--epochs", "1", "--out", out),
        "inspect": ("inspect", rows),
        "pack": ("pack", rows, out),
        "predict": ("predict", given / "old.model", rows, "--out", out),
    }[command]
    code, _, err = within("sh", "-c", LIMITED, group, *MAIN, *words)
    if command == "predict":  # The model has fewer features.
        assert code in (0, 1), err
    ended_with_a_reason(code, err)
    assert code == 0 or command == "predict" or "memory" in err, err
    assert mebibytes < 2000 or code == 0 or command == "predict", err


@pytest.mark.parametrize("workers", [1, 2])
def test_a_limit_of_processor_time_keeps_the_model(workers: int, given: Path, tmp_path: Path) -> None:
    # The signal comes after 8 seconds, and again each second until the process has ended, by force after 40.
    words = ("train", given / "large.svm", "--workers", workers, "--epochs", "100000", "--out", tmp_path / "model")
    code, _, err = within("sh", "-c", 'ulimit -S -t 8; ulimit -H -t 40; exec "$@"', "sh", *MAIN, *words)
    assert code == 128 + signal.SIGXCPU, err
    assert "Traceback" not in err
    assert run("predict", tmp_path / "model", given / "large.svm", "--out", tmp_path / "scores")[0] == 0


@pytest.mark.parametrize("command", ["train", "predict", "inspect", "pack", "doctor"])
def test_a_user_who_may_write_nowhere(command: str, given: Path, tmp_path: Path) -> None:
    as_user = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
    if not possible(*as_user, "true"):
        pytest.skip("this user may not make namespaces")
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    shutil.copytree(given, tmp_path / "given", copy_function=shutil.copy)
    home.chmod(0o555)
    rows = tmp_path / "given" / "a.svm"
    words: dict[str, tuple[object, ...]] = {
        "train": ("train", rows, "--epochs", "1", "--out", out),
        "predict": ("predict", tmp_path / "given" / "old.model", rows, "--out", out),
        "inspect": ("inspect", rows),
        "pack": ("pack", rows, out),
        "doctor": ("doctor",),
    }
    environment = {
        **os.environ, "HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home / "cache"),
        "NUMBA_CACHE_DIR": "",
    }  # fmt: skip
    code, told, err = within(*as_user, *MAIN, *words[command], env=environment)
    ended_with_a_reason(code, err)
    assert code == 0, told + err
    assert list(home.iterdir()) == []
    home.chmod(0o755)
