"""Machines of a cluster with disks of their own, in one machine: each has another folder mounted at the same path."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from clusters import NODE, cluster_of


def missing() -> str:
    """Why there can be no such machines here; nothing if there can."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "mounts of one process are Linux's (unshare)"
    tried = subprocess.run(["unshare", "-m", "mount", "--bind", "/", "/mnt"], capture_output=True, check=False)
    return tried.stderr.decode().strip() if tried.returncode else ""


class Machine:
    """A Ray node that sees ``own`` at the path ``disk``."""

    def __init__(self, address: str, own: Path, disk: Path, name: str) -> None:
        mount = f'mount --bind "{own}" "{disk}" && exec "$@"'
        start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--address={address}",
                 f"--num-cpus={NODE['num_cpus']}", f"--object-store-memory={NODE['object_store_memory']}",
                 f'--resources={{"{name}": 1}}']  # fmt: skip
        command = ["unshare", "-m", "sh", "-c", mount, "sh", *start]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.name = name

    def wait(self, seconds: float = 90.0) -> str:
        """Wait until the node is there, and return its id."""
        import ray

        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            assert self.process.poll() is None, "the node has ended"
            for node in ray.nodes():
                if node["Alive"] and self.name in node["Resources"]:
                    return str(node["NodeID"])
            time.sleep(0.2)
        raise TimeoutError(self.name)

    def end(self) -> None:
        """Kill all of its processes at once."""
        with suppress(psutil.NoSuchProcess):
            mine = psutil.Process(self.process.pid)
            for process in (mine, *mine.children(recursive=True)):
                with suppress(psutil.Error):
                    os.kill(process.pid, signal.SIGKILL)
        self.process.wait()


class Disks:
    """A cluster: this machine, and others that are started with folders of their own."""

    def __init__(self, cluster: Any, root: Path, ends: ExitStack) -> None:
        self.cluster, self.disk, self._root, self._ends = cluster, root / "disk", root, ends
        self.disk.mkdir()

    def folder(self, name: str) -> Path:
        """What a machine has at ``disk``, seen from here."""
        own = self._root / name
        own.mkdir(exist_ok=True)
        return own

    def start(self, name: str) -> Machine:
        machine = Machine(self.cluster.address, self.folder(name), self.disk, name)
        self._ends.callback(machine.end)
        return machine


@contextmanager
def disks(root: Path) -> Iterator[Disks]:
    """A cluster of this machine alone, to which others can be added."""
    with cluster_of(1) as cluster, ExitStack() as ends:
        yield Disks(cluster, root, ends)
