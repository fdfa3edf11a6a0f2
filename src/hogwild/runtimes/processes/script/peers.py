"""Peer workers of worker 0, which trains as well and monitors them between its steps, and the handshake of all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hogwild.errors import ParameterError, WorkerError
from hogwild.runtimes.processes import Processes, rng_state
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.atomic_optimiser_step import fuse
from hogwild.runtimes.processes.optimiser_state import allocate_state
from hogwild.runtimes.processes.process_group import ProcessGroup, WorkerProcess, worker_error
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_memory import SharedBlock
from hogwild.runtimes.processes.shared_pickle import SharedArrays, dumps, frame
from hogwild.runtimes.processes.shared_tensors import CPU, SharedTensors, return_freed_memory

Signature = tuple[tuple[str, str], ...]  # name and description of each shared tensor, and of the optimiser


@dataclass(frozen=True, slots=True)
class ScriptHandshake:
    """Options that worker 0 sends to the other workers at the start of a block."""

    signature: Signature  # description of worker 0's model and optimiser
    seed: int  # seed of the shuffles and of the workers' random generators
    threads: int  # arithmetic threads of each worker
    locked: bool  # whether only one worker at a time may take a step
    keep: bool  # whether workers wait for another block after this one


def shared_tensors(net: nn.Module, optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Return all tensors to share: parameters, buffers, further parameters of the optimiser, and its state.

    >>> net = nn.Linear(2, 1)
    >>> [tuple(tensor.shape) for tensor in shared_tensors(net, torch.optim.SGD(net.parameters(), momentum=0.9))]
    [(1, 2), (1,), (1, 2), (1,)]
    """
    found = [*net.parameters(), *net.buffers(), *_further_parameters(net, optimiser)]
    return [*found, *allocate_state(optimiser)]


def signature(net: nn.Module, optimiser: torch.optim.Optimizer) -> Signature:
    """Return the description of a model and its optimiser, which must be the same in every worker.

    >>> net = nn.Linear(2, 1)
    >>> signature(net, torch.optim.SGD(net.parameters()))[-1]
    ('the optimiser', 'SGD of 2 parameters, with a state of 0 tensors')
    """
    described = [(f"parameter {name!r}", _describe(tensor)) for name, tensor in net.named_parameters()]
    described += [(f"buffer {name!r}", _describe(tensor)) for name, tensor in net.named_buffers()]
    further = _further_parameters(net, optimiser)
    described += [("a parameter that only the optimiser has", _describe(tensor)) for tensor in further]
    sizes = " and ".join(str(len(group["params"])) for group in optimiser.param_groups)
    state = len(allocate_state(optimiser))
    what = f"{type(optimiser).__name__} of {sizes} parameters, with a state of {state} tensors"
    return (*described, ("the optimiser", what))


def attach(net: nn.Module, optimiser: torch.optim.Optimizer, arena: SharedTensors, handshake: ScriptHandshake) -> None:
    """Replace the tensors of this process's model and optimiser by the shared tensors of worker 0.

    Raise :class:`ParameterError` if the script has made a different model or optimiser in this process.
    """
    fuse(optimiser)
    ours = signature(net, optimiser)
    if ours != handshake.signature:
        raise ParameterError(
            "The script has made something else in this process than in the first one: "
            f"{_difference(ours, handshake)}. Every worker runs the script from its beginning: it must make the same "
            "model each time."
        )
    for tensor, shared in zip(shared_tensors(net, optimiser), arena.tensors, strict=True):
        tensor.data = shared.data


def configure_worker(handshake: ScriptHandshake, rank: int) -> None:
    """Set the number of arithmetic threads of this process, and seed its random generators by its rank."""
    torch.set_num_threads(handshake.threads)
    rng_state.seed(handshake.seed, rank)


def _further_parameters(net: nn.Module, optimiser: torch.optim.Optimizer) -> list[Tensor]:
    known = {id(tensor) for tensor in net.parameters()}
    stepped: list[Tensor] = [tensor for group in optimiser.param_groups for tensor in group["params"]]
    return [tensor for tensor in stepped if id(tensor) not in known]


def _describe(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)}, {tensor.dtype}, {tensor.device}"


def _difference(ours: Signature, handshake: ScriptHandshake) -> str:
    theirs = handshake.signature
    for (name, here), (other, there) in zip(ours, theirs, strict=False):
        if name != other:
            return f"{name} instead of {other}"
        if here != there:
            return f"{name} is {here} instead of {there}"
    return f"it has {len(ours) - 1} tensors instead of {len(theirs) - 1}"


