"""Rows and columns, with open or joined ends, and the corners of a cube of many dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter
from hogwild.topologies.topology import Links, laid_out


def rows_of(count: int, rows: int | None) -> int:
    """How many rows of equal length, as many as asked or as near to a square as it goes; 1 if there is no such number.

    >>> rows_of(12, None), rows_of(12, 2), rows_of(7, None)
    (3, 2, 1)
    """
    if rows is not None:
        return rows if count % rows == 0 else 1
    return max(row for row in range(1, math.isqrt(count) + 1) if count % row == 0)


def check_rows(kind: str, workers: int, rows: int | None) -> None:
    """Refuse what cannot be put in rows of equal length."""
    if rows is not None and (not isinstance(rows, int) or rows < 1):
        raise invalid_parameter("rows", "a positive integer, or None for about a square", rows)
    if rows is not None and workers % rows:
        raise ParameterError(f"{workers} workers cannot stand in {rows} rows of equal length: give another number.")
    if rows is None and workers > 3 and rows_of(workers, None) == 1:
        raise ParameterError(
            f"A {kind} of {workers} workers is a single row, for {workers} is a prime number: use another number of "
            "workers, or the topology 'ring'."
        )


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows and columns, with those above, below, left and right. After a loss the last row may be shorter.

    >>> Grid(rows=2).links((0, 1, 2, 3, 4, 5))[0]
    frozenset({1, 3})
    """

    rows: int | None = None

    directed = False

    def check(self, workers: int) -> None:
        """It takes rows of equal length."""
        check_rows("grid", workers, self.rows)

    def cycle(self, members: int) -> int:
        """It is always the same."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to."""
        count = len(members)
        rows = rows_of(count, self.rows)
        if rows == 1 and self.rows != 1:
            rows = min(self.rows or math.isqrt(count), count)
        wide = -(-count // max(1, rows))

        def around(place: int) -> Iterator[int]:
            yield from (place - wide, place + wide)
            if place % wide:
                yield place - 1
            if place % wide < wide - 1:
                yield place + 1

        return laid_out(members, around)


@dataclass(frozen=True, slots=True)
class Torus:
    """A grid whose ends are joined. If after a loss there are no rows of equal length any more, it is a ring.

    >>> sorted(Torus().links(tuple(range(9)))[0])
    [1, 2, 3, 6]
    """

    rows: int | None = None

    directed = False

    def check(self, workers: int) -> None:
        """It takes rows of equal length."""
        check_rows("torus", workers, self.rows)

    def cycle(self, members: int) -> int:
        """It is always the same."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to."""
        count = len(members)
        wide = count // rows_of(count, self.rows)

        def around(place: int) -> Iterator[int]:
            row, column = divmod(place, wide)
            yield from ((place - wide) % count, (place + wide) % count)
            yield from (row * wide + (column - 1) % wide, row * wide + (column + 1) % wide)

        return laid_out(members, around)


@dataclass(frozen=True, slots=True)
class Hypercube:
    """The corners of a cube of log2(n) dimensions. After a loss the last corners and their edges are missing.

    >>> sorted(Hypercube().links(tuple(range(8)))[5])
    [1, 4, 7]
    """

    directed = False

    def check(self, workers: int) -> None:
        """It takes a power of two."""
        if workers & (workers - 1):
            raise ParameterError(
                f"A hypercube has 2, 4, 8, 16, ... workers. Got {workers}: use one of these, or the topology "
                "'exponential'."
            )

    def cycle(self, members: int) -> int:
        """It is always the same."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to."""
        bits = (len(members) - 1).bit_length()
        return laid_out(members, lambda place: (place ^ (1 << bit) for bit in range(bits)))
