"""The records of a model in training: one for each epoch, with held-out figures as they come from the evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from hogwild.run import Budget, Event
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import IterateAverage, StepSize


class Evaluator(Protocol):
    """Whoever measures held-out data when told to."""

    def tell(self, what: dict[str, Any]) -> None:
        """Take an order; figures come later."""


@dataclass(eq=False)
class EpochRecorder:
    """Makes a record when an epoch is over, has it measured, and finds reasons to stop.

    The evaluator measures one epoch at a time, and workers do not wait for it: if it takes longer than an epoch, some
    records have no held-out figures.
    """

    board: SharedCounters
    rate: StepSize
    budget: Budget
    mean: IterateAverage | None = None
    evaluator: Evaluator | None = None
    watches_test: bool = False  # whether it is the held-out loss that must reach the target
    epoch: int = 0  # the last one of which there is a record
    history: list[Event] = field(default_factory=list)
    least: tuple[float, int] = (float("inf"), 0)  # held-out loss, and the epoch that had it
    seen: tuple[int, float] = (0, 0.0)  # samples whose losses were known, and their sum, at the last record
    _waiting: list[Event] = field(default_factory=list)
    _measuring: bool = False

    @property
    def busy(self) -> bool:
        """Whether figures are still to come."""
        return self._measuring and self.evaluator is not None

    def make(self, epoch: int, seconds: float) -> None:
        """An epoch is over: its loss is the mean of what each sample met."""
        (count, loss), (before, loss_before), samples = self.board.met(), self.seen, self.board.samples
        if count > before:
            met = (loss - loss_before) / (count - before)
        else:  # epochs so short that two were over at once
            met = (self._waiting or self.history or [{"loss": float("nan")}])[-1]["loss"]
        self.epoch, self.seen = epoch, (count, loss)
        self._waiting.append({
            "epoch": epoch, "updates": samples, "steps": self.board.steps, "seconds": round(seconds, 6),
            "step": self.rate(samples, seconds)[0], "loss": met, "objective": met,
        })  # fmt: skip

    def measure(self, seconds: float) -> None:
        """Have the last epoch measured, unless the evaluator is still busy with one before it."""
        if self._waiting and not self._measuring and self.evaluator is not None:
            self._measuring = True
            self.evaluator.tell({
                "epoch": self._waiting[-1]["epoch"], "mean": self.mean_has_begun(seconds), "least": self.least[0],
            })  # fmt: skip

    def mean_has_begun(self, seconds: float) -> bool:
        """Whether there is a mean of the iterates to look at."""
        return self.mean is not None and self.rate.spent(self.board.samples, seconds) > self.mean.begins

    def measured(self, what: Event) -> None:
        """Figures have come."""
        self._measuring = False
        for record in self._waiting:
            if record["epoch"] == what["epoch"]:
                record |= {f"test_{name}": value for name, value in what["figures"].items()}
        if what["figures"]["loss"] < self.least[0]:
            self.least = what["figures"]["loss"], what["epoch"]

    def ready(self) -> Iterator[Event]:
        """Records that wait for nothing any more, oldest first."""
        while self._waiting and not self.busy:
            if self.evaluator is not None and not any("test_loss" in record for record in self._waiting):
                return
            record = self._waiting.pop(0)
            self.history.append(record)
            yield record

    def reason_to_stop(self, record: Event) -> str:
        """Why a run should end after this record, if it should."""
        watched: float = record.get("test_loss", float("nan")) if self.watches_test else record["loss"]
        if self.budget.target is not None and watched <= self.budget.target:
            return "target"
        if self.budget.patience and "test_loss" in record and record["epoch"] - self.least[1] >= self.budget.patience:
            return "patience"
        return ""
