"""The contract of problems: sums of many small terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hogwild import rules, schedules
from hogwild.data.dataset import Chunk, Dataset, EpochPlan
from hogwild.errors import ParameterError
from hogwild.problems.label_encoding import LabelEncoding
from hogwild.rules.rule import Rule
from hogwild.schedules import Schedule, step_of, with_step

State = tuple[NDArray[Any], ...]
"""The parameters: arrays with one row per coordinate, its value first, then what the rule remembers about it."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a problem is minimised with where nothing else is asked for; None: what suits its size."""

    rule: str = "adagrad"
    schedule: str = "cosine"
    step: float | Literal["auto"] = "auto"  # with this rule: others need other steps
    epochs: int | None = None


class BoundKernel(Protocol):
    """Compiled code that descends along one chunk.

    One for workers that take turns also takes ``first`` and ``stride``, for the terms ``order[first::stride]``. Others
    may have a method ``walk``, with which a worker claims chunks of a whole epoch until none is left.
    """

    def __call__(self, chunk: Chunk, rates: NDArray[Any], state: State, sync: NDArray[Any]) -> float:
        """Descend along the terms of a chunk, in place; return their summed loss."""


class Problem(ABC):
    """A sum of many small terms. Terms are rows of a data set, or batches of samples; each is one update."""

    terms: ClassVar[Literal["rows", "batches"]]

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """What was asked, for records: plain values only."""

    @abstractmethod
    def complete(self, rule: Any, schedule: Any) -> tuple[Any, Any]:
        """The rule and the schedule as objects; what is None becomes what suits the problem."""

    @property
    def defaults(self) -> Defaults:
        """The rule, the schedule and the epochs to use where none are given."""
        return Defaults()

    @property
    def sizes(self) -> dict[str, int] | None:
        """How large it is, by names of its own, where rows and features do not say it."""
        return None

    def for_rule(self, rule: Any) -> Self:
        """The same problem in the form that suits a rule."""
        return self


class RowProblem(Problem):
    """A problem whose terms are rows; compiled kernels descend along them in place.

    What most problems have no use for has a default.
    """

    terms = "rows"
    labels: LabelEncoding | None = None  # how labels are encoded, where they are
    n_sums: ClassVar[int]  # how many sums :meth:`measure` returns

    # What it is made of

    @property
    @abstractmethod
    def data(self) -> Dataset:
        """The terms, their labels encoded as the kernels want them."""

    @abstractmethod
    def encoded(self, data: Dataset) -> Dataset:
        """Other data of the same kind, its labels encoded like those of :attr:`data`."""

    @abstractmethod
    def sample(self, rows: int, seed: int, narrow: bool = False) -> RowProblem:
        """The same problem on few rows in memory, for trials; a narrow one may leave out parameters that they lack."""

    def open_held_out(self, source: Any) -> Dataset | None:
        """Held-out data where that is not rows of the same features; None where it is."""
        return None

    @property
    def work(self) -> int:
        """Multiplications of one epoch."""
        return self.data.nonzeros

    def complete(self, rule: Rule | str | None, schedule: Schedule | str | float | None) -> tuple[Rule, Schedule]:
        """The rule and the schedule as objects; a schedule that is only named has the default step."""
        usual = self.defaults
        found = rules.named(usual.rule if rule is None else rule)
        planned = schedules.named(usual.schedule if schedule is None else schedule)
        if isinstance(schedule, str | None) and step_of(planned) == "auto" and found == rules.named(usual.rule):
            planned = with_step(planned, usual.step)
        return found, planned

    def typical_first_step(self, alpha: float) -> float | None:
        """The first step of the schedule "optimal" for a penalty of this strength; None where it has no meaning."""
        return None

    @property
    def penalty_strength(self) -> float:
        """The strength of the penalty that the schedule "optimal" goes by; 0: there is none."""
        return 0.0

    # Its parameters

    @abstractmethod
    def start(self, rule: Rule) -> State:
        """Fresh parameters for a rule."""

    @abstractmethod
    def penalty(self, state: State) -> float:
        """What the objective has besides the loss."""

    @abstractmethod
    def model(self, values: State, training: Mapping[str, Any]) -> Any:
        """The model that is made of trained parameters: something with ``save(path)``."""

    def to_training_space(self, state: State, rule: Rule) -> State:
        """Parameters of the model as those that are trained."""
        return state

    def from_training_space(self, state: State, rule: Rule) -> State:
        """Parameters that were trained as those of the model."""
        return state

    # Its kernels

    @abstractmethod
    def kernel(self, rule: Rule, access: str, workers: int, alone: bool | None = None) -> BoundKernel:
        """The compiled inner loop for a rule and a way of sharing; ``alone``: as if there were no other workers."""

    @abstractmethod
    def sync_buffer(self, access: str) -> NDArray[Any]:
        """The locks or the turn counter that a way of sharing needs."""

    @abstractmethod
    def measure(self, chunk: Chunk, state: State) -> NDArray[np.float64]:
        """Sums over a chunk from which :meth:`metrics` tells how good the parameters are."""

    @abstractmethod
    def evaluate_parts(
        self, whole: EpochPlan, board: NDArray[Any], tally: NDArray[Any], sums: NDArray[Any], state: State
    ) -> None:
        """Measure chunks of data in memory, which workers claim from a queue, until none is left."""

    @abstractmethod
    def metrics(self, sums: NDArray[np.float64]) -> dict[str, float]:
        """The mean "loss", and scores such as "accuracy" by their names, from sums over all chunks."""

    @property
    def counts_conflicts(self) -> bool:
        """Whether its kernel can count staleness, collisions and lost writes."""
        return False

    @property
    def updates_per_step(self) -> int:
        """How many updates in a row may take the same step; more than one where a schedule costs more than a term."""
        return 1

    def hot_replicas(self, rule: Rule, rows: int | str, workers: int) -> Any:
        """Replicas of the frequent coordinates for each worker, merged every ``rows``; None where there are none."""
        if isinstance(rows, int) and rows > 0:
            raise ParameterError(f"Workers have no buffers with {type(self).__name__}: leave out 'buffer'.")
        return None

    def always_contended(self, rule: Rule) -> bool:
        """Whether workers would always write to the same few places, because they cannot have replicas."""
        return False
