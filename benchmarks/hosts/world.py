"""A world of its own for hosts: the machine's network, processes and mounts are neither seen nor touched in it.

When its first process ends, however it does, the kernel ends everything in it and takes its devices away.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.hosts.host import FAITHFUL, Host, boot
from benchmarks.hosts.kernel import Kernel, has_netem
from benchmarks.hosts.relay import Relay

NEEDED = ("unshare", "setpriv", "nsenter", "ip", "tc", "bridge", "hostname", "mount")
OWN = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
ROOT = Path(__file__).parents[2]
NAMES = ("alpha", "beta", "gamma", "delta")

Wire = Kernel | Relay


def missing() -> str:
    """Why there can be no hosts here; nothing if there can."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    lacking = [name for name in NEEDED if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} (util-linux, iproute2) cannot be found"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    tried = subprocess.run(["unshare", *OWN, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    if tried.returncode:
        return f"network namespaces cannot be made: {tried.stderr.decode().strip()}"
    if not has_netem() and not Path("/dev/net/tun").exists():
        return "the kernel has neither netem nor TUN devices"
    return ""


def within(command: Sequence[str | Path]) -> int:
    """Run a command as the first process of a world, which is killed when this process is told to end."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    world = subprocess.Popen([*FAITHFUL, "unshare", *OWN, *map(str, command)], start_new_session=True, cwd=ROOT)
    try:
        return world.wait()
    finally:
        world.kill()
        world.wait()
        signal.signal(signal.SIGTERM, before)


def wire(kind: str = "auto") -> Wire:
    """A network for hosts: the kernel's where it has netem, else a relay."""
    if kind == "auto":
        kind = "kernel" if has_netem() else "relay"
    return Kernel() if kind == "kernel" else Relay()


@contextmanager
def hosts(network: Wire, names: Sequence[str] = NAMES) -> Iterator[list[Host]]:
    """Hosts with a network between them, which go away with the block. Only within a world."""
    with ExitStack() as ends:
        there = []
        for number, name in enumerate(names, start=1):
            host = boot(name, f"10.77.0.{number}")
            ends.callback(host.end)
            network.join(host)
            there.append(host)
        try:
            yield there
        finally:
            network.close()  # before its devices go away with the hosts
