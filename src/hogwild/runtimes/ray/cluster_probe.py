"""Probe of a Ray cluster: requests the resources and the software versions of every Ray node.

A connection to a cluster can hang such that the connecting process cannot abort it. So a separate process connects,
which is terminated after a timeout: ``python -m hogwild.runtimes.ray.cluster_probe ADDRESS``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hogwild.errors import HogwildError, WorkerError
from hogwild.runtimes.ray.connection import connected

LIMIT = 45.0  # seconds of the whole probe, after which its process is terminated
ANSWERS = 15.0  # seconds that the Ray nodes have to answer


def probe_cluster(address: str, limit: float = LIMIT) -> dict[str, Any]:
    """Probe a cluster in a separate process.

    Parameters
    ----------
    address : str
        Address of the cluster's head.
    limit : float, default 45.0
        Seconds after which the probe fails.

    Returns
    -------
    dict
        The ``address``, one row for each of the ``nodes``, and the versions of this program (``mine``).

    Raises
    ------
    WorkerError
        If the cluster does not answer in time, or refuses the connection.
    """
    try:
        ended = subprocess.run(
            [sys.executable, "-m", __name__, address], capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        raise WorkerError(f"The cluster at {address!r} has not answered for {limit:g} s.") from None
    lines = ended.stdout.strip().splitlines()
    if ended.returncode != 0 or not lines:
        last = (ended.stderr.strip().splitlines() or [f"the probe ended with code {ended.returncode}"])[-1]
        raise WorkerError(f"The cluster at {address!r} cannot be probed: {last}")
    found: dict[str, Any] = json.loads(lines[-1])
    if "error" in found:
        raise WorkerError(found["error"])
    return found


def collect_versions(address: str) -> dict[str, Any]:
    """Connect to a cluster, and request the versions of every Ray node; return the result of the probe."""
    with connected(address, 0) as ray:
        nodes = [node for node in ray.nodes() if node["Alive"]]
        affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        versions = ray.remote(num_cpus=0, max_retries=0)(_versions_function())
        calls = {
            versions.options(scheduling_strategy=affinity(node["NodeID"], soft=False)).remote(): node for node in nodes
        }
        answered, _ = ray.wait(list(calls), num_returns=len(calls), timeout=ANSWERS)
        answers = {calls[call]["NodeID"]: _answer(ray, call) for call in answered}
        return {
            "address": ray.get_runtime_context().gcs_address,
            "nodes": [_row(node, answers.get(node["NodeID"])) for node in nodes],
            "mine": _versions_function()(),
        }


def _row(node: dict[str, Any], answer: dict[str, Any] | None) -> dict[str, Any]:
    resources = node["Resources"]
    return {
        "node": node["NodeID"], "host": node["NodeManagerHostname"], "address": node["NodeManagerAddress"],
        "head": "node:__internal_head__" in resources, "cpus": resources.get("CPU", 0.0),
        "memory": int(resources.get("memory", 0)),
        **(answer or {"error": f"it has not answered for {ANSWERS:g} s"}),
    }  # fmt: skip


def _answer(ray: ModuleType, call: object) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = ray.get(call)
    except ray.exceptions.RayError as error:
        return {"error": str(error).strip().splitlines()[0]}
    return answer


def _versions_function() -> Callable[[], dict[str, Any]]:
    """Return a function that collects versions.

    Ray serialises a local function by value. So the Ray node does not need an installation of hogwild.
    """

    def versions() -> dict[str, Any]:
        import platform
        from importlib.metadata import PackageNotFoundError, version

        found: dict[str, Any] = {"python": platform.python_version()}
        for name in ("ray", "hogwild", "numba", "numpy"):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = None
        return found

    return versions


def _main() -> None:
    try:
        found = collect_versions(sys.argv[1])
    except HogwildError as error:
        found = {"error": str(error)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    _main()
