"""What a model answers to a file: the same for all kinds of models, so that one command serves them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predictions for the rows of a file, in their order, and how good they are where the file tells."""

    values: NDArray[Any]  # one a row, or one row each
    name: str = "predictions"  # what they are called in a record
    scores: Mapping[str, float] = field(default_factory=dict)  # such as {"accuracy": 0.9}
    more: Mapping[str, Any] = field(default_factory=dict)  # what else a record says
