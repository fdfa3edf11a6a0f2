"""Compiled loops of matrix completion, made of their parts."""

from __future__ import annotations

import functools
from typing import Any

from hogwild.compiled import Function, bind, constant, specialise
from hogwild.kernels import claims, factors, preferences
from hogwild.kernels.access import ACCESS, hold_all, release_all
from hogwild.kernels.layouts import stored_column
from hogwild.kernels.preferences import ACCESS_OF_THREE


@functools.cache
def descend(access: str, step: Function, numbers: int, loss: Function, nonnegative: bool, far: bool) -> Any:
    """The compiled descent along ratings; ``far``: the rows of factors are too many for a core's cache."""
    look = factors.look_ahead if far else factors.no_look_ahead
    return _walk(factors.descend, access, loss=loss, look=look, **_ways(access), **_common(step, numbers, nonnegative))


@functools.cache
def descend_pairs(access: str, step: Function, numbers: int, nonnegative: bool) -> Any:
    """The compiled descent along what users have met."""
    return _walk(preferences.descend_pairs, access, **ACCESS_OF_THREE[access], **_common(step, numbers, nonnegative))


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


def _common(step: Function, numbers: int, nonnegative: bool) -> dict[str, Function]:
    kept = factors.not_below_zero if nonnegative else factors.as_it_is
    return {"step": step, "numbers": constant(numbers), "kept": kept}


def _ways(access: str) -> dict[str, Function]:
    ways = {name: ACCESS[access][name] for name in ("hold", "claim", "release")}
    for name, way in ways.items():
        if way in (hold_all, release_all):
            ways[name] = bind(way, column=stored_column)
    return ways
