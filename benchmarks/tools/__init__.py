"""The tools that are compared. A new one is one file and one line here."""

from __future__ import annotations

from importlib import import_module

from benchmarks.results import version_of
from benchmarks.tools.way import Fit, Tool, Way

# The module of each, and the package it needs. The first of ``ours`` is what others are compared with.
TOOLS = {
    "ours": "hogwild",
    "scikit_sgd": "scikit-learn",
    "scikit_batch": "scikit-learn",
    "liblinear_official": "liblinear-official",
    "vowpal_wabbit": "vowpalwabbit",
    "snap_ml": "snapml",
    "x_learn": "xlearn",
}


def installed() -> tuple[list[Tool], list[str]]:
    """The tools that can be run here, and a line about each that cannot."""
    found: list[Tool] = []
    missing: list[str] = []
    for name, package in TOOLS.items():
        try:
            found += import_module(f"benchmarks.tools.{name}").TOOLS
        except (ImportError, OSError) as reason:
            state = "is not installed" if version_of(package) is None else f"does not load ({reason})"
            missing.append(f"`{package}` {state}, so it is not in the tables.")
    return found, missing


__all__ = ["TOOLS", "Fit", "Tool", "Way", "installed"]
