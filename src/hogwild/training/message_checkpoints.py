"""Checkpoints of message-passing runs: consistent snapshots of the state of all nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hogwild.errors import CheckpointError
from hogwild.messaging.state_codec import joined, split
from hogwild.run import Event
from hogwild.training.checkpoints import check_same
from hogwild.training.event_log import EventLog
from hogwild.training.job import Job

KIND = "messages"


class MessageCheckpointer:
    """Writer of a run's snapshots, and reader of the last snapshot of the run that it resumes."""

    def __init__(self, job: Job) -> None:
        self.checkpoints, resume = job.checkpoints, job.options.resume
        found = self.checkpoints.load() if resume and self.checkpoints is not None else None
        self._arrays, self._record = found or ({}, {})
        self._virtual = job.runtime.simulated_time
        self.resume, self.config = resume, dict[str, Any]()
        self.more: dict[str, Any] = {}  # values that the driver stores in the checkpoint beside the snapshot
        self._event_log: EventLog | None = None

    @property
    def step(self) -> float | None:
        """The step size that the resumed run had chosen; None if there is none."""
        return self._record.get("step")

    @property
    def history(self) -> list[Event]:
        """The records of the epochs before the checkpoint."""
        return list(self._record.get("history", []))

    def begin(self, config: Mapping[str, Any], event_log: EventLog) -> None:
        """Check that the checkpoint belongs to the same run, and emit the epoch from which the run resumes."""
        self.config, self._event_log = dict(config), event_log
        at = {"at": 0.0} if self._virtual else {}
        if self._record:
            assert self.checkpoints is not None
            check_same(self.config, self._record.get("config", {}), self.checkpoints.folder)
            if self._record.get("by") != KIND:
                raise CheckpointError(f"{self.checkpoints.folder}: the checkpoint is not of a run by messages.")
            event_log.emit("resumed", epoch=self.history[-1]["epoch"], **at)
        elif self.resume:
            event_log.emit("resumed", epoch=0, message="there is no checkpoint yet: from the beginning", **at)

    @property
    def found(self) -> dict[str, Any] | None:
        """The snapshot from which the run resumes; None if it starts from the beginning."""
        if not self._record:
            return None
        try:
            cut: dict[str, Any] = joined(self._record["cut"], self._arrays)
        except (KeyError, TypeError) as reason:
            raise CheckpointError(f"The checkpoint is incomplete or inconsistent ({reason}).") from None
        return cut

    def save(self, cut: dict[str, Any]) -> None:
        """Write a snapshot as a checkpoint."""
        assert self.checkpoints is not None
        assert self._event_log is not None
        arrays: dict[str, Any] = {}
        history = self.history + epochs(self._event_log)
        record = {"by": KIND, "config": self.config, "history": history, "cut": split(cut, arrays), **self.more}
        self.checkpoints.save(arrays, record)
        at = {"at": round(cut["seconds"], 9)} if self._virtual else {}
        self._event_log.emit("checkpoint", epoch=history[-1]["epoch"], **at)


def epochs(event_log: EventLog) -> list[Event]:
    """Return the epoch records of an event log."""
    return [event for event in event_log.events if event["event"] == "epoch"]
