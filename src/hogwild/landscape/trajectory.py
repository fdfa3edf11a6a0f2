"""The path of a training run, and the plane of its principal components."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild.errors import ParameterError
from hogwild.events import Callback, Event
from hogwild.landscape.loss_slices import Plane, over
from hogwild.landscape.surface import Surface, Vector, checked, surface
from hogwild.problems.problem import Problem
from hogwild.registry import invalid_parameter
from hogwild.run import Run

if TYPE_CHECKING:
    from hogwild.runtimes.runtime import Runtime
    from hogwild.schedules import Schedule
    from hogwild.stopping import Budget
    from hogwild.strategies import Strategy


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Parameter vectors of a run, one per row: the start, and then one vector for each of ``epochs``."""

    points: NDArray[np.float64]
    epochs: tuple[int, ...]  # epoch after which each vector was recorded; 0 is the start
    run: Run


def trajectory(
    problem: Problem, rule: object = None, schedule: Schedule | str | float | None = None,
    strategy: Strategy | str = "hogwild", runtime: Runtime | str | None = None, budget: Budget | int | None = None, *,
    callbacks: Iterable[Callback] = (), **more: object,
) -> Path:  # fmt: skip
    """Minimise a problem, with the arguments of :func:`hogwild.minimise`, and record the parameters after each epoch.

    Recording does not change the run: the schedule keeps its whole course, each epoch its own order of rows, and the
    rule its memory. A chain of runs of one epoch each would lose all three.

    The vectors of a ``Linear`` are those whose figures are in ``run.history``. They are recorded with any strategy and
    on any runtime in this process. Processes that share memory train a ``Module``. Its vectors are recorded when all
    processes are suspended for a checkpoint, shortly after each epoch. Where epochs are shorter than the time of a
    checkpoint, some epochs are not recorded.

    >>> from hogwild import Linear
    >>> problem = Linear((np.array([[1.0], [2.0], [4.0]]), [1.0, 2.0, 4.0]), "squared", intercept=False)
    >>> path = trajectory(problem, strategy="serial", budget=3)
    >>> path.epochs, path.points.shape, float(path.points[0, 0])
    ((0, 1, 2, 3), (4, 1), 0.0)
    """
    if more.get("resume"):
        raise ParameterError("A path has a beginning: leave out 'resume'.")
    record = _of_module if problem.terms == "batches" else _of_rows
    return record(problem, (rule, schedule, strategy, runtime, budget), list(callbacks), more)


# Problems of rows: the event of an epoch has the parameters that it describes.


def _of_rows(problem: Any, how: tuple[Any, ...], callbacks: list[Callback], more: dict[str, Any]) -> Path:
    from hogwild import runtimes
    from hogwild.training.minimise import minimise

    objective: Any = surface(problem)
    runtime = how[3]
    if runtime is not None and isinstance(runtimes.named(runtime), runtimes.Ray):
        raise ParameterError("A path is recorded in this process: use runtime=Local() or Simulator() instead of Ray().")
    init = more.get("init")
    points = [np.zeros(objective.size) if init is None else objective.vector(_values(init.state))]
    epochs = [0]

    def record(event: Event) -> None:
        if event["event"] == "epoch":
            points.append(objective.vector(event.parameters))
            epochs.append(int(event["epoch"]))

    run = minimise(problem, *how, callbacks=[*callbacks, record], **more)
    return Path(np.array(points), tuple(epochs), run)


