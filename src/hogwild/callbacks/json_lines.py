"""Callback that writes events as lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path

from hogwild.jsonable import to_jsonable
from hogwild.run import PASSING, Event


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
        self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115  (closed with the run)
        self._progress = progress

    def __call__(self, event: Event) -> None:
        if event["event"] not in PASSING or self._progress:
            self._file.write(json.dumps(to_jsonable(event), allow_nan=False) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
