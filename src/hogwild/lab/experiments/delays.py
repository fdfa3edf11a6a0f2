"""Experiment on delays: their harm, the worker that is late, and corrections."""

from __future__ import annotations

from functools import partial
from typing import Any

from hogwild.delays import Always, DelayOption, Exponential, HeavyTail, Normal, Slowed
from hogwild.events import Record
from hogwild.lab.experiment import (
    Experiment,
    Point,
    Results,
    diverged_runs,
    each,
    grid,
    outcome,
    ratio,
    stable_run,
)
from hogwild.lab.report_model import Chart, Finding, Part, Series, Table
from hogwild.lab.synthetic_problems import regression
from hogwild.run import Run
from hogwild.runtimes import Local, Runtime, Simulator, Threads
from hogwild.runtimes.messaging.injected_faults import Link
from hogwild.schedules import Constant
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild, ParameterServer, Strategy
from hogwild.strategies.delay_correction import named as correction_named
from hogwild.training.minimise import minimise

WORKERS, EPOCHS, USUAL = 8, 6, 1e-3
TIMES: dict[str, Any] = {
    "constant": Always(USUAL), "normal": Normal(USUAL, USUAL / 3), "heavy tail": HeavyTail(USUAL / 6,
    1.2),
}  # fmt: skip
WHOSE = {"none": {}, "equal": {}, "different": {k: 1.0 + k for k in range(WORKERS)}, "one slow": {0: 20.0}}
# With the large step a single worker does not diverge, and delay still does visible harm. With a step of 0.9 eight
# workers that take constant times diverge, so that their distances cannot be compared.
SMALL, LARGE = 0.05, 0.5
MOST_BY_CHANCE = 0.5  # difference between shares of diverged trials from which it counts as more than chance
# Delays with each update of a worker, which all have the same mean over workers, USUAL seconds.
INJECTED: dict[str, DelayOption] = {
    "none": 0.0,
    "equal": Always(USUAL),
    "different": {k: 2 * USUAL * (k + 1) / (WORKERS + 1) for k in range(WORKERS)},
    "drawn": Exponential(USUAL),
    "one slow": {0: WORKERS * USUAL},
}
# Simulated seconds of an update, besides its delay, and of a message: about those of threads in one process.
COMPUTE, LATENCY = USUAL / 10, USUAL / 100
PLACES = ("simulated", "messages", "memory")
PLACE_WORDS = {
    "simulated": "simulated workers with a server",
    "messages": "threads with a server",
    "memory": "threads in one memory",
}


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with delayed workers: simulated durations of updates, or delays that a runtime injects."""
    return _injected(point, seed) if "delay" in point else _simulated(point, seed)


def _simulated(point: Point, seed: int) -> dict[str, Any]:
    """Train with asynchronous workers and a server in simulated time."""
    workers = 1 if point["whose"] == "none" else WORKERS
    slow = {} if workers == 1 else WHOSE[point["whose"]]
    correction = None if point["correction"] == "none" else correction_named(point["correction"])
    strategy = ParameterServer(workers, correction=correction)
    return _figures(point, seed, strategy, Simulator(Slowed(TIMES[point["time"]], slow)))


def _injected(point: Point, seed: int) -> dict[str, Any]:
    """Train with delays that are injected into simulated workers, threads with a server, or threads in one memory."""
    delay = INJECTED[point["delay"]]
    places: dict[str, tuple[Strategy, Runtime]] = {
        "simulated": (ParameterServer(WORKERS), Simulator(Always(COMPUTE), Link(LATENCY), delay=delay)),
        "messages": (ParameterServer(WORKERS), Local(delay=delay)),
        "memory": (Hogwild(WORKERS, buffer=0), Threads(delay=delay)),
    }
    strategy, runtime = places[point["where"]]
    return _figures(point, seed, strategy, runtime, point["where"] == "memory")


def _figures(
    point: Point, seed: int, strategy: Strategy, runtime: Runtime, count_conflicts: bool = False
) -> dict[str, Any]:
    planted = regression(seed)
    run = stable_run(partial(
        minimise, planted.problem, "sgd", Constant(point["step"]), strategy, runtime, Budget(EPOCHS),
        test=planted.test, seed=seed, count_conflicts=count_conflicts,
    ))  # fmt: skip
    if run is None:
        return {"excess": None, "diverged": 1, "staleness": None, "curve": None}
    stale = _staleness(run)
    return {
        "excess": planted.excess(run.objective), "diverged": 0, "test_loss": run.result["test_loss"],
        "seconds": run.seconds,
        "staleness": stale.get("mean"), "staleness_p95": stale.get("p95"), "staleness_most": stale.get("most"),
        "epochs": [record["epoch"] for record in run.history],
        "curve": [planted.excess(record["objective"]) for record in run.history],
    }  # fmt: skip


def _staleness(run: Run) -> Record:
    """Return the staleness of a run: counted by messages, or with the conflicts of workers in one memory."""
    if run.conflicts is not None:
        found: Record = run.conflicts["staleness"]
        return found
    return run.staleness or {}


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare distributions of delay, the workers that are late, corrections, and places."""
    plain = results.where(correction="none")
    steps = sorted(results.values("step"))
    small, large = steps[0], steps[-1]
    ended = Results(tuple(
        record for record in results.records if record.get("diverged") or record.get("excess") is not None
    ))  # fmt: skip

    def at(step: float, whose: str, time: str, correction: str = "none") -> Results:
        return ended.where(correction=correction, step=step, whose=whose, time=time)

    findings: list[Finding] = []
    if small < large:
        findings += _by_step(
            {step: (at(step, "equal", "constant"), at(step, "none", "constant")) for step in (small, large)}
        )
    helped, alone = at(large, "equal", "heavy tail", "delay-adaptive"), at(large, "equal", "heavy tail")
    if helped and alone:
        findings.append(Finding(
            f"Under times with a heavy tail and a step of {large:g}, delay-adaptive steps came to a distance of "
            f"{outcome(helped, 'excess')}, where without they came to {outcome(alone, 'excess')}: "
            f"{_compared(helped, alone, 'they help', 'they harm')}.",
            True if _nearer(helped, alone) else False if _nearer(alone, helped) else None,
        ))  # fmt: skip
    one, all_alike = at(large, "one slow", "constant"), at(large, "equal", "constant")
    if one and all_alike:
        verdict = _compared(one, all_alike, "one slow worker does less harm", "one slow worker spoils it for all")
        findings.append(Finding(
            f"One worker 20 times as slow, with a step of {large:g}: {outcome(one, 'excess')}; all alike: "
            f"{outcome(all_alike, 'excess')}: {verdict}."
        ))  # fmt: skip
    injected = Results(tuple(record for record in results.records if "delay" in record))
    of_places = Results(tuple(record for record in ended.records if "delay" in record))
    findings += [_kinds(of_places, place) for place in of_places.values("where")]
    simulated = Results(tuple(record for record in results.records if "whose" in record))
    findings += [*diverged_runs(simulated, "whose", "step"), *diverged_runs(injected, "where", "delay", "step")]
    curves = tuple(
        plain.curve("epochs", "curve", f"{whose}, step {step:g}", "line" if step == large else "dashed", whose=whose,
                    step=step, time="constant")
        for step in steps for whose in plain.values("whose")
    )  # fmt: skip
    corrections = results.values("correction")
    parts: list[Part] = [
        Chart("Whose delay, and how large a step", "epoch", "distance to the optimum (1 at the start)",
              tuple(series for series in curves if series.x),
              "Distance to the optimum over epochs, by whose delay there is and by the step.", log_y=True),
        Chart("Distributions of time, and what is done about delay (large step, workers alike)", "correction",
              "distance to the optimum after the last epoch",
              each(results.values("time"), lambda time: results.over(
                  "correction", "excess", time, "bars", whose="equal", step=large, time=time)),
              "Distance to the optimum at the end for each distribution of times and each correction.", log_y=True),
        *_injected_parts(injected),
        Table(
            "Durations of simulated updates",
            ("step", "whose delay", "times", "correction", "distance", "mean staleness", "p95"),
            tuple(
                (step, whose, time, correction, outcome(results, "excess", **key),
                 str(results.mean("staleness", **key)), str(results.mean("staleness_p95", **key)))
                for step in steps for whose in results.values("whose")
                for time in results.values("time") for correction in corrections
                if results.where(**(key := {"step": step, "whose": whose, "time": time, "correction": correction}))
            ),
        ),
    ]  # fmt: skip
    return findings, parts


