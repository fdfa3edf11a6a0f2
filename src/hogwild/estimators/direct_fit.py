"""Fits by a single worker, each in one call of compiled code: the updates of scikit-learn's SGD in the same order.

Nothing is sampled, copied, laid out or reported on the way, so that a small fit takes no longer than its updates.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from hogwild.data import InMemoryDataset
from hogwild.data.chunks import number_type
from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import Dataset
from hogwild.estimators.fit import (
    NOT_CONVERGED,
    SPARSE_INTERCEPT_STEP,
    Learnt,
    Task,
    diverged_message,
    overflow_message,
)
from hogwild.estimators.inputs import Reshuffled, matrix_of
from hogwild.estimators.sklearn_parameters import Parts, same_as_sklearn
from hogwild.kernels import linear_epochs as fit
from hogwild.kernels.linear_build import train_classes, train_output
from hogwild.rules import Sequential
from hogwild.schedules import Adaptive, Constant, InverseScaling, Optimal
from hogwild.stopping import DIVERGENCE_FACTOR

# Values that a call passes over: some tenths of a second between two checks for Ctrl-C.
INTERRUPTIBLE = 2**25
NO_SHUFFLE = -1
# Non-zeros times classes from which on threads pay: an epoch then takes about a millisecond.
WORTH_A_THREAD = 2**19
NUMBERS = {Optimal: fit.OPTIMAL, InverseScaling: fit.INVERSE_SCALING, Adaptive: fit.ADAPTIVE, Constant: fit.CONSTANT}


def fits_directly(params: Mapping[str, Any], data: Dataset) -> bool:
    """Return whether a single worker fits arrays, with parameters that scikit-learn has too."""
    arrays = isinstance(data, InMemoryDataset) and data.name == "arrays"
    return arrays and same_as_sklearn(params) and not params["identical_to_sklearn"]


def learn_directly(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    """Train all classes in one pass over the rows where that is faster, else each output by itself.

    Classes are divided among threads, which share no weights: the result is the same for any number of them.
    """
    assert isinstance(task.data, InMemoryDataset)
    if task.labels.counts:
        task.labels.encode(task.data.rows.labels)  # raises an error for negative counts
    if _in_one_pass(task, parts, params):
        return _classes_together(task, parts, params)
    return _outputs_apart(task, parts, params)


def _in_one_pass(task: Task, parts: Parts, params: Mapping[str, Any]) -> bool:
    """Return whether one pass trains all classes: the rows are sparse, and the loop has all that is asked for."""
    rule, data = parts.rule, task.data
    assert isinstance(rule, Sequential)
    assert isinstance(data, InMemoryDataset)
    plain = rule.step_size == "scheduled" and not parts.l1 and not rule.average_from and not params["verbose"]
    return task.labels.outputs > 1 and data.layout == "sparse" and data.ids is None and plain


def _outputs_apart(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    count = task.labels.outputs
    weights = task.labels.weights(task.class_weight, task.data)
    held_out = None if task.held_out is None else HeldOut.of(task.held_out, task.labels.classes)
    outputs = [_begun(task, parts, params, k) for k in range(count)]
    for k, one in enumerate(outputs):
        one.constants[[fit.NEGATIVE_WEIGHT, fit.POSITIVE_WEIGHT]] = weights if count == 1 else (1.0, weights[k])
    verbose = bool(params["verbose"])
    _side_by_side(
        [partial(one.train, k, parts, held_out, verbose=verbose) for k, one in enumerate(outputs)],
        1 if verbose else _threads(task), outputs,
    )  # fmt: skip
    found = [one.mean() for one in outputs]
    states = [np.column_stack(part).reshape(-1, 1) for part in zip(*(one.last() for one in outputs), strict=True)]
    return Learnt(
        np.column_stack([w for w, _ in found]), np.concatenate([b for _, b in found]), (states[0], states[1]),
        max(one.epochs for one in outputs), None,
        frozenset().union(*(_warnings(one.progress, parts, one.targets) for one in outputs)),
    )  # fmt: skip


def _classes_together(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    data, classes = task.data, task.labels.classes
    assert isinstance(data, InMemoryDataset)
    assert classes is not None
    rows, count, dtype = data.rows, len(classes), np.dtype(parts.rule.precision)
    weights = task.start[0][:, 0].reshape(rows.features, count).astype(dtype)
    progress = np.array([_progress(task, parts, k, weights[:, k]) for k in range(count)])
    together = ClassesFit(
        rows, np.searchsorted(classes, rows.labels), np.asarray(rows.weights, np.float64), _order(data),
        np.asarray(task.labels.weights(task.class_weight, data), np.float64), _constants(task, parts, params, 0),
        train_classes(rows.layout, parts.loss.function, parts.loss.ours),
    )  # fmt: skip
    threads = min(_threads(task), -(-count // fit.CLASSES_AT_A_TIME))
    groups = np.array_split(np.arange(count), threads)
    each = [replace(together, order=together.order.copy(), constants=together.constants.copy()) for _ in groups]
    epochs = parts.budget.epochs or 1
    _side_by_side(
        [partial(one.train, weights, progress, epochs, group) for one, group in zip(each, groups, strict=True)],
        threads, each,
    )  # fmt: skip
    intercept = progress[:, fit.INTERCEPT].astype(dtype)
    targets = _targets(rows.labels, classes, 0)
    return Learnt(
        weights, intercept, (weights.reshape(-1, 1).copy(), intercept.reshape(-1, 1).copy()),
        int(progress[:, fit.EPOCHS].max()), None,
        frozenset().union(*(_warnings(one, parts, targets) for one in progress)),
    )  # fmt: skip


def _threads(task: Task) -> int:
    """Return the number of threads among which classes are divided; a small fit ends before a thread has started."""
    work = task.data.nonzeros * task.labels.outputs
    return min(task.threads, task.labels.outputs) if work >= WORTH_A_THREAD else 1


def _side_by_side(tasks: list[Callable[[], None]], threads: int, fits: Sequence[OutputFit | ClassesFit]) -> None:
    """Do tasks on a number of threads. If one fails, or on Ctrl-C, the others end after their next call."""
    if threads == 1:
        for task in tasks:
            task()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="hogwild-fit") as pool:
        try:
            for done in [pool.submit(task) for task in tasks]:
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for one in fits:
                one.constants[fit.MAX_EPOCHS] = 0
            raise


def _targets(labels: Array, classes: Array | None, k: int) -> Array:
    if classes is None:
        return np.asarray(labels, np.float64)
    return np.where(labels == classes[1 if len(classes) == 2 else k], 1.0, -1.0)


def _order(data: InMemoryDataset) -> Array:
    ids = np.arange(len(data.rows)) if data.ids is None else data.ids
    return ids.astype(number_type(len(data.rows)))


def _begun(task: Task, parts: Parts, params: Mapping[str, Any], k: int) -> OutputFit:
    """Return the fit of output ``k`` before its first update."""
    rule, data = parts.rule, task.data
    assert isinstance(rule, Sequential)
    assert isinstance(data, InMemoryDataset)
    rows, weights = data.rows, np.array(task.start[0][k :: task.labels.outputs, 0], rule.precision)
    return OutputFit(
        rows, _targets(rows.labels, task.labels.classes, k), np.asarray(rows.weights, np.float64), _order(data),
        weights, np.zeros((weights.size if parts.l1 or rule.average_from else 0, 3)),
        _progress(task, parts, k, weights), _constants(task, parts, params, k),
        train_output(rows.layout, rule.step_size, parts.loss.function, parts.loss.ours),
    )  # fmt: skip


def _progress(task: Task, parts: Parts, k: int, weights: Array) -> Array:
    """Return the numbers that output ``k`` starts with."""
    progress = np.zeros(fit.PROGRESS)
    progress[[fit.INTERCEPT, fit.SCALE, fit.LARGEST]] = task.start[1][k, 0], 1.0, 1.0
    progress[[fit.UPDATES, fit.BEST, fit.SQUARES]] = task.earlier, math.inf, np.vdot(weights, weights)
    if not isinstance(parts.schedule, Optimal):
        progress[fit.STEP] = parts.schedule.step
    return progress


def _constants(task: Task, parts: Parts, params: Mapping[str, Any], k: int) -> Array:
    """Return the constants of the fit of output ``k``."""
    rule, schedule, budget, constants = parts.rule, parts.schedule, parts.budget, np.zeros(fit.CONSTANTS)
    assert isinstance(rule, Sequential)
    constants[[fit.ALPHA, fit.L1_RATIO]] = rule.mixture(parts.l1, parts.l2)
    constants[fit.SCHEDULE] = next(number for kind, number in NUMBERS.items() if isinstance(schedule, kind))
    if isinstance(schedule, Optimal):
        constants[[fit.T0, fit.STEP_ALPHA]] = schedule.t0, schedule.alpha
    elif isinstance(schedule, InverseScaling):
        constants[fit.POWER] = schedule.power
    assert isinstance(task.data, InMemoryDataset)
    step = 1.0 if task.data.layout == "dense" else SPARSE_INTERCEPT_STEP
    constants[[fit.INTERCEPT_STEP, fit.INTERCEPT_GRADIENT]] = step * params["fit_intercept"], task.intercept_gradient
    constants[fit.AVERAGE_FROM] = rule.average_from + task.earlier if rule.average_from else 0
    if budget.tolerance is not None:
        constants[[fit.TOLERANCE, fit.PATIENCE]] = budget.tolerance, budget.stall_epochs
        if rule.track_objective:
            constants[fit.MONITOR] = fit.PENALISED_LOSS if rule.step_size == "scheduled" else fit.LOSS
    constants[[fit.PARAMETER, fit.SEED]] = parts.loss.parameter, task.seeds[k] if params["shuffle"] else NO_SHUFFLE
    return constants


def _warnings(progress: Array, parts: Parts, targets: Array) -> set[str]:
    """Return the warnings about a fit: divergence, or no convergence within the maximum number of epochs."""
    end, stops = float(progress[fit.MEAN_LOSS]), parts.budget.tolerance is not None
    if end > DIVERGENCE_FACTOR:
        start = float(np.mean([parts.loss(0.0, y)[0] for y in targets[:1000]]))
        if end > DIVERGENCE_FACTOR * max(start, 1.0):
            return {diverged_message(start, end)}
    return {NOT_CONVERGED} if stops and progress[fit.DONE] == fit.RUNNING else set()


def _check_finite(progress: Array) -> None:
    """Raise an error if a parameter is not finite any more."""
    if progress[fit.DONE] == fit.OVERFLOWED:
        raise ValueError(overflow_message(f"epoch #{int(progress[fit.EPOCHS])}", "A smaller eta0 might help too."))


@dataclass(frozen=True, slots=True, eq=False)
class OutputFit:
    """Fit of one output: its rows, its parameters, and the numbers that the compiled code carries from call to call."""

    rows: CSRRows
    targets: Array
    sample_weights: Array
    order: Array
    weights: Array
    columns: Array
    progress: Array
    constants: Array
    kernel: Any

    @property
    def epochs(self) -> int:
        """The number of complete epochs."""
        return int(self.progress[fit.EPOCHS])

    def train(self, k: int, parts: Parts, held_out: HeldOut | None, *, verbose: bool) -> None:
        """Train output ``k`` until the fit has converged, or for all epochs of the budget."""
        epochs = parts.budget.epochs
        assert epochs is not None
        if held_out is None and not verbose and len(self.order) == len(self.rows):
            return self.run(epochs)
        ids, seed = self.order.copy(), self.constants[fit.SEED]
        order, self.constants[fit.SEED] = Reshuffled(len(self.rows)), NO_SHUFFLE
        while self.epochs < epochs and self.progress[fit.DONE] == fit.RUNNING:
            if seed != NO_SHUFFLE:
                self.order[:] = order(ids, int(seed), self.epochs)
            self.run(self.epochs + 1)
            if held_out is not None and parts.budget.tolerance is not None:
                fit.judge(self.progress, self.constants, -held_out.score(k, *self.mean()))
            if verbose:
                sys.stdout.write(self.line())
        return None

    def run(self, epochs: int) -> None:
        """Train until the fit has converged, or has made this number of epochs.

        Raises
        ------
        ValueError
            If a parameter is not finite any more.
        """
        rows, progress = self.rows, self.progress
        self.constants[fit.MAX_EPOCHS] = epochs
        updates = max(1, INTERRUPTIBLE * len(rows) // max(1, rows.nonzeros))
        indptr, indices, values, *_ = rows.arrays
        while progress[fit.DONE] == fit.RUNNING and self.epochs < epochs:
            self.kernel(
                indptr, indices, values, self.targets, self.sample_weights, self.order, self.weights, self.columns,
                progress, self.constants, updates,
            )  # fmt: skip
        _check_finite(progress)

    def last(self) -> tuple[Array, Array]:
        """Return the last iterate: weights and intercept."""
        scale = self.weights.dtype.type(self.progress[fit.SCALE])
        return self.weights * scale, self.progress[fit.INTERCEPT : fit.INTERCEPT + 1].astype(self.weights.dtype)

    def mean(self) -> tuple[Array, Array]:
        """Return the mean of the averaged iterates, or the last iterate if none is averaged."""
        averaged = self.progress[fit.AVERAGED]
        if not averaged:
            return self.last()
        sums = self.columns[:, fit.SUM] + self.weights * (self.progress[fit.SCALES] - self.columns[:, fit.SINCE])
        return sums / averaged, self.progress[fit.INTERCEPTS : fit.INTERCEPTS + 1] / averaged

    def line(self) -> str:
        """Return a line about the last epoch."""
        objective, loss = self.progress[[fit.OBJECTIVE, fit.MEAN_LOSS]]
        return f"-- Epoch {self.epochs}: objective {objective:.6f}, loss {loss:.6f}\n"


@dataclass(frozen=True, slots=True, eq=False)
class ClassesFit:
    """Fit of all classes in one pass over the rows."""

    rows: CSRRows
    targets: Array
    sample_weights: Array
    order: Array
    class_weights: Array
    constants: Array
    kernel: Any

    def train(self, weights: Array, progress: Array, epochs: int, classes: Array) -> None:
        """Train some classes until the last one has converged, or for a number of epochs.

        The results replace the weights and the progress of these classes. Classes that have converged are left out
        where fewer vectors then hold the others.
        """
        running, self.constants[fit.MAX_EPOCHS] = classes, epochs
        while running.size:
            vectors = -(-running.size // fit.CLASSES_AT_A_TIME)
            width, fewer = fit.CLASSES_AT_A_TIME * vectors, fit.CLASSES_AT_A_TIME * (vectors - 1)
            columns, numbers = np.zeros((len(weights), width), weights.dtype), progress[running]
            columns[:, : running.size] = weights[:, running]
            self._run(columns, numbers, running, fewer)
            weights[:, running] = columns[:, : running.size] * numbers[:, fit.SCALE].astype(weights.dtype)
            numbers[:, fit.SQUARES] *= np.square(numbers[:, fit.SCALE])
            numbers[:, fit.SCALE] = 1.0
            progress[running] = numbers
            left = (numbers[:, fit.DONE] == fit.RUNNING) & (numbers[:, fit.EPOCHS] < self.constants[fit.MAX_EPOCHS])
            running = running[left]

    def _run(self, columns: Array, numbers: Array, classes: Array, fewest: int) -> None:
        """Train until at most ``fewest`` of these classes have not converged, or for all epochs."""
        rows, scores = self.rows, np.zeros((2, 1, columns.shape[1]), columns.dtype)
        place = np.full(len(self.class_weights), -1)
        place[classes] = np.arange(len(classes))
        targets, weights = place[self.targets], self.class_weights[classes]
        indptr, indices, values, *_ = rows.arrays
        updates = max(1, INTERRUPTIBLE * len(rows) // max(1, rows.nonzeros * columns.shape[1]))
        while True:
            self.kernel(
                indptr, indices, values, targets, self.sample_weights, self.order, columns, weights, scores[0],
                scores[1], numbers, self.constants, fewest, updates,
            )  # fmt: skip
            for one in numbers:
                _check_finite(one)
            running = numbers[:, fit.DONE] == fit.RUNNING
            whole = numbers[0, fit.ROW] == 0
            if whole and (
                running.sum() <= fewest or numbers[running, fit.EPOCHS].min() >= self.constants[fit.MAX_EPOCHS]
            ):
                return


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Rows that early stopping judges by."""

    matrix: Any
    labels: Array
    weights: Array | None
    classes: Array | None

    @classmethod
    def of(cls, data: Dataset, classes: Array | None) -> HeldOut:
        """Return the rows of a data set in memory as a matrix."""
        assert isinstance(data, InMemoryDataset)
        assert data.ids is not None
        rows, ids, matrix = data.rows, data.ids, matrix_of(data.rows)[data.ids]
        return cls(matrix, rows.labels[ids], rows.weights[ids] if rows.weights.size else None, classes)

    def score(self, k: int, weights: Array, intercept: Array) -> float:
        """Return the accuracy of output ``k``, or its R²."""
        scores, targets = self.matrix @ weights + intercept, _targets(self.labels, self.classes, k)
        if self.classes is None:
            return float(r2_score(targets, scores, sample_weight=self.weights))
        return float(np.average((scores > 0) == (targets > 0), weights=self.weights))
