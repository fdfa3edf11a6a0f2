"""Peer workers of worker 0, which trains as well and monitors them between its steps, and the handshake of all."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any

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
    alone: bool  # whether only one worker at a time may take a step
    keep: bool  # whether workers wait for another block after this one


def shared_tensors(net: nn.Module, optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Return all tensors to share: parameters, buffers, further parameters of the optimiser, and its state.

    >>> net = nn.Linear(2, 1)
    >>> [tuple(tensor.shape) for tensor in shared_tensors(net, torch.optim.SGD(net.parameters(), momentum=0.9))]
    [(1, 2), (1,), (1, 2), (1,)]
    """
    found = [*net.parameters(), *net.buffers(), *_beside(net, optimiser)]
    return [*found, *allocate_state(optimiser)]


def signature(net: nn.Module, optimiser: torch.optim.Optimizer) -> Signature:
    """Return the description of a model and its optimiser, which must be the same in every worker.

    >>> net = nn.Linear(2, 1)
    >>> signature(net, torch.optim.SGD(net.parameters()))[-1]
    ('the optimiser', 'SGD of 2 parameters, which remembers 0 tensors')
    """
    described = [(f"parameter {name!r}", _like(tensor)) for name, tensor in net.named_parameters()]
    described += [(f"buffer {name!r}", _like(tensor)) for name, tensor in net.named_buffers()]
    described += [("a parameter that only the optimiser has", _like(one)) for one in _beside(net, optimiser)]
    sizes = " and ".join(str(len(group["params"])) for group in optimiser.param_groups)
    what = f"{type(optimiser).__name__} of {sizes} parameters, which remembers {len(allocate_state(optimiser))} tensors"
    return (*described, ("the optimiser", what))


def attach(net: nn.Module, optimiser: torch.optim.Optimizer, arena: SharedTensors, terms: ScriptHandshake) -> None:
    """Replace the tensors of this process's model and optimiser by the shared tensors of worker 0.

    Raise :class:`ParameterError` if the script has made a different model or optimiser in this process.
    """
    fuse(optimiser)
    ours = signature(net, optimiser)
    if ours != terms.signature:
        raise ParameterError(
            f"The script has made something else in this process than in the first one: {_difference(ours, terms)}. "
            "Every worker runs the script from its beginning: it must make the same model each time."
        )
    for tensor, shared in zip(shared_tensors(net, optimiser), arena.tensors, strict=True):
        tensor.data = shared.data


def configure_worker(terms: ScriptHandshake, rank: int) -> None:
    """Set the number of arithmetic threads of this process, and seed its random generators by its rank."""
    torch.set_num_threads(terms.threads)
    rng_state.seed(terms.seed, rank)


def _beside(net: nn.Module, optimiser: torch.optim.Optimizer) -> list[Tensor]:
    known = {id(tensor) for tensor in net.parameters()}
    steered: list[Tensor] = [tensor for group in optimiser.param_groups for tensor in group["params"]]
    return [tensor for tensor in steered if id(tensor) not in known]


def _like(tensor: Any) -> str:
    return f"{tuple(tensor.shape)}, {tensor.dtype}, {tensor.device}"


def _difference(ours: Signature, terms: ScriptHandshake) -> str:
    theirs = terms.signature
    for (name, here), (other, there) in zip(ours, theirs, strict=False):
        if name != other:
            return f"{name} instead of {other}"
        if here != there:
            return f"{name} is {here} instead of {there}"
    return f"it has {len(ours) - 1} tensors instead of {len(theirs) - 1}"


LOOK = 0.05  # seconds between two checks for crashed workers while worker 0 trains
WAIT = 0.005  # seconds between two checks for crashed workers while worker 0 waits


