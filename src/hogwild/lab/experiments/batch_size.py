"""Experiment on large minibatches: linear scaling of the step size, warm-up, and the time of an epoch."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from hogwild.lab.experiment import (
    Experiment,
    Mean,
    Point,
    Results,
    counted,
    diverged_runs,
    each,
    gain,
    grid,
    stable_run,
)
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.machine import usable_cores
from hogwild.runtimes import Processes, Simulator
from hogwild.schedules import Constant, LinearScaling
from hogwild.stopping import Budget
from hogwild.strategies import Synchronous
from hogwild.training.minimise import minimise

if TYPE_CHECKING:
    from torch.nn import Sequential
    from torch.utils.data import TensorDataset

BATCH, STEP, EPOCHS, WARMUP = 16, 0.1, 12, 4.0
SAMPLES, HELD_OUT, WIDTH, CLASSES = 6144, 2000, 32, 10
# Factor on the batch from which it counts as large, and share of wrong points above which a run counts as failed.
LARGE, FAILED = 16, 0.1
GUESSING = 1 - 1 / CLASSES  # share of wrong points of a model that guesses, which a run that diverged counts as
# Samples of a step of all workers together, numbers of workers, and epochs of which the first is not timed.
BATCHES, TIMED_EPOCHS = (64, 256, 1024), 4
WORKERS = tuple(count for count in (1, 2, 4, 8, 16) if count <= usable_cores())
MODES = {
    "same step": Constant(STEP),
    "scaled": LinearScaling(Constant(STEP), reference=BATCH, warmup=0.0),
    "scaled, with warm-up": LinearScaling(Constant(STEP), reference=BATCH, warmup=WARMUP),
}


@cache
def _clusters() -> tuple[TensorDataset, ...]:
    """Make points around ten centres in 32 dimensions, and split them into training and held-out points."""
    import torch
    from torch.utils.data import TensorDataset

    random = torch.Generator().manual_seed(0)
    centres = torch.randn(CLASSES, WIDTH, generator=random)
    targets = torch.randint(0, CLASSES, (SAMPLES + HELD_OUT,), generator=random)
    inputs = centres[targets] + torch.randn(len(targets), WIDTH, generator=random)
    parts = slice(None, SAMPLES), slice(SAMPLES, None)
    return tuple(TensorDataset(inputs[part], targets[part]) for part in parts)


def _network(seed: int) -> Sequential:
    import torch

    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, CLASSES),
    )


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with synchronous workers: in simulated time for the error, in real time for the time of an epoch."""
    return _time(point, seed) if "batch" in point else _error(point, seed)


def _error(point: Point, seed: int) -> dict[str, Any]:
    """Train with a batch of as many workers as the factor on the batch, computed by one.

    Workers in step have the result of one worker with the whole batch, at many times the messages.
    """
    import torch

    from hogwild.problems.module import Module

    training, held_out = _clusters()
    problem = Module(_network(seed), torch.nn.functional.cross_entropy, training, batch=BATCH * point["times"])
    run = stable_run(partial(
        minimise, problem, partial(torch.optim.SGD, lr=STEP), MODES[point["mode"]], Synchronous(1), Simulator(),
        Budget(EPOCHS), test=held_out, seed=seed,
    ))  # fmt: skip
    if run is None:
        return {"test_error": GUESSING, "loss": None, "diverged": 1}
    return {
        "test_error": 1 - run.result["test_accuracy"], "loss": run.loss, "diverged": 0,
        "epochs": [record["epoch"] for record in run.history],
        "curve": [1 - record["test_accuracy"] for record in run.history],
    }  # fmt: skip


