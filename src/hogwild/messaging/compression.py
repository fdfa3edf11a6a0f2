"""Compression of deltas: only the largest entries, with error feedback for the others, or half precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hogwild.errors import ParameterError
from hogwild.messaging.deltas import INDEX, Floats, SparseDelta, Vector, add, frozen
from hogwild.registry import invalid_parameter, kebab, lookup


class Compression(Protocol):
    """Function from a delta to the approximation of the delta that is sent."""

    def __call__(self, change: Vector) -> Vector: ...


@dataclass(frozen=True, slots=True)
class TopK:
    """Compression to the entries of largest magnitude (Stich et al. 2018, arXiv 1809.07599).

    Parameters
    ----------
    share : float, default 0.01
        Fraction of all coordinates that is sent, above 0 and at most 1. At least one coordinate is sent.

    Examples
    --------
    >>> TopK(0.25)(np.array([1.0, -4.0, 2.0, 0.5], np.float32)).indices
    array([1], dtype=uint32)
    """

    share: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise invalid_parameter("share", "above 0 and at most 1", self.share)

    def __call__(self, change: Vector) -> Vector:
        size = change.size if isinstance(change, SparseDelta) else len(change)
        count = max(1, round(self.share * size))
        if isinstance(change, SparseDelta):
            if len(change.values) <= count:
                return change
            positions = np.sort(np.argpartition(np.abs(change.values), -count)[-count:])
            return SparseDelta(change.indices[positions], change.values[positions], size)
        positions = np.sort(np.argpartition(np.abs(change), -count)[-count:])
        return SparseDelta(positions.astype(INDEX), change[positions], size)


@dataclass(frozen=True, slots=True)
class Half:
    """Compression to half precision (float16). Values beyond its range are clipped to +-65504.

    Examples
    --------
    >>> Half()(np.array([1.0], np.float32)).dtype
    dtype('float16')
    """

    def __call__(self, change: Vector) -> Vector:
        if isinstance(change, SparseDelta):
            return SparseDelta(change.indices, _half(change.values), change.size)
        return frozen(_half(change))


def _half(values: Floats) -> Floats:
    return np.clip(values, -65504, 65504).astype(np.float16)


@dataclass(eq=False)
class Sender:
    """Compressor with error feedback: it adds the part of a delta that was not sent to the next delta."""

    compression: Compression | None
    residual: Floats | None = field(default=None)  # Unsent remainder of all deltas so far.

    def __call__(self, change: Vector) -> Vector:
        """Return the compression of a delta plus the unsent remainder of all deltas before it."""
        if self.compression is None:
            return change
        size = change.size if isinstance(change, SparseDelta) else len(change)
        whole = np.zeros(size, np.float32) if self.residual is None else self.residual
        add(whole, change)
        sent = self.compression(whole)
        self.residual = whole.copy()
        add(self.residual, sent, -1.0)
        return sent


COMPRESSIONS: dict[str, Any] = {kebab(kind.__name__): kind for kind in (TopK, Half)}


def named(compression: str | Compression | None) -> Compression | None:
    """Return a compression from its name, ``"top-k"``, ``"top-k:0.05"`` or ``"half"``, or a compression unchanged.

    >>> named("top-k:0.05")
    TopK(share=0.05)
    """
    if not isinstance(compression, str):
        return compression
    name, _, number = compression.partition(":")
    kind: Any = lookup("compression", name, COMPRESSIONS)
    try:
        found: Compression = kind(float(number)) if number else kind()
        return found
    except ParameterError:
        raise
    except (ValueError, TypeError):
        raise invalid_parameter(
            "compression", "a name, or a name and a share such as 'top-k:0.05'", compression
        ) from None
