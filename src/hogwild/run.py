"""Result of a run, the folder that it can leave, and the start that it can be given."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hogwild.errors import DataError
from hogwild.events import Event, Record, event_from_json
from hogwild.registry import invalid_parameter

# Names in the folder of a run, and the format of its record.
RECORD, EVENTS_FILE, MODEL, CHECKPOINTS = "run.json", "events.jsonl", "model", "checkpoints"
CONFIGURATION = "config.toml"  # options of ``hogwild train`` that repeat the run
FORMAT = "hogwild run 1"


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Parameters that a run starts from.

    Parameters
    ----------
    state : tuple of arrays
        The ``state`` of another run, or the values of its parameters alone.
    updates : int, default 0
        Number of updates before this run; the schedule continues from there.
    """

    state: tuple[Any, ...]
    updates: int = 0


@dataclass(frozen=True, eq=False)
class Run:
    """Result of a run that has ended.

    A run whose workers exchange messages also summarises its ``staleness``, its ``traffic`` and its ``idle`` time.

    Parameters
    ----------
    model : model
        Model with the parameters that were kept; it predicts and can be saved.
    config : mapping
        Problem, rule, schedule, strategy and seed, as they were used.
    history : list of dict
        One record per epoch.
    events : list of dict
        All events of the run, except those about a passing state ("progress", "cluster").
    stop_reason : {"epochs", "seconds", "target", "patience", "tolerance", "interrupted"}
        Limit that ended the run.
    state : tuple
        All parameters with the state of the rule, for ``WarmStart``.
    seconds : float
        Seconds of training alone.
    compile_seconds : float
        Seconds of compilation and preparation.
    trace : Trace, optional
        Durations of bursts and messages, if the runtime recorded them.
    """

    model: Any
    config: Mapping[str, Any] = field(repr=False)  # Problem, rule, schedule, strategy and seed, as they were used.
    history: list[Record] = field(repr=False)
    events: list[Event] = field(repr=False)
    stop_reason: str  # "epochs", "seconds", "target", "patience", "tolerance" or "interrupted"
    # All parameters with the state of the rule; another run can start from them.
    state: tuple[Any, ...] = field(repr=False)
    seconds: float  # Seconds of training alone.
    compile_seconds: float
    trace: Any = field(default=None, repr=False)  # Durations of bursts and messages, if the runtime recorded them.

    @property
    def loss(self) -> float:
        """The mean loss over the training data."""
        return float(self.result["loss"])

    @property
    def objective(self) -> float:
        """The objective: mean loss and penalty."""
        return float(self.result["objective"])

    @property
    def result(self) -> Event:
        """The record of the parameters that were kept: the best with ``patience``, else the last."""
        return next(event for event in reversed(self.events) if event["event"] == "result")

    @property
    def staleness(self) -> Event | None:
        """The staleness of the updates: the number of updates by others between a worker's read and its write.

        The record has ``mean``, ``median``, ``p95``, ``most`` and a ``histogram`` over all updates. ``workers`` has the
        figures of each worker. ``shards`` has the figures of each server, or of each worker that receives deltas. None
        for workers in one memory.
        """
        return self._last("staleness")

    @property
    def traffic(self) -> Event | None:
        """The number of ``messages`` and ``bytes`` sent, of messages ``lost`` and ``resent``, and these by ``kinds``.

        None for workers in one memory.
        """
        return self._last("traffic")

    @property
    def idle(self) -> Event | None:
        """The ``idle_share`` of the workers' time, in which they did not train, and the same for each of ``workers``.

        None for workers in one memory.
        """
        return self._last("idle")

    @property
    def conflicts(self) -> Event | None:
        """Staleness, collisions and lost writes of workers in one memory, with ``count_conflicts=True``."""
        return self._last("conflicts")

    def _last(self, kind: str) -> Event | None:
        return next((event for event in reversed(self.events) if event["event"] == kind), None)

    def save(self, path: str | Path) -> None:
        """Write the model to a file.

        Parameters
        ----------
        path : path
            File to write.
        """
        self.model.save(path)

    @classmethod
    def load(cls, folder: str | Path, net: Any = None) -> Run:
        """Load a run from the folder that it left, with ``minimise(..., folder=...)``.

        Parameters
        ----------
        folder : path
            Folder of the run.
        net : torch.nn.Module, optional
            Network of a ``Module``, into which the weights are loaded. Without it, such a run is loaded without a
            model.

        Returns
        -------
        Run
            The run, without the state of its rule: ``state`` is empty.

        Raises
        ------
        DataError
            If there is no complete run in the folder.
        ParameterError
            If ``folder`` is not a path.

        Examples
        --------
        >>> import tempfile; import hogwild
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = hogwild.minimise(hogwild.Linear(([[0.0], [1.0]], [-1, 1])), budget=3, folder=folder)
        ...     len(hogwild.Run.load(folder).history)
        3
        """
        if not isinstance(folder, (str, os.PathLike)):
            raise invalid_parameter("folder", "the path of a folder", folder)
        folder = Path(folder)
        try:
            record = json.loads((folder / RECORD).read_bytes())
            lines = (folder / EVENTS_FILE).read_text(encoding="utf-8").splitlines()
            if record["format"] != FORMAT:
                raise DataError(f"{folder}: the format {record['format']!r} is not known here.")
            if "history" not in record:
                raise DataError(f"{folder}: this run has not ended well (it is {record['stop_reason']!r}).")
            return cls(
                _model(folder / MODEL, record, net), record["config"], record["history"],
                [event_from_json(line) for line in lines], record["stop_reason"], (), record["seconds"],
                record["compile_seconds"],
            )  # fmt: skip
        except OSError as error:
            raise DataError(f"{folder}: there is no run ({error.strerror}).") from None
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataError(f"{folder}: the record of the run is damaged ({error}).") from None


def _model(path: Path, record: Record, net: Any) -> Any:
    # These modules are in layers above this one; only this function needs them.
    if record["problem"] != "Module":
        return importlib.import_module("hogwild.models").load(path)
    if net is None:
        return None
    module = importlib.import_module("hogwild.models.module")
    module.load_weights(net, path)
    return module.ModuleModel(net, record["config"])
