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

ROWS, L2, EPOCHS, PUSH_EVERY, TURNS = 8_000, 1e-4, 4, 64, 2
WORKERS, BURST, TIMES = 4, 0.04, 5  # of which one takes so many times as long for each burst, in seconds
STEPS = (0.2, 0.4, 0.8)
COUNTS = (1, 2, 4, 8)
RAY = ("--runtime", "ray")
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
BOUNDED = Way(
    "bounded: `parameter-server --staleness 8`", "parameter-server", {"staleness": 8, "push-every": PUSH_EVERY}
)
SYNCHRONOUS = Way("synchronous: `synchronous`", "synchronous", {"accumulate": PUSH_EVERY})
ASYNCHRONOUS = Way("asynchronous: `parameter-server`", "parameter-server", {"push-every": PUSH_EVERY})
WAYS = (SYNCHRONOUS, IN_STEP, BOUNDED, ASYNCHRONOUS)


def command(data: Path, way: Way, workers: int, step: float, epochs: int, *more: str) -> list[str]:
    """What is typed, but for the name of the program."""
    common = ["--loss", "hinge", "--l2", f"{L2:g}", "--rule", "adagrad", "--schedule", "constant"]
    size = ["--workers", str(workers), "--step", f"{step:g}", "--epochs", str(epochs)]
    return ["train", str(data), *size, *way.words(), *common, *more]


def run(data: Path, way: Way, workers: int, step: float, epochs: int, *more: str) -> dict[str, Any]:
    """The record of a run, and what it told last of waiting and of staleness."""
    log = data.with_suffix(".jsonl")
    log.unlink(missing_ok=True)
    record = typed([*command(data, way, workers, step, epochs, *more), "--log", str(log)])
    events = {event["event"]: event for event in map(json.loads, log.read_text().splitlines())}
    return {**record, "idle": events["idle"], "pushes": events["staleness"]["workers"]}


