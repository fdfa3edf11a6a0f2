"""How the chunks of an epoch are walked: by workers at once, with or without Python in between, or in turns."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Epoch, EpochPlan
from hogwild.kernels.turns import restart
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
from hogwild.runtimes.shared_memory import thread_team
from hogwild.runtimes.shared_memory.thread_team import pin_round_robin

State = tuple[NDArray[Any], ...]
Rates = Callable[[int, int], NDArray[Any]]  # (updates done before, how many now) -> the step of each

PARTS_EACH = 32  # parts for each worker to claim, so that all are done at about the same time,
SETTLED = 0.003  # seconds after which all workers are at work, so that one may do something else
FEWEST_ROWS = 256  # unless they would be smaller than this


@dataclass(frozen=True, slots=True)
class EpochSegment:
    """What came of walking some chunks: where the next leg begins, and what was met on the way."""

    next_chunk: int
    updates: int
    loss: float  # summed over the leg's terms, each just before its own update
    worst: float  # the largest mean loss of one chunk
    interrupted: bool  # Ctrl-C was pressed


class EpochRunner:
    """What both ways of walking chunks keep count of."""

    def __init__(
        self, session: Any, walk: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event
    ) -> None:
        self.session, self.walk, self.rates, self.halt = session, walk, rates, halt
        self.lock, self.next, self.started, self.done = threading.Lock(), first, updates, updates
        self.loss, self.worst, self.interrupted = 0.0, 0.0, False
        self.moved: dict[int, State] = {}  # replicas whose worker got a chunk: the others would only dilute the mean

    def count(self, terms: int, loss: float) -> None:
        with self.lock:
            self.done += terms
            self.loss += loss
            # A comparison with NaN is false: written so that a NaN is kept as the worst.
            self.worst = self.worst if loss / max(terms, 1) <= self.worst else loss / max(terms, 1)
            if not math.isfinite(loss):
                self.halt.set()  # nothing that follows can be of use

    def stop(self) -> None:
        """Let workers end with the chunk they are at."""
        self.halt.set()

    def watch(self, futures: list[Future[None]], tick: Callable[[int], None]) -> None:
        """Wait for workers, looking up now and then and at the end; if anything goes wrong, none is left running."""
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

    def leg(self) -> EpochSegment:
        return EpochSegment(self.next, self.done, self.loss, self.worst, self.interrupted)


class ChunkedRunner(EpochRunner):
    """Workers claim chunks from one counter and never wait for each other."""

    def run(self, tick: Callable[[int], None]) -> EpochSegment:
        session = self.session
        if session.buffers is not None:
            session.buffers.gather(session.state, self.rates(self.started, 1)[0])
        states = replicas(session)
        # One chunk is walked to its end whatever happens: then there is nobody to wake up and wait for.
        submit = _done_at_once if session.workers == 1 == len(self.walk) - self.next else session.pool.submit
        self.watch([submit(self.work, state, worker) for worker, state in enumerate(states)], tick)
        if session.buffers is not None:
            session.buffers.scatter(session.state)
        average_replicas(list(self.moved.values()), session.state)
        return self.leg()

    def work(self, state: State, worker: int) -> None:
        session = self.session
        descend = session.descents[worker]
        if session.workers > 1:
            pin_round_robin(worker)
        while not self.halt.is_set():
            with self.lock:
                number, self.next = self.next, self.next + 1
                if number >= len(self.walk):
                    self.next = number
                    break
                self.moved[id(state)] = state
            chunk = self.walk[number]
            terms = len(chunk.order)
            with self.lock:
                before, self.started = self.started, self.started + terms
            loss = descend(chunk, self.rates(before, terms), state, session.sync)
            session.average(state)
            self.walk.done(number)
            self.count(terms, loss)
        if session.buffers is not None:
            session.buffers.settle(worker, session.state)


class CompiledRunner(EpochRunner):
    """The same where the whole epoch is in memory: parts of chunks are claimed in compiled code."""

    def __init__(self, session: Any, walk: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event,
                 whole: EpochPlan) -> None:  # fmt: skip
        super().__init__(session, walk, first, updates, rates, halt)
        self.whole, self.first, self.before = whole, first, updates
        self.steps = rates(updates, self._terms_before(len(whole.starts) - 1))
        self.tallies = [new_tally() for _ in range(session.workers)]
        self.states = replicas(session)

    def run(self, tick: Callable[[int], None], meanwhile: Callable[[], None]) -> EpochSegment:
        """Walk as far as it goes."""
        self.meanwhile = meanwhile if self.session.workers > 1 else _nothing
        self.started_at = time.perf_counter()
        session, chunks = self.session, len(self.whole.starts) - 1
        parts = 1 if session.strategy.replicas else claims_per_chunk(self.whole.starts, session.workers)
        reset_queue(session.crew.board, self.first, chunks, parts)
        self._begin(self.tallies)
        self._walk(tick)
        stopped = int(session.crew.board[STOPPED])
        if stopped >= 0:  # perhaps within a chunk: others are to begin where one ends
            chunks = -(-stopped // parts)
            if stopped < chunks * parts:
                self._finish_chunk(stopped, chunks, parts)
        if session.buffers is not None:
            session.buffers.scatter(session.state)
        average_replicas(
            [state for state, tally in zip(self.states, self.tallies, strict=True) if tally[TERMS]], session.state
        )
        return self._added_up(chunks)

    def _begin(self, tallies: list[NDArray[Any]]) -> None:
        if self.session.buffers is not None:
            self.session.buffers.take(self.session.state)
        for tally in tallies:
            tally[BEGINS] = tally[ENDS] = 1

    def _walk(self, tick: Callable[[int], None]) -> None:
        team = self.session.crew

        def look() -> None:
            """Let those who ask know how far it is, and workers know if it is to end."""
            tick(self.before + self._terms_before(self._claimed() // int(team.board[PARTS])))
            if self.halt.is_set():
                halt(team.board)

        try:
            team.run(self._work, look)
        except BaseException as reason:
            halt(team.board)
            self._work(0)  # finds nothing to claim any more, but has its changes to merge
            team.finish()
            if not isinstance(reason, KeyboardInterrupt):
                raise
            self.interrupted = True

    def _claimed(self) -> int:
        board = self.session.crew.board
        stopped = int(board[STOPPED])
        return int(board[NEXT]) if stopped < 0 else stopped

    def _work(self, worker: int) -> bool:
        """Walk parts of the epoch; say whether there may be more."""
        session, tally, started, parts = self.session, self.tallies[worker], time.perf_counter(), 0
        if worker == 0:
            waits = self.meanwhile is not _nothing
            parts = session.slices.lasting(SETTLED if waits else thread_team.TICK)
            tally[LIMIT] = parts
        session.descents[worker].walk(
            self.whole, session.crew.board, tally, self.steps, self.states[worker], session.sync
        )
        if worker == 0 and tally[LEFT]:
            ended = time.perf_counter()
            session.slices.lasted(parts, ended - started)
            if ended - self.started_at > SETTLED:
                now, self.meanwhile = self.meanwhile, _nothing
                now()
        return bool(tally[LEFT])

    def _finish_chunk(self, part: int, chunks: int, parts: int) -> None:
        board = self.session.crew.board
        reset_queue(board, self.first, chunks, parts)
        board[NEXT] = part
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
        )

    def _terms_before(self, chunk: int) -> int:
        starts = self.whole.starts
        return int(starts[min(chunk, len(starts) - 1)] - starts[self.first])


def _nothing() -> None:
    """Nothing to do."""


def claims_per_chunk(starts: NDArray[Any], workers: int) -> int:
    """In how many parts chunks are claimed; alone one has no use for any.

    >>> claims_per_chunk(np.arange(0, 800_001, 8_000), 1), claims_per_chunk(np.arange(0, 800_001, 8_000), 16)
    (1, 6)
    """
    if workers == 1 or len(starts) < 2:
        return 1
    rows = max(FEWEST_ROWS, int(starts[-1] - starts[0]) // (PARTS_EACH * workers))
    return max(1, -(-int(starts[1] - starts[0]) // rows))


def replicas(session: Any) -> list[State]:
    """The parameters that each worker steps."""
    if not session.strategy.replicas or session.workers == 1:
        return [session.state] * session.workers
    return [tuple(part.copy("K") for part in session.state) for _ in range(session.workers)]


def average_replicas(moved: list[State], state: State) -> None:
    """Average replicas whose worker got something to do: the others would only dilute the mean."""
    if moved and moved[0] is not state:
        for part, *copies in zip(state, *moved, strict=True):
            np.mean(copies, axis=0, out=part)


class RoundRobinRunner(EpochRunner):
    """All workers walk the same chunk, each every n-th term, and apply them in order."""

    def run(self, tick: Callable[[int], None]) -> EpochSegment:
        session = self.session
        while self.next < len(self.walk) and not self.halt.is_set():
            chunk = self.walk[self.next]
            terms = len(chunk.order)
            rates = self.rates(self.done, terms)
            restart(session.sync)
            losses: list[float] = []

            def work(worker: int, chunk: Chunk = chunk, rates: Any = rates, losses: list[float] = losses) -> None:
                stride = session.workers
                pin_round_robin(worker)
                losses.append(session.descents[worker](chunk, rates, session.state, session.sync, worker, stride))

            self.watch([session.pool.submit(work, worker) for worker in range(session.workers)], tick)
            session.average(session.state)
            self.walk.done(self.next)
            self.next += 1
            self.count(terms, sum(losses))
        return self.leg()


def _done_at_once(work: Callable[..., None], *given: Any) -> Future[None]:
    """Do it in this thread, with an outcome as of another."""
    future: Future[None] = Future()
    try:
        work(*given)
    except BaseException as reason:
        future.set_exception(reason)
    else:
        future.set_result(None)
    return future
