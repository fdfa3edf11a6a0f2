"""Signals that end a run: Ctrl-C, SIGTERM and SIGHUP.

A run ends early at the first signal, with a model and a checkpoint. The second signal raises KeyboardInterrupt. In a
command, a signal after that ends the process at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__)


@dataclass(slots=True)
class Interrupt:
    """Handler that records the first signal; the second one raises KeyboardInterrupt."""

    number: int | None = None

    @property
    def pressed(self) -> bool:
        """Whether a signal has arrived."""
        return self.number is not None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number


@dataclass(slots=True)
class Termination:
    """Handler of a command, which raises KeyboardInterrupt as Ctrl-C does; the signal after it ends the process."""

    number: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.number is not None:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.number = number
        raise KeyboardInterrupt

    @property
    def exit_code(self) -> int:
        """The exit code by which shells know the signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + (self.number or signal.SIGINT)


@contextmanager
def terminations() -> Iterator[Termination]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt within the block, as Ctrl-C does.

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
    replaced = [n for n in ENDING if is_main and signal.getsignal(n) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, termination)
    try:
        yield termination
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def deferred_interrupts() -> Iterator[Interrupt]:
    """Record the first Ctrl-C within the block instead of raising; the second raises KeyboardInterrupt.

    In a command, SIGTERM and SIGHUP are recorded as well. The block changes nothing outside the main thread, which
    alone receives signals. The block changes nothing either if the program has its own handler. A block within another
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


def leave_signals_to_parent() -> None:
    """Ignore the signals that end a run, because the parent reacts to them.

    A terminal sends Ctrl-C and SIGHUP to all its processes, and a service manager sends SIGTERM to all of a service.
    """
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
