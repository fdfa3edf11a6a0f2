"""Search for the strength of the penalties (``l2="auto"``): a path of strengths, judged on held-out rows or ratings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hogwild.errors import CheckpointError
from hogwild.events import Event, EventLog, Parameters
from hogwild.files import to_jsonable, write_file
from hogwild.problems.problem import RowProblem
from hogwild.run import Run, WarmStart
from hogwild.runtimes import Threads
from hogwild.signals import Interrupt, deferred_interrupts
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild
from hogwild.training import thread_driver
from hogwild.training.checkpoints import check_same
from hogwild.training.job import Job, Options

# Strengths that are tried, as multiples of the default penalties of the problem, from the strongest.
PATH = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
WORSE = 2  # number of consecutive strengths with a higher held-out loss after which the path ends
SHARE = 8  # divisor of the epochs of the run, for a strength that begins from the one before
LEAST_EPOCHS = 3
HELD_OUT = 0.1  # share of the rows or ratings that judge where the user gives no held-out data
SEARCH_TIME = 0.5  # share of a budget in seconds for all trials together
LEAST_TIME = 0.1  # share of a budget in seconds that the run has at least, however long a trial takes to stop
PENALTY = "penalty.json"  # file beside the checkpoints with the result of the search, for a resumed run


@dataclass(frozen=True, slots=True)
class ChosenPenalty:
    """Chosen multiple of the default penalties, the (multiple, held-out loss) pairs of the path, and its seconds."""

    times: float
    path: list[tuple[float, float]]
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Run with a multiple of the default penalties, and the parameters of its model."""

    times: float
    run: Run
    parameters: Parameters

    @property
    def loss(self) -> float:
        """The held-out loss at the end."""
        return float(self.run.history[-1]["test_loss"])


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Result of a search, its best trial, and whether Ctrl-C has ended it."""

    chosen: ChosenPenalty
    best: Trial
    interrupted: bool


def run(train: Callable[[Job], Run], job: Job) -> Run:
    """Choose the penalties of a job's problem, and train it with them.

    The trials are short runs on all cores of this machine, whatever the strategy of the job is. They go from strong to
    weak penalties, each from the result of the one before, as long as the held-out loss falls. A factorisation, of rows
    or of ratings, begins anew each time and trains as many epochs as the run, because strong penalties bring all
    factors to zero, from where no step leads away, and because its held-out loss depends on the number of epochs.
    Without held-out data, a tenth of the rows or ratings judges; the run itself trains on all of them.

    A budget in seconds is for the trials and the run together. After Ctrl-C the run is the best trial so far. A resumed
    run has the penalties that were chosen before.
    """
    problem, test = job.problem, job.options.test
    assert isinstance(problem, RowProblem)
    event_log = EventLog(job.options.callbacks)
    found, kept = _chosen_before(job, problem), None
    if found is None:
        part, judge = (problem, test) if test is not None else problem.split(HELD_OUT, job.options.seed)
        with deferred_interrupts() as interrupt:
            search = choose_penalty(replace(job, problem=part), judge, interrupt)
        found, kept = search.chosen, search.best if search.interrupted else None
    chosen = problem.with_penalty(found.times)
    # The default penalties depend on the number of rows, and a trial may have fewer than the run.
    config = chosen.penalties if kept is None else kept.run.config
    strengths = {name: config[name] for name in chosen.penalties}
    event_log.emit("penalty chosen", penalties=strengths, path=found.path, seconds=found.seconds)
    if kept is not None:
        return _interrupted(kept, event_log)
    _remember(job, problem, found)
    trained = train(replace(job, problem=chosen, budget=_rest_of_budget(job, found.seconds)))
    return replace(trained, events=[*event_log.events, *trained.events])


def choose_penalty(job: Job, held_out: Any, interrupt: Interrupt) -> Search:
    """Return the multiple of the default penalties with the lowest held-out loss, and the path that was tried.

    An interrupt ends the path. The trial that it ends is not compared with whole ones.
    """
    path: list[tuple[float, float]] = []
    best: Trial | None = None
    last: Trial | None = None
    seconds = 0.0
    for times in PATH:
        last = _trial(job, times, held_out, last)
        seconds += last.run.seconds
        stopped = last.run.stop_reason == "interrupted"
        if not stopped or best is None:
            path.append((times, last.loss))
            best = last if best is None or last.loss < best.loss else best
        if stopped or interrupt.pressed:
            return Search(ChosenPenalty(best.times, path, seconds), best, interrupted=True)
        losses = [loss for _, loss in path]
        worse = len(path) > WORSE and min(losses[-WORSE:]) > min(losses[:-WORSE])
        limit = _seconds_of(job)
        if worse or (limit is not None and seconds >= SEARCH_TIME * limit):
            break
    assert best is not None
    return Search(ChosenPenalty(best.times, path, seconds), best, interrupted=False)


def _trial(job: Job, times: float, held_out: Any, last: Trial | None) -> Trial:
    problem, limit = job.problem, _seconds_of(job)
    assert isinstance(problem, RowProblem)
    warm = WarmStart(last.run.state) if last is not None and problem.warm_starts else None
    whole = replace(job.budget, seconds=limit).usually(problem.defaults.epochs)
    whole = whole.for_data(problem.data.nonzeros + problem.data.n_features)
    share = SHARE if problem.warm_starts else 1
    few = Budget(
        epochs=None if whole.epochs is None else max(LEAST_EPOCHS, whole.epochs // share),
        seconds=None if limit is None else SEARCH_TIME * limit / len(PATH),
    )
    parameters: list[Parameters] = []

    def keep(event: Event) -> None:
        if event["event"] == "result":
            parameters.append(event.parameters)

    options = Options(
        test=held_out, init=warm, shuffle=job.options.shuffle, seed=job.options.seed, callbacks=(keep,)
    )  # fmt: skip
    trained = thread_driver.run(
        replace(
            job, problem=problem.with_penalty(times), strategy=Hogwild(), runtime=Threads(), budget=few, options=options
        )
    )
    return Trial(times, trained, parameters[-1])


def _seconds_of(job: Job) -> float | None:
    """Return the budget in seconds, of which trials take a part; None if there is none, or if time is simulated."""
    return None if job.runtime.simulated_time else job.budget.seconds


def _rest_of_budget(job: Job, spent: float) -> Budget:
    limit = _seconds_of(job)
    return job.budget if limit is None else replace(job.budget, seconds=max(limit - spent, LEAST_TIME * limit))


def _interrupted(kept: Trial, event_log: EventLog) -> Run:
    """Return the best trial as an interrupted run, with the events that callbacks expect of every run."""
    events = {event["event"]: {key: value for key, value in event.items() if key not in ("event", "at")}
              for event in kept.run.events}  # fmt: skip
    event_log.emit("started", **events["started"])
    event_log.emit("epoch", lambda: kept.parameters, **events["epoch"])
    event_log.emit("result", lambda: kept.parameters, **{**events["result"], "stop_reason": "interrupted"})
    return replace(kept.run, stop_reason="interrupted", events=event_log.events)


def _remember(job: Job, problem: RowProblem, found: ChosenPenalty) -> None:
    """Write the result of the search beside the checkpoints, if the run writes any."""
    if job.checkpoints is not None:
        folder = job.checkpoints.folder
        folder.mkdir(parents=True, exist_ok=True)
        record = {"times": found.times, "path": found.path, "seconds": found.seconds, "problem": problem.describe()}
        write_file(folder / PENALTY, json.dumps(to_jsonable(record), indent=1).encode())


def _chosen_before(job: Job, problem: RowProblem) -> ChosenPenalty | None:
    """Return the result of the search that a resumed run continues; None if there is nothing to resume.

    Raises
    ------
    CheckpointError
        If the search was for another problem, or if the checkpoint is of a run without a search.
    """
    if not job.options.resume or job.checkpoints is None:
        return None
    path = job.checkpoints.folder / PENALTY
    if not path.exists():
        _check_no_checkpoint(job, problem)
        return None
    found = _read(path)
    check_same(to_jsonable(problem.describe()), found["problem"], job.checkpoints.folder)
    pairs = [(float(times), float(loss)) for times, loss in found["path"]]
    return ChosenPenalty(float(found["times"]), pairs, float(found["seconds"]))


def _check_no_checkpoint(job: Job, problem: RowProblem) -> None:
    assert job.checkpoints is not None
    found = job.checkpoints.load()
    if found is not None:
        config = found[1].get("config", {})
        strengths = ", ".join(f"{name}={config[name]!r}" for name in problem.penalties if config.get(name))
        raise CheckpointError(
            f"{job.checkpoints.folder}: the checkpoint is of a run that has not searched for its penalty: give the one "
            f"that it has instead of l2='auto' ({strengths or 'l2=0'})."
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
        if isinstance(found, dict) and found.keys() >= {"times", "path", "seconds", "problem"}:
            return found
        reason = "it lacks entries"
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error)
    raise CheckpointError(f"{path}: the chosen penalty cannot be read ({reason}). Remove the folder to begin anew.")
