"""The cluster: found, or started here and then stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hogwild.errors import MissingExtraError, ParameterError, WorkerError
from hogwild.machine import usable_cores
from hogwild.runtimes.ray.preflight import preflight

ANYWHERE = "auto"  # a cluster on this machine, wherever it is
OWN = "local"  # one that is started here


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
    named = checked(address or os.environ.get("RAY_ADDRESS") or OWN)
    options: dict[str, Any] = {"logging_level": "warning", "log_to_driver": False}
    if named == OWN:
        options |= {"num_cpus": int(max(cpus, usable_cores()) + 0.999), "include_dashboard": False}
    else:
        named = located(named)
        refusal = preflight(named).refusal
        if refusal:
            raise WorkerError(refusal)
    try:
        ray.init(named, **options)
    except Exception as error:  # Ray raises nothing more special when a node takes too long to start
        ray.shutdown()
        where = "cannot be started here" if named == OWN else f"at {named!r} cannot be used"
        raise WorkerError(f"A Ray cluster {where}: {_one_line(error)}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def checked(address: str) -> str:
    """Refuse an address that no program can run at.

    >>> checked("10.0.0.1:6379")
    '10.0.0.1:6379'
    """
    if address.startswith(("ray://", "http://", "https://")):
        kind = "Ray's client" if address.startswith("ray://") else "Ray's dashboard"
        raise ParameterError(
            f"{address!r} is an address for {kind}. Run the program in the cluster instead, with `ray job submit`, "
            "or give the address of its head, such as '10.0.0.1:6379'."
        )
    if address not in (OWN, ANYWHERE) and not address.rpartition(":")[2].isdecimal():
        raise ParameterError(f"The address of a cluster's head has a port, such as '10.0.0.1:6379'. Got {address!r}.")
    return address


def located(address: str) -> str:
    """Where the cluster on this machine is, if that is what is asked for."""
    if address != ANYWHERE:
        return address
    try:
        from ray._private.services import canonicalize_bootstrap_address

        found: str | None = canonicalize_bootstrap_address(ANYWHERE)
    except (ImportError, ConnectionError, ValueError):
        found = None
    if found is None:
        raise WorkerError("There is no Ray cluster on this machine: start one with `ray start --head`.")
    return found


def _one_line(error: BaseException) -> str:
    """What Ray says, without the advice that follows."""
    return str(error).strip().split("\n")[0].partition(". ")[0].rstrip(".") + "."
