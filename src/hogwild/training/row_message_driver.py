"""Driver of message-passing runs that train a problem of rows in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hogwild.data.dataset import Chunk, Dataset
from hogwild.data.subsample import spread_sample
from hogwild.errors import CheckpointError, DataError
from hogwild.events import EventLog, Parameters
from hogwild.files import format_size, to_jsonable
from hogwild.lazy import cached_property
from hogwild.machine import too_little_memory
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.job import LocalTrainer
from hogwild.problems.problem import RowProblem, State
from hogwild.rules.rule import Rule
from hogwild.run import Run, WarmStart
from hogwild.runtimes import Local
from hogwild.schedules import Schedule, step_of, with_step, with_total
from hogwild.schedules.schedule import largest_step
from hogwild.training.burst_loops import NodeCores, cores_of
from hogwild.training.change_weights import ChangeWeights, change_weights
from hogwild.training.compiled_rows import SimulatedRows
from hogwild.training.exchange_interval import (
    FEW_EXCHANGES,
    LEAST_EXCHANGES,
    LEAST_WITH_MEANS,
    SOME_EXCHANGES,
    choose_interval,
    simulated_interval,
)
from hogwild.training.exchange_tiers import BLOCK, exchange_tiers
from hogwild.training.job import Job, held_out_for, load_initial_state, resolve_schedule, with_chosen_step
from hogwild.training.loop import sampled_rows
from hogwild.training.message_launch import LocalTask, MessageCheckpointer, epochs, run_message_strategy
from hogwild.training.renumbered_problem import RenumberedProblem
from hogwild.training.resident_trainer import ResidentTrainer
from hogwild.training.row_order import local_shard, needed_folders
from hogwild.training.row_trainer import RowSource, RowTrainer, pack_state, unpack_state
from hogwild.training.tiered_trainer import TieredTrainer

# Copies of the parameters for each worker: its own, those of its trainer and evaluation, messages under way, and its
# share of the server's. Measured: 13.4 copies in all with two workers and a parameter server.
NODE_COPIES = 5


def run(job: Job) -> Run:
    """Train a problem of rows by message passing."""
    keeper, asked = MessageCheckpointer(job), job.strategy
    job = _in_rounds(job, keeper)
    assert isinstance(job.problem, RowProblem)
    problem, rule, schedule, runtime = job.problem, job.rule, job.schedule, job.runtime
    seed, init, average = job.options.seed, job.options.init, job.options.average
    workers = job.workers
    # Every exchange passes over all parameters, whichever of them the terms of a burst touch.
    exchanges = LEAST_EXCHANGES if _chooses_interval(job) else problem.data.n_rows // job.strategy.interval or 1
    budget = job.budget.for_data(problem.data.nonzeros + exchanges * problem.data.n_features)
    held_out = held_out_for(problem, job.options.test)
    event_log = EventLog(job.options.callbacks)
    at = {"at": 0.0} if runtime.simulated_time else {"time": time.time()}
    config = to_jsonable({
        **problem.describe(), "rule": repr(rule), "schedule": repr(schedule), "average": average, "seed": seed,
        "held_out": None if held_out is None else held_out.fingerprint,
    })  # fmt: skip
    event_log.emit(
        "started", **config, strategy=repr(asked), workers=workers, runtime=repr(runtime), budget=repr(budget), **at
    )
    keeper.begin(config | {"strategy": repr(asked), "workers": workers, "epochs": budget.epochs}, event_log)
    state = problem.start(rule)
    if init is not None:
        load_initial_state(init, state)
        load_initial_state(WarmStart(problem.to_training_space(state, rule)), state)
    began = time.perf_counter()
    schedule = resolve_schedule(problem, schedule if keeper.step is None else with_step(schedule, keeper.step))
    schedule = with_chosen_step(problem, rule, schedule, budget, seed, 1, True, held_out, event_log)
    schedule = with_total(schedule, job.strategy.total(1, workers))
    keeper.more["step"] = step_of(schedule)
    if runtime.simulated_time:
        event_log.events[-1]["at"] = 0.0
    if isinstance(runtime, Local):
        _check_memory(problem, state, workers)
    trained = _trained_problem(job, budget.epochs, keeper)
    start = trained.enter(state)
    step = _largest_step(rule, schedule, problem.data.n_rows, budget.epochs)
    samples = not (budget.depends_on_loss or budget.patience)
    with cores_of(asked.within) as cores:

        def make_task(scale: float, weights: ChangeWeights | None = None) -> LocalTask:
            return task_of_rows(
                trained, problem, rule, schedule, budget.epochs, seed, workers, job.options.shuffle, held_out, start,
                cores, scale, weights, weights is not None and _keeps_parameters(job), samples, runtime.simulated_time,
                job.checkpoints is not None,
            )  # fmt: skip

        job, weights = _with_interval(job, trained.problem, make_task, start, step, keeper, event_log)
        preparing = time.perf_counter() - began
        outcome = run_message_strategy(partial(make_task, weights=weights), job, schedule, budget, event_log, keeper)
    assert outcome.values is not None
    unpack_state(outcome.values, start)
    state = trained.leave(start)
    config |= {"schedule": repr(schedule), "strategy": repr(job.strategy), "workers": workers, "budget": repr(budget)}
    model = problem.model(problem.from_training_space(rule.values(state), rule), config)
    trace = None if outcome.trace is None else replace(outcome.trace, interval=keeper.more.get("interval"))
    return Run(
        model, config, keeper.history + epochs(event_log), event_log.events, outcome.reason,
        problem.from_training_space(state, rule), outcome.seconds, preparing, trace,
    )  # fmt: skip


def _trained_problem(job: Job, epochs: int | None, keeper: MessageCheckpointer) -> RenumberedProblem:
    """Return the problem as it is trained; a resumed run has the numbers of features that it had before."""
    assert isinstance(job.problem, RowProblem)
    # Parameters to begin from may be those of features that no row has, which a renumbered problem leaves out.
    usual = not job.runtime.simulated_time and job.options.shuffle and job.options.init is None
    found = RenumberedProblem(job.problem)
    if keeper.renumbered if keeper.resumes else usual:
        found = RenumberedProblem.of(job.problem, job.rule, job.options.seed, epochs)
    if keeper.renumbered and found.by_rank is None:
        raise CheckpointError("The run had a copy of its rows, for which there is too little memory now: free some.")
    keeper.more["renumbered"] = found.by_rank is not None
    return found


def _chooses_interval(job: Job) -> bool:
    """Return whether the run chooses the number of updates between two exchanges."""
    strategy = job.strategy
    if strategy.period != "auto" or strategy.with_interval(1) is strategy or not job.runtime.chooses_intervals:
        return False
    return job.rule.adds_up or strategy.averages or strategy.mixes


def _in_rounds(job: Job, keeper: MessageCheckpointer) -> Job:
    """Return the job with a strategy in rounds if workers exchange rarely, and what the rule remembers is a mean.

    The mean of changes is right for it only where all are changes of the same parameters. With changes of older ones
    Adam's mean of squares may become negative. A resumed run has rounds if it had them before.
    """
    rounds = job.strategy.in_rounds
    rare = job.runtime.chooses_intervals and job.strategy.period == "auto" and not job.rule.adds_up
    if rounds is None or not (keeper.in_rounds if keeper.resumes else rare):
        return job
    keeper.more["in_rounds"] = True
    return replace(job, strategy=rounds)


def _largest_step(rule: Rule, schedule: Schedule, rows: int, epochs: float | None) -> float | None:
    """Return the largest step size of the run where weights of changes may depend on it."""
    if rule.shrinks_at_once or rule.effective_step is None:
        return None
    return largest_step(schedule, rows, 1 if epochs is None else epochs)


def _weighs_changes(job: Job) -> bool:
    """Return whether changes are weighed by the number of workers that change the same coordinate."""
    strategy = job.strategy
    combines = job.rule.adds_up or strategy.averages or strategy.mixes
    return strategy.weighs_changes and strategy.combine is None and combines


def _keeps_parameters(job: Job) -> bool:
    """Return whether workers keep their parameters between bursts, and exchange only what has changed."""
    assert isinstance(job.problem, RowProblem)
    return job.strategy.exchanges_changes and job.problem.has_sparse_terms


def _sums_changes(job: Job) -> bool:
    """Return whether workers keep their parameters, and a server adds the changes of each in full after every burst.

    A simulated run exchanges all parameters at an interval that is given, as the textbook does.
    """
    return job.runtime.chooses_intervals and _keeps_parameters(job) and not job.strategy.averages


def _is_resident(job: Job) -> bool:
    """Return whether workers keep their parameters, and the changes of each count as much as weights say."""
    return _keeps_parameters(job) and _weighs_changes(job)


def _with_interval(
    job: Job,
    problem: RowProblem,
    make_task: Callable[..., LocalTask],
    state: State,
    step: float | None,
    keeper: MessageCheckpointer,
    event_log: EventLog,
) -> tuple[Job, ChangeWeights | None]:
    """Return the job with a number of updates between two exchanges, and the weights of changes.

    A resumed run has the interval that it had before.
    """
    asked, runtime = job.strategy, job.runtime
    updates = keeper.interval
    if updates is None and not keeper.resumes and _chooses_interval(job):
        updates = runtime.recorded_interval or _new_interval(job, problem, make_task, state, step, event_log)
    if updates is None:
        sums = keeper.sums_changes if keeper.resumes else _sums_changes(job)
        keeper.more["sums_changes"] = sums
        return job, ChangeWeights.full(state) if sums else None
    keeper.more["interval"] = updates
    # A server that takes the mean divides by the number of workers itself. The changes of workers that keep their
    # parameters are added up.
    mean = asked.averages and not _keeps_parameters(job)
    weights = None
    if _weighs_changes(job):
        weights = _weights(job, problem, state, step, updates, mean)
    if weights is None and _is_resident(job):
        weights = ChangeWeights.full(state)
    return replace(job, strategy=asked.with_interval(updates)), weights


def _weights(
    job: Job, problem: RowProblem, state: State, step: float | None, interval: int, mean: bool
) -> ChangeWeights | None:
    """Return the weights of changes at an interval, with tiers of features that are exchanged more and less often."""
    tiers = exchange_tiers(problem, job.rule, job.workers, interval, step) if _is_resident(job) else None
    workers = job.strategy.neighbourhood(job.workers)
    return change_weights(problem, job.rule, state, workers, interval, mean, tiers, step)


def _check_memory(problem: RowProblem, state: State, workers: int) -> None:
    """Raise DataError if the copies of all workers of this process exceed the free memory, before they are made."""
    needed = NODE_COPIES * workers * sum(part.nbytes for part in state)
    if (room := too_little_memory(needed)) is not None:
        raise DataError(
            f"{workers} workers that send messages take {format_size(needed)} of memory for copies of the parameters",
            path=problem.data.name,
            remedy=f"There is {format_size(room)}. Use fewer workers, or a strategy in one memory (hogwild).",
        )


def _new_interval(
    job: Job, problem: RowProblem, make_task: Callable[..., LocalTask], state: State, step: float | None,
    event_log: EventLog,
) -> int:  # fmt: skip
    """Choose the number of updates between two exchanges."""
    asked, runtime, costs = job.strategy, job.runtime, job.runtime.simulated_costs
    # The weights depend on the interval, and the time of an exchange hardly does.
    averages_squares = (_is_resident(job) or (asked.mixes and asked.weighs_changes)) and job.rule.accumulator_columns
    least = LEAST_WITH_MEANS if averages_squares else LEAST_EXCHANGES
    usual = max(1, problem.data.n_rows // job.workers // least)
    weights = None
    if _is_resident(job):
        weights = _weights(job, problem, state, step, usual, False) or ChangeWeights.full(state)
    task = make_task(1.0, weights)
    given = task.make_trainer(0), task.start, job.workers, task.epoch
    if costs is None:
        assert isinstance(job.problem, RowProblem)
        shard, _ = local_shard(job.problem.training, job.workers)
        found = choose_interval(*given, runtime.message_seconds, asked.servers, _least_slow(job), shard, least)
    else:
        found = simulated_interval(*given, costs, asked.servers, _least_slow(job), least)
    event_log.emit(
        "exchanges", updates=found.updates, update_seconds=found.update_seconds,
        exchange_seconds=found.exchange_seconds, message=found.message, **({} if costs is None else {"at": 0.0}),
    )  # fmt: skip
    return found.updates


def _least_slow(job: Job) -> int | None:
    """Return the least number of exchanges of a worker in an epoch if they are slow; None if it is that of fast ones.

    Workers that mix their parameters with some of the others would differ more at the end. With an exchange among all
    of them, they are as one, and few are enough.
    """
    strategy = job.strategy
    if not strategy.mixes:
        return SOME_EXCHANGES
    return FEW_EXCHANGES if strategy.weighs_changes and strategy.neighbourhood(job.workers) == job.workers else None


def task_of_rows(
    trained: RenumberedProblem, original: RowProblem, rule: Rule, schedule: Schedule, epochs: int | None, seed: int,
    workers: int, shuffle: bool, held_out: Dataset | None, start: State, cores: NodeCores | None = None, scale: float =
    1.0, weights: ChangeWeights | None = None, resident: bool = False, samples: bool = False, simulated: bool = False,
    saves: bool = False,
) -> LocalTask:  # fmt: skip
    """Return the task of training on rows.

    The state of the rule is exchanged together with the parameters, so that another worker can continue a shard.
    """
    problem = trained.problem
    rows = RowSource(problem, rule, schedule, epochs, seed, workers, shuffle, scale)
    state = problem.start(rule)
    tiers = weights.tiers if resident and weights is not None else None

    evaluation = Evaluation(trained, rule, held_out, samples)

    def read(values: Floats) -> Parameters:
        here = problem.start(rule)
        unpack_state(values, here)
        found = trained.leave(rule.values(here))
        return tuple(np.array(part) for part in original.from_training_space(found, rule))

    def make_trainer(worker: int) -> LocalTrainer:
        if tiers is not None and weights is not None:
            return TieredTrainer(rows.of(worker), weights, tiers, cores, saves)
        if resident and weights is not None:
            return ResidentTrainer(rows.of(worker), weights, cores)
        return RowTrainer(rows.of(worker), None if weights is None else weights.packed(), cores)

    width = state[1].size if resident else 1
    each = 1 if cores is None else cores.workers
    plain = simulated and cores is None and weights is None  # Others weigh changes, or train on real threads.
    folders = {worker: needed_folders(problem.training, worker, workers) for worker in range(workers)}
    return LocalTask(
        frozen(pack_state(start)), slice(0, None, state[0].shape[1]), problem.data.n_rows, make_trainer, evaluation,
        read, each, resident, width if tiers is None else width * BLOCK, tiers is not None,
        SimulatedRows.of(rows) if plain else None, {worker: needed for worker, needed in folders.items() if needed},
    )  # fmt: skip


@dataclass(eq=False)
class Evaluation:
    """Evaluation of parameters on the training data, or on a sample of it, and on held-out data if there is any."""

    trained: RenumberedProblem
    rule: Rule
    held_out: Dataset | None
    samples: bool  # whether a sample will do if the data is large

    def __call__(self, values: Floats, exactly: bool) -> dict[str, float]:
        """Return the figures of parameters."""
        problem = self.trained.problem
        # Each call makes its own state. In another process, the arrays that are sent along with this object are
        # read-only.
        here = problem.start(self.rule)
        unpack_state(values, here)
        parameters = self.rule.values(here)
        if not all(np.isfinite(part).all() for part in parameters):
            return {"loss": float("nan")}
        sample = None if exactly else self._sample
        sums = (
            _sums(problem, problem.data, parameters) if sample is None else _sums_at_once(problem, sample, parameters)
        )
        figures: dict[str, float] = problem.metrics(sums)
        figures |= {} if sample is None else {"sampled_rows": sample.n_rows}
        figures["objective"] = figures["loss"] + problem.penalty(parameters)
        if self.held_out is not None:
            others = problem.metrics(_sums(problem, self.held_out, self.trained.leave(parameters)))
            figures |= {f"test_{name}": value for name, value in others.items()}
        return figures

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the sample: another process takes its own."""
        return {name: value for name, value in vars(self).items() if name != "_sample"}

    @cached_property
    def _sample(self) -> Dataset | None:
        data = self.trained.problem.data
        rows = sampled_rows(data)
        return spread_sample(data, rows) if self.samples and rows else None


def _sums_at_once(problem: RowProblem, data: Dataset, values: State) -> Any:
    """Return the sums over few rows in memory: to measure them chunk by chunk takes twice as long."""
    plan = data.here().in_order().whole()
    if plan is None or not isinstance(plan.order, np.ndarray):
        return _sums(problem, data, values)
    return problem.measure(Chunk(plan.rows, plan.order), values)


def _sums(problem: RowProblem, data: Dataset, values: State) -> Any:
    walk, sums = data.here().in_order(), []
    for number in range(len(walk)):
        sums.append(problem.measure(walk[number], values))
        walk.done(number)
    return np.sum(sums, axis=0)
