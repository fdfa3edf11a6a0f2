"""Workers that take each step together, and the recipe for large minibatches (Goyal et al. 2017)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from hogwild import (
    Budget,
    Checkpoints,
    Hogwild,
    LargeMinibatch,
    Linear,
    LinearScaling,
    Module,
    Processes,
    SizeSkew,
    Steps,
    Synchronous,
    minimise,
)
from hogwild.errors import CheckpointError, ParameterError, WorkerError
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.ddp.worker import set_step_with_correction

SAMPLES, BATCH, ACCUMULATE, EPOCHS = 64, 6, 2, 4  # the last step has batches of 6, 6 and 4, and one worker has none
STEP, MOMENTUM, DECAY, WARMUP = 0.05, 0.9, 0.05, 2.0
SGD = partial(torch.optim.SGD, lr=STEP, momentum=MOMENTUM, weight_decay=DECAY)


@pytest.fixture(autouse=True)
def _one_thread():
    """Arithmetic on a few numbers, next to workers that want the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def samples(count=SAMPLES):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(count, 5, generator=random, dtype=torch.float64)
    return TensorDataset(x, (x[:, :3] + 0.5 * x[:, 2:]).argmax(1))


def layers(*between):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), *between, nn.Tanh(), nn.Linear(8, 3)).double()


def values(net):
    return torch.cat([tensor.detach().flatten().double() for tensor in net.state_dict().values()])


def train(net, strategy, batch=BATCH, data=None, loss=nn.functional.cross_entropy, **options):
    options = {"budget": EPOCHS, "runtime": Processes(threads=1), **options}
    return minimise(Module(net, loss, data or samples(), batch=batch), SGD, strategy=strategy, **options)


# The same steps, however the samples of one are divided


def test_one_and_two_workers_with_the_same_total_batch_take_the_same_steps():
    data, found = samples(101), []
    for strategy, batch in ((Synchronous(1), 20), (Synchronous(2), 10), (Synchronous(2, accumulate=2), 5)):
        net = layers()
        run = train(net, strategy, batch, data, average=0.5)
        assert run.history[-1]["steps"] == 24
        found.append(values(net))
    assert (found[0] - values(layers())).abs().max() > 0.1
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(found[2], found[0], rtol=0, atol=1e-5)


