"""Which samples workers draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
