"""Experiment on collisions between workers: sparsity times workers, predicted and measured."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hogwild.data.generate.catalogue import classification
from hogwild.data.in_memory import InMemoryDataset
from hogwild.lab.experiment import Experiment, Mean, Point, Results, counted, each, finite, grid, ratio
from hogwild.lab.report_builder import heat_maps, staleness_chart
from hogwild.lab.report_model import Chart, Finding, Part, Series, Table
from hogwild.machine import usable_cores
from hogwild.problems.linear import Linear
from hogwild.run import Run
from hogwild.schedules import Constant
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild
from hogwild.training.minimise import minimise

ROWS, NONZEROS, EPOCHS = 400_000, 12, 5
NEAR = 0.75  # ratio to linear speed-up from which a speed-up counts as near-linear
WORKERS = sorted({1, 2, 4, 8, usable_cores()})


@lru_cache(maxsize=1)
def _problem(features: int, exponent: float, seed: int) -> Linear:
    made = classification(ROWS, features, nonzeros=NONZEROS, exponent=exponent, seed=seed)
    return Linear(InMemoryDataset(made.rows, shuffled=True, name="generated"), "logistic", l2=0.0)


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Time three runs without counting, and make one run that counts conflicts."""
    problem = _problem(point["features"], point["exponent"], seed)
    strategy = Hogwild(point["workers"], buffer=0)

    def run(count_conflicts: bool) -> Run:
        return minimise(
            problem, "sgd", Constant(0.5), strategy, "threads", Budget(EPOCHS), evaluate_every_epoch=False, seed=seed,
            count_conflicts=count_conflicts,
        )  # fmt: skip

    run(False)  # a first run compiles the loop and loads the data into the cache
    timed = min(run(False).seconds for _ in range(3))
    observed = run(True)
    seen = observed.conflicts
    assert seen is not None
    keep = {} if seed else {"groups": seen["groups"], "heat": seen["heat"], "histogram": seen["staleness"]["histogram"]}
    return {
        "cores": usable_cores(), "seconds": timed, "observed_seconds": observed.seconds,
        "rows_a_second": EPOCHS * ROWS / timed,
        "collided": seen["collided"], "missed": seen["missed"], "lost": seen["lost"],
        "lost_of_a_million": 1e6 * seen["lost_writes"] / max(1, seen["writes"]),
        "staleness": seen["staleness"]["mean"], "staleness_p95": seen["staleness"]["p95"],
        **{f"predicted_{name}": value for name, value in seen["predicted"].items()}, **keep,
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare predicted with measured collisions, and derive the effect on speed."""
    uniform = results.where(exponent=0.0)
    sizes, workers = sorted(uniform.values("features")), sorted(uniform.values("workers"))
    several = [count for count in workers if count > 1]
    cores, most = results.records[0]["cores"], max(results.values("workers"))
    # The largest number of workers that have a core each, or the smallest one above one.
    two = max((count for count in several if count <= cores), default=min(several, default=most))
    ups = {size: [_speed_up(uniform.where(features=size), count) for count in workers] for size in sizes}
    known = [size for size in sizes if two in several and ups[size][workers.index(two)].count]
    cost = Mean.of([record["observed_seconds"] / record["seconds"] for record in results.records])
    findings = _of_sparsity(uniform, known, two, {size: dict(zip(workers, ups[size], strict=True)) for size in known})
    findings.append(Finding(f"Counting costs time: an instrumented run took {cost} times as long."))
    staler = ratio(uniform.mean("staleness", workers=most), uniform.mean("staleness", workers=two))
    if most > cores and most > two and staler.count:
        findings.append(Finding(
            f"Here are {counted(cores, 'core')}: more workers than that take turns on them. The changes of {most} "
            f"workers are {staler} times as stale as those of {two}."
        ))  # fmt: skip
    parts: list[Part] = [
        Chart(
            "Changes by others that an update did not see", "features", "for an update",
            tuple(
                series for count in several for series in (
                    uniform.over("features", "missed", f"{count} workers, measured", "points", workers=count),
                    uniform.over("features", "predicted_missed_by_staleness", f"{count} workers, predicted", "dashed",
                                 workers=count),
                )
            ),
            "Measured points lie near the dashed curves that staleness and sparsity predict; both fall as data gets "
            "sparser.", log_x=True, log_y=True,
        ),
        Chart(
            "Speed-up", "workers", "times as fast as one",
            tuple(
                Series(f"{size:,} features", workers, [finite(mean.value) for mean in ups[size]],
                       [finite(mean.spread) or 0.0 for mean in ups[size]])
                for size in sizes
            ),
            f"Speed-up against workers, for each sparsity, on {cores} cores.",
        ),
        Chart(
            "Lost changes", "features", "of a million writes",
            each(several, lambda count: uniform.over(
                "features", "lost_of_a_million", f"{count} workers", workers=count)),
            "Lost changes of a million writes fall with sparsity.", log_x=True, log_y=True,
        ),
        Table(
            f"By sparsity, with {counted(two, 'worker')}",
            ("features", *(f"speed-up with {count}" for count in several), "collided", "missed", "expected",
             "lost of a million writes"),
            tuple(
                (f"{size:,}", *(str(ups[size][workers.index(count)]) for count in several),
                 *(str(uniform.mean(figure, features=size, workers=two)) for figure in OF_SPARSITY))
                for size in known
            ),
        ),
    ]  # fmt: skip
    return findings, [*parts, *_pictures(results, two)]


# Figures of the table, for the largest number of workers that have a core each.
OF_SPARSITY = ("collided", "missed", "predicted_missed_by_staleness", "lost_of_a_million")


def _of_sparsity(
    uniform: Results, sizes: list[int], two: int, ups: dict[int, dict[int, Mean]]
) -> list[Finding]:  # fmt: skip
    """Compare the sparsest with the densest data, whose speed-ups with ``two`` workers are known; none without both."""
    if len(sizes) < 2:
        return []
    densest, sparsest = sizes[0], sizes[-1]
    linear = {
        size: max((count for count, mean in ups[size].items() if mean.value >= NEAR * count), default=1)
        for size in (sparsest, densest)
    }  # fmt: skip
    claim = linear[sparsest] > 1 == linear[densest]

    def at(size: int, figure: str) -> Mean:
        return uniform.mean(figure, features=size, workers=two)

    measured, expected = at(sparsest, "missed"), at(sparsest, "predicted_missed_by_staleness")
    lost = {size: at(size, "lost_of_a_million") for size in (sparsest, densest)}
    rarer = lost[sparsest].below(lost[densest])
    return [
        Finding(
            f"Data of {sparsest:,} features was trained {ups[sparsest][two]} times as fast by {two} workers as by one, "
            f"data of {densest:,} features {ups[densest][two]} times. Speed-up is near-linear (at least {NEAR:g} of "
            f"linear) up to {counted(linear[sparsest], 'worker')} on the one and {linear[densest]} on the other: "
            + ("only where terms are sparse." if claim else "that only sparse data gains so is not to be seen here."),
            claim,
        ),
        Finding(
            f"There, changes by others to a term's coordinates between reading and writing it: measured {measured} for "
            f"an update; {expected} were to be expected of the staleness that was measured.",
            0.5 < measured.value / expected.value < 2 if expected.value else None,
        ),
        Finding(
            f"Where rows share {densest:,} features, {at(densest, 'collided')} of updates collided with another; with "
            f"{sparsest:,} features {at(sparsest, 'collided')}. Lost were {lost[densest]} and {lost[sparsest]} of a "
            "million writes: "
            + ("the sparser the data, the fewer changes are lost." if rarer
               else "that sparser data loses fewer changes is not to be seen here."),
            True if rarer else False if lost[densest].below(lost[sparsest]) else None,
        ),
    ]  # fmt: skip


def _speed_up(results: Results, workers: int) -> Mean:
    """Return how many times as fast as one worker several are, on the same rows: seed by seed."""
    one, several = (
        {record["seed"]: record["seconds"] for record in results.where(workers=count).records} for count in (1, workers)
    )
    return Mean.of([one[seed] / several[seed] for seed in one if seed in several])


def _pictures(results: Results, workers: int) -> list[Part]:
    """Make charts of a run on data with word-like feature frequencies.

    They show staleness, collisions by frequency, and a heat map.
    """
    chosen = [record for record in results.where(workers=workers).records if record["exponent"] and "heat" in record]
    if not chosen:
        return []
    record = chosen[-1]
    groups = record["groups"]
    shares = [group["share_of_rows"] for group in groups]
    return [
        staleness_chart(record["histogram"], f"Staleness of {workers} workers"),
        Chart(
            "Collisions by how frequent a coordinate is", "share of rows that have it", "of its writes",
            (
                Series("changed meanwhile", shares, [_of(group["met"], group["writes"]) for group in groups]),
                Series("lost", shares, [_of(group["lost"], group["writes"]) for group in groups], style="dashed"),
            ),
            "The more frequent a coordinate, the more of its writes collide with others.", log_x=True, log_y=True,
        ),
        *heat_maps(record["heat"], groups, workers=2),
    ]  # fmt: skip


def _of(part: float, whole: float) -> float | None:
    return part / whole if whole and part else None


FULL = (
    grid(features=[16, 128, 1_024, 16_384, 262_144, 4_194_304], exponent=[0.0], workers=WORKERS)
    + grid(features=[32_768], exponent=[0.9], workers=WORKERS[1:])
)  # fmt: skip
QUICK = (
    grid(features=[16, 1_024, 4_194_304], exponent=[0.0], workers=WORKERS[:2])
    + grid(features=[32_768], exponent=[0.9], workers=WORKERS[1:2])
)  # fmt: skip
experiment = Experiment(
    "collisions",
    "Collisions: how often do workers collide?",
    "When workers share parameters without locks, how often do they touch the same coordinate at the same time, does "
    "that follow from how sparse the data is, and what does it cost?",
    f"{ROWS:,} generated rows of {NONZEROS} non-zeros are trained for {EPOCHS} epochs by textbook Hogwild! (no "
    "buffers), "
    "over more and more features: the fewer, the more rows have in common. Each run is timed as it is (the best of "
    "three) and once more with a loop that counts: a version counter for each coordinate gives the writes by others "
    "between a worker's reading and writing it, and an exchange at each write what was lost. Predicted is the "
    "staleness that was measured times the coordinates that two rows have in common on average.",
    FULL,
    QUICK,
    trial,
    read,
    seconds=(5.0 * 5 * len(FULL), 6.4 * 2 * len(QUICK)),
    timed=True,
)  # fmt: skip
