"""Data: read, check, pack, shuffle, generate. ``hogwild.data.open`` is the door."""

from hogwild.data.csr import Rows
from hogwild.data.dataset import Chunk, Dataset, Epoch
from hogwild.data.in_memory import Memory
from hogwild.data.open_dataset import open, opened
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import Packed
from hogwild.data.reader import Reader, Reading

__all__ = ["Chunk", "Dataset", "Epoch", "Memory", "Packed", "Reader", "Reading", "Rows", "open", "opened", "pack"]
