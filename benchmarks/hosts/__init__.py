"""Four hosts, made as network namespaces: the same training on a network that delays, loses and falls apart.

Needs root on Linux, and nothing of the machine's own network. The kernel's netem makes the weather where there is one,
else a relay of packets does.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.hosts import trials, world


def measure(quick: bool = False, wire: str = "auto", chosen: Sequence[str] = ()) -> dict[str, Any]:
    """What happened in a world of its own, of which nothing is left. ``chosen`` are some of all pairs, such as 0:2."""
    with tempfile.TemporaryDirectory(prefix="hosts-") as folder:
        size = "quick" if quick else "whole"
        ended = world.within([sys.executable, "-m", "benchmarks.hosts.inside", folder, wire, size, *chosen])
        if ended:
            raise RuntimeError(f"The world of the hosts ended with {ended}.")
        found: dict[str, Any] = json.loads(Path(folder, "found.json").read_text())
        return found


def came_back(trial: dict[str, Any]) -> list[str]:
    """Who had died and began another life, and where.

    >>> came_back({"places": [["worker-1", 0, "beta", 0.1], ["worker-1", 1, "gamma", 9.0]], "deaths": []})
    ['worker-1 on gamma']
    """
    return [f"{name} on {host}" for name, life, host, _ in trial["places"] if life > 0]


def row(trial: dict[str, Any], calm: dict[str, dict[str, Any]]) -> list[str]:
    usual, ended = calm.get(trial["strategy"]), trial["stop_reason"]
    objective = "-"
    if ended != "error":
        same = f" ({trial['objective'] / usual['objective'] - 1:+.2%})" if usual and usual is not trial else ""
        objective = f"{trial['objective']:.4f}{same}"
    died = sorted({name for name, *_ in trial["deaths"]})
    return [
        trial["strategy"], trial["weather"], "all epochs" if ended == "epochs" else ended, objective,
        f"{trial['seconds']:.0f}" if ended != "error" else "-", trial.get("victim", "-"),
        str(trial["epochs_during"]) if "epochs_during" in trial else "-", ", ".join(died) or "-",
        ", ".join(came_back(trial)) or "-", f"{trial['nodes_after']}", f"{trial['left']}",
    ]  # fmt: skip


def report(found: dict[str, Any], out: Path) -> None:
    calm = {each["strategy"]: each for each in found["trials"] if each["weather"] == trials.CALM.name}
    calm = {name: each for name, each in calm.items() if each["stop_reason"] != "error"}
    weather = [
        [name, f"{1000 * seen['round_trip']:.1f} ms", f"{seen['lost_one_way']:.2%}"]
        for name, seen in found["network"].items()
    ]
    head = [
        "strategy", "network", "ended", "objective (to calm)", "s", "cut off", "epochs meanwhile", "crashed",
        "restarted", "nodes after", "processes left",
    ]  # fmt: skip
    results.write(
        "hosts",
        "Four hosts and what happens between them",
        [
            "A Ray cluster of four hosts on one machine, each with a network, processes and shared memory of its own,",
            f"and {trials.WORKERS} workers. Between the hosts: {found['wire']}. `hogwild train --runtime ray` is",
            f"started on the head, alpha. A burst of each worker takes {trials.SLOW:g} s more than it would. Ray",
            f"{results.version_of('ray')}, with its settings as they come; the heartbeat is 3 s unless it is",
            "given. After a quarter of the epochs a host is cut off, not the head, and with a server if there is one.",
            "",
            *results.table(head, [row(trial, calm) for trial in found["trials"]]),
            "",
            "What two hosts see of the network, while no host is cut off:",
            "",
            *results.table(["network", "there and back", "packets lost, one way"], weather),
        ],
        out,
        found,
    )


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    why_not = world.missing()
    if why_not:
        print(f"There can be no hosts here: {why_not}.")
        return
    report(measure(quick), out)
