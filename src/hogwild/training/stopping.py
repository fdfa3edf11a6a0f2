"""Reasons for a run to stop or to go back: Ctrl-C, divergence, and for modules a target, a stall and the budget."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hogwild.errors import DivergedError
from hogwild.run import Budget, Event

if TYPE_CHECKING:
    from hogwild.runtimes.processes.shared_counters import SharedCounters
    from hogwild.runtimes.processes.worker_config import IterateAverage, StepSize


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


# Multiple of the initial loss (or of 1, if that is larger) above which a loss counts as diverged.
DIVERGENCE_FACTOR = 1e3
MOST = 5  # number of halvings of the step size after which a run fails


@dataclass(slots=True)
class DivergenceGuard:
    """Guard that compares losses with the initial loss, and counts the halvings of the step size.

    >>> guard = DivergenceGuard(start=0.7)
    >>> guard.has_diverged(0.5), guard.has_diverged(float("nan")), guard.has_diverged(1e9)
    (False, True, True)
    """

    start: float
    halvings: int = 0
    factor: float = DIVERGENCE_FACTOR  # multiple of the initial loss that counts as diverged

    def has_diverged(self, *losses: float) -> bool:
        """Return whether any loss is not finite, or above ``factor`` times the initial loss (or 1, if larger)."""
        limit = self.factor * max(self.start, 1.0)
        return not all(math.isfinite(loss) and loss <= limit for loss in losses)

    def halve(self) -> float:
        """Halve the step size, and return the remaining factor.

        Raises
        ------
        DivergedError
            After five halvings, because further ones would not help.
        """
        if self.halvings == MOST:
            raise DivergedError(
                f"The loss exploded {MOST + 1} times, the last time with {2.0**-MOST:.3g} of the step. "
                "Give a smaller step (or step='auto'), scale the features to similar sizes, or look for outliers "
                "among the labels."
            )
        self.halvings += 1
        return self.scale

    @property
    def scale(self) -> float:
        """The factor of the step size after all halvings."""
        return 2.0**-self.halvings


def all_finite(parts: Iterable[Any]) -> bool:
    """Return whether all parameters are finite.

    The loss alone does not show NaN parameters: the hinge loss takes a NaN margin for a good one, with loss 0.

    >>> all_finite([np.ones(3), np.zeros((2, 1))]), all_finite([np.array([1.0, np.nan])])
    (True, False)
    """
    return all(bool(np.isfinite(part).all()) for part in parts)


class Evaluator(Protocol):
    """Process or object that evaluates held-out data on request."""

    def tell(self, what: dict[str, Any]) -> None:
        """Accept a request for an evaluation; its figures arrive later."""


@dataclass(eq=False)
class EpochRecorder:
    """Recorder of epochs: makes a record at the end of each, requests its evaluation, and finds reasons to stop.

    The evaluator evaluates one epoch at a time, and workers do not wait for it. An epoch that ends during the
    evaluation of an earlier one may have no held-out figures.
    """

    board: SharedCounters
    rate: StepSize
    budget: Budget
    mean: IterateAverage | None = None
    evaluator: Evaluator | None = None
    watches_test: bool = False  # whether the budget's target applies to the held-out loss
    epoch: int = 0  # last epoch that has a record
    history: list[Event] = field(default_factory=list)
    least: tuple[float, int] = (float("inf"), 0)  # lowest held-out loss, and its epoch
    # Samples whose losses were known at the last record, and the sum of their losses.
    seen: tuple[int, float] = (0, 0.0)
    _waiting: list[Event] = field(default_factory=list)
    _measuring: bool = False

    @property
    def busy(self) -> bool:
        """Whether an evaluation is outstanding."""
        return self._measuring and self.evaluator is not None

    def make(self, epoch: int, seconds: float) -> None:
        """Record the end of an epoch; its loss is the mean over its samples, each before its own update."""
        (count, loss), (before, loss_before), samples = self.board.met(), self.seen, self.board.samples
        if count > before:
            met = (loss - loss_before) / (count - before)
        else:  # two epochs ended between two checks of the counters, so that no loss is known of the second
            met = (self._waiting or self.history or [{"loss": float("nan")}])[-1]["loss"]
        self.epoch, self.seen = epoch, (count, loss)
        self._waiting.append({
            "epoch": epoch, "updates": samples, "steps": self.board.steps, "seconds": round(seconds, 6),
            "step": self.rate(samples, seconds)[0], "loss": met, "objective": met,
        })  # fmt: skip

    def measure(self, seconds: float) -> None:
        """Request an evaluation of the last epoch, unless the evaluator is busy with an earlier one."""
        if self._waiting and not self._measuring and self.evaluator is not None:
            self._measuring = True
            self.evaluator.tell({
                "epoch": self._waiting[-1]["epoch"], "mean": self.mean_has_begun(seconds), "least": self.least[0],
            })  # fmt: skip

    def mean_has_begun(self, seconds: float) -> bool:
        """Return whether the averaging of iterates has begun."""
        return self.mean is not None and self.rate.spent(self.board.samples, seconds) > self.mean.begins

    def measured(self, what: Event) -> None:
        """Add the figures of an evaluation to the record of its epoch."""
        self._measuring = False
        for record in self._waiting:
            if record["epoch"] == what["epoch"]:
                record |= {f"test_{name}": value for name, value in what["figures"].items()}
        if what["figures"]["loss"] < self.least[0]:
            self.least = what["figures"]["loss"], what["epoch"]

    def ready(self) -> Iterator[Event]:
        """Yield the complete records, oldest first."""
        while self._waiting and not self.busy:
            if self.evaluator is not None and not any("test_loss" in record for record in self._waiting):
                return
            record = self._waiting.pop(0)
            self.history.append(record)
            yield record

    def reason_to_stop(self, record: Event) -> str:
        """Return the reason for which the run should end after this record; empty if there is none."""
        watched: float = record.get("test_loss", float("nan")) if self.watches_test else record["loss"]
        if self.budget.target is not None and watched <= self.budget.target:
            return "target"
        if self.budget.patience and "test_loss" in record and record["epoch"] - self.least[1] >= self.budget.patience:
            return "patience"
        return ""
