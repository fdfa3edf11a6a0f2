"""Clipping of gradients, on every strategy."""

from __future__ import annotations

from functools import partial
from typing import Any

import nets
import pytest
import torch
from torch import nn, optim

from hogwild import (
    Averaging,
    ClipNorm,
    ClipValue,
    Hogwild,
    Local,
    LocalSGD,
    Locked,
    Module,
    ParameterServer,
    Processes,
    RoundRobin,
    Run,
    Serial,
    Simulator,
    SparseMLP,
    Synchronous,
    minimise,
)
from hogwild.errors import ParameterError

LOSS = nn.functional.mse_loss
STEP, LARGEST = 0.1, 0.01


def trained(clip: Any, strategy: Any, runtime: Any = None) -> tuple[nn.Module, Run]:
    problem = Module(nets.line(), LOSS, nets.numbers(), batch=8, clip=clip)
    runtime = runtime or Processes(threads=1)
    run = minimise(problem, partial(optim.SGD, lr=STEP), strategy=strategy, runtime=runtime, budget=1)
    return problem.net, run


@pytest.mark.parametrize(
    ("clip", "by_hand"),
    [
        (0.5, lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.5)),
        (ClipNorm(0.5, float("inf")), lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.5, float("inf"))),
        (ClipValue(0.3), lambda parameters: nn.utils.clip_grad_value_(parameters, 0.3)),
    ],
    ids=["number", "norm", "value"],
)
@pytest.mark.parametrize("where", ["processes", "messages"])
def test_steps_are_those_of_a_loop_by_hand(clip: Any, by_hand: Any, where: str) -> None:
    alone: Any = (Serial(), None) if where == "processes" else (ParameterServer(1), Simulator())
    (found, _), expected = trained(clip, *alone), nets.line()
    optimiser = optim.SGD(expected.parameters(), lr=STEP)
    problem = Module(expected, LOSS, nets.numbers(), batch=8)
    for batch in problem.training.batches(problem.batches(problem.share(0, 1, 0, 0))):
        optimiser.zero_grad()
        problem.loss(batch)[0].backward()
        by_hand(expected.parameters())
        optimiser.step()
    torch.testing.assert_close(found.state_dict(), expected.state_dict())


@pytest.mark.parametrize(
    ("strategy", "runtime"),
    [
        (Hogwild(2), None), (Locked(2), None), (RoundRobin(2), None), (Averaging(2), None), (Synchronous(2), None),
        (LocalSGD(2), Simulator()), (ParameterServer(2), Local()), (Synchronous(2), Local()),
    ],
    ids=repr,
)  # fmt: skip
def test_no_strategy_takes_a_longer_step(strategy: Any, runtime: Any) -> None:
    net, run = trained(LARGEST, strategy, runtime)
    moved = torch.cat([tensor.detach().flatten() for tensor in net.parameters()]).norm()
    # From zero, in batches of 8. Asynchronous workers may train some batches more than the 8 of the epoch.
    steps = run.result["updates"] / 8
    assert 0 < moved <= steps * STEP * LARGEST * 1.001
    assert 8 <= steps <= 12


def test_rows_of_sparse_gradients_are_added_before_they_are_clipped() -> None:
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1, 1, 3])).sum().backward()  # type: ignore[no-untyped-call]
    ClipValue(1.5)(optim.SGD(table.parameters()))
    assert table.weight.grad is not None
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [1.5, 1.5], [0, 0], [1, 1]]
    ClipNorm(1.0)(optim.SGD(table.parameters()))
    torch.testing.assert_close(table.weight.grad.to_dense().norm(), torch.tensor(1.0))


@pytest.mark.parametrize("clip", [0, -1.0, "1", True, ["norm"], float("nan")])
def test_limits_that_are_none(clip: Any) -> None:
    with pytest.raises(ParameterError, match="'clip' parameter must be"):
        Module(nets.line(), LOSS, nets.numbers(), clip=clip)


def test_a_table_that_is_updated_in_the_backward_pass_is_not_clipped() -> None:
    with pytest.raises(ParameterError, match="SparseTable is updated in the backward pass"):
        Module(SparseMLP(3, [4], 2), nn.functional.cross_entropy, nets.numbers(), clip=1.0)


def test_records_have_the_limit() -> None:
    problem = Module(nets.line(), LOSS, nets.numbers(), batch=8, clip=1.0)
    assert problem.describe()["clip"] == "ClipNorm(max_norm=1.0, norm_type=2.0)"
    assert "clip" not in Module(nets.line(), LOSS, nets.numbers(), batch=8).describe()
