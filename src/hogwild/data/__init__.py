"""Data sets: reading, checking, packing, shuffling and generating rows. ``hogwild.data.open`` opens all of them.

Names are imported when they are first used: a model that scores one row needs neither readers nor compiled code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hogwild.lazy import late_names

if TYPE_CHECKING:
    from hogwild.data.csr import CSRRows as CSRRows
    from hogwild.data.dataset import Chunk as Chunk
    from hogwild.data.dataset import Dataset as Dataset
    from hogwild.data.dataset import Epoch as Epoch
    from hogwild.data.in_memory import InMemoryDataset as InMemoryDataset
    from hogwild.data.open_dataset import as_dataset as as_dataset
    from hogwild.data.open_dataset import open as open
    from hogwild.data.packing.pack import pack as pack
    from hogwild.data.packing.packed_dataset import PackedDataset as PackedDataset
    from hogwild.data.reader import Reader as Reader
    from hogwild.data.reader import ReadOptions as ReadOptions
    from hogwild.data.tables.column_roles import ColumnRoles as ColumnRoles
    from hogwild.data.tables.table_encoding import TableEncoding as TableEncoding

_HOMES = {
    "CSRRows": "hogwild.data.csr",
    "Chunk": "hogwild.data.dataset",
    "ColumnRoles": "hogwild.data.tables.column_roles",
    "Dataset": "hogwild.data.dataset",
    "Epoch": "hogwild.data.dataset",
    "InMemoryDataset": "hogwild.data.in_memory",
    "PackedDataset": "hogwild.data.packing.packed_dataset",
    "ReadOptions": "hogwild.data.reader",
    "Reader": "hogwild.data.reader",
    "TableEncoding": "hogwild.data.tables.table_encoding",
    "as_dataset": "hogwild.data.open_dataset",
    "open": "hogwild.data.open_dataset",
    "pack": "hogwild.data.packing.pack",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = late_names(__name__, _HOMES)
