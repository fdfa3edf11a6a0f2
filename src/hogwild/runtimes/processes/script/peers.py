"""Peer workers of worker 0, which trains as well and monitors them between its steps."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from hogwild.errors import WorkerError
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.config import Processes
from hogwild.runtimes.processes.process_group import ProcessGroup, WorkerProcess, worker_error
from hogwild.runtimes.processes.script.handshake import ScriptHandshake
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_memory import SharedBlock
from hogwild.runtimes.processes.shared_pickle import SharedArrays, dumps, frame
from hogwild.runtimes.processes.shared_tensors import CPU, SharedTensors, return_freed_memory

LOOK = 0.05  # seconds between two checks for crashed workers while worker 0 trains
WAIT = 0.005  # seconds between two checks for crashed workers while worker 0 waits


class PeerWorkers:
    """Workers 1, 2, ... of a block: worker 0 starts them, detects their crashes, and waits for them at the end."""

    def __init__(self, board: SharedCounters, runtime: Processes, arena: SharedTensors, run: Any, work: Any) -> None:
        self.board, self._runtime, self._owner = board, runtime, os.getpid()
        self._begun, self._looked = False, 0.0
        self._fleet: ProcessGroup | None = ProcessGroup(arena, board)
        names = [f"worker {rank}" for rank in range(1, board.workers)]
        try:
            self._members = self._fleet.start(run, work, names, first=1)
        except BaseException:
            self.close()
            raise

    @property
    def ended(self) -> bool:
        """Whether :meth:`close` has terminated all peer workers."""
        return self._fleet is None

    def invite(self, arena: SharedTensors, terms: ScriptHandshake) -> None:
        """Send the shared tensors and the options of the next block to all peer workers."""
        content = frame(arena.describe(), dumps(terms, arena, SharedArrays()))
        letter, tensors = SharedBlock(len(content)), arena.blocks[CPU]
        assert isinstance(tensors, SharedBlock)
        letter.bytes[: len(content)] = content
        what = {"length": len(content), "sizes": [letter.size, tensors.size]}
        for member in self._members:
            member.tell(what, [letter.fd, tensors.fd])
        letter.close()

    def begin(self, runtime: Processes) -> None:
        """Wait until all peer workers are ready, and give the start signal.

        Raise :class:`WorkerError` if a worker is not ready after ``runtime.startup_timeout`` seconds.
        """
        self._runtime = runtime
        until = time.monotonic() + runtime.startup_timeout
        while late := self._those_before(at.READY):
            self._hear(WAIT)
            if time.monotonic() > until:
                raise WorkerError(
                    f"Not there after {runtime.startup_timeout:g} seconds: {_names(late)}. Every worker runs the "
                    "script up to hogwild.shared first: look what takes it so long, or give "
                    "runtime=Processes(startup_timeout=...)."
                )
        return_freed_memory()
        self.board.sums[:, at.BEAT] = time.monotonic()
        self._begun = True
        self.board.flags[at.GO] = 1

    def look(self) -> None:
        """Check for crashed workers, at most every ``LOOK`` seconds; worker 0 calls this method at each step and batch.

        Raise :class:`WorkerError` for a crashed worker if the runtime's ``on_worker_failure`` is "stop".
        """
        now = time.monotonic()
        if now - self._looked > LOOK:
            self._looked = now
            self._hear(0)

    def wait(self) -> None:
        """Wait until all running workers have finished.

        A worker without a heartbeat for ``heartbeat_timeout`` seconds is killed and counts as crashed.
        """
        while self._those_before(at.FINISHED):
            self._hear(WAIT)
            self._mind_the_silent()

    def close(self) -> None:
        """Terminate all peer workers; do nothing in a fork of the process that started them."""
        if self._fleet is not None and self._owner == os.getpid():
            fleet, self._fleet = self._fleet, None
            fleet.close()
            self.board.block.close()

    def _those_before(self, state: int) -> list[WorkerProcess]:
        line = self.board.counts
        return [one for one in self._members if line[one.rank, at.STATE] < state and not line[one.rank, at.GONE]]

    def _hear(self, seconds: float) -> None:
        if self._fleet is not None:
            for member, what in self._fleet.hear(seconds):
                if what["kind"] == "gone" and not member.done:
                    self._bury(member)

    def _bury(self, member: WorkerProcess) -> None:
        self.board.counts[member.rank, at.GONE] = 1
        if self._runtime.on_worker_failure == "stop" or not self._begun:
            raise worker_error([member])
        sys.stderr.write(f"{member.obituary()}\nThe others go on.\n")

    def _mind_the_silent(self) -> None:
        limit = time.monotonic() - self._runtime.heartbeat_timeout
        for member in self._those_before(at.FINISHED):
            if self.board.sums[member.rank, at.BEAT] < limit and member.code is None:
                member.failure = member.failure or {
                    "error": f"nothing was heard of it for {self._runtime.heartbeat_timeout:g} seconds",
                    "traceback": "If a step takes longer, give runtime=Processes(heartbeat_timeout=...).",
                }
                member.end()


def _names(members: list[WorkerProcess]) -> str:
    return ", ".join(member.name for member in members)
