"""Training loop of runs on threads: epochs, evaluation, divergence guard, checkpoints and limits of the budget."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Dataset, Epoch, EpochPlan
from hogwild.data.packing.mapped_arrays import check_mapped_files
from hogwild.data.slices import copied
from hogwild.data.subsample import spread_sample
from hogwild.errors import CheckpointError
from hogwild.events import EventLog, Parameters, Record
from hogwild.iterate_average import IterateAverage
from hogwild.lazy import cached_property
from hogwild.runtimes.state_copy import HostCopy
from hogwild.schedules import Moment, Schedule, step_of
from hogwild.signals import Interrupt
from hogwild.stopping import (
    Budget,
    DivergenceGuard,
    RecordInterval,
    Stall,
    all_finite,
    held_out_value,
    limit_reached,
    monitored_value,
    stop_reason,
)
from hogwild.training.checkpoints import (
    Best,
    Checkpoints,
    Position,
    Snapshot,
    State,
    check_same,
    completed,
    saved_best,
    saved_snapshot,
    snapshot,
)
from hogwild.training.step_sizes import (
    EpochPrefetch,
    SplitEpoch,
    StepSizes,
    prefetch_epoch,
    split_epoch,
    time_spent,
)

# Number of rows up to which several epochs are prefetched together. Python code runs slowly when it first runs after a
# kernel, and such short epochs do not amortise that one by one.
FEW_ROWS = 2**14
# Largest number of rows of a chunk for delayed workers. Where a segment of the epoch ends, they finish their chunks
# without delay.
DELAYED_ROWS = 64
SEVERAL = 8  # number of short epochs that are prefetched together
# Non-zeros below which every record is evaluated on all rows: that takes a few milliseconds.
WHOLE_NONZEROS = 2**22
# Least number of rows of a sample for evaluation, and the part of larger data that it is.
LEAST_SAMPLE, SAMPLED_PART = 10_000, 16
DUAL_EPOCHS = 2  # number of epochs of dual coordinate ascent for which a copy of the rows pays
FEW_STEPS = 2**20  # number of step sizes that are computed in advance, however little memory there is: 4 MiB


@dataclass(frozen=True, slots=True)
class EpochPrefix:
    """Chunks of an epoch before chunk ``end``."""

    epoch: Epoch
    end: int
    at_once: bool = True  # whether the step sizes of all its chunks are known in advance

    def __len__(self) -> int:
        return self.end

    def __getitem__(self, number: int) -> Chunk:
        return self.epoch[number]

    def done(self, number: int) -> None:
        """Mark a chunk of the underlying epoch as done."""
        self.epoch.done(number)

    def whole(self) -> EpochPlan | None:
        """Return the plan of all these chunks; None if the data is not in memory or step sizes depend on time."""
        found = self.epoch.whole() if self.at_once else None
        if found is None or self.end + 1 == len(found.starts):
            return found
        return replace(found, starts=found.starts[: self.end + 1])


@dataclass(eq=False)
class TrainingLoop:
    """Training loop of one run, with its position, history and best parameters."""

    problem: Any
    schedule: Schedule
    session: Any
    budget: Budget
    test: Dataset | None
    average: float  # last share of the budget, over which iterates are averaged
    seed: int
    event_log: EventLog
    checkpoints: Checkpoints | None
    config: dict[str, Any]
    guard: DivergenceGuard
    to_model_space: Callable[[State], State]  # from parameters in training to those of the model
    position: Position = field(default_factory=Position)
    history: list[Record] = field(default_factory=list)
    best: Best = field(default_factory=Best)
    stall: Stall = field(default_factory=Stall)
    interrupt: Interrupt = field(default_factory=Interrupt)
    stop_reason: str = ""
    earlier: int = 0  # updates of runs before this one
    shuffle: bool = True  # False: every epoch visits the rows in stored order
    every: RecordInterval = field(default_factory=RecordInterval)  # interval of records between those of epochs
    measured: bool = True  # False: the loss of an epoch is the mean loss of its terms, each before its own update
    _ahead: dict[int, EpochPrefetch] = field(default_factory=dict)  # prefetched epochs, by number
    # Copy of the data in an order that is faster to visit; None: epochs visit the data itself.
    _laid_out_data: Dataset | None = None
    _good: Snapshot = field(init=False)  # snapshot to which the loop rolls back after a divergence
    _is_renumbered: bool = False  # whether features of that copy have the numbers of the session's replicas
    _was_laid_out: bool | None = None  # whether dual variables of a checkpoint are in the order of a copy
    _own_snapshot: Snapshot | None = None  # the last snapshot of this loop, whose memory the next one uses
    _trained: frozenset[int] = frozenset()  # numbers of the workers that made updates in this epoch

    def run(self) -> State:
        """Train until a limit is reached, and return the parameters to keep."""
        try:
            self._lay_out()
            self._train()
        finally:
            self.__dict__.pop("_sample", None)  # It may be a part of the copy.
            self._laid_out_data, self._ahead = None, {}  # release their memory: the caller may keep this object
        return self._kept()

    def _train(self) -> None:
        while not self.stop_reason:
            if self.position.chunk == 0:
                self.position.met_loss, self.position.met_terms = 0.0, 0
                self._trained = frozenset()
                self._good = self._own_snapshot = snapshot(self.session, self.position, self._own_snapshot)
            if self._train_epoch() and self._record_epoch() and self.checkpoints:
                self._save()
        while self._unrecorded:  # the last epoch was interrupted in its middle
            self._record_epoch()

    @cached_property
    def _data(self) -> Dataset:
        """The rows, in epochs that draw them as the problem's sampling says."""
        data: Dataset = self.problem.training
        return data

    def _lay_out(self) -> None:
        """Copy the rows into an order that is faster to visit, if the remaining epochs are worth it."""
        started, epochs = time.perf_counter(), self.budget.epochs or math.inf
        left = epochs - self.position.epoch
        if self.session.has_duals:  # Dual variables are in the order of the rows, also in a run that is resumed.
            left = math.inf if self._was_laid_out or epochs >= DUAL_EPOCHS else 0.0
        any_order = self.session.reads_in_any_order
        if self.shuffle and not any_order and not self.stop_reason and self._was_laid_out is not False:
            replicas = self.session.buffers
            numbers = None if replicas is None else replicas.numbers
            self._laid_out_data = self._data.laid_out(self.seed, left, numbers)
            if self._laid_out_data is not None and numbers is not None:
                replicas.renumber()
                self._is_renumbered = True
            if self._was_laid_out and self._laid_out_data is None:
                raise CheckpointError("There is too little memory to resume the run: rows must be copied once more.")
            self.position.seconds += time.perf_counter() - started

    # Epochs

    def _train_epoch(self) -> bool:
        """Train on the rest of this epoch; return whether its end was reached."""
        started = time.perf_counter()
        if self.problem.data.n_rows <= FEW_ROWS and self.position.epoch not in self._ahead:
            self._prepare(self._clock(), self.position.epoch, SEVERAL)
        epoch = self._epoch(self.position.epoch)
        chunks = len(epoch)
        self.position.seconds += time.perf_counter() - started
        while self.position.chunk < chunks and not self.stop_reason:
            segment = self._train_segment(epoch)
            check_mapped_files()
            terms = segment.updates - self.position.updates
            mean = segment.loss / max(1, terms)
            self.position.met_loss += segment.loss
            self.position.met_terms += terms
            self._trained |= segment.workers
            self.position.chunk, self.position.updates = segment.next_chunk, segment.updates
            if segment.interrupted or self.interrupt.pressed:
                self.stop_reason = "interrupted"
            elif self._out_of_time(self.position.seconds):
                self.stop_reason = "seconds"
            if self.guard.has_diverged(mean, segment.worst):
                self._go_back()
                return False
            in_between = self.position.chunk < chunks
            due = in_between and self._record_is_due(self.position.updates, self.position.seconds)
            if due and not self.stop_reason and not self._record_epoch():
                return False
            if self.checkpoints and in_between and (self.stop_reason or self.checkpoints.due):
                self._save()
        if self.position.chunk < chunks:
            return False
        self.position.epoch, self.position.chunk = self.position.epoch + 1, 0
        return True

    def _epoch(self, number: int) -> Epoch:
        epoch, rows = self._shuffled(number), self.problem.data.n_rows
        most = DELAYED_ROWS if self.session.delays else None
        plan = None if self.every.updates is None and most is None else epoch.whole()
        return epoch if plan is None else split_epoch(plan, self.every.updates, number * rows, most)

    def _shuffled(self, number: int) -> Epoch:
        if number in self._ahead:
            return self._ahead[number].epoch
        data = self._laid_out_data or self._data
        if not self.shuffle:
            return data.in_order()
        draw = data.random_epoch if self.session.reads_in_any_order else data.epoch
        return draw(self.seed, number)

    def _prepare(self, clock: StepSizes, first: int, epochs: int) -> None:
        """Prefetch ``epochs`` epochs from number ``first`` on, as far as the budget has them."""
        last = first + epochs if self.budget.epochs is None else min(first + epochs, self.budget.epochs)
        if clock.known and first not in self._ahead:
            rows = self.problem.data.n_rows
            steps = self.session.needs_all_steps
            found = (
                prefetch_epoch(number, self._shuffled(number), clock, rows, steps) for number in range(first, last)
            )
            self._ahead = {ahead.number: ahead for ahead in found if ahead is not None}

    def _steps(self, clock: StepSizes, left: int) -> Any:
        """Return the precomputed step sizes for the rest of an epoch.

        Return None if they depend on time, or if more than ``FEW_STEPS`` remain that were not prefetched.
        """
        found, before = self._ahead.get(self.position.epoch), self.position.updates
        if found is not None and (found.clock, found.before) == (clock, before):
            return found.steps
        return clock.ahead(before, left) if left <= FEW_STEPS else None

    def _clock(self, seconds: Callable[[], float] = float) -> StepSizes:
        spent = float if self.schedule.is_constant else time_spent(self.budget, seconds)
        return StepSizes(
            self.schedule, self.problem.data.n_rows, self.budget.epochs, self.guard.scale, spent, self.earlier,
            self.session.precision, 1 if self.session.alone_by_rule else self.problem.updates_per_step,
        )  # fmt: skip

    def _train_segment(self, epoch: Epoch) -> Any:
        started, before, halt = time.perf_counter(), self.position.seconds, threading.Event()

        def seconds() -> float:
            return before + time.perf_counter() - started

        clock = self._clock(seconds)

        def tick(updates: int) -> None:
            elapsed = seconds()
            self.event_log.emit("progress", updates=updates, seconds=elapsed, fraction=self._fraction(updates, elapsed))
            due = self.checkpoints is not None and self.checkpoints.due
            due = due or self._record_is_due(updates, elapsed)
            if due or self.interrupt.pressed or self._out_of_time(elapsed) or self._time_to_average(elapsed):
                halt.set()

        left = self.problem.data.n_rows * (self.position.epoch + 1) - self.position.updates
        end, short = self._averaging_begins(len(epoch)), False
        if isinstance(epoch, SplitEpoch):
            end = min(end, epoch.next_record(self.position.chunk))
            left, short = epoch.terms(self.position.chunk, end), epoch.fits_in_chunk(self.position.chunk, end)
        rates = self._steps(clock, left) or clock.rates if self.session.needs_all_steps else clock.spread
        # Step sizes that depend on time are computed chunk by chunk, and so are those of as few rows.
        part = EpochPrefix(epoch, end, at_once=clock.known or short)
        segment = self.session.advance(
            part, self.position.chunk, self.position.updates, rates, halt, tick,
            partial(self._prepare, clock, self.position.epoch + 1, 1), short,
        )  # fmt: skip
        self.position.seconds = seconds()
        tick(segment.updates)
        return segment

    def _fraction(self, updates: int, seconds: float) -> float:
        by_epochs = updates / (self.problem.data.n_rows * self.budget.epochs) if self.budget.epochs else 0.0
        return min(1.0, max(by_epochs, seconds / self.budget.seconds if self.budget.seconds else 0.0))

    def _out_of_time(self, seconds: float) -> bool:
        return self.budget.seconds is not None and seconds >= self.budget.seconds

    def _averaging_begins(self, chunks: int) -> int:
        """Start averaging if its time has come; otherwise return the chunk of this epoch at which averaging starts.

        The start is a number of chunks, not a check that happens between two legs. The average is then the same
        wherever checkpoints or interrupts divide the run.
        """
        if not self.average or self.session.mean is not None:
            return chunks
        begins = chunks
        if self.budget.epochs:
            begins = round((1 - self.average) * self.budget.epochs * chunks) - self.position.epoch * chunks
        if self.position.chunk >= begins or self._time_to_average(self.position.seconds):
            self.session.mean = IterateAverage(self.session.values())
            return chunks
        return min(begins, chunks)

    def _time_to_average(self, seconds: float) -> bool:
        if not self.average or self.budget.seconds is None or self.session.mean is not None:
            return False
        return seconds >= (1 - self.average) * self.budget.seconds

    # Evaluation

    def _record_is_due(self, updates: int, seconds: float) -> bool:
        """Return whether the last record is older than the interval of records."""
        last, every = self.history[-1] if self.history else {"updates": 0, "seconds": 0.0}, self.every
        if every.updates is not None and updates // every.updates > last["updates"] // every.updates:
            return True
        return every.seconds is not None and seconds - last["seconds"] >= every.seconds

    @property
    def _unrecorded(self) -> bool:
        return not self.history or self.history[-1]["updates"] != self.position.updates

    def _record_epoch(self) -> bool:
        """Evaluate the parameters, and record them; roll back to the last good ones if they have diverged.

        Return whether the parameters were recorded.
        """
        record = self._evaluate()
        bad = self.guard.has_diverged(record["loss"]) or not self._is_finite(record)
        if bad and self.position.updates > self._good.position.updates:
            self._go_back()
            return False
        self.history.append(record)
        self.event_log.emit("epoch", self._parameters, **record)
        self._check_limits(record)
        return True

    def _is_finite(self, record: Record) -> bool:
        """Return whether all parameters are finite; the objective tells it of those whose squares it contains."""
        if not math.isfinite(record["objective"]):
            return False
        known = 1 if self.problem.penalises_all_weights and self.session.mean is None else 0
        return self.session.penalty_tells_finite or all_finite(
            part[:, 0] for part in self.session.state_to_read[known:]
        )

    @cached_property
    def _sample(self) -> Dataset | None:
        """The rows on which records before the last are evaluated; None for all rows.

        Data that is walked through in a few milliseconds is evaluated as a whole, and so is any data whose training
        loss decides when the run ends, or of which memory has no room for a sample.
        """
        data = self.problem.data
        rows = sampled_rows(data)
        if not (self.measured and self.session.evaluates_samples and rows) or self.budget.depends_on_loss:
            return None
        return spread_sample(self._laid_out_data or data, rows)

    def _evaluate(self) -> Record:
        """Return the figures of the present parameters on the training data and on held-out data, if there is any."""
        values = self._mean_values or self.session.present
        if self.measured:
            ends = self.stop_reason or limit_reached(self.budget, self.position.epoch, self.position.seconds)
            sample = None if ends else self._sample
            renumbered = sample is not None and self._is_renumbered
            judged = self.session.buffers.renumbered(values) if renumbered else values
            measured = self.problem.metrics(self.session.measure(sample or self.problem.data, judged))
            measured |= {} if sample is None else {"sampled_rows": sample.n_rows}
        else:
            measured = {"loss": self.position.met_loss / max(1, self.position.met_terms)}
        record = {
            "epoch": self.position.epoch,
            "updates": self.position.updates,
            "seconds": round(self.position.seconds, 6),
            "workers_used": len(self._trained),
            "step": float(self.schedule(self._now())[0]) * self.guard.scale,
            **measured,
            "objective": measured["loss"] + self.session.penalty(values),
        }
        if self.test is not None:
            held_out = self.problem.metrics(self.session.measure(self.test, values))
            record |= {f"test_{name}": value for name, value in held_out.items()}
        return record

    def _now(self) -> Moment:
        updates = np.array([self.position.updates], float)
        fraction = np.array([self._fraction(self.position.updates, self.position.seconds)])
        return Moment(updates + self.earlier + 1, updates / self.problem.data.n_rows, fraction)

    def _current(self) -> State:
        """Return the present parameters, not copied."""
        state: State = self._mean_values or self.session.current()
        return state

    @property
    def _mean_values(self) -> State | None:
        mean = self.session.mean
        return mean.values if mean is not None and mean.count else None

    def _parameters(self) -> Parameters:
        return tuple(np.array(part) for part in self.to_model_space(self._current()))

    def _check_limits(self, record: Record) -> None:
        """Keep the best parameters, and set the stop reason if a limit is reached."""
        if self.test is not None and held_out_value(record, self.budget) < self.best.loss:
            # Without patience the last parameters are kept, so these need no copy.
            values = tuple(copied(part) for part in self._current()) if self.budget.patience else ()
            self.best = Best(held_out_value(record, self.budget), self.position.epoch, values)
        if self.position.chunk == 0:
            self._watch_for_stalls(record)
        pressed = "interrupted" if self.interrupt.pressed else ""
        self.stop_reason = self.stop_reason or self._reason_to_stop() or pressed

    def _reason_to_stop(self) -> str:
        return stop_reason(
            self.budget, self.history, held_out=self.test is not None, best_epoch=self.best.epoch,
            stalled_epochs=self.stall.epochs, evaluated=self.measured,
        ) or limit_reached(self.budget, self.position.epoch, self.position.seconds)  # fmt: skip

    def _watch_for_stalls(self, record: Record) -> None:
        """Count epochs without an improvement of the monitored value.

        After ``stall_epochs`` of them, continue with the smaller step size that the schedule offers, if it offers one.
        """
        if self.budget.tolerance is None:
            return
        if self.budget.monitor == "training_objective":
            value: float | None = self.session.take_objective() / max(1, self.position.met_terms)
        else:
            value = monitored_value(record, self.budget)
        assert value is not None
        self.stall = self.stall.after(value, self.budget.tolerance)
        smaller = self.schedule.after_stall()
        if self.stall.epochs >= self.budget.stall_epochs and smaller is not None:
            self.schedule, self.stall = smaller, replace(self.stall, epochs=0)

    def _kept(self) -> State:
        """Return the parameters to keep: the best with ``patience``, else the last."""
        kept, record = tuple(copied(part) for part in self._current()), self.history[-1]
        if self.budget.patience and self.best.values:
            kept = self.best.values
            record = next(record for record in self.history if held_out_value(record, self.budget) == self.best.loss)
        if record.pop("sampled_rows", None) is not None:
            record |= self.problem.metrics(self.session.measure(self.problem.data, kept))
            record["objective"] = record["loss"] + self.problem.penalty(kept)
        self.event_log.emit(
            "result", lambda: tuple(np.array(part) for part in self.to_model_space(kept)),
            stop_reason=self.stop_reason, **record,
        )  # fmt: skip
        return kept

    # Rollback and checkpoints

    def _go_back(self) -> None:
        """Restore the parameters from the start of the epoch, and halve the step size of the following updates."""
        good, epoch = self._good, self._good.position.epoch
        good.put_back(self.session)
        self.position = replace(good.position, seconds=self.position.seconds)
        self.history = [record for record in self.history if record["updates"] <= good.position.updates]
        message = f"the loss exploded in epoch {epoch + 1}: back to the last good parameters"
        if self.stop_reason:
            self.event_log.emit("diverged", epoch=epoch, scale=self.guard.scale, message=message)
        else:
            scale = self.guard.halve()
            self.event_log.emit("diverged", epoch=epoch, scale=scale, message=message + ", with half the step")

    def _save(self) -> None:
        assert self.checkpoints is not None
        # A checkpoint in the middle of an epoch also has the parameters at its start: the loop rolls back to them after
        # a divergence.
        moments = {"now": Snapshot(self.position, HostCopy(self.session.state_to_read), self.session.mean)}
        if self.position.chunk:
            moments["good"] = self._good
        arrays, best = self.best.saved()
        record: dict[str, Any] = {
            "config": self.config,
            "step": step_of(self.schedule),
            "halvings": self.guard.halvings,
            "start": self.guard.start,
            "best": best,
            "stall": [self.stall.best, self.stall.epochs],
            "history": self.history,
            "laid_out": self._laid_out_data is not None if self.session.has_duals else None,
            "trained": sorted(self._trained),
        }
        for name, moment in moments.items():
            parts, record[name] = moment.saved(name)
            arrays |= parts
        self.checkpoints.save(arrays, record)
        self.event_log.emit("checkpoint", epoch=self.position.epoch, chunk=self.position.chunk)

    def restore(self, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Restore the run from a checkpoint.

        Raises
        ------
        CheckpointError
            If the checkpoint belongs to another run, or is incomplete.
        """
        assert self.checkpoints is not None
        folder = self.checkpoints.folder
        try:
            check_same(self.config, record["config"], folder)
            self.guard.halvings, self.guard.start = int(record["halvings"]), float(record["start"])
            self.history, self.best = list(record["history"]), saved_best(arrays, record["best"])
            self.stall = Stall(float(record["stall"][0]), int(record["stall"][1]))
            self._was_laid_out = record.get("laid_out")
            self._trained = frozenset(record.get("trained", ()))
            now = saved_snapshot("now", arrays, record["now"])
            now.put_back(self.session)
            self.position = now.position
            if "good" in record:
                self._good = saved_snapshot("good", arrays, record["good"])
            self.stop_reason = self._reason_to_stop() if self.history else ""
            if self._out_of_time(self.position.seconds):
                self.stop_reason = self.stop_reason or "seconds"
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as reason:
            raise CheckpointError(f"{folder}: the checkpoint is incomplete or inconsistent ({reason}).") from None
        end = completed(self.position.epoch, self.stop_reason)
        self.event_log.emit("resumed", epoch=self.position.epoch, chunk=self.position.chunk, **end)


def sampled_rows(data: Dataset) -> int:
    """Return the number of rows of a sample on which records are evaluated; 0 where all rows are."""
    rows = max(LEAST_SAMPLE, data.n_rows // SAMPLED_PART)
    small = data.nonzeros < WHOLE_NONZEROS or rows > data.n_rows // 2
    return 0 if small or data.bounded else rows
