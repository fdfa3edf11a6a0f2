"""Losses of row problems, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hogwild.errors import ParameterError
from hogwild.losses.loss import Loss, own
from hogwild.losses.margin import HINGE, LOGISTIC, MODIFIED_HUBER, PERCEPTRON, SQUARED_HINGE
from hogwild.losses.residual import (
    EPSILON_INSENSITIVE,
    HUBER,
    POISSON,
    QUANTILE,
    SQUARED,
    SQUARED_EPSILON_INSENSITIVE,
)
from hogwild.registry import invalid_parameter, kebab, lookup

# With two classes, softmax and logistic loss are the same.
SOFTMAX = replace(LOGISTIC, name="softmax")

LOSSES = {
    loss.name: loss
    for loss in (
        HINGE,
        SQUARED_HINGE,
        LOGISTIC,
        SOFTMAX,
        MODIFIED_HUBER,
        PERCEPTRON,
        SQUARED,
        HUBER,
        EPSILON_INSENSITIVE,
        SQUARED_EPSILON_INSENSITIVE,
        QUANTILE,
        POISSON,
    )
}


# scikit-learn's names of losses that differ from ours by more than a dash. Both are taken wherever a loss is named.
SYNONYMS = {"log-loss": "logistic", "squared-error": "squared"}


def our_name(name: str) -> str:
    """Return our name of a loss that is given by our name or by scikit-learn's.

    >>> our_name("log_loss"), our_name("squared_hinge"), our_name("logistic")
    ('logistic', 'squared-hinge', 'logistic')
    """
    spelt = kebab(name.strip()).replace(" ", "-")
    return SYNONYMS.get(spelt, spelt)


def named(loss: str | Loss | Callable[[float, float], tuple[float, float]]) -> Loss:
    """Return a loss, given by its name (``"huber"``, ``"quantile:0.9"``), as the user's own function, or as an object.

    scikit-learn's names are taken as well as ours: "log_loss" is "logistic".

    Raises
    ------
    ParameterError
        If there is no such loss, or if its parameter is invalid.

    Examples
    --------
    >>> named("quantile:0.9").parameter
    0.9
    """
    if isinstance(loss, Loss):
        return loss
    if callable(loss):
        return own(loss)
    if hasattr(loss, "__len__") and not isinstance(loss, str):
        raise ParameterError(
            f"The 'loss' parameter must be a name such as 'logistic'. Got {type(loss).__name__!r} instead. Give rows "
            "and labels as one argument: Linear((X, y), 'logistic')."
        )
    if not isinstance(loss, str):
        raise invalid_parameter("loss", "a name, a Loss or a function (z, y) -> (loss, derivative)", loss)
    name, colon, parameter = loss.partition(":")
    found = lookup("loss", name, LOSSES | {other: LOSSES[ours] for other, ours in SYNONYMS.items()})
    if not colon:
        return found
    if not found.parameter:
        raise ParameterError(f"The loss {found.name!r} has no parameter. Leave out ':{parameter}'.")
    try:
        number = float(parameter)
    except ValueError:
        number = -1.0
    if not 0 < number < (1 if found is QUANTILE else float("inf")):
        which = "a number between 0 and 1" if found is QUANTILE else "a positive number"
        raise invalid_parameter("loss", f"a name and {which}, such as '{found}'", loss)
    return found.with_parameter(number)


__all__ = ["EPSILON_INSENSITIVE", "HINGE", "LOSSES", "SOFTMAX", "SYNONYMS", "Loss", "named", "our_name", "own"]
