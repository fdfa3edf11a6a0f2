"""Collective operations of synchronous workers, on PyTorch's process groups over gloo or NCCL."""

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

LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # environment variables that torchrun sets
LOCALHOST = "127.0.0.1"  # address at which workers of one machine find each other


@dataclass(frozen=True, slots=True)
class DDPConfig:
    """Options of synchronous workers, beside those of :class:`WorkerConfig`."""

    accumulate: int = 1  # batches of each worker in one step
    correction: bool = True  # whether to apply momentum correction (Goyal et al. 2017) when the step size changes
    port: int = 0  # port of the rendezvous store on this machine; 0 if a launcher such as torchrun provides the store
    startup_timeout: float = 120.0  # seconds within which all workers must have connected
    heartbeat_timeout: float = 600.0  # seconds for which one worker may keep the other workers waiting


def torchrun_environment() -> tuple[int, int] | None:
    """Return the rank of this process and the number of ranks, as set by a launcher such as ``torchrun``.

    Return None if no launcher has started this process. Raise :class:`ParameterError` if the variables are no numbers.
    """
    if not all(name in os.environ for name in LAUNCHER_VARIABLES):
        return None
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except ValueError:
        raise ParameterError(
            f"RANK={os.environ['RANK']!r} and WORLD_SIZE={os.environ['WORLD_SIZE']!r} in the environment must be "
            "numbers, as torchrun sets them. Unset them if no launcher has started this process."
        ) from None


def rendezvous_store(startup_timeout: float) -> TCPStore:
    """Return a rendezvous store for workers of this machine; the store exists as long as the returned object."""
    return TCPStore(LOCALHOST, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=startup_timeout))


@contextlib.contextmanager
def translate_errors(delay: float = 0.0) -> Iterator[None]:
    """Turn errors of collective operations into ``WorkerError``, after a delay in seconds.

    During the delay a worker that has crashed by itself can report its own error first.
    """
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error).lower():
            raise
        time.sleep(delay)
        raise WorkerError(f"another worker does not answer ({error})") from error


class Collectives:
    """Process group of all workers of a synchronous run; worker 0 decides for all.

    An existing process group is used if its rank and size fit; otherwise a ``ParameterError`` is raised.
    """

    def __init__(self, rank: int, workers: int, device: str, config: DDPConfig) -> None:
        self.rank, self.workers = rank, workers
        self._owned = not dist.is_initialized()
        limit = timedelta(seconds=config.heartbeat_timeout)
        if not self._owned:
            if (dist.get_rank(), dist.get_world_size()) != (rank, workers):
                raise ParameterError("The existing process group is not that of this run's workers.")
        elif config.port:
            # By default gloo resolves the machine's host name, which may have no address.
            os.environ["GLOO_SOCKET_IFNAME"] = _loopback()
            store = TCPStore(LOCALHOST, config.port, is_master=False, timeout=timedelta(seconds=config.startup_timeout))
            # With 60 seconds more than the supervisor, the supervisor terminates the workers first and knows why.
            limit += timedelta(seconds=60)
            backend = _backend(device, workers)
            dist.init_process_group(backend, store=store, rank=rank, world_size=workers, timeout=limit)
        else:
            backend = _backend(device, int(os.environ.get("LOCAL_WORLD_SIZE", workers)))
            prefixed = _store_of_this_run(limit)
            dist.init_process_group(backend, store=prefixed, rank=rank, world_size=workers, timeout=limit)
        gloo = dist.get_backend() == "gloo"
        self._gloo_group = dist.group.WORLD if gloo else dist.new_group(backend="gloo", timeout=limit)

    def broadcast_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Broadcast the numbers of worker 0; return them in all workers and ignore the other workers' numbers."""
        if self.workers == 1:
            return numbers
        values = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(values, 0, group=self._gloo_group)
        return tuple(values.tolist())

    def gather_sizes(self, own: list[int]) -> Tensor:
        """Return the sizes of all workers' batches: one row for each worker, padded with zeros to equal length."""
        most = torch.tensor(len(own))
        dist.all_reduce(most, dist.ReduceOp.MAX, group=self._gloo_group)
        lines = torch.zeros((self.workers, int(most)), dtype=torch.int64)
        lines[self.rank, : len(own)] = torch.tensor(own, dtype=torch.int64)
        return self.all_reduce_sum(lines)

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all workers, in place."""
        dist.all_reduce(tensor, group=self._gloo_group)
        return tensor

    def broadcast_tensors(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors in all workers with the values of worker 0."""
        for tensor in tensors:
            sent = tensor.detach().cpu().contiguous()
            dist.broadcast(sent, 0, group=self._gloo_group)
            with torch.no_grad():
                tensor.copy_(sent)

    def broadcast_text(self, own: str) -> str:
        """Broadcast the text of worker 0; return it in all workers."""
        content = own.encode()
        length = int(self.broadcast_numbers(len(content))[0])
        sent = torch.zeros(length, dtype=torch.uint8)
        if self.rank == 0:
            sent = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        dist.broadcast(sent, 0, group=self._gloo_group)
        return bytes(sent.tolist()).decode()

    def close(self) -> None:
        """Close the connections, unless the user's program has opened them."""
        if self._owned and dist.is_initialized():
            dist.destroy_process_group()


_stores: list[Any] = []  # rendezvous store of the launcher, opened once by each process
_runs = itertools.count()  # numbers of the runs of this process, as prefixes in that store


def _store_of_this_run(limit: timedelta) -> PrefixStore:
    """Return a store with a prefix of its own for this run.

    Without the prefix, workers would find the addresses that the previous run has left in the launcher's store.
    """
    if not _stores:
        _stores.append(next(rendezvous("env://", timeout=limit))[0])
    return PrefixStore(f"hogwild {next(_runs)}", _stores[0])


def _backend(device: str, workers_here: int) -> str:
    """Return "nccl" if each worker of this machine has a GPU of its own, else "gloo".

    NCCL refuses to work if two workers share a GPU; gloo does not.
    """
    own = device.startswith("cuda") and torch.cuda.device_count() >= workers_here
    return "nccl" if own and dist.is_nccl_available() else "gloo"


def _loopback() -> str:
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
