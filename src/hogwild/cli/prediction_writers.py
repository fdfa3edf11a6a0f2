"""Destinations of predictions, block by block: text on stdout or in a file, an array in a file, or a JSON record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

import numpy as np
import typer
from numpy.lib import format as npy
from numpy.typing import NDArray

_AT_ONCE = 2**16  # Number of values that one call formats.
_FEW = 2**8  # Number of different values, such as classes, of which each is formatted once.


class Writer(Protocol):
    """Destination of predictions."""

    def write(self, values: NDArray[Any]) -> None:
        """Write the predictions of further rows."""

    def finish(self) -> None:
        """Complete what was written, after the last row."""


class TextWriter:
    """Lines of text on stdout."""

    def write(self, values: NDArray[Any]) -> None:
        """Print one line per prediction."""
        typer.echo(text_of(values), nl=False)

    def finish(self) -> None:
        """Do nothing: every line is complete."""


@dataclass(slots=True)
class BytesWriter:
    """Lines of text in a file."""

    file: BinaryIO

    def write(self, values: NDArray[Any]) -> None:
        """Write one line per prediction."""
        self.file.write(text_of(values).encode())

    def finish(self) -> None:
        """Do nothing: every line is complete."""


@dataclass(slots=True)
class HeldPredictions:
    """Predictions in memory."""

    blocks: list[NDArray[Any]] = field(default_factory=list)

    def write(self, values: NDArray[Any]) -> None:
        """Hold the predictions."""
        self.blocks.append(values)

    def finish(self) -> None:
        """Do nothing."""

    def values(self) -> NDArray[Any]:
        """Return all predictions."""
        return np.concatenate(self.blocks)


@dataclass(slots=True)
class ArrayWriter:
    """Array in a file of NumPy. Its head, which has the number of rows, is written again at the end.

    A pipe does not let one go back: the predictions are held in memory for it.

    >>> import io
    >>> file, whole = io.BytesIO(), io.BytesIO()
    >>> writer = ArrayWriter(file)
    >>> writer.write(np.arange(3.0)), writer.write(np.arange(2.0)), writer.finish()
    (None, None, None)
    >>> np.save(whole, np.array([0.0, 1, 2, 0, 1]))
    >>> file.getvalue() == whole.getvalue()
    True
    """

    file: BinaryIO
    held: HeldPredictions = field(default_factory=HeldPredictions)
    _head: dict[str, Any] = field(default_factory=dict)

    def write(self, values: NDArray[Any]) -> None:
        """Append predictions."""
        if not self.file.seekable():
            self.held.write(values)
            return
        if not self._head:
            self._head = npy.header_data_from_array_1_0(np.ascontiguousarray(values))
            npy.write_array_header_1_0(self.file, self._head)  # NumPy leaves room in it for any number of rows.
            self._head["shape"] = (0, *values.shape[1:])
        self.file.write(np.ascontiguousarray(values).data)
        self._head["shape"] = (self._head["shape"][0] + len(values), *values.shape[1:])

    def finish(self) -> None:
        """Write the number of rows."""
        if self._head:
            self.file.seek(0)
            npy.write_array_header_1_0(self.file, self._head)
        else:
            np.save(self.file, self.held.values())


def text_of(values: NDArray[Any]) -> str:
    """Return one line per prediction; its values are separated by tabs."""
    columns = 1 if values.ndim == 1 else values.shape[1]
    if values.dtype.kind == "U":
        return "".join(f"{name}\n" for name in values.tolist())
    line, rows = "\t".join(["%.9g"] * columns) + "\n", max(1, _AT_ONCE // columns)
    pieces = []
    for first in range(0, len(values), rows):
        part = (values[first : first + rows].reshape(-1) + 0.0).tolist()  # 0.0: no zero is negative.
        different = set(part) if columns == 1 else ()
        if 0 < len(different) <= _FEW:
            pieces.append("".join(map({value: line % value for value in different}.__getitem__, part)))
        else:
            # One call of Python's formatting for many values takes a fourth of the time of a call for each.
            pieces.append(line * (len(part) // columns) % tuple(part))
    return "".join(pieces)
