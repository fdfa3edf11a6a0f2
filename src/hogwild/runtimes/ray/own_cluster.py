"""Processes of a Ray cluster that this program starts: none outlives the program or a failed start."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

from hogwild.runtimes.ray import watchdog

REAP_SECONDS = 20.0  # limit of the wait for the watchdog, which itself needs at most half of it
# Methods of Ray's class of a node, each of which starts a process of Python.
UNNEEDED = "start_monitor", "start_log_monitor", "start_api_server"


@dataclass(frozen=True, slots=True)
class OwnCluster:
    """Cluster that is started and ended within a block of `own_cluster`."""

    watching: subprocess.Popen[bytes]
    mark: str

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Mark all processes that Ray starts within the block, and those that they start later.

        ``SPT_NOENV`` keeps Ray's agents from writing their titles over their variables, and so over the mark.
        """
        given = {name: os.environ.get(name) for name in (watchdog.MARK, "SPT_NOENV")}
        os.environ.update({watchdog.MARK: self.mark, "SPT_NOENV": "1"})
        try:
            yield
        finally:
            for name, value in given.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    @contextmanager
    def few_processes(self) -> Iterator[None]:
        """Keep Ray from starting processes, within the block, that the cluster of one run does not need.

        These are the autoscaler, the collector of what workers print, which is switched off, and the server of the
        dashboard, which starts without the dashboard, too. Ray waits for the last one, and stops one after the other.
        """
        from ray._private.node import Node

        given = {name: getattr(Node, name) for name in UNNEEDED if hasattr(Node, name)}
        for name in given:
            setattr(Node, name, _nothing)
        try:
            yield
        finally:
            for name, method in given.items():
                setattr(Node, name, method)

    def tell(self, message: bytes) -> None:
        """Send a message to the watchdog."""
        assert self.watching.stdin is not None
        with suppress(OSError):  # the watchdog was killed: the cluster is stopped without it
            self.watching.stdin.write(message)


def _nothing(node: object, **options: object) -> None:
    """Start nothing."""


@contextmanager
def own_cluster() -> Iterator[OwnCluster]:
    """Provide the mark for a cluster, and end all processes that have it when the block or the program ends.

    The watchdog has a session of its own, so that neither Ctrl-C nor a signal to the program's group ends it.

    Yields
    ------
    OwnCluster
        The cluster, of which no process has been started yet.
    """
    mark = secrets.token_hex(16)
    with subprocess.Popen(
        [sys.executable, "-P", watchdog.__file__, str(os.getpid()), mark],
        bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as watching:  # fmt: skip
        cluster = OwnCluster(watching, mark)
        try:
            yield cluster
        finally:
            children = set(psutil.Process().children()).intersection(watchdog.marked(mark))
            cluster.tell(watchdog.END)
            psutil.wait_procs(children, timeout=REAP_SECONDS)  # or they would stay as zombies
