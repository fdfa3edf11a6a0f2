"""How results are written down: with the machine, the versions and the commit they were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent / "results"


def machine() -> str:
    """The processor, its cores, how busy they are, and the versions that matter."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(": ", 1)[1] if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scikit-learn"))
    load = f"load {os.getloadavg()[0]:.1f} at the end"
    return f"{model}, {cores} cores ({load}), {platform.system()}, Python {platform.python_version()}, {versions}"


def commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "no commit"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def write(name: str, title: str, text: list[str]) -> None:
    """Print a report and keep it in ``results/NAME.md``."""
    today = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}"
    report = "\n".join([f"# {title}", "", f"{today}. {machine()}.", "", *text, ""])
    print(report)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.md").write_text(report)
