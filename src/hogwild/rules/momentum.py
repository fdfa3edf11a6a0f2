"""Heavy-ball momentum (Polyak 1964): gradient descent with a velocity per coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Rule, shrink


def momentum(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """Apply v <- beta v + g; w <- shrink(w - rate v) to row ``p``.

    In the limit a gradient moves ``w`` by rate / (1 - beta), so the penalty is applied with that step size.
    """
    velocity = constants[0] * state[p, 1] + g
    state[p, 1] = velocity
    state[p, 0] = shrink(state[p, 0] - rate * velocity, rate * constants[1], l1, l2)


@dataclass(frozen=True, slots=True)
class Momentum(Rule):
    """Heavy-ball momentum, lazy: the velocity of a coordinate changes only in terms that touch it.

    Asynchrony itself acts like momentum (Mitliagkas et al. 2016), which means that a run with many workers needs a
    smaller ``beta``.

    Parameters
    ----------
    beta : float, default 0.9
        Decay rate of the velocity, at least 0 and below 1.

    Raises
    ------
    ParameterError
        If ``beta`` is out of its range.

    References
    ----------
    I. Mitliagkas, C. Zhang, S. Hadjis and C. Ré, "Asynchrony Begets Momentum", Allerton 2016.
    """

    beta: float = 0.9

    initial = (0.0, 0.0)
    step = staticmethod(momentum)

    def __post_init__(self) -> None:
        if not 0 <= self.beta < 1:
            raise invalid_parameter("beta", "at least 0 and below 1", self.beta)

    @property
    def constants(self) -> tuple[float, ...]:
        """Beta, and the factor 1 / (1 - beta) by which beta lengthens a step in the limit."""
        return self.beta, 1 / (1 - self.beta)
