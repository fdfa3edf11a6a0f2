"""CRC-32C, the checksum of TFRecord files, computed over eight bytes at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import compiled

_POLYNOMIAL = 0x82F63B78  # Castagnoli's polynomial with its bits reversed.
# Constant that is added to the stored checksum. Without it the checksum of data with its own checksum is a constant.
_MASK = 0xA282EAD8


def _tables() -> Any:
    """Compute the look-up tables: row ``k`` is the effect of a byte on the checksum ``k`` bytes later."""
    tables = np.zeros((8, 256), np.uint32)
    rest: Any = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        rest = (rest >> 1) ^ np.where(rest & 1, np.uint32(_POLYNOMIAL), np.uint32(0)).astype(np.uint32)
    tables[0] = rest
    for k in range(1, 8):
        tables[k] = (tables[k - 1] >> 8) ^ tables[0][tables[k - 1] & 0xFF]
    return tables


TABLES = _tables()


@compiled
def masked_crc(data: Any, start: Any, stop: Any) -> Any:
    """Compute the checksum of ``data[start:stop]`` in the form that TFRecord files store.

    >>> hex(masked_crc(np.frombuffer(b"123456789", np.uint8), 0, 9))
    '0xc78ab0e5'
    """
    crc = np.uint32(0xFFFFFFFF)
    at = start
    while at + 8 <= stop:
        low = crc ^ (
            np.uint32(data[at]) | np.uint32(data[at + 1]) << np.uint32(8) | np.uint32(data[at + 2]) << np.uint32(16)
            | np.uint32(data[at + 3]) << np.uint32(24)
        )  # fmt: skip
        crc = np.uint32(
            TABLES[7, low & np.uint32(0xFF)] ^ TABLES[6, (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ TABLES[5, (low >> np.uint32(16)) & np.uint32(0xFF)] ^ TABLES[4, low >> np.uint32(24)]
            ^ TABLES[3, data[at + 4]] ^ TABLES[2, data[at + 5]] ^ TABLES[1, data[at + 6]] ^ TABLES[0, data[at + 7]]
        )  # fmt: skip
        at += 8
    while at < stop:
        crc = np.uint32(TABLES[0, (crc ^ np.uint32(data[at])) & np.uint32(0xFF)] ^ (crc >> np.uint32(8)))
        at += 1
    crc = np.uint32(~crc)
    return np.uint32(np.uint32(crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(_MASK))
