"""Messages between participants on a Ray cluster, against bare calls of a Ray actor with as many bytes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from hogwild import Ray
from hogwild.messages.actions import Action, Finish, Say, Train
from hogwild.messages.company import Company
from hogwild.messages.events import Event, Heard, Started, Trained
from hogwild.messages.message import COORDINATOR, Begin, Halted, Leave, Push, Ready, server, worker
from hogwild.messages.setting import Setting
from hogwild.messages.vectors import frozen

SIZES = {75: 4000, 2_000: 4000, 20_000: 2000, 200_000: 400, 1_000_000: 100}  # values in a push: pushes
TURNS = 5
WINDOW = 16  # calls on their way at once


class Caller:
    """Calls another actor with an array, again and again, with no more calls on their way than the window."""

    def run(self, target: Any, values: int, calls: int) -> float:
        import ray

        array, going = np.ones(values, np.float32), []
        began = time.perf_counter()
        for _ in range(calls):
            going.append(target.take.remote(array))
            if len(going) >= WINDOW:
                _, going = ray.wait(going, num_returns=1)
        ray.get(going)
        return calls / (time.perf_counter() - began)


class Target:
    """Takes what it is called with."""

    def __init__(self) -> None:
        self.calls = 0

    def take(self, array: Any) -> None:
        self.calls += 1


def bare(ray: Any, values: int, calls: int) -> float:
    """Calls a second from one actor to another."""
    caller, target = (ray.remote(kind).options(num_cpus=0).remote() for kind in (Caller, Target))
    ray.get(caller.run.remote(target, values, 100))
    rate: float = ray.get(caller.run.remote(target, values, calls))
    for actor in (caller, target):
        ray.kill(actor)
    return rate


class Nothing:
    """A role that is nowhere."""

    clock = epoch = 0


class Waits(Nothing):
    """The coordinator: begins, and ends when the server has said how long it took."""

    def react(self, event: Event) -> Iterable[Action]:
        if isinstance(event, Heard) and isinstance(event.body, Ready) and event.sender == server(0):
            yield Say(worker(0), Begin((), 0, 0, ()))
        elif isinstance(event, Heard) and isinstance(event.body, Halted):
            yield Finish(frozen(np.zeros(1, np.float32)), "epochs", {"halted": {"server": event.body.counts}})


class Takes(Nothing):
    """The server: counts pushes from the first to the last, and does nothing else with them."""

    def __init__(self) -> None:
        self.pushes, self.began = 0, 0.0

    def react(self, event: Event) -> Iterable[Action]:
        if isinstance(event, Started):
            yield Say(COORDINATOR, Ready())
        elif isinstance(event, Heard) and isinstance(event.body, Push):
            self.began = self.began or time.perf_counter()
            self.pushes += 1
        elif isinstance(event, Heard) and isinstance(event.body, Leave):
            yield Say(COORDINATOR, Halted({"rate": (self.pushes - 1) / (time.perf_counter() - self.began)}))


class Pushes(Nothing):
    """The worker: pushes as fast as it may."""

    def __init__(self, values: int, pushes: int) -> None:
        self.vector, self.left = frozen(np.ones(values, np.float32)), pushes

    def react(self, event: Event) -> Iterator[Action]:
        if isinstance(event, Trained) or (isinstance(event, Heard) and isinstance(event.body, Begin)):
            if self.left:
                self.left -= 1
                yield Say(server(0), Push(self.vector, 0, 0, 0, 1, 1, 0.0))
                yield Train(self.vector, (0, 1), 0, 1, 0, 1)
            else:
                yield Say(server(0), Leave())


class Idle:
    """A burst that takes no time."""

    def burst(self, train: Train) -> Trained:
        return Trained(train.values, 1, 1, 0.0, 0.0)


def ours(values: int, pushes: int) -> tuple[float, int]:
    """Pushes a second from a worker to a server, by our runtime; and how many calls they took."""
    setting = Setting(1, frozen(np.zeros(values, np.float32)), 1, None, silence=60.0)
    cast = {COORDINATOR: Waits, server(0): Takes, worker(0): partial(Pushes, values, pushes)}
    company = Company(setting, cast, lambda number: Idle(), lambda values: {}, lambda event, **more: None)
    outcome = Ray(cpus=0.0).play(company)
    return float(outcome.counts["server"]["rate"]), int(outcome.more["calls"])


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    import ray

    ray.init("local", num_cpus=4, include_dashboard=False, object_store_memory=500 << 20, logging_level="error")
    rows, raw = [], []
    try:
        for values, pushes in SIZES.items():
            pushes = max(10, pushes // 50) if quick else pushes
            plain, mine = [], []
            for _ in range(1 if quick else TURNS):
                plain.append(bare(ray, values, pushes))
                mine.append(ours(values, pushes))
            rates = [rate for rate, _ in mine]
            ratio = [one / other for one, other in zip(rates, plain, strict=True)]
            raw.append({"values": values, "bare": plain, "ours": rates, "calls": [calls for _, calls in mine]})
            rows.append([
                f"{values:,}", results.span(plain, ",.0f"), results.span(rates, ",.0f"), results.span(ratio),
                *(f"{statistics.median(each) * values * 4 / 1e6:,.1f}" for each in (rates, plain)),
            ])  # fmt: skip
    finally:
        ray.shutdown()
    head = ["values", "bare calls/s", "our pushes/s", "ours to bare", "our MB/s", "bare MB/s"]
    results.write(
        "ray_calls",
        "Pushes on a Ray cluster against bare actor calls",
        [
            "One worker pushes dense float32 arrays to one server, processes on one machine; beside it one Ray actor",
            f"calls another with the same array, {WINDOW} calls on their way at most. Ours are numbered, receipted,",
            f"checked and delivered once and in order. Ray {ray.__version__}; median (least to most) of {TURNS} turns,",
            "one of each after the other. The goal is 0.8.",
            "",
            *results.table(head, rows),
        ],
        out,
        raw,
    )


if __name__ == "__main__":
    main()
