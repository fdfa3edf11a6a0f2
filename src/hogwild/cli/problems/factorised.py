"""Factorisation machines on the command line: ``fm`` and ``ffm``."""

from __future__ import annotations

from typing import Any

from hogwild.cli.problems.adapter import Kind
from hogwild.cli.problems.linear import check, open_rows


def make_fm(
    data: Any,
    *,
    loss: str = "logistic",
    rank: int = 8,
    l2: float = 0.0,
    l2_factors: float = 0.01,
    intercept: bool = True,
    normalise: bool = False,
    balanced: bool = False,
    seed: int = 0,
) -> Any:
    """Make a factorisation machine."""
    from hogwild.problems.factorisation_machine import FactorisationMachine

    return FactorisationMachine(
        data, loss, rank=rank, l2=l2, l2_factors=l2_factors, intercept=intercept, normalise=normalise,
        class_weight="balanced" if balanced else None, seed=seed,
    )  # fmt: skip


def make_ffm(
    data: Any,
    *,
    loss: str = "logistic",
    rank: int = 4,
    l2: float = 0.0,
    l2_factors: float = 0.001,
    intercept: bool = True,
    normalise: bool = True,
    balanced: bool = False,
    seed: int = 0,
) -> Any:
    """Make a field-aware factorisation machine for the rows of a libffm file."""
    from hogwild.problems.field_aware_fm import FieldAwareFactorisationMachine

    return FieldAwareFactorisationMachine(
        data, loss, rank=rank, l2=l2, l2_factors=l2_factors, intercept=intercept, normalise=normalise,
        class_weight="balanced" if balanced else None, seed=seed,
    )  # fmt: skip


FM, FFM = Kind(open_rows, make_fm, check), Kind(open_rows, make_ffm, check)
