"""Compiled event loop of a simulated parameter server on rows; the coordinator's role reacts in Python.

The loop is that of :mod:`hogwild.kernels.simulation`. It gives the run that the Python event loop gives with the same
seed, in a small part of the time.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.kernels.simulation import tables
from hogwild.kernels.simulation.loop import SPARE_RECORDS, simulate
from hogwild.kernels.simulation.server import ANSWER_SLOT
from hogwild.kernels.simulation.tables import FIRST_WORKER, MESSAGE_NAMES
from hogwild.messaging.compiled_job import CompiledJob
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.job import MessageJob, Outcome, Traffic
from hogwild.messaging.messages import (
    COORDINATOR,
    Begin,
    Body,
    ParametersReply,
    ParametersRequest,
    Progress,
    Ready,
    Stop,
    Stopped,
)  # fmt: skip
from hogwild.messaging.protocol import (
    Action,
    Delivered,
    Emit,
    Evaluate,
    Evaluated,
    Event,
    Finish,
    Interrupted,
    Send,
    SetTimer,
    Started,
    TimerFired,
)
from hogwild.runtimes.simulator.compiled_tables import new_tables, state_in, with_rates, with_room
from hogwild.runtimes.simulator.memory_accounting import held_bytes_of_tables
from hogwild.strategies.roles.coordinator import Coordinator

if TYPE_CHECKING:
    from hogwild.runtimes.simulator import Simulator

PAUSE = 2**16  # events after which the loop returns, for Ctrl-C and reports of progress
FEW_COMMANDS = SPARE_RECORDS // 4  # messages of the coordinator for which there is always room
NEVER = 2**62  # number of terms that no run reaches


class CompiledLoop:
    """Compiled event loop of one simulated run; :mod:`hogwild.runtimes.simulator.loop_choice` tells which runs have it.

    All times are simulated seconds.
    """

    def __init__(self, runtime: Simulator, job: MessageJob, compiled: CompiledJob) -> None:
        self.runtime, self.job, self.rows = runtime, job, compiled.rows
        self._names = list(job.roles)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        # The tables hold addresses in these generators.
        self._streams = np.random.default_rng([job.seed, 1]), np.random.default_rng([job.seed, 2])
        self.tables = new_tables(runtime, job, compiled, self._names, self._streams)
        role = job.roles[COORDINATOR]()
        assert isinstance(role, Coordinator)
        self.coordinator = role
        self._commands: list[tuple[float, int, int, int, int, int, int]] = []
        self._timers: list[str] = []  # names of the timers that were set
        self._evaluated: list[Evaluated] = []  # results of evaluations
        self._delays: list[Counter[int]] = [Counter() for _ in range(job.config.workers)]
        self._interrupt_sent = False
        self.memory = self.memory_per_holder = 0  # maximal bytes of arrays, as in the Python event loop
        self._versions: dict[int, int] = {}  # versions of the parameters that the coordinator got, by their identity
        self._finish: tuple[Finish, float] | None = None

    @property
    def _run(self) -> Any:
        return self.tables.run[0]

    def play(self) -> Outcome:
        """Run until the coordinator ends the run, or until no event is left; return the outcome."""
        t = self.tables
        descent, self._run["descend"] = self.rows.descent(t.burst_rows, t.burst_rates, (t.trained, t.beside))
        self._put_order(0)
        while True:
            why = simulate(self.tables.run, descent, PAUSE)
            if why == tables.CALL:
                self._call()
            elif why == tables.FULL:
                self._count_delays()
                self.tables = with_room(self.tables)
            elif why == tables.RATES:
                self._add_rates()
            elif why == tables.ORDER:
                self._put_order(int(self._run["needed"]))
            elif why == tables.PAUSED:
                self._look_up()
            else:
                return self._outcome()

    # What the tables lack

    def _add_rates(self) -> None:
        known = len(self.tables.rates)
        needed = max(2 * known, int(self._run["needed"]) + 1)
        self.tables = with_rates(self.tables, self.rows.rates(known, needed))

    def _put_order(self, epoch: int) -> None:
        place = epoch % len(self.tables.epochs)
        self.tables.orders[place], self.tables.epochs[place] = self.rows.order(epoch), epoch

    def _count_delays(self) -> None:
        found = self.tables.delays[: self._run["delays"]]
        self._run["delays"] = 0
        pairs, counts = np.unique(found, axis=0, return_counts=True)
        for (worker, delay), count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self._delays[worker][delay] += count

    def _look_up(self) -> None:
        """Report progress, and pass an interrupt on to the coordinator."""
        run = self._run
        terms = int(run["terms"])
        self.job.emit(
            "progress", seconds=float(run["now"]), values=None, epoch=terms // max(1, self.job.config.epoch),
            updates=terms, terms=terms,
        )  # fmt: skip
        if not self._interrupt_sent and self.job.interrupted():
            self._interrupt_sent = True
            self._commands.append(self._event(tables.INTERRUPTED))
            self._write_commands()

    # Reactions of the coordinator

    def _call(self) -> None:
        """Call the coordinator's role, which reacts to an event."""
        run, role = self._run, self.coordinator
        role.terms = role.samples = int(run["terms"])
        role.loss, role.step = float(run["coordinator_loss"]), float(run["step"])
        role.clock, role.events_since_check = int(run["clock"]), int(run["heard"])
        # The reaction is complete before its actions are carried out, as that of a node is.
        for action in list(role.react(self._described())):
            self._execute(action)
        run["terms"], run["coordinator_loss"], run["step"] = role.terms, role.loss, role.step
        run["clock"], run["heard"] = role.clock, role.events_since_check
        run["due"], run["stopping"] = self._due(), bool(role.reason)
        run["training_workers"] = max(1, len(role.training))
        run["finished"] = self._finish is not None
        self._write_commands()

    def _due(self) -> int:
        """Return the number of terms at which a report of progress does more than raise the counts."""
        role, config = self.coordinator, self.job.config
        assert config.goal is not None
        due = NEVER if role.reason or role.rounds else config.goal
        if not (role.reason or role.asking or role.record):
            every = config.every.updates
            next_record = (role.measured[0] + 1) * max(1, config.epoch)
            due = min(due, 0 if role.timed else next_record, NEVER if every is None else role.measured[1] + every)
        return due

    def _described(self) -> Event:
        """Return the event to which the coordinator's role has to react."""
        run = self._run
        kind, number = int(run["event"]), int(run["message"])
        if kind == tables.STARTED:
            return Started()
        if kind == tables.TIMER:
            return TimerFired(self._timers[number])
        if kind == tables.EVALUATED:
            return self._evaluated[number]
        if kind == tables.INTERRUPTED:
            return Interrupted()
        sender = int(run["sender"])
        return Delivered(self._names[sender], self._body(self.tables.messages[number], sender))

    def _body(self, message: Any, sender: int) -> Body:
        kind = message["kind"]
        if kind == tables.READY:
            return Ready()
        if kind == tables.REPORT:
            terms = int(message["terms"])
            figures = float(message["loss"]), int(message["clock"]), float(message["step"])
            return Progress(sender - FIRST_WORKER, terms, terms, *figures)
        if kind == tables.STOPPED:
            return Stopped(self._counts(sender))
        assert kind == tables.PARAMETERS
        values = frozen(self.rows.vector(state_in(self.tables, ANSWER_SLOT)))
        self._versions[id(values)] = int(message["read"])
        return ParametersReply(int(message["terms"]), values, 0, int(self._run["least"]))

    def _counts(self, node: int) -> dict[str, Any]:
        if node >= FIRST_WORKER:
            found = self.tables.nodes[node]
            return {"terms": int(found["drawn"]), "clock": int(found["clock"])}
        self._count_delays()
        lags = {lag: int(count) for lag, count in enumerate(self.tables.lags) if count}
        delays = {self._names[FIRST_WORKER + w]: dict(found) for w, found in enumerate(self._delays) if found}
        return {"delays": delays, "lags": lags}

    # Actions of the coordinator

    def _execute(self, action: Action) -> None:
        if isinstance(action, Send):
            self._commands.append(self._message(self._numbers[action.to], action.body))
        elif isinstance(action, SetTimer):
            self._timers.append(action.name)
            self._commands.append(self._event(tables.TIMER, action.after, len(self._timers) - 1))
        elif isinstance(action, Evaluate):
            self._evaluated.append(Evaluated(action.number, self.job.measure(action.values, True)))
            self._commands.append(self._event(tables.EVALUATED, 0.0, len(self._evaluated) - 1))
        elif isinstance(action, Emit):
            self._emit(action)
        elif isinstance(action, Finish):
            self._finish = action, float(self._run["now"])
        else:
            raise TypeError(f"A compiled simulation has no action {action!r}.")

    @staticmethod
    def _event(kind: int, after: float = 0.0, number: int = 0) -> tuple[float, int, int, int, int, int, int]:
        return after, number, 0, 0, kind, 0, -1

    @staticmethod
    def _message(to: int, body: Body) -> tuple[float, int, int, int, int, int, int]:
        """Return the command to send a message; the numbers in it are those that the other nodes read."""
        if isinstance(body, Begin):
            return 0.0, 0, body.progress, max(1, len(body.members)), 0, tables.BEGIN, to
        if isinstance(body, ParametersRequest):
            return 0.0, 0, body.number, body.last, 0, tables.REQUEST, to
        if isinstance(body, Stop):
            return 0.0, 0, 0, 0, 0, tables.STOP, to
        raise TypeError(f"A compiled simulation has no message {body!r}.")

    def _write_commands(self) -> None:
        if len(self._commands) > FEW_COMMANDS:
            self.tables = with_room(self.tables, len(self._commands))
        self.tables.commands[: len(self._commands)] = self._commands
        self._run["commands"], self._run["called"] = len(self._commands), 1
        self._commands.clear()

    def _emit(self, action: Emit) -> None:
        now, traffic = float(self._run["now"]), self.tables.traffic
        if action.event == "epoch":
            memory, per_holder = held_bytes_of_tables(self.tables, self.coordinator, self._versions)
            self.memory, self.memory_per_holder = max(self.memory, memory), max(self.memory_per_holder, per_holder)
            action.what.update(seconds=now, messages=int(traffic["messages"].sum()), bytes=int(traffic["bytes"].sum()))
        what = {name: value for name, value in action.what.items() if name != "seconds"}
        self.job.emit(action.event, seconds=now, values=action.values, **what)

    def _outcome(self) -> Outcome:
        run, nodes = self._run, self.tables.nodes
        finish, now = self._finish or (Finish(None, "no node had anything left to do"), float(run["now"]))
        sent = [Traffic(*(int(count) for count in each)) for each in self.tables.traffic]
        traffic = {name: each for name, each in zip(MESSAGE_NAMES, sent, strict=True) if each.messages or each.receipts}
        traffic["all"] = Traffic(resent=int(nodes["resent"].sum()))
        workers, trained = self._names[FIRST_WORKER:], nodes[FIRST_WORKER:]
        values: Floats | None = finish.values
        return Outcome(
            values, finish.reason, finish.figures.get("record", {}), finish.figures.get("stopped", {}), now, traffic,
            {name: float(node["busy"]) for name, node in zip(workers, trained, strict=True) if node["bursts"]},
            dict.fromkeys(workers, now),
            {
                "events": int(run["events"]), "crashes": 0, "memory": self.memory,
                "memory_apart": self.memory_per_holder,
            },
        )  # fmt: skip
