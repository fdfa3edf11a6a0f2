"""Interface of a problem's kernels on a GPU."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from hogwild.data.csr import CSRRows


class ProblemOnGPU(Protocol):
    """Training and evaluation of a problem with a rule on a GPU. All arrays but those of ``CSRRows`` are there."""

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""

    def rows(self, rows: CSRRows, copied: Any) -> Any:
        """Copy rows to the GPU; ``copied`` remembers arrays that are there."""

    def put(self, state: Any, copied: Any) -> tuple[Any, ...]:
        """Copy the parameters, which have the rule's numbers of each, to the GPU in the form that kernels need.

        The first column of each part is that of the state. ``copied`` remembers arrays that do not change.
        """

    def get(self, parts: tuple[Any, ...], state: Any) -> None:
        """Copy the parameters from the GPU to ``state``."""

    def descend(
        self, rows: Any, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train on the rows ``order[first : first + count]``; add their losses to ``sums[0]``.

        ``rates`` has a step size for each of as many parts of the rows.
        """

    def evaluate(self, rows: Any, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up what :meth:`RowProblem.measure` returns over ``order[:count]``.

        The first column of each part has the parameters. The number of columns does not matter.
        """
