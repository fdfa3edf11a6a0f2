"""Console on which text cannot steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment

from hogwild.cli.streams import escape_controls


class SafeConsole(Console):
    """Console that escapes control characters of texts, such as names of files and classes.

    Colours and movements of the cursor are made by rich after this point, and stay.
    """

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(_safe(segment) for segment in buffer)


def _safe(segment: Segment) -> Segment:
    if segment.control or segment.text.isprintable():
        return segment
    return Segment("\n".join(map(escape_controls, segment.text.split("\n"))), segment.style)
