"""Runner of experiments, which records each trial when it ends, so that an interrupted study can continue."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from hogwild import machine
from hogwild.errors import DataError
from hogwild.files import to_jsonable
from hogwild.lab.experiment import Experiment, Point, Record, Results, about, pace
from hogwild.lab.experiments import named

LIMIT = 1800.0  # maximum seconds without the end of any parallel trial
FORMAT = 1

Progress = Callable[[int, int, str], None]
"""(number of finished trials, number of all trials, name of the experiment)."""


@dataclass(frozen=True, slots=True)
class Study:
    """Study: one execution of an experiment, whose file has a head and a line for each trial."""

    experiment: Experiment
    where: str  # name of the experiment, or the path of its file
    path: Path
    quick: bool = False
    seeds: int | None = None

    @property
    def trials(self) -> list[tuple[Point, int]]:
        """All trials of the study: every setting with the first seed, then with the next."""
        points = self.experiment.quick if self.quick else self.experiment.points
        seeds = self.seeds or self.experiment.seeds[self.quick]
        return [(point, seed) for seed in range(seeds) for point in points]

    @property
    def expected(self) -> float:
        """The expected duration in seconds on this machine."""
        seconds = self.experiment.seconds[self.quick]
        usual = self.experiment.seeds[self.quick]
        return seconds * (self.seeds or usual) / usual * pace()

    def run(self, progress: Progress = lambda done, of, what: None) -> Results:
        """Run the trials that are not recorded yet."""
        head = {"experiment": self.where, "format": FORMAT, "quick": self.quick, **about()}
        done = {_key(record): record for record in recorded(self.path, head)}
        left = [trial for trial in self.trials if _key_of(*trial) not in done]
        total = len(self.trials)
        finished = total - len(left)
        with self.path.open("a") as file:
            for record in self._outcomes(left):
                file.write(json.dumps(to_jsonable(record), allow_nan=False) + "\n")
                file.flush()
                done[_key(record)] = record
                finished += 1
                progress(finished, total, self.experiment.name)
        return results_of(done.values())

    def _outcomes(self, left: Sequence[tuple[Point, int]]) -> Iterator[dict[str, Any]]:
        if self.experiment.timed or len(left) < 2:
            for point, seed in left:
                yield _tried(self.experiment, point, seed)
        else:
            yield from self._side_by_side(left)

    def _side_by_side(self, left: Sequence[tuple[Point, int]]) -> Iterator[dict[str, Any]]:
        cores = machine.allowed_cores()
        with ProcessPoolExecutor(cores, get_context("spawn"), _one_thread) as pool:
            waiting: set[Future[dict[str, Any]]] = {pool.submit(_trial, self.where, *trial) for trial in left}
            try:
                while waiting:
                    over, waiting = wait(waiting, LIMIT, FIRST_COMPLETED)
                    if not over:
                        raise TimeoutError(f"No trial of {self.experiment.name} has ended for {LIMIT:g} s.")
                    for future in over:
                        yield future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def recorded(path: Path, head: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the trials recorded in a file; an incomplete last line counts as not recorded.

    With a ``head`` the file is created if it does not exist. The file of another study raises an error.
    """
    if not path.exists():
        if head is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(to_jsonable(head)) + "\n")
        return []
    lines = path.read_text().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    try:
        found = [json.loads(line) for line in whole]
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}: this is no record of an experiment: {error}. Remove it, or choose another."
        ) from error
    if not found or "experiment" not in found[0]:
        raise DataError(f"{path}: this is no record of an experiment. Choose another folder.")
    if head is not None:
        differ = [name for name in ("experiment", "format", "quick") if found[0].get(name) != head[name]]
        if differ:
            raise DataError(
                f"{path}: here is another study: {', '.join(f'{name} is {found[0].get(name)!r}' for name in differ)}. "
                "Choose another folder with --out."
            )
        if len(whole) < len(lines):
            path.write_text("".join(whole))
    return found[1:]


def head_of(path: Path) -> dict[str, Any]:
    """Return the first line of a record, which describes the study."""
    with path.open() as file:
        try:
            head = json.loads(file.readline())
        except json.JSONDecodeError as error:
            raise DataError(f"{path}: this is no record of an experiment: {error}.") from error
    return head if isinstance(head, dict) else {}


def results_of(records: Iterable[Record]) -> Results:
    """Return the trials with figures, each flattened into settings, seed and figures."""
    return Results(tuple(
        {**record["point"], "seed": record["seed"], **record["figures"], "trial_seconds": record["seconds"]}
        for record in records if record.get("figures") is not None
    ))  # fmt: skip


def failures(records: Iterable[Record]) -> list[str]:
    """Return the failed trials and their errors, in words."""
    return [f"{_spelt(record['point'])}: {record['failure']}" for record in records if record.get("failure")]


def _tried(experiment: Experiment, point: Point, seed: int) -> dict[str, Any]:
    started = time.perf_counter()
    record: dict[str, Any] = {"point": dict(point), "seed": seed, "figures": None}
    try:
        record["figures"] = dict(experiment.trial(point, seed))
    except Exception as error:
        record["failure"] = f"{type(error).__name__}: {error}"
    plain: dict[str, Any] = to_jsonable({**record, "seconds": time.perf_counter() - started})
    return plain


def _trial(where: str, point: Point, seed: int) -> dict[str, Any]:
    return _tried(named(where), point, seed)


def _one_thread() -> None:
    """Limit numerical libraries to one thread, because parallel trials have one core each."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def _key(record: Mapping[str, Any]) -> str:
    return _key_of(record["point"], record["seed"])


def _key_of(point: Point, seed: int) -> str:
    return json.dumps([to_jsonable(point), seed], sort_keys=True)


def _spelt(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.items())
