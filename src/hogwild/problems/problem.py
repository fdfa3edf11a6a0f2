"""Interface of problems, whose objectives are sums of many terms, and their compiled inner loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hogwild import rules, schedules
from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, Dataset, EpochPlan
from hogwild.data.sampling import RowSampling, Split
from hogwild.data.subsample import subsample
from hogwild.errors import ParameterError
from hogwild.kernels.work_queue import LOSS, new_queue, new_tally
from hogwild.losses import Loss
from hogwild.problems.label_encoding import LabelEncoding
from hogwild.problems.on_gpu import ProblemOnGPU
from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Rule
from hogwild.schedules import Schedule, step_of, with_step

State = tuple[NDArray[Any], ...]
"""Parameters: arrays with one row per coordinate, which holds its value, followed by the rule's state."""

# Most rows and most entries whose values are sampled for the default penalty.
SAMPLED_ROWS, SAMPLED_ENTRIES = 10_000, 2**22


@dataclass(frozen=True, slots=True)
class Defaults:
    """Rule, step size and epochs of a problem where the user gives none; the rule has a usual schedule.

    None depends on the problem's size.
    """

    rule: str = "adagrad"
    # Step size for the default rule; other rules need other step sizes.
    step: float | Literal["auto"] = "auto"
    epochs: int | None = None


class Model(Protocol):
    """Result of a run, which can be saved; its other methods depend on the problem."""

    def save(self, path: str | Path) -> None:
        """Write the model to a file."""


class BoundKernel(Protocol):
    """Compiled code that descends along one chunk.

    A kernel for workers that take turns also accepts ``first`` and ``stride``, for the terms ``order[first::stride]``.
    Other kernels may have a method ``descend``, by which a worker claims chunks of a whole epoch until none is left.
    """

    def __call__(self, chunk: Chunk, rates: NDArray[Any], state: State, sync: NDArray[Any]) -> float:
        """Descend along the terms of a chunk, in place; return their summed loss."""


class Replicas(Protocol):
    """Replicas of frequent coordinates, which workers step privately and merge with the shared values at intervals."""

    @property
    def kernel(self) -> Any:
        """The compiled loop of a worker."""

    @property
    def workers(self) -> int:
        """The number of workers."""

    @property
    def numbers(self) -> Array | None:
        """The rank of each feature; None where rows with such numbers cannot be used."""

    def describe(self) -> dict[str, Any]:
        """Return the chosen layout, for records."""

    def renumber(self) -> None:
        """Expect rows whose features have these numbers from now on. Merges of replicas are then contiguous."""

    def renumbered(self, values: State) -> State:
        """Return parameters for rows whose features have these numbers."""

    def compile(self, nothing: Chunk, state: State) -> None:
        """Compile the loop and the merge, by a chunk without terms."""

    def gather(self, state: State, rate: float) -> None:
        """Copy the parameters to the shared values and to every worker's replica; ``rate`` is the step size."""

    def take(self, state: State) -> None:
        """Copy the parameters to the shared values alone."""

    def settle(self, worker: int, state: State) -> None:
        """Merge the remaining changes of a worker's replica."""

    def scatter(self, state: State) -> None:
        """Copy the shared values back to the parameters, after all workers have settled."""

    def descent(self, worker: int) -> QueueKernel:
        """Return the bound loop of one worker."""


@dataclass(frozen=True, slots=True, eq=False)
class TypicalTerm:
    """Loss of a typical row as a function of its score, and the mean squares of the values of each feature."""

    curvature: float  # largest second derivative
    squared_slope: float  # squared derivative where all parameters are zero
    squares: Array


class Problem(ABC):
    """Objective that is a sum of many terms; a term is a row of a data set or a batch of samples, and one update."""

    terms: ClassVar[Literal["rows", "batches"]]

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """Return the problem's parameters as plain values, for records."""

    @abstractmethod
    def complete(self, rule: Any, schedule: Any) -> tuple[Any, Any]:
        """Return the rule and the schedule as objects; the problem chooses those that are None."""

    @property
    def defaults(self) -> Defaults:
        """The rule, the step size and the epochs where the user gives none."""
        return Defaults()

    @property
    def sizes(self) -> dict[str, int] | None:
        """The sizes of the problem by name, where rows and features do not describe it."""
        return None

    @property
    def searches_penalty(self) -> bool:
        """Whether the strength of the penalties is to be chosen on held-out rows (``l2="auto"``)."""
        return False

    @property
    def needs_shared_memory(self) -> bool:
        """Whether workers must share one memory, because they cannot send each other messages instead."""
        return False

    def for_rule(self, rule: Any) -> Self:
        """Return the problem in the form that suits a rule."""
        return self


