"""Checkpoints: snapshots of a run, and files from which it continues as if it had not stopped.

This is the format of runs on threads. :mod:`hogwild.training.module_checkpoints` has that of modules, and
:mod:`hogwild.training.message_launch` that of message-passing runs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from hogwild import array_file
from hogwild.destination import named_path
from hogwild.errors import CheckpointError, CheckpointWarning
from hogwild.folder_lock import folder_lock
from hogwild.iterate_average import IterateAverage
from hogwild.registry import invalid_parameter, is_number
from hogwild.runtimes.state_copy import HostCopy, StateCopy

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


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Copy of everything that training changes."""

    position: Position
    state: StateCopy
    mean: IterateAverage | None  # average of the iterates, if it has begun

    def put_back(self, session: Any) -> None:
        """Copy the parameters of this snapshot into a session."""
        for part, kept in zip(session.state, self.state.arrays(), strict=True):
            if part.shape != kept.shape:
                raise ValueError(f"parameters of shape {kept.shape} instead of {part.shape}")
            if kept.dtype != part.dtype:
                raise ValueError(f"parameters of type {kept.dtype} instead of {part.dtype}")
            part[:] = kept
        session.mean = _copied(self.mean)

    def saved(self, name: str) -> tuple[Arrays, dict[str, Any]]:
        """Return the arrays and the record of a checkpoint, which may hold several snapshots by name."""
        means = () if self.mean is None else self.mean.values
        arrays = _numbered(f"{name}.state", self.state.arrays()) | _numbered(f"{name}.mean", means)
        return arrays, {**asdict(self.position), "averaged": self.mean.count if self.mean else 0}


def snapshot(session: Any, position: Position, earlier: Snapshot | None = None) -> Snapshot:
    """Return a copy of the present state of a session, in the memory of an earlier snapshot if there is one.

    >>> import numpy as np; from types import SimpleNamespace; from hogwild.runtimes.state_copy import copied_state
    >>> state = (np.zeros((2, 1), np.float32),)
    >>> session = SimpleNamespace(state=state, mean=None, copied_state=lambda earlier: copied_state(state, earlier))
    >>> before = snapshot(session, Position())
    >>> session.state[0][:] = 7; before.put_back(session); session.state[0].ravel()
    array([0., 0.], dtype=float32)
    """
    state = session.copied_state(None if earlier is None else earlier.state)
    return Snapshot(replace(position), state, _copied(session.mean))


