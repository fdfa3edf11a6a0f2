"""Event logs in files: JSON lines, and TensorBoard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hogwild.destination import errors_name
from hogwild.errors import MissingExtraError
from hogwild.events import EVENTS, Event
from hogwild.files import appending, to_jsonable


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
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise MissingExtraError("The TensorBoard callback", "tensorboard", "tensorboard") from None
        self._event, self._summary, self._writer = event_pb2.Event, summary_pb2.Summary, EventFileWriter(str(folder))

    def __call__(self, event: Event) -> None:
        if event["event"] != "epoch":
            return
        figures: dict[str, Any] = {
            name: value for name, value in event.items() if isinstance(value, float) and name not in ("at", "seconds")
        }
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in figures.items()]
        self._writer.add_event(self._event(step=event["updates"], summary=self._summary(value=values)))

    def close(self) -> None:
        """Write all figures that are still in memory, and close the file."""
        self._writer.close()
