"""The interface between training and data: sizes, labels, feature frequencies, and epochs that consist of chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hogwild.data.csr import Array, CSRRows

if TYPE_CHECKING:
    from hogwild.data.chunks import RowDraws
    from hogwild.data.field_vocabulary import FieldVocabulary
    from hogwild.data.present_columns import PresentColumns
    from hogwild.data.random_order import RandomOrder
    from hogwild.data.tables.table_encoding import TableEncoding

Order = Callable[[Array, int, int], Array]
"""Order of an epoch: (row numbers, seed, number of the epoch) -> as many row numbers, in the order of the visit."""

# Largest number of distinct labels that count as classes. Labels with more distinct values are quantities.
MOST_CLASSES = 10_000
# Rows per block, visited one after the other. A block is long enough for the hardware prefetcher, and short enough that
# an epoch mixes the rows.
BLOCK_ROWS = 64


def look_like_numbers(distinct: int, rows: int) -> bool:
    """Return whether ``distinct`` different whole numbers among ``rows`` labels are quantities rather than classes.

    Quantities are for example years, prices or ages.

    >>> look_like_numbers(10, 1797), look_like_numbers(214, 442)
    (False, True)
    """
    return distinct > MOST_CLASSES or distinct > max(50, rows // 3)


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Rows and the order in which a worker visits them, or a part of them. A chunk is a few milliseconds of work."""

    rows: CSRRows
    order: Array  # Row numbers within ``rows``, uint32 or int64.


@dataclass(frozen=True, slots=True, eq=False)
class EpochPlan:
    """All chunks of an epoch in three arrays: chunk ``c`` is ``order[starts[c]:starts[c + 1]]``."""

    rows: CSRRows
    order: Array | RandomOrder
    starts: Array  # Position in ``order`` at which each chunk starts, int64.
    # The ``starts`` of the whole epoch without those that records within it have added; None if there are no such.
    undivided: Array | None = None


class Epoch(Protocol):
    """Pass over a data set, cut into chunks that workers may claim in any order and from any thread."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Chunk: ...

    def done(self, number: int) -> None:
        """Mark a chunk as finished for this epoch, so that its memory may be released."""

    def whole(self) -> EpochPlan | None:
        """Return all chunks at once if the rows are in memory, else None."""


class Dataset(ABC):
    """Checked rows with labels, in memory or on disk.

    The chunks of an epoch depend on the data alone, never on time or on the number of workers. A run can therefore be
    continued from ``(seed, epoch, chunk)``.
    """

    name: str  # Origin of the data, such as a file name, for messages to the user.
    n_rows: int
    n_features: int
    nonzeros: int
    base: int  # Number that was subtracted from the indices of a text file: 0 or 1.
    table: FieldVocabulary | None = None  # Field of each column, where rows have fields.
    encoding: TableEncoding | None = None  # How columns of a table became features.
    rows: CSRRows | None = None  # All rows, where they are in memory.
    columns: PresentColumns | None = None  # Columns by which the rows are numbered, where they have few of very many.
    order: Order | None = None  # Order in which epochs visit the rows, where it differs from the default order.

    @property
    def all_features(self) -> int:
        """The number of features, with those that no row has where rows are numbered by those that they have."""
        return self.n_features if self.columns is None else self.columns.features

    @property
    def reading(self) -> dict[str, Any]:
        """The options with which a model reads other files so that their columns mean the same, as plain values."""
        encoding = {} if self.encoding is None else {"encoding": self.encoding.record()}
        return {"base": self.base, **encoding}

    @property
    def bounded(self) -> bool:
        """Whether the rows are read from disk within a limit on resident memory."""
        return False

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A short digest that differs between different data."""

    @property
    @abstractmethod
    def room(self) -> int:
        """The number of bytes that a model may take besides the rows."""

    @abstractmethod
    def labels(self) -> Array:
        """Return all labels as float64, in stored order."""

    @abstractmethod
    def label_counts(self) -> tuple[Array, Array] | None:
        """Return the distinct labels, sorted, and the number of rows of each; None for more than ``MOST_CLASSES``.

        The labels are encoded, if the data set has encoded labels. A part of a packed folder returns the counts of the
        whole folder.
        """

    @abstractmethod
    def frequencies(self) -> Array:
        """Return the number of rows in which each feature is present, as int64."""

    @abstractmethod
    def epoch(self, seed: int, number: int) -> Epoch:
        """Return the chunks of one epoch in random order, in which each row occurs once unless rows are drawn."""

    def random_epoch(self, seed: int, number: int) -> Epoch:
        """Return an epoch for readers to whom no order of the rows is faster than others, such as a GPU."""
        return self.epoch(seed, number)

    @abstractmethod
    def drawn(self, draws: RowDraws) -> Dataset:
        """Return the same rows with epochs that draw with replacement; rows that are drawn more often weigh less.

        A row of probability p has 1/(n p) times its weight, so that the expected gradient stays the same.
        """

    @abstractmethod
    def laid_out(self, seed: int, epochs: float, numbers: Array | None = None) -> Dataset | None:
        """Return a copy that is faster to read over ``epochs`` epochs of this seed; None where no copy is faster.

        The epochs of the copy visit the same rows in the same order. The copy stores the rows in another order, so it
        serves these epochs only.
        """

    @abstractmethod
    def at_once(self) -> Dataset | None:
        """Return the same rows with random access to all of them; None where memory is too small."""

    def here(self) -> Dataset:
        """Return the rows that this machine has: all of them, except in a folder whose shards are elsewhere."""
        return self

    @abstractmethod
    def in_order(self) -> Epoch:
        """Return all rows in stored order, for evaluation and prediction."""

    @abstractmethod
    def split(self, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
        """Split off a random fraction of the rows, and return (the other rows, the rows split off)."""

    @abstractmethod
    def with_labels(self, encode: Callable[[Array], Array]) -> Dataset:
        """Return the same rows; the labels of each chunk pass through ``encode``, which gets float64."""

    @abstractmethod
    def with_rows(self, change: Callable[[CSRRows], CSRRows]) -> Dataset:
        """Return the same data; its rows pass through ``change``, which keeps their number, order and labels."""
