"""Factorisation machines: a linear model plus the products of all pairs of features."""

from __future__ import annotations

from typing import Literal, final

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset
from hogwild.data.sampling import RowSampling, feature_visits
from hogwild.keywords import advised
from hogwild.losses import Loss
from hogwild.problems.factorisation_base import FactorisationProblem, OwnLoss
from hogwild.problems.label_encoding import ClassWeight, LabelEncoding

NO_FIELDS = np.empty(0, np.uint32)


@final
@advised(
    rank="Write rank=8.",
    penalty="Write l2=1e-5 for the weights, l2_factors=1e-5 for the factors.",
    epochs="minimise takes it: hogwild.minimise(problem, budget=3).",
    step="minimise takes it: hogwild.minimise(problem, schedule=0.1).",
    workers="minimise takes them: hogwild.minimise(problem, strategy=hogwild.Hogwild(workers=4)).",
    rule="minimise takes it: hogwild.minimise(problem, rule='adagrad').",
    seed="Write seed=0.",
    test="minimise takes it: hogwild.minimise(problem, test=data).",
)
class FactorisationMachine(FactorisationProblem):
    r"""Factorisation machine of second order (Rendle 2010).

    The score of a row, with a weight :math:`w_u` and ``rank`` factors :math:`v_u` for each feature, is

    .. math:: b + \sum_u w_u x_u + \sum_{u < t} \langle v_u, v_t \rangle\, x_u x_t

    The objective is the mean loss plus two penalties. The first is ``l2`` times half the squared length of w, as in
    :class:`hogwild.Linear`. The second is ``l2_factors`` times half the squared length of each :math:`v_u`, weighted by
    the fraction of rows that have the feature. This weighting results if each term applies the whole penalty to its own
    factors. Where rows are drawn by weight, it is the fraction of the draws.

    Parameters
    ----------
    source : path, tuple (X, y) or Dataset
        Any source that :func:`hogwild.data.open` accepts.
    loss : Loss, str or callable, default "logistic"
        Loss of a row, for two classes or for numbers.
    rank : int, default 8
        Number of factors of a feature.
    l2 : float or "auto", optional
        Strength of the L2 penalty on weights; 0 is none. Left out, it is that of :class:`hogwild.Linear`, which is
        ``1 / n`` for n rows of zeros and ones. "auto" chooses it on held-out rows, and ``l2_factors`` with it, unless
        that is given.
    l2_factors : float, optional
        Strength of the L2 penalty on factors; 0 is none. Left out, it is ``12 / sqrt(n)`` for n rows, at most 0.05.
    intercept : bool, default True
        Whether the model has an intercept.
    normalise : bool, default False
        Whether each row is scaled to length 1.
    class_weight : dict or "balanced", optional
        Weights of classes.
    spread : float, default 0.1
        Standard deviation of the random factors at the start.
    seed : int, default 0
        Seed of the random factors.
    labels : LabelEncoding, optional
        Encoding of labels; by default the data determines it.
    sampling : {"split", "replacement"} or Weighted, default "split"
        Choice of the rows of an epoch: each row once ("split"), or as many draws with replacement, all rows alike
        ("replacement") or each with a probability of its own (:class:`hogwild.Weighted`).
    label : str, optional
        Name or number (from 1) of the column with the labels, where ``source`` is a table: CSV, JSON lines, Arrow,
        Parquet or a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from hogwild import minimise
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 2)); y = X[:, 0] ^ X[:, 1]
    >>> run = minimise(FactorisationMachine((X, y), rank=2, l2_factors=1e-3), strategy="serial", budget=50)
    >>> run.model.predict([[0, 0], [0, 1], [1, 0], [1, 1]]).astype(int).tolist()
    [0, 1, 1, 0]

    References
    ----------
    S. Rendle, "Factorization Machines", ICDM 2010.
    """

    kind, name, vector = "any", "fm", 8
    factor_penalty = 12.0, 0.05

    def __init__(
        self,
        source: object,
        loss: Loss | str | OwnLoss = "logistic",
        *,
        rank: int = 8,
        l2: float | Literal["auto"] | None = None,
        l2_factors: float | None = None,
        intercept: bool = True,
        normalise: bool = False,
        class_weight: ClassWeight = None,
        spread: float = 0.1,
        seed: int = 0,
        labels: LabelEncoding | None = None,
        sampling: str | RowSampling = "split",
        label: str | None = None,
    ) -> None:
        super().__init__(
            source, loss, rank=rank, l2=l2, l2_factors=l2_factors, intercept=intercept, normalise=normalise,
            class_weight=class_weight, spread=spread, seed=seed, labels=labels, sampling=sampling, label=label,
        )  # fmt: skip

    @property
    def rows_each(self) -> int:
        """The number of rows of factors of a feature, which is 1 whatever features it is paired with."""
        return 1

    @property
    def work(self) -> int:
        """The number of multiplications of an epoch.

        Each entry of a row is multiplied with the sum of all entries, factor by factor.
        """
        return self.source.nonzeros * self.padded

    @property
    def _fields(self) -> Array:
        return NO_FIELDS

    def _visits(self) -> Array:
        return feature_visits(self.source, self.sampling.chances(self.source)) / max(1, self.source.n_rows)

    def _with(self, source: Dataset) -> FactorisationMachine:
        return FactorisationMachine(
            source, self.loss, rank=self.rank, l2=self.l2, l2_factors=self.l2_factors, intercept=self.intercept,
            normalise=self.normalise, class_weight=self.class_weight, spread=self.spread, seed=self.seed,
            labels=self.labels,
        )  # fmt: skip
