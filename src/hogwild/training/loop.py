"""The loop: epoch after epoch, watching the clock, the loss and the user."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.dataset import Dataset
from hogwild.run import Budget, Event
from hogwild.runtimes.polyak import Mean
from hogwild.schedules import Moment, Schedule, step_of
from hogwild.training.checkpoints import Checkpoints, check_same
from hogwild.training.clock import Clock, time_spent
from hogwild.training.guard import Guard
from hogwild.training.journal import Journal

State = tuple[NDArray[np.float32], ...]


@dataclass(slots=True)
class Position:
    """Where a run is. With the seed, it determines everything that is still to come."""

    epoch: int = 0
    chunk: int = 0
    updates: int = 0
    seconds: float = 0.0  # trained so far, over all sittings


@dataclass(slots=True)
class Best:
    """The parameters with the lowest held-out loss so far."""

    loss: float = float("inf")
    epoch: int = 0
    values: State = ()


@dataclass(eq=False)
class Loop:
    """One run in progress."""

    problem: Any
    schedule: Schedule
    session: Any
    budget: Budget
    test: Dataset | None
    average: float  # the share of the budget, counted from its end, over which iterates are averaged
    seed: int
    journal: Journal
    checkpoints: Checkpoints | None
    asked: dict[str, Any]
    guard: Guard
    position: Position = field(default_factory=Position)
    history: list[Event] = field(default_factory=list)
    best: Best = field(default_factory=Best)
    stopped: str = ""

    def run(self) -> State:
        """Train until something says stop; return the parameters to keep."""
        while not self.stopped:
            self._remember()
            if not self._walk_epoch():
                continue  # it exploded: once more from where the epoch began, with half the step
            ended = not self.stopped
            if ended:
                self.position.epoch, self.position.chunk = self.position.epoch + 1, 0
            record = self._evaluate()
            if self.guard.exploded(record["loss"]):
                self._go_back()
                continue
            self.history.append(record)
            self.journal.tell("epoch", **record)
            self._judge(record)
            if self.checkpoints and ended:
                self._save()
        return self._kept()

    # One epoch

    def _walk_epoch(self) -> bool:
        """Walk what is left of this epoch; say whether all went well."""
        walk = self.problem.data.epoch(self.seed, self.position.epoch)
        while self.position.chunk < len(walk):
            leg = self._leg(walk)
            mean = leg.loss / max(1, leg.updates - self.position.updates)
            self.position.chunk, self.position.updates = leg.next_chunk, leg.updates
            if self.guard.exploded(mean, leg.worst):
                self._go_back()
                return False
            if leg.interrupted:
                self.stopped = "interrupted"
            elif self.budget.seconds is not None and self.position.seconds >= self.budget.seconds:
                self.stopped = "seconds"
            if self.stopped:
                return True
            if self.position.chunk < len(walk):  # halted for a checkpoint
                self._save()
        return True

    def _leg(self, walk: Any) -> Any:
        started, before, halt = time.perf_counter(), self.position.seconds, threading.Event()

        def seconds() -> float:
            return before + time.perf_counter() - started

        clock = Clock(
            self.schedule, self.problem.data.n_rows, self.budget.epochs, self.guard.scale,
            time_spent(self.budget, seconds),
        )  # fmt: skip
        self._average(clock, seconds())

        def tick(updates: int) -> None:
            elapsed = seconds()
            self.journal.tell("progress", updates=updates, seconds=elapsed, fraction=self._fraction(updates, elapsed))
            out_of_time = self.budget.seconds is not None and elapsed >= self.budget.seconds
            if out_of_time or (self.checkpoints is not None and self.checkpoints.due):
                halt.set()

        leg = self.session.advance(walk, self.position.chunk, self.position.updates, clock.rates, halt, tick)
        self.position.seconds = seconds()
        return leg

    def _fraction(self, updates: int, seconds: float) -> float:
        by_epochs = updates / (self.problem.data.n_rows * self.budget.epochs) if self.budget.epochs else 0.0
        return min(1.0, max(by_epochs, seconds / self.budget.seconds if self.budget.seconds else 0.0))

    def _average(self, clock: Clock, seconds: float) -> None:
        begins = self.average and self._fraction(self.position.updates, seconds) >= 1 - self.average - 1e-9
        if begins and self.session.mean is None:
            self.session.mean = Mean(self.session.values())

    # Looking at it

    def _evaluate(self, state: State | None = None) -> Event:
        """Measure the parameters: on the training data, and on the held-out data if there is any."""
        values = self._current() if state is None else state
        measured = self._measure(self.problem.data, values)
        record = {
            "epoch": self.position.epoch,
            "updates": self.position.updates,
            "seconds": round(self.position.seconds, 6),
            "step": float(self.schedule(self._now())[0]) * self.guard.scale,
            **measured,
            "objective": measured["loss"] + self.problem.penalty(values),
        }
        if self.test is not None:
            record |= {f"test_{name}": value for name, value in self._measure(self.test, values).items()}
        return record

    def _measure(self, data: Dataset, values: State) -> dict[str, float]:
        try:
            sums = self.session.measure(data, values)
        except KeyboardInterrupt:  # the model that is left must come with its figures: once more
            self.stopped = "interrupted"
            sums = self.session.measure(data, values)
        metrics: dict[str, float] = self.problem.metrics(sums)
        return metrics

    def _now(self) -> Moment:
        updates = np.array([self.position.updates], float)
        fraction = np.array([self._fraction(self.position.updates, self.position.seconds)])
        return Moment(updates + 1, updates / self.problem.data.n_rows, fraction)

    def _current(self) -> State:
        mean = self.session.mean
        state: State = mean.values if mean is not None and mean.count else self.session.values()
        return state

    def _judge(self, record: Event) -> None:
        """Keep the best, and find a reason to stop."""
        watched = record["test_loss"] if self.test is not None else record["loss"]
        if self.test is not None and watched < self.best.loss:
            values = tuple(part.copy() for part in self._current()) if self.budget.patience else ()
            self.best = Best(watched, self.position.epoch, values)
        if self.stopped:
            return
        if self.budget.target is not None and watched <= self.budget.target:
            self.stopped = "target"
        elif self.budget.patience and self.position.epoch - self.best.epoch >= self.budget.patience:
            self.stopped = "patience"
        elif self.budget.epochs and self.position.epoch >= self.budget.epochs:
            self.stopped = "epochs"
        elif self.budget.seconds is not None and self.position.seconds >= self.budget.seconds:
            self.stopped = "seconds"

    def _kept(self) -> State:
        """The parameters the run is for: the best with patience, else the last."""
        if self.best.values:
            kept = self.best.values
            record = next(record for record in self.history if record["epoch"] == self.best.epoch)
        else:
            kept, record = self._current(), self.history[-1]
        self.journal.tell("result", stopped=self.stopped, **record)
        return kept

    # Going back, and going on later

    def _remember(self) -> None:
        self._good = tuple(part.copy() for part in self.session.state), Position(**asdict(self.position))

    def _go_back(self) -> None:
        state, position = self._good
        scale = self.guard.halve()
        for part, good in zip(self.session.state, state, strict=True):
            part[:] = good
        self.session.mean = None
        self.position = Position(position.epoch, position.chunk, position.updates, self.position.seconds)
        self.stopped = ""
        self.journal.tell("diverged", epoch=position.epoch, scale=scale, message=(
            f"the loss exploded in epoch {position.epoch + 1}: back to the last good parameters, with half the step"
        ))  # fmt: skip

    def _save(self) -> None:
        assert self.checkpoints is not None
        arrays = {f"state{k}": part for k, part in enumerate(self.session.state)}
        arrays |= {f"best{k}": part for k, part in enumerate(self.best.values)}
        mean = self.session.mean
        if mean is not None:
            arrays |= {f"mean{k}": part for k, part in enumerate(mean.values)}
        record = {
            "asked": self.asked,
            "position": asdict(self.position),
            "step": step_of(self.schedule),
            "halvings": self.guard.halvings,
            "start": self.guard.start,
            "best": [self.best.loss if self.best.epoch else None, self.best.epoch],
            "averaged": mean.count if mean is not None else 0,
            "history": self.history,
            "stopped": self.stopped,
        }
        self.checkpoints.save(arrays, record)
        self.journal.tell("checkpoint", epoch=self.position.epoch, chunk=self.position.chunk)

    def restore(self, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        assert self.checkpoints is not None
        check_same(self.asked, record["asked"], self.checkpoints.folder)
        for k, part in enumerate(self.session.state):
            part[:] = arrays[f"state{k}"]
        self.position = Position(**record["position"])
        self.guard.halvings, self.guard.start = record["halvings"], record["start"]
        loss, epoch = record["best"]
        values = tuple(arrays[f"best{k}"] for k in range(len(self.session.state))) if "best0" in arrays else ()
        self.best = Best(float("inf") if loss is None else loss, epoch, values)
        if "mean0" in arrays:
            means = tuple(arrays[f"mean{k}"] for k in range(len(self.session.state)))
            self.session.mean = Mean(means, record["averaged"])
        self.history = record["history"]
        if record["stopped"] in ("target", "patience"):
            self.stopped = record["stopped"]
        elif self.budget.epochs and self.position.epoch >= self.budget.epochs:
            self.stopped = "epochs"
        self.journal.tell("resumed", epoch=self.position.epoch, chunk=self.position.chunk)
