"""Check of a strategy that the user has written: what it declares."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, get_args

from hogwild.errors import ParameterError
from hogwild.registry import quoted_list
from hogwild.strategies.strategy import Access, Strategy, check_workers


def check_own_strategy(strategy: Strategy) -> Strategy:
    """Return a strategy of the user's, if it declares how its workers share the parameters.

    Raises
    ------
    ParameterError
        If it is no data class, has neither shared memory nor messages, or lacks what these need.
    """
    name = type(strategy).__name__
    kind: Any = type(strategy)  # which need not be what its base class asks for
    if not is_dataclass(kind):
        raise ParameterError(f"The strategy {name} must be a data class: write @dataclass(frozen=True) above it.")
    check_workers(strategy.workers)
    if not (strategy.shares_memory or strategy.passes_messages or strategy.uses_all_reduce):
        raise ParameterError(
            f"The strategy {name} does not say how its workers share the parameters: set shares_memory = True (and "
            "'access', 'replicas' or 'buffer'), or passes_messages = True, and define roles(self, config)."
        )
    if strategy.passes_messages and type(strategy).roles is Strategy.roles:
        raise ParameterError(
            f"The strategy {name} passes messages, and has to define roles(self, config), which returns a function for "
            "each node that makes its role."
        )
    if strategy.access not in get_args(Access):
        raise ParameterError(
            f"'access' of the strategy {name} must be one of {quoted_list(get_args(Access))}. Got {strategy.access!r}."
        )
    return strategy
