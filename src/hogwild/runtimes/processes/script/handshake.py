"""Handshake of script workers: options of worker 0, and a check that all workers have made the same model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hogwild.errors import ParameterError
from hogwild.runtimes.processes import rng_state
from hogwild.runtimes.processes.atomic_optimiser_step import fuse
from hogwild.runtimes.processes.optimiser_state import allocate_state
from hogwild.runtimes.processes.shared_tensors import SharedTensors

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
