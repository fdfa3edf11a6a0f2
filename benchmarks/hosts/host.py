"""A host: a network, processes, a name and shared memory of its own, on this machine's processor and disk."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

OWN = ("--net", "--mount", "--pid", "--uts", "--ipc")
FAITHFUL = ("setpriv", "--pdeathsig", "KILL", "--")  # who starts it takes it along
BOOT = 'hostname "$0" && ip link set lo up && mount -t tmpfs tmpfs /dev/shm && echo up && exec sleep infinity'


@dataclass(eq=False)
class Host:
    """``first`` is its first process, as this process sees it: when that ends, so does everything on the host."""

    name: str
    address: str
    first: int
    keeper: subprocess.Popen[str]

    def command(self, *words: str | Path) -> list[str]:
        """What has to be started here to have something started there."""
        return ["nsenter", f"--target={self.first}", *OWN, f"--wd={Path.cwd()}", "--", *FAITHFUL, *map(str, words)]

    def start(self, *words: str | Path, env: Mapping[str, str] | None = None, **how: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command(*words), env=env, text=True, **how)

    def run(self, *words: str | Path, env: Mapping[str, str] | None = None, limit: float = 60.0) -> str:
        """What a command says there. One that fails or takes too long is an error here."""
        done = subprocess.run(self.command(*words), env=env, text=True, capture_output=True, timeout=limit, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, words))} failed on {self.name}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def end(self) -> None:
        self.keeper.kill()  # which kills the first process, and the kernel all others
        self.keeper.wait()


def boot(name: str, address: str) -> Host:
    """A host without a network but its own."""
    keeper = subprocess.Popen(
        ["unshare", *OWN, "--fork", "--kill-child", "--mount-proc", "sh", "-c", BOOT, name],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert keeper.stdout is not None
    if keeper.stdout.readline() != "up\n":
        raise RuntimeError(f"The host {name} did not come up.")
    (first,) = psutil.Process(keeper.pid).children()
    return Host(name, address, first.pid, keeper)
