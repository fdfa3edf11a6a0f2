"""Runners of an epoch: worker threads claim chunks from Python or in compiled code, delay updates, or take turns."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Epoch, EpochPlan
from hogwild.delays import DelayStream
from hogwild.kernels.sync_policies import DEBT, DELAYED_TERMS, DRAWN, SKIPPED, restart, skip_delays
from hogwild.kernels.work_queue import (
    BEGINS,
    ENDS,
    LEFT,
    LIMIT,
    LOSS,
    NEXT,
    PARTS,
    STOPPED,
    TERMS,
    WORST,
    halt,
    new_tally,
    reset_queue,
)
from hogwild.machine import spread_over_cores
from hogwild.runtimes.shared_memory import thread_team

if TYPE_CHECKING:
    from hogwild.runtimes.shared_memory.threads import Session

State = tuple[NDArray[Any], ...]
# Function of the number of earlier updates and of the number of updates to come; it returns the step size of each.
Rates = Callable[[int, int], NDArray[Any]]

PARTS_EACH = 32  # parts of an epoch for each worker; with many small parts all workers finish at about the same time
SETTLED = 0.003  # seconds after which all workers are running, so that the main thread may do another task
FEWEST_ROWS = 256  # smallest number of rows in a part; it takes precedence over PARTS_EACH


@dataclass(frozen=True, slots=True)
class EpochSegment:
    """Result of training on a segment of an epoch: a sequence of consecutive chunks."""

    next_chunk: int  # number of the chunk at which the next segment begins
    updates: int  # updates since the start of the run, at the end of the segment
    loss: float  # sum of the losses of the segment's terms, each computed just before the term's own update
    worst: float  # largest mean loss of a chunk, or of a part of a chunk in compiled code; NaN after divergence
    interrupted: bool  # whether Ctrl-C was pressed
    workers: frozenset[int]  # numbers of the workers that made at least one of the segment's updates


class EpochRunner:
    """Base class of the runners: counts chunks, updates and losses of a segment.

    ``first`` is the first chunk of the epoch to train on, ``updates`` the number of updates before this segment.
    """

    def __init__(
        self, session: Session, epoch: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event
    ) -> None:
        self.session, self.epoch, self.rates, self.halt = session, epoch, rates, halt
        self.lock, self.next, self.started, self.done = threading.Lock(), first, updates, updates
        self.loss, self.worst, self.interrupted = 0.0, 0.0, False
        # Replicas whose worker got a chunk; the other replicas would only dilute the mean.
        self.moved: dict[int, State] = {}
        self.trained: set[int] = set()  # numbers of the workers that made updates

    def count(self, terms: int, loss: float) -> None:
        """Count a chunk of ``terms`` terms with the sum of its losses; halt if the loss is not finite."""
        with self.lock:
            self.done += terms
            self.loss += loss
            # A comparison with NaN is false, so this form keeps a NaN as the worst loss.
            self.worst = self.worst if loss / max(terms, 1) <= self.worst else loss / max(terms, 1)
            if not math.isfinite(loss):
                self.halt.set()  # After divergence, further updates have no effect.

    def stop(self) -> None:
        """Make workers stop at the end of their present chunks."""
        self.halt.set()

    def wait_for_workers(self, futures: list[Future[None]], tick: Callable[[int], None]) -> None:
        """Wait for workers; call ``tick`` every ``TICK`` seconds and at the end.

        After an exception or Ctrl-C, stop all workers and wait for them. Ctrl-C is noted; other exceptions propagate.
        """
        try:
            working = True
            while working:
                ended, waiting = wait(futures, timeout=thread_team.TICK, return_when=FIRST_EXCEPTION)
                for future in ended:
                    future.result()
                working = bool(waiting)
                tick(self.done)
        except BaseException as reason:
            self.stop()
            wait(futures)
            if not isinstance(reason, KeyboardInterrupt):
                raise
            self.interrupted = True

    def segment(self) -> EpochSegment:
        """Return the result of this segment."""
        return EpochSegment(self.next, self.done, self.loss, self.worst, self.interrupted, frozenset(self.trained))


class ChunkedRunner(EpochRunner):
    """Runner whose workers claim chunks from one counter in Python, and never wait for each other."""

    def run(self, tick: Callable[[int], None]) -> EpochSegment:
        """Train on the remaining chunks, with replicas where the strategy has them."""
        session = self.session
        if session.buffers is not None:
            session.buffers.gather(session.state, self.rates(self.started, 1)[0])
        states = replicas(session)
        # A single worker with a single chunk runs in this thread, which saves waking up a thread and waiting for it.
        # Workers always train on a chunk to its end, so this thread would have nothing to stop meanwhile.
        here = session.workers == 1 == len(self.epoch) - self.next
        self.wait_for_workers(
            [
                _run_here(self.work, state, worker) if here else session.pool.submit(self.work, state, worker)
                for worker, state in enumerate(states)
            ],
            tick,
        )
        if session.buffers is not None:
            session.buffers.scatter(session.state)
        average_replicas(list(self.moved.values()), session.state)
        return self.segment()

    def work(self, state: State, worker: int) -> None:
        """Claim chunks and train on them, until none is left or the run halts."""
        session = self.session
        descend = session.descents[worker]
        if session.workers > 1:
            spread_over_cores(worker)
        while not self.halt.is_set():
            with self.lock:
                number, self.next = self.next, self.next + 1
                if number >= len(self.epoch):
                    self.next = number
                    break
                self.moved[id(state)] = state
                self.trained.add(worker)
            chunk = self.epoch[number]
            terms = len(chunk.order)
            with self.lock:
                before, self.started = self.started, self.started + terms
            loss = descend(chunk, self.rates(before, terms), state, session.sync)
            session.average(state)
            self.epoch.done(number)
            self.count(terms, loss)
        if session.buffers is not None:
            session.buffers.settle(worker, session.state)


class CompiledRunner(EpochRunner):
    """Runner of an epoch that is wholly in memory: workers claim parts of chunks in compiled code, without the GIL.

    ``meanwhile`` of :meth:`run` is a task that the main thread may run once, while the other workers train.
    """

    def __init__(self, session: Session, epoch: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event,
                 whole: EpochPlan) -> None:  # fmt: skip
        super().__init__(session, epoch, first, updates, rates, halt)
        self.whole, self.first, self.before = whole, first, updates
        self.steps = rates(updates, self._terms_before(len(whole.starts) - 1))
        self.tallies = [new_tally() for _ in range(session.workers)]
        # Records change a strategy with replicas as little as possible: workers keep theirs until the epoch ends.
        kept = session.kept_replicas if first > 0 else None
        self.states, self.movers = kept or (replicas(session), set())
        keeps = session.strategy.replicas and whole.undivided is not None
        session.kept_replicas = (self.states, self.movers) if keeps else None
        self.parts, self.useful = claims(whole, first, session.workers, session.strategy.replicas)

    def run(self, tick: Callable[[int], None], meanwhile: Callable[[], None]) -> EpochSegment:
        """Train on the remaining chunks, until the last or until the run halts."""
        self.meanwhile = meanwhile if self.session.workers > 1 else _nothing
        self.started_at = time.perf_counter()
        session, chunks = self.session, len(self.whole.starts) - 1
        parts = self.parts
        # An epoch is long enough for all workers to come, but few rows between two records are not.
        together = 0 if self.whole.undivided is None else min(self.useful, (chunks - self.first) * parts)
        reset_queue(session.team.queue, self.first, chunks, parts, together)
        self._begin(self.tallies)
        self._run_team(tick)
        stopped = int(session.team.queue[STOPPED])
        if stopped >= 0:  # The halt may be within a chunk, but the next segment must begin at a chunk.
            chunks = -(-stopped // parts)
            if stopped < chunks * parts:
                self._finish_chunk(stopped, chunks, parts)
        if session.buffers is not None:
            session.buffers.scatter(session.state)
        self.movers |= {worker for worker, tally in enumerate(self.tallies) if tally[TERMS]}
        average_replicas([self.states[worker] for worker in sorted(self.movers)], session.state)
        session.average(session.state)
        return self._added_up(chunks)

    def _begin(self, tallies: list[NDArray[Any]]) -> None:
        if self.session.buffers is not None:
            self.session.buffers.take(self.session.state)
        for tally in tallies:
            tally[BEGINS] = tally[ENDS] = 1

    def _run_team(self, tick: Callable[[int], None]) -> None:
        team = self.session.team

        def poll() -> None:
            """Report the number of updates to ``tick``, and stop the workers if ``halt`` is set."""
            tick(self.before + self._terms_before(self._claimed() // int(team.queue[PARTS])))
            if self.halt.is_set():
                halt(team.queue)

        try:
            team.run(self._work, poll)
        except BaseException as reason:
            halt(team.queue)
            self._work(0)  # Worker 0 finds no more parts to claim, but merges the deltas of its hot replica.
            team.finish()
            if not isinstance(reason, KeyboardInterrupt):
                raise
            self.interrupted = True

    def _claimed(self) -> int:
        queue = self.session.team.queue
        stopped = int(queue[STOPPED])
        return int(queue[NEXT]) if stopped < 0 else stopped

    def _work(self, worker: int) -> bool:
        """Train on parts of the epoch; return whether there may be more parts.

        Worker 0 returns after a slice of parts, so that this thread can react to the clock and to Ctrl-C.
        """
        if worker >= self.useful:
            return False
        session, tally, started, parts = self.session, self.tallies[worker], time.perf_counter(), 0
        if worker == 0:
            waits = self.meanwhile is not _nothing
            parts = session.slices.parts_for(SETTLED if waits else thread_team.TICK)
            tally[LIMIT] = parts
        session.descents[worker].descend(
            self.whole, session.team.queue, tally, self.steps, self.states[worker], session.sync
        )
        if worker == 0 and tally[LEFT]:
            ended = time.perf_counter()
            session.slices.record(parts, ended - started)
            if ended - self.started_at > SETTLED:
                now, self.meanwhile = self.meanwhile, _nothing
                now()
        return bool(tally[LEFT])

    def _finish_chunk(self, part: int, chunks: int, parts: int) -> None:
        queue = self.session.team.queue
        reset_queue(queue, self.first, chunks, parts)
        queue[NEXT] = part
        if self.session.buffers is not None:  # The shared values have the changes of all workers, which have settled.
            self.session.buffers.scatter(self.session.state)
        self._begin(self.tallies[:1])
        while self._work(0):
            pass

    def _added_up(self, chunks: int) -> EpochSegment:
        worst = [float(tally[WORST]) for tally in self.tallies]
        return EpochSegment(
            chunks,
            self.before + self._terms_before(chunks),
            sum(float(tally[LOSS]) for tally in self.tallies),
            max(worst) if all(map(math.isfinite, worst)) else math.nan,
            self.interrupted,
            frozenset(worker for worker, tally in enumerate(self.tallies) if tally[TERMS]),
        )

    def _terms_before(self, chunk: int) -> int:
        starts = self.whole.starts
        return int(starts[min(chunk, len(starts) - 1)] - starts[self.first])


def _nothing() -> None:
    """Do nothing: the default of ``meanwhile``."""


def claims_per_chunk(starts: NDArray[Any], workers: int) -> int:
    """Return the number of parts in which workers claim each chunk; a single worker claims whole chunks.

    >>> claims_per_chunk(np.arange(0, 800_001, 8_000), 1), claims_per_chunk(np.arange(0, 800_001, 8_000), 16)
    (1, 6)
    """
    if workers == 1 or len(starts) < 2:
        return 1
    rows = max(FEWEST_ROWS, int(starts[-1] - starts[0]) // (PARTS_EACH * workers))
    return max(1, -(-int(starts[1] - starts[0]) // rows))


def claims(plan: EpochPlan, first: int, workers: int, whole_chunks: bool) -> tuple[int, int]:
    """Return the number of parts of each chunk from ``first`` on, and the number of workers that may claim them.

    All workers may, except between two records. There as many workers train as have a part in an epoch without records,
    and parts are small enough for each of them to have one. With ``whole_chunks``, the parts of an epoch without
    records are its chunks.

    >>> starts = np.array([0, 100, 200])
    >>> claims(EpochPlan(None, None, starts, np.array([0, 2_000, 4_000])), 0, 2, whole_chunks=False)
    (1, 2)
    >>> claims(EpochPlan(None, None, starts, np.array([0, 200])), 0, 2, whole_chunks=False)
    (1, 1)
    """
    undivided = plan.starts if plan.undivided is None else plan.undivided
    parts = 1 if whole_chunks else claims_per_chunk(undivided, workers)
    if plan.undivided is None:
        return parts, workers
    useful = max(1, min(workers, parts * (len(undivided) - 1)))
    if useful == 1:
        return 1, 1
    terms = int(plan.starts[-1] - plan.starts[first])
    rows = min(-(-int(undivided[1] - undivided[0]) // parts), -(-terms // useful))
    return max(1, -(-int(np.diff(plan.starts[first:]).max(initial=0)) // max(1, rows))), useful


def replicas(session: Session) -> list[State]:
    """Return the state that each worker updates: the shared state, or a copy of it for a strategy with replicas."""
    if not session.strategy.replicas or session.workers == 1:
        return [session.state] * session.workers
    return [tuple(part.copy("K") for part in session.state) for _ in range(session.workers)]


def average_replicas(moved: list[State], state: State) -> None:
    """Overwrite the state with the mean of the replicas in ``moved``, unless workers share the state.

    ``moved`` has only replicas whose worker got a chunk, because the other replicas would dilute the mean.
    """
    if moved and moved[0] is not state:
        for part, *copies in zip(state, *moved, strict=True):
            np.mean(copies, axis=0, out=part)


# Summed delays of the terms that a worker claims at a time. A claim in Python takes tens of microseconds.
CLAIM_SECONDS = 0.001


class WorkerDelays:
    """Delays of one worker thread: drawn in Python, slept in compiled code between the read and the write of a term.

    ``array`` is what the worker's kernel reads (:func:`hogwild.kernels.sync_policies.new_delays`).
    """

    def __init__(self, stream: DelayStream, array: NDArray[Any]) -> None:
        self.array, self._stream = array, stream
        self._drawn: deque[float] = deque()  # delays of the next terms, in seconds
        self._rest = 0.0  # part of a microsecond that no term has waited yet

    def restart(self) -> None:
        """Wait with the following terms, also if delays were skipped before."""
        self.array[SKIPPED] = self.array[DEBT] = 0

    def skip(self) -> None:
        """End the present delay, and wait no more. Any thread may call this."""
        skip_delays(self.array)

    def claim(self) -> int:
        """Return the number of terms that the worker claims next.

        Their delays add up to about ``CLAIM_SECONDS``, so that at the end of an epoch no worker waits for long for
        another one.
        """
        seconds, terms = sum(self._drawn), len(self._drawn)
        while terms < DELAYED_TERMS and (terms == 0 or seconds < CLAIM_SECONDS):
            self._drawn.append(self._stream.next())
            seconds, terms = seconds + self._drawn[-1], terms + 1
        return terms

    def load(self, terms: int) -> None:
        """Write the delays of the next terms to the array."""
        for term in range(terms):
            whole = self._rest + 1e6 * self._drawn.popleft()
            self.array[DRAWN + term] = int(whole)
            self._rest = whole - int(whole)


class _OpenChunk:
    """Chunk whose terms workers claim a few at a time."""

    def __init__(self, number: int, chunk: Chunk) -> None:
        self.number, self.chunk, self.terms = number, chunk, len(chunk.order)
        self.claimed = self.done = 0
        self.loss = 0.0


class DelayedRunner(EpochRunner):
    """Runner whose workers wait between the read and the write of each term, and never for each other.

    Workers claim a few terms at a time, because a chunk could take minutes. All workers are threads of the pool, so
    that the main thread can react to the clock and to Ctrl-C. When the run halts, workers finish the chunks that are
    begun, without further delay.
    """

    def __init__(
        self, session: Session, epoch: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event
    ) -> None:
        super().__init__(session, epoch, first, updates, rates, halt)
        self.delays: list[WorkerDelays] = session.delays
        self._open: _OpenChunk | None = None

    def run(self, tick: Callable[[int], None]) -> EpochSegment:
        """Train on the remaining chunks, until the last or until the run halts."""
        session = self.session
        for delays in self.delays:
            delays.restart()

        def watch(updates: int) -> None:
            tick(updates)
            if self.halt.is_set():
                self.stop()

        states = replicas(session)
        self.wait_for_workers(
            [session.pool.submit(self.work, state, worker) for worker, state in enumerate(states)], watch
        )
        average_replicas(list(self.moved.values()), session.state)
        return self.segment()

    def stop(self) -> None:
        """Make workers stop at the end of the chunks that are begun, and skip their delays."""
        super().stop()
        for delays in self.delays:
            delays.skip()

    def work(self, state: State, worker: int) -> None:
        """Claim terms and train on them, until none is left or the run halts."""
        session, delays = self.session, self.delays[worker]
        descend = session.descents[worker]
        spread_over_cores(worker)
        while (claimed := self._claim(delays.claim())) is not None:
            chunk, low, high, before = claimed
            self.moved[id(state)] = state
            self.trained.add(worker)
            delays.load(high - low)
            terms = Chunk(chunk.chunk.rows, chunk.chunk.order[low:high])
            loss = descend(terms, self.rates(before, high - low), state, delays.array)
            self._count(chunk, high - low, loss, state)

    def _claim(self, most: int) -> tuple[_OpenChunk, int, int, int] | None:
        """Claim at most ``most`` terms: their chunk, the first, the last, and the number of updates before them."""
        with self.lock:
            chunk = self._open
            if chunk is None or chunk.claimed == chunk.terms:
                if self.next >= len(self.epoch) or self.halt.is_set():
                    return None
                chunk = self._open = _OpenChunk(self.next, self.epoch[self.next])
                self.next += 1
            low = chunk.claimed
            high = chunk.claimed = min(low + most, chunk.terms)
            before, self.started = self.started, self.started + high - low
            return chunk, low, high, before

    def _count(self, chunk: _OpenChunk, terms: int, loss: float, state: State) -> None:
        """Count terms of a chunk; when all its terms are done, average the iterate and release the chunk."""
        with self.lock:
            self.done += terms
            self.loss += loss
            chunk.done += terms
            chunk.loss += loss
            complete = chunk.done == chunk.terms
            if complete:
                mean = chunk.loss / max(chunk.terms, 1)
                self.worst = self.worst if mean <= self.worst else mean  # keeps a NaN, as in ``count``
        if not math.isfinite(loss):
            self.stop()
        if complete:
            self.session.average(state)
            self.epoch.done(chunk.number)


class RoundRobinRunner(EpochRunner):
    """Runner whose n workers train on the same chunk, each on every n-th term, and apply the updates in order."""

    def run(self, tick: Callable[[int], None]) -> EpochSegment:
        """Train on the remaining chunks, one after the other, until the last or until the run halts."""
        session = self.session
        while self.next < len(self.epoch) and not self.halt.is_set():
            chunk = self.epoch[self.next]
            terms = len(chunk.order)
            rates = self.rates(self.done, terms)
            restart(session.sync)
            losses: list[float] = []

            def work(
                worker: int, chunk: Chunk = chunk, rates: NDArray[Any] = rates, losses: list[float] = losses
            ) -> None:
                stride = session.workers
                spread_over_cores(worker)
                losses.append(session.descents[worker](chunk, rates, session.state, session.sync, worker, stride))

            self.wait_for_workers([session.pool.submit(work, worker) for worker in range(session.workers)], tick)
            session.average(session.state)
            self.epoch.done(self.next)
            self.next += 1
            self.trained.update(range(min(terms, session.workers)))  # Worker k has the terms k, k + n, and so on.
            self.count(terms, sum(losses))
        return self.segment()


def _run_here(work: Callable[..., None], *given: object) -> Future[None]:
    """Run ``work`` in this thread; return a finished future with its result or exception, as an executor does."""
    future: Future[None] = Future()
    try:
        work(*given)
    except BaseException as reason:
        future.set_exception(reason)
    else:
        future.set_result(None)
    return future
