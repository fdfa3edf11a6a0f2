"""Signals at random moments: each command ends with the right code, whole files and nothing left behind.

``HOGWILD_HOSTILE`` is the number of moments per command; ``HOGWILD_SEED`` repeats them.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from commands import ended, leftovers, run, start, wait_for_handlers

from hogwild import load

MOMENTS = int(os.environ.get("HOGWILD_HOSTILE", "2"))
SEED = int(os.environ.get("HOGWILD_SEED", str(random.SystemRandom().randrange(10**6))))
GRACE_SECONDS = 30.0  # between SIGTERM and SIGKILL, as Kubernetes waits

TRAIN = {
    "threads": (),
    "serial": ("--strategy", "serial"),
    "averaging": ("--strategy", "averaging"),
    "auto penalty": ("--l2", "auto", "--holdout", "0.1"),
    "local": ("--strategy", "parameter-server", "--runtime", "local", "--workers", "2"),
    "simulator": ("--strategy", "parameter-server", "--runtime", "simulator", "--workers", "2"),
    "ray": ("--strategy", "parameter-server", "--runtime", "ray", "--workers", "2"),
}
SECONDS = {
    "ray": 12.0,
    "processes": 12.0,
    "compare": 10.0,
    "lab": 10.0,
}  # of a command, in which a signal comes; else 3


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    assert run("generate", "classification", folder / "a.svm", "--rows", "5k")[0] == 0
    assert run("train", folder / "a.svm", "--epochs", "2", "--out", folder / "old.model")[0] == 0
    records = ("generate", "sparse-records", folder / "a.tfrecord", "--rows", "500", "--dense-size", "1000")
    assert run(*records, "--min-nnz", "5", "--max-nnz", "20")[0] == 0
    return folder


def commands(given: Path, folder: Path) -> dict[str, tuple[object, ...]]:
    rows, model, endless = given / "a.svm", folder / "model", ("--epochs", "1000000", "--step", "0.1")
    kept = ("--out", model, "--checkpoint", folder / "points", "--log", folder / "log", "--json")
    more: dict[str, tuple[object, ...]] = {
        f"train {name}": ("train", rows, *options, *endless, *kept) for name, options in TRAIN.items()
    }
    network = ("--problem", "sparse-mlp", "--epochs", "100000")
    more["train processes"] = ("train", given / "a.tfrecord", *network, *kept)
    more["predict"] = ("predict", given / "old.model", rows, "--out", folder / "answers.txt")
    more["pack"] = ("pack", rows, folder / "packed")
    more["pack by two"] = ("pack", rows, folder / "packed", "--workers", "2", "--shards", "2")
    more["generate"] = ("generate", "rcv1", folder / "rows.svm", "--rows", "200k", "--weights", folder / "w.npz")
    more["inspect"] = ("inspect", rows)
    more["lab"] = ("lab", "collisions", "--quick", "--out", folder / "lab")
    more["compare"] = ("compare", rows, "--out", folder / "compared", "--seeds", "1")
    return more


NAMES = tuple(commands(Path(), Path()))


@pytest.mark.parametrize("name", NAMES)
def test_signals_at_random_moments(name: str, given: Path, tmp_path: Path) -> None:
    dice = random.Random(f"{SEED} {name}")
    for _ in range(MOMENTS):
        number, group = dice.choice([signal.SIGTERM, signal.SIGHUP, signal.SIGINT]), dice.random() < 0.3
        wait = dice.random() * SECONDS.get(name.split()[-1], 3.0)
        model, process = tmp_path / "model", start(*commands(given, tmp_path)[name])
        shutil.copy(given / "old.model", model)
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            if number == signal.SIGINT:
                wait_for_handlers(process)
            # A terminal or a service manager sends a signal to all processes; Ray's own ones do not survive that.
            with suppress(ProcessLookupError):  # It has just ended.
                os.killpg(process.pid, number) if group and "ray" not in name else process.send_signal(number)
        started = time.monotonic()
        code, _, err = ended(process, GRACE_SECONDS)
        seconds = time.monotonic() - started
        assert code in (0, 128 + number, -number), f"seed {SEED}: {number} after {wait:.3f} s gave {code}: {err}"
        assert seconds < GRACE_SECONDS
        assert load(model).weights.any() if "processes" not in name else model.exists()
        assert leftovers(tmp_path) == []
        if (tmp_path / "packed").exists():
            assert run("inspect", tmp_path / "packed")[0] == 0
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("name", ["train threads", "train local", "train processes", "pack by two", "compare"])
def test_three_signals_end_every_command(name: str, given: Path, tmp_path: Path) -> None:
    """Whatever a command does, it is gone soon after the third signal."""
    process = start(*commands(given, tmp_path)[name])
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2.0)
    for _ in range(3):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
    code, _, _ = ended(process, GRACE_SECONDS)
    assert code in (128 + signal.SIGTERM, -signal.SIGTERM)


RAY = """
import os, signal
from hogwild.signals import terminations
from hogwild.runtimes.ray.connection import connected

reached = 0
with terminations() as termination:
    for within in (True, False):
        try:
            with connected(None, 1):
                if within:
                    os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            reached += 1
        termination.number = None
raise SystemExit(reached)
"""


def test_ray_leaves_signals_to_the_command() -> None:
    """Ray has a handler of its own for SIGTERM, below that of Python, and takes the handler away when it ends."""
    pytest.importorskip("ray")
    process = subprocess.Popen(
        [sys.executable, "-c", RAY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    code, _, err = ended(process)
    assert code == 2, err


AMONG_RAYS_HANDLERS = """
import os, signal, threading, time
from ray import _raylet
from hogwild.signals import terminations
from hogwild.runtimes.ray.connection import connected

core = _raylet.CoreWorker

def made_with_a_signal(*arguments, **named):
    made = core(*arguments, **named)
    os.kill(os.getpid(), signal.SIGTERM)  # which the other thread takes, because they are blocked here
    time.sleep(0.5)
    return made

_raylet.CoreWorker = made_with_a_signal
with terminations() as termination:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    try:
        with connected(None, 1):
            time.sleep(0.5)
    except KeyboardInterrupt:
        time.sleep(4)  # Ray's handler would abort after three seconds.
        os._exit(termination.exit_code)
"""


def test_a_signal_that_reaches_rays_handler_first_does_not_abort_the_command() -> None:
    pytest.importorskip("ray")
    process = subprocess.Popen(
        [sys.executable, "-c", AMONG_RAYS_HANDLERS], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    code, _, err = ended(process)
    assert code == 128 + signal.SIGTERM, err
