"""Which samples workers draw."""

from __future__ import annotations

from functools import partial
from typing import Any

import nets
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from hogwild import Hogwild, LocalSGD, Module, Simulator, Weighted, WeightedRandom, minimise
from hogwild.data.sampling import LabelSkew, Replacement, SizeSkew, Split, Whole, WorkerShare, named
from hogwild.errors import ParameterError

SPLITS: list[Any] = [Split(), SizeSkew(2), SizeSkew(0.5), LabelSkew(1.0), LabelSkew(0.5), LabelSkew(0.0)]


def shares(samples: int, workers: int, epoch: int = 0, seed: int = 0, batch: int = 4) -> list[WorkerShare]:
    labels = np.arange(samples) % 5
    return [WorkerShare(samples, worker, workers, epoch, seed, batch, labels) for worker in range(workers)]


def drawn(sampling: Any, share: WorkerShare) -> list[int]:
    batches = list(sampling.batches(share))
    assert all(0 < len(batch) <= share.batch for batch in batches)
    return [int(index) for batch in batches for index in batch]


@pytest.mark.parametrize("sampling", SPLITS, ids=repr)
@settings(max_examples=25)
@given(
    samples=st.integers(1, 200), workers=st.sampled_from([1, 2, 3, 7, 70]), epoch=st.integers(0, 3),
    seed=st.integers(0, 2**40), batch=st.integers(1, 50),
)  # fmt: skip
def test_a_split_has_each_sample_once(
    sampling: Any, samples: int, workers: int, epoch: int, seed: int, batch: int
) -> None:
    found = [drawn(sampling, share) for share in shares(samples, workers, epoch, seed, batch)]
    assert sorted(index for one in found for index in one) == list(range(samples))


@settings(max_examples=25)
@given(samples=st.integers(1, 200), workers=st.integers(1, 20), seed=st.integers(0, 2**40))
def test_all_of_them_or_as_many(samples: int, workers: int, seed: int) -> None:
    whole = [drawn(Whole(), share) for share in shares(samples, workers, seed=seed)]
    assert all(sorted(one) == list(range(samples)) for one in whole)
    with_repeats = [drawn(Replacement(), share) for share in shares(samples, workers, seed=seed)]
    assert sum(map(len, with_repeats)) == samples
    assert max(map(len, with_repeats)) - min(map(len, with_repeats)) <= 1
    assert all(0 <= index < samples for one in with_repeats for index in one)


@pytest.mark.parametrize("sampling", [Split(), Replacement(), Whole(), SizeSkew(), LabelSkew(0.5)], ids=repr)
def test_streams_are_each_workers_own(sampling: Any) -> None:
    """Nobody draws what another draws, nor what it drew in another epoch or with another seed; the same is the same."""

    def stream(worker: int, epoch: int = 0, seed: int = 0) -> tuple[int, ...]:
        return tuple(drawn(sampling, shares(400, 3, epoch, seed)[worker]))

    streams = [stream(0), stream(1), stream(2), stream(0, epoch=1), stream(0, seed=1)]
    assert len(set(streams)) == len(streams)
    assert stream(1, 2, 3) == stream(1, 2, 3)


def test_replacement_repeats() -> None:
    found = drawn(Replacement(), shares(1000, 1)[0])
    assert 500 < len(set(found)) < 750  # 632 are expected, give or take 10


def test_label_skew_goes_by_label() -> None:
    def labels(skew: float) -> list[set[int]]:
        return [{index % 5 for index in drawn(LabelSkew(skew), share)} for share in shares(1000, 5)]

    assert [len(seen) for seen in labels(1.0)] == [1] * 5
    assert all(len(seen) == 5 for seen in labels(0.5))
    uneven = [index % 5 for index in drawn(LabelSkew(0.5), shares(1000, 5)[0])]
    assert uneven.count(0) > 2 * uneven.count(1)


def test_label_skew_keeps_who_has_what() -> None:
    one, other = (drawn(LabelSkew(), shares(100, 3, epoch)[1]) for epoch in (0, 1))
    assert one != other
    assert sorted(one) == sorted(other)


