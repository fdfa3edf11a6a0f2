"""Executions: a strategy, how long things take, and everything that goes wrong, drawn at random and shrunk when one fails."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from hypothesis import strategies as st
from ledger import Ledger
from watching import Watched

from hogwild.messages.company import Company, Outcome
from hogwild.messages.setting import Setting
from hogwild.runtimes.simulator import Crash, Link, Simulator
from hogwild.strategies.parameter_server import ParameterServer

SILENCE = 1e4  # simulated seconds


@dataclass(frozen=True)
class Execution:
    """One of many. ``bursts`` is how many each worker makes an epoch, if all make as many."""

    strategy: Any = field(default_factory=lambda: ParameterServer(workers=1))
    bursts: int = 1
    epochs: int = 1
    seconds: float | None = None
    compute: str | float = 0.001
    link: Link = field(default_factory=Link)
    faults: tuple[Crash, ...] = ()
    late: dict[int, float] = field(default_factory=dict)
    detection: float = 0.0
    seed: int = 0

    def __str__(self) -> str:
        """Line by line, in a form that can be pasted into a list of executions."""
        plain = Execution()
        lines = [f"    {each.name}={getattr(self, each.name)!r}," for each in fields(self)
                 if getattr(self, each.name) != getattr(plain, each.name)]  # fmt: skip
        return "\n".join(["Execution(", *lines, ")"])

    def stage(self) -> Watched:
        """Ready to be played."""
        strategy = self.strategy
        ledger = Ledger(getattr(strategy, "shards", 1))
        epoch = strategy.workers * strategy.push_every * self.bursts
        setting = Setting(
            strategy.workers, ledger.start, epoch, self.epochs * epoch, seconds=self.seconds, silence=SILENCE,
            late=frozenset(self.late),
        )  # fmt: skip
        simulator = Simulator(
            compute=self.compute, link=self.link, faults=self.faults, late=self.late, detection=self.detection,
            silence=SILENCE,
        )  # fmt: skip
        company = Company(
            setting, strategy.cast(setting), lambda worker: ledger, lambda values: {"loss": 1.0},
            lambda event, **what: None, self.seed,
        )  # fmt: skip
        return Watched(simulator, company, ledger, strategy.staleness)

    def play(self) -> Outcome:
        """Run it; fails when it does not keep what is promised."""
        stage = self.stage()
        try:
            return stage.play()
        except Exception as error:
            error.add_note(f"{self}\nWhat went on, by simulated seconds:\n" + "\n".join(stage.log))
            raise


@st.composite
def parameter_servers(draw: st.DrawFn) -> ParameterServer:
    """Bounded and not."""
    staleness = draw(st.none() | st.integers(0, 4))
    push_every = draw(st.integers(1, 3))
    pulls = draw(st.integers(1, 4 if staleness is None else min(4, staleness + 1)))
    return ParameterServer(
        draw(st.integers(1, 6)), draw(st.integers(1, 3)), staleness, push_every, push_every * pulls, combine="sum"
    )


def shares(most: float) -> st.SearchStrategy[float]:
    """Often none."""
    return st.just(0.0) | st.floats(0.0, most).map(lambda share: round(share, 2))


def moments(most: float) -> st.SearchStrategy[float]:
    """A number of seconds, in tenths of a millisecond so that failures are easy to read."""
    return st.integers(0, round(most * 1e4)).map(lambda tenths: tenths / 1e4)


@st.composite
def executions(draw: st.DrawFn, kinds: st.SearchStrategy[Any] = parameter_servers()) -> Execution:  # noqa: B008
    """Crashes of anybody: servers come back, the first worker too, others perhaps; late ones; detection slower than restarts."""
    strategy = draw(kinds)
    servers = [f"server-{k}" for k in range(getattr(strategy, "shards", 0))]
    workers = [f"worker-{k}" for k in range(strategy.workers)]
    back = moments(0.05)
    sure = st.builds(Crash, st.sampled_from([*servers, workers[0]]), moments(0.05), back)
    perhaps = st.builds(Crash, st.sampled_from(workers[1:] or workers), moments(0.05), (back | st.none()) if workers[1:] else back)
    return Execution(
        strategy=strategy,
        bursts=draw(st.integers(1, 6)),
        epochs=draw(st.integers(1, 4)),
        seconds=draw(st.none() | st.none() | moments(0.05)),
        compute=draw(st.sampled_from([0.001, "exponential:0.001", "log-normal:0.001:1.0", "heavy-tail:0.0005"])),
        link=Link(
            draw(st.sampled_from([0.0001, "exponential:0.0003", "heavy-tail:0.0001", 0.003])),
            loss=draw(shares(0.3)), duplication=draw(shares(0.3)), reordering=draw(shares(0.5)),
        ),
        faults=tuple(sorted(draw(st.lists(sure | perhaps, max_size=8)), key=lambda crash: crash.at)),
        late=draw(st.dictionaries(st.integers(1, strategy.workers - 1), moments(0.05), max_size=2)) if workers[1:] else {},
        detection=draw(moments(0.05)),
        seed=draw(st.integers(0, 999)),
    )  # fmt: skip
