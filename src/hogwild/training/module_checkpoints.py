"""Checkpoints of a module in training: its state, and files that PyTorch loads with ``weights_only=True``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from hogwild.errors import CheckpointError
from hogwild.files import clear_leftovers, replacing
from hogwild.models.module import ModuleModel
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import Tensors, WorkerConfig
from hogwild.training.checkpoints import Checkpoints

LATEST, PREVIOUS, WEIGHTS = "latest.pt", "previous.pt", "model.safetensors"
FORMAT = 1

State = dict[str, Any]
Record = dict[str, Any]


def save(checkpoints: Checkpoints, state: State, record: Record, model: ModuleModel) -> None:
    """Write the latest checkpoint, keep the one before it, and write the weights as safetensors."""
    content = {**state, "record": json.dumps({"format": FORMAT, **record})}

    def write(path: Path) -> None:
        clear_leftovers(path)
        with replacing(path) as file:
            torch.save(content, file)

    checkpoints.replace(LATEST, PREVIOUS, write, _read)
    save_weights(checkpoints, model)


def save_weights(checkpoints: Checkpoints, model: ModuleModel) -> None:
    """Write the weights alone, as safetensors."""
    model.save(checkpoints.folder / WEIGHTS)


def load(checkpoints: Checkpoints) -> tuple[State, Record] | None:
    """Return the latest intact checkpoint; None if there is none."""
    return checkpoints.first_whole((LATEST, PREVIOUS), _read)


def _read(path: Path) -> tuple[State, Record]:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        record = json.loads(state.pop("record"))
        if record["format"] != FORMAT:
            raise ValueError(f"its format is {record['format']}")
    except Exception as reason:  # a damaged file can raise any exception
        raise CheckpointError(f"{path}: this is no checkpoint that can be read ({reason}).") from None
    return state, record


def tensors_of(work: WorkerConfig, best: Tensors | None) -> dict[str, Any]:
    """Return the tensors of a checkpoint, in containers that PyTorch loads with ``weights_only=True``."""
    tensors = {
        "model": dict(work.problem.net.state_dict()),
        "optimizer": work.optimiser.state_dict(),
        "mean": list(work.mean.tensors) if work.mean else [],
        "best": list(best or ()),
        "random": work.random,
    }  # fmt: skip
    return {name: on_host(value) for name, value in tensors.items()}


def on_host(tree: object) -> object:
    """Return the tree with each GPU tensor copied to the host.

    On a GPU all tensors are views of one block of memory, which PyTorch cannot save.
    """
    if isinstance(tree, torch.Tensor):
        return tree.cpu()
    if isinstance(tree, dict):
        return {name: on_host(value) for name, value in tree.items()}
    return [on_host(value) for value in tree] if isinstance(tree, list) else tree


def counts_of(work: WorkerConfig, counters: SharedCounters) -> dict[str, Any]:
    """Return the counters of all workers: their epoch, batch, samples and summed losses."""
    counts = counters.counts.copy()
    counts[:, [at.STATE, at.BARRIERS]] = 0
    running = list(counters.running())
    # A worker that has terminated takes part again after a resume. It continues from the lowest epoch and the lowest
    # batch number of the running workers.
    for rank in set(range(counters.workers)) - set(running):
        counts[rank, at.ENDED] = 0
        counts[rank, at.EPOCH] = counts[running, at.EPOCH].min()
        counts[rank, at.BATCH] = counts[running, at.BATCH].min()
    # Checkpoints contain no replicas. After a resume all workers therefore restart the epoch.
    if work.replicas is not None:
        counts[:, at.BATCH] = 0
        # The first running worker copies the average of the replicas into the model, so its epoch is the model's epoch.
        counts[:, at.EPOCH] = counts[running[0], at.EPOCH]
        counts[:, at.SAMPLES] = counts[:, at.EPOCH] * work.rate.samples // counters.workers
    return {"counts": counts.tolist(), "loss": counters.sums[:, at.LOSS].tolist()}


def restore(
    work: WorkerConfig, counters: SharedCounters, best: Tensors | None, state: dict[str, Any], record: dict[str, Any]
) -> None:
    """Restore the model, optimiser, averages, random states and counters from a checkpoint."""
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
    counters.counts[:] = torch.tensor(record["counts"]).numpy()
    counters.sums[:, at.LOSS] = record["loss"]


@torch.no_grad()
def copy_tensors(into: Tensors, given: Tensors) -> None:
    """Copy tensors into others of the same shapes."""
    for place, tensor in zip(into, given, strict=True):
        place.copy_(tensor)
