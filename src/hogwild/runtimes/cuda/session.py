"""Session of a run on a GPU: the parameters in its memory, and launches of kernels for the segments of an epoch."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows, bytes_of
from hogwild.data.dataset import Dataset, Epoch, EpochPlan
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.random_order import RandomOrder
from hogwild.data.slices import copied
from hogwild.errors import ParameterError
from hogwild.iterate_average import IterateAverage
from hogwild.kernels.cuda_device import CopiedArrays, DeviceError, DeviceRows, check_device, copy_anew, driver_errors
from hogwild.kernels.cuda_jit import cuda, simulated
from hogwild.kernels.cuda_launch import STEPS, LaunchBuffer
from hogwild.problems.averaged_on_gpu import AveragedOnGPU
from hogwild.problems.on_gpu import ProblemOnGPU
from hogwild.problems.problem import RowProblem, State
from hogwild.rules.rule import Rule
from hogwild.runtimes.cuda.mapped_rows import MappedRows
from hogwild.runtimes.cuda.parts_copy import PartsCopy
from hogwild.runtimes.cuda.resident_rows import release_rows, resident
from hogwild.runtimes.cuda.row_pieces import RowPieces
from hogwild.runtimes.cuda.row_stream import Batch, RowStream
from hogwild.runtimes.shared_memory.epoch_runner import EpochSegment
from hogwild.runtimes.state_copy import StateCopy, copied_state

SpreadRates = Callable[[int, int, int], Array]
"""Step sizes of equal parts of the next updates: (updates before, their number, parts) -> an array."""

# Rows after which the clock and Ctrl-C are looked at, and non-zeros where rows are short.
ROWS_OF_A_LAUNCH, NONZEROS_OF_A_LAUNCH = 2**20, 2**26
STREAMED = 2**27  # bytes of a batch of rows that do not stay on the GPU
BATCHES = 3  # batches there
MOST_OF_MEMORY = 0.8  # of the GPU's memory, for rows that stay
MOST_RESERVED = 2**26  # rows for whose order memory is reserved before the first launch

_COMPILED: set[Hashable] = set()  # keys of problems on a GPU whose kernels are compiled


class CudaSession:
    """Parameters of one run on a GPU.

    The host's copy of the parameters is brought up to date when it is asked for. ``state`` may be changed, so the next
    launch copies it back. ``in_step``: all rows in flight take one step together. ``shares``: parts of the rows that
    train parameters of their own, whose mean is taken after each launch.
    """

    planned = buffers = None
    delays: tuple[()] = ()
    access = "free"
    alone = False
    alone_by_rule = False
    has_duals = False
    needs_all_steps = False  # A launch has a few step sizes.
    precision = np.dtype(np.float32)
    workers = 1

    @driver_errors()
    def __init__(
        self, problem: RowProblem, rule: Rule, memory: int | None = None, in_step: bool = False, shares: int = 1
    ) -> None:
        check_device()
        found = problem.on_gpu(rule, in_step)
        if found is None:
            raise ParameterError(
                f"{type(problem).__name__} with {rule!r} does not run on a GPU{' in step' if in_step else ''}: use "
                "runtime=Threads(). Linear models, factorisation machines, MatrixCompletion and GraphCut of few parts "
                "do, with the rules 'sgd', 'momentum', 'adagrad', 'ftrl' and 'adam', and in step linear models with "
                "one output."
            )
        self.problem, self._rule = problem, rule
        self._gpu: ProblemOnGPU = found if shares == 1 else AveragedOnGPU(found, shares)
        self.mean: IterateAverage | None = None
        self._host: State = tuple(np.asarray(part, order=found.host_order) for part in problem.start(rule))
        self._values = rule.values(self._host)
        self._parts: tuple[Any, ...] | None = None  # parameters on the GPU; None if the host's may be newer
        self._host_is_old = False  # whether those on the GPU are newer
        self._copied = CopiedArrays()  # of held-out rows
        self._in_order: dict[int, tuple[Dataset, Any, Any]] = {}  # data sets in memory, with their rows on the GPU
        self._launches = LaunchBuffer(problem.n_sums, min(problem.data.n_rows, MOST_RESERVED))
        batch = STREAMED if memory is None else max(1, min(STREAMED, memory // BATCHES))
        self._stream = RowStream(found, batch)
        self._pieces: RowPieces | None = None  # copies of such rows, where kernels take rows as they are
        self._mapped = self._map_rows(
            memory, batch
        )  # rows in memory that are too large for the GPU; None if they are not
        self._streamed = self._mapped is None and _is_too_large(problem.training, memory)
        self.reads_in_any_order = not self._streamed
        # Rows that cross the bus in every epoch cross it once more for an evaluation of all of them.
        self.evaluates_samples = self._streamed or self._mapped is not None
        self.penalty_tells_finite = False  # whether the last penalty was not finite if any parameter was not
        self._upload = self._begin_upload()
        self.compile_seconds = self._compile()
        self._put()

    def _map_rows(self, memory: int | None, batch: int) -> MappedRows | None:
        training, room = self.problem.training, _room_for_rows(memory)
        if not isinstance(training, InMemoryDataset) or bytes_of(training.rows) <= room:
            return None
        mapped = MappedRows(room)
        try:
            there = self._gpu.rows(training.rows, mapped)
        except DeviceError:  # The rows are copied in every epoch instead.
            mapped.close()
            return None
        if isinstance(there, DeviceRows):
            self._pieces = RowPieces(training.rows, there, batch)
        return mapped

    def _begin_upload(self) -> Future[Any] | None:
        """Copy rows in memory while the processor computes curvatures and chooses the step."""
        training = self.problem.training
        if self._streamed or self._mapped is not None or simulated() or len(resident(self.problem)):
            return None
        assert isinstance(training, InMemoryDataset)
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
            self._gpu.penalty(parts, copy_anew)
            cuda.synchronize()
            _COMPILED.add(self._gpu.key)
        return time.perf_counter() - started

    def enable_replicas(self) -> None:
        """Do nothing: there are no replicas."""

    def close(self) -> None:
        """Release the GPU's memory, except for the rows of the problem."""
        self._parts, self._copied = None, CopiedArrays()
        self._in_order.clear()
        self._stream.close()
        if self._pieces is not None:
            self._pieces.close()
        if self._mapped is not None:
            self._mapped.close()

    @property
    def state(self) -> State:
        """The parameters on the host, with the rule's state of each, which the caller may change."""
        found = self.state_to_read
        self._parts = None
        return found

    @property
    @driver_errors()
    def state_to_read(self) -> State:
        """The parameters on the host, with the rule's state of each."""
        if self._parts is not None and self._host_is_old:
            self._gpu.get(self._parts, self._host)
            self._host_is_old = False
        return self._host

    @property
    def present(self) -> State:
        """The parameters alone, for evaluation by this session; those on the GPU may be newer."""
        return self._values

    @driver_errors()
    def penalty(self, values: State) -> float:
        """Return the penalty of parameters."""
        found = self._gpu.penalty(self._put(), resident(self.problem)) if values is self._values else None
        self.penalty_tells_finite = found is not None
        if found is None:
            found = self.problem.penalty(self.current() if values is self._values else values)
        return float(found)

    @driver_errors()
    def copied_state(self, earlier: StateCopy | None) -> StateCopy:
        """Return a copy of the parameters, in the memory of an earlier copy if there is one."""
        if earlier is None:
            try:
                return PartsCopy(self._gpu, self._put(), self._host)
            except DeviceError:  # There is no room for a second copy.
                return copied_state(self.state_to_read, None)
        if not isinstance(earlier, PartsCopy):
            return copied_state(self.state_to_read, earlier)
        earlier.take(self._put())
        return earlier

    def values(self) -> State:
        """Return a copy of the parameters alone, without the rule's state of each."""
        return tuple(copied(part) for part in self.current())

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

    @driver_errors()
    def advance(
        self, epoch: Epoch, first: int, updates: int, rates: SpreadRates, halt: threading.Event,
        tick: Callable[[int], None], meanwhile: Callable[[], None] = lambda: None, as_one_chunk: bool = False,
    ) -> EpochSegment:  # fmt: skip
        """Train on the chunks of an epoch from ``first`` on, until the last or until ``halt`` is set."""
        sums, chunk, before, worst, interrupted = 0.0, first, updates, 0.0, False
        try:
            for batch in self._batches(epoch, first):
                if halt.is_set():
                    break
                loss = self._launch(batch, updates, rates, meanwhile if batch.end == len(epoch) else _nothing)
                worst = max(worst, loss / max(1, batch.count)) if np.isfinite(loss) else np.nan
                chunk, updates, sums = batch.end, updates + batch.count, sums + loss
                if self.mean is not None:
                    self.average(self.state_to_read)
                tick(updates)
                if not np.isfinite(loss):
                    break
        except KeyboardInterrupt:
            interrupted = True
        return EpochSegment(chunk, updates, sums, worst, interrupted, frozenset({0} if updates > before else ()))

    def _batches(self, epoch: Epoch, chunk: int) -> Iterator[Batch]:
        """Yield the rows of launches, from a chunk on."""
        if self._streamed:
            yield from self._stream.batches(epoch, chunk)
            return
        whole = epoch.whole()
        if self._pieces is not None and whole is not None and isinstance(whole.order, RandomOrder):
            yield from self._pieces.batches(whole, whole.order, chunk)
            return
        while chunk < len(epoch):
            if whole is None:  # Step sizes depend on time.
                part, first, end = epoch[chunk], 0, chunk + 1
                yield Batch(self._resident(part.rows, trained=True), part.order, first, len(part.order), end)
            else:
                rows, (first, end) = self._resident(whole.rows, trained=True), _range(whole, chunk)
                yield Batch(rows, whole.order, first, int(whole.starts[end]) - first, end)
            chunk = end

    def _launch(self, batch: Batch, updates: int, rates: SpreadRates, meanwhile: Callable[[], None]) -> float:
        """Train on some rows; return their summed loss."""
        if batch.count == 0:  # A chunk of which no row was drawn.
            return 0.0
        launches, parts, steps = self._launches, self._put(), rates(updates, batch.count, STEPS)
        if isinstance(batch.order, RandomOrder):
            order = launches.random(batch.order, batch.first, batch.count, steps)
        else:
            order = launches.listed(batch.order[batch.first : batch.first + batch.count], steps)
        self._host_is_old = True
        self._gpu.descend(batch.rows, order, 0, batch.count, launches.steps, parts, launches.sums)
        meanwhile()
        return float(launches.fetched()[0])

    @driver_errors()
    def measure(self, data: Dataset, state: State) -> Any:
        """Evaluate the problem on all rows of a data set; return the sums over them."""
        parts = self._put() if state is self._values else self._gpu.put_values(state)
        launches, found = self._launches, self._in_order.get(id(data))
        trained = data is self.problem.data
        if self._pieces is not None and data is self.problem.training:
            order = launches.numbered(self._pieces.batch_rows)
            for rows, count in self._pieces.in_order():
                self._gpu.evaluate(rows, order, count, parts, launches.sums)
                launches.wait()
            return launches.fetched()
        if found is None and not (trained and self._streamed) and (whole := data.in_order().whole()) is not None:
            rows = self._resident(whole.rows, trained)
            found = self._in_order[id(data)] = data, rows, whole.order
        if found is not None:
            _, rows, listed = found
            # The order of all rows does not matter to sums.
            order = launches.numbered(len(listed)) if len(listed) == len(rows.labels) else launches.listed(listed)
            self._gpu.evaluate(rows, order, len(listed), parts, launches.sums)
            return launches.fetched()
        launches.clear()
        for batch in self._stream.batches(data.in_order(), 0):
            self._gpu.evaluate(batch.rows, launches.copied(batch.order), batch.count, parts, launches.sums)
            launches.wait()
        return launches.fetched()

    def _put(self) -> tuple[Any, ...]:
        """Return the parameters on the GPU; copy the host's if they may be newer."""
        if self._parts is None:
            self._parts = self._gpu.put(self._host, resident(self.problem))
        return self._parts

    def _resident(self, rows: CSRRows, trained: bool) -> Any:
        """Return rows in the memory of the GPU: those of the problem stay there, held-out ones until the run ends.

        Rows of the problem that are too large are those in the memory of the host.
        """
        if trained and self._mapped is not None:
            return self._gpu.rows(rows, self._mapped)
        try:
            if self._upload is not None:
                self._upload.result()
            return self._gpu.rows(rows, resident(self.problem) if trained else self._copied)
        except DeviceError:  # Rows of other problems may be in the way.
            self._upload = None
            release_rows()
            return self._gpu.rows(rows, resident(self.problem) if trained else self._copied)


def _is_too_large(training: Dataset, memory: int | None) -> bool:
    """Return whether rows are on disk, or too large for the GPU."""
    return not isinstance(training, InMemoryDataset) or bytes_of(training.rows) > _room_for_rows(memory)


def _room_for_rows(memory: int | None) -> int:
    """Return the number of bytes that rows may take on the GPU."""
    if memory is not None:
        return memory
    total = STREAMED if simulated() else cuda.current_context().get_memory_info()[1]
    return int(MOST_OF_MEMORY * total)


def _nothing() -> None:
    pass


def _range(plan: EpochPlan, chunk: int) -> tuple[int, int]:
    """Return the place of the first row of a launch that begins with a chunk, and the number of the chunk after it."""
    starts = plan.starts
    most = max(ROWS_OF_A_LAUNCH, NONZEROS_OF_A_LAUNCH * len(plan.rows) // max(1, plan.rows.nonzeros))
    last = int(np.searchsorted(starts, starts[chunk] + most, side="right")) - 1
    return int(starts[chunk]), min(len(starts) - 1, max(chunk + 1, last))
