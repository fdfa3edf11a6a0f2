"""Callback that writes the figures of epochs for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hogwild.errors import MissingExtraError
from hogwild.run import Event


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
