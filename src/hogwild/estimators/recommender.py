"""Recommender: matrix completion with the interface of a scikit-learn estimator."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import sparray, spmatrix
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hogwild import strategies
from hogwild.data.csr import Array
from hogwild.data.ratings import Ratings, open_ratings
from hogwild.errors import ParameterError
from hogwild.estimators.device import device_of, runtime_of
from hogwild.estimators.fit import workers_of
from hogwild.estimators.inputs import RandomState
from hogwild.keywords import advised
from hogwild.losses import our_name
from hogwild.models.ratings import RatingsModel
from hogwild.problems.matrix_completion import MatrixCompletion
from hogwild.rules import Rule
from hogwild.rules import named as rule_named
from hogwild.run import Run, WarmStart
from hogwild.schedules import Constant, Schedule, starting_at
from hogwild.stopping import Budget
from hogwild.strategies import Strategy
from hogwild.training.minimise import minimise

if TYPE_CHECKING:
    from onnx import ModelProto

RatingsLike = sparray | spmatrix | tuple[ArrayLike, ...] | str | Path | Ratings
"""Ratings: a sparse matrix, columns ``(users, items, ratings)``, a file, or open ratings."""

# Default step size of partial_fit: so small that later ratings adjust the factors and do not overwrite them.
PARTIAL_FIT_STEP = 0.01


@advised(
    epochs="Write max_iter=3.",
    step="Write step=0.1.",
    workers="Write n_jobs=4, or n_jobs=-1 for all cores.",
    rank="Write rank=32.",
    penalty="Write l2=0.05.",
    rule="Write rule='adagrad'.",
    seed="Write random_state=0.",
)
class HogwildRecommender(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Matrix completion by stochastic gradient descent with several workers; see :class:`hogwild.MatrixCompletion`.

    Ratings are a sparse matrix with one row per user, columns ``(users, items, ratings)`` with names of any type, or
    the path of a file.

    Parameters
    ----------
    rank : int, default 32
        Number of factors of each user and of each item.
    loss : {"squared", "bpr"}, default "squared"
        Loss: squared error of ratings, or Bayesian personalised ranking of pairs.
    l2 : float or "auto", optional
        Strength of the penalty on the factors and biases of each rating. None is the default for the loss. "auto"
        chooses it in ``fit`` on held-out ratings, a tenth of them unless ``validation_fraction`` says otherwise.
    biases : bool, default True
        Whether to learn a bias of each user and of each item.
    nonnegative : bool, default False
        Whether factors are at least zero.
    step : float, optional
        Initial step size. None is the default of the problem in ``fit``, and 0.01 in ``partial_fit``.
    max_iter : int, optional
        Maximum number of epochs. None is 20 epochs.
    validation_fraction : float, optional
        Share of the ratings to hold out. The fit then keeps the factors with the lowest held-out loss.
    n_iter_no_change : int, default 5
        Number of epochs without a lower held-out loss after which a fit stops.
    rule : Rule or str, optional
        Update rule. None is the default of the problem.
    schedule : Schedule or str, optional
        Schedule of the step size. None is the default of the problem.
    strategy : Strategy or str, default "hogwild"
        Scheme by which workers share the factors, in one memory.
    n_jobs : int, optional
        Number of workers. None is one worker per core.
    random_state : int, RandomState or None, default None
        Seed of the initial factors, of the order of ratings and of the split.
    device : {"cpu", "cuda", "auto"}, default "cpu"
        Where the fit runs. On a GPU, ``n_jobs`` has no meaning. "auto" takes a GPU if there is one and the data is
        large.

    Examples
    --------
    >>> users, items = ["ann", "ann", "bob", "bob", "cid"], ["x", "y", "x", "z", "y"]
    >>> model = HogwildRecommender(rank=4, random_state=0).fit((users, items, [5, 4, 1, 2, 4]))
    >>> model.predict((["ann", "bob"], ["x", "x"])).shape, [str(item) for item in model.recommend("ann", 5)[0]]
    ((2,), ['z'])
    """

    def __init__(
        self, rank: int = 32, *, loss: str = "squared", l2: float | Literal["auto"] | None = None,
        biases: bool = True, nonnegative: bool = False, step: float | None = None, max_iter: int | None = None,
        validation_fraction: float | None = None, n_iter_no_change: int = 5, rule: Rule | str | None = None,
        schedule: Schedule | str | float | None = None, strategy: Strategy | str = "hogwild",
        n_jobs: int | None = None, random_state: RandomState = None, device: str = "cpu",
    ) -> None:  # fmt: skip
        self.rank = rank
        self.loss = loss
        self.l2 = l2
        self.biases = biases
        self.nonnegative = nonnegative
        self.step = step
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.rule = rule
        self.schedule = schedule
        self.strategy = strategy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.device = device

    def fit(self, X: RatingsLike, y: object = None) -> Self:
        """Fit the factors to ratings, and discard those of an earlier fit.

        Parameters
        ----------
        X : sparse matrix, tuple of columns, or path
            Ratings. With the loss "bpr" the values may be missing.
        y : None
            Ignored.

        Returns
        -------
        HogwildRecommender
            The fitted estimator itself.

        Raises
        ------
        ParameterError
            If the strategy does not share memory.
        """
        ratings = open_ratings(X, unlabelled=self.loss == "bpr")
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        budget, held_out, training = Budget(self.max_iter), None, ratings
        if self.validation_fraction is not None:
            training, held_out = ratings.split(self.validation_fraction, self._seed)
            budget = Budget(self.max_iter, patience=self.n_iter_no_change)
        problem = self._problem(training, self.l2, None)
        schedule = starting_at(self.step, self.schedule, rule_named(problem.defaults.rule).usual_schedule)
        run = self._minimise(problem, schedule, budget, test=held_out)
        self._keep(run, problem, ratings)
        return self

    def partial_fit(self, X: RatingsLike, y: object = None) -> Self:
        """Make one epoch over these ratings, starting from the last factors. Users and items may be new."""
        if not hasattr(self, "model_"):
            return self.fit(X)
        ratings = open_ratings(
            X, known=(self.model_.users, self.model_.items), grow=True, unlabelled=self.loss == "bpr"
        )
        # A penalty that a fit has chosen is kept: a few more ratings cannot judge it.
        l2 = self.model_.training["l2"] if self.l2 == "auto" else self.l2
        problem = self._problem(ratings, l2, self.model_.mean)
        problem.bounds = _wider(self._bounds, problem.bounds)
        start = problem.grown(self._state, self.model_.users, self.model_.items, self._rule(problem))
        run = self._minimise(problem, Constant(self.step or PARTIAL_FIT_STEP), Budget(1), init=WarmStart(start))
        self._keep(run, problem, ratings, self._met)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the predicted rating of each pair, for ``(users, items)`` or an array of two columns."""
        users, items = _pairs(X)
        return self._model.predict(users, items)

    def recommend(self, user: object, n: int = 10, *, exclude_seen: bool = True) -> tuple[Array, Array]:
        """Return the ``n`` items with the highest scores for a user, best first, and their scores."""
        model = self._model
        number = int(model.users.numbers_of([user])[0])
        seen = self._met.get(number, np.empty(0, np.int64)) if exclude_seen else np.empty(0, np.int64)
        return model.recommend(user, n, without=model.items.names[seen])

    def similar_items(self, item: object, n: int = 10) -> tuple[Array, Array]:
        """Return the ``n`` items most similar to an item, and the cosines between the factors of both."""
        return self._model.similar_items(item, n)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> ModelProto:
        """Return the fitted model as an ONNX graph, and write it to ``path`` if a path is given.

        Its inputs ``user`` and ``item`` are names, int64 or strings as in the ratings, of shape [N]. Its output
        ``scores`` [N] is what :meth:`predict` returns. The export needs the extra ``onnx``.
        """
        return self._model.to_onnx(path)

    def score(self, X: RatingsLike, y: object = None) -> float:
        """Return a score where higher is better.

        For the squared loss it is minus the root mean squared error. For "bpr" it is the share of pairs in which the
        rated item scores above a random item, with ties as one half.
        """
        model = self._model
        ratings = open_ratings(X, known=(model.users, model.items), unlabelled=self.loss == "bpr")
        users, items, values = ratings.columns
        users = np.where(users < len(model.users), users, -1)
        items = np.where((items >= 0) & (items < len(model.items)), items, -1)
        if our_name(self.loss) == "squared":
            return -float(np.sqrt(np.mean((model.scores_of(users, items) - values) ** 2)))
        drawn = np.random.default_rng(self._seed).integers(0, len(model.items), len(items))
        first, other = model.scores_of(users, items), model.scores_of(users, drawn)
        return float(np.mean(np.where(first == other, 0.5, first > other)))

    @property
    def _model(self) -> RatingsModel:
        check_is_fitted(self, "model_")
        model: RatingsModel = self.model_
        return model

    def _problem(self, ratings: Ratings, l2: float | Literal["auto"] | None, mean: float | None) -> MatrixCompletion:
        return MatrixCompletion(
            ratings, self.rank, loss=self.loss, l2=l2, biases=self.biases, nonnegative=self.nonnegative, mean=mean,
            seed=self._seed,
        )  # fmt: skip

    def _rule(self, problem: MatrixCompletion) -> Rule:
        return rule_named(problem.defaults.rule if self.rule is None else self.rule)

    def _minimise(
        self, problem: MatrixCompletion, schedule: Schedule | str | float | None, budget: Budget, *,
        test: Ratings | None = None, init: WarmStart | None = None,
    ) -> Run:  # fmt: skip
        device = device_of(self.device, problem.ratings.n_rows * self.rank, chosen=self.strategy != "hogwild")
        workers = None if device == "cuda" else self.n_jobs
        strategy = strategies.named(self.strategy, workers)
        if not strategy.shares_memory:
            raise ParameterError("A recommender is fitted in one memory: use a strategy such as 'hogwild'.")
        measured = budget.patience is not None
        return minimise(
            problem,
            self._rule(problem),
            schedule,
            strategy,
            runtime_of(device),
            budget=budget,
            seed=self._seed,
            evaluate_every_epoch=measured,
            test=test,
            init=init,
        )

    def _keep(
        self, run: Run, problem: MatrixCompletion, ratings: Ratings, before: dict[int, Array] | None = None
    ) -> None:
        self.model_, self.n_iter_, self._state = run.model, int(run.history[-1]["epoch"]), run.state
        self.n_workers_ = workers_of(run)
        self._bounds = problem.bounds
        self._met = dict(before or {})
        users, items, _ = ratings.columns
        order = np.argsort(users, kind="stable")
        user_numbers, first = np.unique(users[order], return_index=True)
        for user, met in zip(user_numbers.tolist(), np.split(items[order], first[1:]), strict=True):
            self._met[user] = np.union1d(self._met[user], met) if user in self._met else np.unique(met)


def _pairs(X: object) -> tuple[Any, Any]:
    if isinstance(X, tuple) and len(X) in (2, 3):
        return X[0], X[1]
    array = np.asarray(X)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ParameterError("Pairs are (users, items), or an array of two columns.")
    return array[:, 0], array[:, 1]


def _wider(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])
