"""Implementation of ``hogwild.shared``: several workers run the user's own training loop on one shared model.

Every worker runs the whole script, as with ``torchrun``. The first process is worker 0, and starts the other workers
when it reaches the block. Each of them runs the script up to the block, and then replaces its tensors by those of
worker 0. At the end of the block the other workers suspend, so that only worker 0 runs the code that follows. When
worker 0 reaches another block, the other workers resume, run the code between the two blocks, and take part again.
"""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from hogwild.errors import ParameterError
from hogwild.keywords import advised
from hogwild.machine import MOST_WORKERS, usable_cores
from hogwild.registry import invalid_parameter
from hogwild.runtimes.processes import Processes
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.atomic_optimiser_step import fuse, needs_step_lock
from hogwild.runtimes.processes.optimiser_state import has_shareable_state
from hogwild.runtimes.processes.script import worker as script_worker
from hogwild.runtimes.processes.script.handle import WorkerHandle, counted_steps
from hogwild.runtimes.processes.script.peers import (
    PeerWorkers,
    ScriptHandshake,
    configure_worker,
    shared_tensors,
    signature,
)
from hogwild.runtimes.processes.script.worker import Script, ScriptWorker, current_script_worker, running_script
from hogwild.runtimes.processes.shared_counters import SharedCounters, wait_for_start
from hogwild.runtimes.processes.shared_tensors import SharedTensors, move_to_shared_memory
from hogwild.strategies.strategy import check_workers

T = TypeVar("T")
Train = Callable[[WorkerHandle, Any, Any], T]

NO_SCRIPT = (
    "There is no script that other workers could run again (a notebook, python -c, a test, another thread): put the "
    "loop into a function train(worker, net, optimizer) and call hogwild.shared(net, optimizer, workers=...).run(train)"
)

_blocks = 0  # number of blocks that this process has reached
_peers: PeerWorkers | None = None  # peer workers that run this script as well; None before the first block


@advised(
    workers="Write workers=4.",
    rule="Give it as the second argument: hogwild.shared(net, optimizer).",
    seed="Write seed=0.",
)
def shared(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    workers: int | None = None,
    *,
    runtime: Processes | None = None,
    seed: int | None = None,
    keep: bool = True,
) -> Shared:
    """Share a model and its optimiser's state among worker processes that run the user's own training loop.

    Use the result in a ``with`` statement, whose block all workers run, or call its method ``run`` with a function.

    Parameters
    ----------
    net : torch.nn.Module
        Model to train. Its parameters and buffers are moved to shared memory in place.
    optimizer : torch.optim.Optimizer
        Optimiser of the model. Its state is moved to shared memory as well.
    workers : int, optional
        Number of workers, with the calling process. The default is one for each usable core.
    runtime : Processes, default Processes()
        Reaction to the crash of a worker, timeouts in seconds, and threads of each worker.
    seed : int, optional
        Seed of the shuffles. The default is PyTorch's seed (``torch.manual_seed``).
    keep : bool, default True
        Whether the other workers suspend at the end of the block until the script reaches another block. With False
        they terminate.

    Returns
    -------
    Shared
        A context manager, whose value is the :class:`WorkerHandle` of this worker.

    Raises
    ------
    ParameterError
        If a parameter has the wrong type or is outside its range.

    Examples
    --------
    >>> net = nn.Linear(1, 1)
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> x = torch.ones(64, 1)
    >>> with shared(net, optimizer, workers=1) as worker:
    ...     for epoch in range(10):
    ...         for x_, y_ in worker.split(torch.utils.data.TensorDataset(x, 3 * x), batch=8):
    ...             optimizer.zero_grad()
    ...             nn.functional.mse_loss(net(x_), y_).backward()
    ...             optimizer.step()
    >>> round(net(torch.ones(1)).item(), 2), worker.steps
    (3.0, 80)
    """
    if not isinstance(net, nn.Module):
        raise invalid_parameter("net", "a torch.nn.Module", type(net).__name__)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise invalid_parameter("optimizer", "a torch optimiser", type(optimizer).__name__)
    if runtime is not None and not isinstance(runtime, Processes):
        raise invalid_parameter("runtime", "Processes(...)", runtime)
    if runtime is not None and runtime.delays_workers:
        raise ParameterError("In a loop of your own, wait where you want the delay: leave out 'delay' of Processes().")
    of_net = {id(parameter) for parameter in net.parameters()}
    if of_net and not any(id(each) in of_net for group in optimizer.param_groups for each in group["params"]):
        raise ParameterError(
            "The optimizer has no parameter of the net, and would train another one: make it of net.parameters()."
        )
    check_workers(workers, MOST_WORKERS)
    return Shared(net, optimizer, workers, runtime or Processes(), seed, keep)


