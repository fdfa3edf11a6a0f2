"""Steps as large as each term needs, no larger."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Rule
from hogwild.rules.sgd import sgd


@dataclass(frozen=True, slots=True)
class PassiveAggressive(Rule):
    """Each step just satisfies its term (Crammer et al. 2006), for the hinge and epsilon-insensitive losses.

    With ``variant=1`` the schedule's step is the most a step may be (their C); with 2 it softens every step.
    """

    variant: int = 1

    initial = (0.0,)
    step = staticmethod(sgd)
    skips_zero_gradient = True

    def __post_init__(self) -> None:
        if self.variant not in (1, 2):
            raise invalid_parameter("variant", "1 or 2", self.variant)

    @property
    def step_size(self) -> str:
        """How large the step of a term is; see ``hogwild.kernels.step_size``."""
        return "passive-aggressive" if self.variant == 1 else "passive-aggressive-2"
