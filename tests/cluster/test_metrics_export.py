"""Metrics are really read from a node, where Ray has what it takes for that."""

from __future__ import annotations

import os
import subprocess
import sys

import own_clusters
import pytest

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
for module in ("aiohttp", "opentelemetry.exporter.prometheus", "opencensus"):
    pytest.importorskip(module, reason="pip install 'hogwild[cluster]': nodes without it export nothing")

pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster")

PROGRAM = """
import time, urllib.request
from collections import Counter
import ray
from hogwild.runtimes.ray.node_stats import Metrics
from hogwild.runtimes.ray.node_stats import Throughput

system = {"metrics_report_interval_ms": 300}
options = {"include_dashboard": False, "logging_level": "error", "_system_config": system}
ray.init("local", num_cpus=1, _metrics_export_port=PORT, **options)
metrics = Metrics("run-1")
metrics.record("worker-0", Throughput(1.0, 8, 2, 3, 500, {"worker-0": Counter({2: 3})}))
metrics.restarted("worker-0")
for _ in range(300):
    try:
        text = urllib.request.urlopen("http://127.0.0.1:PORT/metrics", timeout=5).read().decode()
    except OSError:
        text = ""
    if all(f"ray_hogwild_{name}" in text for name in ("staleness_count", "restarts_total")):
        break
    time.sleep(0.1)
print("\\n".join(line for line in text.splitlines() if line.startswith("ray_hogwild_")))
ray.shutdown()
"""


def test_prometheus_finds_them(tmp_path):
    program = PROGRAM.replace("PORT", str(own_clusters.free_port()))
    variables = own_clusters.environment(tmp_path, RAY_AUTH_MODE="disabled")
    ended = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=200, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = {}
    for line in ended.stdout.splitlines():
        name, _, rest = line.partition("{")
        tags, _, value = rest.rpartition("} ")
        assert 'run="run-1"' in tags
        assert 'node="worker-0"' in tags
        found[name.removeprefix("ray_hogwild_")] = float(value)
    counts = {"updates_total": 8, "bursts_total": 2, "pushes_total": 3, "bytes_total": 500, "restarts_total": 1}
    assert found.items() >= {**counts, "staleness_count": 3}.items()
