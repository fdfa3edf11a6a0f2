"""A run to watch: what is drawn from which events, and the command that draws it on a terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hogwild import Cosine, Linear, ParameterServer, Simulator, minimise
from hogwild.callbacks import Live
from hogwild.callbacks.dashboard import curves
from hogwild.callbacks.throughput import Rates

BRAILLE = {chr(code) for code in range(0x2801, 0x2900)}


def fed(*events: dict[str, Any], width: int = 100, height: int = 40) -> str:
    """What is on the screen after such events."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=height, record=True)
    view = Live(console)
    for event in events:
        view(event)
    view.close()
    picture = Console(file=io.StringIO(), width=width, height=height, record=True)
    picture.print(view.picture())
    return picture.export_text()


def started(**more: Any) -> dict[str, Any]:
    return {
        "event": "started", "problem": "linear", "loss": "logistic", "rule": "AdaGrad(initial_accumulator=1e-06)",
        "strategy": "Hogwild(workers=2, buffer='auto')", "runtime": "Threads()", **more,
    }  # fmt: skip


def epochs(count: int, held_out: bool = True) -> list[dict[str, Any]]:
    found = []
    for epoch in range(1, count + 1):
        record = {"event": "epoch", "epoch": epoch, "updates": 1000 * epoch, "seconds": 0.5 * epoch, "loss": 1 / epoch}
        found.append(record | ({"test_loss": 1 / epoch + 0.01 * epoch} if held_out else {}))
    return found


def test_it_shows_what_was_asked_the_curves_and_the_figures() -> None:
    shown = fed(started(), *epochs(20), {"event": "progress", "updates": 20_000, "seconds": 10.0, "fraction": 0.8})
    lines = shown.splitlines()
    assert lines[0].startswith(
        "linear  logistic  AdaGrad(initial_accumulator=1e-06)  Hogwild(workers=2, buffer='auto')  Threads()"
    )
    assert BRAILLE & set(shown)
    assert "epoch 20  loss 0.05  held out 0.25 (least 0.2, epoch 10)" in shown
    assert "80%" in shown
    assert "2,000 rows/s" in shown
    curve = [line for line in lines if "┤" in line]
    assert curve[0].split("┤")[0].strip() == "1.01"
    assert curve[-1].split("┤")[0].strip() == "0.05"
    assert max(len(line) for line in lines) <= 100


def test_the_curve_falls_and_has_both_colours() -> None:
    picture = curves([1, 2, 3, 4], [([8.0, 6.0, 4.0, 2.0], "green"), ([8.0, 8.0, 8.0, 8.0], "yellow")], 40, 6)
    styles = {str(span.style) for span in picture.spans}
    assert {"green", "yellow", "dim"} <= styles
    alone = curves([1, 2, 3, 4], [([8.0, 6.0, 4.0, 2.0], "green")], 40, 6, ascii_only=True)
    rows = [line.index("*") for line in str(alone).splitlines()[:6]]
    assert rows == sorted(rows)
    assert str(alone).isascii()


@given(
    st.lists(st.sampled_from([None, np.nan, np.inf, -np.inf]) | st.floats(-1e100, 1e100), min_size=1, max_size=50),
    st.integers(20, 200), st.integers(2, 20), st.booleans(),
)  # fmt: skip
def test_a_picture_keeps_its_size_whatever_the_values(values: Any, width: int, height: int, old: bool) -> None:
    picture = str(curves(list(range(len(values))), [(values, "green")], width, height, ascii_only=old))
    if not any(value is not None and np.isfinite(value) for value in values):
        assert picture == ""
        return
    lines = picture.splitlines()
    assert len(lines) == height + 2
    assert max(map(len, lines)) <= max(width, 30)
    assert ("*" in picture) if old else (BRAILLE & set(picture))


def test_steep_curves_have_a_logarithmic_axis() -> None:
    picture = str(curves([1, 2, 3], [([100.0, 10.0, 1.0], "green")], 40, 5))
    assert [line.split("┤")[0].strip() for line in picture.splitlines() if "┤" in line] == ["100", "10", "1"]
    picture = str(curves([1, 2, 3], [([3.0, 2.0, 1.0], "green")], 40, 5))
    assert [line.split("┤")[0].strip() for line in picture.splitlines() if "┤" in line] == ["3", "2", "1"]


def test_without_held_out_data_and_before_the_first_epoch() -> None:
    assert "held out" not in fed(started(), *epochs(3, held_out=False))
    early = fed(started(), {"event": "compiled", "seconds": 1.0})
    assert "Choosing the step" in early
    assert not BRAILLE & set(early)
    assert "Starting workers" in fed(started(problem="module"))


