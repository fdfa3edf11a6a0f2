"""Matrix completion on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hogwild.cli.problems.adapter import Kind, Opened, Source
from hogwild.errors import ParameterError


def open_source(
    source: Source, *, user: str | None = None, item: str | None = None, rating: str | None = None,
    loss: str = "squared",
) -> Opened:  # fmt: skip
    """Open ratings, and held-out ratings with the same numbering of users and items."""
    from hogwild.data.ratings import Columns, open_ratings

    how = source.reading
    if how.features is not None or how.weight is not None or how.base != "auto":
        raise ParameterError("--features, --weight and --base are for rows of features: leave them out with ratings.")
    columns, unlabelled = Columns(user, item, rating), loss == "bpr"
    training = open_ratings(source.data, columns=columns, format=how.format, unlabelled=unlabelled)
    held_out: Any = None
    if source.holdout is not None:
        training, held_out = training.split(source.holdout, source.seed)
    elif source.test is not None:
        known = training.users, training.items
        held_out = open_ratings(
            source.test, columns=columns, format=how.format, known=known, unlabelled=unlabelled
        )  # fmt: skip
    kept = {"format": how.format, "user": user, "item": item, "rating": rating}
    return Opened(training, held_out, kept)


def make(
    data: Any,
    *,
    rank: int = 32,
    loss: str = "squared",
    l2: float | None = None,
    biases: bool = True,
    nonnegative: bool = False,
    seed: int = 0,
) -> Any:
    """Make a matrix completion problem."""
    from hogwild.problems.matrix_completion import MatrixCompletion

    return MatrixCompletion(data, rank, loss=loss, l2=l2, biases=biases, nonnegative=nonnegative, seed=seed)


def check(options: Mapping[str, Any]) -> None:
    """Raise an error for an unknown loss."""
    from hogwild.problems.matrix_completion import LOSSES
    from hogwild.registry import lookup

    lookup("loss", options.get("loss", "squared"), LOSSES)


KIND = Kind(open_source, make, check)
