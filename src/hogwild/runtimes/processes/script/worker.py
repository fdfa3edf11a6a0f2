"""Peer worker of ``hogwild.shared``, which runs the user's script again from its beginning, as ``torchrun`` does."""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from hogwild.errors import WorkerError
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.child_main import Report, flush
from hogwild.runtimes.processes.script.peers import ScriptHandshake, attach, configure_worker
from hogwild.runtimes.processes.shared_counters import SharedCounters, wait_for_start
from hogwild.runtimes.processes.shared_memory import SharedBlock
from hogwild.runtimes.processes.shared_pickle import loads, unframe
from hogwild.runtimes.processes.shared_tensors import SharedTensors, open_shared_tensors

if TYPE_CHECKING:
    import torch
    from torch import nn

# Programs that call functions of a file in their own way. Running the file again would not lead to the same call.
HOST_PROGRAMS = ("_pytest", "unittest", "doctest", "IPython", "ipykernel")


@dataclass(frozen=True, slots=True)
class Script:
    """Main program with which Python was started: a file, or a module (``python -m``)."""

    path: str  # file of the program
    module: str | None = None  # name of the module, for ``python -m``

    def run(self) -> None:
        """Run the script as the main program of this process."""
        if self.module is not None:
            runpy.run_module(self.module, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(self.path, run_name="__main__")


def running_script() -> Script | None:
    """Return the script that made this call; None if running the script again would not lead to the same call.

    It would not in a notebook, in ``python -c``, in a test, in another thread or in a child process.

    >>> running_script() is None  # a doctest
    True
    """
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or not Path(path).is_file() or multiprocessing.parent_process() is not None:
        return None
    if threading.current_thread() is not threading.main_thread():
        return None
    callers = [frame.f_globals for frame in _callers()]
    hosted = any(str(names.get("__name__")).partition(".")[0] in HOST_PROGRAMS for names in callers)
    if hosted or not any(names is vars(main) for names in callers):
        return None
    spec = getattr(main, "__spec__", None)
    return Script(str(path), None if spec is None or spec.name == "__main__" else spec.name)


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


class MutedOutput:
    """Switch that discards the standard output of this process, because worker 0 has printed the same before.

    The switch redirects the file descriptor 1, not ``sys.stdout``. Loggers that keep a reference to ``sys.stdout``
    therefore print again after :meth:`off`.
    """

    def __init__(self) -> None:
        self._real = os.dup(1)

    def on(self) -> None:
        """Discard all output from this call on."""
        sys.stdout.flush()
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.close(devnull)

    def off(self) -> None:
        """Print output again; output since :meth:`on` stays discarded."""
        sys.stdout.flush()
        os.dup2(self._real, 1)


class ScriptWorker:
    """Peer worker in this process, which runs the user's script again.

    The worker discards the script's standard output outside blocks, because worker 0 prints the same.
    """

    def __init__(self, rank: int, counters: SharedCounters, report: Report, orders: int) -> None:
        self.rank, self.counters, self._report = rank, counters, report
        self._orders = socket.socket(fileno=orders)
        self._next_block: tuple[SharedTensors, ScriptHandshake] | None = None
        self._handshake: ScriptHandshake | None = None
        self._mute = MutedOutput()
        self._mute.on()

    def join(self, net: nn.Module, optimiser: torch.optim.Optimizer) -> ScriptHandshake:
        """Enter a block: take the shared tensors of worker 0, and wait until all workers are ready.

        If this fails, report the exception to worker 0 and terminate this process.
        """
        try:
            arena, handshake = self._next_block or self._receive_handshake()
            attach(net, optimiser, arena, handshake)
            arena.close()
        except Exception:  # Every exception is reported to worker 0, and this process terminates.
            self.fail()
        self._next_block, self._handshake = None, handshake
        configure_worker(handshake, self.rank)
        wait_for_start(self.counters, self.rank)
        self._mute.off()
        return handshake

    def finish(self) -> None:
        """Leave a block: terminate, or suspend until worker 0 reaches another block.

        If worker 0 reaches no other block, this process terminates when worker 0 closes the socket of orders.
        """
        assert self._handshake is not None
        sys.stdout.flush()
        self.counters.counts[self.rank, at.STATE] = at.FINISHED
        if not self._handshake.keep:
            self._report({"kind": "done"})
            self._exit(0)
        self._next_block = self._receive_handshake()
        self._mute.on()

    def fail(self) -> NoReturn:
        """Report the exception that is being handled, and terminate before the script could handle it."""
        error = sys.exc_info()[1]
        self._report({"kind": "failed", "error": f"{type(error).__name__}: {error}",
                      "traceback": traceback.format_exc()})  # fmt: skip
        self._exit(1)

    def _exit(self, status: int) -> NoReturn:
        flush()
        for child in multiprocessing.active_children():  # Data-loading processes of this worker.
            child.kill()
        os._exit(status)

    def _receive_handshake(self) -> tuple[SharedTensors, ScriptHandshake]:
        message, files, _, _ = socket.recv_fds(self._orders, 2**12, 2)
        if not message:
            self._exit(0)
        what = json.loads(message)
        message_block, tensors = (SharedBlock(size, fd) for size, fd in zip(what["sizes"], files, strict=True))
        description, content = unframe(message_block.bytes[: what["length"]])
        message_block.close()
        arena = open_shared_tensors(tensors, description)
        return arena, loads(content, arena, [])


_current: ScriptWorker | None = None


def current_script_worker() -> ScriptWorker | None:
    """Return the peer worker of this process; None in a process that does not run the script again.

    >>> current_script_worker() is None
    True
    """
    return _current


def run_script_worker(
    script: Script, rank: int, counters: SharedCounters, *, report: Report, orders: int, **_: object
) -> None:
    """Run the user's script again as a peer worker; raise ``WorkerError`` if the script ends without a block."""
    global _current
    if hasattr(sys.stdout, "reconfigure"):
        # With line buffering, lines of several workers are not mixed.
        sys.stdout.reconfigure(line_buffering=True)
    _current = ScriptWorker(rank, counters, report, orders)
    try:
        script.run()
    except SystemExit as reason:
        raise WorkerError(f"{_ended_early(script)} It left by sys.exit({reason.code!r}).") from None
    raise WorkerError(_ended_early(script))


def _ended_early(script: Script) -> str:
    return (
        f"{script.path}, run again by this worker, ended without coming to the block that the first process is in. "
        "It must do the same in every process: does it read from a terminal, or look at files it has written?"
    )
