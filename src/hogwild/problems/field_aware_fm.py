"""Field-aware factorisation machines: a feature meets the features of each field with other factors."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from hogwild.data.csr import Array
from hogwild.errors import ParameterError
from hogwild.kernels import factorisation_machine_build
from hogwild.losses import Loss
from hogwild.problems.factorisation_base import FactorisationProblem, OwnLoss
from hogwild.problems.label_encoding import ClassWeight, LabelEncoding


@final
class FieldAwareFactorisationMachine(FactorisationProblem):
    r"""A field-aware factorisation machine (Juan et al. 2016).

    Each feature is of a field (the advertiser, the page, the hour), and has a row of factors for each field that the
    feature it meets may be of. With :math:`f_u` the field of feature u the score of a row is

    .. math:: b + \sum_u w_u x_u + \sum_{u < t} \langle v_{u, f_t}, v_{t, f_u} \rangle\, x_u x_t

    ``fields`` is the field of each feature, counted from 0; a file in libffm format says it itself. As in libffm rows
    are scaled to length one unless ``normalise`` is False, and factors are stepped pair by pair. The other parameters
    are those of :class:`hogwild.FactorisationMachine`; the penalty on a row of factors is weighted by how often pairs
    meet in it.

    >>> import numpy as np
    >>> from hogwild import minimise
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 2)); X = np.hstack([X, 1 - X]); y = X[:, 0] ^ X[:, 1]
    >>> problem = FieldAwareFactorisationMachine((X, y), fields=[0, 1, 0, 1], rank=2)
    >>> problem.n_fields, minimise(problem, strategy="serial", budget=50).result["accuracy"]
    (2, 1.0)
    """

    kind, name, vector = "by field", "ffm", 4

    def __init__(
        self,
        source: Any,
        loss: Loss | str | OwnLoss = "logistic",
        *,
        fields: Any = None,
        rank: int = 4,
        l2: float = 0.0,
        l2_factors: float = 0.001,
        intercept: bool = True,
        normalise: bool = True,
        class_weight: ClassWeight = None,
        spread: float = 0.1,
        seed: int = 0,
        labels: LabelEncoding | None = None,
    ) -> None:
        super().__init__(
            source, loss, rank=rank, l2=l2, l2_factors=l2_factors, intercept=intercept, normalise=normalise,
            class_weight=class_weight, spread=spread, seed=seed, labels=labels,
        )  # fmt: skip
        known = self.source.table
        given = known.fields if fields is None and known is not None else fields
        if given is None:
            raise ParameterError(
                f"{self.source.name} does not say of which field each feature is. Give 'fields', the field of each, or "
                "a file in libffm format."
            )
        self._table = _checked(given, self.source.n_features)

    @property
    def n_fields(self) -> int:
        """How many fields there are."""
        return int(self._table[-1])

    @property
    def fields(self) -> Array:
        """The field of each feature."""
        return self._table[:-1]

    @property
    def rows_each(self) -> int:
        """A feature has a row of factors for each field that it may meet."""
        return self.n_fields

    @property
    def work(self) -> int:
        """Each entry of a row meets each other, factor by factor."""
        each = self.source.nonzeros / max(1, self.source.n_rows)
        return int(self.source.nonzeros * max(1.0, each - 1) / 2 * self.padded)

    @property
    def _fields(self) -> Array:
        return self._table

    def _visits(self) -> Array:
        counts, walk = np.zeros(self.source.n_features * self.n_fields, np.int64), self.source.in_order()
        for number in range(len(walk)):
            chunk = walk[number]
            rows = chunk.rows
            factorisation_machine_build.count_pairs(rows.layout)(
                rows.arrays[0], rows.arrays[1], chunk.order, self._table, counts
            )
            walk.done(number)
        return counts / max(1, self.source.n_rows)

    def _with(self, source: Any) -> FieldAwareFactorisationMachine:
        return FieldAwareFactorisationMachine(
            source, self.loss, fields=self._table[:-1], rank=self.rank, l2=self.l2, l2_factors=self.l2_factors,
            intercept=self.intercept, normalise=self.normalise, class_weight=self.class_weight, spread=self.spread,
            seed=self.seed, labels=self.labels,
        )  # fmt: skip


def _checked(fields: Any, features: int) -> Array:
    """The field of each feature, and behind them how many fields there are."""
    given = np.asarray(fields)
    whole = given.dtype.kind in "iu" or (given.dtype.kind == "f" and bool((given == np.round(given)).all()))
    if given.ndim != 1 or not whole or (given.size and given.min() < 0):
        raise ParameterError("The 'fields' parameter must be whole numbers that count from 0, one for each feature.")
    if len(given) != features:
        raise ParameterError(
            f"The 'fields' parameter must have an entry for each of {features:,} features. Got {len(given):,} instead."
        )
    table = np.append(given, given.max() + 1).astype(np.uint32)
    table.setflags(write=False)
    return table
