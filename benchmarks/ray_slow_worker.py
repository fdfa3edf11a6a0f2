"""A linear SVM on a Ray cluster, from the command line: when one of four workers is slow, and with one to eight."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import results

ROWS, L2, EPOCHS, PUSH_EVERY, TURNS = 8_000, 1e-4, 12, 64, 3
WORKERS, BURST, TIMES = 4, 0.04, 5  # of which one takes so many times as long for each burst, in seconds
STEPS = (0.3, 1.0, 3.0)
COUNTS, SHORT = (1, 2, 4, 8), 3
LIMIT = 300.0  # seconds that a run may take


@dataclass(frozen=True)
class Way:
    """How workers share parameters, as options of the command line."""

    name: str
    strategy: str
    options: dict[str, Any] = field(default_factory=dict)

    def words(self) -> list[str]:
        options = {"strategy": self.strategy, **self.options}
        return [word for name, value in options.items() for word in (f"--{name}", str(value))]


IN_STEP = Way(
    "in step: `parameter-server --staleness 0`", "parameter-server", {"staleness": 0, "push-every": PUSH_EVERY}
)
SYNCHRONOUS = Way("in step: `synchronous --accumulate 8`", "synchronous", {"accumulate": 8})
BOUNDED = Way(
    "bounded: `parameter-server --staleness 8`", "parameter-server", {"staleness": 8, "push-every": PUSH_EVERY}
)
ASYNCHRONOUS = Way("asynchronous: `parameter-server`", "parameter-server", {"push-every": PUSH_EVERY})
WAYS = (IN_STEP, BOUNDED, ASYNCHRONOUS)


def command(data: Path, way: Way, workers: int, *more: str) -> list[str]:
    """What is typed, but for the name of the program."""
    common = ["--loss", "hinge", "--l2", f"{L2:g}", "--rule", "adagrad", "--schedule", "constant"]
    return ["train", str(data), "--runtime", "ray", "--workers", str(workers), *way.words(), *common, *more]


def run(data: Path, way: Way, workers: int, *more: str) -> dict[str, Any]:
    """The record of a run, and what it told last of waiting and of staleness."""
    log = data.with_suffix(".jsonl")
    log.unlink(missing_ok=True)
    words = [*command(data, way, workers, *more), "--json", "--log", str(log)]
    done = subprocess.run(
        [sys.executable, "-m", "hogwild", *words], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    if done.returncode:
        raise RuntimeError(f"hogwild {' '.join(words)} failed:\n{done.stderr}")
    events = {event["event"]: event for event in map(json.loads, log.read_text().splitlines())}
    return {**json.loads(done.stdout), "waiting": events["waiting"], "pushes": events["staleness"]["workers"]}


def delays(times: float, own: float) -> list[str]:
    """Every burst takes so much longer than its arithmetic, which takes ``own`` seconds; the last worker's are slow."""
    slow = times * (BURST + own) - own
    return [
        word for number in range(WORKERS)
        for word in ("--slow", f"{number}:{slow if number == WORKERS - 1 else BURST:.4f}")
    ]  # fmt: skip


def reached(record: dict[str, Any], target: float) -> float:
    """Seconds until the objective was as low as the target; infinite if it never was.

    >>> reached({"history": [{"seconds": 2.0, "objective": 0.5}, {"seconds": 4.0, "objective": 0.3}]}, 0.4)
    4.0
    """
    found = (epoch["seconds"] for epoch in record["history"] if epoch["objective"] <= target)
    return min(found, default=float("inf"))


def burst(record: dict[str, Any], worker: int) -> float:
    """Seconds that a burst of a worker took on average."""
    name = f"worker-{worker}"
    return float(record["waiting"]["workers"][name]["busy"]) / record["pushes"][name]["count"]


def with_a_slow_one(data: Path, target: float, steps: tuple[float, ...], turns: int) -> list[dict[str, Any]]:
    """For each way the step with which it is there first, if one is slow; and then several turns of each."""
    found = []
    first = run(data, ASYNCHRONOUS, WORKERS, *delays(1, 0.0), "--step", f"{steps[0]:g}", *until(1))
    own = statistics.mean(burst(first, number) for number in range(WORKERS)) - BURST
    for way in WAYS:
        tried = {
            step: run(data, way, WORKERS, *delays(TIMES, own), "--step", f"{step:g}", *until(EPOCHS)) for step in steps
        }
        best = min(tried, key=lambda step: reached(tried[step], target))
        found.append({"way": way.name, "step": best, "tried": {s: reached(r, target) for s, r in tried.items()}})
    for _ in range(turns):
        for each, way in zip(found, WAYS, strict=True):
            for name, slowest in (("slow", TIMES), ("even", 1)):
                record = run(data, way, WORKERS, *delays(slowest, own), "--step", f"{each['step']:g}", *until(EPOCHS))
                each.setdefault(name, []).append(reached(record, target))
                each.setdefault(f"{name} bursts", []).append(
                    burst(record, WORKERS - 1) / statistics.mean(burst(record, number) for number in range(WORKERS - 1))
                )
    return found


