"""Validation of parameters, which raises scikit-learn's own error messages."""

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
    """Return the constraints of a scikit-learn class, extended by the parameters that only ``hogwild`` has.

    ``losses`` are the names of losses that scikit-learn lacks. A :class:`Loss` and a function are valid losses too.

    >>> from sklearn.linear_model import SGDRegressor
    >>> str(constraints(SGDRegressor, "poisson")["tol"][0])
    'a float in the range [0.0, inf)'
    """
    found: dict[str, Any] = {**theirs._parameter_constraints, **OURS}  # type: ignore[attr-defined]
    if "loss" in found:
        found["loss"] = [StrOptions({*found["loss"][0].options, *losses}), Loss, callable]
    return found


def check_together(asked: Mapping[str, Any], *, passive_aggressive_loss: str, partial: bool = False) -> None:
    """Raise an error for parameters that are valid alone and contradict each other.

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
    """Warn about values that scikit-learn has deprecated and will refuse."""
    if asked["power_t"] < 0:
        warnings.warn(
            "Negative values for `power_t` are deprecated in version 1.8 and will raise an error in 1.10. "
            "Use values in the range [0.0, inf) instead.",
            FutureWarning,
            stacklevel=4,
        )


def processors_left(wanted: int | None) -> int:
    """Return the number of workers for ``n_jobs``. In a nested parallel search, each job gets its share of the cores.

    >>> processors_left(None), processors_left(3)
    (1, 3)
    """
    from joblib import effective_n_jobs  # type: ignore[import-untyped]
    from joblib.parallel import get_active_backend  # type: ignore[import-untyped]

    workers = int(effective_n_jobs(wanted))
    if wanted is not None and wanted < 0:  # joblib rounds a CPU quota up and counts cores differently
        workers = max(1, min(workers, usable_cores() + 1 + wanted))
    nested = (get_active_backend()[0].nesting_level or 0) > 0
    if not nested:
        return workers
    share = os.environ.get("OMP_NUM_THREADS", "")  # joblib sets this limit on threads in its processes
    return min(workers, int(share) if share.isdigit() and int(share) > 0 else 1)