def _by_step(trials: dict[float, tuple[Results, Results]]) -> list[Finding]:
    """Return a sentence on whether delay does more harm with the larger step, from the trials with and without delay.

    There is none without trials of a single worker that did not diverge.
    """
    small, large = sorted(trials)
    alone = {step: trials[step][1].mean("excess") for step in trials}
    if not all(trials[step][0] and alone[step].count for step in trials):
        return []
    times = {step: ratio(trials[step][0].mean("excess"), alone[step]) for step in trials}

    def told(step: float) -> str:
        late = trials[step][0]
        if not times[step].count:
            return f"they came to {outcome(late, 'excess')}, where one without delay came to {alone[step]}"
        lost = f" ({_lost(late)} of {len(late.records)} runs diverged)" if _lost(late) else ""
        return f"they were {times[step]} times as far from the optimum as one without delay{lost}"

    apart = _share(trials[large][0]) - _share(trials[small][0])
    more = apart >= MOST_BY_CHANCE or (not apart and times[small].below(times[large]))
    less = -apart >= MOST_BY_CHANCE or (not apart and times[large].below(times[small]))
    several = min(len(late.records) for late, _ in trials.values()) > 1
    return [Finding(
        f"{WORKERS} workers alike. With a step of {large:g} {told(large)}; with a step of {small:g} {told(small)}"
        + (": delay harms more when the step is large." if more else
           ": that delay harms more when the step is large is not to be seen here."),
        True if several and more else False if several and less else None,
    )]  # fmt: skip


def _lost(trials: Results) -> int:
    return sum(bool(record.get("diverged")) for record in trials.records)


def _share(trials: Results) -> float:
    return _lost(trials) / len(trials.records)


