"""A model that is trained by messages."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, TensorDataset

from hogwild import (
    EMA,
    Budget,
    ElasticAveraging,
    Hogwild,
    LocalSGD,
    Module,
    Processes,
    Run,
    Serial,
    Synchronous,
    minimise,
)
from hogwild.errors import DataError, DivergedError, ParameterError
from hogwild.messaging.protocol import Train
from hogwild.runtimes import RUNTIMES, Simulator
from hogwild.runtimes.messaging.injected_faults import Crash
from hogwild.strategies import ParameterServer
from hogwild.training.batch_message_driver import sums_updates
from hogwild.training.batch_trainer import BatchSource, BatchTrainer
from hogwild.training.torch_optimisers import optimiser_of, step_size_of

LOSS = nn.functional.mse_loss
SGD = partial(optim.SGD, lr=0.05)
TALKING = [name for name, kind in RUNTIMES.items() if kind.passes_messages and name != "ray"]  # see tests/cluster


def numbers(count: int = 100, seed: int = 0) -> TensorDataset:
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, x @ torch.tensor([[1.0], [-2.0], [0.5]]))


def soft_net() -> nn.Sequential:
    """A model with random numbers and buffers of its own."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))


def train(strategy: Any, runtime: Any = None, net: nn.Module | None = None, **options: Any) -> Run:
    problem = Module(net or soft_net(), LOSS, options.pop("dataset", numbers()), batch=8)
    given = {"rule": SGD, "budget": 3, **options}
    return minimise(problem, strategy=strategy, runtime=runtime or Simulator(), **given)


def floats(run: Run) -> list[Tensor]:
    return [tensor for tensor in run.state[0].values() if tensor.is_floating_point()]


@pytest.mark.parametrize(
    ("rule", "push_every"), [(partial(optim.SGD, lr=0.05, momentum=0.5), 1), (partial(optim.Adam, lr=0.02), 5)]
)
def test_one_worker_does_what_one_process_does(rule: Any, push_every: int) -> None:
    process = train("serial", Processes(threads=1), rule=rule, schedule="cosine")
    alone = train(ParameterServer(workers=1, push_every=push_every), rule=rule, schedule="cosine")
    for found, expected in zip(floats(alone), floats(process), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert alone.result["updates"] == process.result["updates"] == 300


@pytest.mark.parametrize("runtime", TALKING)
def test_several_workers_learn_what_there_is_to_learn(runtime: str) -> None:
    net, test = nn.Linear(3, 1), numbers(40, seed=1)
    run = train(ParameterServer(workers=3), RUNTIMES[runtime](), net, test=test, schedule="cosine", budget=15)
    assert run.model.net is net
    assert run.objective < 1e-3
    assert run.result["test_loss"] < 1e-3
    np.testing.assert_allclose(net.weight.detach().numpy(), [[1.0, -2.0, 0.5]], atol=0.02)


@pytest.mark.parametrize(
    "strategy", [LocalSGD(3, period=2), Synchronous(3, accumulate=2), ElasticAveraging(3, period=2)]
)
def test_other_strategies_learn_it_too(strategy: Any) -> None:
    assert train(strategy, net=nn.Linear(3, 1), rule=partial(optim.SGD, lr=0.2), budget=20).objective < 1e-3


def test_one_seed_gives_one_run_and_leaves_random_numbers_alone() -> None:
    link = Simulator(compute_time="exponential:0.01", faults=(Crash("worker-1", 0.05, 0.02),), detection_delay=0.005)
    torch.manual_seed(3)
    one = train(ParameterServer(workers=3), link)
    drawn = torch.rand(2)
    other = train(ParameterServer(workers=3), link)
    assert [event for event in one.events if event["event"] in ("lost", "joined")]
    assert one.events == other.events
    assert all(map(torch.equal, floats(one), floats(other)))
    torch.manual_seed(3)
    assert torch.equal(drawn, (soft_net(), torch.rand(2))[1])


def test_statistics_of_batches_are_exchanged_and_stay_in_bounds() -> None:
    """Each of 24 workers moves a running mean a tenth of the way: added in full, they would go beyond it and back."""
    data = TensorDataset(torch.randn(600, 3) + 5.0, torch.zeros(600, 1))
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))
    rule = partial(optim.SGD, lr=1e-3)
    train(ParameterServer(workers=24), Simulator(compute_time=0.01), net, dataset=data, rule=rule, budget=10)
    mean, variance = net[0].running_mean.numpy(), net[0].running_var.numpy()
    np.testing.assert_allclose(mean, [5.0] * 3, atol=0.5)
    assert ((variance > 0.5) & (variance < 1.5)).all()


