"""State of a worker's random generators (PyTorch, NumPy, Python), so that a resumed run draws the same numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor

State = tuple[Any, Any, Any]
"""States of PyTorch's, NumPy's and Python's generators."""

ROOM = 2**14  # bytes for the states of all three generators
_WORDS = 625  # 32-bit words of NumPy's and of Python's generator (MT19937): 624 words of state and the position


def seed(*numbers: int) -> None:
    """Seed all three generators with one sequence of numbers, such as seed, rank and epoch.

    >>> seed(7, 0, 1); first = torch.rand(1).item(), np.random.rand(), random.random()
    >>> seed(7, 0, 1); first == (torch.rand(1).item(), np.random.rand(), random.random())
    True
    """
    one, two, three = (int(word) for word in np.random.SeedSequence(numbers).generate_state(3))
    torch.manual_seed(one)
    np.random.seed(two)
    random.seed(three)


def capture() -> State:
    """Return the states of the generators, for :func:`restore` in this process."""
    return torch.get_rng_state(), np.random.get_state(), random.getstate()


def restore(state: State) -> None:
    """Set the generators to states of :func:`capture`.

    >>> state = capture(); expected = torch.rand(1).item(), np.random.rand(), random.random()
    >>> restore(state); expected == (torch.rand(1).item(), np.random.rand(), random.random())
    True
    """
    torch.set_rng_state(state[0])
    np.random.set_state(state[1])
    random.setstate(state[2])


def write_to(line: Tensor) -> None:
    """Write the states of the generators to a tensor of ``ROOM`` bytes: PyTorch's at its start, the others at its end.

    NumPy and Python each buffer the second of two normal numbers; these buffers are not written.
    """
    torchs, pythons = torch.get_rng_state(), random.getstate()[1]
    _, words, place, *_ = np.random.get_state(legacy=True)
    numbers = np.array([*words, place, *pythons], np.uint32)
    line[: len(torchs)] = torchs
    line[ROOM - numbers.nbytes :] = torch.from_numpy(numbers.view(np.uint8))


def read_from(line: Tensor) -> None:
    """Set the generators to the states in a tensor of :func:`write_to`.

    >>> line = torch.zeros(ROOM, dtype=torch.uint8)
    >>> write_to(line); expected = torch.rand(1).item(), np.random.rand(), random.random()
    >>> read_from(line); expected == (torch.rand(1).item(), np.random.rand(), random.random())
    True
    """
    torch.set_rng_state(line[: len(torch.get_rng_state())].clone())
    numbers = line.numpy()[ROOM - 2 * _WORDS * 4 :].view(np.uint32)
    np.random.set_state(("MT19937", numbers[: _WORDS - 1], int(numbers[_WORDS - 1]), 0, 0.0))
    random.setstate((3, tuple(int(word) for word in numbers[_WORDS:]), None))
