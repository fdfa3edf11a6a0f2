"""Run with NUMBA_ENABLE_CUDASIM=1: the kernels for a GPU, on its simulator, against those for a CPU."""

import itertools
import sys

import pytest
import torch
from numba import config
from torch import nn

import hogwild
from hogwild.errors import DataError
from hogwild.nn import sparse_mlp

CPU = sparse_mlp._engines["cpu"]


def trained(engine, binary, update, width):
    sparse_mlp._engines["cpu"] = engine
    torch.manual_seed(width)
    net = hogwild.SparseMLP(20, [width, 4], 3, binary, update=update)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.3)
    net.follow(optimiser)
    indices, offsets = torch.randint(0, 20, (14,)), torch.tensor([0, 3, 3, 9, 14])
    given = (indices, offsets) if binary else (indices, offsets, torch.randn(14))
    for _ in range(2):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(*given), torch.tensor([0, 1, 2, 1])).backward()
        optimiser.step()
    return net


def same(binary, update, width):
    """Within one sample rows are updated in another order, which AdaGrad notices where a row is there twice."""
    from hogwild.nn.sparse_table_cuda import CUDAEngine

    cpu, gpu = (trained(engine, binary, update, width) for engine in (CPU, CUDAEngine()))
    for one, other in zip(cpu.state_dict().values(), gpu.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3 if update == "adagrad" else 1e-5)


def wrong_index():
    from hogwild.nn.sparse_table_cuda import CUDAEngine

    engine = sparse_mlp._engines["cpu"] = CUDAEngine()
    table = hogwild.SparseTable(3, 40, binary=True)
    bad = table(torch.tensor([0, 7, 2, -1]), torch.tensor([0, 3, 4]))
    torch.testing.assert_close(bad[0], table.weight.detach()[[0, 2]].sum(0))
    with pytest.raises(DataError, match="earlier batch"):
        table(torch.tensor([0]), torch.tensor([0, 1]))
    table(torch.tensor([0]), torch.tensor([0, 1]))  # said once
    assert engine is not CPU


def main():
    from hogwild.kernels import embedding_cuda as kernels

    assert config.ENABLE_CUDASIM
    if sys.argv[1:] == ["all"]:
        same(False, "adagrad", 40)
    kernels.THREADS = 64  # of a block: each is one of the system's here, and takes a millisecond to start
    cases = list(itertools.product((False, True), ("sgd", "adagrad"), (5, 40)))
    for case in cases if sys.argv[1:] == ["all"] else [(False, "adagrad", 5), (True, "sgd", 40)]:
        same(*case)
    wrong_index()
    sys.stdout.write("the same\n")


if __name__ == "__main__":
    main()
