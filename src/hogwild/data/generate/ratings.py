"""Generated ratings of planted factors, by default in the shape of MovieLens-1M.

Few users rate many items and most users rate few, and the popularity of items is as uneven as that of films. The
planted rating ``z`` is the sum of a mean, a bias of the user, a bias of the item and the product of their factors. The
rating is ``z + noise * normal``. By default it is rounded to whole stars from 1 to 5. No user rates an item twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.ratings import Ratings
from hogwild.errors import ParameterError
from hogwild.files import check_free, replacing
from hogwild.lazy import cached_property

# Mean of the ratings, and standard deviations of the user bias, the item bias and the product. They are about those of
# MovieLens.
MEAN, USER_SPREAD, ITEM_SPREAD, PRODUCT_SPREAD = 3.6, 0.45, 0.55, 0.5
ACTIVITY, POPULARITY = 1.1, 1.5  # Standard deviations of the logarithms of users' activity and of items' popularity.
# Smallest ratio of cells to ratings. With fewer cells, drawing the cells that are still free takes ever longer.
SPARSEST = 2
ENDINGS = {".csv": ",", ".tsv": "\t", ".data": "\t", ".dat": "::"}
LINES = 1 << 16  # Number of lines that are written at a time.


@dataclass(frozen=True)
class GeneratedRatings:
    """Ratings of planted factors. The ratings are drawn on demand.

    >>> made = GeneratedRatings(users=100, items=80, n_rows=1_000, rank=3)
    >>> len(made.ratings), sorted(set(made.ratings.tolist())) == [1, 2, 3, 4, 5]
    (1000, True)
    """

    users: int = 6_040
    items: int = 3_706
    n_rows: int = 1_000_209
    rank: int = 10
    noise: float = 0.8
    seed: int = 0
    stars: bool = True  # Whether ratings are whole numbers from 1 to 5.

    def __post_init__(self) -> None:
        for name, value in (("users", self.users), ("items", self.items), ("rank", self.rank), ("rows", self.n_rows)):
            if value < 1:
                raise ParameterError(f"The '{name}' parameter must be at least 1. Got {value!r} instead.")
        if self.n_rows * SPARSEST > self.users * self.items:
            most = self.users * self.items // SPARSEST
            raise ParameterError(f"Of {self.users:,} x {self.items:,} cells at most {most:,} can be rated.")
        if self.noise < 0:
            raise ParameterError(f"The 'noise' parameter must be at least 0. Got {self.noise!r} instead.")

    @property
    def columns(self) -> tuple[Array, Array, Array]:
        """Users and items, both counted from 1, and ratings, in random order."""
        users, items = self.pairs
        return users + 1, items + 1, self.ratings

    @cached_property
    def data(self) -> Ratings:
        """The ratings in the form that a problem takes."""
        return Ratings.of(*self.columns, name="generated")

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        """The numbers, from zero, of the user and of the item of each rating."""
        random = np.random.default_rng([self.seed, 0])
        active = _cumulative(random.lognormal(0, ACTIVITY, self.users))
        popular = _cumulative(random.lognormal(0, POPULARITY, self.items))
        cells = np.empty(0, np.int64)
        while len(cells) < self.n_rows:
            missing = self.n_rows - len(cells)
            drawn = random.random((2, missing + missing // 2 + 16))
            users, items = np.searchsorted(active, drawn[0]), np.searchsorted(popular, drawn[1])
            cells = np.unique(np.concatenate([cells, users * self.items + items]))
        cells = random.permutation(cells)[: self.n_rows]
        users, items = np.divmod(cells, self.items)
        return users, items

    @cached_property
    def planted(self) -> Array:
        """The ratings without noise."""
        random = np.random.default_rng([self.seed, 1])
        users, items = self.pairs
        biases = [spread * random.standard_normal(count) for spread, count in
                  ((USER_SPREAD, self.users), (ITEM_SPREAD, self.items))]  # fmt: skip
        spread = np.sqrt(PRODUCT_SPREAD / np.sqrt(self.rank))
        factors = [spread * random.standard_normal((count, self.rank)) for count in (self.users, self.items)]
        found = MEAN + biases[0][users] + biases[1][items]
        for factor in range(self.rank):
            found += factors[0][users, factor] * factors[1][items, factor]
        return np.asarray(found)

    @cached_property
    def ratings(self) -> Array:
        """The ratings with noise."""
        noise = np.random.default_rng([self.seed, 2]).standard_normal(self.n_rows)
        found = self.planted + self.noise * noise
        return np.clip(np.rint(found), 1, 5) if self.stars else found

    @property
    def floor(self) -> float:
        """The root mean squared error of the planted ratings; on held-out data no model can be much below it."""
        planted = np.clip(self.planted, 1, 5) if self.stars else self.planted
        return float(np.sqrt(np.mean((planted - self.ratings) ** 2)))


def write_ratings(path: str | Path, *, overwrite: bool = False, **options: Any) -> GeneratedRatings:
    """Write generated ratings as text.

    The ending of the file determines the format: ``.csv`` has names of the columns, ``.tsv`` and ``.data`` have tabs,
    and ``.dat`` has ``::``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write_ratings(Path(folder, "r.csv"), users=9, items=9, n_rows=3)
    ...     Path(folder, "r.csv").read_text().splitlines()[0]
    'user,item,rating'
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise ParameterError(f"The file to write must end in one of {', '.join(ENDINGS)}. Got '{path.name}' instead.")
    check_free(path, overwrite)
    made, separator = GeneratedRatings(**options), ENDINGS[path.suffix]
    users, items, ratings = made.columns
    shown = "{:.0f}" if made.stars else "{:.6g}"
    with replacing(path) as file:
        if path.suffix == ".csv":
            file.write(b"user,item,rating\n")
        for first in range(0, made.n_rows, LINES):
            part = slice(first, first + LINES)
            lines = (
                f"{user}{separator}{item}{separator}{shown.format(rating)}\n"
                for user, item, rating in zip(
                    users[part].tolist(), items[part].tolist(), ratings[part].tolist(), strict=True
                )
            )
            file.write("".join(lines).encode())
    return made


def _cumulative(shares: Array) -> Array:
    total = np.cumsum(shares)
    return np.asarray(total / total[-1])
