"""Predictions for a file, in one form for all kinds of models, so that one command serves them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predictions for the rows of a file in their order, and their quality if the file has labels."""

    values: NDArray[Any]  # One number or one line per row.
    name: str = "predictions"  # Name of the predictions in a record.
    scores: Mapping[str, float] = field(default_factory=dict)  # Quality of the predictions, such as {"accuracy": 0.9}.
    more: Mapping[str, Any] = field(default_factory=dict)  # Further entries of a record.
