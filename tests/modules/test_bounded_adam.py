"""Adam and AdamW in shared memory: PyTorch's steps, unless another worker was in the middle of one."""

import copy

import pytest
import torch
from torch import nn

from hogwild.runtimes.processes import atomic_optimiser_step
from hogwild.runtimes.processes.atomic_optimiser_step import bounded, can_be_bounded, fuse, needs_step_lock
from hogwild.runtimes.processes.optimiser_state import allocate_state

OPTIONS = [
    {},
    {"weight_decay": 0.1},
    {"amsgrad": True, "betas": (0.8, 0.95)},
    {"maximize": True, "lr": torch.tensor(0.02), "eps": 1e-3},
]


def pair(kind, dtype=torch.float32, shape=(7, 5), **options):
    """Two optimisers of equal parameters."""
    one = nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype))
    other = copy.deepcopy(one)
    both = [getattr(torch.optim, kind)([weight], fused=True, **options) for weight in (one, other)]
    for optimiser in both:
        allocate_state(optimiser)
    return one, other, *both


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
def test_steps_are_those_of_pytorch(kind, options):
    ours, theirs, bounded_one, usual = pair(kind, **options)
    generator = torch.Generator().manual_seed(1)
    with bounded(bounded_one):
        for _ in range(50):
            gradient = torch.randn(ours.shape, generator=generator) * (
                torch.rand(ours.shape, generator=generator) < 0.1
            )
            ours.grad, theirs.grad = gradient.clone(), gradient
            bounded_one.step()
            usual.step()
            assert torch.equal(ours.grad, gradient)  # is the user's
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    for name, tensor in usual.state[theirs].items():
        torch.testing.assert_close(bounded_one.state[ours][name], tensor, rtol=1e-4, atol=1e-7)


def test_means_without_gradients_settle_at_zero():
    """Otherwise they come to numbers below 1e-38 and stay there, and a step takes 30 times as long."""
    weight, _, optimiser, _ = pair("Adam", betas=(0.5, 0.6))
    with bounded(optimiser):
        for step in range(300):
            weight.grad = torch.full(weight.shape, float(step < 3))
            optimiser.step()
    assert not optimiser.state[weight]["exp_avg"].any()
    assert not optimiser.state[weight]["exp_avg_sq"].any()


def test_large_tensors_are_shared_out_among_threads(monkeypatch):
    monkeypatch.setattr(atomic_optimiser_step, "CHUNK", 8)
    ours, theirs, bounded_one, usual = pair("Adam", torch.float64, shape=(3, 11), lr=0.1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with bounded(bounded_one):
            ours.grad = theirs.grad = torch.arange(33.0, dtype=torch.float64).reshape(11, 3).t()
            bounded_one.step()
            usual.step()
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(ours, theirs)


def test_half_of_another_workers_step_throws_nothing_away():
    weight, _, adam, _ = pair("Adam", lr=1e-3)
    before = weight.detach().clone()
    adam.state[weight]["exp_avg"].fill_(0.1)  # another has written the mean, and not yet the squares
    weight.grad = torch.zeros_like(weight)
    weight.grad[0] = 1e-3
    with bounded(adam):
        adam.step()
    assert (weight - before).abs().max() < 1e-2  # and not a million


def test_what_is_not_a_number_is_seen():
    weight, _, adam, _ = pair("Adam")
    weight.grad = torch.full_like(weight, torch.nan)
    with bounded(adam):
        adam.step()
    assert weight.isnan().all()


def test_schedulers_closures_and_sparse_gradients_as_ever():
    weight, _, adam, _ = pair("AdamW", lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(adam, 1, gamma=0.5)

    def closure():
        adam.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss

    with bounded(adam):
        losses = [adam.step(closure).item() for _ in range(5)]
        scheduler.step()
        adam.step(closure=closure)
        assert losses == sorted(losses, reverse=True)
        assert adam.param_groups[0]["lr"] == 0.05
        assert adam.state[weight]["step"] == 6
        weight.grad = torch.zeros(weight.shape).to_sparse()
        with pytest.raises(RuntimeError, match="sparse"):
            adam.step()
    assert not adam._optimizer_step_pre_hooks


@pytest.mark.parametrize(
    ("options", "dtype"),
    [({"fused": False}, torch.float32), ({}, torch.bfloat16), ({"betas": (0.9, 0.5)}, torch.float32)],
)
def test_what_cannot_be_bounded_steps_one_at_a_time(options, dtype):
    adam = torch.optim.Adam([nn.Parameter(torch.ones(2, dtype=dtype))], **options)
    fuse(adam)
    assert not can_be_bounded(adam)
    assert needs_step_lock(adam)
