"""Processes that share one network on one GPU: samples/s and accuracy of 1, 2 and 4 of them."""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

import hogwild
from benchmarks import results

BATCH = 32
HELD_OUT = 360


def digits(seed: int = 0) -> tuple[TensorDataset, TensorDataset]:
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(seed))
    pictures = torch.tensor(data.images / 16, dtype=torch.float32)[order, None]
    labels = torch.tensor(data.target)[order]
    train, test = (
        TensorDataset(pictures[part].clone(), labels[part].clone()) for part in (slice(HELD_OUT, None), slice(HELD_OUT))
    )
    return train, test


def network(seed: int) -> nn.Module:
    """Convolutions with batch normalisation."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 16, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def once(workers: int, epochs: int, seed: int, device: str) -> tuple[float, float]:
    """Samples/s and held-out accuracy in percent."""
    train, test = digits(seed)
    run = hogwild.minimise(
        hogwild.Module(network(seed).to(device), nn.functional.cross_entropy, train, batch=BATCH),
        rule=partial(torch.optim.Adam, lr=1e-3), schedule="cosine", strategy=hogwild.Hogwild(workers), budget=epochs,
        test=test, seed=seed, runtime=hogwild.Processes(threads=1),
    )  # fmt: skip
    return run.result["updates"] / run.seconds, 100 * run.result["test_accuracy"]


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not quick:
        print("There is no GPU here: nothing to measure.")
        return
    turns, epochs = (1, 1) if quick else (5, 20)
    found: dict[int, list[tuple[float, float]]] = {1: [], 2: [], 4: []}
    once(1, 1, 0, device)
    for turn in range(turns):
        for workers, measured in found.items():
            measured.append(once(workers, epochs, turn, device))
    base = [rate for rate, _ in found[1]]
    rows = [
        [str(workers), f"{statistics.median(rate for rate, _ in measured):,.0f}",
         results.span([rate / one for (rate, _), one in zip(measured, base, strict=True)], ".2f", "x"),
         f"{statistics.mean(points for _, points in measured):.2f}"]
        for workers, measured in found.items()
    ]  # fmt: skip
    name = torch.cuda.get_device_name() if device == "cuda" else "no GPU"
    results.write(
        "gpu",
        "Processes that share one network on one GPU",
        [
            f"{name}, torch {torch.__version__}. A network with two convolutions and batch normalisation on",
            f"scikit-learn's digits, batches of {BATCH}, Adam, {epochs} epochs; {turns} turns, each with its own seed.",
            "Parameters, running means and the optimiser's memory are shared by handle; each process has its stream.",
            "",
            *results.table(["processes", "samples/s, median", "times one process", "held-out accuracy, mean %"], rows),
        ],
        out,
    )
