"""Processes around one network: samples/s and accuracy, beside loops written by hand as PyTorch's examples are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import multiprocessing, nn
from torch.utils.data import DataLoader, TensorDataset

import hogwild
from benchmarks import results

BATCH, STEP = 32, 1e-3
HELD_OUT = 360
ADAM = partial(torch.optim.Adam, lr=STEP, fused=True)  # for all: with several workers ours takes the fused form anyway
Data = tuple[TensorDataset, TensorDataset]


def digits(seed: int = 0) -> Data:
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(seed))
    pictures = torch.tensor(data.data / 16, dtype=torch.float32)[order]
    labels = torch.tensor(data.target)[order]
    parts = [
        TensorDataset(pictures[part].clone(), labels[part].clone()) for part in (slice(HELD_OUT, None), slice(HELD_OUT))
    ]
    return parts[0], parts[1]


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


# Loops written by hand


def by_loader(net: nn.Module, train: TensorDataset, epochs: int, seed: int) -> None:
    """As in PyTorch's example mnist_hogwild: every process walks the whole data set with a loader of its own."""
    torch.manual_seed(seed)
    loader = DataLoader(train, batch_size=BATCH, shuffle=True)
    optimiser = ADAM(net.parameters())
    for _ in range(epochs):
        for pictures, labels in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(pictures), labels).backward()
            optimiser.step()


def by_index(net: nn.Module, train: TensorDataset, epochs: int, seed: int) -> None:
    """The same without a loader, which spends more on collecting small samples than the network on learning them."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = ADAM(net.parameters())
    all_pictures, all_labels = train.tensors
    for _ in range(epochs):
        for rows in torch.randperm(len(train), generator=generator).split(BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(all_pictures[rows]), all_labels[rows]).backward()
            optimiser.step()


def _hand_process(loop: Any, net: nn.Module, train: TensorDataset, epochs: int, rank: int, start: Any) -> None:
    torch.set_num_threads(1)
    loop(network(), train, 1, rank)  # whatever is loaded at the first step
    start.wait(120)
    loop(net, train, epochs, rank)
    start.wait(600)


def hand(loop: Callable[..., None], workers: int, epochs: int) -> float:
    """Samples/s of processes started as in PyTorch's example; to start and to end them is not counted."""
    train, _ = digits()
    net = network().share_memory()
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(workers + 1)
    processes = [
        context.Process(target=_hand_process, args=(loop, net, train, epochs, rank, start)) for rank in range(workers)
    ]
    for process in processes:
        process.start()
    start.wait(120)
    began = time.perf_counter()
    start.wait(600)
    seconds = time.perf_counter() - began
    for process in processes:
        process.join()
    return workers * epochs * len(train) / seconds


# Ours


def ours(workers: int, epochs: int) -> float:
    train, _ = digits()
    run = hogwild.minimise(
        hogwild.Module(network(), nn.functional.cross_entropy, train, batch=BATCH),
        rule=ADAM, strategy=hogwild.Hogwild(workers), budget=epochs,
        runtime=hogwild.Processes(threads=1),
    )  # fmt: skip
    return float(run.result["updates"] / run.seconds)


def accuracy(workers: int, epochs: int, seed: int) -> float:
    train, test = digits(seed)
    run = hogwild.minimise(
        hogwild.Module(network(seed), nn.functional.cross_entropy, train, batch=BATCH),
        rule=ADAM, strategy=hogwild.Hogwild(workers), budget=epochs, test=test, seed=seed,
        runtime=hogwild.Processes(threads=1),
    )  # fmt: skip
    assert run.result["updates"] == epochs * len(train)
    return float(100 * run.result["test_accuracy"])


WAYS: dict[str, Callable[[int], float]] = {
    "hogwild, 1 worker": partial(ours, 1),
    "hogwild, 2 workers": partial(ours, 2),
    "by hand, a loader each, 1 process": partial(hand, by_loader, 1),
    "by hand, a loader each, 2 processes": partial(hand, by_loader, 2),
    "by hand, tensors indexed, 1 process": partial(hand, by_index, 1),
    "by hand, tensors indexed, 2 processes": partial(hand, by_index, 2),
}


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    turns, epochs, seeds, learnt = (1, 2, 2, 2) if quick else (5, 60, 10, 20)
    ours(1, 1)  # the template is started
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(turns):
        for name, way in WAYS.items():
            rates[name].append(way(epochs))
    base = rates["hogwild, 1 worker"]
    rows = [
        [name, f"{statistics.median(found):,.0f}",
         results.span([one / other for one, other in zip(found, base, strict=True)], ".2f", "x")]
        for name, found in rates.items()
    ]  # fmt: skip
    reached = {workers: [accuracy(workers, learnt, seed) for seed in range(seeds)] for workers in (1, 2)}
    points = [
        [f"{workers} worker{'s' * (workers > 1)}", f"{statistics.mean(found):.2f}",
         f"{statistics.stdev(found):.2f}", f"{min(found):.1f} to {max(found):.1f}"]
        for workers, found in reached.items()
    ]  # fmt: skip
    gap = statistics.mean(reached[2]) - statistics.mean(reached[1])
    results.write(
        "modules",
        "Processes around one network",
        [
            f"A perceptron 64-256-256-10 on scikit-learn's digits, batches of {BATCH}, Adam (fused), one thread each;",
            f"{epochs} epochs after all are ready, median (least to most) of {turns} turns, ratios turn by turn.",
            "Loops by hand: `share_memory`, processes by `spawn`, each with an optimiser and the whole data set of its",
            "own, as in PyTorch's example.",
            "",
            *results.table(["what", "samples/s, median", "times hogwild with 1 worker"], rows),
            "",
            f"Held-out accuracy in percent after {learnt} epochs, the same number of samples in all, {seeds} seeds",
            f"(two workers less one: {gap:+.2f} points):",
            "",
            *results.table(["", "mean", "standard deviation", "least to most"], points),
        ],
        out,
        {"rates": rates, "accuracy": reached},
    )