def test_in_step_it_does_what_one_large_batch_does() -> None:
    """Two workers with batches of 8 and the mean of their changes: plain SGD with batches of 16."""
    data, net = numbers(96), nn.Linear(3, 1)
    weights = [tensor.detach().clone() for tensor in net.parameters()]
    train(ParameterServer(workers=2, staleness=0), net=net, dataset=data, budget=2)
    w, b = (tensor.clone().requires_grad_() for tensor in weights)
    for epoch in range(2):
        order = np.random.default_rng([0, epoch]).permutation(96)
        for first in range(0, 96, 16):
            x, y = data[order[first : first + 16]]
            gradients = torch.autograd.grad(LOSS(x @ w.T + b, y), (w, b))
            w, b = ((one - 0.05 * g).detach().requires_grad_() for one, g in zip((w, b), gradients, strict=True))
    torch.testing.assert_close(net.weight, w, rtol=0, atol=1e-6)
    torch.testing.assert_close(net.bias, b, rtol=0, atol=1e-6)


def make_trainer(net: nn.Module, workers: int, **options: Any) -> tuple[BatchTrainer, BatchSource]:
    problem = Module(net, LOSS, numbers(50), batch=8, **options)
    optimiser = optimiser_of(SGD, problem)
    batches = BatchSource(problem, optimiser, step_size_of(None, optimiser, 50, Budget(2), 8), 0, workers, None)
    return BatchTrainer(batches, problem.feed()), batches


def test_terms_together_are_one_step_along_their_mean_gradient() -> None:
    net = nn.Linear(3, 1)
    learns, batches = make_trainer(net, 1)
    trained = learns.burst(Train(learns.flat.values(), (0, 1), 4, 3, 4, 1, together=True))
    samples = np.concatenate(batches.drawn(0, 0)[4:])  # the last of which is a batch of 2
    assert (trained.samples, len(samples)) == (18, 18)
    LOSS(net(numbers(50)[samples][0]), numbers(50)[samples][1]).backward()
    expected = [(one - 0.05 * one.grad).detach().numpy().ravel() for one in (net.weight, net.bias)]
    np.testing.assert_allclose(trained.values, np.concatenate(expected), atol=1e-6)


def test_shards_of_an_epoch_are_all_samples_and_a_burst_goes_on_into_the_next() -> None:
    learns, batches = make_trainer(nn.Linear(3, 1), 3)
    assert (batches.epoch, batches.sizes) == (7, (3, 2, 2))
    drawn = np.concatenate([batch for shard in range(3) for batch in batches.drawn(shard, 0)])
    assert sorted(drawn) == list(range(50))
    terms = list(learns._terms(Train(learns.flat.values(), (1, 3), 1, 3, 0, 1)))
    assert [(epoch, place) for epoch, place, _ in terms] == [(0, 1), (1, 0), (1, 1)]
    np.testing.assert_array_equal(terms[1][2], batches.drawn(1, 1)[0])


def test_own_buffers_are_not_replaced_by_those_of_others() -> None:
    learns, _ = make_trainer(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)), 1, buffers="own")
    start = learns.flat.values()
    learns.burst(Train(start, (0, 1), 0, 2, 0, 1))
    kept = learns.problem.net[0].running_mean.clone()  # type: ignore[union-attr,operator]
    learns.flat.put(start, buffers=False)
    assert torch.equal(learns.problem.net[0].running_mean, kept)  # type: ignore[union-attr,arg-type]
    assert kept.abs().sum() > 0


def test_a_loader_with_processes_is_read_without_them() -> None:
    loader = DataLoader(numbers(), batch_size=8, num_workers=1)
    net = nn.Linear(3, 1)
    assert minimise(Module(net, LOSS, loader), SGD, strategy=ParameterServer(2), runtime="simulator", budget=2).loss < 9


def test_what_cannot_work_is_refused_before_anything_starts() -> None:
    with pytest.raises(ParameterError, match="in one memory"):
        train(Hogwild(workers=2))
    with pytest.raises(ParameterError, match="leave out 'within'"):
        train(ParameterServer(workers=2, within=Hogwild(workers=2)))
    with pytest.raises(ParameterError, match="exponential moving average"):
        train(ParameterServer(workers=2), average=EMA(0.9))
    with pytest.raises(DataError, match="worker 13 of 20 has no batch"):
        train(ParameterServer(workers=20))
    with pytest.raises(ParameterError, match="give test data"):
        train(ParameterServer(workers=2), budget=Budget(5, patience=2))
    with pytest.raises(DivergedError, match="smaller step"):
        train(ParameterServer(workers=4), net=nn.Linear(3, 1), rule=partial(optim.SGD, lr=1e6), budget=9)
    assert train(ParameterServer(workers=2, within=Serial()), budget=1).stop_reason == "epochs"


def test_who_adds_in_full() -> None:
    assert not sums_updates(ParameterServer(combine="mean"))
    assert sums_updates(ParameterServer(staleness=3, combine="sum"))
