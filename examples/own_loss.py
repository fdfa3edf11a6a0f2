"""
A loss of your own
==================

A Python function is compiled into the lock-free kernels. Here missing a sale (predicting too little) costs four times
as much as an item left on the shelf.

.. code-block:: console

   $ python examples/own_loss.py [ROWS] [--draw]
"""

from __future__ import annotations

import sys

import numpy as np

import hogwild


def newsvendor(z: float, y: float) -> tuple[float, float]:
    """The loss of predicting ``z`` when ``y`` was sold, and its derivative by ``z``."""
    if z < y:
        return 4.0 * (y - z), -4.0
    return z - y, 1.0


def draw_errors(errors: np.ndarray) -> None:
    """Draw how much more was predicted than was sold."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(7, 3.5))
    axes.hist(errors, bins=80)
    axes.axvline(0, color="black", linestyle="--")
    axes.set(xlabel="prediction less sale: too little is left of the line", ylabel="cases")
    plt.show()


def main(rows: int = 20_000, draw: bool = False) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 5))
    y = 10 + X @ [2.0, -1.0, 0.0, 0.5, 3.0] + rng.standard_normal(rows)
    run = hogwild.minimise(hogwild.Linear((X, y), loss=newsvendor), strategy=hogwild.Hogwild(workers=2))
    short = float(np.mean(run.model.predict(X) < y))
    if draw:
        draw_errors(run.model.predict(X) - y)
    print(f"mean cost {run.loss:.3f}; too little was predicted in {short:.1%} of cases (20% is optimal)")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:] if word != "--draw"), draw="--draw" in sys.argv)
