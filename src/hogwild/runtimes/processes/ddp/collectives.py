"""The group in which synchronous workers talk to each other: PyTorch's own, over gloo or NCCL."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, TCPStore, rendezvous  # type: ignore[attr-defined]

from hogwild.errors import ParameterError, WorkerError

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun tells those it has started
HOME = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class DDPConfig:
    """What workers of a synchronous run must know besides their work."""

    accumulate: int = 1  # batches of each worker in a step
    correction: bool = True  # of momentum, when the step changes
    port: int = 0  # on this machine, where workers that we start find each other
    startup_timeout: float = 120.0  # seconds in which all must have come
    heartbeat_timeout: float = 600.0  # seconds that one may keep the others waiting


def torchrun_environment() -> tuple[int, int] | None:
    """This process's rank and the number of ranks, if a launcher such as ``torchrun`` has started it; else None."""
    if not all(name in os.environ for name in LAUNCHED):
        return None
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except ValueError:
        raise ParameterError(
            f"RANK={os.environ['RANK']!r} and WORLD_SIZE={os.environ['WORLD_SIZE']!r} in the environment must be "
            "numbers, as torchrun sets them. Unset them if no launcher has started this process."
        ) from None


def rendezvous_store(startup_timeout: float) -> Any:
    """Where workers of this machine find each other, for as long as the one who has it keeps it."""
    return TCPStore(HOME, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=startup_timeout))


@contextlib.contextmanager
def translate_errors(mourning: float = 0.0) -> Iterator[None]:
    """Say it plainly when others do not answer, after some seconds in which they may be heard themselves."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error).lower():
            raise
        time.sleep(mourning)
        raise WorkerError(f"another worker does not answer ({error})") from error


class Collectives:
    """All workers of a synchronous run; the first is the one whose word counts."""

    def __init__(self, rank: int, workers: int, device: str, together: DDPConfig) -> None:
        self.rank, self.workers = rank, workers
        self._ours = not dist.is_initialized()
        limit = timedelta(seconds=together.heartbeat_timeout)
        if not self._ours:
            if (dist.get_rank(), dist.get_world_size()) != (rank, workers):
                raise ParameterError("The process group that is there already is not that of this run's workers.")
        elif together.port:
            os.environ["GLOO_SOCKET_IFNAME"] = _loopback()  # the name of a machine may lead nowhere
            store = TCPStore(HOME, together.port, is_master=False, timeout=timedelta(seconds=together.startup_timeout))
            # The one who watches us ends us first, and can say why.
            limit += timedelta(seconds=60)
            backend = _backend(device, workers)
            dist.init_process_group(backend, store=store, rank=rank, world_size=workers, timeout=limit)
        else:
            backend = _backend(device, int(os.environ.get("LOCAL_WORLD_SIZE", workers)))
            place = _of_this_run(limit)
            dist.init_process_group(backend, store=place, rank=rank, world_size=workers, timeout=limit)
        gloo = dist.get_backend() == "gloo"
        self._talk = dist.group.WORLD if gloo else dist.new_group(backend="gloo", timeout=limit)

    def word(self, *numbers: float) -> tuple[float, ...]:
        """What the first worker says, whatever the others say."""
        if self.workers == 1:
            return numbers
        said = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(said, 0, group=self._talk)
        return tuple(said.tolist())

    def sizes(self, mine: list[int]) -> Tensor:
        """The sizes of everybody's batches: a line for each worker, filled up with zeros to the longest."""
        most = torch.tensor(len(mine))
        dist.all_reduce(most, dist.ReduceOp.MAX, group=self._talk)
        lines = torch.zeros((self.workers, int(most)), dtype=torch.int64)
        lines[self.rank, : len(mine)] = torch.tensor(mine, dtype=torch.int64)
        return self.summed(lines)

    def summed(self, tensor: Tensor) -> Tensor:
        """The sum of everybody's, in place."""
        dist.all_reduce(tensor, group=self._talk)
        return tensor

    def take_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Let everybody have the first worker's values."""
        for tensor in tensors:
            sent = tensor.detach().cpu().contiguous()
            dist.broadcast(sent, 0, group=self._talk)
            with torch.no_grad():
                tensor.copy_(sent)

    def text(self, mine: str) -> str:
        """What the first worker has written."""
        content = mine.encode()
        length = int(self.word(len(content))[0])
        sent = torch.zeros(length, dtype=torch.uint8)
        if self.rank == 0:
            sent = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        dist.broadcast(sent, 0, group=self._talk)
        return bytes(sent.tolist()).decode()

    def leave(self) -> None:
        """Give the connections back."""
        if self._ours and dist.is_initialized():
            dist.destroy_process_group()


_stores: list[Any] = []  # what a launcher's variables lead to, opened once
_runs = itertools.count()


def _of_this_run(limit: timedelta) -> Any:
    """A place of its own for each run, or workers of one would find the addresses that those of the last have left."""
    if not _stores:
        _stores.append(next(rendezvous("env://", timeout=limit))[0])
    return PrefixStore(f"hogwild {next(_runs)}", _stores[0])


def _backend(device: str, workers_here: int) -> str:
    """NCCL where each worker has a GPU of its own; it refuses to work where two share one, and gloo does not."""
    own = device.startswith("cuda") and torch.cuda.device_count() >= workers_here
    return "nccl" if own and dist.is_nccl_available() else "gloo"


def _loopback() -> str:
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
