"""How much of a training step is waiting for input, looking up rows, the dense layers, and updating rows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


class NoProfile:
    """Nobody watches: nothing is measured and nothing is waited for."""

    def part(self, name: str, near: Any) -> AbstractContextManager[None]:
        """A part of a step."""
        return nullcontext()


NO_PROFILE = NoProfile()


class StepProfile:
    """The seconds of each part of the steps of a net whose tables it watches.

    A loader that is given it measures the input and counts the steps. What is neither input nor lookup nor update is
    the dense layers with their optimiser. On a GPU each part is waited for, so that steps are slower than unwatched.

    >>> profile = StepProfile()
    >>> with profile.part("lookup", torch.zeros(1)):
    ...     pass
    >>> profile.step(1.0)
    >>> sorted(profile.shares())
    ['dense', 'input', 'lookup', 'update']
    """

    def __init__(self, net: Any = None) -> None:
        self.seconds = dict.fromkeys(("input", "lookup", "update"), 0.0)
        self.total, self.steps = 0.0, 0
        for module in net.modules() if net is not None else ():
            if hasattr(module, "profile"):
                module.profile = self

    @contextlib.contextmanager
    def part(self, name: str, near: Any) -> Iterator[None]:
        """A part of a step; ``near`` is a tensor on the device that does it."""
        on_gpu = near.device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize(near.device)
        begun = time.perf_counter()
        yield
        if on_gpu:
            torch.cuda.synchronize(near.device)
        self.seconds[name] += time.perf_counter() - begun

    def step(self, seconds: float, waited: float = 0.0) -> None:
        """A whole step is over; of its seconds, so many were spent waiting for input."""
        self.total += seconds
        self.seconds["input"] += waited
        self.steps += 1

    def shares(self) -> dict[str, float]:
        """The share of each part."""
        total = max(self.total, sum(self.seconds.values()), 1e-12)
        parts = {name: seconds / total for name, seconds in self.seconds.items()}
        return {**parts, "dense": 1 - sum(parts.values())}

    def __str__(self) -> str:
        """In words, for people."""
        each = ", ".join(f"{name} {share:.0%}" for name, share in self.shares().items())
        return f"{1000 * self.total / max(1, self.steps):.2f} ms a step: {each}"
