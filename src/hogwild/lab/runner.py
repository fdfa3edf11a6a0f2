"""Runner of experiments, which records each trial when it ends, so that an interrupted study can continue."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

from hogwild import machine
from hogwild.destination import errors_name
from hogwild.errors import DataError
from hogwild.files import appending, to_jsonable, write_file
from hogwild.folder_lock import folder_lock
from hogwild.lab.experiment import Experiment, Point, Record, Results, about
from hogwild.lab.experiments import named
from hogwild.lab.forecast import START_SECONDS, Forecast, pace
from hogwild.signals import leave_signals_to_parent, spawning

FORMAT = 1
SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
JOIN_SECONDS = 10.0  # maximum wait for a process that was killed
LOAD_SECONDS = 600.0  # maximum wait for a process that loads the package and its experiment

Trials = Sequence[tuple[Point, int]]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a study: the number of finished trials, of all trials, and the expected seconds that are left.

    The seconds are None before the first trial on the user's data has ended, because nothing is known about them.
    """

    done: int
    total: int
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class Study:
    """Study: one execution of an experiment, whose file has a head and a line for each trial.

    A trial that is recorded is not run again, unless it failed. The later record of a trial replaces the earlier one.

    Parameters
    ----------
    experiment : Experiment
        Settings, trial and reading.
    where : str
        Name of the experiment, or the path of its file. Each process of trials loads the experiment from there.
    path : Path
        File of the records.
    quick : bool, default False
        Whether the settings are those of ``--quick``.
    seeds : int, optional
        Number of seeds; by default that of the experiment.
    settings : mapping, default {}
        What all trials have in common, such as the user's data. A file of records with other settings is refused.
    """

    experiment: Experiment
    where: str
    path: Path
    quick: bool = False
    seeds: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def trials(self) -> list[tuple[Point, int]]:
        """All trials of the study: every setting with the first seed, then with the next."""
        points = self.experiment.quick if self.quick else self.experiment.points
        seeds = self.seeds or self.experiment.seeds[self.quick]
        return [(point, seed) for seed in range(seeds) for point in points]

    @property
    def duration(self) -> float:
        """The expected duration in seconds of all trials on this machine, recorded or not."""
        return self._forecast({}).seconds_left()

    @property
    def expected(self) -> float | None:
        """The expected duration in seconds of the trials that are left, on this machine.

        None if they are on the user's data and none of them has ended: the usual duration is that on generated rows.
        """
        done = _succeeded(recorded(self.path) if self.path.exists() else ())
        return _seconds_left(self._forecast(done))

    def run(self, progress: Callable[[Progress], None] = lambda progress: None) -> Results:
        """Run the trials that are not recorded yet or failed; call ``progress`` before the first and after each.

        Two studies in one folder would disturb each other's times and records, so the second raises CheckpointError.
        """
        with folder_lock(self.path.parent):
            return self._run(progress)

    def _run(self, progress: Callable[[Progress], None]) -> Results:
        head = {
            "experiment": self.where, "format": FORMAT, "quick": self.quick, "settings": dict(self.settings), **about(),
        }  # fmt: skip
        done = _succeeded(recorded(self.path, head))
        left = [trial for trial in self.trials if _key_of(*trial) not in done]
        forecast, total = self._forecast(done), len(self.trials)
        finished = total - len(left)
        progress(Progress(finished, total, _seconds_left(forecast)))
        with appending(self.path) as file:
            for record in self._outcomes(left):
                with errors_name(self.path):
                    file.write(json.dumps(to_jsonable(record), allow_nan=False) + "\n")
                    file.flush()
                done[_key(record)] = record
                finished += 1
                point = record["point"]
                forecast.ended(_setting(point), record["seconds"], self.experiment.runs_alone(point))
                progress(Progress(finished, total, _seconds_left(forecast)))
        return results_of(done.values())

    def _forecast(self, done: Mapping[str, Mapping[str, Any]]) -> Forecast:
        """Return the forecast for this machine; the duration that an experiment declares is that on two cores."""
        experiment, relative = self.experiment, pace()
        points = experiment.quick if self.quick else experiment.points
        shares = sum(1.0 if experiment.runs_alone(point) else 0.5 for point in points) * experiment.seeds[self.quick]
        usual = experiment.seconds[self.quick] / shares if shares else experiment.seconds[self.quick]
        phases = len({experiment.runs_alone(point) for point in points})  # each with processes of its own
        forecast = Forecast(
            max(usual, 1e-3) * relative, machine.usable_cores(), phases * START_SECONDS * relative,
            weight=0.0 if "data" in self.settings else 1.0,
        )  # fmt: skip
        for record in done.values():
            forecast.ended(_setting(record["point"]), record["seconds"])
        for point, seed in self.trials:
            if _key_of(point, seed) not in done:
                forecast.add(_setting(point), experiment.runs_alone(point))
        return forecast

    def _outcomes(self, left: Trials) -> Iterator[dict[str, Any]]:
        alone = [trial for trial in left if self.experiment.runs_alone(trial[0])]
        together = [trial for trial in left if not self.experiment.runs_alone(trial[0])]
        limit = self.experiment.limit
        yield from outcomes(self.where, together, machine.usable_cores(), limit, single_threaded=True)
        yield from outcomes(self.where, alone, 1, limit, single_threaded=False)


