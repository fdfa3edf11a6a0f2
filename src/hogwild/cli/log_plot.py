"""Curve in the terminal with two logarithmic axes, drawn with braille dots."""

from __future__ import annotations

import numpy as np

from hogwild.braille_plot import braille_character, rasterise
from hogwild.data.csr import Array


def log_log(x: Array, y: Array, *, width: int, height: int = 12, ascii_only: bool = False) -> str:
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
