"""Compiled loops of matrix completion, made of their parts."""

from __future__ import annotations

import functools
from typing import Any

from hogwild.compiled import Function, bind, constant, specialise
from hogwild.kernels import claims, factors, preferences
from hogwild.kernels.access import ways as ways_of
from hogwild.kernels.layouts import stored_column
from hogwild.kernels.preferences import ACCESS_OF_THREE
from hogwild.rules.sgd import sgd


@functools.cache
def descend(access: str, step: Function, numbers: int, loss: Function) -> Any:
    """The compiled descent along ratings."""
    two = factors.sgd_two if step is sgd else bind(factors.any_two, step=step)
    parts = {"step": step, "numbers": constant(numbers), "step_two": two, "loss": loss}
    return _walk(factors.descend, access, **parts, **_ways(access))


@functools.cache
def descend_pairs(access: str, step: Function, numbers: int) -> Any:
    """The compiled descent along what users have met."""
    three = preferences.sgd_three if step is sgd else bind(preferences.any_three, step=step)
    parts = {"step": step, "numbers": constant(numbers), "step_three": three}
    return _walk(preferences.descend_pairs, access, **parts, **ACCESS_OF_THREE[access])


@functools.cache
def evaluate(loss: Function) -> Any:
    """The compiled evaluation of ratings."""
    return specialise(claims.survey, evaluate=bind(factors.evaluate, loss=loss))


@functools.cache
def evaluate_pairs() -> Any:
    """The compiled evaluation of preferences."""
    return specialise(claims.survey, evaluate=preferences.evaluate_pairs)


def _walk(template: Function, access: str, **parts: Any) -> Any:
    if access == "turns":
        return specialise(template, **parts)
    loop = bind(claims.with_turns, kernel=bind(template, **parts))
    return specialise(claims.walk, descend=loop, begin=claims.no_begin, end=claims.no_end)


def _ways(access: str) -> dict[str, Function]:
    ways = ways_of(access, stored_column)
    return {name: ways[name] for name in ("hold", "claim", "release")}
