"""Averages of parameters that parts of the rows have trained, on Numba's simulator of a GPU."""

from numba import config
from simulated_a_little_of_each import PROBLEMS

from hogwild import Averaging, Cuda, Serial, minimise

if __name__ == "__main__":
    assert config.ENABLE_CUDASIM
    for problem in PROBLEMS[::2]:
        alone = minimise(problem, "adagrad", strategy=Serial(), budget=3)
        apart = minimise(problem, "adagrad", strategy=Averaging(2), runtime=Cuda(), budget=3)
        assert apart.objective < 1.5 * abs(alone.objective), (problem, apart.objective, alone.objective)
