"""Workers as threads of this process: Python threads inside compiled code that holds no lock of Python's."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Dataset, Epoch, Whole
from hogwild.errors import ParameterError
from hogwild.kernels.claims import HALT, LOSS, NEXT, TERMS, WORST, new_claims, new_tally
from hogwild.runtimes.polyak import Mean

State = tuple[NDArray[Any], ...]
Rates = Callable[[int, int], NDArray[Any]]  # (updates done before, how many now) -> the step of each

TICK = 0.05  # seconds between two looks at the clock and at Ctrl-C


@dataclass(frozen=True, slots=True)
class Leg:
    """What came of walking some chunks: where the next leg begins, and what was met on the way."""

    next_chunk: int
    updates: int
    loss: float  # summed over the leg's terms, each just before its own update
    worst: float  # the largest mean loss of one chunk
    interrupted: bool  # Ctrl-C was pressed


@dataclass(frozen=True, slots=True)
class Threads:
    """Run workers as threads on one array in memory."""

    def session(self, problem: Any, rule: Any, strategy: Any, workers: int) -> Session:
        """Allocate the parameters, start the threads and compile the inner loop."""
        return Session(problem, rule, strategy, workers)


class Session:
    """One run's parameters and the threads that work on them."""

    def __init__(self, problem: Any, rule: Any, strategy: Any, workers: int) -> None:
        self.problem, self.strategy, self.workers = problem, strategy, workers
        self.state: State = problem.start(rule)
        self.mean: Mean | None = None
        self._values = getattr(rule, "values", _first_columns)
        self._take_met = getattr(rule, "take_met", None)
        self._descend = problem.descent(rule, strategy.access, 1 if strategy.replicas else workers)
        self._sync = problem.sync(strategy.access)
        self.buffers = problem.buffers(rule, getattr(strategy, "buffer", 0), workers)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="hogwild")
        self.compile_seconds = self._compile()

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _compile(self) -> float:
        """Descend along no term at all and measure nothing, which compiles both loops."""
        started = time.perf_counter()
        chunk = self.problem.data.epoch(0, 0)[0]
        nothing = Chunk(chunk.rows, chunk.order[:0])
        try:
            for descend in self.descents()[:1]:
                descend(nothing, np.empty(0, self.precision), self.state, self._sync)
            self.problem.measure(nothing, self.state)
        except NumbaError as error:
            raise ParameterError(
                "A function that is part of this run, such as a loss of your own, cannot be compiled. It must be plain "
                f"arithmetic on numbers that returns the loss and its derivative. Numba says: {_said(error)}"
            ) from error
        return time.perf_counter() - started

    @property
    def precision(self) -> Any:
        """The type of the steps: that of the most precise parameters."""
        return np.result_type(*self.state)

    def descents(self) -> list[Any]:
        """How each worker descends."""
        if self.buffers is None:
            return [self._descend] * self.workers
        return [self.buffers.descent(worker) for worker in range(self.workers)]

    def values(self) -> State:
        """A copy of the parameters alone, without what the rule remembers."""
        state: State = self._values(self.state)
        return state

    def met(self) -> float:
        """The objective summed over the terms since the last call, if the rule adds it up."""
        return 0.0 if self._take_met is None else float(self._take_met(self.state))

    def advance(
        self, walk: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event, tick: Callable[[int], None]
    ) -> Leg:
        """Walk the chunks of an epoch from ``first`` on, until the last or until ``halt`` is set.

        ``tick`` is called now and then from this thread with the number of terms done so far. An exception in it
        halts the workers at the end of their chunks before it goes on its way; Ctrl-C ends the leg there.
        """
        if self.strategy.access == "turns":
            return _InTurns(self, walk, first, updates, rates, halt).run(tick)
        whole = walk.whole() if self.mean is None and hasattr(self._descend, "walk") else None
        if whole is not None:
            return _AllInMemory(self, walk, first, updates, rates, halt, whole).run(tick)
        return _AtOnce(self, walk, first, updates, rates, halt).run(tick)

    def average(self, state: State) -> None:
        """Let the parameters at the end of a chunk take part in the mean, if there is one."""
        if self.mean is not None:
            self.mean.add(state if self._values is _first_columns else self._values(state))

    def measure(self, data: Dataset, state: State) -> NDArray[np.float64]:
        """Add up what the problem measures over all chunks, on all workers."""
        walk = data.in_order()

        def one(number: int) -> NDArray[np.float64]:
            sums: NDArray[np.float64] = self.problem.measure(walk[number], state)
            walk.done(number)
            return sums

        # Summed in the order of the chunks, so that the same parameters always give the same figures.
        total: NDArray[np.float64] = np.sum(list(self._pool.map(one, range(len(walk)))), axis=0)
        return total


def _first_columns(state: State) -> State:
    return tuple(part[:, :1].copy() for part in state)


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


