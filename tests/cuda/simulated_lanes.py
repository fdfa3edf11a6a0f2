"""Run with NUMBA_ENABLE_CUDASIM=1: ratings by groups of four lanes, whose shuffles Numba's simulator does not have."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
from numba import config
from simulated_ratings import columns

from hogwild import Cosine, Cuda, MatrixCompletion, Serial, minimise
from hogwild.kernels import cuda_lanes
from hogwild.problems.matrix_completion_on_gpu import FactorsOnGPU

LANES = 4
SECONDS = 60  # that a lane waits for the others


class Group:
    """Values that the lanes of a group show each other."""

    def __init__(self) -> None:
        self.shown: list[Any] = [None] * LANES
        self.barrier = threading.Barrier(LANES)

    def exchange(self, lane: int, value: Any) -> list[Any]:
        self.shown[lane] = value
        self.barrier.wait(SECONDS)
        found = list(self.shown)
        self.barrier.wait(SECONDS)
        return found


GROUPS: dict[tuple[int, int], Group] = {}
_LOCK = threading.Lock()


def values_of_group(value: Any) -> list[Any]:
    thread: Any = threading.current_thread()
    group, lane = divmod(thread.threadIdx.x, LANES)
    with _LOCK:
        found = GROUPS.setdefault((thread.blockIdx.x, group), Group())
    return found.exchange(lane, value)


def value_of_lane(value: Any, source: Any) -> Any:
    return values_of_group(value)[source]


def sum_of_values(z: Any) -> Any:
    return np.float32(sum(values_of_group(z)))


def check(rank: int, loss: str, rule: str) -> None:
    problem = MatrixCompletion(columns(), rank, loss=loss, l2=0.1, seed=1)
    given = {"budget": 2, "schedule": Cosine(0.2)}
    gpu, alone = minimise(problem, rule, runtime=Cuda(), **given), minimise(problem, rule, strategy=Serial(), **given)
    assert gpu.objective < 1.1 * alone.objective, (rank, loss, gpu.objective, alone.objective)
    evaluated = problem.metrics(problem.measure(problem.data.in_order()[0], gpu.state))
    np.testing.assert_allclose(gpu.result["loss"], evaluated["loss"], rtol=1e-5)


if __name__ == "__main__":
    assert config.ENABLE_CUDASIM
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)  # Drawing multiplies modulo 2**64.
    cuda_lanes.lane_value = lambda lanes: value_of_lane
    cuda_lanes.lane_sum = lambda lanes: sum_of_values
    FactorsOnGPU._lanes = property(lambda self: LANES)
    FactorsOnGPU._sizes = property(lambda self: ((2, LANES), (1, 2 * LANES)))
    check(3, "squared", "adagrad")  # Two lanes have no factors.
    check(20, "squared", "sgd")  # Two lanes have eight factors, and two have four.
    check(11, "bpr", "adagrad")
