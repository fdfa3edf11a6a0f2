"""Small models and data for tests of processes. Workers load this file, so it imports no more than they need."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset


def as_it_is(outputs: Tensor, target: Any) -> Tensor:
    """A loss function for models that return their loss."""
    return outputs


class Fixed(nn.Module):
    """A loss whose gradient does not depend on the parameters: the order of updates is all that matters."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, width))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * x).sum() + (self.bias * x.mean()).sum()


class Bag(nn.Module):
    """A sum of rows of a table: sparse gradients that do not depend on the table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(20, 2, sparse=True, mode="sum")
        nn.init.ones_(self.table.weight)

    def forward(self, words: Tensor) -> Tensor:
        return (self.table(words) * torch.tensor([1.0, -2.0])).sum()


def numbers(count: int = 64, width: int = 3, seed: int = 0) -> TensorDataset:
    """Random inputs, and sums of them as targets."""
    x = torch.randn(count, width, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, x.sum(1, keepdim=True))


def line(width: int = 3) -> nn.Linear:
    """A linear model that begins at zero."""
    net = nn.Linear(width, 1)
    for parameter in net.parameters():
        nn.init.zeros_(parameter)
    return net


def soft_net() -> nn.Sequential:
    """A model with random numbers and buffers of its own."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))


class Trouble(Dataset[Any]):
    """Numbers, of which one does something when a process other than the first draws it."""

    def __init__(self, what: str, at: int = 40, count: int = 64, seconds: float = 0.0) -> None:
        self.numbers, self.what, self.at, self.seconds, self.home = numbers(count), what, at, seconds, os.getpid()

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Any:
        if self.seconds:
            time.sleep(self.seconds)
        if index == self.at and os.getpid() != self.home:
            if self.what == "raise":
                raise LookupError("sample 40 is rotten")
            if self.what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.what == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if self.what == "leave":
                os._exit(0)
        return self.numbers[index]


class Holding(torch.optim.SGD):
    """SGD of which one, the first, stands still in the middle of its third step."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, lr=0.01)
        self.home, self.steps, self.stood = os.getpid(), 0, torch.zeros(2**15)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "home": self.home, "steps": self.steps, "stood": self.stood}

    def step(self, closure: Any = None) -> Any:
        self.steps += 1
        if self.steps == 3 and not self.stood[0] and os.getpid() != self.home:
            self.stood[0] = 1
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().step(closure)


class Noisy(Dataset[Any]):
    """Numbers with noise from every generator there is. One process dies when ``most`` samples have been drawn.

    Of several, the one that makes the file ``grave``.
    """

    def __init__(self, most: int = 0, count: int = 64, seconds: float = 0.0, grave: Path | None = None) -> None:
        self.numbers, self.most, self.seconds, self.grave = numbers(count), most, seconds, grave
        self.drawn = torch.zeros(2**15)  # large, and so in memory that all share

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Any:
        self.drawn[0] += 1
        if self.most and self.drawn[0] >= self.most:
            with contextlib.suppress(FileExistsError):
                if self.grave is not None:
                    self.grave.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        x, y = self.numbers[index]
        return x + 0.1 * torch.rand(3) + 0.1 * float(np.random.rand()) + 0.1 * random.random(), y


class Constant(nn.Module):
    """A loss with gradient 1 everywhere: the parameter ends at minus the sum of all steps."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * 1.0


class Sparse(Dataset[Any]):
    """Samples with one to five of 40 features, in three classes: batches are (indices, offsets, values, target)."""

    def __init__(self, count: int = 96) -> None:
        chance = np.random.default_rng(0)
        self.rows = [torch.from_numpy(chance.choice(40, chance.integers(1, 6), replace=False)) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.rows)

    def batch_of(self, samples: Tensor) -> tuple[Tensor, ...]:
        """A whole batch at once."""
        rows = [self.rows[int(sample)] for sample in samples]
        offsets, indices = torch.tensor([0, *np.cumsum([len(row) for row in rows])]), torch.cat(rows)
        return indices, offsets, torch.ones(len(indices)), torch.tensor([int(row[0]) % 3 for row in rows])

    def __getitem__(self, sample: int) -> Any:
        return self.batch_of(torch.tensor([sample]))


class Plain:
    """Samples of a class that knows nothing of PyTorch: a length, and samples by number."""

    def __init__(self, count: int = 64) -> None:
        self.numbers = numbers(count)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Any:
        assert type(index) is int
        x, y = self.numbers[index]
        return {"x": x.numpy(), "y": y.numpy()}


def from_names(batch: dict[str, Tensor]) -> tuple[Any, Any]:
    """Inputs and target of a batch with names."""
    return {"input": batch["x"]}, batch["y"]


def twice(samples: list[Any]) -> Any:
    """A collate function that doubles the targets."""
    return torch.stack([x for x, _ in samples]), 2 * torch.stack([y for _, y in samples])


class Long(Dataset[Any]):
    """Numbers whose reading processes write down who they are, and then sleep."""

    def __init__(self, folder: str, seconds: float = 0.0) -> None:
        self.numbers, self.folder, self.seconds = numbers(), folder, seconds

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Any:
        Path(self.folder, str(os.getpid())).touch()
        time.sleep(self.seconds)
        return self.numbers[index]


class Heavy(nn.Module):
    """A model that is mostly weight: it looks at all of it, and learns a little of it."""

    def __init__(self, mebibytes: int) -> None:
        super().__init__()
        self.fixed = nn.Parameter(torch.ones(mebibytes, 2**18), requires_grad=False)
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * x).sum() + self.fixed.sum() * 1e-9


class Weighty(Dataset[Any]):
    """Samples for which all of several arrays are looked at."""

    def __init__(self, *arrays: Any) -> None:
        self.arrays, self.looked = arrays, False

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> Any:
        if not self.looked:
            self.looked = True
            assert all(array.sum() > 0 for array in self.arrays)
        return torch.ones(3), torch.zeros(1)
