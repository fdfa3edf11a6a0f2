"""Data sets of all kinds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nets
import psutil
import pytest
import torch
from torch import Tensor, nn, optim
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Subset, TensorDataset, WeightedRandomSampler

from hogwild import Averaging, Hogwild, LabelSkew, Module, Processes, Run, minimise
from hogwild.errors import DataError, ParameterError
from hogwild.events import Event

LOSS = nn.functional.mse_loss
SGD = partial(optim.SGD, lr=0.1)


def train(dataset: Any, budget: int = 12, strategy: Any = None, net: nn.Module | None = None, **options: Any) -> Run:
    held_out = options.pop("test", None)
    problem = Module(net or nets.line(), LOSS, dataset, **{"batch": 8, **options})
    alone = Processes(threads=1)  # small models gain nothing from more, and other tests want cores too
    return minimise(problem, SGD, strategy=strategy or Hogwild(2), budget=budget, test=held_out, runtime=alone)


def check_learnt(run: Run, slope: float = 1.0) -> None:
    assert run.history[-1]["updates"] == run.history[-1]["epoch"] * 64
    torch.testing.assert_close(run.model.net.weight.data, torch.full((1, 3), slope), atol=0.05, rtol=0)


def parts() -> Any:
    """A part of a part: every second sample, backwards."""
    return Subset(Subset(nets.numbers(128), range(0, 128, 2)), list(range(63, -1, -1)))


def loader(**options: Any) -> DataLoader[Any]:
    return DataLoader(nets.numbers(), **options)


KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "tensors": lambda: {"dataset": nets.numbers()},
    "a part of a part": lambda: {"dataset": parts()},
    "names": lambda: {"dataset": nets.Plain(), "unpack": nets.from_names, "test": nets.Plain()},
    "a list of pairs": lambda: {"dataset": [nets.numbers()[row] for row in range(64)]},
    "a loader": lambda: {
        "dataset": loader(batch_size=16, shuffle=True, generator=torch.Generator()), "batch": None, "budget": 20,
    },
    "a loader that collates": lambda: {"dataset": loader(collate_fn=nets.twice), "test": nets.numbers()},
    "larger batches than data": lambda: {"dataset": nets.numbers(), "batch": 1000, "budget": 60},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data(kind: str) -> None:
    run = train(**KINDS[kind]())
    check_learnt(run, 2.0 if "collates" in kind else 1.0)


def test_processes_that_read_for_workers(tmp_path: Path) -> None:
    run = train(DataLoader(nets.Long(str(tmp_path)), 8, num_workers=1), budget=2, batch=None)
    assert run.history[-1]["updates"] == 128
    readers = {int(path.name) for path in tmp_path.iterdir()}
    assert len(readers) == 4  # one for each worker and epoch
    assert not any(psutil.pid_exists(reader) for reader in readers)


def test_processes_that_read_end_when_a_run_breaks_off(tmp_path: Path) -> None:
    def end(event: Event) -> None:
        if len(list(tmp_path.iterdir())) == 2:
            raise InterruptedError

    problem = Module(nets.line(), LOSS, DataLoader(nets.Long(str(tmp_path), 0.02), 8, num_workers=1))
    with pytest.raises(InterruptedError):
        minimise(problem, SGD, strategy=Hogwild(2), budget=50, callbacks=[end])
    readers, until = [int(path.name) for path in tmp_path.iterdir()], time.monotonic() + 60
    while any(psutil.pid_exists(reader) for reader in readers) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(psutil.pid_exists(reader) for reader in readers)


def test_random_numbers_of_the_model_do_not_depend_on_who_reads() -> None:
    def trained(**options: Any) -> Tensor:
        run = train(DataLoader(nets.numbers(), 8, **options), 1, "serial", nets.soft_net(), batch=None)
        return run.model.net[0].weight

    assert torch.equal(trained(), trained(num_workers=1))


def test_fewer_samples_than_workers() -> None:
    run = train(nets.numbers(2), 3, Hogwild(3), batch=1)
    assert run.history[-1]["updates"] == 6


def test_skewed_labels_reach_the_workers() -> None:
    x = torch.randn(60, 3)
    data = TensorDataset(x, torch.arange(60) % 2)
    problem = Module(nn.Linear(3, 2), nn.functional.cross_entropy, data, batch=8, sampling=LabelSkew())
    run = minimise(problem, SGD, strategy=Hogwild(2), budget=2, test=data)
    assert run.history[-1]["updates"] == 120
    assert 0 <= run.history[-1]["test_accuracy"] <= 1


@pytest.mark.parametrize("strategy", [Hogwild(2), Averaging(2)])
def test_smaller_batches_are_dropped_if_the_loader_says_so(strategy: Any) -> None:
    run = minimise(Module(nets.line(), LOSS, loader(batch_size=24, drop_last=True)), SGD, strategy=strategy, budget=3)
    assert [record["updates"] for record in run.history][-1] == 3 * 48  # of 64 samples, 16 are left over
    assert run.history[-1]["epoch"] == 3
    assert run.history[-1]["steps"] == 6


def test_several_inputs_and_metrics() -> None:
    x = torch.randn(64, 1)
    data = TensorDataset(x, torch.ones(64, 1), x * 2 + 1)

    problem = Module(nn.Bilinear(1, 1, 1), LOSS, data, batch=8, metrics={"worst": lambda out, y: (out - y).abs().max()})
    run = minimise(problem, SGD, strategy=Hogwild(2), budget=20, test=data)
    assert run.result["test_worst"] < 0.1


def test_a_loss_that_is_no_number() -> None:
    problem = Module(nets.line(), nn.MSELoss(reduction="none"), nets.numbers())
    with pytest.raises(ParameterError, match=r"mean loss of a batch, .* one number.* Got a tensor of shape \(32, 1\)"):
        minimise(problem, SGD, strategy=Hogwild(2), budget=1)


def stream() -> Any:
    class Stream(torch.utils.data.IterableDataset[Any]):
        def __iter__(self) -> Any:
            yield torch.zeros(3), torch.zeros(1)

    return Stream()


REFUSED: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "empty": (DataError, lambda: train(nets.numbers(0))),
    "empty test": (DataError, lambda: train(nets.numbers(), test=nets.numbers(0))),
    "stream": (ParameterError, lambda: train(stream())),
    "stream to test": (ParameterError, lambda: train(nets.numbers(), test=stream())),
    "no batch": (ParameterError, lambda: train(nets.numbers(), batch=0)),
    "half a batch": (ParameterError, lambda: train(nets.numbers(), batch=1.5)),
    "no net": (ParameterError, lambda: Module("net", LOSS, nets.numbers())),  # type: ignore[arg-type]
    "no loss": (ParameterError, lambda: Module(nets.line(), None, nets.numbers())),  # type: ignore[arg-type]
    "buffers": (ParameterError, lambda: train(nets.numbers(), buffers="mine")),
    "sampler": (ParameterError, lambda: train(loader(sampler=WeightedRandomSampler([1.0] * 64, 64, False)))),
    "samplers": (
        ParameterError, lambda: train(loader(sampler=WeightedRandomSampler([1.0] * 64, 64)), sampling="whole")),
    "batches": (ParameterError, lambda: train(loader(batch_sampler=Batches(RandomSampler(range(64)), 8, False)))),
    "no batches": (ParameterError, lambda: train(loader(batch_size=None))),
    "part of a batch": (DataError, lambda: train(loader(batch_size=65, drop_last=True), batch=None)),
    "strategy": (ParameterError, lambda: train(nets.numbers(), strategy=3)),
}  # fmt: skip


class Batches(BatchSampler):
    """Batches as somebody wants them."""


@pytest.mark.parametrize("what", REFUSED)
def test_refused_before_anything_starts(what: str) -> None:
    error, attempt = REFUSED[what]
    with pytest.raises(error):
        attempt()


# Models that anybody can check


@pytest.mark.parametrize("outcome", [[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]], ids=["and", "or"])
def test_a_perceptron_learns_and_and_or(outcome: list[float]) -> None:
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = torch.tensor(outcome).view(4, 1)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    problem = Module(net, nn.functional.binary_cross_entropy, TensorDataset(x, y), batch=1)
    run = minimise(problem, partial(optim.SGD, lr=0.5), strategy=Hogwild(2), budget=150)
    assert ((run.model.predict(x) > 0.5) == (y > 0.5)).all()


def test_a_constant_is_learnt() -> None:
    data = TensorDataset(torch.randn(64, 3), torch.full((64, 1), 4.2))
    run = train(data, 30)
    torch.testing.assert_close(run.model.predict(torch.randn(9, 3)), torch.full((9, 1), 4.2), atol=1e-2, rtol=0)


def test_two_tensors_are_told_to_become_a_data_set() -> None:
    with pytest.raises(ParameterError, match=r"TensorDataset\(inputs, targets\)"):
        Module(nn.Linear(2, 1), nn.functional.mse_loss, (torch.ones(4, 2), torch.ones(4, 1)))
