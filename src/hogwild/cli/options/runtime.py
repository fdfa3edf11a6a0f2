"""Options of runtimes: the place of workers, simulated times, and faults."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli.console import check_out
from hogwild.cli.options.strategy import CommunicationOptions, either, given, spelt
from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter, kebab, lookup

if TYPE_CHECKING:
    from typer.models import OptionInfo

    from hogwild.runtimes import Runtime
    from hogwild.runtimes.messaging.injected_faults import Fault, Link
    from hogwild.strategies import Strategy

_PANEL = "Simulated time and faults"
LINK = {"latency": "latency", "bandwidth": "bandwidth", "message_loss": "loss", "duplication": "duplication",
        "reordering": "reordering"}  # fmt: skip
WITHIN = {
    **dict.fromkeys(LINK, "link"),
    "crash": "faults",
    "crashes": "faults",
    "replay": "trace",
}  # option -> field of the runtime that the option is a part of
# Options that --replay excludes, because the recorded run provides their values.
REPLAYED = ("compute_time", "delay", "latency", "bandwidth", "handling_time")


def _option(help: str, *, metavar: str | None = None) -> OptionInfo:
    option: OptionInfo = typer.Option(help=help, rich_help_panel=_PANEL, show_default=False, metavar=metavar)
    return option


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """Options of simulated times and faults. The runtime decides the value of an option that is not given."""

    compute_time: Annotated[
        str | None,
        _option("Of one update: seconds, or always, normal, log-normal, exponential or heavy-tail with numbers, such "
                "as log-normal:0.001:0.5.", metavar="TIME"),
    ] = None  # fmt: skip
    delay: Annotated[
        list[str] | None,
        _option("Seconds that a worker waits with each update: of all workers (0.01, normal:0.01:0.002), or of some "
                "(2=0.05,3=exponential:0.01). May be repeated.", metavar="[WORKER=]TIME"),
    ] = None  # fmt: skip
    latency: Annotated[str | None, _option("Of a message, as --compute-time.", metavar="TIME")] = None
    bandwidth: Annotated[str | None, _option("Bytes a second of each sender, such as 10MB.", metavar="SIZE")] = None
    handling_time: Annotated[str | None, _option("Of a reaction to a message, as --compute-time.", metavar="TIME")] = (
        None
    )
    message_loss: Annotated[float | None, _option("Share of the messages that are lost.", metavar="SHARE")] = None
    duplication: Annotated[float | None, _option("Share of the messages that arrive twice.", metavar="SHARE")] = None
    reordering: Annotated[float | None, _option("Share that takes up to ten times as long.", metavar="SHARE")] = None
    crash: Annotated[
        list[str] | None,
        _option("worker-1 crashes at 3.5 s and restarts 2 s later; without +2 it does not. May be repeated.",
                metavar="worker-1@3.5+2"),
    ] = None  # fmt: skip
    crashes: Annotated[
        str | None,
        _option("Mean seconds between two crashes of each worker, and seconds until its restart (1).",
                metavar="EVERY[:RESTART]"),
    ] = None  # fmt: skip
    join_times: Annotated[list[str] | None, _option("Worker 3 joins after 2 s. May be repeated.", metavar="3@2.0")] = (
        None
    )
    detection_delay: Annotated[float | None, _option("Time until a crash is detected.", metavar="SECONDS")] = None
    address: Annotated[
        str | None,
        _option("ray: the cluster's head, or auto; left out, RAY_ADDRESS or an own one.", metavar="HOST:PORT"),
    ] = None
    heartbeat_timeout: Annotated[
        float | None, _option("ray: time without an answer after which a node counts as crashed.", metavar="SECONDS")
    ] = None
    max_restarts: Annotated[int | None, _option("ray: how often a node is started again.", metavar="N")] = None
    cpus_per_worker: Annotated[
        float | None, _option("ray: CPUs of the cluster that each worker takes.", metavar="N")
    ] = None
    admission_timeout: Annotated[
        float | None, _option("ray: how long to wait for workers without room.", metavar="SECONDS")
    ] = None
    record: Annotated[Path | None, _option("local: write here how long everything took.", metavar="FILE")] = None
    replay: Annotated[
        Path | None, _option("simulator: let everything take as long as was recorded here.", metavar="FILE")
    ] = None


def make_runtime(
    name: str | None, strategy: Strategy, options: RuntimeOptions, communication: CommunicationOptions
) -> Runtime:
    """Return the named runtime, or the default of the strategy, with the options that were given.

    >>> from hogwild.strategies import ParameterServer
    >>> options = RuntimeOptions(latency="0.01", delay=["2=0.05"], crash=["worker-1@3.5+2"])
    >>> make_runtime("simulator", ParameterServer(), options, CommunicationOptions()).faults
    (Crash(who='worker-1', at=3.5, back_after=2.0),)
    """
    from hogwild.runtimes import RUNTIMES, default_name

    kind = lookup("runtime", name or default_name(strategy), RUNTIMES)
    _check_pair(kind, strategy, communication)
    asked = given(options)
    for option in asked:
        if not _takes(kind, option):
            fitting = [name for name, other in RUNTIMES.items() if _takes(other, option)]
            raise ParameterError(f"{spelt(option)} goes with --runtime {either(fitting)}.")
        if "replay" in asked and option in REPLAYED:
            raise ParameterError(f"--replay takes all durations from the recorded run: leave out {spelt(option)}.")
    check_out(options.record, "--record", inputs=[options.replay])
    return kind(**_arguments(kind, asked))


def _check_pair(kind: type[Runtime], strategy: Strategy, communication: CommunicationOptions) -> None:
    """Raise an error for a runtime and a strategy that do not fit, before any data is read."""
    chosen, where = kebab(type(strategy).__name__), kebab(kind.__name__)
    if kind.passes_messages and not strategy.passes_messages:
        raise ParameterError(
            f"Workers of --strategy {chosen} share one memory, which goes with --runtime threads. For --runtime "
            f"{where} choose {either(_message_passing_strategies())}."
        )
    if kind.shares_memory and not strategy.shares_memory:
        raise ParameterError(
            f"Workers of --strategy {chosen} exchange messages, which goes with --runtime "
            f"{either(_message_passing_runtimes())}."
        )
    if not kind.passes_messages and given(communication):
        option = spelt(next(iter(given(communication))))
        raise ParameterError(
            f"{option} is for workers that exchange messages: add --runtime {either(_message_passing_runtimes())}."
        )


def _takes(kind: type[Runtime], option: str) -> bool:
    return bool({option, WITHIN.get(option)} & _names(kind))


def _names(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)}


def _message_passing_strategies() -> list[str]:
    from hogwild.strategies import STRATEGIES

    return [name for name, kind in STRATEGIES.items() if kind.passes_messages]


def _message_passing_runtimes() -> list[str]:
    from hogwild.runtimes import RUNTIMES

    return [name for name, kind in RUNTIMES.items() if kind.passes_messages]


def _arguments(kind: type[Runtime], asked: dict[str, Any]) -> dict[str, Any]:
    """Return the constructor arguments of a runtime."""
    arguments = {name: asked[name] for name in _names(kind) & asked.keys()}
    if "record" in asked:
        arguments["record"] = True
    if "replay" in asked:
        from hogwild.messaging.trace import Trace

        arguments["trace"] = Trace.load(asked["replay"])
    if "delay" in asked:
        arguments["delay"] = ",".join(asked["delay"])
    if "join_times" in asked:
        arguments["join_times"] = dict(_numbered("join_times", each, "@", "3@2.0") for each in asked["join_times"])
    link = {LINK[name]: asked[name] for name in LINK.keys() & asked.keys() - arguments.keys()}
    if link:
        arguments["link"] = _link(link)
    if {"crash", "crashes"} & asked.keys():
        arguments["faults"] = tuple(_faults(asked.get("crash", []), asked.get("crashes")))
    return arguments


def _link(chosen: dict[str, Any]) -> Link:
    from hogwild import Link
    from hogwild.files import parse_size

    if "bandwidth" in chosen:
        chosen["bandwidth"] = float(parse_size(chosen["bandwidth"]))
    return Link(**chosen)


def _numbered(option: str, text: str, sign: str, example: str) -> tuple[int, float]:
    """Parse the number of a worker and another number."""
    worker, _, number = text.partition(sign)
    try:
        if worker.isdecimal():
            return int(worker), float(number)
    except ValueError:
        pass
    raise invalid_parameter(option, f"a worker's number and another one, such as {example}", text)


def _faults(single: list[str], random: str | None) -> list[Fault]:
    from hogwild import Crash, Crashes

    faults: list[Fault] = []
    for text in single:
        found = re.fullmatch(r"((?:worker|server)-\d+)@([\d.]+)(?:\+([\d.]+))?", text)
        if found is None:
            raise invalid_parameter(
                "crash",
                "a node, the time of its crash, and perhaps the time until its restart, such as worker-1@3.5+2",
                text,
            )
        node, at, restart = found.groups()
        faults.append(Crash(node, _seconds("crash", at), None if restart is None else _seconds("crash", restart)))
    if random is not None:
        every, _, restart = random.partition(":")
        often = _seconds("crashes", every)
        faults.append(Crashes(often, _seconds("crashes", restart)) if restart else Crashes(often))
    return faults


def _seconds(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise invalid_parameter(option, "made of numbers of seconds", text) from None
