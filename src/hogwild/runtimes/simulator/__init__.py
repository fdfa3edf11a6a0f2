"""Message-passing strategies in simulated time: parameters and gradients are computed, only durations are simulated."""

from __future__ import annotations

from hogwild.runtimes.messaging.faults import Crash, Crashes
from hogwild.runtimes.messaging.network_model import Link
from hogwild.runtimes.simulator.config import Simulator

__all__ = ["Crash", "Crashes", "Link", "Simulator"]
