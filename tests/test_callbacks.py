from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hogwild import Constant, Cosine, Linear, ParameterServer, Simulator, minimise
from hogwild.callbacks import JsonLines, Progress, TensorBoard, progress
from hogwild.errors import MissingExtraError


def problem(loss: str = "logistic") -> Linear:
    X = np.random.default_rng(0).standard_normal((500, 4))
    return Linear((X, np.sign(X[:, 0]) if loss == "logistic" else X[:, 0]), loss)


def run(callback: Any, **settings: Any) -> Any:
    try:
        return minimise(problem(), schedule=Cosine(0.1), strategy="serial", budget=3, callbacks=[callback], **settings)
    finally:
        callback.close()


def lines(path: Path) -> list[Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def test_json_lines_hold_every_event(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "events.jsonl"
    done = run(JsonLines(path))
    assert lines(path) == done.events
    run(JsonLines(path))
    assert len(lines(path)) == 2 * len(done.events)


def test_json_lines_with_progress(tmp_path: Path) -> None:
    run(JsonLines(tmp_path / "events", progress=True))
    assert lines(tmp_path / "events")[-3]["event"] == "progress"


def test_json_lines_can_be_followed(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "events")
    log({"event": "epoch", "loss": float("nan"), "trials": [(1.0, float("inf"))]})
    assert lines(tmp_path / "events") == [{"event": "epoch", "loss": None, "trials": [[1.0, None]]}]
    log.close()


def test_json_lines_tell_of_divergence(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "events")
    minimise(problem("squared"), "sgd", Constant(2.0), "serial", budget=2, callbacks=[log])
    log.close()
    assert "diverged" in [event["event"] for event in lines(tmp_path / "events")]


def test_tensorboard_reads_its_files(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    X = np.random.default_rng(1).standard_normal((50, 4))
    done = run(TensorBoard(tmp_path), test=(X, np.sign(X[:, 0])))
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    expected = {"loss", "objective", "accuracy", "step", "test_loss", "test_accuracy"}
    assert set(found.Tags()["scalars"]) == expected
    for name in expected:
        scalars = found.Scalars(name)
        assert [scalar.step for scalar in scalars] == [500, 1000, 1500]
        assert [scalar.value for scalar in scalars] == pytest.approx([record[name] for record in done.history])


def test_tensorboard_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.record_writer", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hogwild\[tensorboard\]'"):
        TensorBoard(tmp_path)


def drawn(**settings: Any) -> str:
    screen = io.StringIO()
    run(Progress(Console(file=screen, force_terminal=True, width=150)), **settings)
    return screen.getvalue()


def test_progress_draws_how_far_how_fast_and_how_good() -> None:
    shown = drawn()
    assert "Training" in shown
    assert "rows/s" in shown
    assert "epoch 3  loss 0." in shown
    assert "100%" in shown
    assert "held out" not in shown
    assert "\x1b[?25h" in shown  # the cursor is back


def test_progress_shows_the_held_out_loss() -> None:
    assert "held out 0." in drawn(test=(np.eye(4), [1, -1, 1, -1]))


def test_simulated_seconds_are_no_rate() -> None:
    screen = io.StringIO()
    bar = Progress(Console(file=screen, force_terminal=True, width=150))
    minimise(
        problem(), "sgd", Cosine(0.1), ParameterServer(2), Simulator(compute_time=1e3), budget=1, callbacks=[bar]
    )  # fmt: skip
    bar.close()
    shown = screen.getvalue()
    assert "epoch 1  loss 0." in shown
    assert "100%" in shown
    assert " 0 rows/s" not in shown


def test_progress_is_silent_without_a_terminal() -> None:
    screen = io.StringIO()
    run(Progress(Console(file=screen)))
    assert screen.getvalue().strip() == ""


def test_without_a_terminal_a_long_run_prints_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, now = io.StringIO(), [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = Progress(Console(file=screen))
    for second in range(100):
        now[0] = float(second)
        bar({"event": "progress", "updates": 10 * second, "seconds": second, "fraction": second / 100})
        if second == 50:
            bar({"event": "epoch", "epoch": 3, "loss": 0.25, "updates": 500, "seconds": 50.0})
    bar.close()
    lines = screen.getvalue().splitlines()
    assert [line.split()[:2] for line in lines] == [["Training:", "30%"], ["Training:", "60%"], ["Training:", "90%"]]
    assert "epoch 3  loss 0.25000" in lines[1]


def test_the_cursor_comes_back_after_an_error() -> None:
    screen = io.StringIO()
    bar = Progress(Console(file=screen, force_terminal=True))
    bar({"event": "progress", "updates": 10, "seconds": 0.1, "fraction": 0.5})
    bar({"event": "something new"})
    bar.close()
    assert "\x1b[?25h" in screen.getvalue()
