"""How results are written down: with the machine, the versions and the commit they were measured on."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
# What quiet.state said before the benchmark that is run.
before = "not known whether it was quiet"


def machine() -> str:
    """The processor, its cores, how busy they were before the start, and the versions that matter."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(": ", 1)[1] if names else model
    versions = ", ".join(f"{name} {version_of(name)}" for name in ("numpy", "numba", "scikit-learn"))
    return f"{model}, {cores()} cores ({before}), {platform.system()}, Python {platform.python_version()}, {versions}"


def cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def version_of(package: str) -> str | None:
    """The version of a package, or None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "no commit"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def span(numbers: Sequence[float], form: str = ".2f", unit: str = "") -> str:
    """The median, and from least to most.

    >>> span([3.0, 1.0, 2.0], ".1f", "x")
    '2.0x (1.0 to 3.0)'
    """
    return f"{statistics.median(numbers):{form}}{unit} ({min(numbers):{form}} to {max(numbers):{form}})"


def write(
    name: str, title: str, text: Sequence[str], out: Path = FOLDER, raw: Any = None, *, printed: bool = True
) -> None:
    """Print a report and keep it in ``NAME.md``, and what it was made of, if given, in ``NAME.json``."""
    today = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}"
    about = f"{today}. {machine()}."
    report = "\n".join([f"# {title}", "", about, "", *text, ""])
    if printed:
        print(report, flush=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text(report)
    if raw is not None:
        (out / f"{name}.json").write_text(json.dumps({"about": about, "results": raw}) + "\n")