def outcomes(
    where: str, trials: Trials, slots: int, limit: float, *, single_threaded: bool
) -> Iterator[dict[str, Any]]:
    """Run trials in processes, and yield the record of each when it ends.

    A trial that takes longer than ``limit`` seconds is killed with its process, and counts as failed. So does a trial
    whose process crashes. The other trials are not affected.

    Parameters
    ----------
    where : str
        Name of the experiment, or the path of its file.
    trials : sequence of (settings, seed)
        Trials to run.
    slots : int
        Number of trials that run at the same time.
    limit : float
        Seconds after which a trial is killed.
    single_threaded : bool
        Whether numerical libraries use one thread in each process, because trials have one core each.
    """
    waiting, idle, busy = deque(trials), list[TrialProcess](), dict[Any, TrialProcess]()
    try:
        while waiting or busy:
            while waiting and len(busy) < slots:
                process = idle.pop() if idle else TrialProcess(where, limit, single_threaded)
                process.begin(waiting.popleft())
                busy[process.pipe] = process
            deadline = min(process.deadline for process in busy.values())
            for pipe in connection.wait(list(busy), max(0.0, deadline - time.monotonic())):
                record = busy[pipe].receive()
                if record is not None:
                    process = busy.pop(pipe)
                    if process.ended:
                        process.kill()
                    else:
                        idle.append(process)
                    yield record
            for process in [one for one in busy.values() if time.monotonic() > one.deadline]:
                del busy[process.pipe]
                process.kill()
                yield process.failure(f"It took longer than {limit:g} s and was ended.")
    finally:
        for process in busy.values():
            process.kill()
        for process in idle:
            process.pipe.close()  # the process then exits by itself, and releases what it has
        for process in idle:
            process.kill(JOIN_SECONDS)


