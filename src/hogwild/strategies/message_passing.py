"""Roles that several message-passing strategies share: with servers, among peers, in rounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

from hogwild.messaging.compression import Compression
from hogwild.messaging.messages import COORDINATOR, server, worker
from hogwild.messaging.node import Role
from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.roles.coordinator import Coordinator
from hogwild.strategies.roles.membership import Membership
from hogwild.strategies.roles.outer_optimiser import OuterOptimiser, PlainOuter
from hogwild.strategies.roles.parameter_server import ParameterServerRole
from hogwild.strategies.roles.parameter_server_worker import ParameterServerWorker
from hogwild.strategies.strategy import Roles


def parts_of(size: int, shards: int) -> tuple[tuple[int, int], ...]:
    """Where the parameters of each server begin and end.

    >>> parts_of(10, 3)
    ((0, 3), (3, 6), (6, 10))
    """
    ends = [size * k // shards for k in range(shards + 1)]
    return tuple(pairwise(ends))


def server_roles(
    config: RunConfig, shards: int, rounds: bool, serves: Callable[[int, int, int], Role], works: Callable[[], Role]
) -> Roles:
    """A coordinator, servers that have the parameters, and workers."""
    roles: dict[str, Callable[[], Role]] = {COORDINATOR: lambda: Coordinator(config, shards, rounds)}
    for number, (start, stop) in enumerate(parts_of(config.size, shards)):
        roles[server(number)] = partial(serves, number, start, stop)
    return roles | {worker(number): works for number in range(config.workers)}


def peer_roles(config: RunConfig, rounds: bool, views: Callable[[], Membership], works: Callable[[int], Role]) -> Roles:
    """A coordinator, and workers that have the parameters themselves."""
    roles: dict[str, Callable[[], Role]] = {COORDINATOR: lambda: Coordinator(config, 0, rounds, views())}
    return roles | {worker(number): partial(works, number) for number in range(config.workers)}


def synchronous_server_roles(
    config: RunConfig, period: int, outer: Callable[[], OuterOptimiser] = PlainOuter, *, together: bool = False,
    compression: Compression | None = None,
) -> Roles:  # fmt: skip
    """All train as many terms, and then go on from what one server makes of the mean of their changes."""

    def works() -> Role:
        return ParameterServerWorker(
            config, parts_of(config.size, 1), push_every=period, rounds=True, together=together,
            compression=compression,
        )  # fmt: skip

    def serves(number: int, start: int, stop: int) -> Role:
        return ParameterServerRole(number, start, stop, config, staleness=0, mean=True, outer=outer())

    return server_roles(config, 1, True, serves, works)
