"""When a node that does not answer counts as crashed."""

from __future__ import annotations

import pytest

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")

from hogwild.runtimes.ray.actor import ActorLocation, Heartbeat
from hogwild.runtimes.ray.failure_detector import IRREPLACEABLE, PREPARING, FailureDetector
from hogwild.runtimes.ray.placement import ActorRecord

DETECTOR = FailureDetector(heartbeat_timeout=3.0, startup_timeout=60.0)


def record(name: str = "worker-0", *, ready: bool = True, asked: bool = True) -> ActorRecord:
    return ActorRecord(
        name, 0, None, 100.0, 100.0, object() if asked else None, location=ActorLocation("node-a", "machine", 7, ""),
        heartbeat=Heartbeat(ready=ready),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("node", "limit"),
    [
        (record(), 3.0),
        (record(ready=False), 3.0 * PREPARING),
        (record("coordinator"), 3.0 * IRREPLACEABLE),
    ],
    ids=["ready", "preparing", "coordinator"],
)
def test_a_node_that_is_asked_and_does_not_answer_has_failed(node: ActorRecord, limit: float) -> None:
    assert not DETECTOR.has_failed(node, 100.0 + limit)
    assert DETECTOR.has_failed(node, 100.0 + limit + 0.01)


def test_a_node_that_was_not_asked_has_not_failed() -> None:
    assert not DETECTOR.has_failed(record(asked=False), 1e9)


def test_a_process_that_is_never_ready_is_late() -> None:
    assert DETECTOR.is_late(record(ready=False), 160.1)
    assert not DETECTOR.is_late(record(ready=False), 159.9)
    assert not DETECTOR.is_late(record(), 1e9)


def test_a_driver_that_slept_blames_nobody() -> None:
    assert DETECTOR.suspended(1.6)
    assert not DETECTOR.suspended(1.4)
