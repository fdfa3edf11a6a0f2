"""The compiled event loop of the simulator: the same runs as the loop in Python, where it is used, and when it pays."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import hogwild
from hogwild import Budget, Crash, Link, ParameterServer, Simulator
from hogwild.delays import Exponential, Slowed
from hogwild.kernels.simulation import random_durations
from hogwild.rules import PassiveAggressive
from hogwild.runtimes import simulator
from hogwild.runtimes.simulator import compiled_durations, compiled_loop, compiled_tables, loop_choice

ROWS, FEATURES, NONZEROS = 240, 50, 4


def rows(classes=2, binary=False, n_rows=ROWS, features=FEATURES):
    random = np.random.default_rng(5)
    places = random.integers(0, features, (n_rows, NONZEROS))
    values = np.ones(places.size) if binary else random.standard_normal(places.size)
    X = sp.csr_matrix(
        (values.astype(np.float32), places.ravel(), np.arange(0, places.size + 1, NONZEROS)), (n_rows, features)
    )
    X.sum_duplicates()
    if binary:
        X.data[:] = 1
    return X, np.digitize(X @ random.standard_normal(features), np.linspace(-1, 1, classes + 1)[1:-1])


class Used(list):
    """Names of the event loops that were used."""


@pytest.fixture
def play(monkeypatch):
    """A function that makes a run with the compiled loop wherever that is possible, or with the one in Python."""
    used = Used()
    for loop in (compiled_loop.CompiledLoop, simulator.EventLoop):

        def noted(self, *, was=loop.play, name=loop.__name__):
            used.append(name)
            return was(self)

        monkeypatch.setattr(loop, "play", noted)

    def made(compiled, strategy, runtime=None, *, problem=None, rule="sgd", schedule=None, budget=2, **options):
        monkeypatch.setattr(simulator, "pays", lambda job: compiled)
        used.clear()
        task = hogwild.Linear(rows(), l2=1e-3) if problem is None else problem
        schedule = hogwild.Cosine(0.2) if schedule is None else schedule
        run = hogwild.minimise(task, rule, schedule, strategy, runtime or Simulator(), budget, **options)
        return run, list(used)

    return made


def plain(value):
    """Return a value in which floats may differ by rounding, and all else may not."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return pytest.approx(value, rel=1e-6, abs=1e-12, nan_ok=True) if isinstance(value, float) else value


def assert_same(play, *given, **options):
    """Make a run with both loops, and return it."""
    run, used = play(True, *given, **options)
    again, used_again = play(False, *given, **options)
    assert set(used) == {"CompiledLoop"}
    assert set(used_again) == {"EventLoop"}
    assert [event["event"] for event in run.events] == [event["event"] for event in again.events]
    for event, other in zip(run.events, again.events, strict=True):
        assert dict(event) == plain({**other, "at": event["at"]}), event["event"]
    for values, others in zip(run.state, again.state, strict=True):
        np.testing.assert_allclose(values, others, rtol=1e-5, atol=1e-7)
    return run


def told(run, event):
    return next(each for each in run.events if each["event"] == event)


LATENCIES = (0.0, 1e-4, 0.05, "normal:0.001:0.0005", "log-normal:0.001", "exponential:0.002", "heavy-tail:0.0005")


@pytest.mark.parametrize("latency", LATENCIES)
def test_latencies(play, latency):
    run = assert_same(play, ParameterServer(workers=5), Simulator(link=Link(latency)))
    assert told(run, "staleness")["count"] >= 2 * ROWS


@pytest.mark.parametrize(
    "compute_time", [0.0, 0.001, "exponential:0.001", Slowed("normal:0.001:0.0002", {1: 20.0})], ids=str
)
def test_speeds_of_workers(play, compute_time):
    """Constant durations have many events at the same time, whose order counts."""
    assert_same(play, ParameterServer(workers=4), Simulator(compute_time))


def test_delays_of_workers(play):
    run = assert_same(play, ParameterServer(workers=4), Simulator(delay={2: 0.02}))
    busy = told(run, "idle")["workers"]
    assert busy["worker-2"]["busy"] > 0.5 * busy["worker-1"]["busy"]


@pytest.mark.parametrize("workers", [2, 3, 31, ROWS])
def test_numbers_of_workers(play, workers):
    assert_same(play, ParameterServer(workers=workers), Simulator(link=Link(Slowed(0.001, {1: 3.0}), bandwidth=1e6)))


@pytest.mark.parametrize(
    "options",
    [{"push_every": 3}, {"push_every": 7, "pull_every": 14}, {"pull_every": 3}, {"run_ahead": 0}, {"run_ahead": 2},
     {"push_every": 150}, {"combine": "mean"}],
    ids=str,
)  # fmt: skip
def test_exchanges(play, options):
    """A push every 150 updates spans several epochs of a worker with 48 rows."""
    assert_same(play, ParameterServer(workers=5, **options), Simulator(link=Link("exponential:0.003")), budget=4)


