"""Callbacks: anything that hears of events as they happen. One file and one line here each."""

from __future__ import annotations

from hogwild.callbacks.dashboard import Live
from hogwild.callbacks.json_lines import JsonLines
from hogwild.callbacks.progress import Progress
from hogwild.callbacks.tensorboard import TensorBoard

__all__ = ["JsonLines", "Live", "Progress", "TensorBoard"]
