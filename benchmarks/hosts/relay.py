"""A network in this process, for kernels without netem: packets are read from hosts, held for a while, and delivered.

Every host has a TUN device. What its kernel sends there is read here, lost with some probability, and written to the
device of the host it is for when its time has come. TCP on both sides is the kernel's own.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import socket
import struct
import subprocess
import threading
import time
from collections import deque
from contextlib import suppress

from benchmarks.hosts.host import Host

TUN, PACKETS_ALONE, CHOOSE = 0x0001, 0x1000, 0x400454CA  # IFF_TUN, IFF_NO_PI and TUNSETIFF of linux/if_tun.h
LARGEST = 65535
AT_ONCE = 64  # packets of one host, before the others have their turn
IDLE = 0.05  # seconds


class Relay:
    """Constant delay, so that packets arrive in the order they were sent in, as with ``netem delay``."""

    name = "a relay of packets between TUN devices, in a process"

    def __init__(self, seed: int = 0) -> None:
        self.delay, self.loss = 0.0, 0.0
        self._cut: frozenset[bytes] = frozenset()  # addresses of hosts
        self._devices: dict[bytes, int] = {}
        self._late: deque[tuple[float, int, bytes]] = deque()
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._carry, name="relay", daemon=True)
        self._thread.start()

    def join(self, host: Host) -> None:
        device = f"wire-{host.name}"[:15]
        file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(file, CHOOSE, struct.pack("16sH22x", device.encode(), TUN | PACKETS_ALONE))
        subprocess.run(["ip", "link", "set", device, "netns", str(host.first)], check=True)
        host.run("ip", "address", "add", f"{host.address}/24", "dev", device)
        host.run("ip", "link", "set", device, "up")
        self._devices = {**self._devices, socket.inet_aton(host.address): file}

    def weather(self, delay: float, loss: float) -> None:
        """Let every packet take so many seconds, and lose this share of them."""
        self.delay, self.loss = delay, loss

    def cut(self, host: Host) -> None:
        self._cut |= {socket.inet_aton(host.address)}

    def heal(self, host: Host) -> None:
        self._cut -= {socket.inet_aton(host.address)}

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        for file in self._devices.values():
            os.close(file)

    def _carry(self) -> None:
        while not self._over.is_set():
            rest = self._late[0][0] - time.monotonic() if self._late else IDLE
            for file in select.select([*self._devices.values()], [], [], min(IDLE, max(0.0, rest)))[0]:
                self._read(file)
            self._deliver()

    def _read(self, file: int) -> None:
        for _ in range(AT_ONCE):
            try:
                packet = os.read(file, LARGEST)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4:  # hosts also call for routers by IPv6
                continue
            sender, receiver = packet[12:16], packet[16:20]
            there = self._devices.get(receiver)
            if there is None or sender in self._cut or receiver in self._cut or self._chance.random() < self.loss:
                continue
            self._late.append((time.monotonic() + self.delay, there, packet))

    def _deliver(self) -> None:
        while self._late and self._late[0][0] <= time.monotonic():
            _, there, packet = self._late.popleft()
            with suppress(BlockingIOError):  # a queue that is full loses packets, as everywhere
                os.write(there, packet)
