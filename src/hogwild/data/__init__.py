"""Data sets: reading, checking, packing, shuffling and generating rows. ``hogwild.data.open`` opens all of them."""

from hogwild.data.csr import CSRRows
from hogwild.data.dataset import Chunk, Dataset, Epoch
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.open_dataset import as_dataset, open
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.reader import Reader, ReadOptions

__all__ = [
    "CSRRows",
    "Chunk",
    "Dataset",
    "Epoch",
    "InMemoryDataset",
    "PackedDataset",
    "ReadOptions",
    "Reader",
    "as_dataset",
    "open",
    "pack",
]
