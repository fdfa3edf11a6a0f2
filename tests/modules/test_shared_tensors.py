"""Tensors and arrays on their way into shared memory: whatever they are, they come out the same, and are there once."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import nets
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hogwild import Hogwild, Module, minimise
from hogwild.errors import ParameterError
from hogwild.runtimes.processes.shared_memory import SharedBlock
from hogwild.runtimes.processes.shared_pickle import SharedArrays, dumps, loads
from hogwild.runtimes.processes.shared_tensors import CPU, SharedTensors, move_to_shared_memory, open_shared_tensors
from leftovers import open_files


def again(block: Any) -> SharedBlock:
    """The block as another process opens it."""
    return SharedBlock(block.size, os.dup(block.fd))


def sent(what: Any, arena: SharedTensors | None = None, shelf: SharedArrays | None = None) -> Any:
    """What arrives at another process."""
    arena, shelf = arena or move_to_shared_memory([]), shelf or SharedArrays()
    content = dumps(what, arena, shelf)
    theirs = open_shared_tensors(again(arena.blocks[CPU]), arena.describe())
    return loads(content, theirs, [again(block) for block in shelf.blocks])


TENSORS: dict[str, Tensor] = {
    "plain": torch.randn(3, 4),
    "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "transposed": torch.randn(3, 4).t(),
    "with gaps": torch.randn(10, 10)[::2, ::3],
    "expanded": torch.randn(3, 1).expand(3, 4),
    "empty": torch.empty(0, 5),
    "one number": torch.tensor(3.5),
    "half": torch.randn(5).to(torch.float16),
    "bfloat16": torch.randn(5).to(torch.bfloat16),
    "float64": torch.randn(5, dtype=torch.float64),
    "complex": torch.randn(5, dtype=torch.complex64),
    "whole numbers": torch.arange(5),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "truths": torch.tensor([True, False, True]),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_are_the_same_in_another_process(name: str) -> None:
    tensor, expected = TENSORS[name].detach(), TENSORS[name].clone()
    arena = move_to_shared_memory([torch.ones(3), tensor, torch.ones(2)])
    theirs = sent([tensor], arena)[0]
    assert torch.equal(tensor, expected)
    assert torch.equal(theirs, expected)
    assert theirs.dtype == expected.dtype
    if tensor.is_contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else False:
        assert theirs.is_contiguous(memory_format=torch.channels_last)
    if tensor.numel():
        theirs.zero_()
        assert (tensor == 0).all()


def test_parameters_stay_parameters_frozen_ones_frozen() -> None:
    net = nn.Linear(2, 2)
    net.bias.requires_grad = False
    theirs = sent(net, move_to_shared_memory(net.parameters()))
    assert isinstance(theirs.weight, nn.Parameter)
    assert theirs.weight.requires_grad
    assert not theirs.bias.requires_grad


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(3, 3), nn.Linear(3, 3)
        self.other.weight = self.one.weight
        self.register_buffer("view", self.one.weight.detach()[1:])


def test_tied_weights_and_views_stay_tied() -> None:
    net = Tied()
    arena = move_to_shared_memory([*net.parameters(), *net.buffers()])
    theirs = sent(net, arena)
    assert theirs.one.weight is theirs.other.weight
    with torch.no_grad():
        theirs.other.weight.fill_(7)
    for seen in (net.one.weight, net.other.weight, net.view, theirs.view):
        assert (seen == 7).all()


def test_thousands_of_tensors_need_one_file() -> None:
    before = open_files()
    arena = move_to_shared_memory([torch.full((3,), float(number)) for number in range(2000)])
    assert open_files() <= before + 2  # the file, and the one by which it is mapped
    theirs = sent(arena.tensors, arena)
    assert [int(tensor[0]) for tensor in theirs] == list(range(2000))


def test_lazy_and_strange_tensors_are_refused() -> None:
    with pytest.raises(ParameterError, match="lazy"):
        move_to_shared_memory(nn.LazyLinear(3).parameters())
    with pytest.raises(ParameterError, match="sparse"):
        move_to_shared_memory([torch.eye(3).to_sparse()])


LARGE = np.random.default_rng(0).standard_normal((300, 100))

ARRAYS: dict[str, Any] = {
    "array": LARGE,
    "fortran": np.asfortranarray(LARGE),
    "part": LARGE[::2],
    "small": np.arange(3),
    "objects": np.array([{"a": 1}] * 20_000, dtype=object),
    "dates": np.arange(20_000).astype("datetime64[s]"),
    "masked": np.ma.masked_array(LARGE, LARGE > 0),
    "records": np.zeros(9_000, dtype=[("a", np.int32), ("b", np.float64)]),
    "text": np.array(["ab", "c"] * 10_000),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_the_same_in_another_process(name: str) -> None:
    theirs = sent(ARRAYS[name])
    assert type(theirs) is type(ARRAYS[name])
    assert theirs.dtype == ARRAYS[name].dtype
    np.testing.assert_array_equal(theirs, ARRAYS[name])


def test_a_mask_is_not_lost() -> None:
    assert sent(ARRAYS["masked"]).mask.any()


def test_mapped_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", LARGE)
    mapped, copied = (np.load(tmp_path / "a.npy", mmap_mode=mode) for mode in ("r", "c"))
    shelf = SharedArrays()
    theirs = sent(mapped, shelf=shelf)
    assert type(theirs) is np.memmap
    assert not shelf.blocks  # it is opened by its name
    np.testing.assert_array_equal(theirs, LARGE)
    np.testing.assert_array_equal(sent(mapped[50:].T), LARGE[50:].T)
    copied[0] = 9  # in memory alone
    assert (sent(copied)[0] == 9).all()


def test_large_arrays_are_there_once_and_in_few_files() -> None:
    many = [np.full(9_000, number) for number in range(300)]
    shelf, arena = SharedArrays(), move_to_shared_memory([])
    tensor = torch.randn(30_000)
    theirs = sent({"many": many, "same": many[5], "tensor": tensor, "tensors": [tensor]}, arena, shelf)
    assert [int(array[0]) for array in theirs["many"]] == list(range(300))
    assert theirs["same"] is theirs["many"][5]
    assert theirs["tensor"] is theirs["tensors"][0]
    assert len(shelf.blocks) == 1
    theirs["tensor"].zero_()
    assert (tensor == 0).all()
    taken = os.fstat(shelf.blocks[0].fd).st_blocks
    assert sent(many[7], arena, shelf)[0] == 7
    assert os.fstat(shelf.blocks[0].fd).st_blocks == taken
    shelf.close()


def test_a_small_tensor_that_is_repeated_is_sent_small() -> None:
    shelf = SharedArrays()
    theirs = sent(torch.ones(1).expand(2**40), shelf=shelf)
    assert theirs.shape == (2**40,)
    assert not shelf.blocks


def test_functions_of_a_test_are_sent() -> None:
    factor = 3

    class Own(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * factor

    net, function = sent((Own(), lambda x: x + factor))
    assert (net(torch.ones(1)) + function(1)).item() == 7


def test_what_cannot_be_sent_is_said() -> None:
    net = nets.line()
    net.lock = threading.Lock()
    files = open_files()
    with pytest.raises(ParameterError, match=r"cannot be sent to another process.*lock"):
        minimise(Module(net, nn.functional.mse_loss, nets.numbers()), strategy=Hogwild(2), budget=1)
    assert open_files() <= files + 1  # what is left is the mapping of the weights
