"""Field-aware factorisation machines, in which a feature has separate factors for each field of the other feature."""

from __future__ import annotations

from typing import Literal, final

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data import as_dataset
from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset
from hogwild.data.reader import ReadOptions
from hogwild.data.sampling import RowSampling
from hogwild.errors import ParameterError
from hogwild.kernels import factorisation_machine_build
from hogwild.keywords import advised
from hogwild.losses import Loss
from hogwild.problems.factorisation_base import FactorisationProblem, OwnLoss
from hogwild.problems.label_encoding import ClassWeight, LabelEncoding


@final
@advised(
    rank="Write rank=4.",
    penalty="Write l2=1e-5 for the weights, l2_factors=1e-5 for the factors.",
    epochs="minimise takes it: hogwild.minimise(problem, budget=3).",
    step="minimise takes it: hogwild.minimise(problem, schedule=0.1).",
    workers="minimise takes them: hogwild.minimise(problem, strategy=hogwild.Hogwild(workers=4)).",
    rule="minimise takes it: hogwild.minimise(problem, rule='adagrad').",
    seed="Write seed=0.",
    test="minimise takes it: hogwild.minimise(problem, test=data).",
)
class FieldAwareFactorisationMachine(FactorisationProblem):
    r"""Field-aware factorisation machine (Juan et al. 2016).

    Each feature belongs to a field (the advertiser, the page, the hour). A feature has a row of factors for each field
    of the feature that it is paired with. With :math:`f_u` the field of feature u, the score of a row is

    .. math:: b + \sum_u w_u x_u + \sum_{u < t} \langle v_{u, f_t}, v_{t, f_u} \rangle\, x_u x_t

    As in libffm, kernels step factors pair by pair. The penalty on a row of factors is weighted by the mean number of
    pairs per row of data that use it. Where rows are drawn by weight, it is the mean over the draws.

    Parameters
    ----------
    source : path, tuple (X, y) or Dataset
        Any source that :func:`hogwild.data.open` accepts.
    loss : Loss, str or callable, default "logistic"
        Loss of a row, for two classes or for numbers.
    fields : array of int, optional
        Field of each feature, counted from 0; a file in libffm format contains the fields itself.
    rank : int, default 4
        Number of factors of a feature for each field.
    l2 : float or "auto", optional
        Strength of the L2 penalty on weights; 0 is none. Left out, it is that of :class:`hogwild.Linear`, which is
        ``1 / n`` for n rows of zeros and ones. "auto" chooses it on held-out rows, and ``l2_factors`` with it, unless
        that is given.
    l2_factors : float, optional
        Strength of the L2 penalty on factors; 0 is none. Left out, it is ``0.2 / sqrt(n)`` for n rows, at most 0.005.
    intercept : bool, default True
        Whether the model has an intercept.
    normalise : bool, default True
        Whether each row is scaled to length 1, as in libffm.
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

    Raises
    ------
    ParameterError
        If neither ``fields`` nor the data gives the field of each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from hogwild import minimise
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 2)); X = np.hstack([X, 1 - X]); y = X[:, 0] ^ X[:, 1]
    >>> problem = FieldAwareFactorisationMachine((X, y), fields=[0, 1, 0, 1], rank=2)
    >>> problem.n_fields, minimise(problem, strategy="serial", budget=50).result["accuracy"]
    (2, 1.0)

    References
    ----------
    Y. Juan, Y. Zhuang, W.-S. Chin and C.-J. Lin, "Field-aware Factorization Machines for CTR Prediction", RecSys 2016.
    """

    kind, name, vector = "by field", "ffm", 4
    factor_penalty = 0.2, 0.005

    def __init__(
        self,
        source: object,
        loss: Loss | str | OwnLoss = "logistic",
        *,
        fields: ArrayLike | None = None,
        rank: int = 4,
        l2: float | Literal["auto"] | None = None,
        l2_factors: float | None = None,
        intercept: bool = True,
        normalise: bool = True,
        class_weight: ClassWeight = None,
        spread: float = 0.1,
        seed: int = 0,
        labels: LabelEncoding | None = None,
        sampling: str | RowSampling = "split",
        label: str | None = None,
    ) -> None:
        # Columns of a table are fields, unless the fields of the features are given.
        opened = as_dataset(source, ReadOptions(label=label, fields=() if fields is None else None))
        super().__init__(
            opened, loss, rank=rank, l2=l2, l2_factors=l2_factors, intercept=intercept, normalise=normalise,
            class_weight=class_weight, spread=spread, seed=seed, labels=labels, sampling=sampling,
        )  # fmt: skip
        known = self.source.table
        given = known.fields if fields is None and known is not None else fields
        if given is None:
            raise ParameterError(
                f"{self.source.name} does not say of which field each feature is. Give 'fields', the field of each, or "
                "a file in libffm format, or a table, whose columns are fields."
            )
        self._table = _checked(given, self.source.n_features)

    @property
    def n_fields(self) -> int:
        """The number of fields."""
        return int(self._table[-1])

    @property
    def fields(self) -> Array:
        """The field of each feature."""
        return self._table[:-1]

    @property
    def rows_each(self) -> int:
        """The number of rows of factors of a feature, one for each field."""
        return self.n_fields

    @property
    def work(self) -> int:
        """The number of multiplications of an epoch.

        Each entry of a row is multiplied with each other entry, factor by factor.
        """
        each = self.source.nonzeros / max(1, self.source.n_rows)
        return int(self.source.nonzeros * max(1.0, each - 1) / 2 * self.padded)

    @property
    def _fields(self) -> Array:
        return self._table

    def _visits(self) -> Array:
        counts, epoch = np.zeros(self.source.n_features * self.n_fields), self.source.in_order()
        chances, n_rows, first = self.sampling.chances(self.source), self.source.n_rows, 0
        visits = np.ones(n_rows) if chances is None else chances * (n_rows / chances.sum())
        for number in range(len(epoch)):
            chunk = epoch[number]
            rows, last = chunk.rows, first + len(chunk.order)
            factorisation_machine_build.count_pairs(rows.layout)(
                rows.arrays[0], rows.arrays[1], chunk.order, visits[first:last], self._table, counts
            )
            epoch.done(number)
            first = last
        return counts / max(1, n_rows)

    def _with(self, source: Dataset) -> FieldAwareFactorisationMachine:
        return FieldAwareFactorisationMachine(
            source, self.loss, fields=self._table[:-1], rank=self.rank, l2=self.l2, l2_factors=self.l2_factors,
            intercept=self.intercept, normalise=self.normalise, class_weight=self.class_weight, spread=self.spread,
            seed=self.seed, labels=self.labels,
        )  # fmt: skip


_LARGEST_FIELD = 2**31 - 2


def _checked(fields: ArrayLike, features: int) -> Array:
    """Return the field of each feature, followed by the number of fields.

    Raises
    ------
    ParameterError
        If the fields are not one non-negative integer per feature.
    """
    given = np.asarray(fields)
    whole = given.dtype.kind in "iu" or (given.dtype.kind == "f" and bool((given == np.round(given)).all()))
    if given.ndim != 1 or not whole or (given.size and not 0 <= given.min() <= given.max() <= _LARGEST_FIELD):
        raise ParameterError(
            "The 'fields' parameter must be whole numbers that count from 0, one for each feature. The largest is "
            f"{_LARGEST_FIELD:,}."
        )
    if len(given) != features:
        raise ParameterError(
            f"The 'fields' parameter must have an entry for each of {features:,} features. Got {len(given):,} instead."
        )
    table = np.append(given, given.max() + 1).astype(np.uint32)
    table.setflags(write=False)
    return table
