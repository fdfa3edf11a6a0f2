"""Runs by messages that are broken off and go on from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from talkers import TALKERS, optimum, train
from torch import nn, optim
from torch.utils.data import TensorDataset

from hogwild import Checkpoints, Crashes, Gossip, Link, Local, Module, ParameterServer, Simulator, Synchronous, minimise
from hogwild.errors import CheckpointError, ParameterError
from hogwild.events import Event
from hogwild.messaging.state_codec import decode_state, encode_state, joined, split

RUNTIMES = {"simulator": Simulator("exponential:0.01"), "local": Local()}
IN_STEP = {name: one for name, one in TALKERS.items() if getattr(one, "staleness", 0) == 0 and one.bounded}
IN_STEP["gossip, any graph"] = Gossip(networkx.cycle_graph(3), workers=3, period=4)


def stop_after(count: int) -> Callable[[Event], None]:
    """A callback that breaks a run off when so many checkpoints were written."""
    seen: list[Event] = []

    def hear(event: Event) -> None:
        if event["event"] == "checkpoint":
            seen.append(event)
            if len(seen) == count:
                raise InterruptedError

    return hear


def broken_off(run: Callable[..., Any], folder: Path, count: int = 2) -> Any:
    with pytest.raises(InterruptedError):
        run(checkpoint=folder, callbacks=[stop_after(count)])
    return run(checkpoint=folder, resume=True)


def parameters(run: Any) -> np.ndarray:
    return np.concatenate([run.model.weights.ravel(), run.model.intercept])


PAIRS = [*((name, "simulator") for name in IN_STEP), ("diloco", "local"), ("synchronous, large batches", "local")]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_those_in_step_end_as_if_nothing_had_happened(name: str, kind: str, tmp_path: Path) -> None:
    strategy, runtime = IN_STEP[name], RUNTIMES[kind]
    count = 1 if name == "averaging" else 2  # which is asked only now and then
    whole = train(strategy, runtime, budget=4)
    resumed = broken_off(lambda **options: train(strategy, runtime, budget=4, **options), tmp_path, count)
    np.testing.assert_allclose(parameters(resumed), parameters(whole), rtol=0, atol=1e-6)
    assert resumed.result["updates"] == whole.result["updates"]
    assert next(event for event in resumed.events if event["event"] == "resumed")["epoch"] >= count
    assert resumed.history[0]["epoch"] == whole.history[0]["epoch"]


@pytest.mark.parametrize("name", ["parameter server, two shards, seldom", "elastic averaging", "gossip, asynchronous"])
def test_others_come_to_the_optimum_and_alone_to_the_same_bits(name: str, tmp_path: Path) -> None:
    resumed = broken_off(lambda **options: train(TALKERS[name], Simulator(), budget=6, **options), tmp_path / "many")
    assert resumed.objective <= 1.01 * optimum("logistic")
    one = partial(train, replace(TALKERS[name], workers=1), Simulator(), budget=3)
    np.testing.assert_array_equal(parameters(broken_off(one, tmp_path / "one")), parameters(one()))


def test_a_checkpoint_changes_nothing_in_the_run_it_is_of(tmp_path: Path) -> None:
    runs = [train(TALKERS["parameter server"], Simulator(), budget=4, **options)
            for options in ({}, {"checkpoint": tmp_path})]  # fmt: skip
    assert parameters(runs[0]).tobytes() == parameters(runs[1]).tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_amid_crashes_and_losses_it_goes_on(seed: int, tmp_path: Path) -> None:
    runtime = Simulator(
        link=Link(latency="exponential:0.002", loss=0.05, duplication=0.05, reordering=0.2),
        faults=(Crashes(every=0.6, back_after=0.05, servers=True),), detection_delay=0.02,
    )  # fmt: skip
    strategy = ParameterServer(4, staleness=2, push_every=4)
    run = partial(train, strategy, runtime, budget=10, seed=seed)
    resumed = broken_off(run, tmp_path, count=3)
    assert resumed.stop_reason == "epochs"
    assert resumed.objective <= 1.05 * optimum("logistic")
    assert [event for event in resumed.events if event["event"] == "lost"]


def test_models_go_on_with_what_optimisers_remember_and_with_their_random_numbers(tmp_path: Path) -> None:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(x, x.sum(1, keepdim=True))

    def run(**options: Any) -> list[torch.Tensor]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
        rule = partial(optim.Adam, lr=0.02)
        given = Module(net, nn.functional.mse_loss, data, batch=8, buffers="own")
        minimise(given, rule, "cosine", Synchronous(2), "simulator", 5, **options)
        return [tensor for tensor in net.state_dict().values() if tensor.is_floating_point()]

    whole, resumed = run(), broken_off(run, tmp_path)
    for found, expected in zip(resumed, whole, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_what_cannot_be_gone_on_from_is_refused(tmp_path: Path) -> None:
    run = partial(train, TALKERS["local steps"], Simulator(), budget=4)
    with pytest.raises(ParameterError, match="written after each epoch"):
        run(checkpoint=Checkpoints(tmp_path, seconds=1))
    with pytest.raises(ParameterError, match="say where the checkpoints are"):
        run(resume=True)
    assert run(checkpoint=tmp_path, resume=True).events[1]["epoch"] == 0
    with pytest.raises(CheckpointError, match="another run: seed was 0, now 1"):
        run(checkpoint=tmp_path, resume=True, seed=1)
    with pytest.raises(CheckpointError, match="strategy was 'LocalSGD"):
        train(TALKERS["parameter server"], Simulator(), budget=4, checkpoint=tmp_path, resume=True)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CheckpointError, match="Remove the folder"):
        run(checkpoint=tmp_path, resume=True)


def test_a_run_that_had_ended_ends_again(tmp_path: Path) -> None:
    first = train(TALKERS["diloco"], Simulator(), budget=3, checkpoint=tmp_path)
    again = train(TALKERS["diloco"], Local(), budget=3, checkpoint=tmp_path, resume=True)
    np.testing.assert_allclose(parameters(again), parameters(first), rtol=0, atol=1e-6)
    with pytest.raises(CheckpointError, match="epochs was 3, now 4"):
        train(TALKERS["diloco"], Simulator(), budget=4, checkpoint=tmp_path, resume=True)


def test_only_what_is_ours_is_read_back() -> None:
    arrays: dict[str, Any] = {}
    shared = np.ones(3)
    shared.flags.writeable = False
    tree = split(encode_state({1: (shared, shared), "own": np.zeros(1), "many": {3, 1}}), arrays)
    assert len(arrays) == 2
    known = decode_state(joined(tree, arrays), None)
    assert known[1][0] is known[1][1]
    assert (known["own"].flags.writeable, known["many"]) == (True, {1, 3})
    for name in ("os:system", "builtins:eval", "hogwild.messaging.state_codec:sys", "hogwild.nothing:here"):
        with pytest.raises(CheckpointError, match="does not know"):
            decode_state({"object": name, "has": {}}, None)
    with pytest.raises(CheckpointError, match="cannot be written"):
        encode_state(Path())
