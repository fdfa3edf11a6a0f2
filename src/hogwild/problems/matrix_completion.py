"""Matrix completion: prediction of ratings of items that users have not rated."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, Dataset, EpochPlan
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.ratings import Ids, Ratings, open_ratings
from hogwild.data.ratings.ratings import in_blocks, sides_for
from hogwild.data.sampling import RowSampling, Split, row_sampling
from hogwild.data.shuffle import gather_most
from hogwild.data.slices import ENTRIES, copied, in_slices
from hogwild.data.subsample import subsample
from hogwild.errors import ParameterError
from hogwild.kernels import matrix_factorisation_build
from hogwild.kernels.matrix_factorisation import LINE
from hogwild.kernels.sync_policies import new_sync
from hogwild.kernels.work_queue import new_queue, new_tally
from hogwild.keywords import advised
from hogwild.lazy import cached_property
from hogwild.losses import our_name
from hogwild.losses.residual import squared
from hogwild.models.ratings import RatingsModel
from hogwild.problems.model_memory import check_memory
from hogwild.problems.on_gpu import ProblemOnGPU
from hogwild.problems.problem import BoundKernel, Defaults, QueueKernel, RangeKernel, RowProblem, State, check_l2
from hogwild.problems.random_factors import aligned_table, random_factors
from hogwild.registry import flag, invalid_parameter, is_count, lookup, quoted_list
from hogwild.rules import named
from hogwild.rules.rule import Rule
from hogwild.rules.sgd import Momentum

# Number of factors that one vector instruction multiplies; a row of factors is padded to a multiple of it.
LANES = 8
# Bytes of factors that stay in a core's cache beside all other data.
CACHED = 2**18
SPREAD = 0.1  # Standard deviation of the factors at the start.
LOSSES = {"squared": "squared", "bpr": "bpr"}
# Step sizes for the squared error; that of momentum is the step of a gradient in the limit.
STEPS = {"sgd": 0.03, "momentum": 0.1, "adagrad": 0.1, "ftrl": 0.2, "adam": 0.01}


@advised(
    rank="Write rank=32.",
    penalty="Write l2=0.05.",
    epochs="minimise takes it: hogwild.minimise(problem, budget=3).",
    step="minimise takes it: hogwild.minimise(problem, schedule=0.1).",
    workers="minimise takes them: hogwild.minimise(problem, strategy=hogwild.Hogwild(workers=4)).",
    rule="minimise takes it: hogwild.minimise(problem, rule='adagrad').",
    seed="Write seed=0.",
    test="minimise takes it: hogwild.minimise(problem, test=data).",
)
class MatrixCompletion(RowProblem):
    r"""Completion of ratings of items by users, with factors of low rank and biases.

    The objective over factors p, q and biases b, with mean rating :math:`\mu` and n ratings r, is

    .. math:: \frac1n \sum_{(u, i)} \frac12 (\mu + b_u + b_i + p_u \cdot q_i - r_{ui})^2
              + \frac{\lambda_2}2 (\|p_u\|^2 + \|q_i\|^2 + b_u^2 + b_i^2)

    Each rating applies the penalty to its user and its item. So the penalty of a user or an item grows with its number
    of ratings. With ``loss="bpr"``, only the pairs of users and items count, not the ratings. The objective is then
    that of Bayesian personalised ranking (Rendle et al. 2009), which is the mean of
    :math:`-\log \sigma(s_{ui} - s_{uj})` over items j that are drawn during training.

    Parameters
    ----------
    source : path, sparse matrix, tuple or Ratings
        A file of ratings, a sparse matrix, columns ``(users, items, ratings)``, or
        :class:`hogwild.data.ratings.Ratings`.
    rank : int, default 32
        Number of factors of a user or an item.
    loss : {"squared", "bpr"}, default "squared"
        Squared error of ratings, or Bayesian personalised ranking.
    l2 : float or "auto", optional
        Strength of the penalty. Left out, it is 0.07 for "squared" and 0.01 for "bpr"; 0 is no penalty. "auto" chooses
        it on held-out ratings, along a path of strengths.
    biases : bool, default True
        Whether users and items have biases.
    nonnegative : bool, default False
        Whether each step sets negative factors to zero; biases may have any sign.
    mean : float, optional
        Mean rating; by default that of the data.
    seed : int, default 0
        Seed of the random factors at the start.
    sampling : {"split", "replacement"} or Weighted, default "split"
        Choice of the ratings of an epoch: each rating once ("split"), or as many draws with replacement, all ratings
        alike ("replacement") or each with a probability of its own (:class:`hogwild.Weighted`). Draws visit ratings in
        no order that suits the cache.

    Raises
    ------
    ParameterError
        If ``rank``, ``loss`` or ``l2`` is invalid, or if the sampling does not suit the ratings.

    Examples
    --------
    >>> problem = MatrixCompletion((["ann", "bob", "ann"], [7, 7, 9], [5, 3, 4]), rank=2)
    >>> problem.ratings.n_users, problem.ratings.n_items, problem.mean
    (2, 2, 4.0)

    References
    ----------
    S. Rendle, C. Freudenthaler, Z. Gantner and L. Schmidt-Thieme, "BPR: Bayesian Personalized Ranking from Implicit
    Feedback", UAI 2009.
    """

    n_sums = 4
    # Number of consecutive updates with the same step size, as a cosine takes longer than a rating.
    updates_per_step = 64
    defaults = Defaults("sgd", 0.03, 20)
    # Strong penalties bring all factors to zero, from where no step leads away.
    warm_starts = False

    def __init__(
        self,
        source: object,
        rank: int = 32,
        *,
        loss: str = "squared",
        l2: float | Literal["auto"] | None = None,
        biases: bool = True,
        nonnegative: bool = False,
        mean: float | None = None,
        seed: int = 0,
        sampling: str | RowSampling = "split",
    ) -> None:
        if not is_count(rank):
            raise invalid_parameter("rank", "a positive integer", rank)
        self.rank, self.seed = int(rank), int(seed)
        given: Any = loss  # a user may give anything
        if not isinstance(given, str):
            raise invalid_parameter("loss", "one of " + quoted_list(LOSSES), given)
        self.loss: str = lookup("loss", our_name(loss), LOSSES)
        check_l2("l2", l2)
        self._auto = l2 == "auto"
        self.l2 = float(l2) if isinstance(l2, Real) else DEFAULT_L2[self.loss]
        self.biases, self.nonnegative = flag("biases", biases), flag("nonnegative", nonnegative)
        self.sampling = row_sampling(sampling)
        self.ratings: Ratings = open_ratings(source)
        self.sampling.chances(self.ratings.data)  # Weights that do not fit are refused before anything is computed.
        self._mean = mean
        self._ordered = True  # whether ratings are ordered for the caches of processors
        self.wide: int = -(-self.rank // LANES) * LANES
        # A row has the factors and the bias, padded to whole cache lines.
        self.room: int = -(-(self.wide + 1) // LINE) * LINE

    @cached_property
    def data(self) -> InMemoryDataset:
        """The ratings in single precision, in blocks where the factors exceed a core's cache.

        Ratings that are drawn stay in their order, to which the weights of draws belong.
        """
        data = self._single_precision
        if self.sampling != Split() or not self._ordered:
            return data
        sides = sides_for(data.n_rows, 4 * self.room * data.n_features, CACHED)
        return data if sides == 1 else in_blocks(data, sides, self.seed)

    @cached_property
    def _single_precision(self) -> InMemoryDataset:
        data = self.ratings.data.with_labels(_single)
        if self._ordered or data.ids is None or self.sampling != Split():
            return data
        return InMemoryDataset(gather_most(data.rows, data.ids), shuffled=data.shuffled, name=data.name)

    @cached_property
    def mean(self) -> float:
        """The mean rating, to which biases and factors add; 0 for "bpr"."""
        if self._mean is not None:
            return float(self._mean)
        return float(self.data.labels().mean()) if self.loss == "squared" else 0.0

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest rating, to which predictions are clipped."""
        labels = self.data.labels()
        return float(labels.min()), float(labels.max())

    @property
    def work(self) -> int:
        """The number of multiplications of an epoch, which are products of two rows of factors."""
        return self.data.nonzeros * self.wide

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of ratings, users and items."""
        return {"ratings": self.data.n_rows, "users": self.ratings.n_users, "items": self.ratings.n_items}

    def open_held_out(self, source: object) -> InMemoryDataset:
        """Return held-out ratings, whose users and items are identified by their names in the training data."""
        return open_ratings(source, known=(self.ratings.users, self.ratings.items)).data

    def encoded(self, data: Dataset) -> Dataset:
        """Return other ratings of the same users and items, in single precision.

        Raises
        ------
        ParameterError
            If the ratings have other numbers of users and items.
        """
        if data.n_features != self.ratings.data.n_features:
            raise ParameterError("Held-out ratings must be numbered as those of the problem: give their names.")
        return data.with_labels(_single)

    def start(self, rule: Rule) -> State:
        """Return small random factors that depend only on the seed, biases of zero, and initial state of the rule.

        Raises
        ------
        ParameterError
            If the rule is for linear models.
        """
        if rule.single_worker or rule.step_size != "scheduled":
            raise ParameterError(f"{type(rule).__name__} is for linear models: use the rule 'sgd' or 'adagrad'.")
        row = np.array(rule.initial, np.float32)
        check_memory(self.data, self.room, row.nbytes)
        entities = self.data.n_features
        table = aligned_table(entities * self.room, row)
        values = table[:, 0].reshape(entities, self.room)
        n_users, n_items = self.ratings.n_users, self.ratings.n_items
        # Users and items have separate generators, so that further users or items do not change the factors of the
        # others.
        for number, (first, count) in enumerate(((0, n_users), (n_users, n_items))):
            drawn, among = random_factors([self.seed, number], count, self.rank), values[first : first + count]
            in_slices(count, partial(self._add_factors, among, drawn), max(1, ENTRIES // self.room))
        return (table,)

    def _add_factors(self, values: Array, drawn: Array, part: slice) -> None:
        values[part, : self.rank] += SPREAD * (np.abs(drawn[part]) if self.nonnegative else drawn[part])

    def grown(self, state: State, users: Ids, items: Ids, rule: Rule) -> State:
        """Return the trained parameters of these users and items, extended by fresh ones for new users and items.

        Raises
        ------
        ParameterError
            If the parameters were trained with another rank or rule.
        """
        (table,) = self.start(rule)
        numbers, room = table.shape[1], self.room
        if state[0].shape != ((len(users) + len(items) + 1) * room, numbers):
            raise ParameterError("These parameters were trained with another rank or rule: fit anew.")
        now, before = (part.T.reshape(numbers, -1, room) for part in (table, state[0]))
        now[:, : len(users)] = before[:, : len(users)]
        first = self.ratings.n_users
        now[:, first : first + len(items)] = before[:, len(users) : -1]
        return (table,)

    def sync_buffer(self, access: str) -> Array:
        """Return a lock for each user and each item, or the turns of workers."""
        return new_sync(access, self.data.n_features)

    def kernel(self, rule: Rule, access: str, workers: int, alone: bool | None = None) -> BoundKernel:
        """Return the compiled inner loop for a rule and an access policy."""
        constants = tuple(np.float32(c) for c in rule.constants)
        wide, room, l2, numbers = np.uint64(self.wide), np.uint64(self.room), np.float32(self.l2), len(rule.initial)
        mean, turns = np.float32(self.mean), access == "turns"
        lowest = np.float32(0 if self.nonnegative else -np.inf)
        if self.loss == "bpr":
            kernel = matrix_factorisation_build.descend_pairs(access, rule.step, numbers)

            def rest(state: State, sync: Array) -> tuple[Any, ...]:
                bits = state[0].view(np.uint32)
                return *state, bits, wide, room, self.biases, l2, lowest, constants, *self._rated_items, sync

        else:
            kernel = matrix_factorisation_build.descend(access, rule.step, numbers, squared)

            def rest(state: State, sync: Array) -> tuple[Any, ...]:
                return *state, wide, room, mean, self.biases, l2, lowest, constants, sync

        return RangeKernel(kernel, rest, turns=True) if turns else QueueKernel(kernel, rest)

    def in_any_order(self) -> MatrixCompletion:
        """Return the same problem on ratings in no particular order, the same one whenever it is asked for."""
        return self._in_any_order if self._ordered else self

    @cached_property
    def _in_any_order(self) -> MatrixCompletion:
        other = copy.copy(self)
        other._ordered = False
        for name in ("data", "_single_precision"):
            other.__dict__.pop(name, None)
        return other

    def usual_step(self, rule: Rule) -> float | Literal["auto"]:
        """Return the step size with a rule where the user gives none.

        Trials would not find it: a few thousand ratings show biases, and nothing of factors.
        """
        if self.loss == "bpr":
            return super().usual_step(rule)
        if isinstance(rule, Momentum):
            return STEPS["momentum"] * (1 - rule.beta)
        return next((STEPS[name] for name in STEPS if rule == named(name)), "auto")

    def on_gpu(self, rule: Rule, in_step: bool = False) -> ProblemOnGPU | None:
        """Return the kernels of this problem and a rule on a GPU; None where there are none."""
        if in_step or self.data.n_features >= 2**31:
            return None
        from hogwild.kernels import bpr_cuda, matrix_factorisation_cuda
        from hogwild.problems.matrix_completion_on_gpu import FactorsOnGPU, TableShape

        kernels = bpr_cuda if self.loss == "bpr" else matrix_factorisation_cuda
        mean = () if self.loss == "bpr" else (np.float32(self.mean),)
        items = self._rated_items if self.loss == "bpr" else ()
        constants = tuple(np.float32(c) for c in rule.constants)
        fewest = max(1, min(self.ratings.n_users, self.ratings.n_items))
        # Compilers for GPUs may assume that no number is infinite.
        lowest = np.float32(0 if self.nonnegative else np.finfo(np.float32).min)
        return FactorsOnGPU(
            (kernels.descend, kernels.evaluate), squared, rule,
            TableShape(self.data.n_features, fewest, self.wide, self.room), self.data.n_rows, self.biases,
            (*mean, np.float32(self.l2), lowest, constants, *items),
            items or (*mean, *self.bounds), self.l2, lambda: self._penalised_shares,
        )  # fmt: skip

    def measure(self, chunk: Chunk, state: State) -> Array:
        """Return sums over a chunk: loss, weight, squared error or correctly ranked pairs, ratings."""
        sums, starts = np.zeros((1, self.n_sums)), np.array([0, len(chunk.order)])
        self.evaluate_parts(EpochPlan(chunk.rows, chunk.order, starts), new_queue(), new_tally(), sums, state)
        measured: Array = sums[0]
        return measured

    def evaluate_parts(self, whole: EpochPlan, queue: Array, tally: Array, sums: Array, state: State) -> None:
        """Evaluate parts of an epoch until none is left to claim, and write one row of ``sums`` for each."""
        # The first column alone has the same type for the compiler with any rule.
        given = state[0][:, :1], np.uint64(self.wide), np.uint64(self.room)
        if self.loss == "bpr":
            kernel, rest = matrix_factorisation_build.evaluate_pairs(), (*given, *self._rated_items)
        else:
            kernel, rest = (
                matrix_factorisation_build.evaluate(squared),
                (*given, np.float32(self.mean), *self.bounds),
            )
        kernel(queue, whole.starts, tally, whole.rows.arrays, whole.order, rest, sums)

    def metrics(self, sums: Array) -> dict[str, float]:
        """Return the mean loss, and the root mean squared error or the fraction of correctly ranked pairs ("auc").

        For "bpr" both are means over the terms for which another item was found.
        """
        total, weight, score, rows = (float(s) for s in sums)
        share = score / weight if weight else 0.0
        if self.loss == "bpr":
            return {"loss": total / weight if weight else 0.0, "auc": share}
        return {"loss": total / rows, "rmse": share**0.5}

    def penalty(self, state: State) -> float:
        """Return the penalty, which the objective adds to the mean loss.

        For "bpr", as if items were drawn uniformly.
        """
        if not self.l2:
            return 0.0
        values, shares = state[0][:, 0].reshape(-1, self.room), self._penalised_shares

        def weighed(part: slice) -> float:
            squares = np.einsum("ij,ij->i", values[part], values[part])
            return float((squares * shares[part]).sum())

        return self.l2 / 2 * sum(in_slices(len(values), weighed, max(1, ENTRIES // self.room)))

    @cached_property
    def _penalised_shares(self) -> Array:
        """The share of the terms that penalise each user and item."""
        shares = self.data.frequencies() / self.data.n_rows
        if self.loss == "bpr":
            shares[self.ratings.n_users : -1] += 1 / max(1, self.ratings.n_items)
        return shares

    def sample(self, rows: int, seed: int, narrow: bool = False) -> MatrixCompletion:
        """Return the same problem on at most ``rows`` ratings, for trials."""
        few = self.ratings.with_data(lambda _: subsample(self.sampling.for_trials(self.data), rows, seed))
        other = MatrixCompletion(
            few, self.rank, loss=self.loss, l2=self.l2, biases=self.biases, nonnegative=self.nonnegative,
            mean=self.mean, seed=self.seed,
        )  # fmt: skip
        other.bounds = self.bounds
        return other

    @property
    def searches_penalty(self) -> bool:
        """Whether the strength of the penalty is to be chosen on held-out ratings."""
        return self._auto

    @property
    def penalties(self) -> dict[str, float]:
        """The strength of the penalty."""
        return {"l2": self.l2}

    def with_penalty(self, times: float) -> MatrixCompletion:
        """Return the same problem with ``times`` the default penalty of the loss."""
        other = copy.copy(self)
        other._auto, other.l2 = False, times * DEFAULT_L2[self.loss]
        other.__dict__.pop("_in_any_order", None)  # which has the penalty of this problem
        return other

    def split(self, fraction: float, seed: int) -> tuple[MatrixCompletion, Ratings]:
        """Return the same problem on the other ratings, and the held-out ``fraction`` of the ratings."""
        rest, held_out = self.ratings.split(fraction, seed)
        return MatrixCompletion(
            rest, self.rank, loss=self.loss, l2=self.l2, biases=self.biases, nonnegative=self.nonnegative,
            mean=self._mean, seed=self.seed,
        ), held_out  # fmt: skip

    def model(self, values: State, training: Mapping[str, Any]) -> RatingsModel:
        """Return the model of a run: factors and biases, and the names of users and items."""
        rows, users = values[0][:, 0].reshape(-1, self.room), self.ratings.n_users
        low, high = self.bounds if self.loss == "squared" else (-np.inf, np.inf)
        return RatingsModel(
            copied(rows[:users, : self.rank]), copied(rows[users:-1, : self.rank]), rows[:users, self.wide].copy(),
            rows[users:-1, self.wide].copy(), self.mean, (low, high), self.ratings.users, self.ratings.items,
            self.loss, {}, training,
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """Return the problem's parameters, for records."""
        return {
            "problem": "matrix-completion",
            "loss": self.loss,
            "rank": self.rank,
            "l2": self.l2,
            "biases": self.biases,
            "nonnegative": self.nonnegative,
            "mean": self.mean,
            "first_factors": self.seed,
            "users": self.ratings.n_users,
            "items": self.ratings.n_items,
            "rows": self.data.n_rows,
            "data": self.data.fingerprint,
            **self.describe_sampling(),
        }

    @cached_property
    def _rated_items(self) -> tuple[Any, ...]:
        """The first position of each user's items, the items by user, and the numbers of users and items."""
        users, items, _ = self.ratings.columns
        known = (users < self.ratings.n_users) & (items < self.ratings.n_items)
        pairs = np.sort(users[known] * (self.ratings.n_items + 1) + items[known])
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # np.unique would take twenty times as long.
        rating_users, rating_items = np.divmod(pairs, self.ratings.n_items + 1)
        starts = np.searchsorted(rating_users, np.arange(self.ratings.n_users + 1))
        numbers = (rating_items + self.ratings.n_users).astype(np.uint32)
        return starts, numbers, np.uint64(self.ratings.n_users), np.uint64(self.ratings.n_items)


DEFAULT_L2 = {"squared": 0.07, "bpr": 0.01}


def _single(labels: Array) -> Array:
    return labels.astype(np.float32)
