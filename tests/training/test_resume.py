"""A run that was stopped at any checkpoint goes on as if it had never stopped: with one worker, to the same bits."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import Dying, Killed, arrays, in_legs, problem, same_bits, slowed, survive, told

from hogwild import Budget, Checkpoints, Constant, Cosine, Linear, Run, Serial, Warmup, Weighted, minimise
from hogwild.errors import CheckpointError, CheckpointWarning
from hogwild.rules import Sequential
from hogwild.training.checkpoints import PREVIOUS

ADAGRAD: dict[str, Any] = {"schedule": Cosine(0.1), "strategy": Serial(), "budget": 4}


@pytest.mark.parametrize("rule", ["sgd", "momentum", "adagrad", "ftrl", "adam"])
def test_from_every_end_of_an_epoch(rule: str, tmp_path: Path) -> None:
    # For SGD it is a factor of its own. The other rules' loops are compiled without it for the tests below.
    l2 = 1e-3 if rule in ("sgd", "adagrad") else 0.0
    asked = {"problem": problem(l2=l2), "rule": rule, **ADAGRAD, "schedule": Cosine(0.02)}
    survivor, deaths = survive(tmp_path, checkpoint=tmp_path, **asked)
    assert deaths == 4
    assert same_bits(survivor, minimise(**asked))


CASES: dict[str, dict[str, Any]] = {
    "sgd": {"rule": "sgd", "schedule": Constant(0.01)},
    "momentum": {"rule": "momentum", "schedule": Constant(0.001)},
    "adagrad": {"rule": "adagrad"},
    "ftrl": {"rule": "ftrl"},
    "adam": {"rule": "adam", "schedule": Constant(0.01)},
    "alone and averaged by chunks": {
        "rule": Sequential(), "schedule": Constant(0.02), "problem": problem(l2=1e-3), "average": 0.4,
    },
    "alone and watched": {
        "rule": Sequential(track_objective=True), "schedule": Constant(0.02), "problem": problem(l2=1e-3),
        "budget": Budget(epochs=9, tolerance=1e-2, stall_epochs=2, monitor="training_objective"),
    },
    "alone": {"rule": Sequential(), "schedule": Constant(0.02), "problem": problem(l1=1e-3, l2=1e-3)},
    "alone and averaged": {
        "rule": Sequential(average_from=5_000, precision="float64"),
        "schedule": Constant(0.02), "problem": problem(l1=1e-3, l2=1e-3),
    },
    "unmeasured": {"evaluate_every_epoch": False},
    "averaged from the start": {"rule": "sgd", "schedule": Constant(0.02), "average": 1.0},
    "averaged from mid-epoch on": {"rule": "sgd", "schedule": Constant(0.02), "average": 0.4},
    "warmup": {"schedule": Warmup(Constant(0.1), epochs=1.5)},
    "step chosen": {"schedule": "cosine"},
    "held out": {"test": arrays(seed=1)},
    "patience": {"budget": Budget(epochs=6, patience=1), "test": arrays(seed=1), "schedule": Constant(0.5)},
    "target": {"budget": Budget(epochs=9, target=0.23), "schedule": Constant(0.1)},
    "halved": {"rule": "sgd", "schedule": Constant(0.1), "problem": problem("squared")},
    "halved and averaged": {
        "rule": "sgd", "schedule": Constant(0.1), "problem": problem("squared"), "average": 0.6,
        "test": arrays("squared"),
    },
    "several classes": {"problem": Linear((arrays()[0], np.arange(4_000) % 3), "softmax"), "budget": 2},
    "class weights": {"problem": problem(class_weight={1: 3.0}), "budget": 2},
    "drawn": {"problem": problem(sampling="replacement")},
    "drawn by weight": {"problem": problem(sampling=Weighted(np.linspace(1, 3, 4_000)))},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_from_everywhere_within_epochs(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"problem": problem(), **ADAGRAD, **CASES[case]}
    undisturbed = minimise(**asked)
    in_legs(monkeypatch, 5)
    checkpoints = Checkpoints(tmp_path, seconds=1e-9)
    survivor, deaths = survive(tmp_path, checkpoint=checkpoints, **asked)
    assert deaths >= 3 * len(undisturbed.history)
    assert same_bits(survivor, undisturbed)
    assert survivor.stop_reason == undisturbed.stop_reason
    same = undisturbed.result["loss"]  # but for one that was met on the way, which is added up leg by leg
    assert survivor.result["loss"] == (pytest.approx(same, rel=1e-14) if case == "unmeasured" else same)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest.safetensors", "previous.safetensors"]


def test_checkpoints_by_the_clock(tmp_path: Path) -> None:
    """The real thing: nobody knows where in an epoch it will be."""
    asked = {**ADAGRAD, "budget": 2}
    undisturbed = minimise(problem(), **asked)
    slow = slowed(problem(), 0.02)
    with pytest.raises(Killed):
        minimise(slow, checkpoint=Checkpoints(tmp_path, seconds=0.06), callbacks=[Dying()], **asked)
    resumed = minimise(problem(), checkpoint=Checkpoints(tmp_path, seconds=0.06), resume=True, **asked)
    assert told(resumed, "resumed")[0]["chunk"] > 0
    assert same_bits(undisturbed, resumed)


@pytest.mark.parametrize("strategy", ["hogwild", "locked", "round-robin", "averaging"])
def test_other_strategies_resume_as_well(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"problem": problem(), **ADAGRAD, "strategy": strategy}
    undisturbed = minimise(**asked)
    in_legs(monkeypatch, 5)
    survivor, deaths = survive(tmp_path, checkpoint=Checkpoints(tmp_path, seconds=1e-9), **asked)
    assert deaths >= 12
    assert survivor.history[-1]["updates"] == undisturbed.history[-1]["updates"]
    assert survivor.loss < 0.3


def test_with_nothing_there_it_begins_and_says_so(tmp_path: Path) -> None:
    asked = {"problem": problem(), **ADAGRAD}
    run = minimise(checkpoint=tmp_path / "new", resume=True, **asked)
    (resumed,) = told(run, "resumed")
    assert "no checkpoint yet" in resumed["message"]
    assert same_bits(run, minimise(**asked))


@pytest.mark.parametrize(
    ("budget", "stopped"),
    [
        (Budget(epochs=3), "epochs"),
        (Budget(epochs=9, target=0.235), "target"),
        (Budget(epochs=50, patience=1), "patience"),
        (Budget(seconds=0.1), "seconds"),
    ],
)
def test_a_finished_run_returns_at_once(budget: Budget, stopped: str, tmp_path: Path) -> None:
    asked = {**ADAGRAD, "budget": budget, "test": arrays(seed=1), "schedule": Constant(0.5), "checkpoint": tmp_path}
    first = minimise(slowed(problem(), 0.001), **asked)
    written = (tmp_path / "latest.safetensors").read_bytes()
    again = minimise(problem(), resume=True, **asked)
    assert first.stop_reason == again.stop_reason == stopped
    assert same_bits(first, again)
    assert first.result | {"at": 0} == again.result | {"at": 0}
    assert again.seconds == pytest.approx(first.seconds)
    assert (tmp_path / "latest.safetensors").read_bytes() == written


def test_more_epochs(tmp_path: Path) -> None:
    how = {**ADAGRAD, "schedule": Constant(0.1)}
    minimise(problem(), checkpoint=tmp_path, **{**how, "budget": 2})
    longer = minimise(problem(), checkpoint=tmp_path, resume=True, **{**how, "budget": 5})
    assert same_bits(longer, minimise(problem(), **{**how, "budget": 5}))
    assert longer.stop_reason == "epochs"


def test_a_lower_target(tmp_path: Path) -> None:
    how = {**ADAGRAD, "schedule": Constant(0.1)}
    first = minimise(problem(), checkpoint=tmp_path, **{**how, "budget": Budget(epochs=8, target=0.24)})
    second = minimise(problem(), checkpoint=tmp_path, resume=True, **{**how, "budget": Budget(epochs=8, target=0.23)})
    assert first.loss > 0.23 >= second.loss
    assert second.stop_reason == "target"


def test_without_resume_it_begins_anew(tmp_path: Path) -> None:
    asked = {"problem": problem(), **ADAGRAD}
    with pytest.raises(Killed):
        minimise(checkpoint=tmp_path, callbacks=[Dying(times=2)], **asked)
    run = minimise(checkpoint=tmp_path, **asked)
    assert not told(run, "resumed")
    assert same_bits(run, minimise(**asked))


def killed(folder: Path, **changed: Any) -> None:
    with pytest.raises(Killed):
        minimise(**{"problem": problem(), **ADAGRAD, **changed}, checkpoint=folder, callbacks=[Dying(times=2)])


def resumed(folder: Path, **changed: Any) -> Run:
    return minimise(**{"problem": problem(), **ADAGRAD, **changed}, checkpoint=folder, resume=True)


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 16
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["damaged", "truncated", "empty", "gone"])
def test_the_one_before_is_used_if_the_latest_is_not_whole(how: str, tmp_path: Path) -> None:
    killed(tmp_path)
    latest = tmp_path / "latest.safetensors"
    if how == "damaged":
        damage(latest)
    elif how == "gone":
        latest.unlink()
    else:
        latest.write_bytes(latest.read_bytes()[: 900 if how == "truncated" else 0])
    with nullcontext() if how == "gone" else pytest.warns(CheckpointWarning, match=r"latest.*before it, .*previous"):
        run = resumed(tmp_path)
    assert told(run, "resumed")[0]["epoch"] == 1
    assert same_bits(run, minimise(problem(), **ADAGRAD))


def test_no_whole_checkpoint(tmp_path: Path) -> None:
    killed(tmp_path)
    damage(tmp_path / "latest.safetensors")
    damage(tmp_path / "previous.safetensors")
    with pytest.raises(CheckpointError, match=r"latest.* damaged.*previous.* Remove the folder"):
        resumed(tmp_path)


def test_a_model_is_no_checkpoint(tmp_path: Path) -> None:
    minimise(problem(), **ADAGRAD).save(tmp_path / "latest.safetensors")
    with pytest.raises(CheckpointError, match="no checkpoint that this version can read"):
        resumed(tmp_path)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"rule": "sgd"}, r"rule was 'AdaGrad\(.*, now 'SGD\(\)'"),
        ({"schedule": Constant(0.1)}, r"schedule was 'Cosine\(.*, now 'Constant\("),
        ({"seed": 3}, "seed was 0, now 3"),
        ({"average": 0.5}, r"average was 0\.0, now 0\.5"),
        ({"problem": problem(l2=0.5)}, r"l2 was \S+, now 0\.5"),
        ({"problem": problem("hinge")}, "loss was 'logistic', now 'hinge'"),
        ({"problem": Linear(arrays(seed=8))}, "data was '.*', now '"),
        ({"problem": problem(intercept=False)}, "intercept was True, now False"),
        ({"problem": problem(class_weight={1: 2.0})}, "class_weight was"),
        ({"test": arrays(seed=1)}, "held_out was None, now '"),
    ],
)
def test_another_runs_checkpoint(changed: dict[str, Any], named: str, tmp_path: Path) -> None:
    killed(tmp_path)
    with pytest.raises(CheckpointError, match=f"belongs to another run: {named}.*same data and options"):
        resumed(tmp_path, **changed)


def test_a_checkpoint_that_lacks_something(tmp_path: Path) -> None:
    killed(tmp_path)
    checkpoints = Checkpoints(tmp_path)
    found = checkpoints.load()
    assert found is not None
    arrays_, record = found
    for name in ("config", "now", "best", "history", "halvings", "start"):
        checkpoints.save(arrays_, {key: value for key, value in record.items() if key != name})
        (tmp_path / PREVIOUS).unlink()
        with pytest.raises(CheckpointError, match=f"damaged: its entry '{name}' is missing"):
            resumed(tmp_path)
    for name in ("now.state0", "now.state1"):
        checkpoints.save({key: value for key, value in arrays_.items() if key != name}, record)
        with pytest.raises(CheckpointError, match="incomplete or inconsistent"):
            resumed(tmp_path)
    checkpoints.save({**arrays_, "now.state0": arrays_["now.state0"][:1]}, record)
    with pytest.raises(CheckpointError, match="parameters of shape"):
        resumed(tmp_path)
