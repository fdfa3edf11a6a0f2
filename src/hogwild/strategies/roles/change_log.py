"""Log of the deltas that a server has added last, from which it answers what has changed since a version."""

from __future__ import annotations

from hogwild.messaging.deltas import Adder, Vector, nbytes

LOGGED = 4  # Size of the changes that a server remembers, as a multiple of its parameters.
ENTRY = 64  # Bytes of an entry without its change.


def _size(change: Vector) -> int:
    return ENTRY + nbytes(change)


class ChangeLog:
    """Deltas that a server has added last, in order, with the workers that pushed them.

    The log has at most ``most`` bytes: to send more changes would take longer than to send all parameters.

    >>> import numpy as np
    >>> log = ChangeLog(size=2, most=1_000)
    >>> log.append("worker-0", np.ones(2, np.float32)); log.append("worker-1", np.full(2, 2.0, np.float32))
    >>> log.since(0, version=2, worker="worker-0")
    (True, array([2., 2.], dtype=float32))
    >>> log.since(1, version=2, worker="worker-1"), log.since(0, version=9, worker="worker-1")
    ((True, None), (False, None))
    """

    def __init__(self, size: int, most: float) -> None:
        self.most, self.bytes = most, 0
        self._sum_of = Adder(size).sum_of  # A function, which is not in snapshots.
        self.entries: list[tuple[str, Vector]] = []

    def append(self, worker: str, change: Vector) -> None:
        """Append the delta of a worker, and drop the oldest deltas if there are too many."""
        self.entries.append((worker, change))
        self.bytes += _size(change)
        while self.bytes > self.most:
            self.bytes -= _size(self.entries.pop(0)[1])

    def since(self, before: int, version: int, worker: str) -> tuple[bool, Vector | None]:
        """Return whether the log has all deltas since a version, and the sum of those of other workers.

        ``version`` is the present one. The sum is None if no other worker has changed anything.
        """
        count = version - before
        if not 0 <= count <= len(self.entries):
            return False, None
        others = [change for sender, change in self.entries[len(self.entries) - count :] if sender != worker]
        if len(others) > 1 and sum(map(_size, others)) > self.most // LOGGED:
            return False, None  # To add them would take longer than to send all parameters.
        return True, self._sum_of(others) if others else None
