"""
A convolutional network, coordinated in several ways
====================================================

A small network with batch normalisation learns scikit-learn's digits: with one worker, without locks, with a lock,
and with a copy for each worker. On a machine with a GPU the model is trained there, by processes that share it.

.. code-block:: console

   $ python examples/digits_cnn.py [EPOCHS] [WORKERS]
"""

from __future__ import annotations

import sys
from functools import partial

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset, random_split

import hogwild


def network() -> nn.Module:
    """Two convolutions, each with batch normalisation, and a linear layer."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 16, 10),
    )  # fmt: skip


def main(epochs: int = 5, workers: int = 2) -> list[float]:
    """Train with each strategy, and print what came of it."""
    data = load_digits()
    pictures = torch.tensor(data.images / 16, dtype=torch.float32)[:, None]
    whole = TensorDataset(pictures, torch.tensor(data.target))
    train, test = random_split(whole, [1437, 360], generator=torch.Generator().manual_seed(0))
    accuracies = []
    for strategy in (hogwild.Serial(), hogwild.Hogwild(workers), hogwild.Locked(workers), hogwild.Averaging(workers)):
        net = network().to("cuda" if torch.cuda.is_available() else "cpu")
        run = hogwild.minimise(
            hogwild.Module(net, nn.functional.cross_entropy, train, batch=32),
            rule=partial(torch.optim.SGD, lr=0.02, momentum=0.9, weight_decay=1e-4),
            strategy=strategy,
            budget=epochs,
            test=test,
        )
        accuracies.append(run.result["test_accuracy"])
        rate = run.result["updates"] / run.seconds
        print(f"{type(strategy).__name__:10} held out {accuracies[-1]:.1%}  {rate:,.0f} samples/s")
    return accuracies


# It compares times, so no other example runs beside it.
# sphinx_gallery_parallel = False
if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
