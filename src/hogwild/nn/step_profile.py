"""Profile of training steps: shares of input, lookup, dense layers, and update."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


class NoProfile:
    """Disabled profile, which measures nothing and waits for nothing."""

    def part(self, name: str, near: torch.Tensor) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()


NO_PROFILE = NoProfile()


class StepProfile:
    """Seconds of each part of the training steps of a network with sparse tables.

    A loader that has the profile measures the input and counts the steps. The rest, which is neither input nor lookup
    nor update, belongs to the dense layers with their optimiser. On a GPU, the profile waits for each part, so that
    steps are slower than without it.

    Parameters
    ----------
    net : torch.nn.Module, optional
        Network whose tables are measured.

    Examples
    --------
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
    def part(self, name: str, near: torch.Tensor) -> Iterator[None]:
        """Measure the time of the enclosed part of a step; ``near`` is a tensor on the device that executes it."""
        on_gpu = near.device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize(near.device)
        begun = time.perf_counter()
        yield
        if on_gpu:
            torch.cuda.synchronize(near.device)
        self.seconds[name] += time.perf_counter() - begun

    def step(self, seconds: float, waited: float = 0.0) -> None:
        """Count a whole step of ``seconds`` seconds, of which ``waited`` were spent waiting for input."""
        self.total += seconds
        self.seconds["input"] += waited
        self.steps += 1

    def shares(self) -> dict[str, float]:
        """Return the share of each part."""
        total = max(self.total, sum(self.seconds.values()), 1e-12)
        parts = {name: seconds / total for name, seconds in self.seconds.items()}
        return {**parts, "dense": 1 - sum(parts.values())}

    def __str__(self) -> str:
        """Return the mean milliseconds per step and the shares, in one line."""
        each = ", ".join(f"{name} {share:.0%}" for name, share in self.shares().items())
        return f"{1000 * self.total / max(1, self.steps):.2f} ms a step: {each}"
