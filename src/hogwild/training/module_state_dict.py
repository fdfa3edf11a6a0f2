"""Everything that training changes in a model and around it, to write down and to go on from."""

from __future__ import annotations

from typing import Any

import torch

from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import Tensors, WorkerConfig


def tensors_of(work: WorkerConfig, best: Tensors | None) -> dict[str, Any]:
    """The tensors of a checkpoint: nothing but what PyTorch loads with ``weights_only=True``."""
    tensors: dict[str, Any] = on_host({
        "model": dict(work.problem.net.state_dict()),
        "optimizer": work.optimiser.state_dict(),
        "mean": list(work.mean.tensors) if work.mean else [],
        "best": list(best or ()),
        "random": work.random,
    })  # fmt: skip
    return tensors


def on_host(tree: Any) -> Any:
    """The same with a copy of each tensor of a GPU: there all are parts of one block, which PyTorch cannot write."""
    if isinstance(tree, torch.Tensor):
        return tree.cpu()
    if isinstance(tree, dict):
        return {name: on_host(value) for name, value in tree.items()}
    return [on_host(value) for value in tree] if isinstance(tree, list) else tree


def counts_of(work: WorkerConfig, board: SharedCounters) -> dict[str, Any]:
    """Where each worker is."""
    counts = board.counts.copy()
    counts[:, [at.STATE, at.MEETINGS]] = 0
    living = list(board.living())
    for rank in set(range(board.workers)) - set(living):  # who died takes part again, from where the last one is
        counts[rank, at.GONE] = 0
        counts[rank, at.EPOCH] = counts[living, at.EPOCH].min()
        counts[rank, at.BATCH] = counts[living, at.BATCH].min()
    if work.replicas is not None:  # what workers have on their own is not kept: they begin the epoch again
        counts[:, at.BATCH] = 0
        counts[:, at.EPOCH] = counts[living[0], at.EPOCH]  # the one that puts the average into the model
        counts[:, at.SAMPLES] = counts[:, at.EPOCH] * work.rate.samples // board.workers
    return {"counts": counts.tolist(), "loss": board.sums[:, at.LOSS].tolist()}


def restore(
    work: WorkerConfig, board: SharedCounters, best: Tensors | None, state: dict[str, Any], record: dict[str, Any]
) -> None:
    """Let everything be as it was when it was written down."""
    work.problem.net.load_state_dict(state["model"])
    order = [parameter for group in work.optimiser.param_groups for parameter in group["params"]]
    saved = state["optimizer"]["state"]
    for number, parameter in enumerate(order):
        for name, value in work.optimiser.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                value.copy_(saved[number][name])
    copy_tensors(work.mean.tensors if work.mean else [], state["mean"])
    copy_tensors(best or [], state["best"])
    work.random.copy_(state["random"])
    board.counts[:] = torch.tensor(record["counts"]).numpy()
    board.sums[:, at.LOSS] = record["loss"]


@torch.no_grad()
def copy_tensors(into: Tensors, given: Tensors) -> None:
    """Copy tensors into others of the same shapes."""
    for place, tensor in zip(into, given, strict=True):
        place.copy_(tensor)
