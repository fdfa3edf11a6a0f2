"""Queues of work in memory, whose parts threads claim in compiled code: an epoch's rows, or a batch's samples.

Workers do not return to Python between parts, where they would have to wait for each other. Besides the parameters they
share only the queue, an array of counters.

A worker without a task watches the queue for AWAKE_MICROSECONDS (one millisecond). Then it sleeps in the operating
system until it is woken. Only one worker at a time returns to Python, where it need not wait for another worker. To
ensure this, a worker locks the gate before it enters Python, and unlocks it after it leaves. The gate only saves time:
a worker that is in Python without the gate does no harm.

Threads of another library call a function with a single address. So a :class:`Sheet` holds all arguments of a kernel,
and the address is that of the sheet.
"""

from __future__ import annotations

import ctypes
from struct import Struct
from typing import Any

import numba
import numpy as np
from numba import types
from numba._dispatcher import compute_fingerprint
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from hogwild.data.csr import Array
from hogwild.jit import Entries, Function, compiled, compiled_part, entry
from hogwild.kernels.argument_record import RecordCompiler, call_with_record, record, record_layout
from hogwild.kernels.atomics import fetch_add, load, lock, unlock
from hogwild.kernels.futex import microseconds, nap, offer_core, pause, sleep_while, wake

# mypy: disable-error-code="name-defined, call-arg, unreachable, var-annotated, attr-defined, no-untyped-call"
# ruff: noqa: F821

# Positions in the queue. NEXT: the next part to claim. STOPPED: number of parts claimed before a stop, or -1. FIRST:
# the first chunk to process. PARTS: number of parts of each chunk. LAST: the part at which to end. TOGETHER: parts
# before this one are begun when all of them are claimed. For hogwild.kernels.work_queue, GATE is the lock of the worker
# that may be in Python. TASKS counts announced tasks, and DONE counts completed tasks over all workers.
NEXT, STOPPED, FIRST, PARTS, LAST, TOGETHER = 0, 16, 32, 33, 34, 35
GATE, TASKS, DONE = 48, 64, 80
# A number of parts that no epoch reaches.
BEYOND = 2**60
# Microseconds for which a worker that waits stays awake.
AWAKE_MICROSECONDS = 1_000
# Microseconds after which a worker without a task returns to Python, and one that waits for others begins without them.
LONGEST_MICROSECONDS = 1_000_000

# Entries of a worker's tally. LOSS: summed loss. TERMS: number of terms. WORST: largest mean loss of a part. LIMIT:
# maximum number of parts per call. LEFT: whether LIMIT ended the call. BEGINS and ENDS: whether the worker synchronises
# with the shared values at the start and at the end of the call.
LOSS, TERMS, WORST, LIMIT, LEFT, BEGINS, ENDS = range(7)

# Arguments of a loop that can take every n-th term, from a first one on.
FIRST_AND_STRIDE = 0, 1
# Address that stands for no function.
NOTHING = 0


