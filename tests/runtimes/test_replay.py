"""What was recorded on threads is played again in simulated time."""

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import Linear, Local, ParameterServer, Simulator, minimise
from hogwild.errors import DataError, ParameterError
from hogwild.messaging.trace import NodeTrace, Trace
from hogwild.runtimes.messaging.injected_faults import Link


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(1)
    X = random.standard_normal((240, 5)).astype(np.float32)
    return Linear((X, X @ np.arange(5.0)), "squared", intercept=False)


def descended(problem, runtime, workers=2, **options):
    strategy = ParameterServer(workers=workers, push_every=10, **options)
    return minimise(problem, "sgd", hogwild.Constant(0.01), strategy, runtime, budget=5, seed=3)


def of(run, name):
    return next(event for event in run.events if event["event"] == name)


def test_bursts_take_as_long_as_they_did(problem):
    trace = Trace({"worker-0": NodeTrace(bursts=[(1.0, 10)]), "worker-1": NodeTrace(bursts=[(2.0, 10), (4.0, 10)])})
    run = descended(problem, Simulator.replay(trace))
    pushes = {name: each["count"] for name, each in of(run, "staleness")["workers"].items()}
    assert pushes["worker-0"] == pytest.approx(3 * pushes["worker-1"], abs=4)
    assert run.seconds == pytest.approx(120 * 3 / 4, abs=3)


def test_one_thing_is_handled_after_the_other(problem):
    """Bursts take no time, so all there is to wait for is the server."""
    server = NodeTrace(waking={"Push": [0.5]}, handling={"Push": [1.0], "Pull": [0.25]})
    workers = {f"worker-{k}": NodeTrace(bursts=[(0.0, 10)]) for k in range(3)}
    run = descended(problem, Simulator.replay(Trace({"server-0": server, **workers})), workers=3)
    pushes = of(run, "staleness")["count"]
    assert run.seconds == pytest.approx(1.75 * pushes, abs=2)
    assert of(run, "staleness")["median"] == 2


def test_handling_can_be_asked_for(problem):
    quick, slow = (descended(problem, Simulator(compute_time=0.001, handling_time=each)) for each in (0.0, 0.01))
    assert slow.seconds > 2 * quick.seconds
    again = descended(problem, Simulator(compute_time=0.001, handling_time=0.01))
    assert again.events == slow.events


def test_a_run_is_recorded_saved_and_played_again(problem, tmp_path):
    run = descended(problem, Local(delay={1: 0.002}, latency=0.0005, record=True))
    run.trace.save(tmp_path / "trace.json")
    trace = Trace.load(tmp_path / "trace.json")
    assert {name: vars(node) for name, node in trace.nodes.items()} == {
        name: vars(node) for name, node in run.trace.nodes.items()
    }
    bursts = trace.nodes["worker-1"].bursts
    assert len(bursts) == of(run, "staleness")["workers"]["worker-1"]["count"]
    # The end of the run ends the delay of a burst that is under way, so the shortest may be shorter.
    assert np.median([seconds for seconds, _ in bursts]) >= 0.002
    assert min(trace.nodes["server-0"].ways["Push"]) == pytest.approx(0.0005)
    assert of(run, "trace")["bursts"]["worker-1"]["count"] == len(bursts)
    first, second = (descended(problem, Simulator.replay(trace)) for _ in range(2))
    assert first.events == second.events
    assert descended(problem, Local()).trace is None


def test_what_is_no_trace_is_refused(problem, tmp_path):
    for content in ("", "[]", "{}", '{"format": "hogwild trace 1", "participants": {"worker-0": {"bursts": [1]}}}'):
        (tmp_path / "trace.json").write_text(content)
        with pytest.raises(DataError, match="no trace"):
            Trace.load(tmp_path / "trace.json")
    for number in (np.inf, np.nan):
        for node in (NodeTrace(bursts=[(number, 8)]), NodeTrace([number]), NodeTrace(ways={"Push": [0.1, number]})):
            Trace({"worker-0": node}).save(tmp_path / "trace.json")
            with pytest.raises(DataError, match="no trace"):
                Trace.load(tmp_path / "trace.json")
    with pytest.raises(ParameterError, match="no bursts of worker-1"):
        descended(problem, Simulator.replay(Trace({"worker-0": NodeTrace(bursts=[(1.0, 10)])})))


def test_a_replay_exchanges_as_often_as_the_run_that_chose(tmp_path):
    random = np.random.default_rng(0)
    X = sparse.random(4_000, 300, 0.05, "csr", np.float32, random)
    problem = hogwild.Linear((X, np.sign(X @ random.standard_normal(300) + 0.01)), l2=1e-4)
    asked = problem, "adagrad", 0.5, hogwild.ParameterServer(2)
    run = hogwild.minimise(*asked, hogwild.Local(record=True), budget=2)
    run.trace.save(tmp_path / "trace.json")
    trace = Trace.load(tmp_path / "trace.json")
    (chosen,) = [event["updates"] for event in run.events if event["event"] == "exchanges"]
    assert trace.interval == chosen
    again = hogwild.minimise(*asked, hogwild.Simulator.replay(trace), budget=2)
    pushes = [one.traffic["kinds"]["Push"]["messages"] for one in (run, again)]
    assert pushes[1] == pytest.approx(pushes[0], rel=0.2)
    assert again.objective == pytest.approx(run.objective, rel=0.05)


def test_a_simulated_run_chooses_rare_exchanges_on_a_slow_network():
    random = np.random.default_rng(0)
    X = sparse.random(2_000, 300, 0.05, "csr", np.float32, random)
    problem = hogwild.Linear((X, np.sign(X @ random.standard_normal(300) + 0.01)), l2=1e-4)

    def interval(**options):
        runtime = hogwild.Simulator(1e-4, **options)
        run = hogwild.minimise(problem, "adagrad", 0.5, hogwild.ParameterServer(4), runtime, budget=1)
        return [event["updates"] for event in run.events if event["event"] == "exchanges"]

    assert interval() == []
    (quick,), (slow,) = interval(intervals="chosen", link=Link(1e-6)), interval(intervals="chosen", link=Link(1e-2))
    assert 1 <= quick < slow <= 500
    with pytest.raises(ParameterError, match="'intervals' parameter must be one of"):
        hogwild.Simulator(intervals="often")
