"""Unix sockets between actors of one Ray node, over which a short call takes a small part of the time of a Ray call.

The sockets have names in Linux's abstract namespace, so that a process that is killed leaves no file behind. Both ends
check that the process at the other end belongs to the same user. Received bytes are decoded and checked as those of Ray
calls are.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

import numpy as np

from hogwild.runtimes.ray.wire_codec import Parts

SEND_BUFFER = 4 << 20  # bytes that the kernel is asked to take before the receiver has read them
READ_BUFFER = 1 << 16  # bytes of one read, so that a short call takes a single one
MOST_PARTS = 1 << 16  # most parts of a call
MOST_BUFFERS = 512  # most buffers of one write; Linux takes up to 1024
CONNECTING = 5.0  # seconds that a connection may take
_ARRAY = 1 << 63  # bit of a part's length that marks an array
_COUNT, _LENGTH = struct.Struct("<I"), struct.Struct("<Q")
_CREDENTIALS = struct.Struct("3i")  # process, user and group


def available() -> bool:
    """Return whether this system has sockets in an abstract namespace."""
    return sys.platform == "linux"


class SocketListener:
    """Listener of one actor, with a thread for each actor that sends to it.

    Parameters
    ----------
    deliver : callable
        Function that receives the parts of each call. Several threads call it.
    most_bytes : int
        Most bytes of a part of a call. A connection with a larger one is closed.
    """

    def __init__(self, deliver: Callable[..., None], most_bytes: int) -> None:
        self._deliver, self._most_bytes = deliver, most_bytes
        self.name = f"hogwild-{secrets.token_hex(16)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind("\0" + self.name)
        self._socket.listen(128)
        threading.Thread(target=self._accept, name="hogwild-listener", daemon=True).start()

    def close(self) -> None:
        """Accept no more connections. Those that exist end when the other end closes them."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                if not _is_own(connection):
                    connection.close()
                    continue
                threading.Thread(target=self._read, args=(connection,), name="hogwild-reader", daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        with connection, BufferedReader(socket.SocketIO(connection, "r"), READ_BUFFER) as stream, suppress(OSError):
            while (parts := _parts(stream, self._most_bytes)) is not None:
                self._deliver(*parts)


@dataclass(eq=False, slots=True)
class Unsent:
    """Call of which the kernel has not taken all bytes yet. A call that is lost counts as sent."""

    buffers: list[memoryview]
    sent: bool = False


class SocketConnection:
    """Connection to the listener of another actor.

    A call is written by the thread that makes it. What the kernel does not take at once is written by another thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._socket: socket.socket | None = None
        self._closed = False
        self._queue: deque[Unsent] = deque()  # calls that the writing thread has, the first of them in part
        self._lock = threading.Lock()

    def send(self, parts: Parts) -> Unsent | None:
        """Send the parts of a call; return None if the kernel has taken all bytes.

        Raise ``OSError`` if the connection is closed or broken.
        """
        buffers = _buffers(parts)
        with self._lock:
            if self._closed:
                raise OSError("the connection is closed")
            try:
                self._socket = self._socket or _connected(self._name)
                left = buffers if self._queue else _written(self._socket, buffers, socket.MSG_DONTWAIT)
            except OSError:
                self._end()
                raise
            if not left:
                return None
            unsent = Unsent(left)
            self._queue.append(unsent)
            if len(self._queue) == 1:
                threading.Thread(
                    target=self._write_rest, args=(self._socket,), name="hogwild-writer", daemon=True
                ).start()
            return unsent

    def close(self) -> None:
        """Close the connection. A thread that writes to it ends."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._closed = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            if not self._queue:  # else the thread that writes closes it
                self._socket.close()

    def _write_rest(self, connection: socket.socket) -> None:
        try:
            while True:
                unsent = self._queue[0]
                while unsent.buffers:
                    unsent.buffers = _written(connection, unsent.buffers, 0)
                with self._lock:
                    self._queue.popleft().sent = True
                    if not self._queue:
                        if self._closed:
                            connection.close()
                        return
        except OSError:
            with self._lock:
                while self._queue:
                    self._queue.popleft().sent = True
                self._end()


def _connected(name: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        connection.settimeout(CONNECTING)
        connection.connect("\0" + name)
        connection.settimeout(None)
        if not _is_own(connection):
            raise OSError("the socket belongs to another user")
    except OSError:
        connection.close()
        raise
    return connection


def _is_own(connection: socket.socket) -> bool:
    """Return whether the process at the other end belongs to the user of this one."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(found)[1]
    return user == os.getuid()


def _buffers(parts: Parts) -> list[memoryview]:
    """Return the bytes of a call: the number of parts, their lengths, and their contents."""
    views = [memoryview(part).cast("B") for part in parts]
    kinds = (_ARRAY if isinstance(part, np.ndarray) else 0 for part in parts)
    lengths = (_LENGTH.pack(kind | len(view)) for kind, view in zip(kinds, views, strict=True))
    head = b"".join([_COUNT.pack(len(parts)), *lengths])
    return [memoryview(head), *(view for view in views if len(view))]


def _written(connection: socket.socket, buffers: list[memoryview], flags: int) -> list[memoryview]:
    """Write as much as the kernel takes; return the rest."""
    try:
        count = connection.sendmsg(buffers[:MOST_BUFFERS], [], flags)
    except BlockingIOError:
        return buffers
    for number, buffer in enumerate(buffers):
        if count < len(buffer):
            return [buffer[count:], *buffers[number + 1 :]]
        count -= len(buffer)
    return []


def _parts(stream: BufferedReader[Any], most_bytes: int) -> list[Any] | None:
    """Read the parts of a call; return None at the end of the stream, or if they are too many or too large."""
    if len(head := stream.read(_COUNT.size)) < _COUNT.size:
        return None
    (count,) = _COUNT.unpack(head)
    if count > MOST_PARTS or len(head := stream.read(count * _LENGTH.size)) < count * _LENGTH.size:
        return None
    parts: list[Any] = []
    for (length,) in _LENGTH.iter_unpack(head):
        size = length & ~_ARRAY
        if size > most_bytes:
            return None
        if length & _ARRAY:
            part: Any = np.empty(size, np.uint8)
            complete = stream.readinto(part) == size
        else:
            part = stream.read(size)
            complete = len(part) == size
        if not complete:
            return None
        parts.append(part)
    return parts
