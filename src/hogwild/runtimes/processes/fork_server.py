"""Fork server: an idle process that has loaded PyTorch and forks itself once for each worker.

A new interpreter takes seconds to load PyTorch; a fork of a process that has loaded PyTorch takes milliseconds. The
fork server runs no arithmetic and has no threads. Hence no lock can be held at the moment of a fork; such a lock is
why forks of a *working* process hang. The fork server receives only the import paths of the calling program. It
terminates with the calling program.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from hogwild.errors import WorkerError
from hogwild.signals import blocked_signals, leave_signals_to_parent

BOOT = (
    "import json, sys; given = json.loads(sys.argv[1]); sys.path[:] = given['path']; "
    "from hogwild.runtimes.processes.fork_server import serve; serve(given['socket'])"
)
# OpenMP threads of PyTorch spin at a barrier for 100 milliseconds before they sleep. With more threads than cores,
# spinning made a small network 10 to 100 times slower. A spin count of 1,000 costs nothing while threads do not exceed
# cores. With twice as many threads as cores, the network then runs at half its speed.
SPIN = {} if "OMP_WAIT_POLICY" in os.environ else {"GOMP_SPINCOUNT": "1000"}
LIMIT = 120.0  # seconds within which the fork server must answer, which include loading PyTorch from a slow disk
MOST_FILES = 250  # limit on the file descriptors in one message; Linux allows 253 (SCM_MAX_FD)


class ForkServer:
    """Client of the fork server: requests forks, and their exit statuses."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._owner, self._lock = os.getpid(), threading.Lock()
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        given = json.dumps({"path": [str(entry) for entry in sys.path], "socket": theirs.fileno()})
        # NumPy's OpenBLAS starts its threads when it is loaded; one thread means that the fork server has none.
        environment = {**SPIN, **os.environ, "OPENBLAS_NUM_THREADS": "1"}
        with blocked_signals():
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", BOOT, given], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                env=environment,
            )  # fmt: skip
        theirs.close()
        ours.settimeout(LIMIT)
        self._socket = ours

    @property
    def usable(self) -> bool:
        """Whether the fork server is running, and was started by this process rather than by its parent."""
        return self._owner == os.getpid() and self._process.poll() is None

    def fork(self, given: int, size: int, files: list[int]) -> int:
        """Fork a process with open ``files``; return its process id.

        ``given`` is the file descriptor of the process's task: ``size`` bytes of JSON, for ``child_main.main``.
        """
        answer = self._request({"do": "fork", "size": size}, [given, *files])
        return int(answer["pid"])

    def status(self, pid: int) -> int | None:
        """Return the exit status of a fork, or minus the signal that terminated it; None if it is running."""
        code = self._request({"do": "status", "pid": pid}, [])["code"]
        return None if code is None else int(code)

    def _request(self, request: dict[str, Any], files: list[int]) -> dict[str, Any]:
        with self._lock:
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], files)
                answer = self._socket.recv(2**12)
            except OSError as reason:
                answer, why = b"", f" ({reason})"
            except BaseException:
                # After Ctrl-C the pending answer would be read as the answer to the next request.
                self.close()
                raise
            else:
                why = ""
            if not answer:
                self.close()
                raise WorkerError(
                    f"The process that starts workers has ended{why}. Was it killed, or is memory short? "
                    "What it printed is above; the next run starts another one."
                )
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """Terminate the fork server; its forks keep running.

        A fork of the calling process does not own the fork server, and only closes its own end of the socket.
        """
        self._socket.close()
        if self._owner == os.getpid():
            atexit.unregister(self.close)
            self._process.kill()
            self._process.wait()
        else:
            self._process.returncode = 0


_current: ForkServer | None = None
_making = threading.Lock()


def _unlock() -> None:
    """Replace the lock in a forked process, because a thread that only its parent has may hold it."""
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def fork_server() -> ForkServer:
    """Return the fork server of this process; start it if there is none that is usable."""
    global _current
    with _making:
        if _current is None or not _current.usable:
            if _current is not None:
                _current.close()
            _current = ForkServer()
            atexit.register(_current.close)
        return _current


# Code that runs within the fork server.


def serve(number: int) -> None:
    """Load the modules that workers need, and answer requests until the calling program closes its socket."""
    leave_signals_to_parent()
    connection = socket.socket(fileno=number)
    _load()
    while True:
        message, files, _, _ = socket.recv_fds(connection, 2**12, MOST_FILES)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if request["do"] == "status":
            answer: dict[str, Any] = {"code": _exit_code(int(request["pid"]))}
        else:
            pid = os.fork()
            if pid == 0:
                connection.close()
                _run_task(files, request["size"])
            for file in files:
                os.close(file)
            answer = {"pid": pid}
        connection.sendall(json.dumps(answer).encode())


def _load() -> None:
    import torch
    import torch.distributed

    from hogwild.runtimes.processes import evaluator, hogwild_worker
    from hogwild.runtimes.processes.ddp import process

    # The first optimiser imports further modules of PyTorch.
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    del evaluator, process, hogwild_worker


def _run_task(files: list[int], size: int) -> None:
    """Run the requested task in this fork; never return.

    The exit status is 4 if ``child_main.main`` does not exit by itself.
    """
    from hogwild.runtimes.processes.child_main import main

    try:
        given = json.loads(os.pread(files[0], size, 0))
        main(given, files[1:])
    finally:
        os._exit(4)


def _exit_code(pid: int) -> int | None:
    """Return the exit code of a fork; None if it is still running after 2 seconds.

    A fork whose report pipe has closed is about to exit, hence the wait.
    """
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    return None
