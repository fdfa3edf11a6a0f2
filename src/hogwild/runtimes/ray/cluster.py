"""The cluster: found, or started here and then stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hogwild.errors import MissingExtraError, ParameterError, WorkerError


def load() -> Any:
    """The module ``ray``."""
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "ray":
            raise
        raise MissingExtraError("The runtime Ray", "ray", "ray") from None
    return ray


@contextmanager
def connected(address: str | None, cpus: float) -> Iterator[Any]:
    """Within the block there is a cluster: the one this process is connected to, one that is named, or an own one.

    A cluster that was started here has so many CPUs at least, and is stopped at the end; no other is.
    """
    ray = load()
    if ray.is_initialized():
        yield ray
        return
    named = address or os.environ.get("RAY_ADDRESS") or "local"
    if named.startswith("ray://"):
        raise ParameterError(
            f"{named!r} is an address for Ray's client. Run the program in the cluster instead, with `ray job submit`, "
            "or give the address of its head, such as '10.0.0.1:6379'."
        )
    options: dict[str, Any] = {"logging_level": "warning", "log_to_driver": False}
    if named == "local":
        options |= {"num_cpus": int(max(cpus, os.cpu_count() or 1) + 0.999), "include_dashboard": False}
    try:
        ray.init(named, **options)
    except Exception as error:  # Ray raises nothing more special when a node takes too long to start
        ray.shutdown()
        where = "could be started here" if named == "local" else f"is at {named!r}"
        raise WorkerError(f"No Ray cluster {where}: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
