"""Events as lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path

from hogwild.jsonable import to_jsonable
from hogwild.run import PASSING, Event


class JsonLines:
    """Appends every event to a file, one JSON object a line, flushed at once: it can be followed while a run goes on.

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
