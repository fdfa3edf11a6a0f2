"""Choice of the driver for a job: one module for each kind of problem and of runtime."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from hogwild.run import Run
from hogwild.training.job import Job

# Module with a function ``run(job)``, by the problem's kind of terms and whether the runtime passes messages.
DRIVERS = {
    ("rows", False): "hogwild.training.thread_driver",
    ("rows", True): "hogwild.training.row_message_driver",
    ("batches", False): "hogwild.training.process_driver",
    ("batches", True): "hogwild.training.batch_message_driver",
}


def driver_for(job: Job) -> Callable[[Job], Run]:
    """Return the function that runs a job.

    The driver's module is imported here, because the drivers of batches need PyTorch, which is optional.
    """
    found = importlib.import_module(DRIVERS[job.problem.terms, job.runtime.passes_messages])
    return cast(Callable[[Job], Run], found.run)
