"""Check of the memory that a model takes besides its data."""

from __future__ import annotations

from hogwild.data.dataset import Dataset
from hogwild.data.in_memory import InMemoryDataset
from hogwild.errors import DataError
from hogwild.files import format_size

# Bytes; to query the free memory takes longer than to allocate less than this.
LITTLE = 2**22


def check_memory(data: Dataset, outputs: int, bytes_each: int) -> None:
    """Raise a DataError if a model and its copies exceed the free memory, before the system terminates the process."""
    # Three copies: the parameters, those to return to after a divergence, and a copy to evaluate.
    needed = 3 * data.n_features * outputs * bytes_each
    # A packed folder may have a smaller limit of memory.
    sure = needed <= LITTLE and isinstance(data, InMemoryDataset)
    if not sure and needed > (room := data.room):
        what = f"a model of {data.n_features:,} features x {outputs} outputs takes {format_size(needed)} of memory"
        remedy = f"There is {format_size(room)}. Number features without gaps, hash them into fewer, or allow more."
        raise DataError(what, path=data.name, remedy=remedy)
