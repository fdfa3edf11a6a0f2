"""Interface of a problem's kernels on a GPU."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, Protocol

from hogwild.data.csr import CSRRows


class ProblemOnGPU(Protocol):
    """Training and evaluation of a problem with a rule on a GPU. All arrays but those of ``CSRRows`` are there."""

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""

    @property
    def host_order(self) -> Literal["C", "F"]:
        """Whether rows ("C") or columns ("F") of the parameters are contiguous in the host's memory."""

    def rows(self, rows: CSRRows, copied: Any) -> Any:
        """Copy rows to the GPU; ``copied`` remembers arrays that are there."""

    def put(self, state: Any, copied: Any) -> tuple[Any, ...]:
        """Copy the parameters, which have the rule's numbers of each, to the GPU in the form that kernels need.

        A state with one row in each part stands for any state in a launch without rows, which compiles the kernels.
        ``copied`` remembers arrays that do not change.
        """

    def put_values(self, values: Any) -> tuple[Any, ...]:
        """Copy parameters without the rule's numbers to the GPU, for evaluation."""

    def get(self, parts: tuple[Any, ...], state: Any) -> None:
        """Copy the parameters from the GPU to ``state``."""

    def penalty(self, parts: tuple[Any, ...], copied: Any) -> float | None:
        """Return the penalty, which is not finite if a parameter is not; None where the host computes it.

        ``copied`` remembers arrays that do not change.
        """

    def descend(
        self, rows: Any, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train on the rows ``order[first : first + count]``; add their losses to ``sums[0]``.

        ``rates`` has a step size for each of as many parts of the rows.
        """

    def evaluate(self, rows: Any, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up what :meth:`RowProblem.measure` returns over ``order[:count]``."""
