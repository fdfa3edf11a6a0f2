"""What the command line knows of a kind of problem: how its data is opened, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from hogwild.data.reader import ReadOptions


@dataclass(frozen=True, slots=True)
class Source:
    """Where the data of a run is."""

    data: Path
    test: Path | None = None
    holdout: float | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)
    memory: str | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """The data of a run; ``reading`` is what a model must know to read another file like it."""

    training: Any
    held_out: Any
    reading: Mapping[str, Any]
    notes: tuple[str, ...] = ()  # what a user should know of


def _rule(name: str) -> Any:
    from hogwild.rules import named

    return named(name)


def _model(run: Any, opened: Opened) -> Any:
    return replace(run.model, reading=opened.reading)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of problem. Options of the command line are the keyword-only parameters of its two functions.

    >>> def make(data, *, rank=8, seed=0): ...
    >>> sorted(Kind(lambda source: ..., make).options)
    ['rank']
    """

    open: Callable[..., Opened]  # (source, *, ...)
    make: Callable[..., Any]  # (training data, *, seed, ...) -> problem
    check: Callable[[Mapping[str, Any]], None] = lambda options: (
        None
    )  # refuses what cannot be meant, before any reading

    rule: Callable[[str], Any] = _rule  # by its name
    usual_rule: str | None = None  # None: as ``minimise`` has it
    model: Callable[[Any, Opened], Any] = _model  # (run, its data) -> what is saved
    processes: bool = False  # whether workers in one memory are processes

    @property
    def options(self) -> frozenset[str]:
        """Those that go with it."""
        return (_keywords(self.open) | _keywords(self.make)) - {"seed"}

    def opened(self, source: Source, options: Mapping[str, Any]) -> Opened:
        """Open the data with those of the options that are about it."""
        return self.open(source, **_those(options, self.open))

    def problem(self, training: Any, options: Mapping[str, Any], seed: int) -> Any:
        """Make the problem with those of the options that are about it."""
        seeded = {"seed": seed} if "seed" in _keywords(self.make) else {}
        return self.make(training, **_those(options, self.make), **seeded)


def _keywords(function: Callable[..., Any]) -> frozenset[str]:
    parameters = signature(function).parameters.values()
    return frozenset(each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY)


def _those(options: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    known = _keywords(function)
    return {name: value for name, value in options.items() if name in known}
