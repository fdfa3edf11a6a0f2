"""Grid, torus and hypercube topologies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter
from hogwild.topologies.topology import Links, laid_out


def rows_of(count: int, rows: int | None) -> int:
    """Return the number of rows of equal length for ``count`` members.

    It is ``rows``, or the number nearest to a square if ``rows`` is None. It is 1 if no such number divides ``count``.

    >>> rows_of(12, None), rows_of(12, 2), rows_of(7, None)
    (3, 2, 1)
    """
    if rows is not None:
        return rows if count % rows == 0 else 1
    return max(row for row in range(1, math.isqrt(count) + 1) if count % row == 0)


def check_rows(kind: str, workers: int, rows: int | None) -> None:
    """Raise :class:`ParameterError` if the workers cannot form rows of equal length."""
    if rows is not None and (not isinstance(rows, int) or rows < 1):
        raise invalid_parameter("rows", "a positive integer, or None for about a square", rows)
    if rows is not None and workers % rows:
        raise ParameterError(f"{workers} workers cannot form {rows} rows of equal length: give another number.")
    if rows is None and workers > 3 and rows_of(workers, None) == 1:
        raise ParameterError(
            f"A {kind} of {workers} workers is a single row, for {workers} is a prime number: use another number of "
            "workers, or the topology 'ring'."
        )


@dataclass(frozen=True, slots=True)
class Grid:
    """Grid: each worker exchanges with the workers above, below, left and right of it.

    After the loss of a worker the last row may be shorter.

    Parameters
    ----------
    rows : int, optional
        Number of rows. Left out, the grid is as close to a square as possible.

    Examples
    --------
    >>> Grid(rows=2).links((0, 1, 2, 3, 4, 5))[0]
    frozenset({1, 3})
    """

    rows: int | None = None

    directed = False

    def check(self, workers: int) -> None:
        """Raise :class:`ParameterError` if the workers cannot form rows of equal length."""
        check_rows("grid", workers, self.rows)

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
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
    """Torus: a grid whose opposite ends are joined.

    If the members cannot form rows of equal length after the loss of a worker, the torus becomes a ring.

    Parameters
    ----------
    rows : int, optional
        Number of rows. Left out, the torus is as close to a square as possible.

    Examples
    --------
    >>> sorted(Torus().links(tuple(range(9)))[0])
    [1, 2, 3, 6]
    """

    rows: int | None = None

    directed = False

    def check(self, workers: int) -> None:
        """Raise :class:`ParameterError` if the workers cannot form rows of equal length."""
        check_rows("torus", workers, self.rows)

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        count = len(members)
        wide = count // rows_of(count, self.rows)

        def around(place: int) -> Iterator[int]:
            row, column = divmod(place, wide)
            yield from ((place - wide) % count, (place + wide) % count)
            yield from (row * wide + (column - 1) % wide, row * wide + (column + 1) % wide)

        return laid_out(members, around)


@dataclass(frozen=True, slots=True)
class Hypercube:
    """Hypercube: the corners and edges of a cube of log2(n) dimensions.

    After the loss of a worker the last corner and its edges are missing.

    Examples
    --------
    >>> sorted(Hypercube().links(tuple(range(8)))[5])
    [1, 4, 7]
    """

    directed = False

    def check(self, workers: int) -> None:
        """Raise :class:`ParameterError` unless the number of workers is a power of two."""
        if workers & (workers - 1):
            raise ParameterError(
                f"A hypercube has 2, 4, 8, 16, ... workers. Got {workers}: use one of these, or the topology "
                "'exponential'."
            )

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        bits = (len(members) - 1).bit_length()
        return laid_out(members, lambda place: (place ^ (1 << bit) for bit in range(bits)))
