"""Event logs in files: JSON lines, and TensorBoard."""

from __future__ import annotations

import itertools
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from hogwild.destination import errors_name
from hogwild.errors import MissingExtraError
from hogwild.events import EVENTS, Event
from hogwild.files import appending, appending_bytes, to_jsonable

_WRITERS = itertools.count()  # numbers of the writers of this process, for names of their own


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
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._path, self._file, self._progress = path, appending(path), progress

    def __call__(self, event: Event) -> None:
        if not EVENTS[event["event"]].passing or self._progress:
            with errors_name(self._path):
                self._file.write(json.dumps(to_jsonable(event), allow_nan=False) + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with errors_name(self._path):
            self._file.close()


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
        Path(folder).mkdir(parents=True, exist_ok=True)
        # The name is the one that TensorBoard looks for: time, machine, process and a number of the writer.
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_WRITERS)}"
        self._path = Path(folder, name)
        # TensorBoard's own writer writes in a thread, which prints its errors as tracebacks.
        self._writer = RecordWriter(appending_bytes(self._path))
        try:
            self._write(file_version="brain.Event:2")
        except OSError:
            with suppress(OSError):
                self._writer.close()
            raise

    def __call__(self, event: Event) -> None:
        if event["event"] != "epoch":
            return
        figures: dict[str, Any] = {
            name: value for name, value in event.items() if isinstance(value, float) and name not in ("at", "seconds")
        }
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in figures.items()]
        self._write(step=event["updates"], summary=self._summary(value=values))

    def close(self) -> None:
        """Close the file."""
        with errors_name(self._path):
            self._writer.close()

    def _write(self, **content: Any) -> None:
        with errors_name(self._path):
            self._writer.write(self._event(wall_time=time.time(), **content).SerializeToString())
            self._writer.flush()
