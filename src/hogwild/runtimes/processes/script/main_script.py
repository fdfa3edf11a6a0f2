"""Running script of the user, which a worker process runs again from its beginning, as ``torchrun`` does."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

# Programs that call functions of a file in their own way. Running the file again would not lead to the same call.
GUESTS = ("_pytest", "unittest", "doctest", "IPython", "ipykernel")


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
    guest = any(str(names.get("__name__")).partition(".")[0] in GUESTS for names in callers)
    if guest or not any(names is vars(main) for names in callers):
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
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)

    def off(self) -> None:
        """Print output again; output since :meth:`on` stays discarded."""
        sys.stdout.flush()
        os.dup2(self._real, 1)
