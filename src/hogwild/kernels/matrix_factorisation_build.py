"""Assembly of the compiled loops of matrix completion."""

from __future__ import annotations

import functools
from typing import Any

from hogwild.jit import Function, bind, constant, specialise
from hogwild.kernels import bpr, matrix_factorisation, work_queue
from hogwild.kernels.bpr import ACCESS_OF_THREE
from hogwild.kernels.row_layouts import stored_column
from hogwild.kernels.sync_policies import ways as ways_of
from hogwild.rules.sgd import sgd


@functools.cache
def descend(access: str, step: Function, numbers: int, loss: Function) -> Any:
    """Return the compiled descent along ratings."""
    two = matrix_factorisation.sgd_two if step is sgd else bind(matrix_factorisation.any_two, step=step)
    parts = {"step": step, "numbers": constant(numbers), "step_two": two, "loss": loss}
    return _walk(matrix_factorisation.descend, access, **parts, **_ways(access))


@functools.cache
def descend_pairs(access: str, step: Function, numbers: int) -> Any:
    """Return the compiled descent along preferences (BPR)."""
    three = bpr.sgd_three if step is sgd else bind(bpr.any_three, step=step)
    parts = {"step": step, "numbers": constant(numbers), "step_three": three}
    return _walk(bpr.descend_pairs, access, **parts, **ACCESS_OF_THREE[access])


@functools.cache
def evaluate(loss: Function) -> Any:
    """Return the compiled evaluation of ratings."""
    return specialise(work_queue.evaluate_queue, evaluate=bind(matrix_factorisation.evaluate, loss=loss))


@functools.cache
def evaluate_pairs() -> Any:
    """Return the compiled evaluation of preferences (BPR)."""
    return specialise(work_queue.evaluate_queue, evaluate=bpr.evaluate_pairs)


def _walk(template: Function, access: str, **parts: Any) -> Any:
    if access == "turns":
        return specialise(template, **parts)
    return work_queue.QueueLoop(bind(template, **parts), keep=True)


def _ways(access: str) -> dict[str, Function]:
    ways = ways_of(access, stored_column)
    return {name: ways[name] for name in ("hold", "claim", "release")}
