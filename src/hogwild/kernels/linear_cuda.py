"""GPU kernels of linear models: a group of lanes for each row, and atomic additions to shared parameters.

Each group takes every n-th row of a launch. A lane handles every n-th non-zero of its row. It copies the coordinate,
takes the rule's step on the copy, and adds the change to the coordinate. So no change is lost, and the rules are those
of the processor.

Thousands of rows are in flight, and all of them have read old parameters. :func:`damping` keeps their changes together
from overshooting. The names that are not defined here are bound by :func:`hogwild.kernels.cuda_jit.kernel`.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, no-any-return, arg-type, assignment"
# ruff: noqa: F821

from __future__ import annotations

import functools
from math import exp, floor
from typing import Any

import numpy as np

from hogwild.jit import Function, bind
from hogwild.kernels import cuda_lanes
from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.row_layouts import LAYOUTS
from hogwild.rules.rule import Rule

FULL = np.float32(1)
GRID = 2.0**20  # sums are multiples of 1 / GRID
FIXED = 2.0**32  # collected changes are multiples of 1 / FIXED


def descend(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, count: Any, rates: Any,
    rows_a_rate: Any, table: Any, bias: Any, into: Any, into_bias: Any, l1: Any, l2: Any, class_weights: Any,
    parameter: Any, constants: Any, bias_curvature: Any, bias_rate: Any, tilt: Any, sums: Any,
) -> None:  # fmt: skip
    """Descend along the rows ``order[first : first + count]``, and add their losses to ``sums[0]``.

    Changes are added to ``into`` and ``into_bias``: to the parameters themselves, or to memory for a common step.

    A row of ``table`` has what a step of a coordinate needs, in one piece of memory: the rule's numbers, the largest
    curvature of the objective along the features of its tier, and n / d, where d of n rows have the coordinate.
    """
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    # The coordinates of the row's first non-zeros, one more of the others, and the intercept.
    kept = cuda.local.array((ROOM, WIDTH), np.float32)
    kept_columns, kept_values = cuda.local.array(KEPT, np.int64), cuda.local.array(KEPT, np.float32)
    changes = cuda.local.array(WIDTH, np.float32)
    in_flight, total = np.float32(min(groups, count)), 0.0
    # Additions of all rows to one address would take longer than the rest, so a group adds up its changes of a few.
    rounds, seen = (count + groups - 1) // groups, cuda.local.array(WIDTH, np.float32)
    moved, pulled = np.float32(0), np.float32(0)
    turns = min(max(rounds // OFTEN, 1), TURNS)
    for c in range(WIDTH):
        seen[c] = kept[OWN, c] = bias[0, c]
    # All lanes of a warp make the same number of rounds, because they add up scores together.
    for turn in range(rounds):
        k = turn * groups + group
        i, start, end, z = 0, 0, 0, np.float32(0)
        if k < count:
            i = order[first + k]
            start, end = indptr[i], indptr[i + 1]
        for n in range(KEPT):
            j = start + lane + n * LANES
            kept_columns[n] = np.int64(-1)
            if j < end:
                kept_columns[n], kept_values[n] = np.int64(column(indices, j, start)), value(values, j)
        for n in range(KEPT):
            if kept_columns[n] >= 0:
                load(table, kept_columns[n], kept, n)
                z += kept[n, 0] * kept_values[n]
        for j in range(start + lane + KEPT * LANES, end, LANES):
            z += table[column(indices, j, start), 0] * value(values, j)
        z = sum_of_lanes(z)
        if k < count:
            y = labels[i]
            cost, slope = loss(float(z + bias[0, 0]), float(y), parameter)
            weight = class_weights[1 if y > 0 else 0] * weight_of(weights, i)
            g, rate = np.float32(slope * weight), rates[k // rows_a_rate]
            if lane == 0:
                total += cost * weight
            if not skip(g):
                for n in range(KEPT):
                    if kept_columns[n] >= 0:
                        move(kept, n, g * kept_values[n], rate, l1, l2, constants, in_flight, changes)
                        add(into, kept_columns[n], changes)
                for j in range(start + lane + KEPT * LANES, end, LANES):
                    u = np.int64(column(indices, j, start))
                    load(table, u, kept, KEPT)
                    move(kept, KEPT, g * value(values, j), rate, l1, l2, constants, in_flight, changes)
                    add(into, u, changes)
                if INTERCEPT and lane == 0:
                    before = kept[OWN, 0]
                    step(kept, OWN, g + tilt, rate * bias_rate, np.float32(0), np.float32(0), constants)
                    moved += abs(kept[OWN, 0] - before)
                    pulled += abs(g + tilt)
        if INTERCEPT and lane == 0 and pulled > 0 and (turn % turns == turns - 1 or turn == rounds - 1):
            many = in_flight * np.float32(turns)
            part = damping(moved, pulled, many * bias_curvature, many)
            for c in range(WIDTH):
                changes[c] = (kept[OWN, c] - seen[c]) * (FULL if WHOLE[c] else part)
            add(into_bias, np.int64(0), changes)
            for c in range(WIDTH):
                seen[c] = kept[OWN, c] = bias[0, c]
            moved = pulled = np.float32(0)
    if lane == 0 and total != 0:
        cuda.atomic.add(sums, 0, on_grid(total))


def move(rows: Any, n: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any, in_flight: Any, changes: Any) -> None:
    """Take the rule's step on a copy of a coordinate, and write the changes that count."""
    w, curvature, share = rows[n, 0], rows[n, NUMBERS], rows[n, NUMBERS + 1]
    for c in range(WIDTH):
        changes[c] = rows[n, c]
    p1, p2 = l1 * share, l2 * share
    step(rows, n, g, rate, p1, p2, constants)
    pull = abs(g) + p1 + p2 * abs(w)
    part = damping(rows[n, 0] - w, pull, in_flight * curvature, in_flight * presence(share))
    for c in range(WIDTH):
        changes[c] = (rows[n, c] - changes[c]) * (FULL if WHOLE[c] else part)