def spread(worker: int) -> None:
    """Move this thread to a core of its own; it may be moved again.

    Threads that wake up together often do so on one core, and a system that looks around only every few milliseconds
    lets them wait for each other there for as long as an epoch takes.
    """
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) > 1:
            with contextlib.suppress(OSError):  # it is a favour, not a need
                os.sched_setaffinity(0, {allowed[worker % len(allowed)]})
                os.sched_setaffinity(0, allowed)


def _said(error: NumbaError) -> str:
    """The telling line of one of numba's long messages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("During:", "File", "<source", "Failed in nopython"))]
    return telling[0] if telling else "nothing"


class _Walk:
    """What both ways of walking chunks keep count of."""

    def __init__(
        self, session: Session, walk: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event
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
                ended, waiting = wait(futures, timeout=TICK, return_when=FIRST_EXCEPTION)
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

    def leg(self) -> Leg:
        return Leg(self.next, self.done, self.loss, self.worst, self.interrupted)


class _AtOnce(_Walk):
    """Workers claim chunks from one counter and never wait for each other."""

    def run(self, tick: Callable[[int], None]) -> Leg:
        session = self.session
        states = [session.state] * session.workers
        if session.strategy.replicas and session.workers > 1:
            states = [tuple(part.copy() for part in session.state) for _ in range(session.workers)]
        if session.buffers is not None:
            session.buffers.gather(session.state, self.rates(self.started, 1)[0])
        # One chunk is walked to its end whatever happens: then there is nobody to wake up and wait for.
        submit = _done_at_once if session.workers == 1 == len(self.walk) - self.next else session._pool.submit
        self.watch([submit(self.work, state, worker) for worker, state in enumerate(states)], tick)
        if session.buffers is not None:
            session.buffers.scatter(session.state)
        if session.strategy.replicas and session.workers > 1 and self.moved:
            for part, *replicas in zip(session.state, *self.moved.values(), strict=True):
                np.mean(replicas, axis=0, out=part)
        return self.leg()

    def work(self, state: State, worker: int) -> None:
        session = self.session
        descend = session.descents()[worker]
        if session.workers > 1:
            spread(worker)
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
            loss = descend(chunk, self.rates(before, terms), state, session._sync)
            session.average(state)
            self.walk.done(number)
            self.count(terms, loss)
        if session.buffers is not None:
            session.buffers.settle(worker)


class _AllInMemory(_AtOnce):
    """The same where the whole epoch is in memory: chunks are claimed in compiled code."""

    def __init__(self, *what: Any) -> None:
        super().__init__(*what[:-1])
        self.whole: Whole = what[-1]
        self.first, self.before, self.claims = self.next, self.started, new_claims(self.next)
        left = int(self.whole.starts[-1] - self.whole.starts[self.first])
        self.steps = self.rates(self.before, left)
        self.tallies = [new_tally() for _ in range(self.session.workers)]

    def work(self, state: State, worker: int) -> None:
        session = self.session
        if session.workers > 1:
            spread(worker)
        tally = self.tallies[worker]
        session.descents()[worker].walk(self.whole, self.claims, tally, self.steps, state, session._sync)
        if session.buffers is not None:
            session.buffers.settle(worker)
        if tally[TERMS]:
            self.moved[id(state)] = state

    def watch(self, futures: list[Future[None]], tick: Callable[[int], None]) -> None:
        def looked(_: int) -> None:
            """Let those who ask know how far it is, and workers know if it is to end."""
            tick(self.before + self._terms())
            if self.halt.is_set():
                self.stop()

        super().watch(futures, looked)
        self.next, self.done = self._claimed(), self.before + self._terms()
        self.loss = float(sum(tally[LOSS] for tally in self.tallies))
        worst = [float(tally[WORST]) for tally in self.tallies]
        self.worst = max(worst) if all(map(math.isfinite, worst)) else math.nan

    def stop(self) -> None:
        super().stop()
        self.claims[HALT] = 1

    def _claimed(self) -> int:
        return min(int(self.claims[NEXT]), len(self.whole.starts) - 1)

    def _terms(self) -> int:
        starts = self.whole.starts
        return int(starts[self._claimed()] - starts[self.first])


class _InTurns(_Walk):
    """All workers walk the same chunk, each every n-th term, and apply them in order."""

    def run(self, tick: Callable[[int], None]) -> Leg:
        session = self.session
        while self.next < len(self.walk) and not self.halt.is_set():
            chunk = self.walk[self.next]
            terms = len(chunk.order)
            rates = self.rates(self.done, terms)
            session._sync[0] = 0
            losses: list[float] = []

            def work(worker: int, chunk: Chunk = chunk, rates: Any = rates, losses: list[float] = losses) -> None:
                stride = session.workers
                spread(worker)
                losses.append(session._descend(chunk, rates, session.state, session._sync, worker, stride))

            self.watch([session._pool.submit(work, worker) for worker in range(session.workers)], tick)
            session.average(session.state)
            self.walk.done(self.next)
            self.next += 1
            self.count(terms, sum(losses))
        return self.leg()
