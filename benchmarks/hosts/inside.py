"""What is done within a world: hosts, a network, a cluster, and one training after the other.

python -m benchmarks.hosts.inside FOLDER WIRE QUICK [STRATEGY:WEATHER...]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.hosts import trials
from benchmarks.hosts.cluster import cluster
from benchmarks.hosts.host import Host
from benchmarks.hosts.world import Wire, hosts, wire

PROBES = "benchmarks.hosts.probe"
PACKETS = 2_000


def probed(network: Wire, there: Sequence[Host], weather: trials.Weather) -> dict[str, float]:
    """What the network does to packets, as two hosts see it."""
    one, other = there[0], there[1]
    network.weather(weather.delay, weather.loss)
    echo = one.start(sys.executable, "-m", PROBES, "echo", one.address, stdout=subprocess.PIPE)
    try:
        assert echo.stdout is not None
        echo.stdout.readline()
        found: dict[str, float] = json.loads(other.run(sys.executable, "-m", PROBES, "ask", one.address, str(PACKETS)))
        return found
    finally:
        echo.kill()
        echo.wait()
        network.weather(0.0, 0.0)


def main(folder: Path, kind: str, quick: bool, chosen: Sequence[str]) -> None:
    """Write what happened to ``folder``, after every training."""
    network = wire(kind)
    weathers = trials.QUICK if quick else trials.WEATHERS
    found: dict[str, Any] = {"wire": network.name, "network": {}, "trials": []}
    path = trials.data(folder, trials.FEW_ROWS if quick else trials.ROWS)
    with hosts(network) as there:
        for weather in weathers:
            found["network"][weather.name] = probed(network, there, weather)
        nodes = cluster(there, folder)
        for number, (strategy, weather) in enumerate(_pairs(weathers, quick, chosen)):
            trial = trials.Trial(nodes, network, folder / f"{number}.jsonl", weather)
            told = trial.train(path, trials.STRATEGIES[strategy])
            found["trials"].append({"strategy": strategy, "weather": weather.name, **told})
            (folder / "found.json").write_text(json.dumps(found))
            print(strategy, weather.name, told["stop_reason"], told.get("error", ""), file=sys.stderr, flush=True)


def _pairs(weathers: Sequence[trials.Weather], quick: bool, chosen: Sequence[str]) -> list[tuple[str, trials.Weather]]:
    strategies = [*trials.STRATEGIES][: 1 if quick else None]
    if chosen:
        numbers = (tuple(map(int, pair.split(":"))) for pair in chosen)
        return [(strategies[strategy], weathers[weather]) for strategy, weather in numbers]
    return [(strategy, weather) for weather in weathers for strategy in strategies]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "quick", sys.argv[4:])
