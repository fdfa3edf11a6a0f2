"""See the collisions: the same workers on dense and on sparse rows, watched.

python examples/count_conflicts.py [workers]
"""

from __future__ import annotations

import sys

from hogwild import Constant, Hogwild, Linear, minimise
from hogwild.data.generate import classification
from hogwild.data.in_memory import InMemoryDataset


def main(workers: int = 2, rows: int = 50_000) -> list[dict]:
    """Watch one epoch on rows that share ever fewer coordinates."""
    seen = []
    print(f"{'features':>9} {'stale by':>9} {'met another':>12} {'expected':>9} {'lost of a million':>18}")
    for features in (16, 512, 32_768):
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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
