"""Access to the tables of a compiled simulation by the addresses in the record of the run.

Functions pass this one record on. To pass twenty tables would take longer than what the functions do. The code that
reads an address is generated where it is used: functions that did so would take longer to compile than all others.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from hogwild.kernels.simulation.tables import CHANGE, CHANNEL, COMMAND, EVENT, MESSAGE, NODE, RUN, TRAFFIC

# mypy: disable-error-code="no-untyped-call, call-arg, misc"

BYTE, WORD = ir.IntType(8), ir.IntType(64)


def word_at(builder: Any, record: Any, offset: int) -> Any:
    """Return, at compile time, a word of a record."""
    place = builder.gep(builder.bitcast(record, BYTE.as_pointer()), [WORD(offset)])
    return builder.load(builder.bitcast(place, WORD.as_pointer()))


def offset_of(name: str) -> int:
    """Return the offset of a field in the record of the run, in bytes."""
    assert RUN.fields is not None
    return RUN.fields[name][1]


def record_access(name: str, dtype: np.dtype[Any]) -> Any:
    """Return a function of the run and a number that returns a record of a table."""
    offset, size, kind = offset_of(f"{name}_address"), dtype.itemsize, numba.from_dtype(dtype)
    layout = str(dtype)  # The digest of a kernel contains this text, and not the type.

    @intrinsic
    def access(typingctx: Any, run: Any, number: Any) -> Any:
        assert layout

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = builder.add(word_at(builder, args[0], offset), builder.mul(args[1], WORD(size)))
            return builder.inttoptr(address, context.get_value_type(kind))

        return kind(run, types.intp), generate

    return access


def vector_access(name: str, dtype: Any) -> Any:
    """Return a function of the run that returns all numbers, or all records, of a table as a vector."""
    places = tuple(offset_of(f"{name}_{what}") for what in ("address", "length"))
    size, kind = np.dtype(dtype).itemsize, types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C")
    layout = str(np.dtype(dtype))

    @intrinsic
    def access(typingctx: Any, run: Any) -> Any:
        assert layout

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address, length = (word_at(builder, args[0], offset) for offset in places)
            array = context.make_array(kind)(context, builder)
            data = builder.inttoptr(address, array.data.type)
            populate_array(array, data, [length], [WORD(size)], WORD(size), None)
            return array._getvalue()

        return kind(run), generate

    return access


node_at = record_access("nodes", NODE)
channel_at = record_access("channels", CHANNEL)
message_at = record_access("messages", MESSAGE)
change_at = record_access("changes", CHANGE)
command_at = record_access("commands", COMMAND)
traffic_at = record_access("traffic", TRAFFIC)
event_queue = vector_access("events", EVENT)
block_numbers = vector_access("block_numbers", np.uint32)
block_values = vector_access("block_values", np.float32)
following_blocks = vector_access("block_following", np.int64)
all_parameters = vector_access("values", np.float32)
staleness_log = vector_access("delays", np.int64)
lag_counts = vector_access("lags", np.int64)
clock_counts = vector_access("clocks", np.int64)
waiting_workers = vector_access("waiting", np.int64)
known_peers = vector_access("peers", np.int64)
step_sizes = vector_access("rates", np.float32)
burst_step_sizes = vector_access("burst_rates", np.float32)
row_orders = vector_access("orders", np.int64)
ordered_epochs = vector_access("epochs", np.int64)
feature_stamps = vector_access("stamps", np.int64)
touched_features = vector_access("touched", np.int64)
# Rows, in integers of either length, and the arrays of the descent.
row_starts = vector_access("row_starts", np.int64)
entry_columns = vector_access("columns", np.uint32)
long_entry_columns = vector_access("columns", np.uint64)
row_numbers = vector_access("burst_rows", np.uint32)
long_row_numbers = vector_access("burst_rows", np.int64)
trained_numbers = vector_access("trained", np.float32)
numbers_beside = vector_access("beside", np.float32)
bit_addresses = vector_access("bits", np.uint64)