class Idle(nn.Module):
    """A model with parameters it does not use."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = layers(), nn.Linear(2, 2)

    def forward(self, x):
        return self.used(x)


def test_parameters_without_a_gradient_stay_as_they_are():
    net = Idle()
    before = values(net.unused)
    run = train(net, Synchronous(2), budget=2)
    assert torch.equal(values(net.unused), before)
    assert run.loss < 1.1


# Every rule of the recipe, against the paper written out

RULES = ("linear scaling", "warm-up", "loss by the total batch", "one shuffle", "no decay of norms",
         "decay apart from the loss", "momentum correction", "statistics per worker")  # fmt: skip


def parts_of(epoch, rules):
    """For each step the parts of its batch, each with the worker that has it."""
    together = np.random.default_rng([0, epoch]).permutation(SAMPLES)
    apart = [np.random.default_rng([0, epoch, worker]).permutation(SAMPLES) for worker in range(2)]
    total = 2 * ACCUMULATE * BATCH
    for first in range(0, SAMPLES, total):
        places = [np.arange(k, min(k + BATCH, SAMPLES)) for k in range(first, min(first + total, SAMPLES), BATCH)]
        orders = [together, together] if "one shuffle" in rules else apart
        yield [(k % 2, orders[k % 2][rows]) for k, rows in enumerate(places)]


def gradient_of(nets, data, parts, rules):
    x, y = data.tensors
    count, sums = sum(len(rows) for _, rows in parts), [torch.zeros_like(tensor) for tensor in nets[0].parameters()]
    if "statistics per worker" not in rules:
        parts = [(0, np.concatenate([rows for _, rows in parts]))]
    for worker, rows in parts:
        loss = nn.functional.cross_entropy(nets[worker](x[rows]), y[rows])
        share = len(rows) / count if "loss by the total batch" in rules else 1 / len(parts)
        for kept, found in zip(sums, torch.autograd.grad(loss, list(nets[worker].parameters())), strict=True):
            kept += share * found
    return sums


def written_out(rules):
    """The recipe in one process, with momentum as in equation 10 of the paper."""
    data, times = samples(), 2 * ACCUMULATE
    nets = [layers(nn.BatchNorm1d(8)) for _ in range(2)]
    velocities = [torch.zeros_like(tensor) for tensor in nets[0].parameters()]
    names, seen, before = [name for name, _ in nets[0].named_parameters()], 0, None
    for epoch in range(EPOCHS):
        for parts in parts_of(epoch, rules):
            risen = min(seen / SAMPLES / WARMUP, 1) if "warm-up" in rules else 1
            factor = 1 + (times - 1) * risen if "linear scaling" in rules else 1
            step = STEP * factor * (0.1 if seen >= 0.75 * EPOCHS * SAMPLES else 1)
            kept = MOMENTUM * (step / (before or step) if "momentum correction" in rules else 1)
            for name, velocity, gradient, *tensors in zip(
                names, velocities, gradient_of(nets, data, parts, rules), *(net.parameters() for net in nets),
                strict=True,
            ):  # fmt: skip
                spared = "no decay of norms" in rules and name.startswith("1.")
                scale = 1 if "decay apart from the loss" in rules else times
                gradient = gradient + (0 if spared else scale * DECAY) * tensors[0].detach()
                velocity.mul_(kept).add_(step * gradient)
                for tensor in tensors:
                    tensor.data -= velocity
            seen, before = seen + sum(len(rows) for _, rows in parts), step
    return values(nets[0])


RECIPE = LargeMinibatch(reference=BATCH, warmup=WARMUP)
FALLING = Steps(at=(0.75,))


@cache
def trained_by_the_recipe():
    net = layers(nn.BatchNorm1d(8))
    train(net, Synchronous(2, ACCUMULATE, RECIPE), schedule=FALLING)
    return values(net)


def test_the_recipe_is_that_of_the_paper():
    torch.testing.assert_close(trained_by_the_recipe(), written_out(RULES), rtol=0, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_of_the_recipe_makes_a_difference(rule):
    without = written_out([other for other in RULES if other != rule])
    assert (trained_by_the_recipe() - without).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("option", "rule"),
    [("momentum_correction", "momentum correction"), ("decay_norms", "no decay of norms")],
)
def test_rules_that_can_be_left_out(option, rule):
    net, changed = layers(nn.BatchNorm1d(8)), {"momentum_correction": False, "decay_norms": True}[option]
    recipe = LargeMinibatch(BATCH, WARMUP, **{option: changed})
    train(net, Synchronous(2, ACCUMULATE, recipe), schedule=FALLING)
    without = written_out([other for other in RULES if other != rule])
    torch.testing.assert_close(values(net), without, rtol=0, atol=1e-9)


def test_a_worker_that_comes_along_without_samples_keeps_its_statistics():
    """With samples in the ratio 1 to 3 the first worker has 3 batches, and the other 8."""
    norm = nn.BatchNorm1d(8)
    net = layers(norm)
    minimise(Module(net, nn.functional.cross_entropy, samples(), BATCH, SizeSkew(3.0)), SGD,
             strategy=Synchronous(2), budget=1)  # fmt: skip
    assert norm.num_batches_tracked.item() == 3


def test_momentum_that_gathers_steps_is_corrected():
    class Absorbing(torch.optim.SGD):
        gathers_steps = "velocity"

    weight = nn.Parameter(torch.zeros(1))
    for correction, expected in ((True, 3.0), (False, 1.0)):
        optimiser = Absorbing([weight], lr=0.1)
        optimiser.state[weight] = {"velocity": torch.ones(1)}
        set_step_with_correction(optimiser, optimiser.param_groups[0], 0.3, correction)
        torch.testing.assert_close(optimiser.state[weight]["velocity"], torch.tensor([expected]))


def test_linear_scaling_is_a_schedule_of_its_own():
    run = train(layers(), Synchronous(2), schedule=LinearScaling(Steps(at=(0.75,)), reference=3, warmup=1.0))
    assert run.history[1]["step"] == pytest.approx(4 * STEP)


# How runs end, and go on


def fails_in(how, calls, outputs, target):
    calls.append(1)
    if len(calls) == 4 and torch.distributed.is_initialized() and torch.distributed.get_rank() == 1:
        {"kill": lambda: os.kill(os.getpid(), signal.SIGKILL), "error": lambda: outputs.no_such_thing,
         "sleep": lambda: time.sleep(60)}[how]()  # fmt: skip
    return nn.functional.cross_entropy(outputs, target)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("kill", "^worker 1 was ended by the signal SIGKILL"),
        ("error", "(?s)^worker 1 failed.*no_such_thing"),
        ("sleep", "^worker 1 failed: it did not respond for 4 seconds"),
    ],
)
def test_the_death_of_a_worker_ends_the_run_with_its_cause(how, message):
    with pytest.raises(WorkerError, match=message):
        train(
            layers(),
            Synchronous(2),
            loss=partial(fails_in, how, []),
            runtime=Processes(heartbeat_timeout=4.0, threads=1),
        )


def test_a_run_out_of_time_ends_for_all_at_the_same_step():
    run = train(layers(), Synchronous(2), budget=Budget(epochs=10**6, seconds=0.2), test=samples(10))
    assert run.stop_reason == "seconds"
    assert run.history[-1]["test_accuracy"] > 0


def slow(outputs, target):
    time.sleep(0.003)
    return nn.functional.cross_entropy(outputs, target)


def test_a_run_goes_on_from_the_middle_of_an_epoch(tmp_path):
    def end(event):
        if event["event"] == "checkpoint":
            record = json.loads(torch.load(tmp_path / "latest.pt", weights_only=True)["record"])
            if record["counts"][0][at.BATCH]:
                raise InterruptedError(str([line[at.BATCH] for line in record["counts"]]))

    net, whole, data = layers(nn.Dropout(0.3)), layers(nn.Dropout(0.3)), samples(128)
    options = {"loss": slow, "batch": 2, "data": data, "strategy": Synchronous(2, recipe=LargeMinibatch(2, 1.0)),
               "budget": 2}  # fmt: skip
    train(whole, **options)
    with pytest.raises(InterruptedError, match=r"\[(\d+), \1\]"):
        train(net, **options, checkpoint=Checkpoints(tmp_path, seconds=0.01), callbacks=[end])
    fresh = layers(nn.Dropout(0.3))
    run = train(fresh, **options, checkpoint=tmp_path, resume=True)
    assert run.history[-1]["updates"] == 256
    torch.testing.assert_close(values(fresh), values(whole), rtol=0, atol=1e-12)


def test_a_checkpoint_of_workers_that_do_not_wait_is_refused(tmp_path):
    train(layers(), Hogwild(2), budget=1, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="another run: together was None"):
        train(layers(), Synchronous(2), checkpoint=tmp_path, resume=True)


# Workers that torchrun has started

SCRIPT = """
import os, sys
sys.path.insert(0, {tests!r})
from test_synchronous import Synchronous, layers, nn, samples, torch, train, values
first = os.environ["RANK"] == "0"
net, heard = layers(nn.Dropout(0.3)), []
if not first:
    torch.nn.init.zeros_(net[0].weight)
