"""A worker that runs the user's script again: what it does until, at and after the block that it is there for."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import sys
import traceback
from typing import Any, NoReturn

from hogwild.errors import WorkerError
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.child_main import Report, flush
from hogwild.runtimes.processes.script.handshake import ScriptHandshake, attach, configure_worker
from hogwild.runtimes.processes.script.main_script import MutedOutput, Script
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_memory import SharedBlock
from hogwild.runtimes.processes.shared_pickle import loads, unframe
from hogwild.runtimes.processes.shared_tensors import SharedTensors, open_shared_tensors
from hogwild.runtimes.processes.start_barrier import wait_for_start


class ScriptWorker:
    """This process, if it is such a worker."""

    def __init__(self, rank: int, board: SharedCounters, report: Report, orders: int) -> None:
        self.rank, self.board, self._report = rank, board, report
        self._orders = socket.socket(fileno=orders)
        self._invited: tuple[SharedTensors, ScriptHandshake] | None = None
        self._terms: ScriptHandshake | None = None
        self._mute = MutedOutput()
        self._mute.on()

    def join(self, net: Any, optimiser: Any) -> ScriptHandshake:
        """The script has come to a block: share the tensors of the first process, and wait until all are here."""
        try:
            arena, terms = self._invited or self._invitation()
            attach(net, optimiser, arena, terms)
            arena.close()
        except Exception:  # whatever it is, the first process is told of it, and this one ends
            self.fail()
        self._invited, self._terms = None, terms
        configure_worker(terms, self.rank)
        wait_for_start(self.board, self.rank)
        self._mute.off()
        return terms

    def finish(self) -> None:
        """The block is over: end, or wait for another one, which may never come."""
        assert self._terms is not None
        sys.stdout.flush()
        self.board.counts[self.rank, at.STATE] = at.FINISHED
        if not self._terms.keep:
            self._report({"kind": "done"})
            self._leave(0)
        self._invited = self._invitation()
        self._mute.on()

    def fail(self) -> NoReturn:
        """Report the exception that is being handled, and end, whatever the script would do about it."""
        error = sys.exc_info()[1]
        self._report({"kind": "failed", "error": f"{type(error).__name__}: {error}",
                      "traceback": traceback.format_exc()})  # fmt: skip
        self._leave(1)

    def _leave(self, status: int) -> NoReturn:
        flush()
        for child in multiprocessing.active_children():  # that read data for us
            child.kill()
        os._exit(status)

    def _invitation(self) -> tuple[SharedTensors, ScriptHandshake]:
        message, files, _, _ = socket.recv_fds(self._orders, 2**12, 2)
        if not message:
            self._leave(0)
        what = json.loads(message)
        letter, tensors = (SharedBlock(size, fd) for size, fd in zip(what["sizes"], files, strict=True))
        description, content = unframe(letter.bytes[: what["length"]])
        letter.close()
        arena = open_shared_tensors(tensors, description)
        return arena, loads(content, arena, [])


_current: ScriptWorker | None = None


def current_script_worker() -> ScriptWorker | None:
    """This process as a worker that runs the script again; None in any other.

    >>> current_script_worker() is None
    True
    """
    return _current


def run_script_worker(
    script: Script, rank: int, board: SharedCounters, *, report: Report, orders: int, **_: Any
) -> None:
    """Be such a worker."""
    global _current
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # whole lines, so that those of several workers are not mixed
    _current = ScriptWorker(rank, board, report, orders)
    try:
        script.run()
    except SystemExit as left:
        raise WorkerError(f"{_ended_early(script)} It left by sys.exit({left.code!r}).") from None
    raise WorkerError(_ended_early(script))


def _ended_early(script: Script) -> str:
    return (
        f"{script.path}, run again by this worker, ended without coming to the block that the first process is in. "
        "It must do the same in every process: does it read from a terminal, or look at files it has written?"
    )