class PeerWorkers:
    """Workers 1, 2, ... of a block: worker 0 starts them, detects their crashes, and waits for them at the end."""

    def __init__(self, board: SharedCounters, runtime: Processes, arena: SharedTensors, run: Any, work: Any) -> None:
        self.board, self._runtime, self._owner = board, runtime, os.getpid()
        self._begun, self._looked = False, 0.0
        self._fleet: ProcessGroup | None = ProcessGroup(arena, board)
        names = [f"worker {rank}" for rank in range(1, board.workers)]
        try:
            self._members = self._fleet.start(run, work, names, first=1)
        except BaseException:
            self.close()
            raise

    @property
    def ended(self) -> bool:
        """Whether :meth:`close` has terminated all peer workers."""
        return self._fleet is None

    def invite(self, arena: SharedTensors, terms: ScriptHandshake) -> None:
        """Send the shared tensors and the options of the next block to all peer workers."""
        content = frame(arena.describe(), dumps(terms, arena, SharedArrays()))
        letter, tensors = SharedBlock(len(content)), arena.blocks[CPU]
        assert isinstance(tensors, SharedBlock)
        letter.bytes[: len(content)] = content
        what = {"length": len(content), "sizes": [letter.size, tensors.size]}
        for member in self._members:
            member.tell(what, [letter.fd, tensors.fd])
        letter.close()

    def begin(self, runtime: Processes) -> None:
        """Wait until all peer workers are ready, and give the start signal.

        Raise :class:`WorkerError` if a worker is not ready after ``runtime.startup_timeout`` seconds.
        """
        self._runtime = runtime
        until = time.monotonic() + runtime.startup_timeout
        while late := self._those_before(at.READY):
            self._hear(WAIT)
            if time.monotonic() > until:
                raise WorkerError(
                    f"Not there after {runtime.startup_timeout:g} seconds: {_names(late)}. Every worker runs the "
                    "script up to hogwild.shared first: look what takes it so long, or give "
                    "runtime=Processes(startup_timeout=...)."
                )
        return_freed_memory()
        self.board.sums[:, at.BEAT] = time.monotonic()
        self._begun = True
        self.board.flags[at.GO] = 1

    def look(self) -> None:
        """Check for crashed workers, at most every ``LOOK`` seconds; worker 0 calls this method at each step and batch.

        Raise :class:`WorkerError` for a crashed worker if the runtime's ``on_worker_failure`` is "stop".
        """
        now = time.monotonic()
        if now - self._looked > LOOK:
            self._looked = now
            self._hear(0)

    def wait(self) -> None:
        """Wait until all running workers have finished.

        A worker without a heartbeat for ``heartbeat_timeout`` seconds is killed and counts as crashed.
        """
        while self._those_before(at.FINISHED):
            self._hear(WAIT)
            self._mind_the_silent()

    def close(self) -> None:
        """Terminate all peer workers; do nothing in a fork of the process that started them."""
        if self._fleet is not None and self._owner == os.getpid():
            fleet, self._fleet = self._fleet, None
            fleet.close()
            self.board.block.close()

    def _those_before(self, state: int) -> list[WorkerProcess]:
        line = self.board.counts
        return [one for one in self._members if line[one.rank, at.STATE] < state and not line[one.rank, at.GONE]]

    def _hear(self, seconds: float) -> None:
        if self._fleet is not None:
            for member, what in self._fleet.hear(seconds):
                if what["kind"] == "gone" and not member.done:
                    self._bury(member)

    def _bury(self, member: WorkerProcess) -> None:
        self.board.counts[member.rank, at.GONE] = 1
        if self._runtime.on_worker_failure == "stop" or not self._begun:
            raise worker_error([member])
        sys.stderr.write(f"{member.obituary()}\nThe others go on.\n")

    def _mind_the_silent(self) -> None:
        limit = time.monotonic() - self._runtime.heartbeat_timeout
        for member in self._those_before(at.FINISHED):
            if self.board.sums[member.rank, at.BEAT] < limit and member.code is None:
                member.failure = member.failure or {
                    "error": f"nothing was heard of it for {self._runtime.heartbeat_timeout:g} seconds",
                    "traceback": "If a step takes longer, give runtime=Processes(heartbeat_timeout=...).",
                }
                member.end()


def _names(members: list[WorkerProcess]) -> str:
    return ", ".join(member.name for member in members)
