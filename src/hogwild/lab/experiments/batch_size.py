"""Experiment on large minibatches: linear scaling of the step size, and warm-up."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from hogwild.errors import DivergedError
from hogwild.lab.experiment import Experiment, Mean, Point, Results, each, grid
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.runtimes import Simulator
from hogwild.schedules import Constant, LinearScaling
from hogwild.stopping import Budget
from hogwild.strategies import Synchronous
from hogwild.training.minimise import minimise

if TYPE_CHECKING:
    from torch.utils.data import TensorDataset

BATCH, STEP, EPOCHS, WARMUP = 16, 0.1, 12, 4.0
SAMPLES, HELD_OUT, WIDTH, CLASSES = 6144, 2000, 32, 10
# Factor on the batch from which it counts as large, and share of wrong points above which a run counts as failed.
LARGE, FAILED = 16, 0.1
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


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with synchronous workers, whose number is the factor on the batch."""
    import torch

    from hogwild.problems.module import Module

    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, CLASSES),
    )
    training, held_out = _clusters()
    problem = Module(net, torch.nn.functional.cross_entropy, training, batch=BATCH)
    try:
        run = minimise(
            problem, partial(torch.optim.SGD, lr=STEP), MODES[point["mode"]],
            Synchronous(point["times"]), Simulator(), Budget(EPOCHS), test=held_out, seed=seed,
        )  # fmt: skip
    except DivergedError:
        return {"test_error": 0.9, "loss": None, "diverged": 1}
    return {
        "test_error": 1 - run.result["test_accuracy"], "loss": run.loss, "diverged": 0,
        "epochs": [record["epoch"] for record in run.history],
        "curve": [1 - record["test_accuracy"] for record in run.history],
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare held-out errors by batch size."""
    times = sorted(results.values("times"))
    most = times[-1]

    def error(mode: str, count: int) -> Mean:
        return results.mean("test_error", mode=mode, times=count)

    small, same = error("same step", times[0]), error("same step", most)
    cold, warm = (_failed(results, mode) for mode in ("scaled", "scaled, with warm-up"))
    rescued = warm[0] < cold[0]
    largest = max(
        (count for count in times if not _failed(results, "scaled, with warm-up", count)[0]), default=times[0]
    )
    findings = [
        Finding(
            f"A batch {most} times as large with the same step: {same} of held-out points wrong, where the small batch "
            f"has {small}: the same number of epochs has {most} times fewer steps.",
            small.below(same),
        ),
        Finding(
            f"Of runs with {LARGE} times the batch or more and as many times the step, {cold[0]} of {cold[1]} failed "
            f"(more than a tenth wrong) without warm-up, and {warm[0]} of {warm[1]} with it: "
            + ("warm-up rescues large batches." if rescued else "here warm-up rescues none."),
            rescued,
        ),
        Finding(
            f"The largest batch that never failed with scaling and warm-up was {largest} times as large, with "
            f"{error('scaled, with warm-up', largest)} wrong."
        ),
    ]
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


def _failed(results: Results, mode: str, count: int | None = None) -> tuple[int, int]:
    """Return the numbers of failed runs and of all runs with a large batch, or with the factor ``count``."""
    chosen = [
        record for record in results.where(mode=mode).records
        if (record["times"] >= LARGE if count is None else record["times"] == count)
    ]  # fmt: skip
    return sum(record["test_error"] > FAILED for record in chosen), len(chosen)


experiment = Experiment(
    "batch-size",
    "Batch size: k times the batch, k times the step?",
    "Workers in step make large batches. Does a step that is k times as large make up for a batch that is, and does it "
    "need to be warmed up?",
    f"A network of two hidden layers of 64 learns {CLASSES} clusters of {SAMPLES:,} points in {WIDTH} dimensions for "
    f"{EPOCHS} epochs with SGD; {HELD_OUT:,} points are held out. The step is {STEP} for a batch of {BATCH}; k workers "
    "make a batch k times as large. Scaled, the step is k times as large (Goyal et al. 2017); with warm-up it rises to "
    f"that over {WARMUP:g} epochs. Runs that diverged count as guessing.",
    grid(mode=list(MODES), times=[1, 4, 8, 16, 24, 32]),
    grid(mode=list(MODES), times=[1, 24, 32]),
    trial,
    read,
    seconds=(560, 170),
    seeds=(5, 3),
)  # fmt: skip
