"""The file formats: one file each, and one line here."""

from __future__ import annotations

from hogwild.data.reading import Reader

# Filled in as readers are written: from hogwild.data.readers.svmlight import SVMLIGHT, ...
READERS: tuple[Reader, ...] = ()
