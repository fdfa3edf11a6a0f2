"""``hogwild train --runtime ray``: interrupted once and twice, and resumed when its coordinator has died."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from programs import programs_in

from hogwild import load

pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster")

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")


@pytest.fixture
def program(tmp_path):
    with programs_in(tmp_path) as start:
        yield start


def test_ctrl_c_keeps_the_model_and_leaves_no_process(program, tmp_path):
    running = program("--epochs", "100000")
    running.wait_for("epoch", 3)
    assert len(running.started()) > 4  # four participants, and a cluster
    running.press_ctrl_c()
    code, said = running.end()
    assert code == 130, said
    assert np.isfinite(load(tmp_path / "model").weights).all()


def test_a_second_ctrl_c_ends_it_at_once(program, tmp_path):
    running = program("--epochs", "100", "--delay", "300")
    running.wait_for("ready")
    running.press_ctrl_c()
    time.sleep(0.5)
    running.press_ctrl_c()
    code, said = running.end()
    assert code == 130
    assert "interrupted" in said
    assert not (tmp_path / "model").exists()


def test_when_the_coordinator_dies_the_same_command_goes_on(program, tmp_path):
    options = (
        "--epochs",
        "60",  # A checkpoint takes a second or two: the first run must not end by itself before it is killed.
        "--resume",
        str(tmp_path / "kept"),
        "--delay",
        "0.005",
    )
    first = program(*options)
    first.wait_for("checkpoint", 3)
    (where,) = (each for each in first.events("placed") if each["node"] == "coordinator")
    os.kill(where["process"], signal.SIGKILL)
    code, said = first.end()
    assert code == 1, said
    assert "coordinator crashed" in said
    second = program(*options)
    code, said = second.end(120)
    assert code == 0, said
    assert second.events("resumed")[-1]["epoch"] >= 2
    assert [event["epoch"] for event in second.events("epoch")][-1] == 60
    assert np.isfinite(load(tmp_path / "model").weights).all()
