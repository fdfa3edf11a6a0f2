"""Workers as threads of this process: Python threads inside compiled code that holds no lock of Python's."""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Dataset, Epoch, EpochPlan
from hogwild.errors import ParameterError
from hogwild.jit import is_cached
from hogwild.kernels.work_queue import LEFT, LIMIT, halt, new_tally, reset_queue
from hogwild.problems.bound_kernel import QueueKernel
from hogwild.rules.rule import Rule
from hogwild.runtimes.runtime import Runtime
from hogwild.runtimes.shared_memory import thread_team
from hogwild.runtimes.shared_memory.conflict_monitor import ConflictMonitor
from hogwild.runtimes.shared_memory.epoch_runner import (
    ChunkedRunner,
    CompiledRunner,
    EpochSegment,
    Rates,
    RoundRobinRunner,
    State,
)
from hogwild.runtimes.shared_memory.iterate_average import IterateAverage
from hogwild.runtimes.shared_memory.slice_tuner import SliceTuner
from hogwild.runtimes.shared_memory.thread_team import ThreadTeam
from hogwild.strategies.strategy import Strategy

LONG = 2.0  # seconds that one has worked alone for want of a loop, in this run or others: then it is compiled
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_alone_for: defaultdict[Any, float] = defaultdict(float)  # seconds, by the loop that was wanting


@dataclass(frozen=True, slots=True)
class Threads(Runtime):
    """Run workers as threads that share the parameters in memory."""

    shares_memory = True

    def session(
        self, problem: Any, rule: Rule, strategy: Strategy, workers: int, watching: ConflictMonitor | None = None
    ) -> Session:
        """Allocate the parameters, start the threads and compile the inner loop, which may be watched."""
        return Session(problem, rule, strategy, workers, watching)


