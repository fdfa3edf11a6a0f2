"""Process group: worker processes that are started together, monitored, and always terminated together."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hogwild.errors import WorkerError
from hogwild.runtimes.processes.fork_server import ForkServer, fork_server
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_memory import SharedBlock
from hogwild.runtimes.processes.shared_pickle import SharedArrays, dumps, frame
from hogwild.runtimes.processes.shared_tensors import CPU, SharedTensors

UNKNOWN = -1000  # exit code of a process whose exit status cannot be determined


@dataclass(eq=False)
class WorkerProcess:
    """Process of a group, as the process that started it sees it."""

    name: str
    rank: int
    pid: int
    origin: ForkServer  # fork server that forked the process, and that knows its exit status
    reports: int  # file descriptor from which the process's reports are read
    orders: int  # file descriptor of the socket to which orders for the process are written
    received: bytes = b""  # start of a report whose end has not arrived yet
    failure: dict[str, Any] = field(default_factory=dict)  # report of the exception that ended the process, if any
    done: bool = False  # whether the process has reported the end of its task
    code: int | None = None  # exit status, or minus the terminating signal; None while the process is running

    def kill(self) -> None:
        """Kill the process.

        The process id is not reused meanwhile, because the fork server has not yet collected the exit status.
        """
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def collect_exit_code(self) -> None:
        """Determine the exit code of a process that has closed its pipe or was killed; kill it if it is running."""
        if self.code is None:
            try:
                found = self.origin.status(self.pid)
                if found is None:
                    self.kill()
                    found = self.origin.status(self.pid)
            except (WorkerError, OSError):
                found = UNKNOWN  # The fork server has terminated as well.
            self.code = UNKNOWN if found is None else found

    def send(self, what: dict[str, Any], files: Iterable[int] = ()) -> None:
        """Send the process an order with open files; do nothing if the process has terminated."""
        with (
            contextlib.suppress(BrokenPipeError, ConnectionResetError),
            socket.socket(fileno=os.dup(self.orders)) as connection,
        ):
            socket.send_fds(connection, [json.dumps(what).encode() + b"\n"], list(files))

    def crash_report(self) -> str:
        """Return the reason for which the process terminated: a traceback, a signal or an exit status."""
        code = self.code
        if self.failure:
            return f"{self.name} failed: {self.failure['error']}\n\n{self.failure['traceback'].rstrip()}"
        if code is not None and UNKNOWN < code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            why = " (perhaps the system ran out of memory)" if -code == signal.SIGKILL else ""
            return f"{self.name} was ended by the signal {name}{why}."
        return f"{self.name} ended" + (f" by itself, with status {code}." if code is not None and code >= 0 else ".")


class ProcessGroup:
    """Processes with the same shared tensors (``arena``) and shared counters.

    Every process has one end of a pipe whose other end is held here. If this process terminates, even by SIGKILL, the
    pipe closes, and the processes of the group terminate.
    """

    def __init__(
        self, arena: SharedTensors, counters: SharedCounters, environment: dict[str, str] | None = None
    ) -> None:
        self._arena, self._counters = arena, counters
        self._environment = {**os.environ, **(environment or {})}
        self._parent_pipe, self._parent_pipe_end = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._arrays = SharedArrays()
        self.members: list[WorkerProcess] = []

    def start(
        self, run: Callable[..., None], work: object, names: Iterable[str], first: int = 0
    ) -> list[WorkerProcess]:
        """Start a process for each name, which calls ``run(work, rank, counters, ...)``; ranks begin with ``first``."""
        content = frame(self._arena.describe(), dumps((run, work), self._arena, self._arrays))
        main_memory = self._arena.blocks[CPU]
        assert isinstance(main_memory, SharedBlock)
        sent = SharedBlock(len(content))
        try:
            sent.bytes[: len(content)] = content
            blocks = [sent, main_memory, self._counters.block, *self._arrays.blocks]
            return [self._start_one(name, rank, blocks, len(content)) for rank, name in enumerate(names, first)]
        finally:
            sent.close()

    def _start_one(self, name: str, rank: int, blocks: list[SharedBlock], length: int) -> WorkerProcess:
        reports, report = os.pipe()
        ordered, orders = (end.detach() for end in socket.socketpair())
        given = json.dumps({
            "path": [str(entry) for entry in sys.path], "argv": sys.argv, "folder": str(Path.cwd()),
            "environment": self._environment, "rank": rank, "workers": self._counters.workers, "length": length,
            "sizes": [block.size for block in blocks],
        }).encode()  # fmt: skip
        task_block, origin = SharedBlock(len(given)), fork_server()
        task_block.bytes[: len(given)] = given
        try:
            files = [self._parent_pipe, report, ordered, *(block.fd for block in blocks)]
            pid = origin.fork(task_block.fd, len(given), files)
            member = WorkerProcess(name, rank, pid, origin, reports, orders)
        except BaseException:
            for fd in (reports, orders):
                os.close(fd)
            raise
        finally:
            for fd in (report, ordered):
                os.close(fd)
            task_block.close()
        os.set_blocking(reports, False)
        self._selector.register(reports, selectors.EVENT_READ, member)
        self.members.append(member)
        return member

    def receive(self, seconds: float) -> Iterator[tuple[WorkerProcess, dict[str, Any]]]:
        """Yield the reports that processes send within ``seconds`` seconds, each with its process.

        A process that has terminated yields ``{"kind": "ended"}``.
        """
        for key, _ in self._selector.select(seconds) if self._selector.get_map() else ():
            member: WorkerProcess = key.data
            try:
                piece = os.read(key.fd, 2**16)
            except BlockingIOError:
                continue
            if not piece:
                yield from self._ended(member)
                continue
            *lines, member.received = (member.received + piece).split(b"\n")
            for line in lines:
                what = json.loads(line)
                if what["kind"] == "failed":
                    member.failure = what
                member.done = member.done or what["kind"] == "done"
                yield member, what

    def _ended(self, member: WorkerProcess) -> Iterator[tuple[WorkerProcess, dict[str, Any]]]:
        self._selector.unregister(member.reports)
        os.close(member.reports)
        member.collect_exit_code()
        yield member, {"kind": "ended"}

    def close(self) -> None:
        """Kill all running processes, and close all files."""
        # This alone terminates the processes, even if a second Ctrl-C interrupts the rest of this method.
        os.close(self._parent_pipe_end)
        for member in self.members:
            member.kill()
        for member in self.members:
            member.collect_exit_code()
            if member.reports in self._selector.get_map():
                self._selector.unregister(member.reports)
                os.close(member.reports)
            os.close(member.orders)
        self._selector.close()
        os.close(self._parent_pipe)
        self._arrays.close()


def worker_error(members: Iterable[WorkerProcess]) -> WorkerError:
    """Return the error of a run whose workers have crashed, with the reason of each."""
    return WorkerError("\n\n".join(member.crash_report() for member in members))