def _nearer(one: Results, other: Results) -> bool:
    """Return whether the first trials came nearer to the optimum by more than chance; one seed tells nothing of it."""
    if min(len(one.records), len(other.records)) < 2:
        return False
    if _lost(one) or _lost(other):
        return _share(other) - _share(one) >= MOST_BY_CHANCE
    return one.mean("excess").below(other.mean("excess"))


def _compared(one: Results, other: Results, less: str, more: str) -> str:
    """Return the words for the first trials nearer to the optimum than the second, or further, by more than chance.

    >>> near, far = Results(({"excess": 0.1},) * 2), Results(({"excess": 0.2},) * 2)
    >>> _compared(near, far, "less", "more"), _compared(far, near, "less", "more"), _compared(far, far, "less", "more")
    ('less', 'more', 'no difference that is more than chance')
    """
    return less if _nearer(one, other) else more if _nearer(other, one) else "no difference that is more than chance"


def _kinds(injected: Results, place: str) -> Finding:
    """Compare equal, different and drawn delays with none in one place, beside the staleness that they cause."""
    here = injected.where(where=place)

    def told(delay: str) -> str:
        stale = here.mean("staleness", delay=delay)
        seen = f", mean staleness {stale}" if stale.count else ""
        return f"{delay} {outcome(here, 'excess', delay=delay)}{seen}"

    none, others = here.where(delay="none"), [name for name in here.values("delay") if name != "none"]
    worse = [name for name in others if none and _nearer(none, here.where(delay=name))]
    verdict = (
        f": further from the optimum than without delay: {', '.join(worse)}" if worse
        else ": no kind of delay did harm that is more than chance" if none and others and len(here.values("seed")) > 1
        else ""
    )  # fmt: skip
    return Finding(
        f"With delays of {USUAL:g} s on average, {PLACE_WORDS[place]} came to a distance of "
        + "; ".join(told(name) for name in here.values("delay")) + f"{verdict}."
    )  # fmt: skip


def _injected_parts(injected: Results) -> list[Part]:
    """Make charts of distance and staleness by kind of delay, and a table, for injected delays in each place."""
    places, kinds = injected.values("where"), injected.values("delay")

    def bars(figure: str) -> tuple[Series, ...]:
        return each(places, lambda place: injected.over("delay", figure, PLACE_WORDS[place], "bars", where=place))

    if not injected:
        return []
    columns = ("where", "delay", "distance", "held-out loss", "mean staleness", "p95", "seconds")
    figures = ("test_loss", "staleness", "staleness_p95", "seconds")
    return [
        Chart("Equal, different and drawn delays", "delay of each update", "distance to the optimum at the end",
              bars("excess"), "Distance to the optimum at the end by kind of delay, simulated and on real threads.",
              log_y=True),
        Chart("Staleness under these delays", "delay of each update", "mean staleness", bars("staleness"),
              "Mean staleness by kind of delay, simulated and on real threads."),
        Table("Injected delays", columns, tuple(
            (PLACE_WORDS[place], kind, outcome(here, "excess"), *(str(here.mean(figure)) for figure in figures))
            for place in places for kind in kinds if (here := injected.where(where=place, delay=kind))
        )),
    ]  # fmt: skip


CORRECTIONS = ["none", "delay-adaptive", "delay-compensation"]
experiment = Experiment(
    "delays",
    "Delays: do they hurt, and does it matter whose?",
    "Asynchronous workers train on parameters that are a little old. When does that do harm, does it matter whether "
    "all "
    "are late or one of them, and do delay-adaptive steps and delay compensation help?",
    f"Least squares with a known optimum (600 rows of length one, 8 features), {EPOCHS} epochs of SGD at a constant "
    f"step by {WORKERS} asynchronous workers and a server, in simulated time: how long an update takes is constant, "
    "normal, or has a heavy tail; all workers are alike, each is different, or one takes 20 times as long; 'none' is "
    "one worker alone. Distance is the objective above its optimum, against that at the start; runs that diverged are "
    f"counted and have none. The large step, {LARGE:g}, is one with which a single worker does not diverge: what "
    f"diverges does so by its delay. Then a delay of {USUAL:g} s on average is injected into each update with the "
    "large step: none, equal for all, different for each worker, drawn from an exponential distribution, or for one "
    "worker alone. It is injected into simulated workers with a server, into real threads with a server, and into "
    "real threads in one memory, whose conflicts are counted. Real threads run with the machine to themselves.",
    grid(step=[SMALL, LARGE], whose=list(WHOSE), time=list(TIMES), correction=CORRECTIONS)
    + grid(where=PLACES, delay=list(INJECTED), step=[LARGE]),
    grid(step=[SMALL, LARGE], whose=list(WHOSE), time=["constant"], correction=["none"])
    + grid(step=[LARGE], whose=["equal"], time=["heavy tail"], correction=CORRECTIONS)
    + grid(where=PLACES, delay=list(INJECTED), step=[LARGE]),
    trial,
    read,
    seconds=(305, 38),
    seeds=(5, 2),
    timed=lambda point: point.get("where") in ("messages", "memory"),
)  # fmt: skip
