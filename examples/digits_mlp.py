"""
A perceptron that processes share
=================================

A multi-layer perceptron on scikit-learn's digits is trained by processes that share it and take no lock.

.. code-block:: console

   $ python examples/digits_mlp.py [EPOCHS] [WORKERS] [--draw]
"""

from __future__ import annotations

import sys
from functools import partial

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset, random_split

import hogwild


def digits() -> tuple[TensorDataset, TensorDataset]:
    """1,437 pictures of 8 x 8 to train on, 360 held out."""
    data = load_digits()
    whole = TensorDataset(torch.tensor(data.images / 16, dtype=torch.float32), torch.tensor(data.target))
    train, test = random_split(whole, [1437, 360], generator=torch.Generator().manual_seed(0))
    return train, test


def main(epochs: int = 20, workers: int = 2) -> hogwild.Run:
    """Train, and print a line an epoch."""
    train, test = digits()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    run = hogwild.minimise(
        hogwild.Module(net, nn.functional.cross_entropy, train, batch=32),
        rule=partial(torch.optim.Adam, lr=2e-3),
        schedule="cosine",
        strategy=hogwild.Hogwild(workers),
        budget=epochs,
        test=test,
        callbacks=[hogwild.callbacks.Progress()],
    )
    for record in run.history:
        if "test_accuracy" in record:
            print(f"epoch {record['epoch']:2}  loss {record['loss']:.4f}  held out {record['test_accuracy']:.1%}")
    print(f"{workers} workers, {run.result['updates'] / run.seconds:,.0f} samples/s")
    return run


def draw(run: hogwild.Run) -> None:
    """Draw the training loss and the held-out accuracy over the epochs."""
    import matplotlib.pyplot as plt

    measured = [record for record in run.history if "test_accuracy" in record]
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
    left.plot([record["epoch"] for record in run.history], [record["loss"] for record in run.history], "o-")
    left.set(xlabel="epoch", ylabel="training loss", yscale="log")
    right.plot([record["epoch"] for record in measured], [record["test_accuracy"] for record in measured], "s-")
    right.set(xlabel="epoch", ylabel="held-out accuracy")
    plt.show()


# Its worker processes begin as copies of one that another example has made in the same process of the build.
# sphinx_gallery_parallel = False
if __name__ == "__main__":
    words = sys.argv[1:]
    run = main(*(int(word) for word in words if word != "--draw"))
    if "--draw" in words:
        draw(run)
