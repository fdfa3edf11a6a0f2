"""The same training in main memory and on a GPU; needs a GPU."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import hogwild
from hogwild.errors import DataError

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

WIDTH, BATCH = 5_000, 64  # columns of the input, samples of a batch


def batches(binary, count=6):
    chance = torch.Generator().manual_seed(3)
    made = []
    for _ in range(count):
        lengths = torch.randint(1, 9, (BATCH,), generator=chance)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        # No row twice in a batch: in which order AdaGrad's steps are taken matters.
        indices = torch.randperm(WIDTH, generator=chance, dtype=torch.int32)[: int(offsets[-1])]
        values = [] if binary else [torch.randn(len(indices), generator=chance)]
        made.append((indices, offsets, *values, torch.randint(0, 3, (BATCH,), generator=chance)))
    return made


def net_of(binary, update, device):
    torch.manual_seed(0)
    return hogwild.SparseMLP(WIDTH, [48, 8], 3, binary, update=update).to(device)


def optimiser_of(net):
    return torch.optim.SGD([one for one in net.parameters() if one is not net.table.weight], lr=0.2, fused=True)


def trained(binary, update, device):
    net = net_of(binary, update, device)
    optimiser = optimiser_of(net)
    net.follow(optimiser)
    for batch in batches(binary):
        *inputs, target = (part.to(device) for part in batch)
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(*inputs), target).backward()
        optimiser.step()
    return net.cpu()


def graphed(binary, update):
    net = net_of(binary, update, "cuda")
    optimiser = optimiser_of(net)
    step = hogwild.CUDAGraphStep(net, nn.functional.cross_entropy, optimiser, BATCH, 9 * BATCH)
    step.set_rate(0.2)
    for batch in batches(binary):
        step(*(part.pin_memory() for part in batch))
    torch.cuda.synchronize()
    return net.cpu()


@pytest.mark.parametrize("update", ["sgd", "adagrad"])
@pytest.mark.parametrize("binary", [False, True])
def test_a_gpu_trains_as_a_cpu_does(binary, update):
    expected = trained(binary, update, "cpu").state_dict()
    for net in (trained(binary, update, "cuda"), graphed(binary, update)):
        for name, tensor in net.state_dict().items():
            torch.testing.assert_close(tensor, expected[name], rtol=1e-2, atol=2e-3)


def test_a_wrong_index_is_said_with_the_next_batch():
    table = hogwild.SparseTable(10, 4, binary=True).cuda()
    table(torch.tensor([3, 10], device="cuda"), torch.tensor([0, 2], device="cuda"))
    torch.cuda.synchronize()
    with pytest.raises(DataError, match="non-zero 1 of an earlier batch"):
        table(torch.tensor([3], device="cuda"), torch.tensor([0, 1], device="cuda"))


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_share_a_table_on_a_gpu(workers):
    from scipy.sparse import random_array

    made = random_array((600, 200), density=0.05, format="csr", rng=0)
    labels = (made[:, [0, 1, 2]].sum(1) > 0).astype(float)
    rows = hogwild.CSRDataset((made, labels))
    net = hogwild.SparseMLP(200, [16, 8], 2, update="adagrad").cuda()
    before = net.table.weight.detach().cpu().clone()
    run = hogwild.minimise(
        hogwild.Module(net, nn.functional.cross_entropy, rows, batch=32), torch.optim.SGD,
        hogwild.Constant(0.1), hogwild.Hogwild(workers), budget=6, test=rows,
    )  # fmt: skip
    assert run.result["test_accuracy"] > 0.9
    assert not torch.equal(net.table.weight.detach().cpu(), before)


@pytest.mark.parametrize("rule", [torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad])
def test_steps_launched_as_a_whole_train_as_others_do(rule, monkeypatch):
    """With batches that have more non-zeros than those before, a last one that is smaller, and steps that change."""
    from scipy.sparse import random_array

    made = random_array((600, 2000), density=0.02, format="csr", rng=0)
    rows = hogwild.CSRDataset((made, np.random.default_rng(0).integers(0, 3, 600).astype(float)))
    assert len(rows) % BATCH

    def trained():
        torch.manual_seed(0)
        net = hogwild.SparseMLP(2000, [16, 8], 3).cuda()
        run = hogwild.minimise(
            hogwild.Module(net, nn.functional.cross_entropy, rows, batch=BATCH), partial(rule, lr=0.05),
            hogwild.Cosine(0.05), hogwild.Serial(), budget=4,
        )  # fmt: skip
        return run, {name: tensor.cpu() for name, tensor in net.state_dict().items()}

    whole, expected = trained()
    monkeypatch.setattr("hogwild.nn.cuda_graph_step.steps_for", lambda *_: None)
    single, found = trained()
    assert whole.result["loss"] == pytest.approx(single.result["loss"], rel=1e-2)
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-2, atol=2e-3)
