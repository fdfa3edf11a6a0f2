"""Executions that failed once or would without something that is easily left out, small ones of each kind."""

from __future__ import annotations

from executions import Execution

from hogwild.runtimes.messaging.injected_faults import Crash, Link
from hogwild.strategies import AllToAll, Gossip, ParameterServer

REGRESSIONS = {
    # Several messages are delivered at once, the state is kept after the first, and the server crashes: the others had
    # been counted as come.
    "kept in the middle of a delivery": Execution(
        ParameterServer(1, 2, combine="sum"),
        epochs=3,
        link=Link("exponential:0.0003"),
        faults=(Crash("worker-0", 0.0, 0.0), Crash("server-0", 0.0052, 0.0)),
    ),
    # The server has been told that a worker is gone before it is told to begin with it.
    "lost before it began": Execution(
        ParameterServer(3, combine="sum"), faults=(Crash("worker-1", 0.0, None),), detection=0.0002
    ),
    # It is told to begin with a worker that has left already.
    "left before it began": Execution(ParameterServer(1, combine="sum"), seconds=0.0),
    # A server comes back, and one that it waits for has never been heard of and died meanwhile.
    "lost while the server was away": Execution(
        ParameterServer(2, combine="sum"),
        faults=(Crash("worker-1", 0.0, None), Crash("server-0", 0.0003, 0.0)),
        detection=0.0003,
    ),
    # Two lives of a worker push for the same clock.
    "two pushes of one clock": Execution(
        ParameterServer(3, staleness=0, combine="sum"),
        bursts=4,
        slow={1: 20.0},
        faults=(Crash("worker-0", 0.004, 0.001),),
        late={2: 0.003},
    ),
    # A server comes back without knowing that somebody has entered, while another waits for that one.
    "entered before the server crashed": Execution(
        ParameterServer(2, staleness=0, combine="sum"),
        bursts=20,
        slow={1: 20.0},
        link=Link(loss=0.2),
        faults=(Crash("server-0", 0.012, 0.0),),
        late={1: 0.003},
        seed=9,
    ),
    # Somebody waits for parameters, which the server has kept that it was told, but not that it was to be answered.
    "asked before the server crashed": Execution(
        ParameterServer(4, staleness=0, combine="sum"),
        bursts=4,
        slow={2: 20.0},
        faults=(Crash("server-0", 0.01, 0.0),),
        late={3: 0.004},
    ),
    # A server no longer waits for a lost worker, answers a clock and crashes. It comes back to the clock before, at
    # which the worker enters again, while another worker has the answer and waits for the other server.
    "answered before the server crashed": Execution(
        ParameterServer(5, 2, staleness=0, pull_every=1, combine="sum"),
        bursts=2,
        epochs=2,
        link=Link("heavy-tail:0.0001"),
        faults=(Crash("worker-1", 0.0, 0.0078), Crash("worker-0", 0.0031, 0.0397), Crash("server-1", 0.0111, 0.0358)),
        detection=0.0079,
        seed=613,
    ),
    # The same with one server, while another worker trains for several clocks on what it was answered.
    "trained on what was answered before the server crashed": Execution(
        ParameterServer(3, staleness=3, pull_every=4, combine="sum"),
        bursts=8,
        slow={0: 20.0},
        faults=(Crash("worker-0", 0.01, 0.0005), Crash("server-0", 0.0105, 0.0)),
    ),
    # A worker that is there but not ready was dealt shards, and began twice.
    "dealt with before it was ready": Execution(ParameterServer(3, combine="sum"), late={1: 0.0002, 2: 0.0002}),
    # A worker is told to end, and then to begin.
    "ended before it began": Execution(
        ParameterServer(1, 3, staleness=0, push_every=2, combine="sum"),
        seconds=0.0,
        compute="log-normal:0.001:1.0",
        link=Link("heavy-tail:0.0001"),
        seed=2,
    ),
    # All workers have ended before the run begins.
    "all over before it began": Execution(
        ParameterServer(2, combine="sum"), seconds=0.0, link=Link("heavy-tail:0.0001"), seed=8
    ),
    # A worker ends in a life in which it never began, and another waits for the last change of the life before.
    "ended in its second life": Execution(
        AllToAll(3, synchronous=False, period=2),
        link=Link("exponential:0.0003", loss=0.12),
        faults=(Crash("worker-0", 0.0, 0.0), Crash("worker-0", 0.0008, 0.0)),
    ),
    # A worker is told to begin with somebody who was gone before it came.
    "gone before another came": Execution(
        AllToAll(3, synchronous=False, period=2),
        faults=(Crash("worker-0", 0.0, 0.0), Crash("worker-1", 0.0, None)),
        detection=0.0022,
    ),
    "gone before another came to meet it": Execution(
        Gossip("clique", synchronous=False, workers=3),
        bursts=6,
        faults=(Crash("worker-0", 0.0, 0.0), Crash("worker-1", 0.0, None)),
        detection=0.0022,
    ),
    # Time is up, and the last worker crashes before it has ended.
    "nobody left to end": Execution(
        ParameterServer(1, combine="sum"), bursts=100, seconds=0.005, faults=(Crash("worker-0", 0.0045, None),)
    ),
    # A server begins after workers have pushed ahead. Its reply to an earlier pull contained what they add again.
    "pushed before the server began": Execution(
        ParameterServer(2, combine="sum"),
        epochs=2,
        compute="exponential:0.001",
        link=Link(0.003),
        faults=(Crash("server-0", 0.0, 0.0069),),
        run_ahead=1,
        resident=True,
    ),
}
