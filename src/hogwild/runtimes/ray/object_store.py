"""What participants need, in the object store: each node gets it once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hogwild.errors import ParameterError
from hogwild.messaging.job import MessageJob


def put_job(ray: Any, job: MessageJob) -> tuple[Any, Any]:
    """A job without what only the driver has; and the same for servers, which have no data."""
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
    """In other processes nothing is saved: that it would be is all that they need to know."""


def _nobody(event: str, **what: Any) -> None:
    """In other processes nobody is told anything."""


def _has_none(_: Any) -> Any:
    """A server has no data."""
    raise AssertionError("a server was asked for something that needs data")
