"""The template: a process that has loaded PyTorch, does nothing, and is copied whenever a worker is wanted.

A process that starts afresh takes seconds to load PyTorch; a copy of one that has loaded it takes milliseconds. The
template runs no arithmetic and has no threads, so that nothing can be locked in a copy of it, which is what makes
copies of a *working* process hang. It knows nothing of the program it works for, and ends with it.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from hogwild.errors import WorkerError

BOOT = (
    "import json, sys; given = json.loads(sys.argv[1]); sys.path[:] = given['path']; "
    "from hogwild.runtimes.processes.fork_server import serve; serve(given['socket'])"
)
# Threads of PyTorch that wait for each other spin for a hundred milliseconds before they sleep. Where there are more
# threads than cores, that made a small network 10 to 100 times slower. With this it is as fast as ever where there are
# not, and half as fast where there are twice as many.
SPIN = {} if "OMP_WAIT_POLICY" in os.environ else {"GOMP_SPINCOUNT": "1000"}
LIMIT = 120.0  # seconds in which it must answer; loading PyTorch from a slow disk takes some
MOST_FILES = 250  # that one message can carry


class ForkServer:
    """This side of it: asks for copies, and for what became of them."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._owner, self._lock = os.getpid(), threading.Lock()
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        given = json.dumps({"path": [str(entry) for entry in sys.path], "socket": theirs.fileno()})
        environment = {**SPIN, **os.environ, "OPENBLAS_NUM_THREADS": "1"}  # NumPy starts its threads when it is loaded
        self._process = subprocess.Popen(
            [sys.executable, *flags, "-c", BOOT, given], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            env=environment,
        )  # fmt: skip
        theirs.close()
        ours.settimeout(LIMIT)
        self._socket = ours

    @property
    def usable(self) -> bool:
        """Whether it is alive, and this process's own."""
        return self._owner == os.getpid() and self._process.poll() is None

    def copy(self, given: int, size: int, files: list[int]) -> int:
        """Start a process that does what is ``given``, with these files open; return its number."""
        answer = self._ask({"do": "copy", "size": size}, [given, *files])
        return int(answer["pid"])

    def status(self, pid: int) -> int | None:
        """How a copy ended: its status, or minus the signal that ended it; None if it still runs."""
        code = self._ask({"do": "status", "pid": pid}, [])["code"]
        return None if code is None else int(code)

    def _ask(self, what: dict[str, Any], files: list[int]) -> dict[str, Any]:
        with self._lock:
            try:
                socket.send_fds(self._socket, [json.dumps(what).encode()], files)
                answer = self._socket.recv(2**12)
            except OSError as reason:
                answer, why = b"", f" ({reason})"
            except BaseException:  # Ctrl-C: what it answers now would be taken for the answer to the next question
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
        """End it; its copies go on. A copy of this process has no say in it."""
        self._socket.close()
        if self._owner == os.getpid():
            atexit.unregister(self.close)
            self._process.kill()
            self._process.wait()
        else:
            self._process.returncode = 0


_current: ForkServer | None = None
_making = threading.Lock()


def fork_server() -> ForkServer:
    """The template of this process, started when it is first needed."""
    global _current
    with _making:
        if _current is None or not _current.usable:
            if _current is not None:
                _current.close()
            _current = ForkServer()
            atexit.register(_current.close)
        return _current


# Within the template


def serve(number: int) -> None:
    """Load what workers need, and make copies until nobody asks for any."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket.socket(fileno=number)
    _load()
    while True:
        message, files, _, _ = socket.recv_fds(connection, 2**12, MOST_FILES)
        if not message:
            os._exit(0)
        what = json.loads(message)
        if what["do"] == "status":
            answer: dict[str, Any] = {"code": _ended(int(what["pid"]))}
        else:
            pid = os.fork()
            if pid == 0:
                connection.close()
                _become(files, what["size"])
            for file in files:
                os.close(file)
            answer = {"pid": pid}
        connection.sendall(json.dumps(answer).encode())


def _load() -> None:
    import torch
    import torch.distributed

    from hogwild.runtimes.processes import evaluator, hogwild_worker
    from hogwild.runtimes.processes.ddp import process

    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])  # loads what optimisers load when they are first made
    del evaluator, process, hogwild_worker


def _become(files: list[int], size: int) -> None:
    """Be the process that was asked for; never return."""
    from hogwild.runtimes.processes.child_main import main

    try:
        given = json.loads(os.pread(files[0], size, 0))
        main(given, files[1:])
    finally:
        os._exit(4)


def _ended(pid: int) -> int | None:
    """How a copy ended. One whose pipe is closed is about to: wait for it a little."""
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    return None
