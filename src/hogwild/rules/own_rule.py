"""Check of a rule that the user has written: what it declares, and one step in plain Python."""

from __future__ import annotations

from numbers import Real

import numpy as np

from hogwild.errors import ParameterError
from hogwild.jit import raises
from hogwild.registry import check_arguments
from hogwild.rules.rule import Rule

SIGNATURE = "step(state, p, g, rate, l1, l2, constants)"


def check_own_rule(rule: Rule) -> Rule:
    """Return a rule of the user's after a trial of its ``step``, before that is compiled into kernels.

    Raises
    ------
    ParameterError
        If ``initial`` or ``constants`` are not numbers, or ``step`` has other arguments, raises exceptions, fails, or
        changes nothing.
    """
    name = type(rule).__name__
    for what in ("initial", "constants"):
        found = getattr(rule, what)
        if not isinstance(found, tuple) or not found or not all(isinstance(each, Real) for each in found):
            raise ParameterError(f"'{what}' of the rule {name} must be a tuple of at least one number. Got {found!r}.")
    check_arguments("rule", rule.step, 7, SIGNATURE)
    if raises(rule.step):
        raise ParameterError(
            f"{SIGNATURE} of the rule {name} raises an exception (by 'raise' or 'assert', in it or in what it calls), "
            "which compiled code cannot pass on. Set the value to nan instead: the run then ends with an error."
        )
    state = np.array([rule.initial, rule.initial], rule.precision)
    before = state.copy()
    gradient, rate, none = np.float32(0.5), np.float32(0.1), np.float32(0)
    constants = tuple(np.float32(each) for each in rule.constants)
    try:
        rule.step(state, 0, gradient, rate, none, none, constants)
    except Exception as error:
        raise ParameterError(
            f"The rule {name} fails in {SIGNATURE}, for a row {rule.initial} of the state and a gradient of 0.5: "
            f"{type(error).__name__}: {error}"
        ) from error
    if (state[1] != before[1]).any():
        raise ParameterError(f"{SIGNATURE} of the rule {name} must change row p of the state alone.")
    if (state[0] == before[0]).all():
        raise ParameterError(
            f"{SIGNATURE} of the rule {name} must change row p of the state in place: its first number is the value, "
            "the others are what the rule remembers. For a gradient of 0.5 it changes nothing."
        )
    return rule
