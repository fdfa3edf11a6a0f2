"""Multilayer perceptrons with sparse inputs on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hogwild.cli.problems.adapter import Kind, Opened, Source
from hogwild.cli.problems.row_problems import open_rows
from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from hogwild.models.sparse_mlp import SparseMLPModel
    from hogwild.nn.csr_dataset import CSRDataset
    from hogwild.problems.module import Module
    from hogwild.run import Run

# Default step sizes of the optimisers.
STEPS = {"sgd": 0.1, "adam": 1e-3, "adamw": 1e-3, "adagrad": 0.05, "rmsprop": 1e-3}


def open_samples(source: Source, *, binary: bool | None = None) -> Opened:
    """Open rows in memory as samples of a network. Held-out samples have the same labels."""
    from hogwild.nn.csr_dataset import CSRDataset

    opened = open_rows(source)
    training = CSRDataset(opened.training, binary=binary)
    held_out = None
    if opened.held_out is not None:
        held_out = CSRDataset(opened.held_out, training.labels, binary=training.binary)
    return replace(opened, training=training, held_out=held_out)


def make(
    data: CSRDataset,
    *,
    hidden: str = "64,64",
    batch: int = 256,
    update: str = "adagrad",
    factor: float = 1.0,
    device: str = "cpu",
    seed: int = 0,
) -> Module:
    """Make a perceptron with the given layers, whose loss is the cross-entropy."""
    import torch

    from hogwild.nn.sparse_mlp import SparseMLP
    from hogwild.problems.module import Module

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = SparseMLP(
            data.width, widths(hidden), len(data.labels), data.binary, update=update, factor=factor
        ).to(device)  # fmt: skip
    return Module(net, torch.nn.functional.cross_entropy, data, batch=batch)


def widths(text: str) -> list[int]:
    """Parse the widths of layers.

    >>> widths("64,32")
    [64, 32]
    """
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise invalid_parameter("hidden", "widths of layers such as 64,32", text)
    return found


def check(options: Mapping[str, Any]) -> None:
    """Raise an error for invalid options, missing PyTorch or a missing GPU, before any data is read."""
    widths(options.get("hidden", "64"))
    if options.get("update", "sgd") not in ("sgd", "adagrad"):
        raise invalid_parameter("update", "sgd or adagrad", options["update"])
    try:
        import torch
    except ImportError:
        from hogwild.errors import MissingExtraError

        raise MissingExtraError("--problem sparse-mlp", "torch", "torch") from None
    if options.get("device", "cpu").startswith("cuda") and not torch.cuda.is_available():
        raise ParameterError("There is no CUDA GPU that PyTorch can use here. Leave out --device.")


def rule(name: str) -> Callable[..., Optimizer]:
    """Return the optimiser of the dense layers by its name, with its default step size."""
    from hogwild.registry import lookup
    from hogwild.training.torch_optimisers import OPTIMISERS

    kind = lookup("rule", name, {known: OPTIMISERS[known] for known in STEPS})
    return partial(kind, lr=STEPS[name])


def model(run: Run, opened: Opened) -> SparseMLPModel:
    """Return the model to save of a run."""
    from hogwild.models.sparse_mlp import SparseMLPModel

    return SparseMLPModel(run.model.net, opened.training.labels, opened.reading, run.model.training)


KIND = Kind(open_samples, make, check, rule=rule, usual_rule="adagrad", model=model, processes=True)
