"""Timeout after which simulated nodes send unacknowledged messages again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hogwild.delays import named
from hogwild.messaging.job import MessageJob

if TYPE_CHECKING:
    from hogwild.runtimes.simulator import Simulator

RESEND = 4.0  # retransmission timeout, as a multiple of the longest expected round trip
DRAWS = 32  # durations of which the longest is expected


def retransmission_timeout(runtime: Simulator, job: MessageJob, recorded: tuple[float, float] | None = None) -> float:
    """Return the retransmission timeout, in seconds.

    ``recorded`` are the longest latency and handling of a recorded run. The timeout exceeds every expected round trip.
    A needless retransmission costs handling time, for which other messages wait.
    """
    link, trial = runtime.link, np.random.default_rng(0)
    if recorded is not None:
        longest, handling = recorded
    else:
        longest = max(named(link.latency).draw(trial, 0, k) for k in range(DRAWS))
        handling = max(named(runtime.handling_time).draw(trial, 0, k) for k in range(DRAWS))
    # All nodes may send to the same node at once, which handles them in turn and answers over one uplink.
    queue = (handling + job.config.start.nbytes / link.bandwidth) * len(job.roles)
    return float(RESEND * 2 * (longest * (10 if link.reordering else 1) + queue) + 1e-3)
