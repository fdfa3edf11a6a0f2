"""Rasterised curves in braille characters, each of which has eight dots in four rows and two columns."""

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
