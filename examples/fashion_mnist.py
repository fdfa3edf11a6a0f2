"""
Fashion-MNIST from its files
============================

A network with two convolutions is trained by processes that share it.

.. code-block:: console

   $ python examples/fashion_mnist.py [FOLDER] [EPOCHS] [WORKERS]

FOLDER holds the four files as they are published: train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz,
t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz (unpacked ones do as well). MNIST's have the same names.
Without a folder the digits of scikit-learn, enlarged to 28 x 28, take their place.
"""

from __future__ import annotations

import gzip
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

import hogwild


def idx(folder: Path, name: str) -> np.ndarray:
    """Read one file: a magic number with the number of axes, their lengths, then bytes."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.exists():
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            axes = content[3]
            shape = np.frombuffer(content, ">i4", axes, 4)
            return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
    raise SystemExit(f"There is no {name}.gz in {folder}: put the four files of Fashion-MNIST there.")


def read(folder: Path, kind: str) -> TensorDataset:
    """Pictures of 28 x 28 and their labels."""
    images = torch.tensor(idx(folder, f"{kind}-images-idx3-ubyte"), dtype=torch.float32)[:, None] / 255
    return TensorDataset(images, torch.tensor(idx(folder, f"{kind}-labels-idx1-ubyte"), dtype=torch.int64))


def digits() -> tuple[TensorDataset, TensorDataset]:
    """Take scikit-learn's digits instead, enlarged from 8 x 8 to 28 x 28: 1,437 to train on, 360 held out."""
    data = load_digits()
    small = torch.tensor(data.images / 16, dtype=torch.float32)[:, None]
    images, labels = nn.functional.interpolate(small, (28, 28)), torch.tensor(data.target)
    return TensorDataset(images[:1437], labels[:1437]), TensorDataset(images[1437:], labels[1437:])


def main(folder: str = "", epochs: int = 5, workers: int = 2) -> float:
    """Train and print the accuracy of every epoch."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    train, test = (read(Path(folder), "train"), read(Path(folder), "t10k")) if folder else digits()
    run = hogwild.minimise(
        hogwild.Module(
            net.to("cuda" if torch.cuda.is_available() else "cpu"), nn.functional.cross_entropy, train, batch=64
        ),
        rule=partial(torch.optim.AdamW, lr=1e-3, weight_decay=1e-4),
        schedule="cosine",
        strategy=hogwild.Hogwild(workers),
        budget=epochs,
        test=test,
        callbacks=[hogwild.callbacks.Progress()],
        checkpoint="fashion-mnist" if folder else None,
    )
    for record in run.history:
        print(f"epoch {record['epoch']}  loss {record['loss']:.4f}  held out {record.get('test_accuracy', 0):.2%}")
    return float(run.result["test_accuracy"])


# Its worker processes begin as copies of one that another example has made in the same process of the build.
# sphinx_gallery_parallel = False
if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(argument) for argument in sys.argv[2:]))
