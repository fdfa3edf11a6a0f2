"""A Ray cluster on hosts: the head on the first, a node on each of the others."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.hosts.host import Host

PORT = 6379
CPUS = 2  # of each node, so that all workers find room on three
STORE = 100 << 20  # bytes
STARTUP = 240.0  # seconds for all nodes to be there
STARTED = "Ray runtime started"  # what Ray says then


@dataclass(frozen=True)
class Cluster:
    """``folder`` is for what Ray and the runs write."""

    hosts: Sequence[Host]
    folder: Path
    env: dict[str, str]

    @property
    def head(self) -> Host:
        return self.hosts[0]

    @property
    def address(self) -> str:
        return f"{self.head.address}:{PORT}"

    def nodes(self) -> dict[str, str]:
        """The host of every node that Ray holds to be alive, by its number."""
        said = self.head.run(sys.executable, "-m", "benchmarks.hosts.cluster", self.address, env=self.env)
        answer = next(line for line in said.splitlines() if line.startswith("{"))  # Ray also says things there
        names = {host.address: host.name for host in self.hosts}
        return {node: names[address] for node, address in json.loads(answer).items()}


def cluster(hosts: Sequence[Host], folder: Path) -> Cluster:
    """All nodes are there. They end with their hosts."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    there = Cluster(hosts, folder, {**plain, **token, "RAY_TMPDIR": str(folder / hosts[0].name)})
    limit = time.monotonic() + STARTUP
    for host in hosts:
        _join(there, host, limit)
    while len(there.nodes()) < len(hosts):
        if time.monotonic() > limit:
            raise RuntimeError(f"Not all nodes are there after {STARTUP:g} s.")
        time.sleep(0.5)
    return there


def _join(there: Cluster, host: Host, limit: float) -> None:
    """Start a node, more than once if need be: Ray gives up after 30 s, which a busy machine may take."""
    place = folder_of(there, host)
    place.mkdir()
    log = place / "ray.log"
    while True:
        with log.open("w") as file:
            process = host.start(
                *_command(there, host), env={**there.env, "RAY_TMPDIR": str(place)}, stdout=file, stderr=file
            )
        while process.poll() is None and STARTED not in log.read_text():
            if time.monotonic() > limit:
                raise RuntimeError(f"Ray did not start on {host.name}: {log.read_text()[-2000:]}")
            time.sleep(0.1)
        if process.poll() is None:
            return


def _command(there: Cluster, host: Host) -> list[str]:
    role = ["--head", f"--port={PORT}", "--include-dashboard=false"]
    if host is not there.head:
        role = [f"--address={there.address}"]
    return [
        str(Path(sys.executable).with_name("ray")), "start", *role, f"--node-ip-address={host.address}",
        f"--temp-dir={folder_of(there, host)}", f"--num-cpus={CPUS}", f"--object-store-memory={STORE}",
        "--disable-usage-stats", "--block",
    ]  # fmt: skip


def folder_of(there: Cluster, host: Host) -> Path:
    return there.folder / host.name


def _alive(address: str) -> dict[str, str]:
    import ray

    ray.init(address, logging_level="error", log_to_driver=False)
    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}


if __name__ == "__main__":
    print(f"\n{json.dumps(_alive(sys.argv[1]))}", flush=True)
