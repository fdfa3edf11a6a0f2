"""Loop along rows that all begin from the same parameters: the minibatch of a worker in step with others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hogwild.data.dataset import Chunk
from hogwild.jit import Function, bind, constant
from hogwild.messaging.deltas import Floats
from hogwild.problems.problem import RowProblem
from hogwild.rules.rule import Rule
from hogwild.training.burst_loops import SingleThreadLoop

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821


class MinibatchLoop:
    """Loop of the calling thread. The parameters stay as they are, and the changes of all rows are added up."""

    def __init__(self, problem: RowProblem, rule: Rule) -> None:
        self.width = len(rule.initial)
        self._loop = SingleThreadLoop(problem, StepsAside(rule), False)

    def begin(self, start: Floats) -> None:
        """Take the parameters from which all rows begin, as ``pack_state`` returns them."""
        first = 0
        for part in reversed(self._loop.state):
            values = start[first : first + len(part) * self.width].reshape(-1, self.width)
            part[:, : self.width] = part[:, self.width : 2 * self.width] = values
            part[:, 2 * self.width :] = 0
            first += values.size

    def __call__(self, chunk: Chunk, rates: Floats) -> float:
        """Add up the changes that each row alone would make; return the sum of the losses."""
        return self._loop(chunk, rates)

    def changes(self) -> tuple[Any, ...]:
        """Return the summed changes of each part of the state."""
        return tuple(part[:, 2 * self.width :] for part in self._loop.state)


@dataclass(frozen=True, slots=True)
class StepsAside(Rule):
    """Rule whose steps leave a coordinate as it was, and add its changes up in further columns.

    A row of the state has three parts: the numbers of the rule, the same numbers as they were, and summed changes.
    """

    rule: Rule

    @property
    def initial(self) -> tuple[float, ...]:
        """The numbers of the rule twice, and no changes."""
        return _with_changes(self.rule.initial)

    @property
    def initial_intercept(self) -> tuple[float, ...]:
        """The same for the intercept."""
        return _with_changes(self.rule.initial_intercept)

    @property
    def step(self) -> Callable[..., None]:
        """The step of the rule, after which its change is moved aside."""
        return _step_aside(self.rule.step, len(self.rule.initial))

    @property
    def constants(self) -> tuple[float, ...]:
        """Constants of the rule."""
        return self.rule.constants

    @property
    def skips_zero_gradient(self) -> bool:
        """Whether a zero gradient changes nothing."""
        return self.rule.skips_zero_gradient

    @property
    def step_size(self) -> str:
        """The choice of a term's step size."""
        return self.rule.step_size


def _with_changes(numbers: tuple[float, ...]) -> tuple[float, ...]:
    return (*numbers, *numbers, *(0.0 for _ in numbers))


@functools.cache
def _step_aside(step: Function, width: int) -> Function:
    """Return one function for each rule, so that its kernels are compiled once."""
    return bind(step_aside, step=step, width=constant(width))


def step_aside(state: Any, u: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """Take the step of a rule, add its changes to the sums, and restore the coordinate."""
    step(state, u, g, rate, l1, l2, constants)
    for n in range(width()):
        before = state[u, width() + n]
        state[u, 2 * width() + n] += state[u, n] - before
        state[u, n] = before