options = dict(strategy=Synchronous(), test=samples(20), callbacks=[heard.append], checkpoint={folder!r})
train(net, **options, budget=2)
other = layers(nn.Dropout(0.3))
run = train(other, **options, budget=4, resume=True)
torch.save((values(other), run.history, run.stop_reason, run.loss, len(heard)), {folder!r} + "/" + os.environ["RANK"])
"""


def test_workers_of_torchrun_train_resume_and_all_have_the_result(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), folder=str(tmp_path)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    (first, history, *said, heard), (second, *rest) = (torch.load(tmp_path / name, weights_only=True) for name in "01")
    assert torch.equal(first, second)
    assert rest == [history, *said, 0]
    assert heard > 0
    assert [record["epoch"] for record in history] == [1, 2, 3, 4]
    assert all("test_accuracy" in record for record in history)
    ours = layers(nn.Dropout(0.3))
    train(ours, Synchronous(2))
    torch.testing.assert_close(values(ours), first, rtol=0, atol=1e-9)


def test_torchrun_has_the_last_word_on_the_number_of_workers(monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ParameterError, match=r"started 4 workers .* Leave out 'workers'"):
        train(layers(), Synchronous(2))
    monkeypatch.setenv("WORLD_SIZE", "four")
    with pytest.raises(ParameterError, match="must be numbers, as torchrun sets them"):
        train(layers(), Synchronous())


# What cannot work


def test_what_cannot_work_is_refused_before_anything_starts():
    problem = Linear((np.eye(3), [0, 1, 1]))
    with pytest.raises(ParameterError, match="send each other messages"):
        minimise(problem, strategy="synchronous", runtime="threads")
    with pytest.raises(ParameterError, match="none can continue without one that crashed"):
        train(layers(), Synchronous(2), runtime=Processes(on_worker_failure="continue"))
    with pytest.raises(ParameterError, match="leave out one of them"):
        train(layers(), Synchronous(2, recipe=LargeMinibatch()), schedule=LinearScaling())
    for wrong in ({"workers": 0}, {"accumulate": 0}, {"accumulate": 1.5}, {"recipe": "goyal"}):
        with pytest.raises(ParameterError, match=f"The '{next(iter(wrong))}' parameter must be"):
            Synchronous(**wrong)
