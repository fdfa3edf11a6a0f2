"""Data: read, check, pack, shuffle, generate. ``hogwild.data.open`` is the door."""

from hogwild.data.dataset import Chunk, Dataset, Epoch
from hogwild.data.memory import Memory
from hogwild.data.opening import open, opened
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed import Packed
from hogwild.data.reading import Reader, Reading
from hogwild.data.rows import Rows

__all__ = ["Chunk", "Dataset", "Epoch", "Memory", "Packed", "Reader", "Reading", "Rows", "open", "opened", "pack"]
