"""Charts of conflicts: the staleness of updates, and heat maps of the writes of each worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hogwild.lab.report_model import Chart, Map, Series

MOST = 64  # maximum number of different delays in a chart


def staleness_chart(histogram: Mapping[str, int], title: str = "Staleness") -> Chart:
    """Make a histogram of the staleness of updates.

    >>> staleness_chart({"0": 5, "2": 1}).series[0].x
    [0, 2]
    """
    delays = sorted(map(int, histogram))[:MOST]
    return Chart(
        title, "updates by others between reading and writing", "updates",
        (Series("updates", delays, [histogram[str(delay)] for delay in delays], style="bars"),),
        "How many updates were how stale.", log_y=True,
    )  # fmt: skip


def heat_maps(heat: Sequence[Any], groups: Sequence[Mapping[str, Any]], workers: int) -> list[Map]:
    """Make a heat map of the writes of each of the first ``workers`` workers, from ``heat[worker][moment][group]``."""
    return [
        Map(
            f"Writes of worker {worker}", "time (share of the run)", "coordinates, the most frequent first",
            [round(moment / len(moments), 3) for moment in range(len(moments))],
            [f"from {group['from_rank']:,}" for group in groups],
            [list(column) for column in zip(*moments, strict=True)], "writes",
            "How often this worker wrote to each group of coordinates at each time.", log=True,
        )
        for worker, moments in enumerate(heat[:workers])
    ]  # fmt: skip
