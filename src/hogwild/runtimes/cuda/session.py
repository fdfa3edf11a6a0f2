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
from hogwild.kernels.cuda_device import CopiedArrays, check_device, copy_anew, to_device
from hogwild.kernels.cuda_jit import cuda
from hogwild.problems.problem import RowProblem, State
from hogwild.rules.rule import Rule
from hogwild.runtimes.shared_memory.epoch_runner import EpochSegment, Rates

ROWS_OF_A_LAUNCH = 2**20  # rows after which the clock and Ctrl-C are looked at
STEPS_OF_A_LAUNCH = 16  # step sizes of a launch


class CudaSession:
    """Parameters of one run on a GPU.

    The host's copy of the parameters (``state``) is brought up to date when it is asked for. It may be changed, so the
    next launch copies it back.
    """

    planned = buffers = None
    delays: tuple[()] = ()
    access = "free"
    alone = False
    alone_by_rule = False
    has_duals = False
    reads_in_any_order = True
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
        self._device: tuple[Any, ...] | None = None  # None if the host's copy may be newer
        self._copied = CopiedArrays()
        self._in_memory = isinstance(problem.training, InMemoryDataset)
        self.compile_seconds = self._compile()

    def _compile(self) -> float:
        started = time.perf_counter()
        chunk = self.problem.data.in_order()[0]
        rows, order, sums = self._gpu.rows(chunk.rows[:1], copy_anew), to_device(chunk.order[:1]), self._no_sums()
        state = tuple(to_device(part.copy()) for part in self._host)
        self._gpu.descend(rows, order, 0, 0, to_device(np.zeros(1, np.float32)), state, sums)
        self._gpu.evaluate(rows, order, 0, tuple(to_device(part[:1, :1]) for part in self._host), sums)
        cuda.synchronize()
        return time.perf_counter() - started

    def enable_replicas(self) -> None:
        """Do nothing: there are no replicas."""

    def close(self) -> None:
        """Release the GPU's memory."""
        self._device, self._copied = None, CopiedArrays()

    @property
    def state(self) -> State:
        """The parameters on the host, with the rule's state of each."""
        if self._device is not None:
            for part, there in zip(self._host, self._device, strict=True):
                part[:] = there.copy_to_host()
            self._device = None
        return self._host

    def values(self) -> State:
        """Return a copy of the parameters alone, without the rule's state of each."""
        return tuple(part.copy() for part in self.current())

    def current(self) -> State:
        """Return the parameters alone."""
        return self._rule.values(self.state)

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
                self.average(self.state if self.mean is not None else self._host)
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
            rows, order = self._resident(part.rows), np.ascontiguousarray(part.order)
        else:
            starts = whole.starts
            last = int(np.searchsorted(starts, starts[chunk] + ROWS_OF_A_LAUNCH, side="right")) - 1
            last = min(len(starts) - 1, max(chunk + 1, last))
            rows = self._resident(whole.rows)
            order = np.ascontiguousarray(whole.order[starts[chunk] : starts[last]])
        count = len(order)
        if count == 0:  # A chunk of which no row was drawn.
            return last, updates, 0.0
        steps = np.array([float(rates(updates + count * part // STEPS_OF_A_LAUNCH, 1)[0])
                          for part in range(min(count, STEPS_OF_A_LAUNCH))], np.float32)  # fmt: skip
        if self._device is None:
            self._device = tuple(to_device(part) for part in self._host)
        sums = self._no_sums()
        self._gpu.descend(rows, to_device(order), 0, count, to_device(steps), self._device, sums)
        if last == len(epoch):
            meanwhile()
        loss = float(sums.copy_to_host()[0])
        if whole is None:
            epoch.done(chunk)
        return last, updates + count, loss

    def measure(self, data: Dataset, state: State) -> Any:
        """Evaluate the problem on all rows of a data set; return the sums over them."""
        values = tuple(to_device(part[:, :1]) for part in state)
        sums, epoch = self._no_sums(), data.in_order()
        whole = epoch.whole()
        if whole is not None:
            order = to_device(np.ascontiguousarray(whole.order))
            self._gpu.evaluate(self._resident(whole.rows), order, len(whole.order), values, sums)
        else:
            for number in range(len(epoch)):
                chunk = epoch[number]
                order = to_device(np.ascontiguousarray(chunk.order))
                self._gpu.evaluate(self._resident(chunk.rows), order, len(chunk.order), values, sums)
                epoch.done(number)
        return sums.copy_to_host()

    def _no_sums(self) -> Any:
        return to_device(np.zeros(self.problem.n_sums))

    def _resident(self, rows: CSRRows) -> Any:
        """Return rows in the memory of the GPU, where they stay until the run ends if they are in memory here."""
        return self._gpu.rows(rows, self._copied if self._in_memory else copy_anew)
