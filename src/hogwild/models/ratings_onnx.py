"""Models of ratings as ONNX graphs: the score of each pair of a user and an item, given by their names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from hogwild import onnx_graph

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from hogwild.data.ids import Ids
    from hogwild.models.ratings import RatingsModel

# A name that is not known has the number -1. Its bias and factors are those of number 0, times 0.
KNOWN = (
    "{side}_is_known = GreaterOrEqual({side}_number, none) {side}_known = Cast<to = 1>({side}_is_known) "
    "{side}_at = Max({side}_number, none) {side}_all_bias = Gather({side}_biases, {side}_at) "
    "{side}_bias = Mul({side}_all_bias, {side}_known) {side}_found = Gather({side}_factors, {side}_at)"
)
SCORES = (
    "products = Mul(user_found, item_found) dots = ReduceSum<keepdims = 0>(products, axis_1) "
    "known = Mul(user_known, item_known) pairs = Mul(dots, known) biases = Add(user_bias, item_bias) "
    "sums = Add(biases, pairs) all_scores = Add(sums, mean) scores = Clip(all_scores, lowest_score, highest_score)"
)


def to_onnx(model: RatingsModel, path: str | os.PathLike[str] | None) -> ModelProto:
    """Return the graph of a model of ratings."""
    single = np.finfo(np.float32)
    low, high = (np.clip(bound, single.min, single.max) for bound in model.bounds)
    arrays = {
        "user_factors": model.user_factors, "item_factors": model.item_factors, "user_biases": model.user_biases,
        "item_biases": model.item_biases, "mean": np.array(model.mean), "lowest_score": np.array(low),
        "highest_score": np.array(high),
    }  # fmt: skip
    sides = {"user": model.users, "item": model.items}
    inputs = ", ".join(f"{'string' if _are_text(names) else 'int64'}[N] {side}" for side, names in sides.items())
    return onnx_graph.build(
        inputs, f"{KNOWN.format(side='user')} {KNOWN.format(side='item')} {SCORES}", "real[N] scores",
        {name: np.asarray(array, np.float32) for name, array in arrays.items()},
        look_ups=[_look_up(side, names) for side, names in sides.items()], path=path,
    )  # fmt: skip


def _are_text(names: Ids) -> bool:
    return bool(names.names.dtype.kind == "U")


def _look_up(side: str, names: Ids) -> NodeProto:
    """Return the node that turns names into numbers, and unknown names into -1."""
    keys = {"keys_strings" if _are_text(names) else "keys_int64s": names.names.tolist()}
    node: NodeProto = onnx_graph.package().helper.make_node(
        "LabelEncoder", [side], [f"{side}_number"], domain="ai.onnx.ml",
        values_int64s=list(range(len(names))), default_int64=-1, **keys,
    )  # fmt: skip
    return node
