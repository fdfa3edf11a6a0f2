"""
A PyTorch loop of your own: three changed lines
===============================================

An ordinary PyTorch script is trained by two workers without a lock. The three marked lines are what has changed. The
script learns handwritten digits (scikit-learn's, no download) with a network with one hidden layer.
"""

from __future__ import annotations

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import hogwild  # 1


def main(epochs: int = 20) -> None:
    torch.manual_seed(0)
    images, digits = load_digits(return_X_y=True)
    samples = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))
    train, test = random_split(samples, [0.8, 0.2])
    loader = DataLoader(train, batch_size=16, shuffle=True)

    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    with hogwild.shared(net, optimizer, workers=2) as worker:  # 2
        for _ in range(epochs):
            for x, y in worker.split(loader):  # 3 (was: in loader)
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(x), y).backward()
                optimizer.step()

    x, y = test[:]
    accuracy = (net(x).argmax(1) == y).float().mean().item()
    print(f"{worker.steps} steps of {worker.workers} workers, held-out accuracy {accuracy:.1%}")


# Its workers run this script again, which is not possible within a worker of the build.
# sphinx_gallery_parallel = False
if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