def damping(move: Any, pull: Any, stiffness: Any, many: Any) -> Any:
    """Return the share of a change that counts, so that all rows in flight together do not overshoot.

    ``pull`` is the size of the gradient with penalties. The change per unit of it times ``stiffness`` is the part of
    the distance to the optimum that all rows in flight close, and should not be more than 1. ``many`` is the number of
    those that change the coordinate. If a rule's state is a mean, as the moments of Adam are, the mean of their changes
    is right.
    """
    together = abs(move) * stiffness
    # Without a pull, only the rule's memory moves the weight.
    share = FULL if together <= pull or pull == 0 else pull / together
    return min(share, FULL / max(FULL, many)) if MEANS else share


def evaluate(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, count: Any, weight_table: Any,
    bias: Any, class_weights: Any, parameter: Any, sums: Any,
) -> None:  # fmt: skip
    """Add up loss, weight, hits or squared errors, labels, squared labels and rows."""
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    lost, weighed, hits, labelled, squared, rows = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    # A group scores as many rows as it has lanes, and then each lane has the loss of one of them.
    each = min(LANES, (count + groups - 1) // groups)
    for turn in range((count + groups * each - 1) // (groups * each) if count > 0 else 0):
        k, own, mine = (turn * groups + group) * each + lane, np.float32(0), np.int64(0)
        begin, end, scored = np.int64(0), np.int64(0), lane < each and k < count
        if scored:
            mine = np.int64(order[k])
            begin, end = np.int64(indptr[mine]), np.int64(indptr[mine + 1])
        for source in range(each):
            z, start, stop = np.float32(0), of_lane(begin, source), of_lane(end, source)
            for j in range(start + lane, stop, LANES):
                z += weight_table[column(indices, j, start), 0] * value(values, j)
            z = sum_of_lanes(z)
            own = z if lane == source else own
        if scored:
            y, score = float(labels[mine]), float(own + bias[0, 0])
            cost, _ = loss(score, y, parameter)
            weight = float(weight_of(weights, mine))
            lost += cost * weight * class_weights[1 if y > 0 else 0]
            weighed += weight
            hits += weight * hit(score, y)
            labelled += weight * y
            squared += weight * y * y
            rows += 1.0
    lost, weighed, labelled = (
        sum_of_lanes(on_grid(lost)),
        sum_of_lanes(on_grid(weighed)),
        sum_of_lanes(on_grid(labelled)),
    )
    hits, squared, rows = sum_of_lanes(on_grid(hits)), sum_of_lanes(on_grid(squared)), sum_of_lanes(rows)
    if lane == 0 and rows > 0:
        cuda.atomic.add(sums, 0, lost)
        cuda.atomic.add(sums, 1, weighed)
        cuda.atomic.add(sums, 2, hits)
        cuda.atomic.add(sums, 3, labelled)
        cuda.atomic.add(sums, 4, squared)
        cuda.atomic.add(sums, 5, rows)


def on_grid(total: float) -> float:
    """Round a sum, so that sums of such numbers are exact and do not depend on the order of additions."""
    return floor(total * GRID + 0.5) / GRID


def take_step(
    indptr: Any, indices: Any, order: Any, first: Any, count: Any, table: Any, bias: Any, into: Any, into_bias: Any
) -> None:
    """Add the collected changes of the coordinates of rows to the parameters. One thread takes all of a coordinate."""
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    for k in range(group, count, groups):
        i = order[first + k]
        start, end = indptr[i], indptr[i + 1]
        for j in range(start + lane, end, LANES):
            u = np.int64(column(indices, j, start))
            for c in range(NUMBERS):
                change = cuda.atomic.exch(into, (u, c), 0)
                if change != 0:
                    table[u, c] += np.float32(change / FIXED)
    if cuda.grid(1) == 0:
        for c in range(NUMBERS):
            bias[0, c] += np.float32(into_bias[0, c] / FIXED)
            into_bias[0, c] = 0


def same_sign(score: float, y: float) -> float:
    """Return 1 if the score has the label's sign, else 0."""
    return 1.0 if (score > 0) == (y > 0) else 0.0


def squared_error(score: float, y: float) -> float:
    """Return the squared error of a score that is itself the prediction."""
    return (score - y) * (score - y)


def squared_error_of_mean(score: float, y: float) -> float:
    """Return the squared error of a score whose exponential is the prediction."""
    return (exp(score) - y) * (exp(score) - y)


def stored(values: Any, j: Any) -> Any:
    """Return a stored number."""
    return values[j]


def one(values: Any, j: Any) -> Any:
    """Return 1, the weight of every row if rows have no weights."""
    return np.float32(1)


def some_rows(share: Any) -> Any:
    """Return the part of the rows that have a column."""
    return np.float32(1) / share


def all_rows(share: Any) -> Any:
    """Return 1, as every row has every column."""
    return np.float32(1)


def fill_table(table: Any, state: Any, outputs: Any, curvatures: Any, shares: Any) -> None:
    """Write the rule's numbers, the curvature and the share of each coordinate to its row."""
    for u in range(cuda.grid(1), table.shape[0], cuda.gridsize(1)):
        for c in range(NUMBERS):
            table[u, c] = state[u, c]
        feature = u // outputs
        table[u, NUMBERS], table[u, NUMBERS + 1] = curvatures[feature], shares[feature]


def read_table(table: Any, state: Any) -> None:
    """Write the rule's numbers of each coordinate to ``state``."""
    for u in range(cuda.grid(1), table.shape[0], cuda.gridsize(1)):
        for c in range(NUMBERS):
            state[u, c] = table[u, c]


def norms(table: Any, sums: Any) -> None:
    """Write the sums of the sizes and of the squares of weights, one of each for a thread."""
    sizes, squares = 0.0, 0.0
    for u in range(cuda.grid(1), table.shape[0], cuda.gridsize(1)):
        w = float(table[u, 0])
        sizes += abs(w)
        squares += w * w
    sums[0, cuda.grid(1)], sums[1, cuda.grid(1)] = sizes, squares


@functools.cache
def damping_of(rule: Rule) -> Function:
    """Return one function per rule, so that its kernels are compiled once."""
    return bind(damping, MEANS=not rule.adds_up)


HITS: dict[str, Function] = {"signs": same_sign, "identity": squared_error, "exp": squared_error_of_mean}


def parts_of(layout: str, lanes: int, weighted: bool, loss: Function) -> dict[str, Any]:
    """Return the parts that both kernels have."""
    return {
        **LAYOUTS[layout], "LANES": lanes, "weight_of": stored if weighted else one, "loss": loss,
        "sum_of_lanes": cuda_lanes.lane_sum(lanes), "of_lane": cuda_lanes.lane_value(lanes),
    }  # fmt: skip
