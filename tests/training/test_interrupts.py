"""Ctrl-C ends a run after the current block and leaves a usable model."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import ROWS, arrays, problem, same_bits, slowed, told

from hogwild import Budget, Constant, Cosine, Hogwild, Linear, minimise
from hogwild.rules import named
from hogwild.runtimes.shared_memory import thread_team, threads
from hogwild.runtimes.shared_memory.threads import Session
from hogwild.signals import deferred_interrupts
from hogwild.training.loop import TrainingLoop

HOW: dict[str, Any] = {"schedule": Cosine(0.1), "strategy": "serial", "budget": 5}


def press(event: str = "progress", times: int = 1) -> Any:
    """A callback that presses Ctrl-C when it hears of something."""
    left = [times]

    def hear(heard: Any) -> None:
        if heard["event"] == event and left[0]:
            left[0] -= 1
            signal.raise_signal(signal.SIGINT)

    return hear


@pytest.mark.parametrize("strategy", ["serial", "hogwild", "locked", "round-robin", "averaging"])
def test_within_an_epoch(strategy: str) -> None:
    run = minimise(slowed(problem(), 0.02), callbacks=[press()], **{**HOW, "strategy": strategy})
    assert run.stop_reason == "interrupted"
    assert 0 < run.history[-1]["updates"] < ROWS
    X, y = arrays()
    assert (run.model.predict(X) == y).mean() == pytest.approx(run.result["accuracy"])
    assert run.result["accuracy"] > 0.6
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_from_outside_at_any_moment() -> None:
    """Epochs are so short here that most moments are not in one of them."""
    for wait in (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06):

        def kill(wait: float = wait) -> None:
            time.sleep(wait)
            os.kill(os.getpid(), signal.SIGINT)

        def hear(event: Any, kill: Any = kill) -> None:
            if event["event"] == "epoch" and event["epoch"] == 1:
                threading.Thread(target=kill).start()

        run = minimise(problem(), budget=10**6, schedule=Constant(0.1), strategy="serial", callbacks=[hear])
        assert run.stop_reason == "interrupted"
        assert run.result["loss"] < 0.7


@pytest.mark.parametrize("event", ["epoch", "checkpoint"])
def test_between_epochs(event: str, tmp_path: Path) -> None:
    run = minimise(problem(), callbacks=[press(event)], checkpoint=tmp_path, **HOW)
    assert run.stop_reason == "interrupted"
    assert run.history[0]["epoch"] == 1
    assert len(run.history) <= 2


def test_while_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = Session.measure

    def pressed(self: Session, *others: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(Session, "measure", measure)
        return measure(self, *others)

    monkeypatch.setattr(Session, "measure", pressed)
    run = minimise(problem(), **HOW)
    assert (run.stop_reason, len(run.history)) == ("interrupted", 1)
    assert run.result["loss"] < 0.7


def test_the_second_one_interrupts_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        minimise(slowed(problem(), 0.02), callbacks=[press("epoch", 1), press("epoch", 1)], **HOW)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_before_training_there_is_nothing_to_keep() -> None:
    with pytest.raises(KeyboardInterrupt):
        minimise(problem(), callbacks=[press("compiled")], **HOW)


def test_ones_own_handler_is_left_alone() -> None:
    pressed = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        run = minimise(problem(), callbacks=[press("epoch")], **HOW)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (run.stop_reason, pressed) == ("epochs", [signal.SIGINT])


def test_a_handler_that_raises_ends_the_leg() -> None:
    def handler(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        run = minimise(slowed(problem(), 0.02), callbacks=[press()], **HOW)
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.stop_reason == "interrupted"


def test_in_another_thread_nothing_is_touched() -> None:
    found: list[Any] = []

    def work() -> None:
        with deferred_interrupts() as interrupt:
            found.append(signal.getsignal(signal.SIGINT))
            found.append(interrupt.pressed)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler, False]


def test_nothing_is_lost_when_it_is_resumed(tmp_path: Path) -> None:
    """Also in the middle of an epoch, and also what patience has seen."""
    asked = {**HOW, "budget": Budget(epochs=4, patience=3), "test": arrays(seed=1)}
    undisturbed = minimise(problem(), **asked)
    first = minimise(slowed(problem(), 0.02), callbacks=[press()], checkpoint=tmp_path, **asked)
    assert first.stop_reason == "interrupted"
    second = minimise(problem(), checkpoint=tmp_path, resume=True, **asked)
    assert told(second, "resumed")[0]["chunk"] > 0
    assert second.stop_reason == "epochs"
    assert same_bits(undisturbed, second)


def test_an_interrupted_run_that_exploded_keeps_its_last_good_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    good = minimise(problem("squared"), "sgd", Constant(0.01), "serial", budget=1)
    train_segment = TrainingLoop._train_segment

    def explode(self: TrainingLoop, walk: Any) -> Any:
        if self.position.epoch == 1:
            self.session.state[0][:] = np.nan
            self.interrupt.number = signal.SIGINT
        return train_segment(self, walk)

    monkeypatch.setattr(TrainingLoop, "_train_segment", explode)
    run = minimise(problem("squared"), "sgd", Constant(0.01), "serial", budget=5)
    assert run.stop_reason == "interrupted"
    assert np.array_equal(run.model.weights, good.model.weights)
    assert [record["epoch"] for record in run.history] == [1]
    assert told(run, "diverged")[0]["scale"] == 1.0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("reason", [KeyboardInterrupt, OSError])
def test_workers_in_compiled_code_end_with_their_chunk(workers, reason, monkeypatch):
    """Where an epoch is all in memory nobody comes back to Python before its end, unless told to."""
    monkeypatch.setattr(thread_team, "TICK", 1e-3)
    X = np.random.default_rng(0).random((40_000, 200), np.float32)
    problem = Linear((X, X[:, 0] > 0.5), "logistic")
    session = threads.Threads().session(problem, named("adagrad"), Hogwild(workers), workers)
    walk, halt, looks = problem.data.epoch(0, 0), threading.Event(), []

    def tick(updates):
        looks.append(updates)
        raise reason

    try:
        leg = session.advance(walk, 0, 0, lambda first, count: np.full(count, 0.1, np.float32), halt, tick)
    except OSError:
        assert reason is OSError
    else:
        assert leg.interrupted
        assert 0 < leg.next_chunk < len(walk)
        assert leg.updates == walk.whole().starts[leg.next_chunk]
    finally:
        session.close()
    assert len(looks) == 1