def test_size_skew_has_the_ratio() -> None:
    sizes = [len(drawn(SizeSkew(3.0), share)) for share in shares(1300, 3)]
    assert sizes == [100, 300, 900]


def test_names_and_refusals() -> None:
    assert named("replacement") == Replacement()
    for wrong in (lambda: named("splitt"), lambda: LabelSkew(1.5), lambda: SizeSkew(0), lambda: SizeSkew(float("inf"))):
        with pytest.raises(ParameterError):
            wrong()


# Draws by weight


WEIGHTS = np.arange(40.0) % 4  # of 0 to 3


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("draws", [None, 6_001])
def test_draws_by_weight(workers: int, draws: int | None) -> None:
    """All workers together draw as many as are asked for, each sample as often as its weight says."""
    sampling, size = WeightedRandom(WEIGHTS, draws), draws or 40
    counts = np.zeros(40, int)
    for worker in range(workers):
        share = WorkerShare(samples=40, worker=worker, workers=workers, epoch=0, seed=0, batch=16)
        for batch in sampling.batches(share):
            np.add.at(counts, batch, 1)
    assert counts.sum() == sampling.epoch_size(40, workers) == size
    assert not counts[WEIGHTS == 0].any()
    if draws:
        shares = np.array([counts[weight == WEIGHTS].sum() for weight in range(4)]) / size
        np.testing.assert_allclose(shares, np.arange(4) / 6, atol=0.03)  # four standard deviations are 0.026


def test_workers_and_epochs_draw_different_samples() -> None:
    def drawn(worker: int, epoch: int) -> list[int]:
        share = WorkerShare(samples=40, worker=worker, workers=2, epoch=epoch, seed=0, batch=20)
        return next(WeightedRandom(WEIGHTS).batches(share)).tolist()

    assert drawn(0, 0) == drawn(0, 0)
    assert len({tuple(drawn(worker, epoch)) for worker in (0, 1) for epoch in (0, 1)}) == 4


@pytest.mark.parametrize(
    "where", [{}, {"strategy": LocalSGD(2), "runtime": Simulator()}], ids=["processes", "messages"]
)
def test_a_loader_that_draws_by_weight(where: Any) -> None:
    """Samples of weight 0 would have made the weights something else."""
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    sign = torch.where(torch.arange(60) % 3 == 0, -1.0, 1.0)
    data = TensorDataset(x, sign[:, None] * x.sum(1, keepdim=True))
    sampler = torch.utils.data.WeightedRandomSampler((sign > 0).double(), num_samples=90)
    problem = Module(nets.line(), nn.functional.mse_loss, DataLoader(data, 10, sampler=sampler))
    run = minimise(problem, partial(optim.SGD, lr=0.1), **{"strategy": Hogwild(2), **where}, budget=20)
    assert run.history[-1]["updates"] == 20 * 90
    torch.testing.assert_close(problem.net.weight.data, torch.ones(1, 3), atol=0.05, rtol=0)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: WeightedRandom([1, -1]), "finite number of at least 0 for each sample"),
        (lambda: WeightedRandom([0, 0]), "not 0 for all samples"),
        (lambda: WeightedRandom("abc"), "'weights' parameter must be a number for each sample"),
        (lambda: WeightedRandom([1, 1], draws=0), "'draws' parameter must be a positive integer"),
        (lambda: Module(nets.line(), nn.functional.mse_loss, nets.numbers(8), sampling=WeightedRandom([1, 1])),
         "a weight for each of the 8 samples. Got 2"),
        (lambda: Module(nets.line(), nn.functional.mse_loss, nets.numbers(8), sampling=Weighted([1, 1])),
         r"WeightedRandom\(weights\) draws samples of a Module"),
    ],
)  # fmt: skip
def test_weights_that_cannot_be(made: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        made()


def test_a_resumed_run_recognises_its_weights() -> None:
    assert repr(WeightedRandom([1, 2])) == repr(WeightedRandom([1.0, 2.0])) != repr(WeightedRandom([2, 1]))
    assert repr(WeightedRandom([1, 2], 5)) != repr(WeightedRandom([1, 2]))