class Session:
    """One run's parameters and the threads that work on them.

    Workers who are to have buffers begin when the loop for that is compiled: until then one works alone, because
    several without buffers are hardly ever faster.
    """

    def __init__(
        self, problem: Any, rule: Rule, strategy: Strategy, workers: int, watching: ConflictMonitor | None = None
    ) -> None:
        self.problem, self.strategy = problem, strategy
        self.state: State = problem.start(rule)
        self.mean: IterateAverage | None = None
        self._rule = rule
        self.planned: Any = (
            None if watching else problem.hot_replicas(rule, strategy.buffer, workers)
        )  # those there will be
        self.buffers: Any = None  # those there are
        self.workers = workers if self.planned is None else 1
        self.access = strategy.access if self.workers > 1 else "free"  # one worker has nobody to wait for
        self.alone = workers == 1 or bool(strategy.replicas)  # whether each worker has parameters to itself
        descent = partial(problem.kernel, rule, self.access, 1 if self.alone else self.workers, self.alone)
        self.sync = problem.sync_buffer(self.access)
        self.descents = [descent(eye=eye) for eye in watching.eyes] if watching else [descent()] * self.workers
        self.descend = self.descents[0]
        self.crew = ThreadTeam(self.workers)
        self.slices, self._surveyed_slices = SliceTuner(), SliceTuner()  # that this thread walks, and measures
        self._looked = time.perf_counter()
        self._compiling: Future[None] | None = None
        try:
            self.compile_seconds = self._compile()
        except BaseException:
            self.close()
            raise

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """Threads for walks with Python in between."""
        return ThreadPoolExecutor(self.workers, thread_name_prefix="hogwild")

    def close(self) -> None:
        """Let the threads go."""
        self._let_go()
        if self._compiling is not None:
            wait([self._compiling])  # a process must not end while its compiler is at work

    def _let_go(self) -> None:
        self.crew.close()
        if "pool" in self.__dict__:
            self.__dict__.pop("pool").shutdown(wait=True, cancel_futures=True)

    def _compile(self) -> float:
        """Descend along no term at all and measure nothing, which compiles both loops."""
        started = time.perf_counter()
        try:
            self.descend(self._nothing, np.empty(0, self.precision), self.state, self.sync)
            self.problem.measure(self._nothing, self.state)
        except NumbaError as error:
            raise ParameterError(
                "A function that is part of this run, such as a loss of your own, cannot be compiled. It must be plain "
                f"arithmetic on numbers that returns the loss and its derivative. Numba says: {_said(error)}"
            ) from error
        return time.perf_counter() - started

    @cached_property
    def _nothing(self) -> Chunk:
        chunk = self.problem.data.in_order()[0]
        return Chunk(chunk.rows, chunk.order[:0])

    def take_buffers(self) -> None:
        """Begin with buffers, if they are planned and their loop is on the disk or a number of rows was asked for."""
        if self.planned is not None and (self.strategy.buffer != "auto" or is_cached(self.planned.kernel)):
            self._compile_buffers()
            self._go_over()

    def _compile_buffers(self) -> None:
        self.planned.compile(self._nothing, tuple(part.copy("K") for part in self.state))

    def _watch(self, tick: Callable[[int], None], halt: threading.Event, updates: int) -> None:
        """Have the loop with buffers compiled if the run is a long one, and end this leg when that is done."""
        tick(updates)
        now, before = time.perf_counter(), self._looked
        self._looked = now
        _alone_for[self.planned.kernel] += now - before
        if self._compiling is None and _alone_for[self.planned.kernel] > LONG:
            self._compiling = _begun(self._compile_buffers)
        if self._compiling is not None and self._compiling.done():
            halt.set()

    def _go_over(self) -> None:
        """Go over to buffers, and to all workers."""
        self._let_go()
        self.buffers, self.workers = self.planned, self.planned.workers
        self.descents = [self.planned.descent(worker) for worker in range(self.workers)]
        self.crew, self.slices, self._surveyed_slices = ThreadTeam(self.workers), SliceTuner(), SliceTuner()

    @property
    def precision(self) -> Any:
        """The type of the steps: that of the most precise parameters."""
        return np.result_type(*self.state)

    def values(self) -> State:
        """A copy of the parameters alone, without what the rule remembers."""
        return tuple(part.copy() for part in self._rule.values(self.state))

    def met(self) -> float:
        """The objective summed over the terms since the last call, if the rule adds it up."""
        return self._rule.take_objective(self.state)

    def advance(
        self, walk: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event, tick: Callable[[int], None],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> EpochSegment:  # fmt: skip
        """Walk the chunks of an epoch from ``first`` on, until the last or until ``halt`` is set.

        ``tick`` is called now and then from this thread with the number of terms done so far. An exception in it
        halts the workers at the end of their chunks before it goes on its way; Ctrl-C ends the leg there. ``meanwhile``
        may be called once by this thread, while the others are at work.
        """
        if self._compiling is not None and self.buffers is None and self._compiling.done():
            self._compiling.result()
            self._go_over()
        if self.planned is not self.buffers:
            self._looked = time.perf_counter()
            tick = partial(self._watch, tick, halt)
        if self.access == "turns":
            return RoundRobinRunner(self, walk, first, updates, rates, halt).run(tick)
        whole = walk.whole() if self.mean is None and isinstance(self.descend, QueueKernel) else None
        if whole is not None:
            return CompiledRunner(self, walk, first, updates, rates, halt, whole).run(tick, meanwhile)
        return ChunkedRunner(self, walk, first, updates, rates, halt).run(tick)

    def average(self, state: State) -> None:
        """Let the parameters at the end of a chunk take part in the mean, if there is one."""
        if self.mean is not None:
            if self.buffers is not None:
                self.buffers.scatter(state)  # what workers have merged so far: else it would be that of an epoch ago
            # With a rule for one worker rows are not the values themselves; else the first column is.
            self.mean.add(self._rule.values(state) if self._rule.single_worker else state)

    def measure(self, data: Dataset, state: State) -> NDArray[np.float64]:
        """Add up what the problem measures over all chunks, on all workers."""
        walk = data.in_order()
        # A crew that has just measured still looks out for more, and workers that take turns need all cores there are.
        whole = walk.whole() if self.access != "turns" else None
        # Summed in the order of the chunks, so that the same parameters always give the same figures.
        total: NDArray[np.float64] = np.sum(
            self._measured(walk, state) if whole is None else self._surveyed(whole, state), axis=0
        )
        return total

    def _measured(self, walk: Epoch, state: State) -> list[NDArray[np.float64]]:

        def one(number: int) -> NDArray[np.float64]:
            sums: NDArray[np.float64] = self.problem.measure(walk[number], state)
            walk.done(number)
            return sums

        return list(self.pool.map(one, range(len(walk))))

    def _surveyed(self, whole: EpochPlan, state: State) -> NDArray[np.float64]:
        """The same where all is in memory: chunks are claimed in compiled code."""
        chunks, board = len(whole.starts) - 1, self.crew.board
        sums = np.zeros((chunks, self.problem.n_sums))

        def work(worker: int) -> bool:
            tally, started, parts = new_tally(), time.perf_counter(), 0
            if worker == 0:
                tally[LIMIT] = parts = self._surveyed_slices.lasting(thread_team.TICK)
            self.problem.evaluate_parts(whole, board, tally, sums, state)
            if worker == 0 and tally[LEFT]:
                self._surveyed_slices.lasted(parts, time.perf_counter() - started)
            return bool(tally[LEFT])

        reset_queue(board, 0, chunks)
        try:
            self.crew.run(work)
        except BaseException:
            halt(board)
            self.crew.finish()
            raise
        return sums


def _begun(task: Callable[[], None]) -> Future[None]:
    """Have a task done in a thread of its own."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="hogwild-compiler")
    future = pool.submit(task)
    pool.shutdown(wait=False)
    return future


def _said(error: NumbaError) -> str:
    """The telling line of one of numba's long messages, without the colours that they have where colorama is."""
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("During:", "File", "<source", "Failed in nopython"))]
    return telling[0] if telling else "nothing"
