"""Update rules of row problems, by class and by name."""

from __future__ import annotations

from hogwild.registry import is_own, kebab, lookup, not_an_object
from hogwild.rules.adagrad import AdaGrad
from hogwild.rules.adam import Adam
from hogwild.rules.ftrl import FTRL
from hogwild.rules.own_rule import check_own_rule
from hogwild.rules.rule import Rule
from hogwild.rules.sdca import SDCA
from hogwild.rules.sgd import SGD, Momentum, PassiveAggressive
from hogwild.rules.sklearn_sgd import Sequential

# Rules that step each coordinate by itself, and suit every loss and strategy. PassiveAggressive and Sequential do not,
# so they have no names here.
COORDINATE_RULES: dict[str, type[Rule]] = {kebab(rule.__name__): rule for rule in (SGD, Momentum, AdaGrad, FTRL, Adam)}
RULES: dict[str, type[Rule]] = {**COORDINATE_RULES, "sdca": SDCA}


def named(rule: str | Rule) -> Rule:
    """Return a rule, given as an object or by its name.

    Raises
    ------
    ParameterError
        If there is no such rule.

    Examples
    --------
    >>> named("momentum")
    Momentum(beta=0.9)
    """
    if isinstance(rule, Rule):
        return check_own_rule(rule) if is_own(rule) else rule
    if not isinstance(rule, str):
        raise not_an_object("rule", "a rule such as AdaGrad() or its name", rule, Rule)
    return lookup("rule", rule, RULES)()


__all__ = [
    "COORDINATE_RULES",
    "FTRL",
    "RULES",
    "SDCA",
    "SGD",
    "AdaGrad",
    "Adam",
    "Momentum",
    "PassiveAggressive",
    "Rule",
    "Sequential",
    "named",
]
