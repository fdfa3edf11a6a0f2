"""Strategies: protocols by which workers share parameters. Each strategy has one file, and one entry here.

Those by messages are imported when they are first used: a run in one memory needs neither roles nor messages.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from hogwild.errors import ParameterError
from hogwild.lazy import late_names
from hogwild.registry import is_own, kebab, lookup, not_an_object
from hogwild.strategies.own_strategy import check_own_strategy
from hogwild.strategies.shared_memory import Averaging, Hogwild, Locked, RoundRobin, Serial
from hogwild.strategies.strategy import Strategy, worker_count

if TYPE_CHECKING:
    from hogwild.strategies.all_to_all import AllToAll as AllToAll
    from hogwild.strategies.elastic_averaging import ElasticAveraging as ElasticAveraging
    from hogwild.strategies.gossip import Gossip as Gossip
    from hogwild.strategies.local_sgd import DiLoCo as DiLoCo
    from hogwild.strategies.local_sgd import LocalSGD as LocalSGD
    from hogwild.strategies.parameter_server import ParameterServer as ParameterServer
    from hogwild.strategies.synchronous import LargeMinibatch as LargeMinibatch
    from hogwild.strategies.synchronous import Synchronous as Synchronous

    STRATEGIES: dict[str, type[Strategy]]

_HOMES = {
    "Serial": "hogwild.strategies.shared_memory",
    "Hogwild": "hogwild.strategies.shared_memory",
    "Locked": "hogwild.strategies.shared_memory",
    "RoundRobin": "hogwild.strategies.shared_memory",
    "Averaging": "hogwild.strategies.shared_memory",
    "Synchronous": "hogwild.strategies.synchronous",
    "ParameterServer": "hogwild.strategies.parameter_server",
    "LocalSGD": "hogwild.strategies.local_sgd",
    "DiLoCo": "hogwild.strategies.local_sgd",
    "ElasticAveraging": "hogwild.strategies.elastic_averaging",
    "AllToAll": "hogwild.strategies.all_to_all",
    "Gossip": "hogwild.strategies.gossip",
}
_NAMES = {kebab(name): name for name in _HOMES}
_imported, __dir__ = late_names(__name__, {**_HOMES, "LargeMinibatch": _HOMES["Synchronous"]})


def __getattr__(name: str) -> Any:
    return {known: _imported(kind) for known, kind in _NAMES.items()} if name == "STRATEGIES" else _imported(name)


def named(strategy: str | Strategy, workers: int | None = None) -> Strategy:
    """Return a strategy from its name and a number of workers, or a strategy unchanged.

    >>> named("round-robin", workers=2)
    RoundRobin(workers=2)
    """
    if isinstance(strategy, Strategy):
        return check_own_strategy(strategy) if is_own(strategy) else _plain(strategy)
    if not isinstance(strategy, str):
        raise not_an_object("strategy", "a strategy such as Hogwild(workers=4) or its name", strategy, Strategy)
    kind = _imported(lookup("strategy", strategy, _NAMES))
    if kind is Serial:
        if workers not in (None, 1):
            raise ParameterError(f"The strategy 'serial' has one worker. Got {workers}: use 'hogwild' for more.")
        return Serial()
    return _plain(kind(workers=workers))  # Every strategy but Serial has this field.


def _plain(strategy: Any) -> Strategy:
    """Return a strategy with integers of Python in place of NumPy's, which overflow, and which JSON does not have."""
    found = {}
    for field in fields(strategy) if is_dataclass(strategy) else ():
        value: Any = getattr(strategy, field.name)
        if field.init and not isinstance(value, int) and isinstance(value, Integral):
            found[field.name] = int(value)
    plain: Strategy = replace(strategy, **found) if found else strategy
    return plain


__all__ = [
    "STRATEGIES",
    "AllToAll",
    "Averaging",
    "DiLoCo",
    "ElasticAveraging",
    "Gossip",
    "Hogwild",
    "LargeMinibatch",
    "LocalSGD",
    "Locked",
    "ParameterServer",
    "RoundRobin",
    "Serial",
    "Strategy",
    "Synchronous",
    "named",
    "worker_count",
]
