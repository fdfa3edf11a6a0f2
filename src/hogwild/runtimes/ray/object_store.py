"""Job of a run in Ray's object store, which copies it to each Ray node once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hogwild.errors import ParameterError
from hogwild.messaging.job import MessageJob


def put_job(ray: Any, job: MessageJob) -> tuple[Any, Any]:
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
    save = None if job.save is None else _nothing
    sent = replace(job, tell=_nobody, interrupted=bool, save=save, resumed=None)
    try:
        return ray.put(sent), ray.put(replace(sent, learner=_has_none, measure=_has_none))
    except TypeError as error:
        what = re.search(r"cannot pickle .*", str(error))
        raise ParameterError(
            "Something of the problem, the rule or the strategy cannot be sent to other processes: "
            f"{what[0] if what else error}."
        ) from error


def _nothing(cut: dict[str, Any]) -> None:
    """Ignore a snapshot. Only the driver saves it; other processes need to know only whether the run saves any."""


def _nobody(event: str, **what: Any) -> None:
    """Ignore an event, because only the driver records events."""


def _has_none(_: Any) -> Any:
    """Raise ``AssertionError``, because a server has no data."""
    raise AssertionError("a server was asked for something that needs data")
