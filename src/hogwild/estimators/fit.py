"""Training of a linear estimator: calls of ``minimise``, and the conversion of their results and warnings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.subsample import subsample
from hogwild.errors import DivergedError
from hogwild.estimators.device import runtime_of
from hogwild.estimators.sklearn_parameters import Parts, averaged_share, stabilised
from hogwild.estimators.task import (
    NOT_CONVERGED,
    REMEDY,
    SPARSE_INTERCEPT_STEP,
    Learnt,
    Task,
    diverged_message,
    overflow_message,
)
from hogwild.events import Callback, Event
from hogwild.problems.label_encoding import LabelEncoding
from hogwild.problems.linear import Linear
from hogwild.rules import Sequential
from hogwild.run import Run, WarmStart
from hogwild.stopping import DIVERGENCE_FACTOR
from hogwild.training.minimise import minimise

SAMPLED_ROWS = 2_000  # number of sampled rows, enough to estimate the largest squared length of a row


def learn(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    """Train all classes in one run, or each class in a run of its own if the task has one seed per class."""
    return _minimised(task, parts, params) if len(task.seeds) == 1 else _one_by_one(task, parts, params)


def _minimised(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    dense = task.data.in_order()[0].rows.layout == "dense"
    problem = Linear(
        task.data, parts.loss, l1=parts.l1, l2=parts.l2, intercept=params["fit_intercept"],
        class_weight=task.class_weight, labels=task.labels, intercept_gradient=task.intercept_gradient,
        intercept_lr_multiplier=1.0 if dense else SPARSE_INTERCEPT_STEP, standardise=False, compact=False,
    )  # fmt: skip
    schedule, average = parts.schedule, 0.0  # scikit-learn neither adjusts the schedule nor averages outside the rule
    if not isinstance(parts.rule, Sequential):
        schedule = stabilised(schedule, parts.loss, partial(_heaviest, problem))
        average = averaged_share(params["average"], task.data.n_rows, parts.budget.epochs or 1, task.earlier)
    progress = _Progress()
    callbacks: list[Callback] = [progress, _print_epoch] if params["verbose"] else [progress]
    try:
        run = minimise(
            problem, parts.rule, schedule, parts.strategy, runtime_of(params["device"]), budget=parts.budget,
            test=task.held_out, average=average, init=WarmStart(task.start, task.earlier), shuffle=params["shuffle"],
            evaluate_every_epoch=False, seed=task.seeds[0], divergence_factor=float("inf"), callbacks=callbacks,
        )  # fmt: skip
    except DivergedError as error:
        raise ValueError(
            overflow_message(f"epoch #{progress.epochs + 1}", f"A smaller eta0 might help too. {error}")
        ) from error
    return _outcome(run, parts)


@dataclass(slots=True)
class _Progress:
    """Listener that counts the epochs of a run that ended well, to name the epoch in which the run failed."""

    epochs: int = 0

    def __call__(self, event: Event) -> None:
        if event["event"] in ("epoch", "diverged"):
            self.epochs = event["epoch"]


def _heaviest(problem: Linear) -> float:
    """Return the largest squared length of a row, intercept included, times its weight, among ``SAMPLED_ROWS`` rows."""
    rows = subsample(problem.source, SAMPLED_ROWS).rows
    entries = np.ones(rows.nonzeros) if rows.layout == "binary" else np.square(rows.values, dtype=np.float64)
    sums = np.concatenate([[0.0], np.cumsum(entries)])
    lengths = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    weights = problem.labels.weights(problem.class_weight, problem.source).max() * rows.weights.max(initial=1.0)
    return float((lengths.max() + problem.intercept_lr_multiplier) * weights)


def _outcome(run: Run, parts: Parts) -> Learnt:
    if run.stop_reason == "interrupted":
        raise KeyboardInterrupt
    chosen = [event["step"] for event in run.events if event["event"] == "step chosen"]
    state = parts.rule.last(run.state) if isinstance(parts.rule, Sequential) else run.state
    return Learnt(
        run.model.weights, run.model.intercept, (state[0], state[1]), run.history[-1]["epoch"],
        chosen[0] if chosen else None, _convergence_warnings(run, parts), workers_of(run),
    )  # fmt: skip


def workers_of(run: Run) -> int:
    """Return the number of workers that made updates."""
    used = [int(record["workers_used"]) for record in run.history if record.get("workers_used")]
    return max(used, default=int(run.config["workers"]))


def _convergence_warnings(run: Run, parts: Parts) -> frozenset[str]:
    """Return the warnings about a run: divergence, or no convergence within the maximum number of epochs."""
    found: set[str] = set()
    divergences = [event for event in run.events if event["event"] == "diverged"]
    if divergences:
        found.add(
            f"The fit diverged {len(divergences)} times and went on with {divergences[-1]['scale']:.3g} of the step. "
            f"{REMEDY}"
        )
    start, end = next(event["loss"] for event in run.events if event["event"] == "training"), run.history[-1]["loss"]
    if end > DIVERGENCE_FACTOR * max(start, 1.0):
        found.add(diverged_message(start, end))
    elif run.stop_reason == "epochs" and parts.budget.tolerance is not None:
        found.add(NOT_CONVERGED)
    return frozenset(found)


def _one_by_one(task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
    """Train each class against the rest in a separate run, with its own order of rows, step size and stopping time."""
    assert task.labels.classes is not None
    count, found = len(task.labels.classes), []
    weight = task.labels.weights(task.class_weight, task.data)
    for k, label in enumerate(task.labels.classes):
        found.append(
            _minimised(
                replace(
                    task,
                    data=task.data.with_labels(_Is(label)),
                    labels=LabelEncoding(np.array([0.0, 1.0]), precision=task.labels.precision),
                    start=(task.start[0][k::count], task.start[1][k::count]),
                    class_weight={0.0: 1.0, 1.0: float(weight[k])},
                    held_out=None if task.held_out is None else task.held_out.with_labels(_Is(label)),
                    seeds=task.seeds[k : k + 1],
                ),
                parts,
                params,
            )
        )
    last = [one.state for one in found if one.state is not None]
    states = [np.hstack([each[part][:, :1] for each in last]).reshape(-1, 1) for part in (0, 1)]
    return Learnt(
        np.hstack([one.weights for one in found]), np.concatenate([one.intercept for one in found]),
        (states[0], states[1]), max(one.epochs for one in found), None,
        frozenset().union(*(one.convergence_warnings for one in found)), max(one.workers for one in found),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Is:
    """Label transformation: 1 for one class, 0 for all others."""

    label: float

    def __call__(self, labels: Array) -> Array:
        return np.asarray(labels == self.label, np.float32)


def _print_epoch(event: Event) -> None:
    if event["event"] == "epoch":
        sys.stdout.write(
            f"-- Epoch {event['epoch']}: objective {event['objective']:.6f}, loss {event['loss']:.6f}, "
            f"step {event['step']:.3g}, {event['seconds']:.2f} seconds\n"
        )
