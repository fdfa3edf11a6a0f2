"""Multilayer perceptrons with sparse inputs on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hogwild.cli.problems.adapter import Kind, Opened, Source
from hogwild.cli.problems.row_problems import open_rows
from hogwild.errors import DataError, ParameterError
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
    """Open rows, in memory or in a packed folder, as samples of a network. Held-out samples have the same labels."""
    from hogwild.nn.csr_dataset import CSRDataset

    opened = open_rows(source)
    training = CSRDataset(opened.training)
    samples = [training] if opened.held_out is None else [training, CSRDataset(opened.held_out, training.labels)]
    if binary and not all(some.binary for some in samples):
        raise DataError("not every value is 1", path=source.data, remedy="Leave out --binary.")
    # A network has values or none: training rows of ones have values if held-out rows have other ones, and vice versa.
    if len({some.binary for some in samples}) > 1:
        samples = [CSRDataset(rows, training.labels, binary=False) for rows in (opened.training, opened.held_out)]
    return replace(opened, training=samples[0], held_out=samples[1] if len(samples) > 1 else None)


def make(
    data: CSRDataset,
    *,
    hidden: str = "64,64",
    batch: int = 256,
    update: str = "adagrad",
    factor: float = 1.0,
    device: str = "cpu",
    seed: int = 0,
    sampling: str = "split",
) -> Module:
    """Make a perceptron with the given layers, whose loss is the cross-entropy."""
    import torch

    from hogwild.nn.sparse_mlp import SparseMLP
    from hogwild.problems.module import Module

    check_memory(data.width, widths(hidden), len(data.labels), update, device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = SparseMLP(
            data.width, widths(hidden), len(data.labels), data.binary, update=update, factor=factor
        ).to(device)  # fmt: skip
    return Module(net, torch.nn.functional.cross_entropy, data, batch=batch, sampling=sampling)


def check_memory(features: int, hidden: Sequence[int], classes: int, update: str, device: str) -> None:
    """Raise an error if a network does not fit into memory, before it is made.

    Raises
    ------
    ParameterError
        With the memory that is needed, that there is, and options that need less.
    """
    from hogwild.nn.memory_footprint import BYTES, MemoryFootprint
    from hogwild.nn.sparse_mlp import table_footprint

    layers = BYTES * sum((width + 1) * following for width, following in pairwise([*hidden, classes]))
    parts = {**table_footprint(features, hidden[0], update).parts, "other layers": layers}
    shared = {"the same in memory that workers share": sum(parts.values())}
    for where in dict.fromkeys(("cpu", device)):
        # The network is made in main memory, and workers share it on its device.
        MemoryFootprint(parts | (shared if where == device else {}), where).check(
            f"A network of {features:,} features x {hidden[0]}",
            "Give it fewer features (--features; --bits for hashed ones) or a narrower first layer (--hidden)"
            + (", --update sgd, which has no accumulators," if update == "adagrad" else "")
            + (" or --device cuda, if a GPU has more memory." if device == "cpu" else " or leave out --device."),
        )


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
    from hogwild.data.sampling import batch_sampling

    widths(options.get("hidden", "64"))
    batch_sampling(options.get("sampling", "split"))
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


KIND = Kind(open_samples, make, check, rule=rule, rules=tuple(STEPS), usual_rule="adagrad", model=model, processes=True)
