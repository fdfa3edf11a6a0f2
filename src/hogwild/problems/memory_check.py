"""Whether there is room for a model."""

from __future__ import annotations

from hogwild.data.dataset import Dataset
from hogwild.data.in_memory import InMemoryDataset
from hogwild.errors import DataError
from hogwild.files import format_size

LITTLE = 2**22  # bytes for which it takes longer to ask whether there is room than to take them


def check_memory(data: Dataset, outputs: int, bytes_each: int) -> None:
    """Refuse a model that cannot fit, with its copies, instead of being killed for it."""
    needed = 3 * data.n_features * outputs * bytes_each  # the parameters, those to go back to, and copies to measure
    sure = needed <= LITTLE and isinstance(data, InMemoryDataset)  # a folder may have been given less
    if not sure and needed > (room := data.room):
        what = f"a model of {data.n_features:,} features x {outputs} outputs takes {format_size(needed)} of memory"
        remedy = f"There is {format_size(room)}. Number features without gaps, hash them into fewer, or allow more."
        raise DataError(what, path=data.name, remedy=remedy)
