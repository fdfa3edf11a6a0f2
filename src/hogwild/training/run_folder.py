"""Folder of a run: its record ``run.json``, its events, its model and its checkpoints, for ``Run.load`` and reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from hogwild.destination import errors_name, named_path
from hogwild.errors import ParameterError
from hogwild.events import EVENTS, Callback, Event
from hogwild.files import appending, to_jsonable, write_file
from hogwild.machine import this_machine
from hogwild.run import EVENTS_FILE, FORMAT, MODEL, RECORD, Run

if TYPE_CHECKING:
    from hogwild.training.job import Job

PACKAGES = ("hogwild", "numpy", "numba", "torch", "ray")  # packages whose versions the record has


def recorded(run: Callable[[Job], Run], job: Job) -> Run:
    """Run a job, and leave a folder with its record, events, model and, if it writes any, checkpoints.

    Raises
    ------
    ParameterError
        If the folder has a run already that is not resumed, is a file, or cannot be written to.
    """
    assert job.options.folder is not None
    folder, resume = named_path(job.options.folder), job.options.resume
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder} is a file: give 'folder' the name of a folder.")
    if (folder / RECORD).exists() and not resume:
        raise ParameterError(f"{folder} has a run already: give another folder, or resume=True.")
    record = {
        "format": FORMAT, "problem": type(job.problem).__name__, "strategy": repr(job.strategy),
        "runtime": repr(job.runtime), "budget": repr(job.budget), "seed": job.options.seed,
        "machine": asdict(this_machine()), "versions": _versions(),
    }  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, record | {"stop_reason": "running"})
    except OSError as error:
        raise ParameterError(f"{folder} cannot be written to ({error.strerror}): give another 'folder'.") from None
    try:
        with _event_file(folder / EVENTS_FILE) as write:
            options = replace(job.options, callbacks=(*job.options.callbacks, write))
            done = run(replace(job, options=options))
    except BaseException as error:
        _write(folder, record | {"stop_reason": "failed", "error": f"{type(error).__name__}: {error}"})
        raise
    done.save(folder / MODEL)
    _write(
        folder,
        record | {
            "stop_reason": done.stop_reason, "config": dict(done.config), "history": done.history,
            "seconds": done.seconds, "compile_seconds": done.compile_seconds,
        },
    )  # fmt: skip
    return done


@contextmanager
def _event_file(path: Path) -> Iterator[Callback]:
    """Open a file of events. Each line is flushed at once, so that a crash loses nothing."""
    with appending(path) as file:

        def write(event: Event) -> None:
            if not EVENTS[event["event"]].passing:
                with errors_name(path):
                    file.write(json.dumps(to_jsonable(event), allow_nan=False) + "\n")
                    file.flush()

        yield write


def _write(folder: Path, record: dict[str, object]) -> None:
    write_file(folder / RECORD, json.dumps(to_jsonable(record), indent=1).encode())


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
