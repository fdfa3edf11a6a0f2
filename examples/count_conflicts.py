"""
Count the conflicts of workers
==============================

The same workers train on dense and on sparse rows, and every conflict is counted: how stale a worker's parameters
were, how many of its updates met another worker's, and how many writes were lost. What theory expects stands beside
it.

.. code-block:: console

   $ python examples/count_conflicts.py [WORKERS] [--draw]
"""

from __future__ import annotations

import sys

from hogwild import Constant, Hogwild, Linear, minimise
from hogwild.data.generate import classification
from hogwild.data.in_memory import InMemoryDataset

FEATURES = (16, 512, 32_768)


def main(workers: int = 2, rows: int = 50_000) -> list[dict]:
    """Watch one epoch on rows that share ever fewer coordinates."""
    seen = []
    print(f"{'features':>9} {'stale by':>9} {'met another':>12} {'expected':>9} {'lost of a million':>18}")
    for features in FEATURES:
        made = classification(rows, features, nonzeros=12, exponent=0.0)
        problem = Linear(InMemoryDataset(made.rows, shuffled=True), "logistic")
        run = minimise(problem, "sgd", Constant(0.5), Hogwild(workers, buffer=0), budget=1, count_conflicts=True)
        found = run.conflicts
        share = 1e6 * found["lost_writes"] / found["writes"]
        expected = found["predicted"]["collided_by_staleness"]
        stale, met = found["staleness"]["mean"], found["collided"]
        print(f"{features:>9,} {stale:>9.2f} {met:>12.2%} {expected:>9.2%} {share:>18,.1f}")
        seen.append(found)
    return seen


def draw(seen: list[dict]) -> None:
    """Draw the measured share of updates that met another, beside the expected one."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(7, 4))
    axes.loglog(FEATURES, [found["collided"] for found in seen], "o-", label="measured")
    expected = [found["predicted"]["collided_by_staleness"] for found in seen]
    axes.loglog(FEATURES, expected, "s--", label="expected")
    axes.set(xlabel="features, of which a row has 12", ylabel="share of updates that met another")
    axes.legend()
    plt.show()


if __name__ == "__main__":
    words = sys.argv[1:]
    seen = main(*(int(word) for word in words if word != "--draw"))
    if "--draw" in words:
        draw(seen)
