"""Tables of a compiled simulation: their first contents, and more room in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.delays import named
from hogwild.kernels.simulation import tables
from hogwild.kernels.simulation.loop import SPARE_RECORDS
from hogwild.kernels.simulation.random_durations import addresses
from hogwild.kernels.simulation.tables import BLOCK, FIRST_WORKER, STARTED, Tables
from hogwild.messaging.compiled_job import CompiledJob
from hogwild.messaging.deltas import Floats
from hogwild.messaging.job import MessageJob
from hogwild.runtimes.simulator.compiled_durations import constant_delays, split
from hogwild.runtimes.simulator.retransmission import retransmission_timeout
from hogwild.strategies.roles.worker_progress import REPORTS, REQUESTS

if TYPE_CHECKING:
    from hogwild.runtimes.simulator import Simulator

# Bytes of the orders of rows of several epochs: fast workers are in later epochs than slow ones. A burst needs all
# epochs that it spans, however large their orders are.
ORDER_BYTES = 2**26
FIRST_RATES = 2**14  # number of step sizes that are computed first
MANY_DELAYS = 2**16  # number of changes whose staleness is counted together


def new_tables(
    runtime: Simulator, job: MessageJob, compiled: CompiledJob, names: list[str],
    streams: tuple[np.random.Generator, np.random.Generator],
) -> Tables:  # fmt: skip
    """Return the tables of a run that is about to start."""
    rows, server, config, nodes = compiled.rows, compiled.server, job.config, len(names)
    state = rows.start(config.start)
    start, each = np.concatenate([part.ravel() for part in state]), state[1].size
    values = np.empty((2 * config.workers + FIRST_WORKER, start.size), np.float32)
    values[:FIRST_WORKER] = start
    n_rows, features = len(rows.data[0]) - 1, state[0].size // each
    most = min(server.push_every * rows.longest, features)  # features that a burst touches
    blocks = -(-(most + 1) * each // BLOCK)
    assert config.goal is not None
    spanned = server.push_every // (n_rows // config.workers) + 2
    epochs = max(spanned, min(config.goal // n_rows + 2, ORDER_BYTES // (8 * n_rows)))
    found = Tables(
        run=np.zeros(1, tables.RUN),
        nodes=_nodes(runtime, job, names),
        channels=_channels(nodes),
        messages=np.zeros(8 * nodes, tables.MESSAGE),
        events=np.zeros(16 * nodes, tables.EVENT),
        changes=np.zeros(4 * nodes, tables.CHANGE),
        block_numbers=np.zeros((nodes + blocks, BLOCK), np.uint32),
        block_values=np.zeros((nodes + blocks, BLOCK), np.float32),
        block_following=np.zeros(nodes + blocks, np.int64),
        commands=np.zeros(2 * nodes, tables.COMMAND),
        traffic=np.zeros(len(tables.MESSAGE_NAMES), tables.TRAFFIC),
        values=values,
        delays=np.zeros((max(MANY_DELAYS, 2 * nodes), 2), np.int64),
        lags=np.zeros((server.bound or 0) + 1, np.int64),
        clocks=np.zeros(1 if server.bound is None else config.quota // server.push_every + 2, np.int64),
        waiting=np.zeros(nodes, np.int64),
        peers=np.zeros((2, nodes + 1), np.int64),
        rates=rows.rates(0, FIRST_RATES),
        burst_rates=np.zeros(server.push_every, np.float32),
        orders=np.zeros((epochs, n_rows), np.int64),
        epochs=np.full(epochs, -1, np.int64),
        stamps=np.zeros(features, np.int64),
        touched=np.zeros(most, np.int64),
        row_starts=rows.data[0],
        columns=rows.data[1],
        burst_rows=np.zeros(server.push_every, rows.order_type),
        trained=state[0],
        beside=state[1],
        bits=np.stack([addresses(stream) for stream in streams]),
    )
    _set_options(found.run[0], runtime, job, compiled)
    sizes = {
        "size": start.size, "each": each, "rows": n_rows, "most_blocks": blocks, "queued": nodes, "count": nodes,
        "order_bytes": found.burst_rows.itemsize, "column_bytes": found.columns.itemsize,
    }  # fmt: skip
    for name, size in sizes.items():
        found.run[name] = size
    for node in range(nodes):
        found.events[node] = 0.0, node + 1, 0, 0, STARTED, node
    return _addressed(found)


def state_in(t: Tables, slot: int) -> tuple[Floats, ...]:
    """Return the parameters of a slot as a state."""
    values, features = t.values[slot], t.trained.size
    return values[:features].reshape(t.trained.shape), values[features:].reshape(t.beside.shape)


def _addressed(t: Tables) -> Tables:
    """Write the addresses of tables into the record of the run."""
    run = t.run[0]
    run["nodes_address"], run["nodes"] = t.nodes.ctypes.data, len(t.nodes)
    for name in tables.NAMES:
        table = getattr(t, name)
        run[f"{name}_address"], run[f"{name}_length"] = table.ctypes.data, table.size
    return t


def _nodes(runtime: Simulator, job: MessageJob, names: list[str]) -> Any:
    found = np.zeros(len(names), tables.NODE)
    for field in ("unseen_first", "unseen_last", "change", "pending", "version", "pull_clock", "asked_at", "waits"):
        found[field] = -1
    found["by_name"] = np.argsort(np.array(names), kind="stable")
    workers = np.arange(job.config.workers)
    found["slot"][FIRST_WORKER:] = FIRST_WORKER + 2 * workers
    found["spare"][FIRST_WORKER:] = FIRST_WORKER + 2 * workers + 1
    found["factor"] = found["latency_factor"] = 1.0
    for field, delay in (("factor", runtime.compute_time), ("latency_factor", runtime.link.latency)):
        for number, factor in split(named(delay))[1].items():
            if number < job.config.workers:
                found[field][FIRST_WORKER + number] = factor
    found["delay"][FIRST_WORKER:] = constant_delays(runtime.delay, job.config.workers)
    return found


def _channels(nodes: int) -> Any:
    found = np.zeros(4 * nodes, tables.CHANNEL)
    found["first"] = found["last"] = found["awaited"] = -1
    everyone = np.arange(nodes)
    for place, hub in ((0, tables.COORDINATOR), (2, tables.SERVER)):
        towards, away = (found[(place + k) * nodes : (place + k + 1) * nodes] for k in (0, 1))
        towards["sender"], towards["receiver"] = everyone, hub
        away["sender"], away["receiver"] = hub, everyone
    return found


def _set_options(run: Any, runtime: Simulator, job: MessageJob, compiled: CompiledJob) -> None:
    config, link, server = job.config, runtime.link, compiled.server
    options = {
        "workers": config.workers, "epoch": config.epoch, "goal": config.goal, "quota": config.quota,
        "window": config.window, "patience": retransmission_timeout(runtime, job), "push_every": server.push_every,
        "pull_every": server.pull_every, "run_ahead": server.run_ahead,
        "bound": -1 if server.bound is None else server.bound, "mean": server.mean, "rounds": server.rounds,
        "bandwidth": link.bandwidth, "loss": link.loss, "duplication": link.duplication,
        "reordering": link.reordering, "span": compiled.rows.span, "alike": compiled.rows.alike,
        "reports": REPORTS, "requests": REQUESTS, "loss_limit": config.loss_limit,
        "step": np.nan, "answered_at": -1, "training_workers": 1,
    }  # fmt: skip
    for name, value in options.items():
        run[name] = value
    for name in ("free_message", "free_change", "free_block", "request", "open", "training"):
        run[name] = -1
    for name, delay in (("update", runtime.compute_time), ("latency", link.latency)):
        numbers = split(named(delay))[0]
        assert numbers is not None
        run[f"{name}_kind"], run[f"{name}_first"], run[f"{name}_second"] = numbers


def with_room(t: Tables, messages: int = 0) -> Tables:
    """Return tables with twice the room where it is short; ``messages`` more are about to be sent."""
    run, nodes = t.run[0], len(t.nodes)
    most = int(run["messages"]) + messages + 2 * nodes + SPARE_RECORDS
    blocks = int(run["blocks"]) + int(run["most_blocks"]) + 1
    needed = {
        "messages": most, "events": int(run["queued"]) + 4 * nodes + 2 * most + SPARE_RECORDS,
        "changes": int(run["changes"]) + SPARE_RECORDS, "commands": messages,
        "block_numbers": blocks, "block_values": blocks, "block_following": blocks,
    }  # fmt: skip
    longer = {
        name: _longer(getattr(t, name), 2 * rows) for name, rows in needed.items() if len(getattr(t, name)) < rows
    }
    return _addressed(t._replace(**longer)) if longer else t


def with_rates(t: Tables, rates: Any) -> Tables:
    """Return tables with more step sizes."""
    return _addressed(t._replace(rates=np.concatenate([t.rates, rates])))


def _longer(table: Any, rows: int) -> Any:
    found = np.zeros((rows, *table.shape[1:]), table.dtype)
    found[: len(table)] = table
    return found
