"""What eight times the batch costs in accuracy, with the recipe for large minibatches and without it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hogwild
from benchmarks import results
from benchmarks.plots import plot_large_batch
from hogwild.files import to_jsonable

SEEDS, EPOCHS, HELD_OUT = 10, 20, 0.3
BATCH, WORKERS, ACCUMULATE = 8, 2, 4  # eight times the batch, each worker's being the small one
MOMENTUM, DECAY = 0.9, 1e-4
STEPS = (0.00125, 0.0025, 0.005, 0.01)  # the small batch's best is everybody's
TRIALS = (100, 101, 102)  # seeds that only choose the step
SMALL = "the small batch"
WAYS: dict[str, Any] = {
    SMALL: hogwild.Synchronous(1),
    "8 times, with the recipe": hogwild.Synchronous(
        WORKERS, ACCUMULATE, hogwild.LargeMinibatch(reference=BATCH)
    ),
    "8 times, with the recipe but no warm-up": hogwild.Synchronous(
        WORKERS, ACCUMULATE, hogwild.LargeMinibatch(reference=BATCH, warmup=0)
    ),
    "8 times, without the recipe": hogwild.Synchronous(WORKERS, ACCUMULATE),
}  # fmt: skip


def network() -> Any:
    """Two convolutions with batch normalisation."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.MaxPool2d(4), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def split(seed: int) -> tuple[Any, Any]:
    """scikit-learn's digits, a part of them held out."""
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from torch.utils.data import TensorDataset

    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32).view(-1, 1, 8, 8)
    rows = train_test_split(range(len(images)), test_size=HELD_OUT, random_state=seed, stratify=digits.target)
    training, held = (TensorDataset(images[some], torch.tensor(digits.target[some])) for some in rows)
    return training, held


def curve(strategy: Any, seed: int, epochs: int, step: float) -> tuple[list[float], float]:
    """The held-out accuracy after each epoch, in per cent, and the seconds of an epoch without the first one.

    Split, first parameters and order go by the seed.
    """
    import torch
    from torch import nn

    training, held = split(seed)
    torch.manual_seed(seed)
    problem = hogwild.Module(network(), nn.functional.cross_entropy, training, batch=BATCH)
    rule = partial(torch.optim.SGD, lr=step, momentum=MOMENTUM, weight_decay=DECAY)
    one_thread = hogwild.Processes(threads=1)  # so that all have the same arithmetic
    run = hogwild.minimise(problem, rule, "cosine", strategy, one_thread, epochs, test=held, seed=seed)
    ends = [record["seconds"] for record in run.history]
    return [100 * record.get("test_accuracy", math.nan) for record in run.history], (ends[-1] - ends[0]) / (epochs - 1)


def best_step(epochs: int, trials: Sequence[int]) -> float:
    """The step with which the small batch has the best mean accuracy."""
    means = {
        step: statistics.mean(curve(WAYS[SMALL], seed, epochs, step)[0][-1] for seed in trials) for step in STEPS
    }  # fmt: skip
    return max(means, key=lambda step: means[step])


def apart(small: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """The mean difference of runs with the same seeds, and the standard error of that mean.

    >>> apart([99.0, 98.0, 99.0, 98.0], [98.0, 98.0, 98.0, 98.0])
    (-0.5, 0.288...)
    """
    differences = [mine - theirs for theirs, mine in zip(small, other, strict=True)]
    return statistics.mean(differences), statistics.stdev(differences) / math.sqrt(len(differences))


def line(name: str, small: Sequence[float], ends: Sequence[float], seconds: Sequence[float]) -> list[str]:
    mean, error = apart(small, ends)
    noise = "" if name == SMALL else "yes" if abs(mean) <= 2 * error else "**no**"
    difference = "" if name == SMALL else f"{mean:+.2f} (standard error {error:.2f})"
    accuracy = [f"{statistics.mean(ends):.2f} %", f"{statistics.stdev(ends):.2f}", difference, noise]
    return [name, *accuracy, results.span(seconds, ".2f", " s")]


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    seeds, epochs = (2, 6) if quick else (SEEDS, EPOCHS)
    step = best_step(epochs, TRIALS[:1] if quick else TRIALS)
    runs = {
        name: [curve(strategy, seed, epochs, step) for seed in range(seeds)] for name, strategy in WAYS.items()
    }  # fmt: skip
    curves = {name: [reached for reached, _ in some] for name, some in runs.items()}
    seconds = {name: [taken for _, taken in some] for name, some in runs.items()}
    small = [one[-1] for one in curves[SMALL]]
    picture = plot_large_batch(curves, out)
    head = [
        "batch", "held-out accuracy", "standard deviation", "from the small batch", "within two standard errors",
        "an epoch",
    ]  # fmt: skip
    rows = [line(name, small, [one[-1] for one in mine], seconds[name]) for name, mine in curves.items()]
    results.write(
        "large_batch",
        "Eight times the batch",
        [
            f"scikit-learn's digits, {1 - HELD_OUT:.0%} of them to train on; a network of two convolutions with batch",
            f"normalisation; {epochs} epochs, cosine, SGD with momentum {MOMENTUM}, weight decay {DECAY:g}, PyTorch",
            f"{results.version_of('torch')}. The small batch is {BATCH} samples; eight times that is {WORKERS} workers",
            f"with {ACCUMULATE} batches of {BATCH} in a step. The step is {step:g}: the best for the small batch of",
            f"{', '.join(map(str, STEPS))}, on other splits. {seeds} seeds, each with a split, first parameters and an",
            "order of its own, which are the same for all lines. Seconds of an epoch without the first: the median",
            "(least to most).",
            "",
            *results.table(head, rows),
            *(["", f"![]({picture})"] if picture else []),
        ],
        out,
        raw=to_jsonable({"step": step, "curves": curves, "epoch_seconds": seconds}),
    )
