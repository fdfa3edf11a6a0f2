"""Experiment on hardware: one core, all cores and a GPU; in step, asynchronous and averaged; sparse to dense data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from hogwild.data.csr import CSRRows
from hogwild.data.generate import kind
from hogwild.data.in_memory import InMemoryDataset
from hogwild.errors import ParameterError
from hogwild.kernels.cuda_device import DeviceError, check_device
from hogwild.lab.experiment import (
    NEAR_BEST,
    Experiment,
    Mean,
    Point,
    Results,
    counted,
    diverged_runs,
    each,
    finite,
    lowest,
    ratio,
    reached,
    spelt,
    stable_run,
    to_target,
)
from hogwild.lab.report_model import Chart, Finding, Map, Part, Table
from hogwild.machine import usable_cores
from hogwild.problems.linear import Linear
from hogwild.run import Run
from hogwild.runtimes import Cuda, Local, Runtime, Threads
from hogwild.schedules import Constant
from hogwild.stopping import Budget
from hogwild.strategies import Averaging, Hogwild, Serial, Strategy, Synchronous
from hogwild.training.minimise import minimise

ONE, ALL, GPU = "one core", "all cores", "GPU"
IN_STEP, ASYNCHRONOUS, AVERAGED = "in step", "asynchronous", "averaged"
# One worker has no other to average with.
CELLS = {
    (ONE, ASYNCHRONOUS): ONE,  # one worker is plain SGD
    (ALL, ASYNCHRONOUS): f"{ALL}, {ASYNCHRONOUS}",
    (GPU, ASYNCHRONOUS): f"{GPU}, {ASYNCHRONOUS}",
    (ALL, AVERAGED): f"{ALL}, {AVERAGED}",
    (ONE, IN_STEP): f"{ONE}, {IN_STEP}",
    (ALL, IN_STEP): f"{ALL}, {IN_STEP}",
    (GPU, AVERAGED): f"{GPU}, {AVERAGED}",
    (GPU, IN_STEP): f"{GPU}, {IN_STEP}",
}
# Rows and features of each kind of data, from sparse to dense.
FULL = {"clicks": (200_000, 100_000), "rcv1": (100_000, 47_236), "dense": (60_000, 300)}
QUICK = {"clicks": (16_000, 16_000), "rcv1": (8_000, 8_000), "dense": (8_000, 100)}
L2 = 1e-4
FACTOR = 4.0  # between two steps that are tried
# Power of that factor with which the search begins, in units of the largest step that is stable for any single row.
FIRST = {IN_STEP: 1, ASYNCHRONOUS: -1, AVERAGED: -1}
FEWEST, MOST = -6, 8
REPEATS = 3  # runs with the best step, of which the fastest counts: other work on the machine only ever delays


@lru_cache(maxsize=1)
def problem_of(data: str, rows: int, features: int, seed: int) -> tuple[Linear, float]:
    """Return a problem, and the unit of its steps: one over the curvature of the loss along a row."""
    made = kind(data, rows=rows, features=features, seed=seed).rows
    problem = Linear(InMemoryDataset(made, shuffled=True, name="generated rows"), "logistic", l2=L2)
    return problem, 4.0 / (1.0 + squared_length(made))


def squared_length(rows: CSRRows) -> float:
    """Return the mean squared length of rows; those without values have ones."""
    return float((rows.values**2).sum() if rows.values.size else rows.indices.size) / len(rows)


def placed(hardware: str, method: str, batch: int) -> tuple[Strategy, Runtime]:
    """Return the strategy and the runtime of a cell.

    >>> placed("one core", "in step", 64)[0].accumulate
    64
    """
    cores = usable_cores()
    if (hardware, method) not in CELLS:
        raise ParameterError(
            f"There is no training {method} on {hardware}: choose one of: {'; '.join(CELLS.values())}."
        )
    if hardware == GPU:
        return {ASYNCHRONOUS: Hogwild(), AVERAGED: Averaging(), IN_STEP: Synchronous()}[method], Cuda()
    workers = 1 if hardware == ONE else cores
    if method == IN_STEP:
        return Synchronous(workers, accumulate=max(1, batch // workers)), Local()
    if method == AVERAGED:
        return Averaging(workers), Threads()
    return (Serial() if hardware == ONE else Hogwild(workers)), Threads()


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with several steps; return the curve of that which came to the lowest objective."""
    hardware, method = point["hardware"], point["method"]
    strategy, runtime = placed(hardware, method, point["batch"])
    figures = {"cell": CELLS[hardware, method], "cores": usable_cores()}
    if hardware == GPU:
        try:
            check_device()
        except DeviceError as error:
            return {**figures, "missing": str(error)}
    problem, unit = problem_of(point["data"], point["rows"], point["features"], seed)

    def train(power: int, epochs: int) -> Run | None:
        # No objective is 0. Because there is a target, records are of all rows, and not of a sample.
        budget = Budget(epochs, target=0.0)
        step = Constant(unit * FACTOR**power)
        return stable_run(partial(minimise, problem, "sgd", step, strategy, runtime, budget, seed=seed))

    train(FIRST[method], 1)  # first run, which compiles
    if isinstance(strategy, Hogwild) and hardware == ALL:
        # Without a given interval, several workers begin only when the loop of their replicas has been compiled.
        minimise(problem, "sgd", Constant(unit / FACTOR), replace(strategy, buffer=512), runtime, Budget(1), seed=seed)
    power = best_power(lambda power: train(power, point["passes"]), FIRST[method])
    runs = [] if power is None else [train(power, point["passes"]) for _ in range(REPEATS)]
    stable = [run for run in runs if run is not None]
    if not stable:
        return {**figures, "diverged": 1}
    run = min(stable, key=lambda run: run.seconds)
    history = run.history
    return {
        **figures, "diverged": 0, "step": history[0]["step"], "workers": _workers(run, strategy, runtime),
        "objective": history[-1]["objective"], "epochs_a_second": history[-1]["epoch"] / history[-1]["seconds"],
        "density": problem.source.nonzeros / problem.source.n_rows / problem.source.n_features,
        "epochs": [record["epoch"] for record in history], "times": [record["seconds"] for record in history],
        "curve": [record["objective"] for record in history],
    }  # fmt: skip


