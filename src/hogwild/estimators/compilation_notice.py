"""A message to an interactive user if the first fit of its kind takes longer, because its loop is compiled."""

from __future__ import annotations

import sys
from typing import Any

from hogwild.jit import is_cached

MESSAGE = "hogwild: compiling the loop of this fit, once for this machine. This takes some seconds.\n"


def with_notice(kernel: Any) -> Any:
    """Return a kernel. If its first call compiles it, say so in a terminal or a notebook.

    >>> from hogwild.jit import specialise
    >>> with_notice(specialise(lambda x: x, cache=False))(1)
    1
    """
    interactive = sys.stderr is not None and (sys.stderr.isatty() or "ps1" in vars(sys))
    if interactive and not is_cached(kernel):
        sys.stderr.write(MESSAGE)
        sys.stderr.flush()
    return kernel
