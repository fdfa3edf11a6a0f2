"""Fits by a single worker, each in one call of compiled code: the updates of scikit-learn's SGD.

Nothing is sampled, copied or reported on the way, so that a small fit takes no longer than its updates. Only rows that
are too large for the cache are copied, into a random order, of which epochs then visit blocks in random order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hogwild.data import InMemoryDataset
from hogwild.data.chunks import number_type
from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import BLOCK_ROWS, Dataset
from hogwild.data.frequent_first import FrequentFirst
from hogwild.estimators.classes_fit import ClassesFit
from hogwild.estimators.compilation_notice import with_notice
from hogwild.estimators.output_fit import NO_SHUFFLE, HeldOut, OutputFit, targets_of
from hogwild.estimators.parallel_fit import ParallelFit, replicated, useful_workers
from hogwild.estimators.sklearn_parameters import Parts, has_parallel_loop, same_as_sklearn
from hogwild.estimators.task import NOT_CONVERGED, SPARSE_INTERCEPT_STEP, Learnt, State, Task, diverged_message
from hogwild.kernels import linear_epochs as loop
from hogwild.kernels.linear_build import squared_row_norms, train_classes, train_output
from hogwild.rules import Sequential
from hogwild.schedules import Adaptive, Constant, InverseScaling, Optimal
from hogwild.stopping import DIVERGENCE_FACTOR

# Non-zeros times classes from which on threads pay: an epoch then takes about a millisecond.
WORTH_A_THREAD = 2**19
NUMBERS = {
    Optimal: loop.OPTIMAL,
    InverseScaling: loop.INVERSE_SCALING,
    Adaptive: loop.ADAPTIVE,
    Constant: loop.CONSTANT,
}


def fits_directly(params: Mapping[str, Any], data: Dataset) -> bool:
    """Return whether a single worker fits arrays, with parameters that scikit-learn has too."""
    arrays = isinstance(data, InMemoryDataset) and data.name == "arrays"
    return arrays and same_as_sklearn(params) and not params["identical_to_sklearn"]


def learn_directly(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    """Train eight classes in one pass over the rows where that is faster, else each output by itself.

    Classes are divided among threads, which share no weights: the result is the same for any number of them.

    Raises
    ------
    FloatingPointError
        If a parameter is not finite any more.
    """
    assert isinstance(task.data, InMemoryDataset)
    if task.labels.counts:
        task.labels.encode(task.data.rows.labels)  # raises an error for negative counts
    workers = _workers(task, params)
    if workers > 1:
        frequent = replicated(task.data.n_features)
        found = task.data.frequent_first(task.seeds[0], parts.budget.epochs or 1, frequent, task.threads)
        if found is not None:
            return _in_parallel(task, parts, params, found, workers)
    task = replace(task, data=_laid_out(task, parts, params))
    if _in_one_pass(task, parts, params):
        return _classes_together(task, parts, params)
    return _outputs_apart(task, parts, params)


def _workers(task: Task, params: Mapping[str, Any]) -> int:
    """Return the number of workers that share the weights of one output of sparse rows."""
    data = task.data
    assert isinstance(data, InMemoryDataset)
    shared = task.threads > 1 and task.labels.outputs == 1 and data.ids is None and data.layout != "dense"
    return useful_workers(data.rows, task.threads) if shared and has_parallel_loop(params) else 1


def _laid_out(task: Task, parts: Parts, params: Mapping[str, Any]) -> InMemoryDataset:
    """Return the rows as they are, or a copy in random order if that is faster."""
    data = task.data
    assert isinstance(data, InMemoryDataset)
    if not params["shuffle"] or params["verbose"] or task.held_out is not None:
        return data
    return data.laid_out(task.seeds[0], parts.budget.epochs or 1, threads=task.threads) or data


def _in_one_pass(task: Task, parts: Parts, params: Mapping[str, Any]) -> bool:
    """Return whether one pass trains eight classes: the rows are sparse, and the loop has all that is asked for."""
    rule, data = parts.rule, task.data
    assert isinstance(rule, Sequential)
    assert isinstance(data, InMemoryDataset)
    plain = rule.step_size == "scheduled" and not parts.l1 and not rule.average_from and not params["verbose"]
    return task.labels.outputs > 1 and data.layout == "sparse" and data.ids is None and plain


def _in_parallel(
    task: Task, parts: Parts, params: Mapping[str, Any], found: FrequentFirst, workers: int
) -> Learnt:  # fmt: skip
    start = np.empty_like(task.start[0])
    start[found.numbers] = task.start[0]
    data = InMemoryDataset(found.rows, shuffled=True, name="arrays")
    task = replace(task, data=data, start=(start, task.start[1]))
    fit = _begun(task, parts, params, 0, _squared_row_norms(found.rows, parts, task.threads))
    fit.constants[[loop.NEGATIVE_WEIGHT, loop.POSITIVE_WEIGHT]] = task.labels.weights(task.class_weight, data)
    ParallelFit.of(fit, found, workers, parts.loss).train(parts.budget.epochs or 1)
    weights, intercept = fit.last()
    weights = weights[found.numbers].reshape(-1, 1)
    return Learnt(
        weights, intercept, (weights.copy(), intercept.reshape(-1, 1)), fit.epochs, None,
        frozenset(_warnings(fit.progress, parts, fit.targets)), workers,
    )  # fmt: skip


def _outputs_apart(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    count = task.labels.outputs
    weights = task.labels.weights(task.class_weight, task.data)
    held_out = None if task.held_out is None else HeldOut.of(task.held_out, task.labels.classes)
    assert isinstance(task.data, InMemoryDataset)
    norms = _squared_row_norms(task.data.rows, parts)
    outputs = [_begun(task, parts, params, k, norms) for k in range(count)]
    for k, one in enumerate(outputs):
        one.constants[[loop.NEGATIVE_WEIGHT, loop.POSITIVE_WEIGHT]] = weights if count == 1 else (1.0, weights[k])
    verbose = bool(params["verbose"])
    workers = 1 if verbose else min(task.threads, count)
    _side_by_side(
        [partial(one.train, k, parts, held_out, verbose=verbose) for k, one in enumerate(outputs)], workers, outputs
    )
    found = [one.mean() for one in outputs]
    return Learnt(
        np.array([w for w, _ in found]).T, np.concatenate([b for _, b in found]),
        _last_state(outputs) if params["average"] else None, max(one.epochs for one in outputs), None,
        frozenset().union(*(_warnings(one.progress, parts, one.targets) for one in outputs)), workers,
    )  # fmt: skip


def _last_state(outputs: Sequence[OutputFit]) -> State:
    """Return the last iterates, which averages are not."""
    weights, intercepts = (np.column_stack(part) for part in zip(*(one.last() for one in outputs), strict=True))
    return weights.reshape(-1, 1), intercepts.reshape(-1, 1)


def _classes_together(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    data, classes = task.data, task.labels.classes
    assert isinstance(data, InMemoryDataset)
    assert classes is not None
    rows, count, dtype = data.rows, len(classes), np.dtype(parts.rule.precision)
    start, coef = task.start[0].reshape(rows.features, count), np.empty((count, rows.features), dtype)
    progress = np.array([_progress(task, parts, k, square) for k, square in enumerate(_squared_norms_of(start))])
    together = ClassesFit(
        rows, np.searchsorted(classes, rows.labels), np.asarray(rows.weights, np.float64),
        _squared_row_norms(rows, parts), _order(data),
        np.asarray(task.labels.weights(task.class_weight, data), np.float64), _constants(task, parts, params, 0),
        with_notice(train_classes(rows.layout, parts.loss.function, parts.loss.ours)),
    )  # fmt: skip
    # Eight classes after the other eight, also on one thread: their weights stay in its cache.
    parted = -(-count // loop.CLASSES_AT_A_TIME)
    groups = [slice(count * k // parted, count * (k + 1) // parted) for k in range(parted)]
    each = [replace(together, order=together.order.copy(), constants=together.constants.copy()) for _ in groups]
    epochs, workers = parts.budget.epochs or 1, min(task.threads, parted)
    _side_by_side(
        [partial(one.train, start, progress, epochs, group, coef) for one, group in zip(each, groups, strict=True)],
        workers, each,
    )  # fmt: skip
    targets = targets_of(rows.labels, classes, 0)
    return Learnt(
        coef.T, progress[:, loop.INTERCEPT].astype(dtype), None, int(progress[:, loop.EPOCHS].max()), None,
        frozenset().union(*(_warnings(one, parts, targets) for one in progress)), workers,
    )  # fmt: skip


def _squared_norms_of(weights: Array) -> Array:
    """Return the sums of the squares of columns, in double precision."""
    return np.einsum("ij,ij->j", weights, weights, dtype=np.float64) if weights.any() else np.zeros(weights.shape[1])


def _side_by_side(tasks: Sequence[Callable[[], None]], threads: int, fits: Sequence[OutputFit | ClassesFit]) -> None:
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
                one.constants[loop.MAX_EPOCHS] = 0
            raise


def _order(data: InMemoryDataset) -> Array:
    ids = np.arange(len(data.rows)) if data.ids is None else data.ids
    return ids.astype(number_type(len(data.rows)))


def _squared_row_norms(rows: CSRRows, parts: Parts, threads: int = 1) -> Array:
    """Return the squared norms of the rows, from which that of the weights follows; none if none is needed."""
    found = np.empty(len(rows) if parts.budget.tolerance is not None else 0)
    indptr, _, values, *_ = rows.arrays
    share, norms = -(-len(found) // threads), squared_row_norms(rows.layout)
    tasks = [
        partial(norms, indptr[at : at + share + 1], values, found[at : at + share])
        for at in range(0, len(found), max(1, share))
    ]
    _side_by_side(tasks, threads, [])
    return found


def _begun(task: Task, parts: Parts, params: Mapping[str, Any], k: int, squared_norms: Array) -> OutputFit:
    """Return the fit of output ``k`` before its first update."""
    rule, data = parts.rule, task.data
    assert isinstance(rule, Sequential)
    assert isinstance(data, InMemoryDataset)
    rows, weights = data.rows, np.array(task.start[0][k :: task.labels.outputs, 0], rule.precision)
    return OutputFit(
        rows, targets_of(rows.labels, task.labels.classes, k), np.asarray(rows.weights, np.float64), squared_norms,
        _order(data), weights, np.zeros((weights.size if parts.l1 or rule.average_from else 0, 3)),
        _progress(task, parts, k, np.square(weights, dtype=np.float64).sum()), _constants(task, parts, params, k),
        with_notice(train_output(rows.layout, rule.step_size, parts.loss.function, parts.loss.ours)),
    )  # fmt: skip


def _progress(task: Task, parts: Parts, k: int, squared_norm: float) -> Array:
    """Return the numbers that output ``k`` starts with."""
    progress = np.zeros(loop.PROGRESS)
    progress[[loop.INTERCEPT, loop.SCALE, loop.LARGEST]] = task.start[1][k, 0], 1.0, 1.0
    progress[[loop.UPDATES, loop.BEST, loop.SQUARES]] = task.earlier, math.inf, squared_norm
    if not isinstance(parts.schedule, Optimal):
        progress[loop.STEP] = parts.schedule.step
    return progress


def _constants(task: Task, parts: Parts, params: Mapping[str, Any], k: int) -> Array:
    """Return the constants of the fit of output ``k``."""
    rule, schedule, budget, constants = parts.rule, parts.schedule, parts.budget, np.zeros(loop.CONSTANTS)
    assert isinstance(rule, Sequential)
    constants[[loop.ALPHA, loop.L1_RATIO]] = rule.mixture(parts.l1, parts.l2)
    constants[loop.SCHEDULE] = next(number for kind, number in NUMBERS.items() if isinstance(schedule, kind))
    if isinstance(schedule, Optimal):
        constants[[loop.T0, loop.STEP_ALPHA]] = schedule.t0, schedule.alpha
    elif isinstance(schedule, InverseScaling):
        constants[loop.POWER] = schedule.power
    assert isinstance(task.data, InMemoryDataset)
    step = 1.0 if task.data.layout == "dense" else SPARSE_INTERCEPT_STEP
    constants[[loop.INTERCEPT_STEP, loop.INTERCEPT_GRADIENT]] = step * params["fit_intercept"], task.intercept_gradient
    constants[loop.AVERAGE_FROM] = rule.average_from + task.earlier if rule.average_from else 0
    if budget.tolerance is not None:
        constants[[loop.TOLERANCE, loop.PATIENCE]] = budget.tolerance, budget.stall_epochs
        if rule.track_objective:
            constants[loop.MONITOR] = loop.PENALISED_LOSS if rule.step_size == "scheduled" else loop.LOSS
    constants[loop.BLOCK] = BLOCK_ROWS if task.data.shuffled else 1
    constants[[loop.PARAMETER, loop.SEED]] = parts.loss.parameter, task.seeds[k] if params["shuffle"] else NO_SHUFFLE
    return constants


def _warnings(progress: Array, parts: Parts, targets: Array) -> set[str]:
    """Return the warnings about a fit: divergence, or no convergence within the maximum number of epochs."""
    end, stops = float(progress[loop.MEAN_LOSS]), parts.budget.tolerance is not None
    if end > DIVERGENCE_FACTOR:
        start = float(np.mean([parts.loss(0.0, y)[0] for y in targets[:1000]]))
        if end > DIVERGENCE_FACTOR * max(start, 1.0):
            return {diverged_message(start, end)}
    return {NOT_CONVERGED} if stops and progress[loop.DONE] == loop.RUNNING else set()
