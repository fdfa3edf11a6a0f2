"""Problems whose terms are rows, ratings or edges, on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hogwild.cli.problems.adapter import RULES, Kind, Opened, Source
from hogwild.errors import ParameterError

if TYPE_CHECKING:
    from hogwild.data import Dataset
    from hogwild.data.graphs import Graph
    from hogwild.data.ratings import Ratings
    from hogwild.problems.factorisation_machine import FactorisationMachine
    from hogwild.problems.field_aware_fm import FieldAwareFactorisationMachine
    from hogwild.problems.graph_cut import GraphCut
    from hogwild.problems.linear import Linear
    from hogwild.problems.matrix_completion import MatrixCompletion


def open_rows(source: Source) -> Opened:
    """Open rows of features with labels. Held-out rows are read so that their columns have the same meaning."""
    from hogwild import data as sources
    from hogwild.data.sources import local_folder

    how = source.reading
    training = sources.open(source.data, reading=how, memory=source.memory)
    held_out: Any = None
    if source.holdout is not None:
        training, held_out = training.split(source.holdout, source.seed)
    elif source.test is not None:
        table = training.table
        same = replace(
            how, base=0 if training.base == 0 else 1, features=training.n_features, extra="ignore", table=table,
            encoding=training.encoding, fits=False,
        )  # fmt: skip
        held_out = sources.open(source.test, reading=same, memory=source.memory)
    kept = {
        "format": how.format, "bits": how.bits, "label": how.label, "weight": how.weight, **training.reading,
    }  # fmt: skip
    # A packed folder says itself from which number its indices counted.
    from_one = training.base and how.base == "auto" and local_folder(source.data) is None
    note = "no index is 0, so the indices are taken to count from 1 (--base 0 if they do not)"
    roles: tuple[str, ...] = ()
    if training.encoding is not None and local_folder(source.data) is None:
        from hogwild.data.tables.guess import describe

        roles = (describe(training.encoding),)
    return Opened(training, held_out, kept, (note,) if from_one else (), roles)


def make_linear(
    data: Dataset,
    *,
    loss: str = "logistic",
    l1: float = 0.0,
    l2: float | Literal["auto"] | None = None,
    intercept: bool = True,
    balanced: bool = False,
    sampling: str = "split",
) -> Linear:
    """Make a linear problem."""
    from hogwild.errors import ParameterError
    from hogwild.problems.linear import Linear

    if data.table is not None:
        what = "a libffm file, which is" if data.encoding is None else "read with fields, which are"
        raise ParameterError(f"{data.name} is {what} for --problem ffm, or fm.")
    return Linear(
        data, loss, l1=l1, l2=l2, intercept=intercept, class_weight="balanced" if balanced else None, sampling=sampling
    )


def check_loss(options: Mapping[str, Any]) -> None:
    """Raise an error for an unknown loss or sampling."""
    from hogwild.data.sampling import row_sampling
    from hogwild.losses import named

    named(options.get("loss", "logistic"))
    row_sampling(options.get("sampling", "split"))


LINEAR = Kind(open_rows, make_linear, check_loss, rules=(*RULES, "sdca"))


def make_fm(
    data: Dataset,
    *,
    loss: str = "logistic",
    rank: int = 8,
    l2: float | Literal["auto"] | None = None,
    l2_factors: float | None = None,
    intercept: bool = True,
    normalise: bool = False,
    balanced: bool = False,
    seed: int = 0,
    sampling: str = "split",
) -> FactorisationMachine:
    """Make a factorisation machine."""
    from hogwild.problems.factorisation_machine import FactorisationMachine

    return FactorisationMachine(
        data, loss, rank=rank, l2=l2, l2_factors=l2_factors, intercept=intercept, normalise=normalise,
        class_weight="balanced" if balanced else None, seed=seed, sampling=sampling,
    )  # fmt: skip


def make_ffm(
    data: Dataset,
    *,
    loss: str = "logistic",
    rank: int = 4,
    l2: float | Literal["auto"] | None = None,
    l2_factors: float | None = None,
    intercept: bool = True,
    normalise: bool = True,
    balanced: bool = False,
    seed: int = 0,
    sampling: str = "split",
) -> FieldAwareFactorisationMachine:
    """Make a field-aware factorisation machine for the rows of a libffm file or of a table."""
    from hogwild.problems.field_aware_fm import FieldAwareFactorisationMachine

    return FieldAwareFactorisationMachine(
        data, loss, rank=rank, l2=l2, l2_factors=l2_factors, intercept=intercept, normalise=normalise,
        class_weight="balanced" if balanced else None, seed=seed, sampling=sampling,
    )  # fmt: skip


def open_fields(source: Source) -> Opened:
    """Open rows with fields: those of a libffm file, or the columns of a table."""
    how = source.reading
    return open_rows(replace(source, reading=replace(how, fields=how.fields or ())))


FM, FFM = Kind(open_rows, make_fm, check_loss), Kind(open_fields, make_ffm, check_loss)


def open_rated(
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


def make_matrix_completion(
    data: Ratings,
    *,
    rank: int = 32,
    loss: str = "squared",
    l2: float | Literal["auto"] | None = None,
    biases: bool = True,
    nonnegative: bool = False,
    seed: int = 0,
    sampling: str = "split",
) -> MatrixCompletion:
    """Make a matrix completion problem."""
    from hogwild.problems.matrix_completion import MatrixCompletion

    return MatrixCompletion(
        data, rank, loss=loss, l2=l2, biases=biases, nonnegative=nonnegative, seed=seed, sampling=sampling
    )


def check_rating_loss(options: Mapping[str, Any]) -> None:
    """Raise an error for an unknown loss or sampling."""
    from hogwild.data.sampling import row_sampling
    from hogwild.losses import our_name
    from hogwild.problems.matrix_completion import LOSSES
    from hogwild.registry import lookup

    lookup("loss", our_name(options.get("loss", "squared")), LOSSES)
    row_sampling(options.get("sampling", "split"))


MATRIX_COMPLETION = Kind(open_rated, make_matrix_completion, check_rating_loss)


def open_graph(source: Source) -> Opened:
    """Open a graph, which has no held-out data because it is cut as a whole."""
    from hogwild.data.graphs import read_edges
    from hogwild.data.sources import local_files

    if source.test is not None or source.holdout is not None:
        raise ParameterError("A graph is cut as a whole: --test and --holdout do not go with --problem graph-cut.")
    with local_files([source.data]) as files:
        return Opened(read_edges(files[0]), None, {})


def make_graph_cut(data: Graph, *, seeds: Path | None = None, sampling: str = "split") -> GraphCut:
    """Make a cut between the seed nodes that a file names."""
    from hogwild.data.graphs import read_seeds
    from hogwild.problems.graph_cut import GraphCut

    assert seeds is not None
    return GraphCut(data, read_seeds(seeds), sampling=sampling)


def check_seeds(options: Mapping[str, Any]) -> None:
    """Raise an error if no file of seed nodes is given, or for an unknown sampling."""
    from hogwild.data.sampling import row_sampling

    row_sampling(options.get("sampling", "split"))
    if options.get("seeds") is None:
        raise ParameterError("A graph is cut between nodes whose parts are known: name them with --seeds FILE.")


# FTRL keeps no weights in its state, so it cannot keep shares in the simplex.
GRAPH_CUT = Kind(open_graph, make_graph_cut, check_seeds, rules=tuple(rule for rule in RULES if rule != "ftrl"))