class QueueLoop:
    """Compiled loop over the terms of claimed parts of chunks; ``keep`` tells whether it is kept on disk.

    The arguments of ``descend`` are those of the data, ``order``, ``turns``, ``rates`` and others. ``begin`` and
    ``end``, if given, are called with ``(data, order, rates, others)`` where a worker synchronises with shared values.
    """

    def __init__(
        self, descend: Function, keep: bool, turns: tuple[int, ...] = FIRST_AND_STRIDE, begin: Function | None = None,
        end: Function | None = None,
    ) -> None:  # fmt: skip
        self.loop, self.turns = Entries(descend, types.float64, RecordCompiler, cache=keep), turns
        self._around = [each and Entries(each, types.void, RecordCompiler, cache=keep) for each in (begin, end)]
        # Layout of the record and addresses of the functions, for arguments of each fingerprint of types.
        self._known: dict[bytes, tuple[Struct, list[int]]] = {}

    def __call__(
        self, queue: Array, starts: Array, tally: Array, data: tuple[Array, ...], order: Array, rates: Array,
        rest: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Descend along claimed parts of chunks, and add to the tally, as :func:`run_queue` does."""
        given, addresses = self._bound(data, order, rates, rest)
        run_queue(queue, starts, tally, given, *addresses)

    def c_function(
        self, data: tuple[Array, ...], order: Array, rates: Array, rest: tuple[Any, ...]
    ) -> tuple[Array, int]:
        """Return the record of these arguments, and the address of the C function that descends along its terms.

        Compiled code calls both with :func:`call_with_record`. The arrays must live as long as the record is used.
        """
        given, addresses = self._bound(data, order, rates, rest)
        return given, addresses[0]

    def _bound(
        self, data: tuple[Array, ...], order: Array, rates: Array, rest: tuple[Any, ...]
    ) -> tuple[Array, list[int]]:
        arguments = *data, order, *self.turns, rates, *rest
        fingerprint = compute_fingerprint(arguments)
        if fingerprint not in self._known:
            self._known[fingerprint] = self._compiled(data, order, rates, rest)
        layout, addresses = self._known[fingerprint]
        return record(layout, arguments), addresses

    def _compiled(self, data: tuple[Array, ...], order: Array, rates: Array, rest: Any) -> tuple[Struct, list[int]]:
        kinds = tuple(map(numba.typeof, (*data, order, *self.turns, rates, *rest)))
        nested = tuple(map(numba.typeof, (data, order, rates, rest)))
        return record_layout(kinds), [
            self.loop.address(kinds), *(each.address(nested) if each else NOTHING for each in self._around)
        ]  # fmt: skip


@compiled
def run_queue(queue: Any, starts: Any, tally: Any, given: Any, descend: Any, begin: Any, end: Any) -> None:
    """Descend along claimed parts of chunks, and add to the tally.

    Chunk ``c`` is ``order[starts[c]:starts[c + 1]]``. ``rates`` begin with the first chunk that is still to be
    processed. Both are in the record ``given``. The others are addresses of C functions of that record, or NOTHING.
    """
    unlock(queue, GATE)
    before, parts, last, left = starts[queue[FIRST]], queue[PARTS], queue[LAST], tally[LIMIT]
    if tally[BEGINS] > 0:
        if begin != NOTHING:
            call_with_record(begin, given, before, before, before)
        tally[BEGINS] = 0
    while left > 0:
        claimed = fetch_add(queue, NEXT, 1)
        if claimed >= last:
            break
        if claimed < queue[TOGETHER]:
            await_claims(queue)
        low, high = bounds(starts, parts, claimed)
        loss = call_with_record(descend, given, low, high, before)
        terms = max(high - low, 1)
        tally[LOSS] += loss
        tally[TERMS] += high - low
        # In this form of the comparison, NaN counts as the worst loss.
        if not loss / terms <= tally[WORST]:
            tally[WORST] = loss / terms
        if not np.isfinite(loss):
            # No further update can be useful.
            halt(queue)
        left -= 1
    tally[LEFT] = left <= 0
    if left > 0 and tally[ENDS] > 0 and end != NOTHING:
        call_with_record(end, given, before, bounds(starts, parts, last - 1)[1], before)
    lock(queue, GATE)


@compiled_part
def bounds(starts: Any, parts: Any, number: Any) -> Any:
    """Return the range of terms of a part."""
    chunk, part = number // parts, number % parts
    first, size = starts[chunk], starts[chunk + 1] - starts[chunk]
    return first + part * size // parts, first + (part + 1) * size // parts


@compiled
def await_claims(queue: Any) -> None:
    """Wait until all parts before TOGETHER are claimed, or for LONGEST_MICROSECONDS.

    Few rows would otherwise be done before a second worker has come from Python. For the same reason a worker keeps its
    core while it waits, for AWAKE_MICROSECONDS: it begins within the time of a row after the others have come.
    """
    started = microseconds()
    waited = 0
    while load(queue, NEXT) < queue[TOGETHER] and waited < LONGEST_MICROSECONDS:
        if waited < AWAKE_MICROSECONDS:
            pause()
        else:
            nap()
        waited = microseconds() - started


@compiled
def halt(queue: Any) -> None:
    """Stop all further claims, and record how many parts were claimed."""
    claimed = fetch_add(queue, NEXT, BEYOND)
    if claimed < BEYOND:
        queue[STOPPED] = min(claimed, queue[LAST])


def evaluate_queue(queue: Any, starts: Any, tally: Any, data: Any, order: Any, rest: Any, sums: Any) -> None:
    """Evaluate claimed parts, and write one row of ``sums`` for each.

    The last entry of a row is the number of terms.
    """
    unlock(queue, GATE)
    indptr, indices, values, labels, weights = data
    parts, last, left = queue[PARTS], queue[LAST], tally[LIMIT]
    while left > 0:
        claimed = fetch_add(queue, NEXT, 1)
        if claimed >= last:
            break
        low, high = bounds(starts, parts, claimed)
        evaluate(indptr, indices, values, labels, weights, order[low:high], *rest, sums[claimed])
        sums[claimed, sums.shape[1] - 1] = high - low
        left -= 1
    tally[LEFT] = left <= 0
    lock(queue, GATE)


def new_queue() -> NDArray[Any]:
    """Return a queue for any number of workers, at once or one after another."""
    queue = np.zeros(96, np.int64)
    reset_queue(queue, 0, 1)
    return queue


def reset_queue(queue: NDArray[Any], first: int, last: int, parts: int = 1, together: int = 0) -> None:
    """Make the chunks from ``first`` up to ``last`` claimable, each in ``parts`` parts.

    No worker begins before ``together`` workers have claimed a part each.
    """
    queue[FIRST], queue[PARTS], queue[LAST], queue[STOPPED] = first, parts, last * parts, -1
    queue[TOGETHER] = first * parts + together
    queue[NEXT] = first * parts


def new_tally() -> NDArray[Any]:
    """Return an empty tally, padded so that it shares no cache line with another worker's."""
    tally = np.zeros(32)
    tally[LIMIT] = np.inf
    return tally


@compiled
def await_task(queue: Any, done: Any, report: Any) -> bool:
    """Report that a task is done if ``report``, and wait for the next task.

    Return False if there is no task after LONGEST_MICROSECONDS.
    """
    if report:
        unlock(queue, GATE)
        fetch_add(queue, DONE, 1)
        wake(queue, DONE)
    started = microseconds()
    while load(queue, TASKS) == done:
        waited = microseconds() - started
        if waited < AWAKE_MICROSECONDS:
            offer_core()
        elif waited < LONGEST_MICROSECONDS:
            sleep_while(queue, TASKS, done, LONGEST_MICROSECONDS)
        else:
            return False
    lock(queue, GATE)
    return True


@compiled
def announce_task(queue: Any) -> None:
    """Announce the next task to all workers."""
    fetch_add(queue, TASKS, 1)
    wake(queue, TASKS)


@compiled
def await_workers(queue: Any, wanted: Any, limit: Any) -> bool:
    """Wait until workers have completed ``wanted`` tasks in total; return False after ``limit`` microseconds."""
    unlock(queue, GATE)
    started = microseconds()
    while True:
        done = load(queue, DONE)
        if done >= wanted:
            return True
        waited = microseconds() - started
        if waited < AWAKE_MICROSECONDS:
            offer_core()
        elif waited < limit:
            sleep_while(queue, DONE, done, limit - waited)
        else:
            return False


# ruff: noqa: F821  (a kernel's parts are bound when it is specialised)


SIZES = ("rows", "width", "remembered", "samples", "nonzeros", "valued", "parts", "room")
PLACES = ("table", "squares", "indices", "offsets", "values", "sums", "cuts", "own", "steps", "marks")


class Sheet(ctypes.Structure):
    """Sizes of a batch, and the addresses of its arrays, which must not move during the call.

    There are ``samples + 1`` offsets. There are ``parts + 1`` cuts, and a part lies between two neighbouring cuts. Each
    part has private memory for ``room`` non-zeros: their indices (``own``), their ``steps``, and ``marks``, which hold
    the first non-zero of each sample.
    """

    _fields_ = (
        ("next", ctypes.c_int64), *((name, ctypes.c_int64) for name in (*SIZES, *PLACES)), ("rate", ctypes.c_float)
    )  # fmt: skip


SHEET = np.dtype(Sheet)


def take_parts(address: Any) -> None:
    """Claim parts of a batch one after the other until none is left; any number of threads may call this function."""
    given = numba.carray(address, (1,), SHEET)[0]
    taken = numba.carray(address, (1,), np.int64)  # The counter ``next`` is the first field of the sheet.
    table = numba.carray(pointer(given.table), (given.rows, given.width), np.float32)
    squares = numba.carray(pointer(given.squares), (given.remembered,), np.float32)
    indices = indices_at(given.indices, given.nonzeros)
    offsets = numba.carray(pointer(given.offsets), (given.samples + 1,), np.int64)
    values = numba.carray(pointer(given.values), (given.valued,), np.float32)
    sums = numba.carray(pointer(given.sums), (given.samples, given.width), np.float32)
    cuts = numba.carray(pointer(given.cuts), (given.parts + 1,), np.int64)
    part = fetch_add(taken, 0, 1)
    while part < given.parts:
        own = indices_at(given.own + part * given.room * indices.itemsize, given.room)
        steps = numba.carray(pointer(given.steps + part * given.room * 4), (given.room,), np.float32)
        marks = numba.carray(pointer(given.marks + part * (given.samples + 1) * 8), (given.samples + 1,), np.int64)
        batch = table, indices, offsets, values, sums
        kernel(batch, squares, given.rate, own, steps, marks, cuts[part], cuts[part + 1])
        part = fetch_add(taken, 0, 1)


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """Convert an address to a pointer."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), generate


def in_32_bits(address: Any, count: Any) -> Any:
    """Return ``count`` indices of 32 bits.

    They are unsigned, so that the compiler adds no code for negative indices.
    """
    return numba.carray(pointer(address), (count,), np.uint32)


def in_64_bits(address: Any, count: Any) -> Any:
    """Return ``count`` unsigned indices of 64 bits."""
    return numba.carray(pointer(address), (count,), np.uint64)


def in_parts(kernel: Function, long: bool) -> Any:
    """Compile a C function that calls ``kernel(batch, squares, ..., first, last)`` for the parts of a sheet's batch."""
    return entry(take_parts, kernel=kernel, indices_at=in_64_bits if long else in_32_bits)
