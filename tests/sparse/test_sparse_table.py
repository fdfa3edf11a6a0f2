"""A table that is updated in the backward pass: the same sums and steps as dense arithmetic, and nothing else made."""

import copy
import io
import multiprocessing

import numpy as np
import pytest
import torch
from torch import nn

import hogwild
import references
from hogwild.errors import DataError, ParameterError
from hogwild.nn import openmp_pool

ROWS, WIDTH, SAMPLES = 40, 9, 12


def batch(seed=0, rows=ROWS, samples=SAMPLES, binary=False, dtype=torch.int64):
    """Samples with repeated rows, and one that is empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, samples)
    lengths[samples // 2] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    indices = torch.tensor(rng.integers(0, rows, offsets[-1]), dtype=dtype)
    values = torch.tensor(rng.standard_normal(offsets[-1]), dtype=torch.float32)
    return (indices, torch.tensor(offsets)) if binary else (indices, torch.tensor(offsets), values)


def as_matrix(indices, offsets, values=None, rows=ROWS):
    dense = torch.zeros(len(offsets) - 1, rows, dtype=torch.float64)
    for sample in range(len(offsets) - 1):
        for at in range(offsets[sample], offsets[sample + 1]):
            dense[sample, indices[at]] += 1.0 if values is None else values[at]
    return dense


def following(table, lr=0.1):
    table.follow(torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr))
    return table


def turned(table):
    table.weight = nn.Parameter(table.weight.detach().T)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_sums_are_those_of_a_matrix_product_and_of_embedding_bag(binary, dtype):
    table = hogwild.SparseTable(ROWS, WIDTH, binary=binary)
    given = batch(binary=binary, dtype=dtype)
    expected = as_matrix(*given) @ table.weight.double()
    bag = nn.EmbeddingBag.from_pretrained(table.weight.detach(), mode="sum", include_last_offset=True)
    theirs = bag(given[0], given[1].to(dtype), **({} if binary else {"per_sample_weights": given[2]}))
    torch.testing.assert_close(table(*given).double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(table(*given), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("binary", [False, True])
def test_the_backward_pass_takes_the_step_of_the_gradient(binary):
    table, given = following(hogwild.SparseTable(ROWS, WIDTH, binary=binary), lr=0.3), batch(binary=binary)
    dense = table.weight.detach().double().requires_grad_()
    target = torch.randn(SAMPLES, WIDTH)
    ((as_matrix(*given) @ dense - target) ** 2).mean().backward()
    nn.functional.mse_loss(table(*given), target).backward()
    torch.testing.assert_close(table.weight.detach().double(), dense.detach() - 0.3 * dense.grad, rtol=1e-5, atol=1e-6)
    assert table.weight.grad is None


def test_the_step_is_that_of_a_numerical_gradient():
    torch.manual_seed(0)
    table, given = following(hogwild.SparseTable(ROWS, WIDTH), lr=1.0), batch()
    target = torch.randn(SAMPLES, WIDTH, dtype=torch.float64)

    def loss(weight):
        return float(((as_matrix(*given) @ weight - target) ** 2).mean())

    before = table.weight.detach().double()
    ((table(*given).double() - target) ** 2).mean().backward()
    moved = before - table.weight.detach().double()
    for row, column in [(int(given[0][0]), 0), (int(given[0][5]), 1), (int(given[0][-1]), 2)]:
        nudge = torch.zeros_like(before)
        nudge[row, column] = 1e-6
        slope = (loss(before + nudge) - loss(before - nudge)) / 2e-6
        assert moved[row, column].item() == pytest.approx(slope, rel=1e-3, abs=1e-6)


def test_adagrad_remembers_one_number_a_row():
    table, given = following(hogwild.SparseTable(ROWS, WIDTH, update="adagrad"), lr=0.2), batch()
    weight, squares = table.weight.detach().numpy().astype(np.float64), np.zeros(ROWS)
    indices, offsets, values = (part.numpy() for part in given)
    for _ in range(3):
        gradient = torch.randn(SAMPLES, WIDTH)
        table(*given).backward(gradient)
        for sample in range(SAMPLES):
            slope = gradient[sample].numpy().astype(np.float64)
            for at in range(offsets[sample], offsets[sample + 1]):
                row = indices[at]
                squares[row] += values[at] ** 2 * (slope**2).mean()
                weight[row] -= 0.2 * values[at] * slope / (np.sqrt(squares[row]) + 1e-10)
    np.testing.assert_allclose(table.squares.numpy(), squares, rtol=1e-4)
    np.testing.assert_allclose(table.weight.detach().numpy(), weight, rtol=1e-4, atol=1e-5)


def test_the_step_follows_the_optimiser_and_its_schedule():
    layer = nn.Linear(1, 1)
    optimiser = torch.optim.SGD(layer.parameters(), lr=1.0)
    decay = torch.optim.lr_scheduler.StepLR(optimiser, 1, gamma=0.5)
    table = hogwild.SparseTable(2, 1, binary=True, factor=3.0)
    table.follow(optimiser)
    given, moves = (torch.tensor([1]), torch.tensor([0, 1])), []
    for _ in range(3):
        before = table.weight.detach().clone()
        table(*given).sum().backward()
        optimiser.step()
        decay.step()
        moves.append((before - table.weight.detach())[1].item())
    assert moves == pytest.approx([3.0, 1.5, 0.75], rel=1e-5)
    optimiser.load_state_dict(optimiser.state_dict())  # makes new groups
    optimiser.param_groups[0]["lr"] = 2.0
    assert table.rate == 6.0


def test_without_a_step_to_follow_it_says_so():
    table = hogwild.SparseTable(ROWS, WIDTH, binary=True)
    with pytest.raises(ParameterError, match="follow"):
        table(*batch(binary=True)).sum().backward()


def test_in_evaluation_and_when_frozen_nothing_moves():
    table, given = following(hogwild.SparseTable(ROWS, WIDTH)), batch()
    before = table.weight.detach().clone()
    table.eval()
    assert not table(*given).requires_grad
    table.train().weight.requires_grad_(False)
    assert not table(*given).requires_grad
    with torch.no_grad():
        table(*given)
    assert (table.weight == before).all()


def test_one_batch_updates_once():
    table, given = following(hogwild.SparseTable(ROWS, WIDTH)), batch()
    loss = table(*given).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(ParameterError, match="again"):
        loss.backward()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda i, o, v: (i.index_fill(0, torch.tensor([3]), ROWS), o, v), "index 40 is not one of"),
        (lambda i, o, v: (i.index_fill(0, torch.tensor([3]), -1), o, v), "index -1 is not one of"),
        (lambda i, o, v: (i, o[:-1], v), "offset 11"),
        (lambda i, o, v: (i, o + 1, v), "offset 0"),
        (lambda i, o, v: (i, o.flip(0), v), "offset"),
        (lambda i, o, v: (i, o, v.double()), "'values'"),
        (lambda i, o, v: (i, o, v[:-1]), "'values'"),
        (lambda i, o, v: (i.float(), o, v), "'indices'"),
        (lambda i, o, v: (i, o), "binary=True"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_what_is_wrong_with_a_batch_is_said(change, message, dtype):
    with pytest.raises((DataError, ParameterError), match=message):
        hogwild.SparseTable(ROWS, WIDTH)(*change(*batch(dtype=dtype)))


def test_the_sample_with_the_wrong_index_is_named():
    indices, offsets, values = batch()
    indices[offsets[4]] = 99
    with pytest.raises(DataError, match="row 4: index 99"):
        hogwild.SparseTable(ROWS, WIDTH)(indices, offsets, values)


def test_a_binary_table_takes_no_values():
    with pytest.raises(ParameterError, match="binary"):
        hogwild.SparseTable(ROWS, WIDTH, binary=True)(*batch())


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"width": 1.5}, {"update": "adam"}, {"factor": 0.0}])
def test_refusals(wrong):
    rows, width = wrong.pop("rows", 3), wrong.pop("width", 2)
    with pytest.raises(ParameterError):
        hogwild.SparseTable(rows, width, **wrong)


@pytest.mark.parametrize("changed", [lambda table: table.double(), lambda table: table.half(), turned])
def test_a_table_of_other_numbers_or_in_another_order_is_refused(changed):
    table = hogwild.SparseTable(ROWS, ROWS)
    changed(table)
    with pytest.raises(ParameterError, match="float32, row after row"):
        table(*batch())


def test_a_batch_that_was_changed_since_the_lookup_moves_nothing():
    table, (indices, offsets, values) = following(hogwild.SparseTable(ROWS, WIDTH)), batch()
    before, sums = table.weight.detach().clone(), table(indices, offsets, values)
    indices[0] = 10**9
    with pytest.raises(DataError, match="index 1,000,000,000 is not one of the table's rows"):
        sums.sum().backward()
    assert (table.weight == before).all()


@pytest.mark.parametrize("update", ["sgd", "adagrad"])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, update):
    """Each row is moved by one of them, in the order of the samples, though all samples share rows."""
    monkeypatch.setattr(openmp_pool, "WORTH", 8)
    given = batch(samples=200)

    def trained(threads):
        monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
        torch.manual_seed(0)
        table = following(hogwild.SparseTable(ROWS, WIDTH, update=update))
        for _ in range(5):
            table(*given).square().mean().backward()
        return table.weight

    expected = trained(1)
    assert all((trained(threads) == expected).all() for threads in (1, 2, 3, 8))


@pytest.mark.parametrize("width", [1, 3, 16, 33, 64, 100, 130] if references.ALL else [3, 100])
def test_rows_of_all_widths(width):
    """Columns are in the registers 64 at a time, and the rest as many as there are."""
    table, given = following(hogwild.SparseTable(ROWS, width), lr=0.3), batch(dtype=torch.int32)
    before, gradient = table.weight.detach().double(), torch.randn(SAMPLES, width)
    sums = table(*given)
    torch.testing.assert_close(sums.double(), as_matrix(*given) @ before, rtol=1e-5, atol=1e-5)
    sums.backward(gradient)
    expected = before - 0.3 * as_matrix(*given).T @ gradient.double()
    torch.testing.assert_close(table.weight.detach().double(), expected, rtol=1e-5, atol=1e-5)


def test_a_copy_of_the_process_has_threads_of_its_own(monkeypatch):
    """PyTorch's do not survive a fork: whoever waits for them waits for ever."""
    monkeypatch.setattr(openmp_pool, "WORTH", 8)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    table, given = hogwild.SparseTable(ROWS, WIDTH), batch(samples=60)
    expected = table(*given).detach().numpy()
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: there.send(table(*given).detach().numpy()), daemon=True
    )  # fmt: skip
    child.start()
    assert here.poll(60), "the copy hangs"
    np.testing.assert_array_equal(here.recv(), expected)
    child.join(60)