class RowProblem(Problem):
    """Problem whose terms are rows, along which compiled kernels descend in place.

    Members that most problems do not need have defaults.
    """

    terms = "rows"
    labels: LabelEncoding | None = None  # Encoding of labels, if there are labels.
    n_sums: ClassVar[int]  # Number of sums that :meth:`measure` returns.
    sampling: RowSampling = Split()  # Choice of the terms of an epoch.

    # Data

    @property
    @abstractmethod
    def data(self) -> Dataset:
        """The terms, with labels encoded for the kernels."""

    @property
    def training(self) -> Dataset:
        """The terms, in epochs that draw them as ``sampling`` says, and with the weights that this takes."""
        return self.sampling.rows(self.data)

    def describe_sampling(self) -> dict[str, Any]:
        """Return the sampling for records; nothing for a permutation, as in records of earlier versions."""
        return {} if self.sampling == Split() else {"sampling": repr(self.sampling)}

    @abstractmethod
    def encoded(self, data: Dataset) -> Dataset:
        """Return other data of the same kind, with labels encoded like those of ``data``."""

    @abstractmethod
    def sample(self, rows: int, seed: int, narrow: bool = False) -> RowProblem:
        """Return the same problem on at most ``rows`` rows in memory, for trials.

        A ``narrow`` sample may drop parameters that none of its rows has.
        """

    def open_held_out(self, source: object) -> Dataset | None:
        """Open held-out data that is not rows of the same features; return None where it is."""
        return None

    def touch_rates(self) -> tuple[Array, ...] | None:
        """Return the share of the terms that change a coordinate, for the coordinates of each part of the state.

        None where it is not known.
        """
        return None

    def typical_term(self) -> TypicalTerm | None:
        """Return what the progress of workers along the features is computed from; None if it is not known."""
        return None

    @property
    def has_sparse_terms(self) -> bool:
        """Whether a term changes the coordinates of the features of its row, and the second part of the state.

        The coordinates of a feature are as many as the second part has, one after the other.
        """
        return False

    @property
    def steps_each_coordinate_once(self) -> bool:
        """Whether all that a term changes are coordinates, each by one step of the rule."""
        return False

    def renumbered(self, seed: int, epochs: float) -> tuple[RowProblem, Array] | None:
        """Return the problem on a copy of its rows in which features are numbered by frequency, and their order.

        The rows of the copy are in the order in which the epochs of this seed visit them. None where that does not pay.
        """
        return None

    @property
    def work(self) -> int:
        """The number of multiplications of one epoch."""
        return self.data.nonzeros

    def complete(self, rule: Rule | str | None, schedule: Schedule | str | float | None) -> tuple[Rule, Schedule]:
        """Return the rule and the schedule as objects; a schedule given only by name has the default step size."""
        usual = self.defaults
        found = rules.named(usual.rule if rule is None else rule)
        if found.has_duals and schedule is None:
            return found, schedules.Constant(1.0)
        planned = schedules.named(found.usual_schedule if schedule is None else schedule)
        if found.has_duals and step_of(planned) == "auto":
            return found, with_step(planned, 1.0)
        if isinstance(schedule, str | None) and step_of(planned) == "auto":
            planned = with_step(planned, self.usual_step(found))
        return found, planned

    def usual_step(self, rule: Rule) -> float | Literal["auto"]:
        """Return the step size with a rule where the user gives none; "auto" is chosen by trials."""
        return self.defaults.step if rule == rules.named(self.defaults.rule) else "auto"

    def typical_first_step(self, alpha: float) -> float | None:
        """Return the first step size of the schedule "optimal" for a penalty of this strength.

        None where it has no meaning.
        """
        return None

    @property
    def penalty_strength(self) -> float:
        """The strength of the penalty that the schedule "optimal" uses; 0 if there is none."""
        return 0.0

    @property
    def suits_duals(self) -> bool:
        """Whether dual coordinate ascent can minimise the objective."""
        return False

    @property
    def prefers_duals(self) -> bool:
        """Whether dual coordinate ascent is the fastest rule."""
        return False

    # Penalties

    warm_starts: ClassVar[bool] = True  # Whether the parameters for one penalty are a good start for a weaker one.

    @property
    def penalties(self) -> Mapping[str, float]:
        """The strengths of the penalties by name."""
        return {}

    @property
    def penalises_all_weights(self) -> bool:
        """Whether the objective contains the squares of the whole first part of the parameters."""
        return False

    def with_penalty(self, times: float) -> Self:
        """Return the same problem with ``times`` its default penalties."""
        raise ParameterError(f"{type(self).__name__} has no default penalties: give them as numbers.")

    def split(self, fraction: float, seed: int) -> tuple[Self, object]:
        """Return the same problem on the other rows, and the held-out ``fraction``, as ``minimise(test=)`` takes it."""
        raise ParameterError(f"{type(self).__name__} cannot hold out rows of its own: give test data.")

    # Parameters

    @abstractmethod
    def start(self, rule: Rule) -> State:
        """Return initial parameters for a rule."""

    @abstractmethod
    def penalty(self, state: State) -> float:
        """Return the penalty, which the objective adds to the mean loss."""

    @abstractmethod
    def model(self, values: State, training: Mapping[str, Any]) -> Model:
        """Return the model with the trained parameters."""

    def to_training_space(self, state: State, rule: Rule) -> State:
        """Convert the model's parameters to those that are trained."""
        return state

    def from_training_space(self, state: State, rule: Rule) -> State:
        """Convert the trained parameters to those of the model."""
        return state

    # Kernels

    @abstractmethod
    def kernel(self, rule: Rule, access: str, workers: int, alone: bool | None = None) -> BoundKernel:
        """Return the compiled inner loop for a rule and an access policy; if ``alone``, there are no other workers."""

    def in_any_order(self) -> RowProblem:
        """Return the same problem with rows in no order that suits the caches of processors, for a GPU."""
        return self

    def on_gpu(self, rule: Rule, in_step: bool = False) -> ProblemOnGPU | None:
        """Return the kernels of this problem and a rule on a GPU; None where there are none.

        With ``in_step``, the rows in flight read the same parameters and take one step together, and the same seed
        gives the same bits.
        """
        return None

    @abstractmethod
    def sync_buffer(self, access: str) -> NDArray[Any]:
        """Return the locks or the turns of an access policy."""

    @abstractmethod
    def measure(self, chunk: Chunk, state: State) -> NDArray[np.float64]:
        """Return sums over a chunk, from which :meth:`metrics` computes the quality of the parameters."""

    @abstractmethod
    def evaluate_parts(
        self, whole: EpochPlan, queue: NDArray[Any], tally: NDArray[Any], sums: NDArray[Any], state: State
    ) -> None:
        """Evaluate chunks of data in memory, which workers claim from a queue, until none is left."""

    @abstractmethod
    def metrics(self, sums: NDArray[np.float64]) -> dict[str, float]:
        """Return the mean "loss", and scores such as "accuracy" by name, from sums over all chunks."""

    @property
    def counts_conflicts(self) -> bool:
        """Whether the kernel can count staleness, conflicts and lost writes."""
        return False

    @property
    def updates_per_step(self) -> int:
        """The number of consecutive updates with one step size; more than 1 where a schedule costs more than a term."""
        return 1

    def hot_replicas(self, rule: Rule, rows: int | str, workers: int) -> Replicas | None:
        """Return replicas of the hot coordinates for each worker, merged every ``rows`` rows.

        None where there are none.

        Raises
        ------
        ParameterError
            If ``rows`` is positive and the problem has no replicas.
        """
        if isinstance(rows, int) and rows > 0:
            raise ParameterError(f"Workers have no buffers with {type(self).__name__}: leave out 'buffer'.")
        return None

    def max_workers(self, rule: Rule, workers: int) -> int:
        """Return the number of workers, of at most ``workers``, above which they would delay each other."""
        return workers


