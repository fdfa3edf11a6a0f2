"""Which module runs a job: one for each kind of problem and of runtime."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from hogwild.run import Run
from hogwild.training.job import Job

DRIVERS = {  # (the problem's terms, whether workers send each other messages): a module with ``run(job)``
    ("rows", False): "hogwild.training.thread_driver",
    ("rows", True): "hogwild.training.row_message_driver",
    ("batches", False): "hogwild.training.process_driver",
    ("batches", True): "hogwild.training.batch_message_driver",
}


def driver_for(job: Job) -> Callable[[Job], Run]:
    """The function that runs a job; its module is imported now, since some need PyTorch."""
    found = importlib.import_module(DRIVERS[job.problem.terms, job.runtime.passes_messages])
    return cast(Callable[[Job], Run], found.run)