def typed(words: list[str]) -> dict[str, Any]:
    """What a command comes to."""
    done = subprocess.run(
        [sys.executable, "-m", "hogwild", *words, "--json"], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    if done.returncode:
        raise RuntimeError(f"hogwild {' '.join(words)} failed:\n{done.stderr}")
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def delays(times: float, own: float) -> list[str]:
    """Every burst takes so much longer than its arithmetic, which takes ``own`` seconds; the last worker's are slow."""
    slow = times * (BURST + own) - own
    seconds = [slow if number == WORKERS - 1 else BURST for number in range(WORKERS)]
    # The delay is that of one update, of which a burst has PUSH_EVERY.
    return ["--delay", ",".join(f"{number}={each / PUSH_EVERY:.7f}" for number, each in enumerate(seconds))]


def reached(record: dict[str, Any], target: float) -> float:
    """Seconds until the objective was as low as the target; infinite if it never was.

    It is known after each epoch, and at the start, where every hinge loss is one; between it is taken to fall evenly.

    >>> reached({"history": [{"seconds": 2.0, "objective": 0.5}, {"seconds": 4.0, "objective": 0.3}]}, 0.4)
    3.0
    """
    before, high = 0.0, 1.0
    for epoch in record["history"]:
        seconds, low = epoch["seconds"], epoch["objective"]
        if low <= target:
            return float(before + (seconds - before) * (high - target) / (high - low))
        before, high = seconds, low
    return float("inf")


def burst(record: dict[str, Any], worker: int) -> float:
    """Seconds that a burst of a worker took on average."""
    name = f"worker-{worker}"
    return float(record["idle"]["workers"][name]["busy"]) / record["pushes"][name]["count"]


def best_step(data: Path, way: Way, target: float, steps: tuple[float, ...]) -> float:
    """The step with which a way is there first when one is slow, in simulated time."""
    slow = (
        "--runtime",
        "simulator",
        "--compute-time",
        f"{BURST / PUSH_EVERY:g}",
        "--delay",
        f"{WORKERS - 1}={(TIMES - 1) * BURST / PUSH_EVERY:g}",
    )
    return min(steps, key=lambda step: reached(run(data, way, WORKERS, step, EPOCHS, *slow), target))


def with_a_slow_one(data: Path, target: float, steps: tuple[float, ...], turns: int) -> list[dict[str, Any]]:
    """How soon each way is there, if one is slow and if none is, with the step that is best for it."""
    first = run(data, ASYNCHRONOUS, WORKERS, steps[0], 1, *RAY, *delays(1, 0.0))
    own = statistics.mean(burst(first, number) for number in range(WORKERS)) - BURST
    found: list[dict[str, Any]] = [
        {"way": way.name, "step": best_step(data, way, target, steps), "slow": [], "even": [], "bursts": []}
        for way in WAYS
    ]
    for _ in range(turns):
        for each, way in zip(found, WAYS, strict=True):
            for name, times in (("slow", TIMES), ("even", 1)):
                record = run(data, way, WORKERS, each["step"], EPOCHS, *RAY, *delays(times, own))
                each[name].append(reached(record, target))
                print(f"{way.name}, {name}, step {each['step']:g}: {each[name][-1]:.2f} s", flush=True)
                if name == "slow":
                    others = statistics.mean(burst(record, number) for number in range(WORKERS - 1))
                    each["bursts"].append(burst(record, WORKERS - 1) / others)
    return found


def by_workers(data: Path, found: list[dict[str, Any]], counts: tuple[int, ...]) -> list[list[str]]:
    """Each way with several numbers of workers, and with the step that it has above."""
    rows = []
    for way in WAYS:
        step = next(each["step"] for each in found if each["way"] == way.name)
        for workers in counts:
            record = run(data, way, workers, step, EPOCHS, *RAY)
            print(f"{way.name}, {workers} workers: {record['seconds']:.2f} s, {record['objective']:.4f}", flush=True)
            rows.append([
                way.name, str(workers), f"{record['seconds']:.1f}", f"{record['updates'] / record['seconds']:,.0f}",
                f"{record['objective']:.4f}", f"{record['accuracy']:.3f}", f"{record['messages']:,}",
            ])  # fmt: skip
    return rows


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    from hogwild.data.generate import kind
    from hogwild.data.generate.write import svmlight_text

    rows, steps, turns = (400, (0.4,), 1) if quick else (ROWS, STEPS, TURNS)
    with TemporaryDirectory() as folder:
        data = Path(folder, "rcv1.svm")
        data.write_bytes(svmlight_text(kind("rcv1", rows=rows).rows))
        target = goal(data)
        slow = with_a_slow_one(data, target, steps, turns)
        table = by_workers(data, slow, (1,) if quick else COUNTS)
    results.write(
        "ray_slow_worker", "A linear SVM on a Ray cluster", report(slow, table, target, rows), out,
        {"target": target, "slow": slow, "workers": table},
    )  # fmt: skip


def goal(data: Path) -> float:
    """The objective of one worker alone after the first of three epochs."""
    words = ["train", str(data), "--strategy", "serial", "--loss", "hinge", "--l2", f"{L2:g}", "--epochs", "3"]
    return float(typed(words)["history"][0]["objective"])


def report(slow: list[dict[str, Any]], table: list[list[str]], target: float, rows: int) -> list[str]:
    last = slow[-1]["slow"]
    lines = []
    for each in slow:
        ratios = [one / other for one, other in zip(each["slow"], last, strict=True)]
        lines.append([
            each["way"], f"{each['step']:g}", results.span(each["even"], ".1f"), results.span(each["slow"], ".1f"),
            results.span(each["bursts"], ".1f"), results.span(ratios, ".1f", "x"),
        ])  # fmt: skip
    return [
        f"RCV1-like data, {rows:,} rows, hinge loss, l2={L2:g}, AdaGrad, from the command line. Four workers, each of",
        f"which needs {BURST * 1000:.0f} ms beyond the arithmetic for {PUSH_EVERY} rows (`--delay`), as if",
        f"they had machines of their own; then the last one needs {TIMES} times as long, by what a burst was measured",
        f"to take. Seconds until the objective is {target:.4f}, as that of one worker alone after an epoch; between",
        "epochs it is taken to fall evenly. For each way the best of these steps,",
        f"{', '.join(f'{step:g}' for step in STEPS)}, in",
        f"simulated time. Median (least to most) of {len(last)} turns, one of each after the other. The goal is that",
        "asynchronous workers are there twice as soon as those in step. The bound is one on how far any worker may be",
        "ahead of the slowest: if one is always slow, all others come to wait for it. `synchronous` takes one step on",
        f"the rows of all workers, {PUSH_EVERY} each: so few steps that it is not there within {EPOCHS} epochs (inf).",
        "",
        *results.table(
            ["way", "step", "all alike: s", "one is slow: s", "its bursts to those of others", "to asynchronous"], lines
        ),
        "",
        f"With one to eight workers, none delayed, {EPOCHS} epochs, `hogwild train DATA --runtime ray --workers N`:",
        "",
        *results.table(["way", "workers", "s", "rows/s", "objective", "accuracy", "messages"], table),
    ]  # fmt: skip
