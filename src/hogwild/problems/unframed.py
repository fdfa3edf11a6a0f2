"""Problems whose parameters are trained in the form in which their models have them."""

from __future__ import annotations

from typing import Any, Self

from hogwild.problems.problem import State


class NoStandardisation:
    """For problems to inherit: one form of the problem, and of its parameters, suits every rule.

    >>> NoStandardisation().inward((1, 2), "sgd")
    (1, 2)
    """

    def suited(self, rule: Any) -> Self:
        """This problem itself."""
        return self

    def inward(self, state: State, rule: Any) -> State:
        """The parameters themselves."""
        return state

    def outward(self, state: State, rule: Any) -> State:
        """The parameters themselves."""
        return state
