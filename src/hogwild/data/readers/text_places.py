"""Lines from several places of a text file, evenly, for statistics of files that may be sorted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hogwild.data.readers.line_segments import Segment, divisible_bytes, segments
from hogwild.data.text_limits import TextLimits

_PLACE_BYTES = 2**17  # Bytes of text that are read at each place.


def text_at_places(path: Path, limits: TextLimits, places: int, first: int = 0) -> Iterator[Segment]:
    """Yield whole lines from some places of a plain text file, from byte ``first`` on; none of a compressed one."""
    size = divisible_bytes(path)
    if size == 1:
        return
    if size - first <= places * _PLACE_BYTES:
        yield from segments(path, _PLACE_BYTES, (first, size), limits)
        return
    for part in range(places):
        start = first + (2 * part + 1) * (size - first) // (2 * places) - _PLACE_BYTES // 2
        yield from segments(path, _PLACE_BYTES, (start, start + _PLACE_BYTES), limits)
