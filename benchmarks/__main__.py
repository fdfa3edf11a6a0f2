"""``python -m benchmarks``: all of them, one after the other, because two at once would measure nothing."""

from __future__ import annotations

from benchmarks import parser, startup

for benchmark in (startup, parser):
    benchmark.main()
