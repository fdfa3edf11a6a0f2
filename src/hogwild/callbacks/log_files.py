"""Event logs in files: JSON lines, and TensorBoard.

A log that can no longer be written, as on a full disk, does not end the training: it lacks the later events, a warning
says so, and ``close`` raises the error.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hogwild.destination import errors_name, named_path
from hogwild.errors import LogWarning, MissingExtraError
from hogwild.events import EVENTS, Event
from hogwild.files import appending, appending_bytes, to_jsonable

_WRITERS = itertools.count()  # numbers of the writers of this process, for names of their own


class _FirstError:
    """The first error of a log file, after which nothing more is written to it."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self.error: OSError | None = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep an error of the block, with the name of the file, and warn of it."""
        try:
            with errors_name(self._path):
                yield
        except OSError as error:
            if self.error is None:
                self.error = error
                message = f"{self._path}: {error.strerror or error}. The log ends here; the training goes on."
                warnings.warn(message, LogWarning, stacklevel=4)


class JsonLines:
    """Writer that appends every event to a file, as one JSON object per line.

    Each line is flushed at once, so that other programs can follow the run.

    Parameters
    ----------
    path : path
        File to append to; its folder is created if necessary.
    progress : bool, default False
        Whether to write "progress" and "cluster" events as well.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = JsonLines(Path(folder, "events.jsonl"))
    ...     log({"event": "epoch", "loss": 0.5})
    ...     log.close()
    ...     Path(folder, "events.jsonl").read_text()
    '{"event": "epoch", "loss": 0.5}\\n'
    """

    def __init__(self, path: str | Path, *, progress: bool = False) -> None:
        named_path(path).parent.mkdir(parents=True, exist_ok=True)
        self._file, self._progress, self._first = appending(path), progress, _FirstError(path)

    def __call__(self, event: Event) -> None:
        if self._first.error is None and (not EVENTS[event["event"]].passing or self._progress):
            with self._first.kept():
                self._file.write(json.dumps(to_jsonable(event), allow_nan=False) + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file.

        Raises
        ------
        OSError
            If an event could not be written.
        """
        with self._first.kept():
            self._file.close()
        if self._first.error is not None:
            raise self._first.error


class TensorBoard:
    """Writer of the figures of every epoch for TensorBoard, over the number of updates.

    Parameters
    ----------
    folder : path
        Folder of TensorBoard's event files.

    Raises
    ------
    MissingExtraError
        If the package ``tensorboard`` is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.record_writer import RecordWriter
        except ImportError:
            raise MissingExtraError("The TensorBoard callback", "tensorboard", "tensorboard") from None
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        named_path(folder).mkdir(parents=True, exist_ok=True)
        # The name is the one that TensorBoard looks for: time, machine, process and a number of the writer.
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_WRITERS)}"
        path = Path(folder, name)
        self._first = _FirstError(path)
        # TensorBoard's own writer writes in a thread, which prints its errors as tracebacks.
        self._writer = RecordWriter(appending_bytes(path))
        try:
            with errors_name(path):
                self._write(file_version="brain.Event:2")
        except OSError:
            with suppress(OSError):
                self._writer.close()
            raise

    def __call__(self, event: Event) -> None:
        if event["event"] != "epoch" or self._first.error is not None:
            return
        figures: dict[str, Any] = {
            name: value for name, value in event.items() if isinstance(value, float) and name not in ("at", "seconds")
        }
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in figures.items()]
        with self._first.kept():
            self._write(step=event["updates"], summary=self._summary(value=values))

    def close(self) -> None:
        """Close the file.

        Raises
        ------
        OSError
            If an event could not be written.
        """
        with self._first.kept():
            self._writer.close()
        if self._first.error is not None:
            raise self._first.error

    def _write(self, **content: Any) -> None:
        self._writer.write(self._event(wall_time=time.time(), **content).SerializeToString())
        self._writer.flush()
