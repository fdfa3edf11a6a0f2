"""Linear models on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hogwild.cli.problems.adapter import Kind, Opened, Source


def open_rows(source: Source) -> Opened:
    """Open rows of features with labels. Held-out rows are read so that their columns have the same meaning."""
    from hogwild import data as sources

    how = source.reading
    training = sources.open(source.data, reading=how, memory=source.memory)
    held_out: Any = None
    if source.holdout is not None:
        training, held_out = training.split(source.holdout, source.seed)
    elif source.test is not None:
        table = training.table
        same = replace(
            how, base=0 if training.base == 0 else 1, features=training.n_features, extra="ignore", table=table
        )
        held_out = sources.open(source.test, reading=same, memory=source.memory)
    kept = {
        "format": how.format, "base": training.base, "bits": how.bits, "label": how.label, "weight": how.weight,
    }  # fmt: skip
    from_one = training.base and how.base == "auto"
    note = "no index is 0, so the indices are taken to count from 1 (--base 0 if they do not)"
    return Opened(training, held_out, kept, (note,) if from_one else ())


def make(
    data: Any,
    *,
    loss: str = "logistic",
    l1: float = 0.0,
    l2: float = 0.0,
    intercept: bool = True,
    balanced: bool = False,
) -> Any:
    """Make a linear problem."""
    from hogwild.errors import ParameterError
    from hogwild.problems.linear import Linear

    if data.table is not None:
        raise ParameterError(f"{data.name} is a libffm file, which is for --problem ffm, or fm.")
    return Linear(data, loss, l1=l1, l2=l2, intercept=intercept, class_weight="balanced" if balanced else None)


def check(options: Mapping[str, Any]) -> None:
    """Raise an error for an unknown loss."""
    from hogwild.losses import named

    named(options.get("loss", "logistic"))


KIND = Kind(open_rows, make, check)