def saved_snapshot(name: str, arrays: Mapping[str, Any], record: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot of this name from a checkpoint."""
    place = dict(record)
    count, means = int(place.pop("averaged")), _together(f"{name}.mean", arrays)
    return Snapshot(
        Position(**place), HostCopy(_together(f"{name}.state", arrays)), IterateAverage(means, count) if means else None
    )


def _copied(mean: IterateAverage | None) -> IterateAverage | None:
    return None if mean is None else IterateAverage(tuple(part.copy() for part in mean.values), mean.count)


def _numbered(name: str, parts: State) -> Arrays:
    return {f"{name}{k}": part for k, part in enumerate(parts)}


def _together(name: str, arrays: Mapping[str, Any]) -> State:
    return tuple(arrays[f"{name}{k}"] for k in range(len(arrays)) if f"{name}{k}" in arrays)


LATEST, PREVIOUS = "latest.safetensors", "previous.safetensors"
FORMAT = 2

T = TypeVar("T")


@dataclass(slots=True)
class Checkpoints:
    """Folder with the latest checkpoint of a run and the one before.

    A checkpoint is written at the end of every epoch and, with ``seconds``, also in the middle of long epochs. Each
    file is either complete or absent.

    Parameters
    ----------
    folder : path
        Folder of the checkpoints; it is created if necessary.
    seconds : float, optional
        Seconds after the last checkpoint at which another one is due in the middle of an epoch. By default there are
        none.

    Raises
    ------
    ParameterError
        If ``seconds`` is not positive.
    """

    folder: Path
    seconds: float | None = None
    _last: float = field(default_factory=time.monotonic, repr=False)
    # Whether files that were read or written through this object are intact, by their names.
    _intact: dict[str, bool] = field(default_factory=dict, init=False, repr=False)
    _held: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self.folder = named_path(self.folder)
        if self.seconds is not None and not (is_number(self.seconds) and self.seconds > 0):
            raise invalid_parameter("seconds", "a positive number", self.seconds)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock of the folder within the block, so that no other run writes to it.

        Raises
        ------
        CheckpointError
            If another run holds the lock.
        ParameterError
            If nothing can be written to the folder.
        """
        if self._held:
            yield
            return
        with folder_lock(self.folder):
            self._held = True
            try:
                yield
            finally:
                self._held = False

    @property
    def due(self) -> bool:
        """Whether a checkpoint in the middle of an epoch is due."""
        return self.seconds is not None and time.monotonic() - self._last >= self.seconds

    def save(self, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
        """Write a checkpoint, and keep the one before it.

        Parameters
        ----------
        arrays : mapping of str to array
            Arrays of the checkpoint.
        record : mapping
            Values of types that JSON has.
        """
        content = {"kind": "checkpoint", "format": FORMAT, **record}
        self.replace(LATEST, PREVIOUS, lambda latest: array_file.save(latest, arrays, content), _read)

    def replace(
        self, latest: str, previous: str, write: Callable[[Path], None], read: Callable[[Path], object]
    ) -> None:
        """Write a file, after renaming the file that has its name.

        A damaged file is overwritten instead. Under its new name it would replace the last intact one.

        Parameters
        ----------
        latest : str
            Name of the file to write.
        previous : str
            New name of the file that is called ``latest`` now.
        write : callable
            Function that writes the file at a given path.
        read : callable
            Function that reads the file at a given path, and raises CheckpointError for a damaged one.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / latest
        if path.exists() and self._is_intact(path, read):
            path.replace(self.folder / previous)
        write(path)
        self._intact[latest] = True
        self._last = time.monotonic()

    def _is_intact(self, path: Path, read: Callable[[Path], object]) -> bool:
        """Return whether a file can be read; one that was not read or written here is read first."""
        if path.name not in self._intact:
            try:
                read(path)
                self._intact[path.name] = True
            except CheckpointError:
                self._intact[path.name] = False
        return self._intact[path.name]

    def load(
        self, check: Callable[[Mapping[str, Any]], None] = lambda record: None
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Return the latest intact checkpoint.

        Parameters
        ----------
        check : callable, optional
            Function of the record that raises ValueError if it is damaged.

        Returns
        -------
        tuple of dict and dict, or None
            Arrays and record; None if there is no checkpoint.

        Raises
        ------
        CheckpointError
            If there are checkpoints, and none of them can be read.
        """

        def read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
            arrays, record = _read(path)
            try:
                check(record)
            except ValueError as reason:
                raise CheckpointError(f"{path}: the checkpoint is damaged: {reason}.") from None
            return arrays, record

        return self.first_whole((LATEST, PREVIOUS), read)

    def first_whole(self, names: Iterable[str], read: Callable[[Path], T]) -> T | None:
        """Return the content of the first of several files that exists and can be read; warn of damaged ones before it.

        Parameters
        ----------
        names : iterable of str
            Names of the files, in the order of preference.
        read : callable
            Function that reads the file at a given path, and raises CheckpointError for a damaged one.

        Returns
        -------
        object or None
            Result of ``read``; None if none of the files exists.

        Raises
        ------
        CheckpointError
            If at least one file exists, and none can be read.
        """
        problems, told = [], True
        for path in (self.folder / name for name in names):
            if not path.exists():
                continue
            try:
                found = read(path)
            except CheckpointError as error:
                told = told and self._intact.get(path.name) is False
                self._intact[path.name] = False
                problems.append(str(error))
                continue
            self._intact[path.name] = True
            if not told:
                earlier = f"The run goes on from the checkpoint before it, {path}."
                warnings.warn(" ".join([*problems, earlier]), CheckpointWarning, stacklevel=2)
            return found
        if problems:
            raise CheckpointError(" ".join(problems) + " Remove the folder to start from the beginning.")
        return None


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    arrays, record = array_file.load(path, CheckpointError)
    if record.get("kind") != "checkpoint" or record.get("format") != FORMAT:
        raise CheckpointError(f"{path}: this is no checkpoint that this version can read.")
    return arrays, record


def completed(epoch: int, stop_reason: str) -> dict[str, str]:
    """Return what the event "resumed" says of a run that has reached its limit already; nothing if it has not.

    >>> completed(30, "")
    {}
    >>> completed(30, "epochs")["message"]
    'resumed after 30 epochs, where the run had ended by its limit of epochs: nothing is left to train'
    """
    if not stop_reason:
        return {}
    limit = {"epochs": "its limit of epochs", "seconds": "its limit of seconds"}.get(stop_reason, stop_reason)
    where = f"resumed after {epoch} epoch{'s' * (epoch != 1)}, where the run had ended by {limit}"
    return {"message": f"{where}: nothing is left to train"}


def check_same(config: Mapping[str, Any], found: Mapping[str, Any], folder: Path) -> None:
    """Raise CheckpointError if a checkpoint belongs to a run with another configuration."""
    differ = sorted(key for key in config.keys() | found.keys() if config.get(key) != found.get(key))
    if differ:
        what = "; ".join(f"{key} was {found.get(key)!r}, now {config.get(key)!r}" for key in differ)
        raise CheckpointError(
            f"{folder}: the checkpoint belongs to another run: {what}. "
            "Resume with the same data and options, or choose another folder."
        )