def _workers(run: Run, strategy: Strategy, runtime: Runtime) -> int | None:
    """Return the number of workers that made updates; None on a GPU, where they are thousands of rows in flight."""
    if runtime.uses_gpu:
        return None
    if isinstance(strategy, Synchronous):
        return strategy.workers
    return max(int(record["workers_used"]) for record in run.history)


def best_power(train: Callable[[int], Run | None], first: int) -> int | None:
    """Return the power whose run has the lowest objective at its end; None if all diverged.

    The search goes from the first power upwards while that helps, or else downwards.

    >>> best_power(lambda power: None, 1) is None
    True
    """
    ends = {first: _end(train(first))}
    for direction in (1, -1) if ends[first] < math.inf else (-1,):
        at = first
        while FEWEST <= at + direction <= MOST:
            ends[at + direction] = _end(train(at + direction))
            if ends[at] < math.inf and not ends[at + direction] < ends[at]:
                break
            at += direction
        if at != first:
            break
    best = min(ends, key=lambda power: ends[power])
    return best if ends[best] < math.inf else None


def _end(run: Run | None) -> float:
    return math.inf if run is None else float(run.history[-1]["objective"])


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare the cells by speed, by progress for each epoch, and by the time to the same objective."""
    missing = any(record.get("missing") for record in results.records)
    ran = Results(tuple(record for record in results.records if not record.get("missing")))
    kinds = ran.values("data")
    compared = {data: with_targets(ran.where(data=data)) for data in kinds}
    found = Results(tuple(record for some in compared.values() for record in some.records))
    findings = [_first(some, data) for data, some in compared.items()]
    findings += _in_step(found, kinds) + _asynchronous(found, kinds) + _alone(found)
    if missing:
        findings.append(Finding(
            "There was no GPU that CUDA could use, and so there are no figures of one. 'hogwild doctor' tells what is "
            "missing."
        ))  # fmt: skip
    findings += diverged_runs(ran, "data", "cell")
    cells = ran.values("cell")
    parts: list[Part] = [
        _map(found, "Time to the same objective, against one core", "common_seconds", cells, "times as fast",
             "How many times as fast as one core each cell came to the objective that all reach.", inverse=True),
        _map(found, "Speed: epochs a second, against one core", "epochs_a_second", cells, "times as many",
             "Epochs a second of each cell, as a multiple of those of one core."),
        _map(found, "Progress: objective after equal epochs, against one core", "objective", cells,
             "times as high", "Objective of each cell after equal epochs, as a multiple of one core's.", log=False),
        *(
            Chart(f"Objective over time: {data}", "seconds", "objective",
                  each(cells, partial(_curve, some)),
                  f"Objective against seconds of training on {data}, for each cell.", log_x=True)
            for data, some in compared.items()
        ),
        _table(compared, cells),
    ]  # fmt: skip
    return findings, parts


def with_targets(results: Results) -> Results:
    """Return the trials of one data set with epochs and seconds to two objectives, and the objectives.

    One is 1% above the lowest that any cell came to, the other is the lowest that all cells came to.
    """
    worst: dict[int, float] = {}
    for record in results.records:
        if record.get("curve"):
            worst[record["seed"]] = max(worst.get(record["seed"], -math.inf), min(record["curve"]))
    near = to_target(results, "curve")
    common = to_target(
        Results(tuple({**record, "target": worst.get(record["seed"])} for record in near.records)), "curve"
    )
    return Results(tuple(
        {**one, "common": other["target"], "common_seconds": other["seconds_to_target"],
         "common_epochs": other["epochs_to_target"]}
        for one, other in zip(near.records, common.records, strict=True)
    ))  # fmt: skip


def _curve(results: Results, cell: str) -> Any:
    return results.curve("times", "curve", cell, cell=cell)


def _against_one_core(results: Results, figure: str, inverse: bool, **settings: object) -> Mean:
    """Return the ratio of a figure to that of one core, or the inverse ratio."""
    one, other = results.mean(figure, cell=ONE, data=settings["data"]), results.mean(figure, **settings)
    return ratio(one, other) if inverse else ratio(other, one)


def _map(
    results: Results, title: str, figure: str, cells: list[str], unit: str, words: str, *, inverse: bool = False,
    log: bool = True,
) -> Map:  # fmt: skip
    kinds = results.values("data")
    values = [
        [finite(_against_one_core(results, figure, inverse, data=data, cell=cell).value) for data in kinds]
        for cell in cells
    ]
    return Map(title, "data, from sparse to dense", "hardware and method", kinds, cells, values, unit, words, log=log)


def _first(results: Results, data: str) -> Finding:
    """Return a sentence on the cell that is first near the lowest objective, and on those that never are."""
    cells = results.values("cell")
    known = [cell for cell in cells if results.mean("seconds_to_target", cell=cell).count]
    if not known:
        return Finding(f"{data}: nothing was trained.")
    some = Results(tuple(record for record in results.records if record["cell"] in known))
    best = str(lowest(some, "seconds_to_target", "cell"))
    times = _against_one_core(results, "seconds_to_target", True, data=data, cell=best)
    epochs = max(record["epochs"][-1] for record in some.records if record.get("epochs"))
    never = [cell for cell in cells if cell not in known]
    return Finding(
        f"{data}: {best} was the first within {NEAR_BEST:.0%} of the lowest objective, after "
        f"{reached(results, 'seconds_to_target', cell=best)} s and "
        f"{reached(results, 'epochs_to_target', cell=best)} epochs"
        + (f", {times} times as fast as one core" if times.count and best != ONE else "")
        + (f"; not within {counted(epochs, 'epoch')}: {'; '.join(never)}" if never else "") + "."
    )  # fmt: skip


def _in_step(results: Results, kinds: list[str]) -> list[Finding]:
    """Compare all cores in step with one core in step."""
    pairs = _pairs(results, kinds, "epochs_a_second", CELLS[ALL, IN_STEP], CELLS[ONE, IN_STEP])
    if not pairs:
        return []
    return [Finding(
        f"In step, all cores trained this many times as many epochs a second as one core: {_ratios(pairs)}. Ma et al. "
        "have more than 400 times as many, by linear algebra and without messages.",
        _verdict([(one, many) for many, one in pairs.values()]),
    )]  # fmt: skip


def _asynchronous(results: Results, kinds: list[str]) -> list[Finding]:
    """Compare asynchronous training on all cores with that on one core and on a GPU.

    The paper finds a GPU better in certain situations, so that neither outcome contradicts it.
    """
    text = "Asynchronous, all cores came to the objective that all reach this many times as fast as"
    alone, gpu = (
        _pairs(results, kinds, "common_seconds", CELLS[hardware, ASYNCHRONOUS], CELLS[ALL, ASYNCHRONOUS])
        for hardware in (ONE, GPU)
    )
    findings = []
    if alone:
        faster = _verdict([(many, one) for one, many in alone.values()])
        findings.append(Finding(f"{text} one core: {_ratios(alone)}.", faster))
    if gpu:
        findings.append(Finding(
            f"{text} the GPU: {_ratios(gpu)}. Ma et al. find all cores the safest choice, and a GPU better in certain "
            "situations."
        ))  # fmt: skip
    return findings


def _pairs(results: Results, kinds: list[str], figure: str, one: str, other: str) -> dict[str, tuple[Mean, Mean]]:
    """Return the means of a figure in two cells, for each kind of data that has both."""
    found = {data: tuple(results.mean(figure, data=data, cell=cell) for cell in (one, other)) for data in kinds}
    return {data: (first, second) for data, (first, second) in found.items() if first.count and second.count}


def _ratios(pairs: dict[str, tuple[Mean, Mean]]) -> str:
    return ", ".join(f"{ratio(*pair)} on {data}" for data, pair in pairs.items())


def _verdict(pairs: list[tuple[Mean, Mean]]) -> bool | None:
    """Return whether the first of each pair is below the second; None where chance could explain it, or one seed."""
    if any(mean.count < 2 for pair in pairs for mean in pair):
        return None
    if all(one.below(other) for one, other in pairs):
        return True
    return False if any(other.below(one) for one, other in pairs) else None


def _alone(results: Results) -> list[Finding]:
    """Return a sentence where one thread made all updates of a cell of all cores."""
    alone = [
        f"{data}, {cell}" for data in results.values("data") for cell in results.values("cell")
        if cell.startswith(ALL) and results.mean("workers", data=data, cell=cell).value == 1
    ]  # fmt: skip
    return [Finding(
        "One thread made all updates, because there is one core, or because on so few rows several would delay each "
        f"other: {'; '.join(alone)}."
    )] if alone else []  # fmt: skip


def _table(compared: dict[str, Results], cells: list[str]) -> Table:
    def row(data: str, some: Results, cell: str) -> tuple[Any, ...]:
        here = some.where(cell=cell)
        workers = str(here.mean("workers"))
        speed_up = _against_one_core(some, "common_seconds", True, data=data, cell=cell)
        return (
            data, spelt(some.mean("density").value), cell, workers.replace("unknown", ""),
            str(here.mean("step")), str(here.mean("epochs_a_second")), str(here.mean("objective")),
            reached(here, "epochs_to_target"), reached(here, "seconds_to_target"), reached(here, "common_epochs"),
            reached(here, "common_seconds"), str(speed_up) if speed_up.count else "",
        )  # fmt: skip

    return Table(
        "All cells",
        ("data", "share of non-zeros", "hardware and method", "workers", "step", "epochs a second", "objective",
         "epochs to 1%", "seconds to 1%", "epochs to what all reach", "seconds to that", "times as fast as one core"),
        tuple(row(data, some, cell) for data, some in compared.items() for cell in cells if some.where(cell=cell)),
    )  # fmt: skip


def points(sizes: dict[str, tuple[int, int]], passes: int, batch: int) -> list[dict[str, Any]]:
    """Return the settings: each cell on each kind of data."""
    return [
        {"data": data, "hardware": hardware, "method": method, "rows": rows, "features": features, "passes": passes,
         "batch": batch}
        for data, (rows, features) in sizes.items() for hardware, method in CELLS
    ]  # fmt: skip


experiment = Experiment(
    "hardware",
    "Hardware: one core, all cores, GPU",
    "One core, all cores or a GPU; in step, asynchronous or averaged; on sparse or dense data: which comes to the "
    "same objective first, and is that for its speed or for its progress with each epoch?",
    "The table of Ma, Rusu and Torres (arXiv 1802.08800) on this machine. Logistic regression by SGD with a constant "
    "step on generated rows, from sparse to dense: clicks, texts like RCV1, and rows without zeros. Asynchronous is "
    "Hogwild!; one core alone has plain SGD. Averaged workers train apart and meet once an epoch. In step, workers "
    "average the gradients of their parts of a minibatch before every step (512 rows, in full 2,048), by messages "
    "between threads; on a GPU, all rows in flight are a minibatch. Each cell has the step, of a grid with a "
    f"factor of {FACTOR:g}, with which it comes to the lowest objective after the same epochs. Speed is epochs a "
    f"second of training, without evaluation, in the fastest of {REPEATS} runs. Times are to two objectives: 1% above "
    "the lowest that any cell came to with the same seed, and the lowest that all cells came to.",
    points(FULL, 10, 2048),
    points(QUICK, 8, 512),
    trial,
    read,
    seconds=(900, 30),
    seeds=(3, 1),
    timed=True,
)
