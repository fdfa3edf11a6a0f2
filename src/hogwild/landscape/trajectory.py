"""The way that a run takes: where its parameters were after each epoch."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import ParameterError
from hogwild.landscape.surface import Vector, surface
from hogwild.problems.problem import RowProblem
from hogwild.run import Callback, Event, Run


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The vectors that a run went through, one below the other: the start, and then one for each of ``epochs``."""

    points: NDArray[np.float64]
    epochs: tuple[int, ...]  # after which of them each vector was taken; 0: the start
    run: Run


def trajectory(
    problem: Any, rule: Any = None, schedule: Any = None, strategy: Any = "hogwild", runtime: Any = None,
    budget: Any = None, *, callbacks: Iterable[Callback] = (), **more: Any,
) -> Path:  # fmt: skip
    """Minimise a problem, with the arguments of :func:`hogwild.minimise`, and note where it is after each epoch.

    It is one run, and the same as without notes: a schedule has its whole course, an epoch its own order of rows, a
    rule its memory. That would not be so for runs of one epoch each that start from one another.

    The vectors of a ``Linear`` are those whose figures are in ``run.history``, with any strategy and on any runtime in
    this process. Those of a ``Module``, which is trained by processes that share it, are taken when all of them rest
    for a checkpoint, soon after each epoch; where epochs are over in no time, not after every one.

    >>> from hogwild import Linear
    >>> problem = Linear((np.array([[1.0], [2.0], [4.0]]), [1.0, 2.0, 4.0]), "squared", intercept=False)
    >>> path = trajectory(problem, strategy="serial", budget=3)
    >>> path.epochs, path.points.shape, float(path.points[0, 0])
    ((0, 1, 2, 3), (4, 1), 0.0)
    """
    if more.get("resume"):
        raise ParameterError("A path has a beginning: leave out 'resume'.")
    noted = _of_module if problem.terms == "batches" else _of_rows
    return noted(problem, (rule, schedule, strategy, runtime, budget), list(callbacks), more)


# Rows: whoever measures parameters asks the problem about them


def _of_rows(problem: Any, how: tuple[Any, ...], callbacks: list[Callback], more: dict[str, Any]) -> Path:
    from hogwild import runtimes
    from hogwild.training.minimise import minimise

    ground: Any = surface(problem)
    runtime = how[3]
    if runtime is not None and isinstance(runtimes.named(runtime), runtimes.Ray):
        raise ParameterError("A path is noted in this process: use runtime=Local() or Simulator() instead of Ray().")
    init = more.get("init")
    first = np.zeros(ground.size) if init is None else ground.vector(_values(init.state))
    notes = _Notes()
    noted: Any = _Noted(problem, notes, ground)
    run = minimise(noted, *how, callbacks=[*callbacks, notes], **more)
    return Path(np.array([first, *notes.points]), (0, *notes.epochs), run)


class _Notes:
    """Hears of everything that is measured, and keeps what the record of an epoch is about."""

    def __init__(self) -> None:
        self.points: list[Vector] = []
        self.epochs: list[int] = []
        self.measured: deque[Vector] = deque()  # of which no record was told yet

    def __call__(self, event: Event) -> None:
        if event["event"] == "diverged":  # what was measured last is not kept
            self.measured.clear()
        elif event["event"] == "epoch":
            self.points.append(self.measured.popleft())
            self.epochs.append(int(event["epoch"]))


class _Noted:
    """A problem that notes which parameters it is asked about.

    Whoever measures parameters, by threads or by messages, asks for their penalty once: the objective is a part of
    each record.
    """

    def __init__(self, problem: Any, notes: _Notes, ground: Any, rule: Any = None) -> None:
        self._problem, self._notes, self._ground, self._rule = problem, notes, ground, rule

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def for_rule(self, rule: Any) -> _Noted:
        """The same for a rule."""
        return _Noted(self._problem.for_rule(rule), self._notes, self._ground, rule)

    def penalty(self, state: Any) -> float:
        """What the objective has besides the loss."""
        self._notes.measured.append(self._ground.vector(_values(self._problem.from_training_space(state, self._rule))))
        penalty: float = self._problem.penalty(state)
        return penalty


RowProblem.register(_Noted)


def _values(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parameters alone, without what a rule remembers."""
    return tuple(np.asarray(part)[:, :1] for part in state)


# Modules: the net is there to be looked at


def _of_module(problem: Any, how: tuple[Any, ...], callbacks: list[Callback], more: dict[str, Any]) -> Path:
    from hogwild import runtimes, strategies
    from hogwild.training.minimise import minimise

    ground: Any = surface(problem)
    _, _, strategy, runtime, _ = how
    if not strategies.named(strategy).shares_memory or runtimes.named(runtime or "processes").passes_messages:
        raise ParameterError(
            "The path of a Module is noted where processes share it: use Hogwild(), Locked(), RoundRobin(), "
            f"Averaging() or Serial(), and leave out the runtime. Got {strategy!r} instead."
        )
    points, epochs = [ground.at(problem.net)], [0]

    def note(event: Event) -> None:
        if event["event"] != "checkpoint":
            return
        if epochs[-1] == event["epoch"] > 0:  # the last epoch is written down again at the end
            del points[-1], epochs[-1]
        points.append(ground.at(problem.net))
        epochs.append(int(event["epoch"]))

    with tempfile.TemporaryDirectory() as folder:
        run = minimise(problem, *how, callbacks=[*callbacks, note], **{"checkpoint": folder, **more})
    return Path(np.array(points), tuple(epochs), run)
