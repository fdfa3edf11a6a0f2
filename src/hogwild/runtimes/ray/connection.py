"""Connection to a Ray cluster, which exists already or is started for one run, and the job in its object store."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any, NoReturn

from hogwild.errors import MissingExtraError, ParameterError, WorkerError
from hogwild.machine import usable_cores
from hogwild.messaging.job import MessageJob
from hogwild.runtimes.ray.own_cluster import own_cluster
from hogwild.runtimes.ray.preflight import preflight
from hogwild.signals import blocked_signals, has_own_handler, take_signals_back


def put_job(ray: ModuleType, job: MessageJob) -> tuple[Any, Any]:
    """Put a job into the object store, without the callbacks of the driver.

    Parameters
    ----------
    ray : module
        The module ``ray``, connected to a cluster.
    job : MessageJob
        Job of the run.

    Returns
    -------
    tuple of ray.ObjectRef
        The job for workers and the coordinator, and the job without data for servers.

    Raises
    ------
    ParameterError
        If a part of the job cannot be pickled.
    """
    save = None if job.save is None else _ignore_snapshot
    sent = replace(job, emit=_ignore_event, interrupted=bool, save=save, resumed=None)
    try:
        return ray.put(sent), ray.put(replace(sent, make_trainer=_without_data, measure=_without_data))
    except TypeError as error:
        what = re.search(r"cannot pickle .*", str(error))
        raise ParameterError(
            "Something of the problem, the rule or the strategy cannot be sent to other processes: "
            f"{what[0] if what else error}."
        ) from error


def _ignore_snapshot(snapshot: dict[str, Any]) -> None:
    """Ignore a snapshot. Only the driver saves it; other processes need to know only whether the run saves any."""


def _ignore_event(event: str, **what: object) -> None:
    """Ignore an event, because only the driver records events."""


def _without_data(*_: object) -> NoReturn:
    """Raise ``AssertionError``, because a server has no data."""
    raise AssertionError("a server has no data for a trainer or an evaluation")


ANYWHERE = "auto"  # address of the cluster on this machine, on any port
OWN = "local"  # address of a cluster that this program starts
# Settings of such a cluster: bytes of an argument, and of all arguments of a call, that travel with the call. Through
# Ray's object store a change of 400 kB takes three times as much time of all processes.
INLINE = {"max_direct_call_object_size": 8 << 20, "task_rpc_inlined_bytes_limit": 64 << 20}


def load() -> ModuleType:
    """Import and return the module ``ray``; raise ``MissingExtraError`` without it."""
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "ray":
            raise
        raise MissingExtraError("The runtime Ray", "ray", "ray") from None
    module: ModuleType = ray
    return module


def has_one_node(address: str | None) -> bool:
    """Return whether all actors are on one Ray node: the cluster has no other, or is started here for the run."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return len([node for node in ray.nodes() if node["Alive"]]) == 1
    return (address or os.environ.get("RAY_ADDRESS") or OWN) == OWN


@contextmanager
def connected(address: str | None, cpus: float) -> Iterator[ModuleType]:
    """Provide a connection to a Ray cluster within the block.

    The cluster is the one to which this process is connected already, or else the one at the address. Without an
    address, a new cluster is started and stopped after the block. Other clusters are never stopped.

    Parameters
    ----------
    address : str or None
        Address of the cluster's head, "auto" or "local". None means the variable ``RAY_ADDRESS``, or else "local".
    cpus : float
        Minimal number of CPUs of a cluster that is started here.

    Yields
    ------
    module
        The module ``ray``.

    Raises
    ------
    WorkerError
        If the cluster cannot be started or used.
    """
    ray = load()
    if ray.is_initialized():
        yield ray
        return
    named = checked(address or os.environ.get("RAY_ADDRESS") or OWN)
    options: dict[str, Any] = {"logging_level": "warning", "log_to_driver": False}
    if named == OWN:
        options |= {"num_cpus": int(max(cpus, usable_cores()) + 0.999), "include_dashboard": False}
        options |= {"_system_config": INLINE}
    else:
        named = located(named)
        refusal = preflight(named).refusal
        if refusal:
            raise WorkerError(refusal)
    with own_cluster() if named == OWN else nullcontext() as own:
        try:
            with ExitStack() as starting:
                starting.enter_context(_no_handler_of_ray())
                if own:
                    starting.enter_context(own.marking())
                    starting.enter_context(own.few_processes())
                context = _started(ray, named, options)
            if own:
                own.tell(os.fsencode(context.address_info["session_dir"]))
            yield ray
        finally:
            _cancel_alarm()
            ray.shutdown()
            take_signals_back()


def _started(ray: ModuleType, named: str, options: dict[str, Any]) -> Any:
    """Return the context of a connection; raise ``WorkerError`` if there is none."""
    try:
        return ray.init(named, **options)
    except Exception as error:  # Ray raises no narrower type when a Ray node starts too slowly
        where = "cannot be started here" if named == OWN else f"at {named!r} cannot be used"
        raise WorkerError(f"A Ray cluster {where}: {_one_line(error)}") from error


@contextmanager
def _no_handler_of_ray() -> Iterator[None]:
    """Keep Ray from handling SIGTERM within the block, if a command does: Ray would end the process without a model.

    It sets a handler in Python, and another one in C++ while its core is made, below that of Python. Signals wait then.
    """
    if not has_own_handler(signal.SIGTERM):
        yield
        return
    from ray import _raylet
    from ray._private import utils

    module: Any = _raylet
    given, core = utils.set_sigterm_handler, module.CoreWorker

    def make_core(*arguments: Any, **named: Any) -> Any:
        with blocked_signals():
            made = core(*arguments, **named)
            take_signals_back()
            _cancel_alarm()
        return made

    utils.set_sigterm_handler, module.CoreWorker = (lambda handler: None), make_core
    try:
        yield
    finally:
        utils.set_sigterm_handler, module.CoreWorker = given, core


def _cancel_alarm() -> None:
    """Cancel the alarm of Ray's handler in C++, which would abort the process three seconds after a signal.

    A signal that another thread takes while Ray's core is made reaches that handler before it reaches ours.
    """
    if has_own_handler(signal.SIGTERM):
        signal.alarm(0)


def checked(address: str) -> str:
    """Return an address; raise ``ParameterError`` if a driver cannot connect to such an address.

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
    """Return an address, with "auto" replaced by the address of the cluster on this machine."""
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
    """Return the first sentence of an error of Ray, without the advice that follows."""
    return str(error).strip().split("\n")[0].partition(". ")[0].rstrip(".") + "."
