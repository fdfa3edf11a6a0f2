"""Assembly of the inner loops of factorisation machines: the functions that a loss, a rule and a layout stand for."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.jit import Function, bind, constant, specialise
from hogwild.kernels import factorisation_machine, ffm_interactions, fm_interactions, linear, loss_sums
from hogwild.kernels.row_layouts import LAYOUTS
from hogwild.kernels.sync_policies import ways as ways_of
from hogwild.kernels.work_queue import QueueLoop
from hogwild.rules.adagrad import adagrad

PAIRS: dict[str, Any] = {"any": fm_interactions, "by field": ffm_interactions}


@functools.cache
def descend(
    kind: str, layout: str, access: str, step: Function, rests: bool, penalised: tuple[bool, bool],
    normalised: bool, loss: Function, keep: bool, numbers: int, far: bool,
) -> Any:  # fmt: skip
    """Return the compiled descent.

    ``penalised`` tells whether weights and factors have an L2 penalty. ``numbers`` is the number of numbers per
    coordinate. ``far`` tells whether parameters are outside the cache, so that prefetches pay.
    """
    columns, products = LAYOUTS[layout], PAIRS[kind]
    ways = ways_of(access, columns["column"])
    ways["flush"] = bind(linear.flush, guard=ways.pop("guard"), unguard=ways.pop("unguard"))
    parts: dict[str, Any] = {
        **columns,
        **ways,
        **_scoring(kind, layout, normalised),
        "loss": loss,
        "step": step,
        "numbers": constant(numbers),
        "move": _moving(kind, layout, step),
        "ahead": bind(products.look_ahead, column=columns["column"]) if far else factorisation_machine.no_look_ahead,
        "penalty": linear.shared_penalty if penalised[0] else linear.no_penalty,
        "factor_penalty": factorisation_machine.constant_penalty if penalised[1] else linear.no_penalty,
        "skip": linear.when_zero if rests and not any(penalised) else linear.never,
    }
    if access == "turns":
        return specialise(factorisation_machine.descend, cache=keep, **parts)
    return QueueLoop(bind(factorisation_machine.descend, **parts), keep)


@functools.cache
def scoring(kind: str, layout: str, normalised: bool) -> Any:
    """Return the compiled loop that scores rows, for evaluations and predictions."""
    return loss_sums.scoring(bind(factorisation_machine.decide, **_scoring(kind, layout, normalised)))


def scoring_parameters(weights: Array, intercept: Array, factors: Array, fields: Array, rank: int) -> tuple[Any, ...]:
    """Return the parameters for the loop that scores rows; of the factors, the first column is used."""
    read_only = loss_sums.read_only
    return (
        read_only(weights), intercept[:, 0].astype(np.float64), read_only(factors[:, :1]), read_only(fields), rank
    )  # fmt: skip


@functools.cache
def count_pairs(layout: str) -> Any:
    """Return the compiled function that counts how many pairs of features use each row of factors."""
    return specialise(ffm_interactions.count_pairs, column=LAYOUTS[layout]["column"])


def _scoring(kind: str, layout: str, normalised: bool) -> dict[str, Function]:
    columns = LAYOUTS[layout]
    lengths = (
        bind(factorisation_machine.to_length_one, value=columns["value"])
        if normalised
        else factorisation_machine.as_it_is
    )
    return {"score": bind(PAIRS[kind].score, **columns), "length": lengths}


def _moving(kind: str, layout: str, step: Function) -> Function:
    if kind == "any":
        return bind(fm_interactions.move, **LAYOUTS[layout], step=step)
    fours = ffm_interactions.adagrad_fours if step is adagrad else bind(ffm_interactions.any_fours, step=step)
    return bind(ffm_interactions.move, **LAYOUTS[layout], step_fours=fours)
