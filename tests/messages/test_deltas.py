"""Changes of parameters, whole or sparse, cut into pieces, compressed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.errors import MessageError, ParameterError
from hogwild.messaging.compression import Half, Sender, TopK, named
from hogwild.messaging.deltas import INDEX, SparseDelta, add, change, checked, joined, nbytes, part, total

numbers = st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.5, -2.25]), min_size=1, max_size=60)


def whole(vector, size):
    into = np.zeros(size, np.float32)
    add(into, vector)
    return into


@given(numbers, st.data())
@settings(max_examples=60, deadline=None)
def test_a_change_is_what_was_added_in_the_shorter_form(moved, data):
    before = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 8.0]), min_size=len(moved), max_size=len(moved))))
    before = before.astype(np.float32)
    after = before + np.array(moved, np.float32)
    found = change(before, after)
    np.testing.assert_array_equal(before + whole(found, len(moved)), after)
    assert nbytes(found) == min(8 * np.count_nonzero(moved), 4 * len(moved))
    ends = sorted({0, len(moved), data.draw(st.integers(0, len(moved)))})
    pieces = [whole(part(found, *span), span[1] - span[0]) for span in pairwise(ends)]
    np.testing.assert_array_equal(np.concatenate(pieces), after - before)
    np.testing.assert_array_equal(whole(total([found, found]), len(moved)), 2 * (after - before))


@given(st.lists(numbers.filter(lambda some: len(some) >= 8), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_what_compression_leaves_out_is_sent_later(changes):
    size = min(map(len, changes))
    vectors = [np.array(some[:size], np.float32) for some in changes]
    sender, arrived = Sender(TopK(0.2)), np.zeros(size, np.float32)
    for vector in vectors:
        sent = sender(vector)
        assert isinstance(sent, SparseDelta)
        assert len(sent.values) <= max(1, round(0.2 * size))
        add(arrived, sent)
    np.testing.assert_allclose(arrived + sender.residual, np.sum(vectors, axis=0), atol=1e-5)
    for _ in range(size):  # with nothing new, all that is owed arrives in the end
        add(arrived, sender(np.zeros(size, np.float32)))
    np.testing.assert_allclose(arrived, np.sum(vectors, axis=0), atol=1e-5)


def test_half_precision_halves_what_is_sent_and_owes_the_rest():
    change = np.array([1.0, 1e-3 + 1e-6, 1e6], np.float32)
    sender = Sender(Half())
    sent = sender(change)
    assert nbytes(sent) == nbytes(change) // 2
    assert np.isfinite(sent).all()
    np.testing.assert_allclose(sent.astype(np.float32) + sender.residual, change)


def test_names():
    assert named("top-k:0.5") == TopK(0.5)
    assert named("half") == Half()
    assert named(None) is None
    for wrong in ("top-k:2", "top-k:x", "half:3"):
        with pytest.raises(ParameterError):
            named(wrong)


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(4, np.float32),
        SparseDelta(np.array([3], INDEX), np.ones(1, np.float32), 3),
        SparseDelta(np.array([0, 1], INDEX), np.ones(1, np.float32), 3),
        SparseDelta(np.array([0], INDEX), np.ones(1, np.float32), 4),
        SparseDelta(np.array([1], INDEX), np.ones(2, np.float32), 3, 2),
        SparseDelta(np.array([2], INDEX), np.ones(3, np.float32), 3, 3),
    ],
)
def test_what_does_not_fit_is_refused(vector):
    with pytest.raises(MessageError, match="does not fit 3 parameters"):
        checked(vector, 3)


def test_a_wrong_share_is_named():
    with pytest.raises(ParameterError, match="'share' parameter must be above 0"):
        named("top-k:2")


def test_groups_of_values_are_cut_and_joined_whole_and_those_of_one_index_add_up():
    random = np.random.default_rng(0)
    indices = np.append(random.permutation(20)[:12], [3, 3]).astype(INDEX)
    vector = SparseDelta(indices, random.random(42, np.float32), 60, width=3)
    expected = np.zeros((20, 3), np.float32)
    np.add.at(expected, indices, vector.values.reshape(-1, 3))
    np.testing.assert_allclose(vector.dense(), expected.reshape(-1), rtol=1e-6)
    parts = [(0, 21), (21, 30), (30, 60)]
    pieces = [part(vector, *each) for each in parts]
    for piece, (start, stop) in zip(pieces, parts, strict=True):
        assert checked(piece, stop - start) is piece
        np.testing.assert_allclose(whole(piece, stop - start), vector.dense()[start:stop], rtol=1e-6)
    np.testing.assert_allclose(whole(joined(pieces, parts), 60), vector.dense(), rtol=1e-6)
    longer = SparseDelta(indices, vector.values, 62, width=3)  # with a part of a group at the end
    np.testing.assert_array_equal(longer.dense(), np.append(vector.dense(), [0, 0]))
    np.testing.assert_array_equal(whole(part(longer, 30, 62), 32), longer.dense()[30:])
    np.testing.assert_allclose(whole(total([vector, vector, vector]), 60), 3 * vector.dense(), rtol=1e-6)
