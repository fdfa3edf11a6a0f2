"""Perceptrons for sparse inputs as ONNX graphs; see :mod:`hogwild.onnx_graph`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hogwild import onnx_graph
from hogwild.onnx_graph import Inputs

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch import Tensor

    from hogwild.nn.sparse_mlp import SparseMLP


def to_onnx(
    net: SparseMLP, path: str | os.PathLike[str] | None, inputs: Inputs, classes: NDArray[Any] | None = None
) -> ModelProto:
    """Return the graph of a net: its outputs are ``scores``, or with ``classes`` also their probabilities.

    Values that a binary net does not take are 1 in the inputs of its graph, and 0 where a row is filled up.
    """
    arrays = {"embeddings": _array(net.table.weight), "bias": _array(net.bias)}
    rows = onnx_graph.rows_of(inputs, net.dense_size)
    steps = [onnx_graph.SUM_OF_LINES[inputs].format(sum="sum", table="embeddings"), "h_0 = Add(sum, bias)"]
    linear = [layer for number, layer in enumerate(net.layers) if number % 2]
    for number, layer in enumerate(linear, start=1):
        arrays |= {f"w_{number}": _array(layer.weight), f"b_{number}": _array(layer.bias)}
        before = f"r_{number - 1} = Relu(h_{number - 1})"
        steps.append(f"{before} h_{number} = Gemm<transB = 1>(r_{number - 1}, w_{number}, b_{number})")
    last = f"h_{len(linear)}"
    if classes is None:
        steps.append(f"scores = Identity({last})")
        outputs = f"real[N, {net.classes}] scores"
    else:
        steps.append(f"raw = Identity({last}) {onnx_graph.CLASSES} {onnx_graph.OF_MANY['softmax']}")
        outputs = f"{onnx_graph.labels_of(classes)[0]}[N] label, real[N, {net.classes}] probabilities"
    return onnx_graph.build(rows, " ".join(steps), outputs, arrays, classes=classes, path=path)


def _array(tensor: Tensor | Any) -> NDArray[np.float32]:
    return np.asarray(tensor.detach().cpu().numpy(), np.float32)
