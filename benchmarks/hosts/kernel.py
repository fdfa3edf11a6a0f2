"""A network of the kernel's own parts: a pair of devices for every host, a bridge between them, netem for weather."""

from __future__ import annotations

import subprocess

from benchmarks.hosts.host import Host

BRIDGE = "switch"
DEVICE = "wire"
FORWARDING, DISABLED = "3", "0"


class Kernel:
    """The bridge is in the namespace of this process, which has to be one of its own."""

    name = "veth pairs, a bridge and netem"

    def __init__(self) -> None:
        _do("ip", "link", "add", BRIDGE, "type", "bridge")
        _do("ip", "link", "set", BRIDGE, "up")
        self._hosts: list[Host] = []

    def join(self, host: Host) -> None:
        port = _port(host)
        _do("ip", "link", "add", port, "type", "veth", "peer", "name", DEVICE, "netns", str(host.first))
        _do("ip", "link", "set", port, "master", BRIDGE, "up")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", DEVICE)
        host.run("ip", "link", "set", DEVICE, "up")
        self._hosts.append(host)

    def weather(self, delay: float, loss: float) -> None:
        """Let every packet take so many seconds, and lose this share of them."""
        for host in self._hosts:
            if delay or loss:
                host.run("tc", "qdisc", "replace", "dev", DEVICE, "root", "netem", *_netem(delay, loss))
            elif "netem" in host.run("tc", "qdisc", "show", "dev", DEVICE):
                host.run("tc", "qdisc", "delete", "dev", DEVICE, "root")

    def cut(self, host: Host) -> None:
        _do("bridge", "link", "set", "dev", _port(host), "state", DISABLED)

    def heal(self, host: Host) -> None:
        _do("bridge", "link", "set", "dev", _port(host), "state", FORWARDING)

    def close(self) -> None:
        _do("ip", "link", "delete", BRIDGE)


def has_netem() -> bool:
    """Whether this kernel has it: tried on the loopback device of a namespace that goes away at once."""
    tried = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", *_netem(0.001, 0.01)]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def _netem(delay: float, loss: float) -> list[str]:
    return ["delay", f"{1000 * delay:g}ms", "loss", f"{100 * loss:g}%", "limit", "100000"]


def _port(host: Host) -> str:
    return f"to-{host.name}"[:15]


def _do(*words: str) -> None:
    subprocess.run(words, check=True)
