"""Roles of coordinators, servers and workers, state machines that react to events with actions, and their assembly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

from hogwild.messaging.compression import Compression
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import COORDINATOR, server, worker
from hogwild.messaging.node import Role, Roles
from hogwild.strategies.roles.change_log import LOGGED, ChangeLog
from hogwild.strategies.roles.coordinator import Coordinator
from hogwild.strategies.roles.membership import Membership
from hogwild.strategies.roles.outer_optimiser import OuterOptimiser, PlainOuter
from hogwild.strategies.roles.parameter_server import ParameterServerRole
from hogwild.strategies.roles.parameter_server_worker import ParameterServerWorker
from hogwild.strategies.roles.resident_worker import ResidentWorker


def parts_of(config: RunConfig, shards: int) -> tuple[tuple[int, int], ...]:
    """Return the first index and the end index of the values of each server, which are whole groups, but for the last.

    >>> import numpy as np
    >>> parts_of(RunConfig(1, np.zeros(10), 1, 1), 3), parts_of(RunConfig(1, np.zeros(11), 1, 1, group=5), 3)
    (((0, 3), (3, 6), (6, 10)), ((0, 0), (0, 5), (5, 11)))
    """
    groups = config.size // config.group
    ends = [config.group * (groups * k // shards) for k in range(shards)]
    return tuple(pairwise([*ends, config.size]))


def change_log(config: RunConfig, start: int, stop: int) -> ChangeLog | None:
    """Return the log of the changes of a server's parameters; None where workers pull all parameters."""
    return ChangeLog(LOGGED * config.start[start:stop].nbytes) if config.resident else None


def server_roles(
    config: RunConfig, shards: int, rounds: bool, serves: Callable[[int, int, int], Role], works: Callable[[], Role]
) -> Roles:
    """Return functions that make the roles of a coordinator, servers that hold the parameters, and workers."""
    roles: dict[str, Callable[[], Role]] = {COORDINATOR: lambda: Coordinator(config, shards, rounds)}
    for number, (start, stop) in enumerate(parts_of(config, shards)):
        roles[server(number)] = partial(serves, number, start, stop)
    return roles | {worker(number): works for number in range(config.workers)}


def peer_roles(config: RunConfig, rounds: bool, views: Callable[[], Membership], works: Callable[[int], Role]) -> Roles:
    """Return functions that make the roles of a coordinator, and of workers that hold the parameters."""
    roles: dict[str, Callable[[], Role]] = {COORDINATOR: lambda: Coordinator(config, 0, rounds, views())}
    return roles | {worker(number): partial(works, number) for number in range(config.workers)}


def synchronous_server_roles(
    config: RunConfig, period: int, outer: Callable[[], OuterOptimiser] = PlainOuter, *, together: bool = False,
    compression: Compression | None = None,
) -> Roles:  # fmt: skip
    """Return functions that make the roles of synchronous training with one server.

    All workers train ``period`` terms a round. The server applies ``outer`` to the mean of their deltas, and all
    continue from the result. Workers that keep their parameters weigh their deltas themselves, and the server adds
    them up.
    """

    def works() -> Role:
        if config.resident:
            return ResidentWorker(config, parts_of(config, 1), push_every=period, rounds=True)
        return ParameterServerWorker(
            config, parts_of(config, 1), push_every=period, rounds=True, together=together,
            compression=compression,
        )  # fmt: skip

    def serves(number: int, start: int, stop: int) -> Role:
        log = change_log(config, start, stop)
        return ParameterServerRole(number, start, stop, config, staleness=0, mean=log is None, outer=outer(), log=log)

    return server_roles(config, 1, True, serves, works)
