"""Epoch records of a module in training, with held-out figures from the evaluator, and the reasons to stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hogwild.events import Record
from hogwild.runtimes.processes import shared_counters as at
from hogwild.stopping import Budget, RecordInterval, held_out_value, stall_of, stop_reason

if TYPE_CHECKING:
    from hogwild.runtimes.processes.shared_counters import SharedCounters
    from hogwild.runtimes.processes.worker_config import SharedAverage, StepSize


class Evaluator(Protocol):
    """Process or object that evaluates held-out data on request."""

    def send(self, what: dict[str, Any]) -> None:
        """Accept a request for an evaluation; its figures arrive later."""


@dataclass(eq=False)
class EpochRecorder:
    """Recorder of epochs: makes a record at the end of each, requests its evaluation, and finds reasons to stop.

    The evaluator evaluates one epoch at a time, and workers do not wait for it. An epoch that ends during the
    evaluation of an earlier one may have no held-out figures.
    """

    counters: SharedCounters
    rate: StepSize
    budget: Budget
    every: RecordInterval = field(default_factory=RecordInterval)
    mean: SharedAverage | None = None
    evaluator: Evaluator | None = None
    watches_test: bool = False  # whether the budget's target applies to the held-out loss
    epoch: int = 0  # last epoch that has a record
    history: list[Record] = field(default_factory=list)
    least: tuple[float, int] = (float("inf"), 0)  # lowest held-out loss or monitored value, and its epoch
    # Samples whose losses were known at the end of the last epoch, and the sum of their losses.
    seen: tuple[int, float] = (0, 0.0)
    trained: Any = 0  # samples of each worker at the end of the last epoch
    _waiting: list[Record] = field(default_factory=list)
    _measuring: bool = False

    @property
    def busy(self) -> bool:
        """Whether an evaluation is outstanding."""
        return self._measuring and self.evaluator is not None

    def make(self, epoch: int, seconds: float) -> None:
        """Record the end of an epoch, or a moment within the epoch that follows ``epoch``.

        The loss is the mean over the samples since the end of the epoch before, each before its own update.
        """
        (count, loss), (before, loss_before), samples = self.counters.known_losses(), self.seen, self.counters.samples
        if count > before:
            met = (loss - loss_before) / (count - before)
        else:  # two epochs ended between two checks of the counters, so that no loss is known of the second
            met = (self._waiting or self.history or [{"loss": float("nan")}])[-1]["loss"]
        used = self._workers_used()
        if epoch > self.epoch:
            self.epoch, self.seen, self.trained = epoch, (count, loss), self.counters.counts[:, at.SAMPLES].copy()
        self._waiting.append({
            "epoch": epoch, "updates": samples, "steps": self.counters.steps, "seconds": round(seconds, 6),
            "workers_used": used, "step": self.rate(samples, seconds)[0], "loss": met,
            "objective": met,
        })  # fmt: skip

    def _workers_used(self) -> int:
        """Return the number of workers that have trained since the end of the last epoch.

        If none has, two epochs ended between two checks of the counters: return the number of the first.
        """
        found = int((self.counters.counts[:, at.SAMPLES] > self.trained).sum())
        return found or (self._waiting or self.history or [{}])[-1].get("workers_used", 0)

    def is_due(self, seconds: float) -> bool:
        """Return whether the last record is older than the interval of records between those of epochs."""
        last = (self._waiting or self.history or [{"updates": 0, "seconds": 0.0}])[-1]
        every, samples = self.every, self.counters.samples
        if every.updates is not None and samples // every.updates > last["updates"] // every.updates:
            return True
        return every.seconds is not None and seconds - last["seconds"] >= every.seconds

    def measure(self, seconds: float) -> None:
        """Request an evaluation of the last epoch, unless the evaluator is busy with an earlier one."""
        if self._waiting and not self._measuring and self.evaluator is not None:
            self._measuring = True
            last = self._waiting[-1]
            self.evaluator.send({
                "epoch": last["epoch"], "updates": last["updates"], "mean": self.mean_has_begun(seconds),
                "least": self.least[0],
            })  # fmt: skip

    def mean_has_begun(self, seconds: float) -> bool:
        """Return whether the averaging of iterates has begun."""
        return self.mean is not None and self.rate.spent(self.counters.samples, seconds) > self.mean.begins

    def measured(self, what: Record) -> None:
        """Add the figures of an evaluation to the record of its epoch."""
        self._measuring = False
        for record in self._waiting:
            if (record["epoch"], record["updates"]) == (what["epoch"], what["updates"]):
                record |= {f"test_{name}": value for name, value in what["figures"].items()}
        value = held_out_value({f"test_{name}": value for name, value in what["figures"].items()}, self.budget)
        if value < self.least[0]:
            self.least = value, what["epoch"]

    def ready(self) -> Iterator[Record]:
        """Yield the complete records, oldest first."""
        while self._waiting and not self.busy:
            if self.evaluator is not None and not any("test_loss" in record for record in self._waiting):
                return
            record = self._waiting.pop(0)
            self.history.append(record)
            yield record

    def reason_to_stop(self, record: Record) -> str:
        """Return the reason for which the run should end after this record; empty if there is none."""
        until = self.history[: self.history.index(record) + 1]
        return stop_reason(
            self.budget, until, held_out=self.watches_test, best_epoch=self.least[1],
            stalled_epochs=stall_of(until, self.budget).epochs, evaluated=False,
        )  # fmt: skip
