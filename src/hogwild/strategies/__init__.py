"""Strategies: protocols by which workers share parameters. Each strategy has one file, and one entry here."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from numbers import Integral
from typing import Any

from hogwild.errors import ParameterError
from hogwild.registry import is_own, kebab, lookup, not_an_object
from hogwild.strategies.all_to_all import AllToAll
from hogwild.strategies.elastic_averaging import ElasticAveraging
from hogwild.strategies.gossip import Gossip
from hogwild.strategies.local_sgd import DiLoCo, LocalSGD
from hogwild.strategies.own_strategy import check_own_strategy
from hogwild.strategies.parameter_server import ParameterServer
from hogwild.strategies.shared_memory import Averaging, Hogwild, Locked, RoundRobin, Serial
from hogwild.strategies.strategy import Strategy, worker_count
from hogwild.strategies.synchronous import LargeMinibatch, Synchronous

STRATEGIES: dict[str, type[Strategy]] = {
    kebab(kind.__name__): kind
    for kind in (
        Serial, Hogwild, Locked, RoundRobin, Averaging, Synchronous, ParameterServer, LocalSGD, DiLoCo,
        ElasticAveraging, AllToAll, Gossip,
    )
}  # fmt: skip


def named(strategy: str | Strategy, workers: int | None = None) -> Strategy:
    """Return a strategy from its name and a number of workers, or a strategy unchanged.

    >>> named("round-robin", workers=2)
    RoundRobin(workers=2)
    """
    if isinstance(strategy, Strategy):
        return check_own_strategy(strategy) if is_own(strategy) else _plain(strategy)
    if not isinstance(strategy, str):
        raise not_an_object("strategy", "a strategy such as Hogwild(workers=4) or its name", strategy, Strategy)
    kind = lookup("strategy", strategy, STRATEGIES)
    if kind is Serial:
        if workers not in (None, 1):
            raise ParameterError(f"The strategy 'serial' has one worker. Got {workers}: use 'hogwild' for more.")
        return Serial()
    # Every strategy but Serial has this field; their base class declares it as a property.
    return _plain(kind(workers=workers))  # type: ignore[call-arg]


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