def test_a_low_terminal_has_a_low_curve() -> None:
    tall, low = (fed(started(), *epochs(9), height=height) for height in (40, 12))
    assert len(low.splitlines()) < len(tall.splitlines())
    assert len(low.splitlines()) <= 12


def test_a_cluster_is_shown_with_the_staleness_of_everybody() -> None:
    rows = [
        {"node": f"worker-{k}", "ray_node": "4ac1f00d77", "state": "working", "staleness": 1.5 + k,
         "updates_rate": 812.0}
        for k in range(3)
    ]  # fmt: skip
    shown = fed(started(), *epochs(2), {"event": "cluster", "nodes": rows})
    assert "worker-2" in shown
    assert "3.5" in shown
    assert "updates/s" in shown


def test_a_run_by_messages_tells_its_staleness_in_the_end() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=40)
    view = Live(console)
    X = np.random.default_rng(0).standard_normal((200, 4))
    problem = Linear((X, np.sign(X[:, 0])))
    run = minimise(problem, "sgd", Cosine(0.1), ParameterServer(2), Simulator(), budget=2, callbacks=[view])
    view.close()
    shown = console.file.getvalue()
    assert "staleness of" in shown
    assert f"{run.staleness['workers']['worker-1']['mean']:.1f}" in shown
    assert "Done, by epochs" in shown
    assert "\x1b[?25h" in shown  # the cursor is back


def test_counted_conflicts_tell_the_staleness_of_workers_in_one_memory() -> None:
    figures = {"mean": 1.3, "median": 0, "p95": 10, "most": 10, "count": 10}
    conflicts = {"event": "conflicts", "staleness": {**figures, "workers": {"worker-0": figures}}}
    shown = fed(started(), *epochs(2), conflicts)
    assert "staleness of" in shown
    assert "worker-0" in shown


def test_rates_of_worker_processes_are_shown() -> None:
    event = {"event": "progress", "updates": 20_000, "seconds": 10.0, "fraction": 0.8, "workers": [1200.0, 873.2]}
    assert "1.2k + 873 samples/s" in fed(started(problem="module"), event)


def test_the_time_left_is_told_and_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    rates = Rates()
    assert rates.left is None
    rates.progress({"updates": 0, "fraction": 0.5})
    now[0] = 110.0
    rates.progress({"updates": 50, "fraction": 0.6})
    assert rates.words == "5 rows/s"
    assert rates.left == pytest.approx(40)
    now[0] = 115.0
    assert rates.left == pytest.approx(35)
    now[0] = 500.0
    assert rates.left == 0.0


def test_it_is_silent_without_a_terminal() -> None:
    console = Console(file=io.StringIO())
    view = Live(console)
    for event in (started(), *epochs(2), {"event": "something new"}):
        view(event)
    view.close()
    assert console.file.getvalue() == ""


def on_a_terminal(command: list[str], rows: int = 40, columns: int = 100) -> tuple[int, str, str]:
    """How a command ends, what it writes to stdout, and what it draws on a terminal that is its stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    settings = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    settings = {name: value for name, value in settings.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    drawn = bytearray()

    def read() -> None:
        while True:
            try:
                some = os.read(ours, 65_536)
            except OSError:  # the last who could write to it is gone
                return
            if not some:
                return
            drawn.extend(some)

    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=settings)
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    out, _ = done.communicate(timeout=200)
    reader.join()
    os.close(ours)
    return done.returncode, out.decode(), drawn.decode("utf-8", "replace")


def test_train_watch_draws_on_a_terminal(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{label} " + " ".join(f"{c + 1}:{v:.3f}" for c, v in enumerate(row))
             for row in rng.standard_normal((300, 6)) for label in [1 if row[0] > 0 else -1]]  # fmt: skip
    path = tmp_path / "small.svm"
    path.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "hogwild", "train", str(path), "--epochs", "6", "--holdout", "0.2", "--watch"]
    code, out, drawn = on_a_terminal(command)
    assert code == 0, drawn
    assert "objective" in out
    assert BRAILLE & set(drawn)
    assert "held out 0." in drawn
    assert "Done, by epochs" in drawn
    assert "100%" in drawn
    assert "rows/s" in drawn
    assert "\x1b[?25h" in drawn  # the cursor is back


def test_train_watch_says_nothing_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hogwild.cli import main

    path = tmp_path / "small.svm"
    path.write_text("1 1:1\n-1 2:1\n" * 20)
    assert main(["train", str(path), "--step", "0.1", "--epochs", "2", "--base", "1", "--watch", "--json"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("{")
    assert err.strip() == ""
