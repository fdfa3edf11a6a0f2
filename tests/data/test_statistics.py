from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.data import InMemoryDataset, pack, row_overlap
from hogwild.data import open as open_data
from hogwild.data.csr import NO_INDICES, NO_VALUES, NO_WEIGHTS, CSRRows
from hogwild.data.row_overlap import RowOverlap, wilson
from hogwild.data.statistics import describe, describe_labels, ranked

SHARED = Path(__file__).parents[2].parent / "shared" / "data"

rows_of_features = st.lists(st.sets(st.integers(0, 11), max_size=6), min_size=1, max_size=150)


def memory(
    rows: list[set[int]], features: int = 12, *, index: type = np.uint32, shuffled: bool = False
) -> InMemoryDataset:
    lists = [sorted(row) for row in rows]
    indptr = np.cumsum([0, *map(len, lists)])
    indices = np.array([i for row in lists for i in row], index)
    labels = np.arange(len(rows), dtype=float)
    return InMemoryDataset(
        CSRRows(indptr, indices, NO_VALUES, labels, NO_WEIGHTS, features, "binary"), shuffled=shuffled
    )


def shares_by_hand(rows: list[set[int]]) -> list[float]:
    return [sum(bool(row & other) for other in rows) / len(rows) for row in rows]


def estimate(data: InMemoryDataset, seed: int = 0) -> RowOverlap:
    return row_overlap.row_overlap(data, seed=seed, work=0)


@given(rows_of_features, st.sampled_from([np.uint32, np.uint64]))
@settings(max_examples=60, deadline=None)
def test_the_numbers_are_those_of_their_definitions(rows: list[set[int]], index: type) -> None:
    found = describe(memory(rows, index=index))
    shares = shares_by_hand(rows)
    frequency = [sum(feature in row for row in rows) / len(rows) for feature in range(12)]
    assert found.omega == max(map(len, rows))
    assert found.empty_rows == sum(not row for row in rows)
    assert found.delta == pytest.approx(max(frequency))
    assert frequency[found.most_frequent] == max(frequency)
    assert found.overlap.exact
    assert found.overlap.rho == found.overlap.low == found.overlap.high == max(shares)
    assert found.overlap.shares.tolist() == shares
    assert found.overlap.mean == pytest.approx(np.mean(shares))
    assert found.delta <= found.overlap.rho + 1e-12
    assert found.ever_present == frequency.count(1.0)
    assert found.crowding == pytest.approx(sum(p * p for p in frequency))


