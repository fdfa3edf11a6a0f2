"""Readers of file formats: each format is one module, and one element of ``READERS``."""

from __future__ import annotations

from hogwild.data.reader import Reader
from hogwild.data.readers.arrow_ipc import ARROW
from hogwild.data.readers.criteo import CRITEO
from hogwild.data.readers.csv_table import CSV
from hogwild.data.readers.json_lines import JSON_LINES
from hogwild.data.readers.libffm import LIBFFM
from hogwild.data.readers.npz import NPZ
from hogwild.data.readers.parquet import PARQUET
from hogwild.data.readers.svmlight import SVMLIGHT
from hogwild.data.readers.tfrecord import TFRECORD
from hogwild.data.readers.vw import VW

READERS: tuple[Reader, ...] = (SVMLIGHT, LIBFFM, VW, PARQUET, NPZ, TFRECORD, CSV, CRITEO, JSON_LINES, ARROW)
