"""Signals that end a run: Ctrl-C, SIGTERM, SIGHUP, and SIGXCPU, which a limit of processor time sends.

A run ends early at the first signal, with a model and a checkpoint. The second signal raises KeyboardInterrupt. In a
command, a signal after that ends the process at once. SIGXCPU comes again every second until the process has ended, so
that only the first one counts.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU")
ENDING = tuple(getattr(signal, name) for name in _NAMES if name in signal.Signals.__members__)
_REPEATED = signal.Signals.__members__.get("SIGXCPU")

_LATER_SECONDS = 0.05  # until an interruption that had to wait is tried again
_MOST_SECONDS = 20.0  # that it waits; Kubernetes waits 30 before it kills


@dataclass(slots=True)
class _Interruption:
    """KeyboardInterrupt that waits until it may be raised.

    Within an import it would leave a module half made, which other code takes for a missing one. The compiler's
    callbacks would swallow it. A lock could be left behind. So the signal is sent again a little later.
    """

    _until: float | None = None  # time up to which it waits; None if it does not
    _sent: int = 0  # signals that were sent again and have not arrived

    def is_sent_again(self) -> bool:
        """Return whether the signal that has arrived is one that was sent again."""
        if self._sent == 0:
            return False
        self._sent -= 1
        return True

    def occur(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt now, or see to it that the signal comes again."""
        now = time.monotonic()
        self._until = self._until or now + _MOST_SECONDS
        if _may_be_interrupted(frame) or now >= self._until:
            self._until = None
            raise KeyboardInterrupt
        threading.Thread(target=self._send_again, args=(number,), daemon=True).start()

    def _send_again(self, number: int) -> None:
        time.sleep(_LATER_SECONDS)
        self._sent += 1
        signal.pthread_kill(threading.main_thread().ident or 0, number)


# Parts of "file:function" of code that is not written to be left at any line: imports, the compiler, locks of folders,
# the making and removal of temporary files (not what is done with them in between), the start of a process, which waits
# for what its parent sends, the start of a pool's thread, which must be noted to be ended, and code in which Python or
# a library prints and swallows every exception: callbacks at the end of an object, and the conversion of a command's
# arguments.
_UNINTERRUPTED = (
    "<frozen importlib", "/llvmlite/", "/numba/", "/hogwild/folder_lock.py:", "/hogwild/files.py:try_folder",
    "/hogwild/files.py:replacing", "/hogwild/files.py:new_folder", "/multiprocessing/popen_spawn_posix.py:",
    "/concurrent/futures/thread.py:_adjust_thread_count", "/weakref.py:", "/typer/_adapters.py:",
)  # fmt: skip


def _may_be_interrupted(frame: FrameType | None) -> bool:
    """Return whether no function that is running is in code that must not be left at any line."""
    while frame is not None:
        place = f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
        if any(part in place for part in _UNINTERRUPTED):
            return False
        frame = frame.f_back
    return True


@dataclass(slots=True)
class Interrupt:
    """Handler that records the first signal; the second one raises KeyboardInterrupt."""

    number: int | None = None
    _second: _Interruption = field(default_factory=_Interruption, repr=False)

    @property
    def pressed(self) -> bool:
        """Whether a signal has arrived."""
        return self.number is not None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.number is not None:
            if not self._second.is_sent_again() and number == _REPEATED:
                return
            self._second.occur(number, frame)
        self.number = number


