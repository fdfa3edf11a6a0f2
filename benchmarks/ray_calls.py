"""Messages between nodes on a Ray cluster, by sockets and by Ray, against bare calls of an actor with as many bytes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import results
from hogwild import Ray
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.job import MessageJob, RunConfig
from hogwild.messaging.messages import COORDINATOR, Begin, Leave, Pull, PullReply, Push, Ready, Stopped, server, worker
from hogwild.messaging.node import NO_DELAYS
from hogwild.messaging.protocol import Action, Delivered, Event, Finish, Send, Started, Train, Trained
from hogwild.runtimes.ray import driver
from hogwild.runtimes.ray.actor_context import PeerAddress
from hogwild.strategies.roles.parameter_server import ParameterServerRole

SIZES = {75: (4000, 400), 20_000: (2000, 300), 1_000_000: (100, 50)}  # values: pushes, exchanges
TURNS = 5
WINDOW = 16  # calls on their way at once
WARM = 20  # exchanges that do not count
FORMS = ("array", "bytes")
WAYS = {"socket": "one Ray node", "Ray": "two Ray nodes"}


class Caller:
    """Calls another actor with numbers, again and again."""

    def push(self, target: Any, values: int, calls: int, form: str) -> float:
        """Calls a second, with no more on their way than the window, and nobody asks what they came to."""
        import ray

        array, going = np.ones(values, np.float32), []
        what = array.tobytes() if form == "bytes" else array
        began = time.perf_counter()
        for _ in range(calls):
            going.append(target.take.remote(what))
            if len(going) >= WINDOW:
                _, going = ray.wait(going, num_returns=1)
        ray.get(going)
        return calls / (time.perf_counter() - began)

    def exchange(self, target: Any, values: int, calls: int) -> float:
        """Calls a second that are answered with as many numbers, each of which is waited for."""
        import ray

        array = np.ones(values, np.float32)
        began = time.perf_counter()
        for _ in range(calls):
            array = ray.get(target.swap.remote(array))
        return calls / (time.perf_counter() - began)


class Target:
    """Takes what it is called with, or has numbers for it."""

    def take(self, what: Any) -> None:
        pass

    def swap(self, array: Any) -> Any:
        return array + np.float32(1.0)


class Bare:
    """One actor that calls another."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        self.caller, self.target = (ray.remote(kind).options(num_cpus=0).remote() for kind in (Caller, Target))

    def pushes(self, values: int, calls: int, form: str) -> float:
        self.ray.get(self.caller.push.remote(self.target, values, WARM, form))
        return float(self.ray.get(self.caller.push.remote(self.target, values, calls, form)))

    def exchanges(self, values: int, calls: int) -> float:
        self.ray.get(self.caller.exchange.remote(self.target, values, WARM))
        return float(self.ray.get(self.caller.exchange.remote(self.target, values, calls)))


class Waits:
    """The coordinator: lets both begin, and ends when the worker has said how fast it was."""

    delays = NO_DELAYS

    clock = epoch = 0

    def __init__(self) -> None:
        self.ready: set[str] = set()

    def react(self, event: Event) -> Iterable[Action]:
        if not isinstance(event, Delivered):
            return
        if isinstance(event.body, Ready):
            self.ready.add(event.sender)
            if len(self.ready) == 2:
                for name in (server(0), worker(0)):
                    yield Send(name, Begin((), 0, 0, (worker(0),)))
        elif isinstance(event.body, Stopped):
            yield Finish(frozen(np.zeros(1, np.float32)), "epochs", {"stopped": {"worker": event.body.counts}})


class Pushes:
    """The worker: some exchanges to begin with, then pushes as fast as it may, then exchanges, one after the other.

    After its pushes it asks for the parameters, which it gets when all of them were added.
    """

    delays = NO_DELAYS

    epoch = 0

    def __init__(self, values: int, pushes: int, exchanges: int) -> None:
        self.vector = frozen(np.ones(values, np.float32))
        self.phases = [("warm", 0, WARM), ("pushes", pushes, 1), ("exchanges", 0, exchanges)]
        self.sizes = {"pushes": pushes, "exchanges": exchanges}
        self.rates: dict[str, float] = {}
        self.clock, self.pushes, self.exchanges, self.began, self.phase = 0, 0, 0, 0.0, ""

    def react(self, event: Event) -> Iterator[Action]:
        if isinstance(event, Started):
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered) and isinstance(event.body, Begin):
            yield Send(server(0), Pull(self.clock))
        elif isinstance(event, Delivered) and isinstance(event.body, PullReply):
            yield from self._answered()
        elif isinstance(event, Trained):
            yield from self._next()

    def _answered(self) -> Iterator[Action]:
        if not self.exchanges and not self.pushes:
            if self.phase in self.sizes:
                self.rates[self.phase] = self.sizes[self.phase] / (time.perf_counter() - self.began)
            if not self.phases:
                yield Send(server(0), Leave())
                yield Send(COORDINATOR, Stopped(self.rates))
                return
            self.phase, self.pushes, self.exchanges = self.phases.pop(0)
            self.began = time.perf_counter()
        yield from self._next()

    def _next(self) -> Iterator[Action]:
        if self.pushes > 1:
            self.pushes -= 1
            yield self._push()
            yield Train(self.vector, (0, 1), 0, 1, 0, 1)
        else:
            self.pushes, self.exchanges = 0, self.exchanges - 1
            yield self._push()
            yield Send(server(0), Pull(self.clock))

    def _push(self) -> Action:
        self.clock += 1
        return Send(server(0), Push(self.vector, self.clock - 1, self.clock - 1, 0, 1, 1, 0.0))


