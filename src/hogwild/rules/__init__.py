"""Update rules of row problems, by class and by name."""

from __future__ import annotations

from hogwild.registry import invalid_parameter, kebab, lookup
from hogwild.rules.adagrad import AdaGrad
from hogwild.rules.adam import Adam
from hogwild.rules.ftrl import FTRL
from hogwild.rules.rule import Rule
from hogwild.rules.sgd import SGD, Momentum, PassiveAggressive
from hogwild.rules.sklearn_sgd import Sequential

# Rules that suit every loss and strategy. PassiveAggressive and Sequential do not, so they have no names here.
RULES: dict[str, type[Rule]] = {kebab(rule.__name__): rule for rule in (SGD, Momentum, AdaGrad, FTRL, Adam)}


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
        return rule
    if not isinstance(rule, str):
        raise invalid_parameter("rule", "a rule such as AdaGrad() or its name", rule)
    return lookup("rule", rule, RULES)()


__all__ = ["FTRL", "RULES", "SGD", "AdaGrad", "Adam", "Momentum", "PassiveAggressive", "Rule", "Sequential", "named"]
