"""Interface between the command line and a kind of problem: opening of its data, and its construction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hogwild.data.reader import ReadOptions
from hogwild.errors import ParameterError
from hogwild.registry import kebab

if TYPE_CHECKING:
    from hogwild.problems.problem import Problem
    from hogwild.rules import Rule
    from hogwild.run import Run
    from hogwild.strategies import Strategy

# Names of rules for all problems of rows, as in ``hogwild.rules``, which would take long to import for these names.
RULES = ("sgd", "momentum", "adagrad", "ftrl", "adam")


class Model(Protocol):
    """Model that a command saves."""

    def save(self, path: Path, /) -> None:
        """Write the model to a file."""


@dataclass(frozen=True, slots=True)
class Source:
    """Location of the data of a run, and the options for reading it."""

    data: str  # a path, an address, or '-' for standard input
    test: str | None = None
    holdout: float | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)
    memory: str | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """Opened data of a run; ``reading`` holds the options with which a model reads another such file."""

    training: Any
    held_out: Any
    reading: Mapping[str, Any]
    notes: tuple[str, ...] = ()  # messages for the user
    roles: tuple[str, ...] = ()  # what the columns of a table were taken for, to be seen before the training


def _rule(name: str) -> Rule:
    from hogwild.rules import named

    return named(name)


def _model(run: Run, opened: Opened) -> Model:
    model: Model = replace(run.model, reading=opened.reading)
    return model


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Kind of problem. Its options on the command line are the keyword-only parameters of ``open`` and ``make``.

    >>> def make(data, *, rank=8, seed=0): ...
    >>> sorted(Kind(lambda source: ..., make).options)
    ['rank']
    """

    open: Callable[..., Opened]  # (source, *, options) -> opened data
    make: Callable[..., Problem]  # (training data, *, seed, ...) -> problem
    check: Callable[[Mapping[str, Any]], None] = lambda options: (
        None
    )  # raises an error for invalid options, before any data is read

    rule: Callable[[str], Any] = _rule  # (name) -> rule
    rules: tuple[str, ...] = RULES  # names of the rules that suit the problem
    usual_rule: str | None = None  # name of the default rule; None leaves the choice to ``minimise``
    model: Callable[[Run, Opened], Model] = _model  # (run, opened data) -> model to save
    processes: bool = False  # whether workers that share memory are processes

    @property
    def options(self) -> frozenset[str]:
        """The names of the options that belong to this kind of problem."""
        return (_keywords(self.open) | _keywords(self.make)) - {"seed"}

    def check_workers(self, name: str, runtime: str | None, strategy: Strategy) -> None:
        """Raise an error for a runtime or a strategy that cannot train this kind of problem, and name those that can.

        Raises
        ------
        ParameterError
            With options that work together.
        """
        if not self.processes and runtime == "processes":
            raise ParameterError(
                f"--runtime processes is for networks, and --problem {name} is trained by threads: leave out "
                "--runtime. Workers that exchange messages go with --runtime local, simulator or ray."
            )
        if not self.processes or (runtime in (None, "processes") and strategy.shares_memory):
            return
        from hogwild.strategies import STRATEGIES

        known = [kind for kind, each in STRATEGIES.items() if each.shares_memory]
        raise ParameterError(
            f"Workers of --problem {name} are processes that share one memory, because its embeddings are updated in "
            "place and have no gradient to send. Leave out --runtime, and choose --strategy "
            f"{', '.join(known[:-1])} or {known[-1]}. Got --strategy {kebab(type(strategy).__name__)}"
            + ("." if runtime is None else f" with --runtime {runtime}.")
        )

    def opened(self, source: Source, options: Mapping[str, Any]) -> Opened:
        """Open the data with those options that concern reading."""
        return self.open(source, **_those(options, self.open))

    def problem(self, training: object, options: Mapping[str, Any], seed: int) -> Problem:
        """Make the problem with those options that concern the problem."""
        seeded = {"seed": seed} if "seed" in _keywords(self.make) else {}
        return self.make(training, **_those(options, self.make), **seeded)


def _keywords(function: Callable[..., Any]) -> frozenset[str]:
    parameters = signature(function).parameters.values()
    return frozenset(each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY)


def _those(options: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    known = _keywords(function)
    return {name: value for name, value in options.items() if name in known}
