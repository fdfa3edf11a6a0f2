"""Options of strategies. An option belongs to those strategies that have a field of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from typer.models import OptionInfo

    from hogwild.strategies import Strategy
    from hogwild.strategies.delay_correction import Correction

_PANEL = "Message passing"
FIELDS = {"outer_rate": "rate", "outer_momentum": "momentum"}  # fields whose own names would be unclear as options


def _option(help: str, *names: str, metavar: str | None = None) -> OptionInfo:
    option: OptionInfo = typer.Option(*names, help=help, rich_help_panel=_PANEL, show_default=False, metavar=metavar)
    return option


@dataclass(frozen=True, slots=True)
class CommunicationOptions:
    """Options of communication between workers. The strategy decides the value of an option that is not given."""

    shards: Annotated[int | None, _option("Servers that divide the parameters among them.", metavar="N")] = None
    staleness: Annotated[
        str | None,
        _option(
            "parameter-server: no worker is more than N pushes ahead of the slowest; none: no bound; fixed:N, or a "
            "distribution such as exponential:N: the staleness of every push, for studies.",
            metavar="N|none|fixed:N",
        ),
    ] = None
    push_every: Annotated[
        str | None, _option("parameter-server: updates between two pushes; auto: as the run finds.", metavar="N|auto")
    ] = None
    pull_every: Annotated[int | None, _option("parameter-server: updates between two pulls.", metavar="N")] = None
    run_ahead: Annotated[
        int | None,
        _option("parameter-server, elastic-averaging: exchanges of a worker during a pull; 0: it waits.", metavar="N"),
    ] = None
    correction: Annotated[
        str | None,
        _option(
            "parameter-server: delay-adaptive or delay-compensation of stale changes, perhaps with :NUMBER.",
            metavar="NAME",
        ),
    ] = None
    combine: Annotated[str | None, _option("Add the sum of changes, or their mean.", metavar="sum|mean")] = None
    period: Annotated[
        str | None,
        _option("Local updates of a worker between two exchanges; auto: as the run finds.", metavar="N|auto"),
    ] = None
    accumulate: Annotated[int | None, _option("synchronous: rows of each worker in one step.", metavar="N")] = None
    topology: Annotated[
        str | None, _option("gossip: the graph along which workers exchange messages.", metavar="NAME")
    ] = None
    synchronous: Annotated[
        bool | None, _option("gossip, all-to-all: in lockstep, or without waiting.", "--synchronous/--asynchronous")
    ] = None
    outer_rate: Annotated[float | None, _option("diloco: the step of the outer update.", metavar="RATE")] = None
    outer_momentum: Annotated[float | None, _option("diloco: the momentum of the outer update.", metavar="SHARE")] = (
        None
    )
    elasticity: Annotated[
        float | None, _option("elastic-averaging: how far worker and centre move.", metavar="SHARE")
    ] = None
    compression: Annotated[str | None, _option("Send less: half, or top-k:SHARE.", metavar="NAME")] = None
    within: Annotated[
        str | None, _option("Strategy of each node on its own cores, such as hogwild:2.", metavar="NAME[:N]")
    ] = None


def _staleness(text: str) -> int | str | None:
    if text.lower() == "none":
        return None
    return int(text) if text.isdecimal() else text


def _interval(text: str) -> int | str:
    return int(text) if text.isdecimal() else text.lower()


def _correction(text: str) -> Correction | None:
    from hogwild.strategies.delay_correction import named

    return named(text)


def _within(text: str) -> Strategy:
    from hogwild.strategies import named

    name, _, workers = text.partition(":")
    if workers and not workers.isdecimal():
        raise invalid_parameter(
            "within", "a strategy in one memory, perhaps with a number of workers, such as hogwild:2", text
        )
    return named(name, int(workers) if workers else None)


READ: Mapping[str, Callable[[str], Any]] = {
    "staleness": _staleness, "push_every": _interval, "period": _interval, "correction": _correction, "within": _within,
}  # fmt: skip


def with_options(strategy: Any, options: CommunicationOptions) -> Strategy:
    """Return the strategy with the options that were given.

    >>> from hogwild.strategies import ParameterServer
    >>> with_options(ParameterServer(workers=4), CommunicationOptions(staleness="3", shards=2)).staleness
    3
    """
    has = {field.name for field in fields(strategy)}
    chosen = {}
    for option, value in given(options).items():
        field = FIELDS.get(option, option)
        if field not in has:
            raise ParameterError(f"{spelt(option)} goes with --strategy {either(_with_field(field))}.")
        chosen[field] = READ[option](value) if option in READ else value
    made: Strategy = replace(strategy, **chosen)
    return made


def given(options: DataclassInstance) -> dict[str, Any]:
    """Return the options that were given, by name."""
    values = {field.name: getattr(options, field.name) for field in fields(options)}
    return {name: value for name, value in values.items() if value not in (None, [])}


def spelt(option: str) -> str:
    """Return an option as it is written on the command line.

    >>> spelt("push_every"), spelt("synchronous")
    ('--push-every', '--synchronous/--asynchronous')
    """
    return "--synchronous/--asynchronous" if option == "synchronous" else "--" + option.replace("_", "-")


def either(names: list[str]) -> str:
    """Return a list of names as a choice in words.

    >>> either(["gossip", "all-to-all", "diloco"])
    'gossip, all-to-all or diloco'
    """
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _with_field(field: str) -> list[str]:
    from hogwild.strategies import STRATEGIES

    # Every strategy is a dataclass, which its base class cannot declare.
    return [name for name, kind in STRATEGIES.items() if field in {each.name for each in fields(kind)}]  # type: ignore[arg-type]