def check_l2(name: str, value: object) -> None:
    """Raise ParameterError unless the strength of an L2 penalty is a number of at least 0, "auto" or None."""
    if not (value is None or value == "auto" or is_strength(value)):
        raise invalid_parameter(name, "a number of at least 0, or 'auto'", value)


def default_l2(data: Dataset, loss: Loss) -> float:
    """Return the strength of the L2 penalty on weights where none is given.

    For n rows, ``l2 = 1 / (n d^2)`` is a Gaussian prior of standard deviation d on each weight. The score of a row of
    length r then has the standard deviation r d. Here d is 1, or more where values are small. It is the reciprocal of
    the root mean square of the values that are not 0, so that a feature changes a score by about 1, but at most what
    gives scores the standard deviation that the loss allows for. d is never below 1, because a few columns of large
    values would impose a strong penalty on all others.

    The values are those of a sample of at most 10,000 rows, the same each time.

    >>> from hogwild.data import as_dataset
    >>> from hogwild.losses import named
    >>> rows = as_dataset((np.full((50, 100), 0.1), np.arange(50) % 2))
    >>> 50 * default_l2(rows, named("logistic")), 50 * default_l2(rows, named("hinge"))
    (0.0625, 1.0)
    """
    n_rows = max(1, data.n_rows)
    if not data.nonzeros:
        return 1 / n_rows
    rows = subsample(data, min(SAMPLED_ROWS, max(1, SAMPLED_ENTRIES * n_rows // data.nonzeros))).rows
    binary = rows.layout == "binary"
    values = np.ones(rows.nonzeros) if binary else rows.values[rows.indptr[0] : rows.indptr[-1]]
    total, entries = float(np.square(values, dtype=np.float64).sum()), float(np.count_nonzero(values))
    if not entries:
        return 1 / n_rows
    # The larger of the mean square of a value and the mean squared length of a row relative to the scores.
    square = total / min(entries, loss.score_scale**2 * len(rows))
    # Rounded, because the order of rows affects the last digits of a sum.
    return min(1.0, float(f"{square:.3g}")) / n_rows


def is_strength(value: object) -> bool:
    """Return whether a value is a finite number of at least 0."""
    return not isinstance(value, bool) and isinstance(value, Real) and 0 <= float(value) < float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class QueueKernel:
    """Compiled loop that claims parts of chunks itself."""

    kernel: Any
    # (state, sync) -> the arguments of the kernel after the data.
    rest: Callable[[State, Array], tuple[Any, ...]]

    def __call__(self, chunk: Chunk, rates: Array, state: State, sync: Array) -> float:
        """Descend along one chunk; return its summed loss."""
        tally = new_tally()
        starts = np.array([0, len(chunk.order)])
        self.kernel(new_queue(), starts, tally, chunk.rows.arrays, chunk.order, rates, self.rest(state, sync))
        return float(tally[LOSS])

    def c_function(
        self, data: tuple[Array, ...], order: Array, rates: Array, state: State, sync: Array
    ) -> tuple[Array, int]:
        """Return the record of these arguments, and the address of the C function that descends along its terms."""
        found: tuple[Array, int] = self.kernel.c_function(data, order, rates, self.rest(state, sync))
        return found

    def descend(self, whole: EpochPlan, queue: Array, tally: Array, rates: Array, state: State, sync: Array) -> None:
        """Descend along parts of an epoch until none is left to claim."""
        self.kernel(queue, whole.starts, tally, whole.rows.arrays, whole.order, rates, self.rest(state, sync))


@dataclass(frozen=True, slots=True, eq=False)
class RangeKernel:
    """Compiled loop over given terms."""

    kernel: Any
    rest: Callable[[State, Array], tuple[Any, ...]]
    turns: bool  # Whether the kernel can take every n-th term.

    def __call__(self, chunk: Chunk, rates: Array, state: State, sync: Array, first: int = 0, stride: int = 1) -> float:
        """Descend along the terms ``first::stride`` of a chunk; return their summed loss."""
        turns = (first, stride) if self.turns else ()
        return float(self.kernel(*chunk.rows.arrays, chunk.order, *turns, rates, *self.rest(state, sync)))
