"""Callbacks: callables that receive the events of a run. Each has a module of its own and an entry here."""

from __future__ import annotations

from hogwild.callbacks.dashboard import Live
from hogwild.callbacks.log_files import JsonLines, TensorBoard
from hogwild.callbacks.progress import Progress

__all__ = ["JsonLines", "Live", "Progress", "TensorBoard"]
