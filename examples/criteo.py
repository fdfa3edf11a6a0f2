"""
Clicks in Criteo's format
=========================

A table of clicks with 13 numbers and 26 categories, without header and with empty cells: it is generated in the shape
of Criteo's display-advertising data, with a planted model, and read by one option. A logistic regression learns what
each value contributes. A factorisation machine learns pairs of values, too, some of which were planted.

Give the number of rows as an argument: with 10,000,000 the file has 2.4 GB, which is read and trained on within 2 GiB
of memory.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import hogwild
from hogwild.data import ReadOptions
from hogwild.data.generate.criteo import Criteo


def main(rows: int = 200_000, memory: str = "2GiB") -> dict[str, float]:
    losses = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "clicks.txt")
        Criteo(rows, noise=0.3).write(path)
        data = hogwild.data.open(path, reading=ReadOptions(format="criteo"), memory=memory)
        print(f"{data.n_rows:,} rows, {data.nonzeros:,} non-zeros in 2**18 columns")
        train, test = data.split(0.1, seed=0)
        problems = {
            "logistic regression": hogwild.Linear(train),
            "factorisation machine": hogwild.FactorisationMachine(train, rank=8),
        }
        for name, problem in problems.items():
            run = hogwild.minimise(problem, budget=3, test=test)
            losses[name] = run.result["test_loss"]
            print(
                f"{name}: held-out loss {losses[name]:.4f}, accuracy {run.result['test_accuracy']:.4f}, "
                f"{run.result['seconds']:.1f} s of training"
            )
        run.save(Path(folder, "fm.model"))
        table = "\t".join(["", *["3"] * 13, *["68fd1e64"] * 26]).removeprefix("\t")  # a row without a label
        Path(folder, "new.txt").write_text(table + "\n")
        chance = hogwild.load(Path(folder, "fm.model")).answer(Path(folder, "new.txt"), proba=True, format="criteo")
        print(f"A row of a new file is clicked with probability {chance.values[0, 1]:.3f}")
    return losses


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