@dataclass(eq=False)
class Shared:
    """Block of code, or with ``run`` a function, that several workers run on one shared model.

    The fields are the parameters of :func:`shared`.
    """

    net: nn.Module
    optimizer: torch.optim.Optimizer
    workers: int | None
    runtime: Processes
    seed: int | None
    keep: bool
    _within: AbstractContextManager[WorkerHandle] | None = None

    def __enter__(self) -> WorkerHandle:
        peer = current_script_worker()
        self._within = self._lead_script() if peer is None else _follow(peer, self.net, self.optimizer)
        return self._within.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._within is not None
        self._within.__exit__(kind, error, trace)

    def run(self, train: Train[T]) -> T:
        """Call ``train(worker, net, optimizer)`` in every worker, and wait until all workers have finished.

        Use this method in notebooks, and wherever else there is no script that other workers could run again.

        Parameters
        ----------
        train : callable
            Function of the :class:`WorkerHandle`, the model and the optimiser.

        Returns
        -------
        object
            The result of ``train`` in worker 0.

        Raises
        ------
        WorkerError
            If a worker crashes, or is not ready within the runtime's ``startup_timeout``.

        Examples
        --------
        >>> net = nn.Linear(1, 1)
        >>> shared(net, torch.optim.SGD(net.parameters()), workers=1).run(lambda worker, net, optimizer: worker.rank)
        0
        """
        workers = self.workers or usable_cores()
        handshake, counters, arena = self._handshake(workers, keep=False), SharedCounters(workers), self._move_tensors()
        try:
            peers = PeerWorkers(counters, self.runtime, arena, _call, (train, self.net, self.optimizer, handshake))
            try:
                with self._lead(peers, handshake) as worker:
                    return train(worker, self.net, self.optimizer)
            finally:
                peers.close()
        finally:
            arena.close()

    @contextmanager
    def _lead_script(self) -> Iterator[WorkerHandle]:
        """Run the block as worker 0, with peer workers that run the same script."""
        peers = self._script_peers()
        handshake, arena = self._handshake(peers.counters.workers, self.keep), self._move_tensors()
        try:
            peers.counters.reset()
            peers.send_handshake(arena, handshake)
            with self._lead(peers, handshake) as worker:
                yield worker
        except BaseException:
            peers.close()
            raise
        finally:
            arena.close()
        if not self.keep or peers.counters.workers == 1:
            peers.close()

    @contextmanager
    def _lead(self, peers: PeerWorkers, handshake: ScriptHandshake) -> Iterator[WorkerHandle]:
        before = torch.get_num_threads()
        worker = WorkerHandle(0, peers.counters, handshake.seed, peers.check)
        try:
            if peers.counters.workers > 1:
                torch.set_num_threads(handshake.threads)
            peers.begin(self.runtime)
            with counted_steps(worker, self.optimizer, handshake.locked):
                yield worker
            peers.wait()
        finally:
            torch.set_num_threads(before)

    def _script_peers(self) -> PeerWorkers:
        global _peers
        script = running_script()
        workers = self.workers or (usable_cores() if script else 1)
        if script is None and workers > 1:
            raise ParameterError(f"{NO_SCRIPT}.")
        if script is None and self.workers is None:
            warnings.warn(f"{NO_SCRIPT}. This time there is one worker.", UserWarning, stacklevel=5)
        if workers == 1:
            return self._start(workers, script)
        if _peers is None:
            _peers = self._start(workers, script)
            atexit.register(_peers.close)
        if _peers.ended:
            raise ParameterError(
                "The other workers ended with the block before, because of keep=False or an error: they cannot take "
                "part in this one. Leave out keep=False, or use hogwild.shared(...).run(train)."
            )
        if _peers.counters.workers != workers:
            raise ParameterError(
                f"All blocks of a script have the same number of workers. Got {workers} "
                f"after {_peers.counters.workers}."
            )
        return _peers

    def _start(self, workers: int, script: Script | None) -> PeerWorkers:
        # Peer workers start without tensors, because the handshake of each block carries that block's tensors.
        counters, nothing = SharedCounters(workers), move_to_shared_memory([])
        try:
            return PeerWorkers(counters, self.runtime, nothing, script_worker.run_script_worker, script)
        finally:
            nothing.close()

    def _handshake(self, workers: int, keep: bool) -> ScriptHandshake:
        global _blocks
        _blocks += 1
        if workers > 1 and not has_shareable_state(self.optimizer):
            name = type(self.optimizer).__name__
            warnings.warn(f"The state of {name} cannot be shared: each worker has a state of its own.",
                          UserWarning, stacklevel=5)  # fmt: skip
        if workers > 1:
            fuse(self.optimizer)
        given = abs(torch.initial_seed() if self.seed is None else self.seed)
        seed = int(np.random.SeedSequence([given, _blocks]).generate_state(1)[0])
        locked = workers > 1 and needs_step_lock(self.optimizer)
        return ScriptHandshake(
            signature(self.net, self.optimizer), seed, self.runtime.threads_for(workers), locked, keep
        )

    def _move_tensors(self) -> SharedTensors:
        return move_to_shared_memory(shared_tensors(self.net, self.optimizer))


@contextmanager
def _follow(peer: ScriptWorker, net: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[WorkerHandle]:
    """Run the block as a peer worker that runs the script again."""
    handshake = peer.join(net, optimizer)
    worker = WorkerHandle(peer.rank, peer.counters, handshake.seed)
    try:
        with counted_steps(worker, optimizer, handshake.locked):
            yield worker
    except BaseException:
        peer.fail()
    peer.finish()


def _call(
    work: tuple[Train[Any], nn.Module, torch.optim.Optimizer, ScriptHandshake],
    rank: int,
    counters: SharedCounters,
    **_: object,
) -> None:
    """Call the function of :meth:`Shared.run` as a peer worker."""
    train, net, optimizer, handshake = work
    configure_worker(handshake, rank)
    wait_for_start(counters, rank)
    worker = WorkerHandle(rank, counters, handshake.seed)
    with counted_steps(worker, optimizer, handshake.locked):
        train(worker, net, optimizer)
    counters.counts[rank, at.STATE] = at.FINISHED
