"""Assembly of the inner loops of linear models: the functions that a loss, a rule, a step and a layout stand for."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from hogwild.data.csr import Array
from hogwild.jit import Function, bind, constant, specialise
from hogwild.kernels import (
    conflict_counters,
    linear,
    linear_classes,
    linear_dual,
    linear_epochs,
    linear_parallel,
    linear_replicated,
    linear_sequential,
    loss_sums,
)
from hogwild.kernels.row_layouts import (
    LAYOUTS,
    PRECISE,
    dot,
    dot_in_order,
    dot_of,
    weight_in_table,
    weight_in_vector,
)
from hogwild.kernels.sync_policies import ways as ways_of
from hogwild.kernels.work_queue import QueueLoop

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821


def scheduled(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the step size of the schedule."""
    return rate


def passive_aggressive(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the step size that just satisfies the term, at most ``rate`` (PA-I, Crammer et al. 2006)."""
    length = 0.0
    for j in range(start, stop):
        length += value(values, j) * value(values, j)
    return min(float(rate), cost / length) if length > 0 else 0.0


def passive_aggressive_2(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the step size of PA-II (Crammer et al. 2006), which ``rate`` softens instead of clips."""
    length = 0.0
    for j in range(start, stop):
        length += value(values, j) * value(values, j)
    return cost / (length + 0.5 / rate)


PACES: dict[str, Function] = {
    "scheduled": scheduled,
    "passive-aggressive": passive_aggressive,
    "passive-aggressive-2": passive_aggressive_2,
}


@functools.cache
def descend(
    layout: str, access: str, step: Function, rests: bool, pace: str, penalised: tuple[bool, bool],
    loss: Function | None, slopes: Function | None, keep: bool, numbers: int, far: bool = False, scaled: bool = False,
    watching: bool = False,
) -> Any:  # fmt: skip
    """Return the compiled descent of a model with one output (``loss``) or one output per class (``slopes``).

    ``penalised`` tells whether there are L1 and L2 penalties. ``numbers`` is the number of numbers per coordinate.
    ``far`` tells whether parameters are outside the cache, so that prefetches pay. ``scaled`` tells whether L2 is a
    common factor of all weights.

    With ``watching``, the loop counts conflicts. Its arguments ``sync`` and ``constants`` are then pairs, whose second
    element is a :class:`hogwild.kernels.conflict_counters.ConflictCounters`.
    """
    columns = LAYOUTS[layout]
    ways = ways_of(access, columns["column"], watching)
    ways["flush"] = bind(linear.flush, guard=ways.pop("guard"), unguard=ways.pop("unguard"))
    template = linear.descend if loss else linear.descend_many
    losses = {name: function for name, function in (("loss", loss), ("slopes", slopes)) if function is not None}
    parts: dict[str, Any] = {
        **columns,
        **ways,
        **losses,
        "step": bind(conflict_counters.step_watched, step=step) if watching else step,
        "step_intercept": bind(conflict_counters.step_unwatched, step=step) if watching else step,
        "numbers": constant(numbers),
        "ahead": bind(linear.look_ahead, column=columns["column"]) if far else linear.no_look_ahead,
        "dot": bind(dot, weight=weight_in_table, **columns),
        "pace": bind(PACES[pace], value=columns["value"]),
        **_penalties(rests, penalised, scaled),
    }
    if access == "turns":
        return specialise(template, cache=keep, **parts)
    return QueueLoop(bind(template, **parts), keep)


@functools.cache
def descend_buffered(
    layout: str, everything: bool, step: Function, effective_step: Function, rests: bool,
    penalised: tuple[bool, bool], loss: Function, bend: Function, keep: bool, numbers: int, scaled: bool = False,
) -> Any:  # fmt: skip
    """Return the compiled descent of a worker with a replica of all coordinates (``everything``) or of the hot ones."""
    columns, some = LAYOUTS[layout], not everything
    place = {"place": linear_replicated.as_noted if some else linear_replicated.as_numbered}
    column = columns["column"]
    ahead = bind(linear_replicated.look_ahead, column=column, note=bind(linear_replicated.note, column=column))
    part = linear_replicated.part_beside_rank if some else linear.shared_penalty
    kernel = bind(
        linear_replicated.descend_buffered,
        **columns,
        **place,
        loss=loss,
        bend=bend,
        step=step,
        numbers=constant(numbers),
        table=linear_replicated.shared_table if some else linear_replicated.own_table,
        dot_of_copy=bind(linear_replicated.dot_of_copy, **columns, **place),
        ahead=ahead if some else linear_replicated.no_look_ahead,
        longest=linear_replicated.longest if some else linear_replicated.none,
        merge_due_tiers=_merge_due_tiers(effective_step),
        **_penalties(rests, penalised, scaled, part),
    )
    end = bind(linear_replicated.end, settle=_settle(effective_step))
    return QueueLoop(kernel, keep, turns=(), begin=linear_replicated.begin, end=end)


@functools.cache
def ascend(layout: str, loss: Function, prox: Function, keep: bool, replica: bool) -> Any:
    """Return the compiled dual coordinate ascent of a single worker, or of a worker with a replica of all weights."""
    columns = LAYOUTS[layout]
    template = linear_dual.ascend_with_replica if replica else linear_dual.ascend
    kernel = bind(
        template,
        **columns,
        loss=loss,
        dot=bind(dot, weight=weight_in_table, **columns),
        squared_norm=bind(linear_dual.squared_norm, value=columns["value"]),
        ascend_row=bind(linear_dual.ascend_row, prox=prox),
    )
    around = {"begin": linear_dual.begin, "end": linear_dual.end} if replica else {}
    return QueueLoop(kernel, keep, turns=(), **around)


settle_duals = specialise(linear_dual.settle)


@functools.cache
def settle(effective_step: Function) -> Any:
    """Return the compiled function that merges a worker's whole replica, at the end of its descents."""
    return specialise(_settle(effective_step), cache=True)


def _settle(effective_step: Function) -> Function:
    return bind(linear_replicated.settle, merge_due_tiers=_merge_due_tiers(effective_step))


def _merge_due_tiers(effective_step: Function) -> Function:
    mean_pace = bind(linear_replicated.mean_pace, effective_step=effective_step)
    return bind(linear_replicated.merge_due_tiers, mean_pace=mean_pace)


def _penalties(
    rests: bool, penalised: tuple[bool, bool], scaled: bool, part: Function = linear.shared_penalty
) -> dict[str, Function]:
    l1, l2 = penalised[0], penalised[1] and not scaled
    return {
        "penalty1": part if l1 else linear.no_penalty,
        "penalty2": part if l2 else linear.no_penalty,
        "decayed": linear.decay if scaled else linear.no_decay,
        "skip": linear.when_zero if rests and not l1 and not l2 else linear.never,
    }


@functools.cache
def descend_alone(layout: str, pace: str, loss: Function, keep: bool) -> Any:
    """Return the compiled descent of a single worker whose penalties apply to all weights at every step."""
    columns = PRECISE[layout]
    return specialise(
        linear_sequential.descend_alone,
        cache=keep,
        **columns,
        arithmetic="separate",
        loss=loss,
        dot=bind(dot_in_order, **columns),
        add=bind(linear_sequential.add, **columns),
        add_and_measure=bind(linear_sequential.add_and_measure, **columns),
        pace=bind(PACES[pace], value=columns["value"]),
    )


@functools.cache
def train_output(layout: str, pace: str, loss: Function, keep: bool) -> Any:
    """Return the compiled fit of a model with one output by a single worker."""
    columns, dense = PRECISE[layout], layout == "dense"
    return specialise(
        linear_epochs.train_output,
        cache=keep,
        arithmetic="reordered" if dense else "fused",
        column=columns["column"],
        loss=loss,
        dot=bind(linear_epochs.dot, **columns) if dense else bind(dot, weight=weight_in_vector, **columns),
        add=bind(linear_epochs.add, **columns),
        pace=bind(PACES[pace], value=columns["value"]),
    )


@functools.cache
def train_part(layout: str, loss: Function, keep: bool) -> Any:
    """Return the compiled fit of a model with one output by one of several workers; rows are sparse or binary."""
    columns = PRECISE[layout]
    return specialise(
        linear_parallel.train_part,
        cache=keep,
        loss=loss,
        dot=bind(dot, weight=weight_in_vector, **columns),
        add=bind(linear_epochs.add, **columns),
    )


@functools.cache
def multiply_by_moments(layout: str) -> Any:
    """Return the compiled function that multiplies a vector by the second moments of the features."""
    columns = PRECISE[layout]
    return specialise(linear_parallel.multiply_by_moments, column=columns["column"], value=columns["value"])


@functools.cache
def train_classes(layout: str, loss: Function, keep: bool) -> Any:
    """Return the compiled fit of all classes of a classifier by a single worker."""
    columns = PRECISE[layout]
    return specialise(
        linear_classes.train_classes,
        cache=keep,
        loss=loss,
        score=bind(linear_classes.score, **columns),
        add=bind(linear_classes.add, **columns),
    )


@functools.cache
def squared_row_norms(layout: str) -> Any:
    """Return the compiled function that computes the squared norms of rows."""
    return specialise(linear_epochs.squared_row_norms, arithmetic="reordered", value=PRECISE[layout]["value"])


@functools.cache
def scoring(layout: str) -> Any:
    """Return the compiled loop that scores rows, for evaluations and predictions."""
    return loss_sums.scoring(bind(linear.decide, dot_of=bind(dot_of, **LAYOUTS[layout])))


write_shares = specialise(linear.write_shares)
sums_of = specialise(linear.sums_of, arithmetic="reordered")


def scoring_parameters(weights: Array, intercept: Array) -> tuple[Any, ...]:
    """Return the weights and the intercept for the loop that scores rows, in one form for all states of rules."""
    if weights.flags.f_contiguous:
        flat, apart = weights[:, 0], 1
    elif weights.flags.c_contiguous:
        flat, apart = weights.reshape(-1), weights.shape[1]
    elif weights.strides[0] > 0 and weights.strides[0] % weights.itemsize == 0:
        # The first column of a table, with the numbers between its elements.
        apart = weights.strides[0] // weights.itemsize
        flat = as_strided(weights, ((len(weights) - 1) * apart + 1,), (weights.itemsize,), writeable=False)
    else:
        flat, apart = weights[:, 0].copy(), 1
    return loss_sums.read_only(flat), apart, intercept[:, 0].astype(np.float64)