class TrialProcess:
    """Process that runs one trial at a time, and that can be killed if a trial hangs."""

    def __init__(self, where: str, limit: float, single_threaded: bool) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(where, theirs))
        with _environment(dict.fromkeys(SINGLE_THREADED, "1") if single_threaded else {}), spawning():
            self.process.start()
        theirs.close()
        self.limit = limit
        self.ended = self.loaded = False  # whether the process has terminated by itself, has loaded the experiment
        self.since = self.deadline = 0.0  # moments at which the trial began, and at which it is to be killed
        self._trial: tuple[Point, int] = ({}, 0)

    def begin(self, trial: tuple[Point, int]) -> None:
        """Send a trial to the process."""
        self._trial, self.since = trial, time.monotonic()
        self.deadline = self.since + (self.limit if self.loaded else LOAD_SECONDS)
        try:
            self.pipe.send(trial)
        except OSError:
            self.ended = True  # receive() reports it

    def receive(self) -> dict[str, Any] | None:
        """Return the record of the trial; None for the message that the process has loaded the experiment."""
        try:
            record: dict[str, Any] | None = self.pipe.recv()
        except (EOFError, OSError):
            self.ended = True
            self.process.join(JOIN_SECONDS)
            return self.failure(f"Its process ended with exit code {self.process.exitcode}.")
        if record is None:
            self.loaded, self.since = True, time.monotonic()
            self.deadline = self.since + self.limit
        return record

    def failure(self, reason: str) -> dict[str, Any]:
        """Return the record of the current trial as a failed one."""
        point, seed = self._trial
        seconds = time.monotonic() - self.since
        failed: dict[str, Any] = to_jsonable(
            {"point": dict(point), "seed": seed, "figures": None, "failure": reason, "seconds": seconds}
        )
        return failed

    def kill(self, patience: float = 0.0) -> None:
        """Kill the process if it has not ended within ``patience`` seconds.

        The worker processes that a trial has started notice the end of their parent, and terminate.
        """
        self.process.join(patience)
        self.process.kill()
        self.process.join(JOIN_SECONDS)
        self.pipe.close()


def _serve(where: str, pipe: Any) -> None:
    """Run trials until the pipe is closed. Ctrl-C is for the parent alone: it would cut a run short in silence."""
    leave_signals_to_parent()
    os.dup2(2, 1)  # standard output belongs to the result of the command
    experiment = named(where)
    pipe.send(None)
    while True:
        try:
            point, seed = pipe.recv()
        except EOFError:
            return
        pipe.send(_tried(experiment, point, seed))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started within the block.

    A library reads the number of its threads when it is loaded, which is before any code of a process could set it.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def recorded(path: Path, head: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the last record of each trial in a file; an incomplete last line counts as not recorded.

    With a ``head`` the file is created if it does not exist. The file of another study raises an error.
    """
    if not path.exists():
        if head is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, (json.dumps(to_jsonable(head)) + "\n").encode())
        return []
    lines = path.read_text().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    try:
        found = [json.loads(line) for line in whole]
    except (ValueError, RecursionError) as error:  # no JSON, no text, or JSON that is nested without an end
        raise DataError(
            f"{path}: this is no record of an experiment: {error}. Remove it, or choose another."
        ) from error
    if not found or "experiment" not in found[0]:
        raise DataError(f"{path}: this is no record of an experiment. Choose another folder.")
    if head is not None:
        old, new = _shown_settings(found[0]), _shown_settings(head)
        differ = [name for name in old | new if old.get(name) != new.get(name)]
        if differ:
            raise DataError(
                f"{path}: here is another study: {', '.join(f'{name} is {old.get(name)!r}' for name in differ)}. "
                "Choose another folder with --out."
            )
        if len(whole) < len(lines):
            write_file(path, "".join(whole).encode())
    return list({_key(record): record for record in found[1:]}.values())


def _shown_settings(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be equal for records to be of the same study."""
    plain: dict[str, Any] = to_jsonable(
        {name: head.get(name) for name in ("experiment", "format", "quick")} | dict(head.get("settings") or {})
    )
    return plain


def head_of(path: Path) -> dict[str, Any]:
    """Return the first line of a record, which describes the study."""
    with path.open() as file:
        try:
            head = json.loads(file.readline())
        except (ValueError, RecursionError) as error:  # no JSON, or no text
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


def _succeeded(records: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the trials that did not fail, by their settings and seeds."""
    return {_key(record): record for record in records if not record.get("failure")}


def _seconds_left(forecast: Forecast) -> float | None:
    return forecast.seconds_left() if forecast.known else None


def _key(record: Mapping[str, Any]) -> str:
    return _key_of(record["point"], record["seed"])


def _key_of(point: Point, seed: int) -> str:
    return json.dumps([to_jsonable(point), seed], sort_keys=True)


def _setting(point: Point) -> str:
    return json.dumps(to_jsonable(point), sort_keys=True)


def _spelt(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.items())
