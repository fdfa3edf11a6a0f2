"""Profile of a training step: times its parts over several steps on a copy of the model."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import Any

import torch

from hogwild.nn.step_profile import StepProfile
from hogwild.problems.module import Module
from hogwild.training.torch_optimisers import self_updating, trainable_parameters

WARM_UP = 2  # number of first steps that are not counted


def profiled(problem: Module, steps: int = 20) -> StepProfile:
    """Run ``steps`` training steps with step size zero, and return the time of each part.

    The time includes the loading of the batches.

    >>> from torch.utils.data import TensorDataset
    >>> rows = TensorDataset(torch.ones(64, 3), torch.zeros(64, 1))
    >>> profiled(Module(torch.nn.Linear(3, 1), torch.nn.functional.mse_loss, rows, batch=8), steps=4).steps
    4
    """
    twin = replace(problem, net=copy.deepcopy(problem.net))
    optimiser = torch.optim.SGD(trainable_parameters(twin.net), lr=0.0)
    for module in self_updating(twin.net):
        follow: Any = module.follow
        follow(optimiser)
    profile, warm = StepProfile(twin.net), StepProfile()
    share = problem.share(0, 1, 0, 0, problem.labels())
    done = 0
    while done < steps + WARM_UP:
        batches = iter(problem.training.batches(problem.batches(share)))
        begun = time.perf_counter()
        for batch in batches:
            waited = time.perf_counter() - begun
            loss, _ = twin.loss(batch)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if problem.device != "cpu":
                torch.cuda.synchronize()
            done += 1
            if done <= WARM_UP:
                profile.seconds = dict.fromkeys(profile.seconds, 0.0)
            (warm if done <= WARM_UP else profile).step(time.perf_counter() - begun, waited)
            if done >= steps + WARM_UP:
                break
            begun = time.perf_counter()
    return profile
