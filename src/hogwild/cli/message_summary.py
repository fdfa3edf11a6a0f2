"""Summary of a run by messages: staleness, messages and idle time, for programs and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hogwild.run import Event, Run

STALER = 1.5  # ratio to the mean staleness above which the summary names the stalest worker


def talked(run: Run, virtual: bool, real_seconds: float) -> dict[str, Any]:
    """Return the part of a record about messages; all values are null where workers share memory."""
    traffic, waiting = run.traffic or {}, run.idle or {}
    topology = next((event for event in run.events if event["event"] == "topology"), None)
    return {
        "staleness": None if run.staleness is None else _figures(run.staleness),
        "messages": traffic.get("messages"),
        "bytes": traffic.get("bytes"),
        "traffic": None if run.traffic is None else _figures(run.traffic),
        "idle_share": waiting.get("idle_share"),
        "crashes": waiting.get("crashes"),
        "topology": None if topology is None else _figures(topology),
        "consensus": run.result.get("consensus"),
        "simulated_seconds": run.seconds if virtual else None,
        "real_seconds": real_seconds if virtual else None,
    }


def _figures(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("event", "at")}


def in_words(record: dict[str, Any]) -> dict[str, str]:
    """Return the same summary in words, one line per entry."""
    if record["staleness"] is None:
        return {}
    told = {"staleness": _staleness(record["staleness"]), "messages": _messages(record)}
    told["idle"] = f"{record['idle_share']:.1%} of the workers' time"
    if record["crashes"]:
        told["crashes"] = str(record["crashes"])
    if record["topology"]:
        gap, neighbours = record["topology"]["spectral_gap"], record["topology"]["neighbours"]["most"]
        told["topology"] = f"{record['topology']['topology']}, up to {neighbours} neighbours, spectral gap {gap:.3g}"
    if record["consensus"]:
        told["consensus"] = f"workers are {record['consensus']:.1e} of the parameters' size apart"
    return told


def _staleness(figures: dict[str, Any]) -> str:
    """Return the staleness in words: the number of changes by other workers between a read and a write.

    >>> _staleness({"mean": 2.5, "median": 3, "p95": 4, "most": 9, "workers": {"worker-0": {"mean": 9.0}}})
    '2.5 changes by others on average, median 3, 95% up to 4, at most 9; worker-0 has the most: 9.0 on average'
    """
    text = (
        f"{figures['mean']:.1f} changes by others on average, median {figures['median']}, 95% up to {figures['p95']}, "
        f"at most {figures['most']}"
    )
    stalest = max(figures["workers"], key=lambda name: figures["workers"][name]["mean"], default=None)
    if stalest is None or figures["workers"][stalest]["mean"] <= STALER * figures["mean"]:
        return text
    return f"{text}; {stalest} has the most: {figures['workers'][stalest]['mean']:.1f} on average"


def _messages(record: dict[str, Any]) -> str:
    from hogwild.files import format_size

    text = f"{record['messages']:,}, {format_size(record['bytes'])}"
    traffic = record["traffic"]
    more = [f"{traffic[name]:,} {name}" for name in ("lost", "resent") if traffic.get(name)]
    return ", ".join([text, *more])
