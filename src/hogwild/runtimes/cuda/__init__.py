"""``Cuda`` runtime: thousands of rows at a time on a GPU, lock-free (Hogwild on one device)."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.runtimes.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Cuda(Runtime):
    """Runtime on a GPU: each row is trained by a group of threads, and all of them share the parameters.

    The losses and rules are those of other runtimes. Parameters are changed by atomic additions. The changes of rows
    that are in flight at the same time are damped where together they would overshoot.

    Examples
    --------
    >>> Cuda()
    Cuda()
    """

    shares_memory = True
    uses_gpu = True
