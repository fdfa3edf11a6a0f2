"""Curves over epochs for a terminal: several in one picture, each in its own colour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hogwild.braille_plot import braille_character, rasterise

if TYPE_CHECKING:
    from rich.text import Text

STEEP = 10.0  # ratio of the largest to the smallest value above which the axis is logarithmic
OLD = str.maketrans("┤│└─", "||+-")  # replacements of line-drawing characters for terminals that have only ASCII

Values = Sequence[float | None]


def curves(
    epochs: Sequence[float], lines: Sequence[tuple[Values, str]], width: int, height: int, ascii_only: bool = False
) -> Text:  # fmt: skip
    """Draw curves over increasing epochs, each in its style, into ``height`` lines of ``width`` characters and an axis.

    A value may be missing (None) or not finite. The curve then runs straight from its predecessor to its successor. The
    axis is logarithmic if the largest value is more than ten times the smallest.

    >>> print(curves([1, 2, 3, 4], [([8.0, 4.0, 2.0, 1.0], "green")], width=20, height=4))
       8 ┤⠑⢄
         │  ⠑⢄
    3.57 ┤    ⠑⠢⠤⣀
       1 ┤        ⠉⠒⠢⠤⢄⣀
         └──────────────
          epoch 1      4
    """
    from rich.text import Text

    known = [(array, style) for values, style in lines if (array := _filled(epochs, values)) is not None]
    if not known:
        return Text()
    everything = np.concatenate([array for array, _ in known])
    low, high = float(everything.min()), float(everything.max())
    steep = low > 0 and high > STEEP * low
    names = _names(low, high, steep, height)
    margin = max(len(name) for name in names.values())
    columns = max(8, width - margin - 2)
    x = np.asarray(epochs, float)
    drawn = [(rasterise(x, _down(array, low, high, steep), columns, height), style) for array, style in known]
    codes = np.bitwise_or.reduce([each for each, _ in drawn])
    picture = Text(no_wrap=True)
    for row in range(height):
        tick = f"{names.get(row, ''):>{margin}} {'┤' if row in names else '│'}"
        picture.append(tick.translate(OLD) if ascii_only else tick, "dim")
        used = range(len(np.trim_zeros(codes[row], "b")))
        styles = [next((style for each, style in drawn[::-1] if each[row, column]), None) for column in used]
        # Consecutive characters of one colour are appended together.
        for style, run in groupby(used, styles.__getitem__):
            picture.append("".join(braille_character(codes[row, column], ascii_only) for column in run), style)
        picture.append("\n")
    axis = " " * (margin + 1) + "└" + "─" * columns + "\n"
    picture.append(axis.translate(OLD) if ascii_only else axis, "dim")
    first, last = f"epoch {epochs[0]:g}", f"{epochs[-1]:g}" if len(epochs) > 1 else ""
    picture.append(" " * (margin + 2) + first + last.rjust(columns - len(first)), "dim")
    return picture


def _names(low: float, high: float, steep: bool, height: int) -> dict[int, str]:
    """Return the labels of the vertical axis at the first, middle and last line, by line."""
    if high <= low:
        return {height // 2: f"{high:.4g}"}
    part = (4 * (height // 2) + 1.5) / (4 * height - 1)  # share of the way down to the middle line
    middle = np.exp((1 - part) * np.log(high) + part * np.log(low)) if steep else (1 - part) * high + part * low
    return {0: f"{high:.4g}", height // 2: f"{middle:.3g}", height - 1: f"{low:.4g}"}


def _filled(epochs: Sequence[float], values: Values) -> NDArray[np.float64] | None:
    """Return a value for every epoch, interpolated between the known ones; None if none is known."""
    given = np.array([np.nan if value is None else value for value in values], np.float64)
    there = np.isfinite(given)
    if not there.any():
        return None
    x = np.asarray(epochs, float)
    return np.asarray(np.interp(x, x[there], given[there]))


def _down(values: NDArray[np.float64], low: float, high: float, steep: bool) -> NDArray[np.float64]:
    """Return the distance of each value from the top of the axis, from 0 to 1."""
    if high <= low:
        return np.full(len(values), 0.5)
    if steep:
        return np.asarray((np.log(high) - np.log(values)) / (np.log(high) - np.log(low)))
    return (high - values) / (high - low)
