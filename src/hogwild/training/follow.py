"""Following: a model learns from a file that grows, or from a pipe, until it ends or is told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from hogwild import array_file
from hogwild.data.followed_lines import FilePosition, FollowedLines
from hogwild.data.format_detection import reader_for
from hogwild.data.reader import Reader, ReadOptions
from hogwild.data.readers import READERS
from hogwild.errors import CheckpointError, DataError, ParameterError
from hogwild.training.online import OnlineLinear, ProgressiveLoss

CHECKPOINT = "online.safetensors"
_WAIT_SECONDS = 0.2  # Longest wait for lines before a signal, a checkpoint or an end by time is looked at.
_LINE_SECONDS = 5.0  # A line is printed after this time at the latest, if there are new rows.


class StopRequest(Protocol):
    """Request to end, which a signal makes."""

    @property
    def pressed(self) -> bool:
        """Whether it was made."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress that is told from time to time."""

    rows: int
    loss: float  # Mean of all rows so far, each before it was learnt.
    recent: float  # The same of the rows since the last time.
    rows_per_second: float


@dataclass(frozen=True, slots=True)
class Followed:
    """End of following."""

    reason: str  # "interrupted", "end of the stream" or "seconds"
    reader: str  # Name of the format.
    seconds: float


def check_format(path: Path, reading: ReadOptions, first: bytes) -> Reader:
    """Return the reader of lines, chosen by the name of a file or by its first line.

    Raises
    ------
    DataError
        If the format has no lines.
    """
    reader = reader_for(path, reading.format, READERS, first)
    if reader.lines is None:
        known = " and ".join(each.name for each in READERS if each.lines is not None)
        raise DataError(f"{reader.name} data cannot be followed", path=path, remedy=f"Lines of {known} can be.")
    return reader


def follow(
    lines: FollowedLines,
    learner: OnlineLinear,
    reading: ReadOptions,
    stop: StopRequest,
    *,
    seconds: float | None = None,
    every: float | None = None,
    save: Callable[[], None] = lambda: None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> Followed:
    """Learn each line once, in order.

    Parameters
    ----------
    lines : FollowedLines
        The lines, from the position where learning begins.
    learner : OnlineLinear
        The model.
    reading : ReadOptions
        Options of reading.
    stop : StopRequest
        The request to end.
    seconds : float, optional
        Time after which following ends.
    every : float, optional
        Seconds between two calls of ``save``.
    save : callable, optional
        Called between two batches of rows.
    tell : callable, optional
        Called when the number of rows has reached a power of two, and every five seconds with new rows.

    Returns
    -------
    Followed
        How it ended.

    Raises
    ------
    DataError
        If a line is invalid, or the file has changed otherwise than by growing. All lines before that batch were
        learnt.
    """
    started = time.monotonic()
    reader: Reader | None = None
    saved_at, told_at, told, next_power = started, started, replace(learner.progress), 1
    while next_power <= learner.progress.rows:
        next_power *= 2

    def report() -> None:
        nonlocal told, told_at
        now, progress = time.monotonic(), learner.progress
        if progress.rows > told.rows:
            speed = (progress.rows - told.rows) / max(now - told_at, 1e-9)
            tell(Progress(progress.rows, progress.mean, progress.since(told), speed))
        told, told_at = replace(progress), now

    reason = ""
    while not reason:
        before = lines.position
        segment = lines.next(_WAIT_SECONDS)
        if segment is not None:
            reader = reader or check_format(lines.path, reading, segment.bytes.tobytes())
            assert reader.lines is not None
            try:
                rows = reader.lines(lines.path, reading, segment)
                if len(rows):
                    learner.learn(rows)
            except DataError as error:
                lines.position = before
                raise _named(error, lines.name, segment.first_line) from None
        if learner.progress.rows >= next_power or time.monotonic() - told_at > _LINE_SECONDS:
            report()
            while next_power <= learner.progress.rows:
                next_power *= 2
        now = time.monotonic()
        if every is not None and now - saved_at >= every:
            save()
            saved_at = now
        if stop.pressed:
            reason = "interrupted"
        elif lines.ended and segment is None:
            reason = "end of the stream"
        elif seconds is not None and now - started >= seconds:
            reason = "seconds"
    report()
    return Followed(reason, reading.format if reader is None else reader.name, time.monotonic() - started)


def _named(error: DataError, name: str, line: int) -> DataError:
    """Return an error with the name of the source, and with a line if it has none: that of its batch."""
    return DataError(
        error.what, path=name, line=error.line or line, row=error.row, column=error.column, remedy=error.remedy
    )


def save_checkpoint(folder: Path, source: str, position: FilePosition, learner: OnlineLinear) -> None:
    """Write the model and the position in its source to a folder."""
    arrays, record = learner.saved()
    place = {"offset": position.offset, "lines": position.lines, "tail": position.tail.hex()}
    array_file.save(folder / CHECKPOINT, arrays, {"kind": "online", "source": source, "position": place, **record})


def load_checkpoint(folder: Path, source: str, learner: OnlineLinear) -> FilePosition | None:
    """Go on from the checkpoint in a folder, and return its position in the source; None if there is none yet.

    Raises
    ------
    CheckpointError
        If it belongs to another source or other options, or is damaged.
    """
    if not (folder / CHECKPOINT).exists():
        if folder.is_dir() and any(folder.glob("*.safetensors")):
            raise CheckpointError(f"{folder}: the checkpoint here is not one of --follow. Give another folder.")
        return None
    arrays, record = array_file.load(folder / CHECKPOINT, CheckpointError)
    if record.get("source") != source:
        raise CheckpointError(f"{folder}: the checkpoint is that of {record.get('source')}, not of {source}.")
    learner.restore(arrays, record)
    return _position(folder, record)


def _position(folder: Path, record: Mapping[str, Any]) -> FilePosition:
    try:
        place = record["position"]
        return FilePosition(int(place["offset"]), int(place["lines"]), bytes.fromhex(place["tail"]))
    except (KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{folder}: the checkpoint is damaged ({error}).") from None


def check_strength(name: str, value: object) -> float:
    """Return the strength of a penalty; raise ``ParameterError`` unless it is a number of at least 0."""
    if value is None:
        return 0.0
    if not isinstance(value, float) or not 0 <= value < float("inf"):
        raise ParameterError(f"With --follow, --{name} is a number of at least 0. Got {value!r} instead.")
    return value


__all__ = ["Followed", "Progress", "ProgressiveLoss", "follow", "load_checkpoint", "save_checkpoint"]
