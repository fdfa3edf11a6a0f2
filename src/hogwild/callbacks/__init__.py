"""Callbacks: callables that receive the events of a run. Each has a module of its own and an entry here."""

from __future__ import annotations

from hogwild.callbacks.dashboard import Live
from hogwild.callbacks.json_lines import JsonLines
from hogwild.callbacks.progress import Progress
from hogwild.callbacks.tensorboard import TensorBoard

__all__ = ["JsonLines", "Live", "Progress", "TensorBoard"]
