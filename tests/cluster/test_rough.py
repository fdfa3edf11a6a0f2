"""Lines on which calls are held up, lost and doubled."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from hogwild import Link, Ray
from hogwild.errors import ParameterError

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")

from hogwild.runtimes.ray.actor_context import FaultyTransport, Transport

CALLS = 400


def carried(link, answered=True):
    """The numbers of calls as they arrive, and which of them are on their way after that."""
    came = []

    def call(handle, parts):
        came.append(int(parts[0]))
        return parts[0]

    line = FaultyTransport(link, [0], Transport(call, lambda calls: [] if answered else calls))
    packets = [line.call(None, (b"%d" % number,)) for number in range(CALLS)]
    until = time.monotonic() + 20
    while any(packet.pending_copies for packet in packets) and time.monotonic() < until:
        time.sleep(0.01)
    return came, line.unanswered(packets)


def test_calls_come_in_order_when_all_take_as_long():
    came, left = carried(Link(0.001))
    assert came == list(range(CALLS))
    assert left == []


def test_some_are_lost_and_nobody_waits_for_them():
    came, left = carried(Link(0.001, loss=0.3))
    assert 0.5 * CALLS < len(came) == len(set(came)) < 0.9 * CALLS
    assert left == []


def test_some_come_twice_and_some_late():
    came, left = carried(Link("exponential:0.002", duplication=0.3, reordering=0.3), answered=False)
    times = Counter(came)
    assert set(times) == set(range(CALLS))
    assert set(times.values()) == {1, 2}
    assert came != sorted(came)
    assert len(left) == CALLS


def test_what_is_large_takes_as_long_as_the_line_says():
    line = FaultyTransport(Link(0.0, bandwidth=10.0), [0], Transport(lambda handle, parts: 0, lambda calls: calls))
    first, second = line.call(None, (b"1",)), line.call(None, (bytes(1000),))
    until = time.monotonic() + 20
    while first.pending_copies and time.monotonic() < until:
        time.sleep(0.01)
    assert (first.pending_copies, second.pending_copies) == (0, 1)


def test_what_is_no_link_is_refused():
    with pytest.raises(ParameterError, match="'link' parameter must be Link"):
        Ray(link=0.1)
    with pytest.raises(ParameterError, match="'standby_servers' parameter must be a number of processes"):
        Ray(standby_servers=-1)
