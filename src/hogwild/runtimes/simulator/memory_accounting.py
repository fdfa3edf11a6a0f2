"""Memory accounting of simulated nodes, which counts shared arrays once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hogwild.kernels.simulation.tables import FIRST_WORKER, Tables
from hogwild.messaging.deltas import SparseDelta
from hogwild.messaging.messages import Begin, ParametersReply, PullReply, ViewState
from hogwild.messaging.node import Node, Role
from hogwild.messaging.protocol import Train, Trained
from hogwild.messaging.snapshot import SnapshottingNode
from hogwild.strategies.roles.exchanges import AverageExchange, SumExchange

# Messages, events, actions and parts of roles that hold parameters.
WITH_VALUES = (Begin, ParametersReply, PullReply, ViewState, Train, Trained, AverageExchange, SumExchange)
# Attributes of roles that grow with every epoch and hold figures without arrays. To visit them at each epoch would take
# time that is quadratic in the number of epochs.
FIGURES = frozenset({"records"})


def held_bytes(nodes: Iterable[Node | SnapshottingNode]) -> tuple[int, int]:
    """Return the bytes of all arrays that roles hold: with each array counted once, and once per holder."""
    once: dict[int, int] = {}
    apart = 0
    for node in nodes:
        for array in _arrays(_held(node.role), depth=3):
            owner = array if array.base is None else array.base
            once[id(owner)] = getattr(owner, "nbytes", array.nbytes)
            apart += array.nbytes
    return sum(once.values()), apart


def held_bytes_of_tables(t: Tables, coordinator: Role, versions: Mapping[int, int]) -> tuple[int, int]:
    """Return the bytes that the nodes of a compiled simulation would hold as roles, as :func:`held_bytes` does.

    Nodes that have got the same version share its array. ``versions`` are those of the coordinator's arrays, by their
    identity.
    """
    run, nodes = t.run[0], t.nodes[FIRST_WORKER:]
    whole = 4 * int(run["size"])
    # Before its first pull a node has the parameters at the start, which count as version -1.
    pulled, arrived = nodes["version"], nodes["reply_version"][nodes["replied"] > 0]
    collected = [versions.get(id(array), -1) for array in _arrays(_held(coordinator), depth=3)]
    held = {int(run["version"]), *pulled.tolist(), *arrived.tolist(), *collected}
    own, unseen = int(nodes["fresh"].sum()), int(nodes["unseen_bytes"].sum())
    holders = 1 + len(nodes) + int((pulled >= 0).sum()) + len(arrived) + len(collected)
    return whole * (len(held) + own) + unseen, whole * holders + unseen


def _held(role: Role) -> Iterable[Any]:
    return (value for name, value in vars(role).items() if name not in FIGURES)


def _arrays(things: Iterable[Any], depth: int) -> Iterable[np.ndarray]:
    """Yield the arrays in values, and in containers nested up to ``depth`` levels."""
    for thing in things:
        if isinstance(thing, np.ndarray):
            yield thing
        elif isinstance(thing, SparseDelta):
            yield from (thing.indices, thing.values)
        elif isinstance(thing, Counter):
            continue  # It holds numbers alone.
        elif depth and isinstance(thing, dict):
            yield from _arrays(thing.values(), depth - 1)
        elif depth and isinstance(thing, (list, tuple)):
            yield from _arrays(thing, depth - 1)
        elif depth and isinstance(thing, WITH_VALUES) and thing.values is not None:
            yield thing.values