CHECK_SECONDS = 0.05  # seconds between two checks for crashed workers while worker 0 trains
WAIT_SECONDS = 0.005  # seconds between two checks for crashed workers while worker 0 waits


class PeerWorkers:
    """Workers 1, 2, ... of a block: worker 0 starts them, detects their crashes, and waits for them at the end."""

    def __init__(
        self, counters: SharedCounters, runtime: Processes, arena: SharedTensors, run: Callable[..., None], work: object
    ) -> None:
        self.counters, self._runtime, self._owner = counters, runtime, os.getpid()
        self._begun, self._checked_at = False, 0.0
        self._group: ProcessGroup | None = ProcessGroup(arena, counters)
        names = [f"worker {rank}" for rank in range(1, counters.workers)]
        try:
            self._members = self._group.start(run, work, names, first=1)
        except BaseException:
            self.close()
            raise

    @property
    def ended(self) -> bool:
        """Whether :meth:`close` has terminated all peer workers."""
        return self._group is None

    def send_handshake(self, arena: SharedTensors, handshake: ScriptHandshake) -> None:
        """Send the shared tensors and the options of the next block to all peer workers."""
        content = frame(arena.describe(), dumps(handshake, arena, SharedArrays()))
        message_block, tensors = SharedBlock(len(content)), arena.blocks[CPU]
        assert isinstance(tensors, SharedBlock)
        message_block.bytes[: len(content)] = content
        what = {"length": len(content), "sizes": [message_block.size, tensors.size]}
        for member in self._members:
            member.send(what, [message_block.fd, tensors.fd])
        message_block.close()

    def begin(self, runtime: Processes) -> None:
        """Wait until all peer workers are ready, and give the start signal.

        Raise :class:`WorkerError` if a worker is not ready after ``runtime.startup_timeout`` seconds.
        """
        self._runtime = runtime
        until = time.monotonic() + runtime.startup_timeout
        while late := self._members_before(at.READY):
            self._receive(WAIT_SECONDS)
            if time.monotonic() > until:
                raise WorkerError(
                    f"Not ready after {runtime.startup_timeout:g} seconds: {_names(late)}. Every worker runs the "
                    "script up to hogwild.shared first: check what takes it so long, or give "
                    "runtime=Processes(startup_timeout=...)."
                )
        return_freed_memory()
        self.counters.sums[:, at.BEAT] = time.monotonic()
        self._begun = True
        self.counters.flags[at.GO] = 1

    def check(self) -> None:
        """Check for crashed workers, at most every ``CHECK_SECONDS`` seconds.

        Worker 0 calls this method at each step and batch. Raise :class:`WorkerError` for a crashed worker if the
        runtime's ``on_worker_failure`` is "stop".
        """
        now = time.monotonic()
        if now - self._checked_at > CHECK_SECONDS:
            self._checked_at = now
            self._receive(0)

    def wait(self) -> None:
        """Wait until all running workers have finished.

        A worker without a heartbeat for ``heartbeat_timeout`` seconds is killed and counts as crashed.
        """
        while self._members_before(at.FINISHED):
            self._receive(WAIT_SECONDS)
            self._check_heartbeats()

    def close(self) -> None:
        """Terminate all peer workers; do nothing in a fork of the process that started them."""
        if self._group is not None and self._owner == os.getpid():
            group, self._group = self._group, None
            group.close()
            self.counters.block.close()

    def _members_before(self, state: int) -> list[WorkerProcess]:
        counts = self.counters.counts
        return [one for one in self._members if counts[one.rank, at.STATE] < state and not counts[one.rank, at.ENDED]]

    def _receive(self, seconds: float) -> None:
        if self._group is not None:
            for member, what in self._group.receive(seconds):
                if what["kind"] == "ended" and not member.done:
                    self._remove_crashed(member)

    def _remove_crashed(self, member: WorkerProcess) -> None:
        self.counters.counts[member.rank, at.ENDED] = 1
        if self._runtime.on_worker_failure == "stop" or not self._begun:
            raise worker_error([member])
        sys.stderr.write(f"{member.crash_report()}\nThe other workers continue.\n")

    def _check_heartbeats(self) -> None:
        limit = time.monotonic() - self._runtime.heartbeat_timeout
        for member in self._members_before(at.FINISHED):
            if self.counters.sums[member.rank, at.BEAT] < limit and member.code is None:
                member.failure = member.failure or {
                    "error": f"it did not respond for {self._runtime.heartbeat_timeout:g} seconds",
                    "traceback": "If a step takes longer, give runtime=Processes(heartbeat_timeout=...).",
                }
                member.kill()


def _names(members: list[WorkerProcess]) -> str:
    return ", ".join(member.name for member in members)
