"""Generated rows of a planted factorisation machine with fields, in which products of features determine the label.

Each row has one feature of each field, as an event has one user, one page and one hour. Within a field the frequencies
of features follow a Zipf-like distribution, as those of words do. With the planted score ``z`` the label is
``sign(z + noise * logistic)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows, compact, concatenate
from hogwild.data.generate.linear_model import zipf_ranks
from hogwild.errors import ParameterError
from hogwild.lazy import cached_property

_BLOCK_ROWS = 1 << 14  # Rows that are drawn together.


@dataclass(frozen=True)
class Interactions:
    """Rows of a planted model with products of features. The rows are drawn on demand.

    >>> made = Interactions(n_rows=100, features=40, n_fields=4, seed=3)
    >>> made.rows.layout, made.rows.indptr[:3], made.fields[[0, 39]]
    ('binary', array([0, 4, 8]), array([0, 3], dtype=uint32))
    """

    n_rows: int
    features: int
    n_fields: int = 10
    rank: int = 4
    strength: float = 2.0  # Standard deviation of the contribution of pairs to the score. That of single features is 1.
    exponent: float = 0.9
    noise: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, least, largest in (
            ("rows", self.n_rows, 1, 2**62),
            ("fields", self.n_fields, 2, 1_000),
            ("features", self.features, self.n_fields, 2**31 - 1),
            ("rank", self.rank, 1, 1_000),
            ("strength", self.strength, 0, 1e6),
            ("exponent", self.exponent, 0, 10),
            ("noise", self.noise, 0, 1e6),
            ("seed", self.seed, 0, 2**63),
        ):
            if not least <= value <= largest:
                raise ParameterError(
                    f"The '{name}' parameter must be between {least:,} and {largest:,}. Got {value!r} instead."
                )

    @cached_property
    def rows(self) -> CSRRows:
        """All rows, in memory."""
        return concatenate(list(self.pieces()))

    @property
    def weights(self) -> Array:
        """The planted weights, float32."""
        return self._planted[0]

    @property
    def factors(self) -> Array:
        """The planted factors, float32, with one row for each feature."""
        return self._planted[1]

    @property
    def nonzeros(self) -> int:
        """The number of non-zeros of each row."""
        return self.n_fields

    @property
    def intercept(self) -> Array:
        """The planted intercept, float64."""
        return np.asarray(0.0)

    @cached_property
    def fields(self) -> Array:
        """The field of each feature."""
        bounds = self._bounds
        return np.repeat(np.arange(self.n_fields, dtype=np.uint32), np.diff(bounds))

    def pieces(self) -> Iterator[CSRRows]:
        """Yield all rows, in order and in pieces."""
        for number in range(-(-self.n_rows // _BLOCK_ROWS)):
            yield compact(self._block(number)[: self.n_rows - number * _BLOCK_ROWS])

    def scores(self, indices: Array) -> Array:
        """Return the planted scores of rows; each row of ``indices`` has the feature numbers of one row.

        >>> made = Interactions(n_rows=100, features=40, n_fields=4, noise=0.0)
        >>> bool((np.sign(made.scores(made.rows.indices.reshape(-1, 4))) == made.rows.labels).all())
        True
        """
        rows = self.factors[indices].astype(np.float64)
        pairs = (np.square(rows.sum(axis=1)) - np.square(rows).sum(axis=1)).sum(axis=1) / 2
        return np.asarray(self.weights[indices].sum(axis=1, dtype=np.float64) + pairs)

    @cached_property
    def _bounds(self) -> Array:
        return np.arange(self.n_fields + 1) * self.features // self.n_fields

    @cached_property
    def _planted(self) -> tuple[Array, Array]:
        random = np.random.default_rng([self.seed, 1])
        pairs = self.n_fields * (self.n_fields - 1) / 2
        weights = random.standard_normal(self.features, np.float32) / np.sqrt(self.n_fields)
        spread = (self.strength**2 / (pairs * self.rank)) ** 0.25
        factors = random.standard_normal((self.features, self.rank), np.float32) * spread
        return weights.astype(np.float32), factors.astype(np.float32)

    def _block(self, number: int) -> CSRRows:
        # The method always draws a whole block, so that a row is the same however many rows the caller asks for.
        random, bounds = np.random.default_rng([self.seed, 0, number]), self._bounds
        uniform = random.random((_BLOCK_ROWS, self.n_fields))
        sizes = np.diff(bounds)
        columns = [zipf_ranks(uniform[:, f], int(sizes[f]), self.exponent) + bounds[f] for f in range(self.n_fields)]
        indices = np.stack(columns, axis=1).astype(np.uint32)
        z = self.scores(indices) + self.noise * random.logistic(size=_BLOCK_ROWS)
        indptr = np.arange(_BLOCK_ROWS + 1, dtype=np.int64) * self.n_fields
        labels = np.where(z > 0, 1.0, -1.0)
        return CSRRows(indptr, indices.ravel(), NO_VALUES, labels, NO_WEIGHTS, self.features, "binary")

    def libffm_text(self, rows: CSRRows) -> bytes:
        r"""Return lines ``label field:feature:1 ...``, with fields and features counted from zero.

        >>> made = Interactions(n_rows=1, features=9, n_fields=3, seed=1)
        >>> made.libffm_text(made.rows)
        b'-1 0:1:1 1:5:1 2:6:1\n'
        """
        words = [f" {field}:{feature}:1" for feature, field in enumerate(self.fields.tolist())]
        table = compact(rows).indices.reshape(-1, self.n_fields).tolist()
        lines = (
            f"{int(label)}{''.join([words[u] for u in row])}\n"
            for label, row in zip(rows.labels.tolist(), table, strict=True)
        )
        return "".join(lines).encode()
