"""Injected crashes of nodes: their times, and the restarts that follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True)
class Crash:
    """Crash of one node at a given time, with or without a restart.

    A crash of the coordinator ends the run. A crash of a node that is not running has no effect.

    Parameters
    ----------
    who : str
        Name of the node, such as "worker-1", "server-0" or "coordinator".
    at : float
        Seconds after the start of the run at which the node crashes.
    back_after : float, optional
        Seconds from the crash to the restart. By default the node never restarts.

    Raises
    ------
    ParameterError
        If ``at`` or ``back_after`` is negative.
    """

    who: str
    at: float
    back_after: float | None = None

    def __post_init__(self) -> None:
        if not self.at >= 0:
            raise invalid_parameter("at", "a number of seconds", self.at)
        if self.back_after is not None and not self.back_after >= 0:
            raise invalid_parameter("back_after", "a number of seconds, or None for never", self.back_after)


@dataclass(frozen=True, slots=True)
class Crashes:
    """Random crashes of all workers, and of all servers on request, each followed by a restart.

    The seconds between two crashes of a node are exponentially distributed.

    Parameters
    ----------
    every : float
        Mean seconds between two crashes of each node.
    back_after : float, default 1.0
        Seconds from a crash to the restart.
    servers : bool, default False
        Whether servers crash too.

    Raises
    ------
    ParameterError
        If ``every`` is not positive.
    """

    every: float
    back_after: float = 1.0
    servers: bool = False

    def __post_init__(self) -> None:
        if not self.every > 0:
            raise invalid_parameter("every", "a positive number of seconds", self.every)


Fault = Crash | Crashes
MANY = 1000  # number of random crashes that are drawn for each node


def checked(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return faults as a tuple; raise ``ParameterError`` for an element that is not a fault."""
    faults = tuple(faults)
    for fault in faults:
        if not isinstance(fault, (Crash, Crashes)):
            raise invalid_parameter("faults", "Crash(who, at, back_after) and Crashes(every, back_after)", fault)
    return faults


def planned(faults: Iterable[Fault], names: Iterable[str], random: np.random.Generator) -> Iterator[Crash]:
    """Yield all crashes of a run, for the named nodes.

    Random times are drawn in advance, 1000 for each node, so that the events of the run do not change them.

    >>> list(planned([Crash("worker-1", at=2.0)], ["worker-0", "worker-1"], np.random.default_rng(0)))
    [Crash(who='worker-1', at=2.0, back_after=None)]
    """
    names = sorted(names)
    for fault in faults:
        if isinstance(fault, Crash):
            yield fault
            continue
        kinds = ("worker", "server") if fault.servers else ("worker",)
        for name in names:
            if name.startswith(kinds):
                for at in np.cumsum(random.exponential(fault.every, MANY)):
                    yield Crash(name, float(at), fault.back_after)
