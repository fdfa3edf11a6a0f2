"""Choice of the event loop of a simulated run: compiled where it gives the same run and pays, else in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hogwild.delays import Always, named
from hogwild.jit import is_cached
from hogwild.kernels.simulation.loop import simulate
from hogwild.machine import available_bytes
from hogwild.messaging.job import MessageJob
from hogwild.runtimes.simulator.compiled_tables import constant_delays, parameter_bytes, split

if TYPE_CHECKING:
    from hogwild.runtimes.simulator import Simulator

EVENTS_A_PUSH = 8  # events of a push, a pull, its reply, their acknowledgements, the burst and reports
EVENT_SECONDS = 3e-5  # seconds of one event in Python
PAIR_SECONDS = 1e-7  # seconds in Python for each pair of nodes, each of which knows of the other
LOAD_SECONDS = 0.5  # seconds in Python that loading the compiled loop saves
COMPILE_SECONDS = 60.0  # seconds in Python that compiling it saves
MOST_UPDATES = 2**26  # updates whose step sizes fit into memory
MEMORY_SHARE = 0.5  # share of the available memory that the parameters of all workers may take


def is_compilable(runtime: Simulator, job: MessageJob) -> bool:
    """Return whether the compiled event loop can simulate a run.

    Nodes neither crash nor join late, handle messages at once, and take durations of known distributions. Nothing is
    saved or replayed, and the length of the run is given in epochs alone.
    """
    config = job.config
    steady = not (runtime.faults or runtime.join_times or runtime.trace) and runtime.handling_time == Always(0.0)
    durations = (split(named(delay))[0] for delay in (runtime.compute_time, runtime.link.latency))
    known = None not in durations and constant_delays(runtime.delay, config.workers) is not None
    alone = job.save is None and job.resumed is None and job.cores == 1
    plain = not (config.average or config.stall_scales) and config.seconds is None
    short = config.goal is not None and config.goal <= MOST_UPDATES
    return job.compiled is not None and steady and known and alone and plain and short


def pays(job: MessageJob) -> bool:
    """Return whether the compiled event loop saves more time than it takes to load, or to compile if it is new."""
    config, compiled = job.config, job.compiled
    assert compiled is not None
    assert config.goal is not None
    if parameter_bytes(config.workers, config.size) > MEMORY_SHARE * available_bytes():
        return False
    events = EVENTS_A_PUSH * config.goal / compiled.server.push_every
    seconds = EVENT_SECONDS * events + PAIR_SECONDS * config.workers**2
    return seconds > LOAD_SECONDS and (seconds > COMPILE_SECONDS or is_cached(simulate))
