"""What scikit-learn's parameters may be, so that a wrong one is refused in scikit-learn's own words."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from hogwild.losses import Loss
from hogwild.machine import usable_cores

OURS: dict[str, list[Any]] = {
    "n_jobs": [Integral, None],
    "strategy": [str, object],
    "rule": [str, object],
    "buffer": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
    "memory": [str, Integral, None],
}


def constraints(theirs: type, *losses: str) -> dict[str, Any]:
    """The constraints of a class of scikit-learn's and of the parameters that only ours have.

    ``losses`` are the names of losses that only ours has; a :class:`Loss` and a function are losses too.

    >>> from sklearn.linear_model import SGDRegressor
    >>> str(constraints(SGDRegressor, "poisson")["tol"][0])
    'a float in the range [0.0, inf)'
    """
    found: dict[str, Any] = {**theirs._parameter_constraints, **OURS}  # type: ignore[attr-defined]
    if "loss" in found:
        found["loss"] = [StrOptions({*found["loss"][0].options, *losses}), Loss, callable]
    return found


def check_together(asked: Mapping[str, Any], *, passive_aggressive_loss: str, partial: bool = False) -> None:
    """Refuse parameters that are right alone and wrong together.

    >>> check_together({"early_stopping": False, "learning_rate": "optimal", "alpha": 0}, passive_aggressive_loss="")
    Traceback (most recent call last):
    ValueError: alpha must be > 0 since learning_rate is 'optimal'. alpha is used to compute the optimal learning rate.
    """
    rate = asked["learning_rate"]
    if asked["early_stopping"] and partial:
        raise ValueError("early_stopping should be False with partial_fit")
    if rate == "optimal" and asked["alpha"] == 0:
        raise ValueError(
            "alpha must be > 0 since learning_rate is 'optimal'. alpha is used to compute the optimal learning rate."
        )
    if rate in ("pa1", "pa2") and asked["loss"] != passive_aggressive_loss:
        raise ValueError(f"Learning rate '{rate}' only works with loss '{passive_aggressive_loss}'.")
    if asked["penalty"] == "elasticnet" and asked["l1_ratio"] is None:
        raise ValueError("l1_ratio must be set when penalty is 'elasticnet'")


def warn_of_the_old(asked: Mapping[str, Any]) -> None:
    """Say what scikit-learn will soon refuse."""
    if asked["power_t"] < 0:
        warnings.warn(
            "Negative values for `power_t` are deprecated in version 1.8 and will raise an error in 1.10. "
            "Use values in the range [0.0, inf) instead.",
            FutureWarning,
            stacklevel=4,
        )


def processors_left(wanted: int | None) -> int:
    """How many workers ``n_jobs`` stands for; within a parallel search, no more than that leaves to each of its jobs.

    >>> processors_left(None), processors_left(3)
    (1, 3)
    """
    from joblib import effective_n_jobs  # type: ignore[import-untyped]
    from joblib.parallel import get_active_backend  # type: ignore[import-untyped]

    workers = int(effective_n_jobs(wanted))
    if wanted is not None and wanted < 0:  # joblib rounds a quota up, and counts cores in its own way
        workers = max(1, min(workers, usable_cores() + 1 + wanted))
    nested = (get_active_backend()[0].nesting_level or 0) > 0
    if not nested:
        return workers
    share = os.environ.get("OMP_NUM_THREADS", "")  # joblib tells its processes here how many threads they may start
    return min(workers, int(share) if share.isdigit() and int(share) > 0 else 1)
