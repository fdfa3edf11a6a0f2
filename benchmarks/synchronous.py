"""How an epoch of ``Synchronous`` gets shorter with processes and with larger batches: 1 to 16 processes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hogwild
from benchmarks import results

WORKERS, BATCHES = (1, 2, 4, 8, 16), (32, 128, 512)  # processes; samples of one process in one step
FEATURES, WIDTH, CLASSES, SAMPLES = 256, 1024, 10, 2**14
EPOCHS, TURNS = 3, 2  # of a run, the first of which is not counted; runs of each setting
Seconds = Mapping[tuple[int, int], Sequence[float]]  # of an epoch, by processes and batch


def network() -> Any:
    """Two hidden layers, whose gradients are 5 MiB that each step exchanges."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)
    )  # fmt: skip


def samples(count: int) -> Any:
    import torch
    from torch.utils.data import TensorDataset

    random = torch.Generator().manual_seed(0)
    x = torch.randn(count, FEATURES, generator=random)
    return TensorDataset(x, x[:, :CLASSES].argmax(1))


def epoch_seconds(workers: int, batch: int, data: Any, epochs: int) -> float:
    """Seconds of one epoch, the first one left out, in which processes allocate what they keep."""
    import torch
    from torch import nn

    run = hogwild.minimise(
        hogwild.Module(network(), nn.functional.cross_entropy, data, batch=batch),
        partial(torch.optim.SGD, lr=0.01, momentum=0.9),
        strategy=hogwild.Synchronous(workers), runtime=hogwild.Processes(threads=1), budget=epochs,
    )  # fmt: skip
    ends = [record["seconds"] for record in run.history]
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def lines(found: Seconds, count: int) -> list[list[str]]:
    """The rows of the table: time, rate, speed-up and efficiency, each against one process with the same batch.

    >>> lines({(1, 32): [4.0], (2, 32): [2.5, 2.0, 3.0]}, 1000)[1]
    ['2', '32', '64', '2.50 s (2.00 to 3.00)', '400', '1.60x', '80 %']
    """
    rows = []
    for (workers, batch), seconds in found.items():
        middle, alone = statistics.median(seconds), statistics.median(found[1, batch])
        rows.append([
            str(workers), str(batch), f"{workers * batch:,}", results.span(seconds, ".2f", " s"),
            f"{count / middle:,.0f}", f"{alone / middle:.2f}x", f"{alone / middle / workers:.0%}".replace("%", " %"),
        ])  # fmt: skip
    return rows


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    count, epochs, turns = (2**10, 2, 1) if quick else (SAMPLES, EPOCHS, TURNS)
    workers = [n for n in WORKERS if n <= max(2, results.cores())]
    batches = BATCHES[:1] if quick else BATCHES
    data = samples(count)
    found: dict[tuple[int, int], list[float]] = {(n, batch): [] for batch in batches for n in workers}
    for _ in range(turns):
        for n, batch in found:
            found[n, batch].append(epoch_seconds(n, batch, data, epochs))
    left_out = [n for n in WORKERS if n not in workers]
    head = ["processes", "batch of each", "samples of a step", "an epoch", "samples/s", "speed-up", "efficiency"]
    results.write(
        "synchronous",
        "Synchronous steps on several processes",
        [
            f"A perceptron {FEATURES}-{WIDTH}-{WIDTH}-{CLASSES} on {count:,} samples, SGD with momentum, one thread",
            f"of each process, PyTorch {results.version_of('torch')}, gloo. Seconds of an epoch without the first:",
            f"median (least to most) of {turns} runs. Speed-up and efficiency: against one process, the same batch.",
            *([f"This machine has no cores for {', '.join(map(str, left_out))} processes."] if left_out else []),
            "",
            *results.table(head, lines(found, count)),
        ],
        out,
        {f"{n} x {batch}": seconds for (n, batch), seconds in found.items()},
    )