def _values(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parameters alone, without the memory of a rule."""
    return tuple(np.asarray(part)[:, :1] for part in state)


# Modules: the parameters are read from the net itself.


def _of_module(problem: Any, how: tuple[Any, ...], callbacks: list[Callback], more: dict[str, Any]) -> Path:
    from hogwild import runtimes, strategies
    from hogwild.training.minimise import minimise

    objective: Any = surface(problem)
    _, _, strategy, runtime, _ = how
    if not strategies.named(strategy).shares_memory or runtimes.named(runtime or "processes").passes_messages:
        raise ParameterError(
            "The path of a Module is recorded where processes share it: use Hogwild(), Locked(), RoundRobin(), "
            f"Averaging() or Serial(), and leave out the runtime. Got {strategy!r} instead."
        )
    points, epochs = [objective.at(problem.net)], [0]

    def record(event: Event) -> None:
        if event["event"] != "checkpoint":
            return
        if epochs[-1] == event["epoch"] > 0:  # the end of the run writes a second checkpoint of the last epoch
            del points[-1], epochs[-1]
        points.append(objective.at(problem.net))
        epochs.append(int(event["epoch"]))

    with tempfile.TemporaryDirectory() as folder:
        run = minimise(problem, *how, callbacks=[*callbacks, record], **{"checkpoint": folder, **more})
    return Path(np.array(points), tuple(epochs), run)


STRAIGHT = 1e-9  # ratio of width to length below which a path counts as straight; smaller widths are rounding errors


@dataclass(frozen=True, slots=True, eq=False)
class PathPlane:
    """Plane through the end of a path, and the projection of each point of the path onto it, ``x`` and ``y``.

    ``explained`` holds the shares of the squared distances from the end that lie along the two directions.
    """

    plane: Plane
    x: Vector
    y: Vector
    explained: tuple[float, float]


def path_plane(
    surface: Surface, path: Path | Sequence[ArrayLike] | NDArray[np.float64], points: int = 21, margin: float = 0.2
) -> PathPlane:
    """Evaluate the loss on the plane through the last point of a path that is nearest to its other points.

    The first two principal components of the differences from the last point span the plane (Li et al. 2018). Both
    directions have length 1, and other points are projected onto the plane. ``path`` is a :class:`Path`, or one vector
    per row. The plane extends beyond the path by ``margin`` times its width on each side.

    >>> from hogwild.landscape.surface import Quadratic
    >>> found = path_plane(Quadratic(np.diag([1.0, 2.0, 3.0])), [[3.0, 0, 0], [1, 1, 0], [0, 0, 0]], points=5)
    >>> sum(found.explained), found.plane.losses.shape
    (1.0, (5, 5))
    """
    given = path.points if isinstance(path, Path) else path
    vectors = np.array([checked(surface, each, "path") for each in given])
    if len(vectors) < 3:
        raise invalid_parameter("path", "at least three points", len(vectors))
    if points < 2:
        raise invalid_parameter("points", "at least 2", points)
    if surface.size < 2:
        raise ParameterError("One parameter alone spans no plane: look at line() instead.")
    centre = vectors[-1]
    away = vectors - centre
    across, up, explained = _components(away)
    x, y = away @ across, away @ up
    reach = max(float(np.ptp(x)), float(np.ptp(y)))
    xs, ys = (_around(places, points, margin, reach) for places in (x, y))
    return PathPlane(over(surface, centre, across, up, xs, ys), x, y, explained)


def _components(away: NDArray[np.float64]) -> tuple[Vector, Vector, tuple[float, float]]:
    """Return the first two principal directions, the largest entry of each positive, and their shares."""
    _, sizes, ways = np.linalg.svd(away, full_matrices=False)
    if not sizes[0]:
        raise ParameterError("All points of the path are the same: it spans no plane.")
    across, up = (way * np.sign(way[np.abs(way).argmax()]) for way in ways[:2])
    shares = sizes[:2] ** 2 / (sizes**2).sum()
    return across, up, (float(shares[0]), float(shares[1]))


def _around(places: Vector, points: int, margin: float, reach: float) -> Vector:
    """Return ``points`` ticks across a path and its margin, or across its length if the path has no width."""
    width = float(np.ptp(places))
    if width <= STRAIGHT * reach:
        return np.linspace(-reach / 2, reach / 2, points)
    return np.linspace(places.min() - margin * width, places.max() + margin * width, points)
