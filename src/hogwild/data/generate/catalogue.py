"""Catalogue of the kinds of generated data. A new kind is one function and one line in ``KINDS``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

from hogwild.data.csr import CSRRows
from hogwild.data.generate.factorisation_machine import Interactions
from hogwild.data.generate.linear_model import Generated
from hogwild.errors import ParameterError


def classification(
    rows: int = 100_000,
    features: int = 10_000,
    *,
    nonzeros: int | None = None,
    exponent: float = 0.9,
    noise: float = 0.3,
    seed: int = 0,
    binary: bool = False,
) -> Generated:
    """Generate two classes, -1 and +1, separated by a planted plane.

    >>> classification(1_000, 50, seed=1).rows.labels[:4]
    array([...])
    """
    return Generated("classification", rows, features, _few(nonzeros, features), exponent, noise, seed, binary)


def regression(
    rows: int = 100_000,
    features: int = 10_000,
    *,
    nonzeros: int | None = None,
    exponent: float = 0.9,
    noise: float = 0.1,
    seed: int = 0,
    binary: bool = False,
) -> Generated:
    """Generate labels by a planted linear function. Without noise, its weights solve the problem exactly.

    >>> regression(1_000, 50, noise=0.0).intercept.shape
    ()
    """
    return Generated("regression", rows, features, _few(nonzeros, features), exponent, noise, seed, binary)


def multiclass(
    rows: int = 100_000,
    features: int = 10_000,
    *,
    classes: int = 5,
    nonzeros: int | None = None,
    exponent: float = 0.9,
    noise: float = 0.3,
    seed: int = 0,
    binary: bool = False,
) -> Generated:
    """Generate classes 0, 1, ... by the largest of as many planted linear functions.

    >>> multiclass(1_000, 50, classes=3).weights.shape
    (3, 50)
    """
    return Generated("multiclass", rows, features, _few(nonzeros, features), exponent, noise, seed, binary, classes)


def rcv1(
    rows: int = 100_000,
    features: int = 47_236,
    *,
    nonzeros: int = 75,
    exponent: float = 0.9,
    noise: float = 0.3,
    seed: int = 0,
) -> Generated:
    """Generate two classes of texts, in the shape of the Reuters collection RCV1.

    >>> rcv1(100).features
    47236
    """
    return classification(rows, features, nonzeros=nonzeros, exponent=exponent, noise=noise, seed=seed)


def clicks(
    rows: int = 1_000_000,
    features: int = 4_000_000,
    *,
    nonzeros: int = 30,
    exponent: float = 1.1,
    noise: float = 1.0,
    seed: int = 0,
) -> Generated:
    """Generate two classes of events; each event has a few of millions of binary features.

    >>> clicks(100, 10_000).rows.layout
    'binary'
    """
    return classification(rows, features, nonzeros=nonzeros, exponent=exponent, noise=noise, seed=seed, binary=True)


def dense(rows: int = 100_000, features: int = 300, *, noise: float = 0.3, seed: int = 0) -> Generated:
    """Generate two classes of rows that have a value for every feature.

    >>> dense(100).rows.layout
    'dense'
    """
    return Generated("classification", rows, features, None, noise=noise, seed=seed)


def interactions(
    rows: int = 100_000,
    features: int = 1_000,
    *,
    fields: int = 10,
    rank: int = 4,
    strength: float = 2.0,
    exponent: float = 0.9,
    noise: float = 0.5,
    seed: int = 0,
) -> Interactions:
    """Generate two classes of events by a planted factorisation machine; products of features determine the class.

    >>> interactions(100, 50, fields=5).rows.nonzeros
    500
    """
    return Interactions(rows, features, fields, rank, strength, exponent, noise, seed)


KINDS: dict[str, Callable[..., Generated | Interactions]] = {
    "classification": classification,
    "regression": regression,
    "multiclass": multiclass,
    "rcv1": rcv1,
    "clicks": clicks,
    "dense": dense,
    "interactions": interactions,
}


def kind(name: str, **options: object) -> Generated | Interactions:
    """Return a kind of data by its name; raise ``ParameterError`` with the known options for an unknown option.

    >>> kind("rcv1", rows=100).n_rows
    100
    """
    if name not in KINDS:
        raise ParameterError(f"The 'kind' parameter must be one of {', '.join(KINDS)}. Got {name!r} instead.")
    known = inspect.signature(KINDS[name]).parameters
    for option in options:
        if option not in known:
            raise ParameterError(f"There is no '{option}' for the kind '{name}'. It takes {', '.join(known)}.")
    return KINDS[name](**options)


def pieces(name: str, **options: object) -> Iterator[CSRRows]:
    """Return the rows of a kind of data piece by piece, for data larger than memory.

    >>> next(pieces("clicks", rows=100)).layout
    'binary'
    """
    return kind(name, **options).pieces()


def _few(nonzeros: int | None, features: int) -> int:
    return min(30, features) if nonzeros is None else nonzeros
