"""Ctrl-C that ends a run at its next good moment, instead of in the middle of anything."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Interrupt:
    """Whether Ctrl-C was pressed."""

    pressed: bool = False


@contextmanager
def deferred_sigint() -> Iterator[Interrupt]:
    """Within the block the first Ctrl-C is only noted; the second interrupts as always.

    Nothing changes in other threads than the main one, where Ctrl-C never arrives, or where the program has a handler
    of its own.

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
