"""Curves in a terminal, drawn with braille characters, each of which has eight dots in four rows and two columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bit of each dot in the code of a braille character, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800  # code point of the braille character without dots


def rasterise(across: NDArray[Any], down: NDArray[Any], columns: int, height: int) -> NDArray[np.int64]:
    """Return the codes of the characters that draw a curve over increasing ``across``, for each line and column.

    ``down`` is 0 at the top and 1 at the bottom.

    >>> cells = rasterise(np.array([0, 1]), np.array([0.0, 1.0]), columns=4, height=2)
    >>> ["".join(braille_character(code) for code in line) for line in cells]
    ['⠑⢄  ', '  ⠑⢄']
    """
    cells = np.zeros((height, columns), np.int64)
    wide, high = 2 * columns - 1, 4 * height - 1
    reach = max(across[-1] - across[0], 1e-9)
    used = wide if len(across) > 1 else 0
    at = np.interp(across[0] + np.arange(used + 1) / wide * reach, across, down)
    dots = np.rint(at * high).astype(int)
    for dot, (before, here) in enumerate(zip([dots[0], *dots[:-1]], dots, strict=True)):
        start = here if before == here else before + (1 if here > before else -1)
        for level in range(min(start, here), max(start, here) + 1):
            cells[level // 4, dot // 2] |= _DOTS[level % 4][dot % 2]
    return cells


def braille_character(code: int, ascii_only: bool = False) -> str:
    """Return the braille character with these dots; with ``ascii_only``, a star for any dots.

    >>> braille_character(0xFF), braille_character(0), braille_character(0x40, ascii_only=True)
    ('⣿', ' ', '*')
    """
    if not code:
        return " "
    return "*" if ascii_only else chr(_BLANK + int(code))


def log_log(x: NDArray[Any], y: NDArray[Any], *, width: int, height: int = 12, ascii_only: bool = False) -> str:
    """Draw positive ``y`` over increasing positive ``x`` in ``height`` lines of ``width`` characters, with axes.

    >>> print(log_log(np.array([1, 10, 100]), np.array([100, 10, 1]), width=24, height=4))
    100 ┤⠉⠒⠤⣀⡀
        │    ⠈⠑⠢⠤⣀
     10 ┤         ⠉⠒⠢⢄⡀
      1 ┤             ⠈⠉⠒⠤⣀
        └┬───────┬────────┬
         1       10       100
    """
    across, down = np.log10(x.astype(float)), np.log10(y.astype(float))
    bottom, top = np.floor(down.min()), max(np.ceil(down.max()), np.floor(down.min()) + 1)
    ticks = {_place(decade, bottom, top, height): decade for decade in np.arange(bottom, top + 1)}
    margin = max(len(_label(decade)) for decade in ticks.values())
    columns = max(8, width - margin - 3)
    cells = rasterise(across, (top - down) / (top - bottom), columns, height)
    lines = []
    for row in range(height):
        name = _label(ticks[row]) if row in ticks else ""
        drawn = "".join(braille_character(code, ascii_only) for code in cells[row]).rstrip()
        lines.append(f"{name:>{margin}} {'┤' if row in ticks else '│'}{drawn}")
    lines += [" " * (margin + 1) + line for line in _axis(across[0], across[-1], columns)]
    picture = "\n".join(lines)
    return picture.translate(str.maketrans("┤│└┬─", "|||+-")) if ascii_only else picture


def _axis(first: float, last: float, columns: int) -> list[str]:
    """Return the axis below the curve, with a tick at each power of ten, and the line of tick labels."""
    line, names = ["─"] * columns, [" "] * (columns + 8)
    reach = max(last - first, 1e-9)
    free = 0
    for decade in range(int(np.ceil(first - 1e-9)), int(np.floor(last + 1e-9)) + 1):
        at = round((decade - first) / reach * (columns - 1))
        name = _label(decade)
        if at >= free:
            line[at] = "┬"
            names[at : at + len(name)] = name
            free = at + len(name) + 1
    return ["└" + "".join(line), " " + "".join(names).rstrip()]


def _place(decade: float, bottom: float, top: float, height: int) -> int:
    return round((top - decade) / (top - bottom) * (4 * height - 1)) // 4


def _label(decade: float) -> str:
    """Return the label of a power of ten in few characters: 1, 10, 100, 1k, ..., 1G."""
    power = int(decade)
    return f"{10 ** (power % 3)}{('', 'k', 'M', 'G', 'T')[power // 3]}"
