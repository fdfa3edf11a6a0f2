"""Deferred SIGINT: Ctrl-C ends a run at the next consistent point."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Interrupt:
    """Flag that records whether Ctrl-C was pressed."""

    pressed: bool = False


@contextmanager
def deferred_sigint() -> Iterator[Interrupt]:
    """Record the first Ctrl-C within the block instead of raising; the second raises KeyboardInterrupt.

    The block changes nothing outside the main thread, which alone receives signals. The block changes nothing either if
    the program has its own handler.

    >>> with deferred_sigint() as interrupt:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interrupt.pressed
    True
    """
    interrupt = Interrupt()

    def note(number: int, frame: Any) -> None:
        if interrupt.pressed:
            signal.default_int_handler(number, frame)
        interrupt.pressed = True

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
