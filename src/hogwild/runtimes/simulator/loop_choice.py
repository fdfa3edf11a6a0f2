"""Choice of the event loop of a simulated run: compiled where it gives the same run and pays, else in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hogwild.delays import Always, named
from hogwild.jit import is_cached
from hogwild.kernels.simulation.tables import FIRST_WORKER
from hogwild.machine import available_bytes
from hogwild.messaging.job import MessageJob
from hogwild.runtimes.simulator.compiled_durations import constant_delays, split

if TYPE_CHECKING:
    from hogwild.runtimes.simulator import Simulator

EVENTS_A_PUSH = 8  # events of a push, a pull, its reply, their acknowledgements, the burst and reports
EVENTS_A_WORKER = 20  # events of the start and the end of a worker
EVENT_SECONDS = 3e-5  # seconds of one event in Python
PAIR_SECONDS = 2e-7  # seconds in Python for each pair of nodes, each of which knows of the other
LOAD_SECONDS = 0.5  # seconds in Python that loading the compiled loop saves
COMPILE_SECONDS = 10.0  # seconds in Python that compiling it saves
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
    events = EVENTS_A_PUSH * config.goal / compiled.server.push_every + EVENTS_A_WORKER * config.workers
    seconds = EVENT_SECONDS * events + PAIR_SECONDS * config.workers**2
    return seconds > LOAD_SECONDS and (seconds > COMPILE_SECONDS or is_compiled())


def is_compiled() -> bool:
    """Return whether the compiled event loop is on disk. To look for it takes some time."""
    from hogwild.kernels.simulation.loop import simulate

    return is_cached(simulate)


def parameter_bytes(workers: int, size: int) -> int:
    """Return the bytes of the parameters of all nodes: a worker has a slot for those that it pulls beside its own."""
    return 4 * size * (2 * workers + FIRST_WORKER)
