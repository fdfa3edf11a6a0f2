"""Text in memory that belongs to Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hogwild.data.csr import Array

if TYPE_CHECKING:
    import pyarrow


def arrow_copy(text: Array) -> pyarrow.Buffer:
    """Return a copy of bytes in Arrow's own memory.

    One of Arrow's threads may be the last to release a buffer. For a buffer of Python it would need the interpreter,
    and a process that is ending just then would be aborted.

    >>> arrow_copy(np.frombuffer(b"a,b", np.uint8)).to_pybytes()
    b'a,b'
    """
    import pyarrow as pa

    copy = pa.allocate_buffer(len(text))
    np.copyto(np.frombuffer(copy, np.uint8), text)
    return copy
