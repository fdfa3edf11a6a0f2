"""Plain steps of one worker alone, with penalties as textbooks and scikit-learn have them."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.naming import must
from hogwild.rules.sgd import sgd

MEAN = 2


@dataclass(frozen=True, slots=True)
class Sequential:
    """Steps of plain SGD whose penalties pull *all* weights at every step, instead of a term's own by its share.

    Every weight follows the path it has in scikit-learn's SGD, up to rounding. It takes a worker of its own: a step
    that reaches all weights cannot be shared without locks. ``pace`` says how large a step is (see
    ``hogwild.kernels.pace``). An L1 penalty needs a rule that ``owes``: it remembers what each weight has paid. One
    that ``averages`` keeps the mean of its iterates after every step, not only after some, which takes the digits of
    float64. ``precision`` is that of weights and steps.
    """

    pace: str = "scheduled"
    owes: bool = True
    averages: bool = False
    precision: str = "float32"

    constants = (0.0,)
    step = staticmethod(sgd)
    rests = False
    alone = True

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "float64") or (self.averages and self.precision == "float32"):
            raise must("precision", "float32, or float64, which averages need", self.precision)

    @property
    def initial(self) -> tuple[float, ...]:
        """A weight, what it has paid, its mean, and since when that is not up to date."""
        return (0.0, 0.0, 0.0, 0.0) if self.owes or self.averages else (0.0,)

    @property
    def mean(self) -> int:
        """Where in a weight's memory its mean over the last chunk is; 0: only its value at the end."""
        return MEAN if self.averages else 0
