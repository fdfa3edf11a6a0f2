"""Snapshots of a run on threads: position and parameters, to roll back to or to resume from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from numpy.typing import NDArray

from hogwild.runtimes.shared_memory.iterate_average import IterateAverage

State = tuple[NDArray[Any], ...]
Arrays = dict[str, NDArray[Any]]


@dataclass(slots=True)
class Position:
    """Position of a run. Together with the seed, it determines the rest of the run."""

    epoch: int = 0
    chunk: int = 0
    updates: int = 0
    seconds: float = 0.0  # seconds of training so far, including those before a resume
    met_loss: float = 0.0  # loss summed over the terms of this epoch, each before its own update
    met_terms: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """Parameters with the lowest held-out loss so far."""

    loss: float = float("inf")
    epoch: int = 0
    values: State = ()

    def saved(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the arrays and the record of a checkpoint."""
        return _numbered("best", self.values), {"loss": self.loss, "epoch": self.epoch}


def saved_best(arrays: Mapping[str, Any], record: Mapping[str, Any]) -> Best:
    """Return the best parameters of a checkpoint."""
    return Best(float(record["loss"]), int(record["epoch"]), _together("best", arrays))


@dataclass(frozen=True, slots=True)
class Stall:
    """Lowest objective so far, and the number of consecutive epochs that did not improve on it by the tolerance.

    >>> Stall().after(1.0, 0.1).after(0.95, 0.1).after(0.94, 0.1)
    Stall(best=0.94, epochs=2)
    """

    best: float = float("inf")
    epochs: int = 0

    def after(self, objective: float, tolerance: float) -> Stall:
        """Return the stall after another epoch with this objective."""
        fell = objective <= self.best - tolerance or self.best == float("inf")
        return Stall(min(self.best, objective), 0 if fell else self.epochs + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Copy of everything that training changes."""

    position: Position
    state: State
    mean: IterateAverage | None  # average of the iterates, if it has begun

    def put_back(self, session: Any) -> None:
        """Copy the parameters of this snapshot into a session."""
        for part, kept in zip(session.state, self.state, strict=True):
            if part.shape != kept.shape:
                raise ValueError(f"parameters of shape {kept.shape} instead of {part.shape}")
            part[:] = kept
        session.mean = _copied(self.mean)

    def saved(self, name: str) -> tuple[Arrays, dict[str, Any]]:
        """Return the arrays and the record of a checkpoint, which may hold several snapshots by name."""
        means = () if self.mean is None else self.mean.values
        arrays = _numbered(f"{name}.state", self.state) | _numbered(f"{name}.mean", means)
        return arrays, {**asdict(self.position), "averaged": self.mean.count if self.mean else 0}


def snapshot(session: Any, position: Position) -> Snapshot:
    """Return a copy of the present state of a session.

    >>> import numpy as np; from types import SimpleNamespace
    >>> session = SimpleNamespace(state=(np.zeros((2, 1), np.float32),), mean=None)
    >>> before = snapshot(session, Position())
    >>> session.state[0][:] = 7; before.put_back(session); session.state[0].ravel()
    array([0., 0.], dtype=float32)
    """
    return Snapshot(replace(position), tuple(part.copy() for part in session.state), _copied(session.mean))


def saved_snapshot(name: str, arrays: Mapping[str, Any], record: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot of this name from a checkpoint."""
    place = dict(record)
    count, means = int(place.pop("averaged")), _together(f"{name}.mean", arrays)
    return Snapshot(
        Position(**place), _together(f"{name}.state", arrays), IterateAverage(means, count) if means else None
    )


def _copied(mean: IterateAverage | None) -> IterateAverage | None:
    return None if mean is None else IterateAverage(tuple(part.copy() for part in mean.values), mean.count)


def _numbered(name: str, parts: State) -> Arrays:
    return {f"{name}{k}": part for k, part in enumerate(parts)}


def _together(name: str, arrays: Mapping[str, Any]) -> State:
    return tuple(arrays[f"{name}{k}"] for k in range(len(arrays)) if f"{name}{k}" in arrays)
