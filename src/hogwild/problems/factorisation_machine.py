"""Factorisation machines: a linear model, and the products of any two features."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from hogwild.data.csr import Array
from hogwild.losses import Loss
from hogwild.problems.factorisation_base import FactorisationProblem, OwnLoss
from hogwild.problems.label_encoding import ClassWeight, LabelEncoding

NO_FIELDS = np.empty(0, np.uint32)


@final
class FactorisationMachine(FactorisationProblem):
    r"""A factorisation machine of second order (Rendle 2010).

    The score of a row, with a weight :math:`w_u` and ``rank`` factors :math:`v_u` for each feature, is

    .. math:: b + \sum_u w_u x_u + \sum_{u < t} \langle v_u, v_t \rangle\, x_u x_t

    Minimised is the mean loss, plus ``l2`` times half the squared length of w as in :class:`hogwild.Linear`, plus
    ``l2_factors`` times half the squared length of each :math:`v_u`, weighted by the share of rows that have the
    feature: that is what a penalty comes to that each term takes from its own factors. Factors start as random numbers
    of size ``spread``, the same for the same ``seed``. ``normalise`` scales each row to length one.

    ``source`` is anything :func:`hogwild.data.open` takes, and ``loss`` one of two classes or of numbers.

    >>> import numpy as np
    >>> from hogwild import minimise
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 2)); y = X[:, 0] ^ X[:, 1]
    >>> run = minimise(FactorisationMachine((X, y), rank=2), strategy="serial", budget=50)
    >>> run.model.predict([[0, 0], [0, 1], [1, 0], [1, 1]])
    array([0., 1., 1., 0.])
    """

    kind, name, vector = "any", "fm", 8

    def __init__(
        self,
        source: Any,
        loss: Loss | str | OwnLoss = "logistic",
        *,
        rank: int = 8,
        l2: float = 0.0,
        l2_factors: float = 0.01,
        intercept: bool = True,
        normalise: bool = False,
        class_weight: ClassWeight = None,
        spread: float = 0.1,
        seed: int = 0,
        labels: LabelEncoding | None = None,
    ) -> None:
        super().__init__(
            source, loss, rank=rank, l2=l2, l2_factors=l2_factors, intercept=intercept, normalise=normalise,
            class_weight=class_weight, spread=spread, seed=seed, labels=labels,
        )  # fmt: skip

    @property
    def rows_each(self) -> int:
        """A feature has one row of factors, whatever it meets."""
        return 1

    @property
    def work(self) -> int:
        """Each entry of a row meets the sum of all, factor by factor."""
        return self.source.nonzeros * self.padded

    @property
    def _fields(self) -> Array:
        return NO_FIELDS

    def _visits(self) -> Array:
        return self.source.frequencies() / max(1, self.source.n_rows)

    def _with(self, source: Any) -> FactorisationMachine:
        return FactorisationMachine(
            source, self.loss, rank=self.rank, l2=self.l2, l2_factors=self.l2_factors, intercept=self.intercept,
            normalise=self.normalise, class_weight=self.class_weight, spread=self.spread, seed=self.seed,
            labels=self.labels,
        )  # fmt: skip
