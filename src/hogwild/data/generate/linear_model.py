"""Generated rows of a planted linear model.

A row is drawn from the random numbers of its block. It is therefore the same however many rows the caller asks for, and
in whatever pieces. Frequencies of features are Zipf-like, as those of words are. Rank ``k`` has a share of about
``1 / (k + 10)**exponent``, and ranks are scattered over the feature numbers. Values are multiples of a millionth, which
text represents exactly. The values of a row have norm one (within a millionth), or are all one when ``binary``.

With ``z`` the planted prediction, the noise is such that the planted model minimises the expected loss:

- regression: ``y = z + noise * normal``, so it minimises the squared loss;
- classification: ``y = sign(z + noise * logistic)``, so ``weights / noise`` minimises the logistic loss;
- multi-class: ``y = argmax(z + noise * gumbel)``, so ``weights / noise`` minimises the softmax loss.

Without noise the planted model makes no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np

from hogwild.data.csr import NO_INDICES, NO_VALUES, NO_WEIGHTS, Array, CSRRows, compact, concatenate
from hogwild.data.reader import LARGEST_INDEX
from hogwild.errors import ParameterError
from hogwild.lazy import cached_property

Task = Literal["classification", "regression", "multiclass"]

GRID = 1e6  # Values are multiples of 1 / GRID.
_OFFSET = 10  # Offset of the ranks, which flattens the Zipf distribution at its head.
_SPREAD = 3.0  # Standard deviation of the planted prediction z.
_BLOCK_ENTRIES = 1 << 19  # Largest number of entries that are drawn at a time.
_BLOCK_ROWS = 1 << 15  # Largest number of rows that are drawn at a time.
_DRAW_THREADS = 2  # Number of threads that draw ahead.


@dataclass(frozen=True)
class Generated:
    """Rows of a planted linear model. The rows are drawn on demand.

    >>> made = Generated("regression", n_rows=100, features=20, nonzeros=5, seed=3)
    >>> made.rows.layout, made.weights.dtype
    ('sparse', dtype('float32'))
    """

    task: Task
    n_rows: int
    features: int
    # Features drawn per row, with replacement, so that a row has this number or fewer. None means dense rows.
    nonzeros: int | None = None
    exponent: float = 0.9
    noise: float = 0.0
    seed: int = 0
    binary: bool = False
    classes: int = 2  # Number of classes, for multi-class data only.

    def __post_init__(self) -> None:
        most = self.features if self.nonzeros is None else self.nonzeros
        for name, value, least, largest in (
            ("rows", self.n_rows, 1, 2**62),
            ("features", self.features, 1, LARGEST_INDEX + 1),
            ("nonzeros", most, 1, self.features),
            ("exponent", self.exponent, 0, 10),
            ("noise", self.noise, 0, 1e6),
            ("seed", self.seed, 0, 2**63),
            ("classes", self.classes, 2, 10_000),
        ):
            if not least <= value <= largest:
                raise ParameterError(
                    f"The '{name}' parameter must be between {least:,} and {largest:,}. Got {value!r} instead."
                )
        if self.binary and self.nonzeros is None:
            raise ParameterError("Dense rows cannot be binary: every value would be one. Choose 'nonzeros'.")

    @cached_property
    def rows(self) -> CSRRows:
        """All rows, in memory."""
        return concatenate(list(self.pieces()))

    @property
    def weights(self) -> Array:
        """The planted weights, float32: one per feature, or for multi-class data one row of them per class."""
        return self._planted[0]

    @property
    def intercept(self) -> Array:
        """The planted intercept, float64: one number, or for multi-class data one per class."""
        return self._planted[1]

    def pieces(self) -> Iterator[CSRRows]:
        """Yield all rows, in order, in blocks of at most 2**19 entries, of which three are drawn ahead."""
        # These cached properties are computed once here, before the threads need them.
        _ = self._planted, self._numbering
        numbers = iter(range(-(-self.n_rows // self.block_rows)))
        with ThreadPoolExecutor(_DRAW_THREADS) as pool:
            ahead: list[Future[CSRRows]] = [pool.submit(self._block, n) for n in islice(numbers, _DRAW_THREADS + 1)]
            while ahead:
                yield ahead.pop(0).result()
                ahead.extend(pool.submit(self._block, number) for number in islice(numbers, 1))

    @property
    def block_rows(self) -> int:
        """The number of rows that are drawn together."""
        return max(1, min(_BLOCK_ROWS, _BLOCK_ENTRIES // (self.nonzeros or self.features)))

    @cached_property
    def _planted(self) -> tuple[Array, Array]:
        random = np.random.default_rng([self.seed, 1])
        shape = (self.classes,) if self.task == "multiclass" else ()
        spread = _SPREAD / np.sqrt(self.nonzeros) if self.binary and self.nonzeros else _SPREAD
        weights = random.standard_normal((*shape, self.features), np.float32) * np.float32(spread)
        return weights, np.asarray(random.standard_normal(shape) / 2)

    @cached_property
    def _numbering(self) -> Array:
        """The feature number of each rank."""
        return np.random.default_rng([self.seed, 2]).permutation(self.features).astype(np.uint32)

    def _block(self, number: int) -> CSRRows:
        # The method always draws a whole block, so that a row is the same however many rows the caller asks for.
        random = np.random.default_rng([self.seed, 0, number])
        wanted = min(self.block_rows, self.n_rows - number * self.block_rows)
        rows = self._dense(random) if self.nonzeros is None else self._sparse(random, self.nonzeros)
        return compact(replace(rows, labels=self._labels(rows, random))[:wanted])

    def _sparse(self, random: np.random.Generator, nonzeros: int) -> CSRRows:
        ranks = zipf_ranks(random.random((self.block_rows, nonzeros)), self.features, self.exponent)
        columns = self._numbering[ranks]
        columns.sort(axis=1)
        fresh = np.ones(columns.shape, bool)
        np.not_equal(columns[:, 1:], columns[:, :-1], out=fresh[:, 1:])
        indptr = np.concatenate([[0], np.cumsum(fresh.sum(axis=1))])
        indices = columns[fresh]
        if self.binary:
            return CSRRows(indptr, indices, NO_VALUES, NO_VALUES, NO_WEIGHTS, self.features, "binary")
        sizes = np.abs(random.standard_normal(len(indices), np.float32))
        norms = np.sqrt(np.add.reduceat(sizes * sizes, indptr[:-1]))
        values = _on_grid(sizes / np.repeat(norms, np.diff(indptr)), least=1)
        return CSRRows(indptr, indices, values, NO_VALUES, NO_WEIGHTS, self.features, "sparse")

    def _dense(self, random: np.random.Generator) -> CSRRows:
        values = random.standard_normal((self.block_rows, self.features), np.float32)
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        indptr = np.arange(self.block_rows + 1) * self.features
        return CSRRows(indptr, NO_INDICES, _on_grid(values.ravel()), NO_VALUES, NO_WEIGHTS, self.features, "dense")

    def _labels(self, rows: CSRRows, random: np.random.Generator) -> Array:
        if self.task == "multiclass":
            z = np.stack([predictions(rows, w, b) for w, b in zip(self.weights, self.intercept, strict=True)])
            return np.asarray(np.argmax(z + self.noise * random.gumbel(size=z.shape), axis=0), np.float64)
        z = predictions(rows, self.weights, float(self.intercept))
        if self.task == "regression":
            return np.asarray(z + self.noise * random.standard_normal(len(z)))
        return np.where(z + self.noise * random.logistic(size=len(z)) > 0, 1.0, -1.0)


def predictions(rows: CSRRows, weights: Array, intercept: float) -> Array:
    """Return the prediction of a linear model for each row, in double precision.

    >>> made = Generated("regression", n_rows=100, features=20, nonzeros=5)
    >>> z = predictions(made.rows, made.weights, made.intercept)
    >>> float(abs(z - made.rows.labels).max())
    0.0
    """
    if rows.layout == "dense":
        return np.asarray(rows.values.reshape(-1, rows.features) @ weights.astype(np.float64) + intercept)
    terms = weights[rows.indices].astype(np.float64)
    if rows.layout == "sparse":
        terms *= rows.values
    return np.asarray(np.add.reduceat(terms, rows.indptr[:-1]) + intercept)


def _on_grid(values: Array, least: int = -int(GRID)) -> Array:
    """Round values to the nearest multiples of a millionth.

    The result is exactly that of a reader of text: computed in double precision, then rounded to float32.
    """
    return np.asarray(np.maximum(np.rint(values * GRID), least).astype(np.float64) / GRID, np.float32)


def zipf_ranks(uniform: Array, features: int, exponent: float) -> Array:
    """Return ranks of a Zipf-like distribution by its inverse in closed form, which needs no table of the features."""
    low, high = float(_OFFSET), float(features + _OFFSET)
    if exponent == 1:
        ranks = low * np.exp(uniform * np.log(high / low))
    else:
        power = 1 - exponent
        ranks = (uniform * (high**power - low**power) + low**power) ** (1 / power)
    return np.asarray(np.clip((ranks - low).astype(np.int64), 0, features - 1))