class Idle:
    """A burst that takes no time."""

    def warm_up(self, start: Floats) -> None:
        """Nothing is compiled here."""

    def burst(self, train: Train) -> Trained:
        return Trained(train.values, 1, 1, 0.0, 0.0)


def ours(values: int, pushes: int, exchanges: int, way: str) -> dict[str, float]:
    """Pushes and exchanges a second between a worker and a server, by our runtime, and how many calls they took."""
    if way == "Ray":  # as between Ray nodes, but on one
        with patch.object(driver, "_address", lambda record, _: PeerAddress(record.incarnation, record.handle)):
            return played(values, pushes, exchanges)
    return played(values, pushes, exchanges)


def played(values: int, pushes: int, exchanges: int) -> dict[str, float]:
    config = RunConfig(1, frozen(np.zeros(values, np.float32)), 1, None, silence=60.0)
    cast = {
        COORDINATOR: Waits, server(0): partial(ParameterServerRole, 0, 0, values, config),
        worker(0): partial(Pushes, values, pushes, exchanges),
    }  # fmt: skip
    job = MessageJob(config, cast, lambda number: Idle(), lambda values, exactly: {}, lambda event, **more: None)
    outcome = Ray(cpus_per_worker=0.0).play(job)
    return {**outcome.counts["worker"], "calls": outcome.more["calls"]}


def turn(bare: Bare, values: int, pushes: int, exchanges: int) -> dict[str, float]:
    """Each kind once, one right after the other."""
    found = {form: bare.pushes(values, pushes, form) for form in FORMS}
    for way in WAYS:
        found |= {f"{way} {name}": each for name, each in ours(values, pushes, exchanges, way).items()}
    return found | {"swaps": bare.exchanges(values, exchanges)}


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    import ray

    ray.init("local", num_cpus=4, include_dashboard=False, object_store_memory=500 << 20, logging_level="error")
    raw: dict[int, list[dict[str, float]]] = {values: [] for values in SIZES}
    try:
        bare = Bare(ray)
        for _ in range(1 if quick else TURNS):
            for values, (pushes, exchanges) in SIZES.items():
                few = (10, 3) if quick else (pushes, exchanges)
                raw[values].append(turn(bare, values, *few))
    finally:
        ray.shutdown()
    results.write(
        "ray_calls",
        "Pushes on a Ray cluster against bare actor calls",
        report(raw, ray.__version__),
        out,
        [{"values": values, "turns": turns} for values, turns in raw.items()],
    )


def report(raw: dict[int, list[dict[str, float]]], version: str) -> list[str]:
    pushes, exchanges = [], []
    for values, turns in raw.items():
        best = [max(each[form] for form in FORMS) for each in turns]
        swaps, size = [each["swaps"] for each in turns], 4 * values / 1e6
        for way, where in WAYS.items():
            mine, ours_ = ([each[f"{way} {name}"] for each in turns] for name in ("pushes", "exchanges"))
            pushes.append([
                f"{values:,}", where, *(results.span([each[form] for each in turns], ",.0f") for form in FORMS),
                results.span(mine, ",.0f"), results.span([one / other for one, other in zip(mine, best, strict=True)]),
                results.span([rate * size for rate in mine], ",.1f"),
                results.span([rate * size for rate in best], ",.1f"),
            ])  # fmt: skip
            exchanges.append([
                f"{values:,}", where, results.span(swaps, ",.0f"), results.span(ours_, ",.0f"),
                results.span([one / other for one, other in zip(ours_, swaps, strict=True)]),
            ])  # fmt: skip
    return [
        "One worker pushes dense float32 arrays to one parameter server, processes of one machine, until the server",
        "has added all of them. Beside it one Ray actor calls another with the same bytes, as an array and as `bytes`,",
        f"{WINDOW} calls on their way at most, and the other does nothing with them. Ours are numbered, receipted,",
        "checked, delivered once and in order, added, and kept for a crash; those that have to wait go together.",
        f"Ray {version}; median (least to most) of {len(next(iter(raw.values())))} turns, one of each after the other.",
        "The ratio is to the faster form of each turn; the goal is 0.8. On one Ray node ours go over a Unix socket,",
        "between Ray nodes by calls of Ray: here both on one machine.",
        "",
        *results.table(
            ["values", "nodes on", "bare, array: calls/s", "bare, bytes: calls/s", "our pushes/s", "ours to bare",
             "our MB/s", "bare MB/s"],
            pushes,
        ),
        "",
        "A push and the pull after it, each waited for: what a worker does that never trains. Beside it a call that",
        "adds one to the array and returns it. Ours is two calls, there and back, because a server may have a worker",
        "wait.",
        "",
        *results.table(["values", "nodes on", "bare calls/s", "our exchanges/s", "ours to bare"], exchanges),
    ]  # fmt: skip