def _time(point: Point, seed: int) -> dict[str, Any]:
    """Time epochs of processes that divide a batch between them; starting them and the first epoch do not count."""
    import torch

    from hogwild.problems.module import Module

    training, _ = _clusters()
    batch = point["batch"] // point["workers"]
    problem = Module(_network(seed), torch.nn.functional.cross_entropy, training, batch=batch)
    run = stable_run(partial(
        minimise, problem, partial(torch.optim.SGD, lr=STEP), Constant(STEP), Synchronous(point["workers"]),
        Processes(threads=1), Budget(TIMED_EPOCHS), seed=seed,
    ))  # fmt: skip
    if run is None:
        return {"cores": usable_cores(), "epoch_seconds": None, "diverged": 1}
    first, last = run.history[0], run.history[-1]
    return {
        "cores": usable_cores(),
        "epoch_seconds": (last["seconds"] - first["seconds"]) / (last["epoch"] - first["epoch"]),
    }


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare held-out errors by batch size, and times of an epoch by batch size and number of workers."""
    findings, parts = _errors(Results(tuple(record for record in results.records if "mode" in record)))
    timed = Results(tuple(record for record in results.records if "batch" in record))
    more, charts = _times(timed)
    return [*findings, *more], [*parts, *charts]


def _times(timed: Results) -> tuple[list[Finding], list[Part]]:
    """Return a sentence on how much faster an epoch is with a larger batch, and with more workers."""
    if not timed:
        return [], []
    batches, workers = sorted(timed.values("batch")), sorted(timed.values("workers"))
    small, large, most = batches[0], batches[-1], workers[-1]

    def seconds(batch: int, count: int) -> Mean:
        return timed.mean("epoch_seconds", batch=batch, workers=count)

    findings: list[Finding] = []
    if small < large and seconds(small, 1).count and seconds(large, 1).count:
        findings.append(Finding(
            f"An epoch of one worker took {seconds(small, 1)} s with a batch of {small} and {seconds(large, 1)} s with "
            f"{large}: {gain(seconds(small, 1), seconds(large, 1))} times as fast, at equal arithmetic."
        ))  # fmt: skip
    both = [batch for batch in batches if seconds(batch, 1).count and seconds(batch, most).count]
    if most > 1 and both:
        faster = [batch for batch in both if seconds(batch, most).below(seconds(batch, 1))]
        told = ", ".join(f"{gain(seconds(batch, 1), seconds(batch, most))} ({batch})" for batch in both)
        verdict = (
            "More workers are faster with every batch" if len(faster) == len(both)
            else f"More workers are faster with a batch of {' and '.join(map(str, faster))} only" if faster
            else "Here no batch is large enough for more workers to be faster"
        )  # fmt: skip
        findings.append(Finding(
            f"{most} workers that divide the batch are so many times as fast as one, by batch: {told}. {verdict}: each "
            "step waits for an exchange of all gradients, whatever its batch."
        ))  # fmt: skip
    return findings, [
        Chart("Time of an epoch by batch size", "samples of a step, of all workers together", "seconds of an epoch",
              each(workers, lambda count: timed.over("batch", "epoch_seconds", counted(count, "worker"),
                                                        workers=count)),
              "Seconds of an epoch against batch size, by number of workers.", log_x=True, log_y=True),
        Table("Seconds of an epoch", ("samples of a step", *(counted(count, "worker") for count in workers)), tuple(
            (batch, *(str(seconds(batch, count)) for count in workers)) for batch in batches
        )),
    ]  # fmt: skip


def _errors(results: Results) -> tuple[list[Finding], list[Part]]:
    if not results:
        return [], []
    # With the small batch all ways are the same run, which is made once.
    small_batch = results.where(**SMALL).records
    results = Results((*results.records, *({**one, "mode": mode} for one in small_batch for mode in list(MODES)[1:])))
    times = sorted(results.values("times"))
    most = times[-1]

    def error(mode: str, count: int) -> Mean:
        return results.mean("test_error", mode=mode, times=count)

    small, same = error("same step", times[0]), error("same step", most)
    cold, warm = (_failures(results, mode) for mode in ("scaled", "scaled, with warm-up"))
    never = [count for count in times if count > 1 and _failed(results, "scaled, with warm-up", count) == 0]
    findings: list[Finding] = []
    if times[0] == 1 < most and small.count and same.count:
        findings.append(Finding(
            f"A batch {most} times as large with the same step: {same} of held-out points wrong, where the small batch "
            f"has {small}: the same number of epochs has {most} times fewer steps.",
            True if small.below(same) else False if same.below(small) else None,
        ))  # fmt: skip
    if cold[1] and warm[1]:
        findings.append(_warm_up(cold, warm))
    if warm[1]:
        findings.append(Finding(
            f"The largest batch that never failed with scaling and warm-up was {max(never)} times as large, with "
            f"{error('scaled, with warm-up', max(never))} wrong." if never else
            "With scaling and warm-up every larger batch failed with some seed."
        ))  # fmt: skip
    findings += diverged_runs(results, "mode", "times", counted_as="counted as guessing")
    parts: list[Part] = [
        Chart("Held-out error by batch size", "times as large a batch", "share of points wrong",
              each(results.values("mode"), lambda mode: results.over("times", "test_error", mode, mode=mode)),
              "Held-out error against batch size, for three ways to choose the step.", log_x=True, log_y=True),
        Chart(f"Over epochs, with {most} times the batch", "epoch", "share of points wrong",
              each(results.values("mode"), lambda mode: results.curve("epochs", "curve", mode, mode=mode, times=most)),
              "Held-out error over epochs with the largest batch.", log_y=True),
        Table("Held-out error", ("times as large", *results.values("mode")), tuple(
            (count, *(str(error(mode, count)) for mode in results.values("mode"))) for count in times
        )),
    ]  # fmt: skip
    return findings, parts


def _warm_up(cold: tuple[int, int], warm: tuple[int, int]) -> Finding:
    """Return a sentence on whether warm-up rescues large batches, from (failed, all) runs without it and with it.

    >>> _warm_up((0, 4), (0, 4)).text.rpartition(": ")[2]
    'here there is nothing to rescue.'
    """
    cold_share, warm_share = cold[0] / cold[1], warm[0] / warm[1]
    rescued = warm_share < cold_share
    verdict = (
        "warm-up rescues large batches" if rescued
        else "here there is nothing to rescue" if not cold[0] and not warm[0]
        else "here warm-up rescues none"
    )  # fmt: skip
    return Finding(
        f"Of runs with {LARGE} times the batch or more and as many times the step, {cold[0]} of {cold[1]} failed "
        f"(more than a tenth wrong) without warm-up, and {warm[0]} of {warm[1]} with it: {verdict}.",
        rescued if cold[0] or warm[0] else None,
    )


def _failures(results: Results, mode: str) -> tuple[int, int]:
    """Return the numbers of failed runs and of all runs with a large batch."""
    chosen = [record for record in results.where(mode=mode).records if record["times"] >= LARGE]
    return sum(record["test_error"] > FAILED for record in chosen), len(chosen)


def _failed(results: Results, mode: str, count: int) -> int | None:
    """Return the number of failed runs with ``count`` times the batch; None if there are no runs."""
    chosen = results.where(mode=mode, times=count).records
    return sum(record["test_error"] > FAILED for record in chosen) if chosen else None


SMALL = {"mode": "same step", "times": 1}
experiment = Experiment(
    "batch-size",
    "Batch size: k times the batch, k times the step?",
    "Workers in step make large batches. Does a step that is k times as large make up for a batch that is, and does it "
    "need to be warmed up?",
    f"A network of two hidden layers of 64 learns {CLASSES} clusters of {SAMPLES:,} points in {WIDTH} dimensions for "
    f"{EPOCHS} epochs with SGD; {HELD_OUT:,} points are held out. The step is {STEP} for a batch of {BATCH}; k workers "
    "in step make a batch k times as large, which one worker computes here. Scaled, the step is k times as large "
    f"(Goyal et al. 2017); with warm-up it rises to that over {WARMUP:g} epochs. Runs that diverged count as guessing. "
    "The time of an epoch is that of real processes with one thread each, which divide a batch between them, with the "
    f"machine to themselves: the mean of {TIMED_EPOCHS - 1} epochs after the first.",
    [SMALL, *grid(mode=list(MODES), times=[4, 8, 16, 24, 32]), *grid(batch=BATCHES, workers=WORKERS)],
    [SMALL, *grid(mode=list(MODES), times=[24, 32]), *grid(batch=BATCHES[::2], workers=WORKERS[:2])],
    trial,
    read,
    seconds=(135 + 2.0 * 5 * len(BATCHES) * len(WORKERS), 19 + 1.8 * 2 * 2 * len(WORKERS[:2])),
    seeds=(5, 2),
    timed=lambda point: "batch" in point,
)  # fmt: skip
