"""Passive-aggressive rule (Crammer et al. 2006), whose steps are as large as each term needs."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Rule
from hogwild.rules.sgd import sgd


@dataclass(frozen=True, slots=True)
class PassiveAggressive(Rule):
    """Passive-aggressive rule (Crammer et al. 2006), whose step just satisfies its term.

    The rule suits the losses "hinge" and "epsilon-insensitive".

    Parameters
    ----------
    variant : {1, 2}, default 1
        Variant of the paper. With 1 (PA-I), the schedule's step size is the largest step size (C in the paper). With 2
        (PA-II), it softens every step.

    Raises
    ------
    ParameterError
        If ``variant`` is neither 1 nor 2.

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, "Online Passive-Aggressive Algorithms", JMLR 7,
    2006.
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
        """The function of ``hogwild.kernels.step_size`` that gives the step size of a term."""
        return "passive-aggressive" if self.variant == 1 else "passive-aggressive-2"
