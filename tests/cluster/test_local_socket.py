"""Calls between actors of one Ray node over a socket: nothing is lost on the way, and nobody waits for a slow one."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time

import numpy as np
import pytest

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")

from hogwild.runtimes.ray import local_socket
from hogwild.runtimes.ray.actor import ActorLocation
from hogwild.runtimes.ray.actor_context import Peer, PeerAddress, Transport
from hogwild.runtimes.ray.driver import _address
from hogwild.runtimes.ray.local_socket import SocketConnection, SocketListener, Unsent
from hogwild.runtimes.ray.placement import ActorRecord

pytestmark = pytest.mark.skipif(not local_socket.available(), reason="only Linux has these sockets")

SECONDS = 20  # limit of every wait
LARGE = np.arange(3 * local_socket.SEND_BUFFER, dtype=np.uint64).view(np.uint8)


class Receiver:
    """Notes the calls that arrive."""

    def __init__(self, most_bytes=1 << 30):
        self.calls = queue.SimpleQueue()
        self.listener = SocketListener(lambda *parts: self.calls.put(parts), most_bytes)
        self.connection = SocketConnection(self.listener.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        self.listener.close()

    def next(self):
        return self.calls.get(timeout=SECONDS)


class Deaf:
    """Accepts one connection, and reads nothing from it until it is told to."""

    def __init__(self):
        self.name = f"hogwild-test-{os.getpid()}-{id(self)}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind("\0" + self.name)
        self.socket.listen()
        self.connection = SocketConnection(self.name)
        self._reads = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.connection.close()
        self._reads.set()
        self._thread.join(SECONDS)
        self.socket.close()

    def read(self):
        self._reads.set()

    def _read(self):
        with self.socket.accept()[0] as connection:
            self._reads.wait(SECONDS)
            while connection.recv(1 << 20):
                pass


class Handle:
    """The handle of an actor, which notes the calls that Ray would make."""

    def __init__(self):
        self.calls, self.deliver = [], self

    def remote(self, *parts):
        self.calls.append(parts)
        return "a reference"


def writers():
    return [thread for thread in threading.enumerate() if thread.name == "hogwild-writer"]


def eventually(holds):
    until = time.monotonic() + SECONDS
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    assert holds()


def same(came, sent):
    assert [type(part) for part in came] == [type(part) for part in sent]
    assert all(bytes(one) == bytes(other) for one, other in zip(came, sent, strict=True))


def test_calls_arrive_whole_and_in_order():
    sent = [(b"%d" % number, bytes(number), np.arange(number, dtype=np.uint8)) for number in range(300)]
    with Receiver() as receiver:
        for parts in sent:
            assert receiver.connection.send(parts) is None
        for parts in sent:
            same(receiver.next(), parts)


def test_a_call_larger_than_the_kernel_takes_is_written_by_another_thread_and_later_calls_come_after_it():
    sent = [(b"first", LARGE), (b"second",), (b"third", LARGE[:1000])]
    with Receiver() as receiver:
        calls = [receiver.connection.send(parts) for parts in sent]
        for parts in sent:
            same(receiver.next(), parts)
        eventually(lambda: not Transport().unanswered([call for call in calls if call is not None]))
        eventually(lambda: receiver.connection.send((b"at once again",)) is None)


def test_a_call_of_very_many_parts_arrives():
    sent = tuple(b"%d" % number for number in range(3 * local_socket.MOST_BUFFERS))
    with Receiver() as receiver:
        receiver.connection.send(sent)
        same(receiver.next(), sent)


def test_nobody_waits_for_an_actor_that_reads_nothing():
    with Deaf() as deaf:
        calls = [deaf.connection.send((LARGE,)), deaf.connection.send((b"short",))]
        assert all(isinstance(call, Unsent) for call in calls)
        transport, began = Transport(), time.monotonic()
        transport.wait(calls, 0.05)
        assert 0.05 <= time.monotonic() - began < SECONDS
        assert transport.unanswered(calls) == calls
        assert len(writers()) == 1
        deaf.read()
        transport.wait(calls, SECONDS)
        eventually(lambda: transport.unanswered(calls) == [])


def test_a_closed_connection_holds_no_thread_and_counts_its_calls_as_lost():
    with Deaf() as deaf:
        call = deaf.connection.send((LARGE,))
        deaf.connection.close()
        eventually(lambda: not writers())
        assert Transport().unanswered([call]) == []
        with pytest.raises(OSError, match="closed"):
            deaf.connection.send((b"more",))


def test_ray_takes_over_when_the_socket_breaks():
    handle = Handle()
    with Receiver() as receiver:
        peer = Peer(PeerAddress(0, handle, receiver.listener.name))
        assert peer.call((b"one",)) is None
        same(receiver.next(), (b"one",))
        peer.close()
    gone = Peer(PeerAddress(0, handle, "hogwild-that-nobody-has"))
    assert peer.call((b"two",)) == gone.call((b"three",)) == gone.call((b"four",)) == "a reference"
    assert handle.calls == [(b"two",), (b"three",), (b"four",)]


def test_a_part_that_is_too_large_ends_the_connection():
    with Receiver(most_bytes=100) as receiver:
        receiver.connection.send((bytes(100),))
        same(receiver.next(), (bytes(100),))
        receiver.connection.send((bytes(101),))

        def refused():
            try:
                receiver.connection.send((b"x",))
            except OSError:
                return True
            return False

        eventually(refused)
        assert receiver.calls.empty()


def test_another_user_is_refused_by_both_ends(monkeypatch):
    own = os.getuid()
    with Receiver() as receiver, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
        with pytest.raises(OSError, match="another user"):
            receiver.connection.send((b"x",))
        stranger.settimeout(SECONDS)
        stranger.connect("\0" + receiver.listener.name)
        assert stranger.recv(1) == b""


@pytest.mark.parametrize(("node", "socket_name"), [("node-a", "hogwild-1"), ("node-b", "")])
def test_sockets_are_for_actors_of_the_same_ray_node(node, socket_name):
    to = ActorRecord("server-0", 2, None, location=ActorLocation("node-a", "machine", 7, "", "hogwild-1"))
    sender = ActorRecord("worker-0", 0, None, location=ActorLocation(node, "machine", 8, "", "hogwild-2"))
    assert _address(to, sender) == PeerAddress(2, None, socket_name)
