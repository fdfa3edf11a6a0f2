"""Clusters that tests start in a process of their own: with a token, with certificates, or with neither."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

PROGRAM = """
import json, sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 2, "object_store_memory": 100 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
print(json.dumps(cluster.address), flush=True)
for line in sys.stdin:
    cluster.add_node(**node)
    print(json.dumps("added"), flush=True)
cluster.shutdown()
"""
LOCKS = ("RAY_AUTH", "RAY_USE_TLS", "RAY_TLS", "RAY_ADDRESS")


def environment(home: Path, **more: str) -> dict[str, str]:
    """The variables of this process, without what is said of clusters, and with a home where no token is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LOCKS)}
    return {**kept, "HOME": str(home), "RAY_USAGE_STATS_ENABLED": "0", **more}


class Head:
    """A cluster in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.address: str = self._heard()

    def add_node(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self._heard() == "added"

    def _heard(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the cluster could not be started"
        return str(json.loads(line))


@contextmanager
def running(variables: dict[str, str]):
    """A cluster of one node, for as long as the block lasts."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=variables, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield Head(process)
        finally:
            process.stdin.close()
            process.wait(60)


def certificates(folder: Path) -> dict[str, str]:
    """Variables that name a certificate for this machine, its key, and who signed it; made by openssl."""
    openssl = shutil.which("openssl")
    assert openssl is not None
    address = socket.gethostbyname(socket.gethostname())
    names = f"subjectAltName=DNS:localhost,DNS:{socket.gethostname()},IP:127.0.0.1,IP:{address},IP:{outward()}"
    (folder / "names").write_text(names)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for words in (
        ["req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=ca"],
        ["req", *key, "-keyout", "node.key", "-out", "node.csr", "-subj", "/CN=node"],
        ["x509", "-req", "-in", "node.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
         "-extfile", "names", "-out", "node.crt"],
    ):  # fmt: skip
        subprocess.run([openssl, *words], cwd=folder, check=True, capture_output=True)
    files = {"SERVER_CERT": "node.crt", "SERVER_KEY": "node.key", "CA_CERT": "ca.crt"}
    return {"RAY_USE_TLS": "1", **{f"RAY_TLS_{name}": str(folder / file) for name, file in files.items()}}


def outward() -> str:
    """The address of this machine that Ray takes: that from which it would send something out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plug:
        plug.connect(("8.8.8.8", 80))  # nothing is sent
        return str(plug.getsockname()[0])


def free_port() -> int:
    """A port that nobody has, at least now."""
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        return int(plug.getsockname()[1])
