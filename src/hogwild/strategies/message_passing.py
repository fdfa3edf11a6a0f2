"""What strategies by messages have in common: a role for each participant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

from hogwild.messaging.compression import Compression
from hogwild.messaging.messages import COORDINATOR, server, worker
from hogwild.messaging.node import Role
from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.roles.coordinator import Coordinator
from hogwild.strategies.roles.membership import Membership
from hogwild.strategies.roles.outer_optimiser import OuterOptimiser, PlainOuter
from hogwild.strategies.roles.parameter_server import ParameterServerRole
from hogwild.strategies.roles.parameter_server_worker import ParameterServerWorker

Cast = Mapping[str, Callable[[], Role]]
"""For each participant how its role begins, at the start and after each crash."""


class MessageStrategy(Protocol):
    """A strategy whose participants talk to each other."""

    @property
    def workers(self) -> int | None:
        """How many workers; None: one per core."""

    @property
    def within(self) -> Any:
        """The strategy in memory that each node uses on its own cores; None: one worker a node."""

    def cast(self, setting: RunConfig) -> Cast:
        """Who takes part."""


def parts_of(size: int, shards: int) -> tuple[tuple[int, int], ...]:
    """Where the parameters of each server begin and end.

    >>> parts_of(10, 3)
    ((0, 3), (3, 6), (6, 10))
    """
    ends = [size * k // shards for k in range(shards + 1)]
    return tuple(pairwise(ends))


def server_roles(
    setting: RunConfig, shards: int, rounds: bool, serves: Callable[[int, int, int], Role], works: Callable[[], Role]
) -> Cast:
    """A coordinator, servers that have the parameters, and workers."""
    cast: dict[str, Callable[[], Role]] = {COORDINATOR: lambda: Coordinator(setting, shards, rounds)}
    for number, (start, stop) in enumerate(parts_of(setting.size, shards)):
        cast[server(number)] = partial(serves, number, start, stop)
    return cast | {worker(number): works for number in range(setting.workers)}


def peer_roles(setting: RunConfig, rounds: bool, views: Callable[[], Membership], works: Callable[[int], Role]) -> Cast:
    """A coordinator, and workers that have the parameters themselves."""
    cast: dict[str, Callable[[], Role]] = {COORDINATOR: lambda: Coordinator(setting, 0, rounds, views())}
    return cast | {worker(number): partial(works, number) for number in range(setting.workers)}


def synchronous_server_roles(
    setting: RunConfig, period: int, outer: Callable[[], OuterOptimiser] = PlainOuter, *, together: bool = False,
    compression: Compression | None = None,
) -> Cast:  # fmt: skip
    """All train as many terms, and then go on from what one server makes of the mean of their changes."""

    def works() -> Role:
        return ParameterServerWorker(
            setting, parts_of(setting.size, 1), push_every=period, rounds=True, together=together,
            compression=compression,
        )  # fmt: skip

    def serves(number: int, start: int, stop: int) -> Role:
        return ParameterServerRole(number, start, stop, setting, staleness=0, mean=True, outer=outer())

    return server_roles(setting, 1, True, serves, works)
