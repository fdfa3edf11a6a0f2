"""Trained :class:`SparseMLP` with the labels of its outputs, and its file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from hogwild import array_file
from hogwild.data import open as open_data
from hogwild.data.packing.sharded_rows import is_packed
from hogwild.data.row_blocks import in_multiples_of, row_blocks
from hogwild.data.sources import local_folder
from hogwild.errors import ModelError
from hogwild.models import FORMAT
from hogwild.models.predictions import Predictions, Quality, joined
from hogwild.models.read_options import read_options
from hogwild.models.row_answers import warn_if_shuffled
from hogwild.nn.batch_loader import BatchLoader
from hogwild.nn.csr_dataset import CSRDataset
from hogwild.nn.sparse_mlp import SparseMLP

if TYPE_CHECKING:
    from onnx import ModelProto

    from hogwild.onnx_graph import Inputs

# Number of rows whose outputs are computed together.
AT_ONCE = 8192


@dataclass(frozen=True, slots=True, eq=False)
class SparseMLPModel:
    """Trained perceptron for sparse inputs, and all that predictions need.

    >>> from scipy.sparse import csr_array
    >>> model = SparseMLPModel(SparseMLP(3, [4], 2), (-1.0, 1.0))
    >>> rows = CSRDataset((csr_array([[0, 2.0, 0], [1.0, 0, 0]]), [1, -1]))
    >>> model.probabilities(rows).shape
    (2, 2)
    """

    net: SparseMLP
    labels: tuple[float, ...]  # Label of each output.
    reading: Mapping[str, Any] = field(default_factory=dict)  # Options with which the training file was read.
    training: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Record of the training run.

    @torch.no_grad()
    def probabilities(self, rows: CSRDataset) -> NDArray[np.float64]:
        """Return the probability of each label, row by row."""
        before, device = self.net.training, str(self.net.bias.device)
        self.net.eval()
        try:
            batches = BatchLoader(rows, device=device).in_order(AT_ONCE)
            found = [torch.softmax(self.net(*batch[:-1]), 1).cpu().numpy() for batch in batches]
        finally:
            self.net.train(before)
        return np.concatenate(found).astype(np.float64)

    def answer(self, path: str | Path, *, proba: bool = False, **options: object) -> Predictions:
        """Return predictions for a file, in its own order.

        Options that are not given are those of the training file.
        """
        warn_if_shuffled(path)
        return joined(self.answers(path, proba=proba, **options))

    def answers(self, path: str | Path, *, proba: bool = False, **options: object) -> Iterator[Predictions]:
        """Yield what :meth:`answer` returns block by block, in memory that does not grow with the file."""
        reading = read_options(self.reading, self.net.dense_size, options)
        folder = local_folder(path)
        packed = folder is not None and is_packed(folder)
        # Outputs are computed for as many rows together as in a data set in memory, to be equal to the last digit.
        blocks = [open_data(path, reading=reading)] if packed else in_multiples_of(AT_ONCE, row_blocks(path, reading))
        labels, quality = np.asarray(self.labels), Quality(self.labels)
        for block in blocks:
            found = self.probabilities(CSRDataset(block, binary=self.net.binary, width=self.net.dense_size))
            predicted = labels[found.argmax(1)]
            quality.add(predicted, block.labels())
            yield Predictions(
                found if proba else predicted, "probabilities" if proba else "predictions", quality.scores(),
                {"classes": list(self.labels)},
            )  # fmt: skip

    def to_onnx(self, path: str | os.PathLike[str] | None = None, *, inputs: Inputs = "sparse") -> ModelProto:
        """Return the model as an ONNX graph, and write it to ``path`` if a path is given.

        The inputs are those of :meth:`hogwild.SparseMLP.to_onnx`. The outputs are ``label`` [N] and ``probabilities``
        [N, labels].
        """
        from hogwild.nn.sparse_mlp_onnx import to_onnx

        return to_onnx(self.net, path, inputs, np.asarray(self.labels))

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically."""
        table = self.net.table
        record = {
            "kind": "sparse-mlp", "format": FORMAT, "dense_size": self.net.dense_size, "hidden": list(self.net.hidden),
            "labels": list(self.labels), "binary": table.binary, "update": table.update, "factor": table.factor,
            "reading": dict(self.reading), "training": dict(self.training),
        }  # fmt: skip
        state = self.net.state_dict()
        array_file.save(path, {name: part.detach().cpu().numpy() for name, part in state.items()}, record)


def from_file(arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> SparseMLPModel:
    """Return the model of a file.

    Raises
    ------
    ModelError
        If the arrays do not fit the network.
    """
    labels = tuple(float(label) for label in record["labels"])
    # The network uses the memory of the loaded arrays, so it needs no memory of its own.
    with torch.device("meta"):
        net = SparseMLP(
            int(record["dense_size"]), [int(width) for width in record["hidden"]], len(labels), bool(record["binary"]),
            update=str(record["update"]), factor=float(record["factor"]),
        )  # fmt: skip
    for name, part in net.state_dict().items():
        if name in arrays and torch.from_numpy(np.array(arrays[name])).dtype != part.dtype:
            raise ValueError(f"'{name}' is of type {arrays[name].dtype}")
    try:
        net.load_state_dict({name: torch.from_numpy(np.array(part)) for name, part in arrays.items()}, assign=True)
    except RuntimeError as reason:
        raise ModelError(f"The model is incomplete or inconsistent ({reason}).") from None
    return SparseMLPModel(net, labels, dict(record["reading"]), dict(record["training"]))
