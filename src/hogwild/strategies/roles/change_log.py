"""Log of the deltas that a server has added last, from which it answers what has changed since a version."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.messaging.deltas import Vector, nbytes, total

LOGGED = 4  # Size of the changes that a server remembers, as a multiple of its parameters.
SENT = 1  # Size of the changes up to which they are added up for a worker, as a multiple of its parameters.
ENTRY = 64  # Bytes of an entry without its change.


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """Delta that was added, the worker that pushed it, and the difference to what that worker has pushed."""

    worker: str
    change: Vector
    correction: Vector | None

    @property
    def size(self) -> int:
        """The size in bytes."""
        return ENTRY + nbytes(self.change) + (0 if self.correction is None else nbytes(self.correction))

    def lacked_by(self, worker: str) -> Vector | None:
        """Return what a worker has to add to its parameters for this entry."""
        return self.correction if worker == self.worker else self.change


class ChangeLog:
    """Deltas that a server has added last, in order, with the workers that pushed them.

    An entry may have a correction for the worker that pushed the delta, where another one than its own was added.

    The log has at most ``most`` bytes: to send more changes would take longer than to send all parameters.

    >>> import numpy as np
    >>> log = ChangeLog(most=1_000)
    >>> log.append("worker-0", np.ones(2, np.float32)); log.append("worker-1", np.full(2, 2.0, np.float32))
    >>> log.since(0, version=2, worker="worker-0")
    (True, array([2., 2.], dtype=float32))
    >>> log.since(1, version=2, worker="worker-1"), log.since(0, version=9, worker="worker-1")
    ((True, None), (False, None))
    """

    def __init__(self, most: float) -> None:
        self.most, self.bytes = most, 0
        self.entries: list[_Entry] = []

    def append(self, worker: str, change: Vector, correction: Vector | None = None) -> None:
        """Append the delta of a worker, and drop the oldest deltas if there are too many."""
        self.entries.append(_Entry(worker, change, correction))
        self.bytes += self.entries[-1].size
        while self.bytes > self.most:
            self.bytes -= self.entries.pop(0).size

    def since(self, before: int, version: int, worker: str) -> tuple[bool, Vector | None]:
        """Return whether the log has all deltas since a version, and the sum of what ``worker`` lacks of them.

        ``version`` is the present one. The sum is None if the worker lacks nothing.
        """
        count = version - before
        if not 0 <= count <= len(self.entries):
            return False, None
        lacked = [entry.lacked_by(worker) for entry in self.entries[len(self.entries) - count :]]
        changes = [change for change in lacked if change is not None]
        if len(changes) > 1 and sum(ENTRY + nbytes(change) for change in changes) > SENT * self.most // LOGGED:
            return False, None  # To add them would take longer than to send all parameters.
        return True, total(changes) if changes else None