def until(epochs: int) -> tuple[str, ...]:
    return "--epochs", str(epochs)


def by_workers(data: Path, step: str, counts: tuple[int, ...]) -> list[list[str]]:
    rows = []
    for way in (BOUNDED, ASYNCHRONOUS, IN_STEP, SYNCHRONOUS):
        for workers in counts:
            record = run(data, way, workers, "--step", step, *until(SHORT))
            rows.append([
                way.name, str(workers), f"{record['seconds']:.1f}", f"{record['updates'] / record['seconds']:,.0f}",
                f"{record['objective']:.4f}", f"{record['accuracy']:.3f}", f"{record['messages']:,}",
            ])  # fmt: skip
    return rows


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    from hogwild.data.generate import kind
    from hogwild.data.generate.formatting import svmlight_text

    rows, steps, turns = (400, (1.0,), 1) if quick else (ROWS, STEPS, TURNS)
    with TemporaryDirectory() as folder:
        data = Path(folder, "rcv1.svm")
        data.write_bytes(svmlight_text(kind("rcv1", rows=rows).rows))
        target = goal(data)
        slow = with_a_slow_one(data, target, steps, turns)
        table = by_workers(data, "0.3", (1,) if quick else COUNTS)
    results.write(
        "ray_slow_worker", "A linear SVM on a Ray cluster", report(slow, table, target, rows), out,
        {"target": target, "slow": slow, "workers": table},
    )  # fmt: skip


def goal(data: Path) -> float:
    """Little more than the objective after some epochs of one worker on its own, at the step that is best for it."""
    words = ["train", str(data), "--strategy", "serial", "--loss", "hinge", "--l2", f"{L2:g}"]
    words += [*until(SHORT), "--json"]
    done = subprocess.run([sys.executable, "-m", "hogwild", *words], capture_output=True, text=True, check=True)
    return 1.05 * float(json.loads(done.stdout)["objective"])


def report(slow: list[dict[str, Any]], table: list[list[str]], target: float, rows: int) -> list[str]:
    last = slow[-1]["slow"]
    lines = []
    for each in slow:
        ratios = [one / other for one, other in zip(each["slow"], last, strict=True)]
        lines.append([
            each["way"], f"{each['step']:g}", results.span(each["even"], ".1f"), results.span(each["slow"], ".1f"),
            results.span(each["slow bursts"], ".1f"), results.span(ratios, ".1f", "x"),
        ])  # fmt: skip
    return [
        f"RCV1-like data, {rows:,} rows, hinge loss, l2={L2:g}, AdaGrad, from the command line. Four workers, each of",
        f"which needs {BURST * 1000:.0f} ms beyond the arithmetic for {PUSH_EVERY} rows (`--slow`), as if they had",
        f"machines of their own and not the cores of one; then the last one needs {TIMES} times as long, by what a burst",
        f"was measured to take. Seconds until the objective is {target:.4f}, 5% above what one worker alone has after",
        f"{SHORT} epochs; it is looked at after each epoch, for {EPOCHS} at most. For each way the best of the steps",
        f"{', '.join(f'{step:g}' for step in STEPS)}; median (least to most) of {len(last)} turns, one of each after the",
        "other. The goal is that asynchronous workers are there twice as soon as those in step. A bound is one on how",
        "far anybody may be ahead of the slowest: if one is always slow, all others come to wait for it.",
        "",
        *results.table(
            ["way", "step", "all alike: s", "one is slow: s", "its bursts to those of others", "to asynchronous"], lines
        ),
        "",
        f"With one to eight workers, nobody delayed, {SHORT} epochs, `hogwild train DATA --runtime ray --workers N`:",
        "",
        *results.table(["way", "workers", "s", "rows/s", "objective", "accuracy", "messages"], table),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