@dataclass(slots=True)
class Termination:
    """Handler of a command, which raises KeyboardInterrupt as Ctrl-C does; the signal after it ends the process."""

    number: int | None = None
    over: bool = False  # Whether the command has ended; signals are only recorded then.
    _first: _Interruption = field(default_factory=_Interruption, repr=False)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.over:
            self.number = number
            return
        if self.number is not None and not self._first.is_sent_again():
            if number == _REPEATED:
                return
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.number = number
        self._first.occur(number, frame)

    @property
    def exit_code(self) -> int:
        """The exit code by which shells know the signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + (self.number or signal.SIGINT)


@contextmanager
def terminations(last: bool = False) -> Iterator[Termination]:
    """Make Ctrl-C, SIGTERM, SIGHUP and SIGXCPU raise KeyboardInterrupt within the block, where it may be raised.

    Where the block is the ``last`` thing that a process does, Ctrl-C ends it without a traceback after the block.

    A signal that is ignored, such as SIGHUP under ``nohup``, or that the program handles itself, stays as it is.

    >>> with terminations() as termination:
    ...     try:
    ...         termination(signal.SIGTERM, None)
    ...     except KeyboardInterrupt:
    ...         termination.exit_code
    143
    """
    termination = Termination()
    is_main = threading.current_thread() is threading.main_thread()
    present = {number: signal.getsignal(number) for number in ENDING} if is_main else {}
    usual = (signal.SIG_DFL, signal.default_int_handler)
    replaced = {number: handler for number, handler in present.items() if handler in usual}
    for number in replaced:
        signal.signal(number, termination)
    try:
        yield termination
    finally:
        termination.over = True
        for number, handler in replaced.items():
            repeats = number == _REPEATED == termination.number
            signal.signal(number, signal.SIG_IGN if repeats else signal.SIG_DFL if last else handler)


@contextmanager
def deferred_interrupts() -> Iterator[Interrupt]:
    """Record the first Ctrl-C within the block instead of raising; the second raises KeyboardInterrupt.

    In a command, the other signals are recorded as well. The block changes nothing outside the main thread, which alone
    receives signals. The block changes nothing either if the program has its own handler. A block within another
    one shares its interrupt: one Ctrl-C ends both.

    >>> with deferred_interrupts() as interrupt:
    ...     interrupt(signal.SIGINT, None)
    ...     interrupt.pressed
    True
    """
    is_main = threading.current_thread() is threading.main_thread()
    present = {number: signal.getsignal(number) for number in ENDING} if is_main else {}
    shared = [handler for handler in present.values() if isinstance(handler, Interrupt)]
    interrupt = shared[0] if shared else Interrupt()
    replaced = {
        number: handler for number, handler in present.items()
        if handler is signal.default_int_handler or isinstance(handler, Termination)
    }  # fmt: skip
    # A library may have swallowed the KeyboardInterrupt of an earlier signal, in a callback for example.
    earlier = [handler.number for handler in replaced.values() if isinstance(handler, Termination) and handler.number]
    if earlier and interrupt.number is None:
        interrupt.number = earlier[0]
    for number in replaced:
        signal.signal(number, interrupt)
    try:
        yield interrupt
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
            if isinstance(handler, Termination) and interrupt.number == number:
                handler.number = number


def has_own_handler(number: int) -> bool:
    """Return whether a signal has a handler of this module."""
    return isinstance(signal.getsignal(number), (Interrupt, Termination))


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Block the signals that end a run within the block, for the start of a process.

    The process begins with them blocked, and does not end before :func:`leave_signals_to_parent` is called in it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def spawning() -> Iterator[None]:
    """Block the signals that end a run within the block, for the start of a process by :mod:`multiprocessing`.

    Its first process starts a tracker of resources as well, and the signals are not blocked any more after that.
    """
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    with blocked_signals():
        yield


def take_signals_back() -> None:
    """Install the handlers of this module again, where a library in C has put its own below Python's.

    Python goes on to tell of the handler that it knows, but the signal does not reach it.
    """
    for number in ENDING:
        if has_own_handler(number):
            signal.signal(number, signal.getsignal(number))


def leave_signals_to_parent() -> None:
    """Ignore the signals that end a run, because the parent reacts to them.

    A terminal sends Ctrl-C and SIGHUP to all its processes, and a service manager sends SIGTERM to all of a service.
    """
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
