"""Strategies by messages in simulated time: real parameters and gradients, only the clock is made up."""

from __future__ import annotations

from hogwild.runtimes.faults import Crash, Crashes
from hogwild.runtimes.links import Link
from hogwild.runtimes.simulator.runtime import Simulator

__all__ = ["Crash", "Crashes", "Link", "Simulator"]