@given(rows_of_features, st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_an_estimate_bounds_the_truth(rows: list[set[int]], seed: int) -> None:
    found, rho = estimate(memory(rows), seed), max(shares_by_hand(rows))
    # All rows are scanned, so both bounds are certain; and so few rows are all compared.
    assert found.low <= rho <= found.high
    assert found.rho == pytest.approx(rho)
    assert found.mean == pytest.approx(np.mean(shares_by_hand(rows)))


def test_a_sample_of_the_rows_gives_shares_within_its_error() -> None:
    rng = np.random.default_rng(5)
    rows = [set(rng.choice(300, size=6).tolist()) for _ in range(20_000)]
    data = memory(rows, 300, shuffled=True)
    with mock.patch.multiple(row_overlap, SCANNED_NONZEROS=data.nonzeros // 4, EXTREME_ROWS=16, RANDOM_ROWS=64):
        found = estimate(data)
    truth = row_overlap.row_overlap(data)
    assert truth.exact
    assert found.scanned < data.n_rows
    assert found.compared == 80
    assert not found.exact
    assert found.low <= truth.rho <= found.high
    assert found.low < found.rho <= found.high
    assert abs(found.mean - truth.mean) < 3 * found.mean_error
    assert found.mean_error > 0


def test_the_extreme_row_is_found_among_many() -> None:
    rows = [{i, 5_000 + i % 100} for i in range(4_000)]
    rows[2_345] = set(range(5_000, 5_100))  # meets every row
    data = memory(rows, 6_000)
    with mock.patch.multiple(row_overlap, EXTREME_ROWS=1, RANDOM_ROWS=1):
        found = estimate(data)
    assert found.rho == 1.0
    assert found.exact


def test_an_epoch_of_listed_rows_and_a_part_of_the_data() -> None:
    rows = [{i % 7, 10 + i % 3} for i in range(500)]
    part, rest = memory(rows, 13).split(0.4, seed=3)
    for side in (part, rest):
        assert estimate(side).rho == pytest.approx(row_overlap.row_overlap(side).rho)


def test_dense_rows_share_everything() -> None:
    values = np.ones(12, np.float32)
    rows = CSRRows(np.arange(0, 13, 3), NO_INDICES, values, np.ones(4), NO_WEIGHTS, 3, "dense")
    found = describe(InMemoryDataset(rows, shuffled=False))
    assert (found.omega, found.delta, found.overlap.rho, found.crowding) == (3, 1.0, 1.0, 3.0)
    assert found.collisions(5).others == 4.0
    assert found.collisions(5).probability == 1.0


def test_collisions_agree_with_a_simulation() -> None:
    rng = np.random.default_rng(1)
    rows = [set(rng.choice(12, size=3, replace=False).tolist()) for _ in range(40)]
    expected = describe(memory(rows)).collisions(4)
    draws = rng.integers(0, len(rows), size=(20_000, 4))
    met = np.array([[bool(rows[mine] & rows[other]) for other in others] for mine, *others in draws])
    common = np.mean([sum(len(rows[mine] & rows[other]) for other in others) for mine, *others in draws])
    assert expected.others == pytest.approx(met.sum(axis=1).mean(), rel=0.03)
    assert expected.probability == pytest.approx(met.any(axis=1).mean(), rel=0.03)
    assert expected.coordinates == pytest.approx(common, rel=0.03)


def test_one_worker_collides_with_nobody() -> None:
    alone = describe(memory([{1}, {1, 2}])).collisions(1)
    assert (alone.others, alone.probability, alone.coordinates) == (0, 0, 0)


def test_a_packed_set_has_the_same_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{i % 2} " + " ".join(f"{j}:1" for j in sorted(set(rng.integers(1, 40, 5).tolist()))) for i in range(900)]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    loaded = describe(open_data(tmp_path / "a.svm"))
    packed = describe(pack([tmp_path / "a.svm"], tmp_path / "a.packed"))
    for name in ("rows", "features", "nonzeros", "layout", "omega", "delta", "most_frequent", "crowding", "labels"):
        assert getattr(loaded, name) == getattr(packed, name)
    assert loaded.overlap.rho == packed.overlap.rho
    assert loaded.overlap.mean == pytest.approx(packed.overlap.mean)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([1, -1, 1], "two classes"),
        ([1, 2, 3] * 5, "classes"),
        ([7, 7], "constant"),
        ([0.5, 0.5], "constant"),
        ([0.5, 1], "real"),
        (list(range(60)), "real"),
        (list(range(40)), "classes"),
        ([1e300, -1e300], "two classes"),
    ],
)
def test_labels_are_told_apart(labels: list[float], kind: str) -> None:
    found = describe_labels(np.array(labels, float))
    assert found.kind == kind
    assert sum(found.counts.values()) in (0, len(labels))


def test_progress_is_told() -> None:
    calls: list[tuple[int, int]] = []
    data = memory([{i % 5, 6 + i % 3} for i in range(300)])
    describe(data, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] == len(calls)


@given(st.integers(1, 2000), st.data())
def test_wilson_holds_the_observed_share(tries: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, tries))
    low, high = wilson(hits, tries)
    assert 0 <= low <= hits / tries <= high <= 1


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=400))
def test_ranked_frequencies_fall(counts: list[int]) -> None:
    ranks, values = ranked(np.array(counts), points=50)
    present = sorted((c for c in counts if c), reverse=True)
    assert len(ranks) <= 50
    assert values.tolist() == [present[rank - 1] for rank in ranks]
    if present:
        assert (ranks[0], ranks[-1]) == (1, len(present))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not here")
def test_real_text_is_estimated_as_it_is() -> None:
    data = open_data(SHARED / "reuters.trn.svm.gz")
    truth, found = row_overlap.row_overlap(data), row_overlap.row_overlap(data, work=0)
    assert truth.exact
    assert found.low <= truth.rho <= found.high
    assert abs(found.mean - truth.mean) < 2 * found.mean_error
