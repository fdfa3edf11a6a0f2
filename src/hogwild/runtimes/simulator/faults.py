"""Who crashes when, and whether it comes back."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.naming import must


@dataclass(frozen=True, slots=True)
class Crash:
    """A participant crashes at a time and is started again after a while, or never."""

    who: str
    at: float
    back_after: float | None = None

    def __post_init__(self) -> None:
        if not self.at >= 0:
            raise must("at", "a number of seconds", self.at)
        if self.back_after is not None and not self.back_after >= 0:
            raise must("back_after", "a number of seconds, or None for never", self.back_after)


@dataclass(frozen=True, slots=True)
class Crashes:
    """Every worker (and every server) crashes at random, ``every`` so many seconds on average, and comes back."""

    every: float
    back_after: float = 1.0
    servers: bool = False

    def __post_init__(self) -> None:
        if not self.every > 0:
            raise must("every", "a positive number of seconds", self.every)
