"""One training from the command line on a cluster of hosts, in some weather."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.hosts.cluster import Cluster
from benchmarks.hosts.host import Host
from benchmarks.hosts.world import Wire

WORKERS = 4
UPDATES = 16  # updates of a burst, for all strategies
SLOW = 0.05  # seconds that a burst takes longer: hosts share few cores, and there has to be time for a cut
EPOCHS, ROWS, FEW_ROWS = 6, 4_000, 2_000
LIMIT = 300.0  # seconds for a run
GRACE = 20.0  # seconds for its processes to end

STRATEGIES = {
    "parameter server, staleness 8, 2 shards": (
        "parameter-server", "--staleness", "8", "--shards", "2", "--push-every", str(UPDATES), "--step", "0.5"
    ),
    "synchronous": ("synchronous", "--accumulate", str(UPDATES), "--step", "16"),
    "gossip, ring": ("gossip", "--topology", "ring", "--period", str(UPDATES), "--step", "0.5"),
}  # fmt: skip


@dataclass(frozen=True)
class Weather:
    """What the network does: seconds each way, share of packets lost, seconds for which a host is cut off.

    ``heartbeat`` is after how many seconds of silence somebody is dead.
    """

    name: str
    delay: float = 0.0
    loss: float = 0.0
    cut: float = 0.0
    heartbeat: float = 3.0


CALM = Weather("calm")
WEATHERS = (
    CALM,
    Weather("20 ms each way, 1% lost", 0.02, 0.01),
    Weather("a host is cut off for 10 s", cut=10.0),
    Weather("both", 0.02, 0.01, 10.0),
    Weather("a host is cut off for 10 s, heartbeat of 30 s", cut=10.0, heartbeat=30.0),
)
QUICK = (CALM, Weather("20 ms each way, 1% lost, a host is cut off for 5 s", 0.02, 0.01, 5.0))


def data(folder: Path, rows: int = ROWS) -> Path:
    """Rows like those of text, in a file that all hosts can read."""
    path = folder / "train.svm"
    shape = ["--rows", str(rows), "--features", "2000", "--nonzeros", "20"]
    subprocess.run([sys.executable, "-m", "hogwild", "generate", "rcv1", path, *shape, "--json"], check=True, stdout=2)
    return path


@dataclass(eq=False)
class Trial:
    """``log`` is where the run writes its events, which tell when to cut and whom."""

    cluster: Cluster
    wire: Wire
    log: Path
    weather: Weather

    def train(self, path: Path, strategy: tuple[str, ...], epochs: int = EPOCHS) -> dict[str, Any]:
        """Run it to its end, and cut a host off after a quarter of it; what there is to tell about that."""
        homes = self.cluster.nodes()
        self.wire.weather(self.weather.delay, self.weather.loss)
        began = time.monotonic()
        process = self.cluster.head.start(
            sys.executable, "-m", "hogwild", "train", path, "--l2", "1e-3", "--rule", "sgd", "--epochs", str(epochs),
            "--runtime", "ray", "--address", self.cluster.address, "--workers", str(WORKERS), "--strategy", *strategy,
            "--delay", f"{SLOW / UPDATES:g}",
            "--heartbeat-timeout", str(self.weather.heartbeat), "--log", self.log, "--json",
            env=self.cluster.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        told: dict[str, Any] = {}
        try:
            if self.weather.cut:
                told = self._cut(process, homes, max(1, epochs // 4), began + LIMIT)
            record, errors = process.communicate(timeout=max(1.0, began + LIMIT - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            record, errors = process.communicate()
            errors += f"It had not ended after {LIMIT:g} s."
        finally:
            self.wire.weather(0.0, 0.0)
        wall = time.monotonic() - began
        after = self.cluster.nodes()
        told |= self._events(homes | after) | {"wall": wall, "nodes_after": len(after), "left": left()}
        if process.returncode:
            return told | {"stop_reason": "error", "error": errors.strip()[-2000:]}
        try:
            result = json.loads(record)
        except json.JSONDecodeError:
            return told | {"stop_reason": "error", "error": f"no record but {record!r}; {errors.strip()[-2000:]}"}
        return told | {name: result[name] for name in ("stop_reason", "objective", "seconds", "messages", "bytes")}

    def _read(self) -> list[dict[str, Any]]:
        whole = self.log.read_text().rpartition("\n")[0] if self.log.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def _cut(self, process: subprocess.Popen[str], homes: dict[str, str], epoch: int, limit: float) -> dict[str, Any]:
        """Wait until the run is so far, cut off a host on which it has something, and heal that."""
        while self._epoch() < epoch:
            if process.poll() is not None or time.monotonic() > limit:
                return {}
            time.sleep(0.1)
        victim = self._victim(homes)
        before = self._epoch()
        self.wire.cut(victim)
        time.sleep(self.weather.cut)
        self.wire.heal(victim)
        during = self._epoch() - before
        return {"victim": victim.name, "ran_on": process.poll() is None, "epochs_during": during}

    def _epoch(self) -> int:
        return max((event["epoch"] for event in self._read() if event["event"] == "epoch"), default=0)

    def _victim(self, homes: dict[str, str]) -> Host:
        """The host with a server and most of the others, but not the head's: Ray itself does not survive that."""
        placed = [event for event in self._read() if event["event"] == "placed"]
        weights: Counter[str] = Counter()
        for event in placed:
            weights[homes[event["ray_node"]]] += 100 if event["node"].startswith("server") else 1
        return max(self.cluster.hosts[1:], key=lambda host: weights[host.name])

    def _events(self, homes: dict[str, str]) -> dict[str, Any]:
        events = self._read()
        placed = (each for each in events if each["event"] == "placed")
        died = (each for each in events if each["event"] == "crashed")
        return {
            "places": [
                (each["node"], each["incarnation"], homes[each["ray_node"]], each["seconds"]) for each in placed
            ],
            "deaths": [(each["node"], each["incarnation"], each["reason"], each["seconds"]) for each in died],
            "joined": sum(each["event"] == "joined" for each in events),
        }


def left() -> int:
    """How many processes of a run are still there on all hosts, some seconds after it."""
    there = [each for each in psutil.process_iter() if each.name().startswith("ray::RayActor")]
    return len(psutil.wait_procs(there, timeout=GRACE)[1])
