"""Answers to keywords that other packages have: what to write here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

Named = TypeVar("Named", bound=Callable[..., Any])

# What people mean by a keyword, as they know it from scikit-learn, PyTorch, Keras and others.
MEANINGS = {
    name: meaning
    for meaning, names in {
        "epochs": "epochs n_epochs num_epochs max_epochs max_iter n_iter iterations num_iterations n_estimators",
        "step": "lr learning_rate step step_size stepsize eta eta0 alpha_t",
        "workers": "workers n_workers num_workers n_jobs jobs threads n_threads num_threads nthread processes cores",
        "rule": "optimizer optimiser solver updater",
        "penalty": "alpha C reg reg_param regularization regularisation penalty weight_decay l1 l2 lambda_ reg_lambda",
        "loss": "loss loss_fn loss_function criterion objective",
        "seed": "random_state random_seed",
        "batch": "batch batch_size minibatch mini_batch",
        "test": "validation validation_data valid val eval_set held_out holdout",
        "rank": "k factors n_factors n_components latent_dim dim embedding_dim no_components",
        "progress": "verbose verbosity log logger progress",
        "limit": "timeout time_limit max_time",
    }.items()
    for name in names.split()
}


def advised(**advice: str) -> Callable[[Named], Named]:
    """Return a decorator of a function or a class that answers an unknown keyword with advice, by what it means.

    >>> @advised(epochs="Write budget=3.")
    ... def train(data, budget=None):
    ...     pass
    >>> train([], max_iter=3)
    Traceback (most recent call last):
        ...
    TypeError: train has no parameter 'max_iter'. Write budget=3.
    >>> train([], buget=3)
    Traceback (most recent call last):
        ...
    TypeError: train has no parameter 'buget'. Did you mean 'budget'? There are data and budget.
    """

    def decorate(thing: Named) -> Named:
        if not isinstance(thing, type):
            return checked(thing, thing.__name__, advice)
        thing.__init__ = checked(thing.__init__, None, advice)  # type: ignore[misc]
        return thing

    return decorate


def checked(function: Named, name: str | None, advice: Mapping[str, str]) -> Named:
    """Return a function that looks at the names of its keywords before it is called; without a name, it is a method."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def called(*values: Any, **named: Any) -> Any:
        for keyword in named:
            if keyword not in known:
                what = name or type(values[0]).__name__
                raise TypeError(answer(what, keyword, [each for each in known if each != "self"], advice))
        return function(*values, **named)

    return called  # type: ignore[return-value]


def answer(name: str, keyword: str, known: list[str], advice: Mapping[str, str]) -> str:
    """Return what is said about a keyword that is unknown."""
    said = advice.get(MEANINGS.get(keyword, ""))
    if said is None:
        import difflib

        close = difflib.get_close_matches(keyword, known, n=1)
        said = f"Did you mean {close[0]!r}? " if close else ""
        *others, last = known
        said += f"There are {', '.join(others)} and {last}." if others else f"There is {last}."
    return f"{name} has no parameter {keyword!r}. {said}"
