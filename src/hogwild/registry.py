"""Names of classes on the command line, such as ``"round-robin"`` for ``RoundRobin``, and errors about parameters."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from hogwild.errors import ParameterError

T = TypeVar("T")


def kebab(name: str) -> str:
    """Convert the name of a class to its name on the command line.

    >>> kebab("ParameterServer"), kebab("SGD"), kebab("AdaGrad")
    ('parameter-server', 'sgd', 'adagrad')
    """
    spelt = {"AdaGrad": "adagrad", "DiLoCo": "diloco"}.get(name)
    return spelt or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower().replace("_", "-")


def lookup(kind: str, name: str, choices: Mapping[str, T]) -> T:
    """Return the choice of a name, regardless of case, spaces and underscores.

    Raises
    ------
    ParameterError
        If the name is unknown; the message proposes the most similar name.

    Examples
    --------
    >>> lookup("rule", "AdaGrad", {"sgd": 1, "adagrad": 2})
    2
    >>> lookup("rule", "adagard", {"sgd": 1, "adagrad": 2})
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: ... Got 'adagard' instead. Did you mean 'adagrad'?
    """
    wanted = kebab(name.strip()).replace(" ", "-")
    if wanted in choices:
        return choices[wanted]
    raise invalid_parameter(kind, "one of " + quoted_list(choices), name, choices)


def invalid_parameter(parameter: str, be: str, got: object, choices: Iterable[str] = ()) -> ParameterError:
    """Return the error of an invalid parameter: *The 'x' parameter must be ... Got ... instead.*

    >>> invalid_parameter("workers", "a positive integer", -2)
    ParameterError("The 'workers' parameter must be a positive integer. Got -2 instead.")
    """
    close = difflib.get_close_matches(str(got), [choice for choice in choices if choice != str(got)], n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return ParameterError(f"The {parameter!r} parameter must be {be}. Got {got!r} instead.{hint}")


def is_count(value: object) -> bool:
    """Return whether a value is a positive integer, of Python or of NumPy.

    >>> is_count(2), is_count(0), is_count(True), is_count(2.0)
    (True, False, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) > 0


def is_number(value: object) -> bool:
    """Return whether a value is a real number, of Python or of NumPy, and no truth value.

    >>> is_number(0.5), is_number("0.5"), is_number(True)
    (True, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, Real)


def flag(parameter: str, value: Any) -> bool:
    """Return a truth value, of Python or of NumPy, as one of Python; all else raises ``ParameterError``.

    >>> flag("intercept", True)
    True
    >>> flag("intercept", "no")
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The 'intercept' parameter must be True or False. Got 'no' instead.
    """
    kind = type(value)
    if kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")):
        return bool(value)
    raise invalid_parameter(parameter, "True or False", value)


def not_an_object(parameter: str, be: str, got: object, kind: type) -> ParameterError:
    """Return the error of a parameter that is no object of its kind; for a class of it, the message says what to write.

    >>> not_an_object("rate", "a number or its name", float, float)
    ParameterError("The 'rate' parameter must be a number or its name. Got the class float: write float(...).")
    """
    if not isinstance(got, type) or not issubclass(got, kind):
        return invalid_parameter(parameter, be, got)
    return ParameterError(
        f"The {parameter!r} parameter must be {be}. Got the class {got.__name__}: write {got.__name__}(...)."
    )


def is_own(part: object) -> bool:
    """Return whether a part of a run is of a class that the user has written, and not one of this package.

    >>> is_own(ParameterError("wrong")), is_own(dict())
    (False, True)
    """
    return type(part).__module__.partition(".")[0] != __name__.partition(".")[0]


def check_arguments(parameter: str, function: Callable[..., object], count: int, signature: str) -> None:
    """Raise ParameterError if a user's function cannot be called with ``count`` arguments.

    A function whose signature Python does not know, such as a compiled one, passes.

    >>> check_arguments("loss", lambda z: z, 2, "(z, y) -> (loss, slope)")
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The 'loss' parameter must be a function (z, y) -> (loss, ...). Got <lambda>(z)...
    """
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        found.bind(*range(count))
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        raise ParameterError(
            f"The {parameter!r} parameter must be a function {signature}. Got {name}{found} instead."
        ) from None


def quoted_list(names: Iterable[str]) -> str:
    """Return names as a sorted list in quotes, for a message.

    >>> quoted_list(["b", "a"])
    "'a', 'b'"
    """
    return ", ".join(repr(name) for name in sorted(names))
