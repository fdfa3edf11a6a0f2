"""What goes over the wire comes out as it went in, and what is damaged is refused, whatever it is."""

import random
from dataclasses import fields

import numpy as np
import pytest

pytest.importorskip("msgpack", reason="pip install 'hogwild[ray]'")

from hogwild.errors import MessageError
from hogwild.messaging.deltas import INDEX, SparseDelta
from hogwild.messaging.messages import Ack, Begin, Envelope, ParametersReply, PullReply, Push, Stopped
from hogwild.runtimes.ray import wire_codec
from hogwild.runtimes.ray.wire_codec import BODIES, decode_envelopes, encode_envelopes

SIZE = 10
SPARSE = SparseDelta(np.array([1, 7], INDEX), np.array([0.5, -2.0], np.float32), SIZE)
# A value for every type that parts of messages have.
SAMPLES = {
    "int": 3, "float": 0.25, "bool": True, "str": "worker-1", "tuple[tuple[int,int],...]": ((0, 5), (2, 0)),
    "tuple[str,...]": ("worker-0", "worker-1"), "dict[str,Any]": {"delays": {"worker-0": {0: 4, 12: 1}}, "terms": 7},
    "Floats": np.arange(5, dtype=np.float32), "Floats|None": np.arange(3, dtype=np.float64), "Vector": SPARSE,
    "Vector|None": np.arange(SIZE, dtype=np.float16),
}  # fmt: skip


def envelope(body):
    return Envelope("worker-0", 1, "server-0", 2, 7, 1, 3, body)


def example(kind):
    return envelope(kind(*(SAMPLES[str(field.type).replace(" ", "")] for field in fields(kind))))


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tolist() == other.tolist()
    if isinstance(one, SparseDelta):
        return one.size == other.size and same(one.indices, other.indices) and same(one.values, other.values)
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("kind", BODIES.values(), ids=BODIES)
def test_everything_that_can_be_said(kind):
    before = example(kind)
    (after,) = decode_envelopes(encode_envelopes([before]), SIZE)
    assert type(after.body) is kind
    heads = [field.name for field in fields(Envelope) if field.name != "body"]
    assert [getattr(before, name) for name in heads] == [getattr(after, name) for name in heads]
    for field in fields(kind):
        assert same(getattr(before.body, field.name), getattr(after.body, field.name)), field.name


def test_many_at_once_and_none_of_the_arrays_can_be_written_to():
    envelopes = [example(kind) for kind in BODIES.values()] * 3
    found = decode_envelopes(encode_envelopes(envelopes), SIZE)
    assert [type(each.body) for each in found] == [type(each.body) for each in envelopes]
    values = next(each.body.values for each in found if isinstance(each.body, PullReply))
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1.0


def test_numbers_of_numpy_are_numbers():
    (found,) = decode_envelopes(encode_envelopes([envelope(Stopped({"lags": {0: np.int64(3)}}))]), SIZE)
    assert found.body.counts == {"lags": {0: 3}}


@pytest.mark.parametrize(
    "body",
    [
        ParametersReply(1, np.zeros(SIZE + 1, np.float32), 0, 0),
        Push(np.zeros(SIZE + 1, np.float32), 0, 0, 0, 0, 0, 0.0),
        Push(SparseDelta(np.array([SIZE], INDEX), np.ones(1, np.float32), SIZE), 0, 0, 0, 0, 0, 0.0),
        Push(SparseDelta(np.array([1, 2], INDEX), np.ones(1, np.float32), SIZE), 0, 0, 0, 0, 0, 0.0),
        Push(SparseDelta(np.array([1], INDEX), np.ones(1, np.float32), SIZE * 2), 0, 0, 0, 0, 0, 0.0),
        PullReply(np.zeros(3, np.int64), 0, 0, 0, 0),
        Ack("all", 0),
        Ack(True, 0),
        Begin(((1, 2, 3),), 0, 0, ()),
        Stopped([]),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused(body):
    with pytest.raises(MessageError):
        decode_envelopes(encode_envelopes([envelope(body)]), SIZE)


def test_what_is_damaged_is_refused_or_read_as_something():
    """Nothing but MessageError is ever raised, and nothing is larger than it may be."""
    chance = random.Random(3)
    (whole,) = encode_envelopes([example(kind) for kind in BODIES.values()])
    refused = 0
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            data = data[: chance.randrange(len(data))]
        try:
            for each in decode_envelopes((bytes(data),), SIZE):
                assert each.nbytes < 1000
        except MessageError:
            refused += 1
    assert refused > 500


def test_large_arrays_are_sent_as_they_are():
    values = np.arange(wire_codec.INLINE, dtype=np.float32)
    head, *arrays = encode_envelopes(
        [envelope(PullReply(values, 0, 0, 0, 0)), example(Push), envelope(PullReply(values[:0], 0, 0, 0, 0))]
    )
    assert len(head) < 1000
    assert np.shares_memory(arrays[0], values)
    found = decode_envelopes((head, *arrays), len(values))
    assert same(found[0].body.values, values)
    assert same(found[1].body.change, SPARSE)
    assert same(found[2].body.values, values[:0])


def test_what_ray_sends_along_is_in_pieces_that_it_does():
    values = np.arange(wire_codec.INLINE // 8, dtype=np.float32)
    bodies = [PullReply(values + number, number, 0, 0, 0) for number in range(5)]
    pieces = encode_envelopes([envelope(body) for body in bodies])
    assert [type(piece) for piece in pieces] == [bytes] * 3
    assert max(len(piece) for piece in pieces) <= wire_codec.INLINE
    found = decode_envelopes(pieces, len(values))
    assert [each.body.clock for each in found] == [0, 1, 2, 3, 4]
    assert all(same(each.body.values, body.values) for each, body in zip(found, bodies, strict=True))
    for wrong in (
        pieces[:-1],
        (*pieces, pieces[-1]),
        (pieces[1], pieces[0], pieces[2]),
        (*pieces[:-1], pieces[-1][:-8]),
    ):
        with pytest.raises(MessageError):
            decode_envelopes(wrong, len(values))


def test_arrays_that_are_not_what_was_said_are_refused():
    values = np.arange(wire_codec.INLINE, dtype=np.float32)
    head, array = encode_envelopes([envelope(PullReply(values, 0, 0, 0, 0))])
    for wrong in (
        (),
        (array, array),
        (array[:-4],),
        (array[:-1],),
        (array.view(np.float32),),
        (array.tobytes(),),
        (None,),
    ):
        with pytest.raises(MessageError):
            decode_envelopes((head, *wrong), len(values))
    for wrong in ((None,), (), ("text",), (values,), (object(), array)):
        with pytest.raises(MessageError):
            decode_envelopes(wrong, len(values))
