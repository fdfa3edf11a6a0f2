"""Peer worker that runs the user's script again: its actions before, at and after a block of ``hogwild.shared``."""

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
    """Peer worker in this process, which runs the user's script again.

    The worker discards the script's standard output outside blocks, because worker 0 prints the same.
    """

    def __init__(self, rank: int, board: SharedCounters, report: Report, orders: int) -> None:
        self.rank, self.board, self._report = rank, board, report
        self._orders = socket.socket(fileno=orders)
        self._invited: tuple[SharedTensors, ScriptHandshake] | None = None
        self._terms: ScriptHandshake | None = None
        self._mute = MutedOutput()
        self._mute.on()

    def join(self, net: Any, optimiser: Any) -> ScriptHandshake:
        """Enter a block: take the shared tensors of worker 0, and wait until all workers are ready.

        If this fails, report the exception to worker 0 and terminate this process.
        """
        try:
            arena, terms = self._invited or self._invitation()
            attach(net, optimiser, arena, terms)
            arena.close()
        except Exception:  # Every exception is reported to worker 0, and this process terminates.
            self.fail()
        self._invited, self._terms = None, terms
        configure_worker(terms, self.rank)
        wait_for_start(self.board, self.rank)
        self._mute.off()
        return terms

    def finish(self) -> None:
        """Leave a block: terminate, or suspend until worker 0 reaches another block.

        If worker 0 reaches no other block, this process terminates when worker 0 closes the socket of orders.
        """
        assert self._terms is not None
        sys.stdout.flush()
        self.board.counts[self.rank, at.STATE] = at.FINISHED
        if not self._terms.keep:
            self._report({"kind": "done"})
            self._leave(0)
        self._invited = self._invitation()
        self._mute.on()

    def fail(self) -> NoReturn:
        """Report the exception that is being handled, and terminate before the script could handle it."""
        error = sys.exc_info()[1]
        self._report({"kind": "failed", "error": f"{type(error).__name__}: {error}",
                      "traceback": traceback.format_exc()})  # fmt: skip
        self._leave(1)

    def _leave(self, status: int) -> NoReturn:
        flush()
        for child in multiprocessing.active_children():  # Data-loading processes of this worker.
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
    """Return the peer worker of this process; None in a process that does not run the script again.

    >>> current_script_worker() is None
    True
    """
    return _current


def run_script_worker(
    script: Script, rank: int, board: SharedCounters, *, report: Report, orders: int, **_: Any
) -> None:
    """Run the user's script again as a peer worker; raise ``WorkerError`` if the script ends without a block."""
    global _current
    if hasattr(sys.stdout, "reconfigure"):
        # With line buffering, lines of several workers are not mixed.
        sys.stdout.reconfigure(line_buffering=True)
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
