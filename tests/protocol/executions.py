"""Executions: a strategy, how long things take, and what goes wrong; drawn at random, and shrunk when one fails."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from ledger import Ledger, ResidentLedger
from watching import Audited, Watched

from hogwild.delays import Slowed
from hogwild.messaging.job import MessageJob, Outcome, RunConfig
from hogwild.runtimes.messaging.injected_faults import Crash, Link
from hogwild.runtimes.simulator import Simulator
from hogwild.strategies import AllToAll, ElasticAveraging, Gossip, LocalSGD, ParameterServer
from hogwild.strategies.local_sgd import DiLoCo
from hogwild.strategies.shared_memory import Averaging
from hogwild.strategies.synchronous import Synchronous

SILENCE = 1e4  # simulated seconds


@dataclass(frozen=True, repr=False)
class Execution:
    """One of many. ``bursts`` is how many each worker makes an epoch, if all make as many."""

    strategy: Any
    bursts: int = 1
    epochs: int = 1
    seconds: float | None = None
    compute: str | float = 0.001
    slow: dict[int, float] = field(default_factory=dict)
    link: Link = field(default_factory=Link)
    faults: tuple[Crash, ...] = ()
    late: dict[int, float] = field(default_factory=dict)
    detection: float = 0.0
    seed: int = 0
    run_ahead: int = 0
    resident: bool = False
    fresh: float = math.inf

    def __repr__(self) -> str:
        """Line by line, in a form that can be repeated."""
        return written(self, ",\n    ").replace("(", "(\n    ", 1)

    def stage(self) -> Watched:
        """Ready to be played."""
        strategy = self.strategy
        ledger = Ledger(max(1, servers_of(strategy)), self.fresh < math.inf)
        epoch = strategy.workers * strategy.interval * self.bursts
        config = RunConfig(
            strategy.workers, ledger.start, epoch, self.epochs * epoch, seconds=self.seconds, silence=SILENCE,
            late=frozenset(self.late), run_ahead=self.run_ahead, resident=self.resident, fresh=self.fresh,
        )  # fmt: skip
        compute = Slowed(self.compute, self.slow)
        simulator = Simulator(compute, self.link, 0.0, self.faults, self.late, self.detection, SILENCE)
        job = MessageJob(
            config, strategy.roles(config), lambda worker: ResidentLedger(ledger) if self.resident else ledger,
            lambda values, exactly: {"loss": 1.0}, lambda event, **what: None, self.seed,
        )  # fmt: skip
        if not servers_of(strategy) or isinstance(strategy, ElasticAveraging):  # pushes are no changes to be added
            # Who meets others half way, one at a time, can have given all of something to some who die.
            pairs = isinstance(strategy, Gossip) and not strategy.synchronous
            return Watched(simulator, job, ledger, lasting=not (pairs and self.faults), steady=self.steady)
        staleness = getattr(strategy, "staleness", 0)
        whole = getattr(strategy, "combine", "mean") == "sum" or self.resident
        return Audited(simulator, job, ledger, staleness, whole, self.steady)

    @property
    def steady(self) -> bool:
        """Whether the same workers are there from the beginning to the end."""
        return not self.faults and not self.late

    def play(self) -> Outcome:
        """Run it; fails when it does not keep what is promised."""
        stage = self.stage()
        try:
            return stage.play()
        except Exception as error:
            error.add_note("\n".join([repr(self), "What happened, by simulated seconds:", *stage.log]))
            raise


def written(thing: Any, between: str = ", ") -> str:
    """As it can be written in Python, without what is left out anyway."""
    if isinstance(thing, tuple):
        return "(" + "".join(written(each) + ", " for each in thing) + ")"
    if not is_dataclass(thing):
        return repr(thing)
    try:
        usual: Any = Execution(None) if isinstance(thing, Execution) else type(thing)()  # type: ignore[operator]
    except TypeError:
        usual = None
    told = [(each.name, getattr(thing, each.name)) for each in fields(thing)
            if usual is None or getattr(thing, each.name) != getattr(usual, each.name)]  # fmt: skip
    return f"{type(thing).__name__}({between.join(f'{name}={written(value)}' for name, value in told)})"


def servers_of(strategy: Any) -> int:
    """How many servers a strategy has."""
    config = RunConfig(strategy.workers, np.zeros(8, np.float32), 1, 1)
    return sum(name.startswith("server") for name in strategy.roles(config))


@st.composite
def parameter_servers(draw: st.DrawFn) -> ParameterServer:
    """Bounded and not."""
    staleness = draw(st.none() | st.integers(0, 4))
    push_every = draw(st.integers(1, 3))
    pulls = draw(st.integers(1, 4 if staleness is None else min(4, staleness + 1)))
    return ParameterServer(
        draw(st.integers(1, 6)), draw(st.integers(1, 3)), staleness, push_every, push_every * pulls, combine="sum"
    )


others = st.builds(
    lambda kind, workers: kind(workers),
    st.sampled_from([Synchronous, Averaging, lambda n: LocalSGD(n, 2), DiLoCo, lambda n: ElasticAveraging(n, 2)]),
    st.integers(1, 6),
)


without_servers = st.builds(
    lambda kind, topology, workers: kind(workers, topology),
    st.sampled_from([
        lambda workers, _: AllToAll(workers),
        lambda workers, _: AllToAll(workers, synchronous=False, period=2),
        lambda workers, topology: Gossip(topology, workers=workers),
        lambda workers, topology: Gossip(topology, synchronous=False, workers=workers, period=2),
    ]),
    st.sampled_from(["ring", "clique", "star", "exponential", "one-peer-exponential"]),
    st.integers(1, 6),
)  # fmt: skip


def shares(most: float) -> st.SearchStrategy[float]:
    """Often none."""
    return st.just(0.0) | st.floats(0.0, most).map(lambda share: round(share, 2))


def moments(most: float) -> st.SearchStrategy[float]:
    """A number of seconds, in tenths of a millisecond so that failures are easy to read."""
    return st.integers(0, round(most * 1e4)).map(lambda tenths: tenths / 1e4)


@st.composite
def executions(draw: st.DrawFn, kinds: st.SearchStrategy[Any]) -> Execution:
    """Anybody crashes: servers and the first worker come back, others perhaps. Some are late."""
    strategy = draw(kinds)
    first, *more = (f"worker-{k}" for k in range(strategy.workers))
    sure = [*(f"server-{k}" for k in range(servers_of(strategy))), first]
    crashes = st.builds(Crash, st.sampled_from(sure), moments(0.05), moments(0.05))
    late: dict[int, float] = {}
    if more:
        crashes |= st.builds(Crash, st.sampled_from(more), moments(0.05), moments(0.05) | st.none())
        late = draw(st.dictionaries(st.integers(1, len(more)), moments(0.05), max_size=2))
    return Execution(
        strategy=strategy,
        bursts=draw(st.integers(1, 6)),
        epochs=draw(st.integers(1, 4)),
        seconds=draw(st.none() | st.none() | moments(0.05)),
        compute=draw(st.sampled_from([0.001, "exponential:0.001", "log-normal:0.001:1.0", "heavy-tail:0.0005"])),
        slow=draw(st.dictionaries(st.integers(0, len(more)), st.sampled_from([4.0, 20.0]), max_size=1)),
        link=Link(
            draw(st.sampled_from([0.0001, "exponential:0.0003", "heavy-tail:0.0001", 0.003])),
            loss=draw(shares(0.3)), duplication=draw(shares(0.3)), reordering=draw(shares(0.5)),
        ),
        faults=tuple(sorted(draw(st.lists(crashes, max_size=8)), key=lambda crash: crash.at)),
        late=late,
        detection=draw(moments(0.05)),
        seed=draw(st.integers(0, 999)),
        run_ahead=draw(st.sampled_from([0, 1, 1024])),
    )  # fmt: skip