@pytest.mark.parametrize(
    "options",
    [{"staleness": 0}, {"staleness": 0, "combine": "sum", "push_every": 5}, {"staleness": 1}, {"staleness": 4},
     {"staleness": 3, "pull_every": 2, "combine": "sum"}],
    ids=str,
)  # fmt: skip
def test_bounds_on_staleness(play, options):
    run = assert_same(play, ParameterServer(workers=7, **options), Simulator(link=Link("exponential:0.001")), budget=3)
    assert told(run, "staleness")["most_clocks_behind"] <= options["staleness"]


@pytest.mark.parametrize(
    "link",
    [Link(0.001, loss=0.2), Link("exponential:0.001", duplication=0.3), Link("exponential:0.001", reordering=0.3),
     Link("exponential:0.002", loss=0.1, duplication=0.1, reordering=0.2)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("bound", [None, 2])
def test_lost_doubled_and_late_messages(play, link, bound):
    run = assert_same(play, ParameterServer(workers=6, staleness=bound), Simulator(link=link), seed=3)
    traffic = told(run, "traffic")
    assert (traffic["lost"] > 0) == (traffic["resent"] > 0) == (link.loss > 0)


def test_a_full_window(play):
    """With few acknowledgements a worker waits, although it may run ahead of its pulls."""
    assert_same(play, ParameterServer(workers=2, run_ahead=20), Simulator(link=Link(0.5)))


@pytest.mark.parametrize("rule", ["sgd", "momentum", "adagrad", "ftrl", "adam"])
def test_rules(play, rule):
    assert_same(
        play, ParameterServer(workers=5), Simulator(link=Link(0.002)), rule=rule, schedule=hogwild.Constant(0.05)
    )


PROBLEMS = {
    "hinge": lambda: hogwild.Linear(rows(), "hinge", l2=0.0, intercept=False),
    "l1": lambda: hogwild.Linear(rows(), l1=0.01, class_weight="balanced"),
    "squared": lambda: hogwild.Linear(rows(), "squared"),
    "binary": lambda: hogwild.Linear(rows(binary=True)),
    "softmax": lambda: hogwild.Linear(rows(classes=4), "softmax"),
    "drawn": lambda: hogwild.Linear(rows(), sampling="replacement"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems(play, name):
    assert_same(play, ParameterServer(workers=5), problem=PROBLEMS[name]())


def test_steps_that_close_the_gap(play):
    assert_same(
        play, ParameterServer(workers=5), problem=PROBLEMS["hinge"](), rule=PassiveAggressive(),
        schedule=hogwild.Constant(0.5),
    )  # fmt: skip


def test_rows_in_order(play):
    assert_same(play, ParameterServer(workers=7), shuffle=False)


def test_records_between_epochs(play):
    run = assert_same(play, ParameterServer(workers=5), budget=5, every=100)
    assert len(run.history) > 5


def test_records_by_simulated_seconds(play):
    assert_same(play, ParameterServer(workers=5), budget=3, every="0.01s")


@pytest.mark.parametrize(
    ("reason", "budget"), [("target", Budget(epochs=20, target=0.5)), ("patience", Budget(epochs=30, patience=1))]
)
def test_ends_before_the_last_epoch(play, reason, budget):
    run = assert_same(play, ParameterServer(workers=5), budget=budget, test=rows(), schedule=hogwild.Constant(1.0))
    assert run.stop_reason == reason
    assert len(run.history) < budget.epochs


def test_a_loss_that_explodes(play):
    run = assert_same(play, ParameterServer(workers=20), problem=PROBLEMS["squared"](), schedule=hogwild.Constant(1.5))
    assert "diverged" in [event["event"] for event in run.events]


def test_tables_grow(play, monkeypatch):
    """Latencies of many updates, with many messages on their way, and many epochs of step sizes."""
    monkeypatch.setattr(compiled_tables, "FIRST_RATES", 16)
    monkeypatch.setattr(compiled_tables, "MANY_DELAYS", 16)
    monkeypatch.setattr(compiled_tables, "ORDER_BYTES", 3 * 8 * ROWS)
    assert_same(play, ParameterServer(workers=3), Simulator(Slowed(0.001, {0: 40.0}), Link(0.2)), budget=12)


def test_progress_is_reported(play, monkeypatch):
    monkeypatch.setattr(compiled_loop, "PAUSE", 500)
    seen = []
    play(True, ParameterServer(workers=3), callbacks=[lambda event: seen.append(dict(event))])
    fractions = [event["fraction"] for event in seen if event["event"] == "progress"]
    assert len(fractions) > 3
    assert fractions == sorted(fractions)


def test_an_interrupt_ends_the_run(play, monkeypatch):
    monkeypatch.setattr(compiled_loop, "PAUSE", 500)
    loop = compiled_loop.CompiledLoop

    def interrupted(runtime, job, compiled):
        return loop(runtime, replace(job, interrupted=lambda: True), compiled)

    monkeypatch.setattr(compiled_loop, "CompiledLoop", interrupted)
    run, used = play(True, ParameterServer(workers=3), budget=50)
    assert used == ["CompiledLoop"]
    assert run.stop_reason == "interrupted"
    assert told(run, "staleness")["count"] < 50 * ROWS


class Doubling:
    """A distribution that is not compiled."""

    def draw(self, random, worker, count):
        return 0.001 * (1 + count % 2)


DENSE = hogwild.Linear((np.random.default_rng(0).standard_normal((60, 4)), np.arange(60) % 2))
ELSEWHERE = {
    "crashes": (ParameterServer(3), Simulator(faults=(Crash("worker-1", 0.01, 0.01),)), {}),
    "late workers": (ParameterServer(3), Simulator(join_times={1: 0.01}), {}),
    "handling time": (ParameterServer(3), Simulator(handling_time=1e-5), {}),
    "random delays": (ParameterServer(3), Simulator(delay="exponential:0.001"), {}),
    "other distributions": (ParameterServer(3), Simulator(Doubling()), {}),
    "other latencies": (ParameterServer(3), Simulator(link=Link(Doubling())), {}),
    "chosen intervals": (ParameterServer(3), Simulator(intervals="chosen"), {}),
    "one worker": (ParameterServer(1), Simulator(), {}),
    "two servers": (ParameterServer(3, shards=2), Simulator(), {}),
    "prescribed staleness": (ParameterServer(3, staleness="fixed:2"), Simulator(), {}),
    "several rounds": (ParameterServer(3, staleness=1, pull_every=2), Simulator(), {}),
    "correction": (ParameterServer(3, correction="delay-adaptive"), Simulator(), {}),
    "compression": (ParameterServer(3, compression="half"), Simulator(), {}),
    "cores": (ParameterServer(2, within="hogwild"), Simulator(), {}),
    "other strategies": (hogwild.LocalSGD(3), Simulator(), {}),
    "averages": (ParameterServer(3), Simulator(), {"average": 0.5}),
    "limits of time": (ParameterServer(3), Simulator(), {"budget": Budget(epochs=2, seconds=10.0)}),
    "stalls": (
        ParameterServer(3), Simulator(),
        {"schedule": hogwild.Adaptive(0.1), "budget": Budget(epochs=2, tolerance=1e-3)},
    ),
    "dense rows": (ParameterServer(3), Simulator(), {"problem": DENSE}),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_runs_have_the_loop_in_python(play, name):
    strategy, runtime, options = ELSEWHERE[name]
    _, used = play(True, strategy, runtime, **options)
    assert set(used) == {"EventLoop"}


def test_checkpoints_have_the_loop_in_python(play, tmp_path):
    _, used = play(True, ParameterServer(3), checkpoint=tmp_path / "here")
    assert used == ["EventLoop"]


class AskedError(Exception):
    """Carries the job of a run."""


@pytest.fixture
def job_of(monkeypatch):
    """A function that returns the job of a run with some workers and epochs."""

    def found(workers, epochs, **options):
        def asked(self, job):
            raise AskedError(job)

        monkeypatch.setattr(Simulator, "play", asked)
        with pytest.raises(AskedError) as made:
            hogwild.minimise(
                hogwild.Linear(rows()), "sgd", 0.1, ParameterServer(workers, **options), Simulator(), epochs
            )
        return made.value.args[0]

    return found


def test_the_compiled_loop_is_for_runs_in_which_it_saves_time(job_of, monkeypatch):
    cached = [False]
    monkeypatch.setattr(loop_choice, "is_compiled", lambda: cached[0])
    short, long, longer = job_of(3, 2), job_of(3, 100), job_of(3, 20_000)
    rare = job_of(3, 100, push_every=1000)
    assert [loop_choice.pays(job) for job in (short, long, longer, rare)] == [False, False, True, False]
    cached[0] = True
    assert [loop_choice.pays(job) for job in (short, long, longer, rare)] == [False, True, True, False]


def test_parameters_of_all_workers_have_to_fit_into_memory(job_of, monkeypatch):
    job = job_of(3, 20_000)
    assert loop_choice.pays(job)
    monkeypatch.setattr(loop_choice, "available_bytes", lambda: 1000)
    assert not loop_choice.pays(job)


def test_durations_are_those_of_numpy():
    for delay in (Exponential(0.3), *map(compiled_tables.named, (0.1, "normal:1:0.3", "log-normal:1", "heavy-tail:1"))):
        random, again = np.random.default_rng(4), np.random.default_rng(4)
        kind, first, second = compiled_durations.as_numbers(delay)
        drawn = _drawn(random_durations.addresses(random), kind, first, second, 2000)
        np.testing.assert_allclose(drawn, [delay.draw(again, 0, k) for k in range(2000)], rtol=1e-14)
        assert random.random() == again.random()
    assert not math.isnan(drawn.sum())


def _drawn(addresses, kind, first, second, count):
    from hogwild.jit import specialise

    return specialise(_draw_many, cache=False)(addresses, kind, float(first), float(second), count)


def _draw_many(addresses, kind, first, second, count):
    found = np.empty(count)
    for k in range(count):
        found[k] = draw(bits_of(addresses, 0), kind, first, second)
    return found


draw, bits_of = random_durations.draw, random_durations.bits_of
