"""``Cuda`` runtime: thousands of rows at a time on a GPU, lock-free (Hogwild on one device)."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.files import parse_size
from hogwild.runtimes.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Cuda(Runtime):
    """Runtime on a GPU: each row is trained by a group of threads, and all of them share the parameters.

    The losses and rules are those of other runtimes. Parameters are changed by atomic additions. The changes of rows
    that are in flight at the same time are damped where together they would overshoot.

    Parameters
    ----------
    memory : int or str, optional
        Largest memory for rows on the GPU, in bytes or as a string such as "8GiB". Larger data stays in the memory of
        the host or on disk, and is copied to the GPU in every epoch, some rows at a time, while others are trained on.
        None is most of the memory.

    Examples
    --------
    >>> Cuda(), Cuda("8GiB").device_memory
    (Cuda(memory=None), 8589934592)
    """

    memory: int | str | None = None

    shares_memory = True
    uses_gpu = True

    @property
    def device_memory(self) -> int | None:
        """Largest number of bytes that rows take on a GPU; None: most of its memory."""
        return None if self.memory is None else parse_size(self.memory)
