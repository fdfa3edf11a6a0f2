"""Session of a run on a GPU: the parameters in its memory, and launches of kernels for the segments of an epoch."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.data.dataset import Dataset, Epoch
from hogwild.data.in_memory import InMemoryDataset
from hogwild.errors import ParameterError
from hogwild.iterate_average import IterateAverage
from hogwild.kernels.cuda_device import CopiedArrays, DeviceError, check_device, copy_anew, to_device
from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.cuda_orders import OrderBuffer
from hogwild.problems.problem import RowProblem, State
from hogwild.rules.rule import Rule
from hogwild.runtimes.cuda.resident_rows import release_rows, resident
from hogwild.runtimes.shared_memory.epoch_runner import EpochSegment, Rates

ROWS_OF_A_LAUNCH = 2**20  # rows after which the clock and Ctrl-C are looked at
STEPS_OF_A_LAUNCH = 16  # step sizes of a launch


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
                f"{type(problem).__name__} with {rule!r} does not run on a GPU: use runtime=Threads(). Linear problems "
                "with one output do, with the rules 'sgd', 'momentum', 'adagrad', 'ftrl' and 'adam'."
            )
        self.problem, self._rule, self._gpu = problem, rule, found
        self.mean: IterateAverage | None = None
        self._host: State = tuple(np.ascontiguousarray(part) for part in problem.start(rule))
        self._values = rule.values(self._host)
        self._parts: tuple[Any, ...] | None = None  # parameters on the GPU; None if the host's may be newer
        self._host_is_old = False  # whether those on the GPU are newer
        self._copied = CopiedArrays()  # of held-out rows
        self._in_order: dict[int, tuple[Dataset, Any, Any]] = {}  # data sets in memory, with their rows on the GPU
        self._sums = to_device(np.zeros(problem.n_sums))
        self._steps = to_device(np.zeros(STEPS_OF_A_LAUNCH, np.float32))
        self._orders = OrderBuffer()
        self.compile_seconds = self._compile()

    def _compile(self) -> float:
        started, compiled = time.perf_counter(), resident(self.problem).compiled
        if self._rule not in compiled:
            chunk = self.problem.data.in_order()[0]
            rows, order = self._gpu.rows(chunk.rows[:1], copy_anew), to_device(chunk.order[:1])
            parts = self._gpu.put(tuple(part[:1] for part in self._host))
            self._gpu.descend(rows, order, 0, 0, self._steps, parts, self._sums)
            self._gpu.evaluate(rows, order, 0, parts, self._sums)
            cuda.synchronize()
            compiled.add(self._rule)
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
        self, epoch: Epoch, first: int, updates: int, rates: Rates, halt: threading.Event, tick: Callable[[int], None],
        meanwhile: Callable[[], None] = lambda: None, as_one_chunk: bool = False,
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
        self, epoch: Epoch, chunk: int, updates: int, rates: Rates, meanwhile: Callable[[], None]
    ) -> tuple[int, int, float]:
        """Train on some chunks; return the number of the next chunk, the updates so far, and the summed loss."""
        whole = epoch.whole()
        if whole is None:
            part, last = epoch[chunk], chunk + 1
            rows, count = self._resident(part.rows, trained=True), len(part.order)
            order = self._orders.listed(part.order)
        else:
            starts = whole.starts
            last = int(np.searchsorted(starts, starts[chunk] + ROWS_OF_A_LAUNCH, side="right")) - 1
            last = min(len(starts) - 1, max(chunk + 1, last))
            rows = self._resident(whole.rows, trained=True)
            count = int(starts[last] - starts[chunk])
            order = self._orders.part(whole.order, int(starts[chunk]), count)
        if count == 0:  # A chunk of which no row was drawn.
            return last, updates, 0.0
        steps = np.array([float(rates(updates + count * part // STEPS_OF_A_LAUNCH, 1)[0])
                          for part in range(STEPS_OF_A_LAUNCH)], np.float32)  # fmt: skip
        self._steps.copy_to_device(steps)
        if self._parts is None:
            self._parts = self._gpu.put(self._host)
        sums, self._host_is_old = self._no_sums(), True
        self._gpu.descend(rows, order, 0, count, self._steps, self._parts, sums)
        if last == len(epoch):
            meanwhile()
        loss = float(sums.copy_to_host()[0])
        if whole is None:
            epoch.done(chunk)
        return last, updates + count, loss

    def measure(self, data: Dataset, state: State) -> Any:
        """Evaluate the problem on all rows of a data set; return the sums over them."""
        parts = self._parts if state is self._values else None
        parts = tuple(to_device(part[:, :1]) for part in state) if parts is None else parts
        sums, found = self._no_sums(), self._in_order.get(id(data))
        epoch = data.in_order()
        if found is None and (whole := epoch.whole()) is not None:
            rows = self._resident(whole.rows, data is self.problem.data)
            found = self._in_order[id(data)] = data, rows, whole.order
        if found is not None:
            _, rows, listed = found
            all_rows = len(listed) == len(rows.labels)
            order = self._orders.numbered(len(listed)) if all_rows else self._orders.listed(listed)
            self._gpu.evaluate(rows, order, len(listed), parts, sums)
        else:
            for number in range(len(epoch)):
                chunk = epoch[number]
                rows, order = self._gpu.rows(chunk.rows, copy_anew), self._orders.listed(chunk.order)
                self._gpu.evaluate(rows, order, len(chunk.order), parts, sums)
                epoch.done(number)
        return sums.copy_to_host()

    def _no_sums(self) -> Any:
        self._sums.copy_to_device(np.zeros(self.problem.n_sums))
        return self._sums

    def _resident(self, rows: CSRRows, trained: bool) -> Any:
        """Return rows in the memory of the GPU: those of the problem stay there, held-out ones until the run ends."""
        if not isinstance(self.problem.training, InMemoryDataset):
            return self._gpu.rows(rows, copy_anew)
        copied = resident(self.problem).rows if trained else self._copied
        try:
            return self._gpu.rows(rows, copied)
        except DeviceError:  # Rows of other problems may be in the way.
            release_rows()
            return self._gpu.rows(rows, resident(self.problem).rows if trained else self._copied)
