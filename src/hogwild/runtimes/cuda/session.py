"""Session of a run on a GPU: the parameters in its memory, and launches of kernels for the segments of an epoch."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import Dataset, Epoch, EpochPlan
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.random_order import RandomOrder
from hogwild.errors import ParameterError
from hogwild.iterate_average import IterateAverage
from hogwild.kernels.cuda_device import CopiedArrays, DeviceError, check_device, copy_anew, to_device
from hogwild.kernels.cuda_jit import cuda, simulated
from hogwild.kernels.cuda_launch import STEPS, LaunchBuffer
from hogwild.problems.problem import RowProblem, State
from hogwild.rules.rule import Rule
from hogwild.runtimes.cuda.resident_rows import release_rows, resident
from hogwild.runtimes.shared_memory.epoch_runner import EpochSegment

SpreadRates = Callable[[int, int, int], Array]
"""Step sizes of equal parts of the next updates: (updates before, their number, parts) -> an array."""

ROWS_OF_A_LAUNCH = 2**20  # rows after which the clock and Ctrl-C are looked at


MOST_RESERVED = 2**26  # rows for whose order memory is reserved before the first launch

_COMPILED: set[Hashable] = set()  # keys of problems on a GPU whose kernels are compiled


class CudaSession:
    """Parameters of one run on a GPU.

    The host's copy of the parameters is brought up to date when it is asked for. ``state`` may be changed, so the next
    launch copies it back.
    """

    planned = buffers = None
    delays: tuple[()] = ()
    access = "free"
    alone = False
    alone_by_rule = False
    has_duals = False
    reads_in_any_order = True
    evaluates_samples = False
    needs_all_steps = False  # A launch has a few step sizes.
    precision = np.dtype(np.float32)
    workers = 1

    def __init__(self, problem: RowProblem, rule: Rule) -> None:
        check_device()
        found = problem.on_gpu(rule)
        if found is None:
            raise ParameterError(
                f"{type(problem).__name__} with {rule!r} does not run on a GPU: use runtime=Threads(). Linear models "
                "do, with the rules 'sgd', 'momentum', 'adagrad', 'ftrl' and 'adam'."
            )
        self.problem, self._rule, self._gpu = problem, rule, found
        self.mean: IterateAverage | None = None
        self._host: State = tuple(np.ascontiguousarray(part) for part in problem.start(rule))
        self._values = rule.values(self._host)
        self._parts: tuple[Any, ...] | None = None  # parameters on the GPU; None if the host's may be newer
        self._host_is_old = False  # whether those on the GPU are newer
        self._copied = CopiedArrays()  # of held-out rows
        self._in_order: dict[int, tuple[Dataset, Any, Any]] = {}  # data sets in memory, with their rows on the GPU
        self._launches = LaunchBuffer(problem.n_sums, min(problem.data.n_rows, MOST_RESERVED))
        self._upload = self._begin_upload()
        self.compile_seconds = self._compile()
        self._put()

    def _begin_upload(self) -> Future[Any] | None:
        """Copy rows in memory while the processor computes curvatures and chooses the step."""
        training = self.problem.training
        if not isinstance(training, InMemoryDataset) or simulated() or len(resident(self.problem)):
            return None
        thread = ThreadPoolExecutor(1, "hogwild-rows")
        copy = thread.submit(self._gpu.rows, training.rows, resident(self.problem))
        thread.shutdown(wait=False)
        return copy

    def _compile(self) -> float:
        started = time.perf_counter()
        if self._gpu.key not in _COMPILED:
            chunk, launches = self.problem.data.in_order()[0], self._launches
            rows, order = self._gpu.rows(chunk.rows[:1], copy_anew), launches.copied(chunk.order[:1])
            parts = self._gpu.put(tuple(part[:1] for part in self._host), copy_anew)
            self._gpu.descend(rows, order, 0, 0, launches.steps, parts, launches.sums)
            self._gpu.evaluate(rows, order, 0, parts, launches.sums)
            cuda.synchronize()
            _COMPILED.add(self._gpu.key)
        return time.perf_counter() - started

    def enable_replicas(self) -> None:
        """Do nothing: there are no replicas."""

    def close(self) -> None:
        """Release the GPU's memory, except for the rows of the problem."""
        self._parts, self._copied = None, CopiedArrays()
        self._in_order.clear()

    @property
    def state(self) -> State:
        """The parameters on the host, with the rule's state of each, which the caller may change."""
        found = self.state_to_read
        self._parts = None
        return found

    @property
    def state_to_read(self) -> State:
        """The parameters on the host, with the rule's state of each."""
        if self._parts is not None and self._host_is_old:
            self._gpu.get(self._parts, self._host)
            self._host_is_old = False
        return self._host

    def values(self) -> State:
        """Return a copy of the parameters alone, without the rule's state of each."""
        return tuple(part.copy() for part in self.current())

    def current(self) -> State:
        """Return the parameters alone."""
        assert self.state_to_read is self._host
        return self._values

    def take_objective(self) -> float:
        """Return 0: no rule on a GPU tracks the objective."""
        return 0.0

    def average(self, state: State) -> None:
        """Add the parameters to the mean of the iterates, if there is one."""
        if self.mean is not None:
            self.mean.add(state)

    def advance(
        self, epoch: Epoch, first: int, updates: int, rates: SpreadRates, halt: threading.Event,
        tick: Callable[[int], None], meanwhile: Callable[[], None] = lambda: None, as_one_chunk: bool = False,
    ) -> EpochSegment:  # fmt: skip
        """Train on the chunks of an epoch from ``first`` on, until the last or until ``halt`` is set."""
        sums, chunk, before, worst, interrupted = 0.0, first, updates, 0.0, False
        try:
            while chunk < len(epoch) and not halt.is_set():
                done, after, loss = self._launch(epoch, chunk, updates, rates, meanwhile)
                worst = max(worst, loss / max(1, after - updates)) if np.isfinite(loss) else np.nan
                chunk, updates, sums = done, after, sums + loss
                if self.mean is not None:
                    self.average(self.state_to_read)
                tick(updates)
                if not np.isfinite(loss):
                    break
        except KeyboardInterrupt:
            interrupted = True
        return EpochSegment(chunk, updates, sums, worst, interrupted, frozenset({0} if updates > before else ()))

    def _launch(
        self, epoch: Epoch, chunk: int, updates: int, rates: SpreadRates, meanwhile: Callable[[], None]
    ) -> tuple[int, int, float]:
        """Train on some chunks; return the number of the next chunk, the updates so far, and the summed loss."""
        whole, launches = epoch.whole(), self._launches
        if whole is None:
            part, first, last = epoch[chunk], 0, chunk + 1
            listed: Array | RandomOrder = part.order
            rows, count = self._resident(part.rows, trained=True), len(listed)
        else:
            rows, listed, (first, last) = self._resident(whole.rows, trained=True), whole.order, _range(whole, chunk)
            count = int(whole.starts[last]) - first
        if count == 0:  # A chunk of which no row was drawn.
            return last, updates, 0.0
        steps = rates(updates, count, STEPS)
        parts = self._put()
        if isinstance(listed, RandomOrder):
            order = launches.random(listed, first, count, steps)
        else:
            order = launches.listed(listed[first : first + count], steps)
        self._host_is_old = True
        self._gpu.descend(rows, order, 0, count, launches.steps, parts, launches.sums)
        if last == len(epoch):
            meanwhile()
        loss = float(launches.fetched()[0])
        if whole is None:
            epoch.done(chunk)
        return last, updates + count, loss

    def measure(self, data: Dataset, state: State) -> Any:
        """Evaluate the problem on all rows of a data set; return the sums over them."""
        parts = self._parts if state is self._values else None
        parts = tuple(to_device(part[:, :1]) for part in state) if parts is None else parts
        launches, found, epoch = self._launches, self._in_order.get(id(data)), data.in_order()
        if found is None and (whole := epoch.whole()) is not None:
            rows = self._resident(whole.rows, data is self.problem.data)
            found = self._in_order[id(data)] = data, rows, whole.order
        if found is not None:
            _, rows, listed = found
            # The order of all rows does not matter to sums.
            order = launches.numbered(len(listed)) if len(listed) == len(rows.labels) else launches.listed(listed)
            self._gpu.evaluate(rows, order, len(listed), parts, launches.sums)
        else:
            launches.clear()
            for number in range(len(epoch)):
                chunk = epoch[number]
                rows, order = self._gpu.rows(chunk.rows, copy_anew), launches.copied(chunk.order)
                self._gpu.evaluate(rows, order, len(chunk.order), parts, launches.sums)
                epoch.done(number)
        return launches.fetched()

    def _put(self) -> tuple[Any, ...]:
        """Return the parameters on the GPU; copy the host's if they may be newer."""
        if self._parts is None:
            self._parts = self._gpu.put(self._host, resident(self.problem))
        return self._parts

    def _resident(self, rows: CSRRows, trained: bool) -> Any:
        """Return rows in the memory of the GPU: those of the problem stay there, held-out ones until the run ends."""
        if not isinstance(self.problem.training, InMemoryDataset):
            return self._gpu.rows(rows, copy_anew)
        try:
            if self._upload is not None:
                self._upload.result()
            return self._gpu.rows(rows, resident(self.problem) if trained else self._copied)
        except DeviceError:  # Rows of other problems may be in the way.
            self._upload = None
            release_rows()
            return self._gpu.rows(rows, resident(self.problem) if trained else self._copied)


def _range(plan: EpochPlan, chunk: int) -> tuple[int, int]:
    """Return the place of the first row of a launch that begins with a chunk, and the number of the chunk after it."""
    starts = plan.starts
    last = int(np.searchsorted(starts, starts[chunk] + ROWS_OF_A_LAUNCH, side="right")) - 1
    return int(starts[chunk]), min(len(starts) - 1, max(chunk + 1, last))
