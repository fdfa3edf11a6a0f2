"""What training asks of data: sizes, labels, frequencies, and epochs made of chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hogwild.data.csr import Array, CSRRows

if TYPE_CHECKING:
    from hogwild.data.field_vocabulary import FieldVocabulary

Order = Callable[[Array, int, int], Array]
"""(row numbers, seed, number of the epoch) -> the same numbers, in another order."""

MOST_CLASSES = 10_000  # more distinct labels than this are numbers, not classes
BLOCK_ROWS = 64  # rows that are walked one after the other: long enough for the prefetcher, short enough to mix


def look_like_numbers(distinct: int, rows: int) -> bool:
    """Whether so many different whole numbers among so many labels are years, prices or ages rather than classes.

    >>> look_like_numbers(10, 1797), look_like_numbers(214, 442)
    (False, True)
    """
    return distinct > MOST_CLASSES or distinct > max(50, rows // 3)


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Rows and the order in which to visit (some of) them: one worker's work for some milliseconds."""

    rows: CSRRows
    order: Array  # uint32 or int64 row numbers within ``rows``


@dataclass(frozen=True, slots=True, eq=False)
class EpochPlan:
    """All chunks of an epoch at once: chunk ``c`` is ``order[starts[c]:starts[c + 1]]``."""

    rows: CSRRows
    order: Array
    starts: Array  # int64


class Epoch(Protocol):
    """One walk over a data set, cut into chunks that may be claimed in any order and from any thread."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Chunk: ...

    def done(self, number: int) -> None:
        """Say that this chunk will not be asked for again in this epoch: its memory may go."""

    def whole(self) -> EpochPlan | None:
        """All of it at once, where it is in memory."""


class Dataset(ABC):
    """Checked, labelled rows, in memory or on disk.

    How an epoch is cut into chunks depends on the data alone, never on time or on the number of workers, so that
    a run can be continued from ``(seed, epoch, chunk)``.
    """

    name: str  #      where it came from, for people
    n_rows: int
    n_features: int
    nonzeros: int
    base: int  #      what was subtracted from the indices of a text file: 0 or 1
    table: FieldVocabulary | None = None  # which field each column belongs to, where rows have fields
    rows: CSRRows | None = None  # all rows, where they are in memory
    order: Order | None = None  # the order in which epochs visit the rows, where it is not the usual one

    @property
    def bounded(self) -> bool:
        """Whether it is read from disk within a bound on memory."""
        return False

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A short digest that tells this data from other data."""

    @property
    @abstractmethod
    def room(self) -> int:
        """How many bytes a model may take besides the rows."""

    @abstractmethod
    def labels(self) -> Array:
        """All labels as float64, in stored order."""

    @abstractmethod
    def label_counts(self) -> tuple[Array, Array] | None:
        """The distinct labels, sorted, and how many rows have each; None where there are more than MOST_CLASSES.

        A part of a packed folder answers for the whole folder.
        """

    @abstractmethod
    def frequencies(self) -> Array:
        """In how many rows each feature is present, as int64."""

    @abstractmethod
    def epoch(self, seed: int, number: int) -> Epoch:
        """The chunks of one epoch in random order, each row once."""

    @abstractmethod
    def laid_out(self, seed: int, epochs: float) -> Dataset | None:
        """A copy that so many epochs of this seed are walked sooner in, row by row the same; None where there is none.

        It is for those epochs alone, and stored in another order.
        """

    @abstractmethod
    def at_once(self) -> Dataset | None:
        """The same rows, all of them at hand in whatever order they are visited; None where memory is too small."""

    @abstractmethod
    def in_order(self) -> Epoch:
        """All rows in stored order, for evaluation and prediction."""

    @abstractmethod
    def split(self, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
        """Set a random fraction of the rows aside: (the rest, the part set aside)."""

    @abstractmethod
    def with_labels(self, encode: Callable[[Array], Array]) -> Dataset:
        """The same rows, each chunk's labels passed through ``encode`` (float64 in)."""

    @abstractmethod
    def with_rows(self, change: Callable[[CSRRows], CSRRows]) -> Dataset:
        """The same data, its rows passed through ``change``, which leaves their number, order and labels alone."""
