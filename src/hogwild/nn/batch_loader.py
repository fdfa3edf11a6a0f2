"""Batches of a data set, on the device of the network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)

from hogwild.data.loader import map_in_order
from hogwild.data.sampling import Indices, WeightedRandom
from hogwild.errors import ParameterError
from hogwild.nn.row_chunks import SparseSamples
from hogwild.registry import invalid_parameter

Collate = Callable[[list[Any]], Any]


class BatchLoader:
    """Map-style data set, and the way in which its samples become batches.

    >>> feed = BatchLoader(TensorDataset(torch.arange(5.0), torch.arange(5)))
    >>> [batch[1].tolist() for batch in feed.in_order(3)]
    [[0, 1, 2], [3, 4]]
    """

    def __init__(
        self, dataset: Any, collate: Collate | None = None, device: str = "cpu", options: dict[str, Any] | None = None
    ) -> None:
        self.dataset, self.collate, self.device = dataset, collate or default_collate, device
        # Options of a DataLoader, if its processes read the samples.
        self.options = options or {}
        # Rows of the inner data set, if this data set is a subset.
        self._rows = None
        while type(self.dataset) is Subset:
            rows = torch.as_tensor(self.dataset.indices)
            self._rows = rows if self._rows is None else rows[self._rows]
            self.dataset = self.dataset.dataset
        self._at_once = type(self.dataset) is TensorDataset and self.collate is default_collate

    def __len__(self) -> int:
        return len(self.dataset if self._rows is None else self._rows)

    @property
    def stored(self) -> SparseSamples | None:
        """The data set if it makes batches of sparse rows, and all of its rows are used; else None."""
        return self.dataset if isinstance(self.dataset, SparseSamples) and self._rows is None else None

    def batches(self, indices: Iterable[Indices]) -> Iterator[Any]:
        """Return an iterator of one batch for each of these lists of samples."""
        if self.options:
            lists = [self._places(some).tolist() for some in indices]
            # The reading processes have their own seeds, so that the network's random numbers are the same without
            # them.
            generator = torch.Generator().manual_seed(torch.initial_seed())
            loader = DataLoader(
                self.dataset, batch_sampler=lists, collate_fn=self.collate, generator=generator, **self.options
            )
            return (_to(batch, self.device) for batch in loader)
        if self.device != "cpu" and hasattr(self.dataset, "batch_of"):
            return (_to(batch, self.device) for _, batch in map_in_order(self._pinned, indices))
        return (_to(self._fetch(some), self.device) for some in indices)

    def in_order(self, batch: int) -> Iterator[Any]:
        """Return an iterator of batches of all samples, in their order."""
        return self.batches(np.arange(first, min(first + batch, len(self))) for first in range(0, len(self), batch))

    def _pinned(self, indices: Indices) -> tuple[torch.Tensor, ...]:
        """Return a batch in pinned memory, which a GPU reads asynchronously."""
        return tuple(part.pin_memory() for part in self.dataset.batch_of(self._places(indices)))

    def _places(self, indices: Indices) -> torch.Tensor:
        rows = torch.from_numpy(indices)
        return rows if self._rows is None else self._rows[rows]

    def _fetch(self, indices: Indices) -> object:
        rows = self._places(indices)
        if self._at_once:
            # Indexing whole tensors is many times as fast as collating single samples.
            return tuple(tensor[rows] for tensor in self.dataset.tensors)
        # The data set makes whole batches itself.
        if hasattr(self.dataset, "batch_of"):
            return self.dataset.batch_of(rows)
        if hasattr(self.dataset, "__getitems__"):
            return self.collate(self.dataset.__getitems__(rows.tolist()))
        return self.collate([self.dataset[row] for row in rows.tolist()])


def batch_loader(samples: object, loader: object = None, device: str = "cpu") -> BatchLoader:
    """Return the batches of a data set, read as its ``DataLoader`` reads them, if there is one.

    Raises
    ------
    ParameterError
        If the data set has no length or no numbered samples, or if its loader makes no batches.

    Examples
    --------
    >>> samples = TensorDataset(torch.arange(5.0))
    >>> len(batch_loader(samples, DataLoader(samples, batch_size=2)))
    5
    """
    if isinstance(samples, IterableDataset) or not hasattr(samples, "__getitem__") or not hasattr(samples, "__len__"):
        raise invalid_parameter("dataset", "a data set with a length whose samples have numbers, or its DataLoader",
                   type(samples).__name__)  # fmt: skip
    if not isinstance(loader, DataLoader):
        return BatchLoader(samples, device=device)
    if loader.batch_sampler is None:
        raise ParameterError(
            "A DataLoader with batch_size=None passes samples on one by one: give it a batch_size, or give Module the "
            "data set, and its 'batch' parameter the number of samples of an update."
        )
    names = ("num_workers", "pin_memory", "prefetch_factor", "timeout", "worker_init_fn", "multiprocessing_context")
    options = {name: getattr(loader, name) for name in names} if loader.num_workers else {}
    return BatchLoader(samples, loader.collate_fn, device, options)


def weighted_draws(loader: DataLoader[Any]) -> WeightedRandom | None:
    """Return the draws by weight that a loader's ``WeightedRandomSampler`` makes; None if it has another sampler.

    Raises
    ------
    ParameterError
        If it draws without replacement, which workers cannot divide among themselves.
    """
    sampler = loader.sampler
    if type(loader.batch_sampler) not in (BatchSampler, type(None)) or type(sampler) is not WeightedRandomSampler:
        return None
    if not sampler.replacement:
        raise ParameterError(
            "Workers cannot share draws by weight without replacement: use WeightedRandomSampler(..., "
            "replacement=True), or give Module the data set, and its 'sampling' parameter the way to draw from it."
        )
    return WeightedRandom(sampler.weights.numpy(), sampler.num_samples)


def check_sampler(loader: DataLoader[Any], instead: str) -> None:
    """Raise a ParameterError if workers cannot divide the samples of a DataLoader among themselves."""
    own = type(loader.batch_sampler) not in (BatchSampler, type(None))
    sampler: Any = loader.batch_sampler if own else loader.sampler
    each_once = isinstance(sampler, SequentialSampler) or (
        isinstance(sampler, RandomSampler) and not sampler.replacement and sampler.num_samples == len(loader.dataset)  # type: ignore[arg-type]
    )
    if not each_once:
        raise ParameterError(
            f"Workers cannot share the sampler {type(sampler).__name__} of this DataLoader: {instead}."
        )


def _to(batch: Any, device: str) -> Any:
    if device == "cpu":
        return batch
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: _to(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_to(part, device) for part in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(_to(part, device) for part in batch)
    return batch
