"""``Threads`` runtime: Python threads that run compiled code without the GIL (Hogwild, Recht et al. 2011)."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Dataset, Epoch, EpochPlan
from hogwild.data.packing.mapped_arrays import check_mapped_files
from hogwild.data.slices import copied
from hogwild.delays import DelayOption, DelayStream, per_worker
from hogwild.errors import ParameterError
from hogwild.iterate_average import IterateAverage
from hogwild.jit import is_cached
from hogwild.kernels.work_queue import LEFT, LIMIT, halt, new_tally, reset_queue
from hogwild.lazy import cached_property
from hogwild.problems.problem import BoundKernel, QueueKernel, RowProblem
from hogwild.rules.rule import Rule
from hogwild.runtimes.runtime import Runtime
from hogwild.runtimes.shared_memory import thread_team
from hogwild.runtimes.shared_memory.conflict_monitor import ConflictMonitor
from hogwild.runtimes.shared_memory.epoch_runner import (
    ChunkedRunner,
    CompiledRunner,
    DelayedRunner,
    EpochSegment,
    Rates,
    RoundRobinRunner,
    State,
    WorkerDelays,
)
from hogwild.runtimes.shared_memory.missing_kernels import count_seconds, keep_seconds, seconds_without
from hogwild.runtimes.shared_memory.thread_team import SliceTuner, ThreadTeam
from hogwild.runtimes.state_copy import StateCopy, copied_state
from hogwild.strategies.strategy import Strategy

LONG = 2.0  # seconds of training by one worker, over all runs on this machine, after which a missing kernel is compiled
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Threads(Runtime):
    """Runtime of worker threads that share the parameters in the memory of one process (Hogwild).

    Parameters
    ----------
    delay : float, str, Delay, or mapping of int to these, default 0.0
        Seconds that a worker waits with each of its updates, for all workers or by worker number (`hogwild.delays`).
        The worker waits between the read of a row's coordinates and their write, so that its update becomes stale.
        Delays below 0.2 milliseconds add up, and are waited together. Delayed workers have no hot replicas. Where a
        limit, a record or a checkpoint ends a segment of an epoch, at most 64 rows are trained on without delay.

    Raises
    ------
    ParameterError
        If a delay is negative or unknown.

    Examples
    --------
    >>> Threads(delay="2=0.001").delay
    {2: Always(seconds=0.001)}

    References
    ----------
    Recht, Ré, Wright and Niu, "Hogwild!: a lock-free approach to parallelizing stochastic gradient descent", 2011.
    """

    delay: DelayOption = 0.0

    shares_memory = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", per_worker(self.delay))

    def __repr__(self) -> str:
        return f"Threads(delay={self.delay!r})" if self.delays_workers else "Threads()"

    def session(
        self, problem: RowProblem, rule: Rule, strategy: Strategy, workers: int,
        watching: ConflictMonitor | None = None, seed: int = 0,
    ) -> Session:  # fmt: skip
        """Allocate the parameters, and compile the kernels.

        Parameters
        ----------
        problem : Problem
            Objective and data.
        rule : Rule
            Update rule.
        strategy : Strategy
            Access to the parameters, hot replicas and averaging.
        workers : int
            Number of threads.
        watching : ConflictMonitor, optional
            Counters of conflicts; with them the kernels count conflicts and are slower.
        seed : int, default 0
            Seed of random delays.

        Returns
        -------
        Session
            The parameters and the thread team of one run.

        Raises
        ------
        ParameterError
            If a function of the user, such as a loss, cannot be compiled.
        """
        return Session(problem, rule, strategy, workers, watching, self.delay_streams(seed, workers))


class Session:
    """Parameters of one run, and the threads that update them.

    Where hot replicas (``buffers``) are planned, several workers begin when the kernel for hot replicas is compiled.
    Until then one worker trains alone, because several workers without hot replicas are hardly ever faster.
    """

    reads_in_any_order = False  # Rows in the order of an epoch are read faster than others.
    evaluates_samples = True  # Evaluation of all rows takes about as long as an epoch.
    needs_all_steps = True  # Each row has a step size.
    penalty_tells_finite = False  # Not all parameters are penalised.

    def __init__(
        self, problem: RowProblem, rule: Rule, strategy: Strategy, workers: int,
        watching: ConflictMonitor | None = None, streams: list[DelayStream] | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.strategy = problem, strategy
        self.state: State = problem.start(rule)
        self.mean: IterateAverage | None = None
        self._rule = rule
        # Hot replicas that the run uses once their kernel is compiled; None if the run uses none.
        plain = watching is not None or streams is not None
        self.planned: Any = None if plain else problem.hot_replicas(rule, strategy.buffer, workers)
        self.buffers: Any = None  # hot replicas in use; None before their kernel is compiled
        self.workers = workers if self.planned is None else 1
        # A single worker needs no synchronisation.
        self.access: str = strategy.access if self.workers > 1 else "free"
        if streams is not None:
            self.access = "delayed"
        self.alone = workers == 1 or bool(strategy.replicas)  # whether each worker has parameters of its own
        kernel: Callable[..., BoundKernel] = problem.kernel  # Only some problems take conflict counters.
        descent = partial(kernel, rule, self.access, 1 if self.alone else self.workers, self.alone)
        self.sync = problem.sync_buffer(self.access)
        self.delays = [WorkerDelays(stream, problem.sync_buffer(self.access)) for stream in streams or ()]
        self.descents: list[Any] = (
            [descent(counters=counters) for counters in watching.counters] if watching else [descent()] * self.workers
        )
        self.descend = self.descents[0]
        # Replicas of the present epoch, for a strategy with replicas and an epoch with records within it, and the
        # numbers of the workers that have changed theirs. None: the next segment begins with new replicas.
        self.kept_replicas: tuple[list[State], set[int]] | None = None
        self.team = ThreadTeam(self.workers)
        # Slice sizes of the main thread: one tuner for training, one for evaluation.
        self.slices, self._evaluation_slices = SliceTuner(), SliceTuner()
        self._last_check = time.perf_counter()
        self._compiling: Future[None] | None = None
        try:
            self.compile_seconds = self._compile()
        except BaseException:
            self.close()
            raise

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """The thread pool for epochs whose chunks are claimed from Python."""
        return ThreadPoolExecutor(self.workers, thread_name_prefix="hogwild")

    @property
    def is_compiling(self) -> bool:
        """Whether the kernel of hot replicas is being compiled, so that the next run has it."""
        return self._compiling is not None

    def close(self) -> None:
        """Terminate the threads. A compilation in progress goes on, for the next run."""
        if self.planned is not self.buffers:
            keep_seconds(self.planned.kernel.loop)
        self._end_threads()

    def _end_threads(self) -> None:
        self.team.close()
        if "pool" in self.__dict__:
            self.__dict__.pop("pool").shutdown(wait=True, cancel_futures=True)

    def _compile(self) -> float:
        """Compile the kernels of training and evaluation by calls with no terms; return the seconds it took."""
        started = time.perf_counter()
        try:
            self.descend(self._nothing, np.empty(0, self.precision), self.state, self.sync)
            self.problem.measure(self._nothing, self.state)
        except NumbaError as error:
            raise ParameterError(
                "A function that is part of this run, such as a loss of your own, cannot be compiled. It must be plain "
                f"arithmetic on numbers that returns the loss and its derivative. Numba says: {_first_line(error)}"
            ) from error
        return time.perf_counter() - started

    @cached_property
    def _nothing(self) -> Chunk:
        chunk = self.problem.data.here().in_order()[0]
        return Chunk(chunk.rows, chunk.order[:0])

    def enable_replicas(self) -> None:
        """Begin with hot replicas, if they are planned and their kernel is cached on disk.

        If the user has set the number of rows between merges, compile the kernel now instead of during the run.
        """
        if self.planned is not None and (self.strategy.buffer != "auto" or is_cached(self.planned.kernel.loop)):
            self._compile_buffers()
            self._switch_to_replicas()

    def _compile_buffers(self) -> None:
        self.planned.compile(self._nothing, tuple(part.copy("K") for part in self.state))

    def _monitor_compilation(self, tick: Callable[[int], None], halt: threading.Event, updates: int) -> None:
        """Call ``tick``; start to compile the kernel of hot replicas after ``LONG`` seconds of training by one worker.

        When the compilation is finished, end this segment, so that the next one uses hot replicas.
        """
        tick(updates)
        self._count_seconds()
        if self._compiling is None and seconds_without(self.planned.kernel.loop) > LONG:
            self._compiling = _start_in_thread(self._compile_buffers)
        if self._compiling is not None and self._compiling.done():
            halt.set()

    def _count_seconds(self) -> None:
        """Count the seconds since the last call as trained by one worker, for lack of the kernel of hot replicas."""
        now, before = time.perf_counter(), self._last_check
        self._last_check = now
        count_seconds(self.planned.kernel.loop, now - before)

    def _switch_to_replicas(self) -> None:
        """Switch to hot replicas and to all workers."""
        self._end_threads()
        self.buffers, self.workers = self.planned, self.planned.workers
        self.descents = [self.planned.descent(worker) for worker in range(self.workers)]
        self.team, self.slices, self._evaluation_slices = ThreadTeam(self.workers), SliceTuner(), SliceTuner()

    @property
    def alone_by_rule(self) -> bool:
        """Whether the rule works alone, along the path of textbooks, on which every update has a step size."""
        return self._rule.single_worker

    @property
    def has_duals(self) -> bool:
        """Whether the state has a dual variable for each row."""
        return self._rule.has_duals

    @property
    def precision(self) -> np.dtype[Any]:
        """The floating-point type of the step sizes: that of the most precise parameters."""
        return np.result_type(*self.state)

    @property
    def state_to_read(self) -> State:
        """The parameters, with the rule's state of each, for callers that do not change them."""
        return self.state

    @property
    def present(self) -> State:
        """The parameters alone, for evaluation by this session."""
        return self.current()

    def penalty(self, values: State) -> float:
        """Return the penalty of parameters."""
        return float(self.problem.penalty(values))

    def copied_state(self, earlier: StateCopy | None) -> StateCopy:
        """Return a copy of the parameters, in the memory of an earlier copy if there is one."""
        return copied_state(self.state, earlier)

    def values(self) -> State:
        """Return a copy of the parameters alone, without the rule's state of each."""
        return tuple(copied(part) for part in self.current())

    def current(self) -> State:
        """Return the parameters alone, which are not copied where the rule allows it."""
        return self._rule.values(self.state)

    def take_objective(self) -> float:
        """Return the objective summed over the terms since the last call, if the rule tracks it."""
        return self._rule.take_objective(self.state)

    def advance(
        self, epoch: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event, tick: Callable[[int], None],
        meanwhile: Callable[[], None] = lambda: None, as_one_chunk: bool = False,
    ) -> EpochSegment:  # fmt: skip
        """Train on the chunks of an epoch from ``first`` on, until the last or until ``halt`` is set.

        This thread calls ``tick`` about every ``thread_team.TICK`` seconds, with the number of updates so far. After an
        exception in ``tick``, workers stop at the end of their chunks, and the exception propagates. Ctrl-C ends the
        segment at the end of these chunks. This thread may call ``meanwhile`` once, while the other workers train.

        With ``as_one_chunk`` the chunks are few rows between two records: all workers share them, and the mean of the
        iterates gets the parameters at their end alone.
        """
        if self._compiling is not None and self.buffers is None and self._compiling.done():
            self._compiling.result()
            self._switch_to_replicas()
        if self.planned is not self.buffers:
            self._last_check = time.perf_counter()
            tick = partial(self._monitor_compilation, tick, halt)
        if self.delays:
            return DelayedRunner(self, epoch, first, updates, rates, halt).run(tick)
        if self.access == "turns":
            return RoundRobinRunner(self, epoch, first, updates, rates, halt).run(tick)
        at_once = (self.mean is None or as_one_chunk) and isinstance(self.descend, QueueKernel)
        whole = epoch.whole() if at_once else None
        if whole is not None:
            return CompiledRunner(self, epoch, first, updates, rates, halt, whole).run(tick, meanwhile)
        self.kept_replicas = None
        return ChunkedRunner(self, epoch, first, updates, rates, halt).run(tick)

    def average(self, state: State) -> None:
        """Add the parameters at the end of a chunk to the mean of the iterates, if there is one."""
        if self.mean is not None:
            if self.buffers is not None:
                # Without this copy of the merged hot coordinates, ``state`` would have those of an epoch ago.
                self.buffers.scatter(state)
            # The first column of the state has the values, except with a rule for a single worker.
            self.mean.add(self._rule.values(state) if self._rule.single_worker else state)

    def measure(self, data: Dataset, state: State) -> NDArray[np.float64]:
        """Evaluate the problem on all chunks with all workers; return the sums over chunks."""
        epoch = data.in_order()
        # After an evaluation, threads of the team spin for up to 1 millisecond in wait of the next task. Workers that
        # take turns need all cores, so they evaluate in the thread pool instead.
        whole = epoch.whole() if self.access != "turns" else None
        # The sum is in the order of the chunks, so that equal parameters always give equal results.
        total: NDArray[np.float64] = np.sum(
            self._evaluate_chunks(epoch, state) if whole is None else self._evaluate_whole(whole, state), axis=0
        )
        check_mapped_files()
        return total

    def _evaluate_chunks(self, epoch: Epoch, state: State) -> list[NDArray[np.float64]]:

        def one(number: int) -> NDArray[np.float64]:
            sums: NDArray[np.float64] = self.problem.measure(epoch[number], state)
            epoch.done(number)
            return sums

        return list(self.pool.map(one, range(len(epoch))))

    def _evaluate_whole(self, whole: EpochPlan, state: State) -> NDArray[np.float64]:
        """Return the sums of each chunk of an epoch that is wholly in memory; workers claim chunks in compiled code."""
        chunks, queue = len(whole.starts) - 1, self.team.queue
        sums = np.zeros((chunks, self.problem.n_sums))

        def work(worker: int) -> bool:
            tally, started, parts = new_tally(), time.perf_counter(), 0
            if worker == 0:
                tally[LIMIT] = parts = self._evaluation_slices.parts_for(thread_team.TICK)
            self.problem.evaluate_parts(whole, queue, tally, sums, state)
            if worker == 0 and tally[LEFT]:
                self._evaluation_slices.record(parts, time.perf_counter() - started)
            return bool(tally[LEFT])

        reset_queue(queue, 0, chunks)
        try:
            self.team.run(work)
        except BaseException:
            halt(queue)
            self.team.finish()
            raise
        return sums


def _start_in_thread(task: Callable[[], None]) -> Future[None]:
    """Run a task in a thread of its own; return its future."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="hogwild-compiler")
    future = pool.submit(task)
    pool.shutdown(wait=False)
    _compilations.add(future)
    future.add_done_callback(_compilations.discard)
    return future


# Compilations in progress. The interpreter waits for their threads when it exits, and so does a fork: a child process
# would wait for ever for the compiler's lock, which a thread of its parent holds.
_compilations: set[Future[None]] = set()
if sys.platform != "win32":
    os.register_at_fork(before=lambda: wait(list(_compilations)))


def _first_line(error: NumbaError) -> str:
    """Return the first informative line of a message of numba, without the colour codes that colorama adds."""
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines() if line.strip()]
    informative = [line for line in lines if not line.startswith(("During:", "File", "<source", "Failed in nopython"))]
    return informative[0] if informative else "nothing"
