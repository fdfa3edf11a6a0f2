"""Progress of a worker in an interval between two exchanges, coordinate by coordinate.

A step takes a coordinate a part of the way to its optimum: the step times the curvature of a term. After steps that add
up to a progress of p, ``exp(-p)`` of the way is left. Features that are about as frequent are changed by the same rows,
and move scores together, so that each of them seems steeper by the number of those in a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.problems.problem import RowProblem, TypicalTerm
from hogwild.rules.rule import Rule

Floats = NDArray[np.float64]
HALVINGS = 2  # levels of sums of squares between one and twice that one
SMALLEST = 1e-12  # sum of squares


def measurable_term(problem: RowProblem, rule: Rule) -> TypicalTerm | None:
    """Return a typical term if the progress of a rule follows from its curvature, else None.

    Where the first step of a coordinate has full length, however small its gradient is, it may go too far at once.
    """
    return None if rule.effective_step is None or rule.shrinks_at_once else problem.typical_term()


def progress(term: TypicalTerm, rule: Rule, step: float, rates: Floats, rows: Any) -> Floats:
    """Return the progress of one worker in ``rows`` rows, of which the share ``rates`` has each feature.

    >>> from hogwild.rules import SGD
    >>> term = TypicalTerm(curvature=0.25, squared_slope=0.25, squares=np.array([1.0, 4.0]))
    >>> progress(term, SGD(), 0.4, np.array([0.5, 0.01]), 100).round(2)
    array([7.5, 0.4])
    """
    visits: Floats = rates * rows
    sums = np.maximum(visits, 1) * term.squares  # of squared values, by which steps fall
    levels = np.rint(HALVINGS * np.log2(np.maximum(sums, SMALLEST))).astype(np.int64)
    least = levels.min()
    steps = [_step_after(term, rule, step, 2 ** (level / HALVINGS)) for level in range(least, levels.max() + 1)]
    steepness = term.curvature * term.squares * (1 + _alike(rates))
    found: Floats = visits * np.minimum(1, np.array(steps)[levels - least] * steepness)
    return found


def _step_after(term: TypicalTerm, rule: Rule, step: float, sums: float) -> float:
    """Return the change per unit of gradient after visits of rows whose squared values add up to ``sums``."""
    state = np.array([rule.initial], np.float64)
    state[0, list(rule.accumulator_columns)] += sums * term.squared_slope
    assert rule.effective_step is not None
    return float(rule.effective_step(state, 0, step, rule.constants))


def _alike(rates: Floats) -> Floats:
    """Return the expected number of features in a row that are about as frequent as each feature.

    >>> _alike(np.array([0.9, 0.3, 0.26, 0.01])).round(2)
    array([0.9 , 0.56, 0.56, 0.01])
    """
    exponents = np.frexp(rates)[1]
    octaves = exponents - exponents.min()
    found: Floats = np.bincount(octaves, rates)[octaves]
    return found
