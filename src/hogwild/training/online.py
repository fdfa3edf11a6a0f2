"""Online learning of a linear model: each row once, in order, with its loss before it is learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import Chunk
from hogwild.errors import CheckpointError, DataError, DivergedError, ParameterError
from hogwild.kernels import linear_build
from hogwild.kernels.linear import ALL_ROWS
from hogwild.losses import Loss
from hogwild.models.linear import LinearModel
from hogwild.problems.linear_kernels import NEAR
from hogwild.problems.problem import QueueKernel
from hogwild.rules.rule import Rule

_LEAST_FEATURES = 1024


@dataclass(slots=True)
class ProgressiveLoss:
    """Losses of rows, each before it was learnt: an estimate of the loss on new rows, without held-out ones."""

    rows: int = 0
    weight: float = 0.0  # Sum of the rows' weights.
    total: float = 0.0  # Sum of the rows' losses times their weights.

    @property
    def mean(self) -> float:
        """The mean of all losses."""
        return self.total / self.weight if self.weight else float("nan")

    def since(self, before: ProgressiveLoss) -> float:
        """Return the mean of the losses since an earlier time."""
        weight = self.weight - before.weight
        return (self.total - before.total) / weight if weight else float("nan")


@dataclass(eq=False)
class OnlineLinear:
    """Linear model with one output that learns row by row. Features may be new at any time.

    A row is learnt by one step along its loss and the penalties of the weights of its features.

    Parameters
    ----------
    loss : Loss
        Loss of a row. Labels of classes are -1 and 1, or 0 and 1.
    rule : Rule
        How a gradient becomes an update.
    step : float
        The step size, which is constant; the rules adagrad and ftrl divide it by what they have seen.
    l1, l2 : float, default 0.0
        Strengths of the penalties of the features of a row.
    intercept : bool, default True
        Whether the model has an intercept.

    Raises
    ------
    ParameterError
        If the rule cannot learn online.

    Examples
    --------
    >>> from hogwild.data.arrays import rows_from_arrays
    >>> from hogwild.losses import named
    >>> from hogwild.rules import AdaGrad
    >>> import scipy.sparse
    >>> rows = rows_from_arrays(scipy.sparse.csr_array(np.eye(2, dtype=np.float32)), [1, 0])
    >>> online = OnlineLinear(named("logistic"), AdaGrad(), 0.1)
    >>> online.learn(rows)
    >>> round(online.progress.mean, 3), online.model({}).predict(np.eye(2))
    (0.719, array([1., 0.]))
    """

    loss: Loss
    rule: Rule
    step: float
    l1: float = 0.0
    l2: float = 0.0
    intercept: bool = True
    progress: ProgressiveLoss = field(default_factory=ProgressiveLoss)
    features: int = 0  # One more than the largest index so far.

    def __post_init__(self) -> None:
        if self.rule.has_duals or self.rule.single_worker or self.rule.step_size != "scheduled":
            raise ParameterError("Rows that come once are learnt by the rules sgd, momentum, adagrad, ftrl or adam.")
        self._classes = self.loss.targets == "classes"
        self._negative: float | None = None  # The label of the negative class, which is -1 or 0, once it is seen.
        self._weights = self._initial(_LEAST_FEATURES)
        self._bias = np.tile(np.array(self.rule.initial_intercept, self.rule.intercept_precision), (1, 1))
        self._kernels: dict[str, QueueKernel] = {}

    def learn(self, rows: CSRRows) -> None:
        """Learn rows in their order, and add the loss of each before that to :attr:`progress`.

        Raises
        ------
        DataError
            If a label does not suit the loss.
        DivergedError
            If a loss is not finite.
        """
        labels = self._encoded(rows.labels)
        self._grow(rows.features)
        encoded = CSRRows(rows.indptr, rows.indices, rows.values, labels, rows.weights, rows.features, rows.layout)
        kernel = self._kernels.get(rows.layout) or self._kernels.setdefault(rows.layout, self._kernel(rows.layout))
        order, steps = np.arange(len(rows), dtype=np.int64), np.full(len(rows), self.step, np.float32)
        loss = kernel(Chunk(encoded, order), steps, (self._weights, self._bias), np.zeros(1, np.int64))
        if not np.isfinite(loss):
            raise DivergedError(
                f"The loss of rows {self.progress.rows + 1:,} to {self.progress.rows + len(rows):,} is not finite. "
                f"Use a smaller step than {self.step:g}."
            )
        self.progress.rows += len(rows)
        self.progress.weight += float(rows.weights.sum(dtype=np.float64)) if rows.weights.size else len(rows)
        self.progress.total += float(loss)

    def model(self, reading: Mapping[str, Any], base: int = 0) -> LinearModel:
        """Return the present model, for features whose indices count from ``base``."""
        weights = self._weights[base : max(self.features, base + 1), :1].astype(np.float32)
        classes = (-1.0 if self._negative is None else self._negative, 1.0) if self._classes else None
        training = {"online": True, "rows": self.progress.rows, "loss": self.progress.mean, **self.describe()}
        intercept = self._bias[:, 0].astype(np.float32)
        return LinearModel(
            weights, intercept, str(self.loss), classes, self.loss.link, {**reading, "base": base}, training
        )

    def describe(self) -> dict[str, Any]:
        """Return what must be the same for learning to go on."""
        return {
            "loss": str(self.loss), "rule": str(self.rule), "step": self.step, "l1": self.l1, "l2": self.l2,
            "intercept": self.intercept,
        }  # fmt: skip

    def saved(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and the record of a checkpoint."""
        record = {
            **self.describe(), "features": self.features, "rows": self.progress.rows, "weight": self.progress.weight,
            "total": self.progress.total, "negative": self._negative,
        }  # fmt: skip
        return {"weights": self._weights[: max(1, self.features)], "bias": self._bias}, record

    def restore(self, arrays: Mapping[str, Array], record: Mapping[str, Any]) -> None:
        """Go on from a checkpoint.

        Raises
        ------
        CheckpointError
            If the checkpoint is that of another kind of learning, or damaged.
        """
        for name, value in self.describe().items():
            if record.get(name) != value:
                raise CheckpointError(
                    f"The checkpoint belongs to a run with {name} {record.get(name)!r}, and this one has {value!r}. "
                    "Give the same options, or another folder."
                )
        try:
            features, weights, bias = int(record["features"]), arrays["weights"], arrays["bias"]
            sound = weights.shape == (max(1, features), self._weights.shape[1]) and bias.shape == self._bias.shape
            if not sound or weights.dtype != self._weights.dtype or bias.dtype != self._bias.dtype:
                raise ValueError("its arrays have other shapes")
            self.progress = ProgressiveLoss(int(record["rows"]), float(record["weight"]), float(record["total"]))
            self._negative = None if record["negative"] is None else float(record["negative"])
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"The checkpoint is damaged ({error}).") from None
        self._grow(features)
        self._weights[: len(weights)] = weights
        self._bias[:] = bias

    def _encoded(self, labels: Array) -> Array:
        if not self._classes:
            if self.loss.targets == "counts" and (labels < 0).any():
                raise DataError(
                    f"the label {labels[labels < 0][0]:g} is negative", remedy="Poisson loss is for counts."
                )
            return labels.astype(np.float32)
        for label in np.unique(labels).tolist():
            if label not in (-1.0, 0.0, 1.0) or (label != 1 and self._negative not in (None, label)):
                known = "-1 and 1, or 0 and 1" if self._negative is None else f"{self._negative:g} and 1"
                raise DataError(
                    f"the label {label:g} is not one of two classes ({known})",
                    remedy="Rows that come once are learnt with two classes, or with numbers (--loss squared).",
                )
            self._negative = label if label != 1 else self._negative
        return np.where(labels > 0, np.float32(1), np.float32(-1))

    def _initial(self, features: int) -> Array:
        return np.tile(np.array(self.rule.initial, self.rule.precision), (features, 1))

    def _grow(self, features: int) -> None:
        """Make room for features. Room doubles, so that each weight is copied a few times at most."""
        self.features = max(self.features, features)
        if self.features > len(self._weights):
            more = max(self.features, 2 * len(self._weights)) - len(self._weights)
            self._weights = np.concatenate([self._weights, self._initial(more)])
            self._kernels.clear()  # They hold the shares of the penalties.

    def _kernel(self, layout: str) -> QueueKernel:
        penalised = self.l1 > 0, self.l2 > 0
        loop = linear_build.descend(
            layout, "free", self.rule.step, self.rule.skips_zero_gradient, "scheduled", penalised, self.loss.function,
            None, self.loss.ours, len(self.rule.initial), self._weights.nbytes > NEAR,
        )  # fmt: skip
        constants = tuple(np.float32(c) for c in self.rule.constants)
        # A row bears the whole penalty of its features' weights: how often others will come is unknown.
        shares = np.ones(len(self._weights) if any(penalised) else 0, np.float32)
        one, weights = np.float32(1), np.ones(2, np.float32)
        l1, l2, parameter = np.float32(self.l1), np.float32(self.l2), float(self.loss.parameter)

        def rest(state: tuple[Array, ...], sync: Array) -> tuple[Any, ...]:
            return (
                *state, self.intercept, shares, l1, l2, weights, parameter, constants, sync, ALL_ROWS, one,
                np.float32(self.loss.curvature), one, np.float32(0),
            )  # fmt: skip

        return QueueKernel(loop, rest)
