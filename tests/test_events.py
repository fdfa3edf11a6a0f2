"""Events are declared, documented and checked; callbacks read the parameters that an event describes."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import Budget, Linear, ParameterServer, Run, minimise
from hogwild.errors import DataError, ParameterError
from hogwild.events import EVENTS, Event, EventLog

ROWS = np.random.default_rng(0).standard_normal((200, 3)).astype(np.float32)
TRUTH = np.array([1.0, -2.0, 0.5], np.float32)


def problem() -> Linear:
    return Linear((ROWS, ROWS @ TRUTH), loss="squared", intercept=False)


def test_the_page_lists_every_event() -> None:
    tool = runpy.run_path("tools/events")
    assert tool["PAGE"].read_text() == tool["page"](), "run tools/events"


@pytest.mark.parametrize(
    ("event", "fields", "says"),
    [("epoch", {"epoch": 1}, "lacks the fields"), ("compiled", {"seconds": 1.0, "minutes": 2}, "unknown fields")],
)
def test_an_event_has_the_fields_that_are_declared(event: str, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        EventLog().emit(event, **fields)
    with pytest.raises(KeyError):
        EventLog().emit("something else")


@pytest.mark.parametrize(
    "how",
    [
        {"strategy": "serial"},
        {"strategy": "hogwild", "average": 0.5},
        {"strategy": ParameterServer(2), "runtime": "simulator"},
        {"strategy": ParameterServer(2), "runtime": "local"},
    ],
    ids=["serial", "averaged", "simulator", "local"],
)
def test_a_callback_reads_the_parameters_that_are_evaluated(how: dict[str, Any]) -> None:
    read: list[tuple[float, np.ndarray]] = []

    def callback(event: Event) -> None:
        if event["event"] in ("epoch", "result"):
            (weights,) = (part for part in event.parameters if part.size == 3)
            read.append((event["loss"], weights.ravel()))

    run = minimise(problem(), "sgd", 0.01, budget=3, callbacks=[callback], **how)
    assert len(read) == 4
    for loss, weights in read:
        # The loss of a row is half of its squared error.
        assert loss == pytest.approx(0.5 * np.mean((ROWS @ weights - ROWS @ TRUTH) ** 2), rel=1e-3)
    assert np.array_equal(read[-1][1], run.model.weights.ravel())
    with pytest.raises(LookupError):
        run.events[-1].parameters  # noqa: B018


@pytest.mark.parametrize("runtime", ["threads", "simulator"])
def test_a_run_leaves_a_folder_that_is_loaded(runtime: str, tmp_path: Path) -> None:
    strategy = "serial" if runtime == "threads" else ParameterServer(2)
    run = minimise(problem(), strategy=strategy, runtime=runtime, budget=3, folder=tmp_path / "run", checkpoint=True)
    loaded = Run.load(tmp_path / "run")
    assert (loaded.stop_reason, loaded.seconds, len(loaded.history)) == ("epochs", run.seconds, 3)
    assert np.array_equal(loaded.model.weights, run.model.weights)
    assert [event["event"] for event in loaded.events] == [event["event"] for event in run.events]
    assert {event["event"] for event in loaded.events} <= EVENTS.keys()
    assert loaded.loss == pytest.approx(run.loss)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["versions"]["numpy"] == np.__version__
    assert record["machine"]["logical_cores"] >= 1
    with pytest.raises(ParameterError, match="has a run already"):
        minimise(problem(), budget=3, folder=tmp_path / "run")
    epochs = 4 if runtime == "threads" else 3  # by messages a run is resumed with the budget that it had
    resumed = minimise(
        problem(), strategy=strategy, runtime=runtime, budget=epochs, folder=tmp_path / "run", resume=True
    )
    assert [each["epoch"] for each in resumed.history] == [1, 2, 3, 4][:epochs]


def test_a_folder_of_a_run_that_failed_or_is_damaged_says_so(tmp_path: Path) -> None:
    def fail(event: Event) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        minimise(problem(), budget=3, folder=tmp_path, callbacks=[fail])
    with pytest.raises(DataError, match="'failed'"):
        Run.load(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        Run.load(tmp_path)
    with pytest.raises(DataError, match="there is no run"):
        Run.load(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError, match="is a file"):
        minimise(problem(), budget=3, folder=tmp_path / "file")
    with pytest.raises(ParameterError, match="cannot be written to"):
        minimise(problem(), budget=3, folder=tmp_path / "file" / "below")
    with pytest.raises(ParameterError, match="'folder' parameter"):
        minimise(problem(), budget=3, folder=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="'folder' parameter"):
        Run.load(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("runtime", ["threads", "simulator"])
def test_every_kind_of_run_stops_when_its_objective_stalls(runtime: str) -> None:
    strategy = "serial" if runtime == "threads" else ParameterServer(2)
    run = minimise(
        problem(), "sgd", 0.01, strategy, runtime, Budget(epochs=200, tolerance=1e-3, stall_epochs=2)
    )  # fmt: skip
    assert run.stop_reason == "tolerance"
    last = [record["objective"] for record in run.history[-3:]]
    assert max(last) - min(last) < 2e-3
