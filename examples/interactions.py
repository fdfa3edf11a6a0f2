"""
Features that meet: factorisation machines
==========================================

Each row has one feature of each of eight fields, and its label depends mostly on which of them meet. A linear model,
with one weight for each feature, cannot see that. A factorisation machine can.

.. code-block:: console

   $ python examples/interactions.py [ROWS] [EPOCHS] [--draw]
"""

import sys

from hogwild import FactorisationMachine, FieldAwareFactorisationMachine, Linear, minimise
from hogwild.data.generate import interactions
from hogwild.data.in_memory import InMemoryDataset


def main(rows: int = 50_000, epochs: int = 10) -> dict[str, float]:
    """Train three models, and show their held-out loss."""
    made = interactions(rows, 200, fields=8, seed=1)
    held_out = rows // 5
    train, test = (InMemoryDataset(part, shuffled=True) for part in (made.rows[:-held_out], made.rows[-held_out:]))
    problems = {
        "linear": Linear(train, l2=1e-5),
        "fm": FactorisationMachine(train, rank=8),
        "ffm": FieldAwareFactorisationMachine(train, fields=made.fields, rank=4),
    }
    found = {}
    for name, problem in problems.items():
        run = minimise(problem, budget=epochs, test=test)
        found[name] = run.result["test_loss"]
        print(f"{name:8} held-out log loss {found[name]:.4f}, accuracy {run.result['test_accuracy']:.4f}")
    return found


def draw(found: dict[str, float]) -> None:
    """Draw the held-out losses."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(7, 2.5), layout="constrained")
    axes.barh([*found], [*found.values()], color=["#57606a", "#1d4ed8", "#b45309"])
    axes.set(xlabel="held-out log loss (less is better)")
    axes.invert_yaxis()
    plt.show()


if __name__ == "__main__":
    words = sys.argv[1:]
    found = main(*(int(word) for word in words if word != "--draw"))
    if "--draw" in words:
        draw(found)
