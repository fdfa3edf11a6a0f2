"""Strategies by messages in simulated time: real parameters and gradients, only the clock is made up."""

from __future__ import annotations

from hogwild.runtimes.messaging.faults import Crash, Crashes
from hogwild.runtimes.messaging.network_model import Link
from hogwild.runtimes.simulator.config import Simulator

__all__ = ["Crash", "Crashes", "Link", "Simulator"]
