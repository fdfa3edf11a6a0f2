"""Codec of node states: trees of plain values and arrays, which a reader decodes without running code.

A file can hold such a tree. Objects are encoded as the names of their classes and their attributes. The decoder accepts
only classes of this package, so that a file cannot make it run other code.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from hogwild.errors import CheckpointError
from hogwild.messaging.job import RunConfig

PACKAGE = "hogwild."
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, partial)
_COLLECTIONS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_MAPPINGS: dict[str, Any] = {"dict": dict, "Counter": Counter}


def encode_state(thing: object) -> object:
    """Encode an object as a tree of plain values and arrays, none of which changes when the object does.

    >>> encode_state({"clocks": (1, 2)})
    {'dict': [['clocks', {'tuple': [1, 2]}]]}
    """
    if thing is None or isinstance(thing, (bool, int, str)):
        return thing
    if isinstance(thing, (float, np.generic)):
        number = thing if isinstance(thing, float) else thing.item()
        return number if not isinstance(number, float) or math.isfinite(number) else {"float": str(number)}
    if isinstance(thing, np.ndarray):
        return {"array": thing.copy() if thing.flags.writeable else thing, "writeable": bool(thing.flags.writeable)}
    if isinstance(thing, list):
        return [encode_state(one) for one in thing]
    if isinstance(thing, (tuple, set, frozenset)) and type(thing).__name__ in _COLLECTIONS:
        ordered = thing if isinstance(thing, tuple) else sorted(thing)
        return {type(thing).__name__: [encode_state(one) for one in ordered]}
    if isinstance(thing, dict) and type(thing).__name__ in _MAPPINGS:
        return {type(thing).__name__: [[encode_state(key), encode_state(value)] for key, value in thing.items()]}
    if isinstance(thing, RunConfig):
        return {"config": None}
    if isinstance(thing, np.random.Generator):
        return {"random": thing.bit_generator.state}
    kind = type(thing)
    if not kind.__module__.startswith(PACKAGE):
        raise CheckpointError(f"A {kind.__module__}.{kind.__qualname__} cannot be written to a checkpoint.")
    return {"object": f"{kind.__module__}:{kind.__qualname__}", "has": attributes(thing)}


def attributes(thing: object, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the encoded attributes of an object.

    Attributes that are functions are left out, because the constructor of the object sets them again.
    """
    names = [field.name for field in fields(thing)] if is_dataclass(thing) else list(vars(thing))
    return {
        name: encode_state(getattr(thing, name))
        for name in names if name not in without and not isinstance(getattr(thing, name), _FUNCTIONS)
    }  # fmt: skip


def decode_state(tree: object, config: RunConfig | None) -> Any:
    """Return the object that a tree encodes, in a run with the given configuration.

    >>> from hogwild.messaging.messages import Pull
    >>> config = RunConfig(1, np.zeros(1), 1, 1)
    >>> decode_state(encode_state([Pull(3), {"a": (1.0, float("inf"))}]), config)
    [Pull(clock=3), {'a': (1.0, inf)}]
    """
    if isinstance(tree, list):
        return [decode_state(one, config) for one in tree]
    if not isinstance(tree, dict):
        return tree
    (kind, content), *_ = tree.items()
    if kind == "float":
        return float(content)
    if kind == "array":
        array = content.copy() if tree["writeable"] else content
        array.flags.writeable = tree["writeable"]
        return array
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](decode_state(one, config) for one in content)
    if kind in _MAPPINGS:
        return _MAPPINGS[kind]({decode_state(key, config): decode_state(value, config) for key, value in content})
    if kind == "config":
        return config
    if kind == "random":
        generator = np.random.default_rng()
        generator.bit_generator.state = content
        return generator
    thing: Any = object.__new__(_known(content))
    restore(thing, tree["has"], config)
    return thing


def restore(thing: object, has: Mapping[str, Any], config: RunConfig | None) -> None:
    """Set encoded attributes of an object in place.

    An attribute that already holds an object of the encoded class, other than a data class, is restored in place. So it
    keeps the functions that its constructor has set. Any other attribute is replaced.
    """
    for name, tree in has.items():
        part = getattr(thing, name, None)
        if (
            isinstance(tree, dict)
            and "object" in tree
            and not is_dataclass(part)
            and type(part) is _known(tree["object"])
        ):
            restore(part, tree["has"], config)
        else:
            object.__setattr__(thing, name, decode_state(tree, config))


def _known(name: str) -> type:
    module, _, kind = name.partition(":")
    found = getattr(sys.modules.get(module), kind, None) if module.startswith(PACKAGE) else None
    if not isinstance(found, type):
        raise CheckpointError(f"The checkpoint has a {name!r}, which this version does not know.")
    return found


def split(tree: object, arrays: dict[str, Any], numbers: dict[int, str] | None = None) -> object:
    """Return a tree with names in place of its arrays, and add the arrays to ``arrays`` by name.

    An array that occurs several times in the tree is added only once.
    """
    numbers = {} if numbers is None else numbers
    if isinstance(tree, list):
        return [split(one, arrays, numbers) for one in tree]
    if isinstance(tree, dict):
        return {name: split(one, arrays, numbers) for name, one in tree.items()}
    if isinstance(tree, np.ndarray):
        if id(tree) not in numbers:
            numbers[id(tree)] = name = str(len(arrays))
            arrays[name] = tree
        return {"named": numbers[id(tree)]}
    return tree


def joined(tree: object, arrays: Mapping[str, Any]) -> Any:
    """Return a tree with its arrays in place of their names, the inverse of :func:`split`.

    >>> arrays = {}; tree = encode_state({"w": np.zeros(2)})
    >>> joined(split(tree, arrays), arrays)
    {'dict': [['w', {'array': array([0., 0.]), 'writeable': True}]]}
    """
    if isinstance(tree, list):
        return [joined(one, arrays) for one in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.keys() == {"named"}:
        return arrays[tree["named"]]
    return {name: joined(one, arrays) for name, one in tree.items()}