@pytest.mark.parametrize("team", ["PyTorch's", "Python's"])
def test_threads_do_not_divide_what_they_do_not_share(monkeypatch, team):
    """Where no two samples share a row, no update can be lost, however many threads there are."""
    monkeypatch.setattr(openmp_pool, "WORTH", 8)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    if team == "Python's":
        monkeypatch.setattr(openmp_pool, "_team", lambda: None)
    elif openmp_pool._team() is None:
        pytest.skip("PyTorch's threads cannot be called here")
    table = following(hogwild.SparseTable(600, WIDTH, binary=True), lr=1.0)
    indices, offsets = torch.randperm(600), torch.arange(0, 601, 6)
    before, gradient = table.weight.detach().clone(), torch.randn(100, WIDTH)
    table(indices, offsets).backward(gradient)
    expected = before.index_add(0, indices, -gradient.repeat_interleave(6, 0))
    torch.testing.assert_close(table.weight.detach(), expected)


def test_cuts_cover_all_samples():
    offsets = np.array([0, 0, 50, 50, 50, 51])
    found = openmp_pool.cuts(offsets, 4)
    assert found[0] == 0
    assert found[-1] == 5
    assert (np.diff(found) >= 0).all()


def test_state_and_copies():
    net = hogwild.SparseMLP(ROWS, [WIDTH, 4], 3, update="adagrad")
    net.follow(torch.optim.SGD(net.parameters(), lr=0.1))
    nn.functional.cross_entropy(net(*batch()), torch.zeros(SAMPLES, dtype=torch.long)).backward()
    assert set(net.state_dict()) >= {"table.weight", "table.squares", "bias", "layers.1.weight"}
    other = hogwild.SparseMLP(ROWS, [WIDTH, 4], 3, update="adagrad")
    other.load_state_dict(net.state_dict())
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    for twin in (other, copy.deepcopy(net), torch.load(file, weights_only=False)):
        torch.testing.assert_close(twin(*batch()), net(*batch()), rtol=0, atol=0)
        assert (twin.table.squares == net.table.squares).all()
        with pytest.raises(ParameterError, match="follow"):
            twin(*batch()).sum().backward()


def test_one_step_of_the_network_is_that_of_the_dense_one():
    torch.manual_seed(1)
    net = hogwild.SparseMLP(ROWS, [WIDTH, 5], 3)
    first = nn.Linear(ROWS, WIDTH)
    dense = nn.Sequential(first, *copy.deepcopy(net.layers))
    with torch.no_grad():
        first.weight.copy_(net.table.weight.T)
        first.bias.copy_(net.bias)
    given, target = batch(), torch.randint(0, 3, (SAMPLES,))
    optimisers = [torch.optim.SGD(each.parameters(), lr=0.2) for each in (net, dense)]
    net.follow(optimisers[0])
    for _ in range(4):
        losses = [nn.functional.cross_entropy(net(*given), target),
                  nn.functional.cross_entropy(dense(as_matrix(*given).float()), target)]  # fmt: skip
        torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-5)
        for loss, optimiser in zip(losses, optimisers, strict=True):
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    torch.testing.assert_close(net.table.weight.T, first.weight, rtol=1e-4, atol=1e-5)
